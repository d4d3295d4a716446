//! Checkpoints combined with everything else: repacking, the same bytes on any number of threads, full disks, writers
//! and readers at the same time, catalog snapshots that cost as much as has changed, and automatic checkpoints.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::compute::concat_batches;
use drumlin::base::{ManualClock, Progress, Task, Timestamp, Version};
use drumlin::catalog::{Payload, Retention};
use drumlin::storage::{DiskFault, SimDisk};
use drumlin::store::{AsOf, CheckpointOptions, Options, ReadOptions};
use drumlin::table::ScanOptions;
use drumlin::{Result, Store, Tables};

use crate::faults::crash::no_orphans;
use crate::support::{Row, batch, env, numbered, open, open_inline, open_with, read};

fn checkpoint(store: &Store) -> drumlin::store::CheckpointReport {
    store.checkpoint(&CheckpointOptions::default()).unwrap()
}

/// Small blocks travel in commits.
fn open_with_options(disk: &SimDisk, options: Options) -> Result<Store> {
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    drumlin::store::open_on(Arc::new(disk.clone()), env(&clock, disk.counters().changes, 2), "sim", options)
}

fn blocks(store: &Store) -> (u64, u64, u64) {
    let stat = store.stat().unwrap();
    (stat.blocks, stat.block_bytes, stat.live_bytes)
}

/// Numbers and words for every kind of encoding, in many row groups.
fn wide(from: i64, n: i64) -> RecordBatch {
    let ids = || from..from + n;
    let words = ["alpha", "beta", "gamma", "delta", "epsilon"];
    let text = |i: i64| format!("{} {} {}", words[i as usize % 5], words[(i / 7) as usize % 5], i % 1009);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("i", Arc::new(Int64Array::from_iter_values(ids()))),
        ("flag", Arc::new(StringArray::from_iter_values(ids().map(|i| ["A", "N", "R"][i as usize % 3])))),
        ("text", Arc::new(ids().map(|i| (i % 31 > 0).then(|| text(i))).collect::<StringArray>())),
        (
            "noise",
            Arc::new(Int64Array::from_iter_values(ids().map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64)))),
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true))).unwrap()
}

#[test]
fn the_bytes_do_not_depend_on_the_number_of_threads() {
    let files = |threads: usize| {
        let disk = SimDisk::in_memory();
        let store = open_with(&disk, &Arc::new(ManualClock::new(Timestamp(1_000_000))), threads).unwrap();
        store.set_retention("**", Some(Retention::KeepLast(1))).unwrap();
        store.write("t", wide(0, 300_000), &Default::default()).unwrap();
        store.append("t", wide(300_000, 100_000), &Default::default()).unwrap();
        let small = (0..20).map(|n| (format!("s/{n}"), wide(n * 1000, 500 + n).into())).collect();
        store.write_many(small, &Default::default()).unwrap();
        store.table("t").delete("i % 5 < 2", &Default::default()).unwrap();
        (0..20).for_each(|n| drop(store.table(&format!("s/{n}")).delete("i % 2 = 0", &Default::default()).unwrap()));
        let report = checkpoint(&store);
        assert!(report.tables > 15, "{report}");
        let expected: Vec<RecordBatch> = store.table("t").collect(&Default::default()).unwrap();
        assert_eq!(expected.iter().map(RecordBatch::num_rows).sum::<usize>(), 240_000);
        disk.files().into_iter().filter(|(name, _)| name.starts_with("blocks/")).collect::<Vec<_>>()
    };
    let (one, two) = (files(1), files(2));
    assert_eq!(
        one.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        two.iter().map(|(name, _)| name).collect::<Vec<_>>()
    );
    assert!(one == two);
}

#[test]
fn what_is_left_in_mostly_dead_blocks_is_repacked_with_all_that_names_it() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    let tables: Vec<String> = (0..100).map(|n| format!("t/{n:02}")).collect();
    let frames = tables.iter().map(|path| (path.clone(), wide(path.len() as i64, 3000).into())).collect();
    store.write_many(frames, &Default::default()).unwrap();
    assert_eq!(blocks(&store).0, 1);
    // A version that only a snapshot holds, next to the one that all others see: two records of the same bytes.
    store.snapshot("held", "t/00").unwrap();
    store.table("t/00").delete("i % 2 = 0", &Default::default()).unwrap();
    store.snapshot("later", "t/00").unwrap();
    store.delete_versions(&[("t/00".into(), vec![Version(1)])], Default::default()).unwrap();
    let sum = |path: &str, as_of: AsOf| {
        let scan = ScanOptions { columns: Some(vec!["i".into(), "text".into()]), ..ScanOptions::default() };
        format!("{:?}", store.table(path).collect(&ReadOptions::of(as_of, scan)).unwrap())
    };
    let (newest, later) = (sum("t/00", AsOf::Newest), sum("t/00", AsOf::Snapshot("later".into())));
    assert_ne!(newest, later);
    store.drop(&tables[3..]).unwrap();
    store.reclaim(&Default::default()).unwrap();
    let before = blocks(&store);
    assert!(before.2 * 10 < before.1, "{before:?}");
    let plan = store.vacuum_plan(&Default::default()).unwrap().blocks;
    assert_eq!((plan.blocks.len(), plan.bytes_moved), (1, before.2), "{plan}");
    let report = checkpoint(&store);
    assert_eq!(report.groups_moved, 3, "{report}");
    let reclaimed = store.reclaim(&Default::default()).unwrap();
    let after = blocks(&store);
    assert_eq!((reclaimed.bytes, after.0), (before.1, 1));
    assert!(after.1 < before.2 + before.2 / 10, "{before:?} {after:?}");
    assert_eq!(
        (sum("t/00", AsOf::Newest), sum("t/00", AsOf::Snapshot("later".into()))),
        (newest.clone(), later.clone())
    );
    assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
    no_orphans(&store, &disk);
    store.close().unwrap();
    let store = open(&disk).unwrap();
    let sum = |as_of: AsOf| {
        let scan = ScanOptions { columns: Some(vec!["i".into(), "text".into()]), ..ScanOptions::default() };
        format!("{:?}", store.table("t/00").collect(&ReadOptions::of(as_of, scan)).unwrap())
    };
    assert_eq!((sum(AsOf::Newest), sum(AsOf::Snapshot("later".into()))), (newest, later));
    // There is nothing left to do, so nothing is done.
    assert_eq!(checkpoint(&store).bytes_written, 0);
}

#[test]
fn many_small_blocks_become_few() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    for n in 0..40 {
        store.write(&format!("t/{n}"), batch(&numbered(n, 30)), &Default::default()).unwrap();
    }
    assert_eq!(blocks(&store).0, 40);
    assert_eq!(checkpoint(&store).groups_moved, 40);
    assert_eq!(blocks(&store).0, 1);
    for n in 0..40 {
        assert_eq!(read(&store, &format!("t/{n}"), AsOf::Newest).unwrap(), numbered(n, 30));
    }
    // A budget of zero moves nothing.
    (0..40).for_each(|n| drop(store.write(&format!("u/{n}"), batch(&numbered(n, 3)), &Default::default()).unwrap()));
    let mut options = CheckpointOptions::default();
    options.plan.budget = 0.0;
    assert_eq!(store.checkpoint(&options).unwrap().groups_moved, 0);
}

#[test]
fn a_catalog_snapshot_costs_what_changed() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    store
        .transact(|tx| {
            (0..200_000).try_for_each(|n| tx.tree().put(&format!("a/b{}/n{n}", n % 100), Payload::from(n)).map(drop))
        })
        .unwrap();
    let frames = (0..500).map(|n| (format!("t/{n}"), batch(&numbered(n, 3)).into())).collect();
    store.write_many(frames, &Default::default()).unwrap();
    let written = || {
        let before = disk.counters().bytes_written;
        checkpoint(&store);
        disk.counters().bytes_written - before
    };
    let whole = written();
    assert!(whole > 2_000_000, "{whole}");
    let mut costs = 0;
    for n in 0..30 {
        store.tree().put(&format!("a/b{}/n{}", n % 7, n % 7 + 100), Payload::from(n)).unwrap();
        store.append(&format!("t/{}", n % 5), batch(&numbered(n, 1)), &Default::default()).unwrap();
        costs += written();
    }
    assert!(costs / 30 < whole / 8, "{} bytes each, {whole} for all", costs / 30);
    assert!(disk.files().iter().filter(|(name, _)| name.starts_with("catalog/")).count() <= 9);
    let (list, versions) = (store.tree().list("**").unwrap(), store.table("t/3").versions().unwrap());
    assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
    store.close().unwrap();
    let store = open(&disk).unwrap();
    assert_eq!((store.tree().list("**").unwrap(), store.table("t/3").versions().unwrap()), (list, versions));
    assert_eq!(store.tree().count("a/**").unwrap(), 200_100);
}

// faults: full disk x checkpoint
#[test]
fn a_full_disk_fails_the_checkpoint_and_nothing_else() {
    let mut failed = 0;
    for at in 0..60 {
        let disk = SimDisk::new();
        let store = open(&disk).unwrap();
        store.set_retention("**", Some(Retention::KeepLast(1))).unwrap();
        store.write("t", wide(0, 130_000), &Default::default()).unwrap();
        store.table("t").delete("i % 3 > 0", &Default::default()).unwrap();
        (0..10)
            .for_each(|n| drop(store.write(&format!("s/{n}"), batch(&numbered(n, 9)), &Default::default()).unwrap()));
        let rows = |store: &Store| {
            let batches = store.table("t").collect(&Default::default()).unwrap();
            concat_batches(&batches[0].schema(), &batches).unwrap()
        };
        let expected = rows(&store);
        disk.plan(disk.counters().changes + at, DiskFault::Full);
        if store.checkpoint(&CheckpointOptions::default()).is_err() {
            failed += 1;
        }
        disk.heal();
        // A log whose write could not be undone requires the store to be opened again.
        let store = if store.tree().put("is/open", Payload::from(1)).is_ok() {
            store
        } else {
            let _ = store.close();
            open(&disk).unwrap()
        };
        assert!(rows(&store) == expected, "full at {at}");
        checkpoint(&store);
        assert!(rows(&store) == expected, "full at {at}");
        assert_eq!(read(&store, "s/3", AsOf::Newest).unwrap(), numbered(3, 9));
        store.close().unwrap();
        let store = open(&disk).unwrap();
        assert!(rows(&store) == expected, "full at {at}");
        no_orphans(&store, &disk);
    }
    assert!(failed > 5, "{failed} failed");
}

// faults: concurrent change, reclaim beside a reader x write, delete, read, checkpoint, reclaim
#[test]
fn writers_and_readers_go_on_during_checkpoints() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    let stop = AtomicBool::new(false);
    let tables = 3;
    (0..tables).for_each(|t| drop(store.write(&format!("t/{t}"), batch(&[]), &Default::default()).unwrap()));
    let (mut models, mut checkpoints) = (BTreeMap::new(), 0);
    std::thread::scope(|scope| {
        let tidy = scope.spawn(|| {
            let mut n = 0;
            while !stop.load(Ordering::SeqCst) {
                checkpoint(&store);
                store.reclaim(&Default::default()).unwrap();
                n += 1;
            }
            n
        });
        let readers = (0..2).map(|_| {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    for t in 0..tables {
                        // Ids are in order, each once; versions do not change.
                        let newest = store.table(&format!("t/{t}")).versions().unwrap().last().unwrap().version;
                        let as_of = || AsOf::Version(newest);
                        let first = read(&store, &format!("t/{t}"), as_of()).unwrap();
                        assert!(first.windows(2).all(|pair| pair[0].0 < pair[1].0));
                        assert_eq!(read(&store, &format!("t/{t}"), as_of()).unwrap(), first);
                    }
                }
            })
        });
        let readers: Vec<_> = readers.collect();
        let writers = (0..tables).map(|t| {
            let store = &store;
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(t);
                let (mut model, path): (Vec<Row>, _) = (Vec::new(), format!("t/{t}"));
                let mut next = 0;
                for _ in 0..60 {
                    if rng.u8(..3) > 0 || model.is_empty() {
                        let rows = numbered(next, rng.usize(1..2000));
                        next += rows.len() as i64;
                        store.append(&path, batch(&rows), &Default::default()).unwrap();
                        model.extend(rows);
                    } else {
                        let (k, n) = (rng.i64(2..9), rng.i64(0..3));
                        store.table(&path).delete(&format!("id % {k} = {n}"), &Default::default()).unwrap();
                        model.retain(|(id, _)| id % k != n);
                    }
                }
                (path, model)
            })
        });
        let writers: Vec<_> = writers.collect();
        models.extend(writers.into_iter().map(|writer| writer.join().unwrap()));
        stop.store(true, Ordering::SeqCst);
        checkpoints += tidy.join().unwrap();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
    assert!(checkpoints > 2);
    for (path, model) in models {
        assert_eq!(read(&store, &path, AsOf::Newest).unwrap(), model, "{path}");
    }
    checkpoint(&store);
    store.reclaim(&Default::default()).unwrap();
    no_orphans(&store, &disk);
}

// faults: stopped call x checkpoint
#[test]
fn a_cancelled_checkpoint_changes_nothing_and_its_progress_says_how_long_it_takes() {
    let disk = SimDisk::in_memory();
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let store = open_with(&disk, &clock, 1).unwrap();
    store.set_retention("**", Some(Retention::KeepLast(1))).unwrap();
    for n in 0..6 {
        store.write(&format!("t/{n}"), wide(0, 20_000), &Default::default()).unwrap();
        store.table(&format!("t/{n}")).delete("i % 4 > 0", &Default::default()).unwrap();
    }
    let before = (store.seq().unwrap(), disk.files());
    let task = Task::default();
    let cancel = task.cancel.clone();
    let stop = move |progress: Progress| {
        if progress.done == 3 {
            cancel.cancel();
        }
    };
    let options = CheckpointOptions { task: Task { progress: Some(Arc::new(stop)), ..task }, ..Default::default() };
    assert_eq!(store.checkpoint(&options).unwrap_err().kind(), drumlin::ErrorKind::Cancelled);
    assert!(before == (store.seq().unwrap(), disk.files()));

    let steps = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let (told, time) = (steps.clone(), clock.clone());
    let tell = move |progress: Progress| {
        time.advance(1_000_000);
        told.lock().push(progress);
    };
    let task = Task { progress: Some(Arc::new(tell)), ..Task::default() };
    store.checkpoint(&CheckpointOptions { task, ..Default::default() }).unwrap();
    let steps = steps.lock();
    let last = steps.last().unwrap();
    assert_eq!((last.done, last.total, last.rows, last.left_micros), (6, 6, 30_000, Some(0)));
    // Equal windows, one second each: three are left after the third.
    let third = steps[2].left_micros.unwrap();
    assert!((1_500_000..=3_100_000).contains(&third), "{third}");
}

#[test]
fn the_log_is_kept_short_without_being_asked() {
    let disk = SimDisk::in_memory();
    let options = Options { checkpoint_log_bytes: 20_000, ..Options::default() };
    let store = open_with_options(&disk, options.clone()).unwrap();
    for n in 0..400 {
        store.tree().put(&format!("n/{n}"), Payload::bytes(&[n as u8; 300]).unwrap()).unwrap();
    }
    let log = |disk: &SimDisk| {
        disk.files().iter().filter(|(name, _)| name.starts_with("log/")).map(|(_, b)| b.len()).sum::<usize>()
    };
    // What is written during one checkpoint counts towards the next, which removes the file that this one cut.
    for _ in 0..20 {
        drumlin::store::wait_for_checkpoint(&store);
        if log(&disk) < 60_000 {
            break;
        }
        (0..60).for_each(|n| drop(store.tree().put("last", Payload::bytes(&[n; 300]).unwrap()).unwrap()));
    }
    assert!(log(&disk) < 60_000, "{}", log(&disk));
    assert!(disk.files().iter().any(|(name, _)| name.starts_with("catalog/")));
    store.close().unwrap();
    // No automatic checkpoint if it is switched off.
    let quiet = SimDisk::in_memory();
    let store = open_with_options(&quiet, Options { checkpoint_log_bytes: 0, ..Options::default() }).unwrap();
    (0..400).for_each(|n| drop(store.tree().put(&format!("n/{n}"), Payload::bytes(&[n as u8; 300]).unwrap()).unwrap()));
    drumlin::store::wait_for_checkpoint(&store);
    assert!(log(&quiet) > 120_000 && !quiet.files().iter().any(|(name, _)| name.starts_with("catalog/")));
}

#[test]
fn a_failed_automatic_checkpoint_refuses_no_call_before_the_log_is_far_too_long_and_is_tried_again() {
    let disk = SimDisk::in_memory();
    let log = || disk.files().iter().filter(|(name, _)| name.starts_with("log/")).map(|(_, b)| b.len()).sum::<usize>();
    let store = open_with_options(&disk, Options { checkpoint_log_bytes: 20_000, ..Options::default() }).unwrap();
    let put = |n: usize| store.tree().put("n", Payload::bytes(&[n as u8; 400]).unwrap());
    let mut n = 0;
    // The log's own writes succeed: the first change that is not a write of the log fails.
    let refused = loop {
        n += 1;
        assert!(n < 1000, "no automatic checkpoint failed, or no call said so");
        drumlin::store::wait_for_checkpoint(&store);
        // Each commit makes a write, a sync and a write of the mark.
        disk.plan(disk.counters().changes + 3, DiskFault::Fail);
        let answer = put(n);
        drumlin::store::wait_for_checkpoint(&store);
        disk.heal();
        match answer {
            Err(e) if e.to_string().contains("automatic checkpoint") => break e,
            _ => {}
        }
    };
    assert_ne!(refused.kind(), drumlin::ErrorKind::Closed, "{refused}");
    assert!(log() > 4 * 20_000, "refused although the log has only {} bytes: {refused}", log());
    // After the error was reported, the store continues, and the log is cut eventually.
    for n in 0..200 {
        put(n).unwrap();
    }
    drumlin::store::wait_for_checkpoint(&store);
    assert!(disk.files().iter().any(|(name, _)| name.starts_with("catalog/")));
    assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
}

#[test]
fn what_is_small_travels_in_its_commit_until_a_checkpoint() {
    let disk = SimDisk::new();
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let store = open_inline(&disk, &clock, 2).unwrap();
    let objects = || disk.files().iter().filter(|(name, _)| name.starts_with("blocks/")).count();
    store.write("t", batch(&numbered(0, 5)), &Default::default()).unwrap();
    let before = disk.counters();
    let mut expected = numbered(0, 5);
    for n in 1..20 {
        store.append("t", batch(&numbered(n * 10, 1)), &Default::default()).unwrap();
        expected.extend(numbered(n * 10, 1));
    }
    let after = disk.counters();
    // One write and one sync of the log each, the mark of what is synced, and nothing more.
    assert_eq!(
        (after.changes - before.changes, after.syncs - before.syncs, after.folder_syncs),
        (57, 19, before.folder_syncs)
    );
    assert_eq!((objects(), store.stat().unwrap().inline_blocks), (0, 20));
    // In a transaction too, before and after it commits; without a commit, nothing is left.
    let tx = store.transaction().unwrap();
    tx.append("t", batch(&numbered(900, 2)), &Default::default()).unwrap();
    drop(tx);
    store
        .transact(|tx| {
            tx.append("t", batch(&numbered(500, 2)), &Default::default())?;
            tx.tree().put("n", Payload::from(1)).map(drop)
        })
        .unwrap();
    expected.extend(numbered(500, 2));
    store.table("t").delete("id = 30", &Default::default()).unwrap();
    expected.retain(|(id, _)| *id != 30);
    assert_eq!(read(&store, "t", AsOf::Newest).unwrap(), expected);
    assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
    store.close().unwrap();

    // Read back from the log, by a follower, and from a catalog snapshot.
    let store = open_inline(&disk, &clock, 2).unwrap();
    assert_eq!(read(&store, "t", AsOf::Newest).unwrap(), expected);
    let options = Options { mode: drumlin::store::Mode::Read, ..Options::default() };
    let follower = open_with_options(&disk, options).unwrap();
    assert_eq!(read(&follower, "t", AsOf::Newest).unwrap(), expected);
    store.append("t", batch(&numbered(700, 1)), &Default::default()).unwrap();
    expected.extend(numbered(700, 1));
    follower.refresh().unwrap();
    assert_eq!(read(&follower, "t", AsOf::Newest).unwrap(), expected);
    checkpoint(&store);
    assert_eq!((objects(), store.stat().unwrap().inline_blocks), (1, 0));
    assert_eq!(read(&store, "t", AsOf::Newest).unwrap(), expected);
    // The older states that are pinned, and the follower, still have what they read.
    assert_eq!(read(&follower, "t", AsOf::Newest).unwrap(), expected);
    no_orphans(&store, &disk);
    store.append("t", batch(&numbered(800, 1)), &Default::default()).unwrap();
    store.drop("t").unwrap();
    store.undrop("t", None).unwrap();
    store.drop("t").unwrap();
    let report = store.reclaim(&Default::default()).unwrap();
    assert_eq!((report.failures.len(), objects()), (0, 0));
    no_orphans(&store, &disk);
    // Large blocks do not travel in commits.
    store.write("large", wide(0, 50_000), &Default::default()).unwrap();
    assert_eq!((objects(), store.stat().unwrap().inline_blocks), (1, 0));
}

// faults: stuck rewrite, bit rot x checkpoint
#[test]
fn a_damaged_block_keeps_nothing_else_from_being_repacked() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    (0..20).for_each(|n| drop(store.write(&format!("t/{n}"), batch(&numbered(n, 30)), &Default::default()).unwrap()));
    let (name, mut bytes) = disk.files().into_iter().find(|(name, _)| name.starts_with("blocks/")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    disk.damage(&name, bytes);
    let report = checkpoint(&store);
    assert_eq!((report.failures.len(), report.groups_moved), (1, 19), "{report}");
    assert!(report.failures[0].contains(&name), "{report}");
    assert!(disk.files().iter().any(|(name, _)| name.starts_with("catalog/")));
    assert_eq!((0..20).filter(|n| read(&store, &format!("t/{n}"), AsOf::Newest).is_ok()).count(), 19);
}

// faults: bit rot x checkpoint, verify
#[test]
fn a_damaged_catalog_is_written_again_while_it_is_known() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    store
        .transact(|tx| (0..9000).try_for_each(|n| tx.tree().put(&format!("a/n{n}"), Payload::from(n)).map(drop)))
        .unwrap();
    checkpoint(&store);
    store.tree().put("b", Payload::from(1)).unwrap();
    checkpoint(&store);
    let (name, mut bytes) = disk.files().into_iter().find(|(name, _)| name.starts_with("catalog/")).unwrap();
    bytes[2000] ^= 1;
    disk.damage(&name, bytes);
    let faults = store.verify(&Default::default()).unwrap().faults;
    assert!(faults.len() == 1 && faults[0].error.contains(&name), "{faults:?}");
    checkpoint(&store);
    assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
    store.close().unwrap();
    assert_eq!(open(&disk).unwrap().tree().count("a/*").unwrap(), 9000);
}

#[test]
fn what_was_repacked_stays() {
    for open in [open_with, open_inline] {
        let disk = SimDisk::in_memory();
        let store = open(&disk, &Arc::new(ManualClock::new(Timestamp(1_000_000))), 2).unwrap();
        let one =
            || RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef)]).unwrap();
        (0..9).for_each(|n| drop(store.write(&format!("t/{n}"), one(), &Default::default()).unwrap()));
        assert_eq!(checkpoint(&store).groups_moved, 9);
        let before = store.seq().unwrap();
        assert_eq!((checkpoint(&store).bytes_written, store.seq().unwrap()), (0, before));
    }
}

#[test]
fn a_checkpoint_of_its_own_waits_for_nobody_and_ends_with_the_last_handle() {
    let disk = SimDisk::in_memory();
    let options = Options { checkpoint_log_bytes: 5_000, inline_bytes: 0, ..Options::default() };
    let store = open_with_options(&disk, options.clone()).unwrap();
    store.set_retention("**", Some(Retention::KeepLast(1))).unwrap();
    store.write("t", wide(0, 20_000), &Default::default()).unwrap();
    store.table("t").delete("i % 2 = 0", &Default::default()).unwrap();
    // In the middle of a requested checkpoint, an automatic one becomes due: it does not wait, and so can be waited
    // for.
    let inner = store.clone();
    let tell = move |_: Progress| {
        (0..30).for_each(|n| drop(inner.tree().put("n", Payload::bytes(&[n; 400]).unwrap()).unwrap()));
        drumlin::store::wait_for_checkpoint(&inner);
    };
    let task = Task { progress: Some(Arc::new(tell)), ..Task::default() };
    store.checkpoint(&CheckpointOptions { task, ..Default::default() }).unwrap();
    drop(store);
    for round in 0..40 {
        let store = open_with_options(&disk, options.clone()).unwrap_or_else(|e| panic!("round {round}: {e}"));
        (0..30).for_each(|n| drop(store.tree().put("n", Payload::bytes(&[n; 400]).unwrap()).unwrap()));
        assert!(store.tree().exists("t").unwrap());
        // It is closed now, whatever runs in the background.
        drop(store);
    }
}

#[test]
fn row_groups_of_a_table_sorted_by_text_stay_apart() {
    let store = open(&SimDisk::in_memory()).unwrap();
    store.set_retention("**", Some(Retention::KeepLast(1))).unwrap();
    let words: StringArray = (0..300_000).map(|n| Some(format!("key {:08} of {}", n, n * 7919 % 10_007))).collect();
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..300_000));
    let rows = RecordBatch::try_from_iter([("w", Arc::new(words) as ArrayRef), ("i", ids)]).unwrap();
    let sorted = drumlin::store::WriteOptions { sort: Some(vec!["w".into()]), ..Default::default() };
    store.write("t", rows, &sorted).unwrap();
    store.table("t").delete("i % 3 = 0", &Default::default()).unwrap();
    let report = checkpoint(&store);
    assert_eq!((report.rows_removed, report.groups_after), (100_000, 2));
    let batches = store.table("t").collect(&Default::default()).unwrap();
    assert!(batches.len() == 2, "{} batches", batches.len());
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 200_000);
}
