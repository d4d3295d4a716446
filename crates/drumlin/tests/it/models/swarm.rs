//! Random operations of all kinds on tables of all kinds, in folders, in folders and buckets that two processes share. Each run draws
//! from verbs of its own (swarm testing), so that operations meet that seldom do in an even mixture, and counts which met.
//!
//! A run that fails is shrunk: operations are left out as long as it still fails, and the rest is shown.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use drumlin::base::ManualClock;
use drumlin::storage::{FileStorage, SimBucket, SimDisk};
use drumlin::store::{ReplicateOptions, StorePlace, VerifyOptions, open_bucket, replicate_on};
use drumlin::table::PlanOptions;
use drumlin::{Error, ErrorKind, Mode, Options, Store, Tables};

use crate::models::pairs::{Facts, Pairs};
use crate::models::swarm_draw::Swarm;
use crate::models::swarm_model::{Model, apply};
use crate::models::swarm_op::Op;
use crate::models::swarm_run::{Extent, checkpoint, compare, refuses, run};
use crate::processes::shared_support;
use crate::seeds;
use crate::support::{Checked, env, open_inline, open_shared, open_with};

/// Where a run's store is, and the processes that have it open.
enum Place {
    /// One process; whether small blocks travel in commits.
    Folder(SimDisk, bool),
    /// Two processes.
    Shared(SimDisk),
    Bucket(Vec<SimBucket>),
}

/// One of them by its seed.
fn place(seed: u64) -> Place {
    match seed % 4 {
        0 => Place::Folder(SimDisk::new(), false),
        1 => Place::Folder(SimDisk::new(), true),
        2 => Place::Shared(SimDisk::new()),
        _ => {
            let bucket = SimBucket::new();
            Place::Bucket(vec![bucket.client(), bucket.client()])
        }
    }
}

impl Place {
    fn open(&self, who: usize, clock: &Arc<ManualClock>) -> drumlin::Result<Store> {
        match self {
            Place::Folder(disk, inline) => {
                if *inline {
                    open_inline(disk, clock, 2)
                } else {
                    open_with(disk, clock, 2)
                }
            }
            Place::Shared(disk) => open_shared(disk, clock, 2),
            Place::Bucket(clients) => shared_support::open(&clients[who], clock),
        }
    }

    /// Where a replica finds it.
    fn source(&self) -> StorePlace {
        match self {
            Place::Folder(disk, _) | Place::Shared(disk) => StorePlace::Folder(Arc::new(disk.clone())),
            Place::Bucket(clients) => StorePlace::Bucket(Arc::new(clients[0].clone())),
        }
    }

    fn processes(&self) -> usize {
        if matches!(self, Place::Folder(..)) { 1 } else { 2 }
    }

    /// Its number among those that pairs are counted by.
    fn storage(&self) -> usize {
        match self {
            Place::Folder(..) => 0,
            Place::Shared(_) => 1,
            Place::Bucket(..) => 2,
        }
    }
}

/// A step: the process that does it, that which looks at it, and what is done.
type Step = (usize, usize, Op);

/// A run.
struct Run {
    place: Place,
    clock: Arc<ManualClock>,
    stores: Vec<Store>,
    model: Model,
    pairs: Pairs,
    taken: usize,
    /// A replica, which some runs have.
    replica: Option<SimDisk>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let (place, clock) = (place(seed), shared_support::clock());
        let stores: Vec<Store> = (0..place.processes()).map(|who| place.open(who, &clock).unwrap()).collect();
        stores[0].tree().put("n/there", drumlin::catalog::Payload::from(0)).unwrap();
        let pairs = Pairs::new(place.storage());
        let replica = (seed / 4).is_multiple_of(2).then(SimDisk::new);
        Self { place, clock, stores, model: Model::default(), pairs, taken: 0, replica }
    }

    /// Which tables an operation is about, and what they are like.
    fn facts(&self, store: &Store, op: &Op) -> Vec<(String, Option<Facts>)> {
        let mut paths: Vec<String> = match op.paths() {
            Some(paths) => paths.into_iter().cloned().collect(),
            // Also where a table was.
            None => self.model.tables.keys().chain(self.pairs.paths()).cloned().collect(),
        };
        paths.sort();
        paths.dedup();
        let kind = |path: &String| self.model.tables.get(path).map(|table| table.kind as usize);
        let facts = |path: &String| kind(path).map(|kind| Facts::of(store, path, kind).unwrap());
        paths.into_iter().map(|path| (path.clone(), facts(&path))).collect()
    }

    fn step(&mut self, (who, reader, op): &Step) -> Checked {
        self.clock.advance(1000);
        let store = self.stores[*who].clone();
        store.refresh().map_err(|e| e.to_string())?;
        let facts = self.facts(&store, op);
        let (before, refused) = (self.model.clone(), refused_within(&self.model, op));
        let succeeds = apply(&mut self.model, op);
        let done = match op {
            Op::Reopen => {
                store.close().and_then(|()| self.place.open(*who, &self.clock)).map(|store| self.stores[*who] = store)
            }
            Op::Beside(op) => self.beside(*who, op),
            _ => run(&store, op, &refused),
        };
        match (&done, succeeds) {
            (Ok(()), true) => {}
            (Err(e), false) if refuses(e) => self.model = before,
            (Err(e), true) if e.kind() == ErrorKind::NotFound && may_expire(&before, op) => self.model = before,
            _ => return Err(format!("gave {done:?}, expected success: {succeeds}")),
        }
        for (path, facts) in facts {
            // One that is to be refused is done by being refused.
            self.pairs.note(&path, op.verb(), facts.as_ref(), succeeds || matches!(op, Op::Refused(..)));
        }
        let store = &self.stores[*reader];
        store.refresh().map_err(|e| e.to_string())?;
        self.taken += 1;
        compare(
            store,
            &mut self.model,
            Extent { all: self.taken.is_multiple_of(4), same: !succeeds && !matches!(op, Op::Beside(_)) },
        )?;
        self.model.begin();
        if self.taken.is_multiple_of(6) { self.follow() } else { Ok(()) }
    }

    /// The replica comes to show what the store does, with a lease every other time, where several processes write.
    fn follow(&self) -> Checked {
        let Some(replica) = &self.replica else { return Ok(()) };
        let env = env(&self.clock, replica.counters().changes * 31 + self.taken as u64 + 7, 2);
        let lease = || match self.place {
            Place::Folder(..) => Err(Error::invalid("one process writes it")),
            _ => Ok((self.place.open(0, &self.clock)?, true)),
        };
        let target = Options { checkpoint_log_bytes: 3000, ..Options::default() };
        let lease_held = self.taken.is_multiple_of(12);
        let options = ReplicateOptions { once: true, lease: lease_held, target, ..ReplicateOptions::default() };
        let places = || Ok((self.place.source(), StorePlace::Folder(Arc::new(replica.clone()))));
        let followed = replicate_on(&places, ("source", "target"), &env, &lease, &options);
        followed.map_err(|e| format!("the replica: {e}"))?;
        let storage = Arc::new(FileStorage::new(Arc::new(replica.clone())));
        let reader = open_bucket(storage, env, "target", Options { mode: Mode::Read, ..Options::default() });
        let reader = reader.map_err(|e| format!("the replica: {e}"))?;
        compare(&reader, &mut self.model.clone(), Extent { all: true, same: false })
            .map_err(|e| format!("the replica: {e}"))
    }

    /// An operation while a checkpoint is made. Both are done: in a bucket by two processes, the operation before a random request
    /// of the checkpoint; elsewhere by two threads.
    fn beside(&mut self, who: usize, op: &Op) -> drumlin::Result<()> {
        let whole = |store: &Store| checkpoint(store, PlanOptions { dead_share_min: 0.0, ..PlanOptions::default() });
        let store = &self.stores[who];
        let Place::Bucket(clients) = &self.place else {
            return std::thread::scope(|scope| {
                let beside = scope.spawn(|| whole(store));
                let done = run(store, op, &[]);
                beside.join().unwrap_or_else(|panic| resume_unwind(panic))?;
                done
            });
        };
        let (other, at) = (self.stores[1 - who].clone(), self.taken % 9);
        let (told, met) = std::sync::mpsc::channel();
        let (mut requests, theirs) = (0, op.clone());
        other.refresh()?;
        clients[who].plan(move |_, _| {
            if requests == at {
                let done = std::thread::scope(|scope| scope.spawn(|| run(&other, &theirs, &[])).join().unwrap());
                told.send(done).unwrap();
            }
            requests += 1;
            None
        });
        let whole = whole(store);
        clients[who].heal();
        whole?;
        met.try_recv().unwrap_or_else(|_| run(&self.stores[1 - who], op, &[]))
    }

    /// Everything is as it should be in the end, also for who opens the store then.
    fn end(mut self) -> Checked {
        self.follow()?;
        let text = |e: drumlin::Error| e.to_string();
        let whole = Extent { all: true, same: false };
        let deep = VerifyOptions { deep: true, ..VerifyOptions::default() };
        for store in self.stores.drain(..) {
            store.refresh().map_err(text)?;
            compare(&store, &mut self.model, whole)?;
            let report = store.verify(&deep).map_err(text)?;
            if !report.faults.is_empty() {
                return Err(format!("{:?}", report.faults));
            }
            store.close().map_err(text)?;
        }
        let store = self.place.open(0, &self.clock).map_err(text)?;
        compare(&store, &mut self.model, whole).map_err(|e| format!("opened again: {e}"))?;
        checkpoint(&store, PlanOptions { dead_share_min: 0.0, ..PlanOptions::default() }).map_err(text)?;
        self.model.begin();
        compare(&store, &mut self.model, whole).map_err(|e| format!("after the last checkpoint: {e}"))
    }
}

/// Whether the version that an operation asks for may expire by what the checkpoint beside it numbers.
fn may_expire(model: &Model, op: &Op) -> bool {
    let Op::Beside(op) = op else { return false };
    matches!(&**op, Op::Restore(path, _) | Op::Copy(path, _, Some(_)) if model.keep.contains_key(path))
}

/// Which operations of a transaction are to be refused.
fn refused_within(model: &Model, op: &Op) -> Vec<bool> {
    let Op::Together(ops, _) = op else { return Vec::new() };
    let mut model = model.clone();
    let one = |op: &Op| {
        let before = model.clone();
        let refused = !apply(&mut model, op);
        if refused {
            model = before;
        }
        refused
    };
    ops.iter().map(one).collect()
}

/// What a panic says.
fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}

/// Takes steps; returns what is wrong.
fn replay(seed: u64, steps: &[Step]) -> Checked {
    let taken = catch_unwind(AssertUnwindSafe(|| {
        let mut run = Run::new(seed);
        for step in steps {
            run.step(step).map_err(|e| format!("{:?}: {e}", step.2))?;
        }
        run.end()
    }));
    taken.unwrap_or_else(|panic| Err(said(&*panic)))
}

/// What kind of failure it is: the words of what is said after the operation, without names and numbers.
fn kind(wrong: &str) -> String {
    let told = wrong.rsplit_once("): ").map_or(wrong, |(_, told)| told);
    told.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| word.len() > 2).take(6).collect::<Vec<_>>().join(" ")
}

/// Leaves steps out as long as what is left fails in the same way, halves first.
fn shrunk(seed: u64, mut steps: Vec<Step>, first: &str) -> (Vec<Step>, String) {
    let mut wrong = "it did not fail again".to_owned();
    let mut tries = 0;
    let mut part = steps.len().div_ceil(2);
    while part > 0 && tries < 400 {
        let mut at = 0;
        while at < steps.len() && tries < 400 {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + part).min(steps.len()));
            tries += 1;
            match replay(seed, &fewer) {
                Err(what) if kind(&what) == kind(first) => (steps, wrong) = (fewer, what),
                _ => at += part,
            }
        }
        part /= 2;
    }
    (steps, wrong)
}

fn episode(seed: u64, length: usize) -> Pairs {
    let mut rng = fastrand::Rng::with_seed(seed);
    let swarm = Swarm::new(&mut rng);
    let (mut run, mut steps) = (Run::new(seed), Vec::new());
    let taken = catch_unwind(AssertUnwindSafe(|| {
        for _ in 0..length {
            let processes = run.stores.len();
            let step = (rng.usize(..processes), rng.usize(..processes), swarm.draw(&mut rng, &run.model));
            steps.push(step.clone());
            run.step(&step).map_err(|e| format!("{:?}: {e}", step.2))?;
        }
        let pairs = std::mem::take(&mut run.pairs);
        run.end().map(|()| pairs)
    }));
    let wrong = match taken.unwrap_or_else(|panic| Err(said(&*panic))) {
        Ok(pairs) => {
            pairs.keep(seed);
            return pairs;
        }
        Err(wrong) => wrong,
    };
    let (few, last) = shrunk(seed, steps, &wrong);
    let told: Vec<String> = few.iter().map(|(who, reader, op)| format!("  {who} (read by {reader}): {op:?}")).collect();
    panic!("{wrong}\nshrunk to {} steps: {last}\n{}", few.len(), told.join("\n"));
}

// faults: concurrent change x random operations, verify
#[test]
fn whatever_follows_whatever_equals_the_model() {
    let mut reached = 0;
    seeds::each(0..24, 8, |seed| reached += episode(seed, 60).reached());
    assert!(reached > 1000 || seeds::given(), "only {reached} pairs");
}
