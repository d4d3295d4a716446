//! A change of only the layout (rewrite, repack, flush) is not a conflict: what transactions found by position is carried
//! over.

use std::collections::BTreeMap;
use std::sync::Arc;

use drumlin::base::{ManualClock, Timestamp};
use drumlin::catalog::Payload;
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, CheckpointOptions, Options, ReadOptions, TableOptions, WriteOptions};
use drumlin::table::{PlanOptions, VersionKind};
use drumlin::{ErrorKind, Expression, Merge, Store, Tables};

use crate::rows::merges::upsert;
use crate::support::{Row, batch, env, numbered, open, opener, read, rows};

fn purge() -> CheckpointOptions {
    CheckpointOptions { plan: PlanOptions { dead_share_min: 0.0, ..PlanOptions::default() }, ..Default::default() }
}

fn keyed() -> TableOptions {
    TableOptions { key: vec!["id".into()], ..TableOptions::default() }
}

/// The expected content of the tables and nodes.
#[derive(Clone, Default)]
struct Model {
    plain: Vec<Row>,
    sorted: Vec<Row>,
    keyed: BTreeMap<i64, Option<String>>,
    nodes: BTreeMap<String, i64>,
}

impl Model {
    fn keyed(&self) -> Vec<Row> {
        self.keyed.iter().map(|(id, name)| (*id, name.clone())).collect()
    }

    /// The error is what differs.
    fn differs(&self, store: &Store, what: &str) -> Result<(), String> {
        for (path, rows) in [("plain", &self.plain), ("sorted", &self.sorted), ("keyed", &self.keyed())] {
            let found = read(store, path, AsOf::Newest).map_err(|e| format!("{what}: {e}"))?;
            if found != *rows {
                return Err(format!("{what}: {path} has {found:?}, expected {rows:?}"));
            }
        }
        for (path, value) in &self.nodes {
            let found = store.tree().get(path).map_err(|e| format!("{what}: {e}"))?;
            if found != Some(Payload::from(*value)) {
                return Err(format!("{what}: {path} has {found:?}, expected {value}"));
            }
        }
        Ok(())
    }
}

/// Transactions of one thread, and checkpoints between their steps: there are no conflicts, and each transaction does
/// what it should.
#[test]
fn checkpoints_between_the_steps_of_transactions_are_no_conflict() {
    crate::seeds::each(0..60, 6, |seed| transactions_beside_checkpoints(seed..seed + 1).unwrap());
}

pub fn transactions_beside_checkpoints(seeds: std::ops::Range<u64>) -> Result<(), String> {
    for seed in seeds {
        let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
        let disk = SimDisk::new();
        let store = opener(seed)(&disk, &clock, 2).unwrap();
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut model = Model::default();
        let sorted = WriteOptions { sort: Some(vec!["id".into()]), ..WriteOptions::default() };
        store.write("plain", batch(&[]), &Default::default()).unwrap();
        store.write("sorted", batch(&[]), &sorted).unwrap();
        store.table("keyed").create(batch(&[]).schema(), keyed()).unwrap();
        let mut next = 0;
        for round in 0..12 {
            let mut what = format!("seed {seed}, round {round}");
            let mut after = model.clone();
            // What rows are updated to is written for row groups that a checkpoint may have replaced: then they run again. Those that
            // the transaction has written itself are in none of these.
            let (mut may_run_again, own) = (false, next);
            let tx = store.transaction().unwrap();
            for _ in 0..rng.usize(1..6) {
                if rng.u8(..3) == 0 {
                    let options = if rng.bool() { purge() } else { CheckpointOptions::default() };
                    what += &format!("; {}", store.checkpoint(&options).unwrap());
                    if rng.bool() {
                        store.reclaim(&Default::default()).unwrap();
                    }
                }
                let n = rng.usize(1..30);
                let divisor = rng.i64(2..5);
                let filter = format!("id % {divisor} = 0");
                let goes = |id: i64| id % divisor == 0;
                let step = rng.u8(..10);
                what += &format!("; step {step} ({n}, {divisor})");
                match step {
                    0 | 1 => {
                        let new = numbered(next, n);
                        next += n as i64;
                        tx.append("plain", batch(&new), &Default::default()).unwrap();
                        tx.append("sorted", batch(&new), &Default::default()).unwrap();
                        after.plain.extend(new.clone());
                        after.sorted.extend(new);
                    }
                    2 => {
                        tx.table("plain").delete(&filter, &Default::default()).unwrap();
                        after.plain.retain(|(id, _)| !goes(*id));
                    }
                    3 => {
                        tx.table("keyed").delete(&filter, &Default::default()).unwrap();
                        after.keyed.retain(|id, _| !goes(*id));
                    }
                    4 => {
                        let from = rng.i64(0..next + 1);
                        let new: Vec<Row> = (from..from + 3).map(|id| (id, Some(format!("new {round}")))).collect();
                        tx.replace("sorted", batch(&new), &Default::default()).unwrap();
                        after.sorted.retain(|(id, _)| !(from..from + 3).contains(id));
                        after.sorted.extend(new);
                        after.sorted.sort_by_key(|(id, _)| *id);
                        next = next.max(from + 3);
                    }
                    5 | 6 => {
                        // A few rows or, with metadata, row groups.
                        let metadata = rng.bool().then(|| "1".to_owned());
                        let options = WriteOptions { metadata, ..WriteOptions::default() };
                        let from = rng.i64(0..60);
                        let new: Vec<Row> =
                            (from..from + n as i64).map(|id| (id, Some(format!("{round}-{id}")))).collect();
                        tx.table("keyed").upsert(batch(&new), &options).unwrap();
                        after.keyed.extend(new);
                    }
                    7 => {
                        let (name, own_alone) = (format!("up {round}"), rng.bool());
                        let filter = if own_alone { format!("id >= {own}") } else { filter };
                        let goes = |id: i64| if own_alone { id >= own } else { goes(id) };
                        let set = [("name".to_owned(), Expression::parse(&format!("'{name}'")).unwrap())];
                        tx.table("plain").update(&set, Some(&filter), &Default::default()).unwrap();
                        after.plain.iter_mut().filter(|(id, _)| goes(*id)).for_each(|row| row.1 = Some(name.clone()));
                        may_run_again |= !own_alone;
                    }
                    8 => {
                        let own_alone = rng.bool();
                        let from = rng.i64(if own_alone { own } else { 0 }..next + 1);
                        let new: Vec<Row> = (from..from + 9).map(|id| (id, Some(format!("merged {round}")))).collect();
                        let by_id = Merge { on: vec!["id".into()], ..upsert() };
                        tx.table("sorted").merge(batch(&new), &by_id, &Default::default()).unwrap();
                        after.sorted.retain(|(id, _)| !(from..from + 9).contains(id));
                        after.sorted.extend(new);
                        after.sorted.sort_by_key(|(id, _)| *id);
                        next = next.max(from + 9);
                        may_run_again |= !own_alone;
                    }
                    _ => {
                        let path = format!("n/{}", rng.u8(..4));
                        let value = rng.i64(..);
                        tx.tree().put(&path, Payload::from(value)).unwrap();
                        after.nodes.insert(path, value);
                    }
                }
            }
            if rng.u8(..2) == 0 {
                store.checkpoint(&purge()).unwrap();
            }
            if rng.u8(..4) == 0 {
                store.checkpoint(&Default::default()).unwrap();
            }
            match tx.commit() {
                Ok(_) => model = after,
                Err(e) if may_run_again && e.kind() == ErrorKind::Conflict => {}
                Err(e) => return Err(format!("{what}: {e}")),
            }
            model.differs(&store, &what)?;
        }
        drop(store);
        model.differs(&opener(seed)(&disk, &clock, 2).unwrap(), "opened again")?;
    }
    Ok(())
}

/// What a transaction says of a version that it made is said of that one, though a checkpoint has numbered rows since.
pub fn own_versions_are_named() -> Result<(), String> {
    let store = open(&SimDisk::in_memory()).map_err(|e| e.to_string())?;
    store.table("k").create(batch(&[]).schema(), keyed()).unwrap();
    store.table("k").upsert(batch(&numbered(0, 9)), &Default::default()).unwrap();
    let tx = store.transaction().unwrap();
    tx.table("k").delete("id = 3", &Default::default()).unwrap();
    tx.table("k").set_metadata(&AsOf::Newest, Some("\"own\"".into())).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    tx.commit().map_err(|e| e.to_string())?;
    let told: Vec<_> =
        store.table("k").versions().unwrap().into_iter().map(|info| (info.kind, info.metadata)).collect();
    let own = (VersionKind::Delete, Some("\"own\"".to_owned()));
    match told.last() == Some(&own) && told.iter().filter(|(_, metadata)| metadata.is_some()).count() == 1 {
        true => Ok(()),
        false => Err(format!("{told:?}")),
    }
}

#[test]
fn rules_hold() {
    own_versions_are_named().unwrap();
}

/// The automatic checkpoint once the log has grown.
#[test]
fn an_automatic_checkpoint_is_no_conflict() {
    let options = Options { checkpoint_log_bytes: 20_000, ..Options::default() };
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let store = drumlin::store::open_on(Arc::new(SimDisk::new()), env(&clock, 3, 2), "sim", options).unwrap();
    store.write("a", batch(&numbered(-1, 1)), &Default::default()).unwrap();
    store.table("k").create(batch(&[]).schema(), keyed()).unwrap();
    for i in 0..1500 {
        let tx = store.transaction().unwrap();
        tx.append("a", batch(&numbered(i, 1)), &Default::default()).unwrap();
        tx.table("a").delete(&format!("id = {}", i - 5), &Default::default()).unwrap();
        tx.table("k").upsert(batch(&numbered(i % 50, 1)), &Default::default()).unwrap();
        tx.tree().put("n", Payload::from(i)).unwrap();
        tx.commit().unwrap_or_else(|e| panic!("transaction {i}: {e}"));
    }
    let left: Vec<i64> = read(&store, "a", AsOf::Newest).unwrap().into_iter().map(|(id, _)| id).collect();
    assert_eq!(left, [-1, 1495, 1496, 1497, 1498, 1499][usize::from(!left.contains(&-1))..]);
}

fn keys(id: i64) -> arrow::array::RecordBatch {
    batch(&numbered(id, 1)).project(&[0]).unwrap()
}

/// A write by others is a conflict, also if a checkpoint follows it.
#[test]
fn what_others_wrote_is_a_conflict_all_the_same() {
    let store = open(&SimDisk::new()).unwrap();
    store.write("a", batch(&numbered(0, 100)), &Default::default()).unwrap();
    store.table("k").create(batch(&[]).schema(), keyed()).unwrap();
    store.table("k").upsert(batch(&numbered(0, 10)), &Default::default()).unwrap();
    let conflicts: [(&str, fn(&Store)); 4] = [
        ("rows deleted", |store| drop(store.table("a").delete("id = 50", &Default::default()).unwrap())),
        ("rows appended", |store| drop(store.append("a", batch(&numbered(900, 1)), &Default::default()).unwrap())),
        ("all replaced", |store| drop(store.write("a", batch(&numbered(0, 90)), &Default::default()).unwrap())),
        ("a key written", |store| drop(store.table("k").upsert(batch(&numbered(3, 1)), &Default::default()).unwrap())),
    ];
    for (what, other) in conflicts {
        for flushed in [false, true] {
            store.write("a", batch(&numbered(0, 100)), &Default::default()).unwrap();
            let tx = store.transaction().unwrap();
            tx.table("a").delete("id % 7 = 0", &Default::default()).unwrap();
            tx.table("k").get_many(&keys(3), &Default::default()).unwrap();
            other(&store);
            if flushed {
                store.checkpoint(&purge()).unwrap();
            }
            assert_eq!(tx.commit().unwrap_err().kind(), ErrorKind::Conflict, "{what}, then a checkpoint: {flushed}");
        }
    }
    // Other keys do not conflict, although the part they were in has been flushed.
    store.table("k").upsert(batch(&numbered(0, 1)), &Default::default()).unwrap();
    let tx = store.transaction().unwrap();
    tx.table("k").get_many(&keys(3), &Default::default()).unwrap();
    tx.tree().put("n", Payload::from(1)).unwrap();
    store.table("k").upsert(batch(&numbered(7, 1)), &Default::default()).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    tx.commit().unwrap();
    // Nor does a layout that changed under what was only read.
    let tx = store.transaction().unwrap();
    let read = rows(&tx.table("a").collect(&ReadOptions::default()).unwrap());
    tx.tree().put("n", Payload::from(read.len() as i64)).unwrap();
    store.append("b", batch(&numbered(0, 1)), &Default::default()).err();
    store.checkpoint(&purge()).unwrap();
    tx.commit().unwrap();
}
