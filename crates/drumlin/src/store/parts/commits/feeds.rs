//! The newest commits, as the open feeds need them.
//!
//! A commit stays in memory until all feeds have read it, within bounds. Without a feed, nothing is kept.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::base::{Result, Seq};
use crate::catalog;
use crate::catalog::{Effect, Event, State, TransactionRecord};

/// What is kept for feeds: at most this many commits, and this many bytes of their effects.
const RECORDS_MAX: usize = 4096;
const BYTES_MAX: usize = 64 << 20;

/// One commit, between the states before and after it.
pub(in crate::store) struct CommitRecord {
    pub before: Arc<State>,
    pub after: Arc<State>,
    pub transactions: Vec<TransactionRecord>,
}

impl CommitRecord {
    /// Calls `found` with what happened, in order, until it returns `false`.
    pub fn visit(&self, found: &mut dyn FnMut(Event) -> bool) -> Result<()> {
        catalog::events(&self.transactions, self.after.seq, &self.before, &self.after, found)
    }

    fn weight(&self) -> usize {
        const OTHER: usize = 256;
        let bytes = |effect: &Effect| match effect {
            Effect::Nodes(nodes) => nodes.bytes(),
            // As it was written, and as it is held in memory.
            Effect::WriteRows { rows, .. } => OTHER + 2 * rows.bytes() as usize,
            Effect::AddInline { content, .. } => OTHER + content.0.len(),
            _ => OTHER,
        };
        self.transactions.iter().flat_map(|transaction| &transaction.effects).map(bytes).sum()
    }
}

#[derive(Default)]
struct Ring {
    records: VecDeque<(usize, Arc<CommitRecord>)>,
    weight: usize,
    /// The open feeds, by number, and the last commit that each has read; without any nothing is kept.
    places: BTreeMap<u64, Seq>,
    /// The last number assigned.
    last: u64,
    closed: bool,
    wakes: u64,
}

impl Ring {
    /// Removes what no feed needs any more, and what is too much.
    fn trim(&mut self) -> Vec<Arc<CommitRecord>> {
        let needed = self.places.values().min().copied();
        let mut old = Vec::new();
        while let Some((weight, record)) = self.records.front() {
            let much = self.records.len() > RECORDS_MAX || (self.records.len() > 1 && self.weight > BYTES_MAX);
            if !much && needed.is_some_and(|needed| record.after.seq > needed) {
                break;
            }
            self.weight -= weight;
            old.extend(self.records.pop_front().map(|(_, record)| record));
        }
        old
    }
}

/// An open feed: what it has not read is kept for it until this is dropped.
pub(in crate::store) struct OpenFeed {
    feeds: Arc<Feeds>,
    /// Its number among the feeds.
    number: u64,
}

impl OpenFeed {
    /// A feed begins, before it knows its place, so that no commit is missed.
    pub fn join(feeds: &Arc<Feeds>) -> Self {
        Self { feeds: feeds.clone(), number: feeds.join() }
    }

    /// It has read all commits up to `place`.
    pub fn passed(&self, place: Seq) {
        self.feeds.passed(self.number, place);
    }
}

impl Deref for OpenFeed {
    type Target = Feeds;

    fn deref(&self) -> &Feeds {
        &self.feeds
    }
}

impl Drop for OpenFeed {
    fn drop(&mut self) {
        self.feeds.leave(self.number);
    }
}

/// The newest commits, for the open feeds.
#[derive(Default)]
pub(in crate::store) struct Feeds {
    ring: Mutex<Ring>,
    changed: Condvar,
}

impl Feeds {
    /// Whether there are feeds.
    pub fn any(&self) -> bool {
        !self.ring.lock().places.is_empty()
    }

    /// Keeps a commit, if there are feeds.
    pub fn publish(&self, record: impl FnOnce() -> CommitRecord) {
        let mut ring = self.ring.lock();
        if ring.places.is_empty() {
            return;
        }
        let record = record();
        let weight = record.weight();
        ring.weight += weight;
        ring.records.push_back((weight, Arc::new(record)));
        let old = ring.trim();
        self.changed.notify_all();
        // States are freed outside the lock: it may take long, and free what holds a store.
        drop(ring);
        drop(old);
    }

    /// A feed begins. Returns its number.
    fn join(&self) -> u64 {
        let mut ring = self.ring.lock();
        ring.last += 1;
        let number = ring.last;
        ring.places.insert(number, Seq(0));
        number
    }

    /// A feed ends.
    fn leave(&self, feed: u64) {
        let mut ring = self.ring.lock();
        ring.places.remove(&feed);
        let old = ring.trim();
        drop(ring);
        drop(old);
    }

    /// A feed has read all commits up to `place`.
    fn passed(&self, feed: u64, place: Seq) {
        let mut ring = self.ring.lock();
        ring.places.insert(feed, place);
        let old = ring.trim();
        drop(ring);
        drop(old);
    }

    /// How many commits are kept, and their bytes.
    #[cfg(test)]
    pub fn kept(&self) -> (usize, usize) {
        let ring = self.ring.lock();
        (ring.records.len(), ring.weight)
    }

    /// Wakes all feeds for good.
    pub fn close(&self) {
        self.ring.lock().closed = true;
        self.changed.notify_all();
    }

    /// How often all feeds have been woken.
    pub fn wakes(&self) -> u64 {
        self.ring.lock().wakes
    }

    /// Wakes all feeds, so that those that wait look again.
    pub fn wake(&self) {
        self.ring.lock().wakes += 1;
        self.changed.notify_all();
    }

    /// Waits until there is a commit after `seq`, at most for `time`, or until all are woken once more than `wakes` times.
    /// Returns whether the store is still open.
    pub fn wait(&self, seq: Seq, wakes: u64, time: Option<Duration>) -> bool {
        let mut ring = self.ring.lock();
        let newer = |ring: &Ring| ring.records.back().is_some_and(|(_, record)| record.after.seq > seq);
        let still = |ring: &mut Ring| !ring.closed && ring.wakes == wakes && !newer(ring);
        match time {
            Some(time) => drop(self.changed.wait_while_for(&mut ring, still, time)),
            None => self.changed.wait_while(&mut ring, still),
        }
        !ring.closed
    }

    /// The commit after `seq`, if it is kept.
    pub fn after(&self, seq: Seq) -> Option<Arc<CommitRecord>> {
        let ring = self.ring.lock();
        // There are gaps: a state that was read as a whole brings no records of the commits before it.
        let at = ring.records.partition_point(|(_, record)| record.before.seq < seq);
        ring.records.get(at).filter(|(_, record)| record.before.seq == seq).map(|(_, record)| record.clone())
    }
}
