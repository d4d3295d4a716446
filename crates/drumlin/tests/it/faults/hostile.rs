//! Forged bytes: random, mutated, and mutated with repaired checksums. An error or a result, never a panic, never a
//! hang.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, TimeUnit};
use bytes::Bytes;
use drumlin::base::{checksum, checksum_at};
use drumlin::block::Directory;
use drumlin::catalog::{ChunkAddress, Index, Payload, TransactionRecord};
use drumlin::filter::Filter;
use drumlin::segment::{Form, decode};
use drumlin::storage::{SimBucket, SimDisk};
use drumlin::store::{AsOf, ReadOptions};
use drumlin::{ErrorKind, Store, Tables};

use crate::processes::shared_support;
use crate::seeds::rounds;
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

// faults: hostile bytes x open, read
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
    for round in 0..rounds(20_000) {
        let bytes: Vec<u8> = (0..rng.usize(..80)).map(|_| rng.u8(..)).collect();
        let what = |name: &str| format!("{name}, round {round}: {bytes:?}");
        let calm = |name: &str, work: &mut dyn FnMut()| {
            assert!(catch_unwind(AssertUnwindSafe(work)).is_ok(), "{}", what(name));
        };
        calm("transactions", &mut || drop(TransactionRecord::decode(&bytes)));
        calm("directory", &mut || drop(postcard::from_bytes::<Directory>(&bytes)));
        calm("index", &mut || drop(Index::decode(&bytes).map(|index| index.read(&[]))));
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
    fill(open(&disk).unwrap());
    disk
}

fn fill(store: Store) {
    store.write("a/b", batch(&numbered(0, 20)), &Default::default()).unwrap();
    store.append("a/b", batch(&numbered(50, 5)), &Default::default()).unwrap();
    store.table("a/b").delete("id = 3", &Default::default()).unwrap();
    let key = drumlin::store::TableOptions { key: vec!["id".into()], ..Default::default() };
    store.table("k").create(batch(&[]).schema(), key).unwrap();
    store.table("k").upsert(batch(&numbered(0, 9)), &Default::default()).unwrap();
    store.snapshot("s", "**").unwrap();
    store.checkpoint(&Default::default()).unwrap();
    store.append("a/b", batch(&numbered(70, 5)), &Default::default()).unwrap();
    store.table("a/b").delete("id = 4", &Default::default()).unwrap();
    store.table("k").upsert(batch(&numbered(5, 9)), &Default::default()).unwrap();
    store.table("k").delete_keys(batch(&numbered(2, 1)), &Default::default()).unwrap();
    store.close().unwrap();
}

fn collect(store: &Store, path: &str, as_of: AsOf) -> bool {
    store.table(path).collect(&ReadOptions { as_of, ..ReadOptions::default() }).is_ok()
}

/// Opens and uses the store; any result will do, but there must be one.
fn exercise(disk: &SimDisk) -> bool {
    open(disk).is_ok_and(|store| exercise_store(&store))
}

fn exercise_store(store: &Store) -> bool {
    let mut fine = store.verify(&Default::default()).is_ok();
    for entry in store.tree().list("**").unwrap_or_default().into_iter().filter(|entry| entry.table.is_some()) {
        let path = entry.path;
        for version in store.table(&path).versions().unwrap_or_default() {
            fine &= collect(store, &path, AsOf::Version(version.version));
        }
        fine &= collect(store, &path, AsOf::Snapshot("s".into()));
        let by_key = store.table(&path).get_many(&batch(&numbered(0, 20)), &Default::default()).is_ok();
        fine &= by_key || path != "k";
        fine &= store.table(&path).delete("id % 2 = 0", &Default::default()).is_ok();
    }
    fine &= store.checkpoint(&Default::default()).is_ok();
    fine &= store.reclaim(&Default::default()).is_ok();
    // The other operations, some of which may be refused.
    let none = Default::default();
    let _ = store.append("a/b", batch(&numbered(90, 3)), &none);
    let _ = store.write("new", batch(&numbered(0, 3)), &none);
    let _ = store.table("k").upsert(batch(&numbered(1, 4)), &none);
    let _ = store.tree().put("n", Payload::from(1));
    let _ = store.snapshot("s2", "**");
    let _ = store.transact(|tx| {
        tx.tree().put("m", Payload::from(2))?;
        tx.table("a/b").delete("id > 60", &Default::default())
    });
    let _ = store.drop("a/b");
    let _ = store.undrop("a/b", None);
    let _ = store.drop_snapshot("s");
    if let Ok(mut feed) = store.changes(drumlin::base::Seq(0)) {
        while let Ok(Some(commit)) = feed.next(Some(std::time::Duration::ZERO)) {
            let _ = commit.events();
        }
    }
    fine
}

/// A catalog snapshot split into parts: its object's header, its chunks, its index.
struct Catalog {
    name: String,
    header: Vec<u8>,
    chunks: Vec<Vec<u8>>,
    index: Vec<u8>,
}

/// The log segment, whose header names the catalog snapshot.
fn segment(disk: &SimDisk) -> (String, Vec<u8>) {
    disk.files().into_iter().find(|(name, _)| name.starts_with("log/")).unwrap()
}

fn take_apart(disk: &SimDisk) -> Catalog {
    let (name, object) = disk.files().into_iter().find(|(name, _)| name.starts_with("catalog/")).unwrap();
    let offset = u64::from_le_bytes(segment(disk).1[32..40].try_into().unwrap()) as usize;
    let index = Index::decode(&object[offset..]).unwrap();
    let chunk = |place: &ChunkAddress| object[place.offset as usize..(place.offset + place.bytes) as usize].to_vec();
    let chunks = index.places().map(chunk).collect();
    Catalog { name, header: object[..16].to_vec(), chunks, index: object[offset..].to_vec() }
}

/// Puts a catalog snapshot back, with correct offsets and checksums of its parts.
fn put_back(disk: &SimDisk, mut catalog: Catalog) {
    let name = catalog.name;
    let mut object = catalog.header;
    if let Ok(index) = Index::decode(&catalog.index) {
        let old: Vec<ChunkAddress> = index.places().copied().collect();
        for (place, chunk) in old.into_iter().zip(&catalog.chunks) {
            let offset = object.len() as u64;
            let checksum = checksum_at(chunk, &name, offset);
            let new = ChunkAddress { offset, bytes: chunk.len() as u64, checksum, ..place };
            let (old, new) = (postcard::to_stdvec(&place).unwrap(), postcard::to_stdvec(&new).unwrap());
            // A mutated index may encode a number differently.
            if let Some(at) = catalog.index.windows(old.len()).position(|bytes| bytes == old) {
                catalog.index.splice(at..at + old.len(), new);
            }
            object.extend(chunk);
        }
    }
    let offset = object.len() as u64;
    let (segment, mut bytes) = segment(disk);
    bytes[32..40].copy_from_slice(&offset.to_le_bytes());
    bytes[40..44].copy_from_slice(&checksum_at(&catalog.index, &name, offset).to_le_bytes());
    bytes[44..48].copy_from_slice(&(catalog.index.len() as u32).to_le_bytes());
    let sum = checksum_at(&bytes[16..56], &segment, 0);
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    disk.damage(&segment, bytes);
    object.extend(catalog.index);
    disk.damage(&name, object);
}

// faults: hostile bytes, hostile sizes x hostile operations
#[test]
fn a_catalog_made_to_deceive_is_refused_or_harmless() {
    let disk = build();
    let (mut opened, mut refused) = (0, 0);
    for round in 0..rounds(6_000) {
        let mut rng = fastrand::Rng::with_seed(round);
        let copy = disk.fork();
        let mut catalog = take_apart(&copy);
        // The index is chosen as often as any of the chunks.
        let at = rng.usize(..=catalog.chunks.len());
        mutate(&mut rng, catalog.chunks.get_mut(at).unwrap_or(&mut catalog.index));
        put_back(&copy, catalog);
        match catch_unwind(AssertUnwindSafe(|| exercise(&copy))) {
            Ok(true) => opened += 1,
            Ok(false) => refused += 1,
            Err(_) => panic!("round {round} panicked"),
        }
    }
    assert!(opened > 100 && refused > 100, "{opened} opened, {refused} refused");
}

// faults: hostile bytes, hostile sizes x hostile operations
#[test]
fn a_log_made_to_deceive_is_refused_or_harmless() {
    let disk = build();
    let (name, log) = disk.files().into_iter().rfind(|(name, _)| name.ends_with(".log")).unwrap();
    for round in 0..rounds(6_000) {
        let mut rng = fastrand::Rng::with_seed(round);
        let copy = disk.fork();
        let mut bytes = log.clone();
        // One record's body is changed and its checksum repaired.
        let mut records = Vec::new();
        let mut at = 56;
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

// faults: hostile bytes, hostile sizes x hostile operations
#[test]
fn a_root_made_to_deceive_is_refused_or_harmless() {
    let (mut opened, mut refused) = (0, 0);
    for round in 0..rounds(400) {
        let mut rng = fastrand::Rng::with_seed(round);
        let (bucket, clock) = (SimBucket::new(), shared_support::clock());
        let store = shared_support::open(&bucket, &clock).unwrap();
        // Enough for the entries after it to leave the root.
        let large = Payload::bytes(&vec![7; 60_000]).unwrap();
        (0..3).for_each(|n| drop(store.tree().put(&format!("large/{n}"), large.clone()).unwrap()));
        fill(store);
        let chunk = bucket.objects().into_iter().map(|(name, _)| name).find(|name| name.starts_with("log/"));
        let name = chunk.filter(|_| round % 8 == 0).unwrap_or_else(|| "root".into());
        let mut bytes = bucket.content(&name).unwrap().to_vec();
        if name == "root" {
            // Usually the head: each entry after it has a checksum of its own.
            let length = u64::from_le_bytes(bytes[16..24].try_into().unwrap()) as usize;
            let mut head = bytes[24..24 + length].to_vec();
            mutate(&mut rng, &mut head);
            bytes.splice(24..(24 + length).next_multiple_of(8), []);
            bytes[16..24].copy_from_slice(&(head.len() as u64).to_le_bytes());
            head.resize(head.len().next_multiple_of(8), 0);
            bytes.splice(24..24, head);
            let sum = checksum_at(&bytes[16..], "root", 0);
            bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        } else {
            mutate(&mut rng, &mut bytes);
        }
        bucket.overwrite(&name, bytes);
        let answer = catch_unwind(AssertUnwindSafe(|| match shared_support::open(&bucket.client(), &clock) {
            Ok(store) => {
                exercise_store(&store);
                true
            }
            Err(e) => {
                assert!(matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported), "{e}");
                false
            }
        }));
        match answer.unwrap_or_else(|_| panic!("round {round}, {name}")) {
            true => opened += 1,
            false => refused += 1,
        }
    }
    assert!(opened > 3 && refused > 100, "{opened} opened, {refused} refused");
}
