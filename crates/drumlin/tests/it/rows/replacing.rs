//! Rows that take the places of those that match: what stays, where the new ones are, what is refused. Random ones are part of the
//! model (wide_op.rs).

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, ReadOptions, TableOptions, WriteOptions};
use drumlin::table::SchemaMode;
use drumlin::{ErrorKind, Store, Tables, VersionKind};

use crate::support::{Checked, batch, numbered, open, read};

fn keyed() -> Store {
    let store = open(&SimDisk::in_memory()).unwrap();
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table("k").create(batch(&[]).schema(), key).unwrap();
    // Row groups, and rows in memory on top of them.
    store.table("k").upsert(batch(&numbered(0, 10)), &Default::default()).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    store.table("k").upsert(batch(&numbered(8, 4)), &Default::default()).unwrap();
    store
}

pub fn keys_of_rows_that_stay_are_refused() -> Checked {
    let store = keyed();
    let before = read(&store, "k", AsOf::Newest).unwrap();
    // 3 is in a row group, 11 in memory; 4 and 10 would go.
    let rows = |ids: &[i64]| batch(&ids.iter().map(|id| (*id, Some("new".to_owned()))).collect::<Vec<_>>());
    for (ids, named) in [(&[4, 3][..], "3"), (&[10, 11][..], "11")] {
        match store.table("k").replace_where(rows(ids), "id % 2 = 0", &Default::default()) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists && e.to_string().contains(named) => {}
            other => return Err(format!("{ids:?}: {other:?}")),
        }
    }
    assert_eq!(read(&store, "k", AsOf::Newest).unwrap(), before, "nothing was written");
    store
        .table("k")
        .replace_where(rows(&[4, 10, 100]), "id % 2 = 0", &Default::default())
        .map_err(|e| e.to_string())?;
    let mut expected: Vec<_> = before.into_iter().filter(|(id, _)| id % 2 > 0).collect();
    expected.extend([4, 10, 100].map(|id| (id, Some("new".to_owned()))));
    expected.sort();
    for _ in 0..2 {
        assert_eq!(read(&store, "k", AsOf::Newest).unwrap(), expected);
        store.checkpoint(&Default::default()).unwrap();
    }
    Ok(())
}

#[test]
fn rules_hold() {
    keys_of_rows_that_stay_are_refused().unwrap();
}

#[test]
fn what_matches_goes_and_the_new_rows_come_in_one_version() {
    let store = open(&SimDisk::in_memory()).unwrap();
    for sort in [vec![], vec!["id".to_owned()]] {
        let path = format!("t{}", sort.len());
        let options = WriteOptions { sort: Some(sort.clone()), ..WriteOptions::default() };
        store.write(&path, batch(&numbered(0, 10)), &options).unwrap();
        let new = vec![(3, Some("three".to_owned())), (100, None)];
        let info = store.table(&path).replace_where(batch(&new), "id < 5", &Default::default()).unwrap().unwrap();
        assert_eq!((info.version.0, info.kind, info.rows), (1, VersionKind::Replace, 7));
        let mut expected = numbered(5, 5);
        expected.extend(new);
        if !sort.is_empty() {
            expected.sort_by_key(|(id, _)| *id);
        }
        assert_eq!(read(&store, &path, AsOf::Newest).unwrap(), expected);
        // None that match, and none that come.
        let info = store.table(&path).replace_where(batch(&[]), "id > 1000", &Default::default()).unwrap().unwrap();
        assert_eq!((info.version.0, info.rows), (2, 7));
        // In a transaction, after a change of it.
        store
            .transact(|tx| {
                tx.append(&path, batch(&numbered(200, 2)), &Default::default())?;
                tx.table(&path).replace_where(batch(&numbered(300, 1)), "id >= 100", &Default::default())
            })
            .unwrap();
        let ids: Vec<i64> = read(&store, &path, AsOf::Newest).unwrap().into_iter().map(|(id, _)| id).collect();
        let mut expected = vec![5, 6, 7, 8, 9, 3, 300];
        if !sort.is_empty() {
            expected.sort_unstable();
        }
        assert_eq!(ids, expected);
    }
}

#[test]
fn columns_may_come_along() {
    let store = open(&SimDisk::in_memory()).unwrap();
    let ints = |columns: &[(&str, Vec<i64>)]| {
        let column = |values: &Vec<i64>| Arc::new(Int64Array::from(values.clone())) as ArrayRef;
        RecordBatch::try_from_iter_with_nullable(columns.iter().map(|(name, values)| (*name, column(values), true)))
            .unwrap()
    };
    store.write("t", ints(&[("a", vec![1, 2, 3])]), &Default::default()).unwrap();
    let new = || ints(&[("a", vec![7]), ("b", vec![8])]);
    let e = store.table("t").replace_where(new(), "a > 1", &Default::default()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::SchemaMismatch);
    let evolve = WriteOptions { schema: SchemaMode::Evolve, ..WriteOptions::default() };
    store.table("t").replace_where(new(), "a > 1", &evolve).unwrap();
    let rows = store.table("t").collect(&ReadOptions::default()).unwrap();
    let text = arrow::util::pretty::pretty_format_batches(&rows).unwrap().to_string();
    assert_eq!(text.lines().skip(3).take(2).collect::<Vec<_>>(), ["| 1 |   |", "| 7 | 8 |"]);
    // The filter is one of the table's columns, not of the frame's.
    let e = store.table("t").replace_where(new(), "c > 1", &Default::default()).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("no column c"), "{e}");
    let e = store.replace("t", new(), &Default::default()).unwrap_err();
    assert!(e.to_string().contains("or give a filter"), "{e}");
}
