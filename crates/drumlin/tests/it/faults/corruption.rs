//! Damage of every kind to a cleanly closed store: a clear error or the identical result, never other rows.

use std::collections::BTreeMap;

use drumlin::base::Version;
use drumlin::storage::SimDisk;
use drumlin::store::AsOf;
use drumlin::{ErrorKind, Store, Tables};

use crate::support::{Row, batch, numbered, open, read};

pub type Answers = BTreeMap<(String, u64), Vec<Row>>;

/// A small store with two log segments, a catalog snapshot, blocks, history and a snapshot.
fn build() -> (SimDisk, Answers) {
    let disk = SimDisk::new();
    let store = open(&disk).unwrap();
    store.write("a", batch(&numbered(0, 40)), &Default::default()).unwrap();
    store.append("a", batch(&numbered(100, 3)), &Default::default()).unwrap();
    store.write("b/c", batch(&numbered(7, 9)), &Default::default()).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    store.reclaim(&Default::default()).unwrap();
    store.table("a").delete("id % 3 = 0", &Default::default()).unwrap();
    store.snapshot("s", "**").unwrap();
    store.write("b/c", batch(&numbered(1000, 5)), &Default::default()).unwrap();
    let answers = answers(&store).unwrap();
    store.close().unwrap();
    assert_eq!(answers, self::answers(&open(&disk.fork()).unwrap()).unwrap(), "undamaged, it answers");
    (disk, answers)
}

pub fn answers(store: &Store) -> drumlin::Result<Answers> {
    let mut all = Answers::new();
    for path in ["a", "b/c"] {
        for version in store.table(path).versions()? {
            let rows = read(store, path, AsOf::Version(Version(version.version.0)))?;
            all.insert((path.to_owned(), version.version.0), rows);
        }
        all.insert((path.to_owned(), u64::MAX), read(store, path, AsOf::Snapshot("s".into()))?);
    }
    Ok(all)
}

/// Opens the damaged store: correct results or an honest error.
fn judge(disk: &SimDisk, expected: &Answers, what: &dyn Fn() -> String) -> bool {
    match open(disk).and_then(|store| answers(&store)) {
        Ok(found) => {
            assert_eq!(&found, expected, "{}", what());
            false
        }
        Err(e) => {
            let kinds = [ErrorKind::Corrupt, ErrorKind::Unsupported, ErrorKind::NotFound];
            assert!(kinds.contains(&e.kind()), "{}: {e}", what());
            true
        }
    }
}

// faults: bit rot x open, read, snapshot
#[test]
fn every_flipped_byte_is_found_or_harmless() {
    let (disk, expected) = build();
    let mut found = 0;
    for (name, content) in disk.files() {
        if name == "lock" {
            continue;
        }
        for at in 0..content.len() {
            let copy = disk.fork();
            let mut damaged = content.clone();
            damaged[at] ^= 1 << (at % 8);
            copy.damage(&name, damaged);
            found += u64::from(judge(&copy, &expected, &|| format!("{name}, byte {at} flipped")));
        }
    }
    assert!(found > 1000, "only {found} flips were noticed");
}

// faults: bit rot, lost log x open, read
#[test]
fn a_file_cut_anywhere_is_found() {
    let (disk, expected) = build();
    for (name, content) in disk.files() {
        if name == "lock" {
            continue;
        }
        for keep in (0..content.len()).step_by(7) {
            let copy = disk.fork();
            copy.damage(&name, content[..keep].to_vec());
            let store = open(&copy).and_then(|store| answers(&store));
            match store {
                Ok(found) if name.starts_with("log/") => {
                    // A truncated log looks like one that ended there: every version still there is correct.
                    for (key, rows) in &found {
                        assert!(
                            key.1 == u64::MAX || expected.get(key).is_none_or(|e| e == rows),
                            "{name} cut at {keep}"
                        );
                    }
                }
                Ok(found) => assert_eq!(found, expected, "{name} cut at {keep}"),
                Err(e) => assert_ne!(e.kind(), ErrorKind::Conflict, "{name} cut at {keep}: {e}"),
            }
        }
    }
}

// faults: bit rot x open, read, snapshot
#[test]
fn swapped_and_older_objects_are_found() {
    let (disk, expected) = build();
    let files: Vec<(String, Vec<u8>)> = disk.files().into_iter().filter(|(name, _)| name != "lock").collect();
    for (name, content) in &files {
        for (other, _) in files.iter().filter(|(other, _)| other != name) {
            let copy = disk.fork();
            copy.damage(other, content.clone());
            judge(&copy, &expected, &|| format!("{other} replaced by {name}"));
        }
    }
}

// faults: bit rot x open, read
#[test]
fn a_missing_file_is_named() {
    let (disk, expected) = build();
    for (name, _) in disk.files() {
        if name == "lock" {
            continue;
        }
        let copy = disk.fork();
        drumlin::storage::Disk::remove(&copy, &name).unwrap();
        match open(&copy).and_then(|store| answers(&store)) {
            Ok(found) => assert_eq!(found, expected, "{name} removed"),
            Err(e) => assert!(matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::NotFound), "{name} removed: {e}"),
        }
    }
}

// faults: bit rot x verify
#[test]
fn verify_names_what_is_damaged() {
    let (disk, _) = build();
    let (name, mut content) = disk.files().into_iter().find(|(name, _)| name.starts_with("blocks/")).unwrap();
    content[70] ^= 1;
    disk.damage(&name, content);
    let report = open(&disk).unwrap().verify(&Default::default()).unwrap();
    assert!(!report.faults.is_empty());
    assert!(report.faults[0].error.contains(&name), "{:?}", report.faults);
}
