//! The committer: one turn at a time, as many transactions a turn as wait, one append and one sync for all of them.
//!
//! A transaction is prepared on a snapshot, with all I/O done. In its turn its footprint is checked against what has
//! been committed since, and its effects are made for the state as it is then. Whoever leads carries all that wait;
//! answers are given only after the append, refusals too, since they may rest on neighbours' effects.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::background::checkpoint_if_due;
use super::feed::Record;
use super::{Store, recover};
use crate::base::planted::{Bug, planted};
use crate::base::{EntryId, Error, ErrorKind, Result, Seq, SessionId, TableId, Timestamp};
use crate::block::BlockNumbers;
use crate::catalog::{Draft, Effect, Footprint, State, Transaction, carry_over, check_written};
use crate::log::{Appended, ENTRY_BYTES_MAX, Entry, News, retry_while_moving};

/// Makes the effects of a transaction from the state they will be applied to. Quick, and without I/O; called again where
/// another process has committed in between.
pub(super) type Build = Box<dyn FnMut(&State) -> Result<Vec<Effect>> + Send>;

/// Does a transaction to the newest state. Quick, and without I/O; called again where another process has committed in
/// between.
pub(super) type InTurn = Box<dyn FnMut(&mut Draft) -> Result<()> + Send>;

/// What a transaction does.
pub(super) enum Work {
    /// Effects made in its turn.
    Build(Build),
    /// Done to the newest state, in its turn.
    InTurn(InTurn),
    /// Done already, to the state that it was prepared on.
    Done(Box<Draft>),
}

/// Effects made on `base`, whose deletions by position are carried over to where the rows are in its turn.
pub(super) fn carried(base: Arc<State>, effects: Vec<Effect>) -> Work {
    Work::Build(Box::new(move |now| {
        let mut effects = effects.clone();
        carry_over(&mut effects, &base, now)?;
        Ok(effects)
    }))
}

/// A transaction that waits for its turn.
pub(super) struct Proposal {
    /// What it was prepared on.
    pub base: Arc<State>,
    /// What it has read of it.
    pub footprint: Footprint,
    /// What it does. If it has no effect, nothing is committed.
    pub work: Work,
}

/// A commit's answer: the state right after this very transaction, before retention took anything off.
type Answer = Result<Arc<State>>;

enum Place {
    Waiting,
    /// To carry all that wait.
    Leading,
    Answered(Answer),
}

struct Slot {
    place: Mutex<Place>,
    changed: Condvar,
}

impl Slot {
    fn set(&self, place: Place) {
        *self.place.lock() = place;
        self.changed.notify_one();
    }

    /// Waits until it is to lead or has its answer.
    fn wait(&self) -> Option<Answer> {
        let mut place = self.place.lock();
        loop {
            match std::mem::replace(&mut *place, Place::Waiting) {
                Place::Waiting => self.changed.wait(&mut place),
                Place::Leading => return None,
                Place::Answered(answer) => return Some(answer),
            }
        }
    }
}

struct Waiting {
    proposal: Proposal,
    slot: Arc<Slot>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Waiting>,
    /// Whether somebody leads.
    led: bool,
}

/// Those that wait, and the turn.
#[derive(Default)]
pub(super) struct Committer {
    queue: Mutex<Queue>,
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

/// The one that carries all that wait. When it goes, even by a panic, the next one leads.
struct Leader<'a>(&'a Committer);

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        match queue.waiting.first() {
            Some(next) => next.slot.set(Place::Leading),
            None => queue.led = false,
        }
    }
}

/// A commit with so many effects on nodes is worth a second thread.
const LARGE: usize = 2000;

/// Those of a batch, who are answered whatever happens to the one that carries them.
struct Carried(Vec<Arc<Slot>>);

impl Drop for Carried {
    fn drop(&mut self) {
        for slot in &self.0 {
            // One that was answered waits no longer, or takes its answer first.
            if matches!(*slot.place.lock(), Place::Waiting) {
                slot.set(Place::Answered(Err(Error::in_doubt("the commit panicked; open the store again"))));
            }
        }
    }
}

/// How often a transaction whose footprint was touched is prepared anew before its caller is told.
pub(super) const ATTEMPTS_MAX: usize = 1000;

/// Prepares and commits by `attempt`, again while its commit, the inner answer, meets a conflict.
pub(super) fn retry_conflicts<T, E: From<Error>>(mut attempt: impl FnMut() -> Result<Result<T>, E>) -> Result<T, E> {
    for _ in 1..ATTEMPTS_MAX {
        match attempt()? {
            Err(e) if e.kind() == ErrorKind::Conflict => {}
            answer => return Ok(answer?),
        }
    }
    Ok(attempt()??)
}

impl Store {
    /// Prepares and commits, again where others got in between. Returns what `prepare` gave and the state after.
    pub(super) fn prepare_and_commit<T>(
        &self,
        mut prepare: impl FnMut(Arc<State>) -> Result<(Proposal, T)>,
    ) -> Result<(Arc<State>, T)> {
        let mut attempt = || {
            // The pin keeps the blocks that are read while preparing, as far as this process reclaims.
            let (base, _pin) = self.pinned_state()?;
            let (proposal, value) = prepare(base)?;
            Ok(self.commit(proposal).map(|after| (after, value)))
        };
        self.while_reclaimed(|| retry_conflicts(&mut attempt))
    }

    /// Commits effects that rest on nothing but the state they are applied to.
    pub(super) fn commit_effects(
        &self,
        build: impl FnMut(&State) -> Result<Vec<Effect>> + Send + 'static,
    ) -> Result<Arc<State>> {
        let base = self.current()?;
        self.commit(Proposal { base, footprint: Footprint::default(), work: Work::Build(Box::new(build)) })
    }

    /// Commits what `work` does to the newest state. Gives its answer.
    pub(super) fn commit_in_turn<T: Send + 'static>(
        &self,
        mut work: impl FnMut(&mut Draft) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let base = self.current()?;
        let told = Arc::new(Mutex::new(None));
        let tell = told.clone();
        let work = move |draft: &mut Draft| {
            *tell.lock() = Some(work(draft)?);
            Ok(())
        };
        self.commit(Proposal { base, footprint: Footprint::default(), work: Work::InTurn(Box::new(work)) })?;
        let answer = told.lock().take();
        answer.ok_or_else(|| Error::closed("the committer gave no answer"))
    }

    /// Waits for the turn, or for another that carries this one along.
    pub(super) fn commit(&self, proposal: Proposal) -> Answer {
        self.check()?;
        self.inner.log()?;
        if self.handle.is_some() {
            self.inner.background.take_error()?;
        }
        self.inner.syncer.as_ref().map_or(Ok(()), |syncer| syncer.take_error())?;
        let committer = &self.inner.committer;
        let slot = Arc::new(Slot { place: Mutex::new(Place::Waiting), changed: Condvar::new() });
        let waits = {
            let mut queue = committer.queue.lock();
            queue.waiting.push(Waiting { proposal, slot: slot.clone() });
            std::mem::replace(&mut queue.led, true)
        };
        if waits && let Some(answer) = slot.wait() {
            return answer;
        }
        {
            let _leader = Leader(committer);
            let _turn = committer.turn();
            let batch = std::mem::take(&mut committer.queue.lock().waiting);
            self.carry(batch);
        }
        slot.wait().unwrap_or_else(|| Err(Error::closed("the committer gave no answer")))
    }

    /// Commits a batch, in its turn, and answers all of it.
    fn carry(&self, mut batch: Vec<Waiting>) {
        let slots = Carried(batch.iter().map(|waiting| waiting.slot.clone()).collect());
        let (mut answers, mut done): (Vec<Answer>, Vec<Answer>) = (Vec::new(), Vec::with_capacity(batch.len()));
        let outcome = self.inner.check().and_then(|()| {
            // Whoever comes first in a log that is shared has committed, so that all of them together go on.
            while done.len() < batch.len() {
                match self.attempt(&mut batch[done.len()..], &mut answers)? {
                    Some(news) => self.take_in(news)?,
                    None => done.append(&mut answers),
                }
            }
            Ok(())
        });
        if outcome.is_ok() {
            if let Some(syncer) = &self.inner.syncer {
                syncer.wrote();
            }
            checkpoint_if_due(&self.inner);
        }
        let mut answers = done.into_iter();
        for slot in &slots.0 {
            slot.set(Place::Answered(match (&outcome, answers.next()) {
                (_, Some(answer)) => answer,
                (Ok(()), None) => Err(Error::closed("the committer gave no answer")),
                (Err(e), None) => Err(Error::new(e.kind(), e.to_string())),
            }));
        }
    }

    /// Commits a batch behind the newest state known, or, if one entry of the log does not take it all, the first of it; as many
    /// as it answers. Unless others have committed behind that state: gives what.
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
            let newest = transactions.is_empty() && Arc::ptr_eq(&proposal.base, &before);
            // A panic in one transaction is its own.
            let (without, again, at) = (working.clone(), log.is_shared(), (seq, time, ages));
            let admitted = catch_unwind(AssertUnwindSafe(|| admit(&mut working, proposal, newest, again, at)));
            let mut admitted = admitted.unwrap_or_else(|_| Err(Error::invalid("the transaction panicked")));
            if let Ok((transaction, after)) = &admitted {
                let own = transaction.bytes();
                // Alone it is refused; beside others it waits for the next entry.
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
            // That nothing is done may rest on what others have changed.
            return log.refresh();
        }
        let id =
            EntryId((u128::from(self.inner.env.entropy.next()?) << 64) | u128::from(self.inner.env.entropy.next()?));
        let append = || {
            let payload = Transaction::encode(&transactions)?.into();
            let effects = transactions.iter().flat_map(|transaction: &Transaction| &transaction.effects);
            let features = effects.fold(0, |features, effect| features | effect.features());
            log.append(&Entry { seq, id, session, time, features, payload }, self.inner.syncer.is_some())
        };
        let large = transactions.iter().map(Transaction::nodes).sum::<usize>() >= LARGE;
        let pool = &self.inner.env.pool;
        let appended = if large && working.views().are_by_fields() {
            // What others see of the projections is the state published below, so they need not come first.
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
        // There is room: that was asked before.
        let bytes = working.settle().map_err(|e| {
            log.poison();
            let what = format!("commit {seq} (transaction {:032x})", id.0);
            Error::in_doubt(format!("{what} is in the log, but not in memory: open the store again")).with_source(e)
        })?;
        self.inner.memtable_bytes.fetch_add(bytes, Ordering::Relaxed);
        let after = Arc::new(working);
        *self.inner.state.write() = after.clone();
        self.inner.feeds.publish(|| Record { before: before.clone(), after, transactions });
        if large {
            // To free many nodes takes its time, which nobody need wait for.
            pool.spawn(move || drop(before));
        }
        Ok(None)
    }

    /// Brings the state to what others have committed. In the turn.
    pub(super) fn take_in(&self, news: News) -> Result<()> {
        let current = self.inner.state.read().clone();
        let done = self.follow(&current, news);
        // What could not be taken in is asked for again; what was found beyond it is not.
        self.inner.log.knows(self.inner.state.read().seq);
        done
    }

    fn follow(&self, current: &Arc<State>, news: News) -> Result<()> {
        let inner = &self.inner;
        let mut failed = None;
        // What feeds are told, so that they need not read it once more.
        let (told, mut records) = (inner.feeds.any(), Vec::<Record>::new());
        let mut next = match news {
            News::Entries(entries) => {
                let mut next = State::clone(&**current);
                // Of some there may be word already.
                for entry in entries.iter().filter(|entry| entry.seq > current.seq) {
                    let mut step = next.clone();
                    let applied = recover::apply_entry(&mut step, entry);
                    match applied.and_then(|transactions| Ok((transactions, step.settle()?))) {
                        Ok((transactions, bytes)) => {
                            inner.memtable_bytes.fetch_add(bytes, Ordering::Relaxed);
                            if told {
                                let before = records.last().map_or(current, |record| &record.after).clone();
                                records.push(Record { before, after: Arc::new(step.clone()), transactions });
                            }
                        }
                        Err(e) => {
                            // What came before it has been taken in, rows and all, and is not to be taken in again.
                            failed = Some(e);
                            break;
                        }
                    }
                    next = step;
                }
                next
            }
            News::All(opened) => {
                let replayed = recover::replay(&*inner.storage, &opened)
                    .or_else(|_| retry_while_moving(|| recover::replay(&*inner.storage, &inner.log.read()?)));
                let (mut next, _) = replayed?;
                next.take_functions(current);
                inner.memtable_bytes.store(next.memtable_bytes(), Ordering::Relaxed);
                next
            }
        };
        if next.seq > current.seq {
            if !planted(Bug::ForgetOthersInProjections) {
                next.catch_up(None);
            }
            inner.hold_inline(&next);
            next.forget_moves(inner.pins.oldest());
            let next = Arc::new(next);
            *inner.state.write() = next.clone();
            inner.inline_is_committed(&next);
            inner.let_go_of_inline();
            for record in records {
                inner.feeds.publish(|| record);
            }
            inner.feeds.wake();
        }
        failed.map_or(Ok(()), Err)
    }

    /// In a shared store: ends this process's session, if it has one, so that whoever sweeps need not wait.
    pub(super) fn end_session(&self) -> Result<()> {
        let own = self.inner.session.lock().as_ref().map(|numbers| numbers.session());
        let Some(own) = own.filter(|_| self.inner.log.is_shared()) else { return Ok(()) };
        self.commit_effects(move |_| Ok(vec![Effect::FenceSessions { sessions: vec![own] }]))?;
        Ok(())
    }

    /// This process's session, 0 if it has none. One that others have ended is given up: what is written next is of another.
    fn own_session(&self, state: &State) -> SessionId {
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
        let _one_at_a_time = self.inner.committer.registration.lock();
        if let Some(numbers) = known() {
            return Ok(numbers);
        }
        // Under an exclusive lock nobody else writes: all earlier sessions have ended.
        let fence = !self.inner.log.is_shared();
        let state =
            self.commit_effects(move |state| Ok(vec![Effect::OpenSession { session: state.next_session(), fence }]))?;
        // Its number must never be given again, whatever is lost.
        self.sync()?;
        let numbers = Arc::new(BlockNumbers::new(state.sessions.last));
        *self.inner.session.lock() = Some(numbers.clone());
        Ok(numbers)
    }
}

/// Checks a proposal and brings `working` to what it leads to; with an error, leaves it. `newest` says that `working` is
/// what the proposal was prepared on, `again` that the proposal may have to be admitted another time. Gives the transaction, and the state after what was proposed.
fn admit(
    working: &mut State,
    proposal: &mut Proposal,
    newest: bool,
    again: bool,
    (seq, time, ages): (Seq, Timestamp, Timestamp),
) -> Result<(Transaction, State)> {
    let Proposal { base, footprint, work } = proposal;
    if !newest && !planted(Bug::SkipFootprint) {
        footprint.check(base, working)?;
    }
    let fresh = || Draft::new(working.clone(), seq, time);
    let draft = match work {
        // What is done already need not be done again. Tables note the time of their commit.
        Work::Done(draft) if newest && draft.seq() == seq && draft.is_of_nodes() => match again {
            true => Draft::clone(draft),
            false => std::mem::replace(&mut **draft, Draft::new(State::default(), seq, time)),
        },
        Work::Done(draft) => {
            check_written(draft.effects(), base, working)?;
            let mut again = fresh();
            let redone = again.redo(draft.effects().to_vec(), base);
            redone.map_err(|e| Error::conflict(format!("what it was made for has changed: {}", e.message())))?;
            // What goes along with what it did may rest on nodes that it did not read.
            if !again.did_the_same(draft.effects())? {
                return Err(Error::conflict("what goes along with it has changed since it was made"));
            }
            again
        }
        Work::Build(build) => {
            let mut draft = fresh();
            draft.apply(build(working)?)?;
            draft
        }
        Work::InTurn(work) => {
            let mut draft = fresh();
            work(&mut draft)?;
            draft
        }
    };
    let (mut next, mut transaction) = draft.into_parts();
    let after = next.clone();
    let changed = transaction.effects.iter().filter_map(|effect| match effect {
        Effect::ChangeTable { table, .. } | Effect::FreezeRows { table } => Some(*table),
        _ => None,
    });
    let expired = Transaction { effects: expiry(&next, changed, ages) };
    next.apply(&expired, seq, time)?;
    next.check_room()?;
    transaction.effects.extend(expired.effects);
    *working = next;
    Ok((transaction, after))
}

/// Refuses a transaction that the log cannot take.
fn too_large(transaction: &Transaction, after: &State, bytes: u64, limit: u64) -> Error {
    let largest = transaction.largest();
    let path = largest.and_then(Effect::table).and_then(|table| after.path_of(table));
    let most = match (path, largest) {
        (Some(path), _) => format!("most of it for '{path}'"),
        (None, Some(effect)) => format!("most of it for what {}", effect.name()),
        (None, None) => "nothing of it alone".to_owned(),
    };
    Error::invalid(format!(
        "the commit would take {bytes} bytes in the log, {most}; at most {limit} are possible: do it in parts"
    ))
}

/// What retention takes off `tables` at `now`.
pub(super) fn expiry(state: &State, tables: impl Iterator<Item = TableId>, now: Timestamp) -> Vec<Effect> {
    let tables: std::collections::BTreeSet<TableId> = tables.collect();
    let effect = |table: TableId| {
        let versions = state.retention(table).expired(state.table(table)?.versions.iter(), now);
        (!versions.is_empty()).then_some(Effect::DeleteVersions { table, versions })
    };
    tables.into_iter().filter_map(effect).collect()
}
