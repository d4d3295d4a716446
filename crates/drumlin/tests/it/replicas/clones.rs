//! Copies of whole stores, of the newest commit and of earlier ones.

use drumlin::storage::{CrashPoint, DiskFault, SimDisk};
use drumlin::store::CloneAt;
use drumlin::{ErrorKind, Seq, Tables};

use super::{Pair, Worked, sound};
use crate::faults::crash::{no_orphans, workload};
use crate::models::random::{Op, check};
use crate::seeds;
use crate::support::{batch, numbered, open_inline, open_shared, open_with};

#[test]
fn each_commit_that_the_log_has_is_copied_as_it_was() {
    let mut copied = 0;
    seeds::each(950..959, 3, |seed| {
        let pair = Pair::new();
        let mut ops = workload(seed, 40);
        // Earlier commits are there as long as the log reaches back, and the blocks are not reclaimed.
        ops.retain(|op| !matches!(op, Op::Reclaim | Op::Reopen));
        let mut worked = Worked::new(&pair, [open_with, open_inline, open_shared][seed as usize % 3]);
        let mut seen = Vec::new();
        for op in &ops {
            worked.work(&pair, std::slice::from_ref(op));
            seen.push((worked.store.seq().unwrap(), worked.model.0.clone()));
            if matches!(op, Op::Checkpoint) {
                seen.clear();
            }
        }
        for (seq, model) in &seen {
            let pair = Pair { source: pair.source.clone(), target: SimDisk::new(), ..Pair::new() };
            pair.clock.set(drumlin::Timestamp(2_000_000_000));
            let at = match pair.clone_at(CloneAt::Commit(*seq)) {
                // Other operations make checkpoints, too.
                Err(e) if e.kind() == ErrorKind::SnapshotExpired => continue,
                other => other.unwrap(),
            };
            assert_eq!(at.copied.seq, seq.0);
            let store = open_shared(&pair.target, &pair.clock, 2).unwrap();
            check(&store, model);
            sound(&store);
            no_orphans(&store, &pair.target);
            copied += 1;
        }
        // The newest, which is then a store that goes its own way.
        let next = Pair { source: pair.source.clone(), target: SimDisk::new(), ..Pair::new() };
        next.clone_at(CloneAt::Newest).unwrap();
        let store = open_shared(&next.target, &next.clock, 2).unwrap();
        check(&store, &worked.model.0);
        store.table("own").write(batch(&numbered(0, 4)), &Default::default()).unwrap();
        assert_eq!(worked.store.tables("own").unwrap(), [""; 0]);
        assert_eq!(next.clone_at(CloneAt::Newest).unwrap_err().kind(), ErrorKind::AlreadyExists);
    });
    assert!(copied > 60, "{copied}");
}

#[test]
fn copies_are_copied_and_followed() {
    let first = Pair::new();
    let store = open_with(&first.source, &first.clock, 2).unwrap();
    super::append(&store, 0).unwrap();
    first.clone_at(CloneAt::Newest).unwrap();
    // Its log begins with the first commit, of the store that it is a copy of.
    let second = Pair { source: first.target.clone(), ..Pair::new() };
    second.clone_at(CloneAt::Newest).unwrap();
    let third = Pair { source: second.target.clone(), ..Pair::new() };
    third.follow().unwrap();
    third.promote(false).unwrap();
    let fourth = Pair { source: third.target.clone(), ..Pair::new() };
    fourth.follow().unwrap();
    assert_eq!(fourth.read().unwrap().tables("**").unwrap(), ["t"]);
}

#[test]
fn what_is_not_there_is_refused() {
    let pair = Pair::new();
    let store = open_with(&pair.source, &pair.clock, 2).unwrap();
    for from in 0..4 {
        pair.clock.set(drumlin::Timestamp(1_000_000 + from * 1000));
        super::append(&store, from).unwrap();
    }
    let last = store.seq().unwrap();
    let kind = |at| pair.clone_at(at).unwrap_err().kind();
    assert_eq!(kind(CloneAt::Commit(Seq(last.0 + 1))), ErrorKind::NotFound);
    assert_eq!(kind(CloneAt::Time(drumlin::Timestamp(5))), ErrorKind::SnapshotExpired);
    assert!(pair.target.files().is_empty(), "a refused call made something");
    let other = Pair { source: pair.source.clone(), ..Pair::new() };
    other.clone_at(CloneAt::Time(drumlin::Timestamp(1_002_500))).unwrap();
    let rows = open_shared(&other.target, &other.clock, 2).unwrap().table("t").collect(&Default::default()).unwrap();
    assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 9);
    store.checkpoint(&Default::default()).unwrap();
    assert_eq!(kind(CloneAt::Commit(Seq(last.0 - 1))), ErrorKind::SnapshotExpired);
    // A replica is not a copy that was begun, nor the other way round.
    pair.follow().unwrap();
    assert_eq!(kind(CloneAt::Newest), ErrorKind::AlreadyExists);
}

#[test]
fn a_copy_that_was_cut_off_is_continued() {
    let made = Pair::new();
    let store = open_with(&made.source, &made.clock, 2).unwrap();
    for from in 0..4 {
        store.table(&format!("t/{from}")).write(batch(&numbered(from, 30)), &Default::default()).unwrap();
    }
    let total = {
        let pair = Pair { source: made.source.clone(), ..Pair::new() };
        pair.clone_at(CloneAt::Newest).unwrap();
        pair.target.counters().changes
    };
    for at in 0..total {
        for moment in [CrashPoint::Before, CrashPoint::During, CrashPoint::After] {
            let pair = Pair { source: made.source.clone(), ..Pair::new() };
            pair.target.plan(at, DiskFault::Crash(moment));
            let _ = pair.clone_at(CloneAt::Newest);
            let pair = Pair { target: pair.target.crash(at), ..pair };
            match pair.clone_at(CloneAt::Newest) {
                Ok(_) => {}
                Err(e) => assert!(e.to_string().contains("store of its own"), "{at} {moment:?}: {e}"),
            }
            let copy = open_shared(&pair.target, &pair.clock, 2).unwrap();
            assert_eq!(copy.tables("t/*").unwrap().len(), 4);
            sound(&copy);
        }
    }
}
