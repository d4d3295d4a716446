//! The distinct values of a batch's columns: each row gets a small number, equal for equal values. Dictionaries have such numbers
//! already, as have integers that lie close together; others are hashed, and neighbours that are equal are not looked up again.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::hash::Hasher;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array, PrimitiveArray, UInt32Array};
use arrow::buffer::NullBuffer;
use arrow::compute::{cast, take};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow::row::{RowConverter, SortField};
use hashbrown::HashTable;

use super::keys::hash;
use crate::base::Result;
use crate::filter::{float_key, narrow_integers};

/// A number for each row, below `distinct`.
pub struct Codes {
    pub of_rows: Vec<u32>,
    pub distinct: usize,
}

/// A row each of the distinct combinations of values, and which of them each row has.
pub struct Combinations {
    pub of_rows: Vec<u32>,
    /// The first row of each combination.
    pub first: Vec<u32>,
}

/// Mixes the bits of a number.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, n: u64) {
        let product = u128::from(self.0 ^ n ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

type Known = HashMap<u64, u32, BuildHasherDefault<Mix>>;

/// Up to this number of possible values or combinations, each has its place in a table.
const TABLE_MAX: usize = 1 << 17;

/// Numbers numbers in the order in which they first come. `None` is a null.
fn number(values: impl Iterator<Item = Option<u64>>, rows: usize) -> Codes {
    let (mut known, mut of_null) = (Known::default(), None);
    let (mut of_rows, mut distinct) = (Vec::with_capacity(rows), 0);
    let mut next = || {
        distinct += 1;
        distinct - 1
    };
    let mut last = None;
    for value in values {
        let code = match (last, value) {
            (Some((before, code)), _) if before == value => code,
            (_, None) => *of_null.get_or_insert_with(&mut next),
            (_, Some(value)) => *known.entry(value).or_insert_with(&mut next),
        };
        last = Some((value, code));
        of_rows.push(code);
    }
    Codes { of_rows, distinct: distinct as usize }
}

/// Numbers values that are bytes, in the order in which they first come.
fn number_bytes<'a>(rows: usize, nulls: Option<&NullBuffer>, value: impl Fn(usize) -> &'a [u8]) -> Codes {
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
    // The hash of each, its first row, and its number.
    let mut known: HashTable<(u64, u32, u32)> = HashTable::new();
    let mut of_rows: Vec<u32> = Vec::with_capacity(rows);
    let (mut distinct, mut of_null, mut last) = (0, None, None);
    for row in 0..rows {
        if nulls.is_some_and(|nulls| nulls.is_null(row)) {
            of_rows.push(*of_null.get_or_insert_with(|| {
                distinct += 1;
                distinct - 1
            }));
            last = None;
            continue;
        }
        let bytes = value(row);
        let code = match last {
            Some((before, code)) if before == bytes => code,
            _ => {
                let hash = hash(bytes);
                let same = |(other, first, _): &(u64, u32, u32)| *other == hash && value(*first as usize) == bytes;
                match known.find(hash, same) {
                    Some((_, _, code)) => *code,
                    None => {
                        known.insert_unique(hash, (hash, row as u32, distinct), |(hash, ..)| *hash);
                        distinct += 1;
                        distinct - 1
                    }
                }
            }
        };
        last = Some((bytes, code));
        of_rows.push(code);
    }
    Codes { of_rows, distinct: distinct as usize }
}

/// The values of a dictionary, row by row.
pub fn expanded(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.as_any_dictionary_opt() {
        Some(dictionary) => take(dictionary.values(), dictionary.keys(), None)?,
        None => array.clone(),
    })
}

/// Floats in which equal numbers have equal bits: there is one zero, and one NaN. Other arrays are as they are.
pub fn plain_floats(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Float64 => {
            let plain = |v: f64| if v.is_nan() { f64::NAN } else { v + 0.0 };
            Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(plain)) as ArrayRef
        }
        DataType::Float32 => {
            let plain = |v: f32| if v.is_nan() { f32::NAN } else { v + 0.0 };
            Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(plain)) as ArrayRef
        }
        DataType::Float16 => {
            let wide = cast(array, &DataType::Float32)?;
            cast(&plain_floats(&wide)?, &DataType::Float16)?
        }
        _ => array.clone(),
    })
}

impl Codes {
    /// Those of an array. Two codes may stand for the same value, if the array's dictionary has it twice.
    pub fn of(array: &ArrayRef) -> Result<Self> {
        use DataType::*;
        let rows = array.len();
        if let Some(integers) = narrow_integers(array) {
            return Ok(Self::of_integers(&integers, array.nulls()));
        }
        match array.data_type() {
            Null => Ok(Self { of_rows: vec![0; rows], distinct: 1 }),
            Dictionary(..) => Ok(Self::of_dictionary(array)),
            Boolean => {
                let of = |value: Option<bool>| value.map_or(2, u32::from);
                Ok(Self { of_rows: array.as_boolean().iter().map(of).collect(), distinct: 3 })
            }
            Float64 => {
                let values: &Float64Array = array.as_primitive();
                Ok(number(values.iter().map(|v| v.map(|v| float_key(v).cast_unsigned())), rows))
            }
            Float32 => {
                let values: &Float32Array = array.as_primitive();
                Ok(number(values.iter().map(|v| v.map(|v| float_key(f64::from(v)).cast_unsigned())), rows))
            }
            UInt64 => Ok(number(array.as_primitive::<UInt64Type>().iter(), rows)),
            Utf8 => Ok(number_bytes(rows, array.nulls(), |row| array.as_string::<i32>().value(row).as_bytes())),
            LargeUtf8 => Ok(number_bytes(rows, array.nulls(), |row| array.as_string::<i64>().value(row).as_bytes())),
            Utf8View => Ok(number_bytes(rows, array.nulls(), |row| array.as_string_view().value(row).as_bytes())),
            Binary => Ok(number_bytes(rows, array.nulls(), |row| array.as_binary::<i32>().value(row))),
            LargeBinary => Ok(number_bytes(rows, array.nulls(), |row| array.as_binary::<i64>().value(row))),
            BinaryView => Ok(number_bytes(rows, array.nulls(), |row| array.as_binary_view().value(row))),
            FixedSizeBinary(_) => Ok(number_bytes(rows, array.nulls(), |row| array.as_fixed_size_binary().value(row))),
            data_type => {
                let converter = RowConverter::new(vec![SortField::new(data_type.clone())])?;
                let converted = converter.convert_columns(&[plain_floats(array)?])?;
                Ok(number_bytes(rows, None, |row| converted.row(row).data()))
            }
        }
    }

    /// The keys are codes, and nulls one more.
    fn of_dictionary(array: &ArrayRef) -> Self {
        fn keys<K: ArrowPrimitiveType<Native: TryInto<u32>>>(keys: &PrimitiveArray<K>, of_null: u32) -> Vec<u32> {
            let key = |key: &K::Native| (*key).try_into().unwrap_or(of_null);
            let mut codes: Vec<u32> = keys.values().iter().map(key).collect();
            if let Some(nulls) = keys.nulls().filter(|nulls| nulls.null_count() > 0) {
                codes.iter_mut().zip(nulls).filter(|(_, valid)| !valid).for_each(|(code, _)| *code = of_null);
            }
            codes
        }
        let dictionary = array.as_any_dictionary();
        let (keys_array, of_null) = (dictionary.keys(), dictionary.values().len() as u32);
        let of_rows = match keys_array.data_type() {
            DataType::Int8 => keys(keys_array.as_primitive::<Int8Type>(), of_null),
            DataType::Int16 => keys(keys_array.as_primitive::<Int16Type>(), of_null),
            DataType::Int32 => keys(keys_array.as_primitive::<Int32Type>(), of_null),
            DataType::Int64 => keys(keys_array.as_primitive::<Int64Type>(), of_null),
            DataType::UInt8 => keys(keys_array.as_primitive::<UInt8Type>(), of_null),
            DataType::UInt16 => keys(keys_array.as_primitive::<UInt16Type>(), of_null),
            DataType::UInt32 => keys(keys_array.as_primitive::<UInt32Type>(), of_null),
            _ => keys(keys_array.as_primitive::<UInt64Type>(), of_null),
        };
        Self { of_rows, distinct: of_null as usize + 1 }
    }

    fn of_integers(values: &[i64], nulls: Option<&NullBuffer>) -> Self {
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        let (least, most) = values.iter().fold((i64::MAX, i64::MIN), |(a, b), v| (a.min(*v), b.max(*v)));
        let Some(span) = most.checked_sub(least).filter(|span| (0..TABLE_MAX as i64 - 1).contains(span)) else {
            let valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
            let all = values.iter().enumerate().map(|(row, v)| valid(row).then_some(v.cast_unsigned()));
            return number(all, values.len());
        };
        let mut of_rows: Vec<u32> = values.iter().map(|value| (value - least) as u32).collect();
        if let Some(nulls) = nulls {
            of_rows.iter_mut().zip(nulls).filter(|(_, valid)| !valid).for_each(|(code, _)| *code = span as u32 + 1);
        }
        Self { of_rows, distinct: span as usize + 2 }
    }
}

impl Combinations {
    /// Those of several columns of `rows` rows; of none, there is one, if there are rows.
    pub fn of(columns: &[&Codes], rows: usize) -> Self {
        let Some((head, rest)) = columns.split_first() else {
            return Self { of_rows: vec![0; rows], first: (0..u32::from(rows > 0)).collect() };
        };
        let (mut codes, mut places) = (head.of_rows.clone(), head.distinct);
        for more in rest {
            let width = more.distinct.max(1);
            if places.saturating_mul(width) > TABLE_MAX {
                let dense = Self::dense(codes, places);
                (codes, places) = (dense.of_rows, dense.first.len());
            }
            if places.saturating_mul(width) <= TABLE_MAX {
                let both = codes.iter().zip(&more.of_rows).map(|(a, b)| a * width as u32 + b);
                (codes, places) = (both.collect(), places * width);
            } else {
                let both = codes.iter().zip(&more.of_rows).map(|(a, b)| Some(u64::from(*a) << 32 | u64::from(*b)));
                let numbered = number(both, rows);
                (codes, places) = (numbered.of_rows, numbered.distinct);
            }
        }
        Self::dense(codes, places)
    }

    /// Numbers codes below `places` in the order in which they come.
    fn dense(mut codes: Vec<u32>, places: usize) -> Self {
        let (mut table, mut first) = (vec![u32::MAX; places], Vec::new());
        for (row, code) in (0..).zip(&mut codes) {
            let dense = &mut table[*code as usize];
            if *dense == u32::MAX {
                *dense = first.len() as u32;
                first.push(row);
            }
            *code = *dense;
        }
        Self { of_rows: codes, first }
    }
}

/// Some rows of an array, in a type of their own, with one zero and one NaN.
pub fn picked(array: &ArrayRef, rows: &[u32], data_type: &DataType) -> Result<ArrayRef> {
    let rows = UInt32Array::from(rows.to_vec());
    let some = match array.as_any_dictionary_opt() {
        Some(dictionary) => take(dictionary.values(), &take(dictionary.keys(), &rows, None)?, None)?,
        None => take(array, &rows, None)?,
    };
    let some = if some.data_type() == data_type { some } else { cast(&some, data_type)? };
    plain_floats(&some)
}
