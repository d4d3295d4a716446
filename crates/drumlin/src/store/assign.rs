//! Updates: columns of the rows that match a filter are set to computed values. Rows keep their places; only the row groups
//! that hold them are written, and of these only the columns that are set are encoded again.

use roaring::RoaringBitmap;

use super::blocks::add_blocks;
use super::commit::retry_conflicts;
use super::proposal::{Proposal, Work};
use super::resolve::{newest, of_table, table_at};
use super::row_changes::RowChanges;
use super::transaction::Open;
use super::update::FullChange;
use super::{Store, UpdateOptions, VersionInfo};
use crate::base::{Error, Result, Version};
use crate::block::BlockWriter;
use crate::catalog::{Footprint, Path, Read, State};
use crate::filter::{Expression, Filter};
use crate::table::{Assignments, Matches, RowGroup, Rows, Table, VersionKind, matching_rows};

/// What an update did.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateReport {
    /// The version that it made; the newest one as it was if no row matched. `None` in a transaction.
    pub version: Option<VersionInfo>,
    /// Rows updated.
    pub rows: u64,
}

/// An update whose row groups are on storage, waiting for its commit.
pub(super) struct PreparedUpdate {
    pub change: FullChange,
    pub writer: BlockWriter,
    pub rows: u64,
}

impl Store {
    /// Makes a version in which columns of the rows for which `filter` is true have other values.
    pub(super) fn update_matching(
        &self,
        path: &Path,
        set: &[(String, Expression)],
        filter: Option<&Filter>,
        options: &UpdateOptions,
    ) -> Result<UpdateReport> {
        self.refresh_if_shared()?;
        let attempt = || {
            let (base, _pin) = self.pinned_state()?;
            let (base, _newer) = self.settled_state(base, path, true)?;
            let PreparedUpdate { change, writer, rows } = self.prepare_update(&base, path, set, filter, options)?;
            let FullChange { footprint, effects } = change;
            Ok(self
                .commit_rewritten(writer, |_| {
                    let build = move |_: &State| Ok(effects.clone());
                    self.commit(Proposal { base, footprint, work: Work::Build(Box::new(build)) })
                })
                .map(|after| (after, rows)))
        };
        let (after, rows) = self.while_reclaimed(|| retry_conflicts(attempt))?;
        Ok(UpdateReport { version: Some(self.newest_info(&after, path)?), rows })
    }

    /// Writes the row groups of an update of the table at `path` as it is in `state`, which has no rows of it in memory.
    pub(super) fn prepare_update(
        &self,
        state: &State,
        path: &Path,
        set: &[(String, Expression)],
        filter: Option<&Filter>,
        options: &UpdateOptions,
    ) -> Result<PreparedUpdate> {
        let table = table_at(state, path)?;
        let named = |e: Error| e.context(format!("'{path}'"));
        let assignments = Assignments::new(table, set).map_err(named)?;
        let (read_point, task) = (newest(state, table), &options.task);
        let (reader, pool) = (&self.inner.reader, &self.inner.env.pool);
        let found = match filter {
            Some(filter) => {
                let found = matching_rows(reader, pool, table, read_point, filter, &task.cancel);
                let found = found.map_err(|e| of_table(path, e))?;
                if !found.keys.is_empty() {
                    return Err(Error::conflict("rows written by key are not in row groups yet"));
                }
                found.groups
            }
            None => all_rows(table, read_point.version),
        };
        let rows: u64 = found.iter().map(|matches| matches.rows.len()).sum();
        let mut writer = self.block_writer()?.inline(self.inner.options.inline_bytes);
        let patches = |group: &RowGroup, rows: &RoaringBitmap| {
            assignments.patches(reader, table, read_point.version, group, rows)
        };
        let changes = RowChanges {
            table,
            version: read_point.version,
            kind: VersionKind::Update,
            updated: found,
            patches: &patches,
            deleted: Vec::new(),
            inserted: Vec::new(),
            in_place: true,
        };
        let effect = match rows {
            0 => None,
            _ => Some(changes.write(self, options, &mut writer).map_err(named)?),
        };
        let footprint = Footprint::default()
            .with(Read::Binding(path.clone()))
            .with(Read::Schema(table.id))
            .with(Read::Rows(table.id));
        let effects = add_blocks(writer.finish()?).into_iter().chain(effect).collect();
        Ok(PreparedUpdate { change: FullChange { footprint, effects }, writer, rows })
    }
}

impl Open {
    /// Updates rows of the table at `path` in a transaction; returns how many.
    pub fn update(
        &mut self,
        store: &Store,
        path: &Path,
        set: &[(String, Expression)],
        filter: Option<&Filter>,
        options: &UpdateOptions,
    ) -> Result<u64> {
        let table = table_at(self.draft.state(), path)?;
        let (id, in_memory) = (table.id, !table.parts.is_empty());
        if in_memory {
            return self.settled(store, id, Err(Error::conflict("rows written by key are not in row groups yet")));
        }
        let PreparedUpdate { change, writer, rows } =
            store.prepare_update(self.draft.state(), path, set, filter, options)?;
        self.apply(change.footprint, change.effects, Some(writer))?;
        Ok(rows)
    }
}

/// All that a version sees.
fn all_rows(table: &Table, version: Version) -> Vec<Matches> {
    let seen = table.groups.iter().map(|group| (group, table.visible(group, version)));
    let positions = |group: &RowGroup, rows: Rows| -> RoaringBitmap { rows.positions(group.rows) };
    let matches = seen.map(|(group, rows)| Matches { group: group.id, rows: positions(group, rows) });
    matches.filter(|matches| !matches.rows.is_empty()).collect()
}
