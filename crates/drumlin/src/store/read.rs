//! Reading versions of tables.

use std::any::Any;
use std::sync::Arc;

use arrow::array::RecordBatch;

use super::write::table_at;
use super::{Pin, Store};
use crate::base::{Error, Result, Timestamp, Version};
use crate::catalog::{Path, State};
use crate::table::{Rows, Scan, ScanOptions, Sight, Table};

/// Which state of a table to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AsOf {
    /// The newest version.
    #[default]
    Newest,
    /// A version by number.
    Version(Version),
    /// The version that was the newest at a time.
    Time(Timestamp),
    /// The version that a snapshot holds.
    Snapshot(String),
}

/// What to read.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Which version. Default: the newest.
    pub as_of: AsOf,
    /// Which columns and rows.
    pub scan: ScanOptions,
}

impl Store {
    /// Reads a version of the table at `path`, lazily: batches of at most 122,880 rows (more where the row groups of a
    /// sorted table overlap), decoded ahead on the CPU pool.
    ///
    /// What commits later does not change what the scan gives, and its blocks are not reclaimed while it lives.
    pub fn read(&self, path: &str, options: &ReadOptions) -> Result<Scan> {
        let (state, pin) = self.pinned_state()?;
        self.scan(&state, &pin, path, options)
    }

    /// Reads many tables as of the same instant.
    pub fn read_many(&self, paths: &[String], options: &ReadOptions) -> Result<Vec<Scan>> {
        let (state, pin) = self.pinned_state()?;
        let scans: Vec<Scan> =
            paths.iter().map(|path| self.scan(&state, &pin, path, options)).collect::<Result<_>>()?;
        if paths.len() > 1 {
            // Each request takes its time, however small: all that is small comes by a few, in parallel.
            let tables = paths.iter().map(|path| resolve(&state, &Path::new(path)?, &options.as_of));
            let tables: Vec<(Arc<Table>, Sight)> = tables.collect::<Result<_>>()?;
            let seen = tables.iter().flat_map(|(table, sight)| {
                table.groups.iter().filter(|group| table.visible(group, sight.version) != Rows::None)
            });
            let addresses = seen.map(|group| group.address);
            self.inner.reader.warm(&self.inner.env.pool, addresses, self.inner.options.cache_bytes / 2)?;
        }
        Ok(scans)
    }

    /// Reads a version of the table at `path` into memory.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    /// # let store = drumlin::Store::open("memory://", Default::default())?;
    /// # let rows = RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef)]).unwrap();
    /// # store.write("numbers", rows, &Default::default())?;
    /// let batches = store.collect("numbers", &Default::default())?;
    /// assert_eq!(batches[0].num_rows(), 3);
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    pub fn collect(&self, path: &str, options: &ReadOptions) -> Result<Vec<RecordBatch>> {
        self.read(path, options)?.collect()
    }

    pub(super) fn scan(&self, state: &State, pin: &Arc<Pin>, path: &str, options: &ReadOptions) -> Result<Scan> {
        let path = Path::new(path)?;
        let (table, sight) = resolve(state, &path, &options.as_of)?;
        let pin: Arc<dyn Any + Send + Sync> = pin.clone();
        let (reader, pool) = (self.inner.reader.clone(), self.inner.env.pool.clone());
        Scan::new(reader, pool, table, sight, &options.scan, Some(pin)).map_err(|e| e.context(format!("'{path}'")))
    }
}

/// The table that `path` means in `state`, and what `as_of` sees of it.
pub(super) fn resolve(state: &State, path: &Path, as_of: &AsOf) -> Result<(Arc<Table>, Sight)> {
    if let AsOf::Snapshot(name) = as_of {
        let missing = || Error::not_found(format!("snapshot '{name}' does not exist"));
        let snapshot = state.snapshots.get(name).ok_or_else(missing)?;
        let absent = || Error::not_found(format!("snapshot '{name}' holds no table at '{path}'"));
        let (id, version) = snapshot.pins.get(path).ok_or_else(absent)?;
        let gone = || Error::corrupt(format!("snapshot '{name}' holds table {id}, which is gone"));
        return Ok((state.table(*id).ok_or_else(gone)?.clone(), numbered(state, *version)));
    }
    let table = table_at(state, path)?;
    let listed = |version: &Version| table.versions.iter().any(|record| record.version == *version);
    let sight = match as_of {
        AsOf::Version(version) if listed(version) => numbered(state, *version),
        AsOf::Version(version) => {
            let newest = table.newest().map_or(Version(0), |newest| newest.version);
            let (n, path) = (table.versions.len(), path.as_str());
            return Err(Error::not_found(format!(
                "'{path}' has no version {version}; it has {n} versions, the newest is {newest}"
            )));
        }
        // No commit is as young as that.
        AsOf::Time(time) if *time >= state.time => newest(state, table),
        AsOf::Time(time) => {
            let none = || Error::not_found(format!("'{path}' has no version as old as that"));
            numbered(state, table.version_at(*time).ok_or_else(none)?.version)
        }
        AsOf::Newest | AsOf::Snapshot(_) => newest(state, table),
    };
    Ok((table.clone(), sight))
}

/// What the newest version sees, and the rows written since.
pub(super) fn newest(state: &State, table: &Table) -> Sight {
    let version = table.newest().expect("every table has a version").version;
    Sight { version, since: true, seq: state.seq }
}

/// What a version sees.
pub(super) fn numbered(state: &State, version: Version) -> Sight {
    Sight { version, since: false, seq: state.seq }
}
