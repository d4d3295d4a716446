//! Sums of doubles, and of products of two, without rounding: the result does not depend on the order, so neither on threads nor
//! on how rows lie in row groups. Rounding happens once, at the end.
//!
//! A small sum is an integer of 128 bits in units of 2^-75. What does not fit there goes into long integers that span all products of
//! doubles, one for each sign, so that carries seldom run far (Kulisch, "Very fast and exact accumulation of products", 2011).

use num_bigint::{BigInt, BigUint};
use num_traits::ToPrimitive;

use crate::base::planted::{Bug, planted};

/// The unit of small sums is 2 to the power of this.
const SMALL: i32 = -75;
/// The same for long ones: that of the product of the two smallest doubles.
const LONG: i32 = -2148;
/// As many bits as the greatest product has above [`LONG`], and 64 for as many of them.
const WORDS: usize = 67;

/// A sum without rounding.
#[derive(Clone, Debug, Default)]
pub struct ExactSum {
    small: i128,
    long: Option<Box<Long>>,
    /// Which of NaN, infinity and minus infinity were added.
    special: [bool; 3],
}

#[derive(Clone, Debug)]
struct Long {
    positive: [u64; WORDS],
    negative: [u64; WORDS],
}

/// A finite double as an integer times a power of two.
fn parts(value: f64) -> (i64, i32) {
    let bits = value.to_bits();
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, (bits & ((1 << 52) - 1)) as i64);
    let (mantissa, exponent) = if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
    (if value.is_sign_negative() { -mantissa } else { mantissa }, exponent)
}

/// 2 to a power, however small: in two steps where one is too small for a double.
fn times_power_of_two(value: f64, exponent: i32) -> f64 {
    let half = exponent / 2;
    value * 2_f64.powi(half) * 2_f64.powi(exponent - half)
}

impl ExactSum {
    /// Adds a double.
    #[inline]
    pub fn add(&mut self, value: f64) {
        if planted(Bug::RoundSums) && value.is_finite() {
            let (mantissa, exponent) = parts(self.value() + value);
            *self = Self::default();
            self.add_scaled(i128::from(mantissa), exponent);
        } else if value.is_finite() {
            let (mantissa, exponent) = parts(value);
            self.add_scaled(i128::from(mantissa), exponent);
        } else {
            self.add_special(value);
        }
    }

    /// Adds the product of two doubles.
    pub fn add_product(&mut self, a: f64, b: f64) {
        if a.is_finite() && b.is_finite() {
            let ((a, e), (b, f)) = (parts(a), parts(b));
            self.add_scaled(i128::from(a) * i128::from(b), e + f);
        } else {
            self.add_special(a * b);
        }
    }

    #[cold]
    fn add_special(&mut self, value: f64) {
        let at = if value.is_nan() {
            0
        } else if value > 0.0 {
            1
        } else {
            2
        };
        self.special[at] = true;
    }

    #[inline]
    fn add_scaled(&mut self, mantissa: i128, exponent: i32) {
        let shift = exponent - SMALL;
        // 53 bits moved by at most 72 fit; the mantissa of a product may not.
        if (0..=72).contains(&shift)
            && mantissa.unsigned_abs() < 1 << 54
            && let Some(sum) = self.small.checked_add(mantissa << shift)
        {
            self.small = sum;
            return;
        }
        if mantissa != 0 {
            self.add_long(mantissa, exponent);
        }
    }

    #[cold]
    fn add_long(&mut self, mantissa: i128, exponent: i32) {
        self.long.get_or_insert_with(Long::zero).add(mantissa, exponent);
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &ExactSum) {
        match self.small.checked_add(other.small) {
            Some(sum) => self.small = sum,
            None => self.add_long(other.small, SMALL),
        }
        if let Some(theirs) = &other.long {
            let own = self.long.get_or_insert_with(Long::zero);
            plus(&mut own.positive, &theirs.positive);
            plus(&mut own.negative, &theirs.negative);
        }
        (0..3).for_each(|at| self.special[at] |= other.special[at]);
    }

    /// What infinities and NaN come to, if there were any.
    fn special(&self) -> Option<f64> {
        match self.special {
            [false, false, false] => None,
            [false, true, false] => Some(f64::INFINITY),
            [false, false, true] => Some(f64::NEG_INFINITY),
            _ => Some(f64::NAN),
        }
    }

    /// The double that is nearest to the sum, the even one of two; infinite if it is beyond all.
    pub fn value(&self) -> f64 {
        match (self.special(), &self.long) {
            (Some(special), _) => special,
            (None, None) => times_power_of_two(self.small as f64, SMALL),
            (None, Some(_)) => {
                let sum = self.integer();
                let (bits, negative) = (sum.magnitude(), sum.sign() == num_bigint::Sign::Minus);
                let value = rounded(bits, LONG, false);
                if negative { -value } else { value }
            }
        }
    }

    /// The sum as an integer in units of 2^[`LONG`].
    fn integer(&self) -> BigInt {
        let small = BigInt::from(self.small) << ((SMALL - LONG) as usize);
        match &self.long {
            None => small,
            Some(long) => small + of_words(&long.positive) - of_words(&long.negative),
        }
    }

    /// Bytes beside its own.
    pub fn extra_bytes(&self) -> usize {
        if self.long.is_some() { size_of::<Long>() } else { 0 }
    }
}

/// The variance of `n` values, more than one, of which the sum and the sum of squares are given: with `n - 1` below. Rounded
/// twice, after the division and never before.
pub fn variance(n: u64, sum: &ExactSum, squares: &ExactSum) -> f64 {
    if sum.special().is_some() || squares.special().is_some() {
        return f64::NAN;
    }
    let sum = sum.integer();
    // In units of 2^(2 * LONG). Never negative, by Cauchy and Schwarz.
    let above = ((squares.integer() << (-LONG) as usize) * n) - &sum * &sum;
    let below = BigUint::from(n) * (n - 1);
    let above = above.magnitude();
    // As many bits that the quotient has 64 at least.
    let more = (below.bits() + 64).saturating_sub(above.bits());
    let above = above << more;
    let quotient = &above / &below;
    let inexact = &quotient * &below != above;
    rounded(&quotient, 2 * LONG - more as i32, inexact)
}

/// The double nearest to `bits`, and somewhat more if it is `inexact`, times a power of two.
fn rounded(bits: &BigUint, exponent: i32, inexact: bool) -> f64 {
    let cut = bits.bits().saturating_sub(64);
    let top = (bits >> cut).to_u64().unwrap_or(u64::MAX);
    let below = inexact || bits.trailing_zeros().is_some_and(|zeros| zeros < cut);
    // The lowest of 64 bits stands for all below it: rounding to 53 looks no further.
    times_power_of_two((top | u64::from(below)) as f64, exponent + cut as i32)
}

fn of_words(words: &[u64; WORDS]) -> BigInt {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    BigInt::from(BigUint::from_bytes_le(&bytes))
}

/// Adds `more` to `sum`.
fn plus(sum: &mut [u64; WORDS], more: &[u64]) {
    let mut carry = false;
    for (at, word) in sum.iter_mut().enumerate() {
        let add = more.get(at).copied().unwrap_or(0);
        if add == 0 && !carry && at >= more.len() {
            return;
        }
        let (one, first) = word.overflowing_add(add);
        let (two, second) = one.overflowing_add(u64::from(carry));
        (*word, carry) = (two, first || second);
    }
}

impl Long {
    fn zero() -> Box<Self> {
        Box::new(Self { positive: [0; WORDS], negative: [0; WORDS] })
    }

    fn add(&mut self, mantissa: i128, exponent: i32) {
        let at = (exponent - LONG) as usize;
        let (word, shift) = (at / 64, at % 64);
        let size = mantissa.unsigned_abs();
        let (low, high) = (size << shift, if shift == 0 { 0 } else { size >> (128 - shift) });
        let mut words = if mantissa < 0 { &mut self.negative[word..] } else { &mut self.positive[word..] };
        let mut carry = 0_u64;
        for add in [low as u64, (low >> 64) as u64, high as u64] {
            let Some((first, rest)) = words.split_first_mut() else { return };
            let sum = u128::from(*first) + u128::from(add) + u128::from(carry);
            (*first, carry) = (sum as u64, (sum >> 64) as u64);
            words = rest;
        }
        for word in words {
            if carry == 0 {
                return;
            }
            let (sum, over) = word.overflowing_add(carry);
            (*word, carry) = (sum, u64::from(over));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(values: &[f64]) -> ExactSum {
        let mut sum = ExactSum::default();
        values.iter().for_each(|value| sum.add(*value));
        sum
    }

    #[test]
    fn nothing_is_lost_or_depends_on_the_order() {
        assert_eq!(sum(&[1e308, 1e-300, -1e308]).value(), 1e-300);
        assert_eq!(sum(&[0.1; 10]).value(), 1.0);
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]).value(), f64::MAX);
        assert_eq!(sum(&[f64::MAX, f64::MAX]).value(), f64::INFINITY);
        assert_eq!(sum(&[5e-324, 5e-324]).value(), 1e-323);
        assert_eq!(sum(&[]).value().to_bits(), 0.0_f64.to_bits());
        assert!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).value().is_nan());
        assert_eq!(sum(&[f64::NEG_INFINITY, 1.0]).value(), f64::NEG_INFINITY);
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..300 {
            let any = |rng: &mut fastrand::Rng| loop {
                let value = match rng.u8(..3) {
                    0 => f64::from_bits(rng.u64(..)),
                    1 => (rng.f64() - 0.5) * 1e6,
                    _ => f64::from(rng.i32(-1000..1000)) / 100.0,
                };
                if value.is_finite() {
                    return value;
                }
            };
            let mut values: Vec<f64> = (0..rng.usize(..40)).map(|_| any(&mut rng)).collect();
            let whole = sum(&values);
            rng.shuffle(&mut values);
            let (left, right) = values.split_at(values.len() / 2);
            let mut merged = sum(left);
            merged.merge(&sum(right));
            assert_eq!(merged.value().to_bits(), whole.value().to_bits(), "{values:?}");
            // Taken away again, nothing is left.
            values.iter().for_each(|value| merged.add(-value));
            assert_eq!(merged.value(), 0.0, "{values:?}");
        }
    }

    #[test]
    fn variances_are_those_of_numbers_far_from_zero() {
        let of = |values: &[f64]| {
            let mut squares = ExactSum::default();
            values.iter().for_each(|value| squares.add_product(*value, *value));
            variance(values.len() as u64, &sum(values), &squares)
        };
        assert_eq!(of(&[1.0, 2.0, 3.0, 4.0]), 5.0 / 3.0);
        assert_eq!(of(&[1e15 + 1.0, 1e15 + 2.0, 1e15 + 3.0]), 1.0);
        assert_eq!(of(&[0.1; 3]), 0.0);
        assert_eq!(of(&[1e200, -1e200]), f64::INFINITY);
        assert!(of(&[1.0, f64::INFINITY]).is_nan());
    }
}
