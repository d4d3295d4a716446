//! Replicas, and stores whose log is on a server, that earlier builds made, kept with the sources.
//!
//! `cargo test --release --test it make_golden -- --ignored` makes those that are not there.

use std::path::Path;
use std::sync::Arc;

use drumlin::base::{ManualClock, Seq, Timestamp};
use drumlin::catalog::Payload;
use drumlin::storage::SimBucket;
use drumlin::store::{
    CloneAt, LogPlace, Mode, Options, PromoteOptions, ReplicateOptions, clone_store, promote, replicate,
};
use drumlin::{ErrorKind, Store, Tables};

use super::{build, check, folder};
use crate::cells::{Process, in_cell};
use crate::faults::golden_on::copy_folder;
use crate::support::{batch, numbered, read};

/// Replicas that keep their log, one for each form that differs.
const REPLICAS: [&str; 1] = ["v10-replica"];
/// Stores in a bucket whose log is on a server: what is in the bucket, and what is on the server.
const IN_CELLS: [&str; 1] = ["v10-cell"];

/// What a store that is written has beside what all golden ones have: the commit from which `after` is there.
fn go_on(store: &Store) {
    store.tree().put("at", Payload::from(store.seq().unwrap().0 as i64)).unwrap();
    store.tree().put("after", Payload::from(1)).unwrap();
    store.write("t/b", batch(&numbered(0, 5)), &Default::default()).unwrap();
}

fn check_gone_on(store: &Store) {
    check(store);
    assert_eq!(store.tree().get("after").unwrap(), Some(Payload::from(1)));
    assert_eq!(read(store, "t/b", drumlin::store::AsOf::Newest).unwrap(), numbered(0, 5));
}

fn at(uri: &Path, mode: Mode) -> drumlin::Result<Store> {
    Store::open_with(uri.to_str().unwrap(), Options { mode, ..Options::default() })
}

// faults: other format x open
#[test]
fn replicas_of_earlier_builds_are_read_restored_from_and_promoted() {
    for version in REPLICAS {
        let folders = tempfile::tempdir().unwrap();
        let replica = folders.path().join("replica");
        std::fs::create_dir(&replica).unwrap();
        copy_folder(&folder(version), &replica);
        let shown = at(&replica, Mode::Read).unwrap();
        check_gone_on(&shown);
        let before = shown.tree().get("at").unwrap().and_then(|at| at.to_json()?.as_u64()).expect("a commit's number");
        drop(shown);
        let refused = at(&replica, Mode::Write).unwrap_err();
        assert!(refused.kind() == ErrorKind::InvalidArgument && refused.message().contains("promote"), "{refused}");

        let restored = folders.path().join("restored");
        let (from, to) = (replica.to_str().unwrap(), restored.to_str().unwrap());
        clone_store(from, to, CloneAt::Commit(Seq(before)), &ReplicateOptions::default()).unwrap();
        let restored = at(&restored, Mode::Write).unwrap();
        check(&restored);
        assert_eq!(restored.tree().get("after").unwrap(), None);
        restored.write("t/new", batch(&numbered(0, 3)), &Default::default()).unwrap();
        restored.close().unwrap();

        promote(from, &PromoteOptions { lost: true, ..PromoteOptions::default() }).unwrap();
        let promoted = at(&replica, Mode::Write).unwrap();
        check_gone_on(&promoted);
        promoted.write("t/new", batch(&numbered(0, 3)), &Default::default()).unwrap();
        promoted.close().unwrap();
    }
}

// faults: other format x open
#[test]
fn stores_of_earlier_builds_whose_log_is_on_a_server_go_on_and_take_it_back() {
    for version in IN_CELLS {
        let [bucket, server] = ["bucket", "server"].map(|part| loaded(&folder(version).join(part)));
        let clock = clock();
        let process = Process::new(&bucket, &server);
        let open = |seed| process.open(&clock, seed, Options::default()).unwrap();
        let store = open(1);
        check_gone_on(&store);
        store.tree().put("later", Payload::from(1)).unwrap();
        store.checkpoint(&Default::default()).unwrap();
        store.close().unwrap();
        process.move_log(&clock, 2, &LogPlace::Store).unwrap();
        let store = open(3);
        check_gone_on(&store);
        assert_eq!(store.tree().get("later").unwrap(), Some(Payload::from(1)));
        store.close().unwrap();
    }
}

/// Later than anything that was written, so that no time runs backwards.
fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp(4_000_000_000_000_000)))
}

fn loaded(from: &Path) -> SimBucket {
    fn load(bucket: &SimBucket, from: &Path, prefix: &str) {
        for entry in std::fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{prefix}{}", path.file_name().unwrap().to_str().unwrap());
            match path.is_dir() {
                true => load(bucket, &path, &format!("{name}/")),
                false => bucket.overwrite(&name, std::fs::read(&path).unwrap()),
            }
        }
    }
    let bucket = SimBucket::new();
    load(&bucket, from, "");
    bucket
}

fn keep(bucket: &SimBucket, to: &Path) {
    for (name, _) in bucket.objects() {
        let path = to.join(&name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bucket.content(&name).unwrap()).unwrap();
    }
}

#[test]
#[ignore = "makes the files that the other tests read"]
fn make_golden_elsewhere() {
    for uri in REPLICAS.map(folder).iter().filter(|uri| !uri.exists()) {
        let source = tempfile::tempdir().unwrap();
        let from = source.path().join("source");
        let options = ReplicateOptions { once: true, keep_log_micros: Some(1 << 60), ..ReplicateOptions::default() };
        let bring = || replicate(from.to_str().unwrap(), uri.to_str().unwrap(), &options).unwrap();
        let store = Store::open_with(from.to_str().unwrap(), Options::default()).unwrap();
        build(&store).unwrap();
        bring();
        go_on(&store);
        store.close().unwrap();
        bring();
    }
    for uri in IN_CELLS.map(folder).iter().filter(|uri| !uri.exists()) {
        let [bucket, server] = [SimBucket::new(), SimBucket::new()];
        let store = Process::new(&bucket, &server).open(&clock(), 1, in_cell()).unwrap();
        build(&store).unwrap();
        go_on(&store);
        store.close().unwrap();
        keep(&bucket, &uri.join("bucket"));
        keep(&server, &uri.join("server"));
    }
}
