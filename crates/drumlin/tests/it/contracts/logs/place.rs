//! Where a log is, and how a process opens it: so that one check serves logs of every kind.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use drumlin::Result;
use drumlin::base::{EntryId, Env, ManualClock, Seq, Timestamp};
use drumlin::log::{Base, CommitLog, FileFollower, FileLog, LogOptions, ObjectLog, OnLoss, Opened, Origin};
use drumlin::storage::{Disk, FileStorage, SimDisk, Storage, names};

use super::broken::{BrokenLog, Rule};
use crate::support::env;

/// How long a commit waits for a bucket, in microseconds of a clock that does not wait.
pub const RETRY: u64 = 60_000_000;

/// The number of the last entry.
pub fn last(opened: &Opened) -> Seq {
    opened.entries.last().map(|entry| entry.seq).or(opened.base.map(|base| base.seq)).unwrap_or_default()
}

/// Where a log is stored.
#[derive(Clone)]
pub enum Kept {
    /// Files of a disk; the disk a second time if it can crash.
    Files(Arc<dyn Disk>, Option<SimDisk>, LogOptions),
    Objects(Arc<dyn Storage>),
}

/// Where a log is, and how a process opens it.
#[derive(Clone)]
pub struct Place {
    pub kept: Kept,
    pub rule: Option<Rule>,
}

impl Place {
    pub fn files(disk: Arc<dyn Disk>, segment_bytes_max: u64) -> Self {
        let options = LogOptions { segment_bytes_max, ..LogOptions::default() };
        Self { kept: Kept::Files(disk, None, options), rule: None }
    }

    pub fn sim(disk: SimDisk, segment_bytes_max: u64) -> Self {
        let options = LogOptions { segment_bytes_max, ..LogOptions::default() };
        Self { kept: Kept::Files(Arc::new(disk.clone()), Some(disk), options), rule: None }
    }

    pub fn objects(storage: impl Storage + 'static) -> Self {
        Self { kept: Kept::Objects(Arc::new(storage)), rule: None }
    }

    pub fn env() -> Env {
        static SEEDS: AtomicU64 = AtomicU64::new(1);
        env(&Arc::new(ManualClock::new(Timestamp(1_000_000))), SEEDS.fetch_add(1, Ordering::Relaxed), 2)
    }

    fn wrapped(&self, log: impl CommitLog + 'static) -> Box<dyn CommitLog> {
        match self.rule {
            None => Box::new(log),
            Some(rule) => Box::new(BrokenLog::new(log, rule)),
        }
    }

    /// Makes the log.
    pub fn create(&self) -> Box<dyn CommitLog> {
        match &self.kept {
            Kept::Files(disk, _, options) => self.wrapped(FileLog::create(disk.clone(), *options).unwrap()),
            Kept::Objects(storage) => self.wrapped(ObjectLog::create(storage.clone(), Self::env(), RETRY).unwrap()),
        }
    }

    /// Makes a log that begins with the snapshot `base`.
    pub fn create_after(&self, base: Base) -> Box<dyn CommitLog> {
        match &self.kept {
            Kept::Files(disk, _, options) => {
                self.wrapped(FileLog::create_behind(disk.clone(), *options, base.seq, Some(base)).unwrap())
            }
            Kept::Objects(storage) => self.wrapped(
                ObjectLog::create_behind(
                    storage.clone(),
                    Self::env(),
                    RETRY,
                    (base, EntryId(7)),
                    Origin { store: 1, parent: None },
                )
                .unwrap(),
            ),
        }
    }

    /// Opens the log for writing.
    pub fn open(&self) -> Result<(Box<dyn CommitLog>, Opened)> {
        let (log, mut opened) = match &self.kept {
            Kept::Files(disk, _, options) => {
                let (log, opened) = FileLog::open(disk.clone(), *options, OnLoss::Refuse)?;
                (self.wrapped(log), opened)
            }
            Kept::Objects(storage) => {
                let (log, opened) = ObjectLog::open(storage.clone(), Self::env(), RETRY, OnLoss::Refuse)?;
                (self.wrapped(log), opened)
            }
        };
        if let Some(rule) = self.rule {
            rule.spoil(&mut opened.entries);
        }
        Ok((log, opened))
    }

    /// A handle of a process that only reads, and knows `opened`.
    pub fn follow(&self, opened: &Opened) -> Box<dyn CommitLog> {
        match &self.kept {
            Kept::Files(disk, ..) => self.wrapped(FileFollower::new(disk.clone(), opened)),
            Kept::Objects(storage) => {
                let (log, _) = ObjectLog::open(storage.clone(), Self::env(), RETRY, OnLoss::Refuse).unwrap();
                log.knows(last(opened));
                self.wrapped(log)
            }
        }
    }

    /// What is left after the machine lost power, if it can; else the same place, as after a process died.
    pub fn crash(&self, seed: u64) -> Self {
        let kept = match &self.kept {
            Kept::Files(_, Some(disk), options) => {
                let after = disk.crash(seed);
                Kept::Files(Arc::new(after.clone()), Some(after), *options)
            }
            other => other.clone(),
        };
        Self { kept, rule: self.rule }
    }

    /// Whether what was not synced is gone after [`Place::crash`].
    pub fn can_crash(&self) -> bool {
        matches!(self.kept, Kept::Files(_, Some(_), _))
    }

    pub fn storage(&self) -> Arc<dyn Storage> {
        match &self.kept {
            Kept::Files(disk, ..) => Arc::new(FileStorage::new(disk.clone())),
            Kept::Objects(storage) => storage.clone(),
        }
    }

    /// The names of the log's objects, without its root.
    pub fn names(&self) -> Vec<String> {
        self.storage().list(names::LOG).unwrap().into_iter().map(|object| object.name).collect()
    }

    /// The bytes of all objects or files of the log.
    pub fn content(&self) -> Vec<Bytes> {
        let storage = self.storage();
        let mut all: Vec<Bytes> = self.names().iter().map(|name| storage.get(name).unwrap()).collect();
        all.extend(storage.get(names::ROOT));
        all
    }
}
