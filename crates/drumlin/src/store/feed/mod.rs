//! What follows commits: the change feed, triggers, projections. Sees commits only once they are made.

pub(super) mod begin;
pub(super) mod changes;
pub(super) mod cursor;
pub(super) mod follow;
pub(super) mod place;
pub(super) mod projection;
pub(super) mod row_trigger;
mod row_versions;
pub(super) mod rows;
pub(super) mod trigger;
