//! Which states are being read, so that reclaim leaves their blocks alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::base::Seq;
use crate::catalog::State;

/// The states held by readers of this process.
#[derive(Default)]
pub(super) struct Pins {
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    /// How many readers hold a state.
    states: BTreeMap<Seq, u64>,
    /// What to do when no state is held any more.
    at_end: Option<Box<dyn FnOnce() + Send>>,
}

/// Keeps the blocks of one state.
pub(super) struct Pin {
    pins: Arc<Pins>,
    seq: Seq,
}

impl Pins {
    /// Pins the state that `read` returns, in one step: no reclaim can come in between.
    pub fn take(self: &Arc<Self>, read: impl FnOnce() -> Arc<State>) -> (Arc<State>, Arc<Pin>) {
        let mut held = self.held.lock();
        let state = read();
        *held.states.entry(state.seq).or_insert(0) += 1;
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

    /// The oldest state held.
    pub fn oldest(&self) -> Option<Seq> {
        self.held.lock().states.keys().next().copied()
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut held = self.pins.held.lock();
        if let Some(count) = held.states.get_mut(&self.seq) {
            *count -= 1;
            if *count == 0 {
                held.states.remove(&self.seq);
            }
        }
        let work = if held.states.is_empty() { held.at_end.take() } else { None };
        drop(held);
        if let Some(work) = work {
            work();
        }
    }
}
