//! Brings row groups into order: of sorted tables, where too many overlap, and of tables with a layout into that. A checkpoint merges them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::plans::place;
use super::windows::merged;
use crate::base::{BlockId, Result, Seq, Task, caught};
use crate::block::{Address, WrittenBlock};
use crate::catalog::{Effect, State};
use crate::store::commit::blocks::add_blocks;
use crate::store::{CheckpointOptions, CheckpointReport, Store};
use crate::table::{
    Classes, GroupId, OrderPlan, PlanOptions, PlannedSlot, ROWS_MAX, Reorder, RowGroup, Slot, Standing, TableState,
    Window, merge_groups, plan, plan_layout, plan_order,
};

/// What is to stand at a place.
#[derive(Clone)]
enum Made {
    Kept(GroupId),
    Merged {
        set: Window,
        /// Address, size and order of each output.
        outputs: Vec<(Address, u32, Standing)>,
        /// Where the kept rows of each input are.
        to: Arc<Vec<Vec<u32>>>,
    },
}

/// Row groups that were merged, waiting for their commit.
#[derive(Clone)]
struct PreparedMerge {
    groups: Vec<GroupId>,
    slots: Vec<Made>,
}

impl Store {
    /// Merges row groups that overlap, table by table, each in one commit or more. Tables that have not changed since the commit `since` are left,
    /// unless options of its own are asked for.
    pub(in crate::store) fn put_in_order(
        &self,
        options: &CheckpointOptions,
        since: Option<Seq>,
        report: &mut CheckpointReport,
    ) -> Result<()> {
        let state = self.state()?;
        let is_due = |table: &TableState| {
            let changed = options.plan != PlanOptions::default() || since.is_none_or(|since| table.layout_seq > since);
            let ordered = !table.order().is_empty() || table.layout.is_some();
            let several = table.groups.len() > 1 || options.plan.group_rows < ROWS_MAX;
            changed && ordered && several && !state.trash.contains(table.id)
        };
        let mut tables = Vec::new();
        match options.plan == PlanOptions::default() {
            true => tables.extend(state.open_tables().filter(|table| is_due(table)).map(|table| table.id)),
            false => {
                for table in state.tables() {
                    let table = table?;
                    tables.extend(is_due(&table).then_some(table.id));
                }
            }
        }
        drop(state);
        for id in tables {
            options.task.cancel.check()?;
            self.while_reclaimed(|| {
                let (state, _pin) = self.pinned_state()?;
                let Some(table) = state.table(id)? else { return Ok(()) };
                let planned = caught(|| self.plan_order(&table, &options.plan));
                let before = report.tables;
                let done = planned.and_then(|plans| {
                    plans
                        .into_iter()
                        .try_for_each(|plan| self.merge_overlaps(&state, &table, plan, &options.task, report))
                });
                // However many commits it took, it is one table.
                report.tables = report.tables.min(before + 1);
                match done {
                    // One table that cannot be read must not hold up the others, and the log.
                    Err(e) if e.kind().leaves_others() => {
                        report.failures.push(format!("{}: {e}", place(&state, id)));
                        Ok(())
                    }
                    done => done,
                }
            })?;
        }
        report.groups_after = self.state()?.totals().groups;
        Ok(())
    }

    fn plan_order(&self, table: &TableState, options: &PlanOptions) -> Result<Vec<OrderPlan>> {
        // Part of the budget may be needed for what is still to be vacuumed.
        let spent = match options.budget >= 1.0 {
            true => 0,
            false => plan(table, options).windows.iter().map(|window| window.bytes_rewritten()).sum(),
        };
        // Four bytes a row say where it is now.
        let rows_max = self.options().memory_bytes / 16;
        match table.layout {
            None => plan_order(self.reader(), &self.env().pool, table, options, spent, rows_max),
            Some(_) => plan_layout(self.reader(), table, options, spent, rows_max, || self.env().entropy.next()),
        }
    }

    /// Merges what a plan says, and commits it.
    fn merge_overlaps(
        &self,
        state: &Arc<State>,
        table: &TableState,
        plan: OrderPlan,
        task: &Task,
        report: &mut CheckpointReport,
    ) -> Result<()> {
        let classes = Classes::of(table);
        let mut writer = self.block_writer()?;
        let (mut slots, mut merges) = (Vec::with_capacity(plan.slots.len()), 0);
        for slot in plan.slots {
            let set = match slot {
                PlannedSlot::Kept(group) => {
                    slots.push(Made::Kept(group.id));
                    continue;
                }
                PlannedSlot::Merge(set) => set,
            };
            let mut outputs = Vec::new();
            let merged = caught(|| {
                let (reader, pool) = (self.reader(), &self.env().pool);
                merge_groups(
                    reader,
                    pool,
                    &table.schemas,
                    &table.spec,
                    &set,
                    plan.laying.as_ref(),
                    &classes,
                    self.options().proof(),
                    &task.cancel,
                    |group, standing| {
                        let rows = group.rows;
                        outputs.push((writer.push(group)?, rows, standing));
                        Ok(())
                    },
                )
            });
            match merged {
                Ok(to) => {
                    merges += 1;
                    slots.push(Made::Merged { set, outputs, to: Arc::new(to) });
                }
                Err(e) if e.kind().leaves_others() => {
                    report.failures.push(format!("{}: {e}", place(state, table.id)));
                    slots.extend(set.inputs.iter().map(|group| Made::Kept(group.id)));
                }
                Err(e) => return Err(e),
            }
        }
        if merges == 0 {
            return Ok(());
        }
        writer.finish()?;
        report.bytes_written += writer.written().iter().map(|written| written.bytes).sum::<u64>();
        let prepared = PreparedMerge { groups: plan.groups.iter().map(|group| group.id).collect(), slots };
        let id = table.id;
        let done = self.commit_rewritten(writer, |writer| {
            let blocks = writer.written().to_vec();
            let then = table.schemas.clone();
            let build = move |now: &State| {
                let now = now.table(id)?;
                let same = now.as_ref().filter(|now| now.schemas.starts_with(&then));
                let effects = same.and_then(|now| prepared.effects(now, &blocks));
                let used = effects.as_ref().map_or_else(BTreeSet::new, |(_, used)| used.clone());
                Ok((effects.map_or_else(Vec::new, |(effects, _)| effects), used))
            };
            let (_, used) = self.commit_built(state.clone(), build)?;
            writer.abandon(|block| !used.contains(&block));
            Ok(used)
        })?;
        match done.is_empty() {
            true => report.windows_void += 1,
            false => report.tables += 1,
        }
        Ok(())
    }
}

impl PreparedMerge {
    /// What puts it into the table as it is now, and the blocks that it needs; `None` if it is void.
    fn effects(&self, now: &TableState, blocks: &[WrittenBlock]) -> Option<(Vec<Effect>, BTreeSet<BlockId>)> {
        let there: BTreeMap<GroupId, &Arc<RowGroup>> = now.groups.iter().map(|group| (group.id, group)).collect();
        let classes = Classes::of(now);
        let mut slots = Vec::with_capacity(self.slots.len());
        for made in &self.slots {
            match made {
                Made::Kept(id) => slots.push(Slot::Kept(*id)),
                Made::Merged { set, outputs, to } => {
                    let inputs: Option<Vec<Arc<RowGroup>>> =
                        set.inputs.iter().map(|input| there.get(&input.id).map(|group| (*group).clone())).collect();
                    match inputs {
                        None => slots.extend(set.inputs.iter().map(|input| Slot::Kept(input.id))),
                        Some(inputs) => slots.push(Slot::Merged(merged(set, &inputs, outputs, to, &classes))),
                    }
                }
            }
        }
        let reorder = now.still_reordered(Reorder { groups: self.groups.clone(), slots })?;
        let used: BTreeSet<BlockId> = reorder.outputs().map(|group| group.address.block).collect();
        let added: Vec<WrittenBlock> = blocks.iter().filter(|written| used.contains(&written.block)).cloned().collect();
        let mut effects = add_blocks(&added);
        effects.push(Effect::ReorderTable { table: now.id, reorder });
        Some((effects, used))
    }
}
