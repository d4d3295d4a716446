//! Random changes of sources, of every kind, and views that are compared after each.

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use drumlin::store::{AsOf, CheckpointOptions, Missing, ViewOptions};
use drumlin::{Existing, Expression, Result, Tables, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::made::{check, kept, rows, source_options, view};
use crate::seeds;
use crate::support::{Checked, open_with};
use drumlin::base::ManualClock;
use drumlin::storage::SimDisk;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Does something to a source, or several; whatever is refused is refused.
fn change(rng: &mut fastrand::Rng, tables: &impl Tables, next: &mut i64, few: bool) -> Result<()> {
    let path = format!("t/{}", NAMES[rng.usize(..NAMES.len())]);
    let table = tables.table(&path);
    let count = match rng.u8(..4) {
        0 => 1,
        _ => rng.usize(1..if few { 12 } else { 60 }),
    };
    let new = |next: &mut i64| {
        *next += count as i64;
        (*next - count as i64..*next).collect::<Vec<_>>()
    };
    let some = |rng: &mut fastrand::Rng, next: i64| {
        let mut keys: Vec<i64> = (0..count).map(|_| rng.i64(0..next.max(1) + 5)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    };
    let all = Default::default();
    if !table.exists()? {
        table.create(rows(rng, &[]).schema(), source_options(rng.u8(..3)))?;
    }
    match rng.u8(..20) {
        0..6 => table.append(rows(rng, &new(next)), &Default::default()).map(drop),
        6..10 => {
            let keys = some(rng, *next);
            table.upsert(rows(rng, &keys), &Default::default()).map(drop)
        }
        10 => {
            let keys = some(rng, *next);
            let keys = RecordBatch::try_from_iter([("k", Arc::new(Int64Array::from(keys)) as ArrayRef)]).unwrap();
            table.delete_keys(keys, &Default::default()).map(drop)
        }
        11 | 12 => table.delete(&format!("k % 7 = {}", rng.u8(..7)), &all).map(drop),
        13 => {
            let set = [("n".to_owned(), Expression::parse("n + 1").unwrap())];
            table.update(&set, Some(&format!("k % 5 = {}", rng.u8(..5))), &all).map(drop)
        }
        14 => table.write(rows(rng, &new(next)), &Default::default()).map(drop),
        15 => table.drop(Missing::Refuse).map(drop),
        16 => {
            let to = format!("t/{}", NAMES[rng.usize(..NAMES.len())]);
            let existing = if rng.bool() { Existing::Replace } else { Existing::Refuse };
            match rng.bool() {
                true => tables.relocate(&path, &to, existing).map(drop),
                false => tables.copy(&path, &to, &AsOf::Newest, existing).map(drop),
            }
        }
        17 => {
            let versions = table.versions()?;
            let version = versions[rng.usize(..versions.len())].version;
            tables.restore(path.as_str(), &AsOf::Version(version)).map(drop)
        }
        18 => tables.write(&path, rows(rng, &new(next)), &Default::default()).map(drop),
        _ => table.delete(&format!("s = '{}'", rng.char('a'..='d')), &all).map(drop),
    }
}

/// Whether views equal what their sources give, after each of many changes. Returns in how many cases a view was behind after a change.
fn equal_what_is_computed(seed: u64, steps: usize) -> Checked {
    let mut rng = fastrand::Rng::with_seed(seed);
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let mut disk = SimDisk::new();
    let mut store = open_with(&disk, &clock, 2).unwrap();
    let mut next = 0;
    while change(&mut rng, &store, &mut next, true).is_err() || next == 0 {}
    let mut views: Vec<(String, ViewOptions)> = Vec::new();
    let mut then: BTreeMap<Timestamp, Vec<String>> = BTreeMap::new();
    for step in 0..steps {
        if views.len() < 3 && rng.u8(..4) == 0 && !store.tables("t/*").unwrap().is_empty() {
            let (path, options) = (format!("views/v{}", views.len()), view(&mut rng));
            store.table(&path).create_view("t/*", &options).map_err(|e| e.to_string())?;
            views.push((path, options));
        }
        match rng.u8(..16) {
            0 => drop(store.checkpoint(&CheckpointOptions::default()).unwrap()),
            1 => {
                store.close().unwrap();
                store = open_with(&disk, &clock, 2).unwrap();
            }
            2 => {
                let (seed, image) = (rng.u64(..), disk.clone());
                std::mem::drop(store);
                disk = image.crash(seed);
                store = open_with(&disk, &clock, 2).unwrap();
            }
            3..6 => {
                let transaction = store.transaction().unwrap();
                let mut wrote = false;
                for _ in 0..rng.usize(1..4) {
                    wrote |= change(&mut rng, &transaction, &mut next, true).is_ok();
                }
                if wrote {
                    let _ = transaction.commit();
                }
            }
            6 => {
                if let Some(item) = store.trash().unwrap().into_iter().find(|item| item.path.starts_with("t/")) {
                    let _ = store.undrop(&item.path, None);
                }
            }
            _ => {
                let few = rng.u8(..3) > 0;
                if let Err(e) = change(&mut rng, &store, &mut next, few)
                    && ![
                        drumlin::ErrorKind::InvalidArgument,
                        drumlin::ErrorKind::NotFound,
                        drumlin::ErrorKind::AlreadyExists,
                        drumlin::ErrorKind::SchemaMismatch,
                    ]
                    .contains(&e.kind())
                {
                    return Err(format!("seed {seed}, step {step}: {e}"));
                }
            }
        }
        let behind: Vec<String> = store.tree().views().unwrap().into_iter().flat_map(|view| view.behind).collect();
        if !behind.is_empty() {
            return Err(format!("seed {seed}, step {step}: behind with {behind:?}"));
        }
        check(&store, &views).map_err(|e| format!("seed {seed}, step {step}: {e}"))?;
        // As of a time, a view shows what it showed then, whatever became of its rows.
        let tables = store.tables("t/*").unwrap();
        let times = tables.iter().map(|path| store.table(path).versions().unwrap().last().map(|version| version.time));
        if rng.u8(..4) == 0
            && let Some(time) = times.flatten().max()
            && views.iter().all(|(path, _)| store.table(path).versions().unwrap()[0].time <= time)
        {
            let now = views.iter().map(|(path, _)| kept(&store, path, &AsOf::Time(time))).collect();
            then.insert(time, now);
        }
        if rng.u8(..4) == 0 && !then.is_empty() {
            let (time, known) = then.iter().nth(rng.usize(..then.len())).unwrap();
            for ((path, _), known) in views.iter().zip(known) {
                let is = kept(&store, path, &AsOf::Time(*time));
                if is != *known {
                    return Err(format!("seed {seed}, step {step}: {path} at {time:?}\nis\n{is}\nand was\n{known}"));
                }
            }
        }
    }
    Ok(())
}

pub fn views() -> Checked {
    (0..12).try_for_each(|seed| equal_what_is_computed(seed, 60))
}

#[test]
fn views_equal_what_is_computed() {
    views().unwrap();
    seeds::each(12..16, 8, |seed| equal_what_is_computed(seed, 80).unwrap());
}
