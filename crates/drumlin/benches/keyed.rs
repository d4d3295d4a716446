//! Keyed tables: look-ups in row groups, upserts in bulk. Prints medians; `bench/keyed.py` compares with other systems.
//!
//!     cargo bench --bench keyed -- [million rows]

#![expect(clippy::disallowed_methods, reason = "a benchmark takes the time")]

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use drumlin::store::{LookupOptions, Options, TableOptions, WriteOptions};
use drumlin::{Store, Tables};

fn rows(keys: impl Iterator<Item = i64>, factor: i64) -> RecordBatch {
    let keys: Int64Array = keys.map(Some).collect();
    let values: Int64Array = keys.values().iter().map(|key| Some(key.wrapping_mul(factor) % 1_000_003)).collect();
    RecordBatch::try_from_iter([("k", Arc::new(keys) as ArrayRef), ("v", Arc::new(values))]).expect("of one length")
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e3
}

fn main() -> drumlin::Result<()> {
    let million: i64 = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(50);
    let n = million * 1_000_000;
    let folder = tempfile::tempdir().expect("a folder");
    let uri = folder.path().join("s");
    let options = Options { cache_bytes: 2 << 30, ..Options::default() };
    let store = Store::open_with(uri.to_str().expect("a plain path"), options)?;
    let key = || TableOptions { key: vec!["k".into()], ..TableOptions::default() };
    store.table("t").create(rows(0..0, 1).schema(), key())?;
    let batches = (0..n / 1_000_000).map(|part| Ok(rows(part * 1_000_000..(part + 1) * 1_000_000, 7919)));
    let frame = drumlin::store::Frame::new(rows(0..0, 1).schema(), batches);
    println!(
        "write {million} million rows: {:.0} ms",
        timed(|| drop(store.append("t", frame, &WriteOptions::default()).expect("written")))
    );
    let mut rng = fastrand::Rng::with_seed(1);
    let mut random = || rows((0..10_000).map(|_| rng.i64(0..n)), 1).project(&[0]).expect("a column");
    let ask = |keys: &RecordBatch| {
        let found = store.table("t").get_many(keys, &LookupOptions::default()).expect("reads");
        assert_eq!(found.found.true_count(), keys.num_rows());
    };
    let cold = random();
    println!("10,000 random keys, first time: {:.1} ms", timed(|| ask(&cold)));
    let times = (0..9)
        .map(|_| {
            let keys = random();
            timed(|| ask(&keys))
        })
        .collect();
    println!("10,000 random keys: {:.1} ms", median(times));
    let mut rng = fastrand::Rng::with_seed(2);
    let mut clustered = || {
        let starts: Vec<i64> = (0..100).map(|_| rng.i64(0..n - 100)).collect();
        rows(starts.into_iter().flat_map(|start| start..start + 100), 1).project(&[0]).expect("a column")
    };
    let times = (0..9)
        .map(|_| {
            let keys = clustered();
            timed(|| ask(&keys))
        })
        .collect();
    println!("10,000 keys in 100 ranges: {:.1} ms", median(times));
    let one = random().slice(0, 1);
    println!("one key: {:.3} ms", median((0..50).map(|_| timed(|| ask(&one))).collect()));
    drop(store);
    let small = n / 5;
    let mut times = Vec::new();
    for round in 0..3 {
        let uri = folder.path().join(format!("u{round}"));
        let store = Store::open_with(uri.to_str().expect("a plain path"), Options::default())?;
        store.table("t").create(rows(0..0, 1).schema(), key())?;
        store.append("t", rows(0..small, 7919), &WriteOptions::default())?;
        let mut rng = fastrand::Rng::with_seed(round);
        let mut keys: Vec<i64> = (0..small).collect();
        rng.shuffle(&mut keys);
        let fresh = rows(keys.into_iter().take(small as usize / 10), 31);
        let upsert = timed(|| drop(store.table("t").upsert(fresh.clone(), &WriteOptions::default()).expect("written")));
        let checkpoint = timed(|| drop(store.checkpoint(&Default::default()).expect("written")));
        println!("upsert {} rows: {upsert:.0} ms, checkpoint {checkpoint:.0} ms", fresh.num_rows());
        times.push(upsert + checkpoint);
        println!("scan: {:.0} ms", timed(|| drop(store.table("t").collect(&Default::default()).expect("read"))));
    }
    println!("upsert and checkpoint: {:.0} ms", median(times));
    Ok(())
}
