//! Machine words: what every number is while it is encoded. Signed integers and floats are their bits.

use std::fmt::Debug;
use std::hash::Hash;

use bytes::Bytes;

use crate::pack::Block;
use crate::scale::{
    Exponents, scale_32, scale_64, scaled_32, scaled_64, unscale_32, unscale_64, unscaled_32, unscaled_64,
};

/// The type of stored numbers, by the number that metadata has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ptype {
    /// Unsigned, 8 bits.
    U8 = 0,
    /// Unsigned, 16 bits.
    U16 = 1,
    /// Unsigned, 32 bits.
    U32 = 2,
    /// Unsigned, 64 bits.
    U64 = 3,
    /// Signed, 8 bits.
    I8 = 4,
    /// Signed, 16 bits.
    I16 = 5,
    /// Signed, 32 bits.
    I32 = 6,
    /// Signed, 64 bits.
    I64 = 7,
    /// A float of 16 bits.
    F16 = 8,
    /// A float of 32 bits.
    F32 = 9,
    /// A float of 64 bits.
    F64 = 10,
}

impl Ptype {
    const ALL: [Self; 11] = [
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::F16,
        Self::F32,
        Self::F64,
    ];

    /// The type with this number in metadata.
    pub fn of(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Bytes of a value.
    pub const fn byte_width(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Whether it is an integer.
    pub const fn is_int(self) -> bool {
        !self.is_float()
    }

    /// Whether it is a float.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }

    /// Whether it is a signed integer.
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    /// Whether it is an unsigned integer.
    pub const fn is_unsigned(self) -> bool {
        matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::U64)
    }

    /// The unsigned type of the same width.
    pub const fn to_unsigned(self) -> Self {
        match self.byte_width() {
            1 => Self::U8,
            2 => Self::U16,
            4 => Self::U32,
            _ => Self::U64,
        }
    }
}

/// Memory that values were decoded to, or a part of the segment that holds them as they are.
#[derive(Clone, Debug)]
pub enum Memory {
    /// Bytes of a segment, at any address.
    Shared(Bytes),
    /// Words of 8 bits.
    U8(Vec<u8>),
    /// Words of 16 bits.
    U16(Vec<u16>),
    /// Words of 32 bits.
    U32(Vec<u32>),
    /// Words of 64 bits.
    U64(Vec<u64>),
}

/// An unsigned integer of 8, 16, 32 or 64 bits.
pub trait Word: Copy + Ord + Hash + Default + Debug + Send + Sync + 'static + Block {
    /// Its bits.
    const BITS: usize;
    /// Its bytes.
    const BYTES: usize;
    /// All ones.
    const MAX: Self;
    /// The unsigned type.
    const PTYPE: Ptype;

    /// The low bits of a number.
    fn low(value: u64) -> Self;
    /// The same number.
    fn wide(self) -> u64;
    /// The same number, if the bits are those of a signed one.
    fn signed(self) -> i64;
    /// Sum modulo 2 to the number of bits.
    fn plus(self, other: Self) -> Self;
    /// Difference modulo 2 to the number of bits.
    fn minus(self, other: Self) -> Self;
    /// Product modulo 2 to the number of bits.
    fn times(self, other: Self) -> Self;
    /// Where negative numbers lie between positive ones, by twos: what it stands for.
    fn unzigzag(self) -> Self;
    /// From little-endian bytes, [`Self::BYTES`] of them.
    fn load(bytes: &[u8]) -> Self;
    /// Appends little-endian bytes.
    fn store(self, out: &mut Vec<u8>);
    /// The words that `bytes` hold, into `out`.
    fn load_all(bytes: &[u8], out: &mut [Self]);
    /// A float of as many bits, of the integer that [`Self::scaled`] made of it; itself where there is no such float.
    fn unscaled(self, by: Exponents) -> Self;
    /// The floats of many integers.
    fn unscale_all(values: &mut [Self], by: Exponents);
    /// The integers of many floats, if each float is exactly what its integer stands for, and small; otherwise `out` is undefined.
    fn scale_all(values: &[Self], by: Exponents, out: &mut [Self]) -> bool;
    /// The integer nearest to a float times powers of ten; itself where there is no such float.
    fn scaled(self, by: Exponents) -> Self;
    /// Decoded values as memory.
    fn memory(values: Vec<Self>) -> Memory;
}

macro_rules! word {
    ($T:ty, $S:ty, $ptype:ident, $unscaled:expr, $unscale_all:expr, $scaled:expr, $scale_all:expr) => {
        impl Word for $T {
            const BITS: usize = <$T>::BITS as usize;
            const BYTES: usize = size_of::<$T>();
            const MAX: Self = <$T>::MAX;
            const PTYPE: Ptype = Ptype::$ptype;

            #[inline(always)]
            fn low(value: u64) -> Self {
                value as $T
            }
            #[inline(always)]
            #[allow(clippy::unnecessary_cast, reason = "one of the types is u64 itself")]
            fn wide(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            #[allow(clippy::unnecessary_cast, reason = "one of the types is i64 itself")]
            fn signed(self) -> i64 {
                self as $S as i64
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn unzigzag(self) -> Self {
                (self >> 1) ^ (self & 1).wrapping_neg()
            }
            #[inline(always)]
            fn load(bytes: &[u8]) -> Self {
                bytes.first_chunk().map_or(0, |bytes| <$T>::from_le_bytes(*bytes))
            }
            #[inline(always)]
            fn store(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn load_all(bytes: &[u8], out: &mut [Self]) {
                let (words, _) = bytes.as_chunks::<{ size_of::<$T>() }>();
                out.iter_mut().zip(words).for_each(|(out, word)| *out = <$T>::from_le_bytes(*word));
            }
            #[inline(always)]
            fn unscaled(self, by: Exponents) -> Self {
                $unscaled(self, by)
            }
            fn unscale_all(values: &mut [Self], by: Exponents) {
                $unscale_all(values, by);
            }
            fn scale_all(values: &[Self], by: Exponents, out: &mut [Self]) -> bool {
                $scale_all(values, by, out)
            }
            #[inline(always)]
            fn scaled(self, by: Exponents) -> Self {
                $scaled(self, by)
            }
            fn memory(values: Vec<Self>) -> Memory {
                Memory::$ptype(values)
            }
        }
    };
}

word!(u8, i8, U8, |value, _| value, |_, _| {}, |value, _| value, |_, _, _| false);
word!(u16, i16, U16, |value, _| value, |_, _| {}, |value, _| value, |_, _, _| false);
word!(u32, i32, U32, unscaled_32, unscale_32, scaled_32, scale_32);
word!(u64, i64, U64, unscaled_64, unscale_64, scaled_64, scale_64);
