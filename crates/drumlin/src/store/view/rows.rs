//! Groups of rows of one table, for views.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::RecordBatch;
use arrow::compute::filter_record_batch;

use super::shape::Shape;
use crate::aggregate::{Groups, RANK_FROM};
use crate::base::Result;
use crate::catalog::State;
use crate::filter::{Filter, is_true};
use crate::store::Store;
use crate::store::read::resolve::newest;
use crate::table::{ReadPoint, ScanOptions, ScanPart, TableState, View};

impl Store {
    /// What the newest rows of a table are in `state`, which may not have been committed; later commits than `seq` are not seen.
    pub(super) fn seen_in(&self, state: &State, table: &Arc<TableState>, seq: crate::base::Seq) -> View {
        let read_point = ReadPoint { seq, ..newest(self, state, table) };
        View { table: table.clone(), read_point, time: None, pin: None }
    }

    /// The groups of what is seen of a source, of those rows for which `filter` is true, too.
    pub(super) fn groups_of(&self, shape: &Shape, view: View, filter: Option<Filter>) -> Result<Groups> {
        let mut columns = shape.plan.columns.clone();
        if columns.is_empty() {
            columns.extend(view.schema()?.fields().first().map(|field| field.name().clone()));
        }
        let filter = shape.filter.iter().cloned().chain(filter).reduce(Filter::and);
        let options = ScanOptions { columns: Some(columns), filter, ..ScanOptions::default() };
        let parts: Vec<ScanPart> = self.scan_view(view, None, &options, None)?.into_parts();
        let pool = &self.env().pool;
        let next = AtomicUsize::new(0);
        let work = |_| {
            let mut groups = Groups::new(&shape.plan, (0, 1))?;
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(part) = parts.get(at) else { return Ok(groups) };
                // No part has as many rows.
                let mut rank = RANK_FROM + ((at as u64) << 32);
                for batch in part.decode_as_stored()? {
                    groups.add(&batch, rank)?;
                    rank += batch.num_rows() as u64;
                }
            }
        };
        let threads = pool.threads().clamp(1, parts.len().max(1));
        let found = match threads {
            1 => vec![work(0)?],
            _ => pool.map((0..threads).collect(), work)?,
        };
        let mut all = Groups::new(&shape.plan, (0, 1))?;
        found.into_iter().for_each(|groups| all.merge(groups));
        Ok(all)
    }
}

/// The groups of rows at hand.
pub(super) fn groups_of_rows(shape: &Shape, rows: &RecordBatch) -> Result<Groups> {
    let mut groups = Groups::new(&shape.plan, (0, 1))?;
    let chosen = match &shape.filter {
        None => rows.clone(),
        Some(filter) => {
            let bound = filter.bind(&rows.schema())?;
            let truth = is_true(&bound.evaluate(&RecordBatch::project(rows, bound.columns())?)?);
            filter_record_batch(rows, &truth.into())?
        }
    };
    let places = shape.plan.columns.iter().map(|name| Ok(chosen.schema().index_of(name)?));
    groups.add(&RecordBatch::project(&chosen, &places.collect::<Result<Vec<_>>>()?)?, RANK_FROM)?;
    Ok(groups)
}
