//! How a replica is kept, of which store, and what was brought over.

use std::sync::Arc;

use super::blocks::CopiedBlocks;
use crate::base::Task;
use crate::store::{Options, Store};

/// How a replica is kept.
#[derive(Clone)]
pub struct ReplicateOptions {
    /// Whether the call returns once the replica has what was committed when it looked last. Default: it goes on until it is stopped.
    pub once: bool,
    /// How often the source is asked for news, in microseconds. Default: half a second.
    pub poll_micros: u64,
    /// Whether to keep what the replica still needs at the source by a lease, where the source is a store that many processes
    /// write; this commits there, about once a minute. Without one, the newest state is copied as a whole where the source
    /// has dropped what was in between. Default: yes.
    pub lease: bool,
    /// How long the replica keeps what leaves it, in microseconds, so that each commit of that time can be restored from it with
    /// [`clone_store`](crate::clone_store). Default: as long as in the call before; at first, not at all.
    pub keep_log_micros: Option<u64>,
    /// In a bucket: whether to delete what calls that were killed have left in the replica. No other process may keep the same replica at
    /// that time. Default: it is left; in a folder it is deleted in any case.
    pub sweep: bool,
    /// How the source is opened. Default: as any store.
    pub source: Options,
    /// How the replica is opened.
    pub target: Options,
    /// Called each time that the replica has caught up with news.
    pub caught_up: Option<CaughtUp>,
    /// Progress in blocks copied, and stopping.
    pub task: Task,
}

/// Is given what was brought over since the call began.
pub type CaughtUp = Arc<dyn Fn(&ReplicateReport) + Send + Sync>;

impl Default for ReplicateOptions {
    fn default() -> Self {
        let (source, target) = (Options::default(), Options::default());
        let task = Task::default();
        Self {
            once: false,
            poll_micros: 500_000,
            lease: true,
            keep_log_micros: None,
            sweep: false,
            source,
            target,
            caught_up: None,
            task,
        }
    }
}

/// What was brought over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicateReport {
    /// The last commit that the replica has.
    pub seq: u64,
    /// Commits added one by one.
    pub entries: u64,
    /// How often the newest state was taken over as a whole.
    pub whole: u64,
    /// Blocks copied.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl ReplicateReport {
    pub(super) fn count(&mut self, copied: CopiedBlocks) {
        self.blocks += copied.blocks;
        self.bytes += copied.bytes;
    }
}

/// The store that a replica follows.
#[derive(Clone, Copy)]
pub enum ReplicateFrom<'a> {
    /// The one there; see [`Store::open_with`].
    At(&'a str),
    /// The one that is open. The lease is this handle's, so that it is kept in a store that one process writes, too.
    Open(&'a Store),
}

impl<'a> From<&'a str> for ReplicateFrom<'a> {
    fn from(uri: &'a str) -> Self {
        Self::At(uri)
    }
}

impl<'a> From<&'a Store> for ReplicateFrom<'a> {
    fn from(store: &'a Store) -> Self {
        Self::Open(store)
    }
}
