//! Nodes of the tree and their payloads: each call one commit, or none.

use super::Store;
use crate::base::Result;
use crate::catalog::{Change, Changes, Condition, NodeInfo, Only, Pattern, Payload, PutOptions, State, check_path};

/// One line of a listing.
#[derive(Clone, Debug, PartialEq)]
pub struct ListEntry {
    /// Where the node is.
    pub path: String,
    /// The node.
    pub node: NodeInfo,
    /// If it holds a table: rows, versions and row groups.
    pub table: Option<(u64, u64, u64)>,
}

/// What can stand for a pattern: text, or one that was made of parts.
pub trait IntoPattern {
    /// The pattern.
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

/// The payload of the node at `path` in `state`.
pub(super) fn get(state: &State, path: &str) -> Result<Option<Payload>> {
    check_path(path)?;
    Ok(state.tree.get(path).and_then(|node| node.payload.clone()))
}

/// The node at `path` in `state`.
pub(super) fn node(state: &State, path: &str) -> Result<Option<NodeInfo>> {
    check_path(path)?;
    Ok(state.tree.info(path))
}

/// Goes over the nodes that match, in path order.
pub(super) fn fold<T>(state: &State, pattern: &Pattern, first: T, mut step: impl FnMut(T, &str, &NodeInfo) -> T) -> T {
    let mut walker = state.tree.walk(pattern);
    let mut value = first;
    while let Some((path, node)) = walker.advance() {
        value = step(value, path, &node.info());
    }
    value
}

/// How many nodes match.
pub(super) fn count(state: &State, pattern: &Pattern) -> u64 {
    let mut walker = state.tree.walk(pattern);
    let mut count = 0;
    while walker.advance().is_some() {
        count += 1;
    }
    count
}

/// The payloads of the nodes that match and carry one.
pub(super) fn get_many(state: &State, pattern: &Pattern) -> Vec<(String, Payload)> {
    let mut walker = state.tree.walk(pattern);
    let mut found = Vec::new();
    while let Some((path, node)) = walker.advance() {
        found.extend(node.payload.clone().map(|payload| (path.to_owned(), payload)));
    }
    found
}

/// The nodes that match.
pub(super) fn nodes(state: &State, pattern: &Pattern) -> Vec<(String, NodeInfo)> {
    fold(state, pattern, Vec::new(), |mut found, path, node| {
        found.push((path.to_owned(), node.clone()));
        found
    })
}

impl Store {
    /// Sets the payload of the node at `path`, made with its parents if it is not there.
    ///
    /// ```
    /// # let store = drumlin::Store::open("memory://", Default::default())?;
    /// use drumlin::catalog::Payload;
    /// store.put("config/feeds/a", Payload::from(1))?;
    /// assert_eq!(store.get("config/feeds/a")?, Some(Payload::from(1)));
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    pub fn put(&self, path: &str, payload: Payload) -> Result<Change> {
        self.put_with(path, payload, PutOptions::default())
    }

    /// Sets the payload of the node at `path`, on conditions.
    pub fn put_with(&self, path: &str, payload: Payload, options: PutOptions) -> Result<Change> {
        check_path(path)?;
        let path = path.to_owned();
        self.commit_in_turn(move |draft| draft.put(&path, payload.clone(), &options))
    }

    /// Makes a node that is not there; `AlreadyExists` if it is.
    pub fn create_node(&self, path: &str, payload: Payload) -> Result<Change> {
        self.put_with(path, payload, PutOptions { only: Only::New, ..PutOptions::default() })
    }

    /// Sets the payload of a node that is there; `NotFound` if it is not.
    pub fn update_node(&self, path: &str, payload: Payload) -> Result<Change> {
        self.put_with(path, payload, PutOptions { only: Only::There, ..PutOptions::default() })
    }

    /// Sets the payload of the node at `path` if it is `expected`, else `ConditionFailed`; `NotFound` if there is no node.
    pub fn compare_and_swap(&self, path: &str, expected: Payload, payload: Payload) -> Result<Change> {
        let when = Some(Condition::payload(expected));
        self.put_with(path, payload, PutOptions { only: Only::There, when, ..PutOptions::default() })
    }

    /// Sets the payloads of many nodes.
    pub fn put_many(&self, payloads: Vec<(String, Payload)>) -> Result<Changes> {
        self.transact(|tx| tx.put_many(payloads.iter().map(|(path, payload)| (path.as_str(), payload.clone()))))
    }

    /// Sets the payload of all nodes that match `pattern`.
    pub fn update_many(&self, pattern: impl IntoPattern, payload: &Payload) -> Result<Changes> {
        let pattern = pattern.into_pattern()?;
        self.transact(|tx| tx.update_many(&pattern, payload))
    }

    /// Takes the payload off the node at `path`. A node that nothing is left of goes.
    pub fn clear_payload(&self, path: &str, when: Option<Condition>) -> Result<Change> {
        let path = path.to_owned();
        self.commit_in_turn(move |draft| draft.clear(&path, when.as_ref()))
    }

    /// Takes the payloads off all nodes that match `pattern`.
    pub fn clear_payloads(&self, pattern: impl IntoPattern) -> Result<Changes> {
        let pattern = pattern.into_pattern()?;
        self.transact(|tx| tx.clear_payloads(&pattern))
    }

    /// Deletes the node at `path` with all below it; none of them may hold a table. `NotFound` if it is not there,
    /// `ConditionFailed` if `when` does not hold of it.
    pub fn delete(&self, path: &str, when: Option<Condition>) -> Result<Change> {
        let path = path.to_owned();
        self.commit_in_turn(move |draft| draft.delete(&path, when.as_ref()))
    }

    /// Deletes the nodes that match `pattern`, with all below them; none of them may hold a table.
    pub fn delete_many(&self, pattern: impl IntoPattern) -> Result<Changes> {
        let pattern = pattern.into_pattern()?;
        self.transact(|tx| tx.delete_many(&pattern))
    }

    /// The payload of the node at `path`; `None` if the node carries none or is not there. O(depth x log children).
    pub fn get(&self, path: &str) -> Result<Option<Payload>> {
        get(&*self.state()?, path)
    }

    /// The node at `path`, if there is one.
    pub fn node(&self, path: &str) -> Result<Option<NodeInfo>> {
        node(&*self.state()?, path)
    }

    /// Whether there is a node at `path`.
    pub fn exists(&self, path: &str) -> Result<bool> {
        Ok(self.node(path)?.is_some())
    }

    /// Whether the node at `path` is there and carries a payload.
    pub fn has_payload(&self, path: &str) -> Result<bool> {
        Ok(self.get(path)?.is_some())
    }

    /// The payloads of the nodes that match `pattern` and carry one, in path order.
    pub fn get_many(&self, pattern: impl IntoPattern) -> Result<Vec<(String, Payload)>> {
        Ok(get_many(&*self.state()?, &pattern.into_pattern()?))
    }

    /// The nodes that match `pattern`, in path order.
    pub fn nodes(&self, pattern: impl IntoPattern) -> Result<Vec<(String, NodeInfo)>> {
        Ok(nodes(&*self.state()?, &pattern.into_pattern()?))
    }

    /// How many nodes match `pattern`.
    pub fn count(&self, pattern: impl IntoPattern) -> Result<u64> {
        Ok(count(&*self.state()?, &pattern.into_pattern()?))
    }

    /// Goes over the nodes that match `pattern`, in path order, as of one instant.
    pub fn fold<T>(&self, pattern: impl IntoPattern, first: T, step: impl FnMut(T, &str, &NodeInfo) -> T) -> Result<T> {
        Ok(fold(&*self.state()?, &pattern.into_pattern()?, first, step))
    }

    /// Calls `each` for the nodes that match `pattern`, in path order.
    pub fn for_each(&self, pattern: impl IntoPattern, mut each: impl FnMut(&str, &NodeInfo)) -> Result<()> {
        self.fold(pattern, (), |(), path, node| each(path, node))
    }

    /// What `map` makes of each node that matches `pattern`, in path order.
    pub fn map<T>(&self, pattern: impl IntoPattern, mut map: impl FnMut(&str, &NodeInfo) -> T) -> Result<Vec<T>> {
        self.fold(pattern, Vec::new(), |mut made, path, node| {
            made.push(map(path, node));
            made
        })
    }

    /// The nodes that match `pattern` and of which `keep` is true, in path order.
    pub fn filter(
        &self,
        pattern: impl IntoPattern,
        mut keep: impl FnMut(&str, &NodeInfo) -> bool,
    ) -> Result<Vec<(String, NodeInfo)>> {
        self.fold(pattern, Vec::new(), |mut kept, path, node| {
            if keep(path, node) {
                kept.push((path.to_owned(), node.clone()));
            }
            kept
        })
    }

    /// The nodes that match `pattern`, in path order, with figures of their tables. Rows that lie in memory are counted, which
    /// takes a look at the keys of their tables.
    pub fn list(&self, pattern: impl IntoPattern) -> Result<Vec<ListEntry>> {
        let pattern = pattern.into_pattern()?;
        self.while_reclaimed(|| {
            let (state, _pin) = self.pinned_state()?;
            let entry = |(path, node): (crate::catalog::Path, &crate::catalog::Node)| {
                let table = match node.table().and_then(|id| state.table(id)) {
                    None => None,
                    Some(table) => {
                        let rows = self.newest_rows(&state, table)?;
                        Some((rows, table.versions.len() as u64, table.groups.len() as u64))
                    }
                };
                Ok(ListEntry { path: path.to_string(), node: node.info(), table })
            };
            state.tree.matching(&pattern).map(entry).collect()
        })
    }

    /// The paths that match `pattern` and hold tables, in order.
    pub fn tables(&self, pattern: impl IntoPattern) -> Result<Vec<String>> {
        let (pattern, state) = (pattern.into_pattern()?, self.state()?);
        let tables = state.tree.matching(&pattern).filter(|(_, node)| node.table().is_some());
        Ok(tables.map(|(path, _)| path.to_string()).collect())
    }
}
