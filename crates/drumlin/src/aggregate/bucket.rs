//! Buckets of time: of a fixed length, counted from an origin, or of the calendar in a time zone, where a day may have 23 or 25
//! hours.

use std::collections::HashMap;
use std::fmt;

use arrow::array::{Array, ArrayRef, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use chrono::{Datelike, Days, Duration, Months, NaiveDate, NaiveDateTime};
use serde::{Deserialize, Serialize};

use super::codes::{CHUNK, RowCodes};
use crate::base::{Error, Result, TypeName};
use crate::filter::{ZoneClock, narrow_integers, plain_values};

/// The length of buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Length {
    /// Nanoseconds.
    Fixed(i64),
    /// Days of the calendar.
    Days(u32),
    /// Months of the calendar.
    Months(u32),
}

impl fmt::Display for Length {
    /// As [`Length::parse`] takes it, in the longest unit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let in_units = |length: i64, units: &[(i64, &'static str)]| {
            let fits = units.iter().find(|(unit, _)| length % unit == 0);
            fits.map(|(unit, name)| format!("{}{name}", length / unit)).unwrap_or_default()
        };
        let text = match self {
            Self::Fixed(length) => in_units(
                *length,
                &[
                    (3_600_000_000_000, "h"),
                    (60_000_000_000, "m"),
                    (1_000_000_000, "s"),
                    (1_000_000, "ms"),
                    (1000, "us"),
                    (1, "ns"),
                ],
            ),
            Self::Days(days) => in_units(i64::from(*days), &[(7, "w"), (1, "d")]),
            Self::Months(months) => in_units(i64::from(*months), &[(12, "y"), (3, "q"), (1, "mo")]),
        };
        f.write_str(&text)
    }
}

impl Length {
    /// A number and a unit: `ns`, `us`, `ms`, `s`, `m` or `min`, `h`; of the calendar `d`, `w` (from Monday), `mo`, `q` and `y`.
    ///
    /// # Errors
    /// `InvalidArgument` if it is not that, zero, or too long.
    pub fn parse(text: &str) -> Result<Self> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = (&text[..digits], text[digits..].trim());
        let bad = || {
            Error::invalid(format!(
                "'{text}' is not a length of time; expected a number and one of ns, us, ms, s, m, h, d, w, mo, q or y, \
                 such as '5m'"
            ))
        };
        let number: u32 = if number.is_empty() { 1 } else { number.parse().map_err(|_| bad())? };
        let times = |factor: i64| i64::from(number).checked_mul(factor).ok_or_else(bad);
        let many = |factor: u32| number.checked_mul(factor).filter(|n| *n <= 1_000_000).ok_or_else(bad);
        let length = match unit {
            "ns" => Self::Fixed(times(1)?),
            "us" => Self::Fixed(times(1000)?),
            "ms" => Self::Fixed(times(1_000_000)?),
            "s" => Self::Fixed(times(1_000_000_000)?),
            "m" | "min" => Self::Fixed(times(60_000_000_000)?),
            "h" => Self::Fixed(times(3_600_000_000_000)?),
            "d" => Self::Days(many(1)?),
            "w" => Self::Days(many(7)?),
            "mo" => Self::Months(many(1)?),
            "q" => Self::Months(many(3)?),
            "y" => Self::Months(many(12)?),
            _ => return Err(bad()),
        };
        if number == 0 { Err(bad()) } else { Ok(length) }
    }
}

/// Buckets of time, by the values of a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Every {
    /// The column: timestamps or dates.
    pub column: String,
    /// How long they are.
    pub length: Length,
    /// Where one of them begins, in the units of the column. Default: the beginning of 1970, for weeks its first Monday, for days and
    /// longer ones in the time zone of the column.
    pub origin: Option<i64>,
    /// Whether a bucket has its end rather than its beginning.
    pub closed_right: bool,
    /// Whether a bucket is called by its end rather than its beginning.
    pub label_right: bool,
}

/// Finds the buckets of values of one type.
#[derive(Clone, Debug)]
pub struct Buckets {
    column: String,
    length: Length,
    origin: Option<i64>,
    closed_right: bool,
    label_right: bool,
    clock: ZoneClock,
}

/// The buckets of a batch's rows.
pub struct Labels {
    /// A null's is the last.
    pub codes: RowCodes,
    /// In the units of the column.
    labels: Vec<i64>,
}

impl Labels {
    /// The labels of some rows, as values of the column, which is of type `data_type`.
    pub fn picked(&self, rows: &[u32], data_type: &DataType) -> Result<ArrayRef> {
        let label = |row: &u32| self.labels.get(self.codes.of_rows[*row as usize] as usize).copied();
        let labels: Int64Array = rows.iter().map(label).collect();
        match data_type {
            DataType::Date32 => Ok(cast(&cast(&labels, &DataType::Int32)?, data_type)?),
            _ => Ok(cast(&labels, data_type)?),
        }
    }
}

impl Buckets {
    /// Buckets of a column of type `data_type`. `InvalidArgument` if there are none.
    pub fn new(every: &Every, data_type: &DataType) -> Result<Self> {
        let Every { column, length, origin, closed_right, label_right } = every;
        let data_type = match data_type {
            DataType::Dictionary(_, values) => values.as_ref(),
            other => other,
        };
        // Clocks do not matter to lengths that are the same everywhere.
        let read = match (data_type, length) {
            (DataType::Timestamp(unit, _), Length::Fixed(_)) => &DataType::Timestamp(*unit, None),
            _ => data_type,
        };
        let clock = match ZoneClock::new(read) {
            Some(Ok(clock)) => clock,
            Some(Err(zone)) => {
                return Err(Error::invalid(format!(
                    "column '{column}' has the time zone '{zone}', which is not known, so the beginning of its days is \
                     not known either; use buckets of hours or less, or a known time zone"
                )));
            }
            None => {
                return Err(Error::invalid(format!(
                    "column '{column}' has type {}, which has no time; buckets need timestamps or dates",
                    TypeName(data_type)
                )));
            }
        };
        let fits = match (clock.unit, length) {
            (Some(unit), Length::Fixed(length)) => length % unit == 0,
            (None, Length::Fixed(_)) => false,
            _ => true,
        };
        if !fits {
            let unit = if clock.unit.is_none() { "days; use d, w, mo, q or y" } else { "its units" };
            return Err(Error::invalid(format!(
                "buckets of column '{column}' of type {} must be a whole number of {unit}",
                TypeName(data_type)
            )));
        }
        let (closed_right, label_right) = (*closed_right, *label_right);
        let column = column.clone();
        Ok(Self { column, length: *length, origin: *origin, closed_right, label_right, clock })
    }

    /// The buckets of values.
    pub fn codes(&self, values: &ArrayRef) -> Result<Labels> {
        let values = &plain_values(values)?;
        let nulls = values.nulls().filter(|nulls| nulls.null_count() > 0);
        let times = narrow_integers(values).ok_or_else(|| Error::invalid("buckets need timestamps or dates"))?;
        let (mut known, mut labels) = (HashMap::new(), Vec::new());
        let mut of_rows = Vec::with_capacity(times.len());
        let (mut begin, mut end, mut code) = (0, 0, 0);
        // Neighbours are mostly of one bucket.
        let inside = |begin: i64, end: i64, value: i64| match self.closed_right {
            true => (begin < value) & (value <= end),
            false => (begin <= value) & (value < end),
        };
        for (at, some) in times.chunks(CHUNK).enumerate() {
            if some.iter().fold(true, |all, value| all & inside(begin, end, *value)) && nulls.is_none() {
                of_rows.resize(of_rows.len() + some.len(), code);
                continue;
            }
            for (row, value) in (at * CHUNK..).zip(some) {
                if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                    of_rows.push(u32::MAX);
                    continue;
                }
                if !inside(begin, end, *value) {
                    (begin, end) = self.bucket(*value)?;
                    code = *known.entry(begin).or_insert_with(|| {
                        labels.push(if self.label_right { end } else { begin });
                        labels.len() as u32 - 1
                    });
                }
                of_rows.push(code);
            }
        }
        let of_null = labels.len() as u32;
        if nulls.is_some() {
            of_rows.iter_mut().filter(|code| **code == u32::MAX).for_each(|code| *code = of_null);
        }
        Ok(Labels { codes: RowCodes { of_rows, distinct: labels.len() + 1 }, labels })
    }

    /// Where the first of the buckets with these labels begins, and the last one ends, in the units of the column; `None` of no labels.
    pub fn bounds(&self, labels: &ArrayRef) -> Result<Option<(i64, i64)>> {
        let all = narrow_integers(labels).ok_or_else(|| Error::invalid("buckets need timestamps or dates"))?;
        let known = (0..labels.len()).filter(|at| labels.is_valid(*at)).map(|at| all[at]);
        let Some((first, last)) = known
            .fold(None, |ends: Option<(i64, i64)>, at| Some(ends.map_or((at, at), |(a, b)| (a.min(at), b.max(at)))))
        else {
            return Ok(None);
        };
        // A time that is in the bucket.
        let inside = |label: i64| match (self.label_right, self.closed_right) {
            (false, true) => label.saturating_add(1),
            (true, false) => label.saturating_sub(1),
            _ => label,
        };
        Ok(Some((self.bucket(inside(first))?.0, self.bucket(inside(last))?.1)))
    }

    /// Where the bucket of a value begins and ends.
    fn bucket(&self, value: i64) -> Result<(i64, i64)> {
        let beyond = || {
            Error::invalid(format!(
                "column '{}' has a time ({value} in its units since 1970) that is too far from 1970 to have a bucket",
                self.column
            ))
        };
        let looked_for = if self.closed_right { value.checked_sub(1).ok_or_else(beyond)? } else { value };
        match (self.length, self.clock.unit) {
            (Length::Fixed(length), Some(unit)) => {
                let (length, origin) = (length / unit, self.origin.unwrap_or(0));
                let since = looked_for.checked_sub(origin).ok_or_else(beyond)?;
                let whole = since.div_euclid(length).checked_mul(length);
                let begin = whole.and_then(|whole| whole.checked_add(origin)).ok_or_else(beyond)?;
                Ok((begin, begin.checked_add(length).ok_or_else(beyond)?))
            }
            _ => self.of_calendar(looked_for).ok_or_else(beyond),
        }
    }

    fn of_calendar(&self, value: i64) -> Option<(i64, i64)> {
        let epoch = NaiveDate::from_ymd_opt(1970, 1, 1)?.and_hms_opt(0, 0, 0)?;
        let origin = match (self.origin, self.length) {
            (Some(origin), _) => self.clock.local(origin)?,
            // A Monday.
            (None, Length::Days(days)) if days % 7 == 0 => epoch.checked_sub_days(Days::new(3))?,
            (None, _) => epoch,
        };
        let nth = |n: i64| match self.length {
            Length::Days(days) => origin.checked_add_signed(Duration::try_days(n.checked_mul(i64::from(days))?)?),
            Length::Months(months) => {
                let months = n.checked_mul(i64::from(months))?;
                let by = Months::new(u32::try_from(months.abs()).ok()?);
                if months < 0 { origin.checked_sub_months(by) } else { origin.checked_add_months(by) }
            }
            Length::Fixed(_) => None,
        };
        let local = self.clock.local(value)?;
        let mut n = match self.length {
            Length::Days(days) => (local - origin).num_days().div_euclid(i64::from(days)),
            Length::Months(months) => {
                let of = |time: NaiveDateTime| i64::from(time.year()) * 12 + i64::from(time.month0());
                (of(local) - of(origin)).div_euclid(i64::from(months))
            }
            Length::Fixed(_) => return None,
        };
        // Days and months are counted in whole ones: the guess is one off at most. By instants, since clocks go back.
        while self.clock.instant(nth(n)?)? > value {
            n -= 1;
        }
        while self.clock.instant(nth(n + 1)?)? <= value {
            n += 1;
        }
        Some((self.clock.instant(nth(n)?)?, self.clock.instant(nth(n + 1)?)?))
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::TimeUnit;
    use chrono::DateTime;

    use super::*;

    fn buckets(length: &str, zone: Option<&str>, closed_right: bool) -> Buckets {
        let every = Every {
            column: "ts".into(),
            length: Length::parse(length).unwrap(),
            origin: None,
            closed_right,
            label_right: false,
        };
        Buckets::new(&every, &DataType::Timestamp(TimeUnit::Second, zone.map(Into::into))).unwrap()
    }

    fn seconds(text: &str) -> i64 {
        DateTime::parse_from_rfc3339(text).unwrap().timestamp()
    }

    #[test]
    fn days_are_as_long_as_clocks_say() {
        let days = buckets("1d", Some("Europe/Berlin"), false);
        let of = |text: &str| days.bucket(seconds(text)).unwrap();
        let (begin, end) = of("2026-03-29T12:00:00Z");
        assert_eq!((begin, end - begin), (seconds("2026-03-29T00:00:00+01:00"), 23 * 3600));
        let (begin, end) = of("2026-10-25T00:30:00Z");
        assert_eq!((begin, end - begin), (seconds("2026-10-25T00:00:00+02:00"), 25 * 3600));
        // In São Paulo, midnight was skipped.
        let days = buckets("1d", Some("America/Sao_Paulo"), false);
        let (begin, end) = days.bucket(seconds("2018-11-04T12:00:00Z")).unwrap();
        assert_eq!((begin, end - begin), (seconds("2018-11-04T01:00:00-02:00"), 23 * 3600));
    }

    #[test]
    fn calendars_have_weeks_months_and_years() {
        let begin = |length: &str, text: &str| buckets(length, None, false).bucket(seconds(text)).unwrap().0;
        let day = |text: &str| seconds(&format!("{text}T00:00:00Z"));
        assert_eq!(begin("1w", "2026-11-22T23:00:00Z"), day("2026-11-16"));
        assert_eq!(begin("1mo", "2024-02-29T23:00:00Z"), day("2024-02-01"));
        assert_eq!(begin("1q", "1969-12-31T23:00:00Z"), day("1969-10-01"));
        assert_eq!(begin("1y", "2026-11-22T23:00:00Z"), day("2026-01-01"));
        assert_eq!(begin("5m", "1969-12-31T23:59:59Z"), day("1970-01-01") - 300);
    }

    #[test]
    fn ends_belong_to_buckets_closed_on_the_right() {
        let (left, right) = (buckets("1h", None, false), buckets("1h", None, true));
        assert_eq!((left.bucket(3600).unwrap(), right.bucket(3600).unwrap()), ((3600, 7200), (0, 3600)));
        let values: ArrayRef =
            std::sync::Arc::new(arrow::array::TimestampSecondArray::from(vec![Some(0), None, Some(3600), Some(3601)]));
        let labels = right.codes(&values).unwrap();
        let labels = labels.picked(&[0, 1, 2, 3], values.data_type()).unwrap();
        let expected = arrow::array::TimestampSecondArray::from(vec![Some(-3600), None, Some(0), Some(3600)]);
        assert_eq!(labels.as_ref(), &expected as &dyn Array);
        assert_eq!(right.bounds(&labels).unwrap(), Some((-3600, 7200)));
    }

    #[test]
    fn what_is_no_length_is_refused() {
        for text in ["", "5", "0m", "x", "5 minutes", "-1d", "99999999999d", "9999999y", "1.5h"] {
            assert!(Length::parse(text).is_err(), "{text}");
        }
        assert_eq!(Length::parse("15min").unwrap(), Length::Fixed(900_000_000_000));
        for text in ["15m", "36h", "90s", "7ms", "1us", "3ns", "1w", "10d", "2y", "1q", "5mo"] {
            assert_eq!(Length::parse(text).unwrap().to_string(), text);
        }
        let every = Every {
            column: "d".into(),
            length: Length::Fixed(1),
            origin: None,
            closed_right: false,
            label_right: false,
        };
        assert!(Buckets::new(&every, &DataType::Date32).unwrap_err().message().contains("'d'"));
        assert!(
            buckets("1d", None, false).bucket(i64::MIN).is_err()
                && buckets("7m", None, false).bucket(i64::MIN).is_err()
        );
    }
}
