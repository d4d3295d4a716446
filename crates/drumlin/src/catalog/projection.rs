//! Projections: maps kept in step with part of the tree, as a function of it: whatever the order of changes, a
//! projection is the same as one newly built from the tree.
//!
//! A projection does not listen to effects. At each commit it takes in the difference between the tree that it was of
//! and the tree that is now, so no list of changes in a wrong order can spoil it, and a transaction that looks at one
//! sees its own writes by the same step. Projections are built when a store is opened, and not stored. Where keys
//! collide in one that is no bag, it shows the first node in path order, so that this does not depend on the order of
//! changes either.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::patterns::field::{Field, KeyWriter, read_key};
use super::patterns::pattern::Matcher;
use super::payload::{Content, PayloadWriter};
use super::tree::map::Map;
use super::tree::small::{Probe, Small};
use super::{Node, NodeTree, Path, Pattern, Payload};
use crate::base::{Error, Pool, Result};

/// A projection by fields: each node that matches and carries a payload gives one entry, unless it lacks a field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Projection {
    /// Which nodes. Only the last part may have conditions.
    pub pattern: Pattern,
    /// The fields by which an entry is found.
    pub key: Vec<Field>,
    /// The value of an entry: a field, or a list of several.
    pub value: Vec<Field>,
    /// Whether a key has an entry for each node that gives it. Otherwise it has only one: that of the first node in
    /// path order.
    pub bag: bool,
}

/// Returns the entries of a node, keys and values, from its path and payload. Must be deterministic. If it panics, the
/// node has no entries.
pub type ProjectionFn = Arc<dyn Fn(&str, &Payload) -> Vec<(Vec<Payload>, Payload)> + Send + Sync>;

/// How a projection finds its entries.
#[derive(Clone)]
pub enum Rule {
    /// By fields; part of the store.
    Fields(Projection),
    /// By a function, as long as the process has it registered.
    Function {
        /// Which nodes. Only the last part may have conditions.
        pattern: Pattern,
        /// As in [`Projection::bag`].
        bag: bool,
        /// Returns the entries.
        function: ProjectionFn,
    },
}

impl Rule {
    /// Fails if it cannot be kept in step with the tree.
    pub fn check(&self) -> Result<()> {
        if !self.pattern().is_of_node() {
            return Err(Error::invalid(format!(
                "projection of '{}': only the last part of the pattern may have a condition on a node; use conditions \
                 on names before it",
                self.pattern()
            )));
        }
        match self {
            Rule::Fields(Projection { key, value, .. }) if key.is_empty() || value.is_empty() => {
                Err(Error::invalid("a projection needs at least one field for its key and one for its value"))
            }
            _ => Ok(()),
        }
    }

    /// Which nodes.
    pub fn pattern(&self) -> &Pattern {
        match self {
            Rule::Fields(projection) => &projection.pattern,
            Rule::Function { pattern, .. } => pattern,
        }
    }

    /// As in [`Projection::bag`].
    pub fn bag(&self) -> bool {
        match self {
            Rule::Fields(projection) => projection.bag,
            Rule::Function { bag, .. } => *bag,
        }
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Fields(projection) => projection.fmt(f),
            Rule::Function { pattern, bag, .. } => {
                f.debug_struct("Function").field("pattern", pattern).field("bag", bag).finish_non_exhaustive()
            }
        }
    }
}

/// An entry's place: by key, then by the node that gives it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EntryKey {
    key: Small,
    path: Path,
}

/// One entry of a projection.
#[derive(Clone, Debug, PartialEq)]
pub struct ProjectionEntry {
    /// The key's fields.
    pub key: Vec<Payload>,
    /// The node that gives it.
    pub path: String,
    /// The value.
    pub value: Payload,
}

/// A projection and its entries.
#[derive(Clone, Debug)]
pub struct MaterializedView {
    rule: Rule,
    /// Whether its entries have been built from a tree.
    built: bool,
    entries: Map<EntryKey, Payload>,
}

impl MaterializedView {
    /// All entries of `tree`. O(nodes that may match x log).
    pub(super) fn build(rule: Rule, tree: &NodeTree) -> Self {
        let mut entries = Vec::new();
        let mut room = KeyWriter::default();
        let mut walker = tree.walk(rule.pattern());
        while let Some((path, node)) = walker.advance() {
            if let Some(payload) = &node.payload {
                let mut shared = None;
                entries_of(&rule, path, payload, &mut room, |key, value| {
                    let Some(value) = value() else { return };
                    let path = shared.get_or_insert_with(|| Path::trusted(path)).clone();
                    entries.push((EntryKey { key: Small::new(key), path }, value));
                });
            }
        }
        // Of entries of one node with the same key, the last stays, as if they were inserted.
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        entries.reverse();
        entries.dedup_by(|a, b| a.0 == b.0);
        entries.reverse();
        let entries = Map::from_sorted(entries.into_iter());
        Self { rule, built: true, entries }
    }

    /// How it finds its entries.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Applies the differences between two trees.
    fn follow(&mut self, from: &NodeTree, to: &NodeTree) {
        let rule = self.rule.clone();
        let pattern = rule.pattern();
        let mut matcher = Matcher::new(pattern);
        let of_path = pattern.is_of_path();
        let mut room = KeyWriter::default();
        let entries = &mut self.entries;
        from.diff(to, |path, before, after| {
            if !matcher.matches(path) {
                return;
            }
            let payload = |node: Option<&'_ Node>| {
                let node = node.filter(|node| of_path || pattern.matches(path, &node.info()))?;
                node.payload.clone()
            };
            let (before, after) = (payload(before), payload(after));
            if before == after {
                return;
            }
            if let Some(payload) = before {
                entries_of(&rule, path, &payload, &mut room, |key, _| {
                    let probe = Probe::new(key);
                    entries.remove(|known| known.key.compare(&probe).then_with(|| known.path.compare(path)));
                });
            }
            if let Some(payload) = after {
                let mut shared = None;
                entries_of(&rule, path, &payload, &mut room, |key, value| {
                    let Some(value) = value() else { return };
                    let path = shared.get_or_insert_with(|| Path::trusted(path)).clone();
                    entries.insert(EntryKey { key: Small::new(key), path }, value);
                });
            }
        });
    }

    /// The values of `key`, in the order of their nodes' paths; at most one if the projection is not a bag. O(log
    /// entries).
    pub fn get(&self, key: &[Payload]) -> Result<Vec<Payload>> {
        let key = Small::new(write_key(key)?.as_bytes());
        let found = self.entries.iter_from(|place| place.key < key).take_while(|(place, _)| place.key == key);
        let most = if self.rule.bag() { usize::MAX } else { 1 };
        Ok(found.take(most).map(|(_, value)| value.clone()).collect())
    }

    /// The entries, by key and path.
    pub fn entries(&self) -> impl Iterator<Item = ProjectionEntry> {
        self.span(self.entries.iter(), |_| true)
    }

    /// The number of entries. O(1) for a bag, else O(entries).
    pub fn count(&self) -> usize {
        if self.rule.bag() { self.entries.len() } else { self.entries().count() }
    }

    /// The entries whose keys are between the bounds, by key and path. A key that is a prefix of others comes before
    /// them.
    pub fn range(
        &self,
        low: Bound<&[Payload]>,
        high: Bound<&[Payload]>,
    ) -> Result<impl Iterator<Item = ProjectionEntry>> {
        let bound = |bound: Bound<&[Payload]>| -> Result<Bound<Small>> {
            Ok(match bound {
                Bound::Included(key) => Bound::Included(Small::new(write_key(key)?.as_bytes())),
                Bound::Excluded(key) => Bound::Excluded(Small::new(write_key(key)?.as_bytes())),
                Bound::Unbounded => Bound::Unbounded,
            })
        };
        let (low, high) = (bound(low)?, bound(high)?);
        let from = self.entries.iter_from(move |place| match &low {
            Bound::Included(low) => place.key < *low,
            Bound::Excluded(low) => place.key <= *low,
            Bound::Unbounded => false,
        });
        Ok(self.span(from, move |key| match &high {
            Bound::Included(high) => key <= high,
            Bound::Excluded(high) => key < high,
            Bound::Unbounded => true,
        }))
    }

    /// The entries whose keys begin with the fields of `first` and then, if there is one, with a text that begins with
    /// `text`.
    pub fn prefix(&self, first: &[Payload], text: Option<&str>) -> Result<impl Iterator<Item = ProjectionEntry>> {
        let mut prefix = write_key(first)?;
        if let Some(text) = text {
            prefix.push_text_prefix(text);
        }
        let low = Small::new(prefix.as_bytes());
        let from = self.entries.iter_from(move |place| place.key < low);
        // A zero that is part of a text is followed by 0xFF: then the field does not end where `first` does.
        let ends = text.is_none();
        let goes_on = move |rest: &[u8]| !(ends && rest.first() == Some(&0xFF));
        Ok(self.span(from, move |key| key.as_bytes().strip_prefix(prefix.as_bytes()).is_some_and(&goes_on)))
    }

    fn span<'a>(
        &'a self,
        from: impl Iterator<Item = (&'a EntryKey, &'a Payload)>,
        within: impl Fn(&Small) -> bool,
    ) -> impl Iterator<Item = ProjectionEntry> {
        let mut last: Option<&Small> = None;
        let bag = self.rule.bag();
        let found = from.take_while(move |(place, _)| within(&place.key));
        let shown = found.filter(move |(place, _)| bag || last.replace(&place.key) != Some(&place.key));
        shown.map(|(EntryKey { key, path }, value)| ProjectionEntry {
            key: read_key(key),
            path: path.to_string(),
            value: value.clone(),
        })
    }

    /// Whether it has the entries of `other`.
    pub fn same_entries(&self, other: &MaterializedView) -> bool {
        self.entries == other.entries
    }
}

fn write_key(key: &[Payload]) -> Result<KeyWriter> {
    let mut writer = KeyWriter::default();
    key.iter().try_for_each(|field| writer.push(field.content()))?;
    Ok(writer)
}

/// Calls `found` with the key of each entry that a node may give, and a function that makes its value. `key` is a
/// buffer.
fn entries_of(
    rule: &Rule,
    path: &str,
    payload: &Payload,
    key: &mut KeyWriter,
    mut found: impl FnMut(&[u8], &dyn Fn() -> Option<Payload>),
) {
    key.clear();
    match rule {
        Rule::Fields(projection) => {
            for field in &projection.key {
                let Some(content) = field.of(path, payload) else { return };
                if key.push(content).is_err() {
                    return;
                }
            }
            found(key.as_bytes(), &|| value_of(&projection.value, path, payload));
        }
        Rule::Function { function, .. } => {
            // If the function panics, there are no entries: a commit must not depend on it.
            let entries = catch_unwind(AssertUnwindSafe(|| function(path, payload))).unwrap_or_default();
            for (fields, value) in entries {
                key.clear();
                if fields.iter().all(|field| key.push(field.content()).is_ok()) {
                    found(key.as_bytes(), &|| Some(value.clone()));
                }
            }
        }
    }
}

fn value_of(fields: &[Field], path: &str, payload: &Payload) -> Option<Payload> {
    if let [Field::Payload(names)] = fields
        && names.is_empty()
    {
        return Some(payload.clone());
    }
    if let [field] = fields {
        return match field.of(path, payload)? {
            Content::Json(value) => value.to_payload().ok(),
            Content::Bytes(bytes) => Payload::bytes(bytes).ok(),
        };
    }
    let mut writer = PayloadWriter::default();
    writer.list(fields.len()).ok()?;
    for field in fields {
        match field.of(path, payload)? {
            Content::Json(value) => value.write(&mut writer).ok()?,
            // A list is JSON, which cannot hold bytes.
            Content::Bytes(_) => return None,
        }
    }
    writer.finish().ok()
}

/// All projections, and the tree that they are built from.
#[derive(Clone, Debug, Default)]
pub struct Views {
    by_name: Arc<BTreeMap<String, Arc<MaterializedView>>>,
    tree: NodeTree,
}

impl Views {
    /// A projection by its name.
    pub fn get(&self, name: &str) -> Option<&Arc<MaterializedView>> {
        self.by_name.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Arc<MaterializedView>)> {
        self.by_name.iter()
    }

    /// Adds one, or replaces the one with its name. It has no entries until it is brought up to date with a tree.
    pub(super) fn put(&mut self, name: &str, rule: Rule) {
        let view = MaterializedView { rule, built: false, entries: Map::default() };
        Arc::make_mut(&mut self.by_name).insert(name.to_owned(), Arc::new(view));
    }

    /// Removes one.
    pub(super) fn remove(&mut self, name: &str) {
        Arc::make_mut(&mut self.by_name).remove(name);
    }

    /// Whether there are any, and none by a function. A function must not be called on the pool: it may wait for a lock
    /// whose holder waits for the pool.
    pub fn are_by_fields(&self) -> bool {
        !self.by_name.is_empty() && self.by_name.values().all(|view| matches!(view.rule, Rule::Fields(_)))
    }

    /// Updates all of them to `tree`, each on a thread of `pool` if one is given. Costs as much as `tree` differs from the
    /// tree that they are built from.
    pub(super) fn catch_up(&mut self, tree: &NodeTree, pool: Option<&Pool>) {
        if self.by_name.is_empty() {
            self.tree = NodeTree::default();
            return;
        }
        let moved = !self.tree.same(tree);
        if !moved && self.by_name.values().all(|view| view.built) {
            return;
        }
        let bring = |view: &mut MaterializedView| match view.built {
            true => view.follow(&self.tree, tree),
            false => *view = MaterializedView::build(view.rule.clone(), tree),
        };
        let views: Vec<&mut MaterializedView> =
            Arc::make_mut(&mut self.by_name).values_mut().map(Arc::make_mut).collect();
        match pool {
            Some(pool) => pool.each(views, bring),
            None => views.into_iter().for_each(bring),
        }
        self.tree = tree.clone();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::base::Seq;

    fn put(tree: &mut NodeTree, path: &str, payload: serde_json::Value) {
        tree.edit(path, Seq(1), |node| node.set_payload(Some(Payload::json(&payload).unwrap())));
    }

    fn rule(key: &[&str], value: &[&str], bag: bool) -> Rule {
        let fields = |texts: &[&str]| texts.iter().map(|text| Field::new(text).unwrap()).collect();
        Rule::Fields(Projection { pattern: Pattern::new("u/*").unwrap(), key: fields(key), value: fields(value), bag })
    }

    #[test]
    fn entries_follow_the_tree_and_collisions_do_not_lose_any() {
        let mut tree = NodeTree::default();
        let mut views = Views::default();
        views.put("set", rule(&["payload.team"], &["name"], false));
        views.put("bag", rule(&["payload.team", "payload.age"], &["name", "payload.age"], true));
        for (name, team, age) in [("a", "x", 30), ("b", "x", 20), ("c", "y", 10)] {
            put(&mut tree, &format!("u/{name}"), json!({"team": team, "age": age}));
        }
        put(&mut tree, "u/none", json!({"age": 1}));
        put(&mut tree, "other/d", json!({"team": "x", "age": 1}));
        views.catch_up(&tree, None);
        let text = |text: &str| Payload::json(&json!(text)).unwrap();
        let (set, bag) = (views.get("set").unwrap().clone(), views.get("bag").unwrap().clone());
        assert_eq!(set.get(&[text("x")]).unwrap(), [text("a")]);
        assert_eq!((set.count(), bag.count()), (2, 3));
        let values = |found: &mut dyn Iterator<Item = ProjectionEntry>| -> Vec<serde_json::Value> {
            found.map(|entry| entry.value.to_json().unwrap()).collect()
        };
        assert_eq!(values(&mut bag.prefix(&[text("x")], None).unwrap()), [json!(["b", 20]), json!(["a", 30])]);
        assert_eq!(values(&mut set.prefix(&[], Some("y")).unwrap()), [json!("c")]);
        let (low, high) = ([text("x"), 20.into()], [text("y")]);
        let range = |low, high| values(&mut bag.range(low, high).unwrap());
        assert_eq!(range(Bound::Included(&low[..]), Bound::Excluded(&high[..])), [json!(["b", 20]), json!(["a", 30])]);
        assert_eq!(range(Bound::Excluded(&low[..]), Bound::Unbounded), [json!(["a", 30]), json!(["c", 10])]);
        // The hidden entry appears when the first one is removed.
        tree.remove("u/a", |_| Ok::<_, ()>(())).unwrap();
        put(&mut tree, "u/c", json!({"team": "z", "age": 10}));
        views.catch_up(&tree, None);
        let set = views.get("set").unwrap();
        assert_eq!(set.get(&[text("x")]).unwrap(), [text("b")]);
        assert_eq!(set.get(&[text("y")]).unwrap(), []);
        for (_, view) in views.iter() {
            assert!(view.same_entries(&MaterializedView::build(view.rule().clone(), &tree)));
        }
    }
}
