//! Streams through the C interface.

use std::ffi::CStr;

use arrow::array::ArrayData;
use arrow::datatypes::{DataType, Field, FieldRef};
use arrow::error::ArrowError;
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow::ffi_stream::FFI_ArrowArrayStream;
use drumlin::{Error, Result, TypeName};

use crate::{array, field, malformed};

/// Arrays returned by another library, one at a time; their values are not checked.
pub struct Stream {
    stream: FFI_ArrowArrayStream,
    field: FieldRef,
    ended: bool,
}

impl Stream {
    /// The stream that `stream` describes. `InvalidArgument` if it was taken before, or its schema is malformed.
    ///
    /// # Safety
    ///
    /// The functions of `stream` follow the rules of the C stream interface, and what they return meets the requirements of
    /// [`array()`] and [`field()`].
    pub unsafe fn new(mut stream: FFI_ArrowArrayStream) -> Result<Self> {
        if stream.release.is_none() {
            return Err(Error::invalid("the Arrow stream was already read, and can only be read once; make it again"));
        }
        let (Some(get_schema), Some(_)) = (stream.get_schema, stream.get_next) else {
            return Err(malformed("the stream has no functions to read it"));
        };
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: the caller's promise.
        match unsafe { get_schema(&mut stream, &mut schema) } {
            // SAFETY: the caller's promise.
            0 => unsafe { Ok(Self { field: field(&schema)?.into(), stream, ended: false }) },
            code => Err(last_error(&mut stream, code)),
        }
    }

    /// The field of its arrays.
    pub fn field(&self) -> &FieldRef {
        &self.field
    }

    fn data_type(&self) -> &DataType {
        self.field.data_type()
    }
}

/// The stream's message for its last failure, in the form of Arrow for Rust.
fn last_error(stream: &mut FFI_ArrowArrayStream, code: i32) -> Error {
    let told = stream.get_last_error.and_then(|get| {
        // SAFETY: the promise of the stream's maker; the text is valid until the next call.
        let text = unsafe { get(stream) };
        // SAFETY: strings of the C interface end with a NUL.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    });
    ArrowError::CDataInterface(told.unwrap_or_else(|| format!("the stream failed with code {code}"))).into()
}

impl Iterator for Stream {
    type Item = Result<ArrayData>;

    fn next(&mut self) -> Option<Self::Item> {
        let get_next = self.stream.get_next.filter(|_| !self.ended)?;
        let mut next = FFI_ArrowArray::empty();
        // SAFETY: the promise made to `new`.
        let code = unsafe { get_next(&mut self.stream, &mut next) };
        if code != 0 {
            self.ended = true;
            return Some(Err(last_error(&mut self.stream, code)));
        }
        if next.is_released() {
            self.ended = true;
            return None;
        }
        // SAFETY: the promise made to `new`.
        Some(unsafe { array(next, self.data_type()) })
    }
}

/// The columns of rows that are passed as structs.
pub fn schema_of(field: &Field) -> Result<arrow::datatypes::SchemaRef> {
    match field.data_type() {
        DataType::Struct(fields) => {
            let schema = arrow::datatypes::Schema::new_with_metadata(fields.clone(), field.metadata().clone());
            Ok(std::sync::Arc::new(schema))
        }
        other => {
            Err(Error::invalid(format!("expected rows with columns, got a single column of type {}", TypeName(other))))
        }
    }
}
