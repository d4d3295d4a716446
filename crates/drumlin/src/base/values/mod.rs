//! Small values and their encodings: numbers with a meaning, checksums, digests, persistent maps.

pub(super) mod checksum;
pub(super) mod digest;
pub(super) mod ids;
pub mod json_text;
pub(super) mod memo;
pub mod persistent;
pub(super) mod varint;
