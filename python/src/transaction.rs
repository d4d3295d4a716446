//! Transactions.

use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;

use drumlin::Tables as _;

use crate::call::{Detached, detached};
use crate::open_store::Store;
use crate::tables::Tables;

/// A transaction: any number of operations that happen together or not at all.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct Transaction {
    pub core: Detached<drumlin::Transaction>,
    store: Py<Store>,
}

impl Transaction {
    pub fn new(core: drumlin::Transaction, store: Py<Store>) -> Self {
        Self { core: Detached::new(core), store }
    }
}

#[pymethods]
impl Transaction {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.store)
    }

    fn tables(&self, py: Python<'_>) -> Tables {
        Tables::new(self.core.place(), self.store.clone_ref(py))
    }

    #[getter]
    fn seq(&self) -> u64 {
        self.core.seq().0
    }

    /// One of `open`, `committed` and `aborted`.
    #[getter]
    fn state(&self, py: Python<'_>) -> &'static str {
        py.detach(|| match (self.core.is_aborted(), self.core.has_ended()) {
            (true, _) => "aborted",
            (_, true) => "committed",
            _ => "open",
        })
    }

    #[getter]
    fn ended(&self, py: Python<'_>) -> bool {
        py.detach(|| self.core.has_ended())
    }

    fn commit(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(detached(py, || self.core.commit())?.0)
    }

    /// The transaction in which all is to be done again; `None` once it is committed.
    fn commit_or_again(&self, py: Python<'_>) -> PyResult<Option<Self>> {
        let again = detached(py, || self.core.commit_or_again())?;
        Ok(again.map(|core| Self::new(core, self.store.clone_ref(py))))
    }

    fn abort(&self, py: Python<'_>) {
        py.detach(|| self.core.abort());
    }
}
