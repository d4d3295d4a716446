//! Rows that have expired leave tables. Readers do not see them any more, but the newest version has them until a version is made
//! without them: by a checkpoint, or before something that would show them again or needs their keys.
//!
//! A clock that is ahead hides rows for its own process alone, as long as that commits nothing. What is deleted is gone, so
//! checkpoints count ages as retention does, and wait for some time.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::delete::{FullChange, delete_in_memory, positions};
use crate::base::planted::{Bug, planted};
use crate::base::{Cancel, ErrorKind, Result, TableId, Timestamp};
use crate::catalog::{Effect, Footprint, Path, Read, State, carry_over};
use crate::store::commit::call::retry_conflicts;
use crate::store::nouns::transaction::OpenTransaction;
use crate::store::parts::{Maintenance, Proposal, Work};
use crate::store::read::resolve::{newest, of_table, table_at};
use crate::store::{CheckpointReport, Store};
use crate::table::{FoundRows, GroupId, RowGroup, TableChange, TableState, VersionKind, matching_rows};

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
        let Some(found) = self.find_expired(state, table, path, instant, cancel)? else { return Ok(None) };
        let rows = found.count();
        if rows == 0 {
            return Ok(None);
        }
        let FoundRows { groups, keys } = found;
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

    /// Makes versions without the rows that expired some time ago. Returns how many there were. Looks at the statistics of each table whose
    /// rows expire; in checkpoints that the store begins by itself seldom.
    pub(in crate::store) fn delete_expired(
        &self,
        maintenance: &mut Maintenance,
        report: &mut CheckpointReport,
        cancel: &Cancel,
    ) -> Result<()> {
        let state = self.current()?;
        if !state.may_expire_rows() {
            return Ok(());
        }
        // Of a catalog snapshot that others have made it is not known which tables it has.
        let own = maintenance.catalog.as_ref().map(|catalog| catalog.base);
        let is_own = own == self.commits().writable_log()?.base();
        let mut tables = match maintenance.expiring.take() {
            Some(known) if is_own => known,
            _ => {
                let mut found = BTreeMap::new();
                for table in state.tables() {
                    match table {
                        Ok(table) => found.extend(table.expires().then_some((table.id, Timestamp(i64::MIN)))),
                        Err(e) if e.kind().leaves_others() => report.failures.push(e.to_string()),
                        Err(e) => return Err(e),
                    }
                }
                found
            }
        };
        // Others are as they were when they were last noted.
        note_expiring(&mut tables, &state);
        let done = self.delete_expired_of(&mut tables, report, cancel);
        maintenance.expiring = Some(tables);
        done
    }

    fn delete_expired_of(
        &self,
        tables: &mut BTreeMap<TableId, Timestamp>,
        report: &mut CheckpointReport,
        cancel: &Cancel,
    ) -> Result<()> {
        let (times, last) = (self.commits().times(), self.current()?.time);
        let instant = match planted(Bug::DeleteByOwnClock) {
            true => times.now(last),
            false => Timestamp(times.age(last).0.saturating_sub(GRACE)),
        };
        for (id, done) in tables {
            cancel.check()?;
            if !self.is_handle() && instant.0.saturating_sub(done.0) < GRACE {
                continue;
            }
            for _ in 0..ATTEMPTS {
                match self.while_reclaimed(|| self.delete_expired_once(*id, |_| instant, cancel)) {
                    Err(e) if e.kind() == ErrorKind::Conflict => continue,
                    Err(e) if e.kind().leaves_others() => report.failures.push(e.to_string()),
                    rows => {
                        report.rows_expired += rows?;
                        *done = instant;
                    }
                }
                break;
            }
        }
        Ok(())
    }

    /// Deletes the rows of a table that had expired at an instant, unless others change it in between. Returns how many there were.
    fn delete_expired_once(&self, id: TableId, at: impl Fn(&State) -> Timestamp, cancel: &Cancel) -> Result<u64> {
        let (state, _pin) = self.pinned_state()?;
        // What is in the trash, or held by snapshots alone, stays as it is.
        let (Some(table), Some(path)) = (state.table(id)?, state.path_of(id)) else { return Ok(0) };
        match self.expiration(&state, &table, path, at(&state), cancel)? {
            Some((FullChange { footprint, effects }, rows)) => {
                let base = state.clone();
                let build = move |now: &State| {
                    let mut effects = effects.clone();
                    carry_over(&mut effects, &base, now)?;
                    strike_gone(&mut effects, now)?;
                    // If nothing is left, no version is made.
                    let is_empty = |effect: &Effect| matches!(effect, Effect::ChangeTable { change, .. } if change.deletions.is_empty());
                    Ok(if effects.iter().all(is_empty) { Vec::new() } else { effects })
                };
                self.commit(Proposal::new(state, footprint, Work::Build(Box::new(build)))).map(|_| rows)
            }
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

/// Notes which of the tables that are open in a state have rows that expire.
pub(in crate::store) fn note_expiring(tables: &mut BTreeMap<TableId, Timestamp>, state: &State) {
    for table in state.open_tables() {
        if table.expires() {
            tables.entry(table.id).or_insert(Timestamp(i64::MIN));
        } else {
            tables.remove(&table.id);
        }
    }
}

/// Leaves out deletions of rows that are gone: a flush takes those away which rows in memory hide.
fn strike_gone(effects: &mut [Effect], now: &State) -> Result<()> {
    for effect in effects {
        let Effect::ChangeTable { table, change } = effect else { continue };
        let Some(table) = now.table(*table)? else { continue };
        let Some(newest) = table.newest().map(|newest| newest.version) else { continue };
        let groups: HashMap<GroupId, &Arc<RowGroup>> = table.groups.iter().map(|group| (group.id, group)).collect();
        for (group, positions) in &mut change.deletions {
            let Some(group) = groups.get(group) else { continue };
            let shown = table.visible(group, newest).positions(group.rows);
            *positions = (&*positions.0 & shown).into();
        }
        change.deletions.retain(|(_, positions)| !positions.0.is_empty());
    }
    Ok(())
}

impl OpenTransaction {
    /// Deletes the rows of the table at `path` that had expired when the transaction began.
    pub fn delete_expired(&mut self, store: &Store, path: &Path, cancel: &Cancel) -> Result<()> {
        let state = self.draft.state();
        let table = table_at(state, path)?;
        let change = store.expiration(state, &table, path, store.instant(state), cancel)?;
        let Some((FullChange { footprint, effects }, _)) = change else { return Ok(()) };
        // Rows that others have taken away by the commit must not be taken away again.
        self.apply(footprint.with(Read::Rows(table.id)), effects, None)
    }
}
