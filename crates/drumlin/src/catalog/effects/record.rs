//! The effects of one transaction, and their encoding in the log.

use serde::{Deserialize, Serialize};

use crate::base::{Error, Result, TableId};
use crate::catalog::Effect;

/// Effects that happen together or not at all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransactionRecord {
    /// In order.
    pub effects: Vec<Effect>,
}

/// Payloads smaller than this are not compressed: it would save little.
const COMPRESSED_FROM: usize = 512;
/// No compressed byte expands to more than this many.
const EXPANSION_MAX: usize = 255;
const PLAIN: u8 = 0;
const LZ4: u8 = 1;

impl TransactionRecord {
    /// Encodes the transactions of one entry: a byte that says how, then postcard, compressed if that is shorter.
    pub fn encode(transactions: &[TransactionRecord]) -> Result<Vec<u8>> {
        let plain = postcard::to_extend(transactions, vec![PLAIN])
            .map_err(|e| Error::invalid("a commit could not be encoded").with_source(e.to_string()))?;
        if plain.len() < COMPRESSED_FROM {
            return Ok(plain);
        }
        let content = &plain[1..];
        let Ok(len) = u32::try_from(content.len()) else { return Ok(plain) };
        let mut packed = vec![0; 5 + lz4_flex::block::get_maximum_output_size(content.len())];
        packed[0] = LZ4;
        packed[1..5].copy_from_slice(&len.to_le_bytes());
        match lz4_flex::block::compress_into(content, &mut packed[5..]) {
            Ok(bytes) if 5 + bytes < plain.len() => {
                packed.truncate(5 + bytes);
                Ok(packed)
            }
            _ => Ok(plain),
        }
    }

    /// The maximum number of bytes that it takes in the log.
    pub fn bytes(&self) -> u64 {
        let counted = postcard::serialize_with_flavor(self, postcard::ser_flavors::Size::default());
        counted.map_or(u64::MAX, |bytes| bytes as u64)
    }

    /// The effect that takes the most bytes.
    pub fn largest(&self) -> Option<&Effect> {
        let bytes = |effect: &&Effect| {
            postcard::serialize_with_flavor(*effect, postcard::ser_flavors::Size::default()).unwrap_or(usize::MAX)
        };
        self.effects.iter().max_by_key(bytes)
    }

    /// The number of effects on nodes.
    pub fn nodes(&self) -> usize {
        let nodes = |effect: &Effect| if let Effect::Nodes(nodes) = effect { nodes.len() } else { 0 };
        self.effects.iter().map(nodes).sum()
    }

    /// The tables to which transactions write rows by key; `None` if one of them does anything else.
    pub fn tables_written(transactions: &[TransactionRecord]) -> Option<Vec<TableId>> {
        let effects = transactions.iter().flat_map(|transaction| &transaction.effects);
        effects.map(|effect| if let Effect::WriteRows { table, .. } = effect { Some(*table) } else { None }).collect()
    }

    /// Decodes an entry's payload.
    pub fn decode(payload: &[u8]) -> Result<Vec<TransactionRecord>> {
        let bad =
            |what: &dyn std::fmt::Display| Error::corrupt(format!("the effects of a commit cannot be decoded: {what}"));
        match payload.split_first() {
            Some((&PLAIN, plain)) => postcard::from_bytes(plain).map_err(|e| bad(&e)),
            Some((&LZ4, packed)) => {
                let (len, packed) = packed.split_first_chunk::<4>().ok_or_else(|| bad(&"it has no length"))?;
                let len = u32::from_le_bytes(*len) as usize;
                if len > packed.len().saturating_mul(EXPANSION_MAX) {
                    return Err(bad(&"it has an impossible length"));
                }
                let plain = lz4_flex::block::decompress(packed, len).map_err(|e| bad(&e))?;
                postcard::from_bytes(&plain).map_err(|e| bad(&e))
            }
            _ => Err(bad(&"it has an unknown form")),
        }
    }
}
