//! The difference between two versions of a table: what only one of them shows, found by records alone.
//!
//! A rewrite keeps the rows of all versions together, so a row that two versions show is usually at one place of the
//! same bytes. What both show is struck out by sets of positions, without I/O. The rest are two tables of one version
//! each, read by ordinary scans.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::Vector;

use super::group_reader::GroupReader;
use super::select::expiry::Expiry;
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Pool, Result, Version};
use crate::block::{Address, BlockReader};
use crate::table::memory::part::InMemory;
use crate::table::{Instants, ReadPoint, RowGroup, Rows, StoredSchema, TableState};

/// The rows that only `since` shows of `table` in these columns, and those that only `until` does: each as a table with just
/// that version. A row that both show lies at the same place of the same bytes, whichever records name them, since whatever
/// rewrites rows keeps those of all versions together. Rows that both show, but not alike, because a column has another name
/// or is of one of them alone, are among those of both; a row that has expired between both is among those of the first.
/// `Conflict` if a version depends on rows in memory. O(row groups) set operations; where statistics do not tell whether rows have
/// expired, a column of them is read.
pub fn difference(
    reader: &BlockReader,
    pool: &Pool,
    table: &TableState,
    seen: [ReadPoint; 2],
    columns: &[String],
) -> Result<[TableState; 2]> {
    if seen.into_iter().any(|at| table.depends_on_parts(at.version)) {
        return Err(Error::conflict("rows written by key are not in row groups yet; checkpoint the store first"));
    }
    difference_of_groups(reader, pool, table, seen, columns)
}

/// The same of what lies in row groups, whatever rows in memory hide of it.
pub fn difference_of_groups(
    reader: &BlockReader,
    pool: &Pool,
    table: &TableState,
    seen: [ReadPoint; 2],
    columns: &[String],
) -> Result<[TableState; 2]> {
    let [since, until] = seen.map(|at| at.version);
    let [before, after] = [table.schema_of(since)?, table.schema_of(until)?];
    let same = before == after;
    let alike = |group: &RowGroup| same || shows_alike(table, group, [before, after], columns);
    let expiry = [Expiry::at(table, seen[0])?, Expiry::at(table, seen[1])?];
    let shows = |group: &RowGroup, side: usize| {
        let rows = table.visible(group, seen[side].version);
        match expiry[side].as_ref().filter(|_| rows != Rows::None && !planted(Bug::DiffWithoutExpiry)) {
            Some(expiry) => expiry.alive(&GroupReader::open(reader, table, seen[side].version, group)?, rows),
            None => Ok(rows),
        }
    };
    let own = |group: &Arc<RowGroup>| Ok(([shows(group, 0)?, shows(group, 1)?], alike(group)));
    let all: Vec<([Rows; 2], bool)> = match expiry.iter().any(Option::is_some) {
        true => pool.map(table.groups.iter().collect(), own)?,
        false => table.groups.iter().map(own).collect::<Result<_>>()?,
    };
    let groups: Vec<_> = table.groups.iter().zip(all).collect();
    // What each version shows of the same bytes.
    let mut shown: BTreeMap<Address, [Rows; 2]> = BTreeMap::new();
    for (group, ([before, after], _)) in groups.iter().filter(|(_, (_, alike))| *alike) {
        if (before, after) != (&Rows::None, &Rows::None) {
            let all = shown.entry(group.address).or_insert([Rows::None, Rows::None]);
            *all = [all[0].or(before, group.rows), all[1].or(after, group.rows)];
        }
    }
    if !planted(Bug::DiffRecords) {
        shown.retain(|_, [before, after]| before != after);
    }
    let only = |version: Version, own: usize| -> Result<TableState> {
        let record = table.record(version)?.clone();
        let groups = groups.iter().filter_map(|(group, (rows, alike))| {
            let rows = match *alike && !planted(Bug::DiffRecords) {
                true => rows[own].without(&shown.get(&group.address)?[1 - own], group.rows),
                false => rows[own].clone(),
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
    Ok([only(since, 0)?, only(until, 1)?])
}

impl TableState {
    /// The same without rows.
    pub fn without_groups(&self) -> Self {
        Self { groups: Vector::new(), ..self.clone() }
    }
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
