//! Presences: nodes put with one are deleted by the commit that ends it.

use std::time::{Duration, SystemTime};

use drumlin::PresenceOptions;
use pyo3::prelude::*;

use crate::call::{Detached, detached};
use crate::open_store::Store;
use crate::reports::{describe, record, time};
use crate::transaction::Transaction;
use crate::tree::Tree;

/// What a program holds while it is present.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct Presence {
    core: Detached<drumlin::Presence>,
    _store: Py<Store>,
}

#[pymethods]
impl Presence {
    #[getter]
    fn number(&self) -> u64 {
        self.core.number()
    }

    #[getter]
    fn life_micros(&self) -> u64 {
        self.core.life_micros()
    }

    fn is_open(&self, py: Python<'_>) -> PyResult<bool> {
        detached(py, || self.core.is_open())
    }

    fn beat(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.core.beat())
    }

    fn end(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.core.end())
    }

    /// Has a transaction commit only while it has not ended.
    fn require(&self, py: Python<'_>, transaction: &Transaction) -> PyResult<()> {
        detached(py, || transaction.core.require(&self.core))
    }
}

/// Says that this program is there.
#[pyfunction]
pub fn begin_presence(py: Python<'_>, tree: &Tree, name: &str, life: Option<u64>) -> PyResult<Presence> {
    let options = PresenceOptions { name: name.to_owned(), life_micros: life };
    let core = detached(py, || tree.core.presence(&options))?;
    Ok(Presence { core: Detached::new(core), _store: tree.store.clone_ref(py) })
}

/// The presences that have not ended.
#[pyfunction]
pub fn presences(py: Python<'_>, tree: &Tree) -> PyResult<Vec<PresenceInfo>> {
    let info = |info: drumlin::PresenceInfo| PresenceInfo {
        number: info.number,
        name: info.name,
        life: Duration::from_micros(info.life_micros),
        began: time(info.began),
    };
    Ok(detached(py, || tree.core.presences())?.into_iter().map(info).collect())
}

record! {
    /// A presence that has not ended.
    PresenceInfo {
        /// Its number; nodes that end with it have the same.
        number: u64,
        /// What its program calls itself.
        name: String,
        /// How long it lasts once its program has fallen silent.
        life: Duration,
        /// When it began, in UTC.
        began: SystemTime,
    } {}
}
