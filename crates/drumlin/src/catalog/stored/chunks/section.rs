//! Pieces of a section of a catalog snapshot, and where they are stored.

use std::ops::Range;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::base::{Error, Result, Seq, checksum_at};
use crate::storage::names;

/// A chunk is closed once it holds this many bytes.
pub(super) const CHUNK_BYTES: usize = if cfg!(test) { 512 } else { 64 << 10 };
/// A rewritten chunk with fewer bytes is merged with the next one.
pub(super) const SPARSE_BYTES: usize = CHUNK_BYTES / 4;
/// Where a chunk is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkAddress {
    /// The snapshot whose object holds it.
    pub object: Seq,
    /// Where it begins in the object.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
    /// CRC32C over its bytes, its object's name and its offset.
    pub checksum: u32,
}

impl ChunkAddress {
    /// Its range in the object; `Corrupt` if it is impossible.
    pub fn range(&self) -> Result<Range<u64>> {
        let end = self.offset.checked_add(self.bytes);
        Ok(self.offset..end.ok_or_else(|| damaged(self, &"its end is too large"))?)
    }
}

/// A piece of a section: the items from `first` up to the next chunk's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CatalogChunk<K> {
    pub first: K,
    pub place: ChunkAddress,
}

pub(super) type Chunks<K> = Vec<CatalogChunk<K>>;

pub(super) fn damaged(place: &ChunkAddress, what: &dyn std::fmt::Display) -> Error {
    Error::corrupt(format!("{}: chunk at offset {}: {what}", names::catalog(place.object), place.offset))
}

/// The chunks being written.
pub(super) struct Pack {
    pub object: Seq,
    pub name: String,
    pub offset: u64,
    pub parts: Vec<Bytes>,
}

impl Pack {
    pub fn add<K>(&mut self, first: K, bytes: impl Into<Bytes>) -> CatalogChunk<K> {
        let bytes: Bytes = bytes.into();
        let checksum = checksum_at(&bytes, &self.name, self.offset);
        let place = ChunkAddress { object: self.object, offset: self.offset, bytes: bytes.len() as u64, checksum };
        self.offset += place.bytes;
        self.parts.push(bytes);
        CatalogChunk { first, place }
    }
}

/// Cuts items into chunks.
pub(super) struct ChunkCutter<'a, K> {
    pack: &'a mut Pack,
    done: Chunks<K>,
    first: Option<K>,
    bytes: Vec<u8>,
}

impl<K> ChunkCutter<'_, K> {
    /// Adds an item; `write` gets the chunk that it goes to, which is empty for the first item.
    pub fn item(&mut self, key: impl FnOnce() -> K, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        if self.bytes.len() >= CHUNK_BYTES {
            self.cut();
        }
        if self.first.is_none() {
            self.first = Some(key());
        }
        write(&mut self.bytes)
    }

    pub fn cut(&mut self) {
        if let Some(first) = self.first.take() {
            let bytes = std::mem::take(&mut self.bytes);
            self.done.push(self.pack.add(first, bytes));
        }
    }
}

/// A section's previous chunks, and which of them must be rewritten.
pub(super) struct Section<'a, K> {
    old: &'a [CatalogChunk<K>],
    stale: Vec<bool>,
    /// If there are no old chunks: whether there is anything to write.
    fresh: bool,
}

impl<'a, K: Ord + Clone> Section<'a, K> {
    pub fn new(old: &'a [CatalogChunk<K>], emptied: &[Seq]) -> Self {
        let stale = old.iter().map(|chunk| emptied.contains(&chunk.place.object)).collect();
        Self { old, stale, fresh: false }
    }

    /// Notes that an item differs.
    pub fn touch(&mut self, key: &K) {
        let at = self.old.partition_point(|chunk| chunk.first <= *key).saturating_sub(1);
        match self.stale.get_mut(at) {
            Some(stale) => *stale = true,
            None => self.fresh = true,
        }
    }

    /// The section's new chunks. `items` returns those of a range, from the first key up to, but excluding, the second.
    pub fn write(
        self,
        pack: &mut Pack,
        items: impl Fn(Option<&K>, Option<&K>, &mut ChunkCutter<'_, K>) -> Result<()>,
    ) -> Result<Chunks<K>> {
        let mut cutter = ChunkCutter { pack, done: Vec::new(), first: None, bytes: Vec::new() };
        if self.fresh {
            items(None, None, &mut cutter)?;
        }
        for (at, chunk) in self.old.iter().enumerate() {
            let sparse = cutter.first.is_some() && cutter.bytes.len() < SPARSE_BYTES;
            if self.stale[at] || sparse {
                let from = (at > 0).then_some(&chunk.first);
                items(from, self.old.get(at + 1).map(|next| &next.first), &mut cutter)?;
            } else {
                cutter.cut();
                cutter.done.push(chunk.clone());
            }
        }
        cutter.cut();
        Ok(cutter.done)
    }
}
