//! The file-system interface: the operations on a directory tree on one disk, and nothing about what it means.
//!
//! Names are relative to the disk's root, `/`-separated, made by this crate (never by a user), and no symbolic link
//! is followed on the way. A write is durable after `sync` of the file; a name after `sync_dir` of its folder.

use crate::base::{Error, Result, Timestamp};

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading only.
    Read,
    /// Reading and writing.
    Write,
}

/// What a rename does if the target exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rename {
    /// Fails with `AlreadyExists`.
    Keep,
    /// Replaces it in one step.
    Replace,
}

/// One name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskEntry {
    /// The name within its folder.
    pub name: String,
    /// Size in bytes; 0 for a folder.
    pub bytes: u64,
    /// Whether it is a folder.
    pub folder: bool,
}

/// Holds a lock while it lives.
pub trait Guard: Send + Sync {}

/// An open file.
#[allow(clippy::len_without_is_empty, reason = "nobody asks a file whether it is empty")]
pub trait DiskFile: Send + Sync {
    /// Reads up to `buffer.len()` bytes at `offset`; fewer only at the end of the file.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize>;
    /// Reads `bytes` bytes at `offset`; fewer only at the end of the file.
    fn read(&self, offset: u64, bytes: usize) -> Result<Vec<u8>> {
        let mut buffer = vec![0; bytes];
        let read = self.read_at(offset, &mut buffer)?;
        buffer.truncate(read);
        Ok(buffer)
    }
    /// Announces that a range will be read soon. A hint: nothing waits for it, nothing fails.
    fn will_need(&self, offset: u64, bytes: u64) {
        let _ = (offset, bytes);
    }
    /// Writes all of `bytes` at `offset`, growing the file as needed.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()>;
    /// The file's size in bytes.
    fn len(&self) -> Result<u64>;
    /// Cuts or extends the file.
    fn set_len(&self, bytes: u64) -> Result<()>;
    /// Makes content and size durable. After an error nothing may be assumed; do not retry.
    fn sync(&self) -> Result<()>;
    /// How many names the file has: 0 once it was removed.
    fn links(&self) -> Result<u64>;
    /// What tells it from every other file of its disk.
    fn identity(&self) -> Result<FileIdentity>;
}

/// A file, by the numbers of its device and of its inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity(pub u64, pub u64);

/// Takes the place of a file that was closed.
pub struct ClosedFile;

impl ClosedFile {
    fn closed<T>() -> Result<T> {
        Err(Error::closed("the file is closed"))
    }
}

impl DiskFile for ClosedFile {
    fn read_at(&self, _: u64, _: &mut [u8]) -> Result<usize> {
        Self::closed()
    }

    fn write_at(&self, _: u64, _: &[u8]) -> Result<()> {
        Self::closed()
    }

    fn len(&self) -> Result<u64> {
        Self::closed()
    }

    fn set_len(&self, _: u64) -> Result<()> {
        Self::closed()
    }

    fn sync(&self) -> Result<()> {
        Self::closed()
    }

    fn links(&self) -> Result<u64> {
        Self::closed()
    }

    fn identity(&self) -> Result<FileIdentity> {
        Self::closed()
    }
}

/// An open folder: its names are changed, and made durable, without opening anything, which may fail once a process has too
/// many files open.
pub trait DiskFolder {
    /// Renames a file within it.
    fn rename(&self, from: &str, to: &str, mode: Rename) -> Result<()>;
    /// Makes its names durable. After an error nothing may be assumed; do not retry.
    fn sync(&self) -> Result<()>;
}

/// A folder that is found again each time.
struct ByName<'a, D: ?Sized> {
    disk: &'a D,
    name: String,
}

impl<D: Disk + ?Sized> DiskFolder for ByName<'_, D> {
    fn rename(&self, from: &str, to: &str, mode: Rename) -> Result<()> {
        let full = |name: &str| if self.name.is_empty() { name.to_owned() } else { format!("{}/{name}", self.name) };
        self.disk.rename(&full(from), &full(to), mode)
    }

    fn sync(&self) -> Result<()> {
        self.disk.sync_dir(&self.name)
    }
}

/// A directory tree.
pub trait Disk: Send + Sync + std::fmt::Debug {
    /// Makes a new file; `AlreadyExists` if the name is taken.
    fn create(&self, name: &str) -> Result<Box<dyn DiskFile>>;
    /// Opens a file; `NotFound` if there is none.
    fn open(&self, name: &str, access: Access) -> Result<Box<dyn DiskFile>>;
    /// Renames a file.
    fn rename(&self, from: &str, to: &str, mode: Rename) -> Result<()>;
    /// The file called `name`, if there is one. Opens nothing.
    fn identity(&self, name: &str) -> Result<Option<FileIdentity>>;
    /// Removes a file's name; `NotFound` if there is none.
    fn remove(&self, name: &str) -> Result<()>;
    /// Makes a folder; it may exist already. `""` is the root itself.
    fn make_dir(&self, name: &str) -> Result<()>;
    /// Removes an empty folder.
    fn remove_dir(&self, name: &str) -> Result<()>;
    /// The names in a folder, in no order; `NotFound` if there is no such folder.
    fn list(&self, folder: &str) -> Result<Vec<DiskEntry>>;
    /// Makes a folder's names durable.
    fn sync_dir(&self, folder: &str) -> Result<()>;
    /// Opens a folder; `NotFound` if there is none.
    fn folder<'a>(&'a self, name: &str) -> Result<Box<dyn DiskFolder + 'a>> {
        Ok(Box::new(ByName { disk: self, name: name.to_owned() }))
    }
    /// When a file was last written, by the clock of the system that keeps it; `None` if unknown.
    fn written_at(&self, name: &str) -> Result<Option<Timestamp>> {
        let _ = name;
        Ok(None)
    }
    /// Takes the exclusive lock that goes with the file `name`, leaving `holder` in it for others to read;
    /// `Locked`, naming its holder, if another process or handle has it.
    fn lock(&self, name: &str, holder: &str) -> Result<Box<dyn Guard>>;
    /// Releases what the disk itself holds open. It can no longer be used; open files stay open.
    fn release(&self) {}
    /// Takes the lock that goes with the file `name`, waiting while another process or handle has it; `Cancelled` if the call is
    /// to stop.
    fn wait_lock(&self, name: &str) -> Result<Box<dyn Guard>>;
    /// Random bits that no other handle on the folder has: processes in different containers may have one number. A disk that one
    /// process has by itself may return 0.
    fn nonce(&self) -> u64 {
        0
    }
}

/// The folder that holds `name`; `""` for a name at the root.
pub(super) fn folder_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// `name` within its folder.
pub(super) fn last_of(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, last)| last)
}
