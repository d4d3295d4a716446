//! Old versions in new places: restores, copies and moves, each one commit that writes no data.

use std::collections::BTreeSet;

use crate::base::{Error, Result, TableId, Task, Version};
use crate::catalog::{CopyOf, CopyReport, Draft, Effect, Existing, Footprint, Path, Pattern, Read, State, restored_in};
use crate::store::commit::in_groups::MemoryScope;
use crate::store::nouns::transaction::OpenTransaction;
use crate::store::read::resolve::{AsOf, held_in, is_younger, numbered, resolve, table_at};
use crate::store::{Place, Store};
use crate::table::{Since, TableState, refuse_matching};

/// What is copied or moved: a node with all below it, or the tables that a pattern matches.
#[derive(Clone)]
enum Which {
    Subtree(Path, Path),
    Tables(Pattern, Pattern),
}

impl Which {
    fn new(from: &str, to: &str) -> Result<Self> {
        let (from, to) = (Pattern::new(from)?, Pattern::new(to)?);
        match (from.literal(), to.literal()) {
            (Some(from), Some(to)) => Ok(Which::Subtree(Path::new(from)?, Path::new(to)?)),
            _ if from.variable_parts() == to.variable_parts() => Ok(Which::Tables(from, to)),
            _ => Err(Error::invalid(format!(
                "'{from}' has {} wildcard parts, but '{to}' has {}; expected the same number, since the names that \
                 match the first replace those in the second",
                from.variable_parts(),
                to.variable_parts()
            ))),
        }
    }

    /// Whether it names the table at `path`.
    fn names(&self, path: &Path) -> bool {
        match self {
            Which::Subtree(from, _) => path.is_within(from.as_str()),
            Which::Tables(from, _) => from.matches_path(path.as_str()),
        }
    }

    /// Where the table at `path` is to be; `None` if it is not named.
    fn target(&self, path: &Path) -> Result<Option<Path>> {
        match self {
            _ if !self.names(path) => Ok(None),
            Which::Subtree(from, to) => path.rebased(from, to).map(Some),
            Which::Tables(from, to) => Path::new(&to.with_names(&from.variable_names(path.as_str())?)).map(Some),
        }
    }

    /// The tables that it names in `state`, and where they are to be.
    fn tables(&self, state: &State) -> Result<Vec<(TableId, Path, Path)>> {
        let (top, pattern) = match self {
            Which::Subtree(from, _) => (state.table_id_at(from).map(|table| (from, table)), Pattern::below(from)),
            Which::Tables(from, _) => (None, from.clone()),
        };
        let found = top.into_iter().chain(state.ids_matching(&pattern));
        let placed = found.map(|(path, table)| Ok(self.target(path)?.map(|to| (table, path.clone(), to))));
        placed.filter_map(Result::transpose).collect()
    }

    /// The tables with the version that `as_of` sees of each; those that were made after its time are left out.
    fn copies(&self, state: &State, as_of: &AsOf) -> Result<Vec<CopyOf>> {
        let mut copies = Vec::new();
        let as_of = &*as_of.settled(state);
        if let AsOf::Snapshot(name) = as_of {
            for (from, (table, version)) in held_in(state, name, |path| self.names(path))? {
                let copy = |to| CopyOf { table, version: Some(version), from: from.clone(), to };
                copies.extend(self.target(&from)?.map(copy));
            }
            return Ok(copies);
        }
        for (table, from, to) in self.tables(state)? {
            if !is_younger(&*state.get(table)?, as_of) {
                copies.push(CopyOf { table, version: version_of(state, &from, as_of)?, from, to });
            }
        }
        Ok(copies)
    }

    fn copy(&self, draft: &mut Draft, as_of: &AsOf, existing: Existing) -> Result<CopyReport> {
        if let (Which::Subtree(from, to), AsOf::Newest) = (self, as_of) {
            return draft.copy_subtree(from, to, existing);
        }
        let copies = self.copies(draft.state(), as_of)?;
        self.found(copies.is_empty())?;
        draft.copy_tables(&copies, existing)
    }

    fn relocate(&self, draft: &mut Draft, existing: Existing) -> Result<CopyReport> {
        match self {
            Which::Subtree(from, to) => draft.move_subtree(from, to, existing),
            Which::Tables(..) => {
                let tables = self.tables(draft.state())?;
                self.found(tables.is_empty())?;
                draft.move_tables(&tables.into_iter().map(|(table, _, to)| (table, to)).collect::<Vec<_>>(), existing)
            }
        }
    }

    /// The tables that are replaced, and those that replace them.
    fn replaced(&self, state: &State) -> Result<BTreeSet<TableId>> {
        let pairs = self.tables(state)?.into_iter().filter_map(|(table, _, to)| Some([table, state.table_id_at(&to)?]));
        Ok(pairs.flatten().collect())
    }

    fn found(&self, none: bool) -> Result<()> {
        match (none, self) {
            (false, _) => Ok(()),
            (true, Which::Subtree(from, _)) => {
                Err(Error::not_found(format!("no table at or below '{from}' at that time")))
            }
            (true, Which::Tables(from, _)) => Err(Error::not_found(format!("no table matches '{from}'"))),
        }
    }

    /// What the outcome depends on.
    fn reads(&self, state: &State, as_of: Option<&AsOf>) -> Result<Vec<Read>> {
        let mut reads = match self {
            Which::Subtree(from, to) => vec![
                Read::Node(from.to_string()),
                Read::Pattern(Pattern::below(from)),
                Read::Node(to.to_string()),
                Read::Pattern(Pattern::below(to)),
            ],
            Which::Tables(from, _) => vec![Read::Pattern(from.clone())],
        };
        reads.extend(as_of.map(|_| Read::Snapshots));
        let mut tables = self.replaced(state)?;
        if as_of.is_some() {
            tables.extend(self.tables(state)?.into_iter().map(|(table, ..)| table));
        }
        reads.extend(tables.into_iter().flat_map(|table| [Read::Rows(table), Read::Versions(table)]));
        Ok(reads)
    }
}

impl Place {
    /// Copies tables: see [`crate::store::Tables::copy`].
    pub(in crate::store) fn copy(&self, from: &str, to: &str, as_of: &AsOf, existing: Existing) -> Result<CopyReport> {
        let which = Which::new(from, to)?;
        let (found, seen) = ((which.clone(), as_of.clone()), as_of.clone());
        self.change_settled(
            move |state| Ok(waiting(state, tables_of(state, &found.0.copies(state, &found.1)?))),
            |state| which.reads(state, Some(as_of)),
            {
                let which = which.clone();
                move |draft| which.copy(draft, &seen, existing)
            },
        )
    }

    /// Moves tables and nodes: see [`crate::store::Tables::relocate`].
    pub(in crate::store) fn relocate(&self, from: &str, to: &str, existing: Existing) -> Result<CopyReport> {
        let which = Which::new(from, to)?;
        let found = which.clone();
        self.change_settled(
            move |state| Ok(waiting(state, found.replaced(state)?)),
            |state| which.reads(state, None),
            {
                let which = which.clone();
                move |draft| which.relocate(draft, existing)
            },
        )
    }

    /// Makes old versions the newest: see [`crate::store::Tables::restore`].
    pub(in crate::store) fn restore(&self, pattern: Pattern, as_of: &AsOf) -> Result<Vec<String>> {
        if *as_of == AsOf::Newest {
            return Err(Error::invalid("give the versions to restore as as_of: a number, a time or a snapshot"));
        }
        let (of, seen) = (pattern.clone(), as_of.clone());
        self.change_settled(
            |state| Ok(waiting(state, tables_of(state, &restored(state, &pattern, as_of)?))),
            |state| {
                let tables = tables_of(state, &restored(state, &pattern, as_of)?);
                let rows = tables.into_iter().flat_map(|table| [Read::Rows(table), Read::Versions(table)]);
                Ok([Read::Pattern(pattern.clone()), Read::Snapshots].into_iter().chain(rows).collect())
            },
            move |draft| {
                let restored = restored(draft.state(), &of, &seen)?;
                draft.restore_tables(&restored)?;
                Ok(restored.into_iter().map(|copy| copy.to.to_string()).collect())
            },
        )
    }

    /// Changes tables in a way for which the rows of some, `unsettled`, must lie in row groups.
    fn change_settled<T: Send + 'static>(
        &self,
        unsettled: impl Fn(&State) -> Result<BTreeSet<TableId>>,
        reads: impl Fn(&State) -> Result<Vec<Read>>,
        work: impl Fn(&mut Draft) -> Result<T> + Clone + Send + 'static,
    ) -> Result<T> {
        let in_open = |store: &Store, open: &mut OpenTransaction| {
            let (reads, waiting) = (reads(open.draft.state())?, unsettled(open.draft.state())?);
            open.with_rows_in_groups(store, &waiting, MemoryScope::All, |open| {
                let before = open.draft.effects().len();
                let done = work(&mut open.draft)?;
                let effects = open.draft.effects().get(before..).unwrap_or_default();
                store.test_restored(open.draft.state(), effects)?;
                open.apply(Footprint { reads }, Vec::new(), None)?;
                Ok(done)
            })
        };
        match self {
            Place::Store(store) => {
                let mut in_turn = true;
                store.call()?.attempt(|| {
                    // In the turn of a commit no rows are read.
                    if std::mem::take(&mut in_turn) && unsettled(&*store.current()?)?.is_empty() {
                        let work = work.clone();
                        return Ok(store.commit_in_turn(move |draft| {
                            let done = work(draft)?;
                            match restored_in(draft.effects()).is_empty() {
                                true => Ok(done),
                                false => {
                                    Err(Error::conflict("the constraints of the restored rows must be checked first"))
                                }
                            }
                        }));
                    }
                    let committed = store.attempt_alone(&unsettled, |store, open| in_open(store, open))?;
                    Ok(committed.map(|(_, value)| value))
                })
            }
            Place::Transaction(transaction) => transaction.change_tables(in_open),
        }
    }
}

impl Store {
    /// Fails if rows of versions that `effects` restore do not keep the constraints of the tables that get them.
    fn test_restored(&self, state: &State, effects: &[Effect]) -> Result<()> {
        for (from, version, schema) in restored_in(effects) {
            let table = state.get(from)?;
            for (what, filter) in TableState::forbidden(table.schema_of(version)?, schema)? {
                // Also those that have expired: they are in row groups.
                let read_point = numbered(state, &table, version).with_expired();
                refuse_matching(
                    self.reader(),
                    &self.env().pool,
                    &table,
                    read_point,
                    (&what, &filter),
                    &Task::default(),
                )?;
            }
        }
        Ok(())
    }
}

/// The tables that are copied, and those that are there already.
fn tables_of(state: &State, copies: &[CopyOf]) -> BTreeSet<TableId> {
    let there = copies.iter().filter_map(|copy| state.table_id_at(&copy.to));
    there.chain(copies.iter().map(|copy| copy.table)).collect()
}

/// Those of `tables` that have rows in memory.
fn waiting(state: &State, mut tables: BTreeSet<TableId>) -> BTreeSet<TableId> {
    tables.retain(|table| state.has_parts(*table));
    tables
}

/// The version that `as_of` sees at `path`; `None` for the newest, with all versions.
fn version_of(state: &State, path: &Path, as_of: &AsOf) -> Result<Option<Version>> {
    if *as_of == AsOf::Newest {
        return Ok(None);
    }
    let as_of = &*as_of.settled(state);
    let (table, seen) = resolve(state, path, as_of)?;
    if let AsOf::Time(time) = as_of {
        let between = match seen.since {
            true => table.active().is_some(),
            false => !matches!(table.at(*time)?.1, Since::Nothing),
        };
        if between {
            return Err(Error::invalid(format!(
                "'{path}' had rows written by key at that time that its version {} does not have; give a version \
                 number or a snapshot instead",
                seen.version
            )));
        }
    }
    Ok(Some(seen.version))
}

/// The tables that a restore gives older versions, each copied to where it is.
fn restored(state: &State, pattern: &Pattern, as_of: &AsOf) -> Result<Vec<CopyOf>> {
    let mut found = Vec::new();
    let as_of = &*as_of.settled(state);
    let copy = |path: &Path, table, version| CopyOf { table, version, from: path.clone(), to: path.clone() };
    if let AsOf::Snapshot(name) = as_of {
        let held = held_in(state, name, |path| pattern.matches_path(path.as_str()))?;
        let held = held.into_iter().filter(|(_, (table, _))| state.row_views.get(*table).is_none());
        found.extend(held.map(|(path, (table, version))| copy(&path, table, Some(version))));
    } else {
        let literal = pattern.literal().is_some();
        for (path, id) in state.ids_matching(pattern) {
            // Views follow their sources.
            if !literal && state.row_views.get(id).is_some() {
                continue;
            }
            if *as_of == AsOf::Newest || !is_younger(&*state.get(id)?, as_of) {
                found.push(copy(path, id, version_of(state, path, as_of)?));
            }
        }
    }
    match (found.is_empty(), pattern.literal()) {
        (false, _) => Ok(found),
        (true, Some(path)) => {
            let path = Path::new(path)?;
            table_at(state, &path)?;
            resolve(state, &path, as_of)?;
            Ok(found)
        }
        (true, None) => Err(Error::not_found(format!("no table matches '{pattern}'"))),
    }
}
