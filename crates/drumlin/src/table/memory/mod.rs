//! Rows written by key that are not in row groups yet: how they are held, seen above row groups, and flushed.

pub(super) mod batch;
pub(super) mod by_index;
pub(super) mod flush;
pub(super) mod history;
pub(super) mod overlay;
pub(super) mod part;
pub(super) mod reread;
pub(super) mod row_bytes;
pub(super) mod row_writes;
pub(super) mod sorted_values;
pub(super) mod values;
pub(super) mod written;
