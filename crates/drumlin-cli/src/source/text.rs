//! Conversion of text to the types of columns. A conversion that would lose something is an error: a fraction of a second, digits,
//! zeros in front, a time zone, a time of day. What is converted prints as it was, or is the same number or time.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, BooleanArray, PrimitiveArray, StringArray};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimeUnit, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use drumlin::{Error, Result};

use super::number::{INVALID, Reason, float16, float32, float64, integer, number};
use crate::text_form::printable_type;

const TOO_FINE: Reason = "has more fractional digits than fit in";
const NOT_A_DAY: Reason = "has a time of day, which would be lost in";
const ZONE: Reason = "has a time zone, which would be lost in";
const NO_ZONE: Reason = "has no time zone, unlike the values from which the type was inferred, which is";

/// Whether text can hold values of a type.
pub fn can_hold(data_type: &DataType) -> bool {
    use DataType::*;
    match data_type {
        Null | Boolean | Float16 | Float32 | Float64 | Utf8 | LargeUtf8 | Utf8View => true,
        Timestamp(..) | Date32 | Date64 | Time32(_) | Time64(_) => true,
        Dictionary(_, values) => matches!(**values, Utf8 | LargeUtf8 | Utf8View),
        other => other.is_integer() || other.is_decimal(),
    }
}

/// Texts as values of `data_type`. The error message is a reason, such as [`INVALID`].
pub fn convert(texts: &StringArray, data_type: &DataType) -> Result<ArrayRef> {
    use DataType::*;
    match data_type {
        Null => each(texts, |_| Err(INVALID))?,
        Boolean => {
            let flag = |text: &str| match text {
                _ if text.eq_ignore_ascii_case("true") => Ok(true),
                _ if text.eq_ignore_ascii_case("false") => Ok(false),
                _ => Err(INVALID),
            };
            let flags = texts.iter().map(|text| text.map(flag).transpose());
            return Ok(Arc::new(flags.collect::<Result<BooleanArray, _>>().map_err(Error::invalid)?));
        }
        Int8 => return numbers::<Int8Type>(texts, integer),
        Int16 => return numbers::<Int16Type>(texts, integer),
        Int32 => return numbers::<Int32Type>(texts, integer),
        Int64 => return numbers::<Int64Type>(texts, integer),
        UInt8 => return numbers::<UInt8Type>(texts, integer),
        UInt16 => return numbers::<UInt16Type>(texts, integer),
        UInt32 => return numbers::<UInt32Type>(texts, integer),
        UInt64 => return numbers::<UInt64Type>(texts, integer),
        Float16 => return numbers::<Float16Type>(texts, float16),
        Float32 => return numbers::<Float32Type>(texts, float32),
        Float64 => return numbers::<Float64Type>(texts, float64),
        // Arrow takes a 60th second for the one before it, or for the first of the next minute.
        Timestamp(unit, zone) => each(texts, |text| match zone {
            _ if text.contains(":60") => Err(INVALID),
            None if is_zoned(text) => Err(ZONE),
            _ => fits(fraction(text) <= digits(*unit), TOO_FINE),
        })?,
        Time32(unit) | Time64(unit) => each(texts, |text| match text.contains(":60") {
            true => Err(INVALID),
            false => fits(fraction(text) <= digits(*unit), TOO_FINE),
        })?,
        Date32 | Date64 => each(texts, |text| fits(is_day(text), NOT_A_DAY))?,
        Decimal32(_, scale) | Decimal64(_, scale) | Decimal128(_, scale) | Decimal256(_, scale) => {
            let most = usize::try_from(*scale).unwrap_or(0);
            each(texts, |text| fits(number(text)?.places() <= most, TOO_FINE))?;
        }
        _ => {}
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    // A time without an offset is UTC, whatever the zone of the column.
    let in_utc = printable_type(data_type);
    let parsed = cast_with_options(texts, in_utc.as_ref().unwrap_or(data_type), &strict);
    let parsed = parsed.map_err(|_| Error::invalid(INVALID))?;
    if in_utc.is_some() { Ok(cast(&parsed, data_type)?) } else { Ok(parsed) }
}

/// Does so where the type was inferred: there, times in a zone have all said which.
pub fn convert_inferred(texts: &StringArray, data_type: &DataType) -> Result<ArrayRef> {
    if matches!(data_type, DataType::Timestamp(_, Some(_))) {
        each(texts, |text| fits(is_zoned(text), NO_ZONE))?;
    }
    convert(texts, data_type)
}

/// Texts of hexadecimal digits as bytes in `data_type`.
pub fn convert_bytes(texts: &StringArray, data_type: &DataType) -> Result<ArrayRef> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes = |text: &str| {
        let plain = text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if plain { text.as_bytes().chunks(2).map(byte).collect::<Option<Vec<u8>>>() } else { None }
    };
    let all = texts.iter().map(|text| text.map(|text| bytes(text).ok_or_else(|| Error::invalid(INVALID))).transpose());
    let all = all.collect::<Result<Vec<_>>>()?;
    let array = BinaryArray::from_iter(all);
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(&array, data_type, &strict).map_err(|_| Error::invalid(INVALID))
}

fn numbers<T: ArrowPrimitiveType>(
    texts: &StringArray,
    read: impl Fn(&str) -> Result<T::Native, Reason>,
) -> Result<ArrayRef> {
    let numbers = texts.iter().map(|text| text.map(&read).transpose());
    Ok(Arc::new(numbers.collect::<Result<PrimitiveArray<T>, _>>().map_err(Error::invalid)?))
}

fn each(texts: &StringArray, check: impl Fn(&str) -> Result<(), Reason>) -> Result<()> {
    texts.iter().flatten().try_for_each(check).map_err(Error::invalid)
}

fn fits(fits: bool, reason: Reason) -> Result<(), Reason> {
    if fits { Ok(()) } else { Err(reason) }
}

/// The digits of a fraction of a second.
fn digits(unit: TimeUnit) -> usize {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

/// The number of fractional digits, without trailing zeros.
fn fraction(text: &str) -> usize {
    let Some((_, after)) = text.split_once('.') else { return 0 };
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    after[..digits].trim_end_matches('0').len()
}

/// Whether it is a date, possibly at midnight.
fn is_day(text: &str) -> bool {
    let midnight = |rest: &str| rest.chars().all(|c| matches!(c, 'T' | 't' | ' ' | '0' | ':' | '.' | 'Z' | 'z'));
    text.get(10..).is_none_or(midnight)
}

/// Whether something follows the time of day, such as an offset or the name of a zone.
fn is_zoned(text: &str) -> bool {
    let time = |c: char| c.is_ascii_digit() || matches!(c, ':' | '.');
    text.get(10..).is_some_and(|rest| rest.trim_start_matches(['T', 't', ' ']).chars().any(|c| !time(c)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::number::{DIGITS, LARGE, ZEROS};

    #[test]
    fn lossy_conversions_are_refused() {
        use DataType::*;
        let berlin = || Timestamp(TimeUnit::Millisecond, Some("Europe/Berlin".into()));
        for (text, data_type, reason) in [
            ("2024-01-01T00:00:00.5", Timestamp(TimeUnit::Second, None), Some(TOO_FINE)),
            ("2024-01-01T00:00:00.500", Timestamp(TimeUnit::Millisecond, None), None),
            ("2024-01-01T00:00:00.5000", berlin(), None),
            ("2024-01-01T00:00:00+02:00", berlin(), None),
            ("2024-01-01T00:00:00+02:00", Timestamp(TimeUnit::Second, None), Some(ZONE)),
            ("2024-01-01 00:00:00Z", Timestamp(TimeUnit::Second, None), Some(ZONE)),
            ("2016-12-31 23:59:60", Timestamp(TimeUnit::Second, None), Some(INVALID)),
            ("2016-12-31T23:59:60.5Z", berlin(), Some(INVALID)),
            ("2024-01-01 00:00:00 Europe/Berlin", Timestamp(TimeUnit::Second, None), Some(ZONE)),
            ("2024-01-01T00:00:00.1234567890", Timestamp(TimeUnit::Nanosecond, None), None),
            ("2024-01-01T00:00:00.1234567891", Timestamp(TimeUnit::Nanosecond, None), Some(TOO_FINE)),
            ("9999-01-01T00:00:00", Timestamp(TimeUnit::Nanosecond, None), Some(INVALID)),
            ("2024-01-01", Date32, None),
            ("2024-01-01T00:00:00Z", Date32, None),
            ("2024-01-01 00:01:00", Date32, Some(NOT_A_DAY)),
            ("2024-01-01T05:00:00", Date64, Some(NOT_A_DAY)),
            ("2024-01-01", Date64, None),
            ("2024-02-30", Date32, Some(INVALID)),
            ("1.25", Decimal128(5, 2), None),
            ("1.250", Decimal128(5, 2), None),
            ("1.255", Decimal128(5, 2), Some(TOO_FINE)),
            ("01.25", Decimal128(5, 2), Some(ZEROS)),
            ("12345.00", Decimal128(5, 2), Some(INVALID)),
            ("1.5", Int64, Some(INVALID)),
            ("007", Int64, Some(ZEROS)),
            ("true", Int64, Some(INVALID)),
            ("9223372036854775808", Int64, Some(INVALID)),
            ("18446744073709551615", UInt64, None),
            ("123456789.123456789", Float64, Some(DIGITS)),
            ("1e400", Float64, Some(LARGE)),
            ("x", Null, Some(INVALID)),
            ("True", Boolean, None),
            ("1", Boolean, Some(INVALID)),
            ("10:00:00.5", Time32(TimeUnit::Second), Some(TOO_FINE)),
            ("23:59:59", Time32(TimeUnit::Second), None),
            ("24:00:00", Time32(TimeUnit::Second), Some(INVALID)),
            ("25:00:00", Time64(TimeUnit::Nanosecond), Some(INVALID)),
            ("23:59:60", Time64(TimeUnit::Nanosecond), Some(INVALID)),
            ("10:00:00Z", Time64(TimeUnit::Nanosecond), Some(INVALID)),
            ("10:00:00+02:00", Time64(TimeUnit::Nanosecond), Some(INVALID)),
        ] {
            let converted =
                convert(&StringArray::from(vec![None, Some(text)]), &data_type).map_err(|e| e.message().to_owned());
            assert_eq!(converted.as_ref().err().map(String::as_str), reason, "{text} as {data_type}");
            assert!(converted.is_err() || converted.unwrap().data_type() == &data_type);
        }
    }

    #[test]
    fn bytes_are_pairs_of_hexadecimal_digits() {
        let bytes = |text: &str| convert_bytes(&StringArray::from(vec![text]), &DataType::Binary).is_ok();
        assert!(bytes("00ff") && bytes(""));
        assert!(!bytes("0") && !bytes("0g") && !bytes("é"));
    }
}
