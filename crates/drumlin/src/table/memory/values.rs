//! What rows written by key have in unique indexes: the hash of their values, by the commit that wrote them.
//!
//! A write to a table with such an index has been compared with all rows of a state. In the turn of its commit only what was written
//! since is left to compare with, without reading: rows in row groups are known to be there, and these lists tell of the others.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::base::{Result, Seq};
use crate::table::index::definition::BoundIndex;
use crate::table::index::unique::{ANY_VALUE, hashes_of, named_batch};
use crate::table::{IndexDefinition, PreparedRows, StoredSchema, TableCodec, TableIndex, Unique};

/// What is written to a part in one index.
pub(in crate::table) struct PartValues {
    index: u64,
    definition: IndexDefinition,
    bound: BoundIndex,
    written: Mutex<Vec<(Seq, u64)>>,
}

impl std::fmt::Debug for PartValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartValues").field("index", &self.index).finish_non_exhaustive()
    }
}

impl PartValues {
    /// Nothing yet, of rows that have `schema`; `None` if that lacks a column of the index.
    pub fn of(index: &TableIndex, schema: &StoredSchema) -> Result<Option<Self>> {
        let Some(named) = index.definition.named(schema)? else { return Ok(None) };
        let definition = index.definition.clone().with_unique(Unique::Proven);
        Ok(Some(Self { index: index.id, definition, bound: named.bound(schema)?, written: Mutex::default() }))
    }

    /// Whether it is of this index: the number alone may have been given to one that was never committed.
    pub fn is_of(&self, index: &TableIndex) -> bool {
        let IndexDefinition { name: _, values, condition, unique: _ } = &index.definition;
        self.index == index.id && (&self.definition.values, &self.definition.condition) == (values, condition)
    }

    /// The hashes of what rows have; that of any value if it cannot be computed.
    pub fn hashes(&self, codec: &TableCodec, rows: &PreparedRows) -> Arc<[u64]> {
        let found = || -> Result<Vec<u64>> {
            let columns = codec.decode(&rows.puts, &rows.rows, &self.bound.columns)?;
            let batch = named_batch(codec.schema(), &self.bound.columns, columns, rows.puts.len())?;
            Ok(hashes_of(&self.bound, &batch)?.into_iter().flatten().collect())
        };
        rows.hashes(&self.definition, || found().unwrap_or_else(|_| vec![ANY_VALUE]))
    }

    /// Notes what a commit has written.
    pub fn note(&self, hashes: &[u64], seq: Seq) {
        self.written.lock().extend(hashes.iter().map(|hash| (seq, *hash)));
    }

    /// Whether any of `hashes` was written after the commit `since`; `None` stands for all hashes.
    pub fn wrote_any(&self, hashes: Option<&HashSet<u64>>, since: Seq) -> bool {
        let written = self.written.lock();
        let first = written.partition_point(|(seq, _)| *seq <= since);
        written[first..].iter().any(|(_, hash)| meets(hashes, *hash))
    }
}

/// Whether a hash is among others.
pub(in crate::table) fn meets(hashes: Option<&HashSet<u64>>, hash: u64) -> bool {
    hash == ANY_VALUE || hashes.is_none_or(|hashes| hashes.contains(&hash) || hashes.contains(&ANY_VALUE))
}
