//! Indexes that are damaged, salvaged, and used by several processes.

use std::sync::Arc;

use drumlin::base::{ManualClock, Timestamp};
use drumlin::storage::{FileStorage, SimDisk};
use drumlin::store::{AsOf, CheckpointOptions, Options, SalvageTarget, VerifyOptions};
use drumlin::{Existing, Tables};

use super::basics::{cost, find, ids_where, index, numbers};
use crate::support::{open, open_shared};

#[test]
fn damage_is_named_and_mended() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    store.write("t", numbers(3000), &Default::default()).unwrap();
    let before: Vec<String> = disk.files().into_iter().map(|(name, _)| name).collect();
    index(&store, "t", "n", &["n"]).unwrap();
    let is_new = |name: &&String| name.contains("blocks") && !before.contains(name);
    let names: Vec<String> = disk.files().into_iter().map(|(name, _)| name).collect();
    let block = names.iter().find(is_new).unwrap().clone();
    drop(store);
    let mut bytes = disk.files().into_iter().find(|(name, _)| *name == block).unwrap().1;
    bytes.iter_mut().skip(64).step_by(7).for_each(|byte| *byte ^= 1);
    disk.damage(&block, bytes);
    let store = open(&disk).unwrap();
    let e = find(&store, "t", AsOf::Newest, "n = 31").unwrap_err();
    assert!(e.contains("index 'n'") && e.contains("rebuild_index"), "{e}");
    let verified = store.verify(&VerifyOptions::default()).unwrap();
    assert!(verified.faults.iter().all(|fault| fault.table.contains("index 'n'")), "{verified:?}");
    assert!(!verified.faults.is_empty());
    // What does not ask the index is not harmed.
    assert_eq!(find(&store, "t", AsOf::Newest, "m = 57").unwrap(), ids_where(3000, |id| id * 57 % 1009 == 57));
    store.table("t").rebuild_index("n", &Default::default()).unwrap();
    assert_eq!(find(&store, "t", AsOf::Newest, "n = 31").unwrap(), ids_where(3000, |id| id * 31 % 1009 == 31));
}

#[test]
fn salvaged_tables_keep_their_indexes_unfilled() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    store.write("t", numbers(300), &Default::default()).unwrap();
    index(&store, "t", "n", &["n"]).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    drop(store);
    let storage = Arc::new(FileStorage::new(Arc::new(disk.clone())));
    let target = SimDisk::in_memory();
    let to = SalvageTarget::Folder(Arc::new(target.clone()));
    let env = crate::support::env(&Arc::new(ManualClock::new(Timestamp(1_000_000))), 3, 2);
    let report = to.salvage(storage, env, Options::default(), &Default::default()).unwrap();
    assert!(report.losses.is_empty(), "{report:?}");
    let store = open(&target).unwrap();
    let info = store.table("t").indexes().unwrap().remove(0);
    assert_eq!((info.name.as_str(), info.runs), ("n", 0));
    store.table("t").rebuild_index("n", &Default::default()).unwrap();
    assert_eq!(find(&store, "t", AsOf::Newest, "n = 31").unwrap(), ids_where(300, |id| id * 31 % 1009 == 31));
}

#[test]
fn processes_share_indexes() {
    let disk = SimDisk::in_memory();
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let (one, two) = (open_shared(&disk, &clock, 2).unwrap(), open_shared(&disk, &clock, 2).unwrap());
    one.write("t", numbers(3000), &Default::default()).unwrap();
    index(&two, "t", "n", &["n"]).unwrap();
    let wanted = ids_where(3000, |id| id * 31 % 1009 == 31);
    one.refresh().unwrap();
    assert_eq!(cost(&one, "t", "n = 31").row_groups, 1);
    assert_eq!(find(&one, "t", AsOf::Newest, "n = 31").unwrap(), wanted);
    // Both make the same runs: one of them does it for nothing.
    one.table("t").rebuild_index("n", &Default::default()).unwrap();
    two.table("t").rebuild_index("n", &Default::default()).unwrap();
    one.checkpoint(&Default::default()).unwrap();
    two.refresh().unwrap();
    assert_eq!(find(&two, "t", AsOf::Newest, "n = 31").unwrap(), wanted);
    assert_eq!(two.table("t").indexes().unwrap()[0].covered, 1);
}

#[test]
fn indexes_outlive_crashes_copies_and_backups() {
    let disk = SimDisk::new();
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let store = crate::support::open_with(&disk, &clock, 2).unwrap();
    store.write("t", numbers(3000), &Default::default()).unwrap();
    index(&store, "t", "n", &["n"]).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    let there = store.table("t").indexes().unwrap();
    drop(store);
    let store = crate::support::open_with(&disk.crash(1), &clock, 2).unwrap();
    assert_eq!(store.table("t").indexes().unwrap(), there);
    // A copy shares the runs.
    store.copy("t", "copy", &AsOf::Newest, Existing::Refuse).unwrap();
    assert_eq!(store.table("copy").indexes().unwrap(), there);
    // A dropped index is dropped in the one alone.
    store.table("t").drop_index("n").unwrap();
    assert!(store.table("t").indexes().unwrap().is_empty());
    assert_eq!(cost(&store, "copy", "n = 31").row_groups, 1);
    store.table("t").drop(drumlin::store::Missing::Refuse).unwrap();
    store.reclaim(&Default::default()).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    let wanted = ids_where(3000, |id| id * 31 % 1009 == 31);
    assert_eq!(find(&store, "copy", AsOf::Newest, "n = 31").unwrap(), wanted);
    // A table in another store has the same indexes, which are filled there.
    let other = open(&SimDisk::in_memory()).unwrap();
    store.copy_to(&other, "copy", &Default::default()).unwrap();
    let copied = other.table("copy").indexes().unwrap().remove(0);
    assert_eq!((copied.name.as_str(), copied.covered), ("n", 0));
    other.checkpoint(&CheckpointOptions { index_rows_min: 1, ..Default::default() }).unwrap();
    assert_eq!(cost(&other, "copy", "n = 31").row_groups, 1);
    assert_eq!(find(&other, "copy", AsOf::Newest, "n = 31").unwrap(), wanted);
    for store in [&store, &other] {
        let verified = store.verify(&VerifyOptions { deep: true, ..VerifyOptions::default() }).unwrap();
        assert!(verified.faults.is_empty() && verified.orphans.is_empty(), "{verified:?}");
    }
}
