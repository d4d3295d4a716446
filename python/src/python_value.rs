//! Values of columns as Python has them. What Python cannot hold as it is, is refused.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Field, Float16Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use drumlin::{Error, TypeName};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use pyo3::{IntoPyObjectExt, intern};

use crate::errors::raise;
use crate::value::{DAY_SECONDS, EPOCH_ORDINAL, exactly, in_unit, nanoseconds};

/// The extension type of UUIDs.
const UUID: &str = "arrow.uuid";

/// A value of the column `field`.
pub fn to_python<'py>(py: Python<'py>, field: &Field, array: &dyn Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
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
        DataType::FixedSizeBinary(_) => {
            let bytes = PyBytes::new(py, array.as_fixed_size_binary().value(row)).into_any();
            if field.extension_type_name() == Some(UUID) { uuid(py, bytes) } else { Ok(bytes) }
        }
        DataType::Date32 => date(py, number(array, row)?),
        DataType::Date64 => {
            let (millis, day) = (number(array, row)?, DAY_SECONDS * 1000);
            if millis % day == 0 { date(py, millis / day) } else { Err(no_form("a date with a time of day")) }
        }
        DataType::Time32(unit) | DataType::Time64(unit) => {
            let micros = micros(i128::from(number(array, row)?) * nanoseconds(*unit))?;
            if !(0..DAY_SECONDS * 1_000_000).contains(&micros) {
                return Err(no_form("a time outside a day"));
            }
            let midnight = datetime(py)?.call_method1("datetime", (1970, 1, 1))?;
            midnight.call_method1("__add__", (timedelta(py, micros)?,))?.call_method0("time")
        }
        DataType::Duration(unit) => duration(py, i128::from(number(array, row)?) * nanoseconds(*unit)),
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let value = array.as_primitive::<IntervalMonthDayNanoType>().value(row);
            (value.months, value.days, value.nanoseconds).into_bound_py_any(py)
        }
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
            to_python(py, field, dictionary.values(), dictionary.normalized_keys()[0])
        }
        DataType::List(item) => list(py, item, &*array.as_list::<i32>().value(row)),
        DataType::LargeList(item) => list(py, item, &*array.as_list::<i64>().value(row)),
        DataType::ListView(item) => list(py, item, &*array.as_list_view::<i32>().value(row)),
        DataType::LargeListView(item) => list(py, item, &*array.as_list_view::<i64>().value(row)),
        DataType::FixedSizeList(item, _) => list(py, item, &*array.as_fixed_size_list().value(row)),
        DataType::Struct(fields) => {
            let dict = PyDict::new(py);
            for (field, column) in fields.iter().zip(array.as_struct().columns()) {
                if dict.contains(field.name())? {
                    return Err(no_form(&format!("a value with two fields called '{}'", field.name())));
                }
                dict.set_item(field.name(), to_python(py, field, column, row)?)?;
            }
            Ok(dict.into_any())
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let entry = |at: usize| -> PyResult<Bound<'py, PyTuple>> {
                let part = |column: usize| to_python(py, &entries.fields()[column], entries.column(column), at);
                PyTuple::new(py, [part(0)?, part(1)?])
            };
            Ok(PyList::new(py, (0..entries.len()).map(entry).collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        other => Err(no_form(&format!("a value of type {}", TypeName(other)))),
    }
}

fn list<'py>(py: Python<'py>, item: &Field, items: &dyn Array) -> PyResult<Bound<'py, PyAny>> {
    let items = (0..items.len()).map(|at| to_python(py, item, items, at)).collect::<PyResult<Vec<_>>>()?;
    Ok(PyList::new(py, items)?.into_any())
}

fn uuid<'py>(py: Python<'py>, bytes: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let named = PyDict::new(py);
    named.set_item("bytes", bytes)?;
    py.import(intern!(py, "uuid"))?.getattr(intern!(py, "UUID"))?.call((), Some(&named))
}

/// The number that represents a date or time.
fn number(array: &dyn Array, row: usize) -> PyResult<i64> {
    Ok(exactly(&*array.slice(row, 1), &DataType::Int64)?.as_primitive::<Int64Type>().value(0))
}

fn no_form(what: &str) -> PyErr {
    raise(Error::invalid(format!(
        "{what} cannot be converted to a Python object; read it as an Arrow column, such as with get_many()"
    )))
}

fn micros(nanos: i128) -> PyResult<i64> {
    in_unit(nanos, TimeUnit::Microsecond)
        .ok_or_else(|| no_form(&format!("a time of {nanos} nanoseconds, which Python holds in whole microseconds,")))
}

fn datetime(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import(intern!(py, "datetime"))
}

fn date(py: Python<'_>, days: i64) -> PyResult<Bound<'_, PyAny>> {
    let made = datetime(py)?.getattr(intern!(py, "date"))?.call_method1("fromordinal", (days + EPOCH_ORDINAL,));
    made.map_err(|_| no_form(&format!("the date {days} days from 1970-01-01")))
}

fn timedelta(py: Python<'_>, micros: i64) -> PyResult<Bound<'_, PyAny>> {
    datetime(py)?.getattr(intern!(py, "timedelta"))?.call1((0, 0, micros))
}

/// What pandas makes of nanoseconds that are finer than a value of Python's own can be; `None` without pandas, and for others.
fn finer<'py>(
    py: Python<'py>,
    class: &str,
    nanos: i128,
    zone: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (false, Ok(nanos), Ok(pandas)) =
        (nanos % nanoseconds(TimeUnit::Microsecond) == 0, i64::try_from(nanos), py.import(intern!(py, "pandas")))
    else {
        return Ok(None);
    };
    let named = PyDict::new(py);
    named.set_item("unit", "ns")?;
    if let Some(zone) = zone {
        named.set_item("tz", zone)?;
    }
    pandas.getattr(class)?.call((nanos,), Some(&named)).map(Some)
}

/// A timedelta; one of pandas if it is finer than a timedelta can be.
fn duration(py: Python<'_>, nanos: i128) -> PyResult<Bound<'_, PyAny>> {
    if let Some(finer) = finer(py, "Timedelta", nanos, None)? {
        return Ok(finer);
    }
    timedelta(py, micros(nanos)?).map_err(|_| no_form(&format!("a span of {nanos} nanoseconds")))
}

/// A datetime; a pandas Timestamp if it is finer than a datetime can be.
fn timestamp<'py>(py: Python<'py>, nanos: i128, zone: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
    let zone = zone.map(|zone| time_zone(py, zone)).transpose()?;
    if let Some(finer) = finer(py, "Timestamp", nanos, zone.as_ref())? {
        return Ok(finer);
    }
    let module = datetime(py)?;
    let utc = module.getattr("timezone")?.getattr("utc")?;
    let epoch = module.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, zone.as_ref().map(|_| utc)))?;
    let span = timedelta(py, micros(nanos)?);
    let moment = span.and_then(|span| epoch.call_method1("__add__", (span,)));
    let moment = moment.and_then(|moment| match zone {
        Some(zone) => moment.call_method1("astimezone", (zone,)),
        None => Ok(moment),
    });
    moment.map_err(|_| no_form(&format!("the time {nanos} nanoseconds from 1970-01-01")))
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
        None => {
            let zone = py.import("zoneinfo")?.getattr("ZoneInfo")?.call1((name,));
            zone.map_err(|_| no_form(&format!("a time in the zone '{name}', which Python does not know,")))
        }
    }
}

fn decimal<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import(intern!(py, "decimal"))?.getattr(intern!(py, "Decimal"))?.call1((text,))
}
