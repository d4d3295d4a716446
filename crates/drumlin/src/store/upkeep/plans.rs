//! What a checkpoint now would do: the vacuum plan of each table, and the blocks to repack. Pure functions of a state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::base::{BlockId, Result, TableId};
use crate::block::{ALIGNMENT, Address, BlockFill, RepackPlan, repack};
use crate::catalog::{BlockUse, State};
use crate::store::Store;
use crate::table::{Plan, PlanOptions, RowGroup, TableState, plan};

/// What a checkpoint would rewrite.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VacuumPlan {
    /// The tables, by path.
    pub tables: Vec<(String, Plan)>,
    /// The blocks to repack.
    pub blocks: RepackPlan,
}

impl Store {
    /// What a checkpoint now would rewrite: for every table in the tree that has row groups its vacuum plan, and the blocks that it
    /// would repack.
    ///
    /// # Errors
    /// `Closed`.
    pub fn vacuum_plan(&self, options: &PlanOptions) -> Result<VacuumPlan> {
        let state = self.state()?;
        let plans = all_plans(&state, options)?;
        let blocks = plan_repack(&state, &plans, options, self.options().block_bytes)?;
        Ok(VacuumPlan { tables: plans.into_iter().map(|(id, plan)| (place(&state, id), plan)).collect(), blocks })
    }
}

/// The place of a table, for messages.
pub(in crate::store) fn place(state: &State, id: TableId) -> String {
    state.path_of(id).map_or_else(|| format!("(table {id})"), ToString::to_string)
}

/// The vacuum plans of the tables that have one.
fn all_plans(state: &State, options: &PlanOptions) -> Result<Vec<(TableId, Plan)>> {
    let tables = state.tables().map(|table| table.map(|table| plan_of(state, &table, options)));
    tables.filter_map(Result::transpose).collect()
}

/// The vacuum plans with windows, and others. An ordinary vacuum need not look at tables that the last catalog snapshot
/// says have none.
pub(in crate::store) fn plans(state: &State, options: &PlanOptions) -> Result<Vec<(TableId, Plan)>> {
    match *options == PlanOptions::default() {
        true => Ok(state.open_tables().filter_map(|table| plan_of(state, table, options)).collect()),
        false => all_plans(state, options),
    }
}

fn plan_of(state: &State, table: &TableState, options: &PlanOptions) -> Option<(TableId, Plan)> {
    let wanted = (!state.trash.contains(table.id)).then(|| plan(table, options));
    wanted.filter(|plan| plan.groups_before > 0).map(|plan| (table.id, plan))
}

/// The row groups that windows take in.
pub(in crate::store) fn inputs(plans: &[(TableId, Plan)]) -> impl Iterator<Item = &Arc<RowGroup>> {
    plans.iter().flat_map(|(_, plan)| &plan.windows).flat_map(|window| &window.inputs)
}

/// The row groups of which all records that name them are among `inputs`, what windows take in: their bytes are not needed afterwards.
pub(in crate::store) fn leaving<'a>(
    state: &State,
    inputs: impl Iterator<Item = &'a Arc<RowGroup>>,
) -> BTreeSet<Address> {
    let mut records: BTreeMap<Address, u64> = BTreeMap::new();
    for input in inputs {
        input.addresses().for_each(|address| *records.entry(*address).or_insert(0) += 1);
    }
    let all = |(address, records): (Address, u64)| (records == state.ledger.records(&address)).then_some(address);
    records.into_iter().filter_map(all).collect()
}

/// The blocks to repack once the windows of `plans` are rewritten.
pub(in crate::store) fn plan_repack(
    state: &State,
    plans: &[(TableId, Plan)],
    options: &PlanOptions,
    block_bytes: u64,
) -> Result<RepackPlan> {
    let leaving = leaving(state, inputs(plans));
    let mut bytes_leaving: BTreeMap<BlockId, u64> = BTreeMap::new();
    for address in &leaving {
        *bytes_leaving.entry(address.block).or_insert(0) += address.bytes();
    }
    let fill = |(block, used): (&BlockId, &BlockUse)| {
        let inline = state.ledger.is_inline(*block);
        let live_bytes = used.live_bytes.saturating_sub(bytes_leaving.get(block).copied().unwrap_or(0));
        // Any block has this overhead beside its row groups.
        let overhead = ALIGNMENT * (used.parts + 1);
        BlockFill { block: *block, bytes: used.bytes.saturating_sub(overhead), live_bytes, inline }
    };
    let mut blocks: Vec<BlockFill> = state.ledger.blocks().map(fill).collect();
    let live: u64 = blocks.iter().map(|fill| fill.live_bytes).sum();
    let budget = (live as f64 * options.budget) as u64;
    if !options.purges() {
        return Ok(repack(&blocks, block_bytes, options.repack_dead_share_min, budget));
    }
    // The fill of a block is not known to the byte, because of padding, so a small row group that is gone would not
    // show.
    let holed = blocks_with_holes(state, &leaving)?;
    for fill in &mut blocks {
        fill.bytes = if holed.contains(&fill.block) { fill.bytes.max(fill.live_bytes + 1) } else { fill.live_bytes };
    }
    Ok(repack(&blocks, block_bytes, 0.0, budget))
}

/// The blocks that hold bytes of row groups that are gone, or are `leaving`. O(row groups).
pub(in crate::store) fn blocks_with_holes(state: &State, leaving: &BTreeSet<Address>) -> Result<BTreeSet<BlockId>> {
    // Where the row groups that stay begin in each block, and their bytes.
    let mut kept: BTreeMap<BlockId, BTreeSet<(u64, u64)>> = BTreeMap::new();
    for table in state.tables() {
        for address in table?.addresses().filter(|address| !leaving.contains(*address)) {
            kept.entry(address.block).or_default().insert((address.offset, address.bytes()));
        }
    }
    let has_holes = |(block, used): &(&BlockId, &BlockUse)| {
        // Row groups follow each other at the next multiple of the alignment, after a header, and the last ends the block.
        let mut end = 0_u64;
        for (offset, bytes) in kept.get(block).into_iter().flatten() {
            if *offset > end.next_multiple_of(ALIGNMENT).max(ALIGNMENT) {
                return true;
            }
            end = offset + bytes;
        }
        used.bytes > end
    };
    Ok(state.ledger.blocks().filter(has_holes).map(|(block, _)| *block).collect())
}
