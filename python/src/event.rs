//! Events, as reported by triggers and the change feed, and the feed itself.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use drumlin::{Action, Error, NodeEvent, Seq, TableAction, TableEvent, Timestamp, TriggerCall, TriggerEvent};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;

use crate::call::{detached, wait};
use crate::errors::raise;
use crate::node::{Node, cause_name};
use crate::open_store::Store;
use crate::payload::from_payload;
use crate::reports::{describe, time};

#[derive(PartialEq)]
enum Happened {
    Node(NodeEvent),
    Table(TableEvent),
    Resync,
}

/// An event of a node or a table.
#[pyclass(frozen, eq, module = "drumlin")]
#[derive(PartialEq)]
pub struct Event {
    happened: Happened,
    seq: Seq,
    time: Timestamp,
    trigger: Option<String>,
}

impl From<&TriggerCall> for Event {
    fn from(call: &TriggerCall) -> Self {
        let happened = match &call.event {
            TriggerEvent::Node(event) => Happened::Node(event.clone()),
            TriggerEvent::Resync => Happened::Resync,
        };
        Self { happened, seq: call.seq, time: call.time, trigger: Some(call.trigger.clone()) }
    }
}

impl Event {
    fn node(&self) -> Option<&NodeEvent> {
        match &self.happened {
            Happened::Node(event) => Some(event),
            _ => None,
        }
    }
}

#[pymethods]
impl Event {
    /// The path of the node or table; empty for `resync`.
    #[getter]
    fn path(&self) -> &str {
        match &self.happened {
            Happened::Node(event) => &event.path,
            Happened::Table(event) => &event.path,
            Happened::Resync => "",
        }
    }

    /// The kind of event. For a node: `create`, `update`, `delete`. For a table: `version` (it got a new version),
    /// `rows` (rows were written by key, without a version), `delete_versions`, `drop`, `undrop`, `copy` at the path of
    /// the copy, `move_away` at the old path of a moved table and `move` at the new one, `purge` (rows were erased from
    /// all versions), `metadata` (a version's metadata was changed). For a trigger also `resync`: earlier events are no
    /// longer known, so look at everything.
    #[getter]
    fn action(&self) -> &'static str {
        match &self.happened {
            Happened::Node(event) => match event.action {
                Action::Create => "create",
                Action::Update => "update",
                Action::Delete => "delete",
            },
            Happened::Table(event) => match event.action {
                TableAction::Version(_) => "version",
                TableAction::DeleteVersions => "delete_versions",
                TableAction::Drop => "drop",
                TableAction::Undrop => "undrop",
                TableAction::Copy => "copy",
                TableAction::Move => "move",
                TableAction::MoveAway => "move_away",
                TableAction::Purge => "purge",
                TableAction::Metadata => "metadata",
                TableAction::Rows => "rows",
            },
            Happened::Resync => "resync",
        }
    }

    /// What made a table's new version: see `Version.kind`.
    #[getter]
    fn kind(&self) -> Option<&'static str> {
        match &self.happened {
            Happened::Table(TableEvent { action: TableAction::Version(kind), .. }) => Some(kind.name()),
            _ => None,
        }
    }

    /// The node right before the event; None if it did not exist.
    #[getter]
    fn before(&self) -> Option<Node> {
        self.node().and_then(|event| event.before.clone()).map(Node)
    }

    /// The node right after the event; None if it was deleted.
    #[getter]
    fn after(&self) -> Option<Node> {
        self.node().and_then(|event| event.after.clone()).map(Node)
    }

    /// The node's payload after the event.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let payload = self.node().and_then(|event| event.after.as_ref()?.payload.as_ref());
        payload.map(|payload| from_payload(py, payload)).transpose()
    }

    /// The number of the commit.
    #[getter]
    fn seq(&self) -> u64 {
        self.seq.0
    }

    /// The time of the commit, in UTC.
    #[getter]
    fn time(&self) -> SystemTime {
        time(self.time)
    }

    /// Why the node changed: `asked`, `above`, `keep_while` or `ended`.
    #[getter]
    fn cause(&self) -> Option<&'static str> {
        self.node().map(|event| cause_name(event.cause))
    }

    /// The name of the trigger that is called; None in a change feed.
    #[getter]
    fn trigger(&self) -> Option<&str> {
        self.trigger.as_deref()
    }

    fn __repr__(this: &Bound<'_, Self>) -> PyResult<String> {
        let fields: &[&str] = match this.get().happened {
            Happened::Node(_) => &["path", "action", "payload", "cause", "seq"],
            Happened::Table(_) => &["path", "action", "kind", "seq"],
            Happened::Resync => &["action", "seq", "trigger"],
        };
        describe(this.as_any(), fields)
    }
}

/// One commit of a change feed.
#[pyclass(frozen, module = "drumlin")]
pub struct Commit(drumlin::Commit);

#[pymethods]
impl Commit {
    /// The number of the commit.
    #[getter]
    fn seq(&self) -> u64 {
        self.0.seq().0
    }

    /// The time of the commit, in UTC.
    #[getter]
    fn time(&self) -> SystemTime {
        time(self.0.time())
    }

    /// The messages given with it, in order: usually one or none, but calls of several threads may be committed
    /// together.
    #[getter]
    fn messages(&self) -> Vec<String> {
        self.0.messages().map(str::to_owned).collect()
    }

    /// The events of the commit, in order.
    #[getter]
    fn events(&self, py: Python<'_>) -> PyResult<Vec<Event>> {
        let (seq, time) = (self.0.seq(), self.0.time());
        let event = |event| {
            let happened = match event {
                drumlin::Event::Node(event) => Happened::Node(event),
                drumlin::Event::Table(event) => Happened::Table(event),
            };
            Event { happened, seq, time, trigger: None }
        };
        Ok(detached(py, || self.0.events())?.into_iter().map(event).collect())
    }

    fn __repr__(this: &Bound<'_, Self>) -> PyResult<String> {
        describe(this.as_any(), &["seq", "time", "messages"])
    }
}

/// A time span: seconds, or a timedelta.
#[derive(FromPyObject)]
pub enum Span {
    Seconds(f64),
    Delta(Duration),
}

impl Span {
    /// The span; fails if it is not 0 or more.
    pub fn duration(self) -> PyResult<Duration> {
        let seconds = match self {
            Self::Seconds(seconds) => seconds,
            Self::Delta(delta) => return Ok(delta),
        };
        let bad = |_| raise(Error::invalid(format!("timeout={seconds}: expected a number of seconds, 0 or more")));
        Duration::try_from_secs_f64(seconds).map_err(bad)
    }
}

/// The commits after a given one, in order, including future ones: an iterator that waits for the next.
///
/// While one thread waits, another one gets an error that the feed is in use.
#[pyclass(frozen, module = "drumlin")]
pub struct ChangeFeed {
    /// Taken out while it waits. Dropped before the store.
    feed: Mutex<Option<drumlin::ChangeFeed>>,
    store: Py<Store>,
}

impl ChangeFeed {
    pub fn new(feed: drumlin::ChangeFeed, store: Py<Store>) -> Self {
        Self { feed: Mutex::new(Some(feed)), store }
    }
}

#[pymethods]
impl ChangeFeed {
    /// The number of the last commit returned; the next one follows it.
    #[getter]
    fn seq(&self) -> PyResult<u64> {
        let feed = self.feed.lock().unwrap_or_else(PoisonError::into_inner);
        feed.as_ref().map(|feed| feed.seq().0).ok_or_else(in_use)
    }

    /// The next commit, or None if none comes within `timeout`: seconds or a timedelta; None waits without limit.
    #[pyo3(signature = (timeout=None))]
    fn next(&self, py: Python<'_>, timeout: Option<Span>) -> PyResult<Option<Commit>> {
        let timeout = timeout.map(Span::duration).transpose()?;
        let taken = self.feed.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut feed = taken.ok_or_else(in_use)?;
        let came = wait(py, timeout, |step| feed.next(Some(step)));
        *self.feed.lock().unwrap_or_else(PoisonError::into_inner) = Some(feed);
        Ok(came?.map(Commit))
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Commit>> {
        self.next(py, None)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.store)
    }
}

fn in_use() -> PyErr {
    raise(Error::invalid("the feed is in use by another thread"))
}
