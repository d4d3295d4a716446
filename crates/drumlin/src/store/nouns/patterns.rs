//! What calls take as patterns: text, patterns made of parts, and lists of them.

use crate::base::Result;
use crate::catalog::Pattern;

/// What can be used as a pattern: text, or one made of parts.
pub trait IntoPattern {
    /// The pattern.
    ///
    /// # Errors
    /// `InvalidArgument` if it is none.
    fn into_pattern(self) -> Result<Pattern>;
}

impl IntoPattern for Pattern {
    fn into_pattern(self) -> Result<Pattern> {
        Ok(self)
    }
}

impl IntoPattern for &Pattern {
    fn into_pattern(self) -> Result<Pattern> {
        Ok(self.clone())
    }
}

impl IntoPattern for &str {
    fn into_pattern(self) -> Result<Pattern> {
        Pattern::new(self)
    }
}

impl IntoPattern for &String {
    fn into_pattern(self) -> Result<Pattern> {
        Pattern::new(self)
    }
}

impl IntoPattern for String {
    fn into_pattern(self) -> Result<Pattern> {
        Pattern::new(&self)
    }
}

/// What can be used as some patterns: one, or a list of them.
pub trait IntoPatterns {
    /// The patterns.
    ///
    /// # Errors
    /// `InvalidArgument` if one is none.
    fn into_patterns(self) -> Result<Vec<Pattern>>;
}

macro_rules! one_pattern {
    ($($type:ty),*) => {
        $(impl IntoPatterns for $type {
            fn into_patterns(self) -> Result<Vec<Pattern>> {
                Ok(vec![self.into_pattern()?])
            }
        })*
    };
}

one_pattern!(Pattern, &Pattern, &str, &String, String);

impl<T: IntoPattern + Clone> IntoPatterns for &[T] {
    fn into_patterns(self) -> Result<Vec<Pattern>> {
        self.iter().map(|one| one.clone().into_pattern()).collect()
    }
}

impl<T: IntoPattern + Clone, const N: usize> IntoPatterns for &[T; N] {
    fn into_patterns(self) -> Result<Vec<Pattern>> {
        self.as_slice().into_patterns()
    }
}

impl<T: IntoPattern + Clone> IntoPatterns for &Vec<T> {
    fn into_patterns(self) -> Result<Vec<Pattern>> {
        self.as_slice().into_patterns()
    }
}

impl<T: IntoPattern, const N: usize> IntoPatterns for [T; N] {
    fn into_patterns(self) -> Result<Vec<Pattern>> {
        self.into_iter().map(IntoPattern::into_pattern).collect()
    }
}

impl<T: IntoPattern> IntoPatterns for Vec<T> {
    fn into_patterns(self) -> Result<Vec<Pattern>> {
        self.into_iter().map(IntoPattern::into_pattern).collect()
    }
}
