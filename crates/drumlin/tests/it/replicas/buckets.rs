//! Replicas from bucket to bucket, over networks that fail, by processes that die.

use std::sync::Arc;

use drumlin::base::{ManualClock, Timestamp};
use drumlin::storage::{BucketFault, BucketOp, SimBucket};
use drumlin::store::{PromoteOptions, ReplicateOptions, ReplicateReport, StorePlace, promote_on, replicate_on};
use drumlin::{ErrorKind, Mode, Options, Result, Store, Tables};

use super::{append, sound};
use crate::processes::shared_support::{clock, open};
use crate::seeds;
use crate::support::{batch, env, numbered, rows};

fn follow(
    source: &SimBucket,
    target: &SimBucket,
    clock: &Arc<ManualClock>,
    seed: u64,
    options: &ReplicateOptions,
) -> Result<ReplicateReport> {
    let place = |bucket: &SimBucket| StorePlace::Bucket(Arc::new(bucket.clone()));
    let lease = || Ok((open(source, clock)?, true));
    replicate_on(&|| Ok((place(source), place(target))), ("source", "target"), &env(clock, seed, 2), &lease, options)
}

fn read(bucket: &SimBucket, clock: &Arc<ManualClock>) -> Result<Store> {
    let options = Options { mode: Mode::Read, ..Options::default() };
    drumlin::store::open_bucket(Arc::new(bucket.client()), env(clock, 7, 2), "target", options)
}

/// What goes wrong with one of `in_how_many` requests.
fn faults(bucket: &SimBucket, seed: u64, in_how_many: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    bucket.plan(move |op, _| {
        let fault = match rng.u64(0..in_how_many * 5) {
            0 => BucketFault::Refused,
            1 => BucketFault::Throttled,
            2 => BucketFault::Lost,
            3 if op == BucketOp::Put => BucketFault::Late(rng.u64(1..30)),
            4 => BucketFault::Killed,
            _ => return None,
        };
        Some(fault)
    });
}

#[test]
fn over_networks_that_fail_it_catches_up() {
    let (mut failed, mut done, mut added) = (0, 0, 0);
    seeds::each(980..992, 3, |seed| {
        let (clock, source, target) = (clock(), SimBucket::new(), SimBucket::new());
        let store = open(&source.client(), &clock).unwrap();
        let mut rng = fastrand::Rng::with_seed(seed);
        let target_options = Options { retry_micros: 2_000_000, checkpoint_log_bytes: 3000, ..Options::default() };
        let source_options = Options { retry_micros: 2_000_000, ..Options::default() };
        let options = ReplicateOptions {
            once: true,
            lease: seed % 2 == 0,
            keep_log_micros: (seed % 3 == 0).then_some(3_600_000_000),
            source: source_options,
            target: target_options,
            ..ReplicateOptions::default()
        };
        let (mut from, mut to) = (source.client(), target.client());
        for round in 0..25 {
            clock.set(Timestamp(2_000_000 + round * 1_000_000));
            for _ in 0..rng.usize(1..5) {
                match rng.u8(0..8) {
                    0 => drop(store.checkpoint(&Default::default()).unwrap()),
                    1 => drop(store.reclaim(&Default::default()).unwrap()),
                    2 => drop(store.table("u").write(batch(&numbered(round, 70)), &Default::default()).unwrap()),
                    3 => drop(store.drop("u").ok()),
                    _ => append(&store, rng.i64(0..1_000_000)).unwrap(),
                }
            }
            if from.is_dead() {
                from = source.client();
            }
            if to.is_dead() {
                to = target.client();
            }
            faults(&from, seed * 1000 + round as u64, 30);
            faults(&to, seed * 1000 + 500 + round as u64, 12);
            match follow(&from, &to, &clock, seed * 10_000 + round as u64, &options) {
                Ok(report) => {
                    done += 1;
                    added += report.entries;
                }
                Err(e) => {
                    let kind = e.kind();
                    let expected = [ErrorKind::Unavailable, ErrorKind::InDoubt, ErrorKind::Conflict];
                    assert!(expected.contains(&kind) || from.is_dead() || to.is_dead(), "{seed} {round}: {e}");
                    failed += 1;
                }
            }
            match read(&target, &clock) {
                Ok(reader) => sound(&reader),
                Err(e) => assert!(e.kind() == ErrorKind::NotFound, "{seed} {round}: {e}"),
            }
        }
        let last = ReplicateOptions { sweep: true, ..options.clone() };
        follow(&source.client(), &target.client(), &clock, seed + 99, &last).unwrap();
        let reader = read(&target, &clock).unwrap();
        sound(&reader);
        let all = |store: &Store| rows(&store.table("t").collect(&Default::default()).unwrap());
        store.refresh().unwrap();
        assert_eq!(all(&reader), all(&store));
        assert_eq!(reader.tables("**").unwrap(), store.tables("**").unwrap());
        // Nothing is left of the calls that died, and nothing more is asked for when there is no news.
        if options.keep_log_micros.is_none() {
            let fresh = SimBucket::new();
            let plain = ReplicateOptions { lease: false, ..options.clone() };
            follow(&source.client(), &fresh.client(), &clock, seed + 7, &plain).unwrap();
            let blocks = |bucket: &SimBucket| {
                let names = bucket.objects().into_iter().map(|(name, _)| name);
                names.filter(|name| name.starts_with("blocks/")).collect::<Vec<_>>()
            };
            let there = blocks(&source);
            let fresh = blocks(&fresh);
            let more: Vec<_> =
                blocks(&target).into_iter().filter(|name| !fresh.contains(name) && !there.contains(name)).collect();
            assert_eq!(more, [""; 0]);
        }
        // And it takes the source's place.
        let place = |uri: &str, _: bool| {
            let bucket = if uri == "source" { &source } else { &target };
            Ok(StorePlace::Bucket(Arc::new(bucket.client())))
        };
        let promote = PromoteOptions { replicate: last, ..PromoteOptions::default() };
        append(&store, 5).unwrap();
        promote_on(&place, "target", &env(&clock, seed + 3, 2), &promote).unwrap();
        assert!(append(&store, 6).unwrap_err().to_string().contains("was ended"));
        let next = open(&target.client(), &clock).unwrap();
        assert_eq!(all(&next), all(&store));
        append(&next, 7).unwrap();
    });
    assert!(failed > 60 && done > 60 && added > 100, "{failed} {done} {added}");
}

#[test]
fn what_was_done_before_another_process_came_stays() {
    let (clock, source, target) = (clock(), SimBucket::new(), SimBucket::new());
    let store = open(&source.client(), &clock).unwrap();
    append(&store, 0).unwrap();
    let options = ReplicateOptions { once: true, lease: false, ..ReplicateOptions::default() };
    follow(&source.client(), &target.client(), &clock, 1, &options).unwrap();
    // Entries that go to a chunk.
    for n in 0..40 {
        store.table("t").append(batch(&numbered(n * 1000, 900)), &Default::default()).unwrap();
    }
    let (to, lost) = (target.client(), Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let (other, from, options_there, clock_there) = (target.client(), source.client(), options.clone(), clock.clone());
    let (mut puts, mut done) = (0, false);
    to.plan(move |op, name| {
        if name != "root" || done {
            return None;
        }
        // The first put takes the replica over.
        if op == BucketOp::PutIf {
            puts += 1;
            if puts == 2 {
                lost.store(true, std::sync::atomic::Ordering::Relaxed);
                return Some(BucketFault::Lost);
            }
        }
        if op == BucketOp::Get && lost.load(std::sync::atomic::Ordering::Relaxed) {
            done = true;
            std::thread::scope(|scope| {
                scope.spawn(|| follow(&from, &other, &clock_there, 5, &options_there).unwrap()).join().unwrap()
            });
        }
        None
    });
    let ended = follow(&source.client(), &to, &clock, 2, &options);
    assert!(ended.as_ref().is_err_and(|e| e.kind() == ErrorKind::Conflict), "{ended:?}");
    sound(&read(&target, &clock).unwrap());
    follow(&source.client(), &target.client(), &clock, 3, &options).unwrap();
    sound(&read(&target, &clock).unwrap());
}

#[test]
fn requests_follow_what_is_new() {
    let (clock, source, target) = (clock(), SimBucket::new(), SimBucket::new());
    let store = open(&source.client(), &clock).unwrap();
    for table in 0..200 {
        store.table(&format!("many/{table}")).write(batch(&numbered(table, 40)), &Default::default()).unwrap();
    }
    store.checkpoint(&Default::default()).unwrap();
    let options = ReplicateOptions { once: true, lease: false, ..ReplicateOptions::default() };
    let report = follow(&source.client(), &target.client(), &clock, 1, &options).unwrap();
    assert!(report.blocks > 0);
    // One row more: a few requests on either side, whatever there is.
    let looked = || {
        let (a, b) = (source.requests(), target.requests());
        let count = |r: drumlin::storage::Requests| (r.gets, r.puts, r.deletes + r.lists);
        (count(a), count(b))
    };
    let mut costs = Vec::new();
    for n in 0..3 {
        append(&store, n).unwrap();
        let before = looked();
        follow(&source.client(), &target.client(), &clock, 2 + n as u64, &options).unwrap();
        let after = looked();
        let less = |a: (u64, u64, u64), b: (u64, u64, u64)| (a.0 - b.0, a.1 - b.1, a.2 - b.2);
        costs.push((less(after.0, before.0), less(after.1, before.1)));
    }
    let (from, to) = costs[2];
    assert!(from.0 <= 8 && from.1 == 0, "{costs:?}");
    assert!(to.0 <= 10 && to.1 <= 4 && to.2 <= 16, "{costs:?}");
}
