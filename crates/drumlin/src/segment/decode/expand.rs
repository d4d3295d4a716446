//! Expands a dictionary of strings, row by row, in one pass.
//!
//! Invariant: every key is checked before it is used.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray, BinaryArray, StringArray};
use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use drumlin_codec::Ptype;

use crate::base::{Error, Result};
use crate::segment::forms::words::Words;

/// Expands every row of a dictionary of `values`, `Utf8` or else `Binary`, with keys of 8 or 16 bits. `claim` is asked for the bytes
/// of all strings before they are made.
pub(in crate::segment) fn expand(
    keys: &Words,
    values: &ArrayRef,
    utf8: bool,
    claim: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<ArrayRef> {
    let (offsets, bytes) = if utf8 {
        (values.as_string::<i32>().offsets(), values.as_string::<i32>().value_data())
    } else {
        (values.as_binary::<i32>().offsets(), values.as_binary::<i32>().value_data())
    };
    let of_one_byte = offsets.windows(2).all(|pair| pair[1] - pair[0] == 1);
    let (offsets, bytes) = match keys.ptype {
        Ptype::U8 if of_one_byte => repeat_bytes(keys.typed::<u8>(), offsets, bytes, claim),
        Ptype::U8 => repeat(keys.typed::<u8>(), offsets, bytes, claim),
        _ => repeat(keys.typed::<u16>(), offsets, bytes, claim),
    }?;
    // The bytes are a sequence of whole values, each of them checked. They need not be checked again one by one, but
    // Arrow has no safe way to skip that.
    let array = BinaryArray::try_new(offsets, bytes, keys.nulls.clone())?;
    Ok(if utf8 { Arc::new(StringArray::try_from_binary(array)?) } else { Arc::new(array) })
}

/// Offsets and bytes of the values at `keys`.
fn repeat<K: Copy + Into<usize>>(
    keys: &[K],
    offsets: &[i32],
    bytes: &[u8],
    claim: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<(OffsetBuffer<i32>, Buffer)> {
    let value = |key: usize| &bytes[offsets[key] as usize..offsets[key + 1] as usize];
    let longest = offsets.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default();
    let count = offsets.len() - 1;
    let mut end = 0_i64;
    let mut ends = Vec::with_capacity(keys.len() + 1);
    ends.push(0);
    // Under nulls there is some valid key; it is expanded like the others.
    for key in keys {
        let key: usize = (*key).into();
        if key >= count {
            return Err(Error::corrupt(format!("key {key} is past the end of a dictionary of {count} values")));
        }
        end += i64::from(offsets[key + 1] - offsets[key]);
        ends.push(end as i32);
    }
    if i32::try_from(end).is_err() {
        return Err(Error::corrupt(format!("the strings take {end} bytes in total; expected less than 2 GiB")));
    }
    claim(end as usize)?;
    let keys = keys.iter().map(|key| (*key).into());
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

/// Values of one byte each, as flags and codes often are: the offsets are 0, 1, 2 …, and the bytes are looked up.
fn repeat_bytes(
    keys: &[u8],
    offsets: &[i32],
    bytes: &[u8],
    claim: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<(OffsetBuffer<i32>, Buffer)> {
    claim(keys.len())?;
    let table = &bytes[offsets[0] as usize..offsets[offsets.len() - 1] as usize];
    let greatest = keys.iter().fold(0, |greatest, key| *key.max(&greatest));
    if usize::from(greatest) >= table.len() && !keys.is_empty() {
        return Err(Error::corrupt(format!(
            "key {greatest} is past the end of a dictionary of {} values",
            table.len()
        )));
    }
    let bytes = match table.len() {
        ..=4 => choose::<4>(keys, table),
        5..=8 => choose::<8>(keys, table),
        _ => {
            // A table of 256 entries needs no bounds check for an index of 8 bits.
            let mut all = [0; 256];
            all[..table.len()].copy_from_slice(table);
            keys.iter().map(|key| all[usize::from(*key)]).collect()
        }
    };
    Ok((counting(keys.len())?, Buffer::from_vec(bytes)))
}

/// The bytes at `keys` of a table of up to `N` bytes: chosen by masks, which the CPU applies to many rows at once.
fn choose<const N: usize>(keys: &[u8], table: &[u8]) -> Vec<u8> {
    let mut all = [0; N];
    all[..table.len()].copy_from_slice(table);
    let mut bytes = vec![0; keys.len()];
    for (byte, key) in bytes.iter_mut().zip(keys) {
        let mut chosen = 0;
        for (value, place) in all.iter().zip(0_u8..) {
            chosen |= value & u8::from(*key == place).wrapping_neg();
        }
        *byte = chosen;
    }
    bytes
}

/// The offsets 0, 1, 2 … of `rows` values of one byte. All row groups share them, so they are written only once.
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

/// A copy of constant size is a move of one register: each value is copied with its padding, which the next value
/// overwrites.
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
