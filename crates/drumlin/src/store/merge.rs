//! Merges: rows of a frame are brought into a table, each by whether a row there matches it.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use roaring::RoaringBitmap;

use super::blocks::add_blocks;
use super::commit::retry_conflicts;
use super::keyed::refuse;
use super::proposal::{Proposal, Work};
use super::resolve::{newest, table_at};
use super::row_changes::RowChanges;
use super::transaction::Open;
use super::update::FullChange;
use super::{Frame, Store, UpdateOptions, VersionInfo};
use crate::base::{Error, Result};
use crate::block::BlockWriter;
use crate::catalog::{Footprint, Path, Read, State};
use crate::memtable::RowBytes;
use crate::segment::join_batches;
use crate::table::{BoundMerge, GroupId, Matches, Merge, Outcome, RowGroup, RowPlace, Table, VersionKind, batch_bytes};

/// What a merge did.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeReport {
    /// The version that it made; the newest one as it was if nothing changed. `None` in a transaction.
    pub version: Option<VersionInfo>,
    /// Rows that got new values.
    pub updated: u64,
    /// Rows deleted.
    pub deleted: u64,
    /// Rows added.
    pub inserted: u64,
}

/// A merge whose row groups are on storage, waiting for its commit.
struct PreparedMerge {
    change: FullChange,
    writer: BlockWriter,
    report: MergeReport,
}

impl Store {
    /// Brings the rows of a frame into the table at `path`.
    pub(super) fn merge(
        &self,
        path: &Path,
        frame: Frame<'_>,
        merge: &Merge,
        options: &UpdateOptions,
    ) -> Result<MergeReport> {
        self.refresh_if_shared()?;
        let source = self.collected(path, frame, options)?;
        let attempt = || {
            let (base, _pin) = self.pinned_state()?;
            let (base, _newer) = self.settled_state(base, path, true)?;
            let PreparedMerge { change, writer, report } =
                self.prepare_merge(&base, path, source.clone(), merge, options)?;
            let FullChange { footprint, effects } = change;
            let committed = self.commit_rewritten(writer, |_| {
                let build = move |_: &State| Ok(effects.clone());
                self.commit(Proposal { base, footprint, work: Work::Build(Box::new(build)) })
            });
            Ok(committed.map(|after| (after, report)))
        };
        let (after, report) = self.while_reclaimed(|| retry_conflicts(attempt))?;
        Ok(MergeReport { version: Some(self.newest_info(&after, path)?), ..report })
    }

    /// All rows of a frame, which must fit into memory.
    fn collected(&self, path: &Path, frame: Frame<'_>, options: &UpdateOptions) -> Result<RecordBatch> {
        let (schema, bound): (SchemaRef, u64) = (frame.schema().clone(), self.inner.options.memory_bytes / 2);
        let (mut batches, mut bytes) = (Vec::new(), 0);
        for batch in frame.into_batches(&self.inner.env.pool, &format!("'{path}'")) {
            options.task.cancel.check()?;
            let batch = batch?;
            bytes += batch_bytes(&batch);
            if bytes > bound {
                return Err(Error::invalid(format!(
                    "'{path}': the data takes more than {bound} bytes, half of memory_bytes: merge it in parts, or allow more"
                )));
            }
            batches.push(batch);
        }
        match batches.is_empty() {
            true => Ok(RecordBatch::new_empty(schema)),
            false => join_batches(&schema, &batches),
        }
    }

    /// Writes the row groups of a merge into the table at `path` as it is in `state`, which has no rows of it in memory.
    fn prepare_merge(
        &self,
        state: &State,
        path: &Path,
        source: RecordBatch,
        merge: &Merge,
        options: &UpdateOptions,
    ) -> Result<PreparedMerge> {
        let table = table_at(state, path)?;
        let named = |e: Error| e.context(format!("'{path}'"));
        let bound = BoundMerge::new(table, merge, source).map_err(named)?;
        let inner = &self.inner;
        let reader = &inner.reader;
        let outcomes = inner.env.pool.map(table.groups.iter().collect(), |group| {
            options.task.cancel.check()?;
            Ok(bound.outcome(reader, group)?.map(|outcome| (group.id, outcome)))
        });
        let outcomes: std::collections::HashMap<GroupId, Outcome> =
            outcomes.map_err(named)?.into_iter().flatten().collect();
        let matched = outcomes.values().fold(RoaringBitmap::new(), |all, outcome| all | &outcome.matched);
        let inserted = bound.inserted(&matched).map_err(named)?;
        let rows = |of: fn(&Outcome) -> &RoaringBitmap| {
            let found = table.groups.iter().filter_map(|group| Some((group.id, of(outcomes.get(&group.id)?))));
            let matches = found.map(|(group, rows)| Matches { group, rows: rows.clone() });
            matches.filter(|matches| !matches.rows.is_empty()).collect::<Vec<_>>()
        };
        let (updated, deleted) = (rows(|outcome| &outcome.updated), rows(|outcome| &outcome.deleted));
        let count = |matches: &[Matches]| matches.iter().map(|matches| matches.rows.len()).sum::<u64>();
        let report = MergeReport {
            version: None,
            updated: count(&updated),
            deleted: count(&deleted),
            inserted: inserted.as_ref().map_or(0, |batch| batch.num_rows() as u64),
        };
        if let Some(rows) = &inserted {
            self.refuse_present_rows(state, table, path, rows, &deleted, options)?;
        }
        let inserted = inserted.into_iter().collect();
        let patches = |group: &RowGroup, _: &RoaringBitmap| bound.patches(reader, group, &outcomes[&group.id]);
        let version = newest(state, table).version;
        let kind = VersionKind::Merge;
        let (patches, in_place) = (&patches as _, false);
        let changes = RowChanges { table, version, kind, updated, patches, deleted, inserted, in_place };
        let mut writer = self.block_writer()?.inline(inner.options.inline_bytes);
        let effect = match report.updated + report.deleted + report.inserted {
            0 => None,
            _ => Some(changes.write(self, options, &mut writer).map_err(named)?),
        };
        let reads = Footprint::default().with(Read::Binding(path.clone())).with(Read::Schema(table.id));
        let effects = add_blocks(writer.finish()?).into_iter().chain(effect).collect();
        let change = FullChange { footprint: reads.with(Read::Rows(table.id)), effects };
        Ok(PreparedMerge { change, writer, report })
    }

    /// `AlreadyExists` if a table with a key has rows with the keys of new ones, other than those that go.
    fn refuse_present_rows(
        &self,
        state: &State,
        table: &Table,
        path: &Path,
        inserted: &RecordBatch,
        deleted: &[Matches],
        options: &UpdateOptions,
    ) -> Result<()> {
        if table.key().is_none() {
            return Ok(());
        }
        let codec = table.codec()?;
        let goes = |place: &RowPlace| match place {
            RowPlace::Nowhere => true,
            RowPlace::Memory(_) => false,
            RowPlace::Group(at, row) => {
                let id = table.groups[*at as usize].id;
                deleted.iter().any(|matches| matches.group == id && matches.rows.contains(*row))
            }
        };
        let keys = codec.keys_of(inserted)?.0;
        let searcher = self.searcher(state, table, &codec, &options.task.cancel);
        let places = searcher.locate(&keys, &mut RowBytes::default())?;
        let there: Vec<usize> = (0..keys.len()).filter(|at| !goes(&places[*at])).collect();
        refuse(&codec, &keys, &there, &format!("'{path}' has rows with"))
    }
}

impl Open {
    /// Brings the rows of a frame into the table at `path` in a transaction.
    pub fn merge(
        &mut self,
        store: &Store,
        path: &Path,
        frame: Frame<'_>,
        merge: &Merge,
        options: &UpdateOptions,
    ) -> Result<MergeReport> {
        let table = table_at(self.draft.state(), path)?;
        let (id, in_memory) = (table.id, !table.parts.is_empty());
        if in_memory {
            return self.settled(store, id, Err(Error::conflict("rows written by key are not in row groups yet")));
        }
        let source = store.collected(path, frame, options)?;
        let PreparedMerge { change, writer, report } =
            store.prepare_merge(self.draft.state(), path, source, merge, options)?;
        self.apply(change.footprint, change.effects, Some(writer))?;
        Ok(report)
    }
}
