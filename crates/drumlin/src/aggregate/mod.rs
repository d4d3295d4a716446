//! Groups of rows, and what is made of each: counts, sums, means, the first and the last.
//!
//! No planner: a [`GroupBy`] is tied to columns ([`Grouping`]), batches of rows are added to [`Groups`] in any order and on any
//! number of threads, each to its own, and these are merged. Sums are exact, so the answer is the same bit by bit however rows were
//! divided: by threads, by row groups before and after a checkpoint, by tables.

mod best;
mod bucket;
mod codes;
mod exact;
mod groups;
mod keys;
mod plan;
mod runs;
mod state;

pub use bucket::{Every, Length};
pub use groups::{Groups, in_order};
pub use plan::{Aggregate, Function, GroupBy, Grouping};
