//! Conditions on a node: in patterns, as preconditions, and as life conditions of other nodes.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::path::name_of;
use super::payload::Value;
use super::{Glob, NodeInfo, Pattern, Payload};
use crate::base::{Error, Result};

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

/// A regular expression, compiled.
#[derive(Clone)]
pub struct NameRegex(regex::Regex);

impl NameRegex {
    /// Compiles `text`, in the syntax of the `regex` crate. It may match anywhere in a name unless anchored by `^` and
    /// `$`.
    pub fn new(text: &str) -> Result<Self> {
        let bad = |e: regex::Error| Error::invalid(format!("the regular expression '{text}' is not one: {e}"));
        // Limits what a hostile one may cost.
        regex::RegexBuilder::new(text).size_limit(1 << 20).build().map(Self).map_err(bad)
    }
}

impl fmt::Debug for NameRegex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/", self.0)
    }
}

impl PartialEq for NameRegex {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Serialize for NameRegex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

impl<'de> Deserialize<'de> for NameRegex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        NameRegex::new(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// Something that holds for a node or does not.
///
/// For a path without a node, [`Condition::Exists`]`(false)` holds, and what is built from it by `Not`, `All` and `Any`;
/// nothing else does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// There is a node, or there is none.
    Exists(bool),
    /// Its name matches.
    Name(Glob),
    /// Its name matches.
    NameRegex(NameRegex),
    /// Its path matches.
    Path(Pattern),
    /// It carries a payload, or does not.
    HasPayload(bool),
    /// It holds a table, or does not.
    HasTable(bool),
    /// A field of its payload, or the whole payload if there are no names. Bytes can only be compared as a whole.
    Payload {
        /// The names that lead to it: a name for each object on the way, a number for each list.
        field: Vec<String>,
        /// How it is compared.
        compare: Compare,
        /// What it is compared with.
        value: Payload,
    },
    /// How often its payload has been set.
    PayloadVersion(Compare, u64),
    /// How often its list of children has changed.
    ChildrenVersion(Compare, u64),
    /// How many children it has.
    Children(Compare, u64),
    /// The other does not hold.
    Not(Box<Condition>),
    /// All hold.
    All(Vec<Condition>),
    /// At least one holds.
    Any(Vec<Condition>),
}

/// How deeply conditions may be nested.
const DEPTH_MAX: usize = 64;

impl Condition {
    /// Its payload is `value`.
    pub fn payload(value: Payload) -> Self {
        Condition::Payload { field: Vec::new(), compare: Compare::Equal, value }
    }

    /// A field of its payload compares with `value`. `field` is names joined by dots.
    pub fn field(field: &str, compare: Compare, value: Payload) -> Self {
        Condition::Payload { field: field.split('.').map(str::to_owned).collect(), compare, value }
    }

    /// Whether it holds for the node at `path`, if there is one.
    pub fn holds(&self, path: &str, node: Option<&NodeInfo>) -> bool {
        let on = |holds: &dyn Fn(&NodeInfo) -> bool| node.is_some_and(holds);
        match self {
            Condition::Exists(wanted) => node.is_some() == *wanted,
            Condition::Not(condition) => !condition.holds(path, node),
            Condition::All(conditions) => conditions.iter().all(|condition| condition.holds(path, node)),
            Condition::Any(conditions) => conditions.iter().any(|condition| condition.holds(path, node)),
            Condition::Name(glob) => on(&|_| glob.matches(name_of(path))),
            Condition::NameRegex(NameRegex(regex)) => on(&|_| regex.is_match(name_of(path))),
            Condition::Path(pattern) => on(&|_| pattern.matches_path(path)),
            Condition::HasPayload(wanted) => on(&|node| node.payload.is_some() == *wanted),
            Condition::HasTable(wanted) => on(&|node| node.table == *wanted),
            Condition::Payload { field, compare, value } => {
                on(&|node| node.payload.as_ref().is_some_and(|payload| holds_of_field(payload, field, *compare, value)))
            }
            Condition::PayloadVersion(compare, n) => on(&|node| holds_of_number(*compare, node.payload_version, *n)),
            Condition::ChildrenVersion(compare, n) => on(&|node| holds_of_number(*compare, node.children_version, *n)),
            Condition::Children(compare, n) => on(&|node| holds_of_number(*compare, node.children, *n)),
        }
    }

    /// Whether it looks only at the path.
    pub(super) fn is_of_path(&self) -> bool {
        match self {
            Condition::Name(_) | Condition::NameRegex(_) => true,
            Condition::Path(pattern) => pattern.is_of_path(),
            Condition::Not(condition) => condition.is_of_path(),
            Condition::All(conditions) | Condition::Any(conditions) => conditions.iter().all(Condition::is_of_path),
            _ => false,
        }
    }

    /// A prefix of every name for which it holds.
    pub(super) fn name_prefix(&self) -> &str {
        match self {
            Condition::Name(glob) => glob.prefix(),
            Condition::All(conditions) => {
                conditions.iter().map(Condition::name_prefix).max_by_key(|prefix| prefix.len()).unwrap_or_default()
            }
            _ => "",
        }
    }

    /// Fails if it compares what cannot be compared, or is nested too deeply.
    pub fn check(&self) -> Result<()> {
        self.check_at(0)
    }

    fn check_at(&self, depth: usize) -> Result<()> {
        if depth > DEPTH_MAX {
            return Err(Error::invalid(format!("a condition is nested more than {DEPTH_MAX} levels deep")));
        }
        match self {
            Condition::Not(condition) => condition.check_at(depth + 1),
            Condition::All(conditions) | Condition::Any(conditions) => {
                conditions.iter().try_for_each(|condition| condition.check_at(depth + 1))
            }
            Condition::Path(pattern) if !pattern.is_of_path() => {
                Err(Error::invalid("a condition on the path holds a pattern with conditions on nodes"))
            }
            Condition::PayloadVersion(Compare::Contains, _)
            | Condition::ChildrenVersion(Compare::Contains, _)
            | Condition::Children(Compare::Contains, _) => {
                Err(Error::invalid("a condition asks whether a number contains another; expected a comparison"))
            }
            _ => Ok(()),
        }
    }
}

fn holds_of_number(compare: Compare, a: u64, b: u64) -> bool {
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

fn holds_of_field(payload: &Payload, field: &[String], compare: Compare, with: &Payload) -> bool {
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
        _ => Some(super::field::number(a)?.cmp(&super::field::number(b)?)),
    }
}
