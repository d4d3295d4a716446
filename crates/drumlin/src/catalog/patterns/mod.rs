//! What selects nodes: patterns over paths, and conditions on what nodes are.

pub(super) mod compare;
pub(super) mod field;
pub(super) mod glob;
pub(super) mod node_info;
pub(super) mod pattern;
pub(super) mod trigger;
