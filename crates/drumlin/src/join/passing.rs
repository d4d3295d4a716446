//! Two sides that are ordered pass each other: of the right side, only rows are kept that the next rows of the left may need.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::plan::JoinPlan;
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result};

/// Batches of the right side, in order, and the rows of them that are held.
pub struct Passing<R> {
    right: R,
    schema: SchemaRef,
    held: Vec<RecordBatch>,
    /// The greatest value of the right side until now.
    seen: Option<i64>,
    ended: bool,
    /// The greatest value of the left side until now.
    reached: Option<i64>,
}

impl<R: Iterator<Item = Result<RecordBatch>>> Passing<R> {
    /// Of batches of `schema` that are ordered by the column of times.
    pub fn new(right: R, schema: SchemaRef) -> Self {
        Self { right, schema, held: Vec::new(), seen: None, ended: false, reached: None }
    }

    /// Joins the next batch of the left side.
    pub fn join(&mut self, plan: &JoinPlan, left: &RecordBatch) -> Result<RecordBatch> {
        let keys = plan.left_keys(left)?;
        let (before, after) = plan.reach();
        if let Some((least, most)) = keys.bounds() {
            if self.reached.is_some_and(|reached| least < reached) {
                return Err(Error::internal("the left side of a join is not in order"));
            }
            self.reached = Some(most);
            self.hold_until(plan, most.saturating_add(after))?;
        }
        if self.held.is_empty() {
            self.held.push(RecordBatch::new_empty(self.schema.clone()));
        }
        let right = plan.right_rows(&self.schema, &self.held)?;
        let joined = plan.join(left, &keys, &right)?;
        if let Some(reached) = self.reached {
            let last = plan.needs_earlier() && !planted(Bug::DropEarlier);
            self.held = vec![right.kept(reached.saturating_sub(before), last)?];
        }
        Ok(joined)
    }

    /// Reads on until a row is later than `value`.
    fn hold_until(&mut self, plan: &JoinPlan, value: i64) -> Result<()> {
        while !self.ended && self.seen.is_none_or(|seen| seen <= value) {
            let Some(batch) = self.right.next().transpose()? else {
                self.ended = true;
                break;
            };
            let Some((least, most)) = plan.axis.of_right(batch.column(plan.right.on))?.bounds() else { continue };
            if self.seen.is_some_and(|seen| least < seen) {
                return Err(Error::internal("the right side of a join is not in order"));
            }
            self.seen = Some(most);
            self.held.push(batch);
        }
        Ok(())
    }
}
