//! Purges: after one, no byte of the store has what was erased, and nothing else has changed. Random ones are part of the
//! model (wide_op.rs).

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int32Type};
use drumlin::base::{ManualClock, Task, Timestamp, Version};
use drumlin::catalog::Retention;
use drumlin::storage::{CrashPoint, DiskFault, SimDisk};
use drumlin::store::{AsOf, Options, PurgeReceipt, ReadOptions, TableOptions, WriteOptions};
use drumlin::table::{Alter, NewColumn};
use drumlin::{ErrorKind, Event, Existing, Expression, Filter, Store, TableAction, Tables};

use crate::support::{Checked, env, open_shared};

const SECRET: &str = "jane.roe@secret.example";

fn open(disk: &SimDisk, inline_bytes: u64, shared: bool) -> drumlin::Result<Store> {
    let clock = Arc::new(ManualClock::new(Timestamp(5_000_000)));
    if shared {
        return open_shared(disk, &clock, 2);
    }
    let options = Options { inline_bytes, ..Options::default() };
    drumlin::store::open_on(Arc::new(disk.clone()), env(&clock, 1, 2), "sim", options)
}

/// Rows of which those with an id that `has` accepts have the secret, in columns of many types.
fn rows(ids: std::ops::Range<i64>, kind: usize, has: impl Fn(i64) -> bool) -> RecordBatch {
    let text = |id: i64| match (has(id), kind) {
        (true, 0 | 1) => SECRET.to_owned(),
        (true, _) => format!("{SECRET} {}", "wrote a long letter about this and that ".repeat(3)),
        (false, 0) => format!("group {}", id % 7),
        (false, 1) => format!("user{id}@example.org"),
        (false, _) => format!("{id} wrote a long letter about this and that, number {}", id * 7919 % 1009),
    };
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(ids.clone().map(text)));
    let keyed = cast(&texts, &DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))).unwrap();
    let binary = cast(&texts, &DataType::Binary).unwrap();
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(ids.clone().map(|id| Some(vec![Some(id as i32); 2])));
    let inner = StructArray::from(vec![
        (Arc::new(Field::new("who", keyed.data_type().clone(), true)), keyed.clone()),
        (Arc::new(Field::new("what", DataType::Utf8, true)), texts.clone()),
    ]);
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(ids));
    RecordBatch::try_from_iter([
        ("id", numbers),
        ("mail", texts),
        ("tag", keyed),
        ("raw", binary),
        ("list", Arc::new(lists) as ArrayRef),
        ("inner", Arc::new(inner) as ArrayRef),
    ])
    .unwrap()
}

fn mails(batches: &[RecordBatch]) -> Vec<(i64, String)> {
    let mut found = Vec::new();
    for batch in batches {
        let ids = batch.column_by_name("id").unwrap().as_primitive::<arrow::datatypes::Int64Type>().clone();
        let texts = cast(batch.column_by_name("mail").unwrap(), &DataType::Utf8).unwrap();
        let texts = texts.as_string::<i32>();
        found.extend((0..batch.num_rows()).map(|at| (ids.value(at), texts.value(at).to_owned())));
    }
    found
}

/// Where the bytes of `secret` are.
fn places(disk: &SimDisk, secret: &str) -> Vec<String> {
    let has = |content: &[u8]| content.windows(secret.len()).any(|bytes| bytes == secret.as_bytes());
    disk.files().into_iter().filter(|(_, content)| has(content)).map(|(name, _)| name).collect()
}

fn secret() -> Filter {
    Filter::parse(&format!("mail like '{SECRET}%'")).unwrap()
}

fn purge(store: &Store, pattern: &str) -> PurgeReceipt {
    store.purge(pattern, &secret()).unwrap().execute(&Task::default()).unwrap()
}

/// All versions of all tables, and all snapshots.
fn everything(store: &Store) -> BTreeMap<String, Vec<(i64, String)>> {
    let mut all = BTreeMap::new();
    let tables = store.tree().list("**").unwrap().into_iter().filter(|entry| entry.table.is_some());
    for path in tables.map(|entry| entry.path) {
        for version in store.table(&path).versions().unwrap() {
            let options = ReadOptions { as_of: AsOf::Version(version.version), ..ReadOptions::default() };
            let found = mails(&store.table(&path).collect(&options).unwrap());
            assert_eq!(version.rows, found.len() as u64, "{path} version {}", version.version);
            all.insert(format!("{path} {}", version.version), found);
        }
    }
    for snapshot in store.snapshots().unwrap() {
        for (path, _) in &snapshot.versions().unwrap() {
            let options = ReadOptions { as_of: AsOf::Snapshot(snapshot.name.clone()), ..ReadOptions::default() };
            let found = mails(&store.table(path).collect(&options).unwrap());
            all.insert(format!("{path} in {}", snapshot.name), found);
        }
    }
    all
}

fn without_secret(mut all: BTreeMap<String, Vec<(i64, String)>>) -> BTreeMap<String, Vec<(i64, String)>> {
    all.values_mut().for_each(|rows| rows.retain(|(_, mail)| !mail.contains("jane.roe")));
    all
}

/// A store with the secret wherever it can be: versions, snapshots, copies that were vacuumed apart, the trash, restored
/// versions, rows in memory, histories, commits, blocks shared with other tables, deleted rows.
fn everywhere(disk: &SimDisk, kind: usize, sorted: usize, inline: u64, shared: bool) -> Store {
    let store = open(disk, inline, shared).unwrap();
    let sort = ["id".to_owned()];
    let spec = |n: usize| TableOptions {
        sort: if n == 1 { sort.to_vec() } else { Vec::new() },
        key: if n == 2 { sort.to_vec() } else { Vec::new() },
        ..TableOptions::default()
    };
    let none = WriteOptions::default();
    let few = |id: i64| id % 50 == 5;
    let schema = rows(0..1, kind, few).schema();
    for path in ["users/a", "users/gone", "others"] {
        store.table(path).create(schema.clone(), spec(sorted)).unwrap();
    }
    let frame = |path: &str| (path.to_owned(), rows(0..300, kind, few).into());
    let other = ("others".to_owned(), rows(0..300, 1, |_| false).into());
    store.write_many(vec![frame("users/a"), frame("users/gone"), other], &none).unwrap();
    for version in 1..10 {
        store.append("users/a", rows(version * 1000..version * 1000 + 20, kind, few), &none).unwrap();
        if version == 3 {
            store.copy("users/a", "backup/a", &AsOf::Newest, Existing::Refuse).unwrap();
            store.snapshot("first", "users/**").unwrap();
        }
        if version == 4 {
            // Of half of the rows one column is written again: a patch, below which it lies once more.
            let set = [("mail".to_owned(), Expression::parse("mail").unwrap())];
            store.table("users/a").update(&set, Some("id % 2 = 0"), &Default::default()).unwrap();
        }
        if version == 5 {
            store.table("users/a").delete("id < 100 or id = 3005", &Default::default()).unwrap();
            store.checkpoint(&Default::default()).unwrap();
            store.snapshot("second", "users/a").unwrap();
        }
    }
    store.restore("users/a", &AsOf::Version(Version(2))).unwrap();
    store.table("backup/a").delete("id % 2 = 0", &Default::default()).unwrap();
    store.snapshot("third", "backup/**").unwrap();
    store.drop("users/gone").unwrap();
    // The copy is written apart from what it was copied from.
    let plan = drumlin::table::PlanOptions { dead_share_min: 0.0, ..Default::default() };
    store.checkpoint(&drumlin::store::CheckpointOptions { plan, ..Default::default() }).unwrap();
    store.append("users/a", rows(20_000..20_010, kind, |_| true), &none).unwrap();
    if sorted == 2 {
        let upsert = |ids, has: &dyn Fn(i64) -> bool| {
            store.table("users/a").upsert(rows(ids, kind, has), &none).unwrap();
        };
        upsert(30_000..30_005, &|_| true);
        upsert(30_003..30_009, &|id| id == 30_008);
        store.checkpoint(&Default::default()).unwrap();
        upsert(40_000..40_003, &|_| true);
        upsert(40_001..40_005, &|id| id == 40_003);
    }
    store
}

/// After a purge nothing has the secret, and everything else is as it was.
pub fn nothing_is_left() -> Checked {
    for (kind, sorted, inline, shared) in [
        (0, 0, 65_536, false),
        (1, 2, 65_536, false),
        (2, 1, 0, false),
        (2, 2, 0, true),
        (1, 0, 65_536, true),
        (1, 0, 0, false),
    ] {
        let what = format!("texts {kind}, sorted {sorted}, inline {inline}, shared {shared}");
        let disk = SimDisk::in_memory();
        let store = everywhere(&disk, kind, sorted, inline, shared);
        assert!(!places(&disk, SECRET).is_empty(), "{what}");
        if sorted == 2 {
            // What is in memory gets a version in any case.
            store.checkpoint(&Default::default()).unwrap();
        }
        let expected = without_secret(everything(&store));
        let plan = store.purge("users/**", &secret()).unwrap().plan(&Task::default()).unwrap();
        let receipt = purge(&store, "users/**");
        if plan.tables != receipt.erased.tables || plan.rows == 0 {
            return Err(format!("{what}: planned {plan:?}, did {:?}", receipt.erased));
        }
        if !receipt.held.is_empty() || receipt.proof.matching != 0 || receipt.proof.blocks_with_unused_bytes != 0 {
            return Err(format!("{what}: {:?} {:?}", receipt.held, receipt.proof));
        }
        let found = everything(&store);
        if found != expected {
            let differs: Vec<_> = found.iter().filter(|(key, rows)| expected.get(*key) != Some(rows)).collect();
            return Err(format!("{what}: {:?} differ", differs.iter().map(|(key, _)| key).collect::<Vec<_>>()));
        }
        for part in [SECRET, "jane.roe", "ane.roe@sec"] {
            let left = places(&disk, part);
            if !left.is_empty() {
                return Err(format!("{what}: '{part}' is left in {left:?}"));
            }
        }
        store.undrop("users/gone", None).unwrap();
        assert_eq!(mails(&store.table("users/gone").collect(&Default::default()).unwrap()).len(), 294, "{what}");
        assert_eq!(store.verify(&Default::default()).unwrap().faults, [], "{what}");
        // Each deleted object is listed once, and none is there.
        let names: Vec<&String> = receipt.deleted.iter().map(|object| &object.name).collect();
        assert!(names.iter().any(|name| name.starts_with("blocks/")), "{what}: {names:?}");
        assert!(disk.files().iter().all(|(name, _)| !names.contains(&name)), "{what}");
        store.close().unwrap();
        let store = open(&disk, inline, shared).unwrap();
        let again = purge(&store, "users/**");
        assert_eq!((again.erased.rows, again.held.len()), (0, 0), "{what}");
        store.drop("users/gone").unwrap();
        assert_eq!(everything(&store), expected, "{what}, opened again");
    }
    Ok(())
}

#[test]
fn nothing_is_left_of_erased_rows() {
    nothing_is_left().unwrap();
}

// faults: crash x delete, checkpoint, reclaim
#[test]
fn a_purge_that_a_crash_ended_is_ended_by_another() {
    let (mut struck, mut at) = (0, 0);
    loop {
        let moment = [CrashPoint::Before, CrashPoint::During, CrashPoint::After][at as usize % 3];
        let disk = SimDisk::new();
        let store = everywhere(&disk, 1, 2, 65_536, false);
        store.checkpoint(&Default::default()).unwrap();
        let before = everything(&store);
        disk.plan(disk.counters().changes + at, DiskFault::Crash(moment));
        let done = store.purge("users/**", &secret()).unwrap().execute(&Task::default());
        if done.is_ok() {
            assert!(at > 20, "a purge of {at} operations");
            break;
        }
        struck += 1;
        drop(store);
        let disk = disk.crash(at);
        let store = open(&disk, 65_536, false).unwrap();
        let (found, expected) = (everything(&store), without_secret(before.clone()));
        assert!(found == before || found == expected, "change {at}: a part of the rows is gone");
        let receipt = purge(&store, "users/**");
        assert_eq!((receipt.held, receipt.proof.matching), (Vec::new(), 0), "change {at}");
        assert_eq!(everything(&store), expected, "change {at}");
        assert_eq!(places(&disk, SECRET), Vec::<String>::new(), "change {at}");
        at += 1;
    }
    assert!(struck > 20);
}

#[test]
fn readers_and_events_are_told() {
    let disk = SimDisk::in_memory();
    let store = open(&disk, 0, false).unwrap();
    store.write("t", rows(0..1000, 1, |id| id == 5), &WriteOptions::default()).unwrap();
    let mut feed = store.changes(store.seq().unwrap()).unwrap();
    let scan = store.table("t").read(&ReadOptions::default()).unwrap();
    let receipt = purge(&store, "t");
    // What is being read stays.
    assert_eq!(receipt.proof.matching, 0);
    let [held] = receipt.held.as_slice() else { panic!("{:?}", receipt.held) };
    assert!(held.what.starts_with("blocks/") && held.why.contains("reader"), "{held:?}");
    assert!(!receipt.is_complete() && receipt.to_json().contains("\"where\": \"mail like"));
    let shown: usize = scan.collect().unwrap().iter().map(RecordBatch::num_rows).sum();
    assert_eq!(shown, 1000);
    let receipt = purge(&store, "t");
    assert!(receipt.is_complete(), "{:?}", receipt.held);
    assert_eq!(places(&disk, SECRET), Vec::<String>::new());
    let commit = feed.next(Some(std::time::Duration::ZERO)).unwrap();
    let events: Vec<Event> = commit.map(|commit| commit.events().unwrap()).unwrap_or_default();
    let purged = |event: &Event| matches!(event, Event::Table(event) if event.action == TableAction::Purge);
    assert!(events.iter().any(purged), "{events:?}");
}

/// A scan of another process that has returned rows does not go on in a version that lost some.
pub fn scans_end() -> Checked {
    let disk = SimDisk::new();
    let (reader, writer) = (open(&disk, 0, true).unwrap(), open(&disk, 0, true).unwrap());
    for part in 0..40 {
        let has = |id: i64| id % 1000 == 5;
        let frame = rows(part * 1000..part * 1000 + 1000, 1, has);
        match part {
            0 => writer.write("t", frame, &WriteOptions::default()).unwrap(),
            _ => writer.append("t", frame, &WriteOptions::default()).unwrap(),
        };
    }
    reader.refresh().unwrap();
    let mut scan = reader.table("t").read(&ReadOptions::default()).unwrap();
    let first = scan.next().unwrap().unwrap().num_rows();
    purge(&writer, "t");
    let rest: Result<Vec<RecordBatch>, _> = scan.collect();
    match rest {
        Err(e) if e.kind() == ErrorKind::SnapshotExpired => {}
        Err(e) => return Err(e.to_string()),
        Ok(rest) => {
            let rows = first + rest.iter().map(RecordBatch::num_rows).sum::<usize>();
            return Err(format!("it went on, to {rows} rows"));
        }
    }
    let rows: usize = reader.table("t").collect(&Default::default()).unwrap().iter().map(RecordBatch::num_rows).sum();
    if rows == 40_000 - 40 { Ok(()) } else { Err(format!("{rows} rows afterwards")) }
}

#[test]
fn a_scan_of_another_process_ends() {
    scans_end().unwrap();
}

#[test]
fn names_are_those_of_each_version() {
    let store = open(&SimDisk::in_memory(), 0, false).unwrap();
    store.write("t", rows(0..100, 1, |id| id == 5), &WriteOptions::default()).unwrap();
    let table = store.table("t");
    table.alter(&Alter::Rename(vec![("mail".into(), "address".into())]), &Default::default()).unwrap();
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["nobody"]));
    let column = NewColumn { field: Field::new("mail", DataType::Utf8, true), fill: drumlin::Fill::Default(texts) };
    table.alter(&Alter::Add(vec![column]), &Default::default()).unwrap();
    // The first version calls the old column so; the newest another, which has one value.
    let receipt = purge(&store, "t");
    assert_eq!(receipt.erased.rows, 1);
    let nobody = Filter::parse("mail = 'nobody'").unwrap();
    let plan = store.purge("t", &nobody).unwrap().plan(&Task::default()).unwrap();
    assert_eq!(plan.rows, 99);
    let missing = Filter::parse("postcode = 5").unwrap();
    let e = store.purge("t", &missing).unwrap().execute(&Task::default()).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("postcode"), "{e}");
    let e = store.purge("nothing/**", &missing).unwrap().execute(&Task::default()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
    store.write("u", rows(0..10, 1, |_| false), &WriteOptions::default()).unwrap();
    let address = Filter::parse("address = 'user7@example.org'").unwrap();
    let receipt = store.purge("*", &address).unwrap().execute(&Task::default()).unwrap();
    let not_covered: Vec<&str> = receipt.erased.not_covered.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!((receipt.erased.rows, not_covered), (1, vec!["t", "u"]), "{:?}", receipt.erased);
}

/// Rows by their places, and metadata without a version.
#[test]
fn rows_are_read_by_place_and_metadata_change_alone() {
    let store = open(&SimDisk::in_memory(), 0, false).unwrap();
    store.write("t", rows(0..130_000, 1, |_| false), &WriteOptions::default()).unwrap();
    store.append("t", rows(130_000..130_100, 1, |_| false), &WriteOptions::default()).unwrap();
    let table = store.table("t");
    for filter in [None, Some("id >= 0")] {
        for (offset, limit) in [(0, 5), (3, 10), (122_879, 3), (129_999, 2), (130_090, 50), (200_000, 1), (0, 0)] {
            let filter = filter.map(|text| Filter::parse(text).unwrap());
            let scan = drumlin::table::ScanOptions { offset, limit: Some(limit), filter, ..Default::default() };
            let found = mails(&table.collect(&ReadOptions::from(scan.clone())).unwrap());
            let ids: Vec<i64> = found.iter().map(|(id, _)| *id).collect();
            let expected: Vec<i64> = (0..130_100).skip(offset as usize).take(limit as usize).collect();
            assert_eq!(ids, expected, "{offset} {limit} {:?}", scan.filter);
            let all = drumlin::table::ScanOptions { limit: None, ..scan };
            let found = mails(&table.collect(&ReadOptions::from(all)).unwrap());
            assert_eq!(found.len() as u64, 130_100_u64.saturating_sub(offset));
        }
    }
    let tail = drumlin::table::ScanOptions { offset: 1, tail: Some(1), ..Default::default() };
    let refused = table.collect(&ReadOptions::from(tail)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    store.snapshot("s", "t").unwrap();
    table.set_metadata(&AsOf::Version(Version(0)), Some("\"first\"".into())).unwrap();
    store.transact(|tx| tx.table("t").set_metadata(&AsOf::Snapshot("s".into()), Some("2".into()))).unwrap();
    let noted = |store: &Store| -> Vec<Option<String>> {
        store.table("t").versions().unwrap().into_iter().map(|version| version.metadata).collect()
    };
    assert_eq!(noted(&store), [Some("\"first\"".to_owned()), Some("2".to_owned())]);
    table.set_metadata(&AsOf::Newest, None).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    assert_eq!(noted(&store), [Some("\"first\"".to_owned()), None]);
    let missing = table.set_metadata(&AsOf::Version(Version(7)), None).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

#[test]
fn a_purge_that_is_stopped_says_how_far_it_came() {
    let disk = SimDisk::in_memory();
    let store = open(&disk, 0, false).unwrap();
    store.write("t", rows(0..1000, 1, |id| id == 5), &WriteOptions::default()).unwrap();
    let before = everything(&store);
    let purge = store.purge("t", &secret()).unwrap();
    for steps in 0.. {
        let cancel = drumlin::base::Cancel::default();
        let (stop, left) = (cancel.clone(), std::sync::atomic::AtomicI64::new(steps));
        let progress = move |_| {
            if left.fetch_sub(1, std::sync::atomic::Ordering::SeqCst) == 0 {
                stop.cancel();
            }
        };
        let task = Task { cancel, progress: Some(Arc::new(progress)) };
        let Err(e) = purge.execute(&task) else {
            assert!(steps > 2, "{steps} steps");
            break;
        };
        assert_eq!(e.kind(), ErrorKind::Cancelled, "{e}");
        let gone = everything(&store) != before;
        assert_eq!(gone, e.to_string().contains("removed from all versions"), "after {steps} steps: {e}");
        assert_eq!(!gone, e.to_string().contains("nothing was changed"), "after {steps} steps: {e}");
        if gone {
            // What follows from that state is done by the same purge.
            assert!(purge.execute(&Task::default()).unwrap().is_complete());
            break;
        }
    }
    assert_eq!(places(&disk, SECRET), Vec::<String>::new());
}

/// A copy of version 0 hides the rows that came later as version 0 hides what was erased.
#[test]
fn copies_of_the_first_version_are_no_erasures() {
    let store = open(&SimDisk::in_memory(), 0, false).unwrap();
    store.write("t", rows(0..100, 1, |id| id == 5), &WriteOptions::default()).unwrap();
    store.append("t", rows(100..200, 1, |id| id == 105), &WriteOptions::default()).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    store.copy("t", "u", &AsOf::Version(Version(0)), Existing::Refuse).unwrap();
    let expected = without_secret(everything(&store));
    let receipt = purge(&store, "t");
    assert!(receipt.is_complete() && receipt.erased.rows == 2, "{:?}", receipt);
    assert_eq!(everything(&store), expected);
}

/// Categories of pandas frames are described in the metadata of the schema.
#[test]
fn categories_that_no_row_has_any_more_leave_the_schema() {
    let disk = SimDisk::in_memory();
    let store = open(&disk, 0, false).unwrap();
    let keyed = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let texts: ArrayRef = Arc::new(StringArray::from(vec![SECRET, "a", "b", "a"]));
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
    let frame = RecordBatch::try_from_iter([("id", ids), ("mail", cast(&texts, &keyed).unwrap())]).unwrap();
    let made = |texts: &str| {
        format!("{{\"columns\":{{\"mail\":{{\"categories\":{{\"texts\":[{texts}]}}}}}},\"other\":[\"a\"]}}")
    };
    let before = made(&format!("\"{SECRET}\",\"a\",\"b\",\"never used\""));
    let metadata = std::collections::HashMap::from([("drumlin.pandas".to_owned(), before)]);
    let schema = Arc::new(frame.schema().as_ref().clone().with_metadata(metadata));
    let frame = RecordBatch::try_new(schema, frame.columns().to_vec()).unwrap();
    store.write("t", frame, &WriteOptions::default()).unwrap();
    let receipt = store.purge("t", &Filter::parse("id < 3").unwrap()).unwrap().execute(&Task::default()).unwrap();
    assert!(receipt.is_complete(), "{:?}", receipt.held);
    assert_eq!(places(&disk, SECRET), Vec::<String>::new());
    let schema = store.table("t").schema(&AsOf::Newest).unwrap();
    assert_eq!(schema.metadata()["drumlin.pandas"], made("\"a\",\"b\",\"never used\""));
}

/// The dictionary of a frame is kept with all its values in each of its row groups.
#[test]
fn dictionaries_of_other_row_groups_lose_what_was_erased() {
    let disk = SimDisk::in_memory();
    let store = open(&disk, 0, false).unwrap();
    let n = 250_000;
    let text = |id: i64| if id == 5 { SECRET.to_owned() } else { format!("group {}", id % 7) };
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..n).map(text)));
    let keyed = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..n));
    let frame = RecordBatch::try_from_iter([("id", ids), ("mail", cast(&texts, &keyed).unwrap())]).unwrap();
    store.write("t", frame, &WriteOptions::default()).unwrap();
    let receipt = store.purge("t", &Filter::parse("id = 5").unwrap()).unwrap().execute(&Task::default()).unwrap();
    assert_eq!((receipt.erased.rows, receipt.erased.row_groups, receipt.held), (1, 1, Vec::new()));
    assert_eq!(places(&disk, SECRET), Vec::<String>::new());
    let found = mails(&store.table("t").collect(&Default::default()).unwrap());
    let expected: Vec<(i64, String)> = (0..n).filter(|id| *id != 5).map(|id| (id, text(id))).collect();
    assert!(found == expected);
}

#[test]
fn only_what_has_such_rows_is_written_again() {
    let disk = SimDisk::in_memory();
    let store = open(&disk, 0, false).unwrap();
    for table in 0..20 {
        let path = format!("t/{table:02}");
        store.write(&path, rows(0..2000, 1, |id| table == 7 && id == 5), &WriteOptions::default()).unwrap();
    }
    store.set_retention("t", Some(Retention::KeepLast(2))).unwrap();
    let plan = store.purge("t/*", &secret()).unwrap().plan(&Task::default()).unwrap();
    assert_eq!((plan.row_groups, plan.tables.len(), plan.rows), (1, 1, 1));
    let receipt = purge(&store, "t/*");
    assert_eq!(receipt.proof.row_groups, 20);
    assert_eq!(receipt.proof.rows, 20 * 2000 - 1);
    assert!(receipt.bytes_written < 2 * plan.bytes, "{} of {}", receipt.bytes_written, plan.bytes);
    let blocks = receipt.deleted.iter().filter(|object| object.name.starts_with("blocks/")).count();
    assert_eq!(blocks, 1, "{:?}", receipt.deleted);
}
