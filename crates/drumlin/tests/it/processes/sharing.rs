//! A store in a folder becomes shared, and back: what it has stays, whatever is done in between, and wherever it is cut off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drumlin::base::{ManualClock, Timestamp};
use drumlin::catalog::Payload;
use drumlin::storage::{CrashPoint, Disk, DiskFault, SimDisk, names};
use drumlin::store::{ReclaimOptions, share_on, unshare_on};
use drumlin::{ErrorKind, Options, Result, Store, Tables, Task};

use crate::faults::crash::{no_orphans, time_of, workload};
use crate::models::model::{Model, Trash};
use crate::models::random::{Op, apply, check, compare, run};
use crate::processes::shared_fence::Hooked;
use crate::seeds;
use crate::support::{Opener, env, open_shared, opener};

fn is_shared(disk: &SimDisk) -> bool {
    disk.identity(names::ROOT).unwrap().is_some()
}

/// Makes the store shared, or no longer.
fn turn(disk: &SimDisk, clock: &Arc<ManualClock>, shared: bool) -> Result<()> {
    turn_on(Arc::new(disk.clone()), disk, clock, shared)
}

/// The same, by way of `through`.
fn turn_on(through: Arc<dyn Disk>, disk: &SimDisk, clock: &Arc<ManualClock>, shared: bool) -> Result<()> {
    let open = || Ok(through.clone());
    let (env, options) = (env(clock, disk.counters().changes + 77, 2), Options::default());
    let turn = if shared { share_on } else { unshare_on };
    turn(&open, env, "sim", options, &Task::default())
}

/// Runs all operations in a store opened by `open`.
fn run_all(
    disk: &SimDisk,
    clock: &Arc<ManualClock>,
    open: Opener,
    ops: &[Op],
    from: usize,
    model: &mut (Model, Trash),
) {
    let mut store = open(disk, clock, 2).unwrap();
    check(&store, &model.0);
    for (at, op) in ops.iter().enumerate().skip(from) {
        model.0.now = time_of(at);
        clock.set(Timestamp(1_000_000 + model.0.now));
        assert!(apply(&mut model.0, &mut model.1, op));
        run(&mut store, || open(disk, clock, 2), op).unwrap();
    }
    check(&store, &model.0);
    store.close().unwrap();
}

#[test]
fn a_store_goes_back_and_forth_with_all_it_has() {
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    seeds::each(700..712, 3, |seed| {
        let ops = workload(seed, 60);
        let (disk, mut model) = (SimDisk::new(), (Model::default(), Trash::new()));
        for (round, from) in (0..60).step_by(12).enumerate() {
            let open = if is_shared(&disk) { open_shared } else { opener(seed) };
            run_all(&disk, &clock, open, &ops[..from + 12], from, &mut model);
            turn(&disk, &clock, !is_shared(&disk)).unwrap();
            assert_eq!(is_shared(&disk), round % 2 == 0);
            // It begins with a checkpoint, which numbers versions.
            assert!(apply(&mut model.0, &mut model.1, &Op::Checkpoint));
            // Nothing of the other kind is left.
            let files = disk.files();
            let has = |name: &str| files.iter().any(|(file, _)| file == name);
            assert_eq!((has(names::FORMAT), has(names::LOG_MARK)), (!is_shared(&disk), !is_shared(&disk)));
            assert_eq!(has(names::WITNESS), is_shared(&disk));
            turn(&disk, &clock, is_shared(&disk)).unwrap();
        }
        let open = if is_shared(&disk) { open_shared } else { opener(seed) };
        let store = open(&disk, &clock, 2).unwrap();
        check(&store, &model.0);
        no_orphans(&store, &disk);
    });
}

// faults: crash x random operations, open, verify
#[test]
fn a_crash_anywhere_on_the_way_leaves_one_kind_or_the_other() {
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let (mut before, mut after) = (0, 0);
    seeds::each(720..722, 0, |seed| {
        let mut ops = workload(seed, 20);
        ops.push(Op::Checkpoint);
        let (made, mut model) = (SimDisk::new(), (Model::default(), Trash::new()));
        run_all(&made, &clock, opener(seed), &ops, 0, &mut model);
        for to_shared in [true, false] {
            let begun = made.counters().changes;
            let total = {
                let disk = made.fork();
                turn(&disk, &clock, to_shared).unwrap();
                disk.counters().changes
            };
            for at in begun..total {
                for moment in [CrashPoint::Before, CrashPoint::During, CrashPoint::After] {
                    let disk = made.fork();
                    disk.plan(at, DiskFault::Crash(moment));
                    let _ = turn(&disk, &clock, to_shared);
                    let survived = disk.crash(at * 31 + seed);
                    let turned = is_shared(&survived) == to_shared;
                    (before, after) = (before + u64::from(!turned), after + u64::from(turned));
                    let open = if is_shared(&survived) { open_shared } else { opener(seed) };
                    let store = open(&survived, &clock, 2)
                        .unwrap_or_else(|e| panic!("seed {seed}, change {at} {moment:?}, to {to_shared}: {e}"));
                    check(&store, &model.0);
                    store.tree().put("n/9", Payload::from(1_i64)).unwrap();
                    store.close().unwrap();
                    if !to_shared && is_shared(&survived) {
                        // The session of the one that died is still open.
                        let store = open(&survived, &clock, 2).unwrap();
                        let all = ReclaimOptions { fence_idle_micros: Some(0), ..ReclaimOptions::default() };
                        store.reclaim(&all).unwrap();
                        store.close().unwrap();
                    }
                    // The next call does what this one did not, and tidies up.
                    turn(&survived, &clock, to_shared).unwrap();
                    assert_eq!(is_shared(&survived), to_shared);
                    let open = if to_shared { open_shared } else { opener(seed) };
                    let store = open(&survived, &clock, 2).unwrap();
                    let mut now = model.0.clone();
                    assert!(apply(&mut now, &mut model.1.clone(), &Op::PutNode("n/9".into(), 1)));
                    compare(&store, &now)
                        .unwrap_or_else(|e| panic!("seed {seed}, change {at} of {begun} to {total} {moment:?}, to {to_shared}, turned {turned}: {e}"));
                    no_orphans(&store, &survived);
                }
            }
            turn(&made, &clock, to_shared).unwrap();
        }
    });
    assert!(before.min(after) > 20 || seeds::given(), "{before} crashes before the turn, {after} after it");
}

fn put(store: &Store, at: u8) -> Result<()> {
    store.tree().put(&format!("n/{at}"), Payload::bytes(&[at]).unwrap()).map(drop)
}

/// Before each operation of a call in turn another call comes, of either kind, to the end.
#[test]
fn calls_at_the_same_time_lose_nothing() {
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let made = SimDisk::new();
    let store = opener(0)(&made, &clock, 2).unwrap();
    put(&store, 1).unwrap();
    store.write("t", crate::support::batch(&[(1, None)]), &Default::default()).unwrap();
    store.close().unwrap();
    for begins_shared in [false, true] {
        turn(&made, &clock, begins_shared).unwrap();
        for (own, others) in [(true, true), (true, false), (false, true), (false, false)] {
            for at in 0.. {
                let disk = made.fork();
                let struck = Arc::new(AtomicBool::new(false));
                let (told, there, ticks, mut seen) = (struck.clone(), disk.clone(), clock.clone(), 0);
                let through = Hooked::new(&disk, move || {
                    seen += 1;
                    if seen - 1 == at {
                        told.store(true, Ordering::SeqCst);
                        let _ = turn(&there, &ticks, others);
                    }
                });
                let _ = turn_on(Arc::new(through), &disk, &clock, own);
                let place = format!("shared {begins_shared}, then {own}, {others} before operation {at}");
                let open = if is_shared(&disk) { open_shared } else { opener(0) };
                let store = open(&disk, &clock, 2).unwrap_or_else(|e| panic!("{place}: {e}"));
                assert_eq!(store.table("t").collect(&Default::default()).unwrap()[0].num_rows(), 1, "{place}");
                assert_eq!(store.tree().list("n/*").unwrap().len(), 1, "{place}");
                put(&store, 2).unwrap();
                no_orphans(&store, &disk);
                if !struck.load(Ordering::SeqCst) {
                    break;
                }
            }
        }
    }
}

#[test]
fn who_has_it_open_is_waited_for_or_told() {
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let (disk, single) = (SimDisk::new(), opener(0));
    let store = single(&disk, &clock, 2).unwrap();
    put(&store, 1).unwrap();
    assert_eq!(turn(&disk, &clock, true).unwrap_err().kind(), ErrorKind::Locked);
    put(&store, 2).unwrap();
    store.close().unwrap();
    let options = Options { mode: drumlin::Mode::Read, ..Options::default() };
    let reader = crate::support::open_as(&disk, &clock, 2, options).unwrap();
    turn(&disk, &clock, true).unwrap();
    let told = reader.refresh().unwrap_err();
    assert!(told.kind() == ErrorKind::Corrupt && told.to_string().contains("'format' was removed"), "{told}");

    // One that looked at the folder before, and got its lock only now, opens what is there.
    let late = single(&disk, &clock, 2).unwrap();
    put(&late, 0).unwrap();
    late.close().unwrap();
    assert!(is_shared(&disk) && disk.identity(names::FORMAT).unwrap().is_none());

    // A process that has written must end; one that has only opened it does nothing any more.
    let (idle, writer) = (open_shared(&disk, &clock, 2).unwrap(), open_shared(&disk, &clock, 2).unwrap());
    let rows = crate::support::batch(&[(1, Some("a".into()))]);
    writer.table("t").write(&rows, &drumlin::WriteOptions::default()).unwrap();
    let told = turn(&disk, &clock, false).unwrap_err();
    assert!(told.kind() == ErrorKind::Locked && told.to_string().contains("fence_idle"), "{told}");
    assert!(is_shared(&disk));
    put(&writer, 3).unwrap();
    writer.close().unwrap();
    turn(&disk, &clock, false).unwrap();
    assert_eq!(put(&idle, 4).unwrap_err().kind(), ErrorKind::Corrupt);
    let store = single(&disk, &clock, 2).unwrap();
    let names: Vec<String> = store.tree().list("**").unwrap().into_iter().map(|entry| entry.path).collect();
    assert_eq!(names, ["n", "n/0", "n/1", "n/2", "n/3", "t"]);
    store.close().unwrap();
    assert_eq!(turn(&SimDisk::new(), &clock, true).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(turn(&SimDisk::new(), &clock, false).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn folders_by_their_paths() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("store");
    let uri = place.to_str().unwrap();
    assert_eq!(drumlin::share(uri, Options::default(), &Task::default()).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(!place.exists(), "a refused call made a folder");
    let store = Store::open(uri).unwrap();
    put(&store, 1).unwrap();
    assert_eq!(drumlin::share(uri, Options::default(), &Task::default()).unwrap_err().kind(), ErrorKind::Locked);
    store.close().unwrap();
    let told = Store::open_with(uri, Options { shared: true, ..Options::default() }).unwrap_err();
    assert!(told.to_string().contains("drumlin share"), "{told}");
    for _ in 0..2 {
        drumlin::share(uri, Options::default(), &Task::default()).unwrap();
    }
    let (a, b) = (Store::open(uri).unwrap(), Store::open(uri).unwrap());
    put(&a, 2).unwrap();
    put(&b, 3).unwrap();
    a.close().unwrap();
    b.close().unwrap();
    for _ in 0..2 {
        drumlin::unshare(uri, Options::default(), &Task::default()).unwrap();
    }
    let store = Store::open(uri).unwrap();
    assert_eq!(store.tree().list("n/*").unwrap().len(), 3);
    for (uri, call) in
        [("memory://", drumlin::share as fn(&str, Options, &Task) -> Result<()>), ("s3://b/p", drumlin::unshare)]
    {
        assert_eq!(call(uri, Options::default(), &Task::default()).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}
