//! Random operations, their effects on the model and on the store, and whether the two agree.

use std::collections::BTreeMap;

use drumlin::base::Version;
use drumlin::catalog::{Field, Pattern, Payload, Projection, Retention};
use drumlin::store::{AsOf, WriteOptions};
use drumlin::{SnapshotOf, Store, Tables, Turnover, VersionInfo, VersionKind};

use crate::columns::evolve_model::{self, EvolveOp};
use crate::columns::evolve_run;
use crate::models::copy_op::{self, CopyOp};
use crate::models::model::{Model, ModelTable, Trash};
use crate::models::wide_op::{self, WideOp};
use crate::rows::diffs;
use crate::rows::keyed_model::{self, KeyedOp, Place};
use crate::support::{Row, batch, of_rest, read, rows, same};

/// One operation, so that the crash tests can replay the same ones.
#[derive(Clone, Debug)]
pub enum Op {
    Write(String, Vec<Row>, bool),
    Append(String, Vec<Row>),
    Update(String, Vec<Row>),
    Delete(String, i64, i64),
    DeleteVersions(String, Vec<u64>),
    Snapshot(String),
    /// A snapshot of one version of a table, whichever is the newest.
    SnapshotOf(String, String, u64),
    DropSnapshot(String),
    Drop(String),
    Undrop(String),
    KeepLast(String, Option<u64>),
    PutNode(String, i64),
    DeleteNode(String),
    /// Nodes and rows in one transaction.
    Both(Vec<(String, i64)>, String, Vec<Row>),
    /// A projection of the nodes by their value.
    Project,
    /// An operation on a table with a key.
    Keyed(KeyedOp),
    /// One of the operations of `wide`.
    Wide(WideOp),
    /// A restore, a copy or a move.
    Copy(CopyOp),
    /// An operation on a table whose columns change.
    Evolve(EvolveOp),
    Checkpoint,
    Reclaim,
    Reopen,
}

/// Chooses a random operation that makes sense for `model`.
pub fn draw(rng: &mut fastrand::Rng, model: &Model, big: bool) -> Op {
    if rng.u8(..3) == 0 {
        return Op::Keyed(keyed_model::draw(rng, model.keyed.as_ref()));
    }
    if rng.u8(..5) == 0 {
        return Op::Evolve(evolve_model::draw(rng, &model.evolving));
    }
    let path = format!("t/{}", ["a", "b", "c"][rng.usize(..3)]);
    let n = if big && rng.u8(..12) == 0 { rng.usize(100_000..150_000) } else { rng.usize(..40) };
    let start = rng.i64(0..200);
    let mut fresh: Vec<Row> = (0..n).map(|_| (start + rng.i64(0..100), None)).collect();
    for (id, name) in &mut fresh {
        *name = (*id % 4 != 0).then(|| format!("n{}", rng.u8(..20)));
    }
    let Some(table) = model.tables.get(&path) else {
        return match rng.u8(..8) {
            0 => Op::Undrop(path),
            1 => Op::PutNode(format!("n/{}", rng.u8(..4)), rng.i64(0..9)),
            _ => Op::Write(path, fresh, rng.bool()),
        };
    };
    match rng.u8(..36) {
        32.. => Op::Copy(copy_op::draw(rng, model, &path)),
        0..3 => Op::Write(path, fresh, table.sorted),
        3..10 => Op::Append(path, fresh),
        10..13 if table.sorted => Op::Update(path, fresh),
        10..16 => Op::Delete(path, rng.i64(2..6), rng.i64(0..2)),
        16..19 if table.versions.len() > 1 => {
            let all: Vec<u64> = table.versions.keys().copied().collect();
            // The newest one quite often: that is the hard case.
            let mut some = if rng.bool() { vec![all[all.len() - 1]] } else { vec![all[rng.usize(..all.len())]] };
            if all.len() > 3 && rng.bool() {
                some.push(all[rng.usize(..all.len())]);
            }
            some.sort_unstable();
            some.dedup();
            Op::DeleteVersions(path, some)
        }
        19 => Op::Snapshot(format!("s{}", rng.u8(..4))),
        20 => {
            let all: Vec<u64> = table.versions.keys().copied().collect();
            Op::SnapshotOf(format!("s{}", rng.u8(..4)), path, all[rng.usize(..all.len())])
        }
        21 => Op::DropSnapshot(format!("s{}", rng.u8(..4))),
        22 => Op::Drop(path),
        23 => Op::KeepLast(path, rng.bool().then(|| rng.u64(1..4))),
        // Rare compared with rows, which need most operations.
        24 if rng.bool() => match rng.u8(..4) {
            0 => Op::Project,
            _ => Op::Both((0..3).map(|_| (format!("n/{}", rng.u8(..4)), rng.i64(0..9))).collect(), path, fresh),
        },
        24 => Op::PutNode(format!("n/{}", rng.u8(..4)), rng.i64(0..9)),
        25 => Op::DeleteNode(format!("n/{}", rng.u8(..4))),
        26..29 => Op::Checkpoint,
        29 | 30 => Op::Reclaim,
        _ => Op::Reopen,
    }
}

/// Applies `op` to the model; returns whether the store must succeed.
pub fn apply(model: &mut Model, trash: &mut Trash, op: &Op) -> bool {
    match op {
        Op::Write(path, rows, sorted) => {
            let new = || ModelTable { sorted: *sorted, ..ModelTable::default() };
            model.tables.entry(path.clone()).or_insert_with(new).add(rows.clone());
            model.expire(path);
        }
        Op::Append(path, rows) => {
            let table = model.tables.get_mut(path).unwrap();
            let all = table.newest().iter().chain(rows).cloned().collect();
            table.add(all);
            model.expire(path);
        }
        Op::Update(path, rows) => {
            let table = model.tables.get_mut(path).unwrap();
            let low = rows.iter().map(|(id, _)| *id).min().unwrap_or(1);
            let high = rows.iter().map(|(id, _)| *id).max().unwrap_or(0);
            let outside = |(id, _): &&Row| *id < low || *id > high;
            let all = table.newest().iter().filter(outside).chain(rows).cloned().collect();
            table.add(all);
            model.expire(path);
        }
        Op::Delete(path, divisor, rest) => {
            let table = model.tables.get_mut(path).unwrap();
            let kept: Vec<Row> = table.newest().iter().filter(|(id, _)| id % divisor != *rest).cloned().collect();
            if kept.len() < table.newest().len() {
                table.add(kept);
                model.expire(path);
            }
        }
        Op::DeleteVersions(path, versions) => {
            let table = model.tables.get_mut(path).unwrap();
            if versions.len() == table.versions.len() {
                return false;
            }
            versions.iter().for_each(|version| drop(table.versions.remove(version)));
        }
        Op::Snapshot(name) => {
            if model.snapshots.contains_key(name) || model.tables.is_empty() {
                return false;
            }
            let pins = model.tables.iter().map(|(path, table)| (path.clone(), table.newest().clone())).collect();
            model.snapshots.insert(name.clone(), pins);
            let newest = |table: &ModelTable| *table.versions.keys().next_back().expect("a table has a version");
            let held = model.tables.iter().map(|(path, table)| (path.clone(), (newest(table), table.clone())));
            model.held.insert(name.clone(), held.collect());
        }
        Op::SnapshotOf(name, path, version) => {
            if model.snapshots.contains_key(name) {
                return false;
            }
            let table = model.tables[path].clone();
            let pins = BTreeMap::from([(path.clone(), table.versions[version].clone())]);
            model.snapshots.insert(name.clone(), pins);
            model.held.insert(name.clone(), BTreeMap::from([(path.clone(), (*version, table))]));
        }
        Op::DropSnapshot(name) => {
            model.held.remove(name);
            return model.snapshots.remove(name).is_some();
        }
        Op::Drop(path) => trash.push((path.clone(), model.tables.remove(path).unwrap())),
        Op::Undrop(path) => {
            let Some(at) = trash.iter().rposition(|(dropped, _)| dropped == path) else { return false };
            let (path, table) = trash.remove(at);
            model.tables.insert(path, table);
        }
        Op::KeepLast(path, n) => {
            model.keep_for.remove(path);
            match n {
                Some(n) => drop(model.keep_last.insert(path.clone(), *n)),
                None => drop(model.keep_last.remove(path)),
            }
        }
        Op::PutNode(path, value) => drop(model.nodes.insert(path.clone(), *value)),
        Op::DeleteNode(path) => return model.nodes.remove(path).is_some(),
        Op::Both(nodes, path, rows) => {
            model.nodes.extend(nodes.iter().cloned());
            let table = model.tables.get_mut(path).unwrap();
            let all = table.newest().iter().chain(rows).cloned().collect();
            table.add(all);
            model.expire(path);
        }
        Op::Project => model.projected = true,
        Op::Keyed(op) => return keyed_model::apply(&mut model.keyed, &mut model.nodes, op),
        Op::Wide(op) => return wide_op::apply(model, trash, op),
        Op::Copy(op) => return copy_op::apply(model, op),
        Op::Evolve(op) => return evolve_model::apply(&mut model.evolving, op),
        Op::Checkpoint => model.checkpoint(),
        Op::Reclaim => model.reclaim(trash),
        Op::Reopen => {}
    }
    true
}

/// Applies `op` to the store.
pub fn run(store: &mut Store, reopen: impl FnOnce() -> drumlin::Result<Store>, op: &Op) -> drumlin::Result<()> {
    let options = WriteOptions::default();
    match op {
        Op::Write(path, rows, sorted) => {
            let sort = Some(if *sorted { vec!["id".to_owned()] } else { vec![] });
            drop(store.write(path, batch(rows), &WriteOptions { sort, ..options })?);
        }
        Op::Append(path, rows) => drop(store.append(path, batch(rows), &options)?),
        Op::Update(path, rows) => drop(store.replace(path, batch(rows), &options)?),
        Op::Delete(path, divisor, rest) => {
            drop(store.table(path).delete(&of_rest(*divisor, *rest), &Default::default())?);
        }
        Op::DeleteVersions(path, versions) => {
            store.delete_versions(
                &[(path.clone(), versions.iter().map(|v| Version(*v)).collect())],
                Default::default(),
            )?;
        }
        Op::Snapshot(name) => drop(store.snapshot(name, "t/**")?),
        Op::SnapshotOf(name, path, version) => {
            drop(store.snapshot(name, SnapshotOf::Versions(&[(path.clone(), Version(*version))]))?);
        }
        Op::DropSnapshot(name) => store.drop_snapshot(name)?,
        Op::Drop(path) => drop(store.drop(path.as_str())?),
        Op::Undrop(path) => store.undrop(path, None)?,
        Op::KeepLast(path, n) => store.set_retention(path, n.map(Retention::KeepLast))?,
        Op::PutNode(path, value) => drop(store.tree().put(path, Payload::from(*value))?),
        Op::DeleteNode(path) => drop(store.tree().delete(path, None)?),
        Op::Both(nodes, path, rows) => store.transact(|tx| {
            for (node, value) in nodes {
                tx.tree().put(node, Payload::from(*value))?;
            }
            tx.append(path, batch(rows), &options)
        })?,
        Op::Project => {
            let field = |text: &str| vec![Field::new(text).expect("it is one")];
            let pattern = Pattern::new("n/*")?;
            let projection = Projection { pattern, key: field("payload"), value: field("path"), bag: true };
            store.tree().put_projection("nodes", projection)?;
        }
        Op::Keyed(op) => keyed_model::run(store, op)?,
        Op::Wide(op) => wide_op::run(store, op)?,
        Op::Copy(op) => copy_op::run(store, op)?,
        Op::Evolve(op) => evolve_run::run(store, op)?,
        Op::Checkpoint => drop(store.checkpoint(&Default::default())?),
        Op::Reclaim => drop(store.reclaim(&Default::default())?),
        Op::Reopen => {
            store.close()?;
            *store = reopen()?;
        }
    }
    Ok(())
}

/// Checks that everything readable in the store agrees with the model; the error is the difference.
pub fn compare(store: &Store, model: &Model) -> Result<(), String> {
    let text = |e: drumlin::Error| e.to_string();
    let tables = store.tree().list("t/**").map_err(text)?.into_iter().filter(|e| e.table.is_some());
    same(&tables.map(|e| e.path).collect(), &model.tables.keys().cloned().collect::<Vec<_>>(), "tables")?;
    for (path, table) in &model.tables {
        let versions = store.table(path).versions().map_err(text)?;
        let numbers = versions.iter().map(|version| version.version.0).collect::<Vec<u64>>();
        same(&numbers, &table.versions.keys().copied().collect(), &format!("versions of {path}"))?;
        for (at, (version, (number, expected))) in versions.iter().zip(&table.versions).enumerate() {
            let what = format!("{path} version {number}");
            same(&version.rows, &(expected.len() as u64), &what)?;
            for as_of in [AsOf::Version(Version(*number)), AsOf::Back((versions.len() - 1 - at) as u64)] {
                same(&read(store, path, as_of).map_err(text)?, expected, &what)?;
            }
        }
        if !model.erased {
            turnovers(&versions, table)?;
        }
        same(&read(store, path, AsOf::Newest).map_err(text)?, table.newest(), path)?;
        if let [first, .., last] = numbers.as_slice() {
            let version = |number: &u64| AsOf::Version(Version(*number));
            diffs::check(store, path, &version(first), &version(last), last % 2 == 0)?;
            diffs::check(store, path, &version(last), &version(first), false)?;
        }
        let kept = model.keep_last.get(path).map(|n| Retention::KeepLast(*n));
        let kept = kept.or_else(|| model.keep_for.get(path).map(|micros| Retention::KeepMicros(*micros)));
        same(&store.retention(path).map_err(text)?, &kept.unwrap_or_default(), &format!("retention of {path}"))?;
    }
    if !model.tables.is_empty() {
        let found = store.scan("t/**", &Default::default()).and_then(|all| all.collect(&Default::default()));
        let newest: Vec<Row> = model.tables.values().flat_map(|table| table.newest().clone()).collect();
        same(&rows(&found.map_err(text)?), &newest, "all tables as one")?;
    }
    let names = store.snapshots().map_err(text)?.into_iter().map(|snapshot| snapshot.name);
    let of_keyed = model.keyed.iter().flat_map(|keyed| keyed.snapshots.keys());
    let mut expected: Vec<String> = model.snapshots.keys().chain(of_keyed).cloned().collect();
    expected.sort();
    same(&names.collect(), &expected, "snapshots")?;
    keyed_model::compare(store, model.keyed.as_ref())?;
    evolve_run::compare(store, &model.evolving)?;
    for (name, pins) in &model.snapshots {
        for (path, expected) in pins {
            let found = read(store, path, AsOf::Snapshot(name.clone())).map_err(text)?;
            same(&found, expected, &format!("{path} in {name}"))?;
        }
    }
    let nodes = store.tree().list("n/*").map_err(text)?.into_iter().map(|e| (e.path, e.node.payload));
    let expected = model.nodes.iter().map(|(path, value)| (path.clone(), Some(Payload::from(*value))));
    same(&nodes.collect(), &expected.collect::<Vec<_>>(), "nodes")?;
    if model.projected {
        let entries = store.tree().projection("nodes").map_err(text)?;
        let mut expected: Vec<_> = model.nodes.iter().map(|(path, value)| (*value, path.clone())).collect();
        expected.sort();
        let expected = expected.into_iter().map(|(value, path)| (vec![Payload::from(value)], path));
        let found = entries.entries().map(|entry| (entry.key, entry.path)).collect();
        same(&found, &expected.collect::<Vec<_>>(), "projection")?;
    }
    Ok(())
}

/// Checks how many rows versions say that they have added and removed.
fn turnovers(versions: &[VersionInfo], table: &ModelTable) -> Result<(), String> {
    for pair in versions.windows(2).filter(|pair| pair[1].version.0 == pair[0].version.0 + 1) {
        let rows = |info: &VersionInfo| &table.versions[&info.version.0];
        let (before, after, made) = (rows(&pair[0]), rows(&pair[1]), &pair[1]);
        let Some(Turnover { added, removed }) = made.turnover else {
            return Err(format!("version {} ({}) has counted no rows", made.version, made.kind.name()));
        };
        let mut difference: BTreeMap<&Row, i64> = BTreeMap::new();
        before.iter().for_each(|row| *difference.entry(row).or_default() -= 1);
        after.iter().for_each(|row| *difference.entry(row).or_default() += 1);
        let new: i64 = difference.values().filter(|more| **more > 0).sum();
        let gone: i64 = -difference.values().filter(|more| **more < 0).sum::<i64>();
        // Rows that are replaced by equal ones are counted too.
        use VersionKind::{Replace, Restore, Update, Write};
        let replaces = matches!(made.kind, Write | Replace | Restore | Update);
        let exact = replaces || (added as i64, removed as i64) == (new, gone);
        let fits = before.len() as u64 + added - removed == after.len() as u64 && added as i64 >= new;
        if !exact || !fits {
            let what = format!(
                "version {} ({}) of {} rows after {}",
                made.version,
                made.kind.name(),
                after.len(),
                before.len()
            );
            return Err(format!("{what}: {added} added, {removed} removed; {new} new, {gone} gone"));
        }
    }
    Ok(())
}

/// Checks that the trash agrees with the model; the error is the difference.
pub fn compare_trash(store: &Store, model: &Model, trash: &[(String, ModelTable)]) -> Result<(), String> {
    let mut found: Vec<String> = store.trash().map_err(|e| e.to_string())?.into_iter().map(|item| item.path).collect();
    let mut expected: Vec<String> = trash.iter().map(|(path, _)| path.clone()).collect();
    let keyed = model.keyed.iter().filter(|keyed| keyed.place == Place::Trash);
    expected.extend(keyed.map(|_| keyed_model::PATH.to_owned()));
    found.sort();
    expected.sort();
    if found == expected { Ok(()) } else { Err(format!("trash: {found:?}, expected {expected:?}")) }
}

pub fn check(store: &Store, model: &Model) {
    compare(store, model).unwrap();
}
