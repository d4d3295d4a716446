//! Vacuum: what DuckDB's own tests ask of theirs, in meaning, and what theirs leaves undone. A table of one column of
//! integers; row groups are counted after each checkpoint.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use drumlin::Store;
use drumlin::storage::SimDisk;
use drumlin::store::CheckpointOptions;
use drumlin::table::{PlanOptions, ROWS_MAX};

use crate::support::open;

const MILLION: i64 = 1_000_000;

fn integers(from: i64, n: i64) -> RecordBatch {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + n));
    RecordBatch::try_from_iter([("i", column)]).unwrap()
}

/// Integers that no encoding makes smaller, so that bytes tell what was rewritten.
fn noise(from: i64, n: i64) -> RecordBatch {
    let mix =
        |i: i64| (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values((from..from + n).map(|i| mix(i) as i64)));
    RecordBatch::try_from_iter([("i", column)]).unwrap()
}

fn groups(store: &Store) -> u64 {
    store.table_stat("t").unwrap().row_groups
}

fn delete(store: &Store, filter: &str) {
    store.delete_rows("t", filter, &Default::default()).unwrap();
}

fn checkpoint(store: &Store) -> drumlin::store::CheckpointReport {
    let report = store.checkpoint(&CheckpointOptions::default()).unwrap();
    store.reclaim(&Default::default()).unwrap();
    report
}

fn sum_and_count(store: &Store) -> (i64, usize) {
    let batches = store.collect("t", &Default::default()).unwrap();
    let columns = batches.iter().map(|batch| batch.column(0).as_primitive::<Int64Type>());
    columns.fold((0, 0), |(sum, n), column| (sum + column.values().iter().sum::<i64>(), n + column.len()))
}

/// A store that keeps the newest version only, so that deleted rows are needed by none.
fn store() -> Store {
    let store = open(&SimDisk::in_memory()).unwrap();
    store.set_retention("**", Some(drumlin::catalog::Retention::KeepLast(1))).unwrap();
    store
}

/// Row groups of so many rows, of which every so-manieth percent is deleted.
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
        match store.exists("t").unwrap() {
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
    let batches = store.collect("t", &Default::default()).unwrap();
    assert_eq!(arrow::compute::concat_batches(&batches[0].schema(), &batches).unwrap(), noise(0, 100_000));
    // Each row is rewritten so often as row groups double, and not with every checkpoint of the hundred.
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
    let plan = &store.vacuum_plan(&PlanOptions::default()).unwrap()[0].1;
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
    let plan = &store.vacuum_plan(&PlanOptions::default()).unwrap()[0].1;
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
    // Three less a quarter are less than three.
    assert_eq!(groups(&store), 3);
    assert_eq!(sum_and_count(&store).1 as i64, 3 * full - (0..full).filter(|i| i % 100 < 26).count() as i64 * 3);
    let store = shaped(&[(full, 20); 10]);
    checkpoint(&store);
    assert_eq!(groups(&store), 8);
}
