//! The types of CSV columns, inferred from their values: one in which each value prints as it was, or is the same number or time;
//! else text.
//!
//! So numbers with zeros or a plus in front are text, and numbers with more digits than a float has; times are in a zone if all have
//! the same offset, and text if they have different ones, or only some have one.

use std::sync::Arc;

use arrow::array::StringArray;
use arrow::datatypes::{DataType, TimeUnit};

use super::number::{float64, integer};
use super::text::convert;

/// What the values of a column have been so far.
#[derive(Default)]
pub struct Seen {
    texts: bool,
    flags: bool,
    integers: bool,
    floats: bool,
    /// An integer that a float would round.
    long: bool,
    dates: bool,
    times: Option<(TimeUnit, Option<Arc<str>>)>,
}

impl Seen {
    /// Notes the values of some rows.
    pub fn note(&mut self, texts: &StringArray) {
        for text in texts.iter().flatten() {
            if self.texts {
                return;
            }
            self.note_one(text);
        }
        // Whether the times are real and in range.
        let data_type = self.data_type();
        if data_type.is_temporal() && convert(texts, &data_type).is_err() {
            self.texts = true;
        }
    }

    fn note_one(&mut self, text: &str) {
        if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
            self.flags = true;
        } else if integer::<i64>(text).is_ok() {
            self.integers = true;
            self.long |= float64(text).is_err();
        } else if is_float(text) {
            self.floats = true;
        } else if is_date(text.as_bytes()) {
            self.dates = true;
        } else if let Some((unit, zone)) = time(text) {
            match &mut self.times {
                None => self.times = Some((unit, zone)),
                Some((known, same)) if *same == zone => *known = unit.max(*known),
                Some(_) => self.texts = true,
            }
        } else {
            self.texts = true;
        }
    }

    /// The type of all of them; null if there were none.
    pub fn data_type(&self) -> DataType {
        let numbers = self.integers || self.floats;
        match (self.texts, self.flags, numbers, self.dates || self.times.is_some()) {
            (false, false, false, false) => DataType::Null,
            (false, true, false, false) => DataType::Boolean,
            (false, false, true, false) if !self.floats => DataType::Int64,
            (false, false, true, false) if !self.long => DataType::Float64,
            (false, false, false, true) => match &self.times {
                None => DataType::Date32,
                // A date has no offset.
                Some((_, Some(_))) if self.dates => DataType::Utf8,
                Some((unit, zone)) => DataType::Timestamp(*unit, zone.clone()),
            },
            _ => DataType::Utf8,
        }
    }
}

/// Whether it is a number that a float holds, and no integer: one of those that an integer does not hold is text.
fn is_float(text: &str) -> bool {
    let named = matches!(text, "NaN" | "nan" | "inf" | "-inf");
    let digits = text.bytes().any(|byte| byte.is_ascii_digit());
    let fraction = text == "-0" || text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
    named || digits && fraction && float64(text).is_ok()
}

/// Whether the bytes have the form of `form`, in which a 0 is any digit.
fn has_form(bytes: &[u8], form: &[u8]) -> bool {
    let fits = |(byte, form): (&u8, &u8)| byte == form || *form == b'0' && byte.is_ascii_digit();
    bytes.len() == form.len() && bytes.iter().zip(form).all(fits)
}

fn is_date(bytes: &[u8]) -> bool {
    has_form(bytes, b"0000-00-00")
}

/// The unit that holds a time, and its zone, if it has an offset.
fn time(text: &str) -> Option<(TimeUnit, Option<Arc<str>>)> {
    let (day, rest) = text.split_at_checked(10)?;
    let (clock, rest) = rest.split_at_checked(9)?;
    let bytes = clock.as_bytes();
    if !is_date(day.as_bytes()) || !matches!(bytes[0], b'T' | b' ') || !has_form(&bytes[1..], b"00:00:00") {
        return None;
    }
    let digits = rest.strip_prefix('.').map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    let zone = if rest.starts_with('.') { &rest[1 + digits..] } else { rest };
    let unit = match digits {
        0 if rest.starts_with('.') => return None,
        0 => TimeUnit::Second,
        1..=3 => TimeUnit::Millisecond,
        4..=6 => TimeUnit::Microsecond,
        7..=9 => TimeUnit::Nanosecond,
        _ => return None,
    };
    Some((unit, offset(zone)?))
}

/// The zone that an offset stands for; none for none.
fn offset(text: &str) -> Option<Option<Arc<str>>> {
    let bytes = text.as_bytes();
    let (sign, hours) = (text.get(..1), text.get(1..3));
    let minutes = match bytes.len() {
        0 => return Some(None),
        1 => return matches!(text, "Z" | "z").then(|| Some("UTC".into())),
        3 => "00",
        5 => text.get(3..)?,
        6 if bytes[3] == b':' => text.get(4..)?,
        _ => return None,
    };
    let (sign, hours) = (sign.filter(|sign| matches!(*sign, "+" | "-"))?, hours?);
    if !has_form(hours.as_bytes(), b"00") || !has_form(minutes.as_bytes(), b"00") {
        return None;
    }
    let zone = format!("{sign}{hours}:{minutes}");
    Some(Some(if hours == "00" && minutes == "00" { "UTC".into() } else { zone.into() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_one_in_which_each_value_prints_as_it_was() {
        let zoned = |unit, zone: &str| DataType::Timestamp(unit, Some(zone.into()));
        for (texts, data_type) in [
            (&["", ""][..], DataType::Null),
            (&["true", "False", ""], DataType::Boolean),
            (&["1", "-7"], DataType::Int64),
            (&["1", "-0"], DataType::Float64),
            (&["1", "1.10", "NaN"], DataType::Float64),
            (&["9007199254740993", "1"], DataType::Int64),
            (&["9007199254740993", "1.5"], DataType::Utf8),
            (&["123456789.123456789"], DataType::Utf8),
            (&["1e400"], DataType::Utf8),
            (&["9223372036854775808"], DataType::Utf8),
            (&["01234", "90210"], DataType::Utf8),
            (&["+4917012345"], DataType::Utf8),
            (&["01.5"], DataType::Utf8),
            (&[" 8 "], DataType::Utf8),
            (&["1_000"], DataType::Utf8),
            (&["e5"], DataType::Utf8),
            (&["1", "true"], DataType::Utf8),
            (&["2024-01-01", ""], DataType::Date32),
            (&["2024-02-30"], DataType::Utf8),
            (&["2024-01-01", "2024-01-01T01:02:03"], DataType::Timestamp(TimeUnit::Second, None)),
            (&["2024-01-01 01:02:03.5", "2024-01-01T01:02:03.1234"], DataType::Timestamp(TimeUnit::Microsecond, None)),
            (&["2024-01-01T25:02:03"], DataType::Utf8),
            (&["2024-01-01T01:02:03Z", "2024-01-01T01:02:03+00:00"], zoned(TimeUnit::Second, "UTC")),
            (&["2024-01-01T01:02:03+02:00", "2024-01-01T01:02:03.5+0200"], zoned(TimeUnit::Millisecond, "+02:00")),
            (&["2024-01-01T01:02:03+02:00", "2024-01-01T01:02:03+01:00"], DataType::Utf8),
            (&["2024-01-01T01:02:03+02:00", "2024-01-01T01:02:03"], DataType::Utf8),
            (&["2024-01-01T01:02:03Z", "2024-01-01"], DataType::Utf8),
            (&["2024-01-01T01:02:03 Europe/Berlin"], DataType::Utf8),
            (&["2024-01-01T01:02:03.1234567890"], DataType::Utf8),
            (&["9999-01-01T01:02:03.123456789"], DataType::Utf8),
            (&["23:59:59"], DataType::Utf8),
        ] {
            let mut seen = Seen::default();
            seen.note(&texts.iter().map(|text| (!text.is_empty()).then_some(*text)).collect());
            assert_eq!(seen.data_type(), data_type, "{texts:?}");
        }
    }
}
