//! Groups of rows, and what is made of each: counts, sums, means, the first and the last.
//!
//! No planner: a [`GroupBy`] is tied to columns ([`Grouping`]), batches of rows are added to [`Groups`] in any order
//! and on any number of threads, each to its own, and these are merged. Sums are exact, so the answer is the same bit
//! by bit however rows were divided: by threads, by row groups before and after a checkpoint, by tables.
//!
//! Values of the key columns become small numbers, equal for equal values (*codes.rs*), combinations of them the groups
//! of a batch; only the first row of each is looked up among all groups, by bytes that compare like the keys
//! (*keys.rs*). Rows that lie together are added run by run (*runs.rs*). Otherwise, of few groups, each row goes to one
//! of several places for its group, so that an addition need not wait for the one before it. Integers and decimals are
//! computed in 64 bits as long as bounds say that they fit (*arithmetic.rs* of the filter layer). Sums of floats are
//! exact (*exact.rs*); sums, means and variances are rounded once, at the end. `first` and `last` go by the place of
//! the row.

mod best;
mod bucket;
mod codes;
mod exact;
mod groups;
mod kept;
mod keys;
mod plan;
mod runs;
mod state;

pub use bucket::{Every, Length};
pub use groups::{Groups, in_order};
pub use kept::{KeptGroups, RANK_FROM};
pub use plan::{Aggregate, Function, GroupBy, Grouping};
