//! How much row groups overlap in the columns of a layout, by statistics alone.

use crate::base::Result;
use crate::block::BlockReader;
use crate::table::layout::definition::RowLayout;
use crate::table::order::clusters::Span;
use crate::table::read::group_reader::GroupReader;
use crate::table::schema::arrays::find;
use crate::table::{RowGroup, Rows, TableState};

/// Where a row group lies: in each of some columns, between which values.
pub(in crate::table) struct Extent(Vec<Span>);

/// The extents of row groups that the newest version sees, in the columns of a layout.
pub(in crate::table) fn extents_of<'g>(
    reader: &BlockReader,
    table: &TableState,
    layout: &RowLayout,
    groups: impl Iterator<Item = &'g RowGroup> + Clone,
) -> Result<Vec<Extent>> {
    let Some(newest) = table.newest() else { return Ok(Vec::new()) };
    let schema = &table.schemas[newest.schema as usize].0;
    let columns = layout.columns().iter().map(|name| find(schema, name)).collect::<Result<Vec<_>>>()?;
    reader.fetch_directories(groups.clone().flat_map(|group| group.addresses()));
    let extent = |group: &'g RowGroup| {
        let reader = GroupReader::open(reader, table, newest.version, group)?;
        let span = |at: &usize| Span::new(&reader.stats(schema, *at).unwrap_or_default(), group.rows);
        Ok(Extent(columns.iter().map(span).collect()))
    };
    groups.map(extent).collect()
}

/// How many others each of these overlaps, in the mean: 0 if they lie apart. By a curve, that of its columns, in the mean. O(n log n + pairs that
/// overlap in the first column).
pub(in crate::table) fn overlap(layout: &RowLayout, extents: &[&Extent]) -> f64 {
    match layout {
        RowLayout::Curve(columns) => {
            let in_column = |at: usize| pairs_in(extents, at, |a, b| a.0[at].overlaps(&b.0[at]));
            mean((0..columns.len()).map(in_column).sum::<usize>(), extents.len()) / columns.len() as f64
        }
        RowLayout::Sorted(_) => mean(pairs_in(extents, 0, Extent::overlaps), extents.len()),
    }
}

fn mean(pairs: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { 2.0 * pairs as f64 / of as f64 }
}

/// The pairs that overlap, among those that meet in a column.
fn pairs_in(extents: &[&Extent], column: usize, overlap: impl Fn(&Extent, &Extent) -> bool) -> usize {
    let mut ascending = extents.to_vec();
    ascending.sort_by(|a, b| a.0[column].compare_lows(&b.0[column]));
    let (mut open, mut pairs): (Vec<&Extent>, usize) = (Vec::new(), 0);
    for extent in ascending {
        open.retain(|other| !other.0[column].ends_before(&extent.0[column]));
        pairs += open.iter().filter(|other| overlap(other, extent)).count();
        open.push(extent);
    }
    pairs
}

impl Extent {
    /// Whether rows of both may alternate, sorted by the columns one after the other: as the first column says in which not all of them have the
    /// same value.
    fn overlaps(&self, other: &Extent) -> bool {
        let mut columns = self.0.iter().zip(&other.0);
        columns.find(|(own, other)| !own.is_only(other)).is_some_and(|(own, other)| own.overlaps(other))
    }

    /// Whether both ends are those of a row in each column.
    pub fn is_exact(&self) -> bool {
        self.0.iter().all(Span::is_exact)
    }
}

/// How the row groups of a table lie that its newest version shows, in the columns of its layout.
#[derive(Clone, Debug, PartialEq)]
pub struct RowLayoutStat {
    /// The layout.
    pub layout: RowLayout,
    /// Row groups that were laid out like that.
    pub laid_out: u64,
    /// How many others a row group overlaps, in the mean: 0 if each value is in one row group. Of the first column; of a Z-order, that of its
    /// columns, in the mean, which is never 0.
    pub overlap: f64,
}

/// That of a table; `None` if it has no layout. Reads directories. O(row groups x overlap).
pub fn row_layout_stat(reader: &BlockReader, table: &TableState) -> Result<Option<RowLayoutStat>> {
    let (Some(newest), Some((layout, number))) = (table.newest(), table.row_layout()) else { return Ok(None) };
    let is_shown = |group: &&RowGroup| group.only.is_none() && table.visible(group, newest.version) != Rows::None;
    let groups = table.groups.iter().map(|group| &**group).filter(is_shown);
    let extents = extents_of(reader, table, &layout, groups.clone())?;
    let is_laid_out = |group: &&RowGroup| group.tract().is_some_and(|tract| tract.layout == number);
    Ok(Some(RowLayoutStat {
        overlap: overlap(&layout, &extents.iter().collect::<Vec<_>>()),
        laid_out: groups.filter(is_laid_out).count() as u64,
        layout,
    }))
}
