//! Makes commits durable by time (`SyncMode::Interval`): a separate thread syncs the log a while after something was
//! written to it.
//!
//! What must not be lost is synced first: commits that released objects, before the objects are deleted; the number of
//! a session, before it is used; a log segment, before the next one says that it was synced. Each record says what was
//! synced when it was written; on opening, all after that is written and synced again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::base::{Error, Result};

/// The state of syncing by time.
pub(in crate::store) struct Syncer {
    interval: Duration,
    state: Mutex<SyncState>,
    changed: Condvar,
}

#[derive(Default)]
struct SyncState {
    /// Whether something was written since the last sync.
    dirty: bool,
    stop: bool,
    running: bool,
    failed: Option<String>,
}

impl Syncer {
    /// One that syncs within about `interval` of a write.
    pub fn new(interval: Duration) -> Self {
        Self { interval, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Notes that something was written.
    pub fn wrote(&self) {
        let mut state = self.state.lock();
        if !std::mem::replace(&mut state.dirty, true) {
            self.changed.notify_all();
        }
    }

    /// Fails if what was written could not be made durable: later writes must fail too.
    pub fn take_error(&self) -> Result<()> {
        match &self.state.lock().failed {
            Some(e) => Err(Error::closed(format!("commits could not be made durable; open the store again: {e}"))),
            None => Ok(()),
        }
    }

    /// Stops the thread, and waits for its end.
    pub fn stop(&self) {
        let mut state = self.state.lock();
        state.stop = true;
        self.changed.notify_all();
        while state.running {
            self.changed.wait(&mut state);
        }
    }

    /// Waits until something was written and the interval has passed; `false` once stopped.
    fn wait(&self) -> bool {
        let mut state = self.state.lock();
        while !state.dirty && !state.stop {
            self.changed.wait(&mut state);
        }
        if !state.stop {
            self.changed.wait_while_for(&mut state, |state| !state.stop, self.interval);
        }
        state.dirty = false;
        !state.stop
    }

    /// Marks the thread that syncs as running or not.
    pub fn set_running(&self, running: bool) {
        self.state.lock().running = running;
        self.changed.notify_all();
    }

    /// What the thread does until it is stopped: `sync` makes durable what was written, and says what failed.
    pub fn run(&self, sync: impl Fn() -> Option<Error>) {
        let run = || {
            while self.wait() {
                if let Some(failed) = sync() {
                    self.state.lock().failed.get_or_insert_with(|| failed.to_string());
                }
            }
        };
        let _ = catch_unwind(AssertUnwindSafe(run));
        self.set_running(false);
    }
}
