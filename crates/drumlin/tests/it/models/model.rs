//! A model of the store: plain maps and lists of versions, sharing none of its ideas.

use std::collections::BTreeMap;

use crate::columns::evolve_model::EvolvingTable;
use crate::rows::keyed_model::KeyedModel;
use crate::support::Row;

/// A table of the model: its listed versions, each with all its rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelTable {
    pub sorted: bool,
    pub versions: BTreeMap<u64, Vec<Row>>,
    pub next_version: u64,
    /// When each version was written, if the test sets the time.
    pub times: BTreeMap<u64, i64>,
}

impl ModelTable {
    pub fn newest(&self) -> &Vec<Row> {
        self.versions.values().next_back().expect("a table has a version")
    }

    pub fn add(&mut self, mut rows: Vec<Row>) {
        if self.sorted {
            rows.sort_by_key(|(id, _)| *id);
        }
        self.versions.insert(self.next_version, rows);
        self.next_version += 1;
    }
}

/// Dropped tables that can be restored, with the paths they had.
pub type Trash = Vec<(String, ModelTable)>;

/// A store of the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    pub tables: BTreeMap<String, ModelTable>,
    /// By name: path to rows.
    pub snapshots: BTreeMap<String, BTreeMap<String, Vec<Row>>>,
    /// The tables as they were, and the numbers of the versions that are held.
    pub held: BTreeMap<String, BTreeMap<String, (u64, ModelTable)>>,
    /// How many of the last versions to keep, by path.
    pub keep_last: BTreeMap<String, u64>,
    /// How many microseconds versions are kept after they were the newest, by path.
    pub keep_for: BTreeMap<String, u64>,
    /// The time, where it matters.
    pub now: i64,
    /// Whether that is exactly the time of commits, without waits in between.
    pub timed: bool,
    pub nodes: BTreeMap<String, i64>,
    /// Whether there is a projection of the nodes by their value.
    pub projected: bool,
    /// A table with a key.
    pub keyed: Option<KeyedModel>,
    /// Tables whose columns change.
    pub evolving: BTreeMap<String, EvolvingTable>,
    /// Whether rows were erased from all versions, which do not count them any more.
    pub erased: bool,
}

impl Model {
    /// The effect of a checkpoint on it.
    pub fn checkpoint(&mut self) {
        let paths: Vec<String> = self.tables.keys().cloned().collect();
        paths.iter().for_each(|path| self.expire(path));
        self.keyed.iter_mut().for_each(KeyedModel::checkpoint);
    }

    /// The effect of a reclaim on it and on what was dropped.
    pub fn reclaim(&mut self, trash: &mut Trash) {
        trash.clear();
        self.keyed.iter_mut().for_each(KeyedModel::reclaim);
    }

    /// Removes what retention does not keep.
    pub fn expire(&mut self, path: &str) {
        if let Some(table) = self.tables.get_mut(path) {
            for version in table.versions.keys() {
                table.times.entry(*version).or_insert(self.now);
            }
            if let Some(&keep) = self.keep_for.get(path) {
                let since = self.now.saturating_sub(i64::try_from(keep).unwrap_or(i64::MAX));
                let all: Vec<u64> = table.versions.keys().copied().collect();
                // Each was the newest until the next one was written.
                let old = all.windows(2).filter(|pair| table.times[&pair[1]] < since).map(|pair| pair[0]);
                old.collect::<Vec<_>>().iter().for_each(|version| drop(table.versions.remove(version)));
            }
        }
        if let (Some(&keep), Some(table)) = (self.keep_last.get(path), self.tables.get_mut(path)) {
            while table.versions.len() as u64 > keep {
                table.versions.pop_first();
            }
        }
    }
}
