//! Refusals change nothing: a call that is refused numbers no version, lets none expire, and leaves no byte; neither does one that finds
//! nothing to do. What is done, is done in one commit, rows in memory included.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field};
use drumlin::base::{Seq, Version};
use drumlin::catalog::Retention;
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, DiffOptions, Missing, TableOptions, UpdateOptions, VersionInfo, WriteOptions};
use drumlin::{
    Alter, Constraints, ErrorKind, Existing, Expression, Fill, Filter, Merge, NewColumn, Place, SchemaMode, Store,
    Tables, WhenMatched, WhenNotMatched,
};

use crate::support::{ints, open};

/// The state of a store, as far as anybody can see it.
#[derive(Debug, PartialEq)]
struct Seen {
    seq: Seq,
    versions: BTreeMap<String, Vec<VersionInfo>>,
    rows: BTreeMap<String, Vec<RecordBatch>>,
    files: BTreeMap<String, Vec<u8>>,
}

fn seen(disk: &SimDisk, store: &Store) -> Seen {
    let mut seen = Seen {
        seq: store.seq().unwrap(),
        versions: BTreeMap::new(),
        rows: BTreeMap::new(),
        files: disk.files().into_iter().collect(),
    };
    for path in store.tables("**").unwrap() {
        seen.versions.insert(path.clone(), store.table(&path).versions().unwrap());
        seen.rows.insert(path.clone(), store.table(&path).collect(&Default::default()).unwrap());
    }
    seen
}

fn three(id: &[i64], v: &[i64], s: &[&str]) -> RecordBatch {
    let columns: [(&str, ArrayRef, bool); 3] = [
        ("id", Arc::new(Int64Array::from(id.to_vec())), false),
        ("v", Arc::new(Int64Array::from(v.to_vec())), true),
        ("s", Arc::new(StringArray::from(s.to_vec())), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// A table with a key: three versions, of which retention keeps no more, a part that is frozen and one that takes writes.
fn made() -> (SimDisk, Store) {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    let rows = three(&[1, 2], &[10, 20], &["a", "b"]);
    for path in ["k", "other"] {
        let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
        store.table(path).create(rows.schema(), key).unwrap();
        store.append(path, rows.clone(), &Default::default()).unwrap();
    }
    store.set_retention("k", Some(Retention::KeepLast(3))).unwrap();
    let set = [("v".to_owned(), Expression::parse("v + 1").unwrap())];
    store.table("k").update(&set, None, &Default::default()).unwrap();
    store.table("k").upsert(three(&[3], &[30], &["c"]), &Default::default()).unwrap();
    store.snapshot("held", "k").unwrap();
    store.table("k").upsert(three(&[4], &[40], &["d"]), &Default::default()).unwrap();
    store.table("other").upsert(three(&[5], &[50], &["e"]), &Default::default()).unwrap();
    store.write("plain", rows, &Default::default()).unwrap();
    let positive = Filter::parse("v > 0").unwrap();
    let checks = vec![("positive".to_owned(), positive)];
    let constraints = Alter::AddConstraints(Constraints { checks, ..Constraints::default() });
    store.table("other").alter(&constraints, &Default::default()).unwrap();
    store.table("other").upsert(three(&[6], &[60], &["f"]), &Default::default()).unwrap();
    (disk, store)
}

type Call = (&'static str, fn(&Place) -> drumlin::Result<()>);

fn set(name: &str, text: &str) -> Vec<(String, Expression)> {
    vec![(name.to_owned(), Expression::parse(text).unwrap())]
}

fn merged(place: &Place, path: &str, frame: RecordBatch, merge: &Merge) -> drumlin::Result<()> {
    place.table(path).merge(frame, merge, &UpdateOptions::default()).map(drop)
}

fn upserting() -> Merge {
    Merge {
        matched: vec![(None, WhenMatched::UpdateAll)],
        not_matched: vec![(None, WhenNotMatched::InsertAll)],
        ..Merge::default()
    }
}

fn evolving() -> WriteOptions {
    WriteOptions { schema: SchemaMode::Evolve, ..WriteOptions::default() }
}

fn alter(place: &Place, alter: Alter) -> drumlin::Result<()> {
    place.table("k").alter(&alter, &Default::default()).map(drop)
}

fn constrain(text: &str) -> Alter {
    let checks = vec![("c".to_owned(), Filter::parse(text).unwrap())];
    Alter::AddConstraints(Constraints { checks, ..Constraints::default() })
}

fn extra(id: i64, other: i64) -> RecordBatch {
    ints(&[("id", vec![id]), ("v", vec![1]), ("extra", vec![other])])
}

/// What is refused because of its arguments, or of the rows that it finds or would make.
const REFUSED: &[Call] = &[
    ("update of no column", |place| place.table("k").update(&set("w", "v + 1"), None, &Default::default()).map(drop)),
    ("update of the key", |place| place.table("k").update(&set("id", "v"), None, &Default::default()).map(drop)),
    ("update by no column", |place| place.table("k").update(&set("v", "w"), None, &Default::default()).map(drop)),
    ("update where no column", |place| {
        place.table("k").update(&set("v", "1"), Some("w = 1"), &Default::default()).map(drop)
    }),
    ("update of another type", |place| place.table("k").update(&set("v", "s"), None, &Default::default()).map(drop)),
    ("update that overflows", |place| {
        place.table("k").update(&set("v", "v * 9223372036854775807"), None, &Default::default()).map(drop)
    }),
    ("update against a check", |place| {
        place.table("other").update(&set("v", "0"), Some("id = 5"), &Default::default()).map(drop)
    }),
    ("merge of no column", |place| merged(place, "k", extra(1, 1), &upserting())),
    ("merge on no column", |place| {
        merged(place, "k", three(&[1], &[1], &["x"]), &Merge { on: vec!["w".into()], ..upserting() })
    }),
    ("merge of two rows", |place| merged(place, "k", three(&[4, 4], &[1, 2], &["x", "y"]), &upserting())),
    ("merge of another key", |place| {
        merged(place, "k", three(&[9], &[40], &["x"]), &Merge { on: vec!["v".into()], ..upserting() })
    }),
    ("merge of a key that is there", |place| {
        let on = Merge { on: vec!["v".into()], ..upserting() };
        merged(place, "k", three(&[4], &[77], &["x"]), &on)
    }),
    ("merge against a check", |place| merged(place, "other", three(&[5], &[-1], &["x"]), &upserting())),
    ("merge that says nothing", |place| merged(place, "k", three(&[5], &[-1], &["x"]), &Merge::default())),
    ("check that rows break", |place| alter(place, constrain("v < 40"))),
    ("check of no column", |place| alter(place, constrain("w < 40"))),
    ("column that is there", |place| {
        let field = Field::new("v", DataType::Int64, true);
        alter(place, Alter::Add(vec![NewColumn { field, fill: Fill::Null }]))
    }),
    ("column that cannot be computed", |place| {
        let (field, fill) =
            (Field::new("n", DataType::Int8, true), Fill::Computed(Expression::parse("v * 100").unwrap()));
        alter(place, Alter::Add(vec![NewColumn { field, fill }]))
    }),
    ("type that does not hold a value", |place| alter(place, Alter::Widen(vec![("v".into(), DataType::Int8)]))),
    ("key that goes", |place| alter(place, Alter::Drop(vec!["id".into()]))),
    ("columns from two rows", |place| {
        let frame = ints(&[("id", vec![4, 4]), ("n", vec![1, 2])]);
        place.table("k").add_columns_from(frame, &[], &Default::default()).map(drop)
    }),
    ("append of a key that is there", |place| {
        place.append("k", three(&[4], &[1], &["x"]), &Default::default()).map(drop)
    }),
    ("evolving append of a key that is there", |place| place.table("k").append(extra(4, 1), &evolving()).map(drop)),
    ("evolving append of a key twice", |place| {
        let frame = ints(&[("id", vec![8, 8]), ("v", vec![1, 2]), ("extra", vec![3, 4])]);
        place.table("k").append(frame, &evolving()).map(drop)
    }),
    ("evolving insert of a key that is there", |place| place.table("k").insert(extra(4, 1), &evolving()).map(drop)),
    ("evolving upsert against a check", |place| {
        let frame = ints(&[("id", vec![5]), ("v", vec![-1]), ("extra", vec![1])]);
        place.table("other").upsert(frame, &evolving()).map(drop)
    }),
    ("evolving replacement beside a key", |place| {
        place.table("k").replace_where(extra(4, 1), "id = 1", &evolving()).map(drop)
    }),
    ("evolving replacement where no column", |place| {
        place.table("k").replace_where(extra(9, 1), "w = 1", &evolving()).map(drop)
    }),
    ("delete where no column", |place| place.table("k").delete("w = 1", &Default::default()).map(drop)),
    ("versions that are not there", |place| {
        place.delete_versions(&[("k".to_owned(), vec![Version(1), Version(99)])], Missing::Refuse).map(drop)
    }),
    ("all versions", |place| {
        let all = place.table("k").versions()?.into_iter().map(|version| version.version).collect();
        place.delete_versions(&[("k".to_owned(), all)], Missing::Refuse).map(drop)
    }),
    ("copy over a table", |place| place.copy("k", "other", &AsOf::Newest, Existing::Refuse).map(drop)),
    ("copy over one of another order", |place| place.copy("k", "plain", &AsOf::Newest, Existing::Replace).map(drop)),
    ("move over one of another order", |place| place.relocate("k", "plain", Existing::Replace).map(drop)),
    ("move over itself", |place| place.relocate("k*", "k*", Existing::Replace).map(drop)),
    ("restore of no version", |place| place.restore("k", &AsOf::Version(Version(99))).map(drop)),
    ("restore of no snapshot", |place| place.restore("k", &AsOf::Snapshot("none".into())).map(drop)),
    ("difference in no column", |place| {
        let options = DiffOptions { columns: Some(vec!["w".into()]), ..DiffOptions::default() };
        place.table("k").diff(&AsOf::Version(Version(2)), &AsOf::Newest, &options).map(drop)
    }),
];

/// What is refused in a store leaves it as it is; in a transaction, that and what the transaction shows.
#[test]
fn what_is_refused_changes_nothing() {
    let (disk, store) = made();
    for (what, call) in REFUSED {
        let before = seen(&disk, &store);
        let refused = call(&store.place()).err().unwrap_or_else(|| panic!("{what} is done"));
        assert_ne!(refused.kind(), ErrorKind::Conflict, "{what}: {refused}");
        let after = seen(&disk, &store);
        assert!(before == after, "{what} ({refused}) changes the store:\n{before:?}\n{after:?}");
    }
}

#[test]
fn what_a_transaction_refuses_changes_nothing() {
    let (disk, store) = made();
    for (what, call) in REFUSED {
        let before = seen(&disk, &store);
        let tx = store.transaction().unwrap();
        let shown = |tx: &drumlin::Transaction| tx.table("k").collect(&Default::default()).unwrap();
        let rows = shown(&tx);
        let refused = call(&tx.place()).err().unwrap_or_else(|| panic!("{what} is done"));
        let of_diff = *what == "difference in no column";
        assert!(refused.kind() != ErrorKind::Conflict || of_diff, "{what}: {refused}");
        assert_eq!(shown(&tx), rows, "{what}");
        // There is nothing to commit.
        assert_eq!(tx.commit().unwrap(), before.seq, "{what}");
        let after = seen(&disk, &store);
        assert!(before == after, "{what} ({refused}) changes the store:\n{before:?}\n{after:?}");
    }
}

/// Rows in memory become row groups, and get a version, in the commit of the change that needs them so; what its writer says is said of its
/// own version alone.
#[test]
fn what_is_done_is_one_commit() {
    let done: &[(Call, usize)] = &[
        (
            ("update", |place| {
                place.table("k").update(&set("v", "v + 1"), Some("id = 4"), &Default::default()).map(drop)
            }),
            1,
        ),
        (("merge", |place| merged(place, "k", three(&[4], &[41], &["x"]), &upserting())), 1),
        (("check", |place| alter(place, constrain("v < 400"))), 1),
        (
            ("evolving upsert in a transaction", |place| {
                let Place::Store(store) = place else { return Ok(()) };
                let rows = three(&[4], &[1], &["x"]).columns().to_vec();
                let rows = ["id", "v", "s"]
                    .into_iter()
                    .zip(rows)
                    .chain([("extra", ints(&[("extra", vec![9])]).column(0).clone())]);
                let rows = RecordBatch::try_from_iter(rows).unwrap();
                store.transact(|tx| tx.table("k").upsert(rows.clone(), &evolving()).map(drop))
            }),
            1,
        ),
        (("restore", |place| place.restore("k", &AsOf::Snapshot("held".into())).map(drop)), 1),
        (("copy over it", |place| place.copy("other", "k", &AsOf::Newest, Existing::Replace).map(drop)), 1),
    ];
    for ((what, call), versions) in done {
        let (_, store) = made();
        store.set_retention("k", None).unwrap();
        let (seq, before) = (store.seq().unwrap(), store.table("k").versions().unwrap());
        call(&store.with_message("said").unwrap().place()).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(store.seq().unwrap().0, seq.0 + 1, "{what}");
        let after = store.table("k").versions().unwrap();
        assert_eq!(after.len(), before.len() + 1 + versions, "{what}");
        let said = |info: &VersionInfo| info.note.message.is_some();
        assert_eq!(after[before.len()..].iter().map(said).collect::<Vec<_>>(), [false, true], "{what}");
        assert_eq!(store.verify(&Default::default()).unwrap().faults, [], "{what}");
    }
}

#[test]
fn what_finds_nothing_to_do_changes_nothing() {
    let nothing: &[Call] = &[
        ("update", |place| place.table("k").update(&set("v", "1"), Some("id = 99"), &Default::default()).map(drop)),
        ("delete", |place| place.table("k").delete("id = 99", &Default::default()).map(drop)),
        ("merge", |place| {
            let merge = Merge { not_matched: Vec::new(), ..upserting() };
            merged(place, "k", three(&[99], &[1], &["x"]), &merge)
        }),
        ("widening to the same", |place| alter(place, Alter::Widen(vec![("v".into(), DataType::Int64)]))),
    ];
    let (disk, store) = made();
    for (what, call) in nothing {
        let before = seen(&disk, &store);
        call(&store.place()).unwrap_or_else(|e| panic!("{what}: {e}"));
        store.transact(|tx| call(&tx.place())).unwrap_or_else(|e| panic!("{what}: {e}"));
        let after = seen(&disk, &store);
        assert!(before == after, "{what} changes the store:\n{before:?}\n{after:?}");
    }
}

/// A transaction is not shown what others write by key while it makes row groups of the rows that it found, and its commit is refused.
#[test]
fn rows_that_come_while_they_are_made_row_groups() {
    let (_, store) = made();
    let tx = store.transaction().unwrap();
    store.table("k").upsert(three(&[7], &[70], &["g"]), &Default::default()).unwrap();
    tx.table("k").update(&set("v", "v + 1"), None, &Default::default()).unwrap();
    let rows: usize = tx.table("k").collect(&Default::default()).unwrap().iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows, 4);
    assert_eq!(tx.commit().unwrap_err().kind(), ErrorKind::Conflict);
    // One that is run again sees them.
    store.transact(|tx| tx.table("k").update(&set("v", "v + 1"), None, &Default::default()).map(drop)).unwrap();
    let rows: usize = store.table("k").collect(&Default::default()).unwrap().iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows, 5);
    assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
}

/// Rows in memory get a version to be compared, and retention lets go what they are compared with: not before that is done.
#[test]
fn a_difference_has_what_it_compares() {
    let (_, store) = made();
    store.set_retention("k", Some(Retention::KeepLast(1))).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    let newest = || store.table("k").versions().unwrap().pop().unwrap().version;
    for (n, since) in [(7, newest()), (8, Version(newest().0 + 1))] {
        store.table("k").upsert(three(&[n], &[70], &["g"]), &Default::default()).unwrap();
        let diff = store.table("k").diff(&AsOf::Version(since), &AsOf::Newest, &Default::default()).unwrap();
        let rows: Vec<RecordBatch> = diff.collect::<drumlin::Result<_>>().unwrap();
        assert_eq!(rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
        assert!(newest() > since);
    }
    store.snapshot("last", "k").unwrap();
    store.table("k").upsert(three(&[9], &[70], &["g"]), &Default::default()).unwrap();
    let told = store.table("k").diff(&AsOf::Snapshot("last".into()), &AsOf::Newest, &Default::default()).unwrap();
    assert_eq!(told.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 1);
    assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
}
