//! Salvage of a store whose log is on a server: what the server has is kept, and the report says what may be lost with it.

use std::sync::Arc;

use drumlin::base::ManualClock;
use drumlin::catalog::Payload;
use drumlin::storage::{BucketFault, SimBucket};
use drumlin::store::{LossKind, Options, SalvageReport, SalvageTarget};
use drumlin::{Store, Tables, Task};

use super::{Process, SimServer, in_cell};
use crate::processes::shared_support::clock;
use crate::support::env;

fn salvage(bucket: &SimBucket, server: &SimBucket, clock: &Arc<ManualClock>) -> (SimBucket, SalvageReport) {
    let (new, cells) = (SimBucket::new(), SimServer::new(server, clock, 50));
    let target = SalvageTarget::Shared(Arc::new(new.clone()));
    let env = env(clock, 51, 2);
    let done = target.salvage_with(Arc::new(bucket.clone()), &cells, env, Options::default(), &Task::default());
    (new, done.unwrap())
}

fn note(store: &Store, numbers: std::ops::Range<i64>) {
    numbers.for_each(|n| drop(store.tree().put(&format!("n/{n}"), Payload::from(n)).unwrap()));
}

fn noted(store: &Store) -> i64 {
    (0..).find(|n| store.tree().get(&format!("n/{n}")).unwrap().is_none()).unwrap()
}

#[test]
fn a_salvage_keeps_what_is_on_the_server_and_tells_if_it_does_not_answer() {
    let (bucket, server, clock) = (SimBucket::new(), SimBucket::new(), clock());
    let store = Process::new(&bucket, &server).open(&clock, 1, in_cell()).unwrap();
    note(&store, 0..10);
    store.checkpoint(&Default::default()).unwrap();
    note(&store, 10..40);
    let last = store.seq().unwrap();
    let (new, report) = salvage(&bucket, &server, &clock);
    assert_eq!((report.losses.len(), report.seq), (0, last), "{:?}", report.losses);
    let found = Process::new(&new, &SimBucket::new()).open(&clock, 2, Options::default()).unwrap();
    assert_eq!(noted(&found), 40);

    // The object knows the log up to the last checkpoint. That nothing followed, nobody can say.
    let silent = server.client();
    silent.plan(|_, _| Some(BucketFault::Refused));
    let (new, report) = salvage(&bucket, &silent, &clock);
    let told: Vec<String> = report.losses.iter().map(ToString::to_string).collect();
    assert!(report.losses.iter().any(|loss| loss.kind == LossKind::Commits), "{told:?}");
    assert!(told.iter().any(|loss| loss.contains("the log after commit")), "{told:?}");
    let found = Process::new(&new, &SimBucket::new()).open(&clock, 3, Options::default()).unwrap();
    assert_eq!(noted(&found), 10);

    // A server that was put back has another history than the object noted.
    let empty = SimBucket::new();
    let (_, report) = salvage(&bucket, &empty, &clock);
    let told: Vec<String> = report.losses.iter().map(ToString::to_string).collect();
    assert!(report.losses.iter().any(|loss| loss.kind == LossKind::Commits), "{told:?}");
}
