//! Beats of others, which this process counts the silence of: how many each had had, and when that was first seen, by whichever clock.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// See the module.
pub(in crate::store) struct Watched<K, T>(Mutex<BTreeMap<K, (u64, T)>>);

impl<K, T> Default for Watched<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord + Copy, T: Copy> Watched<K, T> {
    /// Since when one has been seen, up to `now`, without more than `beats` beats.
    pub fn since(&self, key: K, beats: u64, now: T) -> T {
        let mut watched = self.0.lock();
        let (seen, since) = watched.entry(key).or_insert((beats, now));
        if *seen != beats {
            (*seen, *since) = (beats, now);
        }
        *since
    }

    /// Forgets those that have ended.
    pub fn keep(&self, is_open: impl Fn(K) -> bool) {
        self.0.lock().retain(|key, _| is_open(*key));
    }
}
