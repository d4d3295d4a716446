//! Rows that are erased from all versions, and the row groups without them.

use std::collections::BTreeMap;

use super::State;
use crate::base::{Error, Result, Seq, TableId, Version};
use crate::block::Address;
use crate::table::{Positions, ShrunkGroup};

impl State {
    pub(super) fn erase_rows(
        &mut self,
        tables: &[TableId],
        rows: &[(Address, Positions)],
        histories: &[(TableId, Version)],
        seq: Seq,
    ) -> Result<()> {
        let rows: BTreeMap<Address, &Positions> = rows.iter().map(|(address, rows)| (*address, rows)).collect();
        for id in tables {
            let own: Vec<Version> = histories.iter().filter(|(table, _)| table == id).map(|(_, v)| *v).collect();
            let (mut next, released) = self.changing(*id)?.erased(&rows, &own, seq)?;
            released.iter().try_for_each(|address| self.ledger.release(address, seq))?;
            self.shed(&mut next, seq)?;
            self.tables.put(next)?;
        }
        Ok(())
    }

    pub(super) fn shrink_groups(&mut self, tables: &[TableId], groups: &[ShrunkGroup], seq: Seq) -> Result<()> {
        let (mut records, mut released) = (vec![0; groups.len()], Vec::new());
        for id in tables {
            let (mut next, own, below) = self.changing(*id)?.shrunk(groups, seq)?;
            self.uncover(&mut next, seq)?;
            self.tables.put(next)?;
            self.moved.insert((seq, *id));
            records.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
            released.extend(below);
        }
        let mut below: BTreeMap<Address, u64> = BTreeMap::new();
        released.iter().for_each(|address| *below.entry(*address).or_insert(0) += 1);
        for (group, records) in groups.iter().zip(records) {
            if records + below.get(&group.from).unwrap_or(&0) != self.ledger.records(&group.from) {
                return Err(Error::conflict(format!("a row group in block {} no longer exists", group.from.block)));
            }
            if let Some((to, _)) = &group.to {
                self.ledger.add(to)?;
                (1..records).for_each(|_| self.ledger.share(to));
            }
            (0..records).try_for_each(|_| self.ledger.release(&group.from, seq))?;
        }
        released.iter().try_for_each(|address| self.ledger.release(address, seq))
    }
}
