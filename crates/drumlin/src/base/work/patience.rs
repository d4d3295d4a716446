//! How long to keep retrying: pauses between tries are random and grow, and together they stay within a budget.
//!
//! The budget counts pauses, not the time that tries take, so it ends whatever the clock does.

use std::time::Duration;

use crate::base::{Env, Result, waiting};

/// The first pause is at most this long.
const FIRST_MICROS: u64 = 50_000;
/// No pause is longer.
const LONGEST_MICROS: u64 = 2_000_000;

/// Pauses between the tries of one operation.
#[derive(Clone, Debug)]
pub struct Patience {
    budget: u64,
    spent: u64,
    next: u64,
}

impl Patience {
    /// Pauses that add up to at most `budget_micros`.
    pub fn new(budget_micros: u64) -> Self {
        Self { budget: budget_micros, spent: 0, next: FIRST_MICROS }
    }

    /// The time spent in pauses, in microseconds.
    pub fn spent_micros(&self) -> u64 {
        self.spent
    }

    /// Pauses before another try; returns `false` at once if the budget is used up, `Cancelled` if the call is to stop.
    pub fn pause(&mut self, env: &Env) -> Result<bool> {
        self.pause_at_most(env, LONGEST_MICROS)
    }

    /// The same, for at most `micros`.
    pub fn pause_at_most(&mut self, env: &Env, micros: u64) -> Result<bool> {
        if self.spent >= self.budget {
            return Ok(false);
        }
        let longest = self.next.min(micros).max(2);
        let pause = (longest / 2 + env.entropy.next()? % (longest / 2 + 1)).min(self.budget - self.spent).max(1);
        self.spent += pause;
        self.next = (self.next * 2).min(LONGEST_MICROS);
        env.metrics.pauses.add(1);
        waiting::pause(&*env.clock, Duration::from_micros(pause))?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::base::{Clock, ManualClock, OsThreads, Pool, SeededEntropy, Timestamp};

    #[test]
    fn pauses_are_random_grow_and_end_with_the_budget() {
        for seed in 0..50 {
            let clock = Arc::new(ManualClock::new(Timestamp(0)));
            let (entropy, pool) = (Arc::new(SeededEntropy::new(seed)), Pool::new(1).unwrap());
            let threads = Arc::new(OsThreads);
            let (metrics, warn) = Default::default();
            let env = Env { clock: clock.clone(), entropy, pool, threads, metrics, warn };
            let mut patience = Patience::new(30_000_000);
            let mut pauses = Vec::new();
            let mut before = 0;
            while patience.pause(&env).unwrap() {
                pauses.push(clock.now().0 - before);
                before = clock.now().0;
            }
            assert_eq!((before, patience.spent_micros()), (30_000_000, 30_000_000));
            assert!(pauses[0] >= 25_000 && pauses[0] <= 50_000, "{pauses:?}");
            assert!(pauses[4] >= 400_000 && pauses.iter().all(|pause| *pause <= 2_000_000), "{pauses:?}");
            assert!(pauses.len() < 40, "{pauses:?}");
            assert!(!Patience::new(0).pause(&env).unwrap());
        }
    }
}
