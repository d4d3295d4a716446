//! Numbers as text has them, and whether a type holds them: a number printed with as many digits as it came with is what it was.

use arrow::datatypes::{ArrowPrimitiveType, Float16Type};

#[expect(non_camel_case_types, reason = "as the crate `half` calls it, which is there by arrow")]
type f16 = <Float16Type as ArrowPrimitiveType>::Native;

/// More digits than any float has, exactly.
const DIGITS_MAX: usize = 1200;

/// A decimal number.
#[derive(Debug, PartialEq, Eq)]
pub struct Number {
    /// Its digits from the first that is not zero on; none for zero.
    digits: String,
    /// The number is `0.DIGITS` times ten to the power of this.
    power: i64,
}

/// Why a value does not fit.
pub type Reason = &'static str;

/// Why a value does not fit. The caller, which knows the line, puts the value before it and the type after it.
pub const INVALID: Reason = "is not a valid";
/// The same: an integer with zeros, a plus, or a minus before a zero.
pub const ZEROS: Reason = "has zeros or a sign in front, which would be lost in";
/// The same: a float would be rounded.
pub const DIGITS: Reason = "has more digits than fit in";
/// The same: a float would be infinite.
pub const LARGE: Reason = "is too large for";

/// The number that `text` is.
pub fn number(text: &str) -> Result<Number, Reason> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).map_or((unsigned, "0"), |(m, e)| (m, e));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{}{fraction}", whole.strip_prefix('+').unwrap_or(whole));
    let exponent: i32 = exponent.parse().map_err(|_| INVALID)?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(INVALID);
    }
    if whole.starts_with('+') || whole.len() > 1 && whole.starts_with('0') {
        return Err(ZEROS);
    }
    let significant = digits.trim_start_matches('0');
    let zeros = digits.len() - significant.len();
    let power = whole.len() as i64 - zeros as i64 + i64::from(exponent);
    Ok(Number { digits: significant.to_owned(), power })
}

impl Number {
    /// How many digits it has after the point, without zeros at the end.
    pub fn places(&self) -> usize {
        let digits = self.digits.trim_end_matches('0').len() as i64;
        usize::try_from(digits - self.power).unwrap_or(0)
    }

    /// Whether `value` is it: printed with as many digits, it is the same. `sure` digits are kept by every value of the type that
    /// is `normal`.
    fn is(&self, value: f64, sure: usize, normal: bool) -> bool {
        let many = self.digits.len();
        if many == 0 || many <= sure && normal {
            return true;
        }
        if many > DIGITS_MAX {
            return false;
        }
        let printed = format!("{:.*e}", many - 1, value.abs());
        let (digits, power) = printed.split_once('e').unwrap_or((&printed, "0"));
        digits.bytes().filter(|byte| *byte != b'.').eq(self.digits.bytes())
            && power.parse::<i64>().is_ok_and(|power| power + 1 == self.power)
    }
}

/// The float that `text` is, by `read`, which gives the nearest, and whether that is normal.
fn float<T: Copy + Into<f64>>(text: &str, sure: usize, read: impl Fn(&str) -> Option<(T, bool)>) -> Result<T, Reason> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    if ["nan", "inf", "infinity"].iter().any(|name| unsigned.eq_ignore_ascii_case(name)) {
        return read(text).map(|(value, _)| value).ok_or(INVALID);
    }
    let number = number(text)?;
    let (value, normal) = read(text).ok_or(INVALID)?;
    if !value.into().is_finite() {
        return Err(LARGE);
    }
    if number.is(value.into(), sure, normal) { Ok(value) } else { Err(DIGITS) }
}

/// The 64-bit float that `text` is.
pub fn float64(text: &str) -> Result<f64, Reason> {
    float(text, 15, |text| text.parse().ok().map(|value: f64| (value, value.is_normal())))
}

/// The 32-bit float that `text` is.
pub fn float32(text: &str) -> Result<f32, Reason> {
    float(text, 6, |text| text.parse().ok().map(|value: f32| (value, value.is_normal())))
}

/// The 16-bit float that `text` is.
pub fn float16(text: &str) -> Result<f16, Reason> {
    float(text, 3, |text| text.parse().ok().map(f16::from_f64).map(|value| (value, value.is_normal())))
}

/// The integer that `text` is, as `T` reads it.
pub fn integer<T: std::str::FromStr>(text: &str) -> Result<T, Reason> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned.is_empty() || !unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(INVALID);
    }
    if text.starts_with('+') || text == "-0" || unsigned.len() > 1 && unsigned.starts_with('0') {
        return Err(ZEROS);
    }
    text.parse().map_err(|_| INVALID)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_float_prints_what_it_was_read_from() {
        for (text, reason) in [
            ("0.1", None),
            ("-2.50", None),
            ("1e3", None),
            (".5", None),
            ("5.", None),
            ("-0", None),
            ("0.000", None),
            ("0.10000000000000001", None),
            ("1.000000000000000056e-01", None),
            ("1.7976931348623157e308", None),
            ("5e-324", None),
            ("100000000000000000000", None),
            ("NaN", None),
            ("-inf", None),
            ("123456789.123456789", Some(DIGITS)),
            ("9007199254740993", Some(DIGITS)),
            ("1.23456789e-320", Some(DIGITS)),
            ("1e-400", Some(DIGITS)),
            ("1e400", Some(LARGE)),
            ("01.5", Some(ZEROS)),
            ("+1.5", Some(ZEROS)),
            ("00", Some(ZEROS)),
            ("1_000", Some(INVALID)),
            ("0x10", Some(INVALID)),
            (" 1", Some(INVALID)),
            ("", Some(INVALID)),
            (".", Some(INVALID)),
            ("1e", Some(INVALID)),
            ("+nan", Some(INVALID)),
        ] {
            assert_eq!(float64(text).err(), reason, "{text}");
        }
        assert_eq!(float32("0.1"), Ok(0.1));
        assert_eq!(float32("16777217"), Err(DIGITS));
        assert_eq!(float32("1e39"), Err(LARGE));
        assert_eq!(float16("0.1").map(f64::from), Ok(0.0999755859375));
        assert_eq!(float16("70000").err(), Some(LARGE));
        assert_eq!(float16("2049").err(), Some(DIGITS));
    }

    #[test]
    fn an_integer_has_no_zeros_in_front() {
        assert_eq!(integer::<i64>("-7"), Ok(-7));
        assert_eq!(integer::<u64>("18446744073709551615"), Ok(u64::MAX));
        for text in ["007", "-0", "+5", "00"] {
            assert_eq!(integer::<i64>(text), Err(ZEROS), "{text}");
        }
        for text in ["", "-", "1.0", "1e3", " 8", "9223372036854775808", "0x1"] {
            assert_eq!(integer::<i64>(text), Err(INVALID), "{text}");
        }
    }

    #[test]
    fn places_are_those_after_the_point() {
        for (text, places) in [("1.25", 2), ("1.250", 2), ("1.255e1", 2), ("1e-5", 5), ("120", 0), ("0", 0)] {
            assert_eq!(number(text).unwrap().places(), places, "{text}");
        }
    }
}
