//! The time of commits, and ages. A clock that is ahead is noticed if there is another clock to compare it with, and does as
//! little harm as possible if there is none.
//!
//! Invariants. Each commit is later than the one before, by a microsecond at least. In a store that others write too, a process trusts its clock while it
//! shows at most [`STEP`] more than the last commit's time, or than the time at which it was last checked. Beyond that, as
//! after an idle night, the process asks the storage, which records when objects are written: a clock that is ahead of that
//! is set back. If the storage does not report it, one commit advances the time by at most a step.
//!
//! Where no other process writes, ages are counted up to at most the time of the last commit when this process opened the
//! store, plus what has passed since and a step. So a process whose clock is years ahead of an idle store expires nothing
//! because of that, and one whose clock is right may keep versions longer, by as long as the store was idle before the
//! process opened it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::Mutex;

use super::setting::Setting;
use crate::base::planted::{Bug, planted};
use crate::base::{EntryId, Result, Timestamp};
use crate::storage::{Storage, WriteMode, names};

/// A clock that shows more than the last commit's time by more than this is compared with the storage's.
pub(in crate::store) const STEP: i64 = 3_600_000_000;
/// The storage's clock shows seconds, and requests take time.
const TOLERANCE: i64 = 5_000_000;

/// What a process knows of its clock.
pub(in crate::store) struct CommitClock {
    setting: Arc<Setting>,
    /// The time of the last commit, and what the clock showed, when the store was opened.
    opened: (Timestamp, Timestamp),
    known: Mutex<Known>,
    /// The latest instant at which rows that expire were seen: no commit of this process is before it, so that what has expired for one
    /// reader has for all that come after; unless the clock is set back.
    seen: AtomicI64,
}

#[derive(Default)]
struct Known {
    /// By how much the clock is ahead of the storage's.
    ahead: i64,
    /// What it showed when that was found, less that.
    checked: Option<i64>,
}

impl CommitClock {
    /// For a store whose last commit has the time `last`.
    pub fn new(setting: Arc<Setting>, last: Timestamp) -> Self {
        let clock = setting.env().clock.now();
        Self { setting, opened: (last, clock), known: Mutex::default(), seen: AtomicI64::new(i64::MIN) }
    }

    /// The time now, if it can be known; else at most a step after `last`, the time of the last commit.
    pub fn now(&self, last: Timestamp) -> Timestamp {
        let (told, clock) = (self.told(last).0, self.setting.env().clock.now().0);
        let seen = self.seen.load(Ordering::SeqCst);
        if seen.saturating_sub(clock) <= TOLERANCE {
            return Timestamp(told.max(seen));
        }
        // The clock was set back: what it showed is not believed any more. Another thread may have seen more since.
        let _ = self.seen.compare_exchange(seen, clock, Ordering::SeqCst, Ordering::SeqCst);
        Timestamp(told)
    }

    /// The instant at which a reader sees rows that expire: now, and not before `last`, the time of the last commit.
    pub fn instant(&self, last: Timestamp) -> Timestamp {
        let now = self.now(last).max(last);
        self.seen.fetch_max(now.0, Ordering::SeqCst);
        now
    }

    /// The time now as clocks tell it.
    fn told(&self, last: Timestamp) -> Timestamp {
        let setting = &*self.setting;
        let clock = setting.env().clock.now().0;
        if setting.is_read_only() || !setting.is_shared() || planted(Bug::TrustClock) {
            return Timestamp(clock);
        }
        let (ahead, checked) = {
            let known = self.known.lock();
            (known.ahead, known.checked)
        };
        let now = clock.saturating_sub(ahead);
        let sure = checked.unwrap_or(i64::MIN).max(last.0).saturating_add(STEP);
        // A store without a commit has no time to compare with.
        if now <= sure {
            return Timestamp(now);
        }
        // Not under the lock: another thread that wants the time asks for it itself.
        match self.storage_time() {
            Ok(Some(storage)) => {
                let clock = setting.env().clock.now().0;
                let mut known = self.known.lock();
                let ahead = clock.saturating_sub(storage.0);
                known.ahead = if ahead > TOLERANCE { ahead } else { 0 };
                let now = clock.saturating_sub(known.ahead);
                known.checked = Some(now);
                Timestamp(now)
            }
            // Nothing to compare with.
            _ if last.0 == 0 => Timestamp(now),
            _ => Timestamp(last.0.saturating_add(STEP)),
        }
    }

    /// The time up to which ages are counted; `last` is the time of the last commit.
    pub fn age(&self, last: Timestamp) -> Timestamp {
        let now = self.told(last).0;
        if self.setting.is_shared() || planted(Bug::TrustClock) {
            return Timestamp(now);
        }
        let (last, clock) = self.opened;
        let first = if last.0 == 0 { clock.0 } else { last.0.min(clock.0) };
        let passed = now.saturating_sub(clock.0).max(0);
        Timestamp(now.min(first.saturating_add(passed).saturating_add(STEP)))
    }

    /// What the storage's clock shows; `None` if the storage does not report it.
    fn storage_time(&self) -> Result<Option<Timestamp>> {
        let setting = &*self.setting;
        let nonce = EntryId(u128::from(setting.env().entropy.next()?));
        let name = format!("{}/clock-{:016x}", names::PROBE, nonce.0);
        setting.storage().put(&name, &[bytes::Bytes::from_static(b"what time is it?")], WriteMode::Once)?;
        let told = setting.storage().written_at(&name);
        // If it stays, an audit finds it.
        setting.storage().delete_many(&[name]);
        let _ = setting.storage().remove_empty_folder(names::PROBE);
        told
    }
}
