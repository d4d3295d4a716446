//! Rows in the order of a column that the table is not ordered by. The core reads in a table's own order, so they are read into memory
//! and sorted here, within bounds; the last result is kept, so that scrolling sorts once.

use std::sync::Arc;

use drumlin::arrow::array::{RecordBatch, UInt32Array};
use drumlin::arrow::compute::{SortOptions, concat_batches, sort_to_indices, take_record_batch};
use drumlin::{Cancel, Error, ReadOptions, Result, Store, Tables};
use parking_lot::Mutex;

use super::asked::Asked;
use crate::query::Query;

/// The rows that are sorted at most.
const ROWS_MAX: usize = 2_000_000;
/// Their size in memory.
const BYTES_MAX: usize = 256 << 20;

/// Sorted rows, and of what they are.
pub struct Sorted {
    key: (u64, Vec<Option<String>>, Vec<String>),
    rows: RecordBatch,
    order: UInt32Array,
}

/// The rows that were sorted last.
#[derive(Default)]
pub struct LastSorted(Mutex<Option<Arc<Sorted>>>);

impl LastSorted {
    /// The rows asked for, by `column`.
    pub fn of(
        &self,
        store: &Store,
        asked: &Asked<'_>,
        query: &Query,
        column: &str,
        cancel: &Cancel,
    ) -> Result<Arc<Sorted>> {
        let words = ["path", "as_of", "where", "sort", "descending"];
        let words = words.map(|name| query.text(name).map(str::to_owned));
        let mut columns = asked.columns.clone();
        if !columns.iter().any(|name| name == column) {
            columns.push(column.to_owned());
        }
        let key = (store.seq()?.0, words.to_vec(), columns.clone());
        let mut kept = self.0.lock();
        if let Some(sorted) = kept.as_ref().filter(|sorted| sorted.key == key) {
            return Ok(sorted.clone());
        }
        // One at a time, since each may take much memory.
        kept.take();
        let mut scan = asked.scan(cancel);
        scan.columns = Some(columns);
        let table = store.table(asked.path);
        let schema = table.schema(&asked.as_of)?;
        let (mut batches, mut rows, mut bytes) = (Vec::new(), 0, 0);
        for batch in table.read(&ReadOptions::of(asked.as_of.clone(), scan))? {
            let batch = batch?;
            rows += batch.num_rows();
            bytes += batch.get_array_memory_size();
            if rows > ROWS_MAX || bytes > BYTES_MAX {
                return Err(Error::invalid(format!(
                    "there are too many rows to sort; expected at most {ROWS_MAX} rows of {} MiB in total, so filter \
                     them first, or read them in the order of the table",
                    BYTES_MAX >> 20
                )));
            }
            batches.push(batch);
        }
        let of = batches.first().map_or_else(|| schema.clone(), RecordBatch::schema);
        let cannot =
            |e: drumlin::arrow::error::ArrowError| Error::invalid(format!("column '{column}' cannot be sorted: {e}"));
        let rows = concat_batches(&of, &batches).map_err(cannot)?;
        drop(batches);
        let by = rows.column_by_name(column);
        let by = by.ok_or_else(|| Error::not_found(format!("column '{column}' does not exist")))?;
        let options = SortOptions { descending: query.get("descending") == Some("1"), nulls_first: false };
        let order = sort_to_indices(by, Some(options), None).map_err(cannot)?;
        let sorted = Arc::new(Sorted { key, rows, order });
        *kept = Some(sorted.clone());
        Ok(sorted)
    }
}

impl Sorted {
    /// A range of them.
    pub fn part(&self, offset: u64, limit: u64) -> Result<RecordBatch> {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX).min(self.order.len());
        let limit = (limit as usize).min(self.order.len() - offset);
        take_record_batch(&self.rows, &self.order.slice(offset, limit)).map_err(|e| Error::invalid(e.to_string()))
    }
}
