//! Faults of processes that share a store, one at a time; each function returns what is wrong afterwards, if anything.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use drumlin::base::ManualClock;
use drumlin::catalog::Payload;
use drumlin::storage::{BucketFault, BucketOp, FileStorage, ObjectMeta, SimBucket, SimDisk, Storage, Tag, WriteMode};
use drumlin::store::{AsOf, Mode, Options, ReclaimOptions, open_bucket};
use drumlin::{ErrorKind, Result, Store, Tables};

use crate::processes::shared_support::{clock, open, open_as, settled};
use crate::support::{batch, env, numbered, read};

type Outcome = std::result::Result<(), String>;

fn text(e: impl std::fmt::Display) -> String {
    e.to_string()
}

/// A payload so large that few fit the root.
fn large(n: i64) -> Payload {
    let mut rng = fastrand::Rng::with_seed(n.cast_unsigned());
    let bytes: Vec<u8> = (0..20_000).map(|_| rng.u8(..)).collect();
    Payload::bytes(&bytes).unwrap()
}

/// Everything that can happen to a log while a process sleeps: commits, chunks, catalog snapshots, cuts, deletions.
fn go_on(store: &Store, n: i64) -> Result<()> {
    for at in 0..25 {
        store.tree().put(&format!("others/{n}/{at}"), large(at))?;
    }
    store.write(&format!("others/t{n}"), batch(&numbered(n, 20)), &Default::default())?;
    store.checkpoint(&Default::default())?;
    store.tree().put(&format!("others/{n}/end"), Payload::from(n))?;
    store.write(&format!("others/t{n}"), batch(&numbered(n, 21)), &Default::default())?;
    store.checkpoint(&Default::default())?;
    store.reclaim(&ReclaimOptions { audit: true, ..Default::default() })?;
    Ok(())
}

/// Runs a process, while others work before one of its requests, the `pause`-th. Returns whether there was such a request.
fn sleep_at(
    pause: u64,
    work: fn(&Store) -> Result<()>,
    check: fn(&Store) -> Outcome,
) -> std::result::Result<bool, String> {
    let (bucket, clock) = (SimBucket::new(), clock());
    let other = open(&bucket, &clock).map_err(text)?;
    other.tree().put("mine", Payload::from(0)).map_err(text)?;
    let client = bucket.client();
    let sleeper = open(&client, &clock).map_err(text)?;
    let slept = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (told, mut at, mut n) = (slept.clone(), 0, 0);
    let awake = other.clone();
    client.plan(move |_, _| {
        if at == pause {
            // Failures of the others appear in what is read afterwards.
            n += 1;
            go_on(&awake, n).expect("nothing disturbs the others");
            told.store(true, std::sync::atomic::Ordering::SeqCst);
        }
        at += 1;
        None
    });
    let done = work(&sleeper);
    client.heal();
    let place = |what: String| format!("asleep before request {pause}: {what}");
    done.map_err(|e| place(text(e)))?;
    other.refresh().map_err(|e| place(text(e)))?;
    let fresh = open(&bucket.client(), &clock).map_err(|e| place(text(e)))?;
    for store in [&sleeper, &other, &fresh] {
        store.refresh().map_err(|e| place(text(e)))?;
        check(store).map_err(place)?;
        if slept.load(std::sync::atomic::Ordering::SeqCst) {
            let end = store.tree().get("others/1/end").map_err(text)?;
            if end != Some(Payload::from(1)) {
                return Err(place(format!("what the others did is {end:?}")));
            }
            let rows = read(store, "others/t1", AsOf::Newest).map_err(|e| place(text(e)))?;
            if rows != numbered(1, 21) {
                return Err(place(format!("the others' table has {} rows", rows.len())));
            }
        }
    }
    settled(&fresh, &bucket).map_err(place)?;
    Ok(slept.load(std::sync::atomic::Ordering::SeqCst))
}

/// A process sleeps before each of its requests in turn, while others do everything that can be done to the log.
pub fn sleepers() -> Outcome {
    fn writes(store: &Store) -> Result<()> {
        store.tree().put("mine", Payload::from(1))?;
        store.write("mine/t", batch(&numbered(0, 30)), &Default::default())?;
        (0..10).try_for_each(|at| store.tree().put(&format!("mine/{at}"), large(at)).map(drop))?;
        store.checkpoint(&Default::default())?;
        store.append("mine/t", batch(&numbered(30, 3)), &Default::default())?;
        store.refresh().map(drop)
    }
    fn written(store: &Store) -> Outcome {
        let (one, rows) = (store.tree().get("mine").map_err(text)?, read(store, "mine/t", AsOf::Newest).map_err(text)?);
        let nine = store.tree().get("mine/9").map_err(text)?;
        match one == Some(Payload::from(1)) && nine == Some(large(9)) && rows == numbered(0, 33) {
            true => Ok(()),
            false => Err(format!("mine is {one:?} with {} rows", rows.len())),
        }
    }
    let mut pauses = 0;
    while sleep_at(pauses, writes, written)? {
        pauses += 1;
    }
    if pauses > 10 { Ok(()) } else { Err(format!("it slept only {pauses} times")) }
}

/// A folder in which something happens before the next conditional put.
struct Asleep(FileStorage, Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl std::fmt::Debug for Asleep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Asleep")
    }
}

impl Storage for Asleep {
    fn put_if_match(&self, name: &str, parts: &[Bytes], known: Option<&Tag>) -> Result<Tag> {
        let sleep = self.1.lock().unwrap().take();
        sleep.into_iter().for_each(|sleep| sleep());
        self.0.put_if_match(name, parts, known)
    }

    fn get(&self, name: &str) -> Result<Bytes> {
        self.0.get(name)
    }

    fn get_ranges(&self, name: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.0.get_ranges(name, ranges)
    }

    fn put(&self, name: &str, parts: &[Bytes], mode: WriteMode) -> Result<()> {
        self.0.put(name, parts, mode)
    }

    fn get_tagged(&self, name: &str, known: Option<&Tag>) -> Result<Option<(Bytes, Tag)>> {
        self.0.get_tagged(name, known)
    }

    fn delete_many(&self, names: &[String]) -> Vec<Result<()>> {
        self.0.delete_many(names)
    }

    fn list(&self, folder: &str) -> Result<Vec<ObjectMeta>> {
        self.0.list(folder)
    }

    fn list_folders(&self, folder: &str) -> Result<Vec<String>> {
        self.0.list_folders(folder)
    }
}

/// A process that is suspended before a put to a folder, for longer than the log remembers, knows that the put was refused.
pub fn sleeper_in_a_folder() -> Outcome {
    let (disk, clock) = (SimDisk::new(), clock());
    let folder = || FileStorage::new(Arc::new(disk.clone()));
    let open = |storage: Arc<dyn Storage>, seed: u64| {
        open_bucket(storage, env(&clock, seed, 1), "folder", Options::default()).map_err(text)
    };
    let other = open(Arc::new(folder()), 4)?;
    other.tree().put("count", Payload::from(0)).map_err(text)?;
    let asleep = Arc::new(Asleep(folder(), Mutex::default()));
    let sleeper = open(asleep.clone(), 5)?;
    let awake = other.clone();
    *asleep.1.lock().unwrap() = Some(Box::new(move || {
        for n in 0..600 {
            awake.tree().put("others", Payload::from(n)).expect("nothing disturbs the others");
        }
        awake.checkpoint(&Default::default()).expect("nothing disturbs the others");
    }));
    let done = sleeper.tree().put("count", Payload::from(1));
    done.map_err(|e| format!("nothing failed, but the put returned: {e}"))?;
    other.refresh().map_err(text)?;
    match other.tree().get("count").map_err(text)? {
        Some(count) if count == Payload::from(1) => Ok(()),
        count => Err(format!("the count is {count:?}")),
    }
}

/// A process dies before and after each request of a checkpoint that cuts the log.
pub fn killed_while_cutting() -> Outcome {
    for after in [false, true] {
        for at in 0.. {
            let (bucket, clock) = (SimBucket::new(), clock());
            let client = bucket.client();
            let store = open(&client, &clock).map_err(text)?;
            (0..20).try_for_each(|n| store.tree().put(&format!("n/{n}"), large(n)).map(drop)).map_err(text)?;
            store.write("t", batch(&numbered(0, 9)), &Default::default()).map_err(text)?;
            store.checkpoint(&Default::default()).map_err(text)?;
            (0..20).try_for_each(|n| store.tree().put(&format!("n/{n}"), large(n + 1)).map(drop)).map_err(text)?;
            let mut seen = 0;
            client.plan(move |op, _| {
                seen += 1;
                match seen - 1 == at {
                    true if after && op != BucketOp::Get && op != BucketOp::List => Some(BucketFault::Lost),
                    true => Some(BucketFault::Killed),
                    false if seen - 1 > at => Some(BucketFault::Killed),
                    false => None,
                }
            });
            let done = store.checkpoint(&Default::default());
            let place = |what: String| format!("killed at request {at}, after it: {after}: {what}");
            let fresh = open(&bucket.client(), &clock).map_err(|e| place(text(e)))?;
            if fresh.tree().get("n/19").map_err(text)? != Some(large(20)) {
                return Err(place("a commit is lost".into()));
            }
            settled(&fresh, &bucket).map_err(place)?;
            if done.is_ok() && !client.is_dead() {
                break;
            }
        }
    }
    Ok(())
}

/// A process that was treated as dead comes back with blocks that have been deleted.
pub fn ended_session() -> Outcome {
    let (bucket, clock) = (SimBucket::new(), clock());
    let other = open(&bucket, &clock).map_err(text)?;
    other.write("t", batch(&numbered(0, 3)), &Default::default()).map_err(text)?;
    let client = bucket.client();
    let sleeper = open(&client, &clock).map_err(text)?;
    sleeper.write("warm", batch(&numbered(0, 3)), &Default::default()).map_err(text)?;
    let awake = other.clone();
    client.plan(move |op, _| {
        // Its blocks are on storage; the commit that refers to them is being made.
        if op == BucketOp::PutIf {
            let all = ReclaimOptions { fence_idle_micros: Some(0), ..Default::default() };
            awake.reclaim(&all).expect("nothing disturbs the others");
        }
        None
    });
    let answer = sleeper.write("t", batch(&numbered(5, 50)), &Default::default());
    client.heal();
    let fresh = open(&bucket.client(), &clock).map_err(text)?;
    let rows = read(&fresh, "t", AsOf::Newest).map_err(|e| format!("{answer:?}, and then {e}"))?;
    match answer {
        Err(e) if e.kind() == ErrorKind::Unavailable && rows == numbered(0, 3) => {}
        Ok(_) if rows == numbered(5, 50) => {}
        answer => return Err(format!("{answer:?}, and {} rows", rows.len())),
    }
    // It continues with another session.
    sleeper.write("t", batch(&numbered(5, 50)), &Default::default()).map_err(text)?;
    fresh.refresh().map_err(text)?;
    if read(&fresh, "t", AsOf::Newest).map_err(text)? != numbered(5, 50) {
        return Err("what it wrote then is not there".into());
    }
    settled(&fresh, &bucket)
}

/// The answer to each of a process's puts is lost in turn, or the put arrives late: a commit is done once, or reported to be
/// in doubt.
pub fn lost_answers() -> Outcome {
    for late in [None, Some(1), Some(2), Some(3), Some(4), Some(30)] {
        for at in 0..12 {
            let (bucket, clock) = (SimBucket::new(), clock());
            let client = bucket.client();
            let store = open(&client, &clock).map_err(text)?;
            store.tree().put("count", Payload::from(0)).map_err(text)?;
            let mut puts = 0;
            client.plan(move |op, _| {
                puts += u64::from(op == BucketOp::PutIf);
                match (op == BucketOp::PutIf && puts - 1 == at, late) {
                    (true, None) => Some(BucketFault::Lost),
                    (true, Some(after)) => Some(BucketFault::Late(after)),
                    _ => None,
                }
            });
            let mut expected = vec![0_i64];
            for _ in 0..10 {
                let added = store.transact(|tx| {
                    let now =
                        tx.tree().get("count")?.and_then(|count| count.to_json()).and_then(|count| count.as_i64());
                    tx.tree().put("count", Payload::from(now.unwrap_or(-1) + 1))
                });
                expected = match added {
                    Ok(_) => expected.into_iter().map(|n| n + 1).collect(),
                    Err(e) if e.kind() == ErrorKind::InDoubt => expected.iter().flat_map(|n| [*n, n + 1]).collect(),
                    Err(_) => expected,
                };
                store.refresh().map_err(text)?;
            }
            client.heal();
            for _ in 0..40 {
                let _ = open(&bucket.client(), &clock).map_err(text)?;
            }
            let fresh = open(&bucket.client(), &clock).map_err(text)?;
            let count =
                fresh.tree().get("count").map_err(text)?.and_then(|count| count.to_json()).and_then(|n| n.as_i64());
            if !count.is_some_and(|count| expected.contains(&count)) {
                return Err(format!("put {at}, late by {late:?}: {count:?}, expected one of {expected:?}"));
            }
            settled(&fresh, &bucket)?;
        }
    }
    Ok(())
}

/// A bucket that ignores conditions gets no store.
pub fn lying_bucket() -> Outcome {
    let clock = clock();
    for _ in 0..20 {
        let bucket = SimBucket::new().lying();
        match open(&bucket, &clock) {
            Err(e) if e.kind() == ErrorKind::Unsupported => {}
            Err(e) => return Err(format!("refused, but as {:?}: {e}", e.kind())),
            Ok(_) => return Err("a store was made in it".into()),
        }
        if !bucket.objects().is_empty() {
            return Err(format!("it left {:?}", bucket.objects()));
        }
    }
    Ok(())
}

/// A process that cannot reach the bucket says so; the result of its request is known at the next contact.
pub fn out_of_reach() -> Outcome {
    let (bucket, clock) = (SimBucket::new(), clock());
    let client = bucket.client();
    let store = open(&client, &clock).map_err(text)?;
    store.tree().put("n", Payload::from(1)).map_err(text)?;
    let mut cut = false;
    client.plan(move |op, _| {
        cut |= op == BucketOp::PutIf;
        match (cut, op) {
            (true, BucketOp::PutIf) => Some(BucketFault::Lost),
            (true, _) => Some(BucketFault::Refused),
            _ => None,
        }
    });
    let e = store.tree().put("n", Payload::from(2)).err().ok_or("it was reported as done")?;
    if e.kind() != ErrorKind::InDoubt || !e.to_string().contains("transaction") {
        return Err(format!("{:?}: {e}", e.kind()));
    }
    let read = store.tree().get("n").map_err(text)?;
    client.heal();
    store.refresh().map_err(text)?;
    match (read, store.tree().get("n").map_err(text)?) {
        (Some(before), Some(after)) if before == Payload::from(1) && after == Payload::from(2) => {}
        other => return Err(format!("{other:?}")),
    }
    store.tree().put("n", Payload::from(3)).map_err(text)?;
    settled(&store, &bucket)
}

/// What a checkpoint could not name in the root, the next one names: no more commits stand there than without the failure.
#[test]
fn a_snapshot_that_could_not_be_named_is_named_by_the_next_checkpoint() {
    let root_of = |refused: usize| {
        let (bucket, clock) = (SimBucket::new(), clock());
        let client = bucket.client();
        let store = open(&client, &clock).unwrap();
        for n in 0..20 {
            store.tree().put("n", Payload::from(n)).unwrap();
        }
        let mut left = refused;
        client.plan(move |op, name| {
            let refuses = op == BucketOp::PutIf && name == "root" && left > 0;
            left -= usize::from(refuses);
            refuses.then_some(BucketFault::Refused)
        });
        let first = store.checkpoint(&Default::default());
        client.heal();
        assert_eq!(first.is_err(), refused > 0, "{first:?}");
        assert!(bucket.objects().iter().any(|(name, _)| name.starts_with("catalog/")), "it was written");
        store.checkpoint(&Default::default()).unwrap();
        settled(&store, &bucket).unwrap();
        bucket.get("root").unwrap().len()
    };
    let (after_a_failure, without) = (root_of(100), root_of(0));
    // Commits take some tens of bytes each; numbers in it may take one more.
    assert!(after_a_failure.abs_diff(without) < 20, "{after_a_failure} bytes, {without} without a failure");
}

/// A clock that is years off, or steps back, changes only times.
pub fn clocks_that_disagree() -> Outcome {
    let bucket = SimBucket::new();
    let clocks: Vec<Arc<ManualClock>> = [0, 1 << 50, -(1 << 50)]
        .into_iter()
        .map(|now| Arc::new(ManualClock::new(drumlin::base::Timestamp(now))))
        .collect();
    let stores: Vec<Store> =
        clocks.iter().map(|clock| open(&bucket.client(), clock)).collect::<Result<_>>().map_err(text)?;
    for n in 0..30_i64 {
        let who = (n * 7 % 3) as usize;
        clocks[who].advance(if n % 5 == 0 { -1_000_000_000 } else { 17 });
        stores[who].tree().put("n", Payload::from(n)).map_err(text)?;
        stores[who].write("t", batch(&numbered(n, 5)), &Default::default()).map_err(text)?;
        if n % 4 == 0 {
            stores[who].reclaim(&Default::default()).map_err(text)?;
        }
    }
    for store in &stores {
        store.refresh().map_err(text)?;
        if read(store, "t", AsOf::Newest).map_err(text)? != numbered(29, 5) {
            return Err("the last write is not the newest".into());
        }
        let versions = store.table("t").versions().map_err(text)?;
        if versions.len() != 30 || !versions.is_sorted_by_key(|version| version.time) {
            return Err(format!("{} versions", versions.len()));
        }
    }
    settled(&stores[0], &bucket)
}

/// A store opened for reading writes nothing.
pub fn reader_only() -> Outcome {
    let (bucket, clock) = (SimBucket::new(), clock());
    let writer = open(&bucket, &clock).map_err(text)?;
    writer.write("t", batch(&numbered(0, 4)), &Default::default()).map_err(text)?;
    let options = Options { mode: Mode::Read, ..Options::default() };
    let reader = open_as(&bucket.client(), &clock, options).map_err(text)?;
    let before = bucket.requests();
    writer.append("t", batch(&numbered(4, 4)), &Default::default()).map_err(text)?;
    let between = bucket.requests();
    reader.refresh().map_err(text)?;
    let rows = read(&reader, "t", AsOf::Newest).map_err(text)?;
    let refused = reader.tree().put("n", Payload::from(1)).err().map(|e| e.kind());
    reader.close().map_err(text)?;
    let (after, wrote) = (bucket.requests(), between.puts - before.puts);
    match rows == numbered(0, 8)
        && refused == Some(ErrorKind::InvalidArgument)
        && after.puts == between.puts
        && wrote > 0
    {
        true => Ok(()),
        false => Err(format!("{} rows, {refused:?}, {after:?}", rows.len())),
    }
}
