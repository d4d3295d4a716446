//! What golden stores hold that have views, one of them behind: see golden.rs.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Float64Type, Int64Type};
use drumlin::store::{AsOf, ReadOptions, ViewOptions};
use drumlin::{Aggregate, Function, GroupBy, StalePolicy, Store, Tables};

fn rows(n: &[i64]) -> RecordBatch {
    let of: ArrayRef = Arc::new(StringArray::from_iter_values(n.iter().map(|n| format!("g{}", n % 2))));
    let x: ArrayRef = Arc::new(Float64Array::from_iter_values(n.iter().map(|n| *n as f64 / 8.0 * 1e-30)));
    RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(n.to_vec())) as ArrayRef), ("of", of), ("x", x)])
        .unwrap()
}

fn options(stale: StalePolicy) -> ViewOptions {
    let made = |name: &str, function, of: &str| Aggregate { name: name.into(), function, of: Some(of.into()) };
    let aggregates = vec![
        made("sum", Function::Sum, "n"),
        made("mean", Function::Mean, "x"),
        made("std", Function::Std, "n"),
        made("least", Function::Min, "n"),
        made("text", Function::Max, "of"),
        made("last", Function::Last, "n"),
    ];
    let groups = GroupBy { keys: vec!["of".into()], aggregates, ..GroupBy::default() };
    ViewOptions {
        path_columns: vec!["name".into()],
        groups,
        stale,
        filter: Some("n <> 13".into()),
        ..Default::default()
    }
}

/// The checkpoint that follows puts them into the catalog.
pub fn build(store: &Store) -> drumlin::Result<()> {
    store.write("viewed/of/a", rows(&[1, 2, 13]), &Default::default())?;
    store.write("viewed/of/b", rows(&[i64::MAX - 1]), &Default::default())?;
    store.table("viewed/sums").create_view("viewed/of/*", &options(StalePolicy::Read))?;
    // A sum that is beyond its type.
    store.append("viewed/of/b", rows(&[i64::MAX - 3]), &Default::default()).map(drop)
}

/// The same in the log.
pub fn build_in_log(store: &Store) -> drumlin::Result<()> {
    store.append("viewed/of/a", rows(&[5, 6]), &Default::default())?;
    store
        .table("viewed/again")
        .create_view("viewed/of/a", &ViewOptions { path_columns: vec![], ..options(StalePolicy::Wait) })?;
    store.table("viewed/of/a").delete("n = 2", &Default::default()).map(drop)
}

pub fn check(store: &Store) {
    let views = store.tree().views().unwrap();
    let behind = |path: &str| views.iter().find(|view| view.path == path).unwrap().behind.clone();
    assert_eq!((behind("viewed/sums"), behind("viewed/again")), (vec!["viewed/of/b".to_owned()], vec![]));
    let read = |path: &str, as_of: AsOf| {
        let found = store.table(path).collect(&ReadOptions { as_of, ..ReadOptions::default() }).unwrap();
        let of = |batch: &RecordBatch| {
            let sums = batch["sum"].as_primitive::<Int64Type>().values().to_vec();
            let means = batch["mean"].as_primitive::<Float64Type>().values().to_vec();
            let last = batch["last"].as_primitive::<Int64Type>().values().to_vec();
            sums.into_iter().zip(means).zip(last).map(|((sum, mean), last)| (sum, mean, last)).collect::<Vec<_>>()
        };
        found.iter().flat_map(of).collect::<Vec<_>>()
    };
    let own = vec![(6, 7.500000000000001e-31, 6), (6, 3.7500000000000003e-31, 5)];
    assert_eq!(read("viewed/again", AsOf::Newest), own);
    let sums = read("viewed/sums", AsOf::Newest);
    assert_eq!((sums.len(), &sums[..2]), (3, &own[..]));
}
