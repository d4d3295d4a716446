//! Look-ups and durable puts, for `bench/metrics.py`, which runs this beside the same compiled without counting. Prints what is
//! measured, and the nanoseconds each took, the median of some rounds.

#![expect(clippy::disallowed_methods, reason = "a benchmark takes the time")]

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use drumlin::store::{Options, TableOptions};
use drumlin::{Store, Tables};

const ROWS: i64 = 100_000;
const ROUNDS: usize = 15;

fn rows(keys: impl Iterator<Item = i64>) -> RecordBatch {
    let keys: Int64Array = keys.collect();
    let fields = vec![Field::new("k", DataType::Int64, false), Field::new("v", DataType::Int64, false)];
    RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![Arc::new(keys.clone()), Arc::new(keys)]).expect("rows")
}

/// Prints the median time of `count` of these.
fn report(what: &str, count: usize, mut work: impl FnMut()) {
    let mut round = || {
        let start = Instant::now();
        work();
        start.elapsed().as_nanos() as f64 / count as f64
    };
    round();
    let mut times: Vec<f64> = (0..ROUNDS).map(|_| round()).collect();
    times.sort_by(f64::total_cmp);
    println!("{what}: {:.1}", times[ROUNDS / 2]);
}

fn main() -> drumlin::Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let uri = folder.path().join("s");
    let store = Store::open_with(uri.to_str().expect("a plain path"), Options::default())?;
    let table = store.table("t");
    let key = TableOptions { key: vec!["k".into()], ..TableOptions::default() };
    table.create(rows(0..0).schema(), key)?;
    for part in 0..10 {
        table.upsert(rows((0..ROWS / 10).map(|at| at * 10 + part)), &Default::default())?;
    }
    let mut rng = fastrand::Rng::with_seed(1);
    for (what, batch) in [("get_many of 1 key in memory", 1), ("get_many of 32 keys in memory", 32)] {
        let asked: Vec<RecordBatch> =
            (0..2000).map(|_| rows((0..batch).map(|_| rng.i64(0..ROWS))).project(&[0]).expect("a column")).collect();
        report(what, asked.len(), || {
            for keys in &asked {
                table.get_many(keys, &Default::default()).expect("reads");
            }
        });
    }
    let mut n = 0;
    report("a durable put", 200, || {
        for _ in 0..200 {
            n += 1;
            store.tree().put("node", n).expect("writes");
        }
    });
    Ok(())
}
