//! Randomness, injected: only session and entry ids need it.

use parking_lot::Mutex;

use super::{Error, Result};

/// A source of random numbers.
pub trait Entropy: Send + Sync {
    /// 64 random bits.
    ///
    /// # Errors
    /// `Unavailable` if there are none to be had.
    fn next(&self) -> Result<u64>;

    /// A number that nothing else has: 127 random bits, never 0.
    ///
    /// # Errors
    /// Those of [`Entropy::next`].
    fn id(&self) -> Result<u128> {
        Ok((u128::from(self.next()?) << 64) | u128::from(self.next()?) | 1)
    }
}

/// The operating system's randomness.
#[derive(Debug, Default)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the system for randomness")]
    fn next(&self) -> Result<u64> {
        getrandom::u64().map_err(|e| {
            Error::unavailable("the operating system's random number generator failed").with_source(e.to_string())
        })
    }
}

/// A repeatable sequence from a seed, for tests.
#[derive(Debug)]
pub struct SeededEntropy(Mutex<fastrand::Rng>);

impl SeededEntropy {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(fastrand::Rng::with_seed(seed)))
    }
}

impl Entropy for SeededEntropy {
    fn next(&self) -> Result<u64> {
        Ok(self.0.lock().u64(..))
    }
}
