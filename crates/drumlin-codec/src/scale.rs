//! Floats as integers: those that came from decimal numbers are a small integer times a power of ten.
//!
//! After Afroozeh, Kuffó and Boncz, "ALP: Adaptive Lossless floating-Point Compression" (2023). A float is the integer times
//! `10^down`, times `10^-up`, both rounded as floats are; a float for which that is not exact is an exception, and stored beside.

use crate::cpu::wide_kernel;

/// Powers of ten in 32 bits.
pub const F10: [f32; 11] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10];
/// Their inverses.
pub const IF10: [f32; 11] = [1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10];
/// Powers of ten in 64 bits.
pub const D10: [f64; 19] =
    [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18];
/// Their inverses.
pub const ID10: [f64; 19] = [
    1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17,
    1e-18,
];

/// The powers of ten by which floats become integers: times `10^e`, then times `10^-f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exponents {
    /// The power up.
    pub e: u8,
    /// The power down.
    pub f: u8,
}

impl Exponents {
    /// The greatest power of a float of `bits` bits; `None` if there are no such floats here.
    pub fn max(bits: usize) -> Option<u8> {
        match bits {
            32 => Some(10),
            64 => Some(18),
            _ => None,
        }
    }
}

/// Adding and subtracting it rounds to the nearest integer.
const ROUND_32: f32 = (1_u32 << 23) as f32 + (1_u32 << 22) as f32;
const ROUND_64: f64 = (1_u64 << 52) as f64 + (1_u64 << 51) as f64;

/// A float of 32 bits as the nearest integer; by its bits.
#[inline(always)]
pub fn scaled_32(bits: u32, by: Exponents) -> u32 {
    let scaled = f32::from_bits(bits) * F10[usize::from(by.e)] * IF10[usize::from(by.f)];
    ((scaled + ROUND_32) - ROUND_32) as i32 as u32
}

/// A float of 64 bits as the nearest integer; by its bits.
#[inline(always)]
pub fn scaled_64(bits: u64, by: Exponents) -> u64 {
    let scaled = f64::from_bits(bits) * D10[usize::from(by.e)] * ID10[usize::from(by.f)];
    ((scaled + ROUND_64) - ROUND_64) as i64 as u64
}

/// The float of 32 bits of an integer; by its bits.
#[inline(always)]
pub fn unscaled_32(value: u32, by: Exponents) -> u32 {
    (value as i32 as f32 * F10[usize::from(by.f)] * IF10[usize::from(by.e)]).to_bits()
}

/// The float of 64 bits of an integer; by its bits.
#[inline(always)]
pub fn unscaled_64(value: u64, by: Exponents) -> u64 {
    (value as i64 as f64 * D10[usize::from(by.f)] * ID10[usize::from(by.e)]).to_bits()
}

/// Adding its bits to those of a small integer gives the bits of their sum as a float.
const MAGIC_64: u64 = ROUND_64.to_bits();
/// Integers less than this, and not less than its negative, are small enough.
const SMALL_64: u64 = 1 << 51;
/// The same of 32 bits.
const SMALL_32: u32 = 1 << 22;

wide_kernel! {
    /// The floats of integers, by their bits. Processors have no instruction for many integers of 64 bits at once; small ones are put
    /// into the fraction of a float.
    pub fn unscale_64(values: &mut [u64], by: Exponents) {
        let beyond = values.iter().fold(0, |beyond, value| beyond | value.wrapping_add(SMALL_64) >> 52);
        if beyond == 0 {
            let (up, down) = (D10[usize::from(by.f)], ID10[usize::from(by.e)]);
            for value in values {
                let float = f64::from_bits(value.wrapping_add(MAGIC_64)) - f64::from_bits(MAGIC_64);
                *value = (float * up * down).to_bits();
            }
        } else {
            values.iter_mut().for_each(|value| *value = unscaled_64(*value, by));
        }
    }
}

wide_kernel! {
    /// The same of 32 bits.
    pub fn unscale_32(values: &mut [u32], by: Exponents) {
        let (up, down) = (F10[usize::from(by.f)], IF10[usize::from(by.e)]);
        values.iter_mut().for_each(|value| *value = (*value as i32 as f32 * up * down).to_bits());
    }
}

wide_kernel! {
    /// The integers of floats, by their bits, if each float is exactly what its integer stands for, and all are small: as they are in
    /// nearly every block of numbers that were decimal.
    pub fn scale_64(values: &[u64], by: Exponents, out: &mut [u64]) -> bool {
        let (up, down) = (D10[usize::from(by.e)], ID10[usize::from(by.f)]);
        let (back_up, back_down) = (D10[usize::from(by.f)], ID10[usize::from(by.e)]);
        let mut differs = 0;
        for (value, out) in values.iter().zip(out) {
            let rounded = (f64::from_bits(*value) * up * down + ROUND_64).to_bits();
            *out = rounded.wrapping_sub(MAGIC_64);
            // Zero has no sign as an integer.
            let float = f64::from_bits(rounded) - ROUND_64 + 0.0;
            differs |= (float * back_up * back_down).to_bits() ^ *value | out.wrapping_add(SMALL_64) >> 52;
        }
        differs == 0
    }
}

wide_kernel! {
    /// The same of 32 bits.
    pub fn scale_32(values: &[u32], by: Exponents, out: &mut [u32]) -> bool {
        let (up, down) = (F10[usize::from(by.e)], IF10[usize::from(by.f)]);
        let (back_up, back_down) = (F10[usize::from(by.f)], IF10[usize::from(by.e)]);
        let mut differs = 0;
        for (value, out) in values.iter().zip(out) {
            let rounded = (f32::from_bits(*value) * up * down + ROUND_32).to_bits();
            *out = rounded.wrapping_sub(ROUND_32.to_bits());
            let float = f32::from_bits(rounded) - ROUND_32 + 0.0;
            differs |= (float * back_up * back_down).to_bits() ^ *value | out.wrapping_add(SMALL_32) >> 23;
        }
        differs == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_at_once_are_the_same_as_each() {
        let edges =
            [0, 1, SMALL_64 - 1, SMALL_64, SMALL_64.wrapping_neg(), SMALL_64.wrapping_neg() - 1, u64::MAX, 1 << 63];
        for by in [Exponents { e: 0, f: 0 }, Exponents { e: 14, f: 12 }, Exponents { e: 18, f: 3 }] {
            for many in [&edges[..3], &edges[4..5], &edges[..], &edges[6..]] {
                let mut all = many.to_vec();
                unscale_64(&mut all, by);
                assert_eq!(all, many.iter().map(|value| unscaled_64(*value, by)).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn floats_of_a_block_are_scaled_if_all_come_back_and_are_small() {
        let odd = [f64::NAN, -f64::NAN, f64::INFINITY, -0.0, 0.005, 1e300, -1e15, 22_517_998_136_852.48];
        for by in [Exponents { e: 2, f: 0 }, Exponents { e: 14, f: 12 }, Exponents { e: 18, f: 3 }] {
            for value in odd.into_iter().chain((-40..40).map(|n| f64::from(n * n * n) / 100.0)) {
                let block = [1.25_f64.to_bits(), value.to_bits(), (-0.5_f64).to_bits()];
                let mut out = [0; 3];
                let each = block.map(|bits| scaled_64(bits, by));
                let comes_back = |(bits, integer): (&u64, &u64)| {
                    unscaled_64(*integer, by) == *bits && integer.wrapping_add(SMALL_64) < 2 * SMALL_64
                };
                assert_eq!(scale_64(&block, by, &mut out), block.iter().zip(&each).all(comes_back), "{value} {by:?}");
                assert!(!block.iter().zip(&each).all(comes_back) || out == each, "{value} {by:?}");
            }
        }
        for by in [Exponents { e: 1, f: 0 }, Exponents { e: 7, f: 6 }] {
            for value in [f32::NAN, -0.0, 1e30, 0.5, 419_430.4, -419_430.4, -0.1, 99.9] {
                let block = [value.to_bits(), 2.5_f32.to_bits()];
                let mut out = [0; 2];
                let each = block.map(|bits| scaled_32(bits, by));
                let comes_back = |(bits, integer): (&u32, &u32)| {
                    unscaled_32(*integer, by) == *bits && integer.wrapping_add(SMALL_32) < 2 * SMALL_32
                };
                assert_eq!(scale_32(&block, by, &mut out), block.iter().zip(&each).all(comes_back), "{value} {by:?}");
                assert!(!block.iter().zip(&each).all(comes_back) || out == each, "{value} {by:?}");
            }
        }
    }
}
