//! Carrying deletions over to where a table's rows were moved since a change was prepared: see moves.rs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::moves::{Moved, Order};
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, Seq, Version};
use crate::table::{GroupId, Positions, RowGroup, TableState, VersionKind, VersionRecord};

impl TableState {
    /// The number that the next row group gets.
    pub fn next_group(&self) -> GroupId {
        GroupId(self.next_group)
    }

    /// Whether everything that can be read from it is the same as in `then`, an earlier state: it may have been rewritten
    /// and flushed, and a version may have been numbered for existing rows.
    pub fn is_same_content(&self, then: &TableState) -> bool {
        (self.rows_seq, self.schema(), &self.spec) == (then.rows_seq, then.schema(), &then.spec)
            && self.pins.keys().eq(then.pins.keys())
            && self.lists_all_of(then)
    }

    /// Whether nothing was done to it since `then`, an earlier state: no rows were written, no version was numbered, and all lies where it
    /// did.
    pub fn is_untouched(&self, then: &TableState) -> bool {
        let mark = |table: &TableState| (table.rows_seq, table.layout_seq, table.next_version, table.next_group);
        mark(self) == mark(then) && self.parts.len() == then.parts.len() && self.schema() == then.schema()
    }

    /// Whether it lists the versions of `then`, an earlier state, followed only by versions that number existing rows.
    pub fn lists_all_of(&self, then: &TableState) -> bool {
        let key = |record: &VersionRecord| (record.version, record.seq);
        let (old, new) = (then.versions.len(), self.versions.len());
        old <= new
            && self.versions.iter().zip(&then.versions).all(|(a, b)| key(a) == key(b))
            && self.versions.iter().skip(old).all(|record| record.kind == VersionKind::Rows)
    }

    /// The table with other metadata of a version.
    pub fn with_metadata(&self, version: Version, metadata: Option<&String>) -> Result<TableState> {
        self.record(version)?;
        let mut next = self.clone();
        next.edit_version(version, |record| record.metadata = metadata.cloned());
        Ok(next)
    }

    /// Records a rewrite that turned this table into `next`.
    pub(in crate::table) fn note_move(&self, next: &mut TableState, inputs: Vec<Arc<RowGroup>>, seq: Seq) {
        let Some(version) = self.newest().map(|newest| newest.version) else { return };
        if inputs.iter().any(|group| group.only.is_some()) || planted(Bug::ForgetMoves) {
            return;
        }
        let first = self.next_group();
        let outputs = next.groups.iter().filter(|group| group.id >= first).cloned().collect();
        next.moved.0.push_back(Arc::new(Moved { seq, version, inputs, outputs, order: Order::Kept }));
    }

    /// Forgets rewrites that are no longer needed, given that no state before `oldest` is being read.
    pub fn forget_moves(&mut self, oldest: Option<Seq>) {
        self.moved.0.retain(|moved| oldest.is_some_and(|oldest| moved.seq > oldest));
    }

    /// Whether rewrites are recorded.
    pub fn has_moves(&self) -> bool {
        !self.moved.0.is_empty()
    }

    /// The number here of a row group that a change adds which was made on `then`, an earlier state; `None` if `then` has it.
    pub fn carried_group(&self, id: GroupId, then: &TableState) -> Option<GroupId> {
        Some(GroupId(self.next_group + id.0.checked_sub(then.next_group)?))
    }

    /// The number here of a version that `then`, an earlier state, has, or that a change adds which was made on that.
    pub fn carried_version(&self, version: Version, then: &TableState) -> Version {
        let own = version.0.checked_sub(then.next_version);
        own.map_or(version, |own| Version(self.next_version + own))
    }

    /// Whether it has those of some row groups that `then`, an earlier state, has in the order in which that has them.
    pub fn has_in_order_of(&self, then: &TableState, ids: impl Iterator<Item = GroupId>) -> bool {
        let ids: BTreeSet<GroupId> = ids.collect();
        let order = |table: &TableState| -> Vec<GroupId> {
            table.groups.iter().map(|group| group.id).filter(|id| ids.contains(id) && *id < then.next_group()).collect()
        };
        let own = order(self);
        let there: BTreeSet<GroupId> = own.iter().copied().collect();
        order(then).into_iter().filter(|id| there.contains(id)).eq(own)
    }

    /// The new positions of rows that `then`, an earlier state of this table, had at these positions, and that are still
    /// visible. Row groups that `then` did not have yet are those that a change adds to it, and would add to this one.
    /// `Conflict` if the new positions are unknown.
    pub fn carried(&self, deletions: &[(GroupId, Positions)], then: &TableState) -> Result<Vec<(GroupId, Positions)>> {
        let mut found: BTreeMap<GroupId, RoaringBitmap> = BTreeMap::new();
        for (id, positions) in deletions {
            if let Some(own) = self.carried_group(*id, then) {
                *found.entry(own).or_default() |= &*positions.0;
                continue;
            }
            let mut at = BTreeMap::from([(*id, (*positions.0).clone())]);
            for moved in &self.moved.0 {
                let mut next = BTreeMap::new();
                for (id, positions) in std::mem::take(&mut at) {
                    match moved.inputs.iter().position(|input| input.id == id) {
                        Some(input) => moved.carry(input, &positions, &mut next).ok_or_else(|| {
                            Error::conflict(format!("rows of row group {} were removed after they were found", id.0))
                        })?,
                        None => *next.entry(id).or_default() |= positions,
                    }
                }
                at = next;
            }
            for (id, positions) in at {
                *found.entry(id).or_default() |= positions;
            }
        }
        Ok(found.into_iter().map(|(id, positions)| (id, positions.into())).collect())
    }
}
