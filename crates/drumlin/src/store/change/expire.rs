//! Rows that have expired leave tables. Readers do not see them any more, but the newest version has them until a version is made
//! without them: by a checkpoint, or before something that would show them again or needs their keys.
//!
//! A clock that is ahead hides rows for its own process alone, as long as that commits nothing. What is deleted is gone, so
//! checkpoints count ages as retention does, and wait for some time.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::delete::{FullChange, delete_in_memory, positions};
use crate::base::planted::{Bug, planted};
use crate::base::{Cancel, ErrorKind, Result, TableId, Timestamp};
use crate::catalog::{Effect, Footprint, Path, Read, State};
use crate::store::Store;
use crate::store::commit::call::retry_conflicts;
use crate::store::nouns::transaction::OpenTransaction;
use crate::store::parts::Maintenance;
use crate::store::read::resolve::{newest, of_table, table_at};
use crate::table::{FoundRows, TableChange, TableState, VersionKind, matching_rows};

/// How long rows stay after they have expired, in microseconds, before a checkpoint deletes them.
const GRACE: i64 = 3_600_000_000;

/// How often a checkpoint tries to delete the expired rows of a table that others change.
const ATTEMPTS: usize = 3;

impl Store {
    /// The rows of `table`, a table of `state` at `path`, that had expired at `instant`; `None` if its rows do not expire.
    pub(in crate::store) fn find_expired(
        &self,
        state: &State,
        table: &TableState,
        path: &Path,
        instant: Timestamp,
        cancel: &Cancel,
    ) -> Result<Option<FoundRows>> {
        let Some(expired) = table.schema().and_then(|schema| schema.expired_at(instant)) else { return Ok(None) };
        let seen = newest(self, state, table).with_expired();
        let found = matching_rows(self.reader(), &self.env().pool, table, seen, &expired, cancel);
        found.map(Some).map_err(|e| of_table(path, e))
    }

    /// The change that deletes those rows, and how many there are; `None` if there are none.
    pub(in crate::store) fn expiration(
        &self,
        state: &State,
        table: &TableState,
        path: &Path,
        instant: Timestamp,
        cancel: &Cancel,
    ) -> Result<Option<(FullChange, u64)>> {
        let Some(FoundRows { groups, keys }) = self.find_expired(state, table, path, instant, cancel)? else {
            return Ok(None);
        };
        let rows = groups.iter().map(|matches| matches.rows.len()).sum::<u64>() + keys.len() as u64;
        if rows == 0 {
            return Ok(None);
        }
        let mut effects = delete_in_memory(table, &keys)?;
        let change = TableChange { deletions: positions(groups), ..TableChange::new(VersionKind::Expire) };
        effects.push(Effect::ChangeTable { table: table.id, change });
        // What has expired stays so unless it is written again: rows that others write by other keys do not matter.
        let footprint = Footprint::default()
            .with(Read::Binding(path.clone()))
            .with(Read::Schema(table.id))
            .with(Read::Keys(table.id, Arc::new(keys)));
        Ok(Some((FullChange { footprint, effects }, rows)))
    }

    /// Makes versions without the rows that expired some time ago. Returns how many there were.
    pub(in crate::store) fn delete_expired(&self, maintenance: &mut Maintenance, cancel: &Cancel) -> Result<u64> {
        let state = self.current()?;
        if !state.may_expire_rows() {
            return Ok(0);
        }
        // Tables that are not open are as they were at the last checkpoint.
        let known = maintenance.expiring.take();
        let mut found = known.clone().unwrap_or_default();
        let mut note = |table: &TableState| {
            if table.expires() {
                found.insert(table.id)
            } else {
                found.remove(&table.id)
            };
        };
        match known {
            Some(_) => state.open_tables().for_each(|table| note(table)),
            None => state.tables().try_for_each(|table| table.map(|table| note(&table)))?,
        }
        let rows = self.delete_expired_of(&found, cancel);
        maintenance.expiring = Some(found);
        rows
    }

    fn delete_expired_of(&self, tables: &BTreeSet<TableId>, cancel: &Cancel) -> Result<u64> {
        let mut deleted = 0;
        for id in tables {
            cancel.check()?;
            let times = self.commits().times();
            let instant = |state: &State| match planted(Bug::DeleteByOwnClock) {
                true => times.now(state.time),
                false => Timestamp(times.age(state.time).0.saturating_sub(GRACE)),
            };
            for _ in 0..ATTEMPTS {
                match self.while_reclaimed(|| self.delete_expired_once(*id, instant, cancel)) {
                    Err(e) if e.kind() == ErrorKind::Conflict => continue,
                    rows => {
                        deleted += rows?;
                        break;
                    }
                }
            }
        }
        Ok(deleted)
    }

    /// Deletes the rows of a table that had expired at an instant, unless others change it in between. Returns how many there were.
    fn delete_expired_once(&self, id: TableId, at: impl Fn(&State) -> Timestamp, cancel: &Cancel) -> Result<u64> {
        let (state, _pin) = self.pinned_state()?;
        // What is in the trash, or held by snapshots alone, stays as it is.
        let (Some(table), Some(path)) = (state.table(id)?, state.path_of(id)) else { return Ok(0) };
        match self.expiration(&state, &table, path, at(&state), cancel)? {
            Some((change, rows)) => self.commit(change.propose(state.clone())).map(|_| rows),
            None => Ok(0),
        }
    }

    /// Deletes the rows of the table at `path` that have expired by now.
    pub(in crate::store) fn delete_expired_now(&self, path: &Path, cancel: &Cancel) -> Result<()> {
        let id = table_at(&*self.current()?, path)?.id;
        let mut delete = || match self.delete_expired_once(id, |state| self.instant(state), cancel) {
            Err(e) if e.kind() == ErrorKind::Conflict => Ok(Err(e)),
            deleted => deleted.map(Ok),
        };
        self.while_reclaimed(|| retry_conflicts(&mut delete)).map(drop)
    }
}

impl OpenTransaction {
    /// Deletes the rows of the table at `path` that had expired when the transaction began.
    pub fn delete_expired(&mut self, store: &Store, path: &Path, cancel: &Cancel) -> Result<()> {
        let state = self.draft.state();
        let table = table_at(state, path)?;
        let change = store.expiration(state, &table, path, store.instant(state), cancel)?;
        change.map_or(Ok(()), |(change, _)| self.apply(change.footprint, change.effects, None))
    }
}
