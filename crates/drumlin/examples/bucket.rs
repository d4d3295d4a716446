//! A store in a bucket: `cargo run --example bucket -- s3://bucket/prefix`; credentials come from the environment
//! (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT`). Without an argument it uses memory.

use std::sync::Arc;
use std::time::Duration;

use drumlin::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use drumlin::{Options, ReclaimOptions, Result, Store, Tables};

fn main() -> Result<()> {
    let uri = std::env::args().nth(1).unwrap_or_else(|| "memory://".to_owned());
    // Any number of processes may write the store; reads show what others have committed.
    let store = Store::open_with(&uri, Options { fresh: true, ..Options::default() })?;
    let rows = |n: i64| {
        let column = Arc::new(Int64Array::from_iter_values(0..n)) as ArrayRef;
        RecordBatch::try_from_iter([("n", column)]).expect("one column")
    };
    // One commit for all tables.
    let frames = (0..100).map(|table| (format!("numbers/{table:03}"), rows(table).into())).collect();
    store.write_many(frames, &Default::default())?;
    println!("{} tables at {uri}", store.tables("numbers/*")?.len());

    // Dropped by one commit; their objects are deleted by the reclaim, in parallel.
    let dropped = store.drop("numbers/**")?;
    let rest = Duration::ZERO.as_micros() as u64;
    let reclaimed = store.reclaim(&ReclaimOptions { block_grace_micros: Some(rest), ..ReclaimOptions::default() })?;
    println!("{} tables dropped, {} objects deleted", dropped.paths.len(), reclaimed.blocks);
    assert_eq!(dropped.paths.len(), 100);
    store.close()
}
