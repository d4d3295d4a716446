//! Proves that segments say the same as the rows that they were made of, before anything relies on them: they are
//! decoded again, and a digest of what they hold is compared with one of the rows as they were read.
//!
//! A digest is a sum over all rows of a hash of the row's value and of its place, so it is found piece by piece, and
//! tells values that have changed places from those that have not. Values are hashed by what they mean, not by how they
//! are held: a text alone and in a dictionary, a decimal in 128 bits and in 8, are equal. Floats are compared bit by
//! bit.
//!
//! Proven are the outputs of a flush, a vacuum, an update and a purge, before a commit puts them in the place of the
//! old rows. What differs is left as it is and reported. `Options::verify_rewrites` turns this off.

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, FixedSizeBinaryArray, GenericListViewArray, OffsetSizeTrait,
};
use arrow::buffer::{BooleanBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowNativeType, DataType, Decimal128Type, Decimal256Type, IntervalDayTimeType, IntervalMonthDayNanoType,
    IntervalUnit,
};
use bytes::Bytes;
use drumlin_codec::Ptype;
use foldhash::fast::FixedState;
use std::hash::BuildHasher;
use std::ops::Range;

use crate::base::{Error, Result};
use crate::segment::decode::types::places_of;
use crate::segment::forms::words::machine_type;
use crate::segment::{Form, Segment, decode};

/// Whether rows are encoded on trust, or the result is decoded and compared with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proof {
    /// Rows that come for the first time: the caller still has them.
    Trusted,
    /// Rows that replace others: nothing may release those before these are proven to say the same.
    #[default]
    Decoded,
}

/// What a null hashes to.
const NULL: u64 = 0x6a09_e667_f3bc_c909;
/// Odd numbers without a pattern: the fractions of the golden ratio and of the square root of 3.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
const MIX: u64 = 0xbb67_ae85_84ca_a73b;

/// A digest of rows in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowDigest {
    rows: u64,
    sum: u64,
}

impl RowDigest {
    /// Of all rows of a column.
    pub fn of(array: &ArrayRef) -> Self {
        let mut digest = Self::default();
        digest.add(array, None);
        digest
    }

    /// Adds the rows of a piece of the column that `keep` says, or all, after those that were added before. One pass over
    /// them; texts, lists and the like take 8 bytes a row.
    pub fn add(&mut self, array: &ArrayRef, keep: Option<&BooleanBuffer>) {
        let values = HashValues::of(array);
        let Some(keep) = keep else { return self.add_rows(&values, &PieceRows::All(0..array.len())) };
        for (at, kept) in keep.bit_chunks().iter_padded().enumerate() {
            let first = at * 64;
            match kept {
                0 => {}
                u64::MAX => self.add_rows(&values, &PieceRows::All(first..first + 64)),
                kept => self.add_rows(&values, &PieceRows::Some { first, kept }),
            }
        }
    }

    fn add_rows(&mut self, values: &HashValues, rows: &PieceRows) {
        self.sum = self.sum.wrapping_add(values.sum(rows, self.rows));
        self.rows += match rows {
            PieceRows::All(rows) => rows.len() as u64,
            PieceRows::Some { kept, .. } => u64::from(kept.count_ones()),
        };
    }
}

/// Rows of a piece.
enum PieceRows {
    All(Range<usize>),
    /// Those whose bits are set in `kept`, from `first` on.
    Some {
        first: usize,
        kept: u64,
    },
}

/// The hash of a value at a place. The shift makes it no sum of both.
#[inline]
fn at_place(value: u64, place: u64) -> u64 {
    let mixed = value.wrapping_add(place.wrapping_mul(STEP)).wrapping_mul(MIX);
    mixed ^ (mixed >> 32)
}

/// One value made of two.
#[inline]
fn both(a: u64, b: u64) -> u64 {
    at_place(a.rotate_left(23) ^ b, 1)
}

fn of_bytes(bytes: &[u8]) -> u64 {
    FixedState::default().hash_one(bytes)
}

/// Any integer, whatever its width: equal numbers are equal.
#[inline]
fn of_wide(value: i128) -> u64 {
    match i64::try_from(value) {
        Ok(value) => value as u64,
        Err(_) => both(value as u64, (value >> 64) as u64),
    }
}

/// The values of a column, ready to be hashed.
enum HashValues {
    Numbers(NumberBuffer),
    /// Keys, and the hashes of what they stand for.
    Keys(NumberBuffer, Vec<u64>),
    /// Hashes of all rows.
    Hashed(Vec<u64>),
}

/// Numbers of a machine type; floats by their bits.
enum NumberBuffer {
    I8(ScalarBuffer<i8>, Option<NullBuffer>),
    I16(ScalarBuffer<i16>, Option<NullBuffer>),
    I32(ScalarBuffer<i32>, Option<NullBuffer>),
    U8(ScalarBuffer<u8>, Option<NullBuffer>),
    U16(ScalarBuffer<u16>, Option<NullBuffer>),
    U32(ScalarBuffer<u32>, Option<NullBuffer>),
    U64(ScalarBuffer<u64>, Option<NullBuffer>),
}

/// The sum of the hashes of some rows, the first of which comes after `before` others.
#[inline]
fn sum_of<T: Copy>(
    values: &[T],
    nulls: Option<&NullBuffer>,
    rows: &PieceRows,
    before: u64,
    hash: impl Fn(T) -> u64,
) -> u64 {
    let hash_at = |row: usize, value: T| match nulls {
        Some(nulls) if nulls.is_null(row) => NULL,
        _ => hash(value),
    };
    match rows {
        PieceRows::All(rows) if nulls.is_none() => {
            let hashes = values[rows.clone()].iter().zip(before..).map(|(value, place)| at_place(hash(*value), place));
            hashes.fold(0, u64::wrapping_add)
        }
        PieceRows::All(rows) => {
            let hashes = rows.clone().zip(before..).map(|(row, place)| at_place(hash_at(row, values[row]), place));
            hashes.fold(0, u64::wrapping_add)
        }
        // Of few rows beside each other: without a branch for each.
        PieceRows::Some { first, kept } => {
            let (mut sum, mut place) = (0u64, before);
            let last = 64 - kept.leading_zeros() as usize;
            for (bit, value) in values[*first..first + last].iter().enumerate() {
                let is_kept = kept >> bit & 1;
                sum = sum.wrapping_add(at_place(hash_at(first + bit, *value), place) & is_kept.wrapping_neg());
                place += is_kept;
            }
            sum
        }
    }
}

impl HashValues {
    fn of(array: &ArrayRef) -> Self {
        if let Some(numbers) = NumberBuffer::of(array) {
            return Self::Numbers(numbers);
        }
        if let Some(dictionary) = array.as_any_dictionary_opt()
            && let Some(keys) = NumberBuffer::of(dictionary.keys())
        {
            return Self::Keys(keys, hashes(dictionary.values()));
        }
        Self::Hashed(hashes(array))
    }

    fn sum(&self, rows: &PieceRows, before: u64) -> u64 {
        match self {
            Self::Numbers(numbers) => numbers.sum(rows, before, |number| number),
            Self::Keys(keys, hashes) => keys.sum(rows, before, |key| hashes.get(key as usize).copied().unwrap_or(NULL)),
            Self::Hashed(hashes) => sum_of(hashes, None, rows, before, |hash| hash),
        }
    }
}

impl NumberBuffer {
    /// Those of a column whose values are single numbers.
    fn of(array: &dyn Array) -> Option<Self> {
        fn numbers<T: ArrowNativeType>(array: &dyn Array) -> ScalarBuffer<T> {
            let data = array.to_data();
            ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len())
        }
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
        Some(match machine_type(array.data_type())? {
            Ptype::I8 => Self::I8(numbers(array), nulls),
            Ptype::I16 => Self::I16(numbers(array), nulls),
            Ptype::I32 => Self::I32(numbers(array), nulls),
            Ptype::U8 => Self::U8(numbers(array), nulls),
            Ptype::U16 | Ptype::F16 => Self::U16(numbers(array), nulls),
            Ptype::U32 | Ptype::F32 => Self::U32(numbers(array), nulls),
            Ptype::I64 | Ptype::U64 | Ptype::F64 => Self::U64(numbers(array), nulls),
        })
    }

    fn sum(&self, rows: &PieceRows, before: u64, hash: impl Fn(u64) -> u64) -> u64 {
        match self {
            Self::I8(values, nulls) => sum_of(values, nulls.as_ref(), rows, before, |v| hash(i64::from(v) as u64)),
            Self::I16(values, nulls) => sum_of(values, nulls.as_ref(), rows, before, |v| hash(i64::from(v) as u64)),
            Self::I32(values, nulls) => sum_of(values, nulls.as_ref(), rows, before, |v| hash(i64::from(v) as u64)),
            Self::U8(values, nulls) => sum_of(values, nulls.as_ref(), rows, before, |v| hash(u64::from(v))),
            Self::U16(values, nulls) => sum_of(values, nulls.as_ref(), rows, before, |v| hash(u64::from(v))),
            Self::U32(values, nulls) => sum_of(values, nulls.as_ref(), rows, before, |v| hash(u64::from(v))),
            Self::U64(values, nulls) => sum_of(values, nulls.as_ref(), rows, before, &hash),
        }
    }

    /// A hash of each value, not yet of nulls.
    fn hashes(self) -> Vec<u64> {
        match self {
            Self::I8(values, _) => values.iter().map(|v| i64::from(*v) as u64).collect(),
            Self::I16(values, _) => values.iter().map(|v| i64::from(*v) as u64).collect(),
            Self::I32(values, _) => values.iter().map(|v| i64::from(*v) as u64).collect(),
            Self::U8(values, _) => values.iter().map(|v| u64::from(*v)).collect(),
            Self::U16(values, _) => values.iter().map(|v| u64::from(*v)).collect(),
            Self::U32(values, _) => values.iter().map(|v| u64::from(*v)).collect(),
            Self::U64(values, _) => values.to_vec(),
        }
    }
}

/// A hash of each row's value.
fn hashes(array: &ArrayRef) -> Vec<u64> {
    fn each<T: ArrowPrimitiveType>(array: &ArrayRef, hash: impl Fn(T::Native) -> u64) -> Vec<u64> {
        array.as_primitive::<T>().values().iter().map(|value| hash(*value)).collect()
    }
    let mut all: Vec<u64> = match array.data_type() {
        DataType::Boolean => array.as_boolean().values().iter().map(u64::from).collect(),
        DataType::Decimal128(..) => each::<Decimal128Type>(array, of_wide),
        DataType::Decimal256(..) => {
            each::<Decimal256Type>(array, |v| v.to_i128().map_or_else(|| of_bytes(&v.to_le_bytes()), of_wide))
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            each::<IntervalDayTimeType>(array, |v| both(i64::from(v.days) as u64, i64::from(v.milliseconds) as u64))
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => each::<IntervalMonthDayNanoType>(array, |v| {
            both(both(i64::from(v.months) as u64, i64::from(v.days) as u64), v.nanoseconds as u64)
        }),
        DataType::Utf8 => array.as_string::<i32>().iter().map(|v| of_bytes(v.unwrap_or_default().as_bytes())).collect(),
        DataType::LargeUtf8 => {
            array.as_string::<i64>().iter().map(|v| of_bytes(v.unwrap_or_default().as_bytes())).collect()
        }
        DataType::Utf8View => {
            array.as_string_view().iter().map(|v| of_bytes(v.unwrap_or_default().as_bytes())).collect()
        }
        DataType::Binary => array.as_binary::<i32>().iter().map(|v| of_bytes(v.unwrap_or_default())).collect(),
        DataType::LargeBinary => array.as_binary::<i64>().iter().map(|v| of_bytes(v.unwrap_or_default())).collect(),
        DataType::BinaryView => array.as_binary_view().iter().map(|v| of_bytes(v.unwrap_or_default())).collect(),
        DataType::FixedSizeBinary(_) => {
            let array: &FixedSizeBinaryArray = array.as_fixed_size_binary();
            (0..array.len()).map(|row| of_bytes(array.value(row))).collect()
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let values = hashes(dictionary.values());
            places_of(dictionary).into_iter().map(|key| values.get(key).copied().unwrap_or(NULL)).collect()
        }
        DataType::Struct(fields) => {
            let mut all = vec![fields.len() as u64; array.len()];
            for column in array.as_struct().columns() {
                all.iter_mut().zip(hashes(column)).for_each(|(all, own)| *all = both(*all, own));
            }
            all
        }
        DataType::List(_) => of_lists(array.as_list::<i32>().offsets(), array.as_list::<i32>().values()),
        DataType::LargeList(_) => of_lists(array.as_list::<i64>().offsets(), array.as_list::<i64>().values()),
        DataType::Map(..) => {
            of_lists(array.as_map().offsets(), &(std::sync::Arc::new(array.as_map().entries().clone()) as ArrayRef))
        }
        DataType::FixedSizeList(_, size) => {
            let elements = hashes(array.as_fixed_size_list().values());
            let size = usize::try_from(*size).unwrap_or(0);
            (0..array.len()).map(|row| of_elements(&elements[row * size..(row + 1) * size])).collect()
        }
        DataType::ListView(_) => of_views(array.as_list_view::<i32>()),
        DataType::LargeListView(_) => of_views(array.as_list_view::<i64>()),
        _ => match NumberBuffer::of(array) {
            Some(numbers) => numbers.hashes(),
            // A column of the null type; there are no others, see table/schema/stored.rs.
            None => vec![NULL; array.len()],
        },
    };
    if let Some(nulls) = array.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
        all.iter_mut().zip(nulls.iter()).filter(|(_, valid)| !valid).for_each(|(hash, _)| *hash = NULL);
    }
    all
}

fn of_elements(elements: &[u64]) -> u64 {
    elements.iter().fold(elements.len() as u64, |all, own| both(all, *own))
}

fn of_lists<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>, values: &ArrayRef) -> Vec<u64> {
    let (first, last) = (offsets[0].as_usize(), offsets[offsets.len() - 1].as_usize());
    let elements = hashes(&values.slice(first, last - first));
    let list = |pair: &[O]| of_elements(&elements[pair[0].as_usize() - first..pair[1].as_usize() - first]);
    offsets.windows(2).map(list).collect()
}

fn of_views<O: OffsetSizeTrait>(list: &GenericListViewArray<O>) -> Vec<u64> {
    let (first, last) = crate::segment::decode::types::view_range(list);
    let elements = hashes(&list.values().slice(first, last - first));
    let view = |row: usize| {
        let (offset, size) = (list.offsets()[row].as_usize(), list.sizes()[row].as_usize());
        if list.is_null(row) || size == 0 { of_elements(&[]) } else { of_elements(&elements[offset - first..][..size]) }
    };
    (0..list.len()).map(view).collect()
}

impl Segment {
    /// Adds to `digest` the rows that this segment of `rows` rows says, as readers get them.
    pub fn digest_into(&mut self, rows: usize, data_type: &DataType, digest: &mut RowDigest) -> Result<()> {
        // Without a copy: they are taken, and given back.
        let bytes = Bytes::from(std::mem::take(&mut self.bytes));
        let added = decode(bytes.clone(), rows, data_type, Form::Exact).map(|array| digest.add(&array, None));
        self.bytes = bytes.into();
        added.map_err(|e| unproven(&e.to_string()))
    }

    /// Fails unless the segment says the rows of `array`, whose column has `data_type`, in their order.
    pub fn prove(&mut self, array: &ArrayRef, data_type: &DataType) -> Result<()> {
        let mut found = RowDigest::default();
        self.digest_into(array.len(), data_type, &mut found)?;
        same(RowDigest::of(array), found)
    }
}

/// Fails unless what was written has the digest of what was read.
pub(in crate::segment) fn same(read: RowDigest, written: RowDigest) -> Result<()> {
    match read == written {
        true => Ok(()),
        false => Err(unproven(&format!(
            "{} rows were read, and the {} rows that were written differ from them",
            read.rows, written.rows
        ))),
    }
}

fn unproven(what: &str) -> Error {
    Error::internal(format!(
        "the rewritten rows do not decode to the rows that they would replace, so nothing was replaced: {what}"
    ))
}
