//! Which row groups of a table a checkpoint lays out, because they overlap in the columns of its layout.
//!
//! Row groups that stand side by side are laid out together, as many as are merged in memory at once: each row is shown in its old place, so a
//! reader of all rows reads a tract at a time. What was laid out is so again, with what came since, once that is a quarter of it: so rows that
//! come bit by bit are written O(log n) times.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::definition::RowLayout;
use super::overlap::{Extent, extents_of, overlap};
use crate::base::Result;
use crate::base::planted::{Bug, planted};
use crate::block::BlockReader;
use crate::table::order::plan::{OrderPlan, PlannedSlot, RUNS_MAX, between_barriers, bytes_left, movable, runs_after};
use crate::table::read::group_reader::GroupReader;
use crate::table::vacuum::plan::{Candidate, candidates};
use crate::table::{Laying, PlanOptions, ROWS_MAX, Reason, RowGroup, TableState, Tract, Window};

/// The most rows, and encoded bytes, that are laid out together.
const TRACT_ROWS: u64 = 16 * ROWS_MAX as u64;
const TRACT_BYTES: u64 = 128 << 20;
/// The most bytes that their rows may take in memory.
const TRACT_DECODED_BYTES: u64 = 1 << 30;
/// The most row groups.
const TRACT_GROUPS: usize = 256;

/// Row groups are worth laying out if each overlaps as many others, in the mean.
const OVERLAP_MIN: f64 = 1.0;

/// What was laid out is so again if it has at most as many times the rows that came since.
const LAID_OUT_TIMES: u64 = 4;

/// A row group, or all those of a tract.
struct Unit {
    /// Their places among the candidates.
    places: Vec<usize>,
    rows: u64,
    bytes: u64,
    /// They were laid out as it is wanted.
    done: bool,
}

/// Plans what to lay out in one table, of which `spent` bytes are rewritten anyway, and at most `rows_max` rows at once: the worst overlaps first.
/// `tract` gives a number that no other has. Reads directories of the row groups that the newest version sees.
pub fn plan_layout(
    reader: &BlockReader,
    table: &TableState,
    options: &PlanOptions,
    spent: u64,
    rows_max: u64,
    tract: impl Fn() -> Result<u64>,
) -> Result<Vec<OrderPlan>> {
    let (Some(newest), Some((layout, number))) = (table.newest(), table.row_layout()) else { return Ok(Vec::new()) };
    let all = candidates(table);
    let movable = movable(table, &all, newest);
    let whole = whole_tracts(&all, &movable);
    let movable: Vec<bool> = all
        .iter()
        .zip(&movable)
        .map(|(candidate, movable)| *movable && candidate.group.tract().is_none_or(|tract| whole.contains(&tract.id)))
        .collect();
    let mut left = bytes_left(table, options, spent);
    let schema = &table.schemas[newest.schema as usize].0;
    let group_rows = options.rows_max();
    let mut found: Vec<(f64, Vec<usize>)> = Vec::new();
    for places in between_barriers(table, &movable) {
        if places.len() < 2 && group_rows == ROWS_MAX {
            continue;
        }
        let groups = places.iter().map(|at| &**all[*at].group);
        let extents: BTreeMap<usize, Extent> =
            places.iter().copied().zip(extents_of(reader, table, &layout, groups)?).collect();
        let units = units(&all, &places, &layout, number, &extents);
        let worthwhile = |rows_max: u64| worthwhile(&units, &layout, &extents, group_rows, rows_max);
        let mut own = worthwhile(rows_max.min(TRACT_ROWS));
        if let Some((_, first)) = own.first() {
            // A reader of all rows has those of a tract in memory.
            let largest = first.iter().max_by_key(|at| all[**at].group.bytes() / u64::from(all[**at].group.rows));
            let largest = largest.map_or(&all[first[0]], |at| &all[*at]);
            let rows = TRACT_DECODED_BYTES.min(rows_max * 4)
                / GroupReader::open(reader, table, newest.version, largest.group)?.bytes_a_row(schema)?;
            if rows < rows_max.min(TRACT_ROWS) {
                own = worthwhile(rows);
            }
        }
        let fits = |(_, places): &(f64, Vec<usize>)| {
            let rows: u64 = places.iter().map(|at| all[*at].live).sum();
            let groups = places.iter().map(|at| &**all[*at].group);
            runs_after(groups, rows.div_ceil(u64::from(group_rows)), table) <= RUNS_MAX
        };
        found.extend(own.into_iter().filter(fits));
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1[0].cmp(&b.1[0])));
    let laying = |id: u64| Laying {
        columns: layout.columns().to_vec(),
        curve: matches!(layout, RowLayout::Curve(_)),
        tract: Tract { id, layout: number },
    };
    let mut plans = Vec::new();
    for (_, places) in found {
        let own: u64 = places.iter().map(|at| all[*at].group.bytes()).sum();
        if own <= left {
            left = left.saturating_sub(own);
            plans.push(plan_of(table, &all, &places, group_rows, laying(tract()?)));
        }
    }
    Ok(plans)
}

/// The tracts all of whose row groups may be moved: what remained would be shown apart from the rest.
fn whole_tracts(all: &[Candidate<'_>], movable: &[bool]) -> BTreeSet<u64> {
    let of = |moves: bool| {
        let own = all
            .iter()
            .zip(movable)
            .filter(move |(candidate, movable)| candidate.group.only.is_none() && **movable == moves);
        own.filter_map(|(candidate, _)| candidate.group.tract()).map(|tract| tract.id)
    };
    let mut whole: BTreeSet<u64> = of(true).collect();
    if !planted(Bug::LayOutPart) {
        let broken: BTreeSet<u64> = of(false).collect();
        whole.retain(|id| !broken.contains(id));
    }
    whole
}

fn units(
    all: &[Candidate<'_>],
    places: &[usize],
    layout: &RowLayout,
    number: u64,
    extents: &BTreeMap<usize, Extent>,
) -> Vec<Unit> {
    let tract = |at: usize| all[at].group.tract();
    let same = |a: &usize, b: &usize| tract(*a).is_some() && tract(*a) == tract(*b);
    // Rows that were sorted lie apart, unless they have got other values since.
    let lies_apart = |places: &[usize]| {
        let extents: Vec<&Extent> = places.iter().map(|at| &extents[at]).collect();
        matches!(layout, RowLayout::Curve(_))
            || !extents.iter().all(|extent| extent.is_exact())
            || overlap(layout, &extents) < OVERLAP_MIN
    };
    let unit = |places: &[usize]| Unit {
        rows: places.iter().map(|at| all[*at].live).sum(),
        bytes: places.iter().map(|at| all[*at].group.bytes()).sum(),
        done: tract(places[0]).is_some_and(|tract| tract.layout == number) && lies_apart(places),
        places: places.to_vec(),
    };
    places.chunk_by(same).map(unit).collect()
}

/// What is worth laying out together, and how much it overlaps.
fn worthwhile(
    units: &[Unit],
    layout: &RowLayout,
    extents: &BTreeMap<usize, Extent>,
    group_rows: u32,
    rows_max: u64,
) -> Vec<(f64, Vec<usize>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < units.len() {
        let (mut rows, mut bytes, mut groups) = (0, 0, 0);
        let fits = units[at..].iter().take_while(|unit| {
            (rows, bytes, groups) = (rows + unit.rows, bytes + unit.bytes, groups + unit.places.len());
            rows <= rows_max && bytes <= TRACT_BYTES && groups <= TRACT_GROUPS
        });
        let own = &units[at..at + fits.count().max(1)];
        let places: Vec<usize> = own.iter().flat_map(|unit| unit.places.iter().copied()).collect();
        let rows: u64 = own.iter().map(|unit| unit.rows).sum();
        let largest = own.iter().filter(|unit| unit.done).map(|unit| unit.rows).max().unwrap_or(0);
        let splits = rows > u64::from(group_rows);
        let alone = own.len() == 1 && (own[0].done || own[0].rows > rows_max || (places.len() < 2 && !splits));
        if alone || (rows - largest).saturating_mul(LAID_OUT_TIMES) < largest {
            at += 1;
            continue;
        }
        at += own.len();
        // A row group that is to be split overlaps itself.
        let within = if places.len() == 1 { OVERLAP_MIN } else { 0.0 };
        let overlap = within + overlap(layout, &places.iter().map(|at| &extents[at]).collect::<Vec<_>>());
        if overlap >= OVERLAP_MIN {
            found.push((overlap, places));
        }
    }
    found
}

fn plan_of(table: &TableState, all: &[Candidate<'_>], places: &[usize], group_rows: u32, laying: Laying) -> OrderPlan {
    let range = places[0]..places[places.len() - 1] + 1;
    let groups: Vec<Arc<RowGroup>> = table.groups.iter().skip(range.start).take(range.len()).cloned().collect();
    // No version shows those that stay in their places together with any of the others.
    let others = range.clone().filter(|place| places.binary_search(place).is_err());
    let mut slots: Vec<PlannedSlot> =
        others.map(|place| PlannedSlot::Kept(groups[place - range.start].clone())).collect();
    slots.push(PlannedSlot::Merge(Window::of(Reason::Order, places.iter().map(|at| &all[*at]), group_rows)));
    OrderPlan { groups, slots, laying: Some(laying) }
}
