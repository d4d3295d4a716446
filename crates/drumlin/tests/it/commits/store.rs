//! The public API, case by case.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, RecordBatch};
use drumlin::base::{ManualClock, Timestamp, Version};
use drumlin::catalog::{Payload, Retention};
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, Frame, Mode, Options, ReadOptions, WriteOptions};
use drumlin::{ErrorKind, SnapshotOf, Store, Tables};

use crate::support::{batch, numbered, open, open_with, read, rows};

// faults: second process x open
#[test]
fn a_store_on_disk_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.drumlin");
    let uri = path.to_str().unwrap();
    let store = Store::open_with(uri, Options::default()).unwrap();
    store.write("t", batch(&numbered(0, 1000)), &Default::default()).unwrap();
    let second = Store::open_with(uri, Options::default()).unwrap();
    second.tree().put("n", 1).unwrap();
    second.close().unwrap();
    assert_eq!(second.tree().get("n").unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(store.tree().get("n").unwrap(), Some(1.into()));
    let other = Store::open_with(uri, Options { cpu_threads: 1, ..Options::default() }).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Locked);
    assert!(other.message().contains("already open in this process"), "{other}");
    let reader = Store::open_with(uri, Options { mode: Mode::Read, ..Options::default() }).unwrap();
    assert_eq!(read(&reader, "t", AsOf::Newest).unwrap().len(), 1000);
    store.append("t", batch(&numbered(0, 5)), &Default::default()).unwrap();
    assert_eq!(read(&reader, "t", AsOf::Newest).unwrap().len(), 1000);
    reader.refresh().unwrap();
    assert_eq!(read(&reader, "t", AsOf::Newest).unwrap().len(), 1005);
    store.checkpoint(&Default::default()).unwrap();
    store.append("t", batch(&numbered(0, 5)), &Default::default()).unwrap();
    reader.refresh().unwrap();
    assert_eq!(read(&reader, "t", AsOf::Newest).unwrap().len(), 1010);
    assert_eq!(reader.tree().put("x", Payload::from(1)).unwrap_err().kind(), ErrorKind::InvalidArgument);
    store.close().unwrap();
    assert_eq!(store.table("t").versions().unwrap_err().kind(), ErrorKind::Closed);
    let store = Store::open_with(uri, Options { mode: Mode::Write, ..Options::default() }).unwrap();
    assert_eq!(read(&store, "t", AsOf::Newest).unwrap().len(), 1010);
}

// faults: reclaim beside a reader x read
#[test]
fn a_reader_whose_blocks_are_reclaimed_gets_an_error() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    store.write("t", batch(&numbered(0, 100)), &Default::default()).unwrap();
    let follow = Options { mode: Mode::Read, cache_bytes: 0, ..Options::default() };
    let env = crate::support::env(&Arc::new(ManualClock::default()), 1, 2);
    let reader = drumlin::store::open_on(Arc::new(disk.clone()), env, "sim", follow).unwrap();
    store.drop("t").unwrap();
    store.reclaim(&Default::default()).unwrap();
    assert_eq!(read(&reader, "t", AsOf::Newest).unwrap_err().kind(), ErrorKind::SnapshotExpired);
    reader.refresh().unwrap();
    assert_eq!(read(&reader, "t", AsOf::Newest).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_folder_that_is_no_store_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    #[expect(clippy::disallowed_methods, reason = "a file that is not the store's")]
    std::fs::write(folder.path().join("thesis.doc"), b"precious").unwrap();
    let uri = folder.path().to_str().unwrap();
    let error = Store::open_with(uri, Options::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("thesis.doc"), "{error}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    for mode in [Mode::Read, Mode::Write] {
        let missing = folder.path().join("nothing");
        let error = Store::open_with(missing.to_str().unwrap(), Options { mode, ..Options::default() }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(!missing.exists());
    }
    assert_eq!(Store::open_with("ftp://bucket/x", Options::default()).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_multi_row_group_table_reads_back_in_order() {
    let store = Store::open_with("memory://", Options::default()).unwrap();
    let all = numbered(0, 300_000);
    let parts: Vec<RecordBatch> = all.chunks(7_777).map(batch).collect();
    let frame = Frame::new(parts[0].schema(), parts.clone().into_iter().map(Ok));
    let version = store.write("t", frame, &Default::default()).unwrap();
    assert_eq!(version.rows, 300_000);
    assert_eq!(store.table("t").stat().unwrap().row_groups, 3);
    assert_eq!(read(&store, "t", AsOf::Newest).unwrap(), all);
    let options = ReadOptions { columns: Some(vec!["name".into(), "id".into()]), tail: Some(3), ..Default::default() };
    let tail = store.table("t").collect(&options).unwrap();
    assert_eq!(tail[0].schema().field(0).name(), "name");
    assert_eq!(tail.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);
}

#[test]
fn deleting_half_gives_half_the_space_back() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    store.set_retention("t", Some(Retention::KeepLast(1))).unwrap();
    let all = numbered(0, 500_000);
    store.write("t", batch(&all), &Default::default()).unwrap();
    let before = store.stat().unwrap().block_bytes;
    let deleted = store.table("t").delete("id % 2 = 0", &Default::default()).unwrap();
    assert_eq!(deleted.rows, 250_000);
    let report = store.checkpoint(&Default::default()).unwrap();
    assert_eq!(report.rows_removed, 250_000);
    assert_eq!(report.groups_after, 3);
    store.reclaim(&Default::default()).unwrap();
    let after = store.stat().unwrap();
    assert!(after.bytes() < before * 55 / 100, "{} of {before}", after.bytes());
    let odd: Vec<_> = all.into_iter().filter(|(id, _)| id % 2 == 1).collect();
    assert_eq!(read(&store, "t", AsOf::Newest).unwrap(), odd);
}

#[test]
fn a_scan_keeps_its_blocks_until_it_ends() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    // Nothing of it is in the cache when the scan reads it.
    let options = Options { cache_bytes: 0, inline_bytes: 0, ..Options::default() };
    drop(store);
    let store = drumlin::store::open_on(
        Arc::new(disk.clone()),
        crate::support::env(&Arc::new(ManualClock::default()), 1, 2),
        "sim",
        options,
    )
    .unwrap();
    let all = numbered(0, 1_000);
    store.write("t", batch(&all), &Default::default()).unwrap();
    let scan = store.read("t", &Default::default()).unwrap();
    store.drop("t").unwrap();
    let report = store.reclaim(&Default::default()).unwrap();
    assert_eq!((report.tables, report.blocks), (1, 0));
    assert!(report.holding.pinned_bytes > 0);
    assert_eq!(rows(&scan.collect().unwrap()), all);
    assert_eq!(store.reclaim(&Default::default()).unwrap().blocks, 1);
    assert_eq!(store.stat().unwrap().block_bytes + store.stat().unwrap().condemned_bytes, 0);
}

#[test]
fn as_of_a_time_gives_the_version_of_that_time() {
    let disk = SimDisk::in_memory();
    let clock = Arc::new(ManualClock::new(Timestamp(100)));
    let store = open_with(&disk, &clock, 2).unwrap();
    for (time, n) in [(100, 1), (200, 2), (50, 3)] {
        clock.set(Timestamp(time));
        store.write("t", batch(&numbered(0, n)), &Default::default()).unwrap();
    }
    // The clock went back; time in the log did not, and no two commits have the same.
    let times: Vec<i64> = store.table("t").versions().unwrap().iter().map(|version| version.time.0).collect();
    assert!(times[0] < 150 && times[1] >= 200 && times[1] < times[2] && times[2] < 210, "{times:?}");
    let count = |time| read(&store, "t", AsOf::Time(Timestamp(time))).map(|rows| rows.len());
    assert_eq!(count(150).unwrap(), 1);
    assert_eq!(count(500).unwrap(), 3);
    assert_eq!(count(99).unwrap_err().kind(), ErrorKind::NotFound);
}

// faults: odd name x write
#[test]
fn bad_input_is_named_and_changes_nothing() {
    let store = Store::open_with("memory://", Options::default()).unwrap();
    store.write("t", batch(&numbered(0, 3)), &Default::default()).unwrap();
    let seq = store.seq().unwrap();
    let empty = RecordBatch::new_empty(Arc::new(arrow::datatypes::Schema::empty()));
    let other = RecordBatch::try_from_iter([("id", Arc::new(Int32Array::from(vec![1])) as ArrayRef)]).unwrap();
    let columns = |names: &[&str]| ReadOptions {
        columns: Some(names.iter().map(ToString::to_string).collect()),
        ..Default::default()
    };
    let one = |path: &str, versions: &[u64]| vec![(path.to_owned(), versions.iter().map(|v| Version(*v)).collect())];
    let sort = WriteOptions { sort: Some(vec!["nope".into()]), ..Default::default() };
    let snapshot = |versions: &[(&str, u64)]| {
        let versions: Vec<(String, Version)> = versions.iter().map(|(path, v)| ((*path).into(), Version(*v))).collect();
        store.snapshot("s", SnapshotOf::Versions(&versions)).err()
    };
    let cases = [
        (store.write("", batch(&[]), &Default::default()).err(), ErrorKind::InvalidArgument, "path"),
        (store.write("a/../b", batch(&[]), &Default::default()).err(), ErrorKind::InvalidArgument, ".."),
        (store.write("z", empty, &Default::default()).err(), ErrorKind::InvalidArgument, "at least one column"),
        (store.write("z", batch(&[]), &sort).err(), ErrorKind::InvalidArgument, "nope"),
        (store.append("t", other, &Default::default()).err(), ErrorKind::SchemaMismatch, "'name'"),
        (store.append("z", batch(&[]), &Default::default()).err(), ErrorKind::NotFound, "'z'"),
        (store.replace("t", batch(&[]), &Default::default()).err(), ErrorKind::InvalidArgument, "sort order"),
        (store.table("t").delete("wat = 1", &Default::default()).err(), ErrorKind::InvalidArgument, "wat"),
        (store.table("t").delete("id >", &Default::default()).err(), ErrorKind::InvalidArgument, ""),
        (store.read("t", &columns(&["id", "x"])).err(), ErrorKind::InvalidArgument, "'x'"),
        (store.read("t", &columns(&["id", "id"])).err(), ErrorKind::InvalidArgument, "twice"),
        (store.read("t", &columns(&[])).err(), ErrorKind::InvalidArgument, "no column"),
        (read(&store, "t", AsOf::Version(Version(9))).err(), ErrorKind::NotFound, "version 9"),
        (read(&store, "t", AsOf::Snapshot("no".into())).err(), ErrorKind::NotFound, "'no'"),
        (store.drop(Vec::<String>::new()).err(), ErrorKind::InvalidArgument, ""),
        (store.drop(["t", "u", "v/*"]).err(), ErrorKind::NotFound, "'u', 'v/*'"),
        (store.delete_versions(&one("t", &[]), Default::default()).err(), ErrorKind::InvalidArgument, "empty"),
        (store.delete_versions(&one("t", &[0]), Default::default()).err(), ErrorKind::InvalidArgument, "drop it"),
        (
            store.delete_versions(&one("t", &[7, 8]), Default::default()).err(),
            ErrorKind::NotFound,
            "version 7, 't' version 8",
        ),
        (store.delete_versions(&one("u", &[1]), Default::default()).err(), ErrorKind::NotFound, "'u'"),
        (store.tree().delete("t", None).err(), ErrorKind::InvalidArgument, "holds a table"),
        (store.tree().delete("nothing", None).err(), ErrorKind::NotFound, "nothing"),
        (store.undrop("t", None).err(), ErrorKind::NotFound, "'t'"),
        (store.snapshot("", "**").err(), ErrorKind::InvalidArgument, "snapshot name"),
        (store.snapshot("s", "q/*").err(), ErrorKind::NotFound, "q/*"),
        (snapshot(&[("t", 1)]), ErrorKind::NotFound, "'t': version 1"),
        (snapshot(&[("t", 0), ("u", 0)]), ErrorKind::NotFound, "'u'"),
        (snapshot(&[("t", 0), ("t", 0)]), ErrorKind::InvalidArgument, "'t' is given twice"),
        (snapshot(&[("t/", 0)]), ErrorKind::InvalidArgument, "'t/'"),
        (snapshot(&[]), ErrorKind::InvalidArgument, "no versions"),
        (Payload::bytes(&vec![0; 2 << 20]).err(), ErrorKind::InvalidArgument, "2097152"),
    ];
    for (at, (error, kind, words)) in cases.into_iter().enumerate() {
        let error = error.unwrap_or_else(|| panic!("case {at} was accepted"));
        assert_eq!(error.kind(), kind, "case {at}: {error}");
        assert!(error.to_string().contains(words), "case {at}: '{error}' lacks '{words}'");
    }
    assert!(store.seq().unwrap().0 <= seq.0 + 1, "at most the session was registered");
    assert_eq!(read(&store, "t", AsOf::Newest).unwrap(), numbered(0, 3));
}

#[test]
fn a_snapshot_of_given_versions_holds_them() {
    let disk = SimDisk::new();
    let store = open(&disk).unwrap();
    for n in 1..4 {
        for path in ["a", "b"] {
            store.write(path, batch(&numbered(0, n)), &Default::default()).unwrap();
        }
    }
    let versions = [("b".to_owned(), Version(2)), ("a".to_owned(), Version(1))];
    let made = store.snapshot("some", SnapshotOf::Versions(&versions)).unwrap();
    assert_eq!(made.versions().unwrap(), [("a".to_owned(), Version(1)), ("b".to_owned(), Version(2))]);
    store.delete_versions(&[("a".into(), vec![Version(0), Version(1)])], Default::default()).unwrap();
    // What only a snapshot holds can be held by another.
    store.snapshot("again", SnapshotOf::Versions(&versions)).unwrap();
    store.drop_snapshot("some").unwrap();
    store.drop("b").unwrap();
    store.checkpoint(&Default::default()).unwrap();
    store.reclaim(&Default::default()).unwrap();
    drop(store);
    let store = open(&disk).unwrap();
    let shown = |path| read(&store, path, AsOf::Snapshot("again".into())).unwrap();
    assert_eq!((shown("a"), shown("b")), (numbered(0, 2), numbered(0, 3)));
    assert_eq!(read(&store, "a", AsOf::Version(Version(1))).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn write_many_is_one_commit_and_few_blocks() {
    let disk = SimDisk::new();
    let store = open(&disk).unwrap();
    store.write("warm", batch(&numbered(0, 1)), &Default::default()).unwrap();
    let (seq, before) = (store.seq().unwrap(), disk.counters());
    let frames: Vec<(String, Frame<'_>)> =
        (0..1000).map(|i| (format!("t/{i}"), batch(&numbered(i, 10)).into())).collect();
    store.write_many(frames, &Default::default()).unwrap();
    let after = disk.counters();
    assert_eq!(store.seq().unwrap().0, seq.0 + 1);
    // One block and its folder entry, one log record.
    assert_eq!(after.syncs - before.syncs, 2);
    assert_eq!(after.folder_syncs - before.folder_syncs, 1);
    let before = disk.counters();
    assert_eq!(store.drop("t/**").unwrap().paths.len(), 1000);
    let after = disk.counters();
    assert_eq!(
        (after.changes - before.changes, after.syncs - before.syncs),
        (3, 1),
        "one write, one sync, and the mark of what is synced"
    );
    let report = store.reclaim(&Default::default()).unwrap();
    assert_eq!((report.tables, report.blocks), (1000, 1));
    let twice = vec![("x".to_owned(), batch(&[]).into()), ("x".to_owned(), batch(&[]).into())];
    assert_eq!(store.write_many(twice, &Default::default()).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn group_commit_shares_syncs() {
    let disk = SimDisk::new();
    let store = open(&disk).unwrap();
    let before = disk.counters();
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let store = store.clone();
            scope.spawn(move || {
                for i in 0..50 {
                    store.tree().put(&format!("n/{thread}/{i}"), Payload::from(i)).unwrap();
                }
            });
        }
    });
    assert_eq!(store.tree().list("n/*/*").unwrap().len(), 800);
    let syncs = disk.counters().syncs - before.syncs;
    assert!(syncs <= 800, "{syncs} syncs");
    assert_eq!(store.seq().unwrap().0, syncs, "one sync for each entry");
}

#[test]
fn concurrent_appends_are_all_there() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    store.write("t", batch(&[]), &Default::default()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = store.clone();
            scope.spawn(move || {
                for i in 0..20 {
                    store.append("t", batch(&numbered(thread * 1000 + i, 1)), &Default::default()).unwrap();
                    if i % 5 == 0 {
                        store.checkpoint(&Default::default()).unwrap();
                        store.table("t").delete(&format!("id = {}", thread * 1000 + i), &Default::default()).unwrap();
                    }
                }
            });
        }
    });
    let mut ids: Vec<i64> = read(&store, "t", AsOf::Newest).unwrap().into_iter().map(|(id, _)| id).collect();
    ids.sort_unstable();
    let expected: Vec<i64> = (0..4).flat_map(|t| (0..20).filter(|i| i % 5 != 0).map(move |i| t * 1000 + i)).collect();
    assert_eq!(ids, expected);
}

#[test]
fn a_cancelled_write_leaves_nothing() {
    let disk = SimDisk::new();
    let store = open(&disk).unwrap();
    store.write("t", batch(&numbered(0, 1)), &Default::default()).unwrap();
    let options = WriteOptions::default();
    let cancel = options.task.cancel.clone();
    let parts = (0..20).map(|i| {
        if i == 10 {
            cancel.cancel();
        }
        Ok(batch(&numbered(i * 100_000, 100_000)))
    });
    let error = store.write("t", Frame::new(batch(&[]).schema(), parts), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(store.table("t").versions().unwrap().len(), 1);
    assert_eq!(disk.files().iter().filter(|(name, _)| name.starts_with("blocks/")).count(), 1);
}

#[test]
fn retention_reaches_tables_below() {
    let store = Store::open_with("memory://", Options::default()).unwrap();
    store.set_retention("p/**", Some(Retention::KeepLast(2))).unwrap();
    for n in 0..5 {
        store.write("p/x", batch(&numbered(0, n)), &Default::default()).unwrap();
    }
    let versions: Vec<u64> = store.table("p/x").versions().unwrap().iter().map(|v| v.version.0).collect();
    assert_eq!(versions, [3, 4]);
}
