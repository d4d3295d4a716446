//! Whether rows that came to a sorted table come after all others.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::clusters::is_before;
use crate::base::{Pool, Result, Version};
use crate::block::{Address, BlockReader};
use crate::table::read::pieces::bounds_of;
use crate::table::{RowGroup, Rows, TableState};

/// With more row groups than this, they are not compared.
const GROUPS_MAX: usize = 256;

/// Whether all rows of the row groups that `new` has, some of those that `version` of a sorted table shows, come after all others in its order; `false`
/// also where that would take long to tell. Reads the directories of the row groups, and the ends of those that these do not tell apart.
pub fn comes_last(
    reader: &BlockReader,
    pool: &Pool,
    table: &TableState,
    version: Version,
    new: &TableState,
) -> Result<bool> {
    let came: BTreeSet<Address> = new.groups.iter().map(|group| group.address).collect();
    let shown = |group: &&Arc<RowGroup>| table.visible(group, version) != Rows::None;
    let groups: Vec<(Arc<RowGroup>, Rows)> =
        table.groups.iter().filter(shown).take(GROUPS_MAX + 1).map(|group| (group.clone(), Rows::All)).collect();
    if groups.len() > GROUPS_MAX {
        return Ok(false);
    }
    let bounds = bounds_of(reader, pool, table, version, &groups)?;
    let (late, early): (Vec<usize>, Vec<usize>) =
        (0..groups.len()).partition(|at| came.contains(&groups[*at].0.address));
    let after_all = |late: &usize| early.iter().all(|early| is_before(&bounds.spans, *early, *late, bounds.alone));
    Ok(late.iter().all(after_all))
}
