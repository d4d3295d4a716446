//! Proves that segments say the same as the rows that they were made of, before anything relies on them: they are decoded
//! again, and a digest of what they hold is compared with one of the rows as they were read.
//!
//! A digest is a sum over all rows of a hash of the row's value and of its place, so it is found piece by piece, and tells
//! values that have changed places from those that have not. Values are hashed by what they mean, not by how they are held:
//! a text alone and in a dictionary, a decimal in 128 bits and in 8, are equal. Floats are compared bit by bit.

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, FixedSizeBinaryArray, GenericListViewArray, OffsetSizeTrait,
};
use arrow::buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::*;
use arrow::util::bit_iterator::BitSliceIterator;
use bytes::Bytes;
use foldhash::fast::FixedState;
use std::hash::BuildHasher;
use std::ops::Range;

use super::types::places_of;
use super::{Form, Segment, decode};
use crate::base::{Error, Result};

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
    pub fn of(array: &ArrayRef) -> Result<Self> {
        let mut digest = Self::default();
        digest.add(array, None)?;
        Ok(digest)
    }

    /// Adds the rows of a piece of the column that `keep` says, or all, after those that were added before. One pass over
    /// them; texts, lists and the like take 8 bytes a row.
    pub fn add(&mut self, array: &ArrayRef, keep: Option<&BooleanBuffer>) -> Result<()> {
        match keep {
            None => self.add_range(array, 0..array.len()),
            Some(keep) => {
                let values = Values::of(array)?;
                BitSliceIterator::new(keep.values(), keep.offset(), keep.len())
                    .for_each(|(start, end)| self.add_values(&values, start..end));
                Ok(())
            }
        }
    }

    fn add_range(&mut self, array: &ArrayRef, rows: Range<usize>) -> Result<()> {
        self.add_values(&Values::of(array)?, rows);
        Ok(())
    }

    fn add_values(&mut self, values: &Values<'_>, rows: Range<usize>) {
        let n = rows.len() as u64;
        self.sum = self.sum.wrapping_add(values.sum(rows, self.rows));
        self.rows += n;
    }
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
enum Values<'a> {
    I8(&'a [i8], Option<&'a NullBuffer>),
    I16(&'a [i16], Option<&'a NullBuffer>),
    I32(&'a [i32], Option<&'a NullBuffer>),
    I64(&'a [i64], Option<&'a NullBuffer>),
    U8(&'a [u8], Option<&'a NullBuffer>),
    U16(&'a [u16], Option<&'a NullBuffer>),
    U32(&'a [u32], Option<&'a NullBuffer>),
    /// Hashes of all rows.
    Hashed(Vec<u64>),
}

/// The sum of the hashes of some rows, the first of which comes after `before` others.
#[inline]
fn sum_of<T: Copy>(
    values: &[T],
    nulls: Option<&NullBuffer>,
    rows: Range<usize>,
    before: u64,
    hash: impl Fn(T) -> u64,
) -> u64 {
    let places = before..;
    match nulls.filter(|nulls| nulls.null_count() > 0) {
        None => {
            let hashes = values[rows].iter().zip(places).map(|(value, place)| at_place(hash(*value), place));
            hashes.fold(0, u64::wrapping_add)
        }
        Some(nulls) => {
            let hashes = rows
                .zip(places)
                .map(|(row, place)| at_place(if nulls.is_valid(row) { hash(values[row]) } else { NULL }, place));
            hashes.fold(0, u64::wrapping_add)
        }
    }
}

impl<'a> Values<'a> {
    fn of(array: &'a ArrayRef) -> Result<Self> {
        fn numbers<T: ArrowPrimitiveType>(array: &ArrayRef) -> (&[T::Native], Option<&NullBuffer>) {
            let array = array.as_primitive::<T>();
            (array.values(), array.nulls())
        }
        macro_rules! plain {
            ($form:ident, $type:ty) => {{
                let (values, nulls) = numbers::<$type>(array);
                Self::$form(values, nulls)
            }};
        }
        Ok(match array.data_type() {
            DataType::Int8 => plain!(I8, Int8Type),
            DataType::Int16 => plain!(I16, Int16Type),
            DataType::Int32 => plain!(I32, Int32Type),
            DataType::Date32 => plain!(I32, Date32Type),
            DataType::Time32(TimeUnit::Second) => plain!(I32, Time32SecondType),
            DataType::Time32(_) => plain!(I32, Time32MillisecondType),
            DataType::Decimal32(..) => plain!(I32, Decimal32Type),
            DataType::Int64 => plain!(I64, Int64Type),
            DataType::Date64 => plain!(I64, Date64Type),
            DataType::Time64(TimeUnit::Microsecond) => plain!(I64, Time64MicrosecondType),
            DataType::Time64(_) => plain!(I64, Time64NanosecondType),
            DataType::Decimal64(..) => plain!(I64, Decimal64Type),
            DataType::Timestamp(TimeUnit::Second, _) => plain!(I64, TimestampSecondType),
            DataType::Timestamp(TimeUnit::Millisecond, _) => plain!(I64, TimestampMillisecondType),
            DataType::Timestamp(TimeUnit::Microsecond, _) => plain!(I64, TimestampMicrosecondType),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => plain!(I64, TimestampNanosecondType),
            DataType::UInt8 => plain!(U8, UInt8Type),
            DataType::UInt16 => plain!(U16, UInt16Type),
            DataType::UInt32 => plain!(U32, UInt32Type),
            _ => Self::Hashed(hashes(array)?),
        })
    }

    fn sum(&self, rows: Range<usize>, before: u64) -> u64 {
        match self {
            Self::I8(values, nulls) => sum_of(values, *nulls, rows, before, |v| i64::from(v) as u64),
            Self::I16(values, nulls) => sum_of(values, *nulls, rows, before, |v| i64::from(v) as u64),
            Self::I32(values, nulls) => sum_of(values, *nulls, rows, before, |v| i64::from(v) as u64),
            Self::I64(values, nulls) => sum_of(values, *nulls, rows, before, |v| v as u64),
            Self::U8(values, nulls) => sum_of(values, *nulls, rows, before, u64::from),
            Self::U16(values, nulls) => sum_of(values, *nulls, rows, before, u64::from),
            Self::U32(values, nulls) => sum_of(values, *nulls, rows, before, u64::from),
            Self::Hashed(hashes) => sum_of(hashes, None, rows, before, |hash| hash),
        }
    }
}

/// A hash of each row's value.
fn hashes(array: &ArrayRef) -> Result<Vec<u64>> {
    fn each<T: ArrowPrimitiveType>(array: &ArrayRef, hash: impl Fn(T::Native) -> u64) -> Vec<u64> {
        array.as_primitive::<T>().values().iter().map(|value| hash(*value)).collect()
    }
    let mut all: Vec<u64> = match array.data_type() {
        DataType::Null => vec![NULL; array.len()],
        DataType::Boolean => array.as_boolean().values().iter().map(u64::from).collect(),
        DataType::Int8 => each::<Int8Type>(array, |v| i64::from(v) as u64),
        DataType::Int16 => each::<Int16Type>(array, |v| i64::from(v) as u64),
        DataType::Int32 => each::<Int32Type>(array, |v| i64::from(v) as u64),
        DataType::UInt8 => each::<UInt8Type>(array, u64::from),
        DataType::UInt16 => each::<UInt16Type>(array, u64::from),
        DataType::UInt32 => each::<UInt32Type>(array, u64::from),
        DataType::UInt64 => each::<UInt64Type>(array, |v| of_wide(i128::from(v))),
        DataType::Float16 => each::<Float16Type>(array, |v| u64::from(v.to_bits())),
        DataType::Float32 => each::<Float32Type>(array, |v| u64::from(v.to_bits())),
        DataType::Float64 => each::<Float64Type>(array, f64::to_bits),
        DataType::Decimal128(..) => each::<Decimal128Type>(array, of_wide),
        DataType::Decimal256(..) => each::<Decimal256Type>(array, |v| of_bytes(&v.to_le_bytes())),
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
            let values = hashes(dictionary.values())?;
            places_of(dictionary).into_iter().map(|key| values.get(key).copied().unwrap_or(NULL)).collect()
        }
        DataType::Struct(fields) => {
            let mut all = vec![fields.len() as u64; array.len()];
            for column in array.as_struct().columns() {
                all.iter_mut().zip(hashes(column)?).for_each(|(all, own)| *all = both(*all, own));
            }
            all
        }
        DataType::List(_) => of_lists(array.as_list::<i32>().offsets(), array.as_list::<i32>().values())?,
        DataType::LargeList(_) => of_lists(array.as_list::<i64>().offsets(), array.as_list::<i64>().values())?,
        DataType::Map(..) => {
            of_lists(array.as_map().offsets(), &(std::sync::Arc::new(array.as_map().entries().clone()) as ArrayRef))?
        }
        DataType::FixedSizeList(_, size) => {
            let elements = hashes(array.as_fixed_size_list().values())?;
            let size = usize::try_from(*size).unwrap_or(0);
            (0..array.len()).map(|row| of_elements(&elements[row * size..(row + 1) * size])).collect()
        }
        DataType::ListView(_) => of_views(array.as_list_view::<i32>())?,
        DataType::LargeListView(_) => of_views(array.as_list_view::<i64>())?,
        // Those that are numbers of one machine word by another name.
        _ => match array.data_type().primitive_width() {
            Some(4) => return hashes(&cast(array, &DataType::Int32)?),
            _ => return hashes_of_long(array),
        },
    };
    if let Some(nulls) = array.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
        all.iter_mut().zip(nulls.iter()).filter(|(_, valid)| !valid).for_each(|(hash, _)| *hash = NULL);
    }
    Ok(all)
}

/// The same of 64-bit integers by whatever name.
fn hashes_of_long(array: &ArrayRef) -> Result<Vec<u64>> {
    let plain = cast(array, &DataType::Int64)?;
    let hash = |value: Option<i64>| value.map_or(NULL, |value| value as u64);
    Ok(plain.as_primitive::<Int64Type>().iter().map(hash).collect())
}

fn of_elements(elements: &[u64]) -> u64 {
    elements.iter().fold(elements.len() as u64, |all, own| both(all, *own))
}

fn of_lists<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>, values: &ArrayRef) -> Result<Vec<u64>> {
    let (first, last) = (offsets[0].as_usize(), offsets[offsets.len() - 1].as_usize());
    let elements = hashes(&values.slice(first, last - first))?;
    let list = |pair: &[O]| of_elements(&elements[pair[0].as_usize() - first..pair[1].as_usize() - first]);
    Ok(offsets.windows(2).map(list).collect())
}

fn of_views<O: OffsetSizeTrait>(list: &GenericListViewArray<O>) -> Result<Vec<u64>> {
    let (first, last) = super::types::view_range(list);
    let elements = hashes(&list.values().slice(first, last - first))?;
    let view = |row: usize| {
        let (offset, size) = (list.offsets()[row].as_usize(), list.sizes()[row].as_usize());
        if list.is_null(row) || size == 0 { of_elements(&[]) } else { of_elements(&elements[offset - first..][..size]) }
    };
    Ok((0..list.len()).map(view).collect())
}

impl Segment {
    /// Adds to `digest` the rows that this segment of `rows` rows says, as readers get them.
    pub fn digest_into(&mut self, rows: usize, data_type: &DataType, digest: &mut RowDigest) -> Result<()> {
        // Without a copy: they are taken, and given back.
        let bytes = Bytes::from(std::mem::take(&mut self.bytes));
        let added = decode(bytes.clone(), rows, data_type, Form::Exact).and_then(|array| digest.add(&array, None));
        self.bytes = bytes.into();
        added.map_err(|e| unproven(&e.to_string()))
    }

    /// Fails unless the segment says the rows of `array`, whose column has `data_type`, in their order.
    pub fn prove(&mut self, array: &ArrayRef, data_type: &DataType) -> Result<()> {
        let mut found = RowDigest::default();
        self.digest_into(array.len(), data_type, &mut found)?;
        same(RowDigest::of(array)?, found)
    }
}

/// Fails unless what was written has the digest of what was read.
pub(super) fn same(read: RowDigest, written: RowDigest) -> Result<()> {
    match read == written {
        true => Ok(()),
        false => Err(unproven(&format!("{} rows were read and {} say otherwise", read.rows, written.rows))),
    }
}

fn unproven(what: &str) -> Error {
    Error::internal(format!("what was encoded does not decode to the rows that it is to replace, so they stay: {what}"))
}
