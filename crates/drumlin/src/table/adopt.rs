//! Tables of another store, taken over as they are there: with all their versions, or one.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Instants, Lineage, Origin, Past, Table, VersionRecord};
use crate::base::{Digest, Error, Result, Seq, TableId, Timestamp, Version};
use crate::block::Address;

/// A table of another store, whose row groups are in blocks of this one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adopted {
    table: Table,
    instants: Instants,
    past: Option<Past>,
    /// Of what it is there: see [`super::Origin`].
    digest: u128,
}

impl Adopted {
    /// What another store takes over of a table: all of its versions, or one. Snapshots hold none of it, and of where its rows
    /// came from nothing is said. `Conflict` while rows written by key are in memory.
    pub fn of(table: &Table, version: Option<Version>) -> Result<Self> {
        let id = table.id;
        let mut table = table.copied(TableId(0), version, Seq(0))?;
        table.lineage = Arc::new(Lineage::default());
        let mut digest = Digest::new();
        [id.0, table.next_version].into_iter().for_each(|word| digest.add(word));
        for record in &table.versions {
            let words = [record.version.0, record.seq.0, record.time.0.cast_unsigned(), record.rows];
            words.into_iter().for_each(|word| digest.add(word));
            record.metadata.iter().flat_map(|text| text.bytes()).for_each(|byte| digest.add(byte.into()));
        }
        Ok(Self::new(table, digest.0))
    }

    fn new(table: Table, digest: u128) -> Self {
        Self { instants: Instants::clone(&table.instants), past: Past::of(&table), table, digest }
    }

    /// The row groups of it, each once.
    pub fn addresses(&self) -> BTreeSet<Address> {
        self.table.addresses().copied().collect()
    }

    /// The same with its row groups where they were copied to.
    pub fn moved(&self, moves: &[(Address, Address)]) -> Result<Self> {
        Ok(Self::new(self.table.moved(moves)?.0, self.digest))
    }

    /// Whether `table` is the same: it was taken over before, and nobody has changed either since.
    pub fn is_like(&self, table: &Table) -> bool {
        let number = |record: &VersionRecord| record.version;
        table.lineage.origin.is_some_and(|origin| (origin.digest, origin.seq) == (self.digest, table.rows_seq))
            && self.table.versions.iter().map(number).eq(table.versions.iter().map(number))
            && table.parts.is_empty()
    }

    /// The number of its versions.
    pub fn versions(&self) -> usize {
        self.table.versions.len()
    }

    /// The table as one of this store, from a commit on. `Corrupt` if it cannot be one.
    pub fn table(&self, id: TableId, seq: Seq, time: Timestamp) -> Result<Table> {
        let mut table = Table { id, rows_seq: seq, bulk_seq: seq, layout_seq: seq, ..self.table.clone() };
        if !table.parts.is_empty() || !table.pins.is_empty() {
            return Err(Error::corrupt("a table of another store with rows in memory, or held by snapshots"));
        }
        table.instants = Arc::new(self.instants.clone());
        // No version of a store is younger than its last commit: the clock of the other may have been ahead.
        if table.versions.iter().any(|record| record.time > time) {
            table.instants = Arc::new(Instants::default());
        }
        for record in table.versions.iter_mut() {
            (record.seq, record.time) = (seq, record.time.min(time));
        }
        table.check()?;
        if let Some(past) = self.past.clone() {
            past.give(&mut table)?;
        }
        Arc::make_mut(&mut table.lineage).origin = Some(Origin { digest: self.digest, seq });
        Ok(table)
    }
}
