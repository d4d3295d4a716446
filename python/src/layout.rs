//! Layouts of tables.

use drumlin::RowLayout;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::call::detached;
use crate::reports::{describe, record};
use crate::table::Table;

record! {
    /// How the row groups of a table are laid out.
    Layout {
        /// The columns by which they are sorted, one after the other.
        sort_by: Vec<String>,
        /// The columns by which they are sorted together.
        z_order: Vec<String>,
        /// Row groups of the newest version that are laid out like that; checkpoints do the others.
        laid_out: u64,
        /// How many others a row group overlaps in the first column, in the mean: 0 if each value is in one row group. In
        /// a Z-order the mean of all columns, which is never 0.
        overlap: f64,
    } {}
}

impl From<drumlin::RowLayoutStat> for Layout {
    fn from(stat: drumlin::RowLayoutStat) -> Self {
        let (sort_by, z_order) = match stat.layout {
            RowLayout::Sorted(columns) => (columns, Vec::new()),
            RowLayout::Curve(columns) => (Vec::new(), columns),
        };
        Self { sort_by, z_order, laid_out: stat.laid_out, overlap: stat.overlap }
    }
}

/// Says by which columns the row groups of a table are sorted from now on.
#[pyfunction]
pub fn set_layout(
    py: Python<'_>,
    table: &Table,
    sort_by: Option<Vec<String>>,
    z_order: Option<Vec<String>>,
) -> PyResult<()> {
    let layout = match (sort_by, z_order) {
        (Some(_), Some(_)) => return Err(PyValueError::new_err("give sort_by or z_order, not both")),
        (Some(columns), None) => Some(RowLayout::Sorted(columns)),
        (None, Some(columns)) => Some(RowLayout::Curve(columns)),
        (None, None) => None,
    };
    detached(py, || table.core.set_layout(layout.as_ref()))
}
