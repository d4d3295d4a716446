//! Packs encoded row groups into blocks, in the order they are pushed, and writes each block once it is full.
//!
//! Addresses depend on that order alone, so the bytes on disk do not depend on the number of threads. Blocks that a
//! failed or cancelled operation wrote are deleted when the writer is dropped, and once more by the next reclaim; what that
//! misses is removed with the session.
//!
//! Where another process may end the session before the commit and remove its blocks, a writer keeps what it has written, up
//! to a limit, so that it can be written again in another session without its source.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use super::directory::{ALIGNMENT, Address, BLOCK_VERSION, ColumnEntry, Directory, KeyFilter, MAGIC};
use super::reader::{BlockReader, MissingBlock};
use super::row_group::{EncodedRowGroup, row_group};
use crate::base::planted::{Bug, planted};
use crate::base::{BlockId, Error, ErrorKind, Result, SessionId, checksum_at};
use crate::storage::{InlineStorage, Storage, WriteMode, names};

/// Hands out the numbers of one session's blocks.
#[derive(Debug)]
pub struct BlockNumbers {
    session: SessionId,
    next: AtomicU64,
    /// Whether one of its names was taken.
    meets: AtomicBool,
    /// Blocks that no commit will refer to. They were deleted, but that may have failed, and a put may arrive late.
    abandoned: Mutex<Vec<BlockId>>,
}

impl BlockNumbers {
    /// Numbers for `session`, which has written nothing yet.
    pub fn new(session: SessionId) -> Self {
        Self::of_attempt(session, 0)
    }

    /// Notes blocks that no commit will refer to, to be deleted later.
    pub fn abandon(&self, blocks: impl IntoIterator<Item = BlockId>) {
        if !planted(Bug::ForgetAbandoned) {
            self.abandoned.lock().extend(blocks);
        }
    }

    /// Takes the noted blocks.
    pub fn take_abandoned(&self) -> Vec<BlockId> {
        std::mem::take(&mut *self.abandoned.lock())
    }

    /// Numbers of one attempt at a task, of many that write under one number at a time: from `first` on.
    pub fn of_attempt(session: SessionId, first: u64) -> Self {
        Self { session, next: AtomicU64::new(first), meets: AtomicBool::new(false), abandoned: Mutex::default() }
    }

    /// Whether one of its names was taken, so that the session is to be given up.
    pub fn meets_others(&self) -> bool {
        self.meets.load(Ordering::SeqCst)
    }

    /// The session that writes.
    pub fn session(&self) -> SessionId {
        self.session
    }

    fn next(&self) -> BlockId {
        BlockId { session: self.session, number: self.next.fetch_add(1, Ordering::SeqCst) }
    }
}

/// A block that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenBlock {
    /// Its id.
    pub block: BlockId,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its content, if it is not on storage but travels in the commit that refers to it.
    pub inline: Option<Bytes>,
}

/// Packs row groups into blocks.
pub struct BlockWriter {
    storage: Arc<InlineStorage>,
    numbers: Arc<BlockNumbers>,
    block_bytes: u64,
    /// A writer's only block may travel in the commit if it is no larger.
    inline_bytes: u64,
    current: Option<Current>,
    written: Vec<WrittenBlock>,
    /// Where the row groups were placed, in order.
    placed: Vec<Address>,
    kept: KeptBlocks,
    process: u32,
    /// Asked before each put.
    permit: Option<Permit>,
    /// Asked before blocks are deleted.
    confirm: Option<Permit>,
}

/// Fails once nothing may be written any more, or nothing deleted.
pub type Permit = Box<dyn Fn() -> Result<()> + Send>;

/// Blocks as they were written; empty once they exceed `bytes_max`.
#[derive(Default)]
struct KeptBlocks {
    blocks: BTreeMap<BlockId, Vec<Bytes>>,
    bytes: u64,
    bytes_max: u64,
    /// How often they have been written again.
    times: u32,
}

/// The blocks of a writer are written again at most this many times.
const TIMES_MAX: u32 = 16;

impl KeptBlocks {
    fn push(&mut self, current: &Current) {
        self.bytes = self.bytes.saturating_add(current.bytes);
        match self.bytes <= self.bytes_max {
            true => drop(self.blocks.insert(current.id, current.parts.clone())),
            false => self.blocks.clear(),
        }
    }
}

/// The new addresses of row groups that were written again, by their old ones.
pub type NewAddresses = BTreeMap<Address, Address>;

/// The block being filled.
struct Current {
    id: BlockId,
    name: String,
    parts: Vec<Bytes>,
    bytes: u64,
}

impl Current {
    fn push(&mut self, part: Bytes) {
        self.bytes += part.len() as u64;
        self.parts.push(part);
    }

    fn align(&mut self) {
        const ZEROS: [u8; ALIGNMENT as usize] = [0; ALIGNMENT as usize];
        let gap = self.bytes.next_multiple_of(ALIGNMENT) - self.bytes;
        if gap > 0 {
            self.push(Bytes::from_static(&ZEROS[..gap as usize]));
        }
    }
}

impl BlockWriter {
    /// A writer that closes a block once it holds `block_bytes`.
    pub fn new(storage: Arc<InlineStorage>, numbers: Arc<BlockNumbers>, block_bytes: u64) -> Self {
        let (current, written, placed, kept) = (None, Vec::new(), Vec::new(), KeptBlocks::default());
        let (process, permit, confirm) = (std::process::id(), None, None);
        Self {
            storage,
            numbers,
            block_bytes,
            inline_bytes: 0,
            current,
            written,
            placed,
            kept,
            process,
            permit,
            confirm,
        }
    }

    /// The same, keeping up to `bytes` bytes of what it writes for [`BlockWriter::again`].
    #[must_use]
    pub fn keeping(mut self, bytes: u64) -> Self {
        self.kept.bytes_max = bytes;
        self
    }

    /// The same, asking `permit` before each put.
    #[must_use]
    pub fn permitted(mut self, permit: Permit) -> Self {
        self.permit = Some(permit);
        self
    }

    /// The same, asking `confirm` before it deletes blocks that no commit refers to: another store may lie there by now, which has
    /// blocks of the same names.
    #[must_use]
    pub fn confirmed(mut self, confirm: Permit) -> Self {
        self.confirm = Some(confirm);
        self
    }

    /// The session that it writes in.
    pub fn session(&self) -> SessionId {
        self.numbers.session()
    }

    /// Writes everything again with other `numbers`, and returns the new addresses of the row groups; `None` if it has not
    /// kept everything, or if this has been done too often. What was written before is deleted.
    pub fn again(&mut self, numbers: Arc<BlockNumbers>) -> Result<Option<NewAddresses>> {
        let kept = &self.kept.blocks;
        if self.kept.times == TIMES_MAX
            || self.current.is_some()
            || self.written.iter().any(|written| !kept.contains_key(&written.block))
        {
            return Ok(None);
        }
        let blocks: BTreeMap<BlockId, Bytes> =
            kept.iter().map(|(block, parts)| (*block, Bytes::from(parts.concat()))).collect();
        let mut next = Self::new(self.storage.clone(), numbers, self.block_bytes);
        next.inline_bytes = self.inline_bytes;
        (next.kept.bytes_max, next.kept.times) = (self.kept.bytes_max, self.kept.times + 1);
        let mut replaced = NewAddresses::new();
        for address in &self.placed {
            let Some(block) = blocks.get(&address.block) else { continue };
            let (from, to) = (address.offset as usize, (address.offset + address.bytes()) as usize);
            replaced.insert(*address, next.push(row_group(address, &block.slice(from..to))?)?);
        }
        next.finish()?;
        *self = next;
        Ok(Some(replaced))
    }

    /// The same, but what it writes travels in the commit if it is at most `bytes` in total.
    #[must_use]
    pub fn inline(mut self, bytes: u64) -> Self {
        self.inline_bytes = bytes;
        self
    }

    /// Places a row group after the previous ones; writes the block if that fills it.
    pub fn push(&mut self, group: EncodedRowGroup) -> Result<Address> {
        let current = self.current.get_or_insert_with(|| {
            let id = self.numbers.next();
            let mut header = Vec::with_capacity(16);
            header.extend_from_slice(MAGIC);
            header.extend_from_slice(&BLOCK_VERSION.to_le_bytes());
            header.extend_from_slice(&[0; 4]);
            let mut current = Current { id, name: names::block(id), parts: Vec::new(), bytes: 0 };
            current.push(Bytes::from(header));
            current
        });
        current.align();
        let offset = current.bytes;
        let mut columns = Vec::with_capacity(group.segments.len());
        for segment in group.segments {
            current.align();
            columns.push(ColumnEntry {
                offset: current.bytes,
                bytes: segment.bytes.len() as u64,
                checksum: checksum_at(&segment.bytes, &current.name, current.bytes),
                stats: segment.stats,
                kept: segment.kept,
            });
            current.push(Bytes::from(segment.bytes));
        }
        let filter = group.filter.map(|bytes| {
            current.align();
            let (offset, checksum) = (current.bytes, checksum_at(&bytes, &current.name, current.bytes));
            current.push(Bytes::from(bytes));
            KeyFilter { offset, bytes: current.bytes - offset, checksum }
        });
        let directory = Directory { rows: group.rows, columns, filter }.encode();
        let address = Address {
            block: current.id,
            offset,
            segment_bytes: current.bytes - offset,
            directory_bytes: u32::try_from(directory.len()).expect("a directory is far below 4 GiB"),
            checksum: checksum_at(&directory, &current.name, current.bytes),
        };
        current.push(Bytes::from(directory));
        self.placed.push(address);
        if current.bytes >= self.block_bytes {
            self.flush()?;
        }
        Ok(address)
    }

    fn flush(&mut self) -> Result<()> {
        if let Some(current) = self.current.take() {
            self.permit.as_ref().map_or(Ok(()), |permit| permit())?;
            // Listed before the put, so that whatever it left is deleted if it fails.
            self.written.push(WrittenBlock { block: current.id, bytes: current.bytes, inline: None });
            self.kept.push(&current);
            let put = self.storage.put(&current.name, &current.parts, WriteMode::Once);
            if let Err(e) = &put
                && e.kind() == ErrorKind::AlreadyExists
            {
                // It is somebody else's, so it is not to be deleted; and this session meets others.
                self.written.pop();
                self.numbers.meets.store(true, Ordering::SeqCst);
                return Err(Error::unavailable(format!(
                    "{}; nothing was done; try again, and the blocks get other names",
                    e.message()
                )));
            }
            put?;
        }
        Ok(())
    }

    /// Writes the last block. The blocks stay the caller's to abandon until [`BlockWriter::keep`].
    pub fn finish(&mut self) -> Result<&[WrittenBlock]> {
        match self.current.take() {
            Some(current) if self.written.is_empty() && current.bytes <= self.inline_bytes => {
                self.kept.push(&current);
                let bytes = Bytes::from(current.parts.concat());
                self.storage.hold(&current.name, bytes.clone());
                self.written.push(WrittenBlock { block: current.id, bytes: current.bytes, inline: Some(bytes) });
            }
            current => self.current = current,
        }
        self.flush()?;
        Ok(&self.written)
    }

    /// The blocks written so far.
    pub fn written(&self) -> &[WrittenBlock] {
        &self.written
    }

    /// Reads what it has written: all that was placed, since the block being filled is written first.
    pub fn read_back(&mut self) -> Result<BlockReader> {
        self.flush()?;
        Ok(BlockReader::new(self.storage.clone(), 0, MissingBlock::Reclaimed))
    }

    /// Takes back row groups that were placed and are not needed any more; deletes the blocks that hold no others.
    pub fn take_back(&mut self, groups: &BTreeSet<Address>) {
        self.placed.retain(|address| !groups.contains(address));
        let used: BTreeSet<BlockId> = self.placed.iter().map(|address| address.block).collect();
        self.abandon(|block| !used.contains(&block));
    }

    /// Deletes those of its blocks that no commit is to refer to.
    pub fn abandon(&mut self, unused: impl Fn(BlockId) -> bool) {
        let unused: Vec<WrittenBlock> = self.written.extract_if(.., |written| unused(written.block)).collect();
        for written in &unused {
            self.kept.blocks.remove(&written.block);
        }
        self.delete(&unused);
    }

    fn delete(&self, written: &[WrittenBlock]) {
        let names: Vec<String> = written.iter().map(|written| names::block(written.block)).collect();
        if !names.is_empty() && self.confirm.as_ref().is_none_or(|confirm| confirm().is_ok()) {
            // Best effort: a reclaim deletes them again, and so does the process that cleans up after the session has
            // ended.
            self.storage.delete_many(&names);
            self.numbers
                .abandon(written.iter().filter(|written| written.inline.is_none()).map(|written| written.block));
        }
    }

    /// The blocks are referred to by a commit now: dropping the writer leaves them alone.
    pub fn keep(mut self) {
        self.written.clear();
    }
}

impl Drop for BlockWriter {
    fn drop(&mut self) {
        // In a forked process this is a copy, and the blocks belong to the original.
        if self.process != std::process::id() {
            return;
        }
        self.delete(&self.written);
    }
}
