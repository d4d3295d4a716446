//! Compares a run with the row groups that it covers.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, filter_record_batch, take_record_batch};
use arrow::datatypes::UInt32Type;

use super::build::{entries_of, entry_schema};
use super::definition::BoundIndex;
use super::pages::{ordinal_of, row_of};
use super::run::{IndexRun, TableIndex};
use crate::base::Result;
use crate::block::{Address, BlockReader};
use crate::table::order::sort_columns::sorted_positions;
use crate::table::read::group_reader::GroupReader;
use crate::table::{RowGroup, TableState};

/// The entries of this number of row groups are held at once.
const GROUPS_HELD: u32 = 64;

/// Reads all entries of a run, bypassing the cache, and compares them with what the row groups have; once for each 64 row groups that it
/// covers. Returns what is wrong. Memory: the entries of these.
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
    let columns = index.definition.columns()?;
    let of_layer = |group: &Arc<RowGroup>| Some((*group.decided_by(&table.schemas, columns)?, group.clone()));
    let groups: HashMap<Address, Arc<RowGroup>> = table.groups.iter().filter_map(of_layer).collect();
    for first in (0..run.covers.len() as u32).step_by(GROUPS_HELD as usize) {
        let ordinals = first..(first + GROUPS_HELD).min(run.covers.len() as u32);
        let (closed, open) = entries_among(reader, run, &bound, ordinals.clone(), first == 0, &mut fault)?;
        let mut by_ordinal: HashMap<u32, (Vec<u32>, Vec<u32>)> = HashMap::new();
        let places = closed.column(closed.num_columns() - 1).as_primitive::<UInt32Type>();
        for (at, place) in (0..).zip(places.values()) {
            by_ordinal.entry(ordinal_of(*place)).or_default().0.push(at);
        }
        for place in open {
            by_ordinal.entry(ordinal_of(place)).or_default().1.push(row_of(place));
        }
        for (ordinal, cover) in ordinals.clone().zip(&run.covers[first as usize..]) {
            let Some(group) = cover.and_then(|cover| groups.get(&cover)) else { continue };
            let (own, mut own_open) = by_ordinal.remove(&ordinal).unwrap_or_default();
            let own = take_record_batch(&closed, &UInt32Array::from(own))?;
            let wanted = entries_of(&GroupReader::with_schemas(reader, &table.schemas, seen, group)?, &bound)?;
            own_open.sort_unstable();
            if by_row(&own)? != by_row(&wanted.closed)? || own_open != wanted.open {
                fault(format!("its entries are not those of row group {}", group.id.0));
            }
        }
    }
    Ok(faults)
}

/// The entries of a run in some of the row groups that it covers: those with values, and the places of the others. Says by `fault`, if
/// `tells`, which parts are not what they should be, and whether entries are out of order.
fn entries_among(
    reader: &BlockReader,
    run: &IndexRun,
    bound: &BoundIndex,
    ordinals: Range<u32>,
    tells: bool,
    fault: &mut impl FnMut(String),
) -> Result<(RecordBatch, Vec<u32>)> {
    let (schema, values) = (entry_schema(bound), bound.schema.fields().len());
    let (mut closed, mut open): (Vec<RecordBatch>, Vec<u32>) = (Vec::new(), Vec::new());
    let is_wanted = |place: &u32| ordinals.contains(&ordinal_of(*place));
    let mut last: Option<RecordBatch> = None;
    for (part, (address, _)) in run.parts.iter().enumerate() {
        let Some(read) = run.pages(reader, part, bound.schema.fields())? else {
            if tells {
                fault(format!("block {}: a part has another number of entries or pages", address.block));
            }
            continue;
        };
        if run.is_open(part) {
            let places = read.iter().flatten().flat_map(|page| page.as_primitive::<UInt32Type>().values());
            open.extend(places.filter(|place| is_wanted(place)));
            continue;
        }
        let pages: Vec<RecordBatch> =
            read.into_iter().map(|columns| RecordBatch::try_new(schema.clone(), columns)).collect::<Result<_, _>>()?;
        if pages.is_empty() {
            continue;
        }
        let all = concat_batches(&schema, last.iter().chain(&pages))?;
        if tells && sorted_positions(&all.columns()[..values])?.is_some() {
            fault("its entries are out of order".to_owned());
        }
        last = Some(all.slice(all.num_rows() - 1, 1));
        for page in pages {
            let places = page.column(values).as_primitive::<UInt32Type>().values();
            let kept: BooleanArray = places.iter().map(|place| Some(is_wanted(place))).collect();
            if kept.true_count() > 0 {
                closed.push(filter_record_batch(&page, &kept)?);
            }
        }
    }
    Ok((concat_batches(&schema, &closed)?, open))
}

/// Entries in the order of rows, with rows for places.
fn by_row(entries: &RecordBatch) -> Result<Vec<ArrayRef>> {
    let last = entries.num_columns() - 1;
    let rows = entries.column(last).as_primitive::<UInt32Type>();
    let rows: ArrayRef = Arc::new(rows.unary::<_, UInt32Type>(row_of));
    let mut order: Vec<u32> = (0..entries.num_rows() as u32).collect();
    let of = rows.as_primitive::<UInt32Type>().values();
    order.sort_by_key(|at| of[*at as usize]);
    let order = UInt32Array::from(order);
    let columns = entries.columns()[..last].iter().chain([&rows]);
    Ok(columns.map(|column| arrow::compute::take(column, &order, None)).collect::<Result<_, _>>()?)
}
