//! Writes a dictionary of strings out, row by row, in one pass.
//!
//! Invariant: every key is checked before it is followed.

use std::sync::{Arc, LazyLock};

use arrow::array::{
    AnyDictionaryArray, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, PrimitiveArray, StringArray,
};
use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, UInt8Type, UInt16Type};

use crate::base::{Error, Result};

/// Writes out every row of a dictionary of `Utf8` or else `Binary`, with keys of 8 or 16 bits.
pub(super) fn expand(array: &dyn AnyDictionaryArray, utf8: bool) -> Result<ArrayRef> {
    let values = array.values();
    let (offsets, bytes) = if utf8 {
        (values.as_string::<i32>().offsets(), values.as_string::<i32>().value_data())
    } else {
        (values.as_binary::<i32>().offsets(), values.as_binary::<i32>().value_data())
    };
    let keys = array.keys();
    let nulls = keys.nulls().cloned();
    let (offsets, bytes) = match keys.data_type() {
        DataType::UInt8 => repeat(keys.as_primitive::<UInt8Type>(), offsets, bytes),
        _ => repeat(keys.as_primitive::<UInt16Type>(), offsets, bytes),
    }?;
    // Whole values, each of them checked, follow each other: they need not be checked again one by one, but
    // Arrow has no safe way to be told so.
    let array = BinaryArray::try_new(offsets, bytes, nulls)?;
    Ok(if utf8 { Arc::new(StringArray::try_from_binary(array)?) } else { Arc::new(array) })
}

/// Offsets and bytes of the values at `keys`.
fn repeat<K: ArrowPrimitiveType<Native: Into<usize>>>(
    keys: &PrimitiveArray<K>,
    offsets: &[i32],
    bytes: &[u8],
) -> Result<(OffsetBuffer<i32>, Buffer)> {
    let value = |key: usize| &bytes[offsets[key] as usize..offsets[key + 1] as usize];
    let longest = offsets.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default();
    let count = offsets.len() - 1;
    if offsets.windows(2).all(|pair| pair[1] - pair[0] == 1) {
        return repeat_bytes(keys, offsets, bytes);
    }
    let mut end = 0_i64;
    let mut ends = Vec::with_capacity(keys.len() + 1);
    ends.push(0);
    // What lies under nulls is some valid key; it is written like the others.
    for key in keys.values() {
        let key: usize = (*key).into();
        if key >= count {
            return Err(Error::corrupt(format!("key {key} of a dictionary of {count} values")));
        }
        end += i64::from(offsets[key + 1] - offsets[key]);
        ends.push(end as i32);
    }
    if i32::try_from(end).is_err() {
        return Err(Error::corrupt(format!("strings of {end} bytes in all")));
    }
    let keys = keys.values().iter().map(|key| (*key).into());
    let bytes = match longest {
        0..=8 => repeat_padded::<8>(keys, count, &ends, value),
        9..=32 => repeat_padded::<32>(keys, count, &ends, value),
        _ => {
            let mut all = Vec::with_capacity(end as usize);
            keys.for_each(|key| all.extend_from_slice(value(key)));
            all
        }
    };
    Ok((OffsetBuffer::new(ScalarBuffer::from(ends)), Buffer::from_vec(bytes)))
}

/// Values of one byte each, as flags and codes often are: the offsets count, the bytes are looked up.
fn repeat_bytes<K: ArrowPrimitiveType<Native: Into<usize>>>(
    keys: &PrimitiveArray<K>,
    offsets: &[i32],
    bytes: &[u8],
) -> Result<(OffsetBuffer<i32>, Buffer)> {
    let table = &bytes[offsets[0] as usize..offsets[offsets.len() - 1] as usize];
    let greatest = keys.values().iter().map(|key| (*key).into()).max().unwrap_or(0);
    if greatest >= table.len() && !keys.is_empty() {
        return Err(Error::corrupt(format!("key {greatest} of a dictionary of {} values", table.len())));
    }
    // A table of 256 needs no check of an index of 8 bits.
    let bytes = if table.len() <= 256 {
        let mut all = [0; 256];
        all[..table.len()].copy_from_slice(table);
        keys.values().iter().map(|key| all[(*key).into() & 0xff]).collect()
    } else {
        keys.values().iter().map(|key| table[(*key).into()]).collect::<Vec<u8>>()
    };
    Ok((counting(keys.len())?, Buffer::from_vec(bytes)))
}

/// The offsets 0, 1, 2 … of `rows` values of one byte. All row groups share them: they are never written again.
fn counting(rows: usize) -> Result<OffsetBuffer<i32>> {
    const SHARED_ROWS: i32 = 1 << 17;
    static SHARED: LazyLock<OffsetBuffer<i32>> =
        LazyLock::new(|| OffsetBuffer::new((0..=SHARED_ROWS).collect::<Vec<_>>().into()));
    if rows <= SHARED_ROWS as usize {
        return Ok(SHARED.slice(0, rows));
    }
    let rows = i32::try_from(rows).map_err(|_| Error::corrupt(format!("{rows} strings")))?;
    Ok(OffsetBuffer::new((0..=rows).collect::<Vec<_>>().into()))
}

/// Copies of one size are moves of one register: each value is copied with its padding, which the next covers.
fn repeat_padded<'a, const SIZE: usize>(
    keys: impl Iterator<Item = usize>,
    count: usize,
    ends: &[i32],
    value: impl Fn(usize) -> &'a [u8],
) -> Vec<u8> {
    let mut padded = vec![[0; SIZE]; count];
    (0..count).for_each(|key| padded[key][..value(key).len()].copy_from_slice(value(key)));
    let end = ends.last().copied().unwrap_or_default() as usize;
    let mut all = vec![0; end + SIZE];
    for (key, at) in keys.zip(ends) {
        all[*at as usize..*at as usize + SIZE].copy_from_slice(&padded[key]);
    }
    all.truncate(end);
    all
}
