//! The state of a whole store, and `apply`: the only way it changes.
//!
//! A value of persistent maps: a reader takes an `Arc<State>`, is never blocked and never sees half a commit.

mod apply;
mod copies;
mod erase;
mod groups;
mod holds;
mod indexes;
mod lives;
mod packing;
mod rows;
mod snapshots;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};

use super::tree::watches::Watches;
use super::{
    Followers, Holds, Keep, Ledger, Node, NodeTree, Path, Pattern, Presences, Retention, RowViews, Rule, Sequences,
    Sessions, SnapshotCovers, TableMap, Totals, Trash, Trigger, Views,
};
use crate::base::{BlockId, EntryId, Error, Pool, Result, Seq, SessionId, TableId, Timestamp, Version};
use crate::table::TableState;

/// A name that holds versions of tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When it was taken.
    pub time: Timestamp,
    /// The versions that it names, by the path that the table had; none if it covers tables, see [`SnapshotCovers`].
    pub pins: BTreeMap<Path, (TableId, Version)>,
}

/// Everything a store knows.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The last commit applied.
    pub seq: Seq,
    /// Its time.
    pub time: Timestamp,
    /// The last entry applied, so that a retry is recognised.
    pub entry: EntryId,
    /// Writing processes.
    pub sessions: Sessions,
    /// Blocks kept for processes that do not write the log, and committed jobs.
    pub holds: Holds,
    /// Paths.
    pub tree: NodeTree,
    /// Applies where no node sets a retention.
    pub default_retention: Option<Retention>,
    /// Dropped tables that can still be restored.
    pub trash: Trash,
    /// What their sequences have given out.
    pub sequences: Sequences,
    /// Who follows them.
    pub followers: Followers,
    /// Views of rows.
    pub row_views: RowViews,
    /// Presences.
    pub presences: Presences,
    /// Snapshots by name.
    pub snapshots: OrdMap<String, Arc<Snapshot>>,
    /// What those cover that name no versions.
    pub covers: SnapshotCovers,
    /// The use of blocks.
    pub ledger: Ledger,
    /// The last commit that erased rows from all versions, or row groups that had such rows; 0 if there is none.
    pub erased: Seq,
    /// Features that a reader of its tables must know.
    pub(super) uses: u64,
    pub(super) tables: TableMap,
    /// Where each table is in the tree; derived from it.
    pub(super) paths: OrdMap<TableId, Path>,
    pub(super) last_table: TableId,
    /// Durable triggers by name.
    pub triggers: OrdMap<String, Trigger>,
    /// The durable projections by name, as JSON text.
    declared: OrdMap<String, Declared>,
    /// Which nodes' lives depend on which paths; derived from the tree.
    pub(super) watches: Watches,
    /// The projections; derived from the tree when they are updated to it.
    views: Views,
    /// Tables with rows that must be settled.
    unsettled: OrdSet<TableId>,
    /// Rows that tables with indexes have got in new row groups since this process began.
    index_rows: u64,
    /// The commits whose rewrites are recorded in tables, and these: the oldest is forgotten first.
    moved: OrdSet<(Seq, TableId)>,
    /// The instant at which rows that expire are seen here, if it is not that of each call. Published states have none.
    instant: Option<Timestamp>,
}

/// The part that is written with every catalog snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SmallState {
    pub seq: Seq,
    time: Timestamp,
    entry: EntryId,
    sessions: Sessions,
    default_retention: Option<Retention>,
    last_table: TableId,
    #[serde(with = "crate::base::persistent::ordered_map")]
    triggers: OrdMap<String, Trigger>,
    #[serde(with = "crate::base::persistent::ordered_map")]
    declared: OrdMap<String, Declared>,
}

/// A durable projection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Declared(#[serde(with = "crate::base::json_text")] super::Projection);

impl State {
    pub(super) fn small_state(&self) -> SmallState {
        SmallState {
            seq: self.seq,
            time: self.time,
            entry: self.entry,
            sessions: self.sessions.clone(),
            default_retention: self.default_retention,
            last_table: self.last_table,
            triggers: self.triggers.clone(),
            declared: self.declared.clone(),
        }
    }

    /// The part that a catalog snapshot holds in chunks, without what is derived from it. O(1).
    pub fn stored(&self) -> Self {
        Self {
            seq: self.seq,
            tree: self.tree.clone(),
            tables: self.tables.clone(),
            trash: self.trash.clone(),
            sequences: self.sequences.clone(),
            followers: self.followers.clone(),
            row_views: self.row_views.clone(),
            presences: self.presences.clone(),
            snapshots: self.snapshots.clone(),
            covers: self.covers.clone(),
            ledger: self.ledger.clone(),
            holds: self.holds.clone(),
            uses: self.uses,
            erased: self.erased,
            ..Self::default()
        }
    }

    pub(super) fn from_small_state(rest: SmallState, tree: NodeTree) -> Self {
        let SmallState { seq, time, entry, sessions, default_retention, last_table, triggers, declared } = rest;
        let own = Self { seq, time, entry, sessions, tree, default_retention, last_table, ..Self::default() };
        Self { triggers, declared, ..own }
    }

    /// The table with this id: in the tree, in the trash, or held only by snapshots. `Corrupt` if its record is damaged.
    pub fn table(&self, id: TableId) -> Result<Option<Arc<TableState>>> {
        self.tables.get(id)
    }

    /// All tables, including those in the trash and those held only by snapshots, in the order of their ids. O(tables),
    /// each of which is decoded.
    pub fn tables(&self) -> impl Iterator<Item = Result<Arc<TableState>>> {
        self.tables.iter()
    }

    /// Calls `found` with each of them that names one of `blocks`, in no order. Costs what has changed since the last catalog
    /// snapshot if all that is in the blocks was written since, and otherwise at most O(tables).
    pub fn each_naming(&self, blocks: &BTreeSet<BlockId>, found: impl FnMut(&TableState)) -> Result<()> {
        let records = blocks.iter().map(|block| self.ledger.records_in(*block)).sum();
        self.tables.naming(blocks, records, found)
    }

    /// Those of them that have rows in memory, or that an ordinary checkpoint may change.
    pub fn open_tables(&self) -> impl Iterator<Item = &Arc<TableState>> {
        self.tables.open()
    }

    /// The same, in which rows that expire are seen as at that instant, whenever they are read.
    #[must_use]
    pub fn seen_at(self, instant: Timestamp) -> Self {
        Self { instant: Some(instant), ..self }
    }

    /// The instant at which rows that expire are seen here, if it is one.
    pub fn instant(&self) -> Option<Timestamp> {
        self.instant
    }

    /// The same as it is published.
    pub(super) fn seen_now(self) -> Self {
        Self { instant: None, ..self }
    }

    /// What all tables have together.
    pub fn totals(&self) -> Totals {
        self.tables.totals()
    }

    /// Where a table is in the tree.
    pub fn path_of(&self, id: TableId) -> Option<&Path> {
        self.paths.get(&id)
    }

    /// How many tables are in the tree.
    pub fn linked(&self) -> usize {
        self.paths.len()
    }

    /// The id of the table at a path.
    pub fn table_id_at(&self, path: &Path) -> Option<TableId> {
        self.tree.get(path.as_str())?.table()
    }

    /// The table at a path.
    pub fn table_at(&self, path: &Path) -> Result<Option<Arc<TableState>>> {
        self.table_id_at(path).map_or(Ok(None), |id| self.tables.get(id))
    }

    /// The paths and ids of the tables whose paths match, in path order.
    pub fn ids_matching<'a>(&'a self, pattern: &'a Pattern) -> impl Iterator<Item = (&'a Path, TableId)> {
        let mut walker = self.tree.walk(pattern);
        std::iter::from_fn(move || {
            loop {
                let (_, node) = walker.advance()?;
                if let Some(id) = node.table() {
                    return Some((self.paths.get(&id)?, id));
                }
            }
        })
    }

    /// The tables whose paths match, in path order.
    pub fn tables_matching<'a>(
        &'a self,
        pattern: &'a Pattern,
    ) -> impl Iterator<Item = Result<(&'a Path, Arc<TableState>)>> {
        self.ids_matching(pattern).map(|(path, id)| Ok((path, self.get(id)?)))
    }

    /// The projections, as of the tree that they were last updated to.
    pub fn views(&self) -> &Views {
        &self.views
    }

    /// Updates the projections to the tree, each on a thread of `pool` if one is given. Costs as much as has changed
    /// since.
    pub fn catch_up(&mut self, pool: Option<&Pool>) {
        self.views.catch_up(&self.tree, pool);
    }

    /// Adds a projection that lives only in this process, or replaces the one with its name.
    pub fn put_view(&mut self, name: &str, rule: Rule) {
        self.views.put(name, rule);
    }

    /// Removes a projection that lives only in this process.
    pub fn drop_view(&mut self, name: &str) {
        self.views.remove(name);
    }

    /// Takes over the projections by functions that `other` has and this one does not.
    pub fn take_functions(&mut self, other: &State) {
        for (name, view) in other.views.iter() {
            if matches!(view.rule(), Rule::Function { .. }) && self.views.get(name).is_none() {
                self.views.put(name, view.rule().clone());
            }
        }
    }

    /// Whether both have the same durable projections.
    pub(super) fn same_projections(&self, other: &State) -> bool {
        self.declared.ptr_eq(&other.declared) || self.declared == other.declared
    }

    /// Whether both have the same durable projection of this name, or none.
    pub(super) fn same_projection(&self, other: &State, name: &str) -> bool {
        self.declared.get(name) == other.declared.get(name)
    }

    /// Whether nothing that can be read differs. May return `false` even if nothing does.
    pub(super) fn same(&self, other: &State) -> bool {
        self.tree.same(&other.tree)
            && self.same_tables(other)
            && self.paths.ptr_eq(&other.paths)
            && self.trash.same(&other.trash)
            && self.snapshots.ptr_eq(&other.snapshots)
            && self.declared.ptr_eq(&other.declared)
    }

    fn same_tables(&self, other: &State) -> bool {
        let differs = |old: Option<&TableState>, new: Option<&TableState>| match (old, new) {
            (Some(old), Some(new)) => !new.is_same_content(old),
            (old, new) => old.is_some() != new.is_some(),
        };
        // What cannot be read cannot be said to be the same.
        self.tables.same(&other.tables) || !other.tables.any_differs(&self.tables, differs).unwrap_or(true)
    }

    /// Forgets rewrites that can no longer be asked for, given that no state before `oldest` is being read. O(forgotten).
    pub fn forget_moves(&mut self, oldest: Option<Seq>) {
        let done = |seq: Seq| oldest.is_none_or(|oldest| seq <= oldest);
        while let Some((seq, id)) = self.moved.get_min().copied().filter(|(seq, _)| done(*seq)) {
            self.moved.remove(&(seq, id));
            if let Some(table) = self.tables.get_open_mut(id) {
                Arc::make_mut(table).forget_moves(oldest);
            }
        }
    }

    /// Removes the projections by functions.
    pub fn drop_functions(&mut self) {
        let by_function = |view: &super::MaterializedView| matches!(view.rule(), Rule::Function { .. });
        let names: Vec<String> =
            self.views.iter().filter(|(_, view)| by_function(view)).map(|(name, _)| name.clone()).collect();
        names.iter().for_each(|name| self.views.remove(name));
    }

    /// Whether a projection is part of the store.
    pub fn is_declared(&self, name: &str) -> bool {
        self.declared.contains_key(name)
    }

    /// Rebuilds what is derived from the rest, after that was read. The projections must still be updated to the tree, and
    /// rows written by key replayed.
    pub fn restore(&mut self) -> Result<()> {
        let with_parts = self.tables.open().filter(|table| !table.parts.is_empty());
        for id in with_parts.map(|table| table.id).collect::<Vec<_>>() {
            let mut table = TableState::clone(&*self.get(id)?);
            table.check()?;
            table.restore_parts()?;
            self.tables.put(table)?;
        }
        let (mut watches, mut paths) = (Watches::default(), OrdMap::new());
        self.tree.each(|path, node| {
            if let Some(keep) = node.keep() {
                watches.add(&Path::trusted(path), keep);
            }
            if let Some(table) = node.table() {
                paths.insert(table, Path::trusted(path));
            }
        });
        self.watches = watches;
        self.paths = paths;
        self.views = Views::default();
        for (name, Declared(projection)) in &self.declared {
            self.views.put(name, Rule::Fields(projection.clone()));
        }
        Ok(())
    }

    /// Removes a node and all below it.
    pub(super) fn remove_node(&mut self, path: &str, permit: impl FnOnce(&Node) -> Result<()>) -> Result<Node> {
        let removed = self.tree.remove(path, permit)?;
        let node = removed.ok_or_else(|| Error::not_found(format!("no node at '{path}'")))?;
        self.watches.forget(path, &node);
        Ok(node)
    }

    /// Sets a node's life conditions.
    pub(super) fn set_keep(&mut self, path: &str, seq: Seq, keep: Keep) {
        let watcher = Path::trusted(path);
        if let Some(old) = self.tree.get(path).and_then(Node::keep).cloned() {
            self.watches.remove(&watcher, &old);
        }
        self.watches.add(&watcher, &keep);
        let keep = (!keep.is_empty()).then(|| Arc::new(keep));
        self.tree.edit(path, seq, |node| node.edit_extra(|extra| extra.keep = keep));
    }

    /// The number that the next table must have.
    pub fn next_table(&self) -> TableId {
        TableId(self.last_table.0 + 1)
    }

    /// The number that the next session must have.
    pub fn next_session(&self) -> SessionId {
        SessionId(self.sessions.last.0 + 1)
    }

    /// The retention of a table.
    pub fn retention(&self, id: TableId) -> Retention {
        self.paths.get(&id).map_or(Retention::KeepAll, |path| self.retention_at(path))
    }

    /// The retention that applies at a path.
    pub fn retention_at(&self, path: &Path) -> Retention {
        self.tree.retention(path).or(self.default_retention).unwrap_or_default()
    }

    /// Marks an entry of `session`, whose transactions were applied, as applied.
    pub fn finish(&mut self, seq: Seq, time: Timestamp, id: EntryId, session: SessionId) {
        self.sessions.committed(session, time);
        self.seq = seq;
        self.time = time;
        self.entry = id;
    }

    /// The table with this id, or `NotFound`.
    pub fn get(&self, id: TableId) -> Result<Arc<TableState>> {
        self.tables.get(id)?.ok_or_else(|| Error::not_found(format!("table {id} no longer exists")))
    }

    /// Frees everything that no retained version of `table` sees.
    fn shed(&mut self, table: &mut TableState, seq: Seq) -> Result<()> {
        table.shed(seq).iter().try_for_each(|address| self.ledger.release(address, seq))
    }

    /// Handles a table that is neither in the tree nor in the trash: only snapshots hold it, if any.
    fn unlinked(&mut self, id: TableId, seq: Seq) -> Result<()> {
        let mut table = TableState::clone(&*self.get(id)?);
        table.keep_pins_only();
        self.shed(&mut table, seq)?;
        if table.pins.is_empty() {
            self.tables.remove(id)?;
            self.sequences.forget(id);
            self.followers.forget(id);
            self.covers.forget(id);
        } else {
            self.tables.put(table)?;
        }
        Ok(())
    }
}
