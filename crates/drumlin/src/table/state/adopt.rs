//! Tables of another store, taken over as they are there: with all their versions, or one.
//!
//! The records are taken over as a catalog snapshot would have them, with row groups where they are now. The table
//! remembers what it was made as ([`CopyOrigin`]), so a copy that is done again passes over what nobody has changed
//! since.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::{Digest, Error, Result, Seq, TableId, Timestamp, Version};
use crate::block::Address;
use crate::table::{CopyOrigin, Instants, Lineage, Past, StoredSchema, TableState, VersionRecord};

/// A table of another store, whose row groups are in blocks of this one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adopted {
    table: TableState,
    instants: Instants,
    past: Option<Past>,
    /// Of what it is there: see [`crate::table::CopyOrigin`].
    digest: u128,
}

impl Adopted {
    /// What another store takes over of a table: all of its versions, or one. Snapshots hold none of it, and of where its rows
    /// came from nothing is said. If some of what it knows of times is later than `now`, the time of the other store, what lies
    /// between versions is left behind. `Conflict` while rows written by key are in memory.
    pub fn of(table: &TableState, version: Option<Version>, now: Timestamp) -> Result<Self> {
        let digest = digest(table, version)?;
        let mut table = table.copied(TableId(0), version, Seq(0))?;
        table.lineage = Arc::new(Lineage::default());
        // Their runs are made again there.
        table.indexes = Arc::default();
        table.layout = None;
        let gaps = table.instants.gaps.values().map(|(_, until)| *until).filter(|until| until.0 < i64::MAX);
        if table.versions.iter().map(|record| record.time).chain(gaps).any(|time| time > now) {
            table.instants = Arc::new(Instants::default());
        }
        Ok(Self::new(table, digest))
    }

    fn new(table: TableState, digest: u128) -> Self {
        Self { instants: Instants::clone(&table.instants), past: Past::of(&table), table, digest }
    }

    /// The row groups of it, each once.
    pub fn addresses(&self) -> BTreeSet<Address> {
        self.table.addresses().copied().collect()
    }

    /// Whether row groups of it have patches.
    pub fn has_patches(&self) -> bool {
        self.table.groups.iter().any(|group| group.patched.is_some())
    }

    /// Whether row groups of it were laid out.
    pub fn has_tracts(&self) -> bool {
        self.table.groups.iter().any(|group| group.tract().is_some())
    }

    /// Every schema of it.
    pub fn schemas(&self) -> &[StoredSchema] {
        &self.table.schemas
    }

    /// The same with its row groups where they were copied to.
    pub fn moved(&self, moves: &[(Address, Address)]) -> Result<Self> {
        Ok(Self::new(self.table.moved(moves)?.0, self.digest))
    }

    /// Whether `table` is the same: it was taken over before, and nobody has changed either since, except that versions have
    /// expired there.
    pub fn is_like(&self, table: &TableState) -> bool {
        let same = |record: &Arc<VersionRecord>| {
            self.table.version(record.version).is_some_and(|own| own.metadata == record.metadata)
        };
        let newest = |table: &TableState| table.newest().map(|record| record.version);
        table.lineage.origin.is_some_and(|origin| (origin.digest, origin.seq) == (self.digest, table.rows_seq))
            && newest(&self.table) == newest(table)
            && table.versions.iter().all(same)
            && table.schema() == self.table.schema()
            && table.lineage.purged == Seq(0)
            && table.parts.is_empty()
    }

    /// The table as one of this store, from a commit on. `Corrupt` if it cannot be one.
    pub fn table(&self, id: TableId, seq: Seq, time: Timestamp) -> Result<TableState> {
        let mut table = TableState { id, rows_seq: seq, bulk_seq: seq, layout_seq: seq, ..self.table.clone() };
        if !table.parts.is_empty() || !table.pins.is_empty() {
            return Err(Error::corrupt("a table of another store has rows in memory, or is held by snapshots"));
        }
        table.instants = Arc::new(self.instants.clone());
        // No version of a store is younger than its last commit: the clock of the other may have been ahead.
        for record in table.versions.iter_mut() {
            let record = Arc::make_mut(record);
            (record.seq, record.time) = (seq, record.time.min(time));
        }
        table.check()?;
        if let Some(past) = self.past.clone() {
            past.give(&mut table)?;
        }
        Arc::make_mut(&mut table.lineage).origin = Some(CopyOrigin { digest: self.digest, seq });
        Ok(table)
    }
}

/// Tells what a table is, with all of its versions or one, from what it will be once anything of it changes: rows, versions,
/// columns, what is noted of them, or what it knows of times.
fn digest(table: &TableState, version: Option<Version>) -> Result<u128> {
    let mut digest = Digest::new();
    let text = |digest: &mut Digest, text: &[u8]| {
        digest.add(text.len() as u64);
        text.iter().for_each(|byte| digest.add(u64::from(*byte)));
    };
    let which = version.map_or(0, |version| version.0 + 1);
    [table.id.0, table.next_version, table.lineage.purged.0, which].into_iter().for_each(|word| digest.add(word));
    for record in &table.versions {
        let words = [record.version.0, record.seq.0, record.time.0.cast_unsigned(), record.rows];
        words.into_iter().for_each(|word| digest.add(word));
        text(&mut digest, record.metadata.as_deref().unwrap_or_default().as_bytes());
    }
    let encoded = postcard::to_stdvec(&(&table.schemas, &table.instants.gaps));
    text(&mut digest, &encoded.map_err(|e| Error::invalid("a schema cannot be encoded").with_source(e.to_string()))?);
    table.instants.histories.iter().for_each(|history| digest.add(history.version.0));
    Ok(digest.0)
}
