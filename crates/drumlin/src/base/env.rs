//! Everything a store takes from its surroundings, in one value.

use std::sync::Arc;

use super::{Clock, Entropy, Metrics, OsEntropy, OsThreads, Pool, Result, SystemClock, Threads, Timestamp, Warn};

/// Clock, entropy, CPU pool and threads of a store, and where it reports what it does.
#[derive(Clone)]
pub struct Env {
    /// Gives commits their times.
    pub clock: Arc<dyn Clock>,
    /// Makes session and entry ids.
    pub entropy: Arc<dyn Entropy>,
    /// Runs encoding, decoding and filtering.
    pub pool: Pool,
    /// Runs work that waits, such as calling triggers.
    pub threads: Arc<dyn Threads>,
    /// What the store counts.
    pub metrics: Arc<Metrics>,
    /// Takes its warnings.
    pub warn: Warn,
}

impl Env {
    /// The system's clock and randomness, and a pool of `threads` CPU threads (0: one per core).
    pub fn system(threads: usize) -> Result<Self> {
        Ok(Self {
            clock: Arc::new(SystemClock),
            entropy: Arc::new(OsEntropy),
            pool: Pool::new(threads)?,
            threads: Arc::new(OsThreads),
            metrics: Arc::default(),
            warn: Warn::default(),
        })
    }

    /// The microseconds since `begun`, a time of this clock.
    pub fn micros_since(&self, begun: Timestamp) -> u64 {
        self.clock.now().0.saturating_sub(begun.0).unsigned_abs()
    }
}
