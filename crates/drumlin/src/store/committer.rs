//! The queue of commits: one turn at a time, in which one thread commits all waiting proposals.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::proposal::Proposal;
use crate::base::{Error, Result};
use crate::catalog::State;

/// A commit's answer: the state right after this very transaction, before retention removed anything.
pub(super) type Answer = Result<Arc<State>>;

enum SlotState {
    Waiting,
    /// To commit all that wait.
    Leading,
    Answered(Answer),
}

struct Slot {
    state: Mutex<SlotState>,
    changed: Condvar,
}

impl Slot {
    fn set(&self, state: SlotState) {
        *self.state.lock() = state;
        self.changed.notify_one();
    }

    /// Waits until it is to lead or has its answer.
    fn wait(&self) -> Option<Answer> {
        let mut state = self.state.lock();
        loop {
            match std::mem::replace(&mut *state, SlotState::Waiting) {
                SlotState::Waiting => self.changed.wait(&mut state),
                SlotState::Leading => return None,
                SlotState::Answered(answer) => return Some(answer),
            }
        }
    }
}

/// A proposal in the queue.
pub(super) struct Waiting {
    pub proposal: Proposal,
    slot: Arc<Slot>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Waiting>,
    /// Whether a thread leads.
    led: bool,
}

/// The waiting proposals, and the turn.
#[derive(Default)]
pub(super) struct Committer {
    queue: Mutex<Queue>,
    turn: Mutex<()>,
    /// Held while the session is being registered.
    pub registration: Mutex<()>,
}

impl Committer {
    /// Waits for the turn.
    pub fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock()
    }

    /// Waits until another thread has committed the proposal, or commits all that wait by `carry`, in the turn: it returns
    /// an answer for each, in order.
    pub fn enter(&self, proposal: Proposal, carry: impl FnOnce(&mut [Waiting]) -> Vec<Answer>) -> Answer {
        let slot = Arc::new(Slot { state: Mutex::new(SlotState::Waiting), changed: Condvar::new() });
        let waits = {
            let mut queue = self.queue.lock();
            queue.waiting.push(Waiting { proposal, slot: slot.clone() });
            std::mem::replace(&mut queue.led, true)
        };
        if waits && let Some(answer) = slot.wait() {
            return answer;
        }
        {
            let _leader = Leader(self);
            let _turn = self.turn();
            let mut batch = std::mem::take(&mut self.queue.lock().waiting);
            let slots = Carried(batch.iter().map(|waiting| waiting.slot.clone()).collect());
            for (slot, answer) in slots.0.iter().zip(carry(&mut batch)) {
                slot.set(SlotState::Answered(answer));
            }
        }
        slot.wait().unwrap_or_else(|| Err(Error::closed("the commit got no answer")))
    }
}

/// The thread that commits all that wait. When this is dropped, even by a panic, the next one leads.
struct Leader<'a>(&'a Committer);

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        match queue.waiting.first() {
            Some(next) => next.slot.set(SlotState::Leading),
            None => queue.led = false,
        }
    }
}

/// The slots of a batch, which get an answer whatever happens to the thread that commits them.
struct Carried(Vec<Arc<Slot>>);

impl Drop for Carried {
    fn drop(&mut self) {
        for slot in &self.0 {
            // An answered one has taken its answer and no longer waits, or still finds it here.
            if matches!(*slot.state.lock(), SlotState::Waiting) {
                slot.set(SlotState::Answered(Err(Error::in_doubt("the commit panicked; open the store again"))));
            }
        }
    }
}
