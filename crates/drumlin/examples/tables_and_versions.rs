//! Tables and versions: write a frame, append to it, delete rows, and read the table as it was.

use std::sync::Arc;

use drumlin::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use drumlin::{AsOf, Filter, Options, ReadOptions, Result, ScanOptions, Store, Tables, Version};

fn prices(days: std::ops::Range<i64>) -> RecordBatch {
    let day = Arc::new(Int64Array::from_iter_values(days.clone())) as ArrayRef;
    let close = Arc::new(Float64Array::from_iter_values(days.map(|day| 100.0 + day as f64))) as ArrayRef;
    RecordBatch::try_from_iter([("day", day), ("close", close)]).expect("columns of one length")
}

fn rows(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

fn main() -> Result<()> {
    let store = Store::open_with("memory://", Options::default())?;
    let first = store.write("prices/us/AAPL", prices(0..5), &Default::default())?;
    store.append("prices/us/AAPL", prices(5..10), &Default::default())?;

    // One table, by its handle.
    let table = store.table("prices/us/AAPL");
    let deleted = table.delete("day < 2", &Default::default())?;
    println!("{} rows deleted; {} versions", deleted.rows, table.versions()?.len());

    // Rows and columns of the newest version, and the first version as it was.
    let filter = Some(Filter::parse("close > 105")?);
    let scan = ScanOptions { columns: Some(vec!["day".into()]), filter, ..ScanOptions::default() };
    let high = table.collect(&ReadOptions::from(scan))?;
    let as_of = AsOf::Version(first.version);
    let then = table.collect(&ReadOptions { as_of, ..ReadOptions::default() })?;
    println!("{} rows above 105; {} rows in version {}", rows(&high), rows(&then), first.version);
    assert_eq!((rows(&high), rows(&then), first.version), (4, 5, Version(0)));
    store.close()
}
