//! This process's session: the numbers of its blocks belong to it.

use std::sync::Arc;

use super::Store;
use crate::base::planted::{Bug, planted};
use crate::base::{Result, SessionId, waiting};
use crate::block::BlockNumbers;
use crate::catalog::{Effect, State};

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
            self.inner.session.lock().clone()
        };
        if let Some(numbers) = known() {
            return Ok(numbers);
        }
        let _one_at_a_time = waiting::lock(&self.inner.committer.registration)?;
        if let Some(numbers) = known() {
            return Ok(numbers);
        }
        // Under an exclusive lock no other process writes: all earlier sessions have ended.
        let fence = !self.inner.log.is_shared();
        let state =
            self.commit_effects(move |state| Ok(vec![Effect::OpenSession { session: state.next_session(), fence }]))?;
        // Its number must never be assigned again, whatever is lost.
        self.sync()?;
        let numbers = Arc::new(BlockNumbers::new(state.sessions.last));
        *self.inner.session.lock() = Some(numbers.clone());
        Ok(numbers)
    }
}
