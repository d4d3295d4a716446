//! Planted bugs: build-time switches that break one rule each, so that the tests can show that they notice.
//!
//! Without the `planted-bugs` feature every switch is a constant `false`.

/// One rule that can be broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Bug {
    /// Blocks are deleted before the commit that unlinks them.
    DeleteBeforeUnlink = 1,
    /// An object is not synced before its put returns.
    SkipObjectSync = 2,
    /// An object's directory entry is not synced.
    SkipObjectNameSync = 3,
    /// A new folder's directory entry is not synced.
    SkipFolderSync = 4,
    /// A log record is acknowledged without a sync.
    SkipLogSync = 5,
    /// A new log segment's header is not synced.
    SkipLogHeaderSync = 6,
    /// A new log segment's directory entry is not synced.
    SkipLogNameSync = 7,
    /// The log's folder is not synced when a store is made.
    SkipLogFolderSync = 8,
    /// A failed log write is taken back without a sync.
    SkipUndoSync = 9,
    /// Names left by a process that died are not synced when the store is opened.
    SkipReopenSync = 10,
    /// A checkpoint forgets the rows that were deleted while it ran.
    ForgetConcurrentDeletes = 11,
    /// The log is cut although the catalog snapshot is not durable yet.
    CutLogBeforeSnapshot = 12,
    /// The last record found when the store is opened is built upon without a sync.
    SkipOpenSync = 13,
    /// A transaction is committed although what it read has changed.
    SkipFootprint = 14,
    /// Projections are not brought to the tree that is published with them.
    ForgetProjections = 15,
    /// What lived on a deleted node stays.
    ForgetCascade = 16,
    /// The log is cut although rows written by key lie nowhere else.
    ForgetRowsFrom = 17,
    /// A flush leaves the rows that it replaces.
    ForgetHiddenRows = 18,
    /// Whether a key is new is not asked again in the commit's turn.
    SkipKeyCheck = 19,
    /// Blocks are deleted before the commit that let go of them is durable.
    SkipSyncBeforeDelete = 20,
    /// The log's root is replaced whatever it holds.
    PlainRootPut = 21,
    /// Log chunks are deleted before the root no longer names them.
    DeleteNamedChunks = 22,
    /// Commits of a session that was ended are taken.
    SkipFence = 23,
    /// A put without an answer is taken for one that was not done.
    ForgetAmbiguity = 24,
    /// What is known to be synced is not named outside the log.
    ForgetMark = 25,
    /// Two threads may sync the log at a time.
    SyncTogether = 26,
    /// A throttled put of the log's root is given up after one short pause.
    HastyRetries = 40,
    /// Who wins a race for the log's root does not let the others go first.
    NoTurns = 41,
    /// A folder that was there once is taken to be there still.
    TrustFolders = 43,
    /// Blocks that travelled in commits are listed for deletion as if they were on storage.
    CondemnInline = 44,
    /// A write whose session another process has ended is not written again in a new one.
    TellFenced = 45,
    /// A rewrite does not say where the rows are that a transaction has found before it.
    ForgetMoves = 60,
    /// Rows that a transaction has found are looked for where they were, whatever was rewritten.
    SkipCarry = 61,
    /// A clock is believed however far ahead it is.
    TrustClock = 62,
    /// A commit that is too large for the log is handed to it, with all others of its turn.
    TakeTooLarge = 63,
    /// A flush keeps no history of the rows that it replaces, so that times between its commits show the last of them.
    ForgetHistories = 70,
    /// Times at which a deleted version was the newest show the version before it.
    ForgetGaps = 71,
    /// Retention by time counts from when a version was written, not from when the next one replaced it.
    ExpireByBirth = 72,
    /// Versions that only snapshots hold are not kept.
    ForgetPins = 73,
    /// Reclaim deletes blocks that readers of this process still use.
    ReclaimPinned = 74,
    /// Reclaim deletes blocks at once that other processes may still read.
    IgnoreRest = 75,
    /// Reclaim takes every block of a bulk deletion for deleted.
    CrossOffFailed = 76,
    /// A table taken out of the trash is still listed there.
    LeaveInTrash = 77,
    /// Only the first of several records that share a row group is counted.
    ForgetShared = 78,
    /// A checkpoint that is to remove every deleted row leaves row groups with few of them.
    SkipPurge = 79,
    /// Blocks of a failed write that could not be deleted are forgotten.
    ForgetAbandoned = 80,
    /// After a put without an answer another root is put, instead of the same bytes, though the root has not changed.
    RetryAnew = 81,
    /// An audit deletes unknown blocks of sessions that are still open.
    SweepOpenSessions = 82,
    /// Keys are looked for in row groups whose key has another type.
    MixKeyTypes = 83,
    /// The bytes of a segment are taken as they come.
    SkipChecksum = 84,
    /// Projections do not follow what other processes commit.
    ForgetOthersInProjections = 85,
    /// A reclaim empties the trash whatever grace it was given.
    IgnoreGrace = 86,
}

#[cfg(feature = "planted-bugs")]
mod switch {
    use std::sync::atomic::{AtomicU8, Ordering};

    static PLANTED: AtomicU8 = AtomicU8::new(0);

    /// Breaks one rule in the whole process, or none.
    pub fn plant(bug: Option<super::Bug>) {
        PLANTED.store(bug.map_or(0, |bug| bug as u8), Ordering::SeqCst);
    }

    /// Whether `bug` is planted.
    pub fn planted(bug: super::Bug) -> bool {
        PLANTED.load(Ordering::SeqCst) == bug as u8
    }
}

#[cfg(not(feature = "planted-bugs"))]
mod switch {
    /// Always `false` in this build.
    pub const fn planted(_: super::Bug) -> bool {
        false
    }
}

pub use switch::*;
