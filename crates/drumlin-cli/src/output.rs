//! Standard output, buffered; a reader that has gone ends the command quietly. Messages go to
//! standard error.

use std::io::{self, BufWriter, StdoutLock, Write};

use serde_json::Value;

/// Prints `text` on standard error after the program's name. A message that cannot be printed does not fail the command.
pub fn say(text: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "drumlin: {text}");
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
