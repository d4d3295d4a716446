//! The queue of commits: one turn at a time, and one thread that carries all proposals that wait for it.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::proposal::Proposal;
use crate::base::{Error, Result};
use crate::catalog::State;

/// A commit's answer: the state right after this very transaction, before retention took anything off.
pub(super) type Answer = Result<Arc<State>>;

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

/// A proposal in the queue.
pub(super) struct Waiting {
    pub proposal: Proposal,
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
    pub registration: Mutex<()>,
}

impl Committer {
    /// Waits for the turn.
    pub fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock()
    }

    /// Waits until another thread has carried the proposal along, or carries all that wait by `carry`, in the turn: an answer for
    /// each, in order.
    pub fn enter(&self, proposal: Proposal, carry: impl FnOnce(&mut [Waiting]) -> Vec<Answer>) -> Answer {
        let slot = Arc::new(Slot { place: Mutex::new(Place::Waiting), changed: Condvar::new() });
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
                slot.set(Place::Answered(answer));
            }
        }
        slot.wait().unwrap_or_else(|| Err(Error::closed("the committer gave no answer")))
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
