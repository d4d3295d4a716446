//! The rows that one version changed, for a feed of rows.

use std::sync::Arc;

use arrow::array::{Array, BooleanArray, RecordBatch, StringArray};
use arrow::buffer::BooleanBuffer;
use arrow::compute::filter_record_batch;

use crate::base::planted::{Bug, planted};
use crate::base::{Cancel, Result, Seq, Timestamp, Version};
use crate::catalog::State;
use crate::filter::{Filter, is_true};
use crate::memtable::{Key, Keys};
use crate::store::Store;
use crate::store::read::diff::Diff;
use crate::table::{
    History, KeyChanges, MemRows, MemtablePart, ReadPoint, Searcher, StoredSchema, TableCodec, TableState, VersionKind,
    View,
};

/// The rows of keys that are compared at a time after a version that changed rows which were in memory.
const KEYS_MAX: usize = 8192;

/// A version of which not all was handed out yet.
pub(super) struct OpenVersion {
    pub version: Version,
    pub kind: VersionKind,
    pub time: Timestamp,
    /// The schema before, by which rows expire.
    pub before: StoredSchema,
    /// By which rows are chosen.
    pub filter: Option<Filter>,
    /// Keys that were written since the version before, which are compared one by one.
    pub keys: Option<WrittenKeys>,
    /// What was found to see whether there is more.
    pub ahead: Option<(RecordBatch, StringArray)>,
    /// How many rows were handed out.
    pub done: usize,
    pub diff: Diff,
}

/// Rows of a version that were in memory before.
pub(super) struct WrittenKeys {
    /// Ascending.
    pub keys: Keys,
    /// How many were compared.
    pub done: usize,
    pub codec: Arc<TableCodec>,
    pub before: View,
    pub after: View,
}

/// Where the rows are that were written by key between two versions.
pub(super) enum Source<'a> {
    Memory(&'a MemtablePart),
    History(&'a History),
}

/// The last commit of which a source may have rows.
pub(super) fn last_seq(source: &Source<'_>, state: &State) -> Seq {
    match source {
        Source::Memory(_) => state.seq,
        Source::History(_) => Seq(u64::MAX >> 1),
    }
}

/// The table as it was while the rows of a source were written.
pub(super) fn while_written(table: &TableState, source: &Source<'_>, rows: Arc<MemRows>) -> TableState {
    match source {
        Source::Memory(part) => table.up_to(part),
        Source::History(history) => table.with_history(history, rows),
    }
}

impl OpenVersion {
    /// The next rows; `None` at its end.
    pub fn next(&mut self, store: &Store, cancel: &Cancel) -> Result<Option<(RecordBatch, StringArray)>> {
        if let Some(ahead) = self.ahead.take() {
            return Ok(Some(ahead));
        }
        loop {
            let (rows, changes) = match self.next_by_key(store, cancel)? {
                Some(found) => found,
                None => match self.diff.next_changes()? {
                    None => return Ok(None),
                    Some((rows, changes, _)) => self.not_by_key(rows, changes)?,
                },
            };
            let (rows, changes) = selected(&self.before, self.filter.as_ref(), self.time, rows, changes)?;
            if rows.num_rows() > 0 {
                return Ok(Some((rows, changes)));
            }
        }
    }

    /// Whether all was handed out.
    pub fn is_done(&mut self, store: &Store, cancel: &Cancel) -> Result<bool> {
        self.ahead = self.next(store, cancel)?;
        Ok(self.ahead.is_none())
    }

    /// What became of the next keys that had been written since the version before.
    fn next_by_key(&mut self, store: &Store, cancel: &Cancel) -> Result<Option<(RecordBatch, StringArray)>> {
        let Some(by_key) = &mut self.keys else { return Ok(None) };
        let from = by_key.done;
        if from >= by_key.keys.len() {
            return Ok(None);
        }
        let until = (from + KEYS_MAX).min(by_key.keys.len());
        by_key.done = until;
        let keys = by_key.keys.take(from..until);
        let WrittenKeys { codec, before, after, .. } = &*by_key;
        let of = |view: &View| rows_of(store, &view.table, view.read_point, codec, &keys, cancel);
        let mut changes = KeyChanges::default();
        for (at, (before, after)) in of(before)?.into_iter().zip(of(after)?).enumerate() {
            changes.add(&keys.take(std::iter::once(at)), before.as_deref(), after.as_deref());
        }
        decoded(codec, changes).map(Some)
    }

    /// The rows of others.
    fn not_by_key(&self, rows: RecordBatch, changes: StringArray) -> Result<(RecordBatch, StringArray)> {
        let Some(by_key) = &self.keys else { return Ok((rows, changes)) };
        let (keys, _) = by_key.codec.keys_of(&rows)?;
        let own = |at: usize| !has(&by_key.keys, keys.get(at));
        kept(&rows, &changes, BooleanBuffer::collect_bool(rows.num_rows(), own))
    }
}

/// The rows of keys, as bytes, of what is seen of a table.
pub(super) fn rows_of(
    store: &Store,
    table: &TableState,
    read_point: ReadPoint,
    codec: &TableCodec,
    keys: &Keys,
    cancel: &Cancel,
) -> Result<Vec<Option<Vec<u8>>>> {
    let (reader, pool) = (store.reader(), &store.env().pool);
    let searcher = Searcher { reader, pool, table, read_point, codec, cancel };
    let key_columns = codec.key_codec().decode(keys.iter())?;
    let found = searcher.get_many(keys, &key_columns, None)?;
    let there = filter_record_batch(&found.rows, &found.found)?;
    let exact = RecordBatch::try_new(codec.schema().clone(), there.columns().to_vec())?;
    let (_, bytes) = codec.encode(&exact)?;
    let mut next = 0..;
    let row =
        |found: Option<bool>| found.unwrap_or_default().then(|| bytes.get(next.next().unwrap_or_default()).to_vec());
    Ok(found.found.iter().map(row).collect())
}

pub(super) fn decoded(codec: &TableCodec, changes: KeyChanges) -> Result<(RecordBatch, StringArray)> {
    let columns: Vec<usize> = (0..codec.schema().fields().len()).collect();
    let columns = codec.decode(&changes.keys, &changes.rows, &columns)?;
    let rows = RecordBatch::try_new(codec.schema().clone(), columns)?;
    Ok((rows, StringArray::from_iter_values(&changes.changes)))
}

/// Those rows for which the filter is true, before or after they were changed. What takes the place of a row that had expired at `time` is
/// new.
pub(super) fn selected(
    schema: &StoredSchema,
    filter: Option<&Filter>,
    time: Timestamp,
    rows: RecordBatch,
    changes: StringArray,
) -> Result<(RecordBatch, StringArray)> {
    let changes = match schema.expired_at(time) {
        Some(expired) if !planted(Bug::FeedUpdatesExpired) => {
            let expired = truth_of(&expired, &rows)?;
            let before = |at: usize| changes.value(at) == "update_before" && expired.value(at);
            StringArray::from_iter_values((0..changes.len()).map(|at| match changes.value(at) {
                "update_before" if before(at) => "delete",
                "update_after" if at > 0 && before(at - 1) => "insert",
                other => other,
            }))
        }
        _ => changes,
    };
    let Some(filter) = filter else { return Ok((rows, changes)) };
    let mut chosen: Vec<bool> = truth_of(filter, &rows)?.iter().collect();
    for at in (1..chosen.len()).filter(|at| changes.value(*at) == "update_after") {
        let either = match planted(Bug::FeedFiltersAfter) {
            true => chosen[at],
            false => chosen[at] || chosen[at - 1],
        };
        (chosen[at - 1], chosen[at]) = (either, either);
    }
    kept(&rows, &changes, BooleanBuffer::from(chosen))
}

/// The rows for which a filter is true.
pub(super) fn truth_of(filter: &Filter, rows: &RecordBatch) -> Result<BooleanBuffer> {
    let bound = filter.bind(&rows.schema())?;
    let columns = rows.project(bound.columns())?;
    Ok(is_true(&bound.evaluate(&columns)?))
}

/// Whether a key is among others, which are in order.
pub(super) fn has(keys: &Keys, key: Key<'_>) -> bool {
    let (mut from, mut until) = (0, keys.len());
    while from < until {
        let at = from.midpoint(until);
        match keys.get(at).cmp(&key) {
            std::cmp::Ordering::Less => from = at + 1,
            std::cmp::Ordering::Greater => until = at,
            std::cmp::Ordering::Equal => return true,
        }
    }
    false
}

pub(super) fn kept(
    rows: &RecordBatch,
    changes: &StringArray,
    chosen: BooleanBuffer,
) -> Result<(RecordBatch, StringArray)> {
    let chosen = BooleanArray::new(chosen, None);
    let changes = arrow::compute::filter(changes, &chosen)?;
    let changes = arrow::array::AsArray::as_string::<i32>(&changes).clone();
    Ok((filter_record_batch(rows, &chosen)?, changes))
}
