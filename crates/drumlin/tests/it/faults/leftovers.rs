//! Leftovers of crashes and closed stores: temporary files are listed and deleted, nothing stays open, and what was never on
//! storage is not listed for deletion.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drumlin::base::{ManualClock, Timestamp};
use drumlin::catalog::Payload;
use drumlin::storage::{
    Access, CrashPoint, Disk, DiskEntry, DiskFault, DiskFile, FileIdentity, FileStorage, Guard, Rename, SimDisk,
};
use drumlin::store::{AsOf, Options, ReclaimOptions};
use drumlin::{Error, ErrorKind, Result, Store, Tables};

use crate::support::{batch, env, numbered, open, open_inline, read};

fn temporaries(disk: &SimDisk) -> Vec<String> {
    disk.files().into_iter().map(|(name, _)| name).filter(|name| name.ends_with(".tmp")).collect()
}

fn place(disk: &SimDisk, name: &str) {
    if let Some((folder, _)) = name.rsplit_once('/') {
        disk.make_dir(folder).unwrap();
    }
    disk.create(name).unwrap().write_at(0, &[7; 100]).unwrap();
}

fn work(store: &Store, n: i64) -> Result<()> {
    store.write("t", batch(&numbered(n, 50)), &Default::default())?;
    store.tree().put("n", Payload::from(n))?;
    store.checkpoint(&Default::default()).map(drop)
}

#[test]
fn temporary_files_of_a_store_of_one_process_are_listed_and_deleted() {
    let disk = SimDisk::in_memory();
    let store = open(&disk).unwrap();
    work(&store, 1).unwrap();
    let left = [
        "blocks/1/77.blk.99999-9.tmp",
        "catalog/00000000000000000007.cat.99999-3.tmp",
        "format.99999-5.tmp",
        "log/00000000000000000045.log.tmp",
    ];
    left.iter().for_each(|name| place(&disk, name));
    // Not one of ours.
    place(&disk, "x.tmp");
    let listed: Vec<String> =
        store.verify(&Default::default()).unwrap().orphans.into_iter().map(|(name, _)| name).collect();
    assert_eq!(listed, left);
    let report = store.reclaim(&Default::default()).unwrap();
    assert_eq!((report.orphans, report.orphan_bytes, report.failures.len()), (4, 400, 0));
    assert_eq!(temporaries(&disk), ["x.tmp"]);
    assert!(store.verify(&Default::default()).unwrap().orphans.is_empty());
    work(&store, 2).unwrap();
}

#[test]
fn temporary_files_of_a_shared_folder_are_deleted_once_the_log_has_passed_them() {
    let (disk, clock) = (SimDisk::in_memory(), Arc::new(ManualClock::new(Timestamp(1_000_000))));
    let options = Options { inline_bytes: 0, block_grace_micros: 0, ..Options::default() };
    let storage = Arc::new(FileStorage::new(Arc::new(disk.clone())));
    let store = drumlin::store::open_bucket(storage, env(&clock, 1, 1), "folder", options).unwrap();
    work(&store, 1).unwrap();
    let seq = store.seq().unwrap().0;
    let later = [
        format!("catalog/{:020}.cat.99999-3.tmp", seq + 1),
        format!("log/{:020}-00000000000000aa.log.99999-4.tmp", seq + 1),
    ];
    later.iter().for_each(|name| place(&disk, name));
    place(&disk, "root.99999-5.tmp");
    let audit = ReclaimOptions { audit: true, ..ReclaimOptions::default() };
    assert_eq!(store.verify(&Default::default()).unwrap().orphans, [("root.99999-5.tmp".to_owned(), 100)]);
    store.reclaim(&audit).unwrap();
    assert_eq!(temporaries(&disk), later, "another process may be at these");
    work(&store, 2).unwrap();
    let orphans = store.verify(&Default::default()).unwrap().orphans;
    assert!(later.iter().all(|name| orphans.contains(&(name.clone(), 100))), "{orphans:?}");
    store.reclaim(&audit).unwrap();
    assert!(temporaries(&disk).is_empty() && store.verify(&Default::default()).unwrap().orphans.is_empty());
}

// faults: crash x write, nodes, checkpoint, reclaim, open
#[test]
fn a_crash_anywhere_leaves_no_temporary_file_after_the_next_reclaim() {
    let mut left = 0;
    for at in 0.. {
        let disk = SimDisk::new();
        disk.plan(at, DiskFault::Crash(CrashPoint::After));
        let done = open(&disk).and_then(|store| (0..3).try_for_each(|n| work(&store, n)));
        let struck = disk.is_dead();
        disk.revive();
        left += temporaries(&disk).len();
        let store = open(&disk).unwrap_or_else(|e| panic!("operation {at}: {e}"));
        let listed = store.verify(&Default::default()).unwrap().orphans;
        let all = temporaries(&disk).into_iter().all(|name| listed.iter().any(|(listed, _)| *listed == name));
        assert!(all, "operation {at}: {listed:?} of {:?}", temporaries(&disk));
        store.write("own", batch(&numbered(0, 5)), &Default::default()).unwrap();
        store.reclaim(&Default::default()).unwrap();
        assert_eq!(temporaries(&disk), Vec::<String>::new(), "operation {at}");
        work(&store, 9).unwrap();
        if !struck {
            done.unwrap();
            break;
        }
    }
    assert!(left > 10, "only {left} temporary files were left");
}

#[test]
fn what_travelled_in_commits_is_not_listed_for_deletion() {
    let (disk, clock) = (SimDisk::in_memory(), Arc::new(ManualClock::new(Timestamp(1_000_000))));
    let store = open_inline(&disk, &clock, 1).unwrap();
    for n in 0..5 {
        store.write("a", batch(&numbered(n, 10)), &Default::default()).unwrap();
    }
    let mut begun = store.read("a", &Default::default()).unwrap();
    store.drop("a").unwrap();
    let report = store.reclaim(&Default::default()).unwrap();
    let stat = store.stat().unwrap();
    assert_eq!((stat.inline_blocks, stat.condemned, stat.condemned_bytes), (0, 0, 0));
    assert_eq!((report.blocks, report.bytes), (0, 0), "nothing was on storage");
    assert_eq!(crate::support::rows(&[begun.next().unwrap().unwrap()]), numbered(4, 10), "who reads it reads on");
    store.write("b", batch(&numbered(1, 1)), &Default::default()).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    let stat = store.stat().unwrap();
    assert_eq!((stat.blocks, stat.inline_blocks, stat.condemned), (1, 0, 0));
    drop(store);
    assert_eq!(read(&open(&disk).unwrap(), "b", AsOf::Newest).unwrap(), numbered(1, 1));
}

/// The files that this process has open below `path`.
fn opened(path: &str) -> Vec<String> {
    let links =
        std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
    links.map(|link| link.display().to_string()).filter(|link| link.starts_with(path)).collect()
}

#[test]
fn a_store_that_is_closed_holds_nothing_open() {
    if !std::path::Path::new("/proc/self/fd").exists() {
        return;
    }
    for shared in [false, true] {
        let folder = std::env::temp_dir().join(format!("drumlin-closed-{}-{shared}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let path = folder.display().to_string();
        let options = || Options { shared, inline_bytes: 0, cache_bytes: 0, cpu_threads: 1, ..Options::default() };
        let store = Store::open_with(&path, options()).unwrap();
        store.write("t", batch(&numbered(0, 10)), &Default::default()).unwrap();
        store.checkpoint(&Default::default()).unwrap();
        assert!(!opened(&path).is_empty());
        let scan = store.read("t", &Default::default()).unwrap();
        store.close().unwrap();
        // A scan that has begun is read to its end.
        assert_eq!(crate::support::rows(&scan.collect().unwrap()), numbered(0, 10));
        assert_eq!(opened(&path), Vec::<String>::new(), "shared: {shared}");
        let again = Store::open_with(&path, options()).unwrap();
        assert_eq!(read(&again, "t", AsOf::Newest).unwrap(), numbered(0, 10));
        again.close().unwrap();
        assert_eq!(opened(&path), Vec::<String>::new(), "shared: {shared}");
        drop((store, again));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

/// A disk whose process has no file descriptors left once the switch is set.
#[derive(Debug)]
struct Starved(SimDisk, AtomicBool);

impl Starved {
    fn descriptor(&self) -> Result<()> {
        match self.1.load(Ordering::SeqCst) {
            true => Err(Error::unavailable("too many open files")),
            false => Ok(()),
        }
    }
}

impl Disk for Starved {
    fn create(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        self.descriptor().and_then(|()| self.0.create(name))
    }

    fn open(&self, name: &str, access: Access) -> Result<Box<dyn DiskFile>> {
        self.descriptor().and_then(|()| self.0.open(name, access))
    }

    fn rename(&self, from: &str, to: &str, mode: Rename) -> Result<()> {
        self.descriptor().and_then(|()| self.0.rename(from, to, mode))
    }

    fn identity(&self, name: &str) -> Result<Option<FileIdentity>> {
        self.0.identity(name)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.descriptor().and_then(|()| self.0.remove(name))
    }

    fn make_dir(&self, name: &str) -> Result<()> {
        self.descriptor().and_then(|()| self.0.make_dir(name))
    }

    fn remove_dir(&self, name: &str) -> Result<()> {
        self.descriptor().and_then(|()| self.0.remove_dir(name))
    }

    fn list(&self, folder: &str) -> Result<Vec<DiskEntry>> {
        self.descriptor().and_then(|()| self.0.list(folder))
    }

    fn sync_dir(&self, folder: &str) -> Result<()> {
        self.descriptor().and_then(|()| self.0.sync_dir(folder))
    }

    fn lock(&self, name: &str, holder: &str) -> Result<Box<dyn Guard>> {
        self.descriptor().and_then(|()| self.0.lock(name, holder))
    }

    fn wait_lock(&self, name: &str) -> Result<Box<dyn Guard>> {
        self.descriptor().and_then(|()| self.0.wait_lock(name))
    }
}

#[test]
fn a_reclaim_without_file_descriptors_says_what_it_did() {
    let disk = Arc::new(Starved(SimDisk::in_memory(), AtomicBool::new(false)));
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let options = Options { inline_bytes: 0, ..Options::default() };
    let store = drumlin::store::open_on(disk.clone(), env(&clock, 1, 1), "sim", options).unwrap();
    work(&store, 1).unwrap();
    store.reclaim(&Default::default()).unwrap();
    // No table was given up, so nothing was done.
    disk.1.store(true, Ordering::SeqCst);
    let e = store.reclaim(&Default::default()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unavailable, "{e}");
    store.drop("t").unwrap();
    let report = store.reclaim(&Default::default()).unwrap();
    assert_eq!((report.tables, report.blocks), (1, 0));
    assert!(report.failures.iter().any(|(name, why)| name == "(reclaim)" && why.contains("too many open files")));
    assert!(report.failures.iter().any(|(name, _)| name.starts_with("blocks/")), "{:?}", report.failures);
    assert!(store.trash().unwrap().is_empty());
    disk.1.store(false, Ordering::SeqCst);
    let report = store.reclaim(&Default::default()).unwrap();
    assert!(report.blocks > 0 && report.failures.is_empty(), "{report}");
    assert!(store.verify(&Default::default()).unwrap().orphans.is_empty());
}

#[test]
fn a_reclaim_that_says_nothing_was_done_has_done_nothing() {
    let disk = SimDisk::new();
    let store = open(&disk).unwrap();
    work(&store, 1).unwrap();
    store.drop("t").unwrap();
    store.close().unwrap();
    let (mut failed, mut told) = (0, 0);
    for strike in 0..60 {
        let copy = disk.fork();
        let store = open(&copy).unwrap();
        copy.plan(copy.counters().changes + strike, DiskFault::Fail);
        match store.reclaim(&Default::default()) {
            Err(e) if e.kind() == ErrorKind::Unavailable => {
                failed += 1;
                assert_eq!(store.trash().unwrap().len(), 1, "operation {strike}: {e}");
            }
            Err(_) => {}
            Ok(report) => {
                told += usize::from(!report.failures.is_empty());
                assert_eq!((report.tables, store.trash().unwrap().len()), (1, 0), "operation {strike}");
            }
        }
    }
    assert!(failed > 0 && told > 0, "{failed} failed, {told} told");
}
