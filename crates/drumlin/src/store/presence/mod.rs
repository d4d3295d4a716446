//! Presences, and nodes that end with them or by themselves: begun and renewed (*handle.rs*), watched and ended (*attend.rs*). See
//! catalog/presences.rs for what they are.

pub(super) mod attend;
pub(super) mod handle;
