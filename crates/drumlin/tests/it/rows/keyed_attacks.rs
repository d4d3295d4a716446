//! Sequences that once broke a rule of keyed tables, or nearly did.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, DictionaryArray, FixedSizeBinaryArray, Int32Array, Int64Array,
    RecordBatch, StringViewArray,
};
use drumlin::base::{ManualClock, Timestamp, Version};
use drumlin::storage::{DiskFault, SimDisk};
use drumlin::store::{AsOf, Frame, Options, ReadOptions, SyncMode, TableOptions, WriteOptions};
use drumlin::{ErrorKind, Result, Store, Tables};

use crate::support::{Row, batch, env, open, read, rows};

const T: &str = "t";

fn open_set(disk: &SimDisk, options: Options) -> Result<Store> {
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    drumlin::store::open_on(Arc::new(disk.clone()), env(&clock, disk.counters().changes, 2), "sim", options)
}

fn some(list: &[(i64, &str)]) -> Vec<Row> {
    list.iter().map(|(id, name)| (*id, Some((*name).to_owned()))).collect()
}

fn of(list: &[(i64, &str)]) -> RecordBatch {
    batch(&some(list))
}

fn key() -> TableOptions {
    TableOptions { key: vec!["id".into()], ..TableOptions::default() }
}

/// A store whose keyed table has these rows, in memory.
fn keyed(list: &[(i64, &str)]) -> Store {
    let store = open(&SimDisk::in_memory()).unwrap();
    store.table(T).create(of(&[]).schema(), key()).unwrap();
    store.table(T).upsert(of(list), &WriteOptions::default()).unwrap();
    store
}

fn note() -> WriteOptions {
    WriteOptions { metadata: Some("1".into()), ..WriteOptions::default() }
}

fn newest(store: &Store) -> Vec<Row> {
    read(store, T, AsOf::Newest).unwrap()
}

#[test]
fn what_a_transaction_appends_is_looked_for_again_at_its_commit() {
    let store = keyed(&[]);
    let tx = store.transaction().unwrap();
    tx.append(T, of(&[(1, "tx")]), &WriteOptions::default()).unwrap();
    store.table(T).insert(of(&[(1, "other")]), &WriteOptions::default()).unwrap();
    assert_eq!(tx.commit().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(newest(&store), some(&[(1, "other")]));
}

#[test]
fn a_transaction_does_not_mistake_row_groups_of_others_for_its_own() {
    let store = keyed(&[(1, "a"), (2, "b"), (3, "c")]);
    let tx = store.transaction().unwrap();
    tx.table(T).upsert(of(&[(100, "x"), (101, "y")]), &note()).unwrap();
    tx.table(T).upsert(of(&[(100, "x2")]), &note()).unwrap();
    // It adds a row group with the number that the transaction gave to one of its own.
    store.checkpoint(&Default::default()).unwrap();
    tx.commit().unwrap();
    assert_eq!(newest(&store), some(&[(1, "a"), (2, "b"), (3, "c"), (100, "x2"), (101, "y")]));
}

#[test]
fn a_transaction_that_deletes_versions_has_rows_in_memory_flushed_first() {
    let store = keyed(&[(1, "a")]);
    store.snapshot("s", "**").unwrap();
    store.write(T, of(&[(2, "b")]), &WriteOptions::default()).unwrap();
    store.transact(|tx| tx.delete_versions(&[(T.into(), vec![Version(2)])], Default::default())).unwrap();
    store.table(T).upsert(of(&[(3, "c")]), &WriteOptions::default()).unwrap();
    for _ in 0..2 {
        assert_eq!(newest(&store), some(&[(1, "a"), (3, "c")]));
        assert_eq!(read(&store, T, AsOf::Snapshot("s".into())).unwrap(), some(&[(1, "a")]));
        store.checkpoint(&Default::default()).unwrap();
    }
    // A version that a snapshot holds, over rows that are in memory.
    let store = keyed(&[]);
    store.table(T).upsert(of(&[(1, "a"), (2, "b")]), &note()).unwrap();
    store.table(T).upsert(of(&[(1, "A"), (7, "G")]), &WriteOptions::default()).unwrap();
    store.snapshot("s1", "**").unwrap();
    store.table(T).upsert(of(&[(3, "c")]), &note()).unwrap();
    store.snapshot("s2", "**").unwrap();
    let held = read(&store, T, AsOf::Snapshot("s2".into())).unwrap();
    let last = store.table(T).versions().unwrap().last().unwrap().version;
    store.transact(|tx| tx.delete_versions(&[(T.into(), vec![last])], Default::default())).unwrap();
    for _ in 0..2 {
        assert_eq!(read(&store, T, AsOf::Snapshot("s2".into())).unwrap(), held);
        assert_eq!(newest(&store), some(&[(1, "A"), (2, "b"), (7, "G")]));
        store.checkpoint(&Default::default()).unwrap();
    }
}

#[test]
fn keys_of_the_greatest_bytes_are_found_in_row_groups() {
    let store = open(&SimDisk::in_memory()).unwrap();
    let columns = |a: Vec<i64>, b: Vec<Vec<u8>>| {
        let b = BinaryArray::from_iter_values(b);
        RecordBatch::try_from_iter([("a", Arc::new(Int64Array::from(a)) as ArrayRef), ("b", Arc::new(b))]).unwrap()
    };
    let all = columns(vec![1, i64::MAX, i64::MIN], vec![vec![0xff; 24], vec![0xff; 60], vec![]]);
    let options = TableOptions { key: vec!["a".into(), "b".into()], ..TableOptions::default() };
    store.table(T).create(all.schema(), options).unwrap();
    store.table(T).insert(all.clone(), &WriteOptions::default()).unwrap();
    for _ in 0..2 {
        assert_eq!(store.table(T).get_many(&all, &Default::default()).unwrap().found.true_count(), 3);
        assert_eq!(
            store.table(T).insert(all.clone(), &WriteOptions::default()).unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );
        store.checkpoint(&Default::default()).unwrap();
    }
}

#[test]
fn commits_that_a_sync_by_time_failed_on_are_written_again_when_the_store_is_opened() {
    let options = || Options { sync: SyncMode::Interval(std::time::Duration::from_secs(3600)), ..Options::default() };
    for seed in 0..100 {
        let disk = SimDisk::new();
        let store = open_set(&disk, options()).unwrap();
        store.table(T).create(of(&[]).schema(), key()).unwrap();
        store.sync().unwrap();
        for n in 0..6 {
            store.table(T).upsert(of(&[(n, "a")]), &WriteOptions::default()).unwrap();
        }
        disk.plan(disk.counters().changes, DiskFault::Fail);
        store.sync().unwrap_err();
        // The caller that closes it must learn of it.
        assert_eq!(store.close().unwrap_err().kind(), ErrorKind::InDoubt);
        disk.heal();
        drop(store);
        let store = open_set(&disk, options()).unwrap();
        let there = newest(&store).len();
        store.table(T).upsert(of(&[(50, "a")]), &WriteOptions::default()).unwrap();
        store.sync().unwrap();
        let again = open_set(&disk.crash(seed), options()).unwrap();
        assert_eq!(newest(&again).len(), there + 1);
    }
}

#[test]
fn a_path_that_becomes_keyed_while_it_is_written_refuses_the_write() {
    let store = open(&SimDisk::in_memory()).unwrap();
    let other = store.clone();
    let batches = std::iter::once(()).map(move |()| {
        other.table(T).create(of(&[]).schema(), key())?;
        Ok(of(&[(1, "a"), (1, "b")]))
    });
    let options = WriteOptions { sort: Some(vec!["id".into()]), ..WriteOptions::default() };
    let refused = store.write(T, Frame::new(of(&[]).schema(), batches), &options).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert_eq!(newest(&store), []);
}

#[test]
fn little_memory_and_empty_frames_lose_nothing() {
    let store = Store::open_with("memory://", Options { memory_bytes: 0, ..Options::default() }).unwrap();
    store.table(T).create(of(&[]).schema(), key()).unwrap();
    assert_eq!(store.append(T, of(&[(1, "x")]), &WriteOptions::default()).unwrap().rows, 1);
    assert_eq!(newest(&store), some(&[(1, "x")]));
    let nothing = || Frame::new(of(&[]).schema(), std::iter::empty());
    store.replace(T, nothing(), &WriteOptions::default()).unwrap();
    store.append(T, nothing(), &WriteOptions::default()).unwrap();
    store.table(T).upsert(nothing(), &WriteOptions::default()).unwrap();
    assert_eq!(newest(&store), some(&[(1, "x")]));
}

#[test]
fn a_checkpoint_that_ends_between_two_parts_leaves_a_table_that_can_be_written() {
    let mut halfway = 0;
    for at in 0..60 {
        let disk = SimDisk::new();
        let store = open_set(&disk, Options { inline_bytes: 0, ..Options::default() }).unwrap();
        store.table(T).create(of(&[]).schema(), key()).unwrap();
        store.table(T).upsert(of(&[(1, "a"), (2, "b"), (3, "c")]), &WriteOptions::default()).unwrap();
        store.snapshot("a", "**").unwrap();
        store.table(T).upsert(of(&[(4, "d")]), &WriteOptions::default()).unwrap();
        store.snapshot("b", "**").unwrap();
        let planned = disk.counters().changes + at;
        disk.plan(planned, DiskFault::Fail);
        let done = store.checkpoint(&Default::default());
        disk.heal();
        if disk.counters().changes <= planned {
            break;
        }
        if done.is_ok() {
            // The mark next to the log may fail.
            continue;
        }
        let Ok(stat) = store.table(T).stat() else { continue };
        halfway += u64::from(stat.row_groups == 1);
        if store.table(T).delete("id < 3", &Default::default()).is_ok() {
            for _ in 0..2 {
                assert_eq!(newest(&store), some(&[(3, "c"), (4, "d")]));
                assert_eq!(store.table(T).versions().unwrap().last().unwrap().rows, 2);
                if store.checkpoint(&Default::default()).is_err() {
                    break;
                }
            }
        }
    }
    assert!(halfway > 0);
}

// faults: reclaim beside a reader x upsert
#[test]
fn what_an_append_searches_is_not_reclaimed_during_it() {
    let disk = SimDisk::new();
    let options = Options { inline_bytes: 0, cache_bytes: 0, ..Options::default() };
    let store = open_set(&disk, options).unwrap();
    store.table(T).create(of(&[]).schema(), key()).unwrap();
    store.append(T, of(&[(1, "a"), (2, "b"), (3, "c")]), &WriteOptions::default()).unwrap();
    store.append(T, of(&[(4, "a"), (5, "b"), (6, "c")]), &WriteOptions::default()).unwrap();
    let other = store.clone();
    let batches = std::iter::once(()).map(move |()| {
        other.checkpoint(&Default::default())?;
        other.reclaim(&Default::default())?;
        Ok(of(&[(2, "z"), (5, "z")]))
    });
    let frame = Frame::new(of(&[]).schema(), batches);
    let refused = store.append_many(vec![(T.into(), frame)], &WriteOptions::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AlreadyExists, "{refused}");
}

#[test]
fn types_that_cannot_come_back_are_refused_when_the_table_is_made() {
    let store = open(&SimDisk::in_memory()).unwrap();
    let ids = || Arc::new(Int64Array::from(vec![1])) as ArrayRef;
    let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true]));
    let keyed_flags = DictionaryArray::try_new(Int32Array::from(vec![0]), flags).unwrap();
    let rows = RecordBatch::try_from_iter([("id", ids()), ("d", Arc::new(keyed_flags) as ArrayRef)]).unwrap();
    let refused = store.table(T).create(rows.schema(), key()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(refused.message().contains("cannot have a column of type dictionary"), "{refused}");
    let empty = FixedSizeBinaryArray::try_new_with_len(0, arrow::buffer::Buffer::from(Vec::<u8>::new()), None, 1);
    let rows = RecordBatch::try_from_iter([("id", ids()), ("f", Arc::new(empty.unwrap()) as ArrayRef)]).unwrap();
    let refused = store.table(T).create(rows.schema(), key()).unwrap_err();
    assert!(refused.message().contains("column 'f' of type fixed_size_binary[0] cannot be stored"), "{refused}");
}

#[test]
fn a_flush_overtaken_by_a_write_leaves_no_block() {
    let disk = SimDisk::new();
    let store = open_set(&disk, Options { inline_bytes: 0, ..Options::default() }).unwrap();
    store.table(T).create(of(&[]).schema(), key()).unwrap();
    for round in 0..20 {
        store.table(T).upsert(of(&[(round, "a")]), &WriteOptions::default()).unwrap();
        let other = store.clone();
        std::thread::scope(|scope| {
            scope.spawn(move || other.write(T, of(&[(100, "w")]), &WriteOptions::default()).unwrap());
            store.checkpoint(&Default::default()).unwrap();
        });
    }
    store.set_retention(T, Some(drumlin::catalog::Retention::KeepLast(1))).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    store.reclaim(&Default::default()).unwrap();
    let stat = store.stat().unwrap();
    assert!(stat.blocks <= 2, "{stat:?}");
    assert_eq!(store.verify(&Default::default()).unwrap().orphans, []);
}

#[test]
fn a_version_of_a_transaction_s_own_shows_nothing_of_others() {
    let store = keyed(&[(1, "a")]);
    let tx = store.transaction().unwrap();
    tx.table(T).upsert(of(&[(9, "tx")]), &note()).unwrap();
    store.table(T).upsert(of(&[(2, "other")]), &WriteOptions::default()).unwrap();
    let expected = some(&[(1, "a"), (9, "tx")]);
    for as_of in [AsOf::Newest, AsOf::Version(Version(1))] {
        let options = ReadOptions { as_of, ..ReadOptions::default() };
        assert_eq!(rows(&tx.table(T).collect(&options).unwrap()), expected);
    }
}

#[test]
fn a_row_of_a_large_frame_costs_the_log_a_row() {
    let store = open(&SimDisk::in_memory()).unwrap();
    let texts = StringViewArray::from_iter_values((0..20_000).map(|n| format!("{n:0100}")));
    let ids = Int64Array::from_iter_values(0..20_000);
    let rows = RecordBatch::try_from_iter([("id", Arc::new(ids) as ArrayRef), ("s", Arc::new(texts) as ArrayRef)]);
    let rows = rows.unwrap();
    store.table(T).create(rows.schema(), key()).unwrap();
    let before = store.stat().unwrap().log_bytes;
    store.table(T).upsert(rows.slice(5, 1), &WriteOptions::default()).unwrap();
    let bytes = store.stat().unwrap().log_bytes - before;
    assert!(bytes < 2000, "{bytes} bytes of log for a row");
    assert_eq!(store.table(T).collect(&Default::default()).unwrap()[0].column(1).len(), 1);
}

#[test]
fn many_commits_are_followed_in_time_that_grows_with_them() {
    let store = keyed(&[]);
    let from = store.seq().unwrap();
    for id in 0..3000 {
        store.table(T).upsert(of(&[(id, "a")]), &WriteOptions::default()).unwrap();
    }
    let mut feed = store.changes(from).unwrap();
    let mut seen = 0;
    while feed.next(Some(std::time::Duration::ZERO)).unwrap().is_some() {
        seen += 1;
    }
    assert_eq!(seen, 3000);
}
