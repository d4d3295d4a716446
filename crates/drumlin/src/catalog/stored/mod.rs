//! The state as a catalog snapshot has it: in chunks, checked when it is read, and made of what is left if it is damaged.

pub(super) mod check;
pub(super) mod chunks;
pub(super) mod salvage;
pub(super) mod sections;
