//! The automatic checkpoint: once the log has grown past a bound, a thread of its own checkpoints, while reads and writes
//! go on. If that fails, the next call that would write says so instead; the store is as it was, and the checkpoint is
//! tried again when the log has grown as much once more.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::{Condvar, Mutex};

use super::{CheckpointOptions, CheckpointReport, Inner, Store};
use crate::base::{Cancel, Error, ErrorKind, Result, Task, caught};

/// The state of automatic checkpoints.
#[derive(Default)]
pub(super) struct Background {
    state: Mutex<Work>,
    ended: Condvar,
    cancel: Cancel,
}

#[derive(Default)]
struct Work {
    running: bool,
    /// Not before the log has so many bytes.
    not_before: u64,
    /// The failure that nobody has been told of.
    failed: Option<Error>,
    /// What was left as it is the last time, so that it is told once.
    left: Vec<String>,
}

impl Background {
    /// Tells of a failed automatic checkpoint, once.
    pub fn take_error(&self) -> Result<()> {
        // Rarely anything to be told: looked at before every write.
        match self.state.lock().failed.take() {
            // Of a kind that says of the call itself that nothing was done.
            Some(e) => {
                let kind = if e.kind() == ErrorKind::Corrupt { ErrorKind::Corrupt } else { ErrorKind::Unavailable };
                let what = "an automatic checkpoint failed, and what was asked now was not done";
                Err(Error::new(kind, format!("{what}: {e}")))
            }
            None => Ok(()),
        }
    }

    /// Stops a checkpoint under way, and waits for its end.
    pub fn stop(&self) {
        self.cancel.cancel();
        self.wait();
    }

    /// Waits until none is under way.
    pub fn wait(&self) {
        let mut state = self.state.lock();
        while state.running {
            self.ended.wait(&mut state);
        }
    }
}

/// Starts a checkpoint if one is due and none is under way.
pub(super) fn checkpoint_if_due(inner: &Arc<Inner>) {
    let bound = inner.options.checkpoint_log_bytes;
    let bytes = inner.log.bytes();
    let (rows, rows_bound) = (inner.memtable_bytes.load(Ordering::Relaxed), inner.options.memtable_bytes);
    let due = |bytes: u64, bound: u64| bound > 0 && bytes > bound;
    if !due(bytes, bound) && !due(rows, rows_bound) {
        return;
    }
    {
        let mut state = inner.background.state.lock();
        if state.running || bytes < state.not_before {
            return;
        }
        state.running = true;
    }
    let store = Store { inner: inner.clone(), handle: None };
    let work = move || {
        let task = Task { cancel: store.inner.background.cancel.clone(), progress: None };
        let options = CheckpointOptions { task, ..CheckpointOptions::default() };
        end(&store.inner, caught(|| store.checkpoint(&options)));
    };
    if let Err(e) = inner.env.threads.spawn("drumlin-checkpoint", Box::new(work)) {
        end(inner, Err(e));
    }
}

fn end(inner: &Inner, done: Result<CheckpointReport>) {
    let open = inner.check_open().is_ok();
    let mut state = inner.background.state.lock();
    let failed = match done {
        Err(e) => Some(e),
        Ok(report) => {
            let news = !report.failures.is_empty() && report.failures != state.left;
            state.left = report.failures;
            news.then(|| Error::corrupt(format!("left as they are: {}", state.left.join("; "))))
        }
    };
    state.running = false;
    state.not_before = match &failed {
        Some(_) => inner.log.bytes() + inner.options.checkpoint_log_bytes,
        None => 0,
    };
    // Whoever closes the store wants to hear nothing of it.
    state.failed = failed.filter(|_| open);
    inner.background.ended.notify_all();
}

impl Store {
    /// Waits for an automatic checkpoint that is under way, if there is one.
    pub fn wait_for_checkpoint(&self) {
        self.inner.background.wait();
    }
}
