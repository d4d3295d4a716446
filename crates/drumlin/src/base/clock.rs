//! Time, injected. Order never depends on it: the log defines the order; times are only reported and compared with
//! retention.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use super::Timestamp;

/// A source of wall-clock time.
pub trait Clock: Send + Sync {
    /// Microseconds since the Unix epoch.
    fn now(&self) -> Timestamp;

    /// What has passed since some instant, by a clock that nobody sets. By default, and in tests, that which [`Clock::now`] shows.
    fn steady(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.now().0).unwrap_or(0))
    }

    /// Waits for `time` to pass. A clock that does not run by itself yields to other threads and returns.
    fn pause(&self, time: Duration) {
        let _ = time;
        std::thread::yield_now();
    }
}

/// The operating system's clock.
#[derive(Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the system for the time")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }

    #[expect(clippy::disallowed_methods, reason = "the one place that asks the system how much time has passed")]
    fn steady(&self) -> Duration {
        static FIRST: OnceLock<Instant> = OnceLock::new();
        FIRST.get_or_init(Instant::now).elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "the one place that waits for time to pass")]
    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// A clock for tests that stands still until it is set or waited on: it may be frozen, stepped, or set years back.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows `now`.
    pub fn new(now: Timestamp) -> Self {
        Self(AtomicI64::new(now.0))
    }

    /// Sets the time, also to an earlier one.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.0, Ordering::SeqCst);
    }

    /// Advances the time by `micros`.
    pub fn advance(&self, micros: i64) {
        self.0.fetch_add(micros, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }

    /// Advances the time without waiting.
    fn pause(&self, time: Duration) {
        self.advance(i64::try_from(time.as_micros()).unwrap_or(0));
        std::thread::yield_now();
    }
}
