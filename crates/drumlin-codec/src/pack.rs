//! Numbers in as few bits as the greatest needs, 1,024 at a time.
//!
//! In a block of 1,024 numbers of `BITS` bits each, `LANES` = 1,024 / `BITS` numbers are packed side by side: lane after
//! lane, word `w` of the packed block holds bits of the numbers of lane `w % LANES`, and a lane holds its numbers in order
//! from its lowest bit up. Shifts are the same in all lanes, so that a processor handles many at once. The order of a lane's
//! numbers is that of FastLanes: row `r` of lane `l` is number `16 * ORDER[r / 8] + 128 * (r % 8) + l`. After Afroozeh and
//! Boncz, "The FastLanes Compression Layout: Decoding >100 Billion Integers per Second with Scalar Code" (2023).
//!
//! Widths are known only at run time: inner loops run over lanes, so one function serves all widths.

use crate::cpu::{kernel, wide_kernel};

/// Numbers in a block.
pub const BLOCK: usize = 1024;

/// The order of eighths of a lane. Its own inverse.
const ORDER: [usize; 8] = [0, 4, 2, 6, 1, 5, 3, 7];

/// The first number of a row of lanes.
#[inline(always)]
const fn row_start(row: usize) -> usize {
    ORDER[row / 8] * 16 + (row % 8) * 128
}

/// Bytes of a packed block.
pub const fn packed_bytes(width: usize) -> usize {
    width * (BLOCK / 8)
}

/// Words that can be packed.
pub trait Block: Sized {
    /// Unpacks a block of numbers of `width` bits, and adds `base` to each. Panics if `packed` is shorter than
    /// [`packed_bytes`], or `width` too large.
    fn unpack(packed: &[u8], width: usize, base: Self, out: &mut [Self; BLOCK]);

    /// The number at `index` of a packed block.
    fn unpack_one(packed: &[u8], width: usize, index: usize) -> Self;

    /// Packs the low `width` bits of each number, and appends them.
    fn pack(values: &[Self; BLOCK], width: usize, out: &mut Vec<u8>);

    /// One bit for each number, low bits first: whether `number - low`, modulo the number of bits, is at most `span`. That is
    /// whether it lies between `low` and `low + span`, signed or not.
    fn test(values: &[Self; BLOCK], low: Self, span: Self, out: &mut [u8; BLOCK / 8]);
}

macro_rules! block {
    ($T:ident, $unpack:ident, $pack:ident, $test:ident) => {
        kernel! {
            fn $unpack(packed: &[u8], width: usize, base: $T, out: &mut [$T; BLOCK]) {
                const BITS: usize = $T::BITS as usize;
                const LANES: usize = BLOCK / BITS;
                if width == 0 {
                    return out.fill(base);
                }
                let (words, _) = packed[..packed_bytes(width)].as_chunks::<{ size_of::<$T>() }>();
                let (words, _) = words.as_chunks::<LANES>();
                let mask = $T::MAX >> (BITS - width);
                for row in 0..BITS {
                    let (word, shift) = (row * width / BITS, row * width % BITS);
                    let Some(to) = out[row_start(row)..].first_chunk_mut::<LANES>() else { return };
                    let low = &words[word];
                    if shift + width <= BITS {
                        for lane in 0..LANES {
                            to[lane] = ($T::from_le_bytes(low[lane]) >> shift & mask).wrapping_add(base);
                        }
                    } else {
                        let high = &words[word + 1];
                        for lane in 0..LANES {
                            let joined = $T::from_le_bytes(low[lane]) >> shift
                                | $T::from_le_bytes(high[lane]) << (BITS - shift);
                            to[lane] = (joined & mask).wrapping_add(base);
                        }
                    }
                }
            }
        }

        kernel! {
            fn $pack(values: &[$T; BLOCK], width: usize, words: &mut [$T; BLOCK]) {
                const BITS: usize = $T::BITS as usize;
                const LANES: usize = BLOCK / BITS;
                if width == 0 {
                    return;
                }
                let mask = $T::MAX >> (BITS - width);
                let (words, _) = words.as_chunks_mut::<LANES>();
                for row in 0..BITS {
                    let (word, shift) = (row * width / BITS, row * width % BITS);
                    let Some(from) = values[row_start(row)..].first_chunk::<LANES>() else { return };
                    for lane in 0..LANES {
                        words[word][lane] |= (from[lane] & mask) << shift;
                    }
                    if shift + width > BITS {
                        for lane in 0..LANES {
                            words[word + 1][lane] |= (from[lane] & mask) >> (BITS - shift);
                        }
                    }
                }
            }
        }

        wide_kernel! {
            fn $test(values: &[$T; BLOCK], low: $T, span: $T, out: &mut [u8; BLOCK / 8]) {
                let mut hits = [0_u8; BLOCK];
                for (hit, value) in hits.iter_mut().zip(values) {
                    *hit = u8::from(value.wrapping_sub(low) <= span);
                }
                // The lowest bits of eight bytes, side by side in the highest byte of a product.
                let (eights, _) = hits.as_chunks::<8>();
                for (out, eight) in out.iter_mut().zip(eights) {
                    *out = (u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8;
                }
            }
        }

        impl Block for $T {
            #[inline]
            fn unpack(packed: &[u8], width: usize, base: Self, out: &mut [Self; BLOCK]) {
                $unpack(packed, width, base, out);
            }

            fn unpack_one(packed: &[u8], width: usize, index: usize) -> Self {
                const BITS: usize = $T::BITS as usize;
                const LANES: usize = BLOCK / BITS;
                if width == 0 {
                    return 0;
                }
                let (words, _) = packed.as_chunks::<{ size_of::<$T>() }>();
                let lane = index % 128 % LANES;
                let row = ORDER[(index % 128 - lane) / 16] * 8 + index / 128;
                let (word, shift) = (row * width / BITS, row * width % BITS);
                let at = |word: usize| $T::from_le_bytes(words[word * LANES + lane]);
                let low = at(word) >> shift;
                let joined = if shift + width > BITS { low | at(word + 1) << (BITS - shift) } else { low };
                joined & ($T::MAX >> (BITS - width))
            }

            fn pack(values: &[Self; BLOCK], width: usize, out: &mut Vec<u8>) {
                let mut words = [0; BLOCK];
                $pack(values, width, &mut words);
                let words = &words[..packed_bytes(width) / size_of::<$T>()];
                words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
            }

            #[inline]
            fn test(values: &[Self; BLOCK], low: Self, span: Self, out: &mut [u8; BLOCK / 8]) {
                $test(values, low, span, out);
            }
        }
    };
}

block!(u8, unpack_8, pack_8, test_8);
block!(u16, unpack_16, pack_16, test_16);
block!(u32, unpack_32, pack_32, test_32);
block!(u64, unpack_64, pack_64, test_64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::word::Word;

    fn round_trip<W: Word>() {
        let mut rng = fastrand::Rng::with_seed(7);
        for width in 0..=W::BITS {
            let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
            let values: [W; BLOCK] = std::array::from_fn(|_| W::low(rng.u64(..) & mask));
            let mut packed = Vec::new();
            W::pack(&values, width, &mut packed);
            assert_eq!(packed.len(), packed_bytes(width));
            let mut unpacked = [W::default(); BLOCK];
            let base = W::low(rng.u64(..));
            W::unpack(&packed, width, base, &mut unpacked);
            for (index, value) in values.iter().enumerate() {
                assert_eq!(unpacked[index], value.plus(base), "{width} bits, number {index}");
                assert_eq!(W::unpack_one(&packed, width, index), *value, "{width} bits, number {index}");
            }
            let (low, span) = (W::low(rng.u64(..)), W::low(rng.u64(..)));
            let mut found = [0; BLOCK / 8];
            W::test(&unpacked, low, span, &mut found);
            for (index, value) in unpacked.iter().enumerate() {
                assert_eq!(found[index / 8] >> (index % 8) & 1 == 1, value.minus(low) <= span);
            }
        }
    }

    #[test]
    fn numbers_of_every_width_round_trip() {
        round_trip::<u8>();
        round_trip::<u16>();
        round_trip::<u32>();
        round_trip::<u64>();
    }

    #[test]
    fn words_lie_as_in_fastlanes() {
        // Number 1 of 32 bits is lane 1, row 0; number 64 is row 8; number 128 is row 1.
        let place = |number: usize| {
            let mut values = [0_u32; BLOCK];
            values[number] = 1;
            let mut packed = Vec::new();
            u32::pack(&values, 1, &mut packed);
            packed.iter().enumerate().find(|(_, byte)| **byte != 0).map(|(at, byte)| at * 8 + byte.ilog2() as usize)
        };
        assert_eq!(place(1), Some(32));
        assert_eq!(place(64), Some(8));
        assert_eq!(place(128), Some(1));
        assert_eq!(place(32), Some(16));
    }
}
