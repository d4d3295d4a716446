//! What commits changed by key, one after the other: the rows in memory, or in a history, of each key before and after each.

use std::collections::BTreeMap;

use super::part::MemRows;
use crate::base::{Result, Seq, Timestamp};
use crate::memtable::{Keys, RowBytes};

/// The number of records that are taken at a time, unless one commit has more.
const RECORDS_MAX: usize = 1 << 18;

/// What one commit changed, in the order of the key.
#[derive(Debug, Default)]
pub struct KeyChanges {
    /// The keys of the rows.
    pub keys: Keys,
    /// The rows.
    pub rows: RowBytes,
    /// What happened to each: `delete`, `insert`, or `update_before` and `update_after`, one after the other.
    pub changes: Vec<&'static str>,
}

impl KeyChanges {
    fn push(&mut self, key: &Keys, row: &[u8], change: &'static str) {
        self.keys.push_key(key.get(0));
        self.rows.push_with(|out| out.extend_from_slice(row));
        self.changes.push(change);
    }

    /// Adds what became of a row.
    pub fn add(&mut self, key: &Keys, before: Option<&[u8]>, after: Option<&[u8]>) {
        match (before, after) {
            (None, None) => {}
            (Some(before), None) => self.push(key, before, "delete"),
            (None, Some(after)) => self.push(key, after, "insert"),
            (Some(before), Some(after)) if before == after => {}
            (Some(before), Some(after)) => {
                self.push(key, before, "update_before");
                self.push(key, after, "update_after");
            }
        }
    }
}

/// All keys that have been written up to the commit `seq`, in order.
pub fn written_keys(rows: &MemRows, seq: Seq) -> Keys {
    let mut keys = Keys::default();
    rows.memtable.range(None, None, seq).for_each(|record| record.copy_key(&mut keys));
    keys
}

/// What each commit changed that wrote after the time `after`, up to the commit `seq`; of many, only the first. `before` returns the rows
/// of keys as they were at that time. Costs what those commits wrote, whatever else is in memory.
pub fn written_after(
    rows: &MemRows,
    after: Option<Timestamp>,
    seq: Seq,
    before: impl FnOnce(&Keys) -> Result<Vec<Option<Vec<u8>>>>,
) -> Result<BTreeMap<Timestamp, KeyChanges>> {
    let done = after.map_or(Seq(0), |after| rows.last_at(after, seq));
    let times = rows.times_after(done);
    let until = match rows.memtable.nth_after(done, RECORDS_MAX) {
        // All commits of one time, which those of earlier builds may have, come together.
        Some(last) if last < seq => rows.last_at(times.at(last), seq),
        _ => seq,
    };
    let new = rows.memtable.newest_between(done, until);
    if new.is_empty() {
        return Ok(BTreeMap::new());
    }
    // The time of each record, and the record; of one commit only the newest of a key.
    let chain = |newest| {
        let mut last = None;
        std::iter::successors(Some(newest), |record: &crate::memtable::Record<'_, _>| record.before())
            .take_while(|record| record.seq() > done)
            .map(|record| (times.at(record.seq()), record))
            .filter(move |(time, _)| last.replace(*time) != Some(*time))
    };
    let mut keys = Keys::default();
    new.iter().for_each(|newest| newest.copy_key(&mut keys));
    let mut earlier = before(&keys)?.into_iter();
    let mut changes: BTreeMap<Timestamp, KeyChanges> = BTreeMap::new();
    for newest in &new {
        let mut records: Vec<_> = chain(*newest).collect();
        let mut key = Keys::default();
        newest.copy_key(&mut key);
        let mut row = earlier.next().flatten();
        records.reverse();
        for (time, record) in records {
            let now = (!record.is_delete()).then(|| {
                let mut bytes = Vec::new();
                record.copy_row(&mut bytes);
                bytes
            });
            changes.entry(time).or_default().add(&key, row.as_deref(), now.as_deref());
            row = now;
        }
    }
    Ok(changes)
}
