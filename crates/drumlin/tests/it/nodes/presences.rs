//! Presences, and nodes that end with them or by themselves; over several processes, restarts, clocks.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use drumlin::base::{Clock, ManualClock, OsThreads, SeededEntropy, Seq, Timestamp};
use drumlin::catalog::{Cause, Draft, State};
use drumlin::storage::{SimBucket, SimDisk};
use drumlin::store::{Options, PresenceOptions, TriggerEvent};
use drumlin::{
    Action, Condition, ErrorKind, Pattern, Payload, Presence, PutOptions, Store, Tables, TriggerFilter, Warn,
    WarningKind,
};

use crate::processes::shared_support::{clock, open as open_bucket};
use crate::support::{Checked, batch, env, numbered};

pub const SECOND: i64 = 1_000_000;

pub fn begin(store: &Store, seconds: i64) -> drumlin::Result<Presence> {
    store.tree().presence(&PresenceOptions { life_micros: Some((seconds * SECOND) as u64), ..Default::default() })
}

fn on(presence: &Presence) -> PutOptions {
    PutOptions { presence: Some(presence.number()), ..Default::default() }
}

fn ttl(seconds: i64) -> PutOptions {
    PutOptions { ttl_micros: Some((seconds * SECOND) as u64), ..Default::default() }
}

pub fn look(store: &Store) {
    store.checkpoint(&Default::default()).unwrap();
}

fn wrong<T: std::fmt::Debug>(what: &str, found: T) -> Checked {
    Err(format!("{what}: {found:?}"))
}

/// A node ends with its presence, with all below it and what depends on it, in one commit.
pub fn nodes_end_with_their_presence() -> Checked {
    let store = Store::memory().unwrap();
    let presence = begin(&store, 30).unwrap();
    let tree = store.tree();
    tree.put_with("a", 1, on(&presence)).unwrap();
    tree.put("a/b", 2).unwrap();
    let depends = PutOptions { keep_while: Some(vec![("a/b".into(), Condition::Exists(true))]), ..Default::default() };
    tree.put_with("c", 3, depends).unwrap();
    store.write("t", batch(&numbered(0, 1)), &Default::default()).unwrap();
    tree.put_with("t", 4, on(&presence)).unwrap();
    let before = store.seq().unwrap();
    presence.end().unwrap();
    let left = tree.nodes("**").unwrap();
    let left: Vec<_> = left.iter().map(|(path, node)| (path.as_str(), node.payload.clone(), node.presence)).collect();
    match left[..] == [("t", None, None)] && store.seq().unwrap().0 == before.0 + 1 {
        true => Ok(()),
        false => wrong("after the end", left),
    }
}

/// A node whose time was put off lives on: by this process, by another, and between being seen and the turn of the commit.
pub fn nodes_that_were_renewed_stay() -> Checked {
    let mut draft = Draft::new(State::default(), Seq(1), Timestamp(SECOND));
    draft.put("n", 1.into(), &ttl(60)).unwrap();
    let due = draft.state().due_nodes(Timestamp(100 * SECOND), 10);
    assert_eq!(due.len(), 1);
    draft.put("n", 1.into(), &ttl(90)).unwrap();
    if draft.expire(&due).unwrap() > 0 {
        return wrong("deleted in its turn", due);
    }
    let (bucket, clock) = (SimBucket::new(), clock());
    let (a, b) = (open_bucket(&bucket.client(), &clock).unwrap(), open_bucket(&bucket.client(), &clock).unwrap());
    a.tree().put_with("n", 1, ttl(60)).unwrap();
    clock.advance(30 * SECOND);
    b.refresh().unwrap();
    b.tree().put_with("n", 2, ttl(60)).unwrap();
    clock.advance(40 * SECOND);
    look(&a);
    b.refresh().unwrap();
    if !b.tree().exists("n").unwrap() {
        return wrong("deleted", a.tree().nodes("**"));
    }
    clock.advance(40 * SECOND);
    look(&a);
    match a.tree().exists("n").unwrap() {
        true => wrong("still there", a.tree().nodes("**")),
        false => Ok(()),
    }
}

/// A clock that may be set, beside one that nobody sets.
struct TwoClocks {
    wall: AtomicI64,
    steady: AtomicI64,
}

impl Clock for TwoClocks {
    fn now(&self) -> Timestamp {
        Timestamp(self.wall.load(Ordering::SeqCst))
    }

    fn steady(&self) -> Duration {
        Duration::from_micros(self.steady.load(Ordering::SeqCst) as u64)
    }
}

/// Silence is what has passed since a beat was seen, whatever clocks are set to.
pub fn clocks_that_are_set_end_nothing() -> Checked {
    let (bucket, clock) = (SimBucket::new(), clock());
    let owner = open_bucket(&bucket.client(), &clock).unwrap();
    let presence = begin(&owner, 200).unwrap();
    let own = Arc::new(TwoClocks { wall: AtomicI64::new(SECOND), steady: AtomicI64::new(0) });
    let watching = drumlin::base::Env { clock: own.clone(), ..env(&clock, 77, 2) };
    let options = Options { inline_bytes: 0, ..Options::default() };
    let watcher = drumlin::store::open_bucket(Arc::new(bucket.client()), watching, "bucket", options).unwrap();
    look(&watcher);
    own.wall.fetch_add(3_000 * SECOND, Ordering::SeqCst);
    own.steady.fetch_add(150 * SECOND, Ordering::SeqCst);
    look(&watcher);
    if watcher.tree().presences().unwrap().is_empty() {
        return wrong("it was ended after", 150);
    }
    own.wall.store(0, Ordering::SeqCst);
    own.steady.fetch_add(100 * SECOND, Ordering::SeqCst);
    look(&watcher);
    match watcher.tree().presences().unwrap().is_empty() && presence.beat().is_err() {
        true => Ok(()),
        false => wrong("it goes on", watcher.tree().presences()),
    }
}

#[test]
fn a_presence_takes_its_nodes_along() {
    nodes_end_with_their_presence().unwrap();
}

#[test]
fn a_renewed_node_stays() {
    nodes_that_were_renewed_stay().unwrap();
}

#[test]
fn silence_is_counted_by_a_steady_clock() {
    clocks_that_are_set_end_nothing().unwrap();
}

fn on_disk(disk: &SimDisk, clock: &Arc<ManualClock>) -> Store {
    let env = env(clock, disk.counters().changes, 2);
    drumlin::store::open_on(Arc::new(disk.clone()), env, "sim", Options::default()).unwrap()
}

#[test]
fn who_alone_writes_a_store_has_outlived_those_before() {
    for (crash, checkpoint) in [(false, false), (false, true), (true, false), (true, true)] {
        let (disk, clock) = (SimDisk::new(), clock());
        let store = on_disk(&disk, &clock);
        let presence = begin(&store, 30).unwrap();
        store.tree().put_with("mine", 1, on(&presence)).unwrap();
        store.tree().put_with("timed", 2, ttl(3600)).unwrap();
        if checkpoint {
            look(&store);
        }
        drop(presence);
        drop(store);
        let disk = if crash { disk.crash(1) } else { disk };
        let store = on_disk(&disk, &clock);
        look(&store);
        assert_eq!(store.tree().presences().unwrap(), []);
        assert!(!store.tree().exists("mine").unwrap());
        let next = begin(&store, 30).unwrap();
        assert_eq!(next.number(), 2, "a number is never given out again");
        assert!(store.tree().node("timed").unwrap().unwrap().expires.is_some());
        clock.advance(3601 * SECOND);
        look(&store);
        assert!(!store.tree().exists("timed").unwrap());
        // Closing ends what is left, by a commit: a reader that opens it then sees none.
        store.tree().put_with("mine", 1, on(&next)).unwrap();
        drop(next);
        store.close().unwrap();
    }
}

#[test]
fn closing_a_store_ends_its_presences() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let (a, b) = (open_bucket(&bucket.client(), &clock).unwrap(), open_bucket(&bucket.client(), &clock).unwrap());
    let presence = begin(&a, 200).unwrap();
    a.tree().put_with("mine", 1, on(&presence)).unwrap();
    a.close().unwrap();
    b.refresh().unwrap();
    assert!(!b.tree().exists("mine").unwrap());
    assert_eq!(presence.beat().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(presence.end().unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_leader_commits_only_while_it_is_the_leader() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let (a, b) = (open_bucket(&bucket.client(), &clock).unwrap(), open_bucket(&bucket.client(), &clock).unwrap());
    let leads = begin(&a, 200).unwrap();
    a.tree().create("leader", 1).unwrap();
    a.tree().put_with("leader", 1, on(&leads)).unwrap();
    let transaction = a.transaction().unwrap();
    transaction.require(&leads).unwrap();
    transaction.tree().put("done", 1).unwrap();
    // It hangs; another finds it silent and takes its place.
    look(&b);
    clock.advance(201 * SECOND);
    look(&b);
    let follows = begin(&b, 200).unwrap();
    assert!(follows.number() > leads.number());
    let lead = PutOptions { mode: drumlin::PutMode::Create, ..on(&follows) };
    b.tree().put_with("leader", 2, lead).unwrap();
    let refused = transaction.commit().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    assert!(refused.message().contains("presence 1"), "{refused}");
    let refused = a.transact(|transaction| transaction.require(&leads)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConditionFailed, "{refused}");
    assert!(!leads.is_open().unwrap());
    assert_eq!(a.tree().get("done").unwrap(), None);
    b.transact(|transaction| {
        transaction.require(&follows)?;
        transaction.tree().put("done", 2)
    })
    .unwrap();
}

#[test]
fn triggers_see_what_ends() {
    let store = Store::memory().unwrap();
    let heard: Arc<Mutex<Vec<(String, Cause)>>> = Arc::default();
    let hear = heard.clone();
    let pattern = Pattern::new("services/*").unwrap();
    let filter = TriggerFilter { pattern, actions: vec![Action::Delete], priority: 0 };
    let callback = move |call: &drumlin::TriggerCall| {
        if let TriggerEvent::Node(event) = &call.event {
            hear.lock().unwrap().push((event.path.clone(), event.cause));
        }
        Ok(())
    };
    store.tree().on(filter, Arc::new(callback)).unwrap();
    let presence = begin(&store, 30).unwrap();
    store.tree().put_with("services/a", 1, on(&presence)).unwrap();
    presence.end().unwrap();
    store.tree().wait_for_triggers(None).unwrap();
    assert_eq!(*heard.lock().unwrap(), [("services/a".to_owned(), Cause::Ended)]);
}

#[test]
fn an_export_has_times_and_no_programs() {
    let store = Store::memory().unwrap();
    let (tree, presence) = (store.tree(), begin(&store, 30).unwrap());
    tree.put_with("a/mine", 1, on(&presence)).unwrap();
    tree.put_with("a/timed", 2, ttl(1000)).unwrap();
    let depends = Some(vec![("a/plain".into(), Condition::Exists(true))]);
    tree.put("a/plain", 3).unwrap();
    tree.put_with("a/both", 4, PutOptions { keep_while: depends, ..ttl(2000) }).unwrap();
    let mut file = Vec::new();
    assert_eq!(tree.export("**", &mut file, &Default::default()).unwrap(), 3);
    let other = Store::memory().unwrap();
    other.tree().import(&mut &file[..], None, &Default::default()).unwrap();
    for path in ["a/mine", "a/timed", "a/both", "a/plain"] {
        let (was, is) = (tree.node(path).unwrap().unwrap(), other.tree().node(path).unwrap());
        let is = is.map(|node| (node.payload, node.expires));
        assert_eq!(is, (path != "a/mine").then_some((was.payload, was.expires)), "{path}");
    }
    other.tree().delete("a/plain", None).unwrap();
    assert!(!other.tree().exists("a/both").unwrap());
    let wrong = br#"{"path":"x","payload":1,"expires":"soon"}"#;
    let refused = other.tree().import(&mut &wrong[..], None, &Default::default()).unwrap_err();
    assert!(refused.message().contains("expires: expected microseconds"), "{refused}");
}

#[test]
fn bad_lives_are_refused_and_change_nothing() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let (uri, options) = ("s3://somewhere/store", Options { inline_bytes: 0, ..Options::default() });
    let shared = drumlin::store::open_bucket(Arc::new(bucket), env(&clock, 5, 2), uri, options).unwrap();
    let alone = Store::memory().unwrap();
    for (store, seconds) in [(&shared, 179), (&shared, 31 * 86_400), (&alone, 0), (&alone, 31 * 86_400)] {
        let refused = begin(store, seconds).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
        assert_eq!(store.tree().presences().unwrap(), []);
    }
    assert_eq!(alone.tree().presence(&Default::default()).unwrap().life_micros(), 30_000_000);
    assert_eq!(shared.tree().presence(&Default::default()).unwrap().life_micros(), 180_000_000);
    let tree = alone.tree();
    tree.put_with("a", 1, ttl(0)).unwrap_err();
    let unknown = PutOptions { presence: Some(99), ..Default::default() };
    assert_eq!(tree.put_with("a", 1, unknown).unwrap_err().kind(), ErrorKind::ConditionFailed);
    assert!(!tree.exists("a").unwrap());
    // A time that never comes.
    tree.put_with("a", 1, PutOptions { ttl_micros: Some(u64::MAX), ..Default::default() }).unwrap();
    assert_eq!(tree.node("a").unwrap().unwrap().expires, Some(Timestamp(i64::MAX)));
    look(&alone);
    assert!(tree.exists("a").unwrap());
    // An empty list of conditions ends what it lived on.
    tree.keep_while("a", &[]).unwrap();
    assert_eq!(tree.node("a").unwrap().unwrap().expires, None);
}

#[test]
fn very_many_nodes_that_go_at_once_are_told_of() {
    let said: Arc<Mutex<Vec<WarningKind>>> = Arc::default();
    let hear = said.clone();
    let warn = Warn::new(move |kind, _| hear.lock().unwrap().push(kind));
    let environment = drumlin::base::Env {
        clock: clock(),
        entropy: Arc::new(SeededEntropy::new(4)),
        threads: Arc::new(OsThreads),
        warn,
        ..env(&clock(), 4, 2)
    };
    let disk = Arc::new(SimDisk::new());
    let store = drumlin::store::open_on(disk, environment, "sim", Options::default()).unwrap();
    let presence = begin(&store, 30).unwrap();
    store.tree().put_with("all", 0, on(&presence)).unwrap();
    let below: Vec<(String, Payload)> = (0..12_000).map(|i| (format!("all/{i}"), Payload::from(i))).collect();
    store.tree().put_many(&below).unwrap();
    presence.end().unwrap();
    assert_eq!(*said.lock().unwrap(), [WarningKind::LargeCascade]);
    assert!(!store.tree().exists("all").unwrap());
}

#[test]
fn a_thread_renews_and_ends_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().to_str().unwrap()).unwrap();
    let presence = begin(&store, 1).unwrap();
    store.tree().put_with("mine", 1, on(&presence)).unwrap();
    store.tree().put_with("timed", 1, PutOptions { ttl_micros: Some(50_000), ..Default::default() }).unwrap();
    let gone = |path: &str| {
        (0..6_000).any(|_| {
            SystemPause.pause(Duration::from_millis(10));
            !store.tree().exists(path).unwrap()
        })
    };
    assert!(gone("timed"));
    let first = store.seq().unwrap();
    // Beats are commits: three of them take one life.
    assert!((0..6_000).any(|_| {
        SystemPause.pause(Duration::from_millis(10));
        store.seq().unwrap().0 >= first.0 + 4
    }));
    assert!(store.tree().exists("mine").unwrap());
    // Whose owner is gone ends by itself.
    drop(presence);
    assert!(gone("mine"));
}

#[test]
fn a_thread_misses_no_node() {
    let store = Store::memory().unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let store = &store;
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(writer);
                for i in 0..300 {
                    // Each may be due before what the thread waits for, or come while it has nothing to do.
                    let ttl_micros = Some(rng.u64(1..30_000));
                    let options = PutOptions { ttl_micros, ..Default::default() };
                    store.tree().put_with(&format!("{writer}/{i}"), 1, options).unwrap();
                    SystemPause.pause(Duration::from_micros(rng.u64(0..200)));
                }
            });
        }
    });
    assert!((0..6_000).any(|_| {
        SystemPause.pause(Duration::from_millis(10));
        store.tree().count("**").unwrap() == 0
    }));
}

struct SystemPause;

impl SystemPause {
    fn pause(&self, time: Duration) {
        drumlin::base::SystemClock.pause(time);
    }
}
