//! Work that other processes and other stores take part in: holds, leases and splits for readers, stages for writers, copies to another
//! store.

pub(super) mod copy_to;
pub(super) mod holds;
pub(super) mod lease;
pub(super) mod split;
pub(super) mod stage;
pub(super) mod stage_commit;
pub(super) mod target;
