//! Parts of a data set for other processes, and the lease that keeps them.

use drumlin::{Cancel, Filter, ScanOptions, Stat};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::call::{Detached, detached, long};
use crate::errors::raise;
use crate::open_store::Store;
use crate::options::{ModeName, Settings, open};
use crate::result::{Batches, Prepared, Stream};

/// Part of a data set.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct Split(drumlin::Split);

#[pymethods]
impl Split {
    #[new]
    fn new(encoded: &[u8]) -> PyResult<Self> {
        Ok(Self(drumlin::Split::from_bytes(encoded).map_err(raise)?))
    }

    fn encode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.to_bytes().map_err(raise)?))
    }

    #[getter]
    fn uri(&self) -> &str {
        self.0.uri()
    }

    #[getter]
    fn rows(&self) -> Option<u64> {
        self.0.rows
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Bounds of the column that its table is sorted by: numbers in the unit of the column's type, or bytes.
    #[getter]
    fn bounds<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        let value = |stat: &Stat| -> PyResult<Bound<'py, PyAny>> {
            Ok(match stat {
                Stat::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
                Stat::Int(value) => value.into_pyobject(py)?.into_any(),
                Stat::UInt(value) => value.into_pyobject(py)?.into_any(),
                Stat::Decimal(value) => value.into_pyobject(py)?.into_any(),
                Stat::Float(value) => value.into_pyobject(py)?.into_any(),
                Stat::Bytes(value) => PyBytes::new(py, value).into_any(),
            })
        };
        self.0.bounds.as_ref().map(|(min, max)| Ok((value(min)?, value(max)?))).transpose()
    }
}

/// Keeps what splits show from being deleted.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct Lease {
    core: Detached<drumlin::Lease>,
    _store: Py<Store>,
}

impl Lease {
    pub fn new(core: drumlin::Lease, store: Py<Store>) -> Self {
        Self { core: Detached::new(core), _store: store }
    }
}

#[pymethods]
impl Lease {
    fn beat(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.core.beat())
    }

    fn end(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.core.end())
    }

    #[getter]
    fn life_micros(&self) -> u64 {
        self.core.life_micros()
    }
}

/// Reads splits, without a store.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct SplitReader(drumlin::SplitReader);

#[pymethods]
impl SplitReader {
    #[new]
    fn new(py: Python<'_>, uri: &str, settings: Settings) -> PyResult<Self> {
        let options = open(ModeName::create(), settings)?;
        Ok(Self(detached(py, || drumlin::SplitReader::open(uri, &options))?))
    }

    /// The reader of an open store.
    #[staticmethod]
    fn of(store: &Store) -> Self {
        Self(drumlin::SplitReader::of(&store.core))
    }

    /// Reads a split, batch by batch.
    fn stream(
        &self,
        py: Python<'_>,
        split: &Split,
        columns: Option<Vec<String>>,
        filter: Option<&str>,
    ) -> PyResult<Stream> {
        let (options, cancel) = wanted(columns, filter)?;
        let scan = long(py, std::slice::from_ref(&cancel), || self.0.scan(&split.0, &options))?;
        Ok(Stream::new(scan.schema(), Prepared { scan: Box::new(scan), cancel }))
    }

    /// Reads a split, all at once.
    fn collect(
        &self,
        py: Python<'_>,
        split: &Split,
        columns: Option<Vec<String>>,
        filter: Option<&str>,
    ) -> PyResult<Batches> {
        let (options, cancel) = wanted(columns, filter)?;
        let read = || {
            let scan = self.0.scan(&split.0, &options)?;
            Ok((scan.schema(), scan.collect::<drumlin::Result<_>>()?))
        };
        let (schema, batches) = long(py, std::slice::from_ref(&cancel), read)?;
        Ok(Batches { schema, batches })
    }
}

/// What is wanted of a split.
fn wanted(columns: Option<Vec<String>>, filter: Option<&str>) -> PyResult<(ScanOptions, Cancel)> {
    let cancel = Cancel::default();
    let filter = filter.map(Filter::parse).transpose().map_err(raise)?;
    Ok((ScanOptions { columns, filter, cancel: cancel.clone(), ..ScanOptions::default() }, cancel))
}

/// Parts of a data set, and the lease that keeps them.
pub fn split(
    py: Python<'_>,
    dataset: &drumlin::Dataset,
    store: Py<Store>,
    options: ScanOptions,
    how: drumlin::SplitOptions,
) -> PyResult<(Vec<Split>, Lease)> {
    let cancel = options.cancel.clone();
    let splits = long(py, &[cancel], || dataset.splits(&options, &how))?;
    Ok((splits.splits.into_iter().map(Split).collect(), Lease::new(splits.lease, store)))
}
