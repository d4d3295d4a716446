//! The store's calls, one to one.

use drumlin::{CheckpointOptions, CopyToOptions, Filter, ReclaimOptions, Retention, Seq, Tables as _, VerifyOptions};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;

use crate::call::{detached, with_progress};
use crate::dataset::Dataset;
use crate::errors::raise;
use crate::event::ChangeFeed;
use crate::figures::StoreStat;
use crate::metrics;
use crate::open_store::Store;
use crate::options::{missing, plan_options, retention};
use crate::pattern::PatternLike;
use crate::plans::VacuumPlan;
use crate::purge::{PurgePlan, PurgeReceipt};
use crate::reports::{CheckpointReport, CopyToReport, DropReport, ReclaimReport, Snapshot, TrashItem, VerifyReport};
use crate::tables::Tables;
use crate::transaction::Transaction;
use crate::ui::Ui;

#[pymethods]
impl Store {
    #[getter]
    fn uri(&self) -> &str {
        self.core.uri()
    }

    fn seq(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(detached(py, || self.core.seq())?.0)
    }

    fn refresh(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(detached(py, || self.core.refresh())?.0)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.core.close())?;
        self.callbacks.clear();
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.callbacks.traverse(&visit)
    }

    fn __clear__(&self) {
        self.callbacks.clear();
    }

    fn tables(this: &Bound<'_, Self>) -> Tables {
        Tables::new(this.get().core.place(), this.clone().unbind())
    }

    /// The data set that was described.
    fn dataset(this: &Bound<'_, Self>, described: &[u8]) -> PyResult<Dataset> {
        let store = &this.get().core;
        let core = detached(this.py(), || drumlin::Dataset::described(store, described))?;
        Ok(Dataset::new(core, this.clone().unbind()))
    }

    /// The settings of its bucket's client that are no secrets.
    fn storage_options(&self) -> std::collections::BTreeMap<String, String> {
        self.told.clone()
    }

    /// The same operations, each of which says `message` with its commit.
    fn with_message(this: &Bound<'_, Self>, message: &str) -> PyResult<Tables> {
        let store = &this.get().core;
        let core = detached(this.py(), || store.with_message(message))?;
        Ok(Tables::new(core.place(), this.clone().unbind()))
    }

    #[pyo3(signature = (read_only, message=None))]
    fn transaction(this: &Bound<'_, Self>, read_only: bool, message: Option<&str>) -> PyResult<Transaction> {
        let core = &this.get().core;
        let begin = || match (read_only, message) {
            (true, _) => drumlin::Transaction::read_only(core),
            (false, Some(message)) => core.with_message(message)?.transaction(),
            (false, None) => core.transaction(),
        };
        Ok(Transaction::new(detached(this.py(), begin)?, this.clone().unbind()))
    }

    fn ui(&self, py: Python<'_>, port: u16, write: bool, open_browser: bool) -> PyResult<Ui> {
        Ui::serve(py, self, drumlin_ui::Options { port, write }, open_browser)
    }

    #[pyo3(signature = (name, pattern, versions=None, including=None))]
    fn snapshot(
        &self,
        py: Python<'_>,
        name: &str,
        pattern: &str,
        versions: Option<Vec<(String, u64)>>,
        including: Option<&str>,
    ) -> PyResult<Snapshot> {
        let numbered: Option<Vec<(String, drumlin::Version)>> =
            versions.map(|all| all.into_iter().map(|(path, number)| (path, drumlin::Version(number))).collect());
        let of = match (numbered.as_deref(), including) {
            (numbered, Some(other)) => drumlin::SnapshotOf::Including(other, numbered.unwrap_or_default()),
            (Some(numbered), None) => drumlin::SnapshotOf::Versions(numbered),
            (None, None) => drumlin::SnapshotOf::Newest(pattern),
        };
        Ok(detached(py, || self.core.snapshot(name, of))?.into())
    }

    fn drop_snapshot(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        detached(py, || self.core.drop_snapshot(name))
    }

    fn snapshots(&self, py: Python<'_>) -> PyResult<Vec<Snapshot>> {
        Ok(detached(py, || self.core.snapshots())?.into_iter().map(Snapshot::from).collect())
    }

    #[pyo3(signature = (path, keep_last=None, keep_micros=None, keep_all=false))]
    fn set_retention(
        &self,
        py: Python<'_>,
        path: &str,
        keep_last: Option<u64>,
        keep_micros: Option<u64>,
        keep_all: bool,
    ) -> PyResult<()> {
        let retention = retention(keep_last, keep_micros, keep_all);
        detached(py, || self.core.set_retention(path, retention))
    }

    /// `(keep_last, keep_micros)`; both are `None` if all versions are kept.
    fn retention(&self, py: Python<'_>, path: &str) -> PyResult<(Option<u64>, Option<u64>)> {
        Ok(match detached(py, || self.core.retention(path))? {
            Retention::KeepAll => (None, None),
            Retention::KeepLast(n) => (Some(n), None),
            Retention::KeepMicros(micros) => (None, Some(micros)),
        })
    }

    #[pyo3(signature = (paths, missing_ok, block_grace_micros, progress=None))]
    fn drop_and_reclaim(
        &self,
        py: Python<'_>,
        paths: Vec<String>,
        missing_ok: bool,
        block_grace_micros: Option<u64>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(DropReport, ReclaimReport)> {
        let missing = missing(missing_ok);
        let options = |task| ReclaimOptions { block_grace_micros, task, ..ReclaimOptions::default() };
        let done = with_progress(py, progress, |task| self.core.drop_and_reclaim(&paths, missing, &options(task)));
        done.map(|(dropped, reclaimed)| (dropped.into(), reclaimed.into()))
    }

    fn trash(&self, py: Python<'_>) -> PyResult<Vec<TrashItem>> {
        Ok(detached(py, || self.core.trash())?.into_iter().map(TrashItem::from).collect())
    }

    #[pyo3(signature = (path, to=None))]
    fn undrop(&self, py: Python<'_>, path: &str, to: Option<&str>) -> PyResult<()> {
        detached(py, || self.core.undrop(path, to))
    }

    /// The commits after `since`; without it, those from now on.
    #[pyo3(signature = (since=None))]
    fn changes(this: &Bound<'_, Self>, since: Option<u64>) -> PyResult<ChangeFeed> {
        let core = &this.get().core;
        let feed = detached(this.py(), || core.changes(since.map_or_else(|| core.seq(), |since| Ok(Seq(since)))?))?;
        Ok(ChangeFeed::new(feed, this.clone().unbind()))
    }

    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn copy_to(
        &self,
        py: Python<'_>,
        other: &Store,
        pattern: PatternLike,
        newest_only: bool,
        replace: bool,
        message: Option<&str>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<CopyToReport> {
        let copy = |task| {
            let options = CopyToOptions { newest_only, replace, task };
            let other = other.core.with_message(message.unwrap_or_default())?;
            self.core.copy_to(&other, pattern.0, &options)
        };
        Ok(with_progress(py, progress, copy)?.into())
    }

    #[pyo3(signature = (dead_share_min=None, budget=None))]
    fn vacuum_plan(&self, py: Python<'_>, dead_share_min: Option<f64>, budget: Option<f64>) -> PyResult<VacuumPlan> {
        let options = plan_options(dead_share_min, budget);
        Ok(detached(py, || self.core.vacuum_plan(&options))?.into())
    }

    #[pyo3(signature = (dead_share_min=None, budget=None, index_rows_min=None, progress=None))]
    fn checkpoint(
        &self,
        py: Python<'_>,
        dead_share_min: Option<f64>,
        budget: Option<f64>,
        index_rows_min: Option<u64>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<CheckpointReport> {
        let plan = plan_options(dead_share_min, budget);
        let index_rows_min = index_rows_min.unwrap_or_else(|| CheckpointOptions::default().index_rows_min);
        let options = |task| CheckpointOptions { plan, index_rows_min, task };
        Ok(with_progress(py, progress, |task| self.core.checkpoint(&options(task)))?.into())
    }

    #[pyo3(signature = (grace_micros, block_grace_micros, fence_idle_micros, audit, progress=None))]
    fn reclaim(
        &self,
        py: Python<'_>,
        grace_micros: u64,
        block_grace_micros: Option<u64>,
        fence_idle_micros: Option<u64>,
        audit: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<ReclaimReport> {
        let report = with_progress(py, progress, |task| {
            self.core.reclaim(&ReclaimOptions { grace_micros, block_grace_micros, fence_idle_micros, audit, task })
        });
        Ok(report?.into())
    }

    #[pyo3(signature = (pattern, filter, progress=None))]
    fn purge_plan(
        &self,
        py: Python<'_>,
        pattern: &str,
        filter: &str,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PurgePlan> {
        let filter = Filter::parse(filter).map_err(raise)?;
        Ok(with_progress(py, progress, |task| self.core.purge(pattern, &filter)?.plan(&task))?.into())
    }

    #[pyo3(signature = (pattern, filter, progress=None))]
    fn purge(
        &self,
        py: Python<'_>,
        pattern: &str,
        filter: &str,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PurgeReceipt> {
        let filter = Filter::parse(filter).map_err(raise)?;
        Ok(with_progress(py, progress, |task| self.core.purge(pattern, &filter)?.execute(&task))?.into())
    }

    #[pyo3(signature = (deep=true, progress=None))]
    fn verify(&self, py: Python<'_>, deep: bool, progress: Option<Py<PyAny>>) -> PyResult<VerifyReport> {
        Ok(with_progress(py, progress, |task| self.core.verify(&VerifyOptions { deep, task }))?.into())
    }

    fn metrics(&self, py: Python<'_>) -> PyResult<metrics::Metrics> {
        detached(py, || metrics::metrics(&self.core))
    }

    fn stat(&self, py: Python<'_>) -> PyResult<StoreStat> {
        Ok(detached(py, || self.core.stat())?.into())
    }
}
