//! A bounded cache of verified bytes and decoded directories, by block and offset.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::Directory;
use crate::base::BlockId;

#[derive(Clone)]
pub(super) enum Cached {
    Segment(Bytes),
    Directory(Arc<Directory>),
    /// Something derived from a row group, and its size in bytes.
    Derived(Arc<dyn Any + Send + Sync>, u64),
}

#[derive(Clone)]
struct Weight;

impl Weighter<(BlockId, u64), Cached> for Weight {
    fn weight(&self, _: &(BlockId, u64), value: &Cached) -> u64 {
        const OVERHEAD: u64 = 96;
        OVERHEAD
            + match value {
                Cached::Segment(bytes) => bytes.len() as u64,
                Cached::Directory(directory) => directory.columns.len() as u64 * 160,
                Cached::Derived(_, bytes) => *bytes,
            }
    }
}

/// Statistics of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStat {
    /// Look-ups answered from memory.
    pub hits: u64,
    /// Look-ups that went to storage.
    pub misses: u64,
    /// Bytes held.
    pub bytes: u64,
    /// The limit on them.
    pub bytes_max: u64,
}

pub(super) struct BlockCache {
    cache: Cache<(BlockId, u64), Cached, Weight>,
    bytes_max: u64,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl BlockCache {
    pub fn new(bytes_max: u64) -> Self {
        // About one entry for each 64 KiB.
        let items = usize::try_from(bytes_max >> 16).unwrap_or(usize::MAX).clamp(64, 1 << 20);
        Self {
            cache: Cache::with_weighter(items, bytes_max, Weight),
            bytes_max,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    pub fn get(&self, block: BlockId, offset: u64) -> Option<Cached> {
        let found = self.cache.get(&(block, offset));
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// Looks an entry up without counting it as a use.
    pub fn peek(&self, block: BlockId, offset: u64) -> Option<Cached> {
        self.cache.peek(&(block, offset))
    }

    pub fn insert(&self, block: BlockId, offset: u64, value: Cached) {
        self.cache.insert((block, offset), value);
    }

    /// The limit on the bytes held.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    pub fn stat(&self) -> CacheStat {
        CacheStat {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            bytes: self.cache.weight(),
            bytes_max: self.bytes_max,
        }
    }
}
