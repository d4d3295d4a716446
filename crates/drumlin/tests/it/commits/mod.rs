//! Calls that change a store: alone, in one turn, refused; versions, copies, the public API.

pub mod batch;
pub mod copies;
pub mod copy_to;
pub mod covers;
mod in_cells;
pub mod refusals;
pub mod rules;
pub mod store;
pub mod time_travel;
pub mod transaction;
pub mod turns;
