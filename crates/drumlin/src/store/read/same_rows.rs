//! Rows that both sides of a difference have: they were written again, as they were.

use std::collections::{HashMap, VecDeque};

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::Schema;
use arrow::row::{RowConverter, SortField};
use foldhash::fast::FixedState;
use twox_hash::XxHash3_128;

use crate::base::{Cancel, Result};

/// New rows are kept until the old ones were compared, rather than read again, if they take no more memory.
const KEPT_BYTES: usize = 64 << 20;

/// Counts rows by their content, of which it keeps a hash of 128 bits.
pub(in crate::store) struct Alike {
    converter: RowConverter,
    /// How many new rows there are, and how many of them are struck out.
    counts: HashMap<u128, (u32, u32), FixedState>,
    /// The new rows and their hashes, unless they are too many.
    kept: Option<VecDeque<(RecordBatch, Vec<u128>)>>,
}

impl Alike {
    /// Counts the rows of the new side; `None` if rows of this schema are not compared.
    pub fn of(
        schema: &Schema,
        rows: impl Iterator<Item = Result<RecordBatch>>,
        cancel: &Cancel,
    ) -> Result<Option<Self>> {
        let fields: Vec<SortField> =
            schema.fields().iter().map(|field| SortField::new(field.data_type().clone())).collect();
        if !RowConverter::supports_fields(&fields) {
            return Ok(None);
        }
        let converter = RowConverter::new(fields)?;
        let mut alike = Self { converter, counts: HashMap::default(), kept: Some(VecDeque::new()) };
        let mut bytes = 0;
        for batch in rows {
            cancel.check()?;
            let batch = batch?;
            let keys = alike.keys(&batch)?;
            keys.iter().for_each(|key| alike.counts.entry(*key).or_default().0 += 1);
            bytes += batch.get_array_memory_size();
            match &mut alike.kept {
                Some(kept) if bytes <= KEPT_BYTES => kept.push_back((batch, keys)),
                _ => alike.kept = None,
            }
        }
        Ok(Some(alike))
    }

    /// The rows that are gone, without those that come again.
    pub fn gone(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let keys = self.keys(batch)?;
        self.without(batch, &keys, |(left, struck)| {
            let again = *left > 0;
            (*left, *struck) = (*left - u32::from(again), *struck + u32::from(again));
            again
        })
    }

    /// The next of the rows that are new, without those that were there, if they were kept, or of those that `read` has.
    pub fn next_new(&mut self, read: &mut impl Iterator<Item = Result<RecordBatch>>) -> Result<Option<RecordBatch>> {
        let next = match &mut self.kept {
            Some(kept) => kept.pop_front(),
            None => match read.next().transpose()? {
                Some(batch) => {
                    let keys = self.keys(&batch)?;
                    Some((batch, keys))
                }
                None => None,
            },
        };
        let Some((batch, keys)) = next else { return Ok(None) };
        let new = self.without(&batch, &keys, |(_, struck)| {
            let there = *struck > 0;
            *struck -= u32::from(there);
            there
        });
        new.map(Some)
    }

    fn without(
        &mut self,
        batch: &RecordBatch,
        keys: &[u128],
        strike: impl Fn(&mut (u32, u32)) -> bool,
    ) -> Result<RecordBatch> {
        let kept = keys.iter().map(|key| !self.counts.get_mut(key).is_some_and(&strike));
        let kept: BooleanArray = kept.map(Some).collect();
        match kept.true_count() == batch.num_rows() {
            true => Ok(batch.clone()),
            false => Ok(filter_record_batch(batch, &kept)?),
        }
    }

    fn keys(&self, batch: &RecordBatch) -> Result<Vec<u128>> {
        let rows = self.converter.convert_columns(batch.columns())?;
        Ok(rows.iter().map(|row| XxHash3_128::oneshot(row.data())).collect())
    }
}
