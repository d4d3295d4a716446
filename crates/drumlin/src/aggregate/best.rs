//! The least, the greatest, the first and the last of some values: as integers that compare like them where 64 bits are enough, else as
//! bytes that do.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int64Array, UInt64Array, new_null_array};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{
    DECIMAL64_MAX_PRECISION, DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Float64Type, Int64Type, UInt64Type,
};
use arrow::row::{RowConverter, SortField};

use super::codes::{picked, plain_floats};
use super::plan::scale_of;
use crate::base::Result;
use crate::filter::{float_key, key_float, narrow_integers};
use crate::segment::places_of;

/// Values of one row in bytes that compare like them.
pub type Bytes = Box<[u8]>;

/// A value as an integer that compares like it, and where it came from; a minimum or maximum may come from anywhere.
#[derive(Clone, Copy, Debug)]
pub struct BestNumber {
    pub key: i64,
    pub rank: u64,
}

/// The rank of no row.
pub const NOWHERE: u64 = u64::MAX;

/// Which value of a group is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector {
    Least,
    Greatest,
    First,
    Last,
}

impl Selector {
    /// Without a value: worse than all others, and of a place that no row has.
    pub fn none(self) -> BestNumber {
        BestNumber { key: if self == Self::Least { i64::MAX } else { i64::MIN }, rank: NOWHERE }
    }

    /// The better of two.
    pub fn better(self, old: BestNumber, new: BestNumber) -> BestNumber {
        let of = |best: BestNumber| (best.key, best.rank);
        let takes = old.rank == NOWHERE || self.is_better(of(new), of(old));
        if new.rank != NOWHERE && takes { new } else { old }
    }

    /// Whether it goes by the place of rows, not by their values.
    pub fn is_by_place(self) -> bool {
        matches!(self, Self::First | Self::Last)
    }

    /// Whether something is better than what there is.
    fn is_better<T: Ord>(self, new: (T, u64), old: (T, u64)) -> bool {
        match self {
            Self::Least => new.0 < old.0,
            Self::Greatest => new.0 > old.0,
            Self::First => new.1 < old.1,
            Self::Last => new.1 > old.1,
        }
    }
}

/// Calls `with` for each value that is not null.
pub fn each<T: Copy>(values: &[T], nulls: Option<&NullBuffer>, ids: &[u32], mut with: impl FnMut(usize, T)) {
    match nulls.filter(|nulls| nulls.null_count() > 0) {
        None => values.iter().zip(ids).for_each(|(value, id)| with(*id as usize, *value)),
        Some(nulls) => nulls.valid_indices().for_each(|at| with(ids[at] as usize, values[at])),
    }
}

pub fn doubles(array: &ArrayRef) -> Result<Float64Array> {
    Ok(cast(array, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
}

/// Whether values are integers of at most 64 bits, or compare like such.
pub fn has_keys(data_type: &DataType) -> bool {
    match data_type {
        DataType::Decimal128(precision, _) => *precision <= DECIMAL64_MAX_PRECISION,
        DataType::Boolean | DataType::Decimal32(..) | DataType::Decimal64(..) => true,
        other => {
            other.is_integer()
                || other.is_floating()
                || (other.is_temporal() && other.primitive_width().is_some_and(|w| w <= 8))
        }
    }
}

/// The values of such a type, as integers that compare like them. Zeros are equal, and NaN is the greatest.
pub fn keys_of(array: &ArrayRef) -> Result<ScalarBuffer<i64>> {
    if let Some(values) = narrow_integers(array) {
        return Ok(values);
    }
    let flip = |value: &u64| (value ^ (1 << 63)).cast_signed();
    Ok(match array.data_type() {
        DataType::UInt64 => array.as_primitive::<UInt64Type>().values().iter().map(flip).collect(),
        DataType::Decimal128(..) => {
            // As many digits as its type says, 64 bits hold.
            array.as_primitive::<Decimal128Type>().values().iter().map(|value| *value as i64).collect()
        }
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            doubles(array)?.values().iter().map(|value| float_key(*value)).collect()
        }
        _ => cast(array, &DataType::Int64)?.as_primitive::<Int64Type>().values().clone(),
    })
}

/// The values of `data_type` that such integers stand for.
pub fn from_keys(keys: Vec<Option<i64>>, data_type: &DataType) -> Result<ArrayRef> {
    let array = match data_type {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            Arc::new(keys.into_iter().map(|key| key.map(key_float)).collect::<Float64Array>()) as ArrayRef
        }
        DataType::UInt64 => {
            let flip = |key: i64| key.cast_unsigned() ^ (1 << 63);
            Arc::new(keys.into_iter().map(|key| key.map(flip)).collect::<UInt64Array>())
        }
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) => {
            let wide: Decimal128Array = keys.into_iter().map(|key| key.map(i128::from)).collect();
            let scale = scale_of(data_type).unwrap_or(0);
            Arc::new(wide.with_data_type(DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale)))
        }
        DataType::Date32 | DataType::Time32(_) => cast(&keys.into_iter().collect::<Int64Array>(), &DataType::Int32)?,
        _ => Arc::new(keys.into_iter().collect::<Int64Array>()),
    };
    Ok(if array.data_type() == data_type { array } else { cast(&array, data_type)? })
}

pub fn add_numbers(best: &mut [BestNumber], kind: Selector, ids: &[u32], array: &ArrayRef, rank: u64) -> Result<()> {
    let (keys, nulls) = (keys_of(array)?, array.nulls());
    match kind {
        Selector::Least => each(&keys, nulls, ids, |id, key| {
            best[id] = BestNumber { key: best[id].key.min(key), rank: 0 };
        }),
        Selector::Greatest => each(&keys, nulls, ids, |id, key| {
            best[id] = BestNumber { key: best[id].key.max(key), rank: 0 };
        }),
        Selector::First | Selector::Last => {
            let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
            for (at, (id, key)) in ids.iter().zip(&keys).enumerate() {
                if nulls.is_none_or(|nulls| nulls.is_valid(at)) {
                    let there = &mut best[*id as usize];
                    *there = kind.better(*there, BestNumber { key: *key, rank: rank + at as u64 });
                }
            }
        }
    }
    Ok(())
}

/// Rows of an array in bytes that compare like their values.
pub fn in_bytes(array: &ArrayRef, rows: &[u32], data_type: &DataType) -> Result<Vec<Bytes>> {
    let converter = RowConverter::new(vec![SortField::new(data_type.clone())])?;
    let converted = converter.convert_columns(&[picked(array, rows, data_type)?])?;
    Ok(converted.iter().map(|row| row.data().into()).collect())
}

/// The values of such bytes; null where there are none.
pub fn from_bytes(chosen: &[Option<&[u8]>], data_type: &DataType) -> Result<ArrayRef> {
    let converter = RowConverter::new(vec![SortField::new(data_type.clone())])?;
    let parser = converter.parser();
    let null = converter.convert_columns(&[new_null_array(data_type, 1)])?;
    let rows = chosen.iter().map(|bytes| parser.parse(bytes.unwrap_or_else(|| null.row(0).data())));
    Ok(converter.convert_rows(rows)?.remove(0))
}

pub fn offer(best: &mut Option<(Bytes, u64)>, new: Option<(Bytes, u64)>, kind: Selector) {
    let Some(new) = new else { return };
    if best.as_ref().is_none_or(|old| kind.is_better((&new.0, new.1), (&old.0, old.1))) {
        *best = Some(new);
    }
}

/// The best row of each group of a batch, then compared with what there was before.
pub fn add_best(
    best: &mut [Option<(Bytes, u64)>],
    kind: Selector,
    data_type: &DataType,
    ids: &[u32],
    array: &ArrayRef,
    rank: u64,
) -> Result<()> {
    let nulls = array.logical_nulls();
    if nulls.as_ref().map_or(0, NullBuffer::null_count) == array.len() {
        return Ok(());
    }
    let mut chosen = vec![u32::MAX; ids.iter().max().map_or(0, |most| *most as usize + 1)];
    let mut touched = Vec::new();
    let mut choose = |better: &dyn Fn(usize, usize) -> bool| {
        for (at, id) in ids.iter().enumerate() {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(at)) {
                continue;
            }
            let there = &mut chosen[*id as usize];
            if *there == u32::MAX {
                touched.push(*id);
                *there = at as u32;
            } else if better(at, *there as usize) {
                *there = at as u32;
            }
        }
    };
    match kind {
        Selector::First => choose(&|_, _| false),
        Selector::Last => choose(&|_, _| true),
        Selector::Least | Selector::Greatest => {
            let wanted = if kind == Selector::Least { Ordering::Less } else { Ordering::Greater };
            let converter = |of: &ArrayRef| -> Result<arrow::row::Rows> {
                let converter = RowConverter::new(vec![SortField::new(of.data_type().clone())])?;
                Ok(converter.convert_columns(&[plain_floats(of)?])?)
            };
            match array.as_any_dictionary_opt() {
                Some(dictionary) => {
                    let (rows, keys) = (converter(dictionary.values())?, places_of(dictionary));
                    choose(&|a, b| rows.row(keys[a]).cmp(&rows.row(keys[b])) == wanted);
                }
                None => {
                    let rows = converter(array)?;
                    choose(&|a, b| rows.row(a).cmp(&rows.row(b)) == wanted);
                }
            }
        }
    }
    let rows: Vec<u32> = touched.iter().map(|id| chosen[*id as usize]).collect();
    for ((id, row), bytes) in touched.iter().zip(&rows).zip(in_bytes(array, &rows, data_type)?) {
        offer(&mut best[*id as usize], Some((bytes, rank + u64::from(*row))), kind);
    }
    Ok(())
}
