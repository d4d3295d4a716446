//! Rows of a tract, put into the places in which they are shown.

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::datatypes::SchemaRef;

use crate::base::planted::{Bug, planted};
use crate::base::{Error, ErrorKind, Pool, Result};
use crate::segment::{compact, join, take_batch};
use crate::table::order::sort::interleave_batches;
use crate::table::write::encode::{BYTES_MAX, batch_bytes};
use crate::table::{ROWS_MAX, Rows};

/// With more bytes, texts of all row groups of a tract may be too long for one array.
const JOINED_BYTES_MAX: u64 = 1 << 30;

/// Which rows of a tract are wanted.
#[derive(Clone, Copy, Debug)]
pub(in crate::table) enum Wanted {
    All,
    /// At most as many at the beginning.
    First(u64),
    /// At most as many at the end.
    Last(u64),
}

impl Wanted {
    /// At most as many at the beginning, if there is a limit.
    pub fn first(limit: Option<u64>) -> Self {
        limit.map_or(Self::All, Self::First)
    }
}

/// Of rows of row groups, each with its place, those that are wanted. O(rows).
pub(in crate::table) fn within(groups: Vec<(Rows, UInt32Array)>, wanted: Wanted) -> Vec<(Rows, UInt32Array)> {
    let rows: usize = groups.iter().map(|(_, places)| places.len()).sum();
    let (most, first) = match wanted {
        Wanted::First(most) if most < rows as u64 => (most as usize, true),
        Wanted::Last(most) if most < rows as u64 => (most as usize, false),
        _ => return groups,
    };
    // How far a row is from the end at which they are wanted.
    let last = greatest(&groups);
    let distance = |place: u32| if first { place } else { last - place };
    // Places follow each other nearly without gaps, so that a few of the nearest suffice, as a rule.
    let mut bound = most as u64;
    let near = loop {
        let is_near = |place: &&u32| u64::from(distance(**place)) < bound;
        let near: Vec<u32> = groups
            .iter()
            .flat_map(|(_, places)| places.values().iter().filter(is_near))
            .map(|place| distance(*place))
            .collect();
        if near.len() >= most {
            break near;
        }
        bound = bound.saturating_mul(4).max(1024);
    };
    let bound = nth(near, most);
    let kept = |(rows, places): (Rows, UInt32Array)| {
        // Of all rows of a row group there are as many as places; others never become all.
        let total = if rows == Rows::All { places.len() as u32 } else { u32::MAX };
        let is_wanted = |place: &u32| u64::from(distance(*place)) < bound;
        let wanted: Vec<(u32, u32)> = match &rows {
            Rows::Some(rows) => {
                rows.iter().zip(places.values().iter().copied()).filter(|row| is_wanted(&row.1)).collect()
            }
            _ => (0..).zip(places.values().iter().copied()).filter(|row| is_wanted(&row.1)).collect(),
        };
        let (rows, places): (Vec<u32>, Vec<u32>) = wanted.into_iter().unzip();
        (Rows::of(rows.into_iter().collect(), total), places.into())
    };
    groups.into_iter().map(kept).collect()
}

fn greatest(groups: &[(Rows, UInt32Array)]) -> u32 {
    groups.iter().flat_map(|(_, places)| places.values().iter().copied()).max().unwrap_or(0)
}

/// What `most` of these numbers, which are all different, are below.
fn nth(mut numbers: Vec<u32>, most: usize) -> u64 {
    match most.checked_sub(1) {
        Some(last) => u64::from(*numbers.select_nth_unstable(last).1) + 1,
        None => 0,
    }
}

/// Rows of the row groups of a tract, each with its place, in the order of these: in batches of at most as many rows as a row group has.
/// O(n) if these are most rows of a tract, else O(n log n); by all threads.
pub(in crate::table) fn in_places(
    pool: &Pool,
    schema: &SchemaRef,
    groups: Vec<(RecordBatch, UInt32Array)>,
) -> Result<Vec<RecordBatch>> {
    if groups.is_empty() {
        return Ok(Vec::new());
    }
    // Rows are counted over all groups.
    let order = in_order(groups.iter().map(|(_, places)| places.values().as_ref()));
    let batches: Vec<RecordBatch> = groups.into_iter().map(|(batch, _)| batch).collect();
    let bytes_a_row = |batch: &RecordBatch| batch_bytes(batch) / (batch.num_rows() as u64).max(1);
    let longest = batches.iter().map(bytes_a_row).max().unwrap_or(0).max(1);
    let most = (BYTES_MAX / longest).clamp(1, u64::from(ROWS_MAX)) as usize;
    let chunks: Vec<&[u32]> = order.chunks(most).collect();
    if batches.iter().map(batch_bytes).sum::<u64>() <= JOINED_BYTES_MAX {
        let columns = pool.map((0..schema.fields().len()).collect(), |at| {
            let parts: Vec<ArrayRef> = batches.iter().map(|batch| batch.column(at).clone()).collect();
            join(&parts).map_err(|e| e.context(format!("column '{}'", schema.field(at).name())))
        });
        match columns {
            // There are too many values for the keys of a dictionary; but not among those of fewer rows.
            Err(e) if divides(&e) => {}
            columns => {
                let whole = RecordBatch::try_new(schema.clone(), columns?)?;
                return pool.map(chunks, |rows| take_batch(&whole, rows.iter().copied()));
            }
        }
    }
    let mut starts: Vec<u32> = Vec::with_capacity(batches.len());
    let mut next = 0;
    for batch in &batches {
        starts.push(next);
        next += batch.num_rows() as u32;
    }
    let place = |row: &u32| {
        let batch = starts.partition_point(|start| start <= row) - 1;
        (batch, (row - starts[batch]) as usize)
    };
    let chunks = pool.map(chunks, |rows| interleaved(schema, &batches, &rows.iter().map(place).collect::<Vec<_>>()))?;
    Ok(chunks.into_iter().flatten().collect())
}

/// Whether fewer rows may fit.
fn divides(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::SchemaMismatch | ErrorKind::InvalidArgument)
}

/// The numbers of rows, in the order of their places.
fn in_order<'p>(groups: impl Iterator<Item = &'p [u32]> + Clone) -> Vec<u32> {
    let rows: usize = groups.clone().map(<[u32]>::len).sum();
    let places = groups.flatten().copied();
    if planted(Bug::ShowAsLaidOut) {
        return (0..rows as u32).collect();
    }
    let last = places.clone().max().unwrap_or(0) as usize;
    // Few gaps: each row goes to its place at once.
    if last / 4 <= rows {
        let mut at: Vec<u32> = vec![u32::MAX; last + 1];
        places.clone().zip(0..).for_each(|(place, row)| at[place as usize] = row);
        at.retain(|row| *row != u32::MAX);
        if at.len() == rows {
            return at;
        }
    }
    let mut order: Vec<(u32, u32)> = places.zip(0..).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, row)| row).collect()
}

/// Rows of batches, by batch and row, of whose dictionaries only the values that they have are joined; in several batches if these are too many for the
/// keys.
fn interleaved(schema: &SchemaRef, batches: &[RecordBatch], rows: &[(usize, usize)]) -> Result<Vec<RecordBatch>> {
    let mut of_batch: Vec<Vec<u32>> = vec![Vec::new(); batches.len()];
    let mut places = Vec::with_capacity(rows.len());
    for (batch, row) in rows {
        places.push((*batch, of_batch[*batch].len()));
        of_batch[*batch].push(*row as u32);
    }
    let taken = |(batch, rows): (&RecordBatch, Vec<u32>)| {
        let taken = take_batch(batch, rows)?;
        let columns = taken.columns().iter().map(compact).collect::<Result<Vec<_>>>()?;
        Ok(RecordBatch::try_new(taken.schema(), columns)?)
    };
    let taken = batches.iter().zip(of_batch).map(taken).collect::<Result<Vec<_>>>()?;
    match interleave_batches(schema, &taken, &places) {
        // Too many values for the keys of a dictionary, or too long texts for one array.
        Err(e) if divides(&e) && rows.len() > 1 => {
            let (first, last) = rows.split_at(rows.len() / 2);
            Ok([interleaved(schema, batches, first)?, interleaved(schema, batches, last)?].concat())
        }
        done => Ok(vec![done?]),
    }
}
