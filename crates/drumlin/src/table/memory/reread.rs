//! Rows that were read before, as they are now: as far as that can be told from memory.

use arrow::array::{ArrayRef, RecordBatch};

use super::overlay::{MemtableHit, Overlay, ReadPoint};
use crate::base::{Error, Result, Seq, Timestamp};
use crate::memtable::{Keys, RowBytes};
use crate::segment::interleave;
use crate::table::TableState;
use crate::table::read::select::expiry::Expiry;

/// Within this many microseconds a change of few rows is committed.
const SOON: i64 = 5_000_000;

/// `rows`, whole rows with the keys `keys` that were read of `then` at the commit `since`, as they are in `now`, which has the same schema, at
/// `read_point`. Reads no storage.
///
/// # Errors
/// `Conflict` if that cannot be told: row groups have changed, or a row was deleted, or has left memory.
pub fn reread(
    now: &TableState,
    then: &TableState,
    since: Seq,
    read_point: ReadPoint,
    keys: &Keys,
    rows: &RecordBatch,
) -> Result<RecordBatch> {
    if now.rows_seq == then.rows_seq && !now.has_unsettled() {
        return Ok(rows.clone());
    }
    let unknown = || Err(Error::conflict("rows that are changed were written in another way since they were read"));
    if now.bulk_seq != then.bulk_seq {
        return unknown();
    }
    let Some(overlay) = Overlay::new(now, read_point) else {
        return if now.wrote_any(keys, then, since) { unknown() } else { Ok(rows.clone()) };
    };
    let mut found = RowBytes::default();
    let said = overlay.find_many(keys, &mut found);
    let mut places = Vec::with_capacity(keys.len());
    let (mut memory, mut rest) = (Keys::default(), Keys::default());
    let mut at_memory: Vec<(usize, usize)> = Vec::new();
    for (at, said) in said.iter().enumerate() {
        match said {
            Some(MemtableHit::Row(row)) => {
                at_memory.push((*row as usize, at));
                places.push((1, *row as usize));
            }
            // What is gone may have been gone, or made again in row groups, before.
            Some(MemtableHit::Deleted(_)) | None => {
                rest.push_key(keys.get(at));
                places.push((0, at));
            }
        }
    }
    if !rest.is_empty() && now.wrote_any(&rest, then, since) {
        return unknown();
    }
    if found.is_empty() {
        return Ok(rows.clone());
    }
    at_memory.sort_unstable();
    at_memory.iter().for_each(|(_, at)| memory.push_key(keys.get(*at)));
    let columns: Vec<usize> = (0..rows.num_columns()).collect();
    // A row that expires soon may have by the commit.
    let instant = read_point.instant.map(|instant| Timestamp(instant.0.saturating_add(SOON)));
    if let Some(expiry) = Expiry::at(now, ReadPoint { instant, ..read_point })?
        && now.wrote_any(&memory, then, since)
        && expiry.alive_in_memory(overlay.codec(), &memory, &found)?.count_set_bits() < memory.len()
    {
        return unknown();
    }
    let newer = overlay.codec().decode(&memory, &found, &columns)?;
    let column = |(own, newer): (&ArrayRef, ArrayRef)| interleave(&[own.clone(), newer], &places);
    let columns = rows.columns().iter().zip(newer).map(column).collect::<Result<Vec<_>>>()?;
    Ok(RecordBatch::try_new(rows.schema(), columns)?)
}
