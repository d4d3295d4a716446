//! Fair turns among processes that race for one object.
//!
//! Of racing puts, the first wins, and without pauses the winner of the last race is the first again: it learns of its
//! success when the others learn of their failure, and so it starts the next race with a lead. Therefore a process that wins
//! while others race waits, and one that has lost more often waits less. There are three rules, all measured in round trips,
//! so that they suit both a bucket and a local disk:
//!
//! - Before its next commit, a process lets others go first: the more races its last commits took, the longer it waits.
//! - After a lost race, it waits a random time: the more races this commit has lost, the shorter.
//! - A process that commits without a break cannot see that others lose to it. So now and then it leaves a gap in which a
//!   waiting process gets its turn; rarely, if none came before.
//!
//! Only speed depends on these numbers: whether a put out of turn is refused depends on the object's tag alone.

use std::time::Duration;

use crate::base::{Seq, Timestamp};

/// Longer round trips are counted as this long: something delayed them.
const TRIP_MICROS_MAX: u64 = 1_000_000;
/// A process that has not committed for this many round trips has left the race.
const IDLE_TRIPS: u64 = 8;
/// The first gap comes after the first number of commits; each later gap after twice as many, up to the second number.
const GAP_EVERY: (u32, u32) = (8, 32);
/// The maximum number of processes assumed to race.
const CROWD_MAX: f64 = 16.0;
/// If this many others are added until a commit is, there is a crowd.
const PASSED_IN_CROWD: f64 = 3.0;
/// Where requests are throttled, a commit that has waited as long as the previous ones did tries again at about this
/// interval.
const OVERDUE_MICROS: u64 = 350_000;
/// This never starts before this time, in which pauses grow: otherwise a commit that has not waited yet would overtake those
/// that have.
const USUAL_MICROS_MIN: u64 = 2_000_000;

/// What a process knows about the race that it takes part in.
#[derive(Clone, Debug)]
pub struct Turns {
    /// How long a put takes, in microseconds.
    trip: u64,
    /// The recent average of races per commit.
    crowd: f64,
    /// The last entry when this commit began, and the recent average of how many others were added until it was.
    begun: Seq,
    passed: f64,
    /// Races that this commit has lost.
    losses: u32,
    /// Whether a commit is under way.
    racing: bool,
    /// Whether others committed between this commit and the last one.
    met: bool,
    /// The last commit of this process, and when it was done.
    last: Option<(Seq, Timestamp)>,
    /// Commits since others were met or a gap was left, and after how many the next gap comes.
    run: u32,
    gap_every: u32,
    /// How long recent commits had to wait because requests were throttled.
    throttled: u64,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            trip: 0,
            crowd: 0.0,
            begun: Seq(0),
            passed: 0.0,
            losses: 0,
            racing: false,
            met: false,
            last: None,
            run: 0,
            gap_every: GAP_EVERY.0,
            throttled: 0,
        }
    }
}

/// A random number from `least` to 1.
fn share(random: u64, least: f64) -> f64 {
    least + (1.0 - least) * (random >> 11) as f64 / (1_u64 << 53) as f64
}

impl Turns {
    fn micros(&self, trips: f64) -> Duration {
        Duration::from_micros((trips * self.trip as f64) as u64)
    }

    /// How long a commit must wait before its first put, when the log ends with `newest`.
    pub fn begin(&mut self, newest: Seq, now: Timestamp, random: u64) -> Duration {
        if self.racing {
            return Duration::ZERO;
        }
        self.racing = true;
        self.begun = newest;
        let Some((own, ended)) = self.last else { return Duration::ZERO };
        if now.0.saturating_sub(ended.0).unsigned_abs() > self.trip * IDLE_TRIPS {
            self.run = 0;
        } else {
            self.met = newest != own;
        }
        if self.crowd > 0.0 {
            return self.micros(2.0 * self.crowd * share(random, 0.5));
        }
        if self.run >= self.gap_every {
            self.run = 0;
            self.gap_every = (self.gap_every * 2).min(GAP_EVERY.1);
            return self.micros(3.0 * share(random, 2.0 / 3.0));
        }
        Duration::ZERO
    }

    /// Notes that others committed while this commit waited.
    pub fn met_others(&mut self) {
        self.met = true;
    }

    /// Notes that a race was lost; returns how long to wait before the next one.
    pub fn lost(&mut self, random: u64) -> Duration {
        self.losses = self.losses.saturating_add(1);
        let losses = f64::from(self.losses);
        if self.crowd > losses {
            return self.micros(2.0 * (self.crowd - losses) * share(random, 0.0));
        }
        // If nothing is known about the others, they may always come a little earlier.
        match self.crowd == 0.0 && self.losses.is_multiple_of(4) {
            true => self.micros(2.0 * share(random, 0.0)),
            false => Duration::ZERO,
        }
    }

    /// How long to wait at most after a throttled request, if this commit has already waited `spent` microseconds.
    pub fn refused(&self, spent: u64) -> u64 {
        self.throttled.max(USUAL_MICROS_MIN).saturating_sub(spent) + OVERDUE_MICROS
    }

    /// Notes how long a put has taken, in microseconds.
    pub fn measured(&mut self, micros: u64) {
        let micros = micros.min(TRIP_MICROS_MAX);
        self.trip = if self.trip == 0 { micros } else { (3 * self.trip + micros) / 4 };
    }

    /// Notes that the commit is done, when the log ends with `newest`, after pauses of `spent` microseconds for throttled requests.
    pub fn won(&mut self, seq: Seq, newest: Seq, now: Timestamp, spent: u64) {
        self.throttled = u64::midpoint(self.throttled, spent);
        if self.losses > 0 || self.met {
            self.crowd = f64::midpoint(self.crowd, f64::from(self.losses.max(1))).min(CROWD_MAX);
            (self.run, self.gap_every) = (0, GAP_EVERY.0);
        } else {
            self.crowd = if self.crowd >= 1.0 { self.crowd / 2.0 } else { 0.0 };
            self.run += 1;
        }
        self.passed = f64::midpoint(self.passed, newest.0.saturating_sub(self.begun.0 + 1) as f64);
        self.last = Some((seq, now));
        self.end();
    }

    /// Whether that many processes race that it is faster to have others add what one wants to add, though that takes more requests.
    pub fn is_crowded(&self) -> bool {
        self.passed >= PASSED_IN_CROWD
    }

    /// Whether this process has committed.
    pub fn has_committed(&self) -> bool {
        self.last.is_some()
    }

    /// Notes that the commit has ended.
    pub fn end(&mut self) {
        (self.losses, self.racing, self.met) = (0, false, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_races_alone_hardly_waits() {
        let mut turns = Turns::default();
        turns.measured(20_000);
        let (mut now, mut waited) = (0, 0);
        for seq in 1..=1000 {
            let pause = turns.begin(Seq(seq - 1), Timestamp(now), seq.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            waited += pause.as_micros();
            now += 20_000 + pause.as_micros() as i64;
            turns.won(Seq(seq), Seq(seq), Timestamp(now), 0);
        }
        assert!(waited > 0, "it leaves gaps");
        assert!(waited < 1000 * 20_000 / 10, "{waited} microseconds in 1000 commits of 20,000");
    }

    #[test]
    fn who_wins_waits_and_who_loses_often_does_not() {
        let mut turns = Turns::default();
        turns.measured(10_000);
        for _ in 0..7 {
            turns.lost(0);
        }
        turns.won(Seq(9), Seq(9), Timestamp(0), 0);
        assert_eq!(turns.crowd, 3.5);
        let first = turns.begin(Seq(9), Timestamp(1), 0);
        assert_eq!(first.as_micros(), 35_000, "half of two round trips for each race");
        assert_eq!(turns.begin(Seq(12), Timestamp(1), 0), Duration::ZERO, "once for each commit");
        let waits: Vec<u128> = (0..5).map(|_| turns.lost(u64::MAX).as_micros()).collect();
        assert!(waits.is_sorted_by(|a, b| a > b || (*a == 0 && *b == 0)) && waits[3..] == [0, 0], "{waits:?}");
    }

    #[test]
    fn a_throttled_commit_waits_as_long_as_the_last_ones_did_and_then_tries_often() {
        let mut turns = Turns::default();
        assert_eq!(turns.refused(0), 2_350_000, "nothing is known");
        turns.won(Seq(1), Seq(1), Timestamp(0), 8_000_000);
        assert_eq!(turns.refused(0), 4_350_000);
        assert_eq!(turns.refused(3_200_000), 1_150_000);
        assert_eq!(turns.refused(8_000_000), 350_000);
    }
}
