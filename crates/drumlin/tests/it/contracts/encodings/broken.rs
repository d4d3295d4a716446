//! Codecs that break one rule of the contract.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray, new_null_array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{cast, sort};
use arrow::datatypes::{DataType, Field, Float32Type, Float64Type, Int64Type};
use bytes::Bytes;
use drumlin::Result;
use drumlin::segment::{Form, Scheme, Segment, decode, decode_rows, encode, encode_like, take_rows};

use super::codec::{Codec, REAL};

/// What each does, how, and the check that has to notice.
pub const RULES: [(&str, Codec, &str); 14] = [
    ("gives another type", Codec { decode: other_type, ..REAL }, "columns of every type come back"),
    ("forgets what fields say", Codec { decode: no_metadata, ..REAL }, "columns of every type come back"),
    ("forgets nulls", Codec { decode: no_nulls, ..REAL }, "nothing and nulls come back"),
    ("looks at where the memory begins", Codec { encode: from_the_start, ..REAL }, "slices come back"),
    ("gives 0.0 for -0.0", Codec { decode: no_sign, ..REAL }, "extremes come back bit for bit"),
    ("gives one NaN for all", Codec { decode: one_nan, ..REAL }, "extremes come back bit for bit"),
    ("gives null for an empty text", Codec { decode: no_empty, ..REAL }, "extremes come back bit for bit"),
    ("takes 255 values for all", Codec { encode: few_values, ..REAL }, "dictionaries of every size come back"),
    ("sorts by a scheme", Codec { encode_like: sorted, ..REAL }, "other schemes give the same values"),
    ("picks in another order", Codec { decode_rows: backwards, ..REAL }, "picked rows are those of the whole"),
    ("picks beyond the end", Codec { decode_rows: beyond, ..REAL }, "picked rows are those of the whole"),
    ("gives other bytes each time", Codec { encode: other_bytes, ..REAL }, "the same column gives the same bytes"),
    ("reads what is cut", Codec { decode: forgiving, ..REAL }, "damage is an error or an array"),
    ("panics", Codec { decode: panicking, ..REAL }, "damage is an error or an array"),
];

fn other_type(bytes: Bytes, rows: usize, data_type: &DataType, form: Form) -> Result<ArrayRef> {
    let array = decode(bytes, rows, data_type, form)?;
    Ok(if data_type == &DataType::LargeUtf8 { cast(&array, &DataType::Utf8)? } else { array })
}

fn no_metadata(bytes: Bytes, rows: usize, data_type: &DataType, form: Form) -> Result<ArrayRef> {
    let array = decode(bytes, rows, data_type, form)?;
    match data_type {
        DataType::List(field) => {
            let field = Field::new(field.name(), field.data_type().clone(), true);
            let (_, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
            Ok(Arc::new(arrow::array::ListArray::new(Arc::new(field), offsets, values, nulls)))
        }
        _ => Ok(array),
    }
}

fn no_nulls(bytes: Bytes, rows: usize, data_type: &DataType, form: Form) -> Result<ArrayRef> {
    let array = decode(bytes, rows, data_type, form)?;
    let values = array.as_primitive_opt::<Int64Type>().map(|array| array.values().clone());
    Ok(values.map_or(array, |values| Arc::new(arrow::array::Int64Array::new(values, None))))
}

fn from_the_start(array: &ArrayRef) -> Result<Segment> {
    let Some(bools) = array.as_boolean_opt() else { return encode(array) };
    let values = BooleanBuffer::new(bools.values().inner().clone(), 0, bools.len());
    encode(&(Arc::new(BooleanArray::new(values, bools.nulls().cloned())) as ArrayRef))
}

fn floats(array: ArrayRef, change: impl Fn(f64) -> f64) -> ArrayRef {
    if let Some(floats) = array.as_primitive_opt::<Float64Type>() {
        return Arc::new(floats.unary::<_, Float64Type>(change));
    }
    match array.as_primitive_opt::<Float32Type>() {
        Some(floats) => Arc::new(floats.unary::<_, Float32Type>(|value| change(f64::from(value)) as f32)),
        None => array,
    }
}

fn no_sign(bytes: Bytes, rows: usize, data_type: &DataType, form: Form) -> Result<ArrayRef> {
    Ok(floats(decode(bytes, rows, data_type, form)?, |value| if value == 0.0 { 0.0 } else { value }))
}

fn one_nan(bytes: Bytes, rows: usize, data_type: &DataType, form: Form) -> Result<ArrayRef> {
    Ok(floats(decode(bytes, rows, data_type, form)?, |value| if value.is_nan() { f64::NAN } else { value }))
}

fn no_empty(bytes: Bytes, rows: usize, data_type: &DataType, form: Form) -> Result<ArrayRef> {
    let array = decode(bytes, rows, data_type, form)?;
    let texts = array.as_string_opt::<i32>().map(|texts| texts.iter().map(|text| text.filter(|text| !text.is_empty())));
    Ok(texts.map(|texts| Arc::new(StringArray::from_iter(texts)) as ArrayRef).unwrap_or(array))
}

fn few_values(array: &ArrayRef) -> Result<Segment> {
    let Some(keyed) = array.as_any_dictionary_opt() else { return encode(array) };
    let values = keyed.values();
    if values.len() <= 255 {
        return encode(array);
    }
    // The rest are taken for the first.
    let kept: Vec<u32> = (0..values.len() as u32).map(|n| if n < 255 { n } else { 0 }).collect();
    encode(&keyed.with_values(take_rows(values, &kept.into())?))
}

fn sorted(array: &ArrayRef, data_type: &DataType, like: &Scheme) -> Result<(Segment, Scheme)> {
    match data_type {
        DataType::Int32 => encode_like(&sort(array, None)?, data_type, like),
        _ => encode_like(array, data_type, like),
    }
}

fn backwards(bytes: Bytes, rows: usize, data_type: &DataType, picked: &[u32]) -> Result<ArrayRef> {
    let found = decode_rows(bytes, rows, data_type, picked)?;
    match found.as_primitive_opt::<Int64Type>() {
        Some(found) => Ok(Arc::new(found.iter().rev().collect::<arrow::array::Int64Array>())),
        None => Ok(found),
    }
}

fn beyond(bytes: Bytes, rows: usize, data_type: &DataType, picked: &[u32]) -> Result<ArrayRef> {
    let within: Vec<u32> = picked.iter().map(|row| (*row).min(rows as u32 - 1)).collect();
    decode_rows(bytes, rows, data_type, &within)
}

fn other_bytes(array: &ArrayRef) -> Result<Segment> {
    static TIMES: AtomicU64 = AtomicU64::new(0);
    let mut segment = encode(array)?;
    segment.bytes.extend(vec![0; TIMES.fetch_add(1, Ordering::Relaxed) as usize % 2]);
    Ok(segment)
}

fn forgiving(bytes: Bytes, rows: usize, data_type: &DataType, form: Form) -> Result<ArrayRef> {
    Ok(decode(bytes, rows, data_type, form).unwrap_or_else(|_| new_null_array(data_type, rows)))
}

fn panicking(bytes: Bytes, rows: usize, data_type: &DataType, form: Form) -> Result<ArrayRef> {
    Ok(decode(bytes, rows, data_type, form).unwrap())
}
