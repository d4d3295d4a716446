//! Triggers on rows: called for each change at least once, in order, whatever happens to the process and to the versions.

use std::sync::Arc;
use std::time::Duration;

use drumlin::base::{ManualClock, Timestamp};
use drumlin::catalog::Retention;
use drumlin::storage::{SimBucket, SimDisk};
use drumlin::store::Options;
use drumlin::{
    Alter, ErrorKind, Filter, FollowFrom, FollowOptions, RowEvent, RowTriggerFn, Store, Tables, TriggerFailure,
};
use parking_lot::Mutex;

use super::row_feeds::{T, open, said};
use crate::support::{batch, env, numbered, rows};

/// What triggers were called with: ids, or `None` for a resync.
type Seen = Arc<Mutex<Vec<Option<i64>>>>;

fn durable(name: &str) -> FollowOptions {
    FollowOptions { follower: Some(name.to_owned()), ..FollowOptions::default() }
}

fn noting(seen: &Seen) -> RowTriggerFn {
    let seen = seen.clone();
    Arc::new(move |event| {
        match event {
            RowEvent::Changes(changes) => {
                let ids = rows(std::slice::from_ref(&changes.rows)).into_iter().map(|(id, _)| Some(id));
                seen.lock().extend(ids);
            }
            RowEvent::Resync(_) => seen.lock().push(None),
        }
        Ok(())
    })
}

fn wait(store: &Store) {
    assert!(store.tree().wait_for_triggers(None).unwrap());
}

fn failures(store: &Store) -> Vec<TriggerFailure> {
    store.tree().trigger_failures().unwrap()
}

fn sim() -> (SimDisk, Arc<ManualClock>) {
    (SimDisk::new(), Arc::new(ManualClock::new(Timestamp(1_000))))
}

#[test]
fn a_trigger_is_called_for_what_commits_change_in_order() {
    let store = Store::memory().unwrap();
    store.write(T, batch(&numbered(0, 1)), &Default::default()).unwrap();
    let (seen, odd): (Seen, Seen) = Default::default();
    let name = store.table(T).on(&FollowOptions::default(), noting(&seen)).unwrap();
    let filter = Some(Filter::parse("id % 2 = 1").unwrap());
    store.table(T).on(&FollowOptions { filter, ..FollowOptions::default() }, noting(&odd)).unwrap();
    for n in 1..50 {
        store.append(T, batch(&numbered(n, 1)), &Default::default()).unwrap();
    }
    wait(&store);
    assert_eq!(*seen.lock(), (1..50).map(Some).collect::<Vec<_>>());
    assert_eq!(*odd.lock(), (1..50).step_by(2).map(Some).collect::<Vec<_>>());
    store.table(T).off(&name).unwrap();
    assert_eq!(store.table(T).off(&name).unwrap_err().kind(), ErrorKind::NotFound);
    store.append(T, batch(&numbered(51, 1)), &Default::default()).unwrap();
    wait(&store);
    assert_eq!((seen.lock().len(), odd.lock().last().copied()), (49, Some(Some(51))));
    assert_eq!(failures(&store), []);
}

/// As the test that is called so says.
pub fn durable_triggers_miss_nothing() -> Result<(), String> {
    std::panic::catch_unwind(restarted).map_err(said)
}

#[test]
fn a_durable_trigger_is_called_for_what_happened_while_it_was_away() {
    durable_triggers_miss_nothing().unwrap();
}

fn restarted() {
    let ((mut disk, clock), seen) = (sim(), Seen::default());
    let mut store = open(&disk, &clock, Options::default());
    store.write(T, batch(&numbered(0, 1)), &Default::default()).unwrap();
    store.set_retention(T, Some(Retention::KeepLast(1))).unwrap();
    store.table(T).on(&durable("f"), noting(&seen)).unwrap();
    for round in 0..6_i64 {
        store.append(T, batch(&numbered(2 * round + 1, 1)), &Default::default()).unwrap();
        if round % 2 == 0 {
            wait(&store);
        }
        store.close().unwrap();
        disk = if round % 3 == 0 { disk.crash(round as u64) } else { disk };
        store = open(&disk, &clock, Options::default());
        store.append(T, batch(&numbered(2 * round + 2, 1)), &Default::default()).unwrap();
        store.checkpoint(&Default::default()).unwrap();
        store.table(T).on(&durable("f"), noting(&seen)).unwrap();
    }
    wait(&store);
    // Once or more, and the first time in order.
    let mut first = Vec::new();
    seen.lock().iter().for_each(|id| {
        if !first.contains(id) {
            first.push(*id)
        }
    });
    assert_eq!(first, (1..13).map(Some).collect::<Vec<_>>());
    assert_eq!(failures(&store), []);
    // Ended for good.
    store.table(T).off("f").unwrap();
    assert_eq!(store.table(T).followers().unwrap(), []);
}

#[test]
fn what_is_no_longer_known_is_a_resync() {
    let ((disk, clock), seen) = (sim(), Seen::default());
    let store = open(&disk, &clock, Options::default());
    store.write(T, batch(&numbered(0, 1)), &Default::default()).unwrap();
    store.table(T).on(&durable("f"), noting(&seen)).unwrap();
    store.append(T, batch(&numbered(1, 1)), &Default::default()).unwrap();
    wait(&store);
    store.close().unwrap();
    let store = open(&disk, &clock, Options::default());
    for n in 2..5 {
        store.append(T, batch(&numbered(n, 1)), &Default::default()).unwrap();
    }
    let all: Vec<_> = store.table(T).versions().unwrap().iter().map(|version| version.version).collect();
    let most = vec![(T.to_owned(), all[..all.len() - 1].to_vec())];
    store.delete_versions(&most, drumlin::store::Missing::Refuse).unwrap();
    store.table(T).on(&durable("f"), noting(&seen)).unwrap();
    store.append(T, batch(&numbered(5, 1)), &Default::default()).unwrap();
    wait(&store);
    let seen = seen.lock().clone();
    assert!(seen == [Some(1), None] || seen == [Some(1), None, Some(5)], "{seen:?}");
}

#[test]
fn a_trigger_that_fails_is_heard_of() {
    let store = Store::memory().unwrap();
    store.write(T, batch(&numbered(0, 1)), &Default::default()).unwrap();
    let said: RowTriggerFn = Arc::new(|_| Err("no".into()));
    let panics: RowTriggerFn = Arc::new(|_| panic!("on purpose"));
    store.table(T).on(&durable("says"), said).unwrap();
    store.table(T).on(&durable("panics"), panics).unwrap();
    for n in 1..3 {
        store.append(T, batch(&numbered(n, 1)), &Default::default()).unwrap();
    }
    wait(&store);
    let failed = failures(&store);
    let count = |name: &str| failed.iter().filter(|failure| failure.trigger == name && failure.path == T).count();
    assert_eq!((count("says"), count("panics"), failed.len()), (2, 2, 4), "{failed:?}");
    // A column of its filter goes, then the table.
    let seen = Seen::default();
    let filter = Some(Filter::parse("name is not null").unwrap());
    store.table(T).on(&FollowOptions { filter, ..durable("named") }, noting(&seen)).unwrap();
    store.table(T).alter(&Alter::Drop(vec!["name".into()]), &Default::default()).unwrap();
    store.table(T).delete("id = 0", &Default::default()).unwrap();
    wait(&store);
    let failed = failures(&store);
    assert!(
        failed.iter().any(|failure| failure.trigger == "named" && failure.error.contains("was dropped")),
        "{failed:?}"
    );
    assert_eq!(*seen.lock(), []);
    store.drop(T).unwrap();
    wait(&store);
    let failed = failures(&store);
    assert!(
        failed.iter().any(|failure| failure.trigger == "says" && failure.error.contains("was dropped")),
        "{failed:?}"
    );
}

#[test]
fn another_that_takes_a_trigger_up_ends_the_one_before() {
    let store = Store::memory().unwrap();
    store.write(T, batch(&numbered(0, 1)), &Default::default()).unwrap();
    let (first, second): (Seen, Seen) = Default::default();
    store.table(T).on(&durable("f"), noting(&first)).unwrap();
    store.table(T).on(&durable("f"), noting(&second)).unwrap();
    store.append(T, batch(&numbered(1, 1)), &Default::default()).unwrap();
    wait(&store);
    assert_eq!(*second.lock(), [Some(1)]);
    let mut elsewhere = store.table(T).follow(&FollowFrom::Now, &durable("f")).unwrap();
    store.append(T, batch(&numbered(2, 1)), &Default::default()).unwrap();
    assert!(elsewhere.next(None).unwrap().is_some());
    wait(&store);
    let failed = failures(&store);
    assert!(failed.iter().any(|failure| failure.error.contains("another consumer")), "{failed:?}");
    store.append(T, batch(&numbered(3, 1)), &Default::default()).unwrap();
    assert!(elsewhere.next(None).unwrap().is_some());
    elsewhere.acknowledge().unwrap();
    assert!(!second.lock().contains(&Some(3)));
}

#[test]
fn a_callback_may_use_the_store_and_none_keeps_it_open() {
    let (disk, clock) = sim();
    let store = open(&disk, &clock, Options::default());
    store.write(T, batch(&numbered(0, 1)), &Default::default()).unwrap();
    store.write("copy", batch(&[]), &Default::default()).unwrap();
    let weak = Arc::new(Mutex::new(Some(store.clone())));
    let used = weak.clone();
    let callback: RowTriggerFn = Arc::new(move |event| {
        let RowEvent::Changes(changes) = event else { return Err("resync".into()) };
        let Some(store) = used.lock().clone() else { return Ok(()) };
        let waited = store.tree().wait_for_triggers(Some(Duration::ZERO));
        assert_eq!(waited.unwrap_err().kind(), ErrorKind::InvalidArgument);
        store.append("copy", changes.rows.clone(), &Default::default()).map(drop).map_err(|e| e.to_string())
    });
    store.table(T).on(&FollowOptions::default(), callback).unwrap();
    for n in 1..5 {
        store.append(T, batch(&numbered(n, 1)), &Default::default()).unwrap();
    }
    wait(&store);
    assert_eq!(crate::support::read(&store, "copy", drumlin::AsOf::Newest).unwrap(), numbered(1, 4));
    assert_eq!(failures(&store), []);
    weak.lock().take();
    store.close().unwrap();
    drop(store);
    drop(open(&disk, &clock, Options::default()));
}

// faults: paused process x feed, write
#[test]
fn a_trigger_goes_from_process_to_process() {
    let (bucket, clock) = (SimBucket::new(), Arc::new(ManualClock::new(Timestamp(1_000_000))));
    let open = || {
        let env = env(&clock, bucket.requests().puts, 2);
        drumlin::store::open_bucket(Arc::new(bucket.client()), env, "bucket", Options::default()).unwrap()
    };
    let (a, b) = (open(), open());
    a.write(T, batch(&numbered(0, 1)), &Default::default()).unwrap();
    a.set_retention(T, Some(Retention::KeepLast(1))).unwrap();
    let (by_a, by_b): (Seen, Seen) = Default::default();
    a.table(T).on(&durable("f"), noting(&by_a)).unwrap();
    // Of another process.
    b.refresh().unwrap();
    b.append(T, batch(&numbered(1, 1)), &Default::default()).unwrap();
    a.refresh().unwrap();
    wait(&a);
    assert_eq!(*by_a.lock(), [Some(1)]);
    b.table(T).on(&durable("f"), noting(&by_b)).unwrap();
    a.refresh().unwrap();
    a.append(T, batch(&numbered(2, 1)), &Default::default()).unwrap();
    wait(&a);
    b.refresh().unwrap();
    wait(&b);
    assert_eq!(by_b.lock().last(), Some(&Some(2)));
    let failed = failures(&a);
    assert!(failed.iter().any(|failure| failure.error.contains("another consumer")), "{failed:?}");
    b.append(T, batch(&numbered(3, 1)), &Default::default()).unwrap();
    wait(&b);
    a.refresh().unwrap();
    wait(&a);
    assert_eq!(by_b.lock().last(), Some(&Some(3)));
    assert!(!by_a.lock().contains(&Some(3)));
    assert_eq!(failures(&b), []);
    b.refresh().unwrap();
    assert_eq!(b.table(T).versions().unwrap().len(), 1, "what was kept for it is no longer needed");
}
