//! Changes of columns, each one commit that writes no rows.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::pins::Pin;
use super::proposal::Proposal;
use super::resolve::{newest, of_table, table_at};
use super::transaction::{Open, run_again};
use super::update::FullChange;
use super::{Frame, Store, UpdateOptions, VersionInfo};
use crate::base::planted::{Bug, planted};
use crate::base::{Error, ErrorKind, Result, TableId};
use crate::catalog::{Effect, Footprint, Path, Read, State};
use crate::table::{Alter, Altered, SchemaMode, Table, TableChange, VersionKind, check_widening, refuse_matching};

impl Store {
    /// Makes a version with other columns, unless nothing changes.
    pub(super) fn alter(&self, path: &Path, alter: &Alter, options: &UpdateOptions) -> Result<VersionInfo> {
        self.refresh_if_shared()?;
        let (after, ()) = self.prepare_and_commit(|base| {
            let changes = table_at(&base, path)?.altered(alter).is_ok_and(|changed| changed.is_some());
            let (base, _pin) = self.settled_state(base, path, changes)?;
            let FullChange { footprint, effects } = self.find_alteration(&base, path, alter, options)?;
            Ok((Proposal::carried(base, footprint, effects), ()))
        })?;
        self.newest_info(&after, path)
    }

    /// The change of the columns of the table at `path`, as it is in `state`.
    fn find_alteration(
        &self,
        state: &State,
        path: &Path,
        alter: &Alter,
        options: &UpdateOptions,
    ) -> Result<FullChange> {
        let table = &table_at(state, path)?;
        let mut footprint = Footprint::default().with(Read::Binding(path.clone())).with(Read::Schema(table.id));
        let named = |e: Error| e.context(format!("'{path}'"));
        let Some(Altered { schema, doubtful, forbidden }) = table.altered(alter).map_err(named)? else {
            return Ok(FullChange { footprint, effects: Vec::new() });
        };
        let inner = &self.inner;
        for (name, data_type) in &doubtful {
            footprint = footprint.with(Read::Rows(table.id));
            check_widening(&inner.reader, &inner.env.pool, table, name, data_type, &options.task.cancel)
                .map_err(|e| of_table(path, e))?;
        }
        for (what, filter) in forbidden.iter().filter(|_| !planted(Bug::TrustRows)) {
            footprint = footprint.with(Read::Rows(table.id));
            refuse_matching(&inner.reader, &inner.env.pool, table, newest(state, table), (what, filter), &options.task)
                .map_err(|e| of_table(path, e))?;
        }
        let metadata = options.metadata.clone();
        let change = TableChange { schema: Some(schema), metadata, ..TableChange::new(VersionKind::Alter) };
        Ok(FullChange { footprint, effects: vec![Effect::ChangeTable { table: table.id, change }] })
    }

    /// A state in which the table at `path` has no rows in memory, if its columns are to change: `base`, or a newer one with the
    /// pin that keeps its blocks.
    pub(super) fn settled_state(
        &self,
        base: Arc<State>,
        path: &Path,
        changes: bool,
    ) -> Result<(Arc<State>, Option<Arc<Pin>>)> {
        match base.table_at(path)?.filter(|table| changes && !table.parts.is_empty()) {
            None => Ok((base, None)),
            Some(table) => {
                self.settle_rows(&BTreeSet::from([table.id]), true)?;
                self.pinned_state().map(|(state, pin)| (state, Some(pin)))
            }
        }
    }

    /// Makes row groups of the rows in memory of tables whose columns change when rows of these frames are brought in. Looks at
    /// the state as it is: the caller has refreshed it.
    pub(super) fn settle_before_evolving<'a, 'f: 'a>(
        &self,
        frames: impl Iterator<Item = (impl Borrow<Path>, &'a Frame<'f>)>,
        mode: SchemaMode,
    ) -> Result<()> {
        let state = self.current()?;
        let evolves = |table: &Table, frame: &Frame<'_>| {
            !table.parts.is_empty() && table.evolved(frame.schema(), mode).is_ok_and(|evolved| evolved.is_some())
        };
        let mut evolving = BTreeSet::new();
        for (path, frame) in frames {
            let table = state.table_at(path.borrow())?.filter(|table| evolves(table, frame));
            evolving.extend(table.map(|table| table.id));
        }
        self.settle_rows(&evolving, true)
    }
}

impl Open {
    /// Changes the columns of the table at `path` in a transaction.
    pub fn alter(&mut self, store: &Store, path: &Path, alter: &Alter, options: &UpdateOptions) -> Result<()> {
        let change = store.find_alteration(self.draft.state(), path, alter, options)?;
        let table = table_at(self.draft.state(), path)?.id;
        let done = self.apply(change.footprint, change.effects, None);
        self.settled(store, table, done)
    }

    /// What a change that needs the rows of a table in row groups has come to; if it was refused because of rows in memory,
    /// makes row groups of those that others have written.
    pub fn settled<T>(&mut self, store: &Store, table: TableId, done: Result<T>) -> Result<T> {
        match done {
            Err(e) if e.kind() == ErrorKind::Conflict => {
                if self.found_in_memory(table) {
                    store.settle_rows(&BTreeSet::from([table]), true)?;
                    self.doomed = true;
                }
                Err(run_again())
            }
            done => done,
        }
    }
}
