//! Changes that need the rows of tables in row groups, and none in memory: of columns, of rows in their places, copies
//! and restores.
//!
//! Rows that were written by key become row groups in the same commit as the change that needs them so. So a change
//! that is refused changes nothing: no version is numbered for those rows, and none expires because of it.
//!
//! The draft of a transaction first gets row groups for the rows in memory, then the change; if the change is refused,
//! or changes nothing, both are taken back and the blocks deleted. Effects name row groups by numbers given there, so
//! the transaction depends on the table as a whole (`Read::Table`). Where a frame is streamed into row groups first,
//! everything is checked on the state as it is before rows in memory are flushed. In general a refused call changes
//! nothing, which `python/tests/test_refusals.py` checks for every call with every kind of wrong argument.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::call::{Call, retry_conflicts};
use crate::base::planted::{Bug, planted};
use crate::base::{ErrorKind, Result, TableId, Task};
use crate::catalog::{Effect, Path, Read, State};
use crate::store::Store;
use crate::store::nouns::transaction::{OpenTransaction, run_again};
use crate::store::parts::Pin;
use crate::store::read::resolve::table_at;

/// Which rows in memory are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum MemoryScope {
    /// Those that versions have.
    Numbered,
    /// Those written since the newest version too: they get one.
    All,
}

/// The table at `path`, if rows of it are in memory.
pub(in crate::store) fn in_memory(state: &State, path: &Path) -> Result<BTreeSet<TableId>> {
    let table = table_at(state, path)?;
    Ok((!table.parts.is_empty()).then_some(table.id).into_iter().collect())
}

impl Store {
    /// Does `work` in a transaction of its own, once; the inner result is its commit's. If others have changed something in between, `work`
    /// was sound all the same: then rows in memory of the tables that `waiting` names become row groups at once, so that the next attempt takes less
    /// time. Only those that versions have: a version for the others might have retention let those go that the work needs.
    pub(in crate::store) fn attempt_alone<T>(
        &self,
        waiting: impl Fn(&State) -> Result<BTreeSet<TableId>>,
        work: impl FnOnce(&Store, &mut OpenTransaction) -> Result<T>,
    ) -> Result<Result<(Arc<State>, T)>> {
        let transaction = self.transaction()?;
        let value = transaction.change_tables(work)?;
        let committed = transaction.commit_to();
        if committed.as_ref().is_err_and(|e| e.kind() == ErrorKind::Conflict) {
            self.settle_rows(&waiting(&*self.current()?)?, false)?;
        }
        Ok(committed.map(|after| (after, value)))
    }

    /// A state in which the table at `path` has no rows in memory, if its columns are to change: `base`, or a newer one with the
    /// pin that keeps its blocks. In `base` the change that needs it so is found to be sound first.
    pub(in crate::store) fn settled_state<T>(
        &self,
        base: Arc<State>,
        path: &Path,
        changes: bool,
        sound: impl FnOnce(&State) -> Result<T>,
    ) -> Result<(Arc<State>, Option<Arc<Pin>>)> {
        match base.table_at(path)?.filter(|table| changes && !table.parts.is_empty()) {
            None => Ok((base, None)),
            Some(table) => {
                sound(&base)?;
                self.settle_rows(&BTreeSet::from([table.id]), true)?;
                self.pinned_state().map(|(state, pin)| (state, Some(pin)))
            }
        }
    }

    /// Does `work` on a state in which the rows in memory of `tables` are in row groups, with the pin that keeps its blocks; then a commit
    /// of its own makes them so. All versions that were there are in that state, whatever retention makes of them in the commit's turn. If
    /// the work fails, nothing is changed.
    pub(in crate::store) fn with_rows_in_groups<T>(
        &self,
        tables: &BTreeSet<TableId>,
        which: MemoryScope,
        work: impl Fn(&State, &Arc<Pin>) -> Result<T>,
    ) -> Result<T> {
        retry_conflicts(|| {
            let transaction = self.transaction()?;
            let done = transaction.change_tables(|store, open| {
                open.put_in_groups(store, tables, which)?;
                work(open.draft.state(), &open.pin)
            })?;
            Ok(transaction.commit_to().map(|_| done))
        })
    }
}

impl Call<'_> {
    /// Changes the table at `path`, which may have no rows in memory then: by `alone`, which commits, if there are none; else in a transaction, by
    /// `with_rows`, along with row groups for these rows.
    pub fn commit_in_groups<T>(
        self,
        path: &Path,
        alone: impl Fn(Arc<State>) -> Result<Result<(Arc<State>, T)>>,
        with_rows: impl Fn(&Store, &mut OpenTransaction) -> Result<T>,
    ) -> Result<(Arc<State>, T)> {
        self.attempt(|| {
            let (base, _pin) = self.store.pinned_state()?;
            match in_memory(&base, path)?.is_empty() {
                true => alone(base),
                false => self.store.attempt_alone(|state| in_memory(state, path), &with_rows),
            }
        })
    }
}

impl OpenTransaction {
    /// Does `work` while the rows of `tables` are in row groups. If it fails, or changes nothing, nothing is changed. `Conflict`
    /// if the transaction itself has written rows of them by key.
    pub fn with_rows_in_groups<T>(
        &mut self,
        store: &Store,
        tables: &BTreeSet<TableId>,
        which: MemoryScope,
        work: impl FnOnce(&mut OpenTransaction) -> Result<T>,
    ) -> Result<T> {
        let waits = tables.iter().any(|table| self.draft.state().has_parts(*table))
            && ![Bug::AlterInMemory, Bug::CopyInMemory].into_iter().any(planted);
        let (mark, writers) = (self.draft.mark(), self.writers.len());
        let put = if waits { self.put_in_groups(store, tables, which) } else { Ok(()) };
        let done = put.and_then(|()| {
            let before = self.draft.effects().len();
            let value = work(self)?;
            Ok((value, self.draft.effects().len() > before))
        });
        let changed = matches!(done, Ok((_, changed)) if changed || !waits);
        if !changed {
            self.draft.rewind(mark);
            self.writers.truncate(writers);
        }
        done.map(|(value, _)| value)
    }

    fn put_in_groups(&mut self, store: &Store, tables: &BTreeSet<TableId>, which: MemoryScope) -> Result<()> {
        let tables: &BTreeSet<TableId> =
            &tables.iter().filter(|table| self.draft.state().has_parts(**table)).copied().collect();
        if tables.is_empty() {
            return Ok(());
        }
        let state = self.draft.state();
        let own = |table: &TableId| !self.is_of_others(*table) || state.has_unsettled(*table);
        if tables.iter().any(own) {
            return Err(run_again());
        }
        let of = |state: &State, table: &TableId| state.open_table(*table).cloned();
        if which == MemoryScope::All {
            let active = |table: &&TableId| of(state, table).is_some_and(|table| table.active().is_some());
            let active: Vec<TableId> = tables.iter().filter(active).copied().collect();
            self.draft.apply(active.into_iter().map(|table| Effect::FreezeRows { table }).collect())?;
        }
        loop {
            let state = self.draft.state();
            let waits = |table: &&TableId| of(state, table).is_some_and(|table| table.to_flush().is_some());
            let work: Vec<TableId> = tables.iter().filter(waits).copied().collect();
            if work.is_empty() {
                break;
            }
            let (effects, writer) = store.flushed(state, &work, &Task::default())?;
            self.apply(Default::default(), effects, Some(writer))?;
        }
        // Effects name row groups by their numbers, as they are made here.
        self.note(tables.iter().map(|table| Read::Table(*table)).collect());
        Ok(())
    }
}
