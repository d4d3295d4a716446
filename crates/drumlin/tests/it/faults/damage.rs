//! Damaged objects during every operation: each returns correct results or says that something is damaged, and what it then
//! does leads to no wrong result.

use std::sync::Arc;
use std::time::Duration;

use drumlin::base::Seq;
use drumlin::catalog::Payload;
use drumlin::storage::{Disk, FileStorage, SimDisk};
use drumlin::store::{AsOf, SalvageTarget, TableOptions};
use drumlin::{ErrorKind, Result, Store, Tables};

use crate::support::{Row, batch, env, numbered, open, read};

/// A table, one with a key, rows in memory, a snapshot, one in the trash, nodes.
fn build() -> SimDisk {
    let disk = SimDisk::new();
    let store = open(&disk).unwrap();
    store.write("t", batch(&numbered(0, 40)), &Default::default()).unwrap();
    store.append("t", batch(&numbered(40, 20)), &Default::default()).unwrap();
    store.write("gone", batch(&numbered(0, 9)), &Default::default()).unwrap();
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table("k").create(batch(&[]).schema(), key).unwrap();
    store.table("k").upsert(batch(&numbered(0, 30)), &Default::default()).unwrap();
    store.snapshot("s", "**").unwrap();
    store.checkpoint(&Default::default()).unwrap();
    store.tree().put("n", Payload::from(1)).unwrap();
    store.drop("gone").unwrap();
    store.close().unwrap();
    disk
}

fn texts(rows: &[Row]) -> Vec<Option<String>> {
    rows.iter().map(|(_, name)| name.clone()).collect()
}

/// The newest rows of a table, if they can be read.
fn newest(store: &Store, path: &str) -> Option<Vec<Row>> {
    read(store, path, AsOf::Newest).ok()
}

/// An operation; returns what is wrong with what it sees, if anything.
type Work = (&'static str, fn(&Store) -> Result<Option<String>>);

fn expect<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T) -> Option<String> {
    (found != expected).then(|| format!("{found:?}, expected {expected:?}"))
}

const WORK: [Work; 16] = [
    ("read", |store| Ok(expect(&read(store, "t", AsOf::Newest)?, &numbered(0, 60)))),
    ("snapshot", |store| Ok(expect(&read(store, "k", AsOf::Snapshot("s".into()))?, &numbered(0, 30)))),
    ("look-up", |store| {
        let keys = batch(&numbered(20, 20)).project(&[0]).unwrap();
        let found = store.table("k").get_many(&keys, &Default::default())?;
        let names = crate::support::rows(std::slice::from_ref(&found.rows));
        Ok(expect(&found.found.true_count(), &10).or_else(|| expect(&texts(&names[..10]), &texts(&numbered(20, 10)))))
    }),
    ("insert", |store| match store.table("k").insert(batch(&numbered(5, 1)), &Default::default()) {
        Ok(_) => Ok(Some("a key was inserted twice".into())),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(None),
        Err(e) => Err(e),
    }),
    ("upsert", |store| {
        store.table("k").upsert(batch(&[(3, Some("new".into()))]), &Default::default())?;
        let mut expected = numbered(0, 30);
        expected[3].1 = Some("new".into());
        Ok(newest(store, "k").and_then(|rows| expect(&rows, &expected)))
    }),
    ("delete rows", |store| {
        store.table("t").delete("id % 2 = 0", &Default::default())?;
        let expected: Vec<Row> = numbered(0, 60).into_iter().filter(|(id, _)| id % 2 != 0).collect();
        Ok(newest(store, "t").and_then(|rows| expect(&rows, &expected)))
    }),
    ("write", |store| {
        store.append("t", batch(&numbered(60, 5)), &Default::default())?;
        store.write("new", batch(&numbered(0, 5)), &Default::default())?;
        Ok(expect(&newest(store, "new"), &Some(numbered(0, 5)))
            .or_else(|| newest(store, "t").and_then(|rows| expect(&rows, &numbered(0, 65)))))
    }),
    ("nodes", |store| {
        let was = store.tree().get("n")?;
        store.tree().put("n", Payload::from(2))?;
        Ok(expect(&(was, store.tree().get("n")?), &(Some(Payload::from(1)), Some(Payload::from(2)))))
    }),
    ("transaction", |store| {
        store.transact(|tx| {
            tx.table("t").delete("id >= 50", &Default::default())?;
            tx.table("k").upsert(batch(&[(100, None)]), &Default::default())?;
            tx.tree().put("n", Payload::from(3)).map(drop)
        })?;
        Ok(newest(store, "t").and_then(|rows| expect(&rows, &numbered(0, 50))))
    }),
    ("drop and undrop", |store| {
        store.drop("t")?;
        store.undrop("t", None)?;
        store.undrop("gone", None)?;
        Ok(newest(store, "t")
            .and_then(|rows| expect(&rows, &numbered(0, 60)))
            .or_else(|| newest(store, "gone").and_then(|rows| expect(&rows, &numbered(0, 9)))))
    }),
    ("take a snapshot", |store| {
        store.snapshot("s2", "**")?;
        let held = read(store, "t", AsOf::Snapshot("s2".into())).ok();
        Ok(held.and_then(|rows| expect(&rows, &numbered(0, 60))))
    }),
    ("feed", |store| {
        let mut feed = store.changes(store.seq()?)?;
        store.tree().put("m", Payload::from(1))?;
        let told = feed.next(Some(Duration::ZERO))?.map(|commit| commit.seq());
        Ok(expect(&told, &Some(store.seq()?)))
    }),
    ("feed from the log", |store| {
        let mut feed = match store.changes(Seq(1)) {
            Err(e) if e.kind() == ErrorKind::SnapshotExpired => return Ok(None),
            other => other?,
        };
        while feed.next(Some(Duration::ZERO))?.is_some() {}
        Ok(None)
    }),
    ("checkpoint", |store| {
        store.table("t").delete("id % 2 = 0", &Default::default())?;
        store.table("k").upsert(batch(&[(3, Some("new".into()))]), &Default::default())?;
        store.checkpoint(&Default::default())?;
        let expected: Vec<Row> = numbered(0, 60).into_iter().filter(|(id, _)| id % 2 != 0).collect();
        Ok(newest(store, "t").and_then(|rows| expect(&rows, &expected)))
    }),
    ("reclaim", |store| {
        store.reclaim(&Default::default())?;
        Ok(newest(store, "t").and_then(|rows| expect(&rows, &numbered(0, 60))))
    }),
    ("verify", |store| store.verify(&Default::default()).map(|_| None)),
];

// faults: bit rot x write, upsert, delete, drop, undrop, snapshot, checkpoint, reclaim, open, read, look-up, nodes
// faults: bit rot x transaction, feed, verify
#[test]
fn a_damaged_object_is_never_answered_from() {
    let disk = build();
    let (mut told, mut done) = (0, 0);
    for (name, content) in disk.files() {
        if name == "lock" || name == "log/synced" {
            continue;
        }
        let step = (content.len() / 25).max(3);
        for at in (0..content.len()).step_by(step) {
            let damaged = disk.fork();
            let mut bytes = content.clone();
            bytes[at] ^= 1 << (at % 8);
            damaged.damage(&name, bytes);
            for (what, work) in WORK {
                let copy = damaged.fork();
                let place = || format!("{what}, byte {at} of {name}");
                match open(&copy).and_then(|store| work(&store)) {
                    Ok(None) => done += 1,
                    Ok(Some(wrong)) => panic!("{}: {wrong}", place()),
                    Err(e) => {
                        assert!([ErrorKind::Corrupt, ErrorKind::Unsupported].contains(&e.kind()), "{}: {e}", place());
                        told += 1;
                    }
                }
                // Whatever it did, the store opens as before or not at all, and returns correct results or errors.
                if let Ok(store) = open(&copy) {
                    let rows = newest(&store, "new").unwrap_or_default();
                    assert!(rows.is_empty() || rows == numbered(0, 5), "{}: opened again", place());
                }
            }
        }
    }
    assert!(told > 300 && done > 300, "{told} told, {done} done");
}

/// Salvages `disk` to a new one.
fn salvage(disk: &SimDisk, to: &SimDisk, task: &drumlin::base::Task) -> Result<drumlin::store::SalvageReport> {
    let source = Arc::new(FileStorage::new(Arc::new(disk.clone())));
    let target = SalvageTarget::Folder(Arc::new(to.clone()));
    // With a single thread.
    target.salvage(source, env(&Arc::default(), 7, 1), Default::default(), task)
}

// faults: crash x salvage
// faults: full disk x salvage
// faults: failed sync x salvage
// faults: one thread x salvage
#[test]
fn a_salvage_that_is_struck_leaves_the_source_and_no_half_of_a_store() {
    use drumlin::storage::{CrashPoint, DiskFault};
    let disk = build();
    let before = disk.files();
    let whole = {
        let to = SimDisk::new();
        assert_eq!(salvage(&disk, &to, &Default::default()).unwrap().losses, []);
        to.counters().changes
    };
    assert!(whole > 5, "{whole} changes");
    let faults = [CrashPoint::Before, CrashPoint::During, CrashPoint::After].map(DiskFault::Crash);
    for fault in faults.into_iter().chain([DiskFault::Fail, DiskFault::Full]) {
        for at in 0..whole {
            let place = || format!("{fault:?} at change {at}");
            let to = SimDisk::new();
            to.plan(at, fault);
            let answer = salvage(&disk, &to, &Default::default());
            assert_eq!(disk.files(), before, "{}: the source has changed", place());
            to.heal();
            let survived = match fault {
                DiskFault::Crash(_) => to.crash(at),
                _ => to,
            };
            let is_store = survived.files().iter().any(|(name, _)| name == "format");
            match open(&survived) {
                Ok(store) if is_store => {
                    assert_eq!(newest(&store, "t"), Some(numbered(0, 60)), "{}", place());
                    assert_eq!(newest(&store, "k"), Some(numbered(0, 30)), "{}", place());
                    assert_eq!(store.verify(&Default::default()).unwrap().faults, [], "{}", place());
                }
                // Without its format file, it is not a store yet.
                Ok(store) => {
                    assert!(
                        answer.is_err() && store.tree().list("**").unwrap().is_empty(),
                        "{}: half a store",
                        place()
                    );
                }
                Err(e) => assert!(answer.is_err(), "{}: {e}", place()),
            }
            // It is salvaged again, to another place.
            salvage(&disk, &SimDisk::new(), &Default::default()).unwrap();
        }
    }
}

// faults: stopped call x salvage
#[test]
fn a_salvage_that_is_stopped_leaves_the_source_alone() {
    let disk = build();
    let before = disk.files();
    let task = drumlin::base::Task::default();
    task.cancel.cancel();
    let stopped = salvage(&disk, &SimDisk::new(), &task).unwrap_err();
    assert_eq!((stopped.kind(), disk.files()), (ErrorKind::Cancelled, before));
    // Nor does a store that was opened from the damaged one prevent it.
    let mut dir = disk.list("").unwrap();
    dir.retain(|entry| entry.name == "format");
    assert_eq!(dir.len(), 1);
}
