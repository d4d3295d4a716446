//! Rows changed in place: what stays, what it costs, what is refused. Random updates are part of the model (evolve_model.rs).

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int8Array, Int64Array, RecordBatch,
    StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use arrow::util::display::array_value_to_string;
use drumlin::base::Version;
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, ReadOptions, TableOptions, UpdateOptions, WriteOptions};
use drumlin::{ErrorKind, Expression, Store, Tables, VersionKind};

use crate::support::{Checked, ints, open, same};

fn store() -> (SimDisk, Store) {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    (disk, store)
}

fn set(pairs: &[(&str, &str)]) -> Vec<(String, Expression)> {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), Expression::parse(text).unwrap())).collect()
}

fn column(store: &Store, path: &str, as_of: AsOf, name: &str) -> Vec<i64> {
    let batches = store.table(path).collect(&ReadOptions { as_of, ..ReadOptions::default() }).unwrap();
    batches.iter().flat_map(|batch| batch[name].as_primitive::<Int64Type>().values().to_vec()).collect()
}

pub fn deleted_rows_stay_deleted() -> Checked {
    let (_disk, store) = store();
    store.write("t", ints(&[("a", (0..10).collect()), ("b", vec![0; 10])]), &Default::default()).unwrap();
    store.table("t").delete("a % 3 = 0", &Default::default()).unwrap();
    let report = store.table("t").update(&set(&[("b", "a + 1")]), Some("a > 4"), &Default::default()).unwrap();
    same(&report.rows, &3, "rows updated")?;
    same(&column(&store, "t", AsOf::Newest, "a"), &vec![1, 2, 4, 5, 7, 8], "rows in their places")?;
    same(&column(&store, "t", AsOf::Newest, "b"), &vec![0, 0, 0, 6, 8, 9], "what is set")?;
    same(&column(&store, "t", AsOf::Version(Version(1)), "b"), &vec![0; 6], "the version before")?;
    // Rows beside them were written again, but did not change.
    let diff = store.table("t").diff(&AsOf::Version(Version(1)), &AsOf::Newest, &Default::default()).unwrap();
    let told = diff.map(|batch| batch.unwrap()).flat_map(|batch| {
        let values = batch["a"].as_primitive::<Int64Type>().values().to_vec();
        let changes = batch["_change"].as_string::<i32>().iter().map(|change| change.unwrap().to_owned());
        values.into_iter().zip(changes.collect::<Vec<_>>())
    });
    let expected = ["delete", "insert"].into_iter().flat_map(|change| [5, 7, 8].map(|a| (a, change.to_owned())));
    same(&told.collect(), &expected.collect::<Vec<_>>(), "the difference")?;
    store.checkpoint(&Default::default()).unwrap();
    same(&column(&store, "t", AsOf::Newest, "b"), &vec![0, 0, 0, 6, 8, 9], "after a checkpoint")?;
    let faults = store.verify(&Default::default()).map_err(|e| e.to_string())?.faults;
    same(&faults, &Vec::new(), "faults")
}

#[test]
fn rules_hold() {
    deleted_rows_stay_deleted().unwrap();
}

#[test]
fn only_touched_row_groups_are_written() {
    let (disk, store) = store();
    store.write("t", ints(&[("a", vec![0]), ("b", vec![0])]), &Default::default()).unwrap();
    store
        .transact(|tx| {
            (1..50).try_for_each(|n| {
                tx.append("t", ints(&[("a", vec![n; 100]), ("b", vec![-n; 100])]), &Default::default())
            })
        })
        .unwrap();
    let blocks = |disk: &SimDisk| disk.files().into_iter().filter(|(name, _)| name.starts_with("blocks/")).count();
    let before = blocks(&disk);
    store.table("t").update(&set(&[("b", "7")]), Some("a = 20"), &Default::default()).unwrap();
    assert_eq!(blocks(&disk) - before, 1);
    assert_eq!(store.table("t").stat().unwrap().row_groups, 51, "one more, for the versions before");
    let expected: Vec<i64> =
        std::iter::once(0).chain((1..50).flat_map(|n| vec![if n == 20 { 7 } else { -n }; 100])).collect();
    assert_eq!(column(&store, "t", AsOf::Newest, "b"), expected);
    let kinds: Vec<VersionKind> = store.table("t").versions().unwrap().iter().map(|version| version.kind).collect();
    assert_eq!(kinds.last(), Some(&VersionKind::Update));
    // Nothing matches: no version, no block.
    let none = store.table("t").update(&set(&[("b", "7")]), Some("a = 900"), &Default::default()).unwrap();
    assert_eq!((none.rows, none.version.unwrap().version.0), (0, kinds.len() as u64 - 1));
    assert_eq!(blocks(&disk) - before, 1);
}

#[test]
fn few_rows_of_a_table_with_a_key_are_written_alone() {
    let (disk, store) = store();
    let n = 50_000_i64;
    let rows = ints(&[("k", (0..n).collect()), ("v", (0..n).map(|k| k * 7919 % 100_003).collect())]);
    let key = TableOptions { key: vec!["k".into()], ..TableOptions::default() };
    store.table("keyed").create(rows.schema(), key).unwrap();
    store.append("keyed", rows.clone(), &Default::default()).unwrap();
    let sort = WriteOptions { sort: Some(vec!["k".into()]), ..WriteOptions::default() };
    store.write("sorted", rows, &sort).unwrap();
    for path in ["keyed", "sorted"] {
        let before = disk.counters();
        let report = store.table(path).update(&set(&[("v", "-k")]), Some("k % 1000 = 3"), &Default::default()).unwrap();
        assert_eq!(report.rows, 50);
        let written = disk.counters().bytes_written - before.bytes_written;
        assert!(path == "sorted" || written < 40_000, "{path}: {written} bytes for 50 rows");
        let value = |k: i64| if k % 1000 == 3 { -k } else { k * 7919 % 100_003 };
        assert_eq!(column(&store, path, AsOf::Newest, "v"), (0..n).map(value).collect::<Vec<_>>());
        // Most rows: whole row groups.
        store.table(path).update(&set(&[("v", "0")]), Some("k > 10"), &Default::default()).unwrap();
        let value = |k: i64| if k > 10 { 0 } else { value(k) };
        assert_eq!(column(&store, path, AsOf::Newest, "v"), (0..n).map(value).collect::<Vec<_>>());
    }
    let found = store.table("keyed").get_many(&ints(&[("k", vec![3, 11, 60_000])]), &Default::default()).unwrap();
    assert_eq!(found.rows["v"].as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), [Some(-3), Some(0), None]);
    assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
}

#[test]
fn rows_in_memory_are_updated_too() {
    let (_disk, store) = store();
    let key = TableOptions { key: vec!["k".into()], ..TableOptions::default() };
    store.table("t").create(ints(&[("k", vec![]), ("v", vec![])]).schema(), key).unwrap();
    store.table("t").upsert(ints(&[("k", vec![1, 2]), ("v", vec![10, 20])]), &Default::default()).unwrap();
    store.table("t").update(&set(&[("v", "v + k")]), None, &Default::default()).unwrap();
    assert_eq!(column(&store, "t", AsOf::Newest, "v"), [11, 22]);
    store.table("t").upsert(ints(&[("k", vec![3]), ("v", vec![30])]), &Default::default()).unwrap();
    // In a transaction, once more after its rows were made row groups.
    store
        .transact(|tx| tx.table("t").update(&set(&[("v", "0")]), Some("k = 3"), &Default::default()).map(drop))
        .unwrap();
    assert_eq!(column(&store, "t", AsOf::Newest, "v"), [11, 22, 0]);
}

/// One row with a column of many types.
fn types() -> RecordBatch {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("i8", Arc::new(Int8Array::from(vec![100]))),
        ("i64", Arc::new(Int64Array::from(vec![7]))),
        ("f64", Arc::new(Float64Array::from(vec![0.25]))),
        ("f32", Arc::new(arrow::array::Float32Array::from(vec![1.5]))),
        ("dec", Arc::new(Decimal128Array::from(vec![1234]).with_precision_and_scale(6, 2).unwrap())),
        ("flag", Arc::new(BooleanArray::from(vec![true]))),
        ("s", Arc::new(StringArray::from(vec!["x"]))),
        ("cat", Arc::new(["x"].into_iter().collect::<arrow::array::DictionaryArray<arrow::datatypes::Int8Type>>())),
        ("day", Arc::new(Date32Array::from(vec![0]))),
        ("at", Arc::new(TimestampMicrosecondArray::from(vec![0]))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

#[test]
fn expressions_give_values_of_the_columns_type() {
    for (name, text, expected) in [
        ("i8", "i64 * 2", Ok("14")),
        ("i8", "i64 / 2", Ok("4")),
        ("i8", "-2.5", Err("more than 0 decimal places")),
        ("i8", "f64 * 10", Ok("3")),
        ("i8", "f64 * -10", Ok("-3")),
        ("i8", "i64 * 20", Err("140 is not a valid int8")),
        ("i8", "128", Err("128 is not a valid int8")),
        ("i8", "i64 / 0", Ok("")),
        ("i8", "null", Ok("")),
        ("i8", "s", Err("s (string) does not have the type int8")),
        ("i8", "'7'", Err("'7' is not a valid int8")),
        ("i8", "i64 > 3", Err("i64 > 3 does not have the type int8")),
        ("i64", "1e30", Err("is not a valid int64")),
        ("i64", "f64 * 1e40", Err("is not a valid int64")),
        ("f64", "i64", Ok("7.0")),
        ("f64", "dec", Ok("12.34")),
        ("f64", "'nan'", Ok("NaN")),
        ("f64", "double 'nan'", Ok("NaN")),
        ("f32", "double '-inf'", Ok("-inf")),
        ("i64", "double 'inf'", Err("double 'inf' is not a valid int64")),
        ("s", "double 'nan'", Err("double 'nan' is not a valid string")),
        ("s", "interval '1 day'", Err("interval '1 day' is not a valid string")),
        ("f32", "i64 * 1e39", Err("is not a valid float")),
        ("f32", "0.5", Ok("0.5")),
        ("dec", "dec * 1.1", Ok("13.57")),
        ("dec", "dec * 100", Ok("1234.00")),
        ("dec", "dec * 1000", Err("")),
        ("dec", "i64", Ok("7.00")),
        ("dec", "0.005", Err("more than 2 decimal places")),
        ("dec", "f64 * 0.3", Ok("0.08")),
        ("flag", "i64 > 3 and s = 'y'", Ok("false")),
        ("flag", "not flag", Ok("false")),
        ("flag", "null", Ok("")),
        ("flag", "i64", Err("i64 (int64) does not have the type bool")),
        ("s", "'it''s'", Ok("it's")),
        ("s", "cat", Ok("x")),
        ("s", "7", Err("7 is not a valid string")),
        ("cat", "'y'", Ok("y")),
        ("cat", "s", Ok("x")),
        ("day", "date '2026-01-02'", Ok("2026-01-02")),
        ("day", "at", Ok("1970-01-01")),
        ("day", "timestamp '2026-01-02 03:00'", Err("no")),
        ("at", "day", Ok("1970-01-01T00:00:00")),
        ("at", "timestamp '2026-01-02 03:04:05.000006'", Ok("2026-01-02T03:04:05.000006")),
        ("at", "i64", Err("does not have the type timestamp[us]")),
        ("i64", "nothing + 1", Err("nothing")),
    ] {
        let (_disk, store) = store();
        store.write("t", types(), &Default::default()).unwrap();
        let done = store.table("t").update(&set(&[(name, text)]), None, &Default::default());
        match (done, expected) {
            (Ok(_), Ok(expected)) => {
                let batch = store.table("t").collect(&Default::default()).unwrap().remove(0);
                assert_eq!(batch.schema(), types().schema());
                assert_eq!(array_value_to_string(&batch[name], 0).unwrap(), expected, "{name} = {text}");
            }
            (Err(e), Err(words)) => {
                assert!(e.message().contains(words), "{name} = {text}: {e}");
                assert!(
                    e.message().contains("'t'") && e.message().contains(&format!("'{name}'")),
                    "{name} = {text}: {e}"
                );
                assert_eq!(store.table("t").versions().unwrap().len(), 1);
            }
            (got, _) => panic!("{name} = {text}: {got:?}, expected {expected:?}"),
        }
    }
}

#[test]
fn what_cannot_be_set_is_refused() {
    let (_disk, store) = store();
    let schema = Arc::new(Schema::new(vec![
        Field::new("k", DataType::Int64, true),
        Field::new("v", DataType::Int64, false),
        Field::new("list", DataType::List(Arc::new(Field::new("item", DataType::Int64, true))), true),
    ]));
    let key = TableOptions { sort: vec!["k".into()], ..TableOptions::default() };
    store.table("t").create(schema.clone(), key).unwrap();
    let list = arrow::array::ListArray::from_iter_primitive::<Int64Type, _, _>(vec![Some(vec![Some(1)])]);
    let one = Arc::new(Int64Array::from(vec![1])) as ArrayRef;
    let rows = RecordBatch::try_new(schema, vec![one.clone(), one, Arc::new(list)]).unwrap();
    store.append("t", rows, &Default::default()).unwrap();
    let refused = |pairs: &[(&str, &str)], filter: Option<&str>, kind: ErrorKind, words: &str| {
        let error = store.table("t").update(&set(pairs), filter, &Default::default()).unwrap_err();
        assert!(error.kind() == kind && error.message().contains(words), "{pairs:?}: {error}");
    };
    refused(&[("k", "1")], None, ErrorKind::InvalidArgument, "sorted by");
    refused(&[("x", "1")], None, ErrorKind::InvalidArgument, "does not exist");
    refused(&[("v", "1"), ("v", "2")], None, ErrorKind::InvalidArgument, "twice");
    refused(&[], None, ErrorKind::InvalidArgument, "no column is set");
    refused(&[("v", "null")], None, ErrorKind::SchemaMismatch, "takes no nulls");
    refused(&[("v", "1")], Some("x = 1"), ErrorKind::InvalidArgument, "x");
    refused(&[("list", "1")], None, ErrorKind::InvalidArgument, "is not a valid list<int64>");
    // A list can be null, and stays as it is.
    store.table("t").update(&set(&[("v", "v + 1"), ("list", "list")]), None, &Default::default()).unwrap();
    store.table("t").update(&set(&[("list", "null")]), None, &Default::default()).unwrap();
    assert!(Expression::parse("a +").unwrap_err().message().contains("expression"));
    let missing = store.table("no").update(&set(&[("v", "1")]), None, &UpdateOptions::default()).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}
