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
    /// A failed log write is undone without a sync.
    SkipUndoSync = 9,
    /// Names left by a process that died are not synced when the store is opened.
    SkipReopenSync = 10,
    /// A checkpoint forgets the rows that were deleted while it ran.
    ForgetConcurrentDeletes = 11,
    /// The log is cut although the catalog snapshot is not durable yet.
    CutLogBeforeSnapshot = 12,
    /// The last record found when the store is opened is taken as durable without a sync.
    SkipOpenSync = 13,
    /// A transaction is committed although what it read has changed.
    SkipFootprint = 14,
    /// Projections are not updated to the tree that is published with them.
    ForgetProjections = 15,
    /// What lived on a deleted node stays.
    ForgetCascade = 16,
    /// The log is cut although it is the only place that holds rows written by key.
    ForgetRowsFrom = 17,
    /// A flush does not delete the rows that it replaces.
    ForgetHiddenRows = 18,
    /// Whether a key is new is not checked again in the commit's turn.
    SkipKeyCheck = 19,
    /// Blocks are deleted before the commit that released them is durable.
    SkipSyncBeforeDelete = 20,
    /// The log's root is replaced whatever it holds.
    PlainRootPut = 21,
    /// Log chunks are deleted while the root still names them.
    DeleteNamedChunks = 22,
    /// Commits of a session that was ended are accepted.
    SkipFence = 23,
    /// A put without an answer is treated as one that failed.
    ForgetAmbiguity = 24,
    /// What is known to be synced is not recorded outside the log.
    ForgetMark = 25,
    /// Two threads may sync the log at the same time.
    SyncTogether = 26,
    /// A throttled put of the log's root is given up after one short pause.
    HastyRetries = 40,
    /// The process that wins a race for the log's root does not let the others go first.
    NoTurns = 41,
    /// A folder that existed once is assumed to exist still.
    TrustFolders = 43,
    /// Blocks that travelled in commits are listed for deletion as if they were on storage.
    CondemnInline = 44,
    /// A write whose session another process has ended is not written again in a new one.
    TellFenced = 45,
    /// A rewrite does not record where it moved rows that a transaction had found before.
    ForgetMoves = 60,
    /// Rows that a transaction has found are looked up where they were, even if they were rewritten.
    SkipCarry = 61,
    /// A clock is believed however far ahead it is.
    TrustClock = 62,
    /// A commit that is too large for the log is passed to it, with all others of its turn.
    TakeTooLarge = 63,
    /// A flush keeps no history of the rows that it replaces, so that times between its commits show the last of these
    /// commits.
    ForgetHistories = 70,
    /// Reads at a time when a deleted version was the newest show the version before it.
    ForgetGaps = 71,
    /// Retention by time counts from when a version was written, not from when the next one replaced it.
    ExpireByBirth = 72,
    /// Versions that only snapshots hold are not kept.
    ForgetPins = 73,
    /// Reclaim deletes blocks that readers of this process still use.
    ReclaimPinned = 74,
    /// Reclaim deletes blocks at once that other processes may still read.
    IgnoreRest = 75,
    /// Reclaim treats every block of a bulk deletion as deleted.
    CrossOffFailed = 76,
    /// A table taken out of the trash is still listed there.
    LeaveInTrash = 77,
    /// Of several records that share a row group, only the first is counted.
    ForgetShared = 78,
    /// A checkpoint that must remove every deleted row skips row groups with few of them.
    SkipPurge = 79,
    /// Blocks of a failed write that could not be deleted are forgotten.
    ForgetAbandoned = 80,
    /// After a put without an answer another root is put, instead of the same bytes, though the root has not changed.
    RetryAsNew = 81,
    /// An audit deletes unknown blocks of sessions that are still open.
    SweepOpenSessions = 82,
    /// Keys are looked up in row groups whose key has another type.
    MixKeyTypes = 83,
    /// The bytes of a segment are used without a check.
    SkipChecksum = 84,
    /// Projections are not updated with what other processes commit.
    ForgetOthersInProjections = 85,
    /// Whether a key was written is looked up in a memtable that later commits did not write to, since the state was read
    /// again.
    TrustLeftRows = 87,
    /// A reclaim deletes blocks that a lease keeps.
    ReclaimLeased = 88,
    /// A sweep deletes blocks that are staged for a job.
    SweepHolds = 89,
    /// A commit of staged blocks does not ask whether their hold has ended.
    TrustEndedHolds = 90,
    /// A job that was committed already is committed again.
    ForgetJobs = 91,
    /// Keys of staged rows are not compared with those of the job's other parts.
    SkipStagedKeys = 92,
    /// A hold ends by its beat's time alone, so that one from a clock that is ahead never ends.
    TrustBeats = 93,
    /// A restore leaves a row group as it is if both versions see some of its rows.
    RestorePart = 94,
    /// Tables are copied and restored while rows written by key are in memory.
    CopyInMemory = 95,
    /// A table that is moved keeps its versions as its new place says.
    ForgetMovedRetention = 96,
    /// A difference compares records, so that rows in records of their own look changed.
    DiffRecords = 98,
    /// Whether a put that a folder has refused was done is looked for in the log, which may not know.
    DoubtRefusals = 99,
    /// A restored version's row groups are read as if all had been written with its schema.
    OneSchemaRestored = 100,
    /// A column that is renamed is looked for in row groups by its new name.
    ColumnsByName = 101,
    /// A new column gets the id of one that was dropped.
    ReuseColumns = 102,
    /// The columns of a table change while rows written by key are in memory.
    AlterInMemory = 103,
    /// Rows that were deleted before an update come back with it.
    ReviveRows = 104,
    /// A merge adds rows of the frame that match a row of the table.
    InsertMatched = 105,
    /// A copy does not know of which table it is one.
    ForgetAncestors = 106,
    /// A purge leaves rows that only older versions see.
    PurgeNewestOnly = 107,
    /// A purge leaves the rest of what was erased in blocks that are otherwise in use.
    LeaveHoles = 108,
    /// A scan whose version was purged goes on after as many rows as it has returned.
    ScanOnPurged = 109,
    /// What versions tell is not stored with a catalog snapshot.
    ForgetStories = 110,
    /// A note is taken for one of all versions of its tables.
    TellAll = 111,
    /// Rows that replace those that match may have keys of rows that do not.
    ReplaceBesideKeys = 112,
    /// A copy to another store passes over tables that are there, whatever they show.
    PassOverOthers = 113,
    /// What lies below a patch is not counted as in use by it.
    ForgetBelow = 114,
    /// Of two layers with the same column the older one decides.
    ReadBelow = 115,
    /// Row groups are rewritten in a schema that not all versions have which see them.
    MixSchemas = 116,
    /// A purge leaves what lies below patches.
    PurgePatches = 117,
    /// Checks are not tested.
    SkipChecks = 118,
    /// Constraints are put on tables whose rows do not keep them.
    TrustRows = 119,
    /// A frame that replaces all rows does not take over how columns of the order were renamed.
    ForgetOrder = 120,
    /// Sums of floats are rounded at each step.
    RoundSums = 121,
    /// The first value of a group is that of the part which was added first.
    RankParts = 122,
    /// Tables that changed while a catalog snapshot was written go back to what it says of them.
    KeepPages = 123,
    /// A changed retention does not concern tables in pages.
    ForgetDue = 124,
    /// A page does not say which of its tables a vacuum would change.
    ForgetWaiting = 125,
    /// Whether a root continues the one seen before is judged by the numbers of commits alone.
    CompareNumbersOnly = 240,
    /// A put under a name that is given once replaces what is there.
    OverwriteOnce = 241,
    /// A commit is acknowledged although the file that it went to has lost its name.
    TrustNames = 242,
    /// A handle that notices another history goes on reading, writing and deleting.
    GoOnInOtherHistory = 243,
    /// What lies beside a root when the log is opened is not looked at.
    IgnoreWitness = 244,
    /// An entry is applied whatever it says of the one before it.
    IgnorePrev = 245,
    /// Row groups that touch in the first column of a sort order are taken for apart, whatever the other columns say.
    TrustFirstColumn = 150,
    /// A frame is sorted as far as it fits into memory at a time.
    SortParts = 151,
    /// Of equal rows in different parts of a frame, the later ones come first.
    LaterFirst = 152,
    /// Row groups that overlap in the sort order are left as they are.
    LeaveOverlaps = 153,
    /// A vacuum takes records that share their bytes for ones that do not.
    MixShared = 97,
    /// A reclaim empties the trash, whatever the grace period.
    IgnoreGrace = 86,
    /// Columns are encoded as if no row were null.
    EncodeNoNulls = 180,
    /// Columns are encoded with their rows in another order.
    EncodeReversed = 181,
    /// A purge leaves leases and stages that may have rows which it erases.
    PurgeBesideHolds = 200,
    /// A snapshot is asked for a table only by the path that the table had then.
    ForgetMovedPins = 201,
    /// A merge that updates rows with those of the frame ignores that these have other keys.
    IgnoreOtherKeys = 202,
    /// A table that gets the rows of another loses its constraints.
    ForgetConstraints = 203,
    /// A checkpoint moves row groups that its own windows take in.
    MoveWhatLeaves = 204,
    /// A row group whose rows are all deleted is part of what a restore brings back.
    KeepDeleted = 205,
    /// A row group is drawn from only after the rows of others that are equal to its first.
    DrawLate = 206,
    /// A transaction updates its own rows in row groups of the numbers that these had when they were written.
    KeepOwnGroups = 207,
    /// A transaction names its own versions by the numbers that these had when they were made.
    KeepOwnVersions = 208,
    /// What a page of the catalog says of a table stays as it was where only the table's place has changed.
    KeepFigures = 209,
    /// Rows with some of the columns are completed from what is there, even if others change that in between.
    CompleteBlindly = 210,
    /// Of tables that are dropped from one path at one time, the order of the drops is forgotten.
    DropAtOnce = 211,
    /// A copy in another store gives out numbers of its sequences that the rows have.
    CopyNoNumbers = 212,
    /// UUIDs are made of the time alone.
    FewUuids = 213,
    /// The numbers of a sequence are counted in the process, without a commit.
    ReserveInMemory = 214,
    /// What is added to a number is added to what was there when the call began.
    AddToOld = 215,
    /// Whether rows have the expected values is looked at, but not again in the commit's turn.
    CompareEarly = 216,
    /// An index covers row groups by their oldest layer, whatever patches changed.
    CoverByBase = 217,
    /// An index has only the rows that the newest version shows.
    IndexLiveRows = 218,
    /// Runs of indexes do not follow the row groups that they cover where these are moved.
    ForgetCovers = 219,
    /// The columns of an index go by their names.
    IndexByName = 220,
    /// A value that cannot be computed is null in an index.
    FailedAsNull = 221,
    /// Of a disjunction an index is asked for the first alternative alone.
    OneAlternative = 222,
    /// A run lacks its last entry.
    DropEntry = 223,
    /// A purge leaves runs of indexes as they are.
    PurgeSkipsRuns = 224,
    /// An index with a condition is asked by filters that lack it.
    IgnoreIndexCondition = 225,
    /// A run is asked in a version whose column has another type.
    IndexOfOtherType = 226,
    /// Rows whose values are too long for an index are no hits.
    ForgetOpenParts = 227,
    /// Rows that were written since a commit was prepared are not compared with what it adds to unique indexes.
    SkipValues = 228,
    /// A commit is compared with unique indexes as they were before it, with rows that it replaces.
    JudgeBase = 229,
    /// A unique index has rows for which its condition is not true.
    CompareAllRows = 230,
    /// Rows that were there before an index was made are not compared when it becomes unique.
    TrustOldRows = 231,
    /// Entries of runs that are merged name row groups by their places in the old runs.
    KeepPlaces = 232,
    /// Rows that have expired are seen.
    ShowExpired = 233,
    /// Rows that expire between a look-up and the commit that depends on it are no conflict.
    IgnoreExpiry = 234,
    /// Rows that have expired are counted with the others where nothing else selects rows.
    CountExpired = 235,
    /// A checkpoint deletes what has expired by the clock of its process at once.
    DeleteByOwnClock = 236,
    /// Rows that have expired stay beside new ones with their keys.
    LeaveExpired = 237,
    /// Rows that have expired between two versions are not part of their difference.
    DiffWithoutExpiry = 238,
    /// What a version changed of rows that were in memory comes as if they had not been there.
    FeedForgetsMemory = 239,
    /// What takes the place of a row that had expired comes as an update of it.
    FeedUpdatesExpired = 27,
    /// A feed's filter asks what rows became, and not what they were.
    FeedFiltersAfter = 28,
    /// Retention removes versions that a follower has not read.
    ForgetFollowers = 29,
    /// A consumer whose place another has taken moves the follower on.
    ForgetEpoch = 30,
    /// Nodes stay that have nothing to live on any more.
    LeaveOrphans = 31,
    /// A node whose time was put off expires when it was seen to.
    ExpireRenewed = 32,
    /// The silence of an owner is judged by the wall clock of who watches.
    SilenceByWallClock = 33,
    /// Rows that came to memory after an index was first asked are not found by their values.
    ForgetLaterRows = 34,
    /// Rows of row groups that were written again in memory are shown, where rows in memory are found by their values.
    TrustHitsOfGroups = 35,
    /// A join in time passes over rows of the same time.
    MissEqualTimes = 36,
    /// Of two sides of a join that pass each other, the last row before the next ones is not kept.
    DropEarlier = 37,
    /// Groups of a view keep what rows gave that are gone.
    UpdateWithoutRetraction = 38,
    /// A view that is behind with a source is said to have caught up though nothing was done.
    CatchUpWithoutRows = 39,
    /// A change of a view's source is taken as prepared, whatever became of the source in between.
    TrustOldDelta = 42,
    /// Rows that were laid out are shown as they lie.
    ShowAsLaidOut = 46,
    /// Part of what was laid out together is laid out again, away from the rest.
    LayOutPart = 47,
    /// Blocks that were copied to a replica are not read there.
    CopyUnread = 48,
    /// A replica names commits before it has their blocks.
    AppendFirst = 49,
    /// A process that takes a replica over does not say so.
    NoOwner = 50,
    /// A replica is promoted while its source is still written.
    PromoteBeside = 51,
    /// A checkpoint forgets the entries that a lease keeps.
    CutLeased = 52,
    /// A replica keeps what it had of before rows were erased.
    KeepErased = 53,
    /// A log is moved back from a cell without having it end there first.
    ReturnUnfenced = 54,
    /// A cell is taken as it is, though the store has seen later commits of it.
    TrustCell = 55,
    /// An entry that was handed in is added behind one that writes rows which it has looked up.
    TakeForbidden = 56,
    /// An entry that was handed in is added though it is in the log.
    TakeTwice = 57,
    /// A table changes and leaves no snapshot that covers it.
    KeepCovered = 58,
    /// A frame that replaces all rows makes other columns of those that were renamed.
    NewIds = 59,
}

#[cfg(feature = "planted-bugs")]
mod switch {
    use std::sync::atomic::{AtomicU8, Ordering};

    static PLANTED: AtomicU8 = AtomicU8::new(0);

    /// Breaks one rule in the whole process, or none.
    pub fn plant(bug: Option<super::Bug>) {
        PLANTED.store(bug.map_or(0, |bug| bug as u8), Ordering::SeqCst);
    }

    /// If a rule is broken, breaks another one instead while `work` is done: for what only builds of before could leave.
    pub fn instead<T>(bug: super::Bug, work: impl FnOnce() -> T) -> T {
        let before = PLANTED.load(Ordering::SeqCst);
        if before > 0 {
            plant(Some(bug));
        }
        let done = work();
        PLANTED.store(before, Ordering::SeqCst);
        done
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
