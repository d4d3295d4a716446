//! The open store that tables, transactions and feeds keep alive; its calls are in store.rs.

use std::collections::BTreeMap;

use pyo3::prelude::*;

use crate::call::Detached;
use crate::callbacks::Callbacks;

/// An open store.
#[pyclass(frozen, weakref, module = "drumlin._drumlin")]
pub struct Store {
    /// If this is the last handle, the store is closed without the interpreter lock: a thread within a commit may wait
    /// for that lock.
    pub core: Detached<drumlin::Store>,
    pub callbacks: Callbacks,
    /// The settings of its bucket's client that are no secrets.
    pub told: BTreeMap<String, String>,
}

impl Store {
    pub fn new(told: BTreeMap<String, String>, core: drumlin::Store) -> Self {
        Self { core: Detached::new(core), callbacks: Callbacks::default(), told }
    }
}
