//! The operations of `swarm`.

use crate::columns::evolve_model::{Change, Frame};

/// The kind of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kinded {
    #[default]
    Plain,
    Sorted,
    Keyed,
}

/// Which rows are deleted.
#[derive(Clone, Debug)]
pub enum Where {
    /// Whose key leaves a rest.
    Rest(i64),
    /// That have a value in a column, so that only nulls are left of it.
    NotNull(String),
    /// Whose key is at least that; maybe all.
    From(i64),
}

/// A call that is refused whatever the table is.
#[derive(Clone, Copy, Debug)]
pub enum Wrong {
    Update,
    Delete,
    Merge,
    Append,
    Upsert,
    Create,
    Restore,
    Alter,
    DeleteVersions,
    Snapshot,
    Copy,
    Node,
}

impl Wrong {
    pub const ALL: [Wrong; 12] = [
        Wrong::Update,
        Wrong::Delete,
        Wrong::Merge,
        Wrong::Append,
        Wrong::Upsert,
        Wrong::Create,
        Wrong::Restore,
        Wrong::Alter,
        Wrong::DeleteVersions,
        Wrong::Snapshot,
        Wrong::Copy,
        Wrong::Node,
    ];
}

/// One operation. Of those by key, the last value says whether they write row groups.
#[derive(Clone, Debug)]
pub enum Op {
    Create(String, Kinded, Frame),
    Write(String, Frame),
    Append(String, Frame, bool),
    Replace(String, Frame),
    /// Rows whose key leaves a rest, replaced by others.
    ReplaceWhere(String, i64, Frame),
    Upsert(String, Frame, bool, bool),
    Insert(String, Frame, bool),
    DeleteKeys(String, Vec<i64>, bool),
    /// Numbers are added to a column, by key.
    Increment(String, String, Vec<(i64, i64)>),
    /// A column of the row with a key gets a value, if it has another.
    CompareAndSet(String, String, i64, Option<i64>, Option<i64>),
    /// A column is set, in all rows or those whose key leaves a rest.
    Update(String, String, Option<i64>, Option<i64>),
    Merge(String, Frame),
    Delete(String, Where),
    Alter(String, Change),
    /// A new column, computed from another and a number.
    Computed(String, String, String, i64),
    /// An index over a column, by its place, is made; if there is one, it is dropped.
    Index(String, usize),
    /// Row groups are laid out by a column, by its place, or by it and the next, or no more.
    Layout(String, usize),
    Restore(String, u64),
    DeleteVersions(String, Vec<u64>),
    Keep(String, Option<u64>),
    /// With all versions, or one.
    Copy(String, String, Option<u64>),
    /// In the place of another table.
    CopyOver(String, String),
    Move(String, String),
    Drop(String),
    Undrop(String),
    Snapshot(String),
    DropSnapshot(String),
    Refused(String, Wrong),
    /// In one transaction, during which a checkpoint may be made.
    Together(Vec<Op>, bool),
    /// While a checkpoint is made.
    Beside(Box<Op>),
    Checkpoint,
    /// A checkpoint after which no deleted row is left.
    Purging,
    /// Erases rows whose key leaves a rest, wherever they are.
    Erase(i64),
    Reclaim,
    Audit,
    Reopen,
}

impl Op {
    /// The path of the table that it is about, if it is one.
    pub fn path(&self) -> Option<&String> {
        match self {
            Op::Create(path, ..)
            | Op::Write(path, ..)
            | Op::Append(path, ..)
            | Op::Replace(path, ..)
            | Op::ReplaceWhere(path, ..)
            | Op::Upsert(path, ..)
            | Op::Insert(path, ..)
            | Op::DeleteKeys(path, ..)
            | Op::Increment(path, ..)
            | Op::CompareAndSet(path, ..)
            | Op::Update(path, ..)
            | Op::Merge(path, ..)
            | Op::Delete(path, ..)
            | Op::Alter(path, ..)
            | Op::Computed(path, ..)
            | Op::Index(path, _)
            | Op::Layout(path, _)
            | Op::Restore(path, ..)
            | Op::DeleteVersions(path, ..)
            | Op::Keep(path, ..)
            | Op::Copy(path, ..)
            | Op::CopyOver(path, ..)
            | Op::Move(path, ..)
            | Op::Drop(path)
            | Op::Undrop(path)
            | Op::Refused(path, ..) => Some(path),
            Op::Together(ops, _) => ops.iter().find_map(Op::path),
            Op::Beside(op) => op.path(),
            _ => None,
        }
    }

    /// The paths of all tables that it is about; `None` if it is about all there are.
    pub fn paths(&self) -> Option<Vec<&String>> {
        match self {
            Op::Copy(from, to, _) | Op::CopyOver(from, to) | Op::Move(from, to) => Some(vec![from, to]),
            Op::Together(ops, _) => Some(ops.iter().filter_map(Op::path).collect()),
            other => other.path().map(|path| vec![path]),
        }
    }

    pub fn verb(&self) -> &'static str {
        match self {
            Op::Create(..) => "create",
            Op::Write(..) => "write",
            Op::Append(..) => "append",
            Op::Replace(..) => "replace",
            Op::ReplaceWhere(..) => "replace_where",
            Op::Upsert(..) => "upsert",
            Op::Insert(..) => "insert",
            Op::DeleteKeys(..) => "delete_keys",
            Op::Increment(..) => "increment",
            Op::CompareAndSet(..) => "compare_and_set",
            Op::Update(..) => "update",
            Op::Merge(..) => "merge",
            Op::Delete(..) => "delete",
            Op::Alter(..) => "columns",
            Op::Computed(..) => "computed",
            Op::Index(..) => "index",
            Op::Layout(..) => "layout",
            Op::Restore(..) => "restore",
            Op::DeleteVersions(..) => "delete_versions",
            Op::Keep(..) => "retention",
            Op::Copy(..) => "copy",
            Op::CopyOver(..) => "copy_over",
            Op::Move(..) => "move",
            Op::Drop(_) => "drop",
            Op::Undrop(_) => "undrop",
            Op::Snapshot(_) => "snapshot",
            Op::DropSnapshot(_) => "drop_snapshot",
            Op::Refused(..) => "refused",
            Op::Together(..) => "transaction",
            Op::Beside(_) => "beside",
            Op::Checkpoint => "checkpoint",
            Op::Purging => "purging",
            Op::Erase(_) => "erase",
            Op::Reclaim => "reclaim",
            Op::Audit => "audit",
            Op::Reopen => "reopen",
        }
    }
}
