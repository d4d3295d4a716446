//! How a store is found, made, checked for its lock, and closed. What an open store does is not here.

pub(super) mod format;
pub(super) mod handles;
pub(super) mod hooks;
pub(super) mod move_log;
pub(super) mod opening;
pub(super) mod probe;
pub(super) mod share;
pub(super) mod uri;
