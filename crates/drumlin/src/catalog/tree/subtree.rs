//! Copies and moves of nodes with everything below them: payloads, retention, life conditions and tables. No data is
//! written; a moved table is only linked to another path.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::walk::each_below;
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, TableId, Version};
use crate::catalog::{Draft, Effect, Keep, Node, Path, Payload, Retention, State};
use crate::table::{StoredSchema, TableChange, VersionKind};

/// What to do where something is in the place of what is copied or moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Refuse the whole call, naming it.
    #[default]
    Refuse,
    /// A table there gets a version with the rows of the other, and keeps its own versions; a payload is replaced.
    Replace,
}

/// What a copy or a move did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyReport {
    /// Where each table was, and where it or its copy is, in path order.
    pub tables: Vec<(String, String)>,
    /// The number of payloads copied or moved.
    pub payloads: u64,
}

/// A node of a subtree, and where it is to be.
struct PlacedNode {
    from: Path,
    to: Path,
    payload: Option<Payload>,
    retention: Option<Retention>,
    keep: Option<Arc<Keep>>,
    table: Option<TableId>,
}

impl Draft {
    /// Copies the node at `from` with all below it to `to`. Tables are copied with all their versions.
    ///
    /// # Errors
    /// `NotFound` if there is no such node; `AlreadyExists` if a node at or below `to` has a payload or table where one would
    /// be; `InvalidArgument` if one of the paths lies below the other, the life of a node depends on one that is not copied, or a
    /// table cannot replace the other because of its order or key; `Conflict` if rows written by key are in memory.
    pub fn copy_subtree(&mut self, from: &Path, to: &Path, existing: Existing) -> Result<CopyReport> {
        let placed = self.place_subtree(from, to, existing)?;
        self.atomically(|draft| {
            let tables: Vec<CopyOf> = placed
                .iter()
                .filter_map(|node| {
                    node.table.map(|table| CopyOf {
                        table,
                        version: None,
                        from: node.from.clone(),
                        to: node.to.clone(),
                    })
                })
                .collect();
            let payloads = draft.put_nodes(&placed)?;
            let copied = draft.copy_tables(&tables, existing)?;
            draft.keep_nodes(&placed)?;
            Ok(CopyReport { payloads, ..copied })
        })
    }

    /// Moves the node at `from` with all below it to `to`. Tables keep their numbers and all else; the retention in force is
    /// made explicit where the new place has another.
    ///
    /// # Errors
    /// As [`Draft::copy_subtree`], but rows in memory do not matter where nothing is replaced.
    pub fn move_subtree(&mut self, from: &Path, to: &Path, existing: Existing) -> Result<CopyReport> {
        let placed = self.place_subtree(from, to, existing)?;
        self.atomically(|draft| {
            let tables: Vec<(TableId, Path)> =
                placed.iter().filter_map(|node| node.table.map(|table| (table, node.to.clone()))).collect();
            let new = draft.state().tree.get(to.as_str()).is_none() && !planted(Bug::ForgetMovedRetention);
            let payloads = draft.put_nodes(&placed)?;
            let (before, after) = (draft.state().retention_at(from), draft.state().retention_at(to));
            if new && !tables.is_empty() && before != after {
                // For all of them at once.
                draft.apply(vec![Effect::SetRetention { path: to.clone(), retention: Some(before) }])?;
            }
            let moved = draft.move_tables(&tables, existing)?;
            draft.keep_nodes(&placed)?;
            if draft.state().tree.get(from.as_str()).is_some() {
                draft.delete(from.as_str(), None)?;
            }
            Ok(CopyReport { payloads, ..moved })
        })
    }

    /// Copies tables, each to a path of its own.
    ///
    /// # Errors
    /// `AlreadyExists` if a path holds a table that is not to be replaced; `Conflict` if rows written by key are in memory.
    pub fn copy_tables(&mut self, copies: &[CopyOf], existing: Existing) -> Result<CopyReport> {
        check_free(self.state(), copies.iter().map(|copy| &copy.to), existing)?;
        let itself = |copy: &&CopyOf| self.state().table_id_at(&copy.to) == Some(copy.table);
        if let Some(CopyOf { to, .. }) = copies.iter().find(itself) {
            return Err(would_replace_itself(to));
        }
        self.restore_tables(copies)?;
        let tables = copies.iter().map(|copy| (copy.from.to_string(), copy.to.to_string())).collect();
        Ok(CopyReport { tables, payloads: 0 })
    }

    /// Gives the table at each path a version with the rows of another's; where there is none, makes a copy.
    ///
    /// # Errors
    /// `InvalidArgument` if a table has another order or key; `Conflict` if rows written by key are in memory.
    pub fn restore_tables(&mut self, copies: &[CopyOf]) -> Result<()> {
        let mut effects = Vec::with_capacity(copies.len());
        let mut new = self.state().next_table();
        for CopyOf { table: from, version, to, .. } in copies {
            let (from, version) = (*from, *version);
            match self.state().table_id_at(to) {
                Some(there) => {
                    let restored = restore(self.state(), there, from, version);
                    effects.extend(restored.map_err(|e| e.context(format!("'{to}'")))?);
                }
                None => {
                    let table = new;
                    new = TableId(new.0 + 1);
                    effects.push(Effect::CopyTable { from, table, path: to.clone(), version });
                }
            }
        }
        self.apply(effects)
    }

    /// Moves tables, each to a path of its own; one that replaces another goes to the trash.
    ///
    /// # Errors
    /// `AlreadyExists` if a path holds a table that is not to be replaced.
    pub fn move_tables(&mut self, moves: &[(TableId, Path)], existing: Existing) -> Result<CopyReport> {
        check_free(self.state(), moves.iter().map(|(_, to)| to), existing)?;
        let mut report = CopyReport::default();
        let mut retained: BTreeMap<&Path, Retention> = BTreeMap::new();
        let mut effects = Vec::with_capacity(moves.len());
        for (table, to) in moves {
            let from = self.state().path_of(*table);
            let from = from.ok_or_else(|| Error::not_found(format!("table {table} is not in the tree")))?;
            report.tables.push((from.to_string(), to.to_string()));
            if let Some(there) = self.state().table_id_at(to) {
                if there == *table {
                    return Err(would_replace_itself(to));
                }
                let restored = restore(self.state(), there, *table, None);
                effects.extend(restored.map_err(|e| e.context(format!("'{to}'")))?);
                effects.push(Effect::DropTable { table: *table });
                continue;
            }
            retained.insert(to, self.state().retention(*table));
            effects.push(Effect::MoveTable { table: *table, path: to.clone() });
        }
        // What the place that a table leaves had allowed to expire must not expire because of the new one, nor the reverse.
        effects.extend(retained.into_iter().filter_map(|(to, retention)| {
            let other = self.state().retention_at(to) != retention && !planted(Bug::ForgetMovedRetention);
            other.then(|| Effect::SetRetention { path: to.clone(), retention: Some(retention) })
        }));
        self.apply(effects)?;
        Ok(report)
    }

    /// The nodes at and below `from`, and where they are to be.
    fn place_subtree(&self, from: &Path, to: &Path, existing: Existing) -> Result<Vec<PlacedNode>> {
        if to.is_within(from.as_str()) || from.is_within(to.as_str()) {
            return Err(Error::invalid(format!("'{from}' and '{to}' overlap; neither may be at or below the other")));
        }
        let top = self.state().tree.get(from.as_str());
        let top = top.ok_or_else(|| Error::not_found(format!("no node at '{from}'")))?;
        let mut placed = Vec::new();
        let mut failed = None;
        let mut place = |path: &str, node: &Node| match placed_at(from, to, path, node) {
            Ok(node) => placed.push(node),
            Err(e) => failed = failed.take().or(Some(e)),
        };
        place(from.as_str(), top);
        if let Some(below) = top.below() {
            each_below(&mut from.as_str().to_owned(), below, &mut place);
        }
        if let Some(failed) = failed {
            return Err(failed);
        }
        for node in placed.iter().filter(|node| node.payload.is_some() && existing == Existing::Refuse) {
            if self.state().tree.get(node.to.as_str()).is_some_and(|there| there.payload.is_some()) {
                return Err(Error::already_exists(format!("'{}' already has a payload; nothing was done", node.to)));
            }
        }
        Ok(placed)
    }

    /// Puts the payloads and retentions of nodes in their new places; returns the number of payloads.
    fn put_nodes(&mut self, placed: &[PlacedNode]) -> Result<u64> {
        let payloads = placed.iter().filter_map(|node| Some((node.to.as_str(), node.payload.clone()?)));
        let count = payloads.clone().count() as u64;
        self.put_many(payloads)?;
        let retention = |node: &PlacedNode| {
            let retention = Some(node.retention?);
            Some(Effect::SetRetention { path: node.to.clone(), retention })
        };
        self.apply(placed.iter().filter_map(retention).collect())?;
        Ok(count)
    }

    /// Sets the life conditions of nodes in their new places, where all that they depend on is.
    fn keep_nodes(&mut self, placed: &[PlacedNode]) -> Result<()> {
        for node in placed {
            if let Some(keep) = &node.keep {
                self.keep(node.to.as_str(), Keep::clone(keep))?;
            }
        }
        Ok(())
    }
}

/// A table to copy.
#[derive(Clone, Debug)]
pub struct CopyOf {
    /// The table.
    pub table: TableId,
    /// The version to copy; `None`: all that are listed.
    pub version: Option<Version>,
    /// Where the table is.
    pub from: Path,
    /// Where the copy is to be.
    pub to: Path,
}

/// The node at `path`, at or below `from`, as it is to be below `to`.
fn placed_at(from: &Path, to: &Path, path: &str, node: &Node) -> Result<PlacedNode> {
    let path = Path::new(path)?;
    let keep = node.keep().map(|keep| {
        let rebind = |(depends, condition): &(Path, crate::catalog::Condition)| match depends.is_within(from.as_str()) {
            true => Ok((depends.rebased(from, to)?, condition.clone())),
            false => Err(Error::invalid(format!(
                "'{path}' is kept while a condition on '{depends}' holds, and that path is outside '{from}'; remove \
                 the condition first"
            ))),
        };
        let conditions = keep.conditions.iter().map(rebind).collect::<Result<_>>()?;
        Ok::<_, Error>(Arc::new(Keep { conditions, ..Keep::clone(keep) }))
    });
    Ok(PlacedNode {
        to: path.rebased(from, to)?,
        from: path,
        payload: node.payload.clone(),
        retention: node.retention(),
        keep: keep.transpose()?,
        table: node.table(),
    })
}

/// The effects that make the next version of a table out of a version of another, by default its newest. If the table has constraints that
/// the version lacks, one more version has them: whether its rows keep them is for the caller to see ([`restored_in`]).
fn restore(state: &State, table: TableId, from: TableId, version: Option<Version>) -> Result<Vec<Effect>> {
    let source = state.table(from)?.ok_or_else(|| Error::not_found(format!("table {from} no longer exists")))?;
    let newest = source.newest().map(|newest| newest.version);
    let version = version.or(newest).ok_or_else(|| Error::not_found(format!("table {from} has no version")))?;
    let mut effects = vec![Effect::RestoreTable { table, from, version }];
    let there = state.get(table)?;
    if table != from && there.spec == source.spec {
        let schema = there.constrained_beside(source.schema_of(version)?)?;
        let change =
            schema.map(|schema| TableChange { schema: Some(schema), ..TableChange::new(VersionKind::Restore) });
        effects.extend(change.map(|change| Effect::ChangeTable { table, change }));
    }
    Ok(effects)
}

/// The versions that `effects` restore in another schema than they have, to keep constraints: their tables, and those schemas.
pub fn restored_in(effects: &[Effect]) -> Vec<(TableId, Version, &StoredSchema)> {
    let mut found = Vec::new();
    for (effect, next) in effects.iter().zip(effects.iter().skip(1)) {
        if let Effect::RestoreTable { table, from, version } = effect
            && let Effect::ChangeTable { table: changed, change } = next
            && table == changed
        {
            found.extend(change.schema.as_ref().map(|schema| (*from, *version, schema)));
        }
    }
    found
}

/// `AlreadyExists`, naming the paths of `targets` that hold tables that are not to be replaced, if there are any.
fn check_free<'a>(state: &State, targets: impl Iterator<Item = &'a Path>, existing: Existing) -> Result<()> {
    if existing == Existing::Replace {
        return Ok(());
    }
    let held: Vec<String> =
        targets.filter(|path| state.table_id_at(path).is_some()).take(10).map(|path| format!("'{path}'")).collect();
    match held.is_empty() {
        true => Ok(()),
        false => {
            Err(Error::already_exists(format!("there is already a table at {}; nothing was done", held.join(", "))))
        }
    }
}

fn would_replace_itself(path: &Path) -> Error {
    Error::invalid(format!("'{path}' would replace itself; nothing was done"))
}
