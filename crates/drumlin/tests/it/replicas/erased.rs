//! What is purged at the source goes from its replicas, too, and from what they keep.

use std::sync::Arc;

use drumlin::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use drumlin::base::{Progress, Task};
use drumlin::storage::{CrashPoint, DiskFault, SimDisk};
use drumlin::{Expression, Filter, Tables};

use super::{Pair, append, sound};
use crate::support::{Checked, open_inline, open_shared, open_with};

const NAME: &str = "Aurelia-Quintessa-Brandt";

fn people(from: i64, name: &str) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + 4));
    let names: ArrayRef = Arc::new(StringArray::from_iter_values((0..4).map(|n| format!("{name} {n}"))));
    RecordBatch::try_from_iter([("id", ids), ("name", names)]).unwrap()
}

fn has_name(disk: &SimDisk) -> Vec<String> {
    let files = disk.files().into_iter();
    let has = |bytes: &[u8]| bytes.windows(NAME.len()).any(|part| part == NAME.as_bytes());
    files.filter(|(_, bytes)| has(bytes)).map(|(name, _)| name).collect()
}

/// A replica that keeps its past, of a store with the name in several tables and indexes of it.
fn followed(open: crate::support::Opener) -> (Pair, drumlin::Store) {
    let pair = Pair { keep: Some(86_400_000_000), ..Pair::new() };
    let store = open(&pair.source, &pair.clock, 2).unwrap();
    for n in 0..8 {
        let name = if n % 2 == 0 { NAME } else { "someone" };
        match n {
            0 => drop(store.table("p").write(people(0, name), &Default::default()).unwrap()),
            _ => drop(store.table("p").append(people(n * 10, name), &Default::default()).unwrap()),
        }
        append(&store, n).unwrap();
        pair.follow().unwrap();
    }
    store.table("p").create_index("names", &[Expression::parse("name").unwrap()], &Default::default()).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    pair.follow().unwrap();
    (pair, store)
}

#[test]
fn a_replica_that_looks_while_rows_are_purged_keeps_none() {
    for open in [open_with as crate::support::Opener, open_inline, open_shared] {
        let (pair, store) = followed(open);
        let pair = Arc::new(pair);
        let follows = pair.clone();
        let looks = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let looked = looks.clone();
        let progress = Arc::new(move |_: Progress| {
            follows.follow().unwrap();
            looked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        });
        let task = Task { progress: Some(progress), ..Default::default() };
        let filter = Filter::parse(&format!("name LIKE '{NAME}%'")).unwrap();
        store.purge("**", &filter).unwrap().execute(&task).unwrap();
        assert!(looks.load(std::sync::atomic::Ordering::Relaxed) > 0);
        pair.follow().unwrap();
        assert_eq!(has_name(&pair.target), [""; 0]);
        sound(&pair.read().unwrap());
    }
}

#[test]
fn a_crash_at_each_change_leaves_nothing_that_was_purged() {
    for open in [open_with as crate::support::Opener, open_shared] {
        let (made, store) = followed(open);
        let filter = Filter::parse(&format!("name LIKE '{NAME}%'")).unwrap();
        store.purge("**", &filter).unwrap().execute(&Default::default()).unwrap();
        let begun = made.target.counters().changes;
        let forked =
            || Pair { target: made.target.fork(), source: made.source.clone(), keep: made.keep, ..Pair::new() };
        let total = {
            let pair = forked();
            pair.follow().unwrap();
            pair.target.counters().changes
        };
        for at in begun..total {
            for moment in [CrashPoint::Before, CrashPoint::During, CrashPoint::After] {
                let pair = forked();
                pair.target.plan(at, DiskFault::Crash(moment));
                let _ = pair.follow();
                let pair = Pair { target: pair.target.crash(at * 31), ..pair };
                pair.follow().unwrap_or_else(|e| panic!("{at} {moment:?}: {e}"));
                assert_eq!(has_name(&pair.target), [""; 0], "{at} {moment:?}");
            }
        }
    }
}

#[test]
fn nothing_is_left_in_a_replica() {
    assert_eq!(purged(), Ok(()));
}

/// Rows are purged at the source, before or while the replica looks.
pub fn purged() -> Checked {
    for (open, keep, after) in [
        (open_with as crate::support::Opener, None, false),
        (open_inline, Some(86_400_000_000), false),
        (open_shared, None, true),
        (open_shared, Some(86_400_000_000), false),
        (open_inline, Some(86_400_000_000), true),
    ] {
        let pair = Pair { keep, ..Pair::new() };
        let store = open(&pair.source, &pair.clock, 2).unwrap();
        for n in 0..12 {
            let name = if n % 3 == 0 { NAME } else { "someone" };
            match n {
                0 => store.table("p").write(people(0, name), &Default::default()).unwrap(),
                _ => store.table("p").append(people(n * 10, name), &Default::default()).unwrap(),
            };
            append(&store, n).unwrap();
            pair.follow().unwrap();
        }
        store.checkpoint(&Default::default()).unwrap();
        if after {
            pair.follow().unwrap();
        }
        if has_name(&pair.target).is_empty() {
            return Err("the name was never there".into());
        }
        let filter = Filter::parse(&format!("name LIKE '{NAME}%'")).unwrap();
        let receipt = store.purge("**", &filter).unwrap().execute(&Default::default()).unwrap();
        assert_eq!(receipt.erased.rows, 16, "{receipt:?}");
        pair.follow().unwrap();
        let left = has_name(&pair.target);
        if !left.is_empty() {
            return Err(format!("{left:?} still have it"));
        }
        sound(&pair.read().unwrap());
        // The rest goes on.
        append(&store, 1000).unwrap();
        pair.follow().unwrap();
        sound(&pair.read().unwrap());
        assert_eq!(has_name(&pair.target), [""; 0]);
    }
    Ok(())
}
