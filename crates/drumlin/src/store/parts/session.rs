//! This process's session: the numbers of its blocks belong to it. How it is registered is *sessions.rs*.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::base::planted::{Bug, planted};
use crate::base::waiting::{Exclusive, ExclusiveGuard};
use crate::base::{Result, SessionId};
use crate::block::BlockNumbers;
use crate::catalog::State;

/// See the module. None until the process writes its first block.
pub(in crate::store) struct Session {
    numbers: Mutex<Option<Arc<BlockNumbers>>>,
    registration: Exclusive<()>,
}

impl Default for Session {
    fn default() -> Self {
        let registration = Exclusive::new("the first write of this process", ());
        Self { numbers: Mutex::default(), registration }
    }
}

impl Session {
    /// Held while a session is being registered.
    pub fn register(&self) -> Result<ExclusiveGuard<'_, ()>> {
        self.registration.lock()
    }

    /// From now on blocks are numbered by `numbers`.
    pub fn begin(&self, numbers: Arc<BlockNumbers>) {
        *self.numbers.lock() = Some(numbers);
    }

    /// The next write uses a new one.
    pub fn forget(&self) {
        *self.numbers.lock() = None;
    }

    /// The numbers of blocks, whether the session has been ended by others or not.
    pub fn numbers(&self) -> Option<Arc<BlockNumbers>> {
        self.numbers.lock().clone()
    }

    /// Its id, whether it has been ended by others or not.
    pub fn id(&self) -> Option<SessionId> {
        self.numbers.lock().as_ref().map(|numbers| numbers.session())
    }

    /// Its id, 0 if there is none. One that `state` shows as ended is given up: the next write uses a new one.
    pub fn open_in(&self, state: &State) -> SessionId {
        let mut own = self.numbers.lock();
        match own.as_ref().map(|numbers| numbers.session()) {
            Some(session) if state.sessions.is_open(session) => session,
            Some(session) if planted(Bug::SkipFence) => session,
            _ => {
                *own = None;
                SessionId(0)
            }
        }
    }
}
