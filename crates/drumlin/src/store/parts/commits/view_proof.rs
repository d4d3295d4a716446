//! How a commit keeps views in step: what it changes in them is made before its turn, by reading, and taken in the turn if the sources are
//! still as they were.
//!
//! Whether a commit changes the source of a view is decided in its turn, from its effects: no call can forget one. What was made of a source is
//! right as long as the source is the same, since only commits that change it change its groups in the view. If it is not, the commit is a
//! conflict and prepared again; where nobody would do that, the view is behind with this source from then on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, Seq, TableId, Timestamp, Version};
use crate::catalog::{Effect, Path, Pattern, State, TransactionRecord, ViewDefinition};
use crate::table::RowsChange;

/// How deep views may be over views.
pub(in crate::store) const VIEWS_DEPTH_MAX: usize = 4;

/// What was made of the sources that a commit changes.
#[derive(Clone, Debug, Default)]
pub(in crate::store) enum ViewProof {
    /// Nothing.
    #[default]
    None,
    /// It is being looked for: whatever is done is admitted, to see what that is.
    Sought,
    /// By how many views are in between, view and source; and the state in which the sources were as they are taken to be.
    Found(Arc<State>, BTreeMap<(usize, TableId, Path), SourceDelta>),
}

/// What a commit changes in a view for one source.
#[derive(Clone, Debug)]
pub(in crate::store) struct SourceDelta {
    pub view: TableId,
    pub definition: Arc<ViewDefinition>,
    pub source: Path,
    /// Whether the view was behind with it.
    pub was_behind: bool,
    pub change: ViewChange,
}

/// What happens to a view.
#[derive(Clone, Debug)]
pub(in crate::store) enum ViewChange {
    /// Rows of it are written and deleted: those of all sources of the view together, where they are said of one.
    Rows(Option<RowsChange>),
    /// It is behind with the source from now on.
    Behind,
}

impl SourceDelta {
    /// Whether it also holds for a commit on `now`, as it was made on `then`.
    fn holds(&self, then: &State, now: &State) -> bool {
        let Some(view) = now.row_views.get(self.view).filter(|view| *view.definition == *self.definition) else {
            return false;
        };
        if view.behind.contains_key(&self.source) != self.was_behind {
            return false;
        }
        let [source, known] = [now, then].map(|state| state.table_id_at(&self.source));
        let same = match source.filter(|_| source == known) {
            None => source == known,
            Some(source) => then.has_same_table(now, source) || Self::has_same_rows(then, now, source),
        };
        same || planted(Bug::TrustOldDelta)
    }

    /// Whether a table has the same rows in two states; where they lie does not matter.
    fn has_same_rows(then: &State, now: &State, table: TableId) -> bool {
        let of = |state: &State| state.table(table).ok().flatten();
        matches!((of(then), of(now)), (Some(then), Some(now))
            if then.rows_seq == now.rows_seq && then.schema() == now.schema())
    }

    /// What it does to the view in a state.
    pub fn effect(&self, state: &State) -> Result<Option<Effect>> {
        let table = self.view;
        Ok(match &self.change {
            ViewChange::Rows(None) => None,
            ViewChange::Rows(Some(rows)) => {
                let version = state.get(table)?.next_version();
                Some(Effect::WriteRows { table, version, rows: rows.clone() })
            }
            ViewChange::Behind => Some(Effect::MarkView { table, sources: vec![self.source.clone()], behind: true }),
        })
    }
}

impl ViewProof {
    /// What was made of a source, if it also holds for a commit on `now`.
    fn known(&self, depth: usize, view: TableId, source: &Path, now: &State) -> Option<&SourceDelta> {
        let Self::Found(then, all) = self else { return None };
        let known = all.get(&(depth, view, source.clone()))?;
        known.holds(then, now).then_some(known)
    }

    /// The effects on views of what a commit does, which leads from `before` to `after`; applies them to `after`. `Conflict` if the sources have
    /// changed since, unless `else_behind` says that the views are to be behind then.
    pub fn admit(
        &self,
        before: &State,
        after: &mut State,
        transaction: &TransactionRecord,
        else_behind: bool,
        (seq, time): (Seq, Timestamp),
    ) -> Result<Vec<Effect>> {
        let mut all = Vec::new();
        if matches!(self, Self::Sought) || after.row_views.is_empty() {
            return Ok(all);
        }
        let mut last: Vec<Effect> = Vec::new();
        for depth in 0..=VIEWS_DEPTH_MAX {
            let effects = if depth == 0 { &transaction.effects } else { &last };
            let changed = changed_sources(before, after, effects)?;
            let mut made = Vec::new();
            match changed.iter().find(|(view, source)| self.known(depth, *view, source, before).is_none()) {
                None => {
                    for (view, source) in &changed {
                        made.extend(
                            self.known(depth, *view, source, before)
                                .map(|known| known.effect(after))
                                .transpose()?
                                .flatten(),
                        );
                    }
                }
                // What is said of one source may be of others, too.
                Some(_) if else_behind => made.extend(changed.into_iter().map(|(table, source)| Effect::MarkView {
                    table,
                    sources: vec![source],
                    behind: true,
                })),
                Some((_, source)) => {
                    return Err(Error::conflict(format!("'{source}', which a view is over, was changed in between")));
                }
            }
            if made.is_empty() {
                break;
            }
            let record = TransactionRecord { effects: made };
            after.apply(&record, seq, time)?;
            all.extend(record.effects.iter().cloned());
            last = record.effects;
        }
        Ok(all)
    }
}

/// The sources of views that effects change, which lead from `before` to `after`.
pub(in crate::store) fn changed_sources(
    before: &State,
    after: &State,
    effects: &[Effect],
) -> Result<BTreeSet<(TableId, Path)>> {
    let mut changed = BTreeSet::new();
    if after.row_views.is_empty() {
        return Ok(changed);
    }
    let mut paths: BTreeSet<&Path> = BTreeSet::new();
    for table in effects.iter().flat_map(|effect| changed_tables(before, effect)) {
        paths.extend(before.path_of(table));
        paths.extend(after.path_of(table));
    }
    if paths.is_empty() {
        return Ok(changed);
    }
    for (table, view) in after.row_views.iter() {
        let pattern = Pattern::new(&view.definition.over)?;
        changed.extend(
            paths.iter().filter(|path| pattern.matches_path(path.as_str())).map(|path| (table, (*path).clone())),
        );
    }
    Ok(changed)
}

/// The tables whose rows an effect may change, or that get another path.
fn changed_tables(before: &State, effect: &Effect) -> Vec<TableId> {
    match effect {
        Effect::DeleteVersions { table, versions } if has_newest(before, *table, versions) => vec![*table],
        Effect::CreateTable { table, .. }
        | Effect::ChangeTable { table, .. }
        | Effect::UpdateTable { table, .. }
        | Effect::PatchTable { table, .. }
        | Effect::RestoreTable { table, .. }
        | Effect::WriteRows { table, .. }
        | Effect::CopyTable { table, .. }
        | Effect::MoveTable { table, .. }
        | Effect::DropTable { table }
        | Effect::UndropTable { table, .. } => vec![*table],
        Effect::EraseRows { tables, .. } => tables.clone(),
        Effect::AdoptTables { tables } => tables.iter().map(|(table, ..)| *table).collect(),
        _ => Vec::new(),
    }
}

/// Whether the newest version of a table is among these: then the rows of the one before it are seen again.
fn has_newest(state: &State, table: TableId, versions: &[Version]) -> bool {
    let table = state.table(table).ok().flatten();
    table.is_none_or(|table| table.newest().is_some_and(|newest| versions.contains(&newest.version)))
}

/// Fails if a table is a view, whose rows nobody writes.
pub(in crate::store) fn refuse_view(state: &State, table: TableId) -> Result<()> {
    let Some(view) = state.row_views.get(table) else { return Ok(()) };
    let (path, over) = (state.path_of(table).map_or_else(String::new, ToString::to_string), &view.definition.over);
    Err(Error::invalid(format!("'{path}' is a view; change the tables that it is over, '{over}'")))
}

/// Refuses what a caller does to the rows of views (a purge erases those that it makes again), and tables that would make a view a source of itself.
pub(in crate::store) fn refuse_changes_of_views(before: &State, transaction: &TransactionRecord) -> Result<()> {
    if before.row_views.is_empty() {
        return Ok(());
    }
    let refused = |table: &TableId| refuse_view(before, *table).err();
    for effect in &transaction.effects {
        let table = match effect {
            Effect::ChangeTable { table, .. }
            | Effect::UpdateTable { table, .. }
            | Effect::PatchTable { table, .. }
            | Effect::RestoreTable { table, .. }
            | Effect::WriteRows { table, .. }
            | Effect::PutView { table, .. } => refused(table),
            // Whose rows are compared only in commits that callers ask for.
            Effect::PutIndex { table, definition } if definition.is_unique() => refused(table),
            Effect::DeleteVersions { table, versions } if has_newest(before, *table, versions) => refused(table),
            Effect::MoveTable { table, path } if before.row_views.get(*table).is_some() => {
                let mut views = before.row_views.iter();
                let over = views.find_map(|(_, view)| {
                    let pattern = Pattern::new(&view.definition.over).ok()?;
                    pattern.matches_path(path.as_str()).then_some(&view.definition.over)
                });
                over.map(|over| {
                    let from = before.path_of(*table).map_or_else(String::new, ToString::to_string);
                    Error::invalid(format!(
                        "'{from}' is a view and cannot be moved to '{path}', which is among what a view is over, '{over}'"
                    ))
                })
            }
            _ => None,
        };
        if let Some(refused) = table {
            return Err(refused);
        }
    }
    Ok(())
}
