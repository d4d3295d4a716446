//! Rows that both sides of a difference have: they were written again, as they were.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::Schema;
use arrow::row::{RowConverter, SortField};

use crate::base::{Cancel, Result};

/// Counts rows by their content, of which it keeps a hash of 128 bits.
pub(in crate::store) struct Alike {
    converter: RowConverter,
    /// How many new rows there are, and how many of them are struck out.
    counts: HashMap<(u64, u64), (u32, u32)>,
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
        let mut alike = Self { converter: RowConverter::new(fields)?, counts: HashMap::new() };
        for batch in rows {
            cancel.check()?;
            for key in alike.keys(&batch?)? {
                alike.counts.entry(key).or_default().0 += 1;
            }
        }
        Ok(Some(alike))
    }

    /// The rows that are gone, without those that come again.
    pub fn gone(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        self.without(batch, |(left, struck)| {
            let again = *left > 0;
            (*left, *struck) = (*left - u32::from(again), *struck + u32::from(again));
            again
        })
    }

    /// The rows that are new, without those that were there.
    pub fn new_ones(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        self.without(batch, |(_, struck)| {
            let there = *struck > 0;
            *struck -= u32::from(there);
            there
        })
    }

    fn without(&mut self, batch: &RecordBatch, strike: impl Fn(&mut (u32, u32)) -> bool) -> Result<RecordBatch> {
        let keys = self.keys(batch)?;
        let kept = keys.iter().map(|key| !self.counts.get_mut(key).is_some_and(&strike));
        let kept: BooleanArray = kept.map(Some).collect();
        match kept.true_count() == batch.num_rows() {
            true => Ok(batch.clone()),
            false => Ok(filter_record_batch(batch, &kept)?),
        }
    }

    fn keys(&self, batch: &RecordBatch) -> Result<Vec<(u64, u64)>> {
        let rows = self.converter.convert_columns(batch.columns())?;
        let hash = |salt: u8, bytes: &[u8]| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u8(salt);
            hasher.write(bytes);
            hasher.finish()
        };
        Ok(rows.iter().map(|row| (hash(0, row.data()), hash(1, row.data()))).collect())
    }
}
