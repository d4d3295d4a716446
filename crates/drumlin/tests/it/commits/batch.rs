//! Calls on many tables: one commit and, if requested, one result per table.

use std::collections::BTreeMap;

use drumlin::base::{Cancel, Error, Result, Task, Version};
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, Frame, Missing, ReadOptions, TableOptions, VersionInfo, WriteOptions};
use drumlin::{ErrorKind, Store, Tables};

use crate::processes::shared_support;
use crate::support::{Row, batch, numbered, open, read, rows};

fn frame(rows: &[Row]) -> Frame<'static> {
    batch(rows).into()
}

/// A frame that fails after some rows have been pulled.
fn breaking(rows: usize) -> Frame<'static> {
    let schema = batch(&[]).schema();
    let mut good = (0..rows as i64).map(|n| Ok(batch(&numbered(n * 100, 100))));
    let draws = std::iter::from_fn(move || Some(good.next().unwrap_or_else(|| Err(Error::invalid("it broke")))));
    Frame::new(schema, draws)
}

fn keyed(store: &Store, path: &str) {
    let options = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table(path).create(batch(&[]).schema(), options).unwrap();
}

fn kinds(answers: &[Result<VersionInfo>]) -> Vec<Option<ErrorKind>> {
    answers.iter().map(|answer| answer.as_ref().err().map(Error::kind)).collect()
}

/// Every object is known to the store, and undamaged.
fn sound(store: &Store) {
    let report = store.verify(&Default::default()).unwrap();
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    assert_eq!(store.reclaim(&Default::default()).unwrap().orphans, 0);
}

#[test]
fn tables_that_cannot_be_written_do_not_keep_the_others_from_it() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    keyed(&store, "key");
    store.table("key").upsert(batch(&numbered(0, 5)), &Default::default()).unwrap();
    store
        .write("sorted", batch(&numbered(0, 5)), &WriteOptions { sort: Some(vec!["id".into()]), ..Default::default() })
        .unwrap();
    let before = store.seq().unwrap();
    let frames = || -> Vec<(String, Frame<'static>)> {
        vec![
            ("a".into(), frame(&numbered(0, 10))),
            ("".into(), frame(&numbered(0, 10))),
            // Large enough that some of its row groups are on storage when it breaks.
            ("broken".into(), breaking(5000)),
            ("b".into(), frame(&numbered(0, 20))),
            ("key".into(), frame(&[(7, None), (7, None)])),
            ("c".into(), frame(&numbered(0, 30))),
        ]
    };
    let all = store.write_many(frames(), &Default::default()).unwrap_err();
    assert_eq!(all.kind(), ErrorKind::InvalidArgument);
    assert_eq!((store.seq().unwrap(), store.tree().list("**").unwrap().len()), (before, 2));
    let answers = store.write_each(frames(), &Default::default()).unwrap();
    let (bad, twice) = (Some(ErrorKind::InvalidArgument), Some(ErrorKind::AlreadyExists));
    assert_eq!(kinds(&answers), [None, bad, bad, None, twice, None]);
    assert_eq!(answers[2].as_ref().unwrap_err().message(), "it broke");
    let seqs: Vec<_> = answers.iter().flatten().map(|info| info.seq).collect();
    assert!(seqs.iter().all(|seq| *seq == seqs[0]), "one commit");
    assert_eq!(answers.iter().flatten().map(|info| info.rows).collect::<Vec<_>>(), [10, 20, 30]);
    for (path, rows) in [("a", 10), ("b", 20), ("c", 30), ("key", 5), ("sorted", 5)] {
        assert_eq!(read(&store, path, AsOf::Newest).unwrap(), numbered(0, rows), "{path}");
    }
    assert_eq!(store.table("broken").versions().unwrap_err().kind(), ErrorKind::NotFound);
    sound(&store);
    let sort = WriteOptions { sort: Some(vec!["name".into()]), ..Default::default() };
    let answers = store.write_each(vec![("sorted".into(), frame(&[])), ("new".into(), frame(&[]))], &sort).unwrap();
    assert_eq!(kinds(&answers), [bad, None]);
    // If no table can be written, nothing is committed.
    let before = store.seq().unwrap();
    let answers = store.write_each(vec![("x".into(), breaking(2000)), ("".into(), frame(&[]))], &Default::default());
    assert_eq!(kinds(&answers.unwrap()), [bad, bad]);
    assert_eq!(store.seq().unwrap(), before);
    assert!(store.write_each(Vec::new(), &Default::default()).unwrap().is_empty());
    sound(&store);
    drop(store);
    sound(&open(&disk).unwrap());
}

#[test]
fn what_fails_the_whole_call_writes_nothing() {
    let store = open(&SimDisk::in_memory()).unwrap();
    let pair = |a: &str, b: &str| vec![(a.to_owned(), frame(&numbered(0, 3))), (b.to_owned(), frame(&numbered(0, 3)))];
    assert_eq!(store.write_each(pair("a", "a"), &Default::default()).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let cancel = Cancel::default();
    cancel.cancel();
    let options = WriteOptions { task: Task { cancel, progress: None }, ..Default::default() };
    assert_eq!(store.write_each(pair("a", "b"), &options).unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(store.tree().list("**").unwrap().is_empty());
}

#[test]
fn tables_that_cannot_be_appended_to_are_told_of() {
    let store = open(&SimDisk::in_memory()).unwrap();
    keyed(&store, "key");
    store.table("key").upsert(batch(&numbered(0, 5)), &Default::default()).unwrap();
    store.write("a", batch(&numbered(0, 5)), &Default::default()).unwrap();
    let other = batch(&numbered(0, 5)).project(&[0]).unwrap();
    let frames = || -> Vec<(String, Frame<'static>)> {
        vec![
            ("none".into(), frame(&numbered(0, 5))),
            ("a".into(), frame(&numbered(5, 5))),
            ("key".into(), frame(&numbered(4, 5))),
        ]
    };
    let answers = store.append_each(frames(), &Default::default()).unwrap();
    assert_eq!(kinds(&answers), [Some(ErrorKind::NotFound), None, Some(ErrorKind::AlreadyExists)]);
    let narrow = vec![("a".to_owned(), other.into()), ("key".to_owned(), frame(&numbered(5, 5)))];
    let answers = store.append_each(narrow, &Default::default()).unwrap();
    assert_eq!(kinds(&answers), [Some(ErrorKind::SchemaMismatch), None]);
    assert_eq!(read(&store, "a", AsOf::Newest).unwrap(), numbered(0, 10));
    assert_eq!(read(&store, "key", AsOf::Newest).unwrap(), numbered(0, 10));
    sound(&store);
}

#[test]
fn only_tables_that_another_process_touched_are_reported() {
    let (bucket, clock) = (drumlin::storage::SimBucket::new(), shared_support::clock());
    let store = shared_support::open(&bucket, &clock).unwrap();
    let other = shared_support::open(&bucket.client(), &clock).unwrap();
    for path in ["a", "b", "c"] {
        store.write(path, batch(&numbered(0, 5)), &Default::default()).unwrap();
    }
    // While the rows of the call are pulled, the other process does something to two of its tables.
    let meddle = move |rows: Vec<Row>, what: Box<dyn Fn(&Store)>| {
        let (mut other, mut rows) = (Some(other.clone()), Some(rows));
        Frame::new(
            batch(&[]).schema(),
            std::iter::from_fn(move || {
                other.take().iter().for_each(&what);
                rows.take().map(|rows| Ok(batch(&rows)))
            }),
        )
    };
    let drops = |store: &Store| {
        store.drop("b").unwrap();
        store.append("c", batch(&numbered(5, 1)), &Default::default()).unwrap();
    };
    let frames = || {
        vec![
            ("a".to_owned(), meddle(numbered(5, 5), Box::new(drops))),
            ("b".to_owned(), frame(&numbered(5, 5))),
            ("c".to_owned(), frame(&numbered(6, 5))),
        ]
    };
    let answers = store.append_each(frames(), &Default::default()).unwrap();
    assert_eq!(kinds(&answers), [None, Some(ErrorKind::Conflict), None]);
    assert_eq!(read(&store, "a", AsOf::Newest).unwrap(), numbered(0, 10));
    assert_eq!(read(&store, "c", AsOf::Newest).unwrap(), numbered(0, 11));
    store.undrop("b", None).unwrap();
    assert_eq!(read(&store, "b", AsOf::Newest).unwrap(), numbered(0, 5));
    // All or nothing: there is one conflict.
    assert_eq!(store.append_many(frames(), &Default::default()).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(read(&store, "a", AsOf::Newest).unwrap(), numbered(0, 10));
    shared_support::settled(&store, &bucket).unwrap();
}

#[test]
fn tables_that_cannot_be_read_are_told_of() {
    let store = open(&SimDisk::in_memory()).unwrap();
    store.write("a", batch(&numbered(0, 5)), &Default::default()).unwrap();
    store.write("b", batch(&numbered(0, 7)).project(&[0]).unwrap(), &Default::default()).unwrap();
    let paths: Vec<String> = ["a", "none", "b", ""].map(str::to_owned).to_vec();
    let options = ReadOptions { columns: Some(vec!["id".into(), "name".into()]), ..ReadOptions::default() };
    let answers = store.read_each(&paths, &options).unwrap();
    let kinds: Vec<_> = answers.iter().map(|answer| answer.as_ref().err().map(Error::kind)).collect();
    let (absent, bad) = (Some(ErrorKind::NotFound), Some(ErrorKind::InvalidArgument));
    assert_eq!(kinds, [None, absent, bad, bad]);
    let first = answers.into_iter().next().unwrap().unwrap();
    assert_eq!(rows(&first.collect().unwrap()), numbered(0, 5));
    assert!(store.read_many(&paths, &options).is_err());
}

#[test]
fn versions_that_are_not_there_can_be_passed_over() {
    let store = open(&SimDisk::in_memory()).unwrap();
    for n in 0..4 {
        store.write("a", batch(&numbered(n, 500)), &Default::default()).unwrap();
        store.write("b", batch(&numbered(n, 500)), &Default::default()).unwrap();
    }
    store.snapshot("held", "b").unwrap();
    let asked = |numbers: &[(&str, &[u64])]| -> Vec<(String, Vec<Version>)> {
        numbers.iter().map(|(path, of)| ((*path).to_owned(), of.iter().map(|v| Version(*v)).collect())).collect()
    };
    let all = asked(&[("a", &[0, 2, 9]), ("none", &[1, 0]), ("b", &[7])]);
    let before = store.seq().unwrap();
    let refused = store.delete_versions(&all, Missing::Refuse).unwrap_err();
    assert!(refused.message().contains("'a' version 9, 'none', 'b' version 7; nothing"), "{refused}");
    let every = asked(&[("a", &[0, 1, 2, 3, 9])]);
    assert_eq!(store.delete_versions(&every, Missing::Ignore).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(store.seq().unwrap(), before);
    let holds = |store: &Store| store.stat().unwrap().condemned_bytes;
    let report = store.delete_versions(&all, Missing::Ignore).unwrap();
    assert_eq!(report.versions, asked(&[("a", &[0, 2])]));
    assert_eq!(report.missing, asked(&[("a", &[9]), ("none", &[0, 1]), ("b", &[7])]));
    assert!(report.bytes > 0 && report.bytes <= holds(&store), "{report:?}, {} condemned", holds(&store));
    let last = store.delete_versions(&asked(&[("b", &[0, 3])]), Missing::Refuse).unwrap();
    assert!(last.missing.is_empty() && last.bytes > 0, "{last:?}");
    let kept: BTreeMap<&str, Vec<u64>> = ["a", "b"]
        .map(|path| (path, store.table(path).versions().unwrap().iter().map(|info| info.version.0).collect()))
        .into();
    assert_eq!(kept, BTreeMap::from([("a", vec![1, 3]), ("b", vec![1, 2])]));
    assert_eq!(read(&store, "b", AsOf::Snapshot("held".into())).unwrap(), numbered(3, 500));
    let dropped = store.drop_with(["a", "x/*", "y"], Missing::Ignore).unwrap();
    assert_eq!((dropped.paths, dropped.missing), (vec!["a".to_owned()], vec!["x/*".to_owned(), "y".to_owned()]));
    sound(&store);
}
