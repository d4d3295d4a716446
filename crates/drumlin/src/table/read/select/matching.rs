//! The rows for which a filter is true.

use std::sync::Arc;

use arrow::buffer::BooleanBuffer;

use super::expiry::Expiry;
use super::matches::Matches;
use super::truth::matching;
use crate::base::{Cancel, Pool, Result};
use crate::block::BlockReader;
use crate::filter::{Filter, Verdict};
use crate::memtable::{Keys, RowBytes};
use crate::table::index::mask::{Asked, Mask};
use crate::table::memory::overlay::SeenOverlay;
use crate::table::read::group_reader::GroupReader;
use crate::table::read::groups_ahead::GroupsAhead;
use crate::table::schema::read_as::{Constants, ReadAs};
use crate::table::{ReadPoint, RowGroup, Rows, TableCodec, TableState};

/// Rows of a table, wherever they are stored.
pub struct FoundRows {
    /// Those in row groups.
    pub groups: Vec<Matches>,
    /// The keys of those written by key since.
    pub keys: Keys,
}

impl FoundRows {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.groups.iter().map(|matches| matches.rows.len()).sum::<u64>() + self.keys.len() as u64
    }
}

/// The visible rows for which `filter` is true, found in parallel.
pub fn matching_rows(
    reader: &BlockReader,
    pool: &Pool,
    table: &TableState,
    read_point: ReadPoint,
    filter: &Filter,
    cancel: &Cancel,
) -> Result<FoundRows> {
    let schema = table.schema_of(read_point.version)?.0.clone();
    let read_as = ReadAs::new(schema.clone(), Constants::new());
    let asked = Asked { reader, pool, table, version: read_point.version, read_as: &read_as, limit: None };
    let mask = asked.mask(filter)?;
    let (by, filter) = (filter, filter.bind(&schema)?);
    let find = |group: &GroupReader<'_>, rows: &Rows| matching(group, &schema, rows, &filter);
    let keep = |codec: &TableCodec, keys: &Keys, rows: &RowBytes| {
        filter.truth(&schema, keys.len(), codec.decode(keys, rows, filter.columns())?)
    };
    let overlay = asked.in_memory(read_point, Some(by))?;
    let undecided = |group: &GroupReader<'_>| {
        filter.verdict(u64::from(group.group.rows), &|index| group.stats(&schema, index)) == Verdict::Some
    };
    let (columns, wanted) = (filter.columns(), &undecided as _);
    search(&Searched { reader, pool, table, read_point, mask, overlay, columns, wanted }, cancel, find, keep)
}

/// Where rows are looked for.
pub(in crate::table) struct Searched<'a> {
    pub reader: &'a BlockReader,
    pub pool: &'a Pool,
    pub table: &'a TableState,
    pub read_point: ReadPoint,
    /// Only rows of row groups that are among these.
    pub mask: Option<Mask>,
    /// What is seen of row writes.
    pub overlay: Option<SeenOverlay>,
    /// The columns that are read.
    pub columns: &'a [usize],
    /// Of which row groups.
    pub wanted: &'a (dyn Fn(&GroupReader<'_>) -> bool + Sync),
}

/// The visible rows that `find` finds in row groups, and those written by key since that `keep` keeps.
pub(in crate::table) fn search(
    searched: &Searched<'_>,
    cancel: &Cancel,
    find: impl Fn(&GroupReader<'_>, &Rows) -> Result<Rows> + Send + Sync,
    keep: impl Fn(&TableCodec, &Keys, &RowBytes) -> Result<BooleanBuffer>,
) -> Result<FoundRows> {
    let Searched { reader, pool, table, read_point, mask, overlay, columns, wanted } = searched;
    let expiry = Expiry::at(table, *read_point)?;
    let shown = |group: &Arc<RowGroup>| {
        let rows = table.visible(group, read_point.version);
        match mask {
            Some(mask) => mask.narrowed(group, rows),
            None => rows,
        }
    };
    let groups: Vec<(&Arc<RowGroup>, Rows)> =
        table.groups.iter().map(|group| (group, shown(group))).filter(|(_, rows)| *rows != Rows::None).collect();
    let keys = overlay.iter().flat_map(|overlay| overlay.codec.key_places()).copied();
    let times = expiry.iter().flat_map(|expiry| expiry.columns()).copied();
    let ahead = groups.iter().map(|(group, _)| &***group).collect();
    let columns = columns.iter().copied().chain(keys).chain(times);
    let ahead = GroupsAhead::new(reader, table, read_point.version, ahead, columns);
    let found = pool.map(groups.into_iter().enumerate().collect(), |(at, (group, rows))| {
        cancel.check()?;
        ahead.before(at, wanted);
        let group = GroupReader::open(reader, table, read_point.version, group)?;
        let mut rows = find(&group, &rows)?;
        if let Some(expiry) = &expiry {
            rows = expiry.alive(&group, rows)?;
        }
        if let Some(overlay) = overlay {
            rows = overlay.hide(&group, rows)?;
        }
        let group = group.group;
        Ok((rows != Rows::None).then(|| Matches { group: group.id, rows: rows.positions(group.rows) }))
    })?;
    let mut keys = Keys::default();
    if let Some(SeenOverlay { rows, codec, .. }) = overlay {
        let (all, rows) = rows.rows_at(0..rows.keys.len());
        let mut kept = keep(codec, &all, &rows)?;
        if let Some(expiry) = &expiry {
            kept = &kept & &expiry.alive_in_memory(codec, &all, &rows)?;
        }
        keys = all.take(kept.set_indices());
    }
    Ok(FoundRows { groups: found.into_iter().flatten().collect(), keys })
}
