//! `import`: files become tables, streamed, all of them in one commit.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arrow::datatypes::SchemaRef;
use clap::Args;
use drumlin::Store;
use drumlin::store::{AsOf, Frame, WriteOptions};

use crate::bar::Bar;
use crate::failure::{Failure, Outcome};
use crate::figures;
use crate::interrupt;
use crate::output::Output;
use crate::place::Place;
use crate::source::{self, ColumnType, CsvForm, Format, Source, parse_column_type, parse_delimiter};

/// Import Parquet, CSV or Arrow files
///
/// Without --append a new version of each table replaces all its rows. All tables are written in one commit: all of them
/// or none. The store is made if it is not there. Empty values in CSV are null.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin import market.drumlin aapl.parquet msft.parquet --under prices/us
  drumlin import market.drumlin 2026-*.csv --table trades --append --type price=Decimal128(12,2)")]
pub struct Import {
    #[command(flatten)]
    place: Place,
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The table that all files go to, in the order given
    #[arg(long, short, value_name = "PATH")]
    table: Option<String>,
    /// Each file goes to a table of its own, named as the file without its extension, under this path [default: the top]
    #[arg(long, short, value_name = "PATH", conflicts_with = "table")]
    under: Option<String>,
    /// Append to the tables, which must be there, instead of replacing their rows
    #[arg(long, short)]
    append: bool,
    /// Columns by which a new table is ordered
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    sort: Option<Vec<String>>,
    /// A note kept with the new versions
    #[arg(long, value_name = "JSON", value_parser = figures::parse_json)]
    metadata: Option<String>,
    /// The format of the files [default: by extension]
    #[arg(long, short, value_enum)]
    format: Option<Format>,
    /// CSV: the first line holds values; columns are called column_1, column_2, ...
    #[arg(long)]
    no_header: bool,
    /// CSV: what stands between values: one character, or tab [default: a comma; a tab in .tsv files]
    #[arg(long, value_name = "CHAR", value_parser = parse_delimiter)]
    delimiter: Option<u8>,
    /// CSV: the Arrow type of a column; may be given again for other columns
    #[arg(long = "type", value_name = "COLUMN=TYPE", value_parser = parse_column_type)]
    types: Vec<ColumnType>,
    /// CSV: how many rows of each file to look at to infer types; 0 is all
    #[arg(long, value_name = "ROWS", default_value_t = 10_000)]
    sample: usize,
}

impl Import {
    /// Looks at all files before the store is touched.
    pub fn run(self, out: &mut Output) -> Outcome {
        let csv = CsvForm {
            header: !self.no_header,
            delimiter: self.delimiter,
            sample: self.sample,
            types: self.types.clone(),
        };
        let mut tables: BTreeMap<String, Vec<Source>> = BTreeMap::new();
        for file in &self.files {
            let path = self.path_of(file)?;
            let sources = tables.entry(path).or_default();
            let source = Source::new(file, self.format, &csv)?;
            if let (None, Some(other)) = (&self.table, sources.first()) {
                let (a, b) = (other.file().display(), file.display());
                return Err(Failure::Usage(format!(
                    "{a} and {b} would go to the same table; import one at a time, or give --table"
                )));
            }
            sources.push(source);
        }
        let cancel = interrupt::listen();
        let store = if self.append { self.place.write()? } else { self.place.create()? };
        let bar = Bar::new("importing", tables.values().flatten().map(Source::bytes).sum());
        let read = Arc::new(AtomicU64::new(0));
        let mut frames = Vec::with_capacity(tables.len());
        for (path, sources) in tables {
            let schema = self.schema_of(&store, &path, &sources)?;
            let rows = source::stream(sources, schema.clone(), bar.clone(), read.clone(), cancel.clone());
            frames.push((path, Frame::new(schema, rows)));
        }
        let paths: Vec<String> = frames.iter().map(|(path, _)| path.clone()).collect();
        let options =
            WriteOptions { metadata: self.metadata.clone(), sort: self.sort.clone(), task: bar.task_beside(&cancel) };
        let versions =
            if self.append { store.append_many(frames, &options) } else { store.write_many(frames, &options) };
        bar.clear();
        let versions = versions?;
        store.close()?;
        for (path, version) in paths.iter().zip(versions) {
            writeln!(out, "{path}: version {}, {}", version.version, figures::counted(version.rows, "row"))?;
        }
        Ok(())
    }

    fn path_of(&self, file: &Path) -> Result<String, Failure> {
        if let Some(table) = &self.table {
            return Ok(table.clone());
        }
        let unnamed = || Failure::Usage(format!("{} has no name to make a table's of; give --table", file.display()));
        let name = file.file_stem().and_then(|stem| stem.to_str()).ok_or_else(unnamed)?;
        Ok(match &self.under {
            Some(under) => format!("{}/{name}", under.trim_end_matches('/')),
            None => name.to_owned(),
        })
    }

    /// The schema of the rows: that of the table they are appended to.
    fn schema_of(&self, store: &Store, path: &str, sources: &[Source]) -> Result<SchemaRef, Failure> {
        if self.append {
            return Ok(store.schema(path, &AsOf::Newest)?);
        }
        Ok(source::schema_of(sources))
    }
}
