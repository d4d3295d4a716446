//! The trash: dropped tables that can still be restored.

use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};

use super::Path;
use crate::base::planted::{Bug, planted};
use crate::base::{TableId, Timestamp};

/// A dropped table that can still be restored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dropped {
    /// Where it was.
    pub path: Path,
    /// When it was dropped. Of tables dropped from one path, each has a time of its own, in the order of the drops.
    pub time: Timestamp,
}

/// Dropped tables by their ids. Finding one takes O(log tables).
#[derive(Clone, Debug, Default)]
pub struct Trash {
    tables: OrdMap<TableId, Dropped>,
    /// The same by path and time; derived from it.
    paths: OrdSet<(Path, Timestamp, TableId)>,
}

impl Trash {
    pub(super) fn of(tables: OrdMap<TableId, Dropped>) -> Self {
        let paths = tables.iter().map(|(id, dropped)| (dropped.path.clone(), dropped.time, *id)).collect();
        Self { tables, paths }
    }

    /// The tables by their ids.
    pub fn tables(&self) -> &OrdMap<TableId, Dropped> {
        &self.tables
    }

    /// The table `id`, if it is here.
    pub fn get(&self, id: TableId) -> Option<&Dropped> {
        self.tables.get(&id)
    }

    /// Whether the table `id` is here.
    pub fn contains(&self, id: TableId) -> bool {
        self.tables.contains_key(&id)
    }

    /// The table that was last dropped from `path`.
    pub fn last_from(&self, path: &Path) -> Option<TableId> {
        self.last(path).map(|(_, id)| id)
    }

    fn last(&self, path: &Path) -> Option<(Timestamp, TableId)> {
        let end = (path.clone(), Timestamp(i64::MAX), TableId(u64::MAX));
        self.paths.range(..=end).next_back().filter(|(of, ..)| of == path).map(|(_, time, id)| (*time, *id))
    }

    /// Adds a table that is dropped from `path` at `time`: a microsecond after the one before it, if the clock has not
    /// moved since.
    pub(super) fn put(&mut self, id: TableId, path: Path, time: Timestamp) {
        let before = self.last(&path).map(|(before, _)| before).filter(|_| !planted(Bug::DropAtOnce));
        let time = before.map_or(time, |before| time.max(Timestamp(before.0.saturating_add(1))));
        self.paths.insert((path.clone(), time, id));
        self.tables.insert(id, Dropped { path, time });
    }

    /// Takes a table out; returns whether it was here.
    pub(super) fn take(&mut self, id: TableId) -> bool {
        let Some(Dropped { path, time }) = self.tables.remove(&id) else { return false };
        self.paths.remove(&(path, time, id)).is_some()
    }

    /// Whether it is the same trash. May return `false` even if nothing differs.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.tables.ptr_eq(&other.tables)
    }
}
