//! Differences where columns change, and where there are nulls: both versions are read in the columns of both, and what looks the same there is
//! the same row.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use drumlin::base::Version;
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, DiffOptions, ReadOptions, TableOptions};
use drumlin::{Alter, Expression, Fill, NewColumn, Store, Tables};

use crate::support::{ints, open};

/// A row, by the names of its columns; a column that is not there is null.
type Row = BTreeMap<String, i64>;

fn rows(batches: &[RecordBatch]) -> Vec<Row> {
    let mut found = Vec::new();
    for batch in batches {
        for at in 0..batch.num_rows() {
            let mut row = Row::new();
            for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
                if *field.data_type() == DataType::Int64 && column.is_valid(at) {
                    row.insert(field.name().clone(), column.as_primitive::<Int64Type>().value(at));
                }
            }
            found.push(row);
        }
    }
    found
}

fn read(store: &Store, version: u64) -> Vec<Row> {
    let options = ReadOptions { as_of: AsOf::Version(Version(version)), ..ReadOptions::default() };
    rows(&store.table("t").collect(&options).unwrap())
}

/// The difference of two versions, which makes the second out of the first, and tells of no row that both have.
fn compared(store: &Store, since: u64, until: u64, columns: Option<&[&str]>) -> usize {
    let of = |version| AsOf::Version(Version(version));
    let asked = columns.map(|names| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    let options = DiffOptions { columns: asked.clone(), ..DiffOptions::default() };
    let diff = store.table("t").diff(&of(since), &of(until), &options).unwrap();
    let batches: Vec<RecordBatch> = diff.map(Result::unwrap).collect();
    let part = |row: &Row| match &asked {
        None => row.clone(),
        Some(names) => row.iter().filter(|(name, _)| names.contains(name)).map(|(n, v)| (n.clone(), *v)).collect(),
    };
    let mut counts: BTreeMap<Row, i64> = BTreeMap::new();
    read(store, since).iter().for_each(|row| *counts.entry(part(row)).or_default() += 1);
    let (mut gone, mut new): (BTreeMap<Row, i64>, BTreeMap<Row, i64>) = Default::default();
    let mut told = 0;
    for batch in &batches {
        let changes = batch.column_by_name("_change").unwrap().as_string::<i32>();
        for (at, row) in rows(std::slice::from_ref(batch)).into_iter().enumerate() {
            told += 1;
            let adds = matches!(changes.value(at), "insert" | "update_after");
            *(if adds { &mut new } else { &mut gone }).entry(row.clone()).or_default() += 1;
            *counts.entry(row).or_default() += if adds { 1 } else { -1 };
        }
    }
    read(store, until).iter().for_each(|row| *counts.entry(part(row)).or_default() -= 1);
    counts.retain(|_, count| *count != 0);
    assert_eq!(counts, BTreeMap::new(), "from {since} to {until}, {columns:?}");
    let both: Vec<&Row> = gone.keys().filter(|row| new.contains_key(*row)).collect();
    assert!(both.is_empty(), "from {since} to {until}, {columns:?}: {both:?} are told of, and are the same");
    told
}

fn alter(store: &Store, alter: &Alter) -> u64 {
    store.table("t").alter(alter, &Default::default()).unwrap().unwrap().version.0
}

fn rename(names: &[(&str, &str)]) -> Alter {
    Alter::Rename(names.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect())
}

fn added(name: &str, fill: Fill) -> Alter {
    Alter::Add(vec![NewColumn { field: Field::new(name, DataType::Int64, true), fill }])
}

fn seven() -> Fill {
    Fill::Default(Arc::new(Int64Array::from(vec![7])))
}

#[test]
fn columns_that_change_are_compared_as_they_are_read() {
    for keyed in [false, true] {
        let store = open(&SimDisk::in_memory()).unwrap();
        let first = ints(&[("id", (0..6).collect()), ("a", (10..16).collect()), ("b", vec![20, 11, 22, 13, 24, 25])]);
        let key = if keyed { vec!["id".into()] } else { Vec::new() };
        store.table("t").create(first.schema(), TableOptions { key, ..TableOptions::default() }).unwrap();
        store.append("t", first, &Default::default()).unwrap();
        // Rows 1 and 3 are the same with their values exchanged.
        let swapped = alter(&store, &rename(&[("a", "b"), ("b", "a")]));
        assert_eq!(compared(&store, 1, swapped, None), 8, "keyed {keyed}");
        let back = alter(&store, &rename(&[("a", "b"), ("b", "a")]));
        assert_eq!(compared(&store, 1, back, None), 0, "keyed {keyed}");
        // A column that is null everywhere changes nothing, one with a value changes all rows.
        let null = alter(&store, &added("n", Fill::Null));
        assert_eq!(compared(&store, back, null, None), 0, "keyed {keyed}");
        let default = alter(&store, &added("c", seven()));
        assert_eq!(compared(&store, null, default, None), 12, "keyed {keyed}");
        assert_eq!(compared(&store, null, default, Some(&["id", "a"])), 0, "keyed {keyed}");
        let set = [("c".to_owned(), Expression::parse("7").unwrap())];
        store.table("t").update(&set, Some("id < 3"), &Default::default()).unwrap();
        let updated = default + 1;
        assert_eq!(compared(&store, default, updated, None), 0, "the same values, keyed {keyed}");
        compared(&store, null, updated, None);
        // One that goes, and another of its name.
        let dropped = alter(&store, &Alter::Drop(vec!["b".into()]));
        assert_eq!(compared(&store, updated, dropped, None), 12, "keyed {keyed}");
        let again = alter(&store, &added("b", seven()));
        compared(&store, updated, again, None);
        let renamed = alter(&store, &rename(&[("a", "z")]));
        assert_eq!(compared(&store, again, renamed, None), 12, "keyed {keyed}");
        assert_eq!(compared(&store, again, renamed, Some(&["id", "c"])), 0, "keyed {keyed}");
        store.table("t").delete("id = 4", &Default::default()).unwrap();
        let last = renamed + 1;
        for since in 1..=last {
            for until in 1..=last {
                compared(&store, since, until, None);
            }
        }
        store.checkpoint(&Default::default()).unwrap();
        for since in 1..=last {
            compared(&store, since, last, None);
        }
    }
}

/// Row groups that look the same in both are not read, although their columns have changed.
#[test]
fn a_column_of_nulls_costs_no_reads() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    store.write("t", ints(&[("a", (0..5000).collect())]), &Default::default()).unwrap();
    for part in 1..20 {
        store.append("t", ints(&[("a", (part * 5000..(part + 1) * 5000).collect())]), &Default::default()).unwrap();
    }
    alter(&store, &added("n", Fill::Null));
    store.table("t").delete("a = 7", &Default::default()).unwrap();
    store.close().unwrap();
    let store = open(&disk).unwrap();
    let before = disk.counters().reads;
    assert_eq!(compared_rows(&store, 0), 95_001, "what was appended, and the row that went");
    let all = disk.counters().reads - before;
    let before = disk.counters().reads;
    assert_eq!(compared_rows(&store, 19), 1);
    let few = disk.counters().reads - before;
    assert!(few <= 4 && all > few, "{few} reads, {all} for all");
}

fn compared_rows(store: &Store, since: u64) -> usize {
    let since = AsOf::Version(Version(since));
    let diff = store.table("t").diff(&since, &AsOf::Newest, &Default::default()).unwrap();
    diff.map(|batch| batch.unwrap().num_rows()).sum()
}

/// Arrays with anything under their nulls, of many types.
#[test]
fn a_row_with_nulls_that_is_written_again_is_no_change() {
    let plain = || {
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("7"), None, Some("9")]));
        (ids, numbers, texts)
    };
    let types = [
        DataType::Int8,
        DataType::Int64,
        DataType::UInt32,
        DataType::Float32,
        DataType::Float64,
        DataType::Boolean,
        DataType::Decimal128(9, 2),
        DataType::Date32,
        DataType::Timestamp(arrow::datatypes::TimeUnit::Nanosecond, Some("UTC".into())),
        DataType::Utf8,
        DataType::Utf8View,
        DataType::Binary,
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
    ];
    for data_type in types {
        let (ids, numbers, texts) = plain();
        let values = cast(&numbers, &data_type).or_else(|_| cast(&texts, &data_type)).unwrap();
        let others: ArrayRef = Arc::new(Int64Array::from(vec![0, 0, 0]));
        let fields = vec![
            Field::new("id", DataType::Int64, false),
            Field::new("x", data_type.clone(), true),
            Field::new("y", DataType::Int64, true),
        ];
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![ids, values, others]).unwrap();
        let store = open(&SimDisk::in_memory()).unwrap();
        let (table, key) = (store.table("t"), TableOptions { key: vec!["id".into()], ..TableOptions::default() });
        table.create(batch.schema(), key).unwrap();
        table.upsert(batch.clone(), &Default::default()).unwrap();
        store.snapshot("first", "t").unwrap();
        // The row with the null alone, so that other bytes lie under it.
        table.upsert(batch.slice(1, 1), &Default::default()).unwrap();
        store.snapshot("second", "t").unwrap();
        let set = [("y".to_owned(), Expression::parse("1").unwrap())];
        table.update(&set, None, &Default::default()).unwrap();
        table.update(&set, Some("id = 2"), &Default::default()).unwrap();
        let told = |since: &AsOf, until: &AsOf, columns: Option<Vec<String>>| -> usize {
            let diff = table.diff(since, until, &DiffOptions { columns, ..DiffOptions::default() }).unwrap();
            diff.map(|batch| batch.unwrap().num_rows()).sum()
        };
        let [first, second] = ["first", "second"].map(|name| AsOf::Snapshot(name.into()));
        assert_eq!(told(&first, &second, None), 0, "{data_type}");
        let columns = Some(vec!["id".to_owned(), "x".to_owned()]);
        assert_eq!(told(&second, &AsOf::Newest, columns.clone()), 0, "{data_type}");
        assert_eq!(told(&first, &AsOf::Newest, columns), 0, "{data_type}");
        assert_eq!(told(&first, &AsOf::Newest, None), 6, "{data_type}");
    }
}
