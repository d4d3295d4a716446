//! Which states are being read, so that reclaim leaves their blocks alone.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::base::Seq;
use crate::catalog::State;

/// The states held by readers of this process.
#[derive(Default)]
pub(in crate::store) struct Pins {
    held: Mutex<PinnedStates>,
}

#[derive(Default)]
struct PinnedStates {
    /// How many readers hold a state; ascending. Usually there are few, and most readers hold the last.
    states: Vec<(Seq, u64)>,
    /// What to do when no state is held any more.
    at_end: Option<Box<dyn FnOnce() + Send>>,
}

/// Keeps the blocks of one state.
pub(in crate::store) struct Pin {
    pins: Arc<Pins>,
    seq: Seq,
}

impl Pins {
    /// Pins the state that `read` returns, in one step: no reclaim can come in between.
    pub fn take(self: &Arc<Self>, read: impl FnOnce() -> Arc<State>) -> (Arc<State>, Arc<Pin>) {
        let mut held = self.held.lock();
        let state = read();
        match held.states.binary_search_by_key(&state.seq, |(seq, _)| *seq) {
            Ok(at) => held.states[at].1 += 1,
            Err(at) => held.states.insert(at, (state.seq, 1)),
        }
        let pin = Pin { pins: self.clone(), seq: state.seq };
        (state, Arc::new(pin))
    }

    /// Does `work` once no state is held: now, or when the last reader is done.
    pub fn when_free(&self, work: impl FnOnce() + Send + 'static) {
        let mut held = self.held.lock();
        match held.states.is_empty() {
            true => {
                drop(held);
                work();
            }
            false => held.at_end = Some(Box::new(work)),
        }
    }

    /// Whether a state between these two is held.
    pub fn any_between(&self, after: Seq, before: Seq) -> bool {
        let held = self.held.lock();
        let first = held.states.partition_point(|(seq, _)| *seq <= after);
        held.states.get(first).is_some_and(|(seq, _)| *seq < before)
    }

    /// The oldest state held.
    pub fn oldest(&self) -> Option<Seq> {
        self.held.lock().states.first().map(|(seq, _)| *seq)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut held = self.pins.held.lock();
        if let Ok(at) = held.states.binary_search_by_key(&self.seq, |(seq, _)| *seq) {
            held.states[at].1 -= 1;
            if held.states[at].1 == 0 {
                held.states.remove(at);
            }
        }
        let work = if held.states.is_empty() { held.at_end.take() } else { None };
        drop(held);
        if let Some(work) = work {
            work();
        }
    }
}
