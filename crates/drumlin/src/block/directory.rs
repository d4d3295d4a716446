//! The address of a row group, and the directory that follows its segments.
//!
//! ```text
//! block
//!   0   8  magic "DRUMBLK\0"
//!   8   4  format version (2)
//!  12   4  zero
//!  16   -  row groups; each begins at a multiple of 64 (so the first at 64)
//!
//! row group
//!   segments, one per column, in schema order, each at a multiple of 64
//!   in a table with a key, maybe a filter of its keys, at a multiple of 64
//!   directory, directly after that: postcard encoding of [`Directory`]
//! ```
//!
//! Checksums are CRC32C over the data, then the object's name, then the offset. A segment's is stored in the directory,
//! the directory's in the [`Address`], which the catalog holds: a chain from the log down to every byte.
//!
//! The whole chain: records of the log carry a checksum over their data, their place and their number; the header of a
//! log segment, or the root, names the newest catalog snapshot with the checksum of its index; the index has the
//! checksum of each chunk; the chunks hold addresses. So a byte that is damaged, misplaced or old is found before
//! anybody sees it. Checksums do not stop somebody who repairs them: no decoder trusts the bytes either (see
//! *wire.rs*), and a verification with `deep` decodes everything.

use serde::{Deserialize, Serialize};

use crate::base::{BlockId, Error, Result, checksum_at};
use crate::segment::{ColumnStats, PhysicalForm};
use crate::storage::names;

/// Version of the block layout.
pub const BLOCK_VERSION: u32 = 2;
/// First bytes of every block.
pub const MAGIC: &[u8; 8] = b"DRUMBLK\0";
/// Segments and row groups begin at multiples of this.
pub const ALIGNMENT: u64 = 64;

/// Where a row group lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Address {
    /// The block.
    pub block: BlockId,
    /// Offset of its first segment.
    pub offset: u64,
    /// Bytes of all segments including the gaps between them; the directory follows.
    pub segment_bytes: u64,
    /// Bytes of the directory.
    pub directory_bytes: u32,
    /// Checksum of the directory.
    pub checksum: u32,
}

impl Address {
    /// Bytes of the whole row group.
    pub fn bytes(&self) -> u64 {
        self.segment_bytes + u64::from(self.directory_bytes)
    }
}

/// One column of a row group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnEntry {
    /// Offset in the block.
    pub offset: u64,
    /// Bytes of the segment.
    pub bytes: u64,
    /// Checksum of the segment.
    pub checksum: u32,
    /// What the column holds.
    pub stats: ColumnStats,
    /// How strings are kept.
    pub kept: PhysicalForm,
}

/// What is known of a row group without reading its segments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Directory {
    /// Rows, including deleted ones.
    pub rows: u32,
    /// The columns, in schema order.
    pub columns: Vec<ColumnEntry>,
    /// Recognises most keys that do not exist.
    pub filter: Option<KeyFilter>,
}

/// Where the filter of a row group's keys lies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyFilter {
    /// Offset in the block.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Its checksum.
    pub checksum: u32,
}

impl Directory {
    /// Encodes the directory.
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("a directory in memory can be encoded")
    }

    /// Decodes and checks the directory of the row group at `address`.
    pub fn decode(bytes: &[u8], address: &Address) -> Result<Self> {
        let name = names::block(address.block);
        let offset = address.offset + address.segment_bytes;
        let corrupt = |what: &str| Error::corrupt(format!("{name}: directory at offset {offset}: {what}"));
        if checksum_at(bytes, &name, offset) != address.checksum {
            return Err(corrupt("the checksum does not match"));
        }
        let directory: Directory = postcard::from_bytes(bytes).map_err(|e| corrupt(&e.to_string()))?;
        for column in &directory.columns {
            let end = column.offset.checked_add(column.bytes);
            if column.offset < address.offset || end.is_none_or(|end| end > offset) {
                return Err(corrupt("a segment is outside its row group"));
            }
        }
        if let Some(filter) = &directory.filter {
            let end = filter.offset.checked_add(filter.bytes);
            if filter.offset < address.offset || end.is_none_or(|end| end > offset) {
                return Err(corrupt("the filter is outside its row group"));
            }
        }
        Ok(directory)
    }
}
