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
/// overlap).
pub(in crate::table) fn overlap(layout: &RowLayout, extents: &[&Extent]) -> f64 {
    let Some(first) = extents.first() else { return 0.0 };
    let columns = first.0.len();
    match layout {
        RowLayout::Curve(_) => (0..columns).map(|column| overlap_in(column, extents)).sum::<f64>() / columns as f64,
        RowLayout::Sorted(_) => {
            // The first column in which they have more than one value, as far as statistics tell.
            let is_one = |extent: &&Extent, column: usize| extent.0[column].is_only(&first.0[column]);
            let column = (0..columns).find(|column| !extents.iter().all(|extent| is_one(extent, *column)));
            column.map_or(0.0, |column| overlap_in(column, extents))
        }
    }
}

fn overlap_in(column: usize, extents: &[&Extent]) -> f64 {
    let mut spans: Vec<&Span> = extents.iter().map(|extent| &extent.0[column]).collect();
    spans.sort_by(|a, b| a.compare_lows(b));
    let (mut open, mut pairs): (Vec<&Span>, usize) = (Vec::new(), 0);
    for span in spans {
        open.retain(|other| !other.ends_before(span));
        pairs += open.iter().filter(|other| other.overlaps(span)).count();
        open.push(span);
    }
    2.0 * pairs as f64 / extents.len() as f64
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
