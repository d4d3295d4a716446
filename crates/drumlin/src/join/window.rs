//! What is computed of the rows in a window around each row: as groups are, of which each row of the left side is one.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, UInt32Type};

use super::axis::{Axis, AxisValues, Distance};
use super::right::RightRows;
use super::seek::seek;
use crate::aggregate::{Aggregate, Function, GroupBy, Grouping, Groups};
use crate::base::Result;
use crate::base::planted::{Bug, planted};

/// How many pairs of rows are looked at together.
const PAIRS: usize = 1 << 16;

/// The column that says which row of the left side a row belongs to; no column of a table is called so.
const ROW: &str = "\u{0}row";

/// What is made of the rows of the other side that are at most so far before and after each row, ends included.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowJoin {
    /// How far before.
    pub before: Distance,
    /// How far after.
    pub after: Distance,
    /// What is made of them, by the columns of the right side.
    pub aggregates: Vec<Aggregate>,
}

#[derive(Clone, Debug)]
pub(super) struct BoundWindow {
    before: i64,
    after: i64,
    grouping: Arc<Grouping>,
    /// By result, whether it is a count: 0 where there are no rows.
    counts: Vec<bool>,
    schema: SchemaRef,
}

impl WindowJoin {
    pub(super) fn bind(&self, axis: &Axis, schema: &SchemaRef) -> Result<BoundWindow> {
        let row = Arc::new(Field::new(ROW, DataType::UInt32, false));
        let with_row: Vec<FieldRef> = schema.fields().iter().cloned().chain([row]).collect();
        let asked = GroupBy { keys: vec![ROW.to_owned()], aggregates: self.aggregates.clone(), every: None };
        let grouping = Arc::new(Grouping::new(&asked, &Schema::new(with_row))?);
        let is_count = |aggregate: &Aggregate| matches!(aggregate.function, Function::Count | Function::CountDistinct);
        Ok(BoundWindow {
            before: axis.distance(self.before, "before")?,
            after: axis.distance(self.after, "after")?,
            counts: self.aggregates.iter().map(is_count).collect(),
            schema: schema.clone(),
            grouping,
        })
    }
}

impl BoundWindow {
    pub fn reach(&self) -> (i64, i64) {
        (self.before, self.after)
    }

    /// The columns that are read of the right side.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.grouping.columns.iter().map(String::as_str).filter(|name| *name != ROW)
    }

    /// The fields of what is computed.
    pub fn fields(&self) -> impl Iterator<Item = FieldRef> + '_ {
        self.grouping.schema.fields().iter().skip(1).cloned()
    }

    /// WindowPairs as rows to be grouped.
    fn rows_of(&self, pairs: &WindowPairs, right: &RightRows) -> Result<RecordBatch> {
        let places = UInt32Array::from(pairs.right.clone());
        let mut columns = Vec::with_capacity(self.grouping.columns.len());
        let mut fields: Vec<FieldRef> = Vec::with_capacity(self.grouping.columns.len());
        let mut next = right.rows.columns().iter();
        for name in &self.grouping.columns {
            if name == ROW {
                columns.push(Arc::new(UInt32Array::from(pairs.left.clone())) as ArrayRef);
                fields.push(Arc::new(Field::new(ROW, DataType::UInt32, false)));
                continue;
            }
            columns.push(take(next.next().expect("it is read"), &places, None)?);
            let field = self.schema.field_with_name(name)?.clone();
            fields.push(Arc::new(field.with_data_type(columns[columns.len() - 1].data_type().clone())));
        }
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }

    /// What is computed, for each row of the left side.
    pub fn results(&self, keys: &AxisValues, ranges: &[Range<usize>], right: &RightRows) -> Result<Vec<ArrayRef>> {
        let mut groups = Groups::new(&self.grouping, (0, 1))?;
        let mut pairs = WindowPairs::default();
        let (mut low_hint, mut high_hint, mut rank) = (0, 0, 0);
        let mut add = |groups: &mut Groups, pairs: &mut WindowPairs| -> Result<()> {
            groups.add(&self.rows_of(pairs, right)?, rank)?;
            rank += pairs.left.len() as u64;
            pairs.left.clear();
            pairs.right.clear();
            Ok(())
        };
        for (row, range) in ranges.iter().enumerate() {
            let Some(key) = keys.get(row) else { continue };
            let low = seek(&right.keys, range.clone(), key.saturating_sub(self.before), false, low_hint);
            let high = key.saturating_add(self.after);
            let high = seek(&right.keys, range.clone(), high, !planted(Bug::MissEqualTimes), high_hint);
            (low_hint, high_hint) = (low, high);
            for place in low..high {
                pairs.left.push(row as u32);
                pairs.right.push(place as u32);
                if pairs.left.len() == PAIRS {
                    add(&mut groups, &mut pairs)?;
                }
            }
        }
        add(&mut groups, &mut pairs)?;
        let found = groups.finish()?;
        let rows = found.column(0).as_primitive::<UInt32Type>();
        let mut places: Vec<Option<u32>> = vec![None; ranges.len()];
        for (place, row) in (0..).zip(rows.values()) {
            places[*row as usize] = Some(place);
        }
        let places = UInt32Array::from(places);
        let made = found.columns()[1..].iter().zip(&self.counts).map(|(column, is_count)| {
            let taken = take(column, &places, None)?;
            Ok(match is_count {
                true => {
                    let counts = taken.as_primitive::<arrow::datatypes::Int64Type>();
                    let filled = counts.iter().map(|count| count.unwrap_or(0));
                    Arc::new(Int64Array::from_iter_values(filled)) as ArrayRef
                }
                false => taken,
            })
        });
        made.collect()
    }
}

/// WindowPairs of rows of both sides.
#[derive(Default)]
struct WindowPairs {
    left: Vec<u32>,
    right: Vec<u32>,
}
