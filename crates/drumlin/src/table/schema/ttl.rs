//! When rows expire: a column with times, and how long after them. A version's schema carries it, on the column, so that it
//! follows renames, and a restore or a copy needs nothing for it.

use arrow::datatypes::DataType;

use crate::base::Timestamp;
use crate::filter::Filter;
use crate::table::StoredSchema;

/// When the rows of a table expire: a row is seen until the time that it has in a column, and some time after that. A row that has
/// null there does not expire. Times without a time zone are in UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeToLive {
    /// A column with times.
    pub column: String,
    /// How long after them rows are seen, in microseconds, from 0 on.
    pub after_micros: i64,
}

impl StoredSchema {
    /// The place of the column whose times say when rows expire, and after how many microseconds.
    pub fn ttl_place(&self) -> Option<(usize, i64)> {
        self.known_columns()?.iter().enumerate().find_map(|(at, column)| Some((at, column.ttl?)))
    }

    /// When rows expire; `None` if they do not.
    pub fn ttl(&self) -> Option<TimeToLive> {
        let (at, after_micros) = self.ttl_place()?;
        Some(TimeToLive { column: self.0.field(at).name().clone(), after_micros })
    }

    /// Whether rows expire.
    pub fn expires(&self) -> bool {
        self.ttl_place().is_some()
    }

    /// What is true for rows that have expired at `instant`; `None` if rows do not expire.
    pub fn expired_at(&self, instant: Timestamp) -> Option<Filter> {
        let (at, after) = self.ttl_place()?;
        let field = self.0.field(at);
        let zoned = matches!(field.data_type(), DataType::Timestamp(_, Some(_)));
        Some(Filter::not_later(field.name(), instant.0.saturating_sub(after), zoned))
    }
}
