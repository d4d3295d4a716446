//! What golden stores hold whose rows expire: see golden.rs.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, TimestampMillisecondArray};
use arrow::datatypes::Int64Type;
use drumlin::base::Version;
use drumlin::store::{AsOf, ReadOptions, TableOptions};
use drumlin::{Alter, Store, Tables, TimeToLive, VersionKind};

/// Instants in milliseconds: in 2001, and in 2900.
const PAST: i64 = 1_000_000_000_000;
const FUTURE: i64 = 29_348_000_000_000;
const HOUR_MICROS: i64 = 3_600_000_000;

/// Ten rows, of which the even ones have expired.
fn rows() -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10));
    let times = (0..10).map(|id| if id % 2 == 0 { PAST } else { FUTURE });
    let times: ArrayRef = Arc::new(TimestampMillisecondArray::from_iter_values(times).with_timezone("UTC"));
    RecordBatch::try_from_iter_with_nullable([("id", ids, false), ("until", times, true)]).unwrap()
}

fn expire(store: &Store, path: &str, after_micros: i64) -> drumlin::Result<()> {
    let ttl = TimeToLive { column: "until".into(), after_micros };
    store.table(path).alter(&Alter::SetTtl(ttl), &Default::default()).map(drop)
}

/// The checkpoint that follows deletes those that have expired, and puts the table into the catalog.
pub fn build(store: &Store) -> drumlin::Result<()> {
    store.write("expiring/t", rows(), &Default::default())?;
    expire(store, "expiring/t", 0)
}

/// The same in the log, of rows in memory.
pub fn build_in_log(store: &Store) -> drumlin::Result<()> {
    let options = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table("expiring/log").create(rows().schema(), options)?;
    expire(store, "expiring/log", HOUR_MICROS)?;
    store.table("expiring/log").upsert(rows(), &Default::default()).map(drop)
}

pub fn check(store: &Store) {
    for (path, after_micros) in [("expiring/t", 0), ("expiring/log", HOUR_MICROS)] {
        let table = store.table(path);
        let ids = |as_of: AsOf| -> Vec<i64> {
            let batches = table.collect(&ReadOptions { as_of, ..ReadOptions::default() }).unwrap();
            batches.iter().flat_map(|batch| batch["id"].as_primitive::<Int64Type>().values().to_vec()).collect()
        };
        assert_eq!(ids(AsOf::Newest), [1, 3, 5, 7, 9], "{path}");
        let ttl = TimeToLive { column: "until".into(), after_micros };
        assert_eq!(table.ttl(&AsOf::Newest).unwrap(), Some(ttl));
        assert_eq!(table.ttl(&AsOf::Version(Version(0))).unwrap(), None);
        assert_eq!(ids(AsOf::Version(Version(0))).len(), if after_micros == 0 { 10 } else { 0 });
    }
    let kinds: Vec<_> = store.table("expiring/t").versions().unwrap().iter().map(|version| version.kind).collect();
    assert_eq!(kinds, [VersionKind::Write, VersionKind::Alter, VersionKind::Expire]);
}
