//! Rows that were found row group by row group, in the order in which a table shows them.

use arrow::array::{RecordBatch, UInt32Array};
use roaring::RoaringBitmap;

use super::places::in_places;
use crate::base::{Error, Pool, Result, Version};
use crate::block::BlockReader;
use crate::table::read::group_reader::GroupReader;
use crate::table::{RowGroup, Rows, TableState, Tract};

/// Rows of row groups of a table, in the order in which these stand, as it shows them: those of a tract by their places.
pub fn in_shown_order<'g>(
    reader: &BlockReader,
    pool: &Pool,
    table: &TableState,
    version: Version,
    found: impl Iterator<Item = ((&'g RowGroup, &'g RoaringBitmap), RecordBatch)>,
) -> Result<Vec<RecordBatch>> {
    let mut shown = Vec::new();
    let mut open: (Option<Tract>, Vec<(RecordBatch, UInt32Array)>) = (None, Vec::new());
    let close = |shown: &mut Vec<RecordBatch>, rows: Vec<(RecordBatch, UInt32Array)>| {
        let Some(schema) = rows.first().map(|(batch, _)| batch.schema()) else { return Ok(()) };
        shown.extend(in_places(pool, &schema, rows)?);
        Ok::<(), Error>(())
    };
    for ((group, rows), batch) in found {
        let tract = group.tract();
        if tract != open.0 {
            close(&mut shown, std::mem::take(&mut open.1))?;
            open.0 = tract;
        }
        match GroupReader::open(reader, table, version, group)?.places(&Rows::of(rows.clone(), group.rows))? {
            Some(places) => open.1.push((batch, places)),
            None => shown.push(batch),
        }
    }
    close(&mut shown, open.1)?;
    Ok(shown)
}
