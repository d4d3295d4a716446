//! The verbs of the random operations whose pairs are counted: each is to be followed by each.

/// When an operation is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Always.
    Nothing,
    /// If there is a table at the path.
    Table,
    /// If there is none.
    Absence,
}

/// A verb, and when it is possible. Those of the whole store count for each table.
pub const VERBS: [(&str, Needs); 36] = [
    ("create", Needs::Absence),
    ("write", Needs::Table),
    ("append", Needs::Table),
    ("replace", Needs::Table),
    ("replace_where", Needs::Table),
    ("upsert", Needs::Table),
    ("insert", Needs::Table),
    ("delete_keys", Needs::Table),
    ("increment", Needs::Table),
    ("compare_and_set", Needs::Table),
    ("update", Needs::Table),
    ("merge", Needs::Table),
    ("delete", Needs::Table),
    ("columns", Needs::Table),
    ("computed", Needs::Table),
    ("index", Needs::Table),
    ("layout", Needs::Table),
    ("restore", Needs::Table),
    ("delete_versions", Needs::Table),
    ("retention", Needs::Nothing),
    ("copy", Needs::Table),
    ("copy_over", Needs::Table),
    ("move", Needs::Table),
    ("drop", Needs::Table),
    ("undrop", Needs::Absence),
    ("snapshot", Needs::Table),
    ("drop_snapshot", Needs::Nothing),
    ("refused", Needs::Table),
    ("transaction", Needs::Table),
    ("beside", Needs::Table),
    ("checkpoint", Needs::Nothing),
    ("purging", Needs::Nothing),
    ("erase", Needs::Nothing),
    ("reclaim", Needs::Nothing),
    ("audit", Needs::Nothing),
    ("reopen", Needs::Nothing),
];

/// Kinds of tables.
pub const KINDS: [&str; 3] = ["plain", "sorted", "keyed"];

/// Where rows lie: in memory, in row groups, in patched ones, in blocks that travel in commits, in row groups that several tables or
/// versions share.
pub const LIES: [&str; 5] = ["memory", "row groups", "patches", "inline", "copied"];

/// Storages.
pub const STORAGES: [&str; 3] = ["folder", "shared", "bucket"];
