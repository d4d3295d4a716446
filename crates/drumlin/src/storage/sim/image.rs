//! What a simulated disk holds: in memory, on the disk, and in between.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::base::{Error, Result};
use crate::storage::disk::folder_of;

/// Where in the struck operation a crash falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashPoint {
    /// The operation has no effect.
    Before,
    /// A write is torn; any other operation may or may not have happened.
    During,
    /// The operation is complete, but its caller never learns of it.
    After,
}

/// What goes wrong at the struck operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// The process dies: this and every later call fails until [`SimDisk::crash`](super::SimDisk::crash).
    Crash(CrashPoint),
    /// The operation fails once. A failed write may still have written everything; a failed sync drops the file's dirty
    /// data, as on Linux.
    Fail,
    /// The disk is full from here on: every change that needs space fails, until [`SimDisk::heal`](super::SimDisk::heal).
    Full,
}

/// Operations so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls that change something; faults strike one of these.
    pub changes: u64,
    /// Syncs of files.
    pub syncs: u64,
    /// Syncs of folders.
    pub folder_syncs: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Read calls.
    pub reads: u64,
    /// Bytes read.
    pub bytes_read: u64,
}

#[derive(Clone, Debug)]
pub enum FileChange {
    Write(u64, Vec<u8>),
    Resize(u64),
}

#[derive(Clone, Debug, Default)]
pub struct File {
    pub content: Vec<u8>,
    pub durable: Vec<u8>,
    pub pending: Vec<FileChange>,
    /// Shared with the handles that have it open.
    pub open: Arc<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inode {
    File(u64),
    Folder,
}

/// Name changes that reach the disk together or not at all.
pub type NameChanges = Vec<(String, Option<Inode>)>;

#[derive(Clone, Debug, Default)]
pub struct Folder {
    pub names: BTreeMap<String, Inode>,
    pub durable: BTreeMap<String, Inode>,
    pub pending: Vec<NameChanges>,
}

#[derive(Clone, Debug, Default)]
pub struct Image {
    pub files: BTreeMap<u64, File>,
    pub folders: BTreeMap<String, Folder>,
    pub next_file: u64,
    /// Files without a name that a handle may have open, where durability is not tracked.
    pub unnamed: Vec<u64>,
    pub counters: Counters,
    pub planned: Option<(u64, DiskFault)>,
    pub dead: bool,
    pub full: bool,
    /// The files whose locks are held.
    pub locked: BTreeSet<String>,
    pub tracks_durability: bool,
}

/// What a change does to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// Writes bytes.
    Write,
    /// Makes a name.
    Create,
    /// Takes no space.
    Other,
}

pub fn crashed() -> Error {
    Error::unavailable("the simulated process has crashed")
}

pub fn full(name: &str) -> Error {
    Error::unavailable(format!("could not write {name}: no space left on device"))
}

pub fn missing(name: &str) -> Error {
    Error::not_found(format!("could not open {name}: no such file or folder"))
}

pub fn set(names: &mut BTreeMap<String, Inode>, name: &str, node: Option<Inode>) {
    match node {
        Some(node) => drop(names.insert(name.to_owned(), node)),
        None => drop(names.remove(name)),
    }
}

pub fn write(content: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let (start, end) = (offset as usize, offset as usize + bytes.len());
    if content.len() < end {
        content.resize(end, 0);
    }
    content[start..end].copy_from_slice(bytes);
}

/// Writes an arbitrary subset of the 512-byte sectors that `bytes` covers.
pub fn tear(content: &mut Vec<u8>, offset: u64, bytes: &[u8], rng: &mut fastrand::Rng) {
    let mut at = 0;
    let whole = rng.u8(..3);
    while at < bytes.len() {
        let sector = 512 - (offset as usize + at) % 512;
        let end = (at + sector).min(bytes.len());
        if whole == 1 || (whole == 2 && rng.bool()) {
            write(content, offset + at as u64, &bytes[at..end]);
        }
        at = end;
    }
}

impl Image {
    /// Runs one change under the fault plan. `apply(image, torn)` performs it, partially if `torn`.
    pub fn change<T>(
        shared: &Mutex<Image>,
        name: &str,
        kind: ChangeKind,
        apply: impl FnOnce(&mut Image, bool) -> Result<T>,
    ) -> Result<T> {
        let mut image = shared.lock();
        if image.dead {
            return Err(crashed());
        }
        let number = image.counters.changes;
        image.counters.changes += 1;
        let struck = image.planned.filter(|(at, _)| *at == number).map(|(_, fault)| fault);
        match struck {
            Some(DiskFault::Crash(moment)) => {
                image.dead = true;
                match moment {
                    CrashPoint::Before => {}
                    CrashPoint::During => drop(apply(&mut image, true)),
                    CrashPoint::After => drop(apply(&mut image, false)),
                }
                return Err(crashed());
            }
            Some(DiskFault::Fail) => {
                if kind == ChangeKind::Write {
                    drop(apply(&mut image, false));
                }
                return Err(Error::unavailable(format!("could not change {name}: simulated I/O error")));
            }
            Some(DiskFault::Full) => image.full = true,
            None => {}
        }
        if image.full && kind != ChangeKind::Other {
            return Err(full(name));
        }
        apply(&mut image, false)
    }

    pub fn find(&self, name: &str) -> Result<u64> {
        let last = name.rsplit_once('/').map_or(name, |(_, last)| last);
        match self.folders.get(folder_of(name)).and_then(|folder| folder.names.get(last)) {
            Some(Inode::File(id)) => Ok(*id),
            Some(Inode::Folder) => Err(Error::unavailable(format!("could not open {name}: it is a folder"))),
            None => Err(missing(name)),
        }
    }

    pub fn rewrite(&mut self, folder: &str, rewrite: NameChanges) -> Result<()> {
        let tracks = self.tracks_durability;
        let entry = self.folders.get_mut(folder).ok_or_else(|| missing(folder))?;
        let mut gone = Vec::new();
        for (name, node) in &rewrite {
            gone.extend(entry.names.get(name).copied());
            set(&mut entry.names, name, *node);
        }
        if tracks {
            entry.pending.push(rewrite);
            return Ok(());
        }
        // Crashes are not simulated, so a file without a name is gone once no handle has it open.
        let named = |id: u64| entry.names.values().any(|node| *node == Inode::File(id));
        self.unnamed.extend(gone.iter().filter_map(|node| match node {
            Inode::File(id) if !named(*id) => Some(*id),
            _ => None,
        }));
        let files = &mut self.files;
        self.unnamed.retain(|id| {
            let open = files.get(id).is_some_and(|file| Arc::strong_count(&file.open) > 1);
            if !open {
                files.remove(id);
            }
            open
        });
        Ok(())
    }
}

pub fn last(name: &str) -> String {
    name.rsplit_once('/').map_or(name, |(_, last)| last).to_owned()
}
