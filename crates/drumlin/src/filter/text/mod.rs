//! The language of filters: from text to a syntax tree and back, and the literals in it. Knows no schema.

pub(super) mod functions;
pub(super) mod moment;
pub(super) mod names;
pub(super) mod number;
pub(super) mod parse;
pub(super) mod parts;
pub(super) mod scalar;
pub(super) mod span;
pub(super) mod syntax;
pub(super) mod words;
