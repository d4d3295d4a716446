//! Registers this process's session, by which its blocks are numbered, and ends it.

use std::sync::Arc;

use crate::base::{Result, SessionId};
use crate::block::BlockNumbers;
use crate::catalog::{Effect, State};
use crate::storage::{Storage, names};
use crate::store::Store;

impl Store {
    /// In a shared store: ends this process's session, if it has one, so that a sweep need not wait for that.
    pub(in crate::store) fn end_session(&self) -> Result<()> {
        let own = self.commits().session().id();
        let Some(own) = own.filter(|_| self.setting().is_shared()) else { return Ok(()) };
        self.commit_effects(move |_| Ok(vec![Effect::FenceSessions { sessions: vec![own] }]))?;
        Ok(())
    }

    /// The numbers of this process's blocks; registers its session before the first.
    pub(in crate::store) fn block_numbers(&self) -> Result<Arc<BlockNumbers>> {
        let session = self.commits().session();
        let known = || {
            // Others may have ended it.
            session.open_in(&self.commits().newest().state());
            session.numbers().filter(|numbers| !numbers.meets_others())
        };
        if let Some(numbers) = known() {
            return Ok(numbers);
        }
        let _one_at_a_time = session.register()?;
        if let Some(numbers) = known() {
            return Ok(numbers);
        }
        // Under an exclusive lock no other process writes: all earlier sessions have ended.
        self.begin_session(self.free_number()?, !self.setting().is_shared())
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
        let numbers = match self.setting().is_shared() {
            true => BlockNumbers::of_attempt(session, (self.env().entropy.next()? >> 32) << 24),
            false => BlockNumbers::new(session),
        };
        let numbers = Arc::new(numbers);
        self.commits().session().begin(numbers.clone());
        Ok(numbers)
    }

    /// A number above those of all sessions and holds that have blocks on storage: the log may have lost some. Beside others, it
    /// is not looked for, but once, when a loss is accepted.
    pub(in crate::store) fn free_number(&self) -> Result<SessionId> {
        match self.setting().is_shared() {
            true => Ok(SessionId(0)),
            false => self.first_unused(),
        }
    }

    fn first_unused(&self) -> Result<SessionId> {
        let folders = self.storage().list_folders(names::BLOCKS)?;
        let last = folders.iter().filter_map(|folder| names::parse_session(folder)).max();
        let free = last.map_or(0, |last| last.0.saturating_add(1));
        Ok(SessionId(free))
    }

    /// After commits were lost: ends all sessions, and passes over the numbers that the lost ones have used.
    pub(in crate::store) fn pass_over_lost(&self) -> Result<()> {
        self.begin_session(self.first_unused()?, true).map(drop)
    }
}
