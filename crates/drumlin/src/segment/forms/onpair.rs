//! Long texts by OnPair: a dictionary of frequent substrings, and for each row the codes of the substrings it consists
//! of (codes.rs).
//!
//! Vortex stores and decodes the form. Training, encoding and rewriting are done here, because a trained dictionary
//! serves later row groups too, and because rows can be moved between segments as codes, without decoding the text:
//! that is all that a vacuum of texts costs. After Gargiulo and Venturini, "OnPair: short strings compression for fast
//! random access" (2025).

use onpair::{DEFAULT_CONFIG, Parser};
use vortex_buffer::{Alignment, Buffer, ByteBuffer, ByteBufferMut};

/// The dictionary trained on a text.
#[derive(Debug)]
pub(in crate::segment) struct Text {
    pub parser: Parser,
    pub dictionary: Dictionary,
}

/// A dictionary in its stored form.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::segment) struct Dictionary {
    pub bytes: ByteBuffer,
    /// Where each substring begins, and the end of the last.
    pub offsets: Buffer<u32>,
}

impl Text {
    /// Trains a dictionary on `values`.
    pub fn train(values: &[&[u8]]) -> Self {
        let parser = Parser::train_rows(values, DEFAULT_CONFIG);
        let mut bytes = ByteBufferMut::with_capacity_aligned(parser.dict.bytes().len(), Alignment::new(8));
        bytes.extend_from_slice(parser.dict.bytes());
        let dictionary = Dictionary { bytes: bytes.freeze(), offsets: Buffer::copy_from(parser.dict.offsets()) };
        Self { parser, dictionary }
    }
}
