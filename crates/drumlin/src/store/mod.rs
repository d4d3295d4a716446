//! The public API: a store, opened from a folder or in memory.
//!
//! Everything a store does is one of three things: it reads a [`State`] that it holds (reads never wait), it proposes a
//! commit (*commit.rs*), or it deletes objects that a commit has already released (*reclaim.rs*).

mod activity;
mod aggregate;
mod alike;
mod alter;
mod assign;
mod background;
mod blocks;
mod checkpoint;
mod columns;
mod commit;
mod committer;
mod copies;
mod copy_to;
mod dataset;
mod dataset_scan;
mod diff;
mod doctor;
mod drop;
mod encoder;
mod export;
mod feed;
mod flush;
mod follow;
mod format;
mod handles;
mod history;
mod holds;
mod in_groups;
mod in_order;
mod keyed;
mod keyed_bulk;
mod keyed_read;
mod layout;
mod lease;
mod merge;
mod metadata;
mod metrics;
mod open;
mod options;
mod pins;
mod place;
mod plans;
mod probe;
mod projection;
mod proposal;
mod purge;
mod purge_family;
mod purge_holds;
mod purge_proof;
mod purge_report;
mod read;
mod reclaim;
mod recover;
mod repack;
mod replace;
mod resolve;
mod row_changes;
mod salvage;
mod salvage_copy;
mod salvage_report;
mod session;
mod sorting;
mod split;
mod stage;
mod stage_commit;
mod stat;
mod syncer;
mod table;
mod tables;
mod time;
mod transaction;
mod tree;
mod trigger;
mod update;
mod verify;
mod versions;
mod windows;
mod write;
mod write_frames;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};

pub use activity::{Activity, SessionInfo, SnapshotSummary, TriggerInfo};
pub use assign::UpdateReport;
use background::Background;
#[cfg(feature = "internals")]
pub use background::wait_for_checkpoint;
pub use checkpoint::{CheckpointOptions, CheckpointReport};
pub use columns::ColumnFn;
pub use copy_to::{CopyToOptions, CopyToReport};
pub use dataset::{Dataset, DatasetOptions, DatasetPlan};
pub use dataset_scan::DatasetScan;
pub use diff::{Diff, DiffOptions};
pub use doctor::{Diagnosis, Finding};
pub use drop::{DropReport, Missing, TrashItem};
pub use export::ImportReport;
pub use feed::{ChangeFeed, Commit};
pub use holds::HoldInfo;
pub use keyed::RowsReport;
pub use keyed_read::{LookupOptions, TableView};
pub use layout::{CellKind, Layout, LayoutBlock, LayoutCell, LayoutOptions, LayoutTable, NeededBy, TableHome};
pub use lease::{Lease, SplitOptions, Splits};
pub use merge::MergeReport;
pub use metrics::{Metric, MetricValue, metrics, prometheus};
#[cfg(feature = "internals")]
pub use open::{open_bucket, open_on};
pub use options::{BucketOptions, Mode, Options, Sync};
pub use place::Place;
pub use plans::VacuumPlan;
pub use projection::ProjectionView;
pub use purge::Purge;
pub use purge_report::{Held, PurgePlan, PurgeProof, PurgeReceipt, PurgedObject, PurgedTable};
pub use read::ReadOptions;
pub use reclaim::{Holding, ReclaimOptions, ReclaimReport};
pub use resolve::AsOf;
pub use salvage::{SalvageTarget, salvage};
pub use salvage_report::{Loss, LossKind, LostRows, SalvageReport};
#[cfg(feature = "internals")]
pub use split::check_plan;
pub use split::{Split, SplitReader, SplitScan};
pub use stage::{Stage, StageMode, StageOptions, Ticket, Token};
pub use stage_commit::{Aborted, StagedCommit, StagedReport};
pub use stat::{StoreStat, TableStat};
pub use table::Table;
pub use tables::Tables;
pub use transaction::Transaction;
pub use tree::{IntoPattern, ListEntry, TableFigures, Tree};
pub use trigger::{TriggerCall, TriggerEvent, TriggerFailure, TriggerFn};
pub use update::{DeleteReport, UpdateOptions};
pub use verify::{Fault, VerifyOptions, VerifyReport};
pub use versions::{SnapshotInfo, SnapshotOf, VersionInfo, VersionsReport};
pub use write::{Frame, TableOptions, WriteOptions};

use crate::base::waiting::{self, Exclusive};
use crate::base::{Env, Error, Result};
use crate::block::{BlockNumbers, BlockReader};
use crate::catalog::State;
use crate::log::CommitLog;
use crate::storage::{Guard, InlineStorage, Storage, names};
use committer::Committer;
use feed::Feeds;
use handles::{Handle, Handles};
use pins::{Pin, Pins};
use syncer::Syncer;
use time::Times;
use trigger::Triggers;

/// An open store. Clones share it; it is closed when the last one is dropped, or by [`Store::close`].
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
    /// Shared by the clones that users hold. The store's own threads have none: they keep nothing open, and do not get the
    /// errors of automatic checkpoints.
    handle: Option<Arc<Handle>>,
    /// What is said of the commits made through this handle.
    message: Option<Arc<str>>,
}

struct Inner {
    uri: String,
    options: Options,
    env: Env,
    storage: Arc<InlineStorage>,
    reader: Arc<BlockReader>,
    log: Box<dyn CommitLog>,
    read_only: bool,
    state: RwLock<Arc<State>>,
    committer: Committer,
    feeds: Arc<Feeds>,
    triggers: Arc<Triggers>,
    pins: Arc<Pins>,
    times: Times,
    /// What this process has seen of holds whose owners' clocks are ahead.
    watched: Mutex<holds::Watched>,
    /// The session of this process, once it has written a block.
    session: Mutex<Option<Arc<BlockNumbers>>>,
    /// Held by a checkpoint or reclaim: a second one waits.
    maintenance: Exclusive<Maintenance>,
    background: Background,
    /// If commits are made durable by time.
    syncer: Option<Syncer>,
    /// About how many bytes the rows in memory that wait for a checkpoint take.
    memtable_bytes: AtomicU64,
    /// How many tables stayed decoded after the newest catalog snapshot.
    tables_kept: AtomicUsize,
    /// Whether the newest catalog snapshot was found damaged.
    catalog_damaged: AtomicBool,
    /// States before this commit may be of another history.
    proven_from: AtomicU64,
    closed: AtomicBool,
    handles: Handles,
    process: u32,
    lock: Mutex<Option<Box<dyn Guard>>>,
    /// Whether the storage belongs to another owner.
    lent: bool,
}

/// What only checkpoints and reclaims use.
struct Maintenance {
    /// The newest catalog snapshot.
    catalog: Option<recover::Catalog>,
    /// Small row groups that do not become fewer when they are merged, since their texts are long.
    unmerged: BTreeSet<checkpoint::NamedWindow>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("uri", &self.inner.uri).finish_non_exhaustive()
    }
}

impl Store {
    /// One for the store's own threads and errands: it keeps nothing open, and says nothing.
    fn internal(inner: Arc<Inner>) -> Self {
        Self { inner, handle: None, message: None }
    }

    /// Fails if this handle, or the store, is closed.
    fn check(&self) -> Result<()> {
        self.handle.as_ref().map_or(Ok(()), |handle| handle.check())?;
        self.inner.check()
    }

    /// The newest state known. O(1).
    fn current(&self) -> Result<Arc<State>> {
        self.check()?;
        Ok(self.inner.state.read().clone())
    }

    /// The newest state, to be read: with [`Options::fresh`] takes in first what others have committed. Not in the turn.
    fn state(&self) -> Result<Arc<State>> {
        if self.inner.options.fresh {
            self.refresh()?;
        }
        self.current()
    }

    /// The newest state, whose blocks stay on storage while the pin lives.
    fn pinned_state(&self) -> Result<(Arc<State>, Arc<Pin>)> {
        self.check()?;
        if self.inner.options.fresh {
            self.refresh()?;
        }
        Ok(self.inner.pins.take(|| self.inner.state.read().clone()))
    }

    /// Where the store is.
    pub fn uri(&self) -> &str {
        &self.inner.uri
    }

    /// Closes the store cleanly: all later calls fail, and the next open needs no recovery. Open scans may still be read to
    /// their end. If this process has opened it more than once, it stays open for the other handles.
    ///
    /// # Errors
    /// `InDoubt` if the last commits, or that the log has ended, could not be made durable.
    pub fn close(&self) -> Result<()> {
        if self.handle.as_ref().is_some_and(|handle| !handle.close()) {
            return Ok(());
        }
        // Before the log is closed, so that triggers are not called again for the same commits.
        self.inner.triggers.stop();
        let open = !self.inner.read_only && self.inner.check().is_ok();
        let own = Store::internal(self.inner.clone());
        let noted = if open { own.note_triggers().and(own.end_session()) } else { Ok(()) };
        self.inner.close().and(noted)
    }

    /// The last commit that this handle sees.
    ///
    /// # Errors
    /// `Closed`.
    pub fn seq(&self) -> Result<crate::base::Seq> {
        Ok(self.current()?.seq)
    }
}

impl Inner {
    /// How a process names itself in the lock of a store.
    fn holder(process: u32) -> String {
        format!("process {process}")
    }

    /// Puts the blocks that came with commits of others, or of earlier runs, where they are read; called before `next` takes the
    /// place of `before` as the newest state. O(blocks that came).
    fn hold_inline(&self, before: &State, next: &State) {
        for (block, content) in next.ledger.inline_since(&before.ledger) {
            self.storage.hold(&names::block(block), content.0.clone());
        }
    }

    /// Makes `next` the newest state, in the place of `before`: in the turn, or where nobody else has one.
    fn publish(&self, before: &State, next: Arc<State>) {
        *self.state.write() = next.clone();
        let released = before.ledger.inline_since(&next.ledger).into_iter().map(|(block, _)| names::block(block));
        self.storage.published(next.seq, released);
    }

    /// Forgets blocks that came with commits and that neither the newest state needs nor one that is being read.
    fn forget_inline(&self) {
        self.storage.forget_released(|after, before| self.pins.any_between(after, before));
    }

    fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(Error::closed(format!("the store {} is closed; open it again", self.uri)));
        }
        self.storage.check()
    }

    /// Also checks that this is the process that opened it, which takes a system call.
    fn check(&self) -> Result<()> {
        self.check_open()?;
        check_process(self.process, format_args!("the store {}", self.uri))
    }

    /// The log, to be written to.
    fn log(&self) -> Result<&dyn CommitLog> {
        if self.read_only {
            return Err(Error::invalid(format!(
                "the store {} is open for reading only; open it for writing to change it",
                self.uri
            )));
        }
        Ok(&*self.log)
    }

    fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        if self.process != std::process::id() {
            return Ok(());
        }
        self.triggers.stop();
        // Nothing of a store that this process alone writes may go on once its lock is given up.
        let stopped = match self.log.is_shared() {
            true => self.background.stop(),
            false => waiting::unstoppable(|| self.background.stop()),
        };
        self.syncer.iter().for_each(Syncer::stop);
        self.feeds.close();
        // A commit under way ends first. In a store that others write too, one that does not end does no harm, and the caller
        // may not wait for it.
        let turn = match self.log.is_shared() {
            true => self.committer.turn(),
            false => waiting::unstoppable(|| self.committer.turn()),
        };
        let closed = self.log.close().and(turn.as_ref().map(drop).map_err(|e| Error::new(e.kind(), e.message())));
        let closed = closed.and(stopped);
        // Callbacks may hold handles of this store.
        self.triggers.clear();
        let mut last = State::clone(&self.state.read());
        last.drop_functions();
        let functions = std::mem::replace(&mut *self.state.write(), Arc::new(last));
        drop(functions);
        self.lock.lock().take();
        if !self.lent {
            // Open scans are still read.
            let storage = self.storage.clone();
            self.pins.when_free(move || storage.release());
        }
        closed
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // If this fails, the next open recovers.
        let _ = self.close();
    }
}

/// `Closed` in a fork of the process that opened something: its threads are not there.
fn check_process(process: u32, what: impl std::fmt::Display) -> Result<()> {
    match process == std::process::id() {
        true => Ok(()),
        false => {
            Err(Error::closed(format!("{what} was opened by process {process}; a forked process must open it again")))
        }
    }
}
