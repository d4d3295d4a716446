//! Feeds of rows: whatever commits do, and wherever a feed begins, its changes make of what was there what is there, commit by commit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::Int64Type;
use drumlin::base::{ManualClock, Timestamp};
use drumlin::catalog::Retention;
use drumlin::storage::SimDisk;
use drumlin::store::{Options, TableOptions, WriteOptions};
use drumlin::{
    Alter, AsOf, ErrorKind, Expression, FeedPlace, Filter, FollowFrom, FollowOptions, RowChanges, RowFeed, Store,
    Tables, TimeToLive,
};

use crate::support::{Row, batch, env, numbered, read, rows};

pub const T: &str = "t";

pub type Rows = BTreeMap<i64, Option<String>>;

pub fn open(disk: &SimDisk, clock: &Arc<ManualClock>, options: Options) -> Store {
    drumlin::store::open_on(Arc::new(disk.clone()), env(clock, disk.counters().changes, 2), "sim", options).unwrap()
}

pub fn batch_of(rows: &Rows) -> RecordBatch {
    batch(&rows.iter().map(|(id, name)| (*id, name.clone())).collect::<Vec<Row>>())
}

pub fn keys(ids: &[i64]) -> RecordBatch {
    RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(ids.to_vec())) as ArrayRef)]).unwrap()
}

fn follow(store: &Store, since: &FollowFrom) -> RowFeed {
    store.table(T).follow(since, &FollowOptions::default()).unwrap()
}

pub fn next(feed: &mut RowFeed) -> Option<RowChanges> {
    feed.next(Some(Duration::ZERO)).unwrap()
}

/// A copy of a table that its feed keeps in step.
#[derive(Clone, Default)]
pub struct Copy {
    pub rows: Rows,
    time: Timestamp,
}

impl Copy {
    /// Applies changes, each of which must fit to what is there.
    pub fn apply(&mut self, changes: &RowChanges, what: &str) {
        assert!(changes.time >= self.time, "{what}: out of order");
        self.time = changes.time;
        for ((id, name), change) in rows(std::slice::from_ref(&changes.rows)).into_iter().zip(changes.changes.iter()) {
            let there = self.rows.get(&id);
            match change.unwrap() {
                "delete" | "update_before" => {
                    assert_eq!(there, Some(&name), "{what}: {change:?} of {id}");
                    self.rows.remove(&id);
                }
                _ => {
                    assert_eq!(there, None, "{what}: {change:?} of {id}");
                    self.rows.insert(id, name);
                }
            }
        }
    }

    /// Applies all that there is; after each commit it is what the table was then.
    fn catch_up(&mut self, store: &Store, feed: &mut RowFeed, what: &str) {
        let mut pending = next(feed);
        while let Some(changes) = pending {
            self.apply(&changes, what);
            pending = next(feed);
            if pending.as_ref().is_none_or(|pending| pending.time > changes.time) {
                let then: Rows = read(store, T, AsOf::Time(changes.time)).unwrap().into_iter().collect();
                assert_eq!(self.rows, then, "{what}: after the commit of {} ({:?})", changes.time.0, changes.kind);
            }
        }
    }
}

#[test]
fn a_feed_makes_of_what_was_there_what_is_there_commit_by_commit() {
    crate::seeds::each(0..60, 12, |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (disk, clock) = (SimDisk::new(), Arc::new(ManualClock::new(Timestamp(1_000))));
        let options = || Options {
            inline_bytes: [0, 65_536][seed as usize % 2],
            row_write_bytes: [0, 1 << 20, 1 << 20][seed as usize % 3],
            ..Options::default()
        };
        let mut store = open(&disk, &clock, options());
        let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
        store.table(T).create(batch(&[]).schema(), key).unwrap();
        // One that follows, one that goes on from its text each time, and one that begins later.
        let (mut live, mut resumed, mut place) = (Copy::default(), Copy::default(), FollowFrom::Beginning);
        let mut feed = follow(&store, &FollowFrom::Beginning);
        let mut late: Option<(Copy, Timestamp)> = None;
        for step in 0..40 {
            let what = format!("seed {seed}, step {step}");
            clock.set(Timestamp(drumlin::base::Clock::now(&*clock).0 + [0, 1, 10, -3][rng.usize(..4)]));
            let mut some = Rows::new();
            (0..rng.usize(1..4)).for_each(|_| drop(some.insert(rng.i64(0..12), Some(format!("{step}")))));
            let ids: Vec<i64> = some.keys().copied().collect();
            let (none, table) = (WriteOptions::default(), store.table(T));
            match rng.u32(..18) {
                0 => drop(store.write(T, batch_of(&some), &none).unwrap()),
                1 | 2 => drop(store.checkpoint(&Default::default()).unwrap()),
                3 => drop(store.snapshot(&format!("s{step}"), "**").unwrap()),
                4 => drop(table.delete(&format!("id <= {}", ids[0]), &Default::default()).unwrap()),
                5 => {
                    let text = feed.place().to_string();
                    // A feed keeps its store open.
                    drop((feed, table, store));
                    store = open(&disk, &clock, options());
                    feed = follow(&store, &FollowFrom::parse(&text).unwrap());
                    assert_eq!(feed.place().to_string(), text, "{what}");
                }
                6 => {
                    let there: Rows = read(&store, T, AsOf::Newest).unwrap().into_iter().collect();
                    some.retain(|id, _| !there.contains_key(id));
                    drop(store.append(T, batch_of(&some), &none).unwrap());
                }
                7 | 8 => drop(table.delete_keys(keys(&ids), &none).unwrap()),
                9 => drop(table.update(
                    &[("name".to_owned(), Expression::parse("'u'").unwrap())],
                    Some(&format!("id > {}", ids[0])),
                    &Default::default(),
                )),
                10 => {
                    let versions = table.versions().unwrap();
                    let version = versions[rng.usize(..versions.len())].version;
                    store.restore(T, &AsOf::Version(version)).unwrap();
                }
                11 => drop(store.reclaim(&Default::default()).unwrap()),
                _ => drop(table.upsert(batch_of(&some), &none).unwrap()),
            }
            if rng.u8(..3) == 0 {
                live.catch_up(&store, &mut feed, &format!("{what}, live"));
            }
            if rng.bool() {
                let mut feed = follow(&store, &place);
                // Now and then it stops in the middle.
                match rng.bool() {
                    true => resumed.catch_up(&store, &mut feed, &format!("{what}, resumed")),
                    false => next(&mut feed).iter().for_each(|changes| resumed.apply(changes, &what)),
                }
                place = FollowFrom::parse(&feed.place().to_string()).unwrap();
            }
            if late.is_none() && rng.u8(..10) == 0 {
                let rows = read(&store, T, AsOf::Newest).unwrap().into_iter().collect();
                let mut feed = store.changes(store.seq().unwrap()).unwrap();
                store.tree().put("tick", drumlin::catalog::Payload::from(step)).unwrap();
                let now = feed.next(Some(Duration::ZERO)).unwrap().unwrap().time();
                late = Some((Copy { rows, time: now }, now));
            }
        }
        let newest: Rows = read(&store, T, AsOf::Newest).unwrap().into_iter().collect();
        live.catch_up(&store, &mut feed, &format!("seed {seed}, live, at the end"));
        assert_eq!(live.rows, newest, "seed {seed}, live");
        resumed.catch_up(&store, &mut follow(&store, &place), &format!("seed {seed}, resumed, at the end"));
        assert_eq!(resumed.rows, newest, "seed {seed}, resumed");
        if let Some((mut late, time)) = late {
            let mut feed = follow(&store, &FollowFrom::After(AsOf::Time(time)));
            late.catch_up(&store, &mut feed, &format!("seed {seed}, late"));
            assert_eq!(late.rows, newest, "seed {seed}, late");
        }
    });
}

#[test]
fn a_version_on_rows_in_memory_tells_what_it_changed_of_them() {
    rows_in_memory_are_told().unwrap();
}

fn rows_in_memory() {
    let store = Store::memory().unwrap();
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table(T).create(batch(&[]).schema(), key).unwrap();
    let mut feed = follow(&store, &FollowFrom::Now);
    store.table(T).upsert(batch(&numbered(0, 3)), &Default::default()).unwrap();
    store.table(T).upsert(batch(&numbered(1, 3)), &Default::default()).unwrap();
    store.write(T, batch(&numbered(2, 3)), &Default::default()).unwrap();
    let mut copy = Copy::default();
    copy.catch_up(&store, &mut feed, "one after the other");
    let newest: Rows = read(&store, T, AsOf::Newest).unwrap().into_iter().collect();
    assert_eq!(copy.rows, newest);
}

#[test]
fn a_filter_asks_what_rows_were_and_what_they_became_whatever_its_columns_are_called() {
    filtered_rows_are_told().unwrap();
}

fn filtered_rows() {
    let store = Store::memory().unwrap();
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table(T).create(batch(&[]).schema(), key).unwrap();
    let options = FollowOptions { filter: Some(Filter::parse("name = 'a'").unwrap()), ..Default::default() };
    let mut feed = store.table(T).follow(&FollowFrom::Now, &options).unwrap();
    let put = |id: i64, name: &str| {
        drop(store.table(T).upsert(batch(&[(id, Some(name.to_owned()))]), &Default::default()).unwrap());
    };
    let mut told = || {
        let mut all = Vec::new();
        while let Some(changes) = feed.next(Some(Duration::ZERO)).unwrap() {
            let ids = changes.rows.column_by_name("id").unwrap().as_primitive::<Int64Type>().clone();
            all.extend(
                ids.values().iter().zip(changes.changes.iter()).map(|(id, change)| (*id, change.unwrap().to_owned())),
            );
        }
        all
    };
    put(1, "b");
    assert_eq!(told(), []);
    put(1, "a");
    put(2, "a");
    put(1, "c");
    let pair = |id: i64| [(id, "update_before".to_owned()), (id, "update_after".to_owned())];
    assert_eq!(told(), [&pair(1)[..], &[(2, "insert".to_owned())], &pair(1)].concat());
    store.table(T).alter(&Alter::Rename(vec![("name".into(), "title".into())]), &Default::default()).unwrap();
    store.table(T).delete("title = 'a'", &Default::default()).unwrap();
    assert_eq!(told(), [(2, "delete".to_owned())]);
    store.table(T).alter(&Alter::Drop(vec!["title".into()]), &Default::default()).unwrap();
    store.table(T).delete("id = 1", &Default::default()).unwrap();
    let lost = feed.next(Some(Duration::ZERO)).unwrap_err();
    assert!(lost.kind() == ErrorKind::InvalidArgument && lost.message().contains("was dropped"), "{lost}");
}

#[test]
fn a_feed_says_when_what_it_needs_is_gone() {
    let store = Store::memory().unwrap();
    store.write(T, batch(&numbered(0, 3)), &Default::default()).unwrap();
    let mut feed = follow(&store, &FollowFrom::Now);
    let place = FollowFrom::Place(feed.place());
    store.set_retention(T, Some(Retention::KeepLast(1))).unwrap();
    store.write(T, batch(&numbered(0, 4)), &Default::default()).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    let gone = feed.next(Some(Duration::ZERO)).unwrap_err();
    assert!(gone.kind() == ErrorKind::SnapshotExpired && gone.message().contains("retention"), "{gone}");
    store.drop(T).unwrap();
    assert_eq!(feed.next(Some(Duration::ZERO)).unwrap_err().kind(), ErrorKind::NotFound);
    store.write(T, batch(&numbered(0, 1)), &Default::default()).unwrap();
    assert_eq!(store.table(T).follow(&place, &Default::default()).err().unwrap().kind(), ErrorKind::SnapshotExpired);
    for bad in ["place:", "place:1.2.3", "place:1.2.3.4.5", "place:a.-.-.0", "place:1.-.-.-"] {
        assert_eq!(FeedPlace::parse(bad).unwrap_err().kind(), ErrorKind::InvalidArgument, "{bad}");
    }
}

#[test]
fn what_takes_the_place_of_a_row_that_had_expired_is_new() {
    expired_rows_are_told().unwrap();
}

fn expired_rows() {
    let (disk, clock) = (SimDisk::new(), Arc::new(ManualClock::new(Timestamp(1_000))));
    let store = open(&disk, &clock, Options::default());
    let until = |id: i64, micros: i64| {
        let times = TimestampMicrosecondArray::from_value(micros, 1);
        let columns =
            [("id", Arc::new(Int64Array::from_value(id, 1)) as ArrayRef), ("until", Arc::new(times) as ArrayRef)];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table(T).create(until(0, 0).schema(), key).unwrap();
    let ttl = TimeToLive { column: "until".into(), after_micros: 0 };
    store.table(T).alter(&Alter::SetTtl(ttl), &Default::default()).unwrap();
    let mut feed = follow(&store, &FollowFrom::Now);
    let mut told = |time: i64, micros: i64| {
        clock.set(Timestamp(time));
        store.table(T).upsert(until(1, micros), &Default::default()).unwrap();
        let changes = next(&mut feed).unwrap().changes;
        changes.iter().map(|change| change.unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(told(2_000, 10_000), ["insert"]);
    assert_eq!(told(3_000, 20_000), ["update_before", "update_after"]);
    assert_eq!(told(50_000, 90_000), ["delete", "insert"]);
}

/// As the test that is called so says.
pub fn rows_in_memory_are_told() -> Result<(), String> {
    std::panic::catch_unwind(rows_in_memory).map_err(said)
}

/// As the test that is called so says.
pub fn expired_rows_are_told() -> Result<(), String> {
    std::panic::catch_unwind(expired_rows).map_err(said)
}

/// As the test that is called so says.
pub fn filtered_rows_are_told() -> Result<(), String> {
    std::panic::catch_unwind(filtered_rows).map_err(said)
}

/// What a check says that has panicked.
pub fn said(panic: Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}
