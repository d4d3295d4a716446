//! Standard output, buffered; a reader that has gone ends the command quietly. Messages go to
//! standard error.

use std::io::{self, BufWriter, StdoutLock, Write};

use serde_json::Value;

use crate::grid::one_line;

/// Prints `text` on standard error after the program's name. A message that cannot be printed does not fail the command.
pub fn say(text: impl std::fmt::Display) {
    let text = text.to_string();
    let lines: Vec<String> = text.split('\n').map(one_line).collect();
    let _ = writeln!(io::stderr(), "drumlin: {}", lines.join("\n"));
}

/// Whether standard output was closed before the program began. Then what takes its place is a device that keeps nothing, opened for
/// reading, too, which no redirection does.
pub fn is_closed() -> bool {
    let Ok(stat) = rustix::fs::fstat(io::stdout()) else { return true };
    let device = rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::CharacterDevice;
    let null = rustix::fs::stat("/dev/null").is_ok_and(|null| null.st_rdev == stat.st_rdev);
    let both = rustix::fs::fcntl_getfl(io::stdout())
        .is_ok_and(|flags| flags & rustix::fs::OFlags::ACCMODE == rustix::fs::OFlags::RDWR);
    device && null && both
}

/// Where results go.
pub struct Output {
    stdout: BufWriter<StdoutLock<'static>>,
}

impl Output {
    /// Takes standard output.
    pub fn new() -> Self {
        Self { stdout: BufWriter::with_capacity(1 << 16, io::stdout().lock()) }
    }

    /// Prints a JSON value, indented, and ends the line.
    pub fn json(&mut self, value: &Value) -> io::Result<()> {
        writeln!(self.stdout, "{value:#}")
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stdout.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}
