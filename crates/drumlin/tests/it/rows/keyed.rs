//! Tables with a key.

use std::sync::Arc;

use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use drumlin::base::{ManualClock, Task, Timestamp};
use drumlin::catalog::Payload;
use drumlin::storage::{CrashPoint, DiskFault, SimBucket, SimDisk};
use drumlin::store::{AsOf, CheckpointOptions, Options, SyncMode, TableOptions, WriteOptions};
use drumlin::{ErrorKind, Store, Tables};

use crate::processes::shared_support::{self, rounds};
use crate::rows::keyed_model::{KeyedModel, PATH, apply, compare, draw, run, texts};
use crate::support::{Row, batch, env, numbered, open, opener, read};

/// Operations on a single keyed table, with checkpoints and reopening in between: after each, the whole table is read.
#[test]
fn random_operations_by_key_agree_with_a_map() {
    crate::seeds::each(0..40, 5, |seed| {
        let open = opener(seed);
        let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
        let disk = SimDisk::new();
        let mut store = open(&disk, &clock, 2).unwrap();
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut model: Option<KeyedModel> = None;
        let mut nodes = std::collections::BTreeMap::new();
        for step in 0..60 {
            let what = match rng.u8(..8) {
                0 => {
                    store.checkpoint(&Default::default()).unwrap();
                    model.iter_mut().for_each(KeyedModel::checkpoint);
                    "checkpoint".to_owned()
                }
                1 => {
                    if rng.bool() {
                        store.close().unwrap();
                    }
                    drop(store);
                    store = open(&disk, &clock, 2).unwrap();
                    "reopen".to_owned()
                }
                _ => {
                    let op = draw(&mut rng, model.as_ref());
                    let before = (model.clone(), nodes.clone());
                    let done = apply(&mut model, &mut nodes, &op);
                    let ran = run(&store, &op);
                    assert_eq!(ran.is_ok(), done, "seed {seed}, step {step}: {op:?}: {ran:?}");
                    if !done {
                        (model, nodes) = before;
                    }
                    format!("{op:?}")
                }
            };
            compare(&store, model.as_ref()).unwrap_or_else(|e| panic!("seed {seed}, step {step}, after {what}: {e}"));
        }
        let report = store.verify(&Default::default()).unwrap();
        assert_eq!(report.faults, []);
    });
}

fn keyed(store: &Store, rows: &[Row]) {
    let options = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table(PATH).create(batch(&[]).schema(), options).unwrap();
    store.table(PATH).upsert(batch(rows), &WriteOptions::default()).unwrap();
}

fn row(id: i64, name: &str) -> Row {
    (id, Some(name.to_owned()))
}

fn note() -> WriteOptions {
    WriteOptions { metadata: Some("1".into()), ..WriteOptions::default() }
}

#[test]
fn a_refused_insert_names_keys_and_writes_nothing() {
    let store = open(&SimDisk::in_memory()).unwrap();
    keyed(&store, &numbered(0, 10));
    let before = read(&store, PATH, AsOf::Newest).unwrap();
    for many in [WriteOptions::default(), note()] {
        for (rows, words) in [
            (vec![row(20, "a"), row(3, "b"), row(4, "c")], "has rows with the keys 3, 4; nothing was written"),
            (vec![row(20, "a"), row(20, "b")], "more than one row with the key 20; nothing was written"),
        ] {
            let error = store.table(PATH).insert(batch(&rows), &many).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AlreadyExists);
            assert!(error.message().contains(words), "{error}");
            assert_eq!(read(&store, PATH, AsOf::Newest).unwrap(), before);
        }
        // The same holds for rows in row groups.
        store.checkpoint(&Default::default()).unwrap();
    }
    let null = RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from(vec![Some(1), None])) as ArrayRef),
        ("name", Arc::new(StringArray::from(vec!["a", "b"])) as ArrayRef),
    ]);
    let error = store.table(PATH).upsert(null.unwrap(), &WriteOptions::default()).unwrap_err();
    assert!(error.message().contains("key column 'id' takes no nulls; the data has 1"), "{error}");
    store.write("plain", batch(&numbered(0, 3)), &Default::default()).unwrap();
    for error in [
        store.table("plain").upsert(batch(&[]), &WriteOptions::default()).unwrap_err(),
        store.table("plain").get_many(&batch(&[]), &Default::default()).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("'plain'") && error.message().contains("no key"), "{error}");
    }
    assert_eq!(store.seq().unwrap(), store.seq().unwrap());
}

/// A store on a simulated disk with these options.
fn open_set(disk: &SimDisk, options: Options) -> drumlin::Result<Store> {
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    drumlin::store::open_on(Arc::new(disk.clone()), env(&clock, disk.counters().changes, 2), "sim", options)
}

#[test]
fn one_sync_serves_many_writers_and_each_key_is_inserted_once() {
    const THREADS: usize = 16;
    const EACH: i64 = 60;
    /// Queried in each commit's turn, so that others have to wait for theirs.
    struct SlowClock;
    impl drumlin::base::Clock for SlowClock {
        fn now(&self) -> Timestamp {
            std::thread::sleep(std::time::Duration::from_millis(1));
            Timestamp(1_000_000)
        }
    }
    let disk = SimDisk::new();
    let slow = drumlin::base::Env { clock: Arc::new(SlowClock), ..env(&Arc::default(), 1, 2) };
    let store = drumlin::store::open_on(Arc::new(disk.clone()), slow, "sim", Options::default()).unwrap();
    keyed(&store, &[]);
    let syncs = disk.counters().syncs;
    let (won, lost) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let started = std::sync::Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS as i64 {
            let (store, won, lost, started) = (&store, &won, &lost, &started);
            scope.spawn(move || {
                started.wait();
                for n in 0..EACH {
                    let own = row(1000 + thread * EACH + n, "own");
                    store.table(PATH).upsert(batch(std::slice::from_ref(&own)), &WriteOptions::default()).unwrap();
                    // Acknowledged rows are visible to the next look-up.
                    let found = store.table(PATH).get_many(&batch(&[own]), &Default::default()).unwrap();
                    assert_eq!(texts(&found), [Some(Some("own".to_owned()))]);
                    match store.table(PATH).insert(batch(&[row(n, &thread.to_string())]), &WriteOptions::default()) {
                        Ok(_) => won.fetch_add(1, Ordering::Relaxed),
                        Err(e) if e.kind() == ErrorKind::AlreadyExists => lost.fetch_add(1, Ordering::Relaxed),
                        Err(e) => panic!("{e}"),
                    };
                }
            });
        }
    });
    assert_eq!(won.into_inner(), EACH as usize);
    assert_eq!(lost.into_inner(), EACH as usize * (THREADS - 1));
    let rows = read(&store, PATH, AsOf::Newest).unwrap();
    assert_eq!(rows.len(), EACH as usize * (THREADS + 1));
    assert!(rows.windows(2).all(|pair| pair[0].0 < pair[1].0));
    let (commits, syncs) = (EACH as u64 * (THREADS as u64 + 1), disk.counters().syncs - syncs);
    assert!(syncs * 4 < commits, "{syncs} syncs for {commits} commits");
    drop(store);
    assert_eq!(read(&open(&disk).unwrap(), PATH, AsOf::Newest).unwrap(), rows);
}

#[test]
fn readers_of_old_states_see_them_while_writers_and_checkpoints_go_on() {
    let store = open(&SimDisk::in_memory()).unwrap();
    keyed(&store, &(0..500).map(|id| row(id, "0")).collect::<Vec<_>>());
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (store, stop) = (&store, &stop);
        for _ in 0..2 {
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let view = store.table(PATH).view(&AsOf::Newest).unwrap();
                    let asked = batch(&(0..500).map(|id| (id * 7 % 500, None)).collect::<Vec<_>>());
                    let look = || texts(&view.get_many(&asked, None, &Default::default()).unwrap());
                    let first = look();
                    // Every commit writes one value to all keys.
                    assert!(first.iter().all(|text| *text == first[0] && text.is_some()), "{first:?}");
                    std::thread::yield_now();
                    assert_eq!(look(), first);
                    let all = read(store, PATH, AsOf::Newest).unwrap();
                    assert!(all.len() == 500 && all.iter().all(|(_, name)| *name == all[0].1), "{all:?}");
                }
            });
        }
        for round in 1..60 {
            let rows: Vec<Row> = (0..500).map(|id| row(id, &round.to_string())).collect();
            let many = if round % 4 == 0 { note() } else { WriteOptions::default() };
            store.table(PATH).upsert(batch(&rows), &many).unwrap();
            if round % 5 == 0 {
                store.checkpoint(&Default::default()).unwrap();
                store.reclaim(&Default::default()).unwrap();
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn rows_written_while_a_checkpoint_runs_are_there_after_the_log_was_cut() {
    let disk = SimDisk::new();
    let store = open(&disk).unwrap();
    keyed(&store, &numbered(0, 5));
    // Something to vacuum, with reported progress.
    for part in 0..4 {
        store.append("t", batch(&numbered(part * 10, 10)), &Default::default()).err();
        store.write(&format!("t{part}"), batch(&numbered(0, 10)), &Default::default()).unwrap();
        store.table(&format!("t{part}")).delete("id > 2", &Default::default()).unwrap();
    }
    store.set_retention("**", Some(drumlin::catalog::Retention::KeepLast(1))).unwrap();
    let (during, calls) = (store.clone(), Arc::new(AtomicUsize::new(0)));
    let counted = calls.clone();
    let progress = move |_| {
        let n = counted.fetch_add(1, Ordering::Relaxed) as i64;
        during.table(PATH).upsert(batch(&[row(100 + n, "during")]), &WriteOptions::default()).unwrap();
        during.table(PATH).delete_keys(batch(&[row(2, "")]), &WriteOptions::default()).unwrap();
    };
    let task = Task { progress: Some(Arc::new(progress)), ..Task::default() };
    store.checkpoint(&CheckpointOptions { task, ..CheckpointOptions::default() }).unwrap();
    assert!(calls.load(Ordering::Relaxed) > 0);
    let expected = read(&store, PATH, AsOf::Newest).unwrap();
    assert!(expected.iter().all(|(id, _)| *id != 2) && expected.iter().any(|(id, _)| *id == 100));
    for crash in [true, false] {
        if !crash {
            store.close().unwrap();
        }
        let survived = if crash { disk.crash(3) } else { disk.clone() };
        let again = open(&survived).unwrap();
        assert_eq!(read(&again, PATH, AsOf::Newest).unwrap(), expected);
        again.checkpoint(&Default::default()).unwrap();
        assert_eq!(read(&again, PATH, AsOf::Newest).unwrap(), expected);
        again.close().unwrap();
        assert_eq!(read(&open(&survived).unwrap(), PATH, AsOf::Newest).unwrap(), expected);
    }
}

#[test]
fn an_idle_table_does_not_keep_the_log() {
    let disk = SimDisk::new();
    let store = open(&disk).unwrap();
    keyed(&store, &numbered(0, 5));
    for n in 0..200 {
        store.tree().put(&format!("n{n}"), Payload::from(n)).unwrap();
    }
    store.checkpoint(&Default::default()).unwrap();
    let log: u64 = disk.files().iter().filter(|(name, _)| name.starts_with("log/")).map(|(_, b)| b.len() as u64).sum();
    assert!(log < 100, "{log} bytes of log are left");
    assert_eq!(store.table(PATH).stat().unwrap().memory_keys, 0);
    assert_eq!(store.table(PATH).stat().unwrap().row_groups, 1);
}

#[test]
fn what_takes_too_much_memory_is_checkpointed_by_itself() {
    let options = Options { memtable_bytes: 64 << 10, ..Options::default() };
    let store = open_set(&SimDisk::in_memory(), options).unwrap();
    keyed(&store, &[]);
    for n in 0..300 {
        let rows: Vec<Row> = (0..50).map(|id| row(n * 50 + id, &"x".repeat(100))).collect();
        store.table(PATH).upsert(batch(&rows), &WriteOptions::default()).unwrap();
        assert!(store.stat().unwrap().memtable_bytes < 1 << 20);
    }
    drumlin::store::wait_for_checkpoint(&store);
    assert!(store.table(PATH).stat().unwrap().row_groups > 0);
    assert_eq!(read(&store, PATH, AsOf::Newest).unwrap().len(), 15_000);
}

#[test]
fn with_syncs_by_time_a_crash_loses_the_last_commits_only() {
    let interval = || Options { sync: SyncMode::Interval(std::time::Duration::from_secs(3600)), ..Options::default() };
    for seed in 0..60 {
        let disk = SimDisk::new();
        let store = open_set(&disk, interval()).unwrap();
        keyed(&store, &[]);
        store.sync().unwrap();
        let syncs = disk.counters().syncs;
        for n in 0..10 {
            store.table(PATH).upsert(batch(&[row(n, "a")]), &WriteOptions::default()).unwrap();
        }
        assert_eq!(disk.counters().syncs, syncs, "nobody waits for a sync");
        store.sync().unwrap();
        assert_eq!(disk.counters().syncs, syncs + 2, "the log, and the mark that says up to where it is synced");
        for n in 10..20 {
            store.table(PATH).upsert(batch(&[row(n, "b")]), &WriteOptions::default()).unwrap();
        }
        let survived = disk.crash(seed);
        let again = open_set(&survived, interval()).unwrap();
        let rows = read(&again, PATH, AsOf::Newest).unwrap();
        let ids: Vec<i64> = rows.iter().map(|(id, _)| *id).collect();
        assert!(ids.len() >= 10 && ids == (0..ids.len() as i64).collect::<Vec<_>>(), "{ids:?}");
        // After a clean close, nothing can be lost.
        store.close().unwrap();
        let closed = open_set(&disk.crash(seed + 1), interval()).unwrap();
        assert_eq!(read(&closed, PATH, AsOf::Newest).unwrap().len(), 20);
    }
}

#[test]
fn a_failed_sync_is_reported_to_the_next_writer() {
    let disk = SimDisk::new();
    let options = Options { sync: SyncMode::Interval(std::time::Duration::from_millis(1)), ..Options::default() };
    let store = open_set(&disk, options).unwrap();
    keyed(&store, &[]);
    store.sync().unwrap();
    disk.plan(disk.counters().changes + 1, DiskFault::Fail);
    let mut refused = None;
    for n in 0..2000 {
        match store.table(PATH).upsert(batch(&[row(n, "a")]), &WriteOptions::default()) {
            Ok(_) => std::thread::sleep(std::time::Duration::from_millis(1)),
            Err(e) => {
                refused = Some(e);
                break;
            }
        }
    }
    let refused = refused.expect("a failed sync is not passed over");
    assert!([ErrorKind::Closed, ErrorKind::InDoubt, ErrorKind::Unavailable].contains(&refused.kind()), "{refused}");
    disk.heal();
    drop(store);
    let _ = CrashPoint::Before;
    open(&disk).unwrap();
}

/// A key of [`eight_groups`]: an even number. Keys lie so far apart that they take more bytes than a filter.
fn key_of(group: i64, n: i64) -> i64 {
    (group << 40) + 2 * fastrand::Rng::with_seed(n as u64).i64(0..1 << 38)
}

/// Eight row groups with a key range each, large enough not to be read whole.
fn eight_groups(store: &Store) {
    let options = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table(PATH).create(batch(&[]).schema(), options).unwrap();
    for group in 0..8_i64 {
        let mut rng = fastrand::Rng::with_seed(group as u64);
        let text = |rng: &mut fastrand::Rng| (0..30).map(|_| rng.alphanumeric()).collect::<String>();
        let rows: Vec<Row> = (0..20_000).map(|n| (key_of(group, n), Some(text(&mut rng)))).collect();
        store.append(PATH, batch(&rows), &Default::default()).unwrap();
    }
}

/// A look-up reads what can hold the keys, and no more.
#[test]
fn a_look_up_reads_only_what_may_hold_the_keys() {
    let disk = SimDisk::new();
    let store = open(&disk).unwrap();
    eight_groups(&store);
    store.close().unwrap();
    let counted = |ask: &dyn Fn(&Store)| {
        let store = open(&disk).unwrap();
        let before = disk.counters();
        ask(&store);
        let after = disk.counters();
        (after.reads - before.reads, after.bytes_read - before.bytes_read)
    };
    let ask = |ids: Vec<i64>, columns: Option<Vec<String>>| {
        move |store: &Store| {
            let keys = batch(&ids.iter().map(|id| (*id, None)).collect::<Vec<_>>());
            let options = drumlin::store::LookupOptions { columns: columns.clone(), ..Default::default() };
            let found = store.table(PATH).get_many(&keys, &options).unwrap();
            assert_eq!(found.found.true_count(), ids.iter().filter(|id| **id % 2 == 0).count());
        }
    };
    let directories = counted(&ask(vec![-1], None));
    // One row group: its filter, its keys, and the values.
    let one = counted(&ask(vec![key_of(2, 0), key_of(2, 1), key_of(2, 19_999)], None));
    assert_eq!(one.0 - directories.0, 3, "{one:?} {directories:?}");
    // Two keys, without values.
    let keys = counted(&ask(vec![key_of(2, 0), key_of(2, 19_999)], Some(vec!["id".into()])));
    assert_eq!(keys.0 - directories.0, 2);
    assert!(keys.1 < one.1);
    // The filter recognises a missing key.
    let absent = counted(&ask(vec![key_of(2, 5) + 1], None));
    assert_eq!(absent.0 - directories.0, 1);
    assert!(absent.1 - directories.1 < 30_000, "{absent:?} {directories:?}");
    // Two row groups, whatever the order of the keys.
    let two = counted(&ask(vec![key_of(5, 1), key_of(2, 0), key_of(5, 0)], None));
    assert_eq!(two.0 - directories.0, 6);
}

/// Over a network the requests for many keys are made together.
#[test]
fn look_ups_in_a_bucket_take_few_rounds_of_requests() {
    let (bucket, clock) = (SimBucket::new(), shared_support::clock());
    let store = shared_support::open(&bucket, &clock).unwrap();
    eight_groups(&store);
    store.close().unwrap();
    let opened = |cache_bytes| {
        let options = Options { inline_bytes: 0, cache_bytes, ..Options::default() };
        shared_support::open_as(&bucket.client(), &clock, options).unwrap()
    };
    // Those of look-ups alone, beside those that look for what other processes have committed.
    let look_up = |store: &Store, ids: &[i64]| {
        let begun = rounds(store);
        store.table(PATH).exists().unwrap();
        let looked = rounds(store) - begun;
        let keys = batch(&ids.iter().map(|id| (*id, None)).collect::<Vec<_>>());
        let begun = rounds(store);
        let found = store.table(PATH).get_many(&keys, &Default::default()).unwrap();
        let taken = rounds(store) - begun;
        for (at, id) in ids.iter().enumerate() {
            assert_eq!(found.found.value(at), id % 2 == 0, "{id}");
        }
        taken - looked
    };
    // Directories, filters, keys, values; all row groups may be asked.
    let few: Vec<i64> = (0..8).flat_map(|group| [key_of(group, 8), key_of(group, 9) + 1]).collect();
    let store = opened(256 << 20);
    assert_eq!(look_up(&store, &few), 4);
    assert_eq!(look_up(&store, &few), 0);
    // Too many for filters to help.
    let many: Vec<i64> = (0..1000).map(|n| key_of(n % 8, n) + n / 500).collect();
    assert_eq!(look_up(&opened(256 << 20), &many), 3);
    // None is there: filters say so, mostly.
    let absent: Vec<i64> = (0..8).map(|group| key_of(group, 9) + 1).collect();
    assert!((2..=3).contains(&look_up(&opened(256 << 20), &absent)));
    // What does not fit the cache is fetched in turns, and found.
    for cache_bytes in [0, 1 << 20, 4 << 20] {
        look_up(&opened(cache_bytes), &many);
    }
    // A block that is gone, or damaged, is an error as ever.
    let store = opened(256 << 20);
    let keys = batch(&many.iter().map(|id| (*id, None)).collect::<Vec<_>>());
    let name = bucket.objects().into_iter().map(|(name, _)| name).find(|name| name.starts_with("blocks/")).unwrap();
    bucket.overwrite(&name, bucket.content(&name).unwrap().iter().map(|byte| !byte).collect());
    let error = store.table(PATH).get_many(&keys, &Default::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

#[test]
fn many_keys_of_many_rows_are_found() {
    let store = open(&SimDisk::in_memory()).unwrap();
    let options = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table(PATH).create(batch(&[]).schema(), options).unwrap();
    let rows: Vec<Row> = (0..300_000).map(|id| (id, None)).collect();
    store.append(PATH, batch(&rows), &Default::default()).unwrap();
    for n in [1, 20, 5000] {
        let asked: Vec<Row> = (0..n).map(|at| (at * 7919 % 300_000, None)).collect();
        let found = store.table(PATH).get_many(&batch(&asked), &Default::default()).unwrap();
        assert_eq!(found.found.true_count() as i64, n);
    }
}
