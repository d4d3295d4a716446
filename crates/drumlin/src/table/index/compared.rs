//! The values of rows in a unique index, and their hashes, by which they are compared.

use std::collections::HashSet;
use std::hash::BuildHasher;
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::datatypes::{Field, Schema, SchemaRef};
use foldhash::quality::FixedState;

use super::definition::BoundIndex;
use crate::base::Result;
use crate::filter::narrow_integers;
use crate::table::schema::arrays::shown;
use crate::table::write::merge_keys::KeyRows;

/// Stands for any hash: of a value that could not be computed.
pub(in crate::table) const ANY_VALUE: u64 = u64::MAX;

/// Hashes of values.
pub(in crate::table) type Hashes = HashSet<u64, foldhash::fast::FixedState>;

/// Whether a hash is among others; `None` stands for all.
pub(in crate::table) fn meets(hashes: Option<&Hashes>, hash: u64) -> bool {
    hash == ANY_VALUE || hashes.is_none_or(|hashes| hashes.contains(&hash) || hashes.contains(&ANY_VALUE))
}

/// The values of rows that are compared.
pub(in crate::table) struct Compared {
    values: Vec<ArrayRef>,
    wanted: Option<BooleanArray>,
    nulls: Option<NullBuffer>,
    /// Of one value that is an integer or a time.
    integers: Option<ScalarBuffer<i64>>,
    keys: OnceLock<KeyRows>,
}

impl Compared {
    /// Of columns that the index is computed from.
    pub fn of(bound: &BoundIndex, columns: &RecordBatch) -> Result<Self> {
        let (values, wanted) = bound.values(columns)?;
        let nulls = values.iter().fold(None, |nulls, value| {
            let own = value.logical_nulls();
            NullBuffer::union(nulls.as_ref(), own.as_ref())
        });
        let integers = if let [value] = &values[..] { narrow_integers(&**value) } else { None };
        let compared = Self { values, wanted, nulls, integers, keys: OnceLock::new() };
        if compared.integers.is_none() {
            compared.keys()?;
        }
        Ok(compared)
    }

    /// What is equal where the values are.
    pub fn keys(&self) -> Result<&KeyRows> {
        if let Some(keys) = self.keys.get() {
            return Ok(keys);
        }
        let keys = KeyRows::new(self.values.clone(), true)?;
        Ok(self.keys.get_or_init(|| keys))
    }

    /// Whether the index has a row, and none of its values is null.
    fn is_compared(&self, row: usize) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| wanted.is_valid(row) && wanted.value(row))
            && self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row))
    }

    /// The hash of the values of a row that is compared.
    pub fn hash(&self, row: usize) -> Option<u64> {
        if !self.is_compared(row) {
            return None;
        }
        let hash = match &self.integers {
            Some(integers) => FixedState::default().hash_one(integers[row]),
            None => FixedState::default().hash_one(self.keys.get()?.get(row)?),
        };
        Some(if hash == ANY_VALUE { 0 } else { hash })
    }

    /// The values of a row, as text.
    pub fn shown(&self, row: usize) -> Result<String> {
        let values = self.values.iter().map(|value| shown(value, row)).collect::<Result<Vec<_>>>()?;
        Ok(values.join(", "))
    }
}

/// The hashes of the values of rows; `None` for those that are not compared.
pub(in crate::table) fn hashes_of(bound: &BoundIndex, columns: &RecordBatch) -> Result<Vec<Option<u64>>> {
    let compared = Compared::of(bound, columns)?;
    Ok((0..columns.num_rows()).map(|row| compared.hash(row)).collect())
}

/// Columns of a schema, by their places there.
pub(in crate::table) fn named_batch(
    schema: &SchemaRef,
    places: &[usize],
    columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch> {
    let field = |(at, column): (&usize, &ArrayRef)| {
        Arc::new(Field::new(schema.field(*at).name(), column.data_type().clone(), true))
    };
    let fields: Vec<_> = places.iter().zip(&columns).map(field).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
}
