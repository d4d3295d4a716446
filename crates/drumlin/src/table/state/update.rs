//! Rows that are changed in place: row groups are replaced by others with the same rows in the same order, some of which have
//! other values. Where few of their columns have, only these are written, as patches on what is there.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::Vector;
use serde::{Deserialize, Serialize};

use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, Seq, Timestamp, Version};
use crate::block::Address;
use crate::table::{
    ALIVE, Deletion, GroupId, NewGroup, NewPatch, Positions, RowGroup, Rows, Run, TableState, Turnover, VersionKind,
    VersionRecord,
};

/// Makes a new version, some of whose rows are changed in place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableUpdate {
    /// What kind of version.
    pub kind: VersionKind,
    /// Row groups, and what takes their places: row groups of the newest version's schema with as many rows, or patches on them.
    pub replaced: Vec<(GroupId, NewGroup)>,
    /// Rows deleted, each visible in the newest version, by the row groups that had them.
    pub deletions: Vec<(GroupId, Positions)>,
    /// Rows added, in order.
    pub groups: Vec<NewGroup>,
    /// The writer's metadata, as JSON.
    pub metadata: Option<String>,
}

impl TableState {
    /// Makes the next version. Those of the row groups that take the places of others and are among `patches` are patches on these. The
    /// addresses of new row groups and patches are new; nothing is freed. Also returns the addresses that gained a record: of
    /// what lies below patches. `Conflict` if a row group is gone, or while rows written by key are in memory.
    pub fn updated(
        &self,
        update: &TableUpdate,
        patches: &[(GroupId, NewPatch)],
        seq: Seq,
        time: Timestamp,
    ) -> Result<(TableState, Vec<Address>)> {
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
        let mut patches: BTreeMap<GroupId, &NewPatch> = patches.iter().map(|(id, patch)| (*id, patch)).collect();
        let mut below = Vec::new();
        let mut gone: BTreeMap<GroupId, &Positions> = BTreeMap::new();
        for (id, positions) in &update.deletions {
            if gone.insert(*id, positions).is_some() || positions.0.is_empty() {
                return Err(Error::invalid(format!("rows of row group {} are deleted twice", id.0)));
            }
        }
        let mut groups = Vector::new();
        for old in &self.groups {
            let (own, new) = (gone.remove(&old.id), replaced.remove(&old.id));
            if own.is_none() && new.is_none() {
                groups.push_back(old.clone());
                continue;
            }
            let seen = self.visible(old, newest);
            if let Some(positions) = own
                && !positions.0.is_subset(&seen.positions(old.rows))
            {
                return Err(Error::invalid(format!("row group {} lacks rows that are to be deleted", old.id.0)));
            }
            let Some(new) = new else {
                let mut cut = RowGroup::clone(old);
                cut.deletions.extend(own.map(|rows| Deletion { born: version, rows: rows.clone() }));
                groups.push_back(Arc::new(cut));
                continue;
            };
            if new.rows != old.rows || seen == Rows::None || new.dead.is_some() {
                return Err(Error::invalid(format!("row group {} is replaced by one with other rows", old.id.0)));
            }
            let mut hidden = Rows::All.without(&seen, old.rows).positions(old.rows);
            if let Some(positions) = own {
                hidden |= &*positions.0;
            }
            let deletions = (!hidden.is_empty()).then(|| Deletion { born: version, rows: hidden.into() });
            let id = GroupId(next.next_group);
            next.next_group += 1;
            let run = Run { rows: new.rows, born: version, died: ALIVE };
            let deletions = if planted(Bug::ReviveRows) { Vec::new() } else { deletions.into_iter().collect() };
            let record = match patches.remove(&old.id) {
                None => RowGroup { deletions, standing: old.standing, ..new.record(id, schema, run) },
                Some(patch) => {
                    let patched = old.with_patch(&next.schemas, schema, new.address, patch);
                    RowGroup { id, runs: vec![run], deletions, only: None, ..patched }
                }
            };
            record.check(next.schemas.len())?;
            record.check_columns(&next.schemas)?;
            below.extend(record.addresses().skip(1));
            groups.push_back(Arc::new(old.ended(version)));
            groups.push_back(Arc::new(record));
        }
        if let Some(id) = replaced.keys().chain(gone.keys()).next() {
            return Err(Error::conflict(format!("row group {} no longer exists", id.0)));
        }
        if let Some(id) = patches.keys().next() {
            return Err(Error::invalid(format!("row group {} has a patch, but is not replaced", id.0)));
        }
        next.groups = groups;
        for group in &update.groups {
            next.add_group(group, schema, Run { rows: group.rows, born: version, died: ALIVE })?;
        }
        let (kind, metadata) = (update.kind, update.metadata.clone());
        let added: u64 = update.groups.iter().map(NewGroup::live).sum();
        let removed: u64 = update.deletions.iter().map(|(_, rows)| rows.0.len()).sum();
        let rows = rows.saturating_sub(removed) + added;
        let record = VersionRecord { version, seq, time, kind, rows, schema, metadata, story: None };
        next.add_version(record, Some(Turnover { added, removed }));
        (next.rows_seq, next.bulk_seq, next.layout_seq) = (seq, seq, seq);
        Ok((next, below))
    }
}
