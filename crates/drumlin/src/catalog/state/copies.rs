//! Copies, moves and restores of tables, and where tables are in the tree.

use super::State;
use crate::base::{Error, Result, Seq, TableId, Timestamp, Version};
use crate::block::Address;
use crate::catalog::Path;
use crate::table::Adopted;
use std::collections::BTreeSet;

impl State {
    /// Gives a new table its number. `Conflict` if it is not the next.
    pub(super) fn number(&mut self, table: TableId) -> Result<()> {
        if table != self.next_table() {
            return Err(Error::conflict(format!("table id {table} is not the next one")));
        }
        self.last_table = table;
        Ok(())
    }

    pub(super) fn copy_table(
        &mut self,
        from: TableId,
        table: TableId,
        path: &Path,
        version: Option<Version>,
        seq: Seq,
    ) -> Result<()> {
        self.number(table)?;
        let copy = self.get(from)?.copied(table, version, seq)?;
        copy.addresses().for_each(|address| self.ledger.share(address));
        self.tables.put(copy)?;
        self.sequences.take_in(table, from);
        self.link(path, table, seq)
    }

    /// Makes tables as they are in another store; their row groups are in blocks that were added, and that no others name.
    pub(super) fn adopt_tables(
        &mut self,
        tables: &[(TableId, Path, Adopted)],
        seq: Seq,
        time: Timestamp,
    ) -> Result<()> {
        let mut named: BTreeSet<Address> = BTreeSet::new();
        for (id, path, adopted) in tables {
            self.number(*id)?;
            let table = adopted.table(*id, seq, time)?;
            for address in table.addresses() {
                match named.insert(*address) {
                    true => self.ledger.add(address)?,
                    false => self.ledger.share(address),
                }
            }
            self.tables.put(table)?;
            self.link(path, *id, seq)?;
        }
        Ok(())
    }

    pub(super) fn restore_table(
        &mut self,
        table: TableId,
        from: TableId,
        version: Version,
        seq: Seq,
        time: Timestamp,
    ) -> Result<()> {
        self.sequences.take_in(table, from);
        let from = self.get(from)?;
        let restored = self.changing(table)?.restored(&from, version, seq, time);
        let (next, taken) = restored.map_err(|e| match self.paths.get(&table) {
            Some(path) => e.context(format!("'{path}'")),
            None => e,
        })?;
        taken.iter().for_each(|address| self.ledger.share(address));
        self.tables.put(next)?;
        Ok(())
    }

    /// Moves row groups that some tables have, to addresses that nothing names yet.
    pub(super) fn move_groups(&mut self, tables: &[TableId], moves: &[(Address, Address)], seq: Seq) -> Result<()> {
        let mut records = vec![0; moves.len()];
        for id in tables {
            let (next, own) = self.get(*id)?.moved(moves)?;
            self.tables.put(next)?;
            records.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
        for ((from, to), records) in moves.iter().zip(records) {
            if records == 0 {
                return Err(Error::conflict(format!("a row group in block {} no longer exists", from.block)));
            }
            self.ledger.add(to)?;
            (1..records).for_each(|_| self.ledger.share(to));
            (0..records).try_for_each(|_| self.ledger.release(from, seq))?;
        }
        Ok(())
    }

    pub(super) fn take_from_trash(&mut self, id: TableId) -> Result<()> {
        match self.trash.take(id) {
            true => Ok(()),
            false => Err(Error::not_found(format!("table {id} is not in the trash"))),
        }
    }

    /// Takes a table off the tree; returns the path that it had.
    pub(super) fn unlink(&mut self, id: TableId, seq: Seq) -> Result<Path> {
        self.leave_covers(id)?;
        let missing = || Error::not_found(format!("table {id} is not in the tree"));
        let path = self.paths.remove(&id).ok_or_else(missing)?;
        self.tree.edit(path.as_str(), seq, |node| node.edit_extra(|extra| extra.table = None));
        Ok(path)
    }

    /// Puts a table into the tree.
    pub(super) fn link(&mut self, path: &Path, id: TableId, seq: Seq) -> Result<()> {
        if self.table_id_at(path).is_some() {
            return Err(Error::already_exists(format!("'{path}' already holds a table")));
        }
        // None covers it here.
        self.leave_covers(id)?;
        // Another retention may apply to it.
        self.tables.keep_open(id)?;
        self.tree.edit(path.as_str(), seq, |node| node.edit_extra(|extra| extra.table = Some(id)));
        self.paths.insert(id, path.clone());
        Ok(())
    }
}
