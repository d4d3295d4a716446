//! A crash before, during and after every storage operation: recovery gives the state before or after the interrupted
//! operation, nothing else, and what that left behind is gone after the next reclaim.

use std::collections::BTreeSet;
use std::sync::Arc;

use drumlin::base::{ManualClock, Timestamp};
use drumlin::storage::{CrashPoint, DiskFault, SimDisk};
use drumlin::store::ReclaimOptions;
use drumlin::{ErrorKind, Store, Tables};

use crate::models::model::{Model, Trash};
use crate::models::random::{Op, apply, check, compare, draw, run};
use crate::models::wide;
use crate::seeds;
use crate::support::{Opener, open_shared, opener};

/// Seeds from here on choose from all operations.
const WIDE: u64 = 500;

/// The time of the operation `at` of a workload.
pub fn time_of(at: usize) -> i64 {
    (at as i64 + 1) * 1000
}

/// Random operations from `seed`, all of which succeed.
pub fn workload(seed: u64, steps: usize) -> Vec<Op> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let (mut model, mut trash) = (Model::default(), Trash::new());
    let mut ops = Vec::new();
    while ops.len() < steps {
        let op = if seed >= WIDE { wide::draw(&mut rng, &model) } else { draw(&mut rng, &model, false) };
        model.now = time_of(ops.len());
        let before = (model.clone(), trash.clone());
        if apply(&mut model, &mut trash, &op) {
            ops.push(op);
        } else {
            (model, trash) = before;
        }
    }
    ops
}

/// Checks that everything on disk is known to the store.
pub fn no_orphans(store: &Store, disk: &SimDisk) {
    let all = ReclaimOptions { fence_idle_micros: Some(0), audit: true, ..ReclaimOptions::default() };
    store.reclaim(&all).unwrap();
    let report = store.verify(&Default::default()).unwrap();
    assert_eq!(report.faults, []);
    assert_eq!(report.orphans, []);
    let stat = store.stat().unwrap();
    let blocks = disk.files().iter().filter(|(name, _)| name.starts_with("blocks/")).count() as u64;
    assert_eq!(blocks, stat.blocks + stat.condemned, "files under blocks/");
    let stray = disk.files().into_iter().map(|(name, _)| name).filter(|name| name.ends_with(".tmp"));
    assert_eq!(stray.filter(|name| name.starts_with("blocks/")).collect::<Vec<_>>(), Vec::<String>::new());
}

/// Runs `ops` until the planned fault strikes; returns at which operation, if it did.
fn run_until_struck(
    disk: &SimDisk,
    clock: &Arc<ManualClock>,
    ops: &[Op],
    open: Opener,
) -> Option<(usize, Model, Model)> {
    let (mut model, mut trash) = (Model::default(), Trash::new());
    let mut store = match open(disk, clock, 2) {
        Ok(store) => store,
        Err(_) => return Some((0, model.clone(), model)),
    };
    for (at, op) in ops.iter().enumerate() {
        model.now = time_of(at);
        clock.set(Timestamp(1_000_000 + model.now));
        let before = model.clone();
        assert!(apply(&mut model, &mut trash, op));
        if run(&mut store, || open(disk, clock, 2), op).is_err() {
            return Some((at, before, model));
        }
    }
    None
}

/// Strikes every operation of the workload, with every kind of crash.
fn strike_everywhere(open: Opener, seed: u64, steps: usize, stride: u64) -> u64 {
    let ops = workload(seed, steps);
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let total = {
        let disk = SimDisk::new();
        assert!(run_until_struck(&disk, &clock, &ops, open).is_none());
        disk.counters().changes
    };
    let mut struck = 0;
    for at in (seed % stride..total).step_by(stride as usize) {
        for moment in [CrashPoint::Before, CrashPoint::During, CrashPoint::After] {
            let disk = SimDisk::new();
            disk.plan(at, DiskFault::Crash(moment));
            // The last change may come at the close; then the crash does not strike an operation.
            let Some((step, before, after)) = run_until_struck(&disk, &clock, &ops, open) else { continue };
            struck += 1;
            for crash in 0..2 {
                let survived = disk.crash(at * 31 + crash);
                let place = || format!("seed {seed}, change {at} {moment:?}, crash {crash}, at {:?}", ops[step]);
                let store = open(&survived, &clock, 2).unwrap_or_else(|e| panic!("{}: {e}", place()));
                let begun = compare(&store, &ops[step].begun(&before));
                if let (Err(a), Err(b), Err(_)) = (compare(&store, &after), compare(&store, &before), begun) {
                    panic!("{}: neither after ({a}) nor before ({b})", place());
                }
                no_orphans(&store, &survived);
                // The store continues to work.
                store.tree().put("after/crash", drumlin::catalog::Payload::bytes(&[1]).unwrap()).unwrap();
                store.close().unwrap();
            }
        }
    }
    struck
}

// faults: crash, torn log tail x random operations, verify
#[test]
fn a_crash_at_any_operation_leaves_before_or_after() {
    let mut struck = 0;
    seeds::each(0..4, 0, |seed| struck += strike_everywhere(opener(seed), seed, 25, 1));
    seeds::each(10..20, 0, |seed| struck += strike_everywhere(opener(seed), seed, 40, 7));
    assert!(struck > 1000 || seeds::given(), "only {struck} crashes were tried");
}

// faults: crash, torn log tail x random operations, verify
#[test]
fn a_crash_among_all_operations_leaves_before_or_after() {
    let mut struck = 0;
    seeds::each(500..504, 4, |seed| struck += strike_everywhere(opener(seed), seed, 40, 9));
    assert!(struck > 200 || seeds::given(), "only {struck} crashes were tried");
}

// faults: crash x random operations, verify
#[test]
fn a_crash_in_a_folder_of_many_processes_leaves_before_or_after() {
    let mut struck = 0;
    seeds::each(60..63, 0, |seed| struck += strike_everywhere(open_shared, seed, 20, 1));
    seeds::each(70..76, 0, |seed| struck += strike_everywhere(open_shared, seed, 40, 7));
    assert!(struck > 1000 || seeds::given(), "only {struck} crashes were tried");
}

// faults: crash x random operations, verify
#[test]
fn a_crash_among_all_operations_in_a_folder_of_many_processes_leaves_before_or_after() {
    let mut struck = 0;
    seeds::each(510..512, 2, |seed| struck += strike_everywhere(open_shared, seed, 40, 9));
    assert!(struck > 100 || seeds::given(), "only {struck} crashes were tried");
}

// faults: crash, torn log tail x open
#[test]
fn a_crash_during_recovery_is_recovered_from() {
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    seeds::each(30..40, 5, |seed| {
        let open = opener(seed);
        let ops = workload(seed, 15);
        let disk = SimDisk::new();
        disk.plan(60 + seed % 100, DiskFault::Crash(CrashPoint::During));
        let Some((at, before, after)) = run_until_struck(&disk, &clock, &ops, open) else { return };
        let mut survived = disk.crash(seed);
        let mut opened = BTreeSet::new();
        for deep in 0..6 {
            survived.plan(survived.counters().changes + deep, DiskFault::Crash(CrashPoint::During));
            if let Ok(store) = open(&survived, &clock, 2) {
                opened.insert(deep);
                drop(store);
            }
            survived = survived.crash(seed + deep);
        }
        let store = open(&survived, &clock, 2).unwrap();
        if compare(&store, &before).is_err() && compare(&store, &ops[at].begun(&before)).is_err() {
            check(&store, &after);
        }
        no_orphans(&store, &survived);
    });
}

// faults: full disk, failed sync x random operations, verify
#[test]
fn an_error_at_any_operation_fails_that_call_alone() {
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    // The last seed chooses from all operations.
    seeds::each(50..57, 1, |seed| {
        let seed = if seed == 56 { WIDE + 56 } else { seed };
        let fault = if seed % 2 == 0 { DiskFault::Fail } else { DiskFault::Full };
        let open = if [54, 55].contains(&seed) || seed % 5 == 4 { open_shared } else { opener(seed) };
        let ops = workload(seed, 20);
        let total = {
            let disk = SimDisk::new();
            assert!(run_until_struck(&disk, &clock, &ops, open).is_none());
            disk.counters().changes
        };
        for at in 0..total {
            let disk = SimDisk::new();
            disk.plan(at, fault);
            let (mut model, mut trash) = (Model::default(), Trash::new());
            let Ok(mut store) = open(&disk, &clock, 2) else {
                disk.heal();
                let store = open(&disk, &clock, 2).unwrap();
                check(&store, &model);
                continue;
            };
            for (step, op) in ops.iter().enumerate() {
                model.now = time_of(step);
                clock.set(Timestamp(1_000_000 + model.now));
                let before = model.clone();
                assert!(apply(&mut model, &mut trash, op));
                let Err(e) = run(&mut store, || open(&disk, &clock, 2), op) else { continue };
                let place = || format!("seed {seed}, change {at} {fault:?}, {op:?}: {e}");
                let kinds = [ErrorKind::Unavailable, ErrorKind::InDoubt, ErrorKind::Closed];
                assert!(kinds.contains(&e.kind()), "{}", place());
                let is_open = store.stat().is_ok();
                // A full disk can still be read; and except for what a composite operation had done, nothing has
                // changed.
                if is_open && e.kind() == ErrorKind::Unavailable && !op.is_composite() {
                    compare(&store, &before).unwrap_or_else(|e| panic!("{}: {e}", place()));
                }
                disk.heal();
                // What the same handle acknowledges after the failure is durable.
                let (mut before, mut after) = (before, model.clone());
                if store.tree().put("n/8", drumlin::catalog::Payload::from(8)).is_ok() {
                    before.nodes.insert("n/8".into(), 8);
                    after.nodes.insert("n/8".into(), 8);
                }
                // Whatever the result was, after it is reopened the store shows one or the other state, and accepts the
                // rest.
                store.close().ok();
                drop(store);
                store = open(&disk, &clock, 2).unwrap_or_else(|e| panic!("{}: reopen: {e}", place()));
                if compare(&store, &before).is_err() && compare(&store, &op.begun(&before)).is_err() {
                    compare(&store, &after).unwrap_or_else(|e| panic!("{}: reopened: {e}", place()));
                }
                no_orphans(&store, &disk);
                break;
            }
            // A fault in a best effort (deleting a leftover), or in the close, does not fail a call.
            disk.heal();
            store.tree().put("goes/on", drumlin::catalog::Payload::bytes(&[1]).unwrap()).unwrap();
        }
    });
}
