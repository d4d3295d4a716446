//! What commits: the log, the queue of those that wait for their turn, the newest state, and what follows it. Nothing here prepares a
//! commit, or knows what it is for.

mod among;
mod carrier;
pub(in crate::store) mod feeds;
pub(in crate::store) mod newest;
pub(in crate::store) mod pins;
pub(in crate::store) mod proof;
pub(in crate::store) mod proposal;
pub(in crate::store) mod queue;
pub(in crate::store) mod syncer;
pub(in crate::store) mod turns;
pub(in crate::store) mod view_proof;
