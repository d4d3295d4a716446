//! What a program in Rust writes first: one import, rows in the forms that it has, keys and payloads as plain values, and patterns
//! as text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, FixedSizeBinaryArray, Int32Array, Int64Array, RecordBatch, RecordBatchIterator,
    RecordBatchReader, StringArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow::datatypes::Int64Type;
use drumlin::prelude::*;

/// The names of the standard library are its own: this compiles.
fn plain() -> Result<(), std::fmt::Error> {
    Ok(())
}

fn rows(ids: &[i64]) -> RecordBatch {
    RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(ids.to_vec())) as ArrayRef)]).unwrap()
}

#[test]
fn a_store_is_opened_at_any_path_or_in_memory() -> drumlin::Result<()> {
    plain().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("s");
    Store::open(&path)?.write("t", rows(&[1]), &WriteOptions::default())?;
    assert_eq!(Store::open(path.to_str().unwrap())?.tables("**")?, ["t"]);
    assert_eq!(Store::open(path.clone().into_os_string())?.tables("*")?, ["t"]);
    let options = Options { mode: Mode::Read, ..Options::default() };
    assert!(options.clone().open(Path::new(&path))?.write("t", rows(&[1]), &WriteOptions::default()).is_err());
    let missing = Store::open_with(folder.path().join("none"), options).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(Store::memory()?.tables("**")?.is_empty());
    Ok(())
}

#[test]
fn rows_are_written_as_they_are_at_hand() -> drumlin::Result<()> {
    let (store, how) = (Store::memory()?, WriteOptions::default());
    let batches = vec![rows(&[1, 2]), rows(&[3])];
    assert_eq!(store.write("t", batches.clone(), &how)?.rows, 3);
    assert_eq!(store.append("t", &batches[0], &how)?.rows, 5);
    assert_eq!(store.append("t", batches.as_slice(), &how)?.rows, 8);
    let reader: Box<dyn RecordBatchReader + Send> =
        Box::new(RecordBatchIterator::new(batches.clone().into_iter().map(Ok), batches[0].schema()));
    assert_eq!(store.append("t", reader, &how)?.rows, 11);
    let found: usize = store.read("t", &ReadOptions::default())?.map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(found, 11);
    let seq = store.seq()?;
    let none = store.append("t", Vec::new(), &how).unwrap_err();
    assert_eq!((none.kind(), store.seq()?), (ErrorKind::InvalidArgument, seq));
    assert!(none.message().contains("no batches"), "{none}");
    Ok(())
}

#[derive(serde::Serialize)]
struct Trade {
    sym: String,
    px: f64,
    qty: Option<i64>,
    tags: Vec<&'static str>,
    at: At,
}

#[derive(serde::Serialize)]
struct At {
    venue: &'static str,
    line: u8,
}

#[test]
fn rows_of_serde_become_columns() -> drumlin::Result<()> {
    let store = Store::memory()?;
    let trade = |n: i64| Trade {
        sym: format!("S{n}"),
        px: n as f64 / 4.0,
        qty: (n % 3 != 0).then_some(n),
        tags: vec!["x"; n as usize % 3],
        at: At { venue: "XNAS", line: 7 },
    };
    let trades: Vec<Trade> = (0..1000).map(trade).collect();
    store.write("t", Frame::from_rows(&trades)?, &WriteOptions::default())?;
    let wanted = ReadOptions { filter: Some("qty = 998 and at.venue = 'XNAS'".parse()?), ..ReadOptions::default() };
    let found = store.table("t").collect(&wanted)?;
    assert_eq!((found.len(), found[0].num_rows()), (1, 1));
    assert_eq!(found[0].column_by_name("sym").unwrap().as_string::<i32>().value(0), "S998");
    // A map is a row, too; rows that differ in a type, or are none, are refused.
    let map = |value: serde_json::Value| BTreeMap::from([("a", value)]);
    assert_eq!(store.write("m", Frame::from_rows(&[map(1.into()), map(2.into())])?, &Default::default())?.rows, 2);
    for refused in [
        Frame::from_rows(&[map(1.into()), map("x".into())]).err(),
        Frame::from_rows(&[1, 2]).err(),
        Frame::from_rows(&Vec::<Trade>::new()).err(),
    ] {
        let refused = refused.expect("they are no table");
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
    }
    Ok(())
}

#[test]
fn a_row_is_found_by_its_key() -> drumlin::Result<()> {
    let store = Store::memory()?;
    let keyed = |path: &str, columns: Vec<(&str, ArrayRef)>, key: &[&str]| -> drumlin::Result<Table> {
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        let key = key.iter().map(ToString::to_string).collect();
        let table = store.table(path);
        table.create(rows.schema(), TableOptions { key, ..TableOptions::default() })?;
        table.upsert(&rows, &WriteOptions::default())?;
        Ok(table)
    };
    let ints = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let texts = |values: Vec<&str>| Arc::new(StringArray::from(values)) as ArrayRef;
    let users = keyed("users", vec![("id", ints(vec![1, -2])), ("n", ints(vec![10, 20]))], &["id"])?;
    let n = |row: Option<RecordBatch>| row.map(|row| row.column(1).as_primitive::<Int64Type>().value(0));
    assert_eq!(n(users.get(1)?), Some(10));
    assert_eq!(n(users.get(-2_i64)?), Some(20));
    assert_eq!(n(users.get(1_u8)?), Some(10));
    assert_eq!(n(users.get(3)?), None);
    for refused in [users.get("1").err(), users.get(1.5).err(), users.get((1, 2)).err(), users.get(u64::MAX).err()] {
        let refused = refused.expect("it is no key");
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
        assert!(refused.message().contains("'users'"), "{refused}");
    }
    let pairs = keyed("pairs", vec![("region", texts(vec!["eu"])), ("id", ints(vec![7]))], &["region", "id"])?;
    assert!(pairs.get(("eu", 7))?.is_some());
    assert!(pairs.get((String::from("us"), 7_i32))?.is_none());
    let small: ArrayRef = Arc::new(Int32Array::from(vec![5]));
    let small = keyed("small", vec![("id", small), ("n", ints(vec![1]))], &["id"])?;
    assert!(small.get(5_i64)?.is_some());
    assert!(small.get(i64::MAX).is_err());
    let wide: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX]));
    assert!(keyed("wide", vec![("id", wide), ("n", ints(vec![1]))], &["id"])?.get(u64::MAX)?.is_some());
    let time: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![1_000_000]));
    assert!(keyed("time", vec![("ts", time), ("n", ints(vec![1]))], &["ts"])?.get(1_000_000)?.is_some());
    let unkeyed = store.write("plain", rows(&[1]), &WriteOptions::default())?;
    assert_eq!(unkeyed.rows, 1);
    assert_eq!(store.table("plain").get(1).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(store.table("none").get(1).unwrap_err().kind(), ErrorKind::NotFound);
    Ok(())
}

#[test]
fn uuids_are_keys() -> drumlin::Result<()> {
    let store = Store::memory()?;
    let id: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter([[7_u8; 16]].into_iter()).unwrap());
    let rows = RecordBatch::try_from_iter([("id", id)]).unwrap();
    let created = store.table("t").create(rows.schema(), TableOptions { key: vec!["id".into()], ..Default::default() });
    match created {
        Ok(_) => {
            store.table("t").upsert(&rows, &WriteOptions::default())?;
            assert!(store.table("t").get([7_u8; 16])?.is_some());
            assert!(store.table("t").get([8_u8; 16])?.is_none());
        }
        Err(error) => panic!("{error}"),
    }
    Ok(())
}

#[test]
fn payloads_versions_and_patterns_are_plain_values() -> drumlin::Result<()> {
    let store = Store::memory()?;
    let tree = store.tree();
    tree.put("a", "text")?;
    tree.put("b", 1)?;
    tree.put("c", true)?;
    tree.put("d", serde_json::json!({ "on": [1, 2] }))?;
    tree.put("e", String::from("x"))?;
    tree.put("f", b"\xff".as_slice())?;
    tree.update("a", serde_json::json!(null))?;
    assert_eq!(format!("{:?}", tree.get("d")?.unwrap()), r#"{"on":[1,2]}"#);
    let deep = (0..300).fold(serde_json::json!(1), |below, _| serde_json::json!([below]));
    assert_eq!(tree.put("deep", deep).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert!(!tree.exists("deep")?);

    for n in 0..3 {
        store.write("t", rows(&vec![1; n + 1]), &WriteOptions::default())?;
    }
    let count = |as_of: AsOf| -> drumlin::Result<usize> {
        let read = ReadOptions { as_of, ..ReadOptions::default() };
        Ok(store.table("t").collect(&read)?.iter().map(RecordBatch::num_rows).sum())
    };
    assert_eq!((count(0.into())?, count((-1).into())?, count("1".into())?, count((-3_i64).into())?), (1, 3, 2, 1));
    assert_eq!(count(Version(2).into())?, 3);

    for path in ["old/a", "old/b", "x", "y", "z1", "z2"] {
        store.write(path, rows(&[1]), &WriteOptions::default())?;
    }
    assert_eq!(store.drop("old/**")?.paths, ["old/a", "old/b"]);
    assert_eq!(store.drop(["x", "z*"])?.paths, ["x", "z1", "z2"]);
    assert_eq!(store.drop(vec![String::from("y")])?.paths, ["y"]);
    assert_eq!(store.drop(Pattern::new("none")?).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(store.drop_with(["none"], drumlin::Missing::Ignore)?.missing, ["none"]);
    Ok(())
}
