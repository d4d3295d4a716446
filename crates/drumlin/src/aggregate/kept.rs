//! What is kept of groups beside their results, so that they can go on: rows are added to them, and taken away again.
//!
//! Counts and sums are kept as they are, without rounding, so a group that has gone on is, bit by bit, the one of the rows that are left. Of
//! what one row gives (`min`, `max`, `first`, `last`) the result is all that is known: if that row may be gone, the group is
//! *unknown*, and is made again of its rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, AsArray, BinaryArray, RecordBatch, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::Int64Type;
use serde::{Deserialize, Serialize};

use super::best::NOWHERE;
use super::exact::{ExactSum, KeptSum, WideSum};
use super::groups::Groups;
use super::plan::{Function, Grouping};
use super::state::{AggregateState, Sum};
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result};

/// What is kept of one aggregate of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeptState {
    /// Its result says it.
    Shown,
    Count(u64),
    Integers((i128, i64), u64),
    Floats(KeptSum, u64),
    /// Two sums, and of how many values they are.
    Pair(KeptSum, KeptSum, u64),
}

/// Groups with what is kept of them.
pub struct KeptGroups {
    /// Their results, ordered by the keys.
    pub rows: RecordBatch,
    /// For each what [`Groups::resumed`] needs.
    pub kept: BinaryArray,
}

fn damaged() -> Error {
    Error::corrupt("what is kept of a group cannot be decoded")
}

impl Function {
    /// Whether groups can go on from what is kept.
    pub fn is_kept(&self) -> bool {
        use Function::*;
        matches!(self, Count | Sum | Mean | Std | Var | WeightedMean(_) | Min | Max | First | Last)
    }

    /// Whether it depends on the order of rows.
    pub fn is_by_place(&self) -> bool {
        matches!(self, Function::First | Function::Last)
    }
}

impl AggregateState {
    /// What is kept of a group; of an aggregate that [is kept](Function::is_kept).
    fn kept(&self, at: usize) -> KeptState {
        match self {
            Self::Count(n) => KeptState::Count(n[at]),
            Self::Integers(sums) => KeptState::Integers(sums[at].sum.to_kept(), sums[at].n),
            Self::Floats(sums) => KeptState::Floats(sums[at].sum.to_kept(), sums[at].n),
            Self::Squares(sums, n) | Self::Weighted(sums, n) => {
                KeptState::Pair(sums[at].0.to_kept(), sums[at].1.to_kept(), n[at])
            }
            Self::Number(..) | Self::Best(..) | Self::Distinct(..) | Self::Values(_) | Self::Truth(_) => {
                KeptState::Shown
            }
        }
    }

    /// Whether the result of a group says all that is known of it.
    fn is_shown(&self) -> bool {
        matches!(self, Self::Number(..) | Self::Best(..))
    }

    /// Puts what was kept of a group in its place.
    fn resume(&mut self, at: usize, kept: KeptState) -> Option<()> {
        let sum = |kept: &KeptSum| ExactSum::of_kept(kept);
        match (self, kept) {
            (Self::Count(n), KeptState::Count(count)) => n[at] = count,
            (Self::Integers(sums), KeptState::Integers(kept, n)) => sums[at] = Sum { sum: WideSum::of_kept(kept), n },
            (Self::Floats(sums), KeptState::Floats(kept, n)) => sums[at] = Sum { sum: sum(&kept)?, n },
            (Self::Squares(sums, n) | Self::Weighted(sums, n), KeptState::Pair(one, two, count)) => {
                (sums[at], n[at]) = ((sum(&one)?, sum(&two)?), count);
            }
            (state, KeptState::Shown) if state.is_shown() => {}
            _ => return None,
        }
        Some(())
    }

    /// Takes away what another knows, whose groups are those of `map` here; returns which of these may no longer be what they are.
    fn subtract(&mut self, other: Self, map: &[u32]) -> BTreeSet<u32> {
        let mut unknown = BTreeSet::new();
        let to = |at: usize| map[at] as usize;
        let less = |n: &mut u64, gone: u64| n.checked_sub(gone).map(|left| *n = left).is_some();
        match (self, other) {
            (Self::Count(n), Self::Count(gone)) => {
                for (at, gone) in gone.into_iter().enumerate() {
                    if !less(&mut n[to(at)], gone) {
                        unknown.insert(map[at]);
                    }
                }
            }
            (Self::Integers(sums), Self::Integers(gone)) => {
                for (at, gone) in gone.into_iter().enumerate() {
                    let sum = &mut sums[to(at)];
                    sum.sum.subtract(&gone.sum);
                    if !less(&mut sum.n, gone.n) {
                        unknown.insert(map[at]);
                    }
                }
            }
            (Self::Floats(sums), Self::Floats(gone)) => {
                for (at, gone) in gone.into_iter().enumerate() {
                    let sum = &mut sums[to(at)];
                    if !sum.sum.subtract(&gone.sum) | !less(&mut sum.n, gone.n) {
                        unknown.insert(map[at]);
                    }
                }
            }
            (Self::Squares(sums, n), Self::Squares(gone, counts))
            | (Self::Weighted(sums, n), Self::Weighted(gone, counts)) => {
                for (at, (gone, count)) in gone.iter().zip(counts).enumerate() {
                    let sum = &mut sums[to(at)];
                    if !sum.0.subtract(&gone.0) | !sum.1.subtract(&gone.1) | !less(&mut n[to(at)], count) {
                        unknown.insert(map[at]);
                    }
                }
            }
            (Self::Number(best, kind), Self::Number(gone, _)) => {
                for (at, gone) in gone.into_iter().enumerate().filter(|(_, gone)| gone.rank != NOWHERE) {
                    if kind.is_by_place() || best[to(at)].key == gone.key {
                        unknown.insert(map[at]);
                    }
                }
            }
            (Self::Best(best, kind, _), Self::Best(gone, ..)) => {
                for (at, gone) in gone.into_iter().enumerate() {
                    let Some((gone, _)) = gone else { continue };
                    if kind.is_by_place() || best[to(at)].as_ref().is_none_or(|(best, _)| *best == gone) {
                        unknown.insert(map[at]);
                    }
                }
            }
            _ => unreachable!("states of the same aggregate"),
        }
        unknown
    }
}

/// Groups that go on from what was kept of them.
pub struct ResumedGroups {
    groups: Groups,
    /// The numbers of those that must be made again.
    unknown: BTreeSet<u32>,
}

impl Groups {
    /// Groups that go on: `rows` are their results, in the columns of the plan, `kept` what was kept of each. Rows added later must have
    /// ranks from [`RANK_FROM`] on.
    pub fn resumed(plan: &Arc<Grouping>, rows: &RecordBatch, kept: &BinaryArray) -> Result<Groups> {
        let mut groups = Groups::new(plan, (0, 1))?;
        let ids = groups.numbers_of(&rows.columns()[..plan.width()], rows.num_rows())?;
        let mut all: Vec<Vec<KeptState>> = Vec::with_capacity(kept.len());
        for at in 0..kept.len() {
            all.push(postcard::from_bytes(kept.value(at)).map_err(|_| damaged())?);
        }
        for (place, (needed, state)) in groups.states_mut().enumerate() {
            let of_result = |kept: &Vec<KeptState>| kept.get(place) == Some(&KeptState::Shown);
            if !all.is_empty() && state.is_shown() && all.iter().all(of_result) {
                state.add(&ids, &[rows.column(plan.width() + needed).clone()], 0)?;
            }
            for (id, kept) in ids.iter().zip(&all) {
                let kept = kept.get(place).cloned().ok_or_else(damaged)?;
                state.resume(*id as usize, kept).ok_or_else(damaged)?;
            }
        }
        Ok(groups)
    }

    /// The keys of all.
    pub fn all_keys(&self) -> Result<RecordBatch> {
        self.keys_of(&self.in_order())
    }

    /// Takes away groups of rows that are gone, and adds those of new rows; `in_place` says that these come after all others of their groups.
    pub fn with_changes(self, new: Groups, gone: Groups, in_place: bool) -> ResumedGroups {
        let mut groups = self;
        let known = groups.count() as u32;
        let by_place = groups.plan().aggregates.iter().any(|(bound, _)| bound.function.is_by_place());
        let map = groups.merge_mapped(new);
        let mut unknown = BTreeSet::new();
        if by_place && !in_place {
            unknown.extend(map.into_iter().filter(|id| *id < known));
        }
        if !planted(Bug::UpdateWithoutRetraction) {
            unknown.extend(groups.subtract(gone));
        }
        ResumedGroups { groups, unknown }
    }

    fn subtract(&mut self, gone: Groups) -> BTreeSet<u32> {
        let (map, states) = self.mapped(gone);
        let own = self.states_mut().map(|(_, state)| state);
        own.zip(states).flat_map(|(state, gone)| state.subtract(gone, &map)).collect()
    }

    /// The results, ordered by the keys, and what is kept of each: of the groups with the numbers in `ids`.
    fn finish_some(self, wanted: &BTreeSet<u32>) -> Result<KeptGroups> {
        let order: Vec<u32> = self.in_order().into_iter().filter(|id| wanted.contains(id)).collect();
        let kept = |id: &u32| {
            let states: Vec<KeptState> = self.states().map(|state| state.kept(*id as usize)).collect();
            postcard::to_stdvec(&states)
                .map_err(|e| Error::invalid("a group could not be kept").with_source(e.to_string()))
        };
        let kept = order.iter().map(kept).collect::<Result<Vec<_>>>()?;
        let kept: BinaryArray = kept.iter().map(|kept| Some(kept.as_slice())).collect();
        Ok(KeptGroups { rows: self.finish_in(&order)?, kept })
    }

    /// The results of all, ordered by the keys, and what is kept of each.
    pub fn finish_kept(self) -> Result<KeptGroups> {
        let all = (0..self.count() as u32).collect();
        self.finish_some(&all)
    }

    /// The same of the groups of which others are to be made again.
    pub fn finish_of(self, unknown: &RecordBatch) -> Result<KeptGroups> {
        let mut groups = self;
        let wanted = groups.numbers_of(unknown.columns(), unknown.num_rows())?.into_iter().collect();
        groups.finish_some(&wanted)
    }
}

/// The rank of the first row that is added to groups that go on.
pub const RANK_FROM: u64 = 1 << 32;

impl ResumedGroups {
    /// The keys of those that must be made again of their rows.
    pub fn unknown(&self) -> Result<RecordBatch> {
        self.groups.keys_of(&self.unknown.iter().copied().collect::<Vec<_>>())
    }

    /// The others.
    pub fn finish(self) -> Result<KeptGroups> {
        let known = (0..self.groups.count() as u32).filter(|id| !self.unknown.contains(id)).collect();
        self.groups.finish_some(&known)
    }
}

impl KeptGroups {
    /// Both.
    pub fn and(self, other: KeptGroups) -> Result<KeptGroups> {
        let rows = arrow::compute::concat_batches(&self.rows.schema(), [&self.rows, &other.rows])?;
        let kept: BinaryArray = self.kept.iter().chain(other.kept.iter()).collect();
        Ok(KeptGroups { rows, kept })
    }

    /// Those with rows, of which a column of counts says how many, and the results of those without; groups with a key that is null are among neither.
    pub fn with_rows(&self, width: usize, counts: usize) -> Result<(KeptGroups, RecordBatch)> {
        let counts = cast(self.rows.column(counts), &arrow::datatypes::DataType::Int64)?;
        let counts = counts.as_primitive::<Int64Type>();
        let keys = &self.rows.columns()[..width];
        let keyed = |at: usize| keys.iter().all(|key| key.is_valid(at));
        let places = |there: bool| -> UInt32Array {
            (0..self.rows.num_rows() as u32)
                .filter(|at| keyed(*at as usize) && (counts.value(*at as usize) > 0) == there)
                .collect()
        };
        let (there, empty) = (places(true), places(false));
        let rows = arrow::compute::take_record_batch(&self.rows, &there)?;
        let kept = take(&self.kept, &there, None)?;
        let gone = arrow::compute::take_record_batch(&self.rows, &empty)?;
        Ok((KeptGroups { rows, kept: kept.as_binary().clone() }, gone))
    }
}
