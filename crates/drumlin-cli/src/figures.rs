//! Numbers, sizes, times and spans in human-readable form.

use arrow::temporal_conversions::timestamp_us_to_datetime;
use drumlin::Timestamp;
use indicatif::{DecimalBytes, HumanCount};
use serde_json::Value;

/// `1234567` as `1,234,567`.
pub fn count(n: u64) -> String {
    HumanCount(n).to_string()
}

/// A count with its noun, in the plural unless it is one.
pub fn counted(n: u64, noun: &str) -> String {
    let plural = match noun.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{noun}s"),
    };
    format!("{} {}", count(n), if n == 1 { noun } else { &plural })
}

/// `1234567` bytes as `1.23 MB`.
pub fn bytes(n: u64) -> String {
    DecimalBytes(n).to_string()
}

/// A time in RFC 3339, UTC, to the microsecond: exact, so that it can be passed to `--as-of`.
pub fn time(time: Timestamp) -> String {
    match timestamp_us_to_datetime(time.0) {
        Some(datetime) => datetime.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
        None => format!("{} us", time.0),
    }
}

/// A pause such as `500ms`, or a span as in [`parse_span`], in microseconds.
pub fn parse_pause(text: &str) -> Result<u64, String> {
    match text.strip_suffix("ms").map(str::parse::<u32>) {
        Some(Ok(n)) => Ok(u64::from(n) * 1000),
        Some(Err(_)) => Err(format!("'{text}' is not a pause; expected a number and ms or s, such as 500ms")),
        None => parse_span(text),
    }
}

/// A span such as `30d`, `12h`, `90m`, `45s` or `2w`, in microseconds.
pub fn parse_span(text: &str) -> Result<u64, String> {
    let expected = || format!("'{text}' is not a span of time; expected a number and s, m, h, d or w, such as 30d");
    let unit = text.chars().last().ok_or_else(expected)?;
    let seconds = match unit {
        's' => 1_u64,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return Err(expected()),
    };
    let n: u64 = text[..text.len() - 1].parse().map_err(|_| expected())?;
    n.checked_mul(seconds * 1_000_000).ok_or_else(|| format!("'{text}' is too long a span"))
}

/// Microseconds in the form that [`parse_span`] accepts.
pub fn span(micros: u64) -> String {
    let seconds = micros.div_ceil(1_000_000);
    let units = [(7 * 86_400, 'w'), (86_400, 'd'), (3600, 'h'), (60, 'm')];
    let unit = units.into_iter().find(|(size, _)| seconds >= *size && seconds.is_multiple_of(*size));
    let (size, unit) = unit.unwrap_or((1, 's'));
    format!("{}{unit}", seconds / size)
}

/// When rows expire, in words.
pub fn expiry(ttl: &drumlin::TimeToLive) -> String {
    match u64::try_from(ttl.after_micros).unwrap_or_default() {
        0 => format!("rows expire at {}", ttl.column),
        after => format!("rows expire {} after {}", span(after), ttl.column),
    }
}

/// A share between 0 and 1.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("'{text}' is not a share; expected a number from 0 to 1"))
}

/// A JSON value.
pub fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|e| format!("not JSON ({e}); strings need their quotes: '\"text\"'"))
}

/// Checks that text is JSON, and returns it unchanged.
pub fn parse_json(text: &str) -> Result<String, String> {
    json(text).map(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_for_people() {
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(counted(1, "entry"), "1 entry");
        assert_eq!(counted(2, "entry"), "2 entries");
        assert_eq!(counted(0, "row"), "0 rows");
        assert_eq!(bytes(1_234_567), "1.23 MB");
        assert_eq!(bytes(12), "12 B");
    }

    #[test]
    fn times_and_spans_come_back_as_they_went() {
        assert_eq!(time(Timestamp(1_700_000_000_123_456)), "2023-11-14T22:13:20.123456Z");
        for text in ["45s", "90m", "12h", "30d", "2w", "0s"] {
            assert_eq!(span(parse_span(text).unwrap()), text);
        }
        for bad in ["", "d", "5", "5y", "-1d", "5é", "99999999999999999w"] {
            assert!(parse_span(bad).is_err(), "{bad}");
        }
    }
}
