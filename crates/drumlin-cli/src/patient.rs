//! Input that may be long in coming: standard input, a FIFO, a device. A separate thread opens and reads it, so that a command that
//! waits for it sees Ctrl-C.

use std::fs::File;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, sync_channel};

use drumlin::embedding::{OsThreads, Threads, waiting};

const BUFFER_BYTES: usize = 1 << 16;
/// Buffers that are read ahead.
const AHEAD: usize = 4;

/// What a separate thread reads. Its end, or the error that it ended with, comes again and again.
pub struct Patient {
    receiver: Receiver<io::Result<Vec<u8>>>,
    current: Vec<u8>,
    at: usize,
}

impl Patient {
    /// Reads what `open` gives.
    pub fn new(open: impl FnOnce() -> io::Result<File> + Send + 'static) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(AHEAD);
        let read = move || {
            let mut file = match open() {
                Ok(file) => file,
                Err(e) => return drop(sender.send(Err(e))),
            };
            loop {
                let mut buffer = vec![0; BUFFER_BYTES];
                let read = match file.read(&mut buffer) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    read => read,
                };
                let ended = !matches!(read, Ok(1..));
                let told = read.map(|n| {
                    buffer.truncate(n);
                    buffer
                });
                // Nobody reads on once the receiver is gone.
                if sender.send(told).is_err() || ended {
                    return;
                }
            }
        };
        OsThreads.spawn("drumlin-input", Box::new(read)).map_err(io::Error::other)?;
        Ok(Self { receiver, current: Vec::new(), at: 0 })
    }
}

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.current.len() {
            self.current = match waiting::receive(&self.receiver).map_err(io::Error::other)? {
                Ok(read) => read?,
                // It has ended.
                Err(_) => Vec::new(),
            };
            self.at = 0;
        }
        let n = (&self.current[self.at..]).read(buffer)?;
        self.at += n;
        Ok(n)
    }
}

/// Opens a file that nobody may be reading yet, as a FIFO to be written to.
pub fn opened(open: impl FnOnce() -> io::Result<File> + Send + 'static) -> io::Result<File> {
    let (sender, receiver) = sync_channel(1);
    OsThreads.spawn("drumlin-output", Box::new(move || drop(sender.send(open())))).map_err(io::Error::other)?;
    let file = waiting::receive(&receiver).map_err(io::Error::other)?;
    file.map_err(io::Error::other)?
}
