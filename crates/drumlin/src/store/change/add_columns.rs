//! Tables whose columns change. Columns may be added together with the values that rows have in them: computed, from a frame, or by a
//! function. That makes two versions in one commit, one with the columns and one with their values.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Field, Schema, SchemaRef};
use roaring::RoaringBitmap;

use super::changed_rows::{ChangedRows, PreparedChange};
use crate::base::{Error, Result};
use crate::catalog::{Path, State};
use crate::filter::Expression;
use crate::store::commit::in_groups::{MemoryScope, in_memory};
use crate::store::nouns::place::Place;
use crate::store::nouns::transaction::Transaction;
use crate::store::read::resolve::{newest, table_at};
use crate::store::{Frame, Store, Table, UpdateOptions, VersionInfo};
use crate::table::{
    Alter, Assignment, Fill, Merge, NewColumn, NewValues, RowGroup, VersionKind, WhenMatched, changed_columns, conform,
    find_column, find_requested,
};

/// A function that computes columns of rows from others: the batch that it returns has as many rows.
pub type ColumnFn<'f> = dyn Fn(&RecordBatch) -> Result<RecordBatch> + Sync + 'f;

/// Where the values of new columns come from.
enum ColumnValues<'f> {
    /// They are computed from columns of the same row.
    Computed(Vec<Assignment>),
    /// From rows of a frame that are equal in some columns.
    Rows(RecordBatch, Merge),
    /// A function computes them from some columns, or all.
    Function(SchemaRef, Option<Vec<String>>, &'f ColumnFn<'f>),
}

impl Table {
    /// Makes a version with other columns and the same rows. Writes no rows: row groups keep the columns that they were written
    /// with, and older versions their schema. O(columns), and if values of a column must be looked at to tell whether
    /// they fit a wider type, O(rows) of that column. Only columns that are computed ([`crate::Fill::Computed`]) take a second version,
    /// in the same commit; of large row groups they alone are written.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use drumlin::arrow::array::{ArrayRef, Int32Array, RecordBatch};
    /// # use drumlin::arrow::datatypes::{DataType, Field};
    /// # use drumlin::{Alter, Fill, NewColumn, Tables};
    /// # let store = drumlin::Store::memory()?;
    /// # let rows = RecordBatch::try_from_iter([("n", Arc::new(Int32Array::from(vec![1])) as ArrayRef)]).unwrap();
    /// store.write("t", rows, &Default::default())?;
    /// let table = store.table("t");
    /// let column = NewColumn { field: Field::new("note", DataType::Utf8, true), fill: Fill::Null };
    /// table.alter(&Alter::Add(vec![column]), &Default::default())?;
    /// table.alter(&Alter::Rename(vec![("n".into(), "count".into())]), &Default::default())?;
    /// table.alter(&Alter::Widen(vec![("count".into(), DataType::Int64)]), &Default::default())?;
    /// let schema = table.schema(&Default::default())?;
    /// assert_eq!((schema.field(0).name().as_str(), schema.field(0).data_type()), ("count", &DataType::Int64));
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no table; `InvalidArgument` if a column does not exist, or is one of the key or the sort order;
    /// `AlreadyExists` if a new one does; `SchemaMismatch` if a type does not hold all values; in a transaction `Conflict` if
    /// it has written rows by key itself.
    pub fn alter(&self, alter: &Alter, options: &UpdateOptions) -> Result<Option<VersionInfo>> {
        let (path, computed) = (Path::new(&self.path)?, alter.computed());
        match &self.place {
            _ if !computed.is_empty() => self.fill_columns(alter, &ColumnValues::Computed(computed), options),
            Place::Store(store) => store.call()?.alter(&path, alter, options).map(Some),
            Place::Transaction(transaction) => transaction.change_tables(|store, open| {
                open.alter(store, &path, alter, options)?;
                Ok(None)
            }),
        }
    }

    /// Adds the columns that `frame` has beside those in `on`, or the table's key: each row has in them what the row of the frame has
    /// that is equal to it in those; a row without such a one has null. Rows of the frame that match none are left out. Two versions
    /// in one commit. The frame is held in memory, as in [`Table::merge`]; of large row groups only the new columns are written.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use drumlin::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    /// # use drumlin::Tables;
    /// # let store = drumlin::Store::memory()?;
    /// let rows = |name, n: Vec<i64>| RecordBatch::try_from_iter([
    ///     ("id", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef), (name, Arc::new(Int64Array::from(n)) as ArrayRef),
    /// ]).unwrap();
    /// store.write("t", rows("a", vec![10, 20]), &Default::default())?;
    /// store.table("t").add_columns_from(rows("b", vec![100, 200]), &["id".into()], &Default::default())?;
    /// assert_eq!(store.table("t").schema(&Default::default())?.fields().len(), 3);
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no table; `AlreadyExists` if it has one of the columns; `InvalidArgument` if two rows of the frame are
    /// equal in `on`, or there is nothing to add; otherwise as [`Table::merge`].
    pub fn add_columns_from<'a>(
        &self,
        frame: impl Into<Frame<'a>>,
        on: &[String],
        options: &UpdateOptions,
    ) -> Result<Option<VersionInfo>> {
        let path = Path::new(&self.path)?;
        let order = self.order()?;
        let on = if on.is_empty() { order.key } else { on.to_vec() };
        let source = self.place.store().collected(&path, frame.into(), options)?;
        let schema = source.schema();
        let added = |field: &&Arc<Field>| !on.contains(field.name());
        let new = schema.fields().iter().filter(added).map(|field| field.as_ref().clone().with_nullable(true));
        let new: Vec<Field> = new.collect();
        let set = new.iter().map(|field| (field.name().clone(), Expression::field("source", field.name()))).collect();
        let matched = vec![(None, WhenMatched::Update(set))];
        let merge = Merge { on, matched, ..Merge::default() };
        self.fill_columns(&nulls(new)?, &ColumnValues::Rows(source, merge), options)
    }

    /// Adds columns whose values `function` computes from batches of the rows that are there: of the columns `read`, or all, in the
    /// order of the table and its types. It returns the new columns by name, with as many rows. It is called by one thread, and
    /// may use the store; the rows come in any order, each once, and again if the table has changed in between. Two versions in
    /// one commit; of large row groups only the new columns are written. Memory: a few row groups of the columns that are read.
    ///
    /// # Errors
    /// What `function` returns; `NotFound` if there is no table; `AlreadyExists` if it has one of the columns; `InvalidArgument` if
    /// a column to be read does not exist, or is given twice; `SchemaMismatch` if the answer has other rows, columns or types; in a
    /// transaction `Conflict` if it has written rows by key itself.
    pub fn add_columns_by(
        &self,
        fields: Vec<Field>,
        read: Option<&[String]>,
        function: &ColumnFn<'_>,
        options: &UpdateOptions,
    ) -> Result<Option<VersionInfo>> {
        let schema = Arc::new(Schema::new(fields.clone()));
        let values = ColumnValues::Function(schema, read.map(<[String]>::to_vec), function);
        self.fill_columns(&nulls(fields)?, &values, options)
    }

    /// Adds columns and gives them values, in one commit.
    fn fill_columns(
        &self,
        alter: &Alter,
        values: &ColumnValues<'_>,
        options: &UpdateOptions,
    ) -> Result<Option<VersionInfo>> {
        let path = Path::new(&self.path)?;
        match &self.place {
            Place::Store(store) => {
                let mut work = |tx: &Transaction| {
                    let place = Place::Transaction(tx.clone());
                    Table::new(place, self.path.clone()).fill_columns(alter, values, options)
                };
                let (_, after) = store.while_reclaimed(|| store.transact_to(&mut work))?;
                store.newest_info(&after, &path).map(Some)
            }
            Place::Transaction(transaction) => transaction.change_tables(|store, open| {
                let tables = in_memory(open.draft.state(), &path)?;
                // Both versions, or none.
                open.with_rows_in_groups(store, &tables, MemoryScope::All, |open| {
                    open.alter(store, &path, alter, options)?;
                    match values {
                        ColumnValues::Computed(set) => {
                            let prepare = |state: &State| store.prepare_update(state, &path, set, None, options);
                            open.change_rows(store, &path, prepare).map(drop)?;
                        }
                        ColumnValues::Rows(source, merge) => {
                            let numbering = open.numbering(store);
                            let prepare = |state: &State| {
                                store.prepare_merge(state, &path, source.clone(), merge, true, options, &numbering)
                            };
                            open.change_rows(store, &path, prepare).map(drop)?;
                        }
                        ColumnValues::Function(schema, read, function) => {
                            let prepare = |state: &State| {
                                store.prepare_function(state, &path, (schema, read.as_deref(), *function), options)
                            };
                            open.change_rows(store, &path, prepare)?;
                        }
                    }
                    Ok(())
                })?;
                Ok(None)
            }),
        }
    }
}

/// New columns that are null in all rows.
fn nulls(fields: Vec<Field>) -> Result<Alter> {
    if fields.is_empty() {
        return Err(Error::invalid("there is no column to add; give at least one"));
    }
    Ok(Alter::Add(fields.into_iter().map(|field| NewColumn { field, fill: Fill::Null }).collect()))
}

impl Store {
    /// Writes the row groups of columns that a function computes, for the table at `path` as it is in `state`, which has no rows of
    /// it in memory.
    fn prepare_function(
        &self,
        state: &State,
        path: &Path,
        (answer, read, function): (&SchemaRef, Option<&[String]>, &ColumnFn<'_>),
        options: &UpdateOptions,
    ) -> Result<PreparedChange<()>> {
        let table = &table_at(state, path)?;
        let version = newest(self, state, table).version;
        let schema = &table.schema_of(version)?.0;
        let is_new = |name: &str| answer.index_of(name).is_ok();
        let read: Vec<usize> = match read {
            Some(names) if !names.is_empty() => find_requested(schema, names)?,
            Some(_) => Vec::new(),
            None => (0..schema.fields().len()).filter(|at| !is_new(schema.field(*at).name())).collect(),
        };
        let places = answer.fields().iter().map(|field| find_column(schema, field.name()));
        let places: Vec<usize> = places.collect::<Result<_>>()?;
        let reader = self.reader();
        let new_values = |group: &RowGroup, rows: &RoaringBitmap| -> Result<Vec<NewValues>> {
            let batch = changed_columns(reader, table, version, group, &read, rows, &[])?;
            let made = function(&batch)?;
            if made.num_rows() != batch.num_rows() {
                return Err(Error::schema_mismatch(format!(
                    "the function returned {} rows for {} rows; expected the same number",
                    made.num_rows(),
                    batch.num_rows()
                )));
            }
            let wanted = Arc::new(schema.project(&places)?);
            let made = conform(&made, &wanted).map_err(|e| e.context("the result of the function"))?;
            let values = |(column, values): (&usize, &ArrayRef)| NewValues {
                column: *column,
                rows: rows.clone(),
                values: values.clone(),
            };
            Ok(places.iter().zip(made.columns()).map(values).collect())
        };
        let (updated, kind) = (self.all_rows(state, table, path, &options.task.cancel)?, VersionKind::Update);
        let (deleted, inserted, in_place, revives, serial) = (Vec::new(), Vec::new(), true, None, true);
        let new_values = &new_values as _;
        let schema = table.with_computed(places.iter().copied())?;
        let changes = ChangedRows {
            table,
            version,
            kind,
            schema,
            updated,
            new_values,
            reads: read.iter().chain(&places).copied().collect(),
            deleted,
            inserted,
            in_place,
            revives,
            serial,
        };
        changes.prepare(self, path, options, ())
    }
}
