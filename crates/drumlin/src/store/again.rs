//! Going on after another process has ended this one's session.
//!
//! A reclaim elsewhere may take this process for dead (`fence_idle`): its session ends, and blocks of it that no commit refers to
//! are swept. A commit that refers to such blocks is refused in its turn. Nothing of it was done, so it is prepared again in a new
//! session: what reads its source from the store starts over, and what was drawn from the caller's data is written again from
//! what the block writer has kept.

use super::Store;
use crate::base::planted::{Bug, planted};
use crate::base::{Error, ErrorKind, Result};
use crate::block::{BlockWriter, Replaced};
use crate::table::NewGroup;

/// So many bytes of blocks are kept in memory until their commit, in a store that several processes write. A write of more fails
/// if its session is ended meanwhile, and says that nothing was done.
pub(super) const KEPT_BYTES_MAX: u64 = 64 << 20;

impl Store {
    /// Whether a commit was refused because the session that wrote its blocks has ended.
    pub(super) fn session_ended<T>(&self, answer: &Result<T>, writer: &BlockWriter) -> bool {
        let session = writer.session();
        answer.as_ref().is_err_and(|e| e.kind() == ErrorKind::Unavailable)
            && self.current().is_ok_and(|state| session <= state.sessions.last && !state.sessions.is_open(session))
            && !planted(Bug::TellFenced)
    }

    /// If a commit was refused because the session of `writer` has ended: writes its blocks again in a new one, and gives where
    /// row groups lie now. `None`: the answer stands.
    pub(super) fn written_again<T>(&self, answer: &Result<T>, writer: &mut BlockWriter) -> Result<Option<Replaced>> {
        match self.session_ended(answer, writer) {
            true => writer.again(self.block_numbers()?),
            false => Ok(None),
        }
    }

    /// The answer to a commit that rests on the store alone: `SnapshotExpired`, so that it is prepared again, if the session of
    /// `writer` has ended.
    pub(super) fn or_again<T>(&self, answer: Result<T>, writer: &BlockWriter) -> Result<T> {
        match self.session_ended(&answer, writer) {
            true => answer.map_err(|e| Error::snapshot_expired(e.message())),
            false => answer,
        }
    }
}

/// Puts row groups where they lie now.
pub(super) fn replace_groups(groups: &mut [NewGroup], replaced: &Replaced) {
    for group in groups {
        if let Some(now) = replaced.get(&group.address) {
            group.address = *now;
        }
    }
}
