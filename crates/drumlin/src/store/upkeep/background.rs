//! The automatic checkpoint: once the log, the rows in memory or those that indexes do not cover have grown past a bound,
//! or many tables have changed, a separate thread runs a checkpoint while reads and writes continue. If it fails, the
//! store is as it was, a warning says so, and it is tried again when the log has grown as much once more.

use super::checkpoint::automatic;
use crate::base::{Result, WarningKind, caught, waiting};
use crate::store::Store;

/// How many tables change before a checkpoint is made: from the catalog snapshot on they need not be held decoded, at two or
/// more KiB each.
const CHANGED_TABLES_MAX: usize = 50_000;

/// How many rows tables with indexes get in new row groups before a checkpoint is made, which fills the indexes: until then they are scanned.
const INDEX_ROWS_MAX: u64 = 512 << 10;

impl Store {
    /// Starts a checkpoint if one is due and none is running.
    pub(in crate::store) fn checkpoint_if_due(&self) {
        let (bytes, options) = (self.commits().log().bytes(), self.options());
        let bound = options.checkpoint_log_bytes;
        let newest = self.commits().newest();
        let due = |bytes: u64, bound: u64| bound > 0 && bytes > bound;
        let changed = newest.open_tables().saturating_sub(self.upkeep().tables_kept());
        let rows = due(newest.memtable_bytes(), options.memtable_bytes);
        let index_rows = newest.state().index_rows().saturating_sub(self.upkeep().index_rows_seen());
        let many = changed > CHANGED_TABLES_MAX || index_rows > INDEX_ROWS_MAX;
        if !due(bytes, bound) && !rows && (bound == 0 || !many) {
            return;
        }
        if !self.upkeep().background().begin(bytes) {
            return;
        }
        let store = self.own();
        let work = move || {
            let cancel = store.upkeep().background().cancel();
            let done = waiting::with_stop(cancel, || caught(|| automatic(&store, cancel)));
            store.end_checkpoint(done);
        };
        if let Err(e) = self.env().threads.spawn("drumlin-checkpoint", Box::new(work)) {
            self.end_checkpoint(Err(e));
        }
    }

    fn end_checkpoint(&self, done: Result<Vec<String>>) {
        let retry_at = self.commits().log().bytes() + self.options().checkpoint_log_bytes;
        let open = self.setting().check_open().is_ok();
        if let Some(failed) = self.upkeep().background().end(done, open, retry_at) {
            let say = || format!("{}: an automatic checkpoint failed: {failed}", self.uri());
            self.env().warn.say(WarningKind::CheckpointFailed, say);
        }
    }
}

/// Waits for the automatic checkpoint that is running, if there is one.
pub fn wait_for_checkpoint(store: &Store) {
    // It cannot be stopped.
    let _ = store.upkeep().background().wait();
}
