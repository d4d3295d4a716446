//! Columns that change: what is kept, what it costs, what is refused. Random changes are part of the model (evolve_model.rs).

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, Int64Array, NullArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, TimeUnit};
use drumlin::base::planted::{self, Bug};
use drumlin::base::{ManualClock, Timestamp, Version};
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, Options, ReadOptions, TableOptions, WriteOptions};
use drumlin::{
    Alter, ErrorKind, Event, Existing, Expression, Fill, NewColumn, SchemaMode, Store, TableAction, Tables, VersionKind,
};

use crate::columns::evolve_model::{self, EvolveOp};
use crate::columns::evolve_run;
use crate::support::{Checked, open, opener, same};

fn store() -> (SimDisk, Store) {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    (disk, store)
}

fn ints(columns: &[(&str, &[i64])]) -> RecordBatch {
    let column = |values: &[i64]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
    RecordBatch::try_from_iter_with_nullable(columns.iter().map(|(name, values)| (*name, column(values), true)))
        .unwrap()
}

fn evolve() -> WriteOptions {
    WriteOptions { schema: SchemaMode::Evolve, ..WriteOptions::default() }
}

/// A column of integers, as it is read.
fn column(store: &Store, path: &str, as_of: AsOf, name: &str) -> Result<Vec<Option<i64>>, String> {
    let batches =
        store.table(path).collect(&ReadOptions { as_of, ..ReadOptions::default() }).map_err(|e| e.to_string())?;
    let values = batches.iter().flat_map(|batch| {
        let column = batch.column_by_name(name).expect("it is there");
        column.as_primitive::<Int64Type>().iter().collect::<Vec<_>>()
    });
    Ok(values.collect())
}

fn rename(store: &Store, path: &str, names: &[(&str, &str)]) {
    let names = names.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect();
    store.table(path).alter(&Alter::Rename(names), &Default::default()).unwrap();
}

fn add(store: &Store, path: &str, name: &str, default: Option<i64>) {
    let fill = default.map_or(Fill::Null, |value| Fill::Default(Arc::new(Int64Array::from(vec![value]))));
    let added = NewColumn { field: Field::new(name, DataType::Int64, true), fill };
    store.table(path).alter(&Alter::Add(vec![added]), &Default::default()).unwrap();
}

pub fn names_are_swapped() -> Checked {
    let (_disk, store) = store();
    store.write("t", ints(&[("a", &[1, 2]), ("b", &[10, 20])]), &Default::default()).unwrap();
    rename(&store, "t", &[("a", "b"), ("b", "a")]);
    store.append("t", ints(&[("a", &[30]), ("b", &[3])]), &Default::default()).unwrap();
    same(&column(&store, "t", AsOf::Newest, "a")?, &vec![Some(10), Some(20), Some(30)], "a")?;
    same(&column(&store, "t", AsOf::Newest, "b")?, &vec![Some(1), Some(2), Some(3)], "b")?;
    same(&column(&store, "t", AsOf::Version(Version(0)), "a")?, &vec![Some(1), Some(2)], "a before")?;
    store.checkpoint(&Default::default()).unwrap();
    same(&column(&store, "t", AsOf::Newest, "a")?, &vec![Some(10), Some(20), Some(30)], "a after a checkpoint")
}

/// Every version has its own names of the columns that it is ordered by.
pub fn columns_of_the_order_are_renamed() -> Checked {
    let (disk, store) = store();
    let sort = WriteOptions { sort: Some(vec!["a".into(), "b".into()]), ..WriteOptions::default() };
    store.write("s", ints(&[("a", &[3, 1]), ("b", &[1, 1]), ("c", &[30, 10])]), &sort).unwrap();
    rename(&store, "s", &[("a", "b"), ("b", "a")]);
    store.append("s", ints(&[("b", &[2, 3]), ("a", &[1, 0]), ("c", &[20, 29])]), &Default::default()).unwrap();
    let ordered = |store: &Store| -> Checked {
        same(&column(store, "s", AsOf::Newest, "c")?, &[10, 20, 29, 30].map(Some).to_vec(), "in order")?;
        same(&column(store, "s", AsOf::Version(Version(0)), "c")?, &[10, 30].map(Some).to_vec(), "as first written")?;
        same(&store.table("s").order().unwrap().sort, &vec!["b".to_owned(), "a".to_owned()], "the order")
    };
    ordered(&store)?;
    store.checkpoint(&Default::default()).unwrap();
    store.close().unwrap();
    let store = open(&disk).unwrap();
    ordered(&store)?;
    // Frames that replace all rows, or a range of them, come with the new names.
    store.table("s").replace(ints(&[("b", &[2, 3]), ("a", &[0, 0]), ("c", &[19, 28])]), &Default::default()).unwrap();
    same(&column(&store, "s", AsOf::Newest, "c")?, &[10, 19, 28, 30].map(Some).to_vec(), "after a replacement")?;
    store.write("s", ints(&[("b", &[2, 1]), ("a", &[0, 0])]), &Default::default()).map_err(|e| e.to_string())?;
    same(&column(&store, "s", AsOf::Newest, "b")?, &[1, 2].map(Some).to_vec(), "written again")?;
    let error = store.write("s", ints(&[("x", &[2, 1])]), &Default::default()).unwrap_err();
    assert!(error.message().contains("'b' does not exist"), "{error}");
    store.restore("s", &AsOf::Version(Version(0))).map_err(|e| e.to_string())?;
    store
        .append("s", ints(&[("a", &[2]), ("b", &[1]), ("c", &[20])]), &Default::default())
        .map_err(|e| e.to_string())?;
    same(&column(&store, "s", AsOf::Newest, "c")?, &[10, 20, 30].map(Some).to_vec(), "after it was restored")
}

#[test]
fn a_key_is_renamed() {
    let (_disk, store) = store();
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    let table = store.table("k");
    table.create(ints(&[("id", &[]), ("n", &[])]).schema(), key).unwrap();
    table.upsert(ints(&[("id", &[1, 2]), ("n", &[10, 20])]), &Default::default()).unwrap();
    rename(&store, "k", &[("id", "key")]);
    let renamed = table.versions().unwrap().pop().unwrap().version;
    table.upsert(ints(&[("key", &[2, 3]), ("n", &[21, 31])]), &Default::default()).unwrap();
    let look_up = |name: &str, keys: &[i64], as_of: AsOf| {
        let view = store.table("k").view(&as_of).unwrap();
        let found = view.get_many(&ints(&[(name, keys)]), None, &Default::default()).unwrap();
        found.rows["n"].as_primitive::<Int64Type>().iter().collect::<Vec<_>>()
    };
    let before = AsOf::Version(Version(renamed.0 - 1));
    for settled in [false, true] {
        assert_eq!(look_up("key", &[1, 2, 3], AsOf::Newest), [Some(10), Some(21), Some(31)]);
        assert_eq!(look_up("key", &[1, 2, 3], AsOf::Version(renamed)), [Some(10), Some(20), None]);
        assert_eq!(look_up("id", &[1, 2, 3], before.clone()), [Some(10), Some(20), None]);
        if !settled {
            store.checkpoint(&Default::default()).unwrap();
        }
    }
    // Over the renaming, rows have no key in common: those of before are gone, and those of after are there, in the columns of both.
    let changes: Vec<RecordBatch> =
        table.diff(&before, &AsOf::Newest, &Default::default()).unwrap().collect::<drumlin::Result<_>>().unwrap();
    assert_eq!(changes.iter().map(RecordBatch::num_rows).sum::<usize>(), 2 + 3);
    let (copy, error) =
        (ints(&[("id", &[1]), ("n", &[1])]), table.upsert(ints(&[("id", &[1]), ("n", &[1])]), &Default::default()));
    assert!(error.unwrap_err().message().contains("'key'"));
    store.copy("k", "copy", &AsOf::Version(Version(renamed.0 - 1)), Existing::Refuse).unwrap();
    store.table("copy").upsert(copy, &Default::default()).unwrap();
    let backup = Store::open_with("memory://", Options::default()).unwrap();
    store.copy_to(&backup, "**", &Default::default()).unwrap();
    assert_eq!(backup.table("k").order().unwrap().key, ["key"]);
    let found = backup.table("k").view(&before).unwrap().get_many(&ints(&[("id", &[2])]), None, &Default::default());
    assert_eq!(found.unwrap().rows["n"].as_primitive::<Int64Type>().value(0), 20);
    assert!(store.verify(&Default::default()).unwrap().faults.is_empty());
}

pub fn a_new_column_is_not_the_old_one() -> Checked {
    let (_disk, store) = store();
    store.write("t", ints(&[("k", &[1, 2]), ("a", &[10, 20])]), &Default::default()).unwrap();
    let drop = |name: &str| store.table("t").alter(&Alter::Drop(vec![name.into()]), &Default::default()).unwrap();
    drop("a");
    add(&store, "t", "a", None);
    same(&column(&store, "t", AsOf::Newest, "a")?, &vec![None, None], "a column of the old name")?;
    drop("a");
    // A frame brings it too.
    store.append("t", ints(&[("k", &[3]), ("a", &[7])]), &evolve()).unwrap();
    same(&column(&store, "t", AsOf::Newest, "a")?, &vec![None, None, Some(7)], "one that a frame brought")?;
    same(&column(&store, "t", AsOf::Version(Version(0)), "a")?, &vec![Some(10), Some(20)], "the old one")
}

pub fn versions_of_mixed_row_groups_are_restored() -> Checked {
    let (_disk, store) = store();
    store.write("t", ints(&[("a", &[1, 2, 3])]), &Default::default()).unwrap();
    store.append("t", ints(&[("a", &[4]), ("b", &[40])]), &evolve()).unwrap();
    store.table("t").delete("a < 3", &Default::default()).unwrap();
    let then = AsOf::Version(Version(1));
    store.restore("t", &then).unwrap();
    same(&column(&store, "t", AsOf::Newest, "a")?, &vec![Some(1), Some(2), Some(3), Some(4)], "restored")?;
    same(&column(&store, "t", AsOf::Newest, "b")?, &vec![None, None, None, Some(40)], "restored")?;
    // A branch with other columns comes back; its schemas have other places.
    store.copy("t", "branch", &AsOf::Newest, Existing::Refuse).unwrap();
    add(&store, "t", "c", None);
    add(&store, "branch", "d", Some(5));
    store.append("branch", ints(&[("a", &[9]), ("b", &[90]), ("d", &[900])]), &Default::default()).unwrap();
    store.table("branch").delete("a = 2", &Default::default()).unwrap();
    store.copy("branch", "t", &AsOf::Newest, Existing::Replace).unwrap();
    same(&column(&store, "t", AsOf::Newest, "a")?, &[1, 3, 4, 9].map(Some).to_vec(), "a of the branch")?;
    same(&column(&store, "t", AsOf::Newest, "d")?, &vec![Some(5), Some(5), Some(5), Some(900)], "d of the branch")?;
    let faults = store.verify(&Default::default()).map_err(|e| e.to_string())?.faults;
    same(&faults, &Vec::new(), "faults")
}

pub fn keys_renamed_before_a_restore_are_found() -> Checked {
    let (_disk, store) = store();
    let key = TableOptions { key: vec!["k".into()], ..TableOptions::default() };
    store.table("t").create(ints(&[("k", &[]), ("a", &[])]).schema(), key).unwrap();
    store.write("t", ints(&[("k", &[1, 2]), ("a", &[10, 20])]), &Default::default()).unwrap();
    rename(&store, "t", &[("k", "q")]);
    let then = AsOf::Version(store.table("t").versions().unwrap().last().unwrap().version);
    // Builds of before made another column of the frame's, with the name of the key.
    let write = || store.write("t", ints(&[("q", &[3]), ("b", &[30])]), &Default::default());
    planted::instead(Bug::NewIds, write).unwrap();
    store.table("t").delete("q = 3", &Default::default()).unwrap();
    store.restore("t", &then).unwrap();
    let found = store.table("t").get_many(&ints(&[("q", &[2, 3])]), &Default::default()).map_err(|e| e.to_string())?;
    same(&found.found.iter().map(|found| found == Some(true)).collect(), &vec![true, false], "found")
}

pub fn rows_in_memory_go_along() -> Checked {
    let (disk, store) = store();
    let key = TableOptions { key: vec!["k".into()], ..TableOptions::default() };
    store.table("t").create(ints(&[("k", &[]), ("a", &[])]).schema(), key).unwrap();
    store.table("t").upsert(ints(&[("k", &[1, 2]), ("a", &[10, 20])]), &Default::default()).unwrap();
    // Rows of a transaction cannot be made row groups before it is committed.
    let own = store.transact(|tx| {
        tx.table("t").upsert(ints(&[("k", &[9]), ("a", &[90])]), &Default::default())?;
        tx.table("t").alter(&Alter::Drop(vec!["a".into()]), &Default::default()).map(drop)
    });
    if own.is_ok() {
        return Err("columns were changed beside rows in memory".into());
    }
    rename(&store, "t", &[("a", "b")]);
    store.table("t").upsert(ints(&[("k", &[2, 3]), ("b", &[21, 30])]), &Default::default()).unwrap();
    store.table("t").upsert(ints(&[("k", &[4]), ("b", &[40]), ("c", &[400])]), &evolve()).unwrap();
    let check = |store: &Store| {
        same(&column(store, "t", AsOf::Newest, "b")?, &[10, 21, 30, 40].map(Some).to_vec(), "b")?;
        same(&column(store, "t", AsOf::Newest, "c")?, &vec![None, None, None, Some(400)], "c")?;
        let found = store.table("t").get_many(&ints(&[("k", &[4, 2])]), &Default::default());
        let rows = found.map_err(|e| e.to_string())?.rows;
        same(&rows["b"].as_primitive::<Int64Type>().iter().collect(), &vec![Some(40), Some(21)], "looked up")
    };
    check(&store)?;
    store.close().unwrap();
    check(&open(&disk).map_err(|e| e.to_string())?)
}

#[test]
fn rules_hold() {
    names_are_swapped().unwrap();
    columns_of_the_order_are_renamed().unwrap();
    a_new_column_is_not_the_old_one().unwrap();
    versions_of_mixed_row_groups_are_restored().unwrap();
    keys_renamed_before_a_restore_are_found().unwrap();
    rows_in_memory_go_along().unwrap();
}

#[test]
fn changes_of_columns_write_no_rows() {
    let (disk, store) = store();
    let options = drumlin::base::Task::default();
    drop(options);
    store.write("t", ints(&[("a", &[0]), ("b", &[0])]), &Default::default()).unwrap();
    // In one commit, so that it does not take long.
    store
        .transact(|tx| {
            (1..1000).try_for_each(|n| tx.append("t", ints(&[("a", &[n]), ("b", &[-n])]), &Default::default()))
        })
        .unwrap();
    assert_eq!(store.table("t").stat().unwrap().row_groups, 1000);
    let before = disk.counters();
    rename(&store, "t", &[("a", "x")]);
    add(&store, "t", "y", Some(7));
    let widen = Alter::Widen(vec![("y".into(), DataType::Int64)]);
    assert_eq!(store.table("t").alter(&widen, &Default::default()).unwrap().unwrap().version.0, 1001, "nothing to do");
    store.table("t").alter(&Alter::Drop(vec!["b".into()]), &Default::default()).unwrap();
    let after = disk.counters();
    assert!(after.changes - before.changes <= 3 * 3, "only the log: {before:?} {after:?}");
    let all: Vec<Option<i64>> = (0..1000).map(Some).collect();
    assert_eq!(column(&store, "t", AsOf::Newest, "x").unwrap(), all);
    assert_eq!(column(&store, "t", AsOf::Newest, "y").unwrap(), vec![Some(7); 1000]);
    let kinds: Vec<VersionKind> = store.table("t").versions().unwrap().iter().rev().map(|v| v.kind).take(3).collect();
    assert_eq!(kinds, [VersionKind::Alter; 3]);
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_changes() {
    let (_disk, store) = store();
    let rows = RecordBatch::try_from_iter_with_nullable([
        ("k", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef, true),
        ("n", Arc::new(Int64Array::from(vec![Some(1 << 60), Some((1 << 60) + 1)])), true),
        ("s", Arc::new(StringArray::from(vec!["a", "b"])), true),
        ("t", Arc::new(arrow::array::TimestampSecondArray::from(vec![Some(i64::MAX / 100), None])), true),
    ])
    .unwrap();
    let sort = WriteOptions { sort: Some(vec!["k".into()]), ..WriteOptions::default() };
    store.write("t", rows, &sort).unwrap();
    let text = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let rename = |from: &str, to: &str| Alter::Rename(vec![(from.into(), to.into())]);
    let widen = |name: &str, data_type: DataType| Alter::Widen(vec![(name.into(), data_type)]);
    let new = |name: &str, nullable: bool, default: Option<ArrayRef>| {
        let fill = default.map_or(Fill::Null, Fill::Default);
        Alter::Add(vec![NewColumn { field: Field::new(name, DataType::Int32, nullable), fill }])
    };
    let nanoseconds = DataType::Timestamp(TimeUnit::Nanosecond, None);
    for (alter, kind, words) in [
        (Alter::Drop(text(&["k"])), ErrorKind::InvalidArgument, "sorted by"),
        (widen("k", DataType::Float64), ErrorKind::InvalidArgument, "sorted by"),
        (Alter::Drop(text(&["x"])), ErrorKind::InvalidArgument, "does not exist"),
        (Alter::Drop(text(&["n", "s", "t", "k"])), ErrorKind::InvalidArgument, "sorted by"),
        (rename("n", "s"), ErrorKind::InvalidArgument, "two columns are called 's'"),
        (Alter::Rename(vec![("n".into(), "x".into()), ("n".into(), "y".into())]), ErrorKind::InvalidArgument, "twice"),
        (rename("n", "a\0"), ErrorKind::InvalidArgument, "NUL"),
        (widen("n", DataType::Int32), ErrorKind::SchemaMismatch, "does not hold all"),
        (widen("s", DataType::Int64), ErrorKind::SchemaMismatch, "does not hold all"),
        (widen("n", DataType::Float64), ErrorKind::SchemaMismatch, "1152921504606846977"),
        (widen("t", nanoseconds), ErrorKind::SchemaMismatch, "cannot be widened"),
        (new("s", true, None), ErrorKind::AlreadyExists, "'s'"),
        (new("x", false, None), ErrorKind::InvalidArgument, "takes no nulls"),
        (new("x", true, Some(Arc::new(Int32Array::from(vec![1, 2])))), ErrorKind::InvalidArgument, "2 values"),
        (new("x", true, Some(Arc::new(StringArray::from(vec!["1"])))), ErrorKind::SchemaMismatch, "'x'"),
    ] {
        let error = store.table("t").alter(&alter, &Default::default()).unwrap_err();
        assert!(error.kind() == kind && error.message().contains(words), "{alter:?}: {error}");
        assert!(error.message().contains("'t'"), "{alter:?}: {error}");
    }
    let error = store.append("t", ints(&[("k", &[1]), ("new", &[1])]), &Default::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch, "{error}");
    let reserved = Field::new("x", DataType::Int64, true).with_metadata([("drumlin.column".into(), "k".into())].into());
    let reserved = Arc::new(arrow::datatypes::Schema::new(vec![reserved]));
    let error = store.table("other").create(reserved, TableOptions::default()).unwrap_err();
    assert!(error.message().contains("reserved"), "{error}");
    assert_eq!(store.table("t").versions().unwrap().len(), 1);
    let missing = store.table("nowhere").alter(&rename("a", "b"), &Default::default()).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

#[test]
fn a_column_of_nulls_takes_any_type() {
    let nulls: ArrayRef = Arc::new(NullArray::new(2));
    let first = |name: &str| {
        let n = Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef;
        RecordBatch::try_from_iter_with_nullable([("n", n, true), (name, nulls.clone(), true)]).unwrap()
    };
    let list: ArrayRef =
        Arc::new(arrow::array::ListArray::from_iter_primitive::<Int64Type, _, _>(vec![Some(vec![Some(1)])]));
    for typed in [Arc::new(StringArray::from(vec!["x"])) as ArrayRef, list] {
        let (_disk, store) = store();
        store.write("t", first("v"), &Default::default()).unwrap();
        let n = Arc::new(Int64Array::from(vec![3])) as ArrayRef;
        let next = RecordBatch::try_from_iter_with_nullable([("n", n, true), ("v", typed.clone(), true)]).unwrap();
        store.append("t", next, &Default::default()).unwrap();
        let batches = store.table("t").collect(&Default::default()).unwrap();
        let nulls: usize = batches.iter().map(|batch| batch["v"].null_count()).sum();
        assert_eq!((batches.len(), nulls, batches[0]["v"].data_type()), (2, 2, typed.data_type()));
        // What came first stays as it was.
        let was = store.table("t").schema(&AsOf::Version(Version(0))).unwrap();
        assert_eq!(was.field(1).data_type(), &DataType::Null);
    }
}

#[test]
fn a_column_that_takes_no_nulls_has_its_default() {
    let (_disk, store) = store();
    store.write("t", ints(&[("a", &[1, 2])]), &Default::default()).unwrap();
    let field = Field::new("b", DataType::Int64, false);
    let default: ArrayRef = Arc::new(Int64Array::from(vec![5]));
    let added = Alter::Add(vec![NewColumn { field, fill: Fill::Default(default) }]);
    store.table("t").alter(&added, &Default::default()).unwrap();
    store.append("t", ints(&[("a", &[3])]), &evolve()).unwrap();
    assert_eq!(column(&store, "t", AsOf::Newest, "b").unwrap(), [Some(5), Some(5), Some(5)]);
    let error = store.append("t", ints(&[("a", &[3])]), &Default::default()).unwrap_err();
    assert!(error.message().contains("'b'"), "{error}");
    // Statistics know the default too: nothing is read.
    let scan = |filter: &str| {
        let filter = Some(drumlin::Filter::parse(filter).unwrap());
        let scan = drumlin::ScanOptions { filter, ..Default::default() };
        let plan = store.table("t").read(&ReadOptions::from(scan)).unwrap().plan().unwrap();
        (plan.pruned, plan.whole)
    };
    assert_eq!((scan("b = 4"), scan("b = 5"), scan("b is null")), ((2, 0), (0, 2), (2, 0)));
}

#[test]
fn events_name_where_a_table_was_at_the_time() {
    let (_disk, store) = store();
    store.write("a", ints(&[("n", &[1])]), &Default::default()).unwrap();
    let mut feed = store.changes(store.seq().unwrap()).unwrap();
    store
        .transact(|tx| {
            tx.append("a", ints(&[("n", &[2])]), &Default::default())?;
            tx.relocate("a", "b", Existing::Refuse)?;
            tx.append("b", ints(&[("n", &[3])]), &Default::default())?;
            tx.write("new", ints(&[("n", &[3])]), &Default::default())?;
            tx.relocate("new", "newer", Existing::Refuse)?;
            tx.append("newer", ints(&[("n", &[4])]), &Default::default())
        })
        .unwrap();
    let commit = feed.next(Some(std::time::Duration::ZERO)).unwrap().unwrap();
    let mut told = Vec::new();
    for event in commit.events().unwrap() {
        if let Event::Table(event) = event {
            told.push((event.path, event.action));
        }
    }
    let version = TableAction::Version;
    let expected = [
        ("a", version(VersionKind::Append)),
        ("a", TableAction::MoveAway),
        ("b", TableAction::Move),
        ("b", version(VersionKind::Append)),
        ("new", version(VersionKind::Write)),
        ("new", TableAction::MoveAway),
        ("newer", TableAction::Move),
        ("newer", version(VersionKind::Append)),
    ];
    assert_eq!(told, expected.map(|(path, action)| (path.to_owned(), action)));
}

#[test]
fn random_changes_agree_with_the_model() {
    for seed in 0..150 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let disk = SimDisk::in_memory();
        let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
        let opener = opener(seed);
        let mut store = opener(&disk, &clock, 2).unwrap();
        let mut model = BTreeMap::new();
        let mut done: Vec<EvolveOp> = Vec::new();
        for _ in 0..40 {
            match rng.u8(..8) {
                0 => drop(store.checkpoint(&Default::default()).unwrap()),
                1 if rng.bool() => {
                    store.close().unwrap();
                    store = opener(&disk, &clock, 2).unwrap();
                }
                _ => {
                    let op = evolve_model::draw(&mut rng, &model);
                    let mut after = model.clone();
                    let expected = evolve_model::apply(&mut after, &op);
                    let ran = evolve_run::run(&store, &op);
                    done.push(op);
                    assert_eq!(ran.is_ok(), expected, "seed {seed}: {ran:?} {:?} after {done:?}", model);
                    if expected {
                        model = after;
                    }
                }
            }
            let same = evolve_run::compare(&store, &model);
            assert!(same.is_ok(), "seed {seed}: {} after {done:?}", same.unwrap_err());
        }
        assert_eq!(store.verify(&Default::default()).unwrap().faults, [], "seed {seed}");
    }
}

fn computed(name: &str, data_type: DataType, text: &str) -> Alter {
    let fill = Fill::Computed(Expression::parse(text).unwrap());
    Alter::Add(vec![NewColumn { field: Field::new(name, data_type, true), fill }])
}

#[test]
fn columns_are_computed_from_those_that_were_there() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    let values = |path: &str, as_of: AsOf, name: &str| -> Vec<Option<i64>> {
        let batches = store.table(path).collect(&ReadOptions { as_of, ..ReadOptions::default() }).unwrap();
        batches.iter().flat_map(|batch| batch[name].as_primitive::<Int64Type>().iter().collect::<Vec<_>>()).collect()
    };
    let rows = |from: i64, n: i64| {
        let column = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
        let (a, b) = ((from..from + n).collect(), (from..from + n).map(|x| x * x).collect());
        RecordBatch::try_from_iter_with_nullable([("a", column(a), true), ("b", column(b), true)]).unwrap()
    };
    // Row groups, deleted rows, and in the table with a key rows in memory.
    store.write("t", rows(0, 50), &Default::default()).unwrap();
    store.append("t", rows(50, 50), &Default::default()).unwrap();
    store.table("t").delete("a % 3 = 1", &Default::default()).unwrap();
    let key = TableOptions { key: vec!["a".into()], ..TableOptions::default() };
    store.table("k").create(rows(0, 0).schema(), key).unwrap();
    store.table("k").upsert(rows(0, 20), &Default::default()).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    store.table("k").upsert(rows(15, 10), &Default::default()).unwrap();
    for path in ["t", "k"] {
        let (before, last) = (values(path, AsOf::Newest, "a"), store.seq().unwrap());
        let info = store.table(path).alter(&computed("c", DataType::Int64, "a + b"), &Default::default()).unwrap();
        let info = info.unwrap();
        assert_eq!((info.kind, info.rows), (VersionKind::Update, before.len() as u64), "{path}");
        let expected: Vec<Option<i64>> = before.iter().map(|a| a.map(|a| a + a * a)).collect();
        assert_eq!(values(path, AsOf::Newest, "c"), expected, "{path}");
        assert_eq!(values(path, AsOf::Newest, "a"), before, "{path}");
        // One commit beside that which made row groups of the rows in memory: the version before has nulls.
        let versions = store.table(path).versions().unwrap();
        let (altered, updated) = (&versions[versions.len() - 2], &versions[versions.len() - 1]);
        assert_eq!((altered.kind, altered.seq), (VersionKind::Alter, updated.seq), "{path}");
        assert!(updated.seq.0 <= last.0 + 4, "{path}");
        assert!(values(path, AsOf::Version(altered.version), "c").iter().all(Option::is_none), "{path}");
    }
    // What fails leaves nothing: not the column either.
    let before = store.table("t").versions().unwrap();
    let many = NewColumn { field: Field::new("e", DataType::Int64, true), fill: Fill::Null };
    let two = |text: &str, nullable: bool| {
        let fill = Fill::Computed(Expression::parse(text).unwrap());
        Alter::Add(vec![many.clone(), NewColumn { field: Field::new("d", DataType::Int8, nullable), fill }])
    };
    for (alter, kind, words) in [
        (two("a * 10", true), ErrorKind::InvalidArgument, "is not a valid int8"),
        (two("e + 1", true), ErrorKind::InvalidArgument, "no column e"),
        (two("missing + 1", true), ErrorKind::InvalidArgument, "no column missing"),
        (two("'text'", true), ErrorKind::InvalidArgument, "int8"),
        (two("a", false), ErrorKind::InvalidArgument, "takes no nulls"),
    ] {
        let e = store.table("t").alter(&alter, &Default::default()).unwrap_err();
        assert!(e.kind() == kind && e.to_string().contains(words), "{e}");
        assert_eq!(store.table("t").versions().unwrap(), before);
    }
    // In a transaction, of rows that it has written itself.
    store
        .transact(|tx| {
            tx.append("t", rows(1000, 2), &WriteOptions { schema: SchemaMode::Evolve, ..WriteOptions::default() })?;
            tx.table("t").alter(&computed("f", DataType::Int64, "a * 2"), &Default::default())
        })
        .unwrap();
    assert_eq!(values("t", AsOf::Newest, "f").last().unwrap(), &Some(2002));
    assert_eq!(values("t", AsOf::Newest, "c").last().unwrap(), &None);
    // An empty table gets the column alone.
    store.write("none", rows(0, 0), &Default::default()).unwrap();
    store.table("none").alter(&computed("c", DataType::Int64, "a"), &Default::default()).unwrap();
    assert_eq!(values("none", AsOf::Newest, "c"), []);
    assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
}

#[test]
fn columns_come_from_frames_and_functions() {
    let (disk, store) = store();
    let key = TableOptions { key: vec!["k".into()], ..TableOptions::default() };
    store.table("keyed").create(ints(&[("k", &[]), ("a", &[])]).schema(), key).unwrap();
    for path in ["plain", "keyed"] {
        let rows = ints(&[("k", &[5, 1, 3]), ("a", &[50, 10, 30])]);
        store
            .append(path, rows.clone(), &Default::default())
            .or_else(|_| store.write(path, rows, &Default::default()))
            .unwrap();
        let table = store.table(path);
        // Rows that match none have null, those of the frame that match none are left out.
        let frame = ints(&[("k", &[3, 5, 9]), ("b", &[300, 500, 900])]);
        let on = if path == "keyed" { Vec::new() } else { vec!["k".to_owned()] };
        table.add_columns_from(frame.clone(), &on, &Default::default()).unwrap();
        let order = if path == "keyed" { [1, 3, 5] } else { [5, 1, 3] };
        let b = |k: i64| (k != 1).then_some(k * 100);
        assert_eq!(column(&store, path, AsOf::Newest, "k").unwrap(), order.map(Some));
        assert_eq!(column(&store, path, AsOf::Newest, "b").unwrap(), order.map(b));
        // A function sees the columns that it asks for, each row once.
        let seen = std::sync::Mutex::new(0);
        let double = |batch: &RecordBatch| {
            assert_eq!(batch.num_columns(), 1);
            *seen.lock().unwrap() += batch.num_rows();
            let values = batch["a"].as_primitive::<Int64Type>().unary::<_, Int64Type>(|value| value * 2);
            Ok(RecordBatch::try_from_iter([("c", Arc::new(values) as ArrayRef)])?)
        };
        let new = vec![Field::new("c", DataType::Int64, true)];
        table.add_columns_by(new.clone(), Some(&["a".to_owned()]), &double, &Default::default()).unwrap();
        assert_eq!(column(&store, path, AsOf::Newest, "c").unwrap(), order.map(|k| Some(k * 20)));
        assert_eq!(seen.into_inner().unwrap(), 3);
        // What fails leaves the table as it was.
        let before = table.versions().unwrap().len();
        let fails = |done: drumlin::Result<Option<drumlin::VersionInfo>>, words: &str| {
            let error = done.unwrap_err();
            assert!(error.message().contains(words), "{error}");
        };
        let options = drumlin::UpdateOptions::default();
        fails(table.add_columns_from(frame, &on, &options), "'b' already exists");
        fails(table.add_columns_from(ints(&[("k", &[1])]), &["k".into()], &options), "no column to add");
        fails(
            table.add_columns_from(ints(&[("k", &[1, 1]), ("d", &[1, 2])]), &["k".into()], &options),
            "the same k: 1",
        );
        let other = vec![Field::new("d", DataType::Int64, true)];
        let few = |_: &RecordBatch| Ok(ints(&[("d", &[1])]));
        fails(table.add_columns_by(other.clone(), None, &few, &options), "1 rows for 3");
        let named = |batch: &RecordBatch| Ok(batch.project(&[0])?);
        fails(table.add_columns_by(other.clone(), None, &named, &options), "which the data lacks");
        let broken = |_: &RecordBatch| Err(drumlin::Error::invalid("no such luck"));
        fails(table.add_columns_by(other, None, &broken, &options), "no such luck");
        assert_eq!(table.versions().unwrap().len(), before);
    }
    // In a transaction, with what it has written.
    store
        .transact(|tx| {
            tx.append("plain", ints(&[("k", &[7]), ("a", &[70]), ("b", &[0]), ("c", &[0])]), &Default::default())?;
            tx.table("plain").add_columns_from(ints(&[("k", &[7]), ("d", &[1])]), &["k".into()], &Default::default())
        })
        .unwrap();
    assert_eq!(column(&store, "plain", AsOf::Newest, "d").unwrap(), [None, None, None, Some(1)]);
    store.checkpoint(&Default::default()).unwrap();
    store.close().unwrap();
    let store = open(&disk).unwrap();
    assert_eq!(column(&store, "keyed", AsOf::Newest, "c").unwrap(), [20, 60, 100].map(Some));
    assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
}
