//! Commits that share a turn: a commit that is refused does not affect the others.

use std::sync::{Arc, Barrier};

use drumlin::base::{ManualClock, Timestamp};
use drumlin::catalog::Payload;
use drumlin::log::LogOptions;
use drumlin::storage::{SimBucket, SimDisk};
use drumlin::store::Options;
use drumlin::{ErrorKind, Store, Tables};

use crate::support::env;

const LIMIT: u64 = 20_000;

fn options() -> Options {
    let log = LogOptions { entry_bytes_max: LIMIT, ..LogOptions::default() };
    Options { log, checkpoint_log_bytes: 0, ..Options::default() }
}

/// Threads that commit at once: some exceed the limit of the log, many together exceed that of one entry.
pub fn too_large_alone(store: &Store) -> Result<(), String> {
    let (threads, rounds) = (8, 12);
    let barrier = Barrier::new(threads);
    let outcomes: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let work = |thread: usize| {
            let barrier = &barrier;
            move || {
                // A thread that has failed still comes to the barrier, where the others wait.
                let mut outcome = Ok(());
                for round in 0..rounds {
                    let large = thread == 0 && round % 2 == 0;
                    let bytes = vec![thread as u8; if large { LIMIT as usize + 1000 } else { 6000 }];
                    barrier.wait();
                    let path = format!("n/{thread}/{round}");
                    match (large, store.tree().put(&path, Payload::bytes(&bytes).unwrap())) {
                        (false, Ok(_)) => {}
                        (true, Err(e)) if e.kind() == ErrorKind::InvalidArgument && e.message().contains("20000") => {}
                        (_, answer) => outcome = Err(format!("{path}: {:?}", answer.map(|_| ()))),
                    }
                }
                outcome
            }
        };
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(work(thread))).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    outcomes.into_iter().collect::<Result<(), String>>()?;
    let expected = (threads * rounds - rounds / 2) as u64;
    match store.tree().count("n/*/*").unwrap() {
        n if n == expected => Ok(()),
        n => Err(format!("{n} nodes, expected {expected}")),
    }
}

/// The same, with its own store.
pub fn too_large_together() -> Result<(), String> {
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    too_large_alone(&drumlin::store::open_on(Arc::new(SimDisk::new()), env(&clock, 1, 2), "sim", options()).unwrap())
}

// faults: hostile sizes x nodes, transaction
#[test]
fn a_commit_too_large_for_the_log_is_refused_alone() {
    too_large_together().unwrap();
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let disk = SimDisk::new();
    let open = || drumlin::store::open_on(Arc::new(disk.clone()), env(&clock, 1, 2), "sim", options()).unwrap();
    let store = open();
    too_large_alone(&store).unwrap();
    drop(store);
    assert_eq!(open().tree().count("n/*/*").unwrap(), 90);
    let bucket = SimBucket::new();
    let store = drumlin::store::open_bucket(Arc::new(bucket), env(&clock, 2, 2), "bucket", options()).unwrap();
    too_large_alone(&store).unwrap();
    // It names what is large.
    let tx = store.transaction().unwrap();
    let rows = crate::support::numbered(0, 4000);
    tx.table("some/table").create(crate::support::batch(&rows).schema(), Default::default()).unwrap();
    tx.tree().put("small", Payload::from(1)).unwrap();
    tx.tree().put("large", Payload::bytes(&vec![1; 30_000]).unwrap()).unwrap();
    let e = tx.commit().unwrap_err();
    assert!(e.message().contains("most of it because it changes nodes"), "{e}");
    assert!(store.tree().get("small").unwrap().is_none());
}

// faults: reclaim beside a reader, bit rot x verify
#[test]
fn a_missing_block_is_a_fault_for_every_verifier() {
    use crate::support::{batch, numbered, open};
    use drumlin::store::Mode;
    let disk = SimDisk::new();
    let store = open(&disk).unwrap();
    store.write("a", batch(&numbered(0, 40)), &Default::default()).unwrap();
    store.write("b", batch(&numbered(0, 40)), &Default::default()).unwrap();
    let (block, _) = disk.files().into_iter().find(|(name, _)| name.starts_with("blocks/")).unwrap();
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let read = || {
        let options = Options { mode: Mode::Read, ..Options::default() };
        drumlin::store::open_on(Arc::new(disk.clone()), env(&clock, 9, 2), "sim", options).unwrap()
    };
    // What was rewritten and reclaimed since it refreshed is looked up again.
    let reader = read();
    store.write("a", batch(&numbered(0, 50)), &Default::default()).unwrap();
    store.delete_versions(&[("a".into(), vec![drumlin::base::Version(0)])], Default::default()).unwrap();
    store.reclaim(&Default::default()).unwrap();
    assert!(disk.files().iter().all(|(name, _)| *name != block));
    assert_eq!(reader.verify(&Default::default()).unwrap().faults, []);
    // What is missing is a fault.
    let (block, _) = disk.files().into_iter().rfind(|(name, _)| name.starts_with("blocks/")).unwrap();
    drumlin::storage::Disk::remove(&disk, &block).unwrap();
    for store in [&store, &reader, &read()] {
        let report = store.verify(&Default::default()).unwrap();
        assert_eq!(report.faults.len(), 1, "{report}");
        assert!(report.faults[0].error.contains(&block), "{:?}", report.faults);
    }
}
