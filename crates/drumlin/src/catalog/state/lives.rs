//! Nodes that end with a presence or by themselves.

use super::State;
use crate::base::Timestamp;
use crate::catalog::Path;

impl State {
    /// Whether there are presences, or nodes that end by themselves. O(1).
    pub fn has_lives(&self) -> bool {
        !self.presences.open.is_empty() || self.first_expiry().is_some()
    }

    /// When the first node ends by itself. O(log nodes).
    pub fn first_expiry(&self) -> Option<Timestamp> {
        self.watches.timed().next().map(|(until, _)| *until)
    }

    /// At most `max` of the nodes whose time is over at `now`, and when it was.
    pub fn due_nodes(&self, now: Timestamp, max: usize) -> Vec<(Timestamp, Path)> {
        self.watches.timed().take_while(|(until, _)| *until <= now).take(max).cloned().collect()
    }
}
