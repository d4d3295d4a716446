//! Tables in the pages of a catalog snapshot: whatever is done to tables between snapshots and openings of a store, it shows
//! what a plain model shows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drumlin::base::{ManualClock, Timestamp, Version};
use drumlin::catalog::Retention;
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, CheckpointOptions, Missing, ReclaimOptions, SnapshotOf, VerifyOptions, WriteOptions};
use drumlin::table::PlanOptions;
use drumlin::{Existing, Store, Tables};
use fastrand::Rng;

use crate::support::{SetOnDrop, batch, numbered, open_inline, read, same};

/// A few pages of tables.
const TABLES: usize = 700;
const ROUNDS: usize = 160;

/// What passes at least from one step to the next: each commit has a time of its own, a little after the one before.
const STEP: i64 = 1_000;

/// Of a table's listed versions: number, time, first id of its rows.
type Versions = Vec<(u64, i64, i64)>;

#[derive(Clone, Debug, Default)]
struct Model {
    tables: BTreeMap<String, Versions>,
    /// Dropped tables, the oldest first.
    trash: Vec<(String, Versions)>,
    /// First ids of rows, by snapshot and path.
    snapshots: BTreeMap<String, BTreeMap<String, i64>>,
}

impl Model {
    /// Removes what retention does not keep.
    fn expire(&mut self, store: &Store, path: &str, now: i64) -> Result<u64, String> {
        let versions = self.tables.get_mut(path).ok_or("no such table")?;
        let before = versions.len();
        match store.retention(path).map_err(|e| e.to_string())? {
            Retention::KeepAll => {}
            Retention::KeepLast(n) => drop(versions.drain(..before.saturating_sub(n as usize))),
            Retention::KeepMicros(micros) => {
                let superseded: Vec<i64> = versions.iter().skip(1).map(|(_, time, _)| *time).collect();
                let gone = superseded.iter().filter(|time| **time < now - micros as i64).count();
                versions.drain(..gone);
            }
        }
        Ok((before - versions.len()) as u64)
    }

    fn path(&self, rng: &mut Rng) -> String {
        self.tables.keys().nth(rng.usize(..self.tables.len())).expect("there are tables").clone()
    }
}

struct Run {
    rng: Rng,
    disk: SimDisk,
    clock: Arc<ManualClock>,
    store: Store,
    model: Model,
    now: i64,
    next_id: i64,
    names: usize,
}

impl Run {
    fn new(seed: u64) -> drumlin::Result<Self> {
        let (disk, clock) = (SimDisk::new(), Arc::new(ManualClock::new(Timestamp(1_000_000))));
        let store = open_inline(&disk, &clock, 2)?;
        let rng = Rng::with_seed(seed);
        Ok(Self { rng, disk, clock, store, model: Model::default(), now: 1_000_000, next_id: 0, names: 0 })
    }

    fn new_path(&mut self) -> String {
        self.names += 1;
        format!("f{}/t{:04}", self.rng.u8(..4), self.names)
    }

    /// Writes tables in one commit, through a transaction that a checkpoint may fall into.
    fn write(&mut self, paths: &[String]) -> drumlin::Result<()> {
        let mut ids = Vec::new();
        let frames = paths.iter().map(|path| {
            ids.push(self.next_id);
            self.next_id += 2;
            (path.clone(), batch(&numbered(self.next_id - 2, 2)).into())
        });
        let frames: Vec<_> = frames.collect();
        if self.rng.u8(..5) == 0 {
            let transaction = self.store.transaction()?;
            transaction.write_many(frames, &WriteOptions::default())?;
            if self.rng.bool() {
                self.checkpoint()?;
            }
            transaction.commit()?;
        } else {
            self.store.write_many(frames, &WriteOptions::default())?;
        }
        for (path, id) in paths.iter().zip(ids) {
            let versions = self.model.tables.entry(path.clone()).or_default();
            let number = self.store.table(path).versions()?.last().expect("it was written").version.0;
            versions.push((number, self.now, id));
            self.model.expire(&self.store, path, self.now).expect("just written");
        }
        Ok(())
    }

    fn checkpoint(&mut self) -> drumlin::Result<()> {
        let report = self.store.checkpoint(&Default::default())?;
        let paths: Vec<String> = self.model.tables.keys().cloned().collect();
        let mut expired = 0;
        for path in paths {
            expired += self.model.expire(&self.store, &path, self.now).expect("it is there");
        }
        assert_eq!(report.versions_expired, expired);
        Ok(())
    }

    fn step(&mut self) -> drumlin::Result<()> {
        self.now += STEP * (1 + self.rng.i64(0..20));
        self.clock.set(Timestamp(self.now));
        match self.rng.u8(..100) {
            0..40 => {
                let known = self.rng.usize(0..4);
                let mut paths: Vec<String> = (0..known).map(|_| self.model.path(&mut self.rng)).collect();
                paths.push(self.new_path());
                paths.sort();
                paths.dedup();
                self.write(&paths)?;
            }
            40..48 => {
                let path = self.model.path(&mut self.rng);
                self.store.drop(path.as_str())?;
                let versions = self.model.tables.remove(&path).expect("it is there");
                self.model.trash.push((path, versions));
            }
            48..53 if !self.model.trash.is_empty() => {
                let at = self.rng.usize(..self.model.trash.len());
                let (path, to) = (self.model.trash[at].0.clone(), self.new_path());
                self.store.undrop(&path, Some(&to))?;
                // The last that was dropped from there.
                let at = self.model.trash.iter().rposition(|(dropped, _)| *dropped == path).expect("it is there");
                let (_, versions) = self.model.trash.remove(at);
                self.model.tables.insert(to, versions);
            }
            53..59 => {
                let (path, to) = (self.model.path(&mut self.rng), self.new_path());
                self.store.relocate(&path, &to, Existing::Refuse)?;
                let versions = self.model.tables.remove(&path).expect("it is there");
                self.model.tables.insert(to, versions);
            }
            59..63 => {
                let (name, folder) = (format!("s{}", self.names), format!("f{}", self.rng.u8(..4)));
                self.names += 1;
                let inside = |path: &&String| path.starts_with(&format!("{folder}/"));
                let held = self.model.tables.iter().filter(|(path, _)| inside(path));
                let held = held.map(|(path, versions)| (path.clone(), versions.last().expect("one").2)).collect();
                self.store.snapshot(&name, &format!("{folder}/**"))?;
                self.model.snapshots.insert(name, held);
            }
            63..66 => {
                if let Some((name, _)) = self.model.snapshots.pop_first() {
                    self.store.drop_snapshot(&name)?;
                }
            }
            66..72 => {
                let path = self.model.path(&mut self.rng);
                let versions = self.model.tables.get_mut(&path).expect("it is there");
                if versions.len() > 1 {
                    let (number, ..) = versions.remove(self.rng.usize(..versions.len()));
                    self.store.delete_versions(&[(path, vec![Version(number)])], Missing::Refuse)?;
                }
            }
            72..77 => {
                let retention = match self.rng.u8(..4) {
                    0 => None,
                    1 => Some(Retention::KeepAll),
                    2 => Some(Retention::KeepLast(self.rng.u64(1..4))),
                    _ => Some(Retention::KeepMicros(self.rng.u64(1..400) * STEP as u64 - STEP as u64 / 2)),
                };
                let place = ["**", "f0", "f1", "f2"][self.rng.usize(..4)];
                self.store.set_retention(place, retention)?;
            }
            77..88 => self.checkpoint()?,
            88..91 => {
                self.store.reclaim(&ReclaimOptions { grace_micros: u64::MAX, ..ReclaimOptions::default() })?;
            }
            _ => {
                self.store.close()?;
                self.store = open_inline(&self.disk, &self.clock, 2)?;
            }
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        let text = |e: drumlin::Error| e.to_string();
        let store = &self.store;
        let stat = store.stat().map_err(text)?;
        let versions: usize = self.model.tables.values().map(Vec::len).sum();
        same(&(stat.tables, stat.versions), &(self.model.tables.len() as u64, versions as u64), "figures")?;
        same(&store.tables("**").map_err(text)?, &self.model.tables.keys().cloned().collect(), "tables")?;
        for _ in 0..12 {
            let path = self.model.path(&mut self.rng);
            let versions = &self.model.tables[&path];
            let listed: Vec<(u64, i64)> = store
                .table(&path)
                .versions()
                .map_err(text)?
                .iter()
                .map(|v| (v.version.0, v.time.0 / STEP * STEP))
                .collect();
            same(&listed, &versions.iter().map(|(number, time, _)| (*number, *time)).collect(), &path)?;
            let (number, _, id) = versions[self.rng.usize(..versions.len())];
            let rows = read(store, &path, AsOf::Version(Version(number))).map_err(text)?;
            same(&rows, &numbered(id, 2), &path)?;
        }
        for (name, held) in &self.model.snapshots {
            if let Some((path, id)) = held.iter().nth(self.rng.usize(..held.len())) {
                let rows = read(store, path, AsOf::Snapshot(name.clone())).map_err(text)?;
                same(&rows, &numbered(*id, 2), path)?;
            }
        }
        Ok(())
    }
}

/// Random changes of several pages of tables, with checkpoints and openings in between.
pub fn run(seed: u64) -> Result<(), String> {
    let text = |e: drumlin::Error| e.to_string();
    let mut run = Run::new(seed).map_err(text)?;
    let paths: Vec<String> = (0..TABLES).map(|_| run.new_path()).collect();
    run.write(&paths).map_err(text)?;
    run.checkpoint().map_err(text)?;
    for round in 0..ROUNDS {
        run.step().map_err(text)?;
        run.check().map_err(|e| format!("seed {seed}, round {round}: {e}"))?;
        if round % 20 == 0 {
            let report = run.store.verify(&VerifyOptions::default()).map_err(text)?;
            same(&report.faults, &Vec::new(), "faults")?;
        }
    }
    run.store.close().map_err(text)?;
    run.store = open_inline(&run.disk, &run.clock, 2).map_err(text)?;
    run.check()
}

#[test]
fn tables_in_pages_are_what_was_made_of_them() {
    crate::seeds::each(0..2, 2, |seed| run(seed).unwrap());
}

/// What a checkpoint left to do, since its budget was spent, is known to the next one after the store was opened again.
pub fn what_a_vacuum_would_change_is_known() -> Result<(), String> {
    let text = |e: drumlin::Error| e.to_string();
    let (disk, clock) = (SimDisk::new(), Arc::new(ManualClock::new(Timestamp(1_000_000))));
    let store = open_inline(&disk, &clock, 2).map_err(text)?;
    for name in ["a", "b"] {
        store.write(name, batch(&numbered(0, 2)), &WriteOptions::default()).map_err(text)?;
        store.append(name, batch(&numbered(2, 2)), &WriteOptions::default()).map_err(text)?;
    }
    let nothing = CheckpointOptions {
        plan: PlanOptions { budget: 0.0, ..PlanOptions::default() },
        ..CheckpointOptions::default()
    };
    store.checkpoint(&nothing).map_err(text)?;
    store.close().map_err(text)?;
    let store = open_inline(&disk, &clock, 2).map_err(text)?;
    let report = store.checkpoint(&CheckpointOptions::default()).map_err(text)?;
    same(&(report.groups_before, report.groups_after), &(4, 2), "row groups")?;
    let report = store.checkpoint(&CheckpointOptions::default()).map_err(text)?;
    same(&(report.groups_before, report.groups_after), &(2, 2), "row groups")
}

/// Tables that are written while checkpoints write the catalog show what was written last. If they do not, it shows only when
/// threads take turns in a certain way.
pub fn writes_beside_checkpoints_stay() -> Result<(), String> {
    let text = |e: drumlin::Error| e.to_string();
    let (disk, clock) = (SimDisk::new(), Arc::new(ManualClock::new(Timestamp(1_000_000))));
    let store = open_inline(&disk, &clock, 2).map_err(text)?;
    let paths: Vec<String> = (0..50).map(|n| format!("t{n}")).collect();
    let frames = |id: i64| paths.iter().map(move |path| (path.clone(), batch(&numbered(id, 1)).into())).collect();
    store.write_many(frames(0), &WriteOptions::default()).map_err(text)?;
    for round in 1..=20 {
        let done = AtomicBool::new(false);
        let last = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut id = round * 1_000_000;
                loop {
                    id += 1;
                    for path in &paths {
                        store.write(path, batch(&numbered(id, 1)), &WriteOptions::default()).unwrap();
                    }
                    if done.load(Ordering::SeqCst) {
                        return id;
                    }
                }
            });
            let _done = SetOnDrop(&done);
            for _ in 0..3 {
                store.checkpoint(&CheckpointOptions::default()).unwrap();
            }
            drop(_done);
            writer.join().expect("the writer")
        });
        for path in &paths {
            same(&read(&store, path, AsOf::Newest).map_err(text)?, &numbered(last, 1), path)?;
        }
    }
    Ok(())
}

/// What a page of the catalog says of a table follows where the table is: which retention applies to it, and whether a path
/// shows it. Both tables are decoded, and no commit changes their records.
pub fn what_pages_say_follows_where_tables_are() -> Result<(), String> {
    let text = |e: drumlin::Error| e.to_string();
    let (disk, clock) = (SimDisk::new(), Arc::new(ManualClock::new(Timestamp(1_000_000))));
    let store = open_inline(&disk, &clock, 2).map_err(text)?;
    store.set_retention("hour", Some(Retention::KeepMicros(3_600_000_000))).map_err(text)?;
    store.set_retention("last", Some(Retention::KeepLast(1))).map_err(text)?;
    for path in ["moved", "last/held"] {
        store.write(path, batch(&numbered(0, 2)), &WriteOptions::default()).map_err(text)?;
        store.append(path, batch(&numbered(2, 2)), &WriteOptions::default()).map_err(text)?;
    }
    // It names the version: a table that is only covered changes when it is dropped.
    let newest = [("last/held".to_owned(), Version(1))];
    store.snapshot("s", SnapshotOf::Versions(&newest)).map_err(text)?;
    // Merges the row groups of both, so their rewrites are still known.
    let report = store.checkpoint(&CheckpointOptions::default()).map_err(text)?;
    same(&(report.groups_before, report.groups_after), &(4, 2), "row groups")?;
    store.drop(["moved", "last/held"]).map_err(text)?;
    store.undrop("moved", Some("hour/moved")).map_err(text)?;
    let at_once = ReclaimOptions { grace_micros: 0, ..ReclaimOptions::default() };
    let held = |store: &Store| Ok::<_, String>(store.reclaim(&at_once).map_err(text)?.holding.history_bytes);
    let expected = held(&store)?;
    store.checkpoint(&CheckpointOptions::default()).map_err(text)?;
    same(&(expected > 0, held(&store)?), &(true, expected), "bytes of history after a checkpoint")?;
    store.close().map_err(text)?;
    let store = open_inline(&disk, &clock, 2).map_err(text)?;
    same(&held(&store)?, &expected, "bytes of history after opening")?;
    clock.set(Timestamp(1_000_000 + 2 * 3_600_000_000));
    let report = store.checkpoint(&CheckpointOptions::default()).map_err(text)?;
    same(&report.versions_expired, &1, "versions that expired where the table was moved to")
}

#[test]
fn pages_say_of_tables_what_follows_from_where_they_are() {
    what_pages_say_follows_where_tables_are().unwrap();
}

// faults: concurrent change x checkpoint
#[test]
fn checkpoints_do_not_undo_what_is_written_beside_them() {
    writes_beside_checkpoints_stay().unwrap();
}

#[test]
fn a_checkpoint_goes_on_with_what_another_left() {
    what_a_vacuum_would_change_is_known().unwrap();
}
