//! A model of tables of all kinds to which every operation can be done, in any order: it says of each whether it must succeed and
//! what is then shown, and learns from the store which versions there are.
//!
//! Which numbers versions have, and when rows written by key get one, is for other tests. Here each version that comes must show
//! what the table has shown since the operation began, show the same for ever, and go only by being deleted or expiring.

use std::collections::{BTreeMap, BTreeSet};

use crate::columns::evolve_model::{Column, Frame, Shown, brought, change_of, filled, plain_columns, upserted};
use crate::models::swarm_op::{Kinded, Op, Where};

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub kind: Kinded,
    pub now: Shown,
    /// The versions that were listed when it was last looked at.
    pub versions: BTreeMap<u64, Shown>,
    /// What it has shown since then, in order.
    pub steps: Vec<Shown>,
    /// What it may show instead of `now`.
    pub instead: Option<Shown>,
    /// Whether rows may have changed their places since.
    pub unordered: bool,
    /// Versions that were deleted since.
    pub deleted: BTreeSet<u64>,
    /// How many of the last versions were kept then.
    pub kept: Option<u64>,
}

impl Table {
    pub fn is_keyed(&self) -> bool {
        self.kind == Kinded::Keyed
    }

    pub fn is_ordered(&self) -> bool {
        self.kind != Kinded::Plain
    }

    fn becomes(&mut self, shown: Shown) {
        self.now = shown.clone();
        self.steps.push(shown);
    }

    /// A copy that has only one of its versions.
    fn only(&self, version: u64) -> Table {
        let now = self.versions[&version].clone();
        let versions = BTreeMap::from([(version, now.clone())]);
        Table { kind: self.kind, steps: vec![now.clone()], now, versions, ..Table::default() }
    }
}

/// Said of a path that keeps all versions.
pub const ALL: u64 = u64::MAX;

/// A store of tables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    pub tables: BTreeMap<String, Table>,
    pub trash: Vec<(String, Table)>,
    /// What snapshots hold, by name and path.
    pub snapshots: BTreeMap<String, BTreeMap<String, Shown>>,
    /// How many of the last versions are kept, by path; maybe [`ALL`].
    pub keep: BTreeMap<String, u64>,
    /// How often a node was put.
    pub nodes: i64,
}

impl Model {
    /// Notes that everything was looked at.
    pub fn begin(&mut self) {
        for (path, table) in &mut self.tables {
            table.kept = self.keep.get(path).copied();
            table.steps = vec![table.now.clone()];
            table.deleted.clear();
            table.instead = None;
        }
    }

    /// Whether all tables, wherever they are, are still divided by a column of this name.
    pub fn all_have(&self, key: &str) -> bool {
        let of = |table: &Table| table.versions.values().chain([&table.now]).all(|shown| shown.columns[0].0 == key);
        let held = self.snapshots.values().flat_map(BTreeMap::values).all(|shown| shown.columns[0].0 == key);
        held && self.tables.values().chain(self.trash.iter().map(|(_, table)| table)).all(of)
    }

    fn erase(&mut self, rest: i64) {
        let keep = |shown: &mut Shown| shown.rows.retain(|row| row[0].is_none_or(|key| key % 5 != rest));
        let of = |table: &mut Table| {
            table.versions.values_mut().for_each(keep);
            table.steps.iter_mut().for_each(keep);
            keep(&mut table.now);
        };
        self.tables.values_mut().for_each(of);
        self.trash.iter_mut().for_each(|(_, table)| of(table));
        self.snapshots.values_mut().flat_map(BTreeMap::values_mut).for_each(keep);
    }
}

/// The rows of a frame brought in beside those that are there, none of which may have a key of theirs.
fn appended(table: &Table, frame: &Frame, evolves: bool) -> Option<Shown> {
    has_new_keys(table, frame)
        .then(|| brought(&table.now, table.is_keyed(), table.is_ordered(), frame, evolves))
        .flatten()
}

/// Whether the keys of a frame, if the table has a key, are not there, and no two of them the same.
fn has_new_keys(table: &Table, frame: &Frame) -> bool {
    let keys: BTreeSet<Option<i64>> = frame.rows.iter().map(|row| row[0]).collect();
    let there = |key| table.now.rows.iter().any(|row| row[0] == key);
    let new = || keys.len() == frame.rows.len() && !keys.iter().any(|key| there(*key));
    !table.is_keyed() || frame.columns[0].0 == table.now.columns[0].0 && new()
}

/// Applies `op` to the model; returns whether the store must succeed. If not, the model may have been changed.
pub fn apply(model: &mut Model, op: &Op) -> bool {
    match op {
        Op::Create(path, kind, frame) => {
            if model.tables.contains_key(path) {
                return false;
            }
            let columns = frame.columns.iter().map(|(name, kind)| (name.clone(), *kind, None)).collect();
            let mut table = Table { kind: *kind, ..Table::default() };
            table.now.columns = columns;
            table.becomes(table.now.clone());
            let Some(shown) = appended(&table, frame, false) else { return false };
            table.becomes(shown);
            model.tables.insert(path.clone(), table);
            true
        }
        Op::Keep(path, keep) => {
            match keep {
                Some(keep) => drop(model.keep.insert(path.clone(), *keep)),
                None => drop(model.keep.remove(path)),
            }
            true
        }
        Op::Undrop(path) => {
            let at = model.trash.iter().rposition(|(dropped, _)| dropped == path);
            let Some(at) = at.filter(|_| !model.tables.contains_key(path)) else { return false };
            let (path, table) = model.trash.remove(at);
            model.tables.insert(path, Table { steps: vec![table.now.clone()], ..table });
            true
        }
        Op::Drop(path) => {
            let Some(table) = model.tables.remove(path) else { return false };
            model.trash.push((path.clone(), table));
            true
        }
        Op::Snapshot(name) => {
            if model.snapshots.contains_key(name) || model.tables.is_empty() {
                return false;
            }
            let held = model.tables.iter().map(|(path, table)| (path.clone(), table.now.clone()));
            model.snapshots.insert(name.clone(), held.collect());
            true
        }
        Op::DropSnapshot(name) => model.snapshots.remove(name).is_some(),
        Op::Copy(..) | Op::CopyOver(..) | Op::Move(..) => copied(model, op).is_some(),
        Op::Together(ops, _) => {
            for op in ops {
                let before = model.clone();
                if !apply(model, op) {
                    *model = before;
                }
            }
            model.nodes += 1;
            true
        }
        Op::Beside(op) => apply(model, op),
        Op::Erase(rest) => {
            if model.tables.is_empty() && model.trash.is_empty() && model.snapshots.is_empty() {
                return false;
            }
            model.erase(*rest);
            true
        }
        Op::Reclaim | Op::Audit => {
            model.trash.clear();
            true
        }
        Op::Checkpoint | Op::Purging | Op::Reopen => true,
        // What tables show is the same with and without indexes, and whatever their layout.
        Op::Index(path, _) | Op::Layout(path, _) => model.tables.contains_key(path),
        _ => {
            let path = op.path().expect("all others are about one table");
            model.tables.get_mut(path).is_some_and(|table| changed(table, op).is_some())
        }
    }
}

fn copied(model: &mut Model, op: &Op) -> Option<()> {
    match op {
        Op::Copy(from, to, version) => {
            let table = model.tables.get(from)?;
            if model.tables.contains_key(to) {
                return None;
            }
            let copy = match version {
                Some(version) if !table.versions.contains_key(version) => return None,
                Some(version) => table.only(*version),
                None => table.clone(),
            };
            model.tables.insert(to.clone(), copy);
            // The retention of the node goes along with all versions.
            if let Some(keep) = model.keep.get(from).copied().filter(|_| version.is_none()) {
                model.keep.insert(to.clone(), keep);
            }
        }
        Op::CopyOver(from, to) => {
            let (now, kind) = model.tables.get(from).map(|table| (table.now.clone(), table.kind))?;
            let other = model.tables.get_mut(to)?;
            if from == to || other.kind != kind {
                return None;
            }
            other.becomes(now);
            if let Some(keep) = model.keep.get(from).copied() {
                model.keep.insert(to.clone(), keep);
            }
        }
        Op::Move(from, to) => {
            if !model.tables.contains_key(from) || model.tables.contains_key(to) {
                return None;
            }
            let table = model.tables.remove(from)?;
            model.tables.insert(to.clone(), table);
            // What was in force stays in force.
            match (model.keep.remove(from), model.keep.contains_key(to)) {
                (None, false) => {}
                (keep, _) => drop(model.keep.insert(to.clone(), keep.unwrap_or(ALL))),
            }
        }
        _ => unreachable!("not about two tables"),
    }
    Some(())
}

/// A frame of the key and one column.
pub fn of_column(shown: &Shown, at: usize, rows: impl Iterator<Item = (i64, Option<i64>)>) -> Frame {
    let columns = [0, at].map(|at| (shown.columns[at].0.clone(), shown.columns[at].1)).to_vec();
    Frame { columns, rows: rows.map(|(key, value)| vec![Some(key), value]).collect() }
}

/// Changes a table, if that is possible.
fn changed(table: &mut Table, op: &Op) -> Option<()> {
    let mut shown = table.now.clone();
    match op {
        Op::Write(_, frame) => {
            if table.is_ordered() && frame.columns[0].0 != shown.columns[0].0 {
                return None;
            }
            let distinct: BTreeSet<Option<i64>> = frame.rows.iter().map(|row| row[0]).collect();
            let shown = brought(&shown.emptied_for(frame), table.is_keyed(), table.is_ordered(), frame, false)?;
            if table.is_keyed() && distinct.len() < frame.rows.len() {
                return None;
            }
            table.becomes(shown);
        }
        Op::Append(_, frame, evolves) => table.becomes(appended(table, frame, *evolves)?),
        Op::Insert(_, frame, _) => {
            let by_key = table.is_keyed() && has_new_keys(table, frame);
            table.becomes(by_key.then(|| filled(&table.now, true, true, frame, false))??);
        }
        Op::Upsert(_, frame, evolves, _) => {
            let by_key = table.is_keyed() && frame.columns[0].0 == shown.columns[0].0;
            let after = by_key.then(|| upserted(&table.now, frame, *evolves))??;
            // New columns, and rows that lack some, come in two versions.
            let lacks = |(name, ..): &Column| frame.columns.iter().all(|(came, _)| came != name);
            if after.columns != table.now.columns && table.now.columns.iter().any(lacks) {
                let columns = Frame { columns: frame.columns.clone(), rows: Vec::new() };
                table.becomes(upserted(&table.now, &columns, *evolves)?);
            }
            table.becomes(after);
        }
        Op::Replace(_, frame) => {
            if !table.is_ordered() {
                return None;
            }
            let keys = || frame.rows.iter().filter_map(|row| row[0]);
            if let (Some(low), Some(high)) = (keys().min(), keys().max()) {
                shown.rows.retain(|row| row[0].is_some_and(|key| key < low || key > high));
            }
            table.becomes(brought(&shown, table.is_keyed(), true, frame, false)?);
        }
        Op::ReplaceWhere(_, rest, frame) => {
            shown.rows.retain(|row| row[0].is_none_or(|key| key % 5 != *rest));
            let left = Table { now: shown, kind: table.kind, ..Table::default() };
            table.becomes(appended(&left, frame, false)?);
        }
        Op::DeleteKeys(_, keys, _) => {
            if !table.is_keyed() {
                return None;
            }
            shown.rows.retain(|row| row[0].is_none_or(|key| !keys.contains(&key)));
            table.becomes(shown);
        }
        Op::Increment(_, column, amounts) => {
            let at = shown.place(column).filter(|at| *at > 0 && table.is_keyed())?;
            let (_, kind, default) = &shown.columns[at];
            if !kind.is_number() {
                return None;
            }
            let mut sums: BTreeMap<i64, i64> = BTreeMap::new();
            for (key, by) in amounts {
                let there = || shown.rows.iter().find(|row| row[0] == Some(*key));
                let begun = || there().map_or(*default, |row| row[at]).unwrap_or(0);
                *sums.entry(*key).or_insert_with(begun) += by;
            }
            table.becomes(upserted(
                &shown,
                &of_column(&shown, at, sums.into_iter().map(|(k, v)| (k, Some(v)))),
                false,
            )?);
        }
        Op::CompareAndSet(_, column, key, expected, new) => {
            let at = shown.place(column).filter(|at| *at > 0 && table.is_keyed())?;
            let holds = shown.rows.iter().any(|row| row[0] == Some(*key) && row[at] == *expected);
            let row = holds.then(|| of_column(&shown, at, [(*key, *new)].into_iter()))?;
            table.becomes(upserted(&shown, &row, false)?);
        }
        Op::Update(_, column, set, rest) => {
            let at = shown.place(column)?;
            for row in shown.rows.iter_mut().filter(|row| rest.is_none_or(|rest| row[0].is_some_and(|k| k % 5 == rest)))
            {
                row[at] = *set;
            }
            let changed = rest.is_none_or(|rest| shown.rows.iter().any(|row| row[0].is_some_and(|k| k % 5 == rest)));
            if changed && !shown.is_valid() {
                return None;
            }
            table.becomes(shown);
        }
        Op::Merge(_, frame) => {
            // Rows that match are set in the other columns.
            if plain_columns(&shown) != frame.columns || shown.columns.len() == 1 {
                return None;
            }
            for came in &frame.rows {
                let there: Vec<_> = shown.rows.iter_mut().filter(|row| row[0] == came[0]).collect();
                match there.is_empty() {
                    true => shown.rows.push(came.clone()),
                    false => there.into_iter().for_each(|row| row.clone_from(came)),
                }
            }
            if !frame.rows.is_empty() && !shown.is_valid() {
                return None;
            }
            if table.is_ordered() {
                shown.rows.sort_by_key(|row| row[0]);
            }
            table.unordered |= !table.is_keyed();
            table.becomes(shown);
        }
        Op::Delete(_, which) => {
            match which {
                Where::Rest(rest) => shown.rows.retain(|row| row[0].is_none_or(|key| key % 5 != *rest)),
                Where::NotNull(column) => {
                    let at = shown.place(column)?;
                    shown.rows.retain(|row| row[at].is_none());
                }
                Where::From(least) => shown.rows.retain(|row| row[0].is_none_or(|key| key < *least)),
            }
            table.becomes(shown);
        }
        Op::Alter(_, change) => {
            if !change_of(&mut shown, change) {
                return None;
            }
            table.becomes(shown);
        }
        Op::Computed(_, name, from, more) => {
            let at = shown.place(from).filter(|_| shown.place(name).is_none())?;
            let kind = shown.columns[at].1.sum()?;
            shown.columns.push((name.clone(), kind, None));
            shown.rows.iter_mut().for_each(|row| row.push(None));
            // The column comes in one version, its values in the next.
            table.becomes(shown.clone());
            shown
                .rows
                .iter_mut()
                .for_each(|row| *row.last_mut().expect("the new one") = row[at].map(|value| value + more));
            table.becomes(shown);
        }
        Op::Restore(_, version) => table.becomes(table.versions.get(version)?.clone()),
        Op::DeleteVersions(_, versions) => {
            if versions.len() >= table.versions.len() || versions.iter().any(|v| !table.versions.contains_key(v)) {
                return None;
            }
            table.deleted.extend(versions.iter().copied());
            let newest = *table.versions.keys().next_back()?;
            table.versions.retain(|number, _| !versions.contains(number));
            if versions.contains(&newest) {
                // Rows in memory are numbered before, and then stay what is newest.
                let before = table.versions.values().next_back()?.clone();
                table.instead = table.is_keyed().then(|| table.now.clone());
                table.becomes(before);
            }
        }
        Op::Refused(..) => return None,
        _ => unreachable!("{op:?} is not about one table that is there"),
    }
    Some(())
}
