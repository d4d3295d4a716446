//! A filter evaluated on columns, and on the rows of a row group.

use arrow::buffer::BooleanBuffer;
use arrow::datatypes::SchemaRef;
use roaring::RoaringBitmap;

use crate::base::Result;
use crate::filter::{BoundFilter, Verdict};
use crate::segment::Form;
use crate::table::Rows;
use crate::table::read::group_reader::GroupReader;
use crate::table::read::pieces::PICK_SHARE;

/// The rows among `rows` of a row group for which `filter` is true.
pub(in crate::table) fn matching(
    reader: &GroupReader<'_>,
    schema: &SchemaRef,
    rows: &Rows,
    filter: &BoundFilter,
) -> Result<Rows> {
    if *rows == Rows::None {
        return Ok(Rows::None);
    }
    let total = reader.group.rows;
    let stats = |index: usize| reader.stats(schema, index);
    match filter.verdict(u64::from(total), &stats) {
        Verdict::None => {
            reader.blocks.metrics().groups_pruned.add(1);
            return Ok(Rows::None);
        }
        Verdict::All => return Ok(rows.clone()),
        Verdict::Some => {}
    }
    if let Rows::Some(few) = rows
        && few.len() <= u64::from(total) / PICK_SHARE
    {
        let picked: Vec<u32> = few.iter().collect();
        let columns = reader.pick(schema, filter.columns(), &picked)?;
        let truth = filter.truth(schema, picked.len(), columns)?;
        return Ok(Rows::of(truth.set_indices().map(|at| picked[at]).collect(), total));
    }
    let decoded = |filter: &BoundFilter| {
        filter.truth(schema, total as usize, reader.decode(schema, filter.columns(), Form::Stored)?)
    };
    let mut hits = match filter.ranges() {
        ([], _) => bitmap(&decoded(filter)?),
        (ranges, rest) => {
            let found = reader.within(schema, ranges)?;
            match rest {
                Some(rest) if found.count_set_bits() > 0 => bitmap(&(&found & &decoded(rest)?)),
                _ => bitmap(&found),
            }
        }
    };
    if let Rows::Some(rows) = rows {
        hits &= rows;
    }
    Ok(match hits.len() {
        0 => Rows::None,
        n if n == u64::from(total) => Rows::All,
        _ => Rows::Some(hits),
    })
}

/// The set bits.
fn bitmap(bits: &BooleanBuffer) -> RoaringBitmap {
    let mut bytes = bits.sliced().to_vec();
    bytes.truncate(bits.len().div_ceil(8));
    if let Some(last) = bytes.last_mut().filter(|_| !bits.len().is_multiple_of(8)) {
        *last &= (1 << (bits.len() % 8)) - 1;
    }
    RoaringBitmap::from_lsb0_bytes(0, &bytes)
}
