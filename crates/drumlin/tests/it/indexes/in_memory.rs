//! Rows in memory are found by what they have in indexes, at every time, and without looking at the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use drumlin::storage::SimDisk;
use drumlin::store::{
    AsOf, CheckpointOptions, DatasetOptions, IndexOptions, ReadOptions, SplitOptions, SplitReader, TableOptions,
};
use drumlin::table::ScanOptions;
use drumlin::{Expression, Filter, Store, Tables};

use crate::seeds;
use crate::support::{Checked, open, same};

/// What a row has beside its id.
type Values = (Option<i64>, Option<String>);

fn rows(values: &[(i64, Values)]) -> RecordBatch {
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(values.iter().map(|(id, _)| *id)));
    let n: ArrayRef = Arc::new(Int64Array::from_iter(values.iter().map(|(_, (n, _))| *n)));
    let s: ArrayRef = Arc::new(StringArray::from_iter(values.iter().map(|(_, (_, s))| s.as_deref())));
    RecordBatch::try_from_iter_with_nullable([("id", id, false), ("n", n, true), ("s", s, true)]).unwrap()
}

fn numbered(ids: std::ops::Range<i64>) -> RecordBatch {
    let value = |id: i64| (id, (Some(id * 7919 % 100_003), Some(format!("note {}", id % 1000))));
    rows(&ids.map(value).collect::<Vec<_>>())
}

fn key_column(ids: Vec<i64>) -> RecordBatch {
    RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(ids)) as ArrayRef)]).unwrap()
}

fn keyed(store: &Store) -> drumlin::Table {
    let table = store.table("t");
    table.create(rows(&[]).schema(), TableOptions { key: vec!["id".into()], ..Default::default() }).unwrap();
    table
}

fn index(table: &drumlin::Table, name: &str, value: &str) {
    table.create_index(name, &[Expression::parse(value).unwrap()], &IndexOptions::default()).unwrap();
}

fn ids(batches: &[RecordBatch]) -> Vec<i64> {
    batches.iter().flat_map(|batch| batch["id"].as_primitive::<Int64Type>().values().to_vec()).collect()
}

fn find(tables: &impl Tables, as_of: AsOf, filter: &str) -> Vec<i64> {
    let read = ReadOptions { as_of, filter: Some(Filter::parse(filter).unwrap()), ..ReadOptions::default() };
    ids(&tables.table("t").collect(&read).unwrap())
}

/// Rows in memory that are looked at for a filter.
fn looked_at(store: &Store, filter: &str) -> u64 {
    let data = store.scan("t", &DatasetOptions::default()).unwrap();
    let filter = Some(Filter::parse(filter).unwrap());
    data.plan(&ScanOptions { filter, ..ScanOptions::default() }).unwrap().total.memory_rows
}

/// What is written after an index was first asked is found, too.
pub fn later_rows_are_found() -> Checked {
    let store = Store::memory().unwrap();
    let table = keyed(&store);
    index(&table, "n", "n");
    table.upsert(numbered(0..100), &Default::default()).unwrap();
    same(&find(&store, AsOf::Newest, "n = 7919"), &vec![1], "one row")?;
    table.upsert(rows(&[(500, (Some(7919), None))]), &Default::default()).unwrap();
    same(&find(&store, AsOf::Newest, "n = 7919"), &vec![1, 500], "two rows")
}

/// A row of a row group that was written again in memory, with another value or not at all, is not found by what it was.
pub fn rewritten_rows_are_hidden() -> Checked {
    let store = Store::memory().unwrap();
    let table = keyed(&store);
    index(&table, "n", "n");
    table.append(numbered(0..100), &Default::default()).unwrap();
    store.checkpoint(&CheckpointOptions { index_rows_min: 1, ..Default::default() }).unwrap();
    table.upsert(numbered(100..200), &Default::default()).unwrap();
    table.upsert(rows(&[(1, (Some(0), None))]), &Default::default()).unwrap();
    table.delete_keys(key_column(vec![2]), &Default::default()).unwrap();
    same(&find(&store, AsOf::Newest, "n in (7919, 15838, 23757)"), &vec![3], "one row")
}

#[test]
fn rules_hold() {
    for rule in [later_rows_are_found, rewritten_rows_are_hidden] {
        rule().unwrap();
    }
}

#[test]
fn only_hits_are_looked_at() {
    let store = Store::memory().unwrap();
    let table = keyed(&store);
    index(&table, "n", "n");
    index(&table, "s", "lower(s)");
    for at in 0..10 {
        table.upsert(numbered(at * 1000..(at + 1) * 1000), &Default::default()).unwrap();
        // Each look sorts what came since the last one.
        assert_eq!(find(&store, AsOf::Newest, "n = 7919"), [1]);
    }
    let one = find(&store, AsOf::Newest, "n >= 0 and n < 50");
    assert_eq!(looked_at(&store, "n >= 0 and n < 50"), one.len() as u64);
    assert_eq!(looked_at(&store, "n = 7919"), 1);
    assert_eq!(looked_at(&store, "n in (7919, 15838, -1)"), 2);
    assert_eq!(looked_at(&store, "lower(s) = 'note 17'"), 10);
    assert_eq!(looked_at(&store, "lower(s) = 'note 17' or n = 7919"), 11);
    assert_eq!(looked_at(&store, "n = 7919 and id > 5"), 1);
    // Nothing is gained by asking for most rows, and no index says anything of these.
    assert_eq!(looked_at(&store, "n > 5"), 10_000);
    assert_eq!(looked_at(&store, "s = 'note 17'"), 10_000);
    // What is written again counts once, and where it is no longer what it was, not at all.
    for _ in 0..5 {
        table.upsert(rows(&[(1, (Some(7919), None))]), &Default::default()).unwrap();
        assert_eq!(looked_at(&store, "n = 7919"), 1);
    }
    // Of a row that was written thousands of times, all that it was would be looked at: then the rows are.
    for _ in 0..2600 {
        table.upsert(rows(&[(1, (Some(7919), None))]), &Default::default()).unwrap();
    }
    assert_eq!(looked_at(&store, "n = 7919"), 10_000);
    assert_eq!(looked_at(&store, "n = 15838"), 1);
    assert_eq!(find(&store, AsOf::Newest, "n = 7919"), [1]);
    table.update(&[("n".into(), Expression::parse("n + 1").unwrap())], None, &Default::default()).unwrap();
    assert_eq!(find(&store, AsOf::Newest, "n = 7920"), [1]);
}

/// The values of a call that cannot be computed for some row are hits, for all of it.
#[test]
fn what_cannot_be_computed_is_looked_at() {
    let store = Store::memory().unwrap();
    let table = keyed(&store);
    index(&table, "n", "n * 4");
    table.upsert(numbered(0..1000), &Default::default()).unwrap();
    assert_eq!(looked_at(&store, "n * 4 = 31676"), 1);
    table.upsert(rows(&[(2000, (Some(i64::MAX), None)), (2001, (Some(7919), None))]), &Default::default()).unwrap();
    assert_eq!(looked_at(&store, "n * 4 = 31676 and id <> 2000"), 3);
}

fn truth(filter: &str, (n, s): &Values, low: i64, high: i64, text: &str) -> bool {
    match filter {
        "equal" => *n == Some(low),
        "between" => n.is_some_and(|n| low <= n && n < high),
        "among" => n.is_some_and(|n| [low, high, low + 3].contains(&n)),
        "either" => *n == Some(low) || s.as_deref() == Some(text),
        "null" => n.is_none(),
        "prefix" => s.as_deref().is_some_and(|s| s.starts_with(text)),
        "both" => *n == Some(low) && s.as_deref().is_some_and(|s| s >= text),
        other => unreachable!("{other}"),
    }
}

fn text_of(filter: &str, low: i64, high: i64, text: &str) -> String {
    match filter {
        "equal" => format!("n = {low}"),
        "between" => format!("n >= {low} and n < {high}"),
        "among" => format!("n in ({low}, {high}, {})", low + 3),
        "either" => format!("n = {low} or s = '{text}'"),
        "null" => "n is null".to_owned(),
        "prefix" => format!("s like '{text}%'"),
        _ => format!("n = {low} and s >= '{text}'"),
    }
}

/// What is found equals a map, at all times, in transactions and in splits, wherever rows are. Returns how many rows in memory were passed
/// over.
fn equal_a_map(seed: u64) -> u64 {
    let mut rng = fastrand::Rng::with_seed(seed);
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    let table = keyed(&store);
    index(&table, "n", "n");
    index(&table, "s", "s");
    let mut known: BTreeMap<i64, Values> = BTreeMap::new();
    let mut snapshots: Vec<BTreeMap<i64, Values>> = Vec::new();
    let mut passed = 0;
    for step in 0..25 {
        let value = |rng: &mut fastrand::Rng| {
            let n = (rng.u8(..9) > 0).then(|| rng.i64(0..60));
            (n, (rng.u8(..9) > 0).then(|| format!("{}{}", rng.char('a'..'f'), rng.u8(..9))))
        };
        let some: BTreeMap<i64, Values> = (0..rng.usize(1..60)).map(|_| (rng.i64(0..200), value(&mut rng))).collect();
        let batch = rows(&some.clone().into_iter().collect::<Vec<_>>());
        match rng.u8(..10) {
            0 => {
                store.checkpoint(&CheckpointOptions { index_rows_min: 1, ..Default::default() }).unwrap();
            }
            1 => {
                store.snapshot(&format!("s{}", snapshots.len()), "t").unwrap();
                snapshots.push(known.clone());
            }
            2 => {
                table.delete_keys(key_column(some.keys().copied().collect()), &Default::default()).unwrap();
                known.retain(|id, _| !some.contains_key(id));
            }
            3 => {
                let low = rng.i64(0..60);
                table.delete(&format!("n = {low}"), &Default::default()).unwrap();
                known.retain(|_, (n, _)| *n != Some(low));
            }
            4 => {
                let new: BTreeMap<i64, Values> = (0..20).map(|at| (1000 + step * 100 + at, value(&mut rng))).collect();
                table.append(rows(&new.clone().into_iter().collect::<Vec<_>>()), &Default::default()).unwrap();
                known.extend(new);
            }
            _ => {
                table.upsert(batch.clone(), &Default::default()).unwrap();
                known.extend(some.clone());
            }
        }
        for _ in 0..6 {
            let filter = *rng.choice(&["equal", "between", "among", "either", "null", "prefix", "both"]).unwrap();
            let low = rng.i64(0..60);
            let (high, text) = (low + rng.i64(1..10), rng.char('a'..'f').to_string());
            let wanted = |rows: &BTreeMap<i64, Values>| {
                let hits = rows.iter().filter(|(_, row)| truth(filter, row, low, high, &text));
                hits.map(|(id, _)| *id).collect::<Vec<_>>()
            };
            let asked = text_of(filter, low, high, &text);
            assert_eq!(find(&store, AsOf::Newest, &asked), wanted(&known), "seed {seed}, step {step}, {asked}");
            if let Some(at) = (!snapshots.is_empty()).then(|| rng.usize(0..snapshots.len())) {
                let found = find(&store, AsOf::Snapshot(format!("s{at}")), &asked);
                assert_eq!(found, wanted(&snapshots[at]), "seed {seed}, step {step}, {asked}, snapshot {at}");
            }
            let all = looked_at(&store, "id >= 0");
            passed += all - looked_at(&store, &asked);
            match rng.u8(..4) {
                0 => {
                    // A transaction sees its own rows.
                    let transaction = store.transaction().unwrap();
                    transaction.table("t").upsert(batch.clone(), &Default::default()).unwrap();
                    let mut own = known.clone();
                    own.extend(some.clone());
                    let found = find(&transaction, AsOf::Newest, &asked);
                    assert_eq!(found, wanted(&own), "seed {seed}, step {step}, {asked}");
                }
                1 => {
                    let data = store.scan("t", &DatasetOptions::default()).unwrap();
                    let options = ScanOptions { filter: Some(Filter::parse(&asked).unwrap()), ..Default::default() };
                    let splits = data.splits(&options, &SplitOptions { bytes: 1, ..Default::default() }).unwrap();
                    let mut found = Vec::new();
                    for split in &splits.splits {
                        let scan = SplitReader::of(&store).scan(split, &Default::default()).unwrap();
                        found.extend(ids(&scan.collect::<Result<Vec<_>, _>>().unwrap()));
                    }
                    found.sort_unstable();
                    assert_eq!(found, wanted(&known), "seed {seed}, step {step}, {asked}, splits");
                }
                _ => {}
            }
        }
    }
    passed
}

#[test]
fn what_is_found_equals_a_map() {
    seeds::each(0..8, 8, |seed| assert!(equal_a_map(seed) > 0, "all rows were looked at"));
}
