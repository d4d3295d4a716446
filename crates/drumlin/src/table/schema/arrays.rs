//! Columns by name, masks of rows, casts, values for messages.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, new_null_array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::util::display::array_value_to_string;
use roaring::RoaringBitmap;

use crate::base::{Error, Result};
pub use crate::filter::find_column as find;

/// The metadata of a field that says that its column is read by name only.
pub const HIDDEN: &str = "drumlin.hidden";

/// Whether a column is not among those that a read returns which names none.
pub fn is_hidden(field: &Field) -> bool {
    field.metadata().contains_key(HIDDEN)
}

/// The schema without columns that are read by name only.
pub fn without_hidden(schema: &SchemaRef) -> SchemaRef {
    if !schema.fields().iter().any(|field| is_hidden(field)) {
        return schema.clone();
    }
    let fields: Vec<FieldRef> = schema.fields().iter().filter(|field| !is_hidden(field)).cloned().collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// The places of columns that are asked for by name. `InvalidArgument` if one does not exist, is there twice, or if there is none.
pub fn find_requested(schema: &Schema, names: &[String]) -> Result<Vec<usize>> {
    let places = names.iter().map(|name| find(schema, name)).collect::<Result<Vec<usize>>>()?;
    if places.is_empty() {
        return Err(Error::invalid("no column was requested"));
    }
    if let Some(at) = (1..places.len()).find(|at| places[..*at].contains(&places[*at])) {
        let name = schema.field(places[at]).name();
        return Err(Error::invalid(format!("column '{name}' was requested twice")));
    }
    Ok(places)
}

/// With fewer rows than one in this many, a Roaring bitmap is a list of them: 4,096 of 65,536.
const LISTED_MAX: u64 = 16;

/// The rows of a row group as an Arrow mask.
pub(in crate::table) fn mask(rows: &RoaringBitmap, total: u32) -> BooleanArray {
    let mut words = vec![0_u64; (total as usize).div_ceil(64)];
    // A bitmap keeps few rows as a list, in which each range is searched for.
    if rows.len() * LISTED_MAX < u64::from(total) {
        for row in rows {
            words[row as usize / 64] |= 1 << (row % 64);
        }
        return BooleanArray::new(BooleanBuffer::new(words.into(), 0, total as usize), None);
    }
    let mut ranges = rows.iter();
    while let Some(range) = ranges.next_range() {
        let (first, last) = (*range.start() as usize, *range.end() as usize);
        let (from, to) = (!0_u64 << (first % 64), !0_u64 >> (63 - last % 64));
        match (first / 64, last / 64) {
            (low, high) if low == high => words[low] |= from & to,
            (low, high) => {
                words[low] |= from;
                words[low + 1..high].fill(!0);
                words[high] |= to;
            }
        }
    }
    BooleanArray::new(BooleanBuffer::new(words.into(), 0, total as usize), None)
}

/// Casts, if need be; an error if a value does not fit.
pub fn into_type(array: ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if array.data_type() == data_type {
        return Ok(array);
    }
    if *array.data_type() == DataType::Null {
        return Ok(new_null_array(data_type, array.len()));
    }
    Ok(cast_exactly(&array, data_type)?)
}

/// Casts; an error if a value does not fit. Arrow makes views of a dictionary without looking for nulls among its values, so they are
/// made of its values in the plain form.
pub(in crate::table) fn cast_exactly(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    let exact = CastOptions { safe: false, ..CastOptions::default() };
    match (array.data_type(), data_type) {
        (DataType::Dictionary(..), DataType::Utf8View) => {
            cast_with_options(&cast_with_options(array, &DataType::LargeUtf8, &exact)?, data_type, &exact)
        }
        (DataType::Dictionary(..), DataType::BinaryView) => {
            cast_with_options(&cast_with_options(array, &DataType::LargeBinary, &exact)?, data_type, &exact)
        }
        _ => cast_with_options(array, data_type, &exact),
    }
}

/// The value of a row, for a message.
pub fn shown(column: &ArrayRef, row: usize) -> Result<String> {
    match column.is_null(row) {
        true => Ok("null".to_owned()),
        false => Ok(array_value_to_string(column, row)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_have_the_bits_of_their_rows() {
        let sets: [Vec<u32>; 6] =
            [vec![], vec![0], vec![63, 64, 199], (0..200).collect(), (60..70).collect(), (0..200).step_by(3).collect()];
        for rows in sets {
            let set: RoaringBitmap = rows.iter().copied().collect();
            let mask = mask(&set, 200);
            let found: Vec<u32> = mask.values().set_indices().map(|at| at as u32).collect();
            assert_eq!((found, mask.values().len()), (rows, 200));
        }
    }
}
