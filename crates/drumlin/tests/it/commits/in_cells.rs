//! Random operations of several processes on a store whose log is in a cell.

use crate::processes::shared::episode;
use crate::processes::shared_support::with_cells;
use crate::seeds;

// faults: concurrent change x random operations, verify
#[test]
fn random_operations_of_three_processes_are_in_one_order() {
    with_cells(|| seeds::each(0..12, 3, |seed| assert_eq!(episode(seed, 60, false, false), 0)));
    with_cells(|| seeds::each(200..203, 10, |seed| assert_eq!(episode(seed, 80, false, true), 0)));
}

// faults: lost answer x random operations, verify
// faults: stale list x checkpoint, reclaim, verify
// faults: partial deletion x write, upsert, drop, checkpoint, reclaim
#[test]
fn random_operations_over_a_network_that_fails_are_done_once_or_not() {
    let mut failed = 0;
    with_cells(|| {
        seeds::each(100..120, 4, |seed| failed += episode(seed, 60, true, false));
        seeds::each(300..304, 10, |seed| failed += episode(seed, 80, true, true));
    });
    assert!(failed > 50 || seeds::given(), "only {failed} operations failed");
}
