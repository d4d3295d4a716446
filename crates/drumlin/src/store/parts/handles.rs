//! How many handles of a store are open, and the lock on its folder, which lasts as long as one is.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::storage::Guard;

/// See the module.
pub(in crate::store) struct Handles {
    open: AtomicUsize,
    lock: Mutex<Option<Box<dyn Guard>>>,
}

impl Handles {
    /// One handle.
    pub fn one(lock: Option<Box<dyn Guard>>) -> Self {
        Self { open: AtomicUsize::new(1), lock: Mutex::new(lock) }
    }

    /// Adds one, unless the last one is closed already.
    pub fn join(&self) -> bool {
        let more = |open: usize| (open > 0).then_some(open + 1);
        self.open.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    /// Removes one; returns whether it was the last.
    pub fn leave(&self) -> bool {
        self.open.fetch_sub(1, Ordering::SeqCst) == 1
    }

    /// Whether the last one is closed, and the lock has not been given up yet.
    pub fn is_closing(&self) -> bool {
        self.open.load(Ordering::SeqCst) == 0 && self.has_lock()
    }

    pub fn has_lock(&self) -> bool {
        self.lock.lock().is_some()
    }

    /// Gives up the lock; until that is done, [`Handles::has_lock`] waits.
    pub fn release_lock(&self) {
        let mut lock = self.lock.lock();
        drop(lock.take());
    }
}
