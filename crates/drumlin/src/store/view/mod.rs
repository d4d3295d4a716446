//! Views: tables of groups of other tables' rows that are kept in step, by each commit that changes these. What a view is, and with which sources it
//! is behind, is part of the state (*catalog/row_views.rs*); what a commit changes in views is checked in its turn
//! (*parts/commits/view_proof.rs*). Here it is made: from the rows that the commit adds and takes away (*delta.rs*), or, of a source with
//! which a view is behind, from all its rows (*catch_up.rs*).

mod catch_up;
mod create;
mod delta;
mod rows;
mod shape;

pub use catch_up::CatchUpReport;
pub use create::{ViewInfo, ViewOptions};
