//! Blocks: immutable objects of about 8 MiB that hold the encoded columns of row groups, of one or many tables.
//!
//! Knows where bytes are and that they are the bytes written; not what they are for.

mod cache;
mod directory;
mod reader;
mod repack;
mod row_group;
mod writer;

pub use cache::CacheStat;
pub use directory::{ALIGNMENT, Address, ColumnEntry, Directory, KeyFilter};
pub use reader::{BlockReader, MissingBlock, Prefetch};
pub use repack::{BlockFill, RepackPlan, repack};
pub use row_group::EncodedRowGroup;
pub use writer::{BlockNumbers, BlockWriter, NewAddresses, WrittenBlock};
