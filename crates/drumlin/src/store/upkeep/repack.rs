//! Repacking: copies row groups out of blocks that are mostly dead, or small and many, into new ones.

use std::collections::BTreeMap;

use super::plans::{inputs, leaving};
use crate::base::{BlockId, Meter, Result, TableId, Task, caught};
use crate::block::{Address, BlockWriter, RepackPlan};
use crate::catalog::State;
use crate::store::Store;
use crate::table::Plan;

/// How many bytes are copied in the time that it takes to rewrite one.
pub(in crate::store) const COPY_SHARE: u64 = 8;

/// What is moved: of the tables that share it, from where to where.
pub(in crate::store) type BlockMoves = BTreeMap<Vec<TableId>, Vec<(Address, Address)>>;

/// What is to be moved: of each block, its row groups and the tables they belong to.
pub(in crate::store) type Copies = BTreeMap<BlockId, BTreeMap<Address, Vec<TableId>>>;

impl Store {
    /// What is left in the blocks of a plan, except the inputs of windows.
    pub(in crate::store) fn groups_to_copy(
        &self,
        state: &State,
        plans: &[(TableId, Plan)],
        plan: &RepackPlan,
    ) -> Result<Copies> {
        let mut copies: Copies = plan.blocks.iter().map(|block| (*block, BTreeMap::new())).collect();
        state.each_naming(&plan.blocks.iter().copied().collect(), |table| {
            for address in table.addresses() {
                if let Some(groups) = copies.get_mut(&address.block) {
                    let tables = groups.entry(*address).or_default();
                    if tables.last() != Some(&table.id) {
                        tables.push(table.id);
                    }
                }
            }
        })?;
        copies.values_mut().flat_map(BTreeMap::values_mut).for_each(|tables| tables.sort_unstable());
        for address in leaving(state, inputs(plans)) {
            if let Some(groups) = copies.get_mut(&address.block) {
                groups.remove(&address);
            }
        }
        Ok(copies)
    }

    /// Copies row groups after what `writer` has.
    pub(in crate::store) fn copy_groups(
        &self,
        copies: Copies,
        writer: &mut BlockWriter,
        task: &Task,
        meter: &mut Meter<'_>,
        failures: &mut Vec<String>,
    ) -> Result<BlockMoves> {
        let mut moves = BlockMoves::new();
        self.env().pool.ordered(
            copies.into_iter().map(Ok),
            |(_, groups)| groups.keys().map(Address::bytes).sum(),
            self.env().pool.threads() * 2,
            self.options().memory_bytes / 4,
            |(_, groups)| {
                task.cancel.check()?;
                let addresses: Vec<Address> = groups.keys().copied().collect();
                match caught(|| self.reader().row_groups(&addresses)) {
                    Ok(encoded) => Ok((Ok(encoded), groups)),
                    Err(e) if !e.kind().leaves_others() => Err(e),
                    // One damaged block must not hold up all others, and the log.
                    Err(e) => Ok((Err(e.to_string()), groups)),
                }
            },
            |(encoded, groups)| {
                let (steps, bytes) = (groups.len() as u64, groups.keys().map(Address::bytes).sum::<u64>());
                match encoded {
                    Ok(encoded) => {
                        for (group, (from, tables)) in encoded.into_iter().zip(groups) {
                            moves.entry(tables).or_default().push((from, writer.push(group)?));
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
