//! Rows that take too much memory to be sorted at once: parts of a frame are sorted and written as row groups, one run after the
//! other; then the runs are merged.

use arrow::array::{RecordBatch, RecordBatchOptions};
use roaring::RoaringBitmap;

use super::kway::Merged;
use super::sort::sorted_batches;
use super::sort_columns::{comparable, sort_columns};
use crate::base::planted::{Bug, planted};
use crate::base::{Pool, Result};
use crate::block::BlockReader;
use crate::segment::{Form, filter_batch};
use crate::table::memory::row_bytes::columns_at;
use crate::table::read::group_reader::GroupReader;
use crate::table::schema::arrays::mask;
use crate::table::write::encode::{Filling, batch_bytes};
use crate::table::{NewGroup, StoredSchema};

/// The most rows, in bytes, that are sorted at once whatever memory there is: offsets of texts have 32 bits.
pub const PART_BYTES_MAX: u64 = 1 << 30;

/// The rows of a row group, not yet joined, and the run that it is of.
pub struct RunGroup {
    /// All rows of a run are in order.
    pub run: usize,
    /// The rows, in order.
    pub batches: Vec<RecordBatch>,
}

/// Sorts batches, in parts that fit into memory, and cuts them into row groups. A part that continues the one before it is of the
/// same run, so rows that come in order are one.
pub struct SortedRuns<I> {
    batches: I,
    pool: Pool,
    sort: Vec<String>,
    part_bytes: u64,
    run: usize,
    /// The key of the last row.
    last: Option<Vec<u8>>,
    /// Rows of the run that are not enough for a row group yet.
    open: Filling,
    /// Row groups of the last part.
    ready: std::vec::IntoIter<RunGroup>,
    ended: bool,
}

impl<I: Iterator<Item = Result<RecordBatch>>> SortedRuns<I> {
    /// Sorts `batches`, of one schema, by the columns called `sort`, with about `part_bytes` bytes of them in memory at a time.
    pub fn new(batches: I, pool: &Pool, sort: &[String], part_bytes: u64) -> Self {
        let (pool, sort, ready) = (pool.clone(), sort.to_vec(), Vec::new().into_iter());
        let part_bytes = part_bytes.clamp(1, PART_BYTES_MAX);
        Self { batches, pool, sort, part_bytes, run: 0, last: None, open: Filling::default(), ready, ended: false }
    }

    /// Sorts the next part; returns the row groups that are full, and at the end the last one.
    fn part(&mut self) -> Result<Vec<RunGroup>> {
        let (mut part, mut bytes) = (Vec::new(), 0);
        while bytes < self.part_bytes && !self.ended {
            match self.batches.next() {
                None => self.ended = true,
                Some(batch) => {
                    let batch = batch?;
                    bytes += batch_bytes(&batch);
                    part.extend((batch.num_rows() > 0).then_some(batch));
                }
            }
        }
        let sorted = sorted_batches(&self.pool, part, &self.sort)?;
        let mut groups = Vec::new();
        if let (Some(first), Some(last)) = (sorted.first(), sorted.last()) {
            let first = key_of(first, &self.sort, 0)?;
            if self.last.as_ref().is_some_and(|last| *last > first) && !planted(Bug::SortParts) {
                groups.extend(self.open.close().map(|batches| RunGroup { run: self.run, batches }));
                self.run += 1;
            }
            self.last = Some(key_of(last, &self.sort, last.num_rows() - 1)?);
        }
        for batch in sorted {
            let mut rest = Some(batch);
            while let Some(batch) = rest {
                rest = self.open.take(batch);
                if self.open.is_full() {
                    groups.extend(self.open.close().map(|batches| RunGroup { run: self.run, batches }));
                }
            }
        }
        if self.ended {
            groups.extend(self.open.close().map(|batches| RunGroup { run: self.run, batches }));
        }
        Ok(groups)
    }
}

impl<I: Iterator<Item = Result<RecordBatch>>> Iterator for SortedRuns<I> {
    type Item = Result<RunGroup>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(group) = self.ready.next() {
                return Some(Ok(group));
            }
            if self.ended {
                return None;
            }
            match self.part() {
                Ok(groups) => self.ready = groups.into_iter(),
                Err(e) => {
                    self.ended = true;
                    return Some(Err(e));
                }
            }
        }
    }
}

/// The sort key of a row, as bytes that compare as rows do.
fn key_of(batch: &RecordBatch, sort: &[String], row: usize) -> Result<Vec<u8>> {
    let columns = sort_columns(&batch.schema(), sort)?;
    Ok(comparable(&columns_at(&batch.slice(row, 1), &columns))?.row(0).as_ref().to_vec())
}

/// The rows of runs of row groups that were just written, in order, without those that no version would see; of equal rows those of
/// the first run come first. Memory: a row group of each run.
pub fn merged_runs<'a>(
    blocks: &'a BlockReader,
    schema: &'a StoredSchema,
    sort: &[String],
    runs: &'a [Vec<NewGroup>],
) -> Result<impl Iterator<Item = Result<RecordBatch>> + 'a> {
    let of_run = |run: &'a Vec<NewGroup>| run.iter().map(|group| read_new(blocks, schema, group));
    Merged::new(schema.0.clone(), sort, runs.iter().map(of_run).collect())
}

fn read_new(blocks: &BlockReader, schema: &StoredSchema, group: &NewGroup) -> Result<RecordBatch> {
    let record = group.alone();
    let reader = GroupReader::with_schemas(blocks, std::slice::from_ref(schema), schema, &record)?;
    let columns: Vec<usize> = (0..schema.0.fields().len()).collect();
    let columns = reader.decode(&schema.0, &columns, Form::Exact)?;
    let options = RecordBatchOptions::new().with_row_count(Some(group.rows as usize));
    let rows = RecordBatch::try_new_with_options(schema.0.clone(), columns, &options)?;
    let Some(dead) = &group.dead else { return Ok(rows) };
    let mut alive = RoaringBitmap::new();
    alive.insert_range(0..group.rows);
    filter_batch(&rows, &mask(&(alive - &*dead.0), group.rows))
}
