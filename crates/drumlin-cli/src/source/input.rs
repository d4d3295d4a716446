//! Where imported rows come from: a file, a FIFO, a device or standard input, compressed or not.
//!
//! A regular file is opened for each inspection and closed again, so thousands of inputs need no open files. Everything else
//! can be read only once: what an inspection has read is kept and replayed, so no byte is lost. A format that needs to seek
//! gets a temporary file.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::RecordBatch;
use drumlin::{Error, Result};
use flate2::bufread::MultiGzDecoder;

use crate::files;

const BUFFER_BYTES: usize = 1 << 18;
/// Bytes that show how a file is compressed.
const MAGIC_BYTES: usize = 10;

/// Rows, with the number of stored bytes read so far.
pub type Batches = Box<dyn Iterator<Item = Result<(RecordBatch, u64)>>>;

/// Something to import.
pub struct Input {
    place: PathBuf,
    origin: Origin,
    bytes: Option<u64>,
    taken: Arc<AtomicU64>,
}

enum Origin {
    /// A regular file, closed between inspections.
    File,
    /// Readable only once: the uncompressed bytes already read, and those that follow.
    Stream { seen: Vec<u8>, rest: Box<dyn Read> },
    /// A temporary file with all uncompressed bytes. It has no name, so the system removes it when the process ends.
    Spooled(File),
}

impl Input {
    /// Opens `place`, or standard input if it is `-`.
    pub fn open(place: &Path) -> Result<Self> {
        let (file, bytes): (Box<dyn Read>, _) = match files::stream(place)? {
            Some(stream) => (Box::new(stream), None),
            None => {
                let (file, bytes) = files::open(place)?;
                (Box::new(file), bytes)
            }
        };
        let taken = Arc::default();
        let origin = match bytes {
            Some(_) => Origin::File,
            None => {
                let rest = uncompressed(Counted { inner: file, taken: Arc::clone(&taken) });
                Origin::Stream { seen: Vec::new(), rest: rest.map_err(|e| files::failed(place, &e))? }
            }
        };
        Ok(Self { place: place.to_owned(), origin, bytes, taken })
    }

    /// Where it is.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// What messages call it.
    pub fn name(&self) -> String {
        files::name(&self.place)
    }

    /// Its stored size, if known before reading.
    pub fn bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// Whether it can be read only once.
    pub fn is_stream(&self) -> bool {
        matches!(self.origin, Origin::Stream { .. })
    }

    /// Calls `look` with the uncompressed bytes from the start; a later read starts there again.
    pub fn look<T>(&mut self, look: impl FnOnce(&mut dyn Read) -> Result<T>) -> Result<T> {
        match &mut self.origin {
            Origin::File => look(&mut *reopened(&self.place, Arc::default())?),
            Origin::Stream { seen, rest } => look(&mut Replay { seen, rest, at: 0 }),
            Origin::Spooled(file) => {
                file.rewind().map_err(|e| files::failed(&self.place, &e))?;
                look(file)
            }
        }
    }

    /// The first uncompressed bytes, at most `count`.
    pub fn first(&mut self, count: u64) -> Result<Vec<u8>> {
        self.look(|bytes| {
            let mut first = Vec::new();
            bytes.take(count).read_to_end(&mut first).map_err(|e| Error::unavailable(e.to_string()))?;
            Ok(first)
        })
    }

    /// The uncompressed bytes from the start, and a counter of stored bytes read.
    pub fn into_bytes(self) -> Result<(Box<dyn Read>, Arc<AtomicU64>)> {
        let bytes: Box<dyn Read> = match self.origin {
            Origin::File => reopened(&self.place, Arc::clone(&self.taken))?,
            Origin::Stream { seen, rest } => Box::new(Cursor::new(seen).chain(rest)),
            Origin::Spooled(mut file) => {
                file.rewind().map_err(|e| files::failed(&self.place, &e))?;
                Box::new(Counted { inner: file, taken: Arc::clone(&self.taken) })
            }
        };
        Ok((bytes, self.taken))
    }

    /// A file of the uncompressed bytes, at its start, and its size.
    pub fn seekable(&mut self) -> Result<(File, u64)> {
        let failed = |e: &io::Error| files::failed(&self.place, e);
        if matches!(self.origin, Origin::File) {
            let (mut file, bytes) = files::open(&self.place)?;
            if compression(&head(&mut file).map_err(|e| failed(&e))?).is_none() {
                file.rewind().map_err(|e| failed(&e))?;
                return Ok((file, bytes.unwrap_or(0)));
            }
        }
        self.spool()?;
        let Origin::Spooled(file) = &mut self.origin else { unreachable!("it was just spooled") };
        let clone = file.rewind().and_then(|()| file.try_clone());
        let clone = clone.map_err(|e| files::failed(&self.place, &e))?;
        let bytes = clone.metadata().map_err(|e| files::failed(&self.place, &e))?.len();
        Ok((clone, bytes))
    }

    /// Copies it to a temporary file.
    pub fn spool(&mut self) -> Result<()> {
        let mut from: Box<dyn Read> = match &mut self.origin {
            Origin::File => reopened(&self.place, Arc::default())?,
            Origin::Stream { seen, rest } => Box::new(Cursor::new(std::mem::take(seen)).chain(rest)),
            Origin::Spooled(_) => return Ok(()),
        };
        let folder = std::env::temp_dir();
        let full = |e: &io::Error| {
            Error::unavailable(format!(
                "{}: could not write a temporary file in {}: {e}; set TMPDIR to another folder",
                files::name(&self.place),
                folder.display()
            ))
        };
        let mut file = tempfile::tempfile_in(&folder).map_err(|e| full(&e))?;
        let copied = copy(&mut from, &mut file).map_err(|(reading, e)| match reading {
            true => files::failed(&self.place, &e),
            false => full(&e),
        })?;
        drop(from);
        self.bytes.get_or_insert(copied);
        self.origin = Origin::Spooled(file);
        Ok(())
    }
}

/// Copies all of `from`; an error comes with whether reading failed.
fn copy(from: &mut dyn Read, to: &mut File) -> Result<u64, (bool, io::Error)> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut copied = 0;
    loop {
        let n = match from.read(&mut buffer) {
            Ok(0) => return Ok(copied),
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err((true, e)),
        };
        io::Write::write_all(to, &buffer[..n]).map_err(|e| (false, e))?;
        copied += n as u64;
    }
}

fn reopened(place: &Path, taken: Arc<AtomicU64>) -> Result<Box<dyn Read>> {
    let (file, _) = files::open(place)?;
    uncompressed(Counted { inner: file, taken }).map_err(|e| files::failed(place, &e))
}

/// How a file is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Compression {
    Gzip,
    Zstd,
    /// Not supported: its name, and a command that decompresses it.
    Other(&'static str, &'static str),
}

/// How a file that begins with `head` is compressed. No text begins like this.
fn compression(head: &[u8]) -> Option<Compression> {
    let skippable = |head: &[u8]| head.len() >= 4 && head[0] & 0xf0 == 0x50 && head[1..4] == [0x2a, 0x4d, 0x18];
    match head {
        [0x1f, 0x8b, ..] => Some(Compression::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Compression::Zstd),
        _ if skippable(head) => Some(Compression::Zstd),
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59] => {
            Some(Compression::Other("bzip2", "bzip2 -dc"))
        }
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Compression::Other("xz", "xz -dc")),
        [0x04, 0x22, 0x4d, 0x18, ..] => Some(Compression::Other("lz4", "lz4 -dc")),
        [b'P', b'K', 3, 4, ..] => Some(Compression::Other("zip", "unzip -p")),
        _ => None,
    }
}

/// The first bytes, fewer only if there are no more.
fn head(raw: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(MAGIC_BYTES);
    raw.take(MAGIC_BYTES as u64).read_to_end(&mut head)?;
    Ok(head)
}

fn uncompressed(mut raw: impl Read + 'static) -> io::Result<Box<dyn Read>> {
    let head = head(&mut raw)?;
    let kind = compression(&head);
    let raw = Cursor::new(head).chain(raw);
    Ok(match kind {
        None => Box::new(raw),
        Some(Compression::Gzip) => {
            let inner = MultiGzDecoder::new(BufReader::with_capacity(BUFFER_BYTES, raw));
            Box::new(Uncompressed { inner, by: "gzip" })
        }
        Some(Compression::Zstd) => Box::new(Uncompressed { inner: zstd::Decoder::new(raw)?, by: "zstd" }),
        Some(Compression::Other(by, command)) => {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "it is compressed with {by}; expected gzip, zstd or no compression. Decompress it first: {command} FILE | drumlin import STORE - ..."
                ),
            ));
        }
    })
}

/// Names the compression in errors. Truncation must not be `UnexpectedEof`, which some readers treat as the end of their
/// format.
struct Uncompressed<R> {
    inner: R,
    by: &'static str,
}

impl<R: Read> Read for Uncompressed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).map_err(|e| match e.kind() {
            io::ErrorKind::Interrupted => e,
            io::ErrorKind::UnexpectedEof => {
                let text = format!("the {} data is truncated; copy or make it again", self.by);
                io::Error::new(io::ErrorKind::InvalidData, text)
            }
            _ => io::Error::new(io::ErrorKind::InvalidData, format!("the {} data is damaged: {e}", self.by)),
        })
    }
}

/// Reads what was read before, then what follows, and records it.
struct Replay<'a> {
    seen: &'a mut Vec<u8>,
    rest: &'a mut Box<dyn Read>,
    at: usize,
}

impl Read for Replay<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = match &self.seen[self.at..] {
            [] => {
                let n = self.rest.read(buffer)?;
                self.seen.extend_from_slice(&buffer[..n]);
                n
            }
            mut seen => seen.read(buffer)?,
        };
        self.at += n;
        Ok(n)
    }
}

/// Counts what is read.
struct Counted<R> {
    inner: R,
    taken: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.taken.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_files_are_known_by_their_first_bytes() {
        assert_eq!(compression(&[0x1f, 0x8b, 8]), Some(Compression::Gzip));
        assert_eq!(compression(&[0x28, 0xb5, 0x2f, 0xfd]), Some(Compression::Zstd));
        assert_eq!(compression(&[0x5f, 0x2a, 0x4d, 0x18]), Some(Compression::Zstd));
        assert!(matches!(compression(b"BZh91AY&SY"), Some(Compression::Other("bzip2", _))));
        for text in [&b""[..], b"P", b"PK", b"BZh9,b", b"id,name\n1,", b"{\"a\": 1}", b"PAR1", b"ARROW1\0\0"] {
            assert_eq!(compression(text), None, "{text:?}");
        }
    }
}
