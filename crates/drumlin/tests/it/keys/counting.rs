//! Writes that depend on the rows which are there, or answer with rows: numbers that are added, rows written if others are as expected,
//! rows returned.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, Decimal128Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use drumlin::base::{ManualClock, Timestamp};
use drumlin::storage::SimDisk;
use drumlin::store::{Options, TableOptions, WriteOptions};
use drumlin::table::{Alter, Constraints, Generator};
use drumlin::{ErrorKind, Filter, Store, Tables};

use crate::seeds;
use crate::support::{Checked, env, open, same};

const PATH: &str = "counters";

fn store_with(row_write_bytes: u64) -> (Store, SimDisk) {
    let (clock, disk) = (Arc::new(ManualClock::new(Timestamp(1_000_000))), SimDisk::in_memory());
    let options = Options { row_write_bytes, ..Options::default() };
    (drumlin::store::open_on(Arc::new(disk.clone()), env(&clock, 1, 2), "sim", options).unwrap(), disk)
}

/// A table with the key `id`, the numbers `n`, and `m`, which has the default 100, and a text.
fn counters(store: &Store) -> drumlin::Table {
    let field = |name: &str, kind: DataType| Field::new(name, kind, name != "id");
    let fields = vec![
        field("id", DataType::Int64),
        field("n", DataType::Int64),
        field("m", DataType::Int64),
        field("s", DataType::Utf8),
    ];
    let table = store.table(PATH);
    let options = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    table.create(Arc::new(Schema::new(fields)), options).unwrap();
    let defaults = vec![("m".into(), Arc::new(Int64Array::from(vec![100])) as ArrayRef)];
    let constraints = Constraints { defaults, ..Constraints::default() };
    table.alter(&Alter::AddConstraints(constraints), &Default::default()).unwrap();
    table
}

fn some(columns: &[(&str, Vec<Option<i64>>)]) -> RecordBatch {
    let array = |name: &str, values: &[Option<i64>]| -> ArrayRef {
        match name {
            "s" => Arc::new(StringArray::from_iter(values.iter().map(|v| v.map(|v| format!("s{v}"))))),
            _ => Arc::new(Int64Array::from(values.to_vec())),
        }
    };
    RecordBatch::try_from_iter_with_nullable(columns.iter().map(|(name, values)| (*name, array(name, values), true)))
        .unwrap()
}

fn one(column: &'static str, id: i64, by: i64) -> RecordBatch {
    some(&[("id", vec![Some(id)]), (column, vec![Some(by)])])
}

fn returning(columns: &[&str]) -> WriteOptions {
    WriteOptions { returning: Some(columns.iter().map(|name| (*name).to_owned()).collect()), ..WriteOptions::default() }
}

fn texts(batches: &[RecordBatch]) -> Vec<String> {
    let text = |batch: &RecordBatch, row: usize| {
        let value = |column: &ArrayRef| arrow::util::display::array_value_to_string(column, row).unwrap();
        batch.columns().iter().map(value).collect::<Vec<_>>().join(" ")
    };
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|row| text(batch, row)).collect::<Vec<_>>()).collect()
}

fn all_of(table: &drumlin::Table) -> Vec<String> {
    texts(&table.collect(&Default::default()).unwrap())
}

/// Many threads add to the same rows: nothing is lost, each gets a sum of its own.
pub fn nothing_added_is_lost() -> Checked {
    const THREADS: i64 = 4;
    const EACH: i64 = 150;
    let (store, _disk) = store_with(1 << 20);
    let table = counters(&store);
    table.increment(&one("n", 2, 5), &Default::default()).map_err(|e| e.to_string())?;
    store.checkpoint(&Default::default()).map_err(|e| e.to_string())?;
    // Rows that are deleted in memory.
    let gone = some(&[("id", (100..100 + THREADS * EACH).map(Some).collect())]);
    table.upsert(&gone, &Default::default()).map_err(|e| e.to_string())?;
    table.delete_keys(&gone, &Default::default()).map_err(|e| e.to_string())?;
    let sums: Vec<i64> = std::thread::scope(|scope| {
        let thread = |thread: i64| {
            let table = store.table(PATH);
            scope.spawn(move || {
                let mut sums = Vec::new();
                for at in 0..EACH {
                    let amounts = some(&[("id", vec![Some(1), Some(2)]), ("n", vec![Some(1), Some(at % 3)])]);
                    let rows = table.increment(&amounts, &returning(&["n"])).unwrap().returned.unwrap();
                    sums.push(rows["n"].as_primitive::<Int64Type>().value(0));
                    table.increment(&one("n", 100 + thread * EACH + at, 1), &Default::default()).unwrap();
                }
                sums
            })
        };
        let threads: Vec<_> = (0..THREADS).map(thread).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    same(&sums.into_iter().collect::<BTreeSet<i64>>(), &(1..=THREADS * EACH).collect(), "the sums")?;
    let counted = [format!("1 {} 100 ", THREADS * EACH), format!("2 {} 100 ", 5 + THREADS * EACH)];
    let made = (100..100 + THREADS * EACH).map(|id| format!("{id} 1 100 "));
    same(&all_of(&table), &counted.into_iter().chain(made).collect(), "rows")?;
    let metrics = drumlin::metrics(&store).map_err(|e| e.to_string())?;
    let conflicts = metrics.into_iter().find(|metric| metric.name == "drumlin_conflicts_total").map(|m| m.value);
    same(&conflicts, &Some(drumlin::MetricValue::Counter(0)), "conflicts")
}

#[test]
fn many_threads_count_in_the_same_row() {
    nothing_added_is_lost().unwrap();
}

#[test]
fn numbers_are_added_to_what_is_there() {
    for (many, in_groups) in [(false, false), (false, true), (true, false), (true, true)] {
        let (store, _disk) = store_with(if many { 0 } else { 1 << 20 });
        let table = counters(&store);
        let settle = || {
            if in_groups {
                drop(store.checkpoint(&Default::default()).unwrap())
            }
        };
        table
            .insert(some(&[("id", vec![Some(1), Some(2)]), ("s", vec![Some(1), Some(2)])]), &Default::default())
            .unwrap();
        settle();
        // A null counts as 0, a default does not; new rows come; equal keys are added one after the other.
        let amounts = some(&[
            ("m", vec![Some(1), Some(2), Some(3), Some(4)]),
            ("id", vec![Some(2), Some(3), Some(2), Some(1)]),
            ("n", vec![Some(10), Some(20), Some(-5), Some(0)]),
        ]);
        let report = table.increment(&amounts, &returning(&["n", "id"])).unwrap();
        assert_eq!(
            (report.rows, texts(&[report.returned.unwrap()])),
            (3, vec!["0 1".into(), "5 2".into(), "20 3".into()])
        );
        assert_eq!(all_of(&table), ["1 0 104 s1", "2 5 104 s2", "3 20 102 "]);
        settle();
        // What is refused changes nothing, and says why.
        let before = (all_of(&table), store.seq().unwrap());
        for (amounts, words) in [
            (one("n", 3, i64::MAX), &["'n'", "int64", "20 and 9223372036854775807", "key 3"][..]),
            (one("s", 3, 1), &["'s'", "only numbers"]),
            (some(&[("id", vec![Some(3)]), ("n", vec![None])]), &["'n'", "not be null"]),
            (some(&[("id", vec![None]), ("n", vec![Some(1)])]), &["'id'", "null"]),
            (some(&[("id", vec![Some(3)])]), &["no column beside the key"]),
            (some(&[("n", vec![Some(3)])]), &["'id'"]),
            (one("z", 3, 1), &["'z'", "the table lacks"]),
        ] {
            let error = table.increment(&amounts, &Default::default()).unwrap_err();
            assert!(words.iter().all(|word| error.message().contains(word)), "{error}");
            let error = store.transact(|tx| tx.table(PATH).increment(&amounts, &Default::default())).unwrap_err();
            assert!(words.iter().all(|word| error.message().contains(word)), "{error}");
        }
        assert!(table.increment(&one("n", 3, 1), &returning(&["zz"])).is_err());
        let constraints =
            Constraints { checks: vec![("low".into(), Filter::parse("n < 50").unwrap())], ..Constraints::default() };
        table.alter(&Alter::AddConstraints(constraints), &Default::default()).unwrap();
        let seq = store.seq().unwrap();
        let error = table.increment(&one("n", 3, 30), &Default::default()).unwrap_err();
        assert!(error.message().contains("'low'") && error.message().contains("key 3"), "{error}");
        assert_eq!((all_of(&table), store.seq().unwrap()), (before.0, seq));
        // In a transaction, over its own rows, and not before it commits.
        let transaction = store.transaction().unwrap();
        for _ in 0..3 {
            transaction.table(PATH).increment(&one("n", 7, 2), &Default::default()).unwrap();
        }
        let sums = transaction.table(PATH).increment(&one("n", 7, 2), &returning(&["n"])).unwrap();
        assert_eq!(texts(&[sums.returned.unwrap()]), ["8"]);
        assert_eq!(all_of(&table).len(), 3);
        transaction.commit().unwrap();
        assert_eq!(all_of(&table).last().unwrap(), "7 8 100 ");
        // One that others came before is a conflict.
        let transaction = store.transaction().unwrap();
        transaction.table(PATH).increment(&one("n", 7, 2), &Default::default()).unwrap();
        table.increment(&one("n", 7, 1), &Default::default()).unwrap();
        assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
        // After a delete it begins again.
        table.delete_keys(some(&[("id", vec![Some(7)])]), &Default::default()).unwrap();
        table.increment(&one("n", 7, 1), &Default::default()).unwrap();
        assert_eq!(all_of(&table).last().unwrap(), "7 1 100 ");
    }
}

#[test]
fn all_kinds_of_numbers_are_added() {
    let store = open(&SimDisk::in_memory()).unwrap();
    let kinds =
        [("i", DataType::Int8), ("u", DataType::UInt64), ("f", DataType::Float32), ("d", DataType::Decimal128(5, 2))];
    let fields = kinds.iter().map(|(name, kind)| Field::new(*name, kind.clone(), *name == "d"));
    let fields: Vec<Field> = std::iter::once(Field::new("id", DataType::Int64, false)).chain(fields).collect();
    let table = store.table("t");
    table.create(Arc::new(Schema::new(fields)), TableOptions { key: vec!["id".into()], ..Default::default() }).unwrap();
    let decimal =
        |v: i128| Arc::new(Decimal128Array::from(vec![v]).with_precision_and_scale(5, 2).unwrap()) as ArrayRef;
    let amounts = |i: i32, u: i64, f: f32, d: i128| {
        RecordBatch::try_from_iter([
            ("id", Arc::new(Int32Array::from(vec![1])) as ArrayRef),
            ("i", Arc::new(Int32Array::from(vec![i]))),
            ("u", Arc::new(Int64Array::from(vec![u]))),
            ("f", Arc::new(arrow::array::Float32Array::from(vec![f]))),
            ("d", decimal(d)),
        ])
        .unwrap()
    };
    // New rows have 0 where they take no nulls.
    table.increment(&amounts(100, 1, 0.5, 123), &Default::default()).unwrap();
    table.increment(&amounts(27, i64::MAX, 0.25, -24), &Default::default()).unwrap();
    assert_eq!(all_of(&table), ["1 127 9223372036854775808 0.75 0.99"]);
    for (bad, column) in [
        (amounts(1, 0, 0.0, 0), "'i'"),
        (amounts(-256, 0, 0.0, 0), "'i'"),
        (amounts(0, 0, 0.0, 99_999), "'d'"),
        (amounts(400, 0, 0.0, 0), "'i'"),
    ] {
        let error = table.increment(&bad, &Default::default()).unwrap_err();
        assert!(error.message().contains(column), "{error}");
    }
    assert_eq!(all_of(&table), ["1 127 9223372036854775808 0.75 0.99"]);
    // Less than 0 is added to what is never less.
    table.increment(&amounts(-255, -9, 0.0, 0), &Default::default()).unwrap();
    assert_eq!(all_of(&table), ["1 -128 9223372036854775799 0.75 0.99"]);
}

/// Rows are written only if others are as expected when the commit is made.
pub fn what_is_expected_holds() -> Checked {
    let (store, _disk) = store_with(1 << 20);
    let table = counters(&store);
    table.insert(one("n", 1, 1), &Default::default()).map_err(|e| e.to_string())?;
    let transaction = store.transaction().unwrap();
    // Another row is written than the one that is compared, and none of it is read.
    let whole = |to: i64| some(&[("id", vec![Some(2)]), ("n", vec![Some(to)]), ("m", vec![None]), ("s", vec![None])]);
    let cas = |table: &drumlin::Table, from: i64, to: i64| {
        table.compare_and_set(&one("n", 1, from), &whole(to), &Default::default())
    };
    cas(&transaction.table(PATH), 1, 2).map_err(|e| e.to_string())?;
    table.upsert(one("n", 1, 5), &Default::default()).map_err(|e| e.to_string())?;
    match transaction.commit() {
        Err(e) if e.kind() == ErrorKind::Conflict => {}
        other => return Err(format!("committed on what was not expected: {other:?}, {:?}", all_of(&table))),
    }
    let error = cas(&table, 1, 2).unwrap_err();
    same(&error.kind(), &ErrorKind::ConditionFailed, "the error")?;
    same(&["'n'", "key 1", "is 5", "expected 1"].iter().all(|w| error.message().contains(w)), &true, error.message())?;
    cas(&table, 5, 6).map_err(|e| e.to_string())?;
    same(&all_of(&table), &vec!["1 5 100 ".into(), "2 6  ".into()], "rows")
}

#[test]
fn rows_are_compared_and_set() {
    what_is_expected_holds().unwrap();
    let (store, _disk) = store_with(1 << 20);
    let table = counters(&store);
    table.insert(some(&[("id", vec![Some(1), Some(2)]), ("n", vec![Some(1), None])]), &Default::default()).unwrap();
    let seq = store.seq().unwrap();
    let set = |expected: &RecordBatch, rows: &RecordBatch| table.compare_and_set(expected, rows, &Default::default());
    // All or nothing; a null is as expected only if there is one.
    let expected = some(&[("id", vec![Some(1), Some(2)]), ("n", vec![Some(1), Some(0)])]);
    let error = set(&expected, &one("n", 9, 9)).unwrap_err();
    assert!(error.message().contains("key 2 is null, expected 0"), "{error}");
    let error = set(&some(&[("id", vec![Some(1)]), ("s", vec![Some(1)])]), &one("n", 9, 9)).unwrap_err();
    assert!(error.message().contains("'s' of the row with the key 1 is null, expected s1"), "{error}");
    let error = set(&some(&[("id", vec![Some(3)])]), &one("n", 9, 9)).unwrap_err();
    assert!(error.kind() == ErrorKind::ConditionFailed && error.message().contains("no row with the key 3"), "{error}");
    for bad in [one("z", 1, 1), some(&[("n", vec![Some(1)])])] {
        assert!(set(&bad, &one("n", 9, 9)).is_err());
        assert!(set(&one("n", 1, 1), &bad).is_err());
    }
    assert_eq!(store.seq().unwrap(), seq);
    let expected = some(&[("id", vec![Some(1), Some(2)]), ("n", vec![Some(1), None])]);
    let report = table.compare_and_set(&expected, &one("m", 3, 9), &returning(&["id", "m"])).unwrap();
    assert_eq!((texts(&[report.returned.unwrap()]), report.seq.unwrap().0), (vec!["3 9".into()], seq.0 + 1));
    assert_eq!(all_of(&table), ["1 1 100 ", "2  100 ", "3  9 "]);
    // Zeros of both signs are equal, and so are values that are not numbers.
    let rows = |f: f64| {
        let columns =
            [("k", Arc::new(Int64Array::from(vec![1])) as ArrayRef), ("f", Arc::new(Float64Array::from(vec![f])))];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let floats = store.table("floats");
    floats.create(rows(0.0).schema(), TableOptions { key: vec!["k".into()], ..Default::default() }).unwrap();
    floats.insert(rows(-0.0), &Default::default()).unwrap();
    floats.compare_and_set(&rows(0.0), &rows(f64::NAN), &Default::default()).unwrap();
    floats.compare_and_set(&rows(f64::NAN), &rows(1.0), &Default::default()).unwrap();
    assert!(floats.compare_and_set(&rows(f64::NAN), &rows(1.0), &Default::default()).is_err());
}

#[test]
fn rows_are_returned_as_they_are_written() {
    for (many, in_groups) in [(false, false), (false, true), (true, false), (true, true)] {
        let (store, _disk) = store_with(if many { 0 } else { 1 << 20 });
        let table = counters(&store);
        let generators = vec![("id".into(), Generator::sequence("id", 10)), ("s".into(), Generator::Uuid)];
        let constraints = Constraints { generators, ..Constraints::default() };
        table.alter(&Alter::AddConstraints(constraints), &Default::default()).unwrap();
        let settle = || {
            if in_groups {
                drop(store.checkpoint(&Default::default()).unwrap())
            }
        };
        // What was made is returned, in the order of the data.
        let report = table.insert(some(&[("n", vec![Some(3), Some(1), Some(2)])]), &returning(&["n", "id"])).unwrap();
        assert_eq!(texts(&[report.returned.unwrap()]), ["3 10", "1 11", "2 12"]);
        assert_eq!(report.version.is_some(), many);
        settle();
        // All columns; the last of equal keys.
        let rows = some(&[
            ("id", vec![Some(12), Some(5), Some(12)]),
            ("n", vec![Some(7), Some(8), Some(9)]),
            ("s", vec![None; 3]),
        ]);
        let report = table.upsert(&rows, &returning(&[])).unwrap();
        assert_eq!((texts(&[report.returned.unwrap()]), report.rows), (vec!["5 8 100 ".into(), "12 9 100 ".into()], 3));
        // Rows that are completed.
        let report =
            table.upsert(some(&[("m", vec![Some(1)]), ("id", vec![Some(12)])]), &returning(&["m", "n"])).unwrap();
        assert_eq!(texts(&[report.returned.unwrap()]), ["1 9"]);
        settle();
        // Rows that go, if they were there.
        let keys = some(&[("id", vec![Some(99), Some(12), Some(5), Some(12)])]);
        let report = table.delete_keys(&keys, &returning(&["id", "n"])).unwrap();
        assert_eq!(texts(&[report.returned.unwrap()]), ["5 8", "12 9"]);
        assert_eq!(all_of(&table).len(), 2);
        let parts = [one("n", 10, 4), one("m", 11, 4), one("m", 10, 5)];
        let report = table.upsert_batches(&parts, &returning(&["id", "n", "m"])).unwrap();
        assert_eq!(texts(&[report.returned.unwrap()]), ["11 1 4", "10 4 5"]);
        // In a transaction.
        let transaction = store.transaction().unwrap();
        let own = transaction.table(PATH);
        let report = own.insert(some(&[("n", vec![Some(6)])]), &returning(&["n", "m"])).unwrap();
        assert_eq!((texts(&[report.returned.unwrap()]), report.seq), (vec!["6 100".into()], None));
        assert_eq!(texts(&[own.delete_keys(one("n", 11, 0), &returning(&["n"])).unwrap().returned.unwrap()]), ["1"]);
        transaction.commit().unwrap();
        assert_eq!(all_of(&table).len(), 2);
        // A row that others change before it goes would not be the one that was returned.
        let transaction = store.transaction().unwrap();
        transaction.table(PATH).delete_keys(one("n", 10, 0), &returning(&[])).unwrap();
        table.upsert(one("n", 10, 44), &Default::default()).unwrap();
        assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
        // No rows, no batches.
        let none = some(&[("id", Vec::new())]);
        for report in [
            table.upsert(&none, &returning(&[])).unwrap(),
            table.insert(&none, &returning(&["n"])).unwrap(),
            table.delete_keys(&none, &returning(&[])).unwrap(),
            table.upsert_batches(&[], &returning(&["n"])).unwrap(),
            table.compare_and_set(&none, &none, &returning(&["n"])).unwrap(),
            table.increment(&some(&[("id", Vec::new()), ("n", Vec::new())]), &returning(&["n"])).unwrap(),
        ] {
            assert_eq!((report.rows, report.returned.unwrap().num_rows()), (0, 0));
        }
        let seq = store.seq().unwrap();
        for bad in [returning(&["nn"]), returning(&["n", "n"])] {
            assert!(table.insert(some(&[("n", vec![Some(3)])]), &bad).is_err());
            assert!(table.delete_keys(one("n", 10, 0), &bad).is_err());
        }
        assert_eq!(store.seq().unwrap(), seq);
        assert!(table.append(some(&[("n", vec![Some(3)])]), &returning(&[])).is_err(), "appends return no rows");
    }
}

/// Random additions, upserts, deletes and checkpoints, against a map.
#[test]
fn what_is_added_agrees_with_a_map() {
    seeds::each(0..20, 10, |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (store, _disk) = store_with([0, 400, 1 << 20][rng.usize(..3)]);
        let table = counters(&store);
        let mut map: BTreeMap<i64, (Option<i64>, i64)> = BTreeMap::new();
        for _ in 0..60 {
            let ids: Vec<i64> = (0..rng.usize(1..12)).map(|_| rng.i64(0..15)).collect();
            let by: Vec<i64> = ids.iter().map(|_| rng.i64(-9..9)).collect();
            let keys = || ids.iter().copied().map(Some).collect::<Vec<_>>();
            match rng.u8(..8) {
                0..4 => {
                    let amounts = some(&[("id", keys()), ("n", by.iter().copied().map(Some).collect())]);
                    for (id, by) in ids.iter().zip(&by) {
                        let row = map.entry(*id).or_insert((None, 100));
                        row.0 = Some(row.0.unwrap_or(0) + by);
                    }
                    let sums = table.increment(&amounts, &returning(&["id", "n"])).unwrap().returned.unwrap();
                    let expected: BTreeSet<i64> = ids.iter().copied().collect();
                    let expected: Vec<String> =
                        expected.iter().map(|id| format!("{id} {}", map[id].0.unwrap())).collect();
                    assert_eq!(texts(&[sums]), expected);
                }
                4 => {
                    table
                        .upsert(
                            some(&[("id", keys()), ("m", by.iter().copied().map(Some).collect())]),
                            &Default::default(),
                        )
                        .unwrap();
                    for (id, by) in ids.iter().zip(&by) {
                        map.entry(*id).or_insert((None, 100)).1 = *by;
                    }
                }
                5 => {
                    table.delete_keys(some(&[("id", keys())]), &Default::default()).unwrap();
                    map.retain(|id, _| !ids.contains(id));
                }
                6 => {
                    let expected = some(&[("id", keys()), ("n", by.iter().copied().map(Some).collect())]);
                    let holds = ids.iter().zip(&by).all(|(id, by)| map.get(id).is_some_and(|row| row.0 == Some(*by)));
                    let done = table.compare_and_set(&expected, &one("m", 3, 3), &Default::default());
                    assert_eq!(done.is_ok(), holds, "{done:?}");
                    if holds {
                        map.entry(3).or_insert((None, 100)).1 = 3;
                    }
                }
                _ => drop(store.checkpoint(&Default::default()).unwrap()),
            }
            let text = |(id, (n, m)): (&i64, &(Option<i64>, i64))| {
                format!("{id} {} {m} ", n.map_or(String::new(), |n| n.to_string()))
            };
            assert_eq!(all_of(&table), map.iter().map(text).collect::<Vec<_>>());
        }
    });
}
