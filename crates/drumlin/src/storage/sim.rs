//! A disk in memory that knows what would survive a crash.
//!
//! It keeps two images. The *volatile* one is what calls see. The *durable* one holds, for every file, the content at
//! its last `sync`, and for every folder the names at its last `sync_dir`; what came after is pending. A crash
//! ([`SimDisk::crash`]) keeps an arbitrary subset of what is pending, chosen by seed, with writes torn at 512 bytes.
//! Faults strike at a numbered operation, so that a test can try every operation.
//!
//! Without a planned fault, it is also the store behind `memory://`.

mod file;
mod image;

use std::sync::Arc;

use file::SimFile;
use image::{ChangeKind, File, FileChange, Folder, Image, Inode, crashed, last, missing, set, tear};
pub use image::{Counters, CrashPoint, DiskFault};
use parking_lot::Mutex;

use super::disk::{Access, Disk, DiskEntry, DiskFile, FileIdentity, Guard, Rename, folder_of};
use crate::base::{Error, ErrorKind, Result, waiting};

/// A simulated disk. Clones share it.
#[derive(Clone)]
pub struct SimDisk {
    image: Arc<Mutex<Image>>,
}

impl std::fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SimDisk")
    }
}

impl Default for SimDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl SimDisk {
    /// An empty disk that tracks what is durable.
    pub fn new() -> Self {
        Self::with_tracking(true)
    }

    /// An empty disk that keeps only the volatile image: half the memory, no crashes.
    pub fn in_memory() -> Self {
        Self::with_tracking(false)
    }

    fn with_tracking(tracks_durability: bool) -> Self {
        let mut image = Image { tracks_durability, ..Image::default() };
        image.folders.insert(String::new(), Folder::default());
        Self { image: Arc::new(Mutex::new(image)) }
    }

    /// Operations so far.
    pub fn counters(&self) -> Counters {
        self.image.lock().counters
    }

    /// Plans one fault, at the change numbered `at` (the next one is `counters().changes`).
    pub fn plan(&self, at: u64, fault: DiskFault) {
        self.image.lock().planned = Some((at, fault));
    }

    /// Forgets a planned fault and gives a full disk its space back.
    pub fn heal(&self) {
        let mut image = self.image.lock();
        image.planned = None;
        image.full = false;
    }

    /// Whether a planned crash has struck.
    pub fn is_dead(&self) -> bool {
        self.image.lock().dead
    }

    /// A disk as a machine might find it after losing power now: durable content and names, with an arbitrary
    /// subset, chosen by `seed`, of what was pending. Locks are free. This disk is left as it is.
    #[must_use]
    pub fn crash(&self, seed: u64) -> SimDisk {
        let mut rng = fastrand::Rng::with_seed(seed);
        let old = self.image.lock();
        assert!(old.tracks_durability, "this disk does not track durability");
        let mut new = Image { next_file: old.next_file, tracks_durability: true, ..Image::default() };
        for (name, folder) in &old.folders {
            let mut names = folder.durable.clone();
            for rewrite in folder.pending.iter().filter(|_| rng.bool()) {
                rewrite.iter().for_each(|(name, node)| set(&mut names, name, *node));
            }
            new.folders.insert(name.clone(), Folder { durable: names.clone(), names, pending: Vec::new() });
        }
        for (id, file) in &old.files {
            let mut content = file.durable.clone();
            for change in &file.pending {
                match change {
                    FileChange::Write(offset, bytes) => tear(&mut content, *offset, bytes, &mut rng),
                    FileChange::Resize(bytes) if rng.bool() => content.resize(*bytes as usize, 0),
                    FileChange::Resize(_) => {}
                }
            }
            new.files.insert(*id, File { durable: content.clone(), content, ..File::default() });
        }
        // A folder whose removal was not durable reappears, empty.
        let back = |(parent, folder): (&String, &Folder)| {
            let join = |name: &String| if parent.is_empty() { name.clone() } else { format!("{parent}/{name}") };
            let folders = folder.names.iter().filter(|(_, node)| **node == Inode::Folder);
            folders.map(|(name, _)| join(name)).collect::<Vec<_>>()
        };
        let back: Vec<String> = new.folders.iter().flat_map(back).collect();
        for name in back {
            new.folders.entry(name).or_default();
        }
        // A folder survives if its name did in its parent.
        let lives = |name: &String| {
            name.is_empty() || {
                let (parent, last) = name.rsplit_once('/').unwrap_or(("", name));
                new.folders.get(parent).is_some_and(|f| f.names.get(last) == Some(&Inode::Folder))
            }
        };
        let dead: Vec<String> = new.folders.keys().filter(|name| !lives(name)).cloned().collect();
        for name in dead {
            new.folders.remove(&name);
        }
        SimDisk { image: Arc::new(Mutex::new(new)) }
    }

    /// Lets a new process continue after the old one died, with the machine still up: nothing is lost, and nothing has
    /// become durable.
    pub fn revive(&self) {
        let mut image = self.image.lock();
        image.dead = false;
        image.locked.clear();
        image.planned = None;
    }

    /// Every file's name and content, for tests that damage them.
    pub fn files(&self) -> Vec<(String, Vec<u8>)> {
        let image = self.image.lock();
        let mut all = Vec::new();
        for (folder, entries) in &image.folders {
            for (name, node) in &entries.names {
                if let Inode::File(id) = node {
                    let name = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
                    all.push((name, image.files[id].content.clone()));
                }
            }
        }
        all
    }

    /// A deep copy that shares nothing, every write durable and every lock free.
    #[must_use]
    pub fn fork(&self) -> SimDisk {
        let mut image = self.image.lock().clone();
        for file in image.files.values_mut() {
            file.open = Arc::default();
            file.durable = file.content.clone();
            file.pending.clear();
        }
        for folder in image.folders.values_mut() {
            folder.durable = folder.names.clone();
            folder.pending.clear();
        }
        image.locked.clear();
        image.dead = false;
        image.planned = None;
        SimDisk { image: Arc::new(Mutex::new(image)) }
    }

    /// Replaces a file's content, as bit rot would.
    pub fn damage(&self, name: &str, content: Vec<u8>) {
        let mut image = self.image.lock();
        let id = image.find(name).expect("the file to damage exists");
        let file = image.files.get_mut(&id).expect("every name has its file");
        file.durable = content.clone();
        file.content = content;
        file.pending.clear();
    }
}

struct SimLock(SimDisk, String);

impl Guard for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.0.image.lock().locked.remove(&self.1);
    }
}

impl Disk for SimDisk {
    fn create(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        let file = Image::change(&self.image, name, ChangeKind::Create, |image, _| {
            if image.find(name).is_ok() {
                return Err(Error::already_exists(format!("could not create {name}: it exists")));
            }
            let id = image.next_file;
            image.next_file += 1;
            image.files.insert(id, File::default());
            image.rewrite(folder_of(name), vec![(last(name), Some(Inode::File(id)))])?;
            Ok(SimFile::new(&self.image, image, id, name))
        })?;
        Ok(Box::new(file))
    }

    fn open(&self, name: &str, _access: Access) -> Result<Box<dyn DiskFile>> {
        let image = self.image.lock();
        if image.dead {
            return Err(crashed());
        }
        let id = image.find(name)?;
        Ok(Box::new(SimFile::new(&self.image, &image, id, name)))
    }

    fn rename(&self, from: &str, to: &str, mode: Rename) -> Result<()> {
        assert_eq!(folder_of(from), folder_of(to), "objects are renamed within their folder only");
        Image::change(&self.image, to, ChangeKind::Other, |image, torn| {
            let id = image.find(from)?;
            if mode == Rename::Keep && image.find(to).is_ok() {
                return Err(Error::already_exists(format!("could not rename to {to}: it exists")));
            }
            if torn {
                return Ok(());
            }
            image.rewrite(folder_of(to), vec![(last(from), None), (last(to), Some(Inode::File(id)))])
        })
    }

    fn identity(&self, name: &str) -> Result<Option<FileIdentity>> {
        Ok(self.image.lock().find(name).ok().map(|id| FileIdentity(0, id)))
    }

    fn remove(&self, name: &str) -> Result<()> {
        Image::change(&self.image, name, ChangeKind::Other, |image, _| {
            image.find(name)?;
            image.rewrite(folder_of(name), vec![(last(name), None)])
        })
    }

    fn make_dir(&self, name: &str) -> Result<()> {
        if name.is_empty() || self.image.lock().folders.contains_key(name) {
            return Ok(());
        }
        Image::change(&self.image, name, ChangeKind::Create, |image, _| {
            image.rewrite(folder_of(name), vec![(last(name), Some(Inode::Folder))])?;
            image.folders.entry(name.to_owned()).or_default();
            Ok(())
        })
    }

    fn remove_dir(&self, name: &str) -> Result<()> {
        Image::change(&self.image, name, ChangeKind::Other, |image, _| {
            let folder = image.folders.get(name).ok_or_else(|| missing(name))?;
            if !folder.names.is_empty() {
                return Err(Error::unavailable(format!("could not remove {name}: it is not empty")));
            }
            image.rewrite(folder_of(name), vec![(last(name), None)])?;
            image.folders.remove(name);
            Ok(())
        })
    }

    fn list(&self, folder: &str) -> Result<Vec<DiskEntry>> {
        let image = self.image.lock();
        if image.dead {
            return Err(crashed());
        }
        let entries = image.folders.get(folder).ok_or_else(|| missing(folder))?;
        let entry = |(name, node): (&String, &Inode)| match node {
            Inode::File(id) => {
                DiskEntry { name: name.clone(), bytes: image.files[id].content.len() as u64, folder: false }
            }
            Inode::Folder => DiskEntry { name: name.clone(), bytes: 0, folder: true },
        };
        Ok(entries.names.iter().map(entry).collect())
    }

    fn sync_dir(&self, folder: &str) -> Result<()> {
        Image::change(&self.image, folder, ChangeKind::Other, |image, torn| {
            image.counters.folder_syncs += 1;
            if torn {
                return Ok(());
            }
            let entries = image.folders.get_mut(folder).ok_or_else(|| missing(folder))?;
            entries.durable = entries.names.clone();
            entries.pending.clear();
            Ok(())
        })
    }

    fn lock(&self, name: &str, holder: &str) -> Result<Box<dyn Guard>> {
        let mut image = self.image.lock();
        if image.dead {
            return Err(crashed());
        }
        if !image.locked.insert(name.to_owned()) {
            return Err(Error::locked(format!("{name} is held by another handle, not by {holder}")));
        }
        drop(image);
        Ok(Box::new(SimLock(self.clone(), name.to_owned())))
    }

    fn wait_lock(&self, name: &str) -> Result<Box<dyn Guard>> {
        loop {
            match self.lock(name, name) {
                Err(e) if e.kind() == ErrorKind::Locked => {
                    waiting::check()?;
                    std::thread::yield_now();
                }
                done => return done,
            }
        }
    }
}
