//! Making row groups: of the rows of frames, of values computed from rows, of what a merge decides. Commits nothing.

pub(super) mod computed;
pub(super) mod encode;
pub(super) mod generated;
pub(super) mod generator;
pub(super) mod merge;
pub(super) mod merge_keys;
pub(super) mod merge_reads;
pub(super) mod rows_schema;
