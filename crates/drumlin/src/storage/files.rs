//! Objects as files of a [`Disk`].
//!
//! An object is written under a temporary name, synced, renamed, and its folder synced: it exists as a whole or not at
//! all, and is durable when `put` returns.
//!
//! Another process may clean up a folder while an object is written there, and remove temporary files that it believes are
//! left by dead processes: then the object is written again. So deleting a temporary file of a live process costs that
//! process time, never an object.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use super::disk::{Access, Disk, DiskFile, DiskFolder, Rename, folder_of, last_of};
use super::{ObjectMeta, Storage, Tag, WriteMode, differs, is_whole, names, within};
use crate::base::planted::{Bug, planted};
use crate::base::{Error, ErrorKind, Result, Timestamp};

/// The number of the next temporary name of this process.
static TEMPORARIES: AtomicU64 = AtomicU64::new(0);

/// [`Storage`] on a [`Disk`].
#[derive(Debug)]
pub struct FileStorage {
    disk: Arc<dyn Disk>,
    /// Folders known to exist durably.
    folders: Mutex<BTreeSet<String>>,
    /// Temporary files being written.
    writing: Mutex<BTreeSet<String>>,
    /// A folder could not be synced: whether its names are durable is unknown, and a second sync may falsely succeed.
    poisoned: AtomicBool,
}

impl FileStorage {
    /// Objects under the root of `disk`.
    pub fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, folders: Mutex::default(), writing: Mutex::default(), poisoned: AtomicBool::new(false) }
    }

    /// A name of its own for each write, even among processes that write the same object.
    fn temporary(&self, name: &str) -> String {
        let number = TEMPORARIES.fetch_add(1, Ordering::Relaxed);
        names::temporary(name, std::process::id(), number, self.disk.nonce())
    }

    fn sync_folder(&self, folder: &dyn DiskFolder) -> Result<()> {
        folder.sync().inspect_err(|e| {
            // If the folder is gone, so are its names.
            self.poisoned.fetch_or(e.kind() != ErrorKind::NotFound, Ordering::SeqCst);
        })
    }

    fn ensure_folder(&self, folder: &str) -> Result<()> {
        if folder.is_empty() || self.folders.lock().contains(folder) {
            return Ok(());
        }
        self.ensure_folder(folder_of(folder))?;
        self.disk.make_dir(folder)?;
        if !planted(Bug::SkipFolderSync) {
            self.sync_folder(&*self.disk.folder(folder_of(folder))?)?;
        }
        self.folders.lock().insert(folder.to_owned());
        Ok(())
    }

    /// Writes an object; `NotFound` if its folder or its temporary file is deleted during the call.
    fn try_put(&self, name: &str, parts: &[Bytes], mode: WriteMode) -> Result<()> {
        if self.poisoned.load(Ordering::SeqCst) {
            return Err(Error::closed("an earlier sync of a folder failed; open the store again"));
        }
        let folder = folder_of(name);
        self.ensure_folder(folder)?;
        let opened = self.disk.folder(folder)?;
        let temporary = self.temporary(name);
        let mode = match mode {
            WriteMode::Once if planted(Bug::OverwriteOnce) => Rename::Replace,
            WriteMode::Create | WriteMode::Once => Rename::Keep,
            WriteMode::Replace => Rename::Replace,
        };
        self.writing.lock().insert(temporary.clone());
        let written =
            self.write(&temporary, parts).and_then(|()| opened.rename(last_of(&temporary), last_of(name), mode));
        if written.is_err() {
            // Best effort: what is left is deleted by a reclaim.
            let _ = self.disk.remove(&temporary);
        }
        self.writing.lock().remove(&temporary);
        written?;
        if planted(Bug::SkipObjectNameSync) {
            return Ok(());
        }
        self.sync_folder(&*opened)
    }

    fn write(&self, temporary: &str, parts: &[Bytes]) -> Result<()> {
        let file = match self.disk.create(temporary) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                // Left by a crash; the name is ours alone.
                self.disk.remove(temporary)?;
                self.disk.create(temporary)?
            }
            other => other?,
        };
        let mut offset = 0;
        for part in parts {
            file.write_at(offset, part)?;
            offset += part.len() as u64;
        }
        if !planted(Bug::SkipObjectSync) {
            file.sync()?;
        }
        Ok(())
    }
}

impl FileStorage {
    /// Whether there is a file somewhere below a folder.
    fn holds_files(&self, folder: &str) -> Result<bool> {
        for entry in self.disk.list(folder)? {
            if !entry.folder || self.holds_files(&format!("{folder}/{}", entry.name))? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Reads `range` of an open file; short files are `Corrupt`.
fn read_range(file: &dyn DiskFile, name: &str, range: &Range<u64>) -> Result<Bytes> {
    let wanted = range.end.saturating_sub(range.start);
    let bytes = file.len()?;
    if range.start > range.end || range.end > bytes {
        return Err(Error::corrupt(format!(
            "{name}: it has {bytes} bytes, expected bytes {} to {}",
            range.start, range.end
        )));
    }
    let wanted = usize::try_from(wanted)
        .map_err(|_| Error::invalid(format!("{name}: the requested range is too large for this machine")))?;
    let read = file.read(range.start, wanted)?;
    if read.len() < wanted {
        return Err(Error::corrupt(format!(
            "{name}: it ends at byte {}, before the end of the requested bytes",
            range.start + read.len() as u64
        )));
    }
    Ok(Bytes::from(read))
}

fn content_tag(bytes: &[u8]) -> Tag {
    let half = bytes.len() / 2;
    Tag(format!("{}-{:08x}-{:08x}", bytes.len(), crc32c::crc32c(bytes), crc32c::crc32c(&bytes[half..])))
}

impl Storage for FileStorage {
    fn get(&self, name: &str) -> Result<Bytes> {
        let file = self.disk.open(name, Access::Read)?;
        read_range(&*file, name, &(0..file.len()?))
    }

    fn get_ranges(&self, name: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let file = self.disk.open(name, Access::Read)?;
        ranges.iter().map(|range| read_range(&*file, name, range)).collect()
    }

    fn written_at(&self, name: &str) -> Result<Option<Timestamp>> {
        self.disk.written_at(name)
    }

    fn prefetch(&self, name: &str, ranges: &[Range<u64>]) {
        if let Ok(file) = self.disk.open(name, Access::Read) {
            ranges.iter().for_each(|range| file.will_need(range.start, range.end.saturating_sub(range.start)));
        }
    }

    fn put(&self, name: &str, parts: &[Bytes], mode: WriteMode) -> Result<()> {
        /// How often an object is written if others keep deleting it.
        const TRIES: usize = 100;
        for _ in 0..TRIES {
            match self.try_put(name, parts, mode) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists && mode == WriteMode::Once => {
                    return match self.get(name) {
                        // An earlier try may have died before its name was durable.
                        Ok(there) if is_whole(&there, parts) => self.sync_folder(&*self.disk.folder(folder_of(name))?),
                        Err(e) if e.kind() == ErrorKind::NotFound => continue,
                        Err(e) => Err(e),
                        Ok(_) => Err(differs(name)),
                    };
                }
                Err(e) if e.kind() == ErrorKind::NotFound && !planted(Bug::TrustFolders) => {
                    let mut folders = self.folders.lock();
                    folders.remove(folder_of(name));
                    folders.remove(folder_of(folder_of(name)));
                }
                done => return done,
            }
        }
        Err(Error::unavailable(format!(
            "{name}: could not be written in {TRIES} attempts; the file or its folder was removed each time"
        )))
    }

    fn get_tagged(&self, name: &str, known: Option<&Tag>) -> Result<Option<(Bytes, Tag)>> {
        if self.poisoned.load(Ordering::SeqCst) {
            // What is read may be gone after a crash.
            return Err(Error::closed("an earlier sync of a folder failed; open the store again"));
        }
        let bytes = self.get(name)?;
        let tag = content_tag(&bytes);
        Ok((known != Some(&tag)).then_some((bytes, tag)))
    }

    /// Holds a lock that any other process must take to replace the object.
    fn put_if_match(&self, name: &str, parts: &[Bytes], known: Option<&Tag>) -> Result<Tag> {
        let _guard = self.disk.wait_lock(names::ROOT_LOCK)?;
        let there = match self.get(name) {
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            other => Some(content_tag(&other?)),
        };
        if there.as_ref() != known {
            return Err(Error::conflict(format!("{name} was replaced after it was read")));
        }
        if let Err(e) = self.put(name, parts, WriteMode::Replace) {
            // Nobody else can replace it during the call, so its content shows whether the put was done.
            let same = || match self.get(name) {
                Err(e) if e.kind() == ErrorKind::NotFound => known.is_none(),
                there => there.is_ok_and(|there| known == Some(&content_tag(&there))),
            };
            return match !self.poisoned.load(Ordering::SeqCst) && same() {
                true => Err(Error::unavailable(e.message())),
                false => Err(Error::in_doubt(e.message())),
            };
        }
        Ok(content_tag(&parts.concat()))
    }

    /// Under the lock of the root, in place and not synced.
    fn note(&self, name: &str, bytes: &Bytes, replaces: &dyn Fn(&[u8]) -> bool) -> Result<()> {
        let _guard = self.disk.wait_lock(names::ROOT_LOCK)?;
        match self.get(name) {
            Ok(there) if !replaces(&there) => Ok(()),
            Ok(there) if there.len() == bytes.len() => {
                let file = self.disk.open(name, Access::Write)?;
                // A copy that shares its files must not hear of this.
                match file.links()? {
                    1 => file.write_at(0, bytes),
                    _ => self.put(name, std::slice::from_ref(bytes), WriteMode::Replace),
                }
            }
            Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
            _ => self.put(name, std::slice::from_ref(bytes), WriteMode::Replace),
        }
    }

    fn top(&self) -> Result<Vec<String>> {
        let entries = match self.disk.list("") {
            Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
            other => other?,
        };
        let mut names = Vec::with_capacity(entries.len());
        for entry in entries {
            if !entry.folder || self.holds_files(&entry.name)? {
                names.push(entry.name);
            }
        }
        Ok(names)
    }

    fn delete_many(&self, names: &[String]) -> Vec<Result<()>> {
        names
            .iter()
            .map(|name| match self.disk.remove(name) {
                Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
                other => other,
            })
            .collect()
    }

    fn unfinished(&self, folder: &str) -> Result<Vec<ObjectMeta>> {
        // The root is put while holding this lock, which only a shared store has.
        let locked = folder.is_empty() && self.disk.list("")?.iter().any(|entry| entry.name == names::ROOT_LOCK);
        let _guard = if locked { Some(self.disk.wait_lock(names::ROOT_LOCK)?) } else { None };
        let writing = self.writing.lock().clone();
        let mut listed = self.list(folder)?;
        listed.retain(|object| {
            let name = object.name.rsplit('/').next().unwrap_or_default();
            names::parse_temporary(name).is_some() && !writing.contains(&object.name)
        });
        Ok(listed)
    }

    fn list(&self, folder: &str) -> Result<Vec<ObjectMeta>> {
        let entries = match self.disk.list(folder) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let object = |e: super::DiskEntry| ObjectMeta { name: within(folder, &e.name), bytes: e.bytes };
        Ok(entries.into_iter().filter(|e| !e.folder).map(object).collect())
    }

    fn list_folders(&self, folder: &str) -> Result<Vec<String>> {
        let entries = match self.disk.list(folder) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        Ok(entries.into_iter().filter(|e| e.folder).map(|e| e.name).collect())
    }

    fn release(&self) {
        self.disk.release();
    }

    fn remove_empty_folder(&self, folder: &str) -> Result<()> {
        self.folders.lock().remove(folder);
        if self.disk.list(folder)?.is_empty() { self.disk.remove_dir(folder) } else { Ok(()) }
    }
}
