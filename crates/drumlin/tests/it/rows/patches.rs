//! Row groups with patches: what updates of few columns write, what stays readable, what vacuums and purges do with them. Random
//! ones are part of the model (evolve_model.rs, wide_op.rs).

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use drumlin::base::{Task, Timestamp, Version};
use drumlin::catalog::Retention;
use drumlin::storage::{FileStorage, SimDisk};
use drumlin::store::{
    AsOf, CheckpointOptions, Options, ReadOptions, ReclaimOptions, SalvageTarget, TableOptions, VerifyOptions,
};
use drumlin::table::{PlanOptions, ScanOptions};
use drumlin::{Alter, Existing, Expression, Fill, Filter, NewColumn, Store, Tables};

use crate::support::{Checked, env, ints, open, same};

fn store() -> (SimDisk, Store) {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    (disk, store)
}

/// A column of `n` numbers that do not compress.
fn noise(n: i64, seed: u64) -> Vec<i64> {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..n).map(|_| rng.i64(0..1 << 40)).collect()
}

/// Rows with a number in `k`, and columns of noise.
fn wide(n: i64, columns: &[&str]) -> RecordBatch {
    let noise = columns.iter().enumerate().map(|(at, name)| (*name, noise(n, at as u64)));
    ints(&[("k", (0..n).collect())].into_iter().chain(noise).collect::<Vec<_>>())
}

fn update(store: &Store, path: &str, column: &str, text: &str, filter: Option<&str>) -> u64 {
    let set = [(column.to_owned(), Expression::parse(text).unwrap())];
    store.table(path).update(&set, filter, &Default::default()).unwrap().rows
}

fn column(store: &Store, path: &str, as_of: AsOf, name: &str) -> Result<Vec<Option<i64>>, String> {
    let batches = store.table(path).collect(&ReadOptions { as_of, ..ReadOptions::default() });
    let batches = batches.map_err(|e| e.to_string())?;
    Ok(batches.iter().flat_map(|batch| batch[name].as_primitive::<Int64Type>().iter().collect::<Vec<_>>()).collect())
}

fn some(values: &[i64]) -> Vec<Option<i64>> {
    values.iter().copied().map(Some).collect()
}

fn keep_newest(store: &Store, path: &str) {
    store.set_retention(path, Some(Retention::KeepLast(1))).unwrap();
}

/// A checkpoint after which nothing is left that no version shows.
fn purging(store: &Store) {
    let plan = PlanOptions { dead_share_min: 0.0, ..PlanOptions::default() };
    store.checkpoint(&CheckpointOptions { plan, ..CheckpointOptions::default() }).unwrap();
    store.reclaim(&Default::default()).unwrap();
}

fn no_faults(store: &Store) -> Checked {
    let deep = VerifyOptions { deep: true, ..VerifyOptions::default() };
    same(&store.verify(&deep).map_err(|e| e.to_string())?.faults, &Vec::new(), "faults")
}

pub fn what_lies_below_is_kept() -> Checked {
    let (disk, store) = store();
    let frame = wide(500, &["a", "b", "c"]);
    store.write("t", frame, &Default::default()).unwrap();
    update(&store, "t", "a", "k * 2", Some("k % 2 = 0"));
    keep_newest(&store, "t");
    store.checkpoint(&Default::default()).unwrap();
    store.reclaim(&Default::default()).map_err(|e| e.to_string())?;
    same(&column(&store, "t", AsOf::Newest, "b")?, &some(&noise(500, 1)), "a column below the patch")?;
    store.close().map_err(|e| e.to_string())?;
    let store = open(&disk).map_err(|e| e.to_string())?;
    let expected: Vec<i64> = (0..).zip(noise(500, 0)).map(|(k, old)| if k % 2 == 0 { k * 2 } else { old }).collect();
    same(&column(&store, "t", AsOf::Newest, "a")?, &some(&expected), "the patched column")?;
    same(&column(&store, "t", AsOf::Newest, "c")?, &some(&noise(500, 2)), "another column")?;
    no_faults(&store)
}

pub fn the_newest_values_are_read() -> Checked {
    let (_disk, store) = store();
    store.write("t", wide(300, &["a", "b", "c", "d"]), &Default::default()).unwrap();
    for round in 1..4 {
        update(&store, "t", "a", &format!("a + {round}"), Some("k >= 100"));
        update(&store, "t", "b", &format!("k * {round}"), None);
    }
    let a = |times: i64| -> Vec<i64> {
        (0..).zip(noise(300, 0)).map(|(k, old)| old + if k >= 100 { times } else { 0 }).collect()
    };
    same(&column(&store, "t", AsOf::Newest, "a")?, &some(&a(6)), "the newest")?;
    same(&column(&store, "t", AsOf::Version(Version(3)), "a")?, &some(&a(3)), "one in between")?;
    same(&column(&store, "t", AsOf::Version(Version(0)), "a")?, &some(&a(0)), "the oldest")?;
    same(&column(&store, "t", AsOf::Newest, "c")?, &some(&noise(300, 2)), "a column that stays")?;
    // Statistics are those of the newest values: what they rule out is not there.
    let filter = |text: &str| {
        let filter = Some(Filter::parse(text).unwrap());
        ReadOptions { filter, ..ReadOptions::default() }
    };
    let rows = |options: &ReadOptions| -> Result<usize, String> {
        let batches = store.table("t").collect(options).map_err(|e| e.to_string())?;
        Ok(batches.iter().map(RecordBatch::num_rows).sum())
    };
    same(&rows(&filter("b = 897"))?, &1, "rows that a filter finds")?;
    same(&rows(&filter("b > 897"))?, &0, "rows beyond the newest values")?;
    no_faults(&store)
}

/// Versions with other columns see row groups that are vacuumed.
pub fn older_versions_keep_their_columns() -> Checked {
    let (_disk, store) = store();
    store.write("t", wide(50, &["a", "b"]), &Default::default()).unwrap();
    store.append("t", wide(60, &["a", "b"]), &Default::default()).unwrap();
    store.table("t").alter(&Alter::Drop(vec!["a".into()]), &Default::default()).unwrap();
    let field = arrow::datatypes::Field::new("n", arrow::datatypes::DataType::Int64, true);
    let seven: ArrayRef = Arc::new(Int64Array::from(vec![7]));
    let added = NewColumn { field, fill: Fill::Default(seven) };
    store.table("t").alter(&Alter::Add(vec![added]), &Default::default()).unwrap();
    store.append("t", ints(&[("k", vec![1]), ("b", vec![2]), ("n", vec![3])]), &Default::default()).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    let both = [noise(50, 0), noise(60, 0)].concat();
    same(&column(&store, "t", AsOf::Version(Version(1)), "a")?, &some(&both), "a dropped column")?;
    let mut expected = vec![Some(7); 110];
    expected.push(Some(3));
    same(&column(&store, "t", AsOf::Newest, "n")?, &expected, "an added column")?;
    no_faults(&store)?;
    // Once no version has the old columns, the row groups become one.
    keep_newest(&store, "t");
    store.checkpoint(&Default::default()).unwrap();
    same(&column(&store, "t", AsOf::Newest, "n")?, &expected, "an added column, written")?;
    same(&store.table("t").stat().unwrap().row_groups, &1, "row groups")?;
    no_faults(&store)
}

const SECRET: &str = "jane.roe@secret.example";

/// Rows one of which has the secret, and columns that make a patch worthwhile.
fn mails(n: i64) -> RecordBatch {
    let text = |id: i64| if id == 5 { SECRET.to_owned() } else { format!("user{id}@example.org") };
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..n).map(text)));
    let numbers = wide(n, &["a", "b", "c"]);
    let names = numbers.schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    let columns = names.into_iter().zip(numbers.columns().to_vec()).chain([("mail".to_owned(), texts)]);
    RecordBatch::try_from_iter(columns).unwrap()
}

fn places(disk: &SimDisk, secret: &str) -> Vec<String> {
    let has = |content: &[u8]| content.windows(secret.len()).any(|bytes| bytes == secret.as_bytes());
    disk.files().into_iter().filter(|(_, content)| has(content)).map(|(name, _)| name).collect()
}

/// A purge of what only an old version shows, below a patch.
pub fn purges_reach_below() -> Checked {
    let (disk, store) = store();
    store.write("t", mails(1000), &Default::default()).unwrap();
    update(&store, "t", "mail", "'nobody@example.org'", Some("k = 5"));
    store.copy("t", "copy", &AsOf::Newest, Existing::Refuse).unwrap();
    update(&store, "copy", "a", "0", Some("k = 9"));
    let filter = Filter::parse(&format!("mail = '{SECRET}'")).unwrap();
    let receipt = store.purge("t", &filter).unwrap().execute(&Task::default()).map_err(|e| e.to_string())?;
    same(&(receipt.erased.rows, receipt.proof.matching, receipt.held), &(1, 0, Vec::new()), "the receipt")?;
    same(&places(&disk, SECRET), &Vec::new(), "what is left")?;
    same(&column(&store, "t", AsOf::Version(Version(0)), "k")?.len(), &999, "rows of the old version")?;
    same(&column(&store, "t", AsOf::Newest, "b")?, &some(&noise(1000, 1)), "the newest version")?;
    same(&column(&store, "copy", AsOf::Newest, "b")?, &some(&noise(1000, 1)), "the copy")?;
    no_faults(&store)
}

#[test]
fn rules_hold() {
    what_lies_below_is_kept().unwrap();
    the_newest_values_are_read().unwrap();
    older_versions_keep_their_columns().unwrap();
    purges_reach_below().unwrap();
}

#[test]
fn only_columns_that_change_are_written() {
    let (disk, store) = store();
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    store.write("t", wide(300_000, &names), &Default::default()).unwrap();
    let written = |work: &dyn Fn()| {
        let before = disk.counters().bytes_written;
        work();
        disk.counters().bytes_written - before
    };
    let whole = store.table("t").stat().unwrap().bytes;
    // 40 bits a value.
    let one = 300_000 * 5;
    let updated = written(&|| assert_eq!(update(&store, "t", "c", "c + 1", Some("k % 100 = 0")), 3000));
    assert!(updated < one * 12 / 10 && whole > one * 8, "{updated} bytes for a column of {one}, of {whole} in all");
    // What both versions share is counted once.
    let stat = store.table("t").stat().unwrap().bytes;
    assert!(stat < whole + one * 12 / 10, "{stat} bytes in all after {whole}");
    let holding = store.reclaim(&Default::default()).unwrap().holding;
    assert!(holding.history_bytes == 0, "{holding:?}");
    // Those of which nothing is read any more do not pile up.
    (0..12).for_each(|_| assert_eq!(update(&store, "t", "c", "c + 1", Some("k % 100 = 0")), 3000));
    let computed = NewColumn {
        field: arrow::datatypes::Field::new("sum", arrow::datatypes::DataType::Int64, true),
        fill: Fill::Computed(Expression::parse("a + b").unwrap()),
    };
    let added = written(&|| drop(store.table("t").alter(&Alter::Add(vec![computed.clone()]), &Default::default())));
    assert!(added < one * 12 / 10, "{added} bytes for a new column of {one}");
    let sums: Vec<i64> = noise(300_000, 0).into_iter().zip(noise(300_000, 1)).map(|(a, b)| a + b).collect();
    assert_eq!(column(&store, "t", AsOf::Newest, "sum").unwrap(), some(&sums));
    // A read of one column reads that alone.
    let read = |columns: &[&str]| {
        let options = Options { cache_bytes: 0, ..Options::default() };
        let store = drumlin::store::open_on(Arc::new(disk.clone()), env(&Arc::default(), 1, 2), "sim", options);
        let before = disk.counters().bytes_read;
        let columns = Some(columns.iter().map(|name| (*name).to_owned()).collect());
        let store = store.unwrap();
        let scan = ScanOptions { columns, ..ScanOptions::default() };
        store.table("t").collect(&ReadOptions::from(scan)).unwrap();
        disk.counters().bytes_read - before
    };
    store.close().unwrap();
    for columns in [["c"], ["sum"], ["d"]] {
        let bytes = read(&columns);
        assert!(bytes < one * 13 / 10 + 200_000, "{bytes} bytes read for {columns:?} of {one}");
    }
}

#[test]
fn patches_are_folded_when_much_below_is_dead() {
    let (disk, store) = store();
    store.write("t", wide(20_000, &["a", "b", "c", "d", "e"]), &Default::default()).unwrap();
    keep_newest(&store, "t");
    let live = 20_000 * 5 * 5;
    for round in 0..30 {
        let name = ["a", "b", "c", "d", "e"][round % 5];
        update(&store, "t", name, &format!("{name} + 1"), Some("k % 10 = 3"));
        store.checkpoint(&Default::default()).unwrap();
        store.reclaim(&Default::default()).unwrap();
        let bytes: usize =
            disk.files().iter().filter(|(name, _)| name.starts_with("blocks/")).map(|(_, bytes)| bytes.len()).sum();
        assert!(bytes < live * 9 / 4, "{bytes} bytes for {live} after {round} updates");
    }
    for (at, name) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        let of = |(k, old): (i64, i64)| Some(old + if k % 10 == 3 { 6 } else { 0 });
        let expected: Vec<Option<i64>> = (0..).zip(noise(20_000, at as u64)).map(of).collect();
        assert_eq!(column(&store, "t", AsOf::Newest, name).unwrap(), expected);
    }
    no_faults(&store).unwrap();
}

#[test]
fn no_byte_of_patched_or_dropped_values_is_left() {
    for dropped in [false, true] {
        let (disk, store) = store();
        store.write("t", mails(1000), &Default::default()).unwrap();
        match dropped {
            false => assert_eq!(update(&store, "t", "mail", "'nobody@example.org'", Some("k = 5")), 1),
            true => drop(store.table("t").alter(&Alter::Drop(vec!["mail".into()]), &Default::default()).unwrap()),
        }
        // A retained version still has it.
        purging(&store);
        assert!(!places(&disk, SECRET).is_empty());
        keep_newest(&store, "t");
        purging(&store);
        assert_eq!(places(&disk, "jane.roe"), Vec::<String>::new(), "dropped {dropped}");
        assert_eq!(column(&store, "t", AsOf::Newest, "a").unwrap(), some(&noise(1000, 0)));
        // There is nothing left to do.
        let plan = PlanOptions { dead_share_min: 0.0, ..PlanOptions::default() };
        let plans = store.vacuum_plan(&plan).unwrap().tables;
        assert!(plans.iter().all(|(_, plan)| plan.windows.is_empty()), "{plans:?}");
        no_faults(&store).unwrap();
    }
}

#[test]
fn tables_with_a_key_are_patched_and_looked_up() {
    let (_disk, store) = store();
    let key = TableOptions { key: vec!["k".into()], ..TableOptions::default() };
    let frame = wide(5000, &["a", "b", "c"]);
    store.table("t").create(frame.schema(), key).unwrap();
    store.append("t", frame, &Default::default()).unwrap();
    assert_eq!(update(&store, "t", "b", "-k", Some("k % 2 = 0")), 2500);
    let keys = ints(&[("k", vec![4, 7, 9999])]);
    let found = store.table("t").get_many(&keys, &Default::default()).unwrap().rows;
    assert_eq!(
        found["b"].as_primitive::<Int64Type>().iter().collect::<Vec<_>>(),
        [Some(-4), Some(noise(5000, 1)[7]), None]
    );
    assert_eq!(found["c"].as_primitive::<Int64Type>().value(0), noise(5000, 2)[4]);
    store
        .table("t")
        .upsert(ints(&[("k", vec![4]), ("a", vec![0]), ("b", vec![1]), ("c", vec![2])]), &Default::default())
        .unwrap();
    store.table("t").delete_keys(ints(&[("k", vec![7])]), &Default::default()).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    let found = store.table("t").get_many(&keys, &Default::default()).unwrap().rows;
    assert_eq!(found["b"].as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), [Some(1), None, None]);
    no_faults(&store).unwrap();
}

/// Changes a byte of the first segment of a block.
fn spoil(disk: &SimDisk, name: &str) {
    let (_, mut content) = disk.files().into_iter().find(|(file, _)| file == name).unwrap();
    content[70] ^= 0xff;
    disk.damage(name, content);
}

#[test]
fn restores_copies_and_salvage_take_patches_along() {
    let disk = SimDisk::new();
    let store = open(&disk).unwrap();
    store.write("t", wide(400, &["a", "b", "c"]), &Default::default()).unwrap();
    update(&store, "t", "a", "1", None);
    store.table("t").alter(&Alter::Rename(vec![("b".into(), "z".into())]), &Default::default()).unwrap();
    update(&store, "t", "z", "2", Some("k < 200"));
    let z: Vec<i64> = (0..).zip(noise(400, 1)).map(|(k, old)| if k < 200 { 2 } else { old }).collect();
    let check = |store: &Store, path: &str, what: &str| {
        assert_eq!(column(store, path, AsOf::Newest, "a").unwrap(), some(&[1; 400]), "{what}");
        assert_eq!(column(store, path, AsOf::Newest, "z").unwrap(), some(&z), "{what}");
        assert_eq!(column(store, path, AsOf::Newest, "c").unwrap(), some(&noise(400, 2)), "{what}");
        no_faults(store).unwrap();
    };
    store.copy("t", "branch", &AsOf::Newest, Existing::Refuse).unwrap();
    update(&store, "branch", "c", "3", None);
    store.restore("t", &AsOf::Version(Version(1))).unwrap();
    assert_eq!(column(&store, "t", AsOf::Newest, "b").unwrap(), some(&noise(400, 1)));
    store.restore("t", &AsOf::Version(Version(3))).unwrap();
    check(&store, "t", "restored");
    store.restore("branch", &AsOf::Version(Version(3))).unwrap();
    // What each version sees is its own.
    let diff = store.table("t").diff(&AsOf::Version(Version(0)), &AsOf::Version(Version(1)), &Default::default());
    assert_eq!(diff.unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 800);
    let diff = store.table("t").diff(&AsOf::Version(Version(3)), &AsOf::Newest, &Default::default()).unwrap();
    assert_eq!(diff.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 0);
    store.checkpoint(&Default::default()).unwrap();
    check(&store, "t", "after a checkpoint");
    check(&store, "branch", "a branch");
    // Another store.
    let other_disk = SimDisk::in_memory();
    let other = drumlin::store::open_on(
        Arc::new(other_disk.clone()),
        env(&Arc::new(drumlin::base::ManualClock::new(Timestamp(1_000_000))), 99, 2),
        "other",
        Options { inline_bytes: 0, ..Options::default() },
    )
    .unwrap();
    store.copy_to(&other, "t", &Default::default()).unwrap();
    check(&other, "t", "copied to another store");
    assert_eq!(column(&other, "t", AsOf::Version(Version(0)), "a").unwrap(), some(&noise(400, 0)));
    // Salvage: all of it, and with a damaged patch the rows that are left.
    store.close().unwrap();
    for damaged in [false, true] {
        if damaged {
            let mut blocks = disk.files().into_iter().filter(|(name, _)| name.starts_with("blocks/"));
            spoil(&disk, &blocks.next_back().unwrap().0);
        }
        let target = SimDisk::in_memory();
        let source = Arc::new(FileStorage::new(Arc::new(disk.clone())));
        let to = SalvageTarget::Folder(Arc::new(target.clone()));
        let report = to.salvage(source, env(&Arc::default(), 77, 2), Options::default(), &Task::default()).unwrap();
        assert_eq!(report.losses.is_empty(), !damaged, "{report:?}");
        let saved = open(&target).unwrap();
        no_faults(&saved).unwrap();
        if !damaged {
            check(&saved, "t", "salvaged");
        }
    }
}

#[test]
fn damage_below_a_patch_is_found() {
    let (disk, store) = store();
    store.write("t", wide(400, &["a", "b", "c"]), &Default::default()).unwrap();
    let (base, _) = disk.files().into_iter().find(|(name, _)| name.starts_with("blocks/")).unwrap();
    update(&store, "t", "a", "1", None);
    keep_newest(&store, "t");
    store.checkpoint(&Default::default()).unwrap();
    assert_eq!(store.verify(&Default::default()).unwrap().groups, 1);
    spoil(&disk, &base);
    let faults = store.verify(&Default::default()).unwrap().faults;
    assert_eq!((faults.len(), faults[0].table.as_str()), (1, "t"), "{faults:?}");
    // A vacuum leaves what it cannot read.
    let reclaimed = store.reclaim(&ReclaimOptions::default()).unwrap();
    assert_eq!(reclaimed.failures, []);
}
