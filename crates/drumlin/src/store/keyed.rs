//! Writes rows by key: a few at a time into the log, and readers find them in memory until a checkpoint; many as row groups
//! (see keyed_bulk.rs).

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::in_groups::{InMemory, in_memory};
use super::proposal::{Proposal, Work};
use super::resolve::{newest, of_table, table_at};
use super::transaction::Open;
use super::{Frame, Store, VersionInfo, WriteOptions};
use crate::base::{Cancel, Error, Pool, Result, Seq};
use crate::catalog::{Effect, Footprint, Path, Read, State};
use crate::memtable::{Keys, RowBytes};
use crate::segment::{join_batches, take_batch};
use crate::table::{
    Checks, Conform, RowPlace, RowsChange, SchemaMode, Searcher, StoredSchema, Table, TableCodec, batch_bytes,
};

/// What a write by key did.
#[derive(Clone, Debug, PartialEq)]
pub struct RowsReport {
    /// The commit. `None` in a transaction.
    pub seq: Option<Seq>,
    /// Rows written, or keys deleted, whether they existed or not.
    pub rows: u64,
    /// The version that it made, if it wrote row groups. Rows written without row groups belong to the version that the
    /// next checkpoint, snapshot or bulk write numbers.
    pub version: Option<VersionInfo>,
}

/// What is done by key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByKey {
    /// Rows with keys that must be new.
    Insert,
    /// Rows that replace those with the same keys, if there are any.
    Upsert,
    /// Keys to delete, if they exist.
    Delete,
}

/// The data of a call, in the table's schema.
pub(super) struct Gathered<'a> {
    pub codec: Arc<TableCodec>,
    /// Whole rows, or key columns.
    pub schema: SchemaRef,
    /// The batches pulled so far.
    pub drawn: Vec<RecordBatch>,
    /// The rest, to be pulled, if that was not all.
    pub rest: Option<Box<dyn Iterator<Item = Result<RecordBatch>> + 'a>>,
    /// The schema that the table had, and the one that it gets for these rows, if that is another.
    pub evolved: Option<(SchemaRef, StoredSchema)>,
    /// The checks that they keep; `None` for keys.
    pub checks: Option<Checks>,
}

/// What rows of a frame must be to be brought into a table.
#[derive(Default)]
pub(super) struct Demands {
    pub checks: Checks,
    /// Of what the columns that it lacks are filled in.
    pub fill: Option<StoredSchema>,
}

/// The batches of a frame in the table's schema.
fn conformed<'a>(
    what: ByKey,
    codec: Arc<TableCodec>,
    schema: SchemaRef,
    demands: Demands,
    frame: Frame<'a>,
    path: &Path,
    pool: &Pool,
) -> impl Iterator<Item = Result<RecordBatch>> + use<'a> {
    let table = format!("'{path}'");
    let mut conform = Conform::new(schema.clone()).named(&table).filling(demands.fill).checking(demands.checks);
    frame.into_batches(pool, &table).map(move |batch| match what {
        ByKey::Delete => {
            let keys = codec.keys_of(&batch?).and_then(|(_, keys)| Ok(RecordBatch::try_new(schema.clone(), keys)?));
            keys.map_err(|e| e.context(&table))
        }
        _ => conform.batch(&batch?),
    })
}

impl<'a> Gathered<'a> {
    /// Whole rows, none of which are pulled yet.
    pub fn of_rows(codec: Arc<TableCodec>, demands: Demands, frame: Frame<'a>, path: &Path, pool: &Pool) -> Self {
        let schema = codec.schema().clone();
        let checks = demands.checks.clone();
        let rest = conformed(ByKey::Insert, codec.clone(), schema.clone(), demands, frame, path, pool);
        Self { codec, schema, drawn: Vec::new(), rest: Some(Box::new(rest)), evolved: None, checks: Some(checks) }
    }
}

impl Store {
    /// Writes rows by key, or deletes keys.
    pub(super) fn write_by_key(
        &self,
        what: ByKey,
        path: &Path,
        frame: Frame<'_>,
        options: &WriteOptions,
    ) -> Result<RowsReport> {
        self.refresh_if_shared()?;
        self.wait_for_room()?;
        let base = self.state()?;
        let gathered = self.gather(&base, what, path, frame, options)?;
        // A note is kept with a version, and so is a schema; rows written without row groups make none.
        if gathered.rest.is_some() || gathered.evolved.is_some() || options.metadata.is_some() {
            return self.write_many_by_key(what, path, gathered, options);
        }
        let rows = gathered.drawn.iter().map(|batch| batch.num_rows() as u64).sum();
        if rows == 0 {
            return Ok(RowsReport { seq: Some(base.seq), rows, version: None });
        }
        let few = SmallWrite::new(what, &gathered)?;
        let (after, ()) = self.prepare_and_commit(|base| {
            let (footprint, effect) = self.small_write(what, &base, path, &few, &options.task.cancel)?;
            let build = move |_: &State| Ok(vec![effect.clone()]);
            Ok((Proposal::new(base, footprint, Work::Build(Box::new(build))), ()))
        })?;
        Ok(RowsReport { seq: Some(after.seq), rows, version: None })
    }

    /// The same in a transaction. Returns how many rows.
    pub(super) fn write_by_key_in(
        &self,
        open: &mut Open,
        what: ByKey,
        path: &Path,
        frame: Frame<'_>,
        options: &WriteOptions,
    ) -> Result<u64> {
        let state = open.draft.state();
        let gathered = self.gather(state, what, path, frame, options)?;
        let rows = gathered.drawn.iter().map(|batch| batch.num_rows() as u64).sum();
        if gathered.rest.is_none() && gathered.evolved.is_none() && options.metadata.is_none() {
            if rows > 0 {
                let few = SmallWrite::new(what, &gathered)?;
                let (footprint, effect) = self.small_write(what, state, path, &few, &options.task.cancel)?;
                open.apply(footprint, vec![effect], None)?;
            }
            return Ok(rows);
        }
        let waiting = if gathered.evolved.is_some() { in_memory(state, path)? } else { BTreeSet::new() };
        open.with_rows_in_groups(self, &waiting, InMemory::All, |open| {
            let bulk = self.prepare_bulk(what, open.draft.state(), path, gathered, options)?;
            open.apply(bulk.footprint, bulk.effects, Some(bulk.writer))?;
            Ok(bulk.rows)
        })
    }

    /// Pulls batches from a frame until it is known whether it is large.
    pub(super) fn gather<'a>(
        &self,
        state: &State,
        what: ByKey,
        path: &Path,
        frame: Frame<'a>,
        options: &WriteOptions,
    ) -> Result<Gathered<'a>> {
        let table = &table_at(state, path)?;
        let named = |e: Error| e.context(format!("'{path}'"));
        let mut codec = table.codec().map_err(named)?;
        let (mut evolved, mut demands) = (None, Demands::default());
        if what != ByKey::Delete {
            let new = table.evolved(frame.schema(), options.schema).map_err(named)?;
            if let Some(schema) = new.as_ref().or(table.schema()) {
                demands.checks = schema.bound_checks()?;
            }
            if options.schema == SchemaMode::Evolve {
                demands.fill = new.as_ref().or(table.schema()).cloned();
            }
            if let Some(new) = new {
                let own = codec.schema().clone();
                codec = Arc::new(TableCodec::new(&new.0, table.order())?);
                evolved = Some((own, new));
            }
        }
        let schema = if what == ByKey::Delete { codec.key_schema().clone() } else { codec.schema().clone() };
        let checks = (what != ByKey::Delete).then(|| demands.checks.clone());
        let mut batches = conformed(what, codec.clone(), schema.clone(), demands, frame, path, &self.inner.env.pool);
        let (mut drawn, mut bytes) = (Vec::new(), 0);
        while bytes <= self.inner.options.row_write_bytes {
            options.task.cancel.check()?;
            match batches.next() {
                Some(batch) => {
                    let batch = batch?;
                    bytes += batch_bytes(&batch);
                    drawn.extend((batch.num_rows() > 0).then_some(batch));
                }
                None => return Ok(Gathered { codec, schema, drawn, rest: None, evolved, checks }),
            }
        }
        Ok(Gathered { codec, schema, drawn, rest: Some(Box::new(batches)), evolved, checks })
    }

    /// The effect that writes a few rows to the table at `path`, as it is in `state`.
    pub(super) fn small_write(
        &self,
        what: ByKey,
        state: &State,
        path: &Path,
        few: &SmallWrite,
        cancel: &Cancel,
    ) -> Result<(Footprint, Effect)> {
        let table = &table_at(state, path)?;
        check_schema(table, path, few.codec.schema(), few.checks.as_ref())?;
        let mut footprint = Footprint::default().with(Read::Binding(path.clone())).with(Read::Schema(table.id));
        if what == ByKey::Insert {
            self.refuse_present(state, table, &few.codec, &few.keys, path, cancel)?;
            footprint = footprint.with(Read::Keys(table.id, few.keys.clone()));
        }
        Ok((footprint, few.effect(table)))
    }

    /// `AlreadyExists`, naming keys, if a table has rows with any of `keys`.
    pub(super) fn refuse_present(
        &self,
        state: &State,
        table: &Table,
        codec: &TableCodec,
        keys: &Keys,
        path: &Path,
        cancel: &Cancel,
    ) -> Result<()> {
        let mut rows = RowBytes::default();
        let places = self.searcher(state, table, codec, cancel).locate(keys, &mut rows);
        let places = places.map_err(|e| of_table(path, e))?;
        let present: Vec<usize> = (0..keys.len()).filter(|at| places[*at] != RowPlace::Nowhere).collect();
        refuse(codec, keys, &present, &format!("'{path}' already has rows with"))
    }

    /// Searches the newest rows of `table`, a table of `state`.
    pub(super) fn searcher<'a>(
        &'a self,
        state: &State,
        table: &'a Table,
        codec: &'a TableCodec,
        cancel: &'a Cancel,
    ) -> Searcher<'a> {
        let (reader, pool, read_point) = (&*self.inner.reader, &self.inner.env.pool, newest(state, table));
        Searcher { reader, pool, table, read_point, codec, cancel }
    }

    /// Waits for a checkpoint if the rows that wait for one take far too much memory.
    fn wait_for_room(&self) -> Result<()> {
        const TIMES: u64 = 4;
        let bound = self.inner.options.memtable_bytes.saturating_mul(TIMES);
        let over = || bound > 0 && self.inner.memtable_bytes.load(std::sync::atomic::Ordering::Relaxed) > bound;
        if over() && self.handle.is_some() {
            // The checkpoint that is due waits for what holds this.
            self.inner.maintenance.check()?;
            self.checkpoint_if_due();
            self.inner.background.wait()?;
        }
        Ok(())
    }
}

/// A small write: rows or keys to be written.
pub(super) struct SmallWrite {
    codec: Arc<TableCodec>,
    /// Without duplicates.
    keys: Arc<Keys>,
    change: RowsChange,
    checks: Option<Checks>,
}

impl SmallWrite {
    /// Of what was gathered.
    pub fn new(what: ByKey, gathered: &Gathered<'_>) -> Result<Self> {
        let codec = gathered.codec.clone();
        let batch = join_batches(&gathered.schema, &gathered.drawn)?;
        let (batch, keys) = dedup_keys(what, &codec, batch)?;
        let change = match what {
            ByKey::Delete => RowsChange::new(&codec, None, Some(&batch))?,
            _ => RowsChange::new(&codec, Some(&batch), None)?,
        };
        Ok(Self { codec, keys: Arc::new(keys), change, checks: gathered.checks.clone() })
    }

    fn effect(&self, table: &Table) -> Effect {
        Effect::WriteRows { table: table.id, version: table.next_version(), rows: self.change.clone() }
    }
}

/// `Conflict` if the table is not as rows were prepared for it: with this schema and, of rows rather than keys, these checks.
pub(super) fn check_schema(table: &Table, path: &Path, expected: &SchemaRef, checks: Option<&Checks>) -> Result<()> {
    let same_checks = |checks: &Checks| table.schema().is_some_and(|own| own.has_checks(checks));
    let same = table.codec().ok().is_some_and(|codec| codec.schema() == expected);
    match same && checks.is_none_or(same_checks) {
        true => Ok(()),
        false => Err(Error::conflict(format!("the schema of '{path}' changed during the call"))),
    }
}

/// The rows of a batch in the order of their keys, without those whose keys occur again later in it, and the keys; an
/// insert refuses such keys.
pub(super) fn dedup_keys(what: ByKey, codec: &TableCodec, batch: RecordBatch) -> Result<(RecordBatch, Keys)> {
    let keys = codec.keys_of(&batch)?.0;
    let mut order = keys.sorted_places();
    let sorted = keys.take(order.iter().map(|at| *at as usize));
    let mut twice: Vec<usize> = (1..order.len()).filter(|at| sorted.get(at - 1) == sorted.get(*at)).collect();
    if what == ByKey::Insert {
        refuse(codec, &sorted, &twice, "the data has more than one row with")?;
    }
    if twice.is_empty() {
        let batch = if keys == sorted { batch } else { take_batch(&batch, order)? };
        return Ok((batch, sorted));
    }
    // Of rows with the same key the last one counts.
    twice.iter_mut().for_each(|at| *at -= 1);
    let mut dead = twice.into_iter().peekable();
    let kept: Vec<usize> = (0..order.len()).filter(|at| dead.next_if_eq(at).is_none()).collect();
    let keys = sorted.take(kept.iter().copied());
    order = kept.into_iter().map(|at| order[at]).collect();
    Ok((take_batch(&batch, order)?, keys))
}

/// `AlreadyExists` if two rows of `batch` have the same key.
pub(super) fn check_distinct(codec: &TableCodec, batch: &RecordBatch) -> Result<()> {
    dedup_keys(ByKey::Insert, codec, batch.clone()).map(drop)
}

/// `AlreadyExists`, naming the keys at `places`, if there are any places.
pub(super) fn refuse(codec: &TableCodec, keys: &Keys, places: &[usize], what: &str) -> Result<()> {
    if places.is_empty() {
        return Ok(());
    }
    let named = codec.key_codec().describe_some(places.iter().map(|at| keys.get(*at)));
    let key = if places.len() == 1 { "the key" } else { "the keys" };
    Err(Error::already_exists(format!("{what} {key} {named}; nothing was written")))
}
