//! Staged writes: what many workers wrote for one job becomes part of its tables once, all of it, or not at all; whatever is left
//! is deleted.

use std::collections::BTreeMap;
use std::sync::Arc;

use drumlin::base::ManualClock;
use drumlin::storage::{BucketFault, BucketOp, SimBucket};
use drumlin::store::{
    Aborted, AsOf, CheckpointOptions, IndexOptions, Options, ReclaimOptions, Stage, StageMode, StageOptions,
    StagedCommit, StagedReport, TableOptions, Ticket, Token,
};
use drumlin::{Alter, ErrorKind, Expression, Fill, NewColumn, Store, Tables, Task, Version};

use crate::processes::shared_support::{clock, open, settled};
use crate::seeds;
use crate::support::{Checked, Row, batch, env, numbered, read};

fn text(e: impl std::fmt::Display) -> String {
    e.to_string()
}

fn worker(bucket: &SimBucket, clock: &Arc<ManualClock>, seed: u64) -> Stage {
    Stage::on(Arc::new(bucket.client()), env(clock, 1000 + seed, 2), &Options::default())
}

fn job(mode: StageMode, name: &str) -> StageOptions {
    StageOptions { mode, job: Some(name.into()), ..StageOptions::default() }
}

fn begin(store: &Store, paths: &[&str], options: &StageOptions) -> drumlin::Result<Ticket> {
    let schema = batch(&[]).schema();
    let tables: Vec<_> = paths.iter().map(|path| ((*path).to_owned(), Some(schema.clone()))).collect();
    // As it goes to other processes.
    Ticket::from_bytes(&Ticket::open(store, &tables, options)?.to_bytes()?)
}

fn stage(worker: &Stage, ticket: &Ticket, path: &str, rows: &[Row], part: (u64, u64)) -> drumlin::Result<Token> {
    let token = worker.write(ticket, path, batch(rows).into(), Some(part), &Task::default())?;
    Token::from_bytes(&token.to_bytes()?)
}

fn keyed(store: &Store, path: &str) {
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table(path).create(batch(&[]).schema(), key).unwrap();
}

fn newest(store: &Store, path: &str) -> Result<Vec<Row>, String> {
    read(store, path, AsOf::Newest).map_err(text)
}

fn is(store: &Store, path: &str, expected: &[Row]) -> Checked {
    let found = newest(store, path)?;
    if found == expected {
        Ok(())
    } else {
        Err(format!("'{path}' has {} rows, expected {}", found.len(), expected.len()))
    }
}

/// Blocks that wait for their commit outlive sweeps, audits and checkpoints of other processes, and are no orphans.
pub fn staged_blocks_are_spared() -> Checked {
    let (bucket, clock) = (SimBucket::new(), clock());
    let driver = open(&bucket, &clock).unwrap();
    driver.write("t", batch(&numbered(0, 5)), &Default::default()).unwrap();
    let ticket = begin(&driver, &["t"], &job(StageMode::Append, "a")).map_err(text)?;
    let token = stage(&worker(&bucket, &clock, 1), &ticket, "t", &numbered(5, 5), (0, 0)).map_err(text)?;
    let other = open(&bucket.client(), &clock).unwrap();
    for _ in 0..2 {
        let verified = other.verify(&Default::default()).map_err(text)?;
        if !verified.orphans.is_empty() {
            return Err(format!("orphans {:?}", verified.orphans));
        }
        other.checkpoint(&CheckpointOptions::default()).map_err(text)?;
        let all = ReclaimOptions { fence_idle_micros: Some(0), audit: true, ..Default::default() };
        other.reclaim(&all).map_err(text)?;
        clock.advance(1_000_000);
    }
    ticket.commit(&driver, vec![token], &StagedCommit::default()).map_err(text)?;
    is(&driver, "t", &numbered(0, 10))?;
    settled(&driver, &bucket)
}

/// What was aborted, or fell silent, cannot be committed, and leaves nothing.
pub fn ended_jobs_are_not_committed() -> Checked {
    for silent in [false, true] {
        let (bucket, clock) = (SimBucket::new(), clock());
        let driver = open(&bucket, &clock).unwrap();
        let options = StageOptions { life_micros: 60_000_000, ..job(StageMode::Append, "a") };
        let ticket = begin(&driver, &["t"], &options).map_err(text)?;
        let token = stage(&worker(&bucket, &clock, 1), &ticket, "t", &numbered(0, 5), (0, 0)).map_err(text)?;
        let other = open(&bucket.client(), &clock).unwrap();
        match silent {
            // Two looks: a beat may be as old as clocks differ.
            true => {
                other.reclaim(&Default::default()).map_err(text)?;
                clock.advance(600_000_000);
                other.reclaim(&Default::default()).map_err(text)?;
                clock.advance(600_000_000);
            }
            false => match ticket.abort(&driver).map_err(text)? {
                Aborted::Aborted => {}
                Aborted::Committed => return Err("an aborted job was committed".into()),
            },
        }
        other.reclaim(&Default::default()).map_err(text)?;
        match ticket.commit(&driver, vec![token], &StagedCommit::default()) {
            Err(e) if e.kind() == ErrorKind::SnapshotExpired => {}
            answer => return Err(format!("a commit after the end: {answer:?}")),
        }
        settled(&driver, &bucket)?;
        if bucket.objects().iter().any(|(name, _)| name.starts_with("blocks/")) {
            return Err("blocks are left".into());
        }
    }
    Ok(())
}

/// A commit is done once, however often it is repeated, by the same process or another; another commit of the job is refused.
pub fn a_job_is_done_once() -> Checked {
    let (bucket, clock) = (SimBucket::new(), clock());
    let driver = open(&bucket, &clock).unwrap();
    let ticket = begin(&driver, &["t"], &job(StageMode::Append, "daily")).map_err(text)?;
    let worker = worker(&bucket, &clock, 1);
    let part = |n: u64| stage(&worker, &ticket, "t", &numbered(n as i64 * 5, 5), (n, 0));
    let tokens = vec![part(1).map_err(text)?, part(0).map_err(text)?];
    let late = part(2).map_err(text)?;
    let commit = |store: &Store, tokens: Vec<Token>| ticket.commit(store, tokens, &StagedCommit::default());
    let first = commit(&driver, tokens.clone()).map_err(text)?;
    let other = open(&bucket.client(), &clock).unwrap();
    for store in [&driver, &other] {
        let mut again = tokens.clone();
        again.reverse();
        let repeated = commit(store, again).map_err(text)?;
        if repeated != first {
            return Err(format!("{repeated:?}, the first answer was {first:?}"));
        }
        store.checkpoint(&Default::default()).map_err(text)?;
    }
    is(&other, "t", &numbered(0, 10))?;
    match commit(&driver, vec![late]) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
        answer => return Err(format!("other tokens of a committed job: {answer:?}")),
    }
    match begin(&driver, &["t"], &job(StageMode::Append, "daily")) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
        answer => return Err(format!("a committed job began again: {answer:?}")),
    }
    if ticket.abort(&driver).map_err(text)? != Aborted::Committed {
        return Err("a committed job was aborted".into());
    }
    settled(&driver, &bucket)?;
    is(&driver, "t", &numbered(0, 10))
}

/// Of a table with a key, parts with one key are refused, whichever way they are committed; nothing is done then.
pub fn keys_are_unique_among_parts() -> Checked {
    for mode in [StageMode::Append, StageMode::Upsert, StageMode::Overwrite] {
        let (bucket, clock) = (SimBucket::new(), clock());
        let driver = open(&bucket, &clock).unwrap();
        keyed(&driver, "k");
        driver.table("k").upsert(batch(&numbered(100, 5)), &Default::default()).unwrap();
        let ticket = begin(&driver, &["k"], &job(mode, "a")).map_err(text)?;
        let worker = worker(&bucket, &clock, 1);
        let a = stage(&worker, &ticket, "k", &numbered(0, 10), (0, 0)).map_err(text)?;
        let b = stage(&worker, &ticket, "k", &numbered(9, 10), (1, 0)).map_err(text)?;
        match ticket.commit(&driver, vec![a, b], &StagedCommit::default()) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists && e.to_string().contains('9') => {}
            answer => return Err(format!("{mode:?}: {answer:?}")),
        }
        is(&driver, "k", &numbered(100, 5))?;
    }
    Ok(())
}

// faults: reclaim beside a writer x write
#[test]
fn sweeps_spare_what_is_staged() {
    staged_blocks_are_spared().unwrap();
}

// faults: paused process x write
#[test]
fn what_has_ended_is_not_committed() {
    ended_jobs_are_not_committed().unwrap();
}

#[test]
fn jobs_are_done_once() {
    a_job_is_done_once().unwrap();
}

#[test]
fn parts_share_no_key() {
    keys_are_unique_among_parts().unwrap();
}

/// What a table's rows must be after a commit.
fn expected(mode: StageMode, keyed: bool, before: &[Row], parts: &BTreeMap<u64, Vec<Row>>) -> Vec<Row> {
    let new: Vec<Row> = parts.values().flatten().cloned().collect();
    let mut all: Vec<Row> = match mode {
        StageMode::Overwrite => new,
        _ => before.iter().cloned().chain(new).collect(),
    };
    if keyed {
        let by_key: BTreeMap<i64, Row> = all.into_iter().map(|row| (row.0, row)).collect();
        all = by_key.into_values().collect();
    }
    all
}

/// Random jobs over many tables by many workers, some of whose attempts fail or are given up, beside checkpoints, reclaims and
/// writes by others: compared with what they mean.
#[test]
fn random_jobs_do_what_they_say() {
    for seed in seeds::list(0..120, 40) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (bucket, clock) = (SimBucket::new(), clock());
        let driver = open(&bucket, &clock).unwrap();
        let other = open(&bucket.client(), &clock).unwrap();
        let mut model: BTreeMap<&str, Vec<Row>> = BTreeMap::new();
        keyed(&driver, "k");
        model.insert("k", Vec::new());
        for n in 0..rng.usize(2..7) {
            let mode = [StageMode::Append, StageMode::Overwrite, StageMode::Upsert][rng.usize(..3)];
            let paths: &[&str] = match mode {
                StageMode::Upsert => &["k"],
                _ => [&["a", "k"][..], &["a"], &["a", "b"], &["k"]][rng.usize(..4)],
            };
            let ticket = begin(&driver, paths, &job(mode, &format!("job {n}"))).unwrap();
            let (mut tokens, mut parts) = (Vec::new(), BTreeMap::<&str, BTreeMap<u64, Vec<Row>>>::new());
            for at in 0..rng.u64(..6) {
                let path = paths[rng.usize(..paths.len())];
                let from = if mode == StageMode::Upsert { 0 } else { 10_000 + n as i64 * 10_000 };
                let rows: Vec<Row> = numbered(from + at as i64 * 20, rng.usize(..20));
                let attempts = rng.usize(1..3);
                for attempt in 0..attempts {
                    let worker = worker(&bucket, &clock, seed * 1000 + at * 10 + attempt as u64);
                    let token = stage(&worker, &ticket, path, &rows, (at, 0)).unwrap();
                    // Only the last attempt counts.
                    if attempt + 1 == attempts {
                        tokens.push(token);
                        parts.entry(path).or_default().insert(at, rows.clone());
                    }
                }
                match rng.u8(..6) {
                    0 => drop(other.checkpoint(&Default::default()).unwrap()),
                    1 => drop(other.reclaim(&ReclaimOptions { audit: true, ..Default::default() }).unwrap()),
                    2 => {
                        let row = numbered(5, 1);
                        other.table("k").upsert(batch(&row), &Default::default()).unwrap();
                        let rows = model.get_mut("k").unwrap();
                        *rows = expected(StageMode::Upsert, true, rows, &BTreeMap::from([(0, row)]));
                    }
                    _ => {}
                }
            }
            rng.shuffle(&mut tokens);
            if rng.u8(..4) == 0 {
                assert_eq!(ticket.abort(&driver).unwrap(), Aborted::Aborted);
                continue;
            }
            match ticket.commit(&driver, tokens, &StagedCommit::default()) {
                Ok(_) => {}
                // An append of no token changes nothing, and is refused.
                Err(e) => panic!("seed {seed}, job {n}: {e}"),
            }
            for path in paths {
                let of_path = parts.remove(path).unwrap_or_default();
                if mode == StageMode::Overwrite || !of_path.is_empty() {
                    let before = model.get(path).cloned().unwrap_or_default();
                    model.insert(path, expected(mode, *path == "k", &before, &of_path));
                }
            }
            for store in [&driver, &other] {
                store.refresh().unwrap();
                for (path, rows) in &model {
                    is(store, path, rows).unwrap_or_else(|e| panic!("seed {seed}, job {n}, {mode:?}: {e}"));
                }
            }
        }
        settled(&driver, &bucket).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    }
}

/// The driver dies before, or loses the answer of, each of its requests in turn: repeated by another, the commit is done once.
// faults: crash, lost answer x write
#[test]
fn a_commit_cut_off_at_any_request_is_done_once_when_it_is_repeated() {
    for fault in [BucketFault::Killed, BucketFault::Lost, BucketFault::Refused, BucketFault::Late(2)] {
        for at in 0.. {
            let (bucket, clock) = (SimBucket::new(), clock());
            let other = open(&bucket, &clock).unwrap();
            keyed(&other, "k");
            other.table("k").upsert(batch(&numbered(3, 3)), &Default::default()).unwrap();
            let ticket = begin(&other, &["k", "t"], &job(StageMode::Append, "once")).unwrap();
            let worker = worker(&bucket, &clock, at);
            let tokens = vec![
                stage(&worker, &ticket, "k", &numbered(10, 5), (0, 0)).unwrap(),
                stage(&worker, &ticket, "t", &numbered(0, 5), (0, 1)).unwrap(),
            ];
            let client = bucket.client();
            let driver = open(&client, &clock).unwrap();
            let (mut request, struck) = (0, Arc::new(std::sync::atomic::AtomicBool::new(false)));
            let (told, of_puts) = (struck.clone(), matches!(fault, BucketFault::Late(_)));
            client.plan(move |op, _| {
                if of_puts && !matches!(op, BucketOp::Put | BucketOp::PutIf) {
                    return None;
                }
                request += 1;
                let hit = request - 1 == at;
                told.fetch_or(hit, std::sync::atomic::Ordering::SeqCst);
                hit.then_some(fault)
            });
            let first = ticket.commit(&driver, tokens.clone(), &StagedCommit::default());
            client.heal();
            let place = format!("{fault:?} at request {at}");
            let fresh = open(&bucket.client(), &clock).unwrap();
            let report: StagedReport =
                ticket.commit(&fresh, tokens, &StagedCommit::default()).unwrap_or_else(|e| panic!("{place}: {e}"));
            assert!(first.is_err() || first.as_ref().unwrap() == &report, "{place}: {first:?}, then {report:?}");
            let rows: Vec<Row> = numbered(3, 3).into_iter().chain(numbered(10, 5)).collect();
            is(&fresh, "k", &rows).unwrap_or_else(|e| panic!("{place}: {e}"));
            is(&fresh, "t", &numbered(0, 5)).unwrap_or_else(|e| panic!("{place}: {e}"));
            drop(driver);
            settled(&fresh, &bucket).unwrap_or_else(|e| panic!("{place}: {e}"));
            if !struck.load(std::sync::atomic::Ordering::SeqCst) {
                assert!(at > 0, "no request was struck");
                break;
            }
        }
    }
}

#[test]
fn what_the_job_did_not_expect_is_a_conflict() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let driver = open(&bucket, &clock).unwrap();
    let worker = worker(&bucket, &clock, 1);
    driver.write("t", batch(&numbered(0, 5)), &Default::default()).unwrap();
    keyed(&driver, "k");
    let attempt = |change: &dyn Fn(), expected: &[(&str, u64)]| {
        let ticket = begin(&driver, &["t", "k"], &StageOptions::default()).unwrap();
        let token = stage(&worker, &ticket, "t", &numbered(5, 5), (0, 0)).unwrap();
        let other = stage(&worker, &ticket, "k", &numbered(900, 5), (0, 0)).unwrap();
        change();
        let expected = expected.iter().map(|(path, version)| ((*path).to_owned(), Version(*version))).collect();
        let committed = ticket.commit(&driver, vec![token, other], &StagedCommit { expected, ..Default::default() });
        let _ = ticket.abort(&driver).unwrap();
        committed.map_err(|e| (e.kind(), e.to_string()))
    };
    let newest = |path: &str| driver.table(path).stat().unwrap().versions;
    let conflict = |answer: Result<StagedReport, (ErrorKind, String)>, what: &str| {
        let (kind, message) = answer.unwrap_err();
        assert!(kind == ErrorKind::Conflict && message.contains(what), "{kind:?}: {message}");
    };
    conflict(attempt(&|| {}, &[("t", 7)]), "version 7 is expected");
    let more = || drop(driver.append("t", batch(&numbered(70, 1)), &Default::default()).unwrap());
    conflict(attempt(&more, &[("t", newest("t") - 1)]), "is expected");
    let row = || drop(driver.table("k").upsert(batch(&numbered(1, 1)), &Default::default()).unwrap());
    conflict(attempt(&row, &[("k", 0)]), "written by key since");
    let again = || {
        driver.drop("t").unwrap();
        driver.write("t", batch(&numbered(0, 5)), &Default::default()).unwrap();
    };
    conflict(attempt(&again, &[]), "created again");
    let renamed = || {
        let other = batch(&numbered(0, 2));
        let columns = other.columns().iter().cloned().zip(["id", "w"]).map(|(column, name)| (name, column));
        let other = drumlin::arrow::array::RecordBatch::try_from_iter_with_nullable(
            columns.map(|(name, column)| (name, column, true)),
        );
        driver.write("t", other.unwrap(), &Default::default()).unwrap();
    };
    conflict(attempt(&renamed, &[]), "the schema or the constraints of 't' have changed");
    driver.write("t", batch(&numbered(0, 5)), &Default::default()).unwrap();
    driver.checkpoint(&Default::default()).unwrap();
    let version = driver.table("t").versions().unwrap().last().unwrap().version.0;
    attempt(&|| {}, &[("t", version)]).unwrap();
    is(&driver, "t", &numbered(0, 10)).unwrap();
    // A key that exists by the time of the commit.
    let present = || drop(driver.table("k").upsert(batch(&numbered(902, 1)), &Default::default()).unwrap());
    let (kind, message) = attempt(&present, &[]).unwrap_err();
    assert!(kind == ErrorKind::AlreadyExists, "{kind:?}: {message}");
    is(&driver, "t", &numbered(0, 10)).unwrap();
}

#[test]
fn tokens_that_do_not_belong_together_are_refused() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let driver = open(&bucket, &clock).unwrap();
    let worker = worker(&bucket, &clock, 1);
    let refused = |answer: drumlin::Result<StagedReport>, kind: ErrorKind, what: &str| {
        let e = answer.unwrap_err();
        assert!(e.kind() == kind && e.to_string().contains(what), "{e}");
    };
    let [one, two] = [0, 1].map(|_| begin(&driver, &["t"], &StageOptions::default()).unwrap());
    let a = stage(&worker, &one, "t", &numbered(0, 5), (0, 0)).unwrap();
    let b = stage(&worker, &two, "t", &numbered(5, 5), (1, 0)).unwrap();
    let plain = StagedCommit::default;
    refused(one.commit(&driver, vec![a.clone(), a.clone()], &plain()), ErrorKind::InvalidArgument, "given twice");
    refused(one.commit(&driver, vec![b.clone()], &plain()), ErrorKind::InvalidArgument, "belongs to the job");
    refused(Token::commit(&driver, Vec::new(), &plain()), ErrorKind::InvalidArgument, "no tokens");
    let e = worker.write(&one, "u", batch(&numbered(0, 1)).into(), None, &Task::default()).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("'t'"), "{e}");
    let other = open(&SimBucket::new(), &clock).unwrap();
    begin(&other, &["t"], &StageOptions::default()).unwrap();
    refused(Token::commit(&other, vec![a.clone()], &plain()), ErrorKind::InvalidArgument, "another store");
    // Of several jobs, as one: in the order that their parts say, done once.
    let both = Token::commit(&driver, vec![b.clone(), a.clone()], &plain()).unwrap();
    assert_eq!(Token::commit(&driver, vec![a.clone(), b.clone()], &plain()).unwrap(), both);
    is(&driver, "t", &numbered(0, 10)).unwrap();
    // Without parts, in the order in which they are given.
    let ticket = begin(&driver, &["u"], &StageOptions::default()).unwrap();
    let write = |n: i64| worker.write(&ticket, "u", batch(&numbered(n, 1)).into(), None, &Task::default()).unwrap();
    let tokens = vec![write(7), write(2), write(4)];
    ticket.commit(&driver, tokens, &plain()).unwrap();
    is(&driver, "u", &[numbered(7, 1), numbered(2, 1), numbered(4, 1)].concat()).unwrap();
    assert_eq!(Token::abort(&driver, std::slice::from_ref(&a)).unwrap(), Aborted::Committed);
    // A block that was lost.
    let ticket = begin(&driver, &["t"], &StageOptions::default()).unwrap();
    let token = stage(&worker, &ticket, "t", &numbered(0, 5), (0, 0)).unwrap();
    let staged = |name: &str| {
        name.starts_with(&format!("blocks/{}/", driver.reclaim(&Default::default()).unwrap().holds[0].hold))
    };
    let (name, _) = bucket.objects().into_iter().find(|(name, _)| staged(name)).unwrap();
    bucket.overwrite(&name, vec![0; 10]);
    refused(ticket.commit(&driver, vec![token], &plain()), ErrorKind::Corrupt, "nothing was done");
    // Bytes that were damaged on their way.
    let mut bytes = a.to_bytes().unwrap();
    for at in 0..bytes.len() {
        bytes[at] ^= 4;
        assert!([ErrorKind::Corrupt, ErrorKind::Unsupported].contains(&Token::from_bytes(&bytes).unwrap_err().kind()));
        bytes[at] ^= 4;
    }
}

#[test]
fn a_worker_whose_time_is_over_writes_nothing() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let driver = open(&bucket, &clock).unwrap();
    let options = StageOptions { work_micros: 1_000_000, ..StageOptions::default() };
    let ticket = begin(&driver, &["t"], &options).unwrap();
    clock.advance(2_000_000);
    let before = bucket.requests();
    let late = stage(&worker(&bucket, &clock, 1), &ticket, "t", &numbered(0, 5), (0, 0)).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::SnapshotExpired);
    assert_eq!(bucket.requests(), before);
}

#[test]
fn attempts_write_under_names_of_their_own() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let driver = open(&bucket, &clock).unwrap();
    let ticket = begin(&driver, &["t"], &StageOptions::default()).unwrap();
    let tokens: Vec<Token> = (0..50)
        .map(|n| stage(&worker(&bucket, &clock, n), &ticket, "t", &numbered(n as i64, 1), (n, 0)).unwrap())
        .collect();
    let blocks = bucket.objects().into_iter().filter(|(name, _)| name.starts_with("blocks/")).count();
    assert_eq!(blocks, 50);
    ticket.commit(&driver, tokens, &StagedCommit::default()).unwrap();
    is(&driver, "t", &numbered(0, 50)).unwrap();
}

#[test]
fn an_abort_knows_what_was_committed_under_another_name() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let driver = open(&bucket, &clock).unwrap();
    let worker = worker(&bucket, &clock, 1);
    let [one, two] = [0, 1].map(|_| begin(&driver, &["t"], &job(StageMode::Append, "same")).unwrap());
    let [a, b] = [&one, &two].map(|ticket| stage(&worker, ticket, "t", &numbered(0, 5), (0, 0)).unwrap());
    let named = StagedCommit { job: Some("nightly".into()), ..Default::default() };
    one.commit(&driver, vec![a.clone()], &named).unwrap();
    assert_eq!(one.abort(&driver).unwrap(), Aborted::Committed);
    assert_eq!(Token::abort(&driver, &[a]).unwrap(), Aborted::Committed);
    assert_eq!(two.abort(&driver).unwrap(), Aborted::Aborted);
    assert_eq!(Token::abort(&driver, &[b]).unwrap(), Aborted::Aborted);
    // Repeated without the name, it is the same commit still.
    let ticket = begin(&driver, &["n"], &StageOptions::default()).unwrap();
    let token = stage(&worker, &ticket, "n", &numbered(0, 5), (0, 0)).unwrap();
    let first =
        ticket.commit(&driver, vec![token.clone()], &StagedCommit { job: Some("named".into()), ..Default::default() });
    let again = ticket.commit(&driver, vec![token.clone()], &StagedCommit::default()).unwrap();
    assert_eq!((again.seq, &again.versions), (first.as_ref().unwrap().seq, &first.as_ref().unwrap().versions));
    let other = ticket.commit(&driver, Vec::new(), &StagedCommit::default()).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::AlreadyExists);
    // Nothing staged: a new table is made, and an expected version looked at.
    let ticket = begin(&driver, &["made", "n"], &StageOptions::default()).unwrap();
    let expected =
        |version: u64| StagedCommit { expected: [("n".into(), Version(version))].into(), ..Default::default() };
    assert_eq!(ticket.commit(&driver, Vec::new(), &expected(7)).unwrap_err().kind(), ErrorKind::Conflict);
    ticket.commit(&driver, Vec::new(), &expected(0)).unwrap();
    is(&driver, "made", &[]).unwrap();
    // Two overwrites with nothing are two commits.
    let empty = |name: &str| {
        let ticket =
            begin(&driver, &["t"], &StageOptions { mode: StageMode::Overwrite, ..Default::default() }).unwrap();
        ticket.commit(&driver, Vec::new(), &StagedCommit { job: Some(name.into()), ..Default::default() })
    };
    empty("clear").unwrap();
    is(&driver, "t", &[]).unwrap();
    driver.append("t", batch(&numbered(0, 5)), &Default::default()).unwrap();
    assert_eq!(empty("clear").unwrap_err().kind(), ErrorKind::AlreadyExists);
    is(&driver, "t", &numbered(0, 5)).unwrap();
    empty("clear again").unwrap();
    is(&driver, "t", &[]).unwrap();
}

/// Rows that replace all others bring columns as they were known when the job began: no others, and past no unique index.
#[test]
fn columns_that_have_become_others_end_a_job_that_replaces_all_rows() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let driver = open(&bucket, &clock).unwrap();
    let rename = |from: &str, to: &str| {
        let alter = Alter::Rename(vec![(from.into(), to.into())]);
        driver.table("t").alter(&alter, &Default::default()).unwrap()
    };
    driver.write("t", batch(&numbered(0, 5)), &Default::default()).unwrap();
    rename("name", "title");
    rename("title", "name");
    rename("name", "title");
    let field = batch(&[]).schema().field(1).clone();
    let add = Alter::Add(vec![NewColumn { field, fill: Fill::Null }]);
    driver.table("t").alter(&add, &Default::default()).unwrap();
    let ticket = begin(&driver, &["t"], &job(StageMode::Overwrite, "a")).unwrap();
    let twice = [(1, Some("a".into())), (2, Some("a".into()))];
    let token = stage(&worker(&bucket, &clock, 1), &ticket, "t", &twice, (0, 0)).unwrap();
    // The name that was staged belongs to another column now, which takes no value twice.
    driver.table("t").alter(&Alter::Drop(vec!["name".into()]), &Default::default()).unwrap();
    rename("title", "name");
    driver.table("t").delete("name is null", &Default::default()).unwrap();
    let unique = IndexOptions { unique: true, ..Default::default() };
    driver.table("t").create_index("u", &[Expression::parse("name").unwrap()], &unique).unwrap();
    let refused = ticket.commit(&driver, vec![token], &StagedCommit::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    let ticket = begin(&driver, &["t"], &job(StageMode::Overwrite, "b")).unwrap();
    let token = stage(&worker(&bucket, &clock, 2), &ticket, "t", &twice, (0, 0)).unwrap();
    let refused = ticket.commit(&driver, vec![token], &StagedCommit::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AlreadyExists, "{refused}");
    assert_eq!(driver.verify(&Default::default()).unwrap().faults, []);
}

/// Tokens that somebody has changed, with right checksums: what is taken is committed soundly, and the store opens afterwards.
// faults: hostile bytes x write
#[test]
fn forged_tokens_do_not_break_the_store() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let driver = open(&bucket, &clock).unwrap();
    keyed(&driver, "k");
    driver
        .write(
            "s",
            batch(&numbered(0, 5)),
            &drumlin::store::WriteOptions { sort: Some(vec!["id".into()]), ..Default::default() },
        )
        .unwrap();
    let worker = worker(&bucket, &clock, 1);
    let mut taken = 0;
    for path in ["k", "s", "new"] {
        let ticket = begin(&driver, &[path], &StageOptions::default()).unwrap();
        let token = stage(&worker, &ticket, path, &numbered(1000, 40), (0, 0)).unwrap();
        let good = token.to_bytes().unwrap();
        let body = good.len() - 4;
        let mut rng = fastrand::Rng::with_seed(3);
        for at in 0..body * 3 {
            let mut forged = good.clone();
            match at % 3 {
                0 => forged[at / 3] ^= 1 << rng.u8(..8),
                1 => forged[at / 3] = rng.u8(..4),
                _ => forged.swap(at / 3, rng.usize(..body)),
            }
            let sum = drumlin::base::checksum(&forged[..body]).to_le_bytes();
            forged[body..].copy_from_slice(&sum);
            let Ok(forged) = Token::from_bytes(&forged) else { continue };
            let committed = Token::commit(&driver, vec![forged], &StagedCommit::default());
            taken += usize::from(committed.is_ok());
            if committed.is_ok() {
                open(&bucket.client(), &clock).unwrap_or_else(|e| panic!("{path}, byte {}: {e}", at / 3));
                break;
            }
        }
    }
    let fresh = open(&bucket.client(), &clock).unwrap();
    fresh.checkpoint(&Default::default()).unwrap();
    open(&bucket.client(), &clock).unwrap();
    assert!(taken > 0, "every change was refused: nothing is shown");
}
