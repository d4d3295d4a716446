//! Processes that race for the root of a log: each gets its turn, they wait for a bucket that refuses, and an unknown result
//! is reported as unknown.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use drumlin::base::{Clock, Env, OsThreads, SeededEntropy};
use drumlin::catalog::Payload;
use drumlin::storage::{BucketFault, BucketOp, SimBucket};
use drumlin::store::{Options, TableOptions};
use drumlin::{ErrorKind, Store, Tables};

use crate::processes::sim_time::SimTime;
use crate::support::{batch, pool};

type Outcome = std::result::Result<(), String>;

/// How long a request takes, in microseconds, more or less.
const TRIP: u64 = 20_000;

fn open(bucket: &SimBucket, time: &Arc<SimTime>, seed: u64) -> Store {
    let (entropy, threads) = (Arc::new(SeededEntropy::new(seed)), Arc::new(OsThreads));
    let (metrics, warn) = Default::default();
    let env = Env { clock: time.clone(), entropy, pool: pool(1), threads, metrics, warn };
    let options = Options { checkpoint_log_bytes: 0, ..Options::default() };
    drumlin::store::open_bucket(Arc::new(bucket.clone()), env, "bucket", options).unwrap()
}

/// What some processes do repeatedly until a given time.
struct Race {
    processes: usize,
    micros: i64,
    /// Whether a process commits without reading the root first.
    blind: fn(usize) -> bool,
    /// Microseconds between two puts of the root that are accepted.
    every: Option<i64>,
}

/// How long each commit of each process took, in microseconds.
fn race(seed: u64, race: &Race) -> Vec<Vec<i64>> {
    let (bucket, time) = (SimBucket::new(), Arc::new(SimTime::default()));
    open(&bucket, &time, seed).tree().put("n", Payload::from(0)).unwrap();
    let taken = Arc::new(Mutex::new(i64::MIN / 2));
    time.run(race.processes, |n| {
        let mut rng = fastrand::Rng::with_seed(seed * 100 + n as u64);
        time.pause(Duration::from_micros(rng.u64(..2 * TRIP)));
        let client = bucket.client();
        let store = open(&client, &time, seed * 100 + n as u64);
        let (on_its_way, taken, every) = (time.clone(), taken.clone(), race.every);
        client.plan(move |op, name| {
            on_its_way.pause(Duration::from_micros(rng.u64(TRIP..=TRIP + TRIP / 10)));
            let (mut taken, now) = (taken.lock().unwrap(), on_its_way.micros());
            if op == BucketOp::PutIf && name == "root" && every.is_some_and(|every| now < *taken + every) {
                return Some(BucketFault::Throttled);
            }
            if op == BucketOp::PutIf {
                *taken = now;
            }
            None
        });
        let mut times = Vec::new();
        let schema = batch(&[]).schema();
        while time.micros() < race.micros {
            let begun = time.micros();
            match (race.blind)(n) {
                true => drop(
                    store
                        .table(&format!("t/{n}/{}", times.len()))
                        .create(schema.clone(), TableOptions::default())
                        .unwrap(),
                ),
                false => drop(store.tree().put(&format!("n/{n}"), Payload::from(times.len() as i64)).unwrap()),
            }
            times.push(time.micros() - begun);
        }
        times
    })
}

/// Checks that no commit took more than ten times as long as the median one, and that each process had its share.
fn fair(what: &str, times: &[Vec<i64>]) -> Outcome {
    let mut all: Vec<i64> = times.concat();
    all.sort_unstable();
    let (median, longest) = (all[all.len() / 2], all[all.len() - 1]);
    let counts: Vec<usize> = times.iter().map(Vec::len).collect();
    println!("{what}: {counts:?} commits, median {median}, longest {longest}");
    let shares = counts.iter().min().unwrap() * 4 >= *counts.iter().max().unwrap();
    match longest <= 10 * median && shares {
        true => Ok(()),
        false => Err(format!("{what}: {counts:?} commits, the median one took {median}, the longest {longest}")),
    }
}

/// Processes that read the root before they commit, that do not, and both.
pub fn turns() -> Outcome {
    let blind: [fn(usize) -> bool; 3] = [|_| false, |_| true, |n| n == 0];
    for processes in [2, 4, 8] {
        for (at, blind) in blind.into_iter().enumerate() {
            let times = race(at as u64, &Race { processes, micros: 15_000_000, blind, every: None });
            fair(&format!("{processes} processes, kind {at}"), &times)?;
        }
    }
    Ok(())
}

/// A bucket that accepts one put of the root per second, as Google's does.
pub fn one_put_a_second() -> Outcome {
    for processes in [1, 2, 8] {
        let kind = Race { processes, micros: 300_000_000, blind: |_| false, every: Some(1_000_000) };
        let times = race(7, &kind);
        let commits = times.iter().map(Vec::len).sum::<usize>();
        if commits < 180 {
            return Err(format!("{commits} commits of {processes} processes in 300 s"));
        }
        fair(&format!("{processes} processes, one put a second"), &times)?;
    }
    Ok(())
}

// faults: concurrent change x write, nodes
#[test]
fn processes_take_turns() {
    turns().unwrap();
}

// faults: throttling x nodes
#[test]
fn a_bucket_that_takes_one_put_a_second_is_waited_for() {
    one_put_a_second().unwrap();
}

#[test]
fn who_commits_alone_is_not_held_up() {
    let times = race(1, &Race { processes: 1, micros: 20_000_000, blind: |_| false, every: None });
    let (commits, bare) = (times[0].len() as i64, 20_000_000 / (2 * TRIP as i64 * 21 / 20));
    assert!(commits * 100 >= bare * 93, "{commits} commits, {bare} without any pauses");
}

// faults: throttling x nodes
#[test]
fn a_bucket_that_refuses_for_good_is_unavailable_after_a_while_and_nothing_is_done() {
    let (bucket, time) = (SimBucket::new(), Arc::new(SimTime::default()));
    let store = open(&bucket, &time, 1);
    store.tree().put("n", Payload::from(1)).unwrap();
    bucket.plan(|op, _| (op == BucketOp::PutIf).then_some(BucketFault::Throttled));
    let (begun, before) = (time.micros(), bucket.requests());
    let e = store.tree().put("n", Payload::from(2)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unavailable, "{e}");
    let (waited, tries) = (time.micros() - begun, bucket.requests().puts - before.puts);
    assert!((55_000_000..70_000_000).contains(&waited), "{waited} microseconds");
    assert!((10..300).contains(&tries), "{tries} tries");
    // One that would be refused again is reported at once.
    bucket.plan(|op, _| (op == BucketOp::PutIf).then_some(BucketFault::Refused));
    let (begun, before) = (time.micros(), bucket.requests());
    let e = store.tree().put("n", Payload::from(3)).unwrap_err();
    assert_eq!((e.kind(), time.micros() - begun), (ErrorKind::Unavailable, 0), "{e}");
    assert_eq!(bucket.requests().puts - before.puts, 1);
    bucket.heal();
    assert_eq!(open(&bucket.client(), &time, 2).tree().get("n").unwrap(), Some(Payload::from(1)));
    store.tree().put("n", Payload::from(4)).unwrap();
}

// faults: lost answer, throttling x nodes
#[test]
fn what_may_have_been_done_is_in_doubt_also_if_it_is_refused_later() {
    for late in [false, true] {
        let (bucket, time) = (SimBucket::new(), Arc::new(SimTime::default()));
        let store = open(&bucket, &time, 1);
        store.tree().put("n", Payload::from(1)).unwrap();
        // The first put takes very long; later ones are refused, so that the root shows nothing.
        let mut first = true;
        bucket.plan(move |op, _| match (op, std::mem::take(&mut first)) {
            (BucketOp::Get, _) => {
                first = true;
                None
            }
            (BucketOp::PutIf, true) if late => Some(BucketFault::Late(100_000)),
            (BucketOp::PutIf, _) if late => Some(BucketFault::Late(100_000)),
            (BucketOp::PutIf, _) => Some(BucketFault::Throttled),
            _ => None,
        });
        let e = store.tree().put("n", Payload::from(2)).unwrap_err();
        let expected = if late { ErrorKind::InDoubt } else { ErrorKind::Unavailable };
        assert_eq!(e.kind(), expected, "{e}");
        assert!(e.to_string().contains("commit 2 (transaction "), "{e}");
        bucket.heal();
        store.refresh().unwrap();
        assert_eq!(store.tree().get("n").unwrap(), Some(Payload::from(1)));
    }
}

#[test]
fn a_store_that_is_gone_is_corrupt() {
    let (bucket, time) = (SimBucket::new(), Arc::new(SimTime::default()));
    let store = open(&bucket, &time, 1);
    store.tree().put("n", Payload::from(1)).unwrap();
    let other = bucket.client();
    bucket.plan(move |op, _| {
        if op == BucketOp::PutIf {
            drop(drumlin::storage::Storage::delete_many(&other, &["root".to_owned()]));
        }
        None
    });
    let e = store.tree().put("n", Payload::from(2)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Corrupt, "{e}");
}
