//! A folder of the operating system as a [`Disk`].
//!
//! Every step from the root down is an `openat` with `O_NOFOLLOW`, so a planted symbolic link is an error, never a
//! way out of the folder.
//!
//! A signal may end any system call early, in the file systems of networks too: every call is made through [`again`], or by
//! functions of the standard library that do the same.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use parking_lot::RwLock;
use rustix::buffer::spare_capacity;
use rustix::fs::{self, AtFlags, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::{Errno, retry_on_intr as again};

use super::disk::{
    Access, Disk, DiskEntry, DiskFile, DiskFolder, FileIdentity, Guard, Rename, folder_of, last_of as last,
};
use super::lock::LockFile;
use crate::base::{Entropy, Error, ErrorKind, OsEntropy, Result, Timestamp, waiting};

/// A folder on local disk.
#[derive(Debug)]
pub struct OsDisk {
    /// `None` once it has been released.
    root: RwLock<Option<OwnedFd>>,
    path: PathBuf,
    nonce: u64,
}

impl OsDisk {
    /// The folder at `path`, which must exist.
    pub fn open(path: &Path) -> Result<Self> {
        let shown = path.display().to_string();
        let root = again(|| fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()));
        let root = root.map_err(|e| match e {
            Errno::NOENT => Error::not_found(format!("the folder {shown} does not exist")),
            Errno::NOTDIR => Error::invalid(format!("{shown} is a file or is inside one; expected a folder")),
            _ => failed("open", &shown, e),
        })?;
        Ok(Self { root: RwLock::new(Some(root)), path: path.to_owned(), nonce: OsEntropy.next()? })
    }

    /// The folder at `path`, created durably, with those above it, if it does not exist.
    pub fn create(path: &Path) -> Result<Self> {
        make_folder(path)?;
        Self::open(path)
    }

    /// What identifies this folder: its device and inode.
    pub fn id(&self) -> Result<(u64, u64)> {
        let folder = self.walk("", "")?;
        let stat = again(|| fs::fstat(&folder)).map_err(|e| self.failed("read the status of", "", e))?;
        Ok((stat.st_dev, stat.st_ino))
    }

    /// Walks to the folder of `name`. If it is missing, so is `name`, which the error then names.
    fn folder_above(&self, name: &str) -> Result<OwnedFd> {
        self.walk(folder_of(name), name)
    }

    fn walk(&self, folder: &str, wanted: &str) -> Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let root = self.root.read();
        let closed = || Error::closed(format!("the store {} is closed; open it again", self.path.display()));
        let mut at = root.as_ref().ok_or_else(closed)?.try_clone().map_err(|e| self.io("open", folder, &e))?;
        drop(root);
        for part in folder.split('/').filter(|part| !part.is_empty()) {
            let named = |e: Errno| if e == Errno::NOENT { wanted } else { folder };
            at = again(|| fs::openat(&at, part, flags, Mode::empty())).map_err(|e| self.failed("open", named(e), e))?;
        }
        Ok(at)
    }

    /// Opens the file `name` with `flags`, without following a link in the last step either.
    fn file(&self, name: &str, flags: OFlags) -> Result<OsFile> {
        let folder = self.folder_above(name)?;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = again(|| fs::openat(&folder, last(name), flags, Mode::from_raw_mode(0o666)))
            .map_err(|e| self.failed("open", name, e))?;
        Ok(OsFile { file: File::from(fd), name: self.path.join(name).display().to_string() })
    }

    /// Opens the file of a lock; does not take it.
    fn lock_file(&self, name: &str) -> Result<LockFile> {
        let file = self.file(name, OFlags::RDWR | OFlags::CREATE)?.file;
        LockFile::new(file).map_err(|e| self.io("read the size of", name, &e))
    }

    fn failed(&self, verb: &str, name: &str, errno: Errno) -> Error {
        failed(verb, &self.path.join(name).display().to_string(), errno)
    }

    fn io(&self, verb: &str, name: &str, error: &std::io::Error) -> Error {
        io_failed(verb, &self.path.join(name).display().to_string(), error)
    }
}

/// The names in a folder. A list that a signal interrupted begins again: what is left of it would look complete.
fn names_in(folder: &OwnedFd) -> rustix::io::Result<Vec<CString>> {
    again(|| fs::Dir::read_from(folder)?.map(|entry| Ok(entry?.file_name().to_owned())).collect())
}

/// Makes a folder, and those above it, durably.
fn make_folder(path: &Path) -> Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let make = || again(|| fs::mkdir(path, Mode::from_raw_mode(0o777)));
    let made = match make() {
        Err(Errno::NOENT) => make_folder(parent).map(|()| make()),
        made => Ok(made),
    };
    match made? {
        // An existing folder may have been made by a process that died before syncing its name.
        Ok(()) | Err(Errno::EXIST) => {}
        Err(Errno::NOTDIR) => {
            return Err(Error::invalid(format!("{} is inside a file; expected a folder", path.display())));
        }
        Err(e) => return Err(failed("create", &path.display().to_string(), e)),
    }
    again(|| fs::open(parent, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()))
        .and_then(|folder| again(|| fs::fsync(&folder)))
        .map_err(|e| failed("sync the folder above", &path.display().to_string(), e))
}

/// Renames a file. One that a signal interrupted may have been done: then the old name is gone.
fn renamed(from: (BorrowedFd<'_>, &str), to: (BorrowedFd<'_>, &str), mode: Rename) -> rustix::io::Result<()> {
    let flags = match mode {
        Rename::Keep => RenameFlags::NOREPLACE,
        Rename::Replace => RenameFlags::empty(),
    };
    let mut interrupted = false;
    loop {
        let renamed = match fs::renameat_with(from.0, from.1, to.0, to.1, flags) {
            // Not every file system can rename without replacing the target: link a second name then, which never
            // replaces one.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if mode == Rename::Keep => {
                again(|| fs::linkat(from.0, from.1, to.0, to.1, AtFlags::empty()))
                    .and_then(|()| again(|| fs::unlinkat(from.0, from.1, AtFlags::empty())))
            }
            other => other,
        };
        match renamed {
            Err(Errno::INTR) => interrupted = true,
            Err(Errno::NOENT) if interrupted => return Ok(()),
            done => return done,
        }
    }
}

fn failed(verb: &str, name: &str, errno: Errno) -> Error {
    let kind = match errno {
        Errno::NOENT => ErrorKind::NotFound,
        Errno::EXIST => ErrorKind::AlreadyExists,
        Errno::LOOP => {
            return Error::corrupt(format!("{name} is a symbolic link; expected a regular file or folder"));
        }
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, format!("could not {verb} {name}: {}", std::io::Error::from(errno)))
}

fn io_failed(verb: &str, name: &str, error: &std::io::Error) -> Error {
    match error.raw_os_error() {
        Some(code) => failed(verb, name, Errno::from_raw_os_error(code)),
        None => Error::unavailable(format!("could not {verb} {name}: {error}")),
    }
}

struct OsFile {
    file: File,
    name: String,
}

impl DiskFile for OsFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.file.read_at(&mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(io_failed("read", &self.name, &e)),
            }
        }
        Ok(done)
    }

    // Into memory that was not cleared before: to clear it takes as long as to read what the system has in memory.
    fn read(&self, offset: u64, bytes: usize) -> Result<Vec<u8>> {
        let mut buffer = Vec::with_capacity(bytes);
        while buffer.len() < bytes {
            let at = offset + buffer.len() as u64;
            match rustix::io::pread(&self.file, spare_capacity(&mut buffer), at) {
                Ok(0) => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(failed("read", &self.name, e)),
            }
        }
        buffer.truncate(bytes);
        Ok(buffer)
    }

    fn will_need(&self, offset: u64, bytes: u64) {
        // Not every file system accepts advice.
        let _ = rustix::fs::fadvise(&self.file, offset, std::num::NonZeroU64::new(bytes), rustix::fs::Advice::WillNeed);
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.write_all_at(bytes, offset).map_err(|e| io_failed("write", &self.name, &e))
    }

    fn len(&self) -> Result<u64> {
        Ok(self.file.metadata().map_err(|e| io_failed("read the size of", &self.name, &e))?.len())
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        self.file.set_len(bytes).map_err(|e| io_failed("resize", &self.name, &e))
    }

    fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|e| io_failed("sync", &self.name, &e))
    }

    fn links(&self) -> Result<u64> {
        let stat = again(|| fs::fstat(&self.file)).map_err(|e| failed("read the status of", &self.name, e))?;
        #[allow(clippy::useless_conversion, reason = "narrower on some machines")]
        Ok(u64::from(stat.st_nlink))
    }

    fn identity(&self) -> Result<FileIdentity> {
        let stat = again(|| fs::fstat(&self.file)).map_err(|e| failed("read the status of", &self.name, e))?;
        Ok(FileIdentity(stat.st_dev, stat.st_ino))
    }
}

/// The lock of a store's file, and of its folder.
struct FolderLock {
    _file: LockFile,
    _folder: LockFile,
}

impl Guard for FolderLock {}

/// A folder that is open.
struct OsFolder<'a> {
    disk: &'a OsDisk,
    name: String,
    fd: OwnedFd,
}

impl DiskFolder for OsFolder<'_> {
    fn rename(&self, from: &str, to: &str, mode: Rename) -> Result<()> {
        let within = |name: &str| format!("{}{}{name}", self.name, if self.name.is_empty() { "" } else { "/" });
        renamed((self.fd.as_fd(), from), (self.fd.as_fd(), to), mode)
            .map_err(|e| self.disk.failed("rename to", &within(to), e))
    }

    fn sync(&self) -> Result<()> {
        again(|| fs::fsync(&self.fd)).map_err(|e| self.disk.failed("sync", &self.name, e))
    }
}

impl Disk for OsDisk {
    fn create(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        Ok(Box::new(self.file(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?))
    }

    fn open(&self, name: &str, access: Access) -> Result<Box<dyn DiskFile>> {
        let flags = match access {
            Access::Read => OFlags::RDONLY,
            Access::Write => OFlags::RDWR,
        };
        Ok(Box::new(self.file(name, flags)?))
    }

    fn rename(&self, from: &str, to: &str, mode: Rename) -> Result<()> {
        let (old, new) = (self.folder_above(from)?, self.folder_above(to)?);
        renamed((old.as_fd(), last(from)), (new.as_fd(), last(to)), mode).map_err(|e| self.failed("rename to", to, e))
    }

    fn identity(&self, name: &str) -> Result<Option<FileIdentity>> {
        let root = self.root.read();
        let root = root
            .as_ref()
            .ok_or_else(|| Error::closed(format!("the store {} is closed; open it again", self.path.display())))?;
        match again(|| fs::statat(root, name, AtFlags::SYMLINK_NOFOLLOW)) {
            Ok(stat) => Ok(Some(FileIdentity(stat.st_dev, stat.st_ino))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(e) => Err(self.failed("read the status of", name, e)),
        }
    }

    fn remove(&self, name: &str) -> Result<()> {
        let folder = self.folder_above(name)?;
        again(|| fs::unlinkat(&folder, last(name), AtFlags::empty())).map_err(|e| self.failed("remove", name, e))
    }

    fn make_dir(&self, name: &str) -> Result<()> {
        if name.is_empty() {
            return Ok(());
        }
        let folder = self.folder_above(name)?;
        match again(|| fs::mkdirat(&folder, last(name), Mode::from_raw_mode(0o777))) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(e) => Err(self.failed("create", name, e)),
        }
    }

    fn remove_dir(&self, name: &str) -> Result<()> {
        let folder = self.folder_above(name)?;
        again(|| fs::unlinkat(&folder, last(name), AtFlags::REMOVEDIR)).map_err(|e| self.failed("remove", name, e))
    }

    fn written_at(&self, name: &str) -> Result<Option<Timestamp>> {
        let folder = self.folder_above(name)?;
        let stat = again(|| fs::statat(&folder, last(name), AtFlags::SYMLINK_NOFOLLOW));
        let stat = stat.map_err(|e| self.failed("read the size of", name, e))?;
        Ok(Some(Timestamp(stat.st_mtime.saturating_mul(1_000_000))))
    }

    fn list(&self, folder: &str) -> Result<Vec<DiskEntry>> {
        let fd = self.walk(folder, folder)?;
        let mut entries = Vec::new();
        for entry in names_in(&fd).map_err(|e| self.failed("list", folder, e))? {
            // Names that are not UTF-8 are not ours.
            let Ok(name) = entry.to_str() else { continue };
            if name == "." || name == ".." {
                continue;
            }
            match again(|| fs::statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW)) {
                Ok(stat) => {
                    let folder = fs::FileType::from_raw_mode(stat.st_mode) == fs::FileType::Directory;
                    let bytes = if folder { 0 } else { u64::try_from(stat.st_size).unwrap_or(0) };
                    entries.push(DiskEntry { name: name.to_owned(), bytes, folder });
                }
                Err(Errno::NOENT) => {}
                Err(e) => return Err(self.failed("read the size of", name, e)),
            }
        }
        Ok(entries)
    }

    fn sync_dir(&self, folder: &str) -> Result<()> {
        Disk::folder(self, folder)?.sync()
    }

    fn folder<'a>(&'a self, name: &str) -> Result<Box<dyn DiskFolder + 'a>> {
        Ok(Box::new(OsFolder { disk: self, name: name.to_owned(), fd: self.walk(name, name)? }))
    }

    fn lock(&self, name: &str, holder: &str) -> Result<Box<dyn Guard>> {
        let mut lock = self.lock_file(name)?;
        match again(|| fs::flock(&lock.file, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(Error::locked(format!(
                    "{} is open for writing by {}",
                    self.path.display(),
                    lock.holder(holder).map_err(|e| self.io("read", name, &e))?
                )));
            }
            Err(e) => return Err(self.failed("lock", name, e)),
        }
        // The lock file may be removed while its lock is held; the folder may not. Not every file system locks folders.
        // Opened for itself: a lock belongs to what was opened.
        let folder = self.walk(".", name).map(File::from)?;
        let folder = LockFile::new(folder).map_err(|e| self.io("read the size of", name, &e))?;
        if again(|| fs::flock(&folder.file, FlockOperation::NonBlockingLockExclusive)) == Err(Errno::WOULDBLOCK) {
            let shown = self.path.display();
            return Err(Error::locked(format!(
                "{shown} is open for writing by another process, whose lock file was removed; end that process"
            )));
        }
        lock.name_holder(holder);
        Ok(Box::new(FolderLock { _file: lock, _folder: folder }))
    }

    fn release(&self) {
        self.root.write().take();
    }

    fn nonce(&self) -> u64 {
        self.nonce
    }

    fn wait_lock(&self, name: &str) -> Result<Box<dyn Guard>> {
        let lock = self.lock_file(name)?;
        let failed = |e: Errno| self.failed("lock", name, e);
        if !waiting::can_stop() {
            again(|| fs::flock(&lock.file, FlockOperation::LockExclusive)).map_err(failed)?;
            return Ok(Box::new(lock));
        }
        waiting::poll(|| match again(|| fs::flock(&lock.file, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => Ok(Some(())),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(e) => Err(failed(e)),
        })?;
        Ok(Box::new(lock))
    }
}
