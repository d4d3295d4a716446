//! Joins with the nearest row.

use std::ops::Range;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::take;

use super::axis::{Axis, AxisValues, Distance};
use super::right::RightRows;
use super::seek::seek;
use crate::base::Result;
use crate::base::planted::{Bug, planted};

/// Where the row of the right side lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// The last one that is not later. Of several of that time, the last in the order of their table.
    #[default]
    Backward,
    /// The first one that is not earlier. Of several of that time, the first.
    Forward,
    /// The nearer of both; the earlier one if they are equally far.
    Nearest,
}

/// Each row with the row of the other side that is nearest to it; nulls, where there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsofJoin {
    /// Where that lies.
    pub direction: Direction,
    /// How far away it may be at most. Default: any distance.
    pub tolerance: Option<Distance>,
    /// Whether it may be of the same time. Default: it may.
    pub allow_exact: bool,
}

impl Default for AsofJoin {
    fn default() -> Self {
        Self { direction: Direction::Backward, tolerance: None, allow_exact: true }
    }
}

#[derive(Clone, Debug)]
pub(super) struct BoundAsof {
    direction: Direction,
    tolerance: Option<i64>,
    allow_exact: bool,
}

impl AsofJoin {
    pub(super) fn bind(&self, axis: &Axis) -> Result<BoundAsof> {
        let tolerance = self.tolerance.map(|tolerance| axis.distance(tolerance, "tolerance")).transpose()?;
        Ok(BoundAsof { direction: self.direction, tolerance, allow_exact: self.allow_exact })
    }
}

impl BoundAsof {
    /// How far ahead rows of some group are looked for; `None` if that is not known.
    pub fn ahead(&self) -> Option<i64> {
        if self.direction == Direction::Backward { Some(0) } else { self.tolerance }
    }

    /// The columns of the right side, for each row of the left.
    pub fn columns(&self, keys: &AxisValues, ranges: &[Range<usize>], right: &RightRows) -> Result<Vec<ArrayRef>> {
        let mut hint = 0;
        let mut found = Vec::with_capacity(ranges.len());
        for (row, range) in ranges.iter().enumerate() {
            let near = keys.get(row).and_then(|key| self.nearest(key, range, &right.keys, &mut hint));
            found.push(near.map(|place| place as u32));
        }
        let found = UInt32Array::from(found);
        right.rows.columns().iter().map(|column| Ok(take(column, &found, None)?)).collect()
    }

    fn nearest(&self, key: i64, range: &Range<usize>, keys: &[i64], hint: &mut usize) -> Option<usize> {
        // The first that is later, and the first that is not earlier.
        let mut first = |after: bool| {
            let found = seek(keys, range.clone(), key, after, *hint);
            *hint = found;
            found
        };
        let within = |place: &usize| self.tolerance.is_none_or(|most| keys[*place].abs_diff(key) <= most as u64);
        let backward = |first: &mut dyn FnMut(bool) -> usize| {
            let end = first(self.allow_exact && !planted(Bug::MissEqualTimes));
            (end > range.start).then(|| end - 1)
        };
        let forward = |first: &mut dyn FnMut(bool) -> usize| {
            let at = first(!self.allow_exact);
            (at < range.end).then_some(at)
        };
        let found = match self.direction {
            Direction::Backward => backward(&mut first),
            Direction::Forward => forward(&mut first),
            Direction::Nearest => match (backward(&mut first), forward(&mut first)) {
                (Some(before), Some(after)) => {
                    let nearer = keys[after].abs_diff(key) < keys[before].abs_diff(key);
                    Some(if nearer { after } else { before })
                }
                (before, after) => before.or(after),
            },
        };
        found.filter(within)
    }
}
