//! Tests a column's array, in whatever physical form the batch holds it.
//!
//! Invariant: all physical forms of the bound kind give the same result. A dictionary's values are tested once each.

use std::ops::Range;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, BinaryViewArray, BooleanArray, LargeBinaryArray,
    LargeStringArray, PrimitiveArray, RecordBatch, Scalar, StringArray, StringViewArray, make_array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow::compute::kernels::comparison::{ilike, like};
use arrow::compute::take;
use arrow::datatypes::*;

use super::kind::Kind;
use super::plan::{ColumnRef, LikePattern, Test};
use super::text::names::written;
use super::text::number::{float_key, key_float};
use super::text::syntax::CompareOp;
use super::truth::{compare, constant};
use crate::base::{Error, Result, TypeName};

/// Runs the body with the array as one of a type whose native value is an integer.
macro_rules! with_integers {
    ($array:expr, $typed:ident => $body:expr, _ => $other:expr) => {
        with_integers!(@match $array, $typed, $body, $other;
            DataType::Int8 => Int8Type, DataType::Int16 => Int16Type, DataType::Int32 => Int32Type, DataType::Int64 => Int64Type,
            DataType::UInt8 => UInt8Type, DataType::UInt16 => UInt16Type, DataType::UInt32 => UInt32Type, DataType::UInt64 => UInt64Type,
            DataType::Decimal32(..) => Decimal32Type, DataType::Decimal64(..) => Decimal64Type, DataType::Decimal128(..) => Decimal128Type,
            DataType::Date32 => Date32Type, DataType::Date64 => Date64Type,
            DataType::Time32(TimeUnit::Second) => Time32SecondType, DataType::Time32(TimeUnit::Millisecond) => Time32MillisecondType,
            DataType::Time64(TimeUnit::Microsecond) => Time64MicrosecondType, DataType::Time64(TimeUnit::Nanosecond) => Time64NanosecondType,
            DataType::Timestamp(TimeUnit::Second, _) => TimestampSecondType,
            DataType::Timestamp(TimeUnit::Millisecond, _) => TimestampMillisecondType,
            DataType::Timestamp(TimeUnit::Microsecond, _) => TimestampMicrosecondType,
            DataType::Timestamp(TimeUnit::Nanosecond, _) => TimestampNanosecondType,
            DataType::Duration(TimeUnit::Second) => DurationSecondType, DataType::Duration(TimeUnit::Millisecond) => DurationMillisecondType,
            DataType::Duration(TimeUnit::Microsecond) => DurationMicrosecondType, DataType::Duration(TimeUnit::Nanosecond) => DurationNanosecondType,
        )
    };
    (@match $array:expr, $typed:ident, $body:expr, $other:expr; $($pattern:pat => $type:ty),* $(,)?) => {
        match $array.data_type() {
            $($pattern => {
                let $typed = $array.as_primitive::<$type>();
                $body
            })*
            _ => $other,
        }
    };
}

/// The array of a column, by name; a field below a null struct is null.
pub fn fetch(batch: &RecordBatch, column: &ColumnRef) -> Result<ArrayRef> {
    let missing = || Error::invalid(format!("the batch does not have the column {}", column.path.join(".")));
    let (root, below) = column.path.split_first().expect("a path has a name");
    let mut array = batch.column_by_name(root).ok_or_else(missing)?.clone();
    for name in below {
        let parent = array.as_struct_opt().ok_or_else(missing)?;
        let field = parent.column_by_name(name).ok_or_else(missing)?;
        array = match parent.nulls() {
            None => field.clone(),
            _ if field.data_type().is_null() => field.clone(),
            nulls => {
                let nulls = NullBuffer::union(nulls, field.nulls());
                make_array(field.to_data().into_builder().nulls(nulls).build()?)
            }
        };
    }
    if Kind::of(array.data_type()) != column.kind {
        let found = array.data_type();
        return Err(Error::schema_mismatch(format!(
            "column {} of the batch has type {}, which is not the type that the filter was bound to",
            written(root),
            TypeName(found)
        )));
    }
    if column.kind.is_some() { narrowed_to_keys(&array) } else { Ok(array) }
}

/// The values of a dictionary's rows, or the array itself.
pub fn plain(array: &ArrayRef) -> Result<ArrayRef> {
    match array.as_any_dictionary_opt() {
        Some(dictionary) => Ok(take(dictionary.values(), dictionary.keys(), None)?),
        None => Ok(array.clone()),
    }
}

/// The same values in a type that can be tested: decimals in at most 128 bits.
pub fn narrowed_to_keys(array: &ArrayRef) -> Result<ArrayRef> {
    let wide = |data_type: &DataType| matches!(data_type, DataType::Decimal256(..));
    match array.data_type() {
        DataType::Dictionary(_, values) if wide(values) => narrowed(&plain(array)?),
        data_type if wide(data_type) => narrowed(array),
        _ => Ok(array.clone()),
    }
}

/// Decimals of 256 bits whose type has no more digits than 128 bits hold, in 128 bits.
fn narrowed(array: &ArrayRef) -> Result<ArrayRef> {
    let DataType::Decimal256(_, scale) = *array.data_type() else { return Ok(array.clone()) };
    let narrow = array.as_primitive::<Decimal256Type>().try_unary::<_, Decimal128Type, _>(|value| {
        value.to_i128().ok_or_else(|| Error::corrupt(format!("{value} is not a valid {}", TypeName(array.data_type()))))
    })?;
    let narrow = narrow.with_precision_and_scale(DECIMAL128_MAX_PRECISION, scale)?;
    Ok(std::sync::Arc::new(narrow))
}

/// The values of a numeric or temporal column as integers; `None` for floats and others.
#[expect(clippy::useless_conversion, reason = "one of the types that the macro writes out is i128 itself")]
pub fn integers(array: &dyn Array) -> Option<Vec<i128>> {
    with_integers!(array, typed => Some(typed.values().iter().map(|value| i128::from(*value)).collect()), _ => None)
}

/// The values of a numeric or temporal column whose type has no more than 64 bits, sign included; without copying those of 64.
#[expect(clippy::useless_conversion, reason = "one of the types that the macro writes out is i128 itself")]
pub fn narrow_integers(array: &dyn Array) -> Option<ScalarBuffer<i64>> {
    if matches!(array.data_type(), DataType::UInt64 | DataType::Decimal128(..)) {
        return None;
    }
    with_integers!(array, typed => Some(match array.data_type().primitive_width() {
        Some(8) => ScalarBuffer::new(typed.values().inner().clone(), 0, typed.len()),
        _ => typed.values().iter().map(|value| i128::from(*value) as i64).collect(),
    }), _ => None)
}

/// The values of a float column.
pub fn floats(array: &dyn Array) -> Option<Vec<f64>> {
    Some(match array.data_type() {
        DataType::Float16 => array.as_primitive::<Float16Type>().values().iter().map(|value| value.to_f64()).collect(),
        DataType::Float32 => {
            array.as_primitive::<Float32Type>().values().iter().map(|value| f64::from(*value)).collect()
        }
        DataType::Float64 => array.as_primitive::<Float64Type>().values().to_vec(),
        _ => return None,
    })
}

/// Where a test holds in a column of numbers or times, no floats, whose values ascend, nulls first: ranges of rows, ascending. `None` for other
/// columns. O(literals x log rows).
pub fn true_in_sorted(array: &dyn Array, test: &Test) -> Option<Vec<Range<usize>>> {
    with_integers!(array, typed => integers_in_sorted(typed, test), _ => None)
}

fn integers_in_sorted<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, test: &Test) -> Option<Vec<Range<usize>>>
where
    T::Native: Into<i128>,
{
    let (nulls, end) = (array.null_count(), array.len());
    let values = &array.values()[nulls..];
    let first = |key: i128| nulls + values.partition_point(|value| (*value).into() < key);
    let after = |key: i128| nulls + values.partition_point(|value| (*value).into() <= key);
    let one = |range: Range<usize>| std::iter::once(range).collect();
    let ranges = match test {
        Test::Constant(true) => one(nulls..end),
        Test::Constant(false) => Vec::new(),
        Test::Key(CompareOp::Eq, key) => one(first(*key)..after(*key)),
        Test::Key(CompareOp::Ne, key) => vec![nulls..first(*key), after(*key)..end],
        Test::Key(CompareOp::Lt, key) => one(nulls..first(*key)),
        Test::Key(CompareOp::Le, key) => one(nulls..after(*key)),
        Test::Key(CompareOp::Gt, key) => one(after(*key)..end),
        Test::Key(CompareOp::Ge, key) => one(first(*key)..end),
        Test::Keys(set) => set.sorted.iter().map(|key| first(*key)..after(*key)).collect(),
        Test::Bytes(..) | Test::ByteStrings(_) | Test::Like(_) => return None,
    };
    Some(ranges)
}

/// Tests each value; null where the value is.
pub fn test(array: &dyn Array, test: &Test) -> Result<BooleanArray> {
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        let answers = self::test(dictionary.values(), test)?;
        return Ok(take(&answers, dictionary.keys(), None)?.as_boolean().clone());
    }
    if let Test::Constant(answer) = test {
        let all = constant(Some(*answer), array.len());
        return Ok(BooleanArray::new(all.values().clone(), array.logical_nulls()));
    }
    match array.data_type() {
        DataType::Float16 => Ok(test_floats(array.as_primitive::<Float16Type>(), test, |value| value.to_f64())),
        DataType::Float32 => Ok(test_floats(array.as_primitive::<Float32Type>(), test, f64::from)),
        DataType::Float64 => Ok(test_floats(array.as_primitive::<Float64Type>(), test, |value| value)),
        _ => with_integers!(array, typed => test_integers(typed, test), _ => test_bytes(array, test)),
    }
}

fn test_integers<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, test: &Test) -> Result<BooleanArray>
where
    T::Native: Into<i128> + TryFrom<i128>,
{
    let Test::Key(op, bound) = test else { return Ok(each(array, |value| test.holds(value.into()))) };
    match T::Native::try_from(*bound) {
        Ok(bound) => {
            let bound = PrimitiveArray::<T>::from_value(bound, 1).with_data_type(array.data_type().clone());
            Ok(compare(*op, array, &Scalar::new(bound))?)
        }
        // The bound is outside the range of this physical type: every value is on one side of it.
        Err(_) => {
            let answer = op.holds(0.cmp(bound));
            Ok(BooleanArray::new(constant(Some(answer), array.len()).values().clone(), array.nulls().cloned()))
        }
    }
}

/// Arrow's kernels order floats by their bits; here, NaN of any sign is greatest and zeros are equal. IEEE comparisons
/// give that if the bound is not NaN: `value < bound` is false for a NaN, as it should be.
fn test_floats<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    test: &Test,
    wide: impl Fn(T::Native) -> f64,
) -> BooleanArray {
    let Test::Key(op, key) = test else { return each(array, |value| test.holds(i128::from(float_key(wide(value))))) };
    let bound = i64::try_from(*key).map_or(f64::NAN, key_float);
    if bound.is_nan() {
        return each(array, |value| op.holds(wide(value).is_nan().cmp(&true)));
    }
    match op {
        CompareOp::Eq => each(array, |value| wide(value) == bound),
        CompareOp::Ne => each(array, |value| wide(value) != bound),
        CompareOp::Lt => each(array, |value| wide(value) < bound),
        CompareOp::Le => each(array, |value| wide(value) <= bound),
        // NaN is the greatest.
        CompareOp::Gt => each(array, |value| wide(value) > bound || wide(value).is_nan()),
        CompareOp::Ge => each(array, |value| wide(value) >= bound || wide(value).is_nan()),
    }
}

fn each<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, holds: impl Fn(T::Native) -> bool) -> BooleanArray {
    let values = array.values();
    BooleanArray::new(BooleanBuffer::collect_bool(values.len(), |row| holds(values[row])), array.nulls().cloned())
}

fn test_bytes(array: &dyn Array, test: &Test) -> Result<BooleanArray> {
    match test {
        Test::Bytes(op, bytes) => compare_bytes(array, *op, bytes),
        Test::ByteStrings(set) => each_bytes(array, |value| set.hashed.contains(value)),
        Test::Like(pattern) => test_like(array, pattern),
        Test::Constant(_) | Test::Key(..) | Test::Keys(_) => Err(unfit(array)),
    }
}

fn compare_bytes(array: &dyn Array, op: CompareOp, bytes: &[u8]) -> Result<BooleanArray> {
    let text = || std::str::from_utf8(bytes).map_err(|_| unfit(array));
    Ok(match array.data_type() {
        DataType::Utf8 => compare(op, &array.as_string::<i32>(), &StringArray::new_scalar(text()?))?,
        DataType::LargeUtf8 => compare(op, &array.as_string::<i64>(), &LargeStringArray::new_scalar(text()?))?,
        DataType::Utf8View => compare(op, &array.as_string_view(), &StringViewArray::new_scalar(text()?))?,
        DataType::Binary => compare(op, &array.as_binary::<i32>(), &BinaryArray::new_scalar(bytes))?,
        DataType::LargeBinary => compare(op, &array.as_binary::<i64>(), &LargeBinaryArray::new_scalar(bytes))?,
        DataType::BinaryView => compare(op, &array.as_binary_view(), &BinaryViewArray::new_scalar(bytes))?,
        // Arrow does not compare binaries of different fixed sizes.
        _ => each_bytes(array, |value| op.holds(value.cmp(bytes)))?,
    })
}

fn test_like(array: &dyn Array, pattern: &LikePattern) -> Result<BooleanArray> {
    let text = pattern.text.as_str();
    let kernel = if pattern.insensitive { ilike } else { like };
    Ok(match array.data_type() {
        DataType::Utf8 => kernel(&array.as_string::<i32>(), &StringArray::new_scalar(text))?,
        DataType::LargeUtf8 => kernel(&array.as_string::<i64>(), &LargeStringArray::new_scalar(text))?,
        DataType::Utf8View => kernel(&array.as_string_view(), &StringViewArray::new_scalar(text))?,
        _ => return Err(unfit(array)),
    })
}

fn each_bytes(array: &dyn Array, holds: impl Fn(&[u8]) -> bool) -> Result<BooleanArray> {
    let rows = array.len();
    // Bytes under a null may be any bytes of the buffer; the result is masked.
    let values = match array.data_type() {
        DataType::Utf8 => {
            BooleanBuffer::collect_bool(rows, |row| holds(array.as_string::<i32>().value(row).as_bytes()))
        }
        DataType::LargeUtf8 => {
            BooleanBuffer::collect_bool(rows, |row| holds(array.as_string::<i64>().value(row).as_bytes()))
        }
        DataType::Utf8View => {
            BooleanBuffer::collect_bool(rows, |row| holds(array.as_string_view().value(row).as_bytes()))
        }
        DataType::Binary => BooleanBuffer::collect_bool(rows, |row| holds(array.as_binary::<i32>().value(row))),
        DataType::LargeBinary => BooleanBuffer::collect_bool(rows, |row| holds(array.as_binary::<i64>().value(row))),
        DataType::BinaryView => BooleanBuffer::collect_bool(rows, |row| holds(array.as_binary_view().value(row))),
        DataType::FixedSizeBinary(_) => {
            BooleanBuffer::collect_bool(rows, |row| holds(array.as_fixed_size_binary().value(row)))
        }
        _ => return Err(unfit(array)),
    };
    Ok(BooleanArray::new(values, array.nulls().cloned()))
}

fn unfit(array: &dyn Array) -> Error {
    Error::schema_mismatch(format!(
        "the filter was bound to a column of another type than {}",
        TypeName(array.data_type())
    ))
}
