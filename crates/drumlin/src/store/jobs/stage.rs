//! Staged writes, the workers' side: row groups that many processes write for one job, which a single commit then makes part of
//! their tables (stage_commit.rs).
//!
//! The driver opens a hold for the job and gives its workers a *ticket*: the schemas, orders and keys that all parts must have.
//! A worker writes blocks under the number of the hold, and returns a *token* that names them; it needs neither the log nor the
//! catalog. Two attempts at one task never write one name: each begins to number its blocks at a random place. Nothing is written
//! once the ticket's time is over.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde::{Deserialize, Serialize};

use super::split::{decode, encode};
use super::target::{StageMode, StageOptions, Target};
use crate::base::{BlockId, Env, Error, Result, SessionId, Task, Timestamp};
use crate::block::{BlockNumbers, BlockWriter};
use crate::catalog::{HoldKind, Path, ended};
use crate::storage::InlineStorage;
use crate::store::open::uri::open_storage;
use crate::store::parts::check_process;
use crate::store::write::by_key::{ByKey, Gathered};
use crate::store::write::encoder::Encoder;
use crate::store::{Frame, Options, Store};
use crate::table::{NewGroup, RowsSchema, TableCodec, check_new_group, conform};

/// Of tickets and tokens of tables without constraints, and with some, which builds of before do not know.
const VERSION: u8 = 1;
const VERSION_CONSTRAINED: u8 = 2;
const VERSIONS: RangeInclusive<u8> = VERSION..=VERSION_CONSTRAINED;
/// Of a block's number, the bits that count the blocks of one attempt.
const COUNTER_BITS: u32 = 16;

/// What the workers of a job need to stage rows. Without secrets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ticket {
    pub(in crate::store) uri: String,
    pub(in crate::store) store: u128,
    pub(in crate::store) hold: SessionId,
    pub(in crate::store) job: String,
    pub(in crate::store) until: Timestamp,
    pub(in crate::store) life_micros: u64,
    pub(in crate::store) targets: Vec<Target>,
}

/// Rows that are on storage and part of no table yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Token {
    pub(in crate::store) store: u128,
    pub(in crate::store) hold: SessionId,
    pub(in crate::store) job: String,
    pub(in crate::store) target: Target,
    /// Where its rows come among those of the job: by task, then by part. `None`: in the order in which tokens are given.
    pub(in crate::store) part: Option<(u64, u64)>,
    /// The first number of the attempt's blocks, which no other attempt has.
    pub(in crate::store) attempt: u64,
    pub(in crate::store) blocks: Vec<(BlockId, u64)>,
    pub(in crate::store) groups: Vec<NewGroup>,
    pub(in crate::store) rows: u64,
}

impl Ticket {
    /// Fails if rows of this schema could not be staged for the table at `path`, before a hold is opened for them.
    ///
    /// # Errors
    /// As [`Ticket::open`]; `SchemaMismatch` if the columns are not those of the table.
    pub fn check(store: &Store, path: &str, schema: &SchemaRef, options: &StageOptions) -> Result<()> {
        store.check_reachable("staged writes")?;
        let (state, new) = (store.call()?.store.state()?, store.options().of_new_tables());
        let target = Target::new(&state, Path::new(path)?, Some(schema), options, new)?;
        let fits = conform(&RecordBatch::new_empty(schema.clone()), &target.schema.0);
        fits.map(drop).map_err(|e| e.context(format!("'{path}'")))
    }

    /// Begins a job on `store`. Each table comes with the schema of its rows, which is needed if the table does not exist or is
    /// to be overwritten with another one. One commit.
    ///
    /// # Errors
    /// `InvalidArgument` without a schema that is needed, or for a store that no other process can open; `NotFound` for an upsert
    /// to a table that does not exist; `AlreadyExists` if a job of this name was committed.
    pub fn open(store: &Store, tables: &[(String, Option<SchemaRef>)], options: &StageOptions) -> Result<Ticket> {
        store.check_reachable("staged writes")?;
        let state = store.call()?.store.state()?;
        let job = match &options.job {
            Some(job) if job.is_empty() => {
                return Err(Error::invalid("the name of the job is empty; give another one, or leave it out"));
            }
            Some(job) => job.clone(),
            None => format!("{:032x}", store.env().entropy.id()?),
        };
        if let Some(known) = state.holds.jobs.get(&job) {
            return Err(Error::already_exists(format!(
                "the job '{job}' was already committed, by commit {}",
                known.seq
            )));
        }
        let mut targets: Vec<Target> = Vec::with_capacity(tables.len());
        for (path, schema) in tables {
            let new = store.options().of_new_tables();
            let target = Target::new(&state, Path::new(path)?, schema.as_ref(), options, new)?;
            if targets.iter().any(|other| other.path == target.path) {
                return Err(Error::invalid(format!("'{path}' is given twice")));
            }
            targets.push(target);
        }
        if targets.is_empty() {
            return Err(Error::invalid("a job needs at least one table"));
        }
        let paths = targets.iter().map(|target| target.path.clone()).collect();
        let kind = HoldKind::Stage { job: job.clone(), paths };
        let (hold, state) = store.open_hold(kind, options.life_micros, options.work_micros)?;
        let until = state.holds.open.get(&hold).map_or(Timestamp(0), |hold| hold.until);
        let (uri, life_micros) = (store.uri().to_owned(), options.life_micros);
        Ok(Ticket { uri, store: state.holds.store, hold, job, until, life_micros, targets })
    }

    /// Encodes it.
    ///
    /// # Errors
    /// None is known.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        encode(version_of(self.targets.iter()), self)
    }

    /// Decodes it.
    ///
    /// # Errors
    /// `Corrupt` if this is no ticket, or one of a later version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        decode(VERSIONS, bytes, "ticket")
    }

    /// The job's name.
    pub fn job(&self) -> &str {
        &self.job
    }

    /// Where the store is.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The tables of the job.
    pub fn paths(&self) -> Vec<String> {
        self.targets.iter().map(|target| target.path.to_string()).collect()
    }

    /// The schema that the rows of a table get. `None` for a table that is none of the job's.
    pub fn schema(&self, path: &str) -> Option<SchemaRef> {
        self.targets.iter().find(|target| target.path.as_str() == path).map(|target| target.schema.0.clone())
    }

    /// How long staged blocks are kept without a beat, in microseconds.
    pub fn life_micros(&self) -> u64 {
        self.life_micros
    }

    /// Says that the job goes on; to be called by its driver every third of its life. One commit.
    ///
    /// # Errors
    /// `SnapshotExpired` if it has ended.
    pub fn beat(&self, store: &Store) -> Result<()> {
        store.beat(self.hold)
    }
}

fn version_of<'a>(mut targets: impl Iterator<Item = &'a Target>) -> u8 {
    if targets.any(|target| target.schema.is_constrained()) { VERSION_CONSTRAINED } else { VERSION }
}

impl Token {
    /// Encodes it.
    ///
    /// # Errors
    /// None is known.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        encode(version_of(std::iter::once(&self.target)), self)
    }

    /// Decodes it.
    ///
    /// # Errors
    /// `Corrupt` if this is no token, or one of a later version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let token: Self = decode(VERSIONS, bytes, "token")?;
        token.check().map(|()| token)
    }

    /// `Corrupt` if it contradicts itself: then its commit would.
    fn check(&self) -> Result<()> {
        let bad = |what: &str| Err(Error::corrupt(format!("a token for '{}': {what}", self.path())));
        let mut unnamed: BTreeMap<BlockId, u64> = BTreeMap::new();
        for (block, bytes) in &self.blocks {
            if block.session != self.hold || unnamed.insert(*block, *bytes).is_some() {
                return bad("it has blocks of another job, or one twice");
            }
        }
        let blocks = unnamed.clone();
        let mut addresses = BTreeSet::new();
        for group in &self.groups {
            check_new_group(group)?;
            unnamed.remove(&group.address.block);
            let within = blocks.get(&group.address.block).is_some_and(|bytes| {
                group.address.offset.checked_add(group.address.bytes()).is_some_and(|end| end <= *bytes)
            });
            if !within || !addresses.insert(group.address) {
                return bad("a row group is outside its blocks, or occurs twice");
            }
        }
        match unnamed.is_empty() {
            true => Ok(()),
            false => bad("it has blocks without row groups"),
        }
    }

    /// The path of its table.
    pub fn path(&self) -> &str {
        self.target.path.as_str()
    }

    /// Its rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The bytes of its blocks.
    pub fn bytes(&self) -> u64 {
        self.blocks.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }

    /// The job that it is staged for.
    pub fn job(&self) -> &str {
        &self.job
    }

    /// Where its rows come among those of the job: by task, then by part. `None`: in the order in which tokens are given.
    pub fn part(&self) -> Option<(u64, u64)> {
        self.part
    }
}

/// Where a worker stages rows: the storage of a store, without its log.
#[derive(Clone)]
pub struct Stage {
    storage: Arc<InlineStorage>,
    env: Env,
    block_bytes: u64,
    memory_bytes: u64,
    process: u32,
}

impl Stage {
    /// In the store at `uri`. Of `options`, those of the bucket, its threads, block size and memory count.
    ///
    /// # Errors
    /// As [`crate::store::SplitReader::open`].
    pub fn open(uri: &str, options: &Options) -> Result<Self> {
        Ok(Self::on(open_storage(uri, options)?, Env::system(options.cpu_threads)?, options))
    }

    /// The same, in the store that lies in `storage`.
    pub fn on(storage: Arc<dyn crate::storage::Storage>, env: Env, options: &Options) -> Self {
        let storage = Arc::new(InlineStorage::new(storage));
        let process = std::process::id();
        Self { storage, env, block_bytes: options.block_bytes, memory_bytes: options.memory_bytes, process }
    }

    /// In an open store.
    pub fn of(store: &Store) -> Self {
        let &Options { block_bytes, memory_bytes, .. } = store.options();
        let process = store.setting().process();
        Self { storage: store.storage().clone(), env: store.env().clone(), block_bytes, memory_bytes, process }
    }

    /// Writes rows for the table at `path`, converted to its schema, sorted if it is. They are part of nothing before their token
    /// is committed. `part` says where they come among the rows of the job, by task, then by part; without it, they come in the order in which tokens are given. If it fails, it deletes what
    /// it has written.
    ///
    /// # Errors
    /// `InvalidArgument` for a table that is none of the job's; `SchemaMismatch` if the rows do not fit; `AlreadyExists` if two
    /// rows to be appended have one key; `SnapshotExpired` if the ticket's time is over; `Unavailable`.
    pub fn write(
        &self,
        ticket: &Ticket,
        path: &str,
        frame: Frame<'_>,
        part: Option<(u64, u64)>,
        task: &Task,
    ) -> Result<Token> {
        check_process(self.process, "this writer")?;
        let Some(target) = ticket.targets.iter().find(|target| target.path.as_str() == path) else {
            let paths = ticket.paths().join("', '");
            return Err(Error::invalid(format!(
                "'{path}' is not a table of the job '{}'; its tables are '{paths}'",
                ticket.job
            )));
        };
        target.schema.check_claims(frame.schema()).map_err(|e| e.context(format!("'{path}'")))?;
        let (clock, until, hold) = (self.env.clock.clone(), ticket.until, ticket.hold);
        let permit = move || if clock.now() <= until { Ok(()) } else { Err(ended(hold)) };
        permit()?;
        let attempt = self.env.entropy.next()? << COUNTER_BITS;
        let numbers = Arc::new(BlockNumbers::of_attempt(ticket.hold, attempt));
        let mut writer =
            BlockWriter::new(self.storage.clone(), numbers, self.block_bytes).permitted(Box::new(permit.clone()));
        let encoder = Encoder { pool: &self.env.pool, memory_bytes: self.memory_bytes };
        let groups = if target.keyed {
            let codec = Arc::new(TableCodec::new(&target.schema.0, &target.sort)?);
            let rows = RowsSchema::known(target.schema.clone());
            let gathered = Gathered::of_rows(codec, &rows, frame, &target.path, &self.env.pool)?;
            let what = if target.mode == StageMode::Upsert { ByKey::Upsert } else { ByKey::Insert };
            encoder.encode_by_key(what, gathered, &mut writer, task)?.groups
        } else {
            let (path, schema) = (target.path.clone(), target.schema.clone());
            encoder.encode_one(path, frame, schema, target.sort.clone(), &mut writer, task)?
        };
        let blocks: Vec<(BlockId, u64)> =
            writer.finish()?.iter().map(|written| (written.block, written.bytes)).collect();
        if blocks.len() >= 1 << COUNTER_BITS {
            return Err(Error::invalid(
                "the rows take more blocks than one part may have; stage them in several parts",
            ));
        }
        writer.keep();
        let dead = |group: &NewGroup| group.dead.as_ref().map_or(0, |dead| dead.0.len());
        let rows = groups.iter().map(|group| u64::from(group.rows) - dead(group)).sum();
        let (store, job, target) = (ticket.store, ticket.job.clone(), target.clone());
        Ok(Token { store, hold, job, target, part, attempt, blocks, groups, rows })
    }
}
