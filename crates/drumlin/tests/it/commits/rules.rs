//! One rule at a time: each function does the minimum that shows whether the rule holds, and returns what is wrong if it
//! does not. They are tests here; `tests/planted.rs` breaks each rule and expects its function to fail.

use std::sync::Arc;

use drumlin::base::{ManualClock, Timestamp, Version};
use drumlin::catalog::{Field, Pattern, Payload, Projection, Retention};
use drumlin::storage::{BucketFault, BucketOp, SimBucket, SimDisk};
use drumlin::store::{AsOf, CheckpointOptions, Frame, Options, ReclaimOptions, TableOptions};
use drumlin::table::PlanOptions;
use drumlin::{ErrorKind, Existing, Store, Tables};

use crate::processes::shared_support;
use crate::support::{Checked, Row, batch, env, numbered, open, open_with, read, rows};

const DAY: i64 = 86_400_000_000;

fn text(e: impl std::fmt::Display) -> String {
    e.to_string()
}

fn at(time: i64) -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp(time)))
}

fn keyed(store: &Store, path: &str) {
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table(path).create(batch(&[]).schema(), key).unwrap();
}

fn purge() -> CheckpointOptions {
    CheckpointOptions { plan: PlanOptions { dead_share_min: 0.0, ..PlanOptions::default() }, ..Default::default() }
}

/// Checks that the rows of `path` are `expected`.
fn shows(store: &Store, path: &str, as_of: AsOf, expected: &[Row]) -> Checked {
    let what = format!("{path} as of {as_of:?}");
    match read(store, path, as_of) {
        Ok(found) if found == expected => Ok(()),
        Ok(found) => Err(format!("{what}: {} rows, expected {}: {found:?}", found.len(), expected.len())),
        Err(e) => Err(format!("{what}: {e}")),
    }
}

/// A time between two commits that wrote one key shows the first of them, also after a flush.
pub fn times_between_commits_survive_a_flush() -> Checked {
    let (disk, clock) = (SimDisk::new(), at(1_000));
    let store = open_with(&disk, &clock, 2).unwrap();
    keyed(&store, "k");
    for (time, name) in [(1_010, "a"), (1_020, "b")] {
        clock.set(Timestamp(time));
        store.table("k").upsert(batch(&[(1, Some(name.into()))]), &Default::default()).unwrap();
    }
    store.checkpoint(&Default::default()).unwrap();
    shows(&store, "k", AsOf::Time(Timestamp(1_015)), &[(1, Some("a".into()))])?;
    shows(&store, "k", AsOf::Time(Timestamp(1_025)), &[(1, Some("b".into()))])
}

/// A time at which a deleted version was the newest is refused.
pub fn times_of_deleted_versions_are_refused() -> Checked {
    let (disk, clock) = (SimDisk::new(), at(1_000));
    let store = open_with(&disk, &clock, 2).unwrap();
    for n in 0..3 {
        clock.set(Timestamp(1_000 + n * 10));
        store.write("t", batch(&numbered(n * 100, 3)), &Default::default()).unwrap();
    }
    store.delete_versions(&[("t".into(), vec![Version(1)])], Default::default()).unwrap();
    shows(&store, "t", AsOf::Time(Timestamp(1_005)), &numbered(0, 3))?;
    shows(&store, "t", AsOf::Time(Timestamp(1_025)), &numbered(200, 3))?;
    match read(&store, "t", AsOf::Time(Timestamp(1_015))) {
        Err(e) if e.kind() == drumlin::ErrorKind::NotFound => Ok(()),
        other => Err(format!("a time whose version was deleted shows {other:?}")),
    }
}

/// Retention by time keeps a version for that time after another replaced it.
pub fn replaced_versions_are_kept_for_their_time() -> Checked {
    let (disk, clock) = (SimDisk::new(), at(20_000 * DAY));
    let store = open_with(&disk, &clock, 2).unwrap();
    store.set_retention("t", Some(Retention::KeepMicros(30 * DAY as u64))).unwrap();
    store.write("t", batch(&numbered(0, 3)), &Default::default()).unwrap();
    clock.advance(40 * DAY);
    store.write("t", batch(&numbered(100, 3)), &Default::default()).unwrap();
    clock.advance(DAY);
    store.checkpoint(&Default::default()).unwrap();
    // It was the newest until a day ago.
    shows(&store, "t", AsOf::Time(Timestamp(20_039 * DAY)), &numbered(0, 3))?;
    clock.advance(31 * DAY);
    store.checkpoint(&Default::default()).unwrap();
    match store.table("t").versions().map_err(text)?.len() {
        1 => Ok(()),
        n => Err(format!("{n} versions are left, expected 1")),
    }
}

/// A snapshot keeps what it holds, whatever is deleted, rewritten and reclaimed.
pub fn snapshots_hold_their_versions() -> Checked {
    let store = open(&SimDisk::in_memory()).unwrap();
    store.write("t", batch(&numbered(0, 50)), &Default::default()).unwrap();
    store.snapshot("s", "t").unwrap();
    store.write("t", batch(&numbered(100, 50)), &Default::default()).unwrap();
    store.delete_versions(&[("t".into(), vec![Version(0)])], Default::default()).unwrap();
    store.checkpoint(&purge()).unwrap();
    store.reclaim(&Default::default()).unwrap();
    shows(&store, "t", AsOf::Newest, &numbered(100, 50))?;
    shows(&store, "t", AsOf::Snapshot("s".into()), &numbered(0, 50))
}

/// A scan that has begun is read to its end, although its table is dropped and reclaimed before that.
pub fn readers_keep_what_they_read() -> Checked {
    let options = Options { cache_bytes: 0, inline_bytes: 0, ..Options::default() };
    let disk = Arc::new(SimDisk::in_memory());
    let store = drumlin::store::open_on(disk, env(&at(1_000), 1, 2), "sim", options).unwrap();
    store.write("t", batch(&numbered(0, 50)), &Default::default()).unwrap();
    let scan = store.read("t", &Default::default()).unwrap();
    store.drop("t").unwrap();
    let during = store.reclaim(&Default::default()).unwrap();
    if during.blocks > 0 {
        return Err(format!("{} blocks deleted beside their reader", during.blocks));
    }
    let found = rows(&scan.collect().map_err(text)?);
    if found != numbered(0, 50) {
        return Err(format!("the scan gave {} rows", found.len()));
    }
    match store.reclaim(&Default::default()).unwrap().blocks {
        1 => Ok(()),
        n => Err(format!("{n} blocks deleted when the reader was gone, expected 1")),
    }
}

/// In a shared store, blocks rest before they are deleted, so that readers of other processes can continue.
pub fn blocks_rest() -> Checked {
    let (bucket, clock) = (SimBucket::new(), shared_support::clock());
    let store = shared_support::open(&bucket, &clock).unwrap();
    let reader = shared_support::open(&bucket.client(), &clock).unwrap();
    store.write("t", batch(&numbered(0, 30)), &Default::default()).unwrap();
    reader.refresh().unwrap();
    store.drop("t").unwrap();
    let resting = ReclaimOptions { block_grace_micros: Some(5_000_000), ..Default::default() };
    store.reclaim(&resting).unwrap();
    shows(&reader, "t", AsOf::Newest, &numbered(0, 30))?;
    clock.advance(6_000_000);
    match store.reclaim(&resting).unwrap().blocks {
        1 => Ok(()),
        n => Err(format!("{n} blocks deleted after their rest, expected 1")),
    }
}

/// Each key of a bulk deletion that failed stays listed, and is deleted by a later reclaim.
pub fn failed_deletions_stay_listed() -> Checked {
    let (bucket, clock) = (SimBucket::new(), shared_support::clock());
    let store = shared_support::open(&bucket, &clock).unwrap();
    for n in 0..20 {
        store.write(&format!("t/{n}"), batch(&numbered(n, 30)), &Default::default()).unwrap();
    }
    store.drop("t/**").unwrap();
    bucket.plan(|op, _| (op == BucketOp::Delete).then_some(BucketFault::Partly(2)));
    store.reclaim(&Default::default()).unwrap();
    bucket.heal();
    if store.stat().unwrap().condemned != 10 {
        return Err(format!("{} blocks are listed, expected 10", store.stat().unwrap().condemned));
    }
    store.reclaim(&Default::default()).unwrap();
    shared_support::settled(&store, &bucket)
}

/// A table restored from the trash is no longer in it.
pub fn undropped_tables_stay() -> Checked {
    let store = open(&SimDisk::in_memory()).unwrap();
    store.write("t", batch(&numbered(0, 30)), &Default::default()).unwrap();
    store.drop("t").unwrap();
    store.undrop("t", None).unwrap();
    store.reclaim(&Default::default()).map_err(text)?;
    shows(&store, "t", AsOf::Newest, &numbered(0, 30))
}

/// Of tables that were dropped from one path, the last one comes back first, also if the clock stands still, or in one
/// transaction.
pub fn the_last_drop_comes_back_first() -> Checked {
    for at_once in [false, true] {
        let (disk, clock) = (SimDisk::in_memory(), at(DAY));
        let store = open_with(&disk, &clock, 2).unwrap();
        let tables = ["a", "b", "c"];
        for (n, table) in tables.iter().enumerate() {
            store.write(table, batch(&numbered(n as i64, 1)), &Default::default()).unwrap();
        }
        // The order in which they were made is not that in which they go.
        fn each(tables: &impl Tables) -> drumlin::Result<()> {
            for table in ["b", "c", "a"] {
                tables.relocate(table, "t", Existing::Refuse)?;
                tables.drop("t")?;
            }
            Ok(())
        }
        match at_once {
            true => store.transact(each).map_err(text)?,
            false => each(&store).map_err(text)?,
        }
        drop(store);
        let store = open_with(&disk, &clock, 2).unwrap();
        for (n, back) in [(0, "a"), (2, "c"), (1, "b")] {
            store.undrop("t", Some(back)).map_err(text)?;
            shows(&store, back, AsOf::Newest, &numbered(n, 1))?;
        }
    }
    Ok(())
}

/// A reclaim keeps what was dropped within its grace period.
pub fn grace_is_given() -> Checked {
    let (disk, clock) = (SimDisk::in_memory(), at(DAY));
    let store = open_with(&disk, &clock, 2).unwrap();
    store.write("t", batch(&numbered(0, 30)), &Default::default()).unwrap();
    store.drop("t").unwrap();
    clock.advance(1_000_000);
    store.reclaim(&ReclaimOptions { grace_micros: 5_000_000, ..Default::default() }).unwrap();
    store.undrop("t", None).map_err(text)?;
    shows(&store, "t", AsOf::Newest, &numbered(0, 30))
}

/// A row group shared by a snapshot's version and the table stays on storage until neither holds it.
pub fn shared_row_groups_are_counted() -> Checked {
    let store = open(&SimDisk::in_memory()).unwrap();
    store.write("t", batch(&numbered(0, 50)), &Default::default()).unwrap();
    let deleted = store.table("t").delete("id % 5 = 0", &Default::default()).unwrap();
    store.snapshot("held", "t").unwrap();
    // The table continues from the previous version, next to the one that the snapshot holds.
    store
        .delete_versions(&[("t".into(), vec![deleted.version.expect("in a store").version])], Default::default())
        .map_err(text)?;
    shows(&store, "t", AsOf::Newest, &numbered(0, 50))?;
    store.write("t", batch(&numbered(0, 3)), &Default::default()).map_err(text)?;
    store.delete_versions(&[("t".into(), vec![Version(0)])], Default::default()).map_err(text)?;
    store.checkpoint(&Default::default()).map_err(text)?;
    store.reclaim(&Default::default()).map_err(text)?;
    let held: Vec<Row> = numbered(0, 50).into_iter().filter(|(id, _)| id % 5 != 0).collect();
    shows(&store, "t", AsOf::Snapshot("held".into()), &held)?;
    store.drop_snapshot("held").map_err(text)?;
    let freed = store.reclaim(&Default::default()).map_err(text)?;
    if freed.blocks == 1 { Ok(()) } else { Err(format!("{freed}")) }
}

/// A checkpoint that must remove every deleted row leaves no byte of one.
pub fn purged_rows_leave_storage() -> Checked {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    let secret = "jane.roe@secret.example";
    let with: Vec<Row> =
        (0..1000).map(|id| (id, Some(if id == 5 { secret.into() } else { format!("user{id}") }))).collect();
    store.write("t", batch(&with), &Default::default()).unwrap();
    store.table("t").delete("id = 5", &Default::default()).unwrap();
    store.set_retention("t", Some(Retention::KeepLast(1))).unwrap();
    store.checkpoint(&purge()).unwrap();
    store.reclaim(&Default::default()).unwrap();
    let has = |content: &[u8]| content.windows(secret.len()).any(|bytes| bytes == secret.as_bytes());
    match disk.files().into_iter().find(|(_, content)| has(content)) {
        None => Ok(()),
        Some((name, _)) => Err(format!("a deleted row is still in {name}")),
    }
}

/// Blocks of a write that failed are deleted by a later reclaim, although they could not be deleted at once.
pub fn abandoned_blocks_are_deleted() -> Checked {
    let (bucket, clock) = (SimBucket::new(), shared_support::clock());
    let client = bucket.client();
    let store = shared_support::open(&client, &clock).unwrap();
    let other = shared_support::open(&bucket.client(), &clock).unwrap();
    store.write("gone", batch(&numbered(0, 9)), &Default::default()).unwrap();
    // Another process drops the table while rows for it are being written.
    let mut more = Some(batch(&numbered(9, 9)));
    let frame = Frame::new(
        batch(&[]).schema(),
        std::iter::from_fn(|| {
            let more = more.take()?;
            other.drop("gone").unwrap();
            Some(Ok(more))
        }),
    );
    client.plan(|op, _| (op == BucketOp::Delete).then_some(BucketFault::Refused));
    if store.append("gone", frame, &Default::default()).is_ok() {
        return Err("a table that was dropped took rows".into());
    }
    client.heal();
    store.reclaim(&Default::default()).map_err(text)?;
    let left = bucket.objects().into_iter().filter(|(name, _)| name.starts_with("blocks/")).count();
    if left == 0 { Ok(()) } else { Err(format!("{left} blocks are left that nothing refers to")) }
}

/// An audit by another process leaves alone what a live process has written and not committed yet.
pub fn audits_spare_writers() -> Checked {
    let (bucket, clock) = (SimBucket::new(), shared_support::clock());
    let client = bucket.client();
    let store = shared_support::open(&client, &clock).unwrap();
    store.write("t", batch(&numbered(0, 3)), &Default::default()).unwrap();
    let other = shared_support::open(&bucket.client(), &clock).unwrap();
    client.plan(move |op, _| {
        if op == BucketOp::PutIf {
            other.reclaim(&ReclaimOptions { audit: true, ..Default::default() }).expect("nothing disturbs it");
        }
        None
    });
    store.write("t", batch(&numbered(5, 50)), &Default::default()).map_err(text)?;
    client.heal();
    let fresh = shared_support::open(&bucket.client(), &clock).unwrap();
    shows(&fresh, "t", AsOf::Newest, &numbered(5, 50))?;
    shared_support::settled(&fresh, &bucket)
}

/// A checkpoint copies row groups for others that hold them too; what only its own windows hold by then is not moved.
pub fn checkpoints_move_what_is_left() -> Checked {
    let (mut meetings, mut moved) = (0, 0);
    for pause in 0.. {
        let (bucket, clock) = (SimBucket::new(), shared_support::clock());
        let client = bucket.client();
        let options = || Options { inline_bytes: 0, block_grace_micros: 0, ..Options::default() };
        let store = shared_support::open_as(&client, &clock, options()).unwrap();
        // With its own pool: it works while the first's threads wait.
        let bucket_of_other = Arc::new(bucket.clone());
        let other = drumlin::store::open_bucket(bucket_of_other, env(&clock, 77, 1), "bucket", options()).unwrap();
        // One block, in which row groups of `t` and `u` stay, and one is gone; a copy holds what a window takes in of `t`.
        let frame = |path: &str| (path.to_owned(), Frame::from(batch(&numbered(0, 60))));
        store.write_many(["t", "u", "gone"].map(frame).into(), &Default::default()).unwrap();
        store.copy("t", "copy", &AsOf::Newest, Existing::Refuse).unwrap();
        store.table("t").delete("id < 50", &Default::default()).unwrap();
        let old = store.table("t").versions().unwrap()[0].version;
        store.delete_versions(&[("t".into(), vec![old])], Default::default()).unwrap();
        store.drop("gone").unwrap();
        let forget = ReclaimOptions { grace_micros: 0, ..Default::default() };
        store.reclaim(&forget).unwrap();
        other.refresh().unwrap();
        let (mut requests, (told, met)) = (0, std::sync::mpsc::channel());
        client.plan(move |_, _| {
            if requests == pause {
                let others = || {
                    other.drop("copy").unwrap();
                    other.reclaim(&forget).unwrap();
                };
                std::thread::scope(|scope| scope.spawn(others).join().unwrap());
                told.send(()).unwrap();
            }
            requests += 1;
            None
        });
        let plan = PlanOptions { dead_share_min: 0.0, ..PlanOptions::default() };
        let report = store.checkpoint(&CheckpointOptions { plan, ..CheckpointOptions::default() });
        client.heal();
        let place = |e: String| format!("before request {pause}: {e}");
        let report = report.map_err(|e| place(e.to_string()))?;
        if !report.failures.is_empty() {
            return Err(place(report.failures.join(", ")));
        }
        if met.try_recv().is_err() {
            break;
        }
        (meetings, moved) = (meetings + 1, moved + report.groups_moved);
        shows(&store, "t", AsOf::Newest, &numbered(50, 10)).map_err(place)?;
        shows(&store, "u", AsOf::Newest, &numbered(0, 60)).map_err(place)?;
        shared_support::settled(&store, &bucket).map_err(place)?;
    }
    assert!(meetings > 5 && moved > 0, "{meetings} meetings, {moved} row groups moved");
    Ok(())
}

/// A damaged byte of a block is never shown as a value.
pub fn damaged_blocks_are_noticed() -> Checked {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    store.write("t", batch(&numbered(0, 40)), &Default::default()).unwrap();
    store.close().unwrap();
    let (name, content) = disk.files().into_iter().find(|(name, _)| name.starts_with("blocks/")).unwrap();
    for at in 0..content.len() {
        let copy = disk.fork();
        let mut flipped = content.clone();
        flipped[at] ^= 1;
        copy.damage(&name, flipped);
        let store = open(&copy).map_err(text)?;
        match read(&store, "t", AsOf::Newest) {
            Ok(found) if found == numbered(0, 40) => {}
            Ok(_) => return Err(format!("byte {at} of {name} is wrong, and so are the rows")),
            Err(e) if e.kind() == drumlin::ErrorKind::Corrupt => {}
            Err(e) => return Err(format!("byte {at} of {name}: {e}")),
        }
    }
    Ok(())
}

/// A projection shows what other processes have committed.
pub fn projections_follow_other_processes() -> Checked {
    let (bucket, clock) = (SimBucket::new(), shared_support::clock());
    let (a, b) =
        (shared_support::open(&bucket, &clock).unwrap(), shared_support::open(&bucket.client(), &clock).unwrap());
    let field = |name: &str| vec![Field::new(name).unwrap()];
    let projection =
        Projection { pattern: Pattern::new("n/*").unwrap(), key: field("name"), value: field("payload"), bag: false };
    a.tree().put_projection("p", projection).unwrap();
    b.refresh().unwrap();
    for n in 0..3_i64 {
        a.tree().put(&format!("n/{n}"), Payload::from(n)).unwrap();
        b.refresh().unwrap();
        let count = b.tree().projection("p").map_err(text)?.count();
        if count as i64 != n + 1 {
            return Err(format!("{count} entries, expected {}", n + 1));
        }
    }
    Ok(())
}

/// A key that another process has written is a conflict, also if its row has been flushed and the log was cut, so that this
/// process has to read the whole state again.
pub fn keys_written_before_the_state_is_read_again() -> Checked {
    let (bucket, clock) = (SimBucket::new(), shared_support::clock());
    let a = shared_support::open(&bucket, &clock).unwrap();
    let b = shared_support::open(&bucket.client(), &clock).unwrap();
    keyed(&a, "k");
    let one = |id: i64, n: i64| batch(&[(id, Some(n.to_string()))]);
    a.table("k").upsert(batch(&numbered(0, 10)), &Default::default()).unwrap();
    for round in 0..4_i64 {
        b.refresh().unwrap();
        let tx = b.transaction().unwrap();
        let key = batch(&numbered(3, 1)).project(&[0]).unwrap();
        tx.table("k").get_many(&key, &Default::default()).unwrap();
        tx.table("k").upsert(one(3, -round), &Default::default()).unwrap();
        a.table("k").upsert(one(3, 100 + round), &Default::default()).unwrap();
        if round % 2 == 1 {
            a.snapshot("s", "k").unwrap();
            a.drop_snapshot("s").unwrap();
        }
        a.checkpoint(&Default::default()).unwrap();
        match tx.commit() {
            Err(e) if e.kind() == ErrorKind::Conflict => {}
            other => return Err(format!("round {round}: {:?}", other.map(drop))),
        }
        b.table("k").upsert(one(4, round), &Default::default()).unwrap();
    }
    Ok(())
}

#[test]
fn times_show_what_was_there() {
    times_between_commits_survive_a_flush().unwrap();
    times_of_deleted_versions_are_refused().unwrap();
}

#[test]
fn retention_and_snapshots_hold_what_they_say() {
    replaced_versions_are_kept_for_their_time().unwrap();
    snapshots_hold_their_versions().unwrap();
    shared_row_groups_are_counted().unwrap();
}

// faults: reclaim beside a reader x read
// faults: reclaim beside a writer x write, undrop
#[test]
fn reclaim_spares_readers_writers_and_the_trash() {
    readers_keep_what_they_read().unwrap();
    blocks_rest().unwrap();
    undropped_tables_stay().unwrap();
    the_last_drop_comes_back_first().unwrap();
    grace_is_given().unwrap();
    audits_spare_writers().unwrap();
}

// faults: partial deletion x write, reclaim
#[test]
fn reclaim_leaves_nothing_that_failed() {
    failed_deletions_stay_listed().unwrap();
    abandoned_blocks_are_deleted().unwrap();
    purged_rows_leave_storage().unwrap();
}

// faults: bit rot x read
#[test]
fn a_damaged_byte_is_never_a_value() {
    damaged_blocks_are_noticed().unwrap();
}

#[test]
fn projections_of_a_shared_store_follow_others() {
    projections_follow_other_processes().unwrap();
}

#[test]
fn keys_written_by_others_are_conflicts_after_a_reload() {
    keys_written_before_the_state_is_read_again().unwrap();
}

// faults: concurrent change x checkpoint, drop, reclaim
#[test]
fn a_checkpoint_goes_on_where_a_copy_ends() {
    checkpoints_move_what_is_left().unwrap();
}
