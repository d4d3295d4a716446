//! Effects: everything that can happen to a store, one variant each; the payload of the commit log.
//!
//! The encoding is postcard, so the order of variants and fields is part of the format: only add at the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::{BlockId, Seq, SessionId, TableId, Version};
use crate::block::Address;
use crate::catalog::{
    Follower, HoldKind, Inline, NodeEffects, Path, PresenceChange, Projection, Retention, TriggerFilter, ViewDefinition,
};
use crate::table::{
    Adopted, Flush, GroupId, IndexDefinition, NewGroup, NewPatch, NewRun, Note, Positions, Reorder, Rewrite,
    RowsChange, ShrunkGroup, StoredLayout, StoredSchema, TableChange, TableSpec, TableUpdate, VersionKind,
};

/// One thing that happens to a store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Effect {
    /// A process begins to write blocks.
    OpenSession {
        /// The next number.
        session: SessionId,
        /// Whether it is alone: then all earlier sessions are fenced.
        fence: bool,
    },
    /// What happens to nodes.
    Nodes(NodeEffects),
    /// Sets how long tables at and below a node keep versions.
    SetRetention {
        /// The node; created if it does not exist.
        path: Path,
        /// `None`: inherited from the node above.
        retention: Option<Retention>,
    },
    /// Creates an empty table at a path; a `ChangeTable` makes its first version.
    CreateTable {
        /// The node; it must not hold a table.
        path: Path,
        /// The next number.
        table: TableId,
        /// What it is created with.
        spec: TableSpec,
    },
    /// Registers blocks that the following effects refer to.
    AddBlocks {
        /// Their ids and sizes in bytes.
        blocks: Vec<(BlockId, u64)>,
    },
    /// Makes a table's next version.
    ChangeTable {
        /// The table.
        table: TableId,
        /// How.
        change: TableChange,
    },
    /// Changes a table's layout, but not its content.
    RewriteTable {
        /// The table.
        table: TableId,
        /// How.
        rewrite: Rewrite,
    },
    /// Deletes versions of a table.
    DeleteVersions {
        /// The table.
        table: TableId,
        /// Those versions.
        versions: Vec<Version>,
    },
    /// Unlinks a table from its path; it goes to the trash.
    DropTable {
        /// The table.
        table: TableId,
    },
    /// Takes a table from the trash.
    UndropTable {
        /// The table.
        table: TableId,
        /// The node that gets it; must not hold a table.
        path: Path,
    },
    /// Gives up tables in the trash for good.
    Condemn {
        /// Those tables.
        tables: Vec<TableId>,
    },
    /// Condemned blocks are deleted from storage.
    Reclaimed {
        /// Those blocks.
        blocks: Vec<BlockId>,
    },
    /// Names and holds versions of tables.
    PutSnapshot {
        /// The name; must be free.
        name: String,
        /// What it holds.
        pins: Vec<(Path, TableId, Version)>,
    },
    /// Releases a snapshot.
    DropSnapshot {
        /// The name.
        name: String,
    },
    /// Sets how long tables keep versions if no node above them says.
    SetDefaultRetention {
        /// `None`: all.
        retention: Option<Retention>,
    },
    /// Creates a projection, or replaces the one with its name.
    PutProjection {
        /// Its name.
        name: String,
        /// What it is.
        #[serde(with = "crate::base::json_text")]
        projection: Projection,
    },
    /// Removes a projection.
    DropProjection {
        /// Its name.
        name: String,
    },
    /// Creates a durable trigger, or replaces the one with its name, keeping its position in the log.
    PutTrigger {
        /// Its name.
        name: String,
        /// What it is called for.
        #[serde(with = "crate::base::json_text")]
        filter: TriggerFilter,
        /// Which process calls it.
        owner: SessionId,
    },
    /// A durable trigger has been called for all commits up to one.
    TriggerDone {
        /// Its name.
        name: String,
        /// That commit.
        seq: Seq,
    },
    /// Removes a durable trigger.
    DropTrigger {
        /// Its name.
        name: String,
    },
    /// Row groups of a table have moved, byte for byte the same.
    MoveGroups {
        /// The table.
        table: TableId,
        /// From where to where.
        moves: Vec<(Address, Address)>,
    },
    /// A block that is not on storage: the effect contains it.
    AddInline {
        /// The block.
        block: BlockId,
        /// Its content.
        content: Inline,
    },
    /// Writes rows to a keyed table, and deletes keys.
    WriteRows {
        /// The table.
        table: TableId,
        /// The version that they will belong to: the table's next one.
        version: Version,
        /// What is written.
        rows: RowsChange,
    },
    /// Numbers a version for the rows written since the last one.
    FreezeRows {
        /// The table.
        table: TableId,
    },
    /// Turns the oldest rows written this way into row groups.
    FlushRows {
        /// The table.
        table: TableId,
        /// How.
        flush: Flush,
    },
    /// Ends sessions: their blocks that no earlier commit registered are garbage.
    FenceSessions {
        /// Those sessions; those that have already ended are skipped.
        sessions: Vec<SessionId>,
    },
    /// Nothing more is expected of sessions that have ended.
    ForgetSessions {
        /// Those sessions.
        sessions: Vec<SessionId>,
    },
    /// Turns the oldest rows written this way into row groups, and keeps what each of their commits had written.
    FlushWithHistory {
        /// The table.
        table: TableId,
        /// How.
        flush: Flush,
        /// What was written, commit by commit.
        history: Vec<NewGroup>,
    },
    /// Begins to keep blocks for other processes. The floor of a lease is the commit before this, whatever it says.
    OpenHold {
        /// The next number of a session.
        hold: SessionId,
        /// The name of the store, if it has none yet.
        store: u128,
        /// What it keeps.
        kind: HoldKind,
        /// How long it lives without a beat, in microseconds.
        life_micros: u64,
        /// For how long its workers may write, in microseconds.
        work_micros: u64,
    },
    /// The owner of a hold is alive.
    Beat {
        /// The hold; it must not have ended.
        hold: SessionId,
    },
    /// Ends holds.
    EndHolds {
        /// Those holds; those that have already ended are skipped.
        holds: Vec<SessionId>,
    },
    /// Notes what a job has committed, in the commit that does it.
    PutJob {
        /// Its name; no job of this name may be known.
        name: String,
        /// Of what was committed.
        digest: u128,
        /// The tables that it changed: the newest version of each is the job's.
        tables: Vec<(Path, TableId)>,
        /// The holds of its blocks.
        holds: Vec<SessionId>,
    },
    /// Forgets old jobs.
    ForgetJobs {
        /// Their names.
        names: Vec<String>,
    },
    /// Makes a table at a path that shares the row groups of another; it has the same versions, or only one of them.
    CopyTable {
        /// The other; it has no rows in memory.
        from: TableId,
        /// The next number.
        table: TableId,
        /// The node; it must not hold a table.
        path: Path,
        /// The version to copy; `None`: all that are listed.
        version: Option<Version>,
    },
    /// Links a table to another path.
    MoveTable {
        /// The table; it is in the tree.
        table: TableId,
        /// The node; it must not hold a table.
        path: Path,
    },
    /// Makes a table's next version out of an older one, or one of another table, whose row groups it shares.
    RestoreTable {
        /// The table.
        table: TableId,
        /// The table that has the version; neither has rows in memory.
        from: TableId,
        /// That version.
        version: Version,
    },
    /// Row groups that several tables share have moved, byte for byte the same.
    MoveShared {
        /// The tables.
        tables: Vec<TableId>,
        /// From where to where.
        moves: Vec<(Address, Address)>,
    },
    /// Makes a table's next version, in which row groups are replaced by others with the same rows, changed.
    UpdateTable {
        /// The table; it has no rows in memory.
        table: TableId,
        /// How.
        update: TableUpdate,
    },
    /// Rows are gone from all versions that had them.
    EraseRows {
        /// The tables that have them.
        tables: Vec<TableId>,
        /// Their row groups, and their positions.
        rows: Vec<(Address, Positions)>,
        /// Histories that go with them: tables and versions.
        histories: Vec<(TableId, Version)>,
    },
    /// Row groups with erased rows are replaced by others without them.
    ShrinkGroups {
        /// The tables that have them.
        tables: Vec<TableId>,
        /// The row groups.
        groups: Vec<ShrunkGroup>,
    },
    /// Changes the metadata of schemas.
    SetSchemas {
        /// The table.
        table: TableId,
        /// The schemas, by place among those of the table.
        schemas: Vec<(u32, StoredSchema)>,
    },
    /// Changes the writer's metadata of a version.
    SetMetadata {
        /// The table.
        table: TableId,
        /// The version; it is listed or held by a snapshot.
        version: Version,
        /// The metadata, as JSON.
        metadata: Option<String>,
    },
    /// What the writer of this transaction says of it, and the versions that it has made so far.
    Tell {
        /// What is said.
        note: Note,
        /// Those versions.
        versions: Vec<(TableId, Version)>,
    },
    /// The newest version of a table has changed rows in place.
    CountChanged {
        /// The table.
        table: TableId,
        /// How many rows.
        rows: u64,
    },
    /// Makes tables at paths as they are in another store.
    AdoptTables {
        /// The next numbers, the paths, which hold no tables, and the tables.
        tables: Vec<(TableId, Path, Adopted)>,
    },
    /// As [`Effect::UpdateTable`], but what takes the places of some row groups has only some of their columns.
    PatchTable {
        /// The table; it has no rows in memory.
        table: TableId,
        /// How.
        update: TableUpdate,
        /// The row groups that get a patch, and which.
        patches: Vec<(GroupId, NewPatch)>,
    },
    /// Puts row groups of a sorted table into another order, some of them merged; what versions show stays the same.
    ReorderTable {
        /// The table.
        table: TableId,
        /// How.
        reorder: Reorder,
    },
    /// Numbers of a table's sequences have been given out.
    AdvanceSequences {
        /// The table.
        table: TableId,
        /// The next numbers; a sequence that is further on stays.
        next: BTreeMap<String, i64>,
    },
    /// Makes an index of a table, which covers nothing yet.
    PutIndex {
        /// The table.
        table: TableId,
        /// What it is of; its name must be free.
        definition: IndexDefinition,
    },
    /// Removes an index.
    DropIndex {
        /// The table.
        table: TableId,
        /// Its number.
        index: u64,
    },
    /// Gives an index other runs. What is gone is ignored.
    PutRuns {
        /// The table.
        table: TableId,
        /// The number of the index.
        index: u64,
        /// The runs that it gets.
        add: Vec<NewRun>,
        /// The numbers of those that it loses.
        drop: Vec<u64>,
    },
    /// All rows of an index that is to be unique were compared, and no two have the same values.
    ProveIndex {
        /// The table.
        table: TableId,
        /// The number of the index; one that is gone is ignored.
        index: u64,
    },
    /// Makes a follower of a table, moves it on, or removes it.
    PutFollower {
        /// The table.
        table: TableId,
        /// Its name.
        name: String,
        /// What it is from now on; `None` if it is removed.
        follower: Option<Follower>,
    },
    /// Begins, renews or ends presences. Nodes that end with them are deleted by effects of their own, in the same transaction.
    Presences(PresenceChange),
    /// Makes a table a view, which is behind with no source.
    PutView {
        /// The table, which is empty.
        table: TableId,
        /// What it is of.
        #[serde(with = "crate::base::json_text")]
        definition: Arc<ViewDefinition>,
    },
    /// A view is behind with sources, or is so no more.
    MarkView {
        /// The table of the view; one that is none any more is ignored.
        table: TableId,
        /// The paths of the sources.
        sources: Vec<Path>,
        /// Which of both.
        behind: bool,
    },
    /// Says by what the row groups of a table are laid out from now on.
    SetLayout {
        /// The table.
        table: TableId,
        /// The layout, whose columns go by their ids, with a number that no other has; `None` for none.
        layout: Option<StoredLayout>,
    },
    /// Takes a snapshot of the newest versions of all tables in the tree that match, see [`crate::catalog::SnapshotCovers`].
    CoverTables {
        /// Its name; must be free.
        name: String,
        /// Which paths match.
        pattern: String,
        /// How many tables these are.
        tables: u64,
    },
}

impl Effect {
    /// The table that it is about, if it is about one.
    pub fn table(&self) -> Option<TableId> {
        match self {
            Effect::CreateTable { table, .. }
            | Effect::ChangeTable { table, .. }
            | Effect::WriteRows { table, .. }
            | Effect::RewriteTable { table, .. }
            | Effect::ReorderTable { table, .. }
            | Effect::MoveGroups { table, .. }
            | Effect::FlushRows { table, .. }
            | Effect::FlushWithHistory { table, .. }
            | Effect::CopyTable { table, .. }
            | Effect::MoveTable { table, .. }
            | Effect::RestoreTable { table, .. }
            | Effect::UpdateTable { table, .. }
            | Effect::PatchTable { table, .. }
            | Effect::SetMetadata { table, .. }
            | Effect::SetSchemas { table, .. }
            | Effect::CountChanged { table, .. }
            | Effect::AdvanceSequences { table, .. }
            | Effect::PutIndex { table, .. }
            | Effect::DropIndex { table, .. }
            | Effect::PutRuns { table, .. }
            | Effect::ProveIndex { table, .. }
            | Effect::PutFollower { table, .. }
            | Effect::PutView { table, .. }
            | Effect::MarkView { table, .. }
            | Effect::SetLayout { table, .. }
            | Effect::DeleteVersions { table, .. } => Some(*table),
            _ => None,
        }
    }

    /// The table of which it makes a version, and what kind of one.
    pub fn version(&self) -> Option<(TableId, VersionKind)> {
        match self {
            Effect::ChangeTable { table, change } => Some((*table, change.kind)),
            Effect::UpdateTable { table, update } | Effect::PatchTable { table, update, .. } => {
                Some((*table, update.kind))
            }
            Effect::FreezeRows { table } => Some((*table, VersionKind::Rows)),
            Effect::RestoreTable { table, .. } => Some((*table, VersionKind::Restore)),
            _ => None,
        }
    }

    /// The table and the positions of the rows that it deletes by position.
    pub(in crate::catalog) fn deletions_mut(&mut self) -> Option<(TableId, &mut Vec<(GroupId, Positions)>)> {
        match self {
            Effect::ChangeTable { table, change } if !change.deletions.is_empty() => {
                Some((*table, &mut change.deletions))
            }
            _ => None,
        }
    }

    /// The table and the row groups in which it updates rows.
    pub(in crate::catalog) fn updated_groups_mut(&mut self) -> Option<(TableId, Vec<&mut GroupId>)> {
        let (table, update, patches) = match self {
            Effect::UpdateTable { table, update } => (*table, update, None),
            Effect::PatchTable { table, update, patches } => (*table, update, Some(patches)),
            _ => return None,
        };
        let replaced = update.replaced.iter_mut().map(|(group, _)| group);
        let deletions = update.deletions.iter_mut().map(|(group, _)| group);
        let patches = patches.into_iter().flatten().map(|(group, _)| group);
        Some((table, replaced.chain(deletions).chain(patches).collect()))
    }

    /// The versions that it names, and their tables.
    pub(in crate::catalog) fn versions_mut(&mut self) -> Vec<(TableId, &mut Version)> {
        match self {
            Effect::SetMetadata { table, version, .. } => vec![(*table, version)],
            Effect::RestoreTable { from, version, .. } | Effect::CopyTable { from, version: Some(version), .. } => {
                vec![(*from, version)]
            }
            Effect::DeleteVersions { table, versions } => {
                versions.iter_mut().map(|version| (*table, version)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The tables that it is about, so that they can get their final numbers.
    pub(in crate::catalog) fn tables_mut(&mut self) -> impl Iterator<Item = &mut TableId> {
        let mut adopted: &mut [(TableId, Path, Adopted)] = &mut [];
        let (one, other, many) = match self {
            Effect::CreateTable { table, .. }
            | Effect::ChangeTable { table, .. }
            | Effect::RewriteTable { table, .. }
            | Effect::ReorderTable { table, .. }
            | Effect::DeleteVersions { table, .. }
            | Effect::MoveGroups { table, .. }
            | Effect::WriteRows { table, .. }
            | Effect::FreezeRows { table }
            | Effect::FlushRows { table, .. }
            | Effect::FlushWithHistory { table, .. }
            | Effect::DropTable { table }
            | Effect::MoveTable { table, .. }
            | Effect::UpdateTable { table, .. }
            | Effect::PatchTable { table, .. }
            | Effect::SetMetadata { table, .. }
            | Effect::SetSchemas { table, .. }
            | Effect::CountChanged { table, .. }
            | Effect::AdvanceSequences { table, .. }
            | Effect::PutIndex { table, .. }
            | Effect::DropIndex { table, .. }
            | Effect::PutRuns { table, .. }
            | Effect::ProveIndex { table, .. }
            | Effect::PutFollower { table, .. }
            | Effect::PutView { table, .. }
            | Effect::MarkView { table, .. }
            | Effect::SetLayout { table, .. }
            | Effect::UndropTable { table, .. } => (Some(table), None, [].iter_mut()),
            Effect::CopyTable { table, from, .. } | Effect::RestoreTable { table, from, .. } => {
                (Some(table), Some(from), [].iter_mut())
            }
            Effect::MoveShared { tables, .. }
            | Effect::EraseRows { tables, .. }
            | Effect::ShrinkGroups { tables, .. } => (None, None, tables.iter_mut()),
            Effect::AdoptTables { tables } => {
                adopted = tables;
                (None, None, [].iter_mut())
            }
            _ => (None, None, [].iter_mut()),
        };
        one.into_iter().chain(other).chain(many).chain(adopted.iter_mut().map(|(table, ..)| table))
    }
}
