//! Which processes may still write blocks. A session ends by an effect, not by anybody's clock: what a block of it that no
//! commit had made known by then is, is settled by the order of the log.

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, SessionId, Timestamp};

/// Processes that write blocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sessions {
    /// The last number given.
    pub last: SessionId,
    /// Those that may still write, with the time of their last commit.
    #[serde(with = "crate::base::persistent::ordered_map")]
    pub open: OrdMap<SessionId, Timestamp>,
    /// Those that were ended while others wrote, and when. What they wrote and nothing refers to is garbage, and some may
    /// still arrive.
    #[serde(with = "crate::base::persistent::ordered_map")]
    pub fenced: OrdMap<SessionId, Timestamp>,
}

impl Sessions {
    /// The next one begins; if it is `alone`, all others have ended, and it looks for what they left in all of their folders.
    pub(super) fn begin(&mut self, session: SessionId, alone: bool, time: Timestamp) {
        if alone {
            *self = Self::default();
        }
        self.last = session;
        self.open.insert(session, time);
    }

    /// A session ends, unless it has ended.
    pub(super) fn fence(&mut self, session: SessionId, time: Timestamp) {
        if self.open.remove(&session).is_some() {
            self.fenced.insert(session, time);
        }
    }

    /// A session has committed.
    pub(super) fn committed(&mut self, session: SessionId, time: Timestamp) {
        if let Some(last) = self.open.get_mut(&session) {
            *last = time;
        }
    }

    /// Whether a session may still write.
    pub fn is_open(&self, session: SessionId) -> bool {
        self.open.contains_key(&session)
    }

    /// `Unavailable` if a session has ended: its blocks may have been swept.
    pub(super) fn check(&self, session: SessionId) -> Result<()> {
        // One that this state is too old to know of has not ended.
        if planted(Bug::SkipFence) || session > self.last || self.is_open(session) {
            return Ok(());
        }
        Err(Error::unavailable(format!(
            "session {session} was ended by another process, so that blocks of it may have been swept; nothing was done: do it again"
        )))
    }
}
