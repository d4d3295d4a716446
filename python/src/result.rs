//! Results of reads: a reading that can be scanned any number of times, a stream of batches, or all batches at once.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ffi::FFI_ArrowArray;
use arrow::ffi_stream::FFI_ArrowArrayStream;
use drumlin::embedding::caught;
use drumlin::{Cancel, Error, Filter, ReadOptions, Result, Scan, ScanOptions, Seq, VersionKind, View};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyIterator, PyList};

use crate::call::{Detached, detached, long, unlocked};
use crate::errors::raise;
use crate::open_store::Store;
use crate::python_value::to_python;
use crate::schema::{Schema, capsule};
use crate::value::to_array;

/// A forked child has none of the threads that a scan needs.
fn check_process(process: u32) -> Result<()> {
    if process == std::process::id() {
        return Ok(());
    }
    Err(Error::closed(format!("the result was read in process {process}; a forked process must open the store again")))
}

/// A scan, and the flag that stops it.
pub struct Prepared<S = Box<dyn Batched>> {
    pub scan: S,
    pub cancel: Cancel,
}

/// Batches as they are read.
pub trait Batched: Iterator<Item = Result<RecordBatch>> + Send {}

impl<T: Iterator<Item = Result<RecordBatch>> + Send> Batched for T {}

/// Certain columns and rows of one version of a table, not yet read.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct Reading {
    table: Detached<drumlin::Table>,
    /// For the garbage collector, which must see whose functions the table keeps alive.
    store: Py<Store>,
    /// The number of table changes that its transaction had begun.
    table_changes: u64,
    options: ReadOptions,
    schema: SchemaRef,
    /// The last commit that the reading sees.
    seq: Seq,
    /// What it reads, so that it can be found again; kept alive if it shows rows in memory that are in no version.
    view: View,
    /// Prepared when the reading was made: it holds the state of that instant until it is used.
    first: Mutex<Option<Prepared<Scan>>>,
    process: u32,
}

impl Reading {
    /// A reading of one table.
    pub fn of(py: Python<'_>, table: drumlin::Table, store: &Py<Store>, options: ReadOptions) -> PyResult<Self> {
        let scan = detached(py, || table.read(&options))?;
        Ok(Self::new(table, store.clone_ref(py), options, scan))
    }

    /// A reading that begins with `scan`.
    pub fn new(table: drumlin::Table, store: Py<Store>, options: ReadOptions, scan: Scan) -> Self {
        let (schema, table_changes, seq) = (scan.schema(), table.table_changes(), scan.view().read_point.seq);
        let mut view = scan.view().clone();
        if table.is_in_store() && !view.shows_unnumbered_rows() {
            view.pin = None;
        }
        // Each scan is stopped separately.
        let (mut scan, cancel) = (scan, Cancel::default());
        scan.stop_by(cancel.clone());
        let (table, first) = (Detached::new(table), Mutex::new(Some(Prepared { scan, cancel })));
        Self { table, store, table_changes, options, schema, seq, view, first, process: std::process::id() }
    }

    /// A scan of the reading's columns, or of `columns`.
    pub fn scan(&self, py: Python<'_>, columns: Option<Vec<String>>) -> PyResult<Prepared<Scan>> {
        let mut options = self.options.scan();
        if columns.is_some() {
            options.columns = columns;
        } else {
            check_process(self.process).map_err(raise)?;
            detached(py, || self.table.check_not_aborted())?;
            if let Some(first) = self.first.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return Ok(first);
            }
        }
        self.scan_again(py, options)
    }

    fn scan_again(&self, py: Python<'_>, options: ScanOptions) -> PyResult<Prepared<Scan>> {
        check_process(self.process).map_err(raise)?;
        detached(py, || self.table.check_not_aborted())?;
        let cancel = Cancel::default();
        let name = Some(self.table.path().to_owned());
        let options = ScanOptions { cancel: cancel.clone(), name, ..options };
        let scan = detached(py, || self.table.read_again(&self.view, &options, self.table_changes))?;
        Ok(Prepared { scan, cancel })
    }

    /// The number of rows that the filter keeps, without the limit.
    fn count_unbounded(&self, py: Python<'_>) -> PyResult<u64> {
        if let Some(rows) = self.rows_of_version() {
            return Ok(rows);
        }
        let filter = self.options.filter.clone();
        let Prepared { scan, cancel } = self.scan_again(py, ScanOptions { filter, ..ScanOptions::default() })?;
        long(py, &[cancel], || scan.count())
    }

    /// The number of rows without the limit, if nothing need be read to know it.
    fn rows_of_version(&self) -> Option<u64> {
        if self.options.filter.is_some() || self.view.shows_unnumbered_rows() {
            return None;
        }
        Some(self.view.table.version(self.view.read_point.version)?.rows)
    }

    /// What it shows as a data set of one table, and the filter. With a limit, it is none.
    pub fn as_dataset(&self, py: Python<'_>) -> PyResult<(drumlin::Dataset, Option<String>)> {
        if self.is_bounded() {
            return Err(raise(Error::invalid(
                "groups come before limit, head and tail: rows of a group have no order",
            )));
        }
        let core = detached(py, || drumlin::Dataset::of_view(&self.table, &self.view, self.table_changes))?;
        Ok((core, self.options.filter.as_ref().map(Filter::to_string)))
    }

    /// The store of the table.
    pub fn store(&self, py: Python<'_>) -> Py<Store> {
        self.store.clone_ref(py)
    }

    /// Whether only some of the rows are read that the filter keeps.
    fn is_bounded(&self) -> bool {
        let asked = &self.options;
        asked.offset > 0 || asked.limit.is_some() || asked.tail.is_some()
    }

    /// `rows`, of which the limit or the tail is taken.
    fn bounded(&self, rows: u64) -> u64 {
        let asked = &self.options;
        let rows = rows.saturating_sub(asked.offset);
        asked.limit.into_iter().chain(asked.tail).fold(rows, u64::min)
    }
}

#[pymethods]
impl Reading {
    /// The schema of the batches.
    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.schema.clone())
    }

    /// The number of the newest commit that the reading sees.
    #[getter]
    fn seq(&self) -> u64 {
        self.seq.0
    }

    /// Whether the version has exactly the rows of one write.
    #[getter]
    fn written_whole(&self) -> bool {
        let version = self.view.table.version(self.view.read_point.version);
        version.is_some_and(|version| version.kind == VersionKind::Write) && !self.view.shows_unnumbered_rows()
    }

    /// The number of its version and the version's metadata as JSON text; None if its transaction made the version.
    #[getter]
    fn version(&self) -> Option<(u64, Option<&str>)> {
        let record = self.table.numbered(&self.view)?;
        Some((record.version.0, record.metadata.as_deref()))
    }

    /// The number of its rows if it is known without reading: without a filter, and if no rows are in memory.
    #[getter]
    fn known_rows(&self) -> Option<u64> {
        self.rows_of_version().map(|rows| self.bounded(rows))
    }

    /// The number of its rows.
    fn count_rows(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.bounded(self.count_unbounded(py)?))
    }

    /// At most `rows` of the first rows, in `columns` if given. None if more would have to be read: the last rows that
    /// a filter keeps are found from the end.
    #[pyo3(signature = (rows, columns=None))]
    fn head(&self, py: Python<'_>, rows: u64, columns: Option<Vec<String>>) -> PyResult<Option<Batches>> {
        let mut options = self.options.scan();
        options.columns = columns.or(options.columns);
        match options.tail {
            Some(tail) if tail <= rows => {}
            Some(_) if options.filter.is_some() => return Ok(None),
            Some(tail) => {
                options.offset = self.count_unbounded(py)?.saturating_sub(tail);
                (options.tail, options.limit) = (None, Some(rows));
            }
            None => options.limit = Some(options.limit.map_or(rows, |limit| limit.min(rows))),
        }
        let Prepared { scan, cancel } = self.scan_again(py, options)?;
        let schema = scan.schema();
        let batches = long(py, &[cancel], || scan.collect())?;
        Ok(Some(Batches { schema, batches }))
    }

    /// The same with fewer columns or rows: those that a filter keeps, and of these the first or the last.
    #[pyo3(signature = (columns=None, filter=None, first=None, last=None))]
    fn narrowed(
        &self,
        py: Python<'_>,
        columns: Option<Vec<String>>,
        filter: Option<&str>,
        first: Option<u64>,
        last: Option<u64>,
    ) -> PyResult<Self> {
        let mut options = self.options.clone();
        let asked = &mut options;
        asked.columns = columns.or(asked.columns.take());
        if let Some(text) = filter {
            if self.is_bounded() {
                return Err(raise(Error::invalid(
                    "where comes before limit, head and tail: it decides which rows are the first and the last",
                )));
            }
            let more = Filter::parse(text).map_err(raise)?;
            asked.filter = Some(match asked.filter.take() {
                Some(filter) => filter.and(more),
                None => more,
            });
        }
        if let Some(first) = first {
            if let Some(tail) = asked.tail.take() {
                asked.offset = self.count_unbounded(py)?.saturating_sub(tail).max(asked.offset);
                asked.limit = Some(tail);
            }
            asked.limit = Some(asked.limit.map_or(first, |limit| limit.min(first)));
        }
        if let Some(last) = last {
            if asked.limit.is_some() || asked.offset > 0 {
                let rows = self.bounded(self.count_unbounded(py)?);
                asked.offset += rows.saturating_sub(last);
                asked.limit = Some(rows.min(last));
            } else {
                asked.tail = Some(asked.tail.map_or(last, |tail| tail.min(last)));
            }
        }
        let scan = self.scan_again(py, options.scan())?.scan;
        let table = detached(py, || Ok(self.table.clone()))?;
        Ok(Self::new(table, self.store.clone_ref(py), options, scan))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(&self.store)
    }

    /// Scans the reading, batch by batch.
    #[pyo3(signature = (columns=None))]
    fn stream(&self, py: Python<'_>, columns: Option<Vec<String>>) -> PyResult<Stream> {
        let Prepared { scan, cancel } = self.scan(py, columns)?;
        Ok(Stream::new(scan.schema(), Prepared { scan: Box::new(scan), cancel }))
    }

    /// Scans the reading, all at once and with all threads.
    #[pyo3(signature = (columns=None))]
    fn collect(&self, py: Python<'_>, columns: Option<Vec<String>>) -> PyResult<Batches> {
        let Prepared { scan, cancel } = self.scan(py, columns)?;
        let schema = scan.schema();
        let batches = long(py, &[cancel], || scan.collect())?;
        Ok(Batches { schema, batches })
    }
}

/// A running scan: its batches are returned one by one, here or to the consumer of its Arrow stream.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct Stream {
    schema: SchemaRef,
    /// `None` once it was handed over.
    prepared: Mutex<Option<Prepared>>,
    process: u32,
}

impl Stream {
    /// A stream of batches of `schema`.
    pub fn new(schema: SchemaRef, prepared: Prepared) -> Self {
        Self { schema, prepared: Mutex::new(Some(prepared)), process: std::process::id() }
    }
}

#[pymethods]
impl Stream {
    /// The schema of the batches.
    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.schema.clone())
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        check_process(self.process).map_err(raise)?;
        // Taken out while it runs, so that a second thread gets an error instead of waiting.
        let taken = self.prepared.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Prepared { mut scan, cancel }) = taken else {
            return Err(raise(Error::invalid(
                "the stream is in use, or was already handed over; read again to get another",
            )));
        };
        let next = long(py, std::slice::from_ref(&cancel), || scan.next().transpose());
        *self.prepared.lock().unwrap_or_else(PoisonError::into_inner) = Some(Prepared { scan, cancel });
        Ok(next?.map(Batch))
    }

    /// The rest of the stream; it can be taken once. The types are fixed: `requested_schema` is ignored.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let taken = self.prepared.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Prepared { scan, .. }) = taken else {
            return Err(raise(Error::invalid(
                "the stream is in use, or was already handed over; read again to get another",
            )));
        };
        stream_capsule(py, Box::new(Exported { schema: self.schema.clone(), scan, process: self.process }))
    }
}

fn stream_capsule(py: Python<'_>, reader: Box<dyn RecordBatchReader + Send>) -> PyResult<Bound<'_, PyCapsule>> {
    // Checked here, because within the stream's own functions a schema that the interface cannot carry would end the
    // process.
    capsule(py, &*reader.schema())?;
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
}

/// A scan behind Arrow's C interface, where nothing may unwind and no message may hold a NUL.
struct Exported {
    schema: SchemaRef,
    scan: Box<dyn Batched>,
    process: u32,
}

impl Iterator for Exported {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = || {
            check_process(self.process)?;
            // A scan may read the log again, and wait for a turn in which a projection's function needs the lock.
            unlocked(|| self.scan.next().transpose())
        };
        let next = caught(next);
        // Whose kind it is tells only its text.
        let told = |e: Error| format!("{:?}: {e}", e.kind()).replace('\0', "\\0");
        next.map_err(|e| ArrowError::ExternalError(told(e).into())).transpose()
    }
}

impl RecordBatchReader for Exported {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// All batches of a reading, in memory. They can also be used as a reading.
#[pyclass(frozen, module = "drumlin._drumlin")]
#[derive(Clone)]
pub struct Batches {
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
}

impl From<RecordBatch> for Batches {
    fn from(batch: RecordBatch) -> Self {
        Self { schema: batch.schema(), batches: vec![batch] }
    }
}

/// Rows that a write returns.
#[derive(Clone)]
pub struct Returned(Batches, String);

impl PartialEq for Returned {
    fn eq(&self, other: &Self) -> bool {
        self.0.schema == other.0.schema && self.0.batches == other.0.batches
    }
}

impl<'py> IntoPyObject<'py> for Returned {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("drumlin._results.result")?.call_method1("returned", (self.0, self.1))
    }
}

impl Returned {
    /// Of the table at `path`.
    pub fn of(rows: RecordBatch, path: &str) -> Self {
        Self(rows.into(), path.to_owned())
    }
}

#[pymethods]
impl Batches {
    /// Columns of Python values, in the types of a schema.
    #[staticmethod]
    fn of(schema: &Schema, columns: Vec<Vec<Bound<'_, PyAny>>>) -> PyResult<Self> {
        let fields = schema.0.fields().iter();
        let arrays = fields
            .zip(&columns)
            .map(|(field, values)| to_array(values, field.data_type(), &format!("column '{}'", field.name())));
        let arrays = arrays.collect::<PyResult<Vec<_>>>()?;
        let batch = RecordBatch::try_new(schema.0.clone(), arrays)
            .map_err(|e| raise(Error::invalid(format!("the columns are no table: {e}"))))?;
        Ok(batch.into())
    }

    /// All rows as dicts of Python values.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let mut rows = Vec::with_capacity(self.num_rows());
        for batch in &self.batches {
            for at in 0..batch.num_rows() {
                let row = PyDict::new(py);
                for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
                    row.set_item(field.name(), to_python(py, field, column, at)?)?;
                }
                rows.push(row);
            }
        }
        Ok(rows)
    }

    /// The schema of the batches.
    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.schema.clone())
    }

    /// The batches with only those of `columns` that exist; without `columns`, with all.
    #[pyo3(signature = (columns=None))]
    fn collect(&self, columns: Option<Vec<String>>) -> PyResult<Self> {
        let Some(columns) = columns else { return Ok(self.clone()) };
        let places: Vec<usize> = columns.iter().filter_map(|name| self.schema.index_of(name).ok()).collect();
        let projected = || -> Result<Self> {
            let batches = self.batches.iter().map(|batch| Ok(batch.project(&places)?)).collect::<Result<_>>()?;
            Ok(Self { schema: Arc::new(self.schema.project(&places)?), batches })
        };
        projected().map_err(raise)
    }

    /// The same with fewer columns, or only the first or the last rows. What is computed already takes no filter.
    #[pyo3(signature = (columns=None, filter=None, first=None, last=None))]
    fn narrowed(
        &self,
        columns: Option<Vec<String>>,
        filter: Option<&str>,
        first: Option<usize>,
        last: Option<usize>,
    ) -> PyResult<Self> {
        if filter.is_some() {
            return Err(raise(Error::invalid(
                "where is for rows that are stored; give it before group_by, or filter the frame: .to_pandas()",
            )));
        }
        let mut made = self.collect(columns)?;
        let rows = made.num_rows();
        let len = first.unwrap_or(rows).min(last.unwrap_or(rows)).min(rows);
        let (mut skip, mut left) = (if last.is_some() { rows - len } else { 0 }, len);
        for batch in &mut made.batches {
            let start = skip.min(batch.num_rows());
            let taken = left.min(batch.num_rows() - start);
            *batch = batch.slice(start, taken);
            (skip, left) = (skip - start, left - taken);
        }
        Ok(made)
    }

    /// The batches themselves.
    fn stream(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(
            py,
            self.batches.iter().cloned().map(|batch| Batch(batch).into_pyobject(py)).collect::<PyResult<Vec<_>>>()?,
        )?
        .try_iter()
    }

    /// The number of rows in all batches.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule(py, &*self.schema)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        stream_capsule(py, Box::new(RecordBatchIterator::new(batches, self.schema.clone())))
    }
}

/// One batch of a result. `pyarrow.record_batch(...)` and anything that supports `__arrow_c_array__` accept it.
#[pyclass(frozen, module = "drumlin")]
pub struct Batch(RecordBatch);

#[pymethods]
impl Batch {
    /// The number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    /// The schema of the batch.
    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.0.schema())
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule(py, &*self.0.schema())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        let rows: Arc<dyn Array> = Arc::new(StructArray::from(self.0.clone()));
        let array = PyCapsule::new_with_value(py, FFI_ArrowArray::new(&rows.to_data()), c"arrow_array")?;
        Ok((capsule(py, &*self.0.schema())?, array))
    }

    fn __repr__(&self) -> String {
        format!("Batch({} rows, {} columns)", self.0.num_rows(), self.0.num_columns())
    }
}
