//! A layout: by which columns the row groups of a table are sorted, whatever the order in which its rows are shown.

use serde::{Deserialize, Serialize};

use super::curve::CURVE_COLUMNS;
use crate::base::{Error, Result};
use crate::table::StoredSchema;
use crate::table::order::sort_columns::check_layout;

/// The most columns that rows are laid out by one after the other.
const COLUMNS_MAX: usize = 16;

/// By which columns the rows of a table are laid out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RowLayout {
    /// One after the other, as if the table were sorted by them.
    Sorted(Vec<String>),
    /// By two to four of them together, along a curve (a "Z-order"): a filter on any of them reads little.
    Curve(Vec<String>),
}

impl RowLayout {
    /// The columns.
    pub fn columns(&self) -> &[String] {
        match self {
            Self::Sorted(columns) | Self::Curve(columns) => columns,
        }
    }

    /// The same by other names; `None` if one is gone.
    pub(super) fn renamed(&self, name: impl Fn(&String) -> Option<String>) -> Option<Self> {
        let columns = self.columns().iter().map(name).collect::<Option<_>>()?;
        Some(match self {
            Self::Sorted(_) => Self::Sorted(columns),
            Self::Curve(_) => Self::Curve(columns),
        })
    }

    /// `InvalidArgument` if rows of a table with that schema cannot be laid out like that.
    pub(super) fn check(&self, schema: &StoredSchema) -> Result<()> {
        let columns = self.columns();
        match self {
            Self::Curve(_) if !CURVE_COLUMNS.contains(&columns.len()) => Err(Error::invalid(format!(
                "a Z-order has {} columns; expected {} to {}",
                columns.len(),
                CURVE_COLUMNS.start(),
                CURVE_COLUMNS.end()
            ))),
            _ if columns.is_empty() || columns.len() > COLUMNS_MAX => {
                Err(Error::invalid(format!("a layout has {} columns; expected 1 to {COLUMNS_MAX}", columns.len())))
            }
            _ => check_layout(columns, &schema.0),
        }
    }
}

/// A layout as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredLayout {
    /// A number that no other has.
    pub number: u64,
    /// The layout, whose columns go by their ids.
    pub layout: RowLayout,
}
