//! Puts row groups of a sorted table into another order: those that overlap in the sort order are merged, and stand where their rows
//! belong among the others.
//!
//! What every version shows, and in which order, stays the same. The order of rows that a sorted table shows is that of their keys, and
//! of equal ones that in which row groups, and rows in them, stand in the table. So row groups may change places where they have no
//! key in common, and rows of several may be merged as long as equal ones keep their order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, Seq, Version};
use crate::block::Address;
use crate::table::state::moves::{Moved, Order};
use crate::table::vacuum::rewrite::{Remapped, WALK_SHARE, split};
use crate::table::{GroupId, MergeOrder, RewrittenGroup, RowGroup, Rows, Run, TableState};

/// Another order of adjacent row groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reorder {
    /// The row groups, as they stand now; if others stand there, it is void.
    pub groups: Vec<GroupId>,
    /// What stands there afterwards: each of these row groups, alone or merged.
    pub slots: Vec<Slot>,
}

/// What stands at a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Slot {
    /// A row group as it is.
    Kept(GroupId),
    /// The rows of several.
    Merged(MergedGroups),
}

/// Row groups that were merged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergedGroups {
    /// The row groups.
    pub inputs: Vec<GroupId>,
    /// What replaces them.
    pub outputs: Vec<RewrittenGroup>,
    /// Which of their rows is which; `None` if that would take too much: then changes that were prepared before must be prepared again.
    pub order: Option<MergeOrder>,
}

impl Reorder {
    /// What is added to the table.
    pub fn outputs(&self) -> impl Iterator<Item = &RewrittenGroup> {
        self.slots.iter().flat_map(|slot| match slot {
            Slot::Kept(_) => &[][..],
            Slot::Merged(merged) => &merged.outputs,
        })
    }
}

/// Versions among which no other tells rows apart.
pub struct Classes {
    /// The versions from which on rows may look different, ascending.
    bounds: Vec<Version>,
}

impl Classes {
    /// Those of a table: the versions that stay readable, and those of rows in memory, which hide older rows.
    pub fn of(table: &TableState) -> Self {
        let records = table.versions.iter().chain(table.pins.values().map(|pin| &pin.record));
        let after = records.map(|record| Version(record.version.0 + 1));
        let mut bounds: Vec<Version> = after.chain(table.parts.iter().map(|part| part.version)).collect();
        bounds.extend(table.instants.histories.iter().map(|history| history.version));
        bounds.sort_unstable();
        bounds.dedup();
        Self { bounds }
    }

    /// The first version of the class that `version` is in.
    fn first(&self, version: Version) -> Version {
        match self.bounds.partition_point(|bound| *bound <= version) {
            0 => Version(0),
            n => self.bounds[n - 1],
        }
    }

    /// When rows of a run begin and end to be visible, the same for all that the same versions see.
    pub fn of_run(&self, run: &Run) -> (Version, Version) {
        let died = if run.died == crate::table::ALIVE { run.died } else { self.first(run.died) };
        (self.first(run.born), died)
    }
}

/// Runs and deletions of the outputs of a merge, from those that the `inputs` have now. `kept` are the rows of each input that it kept,
/// `to` where these are, counted over all outputs, `sizes` the rows of each output.
pub fn remap_merged(
    inputs: &[Arc<RowGroup>],
    kept: &[Rows],
    to: &[Vec<u32>],
    sizes: &[u32],
    classes: &Classes,
) -> Vec<Remapped> {
    let total = sizes.iter().map(|size| *size as usize).sum();
    let mut known: BTreeMap<(Version, Version), u32> = BTreeMap::new();
    let mut class_of_row = vec![0_u32; total];
    let mut deleted: BTreeMap<Version, RoaringBitmap> = BTreeMap::new();
    for ((group, kept), to) in inputs.iter().zip(kept).zip(to) {
        let positions = kept.positions(group.rows);
        let mut places = positions.iter().zip(to).peekable();
        for (range, run) in group.spans() {
            let next = known.len() as u32;
            let class = *known.entry(classes.of_run(&run)).or_insert(next);
            while let Some((_, place)) = places.next_if(|(row, _)| *row < range.end) {
                class_of_row[*place as usize] = class;
            }
        }
        for deletion in &group.deletions {
            let hit = &*deletion.rows.0 & &positions;
            let deleted = deleted.entry(deletion.born).or_default();
            // Of few rows each is looked for among those kept; to walk over all for each of many deletions would take long.
            match hit.len() < positions.len() / WALK_SHARE {
                true => deleted.extend(hit.iter().map(|row| to[positions.rank(row) as usize - 1])),
                false => {
                    let rows = positions.iter().zip(to).filter(|(row, _)| hit.contains(*row));
                    deleted.extend(rows.map(|(_, place)| *place));
                }
            }
        }
    }
    deleted.retain(|_, rows| !rows.is_empty());
    let mut by_number = vec![(Version(0), Version(0)); known.len()];
    known.into_iter().for_each(|(class, number)| by_number[number as usize] = class);
    let run = |rows: &[u32]| {
        let (born, died) = by_number[rows[0] as usize];
        Run { rows: rows.len() as u32, born, died }
    };
    let runs: Vec<Run> = class_of_row.chunk_by(|a, b| a == b).map(run).collect();
    split(&runs, &deleted, sizes)
}

impl TableState {
    /// Puts row groups into another order; returns the table and the addresses of those that were merged. `Conflict` if others stand
    /// there now.
    pub fn reorder(&self, reorder: &Reorder, seq: Seq) -> Result<(TableState, Vec<Address>)> {
        let gone = || Error::conflict("row groups to be put in order have moved or no longer exist");
        let first = reorder.groups.first().ok_or_else(|| Error::invalid("there is no row group to put in order"))?;
        let at = self.groups.iter().position(|group| group.id == *first).ok_or_else(gone)?;
        let there = self.groups.iter().skip(at).take(reorder.groups.len()).cloned();
        let mut there: BTreeMap<GroupId, Arc<RowGroup>> = there.map(|group| (group.id, group)).collect();
        if !self.groups.iter().skip(at).map(|group| &group.id).take(reorder.groups.len()).eq(&reorder.groups) {
            return Err(gone());
        }
        let mut next = self.clone();
        let mut own = next.groups.split_off(at);
        let behind = own.split_off(reorder.groups.len());
        let (mut addresses, mut moves) = (Vec::new(), Vec::new());
        let twice = || Error::invalid("a row group to be put in order occurs twice or not at all");
        for slot in &reorder.slots {
            match slot {
                Slot::Kept(id) => next.groups.push_back(there.remove(id).ok_or_else(twice)?),
                Slot::Merged(MergedGroups { inputs, outputs, order }) => {
                    let take = |id: &GroupId| there.remove(id).filter(|group| group.only.is_none());
                    let inputs = inputs.iter().map(take).collect::<Option<Vec<_>>>().ok_or_else(twice)?;
                    let mut made = Vec::with_capacity(outputs.len());
                    for output in outputs {
                        let id = GroupId(next.next_group);
                        next.next_group += 1;
                        let group = Arc::new(output.record(id));
                        group.check(next.schemas.len())?;
                        next.groups.push_back(group.clone());
                        made.push(group);
                    }
                    addresses.extend(inputs.iter().flat_map(|group| group.addresses()).copied());
                    moves.push((inputs, made, Order::Merged(order.clone())));
                }
            }
        }
        if !there.is_empty() {
            return Err(twice());
        }
        next.groups.append(behind);
        if !next.leaves_no_part(moves.iter().flat_map(|(inputs, ..)| inputs)) {
            return Err(Error::conflict("row groups were laid out together with others that are not merged with them"));
        }
        next.layout_seq = seq;
        if let Some(version) = self.newest().map(|newest| newest.version).filter(|_| !planted(Bug::ForgetMoves)) {
            for (inputs, outputs, order) in moves {
                next.moved.0.push_back(Arc::new(Moved { seq, version, inputs, outputs, order }));
            }
        }
        Ok((next, addresses))
    }

    /// Whether no row group of the table is of a tract that one of these is of, apart from themselves: what the versions show of it would come apart.
    fn leaves_no_part<'g>(&self, inputs: impl Iterator<Item = &'g Arc<RowGroup>>) -> bool {
        let merged: BTreeMap<u64, BTreeSet<GroupId>> = inputs
            .filter_map(|group| Some((group.tract()?.id, group.id)))
            .fold(BTreeMap::new(), |mut all: BTreeMap<u64, BTreeSet<GroupId>>, (tract, id)| {
                all.entry(tract).or_default().insert(id);
                all
            });
        let is_left = |group: &Arc<RowGroup>| {
            let inputs = group.tract().and_then(|tract| merged.get(&tract.id));
            group.only.is_none() && inputs.is_some_and(|inputs| !inputs.contains(&group.id))
        };
        merged.is_empty() || planted(Bug::LayOutPart) || !self.groups.iter().any(is_left)
    }

    /// `reorder` as it is in this table, a later state: without merges whose inputs are gone. `None` if its row groups do not stand
    /// together any more, or nothing is left to do.
    pub fn still_reordered(&self, mut reorder: Reorder) -> Option<Reorder> {
        let there: BTreeSet<GroupId> = self.groups.iter().map(|group| group.id).collect();
        reorder.groups.retain(|id| there.contains(id));
        let is_there = |id: &GroupId| there.contains(id);
        let is_whole = |merged: &MergedGroups| {
            let inputs: BTreeSet<&GroupId> = merged.inputs.iter().collect();
            self.leaves_no_part(self.groups.iter().filter(|group| inputs.contains(&group.id)))
        };
        let left = |slot: Slot| match slot {
            Slot::Merged(merged) if merged.inputs.iter().all(is_there) && is_whole(&merged) => {
                vec![Slot::Merged(merged)]
            }
            Slot::Merged(merged) => merged.inputs.into_iter().filter(is_there).map(Slot::Kept).collect(),
            Slot::Kept(id) => Some(Slot::Kept(id)).filter(|_| is_there(&id)).into_iter().collect(),
        };
        reorder.slots = reorder.slots.into_iter().flat_map(left).collect();
        let first = reorder.groups.first()?;
        let at = self.groups.iter().position(|group| group.id == *first)?;
        let same = self.groups.iter().skip(at).map(|group| &group.id).take(reorder.groups.len()).eq(&reorder.groups);
        let merges = reorder.slots.iter().any(|slot| matches!(slot, Slot::Merged(_)));
        (same && merges).then_some(reorder)
    }
}
