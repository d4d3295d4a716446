//! Exact decimal literals of any size, and their place among the values of a column.
//!
//! Invariants: `digits` has no zero at either end, and is empty for zero, which is negative only as the float `-0.0`. In a [`Floor`]
//! `(floor, exact)`, `floor` is the greatest value of the domain that is not above the literal, and `exact` says
//! whether it equals the literal; so every comparison with the literal becomes one with `floor`.

use std::cmp::Ordering;
use std::fmt;

/// The value is `digits * 10^exponent`. `fractional` records that the text had a point or an exponent: compared with
/// floats, such a number means the nearest float.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    negative: bool,
    digits: String,
    exponent: i64,
    fractional: bool,
}

/// The floor of a literal in a domain, and whether it equals the literal.
pub type Floor<T> = (T, bool);

/// All exponents beyond this have the same effect: the number is outside the range of every column type.
const EXPONENT_MAX: i64 = 1_000_000_000;

impl Number {
    /// Reads digits with an optional point and exponent, as SQL writes them.
    pub fn parse(text: &str) -> Option<Number> {
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let power = match exponent {
            None => 0,
            Some(text) => {
                let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
                if unsigned.is_empty() || !unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
                    return None;
                }
                let size = unsigned.parse::<i64>().unwrap_or(EXPONENT_MAX).min(EXPONENT_MAX);
                if text.starts_with('-') { -size } else { size }
            }
        };
        let fractional = exponent.is_some() || mantissa.contains('.');
        Some(Self::normal(false, &digits, power - fraction.len() as i64, fractional))
    }

    /// The number `value / 10^scale`.
    pub fn scaled(value: i128, scale: i32) -> Number {
        Self::normal(value < 0, &value.unsigned_abs().to_string(), -i64::from(scale), scale > 0)
    }

    fn normal(negative: bool, digits: &str, exponent: i64, fractional: bool) -> Number {
        let significant = digits.trim_start_matches('0');
        let kept = significant.trim_end_matches('0');
        if kept.is_empty() {
            return Number { negative: false, digits: String::new(), exponent: 0, fractional };
        }
        Number {
            negative,
            digits: kept.to_owned(),
            exponent: (exponent + (significant.len() - kept.len()) as i64).clamp(-EXPONENT_MAX, EXPONENT_MAX),
            fractional,
        }
    }

    pub fn negated(mut self) -> Number {
        self.negative = !self.negative && (self.fractional || !self.digits.is_empty());
        self
    }

    /// Floor of `self * 10^scale`, clamped to the range of `i128`.
    pub fn floor(&self, scale: i32) -> Floor<i128> {
        if self.digits.is_empty() {
            return (0, true);
        }
        // Digits before the point once it has moved by `scale`.
        let point = self.digits.len() as i64 + self.exponent + i64::from(scale);
        let outside = if self.negative { (i128::MIN, false) } else { (i128::MAX, false) };
        if point > 39 {
            return outside;
        }
        let exact = point >= self.digits.len() as i64;
        let whole = match usize::try_from(point) {
            Err(_) | Ok(0) => "0".to_owned(),
            Ok(point) => self.digits.chars().chain(std::iter::repeat('0')).take(point).collect(),
        };
        match whole.parse::<i128>() {
            Err(_) => outside,
            Ok(size) if self.negative => (-size - i128::from(!exact), exact),
            Ok(size) => (size, exact),
        }
    }

    /// As an `i128` with a scale, if it fits: for arithmetic.
    pub fn unscaled(&self) -> Option<(i128, i32)> {
        let scale = i32::try_from((-self.exponent).max(0)).ok().filter(|scale| *scale <= 38)?;
        let (value, exact) = self.floor(scale);
        exact.then_some((value, scale))
    }

    /// The nearest float; infinite beyond the greatest.
    pub fn nearest(&self) -> f64 {
        let sign = if self.negative { "-" } else { "" };
        let digits = if self.digits.is_empty() { "0" } else { &self.digits };
        format!("{sign}{digits}e{}", self.exponent).parse().expect("digits and an exponent are a float")
    }

    /// Whether the text had a point or an exponent.
    pub fn is_fractional(&self) -> bool {
        self.fractional
    }

    /// Floor among floats. Integers are placed exactly; a fractional literal becomes its nearest float, unless it is beyond
    /// all floats.
    pub fn floor_float(&self) -> Floor<f64> {
        let near = self.nearest();
        if near.is_infinite() {
            return (if self.negative { f64::NEG_INFINITY } else { f64::MAX }, false);
        }
        if self.fractional {
            return (near, true);
        }
        // Rust prints the exact digits of a float.
        let printed = Number::parse(&format!("{:.0}", near.abs())).expect("a finite float prints as digits");
        let printed = if near < 0.0 { printed.negated() } else { printed };
        match printed.compare(self) {
            Ordering::Equal => (near, true),
            Ordering::Less => (near, false),
            Ordering::Greater => (near.next_down(), false),
        }
    }

    /// Compares by value.
    pub fn compare(&self, other: &Number) -> Ordering {
        let sign = |number: &Number| match (number.digits.is_empty(), number.negative) {
            (true, _) => 0,
            (_, true) => -1,
            (_, false) => 1,
        };
        let order = sign(self).cmp(&sign(other));
        if order.is_ne() || self.digits.is_empty() {
            return order;
        }
        let lead = |number: &Number| number.digits.len() as i64 + number.exponent;
        // Without trailing zeros, digits with the same leading power sort like text.
        let size = lead(self).cmp(&lead(other)).then_with(|| self.digits.cmp(&other.digits));
        if self.negative { size.reverse() } else { size }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.negative {
            f.write_str("-")?;
        }
        let digits = if self.digits.is_empty() { "0" } else { &self.digits };
        if !self.fractional {
            return write!(f, "{digits}{}", "0".repeat(usize::try_from(self.exponent).unwrap_or(0)));
        }
        match self.exponent {
            0 => write!(f, "{digits}.0"),
            -20..0 => {
                let places = self.exponent.unsigned_abs() as usize;
                let padded = format!("{digits:0>width$}", width = places + 1);
                let (whole, fraction) = padded.split_at(padded.len() - places);
                write!(f, "{whole}.{fraction}")
            }
            exponent => write!(f, "{digits}e{exponent}"),
        }
    }
}

/// Order-preserving integer of a float, where NaN equals NaN and is greatest, and -0.0 equals 0.0.
pub fn float_key(value: f64) -> i64 {
    let value = if value.is_nan() { f64::NAN.abs() } else { value + 0.0 };
    let bits = value.to_bits() as i64;
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

/// The float of a [`float_key`].
pub fn key_float(key: i64) -> f64 {
    f64::from_bits((key ^ ((key >> 63) as u64 >> 1) as i64) as u64)
}

/// Compares `a / 10^a_scale` with `b / 10^b_scale`, exactly.
pub fn compare_scaled(a: i128, a_scale: i32, b: i128, b_scale: i32) -> Ordering {
    if a_scale == b_scale {
        return a.cmp(&b);
    }
    if a_scale > b_scale {
        return compare_scaled(b, b_scale, a, a_scale).reverse();
    }
    // A product beyond 128 bits exceeds every `b`: its sign decides.
    match power_of_ten(b_scale - a_scale).and_then(|power| a.checked_mul(power)) {
        Some(a) => a.cmp(&b),
        None if a == 0 => 0.cmp(&b),
        None => a.cmp(&0),
    }
}

/// Compares an integer with a float by value, NaN being greatest.
pub fn compare_int_float(int: i128, float: f64) -> Ordering {
    const LIMIT: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;
    if float.is_nan() || float >= LIMIT {
        return Ordering::Less;
    }
    if float < -LIMIT {
        return Ordering::Greater;
    }
    let whole = float.floor();
    int.cmp(&(whole as i128)).then(if float > whole { Ordering::Less } else { Ordering::Equal })
}

/// The float nearest to `value / 10^scale`.
pub fn to_float(value: i128, scale: i32) -> f64 {
    if scale == 0 {
        return value as f64;
    }
    // Both operands are exact floats, so the division rounds only once.
    if (0..=22).contains(&scale) && value.unsigned_abs() <= 1 << 53 {
        return value as f64 / 10f64.powi(scale);
    }
    Number::scaled(value, scale).nearest()
}

/// `10^power`, if it fits.
pub fn power_of_ten(power: i32) -> Option<i128> {
    10i128.checked_pow(u32::try_from(power).ok()?)
}
