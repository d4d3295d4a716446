//! The rows in which versions of a table differ, and the feed of what commits change in one.

use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use drumlin::{Cancel, DiffOptions, Error, FeedPlace, Filter, FollowFrom, FollowOptions};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;

use crate::call::{detached, long, wait};
use crate::errors::raise;
use crate::event::Span;
use crate::open_store::Store;
use crate::options::{When, as_of};
use crate::reports::time;
use crate::result::{Batches, Prepared, Stream};

/// The rows in which versions differ, as a stream.
pub fn diff(
    py: Python<'_>,
    table: &drumlin::Table,
    since: When,
    until: Option<When>,
    columns: Option<Vec<String>>,
    each_version: bool,
) -> PyResult<Stream> {
    let cancel = Cancel::default();
    let options = DiffOptions { columns, each_version, cancel: cancel.clone() };
    let (since, until) = (as_of(Some(since)), as_of(until));
    let diff = long(py, std::slice::from_ref(&cancel), || table.diff(&since, &until, &options))?;
    Ok(Stream::new(diff.schema(), Prepared { scan: Box::new(diff), cancel }))
}

/// Follows a table from `since` on: now, if it is not given.
pub fn follow(
    py: Python<'_>,
    table: &drumlin::Table,
    store: Py<Store>,
    since: Option<When>,
    filter: Option<&str>,
) -> PyResult<RowFeed> {
    let from = match since {
        None => FollowFrom::Now,
        Some(When::Snapshot(text)) => FollowFrom::parse(&text).map_err(raise)?,
        since => FollowFrom::After(as_of(since)),
    };
    let options = FollowOptions { filter: filter.map(Filter::parse).transpose().map_err(raise)?, ..Default::default() };
    let feed = detached(py, || table.follow(&from, &options))?;
    Ok(RowFeed { place: Mutex::new(feed.place()), feed: Mutex::new(Some(feed)), store })
}

/// What commits change in a table: see `drumlin.RowFeed`.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct RowFeed {
    /// Taken out while it waits. Dropped before the store.
    feed: Mutex<Option<drumlin::RowFeed>>,
    /// Where it was when it last came back.
    place: Mutex<FeedPlace>,
    store: Py<Store>,
}

#[pymethods]
impl RowFeed {
    /// Where it is, as text.
    #[getter]
    fn place(&self) -> String {
        self.place.lock().unwrap_or_else(PoisonError::into_inner).to_string()
    }

    /// The next rows, or None if none come within `timeout`; None waits without limit.
    #[pyo3(signature = (timeout=None))]
    fn next(&self, py: Python<'_>, timeout: Option<Span>) -> PyResult<Option<RowChanges>> {
        let timeout = timeout.map(Span::duration).transpose()?;
        let taken = self.feed.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut feed = taken.ok_or_else(|| raise(Error::invalid("the feed is in use by another thread")))?;
        let came = wait(py, timeout, |step| {
            let came = feed.next(Some(step))?;
            came.map(|changes| Ok(RowChanges { batch: changes.to_batch()?, changes })).transpose()
        });
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = feed.place();
        *self.feed.lock().unwrap_or_else(PoisonError::into_inner) = Some(feed);
        came
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.store)
    }
}

/// Rows that one commit changed: see `drumlin.RowChanges`.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct RowChanges {
    changes: drumlin::RowChanges,
    batch: arrow::array::RecordBatch,
}

#[pymethods]
impl RowChanges {
    #[getter]
    fn version(&self) -> u64 {
        self.changes.version.0
    }

    #[getter]
    fn kind(&self) -> &'static str {
        self.changes.kind.name()
    }

    #[getter]
    fn time(&self) -> SystemTime {
        time(self.changes.time)
    }

    #[getter]
    fn place(&self) -> String {
        self.changes.place.to_string()
    }

    /// The rows, with what happened to each.
    #[getter]
    fn rows(&self) -> Batches {
        self.batch.clone().into()
    }
}
