//! Two sides that are ordered pass each other: of the right side, only batches are kept that the next rows of the left may need.

use std::collections::VecDeque;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::plan::JoinPlan;
use super::right::RightRows;
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result};

/// Batches of the right side, in order, and those among them that are held.
pub struct Passing<R> {
    right: R,
    schema: SchemaRef,
    /// Each with its least and greatest value; without those that have none.
    held: VecDeque<(RecordBatch, (i64, i64))>,
    ended: bool,
    /// The greatest value of the left side until now.
    reached: Option<i64>,
}

impl<R: Iterator<Item = Result<RecordBatch>>> Passing<R> {
    /// Of batches of `schema` that are ordered by the column of times, without groups.
    pub fn new(right: R, schema: SchemaRef) -> Self {
        Self { right, schema, held: VecDeque::new(), ended: false, reached: None }
    }

    /// Joins the next batch of the left side.
    pub fn join(&mut self, plan: &JoinPlan, left: &RecordBatch) -> Result<RecordBatch> {
        let keys = plan.axis.of_left(left.column(plan.left.on))?;
        if let Some((least, most)) = keys.bounds() {
            if self.reached.is_some_and(|reached| least < reached) {
                return Err(Error::internal("the left side of a join is not in order"));
            }
            self.reached = Some(most);
            let (before, after) = plan.reach();
            self.hold_until(plan, most.saturating_add(after))?;
            self.let_go(least.saturating_sub(before));
        }
        let held: Vec<RecordBatch> = self.held.iter().map(|(batch, _)| batch.clone()).collect();
        let held = if held.is_empty() { vec![RecordBatch::new_empty(self.schema.clone())] } else { held };
        plan.join(left, &RightRows::new(plan, &self.schema, &held)?)
    }

    /// Reads on until a row is later than `value`.
    fn hold_until(&mut self, plan: &JoinPlan, value: i64) -> Result<()> {
        while !self.ended && self.held.back().is_none_or(|(_, (_, last))| *last <= value) {
            let Some(batch) = self.right.next().transpose()? else {
                self.ended = true;
                break;
            };
            let Some(bounds) = plan.axis.of_right(batch.column(plan.right.on))?.bounds() else { continue };
            if self.held.back().is_some_and(|(_, (_, last))| bounds.0 < *last) {
                return Err(Error::internal("the right side of a join is not in order"));
            }
            self.held.push_back((batch, bounds));
        }
        Ok(())
    }

    /// Lets go of batches behind which there are rows before `value`: of all that are before it, the last is enough.
    fn let_go(&mut self, value: i64) {
        let slack = i64::from(planted(Bug::LetGoEarly)) * (i64::MAX / 4);
        while self.held.get(1).is_some_and(|(_, (first, _))| *first < value.saturating_add(slack)) {
            self.held.pop_front();
        }
    }
}
