//! Checkpoints, vacuums, purges, and what a store counts of its work.

pub mod checkpoint;
pub mod erasing;
pub mod layout;
pub mod metrics;
pub mod named;
pub mod pages;
pub mod purge;
pub mod upkeep;
pub mod vacuum;
