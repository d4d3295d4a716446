//! Where operations are done: straight in a store, each a commit of its own, or in a transaction. What is declared on a
//! [`super::Tree`] or a [`super::Table`] is declared once for both.

use std::sync::Arc;

use super::pins::Pin;
use super::{Store, Transaction};
use crate::base::Result;
use crate::catalog::{Draft, Read, State};

/// Where an operation is done.
#[derive(Clone, Debug)]
pub enum Place {
    /// In the store: a commit of its own.
    Store(Store),
    /// In a transaction, with whose commit it becomes part of the store.
    Transaction(Transaction),
}

impl Place {
    pub(super) fn store(&self) -> &Store {
        match self {
            Place::Store(store) => store,
            Place::Transaction(transaction) => transaction.store(),
        }
    }

    /// Looks at the state as it is here. A transaction notes what was read.
    pub(super) fn look<T>(&self, read: impl FnOnce() -> Read, look: impl FnOnce(&State) -> Result<T>) -> Result<T> {
        match self {
            Place::Store(store) => look(&*store.state()?),
            Place::Transaction(transaction) => transaction.look(read, look),
        }
    }

    /// The state as it is here, which stays as it is: to be gone over while others, even the caller, change what follows.
    pub(super) fn state(&self, read: Read) -> Result<Arc<State>> {
        match self {
            Place::Store(store) => store.state(),
            Place::Transaction(transaction) => transaction.state(read),
        }
    }

    /// Reads tables, with I/O, in the state as it is here; in a store again where another process has reclaimed what the state
    /// refers to. `reads` is what a transaction notes.
    pub(super) fn read<T>(
        &self,
        reads: impl Fn(&State) -> Result<Vec<Read>>,
        mut read: impl FnMut(&State, &Arc<Pin>) -> Result<T>,
    ) -> Result<T> {
        match self {
            Place::Store(store) => store.while_reclaimed(|| {
                let (state, pin) = store.pinned_state()?;
                read(&state, &pin)
            }),
            Place::Transaction(transaction) => {
                let (state, pin) = transaction.read_tables(reads)?;
                read(&state, &pin)
            }
        }
    }

    /// Changes nodes: quickly, in the store in the turn of a commit. A transaction notes what was read.
    pub(super) fn change<T: Send + 'static>(
        &self,
        reads: impl FnOnce() -> Vec<Read>,
        change: impl FnMut(&mut Draft) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        match self {
            Place::Store(store) => store.commit_in_turn(change),
            Place::Transaction(transaction) => transaction.change(reads, change),
        }
    }

    /// Changes many nodes: before the turn of the commit, which holds up nobody, and again if that was in vain.
    pub(super) fn change_many<T>(&self, read: Option<Read>, change: impl Fn(&mut Draft) -> Result<T>) -> Result<T> {
        let within = |transaction: &Transaction| transaction.change_many(read.clone(), &change);
        match self {
            Place::Store(store) => store.transact(within),
            Place::Transaction(transaction) => within(transaction),
        }
    }

    /// Whether an operation on a node may have to wait: for a commit, for what others have committed, or for another thread
    /// that uses the transaction.
    pub(super) fn may_wait(&self, writes: bool) -> bool {
        match self {
            Place::Store(store) => writes || store.options().fresh,
            Place::Transaction(transaction) => transaction.is_locked(),
        }
    }
}
