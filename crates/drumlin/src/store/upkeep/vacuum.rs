//! Vacuum: rewrites the windows of a plan, in parallel, copies row groups of blocks that are repacked, and commits both.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::checkpoint_report::CheckpointReport;
use super::plans::{leaving, place};
use super::repack::{BlockMoves, COPY_SHARE};
use super::windows::merged;
use crate::base::planted::{Bug, planted};
use crate::base::{BlockId, Meter, Result, TableId, Task, caught};
use crate::block::{Address, RepackPlan, WrittenBlock};
use crate::catalog::{Effect, State};
use crate::store::Store;
use crate::store::commit::blocks::add_blocks;
use crate::store::parts::NamedWindow;
use crate::table::{
    Classes, GroupId, Plan, Reason, Reorder, Rewrite, RewrittenGroup, RowGroup, Slot, Standing, TableState, Window,
    remap,
};

/// A window that has been rewritten, waiting for its commit.
#[derive(Clone)]
struct Rewritten {
    table: TableId,
    window: Window,
    /// Address, size and order of each output.
    outputs: Vec<(Address, u32, Standing)>,
    /// Where the kept rows of each input are, if they were merged.
    to: Option<Arc<Vec<Vec<u32>>>>,
}

pub(super) fn named(table: TableId, window: &Window) -> NamedWindow {
    (table, window.inputs.iter().map(|group| group.id).collect())
}

impl Store {
    /// Rewrites all windows, repacks blocks, and commits both. Returns the windows of small row groups that would not have become
    /// fewer, and that were left as they are.
    pub(in crate::store) fn vacuum(
        &self,
        state: &Arc<State>,
        plans: Vec<(TableId, Plan)>,
        repack: &RepackPlan,
        task: &Task,
        report: &mut CheckpointReport,
    ) -> Result<Vec<NamedWindow>> {
        let windows = || plans.iter().flat_map(|(_, plan)| &plan.windows);
        let copies = self.groups_to_copy(state, &plans, repack)?;
        let copied: u64 = copies.values().map(|groups| groups.len() as u64).sum();
        let total = windows().map(|window| window.inputs.len() as u64).sum::<u64>() + copied;
        // A byte that is copied costs a fraction of one that is rewritten.
        let weight = windows().map(|window| window.bytes).sum::<u64>() + repack.bytes_moved / COPY_SHARE;
        let mut meter = Meter::new(task, &*self.env().clock, total, weight);
        let mut writer = self.block_writer()?;
        let mut rewritten: Vec<Rewritten> = Vec::new();
        let (mut failures, mut unmerged) = (Vec::new(), Vec::new());
        let windows = plans.into_iter().flat_map(|(id, plan)| plan.windows.into_iter().map(move |window| (id, window)));
        let rewrite = |(id, window): (TableId, Window)| {
            task.cancel.check()?;
            let table = state.get(id)?;
            match caught(|| self.rewrite_window(&table, &window, &task.cancel)) {
                Ok(groups) => Ok((id, window, Ok(groups))),
                Err(e) if !e.kind().leaves_others() => Err(e),
                // One window that cannot be rewritten must not hold up all others, and the log.
                Err(e) => Ok((id, window, Err(format!("{}: {e}", place(state, id))))),
            }
        };
        self.env().pool.ordered(
            batches(windows),
            |batch| batch.iter().map(|(_, window)| window.bytes).sum(),
            // The threads continue while a block is being written.
            self.env().pool.threads() * 2,
            // Decoded rows take about four times the bytes of encoded ones, and both are held at a time.
            self.options().memory_bytes / 8,
            |batch| {
                let groups = batch.iter().flat_map(|(_, window)| &window.inputs);
                self.reader().fetch_directories(groups.flat_map(|group| group.addresses()));
                batch.into_iter().map(rewrite).collect::<Result<Vec<_>>>()
            },
            |batch| {
                for (table, window, groups) in batch {
                    let (steps, weight) = (window.inputs.len() as u64, window.bytes);
                    match groups {
                        Ok((groups, _)) if window.reason == Reason::Merge && groups.len() >= window.inputs.len() => {
                            unmerged.push(named(table, &window));
                        }
                        Ok((groups, to)) => {
                            let mut outputs = Vec::with_capacity(groups.len());
                            for (group, standing) in groups {
                                let rows = group.rows;
                                outputs.push((writer.push(group)?, rows, standing));
                            }
                            meter.done.rows += window.rows;
                            meter.done.bytes += outputs.iter().map(|(address, ..)| address.bytes()).sum::<u64>();
                            rewritten.push(Rewritten { table, window, outputs, to });
                        }
                        Err(failure) => failures.push(failure),
                    }
                    meter.step(steps, weight)?;
                }
                Ok(())
            },
        )?;
        let moves = self.copy_groups(copies, &mut writer, task, &mut meter, &mut failures)?;
        writer.finish()?;
        task.cancel.check()?;
        report.bytes_written += writer.written().iter().map(|written| written.bytes).sum::<u64>();
        let (after, done) = self.commit_rewritten(writer, |writer| {
            let blocks = writer.written().to_vec();
            let before = state.clone();
            let build = move |now: &State| changes(&before, now, rewritten.clone(), moves.clone(), &blocks);
            let (after, done) = self.commit_built(state.clone(), build)?;
            // Nothing refers to what a void window wrote.
            writer.abandon(|block| done.unused.contains(&block));
            Ok((after, done))
        })?;
        report.tables = done.tables;
        report.rows_removed = done.rows_removed;
        report.windows_void = done.windows_void;
        report.groups_moved = done.groups_moved;
        report.failures.extend(failures);
        report.groups_after = after.totals().groups;
        Ok(unmerged)
    }
}

/// Windows in batches worth a task: a small one takes less time than handing it to a thread.
fn batches(windows: impl Iterator<Item = (TableId, Window)>) -> impl Iterator<Item = Result<Vec<(TableId, Window)>>> {
    const TASK_BYTES: u64 = 512 << 10;
    let mut windows = windows.peekable();
    std::iter::from_fn(move || {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some(window) = windows.next_if(|(_, window)| batch.is_empty() || bytes + window.bytes <= TASK_BYTES) {
            bytes += window.1.bytes;
            batch.push(window);
        }
        (!batch.is_empty()).then_some(Ok(batch))
    })
}

/// What became of the windows at their commit.
struct WindowsOutcome {
    tables: u64,
    rows_removed: u64,
    windows_void: u64,
    groups_moved: u64,
    /// Blocks in which no row group took effect.
    unused: BTreeSet<BlockId>,
}

/// Those of `groups`, with their places, that are now what `inputs` were; `None` if one is gone, or if others have come between
/// them, as the outputs of updates and restores do.
fn adjacent(
    groups: &BTreeMap<GroupId, (usize, Arc<RowGroup>)>,
    inputs: &[Arc<RowGroup>],
) -> Option<Vec<Arc<RowGroup>>> {
    let found: Option<Vec<_>> = inputs.iter().map(|input| groups.get(&input.id)).collect();
    let found = found?;
    let next_to = |pair: &[&(usize, Arc<RowGroup>)]| pair[0].0 + 1 == pair[1].0 && pair[0].1.only == pair[1].1.only;
    found.windows(2).all(next_to).then(|| found.into_iter().map(|(_, group)| group.clone()).collect())
}

/// The effects that put rewritten row groups in place, with the runs and deletions that their inputs have `now`, and
/// replace what was copied by the copies, as far as it still exists. They were made from the state `before`.
fn changes(
    before: &State,
    now: &State,
    rewritten: Vec<Rewritten>,
    moves: BlockMoves,
    blocks: &[WrittenBlock],
) -> Result<(Vec<Effect>, WindowsOutcome)> {
    let mut effects = Vec::new();
    let mut places: BTreeMap<TableId, BTreeMap<GroupId, (usize, Arc<RowGroup>)>> = BTreeMap::new();
    let mut used = BTreeSet::new();
    let mut tables = BTreeSet::new();
    let mut outcome =
        WindowsOutcome { tables: 0, rows_removed: 0, windows_void: 0, groups_moved: 0, unused: BTreeSet::new() };
    let mut taken_in: Vec<Arc<RowGroup>> = Vec::new();
    for Rewritten { table: id, window, outputs, to } in rewritten {
        let (then, table) = (before.table(id)?, now.table(id)?);
        let table_now = table.clone();
        let groups = places.entry(id).or_insert_with(|| {
            let groups = table.iter().flat_map(|table| &table.groups).enumerate();
            groups.map(|(at, group)| (group.id, (at, group.clone()))).collect()
        });
        let inputs = adjacent(groups, &window.inputs);
        // A schema's place may have been given to another since.
        let schema_of = |table: Option<Arc<TableState>>| table?.schemas.get(window.schema as usize).cloned();
        let Some(inputs) = inputs.filter(|_| schema_of(table) == schema_of(then)) else {
            outcome.windows_void += 1;
            continue;
        };
        let inputs = if planted(Bug::ForgetConcurrentDeletes) { window.inputs.clone() } else { inputs };
        used.extend(outputs.iter().map(|(address, ..)| address.block));
        taken_in.extend(inputs.iter().cloned());
        effects.push(match (to, table_now) {
            (Some(to), Some(table)) => {
                let merged = merged(&window, &inputs, &outputs, &to, &Classes::of(&table));
                let groups = inputs.iter().map(|input| input.id).collect();
                Effect::ReorderTable { table: id, reorder: Reorder { groups, slots: vec![Slot::Merged(merged)] } }
            }
            _ => {
                let sizes: Vec<u32> = outputs.iter().map(|(_, rows, _)| *rows).collect();
                let remapped = remap(&inputs, &window.kept, &sizes);
                let schema = window.schema;
                let outputs =
                    outputs.into_iter().zip(remapped).map(|((address, rows, standing), remapped)| RewrittenGroup {
                        address,
                        rows,
                        schema,
                        runs: remapped.runs,
                        deletions: remapped.deletions,
                        standing,
                    });
                let inputs = inputs.iter().map(|input| input.id).collect();
                Effect::RewriteTable { table: id, rewrite: Rewrite { inputs, outputs: outputs.collect() } }
            }
        });
        tables.insert(id);
        outcome.rows_removed += window.dead_rows;
    }
    // Others held more of them too when the windows were planned.
    let leaving = leaving(now, taken_in.iter());
    // Runs of indexes are moved before the rewrites, which release those that cover nothing else.
    let mut moving = Vec::new();
    for (tables, mut moves) in moves {
        let (mut there, mut of_runs): (BTreeSet<Address>, BTreeSet<Address>) = Default::default();
        let mut left = Vec::with_capacity(tables.len());
        for id in tables {
            if let Some(table) = now.table(id)? {
                there.extend(table.addresses().copied());
                of_runs.extend(table.indexes.addresses().copied());
                left.push(id);
            }
        }
        let tables = left;
        let stays = |from: &Address| !leaving.contains(from) || planted(Bug::MoveWhatLeaves);
        moves.retain(|(from, _)| there.contains(from) && stays(from));
        used.extend(moves.iter().map(|(_, to)| to.block));
        outcome.groups_moved += moves.len() as u64;
        let effect = |moves: Vec<(Address, Address)>| match tables.as_slice() {
            [table] => Effect::MoveGroups { table: *table, moves },
            _ => Effect::MoveShared { tables: tables.clone(), moves },
        };
        let (runs, groups): (Vec<_>, Vec<_>) = moves.into_iter().partition(|(from, _)| of_runs.contains(from));
        moving.extend((!runs.is_empty()).then(|| effect(runs)));
        effects.extend((!groups.is_empty()).then(|| effect(groups)));
    }
    let (used, unused): (Vec<WrittenBlock>, Vec<WrittenBlock>) =
        blocks.iter().cloned().partition(|written| used.contains(&written.block));
    outcome.tables = tables.len() as u64;
    outcome.unused = unused.iter().map(|written| written.block).collect();
    Ok((add_blocks(&used).into_iter().chain(moving).chain(effects).collect(), outcome))
}
