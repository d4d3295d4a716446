//! The rows in which versions of a table differ.

use drumlin::{Cancel, DiffOptions};
use pyo3::prelude::*;

use crate::call::long;
use crate::options::{When, as_of};
use crate::result::{Prepared, Stream};

/// The rows in which versions differ, as a stream.
pub fn diff(
    py: Python<'_>,
    table: &drumlin::Table,
    since: When,
    until: Option<When>,
    columns: Option<Vec<String>>,
    each_version: bool,
) -> PyResult<Stream> {
    let cancel = Cancel::default();
    let options = DiffOptions { columns, each_version, cancel: cancel.clone() };
    let (since, until) = (as_of(Some(since)), as_of(until));
    let diff = long(py, std::slice::from_ref(&cancel), || table.diff(&since, &until, &options))?;
    Ok(Stream::new(diff.schema(), Prepared { scan: Box::new(diff), cancel }))
}
