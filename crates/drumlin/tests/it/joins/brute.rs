//! Random joins, compared with a search of all rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::array::{Int32Array, TimestampMillisecondArray};
use arrow::compute::concat_batches;
use arrow::datatypes::Int64Type;
use drumlin::store::{CheckpointOptions, DatasetOptions, TableOptions};
use drumlin::table::ScanOptions;
use drumlin::{
    Aggregate, AsofJoin, Direction, Distance, Filter, Function, JoinKind, JoinOptions, Store, Tables, WindowJoin,
};

use crate::seeds;
use crate::support::Checked;

/// A row: its time, a column that may have to be equal, and its number.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row {
    t: Option<i64>,
    k: Option<i64>,
    v: i64,
}

/// The rows of a table in their order, and its name.
type Rows = Vec<(String, Vec<Row>)>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Layout {
    Plain,
    Sorted,
    Keyed,
}

struct Sides {
    store: Store,
    rng: fastrand::Rng,
    next: i64,
    /// Times are microseconds on the left and milliseconds on the right, or plain numbers.
    times: bool,
}

impl Sides {
    fn batch(&self, rows: &[Row], side: &str) -> RecordBatch {
        let t: ArrayRef = match (self.times, side) {
            (false, _) => Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.t))),
            (true, "l") => {
                Arc::new(TimestampMicrosecondArray::from_iter(rows.iter().map(|row| row.t.map(|t| t * 1000))))
            }
            (true, _) => Arc::new(TimestampMillisecondArray::from_iter(rows.iter().map(|row| row.t))),
        };
        let k: ArrayRef = match side {
            "l" => Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.k))),
            _ => Arc::new(Int32Array::from_iter(rows.iter().map(|row| row.k.map(|k| k as i32)))),
        };
        let v: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.v)));
        RecordBatch::try_from_iter_with_nullable([("t", t, true), ("k", k, true), ("v", v, true)]).unwrap()
    }

    /// Of the times from `first` on.
    fn rows(&mut self, count: usize, layout: Layout, (first, span): (i64, i64)) -> Vec<Row> {
        let rows = (0..count).map(|_| {
            self.next += 1;
            let keyed = layout == Layout::Keyed;
            let null = |rng: &mut fastrand::Rng| !keyed && rng.u8(..8) == 0;
            let t = (!null(&mut self.rng)).then(|| self.rng.i64(first..=first + span));
            // Keys are unique by this.
            let t = if keyed { t.map(|t| t * 1000 + self.next) } else { t };
            Row { t, k: (!null(&mut self.rng)).then(|| self.rng.i64(0..3)), v: self.next }
        });
        rows.collect()
    }

    /// Some tables of a side, each written in some calls, and what they show.
    fn side(&mut self, side: &str, layout: Layout, names: &[&str]) -> Rows {
        let mut all = Vec::new();
        for name in names {
            let path = format!("{side}/{name}");
            let mut shown: Vec<Row> = Vec::new();
            let options = TableOptions {
                key: if layout == Layout::Keyed { vec!["t".to_owned()] } else { Vec::new() },
                sort: if layout == Layout::Sorted { vec!["t".to_owned()] } else { Vec::new() },
                ..Default::default()
            };
            let table = self.store.table(&path);
            table.create(self.batch(&[], side).schema(), options).unwrap();
            // Row groups that touch each other at their ends, or lie across each other.
            let (in_order, span) = (self.rng.bool(), *self.rng.choice(&[6, 40]).unwrap());
            for part in 0..self.rng.i64(0..5) {
                let count = self.rng.usize(1..25);
                let rows = self.rows(count, layout, if in_order { (part * span, span) } else { (0, 29) });
                match layout == Layout::Keyed && self.rng.bool() {
                    true => table.upsert(self.batch(&rows, side), &Default::default()).map(drop).unwrap(),
                    false => table.append(self.batch(&rows, side), &Default::default()).map(drop).unwrap(),
                }
                shown.extend(rows);
                if self.rng.u8(..4) == 0 {
                    self.store.checkpoint(&CheckpointOptions::default()).unwrap();
                }
            }
            if layout != Layout::Plain {
                shown.sort_by_key(|row| row.t);
            }
            all.push(((*name).to_owned(), shown));
        }
        all
    }
}

/// What is near a row among others, in their order.
fn nearest(row: &Row, others: &[Row], asof: &AsofJoin, tolerance: Option<i64>) -> Option<Row> {
    let at = row.t?;
    let allowed = |other: &&Row| {
        let Some(t) = other.t else { return false };
        (asof.allow_exact || t != at) && tolerance.is_none_or(|most| (t - at).abs() <= most)
    };
    let before = others.iter().filter(allowed).filter(|other| other.t.unwrap() <= at).max_by_key(|other| other.t);
    let after = others.iter().filter(allowed).filter(|other| other.t.unwrap() >= at).min_by_key(|other| other.t);
    match asof.direction {
        Direction::Backward => before.copied(),
        Direction::Forward => after.copied(),
        Direction::Nearest => match (before, after) {
            (Some(before), Some(after)) => {
                Some(if after.t.unwrap() - at < at - before.t.unwrap() { *after } else { *before })
            }
            (before, after) => before.or(after).copied(),
        },
    }
}

fn numbers(batch: &RecordBatch, name: &str) -> Vec<Option<i64>> {
    batch[name].as_primitive::<Int64Type>().iter().collect()
}

/// One random join of both kinds, in all ways in which it can be read.
pub fn join(seed: u64) -> Checked {
    let mut rng = fastrand::Rng::with_seed(seed);
    let layouts = [Layout::Plain, Layout::Sorted, Layout::Keyed];
    let (left_layout, right_layout) = (*rng.choice(&layouts).unwrap(), *rng.choice(&layouts).unwrap());
    let (by_path, by_column, times, filtered) = (rng.bool(), rng.u8(..3) == 0, rng.bool(), rng.bool());
    let scale = if left_layout == Layout::Keyed || right_layout == Layout::Keyed { 1000 } else { 1 };
    let mut tables = Sides { store: Store::memory().unwrap(), rng, next: 0, times };
    let names = ["a", "b", "c", "d"];
    let left = tables.side("l", left_layout, &names[..tables_of(seed, 1)]);
    let right = tables.side("r", right_layout, &names[tables_of(seed, 0) - 1..]);
    let Sides { store, mut rng, .. } = tables;
    let of = |side: &str| {
        let options = DatasetOptions { path_columns: vec!["sym".to_owned()], ..DatasetOptions::default() };
        store.scan(format!("{side}/*"), &options).unwrap()
    };
    let (left_data, right_data) = (of("l"), of("r"));
    let tolerance = rng.bool().then(|| rng.i64(0..6) * scale);
    let distance = |units: i64| match times {
        true => Distance::Nanos(units as u64 * 1_000_000),
        false => Distance::Number(units as u64),
    };
    let direction = *rng.choice(&[Direction::Backward, Direction::Forward, Direction::Nearest]).unwrap();
    let asof = AsofJoin { direction, tolerance: tolerance.map(distance), allow_exact: rng.bool() };
    let (before, after) = (rng.i64(0..5) * scale, rng.i64(0..5) * scale);
    let aggregate = |name: &str, function: Function, of: Option<&str>| Aggregate {
        name: name.to_owned(),
        function,
        of: of.map(str::to_owned),
    };
    let window = WindowJoin {
        before: distance(before),
        after: distance(after),
        aggregates: vec![
            aggregate("n", Function::Count, None),
            aggregate("sum", Function::Sum, Some("v")),
            aggregate("last", Function::Last, Some("v")),
        ],
    };
    let filter = |text: &str| filtered.then(|| Filter::parse(text).unwrap());
    let is_kept = |row: &Row, rest: i64| !filtered || row.v % 3 != rest;
    let by: Vec<String> =
        by_path.then(|| "sym".to_owned()).into_iter().chain(by_column.then(|| "k".to_owned())).collect();
    // Rows of the right side in the order of their tables and of the rows in them.
    let candidates = |name: &str, row: &Row| -> Vec<Row> {
        let tables = right.iter().filter(|(other, _)| !by_path || other == name);
        let rows = tables.flat_map(|(_, rows)| rows).filter(|other| is_kept(other, 1));
        rows.filter(|other| !by_column || (row.k.is_some() && row.k == other.k)).copied().collect()
    };
    for task_bytes in [0, u64::MAX] {
        for kind in [JoinKind::Asof(asof.clone()), JoinKind::Window(window.clone())] {
            let mut options = JoinOptions { by: by.clone(), task_bytes, ..JoinOptions::new(kind.clone(), "t") };
            options.left.filter = filter("v % 3 <> 0");
            options.right.filter = filter("v % 3 <> 1");
            let scan = left_data.join(&right_data, &options).map_err(|e| e.to_string())?;
            let schema = scan.schema();
            let batches = scan.collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
            let found = concat_batches(&schema, &batches).unwrap();
            let what = format!("seed {seed}, {left_layout:?}, {right_layout:?}, {by:?}, {task_bytes}, {kind:?}");
            let rows: Vec<(&str, &Row)> = left
                .iter()
                .flat_map(|(name, rows)| rows.iter().map(move |row| (name.as_str(), row)))
                .filter(|(_, row)| is_kept(row, 0))
                .collect();
            let own: Vec<Option<i64>> = rows.iter().map(|(_, row)| Some(row.v)).collect();
            if numbers(&found, "v") != own {
                return Err(format!("{what}: rows of the left side are {:?}, not {own:?}", numbers(&found, "v")));
            }
            let wanted: Vec<Vec<Option<i64>>> = match &kind {
                JoinKind::Asof(asof) => {
                    let near = rows.iter().map(|(name, row)| nearest(row, &candidates(name, row), asof, tolerance));
                    vec![near.map(|near| near.map(|near| near.v)).collect()]
                }
                JoinKind::Window(_) => {
                    let within = rows.iter().map(|(name, row)| {
                        let near = |other: &Row| {
                            let (t, at) = (other.t?, row.t?);
                            (at - before <= t && t <= at + after).then_some(())
                        };
                        candidates(name, row).into_iter().filter(|other| near(other).is_some()).collect::<Vec<_>>()
                    });
                    let within: Vec<Vec<Row>> = within.collect();
                    let some = |rows: &[Row], value: &dyn Fn(&[Row]) -> i64| (!rows.is_empty()).then(|| value(rows));
                    let sum = |rows: &[Row]| rows.iter().map(|row| row.v).sum();
                    let last = |rows: &[Row]| {
                        let latest = rows.iter().map(|row| row.t).max().unwrap();
                        rows.iter().rfind(|row| row.t == latest).unwrap().v
                    };
                    vec![
                        within.iter().map(|rows| Some(rows.len() as i64)).collect(),
                        within.iter().map(|rows| some(rows, &sum)).collect(),
                        within.iter().map(|rows| some(rows, &last)).collect(),
                    ]
                }
            };
            let columns: &[&str] = if matches!(kind, JoinKind::Asof(_)) { &["v_right"] } else { &["n", "sum", "last"] };
            for (column, wanted) in columns.iter().zip(wanted) {
                if numbers(&found, column) != wanted {
                    return Err(format!("{what}, {column}: {:?}, not {wanted:?}", numbers(&found, column)));
                }
            }
        }
    }
    Ok(())
}

fn tables_of(seed: u64, bit: u32) -> usize {
    1 + (seed >> bit) as usize % 3
}

/// Enough joins that each rule is met.
#[allow(dead_code, reason = "called where bugs are planted")]
pub fn joins() -> Checked {
    (0..500).try_for_each(join)
}

#[test]
fn joins_equal_a_search_of_all_rows() {
    seeds::each(0..120, 60, |seed| join(seed).unwrap());
}

#[test]
fn columns_are_those_that_were_asked_for() {
    let store = Store::memory().unwrap();
    let text = |values: &[&str]| Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
    let ints = |values: &[i64]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
    let trades =
        RecordBatch::try_from_iter([("t", ints(&[1, 5])), ("px", ints(&[10, 11])), ("venue", text(&["x", "y"]))]);
    let quotes =
        RecordBatch::try_from_iter([("at", ints(&[0, 4])), ("px", ints(&[9, 8])), ("venue", text(&["y", "y"]))]);
    store.write("trades/A", trades.unwrap(), &Default::default()).unwrap();
    store.write("quotes/A", quotes.unwrap(), &Default::default()).unwrap();
    let scan = |path: &str| store.scan(path, &DatasetOptions::default()).unwrap();
    let names = |options: &JoinOptions| {
        let scan = scan("trades/*").join(&scan("quotes/*"), options).unwrap();
        let names: Vec<String> = scan.schema().fields().iter().map(|field| field.name().clone()).collect();
        assert!(scan.collect::<Result<Vec<_>, _>>().unwrap().iter().all(|batch| batch.num_columns() == names.len()));
        names
    };
    let mut options = JoinOptions::new(JoinKind::Asof(AsofJoin::default()), "t");
    options.on.1 = "at".to_owned();
    assert_eq!(names(&options), ["t", "px", "venue", "at", "px_right", "venue_right"]);
    options.by = vec!["venue".to_owned()];
    assert_eq!(names(&options), ["t", "px", "venue", "at", "px_right"]);
    options.left = ScanOptions { columns: Some(vec!["px".into()]), ..ScanOptions::default() };
    options.right = ScanOptions { columns: Some(vec!["px".into(), "at".into()]), ..ScanOptions::default() };
    options.suffix = "_quoted".to_owned();
    assert_eq!(names(&options), ["px", "px_quoted", "at"]);
    options.left.columns = Some(Vec::new());
    assert_eq!(names(&options), ["px", "at"]);
}

/// Names in paths of the left side equal a column of the right: only rows with the name are read for each table.
#[test]
fn names_in_paths_equal_texts() {
    let store = Store::memory().unwrap();
    let ints = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let sorted = || TableOptions { sort: vec!["t".to_owned()], ..TableOptions::default() };
    let names = ["a", "b", "c"];
    for (at, name) in (0..).zip(names) {
        let rows = RecordBatch::try_from_iter([("t", ints((0..50).map(|t| t * 7 + at).collect()))]).unwrap();
        store.table(&format!("l/{name}")).create(rows.schema(), sorted()).unwrap();
        store.append(&format!("l/{name}"), rows, &Default::default()).unwrap();
    }
    let symbols: Vec<&str> = (0..300).map(|n| names[n * n % 3]).collect();
    let columns = [
        ("t", ints((0..300).collect())),
        ("sym", Arc::new(StringArray::from(symbols.clone())) as ArrayRef),
        ("v", ints((0..300).collect())),
    ];
    let flat = RecordBatch::try_from_iter(columns).unwrap();
    store.table("flat").create(flat.schema(), sorted()).unwrap();
    for at in 0..3 {
        store.append("flat", flat.slice(at * 100, 100), &Default::default()).unwrap();
    }
    let options = DatasetOptions { path_columns: vec!["sym".to_owned()], ..DatasetOptions::default() };
    let left = store.scan("l/*", &options).unwrap();
    let right = store.scan("flat", &DatasetOptions::default()).unwrap();
    let mut wanted = Vec::new();
    for (at, name) in (0..).zip(names) {
        wanted.extend(
            (0..50)
                .map(|t| t * 7 + at)
                .map(|t: i64| (0..=t.min(299)).rev().find(|other| symbols[*other as usize] == name)),
        );
    }
    for task_bytes in [0, u64::MAX] {
        for (direction, tolerance) in [(Direction::Backward, None), (Direction::Backward, Some(Distance::Number(400)))]
        {
            let asof = AsofJoin { direction, tolerance, ..AsofJoin::default() };
            let by = vec!["sym".to_owned()];
            let options = JoinOptions { by, task_bytes, ..JoinOptions::new(JoinKind::Asof(asof), "t") };
            let found = left.join(&right, &options).unwrap();
            let schema = found.schema();
            let found = concat_batches(&schema, &found.collect::<Result<Vec<_>, _>>().unwrap()).unwrap();
            assert_eq!(numbers(&found, "v"), wanted);
        }
    }
}

/// Floats are equal as in filters and groups.
#[test]
fn zeros_are_equal_and_nan_equals_itself() {
    let store = Store::memory().unwrap();
    let rows = |zero: f64, v: i64| {
        let t: ArrayRef = Arc::new(Int64Array::from(vec![1, 1, 1]));
        let k: ArrayRef = Arc::new(arrow::array::Float64Array::from(vec![Some(zero), Some(f64::NAN), None]));
        let v: ArrayRef = Arc::new(Int64Array::from(vec![v, v + 1, v + 2]));
        RecordBatch::try_from_iter_with_nullable([("t", t, true), ("k", k, true), ("v", v, true)]).unwrap()
    };
    store.write("l", rows(0.0, 1), &Default::default()).unwrap();
    store.write("r", rows(-0.0, 10), &Default::default()).unwrap();
    let scan = |path: &str| store.scan(path, &DatasetOptions::default()).unwrap();
    let by = vec!["k".to_owned()];
    let options = JoinOptions { by, ..JoinOptions::new(JoinKind::Asof(AsofJoin::default()), "t") };
    let found: Vec<RecordBatch> = scan("l").join(&scan("r"), &options).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(numbers(&found[0], "v_right"), [Some(10), Some(11), None]);
}
