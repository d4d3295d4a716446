//! The vacuum plan: which row groups a checkpoint rewrites, and why. Pure: it looks only at records; a plan can be
//! printed.
//!
//! After DuckDB's vacuum (adjacent row groups fold into fewer), with its gaps closed: a lone mostly-dead row group is
//! rewritten too, a full clean one never is, and small tail groups are merged only when what is added is worth
//! rewriting the rest, so that a thousand small appends cost O(n log n) rows, not O(n^2).

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::base::Version;
use crate::base::planted::{Bug, planted};
use crate::block::Address;
use crate::table::{ROWS_MAX, RowGroup, Rows, Run, TableState};

/// What the plan may do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanOptions {
    /// The minimum share of dead rows for which row groups are folded. With 0, every dead row is removed, even if there are
    /// few others: see [`PlanOptions::purges`]. Default 0.1.
    pub dead_share_min: f64,
    /// The share of dead rows from which a row group is rewritten alone. Default 0.5.
    pub lone_dead_share_min: f64,
    /// The share of dead bytes from which a block's row groups are copied to another. Default 0.5.
    pub repack_dead_share_min: f64,
    /// The maximum share of the tables' bytes to rewrite, and of the blocks' bytes to copy, the most worthwhile first.
    /// Default 1.
    pub budget: f64,
    /// The maximum number of rows of a row group that is written again. Default 122,880; no row group has more.
    pub group_rows: u32,
}

impl PlanOptions {
    /// The maximum number of rows of an output.
    pub(in crate::table) fn rows_max(&self) -> u32 {
        self.group_rows.clamp(1, ROWS_MAX)
    }

    /// Whether every dead row must be removed from storage: no row group with one is left as it is, nor is a block that
    /// holds bytes from before a rewrite; and nothing derived from dead rows, such as bounds or a dictionary of long
    /// texts, is kept.
    pub fn purges(&self) -> bool {
        self.dead_share_min <= 0.0 && !planted(Bug::SkipPurge)
    }
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            dead_share_min: 0.1,
            lone_dead_share_min: 0.5,
            repack_dead_share_min: 0.5,
            budget: 1.0,
            group_rows: ROWS_MAX,
        }
    }
}

/// Why row groups are rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Rows that no retained version sees take space, and the rest fits into fewer row groups.
    Fold,
    /// A lone row group is mostly dead, or has any dead rows if all must be removed; or most of its bytes have been patched.
    Lone,
    /// Small row groups fit into fewer.
    Merge,
    /// Row groups overlap in the sort order.
    Order,
}

/// Adjacent row groups to rewrite together.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Why.
    pub reason: Reason,
    /// The inputs, adjacent in the table.
    pub inputs: Vec<Arc<RowGroup>>,
    /// The rows of each input to keep.
    pub kept: Vec<Rows>,
    /// Row groups after the rewrite.
    pub outputs: u32,
    /// Rows to keep.
    pub rows: u64,
    /// Rows to remove.
    pub dead_rows: u64,
    /// Encoded bytes of the inputs.
    pub bytes: u64,
    /// How many of these are of values that were patched since.
    pub dead_bytes: u64,
    /// Which of the table's schemas the outputs have.
    pub schema: u32,
    /// Whether nothing derived from removed rows may be kept.
    pub purge: bool,
    /// The maximum number of rows of an output.
    pub group_rows: u32,
}

impl Window {
    /// Of candidates that are rewritten to the schema of the first.
    pub(in crate::table) fn of<'a>(
        reason: Reason,
        groups: impl Iterator<Item = &'a Candidate<'a>> + Clone,
        group_rows: u32,
    ) -> Self {
        let live: u64 = groups.clone().map(|c| c.live).sum();
        let rows: u64 = groups.clone().map(|c| u64::from(c.group.rows)).sum();
        let erased = |c: &Candidate<'_>| c.group.deletions.first().is_some_and(|first| first.born == Version(0));
        Self {
            reason,
            inputs: groups.clone().map(|c| c.group.clone()).collect(),
            kept: groups.clone().map(|c| c.needed.clone()).collect(),
            outputs: live.div_ceil(u64::from(group_rows)) as u32,
            rows: live,
            dead_rows: rows - live,
            bytes: groups.clone().map(|c| c.group.bytes()).sum(),
            dead_bytes: groups.clone().map(|c| c.group.dead_bytes()).sum(),
            schema: groups.clone().next().map_or(0, |c| c.schema),
            // What was erased leaves nothing behind, whatever rewrites it.
            purge: groups.clone().any(|c| c.purge || erased(c)),
            group_rows,
        }
    }

    /// Bytes expected to be written.
    pub fn bytes_rewritten(&self) -> u64 {
        share_of(self.bytes - self.dead_bytes.min(self.bytes), self.rows, self.rows + self.dead_rows)
    }

    /// Expected gain in bytes.
    pub fn bytes_gained(&self) -> u64 {
        self.bytes - self.bytes_rewritten()
    }

    /// Bytes gained for each byte rewritten; merging counts each saved row group as a small gain.
    fn worth(&self) -> f64 {
        const GROUP_BYTES: u64 = 4096;
        let saved = self.inputs.len() as u64 - u64::from(self.outputs).min(self.inputs.len() as u64);
        (self.bytes_gained() + saved * GROUP_BYTES) as f64 / (self.bytes_rewritten() + 1) as f64
    }
}

fn share_of(bytes: u64, rows: u64, of: u64) -> u64 {
    (u128::from(bytes) * u128::from(rows)).checked_div(u128::from(of)).unwrap_or(0) as u64
}

/// Why a row group stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftAlone {
    /// It is full, and all its rows are needed.
    Clean,
    /// It is full, and too few of its rows are dead to be worth rewriting.
    FewDead,
    /// It is not full, but what could be added to it is too little, or is seen by versions of other schemas.
    NoNeighbour,
    /// It serves a version that only a snapshot holds.
    Held,
    /// The budget is spent on windows that are worth more.
    Budget,
    /// Another record names the same bytes, so nothing would be gained: a restored version has it too, or a patch was made on it.
    Shared,
}

impl fmt::Display for LeftAlone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LeftAlone::Clean => "full, without dead rows",
            LeftAlone::FewDead => "full, too few dead rows",
            LeftAlone::NoNeighbour => "not full, no neighbour worth merging with",
            LeftAlone::Held => "held only by snapshots",
            LeftAlone::Budget => "beyond the budget",
            LeftAlone::Shared => "shared by several versions' records, so nothing would be gained",
        })
    }
}

/// What to rewrite in one table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// In table order.
    pub windows: Vec<Window>,
    /// Row groups before the rewrite.
    pub groups_before: u64,
    /// Encoded bytes before the rewrite.
    pub bytes_before: u64,
    /// Rows that no retained version sees, before the rewrite.
    pub dead_before: u64,
    /// Windows that the budget left out.
    pub left_out: u64,
    /// Row groups that stay as they are: their number, and the number of their dead rows, by reason.
    pub left_alone: BTreeMap<LeftAlone, (u64, u64)>,
}

impl Plan {
    /// Row groups after the rewrite.
    pub fn groups_after(&self) -> u64 {
        self.windows
            .iter()
            .fold(self.groups_before, |n, window| n - window.inputs.len() as u64 + u64::from(window.outputs))
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rewritten: u64 = self.windows.iter().map(Window::bytes_rewritten).sum();
        let gained: u64 = self.windows.iter().map(Window::bytes_gained).sum();
        writeln!(
            f,
            "{} row groups ({} bytes, {} dead rows) -> {}; rewrite {rewritten} bytes, gain {gained}",
            self.groups_before,
            self.bytes_before,
            self.dead_before,
            self.groups_after(),
        )?;
        for window in &self.windows {
            let (first, last) = (&window.inputs[0], &window.inputs[window.inputs.len() - 1]);
            writeln!(
                f,
                "  {:?} row groups {}..={}: {} -> {}; keep {} rows, drop {}; rewrite {} bytes, gain {}",
                window.reason,
                first.id.0,
                last.id.0,
                window.inputs.len(),
                window.outputs,
                window.rows,
                window.dead_rows,
                window.bytes_rewritten(),
                window.bytes_gained(),
            )?;
        }
        if self.left_out > 0 {
            writeln!(f, "  {} windows left out by the budget", self.left_out)?;
        }
        for (why, (groups, dead)) in &self.left_alone {
            writeln!(f, "  left alone: {groups} row groups with {dead} dead rows: {why}")?;
        }
        Ok(())
    }
}

/// A row group as the plan sees it.
pub(in crate::table) struct Candidate<'a> {
    pub group: &'a Arc<RowGroup>,
    /// The rows that some version needs, and how many these are.
    pub needed: Rows,
    pub live: u64,
    /// The schema of all versions that see it; its own, if they have several.
    pub schema: u32,
    /// It must be purged: no record of the same bytes needs all their rows, or it holds values that no row has any more.
    purge: bool,
    /// Another record of the table names the same bytes.
    pub shared: bool,
}

/// The maximum number of row groups folded together.
const WINDOW_MAX: usize = 16;
/// The maximum number of encoded bytes rewritten together, which limits the memory needed.
const WINDOW_BYTES_MAX: u64 = 128 << 20;
/// Rewriting up to this many rows is so cheap that nothing is saved by avoiding it.
const SMALL_ROWS: u64 = 16_384;

/// The row groups of a table. O(row groups).
pub(in crate::table) fn candidates(table: &TableState) -> Vec<Candidate<'_>> {
    let retained = table.retained();
    let mut candidates: Vec<Candidate<'_>> = table
        .groups
        .iter()
        .map(|group| {
            let needed = retained.needed(group);
            let live = needed.count(group.rows);
            Candidate { group, needed, live, schema: group.schema, purge: false, shared: false }
        })
        .collect();
    mark_schemas(table, &mut candidates);
    mark_shared(&mut candidates);
    candidates
}

/// Plans the vacuum of one table. O(row groups).
pub fn plan(table: &TableState, options: &PlanOptions) -> Plan {
    let mut candidates = candidates(table);
    if options.purges() {
        mark_purged(table, &mut candidates);
    }
    let mut found: Vec<(Range<usize>, Window)> = Vec::new();
    for stretch in stretches(&candidates, options) {
        let mut at = stretch.start;
        while at < stretch.end {
            // Any number of small row groups is merged: a window's cost is its rows.
            let live = sums(&candidates[at..stretch.end], |c| c.live);
            let bytes = sums(&candidates[at..stretch.end], |c| c.group.bytes());
            let small = live.zip(bytes).take_while(|(live, bytes)| *live <= SMALL_ROWS && *bytes <= WINDOW_BYTES_MAX);
            let small = small.count();
            let most = (stretch.end - at).min(WINDOW_MAX);
            if small > WINDOW_MAX {
                found.extend(window(&candidates[at..at + small], options).map(|window| (at..at + small, window)));
                at += small;
                continue;
            }
            let bytes = sums(&candidates[at..at + most], |c| c.group.bytes());
            let most = bytes.take_while(|bytes| *bytes <= WINDOW_BYTES_MAX).count().max(1);
            let best = (1..=most)
                .filter_map(|n| window(&candidates[at..at + n], options))
                .max_by(|a, b| fill(a).total_cmp(&fill(b)).then(a.inputs.len().cmp(&b.inputs.len())));
            match best {
                Some(window) => {
                    let n = window.inputs.len();
                    found.push((at..at + n, window));
                    at += n;
                }
                None => at += 1,
            }
        }
    }
    let bytes_before = candidates.iter().map(|c| c.group.bytes()).sum::<u64>();
    let allowed = (bytes_before as f64 * options.budget) as u64;
    found.sort_by(|a, b| b.1.worth().total_cmp(&a.1.worth()).then(a.0.start.cmp(&b.0.start)));
    let (mut spent, mut left_out) = (0, 0);
    let mut beyond = vec![false; candidates.len()];
    found.retain(|(range, window)| {
        let fits = options.budget >= 1.0 || spent + window.bytes_rewritten() <= allowed;
        spent += if fits { window.bytes_rewritten() } else { 0 };
        left_out += u64::from(!fits);
        beyond[range.clone()].fill(!fits);
        fits
    });
    found.sort_by_key(|(range, _)| range.start);
    let mut left_alone = BTreeMap::new();
    let mut windows = found.iter().map(|(range, _)| range).peekable();
    for (at, candidate) in candidates.iter().enumerate() {
        windows.next_if(|range| range.end <= at);
        if windows.peek().is_none_or(|range| at < range.start) {
            let dead = u64::from(candidate.group.rows) - candidate.live;
            let (groups, rows) = left_alone.entry(candidate.left_alone(options, beyond[at])).or_insert((0, 0));
            *groups += 1;
            *rows += dead;
        }
    }
    Plan {
        windows: found.into_iter().map(|(_, window)| window).collect(),
        groups_before: candidates.len() as u64,
        bytes_before,
        dead_before: candidates.iter().map(|c| u64::from(c.group.rows) - c.live).sum(),
        left_out,
        left_alone,
    }
}

/// Finds the schema that candidates get when they are rewritten. O(versions + row groups x changes of the schema).
fn mark_schemas(table: &TableState, candidates: &mut [Candidate<'_>]) {
    let records = table.versions.iter().chain(table.pins.values().map(|pin| &pin.record));
    let mut records: Vec<(Version, u32)> = records.map(|record| (record.version, record.schema)).collect();
    records.sort_unstable();
    let changes: Vec<&[(Version, u32)]> = records.chunk_by(|a, b| a.1 == b.1).collect();
    for candidate in candidates.iter_mut().filter(|candidate| candidate.group.only.is_none()) {
        let sees = |run: &Run, (first, last): (Version, Version)| run.born <= last && first < run.died;
        let within = |of_one: &&&[(Version, u32)]| {
            let span = (of_one[0].0, of_one[of_one.len() - 1].0);
            candidate.group.runs.iter().any(|run| sees(run, span))
        };
        let mut schemas = changes.iter().rev().filter(within).map(|of_one| of_one[0].1);
        if let Some(schema) = schemas.next()
            && (planted(Bug::MixSchemas) || schemas.all(|other| other == schema))
        {
            candidate.schema = schema;
        }
    }
}

/// Marks the candidates some of whose bytes other candidates have too.
fn mark_shared(candidates: &mut [Candidate<'_>]) {
    if planted(Bug::MixShared) {
        return;
    }
    let of_one = |(at, candidate): (usize, &Candidate<'_>)| {
        candidate.group.addresses().map(move |address| (*address, at)).collect::<Vec<_>>()
    };
    let mut order: Vec<(Address, usize)> = candidates.iter().enumerate().flat_map(of_one).collect();
    order.sort_unstable();
    for same in order.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
        same.iter().for_each(|(_, at)| candidates[*at].shared = true);
    }
}

/// Marks the candidates whose bytes hold a row that none of their records needs, and those with values of columns that
/// were patched or dropped.
fn mark_purged(table: &TableState, candidates: &mut [Candidate<'_>]) {
    let mut needed: BTreeMap<Address, Rows> = BTreeMap::new();
    for Candidate { group, needed: own, .. } in candidates.iter() {
        let of_all = needed.entry(group.address).or_insert(Rows::None);
        *of_all = of_all.or(own, group.rows);
    }
    for candidate in candidates {
        let group = candidate.group;
        let (own, next) = (&table.schemas[group.schema as usize], &table.schemas[candidate.schema as usize]);
        let drops = candidate.schema != group.schema && own.ids().any(|id| next.place_of_id(id).is_none());
        candidate.purge = needed[&group.address] != Rows::All || group.patched.is_some() || drops;
    }
}

impl Candidate<'_> {
    /// Why it stays as it is.
    fn left_alone(&self, options: &PlanOptions, beyond_budget: bool) -> LeftAlone {
        match u64::from(self.group.rows) - self.live {
            _ if beyond_budget => LeftAlone::Budget,
            _ if self.group.only.is_some() => LeftAlone::Held,
            _ if self.shared => LeftAlone::Shared,
            _ if self.group.rows < options.rows_max() => LeftAlone::NoNeighbour,
            0 => LeftAlone::Clean,
            _ => LeftAlone::FewDead,
        }
    }
}

/// The sums over the first, the first two, the first three … items.
fn sums<'a>(
    candidates: &'a [Candidate<'_>],
    of: impl Fn(&Candidate<'_>) -> u64 + 'a,
) -> impl Iterator<Item = u64> + 'a {
    candidates.iter().scan(0, move |sum, candidate| {
        *sum += of(candidate);
        Some(*sum)
    })
}

/// Maximal ranges of adjacent row groups that may be rewritten at all, to one schema.
fn stretches(candidates: &[Candidate<'_>], options: &PlanOptions) -> Vec<Range<usize>> {
    let may = |c: &Candidate<'_>| {
        let dead_share = 1.0 - c.live as f64 / f64::from(c.group.rows.max(1));
        let worth = c.group.rows < options.rows_max()
            || (dead_share > 0.0 && dead_share >= options.dead_share_min)
            || is_mostly_patched(c, options);
        c.purge || (c.group.only.is_none() && !c.shared && worth)
    };
    let alike = |a: &Candidate<'_>, b: &Candidate<'_>| {
        let tract = |c: &Candidate<'_>| c.group.tract();
        a.schema == b.schema && a.group.only == b.group.only && tract(a) == tract(b) && !a.shared && !b.shared
    };
    let mut stretches: Vec<Range<usize>> = Vec::new();
    for (at, candidate) in candidates.iter().enumerate().filter(|(_, c)| may(c)) {
        match stretches.last_mut() {
            Some(last) if last.end == at && alike(&candidates[at - 1], candidate) => last.end += 1,
            _ => stretches.push(at..at + 1),
        }
    }
    stretches
}

/// Whether it is rewritten alone for the bytes that were patched.
fn is_mostly_patched(candidate: &Candidate<'_>, options: &PlanOptions) -> bool {
    let (dead, bytes) = (candidate.group.dead_bytes(), candidate.group.bytes());
    dead > 0 && dead as f64 >= options.lone_dead_share_min * bytes as f64
}

/// The window over `group`s, if it is worth rewriting.
fn window(groups: &[Candidate<'_>], options: &PlanOptions) -> Option<Window> {
    let live: u64 = groups.iter().map(|c| c.live).sum();
    let rows: u64 = groups.iter().map(|c| u64::from(c.group.rows)).sum();
    let outputs = live.div_ceil(u64::from(options.rows_max())) as u32;
    let folds = (outputs as usize) < groups.len();
    let dead_share = 1.0 - live as f64 / rows.max(1) as f64;
    let largest = groups.iter().map(|c| c.live).max().unwrap_or(0);
    let purge = groups.iter().any(|c| c.purge);
    let reason = if folds && dead_share >= options.dead_share_min {
        Reason::Fold
    } else if groups.len() == 1
        && (purge || dead_share >= options.lone_dead_share_min || is_mostly_patched(&groups[0], options))
    {
        Reason::Lone
    } else if folds && (live <= SMALL_ROWS || (live - largest) * 4 >= largest) {
        Reason::Merge
    } else {
        return None;
    };
    Some(Window::of(reason, groups.iter(), options.rows_max()))
}

/// How full the outputs are, from 0 to 1; plus 1 for windows that save row groups, so that these come before lone ones.
fn fill(window: &Window) -> f64 {
    let full = f64::from(window.outputs.max(1)) * f64::from(window.group_rows);
    let saves = if window.reason == Reason::Lone { 0.0 } else { 1.0 };
    saves + window.rows as f64 / full
}
