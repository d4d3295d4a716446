//! What a table was at a time: notes when rows were written, and finds the version and the rows that were seen.

use std::sync::Arc;

use arrow::array::temporal_conversions::timestamp_us_to_datetime;

use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, Seq, Timestamp, Version};
use crate::block::Address;
use crate::table::memory::part::InMemory;
use crate::table::{
    ALIVE, History, Instants, MemRows, MemtablePart, ROWS_MAX, Since, TableState, VersionKind, WriteTimes,
};

/// A time in human-readable form.
fn shown(time: Timestamp) -> String {
    timestamp_us_to_datetime(time.0).map_or_else(|| time.to_string(), |moment| format!("{moment} UTC"))
}

impl TableState {
    /// Notes that rows were written by key at `time`.
    pub(in crate::table) fn note_rows(&mut self, version: Version, time: Timestamp) {
        let base = self.newest().map_or(Version(0), |newest| newest.version);
        let written = Arc::make_mut(&mut self.instants).parts.entry(version).or_insert(WriteTimes {
            base,
            first: time,
            last: time,
        });
        written.last = written.last.max(time);
    }

    /// Removes versions from the list at `time`, and records when they were the newest.
    pub(in crate::table) fn unlist(&mut self, deleted: &[Version], time: Timestamp) {
        let mut deleted: Vec<Version> = deleted.to_vec();
        deleted.sort_unstable();
        for version in deleted.into_iter().rev() {
            let Ok(at) = self.versions.binary_search_by_key(&version, |record| record.version) else { continue };
            let is_newest = at + 1 == self.versions.len();
            let first = self.first_of(version);
            self.versions.remove(at);
            let instants = Arc::make_mut(&mut self.instants);
            instants.gaps.remove(&version);
            if planted(Bug::ForgetGaps) {
                continue;
            }
            if let Some(before) = at.checked_sub(1).map(|at| self.versions[at].version) {
                // If it was the newest, the previous one is the newest again from now on.
                let until = if is_newest { time } else { Timestamp(i64::MAX) };
                let gap = instants.gaps.entry(before).or_insert((first, until));
                *gap = (gap.0.min(first), until);
            }
        }
    }

    /// When the first of a version's rows was written.
    fn first_of(&self, version: Version) -> Timestamp {
        let time = self.version(version).map_or(Timestamp(i64::MAX), |record| record.time);
        let part = self.instants.parts.get(&version).map(|written| written.first);
        let history = self.instants.histories.iter().find(|history| history.version == version);
        time.min(part.or(history.map(|history| history.first)).unwrap_or(time))
    }

    /// What existed at `time`: the version that was the newest, and where the rows written by key since then are. `NotFound`
    /// if no version is that old, or if the newest one at that time has been deleted.
    pub fn at(&self, time: Timestamp) -> Result<(Version, Since<'_>)> {
        let Some(record) = self.version_at(time) else {
            let oldest = self.versions.front().map_or_else(String::new, |oldest| {
                format!("; the oldest version, {}, was made at {}", oldest.version, shown(oldest.time))
            });
            return Err(Error::not_found(format!("no version existed at {}{oldest}", shown(time))));
        };
        let base = record.version;
        if self.instants.gaps.get(&base).is_some_and(|(from, until)| *from <= time && time < *until) {
            let time = shown(time);
            return Err(Error::not_found(format!("the version that was the newest at {time} was deleted")));
        }
        let began = |part: &&MemtablePart| {
            self.instants.parts.get(&part.version).is_some_and(|written| written.base == base && written.first <= time)
        };
        let since = match self.parts.iter().find(began) {
            Some(part) => Since::Memory(part),
            None => {
                let mut histories = self.instants.histories.iter();
                let history = histories.find(|history| history.base == base && history.first <= time);
                history.map_or(Since::Nothing, Since::History)
            }
        };
        Ok((base, since))
    }

    /// The table as it was while `part` accepted writes.
    pub fn up_to(&self, part: &MemtablePart) -> TableState {
        let mut then = self.clone();
        then.parts.retain(|other| other.version <= part.version);
        if let Some(last) = then.parts.last_mut() {
            (last.frozen, last.died) = (false, ALIVE);
        }
        then.unsettled = InMemory::default();
        then
    }

    /// The table as it was while the rows of a history were written, with those rows.
    pub fn with_history(&self, history: &History, rows: Arc<MemRows>) -> TableState {
        let mut then = self.clone();
        let (version, schema, from) = (history.version, history.schema, Seq(0));
        let rows = InMemory(Some(rows));
        then.parts = vec![MemtablePart { version, from, frozen: false, died: ALIVE, schema, rows }];
        then.unsettled = InMemory::default();
        then
    }

    /// Whether a flush of `part` has to keep its history: some time between two listed versions shows part of it.
    pub fn needs_history(&self, part: &MemtablePart) -> bool {
        let Some(written) = self.instants.parts.get(&part.version) else { return false };
        let listed = |version: Version| self.versions.binary_search_by_key(&version, |record| record.version);
        let (Ok(_), Ok(at)) = (listed(written.base), listed(part.version)) else { return false };
        // If only one commit wrote rows, they are the version, unless that has other rows too.
        let several = written.first < written.last || self.versions[at].kind != VersionKind::Rows;
        several && !planted(Bug::ForgetHistories)
    }

    /// Whether the newest row of each key of `part` is the one in its version.
    pub fn is_all_of_its_version(&self, part: &MemtablePart) -> bool {
        self.version(part.version).is_some_and(|record| record.kind == VersionKind::Rows)
    }

    /// Releases histories that no time shows any more; returns their addresses.
    pub(in crate::table) fn shed_histories(&mut self) -> Vec<Address> {
        if self.instants.is_empty() {
            return Vec::new();
        }
        let (versions, parts) = (&self.versions, &self.parts);
        let listed = |version: Version| versions.binary_search_by_key(&version, |record| record.version).is_ok();
        let mut kept = Instants::clone(&self.instants);
        let unneeded = kept.histories.extract_if(.., |history| !listed(history.base) || !listed(history.version));
        let gone = unneeded.flat_map(|history| history.groups).map(|(address, _)| address).collect();
        kept.gaps.retain(|version, _| listed(*version));
        kept.parts.retain(|version, _| parts.iter().any(|part| part.version == *version));
        if kept != *self.instants {
            self.instants = Arc::new(kept);
        }
        gone
    }

    /// Removes the histories for which `why` returns a reason; their times are then in a gap. Returns their versions and the
    /// reasons.
    pub fn drop_histories(&mut self, why: impl Fn(&History) -> Option<String>) -> Vec<(Version, String)> {
        let mut dropped = Vec::new();
        let mut kept = Instants::clone(&self.instants);
        let gone = kept.histories.extract_if(.., |history| {
            let why = why(history);
            dropped.extend(why.clone().map(|why| (history.version, why)));
            why.is_some()
        });
        for history in gone.collect::<Vec<_>>() {
            let gap = kept.gaps.entry(history.base).or_insert((history.first, Timestamp(i64::MAX)));
            gap.0 = gap.0.min(history.first);
        }
        if !dropped.is_empty() {
            self.instants = Arc::new(kept);
        }
        dropped
    }

    /// Every address that the table's records name: those of the layers of row groups, for each record, of histories, and of runs of indexes.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        let histories = self.instants.histories.iter().flat_map(|history| &history.groups);
        let groups = self.groups.iter().flat_map(|group| group.addresses());
        groups.chain(histories.map(|(address, _)| address)).chain(self.indexes.addresses())
    }

    /// Encoded bytes of its row groups, histories and indexes, those that several records name counted once. O(n log n).
    pub fn bytes(&self) -> u64 {
        let mut addresses: Vec<&Address> = self.addresses().collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses.into_iter().map(Address::bytes).sum()
    }

    /// Fails if what is known about times is inconsistent.
    pub fn check_instants(&self) -> Result<()> {
        let bad = |what: &str| Err(Error::corrupt(format!("table {}: {what}", self.id)));
        for history in &self.instants.histories {
            if history.schema as usize >= self.schemas.len() || history.base >= history.version {
                return bad("a history has an impossible schema or version");
            }
            if history.groups.iter().any(|(_, rows)| *rows == 0 || *rows > ROWS_MAX) {
                return bad("a history has more rows than possible");
            }
        }
        let known = |version: &Version| self.parts.iter().any(|part| part.version == *version);
        if self.instants.parts.iter().any(|(version, written)| !known(version) || written.first > written.last) {
            return bad("there are times of rows that do not exist");
        }
        Ok(())
    }
}
