//! The keys in which a merge compares rows, and the rows of its frame by them.

use std::hash::BuildHasher;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array, RecordBatch, UInt32Array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Float32Type, Float64Type, Schema, SchemaRef};
use arrow::row::{RowConverter, SortField};
use foldhash::quality::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::base::{Error, Result};
use crate::segment::take_rows;
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
    keys: KeyRows,
    /// Rows by the hashes of their keys.
    rows: HashTable<u32>,
    nulls_equal: bool,
    /// The hashes of keys. Most keys of the table are of no row of the frame, and need not be looked for.
    hashes: HashFilter,
    /// The hashes of their columns of integers, if there are some: these need not be made keys first.
    numbers: Option<HashFilter>,
}

impl SourceKeys {
    /// Those of the compared `columns`, called `on`. `InvalidArgument` if two rows have the same key.
    pub fn new(columns: &RecordBatch, on: &[String], nulls_equal: bool) -> Result<Self> {
        let count = columns.num_rows();
        let keys = KeyRows::new(columns.columns().to_vec(), nulls_equal)?;
        let numbers = hashes_of_integers(columns.columns()).map(|hashes| {
            let mut filter = HashFilter::new(count);
            hashes.into_iter().for_each(|hash| filter.add(hash));
            filter
        });
        let (mut rows, mut hashes) = (HashTable::with_capacity(count), HashFilter::new(count));
        for row in 0..count {
            let Some(key) = keys.get(row) else { continue };
            let hash = hash_of(key);
            hashes.add(hash);
            let same = |other: &u32| keys.get(*other as usize) == Some(key);
            let rehash = |other: &u32| keys.get(*other as usize).map_or(0, hash_of);
            match rows.entry(hash, same, rehash) {
                Entry::Vacant(place) => {
                    place.insert(row as u32);
                }
                Entry::Occupied(first) => {
                    let values = columns.columns().iter().map(|column| shown(column, row));
                    let values = values.collect::<Result<Vec<String>>>()?;
                    return Err(Error::invalid(format!(
                        "rows {} and {row} of the data have the same {}: {}; expected different ones in each row",
                        first.get(),
                        on.join(", "),
                        values.join(", ")
                    )));
                }
            }
        }
        Ok(Self { keys, rows, nulls_equal, hashes, numbers })
    }

    /// Of the rows of compared columns of the table, ascending, those that a row of the frame has the key of, each with that row.
    pub fn pairs(&self, columns: Vec<ArrayRef>) -> Result<Vec<(u32, u32)>> {
        let few = self.likely(&columns);
        let columns = match &few {
            None => columns,
            Some(few) => columns.iter().map(|column| take_rows(column, few)).collect::<Result<_>>()?,
        };
        let rows = columns.first().map_or(0, |column| column.len());
        let keys = KeyRows::new(columns, self.nulls_equal)?;
        let place = |at: usize| few.as_ref().map_or(at as u32, |few| few.value(at));
        Ok((0..rows).filter_map(|at| Some((place(at), self.get(keys.get(at)?)?))).collect())
    }

    /// The rows that the integers among their columns do not rule out; `None` if there are none, or few are ruled out.
    fn likely(&self, columns: &[ArrayRef]) -> Option<UInt32Array> {
        let filter = self.numbers.as_ref()?;
        let hashes = hashes_of_integers(columns)?;
        // What lies under a null is any value.
        let nulls = if self.nulls_equal { null_in_any(columns) } else { None };
        let unsure = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        let likely = hashes.iter().enumerate().filter(|(row, hash)| filter.may_have(**hash) || unsure(*row));
        let likely: Vec<u32> = likely.map(|(row, _)| row as u32).collect();
        (likely.len() < hashes.len() / 2).then(|| likely.into())
    }

    /// The row with this key.
    fn get(&self, key: &[u8]) -> Option<u32> {
        let hash = hash_of(key);
        let same = |row: &u32| self.keys.get(*row as usize) == Some(key);
        self.hashes.may_have(hash).then(|| self.rows.find(hash, same).copied())?
    }
}

/// Which hashes were added, and some others.
struct HashFilter {
    bits: Vec<u64>,
}

impl HashFilter {
    /// Bits for each hash.
    const BITS: usize = 16;

    fn new(hashes: usize) -> Self {
        Self { bits: vec![0; (hashes * Self::BITS).div_ceil(64).next_power_of_two()] }
    }

    fn place(&self, hash: u64) -> (usize, u64) {
        ((hash >> 6) as usize & (self.bits.len() - 1), 1 << (hash % 64))
    }

    fn add(&mut self, hash: u64) {
        let (word, bit) = self.place(hash);
        self.bits[word] |= bit;
    }

    fn may_have(&self, hash: u64) -> bool {
        let (word, bit) = self.place(hash);
        self.bits[word] & bit != 0
    }
}

fn hash_of(key: &[u8]) -> u64 {
    FixedState::default().hash_one(key)
}

/// Adds a number of each row to its hash.
fn add_numbers<const N: usize>(hashes: &mut [u64], bytes: &[u8], number: impl Fn(&[u8; N]) -> u64) {
    for (hash, value) in hashes.iter_mut().zip(bytes.as_chunks::<N>().0) {
        // The high half of a product, which all bits reach, comes to be the low one.
        *hash = (*hash ^ number(value)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

/// A hash of each row's integers, whatever lies under nulls; `None` if no column has integers. Both sides of a merge have the same types.
fn hashes_of_integers(columns: &[ArrayRef]) -> Option<Vec<u64>> {
    let mut hashes: Option<Vec<u64>> = None;
    for column in columns {
        let width = column.data_type().primitive_width().filter(|width| *width <= 8);
        let (Some(width), false) = (width, column.data_type().is_floating()) else { continue };
        let data = column.to_data();
        let bytes = &data.buffers()[0][data.offset() * width..][..data.len() * width];
        let hashes = hashes.get_or_insert_with(|| vec![0; column.len()]);
        match width {
            1 => add_numbers(hashes, bytes, |value: &[u8; 1]| u64::from(value[0])),
            2 => add_numbers(hashes, bytes, |value| u64::from(u16::from_le_bytes(*value))),
            4 => add_numbers(hashes, bytes, |value| u64::from(u32::from_le_bytes(*value))),
            _ => add_numbers(hashes, bytes, |value| u64::from_le_bytes(*value)),
        }
    }
    hashes
}

/// Keys in a form that is equal where they are.
pub struct KeyRows {
    rows: arrow::row::Rows,
    nulls: Option<NullBuffer>,
}

impl KeyRows {
    /// Keys with a null are none, unless `nulls_equal`.
    pub fn new(columns: Vec<ArrayRef>, nulls_equal: bool) -> Result<Self> {
        let columns: Vec<ArrayRef> = columns.into_iter().map(canonical).collect();
        let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
        let converter = RowConverter::new(fields).map_err(|e| Error::schema_mismatch(e.to_string()))?;
        let nulls = if nulls_equal { None } else { null_in_any(&columns) };
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

/// The rows that have a null in one of the columns.
fn null_in_any(columns: &[ArrayRef]) -> Option<NullBuffer> {
    columns.iter().fold(None, |nulls, column| NullBuffer::union(nulls.as_ref(), column.logical_nulls().as_ref()))
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
