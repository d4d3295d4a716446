//! Which row groups of a sorted table a checkpoint merges, because too many of them overlap in the sort order.
//!
//! A reader of any key then finds it in at most two row groups: as a rule in one of those that were there, and in one of those that came
//! since. Where more overlap, the later ones are merged with each other, and also with the first if that does not cost much more. So
//! rows that come in order, or a few that come late, cost what overlaps with them, not the whole table.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::clusters::{Span, clusters, is_before};
use crate::base::planted::{Bug, planted};
use crate::base::{Pool, Result, Version};
use crate::block::BlockReader;
use crate::table::read::pieces::{Bounds, bounds_of};
use crate::table::vacuum::plan::{Candidate, candidates};
use crate::table::{Classes, Laying, PlanOptions, Reason, RowGroup, Rows, TableState, VersionRecord, Window};

/// How many row groups may overlap anywhere.
const OVERLAP_MAX: usize = 2;

/// The first row groups are merged with the later ones if they have at most as many times the bytes of these.
const FIRST_TIMES: u64 = 4;

/// The most runs that the outputs of a merge may have together, of rows that different versions see.
pub(in crate::table) const RUNS_MAX: u64 = 1 << 16;

/// Another order of adjacent row groups.
#[derive(Clone, Debug)]
pub struct OrderPlan {
    /// The row groups, as they stand now.
    pub groups: Vec<Arc<RowGroup>>,
    /// What is to stand there.
    pub slots: Vec<PlannedSlot>,
    /// How what is merged is laid out; `None` if it comes into the order of the table.
    pub laying: Option<Laying>,
}

/// What is to stand at a place.
#[derive(Clone, Debug)]
pub enum PlannedSlot {
    /// A row group as it is.
    Kept(Arc<RowGroup>),
    /// Row groups that are merged.
    Merge(Window),
}

/// Row groups of a table that may change places among each other.
struct Movable<'a> {
    candidates: Vec<&'a Candidate<'a>>,
    /// Their places in the table.
    places: Vec<usize>,
    spans: Vec<Span>,
    alone: bool,
    /// The maximum number of rows of an output.
    group_rows: u32,
}

/// Plans what to merge in one table, of which `spent` bytes are rewritten anyway, and at most `rows_max` rows at once. Reads directories of the
/// row groups that the newest version sees, and sort keys where these do not suffice.
pub fn plan_order(
    reader: &BlockReader,
    pool: &Pool,
    table: &TableState,
    options: &PlanOptions,
    spent: u64,
    rows_max: u64,
) -> Result<Vec<OrderPlan>> {
    let Some(newest) = table.newest().filter(|_| !table.order().is_empty()) else { return Ok(Vec::new()) };
    let all = candidates(table);
    let mut left = bytes_left(table, options, spent);
    let movable = movable(table, &all, newest);
    let mut plans = Vec::new();
    for places in between_barriers(table, &movable) {
        if places.len() <= OVERLAP_MAX {
            continue;
        }
        let groups: Vec<(Arc<RowGroup>, Rows)> = places.iter().map(|at| (all[*at].group.clone(), Rows::All)).collect();
        let bounds = bounds_of(reader, pool, table, newest.version, &groups)?;
        let candidates = places.iter().map(|at| &all[*at]).collect();
        let movable =
            Movable { candidates, places, spans: bounds.spans, alone: bounds.alone, group_rows: options.rows_max() };
        plans.extend(movable.plan(table, &mut left, rows_max));
    }
    Ok(plans)
}

/// Which row groups may change places: those of no record but one, which the newest version shows, and that have its schema.
pub(in crate::table) fn movable(table: &TableState, all: &[Candidate<'_>], newest: &VersionRecord) -> Vec<bool> {
    let is_movable = |candidate: &Candidate<'_>| {
        let group = candidate.group;
        group.only.is_none()
            && !candidate.shared
            && candidate.schema == newest.schema
            && table.visible(group, newest.version) != Rows::None
    };
    all.iter().map(is_movable).collect()
}

/// How many bytes the budget leaves, of which `spent` are rewritten anyway.
pub(in crate::table) fn bytes_left(table: &TableState, options: &PlanOptions, spent: u64) -> u64 {
    let bytes: u64 = table.groups.iter().map(|group| group.bytes()).sum();
    match options.budget >= 1.0 {
        true => u64::MAX,
        false => ((bytes as f64 * options.budget) as u64).saturating_sub(spent),
    }
}

/// The places of row groups that may change places, in lists between which others stand that some version shows among them.
pub(in crate::table) fn between_barriers(table: &TableState, movable: &[bool]) -> Vec<Vec<usize>> {
    let pinned = table.pins.values().filter(|pin| !pin.detached).map(|pin| pin.record.version);
    let versions: BTreeSet<Version> = table.versions.iter().map(|record| record.version).chain(pinned).collect();
    let moved = |version: &&Version| {
        table.groups.iter().zip(movable).any(|(group, movable)| *movable && group.is_in(**version))
    };
    let shared: Vec<Version> = versions.iter().filter(moved).copied().collect();
    let mut lists: Vec<Vec<usize>> = vec![Vec::new()];
    for (at, (group, movable)) in table.groups.iter().zip(movable).enumerate() {
        if *movable {
            lists.last_mut().expect("there is one").push(at);
        } else if group.only.is_none() && shared.iter().any(|version| group.is_in(*version)) {
            lists.push(Vec::new());
        }
    }
    lists
}

impl Movable<'_> {
    fn before(&self, earlier: usize, later: usize) -> bool {
        is_before(&self.spans, earlier, later, self.alone)
    }

    fn bytes(&self, items: &[usize]) -> u64 {
        items.iter().map(|at| self.candidates[*at].group.bytes()).sum()
    }

    fn rows(&self, items: &[usize]) -> u64 {
        items.iter().map(|at| self.candidates[*at].live).sum()
    }

    /// How many of `items` overlap at most. O(items x overlap).
    fn depth(&self, items: &[usize]) -> usize {
        let mut ascending = items.to_vec();
        ascending.sort_by(|a, b| self.spans[*a].compare_lows(&self.spans[*b]).then(a.cmp(b)));
        let (mut open, mut most): (Vec<usize>, usize) = (Vec::new(), 0);
        for at in ascending {
            open.retain(|earlier| !self.before(*earlier, at));
            open.push(at);
            most = most.max(open.len());
        }
        most
    }

    /// `items`, in the order in which they stand, in lists of such as are in order.
    fn tiers(&self, items: &[usize]) -> Vec<Vec<usize>> {
        items.chunk_by(|a, b| self.before(*a, *b)).map(<[usize]>::to_vec).collect()
    }

    /// The clusters of some of the items, in the sort order.
    fn clusters(&self, items: &[usize]) -> Vec<Vec<usize>> {
        let spans: Vec<Span> = items.iter().map(|at| self.spans[*at].clone()).collect();
        let clusters = clusters(&spans, self.alone).into_iter();
        clusters.map(|cluster| cluster.into_iter().map(|at| items[at]).collect()).collect()
    }

    /// Those of a cluster that are merged, if they are worth it and fit into the budget.
    fn chosen(&self, cluster: &[usize], table: &TableState, left: u64, rows_max: u64) -> Option<Vec<usize>> {
        let tiers = self.tiers(cluster);
        let later: u64 = tiers[1..].iter().map(|tier| self.bytes(tier)).sum();
        let first = usize::from(later.saturating_mul(FIRST_TIMES) < self.bytes(&tiers[0]));
        let fits = |from: &usize| {
            let items = tiers[*from..].concat();
            self.bytes(&items) <= left && self.rows(&items) <= rows_max && self.runs(&items, table) <= RUNS_MAX
        };
        // At least two of them.
        let from = (first..tiers.len() - 1).find(fits)?;
        Some(tiers[from..].concat())
    }

    /// How many runs of rows that different versions see their outputs may have.
    fn runs(&self, items: &[usize], table: &TableState) -> u64 {
        let groups = items.iter().map(|at| &**self.candidates[*at].group);
        runs_after(groups, self.rows(items).div_ceil(u64::from(self.group_rows)), table)
    }

    fn plan(&self, table: &TableState, left: &mut u64, rows_max: u64) -> Option<OrderPlan> {
        let items: Vec<usize> = (0..self.spans.len()).collect();
        let mut deep: Vec<(usize, Vec<usize>)> =
            self.clusters(&items).into_iter().map(|items| (self.depth(&items), items)).collect();
        deep.retain(|(depth, _)| *depth > OVERLAP_MAX && !planted(Bug::LeaveOverlaps));
        deep.sort_by_key(|(depth, items)| (std::cmp::Reverse(*depth), items[0]));
        let mut chosen: BTreeSet<usize> = BTreeSet::new();
        for (_, cluster) in deep {
            if let Some(items) = self.chosen(&cluster, table, *left, rows_max) {
                *left = left.saturating_sub(self.bytes(&items));
                chosen.extend(items);
            }
        }
        let (first, last) = (*chosen.first()?, *chosen.last()?);
        let range = self.places[first]..self.places[last] + 1;
        let groups: Vec<Arc<RowGroup>> = table.groups.iter().skip(range.start).take(range.len()).cloned().collect();
        // No version shows those that stay in their places together with any of the others.
        let own: BTreeSet<usize> = self.places[first..=last].iter().copied().collect();
        let others = range.clone().filter(|place| !own.contains(place));
        let mut slots: Vec<PlannedSlot> =
            others.map(|place| PlannedSlot::Kept(groups[place - range.start].clone())).collect();
        for cluster in self.clusters(&items[first..=last]) {
            let (merged, kept): (Vec<usize>, Vec<usize>) = cluster.into_iter().partition(|at| chosen.contains(at));
            slots.extend(kept.into_iter().map(|at| PlannedSlot::Kept(self.candidates[at].group.clone())));
            slots.extend(self.clusters(&merged).into_iter().map(|items| self.slot(&items)));
        }
        slots.iter().any(|slot| matches!(slot, PlannedSlot::Merge(_))).then_some(OrderPlan {
            groups,
            slots,
            laying: None,
        })
    }

    fn slot(&self, items: &[usize]) -> PlannedSlot {
        if let [at] = items
            && self.candidates[*at].group.is_in_order()
        {
            return PlannedSlot::Kept(self.candidates[*at].group.clone());
        }
        let candidates = items.iter().map(|at| self.candidates[*at]);
        PlannedSlot::Merge(Window::of(Reason::Order, candidates, self.group_rows))
    }
}

/// How many runs of rows that different versions see `outputs` row groups may have that row groups are merged into.
pub(in crate::table) fn runs_after<'g>(
    groups: impl Iterator<Item = &'g RowGroup>,
    outputs: u64,
    table: &TableState,
) -> u64 {
    let classes = Classes::of(table);
    let runs: Vec<(Version, Version)> = groups.flat_map(|group| &group.runs).map(|run| classes.of_run(run)).collect();
    runs.chunk_by(|a, b| a == b).count() as u64 * outputs
}

/// Whether row groups of a window are not in the order of the table, so that it is worth merging them. Only of those that the newest version
/// sees, with its schema.
pub fn overlaps(reader: &BlockReader, pool: &Pool, table: &TableState, window: &Window) -> Result<bool> {
    let Some(newest) = table.newest().filter(|_| !table.order().is_empty()) else { return Ok(false) };
    let is_shown = |group: &Arc<RowGroup>| group.only.is_none() && table.visible(group, newest.version) != Rows::None;
    if window.schema != newest.schema || !window.inputs.iter().all(is_shown) {
        return Ok(false);
    }
    if window.inputs.iter().any(|group| !group.is_in_order()) {
        return Ok(true);
    }
    let groups: Vec<(Arc<RowGroup>, Rows)> = window.inputs.iter().map(|group| (group.clone(), Rows::All)).collect();
    let Bounds { spans, alone, .. } = bounds_of(reader, pool, table, newest.version, &groups)?;
    Ok((1..spans.len()).any(|later| !is_before(&spans, later - 1, later, alone)))
}
