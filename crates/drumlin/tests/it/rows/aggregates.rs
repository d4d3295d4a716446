//! Groups and what is made of them: against a model of plain loops, and the same bit by bit for any number of threads, and before
//! and after a checkpoint.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray, TimestampMicrosecondArray, UInt32Array, UInt64Array,
};
use arrow::compute::{cast, concat_batches, take_record_batch};
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type};
use arrow::util::display::array_value_to_string;
use drumlin::base::{ManualClock, Timestamp};
use drumlin::storage::SimDisk;
use drumlin::store::{DatasetOptions, Options, TableOptions, WriteOptions};
use drumlin::{Aggregate, ErrorKind, Every, Filter, Function, GroupBy, Length, ScanOptions, Store, Tables};

use crate::support::{Checked, open, open_as, same};

#[derive(Clone, Debug)]
struct Row {
    id: i64,
    key: Option<i32>,
    name: Option<String>,
    at: Option<i64>,
    float: Option<f64>,
    integer: Option<i64>,
    decimal: Option<i128>,
    truth: Option<bool>,
}

/// Floats are quarters, so that doubles add them up without rounding, and special ones.
fn rows(rng: &mut fastrand::Rng, from: i64, n: usize) -> Vec<Row> {
    let special = rng.u8(..4) == 0;
    let row = |id: i64, rng: &mut fastrand::Rng| Row {
        id,
        key: (rng.u8(..9) > 0).then(|| rng.i32(-2..3)),
        name: (rng.u8(..9) > 0)
            .then(|| ["", "a", "b", "long enough to be no part of a view"][rng.usize(..4)].to_owned()),
        at: (rng.u8(..9) > 0).then(|| rng.i64(-2_000_000_000..4_000_000_000)),
        float: (rng.u8(..9) > 0).then(|| match rng.u8(..40) {
            0 if special => f64::NAN,
            1 if special => f64::INFINITY,
            2 => -0.0,
            _ => f64::from(rng.i32(-4000..4000)) / 4.0,
        }),
        integer: (rng.u8(..9) > 0).then(|| rng.i64(-1000..1000)),
        decimal: (rng.u8(..9) > 0).then(|| i128::from(rng.i64(-100_000..100_000))),
        truth: (rng.u8(..9) > 0).then(|| rng.bool()),
    };
    (from..).take(n).map(|id| row(id, rng)).collect()
}

fn batch(rows: &[Row]) -> RecordBatch {
    let decimals = rows.iter().map(|r| r.decimal).collect::<Decimal128Array>().with_precision_and_scale(12, 2).unwrap();
    let columns: [(&str, ArrayRef); 8] = [
        ("id", Arc::new(rows.iter().map(|r| r.id).collect::<Int64Array>())),
        ("key", Arc::new(rows.iter().map(|r| r.key).collect::<Int32Array>())),
        ("name", Arc::new(rows.iter().map(|r| r.name.as_deref()).collect::<StringArray>())),
        ("at", Arc::new(rows.iter().map(|r| r.at).collect::<TimestampMicrosecondArray>())),
        ("float", Arc::new(rows.iter().map(|r| r.float).collect::<Float64Array>())),
        ("integer", Arc::new(rows.iter().map(|r| r.integer).collect::<Int64Array>())),
        ("decimal", Arc::new(decimals)),
        ("truth", Arc::new(rows.iter().map(|r| r.truth).collect::<BooleanArray>())),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, name != "id"))).unwrap()
}

fn aggregate(name: &str, function: Function, of: &str) -> Aggregate {
    Aggregate { name: name.to_owned(), function, of: Some(of.to_owned()) }
}

/// One of each kind.
fn all() -> Vec<Aggregate> {
    let rows = Aggregate { name: "rows".into(), function: Function::Count, of: None };
    let median = Function::Quantile(0.5);
    let mut all = vec![rows];
    all.extend([
        aggregate("count", Function::Count, "float"),
        aggregate("distinct", Function::CountDistinct, "float"),
        aggregate("names", Function::CountDistinct, "name"),
        aggregate("sum", Function::Sum, "float"),
        aggregate("sum_i", Function::Sum, "integer"),
        aggregate("sum_d", Function::Sum, "decimal"),
        aggregate("mean", Function::Mean, "float"),
        aggregate("mean_d", Function::Mean, "decimal"),
        aggregate("min", Function::Min, "float"),
        aggregate("max", Function::Max, "float"),
        aggregate("min_s", Function::Min, "name"),
        aggregate("max_d", Function::Max, "decimal"),
        aggregate("first", Function::First, "integer"),
        aggregate("last", Function::Last, "name"),
        aggregate("var", Function::Var, "integer"),
        aggregate("median", median, "integer"),
        aggregate("any", Function::Any, "truth"),
        aggregate("all", Function::All, "truth"),
        aggregate("weighted", Function::WeightedMean("integer * integer".into()), "float"),
        aggregate("computed", Function::Sum, "float * 2"),
    ]);
    all
}

fn shown(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| if value.is_nan() { "NaN".into() } else { format!("{:?}", value + 0.0) })
}

/// What plain loops make of the rows of one group.
fn expected(rows: &[&Row]) -> Vec<String> {
    let floats: Vec<f64> = rows.iter().filter_map(|r| r.float).collect();
    let integers: Vec<i64> = rows.iter().filter_map(|r| r.integer).collect();
    let decimals: Vec<i128> = rows.iter().filter_map(|r| r.decimal).collect();
    let names: Vec<&str> = rows.iter().filter_map(|r| r.name.as_deref()).collect();
    let truths: Vec<bool> = rows.iter().filter_map(|r| r.truth).collect();
    let distinct = |mut bits: Vec<u64>| {
        bits.sort_unstable();
        bits.dedup();
        bits.len()
    };
    let some = |n: usize, value: f64| shown((n > 0).then_some(value));
    let sum: f64 = floats.iter().sum();
    let sum_i: i64 = integers.iter().sum();
    let sum_d: i128 = decimals.iter().sum();
    let decimal =
        |value: i128| format!("{}{}.{:02}", if value < 0 { "-" } else { "" }, value.abs() / 100, value.abs() % 100);
    let n = integers.len() as i128;
    let squares: i128 = integers.iter().map(|v| i128::from(*v) * i128::from(*v)).sum();
    let variance = (n > 1).then(|| (n * squares - i128::from(sum_i).pow(2)) as f64 / (n * (n - 1)) as f64);
    let mut sorted = integers.clone();
    sorted.sort_unstable();
    let median = (n > 0).then(|| {
        let (low, high) = (sorted[(sorted.len() - 1) / 2] as f64, sorted[sorted.len() / 2] as f64);
        low + (high - low) * if sorted.len().is_multiple_of(2) { 0.5 } else { 0.0 }
    });
    let pairs: Vec<(f64, f64)> =
        rows.iter().filter_map(|r| Some((r.float?, (r.integer? * r.integer?) as f64))).collect();
    let (products, weights): (f64, f64) = (pairs.iter().map(|(v, w)| v * w).sum(), pairs.iter().map(|(_, w)| w).sum());
    vec![
        rows.len().to_string(),
        floats.len().to_string(),
        distinct(floats.iter().map(|v| if v.is_nan() { f64::NAN } else { v + 0.0 }.to_bits()).collect()).to_string(),
        names.iter().collect::<std::collections::BTreeSet<_>>().len().to_string(),
        some(floats.len(), sum),
        if integers.is_empty() { String::new() } else { sum_i.to_string() },
        if decimals.is_empty() { String::new() } else { decimal(sum_d) },
        some(floats.len(), sum / floats.len() as f64),
        some(decimals.len(), sum_d as f64 / (decimals.len() * 100) as f64),
        shown(floats.iter().copied().min_by(f64::total_cmp)),
        shown(floats.iter().copied().max_by(f64::total_cmp)),
        names.iter().min().map_or(String::new(), |s| (*s).to_owned()),
        decimals.iter().max().map_or(String::new(), |v| decimal(*v)),
        integers.first().map_or(String::new(), i64::to_string),
        names.last().map_or(String::new(), |s| (*s).to_owned()),
        shown(variance),
        shown(median),
        if truths.is_empty() { String::new() } else { truths.contains(&true).to_string() },
        if truths.is_empty() { String::new() } else { (!truths.contains(&false)).to_string() },
        some(if weights == 0.0 { 0 } else { pairs.len() }, products / weights),
        some(floats.len(), floats.iter().map(|v| v * 2.0).sum()),
    ]
}

fn cells(batch: &RecordBatch) -> Vec<Vec<String>> {
    let text = |column: &ArrayRef, row: usize| match column.data_type() {
        DataType::Float64 if column.is_valid(row) => shown(Some(column.as_primitive::<Float64Type>().value(row))),
        _ => array_value_to_string(column, row).unwrap(),
    };
    (0..batch.num_rows()).map(|row| batch.columns().iter().map(|column| text(column, row)).collect()).collect()
}

fn find(store: &Store, pattern: &str, asked: &GroupBy, filter: Option<&str>) -> drumlin::Result<RecordBatch> {
    let filter = filter.map(Filter::parse).transpose()?;
    let options = ScanOptions { filter, ..ScanOptions::default() };
    store.scan(pattern, &DatasetOptions::default())?.aggregate(asked, &options)
}

fn grouped(keys: &[&str], every: Option<Every>, aggregates: Vec<Aggregate>) -> GroupBy {
    GroupBy { keys: keys.iter().map(|key| (*key).to_owned()).collect(), every, aggregates }
}

fn minutes() -> Every {
    Every {
        column: "at".into(),
        length: Length::parse("10m").unwrap(),
        origin: None,
        closed_right: false,
        label_right: false,
    }
}

/// What the model makes of rows, by keys, buckets, or neither.
fn model(rows: &[Row], by: u8) -> Vec<Vec<String>> {
    let mut groups: BTreeMap<(Option<i32>, Option<String>, Option<i64>), Vec<&Row>> = BTreeMap::new();
    if by == 0 {
        groups.insert((None, None, None), Vec::new());
    }
    let bucket = |at: i64| at.div_euclid(600_000_000) * 600_000_000;
    for row in rows {
        let key = match by {
            0 => (None, None, None),
            1 => (row.key, None, None),
            2 => (row.key, row.name.clone(), None),
            _ => (row.key, None, row.at.map(bucket)),
        };
        groups.entry(key).or_default().push(row);
    }
    let found = groups.into_iter().map(|((key, name, at), rows)| {
        let key = key.map_or(String::new(), |key| key.to_string());
        let at = TimestampMicrosecondArray::from(vec![at]);
        let at = array_value_to_string(&at, 0).unwrap();
        let mut cells = match by {
            0 => vec![],
            1 => vec![key],
            2 => vec![key, name.unwrap_or_default()],
            _ => vec![key, at],
        };
        cells.extend(expected(&rows));
        cells
    });
    found.collect()
}

fn asked(by: u8) -> GroupBy {
    match by {
        0 => grouped(&[], None, all()),
        1 => grouped(&["key"], None, all()),
        2 => grouped(&["key", "name"], None, all()),
        _ => grouped(&["key"], Some(minutes()), all()),
    }
}

#[test]
fn groups_are_those_of_plain_loops() {
    for seed in 0..60 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let disk = SimDisk::in_memory();
        let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
        let opened = |threads: usize, memory_bytes: u64| {
            let options = Options { memory_bytes, inline_bytes: 0, ..Options::default() };
            open_as(&disk, &clock, threads, options).unwrap()
        };
        let store = opened(2, 1 << 30);
        let n = if seed % 10 == 0 { 30_000 } else { rng.usize(..400) };
        let mut held = rows(&mut rng, 0, n);
        let keyed = rng.bool();
        if keyed {
            let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
            store.table("t/a").create(batch(&[]).schema(), key).unwrap();
            store.table("t/a").upsert(batch(&held), &WriteOptions::default()).unwrap();
        } else {
            let split = rng.usize(..=n);
            store.write("t/a", batch(&held[..split]), &WriteOptions::default()).unwrap();
            store.append("t/a", batch(&held[split..]), &WriteOptions::default()).unwrap();
        }
        store.table("t/a").delete("id % 7 = 3", &Default::default()).unwrap();
        held.retain(|row| row.id % 7 != 3);
        let more = rows(&mut rng, 1_000_000, 50);
        store.write("t/b", batch(&more), &WriteOptions::default()).unwrap();
        let all_rows: Vec<Row> = held.iter().chain(&more).cloned().collect();
        let kept: Vec<Row> = held.iter().filter(|row| row.integer.is_some_and(|v| v > 0)).cloned().collect();
        let mut before = Vec::new();
        for by in 0..4 {
            let of_one = find(&store, "t/a", &asked(by), None).unwrap();
            assert_eq!(cells(&of_one), model(&held, by), "seed {seed}, by {by}");
            let filtered = find(&store, "t/a", &asked(by), Some("integer > 0")).unwrap();
            assert_eq!(cells(&filtered), model(&kept, by), "seed {seed}, by {by}, filtered");
            let of_both = find(&store, "t/*", &asked(by), None).unwrap();
            assert_eq!(cells(&of_both), model(&all_rows, by), "seed {seed}, by {by}, of both");
            before.push(of_both);
        }
        store.checkpoint(&Default::default()).unwrap();
        store.close().unwrap();
        // Little memory makes shares of groups.
        for (threads, memory) in [(1, 1 << 30), (3, 1 << 30), (2, 4 << 20)] {
            let store = opened(threads, memory);
            for (by, before) in (0..4).zip(&before) {
                // Values are the same bit by bit, NaN aside.
                let after = find(&store, "t/*", &asked(by), None).unwrap();
                assert_eq!(cells(&after), cells(before), "seed {seed}, by {by}, {threads} threads");
            }
            store.close().unwrap();
        }
    }
}

pub fn answers_do_not_depend_on_how_rows_lie() -> Checked {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    let mut rng = fastrand::Rng::with_seed(3);
    let mut whole = Vec::new();
    for part in 0..40 {
        let keys: Vec<i64> = (0..500).map(|_| rng.i64(0..5)).collect();
        // Some sums are of numbers alike, some of numbers of which most are lost beside the greatest.
        let reach = |key: i64| if key < 3 { 1 } else { 30 };
        let mut value = |key: i64| (rng.f64() - 0.5) * 10_f64.powi(rng.i32(-reach(key)..reach(key)));
        let values: Vec<f64> = keys.iter().map(|key| value(*key)).collect();
        let columns: [(&str, ArrayRef); 2] =
            [("k", Arc::new(Int64Array::from(keys))), ("x", Arc::new(Float64Array::from(values)))];
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        match part {
            0 => store.write("t", rows.clone(), &Default::default()).unwrap(),
            _ => store.append("t", rows.clone(), &Default::default()).unwrap(),
        };
        whole.push(rows);
    }
    store.write("once", concat_batches(&whole[0].schema(), &whole).unwrap(), &Default::default()).unwrap();
    let functions =
        [Function::Sum, Function::Mean, Function::Std, Function::Quantile(0.9), Function::First, Function::Last];
    let made = functions.into_iter().enumerate().map(|(at, function)| aggregate(&at.to_string(), function, "x"));
    let asked = grouped(&["k"], None, made.collect());
    let bits = |path: &str| {
        let found = find(&store, path, &asked, None).unwrap();
        let of = |column: &ArrayRef| {
            column.as_primitive::<Float64Type>().values().iter().map(|v| v.to_bits()).collect::<Vec<_>>()
        };
        found.columns()[1..].iter().map(of).collect::<Vec<_>>()
    };
    let (parts, once) = (bits("t"), bits("once"));
    same(&parts, &once, "of many row groups, and of one")?;
    store.checkpoint(&Default::default()).unwrap();
    same(&bits("t"), &once, "after a checkpoint")?;
    let whole = concat_batches(&whole[0].schema(), &whole).unwrap();
    let backwards: UInt32Array = (0..whole.num_rows() as u32).rev().collect();
    store.write("backwards", take_record_batch(&whole, &backwards).unwrap(), &Default::default()).unwrap();
    // Without the first and the last.
    same(&bits("backwards")[..4].to_vec(), &once[..4].to_vec(), "in another order")
}

#[test]
fn rules_hold() {
    answers_do_not_depend_on_how_rows_lie().unwrap();
}

#[test]
fn many_groups_are_found_in_little_memory() {
    let disk = SimDisk::in_memory();
    let options = Options { memory_bytes: 8 << 20, ..Options::default() };
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let store = open_as(&disk, &clock, 2, options).unwrap();
    let n = 300_000_i64;
    let ids: ArrayRef = Arc::new((0..n).map(|id| id * 7919 % n).collect::<Int64Array>());
    store.write("t", RecordBatch::try_from_iter([("id", ids)]).unwrap(), &Default::default()).unwrap();
    let asked = grouped(
        &["id"],
        None,
        vec![aggregate("sum", Function::Sum, "id"), aggregate("p", Function::Quantile(0.5), "id")],
    );
    let found = find(&store, "t", &asked, None).unwrap();
    assert_eq!(found.num_rows(), n as usize);
    assert!(found["id"].as_primitive::<Int64Type>().values().iter().copied().eq(0..n));
    assert!(found["sum"].as_primitive::<Int64Type>().values().iter().copied().eq(0..n));
}

#[test]
fn equal_numbers_are_one_key_whatever_their_bits() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, -f64::NAN, 1.0]));
    let types = [DataType::Float16, DataType::Float32, DataType::Float64];
    let columns = types.iter().map(|data_type| (data_type.to_string(), cast(&floats, data_type).unwrap()));
    store.write("t", RecordBatch::try_from_iter(columns).unwrap(), &Default::default()).unwrap();
    for data_type in types.map(|data_type| data_type.to_string()) {
        let of_keys = find(&store, "t", &grouped(&[&data_type], None, vec![]), None).unwrap();
        let keys: Vec<String> = cells(&of_keys).iter().map(|row| row[0].to_lowercase().replace(".0", "")).collect();
        assert_eq!(keys, ["0", "1", "nan"], "{data_type}");
        let distinct = aggregate("n", Function::CountDistinct, &data_type);
        let distinct = find(&store, "t", &grouped(&[], None, vec![distinct]), None).unwrap();
        assert_eq!(distinct["n"].as_primitive::<Int64Type>().value(0), 3);
    }
    let nothing = find(&store, "t", &grouped(&["Float64"], None, vec![]), Some("Float64 = 7")).unwrap();
    assert_eq!(nothing.num_rows(), 0);
}

#[test]
fn what_cannot_be_made_is_refused() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    let list: ArrayRef =
        Arc::new(arrow::array::ListArray::from_iter_primitive::<Int64Type, _, _>(vec![Some(vec![Some(1)]); 2]));
    let columns: [(&str, ArrayRef); 5] = [
        ("n", Arc::new(Int64Array::from(vec![i64::MAX, i64::MAX]))),
        ("u", Arc::new(UInt64Array::from(vec![u64::MAX, 1]))),
        ("s", Arc::new(StringArray::from(vec!["a", "b"]))),
        ("l", list),
        ("t", Arc::new(TimestampMicrosecondArray::from(vec![0, i64::MAX]))),
    ];
    store.write("t", RecordBatch::try_from_iter(columns).unwrap(), &Default::default()).unwrap();
    let one = |function: Function, of: &str| grouped(&[], None, vec![aggregate("x", function, of)]);
    let every = |length: &str| {
        let every = Every { column: "t".into(), length: Length::parse(length).unwrap(), ..minutes() };
        grouped(&[], Some(every), vec![])
    };
    let nothing = Aggregate { name: "x".into(), function: Function::Sum, of: None };
    for (asked, words) in [
        (one(Function::Sum, "n"), "aggregate 'x': the sum of a group is 18446744073709551614"),
        (one(Function::Sum, "u"), "18446744073709551616"),
        (one(Function::Sum, "s"), "it takes numbers"),
        (one(Function::Any, "n"), "it takes booleans"),
        (one(Function::Max, "l"), "no nested values"),
        (one(Function::Mean, "missing"), "no column missing"),
        (one(Function::Mean, "n +"), "expression"),
        (one(Function::Quantile(1.5), "n"), "from 0 to 1, not 1.5"),
        (one(Function::WeightedMean("s".into()), "n"), "it takes numbers"),
        (grouped(&["l"], None, vec![]), "grouped by column 'l'"),
        (grouped(&["x"], None, vec![]), "'x' does not exist"),
        (grouped(&["n", "n"], None, vec![]), "two columns of the result are called 'n'"),
        (grouped(&[], None, vec![nothing]), "needs a column"),
        (grouped(&[], None, vec![]), "nothing to group by"),
        (every("1y"), "too far from 1970"),
        (every("1500ns"), "must be a whole number of its units"),
    ] {
        let error = find(&store, "t", &asked, None).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidArgument && error.message().contains(words), "{words}: {error}");
    }
    let limited = ScanOptions { limit: Some(1), ..ScanOptions::default() };
    let dataset = store.scan("t", &DatasetOptions::default()).unwrap();
    assert!(dataset.aggregate(&one(Function::Count, "n"), &limited).is_err());
    // Calculations with decimals are of 38 digits, others in doubles.
    let sum = find(&store, "t", &one(Function::Sum, "n * 1.0"), None).unwrap();
    assert_eq!(sum["x"].as_primitive::<Decimal128Type>().value(0), 2 * i128::from(i64::MAX));
    let sum = find(&store, "t", &one(Function::Sum, "n / 1"), None).unwrap();
    assert_eq!(sum["x"].as_primitive::<Float64Type>().value(0), 2.0 * i64::MAX as f64);
}
