//! Python functions that a store calls: those of triggers and projections.
//!
//! The core holds their places; the functions in them belong to the Python object of the store, so that the garbage
//! collector sees them: a function may well refer to the store that calls it.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;

/// The place of one function. It is locked only by threads attached to the interpreter, and never for long.
pub struct Callback(Mutex<Option<Py<PyAny>>>);

impl Callback {
    /// The function, while the store lives and is open.
    pub fn get<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        place.as_ref().map(|function| function.bind(py).clone())
    }

    /// Calls the function, of a trigger. An exception is shown, and is a failure of the call.
    pub fn call<T: Send + for<'py> IntoPyObject<'py, Error: Into<PyErr>>>(&self, argument: T) -> Result<(), String> {
        let said = Python::try_attach(|py| {
            let Some(function) = self.get(py) else { return Ok(()) };
            let raised = function.call1((argument,));
            raised.map(drop).map_err(|raised| {
                let text = traceback(py, &raised).unwrap_or_else(|_| raised.to_string());
                raised.write_unraisable(py, Some(&function));
                text
            })
        });
        // Without an interpreter, there is nothing to call.
        said.unwrap_or(Ok(()))
    }
}

/// What Python prints for an exception.
fn traceback(py: Python<'_>, raised: &PyErr) -> PyResult<String> {
    let parts = (raised.get_type(py), raised.value(py), raised.traceback(py));
    let lines: Vec<String> = py.import("traceback")?.call_method1("format_exception", parts)?.extract()?;
    Ok(lines.concat())
}

/// The functions of a store.
#[derive(Default)]
pub struct Callbacks(Mutex<Vec<Weak<Callback>>>);

impl Callbacks {
    /// Adds a function; it is released with its place.
    pub fn add(&self, function: Py<PyAny>) -> Arc<Callback> {
        let place = Arc::new(Callback(Mutex::new(Some(function))));
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|place| place.strong_count() > 0);
        places.push(Arc::downgrade(&place));
        place
    }

    /// Releases all of them.
    pub fn clear(&self) {
        let places = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for place in places.iter().filter_map(Weak::upgrade) {
            // Dropping a function may call anything, so it must not happen under the lock.
            let function = place.0.lock().unwrap_or_else(PoisonError::into_inner).take();
            drop(function);
        }
    }

    /// Shows them to the garbage collector.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Places that are being changed are shown the next time.
        let Ok(places) = self.0.try_lock() else { return Ok(()) };
        for place in places.iter().filter_map(Weak::upgrade) {
            if let Ok(function) = place.0.try_lock() {
                visit.call(&*function)?;
            }
        }
        Ok(())
    }
}
