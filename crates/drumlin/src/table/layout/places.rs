//! Rows of a tract, put into the places in which they are shown.

use arrow::array::{RecordBatch, UInt32Array};
use arrow::datatypes::{DataType, SchemaRef};

use crate::base::planted::{Bug, planted};
use crate::base::{ErrorKind, Pool, Result};
use crate::segment::{compact, holds, join_batches, take_batch};
use crate::table::order::sort::interleave_batches;
use crate::table::write::encode::{BYTES_MAX, batch_bytes};
use crate::table::{ROWS_MAX, Rows};

/// The place of a row, the batch that it is in, and which row of it.
type PlacedRow = (u32, u32, u32);

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
    let most = match wanted {
        Wanted::First(most) | Wanted::Last(most) if most < rows as u64 => most.max(1) as usize,
        _ => return groups,
    };
    let mut all: Vec<u32> = groups.iter().flat_map(|(_, places)| places.values().iter().copied()).collect();
    let first = matches!(wanted, Wanted::First(_));
    // Of those at the end, as many are not wanted as come before them.
    let bound = if first { most } else { rows - most };
    let bound = *all.select_nth_unstable(bound).1;
    let is_wanted = |place: u32| if first { place < bound } else { place >= bound };
    let kept = |(rows, places): (Rows, UInt32Array)| {
        // Of all rows of a row group there are as many as places; others never become all.
        let total = if rows == Rows::All { places.len() as u32 } else { u32::MAX };
        let picked = rows.positions(total).into_iter().zip(places.values()).filter(|(_, place)| is_wanted(**place));
        let (rows, places): (Vec<u32>, Vec<u32>) = picked.map(|(row, place)| (row, *place)).unzip();
        (Rows::of(rows.into_iter().collect(), total), places.into())
    };
    groups.into_iter().map(kept).collect()
}

/// Rows of the row groups of a tract, each with its place, in the order of these: in batches of at most as many rows as a row group has.
/// O(n log n), the last step by all threads.
pub(in crate::table) fn in_places(
    pool: &Pool,
    schema: &SchemaRef,
    groups: Vec<(RecordBatch, UInt32Array)>,
) -> Result<Vec<RecordBatch>> {
    let of_group = |(at, (_, places)): (u32, &(RecordBatch, UInt32Array))| {
        (0..).zip(places.values()).map(|(row, place)| (*place, at, row)).collect::<Vec<PlacedRow>>()
    };
    let mut rows: Vec<PlacedRow> = (0..).zip(&groups).flat_map(of_group).collect();
    if !planted(Bug::ShowAsLaidOut) {
        rows.sort_unstable();
    }
    let batches: Vec<RecordBatch> = groups.into_iter().map(|(batch, _)| batch).collect();
    let bytes_a_row = |batch: &RecordBatch| batch_bytes(batch) / (batch.num_rows() as u64).max(1);
    let longest = batches.iter().map(bytes_a_row).max().unwrap_or(0).max(1);
    let most = (BYTES_MAX / longest).clamp(1, u64::from(ROWS_MAX)) as usize;
    let chunks: Vec<&[PlacedRow]> = rows.chunks(most).collect();
    if !schema.fields().iter().any(|field| holds(field.data_type(), &is_dictionary)) {
        return pool.map(chunks, |rows| interleave_batches(schema, &batches, &places(rows)));
    }
    let chunks = match join_batches(schema, &batches) {
        // There are too many values for the keys; but not among those of fewer rows.
        Err(e) if e.kind() == ErrorKind::SchemaMismatch => pool.map(chunks, |rows| joined(schema, &batches, rows))?,
        joined => {
            let (joined, mut starts, mut next) = (joined?, Vec::with_capacity(batches.len()), 0);
            for batch in &batches {
                starts.push(next);
                next += batch.num_rows() as u32;
            }
            let row = |(_, batch, row): &PlacedRow| starts[*batch as usize] + row;
            pool.map(chunks, |rows| take_batch(&joined, rows.iter().map(row)).map(|batch| vec![batch]))?
        }
    };
    Ok(chunks.into_iter().flatten().collect())
}

fn is_dictionary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Dictionary(..))
}

fn places(rows: &[PlacedRow]) -> Vec<(usize, usize)> {
    rows.iter().map(|(_, batch, row)| (*batch as usize, *row as usize)).collect()
}

/// Rows with dictionaries, of which only the values that they have are joined; in several batches if these are too many for the keys.
fn joined(schema: &SchemaRef, batches: &[RecordBatch], rows: &[PlacedRow]) -> Result<Vec<RecordBatch>> {
    let mut of_batch: Vec<Vec<u32>> = vec![Vec::new(); batches.len()];
    let mut places = Vec::with_capacity(rows.len());
    for (_, batch, row) in rows {
        let own = &mut of_batch[*batch as usize];
        places.push((*batch as usize, own.len()));
        own.push(*row);
    }
    let taken = |(batch, rows): (&RecordBatch, Vec<u32>)| {
        let taken = take_batch(batch, rows)?;
        let columns = taken.columns().iter().map(compact).collect::<Result<Vec<_>>>()?;
        Ok(RecordBatch::try_new(taken.schema(), columns)?)
    };
    let taken = batches.iter().zip(of_batch).map(taken).collect::<Result<Vec<_>>>()?;
    match interleave_batches(schema, &taken, &places) {
        Err(e) if e.kind() == ErrorKind::SchemaMismatch && rows.len() > 1 => {
            let (first, last) = rows.split_at(rows.len() / 2);
            Ok([joined(schema, batches, first)?, joined(schema, batches, last)?].concat())
        }
        done => Ok(vec![done?]),
    }
}
