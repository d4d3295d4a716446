//! `export-nodes`: writes nodes and their payloads as lines of JSON.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;
use drumlin::{Store, Tables, Task};

use crate::bar::Bar;
use crate::failure::{Failure, Outcome};
use crate::figures::{bytes, counted};
use crate::files::{self, Content, Existing, NewFile};
use crate::interrupt;
use crate::output::Output;
use crate::place::Place;
use crate::scope::Scope;

/// Export nodes that carry a payload as lines of JSON
///
/// A line is an object: path, then payload with any JSON value, or bytes in hexadecimal, and keep_while, if the node has
/// life conditions. All are from one instant, in path order; import-nodes reads them again. A file appears under its name
/// only once it is complete.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin export-nodes market.drumlin config config.jsonl
  drumlin export-nodes market.drumlin 'config/**' | jq .path")]
pub struct ExportNodes {
    #[command(flatten)]
    place: Place,
    /// A path, for itself and all below it, or a pattern with *, ? and **
    pattern: String,
    /// The file to write; - is standard output, the default
    file: Option<PathBuf>,
    /// Replace an existing regular file
    #[arg(long, requires = "file")]
    force: bool,
}

impl ExportNodes {
    /// Writes one line per node.
    pub fn run(self, out: &mut Output) -> Outcome {
        let scope = Scope::new(Some(&self.pattern))?;
        let store = self.place.read()?;
        scope.check(&store)?;
        let cancel = interrupt::listen();
        let bar = Bar::new("exporting", 0);
        let Some(file) = self.file.as_ref().filter(|file| !files::is_stdout(file)) else {
            // A bar would mix with the lines.
            let task = match io::stdout().is_terminal() {
                true => Task { cancel, progress: None },
                false => bar.task_counting(&cancel, "node"),
            };
            let written = export(&store, &scope, out, &task, Failure::from);
            bar.clear();
            written.map_err(|failure| failure.or_interrupted("not all nodes were written"))?;
            return Ok(());
        };
        let existing = if self.force { Existing::Replace } else { Existing::Keep };
        let failed = |e: io::Error| match e.kind() {
            io::ErrorKind::BrokenPipe => Failure::NobodyReads,
            _ => files::failed(file, &e).into(),
        };
        let mut to = BufWriter::new(NewFile::new(file, existing, Content::Text)?);
        let nodes = export(&store, &scope, &mut to, &bar.task_counting(&cancel, "node"), failed)?;
        let size = to.into_inner().map_err(|e| failed(e.into_error()))?.keep()?;
        bar.clear();
        writeln!(out, "{}: {}, {}", file.display(), counted(nodes, "node"), bytes(size))?;
        Ok(())
    }
}

/// Writes the matching nodes; `failed` makes the error of a failed write.
fn export(
    store: &Store,
    scope: &Scope,
    to: &mut dyn Write,
    task: &Task,
    failed: impl Fn(io::Error) -> Failure,
) -> Result<u64, Failure> {
    let mut nodes = 0;
    for pattern in scope.patterns() {
        let mut noting = Noting { to: &mut *to, error: None };
        let written = store.tree().export(pattern, &mut noting, task);
        nodes += match (noting.error, written) {
            (Some(error), _) => return Err(failed(error)),
            (None, written) => written?,
        };
    }
    Ok(nodes)
}

/// Keeps the error of a writer, which distinguishes a reader that has gone from a full disk.
struct Noting<'a> {
    to: &'a mut dyn Write,
    error: Option<io::Error>,
}

impl Noting<'_> {
    fn note<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|e| {
            let kind = e.kind();
            self.error = Some(e);
            kind.into()
        })
    }
}

impl Write for Noting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes);
        self.note(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.to.flush();
        self.note(flushed)
    }
}
