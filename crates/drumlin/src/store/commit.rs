//! Commits: all waiting transactions in one turn, with one append and one sync for all of them.
//!
//! A transaction is prepared on a snapshot, with all I/O done, and admitted in its turn (proposal.rs). The thread that has
//! the turn commits all that wait (committer.rs). Answers are given only after the append, refusals too, since they may
//! depend on the effects of others in the batch.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use super::Store;
use super::committer::{Answer, Waiting};
use super::feed::CommitRecord;
use super::proposal::{Proposal, Work, admit, too_large};
use crate::base::planted::{Bug, planted};
use crate::base::{EntryId, Error, ErrorKind, Result, WarningKind, span, waiting};
use crate::catalog::{Draft, Effect, Footprint, State, TransactionRecord};
use crate::log::{Appended, Durable, ENTRY_BYTES_MAX, Entry, News};

/// A commit with this many effects on nodes is worth a second thread.
const LARGE: usize = 2000;

/// How often a transaction whose footprint was touched is prepared again before its caller gets the conflict.
pub(super) const ATTEMPTS_MAX: usize = 1000;

/// How often others come first in a commit's time before a warning says so.
const OVERTAKEN_OFTEN: u64 = 100;

/// Prepares and commits by `attempt`; again while the commit, the inner result, is a conflict.
pub(super) fn retry_conflicts<T, E: From<Error>>(mut attempt: impl FnMut() -> Result<Result<T>, E>) -> Result<T, E> {
    for _ in 1..ATTEMPTS_MAX {
        match attempt()? {
            Err(e) if e.kind() == ErrorKind::Conflict => {}
            answer => return Ok(answer?),
        }
    }
    Ok(attempt()??)
}

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
    /// Prepares and commits; again where others committed in between. Returns the state after, and what `prepare`
    /// returned.
    pub(super) fn prepare_and_commit<T>(
        &self,
        mut prepare: impl FnMut(Arc<State>) -> Result<(Proposal, T)>,
    ) -> Result<(Arc<State>, T)> {
        let mut attempt = || {
            // The pin keeps the blocks that are read while preparing from reclaims of this process.
            let (base, _pin) = self.pinned_state()?;
            let (proposal, value) = prepare(base)?;
            Ok(self.commit(proposal).map(|after| (after, value)))
        };
        self.while_reclaimed(|| retry_conflicts(&mut attempt))
    }

    /// Commits effects that depend only on the state they are applied to.
    pub(super) fn commit_effects(
        &self,
        build: impl FnMut(&State) -> Result<Vec<Effect>> + Send + 'static,
    ) -> Result<Arc<State>> {
        let base = self.current()?;
        self.commit(Proposal::new(base, Footprint::default(), Work::Build(Box::new(build))))
    }

    /// The same, of effects prepared on `base`. Returns the state after, and what `build` returned beside the effects.
    pub(super) fn commit_built<T: Send + 'static>(
        &self,
        base: Arc<State>,
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
        let after = self.commit(Proposal::new(base, Footprint::default(), work))?;
        Ok((after, given.take()?))
    }

    /// Commits what `work` does to the newest state. Returns its result.
    pub(super) fn commit_in_turn<T: Send + 'static>(
        &self,
        mut work: impl FnMut(&mut Draft) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let base = self.current()?;
        let given = Given::default();
        let last = given.clone();
        let work = move |draft: &mut Draft| {
            last.set(work(draft)?);
            Ok(())
        };
        self.commit(Proposal::new(base, Footprint::default(), Work::InTurn(Box::new(work))))?;
        given.take()
    }

    /// Waits for the turn, or for another thread to commit this proposal along with its own.
    pub(super) fn commit(&self, proposal: Proposal) -> Answer {
        self.check()?;
        let proposal = proposal.told_by(self.message.as_deref(), self.inner.options.writer.as_deref());
        self.inner.log()?;
        if self.handle.is_some() {
            let (log, bound) = (&self.inner.log, self.inner.options.checkpoint_log_bytes);
            self.inner.background.take_error(|| log.bytes(), bound)?;
        }
        self.inner.syncer.as_ref().map_or(Ok(()), |syncer| syncer.take_error())?;
        let overtaken = || self.inner.env.metrics.overtaken.get();
        let before = overtaken();
        let enter = || self.inner.committer.enter(proposal, || self.lead());
        // What one process alone writes waits for its disk only, which is better than not to know.
        let answer = if self.inner.log.is_shared() { enter() } else { waiting::unstoppable(enter) };
        let times = overtaken() - before;
        if times >= OVERTAKEN_OFTEN {
            self.inner.env.warn.say(WarningKind::ManyRetries, || {
                format!("{}: other processes committed first {times} times before a commit succeeded", self.inner.uri)
            });
        }
        answer
    }

    /// Commits all proposals that wait. What waits for other processes and may be stopped is done on a thread of its own, so
    /// that a call that is stopped leaves without its answer, and all others get theirs.
    fn lead(&self) {
        let store = Store::internal(self.inner.clone());
        let carry = move || store.inner.committer.carry(|batch| store.carry(batch));
        let apart = self.inner.log.is_shared() && waiting::can_stop();
        if !apart || self.inner.env.threads.spawn("drumlin-commit", Box::new(carry.clone())).is_err() {
            carry();
        }
    }

    /// Commits a batch, in its turn; returns an answer for each proposal.
    fn carry(&self, batch: &mut [Waiting]) -> Vec<Answer> {
        span!("commit", transactions = batch.len());
        let (metrics, begun) = (&self.inner.env.metrics, self.inner.env.clock.now());
        let (mut answers, mut done): (Vec<Answer>, Vec<Answer>) = (Vec::new(), Vec::with_capacity(batch.len()));
        let outcome = self.inner.check().and_then(|()| {
            // In a shared log, the process that comes first has committed, so all processes together make progress.
            while done.len() < batch.len() {
                match self.attempt(&mut batch[done.len()..], &mut answers)? {
                    Some(news) => {
                        metrics.overtaken.add(1);
                        self.take_in(news)?;
                    }
                    None => done.append(&mut answers),
                }
            }
            Ok(())
        });
        if outcome.is_ok() {
            if let Some(syncer) = &self.inner.syncer {
                syncer.wrote();
            }
            self.checkpoint_if_due();
        }
        metrics.commit_micros.observe(self.inner.env.micros_since(begun));
        let conflict = |answer: &&Answer| matches!(answer, Err(e) if e.kind() == ErrorKind::Conflict);
        metrics.conflicts.add(done.iter().filter(conflict).count() as u64);
        let mut answers = done.into_iter();
        let answer = |_: &Waiting| match (&outcome, answers.next()) {
            (_, Some(answer)) => answer,
            (Ok(()), None) => Err(Error::closed("the commit ended without an answer")),
            (Err(e), None) => Err(Error::new(e.kind(), e.to_string())),
        };
        batch.iter().map(answer).collect()
    }

    fn count_commit(&self, transactions: u64, shared: bool) {
        let metrics = &self.inner.env.metrics;
        metrics.commits.add(1);
        metrics.transactions.add(transactions);
        // One append of a log in files is one sync, unless a thread syncs by time.
        metrics.log_syncs.add(u64::from(self.inner.syncer.is_none() && !shared));
    }

    /// `Conflict` if a proposal depends on a state that nothing shows to be part of the history that the log holds now.
    fn check_proven(&self, proposal: &Proposal) -> Result<()> {
        // What is built in its turn from the newest state alone depends on nothing before.
        let depends = !proposal.footprint.reads.is_empty() || matches!(proposal.work, Work::Done(_));
        match depends && proposal.base.seq.0 < self.inner.proven_from.load(Ordering::SeqCst) {
            true => Err(Error::conflict("the state that this commit is based on is no longer in the log")),
            false => Ok(()),
        }
    }

    /// Commits a batch after the newest state known, or, if one entry of the log does not take all of it, the first
    /// proposals, as many as it answers. If others have committed after that state, commits nothing and returns what they
    /// did.
    fn attempt(&self, batch: &mut [Waiting], answers: &mut Vec<Answer>) -> Result<Option<News>> {
        answers.clear();
        let log = self.inner.log()?;
        let before = self.inner.state.read().clone();
        let mut working = State::clone(&before);
        working.forget_moves(self.inner.pins.oldest());
        let seq = working.seq.next();
        let time = working.time.max(self.time_now(working.time));
        let ages = self.age_now(working.time);
        let (mut bytes, limit) = (0, self.inner.options.log.entry_bytes_max.min(ENTRY_BYTES_MAX));
        let session = self.own_session(&working);
        let mut transactions = Vec::new();
        for Waiting { proposal, .. } in batch {
            if let Err(unproven) = self.check_proven(proposal) {
                answers.push(Err(unproven));
                continue;
            }
            let newest = transactions.is_empty() && Arc::ptr_eq(&proposal.base, &before);
            // A panic in one transaction does not affect the others.
            let (without, again, at) = (working.clone(), log.is_shared(), (seq, time, ages));
            let admitted = catch_unwind(AssertUnwindSafe(|| admit(&mut working, proposal, newest, again, at)));
            let mut admitted = admitted.unwrap_or_else(|_| Err(Error::invalid("the transaction failed unexpectedly")));
            if let Ok((transaction, after)) = &admitted {
                let own = transaction.bytes();
                // If too large alone, it is refused; else it waits for the next entry.
                if bytes + own > limit && !planted(Bug::TakeTooLarge) {
                    if bytes > 0 && own <= limit {
                        working = without;
                        break;
                    }
                    admitted = Err(too_large(transaction, after, own, limit));
                    working = without;
                } else {
                    bytes += own;
                }
            }
            answers.push(admitted.map(|(transaction, mut after)| {
                transactions.extend((!transaction.effects.is_empty()).then_some(transaction));
                after.finish(seq, time, EntryId::default(), session);
                Arc::new(after)
            }));
        }
        if transactions.is_empty() {
            // That nothing is to be done may depend on what others have changed.
            return log.refresh();
        }
        let id =
            EntryId((u128::from(self.inner.env.entropy.next()?) << 64) | u128::from(self.inner.env.entropy.next()?));
        let append = || {
            let payload = TransactionRecord::encode(&transactions)?.into();
            let effects = transactions.iter().flat_map(|transaction: &TransactionRecord| &transaction.effects);
            let features = effects.fold(0, |features, effect| features | effect.features());
            let durable = if self.inner.syncer.is_some() { Durable::AfterSync } else { Durable::Now };
            log.append(&Entry { seq, id, prev: Some(before.entry), session, time, features, payload }, durable)
        };
        let large = transactions.iter().map(TransactionRecord::nodes).sum::<usize>() >= LARGE;
        let pool = &self.inner.env.pool;
        let appended = if large && working.views().are_by_fields() {
            // Others see the projections only in the state published below, so they need not be brought up to date
            // first.
            pool.beside(append, || working.catch_up(Some(pool)))?
        } else {
            if !planted(Bug::ForgetProjections) {
                working.catch_up(None);
            }
            append()?
        };
        if let Appended::Behind(news) = appended {
            return Ok(Some(news));
        }
        working.finish(seq, time, id, session);
        // There is room: that was checked before.
        let bytes = working.settle().map_err(|e| {
            log.poison();
            let what = format!("commit {seq} (transaction {:032x})", id.0);
            Error::in_doubt(format!("{what} is in the log, but not in memory; open the store again")).with_source(e)
        })?;
        self.inner.memtable_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.count_commit(transactions.len() as u64, log.is_shared());
        let after = Arc::new(working);
        self.inner.publish(&before, after.clone());
        self.inner.feeds.publish(|| CommitRecord { before: before.clone(), after, transactions });
        if large {
            // Freeing many nodes takes time; no caller should wait for it.
            pool.spawn(move || drop(before));
        }
        Ok(None)
    }
}
