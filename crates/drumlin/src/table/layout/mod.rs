//! Layouts: row groups of tables without an order that are sorted by other columns than those in which rows are shown, so that filters on these
//! read little. What a version shows, and in which order, stays the same: each row keeps its place (*standing.rs*).

pub(super) mod curve;
pub(super) mod definition;
pub(super) mod laying;
pub(super) mod overlap;
pub(super) mod places;
pub(super) mod plan;
pub(super) mod setting;
pub(super) mod shown;
