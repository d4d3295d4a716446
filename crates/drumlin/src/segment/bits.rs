//! Bitmaps, one bit per row, and memory that must be aligned.

use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use bytes::Bytes;

use super::wire::{ALIGNMENT, Reader, Writer};
use crate::base::Result;

/// Writes a validity bitmap, if there is one.
pub(super) fn write_nulls(out: &mut Writer, nulls: Option<&NullBuffer>) {
    if let Some(nulls) = nulls {
        write_bits(out, nulls.inner());
    }
}

/// Reads what [`write_nulls`] wrote if `present`.
pub(super) fn read_nulls(input: &mut Reader, rows: usize, present: bool) -> Result<Option<NullBuffer>> {
    Ok(if present { Some(NullBuffer::new(read_bits(input, rows)?)) } else { None })
}

/// One bit per row, low bits first, the rest of the last byte zero.
pub(super) fn write_bits(out: &mut Writer, bits: &BooleanBuffer) {
    let bits: BooleanBuffer = bits.iter().collect();
    out.buffer(&bits.values()[..bits.len().div_ceil(8)]);
}

pub(super) fn read_bits(input: &mut Reader, rows: usize) -> Result<BooleanBuffer> {
    Ok(BooleanBuffer::new(Buffer::from(input.buffer(rows.div_ceil(8))?), 0, rows))
}

/// The bytes themselves if they are aligned, otherwise an aligned copy.
pub(super) fn aligned(bytes: Bytes) -> Buffer {
    if bytes.as_ptr().align_offset(ALIGNMENT) == 0 { Buffer::from(bytes) } else { Buffer::from_slice_ref(&bytes[..]) }
}
