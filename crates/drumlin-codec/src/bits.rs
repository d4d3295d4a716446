//! Bitmaps: which rows have a value.

use bytes::Bytes;

/// One bit for each row, low bits first.
#[derive(Clone, Debug)]
pub struct Bits {
    bytes: Bytes,
    offset: usize,
    len: usize,
}

impl Bits {
    /// `len` bits of `bytes`, from bit `offset` on; `None` if there are fewer.
    pub fn new(bytes: Bytes, offset: usize, len: usize) -> Option<Self> {
        let end = offset.checked_add(len)?;
        (end <= bytes.len().saturating_mul(8)).then_some(Self { bytes, offset, len })
    }

    /// What `bit` says of each row.
    pub fn collect(len: usize, mut bit: impl FnMut(usize) -> bool) -> Self {
        let mut bytes = vec![0; len.div_ceil(8)];
        for row in 0..len {
            bytes[row / 8] |= u8::from(bit(row)) << (row % 8);
        }
        Self { bytes: bytes.into(), offset: 0, len }
    }

    /// The bit of a row.
    #[inline]
    pub fn get(&self, row: usize) -> bool {
        let at = self.offset + row;
        self.bytes[at / 8] >> (at % 8) & 1 == 1
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its memory, the place of the first bit in it, and the number of bits.
    pub fn into_parts(self) -> (Bytes, usize, usize) {
        (self.bytes, self.offset, self.len)
    }

    /// Whether all bits are set.
    pub fn all(&self) -> bool {
        if !self.offset.is_multiple_of(8) {
            return (0..self.len).all(|row| self.get(row));
        }
        let (whole, first) = (self.len / 8, self.offset / 8);
        self.bytes[first..first + whole].iter().all(|byte| *byte == 0xff)
            && (whole * 8..self.len).all(|row| self.get(row))
    }

    /// Those of some rows.
    pub fn pick(&self, rows: &[u32]) -> Self {
        Self::collect(rows.len(), |at| self.get(rows[at] as usize))
    }
}
