//! Unique indexes: what is refused through each door, what is not, and who notices whom. Functions are shown to the bugs that break them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arrow::array::{
    ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use drumlin::base::{ManualClock, Timestamp, Version};
use drumlin::catalog::Existing;
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, CopyToOptions, IndexOptions, TableOptions};
use drumlin::table::Alter;
use drumlin::{ErrorKind, Expression, Filter, Merge, Store, Tables, WhenMatched};

use super::basics::find;
use crate::support::{Checked, ints, open, open_shared, same};

fn told(e: drumlin::Error) -> String {
    e.to_string()
}

fn unique(store: &impl Tables, columns: &[&str], condition: Option<&str>) -> drumlin::Result<()> {
    let columns: Vec<Expression> = columns.iter().map(|text| Expression::parse(text).unwrap()).collect();
    let condition = condition.map(|text| Filter::parse(text).unwrap());
    store.table("t").create_index("u", &columns, &IndexOptions { unique: true, condition, ..Default::default() })
}

fn refused<T: std::fmt::Debug>(done: drumlin::Result<T>) -> Checked {
    match done {
        Err(e) if e.kind() == ErrorKind::AlreadyExists && e.to_string().contains("index 'u'") => Ok(()),
        other => Err(format!("it was not refused: {other:?}")),
    }
}

fn keyed(store: &Store) -> Checked {
    let table = TableOptions { key: vec!["id".into()], ..Default::default() };
    store.table("t").create(rows(&[]).schema(), table).map(drop).map_err(told)
}

/// Rows with ids and values, of kind 1.
fn rows(values: &[(i64, i64)]) -> RecordBatch {
    let ids = values.iter().map(|(id, _)| *id).collect();
    ints(&[("id", ids), ("u", values.iter().map(|(_, u)| *u).collect()), ("kind", vec![1; values.len()])])
}

fn one_column(column: ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter([("v", column)]).unwrap()
}

/// What counts is the result of a call, not what it replaces.
pub fn results_are_judged() -> Checked {
    let store = Store::memory().unwrap();
    store.write("t", rows(&[(1, 1), (2, 2), (3, 3)]), &Default::default()).map_err(told)?;
    unique(&store, &["u"], None).map_err(told)?;
    let set = |text: &str| [("u".to_owned(), Expression::parse(text).unwrap())];
    // Each gets the value of another.
    store.table("t").update(&set("4 - u"), None, &Default::default()).map_err(told)?;
    store.table("t").update(&set("u + 1"), None, &Default::default()).map_err(told)?;
    let merge = Merge { on: vec!["id".into()], matched: vec![(None, WhenMatched::UpdateAll)], ..Merge::default() };
    store.table("t").merge(rows(&[(1, 3), (2, 4)]), &merge, &Default::default()).map_err(told)?;
    refused(store.table("t").merge(rows(&[(1, 2)]), &merge, &Default::default()))?;
    refused(store.table("t").update(&set("7"), Some("id > 1"), &Default::default()))?;
    let transaction = store.transaction().map_err(told)?;
    transaction.table("t").delete("id = 1", &Default::default()).map_err(told)?;
    transaction.table("t").append(rows(&[(9, 3)]), &Default::default()).map_err(told)?;
    transaction.commit().map(drop).map_err(told)?;
    store.table("t").write(rows(&[(1, 3), (2, 4)]), &Default::default()).map(drop).map_err(told)
}

/// A partial index compares the rows that it has, and those that enter it.
pub fn rows_of_the_index_are_compared() -> Checked {
    let store = Store::memory().unwrap();
    let kinds = |kinds: &[i64]| {
        let count = kinds.len() as i64;
        ints(&[("id", (0..count).collect()), ("u", vec![5; kinds.len()]), ("kind", kinds.to_vec())])
    };
    store.write("t", kinds(&[1, 2, 2]), &Default::default()).map_err(told)?;
    unique(&store, &["u"], Some("kind = 1")).map_err(told)?;
    store.table("t").append(kinds(&[2, 3]), &Default::default()).map_err(told)?;
    refused(store.table("t").append(kinds(&[1]), &Default::default()))?;
    let set = [("kind".to_owned(), Expression::parse("1").unwrap())];
    refused(store.table("t").update(&set, Some("id = 2"), &Default::default()))
}

/// Rows that were there before are compared when the index is made; if two are alike, it is not.
pub fn old_rows_are_compared() -> Checked {
    let store = Store::memory().unwrap();
    store.write("t", rows(&[(1, 1), (2, 2), (3, 1)]), &Default::default()).map_err(told)?;
    refused(unique(&store, &["u"], None))?;
    same(&store.table("t").indexes().map_err(told)?.len(), &0, "indexes")?;
    let transaction = store.transaction().map_err(told)?;
    unique(&transaction, &["u"], None).map_err(told)?;
    refused(transaction.commit())?;
    store.table("t").delete("id = 3", &Default::default()).map_err(told)?;
    unique(&store, &["u"], None).map_err(told)?;
    let info = store.table("t").indexes().map_err(told)?.remove(0);
    same(&(info.unique, info.proven, info.covered), &(true, true, 1), "the index")
}

/// What others have written since a commit was compared is noticed in its turn.
pub fn others_are_noticed() -> Checked {
    let disk = SimDisk::in_memory();
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let open = || open_shared(&disk, &clock, 2).map_err(told);
    let (one, two) = (open()?, open()?);
    keyed(&one)?;
    unique(&one, &["u"], None).map_err(told)?;
    two.refresh().map_err(told)?;
    let not_both = |done: drumlin::Result<()>| match done {
        Err(e) if matches!(e.kind(), ErrorKind::Conflict | ErrorKind::AlreadyExists) => Ok(()),
        other => Err(format!("two processes wrote one value: {other:?}")),
    };
    // Few rows, in memory; then row groups.
    for (value, bulk) in [(5, false), (6, true)] {
        let transaction = two.transaction().map_err(told)?;
        transaction.table("t").upsert(rows(&[(value * 10, value)]), &Default::default()).map_err(told)?;
        let other = rows(&[(value * 10 + 1, value)]);
        match bulk {
            true => one.table("t").append(other, &Default::default()).map(drop),
            false => one.table("t").upsert(other, &Default::default()).map(drop),
        }
        .map_err(told)?;
        not_both(transaction.commit().map(drop))?;
    }
    // A call of its own is prepared again, and finds out.
    refused(two.table("t").upsert(rows(&[(99, 5)]), &Default::default()))?;
    // Other values do not meet.
    let transaction = two.transaction().map_err(told)?;
    transaction.table("t").upsert(rows(&[(70, 70)]), &Default::default()).map_err(told)?;
    one.table("t").upsert(rows(&[(71, 71)]), &Default::default()).map_err(told)?;
    transaction.commit().map(drop).map_err(told)
}

#[test]
fn rules_are_kept() {
    results_are_judged().unwrap();
    rows_of_the_index_are_compared().unwrap();
    old_rows_are_compared().unwrap();
    others_are_noticed().unwrap();
}

#[test]
fn a_refused_call_changes_nothing_and_says_why() {
    let store = Store::memory().unwrap();
    keyed(&store).unwrap();
    unique(&store, &["u", "kind"], None).unwrap();
    store.table("t").upsert(rows(&[(1, 1), (2, 2)]), &Default::default()).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    store.table("t").upsert(rows(&[(3, 3)]), &Default::default()).unwrap();
    let (seq, versions) = (store.seq().unwrap(), store.table("t").versions().unwrap());
    let calls: [&dyn Fn() -> drumlin::Result<()>; 6] = [
        &|| store.table("t").upsert(rows(&[(9, 3)]), &Default::default()).map(drop),
        &|| store.table("t").insert(rows(&[(8, 8), (9, 2)]), &Default::default()).map(drop),
        &|| store.table("t").upsert(rows(&[(9, 9), (10, 9)]), &Default::default()).map(drop),
        &|| store.table("t").append(rows(&[(9, 1)]), &Default::default()).map(drop),
        &|| {
            let frames = vec![("x".into(), rows(&[(1, 1)]).into()), ("t".into(), rows(&[(1, 1), (2, 1)]).into())];
            store.write_many(frames, &Default::default()).map(drop)
        },
        &|| store.table("t").increment(&ints(&[("id", vec![2]), ("u", vec![1])]), &Default::default()).map(drop),
    ];
    for (at, call) in calls.iter().enumerate() {
        let e = call().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::AlreadyExists, "{at}: {e}");
        let said = e.to_string();
        assert!(said.contains("'t'") && said.contains("index 'u'") && said.contains("u, kind = "), "{at}: {e}");
        assert_eq!((store.seq().unwrap(), store.table("t").versions().unwrap()), (seq, versions.clone()), "{at}");
    }
    assert!(store.table("x").versions().is_err());
    // A row may be written again as it is.
    store.table("t").upsert(rows(&[(1, 1), (3, 3)]), &Default::default()).unwrap();
    store.table("t").drop_index("u").unwrap();
    store.table("t").upsert(rows(&[(9, 3)]), &Default::default()).unwrap();
}

#[test]
fn values_compare_as_filters_do() {
    let texts = |texts: &[Option<&str>]| one_column(Arc::new(StringArray::from(texts.to_vec())) as ArrayRef);
    let floats = |floats: &[f64]| one_column(Arc::new(Float64Array::from(floats.to_vec())) as ArrayRef);
    let times = |times: &[i64]| one_column(Arc::new(TimestampMicrosecondArray::from(times.to_vec())) as ArrayRef);
    let (long, other) = ("x".repeat(300), format!("{}y", "x".repeat(299)));
    let cases: Vec<(RecordBatch, RecordBatch, &str, bool)> = vec![
        (texts(&[Some("a"), None]), texts(&[None, Some("b")]), "v", true),
        (texts(&[Some("a")]), texts(&[Some("a")]), "v", false),
        (texts(&[Some(&long)]), texts(&[Some(&other)]), "v", true),
        (texts(&[Some(&long)]), texts(&[Some(&long)]), "v", false),
        (texts(&[Some("Ab")]), texts(&[Some("aB")]), "lower(v)", false),
        (texts(&[Some("Ab")]), texts(&[Some("aB")]), "v", true),
        (floats(&[0.0]), floats(&[-0.0]), "v", false),
        (floats(&[f64::NAN]), floats(&[-f64::NAN]), "v", false),
        (floats(&[1.5]), floats(&[2.5]), "v", true),
        (times(&[1_000_000, 5]), times(&[2_000_000, 7]), "v", true),
        (times(&[1_000_000, 5]), times(&[5]), "v", false),
    ];
    for (at, (first, second, value, fits)) in cases.into_iter().enumerate() {
        // The index answers, and a scan.
        for filled in [true, false] {
            let store = Store::memory().unwrap();
            store.write("t", first.clone(), &Default::default()).unwrap();
            let options = IndexOptions { unique: true, deferred: !filled, ..Default::default() };
            store.table("t").create_index("u", &[Expression::parse(value).unwrap()], &options).unwrap();
            let done = store.table("t").append(second.clone(), &Default::default());
            assert_eq!(done.is_ok(), fits, "{at}, {filled}: {done:?}");
        }
    }
    // A narrower type than the column has now.
    let store = Store::memory().unwrap();
    store.write("t", one_column(Arc::new(Int32Array::from(vec![1, 2]))), &Default::default()).unwrap();
    unique(&store, &["v"], None).unwrap();
    let wider = Alter::Widen(vec![("v".into(), arrow::datatypes::DataType::Int64)]);
    store.table("t").alter(&wider, &Default::default()).unwrap();
    let wide = |values: &[i64]| one_column(Arc::new(Int64Array::from(values.to_vec())));
    refused(store.table("t").append(wide(&[2]), &Default::default())).unwrap();
    store.table("t").append(wide(&[1 << 40]), &Default::default()).unwrap();
    // A row whose value cannot be computed is refused.
    let store = Store::memory().unwrap();
    store.write("t", wide(&[1]), &Default::default()).unwrap();
    unique(&store, &["v * 4"], None).unwrap();
    let e = store.table("t").append(wide(&[i64::MAX]), &Default::default()).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("unique index 'u'"), "{e}");
}

#[test]
fn versions_with_equal_values_do_not_come_back() {
    let store = Store::memory().unwrap();
    store.write("t", rows(&[(1, 1), (2, 1)]), &Default::default()).unwrap();
    store.table("t").delete("id = 2", &Default::default()).unwrap();
    unique(&store, &["u"], None).unwrap();
    refused(store.restore("t", &AsOf::Version(Version(0)))).unwrap();
    let newest = store.table("t").versions().unwrap().last().unwrap().version;
    refused(store.delete_versions(&[("t".into(), vec![newest])], Default::default())).unwrap();
    refused(store.copy("t", "c", &AsOf::Version(Version(0)), Existing::Refuse)).unwrap();
    assert_eq!(find(&store, "t", AsOf::Version(Version(0)), "u = 1").unwrap(), vec![1, 2]);
    // Copies have the index, and so have those in other stores.
    store.copy("t", "c", &AsOf::Newest, Existing::Refuse).unwrap();
    refused(store.table("c").append(rows(&[(7, 1)]), &Default::default())).unwrap();
    let other = Store::memory().unwrap();
    store.copy_to(&other, "t", &CopyToOptions::default()).unwrap();
    refused(other.table("t").append(rows(&[(7, 1)]), &Default::default())).unwrap();
    other.table("t").append(rows(&[(7, 2)]), &Default::default()).unwrap();
}

#[test]
fn threads_write_each_value_once() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    keyed(&store).unwrap();
    unique(&store, &["u"], None).unwrap();
    let won = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (store, won) = (&store, &won);
            scope.spawn(move || {
                for value in 0..60 {
                    let row = rows(&[(thread * 1000 + value, value)]);
                    let done = match (thread + value) % 8 {
                        0 => store.table("t").append(row, &Default::default()).map(drop),
                        1 => store
                            .checkpoint(&Default::default())
                            .and_then(|_| store.table("t").insert(row, &Default::default()).map(drop)),
                        _ => store.table("t").upsert(row, &Default::default()).map(drop),
                    };
                    match done {
                        Ok(()) => drop(won.fetch_add(1, Ordering::Relaxed)),
                        Err(e) => assert_eq!(e.kind(), ErrorKind::AlreadyExists, "{e}"),
                    }
                }
            });
        }
    });
    assert_eq!(won.into_inner(), 60);
    assert_eq!(find(&store, "t", AsOf::Newest, "u >= 0").unwrap().len(), 60);
}
