//! The nodes that an argument selects: a plain path selects itself and all below it, a pattern what it matches.

use drumlin::{Pattern, Store, Tables};

use crate::failure::Failure;

/// Whether an argument is a pattern rather than a plain path.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// The selected nodes.
pub struct Scope {
    /// No node matches two of them.
    patterns: Vec<Pattern>,
}

impl Scope {
    /// The nodes that `text` selects; all nodes without it.
    pub fn new(text: Option<&str>) -> Result<Self, Failure> {
        let pattern = Pattern::new(text.unwrap_or("**"))?;
        let below = pattern.literal().map(|path| Pattern::new(&format!("{path}/**"))).transpose()?;
        Ok(Self { patterns: [pattern].into_iter().chain(below).collect() })
    }

    /// Patterns that match the selected nodes, in path order.
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// The plain path, if it is one.
    pub fn path(&self) -> Option<&str> {
        self.patterns[0].literal()
    }

    /// Fails if it is a plain path with nothing there.
    pub fn check(&self, store: &Store) -> Result<(), Failure> {
        match self.path() {
            Some(path) if !store.tree().exists(path)? => Err(Failure::Error(format!("there is nothing at '{path}'"))),
            _ => Ok(()),
        }
    }

    /// Whether the node at `path` is selected.
    pub fn matches(&self, path: &str) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches_path(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_for_all_below_it_and_a_pattern_for_what_it_matches() {
        for (text, path, matches) in [
            (None, "a/b", true),
            (Some("a"), "a", true),
            (Some("a"), "a/b/c", true),
            (Some("a"), "ab", false),
            (Some("a/*"), "a/b", true),
            (Some("a/*"), "a/b/c", false),
        ] {
            assert_eq!(Scope::new(text).unwrap().matches(path), matches, "{text:?} on {path}");
        }
        assert!(Scope::new(Some("a//b")).is_err());
    }
}
