//! Where operations are done: directly in a store, each in a commit of its own, or in a transaction. The methods of
//! [`crate::store::Tree`] and [`crate::store::Table`] are declared once for both.
//!
//! An operation reads through `Place::read` (or `Place::look`, without I/O) and changes nodes through
//! `Place::change`. Changes of tables go through `Transaction::change_tables`, or are one commit of the store.

use std::sync::Arc;

use crate::base::{Error, Result};
use crate::catalog::{Draft, Read, State};
use crate::store::parts::Pin;
use crate::store::{Store, Transaction};

/// Where an operation is done.
#[derive(Clone, Debug)]
pub enum Place {
    /// In the store: each in a commit of its own.
    Store(Store),
    /// In a transaction, whose commit makes it part of the store.
    Transaction(Transaction),
}

impl Place {
    pub(in crate::store) fn store(&self) -> &Store {
        match self {
            Place::Store(store) => store,
            Place::Transaction(transaction) => transaction.store(),
        }
    }

    /// The store, for what cannot be done in a transaction.
    pub(in crate::store) fn in_store(&self, what: &str) -> Result<&Store> {
        match self {
            Place::Store(store) => Ok(store),
            Place::Transaction(_) => {
                Err(Error::invalid(format!("{what} is not possible in a transaction; use the store instead")))
            }
        }
    }

    /// Looks at the current state here. A transaction records what was read.
    pub(in crate::store) fn look<T>(
        &self,
        read: impl FnOnce() -> Read,
        look: impl FnOnce(&State) -> Result<T>,
    ) -> Result<T> {
        match self {
            Place::Store(store) => look(&*store.state()?),
            Place::Transaction(transaction) => transaction.look(read, look),
        }
    }

    /// The current state here, which does not change: to be walked while others, even the caller, change later states.
    pub(in crate::store) fn state(&self, read: Read) -> Result<Arc<State>> {
        match self {
            Place::Store(store) => store.state(),
            Place::Transaction(transaction) => transaction.state(read),
        }
    }

    /// Reads tables, with I/O, in the current state here; in a store, again if another process has reclaimed what the state
    /// refers to. `reads` is what a transaction records.
    pub(in crate::store) fn read<T>(
        &self,
        reads: impl Fn(&State) -> Result<Vec<Read>>,
        mut read: impl FnMut(&State, &Arc<Pin>) -> Result<T>,
    ) -> Result<T> {
        match self {
            Place::Store(store) => store.while_reclaimed(|| {
                let (state, pin) = store.pinned_with_views(&reads)?;
                read(&state, &pin)
            }),
            Place::Transaction(transaction) => {
                let (state, pin) = transaction.read_tables(reads)?;
                read(&state, &pin)
            }
        }
    }

    /// Changes nodes, quickly; in a store, in the turn of a commit. A transaction records what was read.
    pub(in crate::store) fn change<T: Send + 'static>(
        &self,
        reads: impl FnOnce() -> Vec<Read>,
        change: impl FnMut(&mut Draft) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        match self {
            Place::Store(store) => store.commit_in_turn(change),
            Place::Transaction(transaction) => transaction.change(reads, change),
        }
    }

    /// Changes many nodes: before the turn of the commit, so that no others wait, and again if the commit is a
    /// conflict.
    pub(in crate::store) fn change_many<T>(
        &self,
        read: Option<Read>,
        change: impl Fn(&mut Draft) -> Result<T>,
    ) -> Result<T> {
        let within = |transaction: &Transaction| transaction.change_many(read.clone(), &change);
        match self {
            Place::Store(store) => store.transact(within),
            Place::Transaction(transaction) => within(transaction),
        }
    }

    /// Whether an operation on a node may have to wait: for a commit, for what others have committed, or for another thread
    /// that uses the transaction.
    pub(in crate::store) fn may_wait(&self, writes: bool) -> bool {
        match self {
            Place::Store(store) => writes || store.options().fresh,
            Place::Transaction(transaction) => transaction.is_locked(),
        }
    }
}
