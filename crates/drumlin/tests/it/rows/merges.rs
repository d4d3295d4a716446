//! Merges against maps: which rows match, what becomes of each, and what is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use drumlin::base::{ManualClock, Timestamp, Version};
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, ReadOptions, TableOptions, WriteOptions};
use drumlin::{ErrorKind, Expression, Filter, Merge, Store, Tables, VersionKind, WhenMatched, WhenNotMatched};

use crate::support::{Checked, open, opener};

/// A row: its key, and two values.
type Row = (Option<i64>, Option<i64>, Option<i64>);

fn batch(rows: &[Row]) -> RecordBatch {
    let column = |of: fn(&Row) -> Option<i64>| Arc::new(rows.iter().map(of).collect::<Int64Array>()) as ArrayRef;
    let columns = [("k", column(|row| row.0)), ("v", column(|row| row.1)), ("w", column(|row| row.2))];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

fn rows(store: &Store, path: &str, as_of: AsOf) -> Vec<Row> {
    let batches = store.table(path).collect(&ReadOptions { as_of, ..ReadOptions::default() }).unwrap();
    let rows = batches.iter().flat_map(|batch| {
        let column = |at: usize| batch.column(at).as_primitive::<Int64Type>().iter().collect::<Vec<_>>();
        let (k, v, w) = (column(0), column(1), column(2));
        (0..k.len()).map(move |at| (k[at], v[at], w[at])).collect::<Vec<_>>()
    });
    rows.collect()
}

fn set(pairs: &[(&str, &str)]) -> Vec<(String, Expression)> {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), Expression::parse(text).unwrap())).collect()
}

fn filter(text: &str) -> Option<Filter> {
    Some(Filter::parse(text).unwrap())
}

/// Rows that match get all values, others come in.
pub fn upsert() -> Merge {
    Merge {
        on: vec!["k".into()],
        matched: vec![(None, WhenMatched::UpdateAll)],
        not_matched: vec![(None, WhenNotMatched::InsertAll)],
        ..Merge::default()
    }
}

pub fn rows_that_match_are_not_added() -> Checked {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    store.write("t", batch(&[(Some(1), Some(1), None), (None, Some(2), None)]), &Default::default()).unwrap();
    let source = batch(&[(Some(1), Some(10), Some(5)), (Some(2), Some(20), None), (None, Some(30), None)]);
    let report = store.table("t").merge(source, &upsert(), &Default::default()).unwrap();
    let mut expected = [
        (Some(1), Some(10), Some(5)),
        (None, Some(2), None),
        (Some(2), Some(20), None),
        // A null matches nothing.
        (None, Some(30), None),
    ];
    expected.sort();
    let mut found = rows(&store, "t", AsOf::Newest);
    found.sort();
    match found == expected && (report.updated, report.inserted, report.deleted) == (1, 2, 0) {
        true => Ok(()),
        false => Err(format!("{found:?} {report:?}")),
    }
}

#[test]
fn rules_hold() {
    rows_that_match_are_not_added().unwrap();
}

/// What a merge of all clauses makes of rows.
///
/// The order of rows is that of the key, if there is one; else rows that are updated may have moved.
fn expected(table: &[Row], source: &[Row], nulls_equal: bool) -> (Vec<Row>, [u64; 3]) {
    let compared = |row: &&Row| nulls_equal || row.0.is_some();
    let by_key: BTreeMap<Option<i64>, &Row> = source.iter().filter(compared).map(|row| (row.0, row)).collect();
    let (mut made, mut counts, mut matched) = (Vec::new(), [0; 3], BTreeSet::new());
    for row in table {
        match by_key.get(&row.0) {
            Some(other) => {
                matched.insert(other.0);
                // Deleted if the source says 0; else, if it is greater, both columns change; else one does.
                if other.1 == Some(0) {
                    counts[1] += 1;
                } else if other.1 > row.1 && row.1.is_some() {
                    counts[0] += 1;
                    made.push((row.0, other.1, row.1));
                } else {
                    counts[0] += 1;
                    made.push((row.0, row.1, other.2.map(|w| w + 1)));
                }
            }
            None if row.2 == Some(3) => counts[1] += 1,
            None if row.2 == Some(4) => {
                counts[0] += 1;
                made.push((row.0, row.1, None));
            }
            None => made.push(*row),
        }
    }
    for row in source.iter().filter(|row| !matched.contains(&row.0)) {
        if row.1.is_some_and(|v| v > 2) {
            counts[2] += 1;
            made.push(*row);
        } else if row.1 == Some(1) {
            counts[2] += 1;
            made.push((row.0, Some(100), None));
        }
    }
    (made, counts)
}

fn all_clauses(nulls_equal: bool) -> Merge {
    Merge {
        on: vec!["k".into()],
        nulls_equal,
        matched: vec![
            (filter("source.v = 0"), WhenMatched::Delete),
            (filter("source.v > target.v"), WhenMatched::Update(set(&[("v", "source.v"), ("w", "target.v")]))),
            (None, WhenMatched::Update(set(&[("w", "source.w + 1")]))),
        ],
        not_matched: vec![
            (filter("source.v > 2"), WhenNotMatched::InsertAll),
            (filter("source.v = 1"), WhenNotMatched::Insert(set(&[("k", "source.k"), ("v", "100")]))),
        ],
        not_matched_by_source: vec![
            (filter("target.w = 3"), WhenMatched::Delete),
            (filter("target.w = 4"), WhenMatched::Update(set(&[("w", "null")]))),
        ],
    }
}

#[test]
fn merges_equal_those_of_maps() {
    for seed in 0..200 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let disk = SimDisk::in_memory();
        let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
        let store = opener(seed)(&disk, &clock, 2).unwrap();
        let (keyed, sorted) = (seed % 3 == 0, seed % 3 == 1);
        let value = |rng: &mut fastrand::Rng| (rng.u8(..6) > 0).then(|| rng.i64(0..6));
        let draw = |rng: &mut fastrand::Rng, distinct: bool, n: usize| {
            let mut keys: Vec<Option<i64>> = (0..n as i64 * 2).map(Some).collect();
            rng.shuffle(&mut keys);
            let key = |rng: &mut fastrand::Rng, at: usize| match distinct {
                true if !keyed && rng.u8(..10) == 0 => None,
                true => keys[at],
                false => (rng.u8(..10) > 0).then(|| rng.i64(0..n as i64 * 2)),
            };
            (0..n).map(|at| (key(rng, at), value(rng), value(rng))).collect::<Vec<Row>>()
        };
        let mut now = draw(&mut rng, keyed, 30);
        if keyed {
            let key = TableOptions { key: vec!["k".into()], ..TableOptions::default() };
            store.table("t").create(batch(&[]).schema(), key).unwrap();
            store.table("t").upsert(batch(&now), &Default::default()).unwrap();
        } else {
            let sort = Some(if sorted { vec!["k".to_owned()] } else { vec![] });
            store.write("t", batch(&now), &WriteOptions { sort, ..Default::default() }).unwrap();
        }
        if keyed || sorted {
            now.sort_by_key(|row| row.0);
        }
        let mut before = now.clone();
        for round in 0..6 {
            let size = rng.usize(..25);
            let mut source = draw(&mut rng, true, size);
            let nulls_equal = rng.bool();
            let mut seen = BTreeSet::new();
            source.retain(|row| seen.insert(row.0) || row.0.is_none() && !nulls_equal);
            let (made, counts) = expected(&now, &source, nulls_equal);
            let clauses = all_clauses(nulls_equal);
            let report = match rng.bool() {
                true => store.table("t").merge(batch(&source), &clauses, &Default::default()).unwrap(),
                false => {
                    let merged =
                        store.transact(|tx| tx.table("t").merge(batch(&source), &clauses, &Default::default()));
                    merged.unwrap()
                }
            };
            let told = [report.updated, report.deleted, report.inserted];
            assert_eq!(told, counts, "seed {seed} round {round}");
            let found = rows(&store, "t", AsOf::Newest);
            let in_order = |rows: &[Row]| {
                let mut rows = rows.to_vec();
                rows.sort();
                rows
            };
            assert_eq!(in_order(&found), in_order(&made), "seed {seed} round {round}: {now:?} and {source:?}");
            assert!(!(keyed || sorted) || found.is_sorted_by_key(|row| row.0), "seed {seed} round {round}");
            let versions = store.table("t").versions().unwrap();
            if counts != [0; 3] {
                assert_eq!(versions.last().unwrap().kind, VersionKind::Merge);
                let last = AsOf::Version(Version(versions[versions.len() - 2].version.0));
                assert_eq!(rows(&store, "t", last), before, "seed {seed} round {round}: the version before");
            }
            now = found;
            if rng.u8(..3) == 0 {
                store.checkpoint(&Default::default()).unwrap();
            }
            if keyed && rng.bool() {
                // Rows in memory: they are made row groups, and numbered, first.
                let row = (Some(rng.i64(0..60)), Some(1), Some(2));
                store.table("t").upsert(batch(&[row]), &Default::default()).unwrap();
                now.retain(|own| own.0 != row.0);
                now.push(row);
                now.sort_by_key(|row| row.0);
            }
            before = now.clone();
        }
        assert_eq!(store.verify(&Default::default()).unwrap().faults, [], "seed {seed}");
    }
}

#[test]
fn what_cannot_be_merged_is_refused() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    let key = TableOptions { key: vec!["k".into()], ..TableOptions::default() };
    store.table("t").create(batch(&[]).schema(), key).unwrap();
    store.append("t", batch(&[(Some(1), Some(1), Some(1)), (Some(2), Some(2), Some(2))]), &Default::default()).unwrap();
    let source = || batch(&[(Some(1), Some(1), Some(1)), (Some(3), Some(2), Some(2))]);
    let refused = |source: RecordBatch, merge: Merge, kind: ErrorKind, words: &str| {
        let error = store.table("t").merge(source, &merge, &Default::default()).unwrap_err();
        assert!(error.kind() == kind && error.message().contains(words), "{error}");
        assert!(error.message().contains("'t'"), "{error}");
    };
    let twice = batch(&[(Some(7), Some(1), None), (Some(5), None, None), (Some(7), Some(2), None)]);
    refused(twice, upsert(), ErrorKind::InvalidArgument, "rows 0 and 2 of the data have the same k: 7");
    refused(source(), Merge { on: vec!["x".into()], ..upsert() }, ErrorKind::InvalidArgument, "'x' does not exist");
    refused(
        source(),
        Merge { on: vec!["k".into()], ..Merge::default() },
        ErrorKind::InvalidArgument,
        "the merge has no action",
    );
    let lacking = source().project(&[1, 2]).unwrap();
    refused(lacking, upsert(), ErrorKind::SchemaMismatch, "which the data lacks");
    let text: ArrayRef = Arc::new(StringArray::from(vec!["1"]));
    let texts = RecordBatch::try_from_iter([("k", text)]).unwrap();
    refused(texts, upsert(), ErrorKind::SchemaMismatch, "'k'");
    let more = RecordBatch::try_from_iter([
        ("k", Arc::new(Int64Array::from(vec![1])) as ArrayRef),
        ("zzz", Arc::new(Int64Array::from(vec![1]))),
    ]);
    refused(more.unwrap(), upsert(), ErrorKind::SchemaMismatch, "the data has 'zzz', which the table lacks");
    let to_key = Merge { matched: vec![(None, WhenMatched::Update(set(&[("k", "9")])))], ..upsert() };
    refused(source(), to_key, ErrorKind::InvalidArgument, "part of the key");
    let unnamed = Merge { matched: vec![(filter("v > 1"), WhenMatched::Delete)], ..upsert() };
    refused(source(), unnamed, ErrorKind::InvalidArgument, "v");
    let by_source = Merge { not_matched_by_source: vec![(None, WhenMatched::UpdateAll)], ..upsert() };
    refused(source(), by_source, ErrorKind::InvalidArgument, "matches no row of the data");
    // Compared by another column, a row to be added may have a key that is there.
    let by_value = Merge { on: vec!["v".into()], ..upsert() };
    refused(batch(&[(Some(1), Some(50), None)]), by_value, ErrorKind::AlreadyExists, "the key 1");
    let large: Vec<Row> = (0..40).map(|k| (Some(k), None, None)).collect();
    let disk = SimDisk::in_memory();
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let options = drumlin::store::Options { memory_bytes: 256, ..Default::default() };
    let small = drumlin::store::open_on(Arc::new(disk), crate::support::env(&clock, 1, 1), "sim", options).unwrap();
    small.write("t", batch(&[]), &Default::default()).unwrap();
    let error = small.table("t").merge(batch(&large), &upsert(), &Default::default()).unwrap_err();
    assert!(error.message().contains("memory_bytes"), "{error}");
    assert_eq!(store.table("t").versions().unwrap().len(), 2);
}

#[test]
fn floats_match_as_filters_compare() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    let frame = |keys: Vec<Option<f64>>, values: Vec<i64>| {
        let keys: ArrayRef = Arc::new(Float64Array::from(keys));
        let values: ArrayRef = Arc::new(Int64Array::from(values));
        RecordBatch::try_from_iter_with_nullable([("k", keys, true), ("v", values, true)]).unwrap()
    };
    let odd = f64::from_bits(f64::NAN.to_bits() | 5);
    store.write("t", frame(vec![Some(-0.0), Some(odd), None], vec![1, 2, 3]), &Default::default()).unwrap();
    let source = frame(vec![Some(0.0), Some(f64::NAN), None], vec![10, 20, 30]);
    let report = store.table("t").merge(source, &upsert(), &Default::default()).unwrap();
    assert_eq!((report.updated, report.inserted), (2, 1));
    let error = store.table("t").merge(frame(vec![Some(0.0), Some(-0.0)], vec![1, 2]), &upsert(), &Default::default());
    assert!(error.unwrap_err().message().contains("rows 0 and 1 of the data"), "zeros are equal");
}

#[test]
fn only_row_groups_that_may_match_are_read_and_written() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    store.write("t", batch(&[]), &Default::default()).unwrap();
    store
        .transact(|tx| {
            (0..50).try_for_each(|n| {
                let part: Vec<Row> = (n * 100..n * 100 + 100).map(|k| (Some(k), Some(k), None)).collect();
                tx.append("t", batch(&part), &Default::default())
            })
        })
        .unwrap();
    store.close().unwrap();
    let store = open(&disk).unwrap();
    let blocks = || disk.files().into_iter().filter(|(name, _)| name.starts_with("blocks/")).count();
    let before = blocks();
    let source = batch(&[(Some(2050), Some(-1), None), (Some(2051), Some(-2), None)]);
    let report = store.table("t").merge(source, &upsert(), &Default::default()).unwrap();
    assert_eq!((report.updated, report.inserted, blocks() - before), (2, 0, 1));
    let found = rows(&store, "t", AsOf::Newest);
    let at = |key: i64| found.iter().find(|row| row.0 == Some(key)).unwrap().1;
    assert_eq!(([2049, 2050, 2051].map(at), found.len()), ([Some(2049), Some(-1), Some(-2)], 5000));
}

/// A row of the frame that would take the place of one with another key is refused: it cannot keep its place, and must not lose its key.
pub fn rows_of_other_keys_are_refused() -> Checked {
    let rows = |k: i64, v: i64, w: i64| batch(&[(Some(k), Some(v), Some(w))]);
    for (key, sort) in [(true, false), (false, true)] {
        let store = open(&SimDisk::in_memory()).unwrap();
        let table = store.table("t");
        let schema = arrow::datatypes::Schema::new(vec![
            arrow::datatypes::Field::new("k", arrow::datatypes::DataType::Int64, !key),
            arrow::datatypes::Field::new("v", arrow::datatypes::DataType::Int64, true),
            arrow::datatypes::Field::new("w", arrow::datatypes::DataType::Int64, true),
        ]);
        let of = |yes: bool| if yes { vec!["k".to_owned()] } else { Vec::new() };
        let options = TableOptions { key: of(key), sort: of(sort), ..TableOptions::default() };
        table.create(Arc::new(schema), options).unwrap();
        store
            .append("t", batch(&[(Some(1), Some(10), Some(5)), (Some(2), Some(20), Some(5))]), &Default::default())
            .unwrap();
        let by_value = Merge { on: vec!["v".into()], ..upsert() };
        let before = table.versions().unwrap();
        match table.merge(rows(9, 10, 6), &by_value, &Default::default()) {
            Err(e) if e.kind() == ErrorKind::InvalidArgument && e.message().contains("'k'") => {}
            other => return Err(format!("key {key}: {other:?}")),
        }
        assert_eq!(table.versions().unwrap(), before);
        // The same key, or none, is what it was; a row that goes, or that a condition spares, has no key to keep.
        let report = table.merge(rows(1, 10, 6), &by_value, &Default::default()).unwrap();
        assert_eq!((report.updated, report.inserted), (1, 0));
        let without = rows(9, 20, 7).project(&[1, 2]).unwrap();
        let updates = Merge { not_matched: Vec::new(), ..by_value.clone() };
        assert_eq!(table.merge(without, &updates, &Default::default()).unwrap().updated, 1);
        let spared = Merge { matched: vec![(filter("source.w > 100"), WhenMatched::UpdateAll)], ..by_value.clone() };
        assert_eq!(table.merge(rows(9, 10, 6), &spared, &Default::default()).unwrap().updated, 0);
        let goes = Merge { matched: vec![(None, WhenMatched::Delete)], ..by_value };
        assert_eq!(table.merge(rows(9, 10, 6), &goes, &Default::default()).unwrap().deleted, 1);
    }
    Ok(())
}

#[test]
fn a_merge_changes_no_key() {
    rows_of_other_keys_are_refused().unwrap();
}
