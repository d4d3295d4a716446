//! Row groups that are on storage and that no commit refers to yet.
//!
//! Every write of row groups follows this protocol: pull rows, encode them, place them in blocks (a [`BlockWriter`] deletes
//! its blocks when dropped, unless `keep` was called), commit what refers to them, and settle: keep the blocks if the commit
//! is in the log or may be.
//!
//! A reclaim in another process may take this one for dead (`fence_idle`): its session ends, and those of its blocks that no
//! commit refers to are swept. A commit that refers to such blocks is refused in its turn. It has had no effect, so it is
//! repeated in a new session: a write that reads its source from the store starts over, and rows pulled from the caller's
//! data are written again from what the block writer has kept.

use crate::base::planted::{Bug, planted};
use crate::base::{Error, ErrorKind, Result};
use crate::block::{BlockWriter, NewAddresses, WrittenBlock};
use crate::catalog::{Effect, Inline};
use crate::store::Store;
use crate::table::NewGroup;

/// How many bytes of blocks are kept in memory until their commit, in a store that several processes write. A larger write fails
/// if its session is ended before its commit, and says that nothing was done.
const KEPT_BYTES_MAX: u64 = 64 << 20;

/// Holds row groups that no commit refers to yet.
pub(in crate::store) trait UncommittedGroups {
    /// The row groups, which may have to be placed in other blocks.
    fn groups(&mut self) -> impl Iterator<Item = &mut NewGroup>;
}

impl Store {
    /// A writer for this process's next blocks.
    pub(in crate::store) fn block_writer(&self) -> Result<BlockWriter> {
        // A folder may be gone by now; beside others, who writes looks at the root first.
        if !self.setting().is_shared() {
            self.commits().log().confirm()?;
        }
        let (storage, numbers) = (self.storage().clone(), self.block_numbers()?);
        let writer = BlockWriter::new(storage, numbers, self.options().block_bytes);
        if self.setting().is_shared() {
            return Ok(writer.keeping(KEPT_BYTES_MAX));
        }
        let commits = self.commits().clone();
        Ok(writer.confirmed(Box::new(move || commits.log().confirm())))
    }

    /// Commits, by `commit`, row groups made from the caller's data, which `writer` has placed; again with other blocks if
    /// the session that wrote them has ended. Settles the blocks; `commit` abandons those that it does not refer to.
    pub(in crate::store) fn commit_placed<P: UncommittedGroups, T>(
        &self,
        mut placed: P,
        mut writer: BlockWriter,
        mut commit: impl FnMut(&mut P, &mut BlockWriter) -> Result<T>,
    ) -> Result<T> {
        loop {
            let answer = commit(&mut placed, &mut writer);
            if self.session_ended(&answer, &writer)
                && let Some(replaced) = writer.again(self.block_numbers()?)?
            {
                replace(&mut placed, &replaced);
            } else {
                return settle(answer, writer);
            }
        }
    }

    /// Commits, by `commit`, row groups made from what the store holds. `SnapshotExpired`, so that the caller prepares it
    /// again, if the session of `writer` has ended.
    pub(in crate::store) fn commit_rewritten<T>(
        &self,
        mut writer: BlockWriter,
        commit: impl FnOnce(&mut BlockWriter) -> Result<T>,
    ) -> Result<T> {
        let answer = commit(&mut writer);
        match self.session_ended(&answer, &writer) {
            true => settle(answer.map_err(|e| Error::snapshot_expired(e.message())), writer),
            false => settle(answer, writer),
        }
    }

    /// Whether a commit was refused because the session that wrote its blocks has ended.
    pub(in crate::store) fn session_ended<T>(&self, answer: &Result<T>, writer: &BlockWriter) -> bool {
        let session = writer.session();
        answer.as_ref().is_err_and(|e| e.kind() == ErrorKind::Unavailable)
            && self.current().is_ok_and(|state| session <= state.sessions.last && !state.sessions.is_open(session))
            && !planted(Bug::TellFenced)
    }
}

fn replace(placed: &mut impl UncommittedGroups, replaced: &NewAddresses) {
    for group in placed.groups() {
        if let Some(now) = replaced.get(&group.address) {
            group.address = *now;
        }
    }
}

/// Whether a commit with this answer is in the log, or may be.
pub(in crate::store) fn may_be_there<T>(answer: &Result<T>) -> bool {
    answer.as_ref().err().is_none_or(|e| e.kind() == ErrorKind::InDoubt)
}

/// Keeps a writer's blocks if their commit is in the log or may be; else deletes them.
fn settle<T>(answer: Result<T>, writer: BlockWriter) -> Result<T> {
    if may_be_there(&answer) {
        writer.keep();
    }
    answer
}

/// The effects that register blocks; those that are not on storage carry their content.
pub(in crate::store) fn add_blocks(blocks: &[WrittenBlock]) -> Vec<Effect> {
    let (mut effects, mut stored) = (Vec::new(), Vec::new());
    for WrittenBlock { block, bytes, inline } in blocks {
        match inline {
            Some(content) => effects.push(Effect::AddInline { block: *block, content: Inline(content.clone()) }),
            None => stored.push((*block, *bytes)),
        }
    }
    effects.extend((!stored.is_empty()).then_some(Effect::AddBlocks { blocks: stored }));
    effects
}
