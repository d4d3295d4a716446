//! Durations as text: numbers with units, a time of day, or both.
//!
//! ```text
//! duration = [-] part { part } [[+|-] HH:MM[:SS[.f]]]  |  [+|-] HH:MM[:SS[.f]]
//! part     = number [space] unit          units: weeks, days, hours, minutes, seconds, milli-, micro-, nanoseconds
//! ```
//! A minus at the beginning applies only to the number that follows it, as in SQL's intervals. Exact to the nanosecond.

use super::moment::Moment;

const SECOND: i128 = 1_000_000_000;

/// What a duration looks like, for messages.
pub const EXPECTED: &str = "expected a string such as '90 s', '1.5 hours', '2 days 03:30:00' or '00:00:00.25'";

/// The nanoseconds of a unit.
fn unit(name: &str) -> Option<i128> {
    Some(match name.to_ascii_lowercase().as_str() {
        "w" | "week" | "weeks" => 7 * 86_400 * SECOND,
        "d" | "day" | "days" => 86_400 * SECOND,
        "h" | "hour" | "hours" => 3_600 * SECOND,
        "m" | "min" | "minute" | "minutes" => 60 * SECOND,
        "s" | "sec" | "second" | "seconds" => SECOND,
        "ms" | "millisecond" | "milliseconds" => 1_000_000,
        "us" | "µs" | "microsecond" | "microseconds" => 1_000,
        "ns" | "nanosecond" | "nanoseconds" => 1,
        _ => return None,
    })
}

/// `number` units of `unit` nanoseconds; `None` if that is not a whole number of nanoseconds, or too large for a
/// duration.
fn scaled(number: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !digits(whole) || !digits(fraction) {
        return None;
    }
    if whole.len() > 20 || fraction.len() > 15 {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let parts: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let of = 10_i128.pow(fraction.len() as u32);
    let exact = (parts * unit).checked_rem(of)? == 0;
    exact.then_some(())?;
    whole.checked_mul(unit)?.checked_add(parts * unit / of)
}

/// The nanoseconds of a duration; `None` if the text is not a duration.
pub fn parse(text: &str) -> Option<i128> {
    let mut rest = text.trim();
    let (mut total, mut parts): (i128, usize) = (0, 0);
    while !rest.is_empty() {
        let (negative, unsigned) = match rest.strip_prefix('-') {
            Some(unsigned) => (true, unsigned),
            None => (false, rest.strip_prefix('+').unwrap_or(rest)),
        };
        let sign = if negative { -1 } else { 1 };
        let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, behind) = unsigned.split_at(end);
        if behind.starts_with(':') {
            // `HH:MM…` comes last.
            let time = Moment::time(unsigned)?;
            let nanos = time.value * 10_i128.pow(u32::try_from(9 - time.scale).ok()?);
            return total.checked_add(sign * nanos);
        }
        let behind = behind.trim_start();
        let end = behind.find(|c: char| !c.is_alphabetic()).unwrap_or(behind.len());
        let (name, behind) = behind.split_at(end);
        total = total.checked_add(sign * scaled(number, unit(name)?)?)?;
        parts += 1;
        rest = behind.trim_start();
    }
    (parts > 0).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_exactly() {
        for (text, expected) in [
            ("90 s", Some(90 * SECOND)),
            ("1.5 hours", Some(5_400 * SECOND)),
            ("-1 day", Some(-86_400 * SECOND)),
            ("2 days 03:30:00", Some((2 * 86_400 + 12_600) * SECOND)),
            ("1 day -02:00", Some((86_400 - 7_200) * SECOND)),
            ("00:00:00.25", Some(SECOND / 4)),
            ("3 w 1 d 4h 5min 6 sec 7 ms 8 us 9 ns", Some(1_900_800 * SECOND + (4 * 3600 + 306) * SECOND + 7_008_009)),
            ("1 s 1 s", Some(2 * SECOND)),
            ("0.5 ns", None),
            ("5", None),
            ("", None),
            ("s", None),
            ("1 fortnight", None),
            ("1 s ago", None),
            ("99999999999999999999999 days", None),
            ("1..5 s", None),
            (". s", None),
        ] {
            assert_eq!(parse(text), expected, "{text:?}");
        }
    }
}
