//! Compares a run with the row groups that it covers.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::UInt32Type;
use bytes::Bytes;

use super::build::{entries_of, entry_schema};
use super::fences::pages_of;
use super::mask::{ROW_BITS, places_of};
use super::run::{IndexRun, TableIndex};
use crate::base::Result;
use crate::block::{Address, BlockReader};
use crate::segment::{Form, decode};
use crate::table::order::sort_columns::sorted_positions;
use crate::table::read::group_reader::GroupReader;
use crate::table::{RowGroup, TableState};

/// Reads all entries of a run, bypassing the cache, and compares them with what the row groups have. Returns what is wrong.
///
/// # Errors
/// As reads of row groups.
pub fn check_run(reader: &BlockReader, table: &TableState, index: &TableIndex, run: &IndexRun) -> Result<Vec<String>> {
    let name = &index.definition.name;
    let mut faults = Vec::new();
    let mut fault = |what: String| faults.push(format!("index '{name}', run {}: {what}", run.id));
    let seen = &table.schemas[run.schema as usize];
    let Some(named) = index.definition.named(seen)? else {
        fault("its schema lacks a column of the index".to_owned());
        return Ok(faults);
    };
    let bound = named.bound(seen)?;
    let values = bound.schema.fields().len();
    let (mut closed, mut open): (Vec<RecordBatch>, Vec<u32>) = (Vec::new(), Vec::new());
    let schema = entry_schema(&bound);
    for (part, (address, entries)) in run.parts.iter().enumerate() {
        let encoded = reader.row_groups(std::slice::from_ref(address))?.remove(0);
        let width = if run.is_open(part) { 1 } else { values + 1 };
        if encoded.rows != *entries || encoded.segments.len() != pages_of(*entries).count() * width {
            fault(format!("block {}: a part has another number of entries or pages", address.block));
            continue;
        }
        let mut segments = encoded.segments.into_iter().map(|segment| Bytes::from(segment.bytes));
        for rows in pages_of(*entries) {
            let rows = rows as usize;
            let mut next = || segments.next().expect("they were counted");
            if run.is_open(part) {
                open.extend(places_of(next(), rows)?.as_primitive::<UInt32Type>().values());
                continue;
            }
            let mut columns: Vec<ArrayRef> = Vec::with_capacity(width);
            for field in bound.schema.fields() {
                columns.push(decode(next(), rows, field.data_type(), Form::Exact)?);
            }
            columns.push(places_of(next(), rows)?);
            closed.push(RecordBatch::try_new(schema.clone(), columns)?);
        }
    }
    let closed = concat_batches(&schema, &closed)?;
    if sorted_positions(&closed.columns()[..values])?.is_some() {
        fault("its entries are out of order".to_owned());
    }
    let mut by_ordinal: HashMap<u32, (Vec<u32>, Vec<u32>)> = HashMap::new();
    for (at, place) in (0..).zip(closed.column(values).as_primitive::<UInt32Type>().values()) {
        by_ordinal.entry(place >> ROW_BITS).or_default().0.push(at);
    }
    for place in open {
        by_ordinal.entry(place >> ROW_BITS).or_default().1.push(place & ((1 << ROW_BITS) - 1));
    }
    let columns = index.definition.columns()?;
    let of_layer = |group: &Arc<RowGroup>| Some((*group.decided_by(&table.schemas, &columns)?, group.clone()));
    let groups: HashMap<Address, Arc<RowGroup>> = table.groups.iter().filter_map(of_layer).collect();
    for (ordinal, cover) in (0..).zip(&run.covers) {
        let Some(group) = cover.and_then(|cover| groups.get(&cover)) else { continue };
        let (own, mut own_open) = by_ordinal.remove(&ordinal).unwrap_or_default();
        let own = take_record_batch(&closed, &UInt32Array::from(own))?;
        let wanted = entries_of(&GroupReader::with_schemas(reader, &table.schemas, seen, group)?, &bound)?;
        own_open.sort_unstable();
        if by_row(&own)? != by_row(&wanted.closed)? || own_open != wanted.open {
            fault(format!("its entries are not those of row group {}", group.id.0));
        }
    }
    Ok(faults)
}

/// Entries in the order of rows, with rows for places.
fn by_row(entries: &RecordBatch) -> Result<Vec<ArrayRef>> {
    let last = entries.num_columns() - 1;
    let rows = entries.column(last).as_primitive::<UInt32Type>();
    let rows: ArrayRef = Arc::new(rows.unary::<_, UInt32Type>(|place| place & ((1 << ROW_BITS) - 1)));
    let mut order: Vec<u32> = (0..entries.num_rows() as u32).collect();
    let of = rows.as_primitive::<UInt32Type>().values();
    order.sort_by_key(|at| of[*at as usize]);
    let order = UInt32Array::from(order);
    let columns = entries.columns()[..last].iter().chain([&rows]);
    Ok(columns.map(|column| arrow::compute::take(column, &order, None)).collect::<Result<_, _>>()?)
}
