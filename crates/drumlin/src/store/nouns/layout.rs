//! Layouts of tables.

use crate::base::Result;
use crate::catalog::{Effect, Footprint, Path, Read, State};
use crate::store::Place;
use crate::store::nouns::table::Table;
use crate::store::read::resolve::table_at;
use crate::table::{RowLayout, StoredLayout};

impl Table {
    /// Says by which columns the row groups of the table are sorted from now on, or, with `None`, that they stay as they are. For a table that is
    /// not sorted itself: its rows are shown in the order in which they were written, by all versions, whatever its layout.
    ///
    /// Checkpoints lay out row groups that overlap in these columns, the worst first, within their budget; so a filter on them reads few. A
    /// reader of all rows in order takes longer. [`Table::stat`] tells how much they overlap.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use drumlin::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    /// # use drumlin::{RowLayout, Store, Tables};
    /// # let store = Store::memory()?;
    /// # let n = Arc::new(Int64Array::from(vec![3, 1, 2])) as ArrayRef;
    /// store.write("t", RecordBatch::try_from_iter([("n", n)]).unwrap(), &Default::default())?;
    /// let table = store.table("t");
    /// table.set_layout(Some(&RowLayout::Sorted(vec!["n".into()])))?;
    /// store.checkpoint(&Default::default())?;
    /// assert_eq!(table.stat()?.layout.unwrap().overlap, 0.0);
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no table; `InvalidArgument` if the table is sorted, or if a column is missing or its type has no order.
    pub fn set_layout(&self, layout: Option<&RowLayout>) -> Result<()> {
        let path = Path::new(&self.path)?;
        let number = self.place.store().env().entropy.next()?;
        match &self.place {
            Place::Store(store) => {
                let (layout, at) = (layout.cloned(), path.clone());
                store.commit_effects(move |state| {
                    Ok(set_layout(state, &at, layout.as_ref(), number)?.into_iter().collect())
                })?;
                Ok(())
            }
            Place::Transaction(transaction) => transaction.change_tables(|_, open| {
                let effect = set_layout(open.draft.state(), &path, layout, number)?.into_iter().collect();
                open.apply(Footprint::default().with(Read::Binding(path.clone())), effect, None)
            }),
        }
    }
}

/// What sets the layout of the table at `path`; nothing if it has that.
fn set_layout(state: &State, path: &Path, layout: Option<&RowLayout>, number: u64) -> Result<Option<Effect>> {
    let table = table_at(state, path)?;
    let stored = layout.map(|layout| table.stored_layout(layout)).transpose();
    let layout = stored.map_err(|e| e.context(format!("'{path}'")))?;
    let same = table.layout.as_ref().map(|stored| &stored.layout) == layout.as_ref();
    let layout = layout.map(|layout| StoredLayout { number, layout });
    Ok((!same).then_some(Effect::SetLayout { table: table.id, layout }))
}
