//! What rows written by key have in unique indexes: the hash of their values, by the commit that wrote them, and their keys by the hash.
//!
//! A write to a table with such an index is compared with all rows of a state: those in memory that may have its values are found here. In
//! the turn of its commit only what was written since is left to compare with, without reading: rows in row groups are known to be there,
//! and these lists tell of the others.
//!
//! Entries are never removed: which row a key has is asked of the memtable, so a state of any time is served.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use parking_lot::Mutex;

use crate::base::{Result, Seq};
use crate::memtable::Keys;
use crate::table::index::compared::{ANY_VALUE, Hashes, hashes_of, meets, named_batch};
use crate::table::index::definition::BoundIndex;
use crate::table::memory::batch::RowHashes;
use crate::table::{IndexDefinition, PreparedRows, StoredSchema, TableCodec, TableIndex, Unique};

/// What an entry takes, and its place by its hash; its key comes to that.
const ENTRY_BYTES: u64 = 48;

/// What is written to a part in one index.
pub(in crate::table) struct PartValues {
    index: u64,
    definition: IndexDefinition,
    bound: BoundIndex,
    /// Whether all rows of the part are here.
    pub is_complete: bool,
    written: Mutex<Written>,
}

/// Rows that were written, in the order of their commits.
#[derive(Default)]
struct Written {
    /// The commit, the hash, and the place, from one on, of the entry before it with this hash; zero if there is none.
    entries: Vec<(Seq, u64, u32)>,
    keys: Keys,
    /// The place, from one on, of the last entry with a hash.
    last: HashMap<u64, u32, FixedState>,
}

impl Written {
    fn memory_bytes(&self) -> u64 {
        self.entries.len() as u64 * ENTRY_BYTES + self.keys.memory_bytes()
    }
}

impl std::fmt::Debug for PartValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartValues").field("index", &self.index).finish_non_exhaustive()
    }
}

impl PartValues {
    /// Nothing yet, of rows that have `schema`; `None` if that lacks a column of the index.
    pub fn of(index: &TableIndex, schema: &StoredSchema, is_complete: bool) -> Result<Option<Self>> {
        let Some(named) = index.definition.named(schema)? else { return Ok(None) };
        let definition = index.definition.clone().with_unique(Unique::Proven);
        Ok(Some(Self {
            index: index.id,
            definition,
            bound: named.bound(schema)?,
            is_complete,
            written: Mutex::default(),
        }))
    }

    /// Whether it is of this index: the number alone may have been given to one that was never committed.
    pub fn is_of(&self, index: &TableIndex) -> bool {
        let IndexDefinition { values, condition, .. } = &index.definition;
        self.index == index.id && (&self.definition.values, &self.definition.condition) == (values, condition)
    }

    /// The hash of what each row has: none of one that is not compared, that of any value if they cannot be computed.
    pub fn hashes(&self, codec: &TableCodec, rows: &PreparedRows) -> RowHashes {
        let found = || -> Result<Vec<Option<u64>>> {
            let columns = codec.decode(&rows.puts, &rows.rows, &self.bound.columns)?;
            let batch = named_batch(codec.schema(), &self.bound.columns, columns, rows.puts.len())?;
            hashes_of(&self.bound, &batch)
        };
        rows.hashes(&self.definition, || found().unwrap_or_else(|_| vec![Some(ANY_VALUE); rows.puts.len()]))
    }

    /// Bytes in memory, about.
    pub fn memory_bytes(&self) -> u64 {
        self.written.lock().memory_bytes()
    }

    /// Notes what a commit has written. Returns the bytes that this takes in memory, about.
    pub fn note(&self, codec: &TableCodec, rows: &PreparedRows, seq: Seq) -> u64 {
        let hashes = self.hashes(codec, rows);
        let mut written = self.written.lock();
        let before = written.memory_bytes();
        let Written { entries, keys, last } = &mut *written;
        for (at, hash) in hashes.iter().enumerate() {
            let Some(hash) = *hash else { continue };
            keys.push_key(rows.puts.get(at));
            let place = entries.len() as u32 + 1;
            entries.push((seq, hash, last.insert(hash, place).unwrap_or(0)));
        }
        written.memory_bytes() - before
    }

    /// Whether any of `hashes` was written after the commit `since`; `None` stands for all hashes.
    pub fn wrote_any(&self, hashes: Option<&Hashes>, since: Seq) -> bool {
        let written = self.written.lock();
        let first = written.entries.partition_point(|(seq, ..)| *seq <= since);
        written.entries[first..].iter().any(|(_, hash, _)| meets(hashes, *hash))
    }

    /// Adds the keys that rows with one of `hashes` were written with, some maybe more than once.
    pub fn find(&self, hashes: impl Iterator<Item = u64>, found: &mut Keys) {
        let written = self.written.lock();
        for hash in hashes.chain([ANY_VALUE]) {
            let mut place = written.last.get(&hash).copied().unwrap_or(0);
            while let Some(at) = place.checked_sub(1) {
                found.push_key(written.keys.get(at as usize));
                place = written.entries[at as usize].2;
            }
        }
    }
}
