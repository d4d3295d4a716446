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
mod place;
mod shared;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use broken::{RULES, Rule};
use checks::*;
use drumlin::storage::{BucketFault, BucketOp, FileStorage, OsDisk, SimBucket, SimDisk};
use place::{Kept, Place};
use shared::*;

use crate::contracts::servers::buckets;

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
