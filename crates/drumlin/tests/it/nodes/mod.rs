//! The tree of nodes, triggers, names.

pub mod nouns;
pub mod odd_names;
pub mod presence_model;
pub mod presences;
pub mod tree;
pub mod tree_model;
pub mod trigger;
