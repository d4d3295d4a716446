//! What upkeep keeps between its runs: which catalog snapshot is the newest, what could not be improved, what runs by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::background::Background;
use super::recover;
use crate::base::waiting::{Exclusive, ExclusiveGuard};
use crate::base::{Result, TableId, Timestamp};
use crate::table::GroupId;

/// A window of a plan, by its table and the row groups that it takes in.
pub(in crate::store) type NamedWindow = (TableId, Vec<GroupId>);

/// What only checkpoints, reclaims and purges use, one at a time.
pub(in crate::store) struct Maintenance {
    /// The newest catalog snapshot.
    pub catalog: Option<recover::Catalog>,
    /// Small row groups that do not become fewer when they are merged, since their texts are long.
    pub unmerged: BTreeSet<NamedWindow>,
    /// Row groups for which an index cannot be computed: table, index, row group.
    pub uncomputable: BTreeSet<(TableId, u64, GroupId)>,
    /// The tables whose rows expire, once they were looked for, and up to which instant their rows have been deleted.
    pub expiring: Option<BTreeMap<TableId, Timestamp>>,
}

/// See the module.
pub(in crate::store) struct Upkeep {
    maintenance: Exclusive<Maintenance>,
    background: Background,
    /// How many tables stayed decoded after the newest catalog snapshot.
    tables_kept: AtomicUsize,
    /// Whether the newest catalog snapshot was found damaged.
    catalog_damaged: AtomicBool,
    /// The rows of tables with indexes that the last checkpoint knew of.
    index_rows_seen: AtomicU64,
}

impl Upkeep {
    /// Of a store that was opened from a catalog snapshot, with `tables_kept` tables decoded.
    pub fn new(catalog: Option<recover::Catalog>, tables_kept: usize) -> Self {
        let (unmerged, uncomputable) = (BTreeSet::new(), BTreeSet::new());
        let maintenance = Maintenance { catalog, unmerged, uncomputable, expiring: None };
        Self {
            maintenance: Exclusive::new("a checkpoint, reclaim or purge of this store", maintenance),
            background: Background::default(),
            tables_kept: AtomicUsize::new(tables_kept),
            catalog_damaged: AtomicBool::new(false),
            index_rows_seen: AtomicU64::new(0),
        }
    }

    /// Waits until no other checkpoint, reclaim or purge of this process runs.
    pub fn lock(&self) -> Result<ExclusiveGuard<'_, Maintenance>> {
        self.maintenance.lock()
    }

    /// The same, without waiting: `None` if one runs.
    pub fn try_lock(&self) -> Option<ExclusiveGuard<'_, Maintenance>> {
        self.maintenance.try_lock()
    }

    /// An error if the calling thread itself is in a checkpoint, reclaim or purge, for which it would wait for ever.
    pub fn check_outside(&self) -> Result<()> {
        self.maintenance.check()
    }

    pub fn background(&self) -> &Background {
        &self.background
    }

    pub fn tables_kept(&self) -> usize {
        self.tables_kept.load(Ordering::Relaxed)
    }

    pub fn set_tables_kept(&self, tables: usize) {
        self.tables_kept.store(tables, Ordering::Relaxed);
    }

    pub fn index_rows_seen(&self) -> u64 {
        self.index_rows_seen.load(Ordering::Relaxed)
    }

    pub fn set_index_rows_seen(&self, rows: u64) {
        self.index_rows_seen.store(rows, Ordering::Relaxed);
    }

    pub fn is_catalog_damaged(&self) -> bool {
        self.catalog_damaged.load(Ordering::SeqCst)
    }

    pub fn set_catalog_damaged(&self, damaged: bool) {
        self.catalog_damaged.store(damaged, Ordering::SeqCst);
    }
}
