//! What commits: the log, the queue of those that wait for their turn, and the newest state. All waiting transactions are
//! committed in one turn, with one append and one sync for all of them.
//!
//! A transaction is prepared on a snapshot, with all I/O done, and admitted in its turn (*proposal.rs*). The thread that
//! has the turn commits all that wait (*queue.rs*). Answers are given only after the append, refusals too, since they may
//! depend on the effects of others in the batch. After a failed append nothing is published.
//!
//! Where other processes have committed first, their entries are taken in, and all effects of the turn are built again
//! on the new state: so they are made by closures that can be called again. A caller whose footprint was touched
//! prepares its transaction again.
//!
//! A commit that only writes rows may be added behind commits that this process does not know yet, by another process (*among.rs*): it is
//! taken in with those then, as it is theirs.
//!
//! A put that was sent cannot be taken back. So in a store that others write too, the commits of a turn are carried by
//! a thread of their own if the caller may be stopped: it leaves without its answer, the commit goes on, and the others
//! of the turn get theirs.
//!
//! In a store that others write too, a call that writes looks at the root first, and so does a turn in which nothing is
//! to be committed. So no refusal is based on a state from before the call.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::among::{rows_read, tables_written};
use super::carrier::Carrier;
use super::feeds::{CommitRecord, Feeds};
use super::newest::Newest;
use super::proposal::{Proposal, Work, admit, too_large};
use super::queue::{Answer, Committer, Waiting};
use super::syncer::Syncer;
use crate::base::planted::{Bug, planted};
use crate::base::waiting::ExclusiveGuard;
use crate::base::{EntryId, Error, ErrorKind, Result, Seq, Timestamp, WarningKind, span, waiting};
use crate::catalog::{State, TransactionRecord};
use crate::log::{Appended, CommitLog, Durable, ENTRY_BYTES_MAX, Entry, News, OfferTerms, retry_while_moving};
use crate::storage::Storage;
use crate::store::SyncMode;
use crate::store::parts::recover;
use crate::store::parts::session::Session;
use crate::store::parts::setting::Setting;
use crate::store::parts::times::CommitClock;

/// A commit with this many effects on nodes is worth a second thread.
const LARGE: usize = 2000;

/// How often others come first in a commit's time before a warning says so.
const OVERTAKEN_OFTEN: u64 = 100;

/// See the module.
pub(in crate::store) struct Commits {
    setting: Arc<Setting>,
    log: Box<dyn CommitLog>,
    newest: Newest,
    queue: Committer,
    carrier: Carrier,
    /// If commits are made durable by time.
    syncer: Option<Syncer>,
    feeds: Arc<Feeds>,
    session: Session,
    times: CommitClock,
    /// Called after each turn that has committed, in the turn.
    committed: Box<dyn Fn() + Send + Sync>,
}

impl Commits {
    /// Those of a store that has just been opened, whose log ends with `state`.
    pub fn new(
        setting: Arc<Setting>,
        log: Box<dyn CommitLog>,
        state: State,
        committed: Box<dyn Fn() + Send + Sync>,
    ) -> Self {
        let syncer = match setting.options().sync {
            SyncMode::Interval(interval) if !setting.is_read_only() => Some(Syncer::new(interval)),
            _ => None,
        };
        let times = CommitClock::new(setting.clone(), state.time);
        let newest = Newest::new(state, setting.storage().clone());
        let (queue, carrier) = (Committer::default(), Carrier::default());
        let (feeds, session) = (Arc::default(), Session::default());
        Self { setting, log, newest, queue, carrier, syncer, feeds, session, times, committed }
    }

    pub fn setting(&self) -> &Setting {
        &self.setting
    }

    /// The log, to be looked at.
    pub fn log(&self) -> &dyn CommitLog {
        &*self.log
    }

    /// The log, to be written to.
    pub fn writable_log(&self) -> Result<&dyn CommitLog> {
        self.setting.check_writable()?;
        Ok(&*self.log)
    }

    pub fn newest(&self) -> &Newest {
        &self.newest
    }

    pub fn feeds(&self) -> &Arc<Feeds> {
        &self.feeds
    }

    pub fn session(&self) -> &Session {
        &self.session
    }

    pub fn times(&self) -> &CommitClock {
        &self.times
    }

    /// Waits for the turn, in which nothing else changes the newest state.
    pub fn turn(&self) -> Result<ExclusiveGuard<'_, ()>> {
        self.queue.turn()
    }

    /// Starts the thread that syncs by time, if there is to be one.
    pub fn start_syncing(self: &Arc<Self>) -> Result<()> {
        let Some(syncer) = &self.syncer else { return Ok(()) };
        syncer.set_running(true);
        let own = self.clone();
        let sync = move || {
            own.setting.env().metrics.log_syncs.add(1);
            // A log that was closed in between has been synced.
            own.log.sync().err().filter(|_| own.setting.check_open().is_ok())
        };
        let own = self.clone();
        let work = move || own.syncer.iter().for_each(|syncer| syncer.run(&sync));
        let started = self.setting.env().threads.spawn("drumlin-sync", Box::new(work));
        started.map(drop).inspect_err(|_| syncer.set_running(false))
    }

    /// Makes all earlier commits durable, if that is left to time.
    pub fn sync(&self) -> Result<()> {
        if self.syncer.is_none() {
            return Ok(());
        }
        self.setting.env().metrics.log_syncs.add(1);
        self.writable_log()?.sync()
    }

    /// Ends all that goes on by itself, waits for the commit under way, and closes the log: the next open needs no recovery. Does
    /// `then` while it still has the turn.
    pub fn close(&self, then: impl FnOnce()) -> Result<()> {
        self.syncer.iter().for_each(Syncer::stop);
        self.feeds.close();
        // In a store that others write too, a commit that does not end does no harm, and the caller may not wait for it.
        let turn = match self.setting.is_shared() {
            true => self.turn(),
            false => waiting::unstoppable(|| self.turn()),
        };
        let closed = self.log.close().and(turn.as_ref().map(drop).map_err(|e| Error::new(e.kind(), e.message())));
        then();
        closed
    }

    /// Takes in what other processes have committed.
    pub fn refresh(&self) -> Result<()> {
        self.setting.check()?;
        let _turn = self.turn()?;
        match self.log.refresh()? {
            Some(news) => self.take_in(news),
            None => Ok(()),
        }
    }

    /// Waits for the turn, or for another thread to commit this proposal along with its own.
    pub fn commit(self: &Arc<Self>, proposal: Proposal) -> Answer {
        self.syncer.as_ref().map_or(Ok(()), Syncer::take_error)?;
        let overtaken = || self.setting.env().metrics.overtaken.get();
        let before = overtaken();
        let enter = || self.queue.enter(proposal, || self.lead());
        // What one process alone writes waits for its disk only, which is better than not to know.
        let answer = if self.setting.is_shared() { enter() } else { waiting::unstoppable(enter) };
        let times = overtaken() - before;
        if times >= OVERTAKEN_OFTEN {
            self.setting.env().warn.say(WarningKind::ManyRetries, || {
                let uri = self.setting.uri();
                format!("{uri}: other processes committed first {times} times before a commit succeeded")
            });
        }
        answer
    }

    /// Commits all proposals that wait. What waits for other processes and may be stopped is done on a thread of its own, so
    /// that a call that is stopped leaves without its answer, and all others get theirs.
    fn lead(self: &Arc<Self>) {
        let commits = self.clone();
        let carry = move || {
            commits.queue.carry(|batch| commits.carry(batch));
            commits.log.tidy();
        };
        let apart = self.setting.is_shared() && waiting::can_stop();
        if !apart || self.carrier.run(&*self.setting.env().threads, Box::new(carry.clone())).is_err() {
            carry();
        }
    }

    /// Commits a batch, in its turn; returns an answer for each proposal.
    fn carry(&self, batch: &mut [Waiting]) -> Vec<Answer> {
        span!("commit", transactions = batch.len());
        let (metrics, begun) = (&self.setting.env().metrics, self.setting.env().clock.now());
        let (mut answers, mut done): (Vec<Answer>, Vec<Answer>) = (Vec::new(), Vec::with_capacity(batch.len()));
        let outcome = self.setting.check().and_then(|()| {
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
            self.syncer.iter().for_each(Syncer::wrote);
            (self.committed)();
        }
        metrics.commit_micros.observe(self.setting.env().micros_since(begun));
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
        let metrics = &self.setting.env().metrics;
        metrics.commits.add(1);
        metrics.transactions.add(transactions);
        // One append of a log in files is one sync, unless a thread syncs by time.
        metrics.log_syncs.add(u64::from(self.syncer.is_none() && !shared));
    }

    /// `Conflict` if a proposal depends on a state that nothing shows to be part of the history that the log holds now.
    fn check_proven(&self, proposal: &Proposal) -> Result<()> {
        // What is built in its turn from the newest state alone depends on nothing before.
        let depends = !proposal.footprint.reads.is_empty() || matches!(proposal.work, Work::Done(_));
        match depends && !self.newest.is_proven(proposal.base.seq) {
            true => Err(Error::conflict("the state that this commit is based on is no longer in the log")),
            false => Ok(()),
        }
    }

    /// Commits a batch after the newest state known, or, if one entry of the log does not take all of it, the first
    /// proposals, as many as it answers. If others have committed after that state, commits nothing and returns what they
    /// did.
    fn attempt(&self, batch: &mut [Waiting], answers: &mut Vec<Answer>) -> Result<Option<News>> {
        answers.clear();
        let log = self.writable_log()?;
        let before = self.newest.state();
        let mut working = State::clone(&before);
        working.forget_moves(self.newest.pins().oldest());
        let seq = working.seq.next();
        // No two commits have the same time: histories and feeds tell them apart by it.
        let time = self.times.now(working.time).max(Timestamp(working.time.0.saturating_add(1)));
        let ages = self.times.age(working.time);
        let (mut bytes, limit) = (0, self.setting.options().log.entry_bytes_max.min(ENTRY_BYTES_MAX));
        let session = self.session.open_in(&working);
        let mut transactions = Vec::new();
        // The tables on whose rows the batch depends, if it may be added behind commits that are not known here.
        let mut reads = log.is_shared().then(Vec::new);
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
                if !transaction.effects.is_empty()
                    && let Some(all) = &mut reads
                {
                    match rows_read(&after, &proposal.footprint, &transaction) {
                        Some(tables) => all.extend(tables),
                        None => reads = None,
                    }
                }
                transactions.extend((!transaction.effects.is_empty()).then_some(transaction));
                after.finish(seq, time, EntryId::default(), session);
                Arc::new(after)
            }));
        }
        if transactions.is_empty() {
            // That nothing is to be done may depend on what others have changed.
            return log.refresh();
        }
        let id = EntryId(self.setting.env().entropy.id()?);
        let append = || {
            let payload = TransactionRecord::encode(&transactions)?.into();
            let effects = transactions.iter().flat_map(|transaction: &TransactionRecord| &transaction.effects);
            let features = effects.fold(0, |features, effect| features | effect.features());
            let durable = if self.syncer.is_some() { Durable::AfterSync } else { Durable::Now };
            let entry = Entry { seq, id, prev: Some(before.entry), session, time, features, payload };
            match &reads {
                Some(reads) => log.append_among(&entry, durable, &OfferTerms { reads, written: &tables_written }),
                None => log.append(&entry, durable),
            }
        };
        let large = transactions.iter().map(TransactionRecord::nodes).sum::<usize>() >= LARGE;
        let pool = &self.setting.env().pool;
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
        match appended {
            Appended::Done => {}
            Appended::Behind(news) => return Ok(Some(news)),
            Appended::Among(seq, news) => {
                let after = self.take_in_own(news, (seq, id))?;
                self.count_commit(transactions.len() as u64, true);
                self.setting.env().metrics.handed_in.add(1);
                answers.iter_mut().flatten().for_each(|answer| *answer = after.clone());
                return Ok(None);
            }
        }
        working.finish(seq, time, id, session);
        // There is room: that was checked before.
        let bytes = working.settle().map_err(|e| self.not_in_memory((seq, id), e))?;
        self.newest.add_memtable_bytes(bytes);
        self.count_commit(transactions.len() as u64, log.is_shared());
        let after = Arc::new(working);
        self.newest.publish(&before, after.clone());
        self.feeds.publish(|| CommitRecord { before: before.clone(), after, transactions });
        if large {
            // Freeing many nodes takes time; no caller should wait for it.
            pool.spawn(move || drop(before));
        }
        Ok(None)
    }

    /// A commit is in the log, but cannot be applied.
    fn not_in_memory(&self, (seq, id): (Seq, EntryId), e: Error) -> Error {
        self.log.poison();
        let what = format!("commit {seq} (transaction {:032x})", id.0);
        Error::in_doubt(format!("{what} is in the log, but not in memory; open the store again")).with_source(e)
    }

    /// Brings the state up to what others have committed. In the turn.
    fn take_in(&self, news: News) -> Result<()> {
        self.take_in_until(news, None).map(drop)
    }

    /// Brings the state up to what others have committed, and, with one of their commits, this process. Returns the state after its own, or,
    /// if that is not in the log any more, after all, with its own number.
    fn take_in_own(&self, news: News, own: (Seq, EntryId)) -> Result<Arc<State>> {
        let after = self.take_in_until(news, Some(own.1)).map_err(|e| self.not_in_memory(own, e))?;
        Ok(after.unwrap_or_else(|| {
            let mut all = State::clone(&self.newest.state());
            all.seq = own.0;
            Arc::new(all)
        }))
    }

    /// Returns the state after the entry `own`, if it is one of those that were taken in one by one.
    fn take_in_until(&self, news: News, own: Option<EntryId>) -> Result<Option<Arc<State>>> {
        let current = self.newest.state();
        let unproven = matches!(news, News::Unproven(_));
        let mut after = None;
        let done = self.follow(&current, news, &mut |state| {
            if own == Some(state.entry) {
                after = Some(Arc::new(state.clone()));
            }
        });
        match &done {
            Err(e) if e.is_other_history() => {
                self.log.poison();
                self.setting.storage().seal(e.message());
            }
            // As one that has just opened the store: what it has prepared and its blocks may be of another history.
            Ok(()) if unproven => {
                self.session.forget();
                self.newest.doubt_older();
            }
            _ => {}
        }
        // So that the log returns again what could not be taken in, and not what a replay has found beyond it.
        self.log.knows(self.newest.state().seq);
        done.map(|()| after)
    }

    fn follow(&self, current: &Arc<State>, news: News, each: &mut dyn FnMut(&State)) -> Result<()> {
        let mut failed = None;
        // The records for feeds, so that they need not read the log for them.
        let (told, mut records) = (self.feeds.any(), Vec::<CommitRecord>::new());
        let mut next = match news {
            News::Entries(entries) => {
                let mut next = State::clone(&**current);
                // Some of them may have been taken in already.
                for entry in entries.iter().filter(|entry| entry.seq > current.seq) {
                    let mut step = next.clone();
                    let applied = recover::apply_entry(&mut step, entry);
                    match applied.and_then(|transactions| Ok((transactions, step.settle()?))) {
                        Ok((transactions, bytes)) => {
                            self.newest.add_memtable_bytes(bytes);
                            each(&step);
                            if told {
                                let before = records.last().map_or(current, |record| &record.after).clone();
                                records.push(CommitRecord { before, after: Arc::new(step.clone()), transactions });
                            }
                        }
                        Err(e) => {
                            // The entries before it have been taken in, with their rows, and must not be taken in
                            // again.
                            failed = Some(e);
                            break;
                        }
                    }
                    next = step;
                }
                next
            }
            News::All(opened) | News::Unproven(opened) => {
                let replayed = recover::replay(&**self.setting.storage(), &opened)
                    .or_else(|_| retry_while_moving(|| recover::replay(&**self.setting.storage(), &self.log.read()?)));
                let (mut next, _) = replayed?;
                next.take_functions(current);
                current.leave_parts();
                self.newest.count_memtable_bytes(&next);
                next
            }
        };
        if next.seq > current.seq {
            if !planted(Bug::ForgetOthersInProjections) {
                next.catch_up(None);
            }
            self.newest.hold_inline(current, &next);
            next.forget_moves(self.newest.pins().oldest());
            self.newest.publish(current, Arc::new(next));
            self.newest.forget_inline();
            for record in records {
                self.feeds.publish(|| record);
            }
            self.feeds.wake();
        }
        failed.map_or(Ok(()), Err)
    }
}
