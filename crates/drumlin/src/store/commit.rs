//! The committer: one turn at a time, as many transactions a turn as wait, one append and one sync for all of them.
//!
//! A transaction is prepared on a snapshot, with all I/O done. In its turn its footprint is checked against what has
//! been committed since, and its effects are built from the state as it is then. Whoever gets the turn carries
//! all that wait; answers are given only after the append, refusals too, since they may rest on neighbours' effects.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::Store;
use crate::base::{EntryId, Error, ErrorKind, Result, Seq, SessionId, TableId, Timestamp};
use crate::block::BlockNumbers;
use crate::catalog::{Effect, Footprint, State, Transaction};
use crate::log::Entry;

/// Makes the effects of a transaction from the state they will be applied to. Quick, and without I/O.
pub(super) type Build = Box<dyn FnOnce(&State) -> Result<Vec<Effect>> + Send>;

/// A transaction that waits for its turn.
pub(super) struct Proposal {
    /// What it was prepared on.
    pub base: Arc<State>,
    /// What it has read of it.
    pub footprint: Footprint,
    /// Its effects. If there are none, nothing is committed.
    pub build: Build,
}

/// A commit's answer: the state right after this very transaction, before retention took anything off.
type Answer = Result<Arc<State>>;

struct Waiting {
    proposal: Proposal,
    slot: Arc<Mutex<Option<Answer>>>,
}

/// Those that wait, and the turn.
#[derive(Default)]
pub(super) struct Committer {
    queue: Mutex<Vec<Waiting>>,
    turn: Mutex<()>,
    /// Held while the session is being registered.
    registration: Mutex<()>,
}

impl Committer {
    /// Waits for the turn.
    pub fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock()
    }
}

/// How often a transaction whose footprint was touched is prepared anew before its caller is told.
const ATTEMPTS_MAX: usize = 1000;

impl Store {
    /// Prepares and commits, again where others got in between. Returns what `prepare` gave and the state after.
    pub(super) fn transact<T>(
        &self,
        mut prepare: impl FnMut(Arc<State>) -> Result<(Proposal, T)>,
    ) -> Result<(Arc<State>, T)> {
        for _ in 1..ATTEMPTS_MAX {
            // The pin keeps the blocks that are read while preparing.
            let (base, _pin) = self.pinned_state()?;
            let (proposal, value) = prepare(base)?;
            match self.commit(proposal) {
                Err(e) if e.kind() == ErrorKind::Conflict => {}
                answer => return Ok((answer?, value)),
            }
        }
        let (base, _pin) = self.pinned_state()?;
        let (proposal, value) = prepare(base)?;
        Ok((self.commit(proposal)?, value))
    }

    /// Commits effects that rest on nothing but the state they are applied to.
    pub(super) fn commit_effects(
        &self,
        build: impl FnOnce(&State) -> Result<Vec<Effect>> + Send + 'static,
    ) -> Result<Arc<State>> {
        let base = self.state()?;
        self.commit(Proposal { base, footprint: Footprint::default(), build: Box::new(build) })
    }

    /// Waits for the turn, or for another's turn that carries this one along.
    pub(super) fn commit(&self, proposal: Proposal) -> Answer {
        self.inner.log()?;
        let slot = Arc::new(Mutex::new(None));
        let committer = &self.inner.committer;
        committer.queue.lock().push(Waiting { proposal, slot: slot.clone() });
        let _turn = committer.turn();
        if let Some(answer) = slot.lock().take() {
            return answer;
        }
        let batch = std::mem::take(&mut *committer.queue.lock());
        self.carry(batch);
        slot.lock().take().unwrap_or_else(|| Err(Error::closed("the committer gave no answer")))
    }

    /// Commits a batch, in its turn, and answers all of it.
    fn carry(&self, batch: Vec<Waiting>) {
        let mut answers: Vec<Answer> = Vec::with_capacity(batch.len());
        let mut slots = Vec::with_capacity(batch.len());
        let outcome = self.inner.check().and_then(|()| {
            let mut working = State::clone(&self.inner.state.read());
            let seq = working.seq.next();
            let time = working.time.max(self.inner.env.clock.now());
            let mut transactions = Vec::new();
            for Waiting { proposal, slot } in batch {
                slots.push(slot);
                // A panic in one transaction is its own.
                let admitted = catch_unwind(AssertUnwindSafe(|| admit(&mut working, proposal, seq, time)));
                let admitted = admitted.unwrap_or_else(|_| Err(Error::invalid("the transaction panicked")));
                answers.push(admitted.map(|(transaction, mut after)| {
                    transactions.extend((!transaction.effects.is_empty()).then_some(transaction));
                    after.finish(seq, time, EntryId::default());
                    Arc::new(after)
                }));
            }
            if transactions.is_empty() {
                return Ok(());
            }
            let id = EntryId(
                (u128::from(self.inner.env.entropy.next()?) << 64) | u128::from(self.inner.env.entropy.next()?),
            );
            let session = self.inner.session.lock().as_ref().map_or(SessionId(0), |numbers| numbers.session());
            let payload = Transaction::encode(&transactions)?.into();
            self.inner.log()?.append(&Entry { seq, id, session, time, features: 0, payload })?;
            working.finish(seq, time, id);
            *self.inner.state.write() = Arc::new(working);
            Ok(())
        });
        for (slot, answer) in slots.iter().zip(answers) {
            *slot.lock() = Some(match &outcome {
                Ok(()) => answer,
                Err(e) => Err(Error::new(e.kind(), e.to_string())),
            });
        }
    }

    /// The numbers of this process's blocks; registers its session before the first.
    pub(super) fn block_numbers(&self) -> Result<Arc<BlockNumbers>> {
        if let Some(numbers) = self.inner.session.lock().as_ref() {
            return Ok(numbers.clone());
        }
        let _one_at_a_time = self.inner.committer.registration.lock();
        if let Some(numbers) = self.inner.session.lock().as_ref() {
            return Ok(numbers.clone());
        }
        // Under the exclusive lock nobody else writes: all earlier sessions have ended.
        let state =
            self.commit_effects(|state| Ok(vec![Effect::OpenSession { session: state.next_session(), fence: true }]))?;
        let numbers = Arc::new(BlockNumbers::new(state.session.last));
        *self.inner.session.lock() = Some(numbers.clone());
        Ok(numbers)
    }
}

/// Checks a proposal and applies its effects to `working`; with an error, nothing. Gives the transaction, and the state
/// after what was proposed.
fn admit(working: &mut State, proposal: Proposal, seq: Seq, time: Timestamp) -> Result<(Transaction, State)> {
    proposal.footprint.check(&proposal.base, working)?;
    let mut transaction = Transaction { effects: (proposal.build)(working)? };
    let mut next = working.clone();
    next.apply(&transaction, seq, time)?;
    let after = next.clone();
    let changed = transaction.effects.iter().filter_map(|effect| match effect {
        Effect::ChangeTable { table, .. } => Some(*table),
        _ => None,
    });
    let expired = Transaction { effects: expiry(&next, changed, time) };
    next.apply(&expired, seq, time)?;
    transaction.effects.extend(expired.effects);
    *working = next;
    Ok((transaction, after))
}

/// What retention takes off `tables` at `now`.
pub(super) fn expiry(state: &State, tables: impl Iterator<Item = TableId>, now: Timestamp) -> Vec<Effect> {
    let effect = |table: TableId| {
        let versions = state.retention(table).expired(state.table(table)?.versions.iter(), now);
        (!versions.is_empty()).then_some(Effect::DeleteVersions { table, versions })
    };
    tables.filter_map(effect).collect()
}
