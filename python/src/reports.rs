//! Reports, records and figures of the core, as plain immutable objects.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use drumlin::Timestamp;
use pyo3::prelude::*;

use crate::call::detached;

/// A time that becomes a `datetime` in UTC.
pub fn time(at: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(at.0).unwrap_or(0))
}

/// `Class(a=1, b='x')`.
pub fn describe(object: &Bound<'_, PyAny>, fields: &[&str]) -> PyResult<String> {
    let mut parts = Vec::with_capacity(fields.len());
    for field in fields {
        parts.push(format!("{field}={}", object.getattr(*field)?.repr()?));
    }
    Ok(format!("{}({})", object.get_type().name()?, parts.join(", ")))
}

/// JSON text as a Python value.
fn from_json<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (text,))
}

/// A class of named values, with a `repr` that shows them all; after the values, further methods. `as text` adds a text
/// that `str` returns.
macro_rules! record {
    (
        $(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }
        $(as $text:ident)? { $($methods:tt)* }
    ) => {
        $(#[$doc])*
        #[pyclass(frozen, eq, module = "drumlin")]
        #[derive(Clone, PartialEq)]
        pub struct $name {
            $($(#[$field_doc])* #[pyo3(get)] $field: $type,)*
            $($text: String,)?
        }

        #[pymethods]
        impl $name {
            fn __repr__(this: &Bound<'_, Self>) -> PyResult<String> {
                describe(this.as_any(), &[$(stringify!($field).trim_start_matches("r#")),*])
            }

            $($methods)*
        }
    };
}

pub(crate) use record;

/// One version of a table.
#[pyclass(frozen, eq, module = "drumlin")]
#[derive(Clone, PartialEq)]
pub struct Version(drumlin::VersionInfo);

impl From<drumlin::VersionInfo> for Version {
    fn from(info: drumlin::VersionInfo) -> Self {
        Self(info)
    }
}

#[pymethods]
impl Version {
    /// The version's number: 0, 1, 2 ...
    #[getter]
    fn version(&self) -> u64 {
        self.0.version.0
    }

    /// The number of the commit that made it.
    #[getter]
    fn seq(&self) -> u64 {
        self.0.seq.0
    }

    /// When it was made, in UTC.
    #[getter]
    fn time(&self) -> SystemTime {
        time(self.0.time)
    }

    /// What made it: `create`, `write`, `append`, `replace`, `update`, `merge`, `delete`, `upsert`, `alter`, `restore`
    /// or `rows` (rows written by key since the previous version).
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind.name()
    }

    /// The number of its rows.
    #[getter]
    fn rows(&self) -> u64 {
        self.0.rows
    }

    /// The metadata of the version; None if it has none.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.metadata.as_deref().map(|text| from_json(py, text)).transpose()
    }

    /// The number of rows that it added; a changed row counts as added and as removed. None if it includes rows written
    /// by key that have not been counted yet.
    #[getter]
    fn rows_added(&self) -> Option<u64> {
        self.0.turnover.map(|rows| rows.added)
    }

    /// The number of rows that it removed, counted in the same way.
    #[getter]
    fn rows_removed(&self) -> Option<u64> {
        self.0.turnover.map(|rows| rows.removed)
    }

    /// The message of its commit: see `Store.with_message`.
    #[getter]
    fn message(&self) -> Option<&str> {
        self.0.note.message.as_deref()
    }

    /// Who wrote it: the `writer` that the store was opened with.
    #[getter]
    fn writer(&self) -> Option<&str> {
        self.0.note.writer.as_deref()
    }

    /// How long the call that made it took, until its turn to commit; None for quick calls.
    #[getter]
    fn duration(&self) -> Option<Duration> {
        self.0.note.duration_micros.map(Duration::from_micros)
    }

    /// The names of the snapshots that hold it.
    #[getter]
    fn snapshots(&self) -> Vec<String> {
        self.0.snapshots.clone()
    }

    fn __repr__(this: &Bound<'_, Self>) -> PyResult<String> {
        describe(this.as_any(), &["version", "kind", "rows", "time", "metadata", "message", "snapshots"])
    }
}

/// A name for versions of tables, one of each, which stay readable until it is dropped.
#[pyclass(frozen, eq, module = "drumlin")]
#[derive(Clone)]
pub struct Snapshot {
    info: drumlin::SnapshotInfo,
    versions: OnceLock<BTreeMap<String, u64>>,
}

impl PartialEq for Snapshot {
    fn eq(&self, other: &Self) -> bool {
        let of = |snapshot: &Self| (snapshot.info.name.clone(), snapshot.info.time, snapshot.info.tables);
        of(self) == of(other)
    }
}

#[pymethods]
impl Snapshot {
    /// The snapshot's name.
    #[getter]
    fn name(&self) -> &str {
        &self.info.name
    }

    /// When it was taken, in UTC.
    #[getter]
    fn time(&self) -> SystemTime {
        time(self.info.time)
    }

    /// How many tables it held when it was taken.
    #[getter]
    fn tables(&self) -> u64 {
        self.info.tables
    }

    /// The version of each table that it holds, by path. They are looked up when this is first read.
    #[getter]
    fn versions(&self, py: Python<'_>) -> PyResult<BTreeMap<String, u64>> {
        if let Some(versions) = self.versions.get() {
            return Ok(versions.clone());
        }
        let found = detached(py, || self.info.versions())?;
        let numbers = found.into_iter().map(|(path, version)| (path, version.0)).collect();
        Ok(self.versions.get_or_init(|| numbers).clone())
    }

    fn __repr__(this: &Bound<'_, Self>) -> PyResult<String> {
        describe(this.as_any(), &["name", "time", "tables"])
    }
}

impl From<drumlin::SnapshotInfo> for Snapshot {
    fn from(info: drumlin::SnapshotInfo) -> Self {
        Self { info, versions: OnceLock::new() }
    }
}

record! {
    /// The result of a drop.
    DropReport {
        /// The dropped paths, in order.
        paths: Vec<String>,
        /// The number of dropped versions.
        versions: u64,
        /// Bytes that a reclaim can free, unless other tables share their blocks or a snapshot holds them.
        bytes: u64,
        /// Paths and patterns that named no table, with `missing_ok`.
        missing: Vec<String>,
    } {}
}

impl From<drumlin::DropReport> for DropReport {
    fn from(report: drumlin::DropReport) -> Self {
        let drumlin::DropReport { paths, versions, bytes, missing } = report;
        Self { paths, versions, bytes, missing }
    }
}

record! {
    /// The result of a copy or a move.
    CopyReport {
        /// The new path of each table, by its old path.
        tables: BTreeMap<String, String>,
        /// The number of payloads copied or moved.
        payloads: u64,
    } {}
}

record! {
    /// The result of copying tables to another store.
    CopyToReport {
        /// The copied tables, in path order.
        tables: Vec<String>,
        /// The tables that were there already.
        present: Vec<String>,
        /// The number of copied row groups.
        row_groups: u64,
        /// The bytes of these row groups.
        bytes: u64,
    } {}
}

impl From<drumlin::CopyToReport> for CopyToReport {
    fn from(report: drumlin::CopyToReport) -> Self {
        let drumlin::CopyToReport { tables, present, row_groups, bytes } = report;
        Self { tables, present, row_groups, bytes }
    }
}

impl From<drumlin::CopyReport> for CopyReport {
    fn from(report: drumlin::CopyReport) -> Self {
        let drumlin::CopyReport { tables, payloads } = report;
        Self { tables: tables.into_iter().collect(), payloads }
    }
}

record! {
    /// The result of deleting versions.
    VersionsReport {
        /// The deleted versions, by path.
        versions: BTreeMap<String, Vec<u64>>,
        /// Versions that did not exist, by path, with `missing_ok`.
        missing: BTreeMap<String, Vec<u64>>,
        /// Bytes that a reclaim can free, unless other tables share their blocks.
        bytes: u64,
    } {}
}

impl From<drumlin::VersionsReport> for VersionsReport {
    fn from(report: drumlin::VersionsReport) -> Self {
        let numbers =
            |(path, versions): (String, Vec<drumlin::Version>)| (path, versions.iter().map(|v| v.0).collect());
        let drumlin::VersionsReport { versions, missing, bytes } = report;
        let by_path = |listed: Vec<_>| listed.into_iter().map(numbers).collect();
        Self { versions: by_path(versions), missing: by_path(missing), bytes }
    }
}

record! {
    /// A dropped table that can be restored.
    TrashItem {
        /// The path that it was dropped from.
        path: String,
        /// When it was dropped, in UTC.
        time: SystemTime,
        /// The number of rows in its newest version.
        rows: u64,
        /// The bytes of its row groups.
        bytes: u64,
    } {}
}

impl From<drumlin::TrashItem> for TrashItem {
    fn from(item: drumlin::TrashItem) -> Self {
        Self { path: item.path, time: time(item.time), rows: item.rows, bytes: item.bytes }
    }
}

record! {
    /// The result of a checkpoint.
    CheckpointReport {
        /// The number of tables with rewritten row groups.
        tables: u64,
        /// Row groups of all tables before the checkpoint.
        row_groups_before: u64,
        /// Row groups of all tables after the checkpoint.
        row_groups_after: u64,
        /// Rows removed because no version needed them.
        rows_removed: u64,
        /// Row groups copied out of blocks that were mostly dead, or out of many small ones.
        row_groups_moved: u64,
        /// Bytes written.
        bytes_written: u64,
        /// Rows written by key that were moved from memory to row groups.
        rows_flushed: u64,
        /// Rows deleted because they had expired.
        rows_expired: u64,
        /// Versions removed by retention.
        versions_expired: u64,
        /// Windows of row groups that were not rewritten, because others changed their row groups during the
        /// checkpoint.
        windows_void: u64,
        /// Sorted runs of indexes that were made.
        index_runs: u64,
        /// Windows that could not be rewritten, and indexes that could not be filled, which were left as they are: the
        /// table and why.
        failures: Vec<String>,
    } as text {
        fn __str__(&self) -> &str {
            &self.text
        }
    }
}

impl From<drumlin::CheckpointReport> for CheckpointReport {
    fn from(report: drumlin::CheckpointReport) -> Self {
        Self {
            text: report.to_string(),
            tables: report.tables,
            row_groups_before: report.groups_before,
            row_groups_after: report.groups_after,
            rows_removed: report.rows_removed,
            row_groups_moved: report.groups_moved,
            bytes_written: report.bytes_written,
            rows_flushed: report.rows_flushed,
            rows_expired: report.rows_expired,
            versions_expired: report.versions_expired,
            windows_void: report.windows_void,
            index_runs: report.index_runs,
            failures: report.failures,
        }
    }
}

record! {
    /// An index of a table.
    Index {
        /// Its name.
        name: String,
        /// The columns and expressions that it is over.
        columns: Vec<String>,
        /// It has only the rows for which this is true; None if it has all.
        r#where: Option<String>,
        /// Whether rows that have the same values as another are refused.
        unique: bool,
        /// Of a unique one, whether all rows were compared with each other. If not, the call that made it was stopped:
        /// drop it, or let rebuild_index compare them.
        proven: bool,
        /// Whether the newest version lacks one of its columns, so that it gets no new rows.
        suspended: bool,
        /// Sorted runs of entries.
        runs: u64,
        /// Entries of all runs.
        entries: u64,
        /// Their encoded bytes.
        bytes: u64,
        /// Row groups of the newest version that it covers; the others are scanned.
        covered_row_groups: u64,
        /// Row groups of the newest version.
        row_groups: u64,
    } {}
}

impl From<drumlin::IndexInfo> for Index {
    fn from(index: drumlin::IndexInfo) -> Self {
        Self {
            name: index.name,
            columns: index.columns,
            r#where: index.condition,
            unique: index.unique,
            proven: index.proven,
            suspended: index.suspended,
            runs: index.runs,
            entries: index.entries,
            bytes: index.bytes,
            covered_row_groups: index.covered,
            row_groups: index.row_groups,
        }
    }
}

record! {
    /// Space that a reclaim did not free, by reason.
    Holding {
        /// Bytes of tables in the trash, within their grace period.
        trash_bytes: u64,
        /// Bytes of blocks that readers in this process still use.
        pinned_bytes: u64,
        /// Unused bytes in blocks that have other parts in use; a checkpoint may repack them.
        fragment_bytes: u64,
        /// Bytes of row groups that only versions before the newest, or snapshots, need.
        history_bytes: u64,
    } {}
}

record! {
    /// What is kept for other processes: a lease, or the rows staged for a job.
    Hold {
        /// Its number, which is in the name of its folder of blocks.
        number: u64,
        /// The job for which rows are staged; None for a lease.
        job: Option<String>,
        /// Where the replica is that it is a lease for; None if it is for something else.
        replica: Option<String>,
        /// When its owner last renewed it, in UTC.
        beat: SystemTime,
        /// How long it lives after its last renewal.
        life: Duration,
    } {}
}

impl From<drumlin::HoldInfo> for Hold {
    fn from(info: drumlin::HoldInfo) -> Self {
        let drumlin::HoldInfo { hold, job, replica, beat, life_micros } = info;
        Self { number: hold, job, replica, beat: time(beat), life: Duration::from_micros(life_micros) }
    }
}

record! {
    /// The result of a commit of staged rows.
    StagedReport {
        /// The number of the commit.
        seq: u64,
        /// The job's name.
        job: String,
        /// The version that each table got, by path.
        versions: BTreeMap<String, u64>,
    } {}
}

impl From<drumlin::StagedReport> for StagedReport {
    fn from(report: drumlin::StagedReport) -> Self {
        let versions = report.versions.into_iter().map(|(path, version)| (path, version.0)).collect();
        Self { seq: report.seq.0, job: report.job, versions }
    }
}

record! {
    /// The result of a reclaim.
    ReclaimReport {
        /// Tables removed from the trash for good.
        tables: u64,
        /// The number of deleted blocks.
        blocks: u64,
        /// The bytes of these blocks.
        bytes: u64,
        /// Deleted objects that nothing had ever referred to: left by crashes and failures.
        orphans: u64,
        /// The bytes of these objects.
        orphan_bytes: u64,
        /// Objects that could not be deleted, with the error; the next reclaim tries again.
        failures: Vec<(String, String)>,
        /// Space that was not freed, by reason.
        holding: Holding,
        /// The leases and jobs for which data is kept.
        holds: Vec<Hold>,
    } as text {
        fn __str__(&self) -> &str {
            &self.text
        }
    }
}

impl From<drumlin::ReclaimReport> for ReclaimReport {
    fn from(report: drumlin::ReclaimReport) -> Self {
        let drumlin::Holding { trash_bytes, pinned_bytes, fragment_bytes, history_bytes } = report.holding;
        Self {
            text: report.to_string(),
            tables: report.tables,
            blocks: report.blocks,
            bytes: report.bytes,
            orphans: report.orphans,
            orphan_bytes: report.orphan_bytes,
            failures: report.failures,
            holding: Holding { trash_bytes, pinned_bytes, fragment_bytes, history_bytes },
            holds: report.holds.into_iter().map(Hold::from).collect(),
        }
    }
}

record! {
    /// A fault that verify found.
    Fault {
        /// The table's path, or a description if it has none.
        table: String,
        /// The number of the row group.
        row_group: u64,
        /// What is wrong, with the name and offset of the object.
        error: String,
    } {}
}

record! {
    /// The result of verify.
    VerifyReport {
        /// Tables checked, including those in the trash and those held only by snapshots.
        tables: u64,
        /// Row groups read and checked.
        row_groups: u64,
        /// Bytes read and checked.
        bytes: u64,
        /// The faults found. Empty if the store is intact.
        faults: Vec<Fault>,
        /// Objects that nothing refers to, with their sizes in bytes. They are harmless; a reclaim deletes them.
        orphans: Vec<(String, u64)>,
    } as text {
        /// Whether no faults were found.
        #[getter]
        fn ok(&self) -> bool {
            self.faults.is_empty()
        }

        fn __str__(&self) -> &str {
            &self.text
        }
    }
}

impl From<drumlin::VerifyReport> for VerifyReport {
    fn from(report: drumlin::VerifyReport) -> Self {
        let fault = |fault: drumlin::Fault| Fault { table: fault.table, row_group: fault.group, error: fault.error };
        Self {
            text: report.to_string(),
            tables: report.tables,
            row_groups: report.groups,
            bytes: report.bytes,
            faults: report.faults.into_iter().map(fault).collect(),
            orphans: report.orphans,
        }
    }
}

record! {
    /// A failed call of a trigger.
    TriggerFailure {
        /// The name of the trigger.
        trigger: String,
        /// The number of the commit.
        seq: u64,
        /// The path of the node.
        path: String,
        /// The exception that the callback raised, with its traceback.
        error: String,
    } {}
}

impl From<drumlin::TriggerFailure> for TriggerFailure {
    fn from(failure: drumlin::TriggerFailure) -> Self {
        let drumlin::TriggerFailure { trigger, seq, path, error } = failure;
        Self { trigger, seq: seq.0, path, error }
    }
}

record! {
    /// The result of an import of nodes.
    ImportReport {
        /// The number of created nodes.
        created: u64,
        /// The number of existing nodes whose payload was set.
        updated: u64,
    } {}
}

impl From<drumlin::ImportReport> for ImportReport {
    fn from(report: drumlin::ImportReport) -> Self {
        let drumlin::ImportReport { created, updated } = report;
        Self { created, updated }
    }
}
