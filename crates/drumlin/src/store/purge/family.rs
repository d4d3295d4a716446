//! Which tables a purge concerns: those that a pattern names, wherever they are, and all that have, or had, rows in common
//! with them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use roaring::RoaringBitmap;

use crate::base::{Result, TableId};
use crate::block::Address;
use crate::catalog::{Pattern, State};
use crate::table::{Retained, RowGroup, ShrunkGroup, TableState};

/// The tables that a purge concerns, and whether the pattern names them.
pub(in crate::store) type Family = BTreeMap<TableId, bool>;

/// The records of the same bytes, and their tables.
pub(in crate::store) type Records = BTreeMap<Address, Vec<(TableId, Arc<RowGroup>)>>;

/// Tables whose path matches, in the tree, in the trash or in a snapshot, and those with rows from the same tables, or with
/// the same row groups. O(row groups of the store).
pub(in crate::store) fn family(state: &State, pattern: &Pattern) -> Result<Family> {
    let mut family: Family = state.ids_matching(pattern).map(|(_, table)| (table, true)).collect();
    let trash = state.trash.tables().iter().filter(|(_, trash)| pattern.matches_path(trash.path.as_str()));
    family.extend(trash.map(|(id, _)| (*id, true)));
    for (path, id, _) in state.pins() {
        if pattern.matches_path(path.as_str()) && state.table(id)?.is_some() {
            family.insert(id, true);
        }
    }
    let (mut by_ancestor, mut by_address) = (BTreeMap::<TableId, Vec<TableId>>::new(), BTreeMap::new());
    for table in state.tables() {
        let table = table?;
        for ancestor in table.lineage.ancestors.iter().chain([&table.id]) {
            by_ancestor.entry(*ancestor).or_default().push(table.id);
        }
        for address in table.addresses().filter(|address| state.ledger.records(address) > 1) {
            by_address.entry(*address).or_insert_with(BTreeSet::new).insert(table.id);
        }
    }
    let mut open: Vec<TableId> = family.keys().copied().collect();
    while let Some(id) = open.pop() {
        let Some(table) = state.table(id)? else { continue };
        let ancestors = table.lineage.ancestors.iter().chain([&id]).filter_map(|ancestor| by_ancestor.get(ancestor));
        let sharing = table.addresses().filter_map(|address: &Address| by_address.get(address));
        let relatives: Vec<TableId> = ancestors.flatten().chain(sharing.flatten()).copied().collect();
        for relative in relatives {
            family.entry(relative).or_insert_with(|| {
                open.push(relative);
                false
            });
        }
    }
    // Views are purged by themselves, see *run.rs*.
    family.retain(|id, _| {
        let named = || state.path_of(*id).is_some_and(|path| pattern.literal() == Some(path.as_str()));
        state.row_views.get(*id).is_none() || named()
    });
    Ok(family)
}

/// The tables of a family that there still are.
pub(in crate::store) fn members(state: &State, family: &Family) -> Result<Vec<Arc<TableState>>> {
    family.keys().filter_map(|id| state.table(*id).transpose()).collect()
}

/// Where a table is, or was.
pub(in crate::store) fn place_of(state: &State, id: TableId) -> String {
    let pinned = || state.pins().find(|(_, table, _)| *table == id).map(|(path, ..)| path);
    let path = state.path_of(id).or_else(|| state.trash.get(id).map(|trash| &trash.path)).or_else(pinned);
    path.map_or_else(|| format!("(table {id})"), ToString::to_string)
}

/// The records of all row groups of a family.
pub(in crate::store) fn records(state: &State, family: &Family) -> Result<Records> {
    let mut records = Records::new();
    for table in members(state, family)? {
        for group in &table.groups {
            records.entry(group.address).or_default().push((table.id, group.clone()));
        }
    }
    Ok(records)
}

/// The rows of row groups that were erased, and that no record of theirs needs: one that was copied from the first version may hide
/// rows in the same way which others show.
pub(in crate::store) fn erased_rows(state: &State, records: &Records) -> Result<BTreeMap<Address, RoaringBitmap>> {
    let mut retained: BTreeMap<TableId, Retained> = BTreeMap::new();
    let mut erased = BTreeMap::new();
    for (address, of) in records {
        let mut rows = of.iter().fold(RoaringBitmap::new(), |rows, (_, group)| rows | group.erased());
        if rows.is_empty() {
            continue;
        }
        for (id, group) in of {
            let Some(table) = state.table(*id)? else { continue };
            let needed = retained.entry(*id).or_insert_with(|| table.retained()).needed(group);
            rows -= needed.positions(group.rows);
        }
        if !rows.is_empty() {
            erased.insert(*address, rows);
        }
    }
    Ok(erased)
}

/// The tables with a record of one of these addresses.
pub(in crate::store) fn tables_naming<'a>(
    records: &Records,
    addresses: impl Iterator<Item = &'a Address>,
) -> Vec<TableId> {
    let tables: BTreeSet<TableId> =
        addresses.filter_map(|address| records.get(address)).flatten().map(|(table, _)| *table).collect();
    tables.into_iter().collect()
}

/// Takes out of `groups` those on which there are patches that are not among them: others have made these since.
pub(in crate::store) fn leave_patched(records: &Records, groups: &mut Vec<ShrunkGroup>) {
    loop {
        let replaced: BTreeSet<Address> = groups.iter().map(|group| group.from).collect();
        let left = records.iter().filter(|(address, _)| !replaced.contains(*address)).flat_map(|(_, of)| of);
        let below: BTreeSet<&Address> = left.flat_map(|(_, group)| group.addresses().skip(1)).collect();
        let before = groups.len();
        groups.retain(|group| !below.contains(&group.from));
        if groups.len() == before {
            return;
        }
    }
}
