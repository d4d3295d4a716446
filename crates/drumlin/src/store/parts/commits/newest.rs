//! The newest state, and what is held in memory with it: pins of the states that are read, the blocks that came with commits, the
//! rows written by key.
//!
//! Only the thread that has the turn puts another state in its place.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

use super::pins::{Pin, Pins};
use crate::base::Seq;
use crate::catalog::State;
use crate::storage::{InlineStorage, names};

/// See the module.
pub(in crate::store) struct Newest {
    state: RwLock<Arc<State>>,
    storage: Arc<InlineStorage>,
    pins: Arc<Pins>,
    /// About how many bytes the rows in memory that wait for a checkpoint take.
    memtable_bytes: AtomicU64,
    /// States before this commit may be of another history.
    proven_from: AtomicU64,
}

impl Newest {
    /// `state` was read when the store was opened: nobody reads an older one.
    pub fn new(mut state: State, storage: Arc<InlineStorage>) -> Self {
        state.forget_moves(None);
        let memtable_bytes = AtomicU64::new(state.memtable_bytes());
        let newest = Self {
            state: RwLock::new(Arc::new(State::default())),
            storage,
            pins: Arc::default(),
            memtable_bytes,
            proven_from: AtomicU64::new(0),
        };
        newest.hold_inline(&State::default(), &state);
        newest.publish(&State::default(), Arc::new(state));
        newest
    }

    /// O(1).
    pub fn state(&self) -> Arc<State> {
        self.state.read().clone()
    }

    /// How many of its tables are decoded.
    pub fn open_tables(&self) -> usize {
        self.state.read().open_tables_len()
    }

    /// The newest state, whose blocks stay on storage while the pin lives.
    pub fn pinned(&self) -> (Arc<State>, Arc<Pin>) {
        self.pins.take(|| self.state())
    }

    pub fn pins(&self) -> &Arc<Pins> {
        &self.pins
    }

    /// Puts the blocks that came with commits of others, or of earlier runs, where they are read; called before `next` takes the
    /// place of `before` as the newest state. O(blocks that came).
    pub fn hold_inline(&self, before: &State, next: &State) {
        for (block, content) in next.ledger.inline_since(&before.ledger) {
            self.storage.hold(&names::block(block), content.0.clone());
        }
    }

    /// Makes `next` the newest state, in the place of `before`.
    pub fn publish(&self, before: &State, next: Arc<State>) {
        *self.state.write() = next.clone();
        let released = before.ledger.inline_since(&next.ledger).into_iter().map(|(block, _)| names::block(block));
        self.storage.published(next.seq, released);
    }

    /// Puts in the place of the newest state one that shows the same commits: what it keeps beside them differs. Returns the old one,
    /// which may take long to free.
    pub fn replace(&self, next: Arc<State>) -> Arc<State> {
        std::mem::replace(&mut *self.state.write(), next)
    }

    /// Forgets blocks that came with commits and that neither the newest state needs nor one that is being read.
    pub fn forget_inline(&self) {
        self.storage.forget_released(|after, before| self.pins.any_between(after, before));
    }

    pub fn memtable_bytes(&self) -> u64 {
        self.memtable_bytes.load(Ordering::Relaxed)
    }

    /// A commit has written rows by key.
    pub fn add_memtable_bytes(&self, bytes: u64) {
        self.memtable_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts them again, after rows went to storage or the state was replaced by what the log holds.
    pub fn count_memtable_bytes(&self, state: &State) {
        self.memtable_bytes.store(state.memtable_bytes(), Ordering::Relaxed);
    }

    /// What was prepared before the newest state may be of another history.
    pub fn doubt_older(&self) {
        self.proven_from.store(self.state.read().seq.0, Ordering::SeqCst);
    }

    /// Whether a state is known to be part of the history that the log holds now.
    pub fn is_proven(&self, seq: Seq) -> bool {
        seq.0 >= self.proven_from.load(Ordering::SeqCst)
    }
}
