//! Reading a version: which row groups and rows, in which order, decoded by whom. Changes nothing.

pub(super) mod diff;
pub(super) mod group_reader;
pub(super) mod groups_ahead;
pub(super) mod interleaved;
pub(super) mod piece_reader;
pub(super) mod pieces;
pub(super) mod prefetch;
pub(super) mod scan;
pub(super) mod scan_options;
pub(super) mod scan_part;
pub(super) mod scan_plan;
pub(super) mod select;
pub(super) mod selected;
pub(super) mod split;
pub(super) mod view;
