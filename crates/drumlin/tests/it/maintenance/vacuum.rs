//! Vacuum: what DuckDB's own tests require of its vacuum, in spirit, and what that vacuum does not do. A table of one
//! column of integers; row groups are counted after each checkpoint.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use drumlin::base::{BlockId, Seq, SessionId, TableId, Timestamp, Version};
use drumlin::block::Address;
use drumlin::storage::SimDisk;
use drumlin::store::CheckpointOptions;
use drumlin::table::{
    LeftAlone, NewGroup, PlanOptions, ROWS_MAX, StoredSchema, TableChange, TableSpec, TableState, VersionKind, plan,
};
use drumlin::{Store, Tables};
use roaring::RoaringBitmap;

use crate::support::open;

const MILLION: i64 = 1_000_000;

fn integers(from: i64, n: i64) -> RecordBatch {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + n));
    RecordBatch::try_from_iter([("i", column)]).unwrap()
}

/// Integers that no encoding makes smaller, so that bytes show what was rewritten.
fn noise(from: i64, n: i64) -> RecordBatch {
    let mix =
        |i: i64| (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values((from..from + n).map(|i| mix(i) as i64)));
    RecordBatch::try_from_iter([("i", column)]).unwrap()
}

fn groups(store: &Store) -> u64 {
    store.table("t").stat().unwrap().row_groups
}

fn delete(store: &Store, filter: &str) {
    store.table("t").delete(filter, &Default::default()).unwrap();
}

fn checkpoint(store: &Store) -> drumlin::store::CheckpointReport {
    let report = store.checkpoint(&CheckpointOptions::default()).unwrap();
    store.reclaim(&Default::default()).unwrap();
    report
}

fn sum_and_count(store: &Store) -> (i64, usize) {
    let batches = store.table("t").collect(&Default::default()).unwrap();
    let columns = batches.iter().map(|batch| batch.column(0).as_primitive::<Int64Type>());
    columns.fold((0, 0), |(sum, n), column| (sum + column.values().iter().sum::<i64>(), n + column.len()))
}

/// A store that keeps only the newest version, so that no version needs deleted rows.
fn store() -> Store {
    let store = open(&SimDisk::in_memory()).unwrap();
    store.set_retention("**", Some(drumlin::catalog::Retention::KeepLast(1))).unwrap();
    store
}

/// Row groups, each with a number of rows and the percentage of deleted rows.
fn shaped(shape: &[(i64, i64)]) -> Store {
    let store = store();
    let mut from = 0;
    for (at, (rows, _)) in shape.iter().enumerate() {
        match at {
            0 => drop(store.write("t", integers(from, *rows), &Default::default()).unwrap()),
            _ => drop(store.append("t", integers(from, *rows), &Default::default()).unwrap()),
        }
        from += 10 * i64::from(ROWS_MAX);
    }
    for (at, (_, percent)) in shape.iter().enumerate() {
        let from = at as i64 * 10 * i64::from(ROWS_MAX);
        if *percent > 0 {
            delete(&store, &format!("i >= {from} and i < {} and i % 100 < {percent}", from + 10 * i64::from(ROWS_MAX)));
        }
    }
    store
}

#[test]
fn half_the_rows_leave_half_the_row_groups() {
    let store = store();
    store.write("t", integers(0, MILLION), &Default::default()).unwrap();
    assert!((7..=10).contains(&groups(&store)));
    delete(&store, "i % 2 = 0");
    checkpoint(&store);
    assert!((4..=6).contains(&groups(&store)), "{}", groups(&store));
    assert_eq!(sum_and_count(&store), (250_000_000_000, 500_000));
    delete(&store, "i >= 0");
    checkpoint(&store);
    assert_eq!((groups(&store), sum_and_count(&store)), (0, (0, 0)));
    let before = store.stat().unwrap().block_bytes;
    assert_eq!(before, 0);
    store.write("t", integers(0, MILLION), &Default::default()).unwrap();
    assert_eq!(sum_and_count(&store), (MILLION * (MILLION - 1) / 2, MILLION as usize));
}

#[test]
fn a_third_of_the_rows_leaves_two_thirds_of_the_row_groups() {
    let store = store();
    store.write("t", integers(0, MILLION), &Default::default()).unwrap();
    delete(&store, "i % 3 = 0");
    checkpoint(&store);
    assert!((5..=7).contains(&groups(&store)), "{}", groups(&store));
    assert_eq!(sum_and_count(&store).0, 333_332_666_667);
}

#[test]
fn loading_and_deleting_again_and_again_does_not_grow_the_store() {
    let store = store();
    let mut sizes = Vec::new();
    for _ in 0..4 {
        match store.tree().exists("t").unwrap() {
            true => drop(store.append("t", integers(0, MILLION), &Default::default()).unwrap()),
            false => drop(store.write("t", integers(0, MILLION), &Default::default()).unwrap()),
        }
        delete(&store, "i % 2 = 0");
        checkpoint(&store);
        delete(&store, "i % 2 = 1");
        checkpoint(&store);
        assert_eq!(sum_and_count(&store), (0, 0));
        sizes.push(store.stat().unwrap().block_bytes);
    }
    assert_eq!(sizes, [0; 4]);
}

#[test]
fn a_thousand_tiny_appends_become_few_row_groups_and_cost_little_rewriting() {
    let store = store();
    store.write("t", noise(0, 100), &Default::default()).unwrap();
    let mut written = 0;
    for n in 1..1000 {
        store.append("t", noise(n * 100, 100), &Default::default()).unwrap();
        if n % 10 == 0 {
            written += checkpoint(&store).bytes_written;
        }
    }
    written += checkpoint(&store).bytes_written;
    assert!(groups(&store) < 5, "{}", groups(&store));
    let batches = store.table("t").collect(&Default::default()).unwrap();
    assert_eq!(arrow::compute::concat_batches(&batches[0].schema(), &batches).unwrap(), noise(0, 100_000));
    // Each row is rewritten as often as row groups double, not with each of the hundred checkpoints.
    let size = store.stat().unwrap().live_bytes;
    assert!(size > 700_000 && written < 16 * size, "{written} bytes written for {size}");
}

#[test]
fn a_tail_is_not_rewritten_each_time_something_small_is_added() {
    let store = store();
    store.write("t", noise(0, 100_000), &Default::default()).unwrap();
    checkpoint(&store);
    let mut rewritten = 0;
    for n in 0..50 {
        store.append("t", noise(MILLION + n * 10, 10), &Default::default()).unwrap();
        rewritten += u64::from(checkpoint(&store).bytes_written > 100_000);
    }
    assert!(rewritten <= 1, "the large row group was rewritten {rewritten} times");
    assert!(groups(&store) < 5, "{}", groups(&store));
}

#[test]
fn one_mostly_deleted_row_group_among_full_ones_is_compacted_alone() {
    let full = i64::from(ROWS_MAX);
    let store = shaped(&[(full, 0), (full, 99), (full, 0)]);
    let plan = &store.vacuum_plan(&PlanOptions::default()).unwrap().tables[0].1;
    assert_eq!(plan.windows.len(), 1);
    assert_eq!(plan.windows[0].inputs.len(), 1);
    let dead = plan.windows[0].dead_rows;
    assert_eq!(checkpoint(&store).rows_removed, dead);
    assert_eq!(sum_and_count(&store).1 as u64, 3 * full as u64 - dead);
    assert_eq!(groups(&store), 3);
}

#[test]
fn a_full_row_group_is_not_rewritten_for_its_neighbours() {
    let full = i64::from(ROWS_MAX);
    let store = shaped(&[(full, 0), (60_000, 0), (60_000, 0)]);
    let plan = &store.vacuum_plan(&PlanOptions::default()).unwrap().tables[0].1;
    let inputs: Vec<u32> = plan.windows.iter().flat_map(|w| &w.inputs).map(|input| input.rows).collect();
    assert_eq!(inputs, [60_000, 60_000]);
    checkpoint(&store);
    assert_eq!(groups(&store), 2);
}

#[test]
fn some_dead_rows_in_many_row_groups_are_cleaned() {
    let full = i64::from(ROWS_MAX);
    let store = shaped(&[(full, 100), (full, 26), (full, 26), (full, 26), (full, 100)]);
    checkpoint(&store);
    // Three, each without a quarter of its rows, fit into fewer than three.
    assert_eq!(groups(&store), 3);
    assert_eq!(sum_and_count(&store).1 as i64, 3 * full - (0..full).filter(|i| i % 100 < 26).count() as i64 * 3);
    let store = shaped(&[(full, 20); 10]);
    checkpoint(&store);
    assert_eq!(groups(&store), 8);
}

/// A table as records only: row groups, each with its number of rows and how many of the first are deleted.
fn records(shape: &[(u32, u32)]) -> TableState {
    let address = |n: usize, rows: u32| Address {
        block: BlockId { session: SessionId(1), number: n as u64 },
        offset: 64,
        segment_bytes: u64::from(rows) * 8,
        directory_bytes: 100,
        checksum: 0,
    };
    let schema = StoredSchema::new(integers(0, 0).schema()).unwrap();
    let groups =
        shape.iter().enumerate().map(|(n, (rows, _))| NewGroup { address: address(n, *rows), rows: *rows, dead: None });
    let write = TableChange { schema: Some(schema), groups: groups.collect(), ..TableChange::new(VersionKind::Write) };
    let table = TableState::new(TableId(1), TableSpec { sort: Vec::new(), keyed: false });
    let table = table.change(&write, Seq(1), Timestamp(1)).unwrap();
    let dead = table.groups.iter().zip(shape).filter(|(_, (_, dead))| *dead > 0);
    let deletions = dead.map(|(group, (_, dead))| {
        let mut positions = RoaringBitmap::new();
        positions.insert_range(0..*dead);
        (group.id, positions.into())
    });
    let delete = TableChange { deletions: deletions.collect(), ..TableChange::new(VersionKind::Delete) };
    let table = table.change(&delete, Seq(2), Timestamp(2)).unwrap();
    table.delete_versions(&[Version(0)], Seq(3), Timestamp(3)).unwrap().0
}

#[test]
fn no_plan_touches_a_clean_full_row_group_or_loses_count_of_a_row() {
    let mut rng = fastrand::Rng::with_seed(1);
    for round in 0..10_000 {
        let shape: Vec<(u32, u32)> = (0..rng.usize(0..30))
            .map(|_| {
                let rows = match rng.u8(..4) {
                    0 | 1 => ROWS_MAX,
                    2 => rng.u32(1..=ROWS_MAX),
                    _ => rng.u32(1..2000),
                };
                let dead = match rng.u8(..4) {
                    0 | 1 => 0,
                    2 => rng.u32(0..=rows),
                    _ => rows / 100 * rng.u32(0..30),
                };
                (rows, dead)
            })
            .collect();
        let options = PlanOptions { budget: if rng.bool() { 1.0 } else { rng.f64() }, ..PlanOptions::default() };
        let table = records(&shape);
        let plan = plan(&table, &options);
        let place = |id| table.groups.iter().position(|group| group.id == id).unwrap();
        let mut next = 0;
        let (mut rewritten, mut touched) = (0, 0);
        for window in &plan.windows {
            let places: Vec<usize> = window.inputs.iter().map(|input| place(input.id)).collect();
            assert!(places[0] >= next && places.windows(2).all(|two| two[1] == two[0] + 1), "{round}: {shape:?}");
            next = places[places.len() - 1] + 1;
            let (mut rows, mut dead) = (0, 0);
            for (place, kept) in places.iter().zip(&window.kept) {
                let (all, gone) = shape[*place];
                assert!(gone > 0 || all < ROWS_MAX, "{round}: a clean full one is rewritten: {shape:?}");
                assert_eq!(kept.count(all), u64::from(all - gone), "{round}: {shape:?}");
                rows += u64::from(all - gone);
                dead += u64::from(gone);
            }
            assert_eq!((window.rows, window.dead_rows), (rows, dead), "{round}: {shape:?}");
            assert_eq!(u64::from(window.outputs), rows.div_ceil(u64::from(ROWS_MAX)), "{round}: {shape:?}");
            // Each window is worthwhile: it saves row groups, or at least half of the bytes.
            let lone = window.inputs.len() == 1 && window.outputs == 1 && dead * 2 >= rows;
            assert!((window.outputs as usize) < window.inputs.len() || lone, "{round}: {shape:?}");
            let bytes: u64 = window.inputs.iter().map(|input| input.address.bytes()).sum();
            assert!(window.bytes_gained() + window.bytes_rewritten() == bytes, "{round}: {shape:?}");
            rewritten += window.bytes_rewritten();
            touched += window.inputs.len() as u64;
        }
        let bytes: u64 = table.groups.iter().map(|group| group.address.bytes()).sum();
        assert!(rewritten <= (bytes as f64 * options.budget) as u64 || options.budget >= 1.0, "{round}: {shape:?}");
        let left: u64 = plan.left_alone.values().map(|(groups, _)| groups).sum();
        assert_eq!(left + touched, shape.len() as u64, "{round}: {shape:?}");
        let dead: u64 = plan.windows.iter().map(|window| window.dead_rows).sum();
        let dead_left: u64 = plan.left_alone.values().map(|(_, dead)| dead).sum();
        assert_eq!(dead + dead_left, shape.iter().map(|(_, dead)| u64::from(*dead)).sum::<u64>(), "{round}: {shape:?}");
        if plan.left_out == 0 && options.budget >= 1.0 {
            assert!(!plan.left_alone.contains_key(&LeftAlone::Budget));
        }
        // Fully dead row groups never stay, unless the budget requires it; removing them costs nothing.
        let stays =
            plan.windows.iter().flat_map(|window| &window.inputs).map(|input| place(input.id)).collect::<Vec<_>>();
        let dead_stays = shape.iter().enumerate().any(|(at, (rows, dead))| rows == dead && !stays.contains(&at));
        assert!(!dead_stays || options.budget < 1.0, "{round}: {shape:?}");
    }
}
