//! What cannot be joined is refused, and why.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampSecondArray};
use drumlin::store::DatasetOptions;
use drumlin::{Aggregate, AsofJoin, Distance, Function, JoinKind, JoinOptions, Store, Tables, WindowJoin};

fn store() -> Store {
    let store = Store::memory().unwrap();
    let times = TimestampSecondArray::from(vec![1, 2]);
    let columns: [(&str, ArrayRef); 5] = [
        ("n", Arc::new(Int64Array::from(vec![1, 2]))),
        ("t", Arc::new(times.clone())),
        ("z", Arc::new(times.with_timezone("UTC"))),
        ("f", Arc::new(Float64Array::from(vec![1.0, 2.0]))),
        ("s", Arc::new(StringArray::from(vec!["a", "b"]))),
    ];
    store.write("t", RecordBatch::try_from_iter(columns).unwrap(), &Default::default()).unwrap();
    store
}

#[test]
fn reasons_are_told() {
    let store = store();
    let scan = || store.scan("t", &DatasetOptions::default()).unwrap();
    let asof = |tolerance| JoinKind::Asof(AsofJoin { tolerance, ..AsofJoin::default() });
    let refusal = |kind: JoinKind, on: (&str, &str), by: &[&str], suffix: &str| {
        let mut options = JoinOptions::new(kind, on.0);
        options.on.1 = on.1.to_owned();
        options.by = by.iter().map(|name| (*name).to_owned()).collect();
        options.suffix = suffix.to_owned();
        scan().join(&scan(), &options).map(drop).unwrap_err().to_string()
    };
    let told = |text: String, part: &str| assert!(text.contains(part), "{text:?} does not say {part:?}");
    told(refusal(asof(None), ("f", "f"), &[], "_r"), "'f' of type");
    told(refusal(asof(None), ("t", "z"), &[], "_r"), "one has a time zone and the other has none");
    told(refusal(asof(None), ("t", "n"), &[], "_r"), "does not compare with 'n'");
    told(refusal(asof(None), ("nothing", "n"), &[], "_r"), "nothing");
    told(refusal(asof(None), ("n", "n"), &["x"], "_r"), "'x'");
    told(refusal(asof(None), ("n", "n"), &[], ""), "two columns of the result are called 't'");
    told(refusal(asof(Some(Distance::Number(5))), ("t", "t"), &[], "_r"), "give a length of time");
    told(refusal(asof(Some(Distance::Nanos(5))), ("n", "n"), &[], "_r"), "give a number");
    let window = |name: &str, of: &str| {
        let aggregate = Aggregate { name: name.into(), function: Function::Sum, of: Some(of.into()) };
        let (before, after) = (Distance::Number(1), Distance::Number(1));
        JoinKind::Window(WindowJoin { before, after, aggregates: vec![aggregate] })
    };
    told(refusal(window("sum", "s"), ("n", "n"), &[], "_r"), "it takes numbers");
    told(refusal(window("n", "n"), ("n", "n"), &[], "_r"), "two columns of the result are called 'n'");
    let mut limited = JoinOptions::new(asof(None), "n");
    limited.right.limit = Some(1);
    told(scan().join(&scan(), &limited).map(drop).unwrap_err().to_string(), "leave out limit");
}

/// The right side of one table is held in memory only as far as that is allowed.
#[test]
fn memory_is_bounded() {
    let options = drumlin::Options { memory_bytes: 8 << 20, ..drumlin::Options::default() };
    let store = Store::open_with("memory://", options).unwrap();
    let rows = |count: i64| {
        let n: ArrayRef = Arc::new(Int64Array::from_iter_values((0..count).map(|n| n * 7919 % count)));
        RecordBatch::try_from_iter([("n", n.clone()), ("a", n.clone()), ("b", n)]).unwrap()
    };
    store.write("t", rows(1_000_000), &Default::default()).unwrap();
    let scan = || store.scan("t", &DatasetOptions::default()).unwrap();
    let mut options = JoinOptions::new(JoinKind::Asof(AsofJoin::default()), "n");
    options.task_bytes = 0;
    let failed = scan().join(&scan(), &options).unwrap().find_map(Result::err).unwrap();
    assert!(failed.to_string().contains("memory_bytes"), "{failed}");
}
