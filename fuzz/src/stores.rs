//! Stores that targets start from: on simulated storage, with a repeatable clock and randomness, small enough to be opened a
//! thousand times per second.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use drumlin::base::{Env, ManualClock, OsThreads, Pool, SeededEntropy, Timestamp};
use drumlin::catalog::{Payload, Retention};
use drumlin::storage::{SimBucket, SimDisk};
use drumlin::store::{AsOf, Options, ReadOptions, TableOptions, VerifyOptions};
use drumlin::{Expression, Result, Store, Tables};

/// Objects by name.
pub type Objects = BTreeMap<String, Vec<u8>>;

/// A repeatable environment: one thread computes.
pub fn env() -> Env {
    static POOL: OnceLock<Pool> = OnceLock::new();
    Env {
        clock: Arc::new(ManualClock::new(Timestamp(1_000_000))),
        entropy: Arc::new(SeededEntropy::new(7)),
        pool: POOL.get_or_init(|| Pool::new(1).expect("a thread")).clone(),
        threads: Arc::new(OsThreads),
        metrics: Arc::default(),
        warn: Default::default(),
    }
}

/// Limits that keep one input from taking long.
fn options(inline_bytes: u64) -> Options {
    Options {
        inline_bytes,
        block_grace_micros: 0,
        retry_micros: 1000,
        cpu_threads: 1,
        io_threads: 1,
        ..Options::default()
    }
}

/// Opens the store on `disk`.
pub fn open(disk: &SimDisk, inline_bytes: u64) -> Result<Store> {
    drumlin::store::open_on(Arc::new(disk.clone()), env(), "sim", options(inline_bytes))
}

/// Opens the store in `bucket`.
pub fn open_bucket(bucket: &SimBucket) -> Result<Store> {
    drumlin::store::open_bucket(Arc::new(bucket.clone()), env(), "bucket", options(0))
}

/// `n` rows with ids from `from`.
pub fn rows(from: i64, n: i64) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter((from..from + n).map(Some)));
    let name = |id: i64| (id % 5 != 0).then(|| format!("name {}", id % 7));
    let names: ArrayRef = Arc::new(StringArray::from_iter((from..from + n).map(name)));
    RecordBatch::try_from_iter_with_nullable([("id", ids, true), ("name", names, true)])
        .expect("two columns of a length")
}

/// Fills a store so that its snapshot, log, memory and row groups all matter. `keys` rows are written by key in bulk: from
/// 1024 on, they have a filter.
fn fill(store: &Store, keys: i64) -> Result<()> {
    store.write("a/b", rows(0, 20), &Default::default())?;
    store.append("a/b", rows(50, 5), &Default::default())?;
    store.table("a/b").delete("id = 3", &Default::default())?;
    let key = TableOptions { key: vec!["id".into()], ..Default::default() };
    store.table("k").create(rows(0, 0).schema(), key)?;
    store.table("k").upsert(rows(0, 9), &Default::default())?;
    store.table("k").upsert(rows(4, 3), &Default::default())?;
    store.append("k", rows(100, keys), &Default::default())?;
    store.tree().put("n/1/leaf", Payload::json(&serde_json::json!({"on": true, "list": [1, 2.5, "x"]}))?)?;
    store.tree().put("n/2", Payload::bytes(b"bytes")?)?;
    store.set_retention("n", Some(Retention::KeepLast(9)))?;
    store.snapshot("s", "**")?;
    store.table("a/b").create_index("name", &[Expression::parse("name")?], &Default::default())?;
    store.checkpoint(&Default::default())?;
    store.reclaim(&Default::default())?;
    store.append("a/b", rows(70, 5), &Default::default())?;
    store.table("a/b").delete("id = 4", &Default::default())?;
    store.table("k").upsert(rows(5, 9), &Default::default())?;
    store.table("k").delete_keys(rows(2, 1), &Default::default())?;
    store.tree().put("n/3", Payload::json(&serde_json::json!(null))?)?;
    store.close()
}

/// A closed store in a folder.
pub fn folder(inline_bytes: u64, keys: i64) -> SimDisk {
    let disk = SimDisk::new();
    open(&disk, inline_bytes).and_then(|store| fill(&store, keys)).expect("a sound store");
    disk
}

/// A closed store in a bucket.
pub fn bucket() -> SimBucket {
    let bucket = SimBucket::new();
    open_bucket(&bucket).and_then(|store| fill(&store, 0)).expect("a sound store");
    bucket
}

/// Everything in a folder except the lock.
pub fn objects(disk: &SimDisk) -> Objects {
    disk.files().into_iter().filter(|(name, _)| name != "lock").collect()
}

/// Uses a store in every way that reads it, and in some that change it. The test is that it returns, not what it returns.
pub fn exercise(store: &Store) {
    let _ = store.verify(&VerifyOptions { deep: true, ..VerifyOptions::default() });
    for entry in store.tree().list("**").unwrap_or_default() {
        let path = entry.path;
        let _ = store.tree().get(&path);
        if entry.table.is_none() {
            continue;
        }
        for version in store.table(&path).versions().unwrap_or_default().into_iter().take(20) {
            let as_of = AsOf::Version(version.version);
            let _ = store.table(&path).collect(&ReadOptions { as_of, ..ReadOptions::default() });
            let _ =
                store.table(&path).collect(&ReadOptions { as_of: AsOf::Time(version.time), ..ReadOptions::default() });
        }
        let _ =
            store.table(&path).collect(&ReadOptions { as_of: AsOf::Snapshot("s".into()), ..ReadOptions::default() });
        let filter = drumlin::filter::Filter::parse("id > 3 and name is not null").ok();
        let filtered = ReadOptions { filter, ..ReadOptions::default() };
        let _ = store.table(&path).collect(&filtered);
        let _ = store.table(&path).get_many(&rows(0, 200), &Default::default());
        let _ = store.table(&path).delete("id % 2 = 0", &Default::default());
    }
    let _ = store.checkpoint(&Default::default());
    let _ = store.reclaim(&Default::default());
    let _ = store.stat();
}
