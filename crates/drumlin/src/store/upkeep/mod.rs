//! Upkeep: what a store does for itself, by checkpoints and reclaims, and what shows the state that it is in. Changes no answer of a read.

pub(super) mod background;
pub(super) mod checkpoint;
pub(super) mod checkpoint_report;
pub(super) mod flush;
pub(super) mod layout;
pub(super) mod metrics;
pub(super) mod plans;
pub(super) mod reclaim;
pub(super) mod reorder;
pub(super) mod repack;
pub(super) mod runs;
pub(super) mod vacuum;
pub(super) mod windows;
