//! The followers of tables: consumers of what commits change in them that go on where they were, and for which versions are kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::base::planted::{Bug, planted};
use crate::base::{TableId, Timestamp, Version};
use crate::table::TableState;

/// A follower of a table: up to where it is done, see [`crate::FeedPlace`], and what is kept for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Follower {
    /// The last version of which it has all; `None` if it has none.
    pub version: Option<Version>,
    /// The time of the last commit since then that wrote rows by key and of which it has all.
    pub since: Option<Timestamp>,
    /// How many rows of the next commit it has.
    pub rows: u64,
    /// How long versions are kept for it after they were superseded, in microseconds.
    pub keep_micros: u64,
    /// How many consumers have taken it up: only the last one moves it on.
    pub epoch: u64,
}

/// Followers by table and name.
#[derive(Clone, Debug, Default)]
pub struct Followers(pub(super) OrdMap<TableId, Arc<BTreeMap<String, Follower>>>);

impl Followers {
    /// A follower of a table.
    pub fn get(&self, table: TableId, name: &str) -> Option<&Follower> {
        self.0.get(&table)?.get(name)
    }

    /// The followers of a table, by name.
    pub fn of(&self, table: TableId) -> impl Iterator<Item = (&String, &Follower)> {
        self.0.get(&table).into_iter().flat_map(|followers| followers.iter())
    }

    /// Makes or changes one, or removes it.
    pub(super) fn put(&mut self, table: TableId, name: &str, follower: Option<&Follower>) {
        let followers = Arc::make_mut(self.0.entry(table).or_default());
        match follower {
            Some(follower) => drop(followers.insert(name.to_owned(), follower.clone())),
            None => drop(followers.remove(name)),
        }
        if followers.is_empty() {
            self.0.remove(&table);
        }
    }

    /// Forgets a table that is gone for good.
    pub(super) fn forget(&mut self, table: TableId) {
        self.0.remove(&table);
    }

    /// Takes those out of `expired`, versions of a table that its retention removes at `now`, that a follower still needs.
    pub(super) fn spare(&self, table: &TableState, expired: &mut Vec<Version>, now: Timestamp) {
        if planted(Bug::ForgetFollowers) {
            return;
        }
        for (_, follower) in self.of(table.id) {
            let since = now.0.saturating_sub(i64::try_from(follower.keep_micros).unwrap_or(i64::MAX));
            let superseded = |version: Version| {
                let at = table.versions.binary_search_by_key(&version, |record| record.version);
                at.ok().and_then(|at| table.versions.get(at + 1)).map_or(i64::MAX, |next| next.time.0)
            };
            expired
                .retain(|version| follower.version.is_some_and(|done| *version < done) || superseded(*version) < since);
        }
    }
}
