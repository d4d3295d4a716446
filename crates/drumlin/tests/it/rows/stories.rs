//! What versions tell: rows added and removed, messages, writers, durations. Random operations check the numbers of rows
//! in every comparison with the model (random.rs).

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Int64Array, RecordBatch};
use drumlin::base::{ManualClock, Timestamp, Version};
use drumlin::storage::SimDisk;
use drumlin::store::{AsOf, CheckpointOptions, Options, TableOptions, UpdateOptions, WriteOptions};
use drumlin::{ErrorKind, Event, Existing, Expression, Store, Tables, VersionInfo};

use crate::support::{Checked, env, ints, open, same};

/// Kind, rows added and removed, and message of each version of a table.
fn told(store: &Store, path: &str) -> Vec<(&'static str, Option<(u64, u64)>, Option<String>)> {
    let versions = store.table(path).versions().unwrap();
    let of =
        |info: VersionInfo| (info.kind.name(), info.turnover.map(|rows| (rows.added, rows.removed)), info.note.message);
    versions.into_iter().map(of).collect()
}

fn said(message: &str) -> Option<String> {
    Some(message.to_owned())
}

pub fn stories_outlive_the_log() -> Checked {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    let night = store.with_message("night").unwrap();
    night.write("t", ints(&[("a", (0..10).collect())]), &Default::default()).unwrap();
    store.append("t", ints(&[("a", vec![10, 11])]), &Default::default()).unwrap();
    night.table("t").delete("a < 3", &Default::default()).unwrap();
    let set = [("a".to_owned(), Expression::parse("a + 100").unwrap())];
    store.table("t").update(&set, Some("a % 2 = 0"), &Default::default()).unwrap();
    store.restore("t", &AsOf::Version(Version(1))).unwrap();
    let expected = vec![
        ("write", Some((10, 0)), said("night")),
        ("append", Some((2, 0)), None),
        ("delete", Some((0, 3)), said("night")),
        ("update", Some((4, 4)), None),
        // The row group as it was before the update takes the place of the other.
        ("restore", Some((12, 9)), None),
    ];
    same(&told(&store, "t"), &expected, "as they were made")?;
    store.snapshot("s", "**").unwrap();
    // From the log, and from the catalog.
    store.close().unwrap();
    let store = open(&disk).unwrap();
    same(&told(&store, "t"), &expected, "from the log")?;
    store.checkpoint(&CheckpointOptions::default()).unwrap();
    store.close().unwrap();
    let store = open(&disk).unwrap();
    same(&told(&store, "t"), &expected, "from the catalog")?;
    store.copy("t", "copy", &AsOf::Newest, Existing::Refuse).unwrap();
    same(&told(&store, "copy"), &expected[4..].to_vec(), "of a copy of one version")
        .or_else(|_| same(&told(&store, "copy"), &expected, "of a copy"))
}

pub fn what_one_says_is_not_said_of_others() -> Checked {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    store.write("t", ints(&[("a", vec![0])]), &Default::default()).unwrap();
    let mut feed = store.changes(store.seq().unwrap()).unwrap();
    // Threads whose commits share turns.
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let own = match thread {
                0 => store.clone(),
                _ => store.with_message(&format!("thread {thread}")).unwrap(),
            };
            scope.spawn(move || {
                for n in 0..25 {
                    own.append("t", ints(&[("a", vec![thread; 1 + n % 3])]), &Default::default()).unwrap();
                }
            });
        }
    });
    let mut found = [0; 4];
    for info in store.table("t").versions().unwrap().into_iter().skip(1) {
        let rows = store.table("t").diff(
            &AsOf::Version(Version(info.version.0 - 1)),
            &AsOf::Version(info.version),
            &Default::default(),
        );
        let rows: Vec<RecordBatch> = rows.unwrap().map(|batch| batch.unwrap()).collect();
        let own = rows[0]["a"].as_any().downcast_ref::<Int64Array>().unwrap().value(0);
        let expected = (own > 0).then(|| format!("thread {own}"));
        same(&info.note.message, &expected, &format!("of version {}", info.version))?;
        same(
            &info.turnover.map(|rows| rows.added),
            &Some(rows.iter().map(|batch| batch.num_rows() as u64).sum()),
            "rows",
        )?;
        found[own as usize] += 1;
    }
    same(&found, &[25; 4], "versions of each")?;
    let mut messages = 0;
    while let Some(commit) = feed.next(Some(Duration::ZERO)).unwrap() {
        messages += commit.messages().count();
    }
    same(&messages, &75, "messages of the feed")
}

#[test]
fn rules_hold() {
    stories_outlive_the_log().unwrap();
    what_one_says_is_not_said_of_others().unwrap();
}

#[test]
fn a_transaction_says_one_thing_of_all_that_it_does() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    let mut feed = store.changes(store.seq().unwrap()).unwrap();
    let tx = store.with_message("both").unwrap().transaction().unwrap();
    tx.write("a", ints(&[("n", vec![1])]), &Default::default()).unwrap();
    tx.append("a", ints(&[("n", vec![2, 3])]), &Default::default()).unwrap();
    tx.write("b", ints(&[("n", vec![1])]), &Default::default()).unwrap();
    tx.tree().put("n", drumlin::Payload::from(1)).unwrap();
    tx.commit().unwrap();
    assert_eq!(told(&store, "a"), [("write", Some((1, 0)), said("both")), ("append", Some((2, 0)), said("both"))]);
    assert_eq!(told(&store, "b"), [("write", Some((1, 0)), said("both"))]);
    // Nothing is said of what the store does for itself.
    let commit = feed.next(None).unwrap().unwrap();
    assert_eq!((commit.events().unwrap(), commit.messages().count()), (vec![], 0), "a session");
    let commit = feed.next(None).unwrap().unwrap();
    assert_eq!(commit.messages().collect::<Vec<_>>(), ["both"]);
    assert_eq!(commit.events().unwrap().len(), 4);
    // Of nodes alone, too.
    store.with_message("a node").unwrap().tree().put("n", drumlin::Payload::from(2)).unwrap();
    let commit = feed.next(None).unwrap().unwrap();
    assert_eq!(commit.messages().collect::<Vec<_>>(), ["a node"]);
    assert!(matches!(commit.events().unwrap()[..], [Event::Node(_)]));
    store.tree().put("n", drumlin::Payload::from(3)).unwrap();
    assert_eq!(feed.next(None).unwrap().unwrap().messages().count(), 0);
    // What a message is not: an empty one, or a long one.
    store.with_message("").unwrap().append("a", ints(&[("n", vec![2])]), &Default::default()).unwrap();
    assert_eq!(told(&store, "a")[2].2, None);
    let e = store.with_message(&"x".repeat(5000)).unwrap_err();
    assert!(
        e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("5000 bytes; expected at most 4096"),
        "{e}"
    );
}

#[test]
fn writers_and_durations() {
    let disk = SimDisk::in_memory();
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let options = Options { writer: Some("loader".into()), ..Options::default() };
    let store = drumlin::store::open_on(Arc::new(disk), env(&clock, 1, 1), "sim", options).unwrap();
    let moving = clock.clone();
    let slow = ints(&[("a", vec![1, 2])]);
    let batches = [slow.clone()].into_iter().map(move |batch| {
        moving.set(Timestamp(moving.now().0 + 2_500_000));
        Ok(batch)
    });
    use drumlin::base::Clock;
    store.write("t", drumlin::store::Frame::new(slow.schema(), batches), &WriteOptions::default()).unwrap();
    let tx = store.transaction().unwrap();
    tx.append("t", slow.clone(), &Default::default()).unwrap();
    clock.set(Timestamp(clock.now().0 + 1_000_000));
    tx.commit().unwrap();
    let notes: Vec<_> = store.table("t").versions().unwrap().into_iter().map(|info| info.note).collect();
    assert_eq!(notes.iter().map(|note| note.duration_micros).collect::<Vec<_>>(), [Some(2_500_000), Some(1_000_000)]);
    assert!(notes.iter().all(|note| note.writer.as_deref() == Some("loader")));
}

#[test]
fn rows_written_by_key_are_counted_once_they_are_in_row_groups() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    let rows = |keys: Vec<i64>| ints(&[("k", keys.clone()), ("v", keys)]);
    let key = TableOptions { key: vec!["k".into()], ..TableOptions::default() };
    store.table("t").create(rows(vec![]).schema(), key).unwrap();
    store.table("t").upsert(rows((0..100).collect()), &Default::default()).unwrap();
    store.snapshot("one", "**").unwrap();
    store.table("t").upsert(rows((90..110).collect()), &Default::default()).unwrap();
    store.table("t").delete("k < 5", &UpdateOptions::default()).unwrap();
    let before = told(&store, "t");
    assert_eq!(before.iter().map(|(_, rows, _)| *rows).collect::<Vec<_>>(), [Some((0, 0)), None, None]);
    store.checkpoint(&Default::default()).unwrap();
    let after = told(&store, "t");
    assert_eq!(after[1], ("rows", Some((100, 0)), None));
    // The delete made a version together with what was in memory: nobody has counted that.
    assert_eq!((after[2].0, after[2].1), ("delete", None));
    store.table("t").upsert(rows((0..10).collect()), &Default::default()).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    // Five come back, and five take the places of others.
    assert_eq!(told(&store, "t")[3], ("rows", Some((10, 5)), None));
}

#[test]
fn a_history_is_in_the_order_of_time() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    for n in 0..3 {
        store.write(&format!("p/{n}"), ints(&[("a", vec![n])]), &Default::default()).unwrap();
    }
    store.append("p/1", ints(&[("a", vec![5])]), &Default::default()).unwrap();
    store.write("other", ints(&[("a", vec![5])]), &Default::default()).unwrap();
    store.snapshot("s", "p/*").unwrap();
    let places = |pattern: &str, limit| -> Vec<(String, u64)> {
        let history = store.history(pattern, limit).unwrap();
        history.into_iter().map(|(path, info)| (path, info.version.0)).collect()
    };
    let expected = [("p/1", 1), ("p/2", 0), ("p/1", 0), ("p/0", 0)].map(|(path, version)| (path.to_owned(), version));
    assert_eq!(places("p/**", None), expected);
    assert_eq!(places("p/**", Some(2)), expected[..2]);
    assert_eq!(places("**", Some(1)), [("other".to_owned(), 0)]);
    assert_eq!(places("q", None), []);
    let held = store.history("p/2", None).unwrap();
    assert_eq!(held[0].1.snapshots, ["s"]);
    // In a transaction, with what it has done itself.
    let tx = store.transaction().unwrap();
    tx.append("p/0", ints(&[("a", vec![7])]), &Default::default()).unwrap();
    assert_eq!(tx.history("p/**", Some(1)).unwrap()[0].0, "p/0");
}
