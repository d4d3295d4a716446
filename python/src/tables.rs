//! Operations on tables by path, in a store or in a transaction.

use drumlin::{Place, Result, Tables as _, WriteOptions};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;

use crate::call::{Detached, detached, with_progress};
use crate::dataset::Dataset;
use crate::errors::{all, answers};
use crate::input::{Handed, to_frames, write_each};
use crate::open_store::Store;
use crate::options::{Versions, When, compression_of, existing, missing, scan_options, schema_mode};
use crate::pattern::PatternLike;
use crate::reports::{CopyReport, DropReport, Version, VersionsReport};
use crate::result::Reading;
use crate::table::Table;
use crate::tree::Tree;

/// How rows are kept: the columns to sort by, and the compression.
type Kept = (Option<Vec<String>>, Option<String>);

/// The tables of a store, or of a transaction.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct Tables {
    place: Detached<Place>,
    store: Py<Store>,
}

impl Tables {
    pub fn new(place: Place, store: Py<Store>) -> Self {
        Self { place: Detached::new(place), store }
    }
}

#[pymethods]
impl Tables {
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(&self.store)
    }

    fn tree(&self, py: Python<'_>) -> Tree {
        Tree::new(self.place.tree(), self.store.clone_ref(py))
    }

    fn table(&self, py: Python<'_>, path: &str) -> Table {
        Table::new(self.place.table(path), self.store.clone_ref(py))
    }

    fn tables(&self, py: Python<'_>, pattern: PatternLike) -> PyResult<Vec<String>> {
        detached(py, || self.place.tables(pattern.0))
    }

    /// With `each`, one result per frame: its version, or the exception.
    #[pyo3(signature = (frames, metadata, kept, progress=None, each=false))]
    fn write_many<'py>(
        &self,
        py: Python<'py>,
        frames: Vec<(String, Handed)>,
        metadata: Option<String>,
        kept: Kept,
        progress: Option<Py<PyAny>>,
        each: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let (sort, compression) = (kept.0, compression_of(kept.1)?);
        let write = |frames, task| {
            let options = WriteOptions { metadata, sort, compression, task, ..WriteOptions::default() };
            let frames = to_frames(frames, &options.task.cancel);
            match each {
                true => self.place.write_each(frames, &options),
                false => all(self.place.write_many(frames, &options)),
            }
        };
        write_each(py, frames, each, |frames| with_progress(py, progress, |task| write(frames, task)))
    }

    /// Like `write_many`.
    #[pyo3(signature = (frames, metadata=None, evolve=false, progress=None, each=false))]
    fn append_many<'py>(
        &self,
        py: Python<'py>,
        frames: Vec<(String, Handed)>,
        metadata: Option<String>,
        evolve: bool,
        progress: Option<Py<PyAny>>,
        each: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let append = |frames, task| {
            let options = WriteOptions { metadata, schema: schema_mode(evolve), task, ..WriteOptions::default() };
            let frames = to_frames(frames, &options.task.cancel);
            match each {
                true => self.place.append_each(frames, &options),
                false => all(self.place.append_many(frames, &options)),
            }
        };
        write_each(py, frames, each, |frames| with_progress(py, progress, |task| append(frames, task)))
    }

    /// With `each`, one result per path: its reading, or the exception.
    #[pyo3(signature = (paths, as_of, columns, filter, offset, limit, tail, native, each=false))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn read_many<'py>(
        &self,
        py: Python<'py>,
        paths: Vec<String>,
        as_of: Option<When>,
        columns: Option<Vec<String>>,
        filter: Option<&str>,
        offset: u64,
        limit: Option<u64>,
        tail: Option<u64>,
        native: bool,
        each: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let (as_of, scan) = (crate::options::as_of(as_of), scan_options(columns, filter, offset, limit, tail, native)?);
        let options = drumlin::ReadOptions::of(as_of, scan);
        let read = || match each {
            true => self.place.read_each(&paths, &options),
            false => all(self.place.read_many(&paths, &options)),
        };
        let scans = detached(py, read)?;
        let reading = |(path, scan): (&String, Result<drumlin::Scan>)| {
            Ok(Reading::new(self.place.table(path), self.store.clone_ref(py), options.clone(), scan?))
        };
        answers(py, paths.iter().zip(scans).map(reading))
    }

    fn scan(
        &self,
        py: Python<'_>,
        pattern: PatternLike,
        as_of: Option<When>,
        path_columns: Vec<String>,
    ) -> PyResult<Dataset> {
        let options = drumlin::DatasetOptions { as_of: crate::options::as_of(as_of), path_columns };
        let core = detached(py, || self.place.scan(pattern.0, &options))?;
        Ok(Dataset::new(core, self.store.clone_ref(py)))
    }

    #[pyo3(signature = (pattern, limit=None))]
    fn history(&self, py: Python<'_>, pattern: PatternLike, limit: Option<usize>) -> PyResult<Vec<(String, Version)>> {
        let history = detached(py, || self.place.history(pattern.0, limit))?;
        Ok(history.into_iter().map(|(path, version)| (path, version.into())).collect())
    }

    fn restore(&self, py: Python<'_>, pattern: PatternLike, as_of: When) -> PyResult<Vec<String>> {
        let as_of = crate::options::as_of(Some(as_of));
        detached(py, || self.place.restore(pattern.0, &as_of))
    }

    fn copy(&self, py: Python<'_>, from: &str, to: &str, as_of: Option<When>, replace: bool) -> PyResult<CopyReport> {
        let (as_of, existing) = (crate::options::as_of(as_of), existing(replace));
        Ok(detached(py, || self.place.copy(from, to, &as_of, existing))?.into())
    }

    fn relocate(&self, py: Python<'_>, from: &str, to: &str, replace: bool) -> PyResult<CopyReport> {
        let existing = existing(replace);
        Ok(detached(py, || self.place.relocate(from, to, existing))?.into())
    }

    fn drop(&self, py: Python<'_>, paths: Vec<String>, missing_ok: bool) -> PyResult<DropReport> {
        let missing = missing(missing_ok);
        Ok(detached(py, || drumlin::Tables::drop_with(&*self.place, &paths, missing))?.into())
    }

    fn delete_versions(&self, py: Python<'_>, versions: Versions, missing_ok: bool) -> PyResult<VersionsReport> {
        let missing = missing(missing_ok);
        let delete = || self.place.delete_versions(&versions.0, missing);
        Ok(detached(py, delete)?.into())
    }
}
