//! The pieces of a scan: row groups, and rows written by key, in the order of the result.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::{DataType, Schema};

use roaring::RoaringBitmap;

use super::group_reader::GroupReader;
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Pool, Result, Version};
use crate::block::BlockReader;
use crate::segment::{ColumnStats, Form, PhysicalForm, native_type};
use crate::table::group::ends::{Ends, comparable_ends};
use crate::table::group::key_bounds::KeyBounds;
use crate::table::memory::overlay::SeenOverlay;
use crate::table::order::clusters::{Span, clusters, undecided};
use crate::table::order::sort_columns;
use crate::table::schema::arrays::find;
use crate::table::schema::read_as::{ReadAs, text_dictionary};
use crate::table::{ROWS_MAX, RowGroup, Rows, TableCodec, TableState};

/// Of fewer rows than one in as many, each is decoded by itself, where encodings can be entered; else all are, which takes less.
pub(in crate::table) const PICK_SHARE: u64 = 32;

/// Row groups whose rows interleave in the order in which they are shown, or a single one; and rows written by key since that belong among
/// them.
#[derive(Default)]
pub(in crate::table) struct Piece {
    pub groups: Vec<(Arc<RowGroup>, Rows)>,
    /// Their places in the overlay.
    pub rows: Range<usize>,
    /// Its rows may come in any order.
    pub any_order: bool,
}

impl Piece {
    /// Whether its rows must be sorted.
    pub fn needs_sort(&self) -> bool {
        let sources = self.groups.len() + usize::from(!self.rows.is_empty());
        !self.any_order && (sources > 1 || self.groups.iter().any(|(group, _)| !group.is_in_order()))
    }

    /// Whether its rows have places in which they are shown.
    pub fn is_placed(&self) -> bool {
        !self.any_order && self.groups.first().is_some_and(|(group, _)| group.tract().is_some())
    }

    /// The same rows in pieces that are read for less, if they may come in any order.
    pub fn in_any_order(self) -> impl Iterator<Item = Piece> {
        let (alone, whole) = if self.is_placed() { (self.groups, None) } else { (Vec::new(), Some(self)) };
        let alone = alone.into_iter().map(|group| Piece { groups: vec![group], any_order: true, ..Piece::default() });
        alone.chain(whole)
    }

    /// Keeps `most` of its rows from the one at `from` on, if they are so few that they are decoded one by one; says whether it did.
    pub fn cut(&mut self, from: u64, most: u64) -> bool {
        let needs_sort = self.needs_sort();
        let [(group, rows)] = self.groups.as_mut_slice() else { return false };
        if needs_sort || most == 0 || most > u64::from(group.rows) / PICK_SHARE {
            return false;
        }
        let mut kept = rows.positions(group.rows);
        let at = |kept: &RoaringBitmap, nth: u64| u32::try_from(nth).ok().and_then(|nth| kept.select(nth));
        if let Some(end) = at(&kept, from + most) {
            kept.remove_range(end..);
        }
        if let Some(begin) = at(&kept, from) {
            kept.remove_range(..begin);
        }
        *rows = Rows::of(kept, group.rows);
        true
    }

    /// Rows of row groups.
    pub fn stored_rows(&self) -> u64 {
        self.groups.iter().map(|(group, rows)| rows.count(group.rows)).sum()
    }
}

/// Puts row groups, and rows written by key since, into the order of the result.
pub(in crate::table) fn arrange(
    reader: &BlockReader,
    pool: &Pool,
    table: &TableState,
    version: Version,
    groups: Vec<(Arc<RowGroup>, Rows)>,
    overlay: Option<&SeenOverlay>,
) -> Result<Vec<Piece>> {
    let sort = table.order_of(version)?;
    if sort.is_empty() {
        return Ok(side_by_side(groups));
    }
    let bounds = bounds_of(reader, pool, table, version, &groups)?;
    let mut groups: Vec<Option<(Arc<RowGroup>, Rows)>> = groups.into_iter().map(Some).collect();
    let mut pieces = Vec::new();
    let mut done = 0;
    for cluster in clusters(&bounds.spans, bounds.alone) {
        let mut piece = Piece::default();
        if let Some(overlay) = overlay {
            let within = bounds.keys_of(&cluster, &overlay.codec)?.among(&overlay.rows.keys);
            let within = within.start.max(done)..within.end.max(done);
            pieces.extend(rows_alone(done..within.start));
            done = within.end;
            piece.rows = within;
        }
        piece.groups = cluster.into_iter().map(|at| groups[at].take().expect("in one cluster")).collect();
        pieces.push(piece);
    }
    if let Some(overlay) = overlay {
        pieces.extend(rows_alone(done..overlay.rows.keys.len()));
    }
    Ok(pieces)
}

/// The pieces of a table without an order: row groups of one tract are read together.
fn side_by_side(groups: Vec<(Arc<RowGroup>, Rows)>) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::with_capacity(groups.len());
    for (group, rows) in groups {
        let same = |last: &&mut Piece| group.tract().is_some() && last.groups[0].0.tract() == group.tract();
        match pieces.last_mut().filter(same) {
            Some(piece) => piece.groups.push((group, rows)),
            None => pieces.push(Piece { groups: vec![(group, rows)], ..Piece::default() }),
        }
    }
    pieces
}

/// Where row groups lie in the sort order.
pub(in crate::table) struct Bounds {
    /// Statistics of the first sort column.
    stats: Vec<ColumnStats>,
    pub spans: Vec<Span>,
    /// Whether the first sort column decides alone: rows with the same value in it are equal.
    pub alone: bool,
    /// What had to be read.
    ends: BTreeMap<usize, Ends>,
}

/// The bounds of row groups of a sorted table: from directories, and the ends of those that these do not tell apart.
pub(in crate::table) fn bounds_of(
    reader: &BlockReader,
    pool: &Pool,
    table: &TableState,
    version: Version,
    groups: &[(Arc<RowGroup>, Rows)],
) -> Result<Bounds> {
    let (schema, sort) = (&table.schema_of(version)?.0, table.order_of(version)?);
    let columns = sort.iter().map(|name| find(schema, name)).collect::<Result<Vec<_>>>()?;
    reader.fetch_directories(groups.iter().flat_map(|(group, _)| group.addresses()));
    let mut stats = Vec::with_capacity(groups.len());
    for (group, _) in groups {
        let reader = GroupReader::open(reader, table, version, group)?;
        let column = reader
            .column(&sort[0])
            .ok_or_else(|| Error::corrupt(format!("a row group does not have the column '{}'", sort[0])))?;
        stats.push(column.stats.clone());
    }
    let mut spans: Vec<Span> =
        groups.iter().zip(&stats).map(|((group, _), stats)| Span::new(stats, group.rows)).collect();
    let alone = sort.len() == 1 || planted(Bug::TrustFirstColumn);
    let unread = undecided(&spans, alone);
    let open = |at: &usize| GroupReader::open(reader, table, version, &groups[*at].0);
    let unknown: Vec<usize> = unread.iter().copied().filter(|at| groups[*at].0.ends.get().is_none()).collect();
    let readers = unknown.iter().map(open).collect::<Result<Vec<_>>>()?;
    reader.fetch(readers.iter().flat_map(|reader| reader.wanted(schema, &columns)));
    let read = pool.map(unread.clone(), |at| ends_of(&open(&at)?, schema, &columns))?;
    for (at, keys) in unread.iter().zip(comparable_ends(&read)?) {
        spans[*at].keys = Some(keys);
    }
    Ok(Bounds { stats, spans, alone, ends: unread.into_iter().zip(read).collect() })
}

/// The ends of an open row group in the sort columns at `sort` of `schema`. Read once, then remembered by its record.
fn ends_of(reader: &GroupReader<'_>, schema: &Schema, sort: &[usize]) -> Result<Ends> {
    let known = reader.group.ends.get_or_try(|| read_ends(reader, schema, sort))?;
    // Another version may have other types.
    let types = || sort.iter().map(|at| schema.field(*at).data_type());
    match known.columns().iter().map(|column| column.data_type()).eq(types()) {
        true => Ok(known.clone()),
        false => read_ends(reader, schema, sort),
    }
}

fn read_ends(reader: &GroupReader<'_>, schema: &Schema, sort: &[usize]) -> Result<Ends> {
    if reader.group.is_in_order() {
        let mut picked = vec![0, reader.group.rows - 1];
        picked.dedup();
        return Ends::at(&reader.pick(schema, sort, &picked)?, 0, picked.len() as u64 - 1);
    }
    let columns = reader.decode(schema, sort, Form::Exact)?;
    let keys = sort_columns::comparable(&columns)?;
    let least = (0..keys.num_rows()).min_by_key(|at| keys.row(*at));
    let greatest = (0..keys.num_rows()).max_by_key(|at| keys.row(*at));
    let (least, greatest) = least.zip(greatest).ok_or_else(|| Error::corrupt("a row group has no rows"))?;
    Ends::at(&columns, least as u64, greatest as u64)
}

impl Bounds {
    /// Between which keys those of the items of a cluster lie.
    fn keys_of(&self, cluster: &[usize], codec: &TableCodec) -> Result<KeyBounds> {
        let (mut lows, mut highs) = (Vec::new(), Vec::new());
        for at in cluster {
            match self.ends.get(at) {
                Some(ends) => {
                    let keys = codec.keys.encode(ends.columns())?;
                    lows.push(Some(keys.get(0).to_vec()));
                    // No key begins another, so the next one is above this.
                    highs.push(Some([keys.get(1).to_vec(), vec![0]].concat()));
                }
                None => {
                    let ColumnStats { nulls, min, max, .. } = &self.stats[*at];
                    lows.push(min.as_ref().filter(|_| *nulls == 0).and_then(|min| codec.keys.lower(min)));
                    highs.push(max.as_ref().and_then(|max| codec.keys.upper(max)));
                }
            }
        }
        let low = lows.into_iter().collect::<Option<Vec<_>>>().and_then(|lows| lows.into_iter().min());
        let high = highs.into_iter().collect::<Option<Vec<_>>>().and_then(|highs| highs.into_iter().max());
        Ok(KeyBounds::new(low.as_deref(), high.as_deref(), false))
    }
}

/// Pieces of rows written by key alone, each of as many as a row group has at most.
fn rows_alone(rows: Range<usize>) -> impl Iterator<Item = Piece> {
    let end = rows.end;
    rows.step_by(ROWS_MAX as usize).map(move |start| {
        let rows = start..end.min(start + ROWS_MAX as usize);
        Piece { rows, ..Piece::default() }
    })
}

/// Drops the pieces that a limit, offset or tail leaves out, of which the row counts are known, and of the first and the last what is
/// left out, if little is left: `skip` rows at the beginning, all but `left` including those, all but the last `tail`.
pub(in crate::table) fn keep_for_limit(
    pieces: &mut VecDeque<Piece>,
    skip: &mut u64,
    left: &mut Option<u64>,
    tail: Option<u64>,
) {
    let rows = Piece::stored_rows;
    while let Some(piece) = pieces.pop_front_if(|piece| rows(piece) <= *skip) {
        *skip -= rows(&piece);
        *left = left.map(|left| left.saturating_sub(rows(&piece)));
    }
    if let Some(limit) = *left {
        let mut seen = 0;
        let enough = pieces.iter().take_while(|piece| {
            let before = seen;
            seen += rows(piece);
            before < limit
        });
        let n = enough.count();
        pieces.truncate(n);
        let others: u64 = pieces.iter().rev().skip(1).map(rows).sum();
        let from = if n == 1 { *skip } else { 0 };
        if let Some(last) = pieces.back_mut()
            && last.cut(from, limit - others.max(from))
        {
            *skip -= from;
            *left = Some(limit - from);
        }
    }
    if let Some(tail) = tail {
        let mut seen = 0;
        let beyond = pieces.iter().rev().take_while(|piece| {
            let behind = seen;
            seen += rows(piece);
            behind < tail
        });
        let n = beyond.count();
        pieces.drain(..pieces.len() - n);
        let stored: u64 = pieces.iter().map(rows).sum();
        let others: u64 = pieces.iter().skip(1).map(rows).sum();
        if let Some(first) = pieces.front_mut() {
            first.cut(stored.saturating_sub(tail), tail.saturating_sub(others));
        }
    }
}

/// The Arrow types to return; the same for every batch.
pub(in crate::table) fn output_types(
    reader: &BlockReader,
    table: &TableState,
    version: Version,
    read_as: &ReadAs,
    columns: &[usize],
    pieces: &[Piece],
    form: Form,
) -> Result<Vec<DataType>> {
    let schema = read_as.shown();
    let exact = columns.iter().map(|&index| schema.field(index).data_type().clone());
    if form == Form::Exact {
        return Ok(exact.collect());
    }
    let groups = pieces.iter().flat_map(|piece| &piece.groups);
    let readers: Vec<_> =
        groups.map(|(group, _)| GroupReader::open(reader, table, version, group)).collect::<Result<_>>()?;
    // If row groups are joined, the joined dictionary might be too large for its keys.
    let joins = |piece: &Piece| piece.groups.len() > 1 && !piece.is_placed();
    let joined = pieces.iter().any(|piece| joins(piece) || !piece.rows.is_empty());
    let native = |(&index, exact): (&usize, DataType)| {
        // The extension type in a field's metadata applies only to the field's own storage type.
        if schema.field(index).extension_type_name().is_some() {
            return exact;
        }
        if read_as.constants().contains_key(schema.field(index).name()) {
            return text_dictionary();
        }
        let own = readers.iter().filter_map(|reader| reader.column(schema.field(index).name()));
        native_type(&exact, joined.then_some(PhysicalForm::Values).into_iter().chain(own.map(|column| column.kept)))
    };
    Ok(columns.iter().zip(exact).map(native).collect())
}
