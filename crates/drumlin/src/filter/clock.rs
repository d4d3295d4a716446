//! What clocks show at a date or timestamp, and the other way round: of its time zone, or of none.
//!
//! Invariant: nothing is rounded but towards the past, to units of the type. What chrono cannot count, some 262,000 years from
//! 1970, is `None`.

use std::str::FromStr;

use arrow::array::timezone::Tz;
use arrow::datatypes::{DataType, TimeUnit};
use chrono::{DateTime, Datelike, Duration, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Timelike};

/// The clock of a type: dates, or timestamps with or without a time zone.
#[derive(Clone, Debug)]
pub struct ZoneClock {
    /// Nanoseconds in a unit of its values; `None` if the units are days.
    pub unit: Option<i64>,
    zone: Option<Tz>,
}

impl ZoneClock {
    /// The clock of values of a type. `None` if they have no date.
    ///
    /// # Errors
    /// The name of a time zone that is not known.
    pub fn new(data_type: &DataType) -> Option<Result<Self, &str>> {
        let (unit, zone) = match data_type {
            DataType::Dictionary(_, values) => return Self::new(values),
            DataType::Date32 => (None, None),
            DataType::Date64 => (Some(1_000_000), None),
            DataType::Timestamp(unit, zone) => (Some(nanos(*unit)), zone.as_deref()),
            _ => return None,
        };
        let zone = zone.map(|zone| Tz::from_str(zone).map_err(|_| zone)).transpose();
        Some(zone.map(|zone| Self { unit, zone }))
    }

    /// Whether it is one of a time zone.
    pub fn has_zone(&self) -> bool {
        self.zone.is_some()
    }

    /// What clocks of UTC show at a value.
    pub fn utc(&self, value: i64) -> Option<NaiveDateTime> {
        let Some(unit) = self.unit else {
            let epoch = NaiveDate::from_ymd_opt(1970, 1, 1)?.and_hms_opt(0, 0, 0)?;
            return epoch.checked_add_signed(Duration::try_days(value)?);
        };
        let second = 1_000_000_000 / unit;
        let rest = u32::try_from(value.rem_euclid(second) * unit).ok()?;
        Some(DateTime::from_timestamp(value.div_euclid(second), rest)?.naive_utc())
    }

    /// The last value that is not after a time of UTC.
    pub fn of_utc(&self, time: NaiveDateTime) -> Option<i64> {
        let Some(unit) = self.unit else {
            let epoch = NaiveDate::from_ymd_opt(1970, 1, 1)?;
            return Some((time.date() - epoch).num_days());
        };
        let (second, time) = (1_000_000_000 / unit, time.and_utc());
        let nanos = i64::from(time.timestamp_subsec_nanos());
        time.timestamp().checked_mul(second)?.checked_add(nanos / unit)
    }

    /// What clocks show at a value.
    pub fn local(&self, value: i64) -> Option<NaiveDateTime> {
        let time = self.utc(value)?;
        match &self.zone {
            None => Some(time),
            // An offset beyond what can be counted.
            Some(zone) => {
                let offset = chrono::Offset::fix(&zone.offset_from_utc_datetime(&time));
                time.checked_add_offset(offset)
            }
        }
    }

    /// A value as SQL writes it: a date, or a date and a time with no zeroes at the end of a second's fraction, and the offset of
    /// its zone. Years before 1 have a sign and at least four digits.
    pub fn written(&self, value: i64) -> Option<String> {
        let local = self.local(value)?;
        let year = local.year();
        let sign = if year < 0 { "-" } else { "" };
        let date = format!("{sign}{:04}-{:02}-{:02}", year.abs(), local.month(), local.day());
        if self.unit.is_none() {
            return Some(date);
        }
        let time = time_text(since_midnight(local.time()), 9);
        let zone = match &self.zone {
            None => String::new(),
            Some(_) => {
                let east = (local - self.utc(value)?).num_seconds();
                let (sign, east) = if east < 0 { ('-', -east) } else { ('+', east) };
                let minutes = if east % 3600 == 0 { String::new() } else { format!(":{:02}", east / 60 % 60) };
                format!("{sign}{:02}{minutes}", east / 3600)
            }
        };
        Some(format!("{date} {time}{zone}"))
    }

    /// The first value at which clocks show a time, or, if they skip it, that to which they skip.
    pub fn instant(&self, local: NaiveDateTime) -> Option<i64> {
        let Some(zone) = &self.zone else { return self.of_utc(local) };
        let utc = match zone.from_local_datetime(&local).earliest() {
            Some(time) => time.naive_utc(),
            None => {
                const STEP: i64 = 30 * 60;
                let shown = |seconds: i64| {
                    let later = local.checked_add_signed(Duration::try_seconds(seconds)?)?;
                    zone.from_local_datetime(&later).earliest().map(|time| time.naive_utc())
                };
                // No clock has ever skipped more than a day. They skipped to a time in the last step, at a whole second.
                let after = (1..=48).find_map(|steps| shown(steps * STEP))?.and_utc();
                let mut after = after.timestamp() + i64::from(after.timestamp_subsec_nanos() > 0);
                let mut before = after.checked_sub(STEP + 1)?;
                let time = |second: i64| Some(DateTime::from_timestamp(second, 0)?.naive_utc());
                while after - before > 1 {
                    let middle = before + (after - before) / 2;
                    let late = zone.from_utc_datetime(&time(middle)?).naive_local() >= local;
                    if late { after = middle } else { before = middle }
                }
                time(after)?
            }
        };
        self.of_utc(utc)
    }
}

/// Nanoseconds from midnight to a time of day.
pub fn since_midnight(time: NaiveTime) -> i64 {
    i64::from(time.num_seconds_from_midnight()) * 1_000_000_000 + i64::from(time.nanosecond())
}

/// A time of day, `value / 10^scale` seconds from midnight, as SQL writes it: with no zeroes at the end of a second's fraction.
pub fn time_text(value: i64, scale: u32) -> String {
    let unit = 10_i64.pow(scale);
    let (second, rest) = (value.div_euclid(unit), value.rem_euclid(unit));
    let time = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
    match rest {
        0 => time,
        _ => time + format!(".{rest:0width$}", width = scale as usize).trim_end_matches('0'),
    }
}

/// Nanoseconds in a unit.
pub fn nanos(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1000,
        TimeUnit::Nanosecond => 1,
    }
}
