//! The presences of this process, which it has to renew, and those of others, whose silence it counts; and the one thread that does both.

use std::collections::BTreeMap;
use std::thread::ThreadId;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::watched::Watched;
use crate::base::{Result, waiting};

/// The time for which nobody has called.
const NEVER: Duration = Duration::MAX;

/// See the module. Times are those of [`crate::base::Clock::steady`].
#[derive(Default)]
pub(in crate::store) struct Attendance {
    shared: Mutex<Attending>,
    changed: Condvar,
    /// Those of others, by number.
    others: Watched<u64, Duration>,
}

#[derive(Default)]
struct Attending {
    /// By number: how long at most between two beats, and when the next one is due.
    own: BTreeMap<u64, (Duration, Duration)>,
    thread: Option<ThreadId>,
    /// The earliest time for which it was called since it looked, or until which it waits.
    called: Duration,
    stopped: bool,
}

impl Attendance {
    /// A presence of this process, of which a beat is due every `every`.
    pub fn add(&self, number: u64, every: Duration, now: Duration) {
        self.shared.lock().own.insert(number, (every, now + every));
        self.changed.notify_all();
    }

    /// One is renewed no more.
    pub fn remove(&self, number: u64) {
        self.shared.lock().own.remove(&number);
    }

    pub fn is_own(&self, number: u64) -> bool {
        self.shared.lock().own.contains_key(&number)
    }

    /// Those of this process.
    pub fn own(&self) -> Vec<u64> {
        self.shared.lock().own.keys().copied().collect()
    }

    /// Those of this process of which a beat is due.
    pub fn due(&self, now: Duration) -> Vec<u64> {
        let shared = self.shared.lock();
        shared.own.iter().filter(|(_, (_, due))| *due <= now).map(|(number, _)| *number).collect()
    }

    /// Notes that beats were committed.
    pub fn renewed(&self, numbers: &[u64], now: Duration) {
        let mut shared = self.shared.lock();
        for number in numbers {
            if let Some((every, due)) = shared.own.get_mut(number) {
                *due = now + *every;
            }
        }
    }

    /// When the next beat is due.
    pub fn next_beat(&self) -> Option<Duration> {
        self.shared.lock().own.values().map(|(_, due)| *due).min()
    }

    /// For how long another process's presence has been silent, as far as was seen here: since its beat number `beats` was.
    pub fn silence(&self, number: u64, beats: u64, now: Duration) -> Duration {
        now.saturating_sub(self.others.since(number, beats, now))
    }

    /// Forgets those that have ended.
    pub fn forget(&self, have_ended: impl Fn(u64) -> bool) {
        self.others.keep(|number| !have_ended(number));
        self.shared.lock().own.retain(|number, _| !have_ended(*number));
    }

    /// Starts the thread by `start`, unless it runs; if it waits for longer than until `due`, has it look again.
    pub fn call(&self, due: Duration, start: impl FnOnce() -> Result<ThreadId>) -> Result<()> {
        let mut shared = self.shared.lock();
        if shared.thread.is_none() && !shared.stopped {
            shared.thread = Some(start()?);
        } else if due < shared.called {
            shared.called = due;
            self.changed.notify_all();
        }
        Ok(())
    }

    /// For the thread, before it looks: what it is called for from now on may be what it does not see any more.
    pub fn begin_look(&self) {
        self.shared.lock().called = NEVER;
    }

    /// For the thread: waits for `wait`, which is over at `until`, or until it is called for something before that. Returns whether it is
    /// to go on.
    pub fn wait(&self, wait: Duration, until: Duration) -> bool {
        let mut shared = self.shared.lock();
        if !shared.stopped && shared.called >= until {
            // Only what is due before is worth a call.
            shared.called = shared.called.min(until);
            self.changed.wait_for(&mut shared, wait);
        }
        !shared.stopped
    }

    /// For the thread: whether it ends, because it is to stop, or because there is nothing to do any more if it is `idle`.
    pub fn ends(&self, idle: bool, current: ThreadId) -> bool {
        let mut shared = self.shared.lock();
        let ends = shared.stopped || idle && shared.own.is_empty() && shared.called == NEVER;
        if ends && shared.thread == Some(current) {
            shared.thread = None;
        }
        ends
    }

    /// For the thread, when it has ended, whatever happened.
    pub fn ended(&self, current: ThreadId) {
        let mut shared = self.shared.lock();
        // Another one may run already.
        if shared.thread == Some(current) {
            shared.thread = None;
        }
        self.changed.notify_all();
    }

    /// Stops the thread, and waits for its end, unless the calling thread `current` is it.
    ///
    /// # Errors
    /// `Cancelled`.
    pub fn stop(&self, current: ThreadId) -> Result<()> {
        let mut shared = self.shared.lock();
        shared.stopped = true;
        self.changed.notify_all();
        waiting::wait_while(&self.changed, &mut shared, |shared| shared.thread.is_some_and(|thread| thread != current))
    }
}
