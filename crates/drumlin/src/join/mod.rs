//! Joins in time: each row of one side with the row of the other that is nearest to it in time, or with what was in a window around it.
//!
//! Knows batches of rows, not where they come from. Values that rows are ordered by become integers in one unit (*axis.rs*). The rows of the
//! right side are put into order once, by group and time (*right.rs*), and searched for each row of the left, from where the last search ended
//! (*seek.rs*). Batches of both sides that are ordered already pass each other in a window that holds what the next rows of the left may need
//! (*passing.rs*). What a window gives is computed as groups are (*window.rs*).

mod asof;
mod axis;
mod passing;
mod plan;
mod right;
mod seek;
mod sides;
mod window;

pub use asof::{AsofJoin, Direction};
pub use axis::Distance;
pub use passing::Passing;
pub use plan::{JoinKind, JoinPlan};
pub use sides::JoinSide;
pub use window::WindowJoin;
