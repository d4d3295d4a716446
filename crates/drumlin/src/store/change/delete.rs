//! Deletes rows by predicate, and what changes of existing rows share. With deletion vectors only; no row group is
//! rewritten. The rows are found on a snapshot; if others changed the table since, they are looked for again.

use std::sync::Arc;

use crate::base::{Result, TableId, Task};
use crate::catalog::{Effect, Footprint, Path, Read, State};
use crate::filter::Filter;
use crate::memtable::Keys;
use crate::store::commit::call::Call;
use crate::store::parts::Proposal;
use crate::store::read::resolve::{newest, of_table, table_at};
use crate::store::{Store, VersionInfo};
use crate::table::{GroupId, Matches, Positions, RowsChange, TableChange, TableState, VersionKind, matching_rows};

/// How rows are updated or deleted.
#[derive(Clone, Default)]
pub struct UpdateOptions {
    /// A note kept with the version, as JSON text. Default: none.
    pub metadata: Option<String>,
    /// Cancellation.
    pub task: Task,
}

/// What a delete did.
#[derive(Clone, Debug, PartialEq)]
pub struct DeleteReport {
    /// The version that it made; the newest one as it was if no row matched. `None` in a transaction.
    pub version: Option<VersionInfo>,
    /// Rows deleted.
    pub rows: u64,
}

/// A change of a table that depends on all that its newest version sees.
pub(in crate::store) struct FullChange {
    pub footprint: Footprint,
    pub effects: Vec<Effect>,
}

impl Call<'_> {
    /// Makes a version without the rows for which `filter` is true.
    pub fn delete_matching(self, path: &Path, filter: &Filter, options: &UpdateOptions) -> Result<DeleteReport> {
        let (store, began) = (self.store, self.began());
        let (after, rows) = self.commit(|base| {
            let (change, rows) = store.find_rows(&base, path, filter, options)?;
            Ok((change.propose(base).since(began), rows))
        })?;
        Ok(DeleteReport { version: Some(store.newest_info(&after, path)?), rows })
    }
}

impl Store {
    /// The change that deletes the rows of the table at `path` for which `filter` is true, and how many there are.
    pub(in crate::store) fn find_rows(
        &self,
        state: &State,
        path: &Path,
        filter: &Filter,
        options: &UpdateOptions,
    ) -> Result<(FullChange, u64)> {
        let table = &table_at(state, path)?;
        let read_point = newest(self, state, table);
        let found = matching_rows(self.reader(), &self.env().pool, table, read_point, filter, &options.task.cancel);
        let found = found.map_err(|e| of_table(path, e))?;
        let rows = found.count();
        let mut change = TableChange::new(VersionKind::Delete);
        change.metadata = options.metadata.clone();
        change.deletions = positions(found.groups);
        let effects = delete_in_memory(table, &found.keys)?;
        let change = (rows > 0).then_some(Effect::ChangeTable { table: table.id, change });
        Ok((full_change(table.id, path, effects, change), rows))
    }
}

/// The effects that delete rows which lie in memory only.
pub(in crate::store) fn delete_in_memory(table: &TableState, keys: &Keys) -> Result<Vec<Effect>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let rows = RowsChange::of_deletes(&*table.codec()?, keys)?;
    Ok(vec![Effect::WriteRows { table: table.id, version: table.next_version(), rows }])
}

pub(in crate::store) fn positions(found: Vec<Matches>) -> Vec<(GroupId, Positions)> {
    found.into_iter().map(|matches| (matches.group, matches.rows.into())).collect()
}

/// A change of the table at `path` that depends on all that its newest version sees.
pub(in crate::store) fn full_change(
    table: TableId,
    path: &Path,
    before: Vec<Effect>,
    change: Option<Effect>,
) -> FullChange {
    let footprint =
        Footprint::default().with(Read::Binding(path.clone())).with(Read::Schema(table)).with(Read::Rows(table));
    FullChange { footprint, effects: before.into_iter().chain(change).collect() }
}

impl FullChange {
    pub fn propose(self, base: Arc<State>) -> Proposal {
        let Self { footprint, effects } = self;
        Proposal::carried(base, footprint, effects)
    }
}
