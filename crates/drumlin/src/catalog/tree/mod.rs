//! The tree of nodes: paths, the map that holds them, walks over it, copies of parts of it, and how long nodes live.

pub(super) mod keep;
pub(super) mod map;
pub(super) mod nodes;
pub(super) mod path;
pub(super) mod retention;
pub(super) mod small;
pub(super) mod subtree;
pub(super) mod walk;
pub(super) mod watches;
