//! Payloads: converts Python values to what a node carries, and back, without text in between.

use drumlin::payload::{PAYLOAD_DEPTH_MAX, PayloadWriter, Value};
use drumlin::{Content, Error, Payload};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMemoryView, PyString, PyTuple};

use crate::errors::raise;
use crate::value::a_type;

/// A value that is not JSON: why, and where in the whole payload it is.
struct Refused {
    place: String,
    why: String,
}

impl Refused {
    fn new(why: impl Into<String>) -> Self {
        Self { place: String::new(), why: why.into() }
    }

    /// The same, seen from the enclosing value.
    fn within(mut self, place: &str) -> Self {
        self.place.insert_str(0, place);
        self
    }
}

/// `value` as a payload: bytes as they are, everything else as JSON. `what` is what messages call it.
pub fn to_payload(value: &Bound<'_, PyAny>, what: &str) -> PyResult<Payload> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Payload::bytes(bytes.as_bytes()).map_err(raise);
    }
    let mut writer = PayloadWriter::default();
    match write(&mut writer, value, 0) {
        Ok(()) => writer.finish().map_err(raise),
        Err(_) if value.is_instance_of::<PyByteArray>() || value.is_instance_of::<PyMemoryView>() => {
            let bytes = value.py().get_type::<PyBytes>().call1((value,))?;
            Payload::bytes(bytes.cast::<PyBytes>()?.as_bytes()).map_err(raise)
        }
        Err(Refused { place, why }) => Err(raise(Error::invalid(format!("{what}{place}: {why}")))),
    }
}

/// The most frequent types come first; a bool is an int too.
fn write(writer: &mut PayloadWriter, value: &Bound<'_, PyAny>, depth: usize) -> Result<(), Refused> {
    if depth > PAYLOAD_DEPTH_MAX {
        return Err(Refused::new(format!("nested more than {PAYLOAD_DEPTH_MAX} levels deep")));
    }
    let refused = |e: Error| Refused::new(e.message());
    if let Ok(text) = value.cast::<PyString>() {
        writer.text(text.to_str().map_err(|_| half_a_pair())?);
    } else if let Ok(flag) = value.cast::<PyBool>() {
        writer.bool(flag.is_true());
    } else if value.is_none() {
        writer.null();
    } else if value.is_instance_of::<PyInt>() {
        write_int(writer, value)?;
    } else if let Ok(number) = value.cast::<PyFloat>() {
        let number = number.value();
        writer.float(number).map_err(|_| Refused::new(format!("JSON has no {}", shown(value))))?;
    } else if let Ok(dict) = value.cast::<PyDict>() {
        write_dict(writer, dict, depth)?;
    } else if let Ok(list) = value.cast::<PyList>() {
        writer.list(list.len()).map_err(refused)?;
        for (at, item) in list.iter().enumerate() {
            write(writer, &item, depth + 1).map_err(|e| e.within(&format!("[{at}]")))?;
        }
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        writer.list(tuple.len()).map_err(refused)?;
        for (at, item) in tuple.iter().enumerate() {
            write(writer, &item, depth + 1).map_err(|e| e.within(&format!("[{at}]")))?;
        }
    } else {
        let name = value.get_type().name().map_or_else(|_| "value".to_owned(), |name| name.to_string());
        let hint = match name.as_str() {
            "datetime" | "date" | "time" | "Timestamp" => "; a time is value.isoformat()",
            "function" | "method" => {
                "; to change a value by a function: store.transact(lambda tx: tx.tree.put(path, f(tx.tree.get(path))))"
            }
            "UUID" | "Decimal" | "PosixPath" => "; as text it is str(value)",
            _ => "",
        };
        return Err(Refused::new(format!(
            "{name} is not a JSON value; expected None, a bool, int, float, str, list, tuple or dict with str keys \
             (bytes can only be a whole payload){hint}"
        )));
    }
    Ok(())
}

fn write_int(writer: &mut PayloadWriter, value: &Bound<'_, PyAny>) -> Result<(), Refused> {
    if let Ok(number) = value.extract::<i64>() {
        writer.int(number);
    } else if let Ok(number) = value.extract::<u64>() {
        writer.uint(number);
    } else {
        return Err(Refused::new(format!("{} is out of range; integers have at most 64 bits", shown(value))));
    }
    Ok(())
}

fn write_dict(writer: &mut PayloadWriter, dict: &Bound<'_, PyDict>, depth: usize) -> Result<(), Refused> {
    let mut entries: Vec<(PyBackedStr, Bound<'_, PyAny>)> = Vec::with_capacity(dict.len());
    for (key, value) in dict.iter() {
        let text = match key.cast_into::<PyString>() {
            Ok(text) => text,
            Err(other) => return Err(Refused::new(format!("key {} is not a str", shown(&other.into_inner())))),
        };
        entries.push((PyBackedStr::try_from(text).map_err(|_| half_a_pair())?, value));
    }
    writer.object(entries.len()).map_err(|e| Refused::new(e.message()))?;
    entries.sort_unstable_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
    for (name, value) in &entries {
        writer.text(name);
        let place = || name.as_py_str().bind(value.py()).repr().map_or_else(|_| name.to_string(), |r| r.to_string());
        write(writer, value, depth + 1).map_err(|e| e.within(&format!("[{}]", place())))?;
    }
    Ok(())
}

fn half_a_pair() -> Refused {
    Refused::new("the str has half a surrogate pair, which is not valid text")
}

/// What Python shows of a value; its type, if it cannot be shown.
fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map(|text| text.to_string_lossy().into_owned());
    text.unwrap_or_else(|_| format!("the {}", value.get_type()))
}

/// The Python value of `payload`.
pub fn from_payload<'py>(py: Python<'py>, payload: &Payload) -> PyResult<Bound<'py, PyAny>> {
    match payload.content() {
        Content::Json(value) => from_value(py, value),
        Content::Bytes(bytes) => Ok(PyBytes::new(py, bytes).into_any()),
    }
}

fn from_value<'py>(py: Python<'py>, value: Value<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(flag) => PyBool::new(py, flag).to_owned().into_any(),
        Value::Int(number) => number.into_pyobject(py)?.into_any(),
        Value::UInt(number) => number.into_pyobject(py)?.into_any(),
        Value::Float(number) => PyFloat::new(py, number).into_any(),
        Value::Text(text) => PyString::new(py, text).into_any(),
        Value::List(items) => {
            let items = items.map(|item| from_value(py, item)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
        Value::Object(entries) => {
            let dict = PyDict::new(py);
            for (name, value) in entries {
                dict.set_item(name, from_value(py, value)?)?;
            }
            dict.into_any()
        }
    })
}

/// Payloads by path, from a dict or anything that has `items`.
pub struct Payloads(pub Vec<(String, Payload)>);

impl<'py> FromPyObject<'_, 'py> for Payloads {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let mut payloads = Vec::new();
        let mut add = |path: &Bound<'py, PyAny>, value: &Bound<'py, PyAny>| {
            let path: String = path.extract()?;
            let payload = to_payload(value, &format!("payload of '{path}'"))?;
            payloads.push((path, payload));
            PyResult::Ok(())
        };
        if let Ok(dict) = object.cast::<PyDict>() {
            for (path, value) in dict.iter() {
                add(&path, &value)?;
            }
        } else {
            let Some(items) = object.getattr_opt(intern!(object.py(), "items"))? else {
                let came = a_type(&object)?;
                return Err(PyTypeError::new_err(format!("expected a dict of paths and payloads, not {came}")));
            };
            for pair in items.call0()?.try_iter()? {
                let (path, value): (Bound<'py, PyAny>, Bound<'py, PyAny>) = pair?.extract()?;
                add(&path, &value)?;
            }
        }
        Ok(Self(payloads))
    }
}
