//! Snapshots of patterns: what they cost, and what they hold when tables change, move, come and go.

use std::collections::BTreeMap;

use drumlin::catalog::{Existing, Retention};
use drumlin::storage::SimDisk;
use drumlin::store::AsOf;
use drumlin::{ErrorKind, Store, Tables, Version};

use crate::support::{Checked, batch, numbered, open, read, same, sound};

fn checkpoint(store: &Store) {
    let report = store.checkpoint(&Default::default()).unwrap();
    assert!(report.failures.is_empty(), "{report:?}");
}

fn write(store: &Store, path: &str, from: i64, rows: usize) {
    store.write(path, batch(&numbered(from, rows)), &Default::default()).unwrap();
}

fn at(name: &str) -> AsOf {
    AsOf::Snapshot(name.to_owned())
}

/// The first number of each table that a snapshot shows.
fn shown(store: &Store, name: &str, paths: &[&str]) -> BTreeMap<String, i64> {
    let of = |path: &&str| Some((path.to_string(), read(store, path, at(name)).ok()?.first()?.0));
    paths.iter().filter_map(of).collect()
}

const PATHS: [&str; 9] = ["a/x", "a/y", "a/z", "a/gone", "a/late", "a/back", "b/moved", "c/x", "a/deep/x"];

/// Tables that change, move, go and come back leave the snapshots that cover them as they were.
pub fn tables_leave_what_covers_them() -> Checked {
    let disk = SimDisk::in_memory();
    let mut store = open(&disk).unwrap();
    for (n, path) in ["a/x", "a/y", "a/z", "a/gone", "a/back", "a/moved", "b/x", "a/deep/x"].iter().enumerate() {
        write(&store, path, n as i64, 3);
    }
    store.drop("a/back").unwrap();
    let taken = store.snapshot("one", "a/*").unwrap();
    same(&taken.tables, &5, "tables")?;
    let of = |versions: &[(&str, u64)]| -> Vec<(String, Version)> {
        versions.iter().map(|(path, version)| (path.to_string(), Version(*version))).collect()
    };
    let held = of(&[("a/gone", 0), ("a/moved", 0), ("a/x", 0), ("a/y", 0), ("a/z", 0)]);
    same(&taken.versions().unwrap(), &held, "what it holds")?;
    store.append("a/y", batch(&numbered(70, 1)), &Default::default()).unwrap();
    store.snapshot("two", "a/**").unwrap();
    let one: BTreeMap<String, i64> =
        [("a/x", 0), ("a/y", 1), ("a/z", 2), ("a/gone", 3), ("b/moved", 5)].map(|(p, n)| (p.to_owned(), n)).into();
    let mut two = one.clone();
    two.insert("a/deep/x".to_owned(), 7);
    for round in 0..3 {
        match round {
            0 => {
                // The newest version goes, a table goes and another takes its path, one moves, one comes back.
                write(&store, "a/x", 100, 2);
                store.table("a/x").delete("id > 100", &Default::default()).unwrap();
                store.delete_versions(&[("a/y".to_owned(), vec![Version(1)])], Default::default()).unwrap();
                store.drop("a/gone").unwrap();
                write(&store, "a/gone", 200, 1);
                store.relocate("a/moved", "b/moved", Existing::Refuse).unwrap();
                store.undrop("a/back", None).unwrap();
                write(&store, "a/late", 300, 1);
            }
            1 => {
                checkpoint(&store);
                store.close().unwrap();
                store = open(&disk).unwrap();
                write(&store, "a/z", 400, 1);
                store.set_retention("**", Some(Retention::KeepLast(1))).unwrap();
            }
            _ => {
                checkpoint(&store);
                store.reclaim(&Default::default()).unwrap();
                store.close().unwrap();
                store = open(&disk).unwrap();
            }
        }
        same(&shown(&store, "one", &PATHS), &one, &format!("the first, round {round}"))?;
        same(&shown(&store, "two", &PATHS), &two, &format!("the second, round {round}"))?;
        same(&read(&store, "a/y", at("one")).unwrap().len(), &3, "rows then")?;
        same(&read(&store, "a/y", at("two")).unwrap().len(), &4, "rows at the second")?;
        let snapshots = store.snapshots().unwrap();
        same(&snapshots[0].versions().unwrap(), &held, "what the first holds")?;
        sound(&store)?;
    }
    let holders = |path: &str| -> Vec<Vec<String>> {
        let versions = store.table(path).versions().unwrap();
        versions.into_iter().map(|info| info.snapshots).filter(|names| !names.is_empty()).collect()
    };
    same(&holders("a/deep/x"), &vec![vec!["two".to_owned()]], "who holds what did not change")?;
    same(&holders("b/moved"), &vec![vec!["one".to_owned(), "two".to_owned()]], "who holds what moved")?;
    same(&store.snapshot("one", "**").unwrap_err().kind(), &ErrorKind::AlreadyExists, "again")?;
    store.drop_snapshot("one").unwrap();
    same(&shown(&store, "two", &PATHS), &two, "the second alone")?;
    store.snapshot("one", "a/x").unwrap();
    same(&shown(&store, "one", &PATHS), &[("a/x".to_owned(), 100)].into(), "a new one of that name")?;
    for name in ["one", "two"] {
        store.drop_snapshot(name).unwrap();
        sound(&store)?;
    }
    checkpoint(&store);
    store.close().unwrap();
    sound(&open(&disk).unwrap())
}

#[test]
fn tables_leave_covers() {
    tables_leave_what_covers_them().unwrap();
}

/// A snapshot writes the same whatever it holds, and so does the checkpoint after it; a table pays with its first change.
#[test]
fn a_snapshot_costs_the_same_whatever_it_holds() {
    let costs = |tables: usize| {
        let disk = SimDisk::in_memory();
        let store = open(&disk).unwrap();
        let frames = (0..tables).map(|n| (format!("t/{n}"), batch(&numbered(n as i64, 3)).into())).collect();
        store.write_many(frames, &Default::default()).unwrap();
        checkpoint(&store);
        let mut before = disk.counters().bytes_written;
        let mut written = || {
            let now = disk.counters().bytes_written;
            let bytes = now - before;
            before = now;
            bytes
        };
        store.snapshot("s", "**").unwrap();
        store.snapshot("t", "t/*").unwrap();
        let mut costs = vec![written()];
        checkpoint(&store);
        costs.push(written());
        for n in 0..10 {
            store.append(&format!("t/{n}"), batch(&numbered(n, 1)), &Default::default()).unwrap();
        }
        costs.push(written());
        store.drop_snapshot("s").unwrap();
        costs.push(written());
        assert_eq!(store.snapshots().unwrap()[0].versions().unwrap().len(), tables);
        costs
    };
    let (few, many) = (costs(300), costs(6000));
    assert_eq!([few[0], few[2], few[3]], [many[0], many[2], many[3]], "{few:?} bytes, {many:?} with many tables");
    // Its index names all pages of tables.
    assert!(many[0] < 500 && many[1] < 1000, "{many:?}");
}
