//! Columns by name, masks of rows, casts.

use arrow::array::{ArrayRef, BooleanArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Schema};
use roaring::RoaringBitmap;

use crate::base::{Error, Result};
use crate::filter::column_meant;

/// The rows of a row group as an Arrow mask.
pub(super) fn mask(rows: &RoaringBitmap, total: u32) -> BooleanArray {
    let mut words = vec![0_u64; (total as usize).div_ceil(64)];
    for position in rows {
        words[position as usize / 64] |= 1 << (position % 64);
    }
    BooleanArray::new(BooleanBuffer::new(words.into(), 0, total as usize), None)
}

/// The position of the column that `name` means, or an error that lists the existing columns.
pub(super) fn find(schema: &Schema, name: &str) -> Result<usize> {
    schema.index_of(column_meant(name, schema)).map_err(|_| {
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        Error::invalid(format!("column '{name}' does not exist; the columns are '{}'", names.join("', '")))
    })
}

/// Casts, if need be.
pub(super) fn into_type(array: ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if array.data_type() == data_type {
        return Ok(array);
    }
    Ok(arrow::compute::cast(&array, data_type)?)
}
