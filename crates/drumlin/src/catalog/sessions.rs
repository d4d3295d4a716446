//! Which processes may still write blocks. A session ends by an effect, not by a clock: so the order of the log decides
//! that any of its blocks not registered by an earlier commit is garbage.
//!
//! A process registers a session before its first block, and its blocks carry the session's number. The session ends
//! when the store is closed, or when a reclaim takes the process for dead (`fence_idle`); where one process writes,
//! when the next session begins. A commit that refers to blocks of an ended session is refused in its turn; a process
//! that is alive goes on in a new session (*blocks.rs*). So what an ended session left, and no entry names, is garbage
//! by the order of the log; time only says when it is worth looking for.

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, SessionId, Timestamp};

/// Processes that write blocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sessions {
    /// The last number assigned.
    pub last: SessionId,
    /// Those that may still write, with the time of their last commit.
    #[serde(with = "crate::base::persistent::ordered_map")]
    pub open: OrdMap<SessionId, Timestamp>,
    /// Those that were ended while others wrote, and when. Blocks of theirs that nothing refers to are garbage, and some
    /// may still arrive.
    #[serde(with = "crate::base::persistent::ordered_map")]
    pub fenced: OrdMap<SessionId, Timestamp>,
}

impl Sessions {
    /// Begins the next session; if it is `alone`, all others have ended, and it looks for what they left in all their
    /// folders.
    pub(super) fn begin(&mut self, session: SessionId, alone: bool, time: Timestamp) {
        if alone {
            *self = Self::default();
        }
        self.last = session;
        self.open.insert(session, time);
    }

    /// Ends a session, unless it has already ended.
    pub(super) fn fence(&mut self, session: SessionId, time: Timestamp) {
        if self.open.remove(&session).is_some() {
            self.fenced.insert(session, time);
        }
    }

    /// Notes that a session has committed.
    pub(super) fn committed(&mut self, session: SessionId, time: Timestamp) {
        if let Some(last) = self.open.get_mut(&session) {
            *last = time;
        }
    }

    /// Whether a session may still write.
    pub fn is_open(&self, session: SessionId) -> bool {
        self.open.contains_key(&session)
    }

    /// `Unavailable` if a session has ended: its blocks may have been deleted.
    pub(super) fn check(&self, session: SessionId) -> Result<()> {
        // A session that this state is too old to know has not ended.
        if planted(Bug::SkipFence) || session > self.last || self.is_open(session) {
            return Ok(());
        }
        Err(Error::unavailable(format!(
            "session {session} was ended by another process, so its blocks may have been deleted; nothing was done; \
             try again"
        )))
    }
}
