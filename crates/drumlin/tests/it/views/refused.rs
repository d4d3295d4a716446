//! What is refused, and what is said; purges, versions, views of views.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use drumlin::store::{AsOf, DatasetOptions, LookupOptions, ReadOptions, ViewOptions};
use drumlin::table::ScanOptions;
use drumlin::{
    Aggregate, Alter, ErrorKind, Existing, Expression, Filter, Function, GroupBy, Result, StalePolicy, Store, Tables,
};

use super::made::{computed, kept};

fn rows(n: Vec<i64>) -> RecordBatch {
    let s: ArrayRef = Arc::new(StringArray::from_iter_values(n.iter().map(|n| format!("s{}", n % 3))));
    RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(n)) as ArrayRef), ("s", s)]).unwrap()
}

fn made(name: &str, function: Function, of: Option<&str>) -> Aggregate {
    Aggregate { name: name.into(), function, of: of.map(Into::into) }
}

/// Sums by name and text.
fn sums() -> ViewOptions {
    let aggregates = vec![made("sum", Function::Sum, Some("n")), made("most", Function::Max, Some("n"))];
    let groups = GroupBy { keys: vec!["s".into()], aggregates, ..GroupBy::default() };
    ViewOptions { path_columns: vec!["name".into()], groups, ..ViewOptions::default() }
}

fn with_sums() -> Store {
    let store = Store::memory().unwrap();
    store.write("t/a", rows((0..10).collect()), &Default::default()).unwrap();
    store.write("t/b", rows((0..5).collect()), &Default::default()).unwrap();
    let report = store.table("sums").create_view("t/*", &sums()).unwrap();
    assert_eq!((report.sources, report.rows, report.deleted), (2, 6, 0));
    store
}

fn total(tables: &impl Tables, path: &str, as_of: &AsOf) -> i64 {
    let read = ReadOptions { as_of: as_of.clone(), ..ReadOptions::default() };
    let found = tables.table(path).collect(&read).unwrap();
    found.iter().flat_map(|batch| batch["sum"].as_primitive::<Int64Type>().values().to_vec()).sum()
}

fn refused<T: std::fmt::Debug>(done: Result<T>, words: &[&str]) {
    let error = done.unwrap_err();
    assert!([ErrorKind::InvalidArgument, ErrorKind::NotFound].contains(&error.kind()), "{error}");
    for word in words {
        assert!(error.message().contains(word), "{error}");
    }
}

#[test]
fn views_that_cannot_be_kept_are_refused() {
    let store = with_sums();
    let view = |path: &str, over: &str, change: &dyn Fn(&mut ViewOptions)| {
        let mut options = sums();
        change(&mut options);
        let before = store.seq().unwrap();
        let done = store.table(path).create_view(over, &options);
        assert_eq!(store.seq().unwrap(), before, "{done:?}");
        done
    };
    refused(view("v", "t/*", &|o| o.path_columns.clear()), &["path_columns has 0 names", "1 wildcard parts"]);
    refused(view("t/v", "t/*", &|_| {}), &["its path is among those that a view is over"]);
    refused(view("v", "t/*", &|o| o.groups.aggregates.clear()), &["needs aggregates"]);
    for function in [Function::CountDistinct, Function::Quantile(0.5), Function::Any] {
        let of = if function == Function::Any { "n > 1" } else { "n" };
        let set = |o: &mut ViewOptions| o.groups.aggregates.push(made("x", function.clone(), Some(of)));
        refused(view("v", "t/*", &set), &["'x'", "cannot be kept in step", "count, sum"]);
    }
    refused(view("v", "t/*", &|o| o.groups.keys = vec!["gone".into()]), &["gone"]);
    refused(view("v", "t/*", &|o| o.filter = Some("gone > 1".into())), &["gone"]);
    refused(view("v", "t/*", &|o| o.groups.aggregates.push(made("sum", Function::Count, None))), &["called 'sum'"]);
    refused(view("v", "t/*", &|o| o.path_columns = vec!["s".into()]), &["'s'", "already one of its columns"]);
    refused(view("v", "t/a", &|o| (o.path_columns, o.groups.keys) = (vec![], vec![])), &["needs a key"]);
    assert_eq!(view("v", "none/*", &|_| {}).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(view("sums", "t/*", &|_| {}).unwrap_err().kind(), ErrorKind::AlreadyExists);
    let floats = RecordBatch::try_from_iter([("x", Arc::new(arrow::array::Float64Array::from(vec![1.0])) as ArrayRef)]);
    store.write("f/a", floats.unwrap(), &Default::default()).unwrap();
    refused(
        view("v", "f/*", &|o| {
            (o.groups.keys, o.groups.aggregates) = (vec!["x".into()], vec![made("n", Function::Count, None)])
        }),
        &["'x' of type double", "cannot be a key"],
    );
    // Of different types.
    let texts = RecordBatch::try_from_iter([
        ("n", Arc::new(arrow::array::Float64Array::from(vec![1.0])) as ArrayRef),
        ("s", Arc::new(StringArray::from(vec!["x"])) as ArrayRef),
    ]);
    store.write("u/a", rows(vec![1]), &Default::default()).unwrap();
    store.write("u/b", texts.unwrap(), &Default::default()).unwrap();
    refused(view("v", "u/*", &|_| {}), &["'u/b'", "other types"]);
    assert_eq!(store.tree().views().unwrap().len(), 1);
}

#[test]
fn the_rows_of_views_are_their_own() {
    let store = with_sums();
    let (before, seq) = (kept(&store, "sums", &AsOf::Newest), store.seq().unwrap());
    let sums_of = store.table("sums");
    let columns = ["name", "s", "sum", "most", "_state"].map(String::from).to_vec();
    let frame = sums_of.collect(&ReadOptions { columns: Some(columns), ..ReadOptions::default() }).unwrap();
    for done in [
        sums_of.upsert(frame.clone(), &Default::default()).map(drop),
        sums_of.append(frame.clone(), &Default::default()).map(drop),
        sums_of.write(frame.clone(), &Default::default()).map(drop),
        sums_of.delete("sum > 0", &Default::default()).map(drop),
        sums_of.update(&[("sum".into(), Expression::parse("0").unwrap())], None, &Default::default()).map(drop),
        sums_of.alter(&Alter::Drop(vec!["most".into()]), &Default::default()).map(drop),
        store.restore("sums", &AsOf::Version(sums_of.versions().unwrap()[0].version)).map(drop),
        store.relocate("sums", "t/sums", Existing::Refuse).map(drop),
        sums_of
            .create_index(
                "u",
                &[Expression::parse("sum").unwrap()],
                &drumlin::IndexOptions { unique: true, ..Default::default() },
            )
            .map(drop),
        store.purge("sums", &Filter::parse("sum > 0").unwrap()).unwrap().execute(&Default::default()).map(drop),
        store.transact(|tx| tx.table("sums").delete("sum > 0", &Default::default()).map(drop)),
    ] {
        refused(done, &["view"]);
    }
    assert_eq!(kept(&store, "sums", &AsOf::Newest), before);
    assert_eq!(store.seq().unwrap(), seq);
    // Sources stay fit for it.
    let table = store.table("t/a");
    for alter in [Alter::Drop(vec!["n".into()]), Alter::Rename(vec![("n".into(), "m".into())])] {
        refused(table.alter(&alter, &Default::default()), &["'sums'", "'t/*'", "drop the view first"]);
    }
    let other = RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).unwrap();
    refused(store.write("t/new", other, &Default::default()), &["'sums'", "'t/new'"]);
    assert!(!store.table("t/new").exists().unwrap());
    assert_eq!(kept(&store, "sums", &AsOf::Newest), before);
    // Of many tables, only those that do not fit are left out.
    let other = RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).unwrap();
    let frames =
        vec![("t/c".into(), rows(vec![5]).into()), ("t/d".into(), other.into()), ("u".into(), rows(vec![1]).into())];
    let done = store.write_each(frames, &Default::default()).unwrap();
    assert_eq!(done.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(kept(&store, "sums", &AsOf::Newest), computed(&store, &sums(), &AsOf::Newest));
    // What is moved, copied or dropped.
    store.relocate("sums", "other", Existing::Refuse).unwrap();
    store.append("t/a", rows(vec![100]), &Default::default()).unwrap();
    assert_eq!(kept(&store, "other", &AsOf::Newest), computed(&store, &sums(), &AsOf::Newest));
    store.copy("other", "copy", &AsOf::Newest, Existing::Refuse).unwrap();
    assert!(store.table("copy").view_info().unwrap().is_none());
    store.table("copy").delete("sum >= 0", &Default::default()).unwrap();
    store.drop("other").unwrap();
    assert!(store.tree().views().unwrap().is_empty());
    store.append("t/a", rows(vec![100]), &Default::default()).unwrap();
    store.undrop("other", None).unwrap();
    assert!(store.table("other").view_info().unwrap().is_none());
}

#[test]
fn what_is_kept_beside_results_is_not_shown() {
    let store = with_sums();
    let table = store.table("sums");
    let names = |batch: &RecordBatch| batch.schema().fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>();
    let shown = ["name", "s", "sum", "most"];
    assert_eq!(names(&table.collect(&Default::default()).unwrap()[0]), shown);
    let data = store.scan("sums", &DatasetOptions::default()).unwrap();
    assert_eq!(names(&data.collect(&ScanOptions::default()).unwrap()[0]), shown);
    let schema = table.schema(&AsOf::Newest).unwrap();
    assert_eq!(schema.fields().len(), 4);
    let key = RecordBatch::try_from_iter([
        ("name", Arc::new(StringArray::from(vec!["a"])) as ArrayRef),
        ("s", Arc::new(StringArray::from(vec!["s1"])) as ArrayRef),
    ]);
    let found = table.get_many(&key.unwrap(), &LookupOptions::default()).unwrap();
    assert_eq!(
        (names(&found.rows), found.rows["sum"].as_primitive::<Int64Type>().value(0)),
        (shown.map(String::from).to_vec(), 12)
    );
    let (first, since) = (AsOf::Version(table.versions().unwrap()[0].version), store.checkpoint(&Default::default()));
    since.unwrap();
    store.append("t/a", rows(vec![1]), &Default::default()).unwrap();
    let diff = table.diff(&first, &AsOf::Newest, &Default::default()).unwrap();
    let diff: Vec<RecordBatch> = diff.collect::<Result<_>>().unwrap();
    assert_eq!(names(&diff[0])[..4], shown);
    let read = ReadOptions { columns: Some(vec!["_state".into()]), ..ReadOptions::default() };
    assert_eq!(table.collect(&read).unwrap()[0].num_columns(), 1);
}

/// A sum that is beyond its type leaves the view behind, and nothing else.
#[test]
fn a_view_that_is_behind_says_so() {
    for stale in [StalePolicy::Wait, StalePolicy::Error, StalePolicy::Read] {
        let store = Store::memory().unwrap();
        store.write("t/a", rows(vec![1]), &Default::default()).unwrap();
        store.write("t/b", rows(vec![5]), &Default::default()).unwrap();
        store.table("sums").create_view("t/*", &ViewOptions { stale, ..sums() }).unwrap();
        let snapshot = store.snapshot("s", "**").map(drop);
        snapshot.unwrap();
        store.append("t/a", rows(vec![i64::MAX - 4]), &Default::default()).unwrap();
        store.append("t/a", rows(vec![i64::MAX - 1]), &Default::default()).unwrap();
        let behind = |store: &Store| store.table("sums").view_info().unwrap().unwrap().behind;
        assert_eq!(behind(&store), ["t/a"]);
        // What is in step stays so.
        store.append("t/b", rows(vec![7]), &Default::default()).unwrap();
        assert_eq!(behind(&store), ["t/a"]);
        let read = store.table("sums").collect(&ReadOptions::default());
        match stale {
            StalePolicy::Read => assert!(read.is_ok()),
            _ => {
                let error = read.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ConditionFailed);
                assert!(error.message().contains("'sums' is behind with 1 of its sources"), "{error}");
                assert!(store.scan("sums", &DatasetOptions::default()).is_err());
                assert!(store.table("sums").get(("a", "s1")).is_err());
            }
        }
        // What it showed before is still there.
        assert_eq!(total(&store, "sums", &AsOf::Snapshot("s".into())), 6);
        refused(store.table("sums").catch_up(&Default::default()), &["sum"]);
        store.table("t/a").delete("n > 100", &Default::default()).unwrap();
        match stale {
            StalePolicy::Wait => assert_eq!(total(&store, "sums", &AsOf::Newest), 13),
            _ => assert_eq!(store.table("sums").catch_up(&Default::default()).unwrap().sources, 1),
        }
        assert!(behind(&store).is_empty());
        assert_eq!(kept(&store, "sums", &AsOf::Newest), computed(&store, &sums(), &AsOf::Newest));
    }
}

#[test]
fn purged_rows_are_in_no_version_of_a_view() {
    for several in [false, true] {
        let store = Store::memory().unwrap();
        let (one, two, over) = if several { ("t/x/a", "t/x/b", "t/*/*") } else { ("t/a", "t/b", "t/*") };
        store.write(one, rows(vec![1, 3, 1000]), &Default::default()).unwrap();
        store.write(two, rows(vec![5]), &Default::default()).unwrap();
        let mut options = sums();
        if several {
            options.path_columns.insert(0, "of".into());
        }
        store.table("sums").create_view(over, &options).unwrap();
        store.checkpoint(&Default::default()).unwrap();
        store.snapshot("s", "**").unwrap();
        store.append(one, rows(vec![4]), &Default::default()).unwrap();
        store.append(two, rows(vec![8]), &Default::default()).unwrap();
        let level_two = ViewOptions {
            path_columns: vec![],
            groups: GroupBy {
                keys: vec!["s".into()],
                aggregates: vec![made("sum", Function::Sum, Some("sum"))],
                ..GroupBy::default()
            },
            ..ViewOptions::default()
        };
        store.table("over").create_view("sums", &level_two).unwrap();
        assert_eq!((total(&store, "sums", &AsOf::Newest), total(&store, "over", &AsOf::Newest)), (1021, 1021));
        let receipt =
            store.purge("t/**", &Filter::parse("n = 1000").unwrap()).unwrap().execute(&Default::default()).unwrap();
        assert!(receipt.proof.matching == 0);
        assert_eq!((total(&store, "sums", &AsOf::Newest), total(&store, "over", &AsOf::Newest)), (21, 21));
        for path in ["sums", "over"] {
            for version in store.table(path).versions().unwrap() {
                assert!(total(&store, path, &AsOf::Version(version.version)) < 1000, "{path} {version:?}");
            }
        }
        assert!(total(&store, "sums", &AsOf::Snapshot("s".into())) < 1000);
        assert!(store.tree().views().unwrap().iter().all(|view| view.behind.is_empty()));
    }
}

#[test]
fn views_are_over_views() {
    let store = with_sums();
    let over = |keys: Vec<String>| ViewOptions {
        path_columns: vec![],
        groups: GroupBy { keys, aggregates: vec![made("sum", Function::Sum, Some("sum"))], ..GroupBy::default() },
        ..ViewOptions::default()
    };
    store.table("two").create_view("sums", &over(vec!["name".into(), "s".into()])).unwrap();
    store.table("three").create_view("two", &over(vec!["name".into(), "s".into()])).unwrap();
    store.table("four").create_view("three", &over(vec!["name".into()])).unwrap();
    refused(store.table("five").create_view("four", &over(vec!["name".into()])), &["more than 4 views"]);
    let seq = store.seq().unwrap();
    store.append("t/a", rows(vec![1000]), &Default::default()).unwrap();
    // One commit for all of them.
    assert_eq!(store.seq().unwrap(), drumlin::base::Seq(seq.0 + 1));
    store.table("t/b").delete("n > 2", &Default::default()).unwrap();
    for path in ["sums", "two", "three", "four"] {
        assert_eq!(total(&store, path, &AsOf::Newest), 1048, "{path}");
    }
    store.drop("t/a").unwrap();
    for path in ["sums", "two", "three", "four"] {
        assert_eq!(total(&store, path, &AsOf::Newest), 3, "{path}");
    }
}

/// One view is over a table and a view of another table; a commit that changes both tables changes the one over it in two steps.
#[test]
fn views_are_over_tables_and_views_at_once() {
    let store = Store::memory().unwrap();
    store.write("t/a", rows((0..10).collect()), &Default::default()).unwrap();
    store.table("m/v").create_view("t/*", &sums()).unwrap();
    let plain = |n: Vec<i64>| {
        let s: ArrayRef = Arc::new(StringArray::from_iter_values(n.iter().map(|n| format!("s{}", n % 3))));
        RecordBatch::try_from_iter([("s", s), ("sum", Arc::new(Int64Array::from(n)) as ArrayRef)]).unwrap()
    };
    store.write("m/p", plain((0..7).collect()), &Default::default()).unwrap();
    let over = |paths: &[&str]| ViewOptions {
        path_columns: paths.iter().map(ToString::to_string).collect(),
        groups: GroupBy {
            keys: vec!["s".into()],
            aggregates: vec![made("sum", Function::Sum, Some("sum"))],
            ..GroupBy::default()
        },
        ..ViewOptions::default()
    };
    store.table("both").create_view("m/*", &over(&["of"])).unwrap();
    store.table("top").create_view("both", &over(&[])).unwrap();
    for step in 1..5 {
        let seq = store.seq().unwrap();
        store
            .transact(|tx| {
                tx.append("t/a", rows(vec![step, step * 10]), &Default::default())?;
                tx.append("m/p", plain(vec![step * 100, step * 1000]), &Default::default())
            })
            .unwrap();
        assert_eq!(store.seq().unwrap(), drumlin::base::Seq(seq.0 + 1));
        let all = |path: &str| total(&store, path, &AsOf::Newest);
        assert_eq!((all("both"), all("top")), (all("m/v") + all("m/p"), all("m/v") + all("m/p")));
    }
    assert!(store.tree().views().unwrap().iter().all(|view| view.behind.is_empty()));
}

/// A commit of many sources writes the rows of a view at once.
#[test]
fn many_sources_are_one_write() {
    let store = Store::memory().unwrap();
    let frames = |n: i64| (0..300).map(|at| (format!("t/{at}"), rows(vec![n, n + at]).into())).collect::<Vec<_>>();
    store.write_many(frames(1), &Default::default()).unwrap();
    store.table("sums").create_view("t/*", &sums()).unwrap();
    let seq = store.seq().unwrap();
    store.append_many(frames(5), &Default::default()).unwrap();
    assert_eq!(store.seq().unwrap(), drumlin::base::Seq(seq.0 + 1));
    assert_eq!(kept(&store, "sums", &AsOf::Newest), computed(&store, &sums(), &AsOf::Newest));
}
