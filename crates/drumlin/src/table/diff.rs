//! The difference between two versions of a table: what only one of them shows, found by records alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::Vector;

use super::part::InMemory;
use super::{Instants, Rows, Table};
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, Version};
use crate::block::Address;

/// The rows that only `since` shows of `table`, and those that only `until` does: each as a table with just that version. A row
/// that both show lies at the same place of the same bytes, whichever records name them, since whatever rewrites rows
/// keeps those of all versions together. `Conflict` if a version depends on rows in memory. O(row groups) set operations.
pub fn difference(table: &Table, since: Version, until: Version) -> Result<[Table; 2]> {
    if [since, until].into_iter().any(|version| table.rests_on_parts(version)) {
        return Err(Error::conflict("rows written by key are not in row groups yet"));
    }
    // What each version shows of the same bytes.
    let mut shown: BTreeMap<Address, [Rows; 2]> = BTreeMap::new();
    for group in &table.groups {
        let [before, after] = [since, until].map(|version| table.visible(group, version));
        if (&before, &after) != (&Rows::None, &Rows::None) {
            let all = shown.entry(group.address).or_insert([Rows::None, Rows::None]);
            *all = [all[0].or(&before, group.rows), all[1].or(&after, group.rows)];
        }
    }
    if !planted(Bug::DiffRecords) {
        shown.retain(|_, [before, after]| before != after);
    }
    let only = |version: Version, other: usize| -> Result<Table> {
        let record = table.record(version)?.clone();
        let groups = table.groups.iter().filter_map(|group| {
            let rows = match planted(Bug::DiffRecords) {
                true => table.visible(group, version),
                false => table.visible(group, version).without(&shown.get(&group.address)?[other], group.rows),
            };
            let some = |rows: &Rows| *rows != Rows::None;
            Some(rows).filter(some).map(|rows| Arc::new(group.shown_from(&rows, version)))
        });
        Ok(Table {
            versions: Vector::unit(record),
            groups: groups.collect(),
            pins: Default::default(),
            parts: Vec::new(),
            instants: Arc::new(Instants::default()),
            moved: InMemory::default(),
            unsettled: InMemory::default(),
            codec: InMemory::default(),
            ..table.clone()
        })
    };
    Ok([only(since, 1)?, only(until, 0)?])
}
