//! The operations that `wide` chooses in addition to those of `random`, and their effects on the model and on the
//! store.

use drumlin::base::Task;
use drumlin::catalog::{Payload, Retention};
use drumlin::store::{CheckpointOptions, ReclaimOptions, UpdateOptions, WriteOptions};
use drumlin::table::PlanOptions;
use drumlin::{Expression, Filter, Result, Store, Tables};

use crate::models::model::{Model, Trash};
use crate::rows::keyed_model::{PATH, Place};
use crate::support::{Row, batch, of_rest};

/// One operation.
#[derive(Clone, Debug)]
pub enum WideOp {
    /// A checkpoint after which no deleted row is left.
    Purge,
    /// Erases rows by id, divided with a remainder, from all versions.
    Erase(i64, i64),
    /// A reclaim that ends the sessions of others and deletes everything that nothing refers to.
    Audit,
    /// A reclaim that keeps the trash.
    ReclaimWithin,
    /// Dropped and reclaimed at once.
    DropNow(String),
    /// Restored to another path.
    UndropTo(String, String),
    /// Several tables in one commit.
    WriteMany(Vec<(String, Vec<Row>)>),
    /// Rows by id, divided with a remainder, replaced by others.
    ReplaceWhere(String, i64, i64, Vec<Row>),
    /// Names of rows by id, divided with a remainder, set to another, or to none.
    Set(String, i64, i64, Option<String>),
    /// As `ReplaceWhere`, in the table with a key.
    ReplaceKeyed(i64, i64, Vec<Row>),
    /// How many microseconds versions are kept.
    KeepFor(String, u64),
    DropKeyed,
    UndropKeyed,
    CreateNode(String, i64),
    UpdateNode(String, i64),
    Swap(String, i64, i64),
    PutMany(Vec<(String, i64)>),
    /// Deletes nodes with a payload below a number.
    DeleteNodes(i64),
    /// Exports the nodes, and imports them again.
    Import,
    /// Rows appended and deleted, rows by key, and nodes, in one transaction.
    All {
        path: String,
        rows: Vec<Row>,
        divisor: i64,
        by_key: Vec<Row>,
        node: (String, i64),
    },
}

/// Applies `op` to the model; returns whether the store must succeed.
pub fn apply(model: &mut Model, trash: &mut Trash, op: &WideOp) -> bool {
    match op {
        WideOp::Purge => model.checkpoint(),
        WideOp::Erase(divisor, rest) => {
            let held = model.held.values().any(|pins| !pins.is_empty());
            if model.tables.is_empty() && trash.is_empty() && !held {
                return false;
            }
            model.checkpoint();
            model.erased = true;
            erase(model, trash, |(id, _)| id % divisor != *rest);
        }
        WideOp::Audit => model.reclaim(trash),
        WideOp::ReclaimWithin => {}
        WideOp::DropNow(path) => drop(model.tables.remove(path).unwrap()),
        WideOp::UndropTo(from, to) => {
            let Some(at) = trash.iter().rposition(|(dropped, _)| dropped == from) else { return false };
            if model.tables.contains_key(to) {
                return false;
            }
            let (_, table) = trash.remove(at);
            model.tables.insert(to.clone(), table);
        }
        WideOp::WriteMany(tables) => {
            for (path, rows) in tables {
                model.tables.entry(path.clone()).or_default().add(rows.clone());
                model.expire(path);
            }
        }
        WideOp::ReplaceWhere(path, divisor, rest, rows) => {
            let table = model.tables.get_mut(path).unwrap();
            let kept = table.newest().iter().filter(|(id, _)| id % divisor != *rest);
            let all = kept.chain(rows).cloned().collect();
            table.add(all);
            model.expire(path);
        }
        WideOp::Set(path, divisor, rest, name) => {
            let table = model.tables.get_mut(path).unwrap();
            let mut rows = table.newest().to_vec();
            let matching = rows.iter_mut().filter(|(id, _)| id % divisor == *rest);
            if matching.map(|row| row.1.clone_from(name)).count() > 0 {
                table.add(rows);
                model.expire(path);
            }
        }
        WideOp::ReplaceKeyed(divisor, rest, rows) => {
            let keyed = model.keyed.as_mut().unwrap();
            keyed.rows.retain(|id, _| id % divisor != *rest);
            if rows.iter().any(|(id, _)| keyed.rows.contains_key(id)) {
                return false;
            }
            keyed.rows.extend(rows.iter().cloned());
            keyed.number();
        }
        WideOp::KeepFor(path, micros) => {
            model.keep_last.remove(path);
            model.keep_for.insert(path.clone(), *micros);
        }
        WideOp::DropKeyed => model.keyed.as_mut().unwrap().place = Place::Trash,
        WideOp::UndropKeyed => model.keyed.as_mut().unwrap().place = Place::There,
        WideOp::CreateNode(path, value) => return model.nodes.insert(path.clone(), *value).is_none(),
        WideOp::UpdateNode(path, value) => return model.nodes.insert(path.clone(), *value).is_some(),
        WideOp::Swap(path, expected, value) => return model.nodes.insert(path.clone(), *value) == Some(*expected),
        WideOp::PutMany(nodes) => model.nodes.extend(nodes.iter().cloned()),
        WideOp::DeleteNodes(below) => model.nodes.retain(|_, value| *value >= *below),
        WideOp::Import => {}
        WideOp::All { path, rows, divisor, by_key, node } => {
            let table = model.tables.get_mut(path).unwrap();
            // One version for the appended rows, and one for the deleted ones.
            let appended: Vec<Row> = table.newest().iter().chain(rows).cloned().collect();
            let left: Vec<Row> = appended.iter().filter(|(id, _)| id % divisor != 0).cloned().collect();
            let deletes = left.len() < appended.len();
            table.add(appended);
            if deletes {
                table.add(left);
            }
            model.expire(path);
            if let Some(keyed) = model.keyed.as_mut().filter(|_| !by_key.is_empty()) {
                keyed.rows.extend(by_key.iter().cloned());
                keyed.wrote(false, true);
            }
            model.nodes.insert(node.0.clone(), node.1);
        }
    }
    true
}

/// Keeps only some rows of the tables, in all of their versions.
fn erase(model: &mut Model, trash: &mut Trash, keep: impl Fn(&Row) -> bool) {
    let held = model.held.values_mut().flat_map(|pins| pins.values_mut()).map(|(_, table)| table);
    let tables = model.tables.values_mut().chain(trash.iter_mut().map(|(_, table)| table)).chain(held);
    for rows in tables.flat_map(|table| table.versions.values_mut()) {
        rows.retain(&keep);
    }
    for rows in model.snapshots.values_mut().flat_map(|pins| pins.values_mut()) {
        rows.retain(&keep);
    }
}

/// Applies `op` to the store.
pub fn run(store: &Store, op: &WideOp) -> Result<()> {
    let none = WriteOptions::default();
    match op {
        WideOp::Purge => {
            let plan = PlanOptions { dead_share_min: 0.0, repack_dead_share_min: 0.0, ..PlanOptions::default() };
            drop(store.checkpoint(&CheckpointOptions { plan, ..CheckpointOptions::default() })?);
        }
        WideOp::Erase(divisor, rest) => {
            let filter = Filter::parse(&of_rest(*divisor, *rest))?;
            let receipt = store.purge("t/**", &filter)?.execute(&Task::default())?;
            // What is held depends on what fails and who else is there.
            assert_eq!(receipt.proof.matching, 0, "{receipt:?}");
        }
        WideOp::Audit => {
            let all = ReclaimOptions { audit: true, fence_idle_micros: Some(0), ..ReclaimOptions::default() };
            drop(store.reclaim(&all)?);
        }
        WideOp::ReclaimWithin => {
            let within = ReclaimOptions { grace_micros: 1 << 60, ..ReclaimOptions::default() };
            drop(store.reclaim(&within)?);
        }
        WideOp::DropNow(path) => {
            let paths = std::slice::from_ref(path);
            let (_, reclaimed) = store.drop_and_reclaim(paths, Default::default(), &ReclaimOptions::default())?;
            // The table is dropped, but the store may be closed by what failed then.
            if let Some((_, why)) = reclaimed.failures.iter().find(|(what, _)| what == "(reclaim)") {
                return Err(drumlin::Error::unavailable(why));
            }
        }
        WideOp::UndropTo(from, to) => store.undrop(from, Some(to))?,
        WideOp::WriteMany(tables) => {
            let frames = tables.iter().map(|(path, rows)| (path.clone(), batch(rows).into())).collect();
            drop(store.write_many(frames, &none)?);
        }
        WideOp::ReplaceWhere(path, divisor, rest, rows) => {
            let filter = of_rest(*divisor, *rest);
            drop(store.table(path).replace_where(batch(rows), &filter, &none)?);
        }
        WideOp::Set(path, divisor, rest, name) => {
            let text = name.as_ref().map_or_else(|| "null".to_owned(), |name| format!("'{name}'"));
            let set = [("name".to_owned(), Expression::parse(&text)?)];
            let filter = of_rest(*divisor, *rest);
            drop(store.table(path).update(&set, Some(&filter), &UpdateOptions::default())?);
        }
        WideOp::ReplaceKeyed(divisor, rest, rows) => {
            let filter = of_rest(*divisor, *rest);
            drop(store.table(PATH).replace_where(batch(rows), &filter, &none)?);
        }
        WideOp::KeepFor(path, micros) => store.set_retention(path, Some(Retention::KeepMicros(*micros)))?,
        WideOp::DropKeyed => drop(store.drop(PATH)?),
        WideOp::UndropKeyed => store.undrop(PATH, None)?,
        WideOp::CreateNode(path, value) => drop(store.tree().create(path, Payload::from(*value))?),
        WideOp::UpdateNode(path, value) => drop(store.tree().update(path, Payload::from(*value))?),
        WideOp::Swap(path, expected, value) => {
            drop(store.tree().compare_and_swap(path, Payload::from(*expected), Payload::from(*value))?);
        }
        WideOp::PutMany(nodes) => {
            let nodes: Vec<_> = nodes.iter().map(|(path, value)| (path.clone(), Payload::from(*value))).collect();
            drop(store.tree().put_many(&nodes)?);
        }
        WideOp::DeleteNodes(below) => store.transact(|tx| {
            for (path, payload) in tx.tree().get_many("n/*")? {
                if payload.to_json().and_then(|value| value.as_i64()).is_some_and(|value| value < *below) {
                    tx.tree().delete(&path, None)?;
                }
            }
            Ok::<_, drumlin::Error>(())
        })?,
        WideOp::Import => {
            let mut lines = Vec::new();
            // Otherwise it exports the state of its last refresh.
            store.refresh()?;
            store.tree().export("n/*", &mut lines, &Task::default())?;
            store.tree().import(&mut &*lines, None, &Task::default())?;
        }
        WideOp::All { path, rows, divisor, by_key, node } => store.transact(|tx| {
            tx.append(path, batch(rows), &none)?;
            tx.table(path).delete(&of_rest(*divisor, 0), &UpdateOptions::default())?;
            if !by_key.is_empty() {
                tx.table(PATH).upsert(batch(by_key), &none)?;
            }
            tx.tree().put(&node.0, Payload::from(node.1))?;
            Ok::<_, drumlin::Error>(())
        })?,
    }
    Ok(())
}
