//! More random operations, so that every feature meets every other: purges, audits, grace periods, final drops, retention by
//! time, batches of tables, keyed tables dropped and restored, nodes on conditions, transactions over all of it. In addition
//! to the comparison with the model, they check what a time shows, what a feed reports, and the result of a salvage.
//!
//! They are chosen instead of, and among, those of `random`, whose seeds keep their meaning.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use drumlin::base::{ManualClock, Task, Timestamp};
use drumlin::catalog::{Event, Payload};
use drumlin::storage::{SimDisk, Storage};
use drumlin::store::{AsOf, ChangeFeed, CopyToOptions, Options, SalvageTarget};
use drumlin::{ErrorKind, Result, Store, Tables};

use crate::models::copy_op::CopyOp;
use crate::models::model::Model;
use crate::models::random::{self, Op, compare};
use crate::models::wide_op::WideOp;
use crate::rows::keyed_model::{KeyedModel, PATH, Place, distinct};
use crate::support::{Row, env, open, open_with, read};

impl Op {
    /// Whether it makes several commits, so that a failure may leave some of them.
    pub fn is_composite(&self) -> bool {
        match self {
            Op::Checkpoint | Op::Reclaim | Op::Reopen => true,
            Op::Wide(wide) => {
                use WideOp::{Audit, DropNow, Erase, Purge, ReclaimWithin};
                matches!(wide, Purge | Erase(..) | Audit | ReclaimWithin | DropNow(_))
            }
            _ => false,
        }
    }

    /// What may be left if it was begun in `before` and did not come to what it is for: a purge does what a checkpoint does
    /// before it erases anything.
    pub fn begun(&self, before: &Model) -> Model {
        let mut model = before.clone();
        if matches!(self, Op::Wide(WideOp::Erase(..))) {
            model.checkpoint();
        }
        model
    }

    /// Whether tables appear at paths, or disappear from them, or have other rows in old versions.
    fn moves_tables(&self) -> bool {
        use WideOp::{Audit, DropKeyed, DropNow, Erase, UndropKeyed, UndropTo, WriteMany};
        match self {
            Op::Write(..) | Op::Drop(_) | Op::Undrop(_) | Op::Reclaim => true,
            Op::Keyed(crate::rows::keyed_model::KeyedOp::Create) => true,
            Op::Copy(copy) => matches!(copy, CopyOp::Move(..) | CopyOp::All(..) | CopyOp::RestoreAll(_)),
            Op::Wide(wide) => {
                matches!(wide, Audit | Erase(..) | DropNow(_) | UndropTo(..) | WriteMany(_) | DropKeyed | UndropKeyed)
            }
            _ => false,
        }
    }
}

fn fresh(rng: &mut fastrand::Rng) -> Vec<Row> {
    let start = rng.i64(0..200);
    (0..rng.usize(..20)).map(|_| (start + rng.i64(0..100), rng.bool().then(|| format!("w{}", rng.u8(..20))))).collect()
}

/// Chooses an operation that makes sense for `model`: one of these, or one of `random`.
pub fn draw(rng: &mut fastrand::Rng, model: &Model) -> Op {
    if rng.u8(..3) > 0 {
        return match &model.keyed {
            // It can only be restored, or another one created.
            Some(keyed) if keyed.place == Place::Trash && rng.u8(..4) == 0 => Op::Wide(WideOp::UndropKeyed),
            Some(keyed) if keyed.place != Place::There => {
                let hidden = Model { keyed: None, ..model.clone() };
                match random::draw(rng, &hidden, false) {
                    // As long as it can be restored, nothing is created in its place.
                    Op::Keyed(_) if keyed.place == Place::Trash => Op::Wide(WideOp::Purge),
                    op => op,
                }
            }
            _ => random::draw(rng, model, false),
        };
    }
    let path = format!("t/{}", ["a", "b", "c"][rng.usize(..3)]);
    let node = |rng: &mut fastrand::Rng| (format!("n/{}", rng.u8(..6)), rng.i64(0..9));
    let there = model.tables.get(&path);
    let keyed = model.keyed.as_ref().is_some_and(|keyed| keyed.place == Place::There);
    Op::Wide(match rng.u8(..25) {
        0 => WideOp::Purge,
        1 => WideOp::Erase(rng.i64(2..9), rng.i64(0..2)),
        2 => WideOp::Audit,
        3 => WideOp::ReclaimWithin,
        4 if there.is_some() => WideOp::DropNow(path),
        5 => WideOp::UndropTo(path, format!("t/{}", ["a", "b", "c"][rng.usize(..3)])),
        6 | 7 => {
            let n = rng.usize(1..4);
            WideOp::WriteMany(["t/a", "t/b", "t/c"][..n].iter().map(|path| ((*path).to_owned(), fresh(rng))).collect())
        }
        8 | 9 if there.is_some() => {
            WideOp::KeepFor(path, if model.timed { [0, 1500, 5500, 1 << 50][rng.usize(..4)] } else { 1 << 50 })
        }
        10 if keyed => WideOp::DropKeyed,
        11 | 12 => {
            let (path, value) = node(rng);
            WideOp::CreateNode(path, value)
        }
        13 => {
            let (path, value) = node(rng);
            WideOp::UpdateNode(path, value)
        }
        14 => {
            let (path, value) = node(rng);
            WideOp::Swap(path, rng.i64(0..9), value)
        }
        15 => WideOp::PutMany((0..rng.usize(1..5)).map(|_| node(rng)).collect()),
        16 => WideOp::DeleteNodes(rng.i64(0..6)),
        17 => WideOp::Import,
        18 if there.is_some() => WideOp::ReplaceWhere(path, rng.i64(2..6), rng.i64(0..2), fresh(rng)),
        20..23 if there.is_some() => {
            let name = (rng.u8(..3) > 0).then(|| format!("s{}", rng.u8(..9)));
            WideOp::Set(path, rng.i64(1..5), 0, name)
        }
        19 if keyed => WideOp::ReplaceKeyed(rng.i64(1..4), 0, distinct(&fresh(rng))),
        _ if there.is_some() => {
            let by_key = if keyed { fresh(rng) } else { Vec::new() };
            WideOp::All { path, rows: fresh(rng), divisor: rng.i64(2..6), by_key, node: node(rng) }
        }
        _ => WideOp::WriteMany(vec![(path, fresh(rng))]),
    })
}

/// What existed at times, to be read later.
#[derive(Default)]
pub struct Noted {
    at: Vec<(Timestamp, BTreeMap<String, Vec<Row>>)>,
    /// Whether versions have been deleted, so that some times are gone.
    deleted: bool,
}

impl Noted {
    /// Records that `op` has been done, or not, from `now` on, which led to `model`. Its commits have times of their own, all of them
    /// in the half millisecond after.
    pub fn note(&mut self, now: Timestamp, model: &Model, op: &Op) {
        if op.moves_tables() {
            // What another table at the path had does not count.
            self.at.clear();
        }
        let keyed_deletes = matches!(op, Op::Keyed(crate::rows::keyed_model::KeyedOp::DeleteVersions(_)));
        let keeps = !model.keep_last.is_empty() || !model.keep_for.is_empty();
        self.deleted |= matches!(op, Op::DeleteVersions(..)) || keyed_deletes || keeps;
        let mut shown: BTreeMap<String, Vec<Row>> =
            model.tables.iter().map(|(path, table)| (path.clone(), table.newest().clone())).collect();
        if let Some(keyed) = model.keyed.as_ref().filter(|keyed| keyed.place == Place::There) {
            shown.insert(PATH.to_owned(), keyed.rows.iter().map(|(id, name)| (*id, name.clone())).collect());
        }
        self.at.push((Timestamp(now.0 + 500), shown));
    }

    /// Checks that some of those times show what existed, or are reported to be gone.
    pub fn check(&self, store: &Store, rng: &mut fastrand::Rng) -> std::result::Result<(), String> {
        for _ in 0..3.min(self.at.len()) {
            let (time, shown) = &self.at[rng.usize(..self.at.len())];
            for (path, expected) in shown {
                let as_of = if rng.bool() { AsOf::Time(*time) } else { AsOf::Snapshot(written(*time)) };
                match read(store, path, as_of) {
                    Ok(found) if found == *expected => {}
                    Err(e) if self.deleted && e.kind() == ErrorKind::NotFound => {}
                    other => return Err(format!("{path} at {}: {other:?}, expected {expected:?}", time.0)),
                }
            }
        }
        Ok(())
    }
}

/// A time as people write it, which no snapshot is called.
fn written(time: Timestamp) -> String {
    let datetime = arrow::temporal_conversions::timestamp_us_to_datetime(time.0).unwrap();
    datetime.format("%Y-%m-%d %H:%M:%S%.6f").to_string()
}

/// The nodes as reported by a feed.
pub struct Mirror {
    store: Store,
    feed: ChangeFeed,
    nodes: BTreeMap<String, Payload>,
}

impl Mirror {
    pub fn new(store: Store) -> Result<Self> {
        let nodes = store.tree().get_many("n/*")?.into_iter().collect();
        Ok(Self { feed: store.changes(store.seq()?)?, store, nodes })
    }

    /// Applies new events; checks that the nodes then agree with `model`.
    pub fn check(&mut self, model: &Model) -> std::result::Result<(), String> {
        loop {
            match self.feed.next(Some(Duration::ZERO)) {
                Ok(None) => break,
                Ok(Some(commit)) => {
                    for event in commit.events().map_err(|e| e.to_string())? {
                        let Event::Node(event) = event else { continue };
                        let payload = event.after.and_then(|node| node.payload);
                        match payload.filter(|_| event.path.starts_with("n/")) {
                            Some(payload) => drop(self.nodes.insert(event.path, payload)),
                            None => drop(self.nodes.remove(&event.path)),
                        }
                    }
                }
                // The log was cut after its position: it begins again.
                Err(e) if e.kind() == ErrorKind::SnapshotExpired => {
                    *self = Self::new(self.store.clone()).map_err(|e| e.to_string())?;
                }
                Err(e) => return Err(format!("the feed: {e}")),
            }
        }
        let expected: BTreeMap<String, Payload> =
            model.nodes.iter().map(|(path, value)| (path.clone(), Payload::from(*value))).collect();
        match self.nodes == expected {
            true => Ok(()),
            false => Err(format!("the feed led to {:?}, expected {expected:?}", self.nodes)),
        }
    }
}

/// Checks that a salvage of a sound store keeps everything.
pub fn salvaged(source: Arc<dyn Storage>, clock: &Arc<ManualClock>, model: &Model) -> std::result::Result<(), String> {
    let to = SimDisk::in_memory();
    let target = SalvageTarget::Folder(Arc::new(to.clone()));
    let report = target.salvage(source, env(clock, 77, 2), Options::default(), &Task::default());
    let report = report.map_err(|e| format!("salvage: {e}"))?;
    if !report.losses.is_empty() {
        return Err(format!("salvage of a sound store: {report:?}"));
    }
    let store = open(&to).map_err(|e| format!("salvaged: {e}"))?;
    // It has numbered the rows that were in memory.
    let mut model = model.clone();
    model.keyed.iter_mut().for_each(KeyedModel::checkpoint);
    compare(&store, &model).map_err(|e| format!("salvaged: {e}"))
}

/// Checks that a copy of all tables in another store shows what they do.
pub fn copied(disk: &SimDisk, clock: &Arc<ManualClock>, model: &Model) -> std::result::Result<(), String> {
    let source = open_with(&disk.fork(), clock, 2).map_err(|e| format!("a fork: {e}"))?;
    let to = SimDisk::in_memory();
    // Its commits have other random names than the source's.
    let open = |seed| {
        let options = Options { inline_bytes: 0, ..Options::default() };
        drumlin::store::open_on(Arc::new(to.clone()), env(clock, seed, 2), "sim", options).map_err(|e| e.to_string())
    };
    let other = open(1 << 40)?;
    // Tables, their versions, and nothing else.
    let mut model = Model {
        tables: model.tables.clone(),
        evolving: model.evolving.clone(),
        keyed: model.keyed.clone(),
        ..Model::default()
    };
    model.erased = true;
    model.keyed = model.keyed.filter(|keyed| keyed.place == Place::There);
    if let Some(keyed) = &mut model.keyed {
        keyed.checkpoint();
        keyed.snapshots.clear();
    }
    let copy = |options: &CopyToOptions| source.copy_to(&other, "**", options).map_err(|e| format!("copied: {e}"));
    let report = copy(&CopyToOptions::default())?;
    compare(&other, &model).map_err(|e| format!("copied: {e}"))?;
    drop(other);
    let other = open(1 << 41)?;
    compare(&other, &model).map_err(|e| format!("copied, and opened again: {e}"))?;
    let again = source.copy_to(&other, "**", &CopyToOptions::default()).map_err(|e| format!("copied again: {e}"))?;
    match again.present == report.tables && again.tables.is_empty() {
        true => Ok(()),
        false => Err(format!("{report:?}, and again {again:?}")),
    }
}
