//! Reclaim: deletes the objects of blocks that a commit has let go of. Data goes only after the commit that unlinked it;
//! a crash anywhere is continued by the next reclaim.

use std::fmt;

use super::Store;
use crate::base::planted::{Bug, planted};
use crate::base::{BlockId, Meter, Result, TableId, Task};
use crate::catalog::{Effect, State};
use crate::storage::{Storage, names};

/// What a reclaim may take.
#[derive(Clone, Default)]
pub struct ReclaimOptions {
    /// Tables dropped less than so many microseconds ago stay in the trash, to be taken back. Default 0.
    pub grace_micros: u64,
    /// Progress in objects, and cancelling.
    pub task: Task,
}

/// Space that a reclaim did not free, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// Bytes of tables in the trash, within their grace.
    pub trash_bytes: u64,
    /// Bytes of blocks that readers of this process still use.
    pub pinned_bytes: u64,
    /// Bytes in blocks of which other parts are in use; a checkpoint may repack them.
    pub fragment_bytes: u64,
    /// Bytes of row groups that only versions before the newest, or snapshots, need.
    pub history_bytes: u64,
}

/// What a reclaim did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReclaimReport {
    /// Tables in the trash given up.
    pub tables: u64,
    /// Blocks deleted.
    pub blocks: u64,
    /// Bytes of those blocks.
    pub bytes: u64,
    /// Objects deleted that nothing had ever referred to: left by crashes and failures.
    pub orphans: u64,
    /// Bytes of those objects.
    pub orphan_bytes: u64,
    /// Objects that could not be deleted, with the error; they stay listed for the next reclaim.
    pub failures: Vec<(String, String)>,
    /// What still holds space.
    pub holding: Holding,
}

impl fmt::Display for ReclaimReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} tables given up, {} blocks deleted ({} bytes), {} orphans ({} bytes), {} failures",
            self.tables,
            self.blocks,
            self.bytes,
            self.orphans,
            self.orphan_bytes,
            self.failures.len()
        )?;
        let Holding { trash_bytes, pinned_bytes, fragment_bytes, history_bytes } = self.holding;
        write!(
            f,
            "; still held: trash {trash_bytes}, readers {pinned_bytes}, shared blocks {fragment_bytes}, history {history_bytes}"
        )
    }
}

/// Objects deleted by one request.
const DELETE_BATCH: usize = 1000;

impl Store {
    /// Frees the space of dropped tables, expired versions and rewritten row groups, and sweeps what crashes left.
    pub fn reclaim(&self, options: &ReclaimOptions) -> Result<ReclaimReport> {
        self.inner.log()?;
        let _one_at_a_time = self.inner.maintenance.lock();
        let mut report = ReclaimReport::default();
        let grace = i64::try_from(options.grace_micros).unwrap_or(i64::MAX);
        let now = self.inner.env.clock.now();
        let over = move |state: &State| -> Vec<TableId> {
            let over =
                state.trash.iter().filter(|(_, trash)| trash.time.0.saturating_add(grace) <= now.0.max(state.time.0));
            over.map(|(id, _)| *id).collect()
        };
        let trash = over(&*self.state()?);
        report.tables = trash.len() as u64;
        if planted(Bug::DeleteBeforeUnlink) {
            let state = self.state()?;
            let tables = trash.iter().filter_map(|id| state.table(*id));
            let blocks = tables.flat_map(|table| table.groups.iter().map(|group| names::block(group.address.block)));
            self.inner.storage.delete_many(&blocks.collect::<Vec<_>>());
        }
        if !trash.is_empty() {
            self.commit_effects(move |state| Ok(vec![Effect::Condemn { tables: over(state) }]))?;
        }
        self.delete_condemned(&options.task, &mut report)?;
        self.sweep(&options.task, &mut report)?;
        report.holding = self.holding(&*self.state()?);
        Ok(report)
    }

    /// Deletes condemned blocks that no reader pins, and commits which are gone.
    fn delete_condemned(&self, task: &Task, report: &mut ReclaimReport) -> Result<()> {
        let state = self.state()?;
        // Readers of states before the commit that let go may still need the block. Pins taken from here on are of
        // `state` or newer, which do not.
        // What let go of them must be durable before they go.
        if !planted(Bug::SkipSyncBeforeDelete) {
            self.sync()?;
        }
        let free: Vec<(BlockId, u64)> = state.ledger.unneeded(self.inner.pins.oldest()).collect();
        let total = free.len() as u64;
        let mut meter = Meter::new(task, &*self.inner.env.clock, total, total);
        for batch in free.chunks(DELETE_BATCH) {
            task.cancel.check()?;
            let objects: Vec<String> = batch.iter().map(|(block, _)| names::block(*block)).collect();
            let mut gone = Vec::with_capacity(batch.len());
            for ((answer, name), (block, bytes)) in
                self.inner.storage.delete_many(&objects).into_iter().zip(objects).zip(batch)
            {
                match answer {
                    Ok(()) => {
                        gone.push(*block);
                        report.bytes += bytes;
                        meter.done.bytes += bytes;
                    }
                    Err(e) => report.failures.push((name, e.to_string())),
                }
            }
            report.blocks += gone.len() as u64;
            if !gone.is_empty() {
                self.commit_effects(move |_| Ok(vec![Effect::Reclaimed { blocks: gone.clone() }]))?;
            }
            meter.step(batch.len() as u64, batch.len() as u64)?;
        }
        meter.step(0, 0)
    }

    /// Deletes objects of ended sessions that nothing refers to. Lists; what the list misses waits for the next time.
    fn sweep(&self, task: &Task, report: &mut ReclaimReport) -> Result<()> {
        let storage = &self.inner.storage;
        let folders = storage.list_folders(names::BLOCKS)?;
        if folders.is_empty() {
            return Ok(());
        }
        // Registering this session fences all before it.
        let own = self.block_numbers()?.session();
        let state = self.state()?;
        for folder in folders {
            let Some(session) = names::parse_session(&folder) else { continue };
            if session >= state.session.fenced_below || session == own {
                continue;
            }
            task.cancel.check()?;
            let folder = names::session_folder(session);
            let objects = storage.list(&folder)?;
            let total = objects.len();
            let orphans: Vec<_> = objects
                .into_iter()
                .filter(|object| {
                    let name = object.name.rsplit('/').next().unwrap_or_default();
                    names::parse_block(session, name).is_none_or(|block| !state.ledger.knows(block))
                })
                .collect();
            let known = total - orphans.len();
            for batch in orphans.chunks(DELETE_BATCH) {
                let objects: Vec<String> = batch.iter().map(|object| object.name.clone()).collect();
                for (answer, object) in storage.delete_many(&objects).into_iter().zip(batch) {
                    match answer {
                        Ok(()) => {
                            report.orphans += 1;
                            report.orphan_bytes += object.bytes;
                        }
                        Err(e) => report.failures.push((object.name.clone(), e.to_string())),
                    }
                }
            }
            if known == 0 {
                storage.remove_empty_folder(&folder)?;
            }
        }
        Ok(())
    }

    /// What holds space that is not the newest versions' own.
    fn holding(&self, state: &State) -> Holding {
        let mut holding = Holding {
            pinned_bytes: state.ledger.condemned().map(|(_, condemned)| condemned.bytes).sum(),
            fragment_bytes: state.ledger.blocks().map(|(_, used)| used.bytes.saturating_sub(used.live_bytes)).sum(),
            ..Holding::default()
        };
        for (id, table) in state.tables() {
            let in_trash = state.trash.contains_key(id);
            let newest = table.newest().filter(|_| state.path_of(*id).is_some()).map(|newest| newest.version);
            for group in &table.groups {
                let bytes = group.address.bytes();
                let current = newest.is_some_and(|v| table.visible(group, v) != crate::table::Rows::None);
                if in_trash {
                    holding.trash_bytes += bytes;
                } else if !current {
                    holding.history_bytes += bytes;
                }
            }
        }
        holding
    }
}
