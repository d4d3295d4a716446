//! Which types functions take and give.
//!
//! Invariant: a calculation gives whole numbers in 64 bits, decimals of 38 digits, or doubles; so nothing that fits the column is
//! lost, and nothing wraps.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, TimeUnit};

use super::clock::ZoneClock;
use super::kind::Kind;
use super::text::moment::MomentForm;
use super::text::scalar::{ScalarFunction, TimePart};
use super::text::syntax::Literal;

/// The types that a function gets its values in, and that of its result.
pub struct Signature {
    pub args: Vec<DataType>,
    pub result: DataType,
}

/// What is known of a value that a function is called with.
pub struct GivenValue {
    pub data_type: DataType,
    pub is_literal: bool,
    /// Of a literal that is a whole number.
    pub whole: Option<i64>,
}

/// The type of a literal.
pub fn literal_type(literal: &Literal) -> DataType {
    match literal {
        Literal::Null => DataType::Null,
        Literal::Bool(_) => DataType::Boolean,
        Literal::Number(number) => match number.unscaled() {
            Some((value, 0)) if !number.is_fractional() && i64::try_from(value).is_ok() => DataType::Int64,
            Some((value, scale @ 0..=38)) if value.unsigned_abs() < 10_u128.pow(38) => {
                DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale as i8)
            }
            _ => DataType::Float64,
        },
        Literal::Text(_) => DataType::Utf8,
        Literal::Binary(_) => DataType::Binary,
        Literal::Moment(moment) => match moment.form {
            MomentForm::Date => DataType::Date32,
            MomentForm::Time => DataType::Time64(TimeUnit::Nanosecond),
            MomentForm::Timestamp => DataType::Timestamp(TimeUnit::Nanosecond, moment.zoned.then(|| "UTC".into())),
        },
        Literal::Double(_) => DataType::Float64,
        Literal::Interval(_) => DataType::Duration(TimeUnit::Nanosecond),
    }
}

/// The values of a dictionary, or the type itself.
pub fn plain(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => plain(values),
        other => other.clone(),
    }
}

/// The type of a calculation with numbers of a type; `None` for others.
fn calculated(data_type: &DataType) -> Option<DataType> {
    Some(match Kind::of(data_type)? {
        // A null that is no column's.
        Kind::Null => DataType::Int64,
        Kind::Float => DataType::Float64,
        Kind::Number { scale } if data_type.is_decimal() => {
            DataType::Decimal128(DECIMAL128_MAX_PRECISION, i8::try_from(scale).ok()?)
        }
        Kind::Number { .. } if *data_type == DataType::UInt64 => DataType::UInt64,
        Kind::Number { .. } => DataType::Int64,
        _ => return None,
    })
}

/// The signature for values of these types, or which value was expected to be what instead.
///
/// # Errors
/// The place of a value, and what was expected there.
pub fn signature(function: ScalarFunction, given: &[GivenValue]) -> Result<Signature, (usize, &'static str)> {
    let types: Vec<DataType> = given.iter().map(|given| plain(&given.data_type)).collect();
    let kind = |at: usize| Kind::of(&types[at]);
    let number = |at: usize| calculated(&types[at]).ok_or((at, "a number"));
    let text = |at: usize| match kind(at) {
        Some(Kind::Text | Kind::Null) => Ok(DataType::Utf8),
        _ => Err((at, "a string")),
    };
    let one = |arg: DataType, result: DataType| Ok(Signature { args: vec![arg], result });
    match function {
        ScalarFunction::Part(part) => match (kind(0), part) {
            (Some(Kind::Instant { .. }), _)
            | (Some(Kind::Time { .. }), TimePart::Hour | TimePart::Minute | TimePart::Second) => {
                one(types[0].clone(), DataType::Int64)
            }
            (Some(Kind::Null), _) => one(DataType::Date32, DataType::Int64),
            _ => Err((0, "a date or timestamp")),
        },
        ScalarFunction::DateTrunc => match kind(1) {
            Some(Kind::Instant { .. }) => {
                Ok(Signature { args: vec![DataType::Utf8, types[1].clone()], result: types[1].clone() })
            }
            Some(Kind::Null) => {
                Ok(Signature { args: vec![DataType::Utf8, DataType::Date32], result: DataType::Date32 })
            }
            _ => Err((1, "a date or timestamp")),
        },
        ScalarFunction::Lower
        | ScalarFunction::Upper
        | ScalarFunction::Trim
        | ScalarFunction::TrimStart
        | ScalarFunction::TrimEnd => one(text(0)?, DataType::Utf8),
        ScalarFunction::Length => match kind(0) {
            Some(Kind::Text | Kind::Binary) => one(types[0].clone(), DataType::Int64),
            Some(Kind::Null) => one(DataType::Utf8, DataType::Int64),
            _ => Err((0, "a string or binary data")),
        },
        ScalarFunction::Substring => {
            let mut args = vec![text(0)?];
            for at in 1..types.len() {
                match kind(at) {
                    Some(Kind::Number { scale: 0 } | Kind::Null) => args.push(DataType::Int64),
                    _ => return Err((at, "a whole number")),
                }
            }
            Ok(Signature { args, result: DataType::Utf8 })
        }
        ScalarFunction::Replace => {
            let args = (0..3).map(text).collect::<Result<_, _>>()?;
            Ok(Signature { args, result: DataType::Utf8 })
        }
        // What is no string is written as one before.
        ScalarFunction::Concat => Ok(Signature { args: vec![DataType::Utf8; types.len()], result: DataType::Utf8 }),
        ScalarFunction::Abs => one(number(0)?, number(0)?),
        ScalarFunction::Sign => one(number(0)?, DataType::Int64),
        ScalarFunction::Round => {
            let mut args = vec![number(0)?];
            if types.len() > 1 {
                match (given[1].is_literal, kind(1)) {
                    (true, Some(Kind::Number { scale: 0 })) => args.push(DataType::Int64),
                    _ => return Err((1, "a whole number")),
                }
            }
            let places = given.get(1).and_then(|places| places.whole).unwrap_or(0);
            let result = match number(0)? {
                DataType::Decimal128(digits, scale) => DataType::Decimal128(
                    digits,
                    i8::try_from(places.clamp(0, scale.max(0).into())).unwrap_or(scale).min(scale),
                ),
                other => other,
            };
            Ok(Signature { args, result })
        }
        ScalarFunction::Floor | ScalarFunction::Ceil => {
            let result = match number(0)? {
                DataType::Decimal128(digits, _) => DataType::Decimal128(digits, 0),
                other => other,
            };
            one(number(0)?, result)
        }
        ScalarFunction::Coalesce => {
            let common = common(given)?;
            Ok(Signature { args: vec![common.clone(); types.len()], result: common })
        }
        // The second value is compared with the first.
        ScalarFunction::NullIf => Ok(Signature { args: vec![types[0].clone()], result: types[0].clone() }),
    }
}

/// One type for all values: that of those that are no literals, if it is one; for numbers that of a calculation with them, for
/// times the finest unit.
fn common(given: &[GivenValue]) -> Result<DataType, (usize, &'static str)> {
    let mut common: Option<DataType> = None;
    // Literals take the type of the rest.
    for is_literal in [false, true] {
        for (at, value) in given.iter().enumerate().filter(|(_, value)| value.is_literal == is_literal) {
            let own = plain(&value.data_type);
            common = match common {
                _ if own == DataType::Null => common,
                None => Some(own),
                Some(common) if common == own => Some(common),
                Some(common) => Some(
                    both(&common, &own, is_literal, value.whole).ok_or((at, "a value of the type of the others"))?,
                ),
            };
        }
    }
    Ok(common.unwrap_or(DataType::Null))
}

fn both(a: &DataType, b: &DataType, b_is_literal: bool, whole: Option<i64>) -> Option<DataType> {
    let (a_kind, b_kind) = (Kind::of(a)?, Kind::of(b)?);
    Some(match (a_kind, b_kind) {
        // A literal that such numbers hold.
        (Kind::Number { scale }, Kind::Number { scale: literal })
            if b_is_literal
                && literal <= scale
                && (a.is_decimal()
                    || whole.is_some_and(|whole| whole >= 0 || calculated(a) == Some(DataType::Int64))) =>
        {
            calculated(a)?
        }
        (Kind::Float, Kind::Number { .. }) if b_is_literal => a.clone(),
        (Kind::Number { scale: a_scale }, Kind::Number { scale: b_scale }) => {
            if !a.is_decimal() && !b.is_decimal() {
                let wide = *a == DataType::UInt64 || *b == DataType::UInt64;
                if wide { DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0) } else { DataType::Int64 }
            } else {
                DataType::Decimal128(DECIMAL128_MAX_PRECISION, i8::try_from(a_scale.max(b_scale)).ok()?)
            }
        }
        (Kind::Number { .. } | Kind::Float, Kind::Number { .. } | Kind::Float) => DataType::Float64,
        // A text beside a time is one.
        (Kind::Instant { .. } | Kind::Time { .. } | Kind::Duration { .. }, Kind::Text) if b_is_literal => a.clone(),
        (Kind::Instant { zoned: true, .. }, Kind::Instant { .. }) if b_is_literal => a.clone(),
        (a_kind, b_kind) if !a_kind.meets(b_kind) => return None,
        (Kind::Text, _) => DataType::Utf8,
        (Kind::Binary, _) => DataType::Binary,
        (Kind::Bool, _) => DataType::Boolean,
        (_, Kind::Instant { .. } | Kind::Time { .. } | Kind::Duration { .. }) if b_is_literal => a.clone(),
        (Kind::Instant { zoned: true, .. }, _) => {
            let DataType::Timestamp(_, zone) = a else { return None };
            DataType::Timestamp(TimeUnit::Nanosecond, zone.clone())
        }
        (Kind::Instant { .. }, _) => DataType::Timestamp(TimeUnit::Nanosecond, None),
        (Kind::Time { .. }, _) => DataType::Time64(TimeUnit::Nanosecond),
        (Kind::Duration { .. }, _) => DataType::Duration(TimeUnit::Nanosecond),
        _ => return None,
    })
}

/// Whether values of a type have values in another: numbers, times and booleans in each other where that means something, all
/// of them in strings and back.
pub fn can_cast(from: &DataType, to: &DataType) -> bool {
    let (Some(from_kind), Some(to_kind)) = (Kind::of(from), Kind::of(to)) else { return from == to };
    if matches!(to, DataType::Dictionary(..)) {
        return from == to;
    }
    match (from_kind, to_kind) {
        (Kind::Null, _) => true,
        (_, Kind::Null) => false,
        (Kind::Number { .. } | Kind::Float | Kind::Bool, Kind::Number { .. } | Kind::Float | Kind::Bool) => true,
        (Kind::Instant { .. }, Kind::Instant { .. } | Kind::Time { .. }) => {
            [from, to].into_iter().all(|data_type| !matches!(ZoneClock::new(data_type), Some(Err(_))))
        }
        (Kind::Time { .. }, Kind::Time { .. }) | (Kind::Duration { .. }, Kind::Duration { .. }) => true,
        (Kind::Duration { .. }, Kind::Text) => false,
        (Kind::Binary, Kind::Binary) => true,
        (Kind::Text, _) | (_, Kind::Text) => true,
        _ => false,
    }
}
