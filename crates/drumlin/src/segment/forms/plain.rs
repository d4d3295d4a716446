//! The plain form of words: for few rows, and for values that do not compress.
//!
//! ```text
//! plain = width u8    bytes per value
//!         base        if width is less than the type's: 8 bytes, the smallest value
//!         values      rows x width bytes: values, or their distance from base
//! ```
//! Distances are modulo 2^64, so that they work for every integer type, signed or not.

use arrow::buffer::Buffer;
use drumlin_codec::Ptype;

use super::bits::aligned;
use super::wire::{Reader, Writer};
use crate::base::{Error, Result};

/// Values as they are, or as distances from the smallest one in fewer bytes.
pub(in crate::segment) struct Plain {
    width: u8,
    base: Option<i64>,
    values: Vec<u8>,
}

impl Plain {
    /// The narrowest plain form of words of `ptype`.
    pub(in crate::segment) fn new(ptype: Ptype, words: &Buffer) -> Self {
        let full = ptype.byte_width();
        let raw = Self { width: full as u8, base: None, values: words.as_slice().to_vec() };
        if !ptype.is_int() {
            return raw;
        }
        // Unsigned 64-bit values keep their bits: distances are taken modulo 2^64.
        let values = integers(ptype, words);
        let least = if ptype == Ptype::U64 {
            values.iter().map(|v| *v as u64).min().unwrap_or_default() as i64
        } else {
            values.iter().copied().min().unwrap_or_default()
        };
        let distance = |value: &i64| value.wrapping_sub(least) as u64;
        let widest = values.iter().map(distance).max().unwrap_or_default();
        let width = [0, 1, 2, 4, 8].into_iter().find(|width| *width == 8 || widest >> (8 * width) == 0).unwrap_or(8);
        if width * values.len() + 8 >= raw.values.len() {
            return raw;
        }
        let values = values.iter().flat_map(|value| distance(value).to_le_bytes().into_iter().take(width)).collect();
        Self { width: width as u8, base: Some(least), values }
    }

    /// Its size in bytes, without padding.
    pub(in crate::segment) fn size(&self) -> usize {
        1 + self.base.map_or(0, |_| 8) + self.values.len()
    }

    pub(in crate::segment) fn write(&self, out: &mut Writer) {
        out.u8(self.width);
        match self.base {
            // Distances are widened when read, so their alignment does not matter.
            Some(base) => {
                out.raw(&base.to_le_bytes());
                out.raw(&self.values);
            }
            None => out.buffer(&self.values),
        }
    }

    /// Reads the values of `rows` words of `ptype`.
    pub(in crate::segment) fn read(input: &mut Reader, rows: usize, ptype: Ptype) -> Result<Buffer> {
        let width = usize::from(input.u8()?);
        let full = ptype.byte_width();
        let len = rows.checked_mul(width);
        let len =
            len.ok_or_else(|| Error::corrupt(format!("{rows} values of {width} bytes are too many for this machine")))?;
        if width == full {
            return Ok(aligned(input.buffer(len)?));
        }
        if width > full || !ptype.is_int() {
            return Err(Error::corrupt(format!("values of {full} bytes cannot be stored in {width} bytes each")));
        }
        let base = input.raw(8)?;
        let base = i64::from_le_bytes(std::array::from_fn(|i| base[i]));
        let bytes = input.raw(len)?;
        let mut values = Vec::with_capacity(rows * full);
        for row in 0..rows {
            let mut distance = [0; 8];
            distance[..width].copy_from_slice(&bytes[row * width..(row + 1) * width]);
            let value = base.wrapping_add(i64::from_le_bytes(distance));
            values.extend_from_slice(&value.to_le_bytes()[..full]);
        }
        Ok(Buffer::from_slice_ref(values))
    }
}

/// Integers of any type, as 64 bits.
fn integers(ptype: Ptype, words: &Buffer) -> Vec<i64> {
    match ptype {
        Ptype::I8 => words.typed_data::<i8>().iter().map(|v| i64::from(*v)).collect(),
        Ptype::I16 => words.typed_data::<i16>().iter().map(|v| i64::from(*v)).collect(),
        Ptype::I32 => words.typed_data::<i32>().iter().map(|v| i64::from(*v)).collect(),
        Ptype::U8 => words.typed_data::<u8>().iter().map(|v| i64::from(*v)).collect(),
        Ptype::U16 => words.typed_data::<u16>().iter().map(|v| i64::from(*v)).collect(),
        Ptype::U32 => words.typed_data::<u32>().iter().map(|v| i64::from(*v)).collect(),
        _ => words.typed_data::<i64>().to_vec(),
    }
}
