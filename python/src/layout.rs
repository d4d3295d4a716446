//! Layouts of tables.

use drumlin::RowLayout;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::call::detached;
use crate::table::Table;

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
