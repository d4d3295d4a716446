//! Statistics of one column of one row group: the number of nulls, the smallest and the greatest value.
//!
//! Invariant: every non-null value `v` of the column satisfies `min <= v <= max` in the order of [`Stat`]. A bound
//! may be wider than the data (long strings are cut); then `exact` is false.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

/// A bound. All values of a column have the same variant.
///
/// Order: false < true; numbers by value; floats with NaN equal to itself and greatest, and -0.0 equal to 0.0;
/// bytes lexicographically.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Stat {
    /// Booleans.
    Bool(bool),
    /// Signed integers, dates, times, timestamps and durations, in the unit of the column's type.
    Int(i64),
    /// Unsigned integers.
    UInt(u64),
    /// Decimals of up to 128 bits, unscaled.
    Decimal(i128),
    /// Floats of any width.
    Float(f64),
    /// UTF-8 strings and binary; of a dictionary column, its values.
    Bytes(Vec<u8>),
}

/// The longest bound kept for strings and binary, in bytes.
pub const STAT_BYTES_MAX: usize = 64;

impl Stat {
    /// Compares two bounds; `None` if they are of different variants.
    pub fn compare(&self, other: &Stat) -> Option<Ordering> {
        Some(match (self, other) {
            (Stat::Bool(a), Stat::Bool(b)) => a.cmp(b),
            (Stat::Int(a), Stat::Int(b)) => a.cmp(b),
            (Stat::UInt(a), Stat::UInt(b)) => a.cmp(b),
            (Stat::Decimal(a), Stat::Decimal(b)) => a.cmp(b),
            (Stat::Float(a), Stat::Float(b)) => compare_floats(*a, *b),
            (Stat::Bytes(a), Stat::Bytes(b)) => a.cmp(b),
            _ => return None,
        })
    }
}

/// NaN equals NaN and is greatest, -0.0 equals 0.0, as in DuckDB and PostgreSQL.
pub fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// What is known of a column without reading it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ColumnStats {
    /// Null rows.
    pub nulls: u64,
    /// A lower bound; `None` if every row is null or the type has no order here.
    pub min: Option<Stat>,
    /// An upper bound; `None` if every row is null, the type has no order here, or no short bound exists.
    pub max: Option<Stat>,
    /// Whether `min` and `max` are values of the column rather than bounds around them.
    pub exact: bool,
}

impl ColumnStats {
    /// Statistics that hold for the rows of both.
    pub fn union(&self, other: &Self) -> Self {
        let pick = |a: &Option<Stat>, b: &Option<Stat>, wanted: Ordering| {
            let (a, b) = (a.as_ref()?, b.as_ref()?);
            Some(if a.compare(b)? == wanted { a.clone() } else { b.clone() })
        };
        Self {
            nulls: self.nulls + other.nulls,
            min: pick(&self.min, &other.min, Ordering::Less),
            max: pick(&self.max, &other.max, Ordering::Greater),
            exact: false,
        }
    }
}
