//! Puts the entries of row groups into order: by value, nulls first, then by place.
//!
//! Of one value that is an integer or a time, pairs of the value and the entry are sorted and merged, which takes a fifth of the time of
//! comparing rows. All else is sorted by row group and merged as rows of tables are.

use arrow::array::{Array, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::SchemaRef;

use crate::base::{Pool, Result};
use crate::filter::narrow_integers;
use crate::table::ROWS_MAX;
use crate::table::order::kway::Merged;
use crate::table::order::sort_columns::sorted;

/// An integer, and which entry has it.
type Keyed = (i64, u32);

/// The entries of all `batches` of `schema`, whose places ascend, by the columns called `values`; in batches of at most as many as a part of
/// a run has.
pub(in crate::table) fn merged_entries(
    pool: &Pool,
    schema: SchemaRef,
    values: &[String],
    batches: Vec<RecordBatch>,
) -> Result<Vec<RecordBatch>> {
    if let ([_], Some(order)) = (values, by_integers(pool, &batches)?) {
        let all = concat_batches(&schema, &batches)?;
        drop(batches);
        let parts: Vec<&[u32]> = order.chunks(ROWS_MAX as usize).collect();
        return pool.map(parts, |part| Ok(take_record_batch(&all, &UInt32Array::from(part.to_vec()))?));
    }
    let sorted = pool.map(batches, |batch| sorted(batch, values))?;
    let sources = sorted.into_iter().map(|batch| std::iter::once(Ok(batch))).collect();
    let merged: Vec<RecordBatch> = Merged::new(schema, values, sources)?.collect::<Result<_>>()?;
    Ok(merged.into_iter().filter(|batch| batch.num_rows() > 0).collect())
}

/// The order of all entries by their first column; `None` if that does not have integers of up to 64 bits.
fn by_integers(pool: &Pool, batches: &[RecordBatch]) -> Result<Option<Vec<u32>>> {
    let mut start = 0;
    let begun = batches.iter().map(|batch| {
        let own = start;
        start += batch.num_rows() as u32;
        (own, batch)
    });
    let keyed = pool.map(begun.collect(), |(start, batch): (u32, &RecordBatch)| {
        let column = batch.column(0);
        let Some(keys) = narrow_integers(&**column) else { return Ok(None) };
        let (mut own, mut nulls): (Vec<Keyed>, Vec<u32>) = (Vec::with_capacity(keys.len()), Vec::new());
        for (at, key) in (start..).zip(&*keys) {
            match column.is_valid((at - start) as usize) {
                true => own.push((*key, at)),
                false => nulls.push(at),
            }
        }
        own.sort_unstable();
        Ok(Some((own, nulls)))
    })?;
    let Some(keyed) = keyed.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
    let (mut lists, nulls): (Vec<Vec<Keyed>>, Vec<Vec<u32>>) = keyed.into_iter().unzip();
    while lists.len() > 1 {
        let mut pairs: Vec<(Vec<Keyed>, Vec<Keyed>)> = Vec::with_capacity(lists.len() / 2 + 1);
        let mut left = lists.into_iter();
        while let Some(one) = left.next() {
            pairs.push((one, left.next().unwrap_or_default()));
        }
        lists = pool.map(pairs, |(a, b)| Ok(merged_pair(a, b)))?;
    }
    let sorted = lists.into_iter().flatten().map(|(_, at)| at);
    Ok(Some(nulls.into_iter().flatten().chain(sorted).collect()))
}

/// Two sorted lists as one.
fn merged_pair(a: Vec<Keyed>, b: Vec<Keyed>) -> Vec<Keyed> {
    if b.is_empty() {
        return a;
    }
    let mut merged = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.into_iter().peekable(), b.into_iter().peekable());
    while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
        merged.extend(if x <= y { a.next() } else { b.next() });
    }
    merged.extend(a);
    merged.extend(b);
    merged
}
