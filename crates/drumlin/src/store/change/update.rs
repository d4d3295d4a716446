//! Updates: columns of the rows that match a filter are set to computed values. Rows keep their places; only the row groups
//! that hold them are written, and of these only the columns that are set are encoded again.

use std::collections::HashMap;

use roaring::RoaringBitmap;

use super::changed_rows::{ChangedRows, PreparedChange};
use crate::base::{Cancel, Error, Result};
use crate::catalog::{Path, State};
use crate::filter::Filter;
use crate::store::read::resolve::{newest, of_table, table_at};
use crate::store::{Store, UpdateOptions, VersionInfo};
use crate::table::{
    Assignment, Assignments, GroupId, Matches, ReadPoint, RowGroup, StoredSchema, TableState, VersionKind,
    matching_rows,
};

/// What an update did.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateReport {
    /// The version that it made; the newest one as it was if no row matched. `None` in a transaction.
    pub version: Option<VersionInfo>,
    /// Rows updated.
    pub rows: u64,
}

impl Store {
    /// Writes the row groups of an update of the table at `path` as it is in `state`, which has no rows of it in memory. Also
    /// returns the number of rows.
    pub(in crate::store) fn prepare_update(
        &self,
        state: &State,
        path: &Path,
        set: &[Assignment],
        filter: Option<&Filter>,
        options: &UpdateOptions,
    ) -> Result<PreparedChange<u64>> {
        let table = &table_at(state, path)?;
        let assignments = Assignments::new(table, set).map_err(|e| e.context(format!("'{path}'")))?;
        let (read_point, task) = (newest(self, state, table), &options.task);
        let (reader, pool) = (self.reader(), &self.env().pool);
        let updated = match filter {
            Some(filter) => {
                let found = matching_rows(reader, pool, table, read_point, filter, &task.cancel);
                let found = found.map_err(|e| of_table(path, e))?;
                if !found.keys.is_empty() {
                    return Err(Error::conflict(
                        "rows written by key are not in row groups yet; checkpoint the store first",
                    ));
                }
                found.groups
            }
            None => self.all_rows(state, table, path, &task.cancel)?,
        };
        let rows: u64 = updated.iter().map(|matches| matches.rows.len()).sum();
        let version = read_point.version;
        let new_values =
            |group: &RowGroup, rows: &RoaringBitmap| assignments.new_values(reader, table, version, group, rows);
        let ttl = table.schema().and_then(StoredSchema::ttl_place).map(|(at, _)| at);
        let sets_expiry = assignments.columns().into_iter().any(|at| Some(at) == ttl);
        let changes = ChangedRows {
            table,
            version,
            kind: VersionKind::Update,
            schema: table.with_computed(assignments.columns())?,
            updated,
            new_values: &new_values,
            reads: assignments.reads(),
            deleted: Vec::new(),
            inserted: Vec::new(),
            in_place: true,
            revives: sets_expiry.then_some(read_point),
            serial: false,
        };
        changes.prepare(self, path, options, rows)
    }
}

impl Store {
    /// All rows that the newest version of `table` has in row groups, a table of `state` at `path`, without those that have expired.
    pub(in crate::store) fn all_rows(
        &self,
        state: &State,
        table: &TableState,
        path: &Path,
        cancel: &Cancel,
    ) -> Result<Vec<Matches>> {
        let ReadPoint { version, instant, .. } = newest(self, state, table);
        let rows = |group: &RowGroup| table.visible(group, version).positions(group.rows);
        let matches = table.groups.iter().map(|group| Matches { group: group.id, rows: rows(group) });
        let all = matches.filter(|matches| !matches.rows.is_empty()).collect();
        let expired = instant.map(|instant| self.find_expired(state, table, path, instant, cancel));
        Ok(match expired.transpose()?.flatten() {
            Some(expired) => without(all, expired.groups),
            None => all,
        })
    }
}

/// `rows` without `others`.
fn without(rows: Vec<Matches>, others: Vec<Matches>) -> Vec<Matches> {
    let others: HashMap<GroupId, RoaringBitmap> = others.into_iter().map(|found| (found.group, found.rows)).collect();
    let left = rows.into_iter().map(|Matches { group, rows }| match others.get(&group) {
        Some(others) => Matches { group, rows: rows - others },
        None => Matches { group, rows },
    });
    left.filter(|matches| !matches.rows.is_empty()).collect()
}
