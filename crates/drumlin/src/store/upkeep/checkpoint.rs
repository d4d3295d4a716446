//! Checkpoint: expires versions, vacuums all tables by plan, in parallel, and writes a catalog snapshot up to which the
//! log is cut.
//!
//! Reads and writes continue during a checkpoint. A rewrite is void if an input is gone by its commit; rows deleted
//! while it ran are carried over. A failed or cancelled checkpoint leaves the store as it was.
//!
//! In a store that others write too, a catalog snapshot is named by its commit, written only if none is there, and
//! named by the root only if the root still names the one that it was made from. So two processes may checkpoint at
//! once: one of them does it for nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::checkpoint_report::{CheckpointOptions, CheckpointReport};
use super::plans::{leaving, place, plan_repack, plans};
use super::repack::{BlockMoves, COPY_SHARE};
use super::windows::merged;
use crate::base::planted::{Bug, planted};
use crate::base::{BlockId, Cancel, ErrorKind, Meter, Result, TableId, Task, WarningKind, caught, span};
use crate::block::{Address, RepackPlan, WrittenBlock};
use crate::catalog::{Effect, Packed, State};
use crate::storage::{Storage, names};
use crate::store::Store;
use crate::store::commit::blocks::add_blocks;
use crate::store::parts::recover::Catalog;
use crate::store::parts::{Maintenance, NamedWindow, recover};
use crate::table::{
    Classes, GroupId, Plan, Reason, Reorder, Rewrite, RewrittenGroup, RowGroup, Slot, TableState, Window, remap,
};

/// A checkpoint that takes this long is worth a warning.
const SLOW_MICROS: u64 = 60_000_000;

/// A window that has been rewritten, waiting for its commit.
#[derive(Clone)]
struct Rewritten {
    table: TableId,
    window: Window,
    /// Address, size and order of each output.
    outputs: Vec<(Address, u32, bool)>,
    /// Where the kept rows of each input are, if they were merged.
    to: Option<Arc<Vec<Vec<u32>>>>,
}

fn named(table: TableId, window: &Window) -> NamedWindow {
    (table, window.inputs.iter().map(|group| group.id).collect())
}

impl Store {
    /// Removes deleted rows from storage, merges small row groups, and shortens the log. The space is freed by
    /// [`Store::reclaim`]. A second checkpoint at the same time waits for the first.
    ///
    /// # Errors
    /// `Unavailable` if storage fails, `Cancelled`; what was committed before that stays, and the message says so. A table or block that
    /// cannot be rewritten fails nothing: the report names it.
    pub fn checkpoint(&self, options: &CheckpointOptions) -> Result<CheckpointReport> {
        self.call()?;
        let mut maintenance = match self.is_handle() {
            true => self.upkeep().lock()?,
            // An automatic checkpoint does not wait: the running one will be done before the log has grown much more.
            false => match self.upkeep().try_lock() {
                Some(maintenance) => maintenance,
                None => return Ok(CheckpointReport::default()),
            },
        };
        span!("checkpoint");
        let (env, begun) = (&self.env(), self.env().clock.now());
        let mut report = CheckpointReport::default();
        self.do_checkpoint(options, &mut maintenance, &mut report).map_err(|e| match e.kind() {
            // `Unavailable` says that nothing was done, which is not so if a commit was made on the way.
            ErrorKind::Unavailable if report.did_anything() => {
                e.context(format!("the checkpoint was done in part ({report}) before it failed"))
            }
            _ => e,
        })?;
        drop(maintenance);
        let micros = env.micros_since(begun);
        env.metrics.checkpoint_micros.observe(micros);
        if micros >= SLOW_MICROS {
            let seconds = micros / 1_000_000;
            env.warn.say(WarningKind::SlowCheckpoint, || {
                format!("{}: a checkpoint took {seconds} seconds: {report}", self.uri())
            });
        }
        Ok(report)
    }

    fn do_checkpoint(
        &self,
        options: &CheckpointOptions,
        maintenance: &mut Maintenance,
        report: &mut CheckpointReport,
    ) -> Result<()> {
        let since = self.commits().writable_log()?.base().map(|base| base.seq);
        report.versions_expired = self.number_and_expire()?;
        self.flush(&options.task, report)?;
        self.while_reclaimed(|| {
            let (state, _pin) = self.pinned_state()?;
            let mut plans = plans(&state, &options.plan)?;
            for (id, plan) in &mut plans {
                plan.windows.retain(|window| !maintenance.unmerged.contains(&named(*id, window)));
            }
            report.groups_before = state.totals().groups;
            report.groups_after = report.groups_before;
            let repack = plan_repack(&state, &plans, &options.plan, self.options().block_bytes)?;
            if !repack.blocks.is_empty() || plans.iter().any(|(_, plan)| !plan.windows.is_empty()) {
                let unmerged = self.vacuum(&state, plans, &repack, &options.task, report)?;
                maintenance.unmerged.extend(unmerged);
            }
            Ok(())
        })?;
        self.put_in_order(options, since, report)?;
        self.write_catalog(maintenance, false)?;
        self.commits().newest().forget_inline();
        Ok(())
    }

    /// Numbers versions for the rows written by key that have none, and removes the versions that retention does not
    /// keep, in one commit; returns how many versions were removed.
    pub(in crate::store) fn number_and_expire(&self) -> Result<u64> {
        let before = self.state()?;
        let now = self.commits().times().age(before.time);
        let effects = move |state: &State| -> Result<Vec<Effect>> {
            let active = state.open_tables().filter(|table| table.active().is_some());
            let freeze = active.map(|table| Effect::FreezeRows { table: table.id });
            let expired = state.expired(now)?.into_iter();
            Ok(freeze.chain(expired.map(|(table, versions)| Effect::DeleteVersions { table, versions })).collect())
        };
        let first = effects(&before)?;
        if first.is_empty() {
            return Ok(0);
        }
        let frozen = |effect: &&Effect| matches!(effect, Effect::FreezeRows { .. });
        let count = |state: &State| state.totals().versions;
        let numbered = first.iter().filter(frozen).count() as u64;
        let after = self.commit_effects(effects)?;
        Ok((count(&before) + numbered).saturating_sub(count(&after)))
    }

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
                            for (group, ordered) in groups {
                                let rows = group.rows;
                                outputs.push((writer.push(group)?, rows, ordered));
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

    /// From now on keeps the tables that are as they were in `written` in the pages that were written of it.
    fn take_pages(&self, written: &State, pages: &Arc<Packed>) {
        // A call that is to stop leaves it as it is.
        let Ok(_turn) = self.commits().turn() else { return };
        let newest = self.commits().newest();
        let state = Arc::new(newest.state().with_pages(written, pages));
        drop(newest.replace(state.clone()));
        self.upkeep().set_tables_kept(state.open_tables_len());
    }

    /// Writes a catalog snapshot of the newest state, names it in the log, and removes what it replaces. If `whole`, no part of
    /// an earlier one is kept.
    pub(in crate::store) fn write_catalog(&self, maintenance: &mut Maintenance, whole: bool) -> Result<()> {
        let log = self.commits().writable_log()?;
        let whole = whole || self.upkeep().is_catalog_damaged();
        if whole && log.base().is_some_and(|base| self.seq().is_ok_and(|seq| seq == base.seq)) {
            // A new snapshot needs a commit of its own.
            let same = |state: &State| Ok(vec![Effect::SetDefaultRetention { retention: state.default_retention }]);
            self.commit_effects(same)?;
        }
        // All as of one instant: a snapshot that others name later is not what this one is made from.
        let (bytes, state, named) = {
            let _turn = self.commits().turn()?;
            (log.bytes(), self.current()?, log.base())
        };
        if named.is_some_and(|base| base.seq >= state.seq) || state.seq.0 == 0 {
            return Ok(());
        }
        let storage = &**self.storage();
        let shared = log.is_shared();
        let old: Vec<String> = match shared {
            false => storage.list(names::CATALOG)?.into_iter().map(|object| object.name).collect(),
            // Delete only what this process knows of; other leftovers are for an audit, which lists them.
            true => maintenance.catalog.iter().flat_map(Catalog::names).collect(),
        };
        // A damaged snapshot is written again as a whole; one that others have named since, and that was not read, is not
        // built upon.
        let before = maintenance.catalog.as_ref().filter(|before| !whole && Some(before.base) == named);
        if planted(Bug::CutLogBeforeSnapshot) {
            log.rebase(named, recover::encode_catalog(&state, before)?.0, bytes)?;
        }
        // The name of the new one may be taken in another history.
        log.confirm()?;
        let patience = shared.then_some((self.env(), self.options().retry_micros));
        let (base, catalog, packed) = match recover::write_catalog(storage, &state, before, patience) {
            // Another process is writing it.
            Err(e) if shared && e.kind() == ErrorKind::AlreadyExists => return Ok(()),
            other => other?,
        };
        if !log.rebase(named, base, bytes)? {
            // Another one was named. This one is left to an audit: it may have been named in between, and built upon.
            return Ok(());
        }
        let needed: BTreeSet<String> = catalog.names().collect();
        self.take_pages(&state, &packed);
        maintenance.catalog = Some(catalog);
        self.upkeep().set_catalog_damaged(false);
        let old: Vec<String> = old.into_iter().filter(|name| !needed.contains(name)).collect();
        // What could not be deleted is removed by the next checkpoint.
        self.delete_objects(&old);
        Ok(())
    }
}

/// A checkpoint that the store begins by itself; returns what it left as it is.
pub(in crate::store) fn automatic(store: &Store, cancel: &Cancel) -> Result<Vec<String>> {
    let task = Task { cancel: cancel.clone(), progress: None };
    Ok(store.checkpoint(&CheckpointOptions { task, ..CheckpointOptions::default() })?.failures)
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
                    outputs.into_iter().zip(remapped).map(|((address, rows, ordered), remapped)| RewrittenGroup {
                        address,
                        rows,
                        schema,
                        runs: remapped.runs,
                        deletions: remapped.deletions,
                        ordered,
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
    for (tables, mut moves) in moves {
        let mut there: BTreeSet<Address> = BTreeSet::new();
        let mut left = Vec::with_capacity(tables.len());
        for id in tables {
            if let Some(table) = now.table(id)? {
                there.extend(table.addresses().copied());
                left.push(id);
            }
        }
        let tables = left;
        let stays = |from: &Address| !leaving.contains(from) || planted(Bug::MoveWhatLeaves);
        moves.retain(|(from, _)| there.contains(from) && stays(from));
        used.extend(moves.iter().map(|(_, to)| to.block));
        outcome.groups_moved += moves.len() as u64;
        if !moves.is_empty() {
            effects.push(match tables.as_slice() {
                [table] => Effect::MoveGroups { table: *table, moves },
                _ => Effect::MoveShared { tables, moves },
            });
        }
    }
    let (used, unused): (Vec<WrittenBlock>, Vec<WrittenBlock>) =
        blocks.iter().cloned().partition(|written| used.contains(&written.block));
    outcome.tables = tables.len() as u64;
    outcome.unused = unused.iter().map(|written| written.block).collect();
    Ok((add_blocks(&used).into_iter().chain(effects).collect(), outcome))
}
