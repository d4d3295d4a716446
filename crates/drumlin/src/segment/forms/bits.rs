//! Bitmaps, one bit per row, and memory that must be aligned.

use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use bytes::Bytes;

use super::wire::{ALIGNMENT, Reader, Writer};
use crate::base::Result;

/// Writes a validity bitmap, if there is one.
pub(in crate::segment) fn write_nulls(out: &mut Writer, nulls: Option<&NullBuffer>) {
    if let Some(nulls) = nulls {
        write_bits(out, nulls.inner());
    }
}

/// Reads what [`write_nulls`] wrote if `present`.
pub(in crate::segment) fn read_nulls(input: &mut Reader, rows: usize, present: bool) -> Result<Option<NullBuffer>> {
    Ok(if present { Some(NullBuffer::new(read_bits(input, rows)?)) } else { None })
}

/// One bit per row, low bits first, the rest of the last byte zero.
pub(in crate::segment) fn write_bits(out: &mut Writer, bits: &BooleanBuffer) {
    let bits: BooleanBuffer = bits.iter().collect();
    out.buffer(&bits.values()[..bits.len().div_ceil(8)]);
}

/// The same bits, beginning with the first bit of their memory, and nothing after the last one: where in memory it lay must
/// not show in the segment's bytes.
pub(in crate::segment) fn packed(nulls: &NullBuffer) -> NullBuffer {
    let (bits, bytes) = (nulls.inner(), nulls.len().div_ceil(8));
    // Copied only if the first bit does not begin a byte.
    let mut memory = bits.sliced().slice_with_length(0, bytes);
    let rest = bits.len() % 8;
    if rest > 0 && memory[bytes - 1] >> rest != 0 {
        let mut copy = memory.to_vec();
        copy[bytes - 1] &= (1 << rest) - 1;
        memory = copy.into();
    }
    NullBuffer::new(BooleanBuffer::new(memory, 0, bits.len()))
}

pub(in crate::segment) fn read_bits(input: &mut Reader, rows: usize) -> Result<BooleanBuffer> {
    Ok(BooleanBuffer::new(Buffer::from(input.buffer(rows.div_ceil(8))?), 0, rows))
}

/// The bytes themselves if they are aligned, otherwise an aligned copy.
pub(in crate::segment) fn aligned(bytes: Bytes) -> Buffer {
    if bytes.as_ptr().align_offset(ALIGNMENT) == 0 { Buffer::from(bytes) } else { Buffer::from_slice_ref(&bytes[..]) }
}
