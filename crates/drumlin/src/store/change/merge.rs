//! Merges: rows of a frame are brought into a table, each by whether a row there matches it.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use roaring::RoaringBitmap;

use super::changed_rows::{ChangedRows, PreparedChange};
use crate::base::{Error, Result};
use crate::catalog::{Path, State};
use crate::memtable::RowBytes;
use crate::segment::join_batches;
use crate::store::read::resolve::{newest, table_at};
use crate::store::write::by_key::refuse;
use crate::store::write::numbers::Numbering;
use crate::store::{Frame, Store, UpdateOptions, VersionInfo};
use crate::table::{
    BoundMerge, GroupId, GroupsAhead, Matches, Merge, Outcome, RowGroup, RowPlace, TableState, VersionKind, batch_bytes,
};

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

impl Store {
    /// All rows of a frame, which must fit into memory.
    pub(in crate::store) fn collected(
        &self,
        path: &Path,
        frame: Frame<'_>,
        options: &UpdateOptions,
    ) -> Result<RecordBatch> {
        let (schema, bound): (SchemaRef, u64) = (frame.schema().clone(), self.options().memory_bytes / 2);
        let (mut batches, mut bytes) = (Vec::new(), 0);
        for batch in frame.into_batches(&self.env().pool, &format!("'{path}'")) {
            options.task.cancel.check()?;
            let batch = batch?;
            bytes += batch_bytes(&batch);
            if bytes > bound {
                return Err(Error::invalid(format!(
                    "'{path}': the data takes more than {bound} bytes, half of memory_bytes; merge it in parts, or \
                     raise memory_bytes"
                )));
            }
            batches.push(batch);
        }
        match batches.is_empty() {
            true => Ok(RecordBatch::new_empty(schema)),
            false => join_batches(&schema, &batches),
        }
    }

    /// Writes the row groups of a merge into the table at `path` as it is in `state`, which has no rows of it in memory. If `in_place`,
    /// rows that are updated keep their places.
    #[expect(clippy::too_many_arguments, reason = "what, where, how, and where its values come from")]
    pub(in crate::store) fn prepare_merge(
        &self,
        state: &State,
        path: &Path,
        source: RecordBatch,
        merge: &Merge,
        in_place: bool,
        options: &UpdateOptions,
        numbering: &Numbering,
    ) -> Result<PreparedChange<MergeReport>> {
        let table = &table_at(state, path)?;
        let named = |e: Error| e.context(format!("'{path}'"));
        let mut bound = BoundMerge::new(table, merge, source).map_err(named)?;
        let reader = self.reader();
        let read_point = newest(self, state, table);
        bound.see(read_point).map_err(named)?;
        bound.ask_indexes(reader, &self.env().pool).map_err(named)?;
        let candidates = bound.candidates();
        let ahead = GroupsAhead::new(reader, table, read_point.version, candidates.clone(), bound.reads());
        let outcomes = self.env().pool.map(candidates.into_iter().enumerate().collect(), |(at, group)| {
            options.task.cancel.check()?;
            bound.before(&ahead, at);
            Ok(bound.outcome(reader, group)?.map(|outcome| (group.id, outcome)))
        });
        let outcomes: std::collections::HashMap<GroupId, Outcome> =
            outcomes.map_err(named)?.into_iter().flatten().collect();
        let matched = outcomes.values().fold(RoaringBitmap::new(), |all, outcome| all | &outcome.matched);
        let inserted = bound.inserted(&matched, &numbering.generators(state, table)).map_err(named)?;
        let rows = |of: fn(&Outcome) -> &RoaringBitmap| {
            let found = table.groups.iter().filter_map(|group| Some((group.id, of(outcomes.get(&group.id)?))));
            let matches = found.map(|(group, rows)| Matches { group, rows: rows.clone() });
            matches.filter(|matches| !matches.rows.is_empty()).collect::<Vec<_>>()
        };
        let (updated, mut deleted) = (rows(|outcome| &outcome.updated), rows(|outcome| &outcome.deleted));
        let count = |matches: &[Matches]| matches.iter().map(|matches| matches.rows.len()).sum::<u64>();
        let report = MergeReport {
            version: None,
            updated: count(&updated),
            deleted: count(&deleted),
            inserted: inserted.as_ref().map_or(0, |batch| batch.num_rows() as u64),
        };
        if let Some(rows) = &inserted {
            let expired = self.refuse_present_rows(state, table, path, rows, &deleted, options)?;
            deleted.extend(expired);
        }
        let inserted = inserted.into_iter().collect();
        let new_values = |group: &RowGroup, _: &RoaringBitmap| bound.new_values(reader, group, &outcomes[&group.id]);
        let version = read_point.version;
        let kind = VersionKind::Merge;
        let new_values = &new_values as _;
        let schema = bound.schema_after(merge).map_err(named)?;
        let changes = ChangedRows {
            table,
            version,
            kind,
            schema,
            updated,
            new_values,
            reads: bound.value_reads(),
            deleted,
            inserted,
            in_place,
            revives: bound.sets_expiry().then_some(read_point),
            serial: false,
        };
        changes.prepare(self, path, options, report)
    }

    /// `AlreadyExists` if a table with a key has rows with the keys of new ones, other than those that go. Returns rows with these keys that
    /// have expired: they go, too.
    fn refuse_present_rows(
        &self,
        state: &State,
        table: &TableState,
        path: &Path,
        inserted: &RecordBatch,
        deleted: &[Matches],
        options: &UpdateOptions,
    ) -> Result<Vec<Matches>> {
        if table.key().is_none() {
            return Ok(Vec::new());
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
        refuse(&codec, &keys, &there, &format!("'{path}' already has rows with"))?;
        if !table.expires() {
            return Ok(Vec::new());
        }
        let searcher = searcher.with_expired();
        Ok(searcher.matches(&searcher.locate(&keys, &mut RowBytes::default())?))
    }
}
