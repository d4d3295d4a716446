//! Versions, snapshots and retention.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::base::{Cancel, Error, Result, Seq, TableId, Timestamp, Version};
use crate::block::Address;
use crate::catalog::{Effect, Path, Pattern, Retention, State};
use crate::store::Store;
use crate::store::read::resolve::{numbered, table_at};
use crate::table::{Note, ReadPoint, TableState, Turnover, VersionKind, VersionRecord, count_rows};

/// What to do about paths and patterns that name no table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// Refuse the whole call, naming every one.
    #[default]
    Refuse,
    /// Skip them.
    Ignore,
}

/// One version of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionInfo {
    /// Its number.
    pub version: Version,
    /// The commit that made it.
    pub seq: Seq,
    /// When.
    pub time: Timestamp,
    /// How.
    pub kind: VersionKind,
    /// Its rows, with those that have expired and are still stored.
    pub rows: u64,
    /// The note of its writer, as JSON text.
    pub metadata: Option<String>,
    /// How many rows it added and removed; `None` where rows written by key were in memory and nobody has counted yet.
    pub turnover: Option<Turnover>,
    /// What its writer said, and how long it took.
    pub note: Note,
    /// The snapshots that hold it.
    pub snapshots: Vec<String>,
}

impl VersionInfo {
    pub(in crate::store) fn of(record: &VersionRecord, snapshots: Vec<String>) -> Self {
        Self {
            version: record.version,
            seq: record.seq,
            time: record.time,
            kind: record.kind,
            rows: record.rows,
            metadata: record.metadata.clone(),
            turnover: record.story.as_ref().and_then(|story| story.rows),
            note: record.story.as_ref().map(|story| story.note.clone()).unwrap_or_default(),
            snapshots,
        }
    }
}

/// A snapshot. As long as it is there, it keeps in memory what the store knew when it was asked for.
#[derive(Clone)]
pub struct SnapshotInfo {
    /// Its name.
    pub name: String,
    /// When it was taken.
    pub time: Timestamp,
    /// How many tables it held then.
    pub tables: u64,
    state: Arc<State>,
}

impl SnapshotInfo {
    fn of(state: &Arc<State>, name: &str) -> Option<Self> {
        let (time, tables) = (state.snapshots.get(name)?.time, state.held_len(name));
        Some(Self { name: name.to_owned(), time, tables, state: state.clone() })
    }

    /// What it holds, in path order. O(that).
    ///
    /// # Errors
    /// `Corrupt` if the record of a table is damaged.
    pub fn versions(&self) -> Result<Vec<(String, Version)>> {
        let held = self.state.held_where(&self.name, |_| true)?;
        Ok(held.into_iter().map(|(path, (_, version))| (path.to_string(), version)).collect())
    }
}

impl std::fmt::Debug for SnapshotInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, time, tables, state: _ } = self;
        f.debug_struct("SnapshotInfo")
            .field("name", name)
            .field("time", time)
            .field("tables", tables)
            .finish_non_exhaustive()
    }
}

/// What deleting versions did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionsReport {
    /// What was deleted, by the table's path.
    pub versions: Vec<(String, Vec<Version>)>,
    /// What did not exist, where that is ignored.
    pub missing: Vec<(String, Vec<Version>)>,
    /// Bytes that a reclaim can free, unless other tables share their blocks.
    pub bytes: u64,
}

/// Which versions a snapshot holds.
#[derive(Clone, Copy, Debug)]
pub enum SnapshotOf<'a> {
    /// The newest ones of all tables that a pattern matches.
    Newest(&'a str),
    /// Those of the tables at these paths with these numbers, whichever are the newest.
    Versions(&'a [(String, Version)]),
    /// What another snapshot holds, also of tables that were dropped since, and these versions; at a path that both name, these.
    Including(&'a str, &'a [(String, Version)]),
}

impl<'a> From<&'a str> for SnapshotOf<'a> {
    fn from(pattern: &'a str) -> Self {
        Self::Newest(pattern)
    }
}

impl<'a> From<&'a String> for SnapshotOf<'a> {
    fn from(pattern: &'a String) -> Self {
        Self::Newest(pattern)
    }
}

const NAME_BYTES_MAX: usize = 255;

impl Store {
    /// The newest version of the table at `path`, after a commit.
    pub(in crate::store) fn newest_info(&self, state: &State, path: &Path) -> Result<VersionInfo> {
        let table = &table_at(state, path)?;
        let newest = table.newest().expect("every table has a version");
        let mut info = VersionInfo::of(newest, Vec::new());
        if table.depends_on_parts(newest.version) {
            // The commit is done, even if its rows cannot be counted.
            info.rows =
                self.count_rows(table, numbered(state, table, newest.version).with_expired()).unwrap_or(newest.rows);
        }
        Ok(info)
    }

    /// How many rows are seen of a table.
    pub(in crate::store) fn count_rows(&self, table: &TableState, read_point: ReadPoint) -> Result<u64> {
        count_rows(self.reader(), &self.env().pool, table, read_point, &Cancel::default())
    }

    /// Deletes versions of tables, in one commit.
    pub(in crate::store) fn delete_versions_checked(
        &self,
        checked: &[(Path, Vec<Version>)],
        missing: Missing,
    ) -> Result<VersionsReport> {
        self.call()?.attempt(|| {
            // What is deleted must lie in row groups first, once it is known that it may be deleted.
            delete_versions(&*self.current()?, checked.to_vec(), missing)?;
            self.flush_rows_of(checked)?;
            let checked = checked.to_vec();
            Ok(self.commit_rows_in_turn(move |draft| {
                let (effects, mut report) = delete_versions(draft.state(), checked.clone(), missing)?;
                let before = bytes_deleted_from(draft.state(), &effects)?;
                draft.apply(effects.clone())?;
                report.bytes = before.saturating_sub(bytes_deleted_from(draft.state(), &effects)?);
                Ok(report)
            }))
        })
    }

    /// Names versions of tables; they stay readable until the snapshot is dropped. Given a pattern, the newest versions of
    /// all tables that match it.
    ///
    /// # Errors
    /// `AlreadyExists` if the name is taken, `NotFound` if no table matches, or a table or version does not exist,
    /// `InvalidArgument` if the pattern is none, or a path is none or comes twice.
    pub fn snapshot<'a>(&self, name: &str, of: impl Into<SnapshotOf<'a>>) -> Result<SnapshotInfo> {
        check_name(name, |name| format!("snapshot name '{name}':"))?;
        let wanted = name.to_owned();
        let after = match of.into() {
            SnapshotOf::Newest(pattern) => {
                let pattern = Pattern::new(pattern)?;
                self.commit_effects(move |state| hold_newest(state, &wanted, &pattern))?
            }
            SnapshotOf::Versions([]) => {
                return Err(Error::invalid("the snapshot has no versions; expected at least one path with a version"));
            }
            SnapshotOf::Versions(versions) => {
                let versions = checked_versions(versions)?;
                self.commit_effects(move |state| hold_versions(state, &wanted, None, &versions))?
            }
            SnapshotOf::Including(other, versions) => {
                let (other, versions) = (other.to_owned(), checked_versions(versions)?);
                self.commit_effects(move |state| hold_versions(state, &wanted, Some(&other), &versions))?
            }
        };
        Ok(SnapshotInfo::of(&after, name).expect("just made"))
    }

    /// Drops a snapshot. What it alone held becomes reclaimable.
    ///
    /// # Errors
    /// `NotFound` if there is none of that name.
    pub fn drop_snapshot(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.commit_effects(move |_| Ok(vec![Effect::DropSnapshot { name: name.clone() }]))?;
        Ok(())
    }

    /// All snapshots, by name.
    ///
    /// # Errors
    /// `Closed`.
    pub fn snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        let state = self.state()?;
        Ok(state.snapshots.keys().filter_map(|name| SnapshotInfo::of(&state, name)).collect())
    }

    /// Sets how many versions the tables at `path` and below it keep; `None` inherits from the node above. `path` may
    /// end with `/**` for emphasis: retention always applies to everything below. `**` alone is the whole store.
    ///
    /// Takes effect for each table with its next version, and for all of them with the next checkpoint.
    ///
    /// # Errors
    /// `InvalidArgument` if `path` is none, or nothing would be kept.
    pub fn set_retention(&self, path: &str, retention: Option<Retention>) -> Result<()> {
        if path == "**" {
            self.commit_effects(move |_| Ok(vec![Effect::SetDefaultRetention { retention }]))?;
            return Ok(());
        }
        let path = Path::new(path.strip_suffix("/**").unwrap_or(path))?;
        self.commit_effects(move |_| Ok(vec![Effect::SetRetention { path: path.clone(), retention }]))?;
        Ok(())
    }

    /// The retention in effect at `path`; `**` is the whole store.
    ///
    /// # Errors
    /// `InvalidArgument` if `path` is none.
    pub fn retention(&self, path: &str) -> Result<Retention> {
        if path == "**" {
            return Ok(self.state()?.default_retention.unwrap_or_default());
        }
        Ok(self.state()?.retention_at(&Path::new(path)?))
    }
}

/// What makes a snapshot of the newest versions of all tables that match. O(tables with rows in memory), and the nodes that the pattern passes.
fn hold_newest(state: &State, name: &str, pattern: &Pattern) -> Result<Vec<Effect>> {
    let tables = state.count_matching(pattern);
    if tables == 0 {
        return Err(Error::not_found(format!("no table matches '{pattern}'")));
    }
    // Rows written by key since the newest version belong to the snapshot: they get a version of their own.
    let matches = |id: TableId| state.path_of(id).is_some_and(|path| pattern.matches_path(path.as_str()));
    let written = state.open_tables().filter(|table| table.active().is_some() && matches(table.id));
    let mut effects: Vec<Effect> = written.map(|table| Effect::FreezeRows { table: table.id }).collect();
    effects.push(Effect::CoverTables { name: name.to_owned(), pattern: pattern.to_string(), tables });
    Ok(effects)
}

/// What makes a snapshot of what another one holds, if one is named, and of given versions. One that is no longer listed may still be held
/// by another snapshot.
fn hold_versions(
    state: &State,
    name: &str,
    including: Option<&str>,
    versions: &BTreeMap<Path, Version>,
) -> Result<Vec<Effect>> {
    let mut pins: BTreeMap<Path, (TableId, Version)> = BTreeMap::new();
    if let Some(other) = including {
        let missing = || Error::not_found(format!("snapshot '{other}' does not exist"));
        state.snapshots.get(other).ok_or_else(missing)?;
        pins.extend(state.held_where(other, |_| true)?);
    }
    for (path, version) in versions {
        let table = table_at(state, path)?;
        table.record(*version).map_err(|e| e.context(format!("'{path}'")))?;
        pins.insert(path.clone(), (table.id, *version));
    }
    let pins = pins.into_iter().map(|(path, (table, version))| (path, table, version)).collect();
    Ok(vec![Effect::PutSnapshot { name: name.to_owned(), pins }])
}

/// The versions that a snapshot is to hold, by path.
fn checked_versions(versions: &[(String, Version)]) -> Result<BTreeMap<Path, Version>> {
    let mut checked = BTreeMap::new();
    for (path, version) in versions {
        if checked.insert(Path::new(path)?, *version).is_some() {
            return Err(Error::invalid(format!("'{path}' is given twice; a snapshot has one version of a table")));
        }
    }
    Ok(checked)
}

/// Checks the name of a snapshot or projection; `refusal` is how a message about a bad one begins.
pub(in crate::store) fn check_name(name: &str, refusal: impl Fn(std::str::EscapeDebug<'_>) -> String) -> Result<()> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        return Err(Error::invalid(format!(
            "{} expected 1 to {NAME_BYTES_MAX} bytes without control characters",
            refusal(name.escape_debug())
        )));
    }
    Ok(())
}

/// Paths and versions as they were given, checked without a state.
pub(in crate::store) fn check_versions(versions: &[(String, Vec<Version>)]) -> Result<Vec<(Path, Vec<Version>)>> {
    let mut checked: Vec<(Path, Vec<Version>)> = Vec::with_capacity(versions.len());
    let mut seen = BTreeSet::new();
    for (path, versions) in versions {
        let path = Path::new(path)?;
        if versions.is_empty() {
            return Err(Error::invalid(format!("'{path}': the list of versions is empty; name those to delete")));
        }
        if !seen.insert(path.clone()) {
            return Err(Error::invalid(format!("'{path}' is given twice in one call")));
        }
        let mut versions = versions.clone();
        versions.sort_unstable();
        versions.dedup();
        checked.push((path, versions));
    }
    Ok(checked)
}

/// The effects that delete versions of the tables of `state`, and what they do.
pub(in crate::store) fn delete_versions(
    state: &State,
    checked: Vec<(Path, Vec<Version>)>,
    missing: Missing,
) -> Result<(Vec<Effect>, VersionsReport)> {
    let mut report = VersionsReport::default();
    let mut effects = Vec::with_capacity(checked.len());
    let mut named = Vec::new();
    for (path, versions) in checked {
        let table = state.table_at(&path)?;
        let listed = |v: &Version| {
            table.as_ref().is_some_and(|table| table.versions.binary_search_by_key(v, |record| record.version).is_ok())
        };
        let (versions, absent): (Vec<Version>, Vec<Version>) = versions.into_iter().partition(listed);
        if !absent.is_empty() {
            match &table {
                Some(_) => named.extend(absent.iter().map(|v| format!("'{path}' version {v}"))),
                None => named.push(format!("'{path}'")),
            }
            report.missing.push((path.to_string(), absent));
        }
        let Some(table) = table.filter(|_| !versions.is_empty()) else { continue };
        if versions.len() == table.versions.len() && (missing == Missing::Ignore || named.is_empty()) {
            return Err(Error::invalid(format!(
                "'{path}': these are all its versions, but a table needs at least one; drop it instead"
            )));
        }
        let newest = table.newest().is_some_and(|newest| versions.contains(&newest.version));
        if newest && table.active().is_some() {
            // Rows written by key since then stay.
            effects.push(Effect::FreezeRows { table: table.id });
        }
        effects.push(Effect::DeleteVersions { table: table.id, versions: versions.clone() });
        report.versions.push((path.to_string(), versions));
    }
    if missing == Missing::Refuse && !named.is_empty() {
        return Err(Error::not_found(format!("these do not exist: {}; nothing was deleted", named.join(", "))));
    }
    Ok((effects, report))
}

/// Bytes of the row groups of those tables that `effects` delete versions of.
pub(in crate::store) fn bytes_deleted_from(state: &State, effects: &[Effect]) -> Result<u64> {
    // A row group that only a snapshot still needs may be recorded twice.
    let mut addresses: BTreeSet<Address> = BTreeSet::new();
    for effect in effects {
        if let Effect::DeleteVersions { table, .. } = effect
            && let Some(table) = state.table(*table)?
        {
            addresses.extend(table.addresses().copied());
        }
    }
    Ok(addresses.iter().map(Address::bytes).sum())
}
