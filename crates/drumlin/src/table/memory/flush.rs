//! Turns a frozen part into row groups: finds the rows to write, and the rows of row groups that they replace. Also counts
//! the rows of a version while part of it is in memory.

use arrow::array::RecordBatch;

use super::overlay::{Overlay, SeenOverlay};
use super::row_writes::born_before;
use crate::base::planted::{Bug, planted};
use crate::base::{Cancel, Pool, Result, Seq, caught};
use crate::block::BlockReader;
use crate::memtable::{Keys, RowBytes};
use crate::table::keys::group_keys::{GroupKeys, candidates};
use crate::table::read::group_reader::GroupReader;
use crate::table::read::select::expiry::Expiry;
use crate::table::{GroupId, MemtablePart, Positions, ROWS_MAX, ReadPoint, Rows, TableState};

/// A batch of rows from memory is closed once it takes about this many bytes, as a row group of a frame is.
const BATCH_BYTES_MAX: u64 = 256 << 20;

/// The rows of a part up to the commit `seq`, in the order of the key, in batches of row groups; decoded as they are pulled.
pub fn part_rows(part: &MemtablePart, seq: Seq) -> impl Iterator<Item = Result<RecordBatch>> + '_ {
    let rows = part.rows();
    let mut records = rows.memtable.range(None, None, seq).filter(|record| !record.is_delete());
    let columns: Vec<usize> = (0..rows.codec.schema().fields().len()).collect();
    std::iter::from_fn(move || {
        let (mut keys, mut bytes) = (Keys::default(), RowBytes::default());
        for record in records.by_ref().take(ROWS_MAX as usize) {
            record.copy_key(&mut keys);
            bytes.push_with(|out| record.copy_row(out));
            if keys.memory_bytes() + bytes.memory_bytes() >= BATCH_BYTES_MAX {
                break;
            }
        }
        let decode = || {
            let columns = rows.codec.decode(&keys, &bytes, &columns)?;
            Ok(RecordBatch::try_new(rows.codec.schema().clone(), columns)?)
        };
        (!keys.is_empty()).then(|| caught(decode))
    })
}

/// The rows of row groups that a part hides, as it is up to the commit `seq`: those that its version sees and that are older than the
/// part.
pub fn hidden_rows(
    reader: &BlockReader,
    pool: &Pool,
    table: &TableState,
    part: &MemtablePart,
    seq: Seq,
    cancel: &Cancel,
) -> Result<Vec<(GroupId, Positions)>> {
    if planted(Bug::ForgetHiddenRows) {
        return Ok(Vec::new());
    }
    let rows = part.rows();
    let mut keys = Keys::default();
    rows.memtable.range(None, None, seq).for_each(|record| record.copy_key(&mut keys));
    // By the part's own schema: its version may have expired, and its rows are needed all the same.
    let seen = &table.schemas[part.schema as usize];
    let found = pool.map(table.groups.iter().collect(), |group| {
        cancel.check()?;
        let visible = born_before(group, table.visible(group, part.version), part.version);
        if visible == Rows::None {
            return Ok(None);
        }
        let opened = GroupReader::with_schemas(reader, &table.schemas, seen, group)?;
        let range = candidates(&opened, &rows.codec, &keys)?;
        if range.is_empty() {
            return Ok(None);
        }
        let mut hidden = roaring::RoaringBitmap::new();
        GroupKeys::of(&opened, &rows.codec)?.find(&keys, range, |_, row| {
            hidden.insert(row);
        });
        hidden &= visible.positions(group.rows);
        Ok((!hidden.is_empty()).then(|| (group.id, Positions::from(hidden))))
    })?;
    Ok(found.into_iter().flatten().collect())
}

/// The number of visible rows of a table. Reads row groups if rows are in memory, or may have expired.
pub fn count_rows(
    reader: &BlockReader,
    pool: &Pool,
    table: &TableState,
    read_point: ReadPoint,
    cancel: &Cancel,
) -> Result<u64> {
    let expiry = Expiry::at(table, read_point)?.filter(|_| !planted(Bug::CountExpired));
    let overlay = Overlay::new(table, read_point);
    if expiry.is_none() && overlay.is_none() {
        return Ok(table.stored_rows(read_point.version));
    }
    let overlay = overlay.map(|overlay| SeenOverlay::whole(&overlay));
    let counts = pool.map(table.groups.iter().collect(), |group| {
        cancel.check()?;
        let visible = table.visible(group, read_point.version);
        if visible == Rows::None {
            return Ok(0);
        }
        let opened = GroupReader::open(reader, table, read_point.version, group)?;
        let alive = expiry.as_ref().map_or(Ok(visible.clone()), |expiry| expiry.alive(&opened, visible))?;
        Ok(match &overlay {
            Some(overlay) => overlay.hide(&opened, alive)?.count(group.rows),
            None => alive.count(group.rows),
        })
    })?;
    let in_memory = match (&overlay, &expiry) {
        (None, _) => 0,
        (Some(SeenOverlay { rows, .. }), None) => rows.live(),
        (Some(SeenOverlay { rows, codec, .. }), Some(expiry)) => {
            let (keys, rows) = rows.rows_at(0..rows.keys.len());
            expiry.alive_in_memory(codec, &keys, &rows)?.count_set_bits() as u64
        }
    };
    Ok(counts.into_iter().sum::<u64>() + in_memory)
}

/// The number of rows that a version of `table` shows, or a few more: rows in memory may take the place of others. Nothing is read.
pub fn rows_at_most(table: &TableState, read_point: ReadPoint) -> u64 {
    let in_memory = Overlay::new(table, read_point).map_or(0, |overlay| overlay.keys_at_most());
    table.stored_rows(read_point.version) + in_memory
}
