//! Logs that lost synced entries: cut, zeroed, shifted or flipped anywhere, in stores that were closed and stores whose
//! process died. Either everything is there or the store is `Corrupt`; `accept_loss` still opens it.

use drumlin::catalog::Payload;
use drumlin::storage::{CrashPoint, Disk, DiskFault, SimDisk};
use drumlin::store::Options;
use drumlin::{ErrorKind, Store, Tables};

use crate::faults::log_faults::{by_time, cut_after_close, open, sync_together};

const MARK: &str = "log/synced";

fn put(store: &Store, range: std::ops::Range<i64>) {
    for n in range {
        store.tree().put(&format!("n/{n}"), Payload::from(n)).unwrap();
    }
}

fn count(store: &Store) -> u64 {
    store.tree().count("n/*").unwrap()
}

/// The history of each store, how many nodes have been acknowledged as durable, and its disk.
fn made() -> Vec<(&'static str, u64, SimDisk)> {
    let mut all = Vec::new();
    let disk = SimDisk::new();
    let store = open(&disk, Options::default()).unwrap();
    put(&store, 0..3);
    store.checkpoint(&Default::default()).unwrap();
    put(&store, 3..6);
    all.push(("killed after a checkpoint", 6, disk.fork()));
    store.close().unwrap();
    all.push(("closed", 6, disk.fork()));
    let store = open(&disk, Options::default()).unwrap();
    put(&store, 6..7);
    all.push(("one commit after a clean close, then killed", 7, disk.fork()));
    drop(store);
    let store = open(&disk, by_time()).unwrap();
    put(&store, 7..60);
    store.sync().unwrap();
    all.push(("killed after a sync by time", 60, disk.fork()));
    all.push(("lost power after a sync by time", 60, disk.crash(1)));
    all
}

/// Opens a damaged store: everything is there, or it is `Corrupt`.
fn judge(disk: &SimDisk, expected: u64, what: &str) -> bool {
    match open(&disk.fork(), Options::default()) {
        Ok(store) => {
            assert_eq!(count(&store), expected, "{what}: commits were lost silently");
            false
        }
        Err(e) => {
            // A flipped version is an unknown format.
            assert!([ErrorKind::Corrupt, ErrorKind::Unsupported].contains(&e.kind()), "{what}: {e}");
            // While another process writes, it is read by the same rule.
            let read = Options { mode: drumlin::store::Mode::Read, ..Options::default() };
            assert_eq!(open(&disk.fork(), read).unwrap_err().kind(), e.kind(), "{what}");
            true
        }
    }
}

// faults: lost log, torn log tail x open
#[test]
fn what_was_synced_is_there_or_the_store_is_corrupt() {
    for (how, expected, disk) in made() {
        assert!(!judge(&disk, expected, how), "{how}: undamaged");
        let segments = disk.files().into_iter().filter(|(name, _)| name.starts_with("log/") && name != MARK);
        for (name, content) in segments {
            let damage = |content: Vec<u8>, what: String| {
                let copy = disk.fork();
                copy.damage(&name, content);
                judge(&copy, expected, &format!("{how}: {name} {what}"))
            };
            let step = if content.len() > 4000 { 5 } else { 1 };
            let mut noticed = 0;
            for at in (0..content.len()).step_by(step) {
                let mut flipped = content.clone();
                flipped[at] ^= 1 << (at % 8);
                noticed += u32::from(damage(flipped, format!("flipped at {at}")));
                damage(content[..at].to_vec(), format!("cut at {at}"));
                let mut zeroed = content.clone();
                zeroed[at..].fill(0);
                damage(zeroed, format!("zeroed from {at}"));
                let mut shifted = content.clone();
                shifted.insert(at, 0);
                damage(shifted, format!("shifted from {at}"));
                let mut gap = content.clone();
                gap.drain(at..content.len().min(at + 24));
                damage(gap, format!("24 bytes gone at {at}"));
            }
            assert!(noticed > 0, "{how}: {name}");
        }
    }
}

// faults: lost log x open
#[test]
fn a_log_with_its_newest_segment_gone_is_corrupt() {
    let disk = SimDisk::new();
    let small = || Options {
        log: drumlin::log::LogOptions { segment_bytes_max: 300, ..Default::default() },
        ..Options::default()
    };
    let store = open(&disk, small()).unwrap();
    put(&store, 0..20);
    store.close().unwrap();
    let newest = disk.files().into_iter().map(|(name, _)| name).filter(|name| name.ends_with(".log")).max().unwrap();
    disk.remove(&newest).unwrap();
    assert_eq!(open(&disk, small()).unwrap_err().kind(), ErrorKind::Corrupt);
    let accepted = open(&disk, Options { accept_loss: true, ..small() }).unwrap();
    assert!(count(&accepted) < 20);
}

#[test]
fn a_mark_that_is_missing_or_damaged_costs_nothing() {
    for (how, expected, disk) in made() {
        let mark = disk.files().into_iter().find(|(name, _)| name == MARK).unwrap().1;
        for at in 0..mark.len() {
            let copy = disk.fork();
            let mut flipped = mark.clone();
            flipped[at] ^= 1;
            copy.damage(MARK, flipped);
            assert!(!judge(&copy, expected, &format!("{how}: mark flipped at {at}")));
            copy.damage(MARK, mark[..at].to_vec());
            assert!(!judge(&copy, expected, &format!("{how}: mark cut at {at}")));
        }
        disk.remove(MARK).unwrap();
        assert!(!judge(&disk, expected, &format!("{how}: mark removed")));
    }
}

#[test]
fn a_good_entry_behind_a_damaged_end_mark_is_evidence_of_its_own() {
    let (_, expected, disk) = made().remove(2);
    disk.remove(MARK).unwrap();
    let (name, content) = disk.files().into_iter().filter(|(name, _)| name.starts_with("log/")).max().unwrap();
    // The end mark is the record with kind 2.
    let end =
        (56..content.len()).step_by(8).find(|at| content[*at..*at + 4] == [0; 4] && content[at + 23] == 2).unwrap();
    for at in end..end + 24 {
        let mut flipped = content.clone();
        flipped[at] ^= 1;
        let copy = disk.fork();
        copy.damage(&name, flipped);
        assert!(judge(&copy, expected, &format!("end mark flipped at {at}")), "byte {at} of the end mark");
    }
}

/// An end mark that its writer had no time to sync is synced by the process that opens the log next, before anything
/// follows it.
// faults: crash, torn log tail x open, nodes
#[test]
fn a_process_that_dies_while_it_closes_leaves_nothing_that_looks_like_damage() {
    let mut struck = 0;
    for (at, fault) in (0..12).flat_map(|at| {
        [DiskFault::Crash(CrashPoint::Before), DiskFault::Crash(CrashPoint::After), DiskFault::Fail].map(|f| (at, f))
    }) {
        let disk = SimDisk::new();
        let store = open(&disk, Options::default()).unwrap();
        put(&store, 0..3);
        disk.plan(disk.counters().changes + at, fault);
        struck += usize::from(store.close().is_err() || disk.is_dead());
        drop(store);
        disk.revive();
        let next = open(&disk, Options::default()).unwrap();
        for later in 0..3 {
            disk.plan(disk.counters().changes + later, DiskFault::Crash(CrashPoint::Before));
            let put = next.tree().put(&format!("n/{}", 3 + later), Payload::from(0));
            for seed in 0..20 {
                let what = format!("{fault:?} at change {at} of the close, {later} of the next commit, seed {seed}");
                let after = open(&disk.crash(seed), Options::default()).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert!((3..=4 + later).contains(&count(&after)), "{what}: {}", count(&after));
            }
            if put.is_err() {
                break;
            }
        }
    }
    assert!(struck >= 6, "only {struck} faults struck");
}

// faults: lost log x open, verify
#[test]
fn loss_is_accepted_by_name_only_and_the_store_goes_on() {
    let (_, _, disk) = made().remove(1);
    let (name, content) = disk.files().into_iter().filter(|(name, _)| name.ends_with(".log")).max().unwrap();
    disk.damage(&name, content[..content.len() - 100].to_vec());
    let error = open(&disk, Options::default()).unwrap_err();
    for word in [&name, "salvage", "accept_loss", "synced"] {
        assert!(error.message().contains(word), "{error} lacks {word}");
    }
    let store = open(&disk, Options { accept_loss: true, ..Options::default() }).unwrap();
    let left = count(&store);
    assert!((3..6).contains(&left), "{left}");
    put(&store, 100..102);
    drop(store);
    // From then on, nothing is missing.
    let store = open(&disk, Options::default()).unwrap();
    assert_eq!(count(&store), left + 2);
    assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
}

// faults: failed sync x nodes
#[test]
fn a_failed_sync_is_reported_to_all_who_wait() {
    sync_together(false).unwrap();
    sync_together(true).unwrap();
}

#[test]
fn a_log_cut_after_a_clean_close_is_noticed() {
    cut_after_close().unwrap();
}

/// A log that is damaged beside its writer: `verify` says so while the state in memory is sound, and a checkpoint writes that.
#[test]
fn verify_reads_the_log_of_one_process_too() {
    let disk = SimDisk::new();
    let store = open(&disk, Options::default()).unwrap();
    put(&store, 0..30);
    let faults = |store: &Store| -> Vec<String> {
        store.verify(&Default::default()).unwrap().faults.into_iter().map(|fault| fault.error).collect()
    };
    assert!(faults(&store).is_empty());
    let (name, sound) = disk.files().into_iter().find(|(name, _)| name.ends_with(".log")).unwrap();
    let damaged = |at: usize| {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        bytes
    };
    for (bytes, told) in [
        (damaged(sound.len() / 2), "the record at offset"),
        (sound[..sound.len() / 2].to_vec(), "ends with commit"),
        (damaged(0), &name),
    ] {
        disk.damage(&name, bytes);
        let found = faults(&store);
        assert!(found.len() == 1 && found[0].contains(told), "{told}: {found:?}");
    }
    disk.damage(&name, damaged(sound.len() / 2));
    store.checkpoint(&Default::default()).unwrap();
    assert!(faults(&store).is_empty());
    put(&store, 30..40);
    drop(store);
    assert_eq!(count(&open(&disk.fork(), Options::default()).unwrap()), 40);
}
