//! The content of the log: entries, and the name of the catalog snapshot that they continue.

use bytes::Bytes;
use imbl::Vector;
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

/// Entries in order, of which a copy costs next to nothing, with the bytes that they take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryList {
    list: Vector<Entry>,
    bytes: usize,
}

impl EntryList {
    /// Adds one at the end.
    pub fn push(&mut self, entry: Entry) {
        self.bytes += Self::bytes_of(&entry);
        self.list.push_back(entry);
    }

    /// The bytes that all take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The bytes that one takes.
    pub fn bytes_of(entry: &Entry) -> usize {
        entry.payload.len() + 64
    }

    /// Those that begin at this number.
    pub fn from(&self, seq: Seq) -> impl Iterator<Item = &Entry> {
        let skipped = self.list.front().map_or(0, |first| seq.0.saturating_sub(first.seq.0));
        self.list.iter().skip(usize::try_from(skipped).unwrap_or(usize::MAX))
    }

    /// The same without those before a number.
    #[must_use]
    pub fn since(&self, seq: Seq) -> Self {
        self.from(seq).cloned().collect()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.list.iter()
    }

    /// The first one.
    pub fn first(&self) -> Option<&Entry> {
        self.list.front()
    }

    /// The last one.
    pub fn last(&self) -> Option<&Entry> {
        self.list.back()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl FromIterator<Entry> for EntryList {
    fn from_iter<T: IntoIterator<Item = Entry>>(entries: T) -> Self {
        let mut list = Self::default();
        entries.into_iter().for_each(|entry| list.push(entry));
        list
    }
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

impl Base {
    /// Whether the log has all entries after this one.
    pub fn reaches(&self, after: Seq) -> bool {
        self.from <= after.next()
    }
}
