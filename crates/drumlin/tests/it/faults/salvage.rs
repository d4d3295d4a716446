//! Salvage of stores with every kind of damage: the result equals the undamaged store except for what the report names, the
//! new store verifies, and the damaged one stays as it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use drumlin::base::{ManualClock, Task, Timestamp, Version};
use drumlin::catalog::{Payload, Retention};
use drumlin::storage::{Disk, FileStorage, SimBucket, SimDisk, Storage};
use drumlin::store::{AsOf, LossKind, Mode, Options, SalvageReport, SalvageTarget, TableOptions};
use drumlin::{ErrorKind, Result, Store, Tables};

use crate::faults::corruption::{Answers, answers};
use crate::processes::shared_support;
use crate::support::{Row, batch, env, numbered, open, read};

/// The readable content of a store: tables without a key by version, the keyed one, and nodes.
#[derive(Debug, PartialEq)]
struct Shown {
    tables: Answers,
    keyed: Vec<Row>,
    nodes: BTreeMap<String, Payload>,
}

/// Two log segments, a catalog snapshot, blocks, history, a snapshot, nodes, and rows in memory, partly older than the catalog
/// snapshot's.
fn fill(store: &Store) {
    store.write("a", batch(&numbered(0, 40)), &Default::default()).unwrap();
    store.append("a", batch(&numbered(100, 3)), &Default::default()).unwrap();
    store.write("b/c", batch(&numbered(7, 9)), &Default::default()).unwrap();
    let options = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
    store.table("k").create(batch(&[]).schema(), options).unwrap();
    store.table("k").upsert(batch(&numbered(0, 20)), &Default::default()).unwrap();
    for n in 0..5 {
        store.tree().put(&format!("n/{n}/leaf"), Payload::from(n)).unwrap();
    }
    store.set_retention("n", Some(Retention::KeepLast(9))).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    store.reclaim(&Default::default()).unwrap();
    store.table("a").delete("id % 3 = 0", &Default::default()).unwrap();
    store.snapshot("s", "**").unwrap();
    store.table("k").upsert(batch(&numbered(15, 10)), &Default::default()).unwrap();
    store.write("b/c", batch(&numbered(1000, 5)), &Default::default()).unwrap();
    store.tree().put("n/9", Payload::from(9)).unwrap();
}

fn show(store: &Store) -> Result<Shown> {
    let nodes = store.tree().get_many("n/**")?.into_iter().collect();
    Ok(Shown { tables: answers(store)?, keyed: read(store, "k", AsOf::Newest)?, nodes })
}

fn build() -> (SimDisk, Shown) {
    let disk = SimDisk::new();
    let store = open(&disk).unwrap();
    fill(&store);
    let shown = show(&store).unwrap();
    store.close().unwrap();
    (disk, shown)
}

fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..bytes).map(|_| rng.u8(..)).collect()
}

fn salvage(source: Arc<dyn Storage>, target: SalvageTarget) -> Result<SalvageReport> {
    let clock = Arc::new(ManualClock::new(Timestamp(5_000_000)));
    target.salvage(source, env(&clock, 77, 2), Options::default(), &Task::default())
}

/// Salvages the store on `disk`; checks that the disk is unchanged.
fn salvage_disk(disk: &SimDisk) -> Result<(SimDisk, SalvageReport)> {
    let (before, to) = (disk.files(), SimDisk::new());
    let done = salvage(Arc::new(FileStorage::new(Arc::new(disk.clone()))), SalvageTarget::Folder(Arc::new(to.clone())));
    assert_eq!(disk.files(), before, "the damaged store has changed");
    done.map(|report| (to, report))
}

/// The rows without those that the report names.
fn less(rows: &[Row], report: &SalvageReport, path: &str, version: u64) -> Vec<Row> {
    let lost = report.losses.iter().filter(|loss| loss.kind == LossKind::Rows && loss.path.as_deref() == Some(path));
    let lost: Vec<_> = lost.flat_map(|loss| &loss.versions).filter(|rows| rows.version == Version(version)).collect();
    let is_lost = |at: u64| lost.iter().any(|rows| (rows.first..rows.first + rows.rows).contains(&at));
    rows.iter().zip(0..).filter(|(_, at)| !is_lost(*at)).map(|(row, _)| row.clone()).collect()
}

/// Checks that a salvaged store shows what the undamaged one did, except for what the report names.
fn judge(store: &Store, report: &SalvageReport, expected: &Shown, what: &str) {
    let has = |kinds: &[LossKind]| report.losses.iter().any(|loss| kinds.contains(&loss.kind));
    let of = |kind: LossKind, path: &str| {
        report.losses.iter().any(|loss| loss.kind == kind && loss.path.as_deref() == Some(path))
    };
    let verified = store.verify(&Default::default()).unwrap();
    assert_eq!(verified.faults, [], "{what}: {report:?}");
    assert_eq!(verified.orphans, [], "{what}: {report:?}");
    let older = has(&[LossKind::Commits, LossKind::Catalog, LossKind::Change]);
    for ((path, version), rows) in &expected.tables {
        // What a snapshot holds is a version too.
        let as_of = match *version {
            u64::MAX => AsOf::Snapshot("s".into()),
            version => AsOf::Version(Version(version)),
        };
        let gone = older || of(LossKind::Table, path) || has(&[LossKind::Nodes]);
        match read(store, path, as_of) {
            Ok(found) if *version == u64::MAX => {
                let lost = of(LossKind::Rows, path) || gone;
                assert!(lost || found == *rows, "{what}: snapshot of {path}: {report:?}");
                assert!(found.iter().all(|row| rows.contains(row)), "{what}: snapshot of {path}");
            }
            Ok(found) => assert_eq!(found, less(rows, report, path, *version), "{what}: {path} {version}: {report:?}"),
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::NotFound, "{what}: {e}");
                let snapshot = *version == u64::MAX && has(&[LossKind::Snapshot]);
                assert!(gone || snapshot, "{what}: {path} {version} is gone, and not named: {report:?}");
            }
        }
    }
    let older = older || has(&[LossKind::Nodes, LossKind::Table]);
    match read(store, "k", AsOf::Newest) {
        Ok(found) => {
            let lost = older || of(LossKind::Rows, "k") || of(LossKind::RowsInMemory, "k");
            assert!(lost || found == expected.keyed, "{what}: {found:?}: {report:?}");
        }
        Err(e) => assert!(older, "{what}: {e}: {report:?}"),
    }
    let nodes: BTreeMap<String, Payload> = store.tree().get_many("n/**").unwrap().into_iter().collect();
    assert!(older || nodes == expected.nodes, "{what}: {nodes:?}: {report:?}");
}

/// Salvages a damaged store, and judges the result; returns whether there was one.
fn check(disk: &SimDisk, expected: &Shown, what: &str) -> bool {
    match salvage_disk(disk) {
        Ok((new, report)) => {
            let store = open(&new).unwrap_or_else(|e| panic!("{what}: {e}: {report:?}"));
            judge(&store, &report, expected, what);
            // The new store is a store like any other.
            store.append("a", batch(&numbered(5000, 2)), &Default::default()).ok();
            true
        }
        Err(e) => {
            assert!([ErrorKind::Corrupt, ErrorKind::Unsupported].contains(&e.kind()), "{what}: {e}");
            false
        }
    }
}

#[test]
fn an_undamaged_store_comes_out_as_it_is() {
    let (disk, expected) = build();
    let (new, report) = salvage_disk(&disk).unwrap();
    assert_eq!(report.losses, []);
    assert_eq!((report.tables, report.nodes > 8), (3, true), "{report}");
    let store = open(&new).unwrap();
    assert_eq!(show(&store).unwrap(), expected);
    assert_eq!(store.retention("n/0").unwrap(), Retention::KeepLast(9));
    assert_eq!(store.snapshots().unwrap().len(), 1);
    judge(&store, &report, &expected, "undamaged");
    // A killed store too, and a store that was already salvaged.
    store.table("k").upsert(batch(&numbered(500, 3)), &Default::default()).unwrap();
    let expected = show(&store).unwrap();
    let (again, report) = salvage_disk(&new.fork()).unwrap();
    assert_eq!(report.losses, []);
    assert_eq!(show(&open(&again).unwrap()).unwrap(), expected);
}

// faults: bit rot, lost log, torn log tail x salvage
#[test]
fn every_flip_and_cut_of_every_file_costs_what_is_named() {
    let (disk, expected) = build();
    let (mut saved, mut all) = (0, 0);
    for (name, content) in disk.files() {
        if name == "lock" {
            continue;
        }
        let step = if content.len() > 3000 { 13 } else { 5 };
        for at in (0..content.len()).step_by(step) {
            let copy = disk.fork();
            let mut flipped = content.clone();
            flipped[at] ^= 1 << (at % 8);
            copy.damage(&name, flipped);
            saved += u64::from(check(&copy, &expected, &format!("{name} flipped at {at}")));
            copy.damage(&name, content[..at].to_vec());
            saved += u64::from(check(&copy, &expected, &format!("{name} cut at {at}")));
            all += 2;
        }
    }
    assert!(saved * 100 > all * 95, "{saved} of {all}");
}

// faults: bit rot, lost log x salvage
#[test]
fn missing_swapped_and_doubly_damaged_files_cost_what_is_named() {
    let (disk, expected) = build();
    let files: Vec<(String, Vec<u8>)> = disk.files().into_iter().filter(|(name, _)| name != "lock").collect();
    for (name, content) in &files {
        let copy = disk.fork();
        copy.remove(name).unwrap();
        check(&copy, &expected, &format!("{name} removed"));
        for (other, there) in files.iter().filter(|(other, _)| other != name) {
            let copy = disk.fork();
            copy.damage(other, content.clone());
            check(&copy, &expected, &format!("{other} replaced by {name}"));
            let copy = disk.fork();
            copy.damage(name, content[..content.len() / 2].to_vec());
            copy.damage(other, there[..there.len() / 3].to_vec());
            check(&copy, &expected, &format!("{name} and {other} cut"));
        }
    }
    let mut rng = fastrand::Rng::with_seed(5);
    for round in 0..200 {
        let copy = disk.fork();
        for _ in 0..rng.usize(1..6) {
            let (name, content) = &files[rng.usize(..files.len())];
            let mut damaged = content.clone();
            let from = rng.usize(..damaged.len());
            let until = (from + rng.usize(..200)).min(damaged.len());
            match rng.u8(..3) {
                0 => damaged[from..until].iter_mut().for_each(|byte| *byte = rng.u8(..)),
                1 => drop(damaged.drain(from..until)),
                _ => damaged[from..until].fill(0),
            }
            copy.damage(name, damaged);
        }
        check(&copy, &expected, &format!("round {round}"));
    }
}

// faults: bit rot, lost log x salvage
#[test]
fn a_store_in_a_bucket_is_salvaged_too() {
    let bucket = SimBucket::new();
    let clock = shared_support::clock();
    let store = shared_support::open(&bucket, &clock).unwrap();
    fill(&store);
    // Enough for the log to have a chunk.
    for n in 0..4 {
        store.tree().put(&format!("n/large/{n}"), Payload::bytes(&noise(n, 50_000)).unwrap()).unwrap();
    }
    let expected = show(&store).unwrap();
    store.close().unwrap();
    let objects: Vec<(String, Vec<u8>)> =
        bucket.objects().into_iter().map(|(name, _)| (name.clone(), bucket.content(&name).unwrap().to_vec())).collect();
    assert!(objects.iter().any(|(name, _)| name.starts_with("log/")));
    let fork = |damage: &dyn Fn(&str, &[u8]) -> Option<Vec<u8>>| {
        let copy = SimBucket::new();
        for (name, content) in &objects {
            if let Some(content) = damage(name, content) {
                copy.overwrite(name, content);
            }
        }
        copy
    };
    let check = |copy: SimBucket, what: String| {
        let before = copy.objects();
        let new = SimDisk::new();
        let done = salvage(Arc::new(copy.clone()), SalvageTarget::Folder(Arc::new(new.clone())));
        assert_eq!(copy.objects(), before, "{what}");
        match done {
            Ok(report) => judge(&open(&new).unwrap(), &report, &expected, &what),
            Err(e) => assert!([ErrorKind::Corrupt, ErrorKind::Unsupported].contains(&e.kind()), "{what}: {e}"),
        }
    };
    // To another bucket, without damage.
    let new = SimBucket::new();
    let report =
        salvage(Arc::new(fork(&|_, content| Some(content.to_vec()))), SalvageTarget::Shared(Arc::new(new.clone())));
    let report = report.unwrap();
    assert_eq!(report.losses, []);
    let store = shared_support::open(&new, &clock).unwrap();
    assert_eq!(show(&store).unwrap(), expected);
    store.tree().put("n/more", Payload::from(1)).unwrap();
    shared_support::settled(&store, &new).unwrap();
    for (name, content) in &objects {
        check(fork(&|other, content| (other != name).then(|| content.to_vec())), format!("{name} removed"));
        let step = content.len().div_ceil(60).max(1);
        for at in (0..content.len()).step_by(step) {
            let flipped = |other: &str, content: &[u8]| {
                let mut content = content.to_vec();
                if other == name {
                    content[at] ^= 1;
                }
                Some(content)
            };
            check(fork(&flipped), format!("{name} flipped at {at}"));
            let cut =
                |other: &str, content: &[u8]| Some(content[..if other == name { at } else { content.len() }].to_vec());
            check(fork(&cut), format!("{name} cut at {at}"));
        }
    }
}

#[test]
fn a_place_that_is_taken_is_refused_and_so_is_what_is_no_store() {
    let (disk, _) = build();
    let source = || Arc::new(FileStorage::new(Arc::new(disk.clone())));
    let taken = SimDisk::new();
    open(&taken).unwrap().close().unwrap();
    let error = salvage(source(), SalvageTarget::Folder(Arc::new(taken.clone()))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    let bucket = SimBucket::new();
    drop(shared_support::open(&bucket, &shared_support::clock()).unwrap());
    let error = salvage(source(), SalvageTarget::Shared(Arc::new(bucket))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    let nothing = FileStorage::new(Arc::new(SimDisk::new()));
    let error = salvage(Arc::new(nothing), SalvageTarget::Folder(Arc::new(SimDisk::new()))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

// faults: odd name x salvage
#[test]
fn folders_are_salvaged_by_name_and_none_into_itself() {
    let dir = std::env::temp_dir().join(format!("drumlin-salvage-{}", std::process::id()));
    let at = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let store = Store::open_with(at("old"), Options::default()).unwrap();
    fill(&store);
    let expected = show(&store).unwrap();
    store.close().unwrap();
    let go = |to: &str, shared: bool| {
        drumlin::salvage(&at("old"), &at(to), Options { shared, ..Options::default() }, &Task::default())
    };
    let report = go("new", false).unwrap();
    assert_eq!(report.losses, []);
    assert_eq!(
        show(&Store::open_with(at("new"), Options { mode: Mode::Read, ..Options::default() }).unwrap()).unwrap(),
        expected
    );
    assert_eq!(go("shared", true).unwrap().losses, []);
    assert_eq!(show(&Store::open_with(at("shared"), Options::default()).unwrap()).unwrap(), expected);
    // And a shared folder back to one of a single process.
    let back = drumlin::salvage(&at("shared"), &at("back"), Options::default(), &Task::default()).unwrap();
    assert_eq!(back.losses, []);
    assert_eq!(show(&Store::open_with(at("back"), Options::default()).unwrap()).unwrap(), expected);
    assert_eq!(go("new", false).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(go("old/inside", false).unwrap_err().kind(), ErrorKind::InvalidArgument);
    std::fs::remove_dir_all(&dir).unwrap();
}
