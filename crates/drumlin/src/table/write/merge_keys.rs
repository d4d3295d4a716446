//! The keys in which a merge compares rows, and the rows of its frame by them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Float32Type, Float64Type, Schema, SchemaRef};
use arrow::row::{RowConverter, SortField};

use crate::base::{Error, Result, checksum};
use crate::table::conform;
use crate::table::schema::arrays::{into_type, shown};

/// The columns of the frame that are compared, in the types of the table.
pub(in crate::table) fn key_columns(schema: &SchemaRef, on: &[usize], source: &RecordBatch) -> Result<RecordBatch> {
    let own: Vec<Field> = on.iter().map(|at| schema.field(*at).clone().with_nullable(true)).collect();
    let came = own.iter().map(|field| {
        source.schema().index_of(field.name()).map_err(|_| {
            Error::schema_mismatch(format!("rows are compared by '{}', which the data lacks", field.name()))
        })
    });
    let came = source.project(&came.collect::<Result<Vec<_>>>()?)?;
    conform(&came, &Arc::new(Schema::new(own)))
}

/// The rows of a frame by their keys; unless nulls are equal, without those with a null.
pub(in crate::table) struct SourceKeys {
    rows: HashMap<Box<[u8]>, u32>,
    nulls_equal: bool,
    /// A bit for each checksum that a key has, divided with a remainder: most keys of the table are of no row of the frame, and need
    /// not be looked for.
    bits: Vec<u64>,
}

/// Bits for each key.
const BITS: usize = 16;

impl SourceKeys {
    /// Those of the compared `columns`, called `on`. `InvalidArgument` if two rows have the same key.
    pub fn new(columns: &RecordBatch, on: &[String], nulls_equal: bool) -> Result<Self> {
        let keys = KeyRows::new(columns.columns().to_vec(), nulls_equal)?;
        let words = (columns.num_rows() * BITS).div_ceil(64).next_power_of_two();
        let rows = HashMap::with_capacity(columns.num_rows());
        let mut found = Self { rows, nulls_equal, bits: vec![0; words] };
        for row in 0..columns.num_rows() {
            let Some(key) = keys.get(row) else { continue };
            let (word, bit) = found.place(key);
            found.bits[word] |= bit;
            if let Some(first) = found.rows.insert(Box::from(key), row as u32) {
                let values = columns.columns().iter().map(|column| shown(column, row));
                let values = values.collect::<Result<Vec<String>>>()?;
                return Err(Error::invalid(format!(
                    "rows {first} and {row} of the data have the same {}: {}; expected different ones in each row",
                    on.join(", "),
                    values.join(", ")
                )));
            }
        }
        Ok(found)
    }

    /// The keys of rows of the table, to be looked for.
    pub fn keys_of(&self, columns: Vec<ArrayRef>) -> Result<KeyRows> {
        KeyRows::new(columns, self.nulls_equal)
    }

    /// The row with this key.
    pub fn get(&self, key: &[u8]) -> Option<u32> {
        let (word, bit) = self.place(key);
        (self.bits[word] & bit != 0).then(|| self.rows.get(key).copied())?
    }

    fn place(&self, key: &[u8]) -> (usize, u64) {
        let sum = checksum(key) as usize;
        ((sum / 64) & (self.bits.len() - 1), 1 << (sum % 64))
    }
}

/// Keys in a form that is equal where they are.
pub struct KeyRows {
    rows: arrow::row::Rows,
    nulls: Option<arrow::buffer::NullBuffer>,
}

impl KeyRows {
    /// Keys with a null are none, unless `nulls_equal`.
    pub fn new(columns: Vec<ArrayRef>, nulls_equal: bool) -> Result<Self> {
        let columns: Vec<ArrayRef> = columns.into_iter().map(canonical).collect();
        let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
        let converter = RowConverter::new(fields).map_err(|e| Error::schema_mismatch(e.to_string()))?;
        let nulls = columns.iter().filter(|_| !nulls_equal).fold(None, |nulls, column| {
            arrow::buffer::NullBuffer::union(nulls.as_ref(), column.logical_nulls().as_ref())
        });
        Ok(Self { rows: converter.convert_columns(&columns)?, nulls })
    }

    /// The key of a row; `None` if part of it is null.
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        match self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) {
            true => Some(self.rows.row(row).data()),
            false => None,
        }
    }
}

/// Floats that compare as equal in one form.
fn canonical(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float64 => {
            let one = |value: f64| if value.is_nan() { f64::NAN } else { value + 0.0 };
            Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(one) as Float64Array)
        }
        DataType::Float32 => {
            let one = |value: f32| if value.is_nan() { f32::NAN } else { value + 0.0 };
            Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(one) as Float32Array)
        }
        // There are no zeros and NaNs of many forms in what is wider.
        DataType::Float16 => match into_type(array.clone(), &DataType::Float32) {
            Ok(wider) => canonical(wider),
            Err(_) => array,
        },
        _ => array,
    }
}
