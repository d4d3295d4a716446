//! Readers and feeds while a process writes: they read only what is new, once.

use std::sync::Arc;
use std::time::Duration;

use drumlin::base::{ManualClock, Timestamp};
use drumlin::catalog::Payload;
use drumlin::storage::{SimBucket, SimDisk};
use drumlin::store::{AsOf, Mode, Options};
use drumlin::{Store, Tables};

use crate::processes::shared_support::{clock, open_as};
use crate::support::{batch, env, numbered, read};

fn large(n: u64) -> Payload {
    let mut rng = fastrand::Rng::with_seed(n);
    Payload::bytes(&(0..20_000).map(|_| rng.u8(..)).collect::<Vec<_>>()).unwrap()
}

fn open_file(disk: &SimDisk, mode: Mode) -> Store {
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let options = Options { mode, checkpoint_log_bytes: 0, ..Options::default() };
    drumlin::store::open_on(Arc::new(disk.clone()), env(&clock, disk.counters().changes, 1), "sim", options).unwrap()
}

#[test]
fn a_reader_of_a_large_log_reads_what_is_new() {
    let disk = SimDisk::in_memory();
    let writer = open_file(&disk, Mode::Create);
    for n in 0..100 {
        writer.tree().put(&format!("n/{n}"), large(n)).unwrap();
    }
    let reader = open_file(&disk, Mode::Read);
    let mut worst = 0;
    for n in 0..50 {
        writer.tree().put("one", Payload::from(n)).unwrap();
        let before = disk.counters().bytes_read;
        reader.refresh().unwrap();
        assert_eq!(reader.tree().get("one").unwrap(), Some(Payload::from(n)));
        // Its position is found with the first two reads.
        if n >= 2 {
            worst = worst.max(disk.counters().bytes_read - before);
        }
    }
    assert!(worst < 1000, "{worst} bytes for a commit of a few");
    // A feed reads nothing more, because it gets what the reader finds.
    let mut feed = reader.changes(reader.seq().unwrap()).unwrap();
    for n in 0..20 {
        writer.tree().put("one", Payload::from(n)).unwrap();
        let before = disk.counters().bytes_read;
        assert_eq!(feed.next(Some(Duration::ZERO)).unwrap().unwrap().seq(), writer.seq().unwrap());
        let bytes = disk.counters().bytes_read - before;
        assert!(bytes < 1000, "{bytes} bytes for a commit of a few");
    }
}

// faults: torn log tail, concurrent change x open, read, feed
#[test]
fn a_reader_sees_what_the_writer_does_whatever_happens_to_the_log() {
    crate::seeds::each(0..60, 10, |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let disk = SimDisk::in_memory();
        let mut writer = Some(open_file(&disk, Mode::Create));
        writer.as_ref().unwrap().tree().put("n", Payload::from(0)).unwrap();
        let reader = open_file(&disk, Mode::Read);
        let mut feed = reader.changes(reader.seq().unwrap()).unwrap();
        for step in 0..60_i64 {
            let store = writer.as_ref().unwrap();
            match rng.u8(..12) {
                0 => drop(store.checkpoint(&Default::default()).unwrap()),
                1 => drop(store.reclaim(&Default::default()).unwrap()),
                2 => {
                    // With or without an end mark.
                    if rng.bool() {
                        store.close().unwrap();
                    }
                    drop(writer.take());
                    writer = Some(open_file(&disk, Mode::Write));
                }
                3 => {
                    // The beginning of a record whose writer died.
                    drop(writer.take());
                    let (log, mut content) =
                        disk.files().into_iter().rfind(|(name, _)| name.starts_with("log/")).unwrap();
                    content.extend_from_slice(&vec![1; rng.usize(1..60)]);
                    disk.damage(&log, content);
                    reader.refresh().unwrap();
                    writer = Some(open_file(&disk, Mode::Write));
                }
                4 => drop(store.write("t", batch(&numbered(step, 10)), &Default::default()).unwrap()),
                _ => drop(store.tree().put("n", Payload::from(step)).unwrap()),
            }
            let store = writer.as_ref().unwrap();
            if rng.bool() {
                reader.refresh().unwrap();
                assert_eq!(reader.seq().unwrap(), store.seq().unwrap(), "seed {seed}, step {step}");
                assert_eq!(reader.tree().get("n").unwrap(), store.tree().get("n").unwrap(), "seed {seed}, step {step}");
                let both = [&reader, store].map(|store| read(store, "t", AsOf::Newest).ok());
                assert_eq!(both[0], both[1], "seed {seed}, step {step}");
            }
            if rng.u8(..4) == 0 {
                let mut place = feed.seq();
                loop {
                    match feed.next(Some(Duration::ZERO)) {
                        Ok(Some(commit)) => {
                            assert_eq!(commit.seq().0, place.0 + 1, "seed {seed}, step {step}");
                            place = commit.seq();
                        }
                        Ok(None) => break,
                        Err(e) => {
                            assert_eq!(e.kind(), drumlin::ErrorKind::SnapshotExpired, "seed {seed}, step {step}: {e}");
                            feed = reader.changes(reader.seq().unwrap()).unwrap();
                            break;
                        }
                    }
                }
                assert_eq!(feed.seq(), store.seq().unwrap(), "seed {seed}, step {step}");
            }
        }
    });
}

// faults: concurrent change x feed
#[test]
fn a_feed_of_a_shared_store_reads_what_is_new() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let open = || open_as(&bucket.client(), &clock, Options { checkpoint_log_bytes: 0, ..Options::default() }).unwrap();
    let (writer, reader) = (open(), open());
    let mut feed = reader.changes(reader.seq().unwrap()).unwrap();
    for n in 0..100 {
        writer.tree().put(&format!("n/{n}"), large(n)).unwrap();
    }
    let mut given = 0;
    let before = bucket.requests();
    while feed.next(Some(Duration::ZERO)).unwrap().is_some() {
        given += 1;
    }
    let read = bucket.requests();
    assert_eq!(given, 100);
    assert!(read.bytes_read - before.bytes_read < 100 * 20_000 * 11 / 10, "all of it once");
    assert!(read.gets - before.gets < 60, "{} reads for 100 commits", read.gets - before.gets);
    let (mut bytes, mut gets) = (0, 0);
    for n in 0..20 {
        writer.tree().put("one", Payload::from(n)).unwrap();
        let before = bucket.requests();
        assert!(feed.next(Some(Duration::ZERO)).unwrap().is_some());
        let after = bucket.requests();
        (bytes, gets) = (after.bytes_read - before.bytes_read, after.gets - before.gets);
        assert!(bytes < 160_000 && gets <= 2, "{bytes} bytes in {gets} reads for a commit of a few");
    }
    assert!(bytes > 0 && gets > 0);
}
