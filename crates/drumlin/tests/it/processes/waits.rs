//! Waits: every call on a store in a bucket, stopped while it waits for each of its requests in turn. It ends, it says whether it
//! may have been done, and the store goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drumlin::base::{Cancel, ManualClock, Progress, Task, waiting};
use drumlin::catalog::Payload;
use drumlin::storage::{BucketOp, SimBucket};
use drumlin::store::{AsOf, CheckpointOptions, Options, ReclaimOptions, VerifyOptions};
use drumlin::{ErrorKind, Result, Store, Tables};

use crate::processes::shared_support::{clock, open, open_as, settled};
use crate::support::{batch, numbered, read};

type Call = (&'static str, fn(&Store) -> Result<()>);

/// Calls of all kinds: what they wait for are requests, and the turn to commit.
const CALLS: [Call; 21] = [
    ("put", |store| store.tree().put("n/a", Payload::from(2)).map(drop)),
    ("delete nodes", |store| store.tree().delete_many("n/**").map(drop)),
    ("get", |store| store.tree().get("n/a").map(drop)),
    ("list", |store| store.tree().list("**").map(drop)),
    ("write", |store| store.write("t", batch(&numbered(0, 3000)), &Default::default()).map(drop)),
    ("append", |store| store.append("t", batch(&numbered(5, 40)), &Default::default()).map(drop)),
    ("delete", |store| store.table("t").delete("id < 10", &Default::default()).map(drop)),
    ("read", |store| read(store, "t", AsOf::Newest).map(drop)),
    ("versions", |store| store.table("t").versions().map(drop)),
    ("copy", |store| store.copy("t", "copied", &AsOf::Newest, drumlin::Existing::Refuse).map(drop)),
    ("snapshot", |store| store.snapshot("s", drumlin::store::SnapshotOf::Newest("**")).map(drop)),
    ("transaction", |store| {
        let tx = store.transaction()?;
        tx.tree().put("n/tx", Payload::from(1))?;
        tx.append("t", batch(&numbered(9, 9)), &Default::default())?;
        tx.commit().map(drop)
    }),
    ("drop", |store| store.drop("t").map(drop)),
    ("undrop", |store| {
        store.drop("t")?;
        store.undrop("t", None).map(drop)
    }),
    ("checkpoint", |store| store.checkpoint(&Default::default()).map(drop)),
    ("reclaim", |store| store.reclaim(&ReclaimOptions { audit: true, ..Default::default() }).map(drop)),
    ("verify", |store| store.verify(&VerifyOptions { deep: true, ..Default::default() }).map(drop)),
    ("changes", |store| {
        let mut feed = store.changes(store.seq()?)?;
        while feed.next(Some(std::time::Duration::ZERO))?.is_some() {}
        Ok(())
    }),
    ("refresh", |store| store.refresh().map(drop)),
    ("stat", |store| store.stat().map(drop)),
    ("close", Store::close),
];

/// A store with something of everything, in a bucket of its own.
fn filled(clock: &Arc<ManualClock>) -> SimBucket {
    let bucket = SimBucket::new();
    let store = open(&bucket, clock).unwrap();
    store.tree().put("n/a", Payload::from(1)).unwrap();
    store.write("t", batch(&numbered(0, 2000)), &Default::default()).unwrap();
    store.append("t", batch(&numbered(1, 50)), &Default::default()).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    store.append("t", batch(&numbered(2, 50)), &Default::default()).unwrap();
    store.close().unwrap();
    bucket
}

/// Runs `call` on `store`, which is stopped while it waits for request `at`. Returns whether it came so far.
fn stopped_at(at: u64, client: &SimBucket, call: impl FnOnce() -> Result<()>) -> (bool, Result<()>) {
    let (cancel, reached) = (Cancel::default(), Arc::new(AtomicBool::new(false)));
    let (flag, told, mut requests) = (cancel.clone(), reached.clone(), 0);
    client.plan(move |_, _| {
        if requests == at {
            told.store(true, Ordering::SeqCst);
            flag.cancel();
        }
        requests += 1;
        None
    });
    let done = waiting::with_stop(&cancel, call);
    client.heal();
    (reached.load(Ordering::SeqCst), done)
}

// faults: stopped call x write, delete, drop, undrop, snapshot, checkpoint, reclaim, read, nodes, transaction, feed, verify
#[test]
fn every_call_ends_at_each_of_its_waits_and_the_store_goes_on() {
    for (name, call) in CALLS {
        let mut waits = 0;
        loop {
            let clock = clock();
            let bucket = filled(&clock);
            let client = bucket.client();
            let options = Options { inline_bytes: 0, fresh: true, ..Options::default() };
            let store = open_as(&client, &clock, options).unwrap();
            let (reached, done) = stopped_at(waits, &client, || call(&store));
            if !reached {
                done.unwrap_or_else(|e| panic!("{name}: {e}"));
                break;
            }
            if let Err(e) = done {
                let kinds = [ErrorKind::Cancelled, ErrorKind::InDoubt];
                assert!(kinds.contains(&e.kind()), "{name}, request {waits}: {:?} {e}", e.kind());
            }
            if name != "close" {
                // A commit that goes on ends first.
                store.refresh().unwrap_or_else(|e| panic!("{name}, request {waits}: {e}"));
                store.tree().put("after", Payload::from(1)).unwrap_or_else(|e| panic!("{name}, request {waits}: {e}"));
            }
            let other = open(&bucket.client(), &clock).unwrap();
            if name == "close" {
                // What it leaves under way may go on.
                assert!(other.verify(&Default::default()).unwrap().faults.is_empty(), "request {waits}");
                waits += 1;
                continue;
            }
            assert!(other.tree().get("after").unwrap().is_some(), "{name}, request {waits}");
            settled(&other, &bucket).unwrap_or_else(|e| panic!("{name}, request {waits}: {e}"));
            waits += 1;
        }
        assert!(waits > 0 || ["versions", "close", "stat"].contains(&name), "{name} waits for nothing");
    }
}

// faults: stopped call x open
#[test]
fn opening_ends_at_each_of_its_waits() {
    for make in [true, false] {
        let mut waits = 0;
        loop {
            let clock = clock();
            let bucket = if make { SimBucket::new() } else { filled(&clock) };
            let client = bucket.client();
            let (reached, done) = stopped_at(waits, &client, || open(&client, &clock).map(drop));
            if !reached {
                done.unwrap();
                break;
            }
            if let Err(e) = done {
                let kinds = [ErrorKind::Cancelled, ErrorKind::InDoubt, ErrorKind::Unavailable];
                assert!(kinds.contains(&e.kind()), "request {waits}: {:?} {e}", e.kind());
            }
            open(&client, &clock).unwrap().tree().put("after", Payload::from(1)).unwrap();
            waits += 1;
        }
        assert!(waits > 1);
    }
}

// faults: stopped call x write
#[test]
fn a_call_that_is_stopped_takes_no_other_commit_with_it() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let client = bucket.client();
    let store = open(&client, &clock).unwrap();
    store.tree().put("n", Payload::from(0)).unwrap();
    let cancel = Cancel::default();
    let (flag, others, mut first) = (cancel.clone(), store.clone(), true);
    let (told, answers) = std::sync::mpsc::channel();
    client.plan(move |op, _| {
        if op == BucketOp::PutIf && std::mem::take(&mut first) {
            // They wait for the turn of the commit that is under way, or for the next one.
            for at in 0..4_i64 {
                let (store, told) = (others.clone(), told.clone());
                let put = move || told.send(store.tree().put(&format!("other/{at}"), Payload::from(at))).unwrap();
                std::thread::Builder::new().spawn(put).unwrap();
            }
            flag.cancel();
        }
        None
    });
    let done = waiting::with_stop(&cancel, || store.tree().put("own", Payload::from(1)).map(drop));
    if let Err(e) = done {
        assert!([ErrorKind::Cancelled, ErrorKind::InDoubt].contains(&e.kind()), "{e}");
    }
    let mut got = 0;
    while got < 4 {
        answers.recv_timeout(std::time::Duration::from_secs(60)).expect("an answer").unwrap();
        got += 1;
    }
    assert_eq!(store.tree().count("other/*").unwrap(), 4);
}

// faults: stopped call x checkpoint, reclaim
#[test]
fn functions_that_a_call_calls_get_an_error_for_what_it_holds() {
    let clock = clock();
    let bucket = filled(&clock);
    let store = open(&bucket, &clock).unwrap();
    for at in 0..6 {
        store.append("t", batch(&numbered(at, 30)), &Default::default()).unwrap();
    }
    let outer: [fn(&Store, Task) -> Result<()>; 3] = [
        |store, task| store.checkpoint(&CheckpointOptions { task, ..Default::default() }).map(drop),
        |store, task| store.reclaim(&ReclaimOptions { task, audit: true, ..Default::default() }).map(drop),
        |store, task| {
            let filter = drumlin::filter::Filter::parse("id = 3")?;
            store.purge("t", &filter)?.execute(&task).map(drop)
        },
    ];
    let mut refused = 0;
    for outer in outer {
        for inner in outer_calls() {
            let (own, told) = (store.clone(), Arc::new(parking_lot::Mutex::new(Vec::new())));
            let answers = told.clone();
            let progress = move |_: Progress| {
                let answer = inner(&own, Task::default());
                answers.lock().push(answer.map_err(|e| (e.kind(), e.to_string())));
            };
            let task = Task { progress: Some(Arc::new(progress)), ..Task::default() };
            store.write("more", batch(&numbered(0, 900)), &Default::default()).unwrap();
            store.append("more", batch(&numbered(7, 9)), &Default::default()).unwrap();
            store.drop("more").unwrap();
            outer(&store, task).unwrap();
            for answer in told.lock().drain(..) {
                let (kind, text) = answer.unwrap_err();
                assert!(kind == ErrorKind::InvalidArgument && text.contains("in progress"), "{kind:?} {text}");
                refused += 1;
            }
        }
    }
    assert!(refused > 3, "{refused}");
    assert!(store.verify(&Default::default()).unwrap().faults.is_empty());
}

fn outer_calls() -> [fn(&Store, Task) -> Result<()>; 2] {
    [
        |store, task| store.checkpoint(&CheckpointOptions { task, ..Default::default() }).map(drop),
        |store, task| store.reclaim(&ReclaimOptions { task, ..Default::default() }).map(drop),
    ]
}
