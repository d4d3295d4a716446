//! Carries out one window of a plan, and says at commit time which versions see which of the rewritten rows.
//!
//! A rewrite keeps order, so a row's new position is its rank among the kept ones. Runs and deletions are taken from
//! the inputs as they are *at commit*: what was deleted while the rewrite ran is carried over by that rank.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::filter;
use roaring::RoaringBitmap;

use super::join::join;
use super::scan::mask;
use super::{Deletion, ROWS_MAX, RowGroup, Rows, Run, StoredSchema, Window, order};
use crate::base::{Error, Pool, Result, Version};
use crate::block::{BlockReader, Directory, EncodedRowGroup};
use crate::segment::{Form, Segment, decode, encode};

/// The sizes of the row groups that `rows` rows go to: as few as can be, evenly filled.
fn output_rows(rows: u64) -> Vec<u32> {
    let n = rows.div_ceil(u64::from(ROWS_MAX));
    (0..n).map(|i| (rows * (i + 1) / n - rows * i / n) as u32).collect()
}

/// The rows that `window` keeps of its inputs, as sizes of its outputs.
pub fn kept_rows(window: &Window) -> Vec<u32> {
    output_rows(window.rows)
}

/// Reads the kept rows of a window and encodes them anew, a column a task; returns the row groups and, for each,
/// whether it is in the order of `sort`. `SchemaMismatch` if dictionaries have too many values to be joined: the window
/// is to be left as it is. Memory: one decoded column of the window a thread.
pub fn rewrite(
    reader: &BlockReader,
    pool: &Pool,
    schema: &StoredSchema,
    sort: &[String],
    window: &Window,
) -> Result<Vec<(EncodedRowGroup, bool)>> {
    let sizes = kept_rows(window);
    if sizes.is_empty() {
        return Ok(Vec::new());
    }
    let directories = window.inputs.iter().map(|group| reader.directory(&group.address)).collect::<Result<Vec<_>>>()?;
    let fields = schema.0.fields();
    let column = |index: usize| -> Result<(ArrayRef, Vec<Segment>)> {
        let mut pieces: Vec<ArrayRef> = Vec::with_capacity(window.inputs.len());
        for ((group, directory), kept) in window.inputs.iter().zip(&directories).zip(&window.kept) {
            if let Some(piece) = kept_column(reader, group, directory, kept, index, schema)? {
                pieces.push(piece);
            }
        }
        let whole = join(&pieces)?;
        let mut segments = Vec::with_capacity(sizes.len());
        let mut start = 0;
        for &size in &sizes {
            segments.push(encode(&whole.slice(start, size as usize))?);
            start += size as usize;
        }
        let keep = sort.contains(fields[index].name());
        Ok((if keep { whole } else { whole.slice(0, 0) }, segments))
    };
    let columns = pool.map((0..fields.len()).collect(), column)?;
    let sort_columns: Vec<&ArrayRef> =
        sort.iter().map(|name| schema.0.index_of(name).map(|index| &columns[index].0)).collect::<Result<_, _>>()?;
    let mut ordered = Vec::with_capacity(sizes.len());
    let mut start = 0;
    for &size in &sizes {
        let keys: Vec<ArrayRef> = sort_columns.iter().map(|column| column.slice(start, size as usize)).collect();
        ordered.push(keys.is_empty() || order::sorted_positions(&keys)?.is_none());
        start += size as usize;
    }
    let mut groups: Vec<(EncodedRowGroup, bool)> = sizes
        .iter()
        .zip(ordered)
        .map(|(&rows, ordered)| (EncodedRowGroup { rows, segments: Vec::with_capacity(fields.len()) }, ordered))
        .collect();
    for (_, segments) in columns {
        for ((group, _), segment) in groups.iter_mut().zip(segments) {
            group.segments.push(segment);
        }
    }
    Ok(groups)
}

/// The kept rows of one column of one row group; `None` if there are none.
fn kept_column(
    reader: &BlockReader,
    group: &RowGroup,
    directory: &Directory,
    kept: &Rows,
    index: usize,
    schema: &StoredSchema,
) -> Result<Option<ArrayRef>> {
    if *kept == Rows::None {
        return Ok(None);
    }
    if directory.columns.len() != schema.0.fields().len() || directory.rows != group.rows {
        return Err(Error::corrupt(format!("block {}: the directory does not fit its row group", group.address.block)));
    }
    let bytes = reader.segments(&group.address, directory, &[index])?.remove(0);
    let whole = decode(bytes, group.rows as usize, schema.0.field(index).data_type(), Form::Exact)?;
    Ok(Some(match kept {
        Rows::Some(rows) => filter(&whole, &mask(rows, group.rows))?,
        _ => whole,
    }))
}

/// Which versions see the rows of one output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Remapped {
    /// Covers all rows in order.
    pub runs: Vec<Run>,
    /// Rows deleted one by one, by version, ascending.
    pub deletions: Vec<Deletion>,
}

/// Below this share of the rows, ranks are looked up one by one.
const WALK_SHARE: u64 = 256;

/// Runs and deletions of the outputs, from those that the `inputs` have now. `kept` are the rows of each input that the
/// rewrite kept, `sizes` the rows of each output. O(kept rows) where there are deletions, else O(runs).
pub fn remap(inputs: &[Arc<RowGroup>], kept: &[Rows], sizes: &[u32]) -> Vec<Remapped> {
    let mut runs: Vec<Run> = Vec::new();
    let mut deleted: BTreeMap<Version, RoaringBitmap> = BTreeMap::new();
    let mut offset = 0;
    for (group, kept) in inputs.iter().zip(kept) {
        let positions = kept.positions(group.rows);
        for (range, run) in group.spans() {
            let rows = positions.range_cardinality(range) as u32;
            if rows > 0 {
                runs.push(Run { rows, ..run });
            }
        }
        for deletion in &group.deletions {
            let hit = &*deletion.rows.0 & &positions;
            if hit.is_empty() {
                continue;
            }
            let target = deleted.entry(deletion.born).or_default();
            if hit.len() < positions.len() / WALK_SHARE {
                // `rank` counts the position itself.
                target.extend(hit.iter().map(|position| offset + positions.rank(position) as u32 - 1));
            } else {
                let ranked = (offset..).zip(&positions);
                target.extend(ranked.filter(|(_, position)| hit.contains(*position)).map(|(rank, _)| rank));
            }
        }
        offset += positions.len() as u32;
    }
    split(&runs, &deleted, sizes)
}

fn split(runs: &[Run], deleted: &BTreeMap<Version, RoaringBitmap>, sizes: &[u32]) -> Vec<Remapped> {
    let mut outputs = Vec::with_capacity(sizes.len());
    let mut runs = runs.iter().copied();
    let mut run = runs.next();
    let mut start = 0;
    for &size in sizes {
        let mut output = Remapped::default();
        let mut room = size;
        while room > 0 {
            let current = run.as_mut().expect("the runs cover all kept rows");
            let rows = current.rows.min(room);
            match output.runs.last_mut() {
                Some(last) if (last.born, last.died) == (current.born, current.died) => last.rows += rows,
                _ => output.runs.push(Run { rows, ..*current }),
            }
            room -= rows;
            current.rows -= rows;
            if current.rows == 0 {
                run = runs.next();
            }
        }
        for (&born, rows) in deleted {
            let mine: RoaringBitmap = rows.range(start..start + size).map(|position| position - start).collect();
            if !mine.is_empty() {
                output.deletions.push(Deletion { born, rows: mine.into() });
            }
        }
        outputs.push(output);
        start += size;
    }
    outputs
}
