//! Which runs are to be made: of what is not covered yet, and of what many small runs cover.
//!
//! Runs are made of at most [`GROUPS_MAX`] full row groups, by rows: as many as are sorted at once. Those of fewer rows are of two classes,
//! below eight full row groups, and below the most; when eight of a class have come together, one takes their place, made from the row
//! groups. When eight of the most have, their entries are merged (*merging.rs*) into a run that stays: what one erasure makes again. So an
//! entry is written four times at most, and a search of n full row groups asks n / 512 runs and 21 smaller ones. A run half of whose row
//! groups are gone is made again, too.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::run::{COVERS_MAX, IndexRun, TableIndex};
use crate::base::Result;
use crate::block::Address;
use crate::table::{GroupId, ROWS_MAX, RowGroup, TableState};

/// The full row groups of the largest runs.
pub const GROUPS_MAX: u64 = 64;

/// How many runs of a class become one.
const FANOUT: usize = 8;

/// Fewer rows that no run covers are left to be scanned.
pub const ROWS_MIN: u64 = 4096;

/// What runs to make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunOptions {
    /// The fewest rows that are covered by a new run. Default: 4,096.
    pub rows_min: u64,
    /// The most rows of a run. Default: those of 64 full row groups.
    pub rows_max: u64,
    /// Whether runs are made again that have entries of a row group which is gone. Default: no.
    pub without_gone: bool,
    /// Whether all runs are made again. Default: no.
    pub again: bool,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self { rows_min: ROWS_MIN, rows_max: GROUPS_MAX * u64::from(ROWS_MAX), without_gone: false, again: false }
    }
}

/// Runs to make for an index.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// The index.
    pub index: u64,
    /// In which of the table's schemas their values are read.
    pub schema: u32,
    /// What each covers.
    pub runs: Vec<Vec<Arc<RowGroup>>>,
    /// The runs whose place they take.
    pub replaces: Vec<u64>,
    /// Others that are merged, each list into one.
    pub merges: Vec<Vec<Arc<IndexRun>>>,
}

/// The runs to make for a table's indexes, without row groups that are in `left_out` of an index.
pub fn plan_runs(
    table: &TableState,
    options: &RunOptions,
    left_out: &BTreeSet<(u64, GroupId)>,
) -> Result<Vec<RunPlan>> {
    let plans = table.indexes.list.iter().map(|index| plan_of(table, index, options, left_out));
    plans.filter_map(Result::transpose).collect()
}

fn plan_of(
    table: &TableState,
    index: &TableIndex,
    options: &RunOptions,
    left_out: &BTreeSet<(u64, GroupId)>,
) -> Result<Option<RunPlan>> {
    let Some(newest) = table.newest() else { return Ok(None) };
    let schema = newest.schema;
    if index.definition.named(&table.schemas[schema as usize])?.is_none() {
        // In the newest version it has no meaning, so nothing new is covered.
        return Ok(None);
    }
    let columns = index.definition.columns()?;
    let covers = index.covers()?;
    // Where several records have the same deciding layer, one stands for all.
    let mut uncovered: BTreeMap<Address, Arc<RowGroup>> = BTreeMap::new();
    let mut covered: HashMap<Address, Arc<RowGroup>> = HashMap::new();
    for group in &table.groups {
        let Some(address) = group.decided_by(&table.schemas, columns) else { continue };
        match covers.contains_key(address) {
            true => drop(covered.insert(*address, group.clone())),
            false if left_out.contains(&(index.id, group.id)) => {}
            false => drop(uncovered.entry(*address).or_insert_with(|| group.clone())),
        }
    }
    let rows_of = |run: &IndexRun| -> u64 {
        run.covered().filter_map(|address| covered.get(address)).map(|group| u64::from(group.rows)).sum()
    };
    let is_worn = |run: &IndexRun| {
        let gone = run.covers.iter().filter(|cover| cover.is_none_or(|cover| !covered.contains_key(&cover))).count();
        options.again || gone * 2 >= run.covers.len() || (options.without_gone && gone > 0)
    };
    let (worn, sound): (Vec<&Arc<IndexRun>>, Vec<_>) = index.runs().iter().partition(|run| is_worn(run));
    let mut taken: Vec<&Arc<IndexRun>> = worn;
    let mut classes: [Vec<&Arc<IndexRun>>; 2] = Default::default();
    let mut full: BTreeMap<u32, Vec<Arc<IndexRun>>> = BTreeMap::new();
    for run in sound {
        let rows = rows_of(run);
        match () {
            () if rows * FANOUT as u64 <= options.rows_max => classes[0].push(run),
            () if rows * 2 <= options.rows_max => classes[1].push(run),
            // In one schema its values have the same types.
            () if rows <= options.rows_max => full.entry(run.schema).or_default().push(run.clone()),
            () => {}
        }
    }
    let fits = |runs: &&[Arc<IndexRun>]| runs.iter().map(|run| run.covers.len()).sum::<usize>() <= COVERS_MAX;
    let together = full.values().flat_map(|runs| runs.chunks_exact(FANOUT));
    let merges: Vec<Vec<Arc<IndexRun>>> = together.filter(fits).map(<[_]>::to_vec).collect();
    let waiting: u64 = uncovered.values().map(|group| u64::from(group.rows)).sum();
    let adds = waiting >= options.rows_min.max(1);
    for class in classes {
        if class.len() + usize::from(adds || !taken.is_empty()) > FANOUT {
            taken.extend(class);
        }
    }
    if !adds && taken.is_empty() && merges.is_empty() {
        return Ok(None);
    }
    let mut groups: Vec<Arc<RowGroup>> = uncovered.into_values().filter(|_| adds || !taken.is_empty()).collect();
    for run in &taken {
        groups.extend(run.covered().filter_map(|address| covered.get(address)).cloned());
    }
    // In the order of the table, so that each run is of neighbours.
    let order: HashMap<GroupId, usize> = table.groups.iter().enumerate().map(|(at, group)| (group.id, at)).collect();
    groups.sort_by_key(|group| order.get(&group.id).copied());
    groups.dedup_by_key(|group| group.id);
    let (mut runs, mut rows): (Vec<Vec<Arc<RowGroup>>>, u64) = (Vec::new(), 0);
    for group in groups {
        let own = u64::from(group.rows);
        match runs.last_mut() {
            Some(run) if rows + own <= options.rows_max && run.len() < COVERS_MAX => {
                rows += own;
                run.push(group);
            }
            _ => {
                rows = own;
                runs.push(vec![group]);
            }
        }
    }
    Ok(Some(RunPlan { index: index.id, schema, runs, replaces: taken.iter().map(|run| run.id).collect(), merges }))
}
