//! The state of automatic checkpoints: whether one is running, and the failure that has not been reported yet. No call is refused for
//! a failure until the log has [`REFUSED_AT`] times its bound: from then on each failure is returned to one call that would write.

use parking_lot::{Condvar, Mutex};

use crate::base::{Cancel, Error, ErrorKind, Result, waiting};

/// How many times its bound the log may take before the failures of automatic checkpoints are returned to callers.
const REFUSED_AT: u64 = 4;

/// The state of automatic checkpoints.
#[derive(Default)]
pub(in crate::store) struct Background {
    state: Mutex<BackgroundState>,
    ended: Condvar,
    cancel: Cancel,
}

#[derive(Default)]
struct BackgroundState {
    running: bool,
    /// Not before the log has this many bytes.
    not_before: u64,
    /// The failure that has not been reported yet.
    failed: Option<Error>,
    /// What was left as it is the last time, so that it is reported once.
    left: Vec<String>,
}

impl Background {
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

    /// What a running checkpoint is cancelled by.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Begins a checkpoint, unless one is running, or the last one failed and the log of `bytes` bytes has not grown enough since.
    pub fn begin(&self, bytes: u64) -> bool {
        let mut state = self.state.lock();
        let begins = !state.running && bytes >= state.not_before;
        state.running |= begins;
        begins
    }

    /// Ends the checkpoint that was begun: `done` is what it left as it is. After a failure the next one is not begun before the
    /// log has `retry_at` bytes; the failure is returned, and to a later call, if the store is `open`.
    pub fn end(&self, done: Result<Vec<String>>, open: bool, retry_at: u64) -> Option<String> {
        let mut state = self.state.lock();
        let failed = match done {
            Err(e) => Some(e),
            Ok(left) => {
                let news = !left.is_empty() && left != state.left;
                state.left = left;
                news.then(|| Error::corrupt(format!("these were left as they are: {}", state.left.join("; "))))
            }
        };
        state.running = false;
        state.not_before = if failed.is_some() { retry_at } else { 0 };
        // Once the store is closed, no call is left to report it.
        state.failed = failed.filter(|_| open);
        let failed = state.failed.as_ref().map(ToString::to_string);
        drop(state);
        self.ended.notify_all();
        failed
    }
}
