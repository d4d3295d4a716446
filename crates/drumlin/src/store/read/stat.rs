//! Figures about a store and its tables.

use super::resolve::newest;
use crate::base::Result;
use crate::block::CacheStat;
use crate::catalog::State;
use crate::storage::{Storage, names};
use crate::store::Store;
use crate::table::{RowLayoutStat, TableState};

/// Figures about a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStat {
    /// The last commit.
    pub seq: u64,
    /// Nodes of the tree.
    pub nodes: u64,
    /// Tables in the tree.
    pub tables: u64,
    /// Dropped tables that can be restored.
    pub trash: u64,
    /// Snapshots.
    pub snapshots: u64,
    /// Listed versions of all tables in the tree.
    pub versions: u64,
    /// Row groups of all tables.
    pub row_groups: u64,
    /// Blocks in use that are on storage.
    pub blocks: u64,
    /// Bytes of those blocks.
    pub block_bytes: u64,
    /// Bytes of row groups in use within them.
    pub live_bytes: u64,
    /// Blocks in use that are not on storage: they came with commits, are in the log or the catalog, and wait for a
    /// checkpoint.
    pub inline_blocks: u64,
    /// Blocks that wait for a reclaim.
    pub condemned: u64,
    /// Bytes of those blocks.
    pub condemned_bytes: u64,
    /// Leases, and jobs with staged blocks, that have not ended.
    pub holds: u64,
    /// Bytes of the log and catalog snapshots.
    pub log_bytes: u64,
    /// Memory of rows written by key that wait for a checkpoint, in bytes.
    pub memtable_bytes: u64,
    /// The cache of encoded data.
    pub cache: CacheStat,
}

impl StoreStat {
    /// Bytes of the store on storage, except orphans.
    pub fn bytes(&self) -> u64 {
        self.block_bytes + self.condemned_bytes + self.log_bytes
    }
}

/// Figures about a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableStat {
    /// Rows of the newest version, and those written by key since.
    pub rows: u64,
    /// Rows stored, including deleted ones.
    pub stored_rows: u64,
    /// Listed versions.
    pub versions: u64,
    /// Row groups.
    pub row_groups: u64,
    /// Their encoded bytes, with those of histories and indexes.
    pub bytes: u64,
    /// Those of indexes among them.
    pub index_bytes: u64,
    /// Indexes.
    pub indexes: u64,
    /// Columns of the newest version.
    pub columns: u64,
    /// The columns by which rows are ordered.
    pub sort: Vec<String>,
    /// Whether they are a key.
    pub keyed: bool,
    /// Keys written or deleted that wait in memory for a checkpoint.
    pub memory_keys: u64,
    /// Their memory, with their rows, in bytes.
    pub memory_bytes: u64,
    /// How the row groups of the newest version are laid out, if the table has a layout; known from their directories.
    pub layout: Option<RowLayoutStat>,
}

impl Store {
    /// Figures about the store. Lists the folders of the log and the catalog.
    ///
    /// # Errors
    /// `Unavailable` if storage cannot be listed.
    pub fn stat(&self) -> Result<StoreStat> {
        let state = self.state()?;
        let bytes =
            |folder: &str| -> Result<u64> { Ok(self.storage().list(folder)?.iter().map(|object| object.bytes).sum()) };
        let mut stat = StoreStat {
            seq: state.seq.0,
            nodes: state.tree.len() as u64,
            trash: state.trash.tables().len() as u64,
            snapshots: state.snapshots.len() as u64,
            holds: state.holds.open.len() as u64,
            log_bytes: bytes(names::LOG)? + bytes(names::CATALOG)?,
            memtable_bytes: state.memtable_bytes(),
            cache: self.reader().cache(),
            ..StoreStat::default()
        };
        let totals = state.totals();
        (stat.tables, stat.versions, stat.row_groups) = (state.linked() as u64, totals.versions, totals.groups);
        for table in state.tables_off_tree() {
            stat.versions -= table?.versions.len() as u64;
        }
        for (block, used) in state.ledger.blocks() {
            if state.ledger.is_inline(*block) {
                stat.inline_blocks += 1;
                continue;
            }
            stat.blocks += 1;
            stat.block_bytes += used.bytes;
            stat.live_bytes += used.live_bytes;
        }
        for (_, condemned) in state.ledger.condemned() {
            stat.condemned += 1;
            stat.condemned_bytes += condemned.bytes;
        }
        Ok(stat)
    }

    /// How many rows the newest version has, with those written since, and with those that have expired. Reads row groups only if rows are in
    /// memory.
    pub(in crate::store) fn stored_rows(&self, state: &State, table: &TableState) -> Result<u64> {
        match table.newest() {
            Some(newest) if table.parts.is_empty() => Ok(newest.rows),
            Some(_) => self.count_rows(table, newest(self, state, table).with_expired()),
            None => Ok(0),
        }
    }

    /// How many rows the newest version has, with those written since.
    pub(in crate::store) fn newest_rows(&self, state: &State, table: &TableState) -> Result<u64> {
        match table.newest() {
            Some(newest) if table.parts.is_empty() && !table.expires() => Ok(newest.rows),
            Some(_) => self.count_rows(table, newest(self, state, table)),
            None => Ok(0),
        }
    }
}
