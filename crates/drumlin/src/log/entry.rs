//! The content of the log: entries, and the name of the catalog snapshot that they continue.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::base::{EntryId, Seq, SessionId, Timestamp};

/// One commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number: one more than that of the previous entry.
    pub seq: Seq,
    /// Names this attempt, so that a retry is recognised.
    pub id: EntryId,
    /// The id of the entry before it, so that what it continues is known; the store's id before the first. `None` in entries of
    /// earlier builds.
    pub prev: Option<EntryId>,
    /// The session that wrote it; 0 if none was registered.
    pub session: SessionId,
    /// The later of the clock's time and the previous entry's.
    pub time: Timestamp,
    /// Format features that a reader must know, one bit each.
    pub features: u64,
    /// The encoded effects.
    pub payload: Bytes,
}

/// The catalog snapshot that the log continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// The state's seq. Entries after it are in the log.
    pub seq: Seq,
    /// Entries from this one on are in the log: those up to `seq` for the rows written by key, of which the snapshot
    /// records only that they exist.
    pub from: Seq,
    /// Where its index begins in its object.
    pub offset: u64,
    /// The length of the index, which ends the object.
    pub bytes: u32,
    /// CRC32C of the index over data, name and offset.
    pub checksum: u32,
}
