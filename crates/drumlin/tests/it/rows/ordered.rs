//! Tables with a sort order: rows come shuffled, equal, null, in many frames, and more than fit into memory at a time; they are read
//! in order, and what is read for a few of them is counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use drumlin::base::{ManualClock, Timestamp, Version};
use drumlin::catalog::Retention;
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, CheckpointOptions, Frame, Options, ReadOptions, TableOptions, UpdateOptions, WriteOptions};
use drumlin::table::{PlanOptions, ROWS_MAX, ScanOptions};
use drumlin::{Expression, Filter, MetricValue, Missing, Store, Tables, metrics};
use fastrand::Rng;

use crate::seeds;
use crate::support::{Checked, ints, open, open_as, same};

/// A row: two columns by which rows are sorted, or laid out, and one that tells it from others.
pub type Row = (Option<i64>, Option<String>, i64);

pub fn batch(rows: &[Row]) -> RecordBatch {
    let a: Int64Array = rows.iter().map(|row| row.0).collect();
    let b: StringArray = rows.iter().map(|row| row.1.as_deref()).collect();
    let id: Int64Array = rows.iter().map(|row| Some(row.2)).collect();
    let columns = [("a", Arc::new(a) as ArrayRef), ("b", Arc::new(b) as ArrayRef), ("id", Arc::new(id) as ArrayRef)];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
}

pub fn rows(batches: &[RecordBatch]) -> Vec<Row> {
    let of_one = |batch: &RecordBatch| -> Vec<Row> {
        let (a, b) = (batch["a"].as_primitive::<Int64Type>(), batch["b"].as_string::<i32>());
        let id = batch["id"].as_primitive::<Int64Type>();
        let row = |at: usize| {
            (a.is_valid(at).then(|| a.value(at)), b.is_valid(at).then(|| b.value(at).to_owned()), id.value(at))
        };
        (0..batch.num_rows()).map(row).collect()
    };
    batches.iter().flat_map(of_one).collect()
}

/// As a table shows them: nulls first, equal rows as they came.
fn in_order(rows: &[Row], by: usize) -> Vec<Row> {
    let mut rows = rows.to_vec();
    match by {
        1 => rows.sort_by_key(|row| row.0),
        _ => rows.sort_by(|x, y| (x.0, &x.1).cmp(&(y.0, &y.1))),
    }
    rows
}

/// Rows in no order, many of them equal; long texts are longer than what a bound keeps.
fn some_rows(rng: &mut Rng, next: &mut i64, most: usize) -> Vec<Row> {
    let (wide, start) = (rng.i64(1..40), rng.i64(0..3) * 10);
    let text = |rng: &mut Rng| match rng.u8(0..5) {
        0 => None,
        1 => Some(format!("{}{}", "x".repeat(70), rng.u8(0..4))),
        _ => Some(rng.u8(0..6).to_string()),
    };
    let mut row = |rng: &mut Rng| {
        *next += 1;
        ((rng.u8(0..6) > 0).then(|| start + rng.i64(0..wide)), text(rng), *next)
    };
    let n = rng.usize(0..=most);
    let mut rows: Vec<Row> = (0..n).map(|_| row(rng)).collect();
    if rng.u8(0..3) == 0 {
        rows = in_order(&rows, 2);
    }
    rows
}

/// In batches of any size.
fn frame(rng: &mut Rng, rows: &[Row]) -> Frame<'static> {
    let (mut batches, mut rest) = (Vec::new(), rows);
    while !rest.is_empty() {
        let (some, others) = rest.split_at(rng.usize(0..=rest.len()));
        batches.push(Ok(batch(some)));
        rest = others;
    }
    Frame::new(batch(&[]).schema(), batches.into_iter())
}

fn sorted_by(columns: &[&str]) -> WriteOptions {
    WriteOptions { sort: Some(columns.iter().map(|name| (*name).to_owned()).collect()), ..WriteOptions::default() }
}

fn set(pairs: &[(&str, &str)]) -> Vec<(String, Expression)> {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), Expression::parse(text).unwrap())).collect()
}

/// A store whose memory is so small that frames are sorted in many parts.
fn store_with(memory_bytes: u64) -> Store {
    let options = Options { inline_bytes: 0, memory_bytes, ..Options::default() };
    open_as(&SimDisk::in_memory(), &Arc::new(ManualClock::new(Timestamp(1_000))), 2, options).unwrap()
}

fn read(store: &Store, as_of: AsOf, scan: ScanOptions) -> Vec<Row> {
    rows(&store.table("t").collect(&ReadOptions::of(as_of, scan)).unwrap_or_else(|e| panic!("{e}")))
}

/// All that a version shows, by several ways of reading it.
fn check(rng: &mut Rng, store: &Store, version: Version, expected: &[Row], what: &str) {
    let all = ScanOptions::default();
    let read = |scan: ScanOptions| read(store, AsOf::Version(version), scan);
    assert_eq!(read(all.clone()), expected, "{what}: version {version}");
    let (offset, limit) = (rng.u64(0..10), rng.u64(0..20));
    let part: Vec<Row> = expected.iter().skip(offset as usize).take(limit as usize).cloned().collect();
    let found = read(ScanOptions { offset, limit: Some(limit), ..all.clone() });
    assert_eq!(found, part, "{what}: version {version}, {limit} rows from {offset}");
    let tail = rng.usize(0..20).min(expected.len());
    let found = read(ScanOptions { tail: Some(tail as u64), ..all.clone() });
    assert_eq!(found, &expected[expected.len() - tail..], "{what}: version {version}, the last {tail} rows");
    let least = rng.i64(0..40);
    let filter = Some(Filter::parse(&format!("a >= {least} and id % 3 > 0")).unwrap());
    let kept = |row: &&Row| row.0.is_some_and(|a| a >= least) && row.2 % 3 > 0;
    let kept: Vec<Row> = expected.iter().filter(kept).cloned().collect();
    assert_eq!(read(ScanOptions { filter, ..all }), kept, "{what}: version {version}, from {least} on");
}

#[test]
fn random_sorted_tables_are_read_in_order() {
    seeds::each(0..40, 20, |seed| {
        let mut rng = Rng::with_seed(seed);
        let by = 1 + seed as usize % 2;
        let sort = sorted_by(&["a", "b"][..by]);
        // Some row groups have many rows, some a few.
        let store = store_with([1 << 30, 1 << 14, 1 << 11][rng.usize(0..3)]);
        let keep = [Retention::KeepAll, Retention::KeepLast(1), Retention::KeepLast(3)][rng.usize(0..3)];
        store.set_retention("**", Some(keep)).unwrap();
        let (mut now, mut next): (Vec<Row>, i64) = (Vec::new(), 0);
        let mut versions: BTreeMap<u64, Vec<Row>> = BTreeMap::new();
        let new = some_rows(&mut rng, &mut next, 60);
        store.write("t", frame(&mut rng, &new), &sort).unwrap();
        now.extend(new);
        versions.insert(0, now.clone());
        for step in 0..rng.usize(5..30) {
            let table = store.table("t");
            match rng.u8(0..16) {
                0 => {
                    now = some_rows(&mut rng, &mut next, 80);
                    store.write("t", frame(&mut rng, &now), &Default::default()).unwrap();
                }
                1..=6 => {
                    let new = some_rows(&mut rng, &mut next, 40);
                    store.append("t", frame(&mut rng, &new), &Default::default()).unwrap();
                    now.extend(new);
                }
                7 | 8 => {
                    let (by, rest) = (rng.i64(2..8), rng.i64(0..2));
                    table.delete(&format!("id % {by} = {rest}"), &Default::default()).unwrap();
                    now.retain(|row| row.2 % by != rest);
                }
                9 | 10 => {
                    let to = rng.i64(0..1000);
                    let by = rng.i64(2..8);
                    let values = set(&[("id", &format!("id + {by} * {to}"))]);
                    table.update(&values, Some(&format!("id % {by} = 0")), &UpdateOptions::default()).unwrap();
                    now.iter_mut().filter(|row| row.2 % by == 0).for_each(|row| row.2 += by * to);
                    next += 8000;
                }
                11 => {
                    let listed = table.versions().unwrap();
                    if listed.len() > 1 {
                        let gone = listed[rng.usize(0..listed.len() - 1)].version;
                        store.delete_versions(&[("t".into(), vec![gone])], Missing::Refuse).unwrap();
                    }
                }
                _ => {
                    let dead_share_min = [0.0, 0.1][rng.usize(0..2)];
                    let budget = [1.0, 1.0, 0.3][rng.usize(0..3)];
                    let plan = PlanOptions { dead_share_min, budget, ..PlanOptions::default() };
                    store.checkpoint(&CheckpointOptions { plan, ..Default::default() }).unwrap();
                    store.reclaim(&Default::default()).unwrap();
                }
            }
            let listed = table.versions().unwrap();
            versions.insert(listed.last().unwrap().version.0, now.clone());
            for version in listed.iter().map(|version| version.version) {
                let expected = in_order(&versions[&version.0], by);
                check(&mut rng, &store, version, &expected, &format!("step {step}"));
            }
        }
        let faults = store.verify(&Default::default()).unwrap().faults;
        assert!(faults.is_empty(), "{faults:?}");
    });
}

/// Integers in no order: each of `0..n` once.
fn shuffled(n: i64) -> Vec<i64> {
    let mut numbers: Vec<i64> = (0..n).collect();
    Rng::with_seed(7).shuffle(&mut numbers);
    numbers
}

/// How a table is read: the rows of each batch, how many row groups a filter leaves, and how many are read for the first rows.
fn costs(store: &Store, path: &str, filter: &str) -> (Vec<usize>, u64, u64) {
    let scan = |scan: ScanOptions| ReadOptions::from(scan);
    let table = store.table(path);
    let columns = Some(vec!["v".to_owned()]);
    let batches = table.read(&scan(ScanOptions { columns, ..ScanOptions::default() })).unwrap();
    let batches = batches.map(|batch| batch.unwrap().num_rows()).collect();
    let filter = Some(Filter::parse(filter).unwrap());
    let plan = table.read(&scan(ScanOptions { filter, ..ScanOptions::default() })).unwrap().plan().unwrap();
    let count = || {
        let all = metrics(store).unwrap();
        let read = all.iter().find(|metric| metric.name == "drumlin_read_row_groups_total").unwrap();
        if let MetricValue::Counter(groups) = read.value { groups } else { unreachable!("a counter") }
    };
    let before = count();
    let first = table.collect(&scan(ScanOptions { limit: Some(5), ..ScanOptions::default() })).unwrap();
    assert_eq!(first.iter().map(RecordBatch::num_rows).sum::<usize>(), 5);
    (batches, plan.row_groups - plan.pruned, count() - before)
}

const FULL: usize = ROWS_MAX as usize;

/// A frame is sorted as a whole, so its row groups lie one after the other.
pub fn frames_are_sorted_as_a_whole() -> Checked {
    let n = 3 * i64::from(ROWS_MAX) + 1000;
    let ties: Vec<i64> = shuffled(n).into_iter().map(|i| i / 1000).collect();
    let rows = ints(&[("ts", ties), ("v", (0..n).collect())]);
    let expected = (vec![FULL, FULL, FULL, 1000], 1, 1);
    // In one part, and in many.
    for memory_bytes in [1 << 30, 8 << 20] {
        let store = store_with(memory_bytes);
        let mut batches = Vec::new();
        for at in (0..rows.num_rows()).step_by(10_000) {
            batches.push(Ok(rows.slice(at, 10_000.min(rows.num_rows() - at))));
        }
        let frame = |batches: &[drumlin::Result<RecordBatch>]| {
            let batches: Vec<_> = batches.iter().flatten().cloned().map(Ok).collect();
            Frame::new(rows.schema(), batches.into_iter())
        };
        let schema = rows.schema();
        store.write("written", frame(&batches), &sorted_by(&["ts"])).unwrap();
        store.write("appended", RecordBatch::new_empty(schema), &sorted_by(&["ts"])).unwrap();
        store.append("appended", frame(&batches), &Default::default()).unwrap();
        store.write("replaced", rows.slice(0, 10), &sorted_by(&["ts"])).unwrap();
        store.table("replaced").replace_where(frame(&batches), "v >= 0", &Default::default()).unwrap();
        let unique = ints(&[("ts", shuffled(n)), ("v", (0..n).collect())]);
        let key = TableOptions { key: vec!["ts".into()], ..TableOptions::default() };
        store.table("keyed").create(unique.schema(), key).unwrap();
        let parts: Vec<drumlin::Result<RecordBatch>> = (0..unique.num_rows())
            .step_by(10_000)
            .map(|at| Ok(unique.slice(at, 10_000.min(unique.num_rows() - at))))
            .collect();
        store.table("keyed").upsert(frame(&parts), &Default::default()).unwrap();
        for path in ["written", "appended", "replaced"] {
            same(&costs(&store, path, "ts = 100"), &expected, &format!("{path}, {memory_bytes} bytes of memory"))?;
            let batches = store.table(path).collect(&ReadOptions::default()).unwrap();
            let column = |name: &str| -> Vec<i64> {
                batches.iter().flat_map(|batch| batch[name].as_primitive::<Int64Type>().values().to_vec()).collect()
            };
            let read: Vec<(i64, i64)> = column("ts").into_iter().zip(column("v")).collect();
            // Equal rows stay in the order in which they came.
            if !read.is_sorted() || read.len() as i64 != n {
                return Err(format!("{path}, {memory_bytes} bytes of memory: not in order"));
            }
        }
        let (batches, left, first) = costs(&store, "keyed", "ts = 100");
        same(&(batches.len(), left, first), &(4, 1, 1), &format!("keyed, {memory_bytes} bytes of memory"))?;
    }
    Ok(())
}

/// Rows in order of two columns are read as they lie, though the first is equal where row groups touch; and rows that only seem so are
/// merged.
pub fn row_groups_that_touch_are_told_apart() -> Checked {
    let n = 4 * i64::from(ROWS_MAX);
    let rows = ints(&[
        ("day", (0..n).map(|i| i / 1000).collect()),
        ("sym", (0..n).map(|i| i % 1000).collect()),
        ("v", (0..n).collect()),
    ]);
    let store = open(&SimDisk::in_memory()).unwrap();
    store.write("day", rows.clone(), &sorted_by(&["day"])).unwrap();
    store.write("both", rows.clone(), &sorted_by(&["day", "sym"])).unwrap();
    for path in ["day", "both"] {
        same(&costs(&store, path, "day = 0"), &(vec![FULL; 4], 1, 1), path)?;
    }
    // One value only, or none, in the first column.
    for (path, day) in [("equal", Some(7)), ("null", None)] {
        let day: ArrayRef = Arc::new((0..n).map(|_| day).collect::<Int64Array>());
        let other = ints(&[("sym", shuffled(n)), ("v", (0..n).collect())]);
        let columns = [("day", day), ("sym", other["sym"].clone()), ("v", other["v"].clone())];
        let rows =
            RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap();
        store.write(path, rows, &sorted_by(&["day", "sym"])).unwrap();
        same(&costs(&store, path, "sym = 0"), &(vec![FULL; 4], 1, 1), path)?;
    }
    // One that begins with the day with which the one before ends, but before its last row.
    let two = |rows: [(i64, i64); 3]| {
        ints(&[
            ("day", rows.map(|row| row.0).into()),
            ("sym", rows.map(|row| row.1).into()),
            ("v", rows.map(|row| row.1).into()),
        ])
    };
    store.write("two", two([(0, 1), (5, 30), (5, 50)]), &sorted_by(&["day", "sym"])).unwrap();
    store.append("two", two([(5, 20), (5, 40), (9, 60)]), &Default::default()).unwrap();
    let shown = store.table("two").collect(&ReadOptions::default()).unwrap();
    let v: Vec<i64> = shown.iter().flat_map(|batch| batch["v"].as_primitive::<Int64Type>().values().to_vec()).collect();
    same(&v, &vec![1, 20, 30, 40, 50, 60], "rows among those of the same day")?;
    // What comes later belongs among the last rows of a day that is there.
    let (day, sym) = (i64::from(ROWS_MAX) / 1000, i64::from(ROWS_MAX) % 1000);
    let late = ints(&[("day", vec![day, day]), ("sym", vec![sym - 1, sym + 1]), ("v", vec![-1, -2])]);
    store.append("both", late, &Default::default()).unwrap();
    let batches = store.table("both").collect(&ReadOptions::default()).unwrap();
    let v: Vec<i64> =
        batches.iter().flat_map(|batch| batch["v"].as_primitive::<Int64Type>().values().to_vec()).collect();
    let at = ROWS_MAX as usize;
    same(
        &v[at - 2..at + 5].to_vec(),
        &[at - 2, at - 1]
            .map(|at| at as i64)
            .into_iter()
            .chain([-1, at as i64, at as i64 + 1, -2, at as i64 + 2])
            .collect(),
        "late rows",
    )?;
    same(&store.verify(&Default::default()).unwrap().faults, &Vec::new(), "faults")
}

/// Checkpoints merge row groups that overlap, until no more than two do, and keep what versions show.
pub fn overlapping_row_groups_are_merged() -> Checked {
    let full = i64::from(ROWS_MAX);
    // Many frames over the same range, with a few rows and with more than a row group of them; and in one that comes late.
    for (keep, n) in
        [(Retention::KeepLast(1), 30_000), (Retention::KeepAll, 30_000), (Retention::KeepLast(1), full + 20_000)]
    {
        let what = format!("{keep:?}, {n} rows each");
        let store = open(&SimDisk::in_memory()).unwrap();
        store.set_retention("**", Some(keep)).unwrap();
        let mut expected: Vec<(i64, i64)> = Vec::new();
        for part in 0..5 {
            let ts: Vec<i64> = (0..n).map(|i| i / 10 * 8 + part).collect();
            let v: Vec<i64> = (0..n).map(|i| part * n + i).collect();
            expected.extend(ts.iter().copied().zip(v.iter().copied()));
            let rows = ints(&[("ts", ts), ("v", v)]);
            match part {
                0 => drop(store.write("t", rows, &sorted_by(&["ts"])).unwrap()),
                _ => drop(store.append("t", rows, &Default::default()).unwrap()),
            }
        }
        expected.sort_unstable();
        store.table("t").delete("v % 1000 = 3", &Default::default()).unwrap();
        expected.retain(|(_, v)| v % 1000 != 3);
        let read = |as_of: AsOf| {
            let batches = store.table("t").collect(&ReadOptions { as_of, ..ReadOptions::default() }).unwrap();
            let column = |name: &str| -> Vec<i64> {
                batches.iter().flat_map(|batch| batch[name].as_primitive::<Int64Type>().values().to_vec()).collect()
            };
            column("ts").into_iter().zip(column("v")).collect::<Vec<(i64, i64)>>()
        };
        store.checkpoint(&Default::default()).unwrap();
        let versions = store.table("t").versions().unwrap();
        let first = versions[0].version;
        if read(AsOf::Newest) != expected {
            return Err(format!("{what}: other rows, or in another order"));
        }
        if matches!(keep, Retention::KeepAll) {
            same(&read(AsOf::Version(first)), &(0..n).map(|i| (i / 10 * 8, i)).collect(), &what)?;
        }
        let (batches, left, first) = costs(&store, "t", "ts >= 16000 and ts < 16008");
        same(
            &(left <= 2, first <= 2),
            &(true, true),
            &format!("{what}: {left} row groups of a range, {first} of the first rows"),
        )?;
        same(&batches.iter().all(|rows| *rows <= FULL), &true, &format!("{what}: {batches:?}"))?;
        // Nothing is left to do.
        let report = store.checkpoint(&Default::default()).unwrap();
        same(&(report.tables, report.bytes_written), &(0, 0), &what)?;
        same(&store.verify(&Default::default()).unwrap().faults, &Vec::new(), &what)?;
    }
    // Frames that come in order, and a few rows that come late: no more than the others are written again.
    let store = open(&SimDisk::in_memory()).unwrap();
    let frame = |from: i64, n: i64| {
        ints(&[("ts", (from..from + n).collect()), ("v", (from..from + n).map(|i| i * 7919 % 100_003).collect())])
    };
    store.write("t", frame(0, full), &sorted_by(&["ts"])).unwrap();
    (1..8).for_each(|at| drop(store.append("t", frame(at * full, full), &Default::default()).unwrap()));
    for _ in 0..4 {
        store.append("t", frame(full + 500, 100), &Default::default()).unwrap();
    }
    same(&store.table("t").stat().unwrap().row_groups, &12, "before")?;
    store.checkpoint(&Default::default()).unwrap();
    same(&store.table("t").stat().unwrap().row_groups, &9, "late rows are merged with each other")?;
    let (_, left, first) = costs(&store, "t", "ts = 5");
    same(&(left, first), &(1, 1), "row groups of the first rows")
}

/// Row groups that overlap in a chain are merged as they are needed: the first rows decode those that they lie among, batches are of
/// ordinary size, and equal rows stay in the order in which they were written.
pub fn what_overlaps_is_merged_as_it_is_needed() -> Checked {
    const PARTS: i64 = 12;
    const DEEP: i64 = 4;
    let store = open(&SimDisk::in_memory()).unwrap();
    let (mut expected, mut written) = (Vec::new(), 0);
    store.write("t", ints(&[("ts", vec![]), ("v", vec![])]), &sorted_by(&["ts"])).unwrap();
    // Each reaches into the next; those that begin later are written first.
    for _ in 0..DEEP {
        for part in (0..PARTS).rev() {
            let ts: Vec<i64> = (0..150).map(|i| (part * 100 + i) / 5).collect();
            let v: Vec<i64> = (written..).take(ts.len()).collect();
            written += ts.len() as i64;
            expected.extend(ts.iter().copied().zip(v.iter().copied()));
            store.append("t", ints(&[("ts", ts), ("v", v)]), &Default::default()).unwrap();
        }
    }
    expected.sort_unstable();
    let read = |scan: ScanOptions| -> Vec<(i64, i64)> {
        let options = ReadOptions::from(scan);
        let table = store.table("t");
        let batches: Vec<RecordBatch> = table.read(&options).unwrap().map(Result::unwrap).collect();
        let at_once = table.collect(&options).unwrap();
        let rows = |batches: &[RecordBatch]| -> Vec<(i64, i64)> {
            let column = |batch: &RecordBatch, name: &str| batch[name].as_primitive::<Int64Type>().values().to_vec();
            batches.iter().flat_map(|batch| column(batch, "ts").into_iter().zip(column(batch, "v"))).collect()
        };
        assert_eq!(rows(&batches), rows(&at_once));
        rows(&batches)
    };
    let stat = store.table("t").stat().unwrap();
    same(&stat.row_groups, &((PARTS * DEEP) as u64), "row groups")?;
    same(&read(ScanOptions::default()), &expected, "all rows")?;
    for (offset, limit) in [(0, 1), (0, 5), (3, 200), (190, 7), (0, 100_000), (7000, 500)] {
        let scan = ScanOptions { offset, limit: Some(limit), ..ScanOptions::default() };
        let wanted: Vec<_> = expected.iter().copied().skip(offset as usize).take(limit as usize).collect();
        same(&read(scan), &wanted, &format!("{limit} rows from {offset} on"))?;
    }
    let tail = read(ScanOptions { tail: Some(77), ..ScanOptions::default() });
    same(&tail, &expected[expected.len() - 77..].to_vec(), "the last rows")?;
    let filter = Some(Filter::parse("v % 7 = 3 and ts > 20").unwrap());
    let some: Vec<_> = expected.iter().copied().filter(|(ts, v)| v % 7 == 3 && *ts > 20).collect();
    same(&read(ScanOptions { filter, ..ScanOptions::default() }), &some, "with a filter")?;
    let (batches, _, first) = costs(&store, "t", "ts = 3");
    same(&batches, &vec![expected.len()], "batches")?;
    // Four begin with the first row; one or two more are decoded ahead.
    match first <= DEEP as u64 + 2 {
        true => Ok(()),
        false => Err(format!("the first rows decode {first} row groups")),
    }
}

/// A transaction that has found rows deletes them where they are, though they were merged with others since.
pub fn rows_are_found_after_a_merge() -> Checked {
    let store = open(&SimDisk::in_memory()).unwrap();
    store.write("t", ints(&[("a", vec![1, 3, 5, 5]), ("v", vec![0, 1, 2, 3])]), &sorted_by(&["a"])).unwrap();
    for part in 1..4 {
        let rows = ints(&[("a", vec![0, 3, 4, 5, 9]), ("v", (0..5).map(|i| part * 10 + i).collect())]);
        store.append("t", rows, &Default::default()).unwrap();
    }
    let shows = |as_of: AsOf| -> Vec<i64> {
        let batches = store.table("t").collect(&ReadOptions { as_of, ..ReadOptions::default() }).unwrap();
        batches.iter().flat_map(|batch| batch["v"].as_primitive::<Int64Type>().values().to_vec()).collect()
    };
    let before = shows(AsOf::Newest);
    let tx = store.transaction().unwrap();
    tx.table("t").delete("v % 3 = 1", &Default::default()).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    same(&store.table("t").stat().unwrap().row_groups, &1, "row groups")?;
    same(&shows(AsOf::Newest), &before, "after the checkpoint")?;
    tx.commit().map_err(|e| e.to_string())?;
    same(&shows(AsOf::Newest), &before.iter().copied().filter(|v| v % 3 != 1).collect(), "after the transaction")?;
    same(&shows(AsOf::Version(Version(3))), &before, "the version before")
}

#[test]
fn rules_hold() {
    overlapping_row_groups_are_merged().unwrap();
    rows_are_found_after_a_merge().unwrap();
    frames_are_sorted_as_a_whole().unwrap();
    what_overlaps_is_merged_as_it_is_needed().unwrap();
    row_groups_that_touch_are_told_apart().unwrap();
}
