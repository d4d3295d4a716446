//! The store's calls, one for one.

use std::collections::BTreeMap;

use drumlin::base::Version as VersionNumber;
use drumlin::catalog::Retention;
use drumlin::filter::Filter;
use drumlin::store::{
    CheckpointOptions, Frame, Missing, ReadOptions, ReclaimOptions, TableOptions, UpdateOptions, WriteOptions,
};
use drumlin::table::{PlanOptions, ScanOptions};
use pyo3::prelude::*;
use pyo3_arrow::PySchema;

use crate::call::{detached, with_progress};
use crate::errors::raise;
use crate::input::Input;
use crate::options::{PayloadText, When, retention};
use crate::reports::{
    CheckpointReport, DeleteReport, DropReport, Node, ReclaimReport, Snapshot, StoreStat, TableStat, TrashItem,
    VacuumPlan, VerifyReport, Version,
};
use crate::result::Reading;
use crate::schema::Schema;

/// An open store.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct Store(pub drumlin::Store);

fn plan_options(dead_share_min: Option<f64>, budget: Option<f64>) -> PlanOptions {
    let default = PlanOptions::default();
    PlanOptions {
        dead_share_min: dead_share_min.unwrap_or(default.dead_share_min),
        budget: budget.unwrap_or(default.budget),
        ..default
    }
}

fn scan_options(
    columns: Option<Vec<String>>,
    filter: Option<&str>,
    limit: Option<u64>,
    tail: Option<u64>,
    native: bool,
) -> PyResult<ScanOptions> {
    let filter = filter.map(Filter::parse).transpose().map_err(raise)?;
    Ok(ScanOptions { columns, filter, limit, tail, native, ..ScanOptions::default() })
}

#[pymethods]
impl Store {
    #[getter]
    fn uri(&self) -> &str {
        self.0.uri()
    }

    fn seq(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(detached(py, || self.0.seq())?.0)
    }

    fn refresh(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(detached(py, || self.0.refresh())?.0)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.0.close())
    }

    fn create(&self, py: Python<'_>, path: &str, schema: PySchema, sort: Vec<String>) -> PyResult<Version> {
        let schema = schema.into_inner();
        Ok(detached(py, || self.0.create(path, schema, TableOptions { sort }))?.into())
    }

    #[pyo3(signature = (frames, metadata=None, sort=None, progress=None))]
    fn write_many(
        &self,
        py: Python<'_>,
        frames: Vec<(String, Input)>,
        metadata: Option<String>,
        sort: Option<Vec<String>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Vec<Version>> {
        let versions = with_progress(py, progress, |task| {
            let frames = frames.into_iter().map(|(path, input)| (path, Frame::from(input))).collect();
            self.0.write_many(frames, &WriteOptions { metadata, sort, task })
        })?;
        Ok(versions.into_iter().map(Version::from).collect())
    }

    #[pyo3(signature = (frames, metadata=None, progress=None))]
    fn append_many(
        &self,
        py: Python<'_>,
        frames: Vec<(String, Input)>,
        metadata: Option<String>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Vec<Version>> {
        let versions = with_progress(py, progress, |task| {
            let frames = frames.into_iter().map(|(path, input)| (path, Frame::from(input))).collect();
            self.0.append_many(frames, &WriteOptions { metadata, sort: None, task })
        })?;
        Ok(versions.into_iter().map(Version::from).collect())
    }

    #[pyo3(signature = (path, frame, metadata=None, progress=None))]
    fn update(
        &self,
        py: Python<'_>,
        path: &str,
        frame: Input,
        metadata: Option<String>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Version> {
        let options = |task| WriteOptions { metadata, sort: None, task };
        Ok(with_progress(py, progress, |task| self.0.update(path, frame, &options(task)))?.into())
    }

    #[pyo3(signature = (path, filter, metadata=None, progress=None))]
    fn delete_rows(
        &self,
        py: Python<'_>,
        path: &str,
        filter: &str,
        metadata: Option<String>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<DeleteReport> {
        let options = |task| UpdateOptions { metadata, task };
        Ok(with_progress(py, progress, |task| self.0.delete_rows(path, filter, &options(task)))?.into())
    }

    #[pyo3(signature = (paths, as_of=None, columns=None, filter=None, limit=None, tail=None, native=false))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn read_many(
        &self,
        py: Python<'_>,
        paths: Vec<String>,
        as_of: Option<When>,
        columns: Option<Vec<String>>,
        filter: Option<&str>,
        limit: Option<u64>,
        tail: Option<u64>,
        native: bool,
    ) -> PyResult<Vec<Reading>> {
        let scan = scan_options(columns, filter, limit, tail, native)?;
        let options = ReadOptions { as_of: crate::options::as_of(as_of), scan };
        detached(py, || Reading::of(&self.0, paths, &options))
    }

    #[pyo3(signature = (path, as_of=None))]
    fn schema(&self, py: Python<'_>, path: &str, as_of: Option<When>) -> PyResult<Schema> {
        let when = crate::options::as_of(as_of);
        Ok(Schema(detached(py, || self.0.schema(path, &when))?))
    }

    fn versions(&self, py: Python<'_>, path: &str) -> PyResult<Vec<Version>> {
        Ok(detached(py, || self.0.versions(path))?.into_iter().map(Version::from).collect())
    }

    fn delete_versions(&self, py: Python<'_>, versions: BTreeMap<String, Vec<u64>>) -> PyResult<()> {
        let number = |versions: Vec<u64>| versions.into_iter().map(VersionNumber).collect();
        let versions: Vec<_> = versions.into_iter().map(|(path, versions)| (path, number(versions))).collect();
        detached(py, || self.0.delete_versions(&versions))
    }

    fn snapshot(&self, py: Python<'_>, name: &str, pattern: &str) -> PyResult<Snapshot> {
        Ok(detached(py, || self.0.snapshot(name, pattern))?.into())
    }

    fn drop_snapshot(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        detached(py, || self.0.drop_snapshot(name))
    }

    fn snapshots(&self, py: Python<'_>) -> PyResult<Vec<Snapshot>> {
        Ok(detached(py, || self.0.snapshots())?.into_iter().map(Snapshot::from).collect())
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
        detached(py, || self.0.set_retention(path, retention))
    }

    /// `(keep_last, keep_micros)`; both are `None` if all versions are kept.
    fn retention(&self, py: Python<'_>, path: &str) -> PyResult<(Option<u64>, Option<u64>)> {
        Ok(match detached(py, || self.0.retention(path))? {
            Retention::KeepAll => (None, None),
            Retention::KeepLast(n) => (Some(n), None),
            Retention::KeepMicros(micros) => (None, Some(micros)),
        })
    }

    fn drop(&self, py: Python<'_>, paths: Vec<String>, missing_ok: bool) -> PyResult<DropReport> {
        let missing = if missing_ok { Missing::Ignore } else { Missing::Refuse };
        Ok(detached(py, || self.0.drop(&paths, missing))?.into())
    }

    fn trash(&self, py: Python<'_>) -> PyResult<Vec<TrashItem>> {
        Ok(detached(py, || self.0.trash())?.into_iter().map(TrashItem::from).collect())
    }

    #[pyo3(signature = (path, to=None))]
    fn undrop(&self, py: Python<'_>, path: &str, to: Option<&str>) -> PyResult<()> {
        detached(py, || self.0.undrop(path, to))
    }

    fn put(&self, py: Python<'_>, path: &str, payload: PayloadText) -> PyResult<()> {
        let payload = payload.parse()?;
        detached(py, || self.0.put(path, payload))
    }

    fn get(&self, py: Python<'_>, path: &str) -> PyResult<Option<PayloadText>> {
        Ok(detached(py, || self.0.get(path))?.map(PayloadText::from))
    }

    fn exists(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        detached(py, || self.0.exists(path))
    }

    fn delete(&self, py: Python<'_>, pattern: &str) -> PyResult<u64> {
        detached(py, || self.0.delete(pattern))
    }

    fn list(&self, py: Python<'_>, pattern: &str) -> PyResult<Vec<Node>> {
        Ok(detached(py, || self.0.list(pattern))?.into_iter().map(Node::from).collect())
    }

    #[pyo3(signature = (dead_share_min=None, budget=None))]
    fn vacuum_plan(
        &self,
        py: Python<'_>,
        dead_share_min: Option<f64>,
        budget: Option<f64>,
    ) -> PyResult<Vec<VacuumPlan>> {
        let options = plan_options(dead_share_min, budget);
        Ok(detached(py, || self.0.vacuum_plan(&options))?.into_iter().map(VacuumPlan::from).collect())
    }

    #[pyo3(signature = (dead_share_min=None, budget=None, progress=None))]
    fn checkpoint(
        &self,
        py: Python<'_>,
        dead_share_min: Option<f64>,
        budget: Option<f64>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<CheckpointReport> {
        let plan = plan_options(dead_share_min, budget);
        Ok(with_progress(py, progress, |task| self.0.checkpoint(&CheckpointOptions { plan, task }))?.into())
    }

    #[pyo3(signature = (grace_micros, progress=None))]
    fn reclaim(&self, py: Python<'_>, grace_micros: u64, progress: Option<Py<PyAny>>) -> PyResult<ReclaimReport> {
        Ok(with_progress(py, progress, |task| self.0.reclaim(&ReclaimOptions { grace_micros, task }))?.into())
    }

    #[pyo3(signature = (progress=None))]
    fn verify(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<VerifyReport> {
        Ok(with_progress(py, progress, |task| self.0.verify(&task))?.into())
    }

    fn stat(&self, py: Python<'_>) -> PyResult<StoreStat> {
        Ok(detached(py, || self.0.stat())?.into())
    }

    fn table_stat(&self, py: Python<'_>, path: &str) -> PyResult<TableStat> {
        Ok(detached(py, || self.0.table_stat(path))?.into())
    }
}
