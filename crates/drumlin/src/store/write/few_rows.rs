//! Writes rows by key: a few at a time into the log, and readers find them in memory until a checkpoint; many as row
//! groups (see many_rows.rs).
//!
//! A few rows become one effect, `WriteRows`, which carries them as Arrow IPC: in the log they are durable, in a
//! memtable they are found (*part.rs*). What a write has found of its keys on a snapshot is part of its footprint.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::by_key::{ByKey, Gathered, RowsReport, check_schema, dedup_keys};
use super::numbers::Numbering;
use super::partial::{PartialMerge, check_key_columns, completed, partial_schema};
use crate::base::planted::{Bug, planted};
use crate::base::{Cancel, Error, Pool, Result, Timestamp};
use crate::catalog::{Effect, Footprint, Path, Read, State};
use crate::memtable::Keys;
use crate::segment::join_batches;
use crate::store::commit::call::Call;
use crate::store::commit::in_groups::{MemoryScope, in_memory};
use crate::store::nouns::transaction::OpenTransaction;
use crate::store::parts::{Proposal, Work, refuse_view};
use crate::store::read::resolve::{of_table, table_at};
use crate::store::{Frame, Store, WriteOptions};
use crate::table::{Checks, Conform, RowsChange, RowsSchema, Searcher, TableCodec, batch_bytes};

impl<'a> Gathered<'a> {
    /// Whole rows, none of which are pulled yet.
    pub fn of_rows(
        codec: Arc<TableCodec>,
        rows: &RowsSchema,
        frame: Frame<'a>,
        path: &Path,
        pool: &Pool,
    ) -> Result<Self> {
        let table = format!("'{path}'");
        let mut conform = rows.conform(&table)?;
        let (schema, checks) = (codec.schema().clone(), Some(conform.checks().clone()));
        let rest = frame.into_batches(pool, &table).map(move |batch| conform.batch(&batch?));
        Ok(Self::of(codec, schema, rest, checks))
    }

    /// Batches, none of which are pulled yet.
    fn of(
        codec: Arc<TableCodec>,
        schema: SchemaRef,
        rest: impl Iterator<Item = Result<RecordBatch>> + 'a,
        checks: Option<Checks>,
    ) -> Self {
        Self { codec, schema, partial: None, drawn: Vec::new(), rest: Some(Box::new(rest)), evolved: None, checks }
    }

    /// The keys alone, none of which are pulled yet.
    fn of_keys(codec: Arc<TableCodec>, frame: Frame<'a>, path: &Path, pool: &Pool) -> Self {
        let (table, schema) = (format!("'{path}'"), codec.key_schema().clone());
        let (of, wanted) = (codec.clone(), schema.clone());
        let rest = frame.into_batches(pool, &table).map(move |batch| {
            let keys = of.keys_of(&batch?).and_then(|(_, keys)| Ok(RecordBatch::try_new(wanted.clone(), keys)?));
            keys.map_err(|e| e.context(&table))
        });
        Self::of(codec, schema, rest, None)
    }

    /// Rows that have the columns of `schema`, none of which are pulled yet.
    fn of_some_columns(
        codec: Arc<TableCodec>,
        rows: &RowsSchema,
        schema: SchemaRef,
        frame: Frame<'a>,
        path: &Path,
        pool: &Pool,
        numbering: &Numbering,
    ) -> Result<Self> {
        let table = format!("'{path}'");
        let (mut conform, checks) = (Conform::new(schema.clone()).named(&table), Some(rows.stored.bound_checks()?));
        let rest = frame.into_batches(pool, &table).map(move |batch| conform.batch(&batch?));
        Ok(Self { partial: Some(numbering.clone()), ..Self::of(codec, schema, rest, checks) })
    }

    /// All of it.
    pub fn all(self) -> Result<RecordBatch> {
        let rest: Vec<RecordBatch> = self.rest.into_iter().flatten().collect::<Result<_>>()?;
        let all = [self.drawn, rest].concat();
        if all.is_empty() { Ok(RecordBatch::new_empty(self.schema)) } else { join_batches(&self.schema, &all) }
    }

    /// Pulls batches until it is known whether there are more than `bytes` of them.
    fn draw(mut self, bytes: u64, cancel: &Cancel) -> Result<Self> {
        let mut drawn = 0;
        while let Some(rest) = self.rest.as_mut().filter(|_| drawn <= bytes) {
            cancel.check()?;
            match rest.next() {
                Some(batch) => {
                    let batch = batch?;
                    drawn += batch_bytes(&batch);
                    self.drawn.extend((batch.num_rows() > 0).then_some(batch));
                }
                None => self.rest = None,
            }
        }
        Ok(self)
    }
}

impl Call<'_> {
    /// Writes rows by key, or deletes keys.
    pub fn write_by_key(
        self,
        what: ByKey,
        path: &Path,
        frame: Frame<'_>,
        options: &WriteOptions,
    ) -> Result<RowsReport> {
        let store = self.store;
        store.wait_for_room()?;
        let base = store.state()?;
        refuse_view(&base, table_at(&base, path)?.id)?;
        let gathered = store.gather(&base, what, path, frame, options, &store.numbering())?;
        // A note is kept with a version, and so is a schema; rows written without row groups make none.
        if gathered.rest.is_some() || gathered.evolved.is_some() || options.metadata.is_some() {
            return match gathered.partial {
                Some(_) => self.merge_partial(path, &PartialMerge::new(store, path, gathered, options)?),
                None => self.write_many_by_key(what, path, gathered, options),
            };
        }
        let rows = gathered.drawn.iter().map(|batch| batch.num_rows() as u64).sum();
        if rows == 0 {
            return Ok(RowsReport { seq: Some(base.seq), rows, version: None, returned: None });
        }
        let few = SmallWrite::new(what, &gathered)?;
        let (after, ()) = self.commit(|base| {
            let (footprint, effect) = store.small_write(what, &base, path, &few, &options.task.cancel)?;
            let build = move |_: &State| Ok(vec![effect.clone()]);
            Ok((Proposal::new(base, footprint, Work::Build(Box::new(build))), ()))
        })?;
        Ok(RowsReport { seq: Some(after.seq), rows, version: None, returned: None })
    }
}

impl Store {
    /// The same in a transaction; few rows, too, as row groups if `bulk`. Returns how many rows.
    pub(in crate::store) fn write_by_key_in(
        &self,
        open: &mut OpenTransaction,
        what: ByKey,
        path: &Path,
        frame: Frame<'_>,
        (options, numbering): (&WriteOptions, &Numbering),
        bulk: bool,
    ) -> Result<u64> {
        let state = open.draft.state();
        if !open.of_views {
            refuse_view(state, table_at(state, path)?.id)?;
        }
        let gathered = self.gather(state, what, path, frame, options, numbering)?;
        let rows = gathered.drawn.iter().map(|batch| batch.num_rows() as u64).sum();
        if gathered.rest.is_none() && gathered.evolved.is_none() && options.metadata.is_none() && !bulk {
            if rows > 0 {
                let few = SmallWrite::new(what, &gathered)?;
                let (footprint, effect) = self.small_write(what, state, path, &few, &options.task.cancel)?;
                open.apply(footprint, vec![effect], None)?;
            }
            return Ok(rows);
        }
        // A merge finds all rows in row groups, and leaves none of its own in memory.
        if gathered.partial.is_some() || bulk && what == ByKey::Upsert {
            return open.merge_partial(self, path, &PartialMerge::new(self, path, gathered, options)?);
        }
        let waiting = if gathered.evolved.is_some() { in_memory(state, path)? } else { BTreeSet::new() };
        open.with_rows_in_groups(self, &waiting, MemoryScope::All, |open| {
            let bulk = self.prepare_bulk(what, open.draft.state(), path, gathered, options)?;
            open.apply(bulk.footprint, bulk.effects, Some(bulk.writer))?;
            Ok(bulk.rows)
        })
    }

    /// Pulls batches from a frame until it is known whether it is large.
    pub(in crate::store) fn gather<'a>(
        &self,
        state: &State,
        what: ByKey,
        path: &Path,
        frame: Frame<'a>,
        options: &WriteOptions,
        numbering: &Numbering,
    ) -> Result<Gathered<'a>> {
        let table = &table_at(state, path)?;
        let named = |e: Error| e.context(format!("'{path}'"));
        let codec = table.codec().map_err(named)?;
        let (pool, bytes, cancel) = (&self.env().pool, self.options().row_write_bytes, &options.task.cancel);
        if what == ByKey::Delete {
            return Gathered::of_keys(codec, frame, path, pool).draw(bytes, cancel);
        }
        let generators = numbering.generators(state, table);
        let mut rows = RowsSchema::added(table, frame.schema(), options.schema, &generators).map_err(named)?;
        check_key_columns(what, frame.schema(), &rows.stored, table.order()).map_err(named)?;
        if what == ByKey::Upsert
            && let Some(schema) = partial_schema(frame.schema(), &rows).map_err(named)?
        {
            let evolved = rows.evolves.then(|| (codec.schema().clone(), rows.stored.clone()));
            let gathered = Gathered::of_some_columns(codec, &rows, schema, frame, path, pool, numbering)?;
            return Gathered { evolved, ..gathered }.draw(bytes, cancel);
        }
        if what == ByKey::Insert {
            rows = rows.filling(generators);
        }
        let (codec, evolved) = match rows.evolves {
            true => {
                let own = codec.schema().clone();
                (Arc::new(TableCodec::new(&rows.stored.0, table.order())?), Some((own, rows.stored.clone())))
            }
            false => (codec, None),
        };
        let gathered = Gathered { evolved, ..Gathered::of_rows(codec, &rows, frame, path, pool)? };
        gathered.draw(bytes, cancel)
    }

    /// The effect that writes a few rows to the table at `path`, as it is in `state`.
    pub(in crate::store) fn small_write(
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
        }
        let looked_up = what == ByKey::Insert || few.is_partial() && !planted(Bug::CompleteBlindly);
        if looked_up {
            footprint = footprint.with(Read::Keys(table.id, few.keys.clone()));
        }
        let found = few.rows(state, &self.searcher(state, table, &few.codec, cancel));
        let (rows, until) = found.map_err(|e| of_table(path, e))?;
        footprint.reads.extend(until.map(|until| Read::Until(table.id, until)));
        Ok((footprint, Effect::WriteRows { table: table.id, version: table.next_version(), rows }))
    }

    /// Waits for a checkpoint if the rows that wait for one take far too much memory.
    pub(in crate::store) fn wait_for_room(&self) -> Result<()> {
        const TIMES: u64 = 4;
        let bound = self.options().memtable_bytes.saturating_mul(TIMES);
        let over = || bound > 0 && self.commits().newest().memtable_bytes() > bound;
        if over() && self.is_handle() {
            // The checkpoint that is due waits for what holds this.
            self.upkeep().check_outside()?;
            self.checkpoint_if_due();
            self.upkeep().background().wait()?;
        }
        Ok(())
    }
}

/// A small write: rows or keys to be written.
pub(in crate::store) struct SmallWrite {
    codec: Arc<TableCodec>,
    /// Without duplicates.
    keys: Arc<Keys>,
    change: SmallChange,
    checks: Option<Checks>,
}

/// What a small write does.
enum SmallChange {
    /// Whole rows or keys.
    Known(RowsChange),
    /// Rows with some of the columns.
    Partial(RecordBatch, Numbering),
}

impl SmallWrite {
    /// Of what was gathered.
    pub fn new(what: ByKey, gathered: &Gathered<'_>) -> Result<Self> {
        let codec = gathered.codec.clone();
        let batch = join_batches(&gathered.schema, &gathered.drawn)?;
        let (batch, keys) = dedup_keys(what, &codec, batch)?;
        let change = match what {
            ByKey::Delete => SmallChange::Known(RowsChange::new(&codec, None, Some(&batch))?),
            _ => match &gathered.partial {
                Some(numbering) => SmallChange::Partial(batch, numbering.clone()),
                None => SmallChange::Known(RowsChange::new(&codec, Some(&batch), None)?),
            },
        };
        Ok(Self { codec, keys: Arc::new(keys), change, checks: gathered.checks.clone() })
    }

    fn is_partial(&self) -> bool {
        matches!(self.change, SmallChange::Partial(..))
    }

    /// What is written: of rows with some of the columns, what `searcher` finds in the others, too.
    /// Also returns when the first of those rows expires.
    fn rows(&self, state: &State, searcher: &Searcher<'_>) -> Result<(RowsChange, Option<Timestamp>)> {
        match &self.change {
            SmallChange::Known(change) => Ok((change.clone(), None)),
            SmallChange::Partial(rows, numbering) => {
                let generators = numbering.generators(state, searcher.table);
                let stored = searcher.table.schema().expect("every table has a version");
                let checks = self.checks.clone().unwrap_or_default();
                let (whole, until) = completed(rows, searcher, &self.keys, &checks, &|field, rows| {
                    generators.lacking(stored, field, rows)
                })?;
                Ok((RowsChange::new(&self.codec, Some(&whole), None)?, until))
            }
        }
    }
}
