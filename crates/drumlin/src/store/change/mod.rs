//! Changing what is there: deletes, updates, merges, columns, versions and their places. Each is one commit that writes no more than what
//! differs.

pub(super) mod add_columns;
pub(super) mod alter;
pub(super) mod changed_rows;
pub(super) mod delete;
pub(super) mod drop;
pub(super) mod expire;
pub(super) mod index;
pub(super) mod merge;
pub(super) mod metadata;
pub(super) mod restore;
pub(super) mod update;
pub(super) mod versions;
