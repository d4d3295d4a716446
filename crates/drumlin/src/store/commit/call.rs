//! Calls that change a store. Each takes in first what others have committed, prepares its change on the newest state, commits it, and prepares
//! it again where others came first. What commits is *parts/commits*.

use std::sync::Arc;

use crate::base::{ErrorKind, Result, Timestamp};
use crate::catalog::State;
use crate::store::Store;
use crate::store::parts::Proposal;

/// How often a change that was a conflict is prepared before its caller gets the conflict.
const ATTEMPTS_MAX: usize = 1000;

/// A call that changes a store. In a store that others write too, what they had committed when it began has been taken in, so that what it writes
/// does not depend on anything that was changed before.
#[derive(Clone, Copy)]
pub(in crate::store) struct Call<'a> {
    pub store: &'a Store,
}

/// Runs `attempt`, which prepares and commits; again while the commit, the inner result, is a conflict.
pub(in crate::store) fn retry_conflicts<T>(mut attempt: impl FnMut() -> Result<Result<T>>) -> Result<T> {
    let mut attempts = Attempts::default();
    loop {
        let done = attempt()?;
        if !attempts.go_on_after(&done) {
            return done;
        }
    }
}

/// The attempts at a change that have been made.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::store) struct Attempts(usize);

impl Attempts {
    /// Counts an attempt whose commit has ended with `answer`; returns whether another one is due.
    pub fn go_on_after<T>(&mut self, answer: &Result<T>) -> bool {
        self.0 += 1;
        self.0 < ATTEMPTS_MAX && answer.as_ref().is_err_and(|e| e.kind() == ErrorKind::Conflict)
    }
}

impl Store {
    /// Begins a call that changes the store.
    ///
    /// # Errors
    /// Those of [`Store::refresh`]; `InvalidArgument` if the store is open for reading only.
    pub(in crate::store) fn call(&self) -> Result<Call<'_>> {
        self.setting().check_writable()?;
        if self.setting().is_shared() {
            self.refresh()?;
        }
        Ok(Call { store: self })
    }
}

impl Call<'_> {
    /// The time at which it begins, if it takes a while.
    pub fn began(self) -> Timestamp {
        let commits = self.store.commits();
        commits.times().now(commits.newest().state().time)
    }

    /// Prepares and commits by `attempt`; again while its commit, the inner result, is a conflict, and from the beginning if another process has
    /// reclaimed what it reads.
    pub fn attempt<T>(self, mut attempt: impl FnMut() -> Result<Result<T>>) -> Result<T> {
        self.store.while_reclaimed(|| retry_conflicts(&mut attempt))
    }

    /// Commits what `prepare` proposes on the newest state. Returns the state after, and what `prepare` returned beside it.
    pub fn commit<T>(self, mut prepare: impl FnMut(Arc<State>) -> Result<(Proposal, T)>) -> Result<(Arc<State>, T)> {
        self.attempt(|| {
            // The pin keeps the blocks that are read while preparing from reclaims of this process.
            let (base, _pin) = self.store.pinned_state()?;
            let (proposal, value) = prepare(base)?;
            Ok(self.store.commit(proposal).map(|after| (after, value)))
        })
    }
}
