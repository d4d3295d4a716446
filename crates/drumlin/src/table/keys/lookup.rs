//! Rows by key: finds where they are, and returns their columns in the order of the requested keys.
//!
//! Memtables are searched first, all keys in one batched pass. The remaining keys are sorted once and searched for in
//! those row groups whose bounds do not exclude them, each in one pass over its keys, in parallel. Values are read
//! last, with one request per row group. Over a network, what is needed of all row groups is fetched together: at most
//! four rounds of requests, for directories, filters, keys and values, whatever the number of keys.
//!
//! The keys of row groups stay decoded in the cache. Of the values only the rows found are decoded, where their
//! encoding allows random access (*pick.rs*).

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::SchemaRef;

use roaring::RoaringBitmap;

use super::group_keys::{GroupKeys, candidates};
use super::key_filter::may_have;
use crate::base::planted::{Bug, planted};
use crate::base::{Cancel, Pool, Result, Timestamp, Version, span};
use crate::block::BlockReader;
use crate::filter::Verdict;
use crate::memtable::{Keys, RowBytes};
use crate::segment::interleave;
use crate::table::memory::overlay::{MemtableHit, Overlay};
use crate::table::read::group_reader::GroupReader;
use crate::table::read::select::expiry::Expiry;
use crate::table::schema::arrays::{find, into_type};
use crate::table::{Matches, ReadPoint, RowGroup, Rows, TableCodec, TableState};

/// What the keys of a row group take in the cache, about.
const KEYS_BYTES: u64 = 1 << 20;

/// Where the row of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowPlace {
    /// There is none.
    Nowhere,
    /// Written by key since: at this place of the copied rows.
    Memory(u32),
    /// In the table's row group at this place, in this row.
    Group(u32, u32),
}

/// Rows found by key.
#[derive(Clone, Debug)]
pub struct Lookup {
    /// A row for each requested key, in that order; if there is none, all columns except the key are null.
    pub rows: RecordBatch,
    /// Whether the key has a row.
    pub found: BooleanArray,
    /// When the first of these rows expires, or some time before that, if rows of the table do.
    pub until: Option<Timestamp>,
}

/// Searches a table for keys.
pub struct Searcher<'a> {
    /// Reads row groups.
    pub reader: &'a BlockReader,
    /// Searches them in parallel.
    pub pool: &'a Pool,
    /// The table.
    pub table: &'a TableState,
    /// Which of its rows are visible.
    pub read_point: ReadPoint,
    /// How its keys are encoded.
    pub codec: &'a TableCodec,
    /// Stops the search.
    pub cancel: &'a Cancel,
}

/// Keys to search for in row groups.
struct PendingKeys {
    /// Ascending.
    keys: Keys,
    /// The place of each in the request, and the first version whose rows count.
    asked: Vec<(u32, Version)>,
}

impl Searcher<'_> {
    /// The same, which finds rows that have expired, too.
    #[must_use]
    pub fn with_expired(self) -> Self {
        Self { read_point: self.read_point.with_expired(), ..self }
    }

    /// Where the rows of `keys` are. Those in memory are copied to `rows`.
    pub fn locate(&self, keys: &Keys, rows: &mut RowBytes) -> Result<Vec<RowPlace>> {
        self.locate_until(keys, rows).map(|(places, _)| places)
    }

    /// The same, and when the first of them expires, or some time before that.
    pub fn locate_until(&self, keys: &Keys, rows: &mut RowBytes) -> Result<(Vec<RowPlace>, Option<Timestamp>)> {
        let mut places = self.locate_stored(keys, rows)?;
        let next = match Expiry::at(self.table, self.read_point)? {
            Some(expiry) => self.leave_out_expired(&expiry, keys, rows, &mut places)?,
            None => None,
        };
        Ok((places, next))
    }

    /// Leaves out rows that have expired; those in memory stay among `rows`. Returns when the first of the others does, or before.
    fn leave_out_expired(
        &self,
        expiry: &Expiry,
        keys: &Keys,
        rows: &RowBytes,
        places: &mut [RowPlace],
    ) -> Result<Option<Timestamp>> {
        let mut next = None;
        // Of what statistics decide, no times are read.
        let mut decided: BTreeMap<u32, bool> = BTreeMap::new();
        for (index, _) in rows_by_group(places) {
            let reader = self.reader_of(index)?;
            let alive = match expiry.verdict(&reader) {
                Verdict::Some => continue,
                Verdict::None => true,
                Verdict::All => false,
            };
            if alive {
                next = earlier(next, expiry.next_of(&reader));
            }
            decided.insert(index, alive);
        }
        let mut open = places.to_vec();
        for (open, place) in open.iter_mut().zip(places.iter_mut()) {
            let RowPlace::Group(index, _) = *place else { continue };
            let Some(alive) = decided.get(&index) else { continue };
            *open = RowPlace::Nowhere;
            if !alive {
                *place = RowPlace::Nowhere;
            }
        }
        if open.iter().all(|place| *place == RowPlace::Nowhere) {
            return Ok(next);
        }
        // A frame may bring other columns: rows in memory have those of the version.
        let seen = expiry.schema();
        let own = (self.codec.schema() != seen).then(|| self.table.codec()).transpose()?;
        let codec = own.as_deref().unwrap_or(self.codec);
        let Self { reader, pool, table, read_point, cancel, .. } = *self;
        let searcher = Searcher { reader, pool, table, read_point, codec, cancel };
        let column = |column: &usize| match codec.is_key(*column) {
            true => Ok(codec.decode(keys, &RowBytes::default(), &[*column])?.remove(0)),
            false => Ok(searcher.values(seen, &[*column], &open, rows)?.remove(0)),
        };
        let columns = expiry.columns().iter().map(column).collect::<Result<Vec<_>>>()?;
        let asked = BooleanBuffer::collect_bool(open.len(), |at| open[at] != RowPlace::Nowhere);
        let alive = &asked & &expiry.alive_of(columns.clone(), open.len())?;
        for at in asked.set_indices().filter(|at| !alive.value(*at)) {
            places[at] = RowPlace::Nowhere;
        }
        Ok(earlier(next, expiry.next(&columns, &alive)?))
    }

    /// Where the rows of `keys` are, whether they have expired or not.
    fn locate_stored(&self, keys: &Keys, rows: &mut RowBytes) -> Result<Vec<RowPlace>> {
        let mut places = vec![RowPlace::Nowhere; keys.len()];
        let overlay = Overlay::new(self.table, self.read_point);
        let said = overlay.as_ref().map(|overlay| overlay.find_many(keys, rows));
        let mut open: Vec<(u32, Version)> = Vec::new();
        match (&overlay, said) {
            (Some(overlay), Some(said)) => {
                for (at, said) in said.into_iter().enumerate() {
                    match said {
                        Some(MemtableHit::Row(row)) => places[at] = RowPlace::Memory(row),
                        Some(MemtableHit::Deleted(version)) if !overlay.stands_beside(version) => {}
                        Some(MemtableHit::Deleted(version)) => open.push((at as u32, version)),
                        None => open.push((at as u32, Version(0))),
                    }
                }
            }
            _ => open.extend((0..keys.len() as u32).map(|at| (at, Version(0)))),
        }
        if open.is_empty() || self.table.groups.is_empty() {
            return Ok(places);
        }
        let open = match open.len() == keys.len() && keys.is_sorted() {
            true => PendingKeys { keys: keys.clone(), asked: open },
            false => {
                let left = keys.take(open.iter().map(|(at, _)| *at as usize));
                let order = left.sorted_places();
                let asked = order.iter().map(|at| open[*at as usize]).collect();
                PendingKeys { keys: left.take(order.iter().map(|at| *at as usize)), asked }
            }
        };
        // A row group of another version may have keys of another type, so that is checked first. Row groups whose known
        // bounds exclude all of the keys are skipped altogether.
        let may = |group: &RowGroup| {
            (self.table.serves(group, self.read_point.version) || planted(Bug::MixKeyTypes))
                && group.bounds.get().is_none_or(|bounds| !bounds.among(&open.keys).is_empty())
        };
        let groups: Vec<(u32, &Arc<RowGroup>)> =
            (0..).zip(&self.table.groups).filter(|(_, group)| may(group)).collect();
        let search = |(index, group): (u32, &Arc<RowGroup>)| self.search_group(index, group, &open);
        for groups in self.turns(groups, |_| Ok(KEYS_BYTES))? {
            self.fetch_keys(&groups, &open)?;
            // Finding a few keys is faster than involving other threads.
            const FEW: usize = 16;
            let found = match open.keys.len() <= FEW {
                true => groups.into_iter().map(search).collect::<Result<Vec<_>>>()?,
                false => self.pool.map(groups, search)?,
            };
            for (asked, place) in found.into_iter().flatten() {
                places[asked as usize] = place;
            }
        }
        Ok(places)
    }

    /// Row groups in turns, such that what is fetched for one fits the cache; all at once where nothing is fetched.
    fn turns<T>(&self, groups: Vec<T>, bytes: impl Fn(&T) -> Result<u64>) -> Result<Vec<Vec<T>>> {
        if !self.reader.fetches() {
            return Ok(vec![groups]);
        }
        let bytes_max = self.reader.fetch_bytes_max();
        let (mut turns, mut sum) = (Vec::<Vec<T>>::new(), 0);
        for group in groups {
            let own = bytes(&group)?;
            match turns.last_mut() {
                Some(turn) if sum + own <= bytes_max => turn.push(group),
                _ => {
                    turns.push(vec![group]);
                    sum = 0;
                }
            }
            sum += own;
        }
        Ok(turns)
    }

    /// Brings what [`Searcher::search_group`] needs of row groups into the cache, with at most three rounds of requests: for their
    /// directories, their filters, their keys.
    fn fetch_keys(&self, groups: &[(u32, &Arc<RowGroup>)], open: &PendingKeys) -> Result<()> {
        if !self.reader.fetches() {
            return Ok(());
        }
        self.cancel.check()?;
        self.reader.fetch_directories(groups.iter().flat_map(|(_, group)| group.addresses()));
        let mut searched = Vec::new();
        for (_, group) in groups {
            let reader = GroupReader::open(self.reader, self.table, self.read_point.version, group)?;
            let range = candidates(&reader, self.codec, &open.keys)?;
            let unread = !range.is_empty() && !self.reader.has_derived(&group.address);
            if unread && self.table.visible(group, self.read_point.version) != Rows::None {
                searched.push((reader, range));
            }
        }
        let filters = searched.iter().filter(|(reader, range)| self.is_filtered(reader, range));
        self.reader.fetch(filters.map(|(reader, _)| reader.wanted_filter()));
        let schema = self.codec.key_schema();
        let columns: Vec<usize> = (0..schema.fields().len()).collect();
        let mut keys = Vec::new();
        for (reader, range) in &searched {
            if !self.filtered_out(reader, range, open)? {
                keys.extend(reader.wanted(schema, &columns));
            }
        }
        self.reader.fetch(keys);
        Ok(())
    }

    /// Whether the filter of a row group is worth reading: if few keys are searched for, the row group's keys are not in the cache,
    /// and take more bytes than the filter.
    fn is_filtered(&self, reader: &GroupReader<'_>, range: &Range<usize>) -> bool {
        const FEW: usize = 64;
        let schema = self.codec.key_schema();
        range.len() <= FEW
            && !self.reader.has_derived(&reader.group.address)
            && reader.key_filter_bytes() < reader.bytes(schema, 0..schema.fields().len())
    }

    /// Whether the filter of a row group excludes all of the keys in `range`.
    fn filtered_out(&self, reader: &GroupReader<'_>, range: &Range<usize>, open: &PendingKeys) -> Result<bool> {
        if !self.is_filtered(reader, range) {
            return Ok(false);
        }
        let Some(filter) = reader.key_filter()? else { return Ok(false) };
        Ok(may_have(&filter, range.clone().map(|at| open.keys.get(at))) == Some(false))
    }

    /// The keys that a row group holds, with their places.
    fn search_group(&self, index: u32, group: &RowGroup, open: &PendingKeys) -> Result<Vec<(u32, RowPlace)>> {
        self.cancel.check()?;
        let reader = GroupReader::open(self.reader, self.table, self.read_point.version, group)?;
        let range = candidates(&reader, self.codec, &open.keys)?;
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let visible = self.table.visible(group, self.read_point.version);
        if visible == Rows::None {
            return Ok(Vec::new());
        }
        if self.filtered_out(&reader, &range, open)? {
            return Ok(Vec::new());
        }
        let keys = GroupKeys::of(&reader, self.codec)?;
        let mut found = Vec::new();
        keys.find(&open.keys, range, |at, row| {
            let (asked, from) = open.asked[at];
            let seen = match &visible {
                Rows::Some(rows) => rows.contains(row),
                _ => true,
            };
            if seen && (from.0 == 0 || group.born(row).is_some_and(|born| born >= from)) {
                found.push((asked, RowPlace::Group(index, row)));
            }
        });
        Ok(found)
    }

    /// The rows of `keys`: the columns called `columns`, or all. `key_columns` are the keys as requested.
    pub fn get_many(&self, keys: &Keys, key_columns: &[ArrayRef], columns: Option<&[String]>) -> Result<Lookup> {
        let schema = self.codec.schema();
        let chosen: Option<Vec<usize>> =
            columns.map(|names| names.iter().map(|name| find(schema, name)).collect()).transpose()?;
        let answer = self.codec.answer_schema(chosen.as_deref());
        let columns = chosen.unwrap_or_else(|| (0..schema.fields().len()).collect());
        span!("get_many", keys = keys.len());
        self.reader.metrics().keys.add(keys.len() as u64);
        let mut rows = RowBytes::default();
        let (places, until) = self.locate_until(keys, &mut rows)?;
        let found = found_at(&places);
        let others: Vec<usize> = columns.iter().copied().filter(|column| !self.codec.is_key(*column)).collect();
        let mut values = self.values(schema, &others, &places, &rows)?.into_iter();
        let arrays = columns.iter().map(|&column| match self.codec.key_position(column) {
            Some(at) => into_type(key_columns[at].clone(), schema.field(column).data_type()),
            None => Ok(values.next().expect("one for each other column")),
        });
        let arrays: Vec<ArrayRef> = arrays.collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(keys.len()));
        Ok(Lookup { rows: RecordBatch::try_new_with_options(answer, arrays, &options)?, found, until })
    }

    /// Columns other than the key, of the rows at `places`.
    fn values(
        &self,
        schema: &SchemaRef,
        columns: &[usize],
        places: &[RowPlace],
        rows: &RowBytes,
    ) -> Result<Vec<ArrayRef>> {
        if columns.is_empty() {
            return Ok(Vec::new());
        }
        let own = self.codec.decode_others(rows, columns)?;
        // All found in memory, in order: used as they are.
        if places.len() == rows.len() && places.iter().zip(0..).all(|(place, at)| *place == RowPlace::Memory(at)) {
            return Ok(own);
        }
        let groups = rows_by_group(places);
        let read = |(index, rows): &(u32, Vec<u32>)| self.reader_of(*index)?.pick(schema, columns, rows);
        let bytes = |(index, _): &&(u32, Vec<u32>)| Ok(self.reader_of(*index)?.bytes(schema, columns.iter().copied()));
        let mut read_columns: Vec<Vec<ArrayRef>> = Vec::new();
        for groups in self.turns(groups.iter().collect(), bytes)? {
            if self.reader.fetches() {
                let readers = groups.iter().map(|(index, _)| self.reader_of(*index)).collect::<Result<Vec<_>>>()?;
                self.reader.fetch(readers.iter().flat_map(|reader| reader.wanted(schema, columns)));
            }
            match groups.as_slice() {
                [] => {}
                [one] => read_columns.push(read(one)?),
                _ => read_columns.extend(self.pool.map(groups, read)?),
            }
        }
        // The first source is a null, the second holds the rows found in memory.
        let source: BTreeMap<u32, usize> = groups.iter().enumerate().map(|(at, (index, _))| (*index, at)).collect();
        let place = |place: &RowPlace| match place {
            RowPlace::Nowhere => (0, 0),
            RowPlace::Memory(row) => (1, *row as usize),
            RowPlace::Group(group, row) => {
                let at = source[group];
                (at + 2, groups[at].1.binary_search(row).expect("read for it"))
            }
        };
        let places: Vec<(usize, usize)> = places.iter().map(place).collect();
        let column = |at: usize| -> Result<ArrayRef> {
            let null = new_null_array(own[at].data_type(), 1);
            let sources =
                [null, own[at].clone()].into_iter().chain(read_columns.iter().map(|columns| columns[at].clone()));
            interleave(&sources.collect::<Vec<_>>(), &places)
        };
        (0..columns.len()).map(column).collect()
    }

    /// A row group, to be read.
    fn reader_of(&self, index: u32) -> Result<GroupReader<'_>> {
        self.cancel.check()?;
        GroupReader::open(self.reader, self.table, self.read_point.version, &self.table.groups[index as usize])
    }

    /// The rows of row groups among `places`, by row group.
    pub fn matches(&self, places: &[RowPlace]) -> Vec<Matches> {
        let matches = |(index, rows): (u32, Vec<u32>)| Matches {
            group: self.table.groups[index as usize].id,
            rows: RoaringBitmap::from_sorted_iter(rows).expect("in order"),
        };
        rows_by_group(places).into_iter().map(matches).collect()
    }
}

/// The earlier of two instants, if there is one.
fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

/// Which places hold a row.
fn found_at(places: &[RowPlace]) -> BooleanArray {
    let mut bits = vec![0_u8; places.len().div_ceil(8)];
    for (at, _) in places.iter().enumerate().filter(|(_, place)| **place != RowPlace::Nowhere) {
        bits[at / 8] |= 1 << (at % 8);
    }
    BooleanArray::from(BooleanBuffer::new(bits.into(), 0, places.len()))
}

/// The rows among `places` that are in row groups: for each row group, in order, its rows, ascending and without
/// duplicates.
fn rows_by_group(places: &[RowPlace]) -> Vec<(u32, Vec<u32>)> {
    let mut groups: Vec<(u32, Vec<u32>)> = Vec::new();
    let mut known: BTreeMap<u32, usize> = BTreeMap::new();
    for place in places {
        let RowPlace::Group(group, row) = *place else { continue };
        // Consecutive places are usually in the same one.
        match groups.last_mut().filter(|(last, _)| *last == group) {
            Some((_, rows)) => rows.push(row),
            None => match known.get(&group) {
                Some(&at) => groups[at].1.push(row),
                None => {
                    known.insert(group, groups.len());
                    groups.push((group, vec![row]));
                }
            },
        }
    }
    groups.sort_unstable_by_key(|(group, _)| *group);
    for (_, rows) in &mut groups {
        if !rows.is_sorted() {
            rows.sort_unstable();
        }
        rows.dedup();
    }
    groups
}
