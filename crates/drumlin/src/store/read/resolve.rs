//! Which table a path names, and what of it is read: in a state, without I/O.

use std::sync::Arc;

use crate::base::{Error, ErrorKind, Result, Timestamp, Version};
use crate::catalog::{Path, State};
use crate::table::{ReadPoint, TableState};

/// Which state of a table to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AsOf {
    /// The newest version.
    #[default]
    Newest,
    /// A version by number.
    Version(Version),
    /// What was the newest at a time: a version and, of a keyed table, the rows written since by the commits up to that
    /// time. It is the same whenever it is read, as long as the versions before and after that time are kept; `NotFound` if
    /// the one before is not. A time that has not come yet shows the newest.
    Time(Timestamp),
    /// The version that a snapshot holds.
    Snapshot(String),
}

/// The table at `path`, or `NotFound` with a hint.
pub(in crate::store) fn table_at(state: &State, path: &Path) -> Result<Arc<TableState>> {
    state.table_at(path)?.ok_or_else(|| {
        let node = if state.tree.get(path.as_str()).is_some() { "; there is a node, but it has no table" } else { "" };
        Error::not_found(format!("no table at '{path}'{node}"))
    })
}

/// Whether a table was made after the time that is asked for: then it is not part of what was there.
pub(in crate::store) fn is_younger(table: &TableState, as_of: &AsOf) -> bool {
    match (as_of, table.versions.front()) {
        (AsOf::Time(time), Some(oldest)) => oldest.version == Version(0) && oldest.time > *time,
        _ => false,
    }
}

/// Adds the path to an error about a table's bytes, or about rows for it.
pub(in crate::store) fn of_table(path: &Path, error: Error) -> Error {
    match error.kind() {
        ErrorKind::Corrupt | ErrorKind::Internal | ErrorKind::SchemaMismatch => error.context(format!("'{path}'")),
        _ => error,
    }
}

/// The table that `path` names in `state`, and the version that `as_of` sees of it; for a time, without the rows written by
/// key since that version.
pub(in crate::store) fn resolve(state: &State, path: &Path, as_of: &AsOf) -> Result<(Arc<TableState>, ReadPoint)> {
    if let AsOf::Snapshot(name) = as_of {
        let missing = || {
            // A day, maybe with a time: 2024-01-02 03:04, 20240102.
            let day: String = name.chars().take(10).filter(|c| *c != '-' && *c != '/').collect();
            let is_day = day.len() >= 8 && day.bytes().take(8).all(|c| c.is_ascii_digit());
            let hint = if is_day { "; give a time as a datetime, not as a string" } else { "" };
            Error::not_found(format!("snapshot '{name}' does not exist{hint}"))
        };
        let snapshot = state.snapshots.get(name).ok_or_else(missing)?;
        let absent = || Error::not_found(format!("snapshot '{name}' has no table at '{path}'"));
        let (id, version) = state.held_at(snapshot, path).ok_or_else(absent)?;
        let gone = || Error::corrupt(format!("snapshot '{name}' has table {id}, which does not exist"));
        return Ok((state.table(id)?.ok_or_else(gone)?, numbered(state, version)));
    }
    let table = &table_at(state, path)?;
    let listed = |version: &Version| table.versions.iter().any(|record| record.version == *version);
    let read_point = match as_of {
        AsOf::Version(version) if listed(version) => numbered(state, *version),
        AsOf::Version(version) => {
            let newest = table.newest().map_or(Version(0), |newest| newest.version);
            let (n, path) = (table.versions.len(), path.as_str());
            return Err(Error::not_found(format!(
                "'{path}' has no version {version}; it has {n} versions, the newest is {newest}"
            )));
        }
        // No commit is later.
        AsOf::Time(time) if *time >= state.time => newest(state, table),
        AsOf::Time(time) => numbered(state, table.at(*time).map_err(|e| e.context(format!("'{path}'")))?.0),
        AsOf::Newest | AsOf::Snapshot(_) => newest(state, table),
    };
    Ok((table.clone(), read_point))
}

/// What the newest version sees, and the rows written since.
pub(in crate::store) fn newest(state: &State, table: &TableState) -> ReadPoint {
    let version = table.newest().expect("every table has a version").version;
    ReadPoint { version, since: true, seq: state.seq }
}

/// What a version sees.
pub(in crate::store) fn numbered(state: &State, version: Version) -> ReadPoint {
    ReadPoint { version, since: false, seq: state.seq }
}
