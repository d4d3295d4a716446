//! Defaults that are made for each row or call: the time, ids that nothing else has, the numbers of a sequence.

use std::fmt;

use arrow::datatypes::{DataType, Field};
use serde::{Deserialize, Serialize};

use crate::base::{Error, Result, TypeName};

/// What makes the value of a column in rows that lack it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Generator {
    /// The time of the call, in the clock that commits have: one for all of its rows. Calls may commit in another order.
    Now,
    /// A UUID of version 7 (RFC 9562) for each row, from the time of the call and random bits: those of later calls are greater.
    Uuid,
    /// Numbers of a sequence of the table, none of them twice, whatever becomes of the rows. Some are never used: a process takes
    /// several at once, and what a refused call took is lost.
    Sequence {
        /// The name of the sequence in the table. Columns that name the same one share its numbers.
        name: String,
        /// The first number.
        start: i64,
    },
}

impl fmt::Display for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Generator::Now => f.write_str("now()"),
            Generator::Uuid => f.write_str("uuid()"),
            Generator::Sequence { start: 1, .. } => f.write_str("sequence()"),
            Generator::Sequence { start, .. } => write!(f, "sequence({start})"),
        }
    }
}

impl Generator {
    /// The numbers of a sequence that has the name of its column, from `start` on.
    pub fn sequence(column: impl Into<String>, start: i64) -> Self {
        Generator::Sequence { name: column.into(), start }
    }

    /// What makes the default of `column`, from its text as it is displayed: `now()`, `uuid()`, `sequence()` or `sequence(100)`; `None` for
    /// other texts.
    pub fn parse(text: &str, column: &str) -> Option<Self> {
        let (name, start) = text.trim().strip_suffix(')')?.split_once('(')?;
        match (name.trim().to_ascii_lowercase().as_str(), start.trim()) {
            ("now", "") => Some(Generator::Now),
            ("uuid", "") => Some(Generator::Uuid),
            ("sequence", "") => Some(Generator::sequence(column, 1)),
            ("sequence", start) => Some(Generator::sequence(column, start.parse().ok()?)),
            _ => None,
        }
    }

    /// `InvalidArgument` if a column of this field cannot have such values.
    pub(in crate::table) fn check(&self, field: &Field) -> Result<()> {
        let (fits, expected) = match self {
            Generator::Now => {
                let fits = matches!(field.data_type(), DataType::Timestamp(..) | DataType::Date32);
                (fits, "a timestamp or a date")
            }
            Generator::Uuid => {
                use DataType::{FixedSizeBinary, LargeUtf8, Utf8, Utf8View};
                (matches!(field.data_type(), FixedSizeBinary(16) | Utf8 | LargeUtf8 | Utf8View), "a UUID or text")
            }
            Generator::Sequence { name, start } => {
                if name.is_empty() {
                    return Err(Error::invalid("a sequence needs a name"));
                }
                if *start < 0 {
                    return Err(Error::invalid(format!("a sequence begins at 0 or later, not at {start}")));
                }
                use DataType::{Int32, Int64, UInt32, UInt64};
                (matches!(field.data_type(), Int64 | UInt64 | Int32 | UInt32), "an integer of 32 or 64 bits")
            }
        };
        match fits {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "column '{}' of type {} cannot have the default {self}; that needs {expected}",
                field.name(),
                TypeName(field.data_type())
            ))),
        }
    }
}
