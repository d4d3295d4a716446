//! Rows of Arrow IPC, as a file (Feather V2) or as a stream.
//!
//! A stream must have its end marker, which all common writers write: without it, a stream truncated between two batches
//! would look complete.

use std::io::{self, BufReader, Read};
use std::sync::atomic::Ordering;

use arrow::datatypes::SchemaRef;
use arrow::ipc::reader::{FileReader, StreamReader};
use drumlin::{Error, Result};

use super::guarded::guarded;
use super::input::{Batches, Input};
use super::ipc_legacy::{Checked, check_file};

const FILE: &[u8] = b"ARROW1";
const STREAM: &[u8] = &[0xff; 4];
const STREAM_END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

enum Form {
    File,
    Stream,
}

fn form(input: &mut Input) -> Result<Form> {
    match input.first(FILE.len() as u64)? {
        head if head.starts_with(FILE) => Ok(Form::File),
        head if head.starts_with(STREAM) => Ok(Form::Stream),
        head if head.starts_with(b"FEA1") => {
            Err(Error::unsupported("this is Feather version 1; write it as version 2 (Arrow IPC)"))
        }
        _ => Err(Error::invalid("this is not an Arrow file or stream")),
    }
}

/// The schema.
pub fn schema(input: &mut Input) -> Result<SchemaRef> {
    match form(input)? {
        Form::File => {
            let file = BufReader::new(input.seekable()?.0);
            guarded("Arrow", || FileReader::try_new(file, None).map(|reader| reader.schema()))
        }
        Form::Stream => {
            input.look(|bytes| guarded("Arrow", || StreamReader::try_new(bytes, None).map(|reader| reader.schema())))
        }
    }
}

/// The rows. Progress in a file is the share of batches read.
pub fn read(mut input: Input) -> Result<Batches> {
    match form(&mut input)? {
        Form::File => {
            let (mut file, _) = input.seekable()?;
            check_file(&mut file)?;
            let bytes = input.bytes().unwrap_or(0);
            let mut reader = guarded("Arrow", || FileReader::try_new(BufReader::new(file), None))?;
            let total = reader.num_batches().max(1) as u64;
            let batches = std::iter::from_fn(move || guarded("Arrow", || reader.next().transpose()).transpose());
            let at = move |(at, batch): (usize, Result<_>)| Ok((batch?, bytes / total * (at as u64 + 1)));
            Ok(Box::new(batches.enumerate().map(at)))
        }
        Form::Stream => {
            let (bytes, taken) = input.into_bytes()?;
            let tail = Tail { inner: BufReader::new(Checked::new(bytes)), last: [0; 8] };
            let mut reader = guarded("Arrow", || StreamReader::try_new(tail, None))?;
            let mut ended = false;
            Ok(Box::new(std::iter::from_fn(move || match guarded("Arrow", || reader.next().transpose()) {
                Ok(Some(batch)) => Some(Ok((batch, taken.load(Ordering::Relaxed)))),
                Err(error) => Some(Err(error)),
                Ok(None) if std::mem::replace(&mut ended, true) => None,
                Ok(None) => reader.get_mut().check_end().err().map(Err),
            })))
        }
    }
}

/// Remembers the last bytes read.
struct Tail<R> {
    inner: R,
    last: [u8; 8],
}

impl<R: Read> Tail<R> {
    /// Fails unless the end marker was read last and nothing follows it. Reading to the end also makes the decompressor check
    /// its checksum.
    fn check_end(&mut self) -> Result<()> {
        if self.last != STREAM_END {
            return Err(Error::invalid("the stream is truncated: it has no end marker; make it again"));
        }
        match io::copy(&mut self.inner.by_ref().take(1), &mut io::sink()) {
            Ok(0) => Ok(()),
            Ok(_) => Err(Error::invalid("there are bytes after the end of the stream; expected a single stream")),
            Err(e) => Err(Error::unavailable(e.to_string())),
        }
    }
}

impl<R: Read> Read for Tail<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        let kept = n.min(self.last.len());
        self.last.rotate_left(kept);
        let from = self.last.len() - kept;
        self.last[from..].copy_from_slice(&buffer[n - kept..n]);
        Ok(n)
    }
}
