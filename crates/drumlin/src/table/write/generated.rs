//! The values of columns that rows lack: constant defaults, and those that are made for one call.

use std::sync::Arc;

use arrow::array::{ArrayRef, FixedSizeBinaryArray, Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::buffer::Buffer;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field};

use crate::base::planted::{Bug, planted};
use crate::base::{Entropy, Error, Result, Timestamp};
use crate::table::StoredSchema;
use crate::table::schema::column::repeated;
use crate::table::write::generator::Generator;

/// Gives out the numbers of a table's sequences.
pub trait SequenceNumbers: Send + Sync {
    /// The first of `count` numbers in a row, which nothing else is given.
    ///
    /// # Errors
    /// Those of a commit; `InvalidArgument` if there are no such numbers left.
    fn take(&self, sequence: &str, start: i64, count: u64) -> Result<i64>;
}

/// Makes values for the rows of one call.
#[derive(Clone)]
pub struct Generators {
    /// The time of the call.
    pub now: Timestamp,
    /// Where random bits come from.
    pub entropy: Arc<dyn Entropy>,
    /// Where numbers come from.
    pub numbers: Arc<dyn SequenceNumbers>,
}

impl Generators {
    /// What `rows` rows have that lack the column of `field`: its default, or null.
    pub fn lacking(&self, schema: &StoredSchema, field: &Field, rows: usize) -> Result<ArrayRef> {
        let Some(generator) = schema.generator_of(field.name()) else { return schema.lacking(field, rows) };
        match generator {
            Generator::Now => {
                let now = TimestampMicrosecondArray::from(vec![self.now.0]).with_timezone("UTC");
                repeated(&cast(&(Arc::new(now) as ArrayRef), field)?, rows)
            }
            Generator::Uuid => self.uuids(field, rows),
            Generator::Sequence { name, start } => {
                let first = self.numbers.take(name, *start, rows as u64)?;
                cast(&(Arc::new(Int64Array::from_iter_values((first..).take(rows))) as ArrayRef), field)
            }
        }
    }

    /// UUIDs of version 7, ascending.
    fn uuids(&self, field: &Field, rows: usize) -> Result<ArrayRef> {
        let millis = (self.now.0.div_euclid(1000) as u64 & ((1 << 48) - 1)) as u128;
        let mut ids = Vec::with_capacity(rows);
        for _ in 0..rows {
            let random = match planted(Bug::FewUuids) {
                true => u128::from(self.now.0.unsigned_abs() & 0xff),
                false => (u128::from(self.entropy.next()?) << 64) | u128::from(self.entropy.next()?),
            };
            let (above, below) = (random >> 64 & 0xfff, random & ((1 << 62) - 1));
            ids.push((millis << 80) | (7 << 76) | (above << 64) | (0b10 << 62) | below);
        }
        ids.sort_unstable();
        let bytes = ids.into_iter().map(u128::to_be_bytes);
        match field.data_type() {
            DataType::FixedSizeBinary(_) => {
                let values = Buffer::from_vec(bytes.flatten().collect::<Vec<u8>>());
                Ok(Arc::new(FixedSizeBinaryArray::try_new(16, values, None)?))
            }
            _ => cast(&(Arc::new(StringArray::from_iter_values(bytes.map(text))) as ArrayRef), field),
        }
    }
}

/// A UUID as text.
fn text(bytes: [u8; 16]) -> String {
    let hex = crate::base::to_hex(&bytes);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// `InvalidArgument` if the column's type does not hold the values.
fn cast(made: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(made, field.data_type(), &options).map_err(|e| {
        let what = format!("the default of column '{}' has reached a value that its type does not hold", field.name());
        Error::invalid(what).with_source(e.to_string())
    })
}
