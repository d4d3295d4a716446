//! Makes runs of indexes: for row groups that none covers yet, and in place of many small ones.
//!
//! Each run is committed by itself as soon as it is written, so a call that is stopped has done part of its work; those that take the place
//! of others are committed with them. A run covers what the table still has at its commit: what is gone by then is ignored.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::checkpoint_report::CheckpointReport;
use super::plans::place;
use crate::base::{Meter, Result, TableId, Task, caught};
use crate::block::{Address, BlockWriter, EncodedRowGroup, WrittenBlock};
use crate::catalog::{Effect, State};
use crate::store::Store;
use crate::store::commit::blocks::add_blocks;
use crate::table::{
    BuiltRun, GroupId, IndexRun, MergedRun, NewRun, RunOptions, RunPlan, StoredSchema, TableIndex, TableState,
    build_run, merge_runs, plan_runs,
};

/// Row groups for which an index cannot be computed: table, index, row group.
pub(in crate::store) type Uncomputable = BTreeSet<(TableId, u64, GroupId)>;

/// Bytes of memory that an entry takes while a run is made, about.
const ENTRY_BYTES: u64 = 96;

/// The rows of the largest runs where there is hardly any memory; one row group may have more.
const RUN_ROWS_MIN: u64 = 64;

/// Runs that are committed together: of one index, in one of its table's schemas.
struct Placed {
    table: TableId,
    index: u64,
    schema: StoredSchema,
    runs: Vec<NewRun>,
    replaces: Vec<u64>,
}

impl Store {
    /// Runs that fit into memory.
    pub(in crate::store) fn run_options(&self) -> RunOptions {
        let options = RunOptions::default();
        let rows = self.options().memory_bytes / 2 / ENTRY_BYTES;
        RunOptions { rows_max: options.rows_max.min(rows.max(RUN_ROWS_MIN)), ..options }
    }

    /// Makes the runs of the indexes of one table, or of one of its indexes, or of all tables that an ordinary checkpoint looks at. A
    /// row group that cannot be read fails nothing: the report names it.
    ///
    /// # Errors
    /// `Unavailable`, `Cancelled`.
    pub(in crate::store) fn make_runs(
        &self,
        of: Option<(TableId, Option<u64>)>,
        options: &RunOptions,
        uncomputable: &mut Uncomputable,
        task: &Task,
        report: &mut CheckpointReport,
    ) -> Result<()> {
        self.while_reclaimed(|| {
            let (state, _pin) = self.pinned_state()?;
            let tables: Vec<Arc<TableState>> = match of {
                Some((table, _)) => state.table(table)?.into_iter().collect(),
                None if options.without_gone => state
                    .tables()
                    .filter(|table| !matches!(table, Ok(table) if table.indexes.list.is_empty()))
                    .collect::<Result<_>>()?,
                None => state.open_tables().filter(|table| !table.indexes.list.is_empty()).cloned().collect(),
            };
            let mut plans: Vec<(Arc<TableState>, RunPlan)> = Vec::new();
            for table in tables.into_iter().filter(|table| !state.trash.contains(table.id)) {
                let own = uncomputable.range((table.id, 0, GroupId(0))..=(table.id, u64::MAX, GroupId(u64::MAX)));
                let left_out = own.map(|(_, index, group)| (*index, *group)).collect();
                let wanted = |plan: &RunPlan| of.and_then(|(_, index)| index).is_none_or(|index| index == plan.index);
                let of_table = plan_runs(&table, options, &left_out)?.into_iter().filter(wanted);
                plans.extend(of_table.map(|plan| (table.clone(), plan)));
            }
            let merged = |plan: &RunPlan| plan.merges.iter().flatten().map(|run| run.covers.len() as u64).sum::<u64>();
            let made = |plan: &RunPlan| plan.runs.iter().map(|run| run.len() as u64).sum::<u64>();
            let groups = plans.iter().map(|(_, plan)| made(plan) + merged(plan)).sum();
            let mut meter = Meter::new(task, &*self.env().clock, groups, groups);
            for (table, plan) in plans {
                let RunPlan { index, schema, runs, replaces, merges } = plan;
                // Until the last of them is there, what they take the place of is needed.
                let commits = match replaces.is_empty() {
                    true => runs.into_iter().map(|run| vec![run]).collect(),
                    false => vec![runs],
                };
                for runs in commits {
                    let part = RunPlan { index, schema, runs, replaces: replaces.clone(), merges: Vec::new() };
                    self.make_together(&state, &table, part, uncomputable, (task, &mut meter), report)?;
                }
                for runs in merges {
                    self.merge_together(&state, &table, index, &runs, (task, &mut meter), report)?;
                }
            }
            Ok(())
        })
    }

    /// Makes runs, and commits them.
    fn make_together(
        &self,
        state: &Arc<State>,
        table: &Arc<TableState>,
        plan: RunPlan,
        uncomputable: &mut Uncomputable,
        (task, meter): (&Task, &mut Meter<'_>),
        report: &mut CheckpointReport,
    ) -> Result<()> {
        let Some(index) = table.indexes.list.iter().find(|index| index.id == plan.index) else { return Ok(()) };
        let mut writer = self.block_writer()?.inline(self.options().inline_bytes);
        let (id, number, cancel) = (table.id, index.id, &task.cancel);
        let schema = table.schemas[plan.schema as usize].clone();
        let mut placed = Placed { table: id, index: number, schema, runs: Vec::new(), replaces: plan.replaces };
        for groups in plan.runs {
            cancel.check()?;
            let (reader, pool) = (self.reader(), &self.env().pool);
            let built = caught(|| build_run(reader, pool, table, &index.definition, plan.schema, &groups, cancel));
            let Some(built) = unless_damaged(built, state, id, index, report)? else { return Ok(()) };
            let BuiltRun { parts, open, covers, left_out } = built;
            uncomputable.extend(left_out.into_iter().map(|group| (id, number, group)));
            let mut addresses: Vec<(Address, u32)> = Vec::with_capacity(parts.len());
            for part in parts {
                let entries = part.rows;
                addresses.push((writer.push(part)?, entries));
            }
            if !covers.is_empty() {
                placed.runs.push(NewRun { parts: addresses, open, covers, schema: plan.schema });
            }
            meter.step(groups.len() as u64, groups.len() as u64)?;
        }
        if placed.runs.is_empty() && placed.replaces.is_empty() {
            return Ok(());
        }
        self.commit_runs(state, placed, writer, report)
    }

    /// Merges runs into one, and commits it.
    fn merge_together(
        &self,
        state: &Arc<State>,
        table: &Arc<TableState>,
        index: u64,
        runs: &[Arc<IndexRun>],
        (task, meter): (&Task, &mut Meter<'_>),
        report: &mut CheckpointReport,
    ) -> Result<()> {
        let Some(of) = table.indexes.list.iter().find(|own| own.id == index) else { return Ok(()) };
        let Some(schema) = runs.first().map(|run| run.schema) else { return Ok(()) };
        let mut writer = self.block_writer()?.inline(self.options().inline_bytes);
        let mut parts: Vec<(Address, u32)> = Vec::new();
        let push = |part: EncodedRowGroup| {
            let entries = part.rows;
            parts.push((writer.push(part)?, entries));
            Ok(())
        };
        let (reader, pool) = (self.reader(), &self.env().pool);
        let merged = caught(|| merge_runs(reader, pool, table, &of.definition, runs, &task.cancel, push));
        let Some(merged) = unless_damaged(merged, state, table.id, of, report)? else { return Ok(()) };
        let MergedRun { open, covers } = merged;
        let groups = runs.iter().map(|run| run.covers.len() as u64).sum();
        meter.step(groups, groups)?;
        let run = NewRun { parts, open, covers, schema };
        let placed = Placed {
            table: table.id,
            index,
            schema: table.schemas[schema as usize].clone(),
            runs: if run.covers.is_empty() { Vec::new() } else { vec![run] },
            replaces: runs.iter().map(|run| run.id).collect(),
        };
        self.commit_runs(state, placed, writer, report)
    }

    /// Commits runs that are in blocks.
    fn commit_runs(
        &self,
        state: &Arc<State>,
        placed: Placed,
        mut writer: BlockWriter,
        report: &mut CheckpointReport,
    ) -> Result<()> {
        writer.finish()?;
        let runs = placed.runs.len() as u64;
        report.bytes_written += writer.written().iter().map(|written| written.bytes).sum::<u64>();
        self.commit_rewritten(writer, |writer| {
            let blocks = writer.written().to_vec();
            let build = move |now: &State| put_runs(now, &placed, &blocks);
            let (_, taken) = self.commit_built(state.clone(), build)?;
            writer.abandon(|_| !taken);
            report.index_runs += if taken { runs } else { 0 };
            Ok(())
        })
    }
}

/// What came of making a run; `None`, and a failure in the report, if something cannot be read: that must not hold up the log.
fn unless_damaged<T>(
    made: Result<T>,
    state: &State,
    table: TableId,
    index: &TableIndex,
    report: &mut CheckpointReport,
) -> Result<Option<T>> {
    match made {
        Err(e) if e.kind().leaves_others() => {
            report.failures.push(format!("{}: index '{}': {e}", place(state, table), index.definition.name));
            Ok(None)
        }
        made => made.map(Some),
    }
}

/// The effects that give an index its runs, and whether there are any: the index may be gone, and a schema's place may have been given to
/// another.
fn put_runs(now: &State, placed: &Placed, blocks: &[WrittenBlock]) -> Result<(Vec<Effect>, bool)> {
    let Some(table) = now.table(placed.table)? else { return Ok((Vec::new(), false)) };
    let there = table.indexes.list.iter().any(|index| index.id == placed.index);
    let same = placed.runs.iter().all(|run| table.schemas.get(run.schema as usize) == Some(&placed.schema));
    if !there || !same {
        return Ok((Vec::new(), false));
    }
    let (add, drop) = (placed.runs.clone(), placed.replaces.clone());
    let effect = Effect::PutRuns { table: placed.table, index: placed.index, add, drop };
    Ok((add_blocks(blocks).into_iter().chain([effect]).collect(), true))
}
