//! Arrow objects from Python, passed as capsules of the C data interface.
//!
//! The only unsafe code of this crate: taking a struct out of its capsule. Its content is checked by `drumlin_c_data`, its
//! values by the core, once, before anything else reads them.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow::array::{ArrayData, ArrayRef, RecordBatch, new_empty_array};
use arrow::datatypes::{Field, SchemaRef};
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow::ffi_stream::FFI_ArrowArrayStream;
use drumlin::Result;
use drumlin::arrays::{checked_array, checked_rows};
use drumlin_c_data::{Stream, field, schema_of};
use pyo3::exceptions::{PyStopIteration, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::call::{leave_raised, on_caller};
use crate::errors::raise;

/// Arrays of one type, none of them checked.
struct Arrays {
    field: Arc<Field>,
    arrays: Box<dyn Iterator<Item = Result<ArrayData>> + Send>,
}

/// Rows made by another library, to be pulled on any thread; they are checked by the code that pulls them.
pub struct Rows {
    /// The schema of the batches.
    pub schema: SchemaRef,
    /// The batches: structs with the schema's fields.
    pub batches: Box<dyn Iterator<Item = Result<ArrayData>> + Send>,
}

impl Rows {
    /// The batches, checked as they are pulled.
    pub fn checked(self) -> impl Iterator<Item = Result<RecordBatch>> + Send {
        let Self { schema, batches } = self;
        batches.map(move |rows| checked_rows(None, &schema, &rows?))
    }
}

/// The batches of a reader of pyarrow's, drawn by its method, as Python code does: across the C interface an exception that a
/// signal's handler raises in the caller's code would be a text. On the thread that made the call, so that it can be interrupted.
struct Drawn(Py<PyAny>);

impl Iterator for Drawn {
    type Item = Result<ArrayData>;

    fn next(&mut self) -> Option<Self::Item> {
        let reader = Python::attach(|py| self.0.clone_ref(py));
        on_caller(move || Python::attach(|py| drawn(reader.bind(py))))
    }
}

/// The next batch of a reader.
fn drawn(reader: &Bound<'_, PyAny>) -> Option<Result<ArrayData>> {
    let py = reader.py();
    let batch = reader.call_method0("read_next_batch").and_then(|batch| take_arrays(batch.as_borrowed()));
    match batch {
        Ok(mut arrays) => arrays.arrays.next(),
        Err(raised) if raised.is_instance_of::<PyStopIteration>(py) => None,
        Err(raised) => {
            let told = format!("the rows could not be read: {raised}");
            leave_raised(py, raised);
            Some(Err(drumlin::Error::invalid(told)))
        }
    }
}

/// Arrays that are made when they are asked for, which may take long: on the thread that made the call, so that it can be
/// interrupted.
struct Made(Option<Stream>);

impl Iterator for Made {
    type Item = Result<ArrayData>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut stream = self.0.take()?;
        let (stream, next) = on_caller(move || {
            let next = stream.next();
            (stream, next)
        });
        self.0 = Some(stream);
        next
    }
}

/// The struct in a capsule.
fn pointer<T>(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<NonNull<T>> {
    Ok(capsule.cast::<PyCapsule>()?.pointer_checked(Some(name))?.cast())
}

fn take_field(capsule: &Bound<'_, PyAny>) -> PyResult<Field> {
    let schema = pointer::<FFI_ArrowSchema>(capsule, c"arrow_schema")?;
    // SAFETY: the capsule has the name of one that holds a schema, and is alive.
    unsafe { field(schema.as_ref()) }.map_err(raise)
}

fn take_arrays(object: Borrowed<'_, '_, PyAny>) -> PyResult<Arrays> {
    if object.hasattr("__arrow_c_array__")? {
        let capsules = object.call_method0("__arrow_c_array__")?;
        let capsules = capsules
            .cast::<PyTuple>()
            .map_err(|_| PyTypeError::new_err("expected __arrow_c_array__ to return a tuple of two capsules"))?;
        let field = take_field(&capsules.get_item(0)?)?;
        let array = pointer::<FFI_ArrowArray>(&capsules.get_item(1)?, c"arrow_array")?;
        // SAFETY: the capsule has the name of one that holds an array, which is taken out of it.
        let array = unsafe { FFI_ArrowArray::from_raw(array.as_ptr()) };
        // SAFETY: the capsule's maker promises that it follows the rules of the interface.
        let data = unsafe { drumlin_c_data::array(array, field.data_type()) }.map_err(raise)?;
        return Ok(Arrays { field: field.into(), arrays: Box::new(std::iter::once(Ok(data))) });
    }
    if object.hasattr("read_next_batch")? && object.hasattr("schema")? {
        let field = take_field(&object.getattr("schema")?.call_method0("__arrow_c_schema__")?)?;
        return Ok(Arrays { field: field.into(), arrays: Box::new(Drawn(object.to_owned().unbind())) });
    }
    if object.hasattr("__arrow_c_stream__")? {
        let capsule = object.call_method0("__arrow_c_stream__")?;
        let stream = pointer::<FFI_ArrowArrayStream>(&capsule, c"arrow_array_stream")?;
        // SAFETY: the capsule has the name of one that holds a stream, which is taken out of it.
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
        // SAFETY: the capsule's maker promises that it follows the rules of the interface.
        let stream = unsafe { Stream::new(stream) }.map_err(raise)?;
        let field = stream.field().clone();
        // Tables and frames know how many rows they have, since they have them; code of the caller's may make others.
        let complete = object.hasattr("num_rows")? || object.hasattr("height")?;
        let arrays: Box<dyn Iterator<Item = Result<ArrayData>> + Send> =
            if complete { Box::new(stream) } else { Box::new(Made(Some(stream))) };
        return Ok(Arrays { field, arrays });
    }
    Err(PyValueError::new_err("expected an object with the method __arrow_c_array__ or __arrow_c_stream__"))
}

impl<'py> FromPyObject<'_, 'py> for Rows {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let Arrays { field, arrays } = take_arrays(object)?;
        Ok(Self { schema: schema_of(&field).map_err(raise)?, batches: arrays })
    }
}

/// A column made by another library, in at least one piece, each checked. The field has the metadata of its type.
pub struct Pieces(pub Arc<Field>, pub Vec<Result<ArrayRef>>);

impl<'py> FromPyObject<'_, 'py> for Pieces {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let Arrays { field, arrays } = take_arrays(object)?;
        let mut pieces: Vec<Result<ArrayRef>> = arrays.map(|array| checked_array(&array?)).collect();
        if pieces.is_empty() {
            pieces.push(Ok(new_empty_array(field.data_type())));
        }
        Ok(Self(field, pieces))
    }
}

/// The schema of anything that has one.
pub struct GivenSchema(SchemaRef);

impl GivenSchema {
    pub fn into_inner(self) -> SchemaRef {
        self.0
    }
}

impl<'py> FromPyObject<'_, 'py> for GivenSchema {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if !object.hasattr("__arrow_c_schema__")? {
            return Err(PyValueError::new_err("expected an object with the method __arrow_c_schema__"));
        }
        let field = take_field(&object.call_method0("__arrow_c_schema__")?)?;
        Ok(Self(schema_of(&field).map_err(raise)?))
    }
}
