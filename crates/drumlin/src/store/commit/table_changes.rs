//! Effects on tables that may not exist yet: numbers are given to new ones where effects are made, in the turn of their commit.

use crate::base::TableId;
use crate::catalog::{Effect, Path, State};
use crate::table::{TableChange, TableSpec};

/// The effects of one commit, on the state that they will be applied to.
pub(in crate::store) struct TableChanges {
    effects: Vec<Effect>,
    next_table: TableId,
}

impl TableChanges {
    /// On `state`, after the effects `before`, which create no table.
    pub fn on(state: &State, before: Vec<Effect>) -> Self {
        Self { effects: before, next_table: state.next_table() }
    }

    /// Makes a version of `table`, or of one that is created at `path` as `spec` says. Returns which.
    pub fn push(&mut self, table: Option<TableId>, path: &Path, spec: TableSpec, change: TableChange) -> TableId {
        let table = table.unwrap_or_else(|| {
            let table = self.next_table;
            self.next_table.0 += 1;
            self.effects.push(Effect::CreateTable { path: path.clone(), table, spec });
            table
        });
        self.effects.push(Effect::ChangeTable { table, change });
        table
    }

    pub fn into_effects(self) -> Vec<Effect> {
        self.effects
    }
}
