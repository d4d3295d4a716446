//! Which states are being read, so that reclaim leaves their blocks alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::base::Seq;
use crate::catalog::State;

/// The states held by readers of this process.
#[derive(Debug, Default)]
pub(super) struct Pins {
    held: Mutex<BTreeMap<Seq, u64>>,
}

/// Holds one state's blocks.
pub(super) struct Pin {
    pins: Arc<Pins>,
    seq: Seq,
}

impl Pins {
    /// Pins the state that `read` gives, as one step: no reclaim comes between.
    pub fn take(self: &Arc<Self>, read: impl FnOnce() -> Arc<State>) -> (Arc<State>, Arc<Pin>) {
        let mut held = self.held.lock();
        let state = read();
        *held.entry(state.seq).or_insert(0) += 1;
        let pin = Pin { pins: self.clone(), seq: state.seq };
        (state, Arc::new(pin))
    }

    /// The oldest state held.
    pub fn oldest(&self) -> Option<Seq> {
        self.held.lock().keys().next().copied()
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut held = self.pins.held.lock();
        if let Some(count) = held.get_mut(&self.seq) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.seq);
            }
        }
    }
}
