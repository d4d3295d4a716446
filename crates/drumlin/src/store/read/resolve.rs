//! Which table a path names, and what of it is read: in a state, without I/O.

use std::borrow::Cow;
use std::sync::Arc;

use crate::base::{Error, ErrorKind, Result, TableId, Timestamp, Version, nearest};
use crate::catalog::{Path, Pattern, Snapshot, State};
use crate::filter::time_of;
use crate::store::Store;
use crate::table::{ReadPoint, TableState};

/// Which state of a table to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AsOf {
    /// The newest version.
    #[default]
    Newest,
    /// A version by number.
    Version(Version),
    /// A version by how many are newer, of those that are listed. 0 is the newest version, without the rows that were written
    /// by key since.
    Back(u64),
    /// What was the newest at a time: a version and, of a keyed table, the rows written since by the commits up to that
    /// time. It is the same whenever it is read, as long as the versions before and after that time are kept; `NotFound` if
    /// the one before is not. A time that has not come yet shows the newest.
    Time(Timestamp),
    /// The version that a snapshot holds. If no snapshot has that name, and it is a date or a time by ISO 8601, what was the
    /// newest then: a date is its first instant, and what has no offset is in UTC.
    Snapshot(String),
}

/// What begins a text that is the name of a snapshot, whatever it looks like.
const SNAPSHOT: &str = "snapshot:";

/// The same as [`AsOf::parse`].
impl From<&str> for AsOf {
    fn from(text: &str) -> Self {
        Self::parse(text)
    }
}

impl From<Version> for AsOf {
    fn from(version: Version) -> Self {
        Self::Version(version)
    }
}

impl From<u64> for AsOf {
    fn from(version: u64) -> Self {
        Self::Version(Version(version))
    }
}

/// A number below 0 counts from the newest version, which is -1.
impl From<i64> for AsOf {
    fn from(version: i64) -> Self {
        match u64::try_from(version) {
            Ok(version) => version.into(),
            Err(_) => Self::Back(version.unsigned_abs() - 1),
        }
    }
}

impl From<i32> for AsOf {
    fn from(version: i32) -> Self {
        i64::from(version).into()
    }
}

impl From<Timestamp> for AsOf {
    fn from(time: Timestamp) -> Self {
        Self::Time(time)
    }
}

impl AsOf {
    /// What a text stands for: a number is a version, counted from the newest if it is below 0 (`-1` is the newest); anything
    /// else is a snapshot or a time. A snapshot whose name looks like a number is written `snapshot:3`.
    ///
    /// ```
    /// use drumlin::{AsOf, Version};
    ///
    /// assert_eq!(AsOf::parse("3"), AsOf::Version(Version(3)));
    /// assert_eq!(AsOf::parse("-1"), AsOf::Back(0));
    /// assert_eq!(AsOf::parse("snapshot:3"), AsOf::Snapshot("3".to_owned()));
    /// ```
    pub fn parse(text: &str) -> AsOf {
        match (text.parse::<u64>(), text.parse::<i64>()) {
            (Ok(version), _) if !text.starts_with('+') => AsOf::Version(Version(version)),
            (_, Ok(back)) if back < 0 => AsOf::Back(back.unsigned_abs() - 1),
            _ => AsOf::Snapshot(text.strip_prefix(SNAPSHOT).unwrap_or(text).to_owned()),
        }
    }

    /// The same, where a text that names no snapshot in `state` but is a time has become that.
    pub(in crate::store) fn settled(&self, state: &State) -> Cow<'_, AsOf> {
        match self {
            AsOf::Snapshot(name) if !state.snapshots.contains_key(name) => {
                time_of(name).map_or(Cow::Borrowed(self), |time| Cow::Owned(AsOf::Time(time)))
            }
            _ => Cow::Borrowed(self),
        }
    }
}

/// The table at `path`, or `NotFound` with a hint.
pub(in crate::store) fn table_at(state: &State, path: &Path) -> Result<Arc<TableState>> {
    state.table_at(path)?.ok_or_else(|| {
        let hint = match (state.tree.get(path.as_str()), near_table(state, path)) {
            (Some(_), _) => "; there is a node, but it has no table".to_owned(),
            (None, Some(near)) => format!("; did you mean '{near}'?"),
            (None, None) => String::new(),
        };
        Error::not_found(format!("no table at '{path}'{hint}"))
    })
}

/// How many tables are compared with a path at which there is none.
const COMPARED_MAX: usize = 500;

/// A table whose path is like one that has none: beside it, or else among the first of all.
pub(in crate::store) fn near_table(state: &State, path: &Path) -> Option<Path> {
    let among = |pattern: &Pattern, part: fn(&Path) -> &str| {
        let tables: Vec<&Path> = state.ids_matching(pattern).take(COMPARED_MAX).map(|(path, _)| path).collect();
        let near = nearest(part(path), tables.iter().map(|path| part(path)))?;
        tables.into_iter().find(|path| part(path) == near).cloned()
    };
    let all = Pattern::new("**").ok()?;
    let beside = path.parent().map(|parent| among(&Pattern::below(&parent), Path::name));
    beside.flatten().or_else(|| among(&all, Path::as_str))
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
pub(in crate::store) fn resolve(state: &State, path: &Path, as_of: &AsOf) -> Result<(Arc<TableState>, SeenVersion)> {
    let as_of = &*as_of.settled(state);
    if let AsOf::Snapshot(name) = as_of {
        let snapshot = snapshot_of(state, name)?;
        let absent = || Error::not_found(format!("snapshot '{name}' has no table at '{path}'"));
        let (id, version) = state.held_at(name, path)?.ok_or_else(absent)?;
        let gone = || Error::corrupt(format!("snapshot '{name}' has table {id}, which does not exist"));
        let seen = SeenVersion { version, since: false, instant: Some(snapshot.time) };
        return Ok((state.table(id)?.ok_or_else(gone)?, seen));
    }
    let table = &table_at(state, path)?;
    let listed = |version: &Version| table.versions.iter().any(|record| record.version == *version);
    let seen = match as_of {
        AsOf::Version(version) if listed(version) => SeenVersion::numbered(*version),
        AsOf::Back(back) => {
            let versions = || table.versions.iter().rev();
            let found = usize::try_from(*back).ok().and_then(|back| versions().nth(back));
            let missing = || {
                let (asked, n) = (u128::from(*back) + 1, table.versions.len());
                Error::not_found(format!("'{path}' has no version -{asked}; it has {n} versions, the newest is -1"))
            };
            SeenVersion::numbered(found.ok_or_else(missing)?.version)
        }
        AsOf::Version(version) => {
            let newest = table.newest().map_or(Version(0), |newest| newest.version);
            let (n, path) = (table.versions.len(), path.as_str());
            return Err(Error::not_found(format!(
                "'{path}' has no version {version}; it has {n} versions, the newest is {newest}"
            )));
        }
        // No commit is later.
        AsOf::Time(time) if *time >= state.time => SeenVersion { instant: Some(*time), ..SeenVersion::newest(table) },
        AsOf::Time(time) => {
            let version = table.at(*time).map_err(|e| e.context(format!("'{path}'")))?.0;
            SeenVersion { version, since: false, instant: Some(*time) }
        }
        AsOf::Newest | AsOf::Snapshot(_) => SeenVersion::newest(table),
    };
    Ok((table.clone(), seen))
}

/// The snapshot of that name; `NotFound` if there is none, since it is no time either.
pub(in crate::store) fn snapshot_of<'a>(state: &'a State, name: &str) -> Result<&'a Arc<Snapshot>> {
    state.snapshots.get(name).ok_or_else(|| {
        let near = nearest(name, state.snapshots.keys().map(String::as_str));
        let hint = near.map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
        Error::not_found(format!(
            "snapshot '{name}' does not exist{hint} (a time looks like 2026-01-31 or 2026-01-31T16:00:00Z)"
        ))
    })
}

/// What the snapshot of that name shows at the paths that are `wanted`, in their order.
pub(in crate::store) fn held_in(
    state: &State,
    name: &str,
    wanted: impl Fn(&Path) -> bool,
) -> Result<Vec<(Path, (TableId, Version))>> {
    snapshot_of(state, name)?;
    state.held_where(name, wanted)
}

/// A version of a table as it is seen.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct SeenVersion {
    pub version: Version,
    /// Whether rows that were written by key since are seen, too.
    pub since: bool,
    /// The time that was asked for: rows that had expired then are not seen. By default those that had when the version was made, or
    /// have now.
    instant: Option<Timestamp>,
}

impl SeenVersion {
    fn newest(table: &TableState) -> Self {
        Self { version: table.newest().expect("every table has a version").version, since: true, instant: None }
    }

    fn numbered(version: Version) -> Self {
        Self { version, since: false, instant: None }
    }

    /// What is seen of `table`, a table of `state`.
    pub fn read_point(self, store: &Store, state: &State, table: &TableState) -> ReadPoint {
        let Self { version, since, instant } = self;
        match since {
            // A time that has not come yet is now.
            true => {
                let now = newest(store, state, table);
                ReadPoint { instant: now.instant.map(|now| instant.map_or(now, |asked| now.min(asked))), ..now }
            }
            false => {
                let made = numbered(state, table, version);
                ReadPoint { instant: instant.or(made.instant), ..made }
            }
        }
    }
}

/// What the newest version sees, and the rows written since; without those that have expired by now.
pub(in crate::store) fn newest(store: &Store, state: &State, table: &TableState) -> ReadPoint {
    let version = table.newest().expect("every table has a version").version;
    // Usually nobody asks what time it is.
    let expires = table.expires();
    ReadPoint { version, since: true, seq: state.seq, instant: expires.then(|| store.instant(state)) }
}

/// What a version sees; without the rows that had expired when it was made.
pub(in crate::store) fn numbered(state: &State, table: &TableState, version: Version) -> ReadPoint {
    let instant = table.version(version).map(|record| record.time);
    ReadPoint { version, since: false, seq: state.seq, instant }
}

impl Store {
    /// The same state, in which rows of all tables are seen as at one instant.
    pub(in crate::store) fn at_one_instant<'s>(&self, state: &'s State) -> Cow<'s, State> {
        match state.may_expire_rows() {
            true => Cow::Owned(state.clone().seen_at(self.instant(state))),
            false => Cow::Borrowed(state),
        }
    }

    /// The instant at which rows that expire are seen in `state`: one in a transaction; else now, and never before the last commit.
    pub(in crate::store) fn instant(&self, state: &State) -> Timestamp {
        state.instant().unwrap_or_else(|| self.commits().times().instant(state.time))
    }
}
