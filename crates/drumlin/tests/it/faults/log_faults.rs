//! Faults of a log in files, as functions that return what went wrong, so that planted bugs can show that they notice.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use drumlin::base::{ManualClock, Timestamp};
use drumlin::catalog::Payload;
use drumlin::storage::{Access, Disk, DiskEntry, DiskFile, FileIdentity, Guard, Rename, SimDisk};
use drumlin::store::{Options, SyncMode};
use drumlin::{Error, ErrorKind, Result, Store, Tables};

use crate::support::env;

pub fn open(disk: &SimDisk, options: Options) -> Result<Store> {
    open_on(Arc::new(disk.clone()), disk.counters().changes, options)
}

fn open_on(disk: Arc<dyn Disk>, seed: u64, options: Options) -> Result<Store> {
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    drumlin::store::open_on(disk, env(&clock, seed, 2), "sim", options)
}

pub fn by_time() -> Options {
    // The test itself syncs.
    Options { sync: SyncMode::Interval(Duration::from_secs(3600)), ..Options::default() }
}

/// The last commits of a store that was closed cleanly are cut off its log.
pub fn cut_after_close() -> std::result::Result<(), String> {
    let disk = SimDisk::new();
    let store = open(&disk, Options::default()).unwrap();
    (0..4).for_each(|n| drop(store.tree().put("n", Payload::from(n)).unwrap()));
    store.close().unwrap();
    let (name, content) = disk.files().into_iter().filter(|(name, _)| name.ends_with(".log")).max().unwrap();
    disk.damage(&name, content[..content.len() - 100].to_vec());
    match open(&disk, Options::default()) {
        Err(e) if e.kind() == ErrorKind::Corrupt => Ok(()),
        Ok(store) => Err(format!("opens with commit {} as the last", store.seq().unwrap())),
        Err(e) => Err(e.to_string()),
    }
}

/// A disk whose next write-back of the log fails. The failure is reported to only one caller, as on Linux: once per open
/// file, after which the pages count as clean.
#[derive(Clone, Debug)]
struct Flaky(SimDisk, Arc<Syncs>);

#[derive(Debug, Default)]
struct Syncs {
    armed: AtomicUsize,
    entered: Mutex<usize>,
    changed: Condvar,
}

struct FlakyFile(Box<dyn DiskFile>, Arc<Syncs>, bool);

impl DiskFile for FlakyFile {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<usize> {
        self.0.read_at(offset, bytes)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.0.write_at(offset, bytes)
    }

    fn len(&self) -> Result<u64> {
        self.0.len()
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        self.0.set_len(bytes)
    }

    fn links(&self) -> Result<u64> {
        self.0.links()
    }

    fn identity(&self) -> Result<FileIdentity> {
        self.0.identity()
    }

    fn sync(&self) -> Result<()> {
        if !self.2 || self.1.armed.load(SeqCst) == 0 {
            return self.0.sync();
        }
        let mut entered = self.1.entered.lock().unwrap();
        *entered += 1;
        self.1.changed.notify_all();
        if *entered == 1 {
            // The write-back has failed; before this call returns, another may come and go.
            let wait = Duration::from_millis(300);
            drop(self.1.changed.wait_timeout_while(entered, wait, |entered| *entered < 2).unwrap());
            return Err(Error::unavailable("fsync: EIO"));
        }
        // Nothing is dirty any more, and the error has been reported.
        Ok(())
    }
}

impl Disk for Flaky {
    fn create(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        Ok(Box::new(FlakyFile(self.0.create(name)?, self.1.clone(), name.starts_with("log/0"))))
    }

    fn open(&self, name: &str, access: Access) -> Result<Box<dyn DiskFile>> {
        Ok(Box::new(FlakyFile(self.0.open(name, access)?, self.1.clone(), name.starts_with("log/0"))))
    }

    fn rename(&self, from: &str, to: &str, mode: Rename) -> Result<()> {
        self.0.rename(from, to, mode)
    }

    fn identity(&self, name: &str) -> Result<Option<FileIdentity>> {
        self.0.identity(name)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.0.remove(name)
    }

    fn make_dir(&self, name: &str) -> Result<()> {
        self.0.make_dir(name)
    }

    fn remove_dir(&self, name: &str) -> Result<()> {
        self.0.remove_dir(name)
    }

    fn list(&self, folder: &str) -> Result<Vec<DiskEntry>> {
        self.0.list(folder)
    }

    fn sync_dir(&self, folder: &str) -> Result<()> {
        self.0.sync_dir(folder)
    }

    fn lock(&self, name: &str, holder: &str) -> Result<Box<dyn Guard>> {
        self.0.lock(name, holder)
    }

    fn wait_lock(&self, name: &str) -> Result<Box<dyn Guard>> {
        self.0.wait_lock(name)
    }
}

/// Two threads sync the log while a write-back fails: a thread whose sync succeeds must be right.
pub fn sync_together(roll: bool) -> std::result::Result<(), String> {
    let (sim, syncs) = (SimDisk::new(), Arc::new(Syncs::default()));
    let log = drumlin::log::LogOptions { segment_bytes_max: if roll { 200 } else { 1 << 20 }, ..Default::default() };
    let store = open_on(Arc::new(Flaky(sim.clone(), syncs.clone())), 1, Options { log, ..by_time() }).unwrap();
    store.tree().put("before", Payload::from(1)).unwrap();
    store.sync().unwrap();
    store.tree().put("n/1", Payload::bytes(&[7; 300]).unwrap()).unwrap();
    syncs.armed.store(1, SeqCst);
    let told: Vec<Result<()>> = std::thread::scope(|scope| {
        let second = |store: Store| {
            move || if roll { store.tree().put("n/2", Payload::from(2)).map(drop) } else { store.sync() }
        };
        let first = scope.spawn({
            let store = store.clone();
            move || store.sync()
        });
        let mut entered = syncs.entered.lock().unwrap();
        while *entered == 0 {
            entered = syncs.changed.wait(entered).unwrap();
        }
        drop(entered);
        let second = scope.spawn(second(store.clone()));
        vec![first.join().unwrap(), second.join().unwrap()]
    });
    if told.iter().any(Result::is_ok) {
        return Err(format!("the sync that failed was told to one caller only: {told:?}"));
    }
    // Nothing may be based on it either.
    match store.tree().put("later", Payload::from(3)) {
        Err(e) if e.kind() == ErrorKind::Closed => Ok(()),
        other => Err(format!("a log whose sync failed takes more: {other:?}")),
    }
}
