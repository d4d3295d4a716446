//! The user's files: imported ones, and those that an export writes. The core handles the store's own files.
//!
//! An export replaces only regular files, and only once the new file is complete. It follows a symbolic link: the file that the
//! link points to is replaced, the link stays. It writes straight to a FIFO or a character device.

use std::fs::{self, File, Permissions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use drumlin::{Error, ErrorKind, Result};
use tempfile::NamedTempFile;

use crate::patient::{self, Patient};

/// Whether a file argument means standard input.
pub fn is_stdin(place: &Path) -> bool {
    ["-", "/dev/stdin"].iter().any(|name| place.as_os_str() == *name)
}

/// Whether a file argument means standard output. Opened as /dev/stdout, a regular file would be overwritten from its start.
pub fn is_stdout(place: &Path) -> bool {
    ["-", "/dev/stdout"].iter().any(|name| place.as_os_str() == *name)
}

/// What messages call a file argument that is read.
pub fn name(place: &Path) -> String {
    if is_stdin(place) { "standard input".to_owned() } else { place.display().to_string() }
}

/// What messages call a file argument that is written.
pub fn name_written(place: &Path) -> String {
    if is_stdout(place) { "standard output".to_owned() } else { place.display().to_string() }
}

/// Standard input, without a buffer of its own.
fn stdin() -> io::Result<File> {
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}

/// What can be read only once, and may be long in coming: standard input, a FIFO, a device. `None` if `path` is a file.
pub fn stream(path: &Path) -> Result<Option<Patient>> {
    let stream = if is_stdin(path) {
        Patient::new(stdin)
    } else {
        let waits = |kind: fs::FileType| kind.is_fifo() || kind.is_char_device();
        if !path.metadata().is_ok_and(|metadata| waits(metadata.file_type())) {
            return Ok(None);
        }
        let path = path.to_owned();
        Patient::new(move || open_read(&path))
    };
    stream.map(Some).map_err(|e| failed(path, &e))
}

#[expect(clippy::disallowed_methods, reason = "a file to import is the user's, on the user's file system")]
fn open_read(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Opens a file for reading; also returns its size, if it is a regular one.
pub fn open(path: &Path) -> Result<(File, Option<u64>)> {
    let file = open_read(path).map_err(|e| failed(path, &e))?;
    let metadata = file.metadata().map_err(|e| failed(path, &e))?;
    if metadata.is_dir() {
        return Err(folder(path));
    }
    Ok((file, metadata.is_file().then_some(metadata.len())))
}

/// Why there is no file to read at `path`, if there is none.
pub fn no_file(path: &Path) -> Option<Error> {
    match path.metadata() {
        _ if is_stdin(path) => None,
        Ok(metadata) if metadata.is_dir() => Some(folder(path)),
        Ok(_) => None,
        Err(e) => {
            let why = failed(path, &e);
            let message =
                format!("{}; files come after the store, and a table is named by --table PATH", why.message());
            Some(Error::new(why.kind(), message))
        }
    }
}

fn folder(path: &Path) -> Error {
    let shown = path.display();
    Error::invalid(format!("{shown} is a folder; name the files in it ({shown}/*), or the store first if it is one"))
}

/// An I/O error with the name of its file.
pub fn failed(path: &Path, error: &io::Error) -> Error {
    if let Some(stopped) = error.get_ref().and_then(|e| e.downcast_ref::<Error>()) {
        return Error::new(stopped.kind(), stopped.message());
    }
    let kind = match error.kind() {
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        io::ErrorKind::AlreadyExists => ErrorKind::AlreadyExists,
        io::ErrorKind::InvalidData => ErrorKind::InvalidArgument,
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, format!("{}: {error}", name(path)))
}

/// What to do about an existing regular file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Leave it and fail.
    Keep,
    /// Replace it with the new one.
    Replace,
}

/// What is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Text, which a terminal can show.
    Text,
    /// Binary data, which would garble a terminal.
    Binary,
}

/// What an export writes to.
pub struct NewFile {
    place: PathBuf,
    target: Target,
    bytes: Arc<AtomicU64>,
    gone: Arc<AtomicBool>,
}

enum Target {
    /// A regular file: written under a temporary name next to its place, and renamed when complete. Removed if not
    /// kept.
    Made(NamedTempFile, Existing),
    /// Standard output, a FIFO or a character device: written directly.
    Through(File),
}

impl NewFile {
    /// Starts writing to `place`; `-` is standard output.
    pub fn new(place: &Path, existing: Existing, content: Content) -> Result<Self> {
        let (place, target) = if is_stdout(place) {
            let stdout = io::stdout().as_fd().try_clone_to_owned().map_err(|e| failed(place, &e))?;
            (PathBuf::from(name_written(place)), Target::Through(stdout.into()))
        } else {
            target(place, existing)?
        };
        if let Target::Through(file) = &target
            && content == Content::Binary
            && file.is_terminal()
        {
            return Err(Error::invalid(format!(
                "{} is a terminal and the format is binary; write to a file or a pipe, or use --format csv",
                place.display()
            )));
        }
        Ok(Self { place, target, bytes: Arc::default(), gone: Arc::default() })
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> Arc<AtomicU64> {
        self.bytes.clone()
    }

    /// Set once the reader of a pipe has gone.
    pub fn gone(&self) -> Arc<AtomicBool> {
        self.gone.clone()
    }

    /// Makes the file durable and renames it to its place; returns its size.
    pub fn keep(self) -> Result<u64> {
        let bytes = self.bytes.load(Ordering::Relaxed);
        let Target::Made(temporary, existing) = self.target else { return Ok(bytes) };
        temporary.as_file().sync_all().map_err(|e| failed(&self.place, &e))?;
        let kept = match existing {
            Existing::Replace => temporary.persist(&self.place),
            // Unlike a rename, this never replaces a file created in between.
            Existing::Keep => temporary.persist_noclobber(&self.place).or_else(|e| match e.error.kind() {
                io::ErrorKind::AlreadyExists => Err(e),
                // Not every file system supports that.
                _ if self.place.symlink_metadata().is_err() => e.file.persist(&self.place),
                _ => Err(e),
            }),
        };
        match kept {
            Ok(_) => Ok(bytes),
            Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => Err(taken(&self.place)),
            Err(e) => Err(failed(&self.place, &e.error)),
        }
    }
}

/// The target for `place`, and its path with links resolved.
fn target(place: &Path, existing: Existing) -> Result<(PathBuf, Target)> {
    let io_failed = |e: io::Error| failed(place, &e);
    let link = place.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    let metadata = match place.metadata() {
        Ok(metadata) => Some(metadata),
        Err(e) if e.kind() == io::ErrorKind::NotFound && link => {
            return Err(Error::invalid(format!(
                "{} is a dangling symbolic link; remove it, or name the file it should point to",
                place.display()
            )));
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(io_failed(e)),
    };
    if let Some(metadata) = &metadata {
        let kind = metadata.file_type();
        if kind.is_fifo() || kind.is_char_device() {
            let own = place.to_owned();
            let file = patient::opened(move || File::options().write(true).open(own)).map_err(io_failed)?;
            return Ok((place.to_owned(), Target::Through(file)));
        }
        if !kind.is_file() {
            let what =
                if kind.is_dir() { "is a folder" } else { "is not a regular file, a FIFO or a character device" };
            return Err(Error::invalid(format!("{} {what}; name a file, or - for standard output", place.display())));
        }
        if existing == Existing::Keep {
            return Err(taken(place));
        }
    }
    let place = if link { fs::canonicalize(place).map_err(io_failed)? } else { place.to_owned() };
    let name = place.file_name().ok_or_else(|| Error::invalid(format!("'{}' is not a file name", place.display())))?;
    let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        let (place, folder) = (place.display(), folder.display());
        return Err(Error::not_found(format!("{place}: the folder {folder} does not exist; create it first")));
    }
    let temporary = tempfile::Builder::new()
        .prefix(&format!(".{}.", name.to_string_lossy()))
        .suffix(".tmp")
        // Reduced by the process's umask.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(|e| failed(&place, &e))?;
    if let Some(metadata) = metadata {
        // Keep a private file private.
        temporary.as_file().set_permissions(metadata.permissions()).map_err(|e| failed(&place, &e))?;
    }
    Ok((place, Target::Made(temporary, existing)))
}

fn taken(place: &Path) -> Error {
    Error::already_exists(format!("{} already exists; --force replaces it", place.display()))
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.target {
            Target::Made(file, _) => file.write(bytes),
            Target::Through(file) => file.write(bytes),
        };
        match &written {
            Ok(n) => drop(self.bytes.fetch_add(*n as u64, Ordering::Relaxed)),
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => self.gone.store(true, Ordering::Relaxed),
            Err(_) => {}
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.target {
            Target::Made(file, _) => file.flush(),
            Target::Through(file) => file.flush(),
        }
    }
}
