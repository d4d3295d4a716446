//! Sorts the rows of whole frames: what does not fit into memory is written in runs, each in order, which are merged afterwards.
//!
//! Runs are row groups like any others, so rows that come in order are written once. Otherwise a run is read back from where the
//! rows of the call are written, and its blocks are deleted once it has been merged.

use std::collections::BTreeSet;

use arrow::array::RecordBatch;

use super::encoder::Encoder;
use crate::base::{Result, Task};
use crate::block::{BlockWriter, EncodedRowGroup};
use crate::segment::Proof;
use crate::table::{
    Conform, NewGroup, RowGroups, RunGroup, Schemes, SortedRuns, StoredSchema, batch_bytes, encode_group, in_pieces,
    merged_runs,
};

/// Encodes the rows of a row group, as another was encoded if there was one.
pub(in crate::store) type EncodeRows<'a> =
    &'a (dyn Fn(Vec<RecordBatch>, Option<&Schemes>) -> Result<(EncodedRowGroup, Schemes)> + Sync);

/// The most runs that are merged at once: each takes a request of its own.
const RUNS_MAX: u64 = 64;

impl Encoder<'_> {
    /// How many bytes of rows are sorted at a time: joined, sorted and encoded, each step takes as much memory again.
    pub fn part_bytes(&self) -> u64 {
        (self.memory_bytes / 8).max(1)
    }

    /// Cuts batches, made to fit by `conform`, into row groups: in the order of the columns called `sort`, in runs; without any, in
    /// the order in which they come.
    pub fn row_groups<'a>(
        &self,
        batches: impl Iterator<Item = Result<RecordBatch>> + 'a,
        mut conform: Conform,
        sort: &[String],
    ) -> Box<dyn Iterator<Item = Result<RunGroup>> + 'a> {
        if sort.is_empty() {
            let plain = |batches| Ok(RunGroup { run: 0, batches: batches? });
            return Box::new(RowGroups::new(batches, conform).map(plain));
        }
        // A batch may be the whole frame.
        let batches = in_pieces(batches.map(move |batch| conform.batch(&batch?)), self.part_bytes() / 4);
        Box::new(SortedRuns::new(batches, self.pool, sort, self.part_bytes()))
    }

    /// The row groups of one table that `writer` has placed, each with its table and its run: merged if there are several runs.
    pub fn one_run(
        &self,
        placed: &[(usize, usize, NewGroup)],
        schema: &StoredSchema,
        sort: &[String],
        writer: &mut BlockWriter,
        task: &Task,
    ) -> Result<Vec<NewGroup>> {
        let runs = placed.chunk_by(|a, b| a.1 == b.1).map(|run| run.iter().map(|(.., group)| group.clone()).collect());
        let encode = |rows: Vec<RecordBatch>, like: Option<&Schemes>| {
            encode_group(self.pool, rows, &schema.0, like, Proof::Trusted)
        };
        self.merge_runs(runs.collect(), schema, sort, &encode, writer, task)
    }

    /// Merges runs of row groups that `writer` has placed into one. Of equal rows those of earlier runs come first; rows that no version would
    /// see go.
    pub fn merge_runs(
        &self,
        mut runs: Vec<Vec<NewGroup>>,
        schema: &StoredSchema,
        sort: &[String],
        encode: EncodeRows<'_>,
        writer: &mut BlockWriter,
        task: &Task,
    ) -> Result<Vec<NewGroup>> {
        // One row group of each run is decoded at a time, which takes about four times the bytes of an encoded one.
        let largest = runs.iter().flatten().map(|group| group.address.bytes() * 4).max().unwrap_or(1);
        let at_once = (self.part_bytes() / largest).clamp(2, RUNS_MAX) as usize;
        while runs.len() > 1 {
            let mut longer = Vec::with_capacity(runs.len().div_ceil(at_once));
            for some in runs.chunks(at_once) {
                longer.push(match some {
                    [run] => run.clone(),
                    some => self.merge(some, schema, sort, encode, writer, task)?,
                });
            }
            runs = longer;
        }
        Ok(runs.pop().unwrap_or_default())
    }

    fn merge(
        &self,
        runs: &[Vec<NewGroup>],
        schema: &StoredSchema,
        sort: &[String],
        encode: EncodeRows<'_>,
        writer: &mut BlockWriter,
        task: &Task,
    ) -> Result<Vec<NewGroup>> {
        let reader = writer.read_back()?;
        let mut merged = RowGroups::new(merged_runs(&reader, schema, sort, runs)?, Conform::new(schema.0.clone()));
        let mut groups = Vec::new();
        let mut place = |group: EncodedRowGroup| {
            let rows = group.rows;
            groups.push(NewGroup { address: writer.push(group)?, rows, dead: None });
            Ok(())
        };
        if let Some(first) = merged.next() {
            // The encodings chosen for the first row group serve the others.
            let (first, like) = encode(first?, None)?;
            place(first)?;
            self.pool.ordered(
                merged,
                |batches| batches.iter().map(batch_bytes).sum(),
                self.pool.threads() * 2,
                self.memory_bytes / 4,
                |batches| {
                    task.cancel.check()?;
                    Ok(encode(batches, Some(&like))?.0)
                },
                place,
            )?;
        }
        let merged: BTreeSet<_> = runs.iter().flatten().map(|group| group.address).collect();
        writer.take_back(&merged);
        Ok(groups)
    }
}
