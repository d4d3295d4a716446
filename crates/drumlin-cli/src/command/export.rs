//! `export`: writes a version of a table to a file, which appears only when complete.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use clap::Args;
use drumlin::{AsOf, Filter, ReadOptions, ScanOptions, Store, Tables};

use crate::as_of;
use crate::bar::Bar;
use crate::failure::{Failure, Outcome};
use crate::figures;
use crate::files::{self, Existing, NewFile};
use crate::interrupt;
use crate::output::Output;
use crate::place::Place;
use crate::sink::{self, Compression, Sink};
use crate::source::{Format, parse_delimiter, uncompressed_name};

/// Export a table to a Parquet, CSV, JSON lines or Arrow file
///
/// The file appears under its name only once it is complete; if the export fails, an existing file is unchanged. A symbolic
/// link is followed and kept. Output to -, a FIFO or a device is written directly. In CSV nulls are empty and times in named
/// zones are UTC. JSON has no NaN or infinity: both become null.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin export market.drumlin prices/us/aapl aapl.parquet --where 'volume > 0' --as-of 3
  drumlin export market.drumlin prices/us/aapl - --format csv | gzip > aapl.csv.gz")]
pub struct Export {
    #[command(flatten)]
    place: Place,
    /// The table
    table: String,
    /// The file to write; - is standard output
    file: PathBuf,
    /// Replace an existing regular file
    #[arg(long)]
    force: bool,
    /// The format of the file [default: by extension]
    #[arg(long, short, value_enum)]
    format: Option<Format>,
    /// Parquet: how the file is compressed
    #[arg(long, value_enum, default_value_t = Compression::Zstd)]
    compression: Compression,
    /// CSV: the delimiter between values: one character, or tab
    #[arg(long, value_name = "CHAR", value_parser = parse_delimiter)]
    delimiter: Option<u8>,
    /// The columns, in this order [default: all]
    #[arg(long, short, value_delimiter = ',')]
    columns: Option<Vec<String>>,
    /// Only rows for which this is true, as in SQL
    #[arg(long = "where", short = 'w', value_name = "FILTER")]
    filter: Option<String>,
    /// A version number (-1 is the newest), a snapshot, or a time; snapshot:NAME for a snapshot that looks like a number
    #[arg(long, value_name = "WHICH", allow_negative_numbers = true)]
    as_of: Option<String>,
}

impl Export {
    /// Reads and writes batch by batch.
    pub fn run(self, out: &mut Output) -> Outcome {
        if uncompressed_name(&self.file) != self.file {
            return Err(Failure::Usage(format!(
                "{}: export does not compress; write to - and pipe it through gzip or zstd, or use Parquet",
                self.file.display()
            )));
        }
        let format = self.format.map_or_else(|| Format::of(&self.file), Ok)?;
        let delimiter = self.delimiter.unwrap_or_else(|| {
            let tabs = self.file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("tsv"));
            if tabs { b'\t' } else { b',' }
        });
        let filter = self.filter.as_deref().map(Filter::parse).transpose()?;
        let store = self.place.read()?;
        let as_of = as_of::resolve(self.as_of.as_deref());
        let cancel = interrupt::listen();
        let total = if filter.is_none() { rows_of(&store, &self.table, &as_of) } else { 0 };
        let scan = ScanOptions { columns: self.columns, filter, cancel: cancel.clone(), ..ScanOptions::default() };
        let scan = store.read(&self.table, &ReadOptions::of(as_of, scan))?;
        let existing = if self.force { Existing::Replace } else { Existing::Keep };
        let file = NewFile::new(&self.file, existing, sink::content(format))?;
        let (written, gone) = (file.bytes(), file.gone());
        let in_file = |failure| match failure {
            _ if gone.load(Ordering::Relaxed) => Failure::NobodyReads,
            Failure::Error(message) => Failure::Error(format!("{}: {message}", files::name_written(&self.file))),
            other => other,
        };
        let mut sink = Sink::new(file, format, &scan.schema(), self.compression, delimiter).map_err(in_file)?;
        let to_terminal = files::is_stdout(&self.file) && std::io::stdout().is_terminal();
        // A bar would mix with the rows.
        let bar = if to_terminal { Bar::hidden() } else { Bar::new("exporting", total) };
        let mut rows = 0;
        for batch in scan {
            let batch = batch?;
            sink.write(&batch).map_err(in_file)?;
            rows += batch.num_rows() as u64;
            bar.set(rows);
            bar.tell(rows, written.load(Ordering::Relaxed));
        }
        cancel.check()?;
        let bytes = sink.finish().map_err(in_file)?;
        bar.clear();
        if files::is_stdout(&self.file) {
            return Ok(());
        }
        writeln!(out, "{}: {}, {}", self.file.display(), figures::counted(rows, "row"), figures::bytes(bytes))?;
        Ok(())
    }
}

/// The number of rows to export, for the bar; 0 if not known.
fn rows_of(store: &Store, table: &str, as_of: &AsOf) -> u64 {
    let versions = store.table(table).versions().unwrap_or_default();
    let version = match as_of {
        AsOf::Newest => versions.last(),
        AsOf::Version(version) => versions.iter().find(|info| info.version == *version),
        AsOf::Back(back) => usize::try_from(*back).ok().and_then(|back| versions.iter().rev().nth(back)),
        AsOf::Time(time) => versions.iter().rev().find(|info| info.time <= *time),
        AsOf::Snapshot(name) => versions.iter().find(|info| info.snapshots.contains(name)),
    };
    version.map_or(0, |info| info.rows)
}
