//! Dates, timestamps and times of day as text.
//!
//! Invariant: a [`Moment`] is exact: `value / 10^scale` seconds since 1970-01-01T00:00:00 (UTC if `zoned`), or since
//! midnight for a time of day. `scale` is the smallest that represents the value.
//!
//! The calendar is not that of `chrono`, whose dates end in the year 262,142: those of Arrow go on to 5,881,580.

use std::fmt;

use arrow::datatypes::DataType;

use crate::base::Timestamp;

/// The form of a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MomentForm {
    Date,
    Timestamp,
    Time,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    pub form: MomentForm,
    pub value: i128,
    pub scale: i32,
    pub zoned: bool,
}

const DAY: i64 = 86_400;

/// The maximum number of digits read of a second's fraction.
const FRACTION_DIGITS_MAX: usize = 18;

impl Moment {
    /// A value of a type, as it is stored; `None` if that is neither an instant nor a time of day.
    pub fn of_stored(data_type: &DataType, value: i128) -> Option<Moment> {
        use arrow::datatypes::TimeUnit::*;
        let (form, unit, zoned) = match data_type {
            DataType::Date32 => {
                return Some(Moment { form: MomentForm::Date, value: value * i128::from(DAY), scale: 0, zoned: false });
            }
            DataType::Timestamp(unit, zone) => (MomentForm::Timestamp, unit, zone.is_some()),
            DataType::Time32(unit) | DataType::Time64(unit) => (MomentForm::Time, unit, false),
            _ => return None,
        };
        let scale = match unit {
            Second => 0,
            Millisecond => 3,
            Microsecond => 6,
            Nanosecond => 9,
        };
        let mut moment = Moment { form, value, scale, zoned };
        while moment.scale > 0 && moment.value % 10 == 0 {
            (moment.value, moment.scale) = (moment.value / 10, moment.scale - 1);
        }
        Some(moment)
    }

    /// Reads `YYYY-MM-DD`.
    pub fn date(text: &str) -> Option<Moment> {
        let (days, rest) = read_date(text.trim())?;
        rest.is_empty().then_some(Moment {
            form: MomentForm::Date,
            value: i128::from(days * DAY),
            scale: 0,
            zoned: false,
        })
    }

    /// Reads `YYYY-MM-DD[ HH:MM[:SS[.f]][zone]]`; the zone is `Z`, `UTC` or `+HH[[:]MM]`.
    pub fn timestamp(text: &str) -> Option<Moment> {
        let (days, rest) = read_date(text.trim())?;
        if rest.is_empty() {
            return Some(Moment { form: MomentForm::Timestamp, value: i128::from(days * DAY), scale: 0, zoned: false });
        }
        let (seconds, fraction, scale, rest) = read_time(rest.strip_prefix(['T', 't', ' '])?.trim_start())?;
        let offset = read_zone(rest.trim_start())?;
        let seconds = i128::from(days * DAY + seconds - offset.unwrap_or(0));
        Some(Moment {
            form: MomentForm::Timestamp,
            value: seconds * 10i128.pow(scale) + fraction,
            scale: scale as i32,
            zoned: offset.is_some(),
        })
    }

    /// Reads `HH:MM[:SS[.f]]`.
    pub fn time(text: &str) -> Option<Moment> {
        let (seconds, fraction, scale, rest) = read_time(text.trim())?;
        let value = i128::from(seconds) * 10i128.pow(scale) + fraction;
        rest.is_empty().then_some(Moment { form: MomentForm::Time, value, scale: scale as i32, zoned: false })
    }
}

/// A date or a time in the form of `Moment::timestamp`, cut to the microsecond; in UTC if it has no zone.
pub fn time_of(text: &str) -> Option<Timestamp> {
    let moment = Moment::timestamp(text)?;
    let scale = 10i128.pow(moment.scale.unsigned_abs());
    i64::try_from((moment.value * 1_000_000).div_euclid(scale)).ok().map(Timestamp)
}

/// Takes `least` to `most` digits off the front.
fn digits(text: &str, least: usize, most: usize) -> Option<(i64, &str)> {
    let count = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    (count >= least).then(|| Some((text[..count].parse().ok()?, &text[count..])))?
}

fn read_date(text: &str) -> Option<(i64, &str)> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (year, text) = digits(text, 4, 6)?;
    let year = if negative { -year } else { year };
    let (month, text) = digits(text.strip_prefix('-')?, 1, 2)?;
    let (day, text) = digits(text.strip_prefix('-')?, 1, 2)?;
    let days = days_from_civil(year, month, day);
    // A day that does not exist is converted back to another day.
    ((1..=12).contains(&month) && civil_from_days(days) == (year, month, day)).then_some((days, text))
}

fn read_time(text: &str) -> Option<(i64, i128, u32, &str)> {
    let (hour, text) = digits(text, 1, 2)?;
    let (minute, mut text) = digits(text.strip_prefix(':')?, 2, 2)?;
    let (mut second, mut fraction, mut scale) = (0, 0, 0);
    if let Some(rest) = text.strip_prefix(':') {
        (second, text) = digits(rest, 2, 2)?;
        if let Some(rest) = text.strip_prefix('.') {
            let count = rest.bytes().take_while(u8::is_ascii_digit).count();
            let kept = rest[..count].trim_end_matches('0');
            if count == 0 || kept.len() > FRACTION_DIGITS_MAX {
                return None;
            }
            scale = kept.len() as u32;
            fraction = if kept.is_empty() { 0 } else { kept.parse().ok()? };
            text = &rest[count..];
        }
    }
    (hour < 24 && minute < 60 && second < 60).then_some((hour * 3600 + minute * 60 + second, fraction, scale, text))
}

/// Seconds east of UTC; `Some(None)` if the text ends here.
fn read_zone(text: &str) -> Option<Option<i64>> {
    if text.is_empty() {
        return Some(None);
    }
    if text.eq_ignore_ascii_case("z") || text.eq_ignore_ascii_case("utc") {
        return Some(Some(0));
    }
    let sign = match text.as_bytes()[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, rest) = digits(&text[1..], 2, 2)?;
    let (minutes, rest) =
        if rest.is_empty() { (0, rest) } else { digits(rest.strip_prefix(':').unwrap_or(rest), 2, 2)? };
    (rest.is_empty() && hours < 24 && minutes < 60).then_some(Some(sign * (hours * 3600 + minutes * 60)))
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar (Howard Hinnant's algorithm: years begin in March, so
/// that the leap day is the last).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let power = 10i128.pow(self.scale as u32);
        let seconds = self.value.div_euclid(power) as i64;
        let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
        let (year, month, day) = civil_from_days(days);
        let sign = if year < 0 { "-" } else { "" };
        let date = format!("{sign}{:04}-{month:02}-{day:02}", year.abs());
        let mut time = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
        if self.scale > 0 {
            time += &format!(".{:0width$}", self.value.rem_euclid(power), width = self.scale as usize);
        }
        match self.form {
            MomentForm::Date => write!(f, "date '{date}'"),
            MomentForm::Timestamp => write!(f, "timestamp '{date} {time}{}'", if self.zoned { "+00:00" } else { "" }),
            MomentForm::Time => write!(f, "time '{time}'"),
        }
    }
}
