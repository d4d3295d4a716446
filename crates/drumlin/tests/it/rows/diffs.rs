//! Differences of versions: applied to the first version they make the last, and only what differs is read.

use std::collections::BTreeMap;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::UInt64Type;
use drumlin::base::Version;
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, DiffOptions, TableOptions};
use drumlin::{ErrorKind, Store, Tables};

use crate::support::{Row, batch, numbered, open, read, rows};

/// A row of a difference: what happened, the row, the version.
type Changed = (String, Row, u64);

fn changed(batches: &[RecordBatch]) -> Vec<Changed> {
    let mut found = Vec::new();
    for batch in batches {
        let (changes, versions) = (batch.column(2).as_string::<i32>(), batch.column(3).as_primitive::<UInt64Type>());
        for (at, row) in rows(std::slice::from_ref(batch)).into_iter().enumerate() {
            found.push((changes.value(at).to_owned(), row, versions.value(at)));
        }
    }
    found
}

fn diff(store: &Store, path: &str, since: &AsOf, until: &AsOf, each: bool) -> drumlin::Result<Vec<Changed>> {
    let options = DiffOptions { each_version: each, ..DiffOptions::default() };
    Ok(changed(&store.table(path).diff(since, until, &options)?.collect::<drumlin::Result<Vec<_>>>()?))
}

/// Checks that the difference of two versions makes the one out of the other.
pub fn check(store: &Store, path: &str, since: &AsOf, until: &AsOf, each: bool) -> Result<(), String> {
    let text = |e: drumlin::Error| format!("the difference of {path} from {since:?} to {until:?}: {e}");
    let changes = diff(store, path, since, until, each).map_err(text)?;
    let mut counts: BTreeMap<Row, i64> = BTreeMap::new();
    for row in read(store, path, since.clone()).map_err(text)? {
        *counts.entry(row).or_insert(0) += 1;
    }
    for (change, row, _) in changes {
        let count = counts.entry(row.clone()).or_insert(0);
        match change.as_str() {
            "insert" | "update_after" => *count += 1,
            _ if *count > 0 => *count -= 1,
            _ => return Err(format!("{path} from {since:?} to {until:?}: {change} of {row:?}, which is not there")),
        }
    }
    for row in read(store, path, until.clone()).map_err(text)? {
        *counts.entry(row).or_insert(0) -= 1;
    }
    match counts.iter().find(|(_, count)| **count != 0) {
        None => Ok(()),
        Some((row, count)) => Err(format!("{path} from {since:?} to {until:?}: {row:?} is off by {count}")),
    }
}

fn at(version: u64) -> AsOf {
    AsOf::Version(Version(version))
}

fn row(id: i64, name: &str) -> Row {
    (id, Some(name.to_owned()))
}

/// A difference of two versions tells only of the rows that differ, whatever records they are in.
pub fn only_what_differs() -> Result<(), String> {
    let store = open(&SimDisk::in_memory()).unwrap();
    store.write("t", batch(&numbered(0, 30)), &Default::default()).unwrap();
    store.table("t").delete("id = 7", &Default::default()).unwrap();
    store.append("t", batch(&[row(100, "new")]), &Default::default()).unwrap();
    let gone = ("delete".to_owned(), numbered(7, 1).remove(0), 2);
    let new = ("insert".to_owned(), row(100, "new"), 2);
    let expected = vec![gone.clone(), new.clone()];
    let found = diff(&store, "t", &at(0), &AsOf::Newest, false).unwrap();
    if found != expected {
        return Err(format!("{found:?}, expected {expected:?}"));
    }
    let each = diff(&store, "t", &at(0), &AsOf::Newest, true).unwrap();
    assert_eq!(each, [(gone.0, gone.1, 1), new]);
    // A restored version has records of its own.
    store.restore("t", &at(0)).unwrap();
    assert_eq!(diff(&store, "t", &at(0), &AsOf::Newest, false).unwrap(), []);
    store.checkpoint(&Default::default()).unwrap();
    assert_eq!(diff(&store, "t", &at(0), &at(2), false).unwrap(), expected);
    Ok(())
}

#[test]
fn a_difference_tells_only_what_differs() {
    only_what_differs().unwrap();
}

#[test]
fn rows_of_one_key_are_compared() {
    let store = open(&SimDisk::in_memory()).unwrap();
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table("k").create(batch(&[]).schema(), key).unwrap();
    store.table("k").upsert(batch(&numbered(0, 10)), &Default::default()).unwrap();
    store.snapshot("s", "k").unwrap();
    store
        .table("k")
        .upsert(batch(&[row(3, "x"), numbered(4, 1).remove(0), row(20, "y")]), &Default::default())
        .unwrap();
    store.table("k").delete_keys(batch(&[(6, None)]).project(&[0]).unwrap(), &Default::default()).unwrap();
    let found = diff(&store, "k", &AsOf::Snapshot("s".into()), &AsOf::Newest, false).unwrap();
    let told: Vec<(&str, &Row)> = found.iter().map(|(change, row, _)| (change.as_str(), row)).collect();
    let (three, six) = (numbered(3, 1).remove(0), numbered(6, 1).remove(0));
    let expected =
        [("update_before", &three), ("update_after", &row(3, "x")), ("delete", &six), ("insert", &row(20, "y"))];
    assert_eq!(told, expected, "the row of key 4 was written again as it was");
    // Of some columns only.
    let options = DiffOptions { columns: Some(vec!["name".into()]), ..DiffOptions::default() };
    let some = store.table("k").diff(&AsOf::Snapshot("s".into()), &AsOf::Newest, &options).unwrap();
    assert_eq!(some.schema().fields().len(), 3);
    assert_eq!(some.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 4);
}

/// Many rows of one key on both sides, most of them alike.
#[test]
fn long_stretches_without_a_difference() {
    let store = open(&SimDisk::in_memory()).unwrap();
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table("k").create(batch(&[]).schema(), key).unwrap();
    let mut all = numbered(0, 300_000);
    store.write("k", batch(&all), &Default::default()).unwrap();
    all[299_999].1 = Some("last".into());
    all[5].1 = Some("first".into());
    store.write("k", batch(&all), &Default::default()).unwrap();
    let found = diff(&store, "k", &at(1), &AsOf::Newest, false).unwrap();
    assert_eq!(found.iter().map(|(_, (id, _), _)| *id).collect::<Vec<_>>(), [5, 5, 299_999, 299_999]);
    check(&store, "k", &at(0), &AsOf::Newest, true).unwrap();
}

/// Rows that were written again as they were are left out, also where new rows are too many to be kept and are read twice.
#[test]
fn many_rows_that_come_again_are_no_difference() {
    let store = open(&SimDisk::in_memory()).unwrap();
    let text = "x".repeat(1 << 20);
    let large = |ids: std::ops::Range<i64>| -> Vec<Row> { ids.map(|id| (id, Some(text.clone()))).collect() };
    store.write("t", batch(&large(0..70)), &Default::default()).unwrap();
    store.table("t").delete("true", &Default::default()).unwrap();
    store.append("t", batch(&large(1..71)), &Default::default()).unwrap();
    let found = diff(&store, "t", &at(0), &AsOf::Newest, false).unwrap();
    let told: Vec<(&str, i64)> = found.iter().map(|(change, (id, _), _)| (change.as_str(), *id)).collect();
    assert_eq!(told, [("delete", 0), ("insert", 70)]);
}

#[test]
fn one_row_group_of_fifty_is_read() {
    only_what_differs_is_read().unwrap();
}

/// Row groups of which both versions show the same are not read.
pub fn only_what_differs_is_read() -> Result<(), String> {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    store.write("t", batch(&numbered(0, 500)), &Default::default()).unwrap();
    for part in 1..50 {
        store.append("t", batch(&numbered(part * 500, 500)), &Default::default()).unwrap();
    }
    store.table("t").delete("id = 12345", &Default::default()).unwrap();
    let store = {
        store.close().unwrap();
        open(&disk).unwrap()
    };
    let before = disk.counters().reads;
    assert_eq!(diff(&store, "t", &at(49), &AsOf::Newest, false).unwrap().len(), 1);
    let reads = disk.counters().reads - before;
    if (1..=4).contains(&reads) { Ok(()) } else { Err(format!("{reads} reads")) }
}

#[test]
fn schemas_that_differ_are_compared_in_both_columns_or_refused() {
    let store = open(&SimDisk::in_memory()).unwrap();
    store.write("t", batch(&numbered(0, 3)), &Default::default()).unwrap();
    store.write("t", batch(&numbered(0, 3)).project(&[0]).unwrap(), &Default::default()).unwrap();
    let diff = store.table("t").diff(&at(0), &at(1), &Default::default()).unwrap();
    assert_eq!(diff.schema().fields().len(), 4);
    // The row whose name is null looks the same in both.
    assert_eq!(diff.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 4);
    let texts = batch(&numbered(0, 3)).project(&[1]).unwrap();
    let other = RecordBatch::try_from_iter([("id", texts.column(0).clone())]).unwrap();
    store.write("t", other, &Default::default()).unwrap();
    let refused = store.table("t").diff(&at(1), &at(2), &Default::default()).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::SchemaMismatch);
    assert!(refused.to_string().contains("'id' is int64 in version 1"), "{refused}");
    for (since, until, each, kind) in
        [(at(9), AsOf::Newest, false, ErrorKind::NotFound), (at(1), at(0), true, ErrorKind::InvalidArgument)]
    {
        let options = DiffOptions { each_version: each, ..DiffOptions::default() };
        assert_eq!(store.table("t").diff(&since, &until, &options).err().unwrap().kind(), kind);
    }
    let options = DiffOptions { columns: Some(vec!["none".into()]), ..DiffOptions::default() };
    assert!(store.table("t").diff(&at(0), &at(1), &options).is_err());
}

#[test]
fn a_difference_that_is_refused_numbers_no_version() {
    let store = open(&SimDisk::in_memory()).unwrap();
    let rows = batch(&numbered(0, 3));
    let options = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table("t").create(rows.schema(), options).unwrap();
    store.table("t").upsert(rows, &Default::default()).unwrap();
    let seq = store.seq().unwrap();
    for columns in [&["name", "name"][..], &["none"], &[]] {
        let columns = Some(columns.iter().map(|name| (*name).to_owned()).collect());
        let options = DiffOptions { columns, ..DiffOptions::default() };
        store.table("t").diff(&at(0), &AsOf::Newest, &options).err().unwrap();
        assert_eq!(store.seq().unwrap(), seq);
    }
    // One that is not refused does.
    store.table("t").diff(&at(0), &AsOf::Newest, &Default::default()).unwrap();
    assert!(store.seq().unwrap() > seq);
}
