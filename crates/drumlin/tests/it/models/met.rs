//! The operations of the older random models (`random`, `wide`, and those that they draw from), as verbs whose pairs are counted.

use std::collections::BTreeSet;

use drumlin::Store;

use crate::columns::evolve_model::EvolveOp;
use crate::models::copy_op::CopyOp;
use crate::models::model::Model;
use crate::models::pairs::{Facts, Pairs};
use crate::models::random::Op;
use crate::models::wide_op::WideOp;
use crate::rows::keyed_model::{self, KeyedOp, Place};

/// The verb of an operation, and the tables that it is about: none where it is about all. Nodes are not counted.
fn met(op: &Op, model: &Model) -> Option<(&'static str, Vec<String>)> {
    let write = |path: &String| if model.tables.contains_key(path) { "write" } else { "create" };
    let (verb, paths) = match op {
        Op::Write(path, ..) => (write(path), vec![path]),
        Op::Append(path, _) => ("append", vec![path]),
        Op::Update(path, _) => ("replace", vec![path]),
        Op::Delete(path, ..) => ("delete", vec![path]),
        Op::DeleteVersions(path, _) => ("delete_versions", vec![path]),
        Op::SnapshotOf(_, path, _) => ("snapshot", vec![path]),
        Op::Snapshot(_) => ("snapshot", vec![]),
        Op::DropSnapshot(_) => ("drop_snapshot", vec![]),
        Op::Drop(path) => ("drop", vec![path]),
        Op::Undrop(path) => ("undrop", vec![path]),
        Op::KeepLast(path, _) => ("retention", vec![path]),
        Op::Both(_, path, _) => ("transaction", vec![path]),
        Op::Keyed(op) => return Some((of_keyed(op), vec![keyed_model::PATH.to_owned()])),
        Op::Evolve(op) => return Some(of_evolving(op)),
        Op::Wide(op) => return of_wide(op, model),
        Op::Copy(op) => match op {
            CopyOp::Restore(path, _) => ("restore", vec![path]),
            CopyOp::RestoreAll(_) => ("restore", vec![]),
            CopyOp::Copy(from, to) | CopyOp::CopyVersion(from, to, _) => ("copy", vec![from, to]),
            CopyOp::Move(from, to) => ("move", vec![from, to]),
            CopyOp::All(from, to, _) => ("transaction", vec![from, to]),
        },
        Op::Checkpoint => ("checkpoint", vec![]),
        Op::Reclaim => ("reclaim", vec![]),
        Op::Reopen => ("reopen", vec![]),
        Op::PutNode(..) | Op::DeleteNode(_) | Op::Project => return None,
    };
    Some((verb, paths.into_iter().cloned().collect()))
}

fn of_keyed(op: &KeyedOp) -> &'static str {
    match op {
        KeyedOp::Create => "create",
        KeyedOp::Upsert { .. } | KeyedOp::Touch { .. } => "upsert",
        KeyedOp::Insert { .. } => "insert",
        KeyedOp::Delete { .. } => "delete_keys",
        KeyedOp::Write(_) => "write",
        KeyedOp::Update(_) => "replace",
        KeyedOp::DeleteWhere(..) => "delete",
        KeyedOp::DeleteVersions(_) => "delete_versions",
        KeyedOp::Snapshot(_) => "snapshot",
        KeyedOp::DropSnapshot(_) => "drop_snapshot",
        KeyedOp::Transact { .. } => "transaction",
    }
}

fn of_evolving(op: &EvolveOp) -> (&'static str, Vec<String>) {
    let (verb, path) = match op {
        EvolveOp::Create(path, ..) => ("create", path),
        EvolveOp::Write(path, _) => ("write", path),
        EvolveOp::Append(path, ..) => ("append", path),
        EvolveOp::Upsert(path, ..) => ("upsert", path),
        EvolveOp::Alter(path, _) => ("columns", path),
        EvolveOp::Both(path, ..) => ("transaction", path),
        EvolveOp::Update(path, ..) => ("update", path),
        EvolveOp::Delete(path, _) => ("delete", path),
        EvolveOp::Restore(path, _) => ("restore", path),
        EvolveOp::DeleteVersion(path, _) => ("delete_versions", path),
    };
    (verb, vec![path.clone()])
}

fn of_wide(op: &WideOp, model: &Model) -> Option<(&'static str, Vec<String>)> {
    let keyed = || vec![keyed_model::PATH.to_owned()];
    Some(match op {
        WideOp::Purge => ("purging", vec![]),
        WideOp::Erase(..) => ("erase", vec![]),
        WideOp::Audit => ("audit", vec![]),
        WideOp::ReclaimWithin => ("reclaim", vec![]),
        WideOp::DropNow(path) => ("drop", vec![path.clone()]),
        WideOp::UndropTo(_, to) => ("undrop", vec![to.clone()]),
        WideOp::WriteMany(tables) => {
            let there = tables.iter().map(|(path, _)| path).filter(|path| model.tables.contains_key(*path));
            let there: Vec<String> = there.cloned().collect();
            // All others are made.
            return (!there.is_empty()).then_some(("write", there));
        }
        WideOp::ReplaceWhere(path, ..) => ("replace_where", vec![path.clone()]),
        WideOp::Set(path, ..) => ("update", vec![path.clone()]),
        WideOp::ReplaceKeyed(..) => ("replace_where", keyed()),
        WideOp::KeepFor(path, _) => ("retention", vec![path.clone()]),
        WideOp::DropKeyed => ("drop", keyed()),
        WideOp::UndropKeyed => ("undrop", keyed()),
        WideOp::All { path, .. } => ("transaction", vec![path.clone()]),
        _ => return None,
    })
}

/// The number of the kind of the table at a path, if there is one.
fn kind(model: &Model, path: &str) -> Option<usize> {
    if path == keyed_model::PATH {
        return model.keyed.as_ref().filter(|keyed| keyed.place == Place::There).map(|_| 2);
    }
    let plain = model.tables.get(path).map(|table| usize::from(table.sorted));
    plain.or_else(|| model.evolving.get(path).map(|table| if table.keyed { 2 } else { usize::from(table.sorted) }))
}

/// What an operation is about to meet.
pub struct Meeting {
    verb: &'static str,
    tables: Vec<(String, Option<Facts>)>,
}

impl Meeting {
    /// Of an operation that is about to be done to `store`, which `model` describes.
    pub fn of(store: &Store, model: &Model, op: &Op) -> Option<Meeting> {
        let (verb, mut paths) = met(op, model)?;
        if paths.is_empty() {
            let keyed =
                model.keyed.iter().filter(|keyed| keyed.place == Place::There).map(|_| keyed_model::PATH.to_owned());
            paths = model.tables.keys().chain(model.evolving.keys()).cloned().chain(keyed).collect();
        }
        let paths: BTreeSet<String> = paths.into_iter().collect();
        let facts = |path: &String| Facts::of(store, path, kind(model, path)?).ok();
        Some(Meeting { verb, tables: paths.into_iter().map(|path| (path.clone(), facts(&path))).collect() })
    }

    /// Counts it.
    pub fn note(self, pairs: &mut Pairs, done: bool) {
        for (path, facts) in self.tables {
            pairs.note(&path, self.verb, facts.as_ref(), done);
        }
    }
}
