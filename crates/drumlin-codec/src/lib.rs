//! Light-weight encodings of numbers and texts.
//!
//! A column is a tree of nodes: integers in few bits, less a reference, times a power of ten; texts in symbols of a dictionary
//! whose codes are integers again. This crate reads such trees from nodes that somebody else has parsed ([`RawNode`]), whole, in
//! part or row by row; tests them for ranges while they are packed; and builds them, choosing the form by what it takes and what
//! it costs to read. It knows nothing of Arrow, of files, or of what columns mean.
//!
//! Invariants: no node makes a reader panic, read outside its buffers, or allocate more than the caller allows ([`Limit`]); the same
//! values give the same nodes.

#![deny(unsafe_code)]

mod bits;
mod cpu;
mod node;
mod pack;
mod proto;
mod read;
mod scale;
#[cfg(test)]
mod tests;
mod word;
mod write;

use std::fmt;

pub use bits::Bits;
pub use node::{ENCODINGS, ONPAIR, RawNode, STEPS, STEPS_BIT, bit_of};
pub use read::Limit;
pub use read::numbers::{Column, Numbers};
pub use read::texts::{Codes, Plain as PlainTexts, TextColumn, Texts};
pub use scale::Exponents;
pub use word::{Memory, Ptype, Word};
pub use write::numbers::numbers;
pub use write::texts::{CodedTexts, chunked, texts};
pub use write::{Built, Effort, Search};

/// What is wrong with a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<str>);

impl Error {
    pub(crate) fn new(message: impl Into<Box<str>>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// A result with that error.
pub type Result<T> = std::result::Result<T, Error>;
