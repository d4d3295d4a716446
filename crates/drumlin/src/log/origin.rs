//! Which history a log is: the store's random id, and what the store was made from.
//!
//! A folder may be emptied and filled again, a backup put back, `root` lost, while a process has the store open. Then
//! what the process knows fits the names that it finds, and not what is under them. Therefore each entry has a random
//! id, made for one predecessor, which it names: two logs that have one entry in common have all entries before it in
//! common. What is read after something that is known must continue it; otherwise another history lies where this one
//! was, and nothing may be read, changed or deleted there any more.
//!
//! - At every contact (a refresh, a commit, before objects are deleted or a catalog is written: `CommitLog::confirm`)
//!   what is found is compared with what is known (*root.rs*, *follow.rs*). If it is another history, *sealing.rs*
//!   seals the storage for this handle, for good. A process that slept through more than the root can tell counts as
//!   one that has just opened the store (`News::Unproven`).
//! - On opening there is nothing to compare with, except what lies beside the root (*evidence.rs*).
//! - A file of the log must have its one name after each sync (*file.rs*).
//! - Names of blocks and chunks are given once, and what is there under such a name is compared (`WriteMode::Once`). In
//!   a store that several processes write, a session numbers its blocks from a random number on. After a loss was
//!   accepted, the store gets another id, and the session numbers that the lost commits may have used are skipped.
//! - Nothing is made over remains: blocks, catalogs or logs without `root` or `format` are a damaged store, not an
//!   empty place.
//!
//! ```text
//! witness, 56 bytes, little-endian, within one sector
//!  0  8  magic "DRUMSEEN"
//!  8  4  format version (1)
//! 12  4  CRC32C of bytes 16..56, continued over the object's name and offset 0
//! 16 16  id of the store
//! 32  8  seq of a commit that was made
//! 40 16  the id of its entry
//! ```
//!
//! The witness lies beside the root and says of a commit that it was made, so that an older root is noticed. It may say
//! less than is true, never more.

use serde::{Deserialize, Serialize};

use crate::base::{EntryId, Error, ErrorKind, Seq, checksum_at};
use crate::storage::names;

const MAGIC: &[u8; 8] = b"DRUMSEEN";
const VERSION: u32 = 1;
const BYTES: usize = 56;

/// A commit of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// The store's id.
    pub store: u128,
    /// The commit's number.
    pub seq: Seq,
    /// Its entry.
    pub entry: EntryId,
}

/// Where a log's history begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The store's id; 0 in a store of an earlier build that has none yet.
    pub store: u128,
    /// The commit after which it went ways of its own: when a loss was accepted, or it was salvaged.
    pub parent: Option<Point>,
}

impl Origin {
    /// The id that stands for the entry before the first.
    pub fn first(&self) -> EntryId {
        EntryId(self.store)
    }

    /// That the store continues after `point`, without what may have followed it there.
    pub fn fork(store: u128, point: Point) -> Self {
        Self { store, parent: Some(point) }
    }
}

/// Continues what is known; what else lies there is `found`.
pub fn other_store(known: u128, found: &Origin) -> Error {
    let how = match found.parent {
        Some(parent) if parent.store == known => {
            format!("the store was continued from commit {} after a loss was accepted", parent.seq)
        }
        _ => "the store that was opened was replaced by another one".to_owned(),
    };
    let ids = format!("its id is {:032x}; the store that was opened has {known:032x}", found.store);
    Error::other_history(ErrorKind::Closed, format!("{how} ({ids}); {CLOSED}"))
}

/// What the handle that notices it does from then on.
pub const CLOSED: &str = "this handle no longer reads, changes or deletes anything; open the store again";

/// What to do about a store that is not what it was.
pub const RESTORE: &str = "restore a backup, copy what can be read with `drumlin salvage`, or, if no other process \
                           uses the store, open it with accept_loss to continue with what is left";

/// The bytes of the witness of a commit.
pub fn encode_witness(point: &Point) -> Vec<u8> {
    let mut out = Vec::with_capacity(BYTES);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&point.store.to_le_bytes());
    out.extend_from_slice(&point.seq.0.to_le_bytes());
    out.extend_from_slice(&point.entry.0.to_le_bytes());
    let sum = checksum_at(&out[16..], names::WITNESS, 0);
    out[12..16].copy_from_slice(&sum.to_le_bytes());
    out
}

/// What a witness says; `None` if its checksum does not match.
pub fn decode_witness(bytes: &[u8]) -> Option<Point> {
    let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    let id = |at: usize| u128::from_le_bytes(bytes[at..at + 16].try_into().expect("16 bytes"));
    let sound =
        &bytes[..8] == MAGIC && number(8) == VERSION && number(12) == checksum_at(&bytes[16..], names::WITNESS, 0);
    let seq = Seq(u64::from_le_bytes(bytes[32..40].try_into().expect("8 bytes")));
    sound.then(|| Point { store: id(16), seq, entry: EntryId(id(40)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_witness_comes_back_and_one_that_is_damaged_says_nothing() {
        let point = Point { store: u128::MAX - 5, seq: Seq(7_000_000_000), entry: EntryId(3) };
        let bytes = encode_witness(&point);
        assert_eq!(decode_witness(&bytes), Some(point));
        for at in 0..BYTES {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(decode_witness(&damaged), None, "byte {at}");
            assert_eq!(decode_witness(&bytes[..at]), None, "cut at {at}");
        }
    }
}
