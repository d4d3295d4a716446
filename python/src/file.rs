//! Python file objects, as the core reads and writes them.

use std::io::{Error, Read, Result, Write};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::call::on_caller;

/// A binary file object. An exception that it raises is kept, and raised instead of the error that results from it.
pub struct File {
    object: Arc<Py<PyAny>>,
    raised: Arc<Mutex<Option<PyErr>>>,
}

/// What a file raised, if it did.
pub struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// `result`, unless the file raised.
    pub fn or<T>(self, result: PyResult<T>) -> PyResult<T> {
        let raised = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        raised.map_or(result, Err)
    }
}

impl File {
    pub fn new(object: Py<PyAny>) -> (Self, Raised) {
        let raised = Arc::<Mutex<Option<PyErr>>>::default();
        (Self { object: object.into(), raised: raised.clone() }, Raised(raised))
    }

    /// Calls it on the thread that sees signals: a read may wait for input.
    fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T> + Send + 'static,
    ) -> Result<T> {
        let object = self.object.clone();
        on_caller(move || Python::attach(|py| call(object.bind(py)))).map_err(|raised| {
            self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(raised);
            Error::other("the file raised an exception")
        })
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let bytes = bytes.to_vec();
        self.call(move |file| {
            let written = file.call_method1("write", (PyBytes::new(file.py(), &bytes),))?;
            // A file need not return how many bytes it has written.
            let taken = if written.is_none() { bytes.len() } else { written.extract()? };
            Ok(taken.min(bytes.len()))
        })
    }

    /// Flushing its own buffers is up to its owner.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Read for File {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let most = buffer.len();
        let bytes = self.call(move |file| {
            let read = file.call_method1("read", (most,))?;
            let Ok(bytes) = read.cast::<PyBytes>() else {
                return Err(PyTypeError::new_err("the file did not return bytes; open it with mode 'rb'"));
            };
            match bytes.as_bytes().len() > most {
                true => Err(PyValueError::new_err("the file returned more bytes than were requested")),
                false => Ok(bytes.as_bytes().to_vec()),
            }
        })?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }
}
