//! Proposals: what is committed as it is, in its turn, and where each waits for that. What is prepared first, by reading, goes through *call.rs*.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::base::{Error, Result};
use crate::catalog::{Draft, Effect, Footprint, State};
use crate::store::Store;
use crate::store::parts::{Answer, Proposal, Work};

/// What a closure returned that may be run by another thread, and more than once: the last value counts.
struct Given<T>(Arc<Mutex<Option<T>>>);

impl<T> Default for Given<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Clone for Given<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Given<T> {
    fn set(&self, value: T) {
        *self.0.lock() = Some(value);
    }

    fn take(&self) -> Result<T> {
        self.0.lock().take().ok_or_else(|| Error::closed("the commit ended without an answer"))
    }
}

impl Store {
    /// Commits effects that depend only on the state they are applied to.
    pub(in crate::store) fn commit_effects(
        &self,
        build: impl FnMut(&State) -> Result<Vec<Effect>> + Send + 'static,
    ) -> Result<Arc<State>> {
        let base = self.current()?;
        self.commit(Proposal::new(base, Footprint::default(), Work::Build(Box::new(build))).else_behind())
    }

    /// The same, of effects prepared on `base`. Returns the state after, and what `build` returned beside the effects.
    pub(in crate::store) fn commit_built<T: Send + 'static>(
        &self,
        base: Arc<State>,
        build: impl FnMut(&State) -> Result<(Vec<Effect>, T)> + Send + 'static,
    ) -> Result<(Arc<State>, T)> {
        self.commit_built_on(base, Footprint::default(), build)
    }

    /// The same, which depends on what was read of `base`.
    pub(in crate::store) fn commit_built_on<T: Send + 'static>(
        &self,
        base: Arc<State>,
        footprint: Footprint,
        mut build: impl FnMut(&State) -> Result<(Vec<Effect>, T)> + Send + 'static,
    ) -> Result<(Arc<State>, T)> {
        let given = Given::default();
        let last = given.clone();
        let build = move |state: &State| {
            let (effects, value) = build(state)?;
            last.set(value);
            Ok(effects)
        };
        let work = Work::Build(Box::new(build));
        // Who has read something prepares again.
        let reads = !footprint.reads.is_empty();
        let proposal = Proposal::new(base, footprint, work);
        let after = self.commit(if reads { proposal } else { proposal.else_behind() })?;
        Ok((after, given.take()?))
    }

    /// Commits what `work` does to the newest state. Returns its result. `Conflict` if it adds rows to a table with unique indexes.
    pub(in crate::store) fn commit_in_turn<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Draft) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.commit_drafted(false, work)
    }

    /// The same, which may add rows.
    pub(in crate::store) fn commit_rows_in_turn<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Draft) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.commit_drafted(true, work)
    }

    fn commit_drafted<T: Send + 'static>(
        &self,
        adds_rows: bool,
        mut work: impl FnMut(&mut Draft) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let base = self.current()?;
        let given = Given::default();
        let last = given.clone();
        let work = move |draft: &mut Draft| {
            last.set(work(draft)?);
            Ok(())
        };
        let adds_rows = adds_rows && base.has_unique_indexes();
        let work = Work::InTurn(Box::new(work));
        self.commit(Proposal::new(base, Footprint::default(), work).adding_rows(adds_rows).else_behind())?;
        given.take()
    }

    /// Waits for the turn, or for another thread to commit this proposal along with its own.
    pub(in crate::store) fn commit(&self, proposal: Proposal) -> Answer {
        self.check()?;
        let proposal = proposal.with_note(self.message(), self.options().writer.as_deref());
        self.setting().check_writable()?;
        if self.is_handle() {
            // A failed automatic checkpoint, if the log is far beyond its bound.
            let bound = self.options().checkpoint_log_bytes;
            self.upkeep().background().take_error(|| self.commits().log().bytes(), bound)?;
        }
        let catches_up = proposal.is_of_views();
        let before = self.commits().newest().state();
        let proposal = self.with_views(self.proven(proposal)?)?;
        let answer = self.commits().commit(proposal);
        if let Ok(after) = &answer
            && !catches_up
        {
            self.catch_up_views_after(&before, after);
        }
        answer
    }
}
