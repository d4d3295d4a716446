//! Replicas, promotion, and copies of whole stores.

use std::sync::{Arc, Mutex, PoisonError};

use drumlin::{CloneAt, PromoteOptions, ReplicateFrom, ReplicateOptions, Seq};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::call::with_progress;
use crate::errors::raise;
use crate::open_store::Store;
use crate::options::{ModeName, Settings, When, open, timestamp};
use crate::reports::{describe, record};

record! {
    /// What was brought over to a replica, or to a copy of a store.
    ReplicateReport {
        /// The number of the last commit that it has.
        seq: u64,
        /// How many commits were added one by one.
        commits: u64,
        /// How often the newest state was taken over as a whole, because the source no longer had what led to it.
        whole: u64,
        /// The number of copied blocks.
        blocks: u64,
        /// Their bytes.
        bytes: u64,
    } {}
}

record! {
    /// The result of promoting a replica.
    PromoteReport {
        /// The id that the store has now, in hexadecimal.
        store: String,
        /// The number of the last commit that it has of its source.
        seq: u64,
        /// The source that was ended. None if it was given up: it may have later commits, and may still be written.
        ended: Option<String>,
    } {}
}

record! {
    /// The result of copying a whole store.
    CloneReport {
        /// The id of the copy, in hexadecimal.
        store: String,
        /// What was copied; its ``seq`` is the last commit that both stores have.
        copied: ReplicateReport,
    } {}
}

impl From<drumlin::ReplicateReport> for ReplicateReport {
    fn from(report: drumlin::ReplicateReport) -> Self {
        let drumlin::ReplicateReport { seq, entries, whole, blocks, bytes } = report;
        Self { seq, commits: entries, whole, blocks, bytes }
    }
}

/// How a replica is kept: whether once, the pause between looks in microseconds, with a lease, how long it keeps what leaves it, in
/// microseconds, and with a sweep.
type Kept = (bool, u64, bool, Option<u64>, bool);

fn replicate(
    py: Python<'_>,
    source: ReplicateFrom<'_>,
    target: &str,
    options: ReplicateOptions,
    caught_up: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<ReplicateReport> {
    let raised: Arc<Mutex<Option<PyErr>>> = Arc::default();
    let result = with_progress(py, progress, |task| {
        let (cancel, raised) = (task.cancel.clone(), raised.clone());
        let tell = caught_up.map(|callback| {
            let tell = move |report: &drumlin::ReplicateReport| {
                let report = ReplicateReport::from(report.clone());
                if let Err(error) = Python::attach(|py| callback.call1(py, (report,))) {
                    *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    cancel.cancel();
                }
            };
            Arc::new(tell) as drumlin::CaughtUp
        });
        drumlin::replicate(source, target, &ReplicateOptions { caught_up: tell, task, ..options })
    });
    let raised = raised.lock().unwrap_or_else(PoisonError::into_inner).take();
    raised.map_or(result, Err).map(ReplicateReport::from)
}

/// Keeps a replica of the store at `source`.
#[pyfunction]
#[pyo3(signature = (source, target, kept, source_settings, target_settings, caught_up=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
pub fn replicate_at(
    py: Python<'_>,
    source: &str,
    target: &str,
    kept: Kept,
    source_settings: Settings,
    target_settings: Settings,
    caught_up: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<ReplicateReport> {
    let options = options(kept, source_settings, target_settings)?;
    replicate(py, source.into(), target, options, caught_up, progress)
}

/// Keeps a replica of a store that is open.
#[pyfunction]
#[pyo3(signature = (store, target, kept, target_settings, caught_up=None, progress=None))]
pub fn replicate_open(
    py: Python<'_>,
    store: &Store,
    target: &str,
    kept: Kept,
    target_settings: Settings,
    caught_up: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<ReplicateReport> {
    let options = ReplicateOptions { target: open(ModeName::create(), target_settings)?, ..kept_so(kept) };
    replicate(py, (&*store.core).into(), target, options, caught_up, progress)
}

/// Makes a replica, or a store that was ended, a store of its own.
#[pyfunction]
#[pyo3(signature = (store, lost, source, settings, source_settings, progress=None))]
pub fn promote(
    py: Python<'_>,
    store: &str,
    lost: bool,
    source: Option<String>,
    settings: Settings,
    source_settings: Settings,
    progress: Option<Py<PyAny>>,
) -> PyResult<PromoteReport> {
    let replicate = options((true, 0, false, None, false), source_settings, settings)?;
    let report = with_progress(py, progress, |task| {
        drumlin::promote(store, &PromoteOptions { lost, source, replicate: ReplicateOptions { task, ..replicate } })
    })?;
    Ok(PromoteReport { store: format!("{:032x}", report.store), seq: report.seq, ended: report.ended })
}

/// Copies a whole store.
#[pyfunction]
#[pyo3(signature = (source, target, when, source_settings, target_settings, progress=None))]
pub fn clone(
    py: Python<'_>,
    source: &str,
    target: &str,
    when: Option<When>,
    source_settings: Settings,
    target_settings: Settings,
    progress: Option<Py<PyAny>>,
) -> PyResult<CloneReport> {
    let at = match when {
        None => CloneAt::Newest,
        Some(When::Version(commit)) => CloneAt::Commit(Seq(commit)),
        Some(When::Back(back)) => {
            return Err(PyValueError::new_err(format!(
                "as_of={back}: expected a commit's number, which is 0 or more, or a time"
            )));
        }
        Some(When::Snapshot(text)) => CloneAt::parse(&text).map_err(raise)?,
        Some(When::Time(time)) => CloneAt::Time(timestamp(time)),
    };
    let options = options((true, 0, true, None, false), source_settings, target_settings)?;
    let report = with_progress(py, progress, |task| {
        drumlin::clone_store(source, target, at, &ReplicateOptions { task, ..options })
    })?;
    Ok(CloneReport { store: format!("{:032x}", report.store), copied: report.copied.into() })
}

fn options(kept: Kept, source: Settings, target: Settings) -> PyResult<ReplicateOptions> {
    let mode = ModeName::create;
    let (source, target) = (open(mode(), source)?, open(mode(), target)?);
    Ok(ReplicateOptions { source, target, ..kept_so(kept) })
}

fn kept_so((once, poll_micros, lease, keep_log_micros, sweep): Kept) -> ReplicateOptions {
    ReplicateOptions { once, poll_micros, lease, keep_log_micros, sweep, ..ReplicateOptions::default() }
}
