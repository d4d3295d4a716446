//! Edits of a table: the one vocabulary that commit, replay and the tests share.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::{Memo, Result, Seq, Timestamp, Version};
use crate::block::Address;
use crate::table::group::row_group::Positions;
use crate::table::{ALIVE, Deletion, GroupId, RowGroup, Run, Standing, StoredSchema, Story};

/// What made a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VersionKind {
    /// The table was created empty.
    Create,
    /// All rows were replaced.
    Write,
    /// Rows were added.
    Append,
    /// The rows in the range of the new rows were replaced by them.
    Replace,
    /// Rows were deleted.
    Delete,
    /// Rows replaced those with the same keys.
    Upsert,
    /// Rows were written individually: this numbers them.
    Rows,
    /// An older version, or one of another table, was made the newest.
    Restore,
    /// Columns were added, dropped, renamed or widened; the rows are the same.
    Alter,
    /// Values of some rows were changed.
    Update,
    /// Rows of a frame were brought in: some were changed, deleted and added.
    Merge,
    /// Rows that had expired were deleted.
    Expire,
}

impl VersionKind {
    /// The name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            VersionKind::Create => "create",
            VersionKind::Write => "write",
            VersionKind::Append => "append",
            VersionKind::Replace => "replace",
            VersionKind::Delete => "delete",
            VersionKind::Upsert => "upsert",
            VersionKind::Rows => "rows",
            VersionKind::Restore => "restore",
            VersionKind::Alter => "alter",
            VersionKind::Update => "update",
            VersionKind::Merge => "merge",
            VersionKind::Expire => "expire",
        }
    }
}

/// One version of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionRecord {
    /// Its number.
    pub version: Version,
    /// The commit that made it.
    pub seq: Seq,
    /// When.
    pub time: Timestamp,
    /// How.
    pub kind: VersionKind,
    /// The number of rows it sees.
    pub rows: u64,
    /// Which of the table's schemas it has.
    pub schema: u32,
    /// The writer's metadata, as JSON.
    pub metadata: Option<String>,
    /// What it tells; stored separately.
    #[serde(skip)]
    pub story: Option<Arc<Story>>,
}

/// Which rows a new version ends as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kill {
    /// None.
    None,
    /// All rows that the newest version sees.
    All,
}

/// A row group that a new version adds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewGroup {
    /// Where its bytes are.
    pub address: Address,
    /// Its rows.
    pub rows: u32,
    /// The rows of it that no version sees: later rows of the same call have their keys.
    pub dead: Option<Positions>,
}

/// Fails if a row group that another process wrote cannot be one.
pub fn check_new_group(group: &NewGroup) -> Result<()> {
    group.alone().check(1)
}

impl NewGroup {
    /// The number of its rows that the version which adds it sees.
    pub(in crate::table) fn live(&self) -> u64 {
        u64::from(self.rows) - self.dead.as_ref().map_or(0, |dead| dead.0.len())
    }

    /// A record that belongs to no table.
    pub(in crate::table) fn alone(&self) -> RowGroup {
        self.record(GroupId(0), 0, Run { rows: self.rows, born: Version(0), died: ALIVE })
    }

    /// Its record in a table: the number `id`, written with the table's schema of that position.
    pub(in crate::table) fn record(&self, id: GroupId, schema: u32, run: Run) -> RowGroup {
        let dead = self.dead.iter().map(|rows| Deletion { born: run.born, rows: rows.clone() });
        RowGroup {
            id,
            address: self.address,
            rows: self.rows,
            schema,
            runs: vec![run],
            deletions: dead.collect(),
            standing: Standing::Sorted,
            only: None,
            patched: None,
            bounds: Memo::default(),
            ends: Memo::default(),
        }
    }
}

/// Makes one new version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableChange {
    /// What kind of version.
    pub kind: VersionKind,
    /// The schema from this version on, if it is not the newest version's.
    pub schema: Option<StoredSchema>,
    /// Rows that end as a whole.
    pub kill: Kill,
    /// Rows deleted individually, each visible in the newest version.
    pub deletions: Vec<(GroupId, Positions)>,
    /// Rows added, in order.
    pub groups: Vec<NewGroup>,
    /// The writer's metadata, as JSON.
    pub metadata: Option<String>,
}

impl TableChange {
    /// Whether builds that do not know [`VersionKind::Alter`] and later kinds must refuse it.
    pub fn needs_feature(&self) -> bool {
        self.keeps_rows_of_other_schemas()
            || matches!(self.kind, VersionKind::Alter | VersionKind::Update | VersionKind::Merge | VersionKind::Expire)
    }

    /// Whether it changes the schema of a table without replacing its rows.
    pub fn keeps_rows_of_other_schemas(&self) -> bool {
        self.schema.is_some() && !matches!(self.kind, VersionKind::Create | VersionKind::Write)
    }

    /// A change of `kind` that does not change anything yet.
    pub fn new(kind: VersionKind) -> Self {
        Self { kind, schema: None, kill: Kill::None, deletions: Vec::new(), groups: Vec::new(), metadata: None }
    }
}

/// A row group that a rewrite made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewrittenGroup {
    /// Where its bytes are.
    pub address: Address,
    /// Its rows.
    pub rows: u32,
    /// Which of the table's schemas it has.
    pub schema: u32,
    /// Covers all rows in order.
    pub runs: Vec<Run>,
    /// Rows deleted individually.
    pub deletions: Vec<Deletion>,
    /// In which order its rows stand.
    pub standing: Standing,
}

impl RewrittenGroup {
    /// Its record in a table.
    pub(in crate::table) fn record(&self, id: GroupId) -> RowGroup {
        RowGroup {
            id,
            address: self.address,
            rows: self.rows,
            schema: self.schema,
            runs: self.runs.clone(),
            deletions: self.deletions.clone(),
            standing: self.standing,
            only: None,
            patched: None,
            bounds: Memo::default(),
            ends: Memo::default(),
        }
    }
}

/// Replaces adjacent row groups by others that hold the same rows for every retained version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewrite {
    /// Row groups that must all still exist; otherwise the rewrite is void.
    pub inputs: Vec<GroupId>,
    /// What replaces them.
    pub outputs: Vec<RewrittenGroup>,
}
