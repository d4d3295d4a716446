//! Row groups that come and go with the versions of their tables.

use super::State;
use crate::base::planted::{Bug, planted};
use crate::base::{Result, Seq, TableId, Timestamp};
use crate::table::{Flush, GroupId, NewGroup, NewPatch, Reorder, Rewrite, TableChange, TableUpdate};

impl State {
    pub(super) fn change(&mut self, id: TableId, change: &TableChange, seq: Seq, time: Timestamp) -> Result<()> {
        let next = self.changing(id)?.change(change, seq, time)?;
        change.groups.iter().try_for_each(|group| self.ledger.add(&group.address))?;
        self.note_index_rows(&next, change.groups.iter().map(|group| group.rows));
        self.tables.put(next)?;
        Ok(())
    }

    pub(super) fn flush(&mut self, id: TableId, flush: &Flush, history: &[NewGroup], seq: Seq) -> Result<()> {
        let mut next = self.get(id)?.flush(flush, history, seq)?;
        flush.groups.iter().chain(history).try_for_each(|group| self.ledger.add(&group.address))?;
        self.shed(&mut next, seq)?;
        self.note_index_rows(&next, flush.groups.iter().map(|group| group.rows));
        self.tables.put(next)?;
        Ok(())
    }

    /// Changes rows of a table in place.
    pub(super) fn update(
        &mut self,
        id: TableId,
        update: &TableUpdate,
        patches: &[(GroupId, NewPatch)],
        seq: Seq,
        time: Timestamp,
    ) -> Result<()> {
        let (next, below) = self.changing(id)?.updated(update, patches, seq, time)?;
        let replaced = update.replaced.iter().map(|(_, group)| group);
        let added: Vec<&NewGroup> = replaced.chain(&update.groups).collect();
        added.iter().try_for_each(|group| self.ledger.add(&group.address))?;
        self.note_index_rows(&next, added.iter().map(|group| group.rows));
        if !planted(Bug::ForgetBelow) {
            below.iter().for_each(|address| self.ledger.share(address));
        }
        self.tables.put(next)?;
        Ok(())
    }

    pub(super) fn rewrite(&mut self, id: TableId, rewrite: &Rewrite, seq: Seq) -> Result<()> {
        let (mut next, inputs) = self.get(id)?.rewrite(rewrite, seq)?;
        self.moved.insert((seq, id));
        rewrite.outputs.iter().try_for_each(|group| self.ledger.add(&group.address))?;
        inputs.iter().try_for_each(|address| self.ledger.release(address, seq))?;
        self.uncover(&mut next, seq)?;
        self.tables.put(next)?;
        Ok(())
    }

    pub(super) fn reorder(&mut self, id: TableId, reorder: &Reorder, seq: Seq) -> Result<()> {
        let (mut next, inputs) = self.get(id)?.reorder(reorder, seq)?;
        self.moved.insert((seq, id));
        reorder.outputs().try_for_each(|group| self.ledger.add(&group.address))?;
        inputs.iter().try_for_each(|address| self.ledger.release(address, seq))?;
        self.uncover(&mut next, seq)?;
        self.tables.put(next)?;
        Ok(())
    }
}
