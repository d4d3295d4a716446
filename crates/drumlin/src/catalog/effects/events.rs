//! What commits did, as events: the effects again, each with the node before and after it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::{Error, Result, Seq, TableId};
use crate::catalog::{
    Action, Cause, Effect, Keep, NodeEffect, NodeEffects, NodeInfo, NodeTree, Path, Payload, State, TransactionRecord,
};
use crate::table::VersionKind;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// To a node.
    Node(NodeEvent),
    /// To a table.
    Table(TableEvent),
}

/// What happened to a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeEvent {
    /// The node.
    pub path: String,
    /// The kind of event.
    pub action: Action,
    /// What it was just before.
    pub before: Option<NodeInfo>,
    /// What it was just after.
    pub after: Option<NodeInfo>,
    /// Why, if it was deleted.
    pub cause: Cause,
}

/// What happened to a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableEvent {
    /// Where it was, or where it was created.
    pub path: String,
    /// The table.
    pub table: TableId,
    /// The kind of event.
    pub action: TableAction,
}

/// The kind of an event on a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableAction {
    /// It got a new version.
    Version(VersionKind),
    /// It lost versions.
    DeleteVersions,
    /// It was dropped.
    Drop,
    /// It was restored from the trash.
    Undrop,
    /// Rows were written or deleted by key, without a version of their own.
    Rows,
    /// It was made as a copy of another.
    Copy,
    /// It was moved here from another path.
    Move,
    /// It was moved from here to another path.
    MoveAway,
    /// Rows of it were erased from all versions.
    Purge,
    /// The writer's metadata of a version were changed.
    Metadata,
}

/// Calls `found` with each event of the transactions of the commit `seq`, in effect order, until it returns `false`.
/// `before` is the state that they were applied to, `after` the one that they led to.
pub fn events(
    transactions: &[TransactionRecord],
    seq: Seq,
    before: &State,
    after: &State,
    found: &mut dyn FnMut(Event) -> bool,
) -> Result<()> {
    let mut tree = before.tree.clone();
    // Where the commit has put tables so far.
    let mut put: BTreeMap<TableId, Path> = BTreeMap::new();
    let place = |put: &BTreeMap<TableId, Path>, id: TableId| {
        let trash = || after.trash.get(id).map(|trash| &trash.path);
        put.get(&id).or_else(|| before.path_of(id)).or_else(|| after.path_of(id)).or_else(trash).cloned()
    };
    let table_event = |put: &BTreeMap<TableId, Path>, table: TableId, action| {
        Some(Event::Table(TableEvent { path: place(put, table)?.to_string(), table, action }))
    };
    for effect in transactions.iter().flat_map(|transaction| &transaction.effects) {
        let event = match effect {
            Effect::Nodes(nodes) => {
                if !node_events(&mut tree, nodes, seq, found)? {
                    return Ok(());
                }
                None
            }
            Effect::SetRetention { path, retention } => {
                tree.edit(path.as_str(), seq, |node| node.edit_extra(|extra| extra.retention = *retention));
                None
            }
            Effect::CreateTable { table, path, .. } => {
                put.insert(*table, path.clone());
                set_table(&mut tree, path, seq, Some(*table));
                None
            }
            Effect::WriteRows { table, .. } => table_event(&put, *table, TableAction::Rows),
            Effect::DeleteVersions { table, .. } => table_event(&put, *table, TableAction::DeleteVersions),
            Effect::DropTable { table } => {
                if let Some(path) = place(&put, *table) {
                    set_table(&mut tree, &path, seq, None);
                }
                table_event(&put, *table, TableAction::Drop)
            }
            Effect::UndropTable { table, path } | Effect::CopyTable { table, path, .. } => {
                put.insert(*table, path.clone());
                set_table(&mut tree, path, seq, Some(*table));
                let undrops = matches!(effect, Effect::UndropTable { .. });
                table_event(&put, *table, if undrops { TableAction::Undrop } else { TableAction::Copy })
            }
            Effect::MoveTable { table, path } => {
                let left = place(&put, *table);
                put.insert(*table, path.clone());
                if !moved(&mut tree, *table, left.as_ref(), path, seq).into_iter().all(&mut *found) {
                    return Ok(());
                }
                None
            }
            Effect::AdoptTables { tables } => {
                for (table, path, _) in tables {
                    put.insert(*table, path.clone());
                    set_table(&mut tree, path, seq, Some(*table));
                }
                if !tables
                    .iter()
                    .filter_map(|(table, ..)| table_event(&put, *table, TableAction::Copy))
                    .all(&mut *found)
                {
                    return Ok(());
                }
                None
            }
            Effect::EraseRows { tables, .. } => {
                if !tables.iter().filter_map(|table| table_event(&put, *table, TableAction::Purge)).all(&mut *found) {
                    return Ok(());
                }
                None
            }
            Effect::SetMetadata { table, .. } => table_event(&put, *table, TableAction::Metadata),
            _ => effect.version().and_then(|(table, kind)| table_event(&put, table, TableAction::Version(kind))),
        };
        if event.is_some_and(|event| !found(event)) {
            return Ok(());
        }
    }
    Ok(())
}

/// Moves a table, from `left` to `path`; returns what happened.
fn moved(tree: &mut NodeTree, table: TableId, left: Option<&Path>, path: &Path, seq: Seq) -> Vec<Event> {
    let event = |path: &Path, action| Event::Table(TableEvent { path: path.to_string(), table, action });
    left.iter().for_each(|left| set_table(tree, left, seq, None));
    set_table(tree, path, seq, Some(table));
    let away = left.map(|left| event(left, TableAction::MoveAway));
    away.into_iter().chain([event(path, TableAction::Move)]).collect()
}

fn set_table(tree: &mut NodeTree, path: &Path, seq: Seq, table: Option<TableId>) {
    tree.edit(path.as_str(), seq, |node| node.edit_extra(|extra| extra.table = table));
}

/// Applies the effects to `tree` and reports each. Returns whether to continue.
fn node_events(
    tree: &mut NodeTree,
    nodes: &NodeEffects,
    seq: Seq,
    found: &mut dyn FnMut(Event) -> bool,
) -> Result<bool> {
    // The tree before the last delete, for the nodes deleted along with it.
    let mut was = NodeTree::default();
    let mut reader = nodes.reader();
    while let Some((path, effect)) = reader.advance()? {
        let (action, before, cause) = match effect {
            NodeEffect::Put { payload, created } => {
                let payload = Payload::from_stored(payload)?;
                let before = tree.info(path);
                tree.edit(path, seq, |node| node.set_payload(Some(payload)));
                (if created { Action::Create } else { Action::Update }, before, Cause::Asked)
            }
            NodeEffect::Clear { gone } => {
                let before = tree.info(path);
                tree.edit(path, seq, |node| node.set_payload(None));
                (if gone { Action::Delete } else { Action::Update }, before, Cause::Asked)
            }
            NodeEffect::Delete { cause: Cause::Above } => (Action::Delete, was.info(path), Cause::Above),
            NodeEffect::Delete { cause } => {
                was = tree.clone();
                tree.remove(path, |_| Ok::<_, Error>(()))?;
                (Action::Delete, was.info(path), cause)
            }
            // A life condition is reported only through its consequences.
            NodeEffect::Keep { keep } => {
                let keep = if keep.is_empty() { None } else { Some(Arc::new(Keep::decode(keep)?)) };
                tree.edit(path, seq, |node| node.edit_extra(|extra| extra.keep = keep));
                continue;
            }
        };
        let after = if action == Action::Delete { None } else { tree.info(path) };
        if !found(Event::Node(NodeEvent { path: path.to_owned(), action, before, after, cause })) {
            return Ok(false);
        }
    }
    Ok(true)
}
