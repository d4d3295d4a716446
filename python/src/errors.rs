//! Errors of the core as exceptions: one class per kind, defined in `drumlin._errors`.

use drumlin::{Error, ErrorKind, Result};
use pyo3::IntoPyObjectExt;
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
    // For kinds that this build does not know, and `Cancelled`, which the caller replaces with its cause.
    let class = module.getattr(format!("{kind:?}")).or_else(|_| module.getattr("Error"))?;
    Ok(class.cast_into()?)
}

/// Makes one result per item from a call that has one result for all.
pub fn all<T>(answers: Result<Vec<T>>) -> Result<Vec<Result<T>>> {
    Ok(answers?.into_iter().map(Ok).collect())
}

/// One result per item: its value, or the exception.
pub fn answers<'py, T: IntoPyObjectExt<'py>>(
    py: Python<'py>,
    answers: impl IntoIterator<Item = Result<T>>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let object = |answer: Result<T>| match answer {
        Ok(value) => value.into_bound_py_any(py),
        Err(error) => Ok(raise(error).into_value(py).into_bound(py).into_any()),
    };
    answers.into_iter().map(object).collect()
}
