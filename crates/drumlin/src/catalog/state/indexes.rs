//! Indexes of tables: which there are, and where their runs are stored.

use super::State;
use crate::base::{Result, Seq, TableId};
use crate::catalog::FEATURE_UNIQUE;
use crate::table::{NewRun, TableState};

impl State {
    pub(super) fn drop_index(&mut self, table: TableId, index: u64, seq: Seq) -> Result<()> {
        let (next, released) = self.get(table)?.without_index(index)?;
        released.iter().try_for_each(|address| self.ledger.release(address, seq))?;
        self.tables.put(next)?;
        Ok(())
    }

    pub(super) fn put_runs(
        &mut self,
        table: TableId,
        index: u64,
        add: &[NewRun],
        drop: &[u64],
        seq: Seq,
    ) -> Result<()> {
        let (next, parts) = self.get(table)?.with_runs(index, add, drop)?;
        parts.added.iter().try_for_each(|address| self.ledger.add(address))?;
        parts.released.iter().try_for_each(|address| self.ledger.release(address, seq))?;
        self.tables.put(next)?;
        Ok(())
    }

    /// Counts rows of new row groups of a table that has indexes.
    pub(super) fn note_index_rows(&mut self, table: &TableState, rows: impl Iterator<Item = u32>) {
        if !table.indexes.list.is_empty() {
            self.index_rows += rows.map(u64::from).sum::<u64>();
        }
    }

    /// Whether tables ever had unique indexes.
    pub fn has_unique_indexes(&self) -> bool {
        self.uses & FEATURE_UNIQUE != 0
    }

    /// How many rows tables with indexes have got in new row groups since this process began: until a checkpoint fills the indexes, they are
    /// scanned.
    pub fn index_rows(&self) -> u64 {
        self.index_rows
    }

    /// Frees the runs of a table that cover nothing it has any more.
    pub(super) fn uncover(&mut self, table: &mut TableState, seq: Seq) -> Result<()> {
        table.uncover().iter().try_for_each(|address| self.ledger.release(address, seq))
    }
}
