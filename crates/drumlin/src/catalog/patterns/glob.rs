//! Patterns for a name: wildcards, or a regular expression.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::base::{Error, Result};
use crate::catalog::tree::path::check_path;

/// A name with wildcards: `*` matches any characters and `?` a single one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Glob(pub(in crate::catalog) String);

impl TryFrom<String> for Glob {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        Self::new(&text)
    }
}

impl Glob {
    /// Parses `text`, in which at most 255 bytes are not wildcards.
    pub fn new(text: &str) -> Result<Self> {
        check_path(&text.replace(['*', '?'], "x"))
            .map_err(|_| Error::invalid(format!("'{}' is not a name with wildcards", text.escape_debug())))?;
        if text.contains('/') {
            return Err(Error::invalid(format!("'{text}' is more than one name; expected one without '/'")));
        }
        Ok(Self(text.to_owned()))
    }

    /// Whether `name` matches.
    pub fn matches(&self, name: &str) -> bool {
        self.0 == "*" || matches_name(self.0.as_bytes(), name.as_bytes())
    }

    /// A prefix of every name that matches.
    pub fn prefix(&self) -> &str {
        self.0.split(['*', '?']).next().unwrap_or_default()
    }
}

/// Matches `*` and `?` against the characters of one name.
fn matches_name(glob: &[u8], name: &[u8]) -> bool {
    let (mut g, mut n) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while n < name.len() {
        match glob.get(g) {
            Some(b'*') => {
                back = Some((g, n));
                g += 1;
            }
            Some(b'?') => {
                g += 1;
                n += character_bytes(name[n]);
            }
            Some(c) if *c == name[n] => {
                g += 1;
                n += 1;
            }
            _ => match back {
                Some((star, taken)) => {
                    let next = taken + character_bytes(name[taken]);
                    back = Some((star, next));
                    g = star + 1;
                    n = next;
                }
                None => return false,
            },
        }
    }
    glob[g..].iter().all(|c| *c == b'*')
}

/// The length of the UTF-8 character that begins with `first`.
fn character_bytes(first: u8) -> usize {
    match first {
        0xF0.. => 4,
        0xE0.. => 3,
        0xC0.. => 2,
        _ => 1,
    }
}

/// A regular expression, compiled.
#[derive(Clone)]
pub struct NameRegex(regex::Regex);

impl NameRegex {
    /// Compiles `text`, in the syntax of the `regex` crate. It may match anywhere in a name unless anchored by `^` and
    /// `$`.
    pub fn new(text: &str) -> Result<Self> {
        let bad = |e: regex::Error| Error::invalid(format!("'{text}' is not a valid regular expression: {e}"));
        // Limits what a hostile one may cost.
        regex::RegexBuilder::new(text).size_limit(1 << 20).build().map(Self).map_err(bad)
    }

    /// Whether `name` matches.
    pub fn matches(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

impl fmt::Debug for NameRegex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/", self.0)
    }
}

impl PartialEq for NameRegex {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Serialize for NameRegex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

impl<'de> Deserialize<'de> for NameRegex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        NameRegex::new(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}
