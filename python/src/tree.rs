//! Nodes of the tree, in a store or in a transaction.

use std::io::{BufReader, BufWriter};

use drumlin::{Condition, Field, Projection, PutOptions, Result};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call::{Detached, detached, quick, wait, with_progress};
use crate::errors::raise;
use crate::event::Span;
use crate::file::File;
use crate::node::{Change, Changes, ListEntry, Node, Walk, nodes_by_path, payloads_by_path};
use crate::open_store::Store;
use crate::pattern::{ConditionLike, KeepWhile, PatternLike, put_options};
use crate::payload::{Payloads, from_payload, to_payload};
use crate::projection::ProjectionView;
use crate::reports::{ImportReport, TriggerFailure};

/// The number of bytes written to or read from a file object at once.
const FILE_BUFFER: usize = 1 << 18;

/// The nodes of the tree.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct Tree {
    pub core: Detached<drumlin::Tree>,
    /// The store whose functions projections and triggers call.
    pub store: Py<Store>,
}

impl Tree {
    pub fn new(core: drumlin::Tree, store: Py<Store>) -> Self {
        Self { core: Detached::new(core), store }
    }

    /// Does something to one node. If there is nothing to wait for, that takes less time than releasing the interpreter
    /// lock.
    fn on_node<T: Send>(
        &self,
        py: Python<'_>,
        writes: bool,
        call: impl FnOnce(&drumlin::Tree) -> Result<T> + Send,
    ) -> PyResult<T> {
        if self.core.may_wait(writes) { detached(py, || call(&self.core)) } else { quick(|| call(&self.core)) }
    }

    /// Changes one node.
    fn change(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&drumlin::Tree) -> Result<drumlin::Change> + Send,
    ) -> PyResult<Change> {
        Ok(self.on_node(py, true, call)?.into())
    }
}

fn when(condition: Option<ConditionLike>) -> Option<Condition> {
    condition.map(|condition| condition.0)
}

#[pymethods]
impl Tree {
    /// The store, which stays alive as long as callbacks may be called.
    fn store(&self, py: Python<'_>) -> Py<Store> {
        self.store.clone_ref(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.store)
    }

    #[pyo3(signature = (path, value, *, mode=None, when=None, keep_while=None, presence=None, ttl_micros=None))]
    #[expect(clippy::too_many_arguments, reason = "they are those of a call in Python")]
    fn put(
        &self,
        py: Python<'_>,
        path: &str,
        value: &Bound<'_, PyAny>,
        mode: Option<&str>,
        when: Option<ConditionLike>,
        keep_while: Option<KeepWhile>,
        presence: Option<u64>,
        ttl_micros: Option<u64>,
    ) -> PyResult<Change> {
        let options = PutOptions { presence, ttl_micros, ..put_options(mode, when, keep_while)? };
        let payload = to_payload(value, "payload")?;
        self.change(py, |tree| tree.put_with(path, payload, options))
    }

    fn create(&self, py: Python<'_>, path: &str, value: &Bound<'_, PyAny>) -> PyResult<Change> {
        let payload = to_payload(value, "payload")?;
        self.change(py, |tree| tree.create(path, payload))
    }

    fn update(&self, py: Python<'_>, path: &str, value: &Bound<'_, PyAny>) -> PyResult<Change> {
        let payload = to_payload(value, "payload")?;
        self.change(py, |tree| tree.update(path, payload))
    }

    fn compare_and_swap(
        &self,
        py: Python<'_>,
        path: &str,
        expected: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<Change> {
        let (expected, payload) = (to_payload(expected, "expected")?, to_payload(value, "payload")?);
        self.change(py, |tree| tree.compare_and_swap(path, expected, payload))
    }

    fn put_many(&self, py: Python<'_>, payloads: Payloads) -> PyResult<Changes> {
        Ok(detached(py, || self.core.put_many(&payloads.0))?.into())
    }

    fn update_many(&self, py: Python<'_>, pattern: PatternLike, value: &Bound<'_, PyAny>) -> PyResult<Changes> {
        let payload = to_payload(value, "payload")?;
        Ok(detached(py, || self.core.update_many(pattern.0, &payload))?.into())
    }

    #[pyo3(signature = (path, *, when=None))]
    fn clear_payload(&self, py: Python<'_>, path: &str, when: Option<ConditionLike>) -> PyResult<Change> {
        let when = self::when(when);
        self.change(py, |tree| tree.clear_payload(path, when))
    }

    fn clear_payloads(&self, py: Python<'_>, pattern: PatternLike) -> PyResult<Changes> {
        Ok(detached(py, || self.core.clear_payloads(pattern.0))?.into())
    }

    #[pyo3(signature = (path, *, when=None))]
    fn delete(&self, py: Python<'_>, path: &str, when: Option<ConditionLike>) -> PyResult<Change> {
        let when = self::when(when);
        self.change(py, |tree| tree.delete(path, when))
    }

    fn delete_many(&self, py: Python<'_>, pattern: PatternLike) -> PyResult<Changes> {
        Ok(detached(py, || self.core.delete_many(pattern.0))?.into())
    }

    #[pyo3(signature = (path, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.on_node(py, false, |tree| tree.get(path))? {
            Some(payload) => Ok(Some(from_payload(py, &payload)?)),
            None => Ok(default),
        }
    }

    fn node(&self, py: Python<'_>, path: &str) -> PyResult<Option<Node>> {
        Ok(self.on_node(py, false, |tree| tree.node(path))?.map(Node))
    }

    fn exists(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        self.on_node(py, false, |tree| tree.exists(path))
    }

    fn has_payload(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        self.on_node(py, false, |tree| tree.has_payload(path))
    }

    fn get_many<'py>(&self, py: Python<'py>, pattern: PatternLike) -> PyResult<Bound<'py, PyDict>> {
        payloads_by_path(py, detached(py, || self.core.get_many(pattern.0))?)
    }

    fn nodes<'py>(&self, py: Python<'py>, pattern: PatternLike) -> PyResult<Bound<'py, PyDict>> {
        nodes_by_path(py, detached(py, || self.core.nodes(pattern.0))?)
    }

    /// The nodes, one at a time, for iteration.
    fn walk(&self, py: Python<'_>, pattern: PatternLike) -> PyResult<Walk> {
        Ok(detached(py, || self.core.nodes(pattern.0))?.into())
    }

    fn count(&self, py: Python<'_>, pattern: PatternLike) -> PyResult<u64> {
        detached(py, || self.core.count(pattern.0))
    }

    fn list(&self, py: Python<'_>, pattern: PatternLike) -> PyResult<Vec<ListEntry>> {
        Ok(detached(py, || self.core.list(pattern.0))?.into_iter().map(ListEntry::from).collect())
    }

    fn put_projection(
        &self,
        py: Python<'_>,
        name: &str,
        pattern: PatternLike,
        key: Vec<String>,
        value: Vec<String>,
        bag: bool,
    ) -> PyResult<()> {
        let fields = |texts: Vec<String>| texts.iter().map(|text| Field::new(text)).collect::<Result<_>>();
        let (key, value) = (fields(key).map_err(raise)?, fields(value).map_err(raise)?);
        detached(py, || self.core.put_projection(name, Projection { pattern: pattern.0, key, value, bag }))
    }

    /// `function` is called with a path and a payload and returns a key and a value, or `None`.
    fn put_projection_fn(
        &self,
        py: Python<'_>,
        name: &str,
        pattern: PatternLike,
        function: Py<PyAny>,
        bag: bool,
    ) -> PyResult<()> {
        let function = crate::projection::function(self.store.get().callbacks.add(function));
        detached(py, || self.core.put_projection_fn(name, pattern.0, bag, function))
    }

    fn drop_projection(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        detached(py, || self.core.drop_projection(name))
    }

    /// It may be defined by a Python function, which must see a transaction's own writes.
    fn projection(&self, py: Python<'_>, name: &str) -> PyResult<ProjectionView> {
        let view = |tree: &drumlin::Tree| tree.projection(name);
        let view =
            if self.core.is_in_store() { self.on_node(py, false, view) } else { detached(py, || view(&self.core)) };
        view.map(ProjectionView)
    }

    fn projections(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.on_node(py, false, |tree| tree.projections())
    }

    /// With `name`, a durable one; returns the name.
    #[pyo3(signature = (pattern, callback, actions, priority, name=None))]
    fn on(
        &self,
        py: Python<'_>,
        pattern: PatternLike,
        callback: Py<PyAny>,
        actions: Vec<String>,
        priority: i32,
        name: Option<String>,
    ) -> PyResult<String> {
        let filter = crate::trigger::filter(pattern.0, actions, priority)?;
        let function = crate::trigger::function(self.store.get().callbacks.add(callback));
        detached(py, || match name {
            None => self.core.on(filter, function),
            Some(name) => self.core.on_durable(&name, filter, function).map(|()| name),
        })
    }

    fn off(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        detached(py, || self.core.off(name))
    }

    fn triggers(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        detached(py, || self.core.triggers())
    }

    #[pyo3(signature = (timeout=None))]
    fn wait_for_triggers(&self, py: Python<'_>, timeout: Option<Span>) -> PyResult<bool> {
        let timeout = timeout.map(Span::duration).transpose()?;
        let called = wait(py, timeout, |step| Ok(self.core.wait_for_triggers(Some(step))?.then_some(())))?;
        Ok(called.is_some())
    }

    fn trigger_failures(&self, py: Python<'_>) -> PyResult<Vec<TriggerFailure>> {
        let failures = detached(py, || self.core.trigger_failures())?;
        Ok(failures.into_iter().map(TriggerFailure::from).collect())
    }

    /// Returns the number of nodes written.
    #[pyo3(signature = (pattern, file, progress=None))]
    fn export(
        &self,
        py: Python<'_>,
        pattern: PatternLike,
        file: Py<PyAny>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        let (file, raised) = File::new(file);
        let mut file = BufWriter::with_capacity(FILE_BUFFER, file);
        raised.or(with_progress(py, progress, |task| self.core.export(pattern.0, &mut file, &task)))
    }

    #[pyo3(name = "import_", signature = (file, under=None, progress=None))]
    fn import(
        &self,
        py: Python<'_>,
        file: Py<PyAny>,
        under: Option<&str>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<ImportReport> {
        let (file, raised) = File::new(file);
        let mut file = BufReader::with_capacity(FILE_BUFFER, file);
        Ok(raised.or(with_progress(py, progress, |task| self.core.import(&mut file, under, &task)))?.into())
    }
}
