//! Transactions: any number of operations on nodes and tables, on a snapshot, that happen together or not at all.
//!
//! The handles of a transaction share it behind one lock, which is held for quick operations. What may run code of the
//! caller's (a frame that rows are drawn from, a function of a projection) takes the transaction out of its place, and
//! other calls are refused in between.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::base::{Error, ErrorKind, Result, Seq, TableId, Timestamp, caught};
use crate::block::BlockWriter;
use crate::catalog::{Draft, Effect, Footprint, Read, State};
use crate::memtable::Keys;
use crate::store::Store;
use crate::store::commit::blocks::may_be_there;
use crate::store::commit::call::Attempts;
use crate::store::parts::{Answer, Pin, Proposal, Work};
use crate::store::write::numbers::{Numbering, OwnNumbers};

/// A transaction. It sees the state that it began with and its own writes, which nothing else sees before
/// [`Transaction::commit`]. If the last handle on it is dropped without that, it leaves nothing.
///
/// Operations in it are those of [`crate::store::Tables`], as in a store. Threads may share it, but while one changes tables, or
/// many nodes, calls of the others are refused.
#[derive(Clone)]
pub struct Transaction {
    shared: Arc<TransactionState>,
}

struct TransactionState {
    store: Store,
    /// The commit that it began with.
    seq: Seq,
    read_only: bool,
    /// Those before it, of [`Store::transact`] and [`Transaction::commit_or_again`].
    attempts: Attempts,
    /// How many changes of tables have been begun.
    table_changes: AtomicU64,
    status: Mutex<Status>,
}

enum Status {
    Open(Box<OpenTransaction>),
    /// Held by a call that may run any code, even code that uses the transaction: so it does not hold the lock.
    Busy,
    Committed,
    Aborted,
}

/// What an open transaction holds.
pub(in crate::store) struct OpenTransaction {
    base: Arc<State>,
    /// When it began.
    began: Timestamp,
    pub pin: Arc<Pin>,
    pub draft: Draft,
    reads: Footprint,
    pub(in crate::store) writers: Vec<BlockWriter>,
    numbers: Arc<OwnNumbers>,
    /// Whether it may change the rows of views.
    pub of_views: bool,
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("seq", &self.shared.seq).finish_non_exhaustive()
    }
}

impl Store {
    /// Begins a transaction. No others wait for it; its commit fails with `Conflict` if others have changed what it has read
    /// or written.
    ///
    /// # Errors
    /// Those of [`Store::refresh`], in a store that others write too.
    pub fn transaction(&self) -> Result<Transaction> {
        self.call()?;
        self.begin(false, Attempts::default())
    }

    fn begin(&self, read_only: bool, attempts: Attempts) -> Result<Transaction> {
        let (base, pin) = self.pinned_state()?;
        let time = base.time.max(self.commits().times().now(base.time));
        // Rows that expire are seen as at one instant, those of tables that it makes, too.
        let instant = if base.may_expire_rows() { self.instant(&base) } else { time };
        let seen = State::clone(&base).seen_at(instant);
        let draft = Draft::new(seen, base.seq.next(), time);
        let seq = base.seq;
        let (reads, writers, numbers) = (Footprint::default(), Vec::new(), Arc::default());
        let open = OpenTransaction { base, began: time, pin, draft, reads, writers, numbers, of_views: false };
        let status = Mutex::new(Status::Open(Box::new(open)));
        let table_changes = AtomicU64::new(0);
        let shared = TransactionState { store: self.clone(), seq, read_only, attempts, table_changes, status };
        Ok(Transaction { shared: Arc::new(shared) })
    }

    /// Runs `work` in a transaction and commits it; runs it again if others have changed what it has read or written. An
    /// error of `work` leaves nothing, and is returned.
    ///
    /// ```
    /// # use drumlin::Tables;
    /// # use drumlin::Payload;
    /// # let store = drumlin::Store::memory()?;
    /// store.tree().put("stock", Payload::from(3))?;
    /// let left = store.transact(|tx| -> drumlin::Result<i64> {
    ///     let stock = tx.tree().get("stock")?.and_then(|payload| payload.to_json()?.as_i64()).unwrap_or(0);
    ///     tx.tree().put("stock", Payload::from(stock - 1))?;
    ///     Ok(stock - 1)
    /// })?;
    /// assert_eq!((left, store.tree().get("stock")?), (2, Some(Payload::from(2))));
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `work`; `Conflict` only after 1,000 attempts.
    pub fn transact<T, E: From<Error>>(&self, mut work: impl FnMut(&Transaction) -> Result<T, E>) -> Result<T, E> {
        self.transact_to(&mut work).map(|(value, _)| value)
    }

    /// The same; also returns the state after.
    pub(in crate::store) fn transact_to<T, E: From<Error>>(
        &self,
        work: &mut impl FnMut(&Transaction) -> Result<T, E>,
    ) -> Result<(T, Arc<State>), E> {
        let mut transaction = self.transaction()?;
        loop {
            let value = work(&transaction)?;
            match transaction.commit_to_or_again()? {
                Ok(after) => return Ok((value, after)),
                Err(again) => transaction = again,
            }
        }
    }
}

impl Drop for TransactionState {
    fn drop(&mut self) {
        if self.store.setting().process() != std::process::id() {
            // In a forked process, what it wrote belongs to the parent, which may still commit it.
            std::mem::forget(std::mem::replace(self.status.get_mut(), Status::Aborted));
        }
    }
}

/// The error of a change that needs rows in row groups which its own transaction has written by key.
pub(in crate::store) fn run_again() -> Error {
    Error::conflict(
        "rows written by key had to become row groups first; commit those that the transaction wrote itself, and run \
         it again",
    )
}

fn unusable(status: &Status) -> Error {
    Error::invalid(match status {
        Status::Busy => "the transaction is in use by another call",
        _ => "the transaction has ended",
    })
}

impl Transaction {
    /// Begins one that only reads, on a snapshot of the store that does not change.
    ///
    /// # Errors
    /// `Closed`.
    pub fn read_only(store: &Store) -> Result<Self> {
        store.begin(true, Attempts::default())
    }

    /// The commit that it began with.
    pub fn seq(&self) -> Seq {
        self.shared.seq
    }

    /// Whether it was committed or aborted.
    pub fn has_ended(&self) -> bool {
        matches!(*self.shared.status.lock(), Status::Committed | Status::Aborted)
    }

    /// Whether what it wrote has been discarded.
    pub fn is_aborted(&self) -> bool {
        matches!(*self.shared.status.lock(), Status::Aborted)
    }

    /// How many changes of tables have been begun in it.
    pub fn table_changes(&self) -> u64 {
        self.shared.table_changes.load(Ordering::Relaxed)
    }

    /// Commits. Returns the commit's number; that of the newest one seen if there was nothing to commit.
    ///
    /// # Errors
    /// `Conflict` if others have changed what it has read or written, `InvalidArgument` if it has ended or is in use; then
    /// nothing was done. `InDoubt` if it cannot be known.
    pub fn commit(&self) -> Result<Seq> {
        Ok(self.commit_to()?.seq)
    }

    /// The same; returns the state after.
    pub(in crate::store) fn commit_to(&self) -> Answer {
        let store = &self.shared.store;
        store.setting().check()?;
        let open = self.take(Status::Committed)?;
        let committed = caught(|| open.commit(store));
        if committed.is_err() {
            *self.shared.status.lock() = Status::Aborted;
        }
        committed
    }

    /// Commits, as [`Store::transact`] does, for callers who cannot hand over what they do as a function: where others have changed what it has
    /// read or written, nothing is done, and another one is begun on the state that they left, and returned. All that was done in this one is to be
    /// done in that one again.
    ///
    /// # Errors
    /// As [`Transaction::commit`]; `Conflict` only from the 1,000th in a row.
    pub fn commit_or_again(&self) -> Result<Option<Transaction>> {
        Ok(self.commit_to_or_again()?.err())
    }

    /// The same; the inner result is the state after, or the next attempt.
    fn commit_to_or_again(&self) -> Result<Result<Arc<State>, Transaction>> {
        let (mut attempts, answer) = (self.shared.attempts, self.commit_to());
        if !attempts.go_on_after(&answer) {
            return answer.map(Ok);
        }
        let store = self.shared.store.call()?.store;
        store.begin(false, attempts).map(Err)
    }

    /// Ends it without a commit, if it has not ended.
    pub fn abort(&self) {
        let mut status = self.shared.status.lock();
        if !matches!(*status, Status::Committed) {
            let ended = std::mem::replace(&mut *status, Status::Aborted);
            drop(status);
            drop(ended);
        }
    }

    pub(in crate::store) fn store(&self) -> &Store {
        &self.shared.store
    }

    /// Whether another thread is using it.
    pub(in crate::store) fn is_locked(&self) -> bool {
        self.shared.status.is_locked()
    }

    /// Takes the open transaction out, and leaves `instead`.
    fn take(&self, instead: Status) -> Result<Box<OpenTransaction>> {
        let mut status = self.shared.status.lock();
        match std::mem::replace(&mut *status, instead) {
            Status::Open(open) => Ok(open),
            other => {
                let error = unusable(&other);
                *status = other;
                Err(error)
            }
        }
    }

    /// Runs something quick that calls no code of the user's. A transaction that a panic left half changed is never
    /// committed.
    fn with<T>(&self, call: impl FnOnce(&mut OpenTransaction) -> Result<T>) -> Result<T> {
        self.shared.store.setting().check_open()?;
        let mut status = self.shared.status.lock();
        let Status::Open(open) = &mut *status else { return Err(unusable(&status)) };
        let done = caught(|| call(open));
        if matches!(&done, Err(e) if e.kind() == ErrorKind::Internal) {
            // Dropping it may delete blocks; no other thread should wait for that.
            let ended = std::mem::replace(&mut *status, Status::Aborted);
            drop(status);
            drop(ended);
        }
        done
    }

    fn check_writable(&self) -> Result<()> {
        if self.shared.read_only {
            return Err(Error::invalid("the transaction was begun for reading only; begin one for writing"));
        }
        Ok(())
    }

    fn note(&self, open: &mut OpenTransaction, reads: impl IntoIterator<Item = Read>) {
        if !self.shared.read_only {
            open.reads.reads.extend(reads);
        }
    }

    /// Looks at its state, and records what was read.
    pub(in crate::store) fn look<T>(
        &self,
        read: impl FnOnce() -> Read,
        look: impl FnOnce(&State) -> Result<T>,
    ) -> Result<T> {
        self.with(|open| {
            if !self.shared.read_only {
                open.reads.reads.push(read());
            }
            look(open.draft.state())
        })
    }

    /// Its state, which does not change, for walks over nodes.
    pub(in crate::store) fn state(&self, read: Read) -> Result<Arc<State>> {
        self.shared.store.setting().check()?;
        self.look(|| read, |state| Ok(Arc::new(state.clone())))
    }

    /// Its state, for reading tables; records the reads of those that others may change.
    pub(in crate::store) fn read_tables(
        &self,
        reads: impl FnOnce(&State) -> Result<Vec<Read>>,
    ) -> Result<(Arc<State>, Arc<Pin>)> {
        self.shared.store.setting().check()?;
        self.with(|open| {
            let reads = open.of_others(reads(open.draft.state())?);
            self.note(open, reads);
            Ok((Arc::new(open.draft.state().clone()), open.pin.clone()))
        })
    }

    /// Records that keys of a table are looked up.
    pub(in crate::store) fn note_keys(&self, table: TableId, keys: &Keys) -> Result<()> {
        self.note_reads(vec![Read::Keys(table, Arc::new(keys.clone()))])
    }

    /// Records when the first row of a table expires that was looked up as it is seen at `instant`; nothing if that is not the instant of
    /// the transaction.
    pub(in crate::store) fn note_expiry(
        &self,
        table: TableId,
        instant: Option<Timestamp>,
        until: Timestamp,
    ) -> Result<()> {
        match self.with(|open| Ok(open.draft.state().instant()))? == instant {
            true => self.note_reads(vec![Read::Until(table, until)]),
            false => Ok(()),
        }
    }

    /// Records reads of tables.
    fn note_reads(&self, reads: Vec<Read>) -> Result<()> {
        self.with(|open| {
            let reads = open.of_others(reads);
            self.note(open, reads);
            Ok(())
        })
    }

    /// Whether it has left a table as it was when it began, so that others can find what it shows of it.
    pub(in crate::store) fn has_left(&self, table: TableId) -> Result<bool> {
        self.with(|open| Ok(open.base.has_same_table(open.draft.state(), table)))
    }

    /// Changes nodes. If an operation was refused, that may depend on anything that it looked at.
    pub(in crate::store) fn change<T>(
        &self,
        reads: impl FnOnce() -> Vec<Read>,
        mut change: impl FnMut(&mut Draft) -> Result<T>,
    ) -> Result<T> {
        self.with(|open| {
            self.check_writable()?;
            open.reads.reads.extend(reads());
            let done = change(&mut open.draft);
            open.noted(done)
        })
    }

    /// Changes many nodes: this may take long, or call functions of the user's, so other calls find the transaction in
    /// use.
    pub(in crate::store) fn change_many<T>(
        &self,
        reads: impl IntoIterator<Item = Read>,
        change: impl FnOnce(&mut Draft) -> Result<T>,
    ) -> Result<T> {
        self.shared.store.setting().check()?;
        self.check_writable()?;
        self.alone(|open| {
            open.reads.reads.extend(reads);
            let done = open.draft.atomically(change);
            open.noted(done)
        })
    }

    /// Changes tables. Code that the call runs, such as a frame that rows are pulled from, finds the transaction in
    /// use.
    pub(in crate::store) fn change_tables<T>(
        &self,
        call: impl FnOnce(&Store, &mut OpenTransaction) -> Result<T>,
    ) -> Result<T> {
        self.shared.store.setting().check()?;
        self.check_writable()?;
        self.shared.table_changes.fetch_add(1, Ordering::Relaxed);
        self.alone(|open| {
            let done = call(&self.shared.store, open);
            open.noted(done)
        })
    }

    /// Looks at its state with its projections brought up to date, which may run functions of the user's.
    pub(in crate::store) fn project<T>(
        &self,
        reads: impl IntoIterator<Item = Read>,
        look: impl FnOnce(&State) -> Result<T>,
    ) -> Result<T> {
        self.shared.store.setting().check()?;
        self.alone(|open| {
            self.note(open, reads);
            look(open.draft.projected())
        })
    }

    fn alone<T>(&self, call: impl FnOnce(&mut OpenTransaction) -> Result<T>) -> Result<T> {
        let mut open = self.take(Status::Busy)?;
        let done = caught(|| call(&mut open));
        let panicked = matches!(&done, Err(e) if e.kind() == ErrorKind::Internal);
        let mut status = self.shared.status.lock();
        if panicked {
            *status = Status::Aborted;
        } else if let Status::Busy = *status {
            *status = Status::Open(open);
            return done;
        }
        // It was ended in between.
        drop(status);
        drop(open);
        done
    }
}

impl OpenTransaction {
    /// Does `work`, and takes back what it has done if it fails.
    pub fn atomically<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let (mark, writers) = (self.draft.mark(), self.writers.len());
        work(self).inspect_err(|_| {
            self.draft.rewind(mark);
            self.writers.truncate(writers);
        })
    }

    /// Returns the state after.
    fn commit(mut self: Box<Self>, store: &Store) -> Answer {
        self.numbers.note(&mut self.draft)?;
        if self.draft.effects().is_empty() {
            return Ok(self.base);
        }
        // The pin stays until the end.
        let Self { base, began, pin: _pin, draft, reads, writers, of_views, .. } = *self;
        let proposal = Proposal::new(base, reads, Work::Done(Box::new(draft))).since(began);
        let answer = store.commit(if of_views { proposal.of_views() } else { proposal });
        if may_be_there(&answer) {
            writers.into_iter().for_each(BlockWriter::keep);
            return answer;
        }
        if writers.iter().any(|writer| store.session_ended(&answer, writer)) {
            return Err(Error::conflict(
                "another process has ended the session that wrote its rows; run the transaction again",
            ));
        }
        answer
    }

    /// If an operation was refused, that may depend on anything that it looked at.
    pub fn noted<T>(&mut self, done: Result<T>) -> Result<T> {
        if done.is_err() {
            self.reads.reads.push(Read::All);
        }
        done
    }

    /// Where its calls take the numbers of sequences from.
    pub fn numbering(&self, store: &Store) -> Numbering {
        Numbering::new(store, Some((self.base.next_table(), self.numbers.clone())))
    }

    /// Whether a table was not created here.
    pub fn is_of_others(&self, table: TableId) -> bool {
        table < self.base.next_table()
    }

    /// Those reads that others may invalidate: not of tables that were created here.
    fn of_others(&self, reads: Vec<Read>) -> Vec<Read> {
        let own = |table: &TableId| !self.is_of_others(*table);
        let others = reads.into_iter().filter(|read| match read {
            Read::Schema(table)
            | Read::Rows(table)
            | Read::Versions(table)
            | Read::Keys(table, _)
            | Read::Until(table, _) => !own(table),
            _ => true,
        });
        others.collect()
    }

    /// Records reads of tables.
    pub fn note(&mut self, reads: Vec<Read>) {
        let reads = self.of_others(reads);
        self.reads.reads.extend(reads);
    }

    /// Applies effects on tables, whose blocks `writer` has written.
    pub fn apply(&mut self, reads: Footprint, effects: Vec<Effect>, writer: Option<BlockWriter>) -> Result<()> {
        self.draft.apply(effects)?;
        self.note(reads.reads);
        self.writers.extend(writer);
        Ok(())
    }
}
