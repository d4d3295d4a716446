//! Figures of stores and tables, as plain immutable objects.

use drumlin::RowLayout;
use pyo3::prelude::*;

use crate::reports::{describe, record};

record! {
    /// Figures of a store.
    StoreStat {
        /// The number of the newest commit.
        seq: u64,
        /// Nodes of the tree.
        nodes: u64,
        /// Tables in the tree.
        tables: u64,
        /// Dropped tables that can be restored.
        trash: u64,
        /// Snapshots.
        snapshots: u64,
        /// Listed versions of all tables in the tree.
        versions: u64,
        /// Row groups of all tables.
        row_groups: u64,
        /// Blocks in use that are on storage.
        blocks: u64,
        /// The bytes of these blocks.
        block_bytes: u64,
        /// The bytes of the row groups in use within them.
        live_bytes: u64,
        /// Blocks in use that came with commits, are stored in the log or the catalog, and wait for a checkpoint.
        inline_blocks: u64,
        /// Blocks that wait for a reclaim.
        condemned: u64,
        /// The bytes of these blocks.
        condemned_bytes: u64,
        /// Leases, and jobs with staged rows, that have not ended.
        holds: u64,
        /// Bytes of the log and catalog snapshots.
        log_bytes: u64,
        /// All bytes on storage, without orphans.
        bytes: u64,
        /// Memory in bytes for rows written by key that wait for a checkpoint.
        memtable_bytes: u64,
        /// Look-ups that the cache of encoded data answered.
        cache_hits: u64,
        /// Look-ups that went to storage.
        cache_misses: u64,
        /// Bytes in the cache.
        cache_bytes: u64,
        /// The limit of the cache in bytes.
        cache_bytes_max: u64,
    } {}
}

impl From<drumlin::StoreStat> for StoreStat {
    fn from(stat: drumlin::StoreStat) -> Self {
        Self {
            bytes: stat.bytes(),
            seq: stat.seq,
            nodes: stat.nodes,
            tables: stat.tables,
            trash: stat.trash,
            snapshots: stat.snapshots,
            versions: stat.versions,
            row_groups: stat.row_groups,
            blocks: stat.blocks,
            block_bytes: stat.block_bytes,
            live_bytes: stat.live_bytes,
            inline_blocks: stat.inline_blocks,
            condemned: stat.condemned,
            condemned_bytes: stat.condemned_bytes,
            holds: stat.holds,
            log_bytes: stat.log_bytes,
            memtable_bytes: stat.memtable_bytes,
            cache_hits: stat.cache.hits,
            cache_misses: stat.cache.misses,
            cache_bytes: stat.cache.bytes,
            cache_bytes_max: stat.cache.bytes_max,
        }
    }
}

record! {
    /// How the row groups of a table are laid out.
    Layout {
        /// The columns by which they are sorted, one after the other.
        sort_by: Vec<String>,
        /// The columns by which they are sorted together.
        z_order: Vec<String>,
        /// Row groups of the newest version that are laid out like that; checkpoints do the others.
        laid_out: u64,
        /// How many others a row group overlaps in the first column, in the mean: 0 if each value is in one row group. In
        /// a Z-order the mean of all columns, which is never 0.
        overlap: f64,
    } {}
}

impl From<drumlin::RowLayoutStat> for Layout {
    fn from(stat: drumlin::RowLayoutStat) -> Self {
        let (sort_by, z_order) = match stat.layout {
            RowLayout::Sorted(columns) => (columns, Vec::new()),
            RowLayout::Curve(columns) => (Vec::new(), columns),
        };
        Self { sort_by, z_order, laid_out: stat.laid_out, overlap: stat.overlap }
    }
}

record! {
    /// Figures of a table.
    TableStat {
        /// Rows of the newest version, and rows written by key since.
        rows: u64,
        /// Rows in storage, including deleted ones.
        stored_rows: u64,
        /// Listed versions.
        versions: u64,
        /// Row groups.
        row_groups: u64,
        /// The encoded bytes of these row groups, of rows kept for times between versions, and of indexes.
        bytes: u64,
        /// Indexes.
        indexes: u64,
        /// The encoded bytes of the indexes.
        index_bytes: u64,
        /// Columns of the newest version.
        columns: u64,
        /// The columns by which rows are ordered.
        sort: Vec<String>,
        /// The columns of the key, which are also the sort columns; empty if the table has no key.
        key: Vec<String>,
        /// Keys written or deleted that wait in memory for a checkpoint.
        memory_keys: u64,
        /// Memory in bytes for these keys and their rows.
        memory_bytes: u64,
        /// By which columns row groups of the newest version are sorted, if the table has a layout, and how far.
        layout: Option<Layout>,
    } {}
}

impl From<drumlin::TableStat> for TableStat {
    fn from(stat: drumlin::TableStat) -> Self {
        let key = if stat.keyed { stat.sort.clone() } else { Vec::new() };
        let drumlin::TableStat { rows, stored_rows, versions, row_groups, bytes, columns, sort, .. } = stat;
        let (memory_keys, memory_bytes) = (stat.memory_keys, stat.memory_bytes);
        let (indexes, index_bytes) = (stat.indexes, stat.index_bytes);
        Self {
            rows,
            stored_rows,
            versions,
            row_groups,
            bytes,
            indexes,
            index_bytes,
            columns,
            sort,
            key,
            memory_keys,
            memory_bytes,
            layout: stat.layout.map(Layout::from),
        }
    }
}
