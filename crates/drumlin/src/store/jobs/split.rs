//! Splits: parts of a data set, to be read by other processes, which need neither the log nor the catalog for it.
//!
//! The plan of all splits is one object in the folder of the lease that keeps their blocks. A split names its part of
//! that object and has its checksum; the part has the records of the row groups to read, the rows in memory that belong
//! among them, and the blocks that are not on storage.
//!
//! Row groups whose rows interleave in the sort order stay in one split (*table_split.rs*). [`SplitReader`] reads the
//! part that a split names, checks it, and scans.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde::{Deserialize, Serialize};

use crate::base::{BlockId, Env, Error, ErrorKind, Result, Timestamp, checksum_at};
use crate::block::{BlockReader, MissingBlock};
use crate::catalog::{Inline, ended};
use crate::segment::Stat;
use crate::storage::{InlineStorage, Storage, names};
use crate::store::open::uri::open_storage;
use crate::store::parts::check_process;
use crate::store::read::dataset_scan::{cut, with_schema};
use crate::store::{Options, Store};
use crate::table::{Scan, ScanOptions, StoredSchema, TableSplit, find_column};

/// The first byte of an encoded split, and of one of tables whose rows expire, which builds of before would show.
const SPLIT_VERSION: u8 = 1;
const SPLIT_VERSION_EXPIRING: u8 = 2;

/// Part of a data set. Encoded, it takes some 100 bytes, and has no secrets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Split {
    pub(in crate::store) uri: String,
    pub(in crate::store) store: u128,
    /// The object of the plan.
    pub(in crate::store) object: BlockId,
    pub(in crate::store) offset: u64,
    pub(in crate::store) len: u64,
    pub(in crate::store) checksum: u32,
    /// Bounds of the column that its table is sorted by, if it is of one table that is sorted by one column, which has no
    /// nulls there.
    pub bounds: Option<(Stat, Stat)>,
    /// The number of its rows, if it is known before they are read.
    pub rows: Option<u64>,
    /// The encoded bytes of its row groups.
    pub bytes: u64,
    /// Whether rows of its tables expire.
    #[serde(skip)]
    pub(in crate::store) expires: bool,
}

/// The part of a plan that belongs to one split.
#[derive(Serialize, Deserialize)]
pub(in crate::store) struct SplitPlan {
    pub store: u128,
    pub schema: StoredSchema,
    /// At most as many rows.
    pub limit: Option<u64>,
    pub tables: Vec<TableSplit>,
    /// Blocks that are not on storage.
    pub inline: Vec<(BlockId, Inline)>,
}

impl Split {
    /// Encodes it.
    ///
    /// # Errors
    /// None is known.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        encode(if self.expires { SPLIT_VERSION_EXPIRING } else { SPLIT_VERSION }, self)
    }

    /// Decodes it.
    ///
    /// # Errors
    /// `Corrupt` if this is no split, or one of a later version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let split: Split = decode(SPLIT_VERSION..=SPLIT_VERSION_EXPIRING, bytes, "split")?;
        Ok(Self { expires: bytes.first() == Some(&SPLIT_VERSION_EXPIRING), ..split })
    }

    /// Where the store is.
    pub fn uri(&self) -> &str {
        &self.uri
    }
}

/// What is carried between processes: a byte with the version, postcard, and a checksum of both.
pub(in crate::store) fn encode(version: u8, content: &impl Serialize) -> Result<Vec<u8>> {
    let mut bytes = postcard::to_extend(content, vec![version])
        .map_err(|e| Error::invalid("it could not be encoded").with_source(e.to_string()))?;
    let checksum = crate::base::checksum(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    Ok(bytes)
}

/// The content of such bytes.
pub(in crate::store) fn decode<T: serde::de::DeserializeOwned>(
    versions: RangeInclusive<u8>,
    bytes: &[u8],
    what: &str,
) -> Result<T> {
    let bad = || Error::corrupt(format!("this is not a {what} of drumlin, or it was damaged on its way"));
    let (content, checksum) = bytes.split_last_chunk::<4>().ok_or_else(bad)?;
    if crate::base::checksum(content) != u32::from_le_bytes(*checksum) {
        return Err(bad());
    }
    match content.split_first() {
        Some((own, content)) if versions.contains(own) => postcard::from_bytes(content).map_err(|_| bad()),
        Some((own, _)) => {
            let newest = versions.end();
            Err(Error::unsupported(format!(
                "the {what} has version {own}, and this build reads up to version {newest}; use the version of drumlin \
                 that made it"
            )))
        }
        None => Err(bad()),
    }
}

/// Reads splits. It needs no store, only the storage that holds one.
#[derive(Clone)]
pub struct SplitReader {
    storage: Arc<dyn Storage>,
    env: Env,
    cache_bytes: u64,
    process: u32,
}

impl SplitReader {
    /// Reads splits of the store at `uri`; of `options` only those of the bucket, its threads and the cache count. Nothing is
    /// requested yet.
    ///
    /// # Errors
    /// `InvalidArgument` if `uri` or an option makes no sense; `NotFound` if there is no such folder.
    pub fn open(uri: &str, options: &Options) -> Result<Self> {
        let storage = open_storage(uri, options)?;
        Ok(Self::on(storage, Env::system(options.cpu_threads)?, options.cache_bytes))
    }

    /// Reads splits of an open store.
    pub fn of(store: &Store) -> Self {
        Self::on(store.storage().clone(), store.env().clone(), store.options().cache_bytes)
    }

    /// The same, of the store that lies in `storage`.
    pub fn on(storage: Arc<dyn Storage>, env: Env, cache_bytes: u64) -> Self {
        Self { storage, env, cache_bytes, process: std::process::id() }
    }

    /// Reads a split, or just those of its columns, and those of its rows that a filter keeps, which `options` want; lazily, as a data set
    /// is read.
    ///
    /// # Errors
    /// `InvalidArgument` for a column that it does not have, for a filter after a limit, or for a limit; `SnapshotExpired` if the lease has ended; `Corrupt` if the plan is damaged; `Unavailable`.
    pub fn scan(&self, split: &Split, options: &ScanOptions) -> Result<SplitScan> {
        check_process(self.process, "this reader")?;
        if options.limit.is_some() || options.tail.is_some() || options.offset > 0 {
            return Err(Error::invalid("a split has no limit of its own; limit the data set before it is split"));
        }
        let plan = self.plan(split)?;
        if plan.limit.is_some() && options.filter.is_some() {
            return Err(Error::invalid(
                "the data set was limited before it was split, so its splits cannot be filtered; filter the data set \
                 before it is limited",
            ));
        }
        let storage = Arc::new(InlineStorage::new(self.storage.clone()));
        for (block, Inline(bytes)) in &plan.inline {
            storage.hold(&names::block(*block), bytes.clone());
        }
        let reader = Arc::new(BlockReader::new(storage, self.cache_bytes, MissingBlock::Reclaimed));
        let scan = |table: &TableSplit| table.scan(reader.clone(), self.env.pool.clone(), options);
        let scans = plan.tables.iter().map(scan).collect::<Result<_>>()?;
        let schema = match &options.columns {
            None => plan.schema.0,
            Some(columns) => {
                let places =
                    columns.iter().map(|name| find_column(&plan.schema.0, name)).collect::<Result<Vec<_>>>()?;
                Arc::new(plan.schema.0.project(&places)?)
            }
        };
        Ok(SplitScan { schema, scans, left: plan.limit })
    }

    fn plan(&self, split: &Split) -> Result<SplitPlan> {
        let name = names::block(split.object);
        let corrupt = |what: &str| Error::corrupt(format!("{name}: the plan of a split: {what}"));
        let end = split.offset.checked_add(split.len).ok_or_else(|| corrupt("its end is too large"))?;
        let read = self.storage.get_ranges(&name, std::slice::from_ref(&(split.offset..end)));
        let bytes = read.map_err(|e| match e.kind() {
            ErrorKind::NotFound => ended(split.object.session),
            _ => e,
        })?;
        let bytes = bytes.first().ok_or_else(|| corrupt("it is missing"))?;
        if checksum_at(bytes, &name, split.offset) != split.checksum {
            return Err(corrupt("the checksum does not match"));
        }
        let plan = SplitPlan::decode(bytes).map_err(|e| e.context(&name))?;
        match plan.store == split.store {
            true => Ok(plan),
            false => Err(Error::invalid(format!("the split belongs to another store than the one at {}", split.uri))),
        }
    }
}

impl SplitPlan {
    pub fn encode(&self) -> Result<Vec<u8>> {
        let bad = |e: postcard::Error| Error::invalid("a split could not be encoded").with_source(e.to_string());
        let bytes = postcard::to_stdvec(self).map_err(bad)?;
        // What builds of before did not know comes at the end.
        let instants: Vec<Option<Timestamp>> = self.tables.iter().map(TableSplit::instant).collect();
        match instants.iter().any(Option::is_some) {
            true => postcard::to_extend(&instants, bytes).map_err(bad),
            false => Ok(bytes),
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        let bad = |e: postcard::Error| Error::corrupt(format!("the plan of a split cannot be decoded: {e}"));
        let (mut plan, rest): (Self, &[u8]) = postcard::take_from_bytes(bytes).map_err(bad)?;
        if rest.is_empty() {
            return Ok(plan);
        }
        let (instants, rest): (Vec<Option<Timestamp>>, &[u8]) = postcard::take_from_bytes(rest).map_err(bad)?;
        if !rest.is_empty() || instants.len() != plan.tables.len() {
            return Err(Error::corrupt("the plan of a split has other instants than tables"));
        }
        plan.tables.iter_mut().zip(instants).for_each(|(table, instant)| table.set_instant(instant));
        Ok(plan)
    }
}

/// Checks the bytes of a plan as its reader does, for fuzzing.
///
/// # Errors
/// `Corrupt` if they are no plan or contradict themselves.
pub fn check_plan(bytes: &[u8], storage: Arc<dyn Storage>, env: &Env) -> Result<()> {
    let plan = SplitPlan::decode(bytes)?;
    let reader = Arc::new(BlockReader::new(storage, 0, MissingBlock::Reclaimed));
    for table in &plan.tables {
        table.scan(reader.clone(), env.pool.clone(), &ScanOptions::default())?.collect()?;
    }
    Ok(())
}

/// Reads a split, batch by batch.
pub struct SplitScan {
    schema: SchemaRef,
    scans: VecDeque<Scan>,
    left: Option<u64>,
}

impl SplitScan {
    /// The schema of every batch.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn step(&mut self) -> Result<Option<RecordBatch>> {
        while self.left != Some(0)
            && let Some(first) = self.scans.front_mut()
        {
            let Some(batch) = first.next().transpose()? else {
                self.scans.pop_front();
                continue;
            };
            return Ok(Some(with_schema(cut(batch, &mut self.left), &self.schema)?));
        }
        Ok(None)
    }
}

impl Iterator for SplitScan {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.step().transpose()?;
        if batch.is_err() {
            self.scans.clear();
        }
        Some(batch)
    }
}
