//! Rows that are changed in place: row groups are replaced by others with the same rows in the same order, some of which have
//! other values.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::Vector;
use serde::{Deserialize, Serialize};

use super::{ALIVE, Deletion, GroupId, NewGroup, RowGroup, Rows, Run, Table, VersionKind, VersionRecord};
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, Seq, Timestamp, Version};

/// Makes a new version with the same rows, some of them changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableUpdate {
    /// Row groups, and what takes their places: row groups of the newest version's schema with as many rows.
    pub replaced: Vec<(GroupId, NewGroup)>,
    /// The writer's metadata, as JSON.
    pub metadata: Option<String>,
}

impl Table {
    /// Makes the next version. The addresses of the new row groups are new; nothing is freed. `Conflict` if a row group is
    /// gone, or while rows written by key are in memory.
    pub fn updated(&self, update: &TableUpdate, seq: Seq, time: Timestamp) -> Result<Table> {
        self.check_in_groups()?;
        let newest = self.newest().ok_or_else(|| Error::invalid("the table has no version yet"))?;
        let (newest, rows, schema) = (newest.version, newest.rows, newest.schema);
        let mut next = self.clone();
        let version = Version(next.next_version);
        next.next_version += 1;
        let mut replaced: BTreeMap<GroupId, &NewGroup> = BTreeMap::new();
        for (id, group) in &update.replaced {
            if replaced.insert(*id, group).is_some() {
                return Err(Error::invalid(format!("row group {} is replaced twice", id.0)));
            }
        }
        let mut groups = Vector::new();
        for old in &self.groups {
            let Some(new) = replaced.remove(&old.id) else {
                groups.push_back(old.clone());
                continue;
            };
            let seen = self.visible(old, newest);
            if new.rows != old.rows || seen == Rows::None || new.dead.is_some() {
                return Err(Error::invalid(format!("row group {} is replaced by one with other rows", old.id.0)));
            }
            let hidden = Rows::All.without(&seen, old.rows).positions(old.rows);
            let deletions = (!hidden.is_empty()).then(|| Deletion { born: version, rows: hidden.into() });
            let id = GroupId(next.next_group);
            next.next_group += 1;
            let run = Run { rows: new.rows, born: version, died: ALIVE };
            let deletions = if planted(Bug::ReviveRows) { Vec::new() } else { deletions.into_iter().collect() };
            let record = RowGroup { deletions, ordered: old.ordered, ..new.record(id, schema, run) };
            record.check(next.schemas.len())?;
            groups.push_back(Arc::new(old.ended(version)));
            groups.push_back(Arc::new(record));
        }
        if let Some(id) = replaced.keys().next() {
            return Err(Error::conflict(format!("row group {} is gone", id.0)));
        }
        next.groups = groups;
        let (kind, metadata) = (VersionKind::Update, update.metadata.clone());
        next.versions.push_back(VersionRecord { version, seq, time, kind, rows, schema, metadata });
        (next.rows_seq, next.bulk_seq, next.layout_seq) = (seq, seq, seq);
        Ok(next)
    }
}
