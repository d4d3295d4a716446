//! Views: equal to what their sources give when all of them is computed again, after each commit, of whatever kind and from whatever process.

pub mod changes;
pub mod made;
mod refused;
pub mod writers;
