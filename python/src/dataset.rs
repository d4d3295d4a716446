//! A data set: a table, or all tables that a pattern matches, and expressions of pyarrow over it.

use arrow::ipc::root_as_footer;
use drumlin::{Cancel, Error, Filter, Result, ScanOptions};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::aggregate::{self, Asked, Buckets};
use crate::call::{Detached, detached, long};
use crate::errors::raise;
use crate::open_store::Store;
use crate::result::{Batches, Prepared, Reading, Stream};
use crate::schema::Schema;
use crate::splits::{Lease, Split, split};

/// One table, or all tables that match a pattern, as of one instant.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct Dataset {
    core: Detached<drumlin::Dataset>,
    /// For the garbage collector, which must see whose functions the tables keep alive.
    store: Py<Store>,
}

impl Dataset {
    pub fn new(core: drumlin::Dataset, store: Py<Store>) -> Self {
        Self { core: Detached::new(core), store }
    }

    /// The data set of the core.
    pub fn core(&self) -> &drumlin::Dataset {
        &self.core
    }

    fn prepare(&self, py: Python<'_>, options: ScanOptions) -> PyResult<(drumlin::DatasetScan, Cancel)> {
        let cancel = Cancel::default();
        let options = ScanOptions { cancel: cancel.clone(), ..options };
        Ok((detached(py, || self.core.scan(&options))?, cancel))
    }
}

/// What to read: the columns, what all of the filters keep, and at most `limit` rows.
pub fn options(columns: Option<Vec<String>>, filters: &[String], limit: Option<u64>) -> PyResult<ScanOptions> {
    let filter = || -> Result<Option<Filter>> {
        let parsed: Vec<Filter> = filters.iter().map(|text| Filter::parse(text)).collect::<Result<_>>()?;
        Ok(parsed.into_iter().reduce(Filter::and))
    };
    Ok(ScanOptions { columns, filter: filter().map_err(raise)?, limit, ..ScanOptions::default() })
}

#[pymethods]
impl Dataset {
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(&self.store)
    }

    /// What a reading shows, which must be without a limit, and its filter.
    #[staticmethod]
    fn of(py: Python<'_>, reading: &Reading) -> PyResult<(Self, Option<String>)> {
        let (core, filter) = reading.as_dataset(py)?;
        Ok((Self::new(core, reading.store(py)), filter))
    }

    /// The schema of all columns.
    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.core.schema())
    }

    /// The same rows in types that an engine has, and for which it pushes down most filters.
    fn for_engines(&self, py: Python<'_>) -> PyResult<Dataset> {
        let core = detached(py, || self.core.for_engines())?;
        Ok(Dataset::new(core, self.store.clone_ref(py)))
    }

    /// The same rows without Arrow views; None if there are none.
    fn without_views(&self, py: Python<'_>) -> Option<Dataset> {
        self.core.without_views().map(|core| Dataset::new(core, self.store.clone_ref(py)))
    }

    /// The same rows with decimals of 128 bits in as few as they need; None if there are none.
    fn with_narrow_decimals(&self, py: Python<'_>) -> Option<Dataset> {
        self.core.with_narrow_decimals().map(|core| Dataset::new(core, self.store.clone_ref(py)))
    }

    /// The schema of all columns in the types that filters use.
    #[getter]
    fn filter_schema(&self) -> Schema {
        Schema(self.core.filter_schema())
    }

    /// The pattern.
    #[getter]
    fn pattern(&self) -> &str {
        self.core.pattern()
    }

    /// The columns that hold names from paths.
    #[getter]
    fn path_columns(&self) -> Vec<String> {
        self.core.path_columns().to_vec()
    }

    /// The paths of the tables.
    #[getter]
    fn paths(&self) -> Vec<String> {
        self.core.paths()
    }

    /// The numbers of the versions that it shows, in the order of its tables, each with its metadata as JSON text; None
    /// for a table that its transaction has written.
    #[getter]
    fn versions(&self) -> Vec<Option<(u64, Option<&str>)>> {
        let versions = self.core.versions().into_iter();
        versions.map(|record| record.map(|record| (record.version.0, record.metadata.as_deref()))).collect()
    }

    /// Scans the data set, batch by batch.
    fn stream(
        &self,
        py: Python<'_>,
        columns: Option<Vec<String>>,
        filters: Vec<String>,
        limit: Option<u64>,
    ) -> PyResult<Stream> {
        let (scan, cancel) = self.prepare(py, options(columns, &filters, limit)?)?;
        Ok(Stream::new(scan.schema(), Prepared { scan: Box::new(scan), cancel }))
    }

    /// Scans the data set, all at once and with all threads.
    fn collect(
        &self,
        py: Python<'_>,
        columns: Option<Vec<String>>,
        filters: Vec<String>,
        limit: Option<u64>,
    ) -> PyResult<Batches> {
        let (scan, cancel) = self.prepare(py, options(columns, &filters, limit)?)?;
        let schema = scan.schema();
        let batches = long(py, &[cancel], || scan.collect())?;
        Ok(Batches { schema, batches })
    }

    /// The number of rows.
    fn count_rows(&self, py: Python<'_>, filters: Vec<String>, limit: Option<u64>) -> PyResult<u64> {
        let cancel = Cancel::default();
        let options = ScanOptions { cancel: cancel.clone(), ..options(None, &filters, limit)? };
        long(py, &[cancel], || self.core.count_rows(&options))
    }

    /// Fails if one of the columns (default: any) cannot be read.
    fn check_readable(&self, columns: Option<Vec<String>>) -> PyResult<()> {
        self.core.check_readable(columns.as_ref().map(|names| names.iter().map(String::as_str))).map_err(raise)
    }

    /// An upper bound of the number of rows, without reading any.
    fn rows_at_most(&self, py: Python<'_>, filters: Vec<String>, limit: Option<u64>) -> PyResult<u64> {
        let options = options(None, &filters, limit)?;
        detached(py, || self.core.rows_at_most(&options))
    }

    /// The aggregates of each group.
    fn aggregate(
        &self,
        py: Python<'_>,
        keys: Vec<String>,
        every: Option<Buckets>,
        aggregates: Vec<Asked>,
        filters: Vec<String>,
    ) -> PyResult<Batches> {
        let asked = aggregate::group_by(keys, every, aggregates, &self.core.schema()).map_err(raise)?;
        let cancel = Cancel::default();
        let options = ScanOptions { cancel: cancel.clone(), ..options(None, &filters, None)? };
        let found = long(py, &[cancel], || self.core.aggregate(&asked, &options))?;
        Ok(Batches { schema: found.schema(), batches: vec![found] })
    }

    /// The cost of reading it.
    fn plan(&self, py: Python<'_>, columns: Option<Vec<String>>, filters: Vec<String>) -> PyResult<DatasetPlan> {
        let options = options(columns, &filters, None)?;
        Ok(DatasetPlan(detached(py, || self.core.plan(&options))?))
    }

    /// The tables one by one, each with the columns of all, without the tables that the filters rule out by paths and
    /// columns.
    fn split_by_table(&self, py: Python<'_>, filters: Vec<String>) -> PyResult<Vec<Dataset>> {
        let options = options(None, &filters, None)?;
        let tables = detached(py, || self.core.split_by_table(&options))?;
        Ok(tables.into_iter().map(|core| Dataset::new(core, self.store.clone_ref(py))).collect())
    }

    /// Parts for other processes, and the lease that keeps them readable.
    #[expect(clippy::too_many_arguments, reason = "one for each of the call")]
    fn splits(
        &self,
        py: Python<'_>,
        columns: Option<Vec<String>>,
        filters: Vec<String>,
        limit: Option<u64>,
        bytes: u64,
        at_least: u64,
        life_micros: u64,
    ) -> PyResult<(Vec<Split>, Lease)> {
        let options = ScanOptions { cancel: Cancel::default(), ..options(columns, &filters, limit)? };
        split(py, &self.core, self.store.clone_ref(py), options, drumlin::SplitOptions { bytes, at_least, life_micros })
    }

    /// A description from which a store can make the data set again.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.core.describe().map_err(raise)?))
    }
}

/// What reading a data set costs, and what its filter saves. `print` it.
#[pyclass(frozen, module = "drumlin")]
pub struct DatasetPlan(drumlin::DatasetPlan);

#[pymethods]
impl DatasetPlan {
    /// The paths of the tables that are opened.
    #[getter]
    fn tables(&self) -> Vec<String> {
        self.0.opened.iter().map(|(path, _)| path.clone()).collect()
    }

    /// The paths of the tables that are not opened.
    #[getter]
    fn pruned_tables(&self) -> Vec<String> {
        self.0.pruned.clone()
    }

    /// Row groups with visible rows in the tables that are opened.
    #[getter]
    fn row_groups(&self) -> u64 {
        self.0.total.row_groups
    }

    /// Row groups of these tables that are not read, because statistics show that no row matches the filter.
    #[getter]
    fn pruned_row_groups(&self) -> u64 {
        self.0.total.pruned
    }

    /// Row groups of these tables whose rows all match the filter, as their statistics show.
    #[getter]
    fn whole_row_groups(&self) -> u64 {
        self.0.total.whole
    }

    /// Encoded bytes to read.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.total.bytes
    }

    /// Encoded bytes of the same columns in the row groups that are not read.
    #[getter]
    fn pruned_bytes(&self) -> u64 {
        self.0.total.pruned_bytes
    }

    /// Rows in memory to examine.
    #[getter]
    fn memory_rows(&self) -> u64 {
        self.0.total.memory_rows
    }

    /// The names of the indexes that were asked. Row groups without a hit in them are not among ``row_groups``.
    #[getter]
    fn indexes(&self) -> Vec<String> {
        self.0.total.by_index.names.iter().cloned().collect()
    }

    /// Row groups for which indexes were asked, with and without hits.
    #[getter]
    fn indexed_row_groups(&self) -> u64 {
        self.0.total.by_index.row_groups
    }

    /// Rows that the indexes gave, deleted ones too.
    #[getter]
    fn index_hits(&self) -> u64 {
        self.0.total.by_index.hits
    }

    /// Encoded bytes of the indexes' pages that were read for that.
    #[getter]
    fn index_bytes(&self) -> u64 {
        self.0.total.by_index.bytes
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!(
            "DatasetPlan({} tables, {} row groups, {} bytes)",
            self.0.opened.len(),
            self.0.total.row_groups - self.0.total.pruned,
            self.0.total.bytes
        )
    }
}

/// The parts of a pyarrow expression in order, from its serialised form: an Arrow file with the parts in the metadata
/// of its schema, of which pyarrow itself shows each key only once.
#[pyfunction]
pub fn expression_parts(serialised: &[u8]) -> PyResult<Vec<(String, String)>> {
    let parts = || -> Option<Vec<(String, String)>> {
        let (rest, magic) = serialised.split_last_chunk::<6>()?;
        let (rest, length) = rest.split_last_chunk::<4>()?;
        let start = rest.len().checked_sub(usize::try_from(i32::from_le_bytes(*length)).ok()?)?;
        let footer = root_as_footer(&rest[start..]).ok().filter(|_| magic == b"ARROW1")?;
        let metadata = footer.schema()?.custom_metadata()?;
        metadata.iter().map(|part| Some((part.key()?.to_owned(), part.value()?.to_owned()))).collect()
    };
    parts().ok_or_else(|| raise(Error::invalid("expected a serialised pyarrow expression")))
}
