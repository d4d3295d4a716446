//! How values of payloads compare, for conditions.

use serde::{Deserialize, Serialize};

use super::field::number;
use crate::catalog::Payload;
use crate::catalog::payload::Value;

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// Equal. Numbers by value, so `1` is `1.0`.
    Equal,
    /// Not equal.
    NotEqual,
    /// Less. Numbers with numbers and texts with texts; nothing else is less.
    Less,
    /// Less or equal.
    LessOrEqual,
    /// Greater.
    Greater,
    /// Greater or equal.
    GreaterOrEqual,
    /// A text contains a text, a list a value, an object a name.
    Contains,
}

/// Whether `a` and `b` compare as required.
pub(in crate::catalog) fn holds_of_number(compare: Compare, a: u64, b: u64) -> bool {
    match compare {
        Compare::Equal => a == b,
        Compare::NotEqual => a != b,
        Compare::Less => a < b,
        Compare::LessOrEqual => a <= b,
        Compare::Greater => a > b,
        Compare::GreaterOrEqual => a >= b,
        Compare::Contains => false,
    }
}

/// Whether a field of a payload and `with` compare as required.
pub(in crate::catalog) fn holds_of_field(
    payload: &Payload,
    field: &[String],
    compare: Compare,
    with: &Payload,
) -> bool {
    let (Some(a), Some(b)) = (payload.field(field), with.field(&[])) else {
        // There are bytes on either side.
        let same = field.is_empty() && payload == with;
        return match compare {
            Compare::Equal => same,
            Compare::NotEqual => field.is_empty() && !same,
            Compare::Contains => match (payload.as_bytes(), with.as_bytes()) {
                (Some(a), Some(b)) => b.is_empty() || a.windows(b.len()).any(|part| part == b),
                _ => false,
            },
            _ => false,
        };
    };
    match compare {
        Compare::Equal => equal(a, b),
        Compare::NotEqual => !equal(a, b),
        Compare::Contains => match (a, b) {
            (Value::Text(a), Value::Text(b)) => a.contains(b),
            (Value::List(mut items), b) => items.any(|item| equal(item, b)),
            (Value::Object(entries), Value::Text(name)) => entries.get(name).is_some(),
            _ => false,
        },
        _ => match (order(a, b), compare) {
            (Some(order), Compare::Less) => order.is_lt(),
            (Some(order), Compare::LessOrEqual) => order.is_le(),
            (Some(order), Compare::Greater) => order.is_gt(),
            (Some(order), Compare::GreaterOrEqual) => order.is_ge(),
            _ => false,
        },
    }
}

fn equal(a: Value<'_>, b: Value<'_>) -> bool {
    match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::List(a), Value::List(b)) => a.len() == b.len() && a.zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.zip(b).all(|(a, b)| a.0 == b.0 && equal(a.1, b.1))
        }
        (a, b) => order(a, b).is_some_and(std::cmp::Ordering::is_eq),
    }
}

/// Numbers by their exact value, texts by their bytes.
fn order(a: Value<'_>, b: Value<'_>) -> Option<std::cmp::Ordering> {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
        _ => Some(number(a)?.cmp(&number(b)?)),
    }
}
