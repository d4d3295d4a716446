//! Paths: names joined by `/`.
//!
//! Ordered as lists of names. A path comes directly before everything below it, so a subtree is one contiguous range.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::base::{Error, Result};

const NAME_BYTES_MAX: usize = 255;
const PATH_BYTES_MAX: usize = 4096;
/// The maximum depth of the tree, which limits the stack needed to walk it.
pub const PATH_NAMES_MAX: usize = 120;

/// A checked path such as `prices/us/AAPL`; never empty.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Path(Arc<str>);

impl Path {
    /// Checks `text` and makes a path of it: at most 120 names of at most 255 bytes joined by single slashes, 4 KiB in
    /// total, any Unicode except `/`, `*`, `?`, NUL and control characters; not `.` or `..`.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the text and the rule that it breaks.
    pub fn new(text: &str) -> Result<Self> {
        check_path(text)?;
        Ok(Self(text.into()))
    }

    /// Makes a path of text that [`check_path`] has accepted.
    pub(in crate::catalog) fn trusted(text: &str) -> Self {
        Self(text.into())
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
        name_of(&self.0)
    }

    /// Compares it with a path given as text.
    pub(in crate::catalog) fn compare(&self, other: &str) -> Ordering {
        compare(&self.0, other)
    }

    /// Where this is below `to` if it is `from`, or as far below it.
    ///
    /// # Errors
    /// `InvalidArgument` if the path would be too long or too deep.
    pub fn rebased(&self, from: &Path, to: &Path) -> Result<Path> {
        Path::new(&format!("{to}{}", &self.0[from.0.len()..]))
    }

    /// Whether this is `top` or below it.
    pub fn is_within(&self, top: &str) -> bool {
        self.0.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// The last name of a path.
pub(in crate::catalog) fn name_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// Fails if `text` is not a path; see [`Path::new`].
///
/// # Errors
/// As [`Path::new`].
pub fn check_path(text: &str) -> Result<()> {
    let bad = |why: String| Err(Error::invalid(format!("path '{}': {why}", text.escape_debug())));
    if text.is_empty() {
        return bad("it is empty; expected names joined by '/'".into());
    }
    if text.len() > PATH_BYTES_MAX {
        return Err(Error::invalid(format!("the path has {} bytes; expected at most {PATH_BYTES_MAX}", text.len())));
    }
    // Plain names are checked byte by byte; others are checked again.
    let (mut names, mut begin, mut plain) = (1, 0, true);
    for (at, byte) in text.bytes().enumerate() {
        if byte == b'/' {
            plain &= at - begin <= NAME_BYTES_MAX && at > begin && text.as_bytes()[begin] != b'.';
            begin = at + 1;
            names += 1;
        }
        plain &= matches!(byte, b' '..=b'~') & (byte != b'*') & (byte != b'?');
    }
    plain &= text.len() - begin <= NAME_BYTES_MAX && text.len() > begin && text.as_bytes()[begin] != b'.';
    if !plain {
        check_names(text)?;
    }
    if names > PATH_NAMES_MAX {
        return bad(format!("it has {names} names; expected at most {PATH_NAMES_MAX}"));
    }
    Ok(())
}

fn check_names(text: &str) -> Result<()> {
    let bad = |why: String| Err(Error::invalid(format!("path '{}': {why}", text.escape_debug())));
    for name in text.split('/') {
        if name.is_empty() {
            let names: Vec<&str> = text.split('/').filter(|name| !name.is_empty()).collect();
            let meant = if names.is_empty() { String::new() } else { format!(", such as '{}'", names.join("/")) };
            return bad(format!("it has an empty name; expected names joined by single slashes{meant}"));
        }
        if name == "." || name == ".." {
            return bad(format!("'{name}' is not allowed as a name"));
        }
        if name.len() > NAME_BYTES_MAX {
            return bad(format!("a name has {} bytes; expected at most {NAME_BYTES_MAX}", name.len()));
        }
        if let Some(c) = name.chars().find(|c| c.is_control() || matches!(c, '*' | '?')) {
            return bad(format!("a name contains {c:?}, which is not allowed"));
        }
    }
    Ok(())
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
        // Not borrowed: in JSON text, it may contain escapes.
        Path::new(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_paths_are_refused_with_a_reason() {
        let long = "x".repeat(256);
        for bad in [
            "",
            "/",
            "/a",
            "a/",
            "a//b",
            ".",
            "a/..",
            "a*b",
            "what?",
            "a\0b",
            "a\nb",
            &long,
            &"x/".repeat(3000),
            &"x/".repeat(120),
        ] {
            let error = Path::new(bad).unwrap_err();
            assert!(error.message().contains("path"), "{bad}: {error}");
        }
        for good in ["a", "a/b", "ü/日本", "a b", "%2f", "a..b", "...", &"x".repeat(255), &("x/".repeat(119) + "x")]
        {
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
}
