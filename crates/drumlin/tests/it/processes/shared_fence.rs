//! A process that is treated as dead while it writes: it continues in a new session by itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use drumlin::base::Result;
use drumlin::catalog::Payload;
use drumlin::storage::{
    Access, Disk, DiskEntry, DiskFile, FileIdentity, FileStorage, Guard, Rename, SimBucket, SimDisk,
};
use drumlin::store::{AsOf, Frame, Options, ReclaimOptions, TableOptions, WriteOptions};
use drumlin::{Store, Tables};

use crate::processes::shared_support::{clock, open, open_as, settled};
use crate::support::{batch, env, numbered, read};

type Outcome = std::result::Result<(), String>;

/// What a process does, and a check of the result.
type Work = (&'static str, fn(&Store) -> Result<()>, fn(&Store) -> Result<bool>);

fn options() -> Options {
    // Rows by key are written as row groups, small data in blocks of their own, and a write fills several blocks.
    Options { inline_bytes: 0, row_write_bytes: 0, block_bytes: 600, block_grace_micros: 0, ..Options::default() }
}

fn all() -> ReclaimOptions {
    ReclaimOptions { fence_idle_micros: Some(0), audit: true, ..ReclaimOptions::default() }
}

fn keyed() -> TableOptions {
    TableOptions { key: vec!["id".into()], ..TableOptions::default() }
}

fn sorted() -> WriteOptions {
    WriteOptions { sort: Some(vec!["id".into()]), ..WriteOptions::default() }
}

const WORK: [Work; 7] = [
    (
        "write",
        |store| store.write("new", batch(&numbered(0, 300)), &Default::default()).map(drop),
        |store| Ok(read(store, "new", AsOf::Newest)? == numbered(0, 300)),
    ),
    (
        "write_many",
        |store| {
            let frame = |n: i64| Frame::from(batch(&numbered(n, 40)));
            store.write_many((0..4).map(|n| (format!("many/{n}"), frame(n))).collect(), &Default::default()).map(drop)
        },
        |store| {
            Ok((0..4)
                .all(|n| read(store, &format!("many/{n}"), AsOf::Newest).is_ok_and(|rows| rows == numbered(n, 40))))
        },
    ),
    (
        "append",
        |store| store.append("there", batch(&numbered(50, 50)), &Default::default()).map(drop),
        |store| Ok(read(store, "there", AsOf::Newest)? == numbered(0, 100)),
    ),
    (
        "update",
        |store| store.replace("there", batch(&numbered(10, 30)), &Default::default()).map(drop),
        |store| Ok(read(store, "there", AsOf::Newest)? == numbered(0, 50)),
    ),
    (
        "upsert",
        |store| store.table("keyed").upsert(batch(&numbered(10, 30)), &Default::default()).map(drop),
        |store| Ok(read(store, "keyed", AsOf::Newest)? == numbered(0, 40)),
    ),
    (
        "transact",
        |store| {
            store.transact(|tx| {
                tx.tree().put("n", Payload::from(1))?;
                tx.write("new", batch(&numbered(0, 30)), &Default::default()).map(drop)
            })
        },
        |store| Ok(store.tree().exists("n")? && read(store, "new", AsOf::Newest)? == numbered(0, 30)),
    ),
    (
        "checkpoint",
        |store| store.checkpoint(&Default::default()).map(drop),
        |store| Ok(read(store, "there", AsOf::Newest)? == numbered(0, 50) && store.stat()?.memtable_bytes == 0),
    ),
];

fn prepare(store: &Store) -> Result<()> {
    store.write("there", batch(&numbered(0, 20)), &sorted())?;
    (2..5).try_for_each(|n| store.append("there", batch(&numbered(n * 10, 10)), &Default::default()).map(drop))?;
    store.table("keyed").create(batch(&[]).schema(), keyed())?;
    store.table("keyed").upsert(batch(&numbered(0, 20)), &Default::default()).map(drop)
}

/// In a bucket, before each request in turn.
pub fn in_a_bucket() -> Outcome {
    let text = |e: drumlin::Error| e.to_string();
    for (name, work, check) in WORK {
        let mut strikes = 0;
        for at in 0.. {
            let place = |what: String| format!("{name}, ended before request {at}: {what}");
            let (bucket, clock) = (SimBucket::new(), clock());
            let client = bucket.client();
            let store = open_as(&client, &clock, options()).map_err(text)?;
            prepare(&store).map_err(text)?;
            let other = open(&bucket, &clock).map_err(text)?;
            let struck = Arc::new(AtomicBool::new(false));
            let (told, mut seen) = (struck.clone(), 0);
            client.plan(move |_, _| {
                seen += 1;
                if seen - 1 == at {
                    told.store(true, Ordering::SeqCst);
                    other.tree().put("other", Payload::from(1)).expect("nothing disturbs it");
                    other.reclaim(&all()).expect("nothing disturbs it");
                }
                None
            });
            let done = work(&store);
            client.heal();
            done.map_err(|e| place(format!("{:?}: {e}", e.kind())))?;
            let fresh = open(&bucket.client(), &clock).map_err(text)?;
            for store in [&store, &fresh] {
                if !check(store).map_err(|e| place(text(e)))? {
                    return Err(place("what it wrote is not what is there".into()));
                }
            }
            settled(&fresh, &bucket).map_err(place)?;
            if !struck.load(Ordering::SeqCst) {
                break;
            }
            strikes += 1;
        }
        if strikes < 3 {
            return Err(format!("{name} made only {strikes} requests"));
        }
    }
    Ok(())
}

type Hook = Box<dyn FnMut() + Send>;

/// A disk on which something happens before each operation on names.
#[derive(Clone)]
pub struct Hooked {
    disk: SimDisk,
    hook: Arc<Mutex<Option<Hook>>>,
    /// While it holds a lock, nothing happens: another process would wait for it.
    locked: Arc<AtomicBool>,
}

struct Unlocks(Arc<AtomicBool>, #[allow(dead_code)] Box<dyn Guard>);

impl Guard for Unlocks {}

impl Drop for Unlocks {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl std::fmt::Debug for Hooked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hooked")
    }
}

impl Hooked {
    /// On `disk`, with `hook` from the first operation on.
    pub fn new(disk: &SimDisk, hook: impl FnMut() + Send + 'static) -> Self {
        let hook: Box<dyn FnMut() + Send> = Box::new(hook);
        Self { disk: disk.clone(), hook: Arc::new(Mutex::new(Some(hook))), locked: Arc::default() }
    }

    fn disk(&self) -> &SimDisk {
        if self.locked.load(Ordering::SeqCst) {
            return &self.disk;
        }
        let mut hook = self.hook.lock().unwrap().take();
        if let Some(hook) = &mut hook {
            hook();
        }
        let mut slot = self.hook.lock().unwrap();
        if slot.is_none() {
            *slot = hook;
        }
        drop(slot);
        &self.disk
    }
}

impl Disk for Hooked {
    fn create(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        self.disk().create(name)
    }
    fn open(&self, name: &str, access: Access) -> Result<Box<dyn DiskFile>> {
        self.disk().open(name, access)
    }
    fn rename(&self, from: &str, to: &str, mode: Rename) -> Result<()> {
        self.disk().rename(from, to, mode)
    }
    fn identity(&self, name: &str) -> Result<Option<FileIdentity>> {
        self.disk().identity(name)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.disk().remove(name)
    }
    fn make_dir(&self, name: &str) -> Result<()> {
        self.disk().make_dir(name)
    }
    fn remove_dir(&self, name: &str) -> Result<()> {
        self.disk().remove_dir(name)
    }
    fn list(&self, folder: &str) -> Result<Vec<DiskEntry>> {
        self.disk().list(folder)
    }
    fn sync_dir(&self, folder: &str) -> Result<()> {
        self.disk().sync_dir(folder)
    }
    fn lock(&self, name: &str, holder: &str) -> Result<Box<dyn Guard>> {
        self.disk().lock(name, holder)
    }
    fn wait_lock(&self, name: &str) -> Result<Box<dyn Guard>> {
        let guard = self.disk().wait_lock(name)?;
        self.locked.store(true, Ordering::SeqCst);
        Ok(Box::new(Unlocks(self.locked.clone(), guard)))
    }
}

/// In a folder, where the clean-up removes what is being written, before each file-system operation in turn.
pub fn in_a_folder() -> Outcome {
    let text = |e: drumlin::Error| e.to_string();
    for (name, work, check) in WORK {
        let mut strikes = 0;
        for at in 0.. {
            let place = |what: String| format!("{name}, ended before operation {at}: {what}");
            let (disk, clock) = (SimDisk::in_memory(), clock());
            let open = |disk: Arc<dyn Disk>, seed: u64| {
                drumlin::store::open_bucket(Arc::new(FileStorage::new(disk)), env(&clock, seed, 1), "folder", options())
            };
            let hooked = Hooked { disk: disk.clone(), hook: Arc::default(), locked: Arc::default() };
            let store = open(Arc::new(hooked.clone()), 1).map_err(text)?;
            prepare(&store).map_err(text)?;
            let other = open(Arc::new(disk.clone()), 2).map_err(text)?;
            let struck = Arc::new(AtomicBool::new(false));
            let (told, mut seen) = (struck.clone(), 0);
            *hooked.hook.lock().unwrap() = Some(Box::new(move || {
                seen += 1;
                if seen - 1 == at {
                    told.store(true, Ordering::SeqCst);
                    other.tree().put("other", Payload::from(1)).expect("nothing disturbs it");
                    other.reclaim(&all()).expect("nothing disturbs it");
                }
            }));
            let done = work(&store);
            *hooked.hook.lock().unwrap() = None;
            done.map_err(|e| place(format!("{:?}: {e}", e.kind())))?;
            let fresh = open(Arc::new(disk.clone()), 3).map_err(text)?;
            for store in [&store, &fresh] {
                if !check(store).map_err(|e| place(text(e)))? {
                    return Err(place("what it wrote is not what is there".into()));
                }
            }
            let report = fresh.reclaim(&all()).map_err(text)?;
            let left: Vec<String> =
                disk.files().into_iter().map(|(name, _)| name).filter(|name| name.ends_with(".tmp")).collect();
            if !report.failures.is_empty() || !left.is_empty() {
                return Err(place(format!("{report}; left: {left:?}")));
            }
            let verified = fresh.verify(&Default::default()).map_err(text)?;
            if !verified.faults.is_empty() || !verified.orphans.is_empty() {
                return Err(place(format!("{verified:?}")));
            }
            if !struck.load(Ordering::SeqCst) {
                break;
            }
            strikes += 1;
        }
        if strikes < 3 {
            return Err(format!("{name} made only {strikes} operations"));
        }
    }
    Ok(())
}

// faults: paused process, reclaim beside a writer x write, upsert, transaction, checkpoint
#[test]
fn a_process_taken_for_dead_goes_on_in_a_bucket() {
    in_a_bucket().unwrap();
}

// faults: paused process, reclaim beside a writer x write, upsert, transaction, checkpoint
#[test]
fn a_process_taken_for_dead_goes_on_in_a_folder() {
    in_a_folder().unwrap();
}
