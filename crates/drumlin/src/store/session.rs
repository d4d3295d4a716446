//! This process's session: the numbers of its blocks belong to it.

use std::sync::Arc;

use super::Store;
use crate::base::planted::{Bug, planted};
use crate::base::{Result, SessionId};
use crate::block::BlockNumbers;
use crate::catalog::{Effect, State};
use crate::storage::{Storage, names};

impl Store {
    /// In a shared store: ends this process's session, if it has one, so that a sweep need not wait for that.
    pub(super) fn end_session(&self) -> Result<()> {
        let own = self.inner.session.lock().as_ref().map(|numbers| numbers.session());
        let Some(own) = own.filter(|_| self.inner.log.is_shared()) else { return Ok(()) };
        self.commit_effects(move |_| Ok(vec![Effect::FenceSessions { sessions: vec![own] }]))?;
        Ok(())
    }

    /// This process's session, 0 if it has none. One that others have ended is given up: the next write uses a new one.
    pub(super) fn own_session(&self, state: &State) -> SessionId {
        let mut own = self.inner.session.lock();
        match own.as_ref().map(|numbers| numbers.session()) {
            Some(session) if state.sessions.is_open(session) => session,
            Some(session) if planted(Bug::SkipFence) => session,
            _ => {
                *own = None;
                SessionId(0)
            }
        }
    }

    /// The numbers of this process's blocks; registers its session before the first.
    pub(super) fn block_numbers(&self) -> Result<Arc<BlockNumbers>> {
        let known = || {
            // Others may have ended it.
            self.own_session(&self.inner.state.read().clone());
            self.inner.session.lock().clone().filter(|numbers| !numbers.meets_others())
        };
        if let Some(numbers) = known() {
            return Ok(numbers);
        }
        let _one_at_a_time = self.inner.committer.registration.lock()?;
        if let Some(numbers) = known() {
            return Ok(numbers);
        }
        // Under an exclusive lock no other process writes: all earlier sessions have ended.
        self.begin_session(self.free_number()?, !self.inner.log.is_shared())
    }

    /// Registers a session of at least this number; if `alone`, all others have ended.
    fn begin_session(&self, free: SessionId, alone: bool) -> Result<Arc<BlockNumbers>> {
        let open = move |state: &State| {
            let session = state.next_session().max(free);
            Ok(vec![Effect::OpenSession { session, fence: alone }])
        };
        let state = self.commit_effects(open)?;
        // Its number must never be assigned again, whatever is lost.
        self.sync()?;
        let session = state.sessions.last;
        // Beside others, the numbers begin anywhere: should two histories ever give one number to a session each, neither meets
        // the blocks of the other.
        let numbers = match self.inner.log.is_shared() {
            true => BlockNumbers::of_attempt(session, (self.inner.env.entropy.next()? >> 32) << 24),
            false => BlockNumbers::new(session),
        };
        let numbers = Arc::new(numbers);
        *self.inner.session.lock() = Some(numbers.clone());
        Ok(numbers)
    }

    /// A number above those of all sessions and holds that have blocks on storage: the log may have lost some. Beside others, it
    /// is not looked for, but once, when a loss is accepted.
    pub(super) fn free_number(&self) -> Result<SessionId> {
        match self.inner.log.is_shared() {
            true => Ok(SessionId(0)),
            false => self.first_unused(),
        }
    }

    fn first_unused(&self) -> Result<SessionId> {
        let folders = self.inner.storage.list_folders(names::BLOCKS)?;
        let last = folders.iter().filter_map(|folder| names::parse_session(folder)).max();
        let free = last.map_or(0, |last| last.0.saturating_add(1));
        Ok(SessionId(free))
    }

    /// After commits were lost: ends all sessions, and passes over the numbers that the lost ones have used.
    pub(super) fn pass_over_lost(&self) -> Result<()> {
        self.begin_session(self.first_unused()?, true).map(drop)
    }
}
