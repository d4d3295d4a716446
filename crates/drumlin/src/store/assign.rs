//! Updates: columns of the rows that match a filter are set to computed values. Rows keep their places; only the row groups
//! that hold them are written, and of these only the columns that are set are encoded again.

use std::collections::HashMap;
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::blocks::add_blocks;
use super::commit::retry_conflicts;
use super::keyed::{ByKey, dedup_keys};
use super::keyed_bulk::encode_keyed_group;
use super::proposal::{Proposal, Work};
use super::resolve::{newest, of_table, table_at};
use super::transaction::Open;
use super::update::{FullChange, positions};
use super::{Store, UpdateOptions, VersionInfo};
use crate::base::{Error, Progress, Result, Version};
use crate::block::BlockWriter;
use crate::catalog::{Effect, Footprint, Path, Read, State};
use crate::filter::{Expression, Filter};
use crate::segment::join_batches;
use crate::table::{
    Assignments, GroupId, Matches, NewGroup, ROWS_MAX, RowGroup, Rows, Table, TableChange, TableUpdate, VersionKind,
    encode_group, matching_rows,
};

/// What an update did.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateReport {
    /// The version that it made; the newest one as it was if no row matched. `None` in a transaction.
    pub version: Option<VersionInfo>,
    /// Rows updated.
    pub rows: u64,
}

/// In a table whose rows have an order of their own, changed rows are written apart from the others if they are at most this
/// share of their row groups; else whole row groups are replaced.
const APART_SHARE: u64 = 8;

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
        let groups = table.groups.iter().map(|group| (group.id, &**group)).collect();
        let update = Update { store: self, table, groups, version: read_point.version, assignments, options };
        let effect = match (rows, update.is_apart(&found, rows)) {
            (0, _) => None,
            (_, true) => Some(update.apart(found, &mut writer).map_err(named)?),
            (_, false) => Some(update.in_place(found, &mut writer).map_err(named)?),
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

/// An update of one table.
struct Update<'a> {
    store: &'a Store,
    table: &'a Arc<Table>,
    groups: HashMap<GroupId, &'a RowGroup>,
    version: Version,
    assignments: Assignments,
    options: &'a UpdateOptions,
}

impl Update<'_> {
    fn group(&self, id: GroupId) -> &RowGroup {
        self.groups[&id]
    }

    /// Whether changed rows are written apart from the others: their order puts them in their places.
    fn is_apart(&self, found: &[Matches], rows: u64) -> bool {
        let touched: u64 = found.iter().map(|matches| u64::from(self.group(matches.group).rows)).sum();
        !self.table.spec.sort.is_empty() && rows * APART_SHARE <= touched
    }

    /// Replaces row groups by others with the same rows in the same order.
    fn in_place(&self, found: Vec<Matches>, writer: &mut BlockWriter) -> Result<Effect> {
        let inner = &self.store.inner;
        let (reader, pool, task) = (&inner.reader, &inner.env.pool, &self.options.task);
        let (mut done, mut replaced) = (Progress { total: found.len() as u64, ..Progress::default() }, Vec::new());
        pool.ordered(
            found.into_iter().map(Ok),
            // Encoded, and as much decoded.
            |matches: &Matches| self.group(matches.group).address.bytes() * 4,
            pool.threads() * 2,
            inner.options.memory_bytes / 4,
            |Matches { group, rows }| {
                task.cancel.check()?;
                let old = self.group(group);
                let new = self.assignments.replace(reader, pool, self.table, self.version, old, &rows)?;
                Ok((group, rows.len(), new))
            },
            |(id, changed, encoded)| {
                let rows = encoded.rows;
                let address = writer.push(encoded)?;
                replaced.push((id, NewGroup { address, rows, dead: None }));
                done.done += 1;
                done.rows += changed;
                done.bytes += address.bytes();
                task.step(done)
            },
        )?;
        let update = TableUpdate { replaced, metadata: self.options.metadata.clone() };
        Ok(Effect::UpdateTable { table: self.table.id, update })
    }

    /// Deletes the rows, and writes them again as they will be.
    fn apart(&self, found: Vec<Matches>, writer: &mut BlockWriter) -> Result<Effect> {
        let inner = &self.store.inner;
        let (reader, pool, task) = (&inner.reader, &inner.env.pool, &self.options.task);
        let batches = pool.map(found.iter().collect(), |Matches { group, rows }: &Matches| {
            task.cancel.check()?;
            self.assignments.changed(reader, self.table, self.version, self.group(*group), rows)
        })?;
        let mut rows = join_batches(self.assignments.schema(), &batches)?;
        drop(batches);
        let codec = self.table.key().map(|_| self.table.codec()).transpose()?;
        if let Some(codec) = &codec {
            rows = dedup_keys(ByKey::Insert, codec, rows)?.0;
        }
        let mut change = TableChange::new(VersionKind::Update);
        let mut known = None;
        for from in (0..rows.num_rows()).step_by(ROWS_MAX as usize) {
            task.cancel.check()?;
            let part = rows.slice(from, (rows.num_rows() - from).min(ROWS_MAX as usize));
            let (encoded, schemes) = match &codec {
                Some(codec) => encode_keyed_group(pool, codec, part, known.as_ref())?,
                None => {
                    let sort = &self.table.spec.sort;
                    encode_group(pool, vec![part], self.assignments.schema(), sort, known.as_ref())?
                }
            };
            known.get_or_insert(schemes);
            let rows = encoded.rows;
            change.groups.push(NewGroup { address: writer.push(encoded)?, rows, dead: None });
        }
        change.deletions = positions(found);
        change.metadata = self.options.metadata.clone();
        Ok(Effect::ChangeTable { table: self.table.id, change })
    }
}

/// All that a version sees.
fn all_rows(table: &Table, version: Version) -> Vec<Matches> {
    let seen = table.groups.iter().map(|group| (group, table.visible(group, version)));
    let positions = |group: &RowGroup, rows: Rows| -> RoaringBitmap { rows.positions(group.rows) };
    let matches = seen.map(|(group, rows)| Matches { group: group.id, rows: positions(group, rows) });
    matches.filter(|matches| !matches.rows.is_empty()).collect()
}
