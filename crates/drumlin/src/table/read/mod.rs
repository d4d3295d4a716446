//! Reading a version: which row groups and rows, in which order, decoded by whom. Changes nothing.

pub(super) mod diff;
pub(super) mod expiry;
pub(super) mod group_reader;
pub(super) mod interleaved;
pub(super) mod matching;
pub(super) mod piece_reader;
pub(super) mod pieces;
pub(super) mod prefetch;
pub(super) mod range;
pub(super) mod scan;
pub(super) mod scan_part;
pub(super) mod scan_plan;
pub(super) mod split;
pub(super) mod truth;
pub(super) mod view;
