//! Which rows a purge erases: those that match in one of the versions that show them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::family::{Family, members, place_of};
use crate::base::{Meter, Result, TableId, Task, Version};
use crate::block::Address;
use crate::catalog::State;
use crate::filter::Filter;
use crate::store::Store;
use crate::table::{FilterOfVersions, Positions, Retained, RowGroup, Rows, TableState};

/// The rows that match, by row group, and histories with such rows.
#[derive(Clone, Default)]
pub(in crate::store) struct Matching {
    pub rows: BTreeMap<Address, Positions>,
    pub histories: BTreeSet<(TableId, Version)>,
    /// All row groups that were looked at.
    pub judged: BTreeSet<Address>,
    /// All rows of these.
    pub rows_judged: u64,
}

impl Store {
    /// Judges the rows of all row groups of `family` that `found` does not have yet.
    pub(in crate::store) fn judge(
        &self,
        state: &State,
        family: &Family,
        filter: &Filter,
        found: &mut Matching,
        task: &Task,
    ) -> Result<()> {
        let tables: BTreeMap<TableId, Arc<TableState>> =
            members(state, family)?.into_iter().map(|table| (table.id, table)).collect();
        let filters: BTreeMap<TableId, FilterOfVersions<'_>> =
            tables.iter().map(|(id, table)| (*id, FilterOfVersions::new(table, filter))).collect();
        let retained: BTreeMap<TableId, Retained> = tables.iter().map(|(id, table)| (*id, table.retained())).collect();
        let mut groups: BTreeMap<Address, Vec<(TableId, &Arc<RowGroup>)>> = BTreeMap::new();
        for (id, table) in &tables {
            for group in table.groups.iter().filter(|group| !found.judged.contains(&group.address)) {
                groups.entry(group.address).or_default().push((*id, group));
            }
        }
        let bytes = groups.keys().map(Address::bytes).sum();
        let mut meter = Meter::new(task, &*self.env().clock, groups.len() as u64, bytes);
        self.env().pool.ordered(
            groups.into_iter().map(Ok),
            |(address, _)| address.bytes(),
            self.env().pool.threads() * 2,
            self.options().memory_bytes / 8,
            |(address, records)| {
                task.cancel.check()?;
                let rows = records[0].1.rows;
                let seen = |rows: Rows, (id, group): &(TableId, &Arc<RowGroup>)| {
                    rows.or(&retained[id].needed(group), group.rows)
                };
                let dead = Rows::All.without(&records.iter().fold(Rows::None, seen), rows);
                let mut matching = RoaringBitmap::new();
                for (id, group) in &records {
                    let own =
                        filters[id].rows(self.reader(), group, &dead).map_err(|e| e.context(place_of(state, *id)))?;
                    matching |= own.positions(group.rows);
                }
                Ok((address, rows, matching))
            },
            |(address, rows, matching)| {
                found.judged.insert(address);
                found.rows_judged += u64::from(rows);
                meter.done.rows += u64::from(rows);
                if !matching.is_empty() {
                    found.rows.insert(address, matching.into());
                }
                meter.step(1, address.bytes())
            },
        )?;
        for (id, table) in &tables {
            for history in &table.instants.histories {
                if filters[id].any_in_history(self.reader(), history)? {
                    found.histories.insert((*id, history.version));
                }
                found.judged.extend(history.groups.iter().map(|(address, _)| *address));
            }
        }
        Ok(())
    }
}
