//! How a segment lies in bytes, form by form: what encodes a form also decodes it.

pub(super) mod bits;
pub(super) mod codes;
pub(super) mod compact;
pub(super) mod dictionary;
pub(super) mod fixed;
pub(super) mod ipc;
pub(super) mod nested;
pub(super) mod onpair;
pub(super) mod plain;
pub(super) mod tag;
pub(super) mod text;
pub(super) mod tree;
pub(super) mod wire;
pub(super) mod words;
