//! Long texts by OnPair: a dictionary of frequent substrings, and for each row the codes of the substrings it consists
//! of (codes.rs).
//!
//! The codec stores and decodes the form. Training, encoding and rewriting are done here, because a trained dictionary
//! serves later row groups too, and because rows can be moved between segments as codes, without decoding the text:
//! that is all that a vacuum of texts costs. After Gargiulo and Venturini, "OnPair: short strings compression for fast
//! random access" (2025).

use std::sync::Arc;

use bytes::Bytes;
use onpair::{DEFAULT_CONFIG, Parser};

/// From this many rows on, strings are treated as a long text.
pub(in crate::segment) const LONG_ROWS_MIN: usize = 4096;

/// The dictionary trained on a text.
#[derive(Debug)]
pub(in crate::segment) struct Text {
    pub parser: Parser,
    pub dictionary: Dictionary,
}

/// A dictionary in its stored form.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::segment) struct Dictionary {
    pub bytes: Bytes,
    /// Where each substring begins, and the end of the last.
    pub offsets: Arc<[u32]>,
}

impl Text {
    /// Trains a dictionary on `values`.
    pub fn train(values: &[&[u8]]) -> Self {
        let parser = Parser::train_rows(values, DEFAULT_CONFIG);
        let bytes = Bytes::copy_from_slice(parser.dict.bytes());
        let dictionary = Dictionary { bytes, offsets: parser.dict.offsets().into() };
        Self { parser, dictionary }
    }
}
