//! Paths: names joined by `/`; and patterns over them.
//!
//! Order: as lists of names. A path comes right before everything below it, so a subtree is one contiguous range.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::base::{Error, Result};

const NAME_BYTES_MAX: usize = 255;
const PATH_BYTES_MAX: usize = 4096;

/// A checked path such as `prices/us/AAPL`; never empty.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Path(Arc<str>);

impl Path {
    /// Checks and takes `text`: names of at most 255 bytes joined by single slashes, 4 KiB in all, any Unicode but
    /// `/`, `*`, `?`, NUL and control characters; not `.` or `..`.
    pub fn new(text: &str) -> Result<Self> {
        let bad = |why: String| Err(Error::invalid(format!("path '{}': {why}", text.escape_debug())));
        if text.is_empty() {
            return bad("it is empty; expected names joined by '/'".into());
        }
        if text.len() > PATH_BYTES_MAX {
            return Err(Error::invalid(format!("a path of {} bytes; at most {PATH_BYTES_MAX} are taken", text.len())));
        }
        for name in text.split('/') {
            if name.is_empty() {
                return bad("it has an empty name; expected names joined by single slashes".into());
            }
            if name == "." || name == ".." {
                return bad(format!("'{name}' is no name"));
            }
            if name.len() > NAME_BYTES_MAX {
                return bad(format!("a name of {} bytes; at most {NAME_BYTES_MAX} are taken", name.len()));
            }
            if let Some(c) = name.chars().find(|c| c.is_control() || matches!(c, '*' | '?')) {
                return bad(format!("a name holds {c:?}"));
            }
        }
        Ok(Self(text.into()))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path above; `None` at the top.
    pub fn parent(&self) -> Option<Path> {
        self.0.rsplit_once('/').map(|(parent, _)| Path(parent.into()))
    }

    /// The paths above, from the nearest to the topmost.
    pub fn ancestors(&self) -> impl Iterator<Item = Path> {
        std::iter::successors(self.parent(), Path::parent)
    }

    /// The last name.
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, name)| name)
    }

    /// Whether this is `top` or below it.
    pub fn is_within(&self, top: &str) -> bool {
        self.0.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    match a.iter().zip(b).position(|(x, y)| x != y) {
        None => a.len().cmp(&b.len()),
        // The slash sorts before every byte of a name.
        Some(at) => (a[at] != b'/').cmp(&(b[at] != b'/')).then(a[at].cmp(&b[at])),
    }
}

impl PartialOrd for Path {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Path {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}

impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Path {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Path::new(<&str>::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// A pattern over paths, such as `prices/*/A*` or `config/**`.
///
/// In a name, `*` stands for any characters and `?` for one. A name `**` stands for any number of names; at the end
/// for at least one, so `a/**` is what lies below `a`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The names before the first one with a wildcard, joined by `/`; may be empty.
    prefix: String,
    /// The names behind it; empty if the pattern is a plain path.
    rest: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// `**`
    Any,
    /// A name, maybe with wildcards.
    Name(String),
}

impl Pattern {
    /// Parses `text`.
    pub fn new(text: &str) -> Result<Self> {
        // With its wildcards replaced it must be a path.
        let plain: String = text.chars().map(|c| if matches!(c, '*' | '?') { 'x' } else { c }).collect();
        Path::new(&plain).map_err(|_| match Path::new(text) {
            Err(e) => Error::invalid(e.message().replacen("path", "pattern", 1)),
            Ok(_) => Error::invalid(format!("pattern '{}' is not one", text.escape_debug())),
        })?;
        let names: Vec<&str> = text.split('/').collect();
        let wild = names.iter().position(|name| name.contains(['*', '?'])).unwrap_or(names.len());
        let part = |name: &&str| if *name == "**" { Part::Any } else { Part::Name((*name).to_owned()) };
        let mut rest: Vec<Part> = names[wild..].iter().map(part).collect();
        rest.dedup_by(|a, b| *a == Part::Any && *b == Part::Any);
        Ok(Self { prefix: names[..wild].join("/"), rest })
    }

    /// The path that this pattern is, if it has no wildcard.
    pub fn literal(&self) -> Option<&str> {
        self.rest.is_empty().then_some(&self.prefix)
    }

    /// The names before the first wildcard: all that matches is at or below this path. Empty if there is none.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether `path` matches.
    pub fn matches(&self, path: &str) -> bool {
        if self.rest.is_empty() {
            return path == self.prefix;
        }
        let below = if self.prefix.is_empty() {
            path
        } else {
            match path.strip_prefix(self.prefix.as_str()).and_then(|rest| rest.strip_prefix('/')) {
                Some(below) => below,
                None => return false,
            }
        };
        let names: Vec<&str> = below.split('/').collect();
        matches_parts(&self.rest, &names)
    }
}

/// Greedy matching with one point of return, so that it is O(parts x names).
fn matches_parts(parts: &[Part], names: &[&str]) -> bool {
    let (mut part, mut name) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while name < names.len() {
        match parts.get(part) {
            Some(Part::Any) => {
                // At the end it takes one name or more; elsewhere none or more.
                if part + 1 == parts.len() {
                    return true;
                }
                back = Some((part, name));
                part += 1;
            }
            Some(Part::Name(glob)) if matches_name(glob.as_bytes(), names[name].as_bytes()) => {
                part += 1;
                name += 1;
            }
            _ => match back {
                Some((any, taken)) => {
                    back = Some((any, taken + 1));
                    part = any + 1;
                    name = taken + 1;
                }
                None => return false,
            },
        }
    }
    part == parts.len()
}

/// `*` and `?` over the characters of one name.
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
                    back = Some((star, taken + 1));
                    g = star + 1;
                    n = taken + 1;
                }
                None => return false,
            },
        }
    }
    glob[g..].iter().all(|c| *c == b'*')
}

/// Bytes of the UTF-8 character that begins with `first`.
fn character_bytes(first: u8) -> usize {
    match first {
        0xF0.. => 4,
        0xE0.. => 3,
        0xC0.. => 2,
        _ => 1,
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.prefix)?;
        let mut first = self.prefix.is_empty();
        for part in &self.rest {
            if !std::mem::take(&mut first) {
                f.write_str("/")?;
            }
            f.write_str(match part {
                Part::Any => "**",
                Part::Name(name) => name,
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_paths_are_refused_with_a_reason() {
        let long = "x".repeat(256);
        for bad in ["", "/", "/a", "a/", "a//b", ".", "a/..", "a*b", "what?", "a\0b", "a\nb", &long, &"x/".repeat(3000)]
        {
            let error = Path::new(bad).unwrap_err();
            assert!(error.message().contains("path"), "{bad}: {error}");
        }
        for good in ["a", "a/b", "ü/日本", "a b", "%2f", "a..b", "...", &"x".repeat(255)] {
            assert_eq!(Path::new(good).unwrap().as_str(), good);
        }
    }

    #[test]
    fn a_subtree_is_contiguous() {
        let mut paths: Vec<Path> = ["a b", "a", "a/z", "a-b", "a/b/c", "b", "a/b", "a.b", "a/b c", "ab"]
            .into_iter()
            .map(|text| Path::new(text).unwrap())
            .collect();
        paths.sort();
        let texts: Vec<&str> = paths.iter().map(Path::as_str).collect();
        assert_eq!(texts, ["a", "a/b", "a/b/c", "a/b c", "a/z", "a b", "a-b", "a.b", "ab", "b"]);
    }

    #[test]
    fn patterns_match_names_and_levels() {
        for (pattern, path, matches) in [
            ("a/b", "a/b", true),
            ("a/b", "a/b/c", false),
            ("a/*", "a/b", true),
            ("a/*", "a", false),
            ("a/*", "a/b/c", false),
            ("a/**", "a", false),
            ("a/**", "a/b/c", true),
            ("**", "a", true),
            ("**/c", "c", true),
            ("**/c", "a/b/c", true),
            ("a/**/c", "a/c", true),
            ("a/**/c", "a/x/y/c", true),
            ("a/**/c", "a/x/c/d", false),
            ("a/**/c/**/e", "a/c/x/c/e", true),
            ("*/A*", "us/AAPL", true),
            ("*/A*", "us/MSFT", false),
            ("x?z", "xyz", true),
            ("x?z", "xüz", true),
            ("x?z", "xz", false),
            ("*b*c", "aabbcc", true),
            ("*b*d", "aabbcc", false),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap().matches(path), matches, "{pattern} on {path}");
        }
        assert_eq!(Pattern::new("a/b/*/c").unwrap().prefix(), "a/b");
        assert_eq!(Pattern::new("a/b/*/c").unwrap().to_string(), "a/b/*/c");
        assert!(Pattern::new("a//*").unwrap_err().message().contains("pattern"));
    }
}
