//! One table, in a store or in a transaction.

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::concat_batches;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use drumlin::{
    Alter, AsOf, Cancel, ConstraintNames, Error, Expression, Fill, Frame, IndexOptions, Merge, NewColumn, ReadOptions,
    Result, SchemaMode, TableOptions, Task, TimeToLive, UpdateOptions, WriteOptions,
};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call::{Detached, detached, on_caller, with_progress};
use crate::clause::{Clause, assignments, when_matched, when_not_matched};
use crate::constraints::{self, Known};
use crate::diff::diff;
use crate::figures::TableStat;
use crate::foreign::GivenSchema;
use crate::input::Input;
use crate::keyed::{self, Given, Keys, Lookup, Rows, defaults_of};
use crate::open_store::Store;
use crate::options::{When, compression_of, index_options, lookup_options, missing, schema_mode};
use crate::reports::{DropReport, Index, Version};
use crate::result::{Batches, Reading, Stream};
use crate::row_reports::{DeleteReport, MergeReport, RowsReport, UpdateReport};
use crate::schema::Schema;

/// The table at a path.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct Table {
    pub core: Detached<drumlin::Table>,
    /// For the garbage collector, which must see whose functions the table keeps alive.
    pub store: Py<Store>,
}

impl Table {
    pub fn new(core: drumlin::Table, store: Py<Store>) -> Self {
        Self { core: Detached::new(core), store }
    }

    /// Writes rows by `write`.
    fn write_by(
        &self,
        py: Python<'_>,
        options: WriteOptions,
        progress: Option<Py<PyAny>>,
        write: impl FnOnce(&drumlin::Table, &WriteOptions) -> Result<Option<drumlin::VersionInfo>> + Send,
    ) -> PyResult<Option<Version>> {
        let write = |task| write(&self.core, &WriteOptions { task, ..options });
        Ok(with_progress(py, progress, write)?.map(Version::from))
    }

    /// Changes columns.
    fn alter(&self, py: Python<'_>, alter: &Alter, metadata: Option<String>) -> PyResult<Option<Version>> {
        let change = |task: Task| self.core.alter(alter, &UpdateOptions { metadata, task });
        Ok(with_progress(py, None, change)?.map(Version::from))
    }

    /// Writes rows by key by `write`.
    fn write_by_key(
        &self,
        py: Python<'_>,
        rows: Rows<'_>,
        options: WriteOptions,
        progress: Option<Py<PyAny>>,
        write: impl FnOnce(&drumlin::Table, Frame<'static>, &WriteOptions) -> Result<drumlin::RowsReport> + Send,
    ) -> PyResult<RowsReport> {
        let rows =
            rows.given(options.schema == SchemaMode::Evolve, || detached(py, || self.core.schema(&AsOf::Newest)))?;
        let report = keyed::write(py, rows, options, progress, |rows, options| write(&self.core, rows, options))?;
        Ok(RowsReport::of(report, self.core.path()))
    }
}

/// All rows of a frame.
fn rows_of(frame: Input) -> Result<RecordBatch> {
    let (schema, batches) = match frame {
        Input::Scan(scan) => (scan.schema(), scan.collect::<Result<Vec<_>>>()?),
        Input::Foreign(foreign) => (foreign.schema.clone(), foreign.checked().collect::<Result<Vec<_>>>()?),
    };
    Ok(concat_batches(&schema, &batches)?)
}

#[pymethods]
impl Table {
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(&self.store)
    }

    #[getter]
    fn path(&self) -> &str {
        self.core.path()
    }

    /// The store, which stays alive as long as callbacks may be called.
    fn store(&self, py: Python<'_>) -> Py<Store> {
        self.store.clone_ref(py)
    }

    fn exists(&self, py: Python<'_>) -> PyResult<bool> {
        detached(py, || self.core.exists())
    }

    #[pyo3(signature = (schema, sort, key, compression=None))]
    fn create(
        &self,
        py: Python<'_>,
        schema: GivenSchema,
        sort: Vec<String>,
        key: Vec<String>,
        compression: Option<String>,
    ) -> PyResult<Option<Version>> {
        let schema = schema.into_inner();
        let options = TableOptions { sort, key, compression: compression_of(compression)? };
        Ok(detached(py, || self.core.create(schema, options))?.map(Version::from))
    }

    #[pyo3(signature = (frame, metadata=None, sort=None, compression=None, progress=None))]
    fn write(
        &self,
        py: Python<'_>,
        frame: Input,
        metadata: Option<String>,
        sort: Option<Vec<String>>,
        compression: Option<String>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Option<Version>> {
        let compression = compression_of(compression)?;
        let options = WriteOptions { metadata, sort, compression, ..WriteOptions::default() };
        self.write_by(py, options, progress, |table, options| table.write(frame.frame(&options.task.cancel), options))
    }

    #[pyo3(signature = (frame, metadata=None, evolve=false, progress=None))]
    fn append(
        &self,
        py: Python<'_>,
        frame: Input,
        metadata: Option<String>,
        evolve: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Option<Version>> {
        let options = WriteOptions { metadata, schema: schema_mode(evolve), ..WriteOptions::default() };
        self.write_by(py, options, progress, |table, options| table.append(frame.frame(&options.task.cancel), options))
    }

    #[pyo3(signature = (frame, filter=None, metadata=None, evolve=false, progress=None))]
    fn replace(
        &self,
        py: Python<'_>,
        frame: Input,
        filter: Option<&str>,
        metadata: Option<String>,
        evolve: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Option<Version>> {
        let options = WriteOptions { metadata, schema: schema_mode(evolve), ..WriteOptions::default() };
        self.write_by(py, options, progress, |table, options| match filter {
            Some(filter) => table.replace_where(frame.frame(&options.task.cancel), filter, options),
            None => table.replace(frame.frame(&options.task.cancel), options),
        })
    }

    #[pyo3(signature = (set, filter, metadata=None, progress=None))]
    fn update(
        &self,
        py: Python<'_>,
        set: Vec<(String, String)>,
        filter: Option<&str>,
        metadata: Option<String>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<UpdateReport> {
        let update = |task| self.core.update(&assignments(set)?, filter, &UpdateOptions { metadata, task });
        Ok(with_progress(py, progress, update)?.into())
    }

    /// Each clause has a condition, what follows from it (`update`, `update_all`, `delete`, `insert` or `insert_all`), and the
    /// columns that are set.
    #[pyo3(signature = (source, on, matched, not_matched, by_source, nulls_equal=false, metadata=None, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn merge(
        &self,
        py: Python<'_>,
        source: Input,
        on: Vec<String>,
        matched: Vec<Clause>,
        not_matched: Vec<Clause>,
        by_source: Vec<Clause>,
        nulls_equal: bool,
        metadata: Option<String>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<MergeReport> {
        let merge = |task: Task| {
            let merge = Merge {
                on,
                nulls_equal,
                matched: matched.into_iter().map(when_matched).collect::<Result<_>>()?,
                not_matched: not_matched.into_iter().map(when_not_matched).collect::<Result<_>>()?,
                not_matched_by_source: by_source.into_iter().map(when_matched).collect::<Result<_>>()?,
            };
            self.core.merge(source.frame(&task.cancel), &merge, &UpdateOptions { metadata, task })
        };
        Ok(with_progress(py, progress, merge)?.into())
    }

    #[pyo3(signature = (filter, metadata=None, progress=None))]
    fn delete(
        &self,
        py: Python<'_>,
        filter: &str,
        metadata: Option<String>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<DeleteReport> {
        let delete = |task| self.core.delete(filter, &UpdateOptions { metadata, task });
        Ok(with_progress(py, progress, delete)?.into())
    }

    #[pyo3(signature = (rows, metadata=None, evolve=false, progress=None, returning=None))]
    fn upsert(
        &self,
        py: Python<'_>,
        rows: Rows<'_>,
        metadata: Option<String>,
        evolve: bool,
        progress: Option<Py<PyAny>>,
        returning: Option<Vec<String>>,
    ) -> PyResult<RowsReport> {
        let write = |table: &drumlin::Table, rows: Frame<'static>, options: &WriteOptions| table.upsert(rows, options);
        let options = WriteOptions { metadata, schema: schema_mode(evolve), returning, ..WriteOptions::default() };
        self.write_by_key(py, rows, options, progress, write)
    }

    #[pyo3(signature = (rows, metadata=None, evolve=false, progress=None, returning=None))]
    fn insert(
        &self,
        py: Python<'_>,
        rows: Rows<'_>,
        metadata: Option<String>,
        evolve: bool,
        progress: Option<Py<PyAny>>,
        returning: Option<Vec<String>>,
    ) -> PyResult<RowsReport> {
        let write = |table: &drumlin::Table, rows: Frame<'static>, options: &WriteOptions| table.insert(rows, options);
        let options = WriteOptions { metadata, schema: schema_mode(evolve), returning, ..WriteOptions::default() };
        self.write_by_key(py, rows, options, progress, write)
    }

    /// Upserts, or inserts, parts that have different columns.
    #[pyo3(signature = (parts, insert=false, metadata=None, evolve=false, progress=None, returning=None))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn write_parts(
        &self,
        py: Python<'_>,
        parts: Vec<Rows<'_>>,
        insert: bool,
        metadata: Option<String>,
        evolve: bool,
        progress: Option<Py<PyAny>>,
        returning: Option<Vec<String>>,
    ) -> PyResult<RowsReport> {
        let own = detached(py, || self.core.schema(&AsOf::Newest))?;
        let given = parts.into_iter().map(|part| part.given(evolve, || Ok(own.clone())));
        let given: Vec<Given> = given.collect::<PyResult<_>>()?;
        let schema = schema_mode(evolve);
        let write = if insert { drumlin::Table::insert_batches } else { drumlin::Table::upsert_batches };
        let report = with_progress(py, progress, |task: Task| {
            let batches = given.into_iter().map(|part| part.into_batch(&task.cancel)).collect::<Result<Vec<_>>>()?;
            write(&self.core, &batches, &WriteOptions { metadata, schema, task, returning, ..WriteOptions::default() })
        })?;
        Ok(RowsReport::of(report, self.core.path()))
    }

    /// Adds to columns of rows: `rows` have the key and what is added.
    #[pyo3(signature = (rows, metadata=None, returning=None))]
    fn increment(
        &self,
        py: Python<'_>,
        rows: Rows<'_>,
        metadata: Option<String>,
        returning: Option<Vec<String>>,
    ) -> PyResult<RowsReport> {
        let given = rows.given(false, || detached(py, || self.core.schema(&AsOf::Newest)))?;
        let options = WriteOptions { metadata, returning, ..WriteOptions::default() };
        let add = || self.core.increment(&given.into_batch(&Cancel::default())?, &options);
        Ok(RowsReport::of(detached(py, add)?, self.core.path()))
    }

    /// Upserts `rows` if the rows `expected` are there.
    #[pyo3(signature = (expected, rows, metadata=None, returning=None))]
    fn compare_and_set(
        &self,
        py: Python<'_>,
        expected: Rows<'_>,
        rows: Rows<'_>,
        metadata: Option<String>,
        returning: Option<Vec<String>>,
    ) -> PyResult<RowsReport> {
        let own = detached(py, || self.core.schema(&AsOf::Newest))?;
        let (expected, rows) = (expected.given(false, || Ok(own.clone()))?, rows.given(false, || Ok(own))?);
        let options = WriteOptions { metadata, returning, ..WriteOptions::default() };
        let set = || {
            let cancel = Cancel::default();
            self.core.compare_and_set(&expected.into_batch(&cancel)?, &rows.into_batch(&cancel)?, &options)
        };
        Ok(RowsReport::of(detached(py, set)?, self.core.path()))
    }

    /// `defaults` has the values of the columns that have one.
    #[pyo3(signature = (columns, defaults=None, computed=None, metadata=None, progress=None))]
    fn add_columns(
        &self,
        py: Python<'_>,
        columns: GivenSchema,
        defaults: Option<Bound<'_, PyDict>>,
        computed: Option<Vec<(String, String)>>,
        metadata: Option<String>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Option<Version>> {
        let schema = columns.into_inner();
        let defaults = defaults.map(|values| defaults_of(&values, &schema)).transpose()?;
        let defaults: HashMap<String, ArrayRef> = defaults.into_iter().flatten().collect();
        let add = |task| {
            let computed: HashMap<String, Expression> =
                assignments(computed.unwrap_or_default())?.into_iter().collect();
            let new = schema.fields().iter().map(|field| {
                let fill = match (defaults.get(field.name()), computed.get(field.name())) {
                    (_, Some(expression)) => Fill::Computed(expression.clone()),
                    (Some(value), None) => Fill::Default(value.clone()),
                    (None, None) => Fill::Null,
                };
                NewColumn { field: field.as_ref().clone(), fill }
            });
            self.core.alter(&Alter::Add(new.collect()), &UpdateOptions { metadata, task })
        };
        Ok(with_progress(py, progress, add)?.map(Version::from))
    }

    /// Columns of a frame, by rows that are equal to those of the table.
    fn join_columns(
        &self,
        py: Python<'_>,
        rows: Input,
        on: Vec<String>,
        metadata: Option<String>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Option<Version>> {
        let add =
            |task: Task| self.core.add_columns_from(rows.frame(&task.cancel), &on, &UpdateOptions { metadata, task });
        Ok(with_progress(py, progress, add)?.map(Version::from))
    }

    /// Columns that a function computes from batches; it is called by one thread, outside the pool.
    fn map_columns(
        &self,
        py: Python<'_>,
        columns: GivenSchema,
        function: Py<PyAny>,
        read: Option<Vec<String>>,
        metadata: Option<String>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Option<Version>> {
        let fields = columns.into_inner().fields().iter().map(|field| field.as_ref().clone()).collect();
        let (raised, function): (Mutex<Option<PyErr>>, _) = (Mutex::default(), Arc::new(function));
        let compute = |batch: &RecordBatch| -> Result<RecordBatch> {
            let (function, batch) = (function.clone(), batch.clone());
            // It may wait.
            let made = on_caller(move || {
                Python::attach(|py| function.call1(py, (Batches::from(batch),))?.extract::<Input>(py))
            });
            let told = |error| {
                *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                Err(Error::cancelled("the function raised an exception"))
            };
            made.map_or_else(told, rows_of)
        };
        let add = |task| self.core.add_columns_by(fields, read.as_deref(), &compute, &UpdateOptions { metadata, task });
        let added = with_progress(py, progress, add);
        match raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => Ok(added?.map(Version::from)),
        }
    }

    #[pyo3(signature = (columns, metadata=None))]
    fn drop_columns(
        &self,
        py: Python<'_>,
        columns: Vec<String>,
        metadata: Option<String>,
    ) -> PyResult<Option<Version>> {
        self.alter(py, &Alter::Drop(columns), metadata)
    }

    #[pyo3(signature = (names, metadata=None))]
    fn rename_columns(
        &self,
        py: Python<'_>,
        names: Vec<(String, String)>,
        metadata: Option<String>,
    ) -> PyResult<Option<Version>> {
        self.alter(py, &Alter::Rename(names), metadata)
    }

    #[pyo3(signature = (types, metadata=None))]
    fn widen(&self, py: Python<'_>, types: GivenSchema, metadata: Option<String>) -> PyResult<Option<Version>> {
        let types = types.into_inner();
        let types = types.fields().iter().map(|field| (field.name().clone(), field.data_type().clone()));
        self.alter(py, &Alter::Widen(types.collect()), metadata)
    }

    fn add_constraints(
        &self,
        py: Python<'_>,
        checks: Vec<(String, String)>,
        not_null: Vec<String>,
        defaults: Option<Bound<'_, PyDict>>,
        made: Vec<(String, String)>,
        metadata: Option<String>,
    ) -> PyResult<Option<Version>> {
        let constraints = constraints::given(py, &self.core, (checks, not_null, defaults, made))?;
        self.alter(py, &Alter::AddConstraints(constraints), metadata)
    }

    fn drop_constraints(
        &self,
        py: Python<'_>,
        checks: Vec<String>,
        not_null: Vec<String>,
        defaults: Vec<String>,
        metadata: Option<String>,
    ) -> PyResult<Option<Version>> {
        self.alter(py, &Alter::DropConstraints(ConstraintNames { checks, not_null, defaults }), metadata)
    }

    /// Checks, columns that take no nulls, and defaults.
    fn constraints<'py>(&self, py: Python<'py>, as_of: Option<When>) -> PyResult<Known<'py>> {
        constraints::known(py, &self.core, &crate::options::as_of(as_of))
    }

    /// `after` in microseconds.
    #[pyo3(signature = (column, after, metadata=None))]
    fn set_ttl(
        &self,
        py: Python<'_>,
        column: String,
        after: i64,
        metadata: Option<String>,
    ) -> PyResult<Option<Version>> {
        self.alter(py, &Alter::SetTtl(TimeToLive { column, after_micros: after }), metadata)
    }

    #[pyo3(signature = (metadata=None))]
    fn drop_ttl(&self, py: Python<'_>, metadata: Option<String>) -> PyResult<Option<Version>> {
        self.alter(py, &Alter::DropTtl, metadata)
    }

    /// The column, and how many microseconds after its times rows expire.
    fn ttl(&self, py: Python<'_>, as_of: Option<When>) -> PyResult<Option<(String, i64)>> {
        let when = crate::options::as_of(as_of);
        let ttl = detached(py, || self.core.ttl(&when))?;
        Ok(ttl.map(|ttl| (ttl.column, ttl.after_micros)))
    }

    fn create_index(
        &self,
        py: Python<'_>,
        name: &str,
        columns: Vec<String>,
        condition: Option<&str>,
        flags: (bool, bool),
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let (columns, options) = index_options(&columns, condition, flags)?;
        with_progress(py, progress, |task| self.core.create_index(name, &columns, &IndexOptions { task, ..options }))
    }

    fn drop_index(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        detached(py, || self.core.drop_index(name))
    }

    fn rebuild_index(&self, py: Python<'_>, name: &str, progress: Option<Py<PyAny>>) -> PyResult<()> {
        with_progress(py, progress, |task| self.core.rebuild_index(name, &task))
    }

    fn indexes(&self, py: Python<'_>) -> PyResult<Vec<Index>> {
        detached(py, || Ok(self.core.indexes()?.into_iter().map(Index::from).collect()))
    }

    #[pyo3(signature = (keys, metadata=None, progress=None, returning=None))]
    fn delete_keys(
        &self,
        py: Python<'_>,
        keys: Keys<'_>,
        metadata: Option<String>,
        progress: Option<Py<PyAny>>,
        returning: Option<Vec<String>>,
    ) -> PyResult<RowsReport> {
        let keys = keys.given(|| Ok(detached(py, || self.core.view(&AsOf::Newest))?.key_schema().clone()))?;
        let options = WriteOptions { metadata, returning, ..WriteOptions::default() };
        let delete = |keys: Frame<'static>, options: &WriteOptions| self.core.delete_keys(keys, options);
        Ok(RowsReport::of(keyed::write(py, keys, options, progress, delete)?, self.core.path()))
    }

    #[pyo3(signature = (key, as_of=None, columns=None, on=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Bound<'py, PyAny>,
        as_of: Option<When>,
        columns: Option<Vec<String>>,
        on: Option<Vec<String>>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let options = lookup_options(as_of, columns);
        if let Some(on) = on {
            return keyed::look_up_by(py, &self.core, on, Keys::one(key), options)?.row(py, 0);
        }
        let view = detached(py, || self.core.view(&options.as_of))?;
        keyed::look_up_in(py, &view, Keys::one(key), options)?.row(py, 0)
    }

    #[pyo3(signature = (keys, as_of=None, columns=None, on=None))]
    fn get_many(
        &self,
        py: Python<'_>,
        keys: Keys<'_>,
        as_of: Option<When>,
        columns: Option<Vec<String>>,
        on: Option<Vec<String>>,
    ) -> PyResult<Lookup> {
        let options = lookup_options(as_of, columns);
        if let Some(on) = on {
            return keyed::look_up_by(py, &self.core, on, keys, options);
        }
        let view = detached(py, || self.core.view(&options.as_of))?;
        keyed::look_up_in(py, &view, keys, options)
    }

    #[pyo3(signature = (as_of, columns, filter, offset, limit, tail, native))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn read(
        &self,
        py: Python<'_>,
        as_of: Option<When>,
        columns: Option<Vec<String>>,
        filter: Option<&str>,
        offset: u64,
        limit: Option<u64>,
        tail: Option<u64>,
        native: bool,
    ) -> PyResult<Reading> {
        let as_of = crate::options::as_of(as_of);
        let scan = crate::options::scan_options(columns, filter, offset, limit, tail, native)?;
        Reading::of(py, drumlin::Table::clone(&self.core), &self.store, ReadOptions::of(as_of, scan))
    }

    #[pyo3(signature = (as_of=None))]
    fn schema(&self, py: Python<'_>, as_of: Option<When>) -> PyResult<Schema> {
        let when = crate::options::as_of(as_of);
        Ok(Schema(detached(py, || self.core.schema(&when))?))
    }

    /// The sort columns and the key.
    fn order(&self, py: Python<'_>) -> PyResult<(Vec<String>, Vec<String>)> {
        let TableOptions { sort, key, .. } = detached(py, || self.core.order())?;
        Ok((sort, key))
    }

    /// The rows in which versions differ, as a stream.
    fn diff(
        &self,
        py: Python<'_>,
        since: When,
        until: Option<When>,
        columns: Option<Vec<String>>,
        each_version: bool,
    ) -> PyResult<Stream> {
        diff(py, &self.core, since, until, columns, each_version)
    }

    fn versions(&self, py: Python<'_>) -> PyResult<Vec<Version>> {
        Ok(detached(py, || self.core.versions())?.into_iter().map(Version::from).collect())
    }

    #[pyo3(signature = (metadata, as_of=None))]
    fn set_metadata(&self, py: Python<'_>, metadata: Option<String>, as_of: Option<When>) -> PyResult<()> {
        let as_of = crate::options::as_of(as_of);
        detached(py, || self.core.set_metadata(&as_of, metadata))
    }

    fn stat(&self, py: Python<'_>) -> PyResult<TableStat> {
        Ok(detached(py, || self.core.stat())?.into())
    }

    fn drop(&self, py: Python<'_>, missing_ok: bool) -> PyResult<DropReport> {
        Ok(detached(py, || drumlin::Table::drop(&self.core, missing(missing_ok)))?.into())
    }
}
