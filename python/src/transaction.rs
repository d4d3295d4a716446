//! Transactions. What is done to single nodes keeps the interpreter lock, since it takes less than to let go of it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::{ArrayRef, NullArray, RecordBatch};
use arrow::datatypes::SchemaRef;
use drumlin::base::caught;
use drumlin::store::{self, AsOf, LookupOptions, ReadOptions, TableOptions, UpdateOptions, WriteOptions};
use drumlin::table::Scan;
use drumlin::{Error, ErrorKind, Result};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyDict;

use crate::call::{detached, drop_detached, with_progress};
use crate::errors::raise;
use crate::foreign::GivenSchema;
use crate::input::{Input, to_frames};
use crate::keyed::{self, Keys, Lookup, Rows};
use crate::node::{Change, Changes, Node, Walk, nodes_by_path, payloads_by_path};
use crate::options::{Versions, When, lookup_options, missing, scan_options};
use crate::pattern::{ConditionLike, KeepWhile, PatternLike, put_options};
use crate::payload::{Payloads, from_payload, to_payload};
use crate::projection::ProjectionView;
use crate::reports::{DropReport, VersionsReport};
use crate::result::Reading;
use crate::store::Store;

/// Where a transaction is.
enum Place {
    Open(Box<store::Transaction>),
    /// With a call that may itself call Python, and so must not hold the lock.
    Busy,
    Committed,
    Aborted,
}

/// A transaction: any number of operations that happen together or not at all.
#[pyclass(frozen, subclass, module = "drumlin._drumlin")]
pub struct Transaction {
    /// Locked by who is attached to the interpreter, or for a call that needs nobody who is. Ends before the store
    /// does.
    place: Mutex<Place>,
    seq: u64,
    /// How many operations on tables have been done.
    table_operations: AtomicU64,
    /// The keys of tables made in it, by path.
    made: Mutex<HashMap<String, Vec<String>>>,
    process: u32,
    store: Py<Store>,
}

fn unusable(place: &Place) -> Error {
    Error::invalid(match place {
        Place::Busy => "the transaction is in use by another call",
        _ => "the transaction has ended",
    })
}

fn open(place: &mut Place) -> Result<&mut store::Transaction> {
    match place {
        Place::Open(transaction) => Ok(transaction),
        other => Err(unusable(other)),
    }
}

impl Transaction {
    /// The number of the commit that it began with.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// How many operations on tables have been done.
    pub fn table_operations(&self) -> u64 {
        self.table_operations.load(Ordering::Relaxed)
    }

    /// Fails if what it wrote has been thrown away.
    pub fn check_not_aborted(&self, py: Python<'_>) -> PyResult<()> {
        let aborted = matches!(*self.lock(py), Place::Aborted);
        if aborted { Err(raise(unusable(&Place::Aborted))) } else { Ok(()) }
    }

    /// Prepares to read a table.
    pub fn scan(&self, py: Python<'_>, path: &str, options: &ReadOptions) -> PyResult<Scan> {
        self.apart(py, |tx| tx.read_table(path, options))
    }

    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Place> {
        self.place.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something quick.
    fn quick<T>(&self, py: Python<'_>, call: impl FnOnce(&mut store::Transaction) -> Result<T>) -> PyResult<T> {
        // An exception is made without the lock: making one may run anything.
        let done = run(&mut self.lock(py), call);
        done.map_err(raise)
    }

    /// Does something that may take a while, and calls nothing of Python.
    fn apart<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut store::Transaction) -> Result<T> + Send,
    ) -> PyResult<T> {
        self.check_process()?;
        detached(py, || run(&mut self.place.lock().unwrap_or_else(PoisonError::into_inner), call))
    }

    /// A forked child has none of the threads that reading and committing rely on. What only looks at single nodes does
    /// not ask, since asking takes longer than that.
    fn check_process(&self) -> PyResult<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        let begun = self.process;
        let why = format!("the transaction was begun in process {begun}; a forked process must open the store anew");
        Err(raise(Error::closed(why)))
    }

    /// Does something that may call Python, which must not find the lock taken: others are told that it is in use.
    fn away<T>(&self, py: Python<'_>, call: impl FnOnce(&mut store::Transaction) -> PyResult<T>) -> PyResult<T> {
        let mut transaction = self.take(py, Place::Busy)?;
        let result = call(&mut transaction);
        let mut place = self.lock(py);
        if let Place::Busy = *place {
            *place = Place::Open(transaction);
        } else {
            // It was ended meanwhile.
            drop(place);
            drop_detached(transaction);
        }
        result
    }

    /// The columns of the key of a table. Its names cannot change while the table is the same.
    fn key_names(&self, py: Python<'_>, path: &str) -> PyResult<Vec<String>> {
        let made = self.made.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner).get(path).cloned();
        if let Some(key) = made.filter(|key| !key.is_empty()) {
            return Ok(key);
        }
        let view = self.store.get().view(py, path, &AsOf::Newest)?;
        Ok(view.key_schema().fields().iter().map(|field| field.name().clone()).collect())
    }

    /// The schema of a keyed table: that of the answer to a question without keys.
    fn schema(&self, py: Python<'_>, path: &str, as_of: AsOf) -> PyResult<SchemaRef> {
        let key = self.key_names(py, path)?;
        let column = |name: String| (name, Arc::new(NullArray::new(0)) as ArrayRef, true);
        let nothing = RecordBatch::try_from_iter_with_nullable(key.into_iter().map(column));
        let nothing = nothing.map_err(|error| raise(error.into()))?;
        let options = LookupOptions { as_of, ..LookupOptions::default() };
        Ok(self.apart(py, |tx| tx.get_rows(path, &nothing, &options))?.rows.schema())
    }

    /// The schema of its key columns.
    fn key_schema(&self, py: Python<'_>, path: &str, as_of: AsOf) -> PyResult<SchemaRef> {
        let schema = self.schema(py, path, as_of)?;
        let key = self.key_names(py, path)?;
        let places: Vec<usize> = key.iter().filter_map(|name| schema.index_of(name).ok()).collect();
        Ok(Arc::new(schema.project(&places).map_err(|error| raise(error.into()))?))
    }

    fn look_up(&self, py: Python<'_>, path: &str, keys: Keys<'_>, options: LookupOptions) -> PyResult<Lookup> {
        self.check_process()?;
        let keys = keys.given(|| self.key_schema(py, path, options.as_of.clone()))?;
        keyed::look_up(py, keys, options, |keys, options| {
            let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
            open(&mut place)?.get_rows(path, keys, options)
        })
    }

    /// An operation on tables.
    fn on_tables<T>(&self, py: Python<'_>, call: impl FnOnce(&mut store::Transaction) -> PyResult<T>) -> PyResult<T> {
        self.table_operations.fetch_add(1, Ordering::Relaxed);
        self.away(py, call)
    }

    /// Takes it out of its place.
    fn take(&self, py: Python<'_>, instead: Place) -> PyResult<Box<store::Transaction>> {
        self.check_process()?;
        let mut place = self.lock(py);
        let taken = match std::mem::replace(&mut *place, instead) {
            Place::Open(transaction) => Ok(transaction),
            other => {
                let error = unusable(&other);
                *place = other;
                Err(error)
            }
        };
        drop(place);
        taken.map_err(raise)
    }
}

/// Does something with an open transaction. One that a panic left half changed is never committed.
fn run<T>(place: &mut Place, call: impl FnOnce(&mut store::Transaction) -> Result<T>) -> Result<T> {
    let done = caught(|| open(place).and_then(call));
    if matches!(&done, Err(e) if e.kind() == ErrorKind::Internal) {
        *place = Place::Aborted;
    }
    done
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let place = std::mem::replace(self.place.get_mut().unwrap_or_else(PoisonError::into_inner), Place::Aborted);
        if self.process == std::process::id() {
            drop_detached(place);
        } else {
            // What it wrote is the parent's, which may yet commit it.
            std::mem::forget(place);
        }
    }
}

type Frames = Vec<(String, Input)>;

#[pymethods]
impl Transaction {
    #[new]
    fn new(py: Python<'_>, store: Py<Store>, read_only: bool) -> PyResult<Self> {
        let core = &store.get().core;
        let begun = detached(py, || if read_only { core.read_transaction() } else { core.transaction() })?;
        let (seq, place) = (begun.seq().0, Mutex::new(Place::Open(Box::new(begun))));
        let (made, process) = (Mutex::default(), std::process::id());
        Ok(Self { place, seq, table_operations: AtomicU64::new(0), made, process, store })
    }

    /// The number of the commit that it began with.
    #[getter(seq)]
    fn py_seq(&self) -> u64 {
        self.seq
    }

    /// Whether it was committed or aborted.
    #[getter]
    fn ended(&self, py: Python<'_>) -> bool {
        matches!(&*self.lock(py), Place::Committed | Place::Aborted)
    }

    #[getter]
    fn _store(&self, py: Python<'_>) -> Py<Store> {
        self.store.clone_ref(py)
    }

    /// Commits. Gives the commit's number; that of the newest one seen if there was nothing to commit. `Conflict` if
    /// others have touched meanwhile what it has read or written; then nothing was done.
    fn commit(&self, py: Python<'_>) -> PyResult<u64> {
        let transaction = self.take(py, Place::Committed)?;
        let committed = detached(py, || transaction.commit());
        if committed.is_err() {
            *self.lock(py) = Place::Aborted;
        }
        Ok(committed?.0)
    }

    /// Ends it without a commit, if it has not ended.
    fn _end(&self, py: Python<'_>) {
        let mut place = self.lock(py);
        if !matches!(*place, Place::Committed) {
            let ended = std::mem::replace(&mut *place, Place::Aborted);
            drop(place);
            drop_detached(ended);
        }
    }

    /// As `Store.put`.
    #[pyo3(signature = (path, value, *, only=None, when=None, keep_while=None))]
    fn put(
        &self,
        py: Python<'_>,
        path: &str,
        value: &Bound<'_, PyAny>,
        only: Option<&str>,
        when: Option<ConditionLike>,
        keep_while: Option<KeepWhile>,
    ) -> PyResult<Change> {
        let payload = to_payload(value, "payload")?;
        let change = match put_options(only, when, keep_while)? {
            None => self.quick(py, |tx| tx.put(path, payload)),
            Some(options) => self.quick(py, |tx| tx.put_with(path, payload, &options)),
        };
        Ok(change?.into())
    }

    /// As `Store.create_node`.
    fn create_node(&self, py: Python<'_>, path: &str, value: &Bound<'_, PyAny>) -> PyResult<Change> {
        let payload = to_payload(value, "payload")?;
        Ok(self.quick(py, |tx| tx.create_node(path, payload))?.into())
    }

    /// As `Store.update_node`.
    fn update_node(&self, py: Python<'_>, path: &str, value: &Bound<'_, PyAny>) -> PyResult<Change> {
        let payload = to_payload(value, "payload")?;
        Ok(self.quick(py, |tx| tx.update_node(path, payload))?.into())
    }

    /// As `Store.compare_and_swap`.
    fn compare_and_swap(
        &self,
        py: Python<'_>,
        path: &str,
        expected: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<Change> {
        let (expected, payload) = (to_payload(expected, "expected")?, to_payload(value, "payload")?);
        Ok(self.quick(py, |tx| tx.compare_and_swap(path, expected, payload))?.into())
    }

    /// As `Store.put_many`.
    fn put_many(&self, py: Python<'_>, payloads: Payloads) -> PyResult<Changes> {
        let Payloads(payloads) = payloads;
        let pairs = || payloads.iter().map(|(path, payload)| (path.as_str(), payload.clone()));
        Ok(self.apart(py, |tx| tx.put_many(pairs()))?.into())
    }

    /// As `Store.update_many`.
    fn update_many(&self, py: Python<'_>, pattern: PatternLike, value: &Bound<'_, PyAny>) -> PyResult<Changes> {
        let payload = to_payload(value, "payload")?;
        Ok(self.apart(py, |tx| tx.update_many(pattern.0, &payload))?.into())
    }

    /// As `Store.clear_payload`.
    #[pyo3(signature = (path, *, when=None))]
    fn clear_payload(&self, py: Python<'_>, path: &str, when: Option<ConditionLike>) -> PyResult<Change> {
        let when = when.map(|when| when.0);
        Ok(self.quick(py, |tx| tx.clear_payload(path, when.as_ref()))?.into())
    }

    /// As `Store.clear_payloads`.
    fn clear_payloads(&self, py: Python<'_>, pattern: PatternLike) -> PyResult<Changes> {
        Ok(self.apart(py, |tx| tx.clear_payloads(pattern.0))?.into())
    }

    /// As `Store.delete`.
    #[pyo3(signature = (path, *, when=None))]
    fn delete(&self, py: Python<'_>, path: &str, when: Option<ConditionLike>) -> PyResult<Change> {
        let when = when.map(|when| when.0);
        Ok(self.quick(py, |tx| tx.delete(path, when.as_ref()))?.into())
    }

    /// As `Store.delete_many`.
    fn delete_many(&self, py: Python<'_>, pattern: PatternLike) -> PyResult<Changes> {
        Ok(self.apart(py, |tx| tx.delete_many(pattern.0))?.into())
    }

    /// As `Store.get`.
    #[pyo3(signature = (path, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.quick(py, |tx| tx.get(path))? {
            Some(payload) => Ok(Some(from_payload(py, &payload)?)),
            None => Ok(default),
        }
    }

    /// As `Store.node`.
    fn node(&self, py: Python<'_>, path: &str) -> PyResult<Option<Node>> {
        Ok(self.quick(py, |tx| tx.node(path))?.map(Node))
    }

    /// As `Store.exists`.
    fn exists(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        self.quick(py, |tx| tx.exists(path))
    }

    /// As `Store.has_payload`.
    fn has_payload(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        self.quick(py, |tx| tx.has_payload(path))
    }

    /// As `Store.get_many`.
    fn get_many<'py>(&self, py: Python<'py>, pattern: PatternLike) -> PyResult<Bound<'py, PyDict>> {
        payloads_by_path(py, self.apart(py, |tx| tx.get_many(pattern.0))?)
    }

    /// As `Store.nodes`.
    fn nodes<'py>(&self, py: Python<'py>, pattern: PatternLike) -> PyResult<Bound<'py, PyDict>> {
        nodes_by_path(py, self.apart(py, |tx| tx.nodes(pattern.0))?)
    }

    /// As `Store.count`.
    fn count(&self, py: Python<'_>, pattern: PatternLike) -> PyResult<u64> {
        self.apart(py, |tx| tx.count(pattern.0))
    }

    fn _walk(&self, py: Python<'_>, pattern: PatternLike) -> PyResult<Walk> {
        Ok(self.apart(py, |tx| tx.nodes(pattern.0))?.into())
    }

    /// A projection, with the transaction's own writes in it.
    fn projection(&self, py: Python<'_>, name: &str) -> PyResult<ProjectionView> {
        // It may be by a function of Python.
        self.away(py, |tx| detached(py, || tx.projection(name))).map(ProjectionView)
    }

    fn _create(
        &self,
        py: Python<'_>,
        path: &str,
        schema: GivenSchema,
        sort: Vec<String>,
        key: Vec<String>,
    ) -> PyResult<()> {
        let (schema, made) = (schema.into_inner(), key.clone());
        self.on_tables(py, |tx| detached(py, || tx.create(path, schema, TableOptions { sort, key })))?;
        self.made.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), made);
        Ok(())
    }

    #[pyo3(signature = (frames, metadata, sort, progress))]
    fn _write_many(
        &self,
        py: Python<'_>,
        frames: Frames,
        metadata: Option<String>,
        sort: Option<Vec<String>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let write = |tx: &mut store::Transaction| {
            with_progress(py, progress, |task| tx.write_many(to_frames(frames), &WriteOptions { metadata, sort, task }))
        };
        self.on_tables(py, write)
    }

    #[pyo3(signature = (frames, metadata, progress))]
    fn _append_many(
        &self,
        py: Python<'_>,
        frames: Frames,
        metadata: Option<String>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let append = |tx: &mut store::Transaction| {
            with_progress(py, progress, |task| {
                tx.append_many(to_frames(frames), &WriteOptions { metadata, sort: None, task })
            })
        };
        self.on_tables(py, append)
    }

    #[pyo3(signature = (path, frame, metadata, progress))]
    fn _update(
        &self,
        py: Python<'_>,
        path: &str,
        frame: Input,
        metadata: Option<String>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let options = |task| WriteOptions { metadata, sort: None, task };
        self.on_tables(py, |tx| with_progress(py, progress, |task| tx.update(path, frame, &options(task))))
    }

    #[pyo3(signature = (path, filter, metadata, progress))]
    fn _delete_rows(
        &self,
        py: Python<'_>,
        path: &str,
        filter: &str,
        metadata: Option<String>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        let options = |task| UpdateOptions { metadata, task };
        self.on_tables(py, |tx| with_progress(py, progress, |task| tx.delete_rows(path, filter, &options(task))))
    }

    #[pyo3(signature = (path, rows, metadata, progress))]
    fn _upsert(
        &self,
        py: Python<'_>,
        path: &str,
        rows: Rows<'_>,
        metadata: Option<String>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        let rows = rows.given(|| self.schema(py, path, AsOf::Newest))?;
        let upsert = |tx: &mut store::Transaction| {
            keyed::write(py, rows, metadata, progress, |rows, options| tx.upsert(path, rows, options))
        };
        self.on_tables(py, upsert)
    }

    #[pyo3(signature = (path, rows, metadata, progress))]
    fn _insert(
        &self,
        py: Python<'_>,
        path: &str,
        rows: Rows<'_>,
        metadata: Option<String>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        let rows = rows.given(|| self.schema(py, path, AsOf::Newest))?;
        let insert = |tx: &mut store::Transaction| {
            keyed::write(py, rows, metadata, progress, |rows, options| tx.insert(path, rows, options))
        };
        self.on_tables(py, insert)
    }

    #[pyo3(signature = (path, keys, metadata, progress))]
    fn _delete_keys(
        &self,
        py: Python<'_>,
        path: &str,
        keys: Keys<'_>,
        metadata: Option<String>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        let keys = keys.given(|| self.key_schema(py, path, AsOf::Newest))?;
        let delete = |tx: &mut store::Transaction| {
            keyed::write(py, keys, metadata, progress, |keys, options| tx.delete_keys(path, keys, options))
        };
        self.on_tables(py, delete)
    }

    #[pyo3(signature = (path, key, as_of, columns))]
    fn _get_row<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        key: Bound<'py, PyAny>,
        as_of: Option<When>,
        columns: Option<Vec<String>>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.look_up(py, path, Keys::one(key), lookup_options(as_of, columns))?.row(py)
    }

    #[pyo3(signature = (path, keys, as_of, columns))]
    fn _get_rows(
        &self,
        py: Python<'_>,
        path: &str,
        keys: Keys<'_>,
        as_of: Option<When>,
        columns: Option<Vec<String>>,
    ) -> PyResult<Lookup> {
        self.look_up(py, path, keys, lookup_options(as_of, columns))
    }

    fn _drop(&self, py: Python<'_>, paths: Vec<String>, missing_ok: bool) -> PyResult<DropReport> {
        Ok(self.on_tables(py, |tx| detached(py, || tx.drop(&paths, missing(missing_ok))))?.into())
    }

    fn _delete_versions(&self, py: Python<'_>, versions: Versions, missing_ok: bool) -> PyResult<VersionsReport> {
        let delete = |tx: &mut store::Transaction| tx.delete_versions(&versions.0, missing(missing_ok));
        Ok(self.on_tables(py, |tx| detached(py, || delete(tx)))?.into())
    }

    #[pyo3(signature = (path, as_of, columns, filter, limit, tail, native))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn _read(
        this: &Bound<'_, Self>,
        path: String,
        as_of: Option<When>,
        columns: Option<Vec<String>>,
        filter: Option<&str>,
        limit: Option<u64>,
        tail: Option<u64>,
        native: bool,
    ) -> PyResult<Reading> {
        let scan = scan_options(columns, filter, limit, tail, native)?;
        Reading::within(this, path, ReadOptions { as_of: crate::options::as_of(as_of), scan })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(&self.store)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let place = match &*self.lock(py) {
            Place::Open(_) => "open",
            Place::Busy => "in use",
            Place::Committed => "committed",
            Place::Aborted => "aborted",
        };
        format!("Transaction({place}, seq={})", self.seq)
    }
}
