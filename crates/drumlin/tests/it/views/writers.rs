//! Many threads and two processes change the same sources; nobody's rows are counted twice, or not at all.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use drumlin::base::{ManualClock, Timestamp};
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, Missing, TableOptions, ViewOptions};
use drumlin::{Aggregate, Function, GroupBy, Tables};

use super::made::{computed, kept};
use crate::seeds;
use crate::support::{Checked, open_shared, same};

fn rows(n: Vec<i64>) -> RecordBatch {
    let s: ArrayRef = Arc::new(StringArray::from_iter_values(n.iter().map(|n| format!("s{}", n % 3))));
    RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(n)) as ArrayRef), ("s", s)]).unwrap()
}

fn sums() -> ViewOptions {
    let made = |name: &str, function, of: &str| Aggregate { name: name.into(), function, of: Some(of.into()) };
    let aggregates = vec![made("sum", Function::Sum, "n"), made("most", Function::Max, "n")];
    let groups = GroupBy { keys: vec!["s".into()], aggregates, ..GroupBy::default() };
    ViewOptions { path_columns: vec!["name".into()], groups, ..ViewOptions::default() }
}

fn in_step(seed: u64) -> Checked {
    let (disk, clock) = (SimDisk::new(), Arc::new(ManualClock::new(Timestamp(1_000_000))));
    let stores = [open_shared(&disk, &clock, 2).unwrap(), open_shared(&disk, &clock, 2).unwrap()];
    for name in ["a", "b", "c"] {
        let options =
            if name == "c" { TableOptions { key: vec!["n".into()], ..Default::default() } } else { Default::default() };
        stores[0].table(&format!("t/{name}")).create(rows(vec![]).schema(), options).unwrap();
    }
    stores[1].refresh().unwrap();
    stores[1].table("sums").create_view("t/*", &sums()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let store = &stores[thread as usize % 2];
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(seed * 10 + thread);
                for step in 0..30 {
                    let path = format!("t/{}", rng.choice(["a", "b", "c"]).unwrap());
                    let table = store.table(&path);
                    let first = 1000 + (thread as i64 * 1000 + step) * 10;
                    match rng.u8(..6) {
                        0 => table.delete(&format!("n % 7 = {}", rng.u8(..7)), &Default::default()).map(drop),
                        1 if path == "t/c" => table.upsert(rows(vec![rng.i64(0..50)]), &Default::default()).map(drop),
                        2 => store.checkpoint(&Default::default()).map(drop),
                        3 => store.transact(|tx| {
                            tx.append("t/a", rows(vec![first]), &Default::default())?;
                            tx.append("t/b", rows(vec![first + 1]), &Default::default())
                        }),
                        _ => {
                            table.append(rows((first..first + rng.i64(1..9)).collect()), &Default::default()).map(drop)
                        }
                    }
                    .unwrap();
                }
            });
        }
    });
    for store in &stores {
        store.refresh().unwrap();
        same(&kept(store, "sums", &AsOf::Newest), &computed(store, &sums(), &AsOf::Newest), "sums")?;
        same(&store.tree().views().unwrap()[0].behind, &Vec::new(), "behind")?;
    }
    stores[0].table("t/a").drop(Missing::Refuse).unwrap();
    same(&kept(&stores[0], "sums", &AsOf::Newest), &computed(&stores[0], &sums(), &AsOf::Newest), "dropped")
}

pub fn many_writers() -> Checked {
    (0..8).try_for_each(in_step)
}

#[test]
fn views_stay_in_step_while_many_write() {
    many_writers().unwrap();
    seeds::each(8..8, 4, |seed| in_step(seed).unwrap());
}
