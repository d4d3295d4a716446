//! Readers, while another process rewrites and reclaims what they read.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use arrow::array::RecordBatch;
use drumlin::base::{Result, Version};
use drumlin::filter::Filter;
use drumlin::storage::{BucketOp, SimBucket, Storage};
use drumlin::store::{AsOf, CheckpointOptions, Options, ReadOptions, TableOptions, WriteOptions};
use drumlin::table::{PlanOptions, Scan, ScanOptions};
use drumlin::{Aggregate, ErrorKind, Expression, Function, GroupBy, Merge, Store, Tables, WhenMatched, WhenNotMatched};

use crate::processes::shared_support::{clock, open, open_as, rounds, settled};
use crate::seeds;
use crate::support::{Row, batch, env, numbered, read, rows};

/// Two processes; the second caches nothing that it has read.
fn writer_and_reader() -> (SimBucket, Store, Store) {
    let (bucket, clock) = (SimBucket::new(), clock());
    let writer = open(&bucket, &clock).unwrap();
    let options = Options { cache_bytes: 0, inline_bytes: 0, ..Options::default() };
    let reader = open_as(&bucket.client(), &clock, options).unwrap();
    (bucket, writer, reader)
}

/// Rewrites everything that can be rewritten, and deletes what that leaves behind.
fn rewrite(store: &Store) {
    let plan = PlanOptions { dead_share_min: 0.0, repack_dead_share_min: 0.0, ..PlanOptions::default() };
    store.checkpoint(&CheckpointOptions { plan, ..Default::default() }).unwrap();
    let report = store.reclaim(&Default::default()).unwrap();
    assert!(report.failures.is_empty(), "{report}");
}

fn rest(scan: Scan) -> Result<Vec<Row>> {
    Ok(rows(&scan.collect()?))
}

// faults: reclaim beside a reader x read
#[test]
fn a_reader_finds_rows_where_they_are_now() {
    let (_, writer, reader) = writer_and_reader();
    for n in 0..10 {
        writer.write(&format!("many/{n}"), batch(&numbered(n, 20)), &Default::default()).unwrap();
        match n {
            0 => writer.write("t", batch(&numbered(0, 50)), &Default::default()).unwrap(),
            n => writer.append("t", batch(&numbered(n * 50, 50)), &Default::default()).unwrap(),
        };
    }
    writer.table("t").delete("id % 3 = 0", &Default::default()).unwrap();
    reader.refresh().unwrap();
    let expected: Vec<Row> = numbered(0, 500).into_iter().filter(|(id, _)| id % 3 != 0).collect();
    let scan = |options: ScanOptions| reader.read("t", &ReadOptions::from(options));
    // Begun before, read after.
    let begun = scan(ScanOptions::default()).unwrap();
    let mut under_way = scan(ScanOptions::default()).unwrap();
    let first = rows(&[under_way.next().unwrap().unwrap()]);
    let tail = scan(ScanOptions { tail: Some(77), ..ScanOptions::default() }).unwrap();
    let limit = scan(ScanOptions { limit: Some(123), ..ScanOptions::default() }).unwrap();
    let filter = Some(Filter::parse("id >= 250").unwrap());
    let filtered = scan(ScanOptions { filter, ..ScanOptions::default() }).unwrap();
    let many: Vec<String> = (0..10).map(|n| format!("many/{n}")).collect();
    rewrite(&writer);
    assert_eq!(rows(&begun.collect().unwrap()), expected);
    assert_eq!([first, rest(under_way).unwrap()].concat(), expected);
    assert_eq!(rows(&tail.collect().unwrap()), expected[expected.len() - 77..]);
    assert_eq!(rest(limit).unwrap(), expected[..123]);
    assert_eq!(rest(filtered).unwrap(), expected.iter().filter(|(id, _)| *id >= 250).cloned().collect::<Vec<_>>());
    // A read that begins now, from the old state.
    for n in 0..10 {
        writer.append(&format!("many/{n}"), batch(&numbered(n + 20, 5)), &Default::default()).unwrap();
    }
    rewrite(&writer);
    for (n, scan) in reader.read_many(&many, &ReadOptions::default()).unwrap().into_iter().enumerate() {
        let read = rows(&scan.collect().unwrap());
        assert!(read == numbered(n as i64, 20) || read == numbered(n as i64, 25), "{n}: {} rows", read.len());
    }
}

// faults: reclaim beside a reader x read
#[test]
fn a_reader_whose_version_is_gone_gets_an_error() {
    let (_, writer, reader) = writer_and_reader();
    for n in 0..3 {
        writer.write("t", batch(&numbered(n, 50)), &Default::default()).unwrap();
    }
    writer.write("u", batch(&numbered(0, 50)), &Default::default()).unwrap();
    reader.refresh().unwrap();
    let as_of = |n| ReadOptions { as_of: AsOf::Version(Version(n)), ..ReadOptions::default() };
    let (old, newest) = (reader.read("t", &as_of(0)).unwrap(), reader.read("t", &as_of(2)).unwrap());
    let dropped = reader.read("u", &ReadOptions::default()).unwrap();
    writer.delete_versions(&[("t".into(), vec![Version(0)])], Default::default()).unwrap();
    writer.drop("u").unwrap();
    // Another table at the same path is not what was read.
    writer.write("u", batch(&numbered(7, 50)), &Default::default()).unwrap();
    rewrite(&writer);
    let gone = old.collect().unwrap_err();
    assert_eq!(
        (gone.kind(), gone.message()),
        (ErrorKind::SnapshotExpired, "version 0 no longer exists; read another one")
    );
    assert_eq!(dropped.collect().unwrap_err().kind(), ErrorKind::SnapshotExpired);
    assert_eq!(rows(&newest.collect().unwrap()), numbered(2, 50));
}

/// A table, sorted by its first column or not, in which many rows share its values.
fn write_more(writer: &Store, rng: &mut fastrand::Rng, sorted: bool) {
    let data: Vec<Row> = (0..rng.usize(1..40)).map(|_| (rng.i64(0..6), Some(rng.u32(..).to_string()))).collect();
    let options = WriteOptions { sort: sorted.then(|| vec!["id".into()]), ..WriteOptions::default() };
    match rng.u8(..8) {
        0 if writer.tree().list("t").is_ok_and(|list| !list.is_empty()) => {
            let below = rng.i64(0..3);
            writer.table("t").delete(&format!("id = {below}"), &Default::default()).map(drop).unwrap();
        }
        1 => writer.write("t", batch(&data), &options).map(drop).unwrap(),
        _ if writer.table("t").versions().is_ok() => {
            writer.append("t", batch(&data), &Default::default()).map(drop).unwrap()
        }
        _ => writer.write("t", batch(&data), &options).map(drop).unwrap(),
    }
}

// faults: reclaim beside a reader x read
#[test]
fn what_is_read_on_elsewhere_is_what_was_begun() {
    let mut renewed = 0;
    seeds::each(0..320, 20, |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (_, writer, reader) = writer_and_reader();
        let sorted = seed % 2 == 0;
        for _ in 0..rng.usize(6..20) {
            write_more(&writer, &mut rng, sorted);
        }
        reader.refresh().unwrap();
        let versions = reader.table("t").versions().unwrap();
        let version = versions[rng.usize(..versions.len())].version;
        let options = ReadOptions { as_of: AsOf::Version(version), ..ReadOptions::default() };
        let expected = rows(&reader.table("t").collect(&options).unwrap());
        let mut scan = reader.read("t", &options).unwrap();
        let (mut seen, mut partly, begun) = (Vec::new(), false, reader.seq().unwrap());
        for _ in 0..3 {
            for _ in 0..rng.usize(..3) {
                if let Some(batch) = scan.next() {
                    seen.extend(rows(&[batch.unwrap()]));
                }
            }
            partly |= !seen.is_empty() && seen.len() < expected.len();
            for _ in 0..rng.usize(..3) {
                write_more(&writer, &mut rng, sorted);
            }
            rewrite(&writer);
        }
        seen.extend(rest(scan).unwrap_or_else(|e| panic!("seed {seed}: {e}")));
        assert_eq!(seen, expected, "seed {seed}");
        // A scan that continues elsewhere has refreshed.
        renewed += usize::from(partly && reader.seq().unwrap() > begun);
    });
    assert!(renewed > 20 || seeds::given(), "{renewed} scans went on in the middle");
}

// faults: reclaim beside a reader x read, look-up
#[test]
fn rows_by_key_are_found_where_they_are_now() {
    let (bucket, writer, reader) = writer_and_reader();
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    writer.table("k").create(batch(&[]).schema(), key).unwrap();
    let upsert = |rows: &[Row]| writer.table("k").upsert(batch(rows), &Default::default()).unwrap();
    upsert(&numbered(0, 100));
    writer.checkpoint(&Default::default()).unwrap();
    upsert(&[(3, Some("three".into()))]);
    reader.refresh().unwrap();
    let mut expected = numbered(0, 100);
    expected[3] = (3, Some("three".into()));
    let view = reader.table("k").view(&AsOf::Newest).unwrap();
    let scan = || reader.read("k", &ReadOptions::default()).unwrap();
    let (quiet, busy) = (scan(), scan());
    let keys = batch(&numbered(0, 10)).project(&[0]).unwrap();
    let look_up = |view: &drumlin::store::TableView| {
        let found = view.get_many(&keys, None, &Default::default())?;
        Ok::<_, drumlin::Error>(rows(std::slice::from_ref(&found.rows)))
    };
    // Only its rows become those of a version.
    rewrite(&writer);
    assert_eq!(rows(&quiet.collect().unwrap()), expected);
    assert_eq!(look_up(&view).unwrap(), expected[..10]);
    // They cannot be distinguished from others that were written since.
    reader.refresh().unwrap();
    upsert(&[(4, Some("four".into()))]);
    rewrite(&writer);
    upsert(&[(5, Some("five".into()))]);
    rewrite(&writer);
    match busy.collect() {
        Ok(read) => assert_eq!(rows(&read), expected),
        Err(e) => assert_eq!(e.kind(), ErrorKind::SnapshotExpired, "{e}"),
    }
    match look_up(&view) {
        Ok(found) => assert_eq!(found, expected[..10]),
        Err(e) => assert_eq!(e.kind(), ErrorKind::SnapshotExpired, "{e}"),
    }
    // A new read finds the current rows.
    let newest = reader.table("k").get_many(&keys, &Default::default()).unwrap();
    reader.refresh().unwrap();
    let now = look_up(&reader.table("k").view(&AsOf::Newest).unwrap()).unwrap();
    assert_eq!((now[4].1.as_deref(), now[5].1.as_deref()), (Some("four"), Some("five")));
    assert!(newest.found.true_count() == 10 && bucket.requests().gets > 0);
}

// faults: reclaim beside a reader, concurrent change x transaction
#[test]
fn a_transaction_reads_its_own_writes_and_nobody_elses() {
    let (_, writer, reader) = writer_and_reader();
    writer.write("t", batch(&numbered(0, 50)), &Default::default()).unwrap();
    writer.append("t", batch(&numbered(50, 50)), &Default::default()).unwrap();
    let tx = reader.transaction().unwrap();
    let begun = tx.read("t", &ReadOptions::default()).unwrap();
    let frame = vec![("own".to_owned(), batch(&numbered(0, 5)).into())];
    tx.write_many(frame, &WriteOptions::default()).unwrap();
    let again = reader.transaction().unwrap();
    again.append_many(vec![("t".to_owned(), batch(&numbered(100, 5)).into())], &WriteOptions::default()).unwrap();
    // A table with the number of the one created in the transaction.
    writer.write("other", batch(&numbered(9, 9)), &Default::default()).unwrap();
    rewrite(&writer);
    assert_eq!(rows(&begun.collect().unwrap()), numbered(0, 100));
    assert_eq!(rows(&tx.table("own").collect(&ReadOptions::default()).unwrap()), numbered(0, 5));
    match again.table("t").collect(&ReadOptions::default()) {
        Ok(read) => assert_eq!(rows(&read), numbered(0, 105)),
        Err(e) => assert_eq!(e.kind(), ErrorKind::SnapshotExpired),
    }
    // What was only rewritten is not a conflict.
    again.commit().unwrap();
    assert_eq!(rows(&reader.table("t").collect(&ReadOptions::default()).unwrap()), numbered(0, 105));
}

// faults: reclaim beside a reader, concurrent change x delete, upsert
#[test]
fn a_change_of_rows_beside_a_rewrite_is_made_to_what_is_there() {
    let (bucket, clock) = (SimBucket::new(), clock());
    // With its own pool: it works while a thread of the other waits.
    let options = Options { inline_bytes: 0, block_grace_micros: 0, ..Options::default() };
    let writer = drumlin::store::open_bucket(Arc::new(bucket.clone()), env(&clock, 77, 1), "bucket", options).unwrap();
    let client = bucket.client();
    let other = open(&client, &clock).unwrap();
    for n in 0..5 {
        match n {
            0 => writer.write("t", batch(&numbered(0, 50)), &Default::default()).unwrap(),
            n => writer.append("t", batch(&numbered(n * 50, 50)), &Default::default()).unwrap(),
        };
    }
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    writer.table("k").create(batch(&[]).schema(), key).unwrap();
    writer.table("k").upsert(batch(&numbered(0, 50)), &Default::default()).unwrap();
    // Just before its first read of a block, all of them have moved.
    let beside = |writer: Store| {
        let mut writer = Some(writer);
        client.plan(move |op, name| {
            if op == BucketOp::Get && name.starts_with("blocks/") {
                let rewrite =
                    |writer: &Store| std::thread::scope(|scope| scope.spawn(|| rewrite(writer)).join().unwrap());
                writer.take().iter().for_each(rewrite);
            }
            None
        });
    };
    beside(writer.clone());
    assert_eq!(other.table("t").delete("id < 100", &Default::default()).unwrap().rows, 100);
    assert_eq!(read(&other, "t", AsOf::Newest).unwrap(), numbered(100, 150));
    writer.table("k").upsert(batch(&numbered(50, 50)), &Default::default()).unwrap();
    beside(writer.clone());
    let there = other.table("k").insert(batch(&numbered(40, 1)), &Default::default()).unwrap_err();
    assert_eq!(there.kind(), ErrorKind::AlreadyExists, "{there}");
    other.table("k").insert(batch(&numbered(100, 1)), &Default::default()).unwrap();
    assert_eq!(read(&other, "k", AsOf::Newest).unwrap(), numbered(0, 101));
}

/// Makes a process wait in the middle: just before its first request of a kind.
fn pause_at(
    client: &SimBucket,
    wanted: impl Fn(BucketOp, &str) -> bool + Send + 'static,
) -> (Receiver<()>, Sender<()>) {
    let (told, reached) = channel();
    let (go_on, wait) = channel();
    let mut passed = false;
    client.plan(move |op, name| {
        if wanted(op, name) && !std::mem::replace(&mut passed, true) {
            told.send(()).unwrap();
            wait.recv().unwrap();
        }
        None
    });
    (reached, go_on)
}

fn puts_a_block(op: BucketOp, name: &str) -> bool {
    op == BucketOp::Put && name.starts_with("blocks/")
}

// faults: paused process, concurrent change x checkpoint
#[test]
fn rows_are_flushed_beside_a_vacuum_of_another_process() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let clients = [bucket.client(), bucket.client()];
    let [a, b] = [0, 1].map(|n| open(&clients[n], &clock).unwrap());
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    a.table("k").create(batch(&[]).schema(), key).unwrap();
    let upsert = |from: i64, n: usize, name: &str| {
        let rows: Vec<Row> = (from..).take(n).map(|id| (id, Some(name.to_owned()))).collect();
        a.table("k").upsert(batch(&rows), &Default::default()).unwrap();
    };
    let plan = PlanOptions { dead_share_min: 0.0, ..PlanOptions::default() };
    let fold = CheckpointOptions { plan, ..Default::default() };
    for n in 0..3 {
        upsert(n * 100, 100, "first");
        // Without the vacuum, which would merge them into one row group.
        a.checkpoint(&CheckpointOptions { plan: PlanOptions { budget: 0.0, ..plan }, ..Default::default() }).unwrap();
    }
    b.refresh().unwrap();
    std::thread::scope(|scope| {
        // At this point its rewritten row groups are about to be written.
        let (reached, go_on) = pause_at(&clients[1], puts_a_block);
        let vacuum = scope.spawn(|| b.checkpoint(&fold).unwrap());
        reached.recv().unwrap();
        // Rows that hide some of those, flushed and committed.
        upsert(50, 200, "second");
        let (flushed, commit) = pause_at(&clients[0], puts_a_block);
        let flush = scope.spawn(|| a.checkpoint(&Default::default()).unwrap());
        flushed.recv().unwrap();
        go_on.send(()).unwrap();
        let vacuum = vacuum.join().unwrap();
        assert!(vacuum.tables == 1 && vacuum.windows_void == 0, "{vacuum}");
        commit.send(()).unwrap();
        assert_eq!(flush.join().unwrap().failures, Vec::<String>::new());
    });
    let name = |id: i64| Some(if (50..250).contains(&id) { "second" } else { "first" }.to_owned());
    let expected: Vec<Row> = (0..300).map(|id| (id, name(id))).collect();
    for store in [&a, &b] {
        store.refresh().unwrap();
        assert_eq!(read(store, "k", AsOf::Newest).unwrap(), expected);
    }
    settled(&a, &bucket).unwrap();
    assert_eq!(read(&a, "k", AsOf::Newest).unwrap(), expected);
}

#[test]
fn rows_by_key_whose_version_was_taken_back_are_told_to_be_gone() {
    let (_, writer, reader) = writer_and_reader();
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    writer.table("k").create(batch(&[]).schema(), key).unwrap();
    writer.table("k").upsert(batch(&numbered(0, 100)), &Default::default()).unwrap();
    writer.checkpoint(&Default::default()).unwrap();
    writer.table("k").upsert(batch(&[(3, Some("three".into()))]), &Default::default()).unwrap();
    reader.refresh().unwrap();
    let before = read(&reader, "k", AsOf::Newest).unwrap();
    let scan = reader.read("k", &ReadOptions::default()).unwrap();
    // Those rows get a version, which is deleted; the previous one is the newest again, and has other rows since.
    let base = writer.table("k").versions().unwrap().pop().unwrap().version;
    rewrite(&writer);
    let versions = writer.table("k").versions().unwrap().into_iter().map(|info| info.version);
    let newer: Vec<Version> = versions.filter(|version| *version > base).collect();
    assert!(!newer.is_empty());
    writer.delete_versions(&[("k".into(), newer)], Default::default()).unwrap();
    writer.table("k").upsert(batch(&[(4, Some("four".into()))]), &Default::default()).unwrap();
    let begun = reader.seq().unwrap();
    match scan.collect() {
        Ok(read) => assert_eq!(rows(&read), before),
        Err(e) => assert_eq!(e.kind(), ErrorKind::SnapshotExpired, "{e}"),
    }
    assert!(reader.seq().unwrap() > begun, "it looked again");
}

#[test]
fn a_sorted_table_is_found_before_its_directories_are_read() {
    let (_, writer, reader) = writer_and_reader();
    let sorted = WriteOptions { sort: Some(vec!["id".into()]), ..WriteOptions::default() };
    writer.write("s", batch(&numbered(0, 50)), &sorted).unwrap();
    (1..4).for_each(|n| drop(writer.append("s", batch(&numbered(n * 50, 50)), &Default::default()).unwrap()));
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    writer.table("k").create(batch(&[]).schema(), key).unwrap();
    writer.table("k").upsert(batch(&numbered(0, 50)), &Default::default()).unwrap();
    writer.checkpoint(&Default::default()).unwrap();
    writer.table("k").upsert(batch(&numbered(40, 20)), &Default::default()).unwrap();
    writer.snapshot("s", "k").unwrap();
    reader.refresh().unwrap();
    let scan = reader.read("s", &ReadOptions::default()).unwrap();
    let view = scan.view().clone();
    rewrite(&writer);
    let again = || rows(&scan.again().unwrap().collect().unwrap());
    assert_eq!(again(), numbered(0, 200));
    assert_eq!(
        rows(&reader.table("s").read_again(&view, &ScanOptions::default(), 0).unwrap().collect().unwrap()),
        numbered(0, 200)
    );
    // The count is right too.
    assert_eq!(reader.table("k").versions().unwrap().pop().unwrap().rows, 60);
    assert_eq!(reader.table("k").stat().unwrap().rows, 60);
}

// faults: bit rot x read
#[test]
fn a_block_that_nobody_released_is_damage() {
    let (bucket, writer, reader) = writer_and_reader();
    writer.write("t", batch(&numbered(0, 50)), &Default::default()).unwrap();
    writer.write("u", batch(&numbered(0, 50)), &Default::default()).unwrap();
    reader.refresh().unwrap();
    let (name, _) = bucket.objects().into_iter().find(|(name, _)| name.starts_with("blocks/")).unwrap();
    assert!(bucket.delete_many(&[name]).iter().all(Result::is_ok));
    let lost = reader.table("t").collect(&ReadOptions::default()).unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Corrupt, "{lost}");
    assert_eq!(rows(&reader.table("u").collect(&ReadOptions::default()).unwrap()), numbered(0, 50));
}

/// Over a network, row groups are fetched many at a time: reading 40 of them takes about as many rounds of requests as reading one.
#[test]
fn many_row_groups_take_few_rounds_of_requests() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let store = open(&bucket, &clock).unwrap();
    let mut rng = fastrand::Rng::with_seed(1);
    let mut text = || (0..30).map(|_| rng.alphanumeric()).collect::<String>();
    // Row groups too large to be read whole, which nothing merges.
    let mut all = Vec::new();
    for n in 0..40 {
        let rows: Vec<Row> = (0..12_000).map(|at| (n * 12_000 + at, Some(text()))).collect();
        let sorted = WriteOptions { sort: Some(vec!["id".into()]), ..WriteOptions::default() };
        for (path, first) in [("plain", WriteOptions::default()), ("sorted", sorted)] {
            match n {
                0 => store.write(path, batch(&rows), &first).unwrap(),
                _ => store.append(path, batch(&rows), &Default::default()).unwrap(),
            };
        }
        store.write(&format!("each/{n}"), batch(&rows), &Default::default()).unwrap();
        all.extend(rows);
    }
    store.close().unwrap();
    let options = |cache_bytes| Options { inline_bytes: 0, cache_bytes, ..Options::default() };
    let opened = |cache_bytes| open_as(&bucket.client(), &clock, options(cache_bytes)).unwrap();
    let few = |what: &str, most: u64, work: &dyn Fn(&Store)| {
        // Without a cache each row group is asked for by itself.
        for (cache_bytes, most) in [(0, u64::MAX), (256 << 20, most)] {
            let store = opened(cache_bytes);
            let begun = rounds(&store);
            work(&store);
            let taken = rounds(&store) - begun;
            assert!(taken <= most, "{what}: {taken} rounds of requests");
            assert!(cache_bytes > 0 || taken >= 40, "{what}: {taken} rounds without a cache");
        }
    };
    let read_with = |store: &Store, path: &str, scan: ScanOptions| {
        rest(store.read(path, &ReadOptions::from(scan)).unwrap()).unwrap()
    };
    let native = || ScanOptions { native: true, ..ScanOptions::default() };
    let filtered = || ScanOptions { filter: Some(Filter::parse("id % 2 = 0").unwrap()), ..ScanOptions::default() };
    for path in ["plain", "sorted"] {
        few("all at once", 4, &|store| assert_eq!(read_with(store, path, ScanOptions::default()), all));
        few("in other types", 4, &|store| {
            let options = ReadOptions::from(native());
            let batches = store.read(path, &options).unwrap().collect().unwrap();
            assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), all.len());
        });
        few("filtered", 4, &|store| assert_eq!(read_with(store, path, filtered()).len(), all.len() / 2));
        few("batch by batch", 5, &|store| {
            let scan = store.read(path, &ReadOptions::from(native())).unwrap();
            let read: usize = scan.map(|batch| batch.unwrap().num_rows()).sum();
            assert_eq!(read, all.len());
        });
    }
    few("groups of all tables of a pattern", 6, &|store| {
        let sum = Aggregate { name: "sum".into(), function: Function::Sum, of: Some("id".into()) };
        let asked = GroupBy { keys: Vec::new(), every: None, aggregates: vec![sum] };
        let scan = ScanOptions { filter: Some(Filter::parse("id >= 0").unwrap()), ..ScanOptions::default() };
        let found = store.scan("each/*", &Default::default()).unwrap().aggregate(&asked, &scan).unwrap();
        assert_eq!(found.num_rows(), 1);
    });
}

/// So does looking up keys, one in each of 40 row groups; and it reads each of their parts once, and no other tables.
#[test]
fn keys_in_many_row_groups_take_few_rounds_of_requests() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let store = open(&bucket, &clock).unwrap();
    let mut rng = fastrand::Rng::with_seed(3);
    let mut row = |id: i64| (id, Some((0..30).map(|_| rng.alphanumeric()).collect::<String>()));
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table("k").create(batch(&[]).schema(), key).unwrap();
    let all: Vec<Row> = (0..40 * 6000).map(&mut row).collect();
    all.chunks(6000).for_each(|rows| drop(store.append("k", batch(rows), &Default::default()).unwrap()));
    store.write("other", batch(&all), &Default::default()).unwrap();
    let stored = store.table("k").stat().unwrap();
    assert!(stored.row_groups >= 40, "{stored:?}");
    store.close().unwrap();
    let asked: Vec<Row> = all.iter().skip(17).step_by(6000).cloned().collect();
    for (cache_bytes, most) in [(0, u64::MAX), (256 << 20, 6)] {
        let store = open_as(&bucket.client(), &clock, Options { inline_bytes: 0, cache_bytes, ..Options::default() });
        let store = store.unwrap();
        let (begun, before) = (rounds(&store), bucket.requests().bytes_read);
        let found = store.table("k").get_many(&batch(&asked).project(&[0]).unwrap(), &Default::default()).unwrap();
        assert_eq!(rows(&[found.rows]), asked);
        let (taken, bytes) = (rounds(&store) - begun, bucket.requests().bytes_read - before);
        assert!(taken <= most, "{taken} rounds of requests");
        assert!(cache_bytes > 0 || taken >= 40, "{taken} rounds without a cache");
        assert!(cache_bytes == 0 || bytes <= stored.bytes * 11 / 10, "{bytes} bytes of {stored:?}");
    }
}

/// So does changing them: deletes, updates and merges do not wait for one row group after the other.
#[test]
fn changes_of_many_row_groups_take_few_rounds_of_requests() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let store = open(&bucket, &clock).unwrap();
    let mut rng = fastrand::Rng::with_seed(2);
    let mut text = || (0..30).map(|_| rng.alphanumeric()).collect::<String>();
    let paths = ["deleted", "updated", "all updated", "merged", "keyed"];
    for n in 0..30 {
        let rows: Vec<Row> = (0..12_000).map(|at| (n * 12_000 + at, Some(text()))).collect();
        for path in paths {
            if n == 0 {
                let key = if path == "keyed" { vec!["id".to_owned()] } else { Vec::new() };
                let options = TableOptions { key, ..TableOptions::default() };
                store.table(path).create(batch(&rows).schema(), options).unwrap();
            }
            store.append(path, batch(&rows), &Default::default()).unwrap();
        }
    }
    store.close().unwrap();
    let few = |what: &str, most: u64, work: &dyn Fn(&Store) -> u64| {
        let options = Options { inline_bytes: 0, cache_bytes: 256 << 20, ..Options::default() };
        let store = open_as(&bucket.client(), &clock, options).unwrap();
        store.read("deleted", &ReadOptions::default()).map(drop).unwrap();
        let begun = rounds(&store);
        let rows = work(&store);
        let taken = rounds(&store) - begun;
        assert!(rows > 0, "{what}: nothing was changed");
        assert!(taken <= most, "{what}: {taken} rounds of requests");
    };
    let set = |value: &str| [("name".to_owned(), Expression::parse(value).unwrap())];
    few("a delete", 8, &|store| store.table("deleted").delete("id % 1000 = 7", &Default::default()).unwrap().rows);
    few("an update", 10, &|store| {
        store.table("updated").update(&set("upper(name)"), Some("id % 1000 = 7"), &Default::default()).unwrap().rows
    });
    few("an update of all rows", 10, &|store| {
        store.table("all updated").update(&set("upper(name)"), None, &Default::default()).unwrap().rows
    });
    for path in ["merged", "keyed"] {
        few("a merge", 12, &|store| {
            let rows: Vec<Row> = (0..300).map(|at| (at * 1200, Some("merged".to_owned()))).collect();
            let merge = Merge {
                on: vec!["id".into()],
                matched: vec![(None, WhenMatched::UpdateAll)],
                not_matched: vec![(None, WhenNotMatched::InsertAll)],
                ..Merge::default()
            };
            store.table(path).merge(batch(&rows), &merge, &Default::default()).unwrap().updated
        });
    }
}
