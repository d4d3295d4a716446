//! Merges runs into one, without the row groups that they cover: their entries are read in order, page by page, and written as they come.
//!
//! Entries of row groups that are gone are left out. Memory: a part of each run, and some of the result.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, UInt32Array};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{SchemaRef, UInt32Type};

use super::build::{encoded, entry_schema};
use super::definition::{BoundIndex, IndexDefinition};
use super::pages::{ordinal_of, place_of, row_of};
use super::run::IndexRun;
use crate::base::planted::{Bug, planted};
use crate::base::{Cancel, Error, Pool, Result};
use crate::block::{Address, BlockReader, EncodedRowGroup};
use crate::table::order::kway::Merged;
use crate::table::{ROWS_MAX, TableState};

/// What the merged run has beside its parts.
pub struct MergedRun {
    /// How many parts at the end are open.
    pub open: u32,
    /// The deciding layers of the row groups that it covers.
    pub covers: Vec<Address>,
}

/// Merges runs of an index, whose values were read in one schema of the table; gives the parts of the result, in order.
///
/// # Errors
/// `Corrupt`, `Unavailable` or `SnapshotExpired` if a run cannot be read; `Cancelled`; those of `place`.
pub fn merge_runs(
    reader: &BlockReader,
    pool: &Pool,
    table: &TableState,
    definition: &IndexDefinition,
    runs: &[Arc<IndexRun>],
    cancel: &Cancel,
    mut place: impl FnMut(EncodedRowGroup) -> Result<()>,
) -> Result<MergedRun> {
    let first = runs.first().ok_or_else(|| Error::invalid("there are no runs to be merged"))?;
    let named = definition.named(&table.schemas[first.schema as usize])?;
    let named = named.ok_or_else(|| Error::corrupt("the schema of a run lacks a column of its index"))?;
    let bound = named.bound(&table.schemas[first.schema as usize])?;
    let schema = entry_schema(&bound);
    let (mut covers, mut sources, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for run in runs {
        // The places of row groups in the result, which are in the order of the runs.
        let ordinals = run.covers.iter().map(|cover| {
            let ordinal = covers.len() as u32;
            covers.extend(*cover);
            cover.map(|_| ordinal)
        });
        let ordinals: Arc<[Option<u32>]> = ordinals.collect();
        for part in (0..run.parts.len()).filter(|part| run.is_open(*part)) {
            let places = run_part(reader, run, part, &bound, &ordinals)?;
            open.extend(places.iter().flatten().flat_map(|page| page.as_primitive::<UInt32Type>().values()).copied());
        }
        sources.push(RunEntries {
            reader,
            run,
            bound: &bound,
            schema: &schema,
            ordinals,
            cancel,
            part: 0,
            ready: Vec::new(),
        });
    }
    let names: Vec<String> = bound.schema.fields().iter().map(|field| field.name().clone()).collect();
    let mut merged = Merged::new(schema.clone(), &names, sources)?;
    loop {
        let batches = merged.by_ref().take(pool.threads() * 2).collect::<Result<Vec<_>>>()?;
        if batches.is_empty() {
            break;
        }
        let parts = pool.map(batches, |batch| encoded(batch.columns(), batch.num_rows()))?;
        parts.into_iter().try_for_each(&mut place)?;
    }
    let mut open_parts = 0;
    for places in open.chunks(ROWS_MAX as usize) {
        place(encoded(&[Arc::new(UInt32Array::from(places.to_vec()))], places.len())?)?;
        open_parts += 1;
    }
    Ok(MergedRun { open: open_parts, covers })
}

/// The entries of a run with values, in order.
struct RunEntries<'a> {
    reader: &'a BlockReader,
    run: &'a IndexRun,
    bound: &'a BoundIndex,
    schema: &'a SchemaRef,
    ordinals: Arc<[Option<u32>]>,
    cancel: &'a Cancel,
    part: usize,
    /// Pages of the part that was read, the next one last.
    ready: Vec<RecordBatch>,
}

impl Iterator for RunEntries<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() {
            if self.part >= self.run.parts.len() || self.run.is_open(self.part) {
                return None;
            }
            self.part += 1;
            let read = self.cancel.check().and_then(|()| self.pages(self.part - 1));
            match read {
                Ok(pages) => self.ready = pages.into_iter().rev().filter(|page| page.num_rows() > 0).collect(),
                Err(e) => return Some(Err(e)),
            }
        }
        self.ready.pop().map(Ok)
    }
}

impl RunEntries<'_> {
    fn pages(&self, part: usize) -> Result<Vec<RecordBatch>> {
        let pages = run_part(self.reader, self.run, part, self.bound, &self.ordinals)?;
        pages.into_iter().map(|columns| Ok(RecordBatch::try_new(self.schema.clone(), columns)?)).collect()
    }
}

/// The columns of each page of a part, with places in the result: of an open part, the places alone.
fn run_part(
    reader: &BlockReader,
    run: &IndexRun,
    part: usize,
    bound: &BoundIndex,
    ordinals: &[Option<u32>],
) -> Result<Vec<Vec<ArrayRef>>> {
    let pages = run.pages(reader, part, bound.schema.fields())?.ok_or_else(|| {
        let block = run.parts[part].0.block;
        Error::corrupt(format!("block {block}: a part of a run has another number of entries or pages"))
    })?;
    let in_result = |mut columns: Vec<ArrayRef>| {
        let places = columns.pop().expect("there are places");
        columns.push(moved(&places, ordinals)?);
        without_gone(columns)
    };
    pages.into_iter().map(in_result).collect()
}

/// Places in the result; null for those in row groups that are gone.
fn moved(places: &ArrayRef, ordinals: &[Option<u32>]) -> Result<ArrayRef> {
    let moved = places.as_primitive::<UInt32Type>().values().iter().map(|&place| {
        let ordinal = ordinals.get(ordinal_of(place) as usize);
        let ordinal = ordinal.ok_or_else(|| Error::corrupt("an entry names a row group that its run does not have"))?;
        let ordinal = if planted(Bug::KeepPlaces) { Some(ordinal_of(place)) } else { *ordinal };
        Ok(ordinal.map(|ordinal| place_of(ordinal, row_of(place))))
    });
    Ok(Arc::new(moved.collect::<Result<UInt32Array>>()?))
}

/// Columns without the rows whose place, the last column, is null.
fn without_gone(columns: Vec<ArrayRef>) -> Result<Vec<ArrayRef>> {
    let places = columns.last().expect("there are places");
    if places.null_count() == 0 {
        return Ok(columns);
    }
    let there: BooleanArray = arrow::compute::is_not_null(places)?;
    let named = columns.iter().enumerate().map(|(at, column)| (at.to_string(), column.clone(), true));
    let kept = filter_record_batch(&RecordBatch::try_from_iter_with_nullable(named)?, &there)?;
    Ok(kept.columns().to_vec())
}
