//! Whether the rows of a table keep its unique indexes.
//!
//! What is judged is a result: the newest version of a table as a commit would leave it, with the rows written by key since. Of the
//! values that the commit adds, none may be there twice. So it does not matter by which call rows come, or which they replace: rows that
//! change values with each other in one commit are fine.
//!
//! The rows that may have one of the values are read as any filter finds them: by the index itself, where there are few values. Values
//! with a null are not compared with any. Values are compared by hash first, and where two hashes are equal, themselves.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema, SchemaRef};
use foldhash::quality::FixedState;

use super::definition::{BoundIndex, NamedIndex};
use crate::base::planted::{Bug, planted};
use crate::base::{Pool, Result, Seq};
use crate::block::{Address, BlockReader};
use crate::filter::Filter;
use crate::memtable::{Keys, RowBytes};
use crate::segment::join_batches;
use crate::table::index::mask::Asked;
use crate::table::memory::overlay::{MemtableHit, Overlay};
use crate::table::memory::values::meets;
use crate::table::read::group_reader::GroupReader;
use crate::table::read::matching::matching;
use crate::table::schema::arrays::shown;
use crate::table::write::computed::rows_of;
use crate::table::write::merge_keys::KeyRows;
use crate::table::{Constants, ReadAs, ReadPoint, RowGroup, Rows, Scan, ScanOptions, TableIndex, TableState, View};

/// Stands for any hash: of a value that could not be computed.
pub(in crate::table) const ANY_VALUE: u64 = u64::MAX;

/// More values than these are looked for by a scan, rather than by a filter that lists them.
const LISTED_MAX: usize = 10_000;

/// The hashes of so many values are held at once; more are judged in parts.
const HELD_MAX: u64 = 8 << 20;

/// The values of rows that are compared.
struct Compared {
    values: Vec<ArrayRef>,
    keys: KeyRows,
    wanted: Option<BooleanArray>,
}

impl Compared {
    fn of(bound: &BoundIndex, columns: &RecordBatch) -> Result<Self> {
        let (values, wanted) = bound.values(columns)?;
        Ok(Self { keys: KeyRows::new(values.clone(), false)?, values, wanted })
    }

    /// What is equal where the values of rows are; `None` of a row that the index does not have, or that has a null.
    fn get(&self, row: usize) -> Option<&[u8]> {
        let wanted = self.wanted.as_ref().is_none_or(|wanted| wanted.is_valid(row) && wanted.value(row));
        self.keys.get(row).filter(|_| wanted)
    }

    fn shown(&self, row: usize) -> Result<String> {
        let values = self.values.iter().map(|value| shown(value, row)).collect::<Result<Vec<_>>>()?;
        Ok(values.join(", "))
    }
}

fn hash(key: &[u8]) -> u64 {
    match FixedState::default().hash_one(key) {
        ANY_VALUE => 0,
        hash => hash,
    }
}

/// The hashes of the values of rows; `None` for those that are not compared.
pub(in crate::table) fn hashes_of(bound: &BoundIndex, columns: &RecordBatch) -> Result<Vec<Option<u64>>> {
    let compared = Compared::of(bound, columns)?;
    Ok((0..columns.num_rows()).map(|row| compared.get(row).map(hash)).collect())
}

/// Columns of a schema, by their places there.
pub(in crate::table) fn named_batch(
    schema: &SchemaRef,
    places: &[usize],
    columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch> {
    let field = |(at, column): (&usize, &ArrayRef)| {
        Arc::new(Field::new(schema.field(*at).name(), column.data_type().clone(), true))
    };
    let fields: Vec<_> = places.iter().zip(&columns).map(field).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
}

/// The values that a commit adds to an index, which no other row has.
#[derive(Clone, Debug)]
pub struct SoundValues {
    /// The number of the index.
    pub index: u64,
    /// Their hashes; `None` if they are too many to be held.
    hashes: Option<HashSet<u64>>,
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
pub struct Judge<'a> {
    /// What reads its row groups.
    pub reader: &'a Arc<BlockReader>,
    /// What reads in parallel.
    pub pool: &'a Pool,
    /// The table.
    pub table: &'a Arc<TableState>,
    /// What a reader would see of it.
    pub read_point: ReadPoint,
    /// What it was before, where its rows are known to be sound. `None`: all its rows are compared.
    pub then: Option<&'a TableState>,
}

impl Judge<'_> {
    /// Whether the rows that were added are the only ones with their values.
    ///
    /// # Errors
    /// `InvalidArgument` or `SchemaMismatch` if a value cannot be computed; as reads of row groups.
    pub fn judge(&self, index: &TableIndex) -> Result<Judged> {
        let id = index.id;
        let seen = self.table.schema_of(self.read_point.version)?;
        let nothing = || Judged::Sound(SoundValues { index: id, hashes: Some(HashSet::new()) });
        let Some(mut named) = index.definition.named(seen)? else { return Ok(nothing()) };
        named.condition = named.condition.filter(|_| !planted(Bug::CompareAllRows));
        let bound = named.bound(seen)?;
        let added = self.added(index)?;
        let rows = added.iter().map(|(group, rows)| rows.count(group.rows)).sum::<u64>() + self.added_in_memory();
        if rows == 0 {
            return Ok(nothing());
        }
        let passes = rows.div_ceil(HELD_MAX);
        let mut all = HashSet::new();
        for pass in 0..passes {
            let of_pass = |hash: u64| passes == 1 || hash % passes == pass;
            let mut counts: HashMap<u64, u32> = HashMap::new();
            // The values themselves, if they are to be listed.
            let mut listed = (rows <= LISTED_MAX as u64).then(Vec::new);
            self.for_added(&bound, &added, |batch| {
                let base = u32::from(planted(Bug::JudgeBase));
                let hashes = hashes_of(&bound, &batch)?.into_iter().flatten().filter(|hash| of_pass(*hash));
                counts.extend(hashes.map(|hash| (hash, base)));
                listed.iter_mut().for_each(|listed| listed.push(batch.clone()));
                Ok(())
            })?;
            if counts.is_empty() {
                continue;
            }
            if let Some(batches) = &listed
                && let Some(judged) = self.among_few(index, &named, &bound, batches, &counts)?
            {
                return Ok(judged);
            }
            let filter = match &listed {
                Some(batches) => filter_of(&named, &bound, batches)?,
                None => named.condition.clone(),
            };
            let twice = self.twice(&bound, filter.as_ref(), &mut counts)?;
            if let Some(values) = self.same(&bound, filter.as_ref(), &twice)? {
                return Ok(Judged::Twice(values));
            }
            all.extend(counts.into_keys().filter(|_| passes == 1));
        }
        Ok(Judged::Sound(SoundValues { index: id, hashes: (passes == 1).then_some(all) }))
    }

    /// The same of few values, by looking for each; `None` if a scan of all rows in memory is needed, or of all in row groups.
    fn among_few(
        &self,
        index: &TableIndex,
        named: &NamedIndex,
        bound: &BoundIndex,
        added: &[RecordBatch],
        counts: &HashMap<u64, u32>,
    ) -> Result<Option<Judged>> {
        if planted(Bug::JudgeBase) {
            return Ok(None);
        }
        let (table, version) = (&**self.table, self.read_point.version);
        let hashes: HashSet<u64> = counts.keys().copied().collect();
        let overlay = Overlay::new(table, self.read_point);
        let in_memory = match &overlay {
            None => Some(Keys::default()),
            Some(overlay) => overlay.keys_with(index, &hashes),
        };
        let (Some(keys), Some(filter)) = (in_memory, filter_of(named, bound, added)?) else { return Ok(None) };
        let schema = &table.schema_of(version)?.0;
        let read_as = ReadAs::new(schema.clone(), Constants::new());
        let asked = Asked { reader: self.reader, pool: self.pool, table, version, read_as: &read_as, limit: None };
        let mask = asked.mask(&filter)?;
        let filter = filter.bind(schema)?;
        let visible: Vec<(&Arc<RowGroup>, Rows)> = table
            .groups
            .iter()
            .map(|group| (group, table.visible(group, version)))
            .map(|(group, rows)| (group, mask.as_ref().map_or(rows.clone(), |mask| mask.narrowed(group, rows))))
            .filter(|(_, rows)| *rows != Rows::None)
            .collect();
        let mut found = self.pool.map(visible, |(group, rows)| {
            let reader = GroupReader::open(self.reader, table, version, group)?;
            let rows = matching(&reader, schema, &rows, &filter)?;
            let mut rows = if rows == Rows::None { return Ok(None) } else { rows.positions(group.rows) };
            if let Some(overlay) = &overlay {
                let codec = overlay.codec();
                let columns = rows_of(&reader, schema, codec.key_places(), &rows)?;
                rows = overlay.shown(group, &rows, &codec.key_codec().encode(&columns)?);
            }
            let columns = rows_of(&reader, schema, &bound.columns, &rows)?;
            named_batch(schema, &bound.columns, columns, rows.len() as usize).map(Some)
        })?;
        if let Some(overlay) = overlay.as_ref().filter(|_| !keys.is_empty()) {
            let mut rows = RowBytes::default();
            let hits = overlay.find_many(&keys, &mut rows);
            let place = |(at, hit): (usize, &Option<MemtableHit>)| match hit {
                Some(MemtableHit::Row(place)) => Some((at, *place as usize)),
                _ => None,
            };
            let live: Vec<(usize, usize)> = hits.iter().enumerate().filter_map(place).collect();
            let keys = keys.take(live.iter().map(|(at, _)| *at));
            let mut in_order = RowBytes::default();
            live.iter().for_each(|(_, place)| in_order.push_with(|out| out.extend_from_slice(rows.get(*place))));
            let columns = overlay.codec().decode(&keys, &in_order, &bound.columns)?;
            found.push(Some(named_batch(overlay.codec().schema(), &bound.columns, columns, keys.len())?));
        }
        let mut seen: HashSet<Box<[u8]>> = HashSet::new();
        for batch in found.iter().flatten() {
            let compared = Compared::of(bound, batch)?;
            for row in 0..batch.num_rows() {
                let Some(key) = compared.get(row).filter(|key| hashes.contains(&hash(key))) else { continue };
                if !seen.insert(Box::from(key)) {
                    return compared.shown(row).map(|values| Some(Judged::Twice(values)));
                }
            }
        }
        Ok(Some(Judged::Sound(SoundValues { index: index.id, hashes: Some(hashes) })))
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
                let decided = group.decided_by(&table.schemas, &columns);
                let all = || group.addresses().eq(before.addresses());
                decided.is_some() && decided == before.decided_by(&then.schemas, &columns) || all()
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
        let all = || self.table.parts.iter().map(|part| part.rows().memtable.keys()).sum::<u64>();
        let unsettled = self.table.unsettled.0.iter().map(|(_, rows)| rows.puts.len() as u64).sum::<u64>();
        unsettled + if self.then.is_none() { all() } else { 0 }
    }

    /// Gives the columns of the index in the rows that were added, batch by batch.
    fn for_added(
        &self,
        bound: &BoundIndex,
        added: &[(Arc<RowGroup>, Rows)],
        mut give: impl FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let (table, version) = (self.table, self.read_point.version);
        let schema = &table.schema_of(version)?.0;
        if self.then.is_none() && !table.parts.is_empty() {
            // All rows, wherever they are.
            return self.scan(bound, None)?.try_for_each(|batch| give(batch?));
        }
        for some in added.chunks(self.pool.threads() * 2) {
            let read = self.pool.map(some.iter().collect(), |(group, rows)| {
                let reader = GroupReader::open(self.reader, table, version, group)?;
                let picked = rows.positions(group.rows);
                let columns = rows_of(&reader, schema, &bound.columns, &picked)?;
                named_batch(schema, &bound.columns, columns, picked.len() as usize)
            })?;
            read.into_iter().try_for_each(&mut give)?;
        }
        for (part, rows) in &table.unsettled.0 {
            let columns = part.codec.decode(&rows.puts, &rows.rows, &bound.columns)?;
            give(named_batch(part.codec.schema(), &bound.columns, columns, rows.puts.len())?)?;
        }
        Ok(())
    }

    /// The columns of the index in the visible rows for which `filter` is true.
    fn scan(&self, bound: &BoundIndex, filter: Option<&Filter>) -> Result<Scan> {
        let view = View { table: self.table.clone(), read_point: self.read_point, time: None, pin: None };
        let view = match self.then.filter(|_| planted(Bug::JudgeBase)) {
            Some(then) => {
                let version = then.newest().map_or(view.read_point.version, |newest| newest.version);
                View { table: Arc::new(then.clone()), read_point: ReadPoint { version, ..view.read_point }, ..view }
            }
            None => view,
        };
        let schema = &self.table.schema_of(self.read_point.version)?.0;
        let names = bound.columns.iter().map(|at| schema.field(*at).name().clone()).collect();
        let options = ScanOptions { columns: Some(names), filter: filter.cloned(), ..ScanOptions::default() };
        Scan::new(self.reader.clone(), self.pool.clone(), view, None, &options, None)
    }

    /// The hashes that more than one row has.
    fn twice(
        &self,
        bound: &BoundIndex,
        filter: Option<&Filter>,
        counts: &mut HashMap<u64, u32>,
    ) -> Result<HashSet<u64>> {
        let mut twice = HashSet::new();
        for batch in self.scan(bound, filter)? {
            for hash in hashes_of(bound, &batch?)?.into_iter().flatten() {
                if let Some(count) = counts.get_mut(&hash) {
                    *count += 1;
                    if *count > 1 {
                        twice.insert(hash);
                    }
                }
            }
        }
        Ok(twice)
    }

    /// Values with one of these hashes that two rows have.
    fn same(&self, bound: &BoundIndex, filter: Option<&Filter>, hashes: &HashSet<u64>) -> Result<Option<String>> {
        if hashes.is_empty() {
            return Ok(None);
        }
        let mut seen: HashSet<Box<[u8]>> = HashSet::new();
        for batch in self.scan(bound, filter)? {
            let batch = batch?;
            let compared = Compared::of(bound, &batch)?;
            for row in 0..batch.num_rows() {
                let Some(key) = compared.get(row).filter(|key| hashes.contains(&hash(key))) else { continue };
                if !seen.insert(Box::from(key)) {
                    return compared.shown(row).map(Some);
                }
            }
        }
        Ok(None)
    }
}

/// The filter that is true for rows which may have the values of rows of `batches`.
fn filter_of(named: &NamedIndex, bound: &BoundIndex, batches: &[RecordBatch]) -> Result<Option<Filter>> {
    let Some(first) = batches.first() else { return Ok(named.condition.clone()) };
    let (values, _) = bound.values(&join_batches(&first.schema(), batches)?)?;
    let listed = named.values.iter().zip(&values).filter_map(|(value, list)| value.one_of(list));
    Ok(Filter::all_of(named.condition.iter().flat_map(Filter::terms).chain(listed)))
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
