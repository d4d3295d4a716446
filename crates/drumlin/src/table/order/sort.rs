//! Sorts the rows of many batches at once, by all threads.

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::row::Rows;

use super::sort_columns::{comparable, sort_columns};
use crate::base::{Pool, Result};
use crate::segment::{holds, interleave, join_batches, take_batch};
use crate::table::ROWS_MAX;
use crate::table::memory::row_bytes::columns_at;

/// Rows of many batches, in the order of the columns called `sort`; equal rows in the order in which they come. Returns the batches
/// themselves if they are in order, else new ones of at most [`ROWS_MAX`] rows. O(n log n), by all threads; memory: the rows once more.
pub fn sorted_batches(pool: &Pool, batches: Vec<RecordBatch>, sort: &[String]) -> Result<Vec<RecordBatch>> {
    let Some(schema) = batches.first().map(RecordBatch::schema) else { return Ok(batches) };
    let slices = |batch: RecordBatch| {
        let rows = batch.num_rows();
        (0..rows).step_by(ROWS_MAX as usize).map(move |at| batch.slice(at, (rows - at).min(ROWS_MAX as usize)))
    };
    let batches: Vec<RecordBatch> = batches.into_iter().flat_map(slices).collect();
    let columns = sort_columns(&schema, sort)?;
    let keys = pool.map(batches.iter().collect(), |batch: &RecordBatch| comparable(&columns_at(batch, &columns)))?;
    let in_order = |keys: &Rows| (1..keys.num_rows()).all(|at| keys.row(at - 1) <= keys.row(at));
    let sorted = pool.map(keys.iter().collect(), |keys: &Rows| Ok(in_order(keys)))?;
    let follows = |pair: &[Rows]| pair[0].row(pair[0].num_rows() - 1) <= pair[1].row(0);
    if sorted.iter().all(|sorted| *sorted) && keys.windows(2).all(follows) {
        return Ok(batches);
    }
    // Most keys differ in their first bytes.
    let compare = |a: &(u128, u32, u32), b: &(u128, u32, u32)| {
        let key = |place: &(u128, u32, u32)| keys[place.1 as usize].row(place.2 as usize);
        a.0.cmp(&b.0).then_with(|| key(a).cmp(&key(b)))
    };
    let own = |at: usize| -> Result<Vec<(u128, u32, u32)>> {
        let place = |row: usize| (prefix(keys[at].row(row).as_ref()), at as u32, row as u32);
        let mut places: Vec<(u128, u32, u32)> = (0..keys[at].num_rows()).map(place).collect();
        places.sort_by(compare);
        Ok(places)
    };
    let mut places = pool.map((0..keys.len()).collect(), own)?.concat();
    // A stable sort finds the stretches that are in order, and merges them.
    places.sort_by(compare);
    drop(keys);
    let keyed = |data_type: &DataType| holds(data_type, &|part| matches!(part, DataType::Dictionary(..)));
    if schema.fields().iter().any(|field| keyed(field.data_type())) {
        // Their values are joined once, not for each batch of the result.
        let starts =
            batches.iter().scan(0, |next, batch| Some(std::mem::replace(next, *next + batch.num_rows() as u32)));
        let starts: Vec<u32> = starts.collect();
        let joined = join_batches(&schema, &batches)?;
        let chunks: Vec<&[(u128, u32, u32)]> = places.chunks(ROWS_MAX as usize).collect();
        return pool.map(chunks, |places: &[(u128, u32, u32)]| {
            take_batch(&joined, places.iter().map(|(_, batch, row)| starts[*batch as usize] + row))
        });
    }
    let chunks: Vec<&[(u128, u32, u32)]> = places.chunks(ROWS_MAX as usize).collect();
    pool.map(chunks, |places: &[(u128, u32, u32)]| {
        let places: Vec<(usize, usize)> =
            places.iter().map(|(_, batch, row)| (*batch as usize, *row as usize)).collect();
        interleave_batches(&schema, &batches, &places)
    })
}

/// The first bytes of a key, as a number that compares as they do.
pub(in crate::table) fn prefix(key: &[u8]) -> u128 {
    let mut first = [0; 16];
    let bytes = key.len().min(16);
    first[..bytes].copy_from_slice(&key[..bytes]);
    u128::from_be_bytes(first)
}

/// Rows of batches of one schema, selected by batch and row.
pub(in crate::table) fn interleave_batches(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    places: &[(usize, usize)],
) -> Result<RecordBatch> {
    let column = |at: usize| {
        let sources: Vec<ArrayRef> = batches.iter().map(|batch| batch.column(at).clone()).collect();
        interleave(&sources, places).map_err(|e| e.context(format!("column '{}'", schema.field(at).name())))
    };
    let columns = (0..schema.fields().len()).map(column).collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(places.len()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}
