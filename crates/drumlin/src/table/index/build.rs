//! Makes a run: reads the columns of an index in some row groups, sorts their entries, and encodes them in pages.
//!
//! Each row group is read by a thread of the pool; *sorting.rs* puts the entries into order. All rows have an entry, dead ones too, so that
//! every version is served. What cannot be computed for a row group (an overflow, for example) leaves that one out.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, UInt32Array};
use arrow::compute::{and, concat, filter_record_batch, not};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type};

use super::definition::{BoundIndex, IndexDefinition};
use super::fences::PAGE_ENTRIES;
use super::pages::place_of;
use super::run::COVERS_MAX;
use super::sorting::merged_entries;
use crate::base::planted::{Bug, planted};
use crate::base::{Cancel, Error, ErrorKind, Pool, Result};
use crate::block::{Address, BlockReader, EncodedRowGroup};
use crate::segment::{Form, encode, plain_type};
use crate::table::read::group_reader::GroupReader;
use crate::table::schema::arrays::into_type;
use crate::table::{GroupId, RowGroup, Rows, TableState};

/// Values of more bytes are not stored: a row with one is always taken for a hit.
pub(in crate::table) const LONG_BYTES: usize = 256;

/// The column of entries with their places.
const PLACE: &str = "place";

/// A run, before it is placed in blocks.
pub struct BuiltRun {
    /// Its parts.
    pub parts: Vec<EncodedRowGroup>,
    /// How many at the end are open.
    pub open: u32,
    /// The deciding layers of the row groups that it covers.
    pub covers: Vec<Address>,
    /// Row groups for which it could not be computed.
    pub left_out: Vec<GroupId>,
}

/// The entries of a row group, places being rows.
pub(in crate::table) struct GroupEntries {
    /// Those with values, by row.
    pub closed: RecordBatch,
    /// The rows with values that are too long.
    pub open: Vec<u32>,
}

/// Makes a run of `groups`, in the types of the table's schema at `schema`. Memory: the entries, several times.
///
/// # Errors
/// `Corrupt`, `Unavailable` or `SnapshotExpired` if a row group cannot be read; `Cancelled`.
pub fn build_run(
    reader: &BlockReader,
    pool: &Pool,
    table: &TableState,
    definition: &IndexDefinition,
    schema: u32,
    groups: &[Arc<RowGroup>],
    cancel: &Cancel,
) -> Result<BuiltRun> {
    let (columns, seen) = (definition.columns()?, &table.schemas[schema as usize]);
    let named = definition.named(seen)?;
    let Some(named) = named else { return Err(Error::invalid("the schema lacks a column of the index")) };
    let bound = named.bound(seen)?;
    reader.fetch_directories(groups.iter().flat_map(|group| group.addresses()));
    if reader.fetches() {
        let open = groups.iter().map(|group| GroupReader::with_schemas(reader, &table.schemas, seen, group));
        // What is wrong with one shows when it is read.
        let opened: Vec<GroupReader<'_>> = open.filter_map(Result::ok).collect();
        reader.fetch(opened.iter().flat_map(|group| group.wanted(&seen.0, &bound.columns)));
    }
    let read = |group: &Arc<RowGroup>| {
        cancel.check()?;
        let Some(decided) = group.decided_by(&table.schemas, columns) else { return Ok(None) };
        let opened = GroupReader::with_schemas(reader, &table.schemas, seen, group)?;
        let rows =
            if planted(Bug::IndexLiveRows) { table.newest().map(|v| table.visible(group, v.version)) } else { None };
        match entries_of(&opened, &bound) {
            Ok(entries) => Ok(Some((*decided, of_rows(entries, rows)?))),
            Err(e) if is_of_values(&e) => Ok(None),
            Err(e) => Err(e),
        }
    };
    let read = pool.map(groups.iter().collect(), |group| Ok((group.id, read(group)?)))?;
    let (mut covers, mut closed, mut open_places, mut left_out) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (group, found) in read {
        let Some((cover, entries)) = found.filter(|_| covers.len() < COVERS_MAX) else {
            left_out.push(group);
            continue;
        };
        let ordinal = covers.len() as u32;
        covers.push(cover);
        closed.push(at_ordinal(entries.closed, ordinal)?);
        open_places.extend(entries.open.into_iter().map(|row| place_of(ordinal, row)));
    }
    let schema = entry_schema(&bound);
    let names: Vec<String> = bound.schema.fields().iter().map(|field| field.name().clone()).collect();
    let mut batches = merged_entries(pool, schema, &names, closed)?;
    if planted(Bug::DropEntry)
        && let Some(last) = batches.last_mut()
    {
        *last = last.slice(0, last.num_rows() - 1);
    }
    cancel.check()?;
    let mut parts = pool.map(batches, |batch| encoded(batch.columns(), batch.num_rows()))?;
    let mut open = 0;
    for places in open_places.chunks(crate::table::ROWS_MAX as usize) {
        parts.push(encoded(&[Arc::new(UInt32Array::from(places.to_vec()))], places.len())?);
        open += 1;
    }
    Ok(BuiltRun { parts, open, covers, left_out })
}

/// Whether an error says that a value cannot be computed.
fn is_of_values(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::InvalidArgument | ErrorKind::SchemaMismatch)
}

/// The values of an entry, and its place.
pub(in crate::table) fn entry_schema(bound: &BoundIndex) -> SchemaRef {
    let place = Arc::new(Field::new(PLACE, DataType::UInt32, false));
    let fields = bound.schema.fields().iter().cloned().chain([place]);
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The entries of an open row group.
pub(in crate::table) fn entries_of(group: &GroupReader<'_>, bound: &BoundIndex) -> Result<GroupEntries> {
    let (rows, schema) = (group.group.rows, group.seen_schema());
    let arrays = group.decode(schema, &bound.columns, Form::Exact)?;
    let names = bound.columns.iter().map(|at| schema.field(*at).name());
    let batch = RecordBatch::try_from_iter_with_nullable(names.zip(arrays).map(|(name, array)| (name, array, true)))?;
    let computed = bound.values(&batch);
    let (values, wanted) = match computed {
        Err(e) if is_of_values(&e) && planted(Bug::FailedAsNull) => {
            let null =
                |field: &arrow::datatypes::FieldRef| arrow::array::new_null_array(field.data_type(), rows as usize);
            (bound.schema.fields().iter().map(null).collect(), None)
        }
        computed => computed?,
    };
    let long = long_rows(&values)?;
    let places: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..rows));
    let all = RecordBatch::try_new(entry_schema(bound), values.into_iter().chain([places]).collect())?;
    let all = match &wanted {
        Some(wanted) => filter_record_batch(&all, wanted)?,
        None => all,
    };
    let Some(long) = long else { return Ok(GroupEntries { closed: all, open: Vec::new() }) };
    let long = match &wanted {
        Some(wanted) => arrow::compute::filter(&long, wanted)?.as_boolean().clone(),
        None => long,
    };
    let open = filter_record_batch(&all, &long)?;
    let open = open.column(open.num_columns() - 1).as_primitive::<UInt32Type>().values().to_vec();
    Ok(GroupEntries { closed: filter_record_batch(&all, &not(&long)?)?, open })
}

/// The rows that have a value which is too long to be stored; `None` if there are none.
fn long_rows(values: &[ArrayRef]) -> Result<Option<BooleanArray>> {
    let mut long: Option<BooleanArray> = None;
    for value in values {
        let Some(plain) = plain_type(value.data_type()) else { continue };
        let plain = into_type(value.clone(), &plain)?;
        let offsets = match plain.data_type() {
            DataType::Utf8 => plain.as_string::<i32>().value_offsets().to_vec(),
            _ => plain.as_binary::<i32>().value_offsets().to_vec(),
        };
        let is_long = |pair: &[i32]| (pair[1] - pair[0]) as usize > LONG_BYTES;
        if offsets.windows(2).any(is_long) {
            let own = BooleanArray::from(offsets.windows(2).map(is_long).collect::<Vec<_>>());
            // A null may have bytes.
            let own = and(&own, &arrow::compute::is_not_null(&plain)?)?;
            long = Some(match long {
                Some(long) => arrow::compute::or(&long, &own)?,
                None => own,
            });
        }
    }
    Ok(long.filter(|long| long.true_count() > 0))
}

/// Those entries whose rows are among these.
fn of_rows(entries: GroupEntries, rows: Option<Rows>) -> Result<GroupEntries> {
    let Some(Rows::Some(rows)) = rows else { return Ok(entries) };
    let places = entries.closed.column(entries.closed.num_columns() - 1).as_primitive::<UInt32Type>().clone();
    let kept = BooleanArray::from(places.values().iter().map(|row| rows.contains(*row)).collect::<Vec<_>>());
    Ok(GroupEntries { closed: filter_record_batch(&entries.closed, &kept)?, ..entries })
}

/// The entries with their places in the run.
fn at_ordinal(entries: RecordBatch, ordinal: u32) -> Result<RecordBatch> {
    let (schema, mut columns, _) = entries.into_parts();
    let rows = columns.pop().expect("the places");
    let places = rows.as_primitive::<UInt32Type>().unary::<_, UInt32Type>(|row| place_of(ordinal, row));
    columns.push(Arc::new(places));
    Ok(RecordBatch::try_new(schema, columns)?)
}

/// A part of a run, in pages.
pub(in crate::table) fn encoded(columns: &[ArrayRef], rows: usize) -> Result<EncodedRowGroup> {
    let mut segments = Vec::new();
    for start in (0..rows).step_by(PAGE_ENTRIES as usize) {
        let count = (rows - start).min(PAGE_ENTRIES as usize);
        for column in columns {
            // A slice keeps what it is cut from.
            segments.push(encode(&concat(&[&column.slice(start, count)])?)?);
        }
    }
    Ok(EncodedRowGroup { rows: rows as u32, segments, filter: None })
}
