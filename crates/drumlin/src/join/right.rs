//! The rows of the right side, ordered by group and time.

use std::collections::HashMap;
use std::ops::Range;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, SchemaRef};
use foldhash::quality::FixedState;

use super::axis::{Axis, AxisValues};
use super::sides::BoundSide;
use crate::base::{Error, Result};
use crate::segment::take_batch;
use crate::table::{KeyRows, into_type};

/// The rows of the right side that rows of the left may be joined with.
pub(super) struct RightRows {
    /// All columns that are read, as they came.
    all: RecordBatch,
    /// Where the rows below are among these; `None` if they are the same.
    order: Option<Vec<u32>>,
    /// The columns of the result.
    pub rows: RecordBatch,
    /// By what they are joined, ascending within a group.
    pub keys: Vec<i64>,
    /// By the values of the columns `by`; `None` if all are of one group.
    groups: Option<HashMap<Box<[u8]>, Range<usize>, FixedState>>,
}

impl RightRows {
    /// Of batches with the columns that the plan reads of the right side.
    pub fn new(
        axis: &Axis,
        side: &BoundSide,
        by: &[DataType],
        schema: &SchemaRef,
        batches: &[RecordBatch],
    ) -> Result<Self> {
        let all = match batches {
            [batch] => batch.clone(),
            several => concat_batches(schema, several)?,
        };
        if u32::try_from(all.num_rows()).is_err() {
            return Err(Error::invalid("a table on the right side of a join has 2^32 rows or more"));
        }
        let AxisValues { values, nulls } = axis.of_right(all.column(side.on))?;
        let rows = all.project(&side.shown)?;
        if by.is_empty() && nulls.as_ref().is_none_or(|nulls| nulls.null_count() == 0) && values.is_sorted() {
            return Ok(Self { all, order: None, rows, keys: values, groups: None });
        }
        let groups = group_keys(&all, &side.by, by)?;
        let kept = |row: &u32| {
            nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row as usize))
                && groups.as_ref().is_none_or(|groups| groups.get(*row as usize).is_some())
        };
        let order: Vec<u32> = (0..all.num_rows() as u32).filter(kept).collect();
        let mut numbers: HashMap<Box<[u8]>, u32, FixedState> = HashMap::default();
        let number = |row: u32| -> u32 {
            let Some(key) = groups.as_ref().and_then(|groups| groups.get(row as usize)) else { return 0 };
            let next = numbers.len() as u32;
            match numbers.get(key) {
                Some(number) => *number,
                None => *numbers.entry(key.into()).or_insert(next),
            }
        };
        let of_rows: Vec<u32> = order.iter().copied().map(number).collect();
        let mut places: Vec<u32> = (0..order.len() as u32).collect();
        // Rows of one time stay in the order of the table.
        places.sort_by_key(|place| (of_rows[*place as usize], values[order[*place as usize] as usize]));
        let mut ranges: Vec<Range<usize>> = vec![0..0; numbers.len()];
        for (at, place) in places.iter().enumerate() {
            if let Some(range) = ranges.get_mut(of_rows[*place as usize] as usize) {
                *range = if range.start == range.end { at..at + 1 } else { range.start..at + 1 };
            }
        }
        let order: Vec<u32> = places.iter().map(|place| order[*place as usize]).collect();
        let keys = order.iter().map(|row| values[*row as usize]).collect();
        let groups = groups
            .is_some()
            .then(|| numbers.into_iter().map(|(key, number)| (key, ranges[number as usize].clone())).collect());
        let rows = take_batch(&rows, order.iter().copied())?;
        Ok(Self { all, order: Some(order), rows, keys, groups })
    }

    /// The rows from `value` on, and if `last`, of each group the last one before; with all columns, in the order in which they came.
    pub fn kept(&self, value: i64, last: bool) -> Result<RecordBatch> {
        let from = |range: Range<usize>| {
            let first = range.start + self.keys[range.clone()].partition_point(|key| *key < value);
            if last { first.saturating_sub(1).max(range.start) } else { first }
        };
        let Some(order) = &self.order else {
            let first = from(0..self.keys.len());
            return Ok(self.all.slice(first, self.keys.len() - first));
        };
        let ranges: Vec<Range<usize>> = match &self.groups {
            Some(groups) => groups.values().cloned().collect(),
            None => std::iter::once(0..self.keys.len()).collect(),
        };
        let places = ranges.into_iter().flat_map(|range| &order[from(range.clone())..range.end]);
        let mut places: Vec<u32> = places.copied().collect();
        places.sort_unstable();
        take_batch(&self.all, places)
    }

    /// Where the rows of the group of each row of the left side are.
    pub fn ranges(&self, left: &RecordBatch, places: &[usize], by: &[DataType]) -> Result<Vec<Range<usize>>> {
        let Some(groups) = &self.groups else { return Ok(vec![0..self.keys.len(); left.num_rows()]) };
        let keys = group_keys(left, places, by)?.expect("there are columns to join by");
        let range = |row: usize| keys.get(row).and_then(|key| groups.get(key).cloned()).unwrap_or(0..0);
        Ok((0..left.num_rows()).map(range).collect())
    }
}

/// The values of rows in the columns `by` at `places`, compared in these types; `None` if there are none.
fn group_keys(batch: &RecordBatch, places: &[usize], types: &[DataType]) -> Result<Option<KeyRows>> {
    let column = |(place, wanted): (&usize, &DataType)| into_type(batch.column(*place).clone(), wanted);
    let columns = places.iter().zip(types).map(column).collect::<Result<Vec<_>>>()?;
    if columns.is_empty() { Ok(None) } else { KeyRows::new(columns, false).map(Some) }
}
