//! The distinct values of a batch's columns: each row gets a small number, equal for equal values. Dictionaries have such numbers
//! already, as have integers that lie close together; others are hashed, and neighbours that are equal are not looked up again.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array, PrimitiveArray, UInt32Array};
use arrow::buffer::NullBuffer;
use arrow::compute::{cast, take};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow::row::{RowConverter, SortField};
use foldhash::fast::FixedState;

use crate::base::Result;
use crate::filter::{float_key, narrow_integers};

/// A number for each row, below `distinct`.
pub struct RowCodes {
    pub of_rows: Vec<u32>,
    pub distinct: usize,
}

/// A row each of the distinct combinations of values, and which of them each row has.
pub struct Combinations {
    pub of_rows: Vec<u32>,
    /// The first row of each combination.
    pub first: Vec<u32>,
}

/// Up to this number of possible values or combinations, each has its place in a table.
const TABLE_MAX: usize = 1 << 17;

/// Neighbouring rows that are looked at together: mostly they are of one group.
pub const CHUNK: usize = 64;

/// Whether all are the same code, without a branch for each.
pub fn all_are(codes: &[u32], code: u32) -> bool {
    codes.iter().fold(true, |all, other| all & (*other == code))
}

/// Numbers values in the order in which they first come. `None` is a null.
fn number<T: Copy + Eq + Hash>(values: impl Iterator<Item = Option<T>>, rows: usize) -> RowCodes {
    // Only the time that looking a value up takes depends on its hash.
    let mut known: HashMap<Option<T>, u32, FixedState> = HashMap::default();
    let mut of_rows = Vec::with_capacity(rows);
    let mut last = None;
    for value in values {
        let next = known.len() as u32;
        let code = match last {
            Some((before, code)) if before == value => code,
            _ => *known.entry(value).or_insert(next),
        };
        last = Some((value, code));
        of_rows.push(code);
    }
    RowCodes { of_rows, distinct: known.len() }
}

/// The zero and the NaN that stand for all.
pub fn plain_double(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value + 0.0 }
}

/// Floats in which equal numbers have equal bits: there is one zero, and one NaN. Other arrays are as they are.
pub fn plain_floats(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Float64 => {
            Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(plain_double)) as ArrayRef
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

impl RowCodes {
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
            Utf8 => Ok(number(array.as_string::<i32>().iter(), rows)),
            LargeUtf8 => Ok(number(array.as_string::<i64>().iter(), rows)),
            Utf8View => Ok(number(array.as_string_view().iter(), rows)),
            Binary => Ok(number(array.as_binary::<i32>().iter(), rows)),
            LargeBinary => Ok(number(array.as_binary::<i64>().iter(), rows)),
            BinaryView => Ok(number(array.as_binary_view().iter(), rows)),
            FixedSizeBinary(_) => Ok(number(array.as_fixed_size_binary().iter(), rows)),
            data_type => {
                let converter = RowConverter::new(vec![SortField::new(data_type.clone())])?;
                let converted = converter.convert_columns(&[plain_floats(array)?])?;
                Ok(number((0..rows).map(|row| Some(converted.row(row).data())), rows))
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
    pub fn of(columns: &[&RowCodes], rows: usize) -> Self {
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
        let mut row = 0;
        // Neighbours are often of one group.
        let mut last = None;
        for some in codes.chunks_mut(CHUNK) {
            if let Some((code, dense)) = last
                && all_are(some, code)
            {
                some.fill(dense);
                row += some.len() as u32;
                continue;
            }
            for code in some {
                let dense = &mut table[*code as usize];
                if *dense == u32::MAX {
                    *dense = first.len() as u32;
                    first.push(row);
                }
                last = Some((*code, *dense));
                *code = *dense;
                row += 1;
            }
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
