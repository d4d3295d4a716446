//! The sequences of tables: numbers of which none is given out twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::OrdMap;

use crate::base::TableId;

/// The next number of each sequence that has given one out, by table and name.
#[derive(Clone, Debug, Default)]
pub struct Sequences(pub(super) OrdMap<TableId, Arc<BTreeMap<String, i64>>>);

impl Sequences {
    /// The next number of a table's sequence; `None` if it has not given out any.
    pub fn next(&self, table: TableId, sequence: &str) -> Option<i64> {
        self.0.get(&table)?.get(sequence).copied()
    }

    /// The next numbers of a table's sequences.
    pub fn of(&self, table: TableId) -> Option<&BTreeMap<String, i64>> {
        self.0.get(&table).map(|next| &**next)
    }

    /// Moves sequences of a table on; none ever goes back.
    pub(super) fn advance(&mut self, table: TableId, next: &BTreeMap<String, i64>) {
        let known = Arc::make_mut(self.0.entry(table).or_default());
        for (name, next) in next {
            let known = known.entry(name.clone()).or_insert(*next);
            *known = (*known).max(*next);
        }
    }

    /// Has a table that gets rows of another give out none of the numbers that these may have.
    pub(super) fn take_in(&mut self, table: TableId, from: TableId) {
        if let Some(next) = self.0.get(&from).filter(|_| table != from).cloned() {
            self.advance(table, &next);
        }
    }

    /// Forgets a table that is gone for good.
    pub(super) fn forget(&mut self, table: TableId) {
        self.0.remove(&table);
    }
}
