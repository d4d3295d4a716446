//! Views: tables of groups of rows of other tables, their *sources*, which the commits that change these keep in step.
//!
//! A commit that changes a source either changes the view too, or notes that the view is *behind* with this source: then nothing is said of the
//! groups of its rows until they are made again. As all wildcards of a view's pattern are keys, a group has rows of one source only, and a source
//! is known by its path.

use std::sync::Arc;

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::aggregate::GroupBy;
use crate::base::TableId;
use crate::catalog::{Path, Pattern};

/// What a read of a view does that is behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StalePolicy {
    /// It brings the view up to date first; an error where it cannot.
    #[default]
    Wait,
    /// It is an error.
    Error,
    /// It reads what is there.
    Read,
}

/// What a view is of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ViewDefinition {
    /// The pattern of the sources.
    pub over: String,
    /// The columns that hold the names in a source's path, one for each wildcard of the pattern. They come first, and are keys.
    pub path_columns: Vec<String>,
    /// Only rows for which this is true.
    pub filter: Option<String>,
    /// The groups, by columns of the sources, and what is made of them.
    pub groups: GroupBy,
    /// What a read does if the view is behind.
    pub stale: StalePolicy,
}

/// A view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowView {
    /// What it is of.
    #[serde(with = "crate::base::json_text")]
    pub definition: Arc<ViewDefinition>,
    /// The paths of the sources with which it is behind.
    #[serde(with = "crate::base::persistent::ordered_map")]
    pub behind: OrdMap<Path, ()>,
}

impl RowView {
    /// The names in the path of a source; `None` if there is none at `path`.
    pub fn names(&self, pattern: &Pattern, path: &Path) -> Option<Vec<String>> {
        if !pattern.matches_path(path.as_str()) {
            return None;
        }
        pattern.variable_names(path.as_str()).ok()
    }
}

/// All views, by their tables.
#[derive(Clone, Debug, Default)]
pub struct RowViews(pub(super) OrdMap<TableId, RowView>);

impl RowViews {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The view that is kept in a table.
    pub fn get(&self, table: TableId) -> Option<&RowView> {
        self.0.get(&table)
    }

    /// All, by their tables.
    pub fn iter(&self) -> impl Iterator<Item = (TableId, &RowView)> {
        self.0.iter().map(|(table, view)| (*table, view))
    }

    /// Whether one is behind.
    pub fn any_behind(&self) -> bool {
        self.0.values().any(|view| !view.behind.is_empty())
    }

    /// Makes one, which is behind with no source.
    pub(super) fn put(&mut self, table: TableId, definition: &Arc<ViewDefinition>) {
        let view = RowView { definition: definition.clone(), behind: OrdMap::new() };
        self.0.insert(table, view);
    }

    /// Notes that a view is behind with sources, or is so no more.
    pub(super) fn mark(&mut self, table: TableId, sources: &[Path], behind: bool) {
        let Some(view) = self.0.get_mut(&table) else { return };
        for source in sources {
            match behind {
                true => drop(view.behind.insert(source.clone(), ())),
                false => drop(view.behind.remove(source)),
            }
        }
    }

    /// Forgets the view that was kept in a table.
    pub(super) fn forget(&mut self, table: TableId) {
        self.0.remove(&table);
    }
}
