//! A keyed table of the model: maps from key to row, and operations on them.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, AsArray};
use drumlin::base::Version;
use drumlin::catalog::Payload;
use drumlin::store::{AsOf, ReadOptions, TableOptions, WriteOptions};
use drumlin::table::{Lookup, ScanOptions};
use drumlin::{Store, Tables};

use crate::support::{Row, batch, read, rows};

pub const PATH: &str = "k/t";

type Content = BTreeMap<i64, Option<String>>;

/// A table with a key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyedModel {
    pub rows: Content,
    pub versions: BTreeMap<u64, Content>,
    next_version: u64,
    /// Whether rows were written that are in no version.
    active: bool,
    pub snapshots: BTreeMap<String, Content>,
    pub place: Place,
}

/// Where a keyed table is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Place {
    #[default]
    There,
    Trash,
    /// Only its snapshots are left.
    Gone,
}

/// An operation on it. Many rows are written as row groups, few to the log.
#[derive(Clone, Debug)]
pub enum KeyedOp {
    Create,
    Upsert {
        rows: Vec<Row>,
        many: bool,
    },
    Insert {
        rows: Vec<Row>,
        many: bool,
    },
    /// Upserts rows that have the key alone.
    Touch {
        keys: Vec<i64>,
        many: bool,
    },
    Delete {
        keys: Vec<i64>,
        many: bool,
    },
    Write(Vec<Row>),
    Update(Vec<Row>),
    DeleteWhere(i64, i64),
    DeleteVersions(Vec<u64>),
    Snapshot(String),
    DropSnapshot(String),
    /// Reads a key, writes it and others, deletes one, and puts a node; all or nothing.
    Transact {
        read: i64,
        rows: Vec<Row>,
        delete: i64,
    },
}

/// Rows without those whose id another has.
pub fn distinct(rows: &[Row]) -> Vec<Row> {
    let mut seen = BTreeSet::new();
    rows.iter().filter(|(id, _)| seen.insert(*id)).cloned().collect()
}

/// Chooses a random operation that makes sense.
pub fn draw(rng: &mut fastrand::Rng, model: Option<&KeyedModel>) -> KeyedOp {
    let Some(model) = model else { return KeyedOp::Create };
    let key = |rng: &mut fastrand::Rng| rng.i64(-30..60);
    let n = rng.usize(..20);
    let fresh: Vec<Row> = (0..n).map(|_| (key(rng), (rng.u8(..4) > 0).then(|| format!("k{}", rng.u8(..50))))).collect();
    let absent = |rows: &[Row]| -> Vec<Row> {
        distinct(rows).into_iter().filter(|(id, _)| !model.rows.contains_key(id)).collect()
    };
    let many = rng.u8(..3) == 0;
    match rng.u8(..28) {
        26.. => KeyedOp::Touch { keys: fresh.iter().map(|(id, _)| *id).collect(), many },
        0..8 => KeyedOp::Upsert { rows: fresh, many },
        8..11 => KeyedOp::Insert { rows: if rng.u8(..4) == 0 { fresh } else { absent(&fresh) }, many },
        11..14 => KeyedOp::Delete { keys: fresh.iter().map(|(id, _)| *id).collect(), many },
        14 => KeyedOp::Write(distinct(&fresh)),
        15 => KeyedOp::Update(distinct(&fresh)),
        16..18 => KeyedOp::DeleteWhere(rng.i64(2..5), rng.i64(0..2)),
        18..20 if model.versions.len() > 1 => {
            let all: Vec<u64> = model.versions.keys().copied().collect();
            let mut some = vec![if rng.bool() { all[all.len() - 1] } else { all[rng.usize(..all.len())] }];
            some.push(all[rng.usize(..all.len())]);
            some.sort_unstable();
            some.dedup();
            KeyedOp::DeleteVersions(some)
        }
        18..22 => KeyedOp::Snapshot(format!("k{}", rng.u8(..3))),
        22 => KeyedOp::DropSnapshot(format!("k{}", rng.u8(..3))),
        _ => KeyedOp::Transact { read: key(rng), rows: fresh, delete: key(rng) },
    }
}

impl KeyedModel {
    pub fn number(&mut self) {
        self.versions.insert(self.next_version, self.rows.clone());
        self.next_version += 1;
        self.active = false;
    }

    pub fn wrote(&mut self, many: bool, some: bool) {
        if many {
            self.number();
        } else {
            self.active |= some;
        }
    }

    /// Does what a checkpoint does, in the trash too.
    pub fn checkpoint(&mut self) {
        if self.active && self.place != Place::Gone {
            self.number();
        }
    }

    /// Does what a reclaim does that empties the trash.
    pub fn reclaim(&mut self) {
        if self.place == Place::Trash {
            self.place = Place::Gone;
        }
    }
}

/// Applies `op` to the model; returns whether the store must succeed.
pub fn apply(model: &mut Option<KeyedModel>, nodes: &mut BTreeMap<String, i64>, op: &KeyedOp) -> bool {
    if let KeyedOp::Create = op {
        let snapshots = model.take().map(|gone| gone.snapshots).unwrap_or_default();
        let mut new = KeyedModel { snapshots, ..KeyedModel::default() };
        new.number();
        *model = Some(new);
        return true;
    }
    let model = model.as_mut().expect("drawn for one that is there");
    match op {
        KeyedOp::Create => {}
        KeyedOp::Upsert { rows, many } => {
            model.rows.extend(rows.iter().cloned());
            model.wrote(*many, !rows.is_empty());
        }
        KeyedOp::Insert { rows, many } => {
            let keys: BTreeSet<i64> = rows.iter().map(|(id, _)| *id).collect();
            if keys.len() < rows.len() || keys.iter().any(|key| model.rows.contains_key(key)) {
                return false;
            }
            model.rows.extend(rows.iter().cloned());
            model.wrote(*many, !rows.is_empty());
        }
        KeyedOp::Touch { keys, many } => {
            let new = keys.iter().any(|key| !model.rows.contains_key(key));
            // Many are a merge: it puts rows in memory into a version of their own first, unless it changes nothing.
            if *many && new {
                model.checkpoint();
            }
            keys.iter().for_each(|key| _ = model.rows.entry(*key).or_default());
            model.wrote(*many && new, !many && !keys.is_empty());
        }
        KeyedOp::Delete { keys, many } => {
            let there = keys.iter().any(|key| model.rows.contains_key(key));
            keys.iter().for_each(|key| drop(model.rows.remove(key)));
            // Many missing keys make no version; few are written without a look-up.
            model.wrote(*many && there, !many && !keys.is_empty());
        }
        KeyedOp::Write(rows) => {
            model.rows = rows.iter().cloned().collect();
            model.number();
        }
        KeyedOp::Update(rows) => {
            let low = rows.iter().map(|(id, _)| *id).min().unwrap_or(1);
            let high = rows.iter().map(|(id, _)| *id).max().unwrap_or(0);
            model.rows.retain(|id, _| *id < low || *id > high);
            model.rows.extend(rows.iter().cloned());
            model.number();
        }
        KeyedOp::DeleteWhere(divisor, rest) => {
            let before = model.rows.len();
            model.rows.retain(|id, _| id % divisor != *rest);
            if model.rows.len() < before {
                model.number();
            }
        }
        KeyedOp::DeleteVersions(versions) => {
            if versions.len() == model.versions.len() {
                return false;
            }
            let newest = *model.versions.keys().next_back().expect("there is one");
            if versions.contains(&newest) && model.active {
                model.number();
            }
            let newest = *model.versions.keys().next_back().expect("there is one");
            versions.iter().for_each(|version| drop(model.versions.remove(version)));
            if versions.contains(&newest) {
                model.rows = model.versions.values().next_back().expect("one is left").clone();
            }
        }
        KeyedOp::Snapshot(name) => {
            if model.snapshots.contains_key(name) {
                return false;
            }
            model.checkpoint();
            model.snapshots.insert(name.clone(), model.rows.clone());
        }
        KeyedOp::DropSnapshot(name) => return model.snapshots.remove(name).is_some(),
        KeyedOp::Transact { read, rows, delete } => {
            model.rows.insert(*read, Some("read".into()));
            model.rows.entry(*delete).or_default();
            model.rows.extend(rows.iter().cloned());
            model.rows.remove(delete);
            model.active = true;
            nodes.insert("n/7".into(), *read);
        }
    }
    true
}

fn keys(ids: &[i64]) -> arrow::array::RecordBatch {
    let rows: Vec<Row> = ids.iter().map(|id| (*id, None)).collect();
    batch(&rows).project(&[0]).unwrap()
}

/// Applies `op` to the store.
pub fn run(store: &Store, op: &KeyedOp) -> drumlin::Result<()> {
    // Metadata need a version, so the rows become row groups.
    let note = |many: &bool| WriteOptions { metadata: many.then(|| "{}".to_owned()), ..WriteOptions::default() };
    match op {
        KeyedOp::Create => {
            let options = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
            store.table(PATH).create(batch(&[]).schema(), options)?;
        }
        KeyedOp::Upsert { rows, many } => drop(store.table(PATH).upsert(batch(rows), &note(many))?),
        KeyedOp::Touch { keys: ids, many } => drop(store.table(PATH).upsert(keys(ids), &note(many))?),
        KeyedOp::Insert { rows, many } => drop(store.table(PATH).insert(batch(rows), &note(many))?),
        KeyedOp::Delete { keys: ids, many } => drop(store.table(PATH).delete_keys(keys(ids), &note(many))?),
        KeyedOp::Write(rows) => drop(store.write(PATH, batch(rows), &WriteOptions::default())?),
        KeyedOp::Update(rows) => drop(store.replace(PATH, batch(rows), &WriteOptions::default())?),
        KeyedOp::DeleteWhere(divisor, rest) => {
            store.table(PATH).delete(&format!("id % {divisor} = {rest}"), &Default::default())?;
        }
        KeyedOp::DeleteVersions(versions) => {
            store.delete_versions(
                &[(PATH.to_owned(), versions.iter().map(|v| Version(*v)).collect())],
                Default::default(),
            )?;
        }
        KeyedOp::Snapshot(name) => drop(store.snapshot(name, PATH)?),
        KeyedOp::DropSnapshot(name) => store.drop_snapshot(name)?,
        KeyedOp::Transact { read, rows, delete } => store.transact(|tx| {
            tx.table(PATH).get_many(&keys(&[*read]), &Default::default())?;
            tx.table(PATH).upsert(batch(&[(*read, Some("read".into()))]), &WriteOptions::default())?;
            let own = tx.table(PATH).get_many(&keys(&[*read]), &Default::default())?;
            assert_eq!(texts(&own), [Some(Some("read".to_owned()))]);
            tx.table(PATH).upsert(keys(&[*read, *delete]), &WriteOptions::default())?;
            assert_eq!(
                texts(&tx.table(PATH).get_many(&keys(&[*read]), &Default::default())?),
                [Some(Some("read".to_owned()))]
            );
            tx.table(PATH).upsert(batch(rows), &WriteOptions::default())?;
            tx.table(PATH).delete_keys(keys(&[*delete]), &WriteOptions::default())?;
            let gone = tx.table(PATH).get_many(&keys(&[*delete]), &Default::default())?;
            assert_eq!(texts(&gone), [None]);
            tx.tree().put("n/7", Payload::from(*read)).map(drop)
        })?,
    }
    Ok(())
}

/// The second column of the rows found.
pub fn texts(lookup: &Lookup) -> Vec<Option<Option<String>>> {
    let names = lookup.rows["name"].as_string::<i32>();
    let text = |at: usize| names.is_valid(at).then(|| names.value(at).to_owned());
    (0..lookup.found.len()).map(|at| lookup.found.value(at).then(|| text(at))).collect()
}

fn listed(content: &Content) -> Vec<Row> {
    content.iter().map(|(id, name)| (*id, name.clone())).collect()
}

fn same<T: PartialEq + std::fmt::Debug>(found: T, expected: T, what: &str) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found:?}, expected {expected:?}")) }
}

/// Checks that everything readable in the table agrees with the model; the error is the difference.
pub fn compare(store: &Store, model: Option<&KeyedModel>) -> Result<(), String> {
    let text = |e: drumlin::Error| e.to_string();
    let there = store.tree().list("k/*").map_err(text)?.into_iter().filter(|entry| entry.table.is_some()).count();
    let is_there = model.is_some_and(|model| model.place == Place::There);
    same(there, usize::from(is_there), "tables with a key")?;
    let Some(model) = model else { return Ok(()) };
    if !is_there {
        return model.snapshots.iter().try_for_each(|(name, content)| {
            same(read(store, PATH, AsOf::Snapshot(name.clone())).map_err(text)?, listed(content), name)
        });
    }
    same(read(store, PATH, AsOf::Newest).map_err(text)?, listed(&model.rows), "rows by key")?;
    same(store.table(PATH).stat().map_err(text)?.rows, model.rows.len() as u64, "count of rows by key")?;
    // Every possible key, in any order, one of them twice.
    let asked: Vec<i64> = (-35..65).map(|n| (n * 37_i64 + 11).rem_euclid(100) - 35).chain([3]).collect();
    let look_up = |as_of: AsOf| {
        let options = drumlin::store::LookupOptions { as_of, ..Default::default() };
        let found = store.table(PATH).get_many(&keys(&asked), &options).map_err(text)?;
        let ids = found.rows["id"].as_primitive::<arrow::datatypes::Int64Type>();
        same(ids.values().to_vec(), asked.clone(), "keys answered")?;
        Ok::<_, String>(texts(&found))
    };
    let answers = |content: &Content| asked.iter().map(|id| content.get(id).cloned()).collect::<Vec<_>>();
    same(look_up(AsOf::Newest)?, answers(&model.rows), "look-up")?;
    let scan = |scan: ScanOptions| {
        let options = ReadOptions::from(scan);
        store.table(PATH).collect(&options).map(|batches| rows(&batches)).map_err(text)
    };
    let filter = Some(drumlin::filter::Filter::parse("id % 3 = 0 and name <> 'k7'").unwrap());
    let kept = |(id, name): &&Row| id % 3 == 0 && name.as_ref().is_some_and(|name| name != "k7");
    let expected: Vec<Row> = listed(&model.rows).iter().filter(kept).cloned().collect();
    same(scan(ScanOptions { filter, ..Default::default() })?, expected, "rows filtered")?;
    let all = listed(&model.rows);
    let n = all.len().min(5);
    same(scan(ScanOptions { limit: Some(5), ..Default::default() })?, all[..n].to_vec(), "first rows")?;
    same(scan(ScanOptions { tail: Some(5), ..Default::default() })?, all[all.len() - n..].to_vec(), "last rows")?;
    let versions = store.table(PATH).versions().map_err(text)?;
    let numbers: Vec<u64> = versions.iter().map(|version| version.version.0).collect();
    same(numbers, model.versions.keys().copied().collect(), "versions by key")?;
    for (at, (info, (number, content))) in versions.iter().zip(&model.versions).enumerate() {
        let what = format!("version {number} by key");
        same(info.rows, content.len() as u64, &format!("{what}: count"))?;
        for as_of in [AsOf::Version(Version(*number)), AsOf::Back((versions.len() - 1 - at) as u64)] {
            same(read(store, PATH, as_of.clone()).map_err(text)?, listed(content), &what)?;
            same(look_up(as_of)?, answers(content), &format!("{what}: look-up"))?;
        }
    }
    for (name, content) in &model.snapshots {
        same(read(store, PATH, AsOf::Snapshot(name.clone())).map_err(text)?, listed(content), name)?;
        same(look_up(AsOf::Snapshot(name.clone()))?, answers(content), &format!("{name}: look-up"))?;
    }
    Ok(())
}
