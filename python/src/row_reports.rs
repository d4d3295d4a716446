//! What calls that change rows answer, as plain immutable objects.

use drumlin::Error;
use pyo3::prelude::*;

use crate::errors::raise;
use crate::reports::{Version, describe, record};
use crate::result::Returned;

/// The result of a write by key.
#[pyclass(frozen, eq, module = "drumlin")]
#[derive(Clone, PartialEq)]
pub struct RowsReport {
    /// The number of the commit; None in a transaction.
    #[pyo3(get)]
    seq: Option<u64>,
    /// The number of written rows, or of keys to delete, whether they existed or not.
    #[pyo3(get)]
    rows: u64,
    /// The version that it made, if it was large or had metadata. Otherwise, its rows belong to the version that
    /// the next checkpoint, snapshot or large write makes.
    #[pyo3(get)]
    version: Option<Version>,
    returned: Option<Returned>,
}

#[pymethods]
impl RowsReport {
    /// The rows as they are after the call, or were before it if it deleted them: what ``returning`` asked for, in the
    /// order in which the keys were given. It has the methods of the result of a read. Raises
    /// :class:`drumlin.InvalidArgument` if no rows were asked for.
    #[getter]
    fn returned(&self) -> PyResult<Returned> {
        let none = || raise(Error::invalid("no rows were asked for; give returning=True, or the names of columns"));
        self.returned.clone().ok_or_else(none)
    }

    fn __repr__(this: &Bound<'_, Self>) -> PyResult<String> {
        let fields: &[&str] = &["seq", "rows", "version", "returned"];
        describe(this.as_any(), &fields[..if this.get().returned.is_some() { 4 } else { 3 }])
    }
}

impl RowsReport {
    /// What a write to the table at `path` did.
    pub fn of(report: drumlin::RowsReport, path: &str) -> Self {
        let drumlin::RowsReport { seq, rows, version, returned } = report;
        let returned = returned.map(|rows| Returned::of(rows, path));
        Self { seq: seq.map(|seq| seq.0), rows, version: version.map(Version::from), returned }
    }
}

record! {
    /// The result of a delete of rows.
    DeleteReport {
        /// The number of deleted rows.
        rows: u64,
        /// The version that it made, or the unchanged newest one if no row matched. None in a transaction.
        version: Option<Version>,
    } {}
}

impl From<drumlin::DeleteReport> for DeleteReport {
    fn from(report: drumlin::DeleteReport) -> Self {
        Self { rows: report.rows, version: report.version.map(Version::from) }
    }
}

record! {
    /// The result of an update.
    UpdateReport {
        /// The number of updated rows.
        rows: u64,
        /// The version that it made, or the unchanged newest one if no row matched. None in a transaction.
        version: Option<Version>,
    } {}
}

impl From<drumlin::UpdateReport> for UpdateReport {
    fn from(report: drumlin::UpdateReport) -> Self {
        Self { rows: report.rows, version: report.version.map(Version::from) }
    }
}

record! {
    /// The result of a merge.
    MergeReport {
        /// The number of rows that got new values.
        updated: u64,
        /// The number of deleted rows.
        deleted: u64,
        /// The number of added rows.
        inserted: u64,
        /// The version that it made, or the unchanged newest one if nothing changed. None in a transaction.
        version: Option<Version>,
    } {}
}

impl From<drumlin::MergeReport> for MergeReport {
    fn from(report: drumlin::MergeReport) -> Self {
        let drumlin::MergeReport { version, updated, deleted, inserted } = report;
        Self { updated, deleted, inserted, version: version.map(Version::from) }
    }
}
