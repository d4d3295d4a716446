//! How row groups are laid out, and which places their rows get.

use std::collections::BTreeMap;

use crate::base::Result;
use crate::table::read::group_reader::GroupReader;
use crate::table::{Rows, Tract};

/// How row groups of a table without an order are merged into others.
#[derive(Clone, Debug)]
pub struct Laying {
    /// The columns by which their rows are sorted, as the newest version calls them.
    pub columns: Vec<String>,
    /// Whether by all of these together, along a curve, instead of one after the other.
    pub curve: bool,
    /// What the new row groups are.
    pub tract: Tract,
}

/// The new places of the rows that are kept of row groups, which stand in the order in which these are shown: by their row groups, or, where
/// several are of one tract, by the places that they had in it. O(n log n).
pub(in crate::table) fn new_places(inputs: &[(GroupReader<'_>, &Rows)]) -> Result<Vec<Vec<u32>>> {
    // Of each tract, the first input.
    let mut first: BTreeMap<u64, u64> = BTreeMap::new();
    let mut rows: Vec<(u64, u32, u32, u32)> = Vec::new();
    let mut places: Vec<Vec<u32>> = Vec::with_capacity(inputs.len());
    for (at, (reader, kept)) in (0_u32..).zip(inputs) {
        let own = reader.places(&Rows::All)?;
        let of = reader.group.tract().map_or(u64::from(at), |tract| *first.entry(tract.id).or_insert(u64::from(at)));
        let positions = kept.positions(reader.group.rows);
        let place = |row: u32| own.as_ref().map_or(row, |own| own.value(row as usize));
        rows.extend((0..).zip(&positions).map(|(rank, row)| (of, place(row), at, rank)));
        places.push(vec![0; positions.len() as usize]);
    }
    rows.sort_unstable();
    for (place, (.., input, rank)) in (0..).zip(rows) {
        places[input as usize][rank as usize] = place;
    }
    Ok(places)
}
