//! The feed of what commits change in a table, and its followers.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use drumlin::{Error, FeedPlace, Filter, FollowFrom, FollowOptions, RowEvent, RowTriggerFn, Timestamp};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;

use crate::call::{detached, wait};
use crate::errors::raise;
use crate::event::Span;
use crate::open_store::Store;
use crate::options::{When, as_of};
use crate::reports::{describe, record, time};
use crate::result::Batches;
use crate::table::Table;

/// Follows a table from `since` on: now, if it is not given. With a `name`, as a follower for which versions are kept for
/// `keep` microseconds.
#[pyfunction]
#[pyo3(signature = (table, since, filter, name, keep))]
pub fn follow(
    py: Python<'_>,
    table: &Table,
    since: Option<When>,
    filter: Option<&str>,
    name: Option<String>,
    keep: Option<u64>,
) -> PyResult<RowFeed> {
    let from = match since {
        None => FollowFrom::Now,
        Some(When::Snapshot(text)) => FollowFrom::parse(&text).map_err(raise)?,
        since => FollowFrom::After(as_of(since)),
    };
    let options = options(filter, name, keep)?;
    let feed = detached(py, || table.core.follow(&from, &options))?;
    Ok(RowFeed { place: Mutex::new(feed.place()), feed: Mutex::new(Some(feed)), store: table.store.clone_ref(py) })
}

fn options(filter: Option<&str>, name: Option<String>, keep: Option<u64>) -> PyResult<FollowOptions> {
    let filter = filter.map(Filter::parse).transpose().map_err(raise)?;
    let options = FollowOptions { filter, follower: name, ..FollowOptions::default() };
    Ok(FollowOptions { keep: keep.map_or(options.keep, Duration::from_micros), ..options })
}

/// Calls `callback` for what commits change in a table; with a `name`, durably. Returns the trigger's name.
#[pyfunction]
#[pyo3(signature = (table, callback, filter, name, keep))]
pub fn on_rows(
    py: Python<'_>,
    table: &Table,
    callback: Py<PyAny>,
    filter: Option<&str>,
    name: Option<String>,
    keep: Option<u64>,
) -> PyResult<String> {
    let options = options(filter, name, keep)?;
    let callback = table.store.get().callbacks.add(callback);
    let function: RowTriggerFn = Arc::new(move |event| {
        let changes = match event {
            RowEvent::Changes(changes) => RowChanges::try_from((**changes).clone()).map_err(|e| e.to_string())?,
            RowEvent::Resync(place) => RowChanges::resync(*place),
        };
        callback.call(changes)
    });
    detached(py, || table.core.on(&options, function))
}

/// Ends a trigger on rows of a table; a durable one for good.
#[pyfunction]
pub fn off_rows(py: Python<'_>, table: &Table, name: &str) -> PyResult<()> {
    detached(py, || table.core.off(name))
}

/// The followers of a table.
#[pyfunction]
pub fn followers(py: Python<'_>, table: &Table) -> PyResult<Vec<Follower>> {
    let info = |info: drumlin::FollowerInfo| Follower {
        name: info.name,
        place: info.place.to_string(),
        version: info.place.version().map(|version| version.0),
        keep: info.keep,
    };
    Ok(detached(py, || table.core.followers())?.into_iter().map(info).collect())
}

/// Removes a follower of a table.
#[pyfunction]
pub fn drop_follower(py: Python<'_>, table: &Table, name: &str) -> PyResult<()> {
    detached(py, || table.core.drop_follower(name))
}

record! {
    /// A follower of a table.
    Follower {
        /// Its name.
        name: String,
        /// Up to where it is done.
        place: String,
        /// The last version of which it has all; None if it has none.
        version: Option<u64>,
        /// How long versions that it has not read are kept for it.
        keep: Duration,
    } {}
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

impl RowFeed {
    fn taken(&self) -> PyResult<drumlin::RowFeed> {
        let taken = self.feed.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(|| raise(Error::invalid("the feed is in use by another thread")))
    }

    fn put_back(&self, feed: drumlin::RowFeed) {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = feed.place();
        *self.feed.lock().unwrap_or_else(PoisonError::into_inner) = Some(feed);
    }
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
        let mut feed = self.taken()?;
        let came = wait(py, timeout, |step| feed.next(Some(step))?.map(RowChanges::try_from).transpose());
        self.put_back(feed);
        came
    }

    /// Notes that all that was returned has been dealt with.
    fn acknowledge(&self, py: Python<'_>) -> PyResult<()> {
        let mut feed = self.taken()?;
        let done = detached(py, || feed.acknowledge());
        self.put_back(feed);
        done
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.store)
    }
}

/// Rows that one commit changed: see `drumlin.RowChanges`.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct RowChanges {
    version: u64,
    kind: &'static str,
    time: Timestamp,
    place: FeedPlace,
    batch: RecordBatch,
}

impl TryFrom<drumlin::RowChanges> for RowChanges {
    type Error = Error;

    fn try_from(changes: drumlin::RowChanges) -> Result<Self, Error> {
        let drumlin::RowChanges { version, kind, time, place, .. } = changes;
        Ok(Self { version: version.0, kind: kind.name(), time, place, batch: changes.to_batch()? })
    }
}

impl RowChanges {
    /// Nothing that was changed, in place of changes that are no longer known.
    fn resync(place: FeedPlace) -> Self {
        let version = place.version().map_or(0, |version| version.0);
        let time = place.since().unwrap_or_default();
        Self { version, kind: "resync", time, place, batch: RecordBatch::new_empty(Arc::new(Schema::empty())) }
    }
}

#[pymethods]
impl RowChanges {
    #[getter]
    fn version(&self) -> u64 {
        self.version
    }

    #[getter]
    fn kind(&self) -> &'static str {
        self.kind
    }

    #[getter]
    fn time(&self) -> SystemTime {
        time(self.time)
    }

    #[getter]
    fn place(&self) -> String {
        self.place.to_string()
    }

    /// The rows, with what happened to each.
    #[getter]
    fn rows(&self) -> Batches {
        self.batch.clone().into()
    }
}
