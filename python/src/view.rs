//! Views: made, listed, brought up to date.

use std::collections::BTreeMap;

use drumlin::{DatasetOptions, StalePolicy, Tables as _, ViewInfo, ViewOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::aggregate::{Asked, Buckets, group_by};
use crate::call::{detached, with_progress};
use crate::errors::raise;
use crate::open_store::Store;
use crate::reports::{describe, record};
use crate::table::Table;

record! {
    /// What a view is of, and whether it is in step.
    View {
        /// The path of its table.
        path: String,
        /// The pattern of the tables that it is over, its sources.
        over: String,
        /// The columns that hold the names in their paths.
        path_columns: Vec<String>,
        /// The other columns that are grouped by.
        by: Vec<String>,
        /// The column of times and the length of buckets, if there are any.
        every: Option<(String, String)>,
        /// The aggregates, by name: the function, and what of.
        agg: BTreeMap<String, (String, Option<String>)>,
        /// Only rows for which this is true.
        r#where: Option<String>,
        /// What a read does if the view is behind: `wait`, `error` or `read`.
        stale: String,
        /// The paths of the sources with which it is behind; none if it is in step.
        behind: Vec<String>,
    } {}
}

impl From<ViewInfo> for View {
    fn from(info: ViewInfo) -> Self {
        let ViewInfo { path, definition, behind } = info;
        let made = |aggregate: &drumlin::Aggregate| {
            (aggregate.name.clone(), (aggregate.function.name().to_owned(), aggregate.of.clone()))
        };
        let stale = match definition.stale {
            StalePolicy::Wait => "wait",
            StalePolicy::Error => "error",
            StalePolicy::Read => "read",
        };
        Self {
            path,
            over: definition.over.clone(),
            path_columns: definition.path_columns.clone(),
            by: definition.groups.keys.clone(),
            every: definition.groups.every.as_ref().map(|every| (every.column.clone(), every.length.to_string())),
            agg: definition.groups.aggregates.iter().map(made).collect(),
            r#where: definition.filter.clone(),
            stale: stale.to_owned(),
            behind,
        }
    }
}

/// Makes a view at the path of a table.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "what a view is")]
pub fn create_view(
    py: Python<'_>,
    store: &Store,
    path: &str,
    over: &str,
    path_columns: Vec<String>,
    condition: Option<String>,
    keys: Vec<String>,
    every: Option<Buckets>,
    aggregates: Vec<Asked>,
    stale: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<View> {
    let stale = match stale {
        "wait" => StalePolicy::Wait,
        "error" => StalePolicy::Error,
        "read" => StalePolicy::Read,
        other => return Err(PyValueError::new_err(format!("stale must be 'wait', 'error' or 'read', not '{other}'"))),
    };
    let of = DatasetOptions { path_columns: path_columns.clone(), ..DatasetOptions::default() };
    let schema = detached(py, || Ok(store.core.scan(over, &of)?.schema()))?;
    let groups = group_by(keys, every, aggregates, &schema).map_err(raise)?;
    let table = store.core.table(path);
    let made = with_progress(py, progress, |task| {
        let options = ViewOptions { path_columns, filter: condition, groups, stale, cancel: task.cancel };
        table.create_view(over, &options)?;
        table.view_info()
    })?;
    made.map(View::from).ok_or_else(|| raise(drumlin::Error::not_found(format!("the view '{path}' was dropped"))))
}

/// All views.
#[pyfunction]
pub fn views(py: Python<'_>, store: &Store) -> PyResult<Vec<View>> {
    Ok(detached(py, || store.core.tree().views())?.into_iter().map(View::from).collect())
}

/// What a table is a view of.
#[pyfunction]
pub fn view_of(py: Python<'_>, table: &Table) -> PyResult<Option<View>> {
    Ok(detached(py, || table.core.view_info())?.map(View::from))
}

/// Brings a view up to date; returns with how many sources it was behind.
#[pyfunction]
pub fn catch_up(py: Python<'_>, table: &Table, progress: Option<Py<PyAny>>) -> PyResult<u64> {
    with_progress(py, progress, |task| Ok(table.core.catch_up(&task.cancel)?.sources))
}
