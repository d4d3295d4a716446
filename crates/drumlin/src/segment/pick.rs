//! Decodes some rows of a segment where that is cheaper than decoding all of it: numbers and texts whose encodings allow
//! random access.

use arrow::array::{ArrayRef, UInt32Array, make_array};
use arrow::datatypes::DataType;
use bytes::Bytes;
use vortex_array::arrays::PrimitiveArray;
use vortex_array::dtype::{DType, PType};
use vortex_array::{ArrayRef as VortexRef, IntoArray};
use vortex_arrow::to_null_buffer;

use super::codec::{Codec, refused};
use super::export::export;
use super::form::Form;
use super::select::take_rows;
use super::tag::{NULLS, Tag};
use super::types::plain_type;
use super::wire::Reader;
use super::words::{Words, machine_type};
use super::{decode, guarded, tree};
use crate::base::{Error, Result};

/// Rows are picked individually if fewer than one in this many is wanted.
const SHARE: usize = 16;
/// Rows this close together are decoded with all rows between them.
const SPAN: usize = 4096;

/// Decodes the rows `picked`, ascending, of a column of `rows` rows. See [`decode`].
pub fn decode_rows(bytes: Bytes, rows: usize, data_type: &DataType, picked: &[u32]) -> Result<ArrayRef> {
    if picked.last().is_some_and(|last| *last as usize >= rows) {
        return Err(Error::invalid(format!("a row past the end of {rows}")));
    }
    if !picked.is_empty() && picked.len() * SHARE < rows {
        let some = guarded(bytes.clone(), rows, data_type, |input| pick(input, rows, data_type, picked))?;
        if let Some(some) = some {
            return Ok(some);
        }
    }
    let all = decode(bytes, rows, data_type, Form::Exact)?;
    take_rows(&all, &UInt32Array::from(picked.to_vec()))
}

/// The rows, if the encoding allows random access.
fn pick(input: &mut Reader, rows: usize, data_type: &DataType, picked: &[u32]) -> Result<Option<ArrayRef>> {
    let codec = Codec::get();
    let byte = input.u8()?;
    if Tag::of(byte)? != Tag::Vortex {
        return Ok(None);
    }
    let nullable = (byte & NULLS != 0).into();
    if let Some(ptype) = machine_type(data_type) {
        let array = tree::read(codec, input, &DType::Primitive(ptype, nullable), rows)?;
        return numbers(codec, &array, ptype, data_type, picked).map(Some);
    }
    let plain = match plain_type(data_type) {
        Some(DataType::Utf8) => DType::Utf8(nullable),
        Some(_) => DType::Binary(nullable),
        None => return Ok(None),
    };
    let array = take_from(&tree::read(codec, input, &plain, rows)?, picked)?;
    export(codec, array, data_type, &mut codec.context()).map(Some)
}

fn take_from(array: &VortexRef, picked: &[u32]) -> Result<VortexRef> {
    let (first, last) = (picked[0] as usize, picked[picked.len() - 1] as usize);
    let near = last - first < SPAN;
    let (array, from) = match near {
        true => (array.slice(first..last + 1).map_err(refused)?, first as u32),
        false => (array.clone(), 0),
    };
    if near && last - first + 1 == picked.len() {
        return Ok(array);
    }
    let places = PrimitiveArray::from_iter(picked.iter().map(|row| u64::from(row - from)));
    array.take(places.into_array()).map_err(refused)
}

fn numbers(codec: &Codec, array: &VortexRef, ptype: PType, data_type: &DataType, picked: &[u32]) -> Result<ArrayRef> {
    let mut context = codec.context();
    let array = take_from(array, picked)?.execute::<PrimitiveArray>(&mut context).map_err(refused)?;
    let validity = array.as_ref().validity().map_err(refused)?;
    let nulls = validity.execute_mask(picked.len(), &mut context).map_err(refused)?;
    let values = array.buffer_handle().to_host_sync().into_arrow_buffer();
    if values.len() != picked.len() * ptype.byte_width() {
        return Err(Error::corrupt(format!("{} bytes for {} values of {ptype}", values.len(), picked.len())));
    }
    let words = Words { ptype, values, nulls: to_null_buffer(nulls) };
    Ok(make_array(words.into_array(picked.len(), data_type)?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, Float64Array, Int64Array, StringArray, TimestampSecondArray, UInt32Array};
    use arrow::compute::take;

    use super::*;
    use crate::segment::encode;

    #[test]
    fn picked_rows_are_those_of_the_whole() {
        let mut rng = fastrand::Rng::with_seed(9);
        let n = 20_000_i64;
        let null = |i: i64, every: i64| every == 0 || i % every != 0;
        let text = |i: i64| format!("some words, the {}th of them, {}", i % 3001, i * i % 9973);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values((0..n).map(|i| i * 7919 % 100_003))),
            Arc::new(Int64Array::from_iter((0..n).map(|i| null(i, 7).then_some(i * 7919 % 100_003)))),
            Arc::new(Int64Array::from_iter_values(0..n)),
            Arc::new(Int64Array::from_iter_values((0..n).map(|i| i / 500))),
            Arc::new(Float64Array::from_iter((0..n).map(|i| null(i, 11).then_some(i as f64 / 100.0)))),
            Arc::new(TimestampSecondArray::from_iter_values((0..n).map(|i| i * 60))),
            Arc::new(StringArray::from_iter((0..n).map(|i| null(i, 5).then(|| text(i))))),
            Arc::new(StringArray::from_iter((0..n).map(|i| Some(format!("few {}", i % 9))))),
        ];
        for column in columns {
            let bytes = Bytes::from(encode(&column).unwrap().bytes);
            for round in 0..40 {
                let first = rng.u32(0..n as u32);
                let mut picked: Vec<u32> = match round % 4 {
                    0 => (0..rng.usize(1..60)).map(|_| rng.u32(0..n as u32)).collect(),
                    1 => (first..(first + 100).min(n as u32)).collect(),
                    2 => (first..(first + 2000).min(n as u32)).step_by(13).collect(),
                    _ => (0..n as u32).step_by(rng.usize(1..40)).collect(),
                };
                picked.sort_unstable();
                picked.dedup();
                let found = decode_rows(bytes.clone(), n as usize, column.data_type(), &picked).unwrap();
                let expected = take(&column, &UInt32Array::from(picked), None).unwrap();
                assert_eq!(&found, &expected, "{}", column.data_type());
            }
            assert!(decode_rows(bytes, n as usize, column.data_type(), &[n as u32]).is_err());
        }
    }
}
