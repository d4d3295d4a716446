//! Projections: how they are read, and Python functions that define them.

use std::ops::Bound as Limit;
use std::sync::Arc;

use drumlin::{Payload, ProjectionFn};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyTuple};

use crate::call::within_commit;
use crate::callbacks::Callback;
use crate::errors::raise;
use crate::payload::{from_payload, to_payload};

/// The fields of a key: those of a tuple, or the single value.
fn to_key(key: &Bound<'_, PyAny>) -> PyResult<Vec<Payload>> {
    match key.cast::<PyTuple>() {
        Ok(fields) => fields.iter().map(|field| to_payload(&field, "key")).collect(),
        Err(_) => Ok(vec![to_payload(key, "key")?]),
    }
}

/// A key as a Python value: its value if it has one field, else a tuple.
fn from_key<'py>(py: Python<'py>, key: &[Payload]) -> PyResult<Bound<'py, PyAny>> {
    if let [field] = key {
        return from_payload(py, field);
    }
    let fields = key.iter().map(|field| from_payload(py, field)).collect::<PyResult<Vec<_>>>()?;
    Ok(PyTuple::new(py, fields)?.into_any())
}

/// The projection's function, which calls `callback` with path and payload. `callback` returns a key and a value, or
/// None. If it raises, the exception is shown, and the node has no entry.
pub fn function(callback: Arc<Callback>) -> ProjectionFn {
    Arc::new(move |path, payload| {
        let entry = within_commit(|py| {
            let function = callback.get(py)?;
            entry_of(&function, path, payload).unwrap_or_else(|raised| {
                raised.write_unraisable(py, Some(&function));
                None
            })
        });
        entry.flatten().into_iter().collect()
    })
}

fn entry_of(function: &Bound<'_, PyAny>, path: &str, payload: &Payload) -> PyResult<Option<(Vec<Payload>, Payload)>> {
    let given = function.call1((path, from_payload(function.py(), payload)?))?;
    if given.is_none() {
        return Ok(None);
    }
    let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = given.extract()?;
    Ok(Some((to_key(&key)?, to_payload(&value, "value")?)))
}

/// One entry of a projection.
#[pyclass(frozen, eq, module = "drumlin")]
#[derive(PartialEq)]
pub struct ProjectionEntry(drumlin::ProjectionEntry);

#[pymethods]
impl ProjectionEntry {
    /// The key: a value, or a tuple if it has several fields.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_key(py, &self.0.key)
    }

    /// The path of the node that the entry is made from.
    #[getter]
    fn path(&self) -> &str {
        &self.0.path
    }

    /// The value of the entry.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_payload(py, &self.0.value)
    }

    fn __repr__(this: &Bound<'_, Self>) -> PyResult<String> {
        crate::reports::describe(this.as_any(), &["key", "path", "value"])
    }
}

/// A projection as of one instant: a map from keys to values, ordered by key. A key of several fields is a tuple.
#[pyclass(frozen, module = "drumlin")]
pub struct ProjectionView(pub drumlin::ProjectionView);

#[pymethods]
impl ProjectionView {
    /// The number of the last commit that it shows.
    #[getter]
    fn seq(&self) -> u64 {
        self.0.seq().0
    }

    /// The value of `key`, from the first node in path order if several nodes have that key; `default` if none has.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.0.get(&to_key(key)?).map_err(raise)? {
            Some(value) => Ok(Some(from_payload(py, &value)?)),
            None => Ok(default),
        }
    }

    /// All values of `key`, in the order of their nodes' paths; at most one if the projection is not a bag.
    fn get_all<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.0.get_all(&to_key(key)?).map_err(raise)?.iter().map(|value| from_payload(py, value)).collect()
    }

    /// The keys, in order.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.0.entries().map(|entry| from_key(py, &entry.key)).collect()
    }

    /// The values, in the order of their keys.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.0.entries().map(|entry| from_payload(py, &entry.value)).collect()
    }

    /// Pairs of a key and its value, in the order of the keys.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        self.0.entries().map(|entry| Ok((from_key(py, &entry.key)?, from_payload(py, &entry.value)?))).collect()
    }

    /// The entries, in order of key and path.
    fn entries(&self) -> Vec<ProjectionEntry> {
        self.0.entries().map(ProjectionEntry).collect()
    }

    /// The entries whose keys begin with the fields `first`, followed by a text that begins with `text`; if `text` is
    /// None, those that begin with `first`.
    #[pyo3(signature = (text, *first))]
    fn prefix(&self, text: Option<&str>, first: &Bound<'_, PyTuple>) -> PyResult<Vec<ProjectionEntry>> {
        let first = to_key(first)?;
        Ok(self.0.prefix(&first, text).map_err(raise)?.map(ProjectionEntry).collect())
    }

    /// The entries from the key `low` up to the key `high`, which is excluded unless `include_high`. A key that is a
    /// prefix of others comes before them.
    #[pyo3(signature = (low=None, high=None, include_high=false))]
    fn range(
        &self,
        low: Option<&Bound<'_, PyAny>>,
        high: Option<&Bound<'_, PyAny>>,
        include_high: bool,
    ) -> PyResult<Vec<ProjectionEntry>> {
        let (low, high) = (low.map(to_key).transpose()?, high.map(to_key).transpose()?);
        let low = low.as_deref().map_or(Limit::Unbounded, Limit::Included);
        let upper = if include_high { Limit::Included } else { Limit::Excluded };
        let high = high.as_deref().map_or(Limit::Unbounded, upper);
        Ok(self.0.range(low, high).map_err(raise)?.map(ProjectionEntry).collect())
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.0.get(&to_key(key)?).map_err(raise)?.is_some())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.keys(py)?.into_pyobject(py)?.try_iter()
    }

    fn __len__(&self) -> usize {
        self.0.count()
    }

    fn __repr__(&self) -> String {
        format!("ProjectionView({} entries, seq={})", self.0.count(), self.0.seq())
    }
}
