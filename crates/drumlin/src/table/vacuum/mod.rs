//! Which row groups a checkpoint rewrites, the rewrite, and the check of a row group that is stored.

pub(super) mod plan;
pub(super) mod rewrite;
pub(super) mod verify_group;
