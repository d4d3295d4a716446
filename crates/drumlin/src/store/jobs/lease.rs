//! Leases: what a job reads on many machines is kept until the job is done, or its driver has fallen silent.
//!
//! [`Dataset::splits`] opens a lease by a commit, finds what the data set shows in the state of that very commit, and
//! writes the plan of all splits as one object into the lease's folder. Rows in memory are in the plan: nothing need be
//! flushed first, and a split shows the instant of its data set exactly. A reclaim treats the state of the oldest lease
//! as one that is being read.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use super::split::{Split, SplitPlan};
use crate::base::{BlockId, Error, Result, Seq, SessionId, checksum_at};
use crate::catalog::{HoldKind, State, ended};
use crate::storage::{Storage, WriteMode, names};
use crate::store::{Dataset, DatasetScan, Place, Store};
use crate::table::{ScanOptions, StoredSchema, TableSplit};

/// How a data set is split.
#[derive(Clone, Copy, Debug)]
pub struct SplitOptions {
    /// Encoded bytes that a split reads, about. Default: 128 MiB.
    pub bytes: u64,
    /// How many splits there shall be at least, if there are as many row groups: then they are smaller. Default: 1.
    pub at_least: u64,
    /// How long the lease lives without [`Lease::beat`], in microseconds. Default: 10 minutes.
    pub life_micros: u64,
}

impl Default for SplitOptions {
    fn default() -> Self {
        Self { bytes: 128 << 20, at_least: 1, life_micros: 600_000_000 }
    }
}

/// Keeps what a data set shows while other processes read it. It ends by [`Lease::end`], or once it has had no beat for its
/// life: then readers get `SnapshotExpired`.
#[derive(Clone, Debug)]
pub struct Lease {
    store: Store,
    hold: SessionId,
    life_micros: u64,
}

/// The parts of a data set, which one after the other are its rows, and the lease that keeps them.
#[derive(Clone, Debug)]
pub struct Splits {
    /// The parts.
    pub splits: Vec<Split>,
    /// What keeps them.
    pub lease: Lease,
}

impl Lease {
    /// Says that the job goes on; to be called every third of the lease's life. One commit.
    ///
    /// # Errors
    /// `SnapshotExpired` if it has ended.
    pub fn beat(&self) -> Result<()> {
        self.store.beat(self.hold)
    }

    /// Ends it. Ending it twice does nothing.
    ///
    /// # Errors
    /// `Unavailable` if the log cannot be written.
    pub fn end(&self) -> Result<()> {
        self.store.end_holds(vec![self.hold])
    }

    /// How long it lives without a beat, in microseconds.
    pub fn life_micros(&self) -> u64 {
        self.life_micros
    }

    /// The number of its hold, as in [`crate::store::HoldInfo`].
    pub fn hold(&self) -> u64 {
        self.hold.0
    }
}

impl Dataset {
    /// Parts of what a scan with `options` reads, for other processes: [`crate::store::SplitReader`] reads each without the log and the
    /// catalog, rows in memory included. Costs two commits of the log at most, one object, and O(row groups); with a filter the
    /// directories of row groups are read, and those that it rules out are in no part. A limit that depends on a filter or on rows
    /// in memory gives one part.
    ///
    /// # Errors
    /// `InvalidArgument` for what a transaction sees, for a store that no other process can open, or without a column;
    /// `SnapshotExpired` if what it shows is gone.
    pub fn splits(&self, options: &ScanOptions, split: &SplitOptions) -> Result<Splits> {
        let Place::Store(store) = self.place() else {
            return Err(Error::invalid(
                "other processes cannot see the data of a transaction; commit it, and scan the store",
            ));
        };
        store.check_reachable("splits")?;
        if options.columns.as_ref().is_some_and(Vec::is_empty) {
            return Err(Error::invalid("splits need at least one column"));
        }
        // What is wrong with the columns or the filter shows before a lease is opened.
        let schema = DatasetScan::new(self.clone(), options)?.schema();
        let (hold, state) = store.open_hold(HoldKind::Lease { floor: Seq(0) }, split.life_micros, 0)?;
        let lease = Lease { store: store.clone(), hold, life_micros: split.life_micros };
        match self.plan_splits(store, &state, hold, schema, options, split) {
            Ok(splits) => Ok(Splits { splits, lease }),
            Err(e) => {
                // If that fails, it ends by itself.
                let _ = lease.end();
                Err(e)
            }
        }
    }

    fn plan_splits(
        &self,
        store: &Store,
        state: &Arc<State>,
        hold: SessionId,
        schema: arrow::datatypes::SchemaRef,
        options: &ScanOptions,
        split: &SplitOptions,
    ) -> Result<Vec<Split>> {
        // The blocks of this state are kept, those of an earlier one need not be.
        let dataset = self.found_in(store, state)?;
        let limit = options.limit;
        let options = ScanOptions { limit: None, ..options.clone() };
        let wanted = dataset.unpruned(&options)?.0;
        let scan = |at: &usize| {
            options.cancel.check()?;
            dataset.scan_table(*at, &options)
        };
        let total = match split.at_least {
            0 | 1 => u64::MAX,
            _ => wanted.iter().map(|at| scan(at).map(|scan| scan.weight())).sum::<Result<u64>>()?,
        };
        let bytes = split.bytes.min(total / split.at_least.max(1)).max(1);
        let schema = StoredSchema::plain(schema);
        let mut writer = PlanWriter::new(store, state, hold, &schema, bytes)?;
        // What a limit leaves of a table depends on those before it: without a limit, one is in hand at a time.
        let mut limited: Vec<TableSplit> = Vec::new();
        for at in &wanted {
            for table in scan(at)?.into_splits(bytes)? {
                match limit {
                    Some(_) => limited.push(table),
                    None => writer.add(table)?,
                }
            }
        }
        writer.limit(limit, limited.iter().any(|table| table.rows().is_none()));
        limited.into_iter().try_for_each(|table| writer.add(table))?;
        writer.finish()
    }
}

/// Gathers tables into splits, and encodes the plan of each once it is full; together they are one object.
struct PlanWriter<'a> {
    store: &'a Store,
    state: &'a State,
    schema: &'a StoredSchema,
    object: BlockId,
    name: String,
    /// How many bytes a split reads.
    bytes: u64,
    /// The rows that a limit leaves.
    left: Option<u64>,
    /// Whether all tables are in one split.
    together: bool,
    /// The tables of the split that is not full, and their bytes.
    tables: Vec<TableSplit>,
    size: u64,
    splits: Vec<Split>,
    parts: Vec<Bytes>,
    offset: u64,
}

impl<'a> PlanWriter<'a> {
    fn new(store: &'a Store, state: &'a State, hold: SessionId, schema: &'a StoredSchema, bytes: u64) -> Result<Self> {
        // As with blocks: no other history's lease has this name.
        let number = if store.setting().is_shared() { (store.env().entropy.next()? >> 32) << 24 } else { 0 };
        let object = BlockId { session: hold, number };
        Ok(Self {
            store,
            state,
            schema,
            object,
            name: names::block(object),
            bytes,
            left: None,
            together: false,
            tables: Vec::new(),
            size: 0,
            splits: Vec::new(),
            parts: Vec::new(),
            offset: 0,
        })
    }

    /// Shows as many rows as `limit` says; in one split if not all tables know how many they have.
    fn limit(&mut self, limit: Option<u64>, uncounted: bool) {
        (self.left, self.together) = (limit, limit.is_some() && uncounted);
    }

    /// Adds a table; small ones share a split.
    fn add(&mut self, table: TableSplit) -> Result<()> {
        let bytes = table.bytes();
        if !self.tables.is_empty() && !self.together && self.size + bytes > self.bytes {
            self.close()?;
        }
        self.size += bytes;
        self.tables.push(table);
        Ok(())
    }

    /// Ends a split.
    fn close(&mut self) -> Result<()> {
        let (tables, bytes) = (std::mem::take(&mut self.tables), std::mem::take(&mut self.size));
        let rows = tables.iter().map(TableSplit::rows).sum::<Option<u64>>();
        let limit = self.left.map(|left| rows.map_or(left, |rows| rows.min(left)));
        self.left = self.left.zip(limit).map(|(left, limit)| left - limit);
        if tables.is_empty() || limit == Some(0) {
            return Ok(());
        }
        let (store, schema) = (self.state.holds.store, self.schema.clone());
        let blocks: BTreeSet<BlockId> = tables.iter().flat_map(TableSplit::blocks).collect();
        let expires = tables.iter().any(|table| table.instant().is_some());
        let bounds = if let [table] = &tables[..] { table.bounds().cloned() } else { None };
        let ledger = &self.state.ledger;
        let inline = blocks.into_iter().filter_map(|block| Some((block, ledger.content(block)?.clone()))).collect();
        let plan = SplitPlan { store, schema, limit, tables, inline }.encode()?;
        self.splits.push(Split {
            uri: self.store.uri().to_owned(),
            store,
            object: self.object,
            offset: self.offset,
            len: plan.len() as u64,
            checksum: checksum_at(&plan, &self.name, self.offset),
            bounds,
            rows: rows.map(|rows| limit.map_or(rows, |limit| rows.min(limit))),
            bytes,
            expires,
        });
        self.offset += plan.len() as u64;
        self.parts.push(Bytes::from(plan));
        Ok(())
    }

    /// Writes the plans of all splits as one object.
    fn finish(mut self) -> Result<Vec<Split>> {
        self.close()?;
        if !self.splits.is_empty() {
            self.store.storage().put(&self.name, &self.parts, WriteMode::Once)?;
        }
        // A put that took longer than the lease's life has come too late.
        match self.store.state()?.holds.is_open(self.object.session) {
            true => Ok(self.splits),
            false => Err(ended(self.object.session)),
        }
    }
}
