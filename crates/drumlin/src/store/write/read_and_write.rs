//! Writes by key that depend on the rows which are there, or that answer with rows: numbers added to columns, rows that are written if others
//! have the expected values, rows returned as they are written.
//!
//! They are transactions: what they read is part of the footprint, and is read again where others came first. A few numbers need no
//! second attempt: in its turn, a row that was written by key since is read again from memory, and added to. So counters that many
//! threads add to do not conflict.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Float32Array, Float64Array, RecordBatch, Scalar};
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::kernels::numeric;
use arrow::datatypes::{DataType, FieldRef, Schema};

use super::amounts::Amounts;
use super::by_key::{ByKey, RowsReport, check_schema};
use crate::base::planted::{Bug, planted};
use crate::base::{Error, ErrorKind, Result, TypeName, clip};
use crate::catalog::{Effect, Footprint, Path, Read, State};
use crate::segment::{join_batches, take_batch};
use crate::store::commit::call::Call;
use crate::store::nouns::transaction::{OpenTransaction, Transaction};
use crate::store::read::resolve::{newest, of_table, table_at};
use crate::store::{Place, Store, WriteOptions};
use crate::table::{ReadPoint, RowsChange, batch_bytes, conform, find_requested, reread, shown};

impl Place {
    /// Writes rows by key of the table at `path` in a transaction: its own, which is committed, or this one. `work` is done again with
    /// `true` if rows had to be in row groups that it has written itself: then it is to write none in memory.
    pub(in crate::store) fn write_rows(
        &self,
        path: &Path,
        work: impl Fn(&Store, &mut OpenTransaction, bool) -> Result<RowsReport>,
    ) -> Result<RowsReport> {
        let mut each = |transaction: &Transaction| {
            transaction.change_tables(|store, open| match open.atomically(|open| work(store, open, false)) {
                Err(e) if e.kind() == ErrorKind::Conflict => open.atomically(|open| work(store, open, true)),
                done => done,
            })
        };
        match self {
            Place::Transaction(transaction) => each(transaction),
            Place::Store(store) => {
                store.call()?;
                let (report, after) = store.while_reclaimed(|| store.transact_to(&mut each))?;
                let newest = store.newest_info(&after, path)?;
                let version = (newest.seq == after.seq).then_some(newest);
                Ok(RowsReport { seq: Some(after.seq), version, ..report })
            }
        }
    }

    /// See [`crate::store::Table::increment`].
    pub(in crate::store) fn increment(
        &self,
        path: &Path,
        amounts: &RecordBatch,
        options: &WriteOptions,
    ) -> Result<RowsReport> {
        match self {
            Place::Store(store)
                if batch_bytes(amounts) <= store.options().row_write_bytes
                    && options.metadata.is_none()
                    && amounts.num_rows() > 0 =>
            {
                let call = store.call()?;
                store.check_returning(&*store.current()?, path, options)?;
                let (report, whole) = call.add_to_few(path, amounts)?;
                Ok(RowsReport { returned: options.chosen(whole)?, ..report })
            }
            _ => self.write_rows(path, |store, open, bulk| store.increment_in(open, path, amounts, options, bulk)),
        }
    }
}

impl Call<'_> {
    /// Adds to a few rows, each in the commit's turn; returns the rows as they are then.
    fn add_to_few(self, path: &Path, amounts: &RecordBatch) -> Result<(RowsReport, RecordBatch)> {
        let store = self.store;
        store.wait_for_room()?;
        let (after, whole) = self.attempt(|| {
            let (base, _pin) = store.pinned_state()?;
            let table = table_at(&base, path)?;
            let generators = store.numbering().generators(&base, &table);
            let amounts = Amounts::new(&base, path, amounts, &generators)?;
            let (found, until) = amounts.found(store, &base, &table, &generators).map_err(|e| of_table(path, e))?;
            let (path, id, then, since) = (path.clone(), table.id, table, base.seq);
            // What has expired for those who come after it has for this.
            let seen = newest(store, &base, &then);
            let build = move |now: &State| {
                let table = &table_at(now, &path)?;
                if table.id != then.id {
                    return Err(Error::conflict(format!("the table at '{path}' changed during the call")));
                }
                check_schema(table, &path, amounts.codec.schema(), Some(&amounts.checks))?;
                let rows = match planted(Bug::AddToOld) {
                    true => found.clone(),
                    false => {
                        let version = table.newest().map_or(seen.version, |newest| newest.version);
                        let read_point = ReadPoint { version, seq: now.seq, ..seen };
                        reread(table, &then, since, read_point, &amounts.keys, &found)?
                    }
                };
                let whole = amounts.added_to(&rows).map_err(|e| e.context(format!("'{path}'")))?;
                let rows = RowsChange::new(&amounts.codec, Some(&whole), None)?;
                let write = Effect::WriteRows { table: table.id, version: table.next_version(), rows };
                Ok((vec![write], whole))
            };
            let until = until.map(|until| Read::Until(id, until));
            let footprint = Footprint { reads: until.into_iter().collect() };
            match store.commit_built_on(base, footprint, build) {
                Err(e) if e.kind() == ErrorKind::Conflict => Ok(Err(e)),
                done => done.map(Ok),
            }
        })?;
        let rows = whole.num_rows() as u64;
        Ok((RowsReport { seq: Some(after.seq), rows, version: None, returned: None }, whole))
    }
}

impl Store {
    /// Adds to rows in a transaction.
    fn increment_in(
        &self,
        open: &mut OpenTransaction,
        path: &Path,
        amounts: &RecordBatch,
        options: &WriteOptions,
        bulk: bool,
    ) -> Result<RowsReport> {
        let state = open.draft.state();
        self.check_returning(state, path, options)?;
        let table = table_at(state, path)?;
        let numbering = open.numbering(self);
        let generators = numbering.generators(state, &table);
        let amounts = Amounts::new(state, path, amounts, &generators)?;
        let (found, until) = amounts.found(self, state, &table, &generators).map_err(|e| of_table(path, e))?;
        let whole = amounts.added_to(&found).map_err(|e| e.context(format!("'{path}'")))?;
        open.note(vec![Read::Keys(table.id, amounts.keys.clone())]);
        open.note(until.map(|until| Read::Until(table.id, until)).into_iter().collect());
        let rows = self.write_by_key_in(open, ByKey::Upsert, path, (&whole).into(), (options, &numbering), bulk)?;
        Ok(RowsReport { seq: None, rows, version: None, returned: options.chosen(whole)? })
    }

    /// See [`crate::store::Table::compare_and_set`].
    pub(in crate::store) fn compare_and_set_in(
        &self,
        open: &mut OpenTransaction,
        path: &Path,
        (expected, rows): (&RecordBatch, &RecordBatch),
        options: &WriteOptions,
        bulk: bool,
    ) -> Result<RowsReport> {
        let state = open.draft.state();
        let table = table_at(state, path)?;
        let named = |e: Error| e.context(format!("'{path}'"));
        let codec = table.codec().map_err(named)?;
        let (keys, key_columns) = codec.keys_of(expected).map_err(named)?;
        let stored = table.schema().expect("it was written to");
        let names: Vec<String> = expected.schema().fields().iter().map(|field| field.name().clone()).collect();
        let places = find_requested(&stored.0, &names).map_err(named)?;
        let fields = places.iter().map(|at| stored.0.field(*at).clone().with_nullable(true)).collect::<Vec<_>>();
        let given: Vec<FieldRef> = fields.into_iter().map(Arc::new).collect();
        let wanted = conform(expected, &Arc::new(Schema::new(given))).map_err(named)?;
        let cancel = &options.task.cancel;
        let there = self.searcher(state, &table, &codec, cancel).get_many(&keys, &key_columns, Some(&names));
        let there = there.map_err(|e| of_table(path, e))?;
        let key = |at: usize| codec.key_codec().describe_some([keys.get(at)].into_iter());
        let failed =
            |what: String| Error::new(ErrorKind::ConditionFailed, format!("'{path}': {what}; nothing was written"));
        if let Some(at) = (0..keys.len()).find(|at| !there.found.value(*at)) {
            return Err(failed(format!("there is no row with the key {}", key(at))));
        }
        for (field, wanted) in wanted.schema().fields().iter().zip(wanted.columns()) {
            let own = there.rows.column_by_name(field.name()).expect("asked for");
            let differs = distinct(&comparable(own)?, &comparable(wanted)?);
            let differs = differs.map_err(|_| {
                let (name, of) = (field.name(), TypeName(field.data_type()));
                named(Error::invalid(format!("column '{name}' of type {of} cannot be compared")))
            })?;
            if let Some(at) = (0..keys.len()).find(|at| differs.value(*at)) {
                let (has, expected) = (shown(own, at)?, shown(wanted, at)?);
                let (has, expected) = (clip(&has, 60), clip(&expected, 60));
                return Err(failed(format!(
                    "column '{}' of the row with the key {} is {has}, expected {expected}",
                    field.name(),
                    key(at)
                )));
            }
        }
        if !planted(Bug::CompareEarly) {
            open.note(vec![Read::Keys(table.id, Arc::new(keys))]);
        }
        open.note(there.until.map(|until| Read::Until(table.id, until)).into_iter().collect());
        self.write_and_return(open, ByKey::Upsert, path, std::slice::from_ref(rows), options, bulk)
    }

    /// Writes batches by key in a transaction, and returns the rows as they are then, or were before they were deleted, if that is asked for.
    pub(in crate::store) fn write_and_return(
        &self,
        open: &mut OpenTransaction,
        what: ByKey,
        path: &Path,
        batches: &[RecordBatch],
        options: &WriteOptions,
        bulk: bool,
    ) -> Result<RowsReport> {
        let numbering = open.numbering(self);
        let write = |open: &mut OpenTransaction, batch: &RecordBatch| {
            self.write_by_key_in(open, what, path, batch.into(), (options, &numbering), bulk)
        };
        open.atomically(|open| {
            if !self.check_returning(open.draft.state(), path, options)? {
                let rows = batches.iter().map(|batch| write(open, batch)).sum::<Result<u64>>()?;
                return Ok(RowsReport { seq: None, rows, version: None, returned: None });
            }
            let (mut rows, mut keys) = (0, Vec::new());
            let mut gone = None;
            for batch in batches {
                // With the values that are made for it, since these may be keys.
                let gathered = self.gather(open.draft.state(), what, path, batch.into(), options, &numbering)?;
                let batch = gathered.all()?;
                keys.push(batch.project(&self.key_places(open.draft.state(), path, &batch)?)?);
                if what == ByKey::Delete {
                    gone = Some(self.rows_of(open, what, path, &keys, options)?);
                }
                rows += write(open, &batch)?;
            }
            let returned = match gone {
                Some(gone) => gone,
                None => self.rows_of(open, what, path, &keys, options)?,
            };
            Ok(RowsReport { seq: None, rows, version: None, returned: Some(returned) })
        })
    }

    fn key_places(&self, state: &State, path: &Path, batch: &RecordBatch) -> Result<Vec<usize>> {
        let codec = table_at(state, path)?.codec()?;
        let places = codec.key_schema().fields().iter().map(|field| Ok(batch.schema().index_of(field.name())?));
        places.collect()
    }

    /// The rows with these keys, in the order of the keys as they were given; of equal keys the last one counts.
    fn rows_of(
        &self,
        open: &mut OpenTransaction,
        what: ByKey,
        path: &Path,
        keys: &[RecordBatch],
        options: &WriteOptions,
    ) -> Result<RecordBatch> {
        let state = open.draft.state();
        let table = table_at(state, path)?;
        let codec = table.codec()?;
        let mut asked = vec![RecordBatch::new_empty(codec.key_schema().clone())];
        for keys in keys {
            asked.push(RecordBatch::try_new(codec.key_schema().clone(), codec.keys_of(keys)?.1)?);
        }
        let asked = join_batches(codec.key_schema(), &asked)?;
        let keys = codec.keys_of(&asked)?.0;
        let order = keys.sorted_places();
        let last =
            |at: &usize| order.get(at + 1).is_none_or(|next| keys.get(*next as usize) != keys.get(order[*at] as usize));
        let mut kept: Vec<u32> = (0..order.len()).filter(last).map(|at| order[at]).collect();
        kept.sort_unstable();
        let asked = take_batch(&asked, kept)?;
        let (keys, columns) = codec.keys_of(&asked)?;
        let names = options.returning.as_deref().filter(|names| !names.is_empty());
        let searcher = self.searcher(state, &table, &codec, &options.task.cancel);
        let found = searcher.get_many(&keys, &columns, names).map_err(|e| of_table(path, e))?;
        let is_there: Vec<u32> = (0..keys.len() as u32).filter(|at| found.found.value(*at as usize)).collect();
        let rows = take_batch(&found.rows, is_there)?;
        if what == ByKey::Delete {
            open.note(vec![Read::Keys(table.id, Arc::new(keys))]);
            open.note(found.until.map(|until| Read::Until(table.id, until)).into_iter().collect());
        }
        Ok(rows)
    }

    /// Whether rows are to be returned; `InvalidArgument` if columns are asked for that are not there.
    fn check_returning(&self, state: &State, path: &Path, options: &WriteOptions) -> Result<bool> {
        let Some(names) = &options.returning else { return Ok(false) };
        let table = table_at(state, path)?;
        if !names.is_empty() {
            let schema = table.schema().expect("every table has a version");
            find_requested(&schema.0, names).map_err(|e| e.context(format!("'{path}'")))?;
        }
        Ok(true)
    }
}

impl WriteOptions {
    /// Of whole rows the columns that are to be returned, if any are.
    fn chosen(&self, whole: RecordBatch) -> Result<Option<RecordBatch>> {
        match &self.returning {
            None => Ok(None),
            Some(names) if names.is_empty() => Ok(Some(whole)),
            Some(names) => Ok(Some(whole.project(&find_requested(&whole.schema(), names)?)?)),
        }
    }
}

/// As filters compare it: 0.0 and -0.0 are the same.
fn comparable(column: &ArrayRef) -> Result<ArrayRef> {
    Ok(match column.data_type() {
        DataType::Float64 => numeric::add(column, &Scalar::new(Float64Array::from(vec![0.0])))?,
        DataType::Float32 => numeric::add(column, &Scalar::new(Float32Array::from(vec![0.0])))?,
        _ => column.clone(),
    })
}
