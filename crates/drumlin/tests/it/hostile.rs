//! Bytes made to deceive: random, mutated, and mutated with their checksums repaired. An error or an answer, never a
//! panic, never a hang.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, TimeUnit};
use bytes::Bytes;
use drumlin::Store;
use drumlin::base::{checksum, checksum_at};
use drumlin::block::Directory;
use drumlin::catalog::{State, Transaction};
use drumlin::filter::Filter;
use drumlin::segment::{Form, decode};
use drumlin::storage::{Disk, SimDisk};
use drumlin::store::{AsOf, ReadOptions};

use crate::support::{batch, numbered, open};

fn mutate(rng: &mut fastrand::Rng, bytes: &mut Vec<u8>) {
    for _ in 0..rng.usize(1..4) {
        if bytes.is_empty() {
            bytes.push(rng.u8(..));
            continue;
        }
        let at = rng.usize(..bytes.len());
        match rng.u8(..6) {
            0 => bytes[at] = rng.u8(..),
            1 => bytes[at] ^= 1 << rng.u8(..8),
            2 => bytes.truncate(at),
            3 => bytes.insert(at, rng.u8(..)),
            4 => drop(bytes.remove(at)),
            _ => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][rng.usize(..5)],
        }
    }
}

#[test]
fn decoders_take_any_bytes() {
    let mut rng = fastrand::Rng::with_seed(7);
    let types = [
        DataType::Int64,
        DataType::Float64,
        DataType::Boolean,
        DataType::Utf8,
        DataType::Decimal128(20, 3),
        DataType::Timestamp(TimeUnit::Nanosecond, Some("Europe/Paris".into())),
        DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)),
        DataType::List(Arc::new(Field::new("item", DataType::Int32, true))),
    ];
    for round in 0..20_000 {
        let bytes: Vec<u8> = (0..rng.usize(..80)).map(|_| rng.u8(..)).collect();
        let what = |name: &str| format!("{name}, round {round}: {bytes:?}");
        let calm = |name: &str, work: &mut dyn FnMut()| {
            assert!(catch_unwind(AssertUnwindSafe(work)).is_ok(), "{}", what(name));
        };
        calm("transactions", &mut || drop(Transaction::decode(&bytes)));
        calm("directory", &mut || drop(postcard::from_bytes::<Directory>(&bytes)));
        calm("state", &mut || drop(postcard::from_bytes::<State>(&bytes).map(|state| state.check())));
        calm("filter", &mut || drop(std::str::from_utf8(&bytes).map(Filter::parse)));
        if round % 10 == 0 {
            let data_type = &types[rng.usize(..types.len())];
            let rows = rng.usize(..200);
            calm("segment", &mut || drop(decode(Bytes::from(bytes.clone()), rows, data_type, Form::Exact)));
        }
    }
}

/// A store with history, whose catalog snapshot and log both matter.
fn build() -> SimDisk {
    let disk = SimDisk::new();
    let store = open(&disk).unwrap();
    store.write("a/b", batch(&numbered(0, 20)), &Default::default()).unwrap();
    store.append("a/b", batch(&numbered(50, 5)), &Default::default()).unwrap();
    store.delete_rows("a/b", "id = 3", &Default::default()).unwrap();
    store.snapshot("s", "**").unwrap();
    store.checkpoint(&Default::default()).unwrap();
    store.append("a/b", batch(&numbered(70, 5)), &Default::default()).unwrap();
    store.delete_rows("a/b", "id = 4", &Default::default()).unwrap();
    store.close().unwrap();
    disk
}

fn collect(store: &Store, path: &str, as_of: AsOf) -> bool {
    store.collect(path, &ReadOptions { as_of, ..ReadOptions::default() }).is_ok()
}

/// Opens and uses the store; whatever it answers, it must answer.
fn exercise(disk: &SimDisk) -> bool {
    let Ok(store) = open(disk) else { return false };
    let mut fine = store.verify(&Default::default()).is_ok();
    for entry in store.list("**").unwrap_or_default().into_iter().filter(|entry| entry.table.is_some()) {
        let path = entry.path;
        for version in store.versions(&path).unwrap_or_default() {
            fine &= collect(&store, &path, AsOf::Version(version.version));
        }
        fine &= collect(&store, &path, AsOf::Snapshot("s".into()));
        fine &= store.delete_rows(&path, "id % 2 = 0", &Default::default()).is_ok();
    }
    fine &= store.checkpoint(&Default::default()).is_ok();
    fine & store.reclaim(&Default::default()).is_ok()
}

/// Puts the right checksum on a catalog snapshot, where the log's header has it.
fn repair_catalog(disk: &SimDisk, name: &str, catalog: &[u8]) {
    let log = |entry: &drumlin::storage::DiskEntry| format!("log/{}", entry.name);
    let segments: Vec<String> = disk.list("log").unwrap().iter().map(log).collect();
    for (segment, mut bytes) in disk.files().into_iter().filter(|(name, _)| segments.contains(name)) {
        bytes[32..40].copy_from_slice(&(catalog.len() as u64).to_le_bytes());
        bytes[40..44].copy_from_slice(&checksum_at(catalog, name, 0).to_le_bytes());
        let sum = checksum_at(&bytes[16..48], &segment, 0);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        disk.damage(&segment, bytes);
    }
    disk.damage(name, catalog.to_vec());
}

#[test]
fn a_catalog_made_to_deceive_is_refused_or_harmless() {
    let disk = build();
    let (name, catalog) = disk.files().into_iter().find(|(name, _)| name.starts_with("catalog/")).unwrap();
    let (mut opened, mut refused) = (0, 0);
    for round in 0..6_000_u64 {
        let mut rng = fastrand::Rng::with_seed(round);
        let copy = disk.fork();
        let mut bytes = catalog.clone();
        let mut body = bytes.split_off(16);
        mutate(&mut rng, &mut body);
        bytes.extend(body);
        repair_catalog(&copy, &name, &bytes);
        match catch_unwind(AssertUnwindSafe(|| exercise(&copy))) {
            Ok(true) => opened += 1,
            Ok(false) => refused += 1,
            Err(_) => panic!("round {round} panicked"),
        }
    }
    assert!(opened > 100 && refused > 100, "{opened} opened, {refused} refused");
}

#[test]
fn a_log_made_to_deceive_is_refused_or_harmless() {
    let disk = build();
    let (name, log) = disk.files().into_iter().rfind(|(name, _)| name.starts_with("log/")).unwrap();
    for round in 0..6_000_u64 {
        let mut rng = fastrand::Rng::with_seed(round);
        let copy = disk.fork();
        let mut bytes = log.clone();
        // One record's body is changed and its checksum repaired.
        let mut records = Vec::new();
        let mut at = 48;
        while at + 24 <= bytes.len() {
            let length = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
            if length > 40 {
                records.push((at, length));
            }
            at = (at + 24 + length).next_multiple_of(8);
        }
        let (at, length) = records[rng.usize(..records.len())];
        for _ in 0..rng.usize(1..3) {
            bytes[at + 24 + 40 + rng.usize(..length - 40)] = rng.u8(..);
        }
        let record = &bytes[at..at + 24 + length];
        let mut summed = record[..4].to_vec();
        summed.extend_from_slice(&record[8..]);
        summed.extend_from_slice(name.as_bytes());
        summed.extend_from_slice(&(at as u64).to_le_bytes());
        let sum = checksum(&summed);
        bytes[at + 4..at + 8].copy_from_slice(&sum.to_le_bytes());
        copy.damage(&name, bytes);
        assert!(catch_unwind(AssertUnwindSafe(|| exercise(&copy))).is_ok(), "round {round} panicked");
    }
}
