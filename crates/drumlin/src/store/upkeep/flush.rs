//! Turns rows written by key into row groups: the part of a checkpoint that allows the log to be cut.
//!
//! The log is kept from the first commit whose rows are in memory only; the catalog snapshot says which parts of
//! memtables there are, and opening the store puts the rows of those older entries back into them. A checkpoint flushes
//! all tables, the oldest part of each in one commit, until none is left, so that an idle table does not keep the log.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::RecordBatch;

use crate::base::{BlockId, Error, Result, TableId, Task, Version, caught};
use crate::block::{BlockWriter, WrittenBlock};
use crate::catalog::{Effect, Path, State};
use crate::store::commit::blocks::add_blocks;
use crate::store::write::encoder::encode_keyed_group;
use crate::store::{CheckpointReport, Store};
use crate::table::{
    Flush, GroupId, MemtablePart, NewGroup, Positions, TableState, batch_bytes, encode_group, hidden_rows,
    history_rows, part_rows,
};

/// One part that is being flushed.
#[derive(Clone)]
struct Flushing {
    table: TableId,
    part: MemtablePart,
    deletions: Vec<(GroupId, Positions)>,
    groups: Vec<NewGroup>,
    history: Vec<NewGroup>,
}

/// What a batch of a part's rows becomes.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    Rows,
    History,
}

impl Store {
    /// Turns all frozen parts into row groups, while reads and writes continue. Needs the maintenance lock.
    pub(in crate::store) fn flush(&self, task: &Task, report: &mut CheckpointReport) -> Result<()> {
        let mut left: Vec<TableId> = Vec::new();
        loop {
            let failed = self.while_reclaimed(|| {
                let (state, _pin) = self.pinned_state()?;
                let waits = |table: &&Arc<TableState>| table.to_flush().is_some() && !left.contains(&table.id);
                let work: Vec<TableId> = state.open_tables().filter(waits).map(|table| table.id).collect();
                if work.is_empty() {
                    return Ok(None);
                }
                self.flush_parts(&state, &work, task, report).map(Some)
            })?;
            match failed {
                None => break,
                Some(failed) => left.extend(failed),
            }
        }
        let state = self.state()?;
        self.commits().newest().count_memtable_bytes(&state);
        Ok(())
    }

    /// Flushes the frozen parts of tables whose versions are to be deleted.
    pub(in crate::store) fn flush_rows_of(&self, versions: &[(Path, Vec<Version>)]) -> Result<()> {
        let state = self.state()?;
        let tables = versions.iter().filter_map(|(path, _)| state.table_id_at(path)).collect();
        self.settle_rows(&tables, false)
    }

    /// Makes row groups of the rows that were written by key to some tables: those that versions have, and with `all` those
    /// written since the newest one too.
    pub(in crate::store) fn settle_rows(&self, tables: &BTreeSet<TableId>, all: bool) -> Result<()> {
        if tables.is_empty() {
            return Ok(());
        }
        if all {
            let wanted = tables.clone();
            self.commit_effects(move |state| {
                let active = state.open_tables().filter(|table| wanted.contains(&table.id) && table.active().is_some());
                Ok(active.map(|table| Effect::FreezeRows { table: table.id }).collect())
            })?;
        }
        let state = self.state()?;
        if state.open_tables().any(|table| tables.contains(&table.id) && table.to_flush().is_some()) {
            let _maintenance = self.upkeep().lock()?;
            self.flush(&Task::default(), &mut CheckpointReport::default())?;
        }
        Ok(())
    }

    /// Turns the oldest part of each table into row groups, all in one commit. Returns the tables whose parts could not
    /// be read, which the report names.
    fn flush_parts(
        &self,
        state: &Arc<State>,
        work: &[TableId],
        task: &Task,
        report: &mut CheckpointReport,
    ) -> Result<Vec<TableId>> {
        let mut failures = Failures { state, tables: Vec::new(), texts: Vec::new() };
        let mut flushes = self.to_flush(state, work, task, &mut failures)?;
        let writer = self.encode_parts(state, &mut flushes, task, &mut failures)?;
        task.cancel.check()?;
        report.bytes_written += writer.written().iter().map(|written| written.bytes).sum::<u64>();
        let rows = self.commit_rewritten(writer, |writer| {
            let blocks = writer.written().to_vec();
            let build = move |now: &State| Ok(flush_effects(now, &flushes, &blocks));
            let (_, (rows, used)) = self.commit_built(state.clone(), build)?;
            // Nothing refers to what a void flush wrote.
            writer.abandon(|block| !used.contains(&block));
            Ok(rows)
        })?;
        report.failures.extend(failures.texts);
        report.rows_flushed += rows;
        Ok(failures.tables)
    }

    /// The effects that make row groups of the oldest part of each table of `work`, and the writer that has placed them; `Corrupt` if
    /// one cannot be read.
    pub(in crate::store) fn flushed(
        &self,
        state: &State,
        work: &[TableId],
        task: &Task,
    ) -> Result<(Vec<Effect>, BlockWriter)> {
        let mut failures = Failures { state, tables: Vec::new(), texts: Vec::new() };
        let mut flushes = self.to_flush(state, work, task, &mut failures)?;
        let writer = self.encode_parts(state, &mut flushes, task, &mut failures)?;
        match failures.texts.first() {
            Some(text) => Err(Error::corrupt(format!("rows in memory cannot be turned into row groups: {text}"))),
            None => Ok((flush_effects(state, &flushes, writer.written()).0, writer)),
        }
    }

    /// The oldest part of each table, and the rows of row groups that it hides.
    fn to_flush(
        &self,
        state: &State,
        work: &[TableId],
        task: &Task,
        failures: &mut Failures<'_>,
    ) -> Result<Vec<Flushing>> {
        let mut flushes = Vec::new();
        for id in work {
            task.cancel.check()?;
            let table = state.get(*id)?;
            let part = table.to_flush().expect("just seen").clone();
            let hidden = match table.needs_part(&part) {
                true => caught(|| hidden_rows(self.reader(), &self.env().pool, &table, &part, state.seq, &task.cancel)),
                false => Ok(Vec::new()),
            };
            match hidden {
                Ok(deletions) => {
                    flushes.push(Flushing { table: *id, part, deletions, groups: Vec::new(), history: Vec::new() });
                }
                Err(e) if !e.kind().leaves_others() => return Err(e),
                // One table that cannot be read must not hold up all others.
                Err(e) => failures.add(*id, &e),
            }
        }
        Ok(flushes)
    }

    /// Encodes the rows and the histories of parts, and places them; leaves out the parts that cannot be encoded.
    fn encode_parts(
        &self,
        state: &State,
        flushes: &mut Vec<Flushing>,
        task: &Task,
        failures: &mut Failures<'_>,
    ) -> Result<BlockWriter> {
        let proof = self.options().proof();
        let mut writer = self.block_writer()?;
        let parts: Vec<(usize, MemtablePart, Arc<TableState>)> = flushes
            .iter()
            .enumerate()
            .map(|(at, flush)| Ok((at, flush.part.clone(), state.get(flush.table)?)))
            .collect::<Result<_>>()?;
        let codecs: Vec<_> = flushes.iter().map(|flush| flush.part.rows().codec.clone()).collect();
        let batches = parts.iter().flat_map(|(at, part, table)| {
            let rows = table.needs_part(part).then(|| part_rows(part, state.seq).map(|batch| (Of::Rows, batch)));
            let own = table.is_all_of_its_version(part);
            let history = table.needs_history(part);
            let history = history.then(|| history_rows(part, own, state.seq).map(|batch| (Of::History, batch)));
            let both = rows.into_iter().flatten().chain(history.into_iter().flatten());
            both.map(move |(of, batch)| Ok((*at, of, batch)))
        });
        let mut refused: Vec<(usize, Error)> = Vec::new();
        self.env().pool.ordered(
            batches,
            |(.., batch)| batch.as_ref().map_or(0, batch_bytes),
            self.env().pool.threads() * 2,
            self.options().memory_bytes / 4,
            |(at, of, batch)| {
                task.cancel.check()?;
                let encode = |batch: RecordBatch| {
                    caught(|| match of {
                        Of::Rows => encode_keyed_group(&self.env().pool, &codecs[at], batch, None, proof),
                        Of::History => {
                            let schema = batch.schema();
                            encode_group(&self.env().pool, vec![batch], &schema, None, proof)
                        }
                    })
                };
                Ok((at, of, batch.and_then(encode)))
            },
            |(at, of, group)| {
                match group {
                    Ok((group, _)) => {
                        let rows = group.rows;
                        let group = NewGroup { address: writer.push(group)?, rows, dead: None };
                        let flush = &mut flushes[at];
                        if of == Of::Rows { flush.groups.push(group) } else { flush.history.push(group) }
                    }
                    Err(e) => refused.push((at, e)),
                }
                Ok(())
            },
        )?;
        refused.dedup_by_key(|(at, _)| *at);
        for (at, e) in refused.into_iter().rev() {
            failures.add(flushes.remove(at).table, &e);
        }
        writer.finish()?;
        Ok(writer)
    }
}

/// Tables that were left as they are, and why.
struct Failures<'a> {
    state: &'a State,
    tables: Vec<TableId>,
    texts: Vec<String>,
}

impl Failures<'_> {
    fn add(&mut self, table: TableId, e: &Error) {
        let path = self.state.path_of(table).map_or_else(|| format!("(table {table})"), ToString::to_string);
        self.texts.push(format!("{path}: {e}"));
        self.tables.push(table);
    }
}

/// The effects of those flushes that still fit `now`; how many rows they flush, and the blocks that they refer to.
fn flush_effects(
    now: &State,
    flushes: &[Flushing],
    blocks: &[WrittenBlock],
) -> (Vec<Effect>, (u64, BTreeSet<BlockId>)) {
    let (mut effects, mut used, mut rows) = (Vec::new(), BTreeSet::new(), 0);
    for Flushing { table, part, deletions, groups, history } in flushes.iter().cloned() {
        let same = |table: &Arc<TableState>| {
            table.to_flush().is_some_and(|now| (now.version, now.died) == (part.version, part.died))
        };
        // If another process has moved what is to be hidden, it is searched for again.
        let there = |table: &Arc<TableState>| {
            let groups: BTreeSet<GroupId> = table.groups.iter().map(|group| group.id).collect();
            deletions.iter().all(|(group, _)| groups.contains(group))
        };
        if now.open_table(table).is_some_and(|table| same(table) && there(table)) {
            rows += groups.iter().map(|group| u64::from(group.rows)).sum::<u64>();
            used.extend(groups.iter().chain(&history).map(|group| group.address.block));
            let flush = Flush { version: part.version, groups, deletions };
            effects.push(match history.is_empty() {
                true => Effect::FlushRows { table, flush },
                false => Effect::FlushWithHistory { table, flush, history },
            });
        }
    }
    let known: Vec<WrittenBlock> = blocks.iter().filter(|written| used.contains(&written.block)).cloned().collect();
    (add_blocks(&known).into_iter().chain(effects).collect(), (rows, used))
}
