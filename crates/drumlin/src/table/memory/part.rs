//! Row writes to a keyed table that are not yet in row groups.
//!
//! They are stored in *parts*, each a memtable. The newest part accepts writes. An operation that numbers a version (a
//! bulk write, a snapshot, a checkpoint) freezes it, so that its rows belong to that version, and a checkpoint turns
//! frozen parts into row groups, the oldest first.
//!
//! Invariants. For each key, the newest record in the newest part decides: a row is the key's row, a delete says that
//! it has none here; either hides all rows of the key in row groups that were born before the part's version. A row
//! group can have a row of that version or a later one only if the part has a delete.
//!
//! So a bulk write looks at memory only to delete, by key, what it replaces there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};

use super::sorted_values::SortedValues;
use super::values::PartValues;
use crate::base::planted::{Bug, planted};
use crate::base::{Result, Seq, Timestamp, Version};
use crate::memtable::Memtable;
use crate::table::{GroupId, NewGroup, Positions, PreparedRows, StoredSchema, TableCodec, TableIndex};

/// A memtable and how its rows are encoded.
#[derive(Debug)]
pub struct MemRows {
    /// Keys and rows.
    pub memtable: Memtable,
    /// How they are encoded.
    pub codec: Arc<TableCodec>,
    times: Mutex<Times>,
    /// Whether later commits put their rows elsewhere.
    left: AtomicBool,
    /// What is written to unique indexes, from the first write on that knew of each.
    values: RwLock<Vec<Arc<PartValues>>>,
    /// What rows have in indexes, as reads have asked for it.
    sorted: Mutex<Vec<Arc<SortedValues>>>,
}

/// The times of commits, in order.
#[derive(Clone, Debug, Default)]
pub struct Times(Vec<(Seq, Timestamp)>);

impl Times {
    /// The time of a commit; for an unknown one, that of the next known one.
    pub fn at(&self, seq: Seq) -> Timestamp {
        let at = self.0.partition_point(|(known, _)| *known < seq);
        self.0.get(at).map_or(Timestamp(i64::MAX), |(_, time)| *time)
    }
}

impl MemRows {
    /// Rows in `memtable`, which is still empty.
    pub fn new(memtable: Memtable, codec: Arc<TableCodec>) -> Self {
        let (times, left, values) = (Mutex::default(), AtomicBool::new(false), RwLock::default());
        Self { memtable, codec, times, left, values, sorted: Mutex::default() }
    }

    /// Notes from now on what is written to the unique ones of `indexes`; the rows have `schema`.
    pub(in crate::table) fn watch_values(&self, indexes: &[TableIndex], schema: &StoredSchema) -> Result<()> {
        for index in indexes.iter().filter(|index| index.definition.is_unique()) {
            if self.values_of(index).is_some() {
                continue;
            }
            // While this is held, nothing is written.
            let mut all = self.values.write();
            if let Some(values) = PartValues::of(index, schema, self.memtable.keys() == 0)? {
                all.push(Arc::new(values));
            }
        }
        Ok(())
    }

    /// What was written to an index since it was there; `None` if nothing was.
    pub(in crate::table) fn values_of(&self, index: &TableIndex) -> Option<Arc<PartValues>> {
        self.values.read().iter().find(|values| values.is_of(index)).cloned()
    }

    /// What the rows, which have `schema`, have in `index`, one of `indexes`; `None` if they lack a column of it.
    pub(in crate::table) fn sorted_values(
        &self,
        index: &TableIndex,
        indexes: &[TableIndex],
        schema: &StoredSchema,
    ) -> Result<Option<Arc<SortedValues>>> {
        let mut sorted = self.sorted.lock();
        if let Some(own) = sorted.iter().find(|own| own.is_of(index)) {
            return Ok(Some(own.clone()));
        }
        sorted.retain(|own| indexes.iter().any(|index| own.is_of(index)));
        let own = SortedValues::of(index, schema)?.map(Arc::new);
        sorted.extend(own.clone());
        Ok(own)
    }

    /// Puts rows into the memtable that the commit `seq` wrote. Returns their bytes.
    pub(in crate::table) fn put(&self, rows: &PreparedRows, seq: Seq, time: Timestamp) -> Result<u64> {
        self.note(seq, time);
        let values = self.values.read();
        let noted: u64 = values.iter().map(|values| values.note(&self.codec, rows, seq)).sum();
        self.memtable.insert(&rows.deletes, None, seq)?;
        self.memtable.insert(&rows.puts, Some(&rows.rows), seq)?;
        Ok(rows.memory_bytes() + noted)
    }

    /// Bytes in memory, about.
    pub fn memory_bytes(&self) -> u64 {
        let values = self.values.read().iter().map(|values| values.memory_bytes()).sum::<u64>();
        let sorted = self.sorted.lock().iter().map(|values| values.memory_bytes()).sum::<u64>();
        self.memtable.bytes() + values + sorted
    }

    /// Notes that later commits put their rows elsewhere: the state was read again as a whole, with memtables of its own.
    pub fn leave(&self) {
        self.left.store(true, Ordering::SeqCst);
    }

    /// Whether rows of later commits may be missing here.
    pub fn is_left(&self) -> bool {
        self.left.load(Ordering::SeqCst) && !planted(Bug::TrustLeftRows)
    }

    /// Notes the time of a commit that wrote rows.
    pub fn note(&self, seq: Seq, time: Timestamp) {
        let mut times = self.times.lock();
        if times.0.last().is_none_or(|(last, _)| *last < seq) {
            times.0.push((seq, time));
        }
    }

    /// The times of the commits that wrote rows.
    pub fn times(&self) -> Times {
        self.times.lock().clone()
    }

    /// The times of those after the commit `since`.
    pub fn times_after(&self, since: Seq) -> Times {
        let times = self.times.lock();
        let first = times.0.partition_point(|(known, _)| *known <= since);
        Times(times.0[first..].to_vec())
    }

    /// The last commit up to `seq` whose time is `time` or earlier; `Seq(0)` if there is none.
    pub fn last_at(&self, time: Timestamp, seq: Seq) -> Seq {
        let times = self.times.lock();
        let until = times.0.partition_point(|(own, at)| *at <= time && *own <= seq);
        until.checked_sub(1).map_or(Seq(0), |at| times.0[at].0)
    }
}

/// Part of a [`crate::table::TableState`] that is only in memory: rebuilt when a table is read.
#[derive(Clone, Debug)]
pub struct InMemory<T>(pub T);

impl<T> PartialEq for InMemory<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for InMemory<T> {}

impl<T: Default> Default for InMemory<T> {
    fn default() -> Self {
        Self(T::default())
    }
}

/// Rows that a commit wrote, still to be put in their part's memtable.
pub type Unsettled = (Arc<MemRows>, Arc<PreparedRows>);

/// Row writes that one version numbers, or will.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemtablePart {
    /// The version that its rows belong to: the next one, while it accepts writes.
    pub version: Version,
    /// The commit that began it.
    pub from: Seq,
    /// Whether that version is numbered.
    pub frozen: bool,
    /// The first version that no longer sees its rows; [`ALIVE`](crate::table::ALIVE) if none.
    pub died: Version,
    /// Which of the table's schemas its rows have.
    pub schema: u32,
    /// Its rows. `None` only while a state is being read.
    #[serde(skip)]
    pub(in crate::table) rows: InMemory<Option<Arc<MemRows>>>,
}

impl MemtablePart {
    /// Its rows.
    pub fn rows(&self) -> &Arc<MemRows> {
        self.rows.0.as_ref().expect("restored with the state")
    }

    /// Whether no version sees its rows, because they were overwritten before one was numbered. Reads at a time do see
    /// them.
    pub fn is_unseen(&self) -> bool {
        self.frozen && self.died <= self.version
    }
}

/// Turns the oldest part into row groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flush {
    /// The part's version.
    pub version: Version,
    /// Row groups with its rows.
    pub groups: Vec<NewGroup>,
    /// The rows that it hid.
    pub deletions: Vec<(GroupId, Positions)>,
}
