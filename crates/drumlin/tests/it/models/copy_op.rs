//! Restores, copies and moves: their effects on the model and on the store.

use drumlin::base::Version;
use drumlin::store::AsOf;
use drumlin::{Existing, Result, Store, Tables};

use crate::models::model::{Model, ModelTable};

/// One operation.
#[derive(Clone, Debug)]
pub enum CopyOp {
    /// A version becomes the newest.
    Restore(String, u64),
    /// All tables become what a snapshot holds.
    RestoreAll(String),
    /// A table with all its versions.
    Copy(String, String),
    /// One version of a table.
    CopyVersion(String, String, u64),
    Move(String, String),
    /// A move, rows, and a restore of a version, in one transaction.
    All(String, String, u64),
}

/// Chooses a random operation on the table at `path`, which the model has.
pub fn draw(rng: &mut fastrand::Rng, model: &Model, path: &str) -> CopyOp {
    let table = &model.tables[path];
    let versions: Vec<u64> = table.versions.keys().copied().collect();
    let version = versions[rng.usize(..versions.len())];
    let to = format!("t/{}", ["a", "b", "c", "d"][rng.usize(..4)]);
    let (from, to) = (path.to_owned(), if to == path { "t/e".to_owned() } else { to });
    match rng.u8(..8) {
        0..3 => CopyOp::Restore(from, version),
        3 => CopyOp::RestoreAll(format!("s{}", rng.u8(..4))),
        4 => CopyOp::Copy(from, to),
        5 => CopyOp::CopyVersion(from, to, version),
        6 => CopyOp::Move(from, to),
        _ => CopyOp::All(from, to, version),
    }
}

/// Applies `op` to the model; returns whether the store must succeed.
pub fn apply(model: &mut Model, op: &CopyOp) -> bool {
    match op {
        CopyOp::Restore(path, version) => restore(model, path, *version),
        CopyOp::RestoreAll(name) => {
            let Some(held) = model.held.get(name).cloned() else { return false };
            // A path that holds a table of another order by now is refused.
            let other = |(path, (_, then)): (&String, &(u64, ModelTable))| {
                model.tables.get(path).is_some_and(|table| table.sorted != then.sorted)
            };
            if held.iter().any(other) {
                return false;
            }
            for (path, (version, then)) in held {
                match model.tables.get_mut(&path) {
                    Some(table) => {
                        table.add(then.versions[&version].clone());
                        model.expire(&path);
                    }
                    None => drop(model.tables.insert(path, only(&then, version))),
                }
            }
        }
        CopyOp::Copy(from, to) => {
            if model.tables.contains_key(to) {
                return false;
            }
            let copy = model.tables[from].clone();
            model.tables.insert(to.clone(), copy);
            // The retention of the node goes along.
            if let Some(keep) = model.keep_last.get(from).copied() {
                model.keep_for.remove(to);
                model.keep_last.insert(to.clone(), keep);
            } else if let Some(keep) = model.keep_for.get(from).copied() {
                model.keep_last.remove(to);
                model.keep_for.insert(to.clone(), keep);
            }
        }
        CopyOp::CopyVersion(from, to, version) => {
            if model.tables.contains_key(to) {
                return false;
            }
            let copy = only(&model.tables[from], *version);
            model.tables.insert(to.clone(), copy);
        }
        CopyOp::Move(from, to) => return relocate(model, from, to),
        CopyOp::All(from, to, version) => {
            if !relocate(model, from, to) {
                return false;
            }
            restore(model, to, *version);
        }
    }
    true
}

fn restore(model: &mut Model, path: &str, version: u64) {
    let table = model.tables.get_mut(path).unwrap();
    let rows = table.versions[&version].clone();
    table.add(rows);
    model.expire(path);
}

fn relocate(model: &mut Model, from: &str, to: &str) -> bool {
    if model.tables.contains_key(to) {
        return false;
    }
    let table = model.tables.remove(from).unwrap();
    model.tables.insert(to.to_owned(), table);
    model.keep_last.remove(to);
    model.keep_for.remove(to);
    if let Some(keep) = model.keep_last.remove(from) {
        model.keep_last.insert(to.to_owned(), keep);
    }
    if let Some(keep) = model.keep_for.remove(from) {
        model.keep_for.insert(to.to_owned(), keep);
    }
    true
}

/// A table with one of its versions.
fn only(table: &ModelTable, version: u64) -> ModelTable {
    let mut copy = table.clone();
    copy.versions.retain(|number, _| *number == version);
    copy.times.retain(|number, _| *number == version);
    copy.next_version = version + 1;
    copy
}

/// Applies `op` to the store.
pub fn run(store: &Store, op: &CopyOp) -> Result<()> {
    match op {
        CopyOp::Restore(path, version) => drop(store.restore(path, &AsOf::Version(Version(*version)))?),
        CopyOp::RestoreAll(name) => drop(store.restore("t/**", &AsOf::Snapshot(name.clone()))?),
        CopyOp::Copy(from, to) => drop(store.copy(from, to, &AsOf::Newest, Existing::Refuse)?),
        CopyOp::CopyVersion(from, to, version) => {
            drop(store.copy(from, to, &AsOf::Version(Version(*version)), Existing::Refuse)?)
        }
        CopyOp::Move(from, to) => drop(store.relocate(from, to, Existing::Refuse)?),
        CopyOp::All(from, to, version) => store.transact(|tx| {
            tx.relocate(from, to, Existing::Refuse)?;
            tx.restore(to, &AsOf::Version(Version(*version)))?;
            Ok::<_, drumlin::Error>(())
        })?,
    }
    Ok(())
}
