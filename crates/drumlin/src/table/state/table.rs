//! A table's state: its versions and row groups. A value; every edit makes a new one.
//!
//! Invariants: there is always a newest version; versions ascend and their numbers are never reused; every row group
//! has a row that some retained version sees (a version that is listed, or pinned by a snapshot).
//!
//! Deleting the newest version makes the one before it the newest again: rows that died in it live on, rows born in it
//! die. If a snapshot holds the deleted version, that gets records of its own (`only`), which share the bytes of the
//! others.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::Vector;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::moves::Moves;
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, Seq, TableId, Timestamp, Version};
use crate::block::Address;
use crate::table::group::row_group::{Rows, any_in};
use crate::table::memory::part::{InMemory, MemtablePart, Unsettled};
use crate::table::{
    GroupId, Indexes, Instants, Lineage, NewGroup, RowGroup, Run, StoredLayout, StoredSchema, TableCodec, TableSpec,
    VersionRecord,
};

/// A version that snapshots hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedVersion {
    /// Its record, which may no longer be in the table's list.
    pub record: Arc<VersionRecord>,
    /// How many snapshots hold it.
    pub holds: u32,
    /// The table has continued from an older version: only row group records made for this version serve it.
    pub detached: bool,
}

/// The versions that must stay readable, ascending, by the row group records that serve them.
pub struct Retained {
    shared: Vec<Version>,
    detached: Vec<Version>,
}

impl Retained {
    /// The rows of `group` that a retained version sees.
    pub fn needed(&self, group: &RowGroup) -> Rows {
        match group.only {
            None => group.needed(&self.shared),
            Some(version) if self.detached.contains(&version) => group.needed(&[version]),
            Some(_) => Rows::None,
        }
    }

    /// Whether one of them is in `born..died`, not counting those served by records of their own.
    pub(in crate::table) fn any_in(&self, born: Version, died: Version) -> bool {
        any_in(&self.shared, born, died)
    }
}

/// The state of one table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableState {
    /// The table's name in everything durable.
    pub id: TableId,
    /// What it was created with.
    pub spec: TableSpec,
    /// Every schema it has had; row groups and versions refer to them by position.
    pub schemas: Vec<StoredSchema>,
    /// The listed versions, ascending.
    #[serde(with = "crate::base::persistent::vector")]
    pub versions: Vector<Arc<VersionRecord>>,
    /// The row groups, in row order.
    #[serde(with = "crate::base::persistent::vector")]
    pub groups: Vector<Arc<RowGroup>>,
    /// Versions that snapshots hold.
    pub pins: BTreeMap<Version, PinnedVersion>,
    /// The last commit that changed what the newest version sees.
    pub rows_seq: Seq,
    /// The last commit that changed which row groups there are.
    pub layout_seq: Seq,
    /// Row writes that are not in row groups yet, the oldest first.
    pub parts: Vec<MemtablePart>,
    /// Row writes up to the one of this version were turned into row groups.
    pub flushed: Version,
    /// The last commit that changed the content of row groups, rather than only moving it.
    pub bulk_seq: Seq,
    pub(in crate::table) next_version: u64,
    pub(in crate::table) next_group: u64,
    /// Rewrites over which changes prepared earlier may still have to be carried.
    #[serde(skip)]
    pub(in crate::table) moved: InMemory<Moves>,
    /// Rows of commits not yet published.
    #[serde(skip)]
    pub(in crate::table) unsettled: InMemory<Vector<Unsettled>>,
    /// What is known about times between versions; stored separately.
    #[serde(skip)]
    pub instants: Arc<Instants>,
    /// Where its rows came from, and when some were erased; stored separately.
    #[serde(skip)]
    pub lineage: Arc<Lineage>,
    /// Its indexes, and what of it they cover; stored separately.
    #[serde(skip)]
    pub indexes: Arc<Indexes>,
    /// By what its row groups are sorted, if not by what its rows are shown in; stored separately.
    #[serde(skip)]
    pub layout: Option<Arc<StoredLayout>>,
    /// How rows of the last requested schema are encoded.
    #[serde(skip)]
    pub(in crate::table) codec: InMemory<Arc<Mutex<Option<Arc<TableCodec>>>>>,
}

impl TableState {
    /// A table without a version; the first [`TableState::change`] makes version 0.
    pub fn new(id: TableId, spec: TableSpec) -> Self {
        Self {
            id,
            spec,
            schemas: Vec::new(),
            versions: Vector::new(),
            groups: Vector::new(),
            pins: BTreeMap::new(),
            rows_seq: Seq(0),
            layout_seq: Seq(0),
            parts: Vec::new(),
            flushed: Version(0),
            bulk_seq: Seq(0),
            next_version: 0,
            next_group: 0,
            moved: InMemory::default(),
            unsettled: InMemory::default(),
            instants: Arc::default(),
            lineage: Arc::default(),
            indexes: Arc::default(),
            layout: None,
            codec: InMemory::default(),
        }
    }

    /// The newest version; `None` only before the first one.
    pub fn newest(&self) -> Option<&Arc<VersionRecord>> {
        self.versions.last()
    }

    /// The newest version's schema.
    pub fn schema(&self) -> Option<&StoredSchema> {
        self.newest().map(|newest| &self.schemas[newest.schema as usize])
    }

    /// Whether rows of the newest version expire.
    pub fn expires(&self) -> bool {
        self.schema().is_some_and(StoredSchema::expires)
    }

    /// The schema of a version that is listed or pinned.
    pub fn schema_of(&self, version: Version) -> Result<&StoredSchema> {
        Ok(&self.schemas[self.record(version)?.schema as usize])
    }

    /// The columns that rows of the newest version are ordered by; none for insertion order.
    pub fn order(&self) -> &[String] {
        self.schema().map_or(&self.spec.sort, |schema| schema.order(&self.spec))
    }

    /// The same of a version that is listed or pinned.
    pub fn order_of(&self, version: Version) -> Result<&[String]> {
        Ok(self.schema_of(version)?.order(&self.spec))
    }

    /// The record of a version that is listed or pinned.
    pub fn version(&self, version: Version) -> Option<&Arc<VersionRecord>> {
        let at = self.versions.binary_search_by_key(&version, |record| record.version).ok();
        at.map(|at| &self.versions[at]).or_else(|| self.pins.get(&version).map(|pin| &pin.record))
    }

    /// The same, or `NotFound`.
    pub fn record(&self, version: Version) -> Result<&Arc<VersionRecord>> {
        self.version(version).ok_or_else(|| Error::not_found(format!("version {version} does not exist")))
    }

    /// The newest listed version made at or before `time`.
    pub fn version_at(&self, time: Timestamp) -> Option<&Arc<VersionRecord>> {
        self.versions.iter().rev().find(|record| record.time <= time)
    }

    /// Every version that must stay readable.
    pub fn retained(&self) -> Retained {
        self.retained_if(|_| true)
    }

    /// Those of them that `wanted` accepts.
    pub fn retained_if(&self, wanted: impl Fn(&VersionRecord) -> bool) -> Retained {
        let is_detached = |version: &Version| self.pins.get(version).is_some_and(|pin| pin.detached);
        let listed = self.versions.iter().filter(|record| wanted(record)).map(|record| record.version);
        let mut shared: Vec<Version> = listed.filter(|version| !is_detached(version)).collect();
        let pins = || self.pins.iter().filter(|(_, pin)| wanted(&pin.record));
        if !planted(Bug::ForgetPins) {
            shared.extend(pins().filter(|(_, pin)| !pin.detached).map(|(version, _)| *version));
        }
        shared.sort_unstable();
        shared.dedup();
        let detached = pins().filter(|(_, pin)| pin.detached).map(|(version, _)| *version).collect();
        Retained { shared, detached }
    }

    /// The rows of `group` that `version`, listed or pinned, sees.
    pub fn visible(&self, group: &RowGroup, version: Version) -> Rows {
        match self.serves(group, version) {
            true => group.visible(version),
            false => Rows::None,
        }
    }

    /// Bytes that the newest version does not show, or all if the table `is_shown` nowhere.
    pub fn history_bytes(&self, is_shown: bool) -> u64 {
        let newest = self.newest().filter(|_| is_shown).map(|newest| newest.version);
        // What the newest version shows may be named by older records too.
        let shows = |group: &&Arc<RowGroup>| newest.is_some_and(|v| self.visible(group, v) != Rows::None);
        let current = self.groups.iter().filter(shows).flat_map(|group| group.addresses());
        let current = current.chain(self.indexes.addresses().filter(|_| newest.is_some()));
        let current: std::collections::BTreeSet<&Address> = current.collect();
        self.bytes() - current.into_iter().map(Address::bytes).sum::<u64>()
    }

    /// Whether `group` was in `version`, listed or pinned: only then does it have that version's schema. O(runs).
    pub fn serves(&self, group: &RowGroup, version: Version) -> bool {
        let detached = self.pins.get(&version).is_some_and(|pin| pin.detached);
        group.only == detached.then_some(version) && group.is_in(version)
    }

    /// Adds a newly written row group.
    pub(in crate::table) fn add_group(&mut self, group: &NewGroup, schema: u32, run: Run) -> Result<()> {
        let id = GroupId(self.next_group);
        self.next_group += 1;
        let group = group.record(id, schema, run);
        group.check(self.schemas.len())?;
        self.groups.push_back(Arc::new(group));
        Ok(())
    }

    /// The place of a schema: its own, one that nothing refers to any more, or a new one. Otherwise, frames whose metadata
    /// differ each time would make the list grow forever.
    ///
    /// What is at the places `kept` stays there though nothing refers to it yet.
    pub(in crate::table) fn place_of_schema(&mut self, schema: &StoredSchema, kept: &[u32]) -> u32 {
        if let Some(known) = self.schemas.iter().position(|known| known == schema) {
            return known as u32;
        }
        let mut used = vec![false; self.schemas.len()];
        self.parts.iter().for_each(|part| used[part.schema as usize] = true);
        let records = self.versions.iter().chain(self.pins.values().map(|pin| &pin.record)).map(|record| record.schema);
        let histories = self.instants.histories.iter().map(|history| history.schema);
        let runs = self.indexes.list.iter().flat_map(|index| index.runs()).map(|run| run.schema);
        let groups = self.groups.iter().flat_map(|group| group.schemas());
        records
            .chain(runs)
            .chain(groups)
            .chain(histories)
            .chain(kept.iter().copied())
            .for_each(|schema| used[schema as usize] = true);
        match used.iter().position(|used| !used) {
            Some(free) => {
                self.schemas[free] = schema.clone();
                free as u32
            }
            None => {
                self.schemas.push(schema.clone());
                (self.schemas.len() - 1) as u32
            }
        }
    }
}
