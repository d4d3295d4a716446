//! Histories: what commits wrote by key before a flush kept only the newest row of each key. Written next to the row groups
//! of the flush, and read back into a separate memtable when a time between two versions is requested.
//!
//! ```text
//! columns of a history: those of the table, all nullable; then
//!   time  Int64   the commit's time in microseconds since 1970 UTC
//!   kind  UInt8   0 a row; 1 a delete; 2 the row that the version has, whose other columns are null
//! ```
//! The rows are in the order of the key; for the same key, the newest first. There is one row per key and time.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, UInt8Array, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef, UInt8Type};

use super::part::MemRows;
use crate::base::{Cancel, Error, Pool, Result, Seq, Timestamp};
use crate::block::{Address, BlockReader};
use crate::memtable::{Keys, Memtable, Record, RowBytes};
use crate::segment::{Form, decode, interleave, take_batch};
use crate::table::state::instants::History;
use crate::table::{MemtablePart, ROWS_MAX, ReadPoint, Searcher, TableCodec, TableState};

/// The kind of a row that is written out.
pub(in crate::table) const ROW: u8 = 0;
const DELETE: u8 = 1;
const AS_VERSION: u8 = 2;

/// No commit is later.
const ALL: Seq = Seq(u64::MAX >> 1);

/// The schema of a history of rows of `schema`.
pub fn history_schema(schema: &Schema) -> SchemaRef {
    let mut fields: Vec<Field> = schema.fields().iter().map(|field| Field::clone(field).with_nullable(true)).collect();
    // Identified by position: a column of the table may have any name.
    fields.push(Field::new("time", DataType::Int64, false));
    fields.push(Field::new("kind", DataType::UInt8, false));
    Arc::new(Schema::new(fields))
}

/// The places of puts and of deletes in a batch.
type BatchPlaces = (Vec<u32>, Vec<u32>);

/// Records collected for a batch.
#[derive(Default)]
struct RecordBuffer {
    keys: Keys,
    /// The rows that are written out, and for each record its row, if it has one.
    row_keys: Keys,
    rows: RowBytes,
    row: Vec<Option<u32>>,
    times: Vec<i64>,
    kinds: Vec<u8>,
}

impl RecordBuffer {
    fn push(&mut self, record: Record<'_, std::sync::atomic::AtomicU64>, time: Timestamp, as_version: bool) {
        record.copy_key(&mut self.keys);
        self.times.push(time.0);
        self.kinds.push(match (record.is_delete(), as_version) {
            (true, _) => DELETE,
            (false, true) => AS_VERSION,
            (false, false) => ROW,
        });
        let written = !record.is_delete() && !as_version;
        self.row.push(written.then_some(self.rows.len() as u32));
        if written {
            record.copy_key(&mut self.row_keys);
            self.rows.push_with(|out| record.copy_row(out));
        }
    }

    fn into_batch(self, codec: &TableCodec) -> Result<RecordBatch> {
        let schema = codec.schema();
        let columns: Vec<usize> = (0..schema.fields().len()).collect();
        let others: Vec<usize> = columns.iter().copied().filter(|column| !codec.is_key(*column)).collect();
        let keys: Vec<usize> = columns.iter().copied().filter(|column| codec.is_key(*column)).collect();
        let mut arrays: BTreeMap<usize, ArrayRef> = BTreeMap::new();
        arrays.extend(keys.iter().copied().zip(codec.decode(&self.keys, &RowBytes::default(), &keys)?));
        let row = UInt32Array::from(self.row);
        for (column, array) in others.iter().copied().zip(codec.decode_others(&self.rows, &others)?) {
            arrays.insert(column, take(&array, &row, None)?);
        }
        let times: ArrayRef = Arc::new(Int64Array::from(self.times));
        let kinds: ArrayRef = Arc::new(UInt8Array::from(self.kinds));
        Ok(RecordBatch::try_new(history_schema(schema), arrays.into_values().chain([times, kinds]).collect())?)
    }
}

/// The records of a part up to the commit `seq`, in batches of row groups; decoded as they are pulled. If `as_version`, the newest row of
/// a key is the one in the part's version, and not written out.
pub fn history_rows(part: &MemtablePart, as_version: bool, seq: Seq) -> impl Iterator<Item = Result<RecordBatch>> + '_ {
    let rows = part.rows();
    let times = rows.times();
    let mut newest = rows.memtable.range(None, None, seq);
    // The next record of the current key, and the time of the one before it.
    let mut under_way: Option<(Record<'_, _>, Timestamp)> = None;
    std::iter::from_fn(move || {
        let mut chunk = RecordBuffer::default();
        while chunk.kinds.len() < ROWS_MAX as usize {
            match under_way.take() {
                Some((record, later)) => {
                    let time = times.at(record.seq());
                    if time < later {
                        chunk.push(record, time, false);
                    }
                    under_way = record.before().map(|before| (before, time.min(later)));
                }
                None => {
                    let Some(record) = newest.next() else { break };
                    let time = times.at(record.seq());
                    chunk.push(record, time, as_version);
                    under_way = record.before().map(|before| (before, time));
                }
            }
        }
        (!chunk.kinds.is_empty()).then(|| chunk.into_batch(&rows.codec))
    })
}

/// Reads a history back into a memtable, whose commits are numbered from 1 by their times.
pub fn read_history(reader: &BlockReader, pool: &Pool, table: &TableState, history: &History) -> Result<Arc<MemRows>> {
    let Some((first, _)) = history.groups.first() else { return Err(Error::corrupt("a history has no rows")) };
    reader.derived(first, || {
        if !table.spec.keyed {
            return Err(Error::corrupt("a table without a key has a history"));
        }
        let schema = &table.schemas[history.schema as usize];
        let codec = table.codec_of(&schema.0, schema.order(&table.spec))?;
        let schema = history_schema(codec.schema());
        let read = |(address, rows): &(Address, u32)| decode_group(reader, &schema, address, *rows);
        let batches = pool.map(history.groups.iter().collect(), read)?;
        let rows = into_memory(reader, pool, table, history, codec, &batches)?;
        let bytes = rows.memtable.bytes();
        Ok((rows, bytes))
    })
}

pub(in crate::table) fn decode_group(
    reader: &BlockReader,
    schema: &SchemaRef,
    address: &Address,
    rows: u32,
) -> Result<RecordBatch> {
    let directory = reader.directory(address)?;
    let columns: Vec<usize> = (0..schema.fields().len()).collect();
    if directory.columns.len() != columns.len() || directory.rows != rows {
        return Err(Error::corrupt(format!("block {}: the directory does not match its history", address.block)));
    }
    let segments = reader.segments(address, &directory, &columns)?;
    let arrays = segments
        .into_iter()
        .zip(schema.fields())
        .map(|(bytes, field)| decode(bytes, rows as usize, field.data_type(), Form::Exact))
        .collect::<Result<Vec<_>>>()?;
    RecordBatch::try_new(schema.clone(), arrays).map_err(|e| Error::corrupt(format!("a history is damaged: {e}")))
}

fn into_memory(
    reader: &BlockReader,
    pool: &Pool,
    table: &TableState,
    history: &History,
    codec: Arc<TableCodec>,
    batches: &[RecordBatch],
) -> Result<MemRows> {
    let width = codec.schema().fields().len();
    // For each time, the places of its puts and deletes, by batch.
    let mut by_time: BTreeMap<i64, Vec<BatchPlaces>> = BTreeMap::new();
    let mut wholes = Vec::with_capacity(batches.len());
    for (at, batch) in batches.iter().enumerate() {
        let times = batch.column(width).as_primitive::<Int64Type>();
        let kinds = batch.column(width + 1).as_primitive::<UInt8Type>();
        if times.null_count() + kinds.null_count() > 0 {
            return Err(Error::corrupt("a record of a history has no time or no kind"));
        }
        for (row, (time, kind)) in times.values().iter().zip(kinds.values()).enumerate() {
            let places = by_time.entry(*time).or_insert_with(|| vec![Default::default(); batches.len()]);
            match *kind {
                ROW | AS_VERSION => places[at].0.push(row as u32),
                DELETE => places[at].1.push(row as u32),
                other => return Err(Error::corrupt(format!("a record of a history has the unknown kind {other}"))),
            }
        }
        let rows = batch.project(&(0..width).collect::<Vec<_>>())?;
        wholes.push(with_rows_of_version(reader, pool, table, history, &codec, rows, kinds)?);
    }
    let rows = MemRows::new(Memtable::new(), codec.clone());
    for (rank, (time, places)) in (1..).zip(by_time) {
        for (whole, (puts, deletes)) in wholes.iter().zip(places) {
            let take = |places: Vec<u32>| take_batch(whole, places);
            if !deletes.is_empty() {
                let (keys, _) = codec.keys_of(&take(deletes)?)?;
                rows.memtable.insert(&keys, None, Seq(rank))?;
            }
            if !puts.is_empty() {
                let batch = RecordBatch::try_new(codec.schema().clone(), take(puts)?.columns().to_vec())
                    .map_err(|e| Error::corrupt(format!("a history is damaged: {e}")))?;
                let (keys, bytes) = codec.encode(&batch)?;
                rows.memtable.insert(&keys, Some(&bytes), Seq(rank))?;
            }
        }
        rows.note(Seq(rank), Timestamp(time));
    }
    Ok(rows)
}

/// `rows`, with those filled in that are equal to the row in the history's version.
fn with_rows_of_version(
    reader: &BlockReader,
    pool: &Pool,
    table: &TableState,
    history: &History,
    codec: &TableCodec,
    rows: RecordBatch,
    kinds: &UInt8Array,
) -> Result<RecordBatch> {
    let open: Vec<u32> = (0..).zip(kinds.values()).filter(|(_, kind)| **kind == AS_VERSION).map(|(at, _)| at).collect();
    if open.is_empty() {
        return Ok(rows);
    }
    let read_point = ReadPoint { version: history.version, since: false, seq: ALL, instant: None };
    let cancel = Cancel::default();
    let searcher = Searcher { reader, pool, table, read_point, codec, cancel: &cancel };
    let (keys, key_columns) = codec.keys_of(&take_batch(&rows, open.iter().copied())?)?;
    let found = searcher.get_many(&keys, &key_columns, None)?;
    if found.found.false_count() > 0 {
        return Err(Error::corrupt("a history refers to a row that its version does not have"));
    }
    // The place of each row: in the history, or among those found.
    let mut places: Vec<(usize, usize)> = (0..rows.num_rows()).map(|row| (0, row)).collect();
    for (at, row) in open.into_iter().enumerate() {
        places[row as usize] = (1, at);
    }
    let schema = rows.schema();
    let columns = rows.columns().iter().zip(schema.fields()).map(|(own, field)| {
        let other = found.rows.column_by_name(field.name()).expect("of the same columns");
        interleave(&[own.clone(), other.clone()], &places)
    });
    let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
    Ok(RecordBatch::try_new(schema.clone(), columns)?)
}
