//! Computes a column's statistics.
//!
//! Invariant: they ignore values under nulls, and values of a dictionary that no row uses.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray};
use arrow::compute::{filter, max, max_boolean, min, min_boolean};
use arrow::datatypes::*;

use super::stats::{ColumnStats, STAT_BYTES_MAX, Stat, compare_floats};

/// The statistics of a column. Linear in its rows.
pub fn measure(array: &ArrayRef) -> ColumnStats {
    let nulls = array.logical_null_count() as u64;
    if nulls == array.len() as u64 {
        return ColumnStats { nulls, ..ColumnStats::default() };
    }
    let (min, max, exact) = match array.data_type() {
        DataType::Dictionary(..) => {
            let used = measure(&used_values(array));
            (used.min, used.max, used.exact)
        }
        _ => bounds(array),
    };
    ColumnStats { nulls, min, max, exact }
}

type MinMax = (Option<Stat>, Option<Stat>, bool);

fn bounds(array: &ArrayRef) -> MinMax {
    match array.data_type() {
        DataType::Boolean => {
            let array = array.as_boolean();
            exactly(min_boolean(array).zip(max_boolean(array)), Stat::Bool)
        }
        DataType::Int8 => signed::<Int8Type>(array),
        DataType::Int16 => signed::<Int16Type>(array),
        DataType::Int32 => signed::<Int32Type>(array),
        DataType::Int64 => signed::<Int64Type>(array),
        DataType::UInt8 => unsigned::<UInt8Type>(array),
        DataType::UInt16 => unsigned::<UInt16Type>(array),
        DataType::UInt32 => unsigned::<UInt32Type>(array),
        DataType::UInt64 => unsigned::<UInt64Type>(array),
        DataType::Float16 => floats::<Float16Type>(array),
        DataType::Float32 => floats::<Float32Type>(array),
        DataType::Float64 => floats::<Float64Type>(array),
        DataType::Date32 => signed::<Date32Type>(array),
        DataType::Date64 => signed::<Date64Type>(array),
        DataType::Time32(TimeUnit::Second) => signed::<Time32SecondType>(array),
        DataType::Time32(_) => signed::<Time32MillisecondType>(array),
        DataType::Time64(TimeUnit::Microsecond) => signed::<Time64MicrosecondType>(array),
        DataType::Time64(_) => signed::<Time64NanosecondType>(array),
        DataType::Timestamp(TimeUnit::Second, _) => signed::<TimestampSecondType>(array),
        DataType::Timestamp(TimeUnit::Millisecond, _) => signed::<TimestampMillisecondType>(array),
        DataType::Timestamp(TimeUnit::Microsecond, _) => signed::<TimestampMicrosecondType>(array),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => signed::<TimestampNanosecondType>(array),
        DataType::Duration(TimeUnit::Second) => signed::<DurationSecondType>(array),
        DataType::Duration(TimeUnit::Millisecond) => signed::<DurationMillisecondType>(array),
        DataType::Duration(TimeUnit::Microsecond) => signed::<DurationMicrosecondType>(array),
        DataType::Duration(TimeUnit::Nanosecond) => signed::<DurationNanosecondType>(array),
        DataType::Decimal32(..) => decimals::<Decimal32Type>(array),
        DataType::Decimal64(..) => decimals::<Decimal64Type>(array),
        DataType::Decimal128(..) => decimals::<Decimal128Type>(array),
        DataType::Utf8 => bytes(array.as_string::<i32>().iter().flatten().map(str::as_bytes)),
        DataType::LargeUtf8 => bytes(array.as_string::<i64>().iter().flatten().map(str::as_bytes)),
        DataType::Utf8View => bytes(array.as_string_view().iter().flatten().map(str::as_bytes)),
        DataType::Binary => bytes(array.as_binary::<i32>().iter().flatten()),
        DataType::LargeBinary => bytes(array.as_binary::<i64>().iter().flatten()),
        DataType::BinaryView => bytes(array.as_binary_view().iter().flatten()),
        DataType::FixedSizeBinary(_) => bytes(array.as_fixed_size_binary().iter().flatten()),
        _ => (None, None, false),
    }
}

fn exactly<T>(range: Option<(T, T)>, stat: impl Fn(T) -> Stat) -> MinMax {
    match range {
        Some((least, greatest)) => (Some(stat(least)), Some(stat(greatest)), true),
        None => (None, None, false),
    }
}

fn range<T: ArrowPrimitiveType>(array: &ArrayRef) -> Option<(T::Native, T::Native)> {
    let array = array.as_primitive::<T>();
    min(array).zip(max(array))
}

fn signed<T: ArrowPrimitiveType<Native: Into<i64>>>(array: &ArrayRef) -> MinMax {
    exactly(range::<T>(array), |value| Stat::Int(value.into()))
}

fn unsigned<T: ArrowPrimitiveType<Native: Into<u64>>>(array: &ArrayRef) -> MinMax {
    exactly(range::<T>(array), |value| Stat::UInt(value.into()))
}

fn decimals<T: ArrowPrimitiveType<Native: Into<i128>>>(array: &ArrayRef) -> MinMax {
    exactly(range::<T>(array), |value| Stat::Decimal(value.into()))
}

/// Arrow's own minimum follows the total order of IEEE 754, where a negative NaN is least.
fn floats<T: ArrowPrimitiveType<Native: Into<f64>>>(array: &ArrayRef) -> MinMax {
    let array = array.as_primitive::<T>();
    let widen = |range: (f64, f64), value: T::Native| {
        let value = value.into();
        let least = if compare_floats(value, range.0).is_lt() { value } else { range.0 };
        let greatest = if compare_floats(value, range.1).is_gt() { value } else { range.1 };
        (least, greatest)
    };
    let from = (f64::NAN, f64::NEG_INFINITY);
    let range = if array.null_count() == 0 {
        array.values().iter().copied().fold(from, widen)
    } else {
        array.iter().flatten().fold(from, widen)
    };
    exactly(Some(range), Stat::Float)
}

fn bytes<'a>(mut values: impl Iterator<Item = &'a [u8]>) -> MinMax {
    let Some(first) = values.next() else {
        return (None, None, false);
    };
    let (least, greatest) = values.fold((first, first), |(least, greatest), value| {
        if value < least {
            (value, greatest)
        } else if value > greatest {
            (least, value)
        } else {
            (least, greatest)
        }
    });
    let exact = least.len() <= STAT_BYTES_MAX && greatest.len() <= STAT_BYTES_MAX;
    let lower = least[..least.len().min(STAT_BYTES_MAX)].to_vec();
    (Some(Stat::Bytes(lower)), upper_bound(greatest).map(Stat::Bytes), exact)
}

/// The value if it is short, else the smallest short byte string above all that share its prefix.
fn upper_bound(value: &[u8]) -> Option<Vec<u8>> {
    if value.len() <= STAT_BYTES_MAX {
        return Some(value.to_vec());
    }
    let mut bound = value[..STAT_BYTES_MAX].to_vec();
    while let Some(last) = bound.last_mut() {
        if *last < u8::MAX {
            *last += 1;
            return Some(bound);
        }
        bound.pop();
    }
    None
}

/// The values of a dictionary that some row refers to.
fn used_values(array: &ArrayRef) -> ArrayRef {
    let array = array.as_any_dictionary();
    let mut used = vec![false; array.values().len()];
    let keys = array.normalized_keys();
    for (row, key) in keys.into_iter().enumerate() {
        if array.keys().is_valid(row) {
            used[key] = true;
        }
    }
    let used = BooleanArray::from(used);
    // Only types that Arrow can filter get into a dictionary; otherwise, all values still give valid bounds.
    filter(array.values(), &used).unwrap_or_else(|_| array.values().clone())
}
