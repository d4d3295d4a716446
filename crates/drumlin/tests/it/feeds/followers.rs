//! Followers: whatever retention removes, a follower that comes back goes on where it was, and nobody else moves it on.

use std::sync::Arc;
use std::time::Duration;

use drumlin::base::{ManualClock, Timestamp};
use drumlin::catalog::{Existing, Retention};
use drumlin::storage::SimDisk;
use drumlin::store::{Options, ReclaimOptions, TableOptions, WriteOptions};
use drumlin::{AsOf, ErrorKind, FollowFrom, FollowOptions, RowFeed, Store, Tables};

use super::row_feeds::{Copy, Rows, T, batch_of, keys, next, open, said};
use crate::support::{batch, numbered, read, rows};

const DAY: i64 = 24 * 3_600_000_000;

fn options(name: &str) -> FollowOptions {
    FollowOptions { follower: Some(name.to_owned()), ..FollowOptions::default() }
}

fn follow(store: &Store, since: &FollowFrom) -> RowFeed {
    store.table(T).follow(since, &options("f")).unwrap()
}

fn sim(seed: u64) -> (SimDisk, Arc<ManualClock>, Store) {
    let (disk, clock) = (SimDisk::new(), Arc::new(ManualClock::new(Timestamp(1_000))));
    let store = open(&disk, &clock, chosen(seed));
    (disk, clock, store)
}

fn chosen(seed: u64) -> Options {
    let row_write_bytes = [0, 1 << 20][seed as usize % 2];
    Options { inline_bytes: 65_536, row_write_bytes, ..Options::default() }
}

fn ids(store: &Store, feed: &mut RowFeed) -> Vec<i64> {
    let mut all = Vec::new();
    while let Some(changes) = next(feed) {
        all.extend(rows(&[changes.rows]).into_iter().map(|(id, _)| id));
    }
    assert!(store.seq().is_ok());
    all
}

fn random_operations(seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let (mut disk, clock, mut store) = sim(seed);
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table(T).create(batch(&[]).schema(), key).unwrap();
    store.set_retention(T, Some(Retention::KeepLast(rng.u64(1..3)))).unwrap();
    // What it has, and what it had when it last said so.
    let (mut copy, mut done) = (Copy::default(), Copy::default());
    let mut feed = follow(&store, &FollowFrom::Beginning);
    for step in 0..40 {
        let what = format!("seed {seed}, step {step}");
        clock.set(Timestamp(drumlin::base::Clock::now(&*clock).0 + [0, 1, 10, -3][rng.usize(..4)]));
        let mut some = Rows::new();
        (0..rng.usize(1..4)).for_each(|_| drop(some.insert(rng.i64(0..12), Some(format!("{step}")))));
        let ids: Vec<i64> = some.keys().copied().collect();
        let (none, table) = (WriteOptions::default(), store.table(T));
        match rng.u32(..16) {
            0 => drop(store.write(T, batch_of(&some), &none).unwrap()),
            1 | 2 => drop(store.checkpoint(&Default::default()).unwrap()),
            3 => drop(store.reclaim(&ReclaimOptions { grace_micros: 0, ..Default::default() }).unwrap()),
            4 => drop(table.delete(&format!("id <= {}", ids[0]), &Default::default()).unwrap()),
            5 | 6 => drop(table.delete_keys(keys(&ids), &none).unwrap()),
            7 => {
                // A consumer that is gone without a word.
                drop((feed, table, store));
                if rng.bool() {
                    disk = disk.crash(rng.u64(..));
                }
                store = open(&disk, &clock, chosen(seed));
                feed = follow(&store, &FollowFrom::Now);
                copy = done.clone();
            }
            8 => {
                // Another takes it up, and the first one is refused.
                let mut other = follow(&store, &FollowFrom::Beginning);
                std::mem::swap(&mut feed, &mut other);
                copy = done.clone();
                next(&mut feed).iter().for_each(|changes| copy.apply(changes, &what));
                assert_eq!(other.acknowledge().unwrap_err().kind(), ErrorKind::ConditionFailed, "{what}");
            }
            9 => {
                store.snapshot(&format!("s{step}"), T).unwrap();
            }
            _ => drop(table.upsert(batch_of(&some), &none).unwrap()),
        }
        if rng.u8(..4) == 0 {
            while let Some(changes) = next(&mut feed) {
                copy.apply(&changes, &what);
            }
            let newest: Rows = read(&store, T, AsOf::Newest).unwrap().into_iter().collect();
            assert_eq!(copy.rows, newest, "{what}");
        }
        if rng.u8(..4) == 0 {
            feed.acknowledge().unwrap();
            done = copy.clone();
        }
    }
    while let Some(changes) = next(&mut feed) {
        copy.apply(&changes, "at the end");
    }
    let newest: Rows = read(&store, T, AsOf::Newest).unwrap().into_iter().collect();
    assert_eq!(copy.rows, newest, "seed {seed}");
    // Nothing is kept once it is no longer needed.
    feed.acknowledge().unwrap();
    store.checkpoint(&Default::default()).unwrap();
    next(&mut feed);
    feed.acknowledge().unwrap();
    assert!(store.table(T).versions().unwrap().len() <= 3, "seed {seed}");
    let verified = store.verify(&Default::default()).unwrap();
    assert!(verified.faults.is_empty(), "{:?}", verified.faults);
}

#[test]
fn a_follower_goes_on_where_it_was_whatever_retention_removes() {
    crate::seeds::each(0..60, 12, random_operations);
}

/// As the test that is called so says.
pub fn followers_miss_nothing() -> Result<(), String> {
    std::panic::catch_unwind(|| (0..4).for_each(|seed| kept(seed % 2 == 0))).map_err(said)
}

#[test]
fn versions_are_kept_for_a_follower_as_long_as_it_was_promised() {
    followers_miss_nothing().unwrap();
}

fn kept(checkpoint: bool) {
    let (disk, clock, store) = sim(0);
    store.write(T, batch(&numbered(0, 1)), &Default::default()).unwrap();
    store.set_retention(T, Some(Retention::KeepLast(1))).unwrap();
    let mut feed = follow(&store, &FollowFrom::Now);
    let listed = |store: &Store| store.table(T).versions().unwrap().len();
    for n in 1..6 {
        store.append(T, batch(&numbered(n, 1)), &Default::default()).unwrap();
        if checkpoint {
            store.checkpoint(&Default::default()).unwrap();
        }
    }
    assert_eq!(listed(&store), 6);
    assert_eq!(ids(&store, &mut feed), [1, 2, 3, 4, 5]);
    assert_eq!(listed(&store), 6);
    // One commit moves it on, and removes what was kept for it alone.
    let seq = store.seq().unwrap();
    feed.acknowledge().unwrap();
    feed.acknowledge().unwrap();
    assert_eq!((store.seq().unwrap().0, listed(&store)), (seq.0 + 1, 1));
    store.append(T, batch(&numbered(6, 1)), &Default::default()).unwrap();
    store.append(T, batch(&numbered(7, 1)), &Default::default()).unwrap();
    drop((feed, store));
    let store = open(&disk, &clock, chosen(0));
    assert_eq!(listed(&store), 3);
    let followers = store.table(T).followers().unwrap();
    assert_eq!((followers.len(), followers[0].name.as_str()), (1, "f"));
    assert_eq!(followers[0].keep, Duration::from_secs(7 * 24 * 3_600));
    // No longer than that.
    let mut now = 1_000;
    for _ in 0..3 {
        now += 4 * DAY;
        clock.set(Timestamp(now));
        store.append(T, batch(&numbered(8, 1)), &Default::default()).unwrap();
        store.checkpoint(&Default::default()).unwrap();
    }
    let mut late = follow(&store, &FollowFrom::Now);
    let gone = late.next(Some(Duration::ZERO)).unwrap_err();
    assert!(gone.kind() == ErrorKind::SnapshotExpired, "{gone}");
    // It begins again under the same name once it was dropped.
    store.table(T).drop_follower("f").unwrap();
    assert_eq!(late.acknowledge().unwrap_err().kind(), ErrorKind::ConditionFailed);
    store.append(T, batch(&numbered(9, 1)), &Default::default()).unwrap();
    assert_eq!(listed(&store), 1);
    let mut again = follow(&store, &FollowFrom::Beginning);
    assert_eq!(ids(&store, &mut again), [0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 9]);
}

/// As the test that is called so says.
pub fn earlier_consumers_are_refused() -> Result<(), String> {
    std::panic::catch_unwind(|| {
        let (_disk, _clock, store) = sim(1);
        store.write(T, batch(&numbered(0, 1)), &Default::default()).unwrap();
        let mut first = follow(&store, &FollowFrom::Now);
        store.append(T, batch(&numbered(1, 1)), &Default::default()).unwrap();
        let mut second = follow(&store, &FollowFrom::Now);
        assert_eq!(ids(&store, &mut first), [1]);
        let refused = first.acknowledge().unwrap_err();
        assert!(refused.kind() == ErrorKind::ConditionFailed && refused.message().contains("another"), "{refused}");
        assert_eq!(ids(&store, &mut second), [1]);
        second.acknowledge().unwrap();
        assert!(ids(&store, &mut follow(&store, &FollowFrom::Beginning)).is_empty());
    })
    .map_err(said)
}

#[test]
fn only_the_last_consumer_moves_a_follower_on() {
    earlier_consumers_are_refused().unwrap();
}

#[test]
fn followers_go_with_their_table() {
    let (disk, clock, store) = sim(0);
    store.write(T, batch(&numbered(0, 1)), &Default::default()).unwrap();
    let mut feed = follow(&store, &FollowFrom::Now);
    store.append(T, batch(&numbered(1, 1)), &Default::default()).unwrap();
    // A copy has none; one that is moved, or comes back, has them still.
    store.copy(T, "copy", &AsOf::Newest, Existing::Refuse).unwrap();
    assert_eq!(store.table("copy").followers().unwrap(), []);
    store.relocate(T, "moved", Existing::Refuse).unwrap();
    store.drop("moved").unwrap();
    let dropped = feed.next(Some(Duration::ZERO)).unwrap_err();
    assert_eq!(dropped.kind(), ErrorKind::NotFound);
    store.undrop("moved", Some(T)).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    assert_eq!(ids(&store, &mut follow(&store, &FollowFrom::Now)), [1]);
    // One that is made again has none, and what was known of the other is gone with it.
    store.drop(T).unwrap();
    store.write(T, batch(&numbered(5, 1)), &Default::default()).unwrap();
    assert_eq!(store.table(T).followers().unwrap(), []);
    store.checkpoint(&Default::default()).unwrap();
    drop((feed, store));
    let store = open(&disk, &clock, chosen(0));
    assert_eq!(store.table(T).followers().unwrap(), []);
}

#[test]
fn what_cannot_be_done_is_said() {
    let store = Store::memory().unwrap();
    let kind = |e: drumlin::Error| e.kind();
    assert_eq!(store.table(T).follow(&FollowFrom::Now, &options("f")).err().map(kind), Some(ErrorKind::NotFound));
    assert_eq!(store.table(T).followers().unwrap_err().kind(), ErrorKind::NotFound);
    store.write(T, batch(&numbered(0, 1)), &Default::default()).unwrap();
    let (table, seq) = (store.table(T), store.seq().unwrap());
    for bad in ["", "a\nb", &"x".repeat(2_000)] {
        assert_eq!(table.follow(&FollowFrom::Now, &options(bad)).err().map(kind), Some(ErrorKind::InvalidArgument));
    }
    let missing = FollowFrom::After(AsOf::Snapshot("none".into()));
    assert_eq!(table.follow(&missing, &options("f")).err().map(kind), Some(ErrorKind::NotFound));
    assert_eq!(table.drop_follower("f").unwrap_err().kind(), ErrorKind::NotFound);
    let mut nameless = table.follow(&FollowFrom::Now, &FollowOptions::default()).unwrap();
    assert_eq!(nameless.acknowledge().unwrap_err().kind(), ErrorKind::InvalidArgument);
    let transaction = store.transaction().unwrap();
    assert_eq!(transaction.table(T).followers().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(transaction.table(T).drop_follower("f").unwrap_err().kind(), ErrorKind::InvalidArgument);
    transaction.abort();
    assert_eq!((store.seq().unwrap(), table.followers().unwrap()), (seq, vec![]), "nothing was done");
}
