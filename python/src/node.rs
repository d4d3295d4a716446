//! Nodes, and what was done to them. Nothing is converted before it is accessed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use drumlin::{Cause, NodeInfo};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::payload::from_payload;
use crate::reports::{describe, time};

/// A node of the tree, as it was at one moment.
#[pyclass(frozen, eq, module = "drumlin")]
#[derive(Clone, PartialEq)]
pub struct Node(pub NodeInfo);

#[pymethods]
impl Node {
    /// The node's payload: a JSON value or bytes; None if it has none.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.payload.as_ref().map(|payload| from_payload(py, payload)).transpose()
    }

    /// The number of times that the payload has been changed since the node was created.
    #[getter]
    fn payload_version(&self) -> u64 {
        self.0.payload_version
    }

    /// Whether it holds a table.
    #[getter]
    fn has_table(&self) -> bool {
        self.0.table
    }

    /// The number of its children.
    #[getter]
    fn children(&self) -> u64 {
        self.0.children
    }

    /// The number of times that the list of its children has changed since the node was created.
    #[getter]
    fn children_version(&self) -> u64 {
        self.0.children_version
    }

    /// The number of the last commit that changed the node itself.
    #[getter]
    fn seq(&self) -> u64 {
        self.0.seq.0
    }

    /// The number of the presence that it ends with; None if it has none.
    #[getter]
    fn presence(&self) -> Option<u64> {
        self.0.presence
    }

    /// When it ends by itself, in UTC: it is deleted soon after; None if it does not.
    #[getter]
    fn expires(&self) -> Option<SystemTime> {
        self.0.expires.map(time)
    }

    fn __repr__(this: &Bound<'_, Self>) -> PyResult<String> {
        describe(this.as_any(), &["payload", "payload_version", "has_table", "children", "children_version", "seq"])
    }
}

/// One entry of a listing: a node, and figures of its table.
#[pyclass(frozen, eq, module = "drumlin")]
#[derive(PartialEq)]
pub struct ListEntry(drumlin::ListEntry);

impl From<drumlin::ListEntry> for ListEntry {
    fn from(entry: drumlin::ListEntry) -> Self {
        Self(entry)
    }
}

impl ListEntry {
    fn figure(&self, of: impl Fn(drumlin::TableFigures) -> u64) -> Option<u64> {
        self.0.table.map(of)
    }
}

#[pymethods]
impl ListEntry {
    /// The node's path.
    #[getter]
    fn path(&self) -> &str {
        &self.0.path
    }

    /// The node.
    #[getter]
    fn node(&self) -> Node {
        Node(self.0.node.clone())
    }

    /// The node's payload.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.node().payload(py)
    }

    /// The number of times that the payload has been changed since the node was created.
    #[getter]
    fn payload_version(&self) -> u64 {
        self.0.node.payload_version
    }

    /// Whether it holds a table.
    #[getter]
    fn is_table(&self) -> bool {
        self.0.node.table
    }

    /// Rows in the newest version of its table; None without a table.
    #[getter]
    fn rows(&self) -> Option<u64> {
        self.figure(|table| table.rows)
    }

    /// Versions of its table; None without a table.
    #[getter]
    fn versions(&self) -> Option<u64> {
        self.figure(|table| table.versions)
    }

    /// Row groups of its table; None without a table.
    #[getter]
    fn row_groups(&self) -> Option<u64> {
        self.figure(|table| table.row_groups)
    }

    /// The number of its children.
    #[getter]
    fn children(&self) -> u64 {
        self.0.node.children
    }

    /// The number of times that the list of its children has changed since the node was created.
    #[getter]
    fn children_version(&self) -> u64 {
        self.0.node.children_version
    }

    fn __repr__(this: &Bound<'_, Self>) -> PyResult<String> {
        let fields: &[&str] = match this.get().0.node.table {
            true => &["path", "payload", "children", "rows", "versions", "row_groups"],
            false => &["path", "payload", "children"],
        };
        describe(this.as_any(), fields)
    }
}

/// The effect of an operation on one node.
#[pyclass(frozen, module = "drumlin")]
pub struct Change {
    before: Option<NodeInfo>,
    after: Option<NodeInfo>,
    indirect: Option<Arc<drumlin::Changes>>,
}

impl From<drumlin::Change> for Change {
    fn from(change: drumlin::Change) -> Self {
        let drumlin::Change { before, after, indirect } = change;
        Self { before, after, indirect: indirect.map(Arc::from) }
    }
}

#[pymethods]
impl Change {
    /// The node before the operation; None if it did not exist.
    #[getter]
    fn before(&self) -> Option<Node> {
        self.before.clone().map(Node)
    }

    /// The node after the operation; None if it was deleted.
    #[getter]
    fn after(&self) -> Option<Node> {
        self.after.clone().map(Node)
    }

    /// What was deleted along with it: nodes below it, and nodes that lived on it.
    #[getter]
    fn indirect(&self) -> Changes {
        Changes(self.indirect.clone().unwrap_or_default())
    }

    fn __repr__(this: &Bound<'_, Self>) -> PyResult<String> {
        describe(this.as_any(), &["before", "after", "indirect"])
    }
}

/// The effects of an operation on many nodes, in the order in which it made them: a `NodeChange` for each.
#[pyclass(frozen, module = "drumlin")]
pub struct Changes(Arc<drumlin::Changes>);

impl From<drumlin::Changes> for Changes {
    fn from(changes: drumlin::Changes) -> Self {
        Self(Arc::new(changes))
    }
}

#[pymethods]
impl Changes {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __iter__(&self, py: Python<'_>) -> NodeChanges {
        let changes: Vec<drumlin::NodeChange> = py.detach(|| self.0.iter().collect());
        NodeChanges(Mutex::new(changes.into_iter()))
    }

    fn __repr__(&self) -> String {
        const SHOWN: usize = 5;
        let mut paths: Vec<String> = self.0.iter().take(SHOWN).map(|change| format!("'{}'", change.path)).collect();
        if self.0.len() > SHOWN {
            paths.push("...".to_owned());
        }
        let colon = if paths.is_empty() { "" } else { ": " };
        format!("Changes({}{colon}{})", self.0.len(), paths.join(", "))
    }
}

/// An iterator over changes.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct NodeChanges(Mutex<std::vec::IntoIter<drumlin::NodeChange>>);

#[pymethods]
impl NodeChanges {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self) -> Option<NodeChange> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).next().map(NodeChange)
    }
}

/// The effect of an operation on one of many nodes.
#[pyclass(frozen, eq, module = "drumlin")]
#[derive(PartialEq)]
pub struct NodeChange(drumlin::NodeChange);

/// The word for why a node was changed.
pub fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::Asked => "asked",
        Cause::Above => "above",
        Cause::KeepWhile => "keep_while",
        Cause::Ended => "ended",
    }
}

#[pymethods]
impl NodeChange {
    /// The node's path.
    #[getter]
    fn path(&self) -> &str {
        &self.0.path
    }

    /// The node before the operation; None if it did not exist.
    #[getter]
    fn before(&self) -> Option<Node> {
        self.0.before.clone().map(Node)
    }

    /// The node after the operation; None if it was deleted.
    #[getter]
    fn after(&self) -> Option<Node> {
        self.0.after.clone().map(Node)
    }

    /// Why it changed: `asked`, `above` (a node above it was deleted), `keep_while` (a condition that it lived on no
    /// longer holds) or `ended` (its presence has ended, or its time is over).
    #[getter]
    fn cause(&self) -> &'static str {
        cause_name(self.0.cause)
    }

    fn __repr__(this: &Bound<'_, Self>) -> PyResult<String> {
        describe(this.as_any(), &["path", "before", "after", "cause"])
    }
}

/// The nodes that match a pattern, one by one: pairs of a path and a node.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct Walk(Mutex<std::vec::IntoIter<(String, NodeInfo)>>);

impl From<Vec<(String, NodeInfo)>> for Walk {
    fn from(nodes: Vec<(String, NodeInfo)>) -> Self {
        Self(Mutex::new(nodes.into_iter()))
    }
}

#[pymethods]
impl Walk {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self) -> Option<(String, Node)> {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).next();
        next.map(|(path, node)| (path, Node(node)))
    }
}

/// Nodes by path.
pub fn nodes_by_path(py: Python<'_>, nodes: Vec<(String, NodeInfo)>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (path, node) in nodes {
        dict.set_item(path, Node(node))?;
    }
    Ok(dict)
}

/// Payloads by path.
pub fn payloads_by_path(py: Python<'_>, payloads: Vec<(String, drumlin::Payload)>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (path, payload) in payloads {
        dict.set_item(path, from_payload(py, &payload)?)?;
    }
    Ok(dict)
}
