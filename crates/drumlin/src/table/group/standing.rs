//! In which order the rows of a row group stand.
//!
//! Rows of a table without an order are shown as they were written. A layout puts them elsewhere: the rows of some adjacent row groups,
//! a *tract*, are sorted by other columns and cut into row groups again. Each row then has a *place*: its number in the order in which the
//! rows of its tract are shown. Places are a column of `UInt32` behind those of the schema, which no schema has; it belongs to the base of a
//! row group, whatever patches lie on it.

use arrow::datatypes::DataType;
use serde::{Deserialize, Serialize};

/// The type of places.
pub const PLACES: DataType = DataType::UInt32;

/// In which order the rows of a row group stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    /// Not in that in which they are shown, which is that of the table's sort columns.
    Unsorted,
    /// In that in which they are shown.
    Sorted,
    /// In that of a layout.
    Placed(Tract),
}

/// Row groups that were laid out together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tract {
    /// A number that no other tract has; row groups of it that a version shows stand side by side.
    pub id: u64,
    /// The number of the layout by which they were sorted.
    pub layout: u64,
}

impl Standing {
    /// That of a row group whose rows are in the order of the table, or not.
    pub fn of(sorted: bool) -> Self {
        if sorted { Self::Sorted } else { Self::Unsorted }
    }

    /// The tract that it is of.
    pub fn tract(self) -> Option<Tract> {
        match self {
            Self::Placed(tract) => Some(tract),
            Self::Unsorted | Self::Sorted => None,
        }
    }
}
