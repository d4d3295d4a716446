//! What a transaction depends on, and whether later commits have touched it: the rules of conflict, each a pure
//! function of two states.
//!
//! Two states are compared, the one that was read and the one now, not lists of effects: this is exact, needs no
//! history, and a transaction may be based on a state of any age. A change of layout alone (a rewrite, a flush, a
//! repack) conflicts with [`Read::Table`] only; what was found by position is carried over ([`carry_over`]). An
//! operation that was refused may depend on anything, so a refusal counts as having read everything.
//!
//! Keys that a write has looked up are part of its footprint: in its turn only those are looked up again, and only in
//! memory. It is a conflict if one of them was written since. So inserts of different keys do not meet.

use std::sync::Arc;

use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, TableId, Timestamp};
use crate::catalog::{Effect, NodeEffect, Path, Pattern, State};
use crate::memtable::Keys;
use crate::table::TableState;

/// One thing a transaction has read.
#[derive(Clone, Debug, PartialEq)]
pub enum Read {
    /// Which table, if any, a path holds.
    Binding(Path),
    /// A table's newest schema.
    Schema(TableId),
    /// The rows that a table's newest version sees, but not their row groups.
    Rows(TableId),
    /// A node, or that there is none, but not what is below it.
    Node(String),
    /// The rows of some keys in a keyed table's newest version.
    Keys(TableId, Arc<Keys>),
    /// Which nodes match, and what they are.
    Pattern(Pattern),
    /// Any part of the tree.
    Tree,
    /// Which versions a table lists.
    Versions(TableId),
    /// What a snapshot holds.
    Snapshot(String),
    /// The definition of a projection, if it is part of the store.
    Projection(String),
    /// Which projections are part of the store.
    Projections,
    /// Which snapshots there are, and what they hold.
    Snapshots,
    /// Everything: an operation was refused, for whatever reason.
    All,
    /// A table as a whole: its rows, its versions, and where rows lie, in memory or in row groups.
    Table(TableId),
    /// Rows of a table by their keys, the first of which expires at that instant.
    Until(TableId, Timestamp),
    /// Whether a presence has ended.
    Presence(u64),
}

/// Everything that a transaction has read.
#[derive(Clone, Debug, Default)]
pub struct Footprint {
    /// In any order.
    pub reads: Vec<Read>,
}

impl Footprint {
    /// Adds a read.
    #[must_use]
    pub fn with(mut self, read: Read) -> Self {
        self.reads.push(read);
        self
    }

    /// `Conflict` if a row that was looked up in `base` has expired by `time`, that of the commit.
    pub fn check_expiry(&self, base: &State, time: Timestamp) -> Result<()> {
        for read in &self.reads {
            if let Read::Until(_, until) = read
                && *until <= time
                && !planted(Bug::IgnoreExpiry)
            {
                return Err(Error::conflict(format!("{} before the commit", read.describe(base, base)?)));
            }
        }
        Ok(())
    }

    /// `Conflict`, naming the read, if what was read from `base` differs in `now`, which may hold effects of
    /// transactions not yet appended. O(reads x log).
    pub fn check(&self, base: &State, now: &State) -> Result<()> {
        for read in &self.reads {
            if touched(read, base, now)? {
                let what = read.describe(base, now)?;
                return Err(Error::conflict(format!("{what} changed after it was read, at commit {}", base.seq)));
            }
        }
        Ok(())
    }
}

impl Read {
    /// Describes what was read from `state` and differs in `now`.
    fn describe(&self, state: &State, now: &State) -> Result<String> {
        let table = |id: &TableId| match state.path_of(*id) {
            Some(path) => format!("'{path}'"),
            None => format!("table {id}"),
        };
        Ok(match self {
            Read::Binding(path) => format!("the table at '{path}'"),
            Read::Schema(id) => format!("the schema of {}", table(id)),
            Read::Rows(id) => format!("the rows of {}", table(id)),
            Read::Node(path) => format!("the node '{path}'"),
            Read::Keys(id, keys) => describe_keys(*id, keys, state, now, &table(id))?,
            Read::Pattern(pattern) => format!("the set of nodes that match '{pattern}', or one of them,"),
            Read::Tree => "a node of the tree".to_owned(),
            Read::Versions(id) => format!("the list of versions of {}", table(id)),
            Read::Snapshot(name) => format!("the snapshot '{name}'"),
            Read::Projection(name) => format!("the projection '{name}'"),
            Read::Projections => "the list of projections".to_owned(),
            Read::Snapshots => "the list of snapshots".to_owned(),
            Read::All => "the store".to_owned(),
            Read::Table(id) => table(id),
            Read::Presence(number) => format!("presence {number}"),
            Read::Until(id, _) => format!("a row of {}, which was looked up, expired", table(id)),
        })
    }
}

/// Which of many keys was written is looked for only among this many: the commit turn is held.
const SEARCHED_MAX: usize = 1000;

/// Describes the rows of a table with keys that were looked up: the row that was written, if it is known.
fn describe_keys(id: TableId, keys: &Keys, base: &State, now: &State, table: &str) -> Result<String> {
    let (then, now_there) = (base.table(id)?, now.table(id)?);
    let codec = then.as_ref().and_then(|table| table.codec().ok());
    let name = |places: std::ops::Range<usize>| {
        codec.map_or_else(String::new, |codec| codec.key_codec().describe_some(places.map(|at| keys.get(at))))
    };
    let written = || match (&then, &now_there) {
        (Some(then), Some(now)) if then.bulk_seq == now.bulk_seq && keys.len() <= SEARCHED_MAX => {
            let wrote = |at: &usize| now.wrote_any(&keys.take(std::iter::once(*at)), then, base.seq);
            (0..keys.len()).find(wrote)
        }
        _ => None,
    };
    Ok(match if keys.len() == 1 { Some(0) } else { written() } {
        Some(at) => format!("the row of {table} with the key {}, which was looked up,", name(at..at + 1)),
        None => {
            format!("one of the rows of {table} with the keys {}, which were looked up,", name(0..keys.len()))
        }
    })
}

fn touched(read: &Read, base: &State, now: &State) -> Result<bool> {
    Ok(match read {
        Read::Binding(path) => base.table_id_at(path) != now.table_id_at(path),
        Read::Schema(id) => match (base.table(*id)?, now.table(*id)?) {
            (Some(a), Some(b)) => a.schema() != b.schema(),
            (a, b) => a.is_some() != b.is_some(),
        },
        // Rows that were only rewritten are carried over: see [`carry_over`].
        Read::Rows(id) => base.table(*id)?.map(|t| t.rows_seq) != now.table(*id)?.map(|t| t.rows_seq),
        Read::Keys(..) if planted(Bug::SkipKeyCheck) => false,
        Read::Keys(id, keys) => match (base.table(*id)?, now.table(*id)?) {
            (Some(then), Some(now)) => then.bulk_seq != now.bulk_seq || now.wrote_any(keys, &then, base.seq),
            (then, now) => then.is_some() != now.is_some(),
        },
        Read::Node(path) => !same_node(path, base, now),
        Read::Pattern(pattern) => {
            let mut touched = false;
            base.tree.diff(&now.tree, |path, a, b| {
                // A node counts as the same if only nodes below it have changed.
                let same = a.zip(b).is_some_and(|(a, b)| a.same_itself(b));
                touched |= !same && pattern.may_depend_on(path);
            });
            touched
        }
        Read::Tree => !base.tree.same(&now.tree),
        Read::Versions(id) => match (base.table(*id)?, now.table(*id)?) {
            (Some(then), Some(now)) => !now.lists_all_of(&then),
            (then, now) => then.is_some() != now.is_some(),
        },
        Read::Snapshot(name) => {
            base.snapshots.get(name) != now.snapshots.get(name) || base.covers.get(name) != now.covers.get(name)
        }
        Read::Projection(name) => !base.same_projection(now, name),
        Read::Projections => !base.same_projections(now),
        Read::Snapshots => {
            let same = base.snapshots.ptr_eq(&now.snapshots) || base.snapshots == now.snapshots;
            !same || !base.covers.are_those_of(&now.covers)
        }
        Read::All => !base.same(now),
        // The commit's time tells: see [`Footprint::check_expiry`].
        Read::Until(..) => false,
        Read::Presence(number) => base.presences.is_open(*number) != now.presences.is_open(*number),
        Read::Table(id) => match (base.table(*id)?, now.table(*id)?) {
            (Some(then), Some(now)) => !now.is_untouched(&then),
            (then, now) => then.is_some() != now.is_some(),
        },
    })
}

/// Adapts deletions by position in effects made on `base` to where those rows are in `now`, which has the same rows, perhaps
/// in other row groups, and the numbers of row groups and versions that the effects add to those that they get. `Conflict` if
/// the place of a row is unknown; a row group of `base` that is updated and gone is one when it is applied.
pub fn carry_over(effects: &mut [Effect], base: &State, now: &State) -> Result<()> {
    // A table created by the effects is unchanged.
    let tables = |id: TableId| -> Result<Option<(Arc<TableState>, Arc<TableState>)>> {
        Ok(base.table(id)?.zip(now.table(id)?).filter(|(then, now)| !Arc::ptr_eq(then, now)))
    };
    for effect in effects {
        for (table, version) in effect.versions_mut() {
            // A checkpoint may have numbered rows in between.
            if let Some((then, now)) = tables(table)?
                && !planted(Bug::KeepOwnVersions)
            {
                *version = now.carried_version(*version, &then);
            }
        }
        if let Some((table, deletions)) = effect.deletions_mut()
            && let Some((then, now)) = tables(table)?
            && !planted(Bug::SkipCarry)
        {
            *deletions = now.carried(deletions, &then)?;
        } else if let Some((table, groups)) = effect.updated_groups_mut()
            && let Some((then, now)) = tables(table)?
            && !planted(Bug::KeepOwnGroups)
        {
            // What takes their places is numbered in their order.
            if !now.has_in_order_of(&then, groups.iter().map(|group| **group)) {
                return Err(Error::conflict("row groups that are updated have changed their order"));
            }
            groups.into_iter().for_each(|group| *group = now.carried_group(*group, &then).unwrap_or(*group));
        }
    }
    Ok(())
}

/// `Conflict` if nodes that a transaction writes, or nodes below those that it deletes, differ between `base`, on which
/// it was made, and `now`.
pub fn check_written(effects: &[Effect], base: &State, now: &State) -> Result<()> {
    for effect in effects {
        let Effect::Nodes(nodes) = effect else { continue };
        let mut reader = nodes.reader();
        while let Some((path, effect)) = reader.advance()? {
            let whole = matches!(effect, NodeEffect::Delete { .. });
            if !same_node(path, base, now) || (whole && !same_below(path, base, now)) {
                return Err(Error::conflict(format!(
                    "the node '{path}' or one below it changed after commit {}",
                    base.seq
                )));
            }
        }
    }
    Ok(())
}

fn same_node(path: &str, base: &State, now: &State) -> bool {
    match (base.tree.get(path), now.tree.get(path)) {
        (Some(a), Some(b)) => a.same_itself(b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

fn same_below(path: &str, base: &State, now: &State) -> bool {
    match (base.tree.get(path), now.tree.get(path)) {
        (Some(a), Some(b)) => a.same_below(b),
        (a, b) => a.is_none() && b.is_none(),
    }
}
