//! Rows that must be removed from storage: with `dead_share_min: 0.0`, no byte of a deleted row is left after a
//! checkpoint and a reclaim, however few they are, wherever they are stored.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use drumlin::catalog::Retention;
use drumlin::storage::SimDisk;
use drumlin::store::{CheckpointOptions, Options, ReadOptions, TableOptions, WriteOptions};
use drumlin::table::PlanOptions;
use drumlin::{Store, Tables};

use crate::support::env;

const SECRET: &str = "jane.roe@secret.example";

/// `n` rows, one of which has the secret, in texts of one kind: few distinct ones, many, or long ones.
fn rows(n: i64, kind: usize) -> RecordBatch {
    let text = |id: i64| match (id, kind) {
        (5, 0 | 1) => SECRET.to_owned(),
        (5, _) => format!("{SECRET} {}", "wrote a long letter about this and that ".repeat(3)),
        (_, 0) => format!("group {}", id % 7),
        (_, 1) => format!("user{id}@example.org"),
        _ => format!("{id} wrote a long letter about this and that, number {}", id * 7919 % 1009),
    };
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..n));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..n).map(text)));
    let keyed = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    // Dictionaries of a frame are kept with all their values in each of its row groups: see `Store::purge`.
    let tags = cast(&texts, &keyed).unwrap();
    let tags = if n > 122_880 { arrow::array::new_null_array(&keyed, n as usize) } else { tags };
    RecordBatch::try_from_iter([("id", ids), ("mail", texts), ("tag", tags)]).unwrap()
}

fn places(disk: &SimDisk, secret: &str) -> Vec<String> {
    let has = |content: &[u8]| content.windows(secret.len()).any(|bytes| bytes == secret.as_bytes());
    disk.files().into_iter().filter(|(_, content)| has(content)).map(|(name, _)| name).collect()
}

fn purge(store: &Store) {
    let plan = PlanOptions { dead_share_min: 0.0, ..PlanOptions::default() };
    store.checkpoint(&CheckpointOptions { plan, ..CheckpointOptions::default() }).unwrap();
    store.reclaim(&Default::default()).unwrap();
}

fn open(disk: &SimDisk, inline_bytes: u64) -> Store {
    let options = Options { inline_bytes, ..Options::default() };
    drumlin::store::open_on(Arc::new(disk.clone()), env(&Arc::default(), 1, 2), "sim", options).unwrap()
}

#[test]
fn no_byte_of_a_deleted_row_is_left() {
    for (n, kind, keyed, inline, beside) in [
        (10, 0, false, 65_536, false),
        (10, 1, true, 65_536, true),
        (1000, 1, false, 0, true),
        (1000, 1, true, 0, false),
        (130_000, 0, false, 0, false),
        (130_000, 1, true, 0, false),
        (130_000, 2, false, 0, true),
    ] {
        let what = format!("{n} rows, texts {kind}, keyed {keyed}, inline {inline}, beside {beside}");
        let disk = SimDisk::in_memory();
        let store = open(&disk, inline);
        let key = if keyed { vec!["id".into()] } else { Vec::new() };
        let frame = rows(n, kind);
        let mut paths = vec![("p".to_owned(), frame.clone().into())];
        if beside {
            // Other tables share its blocks.
            paths.extend((0..3).map(|at| (format!("other/{at}"), rows(4, 1).into())));
        }
        store.table("p").create(frame.schema(), TableOptions { key, ..TableOptions::default() }).unwrap();
        store.write_many(paths, &WriteOptions::default()).unwrap();
        store.checkpoint(&Default::default()).unwrap();
        if keyed {
            let keys: ArrayRef = Arc::new(Int64Array::from(vec![5]));
            store
                .table("p")
                .delete_keys(RecordBatch::try_from_iter([("id", keys)]).unwrap(), &WriteOptions::default())
                .unwrap();
        } else {
            store.table("p").delete("id = 5", &Default::default()).unwrap();
        }
        // A retained version still has it.
        purge(&store);
        let old = ReadOptions { as_of: drumlin::store::AsOf::Version(drumlin::base::Version(1)), ..Default::default() };
        let before: usize = store.table("p").collect(&old).unwrap().iter().map(RecordBatch::num_rows).sum();
        assert_eq!(before as i64, n, "{what}");
        store.set_retention("p", Some(Retention::KeepLast(1))).unwrap();
        purge(&store);
        assert_eq!(places(&disk, SECRET), Vec::<String>::new(), "{what}");
        // There is no fragment of it in the dictionary of long texts either.
        assert_eq!(places(&disk, "jane.roe"), Vec::<String>::new(), "{what}");
        let after: usize =
            store.table("p").collect(&Default::default()).unwrap().iter().map(RecordBatch::num_rows).sum();
        assert_eq!(after as i64, n - 1, "{what}");
        assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
        // There is nothing left to do: a purge does not rewrite again and again.
        let stat = store.stat().unwrap();
        purge(&store);
        assert_eq!(store.stat().unwrap().blocks, stat.blocks);
        let plans = store.vacuum_plan(&PlanOptions { dead_share_min: 0.0, ..PlanOptions::default() }).unwrap().tables;
        assert!(plans.iter().all(|(_, plan)| plan.windows.is_empty()), "{what}: {:?}", plans);
    }
}

#[test]
fn rows_that_only_a_snapshot_left_behind_go_too() {
    let disk = SimDisk::in_memory();
    let store = open(&disk, 0);
    store.write("p", rows(1000, 1), &WriteOptions::default()).unwrap();
    let deleted = store.table("p").delete("id = 5", &Default::default()).unwrap();
    store.snapshot("held", "p").unwrap();
    // The table continues from before the version that the snapshot holds, without the row either.
    store
        .delete_versions(&[("p".to_owned(), vec![deleted.version.unwrap().version])], drumlin::store::Missing::Refuse)
        .unwrap();
    store.table("p").delete("id <= 5", &Default::default()).unwrap();
    store.set_retention("p", Some(Retention::KeepLast(1))).unwrap();
    purge(&store);
    assert_eq!(places(&disk, SECRET), Vec::<String>::new());
    let held = ReadOptions { as_of: drumlin::store::AsOf::Snapshot("held".into()), ..Default::default() };
    let count = |options: &ReadOptions| -> usize {
        store.table("p").collect(options).unwrap().iter().map(RecordBatch::num_rows).sum()
    };
    assert_eq!((count(&held), count(&Default::default())), (999, 994));
    assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
}

#[test]
fn by_default_few_dead_rows_stay_and_the_plan_says_so() {
    let store = open(&SimDisk::in_memory(), 0);
    store.write("p", rows(122_880, 0), &WriteOptions::default()).unwrap();
    store.table("p").delete("id = 5", &Default::default()).unwrap();
    store.set_retention("p", Some(Retention::KeepLast(1))).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    let (_, plan) = store.vacuum_plan(&PlanOptions::default()).unwrap().tables.remove(0);
    assert!(plan.windows.is_empty() && plan.dead_before == 1, "{plan}");
    assert!(plan.to_string().contains("too few dead rows"), "{plan}");
}
