//! What golden stores hold that have layouts: see golden.rs.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use drumlin::base::Version;
use drumlin::store::{AsOf, CheckpointOptions, ReadOptions, UpdateOptions};
use drumlin::table::PlanOptions;
use drumlin::{Expression, RowLayout, ScanOptions, Store, Tables};

fn rows() -> RecordBatch {
    let n: ArrayRef = Arc::new(Int64Array::from_iter_values((0..40).map(|at| at * 7 % 40)));
    let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..40).map(|at| format!("t{}", at * 3 % 11))));
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(0..40));
    RecordBatch::try_from_iter([("n", n), ("text", text), ("id", id)]).unwrap()
}

/// Row groups that were laid out, in the catalog.
pub fn build(store: &Store) -> drumlin::Result<()> {
    for (path, layout) in [
        ("laid/sorted", RowLayout::Sorted(vec!["n".into()])),
        ("laid/curve", RowLayout::Curve(vec!["text".into(), "n".into()])),
    ] {
        store.write(path, rows(), &Default::default())?;
        store.table(path).set_layout(Some(&layout))?;
    }
    let plan = PlanOptions { group_rows: 10, ..PlanOptions::default() };
    store.checkpoint(&CheckpointOptions { plan, ..Default::default() }).map(drop)
}

/// A patch on them, and another layout, in the log.
pub fn build_in_log(store: &Store) -> drumlin::Result<()> {
    let set = [("text".to_owned(), Expression::parse("'new'")?)];
    store.table("laid/sorted").update(&set, Some("n < 5"), &UpdateOptions::default())?;
    store.table("laid/curve").set_layout(Some(&RowLayout::Sorted(vec!["id".into()])))?;
    store.table("laid/curve").delete("id = 39", &Default::default()).map(drop)
}

pub fn check(store: &Store) {
    let layout = |path: &str| store.table(path).stat().unwrap().layout.unwrap();
    let (sorted, curve) = (layout("laid/sorted"), layout("laid/curve"));
    assert_eq!((sorted.layout, sorted.laid_out, sorted.overlap), (RowLayout::Sorted(vec!["n".into()]), 1, 0.0));
    assert_eq!((curve.layout, curve.laid_out), (RowLayout::Sorted(vec!["id".into()]), 0));
    let ids = |path: &str, version: u64| -> Vec<i64> {
        let options = ReadOptions::of(AsOf::Version(Version(version)), ScanOptions::default());
        let found = store.table(path).collect(&options).unwrap();
        found.iter().flat_map(|batch| batch["id"].as_primitive::<Int64Type>().values().to_vec()).collect()
    };
    let all: Vec<i64> = (0..40).collect();
    for (path, version, expected) in
        [("laid/sorted", 0, &all[..]), ("laid/sorted", 1, &all), ("laid/curve", 0, &all), ("laid/curve", 1, &all[..39])]
    {
        assert_eq!(ids(path, version), expected, "version {version} of {path}");
    }
}
