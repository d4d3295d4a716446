//! Converts Python values to columns of an Arrow type, and back.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Decimal128Array, Decimal256Array, FixedSizeBinaryArray,
    FixedSizeListArray, Float32Array, Float64Array, Int32Array, Int64Array, LargeBinaryArray, LargeListArray,
    LargeStringArray, NullArray, PrimitiveArray, StructArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, FieldRef, Fields, Float16Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    i256,
};
use drumlin::Error;
use drumlin::base::clip;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};
use pyo3::{IntoPyObjectExt, intern};

use crate::errors::raise;

/// The ordinal of 1970-01-01 in Python's calendar.
const EPOCH_ORDINAL: i64 = 719_163;
const DAY_SECONDS: i64 = 86_400;
/// A value in a message is cut after this many letters.
const SHOWN_MAX: usize = 60;

/// A value as messages show it.
pub fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map_or_else(|_| "(no repr)".to_owned(), |text| text.to_string());
    clip(&text, SHOWN_MAX)
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
        DataType::Float16 => exactly(&Float32Array::from(column.floats(|n| n as f32)?), data_type)?,
        DataType::Float32 => Arc::new(Float32Array::from(column.floats(|n| n as f32)?)),
        DataType::Float64 => Arc::new(Float64Array::from(column.floats(|n| n)?)),
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
            let bytes = |value: &Bound<'_, PyAny>| value.extract::<PyBackedBytes>().ok().filter(fits);
            let bytes = column.each(&format!("{size} bytes"), bytes)?;
            let bytes = bytes.iter().map(|bytes| bytes.as_deref());
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes, *size).map_err(arrow_error)?)
        }
        DataType::Date32 => {
            let days = column.each("a date", |value| i32::try_from(days(value)?).ok())?;
            exactly(&Int32Array::from(days), data_type)?
        }
        DataType::Date64 => {
            let millis = column.each("a date", |value| Some(days(value)? * DAY_SECONDS * 1000))?;
            exactly(&Int64Array::from(millis), data_type)?
        }
        DataType::Time32(unit) | DataType::Time64(unit) => {
            let times =
                column.each(&format!("a time {}", in_whole(*unit)), |value| in_unit(time_of_day(value)?, *unit))?;
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
            exactly(&Int64Array::from(column.each(&expected, instant)?), data_type)?
        }
        DataType::Duration(unit) => {
            let expected = format!("a timedelta {}", in_whole(*unit));
            exactly(&Int64Array::from(column.each(&expected, |value| in_unit(span(value)?, *unit))?), data_type)?
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
        DataType::List(field) | DataType::LargeList(field) => exactly(&column.lists(field)?, data_type)?,
        DataType::FixedSizeList(field, size) => Arc::new(column.lists_of(field, *size)?),
        DataType::Struct(fields) => Arc::new(column.structs(fields)?),
        other => {
            let why = format!("{what}: Python values do not become {other} here; give a table with typed columns");
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
        let numbers = self.each(&format!("an int of type {}", T::DATA_TYPE), integer)?;
        Ok(Arc::new(PrimitiveArray::<T>::from_iter(numbers)))
    }

    fn floats<T>(&self, narrow: impl Fn(f64) -> T) -> PyResult<Vec<Option<T>>> {
        let float = |value: &Bound<'py, PyAny>| {
            if value.is_instance_of::<PyBool>() { None } else { value.extract::<f64>().ok().map(&narrow) }
        };
        self.each("a float", float)
    }

    fn decimals<T>(&self, precision: u8, scale: i8, parse: impl Fn(&str) -> Option<T>) -> PyResult<Vec<Option<T>>> {
        let expected = format!("a Decimal of {precision} digits, {scale} of them after the point");
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

    fn lists_of(&self, field: &FieldRef, size: i32) -> PyResult<FixedSizeListArray> {
        let fits = |list: &Vec<Bound<'py, PyAny>>| i32::try_from(list.len()) == Ok(size);
        let lists = self.each(&format!("a list of {size}"), |value| items(value).filter(fits))?;
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
        let parts = |value: &Bound<'py, PyAny>| {
            let dict = value.cast::<PyDict>().ok()?;
            let known = |name: &str| dict.get_item(name).ok();
            let parts: Vec<Option<Bound<'py, PyAny>>> = names.iter().map(|name| known(name)).collect::<Option<_>>()?;
            (parts.iter().flatten().count() == dict.len()).then_some(parts)
        };
        let rows = self.each(&format!("a dict of '{}'", names.join("', '")), parts)?;
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

fn nanoseconds(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
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
fn in_unit(nanos: i128, unit: TimeUnit) -> Option<i64> {
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

/// The days of a date since 1970; also of a datetime, if it is midnight.
fn days(value: &Bound<'_, PyAny>) -> Option<i64> {
    let days = ordinal(value)?;
    match time_of_day(value) {
        Some(time) if time != 0 => None,
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
    let part = |name| attribute(value, name);
    let seconds = part(intern!(py, "days"))? * DAY_SECONDS + part(intern!(py, "seconds"))?;
    let micros = seconds * 1_000_000 + part(intern!(py, "microseconds"))?;
    Some(i128::from(micros) * 1_000 + i128::from(part(intern!(py, "nanoseconds")).unwrap_or(0)))
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

/// A value of a column.
pub fn to_python<'py>(py: Python<'py>, array: &dyn Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    macro_rules! primitive {
        ($type:ty) => {
            array.as_primitive::<$type>().value(row).into_bound_py_any(py)
        };
    }
    match array.data_type() {
        DataType::Null => Ok(py.None().into_bound(py)),
        DataType::Boolean => array.as_boolean().value(row).into_bound_py_any(py),
        DataType::Int8 => primitive!(Int8Type),
        DataType::Int16 => primitive!(Int16Type),
        DataType::Int32 => primitive!(Int32Type),
        DataType::Int64 => primitive!(Int64Type),
        DataType::UInt8 => primitive!(UInt8Type),
        DataType::UInt16 => primitive!(UInt16Type),
        DataType::UInt32 => primitive!(UInt32Type),
        DataType::UInt64 => primitive!(UInt64Type),
        DataType::Float16 => f32::from(array.as_primitive::<Float16Type>().value(row)).into_bound_py_any(py),
        DataType::Float32 => primitive!(Float32Type),
        DataType::Float64 => primitive!(Float64Type),
        DataType::Utf8 => array.as_string::<i32>().value(row).into_bound_py_any(py),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).into_bound_py_any(py),
        DataType::Utf8View => array.as_string_view().value(row).into_bound_py_any(py),
        DataType::Binary => Ok(PyBytes::new(py, array.as_binary::<i32>().value(row)).into_any()),
        DataType::LargeBinary => Ok(PyBytes::new(py, array.as_binary::<i64>().value(row)).into_any()),
        DataType::BinaryView => Ok(PyBytes::new(py, array.as_binary_view().value(row)).into_any()),
        DataType::FixedSizeBinary(_) => Ok(PyBytes::new(py, array.as_fixed_size_binary().value(row)).into_any()),
        DataType::Date32 => date(py, number(array, row)?),
        DataType::Date64 => date(py, number(array, row)?.div_euclid(DAY_SECONDS * 1000)),
        DataType::Time32(unit) | DataType::Time64(unit) => {
            let micros = micros(i128::from(number(array, row)?) * nanoseconds(*unit))?;
            let midnight = datetime(py)?.call_method1("datetime", (1970, 1, 1))?;
            midnight.call_method1("__add__", (timedelta(py, micros)?,))?.call_method0("time")
        }
        DataType::Duration(unit) => timedelta(py, micros(i128::from(number(array, row)?) * nanoseconds(*unit))?),
        DataType::Timestamp(unit, zone) => {
            let nanos = i128::from(number(array, row)?) * nanoseconds(*unit);
            timestamp(py, nanos, zone.as_deref())
        }
        DataType::Decimal32(..) => decimal(py, &array.as_primitive::<Decimal32Type>().value_as_string(row)),
        DataType::Decimal64(..) => decimal(py, &array.as_primitive::<Decimal64Type>().value_as_string(row)),
        DataType::Decimal128(..) => decimal(py, &array.as_primitive::<Decimal128Type>().value_as_string(row)),
        DataType::Decimal256(..) => decimal(py, &array.as_primitive::<Decimal256Type>().value_as_string(row)),
        DataType::Dictionary(..) => {
            let one = array.slice(row, 1);
            let dictionary = one.as_any_dictionary();
            to_python(py, dictionary.values(), dictionary.normalized_keys()[0])
        }
        DataType::List(_) => list(py, &*array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => list(py, &*array.as_list::<i64>().value(row)),
        DataType::ListView(_) => list(py, &*array.as_list_view::<i32>().value(row)),
        DataType::LargeListView(_) => list(py, &*array.as_list_view::<i64>().value(row)),
        DataType::FixedSizeList(..) => list(py, &*array.as_fixed_size_list().value(row)),
        DataType::Struct(fields) => {
            let dict = PyDict::new(py);
            for (field, column) in fields.iter().zip(array.as_struct().columns()) {
                dict.set_item(field.name(), to_python(py, column, row)?)?;
            }
            Ok(dict.into_any())
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let entry = |at: usize| -> PyResult<Bound<'py, PyTuple>> {
                let part = |column: usize| to_python(py, entries.column(column), at);
                PyTuple::new(py, [part(0)?, part(1)?])
            };
            Ok(PyList::new(py, (0..entries.len()).map(entry).collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        other => Err(raise(Error::invalid(format!("a value of type {other} has no Python form; look up columns")))),
    }
}

fn list<'py>(py: Python<'py>, items: &dyn Array) -> PyResult<Bound<'py, PyAny>> {
    let items = (0..items.len()).map(|at| to_python(py, items, at)).collect::<PyResult<Vec<_>>>()?;
    Ok(PyList::new(py, items)?.into_any())
}

/// The number that represents a date or time.
fn number(array: &dyn Array, row: usize) -> PyResult<i64> {
    Ok(exactly(&*array.slice(row, 1), &DataType::Int64)?.as_primitive::<Int64Type>().value(0))
}

fn micros(nanos: i128) -> PyResult<i64> {
    in_unit(nanos, TimeUnit::Microsecond).ok_or_else(|| {
        let why = format!("{nanos} nanoseconds have no Python form, which is in microseconds; look up columns");
        raise(Error::invalid(why))
    })
}

fn datetime(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import(intern!(py, "datetime"))
}

fn date(py: Python<'_>, days: i64) -> PyResult<Bound<'_, PyAny>> {
    datetime(py)?.getattr(intern!(py, "date"))?.call_method1("fromordinal", (days + EPOCH_ORDINAL,))
}

fn timedelta(py: Python<'_>, micros: i64) -> PyResult<Bound<'_, PyAny>> {
    datetime(py)?.getattr(intern!(py, "timedelta"))?.call1((0, 0, micros))
}

/// A datetime; a pandas Timestamp if it is finer than a datetime can be.
fn timestamp<'py>(py: Python<'py>, nanos: i128, zone: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
    let zone = zone.map(|zone| time_zone(py, zone)).transpose()?;
    if nanos % nanoseconds(TimeUnit::Microsecond) != 0
        && let Ok(pandas) = py.import(intern!(py, "pandas"))
    {
        return pandas.getattr(intern!(py, "Timestamp"))?.call1((nanos as i64, zone));
    }
    let module = datetime(py)?;
    let utc = module.getattr("timezone")?.getattr("utc")?;
    let epoch = module.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, zone.as_ref().map(|_| utc)))?;
    let moment = epoch.call_method1("__add__", (timedelta(py, micros(nanos)?)?,))?;
    match zone {
        Some(zone) => moment.call_method1("astimezone", (zone,)),
        None => Ok(moment),
    }
}

fn time_zone<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let zone = datetime(py)?.getattr("timezone")?;
    if name == "UTC" {
        return zone.getattr("utc");
    }
    let offset = || {
        let (sign, rest) = (name.get(..1)?, name.get(1..)?);
        let (hours, minutes) = rest.split_once(':').or_else(|| Some((rest.get(..2)?, rest.get(2..)?)))?;
        let sign = if sign == "-" { -1 } else { 1 };
        let seconds = hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().ok()? * 60;
        name.starts_with(['+', '-']).then_some(sign * seconds)
    };
    match offset() {
        Some(seconds) => zone.call1((timedelta(py, seconds * 1_000_000)?,)),
        None => py.import("zoneinfo")?.getattr("ZoneInfo")?.call1((name,)),
    }
}

fn decimal<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import(intern!(py, "decimal"))?.getattr(intern!(py, "Decimal"))?.call1((text,))
}
