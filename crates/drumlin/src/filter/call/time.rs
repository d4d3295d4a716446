//! Parts of dates and times, and the beginnings of their years, months and so on: as the clocks of their time zone show them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array};
use arrow::datatypes::DataType;
use chrono::{Datelike, NaiveDateTime, NaiveTime, Timelike};

use crate::base::{Error, Result, TypeName};
use crate::filter::clock::{ZoneClock, nanos, since_midnight};
use crate::filter::text::names::clip;
use crate::filter::text::scalar::TimePart;
use crate::filter::{column, expression};

/// What a time is cut to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TruncateUnit {
    Year,
    Quarter,
    Month,
    /// From a Monday.
    Week,
    /// A part of a day, in nanoseconds, or a day.
    Fixed(i64),
}

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

const LENGTHS: [(&str, TruncateUnit); 10] = [
    ("year", TruncateUnit::Year),
    ("quarter", TruncateUnit::Quarter),
    ("month", TruncateUnit::Month),
    ("week", TruncateUnit::Week),
    ("day", TruncateUnit::Fixed(DAY)),
    ("hour", TruncateUnit::Fixed(3600 * SECOND)),
    ("minute", TruncateUnit::Fixed(60 * SECOND)),
    ("second", TruncateUnit::Fixed(SECOND)),
    ("millisecond", TruncateUnit::Fixed(SECOND / 1000)),
    ("microsecond", TruncateUnit::Fixed(1000)),
];

impl TruncateUnit {
    /// Reads its name, or that of many.
    pub fn parse(text: &str) -> Result<Self> {
        let one = text.strip_suffix('s').unwrap_or(text);
        LENGTHS.iter().find(|(name, _)| *name == one).map(|(_, length)| *length).ok_or_else(|| {
            Error::invalid(format!(
                "'{}' is no length of time; expected {}",
                clip(text),
                LENGTHS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
            ))
        })
    }
}

/// A part of each value, which is of a type with this clock, or a time of day.
pub fn part(part: TimePart, clock: Option<&ZoneClock>, values: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    match clock {
        Some(clock) => each(values, data_type, |value| Some(of_date(part, clock.local(value)?))),
        None => {
            let unit = match data_type {
                DataType::Time32(unit) | DataType::Time64(unit) => SECOND / nanos(*unit),
                _ => return Err(Error::invalid("a part of a time is taken of dates, times and timestamps")),
            };
            each(values, data_type, |value| {
                let second = value.div_euclid(unit);
                Some(match part {
                    TimePart::Hour => second / 3600,
                    TimePart::Minute => second / 60 % 60,
                    _ => second % 60,
                })
            })
        }
    }
}

fn of_date(part: TimePart, time: NaiveDateTime) -> i64 {
    i64::from(match part {
        TimePart::Year => return time.year().into(),
        TimePart::Quarter => time.month0() / 3 + 1,
        TimePart::Month => time.month(),
        TimePart::Week => time.iso_week().week(),
        TimePart::Day => time.day(),
        TimePart::DayOfYear => time.ordinal(),
        TimePart::DayOfWeek => time.weekday().num_days_from_sunday(),
        TimePart::IsoDayOfWeek => time.weekday().number_from_monday(),
        TimePart::Hour => time.hour(),
        TimePart::Minute => time.minute(),
        TimePart::Second => time.second(),
    })
}

/// The beginning of the year, month and so on that each value is in, in the same type.
pub fn truncate(length: TruncateUnit, clock: &ZoneClock, values: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    let begins = each(values, data_type, |value| match (length, clock.unit) {
        (TruncateUnit::Fixed(..DAY), None) => Some(value),
        (TruncateUnit::Fixed(length @ ..DAY), Some(unit)) => {
            value.checked_sub(since_midnight(clock.local(value)?.time()) % length / unit)
        }
        _ => {
            let day = clock.local(value)?.date();
            let begin = match length {
                TruncateUnit::Year => day.with_ordinal(1)?,
                TruncateUnit::Quarter => day.with_day(1)?.with_month0(day.month0() / 3 * 3)?,
                TruncateUnit::Month => day.with_day(1)?,
                TruncateUnit::Week => {
                    day.checked_sub_days(chrono::Days::new(day.weekday().num_days_from_monday().into()))?
                }
                TruncateUnit::Fixed(_) => day,
            };
            clock.instant(begin.and_time(NaiveTime::MIN))
        }
    })?;
    expression::of_integers(&begins, data_type)
}

/// What comes of each value that is not null.
///
/// # Errors
/// `InvalidArgument` naming a value of which nothing comes.
pub fn each(values: &ArrayRef, data_type: &DataType, of: impl Fn(i64) -> Option<i64>) -> Result<ArrayRef> {
    let values = column::plain(values)?;
    let integers = column::narrow_integers(&values)
        .ok_or_else(|| Error::schema_mismatch(format!("{} has no time", TypeName(values.data_type()))))?;
    let one = |(row, value): (usize, &i64)| {
        if values.is_null(row) {
            return Ok(0);
        }
        of(*value).ok_or_else(|| {
            Error::invalid(format!(
                "{value} in the units of {} is too far from 1970 for the calendar",
                TypeName(data_type)
            ))
        })
    };
    let computed = integers.iter().enumerate().map(one).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Int64Array::try_new(computed.into(), values.nulls().cloned())?))
}
