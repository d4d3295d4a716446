//! Changes of columns, each one commit that writes no rows.

use std::sync::Arc;

use super::delete::FullChange;
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result};
use crate::catalog::{Effect, Footprint, Path, Read, State};
use crate::store::commit::call::Call;
use crate::store::commit::in_groups::{MemoryScope, in_memory};
use crate::store::nouns::transaction::OpenTransaction;
use crate::store::parts::Proposal;
use crate::store::read::resolve::{newest, of_table, table_at};
use crate::store::{Store, UpdateOptions, VersionInfo};
use crate::table::{Alter, Altered, TableChange, VersionKind, check_widening, refuse_matching};

impl Call<'_> {
    /// Makes a version with other columns, unless nothing changes.
    pub fn alter(self, path: &Path, alter: &Alter, options: &UpdateOptions) -> Result<VersionInfo> {
        let store = self.store;
        let alone = |base: Arc<State>| {
            let FullChange { footprint, effects } = store.find_alteration(&base, path, alter, options)?;
            Ok(store.commit(Proposal::carried(base, footprint, effects)).map(|after| (after, ())))
        };
        let with_rows = |store: &Store, open: &mut OpenTransaction| open.alter(store, path, alter, options);
        let (after, ()) = self.commit_in_groups(path, alone, with_rows)?;
        store.newest_info(&after, path)
    }
}

impl Store {
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
        for (name, data_type) in &doubtful {
            footprint = footprint.with(Read::Rows(table.id));
            check_widening(self.reader(), &self.env().pool, table, name, data_type, &options.task.cancel)
                .map_err(|e| of_table(path, e))?;
        }
        for (what, filter) in forbidden.iter().filter(|_| !planted(Bug::TrustRows)) {
            footprint = footprint.with(Read::Rows(table.id));
            refuse_matching(
                self.reader(),
                &self.env().pool,
                table,
                newest(state, table),
                (what, filter),
                &options.task,
            )
            .map_err(|e| of_table(path, e))?;
        }
        let metadata = options.metadata.clone();
        let change = TableChange { schema: Some(schema), metadata, ..TableChange::new(VersionKind::Alter) };
        Ok(FullChange { footprint, effects: vec![Effect::ChangeTable { table: table.id, change }] })
    }
}

impl OpenTransaction {
    /// Changes the columns of the table at `path` in a transaction.
    pub fn alter(&mut self, store: &Store, path: &Path, alter: &Alter, options: &UpdateOptions) -> Result<()> {
        let tables = in_memory(self.draft.state(), path)?;
        self.with_rows_in_groups(store, &tables, MemoryScope::All, |open| {
            let change = store.find_alteration(open.draft.state(), path, alter, options)?;
            open.apply(change.footprint, change.effects, None)
        })
    }
}
