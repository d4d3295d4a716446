//! What a store counts of its own work. A count is one relaxed addition: no lock, no allocation, nothing to turn on.
//!
//! What that costs is measured (`bench/metrics.py`) beside a library that was compiled with `--cfg uncounted` and
//! counts nothing.
//!
//! The layers add to the [`Metrics`] of their [`super::Env`]; names, units and words for people are in
//! `store/upkeep/metrics.rs`.
//!
//! Commits are counted where they are made (*commit.rs*), requests and bytes by a storage that wraps every other
//! (*metered.rs*), row groups and rows where pieces of scans are read.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`.
    #[inline]
    pub fn add(&self, n: u64) {
        if cfg!(uncounted) {
            return;
        }
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The sum so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How many buckets a histogram has: the last but one ends at 2^25 microseconds, about half a minute.
pub const BUCKETS: usize = 27;

/// Durations, counted in buckets that end at powers of two of a microsecond.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [Counter; BUCKETS],
    micros: Counter,
}

impl Histogram {
    /// Counts a duration in microseconds.
    pub fn observe(&self, micros: u64) {
        if cfg!(uncounted) {
            return;
        }
        let bucket = if micros <= 1 { 0 } else { (u64::BITS - (micros - 1).leading_zeros()) as usize };
        self.buckets[bucket.min(BUCKETS - 1)].add(1);
        self.micros.add(micros);
    }

    /// How many durations of at most 1, 2, 4 … microseconds there were, each without the shorter ones; the last are all longer
    /// ones.
    pub fn counts(&self) -> [u64; BUCKETS] {
        std::array::from_fn(|at| self.buckets[at].get())
    }

    /// The sum of all durations, in microseconds.
    pub fn micros(&self) -> u64 {
        self.micros.get()
    }
}

/// What is asked of storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Objects, whole or in parts.
    Get,
    /// An object written.
    Put,
    /// An object written on a condition.
    PutIfMatch,
    /// Objects deleted.
    Delete,
    /// Objects listed.
    List,
}

impl Request {
    /// All kinds, with their names.
    pub const ALL: [(Request, &'static str); 5] = [
        (Request::Get, "get"),
        (Request::Put, "put"),
        (Request::PutIfMatch, "put_if_match"),
        (Request::Delete, "delete"),
        (Request::List, "list"),
    ];
}

/// Everything that one store counts.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Entries of the log that this process made.
    pub commits: Counter,
    /// Transactions in them.
    pub transactions: Counter,
    /// Transactions refused because others had changed what they read.
    pub conflicts: Counter,
    /// Turns in which another process committed first.
    pub overtaken: Counter,
    /// Entries of this process that were added with those of others.
    pub handed_in: Counter,
    /// Requests to a server that keeps the log.
    pub log_requests: Counter,
    /// From the beginning of a turn until its answers.
    pub commit_micros: Histogram,
    /// Syncs of the log.
    pub log_syncs: Counter,
    /// Requests to storage, by kind.
    pub requests: [Counter; Request::ALL.len()],
    /// Those that failed; not a condition that did not hold, nor an object that is not there.
    pub request_failures: Counter,
    /// How long a request took.
    pub request_micros: Histogram,
    /// Bytes of objects read.
    pub bytes_read: Counter,
    /// Bytes of objects written.
    pub bytes_written: Counter,
    /// Pauses before a request was repeated.
    pub pauses: Counter,
    /// Keys looked up.
    pub keys: Counter,
    /// Row groups of which scans gave rows.
    pub groups_read: Counter,
    /// Row groups that statistics ruled out.
    pub groups_pruned: Counter,
    /// Pages of indexes that were read.
    pub index_pages_read: Counter,
    /// Rows that scans handed out.
    pub rows_read: Counter,
    /// Checkpoints, and how long they took.
    pub checkpoint_micros: Histogram,
    /// Reclaims, and how long they took.
    pub reclaim_micros: Histogram,
    /// Bytes that reclaims deleted.
    pub reclaimed_bytes: Counter,
    /// Calls of triggers.
    pub trigger_calls: Counter,
    /// Those that failed.
    pub trigger_failures: Counter,
}

impl Metrics {
    /// Counts a request that took some microseconds.
    pub fn request(&self, kind: Request, micros: u64) {
        self.requests[kind as usize].add(1);
        self.request_micros.observe(micros);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_in_the_bucket_that_ends_at_or_after_them() {
        let histogram = Histogram::default();
        for micros in [0, 1, 2, 3, 4, 5, 1 << 25, (1 << 25) + 1, u64::MAX >> 8] {
            histogram.observe(micros);
        }
        let counts = histogram.counts();
        assert_eq!(counts[..4], [2, 1, 2, 1]);
        assert_eq!(counts[25..], [1, 2]);
        assert_eq!(counts.iter().sum::<u64>(), 9);
    }
}
