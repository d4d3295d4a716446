//! How the operations of `swarm` are drawn: each run draws from a subset of the verbs, with weights of its own, so that runs go where
//! an even mixture seldom comes; now and then an operation is drawn that cannot be done.

use std::collections::BTreeSet;

use crate::columns::evolve_model::{Frame, Shown, change, fresh, near, plain_columns};
use crate::columns::kinds::Kind;
use crate::models::swarm_model::{Model, Table, apply};
use crate::models::swarm_op::{Kinded, Op, Where, Wrong};
use crate::models::verbs::{Needs, VERBS};

const PATHS: [&str; 4] = ["s/a", "s/b", "s/c", "s/d"];

/// What a run draws from: how often each verb is chosen, of how many.
#[derive(Clone, Debug)]
pub struct Swarm {
    weights: [u32; VERBS.len()],
    /// How many paths there are.
    paths: usize,
}

impl Swarm {
    /// About half of the verbs, some of them often.
    pub fn new(rng: &mut fastrand::Rng) -> Self {
        let share = rng.u8(2..9);
        let mut weights = VERBS.map(|_| if rng.u8(..10) < share { 1 << rng.u32(..4) } else { 0 });
        let mut more = |verb: &str, by: u32| {
            let at = VERBS.iter().position(|(known, _)| *known == verb).expect("a verb of the list");
            weights[at] += by;
            weights[at]
        };
        // Nothing happens without tables that have rows, nothing is taken back that is still there.
        more("create", 2);
        more("append", 2);
        let (undrops, drops_snapshots) = (more("undrop", 0), more("drop_snapshot", 0));
        more("drop", undrops.min(2));
        more("snapshot", drops_snapshots.min(2));
        Self { weights, paths: rng.usize(1..=PATHS.len()) }
    }

    /// Chooses a random operation: mostly one that can be done, judging by whether there is a table.
    pub fn draw(&self, rng: &mut fastrand::Rng, model: &Model) -> Op {
        for _ in 0..100 {
            let mut left = rng.u32(..self.weights.iter().sum::<u32>());
            let at = self.weights.iter().position(|weight| match left.checked_sub(*weight) {
                Some(less) => {
                    left = less;
                    false
                }
                None => true,
            });
            let (verb, needs) = VERBS[at.expect("within the sum")];
            let mut path = PATHS[rng.usize(..self.paths)].to_owned();
            let gone: Vec<&String> = model.trash.iter().map(|(path, _)| path).collect();
            if verb == "undrop" && !gone.is_empty() {
                path.clone_from(gone[rng.usize(..gone.len())]);
            }
            let fits = match (needs, model.tables.contains_key(&path)) {
                (Needs::Nothing, _) | (Needs::Table, true) | (Needs::Absence, false) => true,
                _ => rng.u8(..12) == 0,
            };
            if fits && let Some(op) = self.one(rng, model, verb, path) {
                return op;
            }
        }
        Op::Checkpoint
    }

    /// An operation of a verb on the table at a path, if there is anything that it can be about.
    fn one(&self, rng: &mut fastrand::Rng, model: &Model, verb: &str, path: String) -> Option<Op> {
        // What is asked of a table that is not there.
        let columns = vec![("k".into(), Kind::Wide, None), ("a".into(), Kind::Wide, None)];
        let shown = Shown { columns, ..Shown::default() };
        let versions = [(0, shown.clone()), (1, shown.clone())].into();
        let absent = Table { now: shown, versions, ..Table::default() };
        let table = model.tables.get(&path).unwrap_or(&absent);
        let now = &table.now;
        let other = PATHS[rng.usize(..PATHS.len())].to_owned();
        let many = rng.u8(..3) == 0;
        let version =
            |rng: &mut fastrand::Rng| table.versions.keys().nth(rng.usize(..table.versions.len().max(1))).copied();
        let snapshot = format!("s{}", rng.u8(..4));
        Some(match verb {
            "create" => {
                let kind = [Kinded::Plain, Kinded::Sorted, Kinded::Keyed][rng.usize(..3)];
                let columns = fresh(rng, "k");
                Op::Create(path, kind, frame(rng, columns))
            }
            "write" => {
                let columns =
                    if now.is_constrained() || rng.bool() { plain_columns(now) } else { fresh(rng, &now.columns[0].0) };
                Op::Write(path, frame(rng, columns))
            }
            "append" => {
                let evolves = rng.bool();
                let columns = near(rng, now, evolves);
                Op::Append(path, absent_keys(rng, table, columns), evolves)
            }
            "replace" => Op::Replace(path, frame(rng, plain_columns(now))),
            "replace_where" => Op::ReplaceWhere(path, rng.i64(0..5), absent_keys(rng, table, plain_columns(now))),
            "upsert" => {
                let evolves = rng.u8(..3) == 0;
                let columns = near(rng, now, evolves);
                Op::Upsert(path, frame(rng, columns), evolves, many)
            }
            "insert" => {
                let columns = near(rng, now, false);
                Op::Insert(path, absent_keys(rng, table, columns), many)
            }
            "delete_keys" => Op::DeleteKeys(path, (0..rng.usize(..12)).map(|_| rng.i64(0..60)).collect(), many),
            "increment" => return increment(rng, now, path),
            "compare_and_set" => return compare_and_set(rng, now, path),
            "update" if now.columns.len() > 1 => {
                let (name, kind, _) = &now.columns[rng.usize(1..now.columns.len())];
                let value = (*kind != Kind::Null && rng.u8(..3) > 0).then(|| rng.i64(0..9));
                Op::Update(path, name.clone(), value, (rng.u8(..4) > 0).then(|| rng.i64(0..5)))
            }
            "merge" if now.columns.iter().all(|(_, kind, _)| *kind != Kind::Null) => {
                Op::Merge(path, frame(rng, plain_columns(now)))
            }
            "delete" => {
                let typed: Vec<&String> = now.columns[1..].iter().filter(|c| c.1 != Kind::Null).map(|c| &c.0).collect();
                Op::Delete(
                    path,
                    match rng.u8(..4) {
                        0 if !typed.is_empty() => Where::NotNull(typed[rng.usize(..typed.len())].clone()),
                        1 => Where::From([0, 5, 40][rng.usize(..3)]),
                        _ => Where::Rest(rng.i64(0..5)),
                    },
                )
            }
            "columns" => Op::Alter(path, change(rng, now, table.is_ordered())),
            "computed" => {
                let numbers: Vec<&String> = now.columns.iter().filter(|c| c.1.is_number()).map(|c| &c.0).collect();
                let from = numbers[rng.usize(..numbers.len())].clone();
                Op::Computed(path, ["a", "b", "c", "d", "e"][rng.usize(..5)].to_owned(), from, rng.i64(0..3))
            }
            "restore" => Op::Restore(path, version(rng)?),
            "delete_versions" => {
                let newest = *table.versions.keys().next_back()?;
                let mut some = vec![if rng.bool() { newest } else { version(rng)? }, version(rng)?];
                some.sort_unstable();
                some.dedup();
                Op::DeleteVersions(path, some)
            }
            "retention" => Op::Keep(path, (rng.u8(..3) > 0).then(|| rng.u64(1..4))),
            "copy" => Op::Copy(path, other, if rng.bool() { None } else { version(rng) }),
            "copy_over" => {
                let there = model.tables.get(&other)?;
                let plain = !now.is_constrained() && !there.now.is_constrained();
                return plain.then_some(Op::CopyOver(path, other));
            }
            "move" => Op::Move(path, other),
            "drop" => Op::Drop(path),
            "undrop" => Op::Undrop(path),
            "snapshot" => Op::Snapshot(snapshot),
            "drop_snapshot" => {
                let there = model.snapshots.keys().nth(rng.usize(..model.snapshots.len().max(1))).cloned();
                Op::DropSnapshot(there.unwrap_or(snapshot))
            }
            "refused" => Op::Refused(path, Wrong::ALL[rng.usize(..Wrong::ALL.len())]),
            "transaction" => self.together(rng, model),
            "beside" => {
                let verbs = [
                    "append",
                    "upsert",
                    "increment",
                    "update",
                    "merge",
                    "delete",
                    "computed",
                    "restore",
                    "copy",
                    "columns",
                    "write",
                ];
                let verb = verbs[rng.usize(..verbs.len())];
                let op = self.one(rng, model, verb, path)?;
                Op::Beside(Box::new(op))
            }
            "index" => Op::Index(path, rng.usize(..4)),
            "layout" => Op::Layout(path, rng.usize(..12)),
            "checkpoint" => Op::Checkpoint,
            "purging" => Op::Purging,
            "erase" if model.all_have("k") => Op::Erase(rng.i64(0..5)),
            "reclaim" => Op::Reclaim,
            "audit" => Op::Audit,
            "reopen" => Op::Reopen,
            _ => return None,
        })
    }

    /// A few operations that go together in a transaction. In a table with a key, rows by key are followed by rows by key alone:
    /// others need them in row groups.
    fn together(&self, rng: &mut fastrand::Rng, model: &Model) -> Op {
        let others =
            ["append", "write", "update", "merge", "delete", "columns", "replace_where", "computed", "refused"];
        let (mut model, mut ops, mut begun) = (model.clone(), Vec::new(), BTreeSet::new());
        for _ in 0..rng.usize(1..5) {
            let path = PATHS[rng.usize(..self.paths)].to_owned();
            if !model.tables.contains_key(&path) && rng.u8(..4) > 0 {
                continue;
            }
            let verb = others[rng.usize(..others.len())];
            let keyed = model.tables.get(&path).filter(|table| table.is_keyed());
            let op = match keyed.filter(|_| begun.contains(&path) || rng.bool()) {
                Some(table) => Some(by_key(rng, table, path.clone())),
                None => self.one(rng, &model, verb, path.clone()),
            };
            let Some(op) = op else { continue };
            begun.insert(path);
            let before = model.clone();
            if !apply(&mut model, &op) {
                model = before;
            }
            ops.push(op);
        }
        Op::Together(ops, rng.bool())
    }
}

/// A few rows by key, with the columns of their table.
fn by_key(rng: &mut fastrand::Rng, table: &Table, path: String) -> Op {
    let rows = absent_keys(rng, table, plain_columns(&table.now));
    let counted = match rng.u8(..6) {
        0 => increment(rng, &table.now, path.clone()),
        1 => compare_and_set(rng, &table.now, path.clone()),
        _ => None,
    };
    if let Some(op) = counted {
        return op;
    }
    match rng.u8(..4) {
        0 => Op::Upsert(path, frame(rng, rows.columns), false, false),
        1 => Op::Insert(path, rows, false),
        2 => Op::DeleteKeys(path, (0..rng.usize(..12)).map(|_| rng.i64(0..60)).collect(), false),
        _ => Op::Refused(path, Wrong::ALL[rng.usize(..Wrong::ALL.len())]),
    }
}

/// Numbers to be added to a column, if there is one of numbers; some rows are not there, some are added to twice.
fn increment(rng: &mut fastrand::Rng, now: &Shown, path: String) -> Option<Op> {
    let numbers: Vec<&String> = now.columns[1..].iter().filter(|c| c.1.is_number()).map(|c| &c.0).collect();
    let column = numbers.get(rng.usize(..numbers.len().max(1)))?;
    let amounts = (0..rng.usize(..9)).map(|_| (rng.i64(0..40), rng.i64(-3..5)));
    Some(Op::Increment(path, (*column).clone(), amounts.collect()))
}

/// A value in the place of another, mostly of the one that is there.
fn compare_and_set(rng: &mut fastrand::Rng, now: &Shown, path: String) -> Option<Op> {
    let typed: Vec<usize> = (1..now.columns.len()).filter(|at| now.columns[*at].1 != Kind::Null).collect();
    let at = *typed.get(rng.usize(..typed.len().max(1)))?;
    let (key, there) = match now.rows.get(rng.usize(..now.rows.len().max(1))) {
        Some(row) => (row[0].unwrap_or(0), row[at]),
        None => (rng.i64(0..40), None),
    };
    let expected = if rng.u8(..4) == 0 { Some(rng.i64(0..9)) } else { there };
    Some(Op::CompareAndSet(path, now.columns[at].0.clone(), key, expected, (rng.u8(..4) > 0).then(|| rng.i64(0..9))))
}

/// Rows with distinct keys, few, or enough for columns to have dictionaries; values that seldom or often are the same or null.
fn frame(rng: &mut fastrand::Rng, columns: Vec<(String, Kind)>) -> Frame {
    let n = if rng.u8(..6) == 0 { rng.usize(60..160) } else { rng.usize(..9) };
    let mut keys: Vec<i64> = (0..if n < 40 { 40 } else { 200 }).collect();
    rng.shuffle(&mut keys);
    keys.truncate(n);
    if rng.u8(..3) == 0 {
        keys.sort_unstable();
    }
    let styles: Vec<(u8, i64)> =
        columns.iter().map(|_| ([0, 2, 9, 10][rng.usize(..4)], [1, 2, 9][rng.usize(..3)])).collect();
    let value = |rng: &mut fastrand::Rng, kind: Kind, (nulls, values): (u8, i64)| {
        (kind != Kind::Null && rng.u8(..10) >= nulls).then(|| rng.i64(0..values))
    };
    let rows = keys.into_iter().map(|key| {
        let others = columns.iter().zip(&styles).skip(1).map(|((_, kind), style)| value(rng, *kind, *style));
        [Some(key)].into_iter().chain(others.collect::<Vec<_>>()).collect()
    });
    Frame { rows: rows.collect(), columns }
}

/// The same, mostly without keys that the table has.
fn absent_keys(rng: &mut fastrand::Rng, table: &Table, columns: Vec<(String, Kind)>) -> Frame {
    let mut frame = frame(rng, columns);
    if table.is_keyed() && rng.u8(..4) > 0 {
        frame.rows.retain(|row| table.now.rows.iter().all(|there| there[0] != row[0]));
    }
    frame
}
