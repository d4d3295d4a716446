//! Numbers of sequences that this process has taken, and not used yet.

use std::collections::BTreeMap;
use std::ops::Range;

use parking_lot::Mutex;

use crate::base::TableId;

/// See the module. Shared by the handles of a store.
#[derive(Default)]
pub(in crate::store) struct Reserved(Mutex<BTreeMap<(TableId, String), Range<i64>>>);

impl Reserved {
    /// The first of `count` numbers in a row, if there are as many.
    pub fn take(&self, table: TableId, sequence: &str, count: i64) -> Option<i64> {
        let mut known = self.0.lock();
        let left = known.get_mut(&(table, sequence.to_owned()))?;
        let first = left.start;
        let next = first.checked_add(count).filter(|next| *next <= left.end)?;
        left.start = next;
        Some(first)
    }

    /// Keeps numbers for later calls, if they are more than what is left of earlier ones.
    pub fn keep(&self, table: TableId, sequence: &str, numbers: Range<i64>) {
        let mut known = self.0.lock();
        let left = known.entry((table, sequence.to_owned())).or_insert(0..0);
        if numbers.end - numbers.start > left.end - left.start {
            *left = numbers;
        }
    }
}
