//! Earlier commits are restored from a replica that keeps its past.

use drumlin::base::Timestamp;
use drumlin::storage::{CrashPoint, DiskFault, SimDisk, names};
use drumlin::store::CloneAt;
use drumlin::{ErrorKind, ReclaimOptions, Retention, Seq, Tables};

use super::{Pair, Worked, append, same, sound};
use crate::faults::crash::workload;
use crate::models::model::Model;
use crate::models::random::{Op, check};
use crate::models::wide_op::WideOp;
use crate::seeds;
use crate::support::{batch, numbered, open_inline, open_shared, open_with};

const DAY: u64 = 86_400_000_000;

/// A copy of what was there at some time, made from the replica.
fn restored(pair: &Pair, at: CloneAt) -> drumlin::Result<Pair> {
    let from = Pair { source: pair.target.fork(), ..Pair::new() };
    from.clock.set(Timestamp(2_000_000_000));
    from.clone_at(at).map(|_| from)
}

#[test]
fn each_commit_of_the_time_that_is_kept_is_restored() {
    let (mut restored_commits, mut replaced) = (0, 0);
    seeds::each(960..969, 3, |seed| {
        let mut pair = Pair { keep: Some(DAY), ..Pair::new() };
        let open = [open_with, open_inline, open_shared][seed as usize % 3];
        pair.lease = seed % 2 == 0;
        let ops = workload(seed, 60);
        let mut worked = Worked::new(&pair, open);
        let mut seen: Vec<(Seq, Model)> = Vec::new();
        for op in &ops {
            worked.work(&pair, std::slice::from_ref(op));
            pair.follow().unwrap();
            let reader = pair.read().unwrap();
            if matches!(op, Op::Wide(WideOp::Purge | WideOp::Erase(..))) {
                seen.clear();
            }
            seen.push((reader.seq().unwrap(), worked.model.0.clone()));
        }
        worked.store.refresh().unwrap();
        same(&pair.read().unwrap(), &worked.model.0, &worked.store);
        replaced += pair.target.files().iter().filter(|(name, _)| name.starts_with("archive/")).count();
        for (seq, model) in &seen {
            let copy = restored(&pair, CloneAt::Commit(*seq)).unwrap_or_else(|e| panic!("{seq}: {e}"));
            let store = open_shared(&copy.target, &copy.clock, 2).unwrap();
            check(&store, model);
            sound(&store);
            restored_commits += 1;
        }
        // Once it is no longer kept, it goes.
        for n in 0..40 {
            pair.clock.set(Timestamp(2_000_000_000 + 2 * DAY as i64 + n));
            append(&worked.store, 1000 + n).unwrap();
            pair.follow().unwrap();
        }
        assert!(pair.target.files().iter().any(|(name, _)| name.starts_with("archive/")));
        pair.clock.set(Timestamp(2_000_000_000 + 4 * DAY as i64));
        pair.follow().unwrap();
        let old = pair.target.files().into_iter().filter(|(name, _)| {
            let archived = name.strip_prefix("archive/").map(|name| names::parse_archived(name).unwrap());
            archived.is_some_and(|(_, at)| at < Timestamp(3 * DAY as i64))
        });
        assert_eq!(old.count(), 0);
        let fresh = Pair { source: pair.source.clone(), ..Pair::new() };
        fresh.follow().unwrap();
        let blocks = |disk: &SimDisk| {
            let files = disk.files().into_iter().map(|(name, _)| name);
            files.filter(|name| name.starts_with("blocks/")).collect::<Vec<_>>()
        };
        let extra: Vec<_> =
            blocks(&pair.target).into_iter().filter(|name| !blocks(&fresh.target).contains(name)).collect();
        let there = blocks(&pair.source);
        assert!(extra.iter().all(|name| there.contains(name)), "{extra:?}");
    });
    assert!(restored_commits > 300 && replaced > 30, "{restored_commits} {replaced}");
}

#[test]
fn times_and_commits_that_are_not_kept_are_refused() {
    let pair = Pair { keep: Some(DAY), ..Pair::new() };
    let store = open_shared(&pair.source, &pair.clock, 2).unwrap();
    for n in 0..60 {
        pair.clock.set(Timestamp(1_000_000 + n * 1000));
        append(&store, n * 10).unwrap();
        if n >= 20 {
            pair.follow().unwrap();
        }
        if n == 19 {
            store.checkpoint(&Default::default()).unwrap();
            store.reclaim(&Default::default()).unwrap();
        }
    }
    let rows = |at| {
        let copy = restored(&pair, at)?;
        let store = open_shared(&copy.target, &copy.clock, 2)?;
        let batches = store.table("t").collect(&Default::default())?;
        Ok::<_, drumlin::Error>(batches.iter().map(|batch| batch.num_rows()).sum::<usize>())
    };
    // Of each time from the first that it has on.
    for n in 21..60 {
        assert_eq!(rows(CloneAt::Time(Timestamp(1_000_500 + n * 1000))).unwrap(), 3 * (n as usize + 1), "{n}");
    }
    for at in [CloneAt::Time(Timestamp(1_000_000)), CloneAt::Commit(Seq(2))] {
        assert_eq!(rows(at).unwrap_err().kind(), ErrorKind::SnapshotExpired);
    }
    assert_eq!(rows(CloneAt::Commit(Seq(1_000_000))).unwrap_err().kind(), ErrorKind::NotFound);
    // Commits that were passed by are not taken for others.
    let last = pair.read().unwrap().seq().unwrap();
    let gap = store.seq().unwrap();
    assert_eq!(last, gap);
    for n in 60..70 {
        pair.clock.set(Timestamp(1_000_000 + n * 1000));
        append(&store, n * 10).unwrap();
    }
    store.checkpoint(&Default::default()).unwrap();
    let report = pair.follow().unwrap();
    assert_eq!(report.whole, 1, "{report:?}");
    let told = rows(CloneAt::Time(Timestamp(1_064_500))).unwrap_err();
    assert!(told.kind() == ErrorKind::SnapshotExpired && told.to_string().contains("passed by"), "{told}");
    assert_eq!(rows(CloneAt::Time(Timestamp(1_058_500))).unwrap(), 3 * 59);
    let told = rows(CloneAt::Commit(Seq(last.0 + 3))).unwrap_err();
    assert_eq!(told.kind(), ErrorKind::SnapshotExpired, "{told}");
    // A later call without the option keeps what there is; one with 0 ends it.
    let later = Pair { source: pair.source.clone(), target: pair.target.fork(), ..Pair::new() };
    later.follow().unwrap();
    assert!(later.target.files().iter().any(|(name, _)| name.starts_with("archive/")));
    let ended = Pair { keep: Some(0), source: pair.source.clone(), target: pair.target.fork(), ..Pair::new() };
    ended.follow().unwrap();
    assert!(ended.target.files().iter().all(|(name, _)| !name.starts_with("archive/")));
    sound(&ended.read().unwrap());
}

#[test]
fn blocks_that_come_and_go_between_two_looks_are_kept() {
    for open in [open_with as crate::support::Opener, open_shared] {
        let mut pair = Pair { keep: Some(DAY), ..Pair::new() };
        pair.lease = true;
        let store = open(&pair.source, &pair.clock, 2).unwrap();
        store.table("t").write(batch(&numbered(0, 200)), &Default::default()).unwrap();
        store.set_retention("t", Some(Retention::KeepLast(1))).unwrap();
        pair.follow().unwrap();
        let mut seen = Vec::new();
        for n in 1..6 {
            store.table("t").write(batch(&numbered(1000 * n, 100 + n as usize)), &Default::default()).unwrap();
            seen.push((store.seq().unwrap(), 100 + n as usize));
        }
        pair.follow().unwrap();
        store.reclaim(&ReclaimOptions { block_grace_micros: Some(0), ..ReclaimOptions::default() }).unwrap();
        pair.follow().unwrap();
        for (seq, rows) in seen {
            let copy = restored(&pair, CloneAt::Commit(seq)).unwrap_or_else(|e| panic!("{seq}: {e}"));
            let store = open_shared(&copy.target, &copy.clock, 2).unwrap();
            let batches = store.table("t").collect(&Default::default()).unwrap();
            assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), rows, "{seq}");
            sound(&store);
        }
    }
}

#[test]
fn a_crash_at_each_change_loses_nothing_of_what_is_kept() {
    for seed in 970..972 {
        let made = Pair { keep: Some(DAY), ..Pair::new() };
        let ops = workload(seed, 44);
        let mut worked = Worked::new(&made, [open_with, open_shared][seed as usize % 2]);
        let mut seen: Vec<(Seq, Model)> = Vec::new();
        for op in &ops[..40] {
            worked.work(&made, std::slice::from_ref(op));
            made.follow().unwrap();
            if matches!(op, Op::Wide(WideOp::Purge | WideOp::Erase(..))) {
                seen.clear();
            }
            seen.push((made.read().unwrap().seq().unwrap(), worked.model.0.clone()));
        }
        worked.work(&made, &ops[40..]);
        let begun = made.target.counters().changes;
        let forked =
            |disk: &SimDisk| Pair { target: disk.fork(), source: made.source.clone(), keep: made.keep, ..Pair::new() };
        let total = {
            let pair = forked(&made.target);
            pair.follow().unwrap();
            pair.target.counters().changes
        };
        for at in begun..total {
            for moment in [CrashPoint::Before, CrashPoint::During, CrashPoint::After] {
                let pair = forked(&made.target);
                pair.target.plan(at, DiskFault::Crash(moment));
                let _ = pair.follow();
                let pair = Pair { target: pair.target.crash(at * 31 + seed), ..pair };
                pair.follow().unwrap_or_else(|e| panic!("{seed} {at} {moment:?}: {e}"));
                let (seq, model) = &seen[(at as usize * 7) % seen.len()];
                let copy = restored(&pair, CloneAt::Commit(*seq)).unwrap_or_else(|e| panic!("{seed} {at} {seq}: {e}"));
                check(&open_shared(&copy.target, &copy.clock, 2).unwrap(), model);
            }
        }
    }
}
