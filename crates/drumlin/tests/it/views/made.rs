//! Sources, views of them, and what the views must be.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use drumlin::store::{AsOf, DatasetOptions, ReadOptions, TableOptions, ViewOptions};
use drumlin::table::ScanOptions;
use drumlin::{Aggregate, ErrorKind, Every, Filter, Function, GroupBy, Length, Store, Tables};

/// Rows of a source: `k`, `ts`, `x`, `n`, `s`.
pub fn rows(rng: &mut fastrand::Rng, keys: &[i64]) -> RecordBatch {
    let x = |rng: &mut fastrand::Rng| match rng.u8(..60) {
        0 => Some(f64::NAN),
        1 => Some(f64::INFINITY),
        2 => Some(-0.0),
        3 => Some(1e300),
        4..8 => None,
        _ => Some(f64::from(rng.i32(-500..500)) / 7.0),
    };
    let all = keys.len();
    let columns: [(&str, ArrayRef, bool); 5] = [
        ("k", Arc::new(Int64Array::from(keys.to_vec())), false),
        (
            "ts",
            Arc::new(TimestampMicrosecondArray::from_iter(
                (0..all).map(|_| (rng.u8(..30) > 0).then(|| rng.i64(0..60) * 1_000_000)),
            )),
            true,
        ),
        ("x", Arc::new(Float64Array::from_iter((0..all).map(|_| x(rng)))), true),
        ("n", Arc::new(Int64Array::from_iter((0..all).map(|_| (rng.u8(..8) > 0).then(|| rng.i64(-9..9))))), true),
        (
            "s",
            Arc::new(StringArray::from_iter(
                (0..all).map(|_| (rng.u8(..10) > 0).then(|| rng.char('a'..='d').to_string())),
            )),
            true,
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// How a source is made: without an order, ordered by time, or with a key.
pub fn source_options(kind: u8) -> TableOptions {
    match kind {
        0 => TableOptions::default(),
        1 => TableOptions { sort: vec!["ts".into()], ..TableOptions::default() },
        _ => TableOptions { key: vec!["k".into()], ..TableOptions::default() },
    }
}

fn aggregate(name: &str, function: Function, of: Option<&str>) -> Aggregate {
    Aggregate { name: name.into(), function, of: of.map(Into::into) }
}

/// A view of `t/*`.
pub fn view(rng: &mut fastrand::Rng) -> ViewOptions {
    let every = Every {
        column: "ts".into(),
        length: Length::parse("10s").unwrap(),
        origin: None,
        closed_right: rng.bool(),
        label_right: rng.bool(),
    };
    let (keys, every) = match rng.u8(..4) {
        0 => (vec![], None),
        1 => (vec!["s".into()], None),
        2 => (vec![], Some(every)),
        _ => (vec!["s".into()], Some(every)),
    };
    let all = [
        aggregate("rows", Function::Count, None),
        aggregate("xs", Function::Count, Some("x")),
        aggregate("sum_n", Function::Sum, Some("n")),
        aggregate("sum_x", Function::Sum, Some("x")),
        aggregate("sum_of", Function::Sum, Some("n * 2 + k")),
        aggregate("mean_x", Function::Mean, Some("x")),
        aggregate("mean_n", Function::Mean, Some("n")),
        aggregate("var_x", Function::Var, Some("x")),
        aggregate("std_n", Function::Std, Some("n")),
        aggregate("weighted", Function::WeightedMean("n".into()), Some("x")),
        aggregate("least", Function::Min, Some("x")),
        aggregate("most", Function::Max, Some("n")),
        aggregate("last_text", Function::Max, Some("s")),
        aggregate("first_x", Function::First, Some("x")),
        aggregate("last_k", Function::Last, Some("k")),
        aggregate("last_s", Function::Last, Some("s")),
    ];
    let aggregates: Vec<Aggregate> = match rng.u8(..3) {
        0 => all.to_vec(),
        _ => all.into_iter().filter(|_| rng.u8(..4) == 0).chain([aggregate("any", Function::Max, Some("k"))]).collect(),
    };
    let filter = (rng.u8(..3) == 0).then(|| "n > -5 or x is null".to_owned());
    let groups = GroupBy { keys, every, aggregates };
    ViewOptions { path_columns: vec!["name".into()], filter, groups, ..ViewOptions::default() }
}

/// What a view of `t/*` must be, as text: computed from all rows, without those whose key or time is null.
pub fn computed(tables: &impl Tables, options: &ViewOptions, as_of: &AsOf) -> String {
    let dataset = DatasetOptions { as_of: as_of.clone(), path_columns: options.path_columns.clone() };
    let data = match tables.scan("t/*", &dataset) {
        Err(e) if e.kind() == ErrorKind::NotFound => return String::new(),
        data => data.unwrap(),
    };
    let of = |name: &String| Filter::parse(&format!("{name} is not null")).unwrap();
    let keys = options.groups.keys.iter().chain(options.groups.every.as_ref().map(|every| &every.column));
    let filter = options.filter.iter().map(|text| Filter::parse(text).unwrap()).chain(keys.map(of)).reduce(Filter::and);
    let keys = options.path_columns.iter().chain(&options.groups.keys).cloned().collect();
    let groups = GroupBy { keys, ..options.groups.clone() };
    told(&[data.aggregate(&groups, &ScanOptions { filter, ..ScanOptions::default() }).unwrap()])
}

/// What a view is, as text.
pub fn kept(tables: &impl Tables, path: &str, as_of: &AsOf) -> String {
    let read = ReadOptions { as_of: as_of.clone(), ..ReadOptions::default() };
    told(&tables.table(path).collect(&read).unwrap())
}

/// Rows as text, exactly.
fn told(batches: &[RecordBatch]) -> String {
    let mut lines = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let values = batch.columns().iter().map(|column| {
                arrow::util::display::array_value_to_string(column, row).unwrap()
                    + if column.is_null(row) { "null" } else { "" }
            });
            lines.push(values.collect::<Vec<_>>().join(" | "));
        }
    }
    lines.join("\n")
}

/// What is wrong with the views of a store, if anything.
pub fn check(store: &Store, views: &[(String, ViewOptions)]) -> Result<(), String> {
    for (path, options) in views {
        let (is, must) = (kept(store, path, &AsOf::Newest), computed(store, options, &AsOf::Newest));
        if is != must {
            return Err(format!("{path} of {options:?}\nis\n{is}\nand should be\n{must}"));
        }
    }
    Ok(())
}
