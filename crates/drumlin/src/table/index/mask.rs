//! The rows that may pass a filter, as indexes say.
//!
//! Which index is asked, and whether any is, is decided by what would be read and decoded: pages that may have hits, and the filter's columns
//! of the hits, against the filter's columns in all row groups that statistics do not rule out. A byte that is not in the cache counts as much as
//! two values that are decoded, and a test that looks for a value among many as much as eight; in a page few of the many are left to look for.
//! How many hits there are is estimated from the bounds of pages. Where few bytes would be read, nothing is compared: to look at the statistics
//! of all row groups would take longer.
//!
//! Values compare as in a scan, since the filter itself is evaluated on them: it is bound to the types that the values have in the run. Where
//! a column has another type in the version that is read, the run is used only if both compare alike, as statistics are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{Schema, SchemaRef, UInt32Type};
use bytes::Bytes;
use foldhash::fast::FixedState;
use roaring::RoaringBitmap;

use super::choice::{IndexAccess, IndexTerm, accesses};
use super::definition::BoundIndex;
use super::fences::pages_of;
use super::pages::{ordinal_of, places_of, row_of, some_places_of};
use super::run::{CoverPlace, Covers, IndexRun, TableIndex};
use crate::base::planted::{Bug, planted};
use crate::base::{Error, ErrorKind, Pool, Result, Version};
use crate::block::{BlockReader, Prefetch};
use crate::filter::{BoundFilter, Filter, Verdict};
use crate::segment::{Form, decode};
use crate::table::read::group_reader::GroupReader;
use crate::table::read::pieces::PICK_SHARE;
use crate::table::schema::read_as::{ReadAs, same_stats};
use crate::table::{GroupId, RowGroup, Rows, StoredSchema, TableState};

/// Pages of fewer bytes are read without asking what a scan would cost: a column of one row group takes more.
const FREE_BYTES: u64 = 256 << 10;

/// How many values are decoded together in the time that it takes to decode one by itself.
const PICK_COST: u64 = 8;

/// How many values are decoded in the time that it takes to read a byte which is not in the cache.
const ABSENT_COST: u64 = 2;

/// How many values are decoded in the time that it takes to look for one among many.
const SEARCH_COST: u64 = 8;

/// The rows that may pass a filter.
pub(in crate::table) struct Mask {
    /// By row group, of those that are covered.
    rows: HashMap<GroupId, RoaringBitmap, FixedState>,
    /// What it took.
    pub cost: IndexCost,
}

/// What indexes were asked for, and what that took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexCost {
    /// The names of the indexes.
    pub names: BTreeSet<String>,
    /// Pages that were read.
    pub pages: u64,
    /// Encoded bytes of these.
    pub bytes: u64,
    /// The rows that they gave, dead ones too.
    pub hits: u64,
    /// Row groups that they answered for.
    pub row_groups: u64,
}

impl std::ops::AddAssign for IndexCost {
    fn add_assign(&mut self, other: Self) {
        self.names.extend(other.names);
        self.pages += other.pages;
        self.bytes += other.bytes;
        self.hits += other.hits;
        self.row_groups += other.row_groups;
    }
}

impl Mask {
    /// Those of `rows` that may pass.
    pub fn narrowed(&self, group: &RowGroup, rows: Rows) -> Rows {
        match (self.rows.get(&group.id), rows) {
            (None, rows) => rows,
            (_, Rows::None) => Rows::None,
            (Some(hits), Rows::All) => Rows::of(hits.clone(), group.rows),
            (Some(hits), Rows::Some(rows)) => Rows::of(rows & hits, group.rows),
        }
    }
}

/// What a mask is asked of: a version of a table, in the columns in which it is read.
pub(in crate::table) struct Asked<'a> {
    pub reader: &'a BlockReader,
    pub pool: &'a Pool,
    pub table: &'a TableState,
    pub version: Version,
    pub read_as: &'a ReadAs,
    /// How many rows are wanted at most: a scan may end early.
    pub limit: Option<u64>,
}

/// The pages of a run that may have hits.
struct Candidates<'a> {
    run: &'a Arc<IndexRun>,
    bound: BoundFilter,
    schema: Schema,
    pages: Vec<CandidatePage>,
}

#[derive(Clone, Copy)]
struct CandidatePage {
    part: usize,
    page: usize,
    /// Every entry is a hit.
    whole: bool,
    /// About how many are.
    hits: u64,
}

/// A way, with the pages to read for it.
enum Way<'a> {
    Index(&'a TableIndex, BTreeMap<usize, Candidates<'a>>),
    Any(Vec<Way<'a>>),
}

/// What a way would take.
#[derive(Clone, Copy, Default)]
struct Expected {
    /// Encoded bytes of the pages.
    bytes: u64,
    /// Those of them that are not in the cache, and values to decode.
    cost: u64,
    /// About how many entries are hits.
    hits: u64,
}

impl<'a> Asked<'a> {
    /// The rows that may pass `filter`; `None` if indexes say nothing of them, or if a scan takes no more.
    ///
    /// # Errors
    /// `Corrupt` if a run is damaged, naming it; `SnapshotExpired`, `Unavailable`.
    pub fn mask(&self, filter: &Filter) -> Result<Option<Mask>> {
        let indexes = &self.table.indexes.list;
        if indexes.iter().all(|index| index.runs().is_empty()) {
            return Ok(None);
        }
        let seen = self.table.schema_of(self.version)?;
        let mut best: Option<(Expected, Way<'_>)> = None;
        for access in accesses(indexes, seen, self.read_as.schema(), filter)? {
            let Some(way) = self.way(access)? else { continue };
            let expected = way.expected(self.reader)?;
            if best.as_ref().is_none_or(|(best, _)| (expected.hits, expected.bytes) < (best.hits, best.bytes)) {
                best = Some((expected, way));
            }
        }
        let Some((expected, way)) = best else { return Ok(None) };
        let ends_early = self.limit.is_some_and(|limit| expected.hits > limit);
        if (expected.bytes > FREE_BYTES || ends_early) && !self.pays(filter, expected, &self.covered(&way)?)? {
            return Ok(None);
        }
        self.read(&way)
    }

    /// The pages to read for an access; `None` if no run can be used for it.
    fn way(&self, access: IndexAccess<'a>) -> Result<Option<Way<'a>>> {
        match access {
            IndexAccess::Any(ways) => {
                let ways = ways.into_iter().map(|access| self.way(access)).collect::<Result<Option<Vec<_>>>>()?;
                Ok(ways.map(Way::Any))
            }
            IndexAccess::Index(term) => {
                let mut runs = BTreeMap::new();
                for (at, run) in term.index.runs().iter().enumerate() {
                    let found = self.candidates(&term, run).map_err(|e| in_run(term.index, run, e))?;
                    runs.extend(found.map(|candidates| (at, candidates)));
                }
                Ok((!runs.is_empty()).then_some(Way::Index(term.index, runs)))
            }
        }
    }

    /// The columns of entries whose values are of a schema, and the term's filter tied to them; `None` if they have other types than are
    /// asked for, or the filter means nothing in them.
    pub fn in_schema(&self, term: &IndexTerm<'_>, schema: &StoredSchema) -> Result<Option<(SchemaRef, BoundFilter)>> {
        let Some(there) = term.index.definition.named(schema)? else { return Ok(None) };
        let seen = self.table.schema_of(self.version)?;
        for (value, own) in term.named.values.iter().zip(&there.values) {
            for name in value.columns() {
                let wanted = self.read_as.schema().field_with_name(&name).ok();
                let stored = schema.place_of(&name, seen).map(|at| schema.0.field(at));
                let alike = wanted.zip(stored).is_some_and(|(wanted, stored)| {
                    let (wanted, stored) = (wanted.data_type(), stored.data_type());
                    wanted == stored || (own.as_column().is_some() && same_values(wanted, stored))
                });
                if !alike && !planted(Bug::IndexOfOtherType) {
                    return Ok(None);
                }
            }
        }
        let BoundIndex { schema, .. } = there.bound(schema)?;
        let bound = term.filter.bind(&schema).ok();
        Ok(bound.map(|bound| (schema, bound)))
    }

    /// The pages of a run that may have hits; `None` if it has other types than are asked for, or the filter means nothing in them.
    fn candidates(&self, term: &IndexTerm<'a>, run: &'a Arc<IndexRun>) -> Result<Option<Candidates<'a>>> {
        let Some((schema, bound)) = self.in_schema(term, &self.table.schemas[run.schema as usize])? else {
            return Ok(None);
        };
        let values = schema.fields().len();
        let fences = run.fences(self.reader, values)?;
        let mut pages = Vec::new();
        for (part, fences) in fences.parts.iter().enumerate() {
            let open = run.is_open(part);
            let entries = run.parts[part].1;
            if open && planted(Bug::ForgetOpenParts) {
                continue;
            }
            if !open && bound.verdict(entries.into(), &|at| fences.whole.get(at).cloned()) == Verdict::None {
                continue;
            }
            for ((page, fences), entries) in fences.pages.iter().enumerate().zip(pages_of(entries)) {
                let verdict = match open {
                    true => Verdict::All,
                    false => bound.verdict(entries.into(), &|at| fences.values.get(at).cloned()),
                };
                let share = || bound.share(entries.into(), &|at| fences.values.get(at).cloned());
                let hits = match verdict {
                    Verdict::None => continue,
                    Verdict::All => u64::from(entries),
                    Verdict::Some => ((f64::from(entries) * share()) as u64).max(1),
                };
                pages.push(CandidatePage { part, page, whole: verdict == Verdict::All, hits });
            }
        }
        Ok(Some(Candidates { run, bound, schema: Schema::clone(&schema), pages }))
    }

    /// The row groups that a way answers for.
    fn covered(&self, way: &Way<'a>) -> Result<Vec<&'a Arc<RowGroup>>> {
        let groups = self.table.groups.iter().filter(|group| self.table.serves(group, self.version));
        match way {
            Way::Any(ways) => {
                let of = ways.iter().map(|way| Ok(self.covered(way)?.iter().map(|group| group.id).collect()));
                let of = of.collect::<Result<Vec<BTreeSet<GroupId>>>>()?;
                Ok(groups.filter(|group| of.iter().all(|of| of.contains(&group.id))).collect())
            }
            Way::Index(index, runs) => {
                let columns = index.definition.columns()?;
                let covers = index.covers()?;
                let is_covered = |group: &&Arc<RowGroup>| {
                    place(self.table, group, columns, covers).is_some_and(|place| runs.contains_key(&place.run))
                };
                Ok(groups.filter(is_covered).collect())
            }
        }
    }

    /// Whether the pages and what is then left of the row groups take less than a scan of these.
    fn pays(&self, filter: &Filter, expected: Expected, covered: &[&Arc<RowGroup>]) -> Result<bool> {
        let schema = self.read_as.schema();
        let bound = filter.bind(schema)?;
        self.reader.fetch_directories(covered.iter().flat_map(|group| group.addresses()));
        let scanned = self.pool.map(covered.to_vec(), |group| {
            let opened = GroupReader::open(self.reader, self.table, self.version, group)?;
            let opened = opened.with_constants(self.read_as.constants());
            let verdict = bound.verdict(u64::from(group.rows), &|at| opened.stats(schema, at));
            let read = verdict == Verdict::Some;
            Ok(read.then(|| {
                let wanted = opened.wanted(schema, bound.columns()).into_iter();
                let absent: u64 = wanted.map(|wanted| self.reader.absent_bytes(wanted)).sum();
                (absent, u64::from(group.rows))
            }))
        })?;
        let scanned: Vec<(u64, u64)> = scanned.into_iter().flatten().collect();
        let (absent, rows) = scanned.iter().fold((0, 0), |(all, rows), (own, more)| (all + own, rows + more));
        let columns = bound.columns().len() as u64;
        // Of few rows each is decoded by itself, which takes some times as long; of more, all are.
        let row = columns + bound.searches() * SEARCH_COST;
        let values = if expected.hits > rows / PICK_SHARE { rows } else { expected.hits * PICK_COST } * row;
        let touched = (expected.hits as f64 / scanned.len().max(1) as f64).min(1.0);
        let left = ((absent * ABSENT_COST) as f64 * touched) as u64 + values;
        let read = self.limit.map_or(1.0, |limit| (limit as f64 / expected.hits.max(1) as f64).min(1.0));
        Ok(expected.cost.saturating_add(left) < ((absent * ABSENT_COST + rows * row) as f64 * read) as u64)
    }

    /// Reads the pages; `None` if the filter cannot be evaluated on a value that some row group has: a scan may not come to that one.
    fn read(&self, way: &Way<'a>) -> Result<Option<Mask>> {
        match way {
            Way::Any(ways) => {
                let mut all: Option<Mask> = None;
                for way in ways {
                    let Some(mask) = self.read(way)? else { return Ok(None) };
                    all = Some(match all {
                        None => mask,
                        Some(all) => either(all, mask),
                    });
                }
                Ok(all)
            }
            Way::Index(index, runs) => {
                let mut hits: HashMap<CoverKey, RoaringBitmap, FixedState> = HashMap::default();
                let mut cost = IndexCost { names: [index.definition.name.clone()].into(), ..IndexCost::default() };
                for (at, candidates) in runs {
                    let found = match candidates.read(self.reader, self.pool) {
                        Err(e) if matches!(e.kind(), ErrorKind::InvalidArgument | ErrorKind::SchemaMismatch) => {
                            return Ok(None);
                        }
                        found => found.map_err(|e| in_run(index, candidates.run, e))?,
                    };
                    cost.pages += candidates.pages.len() as u64;
                    cost.bytes += candidates.bytes(self.reader)?;
                    cost.hits += found.len() as u64;
                    for (ordinal, rows) in by_ordinal(found) {
                        hits.insert((*at, ordinal), rows);
                    }
                }
                let columns = index.definition.columns()?;
                let covers = index.covers()?;
                let mut rows = HashMap::default();
                for group in self.table.groups.iter().filter(|group| self.table.serves(group, self.version)) {
                    let found = place(self.table, group, columns, covers);
                    if let Some(CoverPlace { run, ordinal }) = found.filter(|place| runs.contains_key(&place.run)) {
                        let own = hits.get(&(run, ordinal)).cloned().unwrap_or_default();
                        if own.max().is_some_and(|last| last >= group.rows) {
                            let error = Error::corrupt("an entry names a row past the end of its row group");
                            return Err(in_run(index, &index.runs()[run], error));
                        }
                        rows.insert(group.id, own);
                    }
                }
                cost.row_groups = rows.len() as u64;
                self.reader.metrics().index_pages_read.add(cost.pages);
                Ok(Some(Mask { rows, cost }))
            }
        }
    }
}

/// A run, and the place of a row group in it.
type CoverKey = (usize, u32);

/// Where a row group is covered.
pub(in crate::table) fn place(
    table: &TableState,
    group: &RowGroup,
    columns: &BTreeSet<String>,
    covers: &Covers,
) -> Option<CoverPlace> {
    covers.get(group.decided_by(&table.schemas, columns)?).copied()
}

/// Whether values of two types compare alike.
fn same_values(a: &arrow::datatypes::DataType, b: &arrow::datatypes::DataType) -> bool {
    use arrow::datatypes::DataType::Dictionary;
    let plain = |data_type: &arrow::datatypes::DataType| match data_type {
        Dictionary(_, values) => (**values).clone(),
        other => other.clone(),
    };
    same_stats(&plain(a), &plain(b))
}

/// The rows of either of two masks; what one of them does not answer for, neither does the result.
fn either(a: Mask, b: Mask) -> Mask {
    let mut cost = a.cost;
    cost += b.cost;
    let mut rows = a.rows;
    rows.retain(|group, own| {
        let other = b.rows.get(group);
        other.into_iter().for_each(|other| *own |= other);
        other.is_some()
    });
    cost.row_groups = rows.len() as u64;
    Mask { rows, cost }
}

/// Names the run in an error, and what mends it.
fn in_run(index: &TableIndex, run: &IndexRun, error: Error) -> Error {
    match error.kind() {
        ErrorKind::Corrupt | ErrorKind::Internal => {
            let name = &index.definition.name;
            error.context(format!("index '{name}', run {} (rebuild_index('{name}') makes it again)", run.id))
        }
        _ => error,
    }
}

/// Places by the row groups that they are in.
fn by_ordinal(mut places: Vec<u32>) -> Vec<(u32, RoaringBitmap)> {
    places.sort_unstable();
    places.dedup();
    let chunks = places.chunk_by(|a, b| ordinal_of(*a) == ordinal_of(*b));
    let rows = |chunk: &[u32]| {
        let rows = chunk.iter().map(|place| row_of(*place));
        (ordinal_of(chunk[0]), RoaringBitmap::from_sorted_iter(rows).expect("they are sorted"))
    };
    chunks.map(rows).collect()
}

impl Way<'_> {
    fn expected(&self, reader: &BlockReader) -> Result<Expected> {
        let add = |all: Expected, own: Expected| Expected {
            bytes: all.bytes + own.bytes,
            cost: all.cost + own.cost,
            hits: all.hits + own.hits,
        };
        match self {
            Way::Any(ways) => ways.iter().try_fold(Expected::default(), |all, way| Ok(add(all, way.expected(reader)?))),
            Way::Index(_, runs) => runs
                .values()
                .try_fold(Expected::default(), |all, candidates| Ok(add(all, candidates.expected(reader)?))),
        }
    }
}

impl Candidates<'_> {
    fn values(&self) -> usize {
        self.schema.fields().len()
    }

    fn bytes(&self, reader: &BlockReader) -> Result<u64> {
        let fences = self.run.fences(reader, self.values())?;
        Ok(self.pages.iter().map(|at| fences.parts[at.part].pages[at.page].bytes).sum())
    }

    /// The pages by the parts that they are in.
    fn by_part(&self) -> BTreeMap<usize, Vec<CandidatePage>> {
        let mut parts: BTreeMap<usize, Vec<CandidatePage>> = BTreeMap::new();
        self.pages.iter().for_each(|page| parts.entry(page.part).or_default().push(*page));
        parts
    }

    fn expected(&self, reader: &BlockReader) -> Result<Expected> {
        let mut expected = Expected { bytes: self.bytes(reader)?, ..Expected::default() };
        for (part, pages) in self.by_part() {
            expected.cost += reader.absent_bytes(self.wanted(reader, part, &pages)?) * ABSENT_COST;
            let sizes: Vec<u32> = pages_of(self.run.parts[part].1).collect();
            for page in pages {
                let columns = self.columns_of(&page).len() as u64;
                expected.cost += u64::from(sizes[page.page]) * columns;
                expected.hits += page.hits;
            }
        }
        Ok(expected)
    }

    /// What is read of the pages of a part.
    fn wanted(&self, reader: &BlockReader, part: usize, pages: &[CandidatePage]) -> Result<Prefetch> {
        let directory = self.run.directory(reader, part, self.values())?;
        let columns = pages.iter().flat_map(|page| self.columns_of(page)).collect();
        Ok(Prefetch::Columns(self.run.parts[part].0, directory, columns))
    }

    /// The places of the hits.
    fn read(&self, reader: &BlockReader, pool: &Pool) -> Result<Vec<u32>> {
        let parts = self.by_part();
        if reader.fetches() {
            let wanted = parts.iter().map(|(part, pages)| self.wanted(reader, *part, pages));
            reader.fetch(wanted.collect::<Result<Vec<_>>>()?);
        }
        let read = |(part, pages): (usize, Vec<CandidatePage>)| self.read_part(reader, part, &pages);
        match parts.len() {
            1 => parts.into_iter().next().map_or(Ok(Vec::new()), read),
            _ => Ok(pool.map(parts.into_iter().collect(), read)?.concat()),
        }
    }

    /// The segments that are read of a page: without values, if they do not matter.
    fn columns_of(&self, page: &CandidatePage) -> Vec<usize> {
        let segments = self.run.segments_of(page.part, page.page, self.values());
        let places = segments.end - 1;
        match page.whole {
            true => vec![places],
            false => self.bound.columns().iter().map(|at| segments.start + at).chain([places]).collect(),
        }
    }

    fn read_part(&self, reader: &BlockReader, part: usize, pages: &[CandidatePage]) -> Result<Vec<u32>> {
        let (address, entries) = &self.run.parts[part];
        let directory = self.run.directory(reader, part, self.values())?;
        let columns: Vec<usize> = pages.iter().flat_map(|page| self.columns_of(page)).collect();
        let mut segments = reader.segments(address, &directory, &columns)?.into_iter();
        let sizes: Vec<u32> = pages_of(*entries).collect();
        let fences = self.run.fences(reader, self.values())?;
        let mut found = Vec::new();
        for page in pages {
            let rows = sizes[page.page] as usize;
            let mut next = || segments.next().expect("it was asked for");
            let mut values: Vec<(usize, Bytes)> = Vec::new();
            if !page.whole {
                values.extend(self.bound.columns().iter().map(|at| (*at, next())));
            }
            let places = next();
            if page.whole {
                found.extend(places_of(places, rows)?.as_primitive::<UInt32Type>().values());
                continue;
            }
            let arrays = values
                .into_iter()
                .map(|(at, bytes)| decode(bytes, rows, self.schema.field(at).data_type(), Form::Stored));
            let arrays: Vec<ArrayRef> = arrays.collect::<Result<_>>()?;
            let stats = &fences.parts[part].pages[page.page].values;
            let narrowed = self.bound.narrowed(rows as u64, &|at| stats.get(at).cloned());
            let hits = narrowed.hits(&self.schema, rows, arrays)?;
            if !hits.is_empty() {
                found.extend(some_places_of(places, rows, &hits)?.as_primitive::<UInt32Type>().values());
            }
        }
        Ok(found)
    }
}
