//! Tables with a layout: their row groups are sorted by other columns than those in which rows are shown. Whatever changes them, each version
//! shows the same rows in the same order as without; and a filter on the columns of the layout reads few row groups.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use drumlin::base::{ManualClock, Timestamp, Version};
use drumlin::catalog::{Existing, Retention};
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, CheckpointOptions, Options, ReadOptions, TableOptions, UpdateOptions, WriteOptions};
use drumlin::table::{Alter, PlanOptions, ROWS_MAX, ScanOptions};
use drumlin::{
    Aggregate, ErrorKind, Expression, Filter, Function, GroupBy, Merge, Missing, RowLayout, Store, Tables, WhenMatched,
    WhenNotMatched,
};
use fastrand::Rng;

use crate::rows::ordered::{Row, batch, rows};
use crate::seeds;
use crate::support::{ints, open_as, same};

fn some_rows(rng: &mut Rng, next: &mut i64, most: usize) -> Vec<Row> {
    let mut row = |rng: &mut Rng| {
        *next += 1;
        let text = (rng.u8(0..5) > 0).then(|| format!("{}{}", "x".repeat([0, 70][rng.usize(0..2)]), rng.u8(0..9)));
        ((rng.u8(0..6) > 0).then(|| rng.i64(0..40)), text, *next)
    };
    (0..rng.usize(0..=most)).map(|_| row(rng)).collect()
}

fn layout(rng: &mut Rng) -> Option<RowLayout> {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    [
        None,
        Some(RowLayout::Sorted(names(&["a"]))),
        Some(RowLayout::Sorted(names(&["b", "a"]))),
        Some(RowLayout::Curve(names(&["a", "b"]))),
        Some(RowLayout::Curve(names(&["id", "b", "a"]))),
    ][rng.usize(0..5)]
    .clone()
}

fn checkpoint(store: &Store, plan: PlanOptions) {
    let report = store.checkpoint(&CheckpointOptions { plan, ..Default::default() }).unwrap();
    assert!(report.failures.is_empty(), "{:?}", report.failures);
}

/// All that a version shows, by several ways of reading it.
fn check(rng: &mut Rng, store: &Store, path: &str, as_of: &AsOf, expected: &[Row], what: &str) {
    let all = ScanOptions::default();
    let table = store.table(path);
    let read = |scan: ScanOptions| {
        rows(&table.collect(&ReadOptions::of(as_of.clone(), scan)).unwrap_or_else(|e| panic!("{what}: {e}")))
    };
    assert_eq!(read(all.clone()), expected, "{what}: {path} as of {as_of:?}");
    let (offset, limit) = (rng.u64(0..10), rng.u64(0..20));
    let part: Vec<Row> = expected.iter().skip(offset as usize).take(limit as usize).cloned().collect();
    let found = read(ScanOptions { offset, limit: Some(limit), ..all.clone() });
    assert_eq!(found, part, "{what}: {path} as of {as_of:?}, {limit} rows from {offset}");
    let tail = rng.usize(0..20).min(expected.len());
    let found = read(ScanOptions { tail: Some(tail as u64), ..all.clone() });
    assert_eq!(found, &expected[expected.len() - tail..], "{what}: {path} as of {as_of:?}, the last {tail} rows");
    let least = rng.i64(0..40);
    let filter = Some(Filter::parse(&format!("a >= {least} and id % 3 > 0")).unwrap());
    let kept = |row: &&Row| row.0.is_some_and(|a| a >= least) && row.2 % 3 > 0;
    let kept: Vec<Row> = expected.iter().filter(kept).cloned().collect();
    assert_eq!(read(ScanOptions { filter: filter.clone(), ..all.clone() }), kept, "{what}: {path}, from {least} on");
    let first = read(ScanOptions { filter: filter.clone(), limit: Some(3), ..all.clone() });
    assert_eq!(first, &kept[..kept.len().min(3)], "{what}: {path}, the first from {least} on");
    let count = table
        .read(&ReadOptions::of(as_of.clone(), ScanOptions { filter, ..all }))
        .and_then(|scan| scan.count())
        .unwrap();
    assert_eq!(count, kept.len() as u64, "{what}: {path}, how many from {least} on");
}

/// The first, the last and the sum of a column, which are the same in no other order.
fn check_aggregates(store: &Store, path: &str, expected: &[Row], what: &str) {
    let of = |name: &str, function: Function| Aggregate { name: name.into(), function, of: Some("id".into()) };
    for functions in [vec![Function::First, Function::Last, Function::Sum], vec![Function::Max, Function::Sum]] {
        let aggregates = functions.iter().map(|function| of(function.name(), function.clone())).collect();
        let asked = GroupBy { aggregates, ..GroupBy::default() };
        let found = store.scan(path, &Default::default()).unwrap().aggregate(&asked, &Default::default()).unwrap();
        let ids = || expected.iter().map(|row| row.2);
        for function in functions {
            let wanted = match function {
                Function::First => ids().next(),
                Function::Last => ids().next_back(),
                Function::Max => ids().max(),
                _ => ids().reduce(|a, b| a + b),
            };
            let column = found[function.name()].as_primitive::<Int64Type>();
            assert_eq!(column.is_valid(0).then(|| column.value(0)), wanted, "{what}: {function:?} of {path}");
        }
    }
}

#[test]
fn random_tables_show_the_same_whatever_their_layout() {
    seeds::each(0..60, 30, |seed| {
        let mut rng = Rng::with_seed(seed);
        let (disk, clock) = (SimDisk::in_memory(), Arc::new(ManualClock::new(Timestamp(1_000))));
        let open = || {
            let options = Options { inline_bytes: 0, ..Options::default() };
            open_as(&disk, &clock, 2, options).unwrap()
        };
        let mut store = open();
        let keep = [Retention::KeepAll, Retention::KeepLast(1), Retention::KeepLast(3)][rng.usize(0..3)];
        store.set_retention("**", Some(keep)).unwrap();
        let (mut now, mut next): (Vec<Row>, i64) = (Vec::new(), 0);
        let mut versions: BTreeMap<u64, Vec<Row>> = BTreeMap::new();
        let mut held: BTreeMap<String, Vec<Row>> = BTreeMap::new();
        let mut copies: BTreeMap<String, Vec<Row>> = BTreeMap::new();
        let mut indexed = false;
        store.write("t", batch(&[]), &WriteOptions::default()).unwrap();
        versions.insert(0, now.clone());
        for step in 0..rng.usize(8..40) {
            let table = store.table("t");
            let what = format!("step {step}");
            match rng.u8(0..26) {
                0 => {
                    now = some_rows(&mut rng, &mut next, 80);
                    store.write("t", batch(&now), &Default::default()).unwrap();
                }
                1..=6 => {
                    let new = some_rows(&mut rng, &mut next, 40);
                    store.append("t", batch(&new), &Default::default()).unwrap();
                    now.extend(new);
                }
                7 | 8 => {
                    let (by, rest) = (rng.i64(2..8), rng.i64(0..2));
                    table.delete(&format!("id % {by} = {rest}"), &Default::default()).unwrap();
                    now.retain(|row| row.2 % by != rest);
                }
                // A patch, or row groups that are written again.
                9..=11 => {
                    let (by, to) = (rng.i64(1..8), rng.i64(0..40));
                    let set = [("a".to_owned(), Expression::parse(&to.to_string()).unwrap())];
                    table.update(&set, Some(&format!("id % {by} = 0")), &UpdateOptions::default()).unwrap();
                    now.iter_mut().filter(|row| row.2 % by == 0).for_each(|row| row.0 = Some(to));
                }
                12 => {
                    let listed = table.versions().unwrap();
                    if listed.len() > 1 {
                        let gone = listed[rng.usize(0..listed.len())].version;
                        let newest = listed.last().unwrap().version;
                        store.delete_versions(&[("t".into(), vec![gone])], Missing::Refuse).unwrap();
                        if gone == newest {
                            now = versions[&table.versions().unwrap().last().unwrap().version.0].clone();
                        }
                    }
                }
                13 => {
                    let listed = table.versions().unwrap();
                    let version = listed[rng.usize(0..listed.len())].version;
                    store.restore("t", &AsOf::Version(version)).unwrap();
                    now = versions[&version.0].clone();
                }
                14 => {
                    let name = format!("s{}", rng.u8(0..3));
                    if held.remove(&name).is_some() {
                        store.drop_snapshot(&name).unwrap();
                    } else {
                        store.snapshot(&name, "t").unwrap();
                        held.insert(name, now.clone());
                    }
                }
                15 => {
                    let name = format!("c{}", rng.u8(0..2));
                    store.copy("t", &name, &AsOf::Newest, Existing::Replace).unwrap();
                    copies.insert(name, now.clone());
                }
                16 => {
                    match indexed {
                        true => table.drop_index("i").unwrap(),
                        false => {
                            table.create_index("i", &[Expression::parse("id").unwrap()], &Default::default()).unwrap()
                        }
                    }
                    indexed = !indexed;
                }
                17 => {
                    drop(table);
                    drop(store);
                    store = open();
                }
                18 => {
                    let rest = rng.i64(0..30);
                    let filter = Filter::parse(&format!("id = {rest}")).unwrap();
                    store.purge("**", &filter).unwrap().execute(&Default::default()).unwrap();
                    now.retain(|row| row.2 != rest);
                    let all = versions.values_mut().chain(held.values_mut()).chain(copies.values_mut());
                    all.for_each(|rows| rows.retain(|row| row.2 != rest));
                }
                19 | 20 => table.set_layout(layout(&mut rng).as_ref()).unwrap(),
                _ => {
                    let dead_share_min = [0.0, 0.1][rng.usize(0..2)];
                    let budget = [1.0, 1.0, 0.6][rng.usize(0..3)];
                    let group_rows = [ROWS_MAX, 1, 5, 5, 20][rng.usize(0..5)];
                    let plan = PlanOptions { dead_share_min, budget, group_rows, ..PlanOptions::default() };
                    checkpoint(&store, plan);
                    store.reclaim(&Default::default()).unwrap();
                }
            }
            let listed = store.table("t").versions().unwrap();
            versions.insert(listed.last().unwrap().version.0, now.clone());
            for version in listed.iter().map(|version| version.version) {
                check(&mut rng, &store, "t", &AsOf::Version(version), &versions[&version.0], &what);
            }
            for (name, expected) in &held {
                check(&mut rng, &store, "t", &AsOf::Snapshot(name.clone()), expected, &what);
            }
            for (path, expected) in &copies {
                check(&mut rng, &store, path, &AsOf::Newest, expected, &what);
            }
            check_aggregates(&store, "t", &now, &what);
        }
        let faults = store.verify(&Default::default()).unwrap().faults;
        assert!(faults.is_empty(), "{faults:?}");
    });
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// A store with a table of `n` rows in no order, in row groups of ten if a checkpoint writes them again.
fn shuffled(n: i64) -> (Store, Vec<Row>, PlanOptions) {
    let options = Options { inline_bytes: 0, ..Options::default() };
    let store = open_as(&SimDisk::in_memory(), &Arc::new(ManualClock::new(Timestamp(1_000))), 2, options).unwrap();
    let rows: Vec<Row> = (0..n).map(|at| (Some(at * 37 % n), Some((at * 11 % 7).to_string()), at)).collect();
    store.write("t", batch(&rows), &Default::default()).unwrap();
    (store, rows, PlanOptions { group_rows: 10, ..PlanOptions::default() })
}

/// Rows are shown in the order in which they were written, whatever the layout.
pub fn rows_keep_their_places() -> Result<(), String> {
    let (store, expected, plan) = shuffled(100);
    store.table("t").set_layout(Some(&RowLayout::Sorted(names(&["a"])))).unwrap();
    checkpoint(&store, plan);
    let overlap = store.table("t").stat().unwrap().layout.unwrap();
    assert_eq!((overlap.laid_out, overlap.overlap), (10, 0.0));
    same(&rows(&store.table("t").collect(&ReadOptions::default()).unwrap()), &expected, "all rows")
}

/// A version that shows row groups of before an update together with others that were laid out with them.
pub fn older_versions_keep_what_was_laid_out_together() -> Result<(), String> {
    let (store, mut expected, plan) = shuffled(100);
    let table = store.table("t");
    table.set_layout(Some(&RowLayout::Sorted(names(&["a"])))).unwrap();
    checkpoint(&store, plan);
    let first = expected.clone();
    let set = [("b".to_owned(), Expression::parse("'new'").unwrap())];
    table.update(&set, Some("a < 30"), &UpdateOptions::default()).unwrap();
    expected.iter_mut().filter(|row| row.0 < Some(30)).for_each(|row| row.1 = Some("new".into()));
    table.set_layout(Some(&RowLayout::Sorted(names(&["b"])))).unwrap();
    checkpoint(&store, plan);
    let read = |version| {
        let options = ReadOptions::of(AsOf::Version(Version(version)), ScanOptions::default());
        rows(&table.collect(&options).unwrap())
    };
    same(&read(0), &first, "the version before the update")?;
    same(&read(1), &expected, "the version after it")
}

#[test]
fn rules_hold() {
    rows_keep_their_places().unwrap();
    older_versions_keep_what_was_laid_out_together().unwrap();
}

/// How many row groups a filter reads, of how many.
fn read_of(store: &Store, filter: &str) -> (u64, u64) {
    let filter = Some(Filter::parse(filter).unwrap());
    let scan = store.table("t").read(&ReadOptions::of(AsOf::Newest, ScanOptions { filter, ..Default::default() }));
    let plan = scan.unwrap().plan().unwrap();
    (plan.row_groups - plan.pruned, plan.row_groups)
}

#[test]
fn filters_on_the_columns_of_a_layout_read_few_row_groups() {
    let n = 8 * i64::from(ROWS_MAX);
    let options = Options { inline_bytes: 0, ..Options::default() };
    let store = open_as(&SimDisk::in_memory(), &Arc::new(ManualClock::new(Timestamp(1_000))), 2, options).unwrap();
    let table = store.table("t");
    let columns = |from: i64, to: i64| {
        let column = |by: i64| (from..to).map(|at| at * by % n).collect::<Vec<_>>();
        ints(&[("x", column(7919)), ("y", column(104_729)), ("id", (from..to).collect())])
    };
    store.write("t", columns(0, n), &Default::default()).unwrap();
    assert_eq!(table.stat().unwrap().layout, None);
    assert_eq!(read_of(&store, "x < 1000"), (8, 8));
    table.set_layout(Some(&RowLayout::Sorted(names(&["x"])))).unwrap();
    let before = table.stat().unwrap().layout.unwrap();
    assert_eq!((before.laid_out, before.overlap), (0, 7.0));
    // Too small a budget leaves them as they are.
    checkpoint(&store, PlanOptions { budget: 0.5, ..PlanOptions::default() });
    assert_eq!(table.stat().unwrap().layout.unwrap().laid_out, 0);
    checkpoint(&store, PlanOptions { budget: 0.999, ..PlanOptions::default() });
    assert_eq!(table.stat().unwrap().layout.unwrap().laid_out, 0);
    checkpoint(&store, PlanOptions { dead_share_min: 0.2, ..PlanOptions::default() });
    let after = table.stat().unwrap().layout.unwrap();
    assert_eq!((after.laid_out, after.overlap), (8, 0.0));
    assert_eq!((read_of(&store, "x < 1000"), read_of(&store, "y < 1000")), ((1, 8), (8, 8)));
    // What is laid out stays; a little that comes is not worth it, a quarter is.
    let written = |store: &Store| {
        let plan = PlanOptions { dead_share_min: 0.2, ..PlanOptions::default() };
        store.checkpoint(&CheckpointOptions { plan, ..Default::default() }).unwrap().bytes_written
    };
    assert_eq!(written(&store), 0);
    store.append("t", columns(n, n + n / 8), &Default::default()).unwrap();
    assert_eq!((written(&store), read_of(&store, "x < 1000")), (0, (2, 9)));
    store.append("t", columns(n + n / 8, n + n / 4), &Default::default()).unwrap();
    assert!(written(&store) > 0);
    assert_eq!(read_of(&store, "x < 1000"), (1, 10));
    // By both columns: a filter on either reads some.
    table.set_layout(Some(&RowLayout::Curve(names(&["x", "y"])))).unwrap();
    assert!(written(&store) > 0);
    let (by_x, by_y) = (read_of(&store, "x < 1000"), read_of(&store, "y < 1000"));
    assert!(by_x.0 <= 4 && by_y.0 <= 4, "{by_x:?} {by_y:?}");
    let read = table.collect(&ReadOptions::of(AsOf::Newest, ScanOptions { limit: Some(5), ..Default::default() }));
    assert_eq!(read.unwrap()[0]["id"].as_primitive::<Int64Type>().values(), &[0, 1, 2, 3, 4]);
    table.set_layout(None).unwrap();
    assert_eq!((written(&store), table.stat().unwrap().layout), (0, None));
}

fn ids(store: &Store, path: &str) -> Vec<i64> {
    let found = store.table(path).collect(&Default::default()).unwrap();
    found.iter().flat_map(|batch| batch["id"].as_primitive::<Int64Type>().values().to_vec()).collect()
}

#[test]
fn later_columns_count_where_the_first_have_one_value() {
    let (store, .., plan) = shuffled(1);
    // Each row group has one day, and users of all kinds.
    for part in 0..12_i64 {
        let users = (0..10).map(|at| (part * 10 + at) * 7 % 40).collect();
        let rows = ints(&[("day", vec![part / 4; 10]), ("user", users), ("id", (part * 10..part * 10 + 10).collect())]);
        match part {
            0 => store.write("d", rows, &Default::default()).unwrap(),
            _ => store.append("d", rows, &Default::default()).unwrap(),
        };
    }
    store.table("d").set_layout(Some(&RowLayout::Sorted(names(&["day", "user"])))).unwrap();
    checkpoint(&store, plan);
    let layout = store.table("d").stat().unwrap().layout.unwrap();
    assert_eq!((layout.laid_out, layout.overlap), (12, 0.0));
    assert_eq!(ids(&store, "d"), (0..120).collect::<Vec<_>>());
}

#[test]
fn rows_that_get_other_values_are_laid_out_again() {
    let (store, _, plan) = shuffled(100);
    store.set_retention("**", Some(Retention::KeepLast(1))).unwrap();
    let table = store.table("t");
    table.set_layout(Some(&RowLayout::Sorted(names(&["a"])))).unwrap();
    checkpoint(&store, plan);
    let set = [("a".to_owned(), Expression::parse("id * 61 % 100").unwrap())];
    table.update(&set, None, &UpdateOptions::default()).unwrap();
    assert!(table.stat().unwrap().layout.unwrap().overlap > 1.0);
    checkpoint(&store, plan);
    checkpoint(&store, plan);
    assert_eq!(table.stat().unwrap().layout.unwrap().overlap, 0.0);
    assert_eq!(ids(&store, "t"), (0..100).collect::<Vec<_>>());
}

#[test]
fn rows_that_a_merge_writes_apart_come_as_they_were_shown() {
    let (store, _, plan) = shuffled(100);
    let table = store.table("t");
    table.set_layout(Some(&RowLayout::Sorted(names(&["a"])))).unwrap();
    checkpoint(&store, plan);
    let merge = Merge {
        on: names(&["id"]),
        matched: vec![(None, WhenMatched::UpdateAll)],
        not_matched: vec![(None, WhenNotMatched::InsertAll)],
        ..Merge::default()
    };
    let rows: Vec<Row> = [50, 3, 70, 200].map(|id| (Some(id), None, id)).into();
    table.merge(batch(&rows), &merge, &Default::default()).unwrap();
    let moved = [3, 50, 70];
    let expected = (0..100).filter(|id| !moved.contains(id)).chain(moved).chain([200]);
    assert_eq!(ids(&store, "t"), expected.collect::<Vec<_>>());
}

#[test]
fn floats_lie_along_a_curve() {
    let (store, .., plan) = shuffled(1);
    let at = |at: i64| if at % 50 == 0 { f64::NAN } else { (at * 37 % 200) as f64 - 100.0 };
    let column = |values: Vec<f64>| Arc::new(Float64Array::from(values)) as ArrayRef;
    let x = column((0..200).map(at).collect());
    let y = column((0..200).map(|row| at(row * 7 + 3)).collect());
    let id = Arc::new(Int64Array::from_iter_values(0..200)) as ArrayRef;
    store
        .write("f", RecordBatch::try_from_iter([("x", x), ("y", y), ("id", id)]).unwrap(), &Default::default())
        .unwrap();
    let table = store.table("f");
    table.set_layout(Some(&RowLayout::Curve(names(&["x", "y"])))).unwrap();
    checkpoint(&store, plan);
    assert_eq!(table.stat().unwrap().layout.unwrap().laid_out, 20);
    let read = |filter: &str| -> Vec<i64> {
        let filter = Some(Filter::parse(filter).unwrap());
        let found =
            table.collect(&ReadOptions::of(AsOf::Newest, ScanOptions { filter, ..Default::default() })).unwrap();
        found.iter().flat_map(|batch| batch["id"].as_primitive::<Int64Type>().values().to_vec()).collect()
    };
    // NaN is greater than all numbers.
    let kept = (0..200).filter(|row| (at(*row) > -20.0 || at(*row).is_nan()) && at(row * 7 + 3) < 50.0);
    assert_eq!(read("x > -20 and y < 50"), kept.collect::<Vec<_>>());
    assert_eq!(read("id >= 0"), (0..200).collect::<Vec<_>>());
}

#[test]
fn a_layout_that_rows_cannot_have_is_refused() {
    let (store, ..) = shuffled(10);
    let keyed = TableOptions { key: names(&["id"]), ..TableOptions::default() };
    store.table("k").create(batch(&[]).schema(), keyed).unwrap();
    let sorted = TableOptions { sort: names(&["a"]), ..TableOptions::default() };
    store.table("s").create(batch(&[]).schema(), sorted).unwrap();
    let by = |columns: &[&str]| RowLayout::Sorted(names(columns));
    let along = |columns: &[&str]| RowLayout::Curve(names(columns));
    let (seq, many) = (store.seq().unwrap(), ["a"; 17]);
    for (path, layout, message) in [
        ("k", by(&["a"]), "the table has the key 'id'"),
        ("s", by(&["b"]), "the table is sorted by 'a'"),
        ("t", by(&[]), "a layout has 0 columns; expected 1 to 16"),
        ("t", by(&many), "a layout has 17 columns"),
        ("t", by(&["a", "a"]), "named twice"),
        ("t", by(&["c"]), "layout column 'c' does not exist; the columns are 'a', 'b', 'id'"),
        ("t", along(&["a"]), "a Z-order has 1 columns; expected 2 to 4"),
        ("t", along(&many[..5]), "a Z-order has 5 columns"),
    ] {
        let error = store.table(path).set_layout(Some(&layout)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.message().contains(message) && error.message().contains(path), "{error}");
    }
    let missing = store.table("none").set_layout(None).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound, "{missing}");
    assert_eq!(store.seq().unwrap(), seq);
    // The same again is no change.
    store.table("t").set_layout(Some(&by(&["a"]))).unwrap();
    let seq = store.seq().unwrap();
    store.table("t").set_layout(Some(&by(&["a"]))).unwrap();
    assert_eq!(store.seq().unwrap(), seq);
}

#[test]
fn a_layout_goes_with_its_table_and_its_columns() {
    let (store, expected, plan) = shuffled(60);
    let layout = |store: &Store, path: &str| store.table(path).stat().unwrap().layout.map(|stat| stat.layout);
    let set = |columns: &[&str]| RowLayout::Sorted(names(columns));
    let tx = store.transaction().unwrap();
    tx.table("t").set_layout(Some(&set(&["a"]))).unwrap();
    assert_eq!(layout(&store, "t"), None);
    tx.commit().unwrap();
    checkpoint(&store, plan);
    store.table("t").alter(&Alter::Rename(vec![("a".into(), "z".into())]), &Default::default()).unwrap();
    assert_eq!(layout(&store, "t"), Some(set(&["z"])));
    store.copy("t", "copy", &AsOf::Newest, Existing::Refuse).unwrap();
    store.relocate("t", "moved", Existing::Refuse).unwrap();
    let other = Store::memory().unwrap();
    store.copy_to(&other, "**", &Default::default()).unwrap();
    for (store, path) in [(&store, "copy"), (&store, "moved"), (&other, "copy"), (&other, "moved")] {
        assert_eq!(layout(store, path), Some(set(&["z"])), "{path}");
        checkpoint(store, plan);
        let found = store.table(path).collect(&Default::default()).unwrap();
        let ids: Vec<i64> =
            found.iter().flat_map(|batch| batch["id"].as_primitive::<Int64Type>().values().to_vec()).collect();
        assert_eq!(ids, expected.iter().map(|row| row.2).collect::<Vec<_>>(), "{path}");
        assert!(store.verify(&Default::default()).unwrap().faults.is_empty());
    }
    // Without its column a table has no layout.
    let table = store.table("moved");
    table.alter(&Alter::Drop(names(&["z"])), &Default::default()).unwrap();
    assert_eq!(layout(&store, "moved"), None);
    checkpoint(&store, plan);
    let found = table.collect(&ReadOptions::default()).unwrap();
    assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), expected.len());
}
