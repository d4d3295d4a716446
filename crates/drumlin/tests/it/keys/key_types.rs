//! Keyed tables whose key changes its type from one version to the next: look-ups by key agree with scans in every
//! version and snapshot, whatever was looked up before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, Date32Array, Decimal128Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use drumlin::base::Version;
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, LookupOptions, Options, ReadOptions, TableOptions, WriteOptions};
use drumlin::{ErrorKind, Store, Tables};

use crate::support::env;

const T: &str = "t";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Text,
    Int,
    Unsigned,
    Decimal(i8),
    Date,
}

const KINDS: [Kind; 6] = [Kind::Text, Kind::Int, Kind::Unsigned, Kind::Decimal(0), Kind::Decimal(3), Kind::Date];

fn keys(kind: Kind, ids: &[i64]) -> ArrayRef {
    match kind {
        Kind::Text => Arc::new(StringArray::from_iter_values(ids.iter().map(|id| format!("customer-{id:06}")))),
        Kind::Int => Arc::new(Int64Array::from_iter_values(ids.iter().copied())),
        Kind::Unsigned => Arc::new(UInt64Array::from_iter_values(ids.iter().map(|id| *id as u64))),
        Kind::Decimal(scale) => {
            let values = Decimal128Array::from_iter_values(ids.iter().map(|id| i128::from(*id)));
            Arc::new(values.with_precision_and_scale(20, scale).unwrap())
        }
        Kind::Date => Arc::new(Date32Array::from_iter_values(ids.iter().map(|id| *id as i32))),
    }
}

fn rows(kind: Kind, ids: &[i64]) -> RecordBatch {
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(ids.iter().copied()));
    RecordBatch::try_from_iter_with_nullable([("k", keys(kind, ids), true), ("v", values, true)]).unwrap()
}

fn open(row_write_bytes: u64, inline_bytes: u64) -> Store {
    let options = Options { row_write_bytes, inline_bytes, ..Options::default() };
    drumlin::store::open_on(Arc::new(SimDisk::in_memory()), env(&Arc::default(), 1, 2), "sim", options).unwrap()
}

fn found(store: &Store, kind: Kind, ids: &[i64], as_of: AsOf) -> Vec<bool> {
    let asked = rows(kind, ids).project(&[0]).unwrap();
    let options = LookupOptions { as_of, ..LookupOptions::default() };
    store.table(T).get_many(&asked, &options).unwrap().found.iter().map(|found| found == Some(true)).collect()
}

fn scanned(store: &Store, as_of: AsOf) -> BTreeSet<i64> {
    use arrow::array::AsArray;
    let batches = store.table(T).collect(&ReadOptions { as_of, ..ReadOptions::default() }).unwrap();
    batches
        .iter()
        .flat_map(|batch| batch["v"].as_primitive::<arrow::datatypes::Int64Type>().values().to_vec())
        .collect()
}

/// Look-ups in versions whose key has another type work, whatever was looked up in the newest before.
pub fn older_versions_beside_the_newest() -> Result<(), String> {
    let store = open(1 << 20, 0);
    let ids: Vec<i64> = (0..3000).collect();
    let text = rows(Kind::Text, &ids);
    store.table(T).create(text.schema(), TableOptions { key: vec!["k".into()], ..TableOptions::default() }).unwrap();
    store.append(T, text, &WriteOptions::default()).unwrap();
    let written = store.write(T, rows(Kind::Int, &ids), &WriteOptions::default()).unwrap();
    assert_eq!(found(&store, Kind::Int, &[5], AsOf::Newest), [true]);
    let old = AsOf::Version(Version(written.version.0 - 1));
    assert_eq!(found(&store, Kind::Text, &[5, 2999, 3000], old), [true, true, false]);
    store.delete_versions(&[(T.to_owned(), vec![written.version])], drumlin::store::Missing::Refuse).unwrap();
    assert_eq!(found(&store, Kind::Text, &[5], AsOf::Newest), [true]);
    let error = store.table(T).insert(rows(Kind::Text, &[5]), &WriteOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    Ok(())
}

#[test]
fn a_look_up_of_the_newest_does_not_spoil_those_of_older_versions() {
    older_versions_beside_the_newest().unwrap();
}

#[test]
fn versions_of_any_key_type_are_found_by_key_as_scans_find_them() {
    crate::seeds::each(0..60, 10, |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let store = open([0, 1 << 20][rng.usize(..2)], [0, 65_536][rng.usize(..2)]);
        let mut kind = KINDS[rng.usize(..KINDS.len())];
        let schema = rows(kind, &[]).schema();
        store.table(T).create(schema, TableOptions { key: vec!["k".into()], ..TableOptions::default() }).unwrap();
        let mut model: BTreeSet<i64> = BTreeSet::new();
        let mut snapshots: BTreeMap<String, (Kind, BTreeSet<i64>)> = BTreeMap::new();
        // The state before the newest version, if that can be deleted again.
        let mut before: Option<(Version, Kind, BTreeSet<i64>)> = None;
        for step in 0..16 {
            let mut ids: Vec<i64> = (0..400).filter(|_| rng.u32(..10) < 2).collect();
            ids.truncate([3, 100][rng.usize(..2)]);
            let now = (kind, model.clone());
            let op = rng.u32(..8);
            match op {
                0 | 1 => {
                    // Deleting the version later returns to the numbered state.
                    store.checkpoint(&Default::default()).unwrap();
                    kind = KINDS[rng.usize(..KINDS.len())];
                    let written = store.write(T, rows(kind, &ids), &WriteOptions::default()).unwrap();
                    model = ids.iter().copied().collect();
                    before = Some((written.version, now.0, now.1));
                }
                2 | 3 => {
                    store.table(T).upsert(rows(kind, &ids), &WriteOptions::default()).unwrap();
                    model.extend(&ids);
                    before = None;
                }
                4 => {
                    let keys = rows(kind, &ids).project(&[0]).unwrap();
                    store.table(T).delete_keys(keys, &WriteOptions::default()).unwrap();
                    model.retain(|id| !ids.contains(id));
                    before = None;
                }
                5 => drop(store.checkpoint(&Default::default()).unwrap()),
                6 => {
                    let name = format!("s{step}");
                    store.snapshot(&name, T).unwrap();
                    snapshots.insert(name, now);
                    before = None;
                }
                _ => {
                    if let Some((version, kind_before, rows_before)) = before.take() {
                        let versions = [(T.to_owned(), vec![version])];
                        store.delete_versions(&versions, drumlin::store::Missing::Refuse).unwrap();
                        (kind, model) = (kind_before, rows_before);
                    }
                }
            }
            let asked: Vec<i64> = (0..30).map(|_| rng.i64(0..400)).collect();
            let there = |rows: &BTreeSet<i64>| asked.iter().map(|id| rows.contains(id)).collect::<Vec<_>>();
            // The first look-up decides what is cached.
            let newest_first = rng.bool();
            let newest = || {
                assert_eq!(found(&store, kind, &asked, AsOf::Newest), there(&model), "seed {seed}, step {step}");
                assert_eq!(scanned(&store, AsOf::Newest), model, "seed {seed}, step {step}");
            };
            if newest_first {
                newest();
            }
            for (name, (kind, rows)) in &snapshots {
                let at = AsOf::Snapshot(name.clone());
                assert_eq!(found(&store, *kind, &asked, at.clone()), there(rows), "seed {seed}, step {step}, {name}");
                assert_eq!(&scanned(&store, at), rows, "seed {seed}, step {step}, {name}");
            }
            if !newest_first {
                newest();
            }
        }
    });
}
