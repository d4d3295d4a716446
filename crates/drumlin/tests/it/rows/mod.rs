//! Rows: by key, in order, changed, merged, compared, grouped.

pub mod aggregates;
pub mod dataset;
pub mod diffs;
pub mod face;
pub mod keyed;
pub mod keyed_attacks;
pub mod keyed_model;
pub mod laid_out;
pub mod merges;
pub mod ordered;
pub mod patches;
pub mod replacing;
pub mod stories;
pub mod updates;
