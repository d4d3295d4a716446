//! Whether the rows of a table keep its unique indexes.
//!
//! What is judged is a result: the newest version of a table as a commit would leave it, with the rows written by key since. Of the
//! values that the commit adds, none may be there twice. So it does not matter by which call rows come, or which they replace: rows that
//! change values with each other in one commit are fine.
//!
//! The rows that may have one of the values are read as any filter finds them: by the index itself, where there are few values. Values
//! with a null are not compared with any. Values are compared by hash first, and where two hashes are equal, themselves.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::datatypes::SchemaRef;
use foldhash::fast::FixedState;
use roaring::RoaringBitmap;

use super::compared::{Compared, Hashes, hashes_of, meets, named_batch};
use super::definition::{BoundIndex, NamedIndex};
use crate::base::planted::{Bug, planted};
use crate::base::{Pool, Result, Seq};
use crate::block::{Address, BlockReader};
use crate::filter::{BoundFilter, Filter};
use crate::segment::{filter_batch, join_batches};
use crate::table::index::mask::{Asked, Mask};
use crate::table::memory::overlay::Overlay;
use crate::table::read::group_reader::GroupReader;
use crate::table::read::select::expiry::Expiry;
use crate::table::read::select::truth::matching;
use crate::table::schema::arrays::find;
use crate::table::{Constants, KeyRange, ReadAs, ReadPoint, RowGroup, Rows, TableIndex, TableState};

/// More values than these are looked for by a scan, rather than by a filter that lists them.
const LISTED_MAX: usize = 10_000;

/// At most the hashes of this number of values are held at once; more values are judged in parts.
const HELD_MAX: u64 = 8 << 20;

/// The values that a commit adds to an index, which no other row has.
#[derive(Clone, Debug)]
pub struct SoundValues {
    /// The number of the index.
    pub index: u64,
    /// Their hashes; `None` if they are too many to be held.
    hashes: Option<Hashes>,
}

/// What became of a comparison.
#[derive(Debug)]
pub enum Judged {
    /// No two rows have the same values.
    Sound(SoundValues),
    /// Two rows have these.
    Twice(String),
}

/// A table as a commit would leave it.
#[derive(Clone, Copy)]
pub struct Judge<'a> {
    /// What reads its row groups.
    pub reader: &'a BlockReader,
    /// What reads in parallel.
    pub pool: &'a Pool,
    /// The table.
    pub table: &'a TableState,
    /// What a reader would see of it.
    pub read_point: ReadPoint,
    /// What it was before, where its rows are known to be sound. `None`: all its rows are compared.
    pub then: Option<&'a TableState>,
}

/// How rows with some values are looked for.
struct ValueSearch<'a> {
    index: &'a TableIndex,
    bound: BoundIndex,
    schema: &'a SchemaRef,
    /// What is true for those in row groups, if the values are few.
    filter: Option<BoundFilter>,
    mask: Option<Mask>,
    /// The column of the first value, and where the values lie.
    range: Option<(usize, KeyRange)>,
}

impl<'a> Judge<'a> {
    /// Whether the rows that were added are the only ones with their values. O(values added), if they are few and the index covers the
    /// rest; else O(rows).
    ///
    /// # Errors
    /// `InvalidArgument` or `SchemaMismatch` if a value cannot be computed; as reads of row groups.
    pub fn judge(&self, index: &'a TableIndex) -> Result<Judged> {
        let seen = self.table.schema_of(self.read_point.version)?;
        let nothing = || Judged::Sound(SoundValues { index: index.id, hashes: Some(Hashes::default()) });
        let Some(mut named) = index.definition.named(seen)? else { return Ok(nothing()) };
        named.condition = named.condition.filter(|_| !planted(Bug::CompareAllRows));
        let added = self.added(index)?;
        let rows = added.iter().map(|(group, rows)| rows.count(group.rows)).sum::<u64>() + self.added_in_memory();
        if rows == 0 {
            return Ok(nothing());
        }
        let mut search =
            ValueSearch { index, bound: named.bound(seen)?, schema: &seen.0, filter: None, mask: None, range: None };
        let passes = rows.div_ceil(HELD_MAX);
        let mut all = Hashes::default();
        for pass in 0..passes {
            let mut counts: HashMap<u64, u32, FixedState> = HashMap::default();
            // The rows themselves, to list their values.
            let mut listed = Vec::new();
            self.for_added(&search, &added, |batch| {
                let base = u32::from(planted(Bug::JudgeBase));
                let hashes = hashes_of(&search.bound, &batch)?.into_iter().flatten();
                counts.extend(hashes.filter(|hash| passes == 1 || hash % passes == pass).map(|hash| (hash, base)));
                listed.extend((passes == 1).then_some(batch));
                Ok(())
            })?;
            if counts.is_empty() {
                continue;
            }
            search = self.narrowed(search, &named, listed)?;
            if let Some(values) = self.twice(&search, &mut counts)? {
                return Ok(Judged::Twice(values));
            }
            all.extend(counts.into_keys().filter(|_| passes == 1));
        }
        Ok(Judged::Sound(SoundValues { index: index.id, hashes: (passes == 1).then_some(all) }))
    }

    /// The same search for the values of the rows of `added` alone.
    fn narrowed(
        &self,
        search: ValueSearch<'a>,
        named: &NamedIndex,
        added: Vec<RecordBatch>,
    ) -> Result<ValueSearch<'a>> {
        let Some(first) = added.first() else { return Ok(search) };
        let schema = search.schema;
        let column = named.values[0].as_column().map(|name| find(schema, name)).transpose()?;
        let name = column.map(|at| schema.field(at).name().clone());
        let range = name.map(|name| KeyRange::of(&added, &[name])).transpose()?.flatten();
        let range = column.zip(range);
        if added.iter().map(RecordBatch::num_rows).sum::<usize>() > LISTED_MAX {
            return Ok(ValueSearch { range, ..search });
        }
        let (values, _) = search.bound.values(&join_batches(&first.schema(), &added)?)?;
        let listed = named.values.iter().zip(&values).filter_map(|(value, list)| value.one_of(list));
        let Some(filter) = Filter::all_of(named.condition.iter().flat_map(Filter::terms).chain(listed)) else {
            return Ok(ValueSearch { range, ..search });
        };
        let (read_as, version) = (ReadAs::new(schema.clone(), Constants::new()), self.read_point.version);
        let (reader, pool, table) = (self.reader, self.pool, self.table);
        let mask = Asked { reader, pool, table, version, read_as: &read_as, limit: None }.mask(&filter)?;
        Ok(ValueSearch { filter: Some(filter.bind(schema)?), mask, range, ..search })
    }

    /// Row groups with rows that may not have been there before, and these.
    fn added(&self, index: &TableIndex) -> Result<Vec<(Arc<RowGroup>, Rows)>> {
        let (table, version) = (self.table, self.read_point.version);
        let before = self.then.and_then(|then| Some((then, then.newest()?.version)));
        let Some((then, old)) = before else {
            let shown = |group: &Arc<RowGroup>| (group.clone(), table.visible(group, version));
            return Ok(table.groups.iter().map(shown).filter(|(_, rows)| *rows != Rows::None).collect());
        };
        let columns = index.definition.columns()?;
        let same = table.groups.iter().zip(then.groups.iter()).take_while(|(a, b)| version >= old && Arc::ptr_eq(a, b));
        let same = same.count();
        let known: HashMap<_, &Arc<RowGroup>> = then.groups.iter().skip(same).map(|group| (group.id, group)).collect();
        let mut added = Vec::new();
        for group in table.groups.iter().skip(same) {
            let rows = table.visible(group, version);
            let before = known.get(&group.id).filter(|before| {
                let decided = group.decided_by(&table.schemas, columns);
                let all = || group.addresses().eq(before.addresses());
                decided.is_some() && decided == before.decided_by(&then.schemas, columns) || all()
            });
            let rows = match before {
                Some(before) => rows.without(&then.visible(before, old), group.rows),
                None => rows,
            };
            if rows != Rows::None {
                added.push((group.clone(), rows));
            }
        }
        Ok(added)
    }

    /// How many rows were written by key.
    fn added_in_memory(&self) -> u64 {
        match self.then {
            Some(_) => self.table.unsettled.0.iter().map(|(_, rows)| rows.puts.len() as u64).sum(),
            None => Overlay::new(self.table, self.read_point).map_or(0, |overlay| overlay.keys_at_most()),
        }
    }

    /// Gives the columns of the index in the rows that were added, batch by batch.
    fn for_added(
        &self,
        search: &ValueSearch<'_>,
        added: &[(Arc<RowGroup>, Rows)],
        mut give: impl FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let (table, version, columns) = (self.table, self.read_point.version, &search.bound.columns);
        for some in added.chunks(self.pool.threads() * 2) {
            let read = self.pool.map(some.iter().collect(), |(group, rows)| {
                let reader = GroupReader::open(self.reader, table, version, group)?;
                let picked = rows.positions(group.rows);
                let values = reader.some_rows(search.schema, columns, &picked)?;
                named_batch(search.schema, columns, values, picked.len() as usize)
            })?;
            read.into_iter().try_for_each(&mut give)?;
        }
        if self.then.is_none() {
            return self.in_memory(search, None)?.map_or(Ok(()), give);
        }
        for (part, rows) in &table.unsettled.0 {
            let values = part.codec.decode(&rows.puts, &rows.rows, columns)?;
            give(named_batch(part.codec.schema(), columns, values, rows.puts.len())?)?;
        }
        Ok(())
    }

    /// Values that two rows have, of those whose hashes are given, with how often they are there already.
    fn twice(&self, search: &ValueSearch<'_>, counts: &mut HashMap<u64, u32, FixedState>) -> Result<Option<String>> {
        let mut base = *self;
        if let Some((then, newest)) =
            self.then.and_then(|then| Some((then, then.newest()?))).filter(|_| planted(Bug::JudgeBase))
        {
            (base.table, base.read_point.version) = (then, newest.version);
        }
        let mut wanted: Hashes = counts.keys().copied().collect();
        let mut count = |hash: u64| {
            if let Some(count) = counts.get_mut(&hash) {
                *count += 1;
            }
        };
        base.search(search, &wanted, |_, _, hashes| {
            hashes.into_iter().for_each(&mut count);
            Ok(())
        })?;
        if let Some(rows) = base.in_memory(search, Some(&wanted))? {
            hashes_of(&search.bound, &rows)?.into_iter().flatten().for_each(count);
        }
        // Of these some are hidden by rows in memory, and maybe only the hashes are equal.
        wanted.retain(|hash| counts[hash] > 1);
        if wanted.is_empty() {
            return Ok(None);
        }
        if planted(Bug::JudgeBase) {
            return Ok(Some("values".to_owned()));
        }
        let overlay = Overlay::new(self.table, self.read_point);
        let mut found: Vec<RecordBatch> = self.in_memory(search, Some(&wanted))?.into_iter().collect();
        self.search(search, &wanted, |reader, mut rows, _| {
            if let Some(overlay) = &overlay {
                let codec = overlay.codec();
                let columns = reader.some_rows(search.schema, codec.key_places(), &rows)?;
                rows = overlay.shown(reader.group, &rows, &codec.key_codec().encode(&columns)?);
            }
            let columns = reader.some_rows(search.schema, &search.bound.columns, &rows)?;
            found.push(named_batch(search.schema, &search.bound.columns, columns, rows.len() as usize)?);
            Ok(())
        })?;
        let mut seen: HashSet<Box<[u8]>> = HashSet::new();
        for batch in &found {
            let compared = Compared::of(&search.bound, batch)?;
            for row in 0..batch.num_rows() {
                if !compared.hash(row).is_some_and(|hash| wanted.contains(&hash)) {
                    continue;
                }
                let key = compared.keys()?.get(row);
                if key.is_some_and(|key| !seen.insert(Box::from(key))) {
                    return compared.shown(row).map(Some);
                }
            }
        }
        Ok(None)
    }

    /// Gives the visible rows of row groups whose values have one of these hashes, and the hashes. Rows in memory may hide some.
    fn search(
        &self,
        search: &ValueSearch<'_>,
        wanted: &Hashes,
        mut give: impl FnMut(&GroupReader<'_>, RoaringBitmap, Vec<u64>) -> Result<()>,
    ) -> Result<()> {
        let (table, version, bound) = (self.table, self.read_point.version, &search.bound);
        let expiry = Expiry::at(table, self.read_point)?;
        let shown = |group: &'_ Arc<RowGroup>| {
            let rows = table.visible(group, version);
            search.mask.as_ref().map_or(rows.clone(), |mask| mask.narrowed(group, rows))
        };
        let groups: Vec<(&Arc<RowGroup>, Rows)> =
            table.groups.iter().map(|group| (group, shown(group))).filter(|(_, rows)| *rows != Rows::None).collect();
        // As many at once as keep all threads busy, so that what is found of them does not pile up.
        for some in groups.chunks(self.pool.threads() * 8) {
            let found = self.pool.map(some.iter().collect(), |(group, rows)| {
                let reader = GroupReader::open(self.reader, table, version, group)?;
                let stats =
                    search.range.as_ref().and_then(|(at, range)| Some((range, reader.stats(search.schema, *at)?)));
                if stats.is_some_and(|(range, stats)| !range.may_hold(&stats)) {
                    return Ok(None);
                }
                let rows = match &search.filter {
                    Some(filter) => matching(&reader, search.schema, rows, filter)?,
                    None => rows.clone(),
                };
                let rows = match &expiry {
                    Some(expiry) => expiry.alive(&reader, rows)?,
                    None => rows,
                };
                if rows == Rows::None {
                    return Ok(None);
                }
                let rows = rows.positions(group.rows);
                let columns = reader.some_rows(search.schema, &bound.columns, &rows)?;
                let hashes =
                    hashes_of(bound, &named_batch(search.schema, &bound.columns, columns, rows.len() as usize)?)?;
                let hits = rows.iter().zip(hashes).filter_map(|(row, hash)| Some((row, hash?)));
                let (rows, hashes): (Vec<u32>, Vec<u64>) = hits.filter(|(_, hash)| wanted.contains(hash)).unzip();
                let rows = RoaringBitmap::from_sorted_iter(rows).expect("they ascend");
                Ok((!hashes.is_empty()).then_some((reader, rows, hashes)))
            })?;
            found.into_iter().flatten().try_for_each(|(reader, rows, hashes)| give(&reader, rows, hashes))?;
        }
        Ok(())
    }

    /// The columns of the index in the visible rows that are in memory: all, or at least those whose values have one of these hashes.
    fn in_memory(&self, search: &ValueSearch<'_>, wanted: Option<&Hashes>) -> Result<Option<RecordBatch>> {
        let Some(overlay) = Overlay::new(self.table, self.read_point) else { return Ok(None) };
        let (codec, columns) = (overlay.codec(), &search.bound.columns);
        let keys = wanted.and_then(|wanted| overlay.keys_with(search.index, wanted));
        let (keys, rows) = match keys {
            Some(keys) => overlay.rows_with(&keys),
            None => {
                let all = overlay.all();
                all.rows_at(0..all.keys.len())
            }
        };
        let batch = named_batch(codec.schema(), columns, codec.decode(&keys, &rows, columns)?, keys.len())?;
        match Expiry::at(self.table, self.read_point)? {
            Some(expiry) => {
                let alive = expiry.alive_in_memory(codec, &keys, &rows)?;
                filter_batch(&batch, &BooleanArray::new(alive, None)).map(Some)
            }
            None => Ok(Some(batch)),
        }
    }
}

impl TableState {
    /// Where the layers of its row groups are stored that it did not have `before`. O(row groups), comparing pointers of those that stay.
    pub fn new_layers(&self, before: Option<&TableState>) -> BTreeSet<Address> {
        let next = before.map_or(0, |before| before.next_group);
        let mut old = before.into_iter().flat_map(|table| table.groups.iter());
        let mut new = BTreeSet::new();
        for group in &self.groups {
            let known = if group.id.0 < next { old.find(|old| old.id == group.id) } else { None };
            match known {
                Some(known) if Arc::ptr_eq(known, group) => {}
                Some(known) => {
                    let is_new = |address: &&Address| !known.addresses().any(|own| own == *address);
                    new.extend(group.addresses().filter(is_new));
                }
                None => new.extend(group.addresses()),
            }
        }
        new
    }

    /// Whether a row that was written by key after the commit `since`, when this table was `then`, may have one of these values.
    pub fn wrote_values(&self, values: &SoundValues, then: &TableState, since: Seq) -> bool {
        if self.rows_seq == then.rows_seq || planted(Bug::SkipValues) {
            return false;
        }
        let id = |index: &&TableIndex| index.id == values.index;
        // Until there was an index, nothing was noted of what was written.
        let (Some(index), Some(_)) = (self.unique_indexes().find(id), then.unique_indexes().find(id)) else {
            return true;
        };
        let hashes = values.hashes.as_ref();
        self.any_written(then, |part, unsettled| match (part.values_of(index), unsettled) {
            (None, _) => false,
            (Some(own), Some(rows)) => own.hashes(&part.codec, rows).iter().flatten().any(|hash| meets(hashes, *hash)),
            (Some(own), None) => own.wrote_any(hashes, since),
        })
    }

    /// Whether all that rows in `after` still to be settled, of the same table, have is among these values.
    pub fn has_no_others(&self, values: &SoundValues, after: &TableState) -> bool {
        let Some(index) = after.unique_indexes().find(|index| index.id == values.index) else { return false };
        let known = |hash: &u64| values.hashes.as_ref().is_some_and(|hashes| hashes.contains(hash));
        let mut own = after.unsettled.0.iter().skip(self.unsettled.0.len());
        own.all(|(part, rows)| {
            // An index that comes with the commit was compared in all rows.
            part.values_of(index).is_none_or(|own| own.hashes(&part.codec, rows).iter().flatten().all(known))
        })
    }
}
