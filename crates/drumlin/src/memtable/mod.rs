//! The memtable: row writes not yet in row groups, by key. Knows neither tables nor types: keys and rows are bytes.
//!
//! There is one writer, which holds a lock, and any number of readers, which hold none, never wait and never
//! revalidate. All memory is one arena that only grows, and is freed when the last reader releases the memtable. Each
//! key has one entry in the index, which refers to its newest record; each record refers to the one before it. Of each
//! key, a reader sees the newest record of a commit that it may see.
//!
//! A row is bytes, not a slot in columnar batches: a look-up touches one place instead of one a column, and a commit of
//! one row costs no batch of its own.

mod arena;
mod index;
mod keys;
mod leaves;
mod raw;
mod record;
#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;

use crate::base::{Error, Result, Seq};
use arena::{Addr, Arena, WORDS_MAX};
use index::{FIRST_FREE, RadixTree};
pub use keys::{KEY_BYTES_MAX, Key, Keys};
use leaves::Leaves;
pub use raw::Word;
pub use record::Record;
use record::{record_words, write_record};

/// The rows of a list of keys, as bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowBytes {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl RowBytes {
    /// Rows that end at these places of `bytes`, ascending.
    pub fn new(bytes: Vec<u8>, ends: Vec<usize>) -> Self {
        Self { bytes, ends }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The row at a place.
    #[inline]
    pub fn get(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[start..self.ends[at]]
    }

    /// A copy of the rows at these places.
    #[must_use]
    pub fn slice(&self, places: std::ops::Range<usize>) -> Self {
        let end = |at: usize| if at == 0 { 0 } else { self.ends[at - 1] };
        let start = end(places.start);
        let bytes = self.bytes[start..end(places.end).max(start)].to_vec();
        Self { bytes, ends: self.ends[places].iter().map(|end| end - start).collect() }
    }

    /// Makes room for `rows` more rows of `bytes` bytes in all.
    pub fn reserve(&mut self, rows: usize, bytes: usize) {
        self.ends.reserve(rows);
        self.bytes.reserve(bytes);
    }

    /// Adds the row that `write` appends.
    #[inline]
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Bytes used in memory.
    pub fn memory_bytes(&self) -> u64 {
        (self.bytes.len() + self.ends.len() * size_of::<usize>()) as u64
    }
}

/// Keys whose places are looked up together before they are inserted.
const AHEAD: usize = 32;
/// Leaves that a scan prefetches at a time.
const SCAN_AHEAD: usize = 64;

/// An ordered, multi-version write buffer. `W` is the type of its words: the machine's, except under a concurrency
/// checker.
pub struct Memtable<W: Word = AtomicU64> {
    arena: Arena<W>,
    writer: Mutex<WriterState>,
    /// Distinct keys.
    keys: AtomicU64,
    /// Words in use.
    words: AtomicU64,
    /// The records in the order in which they were made.
    made: Mutex<Vec<Addr>>,
}

/// What only the writer needs.
struct WriterState {
    /// The first word that is free.
    free: u64,
    last: Seq,
}

impl<W: Word> Default for Memtable<W> {
    fn default() -> Self {
        let arena = Arena::new();
        arena.reserve(0, FIRST_FREE);
        let writer = Mutex::new(WriterState { free: FIRST_FREE, last: Seq(0) });
        let (keys, words) = (AtomicU64::new(0), AtomicU64::new(FIRST_FREE));
        Self { arena, writer, keys, words, made: Mutex::default() }
    }
}

impl<W: Word> std::fmt::Debug for Memtable<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memtable").field("keys", &self.keys()).field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

impl<W: Word> Memtable<W> {
    /// An empty memtable; takes 4 KiB.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of distinct keys, including deleted ones.
    pub fn keys(&self) -> u64 {
        self.keys.load(Relaxed)
    }

    /// Bytes in use.
    pub fn bytes(&self) -> u64 {
        self.words.load(Relaxed) * 8
    }

    /// Adds a record for each key, made by the commit `seq`, which must not be below any earlier one: with the row of the
    /// same place, or a delete if there are no `rows`. Of equal keys, the last wins. Readers see the records as soon as
    /// they may see `seq`. O(length) per key.
    ///
    /// `Unavailable` if its 4 GiB are full, `InvalidArgument` if a key is a prefix of another or longer than
    /// [`KEY_BYTES_MAX`]. Some keys may have been added by then, so the memtable can no longer be used for `seq`.
    pub fn insert(&self, keys: &Keys, rows: Option<&RowBytes>, seq: Seq) -> Result<()> {
        let mut writer = self.writer.lock();
        assert!(seq >= writer.last, "commits come in order");
        assert!(rows.is_none_or(|rows| rows.len() == keys.len()), "a row for each key");
        writer.last = seq;
        let index = self.index();
        let mut free = writer.free;
        let mut reserve = |words: u64| -> Result<Addr> {
            let full = || Error::unavailable("the memory for rows written by key is full; checkpoint the store first");
            let addr = self.arena.reserve(free, words).ok_or_else(full)?;
            free = addr + words;
            Ok(addr as Addr)
        };
        let (mut fresh, mut made) = (0, Vec::with_capacity(keys.len()));
        let done = keys.iter().enumerate().try_for_each(|(at, key)| {
            if at % AHEAD == 0 && keys.len() > 1 {
                // The places of the next keys are brought into the cache, all at once.
                let next = at..keys.len().min(at + AHEAD);
                index.find_many(next.map(|at| keys.get(at)), |_, _| {});
            }
            if key.len() > KEY_BYTES_MAX {
                let bytes = key.len();
                return Err(Error::invalid(format!("a key takes {bytes} bytes; expected at most {KEY_BYTES_MAX}")));
            }
            let row = rows.map(|rows| rows.get(at));
            let place = index.place(key);
            let before = place.record;
            fresh += u64::from(before.is_none());
            let addr = reserve(record_words(key, row.unwrap_or_default()))?;
            write_record(&self.arena, addr, key, row, seq, before);
            made.push(addr);
            index.put(key, addr, place, &mut reserve)
        });
        let records = {
            let mut all = self.made.lock();
            all.extend(made);
            all.len() as u64
        };
        writer.free = free;
        self.words.store(free + records.div_ceil(2), Relaxed);
        self.keys.store(self.keys() + fresh, Relaxed);
        done
    }

    /// The newest record of `key` that `seq` sees. A delete is a record.
    #[inline]
    pub fn get(&self, key: Key<'_>, seq: Seq) -> Option<Record<'_, W>> {
        self.index().find(key)?.as_of(seq)
    }

    /// Looks up many keys, in groups whose cache misses overlap: calls `found`, in no order, with the place of each key
    /// that has a record visible at `seq`, and with that record. Keys may occur twice.
    #[inline]
    pub fn get_many<'a>(
        &'a self,
        keys: impl Iterator<Item = Key<'a>> + Clone,
        seq: Seq,
        mut found: impl FnMut(usize, Record<'a, W>),
    ) {
        self.index().find_many(keys, |at, record| {
            if let Some(record) = record.as_of(seq) {
                found(at, record);
            }
        });
    }

    /// The newest records that `seq` sees, in ascending order of their keys, from `from` on and below `until`.
    pub fn range<'a>(&'a self, from: Option<Key<'a>>, until: Option<Key<'a>>, seq: Seq) -> Range<'a, W> {
        let leaves = self.index().leaves(from);
        Range { memtable: self, leaves, ahead: [0; SCAN_AHEAD], next: 0, count: 0, until, seq }
    }

    /// The commit that made the record which is number `n`, from one on, of those that commits after `since` made; `None` if there are
    /// fewer. O(log records).
    pub fn nth_after(&self, since: Seq, n: usize) -> Option<Seq> {
        let made = self.made.lock();
        let first = self.made_until(&made, since);
        made.get(first + n - 1).map(|addr| Record::new(&self.arena, *addr).seq())
    }

    /// Of each key that commits after `since` have written, up to the commit `until`, the newest record of these, in the order of the keys.
    /// Costs what those commits wrote, whatever else there is.
    pub fn newest_between(&self, since: Seq, until: Seq) -> Vec<Record<'_, W>> {
        let addrs: Vec<Addr> = {
            let made = self.made.lock();
            made[self.made_until(&made, since)..self.made_until(&made, until)].to_vec()
        };
        let record = |addr: &Addr| Record::new(&self.arena, *addr);
        let mut replaced: Vec<Addr> = addrs.iter().filter_map(|addr| Some(record(addr).before()?.addr())).collect();
        replaced.sort_unstable();
        let newest: Vec<_> = addrs.iter().filter(|addr| replaced.binary_search(addr).is_err()).map(record).collect();
        let mut keys = Keys::default();
        newest.iter().for_each(|record| record.copy_key(&mut keys));
        keys.sorted_places().into_iter().map(|place| newest[place as usize]).collect()
    }

    /// The number of records.
    pub fn records(&self) -> usize {
        self.made.lock().len()
    }

    /// The records with these numbers, from zero on, in the order in which they were made.
    pub fn records_at(&self, numbers: impl Iterator<Item = u32>) -> Vec<Record<'_, W>> {
        let made = self.made.lock();
        numbers.map(|number| Record::new(&self.arena, made[number as usize])).collect()
    }

    /// The records from a number on.
    pub fn records_from(&self, number: usize) -> Vec<Record<'_, W>> {
        self.made.lock()[number..].iter().map(|addr| Record::new(&self.arena, *addr)).collect()
    }

    /// The number of the records that commits up to `seq` made.
    fn made_until(&self, made: &[Addr], seq: Seq) -> usize {
        made.partition_point(|addr| Record::new(&self.arena, *addr).seq() <= seq)
    }

    /// `Corrupt` if a record that `seq` sees is not what was written, or is in the wrong place. Reads the whole
    /// memtable.
    pub fn verify(&self, seq: Seq) -> Result<()> {
        let mut last = Keys::default();
        for record in self.range(None, None, seq) {
            let mut key = Keys::default();
            if !record.is_sound() {
                return Err(Error::corrupt("a row in memory is not the one that was written"));
            }
            record.copy_key(&mut key);
            let found = self.get(key.get(0), seq).is_some_and(|found| found.addr() == record.addr());
            if !found || (!last.is_empty() && last.get(0) >= key.get(0)) {
                return Err(Error::corrupt("a key in memory is in the wrong place"));
            }
            last = key;
        }
        Ok(())
    }

    fn index(&self) -> RadixTree<'_, W> {
        RadixTree { arena: &self.arena }
    }
}

/// Records in the order of their keys.
pub struct Range<'a, W: Word> {
    memtable: &'a Memtable<W>,
    leaves: Leaves<'a, W>,
    /// Prefetched records.
    ahead: [Addr; SCAN_AHEAD],
    next: usize,
    count: usize,
    until: Option<Key<'a>>,
    seq: Seq,
}

impl<'a, W: Word> Iterator for Range<'a, W> {
    type Item = Record<'a, W>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.next == self.count {
                (self.next, self.count) = (0, 0);
                while self.count < SCAN_AHEAD
                    && let Some(leaf) = self.leaves.advance()
                {
                    self.memtable.index().ask_for_record(leaf);
                    self.ahead[self.count] = leaf;
                    self.count += 1;
                }
                if self.count == 0 {
                    return None;
                }
            }
            let record = Record::new(&self.memtable.arena, self.ahead[self.next]);
            self.next += 1;
            if self.until.is_some_and(|until| record.compare_key(until).is_ge()) {
                self.leaves.end();
                (self.count, self.next) = (0, 0);
                return None;
            }
            if let Some(record) = record.as_of(self.seq) {
                return Some(record);
            }
        }
    }
}

const _: () = assert!(WORDS_MAX <= 1 << 29, "a reference has 29 bits of address");
