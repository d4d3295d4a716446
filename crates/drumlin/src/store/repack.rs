//! Repacking: row groups are copied out of blocks that are mostly dead, or small and many, into new ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Store;
use super::checkpoint::{COPY_SHARE, plans};
use crate::base::{BlockId, ErrorKind, Meter, Result, TableId, Task, caught};
use crate::block::{ALIGNMENT, Address, BlockFill, BlockWriter, RepackPlan, repack};
use crate::catalog::{BlockUse, State};
use crate::table::{Plan, PlanOptions, RowGroup};

/// What is moved: of each table, from where to where.
pub(super) type Moves = BTreeMap<TableId, Vec<(Address, Address)>>;

/// What is to be moved: of each block, its row groups and the tables they belong to.
pub(super) type Copies = BTreeMap<BlockId, BTreeMap<Address, TableId>>;

/// The row groups that windows take in.
fn inputs(plans: &[(TableId, Plan)]) -> impl Iterator<Item = &Arc<RowGroup>> {
    plans.iter().flat_map(|(_, plan)| &plan.windows).flat_map(|window| &window.inputs)
}

/// The blocks to repack once the windows of `plans` are rewritten.
pub(super) fn plan_repack(
    state: &State,
    plans: &[(TableId, Plan)],
    options: &PlanOptions,
    block_bytes: u64,
) -> RepackPlan {
    let mut leaving: BTreeMap<BlockId, u64> = BTreeMap::new();
    for input in inputs(plans) {
        *leaving.entry(input.address.block).or_insert(0) += input.address.bytes();
    }
    let fill = |(block, used): (&BlockId, &BlockUse)| {
        let leaving = leaving.get(block).copied().unwrap_or(0);
        let inline = state.ledger.is_inline(*block);
        let live_bytes = used.live_bytes.saturating_sub(leaving);
        // What a block has beside its row groups is there wherever they are.
        let overhead = ALIGNMENT * (used.parts + 1);
        BlockFill { block: *block, bytes: used.bytes.saturating_sub(overhead), live_bytes, inline }
    };
    let mut blocks: Vec<BlockFill> = state.ledger.blocks().map(fill).collect();
    let live: u64 = blocks.iter().map(|fill| fill.live_bytes).sum();
    let budget = (live as f64 * options.budget) as u64;
    if !options.purges() {
        return repack(&blocks, block_bytes, options.repack_dead_share_min, budget);
    }
    // How full a block is is known but for its padding, so a small row group that is gone would not show.
    let holed = blocks_with_holes(state, plans);
    for fill in &mut blocks {
        fill.bytes = if holed.contains(&fill.block) { fill.bytes.max(fill.live_bytes + 1) } else { fill.live_bytes };
    }
    repack(&blocks, block_bytes, 0.0, budget)
}

/// The blocks that hold bytes of row groups that are gone, or will be once the windows of `plans` are rewritten.
/// O(row groups).
fn blocks_with_holes(state: &State, plans: &[(TableId, Plan)]) -> BTreeSet<BlockId> {
    let leaving: BTreeSet<Address> = inputs(plans).map(|input| input.address).collect();
    // Where the row groups that stay begin in each block, and their bytes.
    let mut kept: BTreeMap<BlockId, BTreeSet<(u64, u64)>> = BTreeMap::new();
    for address in state.tables().flat_map(|(_, table)| table.addresses()) {
        if !leaving.contains(address) {
            kept.entry(address.block).or_default().insert((address.offset, address.bytes()));
        }
    }
    let has_holes = |(block, used): &(&BlockId, &BlockUse)| {
        // Row groups follow each other at the next multiple of the alignment, behind a header, and the last ends the block.
        let mut end = 0_u64;
        for (offset, bytes) in kept.get(block).into_iter().flatten() {
            if *offset > end.next_multiple_of(ALIGNMENT).max(ALIGNMENT) {
                return true;
            }
            end = offset + bytes;
        }
        used.bytes > end
    };
    state.ledger.blocks().filter(has_holes).map(|(block, _)| *block).collect()
}

impl Store {
    /// The blocks that a checkpoint now would repack.
    pub fn repack_plan(&self, options: &PlanOptions) -> Result<RepackPlan> {
        let state = self.state()?;
        Ok(plan_repack(&state, &plans(&state, options), options, self.inner.options.block_bytes))
    }

    /// What is left in the blocks of a plan, but for the inputs of windows.
    pub(super) fn groups_to_copy(&self, state: &State, plans: &[(TableId, Plan)], plan: &RepackPlan) -> Copies {
        let mut copies: Copies = plan.blocks.iter().map(|block| (*block, BTreeMap::new())).collect();
        for (id, table) in state.tables() {
            for address in table.addresses() {
                if let Some(groups) = copies.get_mut(&address.block) {
                    groups.insert(*address, *id);
                }
            }
        }
        for input in inputs(plans) {
            if let Some(groups) = copies.get_mut(&input.address.block) {
                groups.remove(&input.address);
            }
        }
        copies
    }

    /// Copies row groups behind what `writer` has.
    pub(super) fn copy_groups(
        &self,
        copies: Copies,
        writer: &mut BlockWriter,
        task: &Task,
        meter: &mut Meter<'_>,
        failures: &mut Vec<String>,
    ) -> Result<Moves> {
        use ErrorKind::{Cancelled, SnapshotExpired, Unavailable};
        let (inner, mut moves) = (&self.inner, Moves::new());
        inner.env.pool.ordered(
            copies.into_iter().map(Ok),
            |(_, groups)| groups.keys().map(Address::bytes).sum(),
            inner.env.pool.threads() * 2,
            inner.options.memory_bytes / 4,
            |(_, groups)| {
                task.cancel.check()?;
                let addresses: Vec<Address> = groups.keys().copied().collect();
                match caught(|| inner.reader.row_groups(&addresses)) {
                    Ok(encoded) => Ok((Ok(encoded), groups)),
                    Err(e) if matches!(e.kind(), Cancelled | SnapshotExpired | Unavailable) => Err(e),
                    // One damaged block must not keep all others, and the log, from it.
                    Err(e) => Ok((Err(e.to_string()), groups)),
                }
            },
            |(encoded, groups)| {
                let (steps, bytes) = (groups.len() as u64, groups.keys().map(Address::bytes).sum::<u64>());
                match encoded {
                    Ok(encoded) => {
                        for (group, (from, table)) in encoded.into_iter().zip(groups) {
                            moves.entry(table).or_default().push((from, writer.push(group)?));
                        }
                        meter.done.bytes += bytes;
                    }
                    Err(failure) => failures.push(failure),
                }
                meter.step(steps, bytes / COPY_SHARE)
            },
        )?;
        Ok(moves)
    }
}
