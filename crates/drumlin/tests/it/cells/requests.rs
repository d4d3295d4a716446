//! What commits to a cell ask of the bucket: nothing.

use drumlin::Tables;
use drumlin::catalog::Payload;
use drumlin::storage::SimBucket;
use drumlin::store::Options;

use super::{Process, in_cell};
use crate::processes::shared_support::clock;
use crate::support::{batch, numbered, rows};

#[test]
fn a_commit_asks_nothing_of_the_bucket_and_the_same_of_the_server_whatever_the_log_has() {
    let (bucket, server, clock) = (SimBucket::new(), SimBucket::new(), clock());
    let store = Process::new(&bucket, &server).open(&clock, 1, in_cell()).unwrap();
    let commit = |at: u64| store.tree().put("n", Payload::from(at as i64)).unwrap();
    commit(0);
    let mut counted = Vec::new();
    for round in 0..3 {
        let (there, here) = (bucket.requests(), server.requests());
        (0..100).for_each(|at| drop(commit(round * 100 + at)));
        let (now, its) = (bucket.requests(), server.requests());
        assert_eq!((now.puts, now.gets, now.lists), (there.puts, there.gets, there.lists));
        counted.push((its.puts - here.puts, its.gets - here.gets));
    }
    assert!(counted.iter().all(|count| *count == counted[0]) && counted[0].0 == 100, "{counted:?}");
}

#[test]
fn many_and_large_commits_go_to_chunks_and_come_back() {
    let (bucket, server, clock) = (SimBucket::new(), SimBucket::new(), clock());
    let inline = Options { inline_bytes: 64 << 10, ..in_cell() };
    let cells = super::SimServer::new(&server, &clock, 1);
    let options = Options { checkpoint_log_bytes: 0, ..inline };
    let store = drumlin::store::open_bucket_with(
        std::sync::Arc::new(bucket.clone()),
        &cells,
        crate::support::env(&clock, 1, 2),
        "bucket",
        options,
    )
    .unwrap();
    let other = Process::new(&bucket, &server).open(&clock, 2, Options::default()).unwrap();
    let (mut expected, mut rng) = (Vec::new(), fastrand::Rng::with_seed(5));
    for at in 0..160 {
        let added = numbered(at * 10_000, 40);
        match at {
            0 => store.write("t", batch(&added), &Default::default()).unwrap(),
            _ => store.append("t", batch(&added), &Default::default()).unwrap(),
        };
        expected.extend(added);
        if at % 4 == 0 {
            // What does not compress; now and then more than a row may have.
            let bytes: Vec<u8> = (0..if at % 40 == 0 { 40_000 } else { 12_000 }).map(|_| rng.u8(..)).collect();
            other.tree().put(&format!("n/{at}"), Payload::bytes(&bytes).unwrap()).unwrap();
        }
    }
    let chunks = bucket.objects().iter().filter(|(name, _)| name.starts_with("log/")).count();
    assert!(chunks >= 4, "{chunks}");
    // The server keeps what came after the last of them.
    let held: u64 = server.objects().iter().map(|(_, bytes)| bytes).sum();
    assert!(held < 600 << 10, "{held}");
    let fresh = Process::new(&bucket, &server).open(&clock, 3, Options::default()).unwrap();
    assert_eq!(rows(&fresh.table("t").collect(&Default::default()).unwrap()), expected);
    store.refresh().unwrap();
    store.checkpoint(&Default::default()).unwrap();
    let held: u64 = server.objects().iter().map(|(_, bytes)| bytes).sum();
    assert!(server.objects().len() <= 2 && held < 20 << 10, "{held}");
    let fresh = Process::new(&bucket, &server).open(&clock, 4, Options::default()).unwrap();
    assert_eq!(rows(&fresh.table("t").collect(&Default::default()).unwrap()), expected);
}
