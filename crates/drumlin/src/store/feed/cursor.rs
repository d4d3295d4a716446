//! A place in the history of a store, from which commits are read in order: the newest from memory, older ones from the log.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::base::{Error, Result, Seq};
use crate::catalog::State;
use crate::log::{Entry, Opened, retry_while_moving};
use crate::store::parts::{CommitRecord, Commits, OpenFeed, recover};

/// A place in the log, and the state there.
pub(in crate::store) struct Cursor {
    feed: OpenFeed,
    state: Arc<State>,
    /// Read from the log, not yet returned.
    entries: VecDeque<Entry>,
}

impl Cursor {
    /// A place right after the newest commit.
    pub fn here(commits: &Commits) -> Self {
        let feed = OpenFeed::join(commits.feeds());
        let state = commits.newest().state();
        feed.passed(state.seq);
        Self { feed, state, entries: VecDeque::new() }
    }

    /// A place right after the commit `since`.
    pub fn new(commits: &Commits, since: Seq) -> Result<Self> {
        let mut cursor = Self::here(commits);
        if since > cursor.state.seq {
            let newest = cursor.state.seq;
            return Err(Error::invalid(format!(
                "changes since commit {since} were requested, but the newest commit is {newest}"
            )));
        }
        if since < cursor.state.seq {
            let newest = cursor.state.seq;
            let (state, entries) = history(commits, since, newest)?;
            cursor.state = Arc::new(state);
            cursor.entries = entries;
            // Commits made since are to be read from memory.
            cursor.feed.passed(since);
        }
        Ok(cursor)
    }

    pub fn seq(&self) -> Seq {
        self.state.seq
    }

    /// Whether there are commits to return, so that there is no need to look for newer ones.
    pub fn has_more(&self) -> bool {
        !self.entries.is_empty() || self.feed.after(self.state.seq).is_some()
    }

    /// The next commit, if there is one.
    pub fn next(&mut self, commits: &Commits) -> Result<Option<Arc<CommitRecord>>> {
        let record = match self.entries.pop_front() {
            Some(entry) => Some(self.read(&entry)?),
            None => match self.feed.after(self.state.seq) {
                Some(record) => Some(record),
                None => {
                    let newest = commits.newest().state().seq;
                    if newest <= self.state.seq {
                        return Ok(None);
                    }
                    self.entries = entries_after(commits, self.state.seq, newest)?;
                    let entry = self.entries.pop_front();
                    entry.map(|entry| self.read(&entry)).transpose()?
                }
            },
        };
        if let Some(record) = &record {
            self.state = record.after.clone();
            self.feed.passed(self.state.seq);
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
        self.feed.wakes()
    }

    /// Waits for a commit, at most for `time`, or until all are woken once more than `wakes` times. Returns whether the
    /// store is still open.
    pub fn wait(&self, wakes: u64, time: Option<Duration>) -> bool {
        self.feed.wait(self.state.seq, wakes, time)
    }
}

/// What `read` returns of the log, which must reach back to `since`.
fn reaching(since: Seq, read: Result<Opened>) -> Result<Opened> {
    let opened = read?;
    let first = opened.base.map_or(Seq(0), |base| Seq(base.from.0 - 1));
    if first > since {
        return Err(Error::snapshot_expired(format!(
            "the log begins after commit {first}, so the changes since commit {since} are no longer available"
        )));
    }
    Ok(opened)
}

/// The entries after `since` up to `until`.
fn entries_after(commits: &Commits, since: Seq, until: Seq) -> Result<VecDeque<Entry>> {
    let entries = retry_while_moving(|| reaching(since, commits.log().read_after(since)))?.entries.into_iter();
    Ok(entries.filter(|entry| entry.seq > since && entry.seq <= until).collect())
}

/// The state at `since`, and the entries after it up to `until`.
fn history(commits: &Commits, since: Seq, until: Seq) -> Result<(State, VecDeque<Entry>)> {
    retry_while_moving(|| {
        let mut opened = reaching(since, commits.log().read())?;
        let behind = opened.entries.partition_point(|entry| entry.seq <= since);
        let rest: VecDeque<Entry> = opened.entries.drain(behind..).filter(|entry| entry.seq <= until).collect();
        Ok((recover::replay(&**commits.setting().storage(), &opened)?.0, rest))
    })
}

#[cfg(test)]
mod tests {
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
    fn a_cursor_holds_neither_rows_nor_commits_that_it_has_gone_over() {
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
        let mut cursor = Cursor::new(reader.commits(), late).unwrap();
        for _ in 0..21 {
            cursor.next(reader.commits()).unwrap().unwrap();
            assert_eq!(cursor.state.unsettled_bytes(), 0);
        }
        // And as others commit.
        for n in 0..20 {
            writer.table("t").upsert(rows(n), &Default::default()).unwrap();
            reader.refresh().unwrap();
            assert!(cursor.next(reader.commits()).unwrap().is_some());
            assert_eq!(cursor.state.unsettled_bytes(), 0);
        }
        assert!(cursor.next(reader.commits()).unwrap().is_none());
        assert_eq!(reader.commits().feeds().kept(), (0, 0));
    }
}
