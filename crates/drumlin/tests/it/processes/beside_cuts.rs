//! Processes that read while others cut the log, rewrite and reclaim: paused before each of their requests in turn, they
//! return the state at some instant, or say that what they read is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use drumlin::base::ManualClock;
use drumlin::catalog::Payload;
use drumlin::storage::{BucketFault, BucketOp, SimBucket, SimDisk};
use drumlin::store::{AsOf, Options, ReclaimOptions, SalvageTarget, TableOptions};
use drumlin::{ErrorKind, Result, Store, Tables};

use crate::processes::shared_support::{clock, open, open_as, settled};
use crate::support::{Row, batch, env, numbered, read};

fn large(n: i64) -> Payload {
    let mut rng = fastrand::Rng::with_seed(n.cast_unsigned());
    let bytes: Vec<u8> = (0..30_000).map(|_| rng.u8(..)).collect();
    Payload::bytes(&bytes).unwrap()
}

fn named(round: i64) -> Vec<Row> {
    (0..30).map(|id| (id, Some(format!("round {round}")))).collect()
}

/// Round `n` of what others do: every table and key gets the round's rows, the log is cut, blocks are deleted, and so are
/// old versions unless `keep`.
fn go_on(store: &Store, n: i64, keep: bool) -> Result<()> {
    for at in 0..6 {
        store.tree().put(&format!("large/{at}"), large(n * 10 + at))?;
    }
    store.transact(|tx| {
        tx.write("t", batch(&numbered(n * 100, 40)), &Default::default())?;
        tx.table("k").upsert(batch(&named(n)), &Default::default())?;
        tx.tree().put("round", Payload::from(n)).map(drop)
    })?;
    store.checkpoint(&Default::default())?;
    let old: Vec<_> = store.table("t").versions()?.into_iter().map(|info| info.version).collect();
    if old.len() > 1 && !keep {
        store.delete_versions(&[("t".into(), old[..old.len() - 1].to_vec())], Default::default())?;
    }
    store.reclaim(&ReclaimOptions { audit: true, fence_idle_micros: Some(0), ..Default::default() }).map(drop)
}

/// A reading operation; returns which round it saw.
type Work = (&'static str, fn(&SimBucket, &Arc<ManualClock>, Option<Store>) -> Result<i64>);

fn round_of(rows: &[Row]) -> i64 {
    let first = rows[0].0;
    assert_eq!(rows, numbered(first, 40), "rows of one round");
    first / 100
}

fn round_of_names(rows: &[Row]) -> i64 {
    let name = rows[0].1.clone().unwrap();
    assert!(rows.iter().all(|(_, other)| other.as_ref() == Some(&name)), "rows of several rounds: {rows:?}");
    name.trim_start_matches("round ").parse().unwrap()
}

const WORK: [Work; 8] = [
    ("open", |bucket, clock, _| {
        let store = open_uncached(bucket, clock)?;
        let round = store.tree().get("round")?.and_then(|round| round.to_json()).and_then(|round| round.as_i64());
        Ok(round.expect("it is there"))
    }),
    ("open and read", |bucket, clock, _| Ok(round_of(&read(&open_uncached(bucket, clock)?, "t", AsOf::Newest)?))),
    ("read", |_, _, store| Ok(round_of(&read(&store.unwrap(), "t", AsOf::Newest)?))),
    ("look-up", |_, _, store| {
        let keys = batch(&numbered(0, 30)).project(&[0]).unwrap();
        let found = store.unwrap().table("k").get_many(&keys, &Default::default())?;
        Ok(round_of_names(&crate::support::rows(std::slice::from_ref(&found.rows))))
    }),
    ("transaction", |_, _, store| {
        let store = store.unwrap();
        let tx = store.transaction()?;
        let rows = crate::support::rows(&tx.table("t").collect(&Default::default())?);
        let keys = batch(&numbered(0, 30)).project(&[0]).unwrap();
        let found = tx.table("k").get_many(&keys, &Default::default())?;
        let by_key = round_of_names(&crate::support::rows(std::slice::from_ref(&found.rows)));
        assert_eq!(round_of(&rows), by_key, "of one instant");
        Ok(by_key)
    }),
    ("feed", |_, _, store| {
        let store = store.unwrap();
        let mut feed = store.changes(store.seq()?)?;
        let mut place = feed.seq();
        while let Some(commit) = feed.next(Some(Duration::ZERO))? {
            assert_eq!(commit.seq().0, place.0 + 1, "no commit is passed over");
            place = commit.seq();
        }
        Ok(1)
    }),
    ("verify", |_, _, store| {
        let report = store.unwrap().verify(&Default::default())?;
        assert_eq!(report.faults, []);
        Ok(1)
    }),
    ("salvage", |bucket, clock, _| {
        let to = SimDisk::in_memory();
        let target = SalvageTarget::Folder(Arc::new(to.clone()));
        let env = env(clock, 99, 1);
        let report = target.salvage(Arc::new(bucket.clone()), env, Options::default(), &Default::default())?;
        // A salvage is for stores that no process writes: it names what is deleted while it reads.
        let store = crate::support::open(&to)?;
        assert_eq!(store.verify(&Default::default())?.faults, []);
        match read(&store, "t", AsOf::Newest) {
            Ok(rows) if report.losses.is_empty() => Ok(round_of(&rows)),
            _ => Ok(1),
        }
    }),
];

fn open_uncached(bucket: &SimBucket, clock: &Arc<ManualClock>) -> Result<Store> {
    open_as(bucket, clock, Options { cache_bytes: 0, inline_bytes: 0, ..Options::default() })
}

// faults: paused process x open, read, look-up, transaction, feed, salvage, verify
// faults: reclaim beside a reader x open, read, look-up, transaction, feed, salvage, verify
// faults: concurrent change x open, read, look-up, feed, verify
#[test]
fn who_reads_beside_cuts_and_reclaims_sees_one_instant() {
    for ((what, work), keep) in WORK.into_iter().flat_map(|work| [(work, false), (work, true)]) {
        let (mut pauses, mut gone) = (0, 0);
        for pause in 0.. {
            let place = |e: String| format!("{what}, asleep before request {pause}: {e}");
            let (bucket, clock) = (SimBucket::new(), clock());
            let other = open(&bucket, &clock).unwrap();
            let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
            other.table("k").create(batch(&[]).schema(), key).unwrap();
            (0..2).for_each(|n| go_on(&other, n, keep).unwrap());
            let client = bucket.client();
            let store = (!["open", "open and read", "salvage"].contains(&what))
                .then(|| open_uncached(&client, &clock).unwrap());
            let slept = Arc::new(AtomicBool::new(false));
            let (told, mut at, awake) = (slept.clone(), 0, other.clone());
            client.plan(move |_, _| {
                if at == pause {
                    told.store(true, Ordering::SeqCst);
                    let others = || (2..4).for_each(|n| go_on(&awake, n, keep).expect("nothing disturbs the others"));
                    std::thread::scope(|scope| scope.spawn(others).join().unwrap());
                }
                at += 1;
                None
            });
            let answer = work(&client, &clock, store);
            client.heal();
            match answer {
                // The state when it began, or ended.
                Ok(round) => assert!([1, 2, 3].contains(&round), "{}", place(format!("round {round}"))),
                Err(e) if e.kind() == ErrorKind::SnapshotExpired => gone += 1,
                Err(e) if what == "salvage" && e.kind() == ErrorKind::Corrupt => gone += 1,
                Err(e) => panic!("{}", place(format!("{:?}: {e}", e.kind()))),
            }
            if !slept.load(Ordering::SeqCst) {
                break;
            }
            pauses += 1;
            settled(&other, &bucket).unwrap_or_else(|e| panic!("{}", place(e)));
        }
        let may_be_gone = !keep || ["look-up", "transaction", "feed", "salvage"].contains(&what);
        assert!(
            pauses > 0 && (may_be_gone || gone == 0),
            "{what}, versions kept: {keep}: {gone} of {pauses} were gone"
        );
    }
}

// faults: stale list x salvage
#[test]
fn a_salvage_from_lists_that_are_not_whole_names_what_it_lost() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let store = open(&bucket, &clock).unwrap();
    let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table("k").create(batch(&[]).schema(), key).unwrap();
    (0..3).for_each(|n| go_on(&store, n, false).unwrap());
    for at in 0..6 {
        store.tree().put(&format!("large/{at}"), large(at)).unwrap();
    }
    for every in 1..6 {
        let client = bucket.client();
        let mut lists = 0;
        client.plan(move |op, _| {
            lists += u64::from(op == BucketOp::List);
            (op == BucketOp::List && lists % every == 0).then_some(BucketFault::Partly(2))
        });
        let to = SimDisk::in_memory();
        let target = SalvageTarget::Folder(Arc::new(to.clone()));
        let source = Arc::new(client);
        let done = target.salvage(source, env(&clock, 5, 1), Options::default(), &Default::default());
        match done {
            Ok(report) => {
                let new = crate::support::open(&to).unwrap();
                assert_eq!(new.verify(&Default::default()).unwrap().faults, []);
                let rows = read(&new, "t", AsOf::Newest);
                let nodes = new.tree().count("large/*").unwrap();
                let whole = rows.is_ok_and(|rows| rows == numbered(200, 40)) && nodes == 6;
                assert!(whole || !report.losses.is_empty(), "something is missing and not named: {report:?}");
            }
            Err(e) => assert_eq!(e.kind(), ErrorKind::Corrupt, "{e}"),
        }
    }
}
