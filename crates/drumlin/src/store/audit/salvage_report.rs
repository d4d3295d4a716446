//! What a salvage kept, and what it could not keep: each loss separately, with the reason.

use std::fmt;

use crate::base::{Seq, Version};

/// What kind of thing is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossKind {
    /// Part of the log is damaged; what is lost by that is listed separately.
    Log,
    /// Commits that were made are missing.
    Commits,
    /// The newest catalog snapshot could not be used, or not as a whole.
    Catalog,
    /// Nodes from one path up to another.
    Nodes,
    /// A table, or the path of one.
    Table,
    /// Rows of a table: a row group that could not be read.
    Rows,
    /// Rows that were written by key and were only in memory and the log.
    RowsInMemory,
    /// A snapshot, or part of what it held.
    Snapshot,
    /// Part of a commit that could not be applied to what is left.
    Change,
}

impl LossKind {
    /// The name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            LossKind::Log => "log",
            LossKind::Commits => "commits",
            LossKind::Catalog => "catalog",
            LossKind::Nodes => "nodes",
            LossKind::Table => "table",
            LossKind::Rows => "rows",
            LossKind::RowsInMemory => "rows in memory",
            LossKind::Snapshot => "snapshot",
            LossKind::Change => "change",
        }
    }
}

/// Consecutive rows that one version of a table has lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostRows {
    /// The version.
    pub version: Version,
    /// The first lost row, counted from 0 in the order in which the version's rows are stored.
    pub first: u64,
    /// How many.
    pub rows: u64,
}

/// Something that could not be salvaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// What kind of thing.
    pub kind: LossKind,
    /// The table's path; for nodes, where they begin; for a snapshot, its name. `None` if it is unknown, or if there is
    /// none.
    pub path: Option<String>,
    /// Of nodes: the path after the last; `None` if there is none.
    pub until: Option<String>,
    /// The first and last of the commits.
    pub commits: Option<(Seq, Seq)>,
    /// The row group.
    pub group: Option<u64>,
    /// The rows that each version has lost.
    pub versions: Vec<LostRows>,
    /// Why; names object and offset if there is one.
    pub why: String,
}

impl Loss {
    /// A loss of which only the reason is known yet.
    pub(in crate::store) fn new(kind: LossKind, why: impl Into<String>) -> Self {
        let (path, until, commits, group, versions) = (None, None, None, None, Vec::new());
        Self { kind, path, until, commits, group, versions, why: why.into() }
    }

    pub(in crate::store) fn at(self, path: Option<impl ToString>) -> Self {
        Self { path: path.map(|path| path.to_string()), ..self }
    }

    pub(in crate::store) fn of_commits(self, first: Seq, last: Seq) -> Self {
        Self { commits: Some((first, last)), ..self }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.as_deref().map_or_else(|| "(path unknown)".to_owned(), |path| format!("'{path}'"));
        match self.kind {
            LossKind::Log => write!(f, "the log is damaged")?,
            LossKind::Catalog => write!(f, "the catalog is damaged")?,
            LossKind::Commits => write!(f, "commits are lost")?,
            LossKind::Nodes => {
                let end = |path: &Option<String>, or: &str| path.as_ref().map_or(or.to_owned(), |p| format!("'{p}'"));
                let (from, until) = (end(&self.path, "the first"), end(&self.until, "the end"));
                write!(f, "nodes from {from} up to {until} are lost")?;
            }
            LossKind::Table => write!(f, "table {path}")?,
            LossKind::Rows => write!(f, "rows of {path} are lost")?,
            LossKind::RowsInMemory => write!(f, "rows of {path} that were in memory are lost")?,
            LossKind::Snapshot => write!(f, "snapshot {path}")?,
            LossKind::Change => write!(f, "part of a commit does not apply to {path}")?,
        }
        match self.commits {
            Some((first, last)) if first == last => write!(f, " (commit {first})")?,
            Some((first, last)) => write!(f, " (commits {first} to {last})")?,
            None => {}
        }
        if let Some(group) = self.group {
            write!(f, " (row group {group}")?;
            for LostRows { version, first, rows } in &self.versions {
                write!(f, "; version {version}: rows {first} to {}", first + rows - 1)?;
            }
            write!(f, ")")?;
        }
        write!(f, ": {}", self.why)
    }
}

/// What a salvage did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// The last commit of the damaged store that is in the new one.
    pub seq: Seq,
    /// Tables kept, including those in the trash and those held by snapshots.
    pub tables: u64,
    /// Row groups kept.
    pub groups: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Nodes kept.
    pub nodes: u64,
    /// What could not be kept. Empty if nothing was damaged.
    pub losses: Vec<Loss>,
}

impl fmt::Display for SalvageReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seq, tables, groups, bytes, nodes, losses } = self;
        let losses = losses.len();
        write!(
            f,
            "up to commit {seq}: {tables} tables, {groups} row groups, {bytes} bytes, {nodes} nodes kept; {losses} losses"
        )
    }
}
