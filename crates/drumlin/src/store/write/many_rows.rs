//! Writes many rows by key: row groups first, then one commit that says which rows they replace.
//!
//! The rows to replace are looked for on a snapshot, outside the commit's turn, in which only keys that others have written
//! since are looked up again. The keys of the call are held in memory, in order; its rows are not.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use roaring::RoaringBitmap;

use super::by_key::{ByKey, Gathered, RowsReport, check_schema, dedup_keys, refuse};
use super::encoder::{Encoder, encode_keyed_group};
use crate::base::planted::{Bug, planted};
use crate::base::{Progress, Result, Task};
use crate::block::{BlockWriter, EncodedRowGroup};
use crate::catalog::{Effect, Footprint, Path, Read, State};
use crate::memtable::{Keys, RowBytes};
use crate::segment::{Proof, join_batches};
use crate::store::change::delete::{delete_in_memory, positions};
use crate::store::commit::blocks::{UncommittedGroups, add_blocks};
use crate::store::commit::call::Call;
use crate::store::parts::Proposal;
use crate::store::read::resolve::{of_table, table_at};
use crate::store::{Store, WriteOptions};
use crate::table::{
    Checks, GroupId, Matches, NewGroup, PART_BYTES_MAX, Positions, ROWS_MAX, RowPlace, Schemes, StoredSchema,
    TableChange, TableCodec, TableState, VersionKind, batch_bytes, in_pieces,
};

/// Rows of a call, encoded, with their keys.
#[derive(Default)]
pub(in crate::store) struct Encoded {
    /// Each list ascending, of rows that were sorted together.
    pub keys: Vec<Arc<Keys>>,
    /// The row groups, in the order of the keys.
    pub groups: Vec<NewGroup>,
    pub rows: u64,
    /// The schema that the table had, and the one that it gets for these rows, if that is another.
    pub evolved: Option<(SchemaRef, StoredSchema)>,
    /// The checks that they keep; `None` for keys.
    pub checks: Option<Checks>,
}

/// The effects of a bulk write by key on one table, and what they depend on.
pub(in crate::store) struct BulkChange {
    pub footprint: Footprint,
    /// Applied before blocks are added.
    pub before: Vec<Effect>,
    pub change: TableChange,
}

/// A bulk write whose rows are on storage, waiting for its commit.
pub(in crate::store) struct PreparedBulk {
    pub footprint: Footprint,
    pub effects: Vec<Effect>,
    pub writer: BlockWriter,
    pub rows: u64,
}

impl ByKey {
    fn version_kind(self) -> VersionKind {
        match self {
            ByKey::Insert => VersionKind::Append,
            ByKey::Upsert => VersionKind::Upsert,
            ByKey::Delete => VersionKind::Delete,
        }
    }
}

impl Call<'_> {
    /// Writes what was gathered, and what is left of it, as row groups.
    pub fn write_many_by_key(
        self,
        what: ByKey,
        path: &Path,
        gathered: Gathered<'_>,
        options: &WriteOptions,
    ) -> Result<RowsReport> {
        let (store, codec, began) = (self.store, gathered.codec.clone(), self.began());
        let mut writer = store.block_writer()?.inline(store.options().inline_bytes);
        let encoded = store.encoder().encode_by_key(what, gathered, &mut writer, &options.task)?;
        writer.finish()?;
        let rows = encoded.rows;
        let (after, ()) = store.commit_placed(encoded, writer, |encoded, writer| {
            self.commit(|base| {
                let change = |base: &State| {
                    let table = table_at(base, path)?;
                    store.bulk_change(what, base, &table, &codec, path, encoded, &options.task)
                };
                let (base, _pin) = store.settled_state(base, path, encoded.evolved.is_some(), change)?;
                let (table, mut bulk) = (table_at(&base, path)?, change(&base)?);
                bulk.change.metadata.clone_from(&options.metadata);
                let (footprint, id, added) = (bulk.footprint.clone(), table.id, add_blocks(writer.written()));
                let effects = bulk.effects(id, added);
                Ok((Proposal::carried(base, footprint, effects).since(began), ()))
            })
        })?;
        Ok(RowsReport { seq: Some(after.seq), rows, version: Some(store.newest_info(&after, path)?), returned: None })
    }
}

impl Store {
    /// Encodes what was gathered, and what is left of it; returns what puts it into the table at `path` as it is in
    /// `state`.
    pub(in crate::store) fn prepare_bulk(
        &self,
        what: ByKey,
        state: &State,
        path: &Path,
        gathered: Gathered<'_>,
        options: &WriteOptions,
    ) -> Result<PreparedBulk> {
        let codec = gathered.codec.clone();
        let mut writer = self.block_writer()?.inline(self.options().inline_bytes);
        let encoded = self.encoder().encode_by_key(what, gathered, &mut writer, &options.task)?;
        let added = add_blocks(writer.finish()?);
        let table = &table_at(state, path)?;
        let mut bulk = self.bulk_change(what, state, table, &codec, path, &encoded, &options.task)?;
        bulk.change.metadata.clone_from(&options.metadata);
        let (footprint, rows) = (bulk.footprint.clone(), encoded.rows);
        Ok(PreparedBulk { footprint, effects: bulk.effects(table.id, added), writer, rows })
    }

    /// The changes that a bulk write makes to the table as it is in `state`.
    #[expect(clippy::too_many_arguments, reason = "what, where, and what it depends on")]
    pub(in crate::store) fn bulk_change(
        &self,
        what: ByKey,
        state: &State,
        table: &TableState,
        codec: &TableCodec,
        path: &Path,
        encoded: &Encoded,
        task: &Task,
    ) -> Result<BulkChange> {
        let expected = encoded.evolved.as_ref().map_or(codec.schema(), |(own, _)| own);
        check_schema(table, path, expected, encoded.checks.as_ref())?;
        let mut footprint = Footprint::default().with(Read::Binding(path.clone())).with(Read::Schema(table.id));
        let mut change = TableChange::new(what.version_kind());
        change.groups.clone_from(&encoded.groups);
        change.schema = encoded.evolved.as_ref().map(|(_, schema)| schema.clone());
        let mut in_memory = Keys::default();
        // Rows that have expired are replaced like others.
        let searcher = self.searcher(state, table, codec, &task.cancel);
        let searcher = if planted(Bug::LeaveExpired) { searcher } else { searcher.with_expired() };
        // By row group, so that at most one bit a row is held.
        let mut in_groups: BTreeMap<GroupId, RoaringBitmap> = BTreeMap::new();
        for keys in &encoded.keys {
            footprint = footprint.with(Read::Keys(table.id, keys.clone()));
            if what == ByKey::Insert {
                let expired = self.refuse_present(state, table, codec, keys, path, &task.cancel)?;
                if expired.is_empty() {
                    continue;
                }
            }
            let mut rows = RowBytes::default();
            let places = searcher.locate(keys, &mut rows).map_err(|e| of_table(path, e))?;
            let memory = (0..keys.len()).filter(|at| matches!(places[*at], RowPlace::Memory(_)));
            memory.for_each(|at| in_memory.push_key(keys.get(at)));
            for Matches { group, rows } in searcher.matches(&places) {
                *in_groups.entry(group).or_default() |= rows;
            }
        }
        let matches = in_groups.into_iter().map(|(group, rows)| Matches { group, rows });
        change.deletions = positions(matches.collect());
        let before = delete_in_memory(table, &in_memory)?;
        Ok(BulkChange { footprint, before, change })
    }
}

impl Encoder<'_> {
    /// Sorts, encodes and places rows; for a delete, only gathers keys.
    pub fn encode_by_key(
        &self,
        what: ByKey,
        gathered: Gathered<'_>,
        writer: &mut BlockWriter,
        task: &Task,
    ) -> Result<Encoded> {
        let Gathered { codec, schema, drawn, rest, evolved, checks, .. } = gathered;
        let slice_bytes = self.part_bytes().min(PART_BYTES_MAX);
        // A batch may be the whole frame.
        let mut batches = in_pieces(drawn.into_iter().map(Ok).chain(rest.into_iter().flatten()), slice_bytes / 4);
        let mut encoded = Encoded { evolved, checks, ..Encoded::default() };
        let mut done = Progress::default();
        // The number of row groups of each run.
        let mut runs: Vec<usize> = Vec::new();
        loop {
            let (mut slice, mut bytes): (Vec<RecordBatch>, u64) = (Vec::new(), 0);
            while bytes < slice_bytes
                && let Some(batch) = batches.next()
            {
                task.cancel.check()?;
                let batch = batch?;
                bytes += batch_bytes(&batch);
                slice.push(batch);
            }
            if slice.is_empty() {
                break;
            }
            let rows = slice.iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
            if rows == 0 {
                continue;
            }
            encoded.rows += rows;
            let (batch, keys) = dedup_keys(what, &codec, join_batches(&schema, &slice)?)?;
            drop(slice);
            encoded.replace_earlier(what, &codec, &keys)?;
            if what != ByKey::Delete {
                let before = encoded.groups.len();
                self.encode_slice(&codec, &batch, writer, &mut encoded, task, &mut done)?;
                let groups = encoded.groups.len() - before;
                match runs.last_mut() {
                    Some(run) if encoded.is_continued_by(&keys) => *run += groups,
                    _ => runs.push(groups),
                }
            }
            encoded.keys.push(Arc::new(keys));
        }
        if runs.len() > 1 {
            let mut groups = std::mem::take(&mut encoded.groups).into_iter();
            let runs = runs.into_iter().map(|rows| groups.by_ref().take(rows).collect()).collect();
            let encode = |rows: Vec<RecordBatch>, like: Option<&Schemes>| {
                encode_keyed_group(self.pool, &codec, join_batches(codec.schema(), &rows)?, like, Proof::Trusted)
            };
            let (schema, key) = (StoredSchema::plain(codec.schema().clone()), codec.key_schema());
            let key: Vec<String> = key.fields().iter().map(|field| field.name().clone()).collect();
            encoded.groups = self.merge_runs(runs, &schema, &key, &encode, writer, task)?;
        }
        Ok(encoded)
    }

    /// Encodes rows that are in order.
    fn encode_slice(
        &self,
        codec: &TableCodec,
        batch: &RecordBatch,
        writer: &mut BlockWriter,
        encoded: &mut Encoded,
        task: &Task,
        done: &mut Progress,
    ) -> Result<()> {
        let pool = self.pool;
        let groups = batch.num_rows().div_ceil(ROWS_MAX as usize).max(1);
        let (first, rest) = (batch.num_rows().div_ceil(groups), batch.num_rows());
        let slice = |at: usize| batch.slice(at, first.min(rest - at));
        // The encodings chosen for the first row group serve the others.
        let (head, like) = encode_keyed_group(pool, codec, slice(0), None, Proof::Trusted)?;
        let mut place = |group: EncodedRowGroup| {
            let rows = group.rows;
            let address = writer.push(group)?;
            encoded.groups.push(NewGroup { address, rows, dead: None });
            done.done += 1;
            done.rows += u64::from(rows);
            done.bytes += address.bytes();
            task.step(*done)
        };
        place(head)?;
        pool.ordered(
            (first..batch.num_rows()).step_by(first).map(|at| Ok(slice(at))),
            batch_bytes,
            pool.threads() * 2,
            self.memory_bytes / 4,
            |rows| {
                task.cancel.check()?;
                Ok(encode_keyed_group(pool, codec, rows, Some(&like), Proof::Trusted)?.0)
            },
            place,
        )
    }
}

impl BulkChange {
    /// The effects on the table.
    pub fn effects(&self, table: crate::base::TableId, blocks: Vec<Effect>) -> Vec<Effect> {
        let nothing = self.change.groups.is_empty() && self.change.deletions.is_empty() && self.before.is_empty();
        if self.change.kind == VersionKind::Delete && nothing {
            return Vec::new();
        }
        let change = Effect::ChangeTable { table, change: self.change.clone() };
        self.before.iter().cloned().chain(blocks).chain([change]).collect()
    }
}

impl UncommittedGroups for Encoded {
    fn groups(&mut self) -> impl Iterator<Item = &mut NewGroup> {
        self.groups.iter_mut()
    }
}

impl Encoded {
    /// Whether all of `keys`, ascending, come after those of the last slice.
    fn is_continued_by(&self, keys: &Keys) -> bool {
        let last = self.keys.last().filter(|last| !last.is_empty());
        let after = |last: &Arc<Keys>| keys.is_empty() || last.get(last.len() - 1) < keys.get(0);
        planted(Bug::SortParts) || last.is_none_or(after)
    }

    /// Marks rows of earlier slices with any of `keys`, ascending, as dead; an insert refuses them.
    fn replace_earlier(&mut self, what: ByKey, codec: &TableCodec, keys: &Keys) -> Result<()> {
        let mut first_group = 0;
        for earlier in &self.keys {
            let twice = common_places(earlier, keys);
            if what == ByKey::Insert {
                refuse(codec, earlier, &twice, "the data has more than one row with")?;
            }
            if what == ByKey::Delete {
                continue;
            }
            let mut twice = twice.into_iter().peekable();
            let mut start = 0;
            while start < earlier.len() {
                let group = &mut self.groups[first_group];
                let end = start + group.rows as usize;
                let dead: roaring::RoaringBitmap =
                    std::iter::from_fn(|| twice.next_if(|at| *at < end)).map(|at| (at - start) as u32).collect();
                if !dead.is_empty() {
                    let known = group.dead.take().map_or_else(Default::default, |known| (*known.0).clone());
                    group.dead = Some(Positions::from(known | dead));
                }
                (start, first_group) = (end, first_group + 1);
            }
        }
        Ok(())
    }
}

/// The places in `a` of keys that are in `b` too; both ascend.
fn common_places(a: &Keys, b: &Keys) -> Vec<usize> {
    let (mut i, mut j, mut common) = (0, 0, Vec::new());
    while i < a.len() && j < b.len() {
        match a.get(i).cmp(&b.get(j)) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => {
                common.push(i);
                (i, j) = (i + 1, j + 1);
            }
        }
    }
    common
}
