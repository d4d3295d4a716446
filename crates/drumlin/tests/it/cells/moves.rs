//! Logs that are moved to a server and back while processes write, die and get no answers.

use drumlin::catalog::Payload;
use drumlin::storage::{BucketFault, BucketOp, SimBucket, Storage};
use drumlin::store::{LogPlace, Options};
use drumlin::{ErrorKind, Mode, Result, Store, Tables};

use super::{Process, cell, in_cell};
use crate::processes::shared_support::clock;
use crate::seeds;
use crate::support::{Checked, same};

fn count(store: &Store) -> Result<i64> {
    let there = store.tree().get("count")?;
    Ok(there.and_then(|count| count.to_json()).and_then(|count| count.as_i64()).unwrap_or(0))
}

fn add(store: &Store) -> Result<i64> {
    store.transact(|tx| -> Result<i64> {
        let there = tx.tree().get("count")?.and_then(|count| count.to_json()).and_then(|count| count.as_i64());
        let next = there.unwrap_or(0) + 1;
        tx.tree().put("count", Payload::from(next))?;
        Ok(next)
    })
}

/// Everything that lies in a bucket.
fn contents(bucket: &SimBucket) -> Vec<(String, Vec<u8>)> {
    let content = |name: String| (name.clone(), bucket.content(&name).expect("just listed").to_vec());
    bucket.objects().into_iter().map(|(name, _)| content(name)).collect()
}

fn put_back(bucket: &SimBucket, was: &[(String, Vec<u8>)]) {
    for (name, _) in bucket.objects() {
        bucket.delete_many(&[name]);
    }
    was.iter().for_each(|(name, bytes)| bucket.overwrite(name, bytes.clone()));
}

fn check(what: &str, truth: bool) -> Checked {
    if truth { Ok(()) } else { Err(what.to_owned()) }
}

#[test]
fn a_store_is_made_with_its_log_in_a_cell_and_found_there() {
    let (bucket, server, clock) = (SimBucket::new(), SimBucket::new(), clock());
    let process = || Process::new(&bucket, &server);
    let made = process().open(&clock, 1, in_cell()).unwrap();
    assert_eq!(add(&made).unwrap(), 1);
    // Others find it without being told.
    let found = process().open(&clock, 2, Options::default()).unwrap();
    assert_eq!(add(&found).unwrap(), 2);
    assert_eq!(add(&made).unwrap(), 3);
    let reader = process().open(&clock, 3, Options { mode: Mode::Read, ..Options::default() }).unwrap();
    assert_eq!(count(&reader).unwrap(), 3);
    // A build that knows nothing of cells refuses the root.
    let root = bucket.content("root").unwrap();
    assert_eq!(root[8..12], 8_u32.to_le_bytes());
    // Where the store keeps its log itself, an address is refused.
    let (plain, server) = (SimBucket::new(), SimBucket::new());
    let process = Process::new(&plain, &server);
    process.open(&clock, 4, Options::default()).unwrap();
    let e = process.open(&clock, 5, in_cell()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
    assert!(e.to_string().contains("move-log"), "{e}");
}

#[test]
fn who_has_the_store_open_while_its_log_moves_must_open_it_again() {
    let (bucket, server, clock) = (SimBucket::new(), SimBucket::new(), clock());
    let process = || Process::new(&bucket, &server);
    let before = process().open(&clock, 1, Options::default()).unwrap();
    let idle = process().open(&clock, 2, Options::default()).unwrap();
    add(&before).unwrap();
    process().move_log(&clock, 3, &cell()).unwrap();
    for store in [&before, &idle] {
        for e in [add(store).unwrap_err(), store.refresh().unwrap_err()] {
            assert_eq!(e.kind(), ErrorKind::Closed, "{e}");
        }
    }
    assert!(add(&before).unwrap_err().to_string().contains("moved to sim"));
    let inside = process().open(&clock, 4, Options::default()).unwrap();
    assert_eq!(add(&inside).unwrap(), 2);
    // Moving there twice changes nothing.
    process().move_log(&clock, 5, &cell()).unwrap();
    assert_eq!(add(&inside).unwrap(), 3);
    let e = process().move_log(&clock, 6, &LogPlace::Cell("other".into())).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("is at sim"), "{e}");
    process().move_log(&clock, 7, &LogPlace::Store).unwrap();
    let e = add(&inside).unwrap_err();
    assert!(e.kind() == ErrorKind::Closed && e.to_string().contains("back to the store"), "{e}");
    assert_eq!(server.objects().len(), 1, "what is left there says that the log is not");
    process().move_log(&clock, 8, &LogPlace::Store).unwrap();
    let after = process().open(&clock, 9, Options::default()).unwrap();
    assert_eq!(add(&after).unwrap(), 4);
}

/// Processes count while the log moves to and fro, over networks that fail.
fn episode(seed: u64) -> usize {
    let (bucket, server, clock) = (SimBucket::new(), SimBucket::new(), clock());
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut stores: Vec<(Process, Store)> = Vec::new();
    let mut number = seed * 100_000;
    // What was acknowledged, and what may have been done beside it.
    let (mut known, mut most, mut moved) = (0_i64, 0_i64, 0);
    Process::new(&bucket, &server)
        .open(&clock, seed, if seed.is_multiple_of(2) { in_cell() } else { Options::default() })
        .unwrap();
    for _ in 0..120 {
        clock.advance(1000);
        number += 1;
        if stores.len() < 3 {
            let process = Process::new(&bucket, &server);
            match process.open(&clock, number, Options { retry_micros: 2_000_000, ..Options::default() }) {
                Ok(store) => stores.push((process, store)),
                Err(e) => assert!(e.kind() == ErrorKind::Unavailable, "{seed}: {e}"),
            }
        }
        if rng.u8(..8) == 0 {
            let process = Process::new(&bucket, &server);
            for side in [&process.bucket, &process.server] {
                let mut chance = fastrand::Rng::with_seed(rng.u64(..));
                side.plan(move |op, _| match (op, chance.u8(..30)) {
                    (_, 0) => Some(BucketFault::Killed),
                    (BucketOp::PutIf, 1..=3) => Some(BucketFault::Late(chance.u64(1..20))),
                    (_, 4) => Some(BucketFault::Refused),
                    (BucketOp::PutIf | BucketOp::Put | BucketOp::Delete, 5..=6) => Some(BucketFault::Lost),
                    _ => None,
                });
            }
            let to = if rng.bool() { cell() } else { LogPlace::Store };
            match process.move_log(&clock, number, &to) {
                Ok(()) => moved += 1,
                Err(e) => {
                    let kinds = [ErrorKind::Unavailable, ErrorKind::InDoubt];
                    assert!(kinds.contains(&e.kind()) || process.is_dead(), "{seed}: {e}");
                }
            }
        }
        if stores.is_empty() {
            continue;
        }
        let who = rng.usize(..stores.len());
        let (process, store) = &stores[who];
        if rng.u8(..3) == 0 {
            let mut chance = fastrand::Rng::with_seed(rng.u64(..));
            let plan = move |op, _: &str| match (op, chance.u8(..20)) {
                (BucketOp::PutIf, 0) => Some(BucketFault::Lost),
                (BucketOp::PutIf, 1) => Some(BucketFault::Late(chance.u64(1..12))),
                (_, 2) => Some(BucketFault::Refused),
                _ => None,
            };
            if rng.bool() { process.bucket.plan(plan) } else { process.server.plan(plan) }
        }
        let answer = match rng.u8(..10) {
            0 => store.checkpoint(&Default::default()).map(|_| None),
            _ => add(store).map(Some),
        };
        process.bucket.heal();
        process.server.heal();
        match answer {
            Ok(Some(now)) => {
                assert!(now > known && now <= most + 1, "{seed}: {now} after {known} to {most}");
                (known, most) = (now, now);
            }
            Ok(None) => {}
            Err(e) => {
                let kinds = [ErrorKind::Unavailable, ErrorKind::InDoubt, ErrorKind::Closed, ErrorKind::Conflict];
                assert!(kinds.contains(&e.kind()), "{seed}: {e}");
                most += i64::from(e.kind() == ErrorKind::InDoubt);
                if e.kind() == ErrorKind::Closed {
                    stores.remove(who);
                }
            }
        }
    }
    for _ in 0..40 {
        // What is late arrives.
        let _ = (bucket.get("root"), server.get("x"));
    }
    Process::new(&bucket, &server).move_log(&clock, seed + 7, &LogPlace::Store).unwrap();
    let last = Process::new(&bucket, &server).open(&clock, seed + 8, Options::default()).unwrap();
    let now = count(&last).unwrap();
    assert!((known..=most).contains(&now), "{seed}: {now}, not {known} to {most}");
    assert!(last.verify(&Default::default()).unwrap().faults.is_empty(), "{seed}");
    moved
}

// faults: lost answer x transaction, checkpoint
#[test]
fn nothing_is_lost_while_the_log_moves_to_and_fro() {
    let mut moved = 0;
    seeds::each(0..60, 10, |seed| moved += episode(seed));
    assert!(moved > 30 || seeds::given(), "only {moved} moves");
}

/// A log is moved back while another process commits, at each request of the move.
pub fn commits_beside_a_move_back() -> Checked {
    for at in 0..40 {
        let (bucket, server, clock) = (SimBucket::new(), SimBucket::new(), clock());
        let text = |e: drumlin::Error| e.to_string();
        let writer = Process::new(&bucket, &server).open(&clock, 1, in_cell()).map_err(text)?;
        add(&writer).map_err(text)?;
        let mover = Process::new(&bucket, &server);
        let (beside, requests) = (writer.clone(), std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0)));
        let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        for side in [&mover.bucket, &mover.server] {
            let (beside, requests, done) = (beside.clone(), requests.clone(), done.clone());
            side.plan(move |_, _| {
                if requests.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == at && add(&beside).is_ok() {
                    done.store(true, std::sync::atomic::Ordering::SeqCst);
                }
                None
            });
        }
        mover.move_log(&clock, 2, &LogPlace::Store).map_err(text)?;
        mover.bucket.heal();
        mover.server.heal();
        let last = Process::new(&bucket, &server).open(&clock, 3, Options::default()).map_err(text)?;
        let expected = if done.load(std::sync::atomic::Ordering::SeqCst) { 2 } else { 1 };
        same(&count(&last).map_err(text)?, &expected, &format!("the count after a commit at request {at}"))?;
    }
    Ok(())
}

#[test]
fn no_commit_is_lost_beside_a_move_back() {
    commits_beside_a_move_back().unwrap();
}

/// A server is put back to each of its earlier states; what was acknowledged since is not silently gone.
pub fn server_put_back() -> Checked {
    let (bucket, server, clock) = (SimBucket::new(), SimBucket::new(), clock());
    let text = |e: drumlin::Error| e.to_string();
    let process = || Process::new(&bucket, &server);
    let store = process().open(&clock, 1, in_cell()).map_err(text)?;
    let mut states = Vec::new();
    for at in 0..12 {
        states.push(contents(&server));
        add(&store).map_err(text)?;
        if at % 3 == 2 {
            store.checkpoint(&Default::default()).map_err(text)?;
        }
    }
    let newest = contents(&server);
    for (at, state) in states.iter().enumerate() {
        put_back(&server, state);
        // Who has it open notices, whatever it does first.
        let e = if at % 2 == 0 { add(&store).err() } else { store.refresh().err() };
        let told = e.is_some_and(|e| matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Closed));
        check(&format!("an open store went on after state {at}"), told)?;
        // So does who opens it, by what was noted with the last checkpoint.
        if at < 12 - 3 {
            let opened = process().open(&clock, 100 + at as u64, Options::default());
            let told = opened.err().is_some_and(|e| e.kind() == ErrorKind::Corrupt);
            check(&format!("the store was opened with state {at}"), told)?;
            // Also by what the root says alone, if lists are old and the witness is gone.
            let alone = process();
            bucket.delete_many(&["seen".to_owned()]);
            alone.bucket.plan(|op, _| (op == BucketOp::List).then_some(BucketFault::Partly(1)));
            let opened = alone.open(&clock, 300 + at as u64, Options::default());
            let told = opened.err().is_some_and(|e| e.kind() == ErrorKind::Corrupt);
            check(&format!("the store was opened with state {at}, by its root alone"), told)?;
        }
    }
    put_back(&server, &[]);
    let e = process().open(&clock, 200, Options::default()).err();
    let told = e.is_some_and(|e| e.kind() == ErrorKind::Corrupt && e.message().contains("not at sim"));
    check("an empty server was taken for the log", told)?;
    put_back(&server, &newest);
    let last = process().open(&clock, 201, Options::default()).map_err(text)?;
    same(&count(&last).map_err(text)?, &12, "the count with the newest state")
}

#[test]
fn a_server_that_was_put_back_is_noticed() {
    server_put_back().unwrap();
}
