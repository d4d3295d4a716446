//! Blocks on their way to a replica: as they are, under the same names, and read again where they were put.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use crate::base::planted::{Bug, planted};
use crate::base::{BlockId, Env, Error, ErrorKind, Progress, Result, Task};
use crate::block::{Address, BlockReader, MissingBlock};
use crate::catalog::State;
use crate::storage::{InlineStorage, Storage, WriteMode, names};
/// How many bytes are under way at a time, and in how many blocks.
const AHEAD_BYTES: u64 = 64 << 20;
const AHEAD_BLOCKS: usize = 128;
/// How many blocks are looked for in the tables at a time.
const LOT_BLOCKS: usize = 4096;

/// What was copied.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CopiedBlocks {
    pub blocks: u64,
    pub bytes: u64,
}

/// A call that copies blocks.
pub(super) struct Copying<'a> {
    pub task: &'a Task,
    /// What it has copied.
    pub copied: CopiedBlocks,
    /// Called now and then.
    pub beat: &'a mut dyn FnMut() -> Result<()>,
}

/// Copies blocks that `state` needs. Returns those that are gone at the source.
pub(super) fn copy_blocks(
    (from, to): (&InlineStorage, &Arc<InlineStorage>),
    env: &Env,
    state: &State,
    wanted: &[(BlockId, u64)],
    copying: &mut Copying<'_>,
) -> Result<Vec<BlockId>> {
    let Copying { task, copied, beat } = copying;
    let mut gone = Vec::new();
    for lot in wanted.chunks(LOT_BLOCKS) {
        let mut put = BTreeSet::new();
        let mut rest = lot;
        while !rest.is_empty() {
            task.cancel.check()?;
            beat()?;
            let mut ahead = 0;
            let fits = rest.iter().take(AHEAD_BLOCKS).take_while(|(_, bytes)| {
                ahead += bytes;
                ahead <= AHEAD_BYTES
            });
            let (some, after) = rest.split_at(fits.count().max(1));
            rest = after;
            let whole = |bytes: u64| std::iter::once(0..bytes).collect();
            let ranges: Vec<(String, Vec<_>)> =
                some.iter().map(|(block, bytes)| (names::block(*block), whole(*bytes))).collect();
            let mut found: Vec<(BlockId, Bytes)> = Vec::with_capacity(some.len());
            for ((block, _), read) in some.iter().zip(from.get_ranges_of(&ranges)) {
                match read {
                    Ok(mut parts) => found.extend(parts.pop().map(|bytes| (*block, bytes))),
                    Err(e) if e.kind() == ErrorKind::NotFound => gone.push(*block),
                    Err(e) => return Err(e),
                }
            }
            for (block, bytes) in &found {
                put.insert(*block);
                copied.blocks += 1;
                copied.bytes += bytes.len() as u64;
            }
            env.pool.map(found, |(block, bytes)| to.put(&names::block(block), &[bytes], WriteMode::Once))?;
            task.step(Progress { done: copied.blocks, bytes: copied.bytes, ..Progress::default() })?;
        }
        if let Some((_, e)) = check_blocks(to, env, state, &put)?.into_iter().next() {
            return Err(e.context("the block was copied as it is at the source"));
        }
    }
    Ok(gone)
}

/// Reads all row groups of some blocks in the replica, and checks them against the catalog. Those that are damaged are deleted there,
/// and returned.
pub(super) fn check_blocks(
    to: &Arc<InlineStorage>,
    env: &Env,
    state: &State,
    put: &BTreeSet<BlockId>,
) -> Result<Vec<(BlockId, Error)>> {
    if put.is_empty() || planted(Bug::CopyUnread) {
        return Ok(Vec::new());
    }
    let mut addresses: BTreeMap<BlockId, BTreeSet<Address>> = BTreeMap::new();
    state.each_naming(put, |table| {
        for address in table.addresses().filter(|address| put.contains(&address.block)) {
            addresses.entry(address.block).or_default().insert(*address);
        }
    })?;
    let reader = BlockReader::new(to.clone(), 0, MissingBlock::Damage);
    let checked = env.pool.map(addresses.into_iter().collect(), |(block, addresses)| {
        match addresses.iter().try_for_each(|address| reader.verify(address).map(drop)) {
            Err(e) if e.kind() == ErrorKind::Corrupt => {
                to.delete_many(&[names::block(block)]);
                Ok(Some((block, e)))
            }
            other => other.map(|()| None),
        }
    })?;
    Ok(checked.into_iter().flatten().collect())
}
