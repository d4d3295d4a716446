//! What views have of tables that are purged.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};

use super::family::Family;
use crate::base::{Result, TableId};
use crate::catalog::{Path, Pattern, State};
use crate::filter::Filter;

/// The rows of a view that are made of some of its sources.
pub(super) struct PurgedRows {
    /// The table of the view, and its path.
    pub table: TableId,
    pub path: Path,
    pub sources: Vec<Path>,
    /// True for these rows.
    pub filter: Filter,
}

/// What the views of a store have of tables. Of a view whose sources are told apart by several names it is all that it has, of all sources.
pub(super) fn rows_of_views(state: &State, tables: &Family) -> Result<Vec<PurgedRows>> {
    let mut all = Vec::new();
    for (table, view) in state.row_views.iter() {
        let (over, definition) = (Pattern::new(&view.definition.over)?, &view.definition);
        let of = |id: &TableId| state.path_of(*id).filter(|path| over.matches_path(path.as_str()));
        let mut sources: Vec<Path> = tables.keys().filter_map(of).cloned().collect();
        let Some(path) = state.path_of(table).cloned().filter(|_| !sources.is_empty()) else { continue };
        let equal = match definition.path_columns.as_slice() {
            [column] => {
                let names = sources.iter().filter_map(|source| over.variable_names(source.as_str()).ok()?.pop());
                let names: ArrayRef = Arc::new(StringArray::from_iter_values(names));
                Filter::one_of(column, &names)
            }
            _ => None,
        };
        let filter = match equal {
            Some(equal) => equal,
            None => {
                sources = state.ids_matching(&over).map(|(path, _)| path.clone()).collect();
                let kept = state.get(table)?;
                let key = kept.order().first().cloned().unwrap_or_default();
                Filter::parse(&format!("\"{}\" is not null", key.replace('"', "\"\"")))?
            }
        };
        all.push(PurgedRows { table, path, sources, filter });
    }
    Ok(all)
}
