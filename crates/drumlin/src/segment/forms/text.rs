//! Strings and binary of varying length.
//!
//! ```text
//! text = TREE [+NULLS]    tree (tree.rs) of UTF-8 or binary
//!      | DICTIONARY       as a dictionary (dictionary.rs) with keys of 1 byte up to 256 values, else of 2;
//!                         the values ascend
//!      | PLAIN  [+NULLS]  bitmap of nulls if NULLS,
//!                         words (words.rs) of 4 bytes: length of each value, 0 if null,
//!                         varint length of all values, their bytes
//! ```
//! The dictionary is not one of a tree because its values ascend, and are a segment of their own.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BinaryDictionaryBuilder, StringArray, new_null_array};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, UInt32Type};
use drumlin_codec::{Built, Ptype, texts};

use super::bits::{aligned, read_nulls, write_nulls};
use super::codes::Codes;
use super::onpair::{LONG_ROWS_MIN, Text};
use super::tag::{FormTag, NULLS};
use super::tree::bits_of;
use super::wire::{ReadColumn, Reader, WriteColumn, Writer};
use super::words::Words;
use super::{dictionary, tree};
use crate::base::{Error, Result};
use crate::segment::decode::expand::expand;
use crate::segment::decode::export::{as_dictionary, as_views, of_offsets, with_offsets};
use crate::segment::decode::form::Form;
use crate::segment::decode::types::plain_type;
use crate::segment::encode::scheme::{Compression, Search};

/// Columns with fewer rows than this get no dictionary of ours.
const DICTIONARY_ROWS_MIN: usize = 64;

/// Fewer bytes than this are stored plain: finding symbols takes half a millisecond for any number of bytes.
const COMPRESSED_MIN: usize = 512;

/// A dictionary of ours has at least this many rows per value.
const ROWS_A_VALUE_MIN: usize = 8;
/// The maximum number of its values: keys have at most 16 bits.
const DICTIONARY_MAX: usize = 1 << 16;

/// With this many, it is taken without a look at what else there is.
const ROWS_A_VALUE_ENOUGH: usize = 16;

/// Writes strings or binary. Returns the distinct values if it had to find them.
pub(in crate::segment) fn write(
    out: &mut Writer,
    array: &ArrayRef,
    write_column: WriteColumn,
) -> Result<Option<ArrayRef>> {
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
    let values = values(array);
    let lengths: Vec<u32> = values
        .iter()
        .map(|value| u32::try_from(value.len()))
        .collect::<Result<_, _>>()
        .map_err(|_| Error::invalid("a value of 4 GiB or more cannot be stored; split it"))?;
    let bytes = lengths.iter().map(|length| *length as usize).sum::<usize>();
    check_size(bytes as u64)?;
    let trained = out.like.found.as_ref().and_then(|found| found.text.clone());
    let (start, found) = (out.len(), out.found);
    let mut keyed = None;
    if trained.is_none()
        && array.len() >= DICTIONARY_ROWS_MIN
        && let Some((places, distinct)) = find_dictionary(&values, nulls)
    {
        let few = distinct.len() <= array.len() / ROWS_A_VALUE_ENOUGH;
        let distinct = write_dictionary(out, array.data_type(), distinct, places.into_iter(), nulls, write_column)?;
        if few {
            return Ok(Some(distinct));
        }
        keyed = Some(distinct);
    }
    let keyed_bytes = out.len() - start;
    if trained.is_some()
        && let Some(tree) = encode_text(out, trained, &values, nulls)
        && tree.size() < bytes
    {
        FormTag::Tree.write(out, nulls.is_some());
        tree::write(&tree, out);
        return Ok(None);
    }
    // The plain form's lengths compress, so a tree of the bytes must be smaller than bytes and compressed
    // lengths together.
    let search = out.search();
    let lengths = Words::new(Ptype::U32, lengths, None).prepare(search);
    let mut tree = None;
    if bytes >= COMPRESSED_MIN && search.compression != Compression::Fast {
        let utf8 = plain_type(array.data_type()) == Some(DataType::Utf8);
        tree = compress(&values, utf8, nulls, search);
        let long = array.len() >= LONG_ROWS_MIN && utf8;
        if long && search.only.is_none() {
            // Codes are read faster than a dictionary, which must save a tenth.
            let smallest = tree.as_ref().map_or(usize::MAX, Built::size);
            match encode_text(out, None, &values, nulls).filter(|text| text.size() / 10 * 9 < smallest) {
                Some(text) => tree = Some(text),
                None => out.text = None,
            }
        }
    }
    let tree = tree.filter(|tree| tree.size() < bytes + lengths.size());
    if keyed.is_some() && keyed_bytes <= tree.as_ref().map_or(bytes + lengths.size(), Built::size) {
        out.text = None;
        return Ok(keyed);
    }
    out.truncate(start);
    out.found = found;
    if let Some(tree) = tree {
        FormTag::Tree.write(out, nulls.is_some());
        tree::write(&tree, out);
        return Ok(None);
    }
    FormTag::Plain.write(out, nulls.is_some());
    write_nulls(out, nulls);
    lengths.write(out);
    out.varint(bytes as u64);
    out.buffer(&values.concat());
    Ok(None)
}

/// Refuses strings that Arrow's 32-bit offsets could not address.
pub(in crate::segment) fn check_size(bytes: u64) -> Result<()> {
    if i32::try_from(bytes).is_err() { Err(too_long(bytes)) } else { Ok(()) }
}

/// That they could not.
pub(in crate::segment) fn too_long(bytes: u64) -> Error {
    Error::schema_mismatch(format!(
        "the strings of one row group take {bytes} bytes; expected less than 2 GiB, so write fewer rows at a time"
    ))
}

/// Encodes a long text by OnPair, with the `trained` dictionary or else a new one; stores it in `out`.
fn encode_text(
    out: &mut Writer,
    trained: Option<Arc<Text>>,
    values: &[&[u8]],
    nulls: Option<&NullBuffer>,
) -> Option<Built> {
    let text = trained.unwrap_or_else(|| Arc::new(Text::train(values)));
    let tree = Codes::encode(&text, values, nulls)?.tree()?;
    out.text = Some(text);
    Some(tree)
}

/// Writes strings that are given as a dictionary; only the values that rows use are kept, in order. Returns them;
/// `None`, with nothing written, if too many values are used for a dictionary of ours.
pub(in crate::segment) fn write_keyed(
    out: &mut Writer,
    array: &ArrayRef,
    write_column: WriteColumn,
) -> Result<Option<ArrayRef>> {
    let keyed = array.as_any_dictionary();
    let (keys, nulls) = (keyed.normalized_keys(), keyed.keys().nulls().filter(|nulls| nulls.null_count() > 0));
    let valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
    let mut used = vec![false; keyed.values().len()];
    keys.iter().enumerate().filter(|(row, _)| valid(*row)).for_each(|(_, key)| used[*key] = true);
    let mut order: Vec<usize> = (0..used.len()).filter(|value| used[*value]).collect();
    if array.len() < DICTIONARY_ROWS_MIN || order.len() > (array.len() / ROWS_A_VALUE_ENOUGH).min(1 << 16) {
        return Ok(None);
    }
    let plain = cast(keyed.values(), &DataType::Binary)?;
    let plain = plain.as_binary::<i32>();
    let length = |(row, key): (usize, &usize)| if valid(row) { plain.value(*key).len() as u64 } else { 0 };
    check_size(keys.iter().enumerate().map(length).sum())?;
    order.sort_unstable_by_key(|value| plain.value(*value));
    // There may be duplicate values.
    order.dedup_by_key(|value| plain.value(*value));
    let mut rank = vec![0; used.len()];
    for value in (0..used.len()).filter(|value| used[*value]) {
        rank[value] = order.partition_point(|ranked| plain.value(*ranked) < plain.value(value));
    }
    let distinct = BinaryArray::from_iter_values(order.iter().map(|value| plain.value(*value)));
    let place = |(row, key): (usize, &usize)| if valid(row) { rank[*key] } else { 0 };
    let places = keys.iter().enumerate().map(place);
    Ok(Some(write_dictionary(out, keyed.values().data_type(), distinct, places, nulls, write_column)?))
}

/// Writes a dictionary of `distinct` values of a column of `data_type`, and the place of each row's value. Returns the
/// values.
fn write_dictionary(
    out: &mut Writer,
    data_type: &DataType,
    distinct: BinaryArray,
    places: impl Iterator<Item = usize>,
    nulls: Option<&NullBuffer>,
    write_column: WriteColumn,
) -> Result<ArrayRef> {
    let keys = if distinct.len() <= 1 << 8 {
        Words::new::<u8>(Ptype::U8, places.map(|place| place as u8).collect(), nulls.cloned())
    } else {
        Words::new::<u16>(Ptype::U16, places.map(|place| place as u16).collect(), nulls.cloned())
    };
    let distinct = of_type(data_type, distinct)?;
    dictionary::write_parts(out, keys, &distinct, write_column)?;
    Ok(distinct)
}

/// Binary as the plain type of `data_type`.
fn of_type(data_type: &DataType, array: BinaryArray) -> Result<ArrayRef> {
    Ok(match plain_type(data_type) {
        Some(DataType::Utf8) => Arc::new(StringArray::try_from_binary(array)?),
        _ => Arc::new(array),
    })
}

/// The codes that a segment stores a long text as, in parts; `None` if it is stored otherwise.
pub(in crate::segment) fn read_codes(input: &mut Reader, rows: usize) -> Result<Option<Vec<Codes>>> {
    let byte = input.u8()?;
    if FormTag::of(byte)? != FormTag::Tree {
        return Ok(None);
    }
    Codes::of(&tree::read(input, rows)?.texts(byte & NULLS != 0)?)
}

/// The bytes of every value, empty for nulls.
fn values(array: &ArrayRef) -> Vec<&[u8]> {
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().map(|v| v.unwrap_or_default().as_bytes()).collect(),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().map(|v| v.unwrap_or_default().as_bytes()).collect(),
        DataType::Utf8View => array.as_string_view().iter().map(|v| v.unwrap_or_default().as_bytes()).collect(),
        DataType::Binary => array.as_binary::<i32>().iter().map(Option::unwrap_or_default).collect(),
        DataType::LargeBinary => array.as_binary::<i64>().iter().map(Option::unwrap_or_default).collect(),
        _ => array.as_binary_view().iter().map(Option::unwrap_or_default).collect(),
    }
}

/// The distinct values in ascending order, and for each row the place of its value; `None` if there are many.
fn find_dictionary(values: &[&[u8]], nulls: Option<&NullBuffer>) -> Option<(Vec<usize>, BinaryArray)> {
    let count_max = (values.len() / ROWS_A_VALUE_MIN).min(DICTIONARY_MAX);
    let mut builder = BinaryDictionaryBuilder::<UInt32Type>::new();
    let mut keys = Vec::with_capacity(values.len());
    let mut last: Option<(&[u8], u32)> = None;
    for (row, value) in values.iter().enumerate() {
        if nulls.is_some_and(|nulls| nulls.is_null(row)) {
            keys.push(0);
            continue;
        }
        let key = match last {
            Some((same, key)) if same == *value => key,
            _ => builder.append(value).ok()?,
        };
        if key as usize >= count_max {
            return None;
        }
        last = Some((value, key));
        keys.push(key);
    }
    let found = builder.finish();
    let found = found.values().as_binary::<i32>();
    let mut order: Vec<u32> = (0..found.len() as u32).collect();
    order.sort_unstable_by_key(|key| found.value(*key as usize));
    let mut rank = vec![0; found.len()];
    (0..).zip(&order).for_each(|(place, key)| rank[*key as usize] = place);
    let distinct = BinaryArray::from_iter_values(order.iter().map(|key| found.value(*key as usize)));
    Some((keys.into_iter().map(|key| rank[key as usize]).collect(), distinct))
}

/// The smallest tree of strings or binary that are empty under nulls; `None` if there is none.
pub(in crate::segment) fn compress(
    values: &[&[u8]],
    utf8: bool,
    nulls: Option<&NullBuffer>,
    search: Search,
) -> Option<Built> {
    // Long texts are put into codes (codes.rs) rather than into symbols.
    let symbols = !utf8 || values.len() < LONG_ROWS_MIN || search.only.is_some();
    let nulls = nulls.map(bits_of);
    let built = texts(values, utf8, nulls.as_ref(), &search.for_codec(), symbols)?;
    tree::is_readable(&built, values.len()).then_some(built)
}

/// Reads what [`write`] wrote.
pub(in crate::segment) fn read(
    input: &mut Reader,
    rows: usize,
    data_type: &DataType,
    form: Form,
    read_column: ReadColumn,
) -> Result<ArrayRef> {
    let byte = input.u8()?;
    let nullable = byte & NULLS != 0;
    let plain = plain_type(data_type).unwrap_or(DataType::Binary);
    let utf8 = plain_type(data_type) == Some(DataType::Utf8);
    match FormTag::of(byte)? {
        FormTag::Plain => {
            let nulls = read_nulls(input, rows, nullable)?;
            let lengths = Words::read(input, rows, Ptype::U32)?;
            let bytes = input.count()?;
            let array = plain_array(input, lengths.typed::<u32>(), bytes, nulls, utf8)?;
            match (form, data_type) {
                (Form::Exact, DataType::Utf8 | DataType::Binary) | (Form::Stored, _) => Ok(array),
                (Form::Native, _) | (_, DataType::Utf8View | DataType::BinaryView) => Ok(as_views(&array)),
                _ => Ok(cast(&array, data_type)?),
            }
        }
        FormTag::Tree => read_compressed(input, nullable, rows, data_type, form),
        FormTag::Dictionary => {
            let count = read_count(input)?;
            let (key, ptype) = key_type(count);
            if count == 0 {
                return only_nulls(input, rows, &plain, data_type, read_column);
            }
            if form != Form::Exact {
                return dictionary::read_parts(input, rows, count, &key, &plain, read_column);
            }
            let keys = Words::read(input, rows, ptype)?;
            let values = read_column(input, count, &plain, Form::Exact)?;
            let array = expand(&keys, &values, utf8, &mut |bytes| input.claim(bytes, 1))?;
            Ok(if array.data_type() == data_type { array } else { cast(&array, data_type)? })
        }
        tag => Err(Error::corrupt(format!("strings cannot have the encoding {tag:?}"))),
    }
}

/// A dictionary without values, as some rewrites wrote columns of nulls. The number of values was read.
pub(in crate::segment) fn only_nulls(
    input: &mut Reader,
    rows: usize,
    plain: &DataType,
    data_type: &DataType,
    read_column: ReadColumn,
) -> Result<ArrayRef> {
    let keys = Words::read(input, rows, Ptype::U8)?;
    read_column(input, 0, plain, Form::Exact)?;
    match keys.nulls.map_or(0, |nulls| nulls.null_count()) == rows {
        true => Ok(new_null_array(data_type, rows)),
        false => Err(Error::corrupt(format!("a dictionary has no values, but some of the {rows} rows are not null"))),
    }
}

/// Reads how many strings a dictionary has; the tag was read.
pub(in crate::segment) fn read_count(input: &mut Reader) -> Result<usize> {
    match dictionary::read_count(input)? {
        // What is made for each of them is not claimed.
        count if count > DICTIONARY_MAX => Err(Error::corrupt(format!(
            "a dictionary claims to have {count} strings; its keys tell {DICTIONARY_MAX} from each other"
        ))),
        count => Ok(count),
    }
}

/// The type of the keys of a dictionary of `count` strings.
pub(in crate::segment) fn key_type(count: usize) -> (DataType, Ptype) {
    if count <= 1 << 8 { (DataType::UInt8, Ptype::U8) } else { (DataType::UInt16, Ptype::U16) }
}

/// Reads strings that are stored as a tree; the tag was read.
pub(in crate::segment) fn read_compressed(
    input: &mut Reader,
    nullable: bool,
    rows: usize,
    data_type: &DataType,
    form: Form,
) -> Result<ArrayRef> {
    let utf8 = plain_type(data_type) == Some(DataType::Utf8);
    let column = tree::read(input, rows)?.texts(nullable)?;
    if form != Form::Exact
        && let Some(array) = as_dictionary(&column, utf8)?
    {
        return Ok(array);
    }
    let array = with_offsets(&column, utf8)?;
    match (form, data_type) {
        (Form::Exact, DataType::Utf8 | DataType::Binary) | (Form::Stored, _) => Ok(array),
        (Form::Native, _) | (_, DataType::Utf8View | DataType::BinaryView) => Ok(as_views(&array)),
        _ => Ok(cast(&array, data_type)?),
    }
}

fn plain_array(
    input: &mut Reader,
    lengths: &[u32],
    bytes: usize,
    nulls: Option<NullBuffer>,
    utf8: bool,
) -> Result<ArrayRef> {
    let mut end = 0_u64;
    let mut offsets = Vec::with_capacity(lengths.len() + 1);
    offsets.push(0);
    for length in lengths {
        end += u64::from(*length);
        offsets.push(end as i32);
    }
    if end != bytes as u64 || i32::try_from(end).is_err() {
        return Err(Error::corrupt(format!("the lengths add up to {end} bytes; expected {bytes}")));
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    let bytes = aligned(input.buffer(bytes)?);
    of_offsets(offsets, bytes, nulls, utf8)
}
