//! Changes of columns, each one commit that writes no rows.

use std::sync::Arc;

use super::delete::{FullChange, delete_in_memory, positions};
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result};
use crate::catalog::{Effect, Footprint, Path, Read, State};
use crate::store::commit::call::Call;
use crate::store::commit::in_groups::{MemoryScope, in_memory};
use crate::store::nouns::transaction::OpenTransaction;
use crate::store::parts::Proposal;
use crate::store::read::resolve::{newest, of_table, table_at};
use crate::store::{Store, UpdateOptions, VersionInfo};
use crate::table::{Alter, Altered, FoundRows, TableChange, VersionKind, check_widening, next_expiry, refuse_matching};

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
        let Some(Altered { schema, doubtful, forbidden, expires, changes_ttl }) =
            table.altered(alter).map_err(named)?
        else {
            return Ok(FullChange { footprint, effects: Vec::new() });
        };
        // One instant, for all that is asked.
        let seen = newest(self, state, table);
        for (name, data_type) in &doubtful {
            footprint = footprint.with(Read::Rows(table.id));
            check_widening(self.reader(), &self.env().pool, table, name, data_type, &options.task.cancel)
                .map_err(|e| of_table(path, e))?;
        }
        for (what, filter) in forbidden.iter().filter(|_| !planted(Bug::TrustRows)) {
            footprint = footprint.with(Read::Rows(table.id));
            refuse_matching(self.reader(), &self.env().pool, table, seen, (what, filter), &options.task)
                .map_err(|e| of_table(path, e))?;
        }
        let (mut effects, mut deletions) = (Vec::new(), Vec::new());
        if expires && let Some(instant) = seen.instant {
            let FoundRows { groups, keys } = self
                .find_expired(state, table, path, instant, &options.task.cancel)?
                .ok_or_else(|| Error::internal("rows expire, and do not"))?;
            footprint = footprint.with(Read::Rows(table.id)).with(Read::Keys(table.id, Arc::new(keys.clone())));
            if changes_ttl {
                // Nor do those come back that expire before the commit.
                let next = next_expiry(self.reader(), &self.env().pool, table, seen, None);
                let next = next.map_err(|e| of_table(path, e))?;
                footprint.reads.extend(next.map(|until| Read::Until(table.id, until)));
            }
            effects = delete_in_memory(table, &keys)?;
            deletions = positions(groups);
        }
        let metadata = options.metadata.clone();
        let change = TableChange { schema: Some(schema), metadata, deletions, ..TableChange::new(VersionKind::Alter) };
        effects.push(Effect::ChangeTable { table: table.id, change });
        Ok(FullChange { footprint, effects })
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
