//! Makes commits durable by time (`Sync::Interval`): a separate thread syncs the log a while after something was
//! written to it.
//!
//! What must not be lost is synced first: commits that released objects, before the objects are deleted; the number of
//! a session, before it is used; a log segment, before the next one says that it was synced. Each record says what was
//! synced when it was written; on opening, all after that is written and synced again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::{Inner, Store};
use crate::base::{Error, Result};

/// The state of syncing by time.
pub(super) struct Syncer {
    interval: Duration,
    state: Mutex<Work>,
    changed: Condvar,
}

#[derive(Default)]
struct Work {
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
}

/// Starts the thread of a store that syncs by time.
pub(super) fn start(inner: &Arc<Inner>) -> Result<()> {
    let Some(syncer) = &inner.syncer else { return Ok(()) };
    syncer.state.lock().running = true;
    let own = inner.clone();
    let work = move || {
        let syncer = own.syncer.as_ref().expect("it was there");
        let run = || {
            while syncer.wait() {
                own.env.metrics.log_syncs.add(1);
                if let Err(e) = own.log.sync() {
                    // A log that was closed in between has been synced.
                    let open = own.check_open().is_ok();
                    let mut state = syncer.state.lock();
                    if state.failed.is_none() {
                        state.failed = open.then(|| e.to_string());
                    }
                }
            }
        };
        let _ = catch_unwind(AssertUnwindSafe(run));
        syncer.state.lock().running = false;
        syncer.changed.notify_all();
    };
    inner.env.threads.spawn("drumlin-sync", Box::new(work)).map(drop).inspect_err(|_| {
        syncer.state.lock().running = false;
    })
}

impl Store {
    /// Makes all earlier commits durable: useful if [`super::Options::sync`] leaves that to time.
    ///
    /// # Errors
    /// `InDoubt` if storage fails: which of the commits since the last sync will be there after a crash is unknown.
    pub fn sync(&self) -> Result<()> {
        match &self.inner.syncer {
            Some(_) => {
                self.inner.env.metrics.log_syncs.add(1);
                self.inner.log()?.sync()
            }
            None => Ok(()),
        }
    }
}
