//! Keys as bytes, and rows found by them.

pub(super) mod codec;
pub(super) mod group_keys;
pub(super) mod key;
pub(super) mod key_filter;
pub(super) mod lookup;
