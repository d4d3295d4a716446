//! What a checkpoint may do, and what it did.

use std::fmt;

use crate::base::Task;
use crate::table::{PlanOptions, RunOptions};

/// What a checkpoint may do.
#[derive(Clone)]
pub struct CheckpointOptions {
    /// The vacuum plan.
    pub plan: PlanOptions,
    /// Indexes get a run once this many rows in row groups are covered by none; until then these are scanned. Default: 4,096.
    pub index_rows_min: u64,
    /// Progress in row groups read, and cancelling.
    pub task: Task,
}

impl Default for CheckpointOptions {
    fn default() -> Self {
        let index_rows_min = RunOptions::default().rows_min;
        Self { plan: PlanOptions::default(), index_rows_min, task: Task::default() }
    }
}

/// What a checkpoint did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckpointReport {
    /// Tables with rewritten row groups.
    pub tables: u64,
    /// Row groups of all tables before the checkpoint.
    pub groups_before: u64,
    /// Row groups of all tables after the checkpoint.
    pub groups_after: u64,
    /// Rows removed because no version needed them.
    pub rows_removed: u64,
    /// Row groups copied out of blocks that were mostly dead, or out of many small ones.
    pub groups_moved: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Rows written by key that became row groups.
    pub rows_flushed: u64,
    /// Rows deleted because they had expired.
    pub rows_expired: u64,
    /// Versions removed by retention.
    pub versions_expired: u64,
    /// Runs of indexes that were made.
    pub index_runs: u64,
    /// Windows that were void because others changed their row groups during the checkpoint.
    pub windows_void: u64,
    /// Windows and blocks that could not be rewritten and were left as they are: the table or block, and why.
    pub failures: Vec<String>,
}

impl CheckpointReport {
    /// Whether a commit was made that changed tables.
    pub(in crate::store) fn did_anything(&self) -> bool {
        self.versions_expired > 0
            || self.rows_expired > 0
            || self.rows_flushed > 0
            || self.tables > 0
            || self.groups_moved > 0
            || self.index_runs > 0
    }
}

impl fmt::Display for CheckpointReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} row groups -> {}; {} rows flushed, {} tables rewritten, {} rows removed, {} row groups repacked, \
             {} bytes written, {} versions expired",
            self.groups_before,
            self.groups_after,
            self.rows_flushed,
            self.tables,
            self.rows_removed,
            self.groups_moved,
            self.bytes_written,
            self.versions_expired
        )?;
        if self.rows_expired > 0 {
            write!(f, ", {} rows expired", self.rows_expired)?;
        }
        if self.index_runs > 0 {
            write!(f, ", {} index runs made", self.index_runs)?;
        }
        match self.failures.len() {
            0 => Ok(()),
            n => write!(f, "; {n} windows left as they are: {}", self.failures[0]),
        }
    }
}
