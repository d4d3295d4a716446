//! What all writes by key have in common: what is done, the data of a call, and how keys that must be new are refused.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::base::{Cancel, Error, Result, Seq};
use crate::catalog::{Path, State};
use crate::memtable::{Keys, RowBytes};
use crate::segment::take_batch;
use crate::store::read::resolve::{newest, of_table};
use crate::store::write::numbers::Numbering;
use crate::store::{Store, VersionInfo};
use crate::table::{Checks, RowPlace, Searcher, StoredSchema, TableCodec, TableState};

/// What a write by key did.
#[derive(Clone, Debug, PartialEq)]
pub struct RowsReport {
    /// The commit. `None` in a transaction.
    pub seq: Option<Seq>,
    /// Rows written, or keys deleted, whether they existed or not.
    pub rows: u64,
    /// The version that it made, if it wrote row groups. Rows written without row groups belong to the version that the
    /// next checkpoint, snapshot or bulk write numbers.
    pub version: Option<VersionInfo>,
    /// The rows as they are after the call, one for each key, in the order in which the keys were given; before it, if they were deleted.
    /// `None` if [`crate::store::WriteOptions::returning`] does not ask for them.
    pub returned: Option<RecordBatch>,
}

/// What is done by key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum ByKey {
    /// Rows with keys that must be new.
    Insert,
    /// Rows that replace those with the same keys, if there are any.
    Upsert,
    /// Keys to delete, if they exist.
    Delete,
}

/// The data of a call, in the table's schema.
pub(in crate::store) struct Gathered<'a> {
    pub codec: Arc<TableCodec>,
    /// Whole rows, key columns, or rows with some of the columns.
    pub schema: SchemaRef,
    /// If rows have some of the columns, and keep what they have in the others: where new ones get numbers from.
    pub partial: Option<Numbering>,
    /// The batches pulled so far.
    pub drawn: Vec<RecordBatch>,
    /// The rest, to be pulled, if that was not all.
    pub rest: Option<Box<dyn Iterator<Item = Result<RecordBatch>> + 'a>>,
    /// The schema that the table had, and the one that it gets for these rows, if that is another.
    pub evolved: Option<(SchemaRef, StoredSchema)>,
    /// The checks that they keep; `None` for keys.
    pub checks: Option<Checks>,
}

impl Store {
    /// `AlreadyExists`, naming keys, if a table has rows with any of `keys`. Returns those of the keys that have rows which have expired, and
    /// are still there: they must go with the commit.
    pub(in crate::store) fn refuse_present(
        &self,
        state: &State,
        table: &TableState,
        codec: &TableCodec,
        keys: &Keys,
        path: &Path,
        cancel: &Cancel,
    ) -> Result<Keys> {
        let found = |searcher: &Searcher<'_>| -> Result<Vec<usize>> {
            let places = searcher.locate(keys, &mut RowBytes::default()).map_err(|e| of_table(path, e))?;
            Ok((0..keys.len()).filter(|at| places[*at] != RowPlace::Nowhere).collect())
        };
        let stored = found(&self.searcher(state, table, codec, cancel).with_expired())?;
        // Most keys are new: then there is nothing of which the times must be read.
        if stored.is_empty() {
            return Ok(Keys::default());
        }
        let present = match table.expires() {
            true => found(&self.searcher(state, table, codec, cancel))?,
            false => stored.clone(),
        };
        refuse(codec, keys, &present, &format!("'{path}' already has rows with"))?;
        Ok(keys.take(stored.into_iter()))
    }

    /// Searches the newest rows of `table`, a table of `state`.
    pub(in crate::store) fn searcher<'a>(
        &'a self,
        state: &State,
        table: &'a TableState,
        codec: &'a TableCodec,
        cancel: &'a Cancel,
    ) -> Searcher<'a> {
        let (reader, pool, read_point) = (self.reader(), &self.env().pool, newest(self, state, table));
        Searcher { reader, pool, table, read_point, codec, cancel }
    }
}

/// `Conflict` if the table is not as rows were prepared for it: with this schema and, of rows rather than keys, these checks.
pub(in crate::store) fn check_schema(
    table: &TableState,
    path: &Path,
    expected: &SchemaRef,
    checks: Option<&Checks>,
) -> Result<()> {
    let same_checks = |checks: &Checks| table.schema().is_some_and(|own| own.has_checks(checks));
    let same = table.codec().ok().is_some_and(|codec| codec.schema() == expected);
    match same && checks.is_none_or(same_checks) {
        true => Ok(()),
        false => Err(Error::conflict(format!("the schema of '{path}' changed during the call"))),
    }
}

/// The rows of a batch in the order of their keys, without those whose keys occur again later in it, and the keys; an
/// insert refuses such keys.
pub(in crate::store) fn dedup_keys(what: ByKey, codec: &TableCodec, batch: RecordBatch) -> Result<(RecordBatch, Keys)> {
    let keys = codec.keys_of(&batch)?.0;
    let mut order = keys.sorted_places();
    let sorted = keys.take(order.iter().map(|at| *at as usize));
    let mut twice: Vec<usize> = (1..order.len()).filter(|at| sorted.get(at - 1) == sorted.get(*at)).collect();
    if what == ByKey::Insert {
        refuse(codec, &sorted, &twice, "the data has more than one row with")?;
    }
    if twice.is_empty() {
        let batch = if keys == sorted { batch } else { take_batch(&batch, order)? };
        return Ok((batch, sorted));
    }
    // Of rows with the same key the last one counts.
    twice.iter_mut().for_each(|at| *at -= 1);
    let mut dead = twice.into_iter().peekable();
    let kept: Vec<usize> = (0..order.len()).filter(|at| dead.next_if_eq(at).is_none()).collect();
    let keys = sorted.take(kept.iter().copied());
    order = kept.into_iter().map(|at| order[at]).collect();
    Ok((take_batch(&batch, order)?, keys))
}

/// `AlreadyExists` if two rows of `batch` have the same key.
pub(in crate::store) fn check_distinct(codec: &TableCodec, batch: &RecordBatch) -> Result<()> {
    dedup_keys(ByKey::Insert, codec, batch.clone()).map(drop)
}

/// `AlreadyExists`, naming the keys at `places`, if there are any places.
pub(in crate::store) fn refuse(codec: &TableCodec, keys: &Keys, places: &[usize], what: &str) -> Result<()> {
    if places.is_empty() {
        return Ok(());
    }
    let named = codec.key_codec().describe_some(places.iter().map(|at| keys.get(*at)));
    let key = if places.len() == 1 { "the key" } else { "the keys" };
    Err(Error::already_exists(format!("{what} {key} {named}; nothing was written")))
}
