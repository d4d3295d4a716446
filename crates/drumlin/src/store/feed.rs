//! The change feed: the commits since one, each with what it did. The newest come from memory, older ones from the log.
//!
//! A commit stays in memory until all feeds have read it, within bounds. Those of other processes are added as they are
//! taken in. So a feed reads the log only for what happened before it began, or when it is too slow.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::{Inner, Store, recover};
use crate::base::{Error, Result, Seq, Timestamp, waiting};
use crate::catalog::{self, Effect, Event, State, TransactionRecord};
use crate::log::{Entry, Opened, retry_while_moving};

/// What is kept for feeds: at most this many commits, and this many bytes of their effects.
const RECORDS_MAX: usize = 4096;
const BYTES_MAX: usize = 64 << 20;
/// How long a feed of a store that another process writes waits before it looks again.
const POLL: Duration = Duration::from_millis(50);
/// The same of a store that many processes write, where looking takes a request.
pub(super) const SHARED_POLL: Duration = Duration::from_millis(500);

/// One commit, between the states before and after it.
pub(super) struct CommitRecord {
    pub before: Arc<State>,
    pub after: Arc<State>,
    pub transactions: Vec<TransactionRecord>,
}

impl CommitRecord {
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

/// The newest commits, for the open feeds.
#[derive(Default)]
pub(super) struct Feeds {
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

    /// A feed has read all commits up to `place`.
    fn passed(&self, feed: u64, place: Seq) {
        let mut ring = self.ring.lock();
        ring.places.insert(feed, place);
        let old = ring.trim();
        drop(ring);
        drop(old);
    }

    /// Wakes all feeds for good.
    pub fn close(&self) {
        self.ring.lock().closed = true;
        self.changed.notify_all();
    }

    /// Wakes all feeds, so that those that wait look again.
    pub fn wake(&self) {
        self.ring.lock().wakes += 1;
        self.changed.notify_all();
    }

    /// Waits until there is a commit after `seq`, at most for `time`, or until all are woken once more than `wakes` times.
    /// Returns whether the store is still open.
    fn wait(&self, seq: Seq, wakes: u64, time: Option<Duration>) -> bool {
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
    fn after(&self, seq: Seq) -> Option<Arc<CommitRecord>> {
        let ring = self.ring.lock();
        // There are gaps: a state that was read as a whole brings no records of the commits before it.
        let at = ring.records.partition_point(|(_, record)| record.before.seq < seq);
        ring.records.get(at).filter(|(_, record)| record.before.seq == seq).map(|(_, record)| record.clone())
    }
}

/// A place in the log, and the state there.
pub(super) struct Cursor {
    feeds: Arc<Feeds>,
    /// Its number among the feeds.
    number: u64,
    state: Arc<State>,
    /// Read from the log, not yet returned.
    entries: VecDeque<Entry>,
}

impl Cursor {
    /// A place right after the newest commit.
    pub fn here(inner: &Inner) -> Self {
        // Registered before the state is read, so that no commit is missed.
        let number = {
            let mut ring = inner.feeds.ring.lock();
            ring.last += 1;
            let number = ring.last;
            ring.places.insert(number, Seq(0));
            number
        };
        let state = inner.state.read().clone();
        inner.feeds.passed(number, state.seq);
        Self { feeds: inner.feeds.clone(), number, state, entries: VecDeque::new() }
    }

    /// A place right after the commit `since`.
    pub fn new(inner: &Inner, since: Seq) -> Result<Self> {
        let mut cursor = Self::here(inner);
        if since > cursor.state.seq {
            let newest = cursor.state.seq;
            return Err(Error::invalid(format!(
                "changes since commit {since} were requested, but the newest commit is {newest}"
            )));
        }
        if since < cursor.state.seq {
            let newest = cursor.state.seq;
            let (state, entries) = history(inner, since, newest)?;
            cursor.state = Arc::new(state);
            cursor.entries = entries;
            // Commits made since are to be read from memory.
            cursor.feeds.passed(cursor.number, since);
        }
        Ok(cursor)
    }

    pub fn seq(&self) -> Seq {
        self.state.seq
    }

    /// Whether there are commits to return, so that there is no need to look for newer ones.
    fn has_more(&self) -> bool {
        !self.entries.is_empty() || self.feeds.after(self.state.seq).is_some()
    }

    /// The next commit, if there is one.
    pub fn next(&mut self, inner: &Inner) -> Result<Option<Arc<CommitRecord>>> {
        let record = match self.entries.pop_front() {
            Some(entry) => Some(self.read(&entry)?),
            None => match self.feeds.after(self.state.seq) {
                Some(record) => Some(record),
                None => {
                    let newest = inner.state.read().seq;
                    if newest <= self.state.seq {
                        return Ok(None);
                    }
                    self.entries = entries_behind(inner, self.state.seq, newest)?;
                    let entry = self.entries.pop_front();
                    entry.map(|entry| self.read(&entry)).transpose()?
                }
            },
        };
        if let Some(record) = &record {
            self.state = record.after.clone();
            self.feeds.passed(self.number, self.state.seq);
        }
        Ok(record)
    }

    fn read(&self, entry: &Entry) -> Result<Arc<CommitRecord>> {
        let mut after = State::clone(&self.state);
        let transactions = recover::apply_entry(&mut after, entry)?;
        // A feed reads no rows, and would keep these in memory as long as it is open.
        after.forget_rows();
        Ok(Arc::new(CommitRecord { before: self.state.clone(), after: Arc::new(after), transactions }))
    }

    /// How often all feeds have been woken.
    pub fn wakes(&self) -> u64 {
        self.feeds.ring.lock().wakes
    }

    /// Waits for a commit, at most for `time`, or until all are woken once more than `wakes` times. Returns whether the
    /// store is still open.
    pub fn wait(&self, wakes: u64, time: Option<Duration>) -> bool {
        self.feeds.wait(self.state.seq, wakes, time)
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        let mut ring = self.feeds.ring.lock();
        ring.places.remove(&self.number);
        let old = ring.trim();
        drop(ring);
        drop(old);
    }
}

/// What `read` returns of the log, which must reach back to `since`.
fn reaching(since: Seq, read: Result<Opened>) -> Result<Opened> {
    let opened = read?;
    let first = opened.base.map_or(Seq(0), |base| base.seq);
    if first > since {
        return Err(Error::snapshot_expired(format!(
            "the log begins after commit {first}, so the changes since commit {since} are no longer available"
        )));
    }
    Ok(opened)
}

/// The entries after `since` up to `until`.
fn entries_behind(inner: &Inner, since: Seq, until: Seq) -> Result<VecDeque<Entry>> {
    let entries = retry_while_moving(|| reaching(since, inner.log.read_after(since)))?.entries.into_iter();
    Ok(entries.filter(|entry| entry.seq > since && entry.seq <= until).collect())
}

/// The state at `since`, and the entries after it up to `until`.
fn history(inner: &Inner, since: Seq, until: Seq) -> Result<(State, VecDeque<Entry>)> {
    retry_while_moving(|| {
        let mut opened = reaching(since, inner.log.read())?;
        let behind = opened.entries.partition_point(|entry| entry.seq <= since);
        let rest: VecDeque<Entry> = opened.entries.drain(behind..).filter(|entry| entry.seq <= until).collect();
        Ok((recover::replay(&*inner.storage, &opened)?.0, rest))
    })
}

/// The commits since one, in order. See [`Store::changes`].
pub struct ChangeFeed {
    store: Store,
    cursor: Cursor,
}

/// One commit of a [`ChangeFeed`].
#[derive(Clone)]
pub struct Commit {
    record: Arc<CommitRecord>,
}

impl Commit {
    /// Its number.
    pub fn seq(&self) -> Seq {
        self.record.after.seq
    }

    /// Its time.
    pub fn time(&self) -> Timestamp {
        self.record.after.time
    }

    /// What those said who made it, in order: usually one message or none, but calls of several threads may become durable
    /// together. See [`Store::with_message`].
    pub fn messages(&self) -> impl Iterator<Item = &str> {
        self.record.transactions.iter().flat_map(|transaction| &transaction.effects).filter_map(|effect| match effect {
            Effect::Tell { note, .. } => note.message.as_deref(),
            _ => None,
        })
    }

    /// Calls `found` with what happened, in order, until it returns `false`.
    ///
    /// # Errors
    /// `Corrupt` if a table's schema cannot be read.
    pub fn visit(&self, mut found: impl FnMut(Event) -> bool) -> Result<()> {
        visit(&self.record, &mut found)
    }

    /// What happened, in order. For commits that may be large [`Commit::visit`] takes less memory.
    ///
    /// # Errors
    /// As [`Commit::visit`].
    pub fn events(&self) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        self.visit(|event| {
            events.push(event);
            true
        })?;
        Ok(events)
    }
}

/// Calls `found` with the events of a commit.
pub(super) fn visit(record: &CommitRecord, found: &mut dyn FnMut(Event) -> bool) -> Result<()> {
    catalog::events(&record.transactions, record.after.seq, &record.before, &record.after, found)
}

impl ChangeFeed {
    /// The next commit. `None` if none comes within `wait`; with `wait` `None` it waits until one comes or the store is
    /// closed.
    ///
    /// # Errors
    /// `SnapshotExpired` if a checkpoint has cut the log after a later commit, `Closed`.
    pub fn next(&mut self, wait: Option<Duration>) -> Result<Option<Commit>> {
        let mut waited = Duration::ZERO;
        let follows = self.store.inner.read_only || self.store.inner.log.is_shared();
        loop {
            self.store.inner.check()?;
            waiting::check()?;
            let wakes = self.cursor.wakes();
            if follows && !self.cursor.has_more() {
                self.store.refresh()?;
            }
            if let Some(record) = self.cursor.next(&self.store.inner)? {
                return Ok(Some(Commit { record }));
            }
            if wait.is_some_and(|wait| waited >= wait) {
                return Ok(None);
            }
            let left = wait.map(|wait| wait - waited);
            // Another process that writes the store cannot wake this one.
            let poll = if self.store.inner.log.is_shared() { SHARED_POLL } else { POLL };
            let short = follows || waiting::can_stop();
            let step = if short { Some(left.map_or(poll, |left| left.min(poll))) } else { left };
            if !self.cursor.wait(wakes, step) {
                self.store.inner.check()?;
            }
            waited += step.unwrap_or_default();
        }
    }

    /// The last commit returned; the next one follows it.
    pub fn seq(&self) -> Seq {
        self.cursor.seq()
    }
}

impl Store {
    /// The commits after `since`, future ones too. 0 is the beginning; [`Store::seq`] is now. `SnapshotExpired` if a
    /// checkpoint has cut the log after a later commit.
    ///
    /// ```
    /// # use drumlin::{Event, Payload, Tables};
    /// let store = drumlin::Store::open("memory://", Default::default())?;
    /// let mut feed = store.changes(store.seq()?)?;
    /// store.tree().put("config/x", Payload::from(1))?;
    /// let commit = feed.next(None)?.unwrap();
    /// assert!(matches!(&commit.events()?[0], Event::Node(event) if event.path == "config/x"));
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `SnapshotExpired`; `InvalidArgument` if `since` is a commit that is still to come.
    pub fn changes(&self, since: Seq) -> Result<ChangeFeed> {
        self.inner.check()?;
        Ok(ChangeFeed { cursor: Cursor::new(&self.inner, since)?, store: self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch};

    use super::*;
    use crate::base::Env;
    use crate::storage::SimBucket;
    use crate::store::{Options, TableOptions, Tables};

    fn rows(from: i64) -> RecordBatch {
        let keys = Arc::new(Int64Array::from_iter_values(from..from + 100)) as ArrayRef;
        RecordBatch::try_from_iter([("k", keys)]).unwrap()
    }

    #[test]
    fn a_feed_holds_neither_rows_nor_commits_that_it_has_gone_over() {
        let bucket = SimBucket::new();
        let open = || {
            let (storage, env) = (Arc::new(bucket.client()), Env::system(1).unwrap());
            crate::store::open_bucket(storage, env, "bucket", Options::default()).unwrap()
        };
        let (writer, reader) = (open(), open());
        let key = TableOptions { key: vec!["k".into()], ..TableOptions::default() };
        writer.table("t").create(rows(0).schema(), key).unwrap();
        let late = reader.seq().unwrap();
        (0..20).for_each(|n| drop(writer.table("t").upsert(rows(n), &Default::default()).unwrap()));
        reader.refresh().unwrap();
        // From the log; none of these commits is in memory.
        let mut feed = reader.changes(late).unwrap();
        for _ in 0..21 {
            feed.next(Some(Duration::ZERO)).unwrap().unwrap();
            assert_eq!(feed.cursor.state.unsettled_bytes(), 0);
        }
        // And as others commit.
        for n in 0..20 {
            writer.table("t").upsert(rows(n), &Default::default()).unwrap();
            assert!(feed.next(Some(Duration::ZERO)).unwrap().is_some());
            assert_eq!(feed.cursor.state.unsettled_bytes(), 0);
        }
        assert!(feed.next(Some(Duration::ZERO)).unwrap().is_none());
        let ring = reader.inner.feeds.ring.lock();
        assert_eq!((ring.records.len(), ring.weight), (0, 0));
    }
}
