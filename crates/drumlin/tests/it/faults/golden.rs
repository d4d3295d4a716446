//! A store made by an earlier build, kept with the sources: it opens, and returns the same results as then.
//!
//! `cargo test --release --test it make_golden -- --ignored` makes the one of the present format; a new one is made
//! only for a new format version, in addition to the old ones.

mod covered;
mod elsewhere;
mod expiring;
mod followed;
mod generated;
mod indexed;
mod laid_out;
mod present;
mod versions;
mod viewed;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float64Array,
    Int8Array, Int64Array, ListArray, RecordBatch, StringArray, StringViewArray, StructArray, TimestampNanosecondArray,
    UInt64Array,
};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Int8Type, Int32Type};
use arrow::util::display::array_value_to_string;
use drumlin::base::{Timestamp, Version};
use drumlin::catalog::{self, Action, Compare, Condition, Pattern, Payload, Projection, PutOptions, TriggerFilter};
use drumlin::store::{
    AsOf, Mode, Options, ReadOptions, Split, SplitOptions, SplitReader, Stage, StageOptions, StagedCommit,
    TableOptions, Ticket, Token, WriteOptions,
};
use drumlin::table::ScanOptions;
use drumlin::{
    Alter, Constraints, ErrorKind, Existing, Expression, Fill, Filter, Merge, NewColumn, Store, Tables, Task, Turnover,
    WhenMatched, WhenNotMatched,
};

use self::versions::REFUSED;
pub use self::versions::VERSIONS;
use crate::support::{batch, numbered, read, rows};

/// Where a store is.
pub fn folder(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(version)
}

/// A table with a column of every kind of encoding, large enough that they are used.
fn types() -> RecordBatch {
    let n = 3000_i64;
    let ids = 0..n;
    let words = |i: i64| format!("word {} of many, {}", i % 7, i * i % 1009);
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(
        ids.clone().map(|i| (i % 11 != 0).then(|| (0..(i % 4) as i32).map(Some).collect::<Vec<_>>())),
    );
    let inner: ArrayRef = Arc::new(Int8Array::from_iter(ids.clone().map(|i| (i % 3 > 0).then_some((i % 100) as i8))));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("unsigned", Arc::new(UInt64Array::from_iter(ids.clone().map(|i| (i % 9 > 0).then_some(u64::MAX - i as u64))))),
        ("float", Arc::new(Float64Array::from_iter_values(ids.clone().map(|i| i as f64 / 100.0)))),
        (
            "odd float",
            Arc::new(Float64Array::from_iter_values(
                ids.clone().map(|i| [f64::NAN, -0.0, f64::INFINITY][i as usize % 3]),
            )),
        ),
        ("flag", Arc::new(BooleanArray::from_iter(ids.clone().map(|i| (i % 5 > 0).then_some(i % 2 == 0))))),
        ("day", Arc::new(Date32Array::from_iter_values(ids.clone().map(|i| 10_000 + (i / 10) as i32)))),
        (
            "price",
            Arc::new(
                Decimal128Array::from_iter_values(ids.clone().map(|i| i128::from(i) * 12345))
                    .with_precision_and_scale(15, 2)
                    .unwrap(),
            ),
        ),
        (
            "time",
            Arc::new(
                TimestampNanosecondArray::from_iter_values(ids.clone().map(|i| i * 1_000_000_007))
                    .with_timezone("Europe/Paris"),
            ),
        ),
        ("few", Arc::new(StringArray::from_iter_values(ids.clone().map(|i| ["A", "N", "R"][i as usize % 3])))),
        ("many", Arc::new(StringViewArray::from_iter_values(ids.clone().map(words)))),
        ("bytes", Arc::new(BinaryArray::from_iter_values(ids.clone().map(|i| words(i).into_bytes())))),
        (
            "category",
            Arc::new(
                ids.clone()
                    .map(|i| (i % 8 > 0).then(|| ["x", "y", "z"][i as usize % 3]))
                    .collect::<DictionaryArray<Int8Type>>(),
            ),
        ),
        ("list", Arc::new(list)),
        (
            "struct",
            Arc::new(StructArray::from(vec![(
                Arc::new(Field::new("inner", inner.data_type().clone(), true)),
                inner.clone(),
            )])),
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true))).unwrap()
}

fn build(store: &Store) -> drumlin::Result<()> {
    store.write("types/all", types(), &Default::default())?;
    store.write(
        "t/a",
        batch(&numbered(0, 100)),
        &WriteOptions { metadata: Some("{\"by\":1}".into()), ..Default::default() },
    )?;
    store.append("t/a", batch(&numbered(500, 10)), &Default::default())?;
    store.table("t/a").delete("id % 3 = 0", &Default::default())?;
    store.snapshot("held", "t/**")?;
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table("k/t").create(batch(&[]).schema(), key)?;
    store.append("k/t", batch(&numbered(0, 2000)), &Default::default())?;
    store.table("k/t").upsert(batch(&[(5, Some("five".into())), (5000, None)]), &Default::default())?;
    store.checkpoint(&Default::default())?;
    store.write("t/a", batch(&numbered(7, 3)), &Default::default())?;
    store.delete_versions(&[("t/a".into(), vec![Version(3)])], Default::default())?;
    store.append("t/a", batch(&numbered(900, 2)), &Default::default())?;
    let sorted = WriteOptions { sort: Some(vec!["id".into()]), ..Default::default() };
    store.write("t/sorted", batch(&numbered(10, 20)), &sorted)?;
    store.append("t/sorted", batch(&numbered(0, 15)), &Default::default())?;
    store.tree().put("config/x", Payload::json(&serde_json::json!({"url": "u", "n": [1, 2.5, null]})).unwrap())?;
    store.tree().put("config/y", Payload::bytes(&[0, 255]).unwrap())?;
    let field = |text: &str| catalog::Field::new(text).unwrap();
    let pattern = Pattern::new("owned/*").unwrap().and(Condition::HasPayload(true)).unwrap();
    let (key, value) = (vec![field("payload.by"), field("name")], vec![field("path")]);
    store.tree().put_projection("by owner", Projection { pattern: pattern.clone(), key, value, bag: false })?;
    let keep_while = Some(vec![("config/x".to_owned(), Condition::field("n.0", Compare::Less, Payload::from(5)))]);
    let owned = Payload::json(&serde_json::json!({"by": "me"})).unwrap();
    store.tree().put_with("owned/a", owned.clone(), PutOptions { keep_while, ..PutOptions::default() })?;
    store.transact(|tx| {
        for n in 0..300 {
            tx.tree().put(&format!("many/of/them/n{n}"), Payload::from(n))?;
        }
        tx.tree().delete_many("many/of/them/n1*")?;
        tx.tree().clear_payload("many/of/them/n2", None).map(drop)
    })?;
    let filter = TriggerFilter { pattern, actions: vec![Action::Create], priority: 1 };
    store.tree().on_durable("watcher", filter, Arc::new(|_| Ok(())))?;
    store.table("k/t").delete_keys(batch(&numbered(10, 3)), &Default::default())?;
    store.snapshot("keyed", "k/**")?;
    store.table("k/t").upsert(batch(&[(11, Some("again".into()))]), &Default::default())?;
    store.write("t/gone", batch(&numbered(0, 5)), &Default::default())?;
    store.drop("t/gone")?;
    Ok(())
}

/// What catalogs hold since version 6: rows written by key, commit by commit.
fn build_times(store: &Store) -> drumlin::Result<()> {
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table("k/times").create(batch(&[]).schema(), key)?;
    for name in ["a", "b"] {
        store.table("k/times").upsert(batch(&[(1, Some(name.into()))]), &Default::default())?;
    }
    store.checkpoint(&Default::default())?;
    store.table("k/times").upsert(batch(&[(2, None)]), &Default::default())?;
    Ok(())
}

fn check_times(store: &Store) {
    let last = store.table("k/times").versions().unwrap().last().unwrap().time;
    let at = |time| read(store, "k/times", AsOf::Time(time)).unwrap();
    assert_eq!(at(Timestamp(last.0 - 1)), [(1, Some("a".to_owned()))]);
    assert_eq!(at(last), [(1, Some("b".to_owned()))]);
    assert_eq!(read(store, "k/times", AsOf::Newest).unwrap(), [(1, Some("b".to_owned())), (2, None)]);
}

/// What catalogs hold since version 7: a job that was committed, one with staged rows, and a lease. Returns what they are carried
/// as: a split, a ticket and a token. The checkpoint of [`build_times`] puts them into the catalog.
fn build_holds(store: &Store) -> drumlin::Result<[(&'static str, Vec<u8>); 3]> {
    let tables = [("jobs/t".to_owned(), Some(batch(&[]).schema()))];
    let [done, open] = ["done", "open"].map(|job| StageOptions { job: Some(job.into()), ..StageOptions::default() });
    let stage = |ticket: &Ticket| {
        Stage::of(store).write(ticket, "jobs/t", batch(&numbered(0, 20)).into(), Some((1, 0)), &Task::default())
    };
    let ticket = Ticket::open(store, &tables, &done)?;
    ticket.commit(store, vec![stage(&ticket)?], &StagedCommit::default())?;
    let ticket = Ticket::open(store, &tables, &open)?;
    let token = stage(&ticket)?;
    let splits = store.scan("k/t", &Default::default())?.splits(&Default::default(), &SplitOptions::default())?;
    Ok([("split", splits.splits[0].to_bytes()?), ("ticket", ticket.to_bytes()?), ("token", token.to_bytes()?)])
}

fn check_holds(uri: &Path, store: &Store, carried: impl Fn(&str) -> Vec<u8>) {
    assert_eq!(store.stat().unwrap().holds, 2);
    assert_eq!(read(store, "jobs/t", AsOf::Newest).unwrap(), numbered(0, 20));
    let split = Split::from_bytes(&carried("split")).unwrap();
    let reader = SplitReader::open(uri.to_str().unwrap(), &Options::default()).unwrap();
    let found: Vec<RecordBatch> =
        reader.scan(&split, &Default::default()).unwrap().collect::<drumlin::Result<_>>().unwrap();
    assert_eq!(rows(&found), read(store, "k/t", AsOf::Newest).unwrap());
    assert_eq!(Ticket::from_bytes(&carried("ticket")).unwrap().job(), "open");
    assert_eq!(Token::from_bytes(&carried("token")).unwrap().rows(), 20);
}

/// What catalogs hold since version 8: copied, moved and restored tables. The checkpoint of [`build_times`] puts them into the
/// catalog.
fn build_copies(store: &Store) -> drumlin::Result<()> {
    store.copy("t/sorted", "copies/sorted", &AsOf::Newest, Existing::Refuse)?;
    store.restore("copies/sorted", &AsOf::Version(Version(0)))?;
    store.copy("t/a", "copies/one", &AsOf::Version(Version(1)), Existing::Refuse)?;
    store.relocate("copies/one", "copies/moved", Existing::Refuse).map(drop)
}

/// The same in the log.
fn build_copies_in_log(store: &Store) -> drumlin::Result<()> {
    store.copy("copies", "more/copies", &AsOf::Newest, Existing::Refuse)?;
    store.restore("more/copies/sorted", &AsOf::Version(Version(1)))?;
    store.relocate("more", "later", Existing::Refuse).map(drop)
}

fn check_copies(store: &Store) {
    let newest = |path: &str| read(store, path, AsOf::Newest).unwrap();
    let version = |path: &str, number: u64| read(store, path, AsOf::Version(Version(number))).unwrap();
    assert_eq!(newest("copies/sorted"), version("t/sorted", 0));
    assert_eq!(version("copies/sorted", 1), newest("t/sorted"));
    assert_eq!(newest("copies/moved"), version("t/a", 1));
    assert_eq!(newest("later/copies/sorted"), newest("t/sorted"));
    assert_eq!(newest("later/copies/moved"), version("t/a", 1));
    assert_eq!(store.tables("**/copies/*").unwrap().len(), 4);
}

/// What catalogs hold that have the feature of changes: columns that change, rows changed in place, merges. The checkpoint of
/// [`build_times`] puts them into the catalog.
fn build_changes(store: &Store) -> drumlin::Result<()> {
    store.write("changes/t", batch(&numbered(0, 10)), &Default::default())?;
    let table = store.table("changes/t");
    let default: ArrayRef = Arc::new(Float64Array::from(vec![0.5]));
    let added = NewColumn { field: Field::new("weight", DataType::Float64, true), fill: Fill::Default(default) };
    table.alter(&Alter::Add(vec![added]), &Default::default())?;
    table.alter(&Alter::Rename(vec![("name".into(), "label".into())]), &Default::default())?;
    table.update(&[("label".to_owned(), Expression::parse("'set'")?)], Some("id < 3"), &Default::default())?;
    store.table("changes/t").delete("id = 9", &Default::default()).map(drop)
}

/// The same in the log.
fn build_changes_in_log(store: &Store) -> drumlin::Result<()> {
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![2, 50]));
    let source = RecordBatch::try_from_iter([("id", ids)])?;
    let merge = Merge {
        on: vec!["id".into()],
        matched: vec![(None, WhenMatched::Update(vec![("weight".to_owned(), Expression::parse("target.id * 2")?)]))],
        not_matched: vec![(None, WhenNotMatched::InsertAll)],
        ..Merge::default()
    };
    store.table("changes/t").merge(source, &merge, &Default::default())?;
    store.table("changes/t").alter(&Alter::Drop(vec!["label".into()]), &Default::default())?;
    let label = NewColumn { field: Field::new("label", DataType::Utf8, true), fill: Fill::Null };
    store.table("changes/t").alter(&Alter::Add(vec![label]), &Default::default()).map(drop)
}

fn check_changes(store: &Store) {
    // In the order of their numbers, since a merge may move rows.
    let read = |version: u64| {
        let options = ReadOptions { as_of: AsOf::Version(Version(version)), ..ReadOptions::default() };
        let batches = store.table("changes/t").collect(&options).unwrap();
        let text = |column: &ArrayRef, at: usize| array_value_to_string(column, at).unwrap();
        let row = |batch: &RecordBatch, at: usize| batch.columns().iter().map(|c| text(c, at)).collect::<Vec<_>>();
        let rows = batches.iter().flat_map(|b| (0..b.num_rows()).map(|at| row(b, at)).collect::<Vec<_>>());
        let mut rows: Vec<Vec<String>> = rows.collect();
        rows.sort_by_key(|row| row[0].parse::<i64>().unwrap());
        rows
    };
    assert_eq!(read(0)[2], ["2", "name 2"]);
    assert_eq!(read(2)[2], ["2", "name 2", "0.5"]);
    assert_eq!(read(3)[2], ["2", "set", "0.5"]);
    assert_eq!((read(3).len(), read(4).len()), (10, 9));
    assert_eq!(read(5)[2], ["2", "set", "4.0"]);
    assert_eq!(read(7)[2], ["2", "4.0", ""]);
    assert_eq!(read(7)[9], ["50", "0.5", ""]);
}

/// What catalogs hold since version 9: where copied tables came from, when rows were erased, and what versions tell. The checkpoint of
/// [`build_times`] puts them into the catalog.
fn build_erased(store: &Store) -> drumlin::Result<()> {
    store.with_message("twenty rows")?.write("erased/t", batch(&numbered(0, 20)), &Default::default())?;
    store.append("erased/t", batch(&numbered(20, 10)), &Default::default())?;
    store.copy("erased", "copied", &AsOf::Newest, Existing::Refuse)?;
    store.purge("erased/t", &Filter::parse("id % 20 = 5")?)?.execute(&Task::default()).map(drop)
}

/// The same in the log.
fn build_erased_in_log(store: &Store) -> drumlin::Result<()> {
    store.table("erased/t").set_metadata(&AsOf::Version(Version(0)), Some("7".into()))?;
    store.with_message("made one")?.write("told", batch(&numbered(0, 1)), &Default::default())?;
    let other = Store::open_with("memory://", Options::default())?;
    other.write("adopted", batch(&numbered(0, 5)), &Default::default())?;
    other.table("adopted").delete("id = 2", &Default::default())?;
    other.copy_to(store, "adopted", &Default::default()).map(drop)
}

fn check_erased(store: &Store) {
    let left = |n: usize| numbered(0, n).into_iter().filter(|(id, _)| id % 20 != 5).collect::<Vec<_>>();
    for path in ["erased/t", "copied/t"] {
        assert_eq!(read(store, path, AsOf::Version(Version(0))).unwrap(), left(20));
        assert_eq!(read(store, path, AsOf::Newest).unwrap(), left(30));
    }
    assert_eq!(store.table("erased/t").versions().unwrap()[0].metadata.as_deref(), Some("7"));
    let told = |path: &str| store.history(path, None).unwrap().pop().unwrap().1;
    for (path, rows, message) in
        [("erased/t", 20, "twenty rows"), ("copied/t", 20, "twenty rows"), ("told", 1, "made one")]
    {
        let info = told(path);
        assert_eq!(
            (info.turnover, info.note.message.as_deref()),
            (Some(Turnover { added: rows, removed: 0 }), Some(message))
        );
    }
    assert_eq!(read(store, "adopted", AsOf::Version(Version(0))).unwrap(), numbered(0, 5));
    assert_eq!(read(store, "adopted", AsOf::Newest).unwrap().len(), 4);
    // The copy is known as one, though it was written apart.
    let plan = store.purge("erased/t", &Filter::parse("id = 7").unwrap()).unwrap().plan(&Task::default()).unwrap();
    assert_eq!((plan.tables.len(), plan.rows), (2, 2));
}

/// What catalogs hold that have the feature of patches. The checkpoint of [`build_times`] puts them into the catalog.
fn build_patches(store: &Store) -> drumlin::Result<()> {
    // More than travels in a commit.
    let noise = |at: i64| at.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(at << 17);
    let column = |of: &dyn Fn(i64) -> i64| Arc::new(Int64Array::from_iter_values((0..12_000).map(of))) as ArrayRef;
    let columns = [("id", column(&|id| id)), ("noise", column(&noise)), ("n", column(&|id| id % 7))];
    let added =
        NewColumn { field: Field::new("m", DataType::Int64, true), fill: Fill::Computed(Expression::parse("n + 1")?) };
    store.write("patched/t", RecordBatch::try_from_iter(columns)?, &Default::default())?;
    store.table("patched/t").alter(&Alter::Add(vec![added]), &Default::default())?;
    store.table("patched/t").update(
        &[("n".to_owned(), Expression::parse("10")?)],
        Some("id < 3"),
        &Default::default(),
    )?;
    store.copy("patched", "patched-copy", &AsOf::Newest, Existing::Refuse).map(drop)
}

/// The same in the log.
fn build_patches_in_log(store: &Store) -> drumlin::Result<()> {
    let set = [("m".to_owned(), Expression::parse("m * 100")?)];
    store.table("patched-copy/t").update(&set, Some("id = 1"), &Default::default())?;
    store.table("patched-copy/t").delete("id = 2", &Default::default()).map(drop)
}

fn check_patches(store: &Store) {
    let first = |path: &str, as_of: AsOf| {
        let filter = Some(Filter::parse("id < 4").unwrap());
        let columns = Some(vec!["id".to_owned(), "n".to_owned(), "m".to_owned()]);
        let scan = ScanOptions { filter, columns, ..ScanOptions::default() };
        let batches = store.table(path).collect(&ReadOptions::of(as_of, scan)).unwrap();
        let row = |batch: &RecordBatch, at: usize| -> Vec<String> {
            batch.columns().iter().map(|column| array_value_to_string(column, at).unwrap()).collect()
        };
        batches
            .iter()
            .flat_map(|b| (0..b.num_rows()).map(|at| row(b, at).join(" ")).collect::<Vec<_>>())
            .collect::<Vec<_>>()
    };
    assert_eq!(first("patched/t", AsOf::Version(Version(2))), ["0 0 1", "1 1 2", "2 2 3", "3 3 4"]);
    assert_eq!(first("patched/t", AsOf::Newest), ["0 10 1", "1 10 2", "2 10 3", "3 3 4"]);
    assert_eq!(first("patched-copy/t", AsOf::Newest), ["0 10 1", "1 10 200", "3 3 4"]);
}

/// What catalogs hold that have the features of constraints and of orders. The checkpoint of [`build_times`] puts them into the
/// catalog.
fn build_order(store: &Store) -> drumlin::Result<()> {
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table("order/t").create(batch(&[]).schema(), key)?;
    store.table("order/t").upsert(batch(&numbered(0, 10)), &Default::default())?;
    let rename = |from: &str, to: &str| Alter::Rename(vec![(from.into(), to.into())]);
    store.table("order/t").alter(&rename("id", "number"), &Default::default())?;
    let constraints = Constraints {
        checks: vec![("least".into(), Filter::parse("number >= 0")?)],
        not_null: Vec::new(),
        defaults: vec![("name".into(), Arc::new(StringArray::from(vec!["none"])))],
        ..Constraints::default()
    };
    store.table("order/t").alter(&Alter::AddConstraints(constraints), &Default::default()).map(drop)
}

/// The same in the log.
fn build_order_in_log(store: &Store) -> drumlin::Result<()> {
    store.write(
        "order/s",
        batch(&numbered(0, 10)),
        &WriteOptions { sort: Some(vec!["id".into()]), ..Default::default() },
    )?;
    let rename = Alter::Rename(vec![("id".into(), "at".into())]);
    store.table("order/s").alter(&rename, &Default::default())?;
    let constraints = Constraints { not_null: vec!["at".into()], ..Constraints::default() };
    store.table("order/s").alter(&Alter::AddConstraints(constraints), &Default::default())?;
    let numbers = |number: i64| ("number", Arc::new(Int64Array::from(vec![number])) as ArrayRef);
    let named = ("name", Arc::new(StringArray::from(vec!["none"])) as ArrayRef);
    // The first gets the default.
    store.table("order/t").upsert(RecordBatch::try_from_iter([numbers(10)])?, &Default::default())?;
    let whole = RecordBatch::try_from_iter([numbers(3), named])?;
    store.table("order/t").upsert(whole, &Default::default()).map(drop)
}

fn check_order(store: &Store) {
    assert_eq!(store.table("order/t").order().unwrap().key, ["number"]);
    assert_eq!(store.table("order/s").order().unwrap().sort, ["at"]);
    assert_eq!(store.table("order/s").constraints(&AsOf::Newest).unwrap().not_null, ["at"]);
    assert_eq!(
        store.table("order/t").constraints(&AsOf::Newest).unwrap().checks,
        [("least".to_owned(), "number >= 0".to_owned())]
    );
    let keys = RecordBatch::try_from_iter([("number", Arc::new(Int64Array::from(vec![10, 3, 4, 11])) as ArrayRef)]);
    let found = store.table("order/t").get_many(&keys.unwrap(), &Default::default()).unwrap();
    let names = found.rows.column_by_name("name").unwrap();
    let names: Vec<Option<&str>> = names.as_string::<i32>().iter().collect();
    assert_eq!(names, [Some("none"), Some("none"), Some("name 4"), None]);
    assert_eq!(read(store, "order/s", AsOf::Version(Version(0))).unwrap(), numbered(0, 10));
}

/// Everything; returns what is carried between processes.
fn build_all(store: &Store, shared: bool) -> drumlin::Result<[(&'static str, Vec<u8>); 3]> {
    build(store)?;
    build_copies(store)?;
    build_changes(store)?;
    build_erased(store)?;
    // A purge ends leases.
    let carried = build_holds(store)?;
    build_patches(store)?;
    build_order(store)?;
    generated::build(store)?;
    indexed::build(store)?;
    expiring::build(store)?;
    followed::build(store)?;
    present::build(store, shared)?;
    viewed::build(store)?;
    laid_out::build(store)?;
    covered::build(store)?;
    build_times(store)?;
    build_copies_in_log(store)?;
    build_changes_in_log(store)?;
    build_erased_in_log(store)?;
    build_patches_in_log(store)?;
    build_order_in_log(store)?;
    generated::build_in_log(store)?;
    indexed::build_in_log(store)?;
    expiring::build_in_log(store)?;
    followed::build_in_log(store)?;
    present::build_in_log(store, shared)?;
    viewed::build_in_log(store)?;
    laid_out::build_in_log(store)?;
    covered::build_in_log(store)?;
    Ok(carried)
}

/// That a store holds what [`build`] has put there.
pub fn check(store: &Store) {
    let found = store.table("types/all").collect(&Default::default()).unwrap();
    let expected = types();
    let found = concat_batches(&found[0].schema(), &found).unwrap();
    assert_eq!(found.schema(), expected.schema());
    for (column, field) in expected.schema().fields().iter().enumerate() {
        // Compared as data: NaN must equal NaN here.
        assert_eq!(format!("{:?}", found.column(column)), format!("{:?}", expected.column(column)), "{}", field.name());
    }
    let mut rows = numbered(0, 100);
    assert_eq!(read(store, "t/a", AsOf::Version(Version(0))).unwrap(), rows);
    rows.extend(numbered(500, 10));
    assert_eq!(read(store, "t/a", AsOf::Version(Version(1))).unwrap(), rows);
    rows.retain(|(id, _)| id % 3 != 0);
    assert_eq!(read(store, "t/a", AsOf::Snapshot("held".into())).unwrap(), rows);
    rows.extend(numbered(900, 2));
    assert_eq!(read(store, "t/a", AsOf::Newest).unwrap(), rows);
    let mut keyed = numbered(0, 2000);
    keyed[5].1 = Some("five".into());
    keyed.push((5000, None));
    assert_eq!(read(store, "k/t", AsOf::Version(Version(2))).unwrap(), keyed);
    keyed.drain(10..13);
    assert_eq!(read(store, "k/t", AsOf::Snapshot("keyed".into())).unwrap(), keyed);
    keyed.insert(10, (11, Some("again".into())));
    assert_eq!(read(store, "k/t", AsOf::Newest).unwrap(), keyed);
    let sorted: Vec<i64> = read(store, "t/sorted", AsOf::Newest).unwrap().into_iter().map(|(id, _)| id).collect();
    assert!(sorted.is_sorted() && sorted.len() == 35);
    assert_eq!(store.table("t/a").versions().unwrap()[0].metadata.as_deref(), Some("{\"by\":1}"));
    assert_eq!(
        store.tree().get("config/x").unwrap(),
        Some(Payload::json(&serde_json::json!({"url": "u", "n": [1, 2.5, null]})).unwrap())
    );
    assert_eq!(store.tree().get("config/y").unwrap(), Some(Payload::bytes(&[0, 255]).unwrap()));
    assert_eq!(store.trash().unwrap()[0].path, "t/gone");
    let key = [Payload::try_from("me").unwrap(), Payload::try_from("a").unwrap()];
    let by_owner = store.tree().projection("by owner").unwrap();
    assert_eq!(by_owner.get(&key).unwrap(), Some(Payload::try_from("owned/a").unwrap()));
    assert_eq!(store.tree().count("many/of/them/*").unwrap(), 188);
    assert_eq!(store.tree().node("many/of/them").unwrap().unwrap().children_version, 412);
    assert_eq!(store.tree().triggers().unwrap(), ["watcher"]);
    assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
}

// faults: other format x open
#[test]
fn stores_of_earlier_builds_open() {
    for version in VERSIONS {
        let uri = folder(version);
        let store =
            Store::open_with(uri.to_str().unwrap(), Options { mode: Mode::Read, ..Options::default() }).unwrap();
        check(&store);
        let place = |version: &str| VERSIONS.iter().position(|known| *known == version).expect("one of them");
        let since = |first: &str| place(version) >= place(first);
        let carried = |name: &str| std::fs::read(uri.with_extension(name)).unwrap();
        let checks: [(&str, &dyn Fn()); 15] = [
            ("v6", &|| check_times(&store)),
            ("v7", &|| check_holds(&uri, &store, carried)),
            ("v8", &|| check_copies(&store)),
            ("v8-changes", &|| check_changes(&store)),
            ("v9", &|| check_erased(&store)),
            ("v9-patches", &|| check_patches(&store)),
            ("v9-order", &|| check_order(&store)),
            ("v10-made", &|| generated::check(&uri, &store)),
            ("v10-indexed", &|| indexed::check(&store)),
            ("v10-ttl", &|| expiring::check(&store)),
            ("v10-followed", &|| followed::check(&store)),
            ("v10-present", &|| present::check(&store, version.ends_with("-shared"))),
            ("v10-viewed", &|| viewed::check(&store)),
            ("v10-laid", &|| laid_out::check(&store)),
            ("v10-covered", &|| covered::check(&store)),
        ];
        checks.iter().filter(|(first, _)| since(first)).for_each(|(_, check)| check());
    }
}

// faults: other format x open
#[test]
fn stores_of_formats_no_longer_read_are_refused_with_their_number() {
    for format in REFUSED {
        // A copy, because a lock is taken before the store is read.
        let copy = tempfile::tempdir().unwrap();
        std::fs::copy(folder(&format!("v{format}")).join("format"), copy.path().join("format")).unwrap();
        for mode in [Mode::Read, Mode::Write, Mode::Create] {
            let options = Options { mode, ..Options::default() };
            let refused = Store::open_with(copy.path().to_str().unwrap(), options).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Unsupported);
            let expected = format!("format {format}, and this build reads formats 5");
            assert!(refused.message().contains(&expected), "{refused}");
        }
    }
}

#[test]
fn what_this_build_writes_it_reads_alike() {
    for shared in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let uri = folder.path().join("s");
        let store = Store::open_with(uri.to_str().unwrap(), Options { shared, ..Options::default() }).unwrap();
        let carried = std::collections::BTreeMap::from(build_all(&store, shared).unwrap());
        store.close().unwrap();
        let store =
            Store::open_with(uri.to_str().unwrap(), Options { mode: Mode::Read, ..Options::default() }).unwrap();
        check(&store);
        check_times(&store);
        check_holds(&uri, &store, |name| carried[name].clone());
        check_copies(&store);
        check_changes(&store);
        check_erased(&store);
        check_patches(&store);
        check_order(&store);
        generated::check(&uri, &store);
        indexed::check(&store);
        expiring::check(&store);
        followed::check(&store);
        present::check(&store, shared);
        viewed::check(&store);
        laid_out::check(&store);
        covered::check(&store);
    }
}

#[test]
#[ignore = "makes the files that the other tests read"]
fn make_golden() {
    for uri in VERSIONS.map(folder).iter().filter(|uri| !uri.exists()) {
        let shared = uri.to_str().unwrap().ends_with("-shared");
        let store = Store::open_with(uri.to_str().unwrap(), Options { shared, ..Options::default() }).unwrap();
        for (name, bytes) in build_all(&store, shared).unwrap() {
            std::fs::write(uri.with_extension(name), bytes).unwrap();
        }
        store.close().unwrap();
    }
}
