//! The CPU pool: work of many items in parallel, results in order, memory bounded.
//!
//! A task never blocks on its own pool: [`Pool::map`] called from a pool thread runs its items by work stealing,
//! so a pool of one thread always finishes.

use std::sync::Arc;

use rayon::prelude::*;

use super::{Error, Result};

/// A shared pool of CPU threads.
#[derive(Clone)]
pub struct Pool {
    threads: Arc<rayon::ThreadPool>,
}

impl Pool {
    /// A pool of `threads` threads; 0 means one per core.
    pub fn new(threads: usize) -> Result<Self> {
        let threads = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("drumlin-cpu-{i}"))
            .build()
            .map_err(|e| Error::unavailable("the CPU pool could not be started").with_source(e))?;
        Ok(Self { threads: Arc::new(threads) })
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.threads.current_num_threads()
    }

    /// Runs `work` on every item in parallel; the answers are in the order of the items. The first error in that
    /// order is returned once all items that were started have ended.
    pub fn map<T: Send, U: Send>(&self, items: Vec<T>, work: impl Fn(T) -> Result<U> + Send + Sync) -> Result<Vec<U>> {
        if items.len() == 1 {
            return items.into_iter().map(work).collect();
        }
        self.threads.install(|| items.into_par_iter().map(work).collect::<Vec<_>>()).into_iter().collect()
    }

    /// Runs `work` on a thread of the pool, without waiting for it.
    pub fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        self.threads.spawn(work);
    }
}
