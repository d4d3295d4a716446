//! Decodes some rows of a segment where that is cheaper than decoding all of it: numbers and texts whose encodings allow
//! random access.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder, StringArray, UInt32Array, make_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, Int64Type, UInt32Type, i256};
use bytes::Bytes;
use drumlin_codec::Ptype;

use super::export::of_plain;
use super::form::Form;
use super::select::take_rows;
use super::types::plain_type;
use crate::base::{Error, Result};
use crate::segment::forms::bits::read_nulls;
use crate::segment::forms::fixed::{TimeScale, narrow_width, scales};
use crate::segment::forms::tag::{FormTag, NULLS};
use crate::segment::forms::text::{key_type, only_nulls, read_count};
use crate::segment::forms::tree::{self, StoredNumbers, decoded, nulls_of};
use crate::segment::forms::wire::Reader;
use crate::segment::forms::words::{Words, machine_type};
use crate::segment::{decode, guarded, read_column};

/// Rows are picked individually if fewer than one in this many is wanted.
const SHARE: usize = 16;

/// Decodes the rows `picked`, ascending, of a column of `rows` rows. See [`decode`].
pub fn decode_rows(bytes: Bytes, rows: usize, data_type: &DataType, picked: &[u32]) -> Result<ArrayRef> {
    if picked.last().is_some_and(|last| *last as usize >= rows) {
        return Err(Error::invalid(format!("a row past the end was requested; there are {rows} rows")));
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

/// The rows, if the encoding allows random access; else nothing is read.
fn pick(input: &mut Reader, rows: usize, data_type: &DataType, picked: &[u32]) -> Result<Option<ArrayRef>> {
    let byte = input.peek()?;
    let nullable = byte & NULLS != 0;
    let plain = plain_type(data_type);
    match (FormTag::of(byte)?, machine_type(data_type), plain) {
        (FormTag::Tree, Some(ptype), _) => {
            input.u8()?;
            of_numbers(tree::read(input, rows)?.pick_numbers(ptype, nullable, picked)?, ptype, picked, data_type)
                .map(Some)
        }
        (FormTag::Tree, _, Some(plain)) => {
            input.u8()?;
            let column = tree::read(input, rows)?.texts(nullable)?;
            let (texts, nulls) = decoded(column.pick(picked))?;
            into_text(of_plain(texts, nulls.map(nulls_of), plain == DataType::Utf8)?, data_type).map(Some)
        }
        (FormTag::Scaled, Some(ptype), _) if scales(data_type) => {
            input.u8()?;
            let scale = TimeScale::read(input)?;
            let words = of_words(input, rows, ptype, &DataType::Int64, picked)?;
            let values = words.as_primitive::<Int64Type>().unary::<_, Int64Type>(|word| scale.time(word));
            Ok(Some(make_array(values.to_data().into_builder().data_type(data_type.clone()).build()?)))
        }
        (FormTag::Narrow, ..) if matches!(data_type, DataType::Decimal128(..) | DataType::Decimal256(..)) => {
            input.u8()?;
            of_narrow_decimals(input, rows, data_type, picked).map(Some)
        }
        (FormTag::Dictionary, _, Some(plain)) => {
            input.u8()?;
            into_text(of_dictionary(input, rows, &plain, picked)?, data_type).map(Some)
        }
        (FormTag::Plain, None, Some(plain)) => {
            input.u8()?;
            into_text(of_plain_text(input, rows, nullable, &plain, picked)?, data_type).map(Some)
        }
        _ => Ok(None),
    }
}

fn of_numbers(found: StoredNumbers, ptype: Ptype, picked: &[u32], data_type: &DataType) -> Result<ArrayRef> {
    let words = Words { ptype, values: found.values, nulls: found.nulls };
    Ok(make_array(words.into_array(picked.len(), data_type)?))
}

/// Numbers whose tag was not read yet.
fn of_words(input: &mut Reader, rows: usize, ptype: Ptype, data_type: &DataType, picked: &[u32]) -> Result<ArrayRef> {
    let byte = input.peek()?;
    if FormTag::of(byte)? == FormTag::Tree {
        input.u8()?;
        let found = tree::read(input, rows)?.pick_numbers(ptype, byte & NULLS != 0, picked)?;
        return of_numbers(found, ptype, picked, data_type);
    }
    let all = make_array(Words::read(input, rows, ptype)?.into_array(rows, data_type)?);
    take_rows(&all, &UInt32Array::from(picked.to_vec()))
}

/// Decimals of 128 or 256 bits that are stored in fewer. The tag was read.
fn of_narrow_decimals(input: &mut Reader, rows: usize, data_type: &DataType, picked: &[u32]) -> Result<ArrayRef> {
    let (ptype, number) = narrow_width(input)?;
    let words = of_words(input, rows, ptype, &number, picked)?;
    let words = cast(&words, &DataType::Int64)?;
    let words = words.as_primitive::<Int64Type>();
    Ok(match data_type {
        DataType::Decimal256(..) => {
            let wide = words.unary::<_, Decimal256Type>(|word| i256::from_i128(word.into()));
            Arc::new(wide.with_data_type(data_type.clone()))
        }
        _ => Arc::new(words.unary::<_, Decimal128Type>(i128::from).with_data_type(data_type.clone())),
    })
}

fn into_text(array: ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if array.data_type() == data_type { Ok(array) } else { Ok(cast(&array, data_type)?) }
}

/// Texts stored as a dictionary: of its keys those of the rows, and of its values those of these keys. The tag was read.
fn of_dictionary(input: &mut Reader, rows: usize, plain: &DataType, picked: &[u32]) -> Result<ArrayRef> {
    let count = read_count(input)?;
    if count == 0 {
        let all = only_nulls(input, rows, plain, plain, read_column)?;
        return take_rows(&all, &UInt32Array::from(picked.to_vec()));
    }
    let (key, ptype) = key_type(count);
    let keys = of_words(input, rows, ptype, &key, picked)?;
    let keys = cast(&keys, &DataType::UInt32)?;
    let keys = keys.as_primitive::<UInt32Type>();
    let mut wanted: Vec<u32> = keys.iter().flatten().collect();
    wanted.sort_unstable();
    wanted.dedup();
    if let Some(last) = wanted.last().filter(|last| **last as usize >= count) {
        return Err(Error::corrupt(format!("key {last} is past the end of a dictionary of {count} values")));
    }
    if !wanted.is_empty()
        && wanted.len() * SHARE < count
        && let Some(values) = pick(input, count, plain, &wanted)?
    {
        let place = |key: u32| wanted.binary_search(&key).expect("one of those wanted") as u32;
        return take_rows(&values, &keys.iter().map(|key| key.map(place)).collect::<UInt32Array>());
    }
    take_rows(&read_column(input, count, plain, Form::Exact)?, keys)
}

/// Texts stored one after the other. The tag was read.
fn of_plain_text(
    input: &mut Reader,
    rows: usize,
    nullable: bool,
    plain: &DataType,
    picked: &[u32],
) -> Result<ArrayRef> {
    let nulls = read_nulls(input, rows, nullable)?;
    let lengths = Words::read(input, rows, Ptype::U32)?;
    let all = input.count()?;
    let bytes = input.buffer(all)?;
    let mut texts = BinaryBuilder::with_capacity(picked.len(), 0);
    let mut left = picked.iter().peekable();
    let mut end = 0_u64;
    for (row, length) in (0_u32..).zip(lengths.typed::<u32>()) {
        let start = end;
        end += u64::from(*length);
        if left.next_if_eq(&&row).is_some() {
            let text = usize::try_from(start).ok().zip(usize::try_from(end).ok());
            let text = text.and_then(|(start, end)| bytes.get(start..end));
            let valid = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row as usize));
            texts.append_option(text.filter(|_| valid));
        }
    }
    if end != all as u64 {
        return Err(Error::corrupt(format!("the lengths add up to {end} bytes; expected {all}")));
    }
    let texts = texts.finish();
    Ok(match plain {
        DataType::Utf8 => Arc::new(StringArray::try_from_binary(texts)?),
        _ => Arc::new(texts),
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        Array, BinaryViewArray, Decimal128Array, Decimal256Array, Float64Array, Int64Array, LargeStringArray,
        StringViewArray, TimestampNanosecondArray, TimestampSecondArray,
    };
    use arrow::compute::take;

    use super::*;
    use crate::segment::encode;

    #[test]
    fn picked_rows_are_those_of_the_whole() {
        let mut rng = fastrand::Rng::with_seed(9);
        let n = 20_000_i64;
        let null = |i: i64, every: i64| every == 0 || i % every != 0;
        let mut random = fastrand::Rng::with_seed(3);
        let mut noise = |length: usize| (0..length).map(|_| random.alphanumeric()).collect::<String>();
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
            Arc::new(StringArray::from_iter((0..n).map(|i| null(i, 3).then(|| format!("a {}", i * 31 % 977))))),
            Arc::new(LargeStringArray::from_iter((0..n).map(|i| null(i, 4).then(|| format!("{}", i * 31 % 5003))))),
            Arc::new(StringViewArray::from_iter_values((0..n).map(|i| format!("value {}", i * 31 % 400)))),
            Arc::new(StringArray::from_iter_values((0..n).map(|_| noise(16)))),
            Arc::new(BinaryViewArray::from_iter((0..n).map(|i| null(i, 6).then(|| noise(9))))),
            Arc::new(Decimal128Array::from_iter((0..n).map(|i| null(i, 9).then_some(i128::from(i * 7919 % 100_003))))),
            Arc::new(Decimal128Array::from_iter_values((0..n).map(|i| i128::from(i * 7919 % 100_003) << 20))),
            Arc::new(Decimal256Array::from_iter((0..n).map(|i| null(i, 8).then(|| i256::from_i128((i * i).into()))))),
            Arc::new(Decimal128Array::from_iter_values((0..n).map(|i| i128::from(i) << 80))),
            Arc::new(TimestampNanosecondArray::from_iter(
                (0..n).map(|i| null(i, 4).then_some(i * i % 9973 * 1_000_000 + 7)),
            )),
        ];
        let tags =
            columns.iter().map(|column| FormTag::of(encode(column).unwrap().bytes[0]).unwrap()).collect::<Vec<_>>();
        for tag in [FormTag::Plain, FormTag::Tree, FormTag::Dictionary] {
            assert!(tags[6..].contains(&tag), "no text is stored as {tag:?}: {tags:?}");
        }
        for tag in [FormTag::Narrow, FormTag::Wide, FormTag::Scaled] {
            assert!(tags.contains(&tag), "nothing is stored as {tag:?}: {tags:?}");
        }
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
