//! Has views catch up that a commit has left behind.

use std::collections::BTreeSet;

use crate::base::WarningKind;
use crate::catalog::{Path, State};
use crate::store::Store;

impl Store {
    /// Catches up with the sources that a commit has left views behind with, which led from `before` to `after`. What fails is a warning: the
    /// commit is made.
    pub(in crate::store) fn catch_up_views_after(&self, before: &State, after: &State) {
        for (table, view) in after.row_views.iter() {
            let known = before.row_views.get(table);
            if known.is_some_and(|known| known.behind.ptr_eq(&view.behind)) {
                continue;
            }
            let new = |path: &&Path| known.is_none_or(|known| !known.behind.contains_key(*path));
            let sources: BTreeSet<Path> = view.behind.keys().filter(new).cloned().collect();
            if sources.is_empty() {
                continue;
            }
            if let Err(e) = self.catch_view_up(table, Some(&sources)) {
                self.env().warn.say(WarningKind::ViewBehind, || {
                    let path = after.path_of(table).map_or_else(String::new, ToString::to_string);
                    format!("the view '{path}' is behind with {} of its sources: {e}", sources.len())
                });
            }
        }
    }
}
