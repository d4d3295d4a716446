//! Values computed from the columns of a row: what a column is set to.
//!
//! Invariants: the values have exactly the type that was asked for; a number that the type cannot hold is an error that names
//! it. Numbers are rounded to the scale of an integer or decimal type, halves away from zero, as SQL does; nothing else is
//! rounded.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, Float64Array, PrimitiveArray, RecordBatch, StringArray,
    UInt32Array, new_null_array,
};
use arrow::compute::{CastOptions, cast_with_options, take};
use arrow::datatypes::*;

use super::arithmetic::ColumnarValue;
use super::kind::{DomainLiteral, Kind};
use super::plan::{ColumnRef, Predicate, ScalarExpression};
use super::text::number::{Number, key_float, power_of_ten};
use super::{arithmetic, column, evaluate};
use crate::base::{Error, Result, TypeName};

/// What gives the values of one column.
#[derive(Clone, Debug)]
pub enum ValueSource {
    Null,
    /// The same in all rows.
    Literal(Kind, DomainLiteral),
    Column(ColumnRef),
    Number(ScalarExpression),
    Truth(Predicate),
}

/// The values, one for each row of `batch`, in type `wanted`.
pub fn compute(source: &ValueSource, batch: &RecordBatch, wanted: &DataType) -> Result<ArrayRef> {
    let rows = batch.num_rows();
    match source {
        ValueSource::Null => Ok(new_null_array(wanted, rows)),
        ValueSource::Literal(kind, placed) => {
            let value = literal(*kind, placed, wanted)?;
            Ok(take(&value, &UInt32Array::from(vec![0; rows]), None)?)
        }
        ValueSource::Column(column) => {
            let array = column::fetch(batch, column)?;
            match column.kind {
                _ if array.data_type() == wanted => Ok(array),
                Some(
                    Kind::Number { .. }
                    | Kind::Float
                    | Kind::Instant { .. }
                    | Kind::Time { .. }
                    | Kind::Duration { .. },
                ) => assigned(&arithmetic::evaluate(&ScalarExpression::Column(column.clone()), batch)?, rows, wanted),
                _ => exactly(&array, wanted),
            }
        }
        ValueSource::Number(value) => assigned(&arithmetic::evaluate(value, batch)?, rows, wanted),
        ValueSource::Truth(node) => exactly(&(Arc::new(evaluate::evaluate(node, batch)?) as ArrayRef), wanted),
    }
}

/// The same, but decimals are of 64 bits where those are enough.
pub fn compute_native(source: &ValueSource, batch: &RecordBatch, wanted: &DataType) -> Result<ArrayRef> {
    let exact = matches!(wanted, DataType::Int64 | DataType::Decimal128(..) | DataType::Float64);
    let ValueSource::Number(value) = source else { return compute(source, batch, wanted) };
    let operand = arithmetic::evaluate(value, batch)?;
    if !exact || value.kind() != Kind::of(wanted) {
        return assigned(&operand, batch.num_rows(), wanted);
    }
    operand.into_array(batch.num_rows(), wanted)
}

/// Casts as Arrow does; an error if a value does not fit.
pub fn exactly(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    let exact = CastOptions { safe: false, ..CastOptions::default() };
    Ok(cast_with_options(array, wanted, &exact)?)
}

/// A literal as an array of one row.
fn literal(kind: Kind, placed: &DomainLiteral, wanted: &DataType) -> Result<ArrayRef> {
    match (kind, placed) {
        (Kind::Binary, DomainLiteral::Bytes(bytes)) => {
            exactly(&(Arc::new(BinaryArray::from_vec(vec![bytes])) as ArrayRef), wanted)
        }
        (_, DomainLiteral::Bytes(bytes)) => {
            let text = std::str::from_utf8(bytes).map_err(|_| Error::invalid("a string is not valid UTF-8"))?;
            exactly(&(Arc::new(StringArray::from(vec![text])) as ArrayRef), wanted)
        }
        (Kind::Float, DomainLiteral::Key((key, _))) => {
            let value = i64::try_from(*key).map_err(|_| Error::invalid("a number is not a valid double"))?;
            floats(vec![Some(key_float(value))], wanted)
        }
        (_, DomainLiteral::Key((key, true))) => integers(vec![Some(*key)], wanted),
        (Kind::Number { scale }, DomainLiteral::Key(_)) => Err(Error::invalid(format!(
            "the number has more than {scale} decimal places, the most that {} can hold",
            TypeName(wanted)
        ))),
        _ => Err(Error::invalid(format!("the value is not a valid {}", TypeName(wanted)))),
    }
}

/// Computed numbers in the type of a column.
pub fn assigned(operand: &ColumnarValue, rows: usize, wanted: &DataType) -> Result<ArrayRef> {
    let refused = |text: String| Error::invalid(format!("{text} is not a valid {}", TypeName(wanted)));
    let kind = Kind::of(wanted)
        .ok_or_else(|| Error::schema_mismatch(format!("a number is not a valid {}", TypeName(wanted))))?;
    let (scale, step, rounds) = match kind {
        Kind::Float => {
            let values = (0..rows).map(|row| operand.is_valid(row).then(|| operand.float(row))).collect();
            return floats(values, wanted);
        }
        Kind::Number { scale } => (scale, 1, true),
        Kind::Instant { scale, step, .. } => (scale, i128::from(step), false),
        Kind::Time { scale } | Kind::Duration { scale } => (scale, 1, false),
        _ => return Err(Error::schema_mismatch(format!("a number is not a valid {}", TypeName(wanted)))),
    };
    let value = |row: usize| -> Result<Option<i128>> {
        if !operand.is_valid(row) {
            return Ok(None);
        }
        let scaled = match operand.exact(row) {
            Some((value, own)) => {
                rescaled(value, own, scale, rounds).ok_or_else(|| refused(Number::scaled(value, own).to_string()))?
            }
            None => {
                let float = operand.float(row);
                // Exact up to 2^53; what is beyond 128 bits fails below.
                let scaled = (float * 10f64.powi(scale)).round();
                match scaled.is_finite() && scaled.abs() < 1.7e38 {
                    true => scaled as i128,
                    false => return Err(refused(float.to_string())),
                }
            }
        };
        match scaled % step {
            0 => Ok(Some(scaled / step)),
            _ => Err(refused(Number::scaled(scaled, scale).to_string())),
        }
    };
    integers((0..rows).map(value).collect::<Result<Vec<_>>>()?, wanted)
}

/// A number at another scale: rounded if that has fewer places, or `None` if it may not be. Also `None` beyond 128 bits.
pub fn rescaled(value: i128, from: i32, to: i32, rounds: bool) -> Option<i128> {
    if to >= from {
        return value.checked_mul(power_of_ten(to - from)?);
    }
    let Some(power) = power_of_ten(from - to) else { return (rounds || value == 0).then_some(0) };
    let (whole, rest) = (value / power, value % power);
    match rest {
        0 => Some(whole),
        _ if !rounds => None,
        // Not twice the rest, which may overflow.
        _ if rest.unsigned_abs() >= power.unsigned_abs() - rest.unsigned_abs() => Some(whole + rest.signum()),
        _ => Some(whole),
    }
}

pub fn floats(values: Vec<Option<f64>>, wanted: &DataType) -> Result<ArrayRef> {
    let array: ArrayRef = Arc::new(Float64Array::from(values));
    let cast = exactly(&array, wanted)?;
    let infinite = |array: &ArrayRef, row: usize| -> Result<bool> {
        let wide = exactly(array, &DataType::Float64)?;
        Ok(wide.as_any().downcast_ref::<Float64Array>().is_some_and(|values| values.value(row).is_infinite()))
    };
    if *wanted != DataType::Float64 {
        let doubles = array.as_any().downcast_ref::<Float64Array>().expect("just made");
        for row in (0..array.len()).filter(|row| doubles.is_valid(*row) && doubles.value(*row).is_finite()) {
            // Only large ones can have become infinite.
            if doubles.value(row).abs() > 65_000.0 && infinite(&cast.slice(row, 1), 0)? {
                return Err(Error::invalid(format!("{} is not a valid {}", doubles.value(row), TypeName(wanted))));
            }
        }
    }
    Ok(cast)
}

/// Values of an integer, decimal or temporal type in its units, of an array of 64 bits.
pub fn of_integers(values: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    integers(values.as_primitive::<Int64Type>().iter().map(|value| value.map(i128::from)).collect(), wanted)
}

/// Values of a numeric or temporal type by their keys.
pub fn of_keys(keys: &[i128], wanted: &DataType) -> Result<ArrayRef> {
    match Kind::of(wanted) {
        Some(Kind::Float) => {
            let float = |key: &i128| i64::try_from(*key).ok().map(key_float);
            floats(keys.iter().map(float).collect(), wanted)
        }
        _ => integers(keys.iter().copied().map(Some).collect(), wanted),
    }
}

/// Integers in the unit of an integer, decimal or temporal type, or of a dictionary of such.
pub fn integers(values: Vec<Option<i128>>, wanted: &DataType) -> Result<ArrayRef> {
    use DataType::*;
    fn of<T: ArrowPrimitiveType>(values: &[Option<i128>], wanted: &DataType) -> Result<ArrayRef>
    where
        T::Native: TryFrom<i128>,
    {
        let native = |value: i128| {
            T::Native::try_from(value).map_err(|_| {
                let scale = if let Decimal32(_, s) | Decimal64(_, s) | Decimal128(_, s) = wanted { *s } else { 0 };
                let shown = Number::scaled(value, i32::from(scale));
                Error::invalid(format!("{shown} is not a valid {}", TypeName(wanted)))
            })
        };
        let natives = values.iter().map(|value| value.map(native).transpose()).collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(natives.into_iter().collect::<PrimitiveArray<T>>().with_data_type(wanted.clone())))
    }
    fn checked<T: DecimalType>(array: ArrayRef, digits: u8) -> Result<ArrayRef> {
        let typed = array.as_any().downcast_ref::<PrimitiveArray<T>>().expect("just made");
        let beyond = typed.iter().flatten().find(|value| !T::is_valid_decimal_precision(*value, digits));
        match beyond {
            Some(value) => {
                let shown = T::format_decimal(value, T::MAX_PRECISION, typed.scale());
                Err(Error::invalid(format!("{shown} is not a valid {}", TypeName(array.data_type()))))
            }
            None => Ok(array),
        }
    }
    match wanted {
        Int8 => of::<Int8Type>(&values, wanted),
        Int16 => of::<Int16Type>(&values, wanted),
        Int32 => of::<Int32Type>(&values, wanted),
        Int64 => of::<Int64Type>(&values, wanted),
        UInt8 => of::<UInt8Type>(&values, wanted),
        UInt16 => of::<UInt16Type>(&values, wanted),
        UInt32 => of::<UInt32Type>(&values, wanted),
        UInt64 => of::<UInt64Type>(&values, wanted),
        Date32 => of::<Date32Type>(&values, wanted),
        Date64 => of::<Date64Type>(&values, wanted),
        Time32(TimeUnit::Second) => of::<Time32SecondType>(&values, wanted),
        Time32(_) => of::<Time32MillisecondType>(&values, wanted),
        Time64(TimeUnit::Microsecond) => of::<Time64MicrosecondType>(&values, wanted),
        Time64(_) => of::<Time64NanosecondType>(&values, wanted),
        Timestamp(TimeUnit::Second, _) => of::<TimestampSecondType>(&values, wanted),
        Timestamp(TimeUnit::Millisecond, _) => of::<TimestampMillisecondType>(&values, wanted),
        Timestamp(TimeUnit::Microsecond, _) => of::<TimestampMicrosecondType>(&values, wanted),
        Timestamp(TimeUnit::Nanosecond, _) => of::<TimestampNanosecondType>(&values, wanted),
        Duration(TimeUnit::Second) => of::<DurationSecondType>(&values, wanted),
        Duration(TimeUnit::Millisecond) => of::<DurationMillisecondType>(&values, wanted),
        Duration(TimeUnit::Microsecond) => of::<DurationMicrosecondType>(&values, wanted),
        Duration(TimeUnit::Nanosecond) => of::<DurationNanosecondType>(&values, wanted),
        Decimal32(digits, _) => checked::<Decimal32Type>(of::<Decimal32Type>(&values, wanted)?, *digits),
        Decimal64(digits, _) => checked::<Decimal64Type>(of::<Decimal64Type>(&values, wanted)?, *digits),
        Decimal128(digits, _) => checked::<Decimal128Type>(of::<Decimal128Type>(&values, wanted)?, *digits),
        Decimal256(digits, scale) => {
            let narrow = Decimal128((*digits).min(DECIMAL128_MAX_PRECISION), *scale);
            exactly(&integers(values, &narrow)?, wanted)
        }
        Dictionary(_, values_type) => exactly(&integers(values, values_type)?, wanted),
        _ => Err(Error::schema_mismatch(format!("a number is not a valid {}", TypeName(wanted)))),
    }
}
