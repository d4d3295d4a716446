//! Decimals with more digits than their type allows, at any depth: no reader could represent them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType};

use crate::segment::holds;

/// The first decimal with more digits than its type allows, and its row.
pub(super) fn find_overlong(array: &ArrayRef, hidden: Option<&NullBuffer>) -> Option<(usize, String)> {
    use DataType::*;
    if !holds(array.data_type(), &|part| part.is_decimal()) {
        return None;
    }
    let within = |offsets: &[usize], values: &ArrayRef| {
        let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
        let (at, value) = find_overlong(&values.slice(first, last - first), None)?;
        Some((offsets.partition_point(|offset| *offset <= first + at).saturating_sub(1), value))
    };
    let places = |offsets: &[i32]| offsets.iter().map(|offset| *offset as usize).collect::<Vec<_>>();
    match array.data_type() {
        Decimal32(digits, _) => overlong::<Decimal32Type>(array, *digits, hidden),
        Decimal64(digits, _) => overlong::<Decimal64Type>(array, *digits, hidden),
        Decimal128(digits, _) => overlong::<Decimal128Type>(array, *digits, hidden),
        Decimal256(digits, _) => overlong::<Decimal256Type>(array, *digits, hidden),
        Struct(_) => {
            let hidden = NullBuffer::union(hidden, array.nulls());
            array.as_struct().columns().iter().find_map(|column| find_overlong(column, hidden.as_ref()))
        }
        List(_) => within(&places(array.as_list::<i32>().offsets()), array.as_list::<i32>().values()),
        Map(..) => {
            let entries: ArrayRef = Arc::new(array.as_map().entries().clone());
            within(&places(array.as_map().offsets()), &entries)
        }
        LargeList(_) => {
            let list = array.as_list::<i64>();
            within(&list.offsets().iter().map(|offset| *offset as usize).collect::<Vec<_>>(), list.values())
        }
        FixedSizeList(_, size) => {
            let (list, width) = (array.as_fixed_size_list(), *size as usize);
            let below = NullBuffer::union(hidden, list.nulls()).map(|nulls| nulls.expand(width));
            let (at, value) = find_overlong(&list.values().slice(0, list.len() * width), below.as_ref())?;
            Some((at / width.max(1), value))
        }
        // The row of the element is not determined.
        ListView(_) => find_overlong(array.as_list_view::<i32>().values(), None).map(|(_, value)| (0, value)),
        LargeListView(_) => find_overlong(array.as_list_view::<i64>().values(), None).map(|(_, value)| (0, value)),
        _ => {
            let keyed = array.as_any_dictionary_opt()?;
            let (at, value) = find_overlong(keyed.values(), None)?;
            Some((keyed.normalized_keys().iter().position(|key| *key == at).unwrap_or(0), value))
        }
    }
}

fn overlong<T: DecimalType>(array: &ArrayRef, digits: u8, hidden: Option<&NullBuffer>) -> Option<(usize, String)> {
    let typed: &PrimitiveArray<T> = array.as_primitive::<T>();
    if typed.validate_decimal_precision(digits).is_ok() {
        return None;
    }
    let seen = |row: &usize| typed.is_valid(*row) && hidden.is_none_or(|hidden| hidden.is_valid(*row));
    let mut rows = (0..typed.len()).filter(seen);
    let row = rows.find(|row| !T::is_valid_decimal_precision(typed.value(*row), digits))?;
    // Arrow shows only as many digits as the type allows.
    Some((row, T::format_decimal(typed.value(row), T::MAX_PRECISION, typed.scale())))
}
