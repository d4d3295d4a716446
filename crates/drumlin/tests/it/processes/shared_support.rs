//! Stores in a simulated bucket, one per process.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use drumlin::base::{Clock, ManualClock, Timestamp};
use drumlin::storage::SimBucket;
use drumlin::store::{Options, ReclaimOptions, open_bucket_with};
use drumlin::{Result, Store};

use crate::cells::SimServer;
use crate::models::model::{Model, Trash};
use crate::models::random::{Op, apply, compare, compare_trash, run};
use crate::models::wide_op::WideOp;
use crate::rows::keyed_model::{self, KeyedOp, PATH, Place};
use crate::support::env;

static SEEDS: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static IN_CELLS: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, in which stores that are opened on this thread have their logs in cells, beside their objects.
pub fn with_cells<T>(work: impl FnOnce() -> T) -> T {
    IN_CELLS.set(true);
    let answer = work();
    IN_CELLS.set(false);
    answer
}

/// Whether they do.
pub fn in_cells() -> bool {
    IN_CELLS.get()
}

/// Opens the store as a separate process.
pub fn open(bucket: &SimBucket, clock: &Arc<ManualClock>) -> Result<Store> {
    open_as(bucket, clock, Options { inline_bytes: 0, ..Options::default() })
}

pub fn open_as(bucket: &SimBucket, clock: &Arc<ManualClock>, options: Options) -> Result<Store> {
    let options = Options { block_grace_micros: 0, ..options };
    let seed = SEEDS.fetch_add(1, Ordering::Relaxed);
    if in_cells() {
        let options = Options { log_at: Some("sim".into()), ..options };
        let cells = SimServer::new(bucket, clock, seed);
        return open_bucket_with(Arc::new(bucket.clone()), &cells, env(clock, seed, 2), "bucket", options);
    }
    drumlin::store::open_bucket(Arc::new(bucket.clone()), env(clock, seed, 2), "bucket", options)
}

pub fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp(1_000_000)))
}

/// How many rounds of requests for objects or parts of them the store has made.
pub fn rounds(store: &Store) -> u64 {
    let is_get = |metric: &&drumlin::Metric| {
        metric.name == "drumlin_storage_requests_total" && metric.label.is_some_and(|(_, kind)| kind == "get")
    };
    match drumlin::metrics(store).unwrap().iter().find(is_get).unwrap().value {
        drumlin::MetricValue::Counter(count) => count,
        _ => panic!("not a counter"),
    }
}

/// Ends all sessions except this one's, deletes everything that nothing refers to, and returns what is wrong then: an object
/// that nothing refers to, or one referred to that is not as it was written.
pub fn settled(store: &Store, bucket: &SimBucket) -> std::result::Result<(), String> {
    let text = |e: drumlin::Error| e.to_string();
    let all = ReclaimOptions { fence_idle_micros: Some(0), audit: true, ..Default::default() };
    let report = store.reclaim(&all).map_err(text)?;
    let verified = store.verify(&Default::default()).map_err(text)?;
    let stat = store.stat().map_err(text)?;
    let names: Vec<String> = bucket.objects().into_iter().map(|(name, _)| name).collect();
    let blocks = names.iter().filter(|name| name.starts_with("blocks/")).count() as u64;
    let stray = names.iter().any(|name| name.starts_with("probe/"));
    // A second audit finds nothing: all that is left of the log is named by its root.
    let again = store.reclaim(&ReclaimOptions { audit: true, ..Default::default() }).map_err(text)?;
    let clean = report.failures.is_empty() && blocks == stat.blocks + stat.condemned && !stray && again.orphans == 0;
    match clean && verified.faults.is_empty() {
        true => Ok(()),
        false => Err(format!("{report}; {:?}; {} blocks known; {names:?}; {again}", verified.faults, stat.blocks)),
    }
}

/// Compares with the model what reads do not show: the versions of what is in the trash, and whether there are rows by key
/// that are due for a version. It becomes visible in a copy of the bucket, where everything is restored and a snapshot
/// numbers those rows.
pub fn compare_hidden(
    bucket: &SimBucket,
    clock: &ManualClock,
    model: &Model,
    trash: &Trash,
) -> std::result::Result<(), String> {
    let copy = SimBucket::new();
    for (name, _) in bucket.objects() {
        copy.overwrite(&name, bucket.content(&name).expect("just listed").to_vec());
    }
    let text = |e: drumlin::Error| format!("in a copy: {e}");
    let store = open(&copy, &Arc::new(ManualClock::new(clock.now()))).map_err(text)?;
    compare_trash(&store, model, trash)?;
    let mut model = model.clone();
    // For the same path, the last dropped comes first.
    for (at, (path, table)) in trash.iter().rev().enumerate() {
        let to = format!("t/taken-back-{at:03}");
        store.undrop(path, Some(&to)).map_err(text)?;
        model.tables.insert(to, table.clone());
    }
    if let Some(keyed) = model.keyed.as_mut().filter(|keyed| keyed.place == Place::Trash) {
        store.undrop(PATH, None).map_err(text)?;
        keyed.place = Place::There;
    }
    compare(&store, &model).map_err(|e| format!("taken back: {e}"))?;
    if model.keyed.as_ref().is_some_and(|keyed| keyed.place == Place::There) {
        let numbers = KeyedOp::Snapshot("hidden".into());
        keyed_model::run(&store, &numbers).map_err(text)?;
        assert!(keyed_model::apply(&mut model.keyed, &mut model.nodes, &numbers));
    }
    compare(&store, &model).map_err(|e| format!("all numbered: {e}"))
}

#[test]
fn what_no_reading_shows_is_compared() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let store = open(&bucket, &clock).unwrap();
    let (mut model, mut trash) = (Model::default(), Trash::new());
    let mut attempt = |model: &mut Model, op: Op| {
        assert!(apply(model, &mut trash, &op));
        clock.advance(1000);
        run(&mut store.clone(), || unreachable!(), &op).unwrap();
    };
    attempt(&mut model, Op::Keyed(KeyedOp::Create));
    // Changes no row, but the next checkpoint makes a version for it.
    let before = model.clone();
    attempt(&mut model, Op::Keyed(KeyedOp::Delete { keys: vec![1], many: false }));
    compare(&store, &before).unwrap();
    assert!(compare_hidden(&bucket, &clock, &before, &Trash::new()).is_err());
    compare_hidden(&bucket, &clock, &model, &Trash::new()).unwrap();
    // It does the same for a table in the trash.
    attempt(&mut model, Op::Wide(WideOp::DropKeyed));
    let before = model.clone();
    attempt(&mut model, Op::Checkpoint);
    compare(&store, &before).unwrap();
    assert!(compare_hidden(&bucket, &clock, &before, &Trash::new()).is_err());
    compare_hidden(&bucket, &clock, &model, &Trash::new()).unwrap();
    // The versions of other tables in the trash, too.
    let row = vec![(1, None)];
    attempt(&mut model, Op::Write("t/a".into(), row.clone(), false));
    attempt(&mut model, Op::Drop("t/a".into()));
    compare_hidden(&bucket, &clock, &model, &trash).unwrap();
    trash[0].1.add(row);
    compare_trash(&store, &model, &trash).unwrap();
    assert!(compare_hidden(&bucket, &clock, &model, &trash).is_err());
}
