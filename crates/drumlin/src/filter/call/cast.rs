//! Values in another type.
//!
//! Invariant: a value that the type cannot hold is an error that names it, or null if that was asked for; numbers are rounded to
//! the places of their type, halves away from zero (of doubles to the even whole number, as DuckDB does), and times are cut to the
//! units of theirs, towards the past. A time on clocks that show it twice is the first.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, FixedSizeBinaryBuilder, Float64Array, LargeBinaryArray, LargeStringArray,
    new_null_array,
};
use arrow::compute::concat;
use arrow::datatypes::{DataType, Float64Type};

use super::time::each;
use crate::base::{Error, Result, TypeName};
use crate::filter::clock::{ZoneClock, nanos, since_midnight, time_text};
use crate::filter::expression::exactly;
use crate::filter::kind::{Kind, special_float};
use crate::filter::text::moment::Moment;
use crate::filter::text::names::clip;
use crate::filter::text::number::{Number, power_of_ten};
use crate::filter::text::span;
use crate::filter::text::syntax::Literal;
use crate::filter::{arithmetic, column, expression};

/// The bytes of a UUID.
const UUID_BYTES: i32 = 16;

/// The values in the type `to`.
pub fn cast(values: &ArrayRef, from: &DataType, to: &DataType) -> Result<ArrayRef> {
    let values = &column::plain(values)?;
    if from == to {
        return exactly(values, to);
    }
    let kinds = (Kind::of(from), Kind::of(to));
    match kinds {
        (Some(Kind::Null), _) => Ok(new_null_array(to, values.len())),
        (Some(Kind::Number { .. }), Some(Kind::Bool)) => {
            let integers = column::integers(values).ok_or_else(|| unfit(values))?;
            let truths = integers.iter().map(|value| *value != 0).collect::<Vec<_>>();
            Ok(Arc::new(BooleanArray::new(truths.into(), values.nulls().cloned())))
        }
        (Some(Kind::Float), Some(Kind::Bool)) => exactly(values, to),
        (Some(Kind::Float), Some(Kind::Number { scale: 0 })) => {
            let even: Float64Array = doubles(values)?.iter().map(|value| value.map(f64::round_ties_even)).collect();
            let numbers = arithmetic::from_array(Arc::new(even), Some(Kind::Float))?;
            expression::assigned(&numbers, values.len(), to)
        }
        (Some(Kind::Bool), Some(Kind::Number { .. } | Kind::Float)) => {
            let integers = exactly(values, &DataType::Int64)?;
            cast(&integers, &DataType::Int64, to)
        }
        (Some(Kind::Number { .. } | Kind::Float), Some(Kind::Number { .. } | Kind::Float)) => {
            let numbers = arithmetic::from_array(values.clone(), Kind::of(from))?;
            expression::assigned(&numbers, values.len(), to)
        }
        (Some(Kind::Instant { .. }), Some(Kind::Instant { .. })) => instants(values, from, to),
        (Some(Kind::Instant { .. }), Some(Kind::Time { .. })) => {
            let (clock, DataType::Time32(unit) | DataType::Time64(unit)) = (clock(from)?, to) else {
                return Err(unfit(values));
            };
            let times = each(values, from, |value| Some(since_midnight(clock.local(value)?.time()) / nanos(*unit)))?;
            expression::of_integers(&times, to)
        }
        (
            Some(Kind::Time { scale: own } | Kind::Duration { scale: own }),
            Some(Kind::Time { scale } | Kind::Duration { scale }),
        ) => {
            let power = power_of_ten((scale - own).abs()).ok_or_else(|| unfit(values))?;
            let moved = |value: i64| {
                let value = i128::from(value);
                i64::try_from(if scale >= own { value * power } else { value.div_euclid(power) }).ok()
            };
            expression::of_integers(&each(values, from, moved)?, to)
        }
        (Some(Kind::Text), Some(Kind::Text)) => exactly(values, to),
        (Some(Kind::Text), Some(_)) => read(values, to, false),
        (Some(_), Some(Kind::Text)) => written(values, from, to),
        _ => exactly(values, to),
    }
}

/// The same, with null for each value that has none in the type.
pub fn try_cast(values: &ArrayRef, from: &DataType, to: &DataType) -> Result<ArrayRef> {
    if Kind::of(from) == Some(Kind::Text) && Kind::of(to) != Some(Kind::Text) {
        // Strings are read one by one.
        if let Ok(read) = read(&column::plain(values)?, to, true) {
            return Ok(read);
        }
    }
    match (cast(values, from, to), values.len()) {
        (Ok(cast), _) => Ok(cast),
        (Err(_), 0 | 1) => Ok(new_null_array(to, values.len())),
        // By halves, so that few of them are cast alone.
        (Err(_), rows) => {
            let [first, second] = [values.slice(0, rows / 2), values.slice(rows / 2, rows - rows / 2)]
                .map(|half| try_cast(&half, from, to));
            Ok(concat(&[first?.as_ref(), second?.as_ref()])?)
        }
    }
}

fn doubles(values: &ArrayRef) -> Result<Float64Array> {
    Ok(exactly(values, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
}

/// Values as SQL writes them, which the language of filters reads again.
fn written(values: &ArrayRef, from: &DataType, to: &DataType) -> Result<ArrayRef> {
    let texts: LargeStringArray = match Kind::of(from) {
        Some(Kind::Float) => {
            let plain = exactly(values, &DataType::LargeUtf8)?;
            plain.as_string::<i64>().iter().map(|text| text.map(double_text)).collect()
        }
        Some(Kind::Instant { .. }) => {
            let clock = clock(from)?;
            let times = column::narrow_integers(values).ok_or_else(|| unfit(values))?;
            let one = |(row, value): (usize, &i64)| {
                if values.is_null(row) {
                    return Ok(None);
                }
                clock.written(*value).map(Some).ok_or_else(|| {
                    Error::invalid(format!("{value} in the units of {} is too far from 1970", TypeName(from)))
                })
            };
            times.iter().enumerate().map(one).collect::<Result<Vec<_>>>()?.into_iter().collect()
        }
        Some(Kind::Time { scale }) => {
            let times = column::narrow_integers(values).ok_or_else(|| unfit(values))?;
            let one =
                |(row, value): (usize, &i64)| values.is_valid(row).then(|| time_text(*value, scale.unsigned_abs()));
            times.iter().enumerate().map(one).collect()
        }
        Some(Kind::Binary) => {
            let bytes = exactly(values, &DataType::LargeBinary)?;
            let one = |bytes: Option<&[u8]>| -> Result<Option<String>> {
                let Some(bytes) = bytes else { return Ok(None) };
                match std::str::from_utf8(bytes) {
                    Ok(text) => Ok(Some(text.to_owned())),
                    Err(_) => Err(Error::invalid(format!("{} is not valid UTF-8", Literal::Binary(bytes.to_vec())))),
                }
            };
            let texts = bytes.as_binary::<i64>().iter().map(one).collect::<Result<Vec<_>>>()?;
            texts.into_iter().collect()
        }
        _ => return exactly(values, to),
    };
    exactly(&(Arc::new(texts) as ArrayRef), to)
}

/// A double as DuckDB writes it: `nan`, `inf`, and a plus before a positive power of ten.
fn double_text(text: &str) -> String {
    match text.split_once('e') {
        Some((digits, power)) if !power.starts_with('-') => format!("{digits}e+{power}"),
        _ => text.to_ascii_lowercase(),
    }
}

/// Dates and timestamps: the same instant, or, where only one type has a time zone, the same time on its clocks.
fn instants(values: &ArrayRef, from: &DataType, to: &DataType) -> Result<ArrayRef> {
    let (own, other) = (clock(from)?, clock(to)?);
    let both = own.has_zone() && other.has_zone();
    let moved = each(values, from, |value| match both {
        true => other.of_utc(own.utc(value)?),
        false => other.instant(own.local(value)?),
    })?;
    expression::of_integers(&moved, to)
}

fn clock(data_type: &DataType) -> Result<ZoneClock> {
    match ZoneClock::new(data_type) {
        Some(Ok(clock)) => Ok(clock),
        _ => Err(Error::invalid(format!("{} has no clock that is known", TypeName(data_type)))),
    }
}

/// What strings say, in the type `to`; null for those that say nothing of it, if `lenient`.
fn read(values: &ArrayRef, to: &DataType, lenient: bool) -> Result<ArrayRef> {
    let strings = arrow::compute::cast(values, &DataType::LargeUtf8)?;
    let strings = strings.as_string::<i64>();
    let refused = |text: &str| Error::invalid(format!("'{}' is not a valid {}", clip(text), TypeName(to)));
    fn all<T>(
        strings: &LargeStringArray,
        of: impl Fn(&str) -> Option<T>,
        refused: Option<&dyn Fn(&str) -> Error>,
    ) -> Result<Vec<Option<T>>> {
        let one = |text: Option<&str>| match (text.and_then(&of), text, refused) {
            (None, Some(text), Some(refused)) => Err(refused(text)),
            (value, ..) => Ok(value),
        };
        strings.iter().map(one).collect()
    }
    let refused: Option<&dyn Fn(&str) -> Error> = if lenient { None } else { Some(&refused) };
    let keys = |of: &dyn Fn(&str) -> Option<i128>| -> Result<ArrayRef> {
        expression::integers(all(strings, of, refused)?, to)
    };
    match (Kind::of(to), to) {
        (Some(Kind::Number { scale }), _) => keys(&|text| rounded(&number(text)?, scale)),
        (Some(Kind::Float), _) => {
            let float = |text: &str| special_float(text).or_else(|| Some(number(text)?.nearest()));
            expression::floats(all(strings, float, refused)?, to)
        }
        (Some(Kind::Bool), _) => Ok(Arc::new(BooleanArray::from(all(strings, truth, refused)?))),
        (Some(Kind::Instant { scale, step, zoned }), _) => {
            // A text without a zone is UTC, as in a comparison.
            keys(&|text| {
                let moment = Moment::timestamp(text).filter(|moment| zoned || !moment.zoned)?;
                let (value, _) = Number::scaled(moment.value, moment.scale).floor(scale);
                Some(value.div_euclid(step.into()))
            })
        }
        (Some(Kind::Time { scale }), _) => {
            keys(&|text| Moment::time(text).map(|time| Number::scaled(time.value, time.scale).floor(scale).0))
        }
        (Some(Kind::Duration { scale }), _) => keys(&|text| Some(Number::scaled(span::parse(text)?, 9).floor(scale).0)),
        (Some(Kind::Binary), DataType::FixedSizeBinary(UUID_BYTES)) => {
            let mut made = FixedSizeBinaryBuilder::with_capacity(strings.len(), UUID_BYTES);
            for bytes in all(strings, uuid, refused)? {
                match bytes {
                    Some(bytes) => made.append_value(bytes)?,
                    None => made.append_null(),
                }
            }
            Ok(Arc::new(made.finish()))
        }
        (Some(Kind::Binary), _) => {
            let bytes: LargeBinaryArray = strings.iter().map(|text| text.map(str::as_bytes)).collect();
            exactly(&(Arc::new(bytes) as ArrayRef), to)
        }
        _ => exactly(values, to),
    }
}

/// A number as SQL writes it, with a sign.
fn number(text: &str) -> Option<Number> {
    let text = text.trim();
    match text.strip_prefix('-') {
        Some(digits) => Number::parse(digits).map(Number::negated),
        None => Number::parse(text.strip_prefix('+').unwrap_or(text)),
    }
}

/// A number in units of a scale, halves away from zero. `None` beyond 128 bits.
fn rounded(number: &Number, scale: i32) -> Option<i128> {
    let (floor, exact) = number.floor(scale);
    if floor == i128::MIN || floor == i128::MAX {
        return None;
    }
    if exact {
        return Some(floor);
    }
    // Twice the part that was cut off, compared with a unit.
    let half = Number::scaled(floor.checked_mul(10)?.checked_add(5)?, scale + 1);
    Some(match number.compare(&half) {
        std::cmp::Ordering::Less => floor,
        std::cmp::Ordering::Greater => floor + 1,
        std::cmp::Ordering::Equal => floor + i128::from(floor >= 0),
    })
}

fn truth(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "t" | "yes" | "y" | "on" | "1" => Some(true),
        "false" | "f" | "no" | "n" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// The bytes of a UUID: 32 hexadecimal digits, with hyphens and braces as they are usual.
fn uuid(text: &str) -> Option<[u8; UUID_BYTES as usize]> {
    let text = text.trim().trim_start_matches('{').trim_end_matches('}');
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let hyphens: Vec<usize> = text.match_indices('-').map(|(at, _)| at).collect();
    if digits.len() != 32 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    if !hyphens.is_empty() && hyphens != [8, 13, 18, 23] {
        return None;
    }
    Some(u128::from_str_radix(&digits, 16).ok()?.to_be_bytes())
}

fn unfit(values: &ArrayRef) -> Error {
    Error::schema_mismatch(format!(
        "the cast was bound to a column of another type than {}",
        TypeName(values.data_type())
    ))
}
