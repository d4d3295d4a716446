//! Stores in a simulated bucket, a process each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use drumlin::base::{ManualClock, Timestamp};
use drumlin::storage::SimBucket;
use drumlin::store::{Options, ReclaimOptions};
use drumlin::{Result, Store};

use crate::support::env;

static SEEDS: AtomicU64 = AtomicU64::new(1);

/// Opens the store as a process of its own.
pub fn open(bucket: &SimBucket, clock: &Arc<ManualClock>) -> Result<Store> {
    open_as(bucket, clock, Options { inline_bytes: 0, ..Options::default() })
}

pub fn open_as(bucket: &SimBucket, clock: &Arc<ManualClock>, options: Options) -> Result<Store> {
    let options = Options { rest_micros: 0, ..options };
    let seed = SEEDS.fetch_add(1, Ordering::Relaxed);
    Store::open_bucket(Arc::new(bucket.clone()), env(clock, seed, 2), "bucket", options)
}

pub fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp(1_000_000)))
}

/// Ends all sessions but this one's, deletes whatever nothing refers to, and says what is wrong then: an object that nothing
/// refers to, or one referred to that is not as it was written.
pub fn settled(store: &Store, bucket: &SimBucket) -> std::result::Result<(), String> {
    let text = |e: drumlin::Error| e.to_string();
    let all = ReclaimOptions { fence_idle_micros: Some(0), audit: true, ..Default::default() };
    let report = store.reclaim(&all).map_err(text)?;
    let verified = store.verify(&Default::default()).map_err(text)?;
    let stat = store.stat().map_err(text)?;
    let names: Vec<String> = bucket.objects().into_iter().map(|(name, _)| name).collect();
    let blocks = names.iter().filter(|name| name.starts_with("blocks/")).count() as u64;
    let stray = names.iter().any(|name| name.starts_with("probe/"));
    // A second audit finds nothing: what is left of the log is named by its root.
    let again = store.reclaim(&ReclaimOptions { audit: true, ..Default::default() }).map_err(text)?;
    let clean = report.failures.is_empty() && blocks == stat.blocks + stat.condemned && !stray && again.orphans == 0;
    match clean && verified.faults.is_empty() {
        true => Ok(()),
        false => Err(format!("{report}; {:?}; {} blocks known; {names:?}; {again}", verified.faults, stat.blocks)),
    }
}
