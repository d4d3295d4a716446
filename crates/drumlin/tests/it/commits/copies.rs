//! Restores, copies and moves: what they keep, what they cost, and what happens to shared row groups afterwards. Random
//! ones are part of the model (copy_op.rs).

use std::collections::BTreeMap;
use std::sync::Arc;

use drumlin::base::{ManualClock, Timestamp, Version};
use drumlin::catalog::{Condition, PutOptions, Retention};
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, CheckpointOptions, SnapshotOf, TableOptions};
use drumlin::table::PlanOptions;
use drumlin::{ErrorKind, Event, Existing, Payload, Store, TableAction, Tables, VersionKind};

use crate::rows::diffs;
use crate::support::{Checked, Row, batch, numbered, open, open_with, opener, read, same, sound};

fn store() -> (SimDisk, Store) {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    (disk, store)
}

fn newest(store: &Store, path: &str) -> Vec<Row> {
    read(store, path, AsOf::Newest).unwrap()
}

fn at(store: &Store, path: &str, version: u64) -> Vec<Row> {
    read(store, path, AsOf::Version(Version(version))).unwrap()
}

/// Rows in the middle of row groups are deleted, and others added; the old version comes back with its order.
pub fn a_restored_version_is_the_old_one() -> Checked {
    let (disk, store) = store();
    store.write("t", batch(&numbered(0, 20)), &Default::default()).unwrap();
    for part in 1..5 {
        store.append("t", batch(&numbered(part * 20, 20)), &Default::default()).unwrap();
    }
    let old = newest(&store, "t");
    store.table("t").delete("id % 3 = 1", &Default::default()).unwrap();
    store.append("t", batch(&numbered(900, 5)), &Default::default()).unwrap();
    let before = disk.counters();
    assert_eq!(store.restore("t", &AsOf::Version(Version(4))).unwrap(), ["t"]);
    let written = disk.counters();
    same(&newest(&store, "t"), &old, "the restored rows")?;
    same(&at(&store, "t", 6).len(), &(100 - 33 + 5), "the version before")?;
    assert_eq!(store.table("t").versions().unwrap().last().unwrap().kind, VersionKind::Restore);
    assert!(written.changes - before.changes <= 3, "only the log: {before:?} {written:?}");
    store.close().unwrap();
    let store = open(&disk).unwrap();
    same(&newest(&store, "t"), &old, "after opening again")?;
    store.checkpoint(&Default::default()).unwrap();
    store.close().unwrap();
    let store = open(&disk).unwrap();
    same(&newest(&store, "t"), &old, "after a checkpoint")?;
    sound(&store)
}

/// Rows written by key that are in memory are part of what is copied and restored.
pub fn rows_in_memory_go_along() -> Checked {
    let (disk, store) = store();
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table("k").create(batch(&[]).schema(), key).unwrap();
    store.table("k").upsert(batch(&numbered(0, 10)), &Default::default()).unwrap();
    let tx = store.transaction().unwrap();
    tx.copy("k", "early", &AsOf::Newest, Existing::Refuse).map_err(|e| format!("in a transaction: {e}"))?;
    drop(tx);
    // What a transaction has written itself is in no memory yet.
    let tx = store.transaction().unwrap();
    tx.table("k").upsert(batch(&[(3, None)]), &Default::default()).unwrap();
    let refused = tx.copy("k", "early", &AsOf::Newest, Existing::Refuse).map_err(|e| e.kind());
    same(&refused.map(|_| ()), &Err(ErrorKind::Conflict), "a copy of rows that the transaction has written")?;
    drop(tx);
    store.table("k").upsert(batch(&numbered(0, 10)), &Default::default()).unwrap();
    store.snapshot("s", "k").unwrap();
    store.table("k").upsert(batch(&[(3, Some("new".into()))]), &Default::default()).unwrap();
    store.table("k").delete_keys(batch(&[(5, None)]).project(&[0]).unwrap(), &Default::default()).unwrap();
    let rows = newest(&store, "k");
    store.copy("k", "copy", &AsOf::Newest, Existing::Refuse).map_err(|e| e.to_string())?;
    same(&newest(&store, "copy"), &rows, "the copy")?;
    store.table("copy").upsert(batch(&[(77, None)]), &Default::default()).unwrap();
    same(&newest(&store, "k"), &rows, "the table that was copied")?;
    store.restore("k", &AsOf::Snapshot("s".into())).map_err(|e| e.to_string())?;
    same(&newest(&store, "k"), &numbered(0, 10), "the restored rows")?;
    // A look-up must not find what the restore has taken away.
    store.table("k").insert(batch(&[(77, None)]), &Default::default()).unwrap();
    let mut expected = numbered(0, 10);
    expected.push((77, None));
    drop(store);
    let store = open(&disk).unwrap();
    same(&newest(&store, "k"), &expected, "after opening again")?;
    sound(&store)
}

/// A table that keeps all its versions keeps them in a place that keeps one, and the reverse.
pub fn moved_tables_keep_their_retention() -> Checked {
    let (_, store) = store();
    store.set_retention("last", Some(Retention::KeepLast(1))).unwrap();
    for path in ["all/t", "last/u"] {
        for n in 0..3 {
            store.write(path, batch(&numbered(n, 4)), &Default::default()).unwrap();
        }
    }
    store.relocate("all/t", "last/t", Existing::Refuse).unwrap();
    store.relocate("last/u", "all/u", Existing::Refuse).unwrap();
    store.relocate("last", "other/place", Existing::Refuse).unwrap();
    for path in ["other/place/t", "all/u"] {
        store.append(path, batch(&numbered(50, 1)), &Default::default()).unwrap();
    }
    same(&store.table("other/place/t").versions().unwrap().len(), &4, "versions of the one that keeps all")?;
    same(&store.table("all/u").versions().unwrap().len(), &1, "versions of the one that keeps one")
}

/// A vacuum neither doubles rows that a restored version shares with older ones, nor moves only one of several uses.
pub fn shared_row_groups_are_kept_once() -> Checked {
    let (_, store) = store();
    for path in ["t", "u"] {
        for n in 0..12 {
            let rows: Vec<Row> = (0..400).map(|id| (n * 400 + id, Some(format!("{}", id * 7919 % 1013)))).collect();
            let write = if n == 0 { Store::write } else { Store::append };
            write(&store, path, batch(&rows), &Default::default()).unwrap();
        }
    }
    store.checkpoint(&Default::default()).unwrap();
    store.reclaim(&Default::default()).unwrap();
    let bytes = || store.stat().unwrap().block_bytes;
    let (whole, rows) = (bytes(), newest(&store, "t"));
    store.copy("t", "copy", &AsOf::Newest, Existing::Refuse).unwrap();
    for n in 0..6 {
        store.table("t").delete(&format!("id % 50 = {n}"), &Default::default()).unwrap();
        store.restore("t", &AsOf::Version(Version(11))).unwrap();
    }
    let vacuum = |options: PlanOptions| {
        for _ in 0..3 {
            let options = CheckpointOptions { plan: options, ..CheckpointOptions::default() };
            store.checkpoint(&options).unwrap();
            store.reclaim(&Default::default()).unwrap();
        }
    };
    vacuum(PlanOptions::default());
    if bytes() > whole * 3 / 2 {
        return Err(format!("{} bytes, {whole} before", bytes()));
    }
    same(&newest(&store, "t"), &rows, "the restored rows")?;
    // What is left in their blocks is half: it is moved, for all tables and versions that use it.
    store.drop("u").unwrap();
    store.reclaim(&Default::default()).unwrap();
    vacuum(PlanOptions { repack_dead_share_min: 0.1, ..PlanOptions::default() });
    if bytes() > whole * 4 / 5 {
        return Err(format!("{} bytes with half of the tables, {whole} before", bytes()));
    }
    same(&newest(&store, "t"), &rows, "the restored rows, moved")?;
    same(&newest(&store, "copy"), &rows, "the copy, moved")?;
    vacuum(PlanOptions { dead_share_min: 0.0, repack_dead_share_min: 0.0, ..PlanOptions::default() });
    for version in 0..12 {
        same(&at(&store, "copy", version), &at(&store, "t", version), "a version of both")?;
    }
    store.drop("t").unwrap();
    store.reclaim(&Default::default()).unwrap();
    same(&newest(&store, "copy"), &rows, "the copy alone")?;
    sound(&store)?;
    store.drop_and_reclaim("copy", Default::default(), &Default::default()).unwrap();
    same(&store.stat().unwrap().block_bytes, &0, "bytes when all is gone")
}

#[test]
fn restored_versions() {
    a_restored_version_is_the_old_one().unwrap();
}

#[test]
fn rows_in_memory() {
    rows_in_memory_go_along().unwrap();
}

#[test]
fn retention_moves_along() {
    moved_tables_keep_their_retention().unwrap();
}

#[test]
fn shared_row_groups() {
    shared_row_groups_are_kept_once().unwrap();
}

#[test]
fn a_thousand_tables_are_one_commit_and_no_block() {
    let (disk, store) = store();
    let frames = (0..1000).map(|n| (format!("a/{}/t{n}", n % 7), batch(&numbered(n, 3)).into())).collect();
    store.write_many(frames, &Default::default()).unwrap();
    for (from, to) in [("a", "b"), ("b/*/t*", "c/*/*")] {
        let (seq, before) = (store.seq().unwrap(), disk.counters());
        let report = store.copy(from, to, &AsOf::Newest, Existing::Refuse).unwrap();
        assert_eq!(report.tables.len(), 1000);
        assert_eq!(store.seq().unwrap().0, seq.0 + 1);
        assert!(disk.counters().changes - before.changes <= 3, "only the log");
    }
    let (seq, before) = (store.seq().unwrap(), disk.counters());
    assert_eq!(store.relocate("c", "d/deep", Existing::Refuse).unwrap().tables.len(), 1000);
    assert_eq!(store.seq().unwrap().0, seq.0 + 1);
    assert!(disk.counters().changes - before.changes <= 3, "only the log");
    assert_eq!(store.tables("c/**").unwrap(), [""; 0]);
    assert_eq!(newest(&store, "d/deep/3/t500"), newest(&store, "a/3/t500"));
    sound(&store).unwrap();
}

#[test]
fn a_subtree_goes_with_everything_in_it() {
    let (_, store) = store();
    let tree = store.tree();
    store.write("a/t", batch(&numbered(0, 3)), &Default::default()).unwrap();
    store.write("a/x/t", batch(&numbered(1, 3)), &Default::default()).unwrap();
    tree.put("a", Payload::from(1)).unwrap();
    tree.put("a/x/n", Payload::from(2)).unwrap();
    let lives = |path: &str| {
        let keep_while = Some(vec![(path.to_owned(), Condition::Exists(true))]);
        PutOptions { keep_while, ..PutOptions::default() }
    };
    tree.put_with("a/owned", Payload::from(3), lives("a/x/n")).unwrap();
    store.set_retention("a/x", Some(Retention::KeepLast(2))).unwrap();
    let report = store.copy("a", "b/a", &AsOf::Newest, Existing::Refuse).unwrap();
    assert_eq!(report.tables, [("a/t".into(), "b/a/t".into()), ("a/x/t".into(), "b/a/x/t".into())]);
    assert_eq!(report.payloads, 3);
    assert_eq!(store.retention("b/a/x/t").unwrap(), Retention::KeepLast(2));
    // Its life depends on the copy now.
    tree.delete("a/x/n", None).unwrap();
    assert_eq!(tree.get("a/owned").unwrap(), None);
    assert_eq!(tree.get("b/a/owned").unwrap(), Some(Payload::from(3)));
    store.relocate("b/a", "c", Existing::Refuse).unwrap();
    assert_eq!(tree.get("c/owned").unwrap(), Some(Payload::from(3)));
    tree.delete("c/x/n", None).unwrap();
    assert_eq!(tree.get("c/owned").unwrap(), None);
    assert_eq!(store.tables("**").unwrap(), ["a/t", "a/x/t", "c/t", "c/x/t"]);
    assert!(!tree.exists("b").unwrap());
    sound(&store).unwrap();
}

#[test]
fn what_cannot_be_done_is_refused_and_nothing_is_done() {
    let (_, store) = store();
    let tree = store.tree();
    store.write("a/t", batch(&numbered(0, 3)), &Default::default()).unwrap();
    store.write("b/t", batch(&numbered(9, 3)), &Default::default()).unwrap();
    tree.put("a/n", Payload::from(1)).unwrap();
    tree.put("c/n", Payload::from(1)).unwrap();
    tree.put("outside", Payload::from(1)).unwrap();
    let keep_while = Some(vec![("outside".to_owned(), Condition::Exists(true))]);
    tree.put_with("d/n", Payload::from(1), PutOptions { keep_while, ..PutOptions::default() }).unwrap();
    let seq = store.seq().unwrap();
    let newest = AsOf::Newest;
    for (from, to, kind, named) in [
        ("a", "a", ErrorKind::InvalidArgument, "overlap"),
        ("a", "a/b", ErrorKind::InvalidArgument, "overlap"),
        ("a/t", "a", ErrorKind::InvalidArgument, "overlap"),
        ("x", "y", ErrorKind::NotFound, "'x'"),
        ("x/*", "y/*", ErrorKind::NotFound, "'x/*'"),
        ("a/*", "y", ErrorKind::InvalidArgument, "1 wildcard parts"),
        ("a", "b", ErrorKind::AlreadyExists, "'b/t'"),
        ("a", "c", ErrorKind::AlreadyExists, "'c/n'"),
        ("*/t", "same", ErrorKind::InvalidArgument, "parts"),
        ("d", "e", ErrorKind::InvalidArgument, "'outside'"),
        ("a//t", "e", ErrorKind::InvalidArgument, "empty"),
    ] {
        for (what, done) in [
            ("copy", store.copy(from, to, &newest, Existing::Refuse)),
            ("move", store.relocate(from, to, Existing::Refuse)),
        ] {
            let refused = done.expect_err(&format!("{what} {from} {to}"));
            assert_eq!(refused.kind(), kind, "{what} {from} {to}: {refused}");
            assert!(refused.to_string().contains(named), "{what} {from} {to}: {refused}");
        }
    }
    for (pattern, as_of, kind) in [
        ("a/t", AsOf::Newest, ErrorKind::InvalidArgument),
        ("a/t", AsOf::Version(Version(7)), ErrorKind::NotFound),
        ("*/t", AsOf::Version(Version(1)), ErrorKind::NotFound),
        ("a/t", AsOf::Snapshot("none".into()), ErrorKind::NotFound),
        ("x", AsOf::Version(Version(0)), ErrorKind::NotFound),
        ("x/*", AsOf::Version(Version(0)), ErrorKind::NotFound),
        ("a/t", AsOf::Time(Timestamp(1)), ErrorKind::NotFound),
    ] {
        let refused = store.restore(pattern, &as_of).expect_err(pattern);
        assert_eq!(refused.kind(), kind, "{pattern}: {refused}");
    }
    assert_eq!(store.seq().unwrap(), seq);
}

#[test]
fn a_snapshot_brings_back_what_was_dropped_or_made_again() {
    let (_, store) = store();
    for path in ["t/a", "t/b", "t/c"] {
        store.write(path, batch(&numbered(1, 4)), &Default::default()).unwrap();
    }
    store.snapshot("good", "t/*").unwrap();
    store.write("t/a", batch(&numbered(50, 2)), &Default::default()).unwrap();
    store.drop_and_reclaim(["t/b", "t/c"], Default::default(), &Default::default()).unwrap();
    store.write("t/c", batch(&numbered(70, 9)), &Default::default()).unwrap();
    assert_eq!(store.restore("t/*", &AsOf::Snapshot("good".into())).unwrap(), ["t/a", "t/b", "t/c"]);
    for path in ["t/a", "t/b", "t/c"] {
        assert_eq!(newest(&store, path), numbered(1, 4), "{path}");
    }
    assert_eq!(store.table("t/c").versions().unwrap().len(), 2);
    store.drop_snapshot("good").unwrap();
    store.checkpoint(&Default::default()).unwrap();
    store.reclaim(&Default::default()).unwrap();
    assert_eq!(newest(&store, "t/b"), numbered(1, 4));
    sound(&store).unwrap();
}

#[test]
fn a_branch_comes_back_over_its_origin() {
    let (_, store) = store();
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table("main/k").create(batch(&[]).schema(), key).unwrap();
    store.table("main/k").upsert(batch(&numbered(0, 4)), &Default::default()).unwrap();
    for n in 0..3 {
        store.write("main/t", batch(&numbered(n, 4)), &Default::default()).unwrap();
    }
    store.tree().put("main/n", Payload::from(1)).unwrap();
    store.copy("main", "branch", &AsOf::Newest, Existing::Refuse).unwrap();
    store.append("branch/t", batch(&numbered(90, 1)), &Default::default()).unwrap();
    store.write("branch/new", batch(&numbered(5, 1)), &Default::default()).unwrap();
    store.table("branch/k").upsert(batch(&numbered(50, 1)), &Default::default()).unwrap();
    store.tree().put("branch/n", Payload::from(2)).unwrap();
    store.table("main/k").upsert(batch(&numbered(70, 1)), &Default::default()).unwrap();
    let branch = ["t", "k", "new"].map(|name| newest(&store, &format!("branch/{name}")));
    store.copy("branch", "main", &AsOf::Newest, Existing::Replace).unwrap();
    assert_eq!(["t", "k", "new"].map(|name| newest(&store, &format!("main/{name}"))), branch);
    assert_eq!(store.tree().get("main/n").unwrap(), Some(Payload::from(2)));
    // Numbers never fall, and what was there can still be read.
    let versions: Vec<u64> =
        store.table("main/t").versions().unwrap().iter().map(|version| version.version.0).collect();
    assert_eq!(versions, [0, 1, 2, 3]);
    assert_eq!(at(&store, "main/t", 2), numbered(2, 4));
    store.relocate("branch", "main", Existing::Replace).unwrap();
    assert_eq!(store.tables("**").unwrap(), ["main/k", "main/new", "main/t"]);
    assert_eq!(["t", "k", "new"].map(|name| newest(&store, &format!("main/{name}"))), branch);
    assert_eq!(store.trash().unwrap().len(), 3);
    assert!(!store.tree().exists("branch").unwrap());
    store.checkpoint(&Default::default()).unwrap();
    store.reclaim(&Default::default()).unwrap();
    assert_eq!(["t", "k", "new"].map(|name| newest(&store, &format!("main/{name}"))), branch);
    // Nothing replaces itself.
    for refused in [
        store.copy("main/*", "main/*", &AsOf::Newest, Existing::Replace),
        store.relocate("main/*", "main/*", Existing::Replace),
    ] {
        let refused = refused.unwrap_err();
        assert!([ErrorKind::InvalidArgument, ErrorKind::AlreadyExists].contains(&refused.kind()), "{refused}");
    }
    assert_eq!(store.tables("**").unwrap(), ["main/k", "main/new", "main/t"]);
    // What others write to a branch in between is not lost with it.
    store.copy("main/t", "side", &AsOf::Newest, Existing::Refuse).unwrap();
    let tx = store.transaction().unwrap();
    tx.relocate("side", "main/t", Existing::Replace).unwrap();
    store.append("side", batch(&numbered(300, 1)), &Default::default()).unwrap();
    assert_eq!(tx.commit().unwrap_err().kind(), ErrorKind::Conflict);
    assert!(newest(&store, "side").len() > newest(&store, "main/t").len());
    store.drop("side").unwrap();
    // Another order cannot take its place.
    store.write("odd/k", batch(&numbered(0, 1)), &Default::default()).unwrap();
    let refused = store.copy("odd", "main", &AsOf::Newest, Existing::Replace).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(refused.message().contains("'main/k'"), "{refused}");
    sound(&store).unwrap();
}

#[test]
fn the_feed_tells_of_copies_and_moves() {
    let (_, store) = store();
    store.write("a/t", batch(&numbered(1, 4)), &Default::default()).unwrap();
    let mut feed = store.changes(store.seq().unwrap()).unwrap();
    store.copy("a", "b", &AsOf::Newest, Existing::Refuse).unwrap();
    store.relocate("b/t", "c", Existing::Refuse).unwrap();
    store.restore("c", &AsOf::Version(Version(0))).unwrap();
    let mut told = Vec::new();
    while let Some(commit) = feed.next(Some(std::time::Duration::ZERO)).unwrap() {
        told.extend(commit.events().unwrap().into_iter().filter_map(|event| match event {
            Event::Table(table) => Some((table.path, table.action)),
            Event::Node(_) => None,
        }));
    }
    let expected = [
        ("b/t", TableAction::Copy),
        ("b/t", TableAction::MoveAway),
        ("c", TableAction::Move),
        ("c", TableAction::Version(VersionKind::Restore)),
    ];
    assert_eq!(told, expected.map(|(path, action)| (path.to_owned(), action)));
}

/// Random writes by key, versions restored and copied, checkpoints, drops and openings, against maps.
#[test]
fn tables_with_a_key_agree_with_maps() {
    crate::seeds::each(0..30, 6, |seed| {
        let open = opener(seed);
        let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
        let disk = SimDisk::new();
        let mut store = open(&disk, &clock, 2).unwrap();
        let mut rng = fastrand::Rng::with_seed(seed);
        let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
        store.table("k/0").create(batch(&[]).schema(), key).unwrap();
        // Rows by path; and of versions that a call has numbered, what they must show for as long as they are listed.
        type Rows = BTreeMap<i64, Option<String>>;
        let mut tables: BTreeMap<String, Rows> = BTreeMap::from([("k/0".to_owned(), Rows::new())]);
        let mut held: BTreeMap<String, BTreeMap<String, Rows>> = BTreeMap::new();
        for step in 0..50 {
            let paths: Vec<String> = tables.keys().cloned().collect();
            let path = paths[rng.usize(..paths.len())].clone();
            let to = format!("k/{}", rng.u8(..4));
            let fresh: Rows = (0..rng.usize(1..30)).map(|_| (rng.i64(0..60), Some(format!("{step}")))).collect();
            let frame = batch(&fresh.clone().into_iter().collect::<Vec<_>>());
            match rng.u8(..12) {
                0..4 => {
                    store.table(&path).upsert(frame, &Default::default()).unwrap();
                    tables.get_mut(&path).unwrap().extend(fresh);
                }
                4 => {
                    let keys = frame.project(&[0]).unwrap();
                    store.table(&path).delete_keys(keys, &Default::default()).unwrap();
                    tables.get_mut(&path).unwrap().retain(|id, _| !fresh.contains_key(id));
                }
                5 if held.len() < 5 => {
                    let name = format!("s{step}");
                    store.snapshot(&name, "k/*").unwrap();
                    held.insert(name, tables.clone());
                }
                6 | 7 if !held.is_empty() => {
                    let names: Vec<&String> = held.keys().collect();
                    let name = names[rng.usize(..names.len())];
                    store.restore("k/*", &AsOf::Snapshot(name.clone())).unwrap();
                    tables.extend(held[name].clone());
                }
                8 if !tables.contains_key(&to) => {
                    store.copy(&path, &to, &AsOf::Newest, Existing::Refuse).unwrap();
                    tables.insert(to, tables[&path].clone());
                }
                9 if !tables.contains_key(&to) => {
                    store.relocate(&path, &to, Existing::Refuse).unwrap();
                    let moved = tables.remove(&path).unwrap();
                    tables.insert(to, moved);
                }
                10 if tables.len() > 1 => {
                    store.drop(path.as_str()).unwrap();
                    tables.remove(&path);
                }
                11 => {
                    drop(store);
                    store = open(&disk, &clock, 2).unwrap();
                }
                _ => {
                    store.checkpoint(&Default::default()).unwrap();
                    store.reclaim(&Default::default()).unwrap();
                }
            }
            assert_eq!(store.tables("**").unwrap(), tables.keys().cloned().collect::<Vec<_>>());
            for (path, rows) in &tables {
                let expected: Vec<Row> = rows.clone().into_iter().collect();
                assert_eq!(newest(&store, path), expected, "seed {seed}, step {step}: {path}");
            }
            for (name, tables) in &held {
                for (path, rows) in tables {
                    if rng.u8(..8) == 0 && store.tables(path.as_str()).unwrap() == [path.clone()] {
                        // The path may hold another table by now.
                        match diffs::check(&store, path, &AsOf::Snapshot(name.clone()), &AsOf::Newest, false) {
                            Err(e) if !e.contains("that the snapshot has") => panic!("seed {seed}, step {step}: {e}"),
                            _ => {}
                        }
                    }
                    let found = read(&store, path, AsOf::Snapshot(name.clone())).unwrap();
                    assert_eq!(found, rows.clone().into_iter().collect::<Vec<_>>(), "seed {seed}, step {step}: {name}");
                }
            }
        }
        sound(&store).unwrap();
        store.close().unwrap();
        assert!(open_with(&disk, &clock, 1).is_ok());
    });
}

/// A row that others write during a transaction that restores is not lost.
#[test]
fn a_transaction_that_restores_does_not_undo_what_others_wrote() {
    let (_, store) = store();
    store.write("t", batch(&numbered(0, 5)), &Default::default()).unwrap();
    store.append("t", batch(&numbered(5, 5)), &Default::default()).unwrap();
    let tx = store.transaction().unwrap();
    tx.restore("t", &AsOf::Version(Version(0))).unwrap();
    tx.copy("t", "u", &AsOf::Newest, Existing::Refuse).unwrap();
    assert_eq!(tx.tables("**").unwrap(), ["t", "u"]);
    store.append("t", batch(&numbered(10, 5)), &Default::default()).unwrap();
    assert_eq!(tx.commit().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(newest(&store, "t"), numbered(0, 15));
    store
        .transact(|tx| {
            tx.write("new", batch(&numbered(3, 1)), &Default::default())?;
            tx.copy("new", "copied", &AsOf::Newest, Existing::Refuse)?;
            tx.relocate("copied", "moved", Existing::Refuse).map(drop)
        })
        .unwrap();
    assert_eq!(newest(&store, "moved"), numbered(3, 1));
    assert_eq!(store.tables("**").unwrap(), ["moved", "new", "t"]);
}

/// A table that is moved keeps its snapshots: they show it where it was, and where it is.
pub fn moved_tables_keep_their_snapshots() -> Checked {
    let (disk, store) = store();
    for path in ["a/x", "a/y", "b/z"] {
        store.write(path, batch(&numbered(1, 3)), &Default::default()).unwrap();
    }
    store.snapshot("s", "**").unwrap();
    for path in ["a/x", "a/y", "b/z"] {
        store.write(path, batch(&numbered(50, 1)), &Default::default()).unwrap();
    }
    store.relocate("a", "c", Existing::Refuse).unwrap();
    store.relocate("b/z", "c/z", Existing::Refuse).unwrap();
    let check = |store: &Store| -> Checked {
        let snapshot = || AsOf::Snapshot("s".into());
        for path in ["a/x", "a/y", "b/z", "c/x", "c/y", "c/z"] {
            let found = read(store, path, snapshot()).map_err(|e| e.to_string())?;
            same(&found, &numbered(1, 3), path)?;
        }
        let rows = |pattern: &str| -> Result<u64, String> {
            let options = drumlin::store::DatasetOptions { as_of: snapshot(), ..Default::default() };
            let dataset = store.scan(pattern, &options).map_err(|e| format!("{pattern}: {e}"))?;
            dataset.count_rows(&Default::default()).map_err(|e| e.to_string())
        };
        same(&rows("c/*")?, &9, "where they are")?;
        same(&rows("a/*")?, &6, "where they were")?;
        same(&rows("**")?, &9, "each once")
    };
    check(&store)?;
    store.checkpoint(&Default::default()).unwrap();
    store.close().unwrap();
    let store = open(&disk).unwrap();
    check(&store)?;
    // What was at a path then comes before what is there now.
    store.write("a/x", batch(&numbered(7, 2)), &Default::default()).unwrap();
    same(&read(&store, "a/x", AsOf::Snapshot("s".into())).unwrap(), &numbered(1, 3), "a/x")?;
    store.restore("c/*", &AsOf::Snapshot("s".into())).map_err(|e| e.to_string())?;
    same(&newest(&store, "c/y"), &numbered(1, 3), "restored where it is")?;
    let copied = store.copy("c", "d", &AsOf::Snapshot("s".into()), Existing::Refuse).map_err(|e| e.to_string())?;
    same(&copied.tables.len(), &3, "copied")?;
    sound(&store)
}

#[test]
fn snapshots_move_along() {
    moved_tables_keep_their_snapshots().unwrap();
}

/// A snapshot that includes another one holds what that one does of tables that were dropped since.
#[test]
fn a_snapshot_goes_on_holding_what_was_dropped() {
    let (_, store) = store();
    for path in ["gone", "there"] {
        store.write(path, batch(&numbered(1, 3)), &Default::default()).unwrap();
    }
    let version = |path: &str| (path.to_owned(), Version(0));
    store.snapshot("first", SnapshotOf::Versions(&[version("gone")])).unwrap();
    store.drop("gone").unwrap();
    let more = [version("there")];
    store.write("gone", batch(&numbered(9, 1)), &Default::default()).unwrap();
    store.snapshot("second", SnapshotOf::Including("first", &more)).unwrap();
    store.snapshot("same", SnapshotOf::Including("second", &[])).unwrap();
    store.drop_snapshot("first").unwrap();
    store.checkpoint(&Default::default()).unwrap();
    store.reclaim(&Default::default()).unwrap();
    assert_eq!(read(&store, "gone", AsOf::Snapshot("second".into())).unwrap(), numbered(1, 3));
    assert_eq!(read(&store, "there", AsOf::Snapshot("same".into())).unwrap(), numbered(1, 3));
    let unknown = [("gone".to_owned(), Version(7))];
    for of in [SnapshotOf::Including("same", &unknown), SnapshotOf::Including("none", &more)] {
        assert_eq!(store.snapshot("third", of).unwrap_err().kind(), ErrorKind::NotFound);
    }
    sound(&store).unwrap();
}

#[test]
fn the_trash_counts_rows_in_memory() {
    let (_, store) = store();
    let table = store.table("k");
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    table.create(batch(&[]).schema(), key).unwrap();
    table.upsert(batch(&numbered(0, 4)), &Default::default()).unwrap();
    store.snapshot("s", "k").unwrap();
    table.upsert(batch(&numbered(2, 4)), &Default::default()).unwrap();
    table.drop(Default::default()).unwrap();
    assert_eq!(store.trash().unwrap()[0].rows, 6);
    store.checkpoint(&Default::default()).unwrap();
    assert_eq!(store.trash().unwrap()[0].rows, 6);
}
