//! The layout of a table: set, and as the newest version calls its columns.

use std::sync::Arc;

use super::definition::{RowLayout, StoredLayout};
use crate::base::{Error, Result, Seq};
use crate::table::TableState;

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
    pub fn with_layout(&self, layout: Option<&StoredLayout>, seq: Seq) -> Self {
        Self { layout: layout.cloned().map(Arc::new), layout_seq: seq, ..self.clone() }
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
