//! Kinds: what Arrow's types mean for comparison.
//!
//! Invariant: types of one kind compare in the same way whatever their physical form, so a bound filter runs on every
//! variant of the schema's type. The value of a numeric or temporal kind is an integer at a scale.

use std::cmp::Ordering;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, TimeUnit};

use super::text::moment::{Moment, MomentForm};
use super::text::names::clip;
use super::text::number::{Floor, Number, compare_scaled, float_key};
use super::text::span;
use super::text::syntax::Literal;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Null,
    Bool,
    /// Integers (scale 0) and decimals: `value / 10^scale`.
    Number {
        scale: i32,
    },
    Float,
    /// Dates and timestamps: `value * step / 10^scale` seconds since 1970.
    Instant {
        scale: i32,
        step: i64,
        zoned: bool,
    },
    /// Time of day: `value / 10^scale` seconds since midnight.
    Time {
        scale: i32,
    },
    /// `value / 10^scale` seconds.
    Duration {
        scale: i32,
    },
    Text,
    Binary,
}

/// A literal converted to the domain of a kind.
#[derive(Clone, Debug)]
pub enum DomainLiteral {
    Key(Floor<i128>),
    Bytes(Vec<u8>),
}

impl Kind {
    /// The kind of a type; `None` if its values are not compared here.
    pub fn of(data_type: &DataType) -> Option<Kind> {
        let digits = |unit: &TimeUnit| match unit {
            TimeUnit::Second => 0,
            TimeUnit::Millisecond => 3,
            TimeUnit::Microsecond => 6,
            TimeUnit::Nanosecond => 9,
        };
        Some(match data_type {
            DataType::Null => Kind::Null,
            DataType::Boolean => Kind::Bool,
            data_type if data_type.is_integer() => Kind::Number { scale: 0 },
            DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => {
                Kind::Number { scale: i32::from(*scale) }
            }
            // Wider types have values that do not fit in 128 bits.
            DataType::Decimal256(digits, scale) if *digits <= DECIMAL128_MAX_PRECISION => {
                Kind::Number { scale: i32::from(*scale) }
            }
            DataType::Float16 | DataType::Float32 | DataType::Float64 => Kind::Float,
            DataType::Date32 => Kind::Instant { scale: 0, step: 86_400, zoned: false },
            DataType::Date64 => Kind::Instant { scale: 3, step: 1, zoned: false },
            DataType::Timestamp(unit, zone) => Kind::Instant { scale: digits(unit), step: 1, zoned: zone.is_some() },
            DataType::Time32(unit) | DataType::Time64(unit) => Kind::Time { scale: digits(unit) },
            DataType::Duration(unit) => Kind::Duration { scale: digits(unit) },
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Kind::Text,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
                Kind::Binary
            }
            DataType::Dictionary(_, values) => return Kind::of(values),
            _ => return None,
        })
    }

    /// What a message calls a value of this kind.
    pub fn noun(self) -> &'static str {
        match self {
            Kind::Null => "a null",
            Kind::Bool => "a boolean",
            Kind::Number { .. } | Kind::Float => "a number",
            Kind::Instant { zoned: true, .. } => "a timestamp with time zone",
            Kind::Instant { step, scale, .. } if step > 1 || scale == 0 => "a date or timestamp",
            Kind::Instant { .. } => "a timestamp",
            Kind::Time { .. } => "a time of day",
            Kind::Duration { .. } => "a duration",
            Kind::Text => "a string",
            Kind::Binary => "binary data",
        }
    }

    /// Whether values of the two kinds compare with each other.
    pub fn meets(self, other: Kind) -> bool {
        match (self, other) {
            (Kind::Number { .. } | Kind::Float, Kind::Number { .. } | Kind::Float) => true,
            (Kind::Instant { zoned: a, .. }, Kind::Instant { zoned: b, .. }) => a == b,
            (Kind::Time { .. }, Kind::Time { .. }) | (Kind::Duration { .. }, Kind::Duration { .. }) => true,
            (a, b) => a == b,
        }
    }

    /// Converts a literal to this kind's domain, or says what was expected instead.
    pub fn place(self, literal: &Literal) -> Result<DomainLiteral, String> {
        let mismatch =
            || Err(format!("expected {} to compare with, found {}", self.noun(), clip(&literal.to_string())));
        match (self, literal) {
            (Kind::Number { scale }, Literal::Number(number)) => Ok(DomainLiteral::Key(number.floor(scale))),
            (Kind::Float, Literal::Number(number)) => {
                let (floor, exact) = number.floor_float();
                Ok(DomainLiteral::Key((i128::from(float_key(floor)), exact)))
            }
            (Kind::Float, Literal::Text(text) | Literal::Double(text)) => match special_float(text) {
                Some(value) => Ok(DomainLiteral::Key((i128::from(float_key(value)), true))),
                None => mismatch(),
            },
            (Kind::Instant { .. }, Literal::Moment(moment)) if moment.form != MomentForm::Time => {
                self.place_instant(moment)
            }
            (Kind::Instant { .. }, Literal::Text(text)) => match Moment::timestamp(text) {
                Some(moment) => self.place_instant(&moment),
                None => Err(format!(
                    "'{}' is not a date or timestamp; expected 'YYYY-MM-DD[ HH:MM[:SS[.f]][zone]]'",
                    clip(text)
                )),
            },
            (Kind::Time { scale }, Literal::Moment(moment)) if moment.form == MomentForm::Time => {
                Ok(DomainLiteral::Key(Number::scaled(moment.value, moment.scale).floor(scale)))
            }
            (Kind::Time { scale }, Literal::Text(text)) => match Moment::time(text) {
                Some(moment) => Ok(DomainLiteral::Key(Number::scaled(moment.value, moment.scale).floor(scale))),
                None => Err(format!("'{}' is not a time of day; expected 'HH:MM[:SS[.f]]'", clip(text))),
            },
            (Kind::Duration { scale }, Literal::Text(text) | Literal::Interval(text)) => match span::parse(text) {
                Some(nanos) => Ok(DomainLiteral::Key(Number::scaled(nanos, 9).floor(scale))),
                None => Err(format!("'{}' is not a duration; {}", clip(text), span::EXPECTED)),
            },
            (Kind::Duration { .. }, _) => Err(format!(
                "a duration cannot be compared with {}; {}, or a duration column",
                clip(&literal.to_string()),
                span::EXPECTED
            )),
            (Kind::Text, Literal::Text(text)) => Ok(DomainLiteral::Bytes(text.as_bytes().to_vec())),
            (Kind::Binary, Literal::Binary(bytes)) => Ok(DomainLiteral::Bytes(bytes.clone())),
            _ => mismatch(),
        }
    }

    fn place_instant(self, moment: &Moment) -> Result<DomainLiteral, String> {
        let Kind::Instant { scale, step, zoned } = self else { unreachable!("called for instants") };
        if moment.zoned && !zoned {
            return Err(format!("{moment} has a time zone, but the column has none; leave the time zone out"));
        }
        let (floor, exact) = Number::scaled(moment.value, moment.scale).floor(scale);
        let step = i128::from(step);
        Ok(DomainLiteral::Key((floor.div_euclid(step), exact && floor.rem_euclid(step) == 0)))
    }
}

/// The floats that cannot be written as a number.
pub fn special_float(text: &str) -> Option<f64> {
    match text.trim().to_ascii_lowercase().as_str() {
        "nan" => Some(f64::NAN),
        "inf" | "+inf" | "infinity" | "+infinity" => Some(f64::INFINITY),
        "-inf" | "-infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// What compares as a literal does with those that are no number.
fn double(literal: &Literal) -> f64 {
    match literal {
        Literal::Double(text) => special_float(text).unwrap_or(f64::NAN),
        _ => 0.0,
    }
}

/// Compares two literals; says why if they do not compare.
pub fn compare_literals(left: &Literal, right: &Literal) -> Result<Ordering, String> {
    match (left, right) {
        (Literal::Bool(a), Literal::Bool(b)) => Ok(a.cmp(b)),
        (Literal::Number(a), Literal::Number(b)) => Ok(a.compare(b)),
        (Literal::Text(a), Literal::Text(b)) => Ok(a.cmp(b)),
        (Literal::Binary(a), Literal::Binary(b)) => Ok(a.cmp(b)),
        (Literal::Moment(a), Literal::Text(text)) => {
            let read = if a.form == MomentForm::Time { Moment::time(text) } else { Moment::timestamp(text) };
            let b = read.ok_or_else(|| format!("'{}' cannot be compared with {a}", clip(text)))?;
            Ok(compare_scaled(a.value, a.scale, b.value, b.scale))
        }
        (Literal::Text(_), Literal::Moment(_)) => compare_literals(right, left).map(Ordering::reverse),
        (Literal::Double(_), Literal::Double(_) | Literal::Number(_)) | (Literal::Number(_), Literal::Double(_)) => {
            Ok(double(left).total_cmp(&double(right)))
        }
        (Literal::Interval(a), Literal::Interval(b)) => Ok(span::parse(a).cmp(&span::parse(b))),
        (Literal::Moment(a), Literal::Moment(b)) if (a.form == MomentForm::Time) == (b.form == MomentForm::Time) => {
            Ok(compare_scaled(a.value, a.scale, b.value, b.scale))
        }
        _ => Err(format!("{} and {} cannot be compared", clip(&left.to_string()), clip(&right.to_string()))),
    }
}
