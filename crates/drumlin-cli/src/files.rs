//! Files of the user: what is imported, and what an export makes. The store's own files are the core's business.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use drumlin::{Error, ErrorKind, Result};

/// Opens a file for reading; gives its size too.
#[expect(clippy::disallowed_methods, reason = "a file to import is the user's, on the user's file system")]
pub fn open(path: &Path) -> Result<(File, u64)> {
    let file = File::open(path).map_err(|e| failed(path, &e))?;
    let metadata = file.metadata().map_err(|e| failed(path, &e))?;
    if metadata.is_dir() {
        return Err(Error::invalid(format!("{} is a folder; name the files in it", path.display())));
    }
    Ok((file, metadata.len()))
}

/// An I/O error with the name of its file.
pub fn failed(path: &Path, error: &io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        io::ErrorKind::AlreadyExists => ErrorKind::AlreadyExists,
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, format!("{}: {error}", path.display()))
}

/// What to do about a file that is there already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Leave it and fail.
    Keep,
    /// Put the new one in its place.
    Replace,
}

/// A file in the making: written under a temporary name beside its place, and put there whole. Removed if not kept.
pub struct NewFile {
    file: File,
    place: PathBuf,
    temporary: PathBuf,
    existing: Existing,
    bytes: Arc<AtomicU64>,
    kept: bool,
}

impl NewFile {
    /// Begins the file that shall be at `place`.
    pub fn new(place: &Path, existing: Existing) -> Result<Self> {
        if existing == Existing::Keep && place.symlink_metadata().is_ok() {
            return Err(taken(place));
        }
        if place.is_dir() {
            return Err(Error::invalid(format!("{} is a folder", place.display())));
        }
        let name = place.file_name().ok_or_else(|| Error::invalid(format!("'{}' is no file name", place.display())))?;
        let temporary = place.with_file_name(format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id()));
        let file = File::options().write(true).create_new(true).open(&temporary);
        let file = file.map_err(|e| failed(&temporary, &e))?;
        Ok(Self { file, place: place.to_owned(), temporary, existing, bytes: Arc::default(), kept: false })
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> Arc<AtomicU64> {
        self.bytes.clone()
    }

    /// Makes the file durable and puts it in its place; returns its size.
    #[expect(clippy::disallowed_methods, reason = "an exported file is the user's, on the user's file system")]
    pub fn keep(mut self) -> Result<u64> {
        self.file.sync_all().map_err(|e| failed(&self.temporary, &e))?;
        match self.existing {
            Existing::Replace => {}
            // A link, unlike a rename, never replaces what somebody else has put there meanwhile.
            Existing::Keep => match fs::hard_link(&self.temporary, &self.place) {
                Ok(()) => return Ok(self.bytes.load(Ordering::Relaxed)),
                Err(_) if self.place.symlink_metadata().is_ok() => return Err(taken(&self.place)),
                // Not every file system has links.
                Err(_) => {}
            },
        }
        fs::rename(&self.temporary, &self.place).map_err(|e| failed(&self.place, &e))?;
        self.kept = true;
        Ok(self.bytes.load(Ordering::Relaxed))
    }
}

fn taken(place: &Path) -> Error {
    Error::already_exists(format!("{} is there already; --force replaces it", place.display()))
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.bytes.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    #[expect(clippy::disallowed_methods, reason = "an exported file is the user's, on the user's file system")]
    fn drop(&mut self) {
        if !self.kept {
            // What cannot be removed has a name that says what it is.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}
