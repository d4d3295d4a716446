//! Options as passed from Python.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use drumlin::{
    AsOf, BucketOptions, Compression, Expression, Filter, IndexOptions, LogAddress, LookupOptions, Missing, Mode,
    Options, PlanOptions, Retention, ScanOptions, SchemaMode, SyncMode, Timestamp, Version,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::raise;

/// The mode in which a store is opened, by name.
pub struct ModeName(Mode);

impl ModeName {
    /// The mode that creates a store.
    pub fn create() -> Self {
        Self(Mode::Create)
    }
}

impl<'py> FromPyObject<'_, 'py> for ModeName {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(match object.extract::<&str>()? {
            "create" => Mode::Create,
            "write" => Mode::Write,
            "read" => Mode::Read,
            other => {
                return Err(PyValueError::new_err(format!(
                    "mode '{other}' is not known; expected 'create', 'write' or 'read'"
                )));
            }
        }))
    }
}

/// The settings of a store, by name; what is `None` is the core's default.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Settings {
    memory_bytes: Option<u64>,
    cache_bytes: Option<u64>,
    cpu_threads: Option<usize>,
    checkpoint_log_bytes: Option<u64>,
    inline_bytes: Option<u64>,
    memtable_bytes: Option<u64>,
    row_write_bytes: Option<u64>,
    io_threads: Option<usize>,
    block_grace_micros: Option<u64>,
    retry_micros: Option<u64>,
    shared: bool,
    fresh: bool,
    accept_loss: bool,
    verify_rewrites: bool,
    compression: Option<String>,
    writer: Option<String>,
    storage_options: BTreeMap<String, String>,
    /// The address of the server that keeps the log.
    log: Option<String>,
    /// The interval of syncs.
    sync_micros: Option<u64>,
}

/// A compression, by its name.
pub fn compression_of(name: Option<String>) -> PyResult<Option<Compression>> {
    name.as_deref().map(Compression::parse).transpose().map_err(raise)
}

/// How a store is opened.
pub fn open(mode: ModeName, settings: Settings) -> PyResult<Options> {
    let default = Options::default();
    let compression = compression_of(settings.compression)?;
    Ok(Options {
        mode: mode.0,
        memory_bytes: settings.memory_bytes.unwrap_or(default.memory_bytes),
        cache_bytes: settings.cache_bytes.unwrap_or(default.cache_bytes),
        cpu_threads: settings.cpu_threads.unwrap_or(default.cpu_threads),
        checkpoint_log_bytes: settings.checkpoint_log_bytes.unwrap_or(default.checkpoint_log_bytes),
        inline_bytes: settings.inline_bytes.unwrap_or(default.inline_bytes),
        memtable_bytes: settings.memtable_bytes.unwrap_or(default.memtable_bytes),
        row_write_bytes: settings.row_write_bytes.unwrap_or(default.row_write_bytes),
        io_threads: settings.io_threads.unwrap_or(default.io_threads),
        block_grace_micros: settings.block_grace_micros.unwrap_or(default.block_grace_micros),
        retry_micros: settings.retry_micros.unwrap_or(default.retry_micros),
        shared: settings.shared,
        fresh: settings.fresh,
        accept_loss: settings.accept_loss,
        verify_rewrites: settings.verify_rewrites,
        compression: compression.unwrap_or(default.compression),
        writer: settings.writer,
        bucket: BucketOptions(settings.storage_options),
        log_at: settings.log.map(LogAddress),
        sync: settings.sync_micros.map_or(SyncMode::Commit, |micros| SyncMode::Interval(Duration::from_micros(micros))),
        warn: crate::metrics::to_logging(),
        ..default
    })
}

/// A version's number, which counts from the newest if it is below 0, a snapshot's name or a time.
#[derive(FromPyObject)]
pub enum When {
    Version(u64),
    Back(i64),
    Snapshot(String),
    Time(SystemTime),
}

/// The state to read.
pub fn as_of(when: Option<When>) -> AsOf {
    match when {
        None => AsOf::Newest,
        Some(When::Version(version)) => AsOf::Version(Version(version)),
        Some(When::Back(back)) => AsOf::Back(back.unsigned_abs() - 1),
        Some(When::Snapshot(name)) => AsOf::Snapshot(name),
        Some(When::Time(time)) => AsOf::Time(timestamp(time)),
    }
}

/// A time as the core has it.
pub fn timestamp(time: SystemTime) -> Timestamp {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// Which columns and rows to read.
pub fn scan_options(
    columns: Option<Vec<String>>,
    filter: Option<&str>,
    offset: u64,
    limit: Option<u64>,
    tail: Option<u64>,
    native: bool,
) -> PyResult<ScanOptions> {
    let filter = filter.map(Filter::parse).transpose().map_err(raise)?;
    Ok(ScanOptions { columns, filter, offset, limit, tail, native, ..ScanOptions::default() })
}

/// How to look rows up by key.
pub fn lookup_options(as_of: Option<When>, columns: Option<Vec<String>>) -> LookupOptions {
    LookupOptions { as_of: self::as_of(as_of), columns, ..LookupOptions::default() }
}

/// How many versions to keep: all, a number of the last ones, or those of a number of microseconds.
pub fn retention(keep_last: Option<u64>, keep_micros: Option<u64>, keep_all: bool) -> Option<Retention> {
    match (keep_last, keep_micros, keep_all) {
        (Some(n), ..) => Some(Retention::KeepLast(n)),
        (_, Some(micros), _) => Some(Retention::KeepMicros(micros)),
        (.., true) => Some(Retention::KeepAll),
        _ => None,
    }
}

/// Numbers of versions by path.
pub struct Versions(pub Vec<(String, Vec<Version>)>);

impl<'py> FromPyObject<'_, 'py> for Versions {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let given: BTreeMap<String, Vec<u64>> = object.extract()?;
        let numbers = |versions: Vec<u64>| versions.into_iter().map(Version).collect();
        Ok(Self(given.into_iter().map(|(path, versions)| (path, numbers(versions))).collect()))
    }
}

/// What to do where something is in the place of what is copied or moved.
pub fn existing(replace: bool) -> drumlin::Existing {
    match replace {
        true => drumlin::Existing::Replace,
        false => drumlin::Existing::Refuse,
    }
}

/// What to do about missing items.
pub fn missing(ok: bool) -> Missing {
    if ok { Missing::Ignore } else { Missing::Refuse }
}

/// The columns of an index, and how it is made.
pub fn index_options(
    columns: &[String],
    condition: Option<&str>,
    (unique, deferred): (bool, bool),
) -> PyResult<(Vec<Expression>, IndexOptions)> {
    let columns = columns.iter().map(|text| Expression::parse(text)).collect::<Result<_, _>>().map_err(raise)?;
    let condition = condition.map(Filter::parse).transpose().map_err(raise)?;
    Ok((columns, IndexOptions { condition, unique, deferred, ..IndexOptions::default() }))
}

/// How much a checkpoint does.
pub fn plan_options(dead_share_min: Option<f64>, budget: Option<f64>) -> PlanOptions {
    let default = PlanOptions::default();
    PlanOptions {
        dead_share_min: dead_share_min.unwrap_or(default.dead_share_min),
        budget: budget.unwrap_or(default.budget),
        ..default
    }
}

/// Which columns rows may have.
pub fn schema_mode(evolve: bool) -> SchemaMode {
    if evolve { SchemaMode::Evolve } else { SchemaMode::Strict }
}
