//! Errors of the core as exceptions: one class for each kind, defined in `drumlin._errors`.

use drumlin::{Error, ErrorKind};
use pyo3::prelude::*;

/// The exception for `error`.
pub fn raise(error: Error) -> PyErr {
    let message = error.to_string();
    match Python::attach(|py| class(py, error.kind()).map(|class| PyErr::from_type(class, message))) {
        Ok(raised) | Err(raised) => raised,
    }
}

fn class<'py>(py: Python<'py>, kind: ErrorKind) -> PyResult<Bound<'py, pyo3::types::PyType>> {
    let module = py.import("drumlin._errors")?;
    // A kind that this build does not know, and `Cancelled`, which its caller turns into what caused it.
    let class = module.getattr(format!("{kind:?}")).or_else(|_| module.getattr("Error"))?;
    Ok(class.cast_into()?)
}
