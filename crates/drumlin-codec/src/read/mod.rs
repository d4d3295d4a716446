//! Trees of nodes to columns: numbers.rs and texts.rs say what is read, the files beside how.

pub mod numbers;
pub mod parse;
pub mod parts;
pub mod texts;

use std::cell::Cell;

use crate::{Error, Result};

/// Nodes deeper than this are refused.
pub const DEPTH_MAX: usize = 16;

/// What a reader may allocate for one tree, whatever its nodes claim.
#[derive(Debug)]
pub struct Limit {
    /// Elements of one node.
    elements: usize,
    /// Bytes of all together.
    room: Cell<u64>,
}

impl Limit {
    /// At most `elements` elements in a node, and `bytes` bytes in all that are held beside what the caller asks for.
    pub fn new(elements: usize, bytes: u64) -> Self {
        Self { elements, room: Cell::new(bytes) }
    }

    pub(crate) fn check(&self, elements: usize) -> Result<()> {
        if elements > self.elements {
            return Err(Error::new(format!("{elements} elements are more than a segment can hold")));
        }
        Ok(())
    }

    /// Takes memory for `count` elements of `width` bytes.
    pub(crate) fn take(&self, count: usize, width: usize) -> Result<()> {
        let asked = (count as u64).saturating_mul(width as u64);
        let left = self.room.get().checked_sub(asked);
        self.room.set(left.ok_or_else(|| {
            Error::new(format!("{count} elements of {width} bytes are more than a segment can hold"))
        })?);
        Ok(())
    }
}
