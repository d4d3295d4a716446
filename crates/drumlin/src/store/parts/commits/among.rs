//! Which commits may follow others that this process does not know yet, so that another one can add them with its own.
//!
//! They write rows by key, and nothing else, and depend on nothing but the rows of keys that they have looked up, and that the tables
//! and their schemas are as they were: no commit of the same kind changes these. In a store with views or unique indexes, more depends on
//! rows, so there is none.

use crate::base::TableId;
use crate::catalog::{Footprint, Read, State, TransactionRecord};
use crate::log::Entry;

/// The tables whose rows a transaction depends on; `None` if it depends on more, or does more than to write rows.
pub(super) fn rows_read(state: &State, footprint: &Footprint, transaction: &TransactionRecord) -> Option<Vec<TableId>> {
    if state.has_unique_indexes() || !state.row_views.is_empty() {
        return None;
    }
    TransactionRecord::tables_written(std::slice::from_ref(transaction))?;
    let table = |read: &Read| match read {
        Read::Binding(_) | Read::Schema(_) => Some(None),
        Read::Keys(table, _) | Read::Rows(table) => Some(Some(*table)),
        _ => None,
    };
    Some(footprint.reads.iter().map(table).collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
}

/// The tables to which an entry of the log writes rows; `None` if it does anything else.
pub(super) fn tables_written(entry: &Entry) -> Option<Vec<TableId>> {
    TransactionRecord::tables_written(&TransactionRecord::decode(&entry.payload).ok()?)
}
