//! What golden stores hold that have the feature of defaults that are made: see golden.rs.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, TimeUnit};
use drumlin::store::{AsOf, Mode, Options, TableOptions, WriteOptions};
use drumlin::{Alter, Constraints, Generator, Store, Tables};

use crate::support::ints;

/// A table whose key is a sequence, with a time and a UUID that are made.
fn create(store: &impl Tables, path: &str) -> drumlin::Result<()> {
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("v", DataType::Int64, true),
        Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
        Field::new("uid", DataType::FixedSizeBinary(16), true),
    ]);
    let table = store.table(path);
    table.create(Arc::new(schema), TableOptions { key: vec!["id".into()], ..TableOptions::default() })?;
    let generators = [("id", Generator::sequence("id", 1)), ("at", Generator::Now), ("uid", Generator::Uuid)];
    let generators = generators.map(|(name, made)| (name.to_owned(), made)).to_vec();
    table.alter(&Alter::AddConstraints(Constraints { generators, ..Constraints::default() }), &Default::default())?;
    Ok(())
}

fn insert(table: &drumlin::Table, rows: usize) -> drumlin::Result<Vec<i64>> {
    let options = WriteOptions { returning: Some(vec!["id".into()]), ..WriteOptions::default() };
    let rows = table.insert(ints(&[("v", vec![0; rows])]), &options)?.returned.expect("asked for");
    Ok(rows["id"].as_primitive::<Int64Type>().values().to_vec())
}

/// The checkpoint that follows puts them into the catalog.
pub fn build(store: &Store) -> drumlin::Result<()> {
    for path in ["made/t", "made/log"] {
        create(store, path)?;
        insert(&store.table(path), 3)?;
    }
    Ok(())
}

/// The same in the log.
pub fn build_in_log(store: &Store) -> drumlin::Result<()> {
    insert(&store.table("made/log"), 70)?;
    store.transact(|tx| {
        create(tx, "made/own")?;
        insert(&tx.table("made/own"), 5).map(drop)
    })
}

/// `uri` is the store, which is copied to be written to.
pub fn check(uri: &Path, store: &Store) {
    for path in ["made/t", "made/log", "made/own"] {
        let made = store.table(path).constraints(&AsOf::Newest).unwrap().generators;
        let made: Vec<String> = made.iter().map(|(name, made)| format!("{name}={made}")).collect();
        assert_eq!(made, ["id=sequence()", "at=now()", "uid=uuid()"]);
        let rows = store.table(path).collect(&Default::default()).unwrap();
        assert!(rows.iter().all(|rows| ["id", "at", "uid"].iter().all(|name| rows[*name].null_count() == 0)));
    }
    let copy = tempfile::tempdir().unwrap();
    for entry in walk(uri) {
        let to = copy.path().join(entry.strip_prefix(uri).unwrap());
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(&entry, to).unwrap();
    }
    let shared = uri.to_str().unwrap().ends_with("-shared");
    let options = Options { mode: Mode::Write, shared, ..Options::default() };
    let store = Store::open_with(copy.path().to_str().unwrap(), options).unwrap();
    // What the process that wrote them had taken is lost.
    for (path, next) in [("made/t", 65), ("made/log", 135), ("made/own", 6)] {
        assert_eq!(insert(&store.table(path), 1).unwrap(), [next], "{path}");
    }
    store.close().unwrap();
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
