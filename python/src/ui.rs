//! The server of a page that shows a store.

use drumlin_ui::{Options, Server};
use pyo3::prelude::*;

use crate::call::{Detached, detached, unlocked};
use crate::open_store::Store;

/// A page that shows a store, served until it is closed.
#[pyclass(frozen, module = "drumlin")]
pub struct Ui(Detached<Server>);

impl Ui {
    /// Shows `store`.
    pub fn serve(py: Python<'_>, store: &Store, options: Options, open_browser: bool) -> PyResult<Self> {
        let store = drumlin::Store::clone(&store.core);
        let server = detached(py, || drumlin_ui::serve(store, &options))?;
        // The address can be opened by hand where there is no browser.
        let opened = open_browser.then(|| detached(py, || server.open_browser())).transpose();
        if let Err(error) = opened {
            PyErr::warn(py, &py.get_type::<pyo3::exceptions::PyRuntimeWarning>(), &message(py, &error)?, 2)?;
        }
        Ok(Self(Detached::new(server)))
    }
}

fn message(py: Python<'_>, error: &PyErr) -> PyResult<std::ffi::CString> {
    let text: String = error.value(py).str()?.extract()?;
    Ok(std::ffi::CString::new(text.replace('\0', " "))?)
}

#[pymethods]
impl Ui {
    /// The address to open in a browser. It contains a token that gives access to the store: do not share it.
    #[getter]
    fn address(&self) -> &str {
        self.0.address()
    }

    /// Stops the server. The store stays open.
    fn close(&self) {
        // It cannot fail.
        let _ = unlocked(|| {
            self.0.close();
            Ok(())
        });
    }

    fn __enter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    #[pyo3(signature = (*_ended))]
    fn __exit__(&self, _ended: &Bound<'_, pyo3::types::PyTuple>) {
        self.close();
    }

    /// Without the token.
    fn __repr__(&self) -> String {
        format!("Ui('http://{}/')", self.0.local())
    }
}
