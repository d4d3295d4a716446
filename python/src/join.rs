//! A join of two data sets in time.

use drumlin::{AsofJoin, Cancel, Direction, Distance, Error, JoinKind, JoinOptions, Result, WindowJoin};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;

use crate::aggregate::{Asked, aggregate};
use crate::call::{detached, long};
use crate::dataset::{Dataset, options};
use crate::errors::raise;
use crate::result::{Batches, Prepared, Stream};
use crate::schema::Schema;

/// How far: whether it is a length of time, in nanoseconds, and the number.
type Far = (bool, u64);

/// Columns, filters: what is read of a side.
type Side = (Option<Vec<String>>, Vec<String>);

fn distance((is_time, number): Far) -> Distance {
    if is_time { Distance::Nanos(number) } else { Distance::Number(number) }
}

/// The nearest row: its direction, how far it may be at most, and whether it may be of the same time.
fn asof(direction: &str, tolerance: Option<Far>, allow_exact: bool) -> Result<JoinKind> {
    let direction = match direction {
        "backward" => Direction::Backward,
        "forward" => Direction::Forward,
        "nearest" => Direction::Nearest,
        other => {
            return Err(Error::invalid(format!("direction is '{other}'; expected 'backward', 'forward' or 'nearest'")));
        }
    };
    Ok(JoinKind::Asof(AsofJoin { direction, tolerance: tolerance.map(distance), allow_exact }))
}

/// What is made of the rows in a window.
fn window(before: Far, after: Far, asked: Vec<Asked>) -> Result<JoinKind> {
    let aggregates = asked.into_iter().map(aggregate).collect::<Result<_>>()?;
    Ok(JoinKind::Window(WindowJoin { before: distance(before), after: distance(after), aggregates }))
}

/// A join of two data sets, not yet read.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct Join {
    left: Py<Dataset>,
    right: Py<Dataset>,
    options: JoinOptions,
}

impl Join {
    fn prepare(&self, py: Python<'_>) -> PyResult<(drumlin::JoinScan, Cancel)> {
        let cancel = Cancel::default();
        let mut options = self.options.clone();
        (options.left.cancel, options.right.cancel) = (cancel.clone(), cancel.clone());
        let (left, right) = (self.left.get(), self.right.get());
        Ok((detached(py, || left.core().join(right.core(), &options))?, cancel))
    }
}

#[pymethods]
impl Join {
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(&self.left)?;
        visit.call(&self.right)
    }

    /// A join with the nearest row.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "one for each of the call")]
    fn asof(
        py: Python<'_>,
        left: (Py<Dataset>, Side),
        right: (Py<Dataset>, Side),
        on: (String, String),
        by: Vec<String>,
        suffix: String,
        direction: &str,
        tolerance: Option<Far>,
        allow_exact: bool,
    ) -> PyResult<Self> {
        let kind = asof(direction, tolerance, allow_exact).map_err(raise)?;
        Self::new(py, kind, left, right, on, by, suffix)
    }

    /// A join with what is made of the rows in a window.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "one for each of the call")]
    fn window(
        py: Python<'_>,
        left: (Py<Dataset>, Side),
        right: (Py<Dataset>, Side),
        on: (String, String),
        by: Vec<String>,
        before: Far,
        after: Far,
        aggregates: Vec<Asked>,
    ) -> PyResult<Self> {
        let kind = window(before, after, aggregates).map_err(raise)?;
        Self::new(py, kind, left, right, on, by, String::new())
    }

    /// The columns of the result.
    #[getter]
    fn schema(&self, py: Python<'_>) -> PyResult<Schema> {
        Ok(Schema(self.prepare(py)?.0.schema()))
    }

    /// Joins, batch by batch.
    fn stream(&self, py: Python<'_>) -> PyResult<Stream> {
        let (scan, cancel) = self.prepare(py)?;
        Ok(Stream::new(scan.schema(), Prepared { scan: Box::new(scan), cancel }))
    }

    /// Joins all rows.
    fn collect(&self, py: Python<'_>) -> PyResult<Batches> {
        let (scan, cancel) = self.prepare(py)?;
        let schema = scan.schema();
        let batches = long(py, &[cancel], || scan.collect::<Result<Vec<_>>>())?;
        Ok(Batches { schema, batches })
    }
}

impl Join {
    fn new(
        py: Python<'_>,
        kind: JoinKind,
        left: (Py<Dataset>, Side),
        right: (Py<Dataset>, Side),
        on: (String, String),
        by: Vec<String>,
        suffix: String,
    ) -> PyResult<Self> {
        let scan = |(columns, filters): Side| options(columns, &filters, None);
        let options = JoinOptions {
            on: on.clone(),
            by,
            suffix,
            left: scan(left.1)?,
            right: scan(right.1)?,
            ..JoinOptions::new(kind, &on.0)
        };
        let join = Self { left: left.0, right: right.0, options };
        // What cannot be joined is refused now.
        join.prepare(py)?;
        Ok(join)
    }
}
