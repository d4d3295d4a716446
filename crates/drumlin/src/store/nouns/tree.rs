//! Nodes of the tree and their payloads.

use super::patterns::IntoPattern;
use crate::base::{Error, Result};
use crate::catalog::{
    Change, Changes, Condition, NodeInfo, Pattern, Payload, PutMode, PutOptions, Read, State, check_path,
};
use crate::store::{Place, ViewInfo};

/// The nodes of the tree: names with payloads, in a store, where each call is one commit, or in a transaction. See
/// [`crate::store::Tables::tree`].
#[derive(Clone, Debug)]
pub struct Tree {
    pub(in crate::store) place: Place,
}

/// One line of a listing.
#[derive(Clone, Debug, PartialEq)]
pub struct ListEntry {
    /// The node's path.
    pub path: String,
    /// The node.
    pub node: NodeInfo,
    /// Figures of its table, if it holds one.
    pub table: Option<TableFigures>,
}

/// What a listing shows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableFigures {
    /// Rows of the newest version, with those written by key since.
    pub rows: u64,
    /// Listed versions.
    pub versions: u64,
    /// Row groups.
    pub row_groups: u64,
}

impl Tree {
    /// Whether a call on one node, a read or with `writes` a change, may have to wait for others.
    pub fn may_wait(&self, writes: bool) -> bool {
        self.place.may_wait(writes)
    }

    /// Whether it is that of a store, not of a transaction.
    pub fn is_in_store(&self) -> bool {
        matches!(self.place, Place::Store(_))
    }

    /// Sets the payload of the node at `path`; creates it, with its parents, if it does not exist.
    ///
    /// ```
    /// # use drumlin::Tables;
    /// # let store = drumlin::Store::memory()?;
    /// use drumlin::Payload;
    /// store.tree().put("config/feeds/a", 1)?;
    /// assert_eq!(store.tree().get("config/feeds/a")?, Some(Payload::from(1)));
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if `path` is not valid.
    pub fn put<P>(&self, path: &str, payload: P) -> Result<Change>
    where
        P: TryInto<Payload>,
        Error: From<P::Error>,
    {
        self.put_with(path, payload, PutOptions::default())
    }

    /// Sets the payload of the node at `path`, on conditions.
    ///
    /// # Errors
    /// `AlreadyExists`, `NotFound` or `ConditionFailed` if what `options` require does not hold.
    pub fn put_with<P>(&self, path: &str, payload: P, options: PutOptions) -> Result<Change>
    where
        P: TryInto<Payload>,
        Error: From<P::Error>,
    {
        check_path(path)?;
        let payload: Payload = payload.try_into()?;
        let reads = || match options.reads_node() {
            false => Vec::new(),
            true => watched(path, options.keep_while.as_deref().unwrap_or_default()),
        };
        let (reads, path) = (reads(), path.to_owned());
        self.place.change(|| reads, move |draft| draft.put(&path, payload.clone(), &options))
    }

    /// Creates a node that does not exist.
    ///
    /// # Errors
    /// `AlreadyExists` if it does.
    pub fn create<P>(&self, path: &str, payload: P) -> Result<Change>
    where
        P: TryInto<Payload>,
        Error: From<P::Error>,
    {
        self.put_with(path, payload, PutOptions { mode: PutMode::Create, ..PutOptions::default() })
    }

    /// Sets the payload of a node that exists.
    ///
    /// # Errors
    /// `NotFound` if it does not.
    pub fn update<P>(&self, path: &str, payload: P) -> Result<Change>
    where
        P: TryInto<Payload>,
        Error: From<P::Error>,
    {
        self.put_with(path, payload, PutOptions { mode: PutMode::Update, ..PutOptions::default() })
    }

    /// Sets the payload of the node at `path` if it is `expected`.
    ///
    /// # Errors
    /// `ConditionFailed` if it is not; `NotFound` if there is no node.
    pub fn compare_and_swap(&self, path: &str, expected: Payload, payload: Payload) -> Result<Change> {
        let when = Some(Condition::payload(expected));
        self.put_with(path, payload, PutOptions { mode: PutMode::Update, when, ..PutOptions::default() })
    }

    /// Sets what the node at `path` lives on: conditions on the nodes at other paths, or at its own. With an empty list it
    /// lives on nothing.
    ///
    /// # Errors
    /// `NotFound` if there is no node; `ConditionFailed` if one of the conditions does not hold.
    pub fn keep_while(&self, path: &str, conditions: &[(String, Condition)]) -> Result<()> {
        let (reads, path, conditions) = (watched(path, conditions), path.to_owned(), conditions.to_vec());
        self.place.change(|| reads, move |draft| draft.keep_while(&path, &conditions))
    }

    /// Sets the payloads of many nodes.
    ///
    /// # Errors
    /// As [`Tree::put`]; then none is set.
    pub fn put_many(&self, payloads: &[(String, Payload)]) -> Result<Changes> {
        let pairs = || payloads.iter().map(|(path, payload)| (path.as_str(), payload.clone()));
        self.place.change_many(None, |draft| draft.put_many(pairs()))
    }

    /// Sets the payload of all nodes that match `pattern`.
    ///
    /// # Errors
    /// `InvalidArgument` if `pattern` is not valid.
    pub fn update_many(&self, pattern: impl IntoPattern, payload: &Payload) -> Result<Changes> {
        let pattern = pattern.into_pattern()?;
        self.place.change_many(Some(Read::Pattern(pattern.clone())), |draft| draft.update_many(&pattern, payload))
    }

    /// Removes the payload of the node at `path`. A node with nothing left is deleted.
    ///
    /// # Errors
    /// `NotFound` if there is no node; `ConditionFailed` if `when` does not hold for it.
    pub fn clear_payload(&self, path: &str, when: Option<Condition>) -> Result<Change> {
        let (reads, path) = (watched(path, &[]), path.to_owned());
        self.place.change(|| reads, move |draft| draft.clear(&path, when.as_ref()))
    }

    /// Removes the payloads of all nodes that match `pattern`.
    ///
    /// # Errors
    /// `InvalidArgument` if `pattern` is not valid.
    pub fn clear_payloads(&self, pattern: impl IntoPattern) -> Result<Changes> {
        let pattern = pattern.into_pattern()?;
        self.place.change_many(Some(Read::Pattern(pattern.clone())), |draft| draft.clear_many(&pattern))
    }

    /// Deletes the node at `path` with all below it; none of them may hold a table.
    ///
    /// # Errors
    /// `NotFound` if it does not exist, `ConditionFailed` if `when` does not hold for it, `InvalidArgument` if a table is at
    /// or below it.
    pub fn delete(&self, path: &str, when: Option<Condition>) -> Result<Change> {
        let path = path.to_owned();
        self.place.change(Vec::new, move |draft| draft.delete(&path, when.as_ref()))
    }

    /// Deletes the nodes that match `pattern`, with all below them; none of them may hold a table.
    ///
    /// # Errors
    /// `InvalidArgument` if a table is at or below one of them; then none is deleted.
    pub fn delete_many(&self, pattern: impl IntoPattern) -> Result<Changes> {
        let pattern = pattern.into_pattern()?;
        self.place.change_many(Some(Read::Pattern(pattern.clone())), |draft| draft.delete_many(&pattern))
    }

    /// The payload of the node at `path`; `None` if the node carries none or does not exist. O(depth x log children).
    ///
    /// # Errors
    /// `InvalidArgument` if `path` is not valid.
    pub fn get(&self, path: &str) -> Result<Option<Payload>> {
        check_path(path)?;
        let read = || Read::Node(path.to_owned());
        self.place.look(read, |state| Ok(state.tree.get(path).and_then(|node| node.payload.clone())))
    }

    /// The node at `path`, if there is one.
    ///
    /// # Errors
    /// `InvalidArgument` if `path` is not valid.
    pub fn node(&self, path: &str) -> Result<Option<NodeInfo>> {
        check_path(path)?;
        self.place.look(|| Read::Node(path.to_owned()), |state| Ok(state.tree.info(path)))
    }

    /// Whether there is a node at `path`.
    ///
    /// # Errors
    /// As [`Tree::node`].
    pub fn exists(&self, path: &str) -> Result<bool> {
        Ok(self.node(path)?.is_some())
    }

    /// Whether the node at `path` exists and carries a payload.
    ///
    /// # Errors
    /// As [`Tree::get`].
    pub fn has_payload(&self, path: &str) -> Result<bool> {
        Ok(self.get(path)?.is_some())
    }

    /// The payloads of the nodes that match `pattern` and carry one, in path order.
    ///
    /// # Errors
    /// `InvalidArgument` if `pattern` is not valid.
    pub fn get_many(&self, pattern: impl IntoPattern) -> Result<Vec<(String, Payload)>> {
        let (pattern, state) = self.matching(pattern)?;
        let mut walker = state.tree.walk(&pattern);
        let mut found = Vec::new();
        while let Some((path, node)) = walker.advance() {
            found.extend(node.payload.clone().map(|payload| (path.to_owned(), payload)));
        }
        Ok(found)
    }

    /// The nodes that match `pattern`, in path order.
    ///
    /// # Errors
    /// As [`Tree::get_many`].
    pub fn nodes(&self, pattern: impl IntoPattern) -> Result<Vec<(String, NodeInfo)>> {
        self.map(pattern, |path, node| (path.to_owned(), node.clone()))
    }

    /// How many nodes match `pattern`.
    ///
    /// # Errors
    /// As [`Tree::get_many`].
    pub fn count(&self, pattern: impl IntoPattern) -> Result<u64> {
        let (pattern, state) = self.matching(pattern)?;
        let mut walker = state.tree.walk(&pattern);
        let mut count = 0;
        while walker.advance().is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// Folds over the nodes that match `pattern`, in path order, as of one instant: it does not see what `step`
    /// changes.
    ///
    /// # Errors
    /// As [`Tree::get_many`].
    pub fn fold<T>(
        &self,
        pattern: impl IntoPattern,
        initial: T,
        mut step: impl FnMut(T, &str, &NodeInfo) -> T,
    ) -> Result<T> {
        let (pattern, state) = self.matching(pattern)?;
        let mut walker = state.tree.walk(&pattern);
        let mut value = initial;
        while let Some((path, node)) = walker.advance() {
            value = step(value, path, &node.info());
        }
        Ok(value)
    }

    /// Calls `each` for the nodes that match `pattern`, in path order.
    ///
    /// # Errors
    /// As [`Tree::get_many`].
    pub fn for_each(&self, pattern: impl IntoPattern, mut each: impl FnMut(&str, &NodeInfo)) -> Result<()> {
        self.fold(pattern, (), |(), path, node| each(path, node))
    }

    /// What `map` returns for each node that matches `pattern`, in path order.
    ///
    /// # Errors
    /// As [`Tree::get_many`].
    pub fn map<T>(&self, pattern: impl IntoPattern, mut map: impl FnMut(&str, &NodeInfo) -> T) -> Result<Vec<T>> {
        self.fold(pattern, Vec::new(), |mut made, path, node| {
            made.push(map(path, node));
            made
        })
    }

    /// The nodes that match `pattern` and for which `keep` is true, in path order.
    ///
    /// # Errors
    /// As [`Tree::get_many`].
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

    /// The nodes that match `pattern`, in path order, with figures of their tables. Counting the rows in memory takes a
    /// search for their keys in their tables.
    ///
    /// # Errors
    /// As [`Tree::get_many`], and those of reading.
    pub fn list(&self, pattern: impl IntoPattern) -> Result<Vec<ListEntry>> {
        let pattern = pattern.into_pattern()?;
        let store = self.place.store();
        let reads = |state: &State| {
            let tables = state.ids_matching(&pattern).map(|(_, table)| table);
            let of = |table| [Read::Rows(table), Read::Versions(table)];
            Ok(tables.flat_map(of).chain([Read::Pattern(pattern.clone())]).collect())
        };
        self.place.read(reads, |state, _| {
            let entry = |(path, node): (crate::catalog::Path, &crate::catalog::Node)| {
                let figures = |table: std::sync::Arc<crate::table::TableState>| {
                    let (versions, row_groups) = (table.versions.len() as u64, table.groups.len() as u64);
                    Ok::<_, crate::base::Error>(TableFigures {
                        rows: store.stored_rows(state, &table)?,
                        versions,
                        row_groups,
                    })
                };
                let table = node.table().map_or(Ok(None), |id| state.table(id))?;
                let table = table.map(figures).transpose()?;
                Ok(ListEntry { path: path.to_string(), node: node.info(), table })
            };
            state.tree.matching(&pattern).map(entry).collect()
        })
    }

    /// A pattern, and the state to look for it in.
    pub(in crate::store) fn matching(&self, pattern: impl IntoPattern) -> Result<(Pattern, std::sync::Arc<State>)> {
        let pattern = pattern.into_pattern()?;
        let state = self.place.state(Read::Pattern(pattern.clone()))?;
        Ok((pattern, state))
    }

    /// All views, in the order of their paths. See [`crate::Table::create_view`].
    ///
    /// # Errors
    /// `Closed`.
    pub fn views(&self) -> Result<Vec<ViewInfo>> {
        self.place.look(|| Read::All, |state| Ok(ViewInfo::all(state)))
    }
}

/// The reads of a change of the node at `path` on conditions.
fn watched(path: &str, conditions: &[(String, Condition)]) -> Vec<Read> {
    let others = conditions.iter().map(|(watched, _)| Read::Node(watched.clone()));
    others.chain([Read::Node(path.to_owned())]).collect()
}
