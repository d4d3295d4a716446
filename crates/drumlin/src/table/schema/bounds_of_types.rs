//! Values that their types do not allow, at any depth: decimals with more digits, times outside a day, dates with a time of day. No
//! reader could represent them; most would show other values.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    DataType, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimeUnit,
};

use crate::segment::holds;

const DAY_SECONDS: i64 = 86_400;

/// The row of such a value, the value, and what is wrong with it.
pub(in crate::table) type Impossible = (usize, String, &'static str);

/// The first value that its type does not allow.
pub(in crate::table) fn find_impossible(array: &ArrayRef, hidden: Option<&NullBuffer>) -> Option<Impossible> {
    use DataType::*;
    let restricted = |part: &DataType| part.is_decimal() || matches!(part, Time32(_) | Time64(_) | Date64);
    if !holds(array.data_type(), &restricted) {
        return None;
    }
    let in_day = |units: i64| move |value: i64| (0..DAY_SECONDS * units).contains(&value);
    let time = "is not a time of day (00:00 to 24:00), as required by";
    let within = |offsets: &[usize], values: &ArrayRef| {
        let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
        let (at, value, why) = find_impossible(&values.slice(first, last - first), None)?;
        Some((offsets.partition_point(|offset| *offset <= first + at).saturating_sub(1), value, why))
    };
    let places = |offsets: &[i32]| offsets.iter().map(|offset| *offset as usize).collect::<Vec<_>>();
    match array.data_type() {
        Decimal32(digits, _) => overlong::<Decimal32Type>(array, *digits, hidden),
        Decimal64(digits, _) => overlong::<Decimal64Type>(array, *digits, hidden),
        Decimal128(digits, _) => overlong::<Decimal128Type>(array, *digits, hidden),
        Decimal256(digits, _) => overlong::<Decimal256Type>(array, *digits, hidden),
        Time32(TimeUnit::Second) => number::<Time32SecondType>(array, in_day(1), time, hidden),
        Time32(_) => number::<Time32MillisecondType>(array, in_day(1_000), time, hidden),
        Time64(TimeUnit::Microsecond) => number::<Time64MicrosecondType>(array, in_day(1_000_000), time, hidden),
        Time64(_) => number::<Time64NanosecondType>(array, in_day(1_000_000_000), time, hidden),
        Date64 => {
            let whole = |value: i64| value % (DAY_SECONDS * 1_000) == 0;
            number::<Date64Type>(array, whole, "has a time of day, which is not allowed by", hidden)
        }
        Struct(_) => {
            let hidden = NullBuffer::union(hidden, array.nulls());
            array.as_struct().columns().iter().find_map(|column| find_impossible(column, hidden.as_ref()))
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
            let (at, value, why) = find_impossible(&list.values().slice(0, list.len() * width), below.as_ref())?;
            Some((at / width.max(1), value, why))
        }
        // The row of the element is not determined.
        ListView(_) => {
            find_impossible(array.as_list_view::<i32>().values(), None).map(|(_, value, why)| (0, value, why))
        }
        LargeListView(_) => {
            find_impossible(array.as_list_view::<i64>().values(), None).map(|(_, value, why)| (0, value, why))
        }
        _ => {
            let keyed = array.as_any_dictionary_opt()?;
            let (at, value, why) = find_impossible(keyed.values(), None)?;
            Some((keyed.normalized_keys().iter().position(|key| *key == at).unwrap_or(0), value, why))
        }
    }
}

fn overlong<T: DecimalType>(array: &ArrayRef, digits: u8, hidden: Option<&NullBuffer>) -> Option<Impossible> {
    let typed: &PrimitiveArray<T> = array.as_primitive::<T>();
    if typed.validate_decimal_precision(digits).is_ok() {
        return None;
    }
    let seen = |row: &usize| typed.is_valid(*row) && hidden.is_none_or(|hidden| hidden.is_valid(*row));
    let mut rows = (0..typed.len()).filter(seen);
    let row = rows.find(|row| !T::is_valid_decimal_precision(typed.value(*row), digits))?;
    // Arrow shows only as many digits as the type allows.
    let value = T::format_decimal(typed.value(row), T::MAX_PRECISION, typed.scale());
    Some((row, value, "has more digits than allowed by"))
}

/// The first number that is not `allowed`.
fn number<T: ArrowPrimitiveType<Native: Into<i64>>>(
    array: &ArrayRef,
    allowed: impl Fn(i64) -> bool,
    why: &'static str,
    hidden: Option<&NullBuffer>,
) -> Option<Impossible> {
    let typed = array.as_primitive::<T>();
    if typed.values().iter().all(|value| allowed((*value).into())) {
        return None;
    }
    let seen = |row: &usize| typed.is_valid(*row) && hidden.is_none_or(|hidden| hidden.is_valid(*row));
    let row = (0..typed.len()).filter(seen).find(|row| !allowed(typed.value(*row).into()))?;
    let value: i64 = typed.value(row).into();
    Some((row, value.to_string(), why))
}
