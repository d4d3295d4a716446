//! The record of a row group: where it is, which versions see which of its rows, and the layers that updates put on it.

pub(super) mod ends;
pub(super) mod key_bounds;
pub(super) mod layers;
pub(super) mod patch;
pub(super) mod row_group;
pub(super) mod sound;
pub(super) mod standing;
