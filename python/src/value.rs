//! Converts Python values to columns of an Arrow type. A value that the type would round, cut or change is refused.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, Decimal128Array, Decimal256Array, FixedSizeBinaryArray,
    FixedSizeListArray, Float16Array, Float32Array, Float64Array, Int32Array, Int64Array, IntervalMonthDayNanoArray,
    LargeBinaryArray, LargeListArray, LargeStringArray, MapArray, NullArray, PrimitiveArray, StructArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DataType, FieldRef, Fields, Float16Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNano,
    IntervalUnit, TimeUnit, UInt8Type, UInt16Type, UInt32Type, UInt64Type, i256,
};
use drumlin::embedding::clip;
use drumlin::{Error, TypeName};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyString};

use crate::errors::raise;

#[expect(non_camel_case_types, reason = "as the crate `half` calls it, which is there by arrow")]
type f16 = <Float16Type as ArrowPrimitiveType>::Native;

/// The ordinal of 1970-01-01 in Python's calendar.
pub const EPOCH_ORDINAL: i64 = 719_163;
pub const DAY_SECONDS: i64 = 86_400;
/// A value in a message is cut after this many letters.
const SHOWN_MAX: usize = 60;

/// A value as messages show it.
pub fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map_or_else(|_| "(no repr)".to_owned(), |text| text.to_string());
    clip(&text, SHOWN_MAX)
}

/// The type of a value with its article, as messages show it: `an int`.
pub fn a_type(value: &Bound<'_, PyAny>) -> PyResult<String> {
    value.py().import("drumlin._values.evidence")?.call_method1("a_type", (value,))?.extract()
}

/// The values as a column of `data_type`, missing ones as null. `what` is what messages call it.
pub fn to_array(values: &[Bound<'_, PyAny>], data_type: &DataType, what: &str) -> PyResult<ArrayRef> {
    let column = Column { values, what };
    Ok(match data_type {
        DataType::Null => {
            column.each("None", |_| None::<()>)?;
            Arc::new(NullArray::new(values.len()))
        }
        DataType::Boolean => Arc::new(BooleanArray::from(column.each("a bool", |value| value.extract::<bool>().ok())?)),
        DataType::Int8 => column.integers::<Int8Type>()?,
        DataType::Int16 => column.integers::<Int16Type>()?,
        DataType::Int32 => column.integers::<Int32Type>()?,
        DataType::Int64 => column.integers::<Int64Type>()?,
        DataType::UInt8 => column.integers::<UInt8Type>()?,
        DataType::UInt16 => column.integers::<UInt16Type>()?,
        DataType::UInt32 => column.integers::<UInt32Type>()?,
        DataType::UInt64 => column.integers::<UInt64Type>()?,
        DataType::Float16 => Arc::new(Float16Array::from(column.floats(data_type, |n| {
            let narrow = f16::from_f64(n);
            holds(n, narrow.to_f64(), |text| Some(f16::from_f64(text.parse().ok()?).to_f64())).then_some(narrow)
        })?)),
        DataType::Float32 => Arc::new(Float32Array::from(column.floats(data_type, |n| {
            let narrow = n as f32;
            holds(n, narrow.into(), |text| Some(text.parse::<f32>().ok()?.into())).then_some(narrow)
        })?)),
        DataType::Float64 => Arc::new(Float64Array::from(column.floats(data_type, Some)?)),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let texts = column.each("a str", |value| value.extract::<PyBackedStr>().ok())?;
            exactly(&LargeStringArray::from_iter(texts.iter().map(|text| text.as_deref())), data_type)?
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let bytes = column.each("bytes", |value| value.extract::<PyBackedBytes>().ok())?;
            exactly(&LargeBinaryArray::from_iter(bytes.iter().map(|bytes| bytes.as_deref())), data_type)?
        }
        DataType::FixedSizeBinary(size) => {
            let fits = |bytes: &PyBackedBytes| i32::try_from(bytes.len()) == Ok(*size);
            let bytes = |value: &Bound<'_, PyAny>| bytes_of(value)?.extract::<PyBackedBytes>().ok().filter(fits);
            let bytes = column.each(&format!("{size} bytes"), bytes)?;
            let bytes = bytes.iter().map(|bytes| bytes.as_deref());
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes, *size).map_err(arrow_error)?)
        }
        data_type if data_type.is_temporal() && !matches!(data_type, DataType::Interval(_)) => {
            column.times(data_type)?
        }
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale) => {
            let decimals = column.decimals(*precision, *scale, |digits| digits.parse::<i128>().ok())?;
            let array = Decimal128Array::from(decimals).with_precision_and_scale(*precision, *scale);
            exactly(&array.map_err(arrow_error)?, data_type)?
        }
        DataType::Decimal256(precision, scale) => {
            let decimals = column.decimals(*precision, *scale, i256::from_string)?;
            let array = Decimal256Array::from(decimals).with_precision_and_scale(*precision, *scale);
            Arc::new(array.map_err(arrow_error)?)
        }
        DataType::Dictionary(_, inner) => exactly(&*to_array(values, inner, what)?, data_type)?,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field) => exactly(&column.lists(field)?, data_type)?,
        DataType::Map(entries, sorted) => column.maps(entries, *sorted)?,
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let parts = column.each("a tuple of months, days and nanoseconds", |value| {
                let (months, days, nanos) = value.extract::<(i32, i32, i64)>().ok()?;
                Some(IntervalMonthDayNano::new(months, days, nanos))
            })?;
            Arc::new(IntervalMonthDayNanoArray::from(parts))
        }
        DataType::FixedSizeList(field, size) => Arc::new(column.lists_of(field, *size)?),
        DataType::Struct(fields) => Arc::new(column.structs(fields)?),
        other => {
            let why = format!(
                "{what}: Python values cannot be converted to {}; give a table with typed columns",
                TypeName(other)
            );
            return Err(raise(Error::invalid(why)));
        }
    })
}

/// Values to convert to a column.
struct Column<'a, 'py> {
    values: &'a [Bound<'py, PyAny>],
    what: &'a str,
}

impl<'py> Column<'_, 'py> {
    /// Dates, times, instants and spans of time.
    fn times(&self, data_type: &DataType) -> PyResult<ArrayRef> {
        Ok(match data_type {
            DataType::Date32 => {
                let days = self.each("a date", |value| i32::try_from(days(value)?).ok())?;
                exactly(&Int32Array::from(days), data_type)?
            }
            DataType::Date64 => {
                let millis = self.each("a date", |value| Some(days(value)? * DAY_SECONDS * 1000))?;
                exactly(&Int64Array::from(millis), data_type)?
            }
            DataType::Time32(unit) | DataType::Time64(unit) => {
                let expected = format!("a time without a time zone, {}", in_whole(*unit));
                let time = |value: &Bound<'_, PyAny>| {
                    // A datetime would lose its day, a time with a zone that.
                    let more = ordinal(value).is_some() || zoned(value);
                    if more { None } else { in_unit(time_of_day(value)?, *unit) }
                };
                let times = self.each(&expected, time)?;
                match data_type {
                    DataType::Time32(_) => exactly(&*exactly(&Int64Array::from(times), &DataType::Int32)?, data_type)?,
                    _ => exactly(&Int64Array::from(times), data_type)?,
                }
            }
            DataType::Timestamp(unit, zone) => {
                let naive = if zone.is_none() { " without a time zone" } else { "" };
                let expected = format!("a datetime{naive}, {}", in_whole(*unit));
                let instant = |value: &Bound<'_, PyAny>| {
                    let (instant, zoned) = instant(value)?;
                    if zoned && zone.is_none() { None } else { in_unit(instant, *unit) }
                };
                exactly(&Int64Array::from(self.each(&expected, instant)?), data_type)?
            }
            DataType::Duration(unit) => {
                let expected = format!("a timedelta {}", in_whole(*unit));
                exactly(&Int64Array::from(self.each(&expected, |value| in_unit(span(value)?, *unit))?), data_type)?
            }
            other => {
                let why = format!("{}: {} is not a type of dates or times", self.what, TypeName(other));
                return Err(raise(Error::invalid(why)));
            }
        })
    }

    /// The result of `convert` for each value; it returns `None` for unexpected values.
    fn each<T>(&self, expected: &str, convert: impl Fn(&Bound<'py, PyAny>) -> Option<T>) -> PyResult<Vec<Option<T>>> {
        let converted = |value: &Bound<'py, PyAny>| {
            if value.is_none() {
                return Ok(None);
            }
            let converted = convert(value);
            if converted.is_none() && !is_missing(value) {
                let what = self.what;
                return Err(raise(Error::invalid(format!("{what}: expected {expected}, not {}", shown(value)))));
            }
            Ok(converted)
        };
        self.values.iter().map(converted).collect()
    }

    fn integers<T>(&self) -> PyResult<ArrayRef>
    where
        T: ArrowPrimitiveType,
        T::Native: for<'a> FromPyObject<'a, 'py>,
    {
        let integer = |value: &Bound<'py, PyAny>| {
            if value.is_instance_of::<PyBool>() { None } else { value.extract::<T::Native>().ok() }
        };
        let numbers = self.each(&format!("an int of type {}", TypeName(&T::DATA_TYPE)), integer)?;
        Ok(Arc::new(PrimitiveArray::<T>::from_iter(numbers)))
    }

    /// Numbers that are a value of `data_type`, which `narrow` makes: an int, or a `Decimal`, that a float rounds is none.
    fn floats<T>(&self, data_type: &DataType, narrow: impl Fn(f64) -> Option<T>) -> PyResult<Vec<Option<T>>> {
        let float = |value: &Bound<'py, PyAny>| {
            if value.is_instance_of::<PyBool>() {
                return None;
            }
            let number = value.extract::<f64>().ok()?;
            let same = value.is_exact_instance_of::<PyFloat>() || number.is_nan() || value.eq(number).unwrap_or(false);
            if same { narrow(number) } else { None }
        };
        self.each(&format!("a number that a {} holds exactly", TypeName(data_type)), float)
    }

    fn decimals<T>(&self, precision: u8, scale: i8, parse: impl Fn(&str) -> Option<T>) -> PyResult<Vec<Option<T>>> {
        let expected = format!("a Decimal of at most {precision} digits, {scale} of them after the point");
        self.each(&expected, |value| {
            let digits = digits(value, scale)?;
            let significant = digits.trim_start_matches('-').trim_start_matches('0').len();
            if significant > usize::from(precision) { None } else { parse(&digits) }
        })
    }

    fn lists(&self, field: &FieldRef) -> PyResult<LargeListArray> {
        let lists = self.each("a list", items)?;
        let lengths = lists.iter().map(|list| list.as_ref().map_or(0, Vec::len));
        let (offsets, nulls) = (OffsetBuffer::<i64>::from_lengths(lengths), nulls(&lists));
        let inner: Vec<Bound<'py, PyAny>> = lists.into_iter().flatten().flatten().collect();
        let inner = to_array(&inner, field.data_type(), self.what)?;
        LargeListArray::try_new(field.clone(), offsets, inner, nulls).map_err(arrow_error)
    }

    fn maps(&self, entries: &FieldRef, sorted: bool) -> PyResult<ArrayRef> {
        let DataType::Struct(fields) = entries.data_type() else {
            return Err(raise(Error::invalid(format!("{}: the type of the map has no entries", self.what))));
        };
        let pairs = |value: &Bound<'py, PyAny>| {
            let pairs = items(value)?;
            pairs
                .iter()
                .map(|pair| items(pair).and_then(|pair| <[_; 2]>::try_from(pair).ok()))
                .collect::<Option<Vec<_>>>()
        };
        let maps = self.each("a list of pairs", pairs)?;
        let offsets = OffsetBuffer::<i32>::from_lengths(maps.iter().map(|pairs| pairs.as_ref().map_or(0, Vec::len)));
        let nulls = nulls(&maps);
        let (keys, values): (Vec<_>, Vec<_>) =
            maps.into_iter().flatten().flatten().map(|[key, value]| (key, value)).unzip();
        let part = |values: &[Bound<'py, PyAny>], at: usize| to_array(values, fields[at].data_type(), self.what);
        let inner = StructArray::try_new(fields.clone(), vec![part(&keys, 0)?, part(&values, 1)?], None);
        let map = MapArray::try_new(entries.clone(), offsets, inner.map_err(arrow_error)?, nulls, sorted);
        Ok(Arc::new(map.map_err(arrow_error)?))
    }

    fn lists_of(&self, field: &FieldRef, size: i32) -> PyResult<FixedSizeListArray> {
        let fits = |list: &Vec<Bound<'py, PyAny>>| i32::try_from(list.len()) == Ok(size);
        let lists = self.each(&format!("a list of {size} values"), |value| items(value).filter(fits))?;
        let nulls = nulls(&lists);
        let Some(none) = self.values.first().map(|value| value.py().None().into_bound(value.py())) else {
            return Ok(FixedSizeListArray::new_null(field.clone(), size, 0));
        };
        let empty = vec![none; usize::try_from(size).unwrap_or(0)];
        let inner: Vec<_> = lists.into_iter().flat_map(|list| list.unwrap_or_else(|| empty.clone())).collect();
        let inner = to_array(&inner, field.data_type(), self.what)?;
        FixedSizeListArray::try_new(field.clone(), size, inner, nulls).map_err(arrow_error)
    }

    fn structs(&self, fields: &Fields) -> PyResult<StructArray> {
        let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            let why = format!("{}: two fields have the name '{}', which a dict cannot hold", self.what, twice.1);
            return Err(raise(Error::invalid(why)));
        }
        let parts = |value: &Bound<'py, PyAny>| {
            let dict = value.cast::<PyDict>().ok()?;
            let known = |name: &str| dict.get_item(name).ok();
            let parts: Vec<Option<Bound<'py, PyAny>>> = names.iter().map(|name| known(name)).collect::<Option<_>>()?;
            (parts.iter().flatten().count() == dict.len()).then_some(parts)
        };
        let rows = self.each(&format!("a dict with the keys '{}'", names.join("', '")), parts)?;
        let column = |(at, field): (usize, &FieldRef)| {
            let part = |(row, value): (&Option<Vec<_>>, &Bound<'py, PyAny>)| {
                let parts: Option<&Vec<Option<Bound<'py, PyAny>>>> = row.as_ref();
                parts.and_then(|parts| parts[at].clone()).unwrap_or_else(|| value.py().None().into_bound(value.py()))
            };
            let inner: Vec<_> = rows.iter().zip(self.values).map(part).collect();
            to_array(&inner, field.data_type(), &format!("{}: '{}'", self.what, field.name()))
        };
        let columns = fields.iter().enumerate().map(column).collect::<PyResult<_>>()?;
        StructArray::try_new(fields.clone(), columns, nulls(&rows)).map_err(arrow_error)
    }
}

fn nulls<T>(values: &[Option<T>]) -> Option<NullBuffer> {
    values.iter().any(Option::is_none).then(|| values.iter().map(Option::is_some).collect())
}

fn items<'py>(value: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyDict>() {
        return None;
    }
    value.try_iter().ok()?.collect::<PyResult<_>>().ok()
}

/// Whether a type of float holds a number: as it is, or its decimal digits, as Python prints them. `nearest` is the nearest value
/// of the type; `read` reads one from text.
fn holds(number: f64, nearest: f64, read: impl Fn(&str) -> Option<f64>) -> bool {
    // As many digits as a `f32` needs at most.
    const DIGITS_MAX: usize = 9;
    if number == nearest || number.is_nan() {
        return true;
    }
    let shortest =
        (0..DIGITS_MAX).map(|digits| format!("{nearest:.digits$e}")).find(|text| read(text) == Some(nearest));
    nearest.is_finite() && shortest.and_then(|text| text.parse::<f64>().ok()) == Some(number)
}

/// Whether it is what pandas uses for a missing value.
fn is_missing(value: &Bound<'_, PyAny>) -> bool {
    value.get_type().name().is_ok_and(|name| name == "NAType" || name == "NaTType")
}

fn arrow_error(error: arrow::error::ArrowError) -> PyErr {
    raise(Error::from(error))
}

/// Converts a column to another type with the same values.
pub fn exactly(array: &dyn Array, data_type: &DataType) -> PyResult<ArrayRef> {
    cast_with_options(array, data_type, &CastOptions { safe: false, ..CastOptions::default() }).map_err(arrow_error)
}

pub fn nanoseconds(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

/// The value itself, or the bytes of a UUID.
fn bytes_of<'py>(value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let class = value.get_type();
    let is_uuid = class.name().is_ok_and(|name| name == "UUID") && class.module().is_ok_and(|module| module == "uuid");
    if is_uuid { value.getattr(intern!(value.py(), "bytes")).ok() } else { Some(value.clone()) }
}

fn in_whole(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "in whole seconds",
        TimeUnit::Millisecond => "in whole milliseconds",
        TimeUnit::Microsecond => "in whole microseconds",
        TimeUnit::Nanosecond => "within 292 years of 1970",
    }
}

/// Nanoseconds as a number of units, if that is exact.
pub fn in_unit(nanos: i128, unit: TimeUnit) -> Option<i64> {
    let each = nanoseconds(unit);
    if nanos % each == 0 { i64::try_from(nanos / each).ok() } else { None }
}

fn attribute(value: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> Option<i64> {
    value.getattr(name).ok()?.extract().ok()
}

fn ordinal(value: &Bound<'_, PyAny>) -> Option<i64> {
    let ordinal = value.call_method0(intern!(value.py(), "toordinal")).ok()?;
    Some(ordinal.extract::<i64>().ok()? - EPOCH_ORDINAL)
}

/// Whether a time or a datetime has a time zone.
fn zoned(value: &Bound<'_, PyAny>) -> bool {
    value.getattr(intern!(value.py(), "tzinfo")).is_ok_and(|zone| !zone.is_none())
}

/// The days of a date since 1970; also of a datetime, if it is midnight and has no time zone.
fn days(value: &Bound<'_, PyAny>) -> Option<i64> {
    let days = ordinal(value)?;
    match time_of_day(value) {
        Some(time) if time != 0 || zoned(value) => None,
        _ => Some(days),
    }
}

/// The nanoseconds of a time, or a datetime, since midnight.
fn time_of_day(value: &Bound<'_, PyAny>) -> Option<i128> {
    let py = value.py();
    let part = |name| attribute(value, name);
    let minutes = part(intern!(py, "hour"))? * 60 + part(intern!(py, "minute"))?;
    let micros = (minutes * 60 + part(intern!(py, "second"))?) * 1_000_000 + part(intern!(py, "microsecond"))?;
    // Pandas has nanoseconds.
    Some(i128::from(micros) * 1_000 + i128::from(part(intern!(py, "nanosecond")).unwrap_or(0)))
}

/// The nanoseconds of a datetime since 1970, and whether it has a time zone; without one, it is treated as UTC.
fn instant(value: &Bound<'_, PyAny>) -> Option<(i128, bool)> {
    let local = i128::from(ordinal(value)? * DAY_SECONDS) * 1_000_000_000 + time_of_day(value)?;
    let offset = value.call_method0(intern!(value.py(), "utcoffset")).ok()?;
    Some(if offset.is_none() { (local, false) } else { (local - span(&offset)?, true) })
}

/// The nanoseconds of a timedelta.
fn span(value: &Bound<'_, PyAny>) -> Option<i128> {
    let py = value.py();
    let part = |name| attribute(value, name).map(i128::from);
    let seconds = part(intern!(py, "days"))? * i128::from(DAY_SECONDS) + part(intern!(py, "seconds"))?;
    let micros = seconds * 1_000_000 + part(intern!(py, "microseconds"))?;
    Some(micros * 1_000 + part(intern!(py, "nanoseconds")).unwrap_or(0))
}

/// The digits of a `Decimal` or int, `scale` of them after the point, with its sign.
fn digits(value: &Bound<'_, PyAny>, scale: i8) -> Option<String> {
    let (negative, mut digits, exponent) = if value.is_instance_of::<PyInt>() {
        let text = value.str().ok().filter(|_| !value.is_instance_of::<PyBool>())?.to_string();
        (text.starts_with('-'), text.trim_start_matches('-').to_owned(), 0)
    } else {
        let (sign, digits, exponent): (u8, Vec<u8>, i64) =
            value.call_method0(intern!(value.py(), "as_tuple")).ok()?.extract().ok()?;
        (sign == 1, digits.iter().map(|digit| char::from(b'0' + digit)).collect(), exponent)
    };
    let shift = exponent + i64::from(scale);
    if digits.bytes().all(|digit| digit == b'0') {
        return Some("0".to_owned());
    }
    // No decimal has more.
    const SHIFT_MAX: i64 = 100;
    if shift >= 0 {
        digits.extend(std::iter::repeat_n('0', usize::try_from(shift).ok().filter(|_| shift <= SHIFT_MAX)?));
    } else {
        let kept = digits.len().checked_sub(usize::try_from(-shift).ok()?).filter(|kept| *kept > 0)?;
        if digits[kept..].bytes().any(|digit| digit != b'0') {
            return None;
        }
        digits.truncate(kept);
    }
    Some(if negative { format!("-{digits}") } else { digits })
}
