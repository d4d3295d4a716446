//! What snapshots hold, and what they show at a path: what was there when they were taken. A table that has been moved since keeps its
//! snapshots: they show it where it was, and where it is now unless another table was there then.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Snapshot, State};
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, TableId, Timestamp, Version};
use crate::catalog::{Path, Pattern};
use crate::table::TableState;

impl State {
    /// Names and holds versions.
    pub(super) fn put_snapshot(
        &mut self,
        name: &str,
        pins: &[(Path, TableId, Version)],
        time: Timestamp,
    ) -> Result<()> {
        if self.snapshots.contains_key(name) {
            return Err(Error::already_exists(format!("snapshot '{name}' already exists")));
        }
        for (_, id, version) in pins {
            let mut table = TableState::clone(&*self.get(*id)?);
            table.pin(*version)?;
            self.tables.put(table)?;
        }
        let pins = pins.iter().map(|(path, id, version)| (path.clone(), (*id, *version))).collect();
        self.snapshots.insert(name.to_owned(), Arc::new(Snapshot { time, pins }));
        Ok(())
    }

    /// Pins what is covered of a table whose versions or place are about to change. O(log n) if it is under no cover.
    pub(super) fn leave_covers(&mut self, id: TableId) -> Result<()> {
        if !self.covers.may_cover_any(id) || planted(Bug::KeepCovered) {
            return Ok(());
        }
        // A new table has no version before its first change.
        let table = self.get(id)?;
        let newest = table.newest().map(|newest| newest.version);
        let holds = self.covers.leave(id, self.paths.get(&id).zip(newest));
        if let Some(newest) = newest.filter(|_| holds > 0) {
            let mut table = TableState::clone(&table);
            (0..holds).try_for_each(|_| table.pin(newest))?;
            self.tables.put(table)?;
        }
        Ok(())
    }

    /// A table whose versions are about to change.
    pub(super) fn changing(&mut self, id: TableId) -> Result<Arc<TableState>> {
        self.leave_covers(id)?;
        self.get(id)
    }

    /// The versions that a snapshot names or has pinned, by path: not those of tables that it covers.
    fn pins_of(&self, name: &str) -> impl Iterator<Item = (&Path, &(TableId, Version))> {
        let named = self.snapshots.get(name).into_iter().flat_map(|snapshot| &snapshot.pins);
        named.chain(self.covers.get(name).into_iter().flat_map(|cover| self.covers.pins_of(cover)))
    }

    /// The same, at a path.
    fn pin_at(&self, name: &str, path: &Path) -> Option<(TableId, Version)> {
        let named = self.snapshots.get(name).and_then(|snapshot| snapshot.pins.get(path).copied());
        named.or_else(|| self.covers.pin_at(self.covers.get(name)?, path))
    }

    /// The versions that snapshots name or have pinned, each with the path that the table had then.
    pub fn pins(&self) -> impl Iterator<Item = (&Path, TableId, Version)> {
        self.snapshots
            .keys()
            .flat_map(|name| self.pins_of(name))
            .map(|(path, (table, version))| (path, *table, *version))
    }

    /// What the snapshot of this name holds at a path, wherever the table is now.
    pub fn held_then(&self, name: &str, path: &Path) -> Result<Option<(TableId, Version)>> {
        if let Some(there) = self.pin_at(name, path) {
            return Ok(Some(there));
        }
        let Some((cover, table)) = self.covers.get(name).zip(self.table_id_at(path)) else { return Ok(None) };
        if !self.covers.covers(cover, table, path) {
            return Ok(None);
        }
        Ok(self.get(table)?.newest().map(|newest| (table, newest.version)))
    }

    /// What it shows at a path. O(what it names or has pinned) for a table that was elsewhere.
    pub fn held_at(&self, name: &str, path: &Path) -> Result<Option<(TableId, Version)>> {
        if let Some(there) = self.held_then(name, path)? {
            return Ok(Some(there));
        }
        let Some(table) = self.table_id_at(path) else { return Ok(None) };
        let mut pins = self.pins_of(name).filter(|_| !planted(Bug::ForgetMovedPins));
        Ok(pins.find(|(_, (id, _))| *id == table).map(|(_, pin)| *pin))
    }

    /// What it shows at the paths that are `wanted`, in their order: a table that was moved only once. O(what it holds).
    pub fn held_where(&self, name: &str, wanted: impl Fn(&Path) -> bool) -> Result<Vec<(Path, (TableId, Version))>> {
        let of = |(then, (table, version)): (&Path, &(TableId, Version))| {
            let now = || self.path_of(*table).filter(|now| wanted(now) && self.pin_at(name, now).is_none());
            let path = if wanted(then) { Some(then) } else { now().filter(|_| !planted(Bug::ForgetMovedPins)) };
            Some((path?.clone(), (*table, *version)))
        };
        let mut held: Vec<_> = self.pins_of(name).filter_map(of).collect();
        if let Some(cover) = self.covers.get(name) {
            for (path, id) in self.ids_matching(&cover.pattern) {
                if self.covers.may_cover(cover, id)
                    && wanted(path)
                    && let Some(newest) = self.get(id)?.newest()
                {
                    held.push((path.clone(), (id, newest.version)));
                }
            }
        }
        held.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(held)
    }

    /// The snapshots that hold versions of `table`, which is at `path`. O(snapshots), and what those hold that named it elsewhere.
    pub fn holders_of(&self, path: &Path, table: &TableState) -> BTreeMap<Version, Vec<String>> {
        let mut holders: BTreeMap<Version, Vec<String>> = BTreeMap::new();
        if table.pins.is_empty() && !self.covers.may_cover_any(table.id) {
            return holders;
        }
        for name in self.snapshots.keys() {
            let cover = self.covers.get(name).filter(|cover| self.covers.covers(cover, table.id, path));
            let covered = cover.and_then(|_| table.newest()).map(|newest| newest.version);
            // It may have been at another path at that time; most were not.
            let at_path = || self.pin_at(name, path).filter(|(id, _)| *id == table.id);
            let elsewhere = || self.pins_of(name).find(|(_, (id, _))| *id == table.id).map(|(_, pin)| *pin);
            let pinned = || at_path().or_else(elsewhere).map(|(_, version)| version);
            let version = if table.pins.is_empty() { covered } else { covered.or_else(pinned) };
            if let Some(version) = version {
                holders.entry(version).or_default().push(name.clone());
            }
        }
        holders
    }

    /// How many tables a snapshot held when it was taken.
    pub fn held_len(&self, name: &str) -> u64 {
        let named = || self.snapshots.get(name).map_or(0, |snapshot| snapshot.pins.len() as u64);
        self.covers.get(name).map_or_else(named, |cover| cover.tables)
    }

    /// How many tables in the tree match. O(1) for all of them, and otherwise O(nodes that the pattern passes).
    pub fn count_matching(&self, pattern: &Pattern) -> u64 {
        if pattern.is_all() {
            return self.linked() as u64;
        }
        let mut walker = self.tree.walk(pattern);
        let nodes = std::iter::from_fn(|| Some(walker.advance()?.1.table().is_some()));
        nodes.filter(|is_table| *is_table).count() as u64
    }
}
