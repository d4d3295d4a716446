//! Kinds of columns that the models of changing columns have, and values of them, each made of a small number.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, NullArray, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, TimeUnit};

/// The beginning of 2200, in microseconds since 1970: no row that has a time of these tests expires in them.
pub const FUTURE: i64 = 7_258_118_400_000_000;

/// The type of a column. A value is a number in all of them, shown in its own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Null,
    Narrow,
    Wide,
    Float,
    Text,
    Time,
}

impl Kind {
    pub const TYPED: [Kind; 5] = [Kind::Narrow, Kind::Wide, Kind::Float, Kind::Text, Kind::Time];

    pub fn data_type(self) -> DataType {
        match self {
            Kind::Null => DataType::Null,
            Kind::Narrow => DataType::Int32,
            Kind::Wide => DataType::Int64,
            Kind::Float => DataType::Float64,
            Kind::Text => DataType::Utf8,
            Kind::Time => DataType::Timestamp(TimeUnit::Microsecond, None),
        }
    }

    pub fn array(self, values: &[Option<i64>]) -> ArrayRef {
        let values = values.iter().copied();
        match self {
            Kind::Null => Arc::new(NullArray::new(values.len())),
            Kind::Narrow => Arc::new(values.map(|v| v.map(|v| v as i32)).collect::<Int32Array>()),
            Kind::Wide => Arc::new(values.collect::<Int64Array>()),
            Kind::Float => Arc::new(values.map(|v| v.map(|v| v as f64)).collect::<Float64Array>()),
            Kind::Text => Arc::new(values.map(|v| v.map(|v| format!("x{v}"))).collect::<StringArray>()),
            Kind::Time => {
                Arc::new(values.map(|v| v.map(|v| FUTURE + v * 1_000_000)).collect::<TimestampMicrosecondArray>())
            }
        }
    }

    pub fn shown(self, value: Option<i64>) -> String {
        match (self, value) {
            (_, None) | (Kind::Null, _) => String::new(),
            (Kind::Narrow | Kind::Wide, Some(value)) => format!("{value}"),
            (Kind::Float, Some(value)) => format!("{value}.0"),
            (Kind::Text, Some(value)) => format!("x{value}"),
            (Kind::Time, Some(value)) => format!("2200-01-01T00:00:{value:02}"),
        }
    }

    pub fn is_number(self) -> bool {
        matches!(self, Kind::Narrow | Kind::Wide | Kind::Float)
    }

    /// The type of a column that is computed from one of this type by adding to it, if it is one of numbers.
    pub fn sum(self) -> Option<Kind> {
        match self {
            Kind::Narrow | Kind::Wide => Some(Kind::Wide),
            Kind::Float => Some(Kind::Float),
            Kind::Null | Kind::Text | Kind::Time => None,
        }
    }

    /// Whether rows of a frame's kind can be brought into a column of this one as it is.
    pub fn takes(self, came: Kind) -> bool {
        came == self
            || came == Kind::Null
            || matches!((self, came), (Kind::Wide, Kind::Narrow) | (Kind::Float, Kind::Narrow | Kind::Wide))
    }

    /// The kind of a type.
    pub fn of(data_type: &DataType) -> Kind {
        Kind::TYPED.into_iter().find(|kind| kind.data_type() == *data_type).unwrap_or(Kind::Null)
    }

    /// A value as filters have it.
    pub fn literal(self, value: i64) -> String {
        match self {
            Kind::Text => format!("'x{value}'"),
            Kind::Time => format!("timestamp '{}'", self.shown(Some(value))),
            Kind::Null | Kind::Narrow | Kind::Wide | Kind::Float => value.to_string(),
        }
    }
}
