//! A replica takes its source's place: at no moment are there two stores of one id that are written.

use std::sync::Arc;

use drumlin::storage::{CrashPoint, Disk, DiskFault};
use drumlin::store::{PromoteOptions, StorePlace, promote_on};
use drumlin::{ErrorKind, Tables};

use super::{Pair, Worked, append, same};
use crate::faults::crash::{no_orphans, workload};
use crate::models::random::check;
use crate::processes::shared_fence::Hooked;
use crate::seeds;
use crate::support::{Checked, open_shared, open_with, opener};

#[test]
fn the_work_goes_on_where_the_source_ended() {
    seeds::each(940..946, 3, |seed| {
        let pair = Pair::new();
        let single = seed % 2 == 0;
        let ops = workload(seed, 60);
        let mut worked = Worked::new(&pair, if single { opener(seed) } else { open_shared });
        worked.work(&pair, &ops[..20]);
        pair.follow().unwrap();
        worked.work(&pair, &ops[20..40]);
        if single {
            // The process that writes it must have closed it.
            assert_eq!(pair.promote(false).unwrap_err().kind(), ErrorKind::Locked);
            worked.store.close().unwrap();
        }
        let report = pair.promote(false).unwrap();
        assert_eq!(report.ended.as_deref(), Some("source"));
        if single {
            // Sharing the source began with a checkpoint, which numbers versions.
            assert!(crate::models::random::apply(
                &mut worked.model.0,
                &mut worked.model.1,
                &crate::models::random::Op::Checkpoint
            ));
        }
        // The source is read, and never written again.
        let old = super::read(&pair.source, &pair.clock).unwrap();
        check(&old, &worked.model.0);
        if !single {
            let told = append(&worked.store, 0).unwrap_err();
            assert!(told.kind() == ErrorKind::InvalidArgument && told.to_string().contains("was ended"), "{told}");
        }
        let told = open_shared(&pair.source, &pair.clock, 2).unwrap_err();
        assert!(told.to_string().contains(&format!("{:032x}", report.store)), "{told}");
        // The replica is a store like any other.
        assert_eq!(pair.promote(false).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert!(pair.follow().is_err(), "a store of its own follows nobody");
        let store = open_shared(&pair.target, &pair.clock, 2).unwrap();
        check(&store, &worked.model.0);
        let next = Pair { source: pair.target.clone(), ..Pair::new() };
        let mut on = Worked { store, open: open_shared, model: worked.model, done: 40 };
        on.work(&next, &ops[40..]);
        no_orphans(&on.store, &next.source);
        next.follow().unwrap();
        same(&next.read().unwrap(), &on.model.0, &on.store);
    });
}

#[test]
fn of_a_source_that_is_lost_what_was_brought_over_stays() {
    let pair = Pair::new();
    let store = open_shared(&pair.source, &pair.clock, 2).unwrap();
    append(&store, 0).unwrap();
    pair.follow().unwrap();
    append(&store, 10).unwrap();
    let open = |uri: &str, _: bool| match uri {
        "target" => Ok(StorePlace::Folder(Arc::new(pair.target.clone()))),
        _ => Err(drumlin::Error::new(ErrorKind::Unavailable, "no route to it")),
    };
    let options = PromoteOptions { replicate: pair.options(), ..PromoteOptions::default() };
    let files = pair.target.files();
    let told = promote_on(&open, "target", &pair.env(), &options).unwrap_err();
    assert!(told.kind() == ErrorKind::Unavailable && told.to_string().contains("'lost'"), "{told}");
    assert_eq!(pair.target.files(), files, "a refused call changed something");
    let report = promote_on(&open, "target", &pair.env(), &PromoteOptions { lost: true, ..options }).unwrap();
    assert_eq!(report.ended, None);
    let promoted = open_shared(&pair.target, &pair.clock, 2).unwrap();
    assert_eq!(
        promoted.table("t").collect(&Default::default()).unwrap().iter().map(|b| b.num_rows()).sum::<usize>(),
        3
    );
    append(&promoted, 20).unwrap();
    // Both are written now; neither takes over anything of the other.
    append(&store, 30).unwrap();
    assert!(pair.follow().is_err());
}

#[test]
fn one_of_two_replicas_takes_the_place() {
    let pair = Pair::new();
    let store = open_shared(&pair.source, &pair.clock, 2).unwrap();
    append(&store, 0).unwrap();
    let other = Pair { source: pair.source.clone(), ..Pair::new() };
    pair.follow().unwrap();
    other.follow().unwrap();
    append(&store, 10).unwrap();
    let first = pair.promote(false).unwrap();
    let told = other.promote(false).unwrap_err();
    assert!(told.to_string().contains(&format!("{:032x}", first.store)), "{told}");
    // It still brings over what the source had, and may become a store beside the other one.
    other.follow().unwrap();
    assert_eq!(other.read().unwrap().seq().unwrap().0, first.seq);
    let second = other.promote(true).unwrap();
    assert_ne!(first.store, second.store);
    append(&open_shared(&other.target, &other.clock, 2).unwrap(), 20).unwrap();
    append(&open_shared(&pair.target, &pair.clock, 2).unwrap(), 30).unwrap();
}

#[test]
fn a_source_that_was_put_back_is_noticed() {
    for open in [open_with as crate::support::Opener, open_shared] {
        for later in 0..3 {
            let mut pair = Pair::new();
            let store = open(&pair.source, &pair.clock, 2).unwrap();
            (0..3).for_each(|n| append(&store, n).unwrap());
            pair.follow().unwrap();
            store.close().unwrap();
            let old = pair.source.fork();
            let store = open(&pair.source, &pair.clock, 2).unwrap();
            (3..6).for_each(|n| append(&store, n).unwrap());
            store.close().unwrap();
            pair.follow().unwrap();
            let have = pair.read().unwrap().seq().unwrap();
            // Fewer, as many, and more commits than before.
            pair.source = old;
            // So that ids differ from those that were drawn before.
            let disk: &dyn Disk = &pair.source;
            for _ in 0..3 {
                disk.make_dir("probe").unwrap();
                disk.remove_dir("probe").unwrap();
            }
            let store = open(&pair.source, &pair.clock, 2).unwrap();
            let mut n = 100;
            while store.seq().unwrap().0 + 1 < have.0 + later {
                append(&store, n).unwrap();
                n += 1;
            }
            store.close().unwrap();
            let told = pair.follow().unwrap_err();
            assert!(told.kind() == ErrorKind::Corrupt, "{later}: {told}");
            let told = pair.promote(false).unwrap_err();
            assert!(told.kind() == ErrorKind::Corrupt, "{later}: {told}");
            // What was brought over can still be used.
            pair.promote(true).unwrap();
            let store = open_shared(&pair.target, &pair.clock, 2).unwrap();
            let rows = store.table("t").collect(&Default::default()).unwrap();
            assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 18);
        }
    }
}

#[test]
fn what_a_killed_call_has_left_does_not_keep_a_replica_from_its_place() {
    let made = Pair::new();
    let store = open_with(&made.source, &made.clock, 2).unwrap();
    (0..3).for_each(|n| append(&store, n).unwrap());
    made.follow().unwrap();
    (3..40).for_each(|n| append(&store, n).unwrap());
    store.checkpoint(&Default::default()).unwrap();
    let begun = made.target.counters().changes;
    let total = {
        let pair = Pair { target: made.target.fork(), source: made.source.clone(), ..Pair::new() };
        assert_eq!(pair.follow().unwrap().whole, 1);
        pair.target.counters().changes
    };
    for at in begun..total {
        for moment in [CrashPoint::Before, CrashPoint::After] {
            let pair = Pair { target: made.target.fork(), source: made.source.clone(), ..Pair::new() };
            pair.target.plan(at, DiskFault::Crash(moment));
            let _ = pair.follow();
            let pair = Pair { target: pair.target.crash(at * 13), ..pair };
            pair.promote(true).unwrap_or_else(|e| panic!("{at} {moment:?}: {e}"));
            let store = open_shared(&pair.target, &pair.clock, 2).unwrap_or_else(|e| panic!("{at} {moment:?}: {e}"));
            append(&store, 99).unwrap();
            super::sound(&store);
        }
    }
}

#[test]
fn a_store_that_was_ended_is_one_again() {
    let pair = Pair::new();
    let store = open_with(&pair.source, &pair.clock, 2).unwrap();
    append(&store, 0).unwrap();
    store.close().unwrap();
    pair.follow().unwrap();
    let first = pair.promote(false).unwrap();
    let back = Pair { source: pair.target.clone(), target: pair.source.clone(), ..Pair::new() };
    let second = back.promote(false).unwrap();
    assert_ne!(first.store, second.store);
    append(&open_shared(&pair.source, &pair.clock, 2).unwrap(), 5).unwrap();
}

#[test]
fn what_is_committed_while_a_replica_is_promoted_is_refused_or_kept() {
    assert_eq!(commits_beside(), Ok(()));
}

/// Another process commits before each operation of a promotion.
pub fn commits_beside() -> Checked {
    let (mut kept, mut refused) = (0, 0);
    for turn in 0..150 {
        let pair = Pair::new();
        let store = open_shared(&pair.source, &pair.clock, 2).unwrap();
        append(&store, 0).unwrap();
        pair.follow().unwrap();
        let done = Arc::new(std::sync::Mutex::new(None));
        let (mut count, source, noted) = (0, store.clone(), done.clone());
        let hooked = Hooked::new(&pair.target, move || {
            count += 1;
            if count == turn + 1 {
                *noted.lock().unwrap() = Some(append(&source, 100));
            }
        });
        let open = |uri: &str, _: bool| match uri {
            "target" => Ok(StorePlace::Folder(Arc::new(hooked.clone()))),
            _ => Ok(StorePlace::Folder(Arc::new(pair.source.clone()))),
        };
        let options = PromoteOptions { replicate: pair.options(), ..PromoteOptions::default() };
        promote_on(&open, "target", &pair.env(), &options).map_err(|e| format!("{turn}: {e}"))?;
        let promoted = open_shared(&pair.target, &pair.clock, 2).unwrap();
        let rows: usize = promoted.table("t").collect(&Default::default()).unwrap().iter().map(|b| b.num_rows()).sum();
        let done = done.lock().unwrap().take();
        match done {
            Some(Ok(())) if rows == 6 => kept += 1,
            Some(Ok(())) => return Err(format!("{turn}: a commit that was acknowledged is lost")),
            Some(Err(e)) if rows == 3 && e.kind() == ErrorKind::InvalidArgument => refused += 1,
            Some(Err(e)) => return Err(format!("{turn}: {rows} rows after {e}")),
            None => {}
        }
    }
    if kept > 0 && refused > 0 { Ok(()) } else { Err(format!("{kept} kept, {refused} refused")) }
}

#[test]
fn a_crash_anywhere_is_continued_by_the_same_call() {
    let made = Pair::new();
    let store = open_shared(&made.source, &made.clock, 2).unwrap();
    append(&store, 0).unwrap();
    made.follow().unwrap();
    append(&store, 10).unwrap();
    for target in [false, true] {
        let disk = |pair: &Pair| if target { pair.target.clone() } else { pair.source.clone() };
        let begun = disk(&made).counters().changes;
        let fork = || Pair { source: made.source.fork(), target: made.target.fork(), ..Pair::new() };
        let total = {
            let pair = fork();
            pair.promote(false).unwrap();
            disk(&pair).counters().changes
        };
        assert!(total > begun);
        for at in begun..total {
            for moment in [CrashPoint::Before, CrashPoint::During, CrashPoint::After] {
                let pair = fork();
                disk(&pair).plan(at, DiskFault::Crash(moment));
                let done = pair.promote(false);
                let survived = disk(&pair).crash(at);
                let pair = if target { Pair { target: survived, ..pair } } else { Pair { source: survived, ..pair } };
                match pair.promote(false) {
                    Ok(_) => {}
                    // It was done, except that the caller did not hear of it.
                    Err(e) => {
                        assert!(e.to_string().contains("store of its own"), "{at} {moment:?}: {e} after {done:?}")
                    }
                }
                let promoted = open_shared(&pair.target, &pair.clock, 2).unwrap();
                let rows: usize =
                    promoted.table("t").collect(&Default::default()).unwrap().iter().map(|b| b.num_rows()).sum();
                assert_eq!(rows, 6, "{at} {moment:?}");
                append(&promoted, 20).unwrap();
                assert!(open_shared(&pair.source, &pair.clock, 2).is_err(), "{at} {moment:?}: both are written");
            }
        }
    }
}
