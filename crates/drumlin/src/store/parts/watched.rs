//! Holds whose beats lie in the future of this process's clock: how many beats each had, and when that was first seen.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::base::{SessionId, Timestamp};
use crate::catalog::Hold;

/// See the module.
#[derive(Default)]
pub(in crate::store) struct Watched(Mutex<BTreeMap<SessionId, (u64, Timestamp)>>);

impl Watched {
    /// Since when `hold` has been seen, up to `now`, without a new beat.
    pub fn since(&self, id: SessionId, hold: &Hold, now: Timestamp) -> Timestamp {
        let mut watched = self.0.lock();
        let (beats, since) = watched.entry(id).or_insert((hold.beats, now));
        if *beats != hold.beats {
            (*beats, *since) = (hold.beats, now);
        }
        *since
    }

    /// Forgets those that have ended.
    pub fn keep(&self, is_open: impl Fn(SessionId) -> bool) {
        self.0.lock().retain(|hold, _| is_open(*hold));
    }
}
