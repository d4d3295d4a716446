//! What a process that writes a store does about presences: it renews its own, ends those of others that have been silent for their lives,
//! and deletes nodes whose time is over. One thread does all three, as long as there is something to wait for.

use std::sync::{Arc, Weak};
use std::thread::ThreadId;
use std::time::Duration;

use crate::base::planted::{Bug, planted};
use crate::base::{Result, Threads, Timestamp, WarningKind};
use crate::catalog::{Effect, PresenceChange, State};
use crate::store::Store;
use crate::store::handle::StoreParts;
use crate::store::parts::Attendance;

/// At most this number of nodes whose time is over are deleted in one commit.
const NODES_MAX: usize = 10_000;
/// When more nodes than this go in one commit, a warning says so.
const CASCADE_WARNS: usize = 10_000;
/// How long it waits before it tries again what storage has refused.
const AGAIN: Duration = Duration::from_secs(1);
/// How long it waits at least, and at most where it has to look at what others commit.
const WAIT_MIN: Duration = Duration::from_millis(20);
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Notes that the thread has ended, also by a panic.
struct Ended<'a>(&'a Attendance, ThreadId);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.ended(self.1);
    }
}

/// Renews and ends until there is nothing to wait for, or the store is closed.
fn run(inner: &Weak<StoreParts>, attendance: &Attendance, threads: &dyn Threads) {
    let current = threads.current();
    let _ended = Ended(attendance, current);
    while let Some(store) = Store::upgrade(inner) {
        attendance.begin_look();
        let wait = match store.attend() {
            Ok(None) if attendance.ends(true, current) => return,
            Ok(wait) => wait.unwrap_or(WAIT_MAX),
            Err(_) => AGAIN,
        };
        let until = store.env().clock.steady() + wait;
        drop(store);
        if !attendance.wait(wait, until) {
            return;
        }
    }
}

impl Store {
    /// Starts the thread if there is something for it to do, or has it look again if it waits for too long.
    pub(in crate::store) fn attend_if_due(&self) {
        let state = self.commits().newest().state();
        if !state.has_lives() || self.setting().is_read_only() || self.setting().check().is_err() {
            return;
        }
        let (now, clock) = (self.env().clock.steady(), self.env().clock.now());
        let due = state.first_expiry().map(|until| now + between(clock, until));
        let due = due.into_iter().chain(self.attendance().next_beat()).min().unwrap_or(Duration::MAX);
        let start = || {
            let (inner, attendance) = (self.downgrade(), Arc::clone(self.attendance()));
            let threads = self.env().threads.clone();
            let work = Box::new(move || run(&inner, &attendance, &*threads));
            self.env().threads.spawn("drumlin-presence", work)
        };
        // If no thread can be started, the next commit tries again.
        let _ = self.attendance().call(due, start);
    }

    /// Does what is due. Returns how long there is nothing to do; `None` if there is nothing to wait for.
    fn attend(&self) -> Result<Option<Duration>> {
        let now = self.env().clock.steady();
        let due = self.attendance().due(now);
        if !due.is_empty() {
            let beats = due.clone();
            self.commit_effects(move |state| {
                let is_open = |number: &u64| state.presences.is_open(*number);
                let presences: Vec<u64> = beats.iter().copied().filter(is_open).collect();
                Ok(if presences.is_empty() {
                    Vec::new()
                } else {
                    vec![Effect::Presences(PresenceChange::Beat(presences))]
                })
            })?;
            self.attendance().renewed(&due, now);
        }
        if self.setting().is_shared() {
            self.commits().refresh()?;
        }
        self.end_due()?;
        let state = self.current()?;
        let lives = state.presences.open.iter().filter(|(number, _)| !self.attendance().is_own(**number));
        // Silence is noticed by a quarter of a life after it was one.
        let looks = lives.map(|(_, other)| Duration::from_micros(other.life_micros / 4)).min();
        let expiry = state.first_expiry().map(|until| between(self.commits().times().now(state.time), until));
        let beat = self.attendance().next_beat().map(|due| due.saturating_sub(now));
        let wait = [looks, expiry, beat].into_iter().flatten().min();
        Ok(wait.map(|wait| wait.clamp(WAIT_MIN, WAIT_MAX)))
    }

    /// Ends presences whose owners have been silent for their lives, and deletes nodes whose time is over.
    pub(in crate::store) fn end_due(&self) -> Result<()> {
        let state = self.current()?;
        self.attendance().forget(|number| state.presences.has_ended(number));
        if !state.has_lives() {
            return Ok(());
        }
        let silent = self.silent_presences(&state);
        if !silent.is_empty() {
            let deleted = self.commit_in_turn(move |draft| {
                // Another process may have heard of one since.
                let open = &draft.state().presences.open;
                let same = |(number, beats): &&(u64, u64)| open.get(number).is_some_and(|now| now.beats == *beats);
                let still: Vec<u64> = silent.iter().filter(same).map(|(number, _)| *number).collect();
                draft.end_presences(&still)
            })?;
            self.warn_of(deleted);
        }
        loop {
            let state = self.current()?;
            let due = state.due_nodes(self.commits().times().now(state.time), NODES_MAX);
            if due.is_empty() {
                return Ok(());
            }
            let deleted = self.commit_in_turn(move |draft| draft.expire(&due))?;
            if deleted == 0 {
                // Others have put their times off, or were faster.
                return Ok(());
            }
        }
    }

    /// The presences of others that have been silent for their lives, with the numbers of their beats.
    fn silent_presences(&self, state: &State) -> Vec<(u64, u64)> {
        let clock = &self.env().clock;
        let now = match planted(Bug::SilenceByWallClock) {
            true => Duration::from_micros(u64::try_from(clock.now().0).unwrap_or(0)),
            false => clock.steady(),
        };
        let others = state.presences.open.iter().filter(|(number, _)| !self.attendance().is_own(**number));
        let silent = others.filter(|(number, other)| {
            // A process that alone writes the store has outlived those that did before.
            let life = Duration::from_micros(other.life_micros);
            !self.setting().is_shared() || self.attendance().silence(**number, other.beats, now) > life
        });
        silent.map(|(number, other)| (*number, other.beats)).collect()
    }

    /// Ends those of some presences that have not ended.
    pub(in crate::store) fn end_presences(&self, numbers: Vec<u64>) -> Result<()> {
        let ended = numbers.clone();
        let deleted = self.commit_in_turn(move |draft| draft.end_presences(&numbers))?;
        ended.iter().for_each(|number| self.attendance().remove(*number));
        self.warn_of(deleted);
        Ok(())
    }

    /// Ends those of this process, which closes the store.
    pub(in crate::store) fn end_own_presences(&self) -> Result<()> {
        match self.attendance().own() {
            own if own.is_empty() => Ok(()),
            own => self.end_presences(own),
        }
    }

    fn warn_of(&self, deleted: usize) {
        if deleted > CASCADE_WARNS {
            self.env().warn.say(WarningKind::LargeCascade, || {
                format!("{}: the end of presences deleted {deleted} nodes in one commit", self.uri())
            });
        }
    }
}

/// How long it is until an instant; 0 if it has come.
fn between(now: Timestamp, until: Timestamp) -> Duration {
    Duration::from_micros(u64::try_from(until.0.saturating_sub(now.0)).unwrap_or(0))
}
