//! Repacking: row groups are copied out of blocks that are mostly dead, or small and many, into new ones.

use std::collections::BTreeMap;
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
    let blocks: Vec<BlockFill> = state.ledger.blocks().map(fill).collect();
    let live: u64 = blocks.iter().map(|fill| fill.live_bytes).sum();
    repack(&blocks, block_bytes, options.repack_dead_share_min, (live as f64 * options.budget) as u64)
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
            for group in &table.groups {
                if let Some(groups) = copies.get_mut(&group.address.block) {
                    groups.insert(group.address, *id);
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
