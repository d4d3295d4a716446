//! Sums of doubles, and of products of two, without rounding: the result does not depend on the order, so neither on threads nor
//! on how rows lie in row groups. Rounding happens once, at the end.
//!
//! A small sum is an integer of 128 bits in units of 2^-75. What does not fit there goes into long integers that span all products of
//! doubles, one for each sign, so that carries seldom run far (Kulisch, "Very fast and exact accumulation of products", 2011).

use num_bigint::{BigInt, BigUint, Sign};
use num_traits::ToPrimitive;
use serde::{Deserialize, Serialize};

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

/// A sum, to go on from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptSum {
    special: u8,
    long: bool,
    sum: Vec<u8>,
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
        if shift.cast_unsigned() <= 72
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

    /// Takes another sum away. `false`, with nothing done, if one of them has infinities or NaN, which are not counted.
    pub fn subtract(&mut self, other: &ExactSum) -> bool {
        if self.special().is_some() || other.special().is_some() {
            return false;
        }
        match self.small.checked_sub(other.small) {
            Some(sum) => self.small = sum,
            None => self.long.get_or_insert_with(Long::zero).add_negated(other.small),
        }
        if let Some(theirs) = &other.long {
            let own = self.long.get_or_insert_with(Long::zero);
            plus(&mut own.positive, &theirs.negative);
            plus(&mut own.negative, &theirs.positive);
        }
        true
    }

    /// What it is in bytes, to go on from: which of NaN and the infinities there were, then the sum in units of 2^[`SMALL`] if that is all
    /// there is, else in units of 2^[`LONG`]; integers with a sign, little-endian.
    pub fn to_kept(&self) -> KeptSum {
        let special = (0..3).map(|at| u8::from(self.special[at]) << at).sum();
        match &self.long {
            None => KeptSum { special, long: false, sum: BigInt::from(self.small).to_signed_bytes_le() },
            Some(_) => KeptSum { special, long: true, sum: self.integer().to_signed_bytes_le() },
        }
    }

    /// A sum from what was kept; `None` if it is none.
    pub fn of_kept(kept: &KeptSum) -> Option<Self> {
        let sum = BigInt::from_signed_bytes_le(&kept.sum);
        let special = [0, 1, 2].map(|at| kept.special >> at & 1 == 1);
        if !kept.long {
            return Some(Self { small: sum.to_i128()?, long: None, special });
        }
        let (sign, words) = sum.to_u64_digits();
        if words.len() > WORDS {
            return None;
        }
        let mut long = Long::zero();
        let side = if sign == Sign::Minus { &mut long.negative } else { &mut long.positive };
        side[..words.len()].copy_from_slice(&words);
        Some(Self { small: 0, long: Some(long), special })
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
        self.mean(1)
    }

    /// The double that is nearest to the sum divided by `n`.
    pub fn mean(&self, n: u64) -> f64 {
        match (self.special(), &self.long) {
            (Some(special), _) => special,
            (None, None) => signed(self.small < 0, quotient_small(self.small.unsigned_abs(), n, SMALL)),
            (None, Some(_)) => {
                let sum = self.integer();
                let negative = sum.sign() == Sign::Minus;
                signed(negative, quotient(sum.magnitude().clone(), n.into(), LONG).value())
            }
        }
    }

    /// The double that is nearest to the quotient of two sums; `None` if the lower one is zero.
    pub fn quotient(&self, below: &ExactSum) -> Option<f64> {
        if self.special().is_some() || below.special().is_some() {
            return Some(self.value() / below.value());
        }
        let (above, below) = match (&self.long, &below.long) {
            // Both are in the same unit.
            (None, None) => (BigInt::from(self.small), BigInt::from(below.small)),
            _ => (self.integer(), below.integer()),
        };
        if below.sign() == Sign::NoSign {
            return None;
        }
        let negative = (above.sign() == Sign::Minus) != (below.sign() == Sign::Minus);
        Some(signed(negative, quotient(above.magnitude().clone(), below.magnitude().clone(), 0).value()))
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

/// A sum of integers, of more than 128 bits if need be.
#[derive(Clone, Copy, Debug, Default)]
pub struct WideSum {
    low: i128,
    /// How often the lower part went over its end, or below its beginning.
    high: i64,
}

impl WideSum {
    /// Adds an integer.
    #[inline]
    pub fn add(&mut self, value: i128) {
        let (sum, over) = self.low.overflowing_add(value);
        self.low = sum;
        if over {
            self.high += value.signum() as i64;
        }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &WideSum) {
        self.add(other.low);
        self.high += other.high;
    }

    /// The sum; `Err` with it if it is beyond 128 bits.
    pub fn value(&self) -> Result<i128, BigInt> {
        if self.high == 0 { Ok(self.low) } else { Err(self.integer()) }
    }

    /// Takes another sum away.
    pub fn subtract(&mut self, other: &WideSum) {
        let (sum, over) = self.low.overflowing_sub(other.low);
        self.low = sum;
        if over {
            self.high -= other.low.signum() as i64;
        }
        self.high -= other.high;
    }

    /// Its parts, to go on from.
    pub fn to_kept(self) -> (i128, i64) {
        (self.low, self.high)
    }

    /// A sum from its parts.
    pub fn of_kept((low, high): (i128, i64)) -> Self {
        Self { low, high }
    }

    fn integer(&self) -> BigInt {
        BigInt::from(self.low) + (BigInt::from(self.high) << 128)
    }

    /// The double that is nearest to the mean of `n` values, at least one, whose sum this is in units of `10^-scale`.
    pub fn mean(&self, n: u64, scale: i8) -> f64 {
        let power = 10_u128.checked_pow(u32::from(scale.unsigned_abs())).unwrap_or(u128::MAX);
        let below = power.checked_mul(u128::from(n)).and_then(|below| u64::try_from(below).ok());
        if let (0, 0.., Some(below)) = (self.high, scale, below) {
            return signed(self.low < 0, quotient_small(self.low.unsigned_abs(), below, 0));
        }
        let (sum, power) = (self.integer(), BigUint::from(10_u8).pow(u32::from(scale.unsigned_abs())));
        let (above, below) = if scale < 0 { (power, BigUint::from(n)) } else { (1_u8.into(), power * n) };
        signed(sum.sign() == Sign::Minus, quotient(sum.magnitude() * above, below, 0).value())
    }
}

fn signed(negative: bool, value: f64) -> f64 {
    if negative { -value } else { value }
}

/// The variance of `n` values, more than one, of which the sum and the sum of squares are given: with `n - 1` below; or its root.
pub fn variance(n: u64, sum: &ExactSum, squares: &ExactSum, root: bool) -> f64 {
    if sum.special().is_some() || squares.special().is_some() {
        return f64::NAN;
    }
    let sum = sum.integer();
    // In units of 2^(2 * LONG). Never negative, by Cauchy and Schwarz.
    let above = ((squares.integer() << (-LONG) as usize) * n) - &sum * &sum;
    let variance = quotient(above.magnitude().clone(), BigUint::from(n) * (n - 1), 2 * LONG);
    if root { variance.root() } else { variance.value() }
}

/// `bits * 2^exponent`, where the lowest bit stands for all below it: rounding to fewer bits looks no further.
struct Scaled {
    bits: u64,
    exponent: i32,
}

impl Scaled {
    /// The nearest double, the even one of two.
    fn value(&self) -> f64 {
        // The unit of the smallest doubles.
        let spare = -1074 - self.exponent;
        if spare <= 11 {
            let (half, value) = (self.exponent / 2, self.bits as f64);
            return value * 2_f64.powi(half) * 2_f64.powi(self.exponent - half);
        }
        let (whole, rest) = match spare {
            ..64 => (self.bits >> spare, self.bits << (64 - spare)),
            64 => (0, self.bits),
            _ => (0, u64::from(self.bits > 0)),
        };
        let up = rest > 1 << 63 || (rest == 1 << 63 && whole % 2 == 1);
        f64::from_bits(whole + u64::from(up))
    }

    /// The square root of it.
    fn root(&self) -> f64 {
        let odd = self.exponent.rem_euclid(2);
        let bits = self.bits as f64 * f64::from(1 + odd);
        let (half, root) = ((self.exponent - odd) / 2, bits.sqrt());
        root * 2_f64.powi(half / 2) * 2_f64.powi(half - half / 2)
    }
}

/// A quotient, times a power of two.
fn quotient(above: BigUint, below: BigUint, exponent: i32) -> Scaled {
    // As many bits that the quotient has 64 at least.
    let more = (below.bits() + 64).saturating_sub(above.bits());
    let above = above << more;
    let quotient = &above / &below;
    let inexact = &quotient * &below != above;
    let cut = quotient.bits().saturating_sub(64);
    let top = (&quotient >> cut).to_u64().unwrap_or(u64::MAX);
    let below = inexact || quotient.trailing_zeros().is_some_and(|zeros| zeros < cut);
    Scaled { bits: top | u64::from(below), exponent: exponent - more as i32 + cut as i32 }
}

/// The double nearest to a quotient, times a power of two.
fn quotient_small(above: u128, below: u64, exponent: i32) -> f64 {
    if above == 0 || below == 0 {
        return 0.0;
    }
    let more = above.leading_zeros();
    let above = above << more;
    let below = u128::from(below);
    let (quotient, rest) = if below == 1 { (above, 0) } else { (above / below, above % below) };
    // It has 64 bits at least.
    let cut = 64 - quotient.leading_zeros();
    let inexact = rest > 0 || quotient & ((1 << cut) - 1) > 0;
    let bits = (quotient >> cut) as u64 | u64::from(inexact);
    Scaled { bits, exponent: exponent - more as i32 + cut as i32 }.value()
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

    /// Adds a small sum with the other sign.
    fn add_negated(&mut self, small: i128) {
        // The least has no opposite.
        match small.checked_neg() {
            Some(negated) => self.add(negated, SMALL),
            None => (0..2).for_each(|_| self.add(-(small / 2), SMALL)),
        }
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
            // Kept, and gone on from.
            let mut kept = ExactSum::of_kept(&merged.to_kept()).unwrap();
            assert_eq!(kept.value().to_bits(), whole.value().to_bits(), "{values:?}");
            assert!(kept.subtract(&sum(left)));
            assert_eq!(kept.value().to_bits(), sum(right).value().to_bits(), "{values:?}");
            assert!(kept.subtract(&sum(right)) && kept.value() == 0.0);
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
            variance(values.len() as u64, &sum(values), &squares, false)
        };
        assert_eq!(of(&[1.0, 2.0, 3.0, 4.0]), 5.0 / 3.0);
        assert_eq!(of(&[1e15 + 1.0, 1e15 + 2.0, 1e15 + 3.0]), 1.0);
        assert_eq!(of(&[0.1; 3]), 0.0);
        assert_eq!(of(&[1e200, -1e200]), f64::INFINITY);
        assert!(of(&[1.0, f64::INFINITY]).is_nan());
    }

    #[test]
    fn results_are_rounded_once_wherever_they_lie() {
        let quotient_of = |a: u128, b: u64, e: i32| {
            let one = quotient_small(a, b, e);
            assert_eq!(one.to_bits(), quotient(a.into(), b.into(), e).value().to_bits(), "{a} / {b} * 2^{e}");
            one
        };
        assert_eq!(quotient_of(1, 3, 0), 1.0 / 3.0);
        assert_eq!(quotient_of(u128::MAX, 1, 0), 2_f64.powi(128));
        // Halfway between two of the smallest doubles, and just above.
        assert_eq!((quotient_of(1, 1, -1075), quotient_of(3, 1, -1075)), (0.0, 1e-323));
        assert_eq!((quotient_of(5, 4, -1074), quotient_of(7, 4, -1074)), (5e-324, 1e-323));
        let mut rng = fastrand::Rng::with_seed(3);
        for _ in 0..2000 {
            let above = rng.u128(..) >> rng.u32(0..128);
            let below = (rng.u64(..) >> rng.u32(0..64)).max(1);
            quotient_of(above, below, rng.i32(-1200..900));
            let (a, b) = (rng.u32(..), rng.u32(1..));
            assert_eq!(quotient_of(a.into(), b.into(), 0), f64::from(a) / f64::from(b));
        }
        assert_eq!(sum(&[f64::MAX, f64::MAX]).mean(2), f64::MAX);
        assert_eq!(sum(&[3e200, -1e200]).quotient(&sum(&[1e-200])), Some(f64::INFINITY));
        assert_eq!(
            (sum(&[1.0]).quotient(&sum(&[0.5, -0.5])), sum(&[0.3]).quotient(&sum(&[0.1]))),
            (None, Some(0.3 / 0.1))
        );
        let root = |values: &[f64]| {
            let mut squares = ExactSum::default();
            values.iter().for_each(|value| squares.add_product(*value, *value));
            variance(values.len() as u64, &sum(values), &squares, true)
        };
        assert_eq!((root(&[1.0, 3.0]), root(&[1e200, 3e200]) / 1e200), (2_f64.sqrt(), 2_f64.sqrt()));
        assert!((root(&[1e-200, 3e-200]) / 1e-200 - 2_f64.sqrt()).abs() < 1e-15);
    }

    #[test]
    fn integers_are_added_beyond_128_bits() {
        let mut sum = WideSum::default();
        [i128::MAX, i128::MAX, i128::MIN, 7, i128::MIN].iter().for_each(|value| sum.add(*value));
        assert_eq!(sum.value(), Ok(5));
        let mut twice = WideSum::default();
        twice.add(i128::MAX);
        twice.merge(&twice.clone());
        assert_eq!(twice.value().unwrap_err().to_string(), "340282366920938463463374607431768211454");
        assert_eq!(twice.mean(2, 0), i128::MAX as f64);
        twice.subtract(&WideSum::of_kept(twice.to_kept()));
        assert_eq!(twice.value(), Ok(0));
        twice.add(i128::MIN);
        twice.subtract(&sum);
        assert_eq!(twice.value().unwrap_err().to_string(), "-170141183460469231731687303715884105733");
        let mut small = WideSum::default();
        small.add(-5);
        assert_eq!((small.mean(30, 0), small.mean(3, 1), small.mean(3, -1)), (-1.0 / 6.0, -1.0 / 6.0, -50.0 / 3.0));
    }
}
