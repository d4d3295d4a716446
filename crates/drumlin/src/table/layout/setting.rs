//! The layout of a table: by which columns its row groups are sorted, whatever the order in which its rows are shown.

use serde::{Deserialize, Serialize};

use super::curve::CURVE_COLUMNS;
use crate::base::{Error, Result, Seq};
use crate::table::order::sort_columns::check_order;
use crate::table::{StoredSchema, TableState};

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
    fn renamed(&self, name: impl Fn(&String) -> Option<String>) -> Option<Self> {
        let columns = self.columns().iter().map(name).collect::<Option<_>>()?;
        Some(match self {
            Self::Sorted(_) => Self::Sorted(columns),
            Self::Curve(_) => Self::Curve(columns),
        })
    }

    /// `InvalidArgument` if rows of a table with that schema cannot be laid out like that.
    fn check(&self, schema: &StoredSchema) -> Result<()> {
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
            _ => check_order(columns, &schema.0, "layout column"),
        }
    }
}

/// A layout as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredLayout {
    /// The commit that set it, so that it has a number of its own.
    pub number: u64,
    /// The layout, whose columns go by their ids.
    pub layout: RowLayout,
}

impl TableState {
    /// What is stored of a layout in the newest version's names.
    ///
    /// # Errors
    /// `InvalidArgument` if the table is sorted, or has no such columns, or these have no order.
    pub fn stored_layout(&self, layout: &RowLayout) -> Result<RowLayout> {
        if !self.order().is_empty() {
            let (sort, what) =
                (self.order().join("', '"), if self.spec.keyed { "has the key" } else { "is sorted by" });
            return Err(Error::invalid(format!(
                "the table {what} '{sort}', and its row groups are kept in that order; a layout is for tables without one, and an index for \
                 filters on other columns (`create_index`)"
            )));
        }
        let newest = self.newest().ok_or_else(|| Error::invalid("the table has no version yet"))?;
        let schema = &self.schemas[newest.schema as usize];
        layout.check(schema)?;
        let lost = || Error::internal("a column of the newest version has an id");
        layout.renamed(|name| schema.id_of(name).map(str::to_owned)).ok_or_else(lost)
    }

    /// The table with another layout, or without one.
    pub fn with_layout(&self, layout: Option<&RowLayout>, seq: Seq) -> Self {
        let layout = layout.map(|layout| StoredLayout { number: seq.0, layout: layout.clone() });
        Self { layout: layout.map(std::sync::Arc::new), layout_seq: seq, ..self.clone() }
    }

    /// Its layout in the newest version's names, and the number of that; `None` if it has none, or one of whose columns are gone.
    pub fn row_layout(&self) -> Option<(RowLayout, u64)> {
        let (stored, newest) = (self.layout.as_ref()?, self.newest()?);
        let schema = &self.schemas[newest.schema as usize];
        let named = stored.layout.renamed(|id| schema.place_of_id(id).map(|at| schema.0.field(at).name().clone()))?;
        named.check(schema).ok().filter(|()| self.order().is_empty())?;
        Some((named, stored.number))
    }
}
