//! Random operations against the model: after every step, every version and every snapshot is read again and compared.

use std::sync::Arc;

use drumlin::base::{ManualClock, Timestamp};
use drumlin::storage::{FileStorage, SimDisk};
use drumlin::table::ScanOptions;
use drumlin::{ErrorKind, Store, Tables};

use crate::models::met::Meeting;
use crate::models::model::Model;
use crate::models::pairs::Pairs;
use crate::models::random::{Op, apply, check, compare, compare_trash, draw, run};
use crate::models::wide::{self, Mirror, Noted};
use crate::seeds;
use crate::support::{Row, of_rest, opener, rows};

/// Filters, limits and tails agree with the whole.
fn check_parts(store: &Store, model: &Model, rng: &mut fastrand::Rng) {
    for (path, table) in &model.tables {
        let (divisor, rest) = (rng.i64(2..5), rng.i64(0..2));
        let expected: Vec<Row> = table.newest().iter().filter(|(id, _)| id % divisor == rest).cloned().collect();
        let read = |scan: ScanOptions| {
            let options = drumlin::store::ReadOptions::from(scan);
            let batches: Vec<_> = store.read(path, &options).unwrap().map(Result::unwrap).collect();
            rows(&batches)
        };
        let filter = Some(drumlin::filter::Filter::parse(&of_rest(divisor, rest)).unwrap());
        assert_eq!(read(ScanOptions { filter: filter.clone(), ..Default::default() }), expected);
        let n = rng.usize(..30);
        let first = |rows: &[Row]| rows[..n.min(rows.len())].to_vec();
        let last = |rows: &[Row]| rows[rows.len() - n.min(rows.len())..].to_vec();
        let limit = Some(n as u64);
        assert_eq!(read(ScanOptions { limit, ..Default::default() }), first(table.newest()));
        assert_eq!(read(ScanOptions { tail: limit, ..Default::default() }), last(table.newest()));
        assert_eq!(read(ScanOptions { limit, filter: filter.clone(), ..Default::default() }), first(&expected));
        assert_eq!(read(ScanOptions { tail: limit, filter, ..Default::default() }), last(&expected));
    }
}

fn episode(seed: u64, steps: usize, big: bool, threads: usize) {
    let open = opener(seed);
    let mut rng = fastrand::Rng::with_seed(seed);
    let disk = SimDisk::new();
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let mut store = open(&disk, &clock, threads).unwrap();
    let (mut model, mut trash, mut pairs) = (Model::default(), Vec::new(), Pairs::new(0));
    for step in 0..steps {
        clock.advance(rng.i64(-5..50));
        let op = draw(&mut rng, &model, big);
        let before = (model.clone(), trash.clone());
        let meeting = Meeting::of(&store, &model, &op);
        let expected = apply(&mut model, &mut trash, &op);
        let done = run(&mut store, || open(&disk, &clock, threads), &op);
        match (&done, expected) {
            (Ok(()), true) => {}
            (Err(e), false) => {
                use ErrorKind::{AlreadyExists, InvalidArgument, NotFound, SchemaMismatch};
                let kinds = [NotFound, AlreadyExists, InvalidArgument, SchemaMismatch];
                assert!(kinds.contains(&e.kind()), "seed {seed} step {step} {op:?}: {e}");
                (model, trash) = before;
            }
            _ => panic!("seed {seed} step {step}: {op:?} gave {done:?}"),
        }
        meeting.into_iter().for_each(|meeting| meeting.note(&mut pairs, expected));
        check(&store, &model);
        if rng.u8(..8) == 0 {
            check_parts(&store, &model, &mut rng);
        }
    }
    pairs.keep(seed);
    let report = store.verify(&Default::default()).unwrap();
    assert_eq!(report.faults, []);
    // With everything gone, nothing is left on disk.
    let of_keyed = model.keyed.iter().flat_map(|keyed| keyed.snapshots.keys());
    for name in model.snapshots.keys().chain(of_keyed) {
        store.drop_snapshot(name).unwrap();
    }
    if !model.tables.is_empty() {
        store.drop("t/**").unwrap();
    }
    if !model.evolving.is_empty() {
        store.drop("e/**").unwrap();
    }
    if model.keyed.is_some() {
        store.drop("k/**").unwrap();
    }
    store.close().unwrap();
    let store = open(&disk, &clock, threads).unwrap();
    store.reclaim(&Default::default()).unwrap();
    let blocks: Vec<_> = disk.files().into_iter().filter(|(name, _)| name.starts_with("blocks/")).collect();
    assert_eq!(blocks.iter().map(|(name, _)| name).collect::<Vec<_>>(), Vec::<&String>::new(), "seed {seed}");
}

/// All operations, each followed by checks of times, of a feed, and, now and then, of the result of a salvage.
fn wide_episode(seed: u64, steps: usize) {
    let open = opener(seed);
    let mut rng = fastrand::Rng::with_seed(seed);
    let disk = SimDisk::new();
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let mut store = open(&disk, &clock, 2).unwrap();
    let (mut model, mut trash) = (Model { timed: true, ..Model::default() }, Vec::new());
    let mut pairs = Pairs::new(0);
    let (mut noted, mut mirror) = (Noted::default(), Mirror::new(store.clone()).unwrap());
    for step in 0..steps {
        clock.advance(1000);
        model.now = drumlin::base::Clock::now(&*clock).0;
        let op = wide::draw(&mut rng, &model);
        let place = |what: String| panic!("seed {seed}, step {step}, {op:?}: {what}");
        let before = (model.clone(), trash.clone());
        let meeting = Meeting::of(&store, &model, &op);
        let expected = apply(&mut model, &mut trash, &op);
        let done = run(&mut store, || open(&disk, &clock, 2), &op);
        match (&done, expected) {
            (Ok(()), true) => {}
            (Err(e), false) => {
                use ErrorKind::{AlreadyExists, ConditionFailed, InvalidArgument, NotFound, SchemaMismatch};
                let kinds = [NotFound, AlreadyExists, InvalidArgument, ConditionFailed, SchemaMismatch];
                if !kinds.contains(&e.kind()) {
                    place(e.to_string());
                }
                (model, trash) = before;
            }
            _ => place(format!("gave {done:?}")),
        }
        meeting.into_iter().for_each(|meeting| meeting.note(&mut pairs, expected));
        if matches!(op, Op::Reopen) {
            mirror = Mirror::new(store.clone()).unwrap();
        }
        compare(&store, &model).unwrap_or_else(place);
        compare_trash(&store, &model, &trash).unwrap_or_else(place);
        noted.note(Timestamp(model.now), &model, &op);
        noted.check(&store, &mut rng).unwrap_or_else(place);
        mirror.check(&model).unwrap_or_else(place);
        if rng.u8(..25) == 0 {
            let files = Arc::new(FileStorage::new(Arc::new(disk.clone())));
            wide::salvaged(files, &clock, &model).unwrap_or_else(place);
        }
        if rng.u8(..25) == 0 {
            wide::copied(&disk, &clock, &model).unwrap_or_else(place);
        }
    }
    pairs.keep(seed);
    let report = store.verify(&Default::default()).unwrap();
    assert_eq!((report.faults, report.orphans), (vec![], vec![]), "seed {seed}");
}

#[test]
fn all_operations_equal_the_model() {
    seeds::each(3000..3020, 20, |seed| wide_episode(seed, 80));
}

// faults: wrong clock x random operations, verify
#[test]
fn random_operations_equal_the_model() {
    seeds::each(0..60, 5, |seed| episode(seed, 60, false, 2));
}

#[test]
fn random_operations_on_large_tables_equal_the_model() {
    seeds::each(1000..1004, 1, |seed| episode(seed, 40, true, 2));
}

// faults: one thread x random operations, verify
#[test]
fn one_cpu_thread_finishes_everything() {
    seeds::each(2000..2010, 2, |seed| episode(seed, 60, false, 1));
    seeds::each(2100..2101, 0, |seed| episode(seed, 30, true, 1));
}
