//! Everything a store takes from its surroundings, in one value.

use std::sync::Arc;

use super::{Clock, Entropy, OsEntropy, OsThreads, Pool, Result, SystemClock, Threads};

/// Clock, entropy, CPU pool and threads of a store.
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
}

impl Env {
    /// The system's clock and randomness, and a pool of `threads` CPU threads (0: one per core).
    pub fn system(threads: usize) -> Result<Self> {
        Ok(Self {
            clock: Arc::new(SystemClock),
            entropy: Arc::new(OsEntropy),
            pool: Pool::new(threads)?,
            threads: Arc::new(OsThreads),
        })
    }
}
