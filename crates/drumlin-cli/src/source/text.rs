//! Conversion of text to the types of columns. A conversion that would lose something (a fraction of a second, digits of a
//! decimal, a time of day) is an error; arrow's parsers truncate silently.

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use drumlin::{Error, Result};

use crate::text_form::printable_type;

/// Why a value does not fit. The caller, which knows the line, puts the value before it and the type after it.
pub const INVALID: &str = "is not a valid";
const TOO_FINE: &str = "has more fractional digits than";
const NOT_A_DAY: &str = "has a time of day, which does not fit";

/// The parser that reads a column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Parser {
    /// Refuses 1.5 as an integer.
    Csv,
    /// Truncates 1.5 to the integer 1, so integers are decoded as text.
    Json,
}

impl Parser {
    /// The type as which a column is decoded before [`convert`] makes it `data_type`; `None` if the format cannot hold it.
    pub fn decoded(self, data_type: &DataType) -> Option<DataType> {
        use DataType::*;
        let within = |field: &FieldRef| {
            let data_type = self.decoded(field.data_type())?;
            Some(FieldRef::new(Field::clone(field).with_data_type(data_type)))
        };
        match (self, data_type) {
            (_, Timestamp(..) | Date32 | Date64 | Time32(_) | Time64(_) | Utf8 | LargeUtf8 | Utf8View) => Some(Utf8),
            (_, Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..)) => Some(Utf8),
            (_, Dictionary(_, values)) if matches!(**values, Utf8 | LargeUtf8 | Utf8View) => Some(Utf8),
            (_, Boolean | Null | Float16 | Float32 | Float64) => Some(data_type.clone()),
            (Parser::Csv, other) => other.is_integer().then(|| other.clone()),
            (Parser::Json, other) if other.is_integer() => Some(Utf8),
            (Parser::Json, List(field)) => within(field).map(List),
            (Parser::Json, LargeList(field)) => within(field).map(LargeList),
            (Parser::Json, FixedSizeList(field, n)) => within(field).map(|field| FixedSizeList(field, *n)),
            (Parser::Json, Struct(fields)) => fields.iter().map(within).collect::<Option<_>>().map(Struct),
            (Parser::Json, Map(entries, sorted)) => within(entries).map(|entries| Map(entries, *sorted)),
            (Parser::Json, Binary | LargeBinary | BinaryView | FixedSizeBinary(_)) => Some(data_type.clone()),
            _ => None,
        }
    }
}

/// Converts a column from [`Parser::decoded`] to `data_type`. The error message is a reason, such as [`INVALID`].
pub fn convert(column: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if column.data_type() == data_type {
        return Ok(column.clone());
    }
    check(column, data_type)?;
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    // A time without an offset is UTC, whatever the zone of the column.
    let in_utc = printable_type(data_type);
    let parsed = cast_with_options(column, in_utc.as_ref().unwrap_or(data_type), &strict);
    let parsed = parsed.map_err(|_| Error::invalid(INVALID))?;
    if in_utc.is_some() { Ok(cast(&parsed, data_type)?) } else { Ok(parsed) }
}

/// Fails if the conversion would lose something.
fn check(column: &ArrayRef, data_type: &DataType) -> Result<()> {
    use DataType::*;
    match data_type {
        Timestamp(unit, _) | Time32(unit) | Time64(unit) => {
            let most = match unit {
                TimeUnit::Second => 0,
                TimeUnit::Millisecond => 3,
                TimeUnit::Microsecond => 6,
                TimeUnit::Nanosecond => 9,
            };
            each(column, |text| fraction(text) <= most, TOO_FINE)
        }
        Date32 => each(column, is_day, NOT_A_DAY),
        Date64 => each(column, |text| fraction(text) <= 3, TOO_FINE),
        Decimal32(_, scale) | Decimal64(_, scale) | Decimal128(_, scale) | Decimal256(_, scale) => {
            let most = usize::try_from(*scale).unwrap_or(0);
            each(column, |text| fraction(text) <= most, TOO_FINE)
        }
        List(field) => check(column.as_list::<i32>().values(), field.data_type()),
        LargeList(field) => check(column.as_list::<i64>().values(), field.data_type()),
        FixedSizeList(field, _) => check(column.as_fixed_size_list().values(), field.data_type()),
        Struct(fields) => {
            let columns = column.as_struct().columns().iter().zip(fields);
            columns.into_iter().try_for_each(|(column, field)| check(column, field.data_type()))
        }
        Map(entries, _) => match entries.data_type() {
            Struct(fields) => {
                let map = column.as_map();
                check(map.keys(), fields[0].data_type())?;
                check(map.values(), fields[1].data_type())
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

fn each(column: &ArrayRef, fits: impl Fn(&str) -> bool, reason: &str) -> Result<()> {
    let Some(texts) = column.as_any().downcast_ref::<StringArray>() else { return Ok(()) };
    if texts.iter().flatten().all(fits) { Ok(()) } else { Err(Error::invalid(reason)) }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn lossy_conversions_are_refused() {
        use DataType::*;
        for (text, data_type, reason) in [
            ("2024-01-01T00:00:00.5", Timestamp(TimeUnit::Second, None), Some(TOO_FINE)),
            ("2024-01-01T00:00:00.500", Timestamp(TimeUnit::Millisecond, None), None),
            ("2024-01-01T00:00:00.5000", Timestamp(TimeUnit::Millisecond, Some("Europe/Berlin".into())), None),
            ("2024-01-01T00:00:00.1234567890", Timestamp(TimeUnit::Nanosecond, None), None),
            ("2024-01-01T00:00:00.1234567891", Timestamp(TimeUnit::Nanosecond, None), Some(TOO_FINE)),
            ("2024-01-01", Date32, None),
            ("2024-01-01T00:00:00Z", Date32, None),
            ("2024-01-01 00:01:00", Date32, Some(NOT_A_DAY)),
            ("2024-02-30", Date32, Some(INVALID)),
            ("1.25", Decimal128(5, 2), None),
            ("1.250", Decimal128(5, 2), None),
            ("1.255", Decimal128(5, 2), Some(TOO_FINE)),
            ("12345.00", Decimal128(5, 2), Some(INVALID)),
            ("1.5", Int64, Some(INVALID)),
            ("true", Int64, Some(INVALID)),
            ("9223372036854775808", Int64, Some(INVALID)),
            ("18446744073709551615", UInt64, None),
            ("10:00:00.5", Time32(TimeUnit::Second), Some(TOO_FINE)),
        ] {
            let column: ArrayRef = Arc::new(StringArray::from(vec![None, Some(text)]));
            let converted = convert(&column, &data_type).map_err(|e| e.message().to_owned());
            assert_eq!(converted.as_ref().err().map(String::as_str), reason, "{text} as {data_type}");
            assert!(converted.is_err() || converted.unwrap().data_type() == &data_type);
        }
    }
}
