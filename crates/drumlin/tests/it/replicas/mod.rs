//! Replicas, promotions and copies of whole stores, on simulated disks.

mod buckets;
mod clones;
pub mod cut_off;
pub mod erased;
pub mod following;
mod kept;
pub mod promotion;

use std::sync::Arc;

use drumlin::base::{ManualClock, Timestamp};
use drumlin::storage::{Disk, FileStorage, SimDisk};
use drumlin::store::{
    CloneAt, CloneReport, PromoteOptions, PromoteReport, ReplicateOptions, ReplicateReport, StorePlace, clone_on,
    promote_on, replicate_on,
};
use drumlin::{Error, Mode, Options, Result, Store, Tables, VerifyOptions};

use crate::faults::crash::time_of;
use crate::models::model::{Model, Trash};
use crate::models::random::{Op, apply, check, run};
use crate::support::{Opener, batch, env, numbered, open_shared};

/// A source and the replica of it, with what both are opened with.
struct Pair {
    source: SimDisk,
    target: SimDisk,
    clock: Arc<ManualClock>,
    /// Whether the replica has a lease at the source.
    lease: bool,
    /// How long the replica keeps its past, if it shall.
    keep: Option<u64>,
}

impl Pair {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
        Self { source: SimDisk::new(), target: SimDisk::new(), clock, lease: false, keep: None }
    }

    fn options(&self) -> ReplicateOptions {
        // Catalog snapshots are written often.
        let target = Options { checkpoint_log_bytes: 2000, ..Options::default() };
        let (lease, keep_log_micros) = (self.lease, self.keep);
        ReplicateOptions { once: true, lease, keep_log_micros, target, ..ReplicateOptions::default() }
    }

    /// How it is promoted, or copied: what becomes a store of its own makes no checkpoint then, which would number versions.
    fn quiet(&self) -> ReplicateOptions {
        ReplicateOptions { target: Options::default(), ..self.options() }
    }

    /// Brings over what is committed.
    fn follow(&self) -> Result<ReplicateReport> {
        self.follow_through(Arc::new(self.source.clone()), Arc::new(self.target.clone()), &self.options())
    }

    fn follow_through(
        &self,
        source: Arc<dyn Disk>,
        target: Arc<dyn Disk>,
        options: &ReplicateOptions,
    ) -> Result<ReplicateReport> {
        let places = || Ok((StorePlace::Folder(source.clone()), StorePlace::Folder(target.clone())));
        replicate_on(&places, ("source", "target"), &self.env(), &|| self.for_lease(), options)
    }

    fn for_lease(&self) -> Result<(Store, bool)> {
        match self.source.identity("root")? {
            Some(_) => Ok((open_shared(&self.source, &self.clock, 2)?, true)),
            None => Err(Error::invalid("another process writes it")),
        }
    }

    fn env(&self) -> drumlin::base::Env {
        let (here, there) = (self.source.counters().changes, self.target.counters());
        // Names must differ from those that were drawn before a crash.
        env(&self.clock, here * 7919 + there.changes * 31 + 100_003 * self.target.files().len() as u64 + 5, 2)
    }

    /// Opens the replica to read it.
    fn read(&self) -> Result<Store> {
        read(&self.target, &self.clock)
    }

    fn promote(&self, lost: bool) -> Result<PromoteReport> {
        let open = |uri: &str, _: bool| {
            Ok(StorePlace::Folder(Arc::new(if uri == "source" { self.source.clone() } else { self.target.clone() })))
        };
        let options = PromoteOptions { lost, source: None, replicate: self.quiet() };
        promote_on(&open, "target", &self.env(), &options)
    }

    fn clone_at(&self, at: CloneAt) -> Result<CloneReport> {
        let (source, target) = (self.source.clone(), self.target.clone());
        let places =
            || Ok((StorePlace::Folder(Arc::new(source.clone())), StorePlace::Folder(Arc::new(target.clone()))));
        clone_on(&places, ("source", "target"), &self.env(), at, &|| self.for_lease(), &self.quiet())
    }
}

/// Opens a store in a folder that many processes write, to read it.
fn read(disk: &SimDisk, clock: &Arc<ManualClock>) -> Result<Store> {
    let options = Options { mode: Mode::Read, ..Options::default() };
    let storage = Arc::new(FileStorage::new(Arc::new(disk.clone())));
    drumlin::store::open_bucket(storage, env(clock, disk.counters().changes, 2), "target", options)
}

/// A store that random work is done in, and the model of it.
struct Worked {
    store: Store,
    open: Opener,
    model: (Model, Trash),
    done: usize,
}

impl Worked {
    fn new(pair: &Pair, open: Opener) -> Self {
        let store = open(&pair.source, &pair.clock, 2).unwrap();
        Self { store, open, model: (Model::default(), Trash::new()), done: 0 }
    }

    fn work(&mut self, pair: &Pair, ops: &[Op]) {
        for op in ops {
            self.model.0.now = time_of(self.done);
            pair.clock.set(Timestamp(1_000_000 + self.model.0.now));
            assert!(apply(&mut self.model.0, &mut self.model.1, op));
            let open = self.open;
            run(&mut self.store, || open(&pair.source, &pair.clock, 2), op).unwrap();
            self.done += 1;
        }
    }
}

/// The store shows what the model does, every byte of it is sound, and its last commit is that of `source`, except for the end of a
/// lease.
fn same(store: &Store, model: &Model, source: &Store) {
    check(store, model);
    let (seq, last) = (store.seq().unwrap().0, source.seq().unwrap().0);
    assert!((last.saturating_sub(2)..=last).contains(&seq), "{seq} of {last}");
    sound(store);
}

fn sound(store: &Store) {
    let report = store.verify(&VerifyOptions { deep: true, ..VerifyOptions::default() }).unwrap();
    assert_eq!(report.faults, [], "{report}");
}

/// Adds three rows to a table, which is made if it is not there.
fn append(store: &Store, from: i64) -> Result<()> {
    let (table, rows) = (store.table("t"), batch(&numbered(from, 3)));
    match store.tables("t")?.is_empty() {
        true => table.write(&rows, &Default::default()).map(drop),
        false => table.append(&rows, &Default::default()).map(drop),
    }
}
