//! The difference between two versions of a table: what only one of them shows, found by records alone.
//!
//! A rewrite keeps the rows of all versions together, so a row that two versions show is usually at one place of the
//! same bytes. What both show is struck out by sets of positions, without I/O. The rest are two tables of one version
//! each, read by ordinary scans.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::Vector;

use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, Version};
use crate::block::Address;
use crate::table::memory::part::InMemory;
use crate::table::{Instants, RowGroup, Rows, StoredSchema, TableState};

/// The rows that only `since` shows of `table` in these columns, and those that only `until` does: each as a table with just
/// that version. A row that both show lies at the same place of the same bytes, whichever records name them, since whatever
/// rewrites rows keeps those of all versions together. Rows that both show, but not alike, because a column has another name
/// or is of one of them alone, are among those of both. `Conflict` if a version depends on rows in memory. O(row groups) set operations.
pub fn difference(table: &TableState, since: Version, until: Version, columns: &[String]) -> Result<[TableState; 2]> {
    if [since, until].into_iter().any(|version| table.depends_on_parts(version)) {
        return Err(Error::conflict("rows written by key are not in row groups yet; checkpoint the store first"));
    }
    let [before, after] = [table.schema_of(since)?, table.schema_of(until)?];
    let same = before == after;
    let alike = |group: &RowGroup| same || shows_alike(table, group, [before, after], columns);
    let groups: Vec<(&Arc<RowGroup>, bool)> = table.groups.iter().map(|group| (group, alike(group))).collect();
    // What each version shows of the same bytes.
    let mut shown: BTreeMap<Address, [Rows; 2]> = BTreeMap::new();
    for (group, _) in groups.iter().filter(|(_, alike)| *alike) {
        let [before, after] = [since, until].map(|version| table.visible(group, version));
        if (&before, &after) != (&Rows::None, &Rows::None) {
            let all = shown.entry(group.address).or_insert([Rows::None, Rows::None]);
            *all = [all[0].or(&before, group.rows), all[1].or(&after, group.rows)];
        }
    }
    if !planted(Bug::DiffRecords) {
        shown.retain(|_, [before, after]| before != after);
    }
    let only = |version: Version, other: usize| -> Result<TableState> {
        let record = table.record(version)?.clone();
        let groups = groups.iter().filter_map(|(group, alike)| {
            let rows = match *alike && !planted(Bug::DiffRecords) {
                true => table.visible(group, version).without(&shown.get(&group.address)?[other], group.rows),
                false => table.visible(group, version),
            };
            let some = |rows: &Rows| *rows != Rows::None;
            Some(rows).filter(some).map(|rows| Arc::new(group.shown_from(&rows, version)))
        });
        Ok(TableState {
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

/// Whether rows of a row group have the same in these columns, whichever of two schemas of the table they are read in.
fn shows_alike(table: &TableState, group: &RowGroup, seen: [&StoredSchema; 2], columns: &[String]) -> bool {
    let own = &table.schemas[group.schema as usize];
    let located = group.patched.as_ref().map(|_| group.located(&table.schemas));
    // The place of the column among those of the row group; if it has none, what its rows have instead.
    let value = |seen: &'_ StoredSchema, name: &str| {
        let place = own.place_of(name, seen).filter(|at| located.as_ref().is_none_or(|located| located[*at].is_some()));
        (place, if place.is_some() { None } else { seen.fill_bytes(name) })
    };
    columns.iter().all(|name| value(seen[0], name) == value(seen[1], name))
}
