//! What versions tell: how many rows they added and removed, and what their writers said.
//!
//! Numbers of rows follow from the effects. What only the caller knows (its message, the name of the writer, the time
//! since the call began) is one more effect of the transaction, `Tell`, made in its turn, when it is known which
//! versions it makes (proposal.rs). Effects of the store's own, which may be in the same commit, say nothing. In memory
//! a story is part of its version's record; a catalog snapshot keeps stories beside the tables (past.rs), so that the
//! encoding of records does not change.

use serde::{Deserialize, Serialize};

/// What the writer of a transaction says of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// What it is for, in the caller's words.
    pub message: Option<String>,
    /// Who wrote it, by the name that the store was opened with.
    pub writer: Option<String>,
    /// How long it took to prepare and to wait for its turn, in microseconds.
    pub duration_micros: Option<u64>,
}

impl Note {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How many rows a version added and removed. A row that it changed, or replaced by an equal one, counts as both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turnover {
    /// Rows that its predecessor does not show.
    pub added: u64,
    /// Rows of its predecessor that it does not show.
    pub removed: u64,
}

/// What a version tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Story {
    /// `None` where rows in memory were involved, which nobody counts at a commit; and of versions of earlier builds.
    pub rows: Option<Turnover>,
    /// What its writer said.
    pub note: Note,
}
