//! Processes that hand in their commits while they wait, so that others add them with their own: in virtual time, over a network that
//! fails.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use drumlin::base::{Clock, Env, OsThreads, SeededEntropy, Seq};
use drumlin::catalog::Payload;
use drumlin::storage::{BucketFault, BucketOp, SimBucket};
use drumlin::store::{Options, TableOptions, open_bucket, open_bucket_with};
use drumlin::{ErrorKind, Result, Store, Tables};

use super::{SimServer, in_cell};
use crate::processes::sim_time::SimTime;
use crate::seeds;
use crate::support::{Checked, Row, batch, pool, rows, same};

/// How long a request takes, in microseconds, more or less.
const TRIP: u64 = 2000;
/// Keys that are inserted once each, by the process that comes first.
const ONCE: i64 = 12;

/// What one operation did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// By this commit.
    Done(Seq),
    Refused,
    InDoubt,
}

/// The value that an operation writes to a key of a table; `once` if it inserts it.
#[derive(Clone, Debug)]
struct Write {
    table: String,
    key: i64,
    value: Option<String>,
    once: bool,
    outcome: Outcome,
}

struct Run {
    /// Whether the log is in a cell; otherwise it is in the bucket.
    cell: bool,
    processes: usize,
    steps: usize,
    faults: bool,
    /// Whether there are commits that are not handed in, and checkpoints.
    all: bool,
}

fn open(bucket: &SimBucket, server: Option<&SimBucket>, time: &Arc<SimTime>, seed: u64) -> Result<Store> {
    let (entropy, threads) = (Arc::new(SeededEntropy::new(seed)), Arc::new(OsThreads));
    let (metrics, warn) = Default::default();
    let env = Env { clock: time.clone(), entropy, pool: pool(1), threads, metrics, warn };
    let options = Options { checkpoint_log_bytes: 0, inline_bytes: 0, ..Options::default() };
    let Some(server) = server else { return open_bucket(Arc::new(bucket.clone()), env, "bucket", options) };
    let cells = SimServer { bucket: server.clone(), env: env.clone() };
    let options = Options { log_at: in_cell().log_at, ..options };
    open_bucket_with(Arc::new(bucket.clone()), &cells, env, "bucket", options)
}

fn counter(store: &Store, name: &str) -> u64 {
    match drumlin::metrics(store).unwrap().iter().find(|metric| metric.name == name).unwrap().value {
        drumlin::MetricValue::Counter(count) => count,
        _ => panic!("{name} is no counter"),
    }
}

fn create(store: &Store, path: &str) {
    let options = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    drop(store.table(path).create(batch(&[]).schema(), options).unwrap());
}

fn read(store: &Store, path: &str) -> BTreeMap<i64, Option<String>> {
    rows(&store.table(path).collect(&Default::default()).unwrap()).into_iter().collect()
}

/// One operation of a process: the writes that it makes, all or none, and their common outcome.
fn step(store: &Store, rng: &mut fastrand::Rng, (process, at): (usize, usize), all: bool) -> Vec<Write> {
    let value = format!("{process}-{at}");
    let write = |table: &str, key: i64, value: Option<&String>, once: bool| Write {
        table: table.to_owned(),
        key,
        value: value.cloned(),
        once,
        outcome: Outcome::Refused,
    };
    let (own, key) = (format!("t{process}"), rng.i64(0..4));
    let row = |key: i64| -> Vec<Row> { vec![(key, Some(value.clone()))] };
    let (mut writes, answer) = match rng.u8(..if all { 23 } else { 21 }) {
        0..=5 => (
            vec![write(&own, key, Some(&value), false)],
            store.table(&own).upsert(batch(&row(key)), &Default::default()),
        ),
        6..=9 => {
            (vec![write("s", key, Some(&value), false)], store.table("s").upsert(batch(&row(key)), &Default::default()))
        }
        10..=12 => {
            let key = rng.i64(0..ONCE);
            let answer = store.table("once").insert(batch(&row(key)), &Default::default());
            (vec![write("once", key, Some(&value), true)], answer)
        }
        13..=14 => {
            let keys = batch(&[(key, None)]).project(&[0]).unwrap();
            (vec![write(&own, key, None, false)], store.table(&own).delete_keys(keys, &Default::default()))
        }
        15..=17 => {
            let writes = vec![write("s", key, Some(&value), false), write(&own, key, Some(&value), false)];
            let answer = store.transaction().and_then(|tx| {
                tx.table("s").upsert(batch(&row(key)), &Default::default())?;
                let report = tx.table(&own).upsert(batch(&row(key)), &Default::default())?;
                Ok(drumlin::RowsReport { seq: Some(tx.commit()?), ..report })
            });
            (writes, answer)
        }
        18..=20 => {
            // What one of the two shows decides what the other becomes: never both are on.
            let (read, written) = if process % 2 == 0 { ("x", "y") } else { ("y", "x") };
            let mut writes = vec![write(written, 0, None, false)];
            let answer = store.transaction().and_then(|tx| {
                let there = rows(&tx.table(read).collect(&Default::default())?);
                let off = there.iter().all(|(_, name)| name.as_deref() != Some("on"));
                let next = if off && rng.bool() { "on" } else { "off" };
                writes[0].value = Some(next.to_owned());
                let report = tx.table(written).upsert(batch(&[(0, Some(next.to_owned()))]), &Default::default())?;
                Ok(drumlin::RowsReport { seq: Some(tx.commit()?), ..report })
            });
            (writes, answer)
        }
        21 => {
            drop(store.tree().put(&format!("n/{process}"), Payload::from(at as i64)));
            return Vec::new();
        }
        _ => {
            drop(store.checkpoint(&Default::default()));
            return Vec::new();
        }
    };
    let outcome = match answer {
        Ok(report) => Outcome::Done(report.seq.expect("a commit")),
        Err(e) if e.kind() == ErrorKind::InDoubt => Outcome::InDoubt,
        Err(e) => {
            let kinds = [ErrorKind::Corrupt, ErrorKind::SnapshotExpired, ErrorKind::Unsupported];
            assert!(!kinds.contains(&e.kind()), "{e}");
            Outcome::Refused
        }
    };
    writes.iter_mut().for_each(|write| write.outcome = outcome);
    writes
}

/// What is wrong with the tables after all writes.
fn compare(store: &Store, writes: &[Write]) -> Checked {
    let on = |path: &str| read(store, path).values().any(|name| name.as_deref() == Some("on"));
    if on("x") && on("y") {
        return Err("x and y are both on".into());
    }
    let places: BTreeSet<(&str, i64)> = writes.iter().map(|write| (&*write.table, write.key)).collect();
    let tables: BTreeMap<&str, BTreeMap<i64, Option<String>>> =
        places.iter().map(|(table, _)| (*table, read(store, table))).collect();
    for (table, key) in places {
        let here: Vec<&Write> = writes.iter().filter(|write| (&*write.table, write.key) == (table, key)).collect();
        let found = tables[table].get(&key).cloned().flatten();
        let seq = |write: &&&Write| if let Outcome::Done(seq) = write.outcome { Some(seq) } else { None };
        let done: Vec<&&Write> = here.iter().filter(|write| seq(write).is_some()).collect();
        let last = done.iter().max_by_key(|write| seq(write)).and_then(|write| write.value.clone());
        let doubtful =
            || here.iter().filter(|write| write.outcome == Outcome::InDoubt).any(|write| write.value == found);
        if found != last && !doubtful() {
            return Err(format!("{table}, key {key}: {found:?} instead of {last:?}, of {here:?}"));
        }
        if here.iter().any(|write| write.once) && (done.len() > 1 || done.len() == 1 && found != last) {
            return Err(format!("{table}, key {key}: {found:?}, inserted by {done:?}"));
        }
    }
    Ok(())
}

/// Runs processes that write rows; returns how many commits there were, and how many rows the cell has, or how often a root was put, and how
/// many were added with those of others.
fn episode(seed: u64, run: &Run) -> std::result::Result<(u64, u64, u64), String> {
    let (bucket, server, time) = (SimBucket::new(), SimBucket::new(), Arc::new(SimTime::default()));
    let first = open(&bucket, run.cell.then_some(&server), &time, seed * 1000).unwrap();
    (0..run.processes).for_each(|n| create(&first, &format!("t{n}")));
    ["s", "once", "x", "y"].iter().for_each(|path| create(&first, path));
    let begun = first.seq().unwrap();
    let (all, put) = (Mutex::new(Vec::new()), Arc::new(AtomicU64::new(0)));
    let handed_in = time.run(run.processes, |n| {
        let mut rng = fastrand::Rng::with_seed(seed * 100 + n as u64);
        let (own, its) = (bucket.client(), server.client());
        let store = open(&own, run.cell.then_some(&its), &time, seed * 1000 + 1 + n as u64).unwrap();
        let mut chance = rng.fork();
        let (on_its_way, faults, cell, put) = (time.clone(), run.faults, run.cell, put.clone());
        let its = if cell { its } else { own };
        its.plan(move |op, name| {
            // Other objects may be read by threads of a pool, for which time does not pass.
            if !cell && !["root", "offers"].iter().any(|its| name.starts_with(its)) {
                return None;
            }
            put.fetch_add(u64::from(op == BucketOp::PutIf), Ordering::Relaxed);
            // Objects are read side by side, but here one after the other.
            let trips =
                if op == BucketOp::List { 2 } else { u64::from(op != BucketOp::Get || !name.contains("offers/")) };
            on_its_way.pause(Duration::from_micros(trips * chance.u64(TRIP / 2..=TRIP)));
            match (faults, op, chance.u8(..60)) {
                (true, _, 0) => Some(BucketFault::Refused),
                (true, BucketOp::Put | BucketOp::PutIf | BucketOp::Delete, 1) => Some(BucketFault::Lost),
                (true, BucketOp::Put | BucketOp::PutIf, 2) => Some(BucketFault::Late(chance.u64(1..200))),
                _ => None,
            }
        });
        for at in 0..run.steps {
            let writes = step(&store, &mut rng, (n, at), run.all);
            all.lock().unwrap().extend(writes);
        }
        its.heal();
        assert_eq!(counter(&store, "drumlin_log_requests_total") > 0, run.cell);
        counter(&store, "drumlin_commits_handed_in_total")
    });
    // What is late arrives.
    (0..200).for_each(|_| drop(drumlin::storage::Storage::list(&server, "x")));
    (0..200).for_each(|_| drop(drumlin::storage::Storage::list(&bucket, "x")));
    let writes = all.into_inner().unwrap();
    let fresh = open(&bucket, run.cell.then_some(&server), &time, seed * 1000 + 999).unwrap();
    compare(&fresh, &writes).map_err(|e| format!("fresh: {e}"))?;
    // What the first process takes in of others is the same.
    first.refresh().map_err(|e| e.to_string())?;
    compare(&first, &writes)?;
    let commits = fresh.seq().unwrap().0 - begun.0;
    if !run.faults && !run.all {
        let seqs: BTreeSet<Seq> =
            writes.iter().filter_map(|w| if let Outcome::Done(seq) = w.outcome { Some(seq) } else { None }).collect();
        same(&(seqs.len() as u64), &commits, "commits that were acknowledged")?;
    }
    let verified = fresh.verify(&Default::default()).map_err(|e| e.to_string())?;
    same(&verified.faults.len(), &0, "faults")?;
    let rows = |(name, _): &(String, u64)| name.starts_with("cell-") && !name.contains("-offers");
    let rows = server.objects().iter().filter(|object| rows(object)).count() as u64;
    let put = if run.cell { rows } else { put.load(Ordering::Relaxed) };
    Ok((commits, put, handed_in.iter().sum()))
}

/// Without faults: each commit is made once, in an order that explains every answer.
pub fn handed_in() -> Checked {
    for cell in [true, false] {
        let (mut commits, mut put, mut handed_in) = (0, 0, 0);
        for seed in seeds::list(0..6, 0) {
            // In a bucket that pays in a crowd only.
            let (processes, steps) = if cell { (5, 30) } else { (12, 20) };
            let run = Run { cell, processes, steps, faults: false, all: false };
            let (made, rows, handed) = episode(seed, &run).map_err(|e| format!("seed {seed}: {e}"))?;
            commits += made;
            put += rows;
            handed_in += handed;
        }
        // Of the puts of a root many are in vain; without offers three for each commit.
        let most = if cell { commits * 8 / 10 } else { commits * 2 };
        let few = put < most && handed_in * 4 > commits;
        same(&(few || seeds::given()), &true, &format!("{commits} commits by {put} puts, {handed_in} handed in"))?;
    }
    Ok(())
}

fn random(seed: u64, faults: bool) -> Checked {
    let (cell, processes) = if seed.is_multiple_of(3) { (false, 8) } else { (true, 4) };
    let run = Run { cell, processes, steps: 30, faults, all: !faults || seed.is_multiple_of(2) };
    episode(seed, &run).map(drop).map_err(|e| format!("seed {seed}: {e}"))
}

// faults: concurrent change x upsert, delete
#[test]
fn commits_that_were_handed_in_are_made_once() {
    handed_in().unwrap();
}

// faults: concurrent change x upsert, delete, checkpoint, nodes
#[test]
fn beside_commits_of_other_kinds_too() {
    seeds::each(20..29, 3, |seed| random(seed, false).unwrap());
}

// faults: lost answer x upsert, delete, checkpoint
#[test]
fn over_a_network_that_fails_they_are_made_once_or_not() {
    seeds::each(40..64, 4, |seed| random(seed, true).unwrap());
}
