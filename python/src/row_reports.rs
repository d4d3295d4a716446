//! What calls that change rows answer, as plain immutable objects.

use pyo3::prelude::*;

use crate::reports::{Version, describe, record};
use crate::result::Returned;

record! {
    /// The result of a write by key.
    RowsReport {
        /// The number of the commit; None in a transaction.
        seq: Option<u64>,
        /// The number of written rows, or of keys to delete, whether they existed or not.
        rows: u64,
        /// The version that it made, if it was large or had metadata. Otherwise, its rows belong to the version that
        /// the next checkpoint, snapshot or large write makes.
        version: Option<Version>,
        /// The rows as they are after the call, or were before it if it deleted them: what ``returning`` asked for, in the
        /// order in which the keys were given; otherwise None. It has the methods of the result of a read.
        returned: Option<Returned>,
    } {}
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
