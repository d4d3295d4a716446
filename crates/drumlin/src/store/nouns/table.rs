//! One table: all operations on it, in a store or in a transaction.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::base::Result;
use crate::catalog::{Footprint, Path, Pattern, Read, State};
use crate::filter::{Expression, Filter};
use crate::store::nouns::transaction::OpenTransaction;
use crate::store::read::lookup::FoundTable;
use crate::store::read::resolve::{newest, of_table, table_at};
use crate::store::write::by_key::ByKey;
use crate::store::write::frame::create_table;
use crate::store::write::on_item_error::OnItemError;
use crate::store::{
    AsOf, DeleteReport, DropReport, Frame, MergeReport, Missing, Place, RowsReport, Store, TableOptions, UpdateOptions,
    UpdateReport, VersionInfo, WriteOptions,
};
use crate::table::{Assignments, Merge, VersionKind, matching_rows};

/// A handle on the table at a path: in a store, where each call that changes it is one commit, or in a transaction. See
/// [`crate::store::Tables::table`].
///
/// In a transaction, the version returned by a call is `None`: versions are numbered at its commit.
#[derive(Clone, Debug)]
pub struct Table {
    pub(in crate::store) place: Place,
    pub(in crate::store) path: String,
    /// What the last look-up found.
    pub(super) found: FoundTable,
}

impl Table {
    pub(in crate::store) fn new(place: Place, path: impl Into<String>) -> Self {
        Self { place, path: path.into(), found: FoundTable::default() }
    }

    /// Its path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether there is a table at the path.
    ///
    /// # Errors
    /// `InvalidArgument` if the path is not valid.
    pub fn exists(&self) -> Result<bool> {
        let path = Path::new(&self.path)?;
        self.place.look(|| Read::Binding(path.clone()), |state| Ok(state.table_id_at(&path).is_some()))
    }

    /// Makes an empty table; its version 0 has no rows.
    ///
    /// # Errors
    /// `AlreadyExists` if the path holds one; `InvalidArgument` if the schema, the sort order or the key is not sound.
    pub fn create(&self, schema: SchemaRef, options: TableOptions) -> Result<Option<VersionInfo>> {
        let path = Path::new(&self.path)?;
        let default = self.place.store().options().of_new_tables();
        let mut build =
            create_table(path.clone(), &schema, options, default).map_err(|e| e.context(format!("'{path}'")))?;
        match &self.place {
            Place::Store(store) => Ok(Some(store.newest_info(&*store.commit_effects(build)?, &path)?)),
            Place::Transaction(transaction) => transaction.change_tables(|_, open| {
                let effects = build(open.draft.state())?;
                open.apply(Footprint::default().with(Read::Binding(path)), effects, None)?;
                Ok(None)
            }),
        }
    }

    /// Makes a version that holds exactly the rows of `frame`; makes the table if needed.
    ///
    /// # Errors
    /// `InvalidArgument` if the path, the sort order or an array is not sound.
    pub fn write<'a>(&self, frame: impl Into<Frame<'a>>, options: &WriteOptions) -> Result<Option<VersionInfo>> {
        self.write_frame(VersionKind::Write, frame.into(), options)
    }

    /// Makes a version with the rows of `frame` after the existing ones. The columns must be the table's, in any order. Only
    /// lossless conversions are made: layouts of strings and dictionaries, wider numbers, units of time. Rows of a keyed
    /// table must have new keys, as for [`Table::insert`].
    ///
    /// # Errors
    /// `NotFound` if there is no table, `SchemaMismatch` if the columns are not its own, `AlreadyExists` if a key exists.
    pub fn append<'a>(&self, frame: impl Into<Frame<'a>>, options: &WriteOptions) -> Result<Option<VersionInfo>> {
        self.write_frame(VersionKind::Append, frame.into(), options)
    }

    fn write_frame(&self, kind: VersionKind, frame: Frame<'_>, options: &WriteOptions) -> Result<Option<VersionInfo>> {
        let frames = vec![(self.path.clone(), frame)];
        self.place.write_frames(kind, frames, options, OnItemError::Refuse)?.remove(0)
    }

    /// Makes a version in which columns of the rows for which `filter` is true, or of all, have other values: `set` has names
    /// and expressions in the language of filters, computed from the values before. Rows keep their order. If the filter is true
    /// for none, no version is made. Numbers are rounded to the scale of the column; what its type cannot hold is an error.
    ///
    /// Writes the row groups with these rows, of which only the columns that are set are encoded again; of few rows of a table
    /// with a key, only the rows.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use drumlin::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    /// # use drumlin::{Expression, Tables};
    /// # let store = drumlin::Store::memory()?;
    /// # let rows = |n| RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(n)) as ArrayRef)]).unwrap();
    /// store.write("t", rows(vec![1, 2, 3]), &Default::default())?;
    /// let set = [("n".to_owned(), Expression::parse("n * 10")?)];
    /// assert_eq!(store.table("t").update(&set, Some("n > 1"), &Default::default())?.rows, 2);
    /// assert_eq!(store.table("t").collect(&Default::default())?, [rows(vec![1, 20, 30])]);
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no table; `InvalidArgument` if an expression or the filter is not sound, or a value is none of
    /// its column's type; `SchemaMismatch` if a column takes no nulls; in a transaction `Conflict` if it has written rows by
    /// key itself.
    pub fn update(
        &self,
        set: &[(String, Expression)],
        filter: Option<&str>,
        options: &UpdateOptions,
    ) -> Result<UpdateReport> {
        let (path, filter) = (Path::new(&self.path)?, filter.map(Filter::parse).transpose()?);
        let prepare = |store: &Store, state: &State| store.prepare_update(state, &path, set, filter.as_ref(), options);
        let nothing = || match &filter {
            Some(filter) => self.finds_nothing(&path, set, filter, options),
            None => Ok(None),
        };
        let (version, rows) = match &self.place {
            Place::Store(store) => {
                let call = store.call()?;
                match nothing()? {
                    Some(version) => (version, 0),
                    None => call.commit_row_changes(&path, |state| prepare(store, state))?,
                }
            }
            Place::Transaction(transaction) => match nothing()? {
                Some(version) => (version, 0),
                None => transaction.change_tables(|store, open| {
                    Ok((None, open.change_rows(store, &path, |state| prepare(store, state))?))
                })?,
            },
        };
        Ok(UpdateReport { version, rows })
    }

    /// The newest version, if an update of rows that match a filter would find none, in a table with rows in memory: these need not become row
    /// groups then.
    fn finds_nothing(
        &self,
        path: &Path,
        set: &[(String, Expression)],
        filter: &Filter,
        options: &UpdateOptions,
    ) -> Result<Option<Option<VersionInfo>>> {
        let reads = |state: &State| self.reads_rows(state, &AsOf::Newest);
        self.place.read(reads, |state, _| {
            let (table, store) = (&table_at(state, path)?, self.place.store());
            if table.parts.is_empty() {
                return Ok(None);
            }
            Assignments::new(table, set).map_err(|e| e.context(format!("'{path}'")))?;
            let (reader, pool) = (store.reader(), &store.env().pool);
            let found = matching_rows(reader, pool, table, newest(store, state, table), filter, &options.task.cancel);
            let found = found.map_err(|e| of_table(path, e))?;
            if !found.groups.is_empty() || !found.keys.is_empty() {
                return Ok(None);
            }
            self.is_in_store().then(|| store.newest_info(state, path)).transpose().map(Some)
        })
    }

    /// Brings the rows of `frame` into the table, each by whether a row there is equal to it in the columns `merge.on`: rows that
    /// match are updated or deleted, rows of the frame that match none are added, and rows of the table that match none may be
    /// updated or deleted too. Conditions and values are expressions over `source.x`, a column of the frame, and `target.y`,
    /// one of the table. A null matches nothing. One version; if nothing changes, none is made. In a table without an order, rows
    /// that are updated may come after those that are not, before those that are added.
    ///
    /// The frame is held in memory, at most half of [`crate::store::Options::memory_bytes`]. Row groups whose statistics rule out
    /// all keys of the frame are not read.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use drumlin::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    /// # use drumlin::{Merge, Tables, WhenMatched, WhenNotMatched};
    /// # let store = drumlin::Store::memory()?;
    /// let rows = |id: Vec<i64>, n: Vec<i64>| RecordBatch::try_from_iter([
    ///     ("id", Arc::new(Int64Array::from(id)) as ArrayRef), ("n", Arc::new(Int64Array::from(n)) as ArrayRef),
    /// ]).unwrap();
    /// store.write("t", rows(vec![1, 2], vec![10, 20]), &Default::default())?;
    /// let merge = Merge {
    ///     on: vec!["id".into()],
    ///     matched: vec![(None, WhenMatched::UpdateAll)],
    ///     not_matched: vec![(None, WhenNotMatched::InsertAll)],
    ///     ..Merge::default()
    /// };
    /// let report = store.table("t").merge(rows(vec![2, 3], vec![21, 30]), &merge, &Default::default())?;
    /// assert_eq!((report.updated, report.inserted), (1, 1));
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no table; `InvalidArgument` if two rows of the frame match the same rows, or a clause is not sound;
    /// `SchemaMismatch` if columns do not fit; `AlreadyExists` if a row to be added has a key that is there; in a transaction
    /// `Conflict` if it has written rows by key itself.
    pub fn merge<'a>(
        &self,
        frame: impl Into<Frame<'a>>,
        merge: &Merge,
        options: &UpdateOptions,
    ) -> Result<MergeReport> {
        let path = Path::new(&self.path)?;
        match &self.place {
            Place::Store(store) => {
                let source = store.collected(&path, frame.into(), options)?;
                let numbering = store.numbering();
                let prepare = |state: &State| {
                    store.prepare_merge(state, &path, source.clone(), merge, false, options, &numbering)
                };
                let (version, report) = store.call()?.commit_row_changes(&path, prepare)?;
                Ok(MergeReport { version, ..report })
            }
            Place::Transaction(transaction) => transaction.change_tables(|store, open| {
                let numbering = open.numbering(store);
                open.change_rows(store, &path, |state| {
                    let source = store.collected(&path, frame.into(), options)?;
                    store.prepare_merge(state, &path, source, merge, false, options, &numbering)
                })
            }),
        }
    }

    /// Makes a version without the rows for which `filter` is true. If it is true for none, no version is made.
    ///
    /// Reads only the columns of the filter, in row groups whose statistics do not decide it; writes only positions.
    ///
    /// # Errors
    /// `NotFound` if there is no table; `InvalidArgument` or `SchemaMismatch` if the filter is not valid or does not fit its
    /// columns.
    pub fn delete(&self, filter: &str, options: &UpdateOptions) -> Result<DeleteReport> {
        let (path, filter) = (Path::new(&self.path)?, Filter::parse(filter)?);
        match &self.place {
            Place::Store(store) => store.call()?.delete_matching(&path, &filter, options),
            Place::Transaction(transaction) => transaction.change_tables(|store, open| {
                let (change, rows) = store.find_rows(open.draft.state(), &path, &filter, options)?;
                open.apply(change.footprint, change.effects, None)?;
                Ok(DeleteReport { version: None, rows })
            }),
        }
    }

    /// Puts rows into a keyed table; each replaces the one with its key if there is one. Of rows with the same key the
    /// last counts. Columns are matched by name. A row that is there keeps what it has in columns that the frame lacks; in a new row
    /// these have their default, or are null.
    ///
    /// A call with few bytes ([`crate::store::Options::row_write_bytes`]) is one write to the log and makes no version of its own;
    /// others write row groups and make one.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use drumlin::arrow::array::{ArrayRef, Int64Array, RecordBatch, cast::AsArray};
    /// # use drumlin::arrow::datatypes::Int64Type;
    /// # use drumlin::{TableOptions, Tables};
    /// # let store = drumlin::Store::memory()?;
    /// let rows = |id: Vec<i64>, n: Vec<i64>| RecordBatch::try_from_iter([
    ///     ("id", Arc::new(Int64Array::from(id)) as ArrayRef), ("n", Arc::new(Int64Array::from(n)) as ArrayRef),
    /// ]).unwrap();
    /// let (table, first) = (store.table("t"), rows(vec![1, 2], vec![10, 20]));
    /// table.create(first.schema(), TableOptions { key: vec!["id".into()], ..Default::default() })?;
    /// table.upsert(first, &Default::default())?;
    /// table.upsert(rows(vec![2, 3], vec![21, 30]), &Default::default())?;
    /// let asked = rows(vec![3, 2, 9], vec![0, 0, 0]).project(&[0]).unwrap();
    /// let answer = table.get_many(&asked, &Default::default())?;
    /// assert_eq!(answer.found, vec![true, true, false].into());
    /// assert_eq!(answer.rows["n"].as_primitive::<Int64Type>().value(1), 21);
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no table. `InvalidArgument` if it has no key. `SchemaMismatch` if a column does not fit the table, or if a
    /// new row has no value for a column that takes no nulls and has no default.
    pub fn upsert<'a>(&self, frame: impl Into<Frame<'a>>, options: &WriteOptions) -> Result<RowsReport> {
        self.by_key(ByKey::Upsert, frame.into(), options)
    }

    /// Puts rows with new keys into a keyed table. Columns that the frame lacks have their default, or are null.
    ///
    /// # Errors
    /// `AlreadyExists`, naming keys, if a key exists, or if two rows have the same one: then nothing is written. Else
    /// as [`Table::upsert`].
    pub fn insert<'a>(&self, frame: impl Into<Frame<'a>>, options: &WriteOptions) -> Result<RowsReport> {
        self.by_key(ByKey::Insert, frame.into(), options)
    }

    /// Deletes the rows of a keyed table that have the keys in `keys`, which has the key columns, maybe among others.
    /// Missing keys are ignored.
    ///
    /// # Errors
    /// As [`Table::upsert`].
    pub fn delete_keys<'a>(&self, keys: impl Into<Frame<'a>>, options: &WriteOptions) -> Result<RowsReport> {
        self.by_key(ByKey::Delete, keys.into(), options)
    }

    /// [`Table::upsert`] for rows that do not all have the same columns: batch after batch, in one commit.
    ///
    /// # Errors
    /// As [`Table::upsert`]; then nothing is written.
    pub fn upsert_batches(&self, batches: &[RecordBatch], options: &WriteOptions) -> Result<RowsReport> {
        self.batches_by_key(ByKey::Upsert, batches, options)
    }

    /// [`Table::insert`] for rows that do not all have the same columns: batch after batch, in one commit.
    ///
    /// # Errors
    /// As [`Table::insert`]; then nothing is written.
    pub fn insert_batches(&self, batches: &[RecordBatch], options: &WriteOptions) -> Result<RowsReport> {
        self.batches_by_key(ByKey::Insert, batches, options)
    }

    /// Adds numbers to columns of rows, which are found by key: `amounts` has the key columns, and the columns that are added to. A null counts
    /// as 0, and so does what a new row has in such a column, unless that has a default; the others have theirs. Several amounts for one
    /// row are added one after the other. [`crate::RowsReport::returned`] has the sums, if they are asked for.
    ///
    /// No call that adds makes another one begin again, if the rows are in memory. So any number of threads may count in the same row.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use drumlin::arrow::array::{ArrayRef, Int64Array, RecordBatch, cast::AsArray};
    /// # use drumlin::arrow::datatypes::Int64Type;
    /// # use drumlin::{TableOptions, Tables, WriteOptions};
    /// # let store = drumlin::Store::memory()?;
    /// let rows = |id: Vec<i64>, n: Vec<i64>| RecordBatch::try_from_iter([
    ///     ("id", Arc::new(Int64Array::from(id)) as ArrayRef), ("n", Arc::new(Int64Array::from(n)) as ArrayRef),
    /// ]).unwrap();
    /// let (table, one) = (store.table("hits"), rows(vec![7], vec![1]));
    /// table.create(one.schema(), TableOptions { key: vec!["id".into()], ..Default::default() })?;
    /// table.increment(&one, &Default::default())?;
    /// let options = WriteOptions { returning: Some(vec!["n".into()]), ..Default::default() };
    /// let sums = table.increment(&one, &options)?.returned.unwrap();
    /// assert_eq!(sums["n"].as_primitive::<Int64Type>().value(0), 2);
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no table. `InvalidArgument` if it has no key, if a column does not hold numbers, or if a sum does
    /// not fit into it. `SchemaMismatch` if a check does not hold, or if a new row has no value for a column that takes no nulls and
    /// has no default. Then nothing is changed.
    pub fn increment(&self, amounts: &RecordBatch, options: &WriteOptions) -> Result<RowsReport> {
        self.place.increment(&Path::new(&self.path)?, amounts, options)
    }

    /// [`Table::upsert`] of `rows`, if each row of `expected` is there: with its key, and with its values in all columns that `expected`
    /// has. A null is equal to a null. The rows written may be others.
    ///
    /// # Errors
    /// `ConditionFailed`, naming a row and what it has, if one is not as expected: then nothing is written. Else as [`Table::upsert`].
    pub fn compare_and_set(
        &self,
        expected: &RecordBatch,
        rows: &RecordBatch,
        options: &WriteOptions,
    ) -> Result<RowsReport> {
        let path = Path::new(&self.path)?;
        let work = |store: &Store, open: &mut OpenTransaction, bulk: bool| {
            store.compare_and_set_in(open, &path, (expected, rows), options, bulk)
        };
        self.place.write_rows(&path, work)
    }

    fn batches_by_key(&self, what: ByKey, batches: &[RecordBatch], options: &WriteOptions) -> Result<RowsReport> {
        let path = Path::new(&self.path)?;
        let work = |store: &Store, open: &mut OpenTransaction, bulk: bool| {
            store.write_and_return(open, what, &path, batches, options, bulk)
        };
        self.place.write_rows(&path, work)
    }

    fn by_key(&self, what: ByKey, frame: Frame<'_>, options: &WriteOptions) -> Result<RowsReport> {
        let path = Path::new(&self.path)?;
        if options.returning.is_some() {
            let task = UpdateOptions { task: options.task.clone(), ..UpdateOptions::default() };
            let data = self.place.store().collected(&path, frame, &task)?;
            return self.batches_by_key(what, &[data], options);
        }
        match &self.place {
            Place::Store(store) => store.call()?.write_by_key(what, &path, frame, options),
            Place::Transaction(transaction) => transaction.change_tables(|store, open| {
                let numbering = open.numbering(store);
                let rows = store.write_by_key_in(open, what, &path, frame, (options, &numbering), false)?;
                Ok(RowsReport { seq: None, rows, version: None, returned: None })
            }),
        }
    }

    /// Drops it: see [`crate::store::Tables::drop`], which drops many.
    ///
    /// # Errors
    /// `NotFound` if there is no table, unless that is to be ignored.
    pub fn drop(&self, missing: Missing) -> Result<DropReport> {
        self.place.drop_tables(vec![Pattern::new(&self.path)?], missing)
    }

    /// What a read of its rows depends on.
    pub(in crate::store) fn reads_rows(&self, state: &State, as_of: &AsOf) -> Result<Vec<Read>> {
        let path = Path::new(&self.path)?;
        let mut reads = self.reads_version(state, &path, as_of);
        reads.extend(state.table_id_at(&path).map(Read::Rows));
        Ok(reads)
    }

    /// What a read of its schema depends on.
    pub(in crate::store) fn reads_schema(&self, state: &State, as_of: &AsOf) -> Result<Vec<Read>> {
        let path = Path::new(&self.path)?;
        let mut reads = self.reads_version(state, &path, as_of);
        reads.extend(state.table_id_at(&path).map(Read::Schema));
        Ok(reads)
    }

    fn reads_version(&self, state: &State, path: &Path, as_of: &AsOf) -> Vec<Read> {
        let mut reads = vec![Read::Binding(path.clone())];
        if let AsOf::Snapshot(name) = as_of {
            reads.push(Read::Snapshot(name.clone()));
        }
        if !matches!(&*as_of.settled(state), AsOf::Newest | AsOf::Snapshot(_)) {
            reads.extend(state.table_id_at(path).map(Read::Versions));
        }
        reads
    }
}
