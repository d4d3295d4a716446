//! Rows from Python: anything that exports an Arrow stream or array, or a reading of a store.

use drumlin::{Cancel, Frame, Result, Scan, VersionInfo};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::errors::answers;
use crate::foreign::Rows;
use crate::reports::Version;
use crate::result::Reading;

/// Rows passed by a caller, pulled later on another thread.
pub enum Input {
    /// Rows of a store; errors keep their kind, which they would lose across Arrow's C interface.
    Scan(Box<Scan>),
    /// Memory made by another library.
    Foreign(Rows),
}

impl<'py> FromPyObject<'_, 'py> for Input {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(reading) = object.cast::<Reading>() {
            return Ok(Self::Scan(Box::new(reading.get().scan(object.py(), None)?.scan)));
        }
        Ok(Self::Foreign(object.extract()?))
    }
}

impl Input {
    /// The rows as the store takes them. A call that is cancelled waits for no more of another library's: they may take
    /// long to come.
    pub fn frame(self, cancel: &Cancel) -> Frame<'static> {
        match self {
            Input::Scan(scan) => Frame::new(scan.schema(), scan),
            Input::Foreign(Rows { schema, mut batches }) => {
                let cancel = cancel.clone();
                let next = move || cancel.check().map_or_else(|error| Some(Err(error)), |()| batches.next());
                Frame::from_foreign(schema, std::iter::from_fn(next))
            }
        }
    }
}

/// Tables and their rows, as the store takes them.
pub fn to_frames(frames: Vec<(String, Input)>, cancel: &Cancel) -> Vec<(String, Frame<'static>)> {
    frames.into_iter().map(|(path, input)| (path, input.frame(cancel))).collect()
}

/// Rows passed by a caller, or the exception raised when they were requested.
pub struct Handed(PyResult<Input>);

impl<'py> FromPyObject<'_, 'py> for Handed {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<Input>() {
            // Ctrl-C is not about this frame.
            Err(raised) if !raised.is_instance_of::<PyException>(object.py()) => Err(raised),
            input => Ok(Self(input)),
        }
    }
}

/// Writes frames by `write`; returns one result per frame. With `each`, a frame that could not be passed has the exception
/// raised as its result.
pub fn write_each<'py>(
    py: Python<'py>,
    frames: Vec<(String, Handed)>,
    each: bool,
    write: impl FnOnce(Vec<(String, Input)>) -> PyResult<Vec<Result<Option<VersionInfo>>>>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let (mut inputs, mut wrong) = (Vec::with_capacity(frames.len()), Vec::new());
    for (at, (path, Handed(input))) in frames.into_iter().enumerate() {
        match input {
            Ok(input) => inputs.push((path, input)),
            Err(raised) if each => wrong.push((at, raised)),
            Err(raised) => return Err(raised),
        }
    }
    let mut given = answers(py, write(inputs)?.into_iter().map(|version| version.map(|info| info.map(Version::from))))?;
    for (at, raised) in wrong {
        given.insert(at, raised.into_value(py).into_bound(py).into_any());
    }
    Ok(given)
}
