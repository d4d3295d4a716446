//! Which blocks are still needed: live bytes are counted, so that what a drop frees is known without reading anything.
//!
//! Invariants: a block's `parts` are the distinct addresses in it that some row group record names; a block whose last
//! part is released is condemned at once, and stays listed until its object is deleted. A block that travelled in its
//! commit has no object, so it is removed at once.
//!
//! Addresses are counted over all records of all tables, since copies, restored versions and records for snapshots
//! share them. A gain counts only when the last use goes, and a repack moves an address for all tables that name it, in
//! one effect.

use bytes::Bytes;
use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::base::planted::{Bug, planted};
use crate::base::{BlockId, Error, Result, Seq, Timestamp};
use crate::block::Address;

/// How much of a block is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockUse {
    /// Size of the object in bytes.
    pub bytes: u64,
    /// Bytes of the row groups in use.
    pub live_bytes: u64,
    /// Row groups in use.
    pub parts: u64,
}

/// The content of a block that travels in commits and catalog snapshots until a checkpoint moves it to storage.
#[derive(Clone, Debug)]
pub struct Inline(pub Bytes);

impl PartialEq for Inline {
    fn eq(&self, other: &Self) -> bool {
        // Usually the same memory.
        let same = self.0.as_ptr() == other.0.as_ptr() && self.0.len() == other.0.len();
        same || self.0 == other.0
    }
}

impl Eq for Inline {}

impl Serialize for Inline {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Inline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Ok(Self(<Vec<u8>>::deserialize(deserializer)?.into()))
    }
}

/// A block that nothing needs any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condemned {
    /// Size of the object in bytes.
    pub bytes: u64,
    /// The commit that released it: only readers of older states may still need it.
    pub seq: Seq,
    /// Its time.
    pub time: Timestamp,
}

/// The use of all blocks.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pub(super) blocks: OrdMap<BlockId, BlockUse>,
    /// Addresses that more than one record names, with the number of records beyond the first.
    pub(super) shared: OrdMap<Address, u64>,
    pub(super) condemned: OrdMap<BlockId, Condemned>,
    /// Blocks in use that are not on storage.
    pub(super) inline: OrdMap<BlockId, Inline>,
    /// The time of the commit being applied.
    pub(super) now: Timestamp,
}

impl PartialEq for Ledger {
    /// Ignores the time of the commit being applied.
    fn eq(&self, other: &Self) -> bool {
        self.same_use(other) && self.condemned == other.condemned && self.inline == other.inline
    }
}

impl Ledger {
    /// Blocks in use.
    pub fn blocks(&self) -> impl Iterator<Item = (&BlockId, &BlockUse)> {
        self.blocks.iter()
    }

    /// Whether a block is in use or condemned: on storage for a reason.
    pub fn knows(&self, block: BlockId) -> bool {
        self.blocks.contains_key(&block) || self.condemned.contains_key(&block)
    }

    /// Blocks that wait to be deleted.
    pub fn condemned(&self) -> impl Iterator<Item = (&BlockId, &Condemned)> {
        self.condemned.iter()
    }

    /// Blocks in use that are not on storage.
    pub fn inline(&self) -> impl Iterator<Item = (&BlockId, &Inline)> {
        self.inline.iter()
    }

    /// Of these, those that are not in `before`. O(blocks that came and went since).
    pub fn inline_since(&self, before: &Self) -> Vec<(BlockId, Inline)> {
        let came = |item: DiffItem<'_, '_, BlockId, Inline>| match item {
            DiffItem::Add(block, content) => Some((*block, content.clone())),
            _ => None,
        };
        before.inline.diff(&self.inline).filter_map(came).collect()
    }

    /// The blocks in use on storage, with their sizes in bytes.
    pub fn stored(&self) -> impl Iterator<Item = (BlockId, u64)> {
        let stored = self.blocks.iter().filter(|(block, _)| !self.is_inline(**block));
        stored.map(|(block, used)| (*block, used.bytes))
    }

    /// Whether a block is one of these.
    pub fn is_stored(&self, block: BlockId) -> bool {
        self.blocks.contains_key(&block) && !self.is_inline(block)
    }

    /// Of these, those that are not in `before`. O(blocks that came and went since).
    pub fn stored_since(&self, before: &Self) -> Vec<(BlockId, u64)> {
        let came = |item: DiffItem<'_, '_, BlockId, BlockUse>| match item {
            DiffItem::Add(block, used) if !self.inline.contains_key(block) => Some((*block, used.bytes)),
            _ => None,
        };
        before.blocks.diff(&self.blocks).filter_map(came).collect()
    }

    /// The blocks that `before` knows on storage, and this one no longer does. O(blocks that came and went since).
    pub fn forgotten_since(&self, before: &Self) -> Vec<BlockId> {
        let condemned = before.condemned.diff(&self.condemned).filter_map(|item| match item {
            DiffItem::Remove(block, _) => Some(*block),
            _ => None,
        });
        self.left_since(before).into_iter().chain(condemned).filter(|block| !self.knows(*block)).collect()
    }

    /// The blocks in use on storage in `before` that no longer are. O(blocks that came and went since).
    pub fn left_since(&self, before: &Self) -> Vec<BlockId> {
        let left = |item: DiffItem<'_, '_, BlockId, BlockUse>| match item {
            DiffItem::Remove(block, _) if !before.inline.contains_key(block) => Some(*block),
            _ => None,
        };
        before.blocks.diff(&self.blocks).filter_map(left).collect()
    }

    /// The commit that released a block, which waits to be deleted.
    pub fn condemned_at(&self, block: BlockId) -> Option<Seq> {
        self.condemned.get(&block).map(|condemned| condemned.seq)
    }

    /// The content of a block in use that is not on storage.
    pub fn content(&self, block: BlockId) -> Option<&Inline> {
        self.inline.get(&block)
    }

    /// Whether a block in use is not on storage.
    pub fn is_inline(&self, block: BlockId) -> bool {
        self.inline.contains_key(&block)
    }

    /// Blocks that wait to be deleted, were released at `until` or before, and are not needed by readers of `oldest` or
    /// newer states; without `oldest`, there are no readers.
    pub fn unneeded(&self, oldest: Option<Seq>, until: Timestamp) -> impl Iterator<Item = (BlockId, u64)> {
        let unneeded =
            move |condemned: &Condemned| oldest.is_none_or(|oldest| oldest >= condemned.seq) && condemned.time <= until;
        let condemned = self.condemned().filter(move |(_, condemned)| unneeded(condemned));
        condemned.map(|(block, condemned)| (*block, condemned.bytes))
    }

    /// Whether both agree on every block in use.
    pub(super) fn same_use(&self, other: &Ledger) -> bool {
        self.blocks == other.blocks && self.shared == other.shared
    }

    pub(super) fn add_block(&mut self, block: BlockId, bytes: u64) -> Result<()> {
        if self.knows(block) {
            return Err(Error::corrupt(format!("block {block} is added twice")));
        }
        self.blocks.insert(block, BlockUse { bytes, ..BlockUse::default() });
        Ok(())
    }

    pub(super) fn add_inline(&mut self, block: BlockId, content: &Inline) -> Result<()> {
        self.add_block(block, content.0.len() as u64)?;
        self.inline.insert(block, content.clone());
        Ok(())
    }

    /// A new record names `address`.
    pub(super) fn add(&mut self, address: &Address) -> Result<()> {
        let unknown = || Error::corrupt(format!("a row group is in the unknown block {}", address.block));
        let used = self.blocks.get_mut(&address.block).ok_or_else(unknown)?;
        used.live_bytes = used.live_bytes.checked_add(address.bytes()).ok_or_else(unknown)?;
        used.parts += 1;
        Ok(())
    }

    /// One more record names `address`.
    pub(super) fn share(&mut self, address: &Address) {
        if !planted(Bug::ForgetShared) {
            *self.shared.entry(*address).or_insert(0) += 1;
        }
    }

    /// The number of records that name `address`, which is in use.
    pub fn records(&self, address: &Address) -> u64 {
        1 + self.shared.get(address).copied().unwrap_or(0)
    }

    /// How often records name something in a block. O(row groups of it that several records name).
    pub(super) fn records_in(&self, block: BlockId) -> u64 {
        let parts = self.blocks.get(&block).map_or(0, |used| used.parts);
        let from = Address { block, offset: 0, segment_bytes: 0, directory_bytes: 0, checksum: 0 };
        let shared = self.shared.range(from..).take_while(|(address, _)| address.block == block);
        parts + shared.map(|(_, more)| more).sum::<u64>()
    }

    /// One record fewer names `address`.
    pub(super) fn release(&mut self, address: &Address, seq: Seq) -> Result<()> {
        if let Some(more) = self.shared.get_mut(address) {
            *more -= 1;
            if *more == 0 {
                self.shared.remove(address);
            }
            return Ok(());
        }
        let unknown = || Error::corrupt(format!("block {} is released more often than it was used", address.block));
        let used = self.blocks.get_mut(&address.block).ok_or_else(unknown)?;
        used.live_bytes = used.live_bytes.checked_sub(address.bytes()).ok_or_else(unknown)?;
        used.parts = used.parts.checked_sub(1).ok_or_else(unknown)?;
        if used.parts == 0 {
            let bytes = used.bytes;
            self.blocks.remove(&address.block);
            // What is not on storage need not be deleted there.
            if self.inline.remove(&address.block).is_some() && !planted(Bug::CondemnInline) {
                return Ok(());
            }
            self.condemned.insert(address.block, Condemned { bytes, seq, time: self.now });
        }
        Ok(())
    }

    pub(super) fn reclaimed(&mut self, block: BlockId) {
        self.condemned.remove(&block);
    }
}
