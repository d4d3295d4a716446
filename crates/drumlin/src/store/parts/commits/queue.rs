//! The queue of commits: one turn at a time, in which one thread commits all waiting proposals.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::proposal::Proposal;
use crate::base::waiting::{Exclusive, ExclusiveGuard};
use crate::base::{Error, Result, waiting};
use crate::catalog::State;

/// A commit's answer: the state right after this very transaction, before retention removed anything.
pub(in crate::store) type Answer = Result<Arc<State>>;

enum SlotState {
    Waiting,
    /// To commit all that wait.
    Leading,
    Answered(Answer),
}

struct AnswerSlot {
    state: Mutex<SlotState>,
    changed: Condvar,
}

impl AnswerSlot {
    fn set(&self, state: SlotState) {
        *self.state.lock() = state;
        self.changed.notify_one();
    }

    /// Waits until it is to lead or has its answer.
    fn wait(&self) -> Result<Option<Answer>> {
        let mut state = self.state.lock();
        waiting::wait_while(&self.changed, &mut state, |state| matches!(state, SlotState::Waiting))?;
        Ok(match std::mem::replace(&mut *state, SlotState::Waiting) {
            SlotState::Answered(answer) => Some(answer),
            SlotState::Waiting | SlotState::Leading => None,
        })
    }
}

/// A proposal in the queue.
pub(in crate::store) struct Waiting {
    pub proposal: Proposal,
    slot: Arc<AnswerSlot>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Waiting>,
    /// Whether a thread leads.
    led: bool,
}

/// The waiting proposals, and the turn.
pub(in crate::store) struct Committer {
    queue: Mutex<Queue>,
    turn: Exclusive<()>,
}

impl Default for Committer {
    fn default() -> Self {
        Self { queue: Mutex::default(), turn: Exclusive::new("a commit", ()) }
    }
}

impl Committer {
    /// Waits for the turn.
    pub fn turn(&self) -> Result<ExclusiveGuard<'_, ()>> {
        self.turn.lock()
    }

    /// Waits until another thread has committed the proposal, or is to commit all that wait: then it calls `lead`, which has
    /// some thread call [`Committer::carry`].
    ///
    /// A call that is to stop takes its proposal back if nobody has begun with it; otherwise it leaves without an answer.
    pub fn enter(&self, proposal: Proposal, lead: impl FnOnce()) -> Answer {
        self.turn.check()?;
        let slot = Arc::new(AnswerSlot { state: Mutex::new(SlotState::Waiting), changed: Condvar::new() });
        let waits = {
            let mut queue = self.queue.lock();
            queue.waiting.push(Waiting { proposal, slot: slot.clone() });
            std::mem::replace(&mut queue.led, true)
        };
        let left = |stopped| self.leave(&slot).unwrap_or(Err(stopped));
        if waits {
            match slot.wait() {
                Ok(None) => {}
                Ok(Some(answer)) => return answer,
                Err(stopped) => return left(stopped),
            }
        }
        lead();
        match slot.wait() {
            Ok(answer) => answer.unwrap_or_else(|| Err(Error::closed("the commit ended without an answer"))),
            Err(stopped) => left(stopped),
        }
    }

    /// The proposal of a call that is to stop is taken back: `None`. If that is too late, its answer.
    fn leave(&self, slot: &Arc<AnswerSlot>) -> Option<Answer> {
        let mut queue = self.queue.lock();
        let mut state = slot.state.lock();
        if let SlotState::Answered(_) = &*state
            && let SlotState::Answered(answer) = std::mem::replace(&mut *state, SlotState::Waiting)
        {
            return Some(answer);
        }
        let Some(at) = queue.waiting.iter().position(|waiting| Arc::ptr_eq(&waiting.slot, slot)) else {
            return Some(Err(Error::in_doubt(
                "the call was stopped during its commit; it is not known whether the commit was made",
            )));
        };
        let leads = matches!(*state, SlotState::Leading);
        drop(state);
        queue.waiting.remove(at);
        if leads {
            queue.pass_on();
        }
        None
    }

    /// Commits all that wait by `carry`, in the turn, whatever becomes of the call that leads: it returns an answer for each,
    /// in order.
    pub fn carry(&self, carry: impl FnOnce(&mut [Waiting]) -> Vec<Answer>) {
        let _leader = Leader(self);
        let _turn = self.turn.lock_in_any_case();
        let mut batch = std::mem::take(&mut self.queue.lock().waiting);
        let slots = Carried(batch.iter().map(|waiting| waiting.slot.clone()).collect());
        if batch.is_empty() {
            return;
        }
        for (slot, answer) in slots.0.iter().zip(carry(&mut batch)) {
            slot.set(SlotState::Answered(answer));
        }
    }
}

impl Queue {
    /// The next one leads, if there is one.
    fn pass_on(&mut self) {
        match self.waiting.first() {
            Some(next) => next.slot.set(SlotState::Leading),
            None => self.led = false,
        }
    }
}

/// The thread that commits all that wait. When this is dropped, even by a panic, the next one leads.
struct Leader<'a>(&'a Committer);

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        self.0.queue.lock().pass_on();
    }
}

/// The slots of a batch, which get an answer whatever happens to the thread that commits them.
struct Carried(Vec<Arc<AnswerSlot>>);

impl Drop for Carried {
    fn drop(&mut self) {
        for slot in &self.0 {
            // An answered one has taken its answer and no longer waits, or still finds it here.
            if matches!(*slot.state.lock(), SlotState::Waiting) {
                slot.set(SlotState::Answered(Err(Error::in_doubt(
                    "the commit failed unexpectedly; open the store again",
                ))));
            }
        }
    }
}
