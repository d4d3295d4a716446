//! The change feed: the commits since one, each with what it did. The newest come from memory, older ones from the log.
//!
//! Commits of other processes are added as they are taken in. So a feed reads the log only for what happened before it
//! began, or when it is too slow.
//!
//! A commit is returned as the states before and after it and its effects. States read from the log for a feed hold no
//! rows in memory.

use std::sync::Arc;
use std::time::Duration;

use super::cursor::Cursor;
use crate::base::{Result, Seq, Timestamp, waiting};
use crate::catalog::{Effect, Event, Retention};
use crate::store::Store;
use crate::store::parts::CommitRecord;

/// How long a feed of a store that another process writes waits before it looks again.
const POLL: Duration = Duration::from_millis(50);
/// The same of a store that many processes write, where looking takes a request.
pub(in crate::store) const SHARED_POLL: Duration = Duration::from_millis(500);

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

/// Something that a commit set for a whole store, or for a part of its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingChange<'a> {
    /// A snapshot was taken.
    Snapshot {
        /// Its name.
        name: &'a str,
        /// How many tables it holds.
        tables: u64,
    },
    /// A snapshot was dropped.
    SnapshotDropped {
        /// Its name.
        name: &'a str,
    },
    /// How long tables keep versions was set.
    Retention {
        /// At and below which node; `None`: in the whole store.
        path: Option<&'a str>,
        /// How long; `None`: as the node above, or all.
        retention: Option<Retention>,
    },
    /// A projection was made, or replaced.
    Projection {
        /// Its name.
        name: &'a str,
    },
    /// A projection was dropped.
    ProjectionDropped {
        /// Its name.
        name: &'a str,
    },
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

    /// What it set that belongs to no node and no table, in order: snapshots, retentions and projections. [`Commit::visit`] does not
    /// tell of them.
    pub fn settings(&self) -> impl Iterator<Item = SettingChange<'_>> {
        self.record.transactions.iter().flat_map(|transaction| &transaction.effects).filter_map(|effect| {
            Some(match effect {
                Effect::PutSnapshot { name, pins } => SettingChange::Snapshot { name, tables: pins.len() as u64 },
                Effect::CoverTables { name, tables, .. } => SettingChange::Snapshot { name, tables: *tables },
                Effect::DropSnapshot { name } => SettingChange::SnapshotDropped { name },
                Effect::SetRetention { path, retention } => {
                    SettingChange::Retention { path: Some(path.as_str()), retention: *retention }
                }
                Effect::SetDefaultRetention { retention } => {
                    SettingChange::Retention { path: None, retention: *retention }
                }
                Effect::PutProjection { name, .. } => SettingChange::Projection { name },
                Effect::DropProjection { name } => SettingChange::ProjectionDropped { name },
                _ => return None,
            })
        })
    }

    /// Calls `found` with what happened, in order, until it returns `false`.
    ///
    /// # Errors
    /// `Corrupt` if a table's schema cannot be read.
    pub fn visit(&self, mut found: impl FnMut(Event) -> bool) -> Result<()> {
        self.record.visit(&mut found)
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

impl ChangeFeed {
    /// The next commit. `None` if none comes within `wait`; with `wait` `None` it waits until one comes or the store is
    /// closed.
    ///
    /// # Errors
    /// `SnapshotExpired` if a checkpoint has cut the log after a later commit, `Closed`.
    pub fn next(&mut self, wait: Option<Duration>) -> Result<Option<Commit>> {
        let mut waited = Duration::ZERO;
        let follows = self.store.setting().is_read_only() || self.store.setting().is_shared();
        loop {
            self.store.setting().check()?;
            waiting::check()?;
            let wakes = self.cursor.wakes();
            if follows && !self.cursor.has_more() {
                self.store.refresh()?;
            }
            if let Some(record) = self.cursor.next(self.store.commits())? {
                return Ok(Some(Commit { record }));
            }
            if wait.is_some_and(|wait| waited >= wait) {
                return Ok(None);
            }
            let left = wait.map(|wait| wait - waited);
            // Another process that writes the store cannot wake this one.
            let poll = if self.store.setting().is_shared() { SHARED_POLL } else { POLL };
            let short = follows || waiting::can_stop();
            let step = if short { Some(left.map_or(poll, |left| left.min(poll))) } else { left };
            if !self.cursor.wait(wakes, step) {
                self.store.setting().check()?;
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
    /// let store = drumlin::Store::memory()?;
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
        self.setting().check()?;
        Ok(ChangeFeed { cursor: Cursor::new(self.commits(), since)?, store: self.clone() })
    }
}
