//! Rows from Python: anything that exports an Arrow stream or array, or a reading of a store.

use arrow::array::RecordBatchReader;
use drumlin::store::Frame;
use drumlin::table::Scan;
use pyo3::prelude::*;
use pyo3_arrow::input::AnyRecordBatch;

use crate::result::Reading;

/// Rows that were handed over, drawn later on another thread.
pub enum Input {
    /// Rows of a store; errors keep their kind, as they would not across Arrow's C interface.
    Scan(Box<Scan>),
    Reader(Box<dyn RecordBatchReader + Send>),
}

impl<'py> FromPyObject<'_, 'py> for Input {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(reading) = object.cast::<Reading>() {
            return Ok(Self::Scan(Box::new(reading.get().scan(object.py(), None)?.scan)));
        }
        Ok(Self::Reader(object.extract::<AnyRecordBatch>()?.into_reader()?))
    }
}

impl From<Input> for Frame<'_> {
    fn from(input: Input) -> Self {
        match input {
            Input::Scan(scan) => Frame::new(scan.schema(), scan),
            // Memory of another library's making.
            Input::Reader(reader) => Frame::from_reader(reader).foreign(),
        }
    }
}

/// Tables and their rows, as the store takes them.
pub fn to_frames(frames: Vec<(String, Input)>) -> Vec<(String, Frame<'static>)> {
    frames.into_iter().map(|(path, input)| (path, input.into())).collect()
}
