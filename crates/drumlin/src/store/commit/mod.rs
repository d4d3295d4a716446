//! The way of every change to the log: prepared, its rows placed in blocks, committed, prepared again if others came first. No change of
//! its own: those are in *write*, *change* and *upkeep*.

mod behind;
pub(super) mod blocks;
pub(super) mod call;
pub(super) mod in_groups;
pub(super) mod prepare;
pub(super) mod sessions;
pub(super) mod table_changes;
mod unique;
