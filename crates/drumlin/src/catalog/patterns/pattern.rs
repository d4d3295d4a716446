//! Patterns over the tree, and conditions on its nodes. They are in one file because each may contain the other: a pattern
//! consists of names, wildcards and conditions; a condition may ask whether the path matches a pattern.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::compare::{Compare, holds_of_field, holds_of_number};
use super::glob::{Glob, NameRegex};
use crate::base::{Error, Result};
use crate::catalog::tree::path::{check_path, name_of};
use crate::catalog::{NodeInfo, Path, Payload};

/// One part of a pattern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Any number of names; at the end of a pattern at least one.
    Deep,
    /// This name.
    Name(String),
    /// A name that matches.
    Glob(Glob),
    /// A node for which this holds.
    If(Condition),
}

/// A pattern over paths and the nodes on them, such as `prices/*/A*` or `config/**`.
///
/// In a name, `*` matches any characters and `?` a single one. A name `**` matches any number of names; at the end, at
/// least one, so `a/**` is what is below `a`. Conditions on nodes are added with [`Pattern::from_parts`].
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    parts: Vec<Part>,
    /// The leading parts that are plain names, joined by `/`; may be empty.
    prefix: String,
}

/// The maximum number of parts, so that there is a bit for each position: more than the names of any path.
const PARTS_MAX: usize = 127;

/// Positions in the parts of a pattern: bit `n` says that the rest of a path must match `parts[n..]`.
pub(in crate::catalog) type PartPositions = u128;

impl Pattern {
    /// Parses `text`.
    ///
    /// # Errors
    /// `InvalidArgument`, saying where the text is no pattern.
    pub fn new(text: &str) -> Result<Self> {
        // With its wildcards replaced, it must be a path.
        let plain = text.replace(['*', '?'], "x");
        check_path(&plain).map_err(|e| {
            let named = e.message().replacen(&plain.escape_debug().to_string(), &text.escape_debug().to_string(), 1);
            Error::invalid(named.replacen("path", "pattern", 1))
        })?;
        let part = |name: &str| match name {
            "**" => Part::Deep,
            name if name.contains(['*', '?']) => Part::Glob(Glob(name.to_owned())),
            name => Part::Name(name.to_owned()),
        };
        Self::from_parts(text.split('/').map(part).collect())
    }

    /// A pattern from its parts.
    ///
    /// # Errors
    /// `InvalidArgument` if it has too many parts, or one of them is no name.
    pub fn from_parts(mut parts: Vec<Part>) -> Result<Self> {
        parts.dedup_by(|a, b| *a == Part::Deep && *b == Part::Deep);
        if parts.is_empty() || parts.len() > PARTS_MAX {
            return Err(Error::invalid(format!("the pattern has {} parts; expected 1 to {PARTS_MAX}", parts.len())));
        }
        for part in &parts {
            match part {
                Part::Name(name) => {
                    check_path(name).map_err(|e| Error::invalid(e.message().replacen("path", "pattern", 1)))?;
                    if name.contains('/') {
                        return Err(Error::invalid(format!(
                            "the part '{name}' of a pattern is more than one name; expected one without '/'"
                        )));
                    }
                }
                Part::Glob(_) | Part::Deep => {}
                Part::If(condition) => condition.check()?,
            }
        }
        let names = parts.iter().map_while(|part| match part {
            Part::Name(name) => Some(name.as_str()),
            _ => None,
        });
        let prefix = names.collect::<Vec<_>>().join("/");
        Ok(Self { parts, prefix })
    }

    /// The pattern that matches only `path`.
    pub fn of_path(path: &Path) -> Self {
        let parts = path.as_str().split('/').map(|name| Part::Name(name.to_owned())).collect();
        Self { parts, prefix: path.as_str().to_owned() }
    }

    /// The pattern that matches everything below `path`.
    pub fn below(path: &Path) -> Self {
        let mut below = Self::of_path(path);
        below.parts.push(Part::Deep);
        below
    }

    /// The path that has `names` in place of the parts that are no plain names, in order: see
    /// [`Pattern::variable_names`].
    pub fn with_names(&self, names: &[String]) -> String {
        let mut names = names.iter().map(String::as_str);
        let part = |part: &Part| match part {
            Part::Name(name) => name.clone(),
            _ => names.next().unwrap_or_default().to_owned(),
        };
        self.parts.iter().map(part).filter(|name| !name.is_empty()).collect::<Vec<_>>().join("/")
    }

    /// The same pattern, but matching nodes must also meet `condition`.
    ///
    /// # Errors
    /// `InvalidArgument` if the condition compares what cannot be compared, or is nested too deeply.
    pub fn and(mut self, condition: Condition) -> Result<Self> {
        condition.check()?;
        let also = |part: Condition| Part::If(Condition::All(vec![part, condition.clone()]));
        match self.parts.pop() {
            Some(Part::Name(name)) => self.parts.push(also(Condition::Name(Glob(name)))),
            Some(Part::Glob(glob)) => self.parts.push(also(Condition::Name(glob))),
            Some(Part::If(first)) => self.parts.push(also(first)),
            Some(Part::Deep) | None => self.parts.extend([Part::Deep, Part::If(condition)]),
        }
        Self::from_parts(self.parts)
    }

    /// The path that this pattern consists of, if it is a plain path.
    pub fn literal(&self) -> Option<&str> {
        self.parts.iter().all(|part| matches!(part, Part::Name(_))).then_some(&self.prefix)
    }

    /// Whether it is `**`, which matches every path.
    pub fn is_all(&self) -> bool {
        self.parts == [Part::Deep]
    }

    /// The names before the first that may vary: everything that matches is at or below this path. Empty if there are
    /// none.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(in crate::catalog) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Whether it looks only at paths.
    pub fn is_of_path(&self) -> bool {
        self.parts.iter().all(|part| !matches!(part, Part::If(condition) if !condition.is_of_path()))
    }

    /// Whether all parts except the last look only at paths, so that a match depends on no other node.
    pub fn is_of_node(&self) -> bool {
        let above = &self.parts[..self.parts.len() - 1];
        above.iter().all(|part| !matches!(part, Part::If(condition) if !condition.is_of_path()))
    }

    /// Whether `path` matches, judged by the path alone: conditions that look at nodes are assumed to hold.
    pub fn matches_path(&self, path: &str) -> bool {
        self.run(path, |_, _| true)
    }

    /// Whether the node at `path` matches; conditions that look at nodes above it are assumed to hold.
    pub(in crate::catalog) fn matches(&self, path: &str, node: &NodeInfo) -> bool {
        let whole = path.len();
        self.run(path, |at, condition| at.len() != whole || condition.holds(at, Some(node)))
    }

    /// Whether what matches may depend on the node at `path`.
    pub(in crate::catalog) fn may_depend_on(&self, path: &str) -> bool {
        self.matches_path(path)
            || !self.is_of_node()
                && (1..self.parts.len()).any(|n| {
                    let above = Pattern { parts: self.parts[..n].to_vec(), prefix: String::new() };
                    above.matches_path(path)
                })
    }

    /// What stands in `path`, which matches, for each part that is no plain name: a name, and for `**` all its names, joined
    /// by `/`.
    ///
    /// # Errors
    /// `InvalidArgument` if there is more than one `**`, since then a path may be divided in several ways.
    pub fn variable_names(&self, path: &str) -> Result<Vec<String>> {
        let names: Vec<&str> = path.split('/').collect();
        let deep: Vec<usize> = (0..self.parts.len()).filter(|at| self.parts[*at] == Part::Deep).collect();
        if deep.len() > 1 {
            return Err(Error::invalid(format!(
                "the pattern '{self}' has more than one '**', so its names cannot be told apart; use one at most"
            )));
        }
        let behind = deep.first().map_or(0, |deep| self.parts.len() - deep - 1);
        let mut found = Vec::new();
        for (at, part) in self.parts.iter().enumerate().filter(|(_, part)| !matches!(part, Part::Name(_))) {
            let from_end = |at: usize| (names.len() + at).checked_sub(self.parts.len());
            let place = match deep.first() {
                Some(deep) if at == *deep => at..names.len().saturating_sub(behind),
                Some(deep) if at > *deep => from_end(at).map_or(0..0, |at| at..at + 1),
                _ => at..at + 1,
            };
            let names = names.get(place).ok_or_else(|| Error::invalid(format!("'{path}' does not match '{self}'")))?;
            debug_assert!(names.len() == 1 || *part == Part::Deep);
            found.push(names.join("/"));
        }
        Ok(found)
    }

    /// The number of parts that are no plain names.
    pub fn variable_parts(&self) -> usize {
        self.parts.iter().filter(|part| !matches!(part, Part::Name(_))).count()
    }

    fn run(&self, path: &str, holds: impl Fn(&str, &Condition) -> bool) -> bool {
        path.starts_with(&self.prefix) && self.accepts(self.walk(path, holds))
    }

    /// The positions after `path`.
    fn walk(&self, path: &str, holds: impl Fn(&str, &Condition) -> bool) -> PartPositions {
        let mut positions = self.start();
        let mut end = 0;
        for name in path.split('/') {
            end += name.len();
            positions = self.step(positions, name, |condition| {
                if condition.is_of_path() {
                    condition.holds(&path[..end], Some(&NodeInfo::default()))
                } else {
                    holds(&path[..end], condition)
                }
            });
            if positions == 0 {
                break;
            }
            end += 1;
        }
        positions
    }

    /// The positions before the first name.
    pub(in crate::catalog) fn start(&self) -> PartPositions {
        self.close(1)
    }

    /// The positions after a name; `holds` says whether a condition holds for its node.
    pub(in crate::catalog) fn step(
        &self,
        positions: PartPositions,
        name: &str,
        holds: impl Fn(&Condition) -> bool,
    ) -> PartPositions {
        let mut next = 0;
        let mut left = positions;
        while left != 0 {
            let at = left.trailing_zeros() as usize;
            left &= left - 1;
            let Some(part) = self.parts.get(at) else { continue };
            let goes_on = match part {
                // At the end, it matches one name or more; elsewhere, none or more.
                Part::Deep => {
                    next |= 1 << at;
                    at + 1 == self.parts.len()
                }
                Part::Name(wanted) => wanted == name,
                Part::Glob(glob) => glob.matches(name),
                Part::If(condition) => holds(condition),
            };
            if goes_on {
                next |= 1 << (at + 1);
            }
        }
        self.close(next)
    }

    /// Skips every `**` that may match no name.
    fn close(&self, mut positions: PartPositions) -> PartPositions {
        for (at, part) in self.parts.iter().enumerate() {
            if *part == Part::Deep && at + 1 < self.parts.len() && positions >> at & 1 == 1 {
                positions |= 1 << (at + 1);
            }
        }
        positions
    }

    /// Whether the path up to here matches.
    pub(in crate::catalog) fn accepts(&self, positions: PartPositions) -> bool {
        positions >> self.parts.len() & 1 == 1
    }

    /// Whether something below may match.
    pub(in crate::catalog) fn goes_on(&self, positions: PartPositions) -> bool {
        positions & !(1 << self.parts.len()) != 0
    }
}

/// Matches paths as [`Pattern::matches_path`] does, but faster if many paths with the same parent follow each other.
pub(in crate::catalog) struct Matcher<'a> {
    pattern: &'a Pattern,
    parent: String,
    /// The positions in the pattern after the parent.
    positions: PartPositions,
}

impl<'a> Matcher<'a> {
    pub fn new(pattern: &'a Pattern) -> Self {
        Self { pattern, parent: String::new(), positions: pattern.start() }
    }

    pub fn matches(&mut self, path: &str) -> bool {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        if parent != self.parent {
            parent.clone_into(&mut self.parent);
            self.positions =
                if parent.is_empty() { self.pattern.start() } else { self.pattern.walk(parent, |_, _| true) };
        }
        if self.positions == 0 {
            return false;
        }
        let of_path =
            |condition: &Condition| !condition.is_of_path() || condition.holds(path, Some(&NodeInfo::default()));
        let positions = self.pattern.step(self.positions, name, of_path);
        self.pattern.accepts(positions)
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.parts.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Pattern::from_parts(Vec::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.parts.iter().enumerate() {
            if at > 0 {
                f.write_str("/")?;
            }
            match part {
                Part::Deep => f.write_str("**")?,
                Part::Name(name) => f.write_str(name)?,
                Part::Glob(glob) => f.write_str(&glob.0)?,
                Part::If(_) => f.write_str("{condition}")?,
            }
        }
        Ok(())
    }
}

/// Something that holds for a node or does not.
///
/// For a path without a node, [`Condition::Exists`]`(false)` holds, and what is built from it by `Not`, `All` and `Any`;
/// nothing else does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// There is a node, or there is none.
    Exists(bool),
    /// Its name matches.
    Name(Glob),
    /// Its name matches.
    NameRegex(NameRegex),
    /// Its path matches.
    Path(Pattern),
    /// It carries a payload, or does not.
    HasPayload(bool),
    /// It holds a table, or does not.
    HasTable(bool),
    /// A field of its payload, or the whole payload if there are no names. Bytes can only be compared as a whole.
    Payload {
        /// The names that lead to it: a name for each object on the way, a number for each list.
        field: Vec<String>,
        /// How it is compared.
        compare: Compare,
        /// What it is compared with.
        value: Payload,
    },
    /// How often its payload has been set.
    PayloadVersion(Compare, u64),
    /// How often its list of children has changed.
    ChildrenVersion(Compare, u64),
    /// How many children it has.
    Children(Compare, u64),
    /// The other does not hold.
    Not(Box<Condition>),
    /// All hold.
    All(Vec<Condition>),
    /// At least one holds.
    Any(Vec<Condition>),
}

/// How deeply conditions may be nested.
const DEPTH_MAX: usize = 64;

impl Condition {
    /// Its payload is `value`.
    pub fn payload(value: Payload) -> Self {
        Condition::Payload { field: Vec::new(), compare: Compare::Equal, value }
    }

    /// A field of its payload compares with `value`. `field` is names joined by dots.
    pub fn field(field: &str, compare: Compare, value: Payload) -> Self {
        Condition::Payload { field: field.split('.').map(str::to_owned).collect(), compare, value }
    }

    /// Whether it holds for the node at `path`, if there is one.
    pub fn holds(&self, path: &str, node: Option<&NodeInfo>) -> bool {
        let on = |holds: &dyn Fn(&NodeInfo) -> bool| node.is_some_and(holds);
        match self {
            Condition::Exists(wanted) => node.is_some() == *wanted,
            Condition::Not(condition) => !condition.holds(path, node),
            Condition::All(conditions) => conditions.iter().all(|condition| condition.holds(path, node)),
            Condition::Any(conditions) => conditions.iter().any(|condition| condition.holds(path, node)),
            Condition::Name(glob) => on(&|_| glob.matches(name_of(path))),
            Condition::NameRegex(regex) => on(&|_| regex.matches(name_of(path))),
            Condition::Path(pattern) => on(&|_| pattern.matches_path(path)),
            Condition::HasPayload(wanted) => on(&|node| node.payload.is_some() == *wanted),
            Condition::HasTable(wanted) => on(&|node| node.table == *wanted),
            Condition::Payload { field, compare, value } => {
                on(&|node| node.payload.as_ref().is_some_and(|payload| holds_of_field(payload, field, *compare, value)))
            }
            Condition::PayloadVersion(compare, n) => on(&|node| holds_of_number(*compare, node.payload_version, *n)),
            Condition::ChildrenVersion(compare, n) => on(&|node| holds_of_number(*compare, node.children_version, *n)),
            Condition::Children(compare, n) => on(&|node| holds_of_number(*compare, node.children, *n)),
        }
    }

    /// Whether it looks only at the path.
    pub(in crate::catalog) fn is_of_path(&self) -> bool {
        match self {
            Condition::Name(_) | Condition::NameRegex(_) => true,
            Condition::Path(pattern) => pattern.is_of_path(),
            Condition::Not(condition) => condition.is_of_path(),
            Condition::All(conditions) | Condition::Any(conditions) => conditions.iter().all(Condition::is_of_path),
            _ => false,
        }
    }

    /// A prefix of every name for which it holds.
    pub(in crate::catalog) fn name_prefix(&self) -> &str {
        match self {
            Condition::Name(glob) => glob.prefix(),
            Condition::All(conditions) => {
                conditions.iter().map(Condition::name_prefix).max_by_key(|prefix| prefix.len()).unwrap_or_default()
            }
            _ => "",
        }
    }

    /// Fails if it compares what cannot be compared, or is nested too deeply.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub fn check(&self) -> Result<()> {
        self.check_at(0)
    }

    fn check_at(&self, depth: usize) -> Result<()> {
        if depth > DEPTH_MAX {
            return Err(Error::invalid(format!("a condition is nested more than {DEPTH_MAX} levels deep")));
        }
        match self {
            Condition::Not(condition) => condition.check_at(depth + 1),
            Condition::All(conditions) | Condition::Any(conditions) => {
                conditions.iter().try_for_each(|condition| condition.check_at(depth + 1))
            }
            Condition::Path(pattern) if !pattern.is_of_path() => Err(Error::invalid(
                "a condition on the path has a pattern with conditions on nodes; expected conditions on names",
            )),
            Condition::PayloadVersion(Compare::Contains, _)
            | Condition::ChildrenVersion(Compare::Contains, _)
            | Condition::Children(Compare::Contains, _) => {
                Err(Error::invalid("a condition asks whether a number contains another; expected a comparison"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("x*??bc", "x日bc", false),
            ("x*?bc", "x日bc", true),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap().matches_path(path), matches, "{pattern} on {path}");
        }
        assert_eq!(Pattern::new("a/b/*/c").unwrap().prefix(), "a/b");
        assert_eq!(Pattern::new("a/b/*/c").unwrap().to_string(), "a/b/*/c");
        assert!(Pattern::new("a//*").unwrap_err().message().contains("pattern"));
    }
}
