//! What encoding frames needs of a store, and all that it needs: so that workers without a store encode as a store does.

use arrow::array::RecordBatch;

use crate::base::{Pool, Result};
use crate::block::EncodedRowGroup;
use crate::segment::Proof;
use crate::store::Store;
use crate::table::{Schemes, TableCodec, encode_group, key_filter};

/// Encodes frames into row groups.
#[derive(Clone, Copy)]
pub(in crate::store) struct Encoder<'a> {
    pub pool: &'a Pool,
    /// How much memory it may take, in bytes, about.
    pub memory_bytes: u64,
}

impl Store {
    pub(in crate::store) fn encoder(&self) -> Encoder<'_> {
        Encoder { pool: &self.env().pool, memory_bytes: self.options().memory_bytes }
    }
}

/// Encodes a row group of rows in order, with its filter.
pub(in crate::store) fn encode_keyed_group(
    pool: &Pool,
    codec: &TableCodec,
    rows: RecordBatch,
    like: Option<&Schemes>,
    proof: Proof,
) -> Result<(EncodedRowGroup, Schemes)> {
    let filter = key_filter(&codec.keys_of(&rows)?.0);
    let (group, schemes) = encode_group(pool, vec![rows], codec.schema(), like, proof)?;
    Ok((EncodedRowGroup { filter, ..group }, schemes))
}
