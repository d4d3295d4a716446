//! The automatic checkpoint: once the log has grown past a bound, a separate thread runs a checkpoint while reads and
//! writes continue. If it fails, the store is as it was, a warning says so, and it is tried again when the log has grown as
//! much once more. No call is refused for it until the log has [`REFUSED_AT`] times its bound: from then on each failure is
//! returned to one call that would write.

use std::sync::atomic::Ordering;

use parking_lot::{Condvar, Mutex};

use super::{Inner, Store};
use crate::base::{Cancel, Error, ErrorKind, Result, WarningKind, caught, waiting};

/// How many times its bound the log may take before the failures of automatic checkpoints are returned to callers.
pub(super) const REFUSED_AT: u64 = 4;

/// Runs a checkpoint; returns what it left as it is.
pub(super) type Checkpoint = fn(&Store, &Cancel) -> Result<Vec<String>>;

/// The state of automatic checkpoints.
pub(super) struct Background {
    checkpoint: Checkpoint,
    state: Mutex<Work>,
    ended: Condvar,
    cancel: Cancel,
}

#[derive(Default)]
struct Work {
    running: bool,
    /// Not before the log has this many bytes.
    not_before: u64,
    /// The failure that has not been reported yet.
    failed: Option<Error>,
    /// What was left as it is the last time, so that it is reported once.
    left: Vec<String>,
}

impl Background {
    pub fn new(checkpoint: Checkpoint) -> Self {
        Self { checkpoint, state: Mutex::default(), ended: Condvar::new(), cancel: Cancel::default() }
    }

    /// Returns the error of a failed automatic checkpoint, once, if the log of `bytes` bytes is far beyond its bound.
    pub fn take_error(&self, bytes: impl FnOnce() -> u64, bound: u64) -> Result<()> {
        // Rarely set, but checked before every write.
        let mut state = self.state.lock();
        if state.failed.is_none() || bound == 0 || bytes() <= bound.saturating_mul(REFUSED_AT) {
            return Ok(());
        }
        match state.failed.take() {
            // Of a kind that says that this call did nothing.
            Some(e) => {
                let kind = if e.kind() == ErrorKind::Corrupt { ErrorKind::Corrupt } else { ErrorKind::Unavailable };
                let what = "an automatic checkpoint failed, and this call did nothing";
                Err(Error::new(kind, format!("{what}: {e}")))
            }
            None => Ok(()),
        }
    }

    /// Cancels a running checkpoint, and waits for its end.
    pub fn stop(&self) -> Result<()> {
        self.cancel.cancel();
        self.wait()
    }

    /// Waits until none is running.
    pub fn wait(&self) -> Result<()> {
        waiting::wait_while(&self.ended, &mut self.state.lock(), |state| state.running)
    }
}

fn end(inner: &Inner, done: Result<Vec<String>>) {
    let open = inner.check_open().is_ok();
    let mut state = inner.background.state.lock();
    let failed = match done {
        Err(e) => Some(e),
        Ok(left) => {
            let news = !left.is_empty() && left != state.left;
            state.left = left;
            news.then(|| Error::corrupt(format!("these were left as they are: {}", state.left.join("; "))))
        }
    };
    state.running = false;
    state.not_before = match &failed {
        Some(_) => inner.log.bytes() + inner.options.checkpoint_log_bytes,
        None => 0,
    };
    // Once the store is closed, no call is left to report it.
    state.failed = failed.filter(|_| open);
    let failed = state.failed.as_ref().map(ToString::to_string);
    drop(state);
    inner.background.ended.notify_all();
    if let Some(failed) = failed {
        inner
            .env
            .warn
            .say(WarningKind::CheckpointFailed, || format!("{}: an automatic checkpoint failed: {failed}", inner.uri));
    }
}

/// How many tables change before a checkpoint is made: from the catalog snapshot on they need not be held decoded, at two or
/// more KiB each.
const CHANGED_TABLES_MAX: usize = 50_000;

impl Store {
    /// Starts a checkpoint if one is due and none is running.
    pub(super) fn checkpoint_if_due(&self) {
        let inner = &self.inner;
        let bound = inner.options.checkpoint_log_bytes;
        let bytes = inner.log.bytes();
        let (rows, rows_bound) = (inner.memtable_bytes.load(Ordering::Relaxed), inner.options.memtable_bytes);
        let due = |bytes: u64, bound: u64| bound > 0 && bytes > bound;
        let changed = inner.state.read().open_tables_len().saturating_sub(inner.tables_kept.load(Ordering::Relaxed));
        if !due(bytes, bound) && !due(rows, rows_bound) && (bound == 0 || changed <= CHANGED_TABLES_MAX) {
            return;
        }
        {
            let mut state = inner.background.state.lock();
            if state.running || bytes < state.not_before {
                return;
            }
            state.running = true;
        }
        let store = Store::internal(inner.clone());
        let work = move || {
            let background = &store.inner.background;
            let cancel = &background.cancel;
            let done = waiting::with_stop(cancel, || caught(|| (background.checkpoint)(&store, cancel)));
            end(&store.inner, done);
        };
        if let Err(e) = inner.env.threads.spawn("drumlin-checkpoint", Box::new(work)) {
            end(inner, Err(e));
        }
    }
}

/// Waits for the automatic checkpoint that is running, if there is one.
pub fn wait_for_checkpoint(store: &Store) {
    // It cannot be stopped.
    let _ = store.inner.background.wait();
}
