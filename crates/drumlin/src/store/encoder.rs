//! What encoding frames needs of a store, and all that it needs: so that workers without a store encode as a store does.

use super::Store;
use crate::base::Pool;

/// Encodes frames into row groups.
#[derive(Clone, Copy)]
pub(super) struct Encoder<'a> {
    pub pool: &'a Pool,
    /// How much memory it may take, in bytes, about.
    pub memory_bytes: u64,
}

impl Store {
    pub(super) fn encoder(&self) -> Encoder<'_> {
        Encoder { pool: &self.inner.env.pool, memory_bytes: self.inner.options.memory_bytes }
    }
}
