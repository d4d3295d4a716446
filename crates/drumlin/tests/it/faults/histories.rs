//! Another history lies where a store was: it was made again, rolled back, or lost what all is reached from. A handle on the old one
//! notices at its next contact, and from then on reads, changes and deletes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use drumlin::base::ManualClock;
use drumlin::catalog::Payload;
use drumlin::log::decode_witness;
use drumlin::storage::{BucketFault, BucketOp, FileStorage, SimBucket, SimDisk, Storage, names};
use drumlin::store::{
    AsOf, Mode, Options, ReclaimOptions, SalvageTarget, SplitOptions, Stage, StageOptions, StagedCommit, Ticket, Token,
};
use drumlin::{Error, ErrorKind, Result, Store, Tables, Task};

use crate::processes::shared_support::{clock, open, open_as};
use crate::support::{batch, env, numbered, read};

type Outcome = std::result::Result<(), String>;
/// Bytes that do not compress.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let (mut rng, mut out) = (fastrand::Rng::with_seed(seed), vec![0; bytes]);
    rng.fill(&mut out);
    out
}

type Content = BTreeMap<String, Vec<u8>>;

fn content(bucket: &SimBucket) -> Content {
    let objects = bucket.objects().into_iter().map(|(name, _)| name);
    objects.map(|name| (name.clone(), bucket.content(&name).unwrap().to_vec())).collect()
}

/// Somebody empties the bucket, and puts other objects there.
fn put_there(bucket: &SimBucket, content: &Content) {
    let names: Vec<String> = bucket.objects().into_iter().map(|(name, _)| name).collect();
    bucket.client().delete_many(&names).into_iter().for_each(|deleted| deleted.unwrap());
    content.iter().for_each(|(name, bytes)| bucket.overwrite(name, bytes.clone()));
}

/// A job that fills a store, the same each time.
fn fill(store: &Store, run: i64) -> Result<()> {
    for path in ["t", "u"] {
        store.write(path, batch(&numbered(run * 10, 200)), &Default::default())?;
    }
    store.append("t", batch(&numbered(run, 50)), &Default::default())?;
    store.tree().put("run", Payload::from(run)).map(drop)
}

/// Gives work to a reclaim, a checkpoint and a staged commit.
fn prepare(store: &Store) -> Result<(Ticket, Token)> {
    store.table("t").delete("id % 2 = 0", &Default::default())?;
    store.write("gone", batch(&numbered(0, 60)), &Default::default())?;
    store.drop("gone")?;
    let ticket = Ticket::open(store, &[("staged".into(), Some(batch(&[]).schema()))], &StageOptions::default())?;
    let token =
        Stage::of(store).write(&ticket, "staged", batch(&numbered(0, 5)).into(), Some((0, 0)), &Task::default())?;
    Ok((ticket, token))
}

type Contact = fn(&Store, &(Ticket, Token)) -> Result<()>;

/// Every kind of contact with what lies there.
const CONTACTS: [(&str, Contact); 10] = [
    ("refresh", |store, _| store.refresh().map(drop)),
    ("write", |store, _| store.write("late", batch(&numbered(7, 100)), &Default::default()).map(drop)),
    ("put", |store, _| store.tree().put("late", Payload::from(1)).map(drop)),
    ("delete rows", |store, _| store.table("u").delete("id > 3", &Default::default()).map(drop)),
    ("checkpoint", |store, _| store.checkpoint(&Default::default()).map(drop)),
    ("reclaim", |store, _| store.reclaim(&ReclaimOptions { audit: true, ..Default::default() }).map(drop)),
    ("drop", |store, _| store.drop("u").map(drop)),
    ("lease", |store, _| {
        store.scan("**", &Default::default())?.splits(&Default::default(), &SplitOptions::default()).map(drop)
    }),
    ("staged commit", |store, (ticket, token)| {
        ticket.commit(store, vec![token.clone()], &StagedCommit::default()).map(drop)
    }),
    ("verify", |store, _| store.verify(&Default::default()).map(drop)),
];

/// A handle meets what lies there now by one contact: it gets the error, and does nothing any more.
fn meets(
    bucket: &SimBucket,
    store: &Store,
    carried: &(Ticket, Token),
    (name, contact): (&str, Contact),
    kind: ErrorKind,
) -> Outcome {
    let there = content(bucket);
    let told = match contact(store, carried) {
        Ok(()) => return Err(format!("{name}: nothing was noticed")),
        Err(e) => e,
    };
    let says = told.message().contains("the store here has another history");
    if !says || ![kind, ErrorKind::Closed].contains(&told.kind()) {
        return Err(format!("{name}: {:?}: {told}", told.kind()));
    }
    for (again, contact) in CONTACTS {
        match contact(store, carried) {
            Err(e) if e.kind() == ErrorKind::Closed && e.message().contains("another history") => {}
            other => return Err(format!("{again} after {name}: {other:?}")),
        }
    }
    match read(store, "u", AsOf::Newest) {
        Err(e) if e.kind() == ErrorKind::Closed => {}
        other => return Err(format!("a read after {name}: {other:?}")),
    }
    store.close().map_err(|e| format!("close after {name}: {e}"))?;
    let now = content(bucket);
    match there.iter().find(|(name, bytes)| now.get(*name) != Some(bytes)) {
        Some((object, _)) => Err(format!("{name}: changed or deleted {object}")),
        None => Ok(()),
    }
}

/// A store that was emptied and made again, by the same program, while a process had it open.
pub fn made_again() -> Outcome {
    for more in [0, 1, 40] {
        for contact in CONTACTS {
            let (bucket, clock) = (SimBucket::new(), clock());
            let store = open(&bucket, &clock).unwrap();
            fill(&store, 1).unwrap();
            let carried = prepare(&store).unwrap();
            put_there(&bucket, &Content::new());
            let new = open(&bucket.client(), &clock).unwrap();
            fill(&new, 2).unwrap();
            prepare(&new).unwrap();
            (0..more).for_each(|n| drop(new.tree().put(&format!("n/{n}"), Payload::from(n)).unwrap()));
            meets(&bucket, &store, &carried, contact, ErrorKind::Closed)?;
            fill(&new, 3).map_err(|e| e.to_string())?;
            let verified = new.verify(&Default::default()).map_err(|e| e.to_string())?;
            if !verified.faults.is_empty() {
                return Err(format!("{}: the new store: {:?}", contact.0, verified.faults));
            }
        }
    }
    Ok(())
}

/// The store goes back by some commits, as when a backup is restored, and may have gone on from there.
pub fn rolled_back(by: u64, on: u64) -> Outcome {
    for contact in CONTACTS {
        let (bucket, clock) = (SimBucket::new(), clock());
        let store = open(&bucket, &clock).unwrap();
        fill(&store, 1).unwrap();
        let carried = prepare(&store).unwrap();
        let then = content(&bucket);
        (0..by).for_each(|n| drop(store.tree().put("n", Payload::from(n as i64)).unwrap()));
        put_there(&bucket, &then);
        if on > 0 {
            let other = open(&bucket.client(), &clock).unwrap();
            (0..on).for_each(|n| drop(other.tree().put("m", Payload::from(n as i64)).unwrap()));
        }
        meets(&bucket, &store, &carried, contact, ErrorKind::Corrupt).map_err(|e| format!("by {by}, on {on}: {e}"))?;
    }
    Ok(())
}

// faults: lost log, bit rot x write, nodes, delete, checkpoint, reclaim, verify
#[test]
fn a_store_that_was_made_again_is_noticed_at_every_contact() {
    made_again().unwrap();
}

// faults: lost log, bit rot x write, nodes, delete, checkpoint, reclaim, verify
#[test]
fn a_store_that_went_back_is_noticed_at_every_contact() {
    for (by, on) in [(1, 0), (1, 1), (1, 30), (2, 1), (3, 3), (30, 2), (100, 0), (100, 130)] {
        rolled_back(by, on).unwrap();
    }
}

#[test]
fn a_store_without_its_root_is_noticed_at_every_contact_and_never_taken_for_empty() {
    for contact in CONTACTS {
        let (bucket, clock) = (SimBucket::new(), clock());
        let store = open(&bucket, &clock).unwrap();
        fill(&store, 1).unwrap();
        let carried = prepare(&store).unwrap();
        bucket.client().delete_many(&["root".into()]);
        meets(&bucket, &store, &carried, contact, ErrorKind::Corrupt).unwrap();
    }
    let (bucket, clock) = (SimBucket::new(), clock());
    let store = open(&bucket, &clock).unwrap();
    fill(&store, 1).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    store.close().unwrap();
    let whole = content(&bucket);
    // Whatever is left of it.
    for left in [vec!["blocks/"], vec!["catalog/"], vec!["seen"], vec!["blocks/", "catalog/", "log/", "seen"]] {
        let there: Content = whole
            .iter()
            .filter(|(name, _)| left.iter().any(|kept| name.starts_with(kept)))
            .map(|(n, b)| (n.clone(), b.clone()))
            .collect();
        put_there(&bucket, &there);
        for mode in [Mode::Read, Mode::Write, Mode::Create] {
            let told = open_as(&bucket, &clock, Options { mode, ..Options::default() }).unwrap_err();
            assert_eq!(told.kind(), ErrorKind::Corrupt, "{told}");
            assert!(
                told.message().contains("'root' is missing") && told.message().contains("drumlin salvage"),
                "{told}"
            );
        }
        assert_eq!(content(&bucket), there, "nothing was written");
    }
    put_there(&bucket, &Content::from([("somebody/else".to_owned(), b"x".to_vec())]));
    assert_eq!(open(&bucket, &clock).unwrap_err().kind(), ErrorKind::InvalidArgument);
    put_there(&bucket, &Content::from([("probe/left".to_owned(), b"x".to_vec())]));
    open(&bucket, &clock).unwrap();
}

#[test]
fn readers_and_sleepers_notice_too() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let store = open(&bucket, &clock).unwrap();
    fill(&store, 1).unwrap();
    let read_only = || open_as(&bucket.client(), &clock, Options { mode: Mode::Read, ..Options::default() }).unwrap();
    let reader = read_only();
    let then = content(&bucket);
    (0..3).for_each(|n| drop(store.tree().put("n", Payload::from(n)).unwrap()));
    reader.refresh().unwrap();
    put_there(&bucket, &then);
    let told = reader.refresh().unwrap_err();
    assert_eq!(told.kind(), ErrorKind::Corrupt, "{told}");
    assert_eq!(read(&reader, "t", AsOf::Newest).unwrap_err().kind(), ErrorKind::Closed);
    // One that slept through more than the root tells of goes on, in a session of its own.
    put_there(&bucket, &Content::new());
    let store = open(&bucket, &clock).unwrap();
    fill(&store, 1).unwrap();
    let sleeper = open(&bucket.client(), &clock).unwrap();
    sleeper.write("s", batch(&numbered(0, 60)), &Default::default()).unwrap();
    (0..600).for_each(|n| drop(store.tree().put("n", Payload::from(n)).unwrap()));
    store.checkpoint(&Default::default()).unwrap();
    let sessions = |store: &Store| drumlin::store::Activity::of(store).unwrap().sessions.len();
    let before = sessions(&store);
    let reader = read_only();
    sleeper.write("s", batch(&numbered(0, 70)), &Default::default()).unwrap();
    assert_eq!(read(&sleeper, "s", AsOf::Newest).unwrap().len(), 70);
    reader.refresh().unwrap();
    assert_eq!(read(&reader, "s", AsOf::Newest).unwrap().len(), 70);
    assert_eq!(sessions(&sleeper), before + 1, "it has a session of its own");
}

/// Opens a shared store in a folder.
fn in_folder(disk: &SimDisk, clock: &Arc<ManualClock>, options: Options) -> Result<Store> {
    let storage = Arc::new(FileStorage::new(Arc::new(disk.clone())));
    drumlin::store::open_bucket(storage, env(clock, disk.counters().changes, 2), "folder", options)
}

/// Each older root beside what later commits have left: the witness, a catalog snapshot, a chunk.
pub fn older_roots() -> Outcome {
    let (disk, clock) = (SimDisk::new(), clock());
    let store = in_folder(&disk, &clock, Options::default()).unwrap();
    let root = |disk: &SimDisk| disk.files().into_iter().find(|(name, _)| name == "root").unwrap().1;
    let mut roots = vec![root(&disk)];
    for n in 0..6_u8 {
        // Large enough for chunks.
        store.tree().put("big", Payload::bytes(&noise(n.into(), 70_000)).unwrap()).unwrap();
        roots.push(root(&disk));
    }
    store.checkpoint(&Default::default()).unwrap();
    roots.push(root(&disk));
    store.tree().put("last", Payload::from(1)).unwrap();
    store.close().unwrap();
    for (at, older) in roots.iter().enumerate() {
        let copy = disk.fork();
        copy.damage("root", older.clone());
        for mode in [Mode::Read, Mode::Write, Mode::Create] {
            match in_folder(&copy, &clock, Options { mode, ..Options::default() }) {
                Ok(_) => return Err(format!("root {at} of {} opens", roots.len())),
                Err(e) if e.kind() == ErrorKind::Corrupt && e.message().contains("salvage") => {}
                Err(e) => return Err(format!("root {at}: {:?}: {e}", e.kind())),
            }
        }
    }
    in_folder(&disk.fork(), &clock, Options::default()).map_err(|e| format!("undamaged: {e}")).map(drop)
}

// faults: lost log x open
#[test]
fn an_older_root_does_not_open() {
    older_roots().unwrap();
}

#[test]
fn each_trace_of_later_commits_accuses_by_itself() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let store = open(&bucket, &clock).unwrap();
    fill(&store, 1).unwrap();
    let older = bucket.content("root").unwrap().to_vec();
    for n in 0..4_u8 {
        store.tree().put("big", Payload::bytes(&noise(n.into(), 70_000)).unwrap()).unwrap();
    }
    let chunk = content(&bucket).into_iter().find(|(name, _)| name.starts_with("log/")).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    let catalog = content(&bucket).into_iter().find(|(name, _)| name.starts_with("catalog/")).unwrap();
    let seen = ("seen".to_owned(), bucket.content("seen").unwrap().to_vec());
    for (name, bytes) in [chunk, catalog, seen] {
        let there = Content::from([("root".to_owned(), older.clone()), (name.clone(), bytes)]);
        put_there(&bucket, &there);
        let told = open(&bucket, &clock).unwrap_err();
        assert_eq!(told.kind(), ErrorKind::Corrupt, "{name}: {told}");
        // A list that is old or fails shows less; it never accuses.
        let others = bucket.client();
        others.plan(|op, _| (op == BucketOp::List).then_some(BucketFault::Refused));
        assert_eq!(open(&others, &clock).is_ok(), name != "seen", "{name}");
    }
}

#[test]
fn what_others_commit_while_a_store_is_opened_accuses_nobody() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let store = open(&bucket, &clock).unwrap();
    fill(&store, 1).unwrap();
    // After the root was read, and before each of the others.
    for step in 1..4 {
        let opener = bucket.client();
        let (other, mut requests) = (store.clone(), 0);
        opener.plan(move |_, _| {
            requests += 1;
            if requests == step + 1 {
                for n in 0..70_u8 {
                    other.tree().put("big", Payload::bytes(&noise(n.into(), 9000)).unwrap()).unwrap();
                }
                other.checkpoint(&Default::default()).unwrap();
            }
            None
        });
        let opened = open(&opener, &clock).unwrap();
        opened.refresh().unwrap();
        assert_eq!(opened.seq().unwrap(), store.seq().unwrap(), "step {step}");
    }
}

#[test]
fn the_costs_are_three_requests_to_open_one_list_to_create_and_two_in_64_commits() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let store = open(&bucket, &clock).unwrap();
    let made = bucket.requests();
    assert_eq!(made.lists, 3, "one of the top, and two beside the root that another process could have made first");
    let before = bucket.requests();
    drop(open_as(&bucket.client(), &clock, Options { mode: Mode::Read, ..Options::default() }).unwrap());
    let after = bucket.requests();
    assert_eq!(
        (after.gets - before.gets, after.lists - before.lists),
        (2, 2),
        "the root, the witness; catalogs, chunks"
    );
    let puts = |store: &Store, count: i64| {
        let before = bucket.requests();
        (0..count).for_each(|n| drop(store.tree().put("n", Payload::from(n)).unwrap()));
        let after = bucket.requests();
        (after.puts - before.puts, after.gets - before.gets)
    };
    assert_eq!(puts(&store, 63), (63, 0));
    assert_eq!(puts(&store, 64), (65, 1));
    assert_eq!(decode_witness(&bucket.content("seen").unwrap()).unwrap().seq.0, 64);
    store.close().unwrap();
    assert_eq!(decode_witness(&bucket.content("seen").unwrap()).unwrap().seq.0, 127);
}

#[test]
fn a_witness_never_goes_back_and_its_damage_is_a_fault() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let (a, b) = (open(&bucket, &clock).unwrap(), open(&bucket.client(), &clock).unwrap());
    a.tree().put("n", Payload::from(1)).unwrap();
    for n in 0..4 {
        b.tree().put("n", Payload::from(n)).unwrap();
    }
    b.close().unwrap();
    let seen = || decode_witness(&bucket.content("seen").unwrap()).unwrap().seq.0;
    assert_eq!(seen(), 5);
    a.close().unwrap();
    assert_eq!(seen(), 5);
    let store = open(&bucket, &clock).unwrap();
    assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
    let mut damaged = bucket.content("seen").unwrap().to_vec();
    damaged[40] ^= 1;
    bucket.overwrite("seen", damaged);
    let faults = store.verify(&Default::default()).unwrap().faults;
    assert!(faults.iter().any(|fault| fault.error.contains("seen")), "{faults:?}");
    // The next checkpoint writes it again.
    store.checkpoint(&Default::default()).unwrap();
    assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
}

#[test]
fn a_loss_that_is_accepted_makes_a_store_of_its_own() {
    let (disk, clock) = (SimDisk::new(), clock());
    let options = || Options { inline_bytes: 0, ..Options::default() };
    let store = in_folder(&disk, &clock, options()).unwrap();
    fill(&store, 1).unwrap();
    let older = disk.files().into_iter().find(|(name, _)| name == "root").unwrap().1;
    drop(store);
    // Another process registers a session, and writes blocks, which are lost.
    let store = in_folder(&disk, &clock, options()).unwrap();
    fill(&store, 2).unwrap();
    let old = in_folder(&disk, &clock, Options { mode: Mode::Read, ..options() }).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    drop(store);
    disk.damage("root", older);
    let refused = in_folder(&disk, &clock, options()).unwrap_err();
    assert!(refused.message().contains("accept_loss"), "{refused}");
    let store = in_folder(&disk, &clock, Options { accept_loss: true, ..options() }).unwrap();
    for run in 3..6 {
        fill(&store, run).unwrap();
    }
    store.checkpoint(&Default::default()).unwrap();
    assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
    store.close().unwrap();
    let store = in_folder(&disk, &clock, options()).unwrap();
    assert_eq!(store.tree().get("run").unwrap(), Some(Payload::from(5)));
    let told = old.refresh().unwrap_err();
    assert_eq!(told.kind(), ErrorKind::Closed, "{told}");
    assert!(told.message().contains("after a loss was accepted"), "{told}");
}

#[test]
fn a_salvage_takes_the_history_that_the_witness_names_or_says_what_is_lost() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let store = open(&bucket, &clock).unwrap();
    store.tree().put("n", Payload::from(0)).unwrap();
    let older = bucket.content("root").unwrap().to_vec();
    for n in 1..=4_u8 {
        store.tree().put("big", Payload::bytes(&noise(n.into(), 70_000)).unwrap()).unwrap();
    }
    store.tree().put("n", Payload::from(1)).unwrap();
    store.close().unwrap();
    bucket.overwrite("root", older);
    let target = SimBucket::new();
    let salvaged = SalvageTarget::Shared(Arc::new(target.clone()))
        .salvage(Arc::new(bucket.client()), env(&clock, 77, 2), Options::default(), &Task::default())
        .unwrap();
    // The newest commits were in the root that is gone.
    assert!(!salvaged.losses.is_empty());
    let text = format!("{:?}", salvaged.losses);
    assert!(text.contains("Commits"), "{text}");
    let store = open(&target, &clock).unwrap();
    assert_eq!(store.verify(&Default::default()).unwrap().faults, []);
    store.tree().put("n", Payload::from(2)).unwrap();
}

/// A name that is given once and is taken is left to whom it belongs; the next write has other names.
pub fn taken_name() -> Outcome {
    let (bucket, clock) = (SimBucket::new(), clock());
    let store = open(&bucket, &clock).unwrap();
    store.write("t", batch(&numbered(0, 10)), &Default::default()).unwrap();
    let block = content(&bucket).into_keys().find(|name| name.starts_with("blocks/")).unwrap();
    let (folder, number) = block.strip_suffix(".blk").unwrap().rsplit_once('/').unwrap();
    let next = format!("{folder}/{}.blk", number.parse::<u64>().unwrap() + 1);
    bucket.overwrite(&next, b"somebody else's".to_vec());
    match store.write("t", batch(&numbered(0, 20)), &Default::default()) {
        Err(e) if e.kind() == ErrorKind::Unavailable => {}
        other => return Err(format!("{other:?}")),
    }
    if bucket.content(&next).is_none_or(|bytes| bytes != "somebody else's") {
        return Err(format!("{next} was overwritten or deleted"));
    }
    store.write("t", batch(&numbered(0, 20)), &Default::default()).map_err(|e: Error| e.to_string())?;
    match read(&store, "t", AsOf::Newest) {
        Ok(rows) if rows == numbered(0, 20) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

#[test]
fn a_block_never_takes_the_place_of_another() {
    taken_name().unwrap();
}

#[test]
fn two_forks_of_one_history_give_their_blocks_different_names() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let store = open(&bucket, &clock).unwrap();
    store.tree().put("n", Payload::from(0)).unwrap();
    drop(store);
    let fork = SimBucket::new();
    put_there(&fork, &content(&bucket));
    let blocks = |bucket: &SimBucket| {
        fill(&open(bucket, &clock).unwrap(), 1).unwrap();
        content(bucket).into_keys().filter(|name| name.starts_with(names::BLOCKS)).collect::<Vec<_>>()
    };
    let (ours, theirs) = (blocks(&bucket), blocks(&fork));
    assert!(!ours.is_empty() && ours.iter().all(|name| !theirs.contains(name)), "{ours:?} {theirs:?}");
}
