//! Old versions in new places, without data: a restore makes a new version of one, a copy a new table. The new records
//! name the bytes of the old ones.
//!
//! A restored version gets records of its own beside those whose rows differ, so that the order of rows stays; what is
//! the same stays as it is. No snapshot holds anything of a copied table. A table that gets the rows of another keeps
//! its own constraints. Both need all rows in row groups: applied to a table with rows in memory, they are refused
//! (in_groups.rs says who moves those rows first).

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::Vector;

use crate::base::planted::{Bug, planted};
use crate::base::{Error, Memo, Result, Seq, TableId, Timestamp, Version};
use crate::block::Address;
use crate::table::memory::part::InMemory;
use crate::table::{
    ALIVE, Deletion, GroupId, Instants, RowGroup, Rows, Run, TableState, Turnover, VersionKind, VersionRecord,
};

impl TableState {
    /// The next version: the rows, schema and metadata of `version` of `from`, which may be this table, or another of the same
    /// sort order and key. Its rows have the order that they had. What is there already, with the same rows, stays as it is.
    ///
    /// Returns the table and the addresses that gained a record. `Conflict` while rows written by key are in memory.
    pub fn restored(
        &self,
        from: &TableState,
        version: Version,
        seq: Seq,
        time: Timestamp,
    ) -> Result<(TableState, Vec<Address>)> {
        self.check_in_groups()?;
        from.check_in_groups()?;
        let record = from.record(version)?;
        if from.spec != self.spec {
            return Err(Error::invalid(
                "the table has another sort order or key than the one whose version is to be restored",
            ));
        }
        let own = from.id == self.id;
        let mut next = self.clone();
        let made = Version(self.next_version);
        next.next_version += 1;
        // A version may have row groups that were written with other schemas.
        let seen = from.groups.iter().filter(|group| from.serves(group, version)).flat_map(|group| group.schemas());
        let mut schemas: BTreeMap<u32, u32> = BTreeMap::new();
        for schema in [record.schema].into_iter().chain(seen) {
            let kept: Vec<u32> = schemas.values().copied().collect();
            let place = || if own { schema } else { next.place_of_schema(&from.schemas[schema as usize], &kept) };
            schemas.entry(schema).or_insert_with(place);
        }
        let schema = schemas[&record.schema];
        let newest = self.newest().map_or(Version(0), |newest| newest.version);
        // Records that serve only a version that the table has left lie behind all others.
        let beside = own && from.pins.get(&version).is_none_or(|pin| !pin.detached);
        let mut taken = Vec::new();
        let (mut groups, mut turnover) = (Vector::new(), Turnover::default());
        let mut take = |next: &mut TableState, groups: &mut Vector<Arc<RowGroup>>, group: &RowGroup, rows: &Rows| {
            taken.extend(group.addresses());
            let id = GroupId(next.next_group);
            next.next_group += 1;
            let place = |own: u32| if planted(Bug::OneSchemaRestored) { schema } else { schemas[&own] };
            let shown = group.shown_from(rows, made).with_schemas_at(place);
            groups.push_back(Arc::new(RowGroup { id, ..shown }));
        };
        for group in &self.groups {
            let now = self.visible(group, newest);
            let then = if beside { self.visible(group, version) } else { Rows::None };
            let stays = now == then && now != Rows::None;
            if stays || planted(Bug::RestorePart) && now != Rows::None && then != Rows::None {
                groups.push_back(group.clone());
                continue;
            }
            turnover.added += then.without(&now, group.rows).count(group.rows);
            turnover.removed += now.without(&then, group.rows).count(group.rows);
            // Also one whose rows are all deleted: it may lack columns, as of a key, of the version that comes back.
            let ends = self.serves(group, newest) && !(now == Rows::None && planted(Bug::KeepDeleted));
            groups.push_back(if ends { Arc::new(group.ended(made)) } else { group.clone() });
            if then != Rows::None {
                take(&mut next, &mut groups, group, &then);
            }
        }
        for group in from.groups.iter().filter(|_| !beside) {
            let then = from.visible(group, version);
            if then != Rows::None {
                turnover.added += then.count(group.rows);
                take(&mut next, &mut groups, group, &then);
            }
        }
        next.groups = groups;
        if !own {
            next.lineage = Arc::new(self.lineage.with(from.id, &from.lineage));
        }
        let kind = VersionKind::Restore;
        let record = VersionRecord { version: made, seq, time, kind, schema, ..VersionRecord::clone(record) };
        next.add_version(record, Some(turnover));
        (next.rows_seq, next.bulk_seq, next.layout_seq) = (seq, seq, seq);
        Ok((next, taken))
    }

    /// A table of its own with the same versions under the same numbers, or only with `version`. No snapshot holds any of it.
    /// Each of its addresses gains a record. `Conflict` while rows written by key are in memory.
    pub fn copied(&self, id: TableId, version: Option<Version>, seq: Seq) -> Result<TableState> {
        self.check_in_groups()?;
        let mut copy = TableState {
            id,
            pins: Default::default(),
            rows_seq: seq,
            layout_seq: seq,
            bulk_seq: seq,
            moved: InMemory::default(),
            unsettled: InMemory::default(),
            codec: InMemory::default(),
            lineage: Arc::new(self.lineage.with(self.id, &self.lineage)),
            ..self.clone()
        };
        let Some(version) = version else {
            copy.groups.retain(|group| group.only.is_none());
            copy.shed(seq);
            return Ok(copy);
        };
        copy.versions = Vector::unit(self.record(version)?.clone());
        copy.next_version = version.0 + 1;
        copy.flushed = self.flushed.min(version);
        copy.instants = Arc::new(Instants::default());
        let seen = self.groups.iter().filter_map(|group| match self.visible(group, version) {
            Rows::None => None,
            rows => Some(Arc::new(group.shown_from(&rows, version))),
        });
        copy.groups = seen.collect();
        copy.uncover();
        Ok(copy)
    }

    /// `Conflict` while rows written by key are in memory: they belong to one table, and the log says to which.
    pub(in crate::table) fn check_in_groups(&self) -> Result<()> {
        match self.parts.is_empty() || planted(Bug::CopyInMemory) {
            true => Ok(()),
            false => Err(Error::conflict("rows written by key are not in row groups yet; checkpoint the store first")),
        }
    }
}

impl RowGroup {
    /// The record as of a version that ends all of its rows.
    pub(in crate::table) fn ended(&self, version: Version) -> RowGroup {
        let mut ended = self.clone();
        ended.runs.iter_mut().filter(|run| run.died == ALIVE).for_each(|run| run.died = version);
        ended
    }

    /// A record in which `rows` are there from a version on, and no others ever.
    pub(in crate::table) fn shown_from(&self, rows: &Rows, version: Version) -> RowGroup {
        let hidden = Rows::All.without(rows, self.rows).positions(self.rows);
        let hidden = (!hidden.is_empty()).then(|| Deletion { born: version, rows: hidden.into() });
        RowGroup {
            runs: vec![Run { rows: self.rows, born: version, died: ALIVE }],
            deletions: hidden.into_iter().collect(),
            only: None,
            bounds: Memo::default(),
            ends: Memo::default(),
            ..self.clone()
        }
    }
}
