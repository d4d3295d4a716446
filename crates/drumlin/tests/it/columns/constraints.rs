//! Constraints: what no call brings in that does not keep them, what they outlive, what is refused.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use drumlin::base::Version;
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, Options, ReadOptions, Stage, StageOptions, TableOptions, Ticket, WriteOptions};
use drumlin::{
    Alter, ConstraintNames, Constraints, ConstraintsInfo, Error, ErrorKind, Existing, Expression, Filter, Merge,
    SchemaMode, Store, Tables, Task, WhenMatched, WhenNotMatched,
};

use crate::support::{Checked, ints, open, same};

fn check(name: &str, text: &str) -> Alter {
    let checks = vec![(name.to_owned(), Filter::parse(text).unwrap())];
    Alter::AddConstraints(Constraints { checks, ..Constraints::default() })
}

fn not_null(name: &str) -> Alter {
    Alter::AddConstraints(Constraints { not_null: vec![name.into()], ..Constraints::default() })
}

fn default(name: &str, value: i64) -> Alter {
    let value: ArrayRef = Arc::new(Int64Array::from(vec![value]));
    Alter::AddConstraints(Constraints { defaults: vec![(name.into(), value)], ..Constraints::default() })
}

fn lift(checks: &[&str], not_null: &[&str], defaults: &[&str]) -> Alter {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let (checks, not_null, defaults) = (names(checks), names(not_null), names(defaults));
    Alter::DropConstraints(ConstraintNames { checks, not_null, defaults })
}

fn alter(store: &Store, path: &str, alter: &Alter) -> drumlin::Result<()> {
    store.table(path).alter(alter, &Default::default()).map(drop)
}

fn column(store: &Store, path: &str, name: &str) -> Vec<Option<i64>> {
    let batches = store.table(path).collect(&Default::default()).unwrap();
    batches.iter().flat_map(|batch| batch[name].as_primitive::<Int64Type>().iter().collect::<Vec<_>>()).collect()
}

fn evolve() -> WriteOptions {
    WriteOptions { schema: SchemaMode::Evolve, ..WriteOptions::default() }
}

/// A table with a check of `a` against `b`, with a key or without.
fn checked(keyed: bool) -> (SimDisk, Store) {
    let disk = SimDisk::new();
    let store = open(&disk).unwrap();
    let key = if keyed { vec!["k".into()] } else { Vec::new() };
    let rows = ints(&[("k", vec![1, 2, 3]), ("a", vec![1, 2, 3]), ("b", vec![5, 5, 5])]);
    store.table("t").create(rows.schema(), TableOptions { key, ..TableOptions::default() }).unwrap();
    store.append("t", rows, &Default::default()).unwrap();
    alter(&store, "t", &check("below", "a < b")).unwrap();
    (disk, store)
}

/// No call brings in a row for which a check is false, and none leaves a part of what it brings.
pub fn no_call_breaks_a_check() -> Checked {
    for keyed in [false, true] {
        let (_disk, store) = checked(keyed);
        let bad = || ints(&[("k", vec![7, 8]), ("a", vec![1, 9]), ("b", vec![5, 5])]);
        let table = store.table("t");
        let none = WriteOptions::default();
        let set = |text: &str| [("a".to_owned(), Expression::parse(text).unwrap())];
        let merge = |all: bool| Merge {
            on: vec!["k".into()],
            matched: if all { Vec::new() } else { vec![(None, WhenMatched::Update(set("source.a").to_vec()))] },
            not_matched: if all { vec![(None, WhenNotMatched::InsertAll)] } else { Vec::new() },
            ..Merge::default()
        };
        let mut tries: Vec<(&str, drumlin::Result<()>)> = vec![
            ("append", store.append("t", bad(), &none).map(drop)),
            ("append, evolving", store.append("t", bad(), &evolve()).map(drop)),
            ("write", store.write("t", bad(), &none).map(drop)),
            ("replace", table.replace_where(bad(), "k = 1", &none).map(drop)),
            ("update", table.update(&set("a + 3"), None, &Default::default()).map(drop)),
            ("update of a row", table.update(&set("100"), Some("k = 2"), &Default::default()).map(drop)),
            ("merge, inserting", table.merge(bad(), &merge(true), &Default::default()).map(drop)),
            (
                "merge, updating",
                table.merge(ints(&[("k", vec![2]), ("a", vec![90])]), &merge(false), &Default::default()).map(drop),
            ),
            ("transaction", store.transact(|tx| tx.append("t", bad(), &none).map(drop))),
        ];
        if keyed {
            tries.push(("upsert", table.upsert(bad(), &none).map(drop)));
            tries.push(("insert", table.insert(bad(), &none).map(drop)));
        }
        for (what, done) in tries {
            let Err(e) = done else { return Err(format!("keyed {keyed}: {what} broke the check")) };
            let says = e.kind() == ErrorKind::SchemaMismatch && e.message().contains("check 'below' (a < b)");
            if !says {
                return Err(format!("keyed {keyed}: {what}: {e}"));
            }
        }
        same(&column(&store, "t", "a"), &vec![Some(1), Some(2), Some(3)], "what was there")?;
        same(&table.versions().unwrap().len(), &3, "versions")?;
        // What is unknown is not false.
        let unknown: ArrayRef = Arc::new(Int64Array::from(vec![None]));
        let (k, a): (ArrayRef, ArrayRef) = (Arc::new(Int64Array::from(vec![9])), Arc::new(Int64Array::from(vec![99])));
        let fields = ["k", "a", "b"].map(|name| Field::new(name, DataType::Int64, true)).to_vec();
        let row = RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![k, a, unknown]).unwrap();
        store.append("t", row, &none).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// Constraints hold for rows that are there, before they are put.
pub fn rows_that_are_there_keep_them() -> Checked {
    let store = open(&SimDisk::new()).unwrap();
    let key = TableOptions { key: vec!["k".into()], ..TableOptions::default() };
    store.table("t").create(ints(&[("k", vec![]), ("a", vec![])]).schema(), key).unwrap();
    store.append("t", ints(&[("k", vec![1]), ("a", vec![-7])]), &Default::default()).unwrap();
    let refused = |what: &Alter, words: &str| match alter(&store, "t", what) {
        Err(e) if e.message().contains(words) => Ok(()),
        other => Err(format!("{what:?}: {other:?}, expected '{words}'")),
    };
    refused(
        &check("positive", "a > 0"),
        "check 'positive' (a > 0) does not hold for 1 of the existing rows; in the first, a is -7",
    )?;
    store.table("t").update(&[("a".into(), Expression::parse("null").unwrap())], None, &Default::default()).unwrap();
    refused(&not_null("a"), "column 'a' takes no nulls")?;
    // Rows in memory are looked at too.
    store.table("t").upsert(ints(&[("k", vec![1, 2]), ("a", vec![3, -1])]), &Default::default()).unwrap();
    refused(&check("positive", "a > 0"), "in the first, a is -1")?;
    store.table("t").upsert(ints(&[("k", vec![2]), ("a", vec![4])]), &Default::default()).unwrap();
    alter(&store, "t", &check("positive", "a > 0")).map_err(|e| e.to_string())?;
    alter(&store, "t", &not_null("a")).map_err(|e| e.to_string())?;
    // A column that was added is null in rows that are there.
    store.append("t", ints(&[("k", vec![3]), ("a", vec![1]), ("c", vec![2])]), &evolve()).unwrap();
    refused(&not_null("c"), "column 'c' takes no nulls")
}

#[test]
fn rules_hold() {
    no_call_breaks_a_check().unwrap();
    rows_that_are_there_keep_them().unwrap();
}

#[test]
fn constraints_outlive_what_the_table_does() {
    let (disk, store) = checked(false);
    alter(&store, "t", &not_null("b")).unwrap();
    alter(&store, "t", &default("b", 50)).unwrap();
    let expected = ConstraintsInfo {
        checks: vec![("below".into(), "a < b".into())],
        not_null: vec!["b".into()],
        defaults: vec![("b".into(), Arc::new(Int64Array::from(vec![50])))],
        ..ConstraintsInfo::default()
    };
    let is = |store: &Store, path: &str, what: &str| {
        assert_eq!(store.table(path).constraints(&AsOf::Newest).unwrap(), expected, "{what}");
        let error = store.append(path, ints(&[("k", vec![7]), ("a", vec![9]), ("b", vec![9])]), &evolve());
        assert!(error.unwrap_err().message().contains("'below'"), "{what}");
    };
    is(&store, "t", "put");
    store
        .write("t", ints(&[("k", vec![1]), ("a", vec![1]), ("b", vec![2]), ("c", vec![3])]), &Default::default())
        .unwrap();
    is(&store, "t", "other rows and columns");
    let error = store.write("t", ints(&[("k", vec![1])]), &Default::default()).unwrap_err();
    assert!(error.message().contains("lacks column 'a', to which the check 'below' (a < b) refers"), "{error}");
    store.append("t", ints(&[("k", vec![2]), ("a", vec![3])]), &evolve()).unwrap();
    assert_eq!(column(&store, "t", "b"), [Some(2), Some(50)]);
    store.copy("t", "copy", &AsOf::Newest, Existing::Refuse).unwrap();
    is(&store, "copy", "a copy");
    store.table("t").alter(&lift(&["below"], &["b"], &["b"]), &Default::default()).unwrap();
    assert_eq!(store.table("t").constraints(&AsOf::Newest).unwrap(), ConstraintsInfo::default());
    store.append("t", ints(&[("k", vec![3]), ("a", vec![30])]), &evolve()).unwrap();
    assert_eq!(column(&store, "t", "b"), [Some(2), Some(50), None], "rows keep what they had");
    // With an old version come its constraints.
    store.restore("t", &AsOf::Version(Version(4))).unwrap();
    is(&store, "t", "restored");
    store.checkpoint(&Default::default()).unwrap();
    store.close().unwrap();
    let store = open(&disk).unwrap();
    is(&store, "t", "opened again");
    is(&store, "copy", "a copy, opened again");
    // Workers of a job keep them too.
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_with(folder.path().join("s").to_str().unwrap(), Options::default()).unwrap();
    store.write("t", ints(&[("a", vec![1])]), &Default::default()).unwrap();
    alter(&store, "t", &check("positive", "a > 0")).unwrap();
    let ticket = Ticket::open(&store, &[("t".to_owned(), None)], &StageOptions::default()).unwrap();
    let ticket = Ticket::from_bytes(&ticket.to_bytes().unwrap()).unwrap();
    let staged = Stage::of(&store).write(&ticket, "t", ints(&[("a", vec![-1])]).into(), None, &Task::default());
    assert!(staged.unwrap_err().message().contains("'positive'"));
}

#[test]
fn what_cannot_be_is_refused() {
    let (_disk, store) = checked(false);
    let refused = |what: &Alter, kind: ErrorKind, words: &str| {
        let error = alter(&store, "t", what).unwrap_err();
        assert!(error.kind() == kind && error.message().contains(words), "{what:?}: {error}");
    };
    refused(&check("below", "a > 0"), ErrorKind::AlreadyExists, "'below' already exists");
    refused(&check("", "a > 0"), ErrorKind::InvalidArgument, "needs a name");
    refused(&check("x", "nothing > 0"), ErrorKind::InvalidArgument, "nothing");
    refused(&not_null("x"), ErrorKind::InvalidArgument, "'x' does not exist");
    refused(&lift(&["x"], &[], &[]), ErrorKind::NotFound, "check 'x' does not exist");
    refused(&lift(&[], &[], &["a"]), ErrorKind::NotFound, "'a' has no default");
    refused(&Alter::Drop(vec!["a".into()]), ErrorKind::InvalidArgument, "the check 'below' (a < b) refers to it");
    let swap = Alter::Rename(vec![("a".into(), "b".into()), ("b".into(), "a".into())]);
    refused(&swap, ErrorKind::InvalidArgument, "the check 'below'");
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    let misfit = Alter::AddConstraints(Constraints { defaults: vec![("a".into(), text)], ..Constraints::default() });
    refused(&misfit, ErrorKind::SchemaMismatch, "'a'");
    // Nothing has changed; other columns can, and a wider type is still one that the check fits.
    assert_eq!(store.table("t").versions().unwrap().len(), 3);
    alter(&store, "t", &Alter::Rename(vec![("k".into(), "id".into())])).unwrap();
    alter(&store, "t", &Alter::Widen(vec![("a".into(), DataType::Float64)])).unwrap();
    let rows = store.table("t").collect(&ReadOptions::default()).unwrap();
    assert_eq!(rows[0].schema().field(1).data_type(), &DataType::Float64);
    // A frame cannot bring checks along by itself.
    let metadata = [("drumlin.checks".to_owned(), "[]".to_owned())].into();
    let schema = Schema::new(vec![Field::new("n", DataType::Int64, true)]).with_metadata(metadata);
    let n: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let error = store.write("u", RecordBatch::try_new(Arc::new(schema), vec![n]).unwrap(), &Default::default());
    assert!(error.unwrap_err().message().contains("reserved"));
}

#[test]
fn constraints_put_in_a_transaction_hold_in_it() {
    let (_disk, store) = checked(false);
    let done: Result<(), Error> = store.transact(|tx| {
        tx.table("t").alter(&check("positive", "k > 0"), &Default::default())?;
        tx.append("t", ints(&[("k", vec![-1]), ("a", vec![1]), ("b", vec![2])]), &Default::default()).map(drop)
    });
    assert!(done.unwrap_err().message().contains("'positive'"));
    assert_eq!(store.table("t").constraints(&AsOf::Newest).unwrap().checks.len(), 1);
}

/// A table that gets the rows of another keeps its constraints, by whatever call: rows that do not keep them are refused, and later ones too.
pub fn replaced_rows_keep_them() -> Checked {
    for keyed in [false, true] {
        let (_disk, store) = checked(keyed);
        alter(&store, "t", &not_null("b")).unwrap();
        alter(&store, "t", &default("b", 50)).unwrap();
        let key = || if keyed { vec!["k".into()] } else { Vec::new() };
        let make = |path: &str, b: Option<i64>| {
            let columns = [("k", Some(7)), ("a", Some(1)), ("b", b)];
            let column = |(name, value): (&'static str, Option<i64>)| {
                let nullable = name != "k" || !keyed;
                (name, Arc::new(Int64Array::from(vec![value])) as arrow::array::ArrayRef, nullable)
            };
            let rows = arrow::array::RecordBatch::try_from_iter_with_nullable(columns.map(column)).unwrap();
            store.table(path).create(rows.schema(), TableOptions { key: key(), ..TableOptions::default() }).unwrap();
            match keyed {
                // They stay in memory.
                true => drop(store.table(path).upsert(rows, &Default::default()).unwrap()),
                false => drop(store.append(path, rows, &Default::default()).unwrap()),
            }
        };
        make("good", Some(2));
        make("false", Some(0));
        make("null", None);
        store.write("lacks", ints(&[("k", vec![1])]), &Default::default()).unwrap();
        // A key takes no nulls in any case.
        let constraints = |store: &Store| {
            let mut found = store.table("t").constraints(&AsOf::Newest).unwrap();
            found.not_null.retain(|name| name != "k");
            found
        };
        let expected = constraints(&store);
        let replace = |what: &str, from: &str| match what {
            "copy" => store.copy(from, "t", &AsOf::Newest, Existing::Replace).map(drop),
            "move" => store.relocate(from, "t", Existing::Replace).map(drop),
            _ => {
                let tx = store.transaction()?;
                tx.copy(from, "t", &AsOf::Newest, Existing::Replace)?;
                tx.commit().map(drop)
            }
        };
        for what in ["copy", "transaction", "move"] {
            for (from, why) in [("false", "'below'"), ("null", "'b'"), ("lacks", "")] {
                let before = (store.seq().unwrap(), store.table("t").versions().unwrap());
                match replace(what, from) {
                    Err(e) if e.message().contains(why) => {}
                    other => return Err(format!("{what} of {from}, keyed {keyed}: {other:?}")),
                }
                assert_eq!((store.seq().unwrap(), store.table("t").versions().unwrap()), before, "{what} of {from}");
            }
            replace(what, "good").map_err(|e| format!("{what}, keyed {keyed}: {e}"))?;
            assert_eq!(column(&store, "t", "b"), [Some(2)], "{what}");
            let found = constraints(&store);
            if found != expected {
                return Err(format!("{what}, keyed {keyed}: {found:?}, expected {expected:?}"));
            }
            let bad = ints(&[("k", vec![9]), ("a", vec![9]), ("b", vec![9])]);
            assert!(store.append("t", bad, &Default::default()).unwrap_err().message().contains("'below'"), "{what}");
        }
        // Those of a branch come along.
        store.copy("t", "branch", &AsOf::Newest, Existing::Refuse).unwrap();
        alter(&store, "branch", &check("small", "a < 100")).unwrap();
        store.copy("branch", "t", &AsOf::Newest, Existing::Replace).unwrap();
        let checks = store.table("t").constraints(&AsOf::Newest).unwrap().checks;
        assert_eq!(checks.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["below", "small"]);
    }
    Ok(())
}

#[test]
fn constraints_outlive_other_rows() {
    replaced_rows_keep_them().unwrap();
}
