//! Choosing the forms of a segment, its statistics, and the proof that it says the same as its rows.

pub(super) mod bounds;
pub(super) mod hint;
pub(super) mod proof;
pub(super) mod rewrite;
pub(super) mod scheme;
pub(super) mod stats;
