//! Several processes on one store in a bucket: strictly one order, whatever the network does.

use drumlin::catalog::Payload;
use drumlin::storage::{BucketFault, BucketOp, SimBucket, Storage};
use drumlin::store::{AsOf, Frame, Options, ReclaimOptions};
use drumlin::{ErrorKind, Result, Store, Tables};

use crate::faults::crash::{time_of, workload};
use crate::models::met::Meeting;
use crate::models::model::{Model, Trash};
use crate::models::pairs::Pairs;
use crate::models::random::{Op, apply, compare, compare_trash, draw, run};
use crate::models::wide::{self, Mirror, Noted};
use crate::processes::shared_faults;
use crate::processes::shared_support::{clock, compare_hidden, in_cells, open, open_as, settled};
use crate::seeds;
use crate::support::{batch, env, numbered, read};

/// Checks that the bucket holds nothing that the store does not refer to, and that nothing that it refers to is
/// damaged.
fn no_orphans(store: &Store, bucket: &SimBucket) {
    settled(store, bucket).unwrap();
}

#[test]
fn what_one_process_commits_another_sees() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let a = open(&bucket, &clock).unwrap();
    let b = open(&bucket.client(), &clock).unwrap();
    a.write("t", batch(&numbered(0, 10)), &Default::default()).unwrap();
    assert_eq!(read(&b, "t", AsOf::Newest).unwrap_err().kind(), ErrorKind::NotFound);
    b.refresh().unwrap();
    assert_eq!(read(&b, "t", AsOf::Newest).unwrap(), numbered(0, 10));
    // A writer need not refresh first.
    b.append("t", batch(&numbered(10, 5)), &Default::default()).unwrap();
    a.append("t", batch(&numbered(15, 5)), &Default::default()).unwrap();
    assert_eq!(read(&a, "t", AsOf::Newest).unwrap(), numbered(0, 20));
    // Nor need a process that refreshes before each read.
    let fresh = open_as(&bucket.client(), &clock, Options { fresh: true, ..Options::default() }).unwrap();
    a.tree().put("n", Payload::from(7)).unwrap();
    assert_eq!(fresh.tree().get("n").unwrap(), Some(Payload::from(7)));
    assert_eq!(a.tree().create("n", Payload::from(8)).unwrap_err().kind(), ErrorKind::AlreadyExists);
    b.drop("t").unwrap();
    assert_eq!(a.append("t", batch(&numbered(0, 1)), &Default::default()).unwrap_err().kind(), ErrorKind::NotFound);
    a.write("t", batch(&numbered(0, 1)), &Default::default()).unwrap();
    assert_eq!(read(&fresh, "t", AsOf::Newest).unwrap(), numbered(0, 1));
    no_orphans(&a, &bucket);
}

// faults: concurrent change x transaction, write, checkpoint, reclaim
#[test]
fn processes_that_count_together_lose_nothing() {
    const PROCESSES: usize = 4;
    const EACH: i64 = 60;
    let (bucket, clock) = (SimBucket::new(), clock());
    open(&bucket, &clock).unwrap().tree().put("count", Payload::from(0)).unwrap();
    let seen: Vec<i64> = std::thread::scope(|scope| {
        let process = |n: usize| {
            let store = open(&bucket.client(), &clock).unwrap();
            let mut seen = Vec::new();
            for at in 0..EACH {
                seen.push(
                    store
                        .transact(|tx| -> Result<i64> {
                            let now = tx
                                .tree()
                                .get("count")?
                                .and_then(|count| count.to_json())
                                .and_then(|count| count.as_i64())
                                .unwrap();
                            tx.tree().put("count", Payload::from(now + 1))?;
                            Ok(now)
                        })
                        .unwrap(),
                );
                if at % 16 == n as i64 {
                    store.write(&format!("t/{n}"), batch(&numbered(at, 3)), &Default::default()).unwrap();
                    store.checkpoint(&Default::default()).unwrap();
                    store.reclaim(&Default::default()).unwrap();
                }
            }
            seen
        };
        let running: Vec<_> = (0..PROCESSES).map(|n| scope.spawn(move || process(n))).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut sorted = seen.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..PROCESSES as i64 * EACH).collect::<Vec<_>>(), "each number was read by one");
    let last = open(&bucket.client(), &clock).unwrap();
    assert_eq!(last.tree().get("count").unwrap(), Some(Payload::from(PROCESSES as i64 * EACH)));
    no_orphans(&last, &bucket);
}

/// Random operations by random processes, each of which may be slow to learn of the others; now and then something goes
/// wrong. Returns how many operations failed. With `all`, all operations are used, and an observer reads times and a feed.
pub fn episode(seed: u64, steps: usize, faults: bool, all: bool) -> usize {
    let mut rng = fastrand::Rng::with_seed(seed);
    let (bucket, clock) = (SimBucket::new(), clock());
    let mut clients: Vec<SimBucket> = (0..3).map(|_| bucket.client()).collect();
    let mut stores: Vec<Store> = clients.iter().map(|client| open(client, &clock).unwrap()).collect();
    let (mut model, mut trash): (Model, Trash) = Default::default();
    let (mut failed, mut pairs) = (0, Pairs::new(2));
    let (mut noted, mut mirror) = (Noted::default(), None);
    if all {
        mirror = Some(Mirror::new(open(&bucket.client(), &clock).unwrap()).unwrap());
    }
    for step in 0..steps {
        clock.advance(1000);
        model.now = drumlin::base::Clock::now(&*clock).0;
        let op = if all { wide::draw(&mut rng, &model) } else { draw(&mut rng, &model, false) };
        let before = (model.clone(), trash.clone());
        let who = rng.usize(..stores.len());
        let meeting = Meeting::of(&stores[who], &model, &op);
        let succeeds = apply(&mut model, &mut trash, &op);
        if faults {
            let mut chance = fastrand::Rng::with_seed(seed * 1000 + step as u64);
            clients[who].plan(move |op, name| match (op, chance.u8(..40)) {
                (_, 0) => Some(BucketFault::Refused),
                (BucketOp::Put | BucketOp::PutIf | BucketOp::Delete, 1) => Some(BucketFault::Lost),
                (BucketOp::PutIf, 2) => Some(BucketFault::Late(chance.u64(1..12))),
                (BucketOp::Delete | BucketOp::List, 3..=10) if !name.starts_with("cell-") => {
                    Some(BucketFault::Partly(2))
                }
                (_, 11) if chance.u8(..4) == 0 => Some(BucketFault::Killed),
                (BucketOp::PutIf, 12..=14) if all => Some(BucketFault::Throttled),
                _ => None,
            });
        }
        let place = || format!("seed {seed}, step {step}, process {who}: {op:?}");
        let client = clients[who].clone();
        let answer = run(&mut stores[who], || open(&client, &clock), &op);
        clients[who].heal();
        let died = clients[who].is_dead();
        if died {
            clients[who] = bucket.client();
            stores[who] = open(&clients[who], &clock).unwrap_or_else(|e| panic!("{}: {e}", place()));
        } else if stores[who].seq().is_err() {
            // It was closed, but not opened again.
            stores[who] = open(&clients[who], &clock).unwrap_or_else(|e| panic!("{}: {e}", place()));
        }
        let reader = rng.usize(..stores.len());
        meeting.into_iter().for_each(|meeting| meeting.note(&mut pairs, answer.is_ok()));
        match answer {
            Ok(()) if succeeds => {}
            Err(e) if !succeeds && !faults => {
                assert!(!matches!(e.kind(), ErrorKind::InDoubt | ErrorKind::Corrupt), "{}: {e}", place());
                (model, trash) = before;
                continue;
            }
            Ok(()) => panic!("{}: should have failed, of {:?}", place(), before.0.evolving),
            Err(e) => {
                assert!(faults, "{}: {e}", place());
                failed += 1;
                let kinds = [ErrorKind::Corrupt, ErrorKind::SnapshotExpired];
                assert!(!kinds.contains(&e.kind()), "{}: {e}", place());
                // Late requests arrive while others continue.
                for _ in 0..12 {
                    let _ = bucket.get("root");
                }
                stores[reader].refresh().unwrap();
                let is = |(model, trash): &(Model, Trash)| {
                    compare(&stores[reader], model)
                        .and_then(|()| compare_trash(&stores[reader], model, trash))
                        .and_then(|()| compare_hidden(&bucket, &clock, model, trash))
                };
                let undone = e.kind() == ErrorKind::Unavailable && !died && !op.is_composite();
                let begun = (op.begun(&before.0), before.1.clone());
                match is(&before) {
                    Err(_) if is(&begun).is_ok() && is(&(model.clone(), trash.clone())).is_err() => {
                        (model, trash) = begun
                    }
                    Err(other) => {
                        assert!(succeeds && !undone, "{}: {e}: {other}", place());
                        let after = (model.clone(), trash.clone());
                        is(&after).unwrap_or_else(|e| panic!("{}: neither before ({other}) nor after ({e})", place()));
                    }
                    // If both match, they differ in something that is only compared once it exists: then it was done.
                    Ok(()) if succeeds && is(&(model.clone(), trash.clone())).is_ok() => {}
                    Ok(()) => (model, trash) = before,
                }
            }
        }
        stores[reader].refresh().unwrap();
        compare(&stores[reader], &model).unwrap_or_else(|e| panic!("{}: read by process {reader}: {e}", place()));
        if let Some(mirror) = &mut mirror {
            noted.note(drumlin::base::Clock::now(&*clock), &model, &op);
            compare_trash(&stores[reader], &model, &trash).unwrap_or_else(|e| panic!("{}: {e}", place()));
            noted.check(&stores[reader], &mut rng).unwrap_or_else(|e| panic!("{}: process {reader}: {e}", place()));
            mirror.check(&model).unwrap_or_else(|e| panic!("{}: {e}", place()));
        }
        if all && step % 4 == 0 {
            compare_hidden(&bucket, &clock, &model, &trash).unwrap_or_else(|e| panic!("{}: {e}", place()));
        }
        if all && rng.u8(..30) == 0 && !in_cells() {
            let copy = std::sync::Arc::new(bucket.client());
            wide::salvaged(copy, &clock, &model).unwrap_or_else(|e| panic!("{}: {e}", place()));
        }
    }
    pairs.keep(seed);
    let last = open(&bucket.client(), &clock).unwrap();
    compare(&last, &model).unwrap_or_else(|e| panic!("seed {seed}: opened at the end: {e}"));
    no_orphans(&last, &bucket);
    compare(&last, &model).unwrap_or_else(|e| panic!("seed {seed}: after the reclaim: {e}"));
    failed
}

// faults: concurrent change x random operations, verify
#[test]
fn random_operations_of_three_processes_are_in_one_order() {
    seeds::each(0..30, 3, |seed| assert_eq!(episode(seed, 60, false, false), 0));
}

// faults: reclaim beside a writer, concurrent change x random operations, feed, verify
#[test]
fn all_operations_of_three_processes_are_in_one_order() {
    seeds::each(200..210, 10, |seed| assert_eq!(episode(seed, 80, false, true), 0));
}

// faults: lost answer x random operations, verify
// faults: stale list x checkpoint, reclaim, verify
// faults: partial deletion x write, upsert, drop, checkpoint, reclaim
#[test]
fn random_operations_over_a_network_that_fails_are_done_once_or_not() {
    let mut failed = 0;
    seeds::each(100..140, 4, |seed| failed += episode(seed, 60, true, false));
    assert!(failed > 100 || seeds::given(), "only {failed} operations failed");
}

// faults: lost answer x random operations, feed, verify
// faults: stale list x checkpoint, reclaim, verify
// faults: partial deletion x write, upsert, drop, transaction, checkpoint, reclaim
// faults: throttling x write, upsert, delete, drop, undrop, snapshot, checkpoint, reclaim, nodes, transaction
#[test]
fn all_operations_over_a_network_that_fails_are_done_once_or_not() {
    let mut failed = 0;
    seeds::each(300..310, 10, |seed| failed += episode(seed, 80, true, true));
    assert!(failed > 50 || seeds::given(), "only {failed} operations failed");
}

// faults: paused process x write, checkpoint, nodes, read
#[test]
fn a_process_that_slept_through_commits_cuts_and_deletions_goes_on() {
    shared_faults::sleepers().unwrap();
    shared_faults::sleeper_in_a_folder().unwrap();
}

// faults: crash x checkpoint
#[test]
fn a_process_that_dies_while_it_cuts_the_log_leaves_it_whole() {
    shared_faults::killed_while_cutting().unwrap();
}

// faults: paused process, reclaim beside a writer x write
#[test]
fn a_process_taken_for_dead_does_not_refer_to_what_was_swept() {
    shared_faults::ended_session().unwrap();
}

// faults: lost answer x nodes
#[test]
fn a_put_without_an_answer_is_done_once_or_in_doubt() {
    shared_faults::lost_answers().unwrap();
}

// faults: weak bucket x open
#[test]
fn a_bucket_that_does_not_keep_its_promises_is_refused() {
    shared_faults::lying_bucket().unwrap();
}

#[test]
fn the_doctor_compares_clocks_and_tells_of_versions() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let examine = || drumlin::Diagnosis::of_bucket(std::sync::Arc::new(bucket.clone()), &env(&clock, 1, 2)).unwrap();
    assert_eq!((examine().clock_micros, examine().keeps_replaced), (None, None));
    for keeps in [true, false] {
        bucket.set_keeps_replaced(keeps);
        let diagnosis = examine();
        assert_eq!((diagnosis.keeps_replaced, diagnosis.is_fit()), (Some(keeps), true));
        assert_eq!(diagnosis.to_string().contains("versions: the bucket keeps"), keeps);
    }
    let now = 1_000_000;
    for (bucket_says, ahead) in
        [(now, 0), (now - 999_999, 0), (now - 61_000_000, 60_000_001), (now + 3_000_000, -3_000_000)]
    {
        bucket.set_time(drumlin::base::Timestamp(bucket_says));
        let diagnosis = examine();
        assert_eq!(diagnosis.clock_micros, Some(ahead), "{bucket_says}");
        assert!(diagnosis.is_fit(), "the order of commits rests on no clock");
        let told = diagnosis.to_string();
        let expected = match ahead {
            0 => "clock: the bucket's, to the second",
            1.. => "clock: 60 s ahead of the bucket's; times",
            _ => "clock: 3 s behind the bucket's; times",
        };
        assert!(told.contains(expected), "{told}");
    }
    assert!(bucket.objects().is_empty());
}

// faults: lost answer x nodes
#[test]
fn out_of_reach_is_reported_and_settled_at_the_next_contact() {
    shared_faults::out_of_reach().unwrap();
}

// faults: wrong clock x write, reclaim, nodes
#[test]
fn clocks_decide_nothing() {
    shared_faults::clocks_that_disagree().unwrap();
}

#[test]
fn who_only_reads_writes_nothing() {
    shared_faults::reader_only().unwrap();
}

/// Writes a batch of `tables` tables with `versions` versions each.
fn many_tables(store: &Store, tables: usize, versions: usize) {
    for _ in 0..versions {
        let frames = (0..tables).map(|n| (format!("many/{n}"), batch(&numbered(n as i64, 20)).into())).collect();
        store.write_many(frames, &Default::default()).unwrap();
    }
}

#[test]
fn a_thousand_tables_cost_a_handful_of_requests() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let store = open(&bucket, &clock).unwrap();
    store.write("warm", batch(&numbered(0, 3)), &Default::default()).unwrap();
    let before = bucket.requests();
    many_tables(&store, 1000, 1);
    let written = bucket.requests();
    assert!(written.puts - before.puts <= 20, "{} puts", written.puts - before.puts);
    many_tables(&store, 1000, 3);
    let full = bucket.requests();
    let (dropped, reclaimed) =
        store.drop_and_reclaim("many/**", Default::default(), &ReclaimOptions::default()).unwrap();
    let after = bucket.requests();
    assert_eq!((dropped.paths.len(), dropped.versions), (1000, 4000));
    assert!(reclaimed.blocks > 0 && reclaimed.failures.is_empty(), "{reclaimed}");
    assert_eq!(after.puts - full.puts, 2, "one commit that unlinks and condemns, one that crosses off");
    assert_eq!(after.deletes - full.deletes, reclaimed.blocks.div_ceil(1000));
    assert_eq!(after.lists, full.lists);
    assert!(store.trash().unwrap().is_empty());
    no_orphans(&store, &bucket);
}

/// A checkpoint reads the small row groups of many tables with few requests.
#[test]
fn a_vacuum_of_many_small_tables_costs_few_requests() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let store = open(&bucket, &clock).unwrap();
    many_tables(&store, 500, 1);
    for n in 1..3 {
        let frames = (0..500).map(|at| (format!("many/{at}"), batch(&numbered(n * 20, 20)).into())).collect();
        store.append_many(frames, &Default::default()).unwrap();
    }
    drop(store);
    let store = open(&bucket.client(), &clock).unwrap();
    let before = bucket.requests();
    let report = store.checkpoint(&Default::default()).unwrap();
    let after = bucket.requests();
    assert_eq!((report.tables, report.groups_after), (500, 500), "{report}");
    assert!(after.gets - before.gets <= 40, "{} gets", after.gets - before.gets);
    no_orphans(&store, &bucket);
}

#[test]
fn opening_and_reading_cost_few_round_trips() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let store = open(&bucket, &clock).unwrap();
    many_tables(&store, 300, 1);
    store.checkpoint(&Default::default()).unwrap();
    store.tree().put("n", Payload::from(1)).unwrap();
    let before = bucket.requests();
    let fresh = open(&bucket.client(), &clock).unwrap();
    let opened = bucket.requests();
    assert!(opened.gets - before.gets <= 4, "{} gets", opened.gets - before.gets);
    assert_eq!((opened.puts, opened.lists), (before.puts, before.lists + 2), "what lies beside the root");
    read(&fresh, "many/7", AsOf::Newest).unwrap();
    assert_eq!(bucket.requests().gets - opened.gets, 1, "one for the table's row group");
    let once = bucket.requests();
    store.tree().put("n", Payload::from(2)).unwrap();
    assert_eq!(bucket.requests().puts - once.puts, 1);
    fresh.refresh().unwrap();
    assert_eq!(bucket.requests().gets - once.gets, 1, "one look at the root");
}

// faults: partial deletion x drop, reclaim
#[test]
fn deletions_that_fail_are_told_and_done_later() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let store = open(&bucket, &clock).unwrap();
    for n in 0..20 {
        store.write(&format!("t/{n}"), batch(&numbered(n, 30)), &Default::default()).unwrap();
    }
    store.drop("t/**").unwrap();
    bucket.plan(|op, _| (op == BucketOp::Delete).then_some(BucketFault::Partly(2)));
    let first = store.reclaim(&Default::default()).unwrap();
    assert_eq!((first.blocks, first.failures.len()), (10, 10));
    let condemned = store.stat().unwrap().condemned;
    assert_eq!(condemned, 10);
    bucket.heal();
    let second = store.reclaim(&Default::default()).unwrap();
    assert_eq!((second.blocks, second.failures.len()), (10, 0));
    no_orphans(&store, &bucket);
}

// faults: partial deletion x drop, reclaim
#[test]
fn a_reclaim_of_which_a_tenth_fails_goes_on_where_it_was() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let store = open(&bucket, &clock).unwrap();
    const TABLES: u64 = 200;
    for n in 0..TABLES as i64 {
        store.write(&format!("t/{n}"), batch(&numbered(n, 5)), &Default::default()).unwrap();
    }
    store.write("kept", batch(&numbered(0, 9)), &Default::default()).unwrap();
    bucket.plan(|op, _| (op == BucketOp::Delete).then_some(BucketFault::Partly(10)));
    let now = ReclaimOptions::default();
    let (dropped, mut report) = store.drop_and_reclaim("t/*", Default::default(), &now).unwrap();
    assert_eq!(dropped.paths.len() as u64, TABLES);
    let mut deleted = 0;
    for left in [20, 2] {
        deleted += report.blocks;
        assert_eq!((report.failures.len() as u64, TABLES - deleted), (left, left));
        assert!(report.failures.iter().all(|(name, why)| name.starts_with("blocks/") && !why.is_empty()), "{report}");
        assert_eq!(store.stat().unwrap().condemned, left, "what failed stays on the list");
        report = store.reclaim(&now).unwrap();
    }
    // Of two names, none is the tenth.
    assert_eq!((report.blocks, report.failures.len()), (2, 0));
    bucket.heal();
    assert_eq!(store.stat().unwrap().condemned, 0);
    assert_eq!(read(&store, "kept", AsOf::Newest).unwrap(), numbered(0, 9));
    no_orphans(&store, &bucket);
}

// faults: lost answer, partial deletion x write, reclaim
#[test]
fn what_was_written_for_nothing_does_not_wait_for_the_end_of_the_session() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let client = bucket.client();
    let store = open(&client, &clock).unwrap();
    store.write("t", batch(&numbered(0, 9)), &Default::default()).unwrap();
    let blocks = || bucket.objects().into_iter().filter(|(name, _)| name.starts_with("blocks/")).count();
    // Another process drops the table during the write, and what was written for it cannot be deleted.
    store.write("gone", batch(&numbered(0, 9)), &Default::default()).unwrap();
    let other = open(&bucket.client(), &clock).unwrap();
    let mut rows = Some(batch(&numbered(9, 9)));
    let frame = Frame::new(
        batch(&[]).schema(),
        std::iter::from_fn(|| {
            let rows = rows.take()?;
            other.drop("gone").unwrap();
            Some(Ok(rows))
        }),
    );
    client.plan(|op, _| (op == BucketOp::Delete).then_some(BucketFault::Refused));
    let met = store.append("gone", frame, &Default::default()).unwrap_err();
    assert_eq!((met.kind(), blocks()), (ErrorKind::Conflict, 3));
    client.heal();
    // Deletes the block that the table had.
    assert_eq!(other.reclaim(&Default::default()).unwrap().blocks, 1);
    assert_eq!(blocks(), 2);
    // A block that arrives when no process waits for it any more.
    client.plan(|op, name| (op == BucketOp::Put && name.starts_with("blocks/")).then_some(BucketFault::Late(6)));
    store.write("u", batch(&numbered(0, 9)), &Default::default()).unwrap_err();
    client.heal();
    for _ in 0..10 {
        store.refresh().unwrap();
    }
    assert_eq!(blocks(), 3, "they are there");
    client.plan(|op, _| (op == BucketOp::Delete).then_some(BucketFault::Refused));
    assert_eq!(store.reclaim(&Default::default()).unwrap().failures.len(), 2);
    client.heal();
    assert_eq!(store.reclaim(&Default::default()).unwrap().failures, []);
    assert_eq!(blocks(), 1);
    assert_eq!(read(&store, "t", AsOf::Newest).unwrap(), numbered(0, 9));
    no_orphans(&store, &bucket);
}

// faults: reclaim beside a reader x read
#[test]
fn blocks_rest_before_they_are_deleted() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let store = open(&bucket, &clock).unwrap();
    let reader = open(&bucket.client(), &clock).unwrap();
    store.write("t", batch(&numbered(0, 30)), &Default::default()).unwrap();
    reader.refresh().unwrap();
    store.drop("t").unwrap();
    let resting = ReclaimOptions { block_grace_micros: Some(5_000_000), ..Default::default() };
    assert_eq!(store.reclaim(&resting).unwrap().blocks, 0);
    assert_eq!(read(&reader, "t", AsOf::Newest).unwrap(), numbered(0, 30), "it has not looked since");
    clock.advance(6_000_000);
    assert_eq!(store.reclaim(&resting).unwrap().blocks, 1);
    let late = open(&bucket.client(), &clock).unwrap();
    assert_eq!(read(&late, "t", AsOf::Newest).unwrap_err().kind(), ErrorKind::NotFound);
}

/// Runs `ops` in order; returns at which one the process died, if it did, and the model before and after that one.
fn run_until_killed(client: &SimBucket, ops: &[Op]) -> Option<(usize, Model, Model)> {
    let clock = clock();
    let (mut model, mut trash): (Model, Trash) = Default::default();
    let Ok(mut store) = open(client, &clock) else { return Some((0, model.clone(), model)) };
    for (at, op) in ops.iter().enumerate() {
        model.now = time_of(at);
        clock.set(drumlin::base::Timestamp(1_000_000 + model.now));
        let before = model.clone();
        assert!(apply(&mut model, &mut trash, op));
        let answer = run(&mut store, || open(client, &clock), op);
        if client.is_dead() || answer.is_err() {
            client.kill();
            return Some((at, before, model));
        }
    }
    None
}

// faults: crash x random operations, verify
#[test]
fn a_process_killed_at_any_request_leaves_before_or_after() {
    let mut killed = 0;
    let strike = |seed: u64, killed: &mut u64| {
        let ops = workload(seed, 18);
        for after in [false, true] {
            for at in 0.. {
                let bucket = SimBucket::new();
                let client = bucket.client();
                let mut seen = 0;
                client.plan(move |op, _| {
                    seen += 1;
                    let changes = !matches!(op, BucketOp::Get | BucketOp::List);
                    match (seen - 1).cmp(&at) {
                        std::cmp::Ordering::Less => None,
                        // It is done, but without an answer: the next request is one too many.
                        std::cmp::Ordering::Equal if after && changes => Some(BucketFault::Lost),
                        _ => Some(BucketFault::Killed),
                    }
                });
                let Some((step, before, now)) = run_until_killed(&client, &ops) else { break };
                *killed += 1;
                let place = || format!("seed {seed}, request {at}, after it: {after}, at {:?}", ops[step]);
                let fresh = open(&bucket.client(), &clock()).unwrap_or_else(|e| panic!("{}: {e}", place()));
                let begun = compare(&fresh, &ops[step].begun(&before));
                if let (Err(a), Err(b), Err(_)) = (compare(&fresh, &now), compare(&fresh, &before), begun) {
                    panic!("{}: neither after ({a}) nor before ({b})", place());
                }
                settled(&fresh, &bucket).unwrap_or_else(|e| panic!("{}: {e}", place()));
                fresh.tree().put("after/crash", Payload::from(1)).unwrap();
            }
        }
    };
    seeds::each(0..4, 0, |seed| strike(seed, &mut killed));
    // From all operations.
    seeds::each(520..521, 1, |seed| strike(seed, &mut killed));
    assert!(killed > 300 || seeds::given(), "only {killed} times");
}

// faults: concurrent change x feed
#[test]
fn a_feed_tells_of_the_commits_of_all_processes_in_order() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let (a, b) = (open(&bucket, &clock).unwrap(), open(&bucket.client(), &clock).unwrap());
    a.tree().put("n", Payload::from(0)).unwrap();
    let mut feed = a.changes(a.seq().unwrap()).unwrap();
    for n in 1..9_i64 {
        let store = if n % 3 == 0 { &a } else { &b };
        store.tree().put("n", Payload::from(n)).unwrap();
    }
    a.refresh().unwrap();
    let seqs: Vec<u64> = (1..9).map(|_| feed.next(None).unwrap().unwrap().seq().0).collect();
    assert!(seqs.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{seqs:?}");
}

// faults: reclaim beside a writer x write, open
#[test]
fn an_audit_leaves_alone_what_a_process_writes_that_began_during_it() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let client = bucket.client();
    let store = open(&client, &clock).unwrap();
    store.write("t", batch(&numbered(0, 3)), &Default::default()).unwrap();
    let (other, mut begun) = (open(&bucket.client(), &clock).unwrap(), false);
    let young = other.clone();
    client.plan(move |op, _| {
        if op == BucketOp::List && !std::mem::replace(&mut begun, true) {
            young.write("young", batch(&numbered(5, 9)), &Default::default()).unwrap();
        }
        None
    });
    store.reclaim(&ReclaimOptions { audit: true, ..Default::default() }).unwrap();
    client.heal();
    let fresh = open(&bucket.client(), &clock).unwrap();
    assert_eq!(read(&fresh, "young", AsOf::Newest).unwrap(), numbered(5, 9));
    assert_eq!(store.verify(&Default::default()).unwrap().orphans, []);
    drop(other);
    no_orphans(&fresh, &bucket);
}
