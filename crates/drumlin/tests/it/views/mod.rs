//! Views: equal to what their sources give when all of them is computed again, after each commit, whatever it did and whoever made it.

pub mod changes;
pub mod made;
mod refused;
pub mod writers;
