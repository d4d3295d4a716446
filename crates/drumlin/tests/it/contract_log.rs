//! The contract of `CommitLog`: one list of checks that every log passes, and that notices each broken rule.
//!
//! The rules: entries are numbered without gaps, and all readers get them back byte for byte, in one order. What was
//! appended is durable when the call returns, or after the next sync if it was to be synced later. The log names the newest
//! catalog snapshot and holds every entry that is needed beside it. A log that was closed or poisoned accepts nothing more.
//! If several handles write, one that does not know the newest entries learns of them and adds nothing.
//!
//! Each check gets a place of its own, without a log.

mod broken;
mod checks;
mod shared;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use broken::{BrokenLog, RULES, Rule};
use bytes::Bytes;
use checks::*;
use drumlin::Result;
use drumlin::base::{Env, ManualClock, Seq, Timestamp};
use drumlin::log::{Base, CommitLog, FileFollower, FileLog, LogOptions, ObjectLog, OnLoss, Opened};
use drumlin::storage::{BucketFault, BucketOp, Disk, FileStorage, OsDisk, SimBucket, SimDisk, Storage, names};
use shared::*;

use crate::servers::buckets;
use crate::support::env;

const CHECKS: [(&str, fn(&Place)); 13] = [
    ("entries come back as they were", come_back),
    ("payloads of every size come back", payloads),
    ("entries are numbered without gaps", numbers),
    ("an entry is there though the log was not closed", not_closed),
    ("what was synced is durable", durable),
    ("what others add is news once", news),
    ("the end can be read by itself", ends),
    ("a snapshot cuts the log", cuts),
    ("bytes are counted", counts_bytes),
    ("a log may begin with a snapshot", begins_with_snapshot),
    ("a closed log takes nothing more", closed),
    ("a poisoned log takes nothing more", poisoned),
    ("readers see whole entries while one writes", readers),
];

/// For logs that several handles may write.
const SHARED_CHECKS: [(&str, fn(&Place)); 5] = [
    ("a handle learns before it adds", learns),
    ("what a handle knows can be set", knows),
    ("a snapshot never takes the place of one unseen", snapshots_in_order),
    ("the log says which objects it needs", needs),
    ("of racing entries none is lost", race),
];

/// How long a commit waits for a bucket, in microseconds of a clock that does not wait.
const RETRY: u64 = 60_000_000;

/// The number of the last entry.
fn last(opened: &Opened) -> Seq {
    opened.entries.last().map(|entry| entry.seq).or(opened.base.map(|base| base.seq)).unwrap_or_default()
}

/// Where a log is stored.
#[derive(Clone)]
enum Kept {
    /// Files of a disk; the disk a second time if it can crash.
    Files(Arc<dyn Disk>, Option<SimDisk>, LogOptions),
    Objects(Arc<dyn Storage>),
}

/// Where a log is, and how a process opens it.
#[derive(Clone)]
pub struct Place {
    kept: Kept,
    rule: Option<Rule>,
}

impl Place {
    fn files(disk: Arc<dyn Disk>, segment_bytes_max: u64) -> Self {
        let options = LogOptions { segment_bytes_max, ..LogOptions::default() };
        Self { kept: Kept::Files(disk, None, options), rule: None }
    }

    fn sim(disk: SimDisk, segment_bytes_max: u64) -> Self {
        let options = LogOptions { segment_bytes_max, ..LogOptions::default() };
        Self { kept: Kept::Files(Arc::new(disk.clone()), Some(disk), options), rule: None }
    }

    fn objects(storage: impl Storage + 'static) -> Self {
        Self { kept: Kept::Objects(Arc::new(storage)), rule: None }
    }

    fn env() -> Env {
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
            Kept::Objects(storage) => {
                self.wrapped(ObjectLog::create_behind(storage.clone(), Self::env(), RETRY, base).unwrap())
            }
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
                let (log, opened) = ObjectLog::open(storage.clone(), Self::env(), RETRY)?;
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
                let (log, _) = ObjectLog::open(storage.clone(), Self::env(), RETRY).unwrap();
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

    fn storage(&self) -> Arc<dyn Storage> {
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

fn keeps_the_contract(place: impl Fn() -> Place) {
    let shared = if matches!(place().kept, Kept::Objects(_)) { &SHARED_CHECKS[..] } else { &[] };
    for (what, check) in CHECKS.iter().chain(shared) {
        println!("{what}");
        check(&place());
    }
}

#[test]
fn a_log_in_files_keeps_it() {
    for segment_bytes_max in [300, 64 << 20] {
        let folders = std::cell::RefCell::new(Vec::new());
        keeps_the_contract(|| {
            let folder = tempfile::tempdir().unwrap();
            let disk = OsDisk::open(folder.path()).unwrap();
            folders.borrow_mut().push(folder);
            Place::files(Arc::new(disk), segment_bytes_max)
        });
    }
}

#[test]
fn a_log_on_a_simulated_disk_keeps_it() {
    for segment_bytes_max in [0, 300, 64 << 20] {
        keeps_the_contract(|| Place::sim(SimDisk::new(), segment_bytes_max));
        keeps_the_contract(|| Place::files(Arc::new(SimDisk::in_memory()), segment_bytes_max));
    }
}

#[test]
fn a_log_in_a_simulated_bucket_keeps_it() {
    keeps_the_contract(|| Place::objects(SimBucket::new()));
}

#[test]
fn a_log_in_a_shared_folder_keeps_it() {
    let folders = std::cell::RefCell::new(Vec::new());
    keeps_the_contract(|| {
        let folder = tempfile::tempdir().unwrap();
        let disk = OsDisk::open(folder.path()).unwrap();
        folders.borrow_mut().push(folder);
        Place::objects(FileStorage::new(Arc::new(disk)))
    });
}

/// Puts are throttled, done without an answer, or done late: the log finds out which.
#[test]
fn a_log_in_a_bucket_whose_answers_are_lost_keeps_it() {
    keeps_the_contract(|| {
        let (bucket, mut puts) = (SimBucket::new(), 0);
        bucket.plan(move |op, _| {
            puts += u64::from(matches!(op, BucketOp::Put | BucketOp::PutIf));
            match (op, puts % 7) {
                (BucketOp::PutIf | BucketOp::Put, 1) => Some(BucketFault::Lost),
                (BucketOp::PutIf, 3) => Some(BucketFault::Throttled),
                (BucketOp::PutIf, 5) => Some(BucketFault::Late(2)),
                _ => None,
            }
        });
        Place::objects(bucket)
    });
}

#[test]
fn logs_in_buckets_on_servers_keep_it() {
    for bucket in buckets("the contract of the commit log") {
        println!("{}", bucket.name);
        let number = AtomicU64::new(0);
        keeps_the_contract(|| {
            Place::objects(bucket.client(&format!("contract-log/{}", number.fetch_add(1, Ordering::Relaxed))))
        });
    }
}

#[test]
fn a_log_that_breaks_a_rule_is_noticed() {
    let all = || CHECKS.into_iter().chain(SHARED_CHECKS);
    for (rule, noticed_by) in RULES {
        let (_, check) = all().find(|(what, _)| *what == noticed_by).unwrap();
        let mut places = vec![Place::objects(SimBucket::new())];
        if rule == Rule::SharesNoOrder {
            places = vec![Place::objects(SimBucket::new().lying())];
        } else if CHECKS.iter().any(|(what, _)| *what == noticed_by) {
            places.push(Place::sim(SimDisk::new(), 64 << 20));
        }
        if rule == Rule::SyncsNothing {
            // What a bucket has accepted is durable.
            places.remove(0);
        }
        for place in places {
            let place = Place { rule: Some(rule), ..place };
            let checked = catch_unwind(AssertUnwindSafe(|| check(&place)));
            assert!(checked.is_err(), "'{noticed_by}' does not notice {rule:?}");
        }
    }
    for (what, _) in all() {
        assert!(RULES.iter().any(|(_, noticed_by)| *noticed_by == what), "'{what}' notices nothing");
    }
}
