//! Two processes at once: before each request of one operation, the other process runs all of its operations. What both
//! then see, and the results they got, match one order of the operations.

use std::sync::Arc;

use drumlin::base::ManualClock;
use drumlin::storage::SimBucket;
use drumlin::store::Options;
use drumlin::{ErrorKind, Store};

use crate::models::model::{Model, Trash};
use crate::models::random::{Op, apply, compare, run};
use crate::processes::shared_support::{clock, open, settled};
use crate::support::{env, numbered};

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Done,
    /// It is not possible in the current state.
    Refused,
    /// There was a conflict with others; nothing was done.
    Conflict,
}

/// Applies `op` to the model, if possible.
fn attempt(model: &mut Model, trash: &mut Trash, op: &Op) -> End {
    let table = |path: &String| model.tables.get(path);
    let possible = match op {
        Op::Append(path, _) | Op::Update(path, _) | Op::Delete(path, ..) | Op::Drop(path) => table(path).is_some(),
        Op::DeleteVersions(path, versions) => {
            table(path).is_some_and(|table| versions.iter().all(|version| table.versions.contains_key(version)))
        }
        Op::Undrop(path) => table(path).is_none(),
        _ => true,
    };
    if possible && apply(model, trash, op) { End::Done } else { End::Refused }
}

/// The initial state, part of it in the trash.
fn setting() -> Vec<Op> {
    let mut ops = Vec::new();
    for path in ["t/a", "t/b", "t/c"] {
        ops.push(Op::Write(path.into(), numbered(0, 30), false));
        ops.extend((1..4).map(|n| Op::Append(path.into(), numbered(n * 30, 20))));
    }
    ops.extend([Op::Delete("t/a".into(), 2, 0), Op::Snapshot("s0".into()), Op::Drop("t/c".into())]);
    ops
}

/// The operations of one of the processes.
fn works() -> Vec<Vec<Op>> {
    let a = || "t/a".to_owned();
    vec![
        vec![Op::Undrop("t/c".into())],
        vec![Op::Reclaim],
        vec![Op::Checkpoint],
        vec![Op::Checkpoint, Op::Reclaim],
        vec![Op::Snapshot("s1".into())],
        vec![Op::DropSnapshot("s0".into()), Op::Reclaim],
        vec![Op::Drop(a()), Op::Write(a(), numbered(500, 25), false)],
        vec![Op::Drop(a()), Op::Reclaim, Op::Write(a(), numbered(500, 25), false)],
        // The newest version, the one that deleted rows.
        vec![Op::DeleteVersions(a(), vec![4]), Op::Append(a(), numbered(700, 7))],
        vec![Op::Append(a(), numbered(900, 9))],
        vec![Op::Delete(a(), 3, 0)],
        vec![Op::Write("t/c".into(), numbered(300, 3), false), Op::Drop("t/b".into())],
    ]
}

/// Runs all operations, and returns how each ended.
fn do_all(store: &Store, ops: &[Op]) -> Vec<End> {
    let one = |op: &Op| match run(&mut store.clone(), || unreachable!("nobody reopens"), op) {
        Ok(()) => End::Done,
        Err(e) => match e.kind() {
            ErrorKind::Conflict => End::Conflict,
            ErrorKind::NotFound | ErrorKind::AlreadyExists | ErrorKind::InvalidArgument => End::Refused,
            _ => panic!("{op:?}: {e}"),
        },
    };
    ops.iter().map(one).collect()
}

/// The possible orders: the other's work came before or after the operation of the first that it met. Operations with a
/// conflict are left out.
fn orders(before: &(Model, Trash), first: &[Op], ends: &[End], other: &[Op]) -> Vec<(Vec<End>, Vec<End>, Model)> {
    let place = |place: usize| {
        let (mut model, mut trash) = before.clone();
        let (mut of_first, mut of_other) = (Vec::new(), Vec::new());
        for at in 0..=first.len() {
            if at == place {
                of_other = other.iter().map(|op| attempt(&mut model, &mut trash, op)).collect();
            }
            match (first.get(at), ends.get(at)) {
                (Some(_), Some(End::Conflict)) => of_first.push(End::Conflict),
                (Some(op), _) => of_first.push(attempt(&mut model, &mut trash, op)),
                (None, _) => {}
            }
        }
        (of_first, of_other, model)
    };
    (0..=first.len()).map(place).collect()
}

/// One meeting; returns whether the first made that many requests.
fn meet(first: &[Op], other: &[Op], pause: usize) -> bool {
    let (bucket, clock): (SimBucket, Arc<ManualClock>) = (SimBucket::new(), clock());
    let client = bucket.client();
    let store = open(&client, &clock).unwrap();
    // With its own pool: it works while the first's threads wait.
    let options = Options { inline_bytes: 0, block_grace_micros: 0, ..Options::default() };
    let beside = drumlin::store::open_bucket(Arc::new(bucket.clone()), env(&clock, 77, 1), "bucket", options).unwrap();
    let mut before: (Model, Trash) = Default::default();
    for op in setting() {
        assert_eq!(attempt(&mut before.0, &mut before.1, &op), End::Done);
        run(&mut store.clone(), || unreachable!(), &op).unwrap();
    }
    beside.refresh().unwrap();
    let (told, met) = std::sync::mpsc::channel();
    let (mut requests, theirs, awake) = (0, other.to_vec(), beside.clone());
    client.plan(move |_, _| {
        if requests == pause {
            let ends = std::thread::scope(|scope| scope.spawn(|| do_all(&awake, &theirs)).join().unwrap());
            told.send(ends).unwrap();
        }
        requests += 1;
        None
    });
    let ends = do_all(&store, first);
    client.heal();
    let Ok(of_other) = met.try_recv() else { return false };
    let place = || format!("{first:?} meets {other:?} before request {pause}: {ends:?}, {of_other:?}");
    assert!(!of_other.contains(&End::Conflict), "nobody was in its way: {}", place());
    let fresh = open(&bucket.client(), &clock).unwrap();
    let mut others = Vec::new();
    let orders = orders(&before, first, &ends, other);
    let model =
        orders.into_iter().find_map(|(a, b, model)| match (a == ends && b == of_other, compare(&fresh, &model)) {
            (true, Ok(())) => Some(model),
            (same, compared) => {
                others.push((a, b, same, compared));
                None
            }
        });
    let model = model.unwrap_or_else(|| panic!("{}: in no order: {others:#?}", place()));
    for store in [&store, &beside] {
        store.refresh().unwrap();
        compare(store, &model).unwrap_or_else(|e| panic!("{}: {e}", place()));
    }
    settled(&fresh, &bucket).unwrap_or_else(|e| panic!("{}: {e}", place()));
    compare(&fresh, &model).unwrap_or_else(|e| panic!("{}: after the reclaim: {e}", place()));
    true
}

// faults: paused process, concurrent change, reclaim beside a writer x write, delete, drop, undrop, snapshot
// faults: paused process, concurrent change, reclaim beside a writer x checkpoint, reclaim
#[test]
fn whatever_two_processes_do_at_once_has_an_order() {
    let mut meetings = 0;
    for first in works() {
        for other in works() {
            meetings += (0..).take_while(|pause| meet(&first, &other, *pause)).count();
        }
    }
    assert!(meetings > 500, "only {meetings} meetings");
}
