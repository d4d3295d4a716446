//! The store's calls, one for one.

use std::io::{BufReader, BufWriter};

use drumlin::base::Seq;
use drumlin::catalog::{Field, Projection, Retention};
use drumlin::store::{
    AsOf, CheckpointOptions, ReadOptions, ReclaimOptions, TableOptions, TableView, UpdateOptions, WriteOptions,
};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call::{Detached, detached, glance, wait, with_progress};
use crate::callbacks::Callbacks;
use crate::errors::{all, answers, raise};
use crate::event::{ChangeFeed, Span};
use crate::figures::{StoreStat, TableStat};
use crate::file::File;
use crate::foreign::GivenSchema;
use crate::input::{Handed, Input, land, to_frames};
use crate::keyed::{self, Given, Keys, Lookup, Rows};
use crate::node::{Change, Changes, ListEntry, Node, Walk, nodes_by_path, payloads_by_path};
use crate::options::{Versions, When, lookup_options, missing, plan_options, retention, scan_options};
use crate::pattern::{ConditionLike, KeepWhile, PatternLike, put_options};
use crate::payload::{Payloads, from_payload, to_payload};
use crate::projection::ProjectionView;
use crate::reports::{
    CheckpointReport, DeleteReport, DropReport, ImportReport, ReclaimReport, RepackPlan, RowsReport, Snapshot,
    TrashItem, TriggerFailure, VacuumPlan, VerifyReport, Version, VersionsReport,
};
use crate::result::Reading;
use crate::schema::Schema;

/// What is written to or read from a file object at once.
const FILE_BUFFER: usize = 1 << 18;

/// An open store.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct Store {
    /// Closed, if this is the last to go, without the interpreter lock: whoever is in a commit may wait for that.
    pub core: Detached<drumlin::Store>,
    callbacks: Callbacks,
}

impl Store {
    pub fn new(core: drumlin::Store) -> Self {
        Self { core: Detached::new(core), callbacks: Callbacks::default() }
    }

    /// A keyed table as it is now, or was.
    pub fn view(&self, py: Python<'_>, path: &str, as_of: &AsOf) -> PyResult<TableView> {
        detached(py, || self.core.table_view(path, as_of))
    }

    /// Rows as the table takes them.
    fn given(&self, py: Python<'_>, path: &str, rows: Rows<'_>) -> PyResult<Given> {
        rows.given(|| detached(py, || self.core.schema(path, &AsOf::Newest)))
    }
}

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

    fn create(
        &self,
        py: Python<'_>,
        path: &str,
        schema: GivenSchema,
        sort: Vec<String>,
        key: Vec<String>,
    ) -> PyResult<Version> {
        let schema = schema.into_inner();
        Ok(detached(py, || self.core.create(path, schema, TableOptions { sort, key }))?.into())
    }

    /// With `each`, an answer for each frame: its version, or the exception.
    #[pyo3(signature = (frames, metadata=None, sort=None, progress=None, each=false))]
    fn write_many<'py>(
        &self,
        py: Python<'py>,
        frames: Vec<(String, Handed)>,
        metadata: Option<String>,
        sort: Option<Vec<String>>,
        progress: Option<Py<PyAny>>,
        each: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let core = &self.core;
        let write = |frames, task| {
            let (frames, options) = (to_frames(frames), WriteOptions { metadata, sort, task });
            if each { core.write_each(frames, &options) } else { all(core.write_many(frames, &options)) }
        };
        land(py, frames, each, |frames| with_progress(py, progress, |task| write(frames, task)))
    }

    /// As `write_many`.
    #[pyo3(signature = (frames, metadata=None, progress=None, each=false))]
    fn append_many<'py>(
        &self,
        py: Python<'py>,
        frames: Vec<(String, Handed)>,
        metadata: Option<String>,
        progress: Option<Py<PyAny>>,
        each: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let core = &self.core;
        let append = |frames, task| {
            let (frames, options) = (to_frames(frames), WriteOptions { metadata, sort: None, task });
            if each { core.append_each(frames, &options) } else { all(core.append_many(frames, &options)) }
        };
        land(py, frames, each, |frames| with_progress(py, progress, |task| append(frames, task)))
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
        Ok(with_progress(py, progress, |task| self.core.update(path, frame, &options(task)))?.into())
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
        Ok(with_progress(py, progress, |task| self.core.delete_rows(path, filter, &options(task)))?.into())
    }

    #[pyo3(signature = (path, rows, metadata=None, progress=None))]
    fn upsert(
        &self,
        py: Python<'_>,
        path: &str,
        rows: Rows<'_>,
        metadata: Option<String>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<RowsReport> {
        let rows = self.given(py, path, rows)?;
        Ok(keyed::write(py, rows, metadata, progress, |rows, options| self.core.upsert(path, rows, options))?.into())
    }

    #[pyo3(signature = (path, rows, metadata=None, progress=None))]
    fn insert(
        &self,
        py: Python<'_>,
        path: &str,
        rows: Rows<'_>,
        metadata: Option<String>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<RowsReport> {
        let rows = self.given(py, path, rows)?;
        Ok(keyed::write(py, rows, metadata, progress, |rows, options| self.core.insert(path, rows, options))?.into())
    }

    #[pyo3(signature = (path, keys, metadata=None, progress=None))]
    fn delete_keys(
        &self,
        py: Python<'_>,
        path: &str,
        keys: Keys<'_>,
        metadata: Option<String>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<RowsReport> {
        let keys = keys.given(|| Ok(self.view(py, path, &AsOf::Newest)?.key_schema().clone()))?;
        let delete = |keys, options: &WriteOptions| self.core.delete_keys(path, keys, options);
        Ok(keyed::write(py, keys, metadata, progress, delete)?.into())
    }

    #[pyo3(signature = (path, key, as_of=None, columns=None))]
    fn get_row<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        key: Bound<'py, PyAny>,
        as_of: Option<When>,
        columns: Option<Vec<String>>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let options = lookup_options(as_of, columns);
        let view = self.view(py, path, &options.as_of)?;
        keyed::look_up_in(py, &view, Keys::one(key), options)?.row(py)
    }

    #[pyo3(signature = (path, keys, as_of=None, columns=None))]
    fn get_rows(
        &self,
        py: Python<'_>,
        path: &str,
        keys: Keys<'_>,
        as_of: Option<When>,
        columns: Option<Vec<String>>,
    ) -> PyResult<Lookup> {
        let options = lookup_options(as_of, columns);
        let view = self.view(py, path, &options.as_of)?;
        keyed::look_up_in(py, &view, keys, options)
    }

    /// With `each`, an answer for each path: its reading, or the exception.
    #[pyo3(signature = (paths, as_of, columns, filter, limit, tail, native, each=false))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn read_many<'py>(
        this: &Bound<'py, Self>,
        paths: Vec<String>,
        as_of: Option<When>,
        columns: Option<Vec<String>>,
        filter: Option<&str>,
        limit: Option<u64>,
        tail: Option<u64>,
        native: bool,
        each: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let (as_of, scan) = (crate::options::as_of(as_of), scan_options(columns, filter, limit, tail, native)?);
        answers(this.py(), Reading::of(this, paths, &ReadOptions { as_of, scan }, each)?)
    }

    #[pyo3(signature = (path, as_of=None))]
    fn schema(&self, py: Python<'_>, path: &str, as_of: Option<When>) -> PyResult<Schema> {
        let when = crate::options::as_of(as_of);
        Ok(Schema(detached(py, || self.core.schema(path, &when))?))
    }

    fn versions(&self, py: Python<'_>, path: &str) -> PyResult<Vec<Version>> {
        Ok(detached(py, || self.core.versions(path))?.into_iter().map(Version::from).collect())
    }

    fn delete_versions(&self, py: Python<'_>, versions: Versions, missing_ok: bool) -> PyResult<VersionsReport> {
        Ok(detached(py, || self.core.delete_versions(&versions.0, missing(missing_ok)))?.into())
    }

    fn snapshot(&self, py: Python<'_>, name: &str, pattern: &str) -> PyResult<Snapshot> {
        Ok(detached(py, || self.core.snapshot(name, pattern))?.into())
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

    fn drop(&self, py: Python<'_>, paths: Vec<String>, missing_ok: bool) -> PyResult<DropReport> {
        Ok(detached(py, || drumlin::Store::drop(&self.core, &paths, missing(missing_ok)))?.into())
    }

    #[pyo3(signature = (paths, missing_ok, rest_micros, progress=None))]
    fn drop_and_reclaim(
        &self,
        py: Python<'_>,
        paths: Vec<String>,
        missing_ok: bool,
        rest_micros: Option<u64>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(DropReport, ReclaimReport)> {
        let missing = missing(missing_ok);
        let options = |task| ReclaimOptions { rest_micros, task, ..ReclaimOptions::default() };
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

    fn put(
        &self,
        py: Python<'_>,
        path: &str,
        value: &Bound<'_, PyAny>,
        only: Option<&str>,
        when: Option<ConditionLike>,
        keep_while: Option<KeepWhile>,
    ) -> PyResult<Change> {
        let payload = to_payload(value, "payload")?;
        let options = put_options(only, when, keep_while)?.unwrap_or_default();
        Ok(detached(py, || self.core.put_with(path, payload, options))?.into())
    }

    fn compare_and_swap(
        &self,
        py: Python<'_>,
        path: &str,
        expected: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<Change> {
        let (expected, payload) = (to_payload(expected, "expected")?, to_payload(value, "payload")?);
        Ok(detached(py, || self.core.compare_and_swap(path, expected, payload))?.into())
    }

    fn put_many(&self, py: Python<'_>, payloads: Payloads) -> PyResult<Changes> {
        Ok(detached(py, || self.core.put_many(payloads.0))?.into())
    }

    fn update_many(&self, py: Python<'_>, pattern: PatternLike, value: &Bound<'_, PyAny>) -> PyResult<Changes> {
        let payload = to_payload(value, "payload")?;
        Ok(detached(py, || self.core.update_many(pattern.0, &payload))?.into())
    }

    fn clear_payload(&self, py: Python<'_>, path: &str, when: Option<ConditionLike>) -> PyResult<Change> {
        Ok(detached(py, || self.core.clear_payload(path, when.map(|when| when.0)))?.into())
    }

    fn clear_payloads(&self, py: Python<'_>, pattern: PatternLike) -> PyResult<Changes> {
        Ok(detached(py, || self.core.clear_payloads(pattern.0))?.into())
    }

    fn delete(&self, py: Python<'_>, path: &str, when: Option<ConditionLike>) -> PyResult<Change> {
        Ok(detached(py, || self.core.delete(path, when.map(|when| when.0)))?.into())
    }

    fn delete_many(&self, py: Python<'_>, pattern: PatternLike) -> PyResult<Changes> {
        Ok(detached(py, || self.core.delete_many(pattern.0))?.into())
    }

    fn get<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match glance(py, &self.core, || self.core.get(path))? {
            Some(payload) => Ok(Some(from_payload(py, &payload)?)),
            None => Ok(default),
        }
    }

    fn node(&self, py: Python<'_>, path: &str) -> PyResult<Option<Node>> {
        Ok(glance(py, &self.core, || self.core.node(path))?.map(Node))
    }

    fn exists(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        glance(py, &self.core, || self.core.exists(path))
    }

    fn has_payload(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        glance(py, &self.core, || self.core.has_payload(path))
    }

    fn get_many<'py>(&self, py: Python<'py>, pattern: PatternLike) -> PyResult<Bound<'py, PyDict>> {
        payloads_by_path(py, detached(py, || self.core.get_many(pattern.0))?)
    }

    fn nodes<'py>(&self, py: Python<'py>, pattern: PatternLike) -> PyResult<Bound<'py, PyDict>> {
        nodes_by_path(py, detached(py, || self.core.nodes(pattern.0))?)
    }

    fn walk(&self, py: Python<'_>, pattern: PatternLike) -> PyResult<Walk> {
        Ok(detached(py, || self.core.nodes(pattern.0))?.into())
    }

    fn count(&self, py: Python<'_>, pattern: PatternLike) -> PyResult<u64> {
        detached(py, || self.core.count(pattern.0))
    }

    fn list(&self, py: Python<'_>, pattern: PatternLike) -> PyResult<Vec<ListEntry>> {
        Ok(detached(py, || self.core.list(pattern.0))?.into_iter().map(ListEntry::from).collect())
    }

    fn tables(&self, py: Python<'_>, pattern: PatternLike) -> PyResult<Vec<String>> {
        detached(py, || self.core.tables(pattern.0))
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
        let fields = |texts: Vec<String>| texts.iter().map(|text| Field::new(text)).collect::<drumlin::Result<_>>();
        let (key, value) = (fields(key).map_err(raise)?, fields(value).map_err(raise)?);
        detached(py, || self.core.put_projection(name, Projection { pattern: pattern.0, key, value, bag }))
    }

    /// `function` is called with a path and a payload and gives a key and a value, or `None`.
    fn put_projection_fn(
        &self,
        py: Python<'_>,
        name: &str,
        pattern: PatternLike,
        function: Py<PyAny>,
        bag: bool,
    ) -> PyResult<()> {
        let function = crate::projection::function(self.callbacks.add(function));
        detached(py, || self.core.put_projection_fn(name, pattern.0, bag, function))
    }

    fn drop_projection(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        detached(py, || self.core.drop_projection(name))
    }

    fn projection(&self, py: Python<'_>, name: &str) -> PyResult<ProjectionView> {
        glance(py, &self.core, || self.core.projection(name)).map(ProjectionView)
    }

    fn projections(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        glance(py, &self.core, || self.core.projections())
    }

    /// With `name` a durable one; gives the name.
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
        let function = crate::trigger::function(self.callbacks.add(callback));
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

    /// Whether they have been called within `timeout`.
    #[pyo3(signature = (timeout=None))]
    fn wait_for_triggers(&self, py: Python<'_>, timeout: Option<Span>) -> PyResult<bool> {
        let timeout = timeout.map(Span::duration).transpose()?;
        let called = wait(py, timeout, |step| Ok(self.core.wait_for_triggers(Some(step))?.then_some(())))?;
        Ok(called.is_some())
    }

    fn trigger_failures(&self, py: Python<'_>) -> PyResult<Vec<TriggerFailure>> {
        let failures = detached(py, || Ok(self.core.trigger_failures()))?;
        Ok(failures.into_iter().map(TriggerFailure::from).collect())
    }

    /// Without `since` from now on.
    #[pyo3(signature = (since=None))]
    fn changes(this: &Bound<'_, Self>, since: Option<u64>) -> PyResult<ChangeFeed> {
        let core = &this.get().core;
        let feed = detached(this.py(), || core.changes(since.map_or_else(|| core.seq(), |since| Ok(Seq(since)))?))?;
        Ok(ChangeFeed::new(feed, this.clone().unbind()))
    }

    /// Gives how many nodes were written.
    #[pyo3(signature = (pattern, file, progress=None))]
    fn export_nodes(
        &self,
        py: Python<'_>,
        pattern: PatternLike,
        file: Py<PyAny>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        let (file, raised) = File::new(file);
        let mut file = BufWriter::with_capacity(FILE_BUFFER, file);
        raised.or(with_progress(py, progress, |task| self.core.export_nodes(pattern.0, &mut file, &task)))
    }

    #[pyo3(signature = (file, under=None, progress=None))]
    fn import_nodes(
        &self,
        py: Python<'_>,
        file: Py<PyAny>,
        under: Option<&str>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<ImportReport> {
        let (file, raised) = File::new(file);
        let mut file = BufReader::with_capacity(FILE_BUFFER, file);
        Ok(raised.or(with_progress(py, progress, |task| self.core.import_nodes(&mut file, under, &task)))?.into())
    }

    #[pyo3(signature = (dead_share_min=None, budget=None))]
    fn vacuum_plan(
        &self,
        py: Python<'_>,
        dead_share_min: Option<f64>,
        budget: Option<f64>,
    ) -> PyResult<Vec<VacuumPlan>> {
        let options = plan_options(dead_share_min, budget);
        Ok(detached(py, || self.core.vacuum_plan(&options))?.into_iter().map(VacuumPlan::from).collect())
    }

    #[pyo3(signature = (dead_share_min=None, budget=None))]
    fn repack_plan(&self, py: Python<'_>, dead_share_min: Option<f64>, budget: Option<f64>) -> PyResult<RepackPlan> {
        let options = plan_options(dead_share_min, budget);
        Ok(detached(py, || self.core.repack_plan(&options))?.into())
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
        Ok(with_progress(py, progress, |task| self.core.checkpoint(&CheckpointOptions { plan, task }))?.into())
    }

    #[pyo3(signature = (grace_micros, rest_micros, fence_idle_micros, audit, progress=None))]
    fn reclaim(
        &self,
        py: Python<'_>,
        grace_micros: u64,
        rest_micros: Option<u64>,
        fence_idle_micros: Option<u64>,
        audit: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<ReclaimReport> {
        let report = with_progress(py, progress, |task| {
            self.core.reclaim(&ReclaimOptions { grace_micros, rest_micros, fence_idle_micros, audit, task })
        });
        Ok(report?.into())
    }

    #[pyo3(signature = (deep=false, progress=None))]
    fn verify(&self, py: Python<'_>, deep: bool, progress: Option<Py<PyAny>>) -> PyResult<VerifyReport> {
        Ok(with_progress(py, progress, |task| self.core.verify(&drumlin::store::VerifyOptions { deep, task }))?.into())
    }

    fn stat(&self, py: Python<'_>) -> PyResult<StoreStat> {
        Ok(detached(py, || self.core.stat())?.into())
    }

    fn table_stat(&self, py: Python<'_>, path: &str) -> PyResult<TableStat> {
        Ok(detached(py, || self.core.table_stat(path))?.into())
    }
}
