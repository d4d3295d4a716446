//! `import`: writes files and streams to tables, all in one commit.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use clap::Args;
use drumlin::{AsOf, Error, ErrorKind, Frame, SchemaMode, Store, TableOptions, Tables, VersionInfo, WriteOptions};

use crate::bar::Bar;
use crate::failure::{Failure, Outcome};
use crate::figures;
use crate::files;
use crate::interrupt;
use crate::output::Output;
use crate::place::ChangedPlace;
use crate::source::{self, ColumnType, Destination, Format, Source, TextForm, parse_column_type, parse_delimiter};

/// Import Parquet, CSV, JSON lines or Arrow files
///
/// Without --append, --upsert and --where, a new version of each table replaces all its rows. All tables are written in one
/// commit: all of them or none. The store is created if it does not exist. Empty values in CSV are null, and so are
/// members that a line of JSON lacks.
///
/// A file can be a FIFO, or - for standard input, and can be compressed with gzip or zstd, which is detected from its first
/// bytes. Types of CSV and JSON columns are inferred from the first 10000 rows (--sample): one in which each value prints as it was, or
/// is the same number or time, else text. A later value that does not fit is an error, and nothing is imported. Parquet and Arrow files that are compressed or come from a pipe are first copied to a temporary
/// file, as is text from a pipe with --sample 0; TMPDIR sets its folder.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin import market.drumlin aapl.parquet msft.parquet --under prices/us
  drumlin import market.drumlin 2026-*.csv.gz --table trades --append --type 'price=Decimal128(12,2)'
  curl https://example.com/trades | drumlin import market.drumlin - --format json --table trades
  drumlin import market.drumlin accounts.csv --key id --upsert
  drumlin import market.drumlin day.csv --table trades --where \"day = DATE '2026-11-20'\" --evolve")]
pub struct Import {
    #[command(flatten)]
    place: ChangedPlace,
    /// The files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The table that all files go to, in the order given
    #[arg(long, short, value_name = "PATH")]
    table: Option<String>,
    /// Each file goes to a table of its own, named after the file without its extension, under this path [default: the
    /// top]
    #[arg(long, short, value_name = "PATH", conflicts_with = "table")]
    under: Option<String>,
    /// Append to the tables, which must exist, instead of replacing their rows
    #[arg(long, short)]
    append: bool,
    /// Columns by which a new table is ordered
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    sort: Option<Vec<String>>,
    /// Columns that are the key of a new table: no two rows have the same
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', conflicts_with = "sort")]
    key: Option<Vec<String>>,
    /// Put the rows into tables with a key, replacing only rows with the same keys; missing tables are created if --key
    /// is given
    #[arg(long, conflicts_with_all = ["append", "sort"])]
    upsert: bool,
    /// Replace only the rows of the table for which FILTER is true, as in SQL
    #[arg(long = "where", short = 'w', value_name = "FILTER", requires = "table",
        conflicts_with_all = ["append", "upsert", "sort", "key"])]
    filter: Option<String>,
    /// Add columns that the tables lack, and widen types; columns that the files lack are null, or have their default
    #[arg(long)]
    evolve: bool,
    /// A note kept with the new versions
    #[arg(long, value_name = "JSON", value_parser = figures::parse_json)]
    metadata: Option<String>,
    /// The format of the files [default: by extension]
    #[arg(long, short, value_enum)]
    format: Option<Format>,
    /// CSV: the first line holds values; columns are called column_1, column_2, ...
    #[arg(long)]
    no_header: bool,
    /// CSV: the delimiter between values: one character, or tab [default: a comma; a tab in .tsv files]
    #[arg(long, value_name = "CHAR", value_parser = parse_delimiter)]
    delimiter: Option<u8>,
    /// CSV, JSON: the Arrow type of a column; may be given again for other columns
    #[arg(long = "type", value_name = "COLUMN=TYPE", value_parser = parse_column_type)]
    types: Vec<ColumnType>,
    /// CSV, JSON: infer types from the first N rows of each file; 0 is all
    #[arg(long, value_name = "ROWS", default_value_t = 10_000)]
    sample: usize,
}

/// What was done to a table.
enum Done {
    Version(VersionInfo),
    /// Rows were put: their number.
    Rows(u64),
}

impl Import {
    /// Checks all files before the store is touched.
    pub fn run(self, out: &mut Output) -> Outcome {
        if self.files.iter().filter(|file| files::is_stdin(file)).count() > 1 {
            return Err(Failure::Usage("standard input is named twice; it can be read only once".into()));
        }
        let form = TextForm {
            header: !self.no_header,
            delimiter: self.delimiter,
            sample: self.sample,
            types: self.types.clone(),
        };
        let mut tables: BTreeMap<String, Vec<Source>> = BTreeMap::new();
        for file in &self.files {
            let path = self.path_of(file)?;
            let sources = tables.entry(path).or_default();
            let source = Source::new(file, self.format, &form)?;
            if let (None, Some(other)) = (&self.table, sources.first()) {
                let (a, b) = (other.file().display(), file.display());
                return Err(Failure::Usage(format!(
                    "{a} and {b} would go to the same table; import one at a time, or give --table"
                )));
            }
            sources.push(source);
        }
        let cancel = interrupt::listen();
        if self.evolve && !self.adds() {
            let what =
                "--evolve needs --append, --upsert or --where: an import that replaces all rows brings its own columns";
            return Err(Failure::Usage(what.into()));
        }
        let makes = !self.adds() || self.upsert && self.key.is_some();
        let store = if makes { self.place.create()? } else { self.place.write()? };
        let bar = Bar::new("importing", tables.values().flatten().map(Source::bytes).sum::<Option<u64>>().unwrap_or(0));
        let read = Arc::new(AtomicU64::new(0));
        let mut frames = Vec::with_capacity(tables.len());
        for (path, sources) in tables {
            let to = self.destination(&store, &path, &sources)?;
            let schema = to.schema.clone();
            let rows = source::stream(sources, to, bar.clone(), read.clone(), cancel.clone());
            frames.push((path, Frame::new(schema, rows)));
        }
        let paths: Vec<String> = frames.iter().map(|(path, _)| path.clone()).collect();
        let (metadata, sort, task) = (self.metadata.clone(), self.sort.clone(), bar.task_beside(&cancel));
        let schema = if self.evolve { SchemaMode::Evolve } else { SchemaMode::Strict };
        let options = WriteOptions { metadata, sort, schema, task, ..WriteOptions::default() };
        let done = if let Some(filter) = &self.filter {
            let (path, frame) = frames.remove(0);
            let version = store.table(&path).replace_where(frame, filter, &options);
            version.map(|version| version.into_iter().map(Done::Version).collect()).map_err(Failure::from)
        } else if self.upsert || self.key.is_some() {
            self.write_by_key(&store, frames, &options)
        } else {
            let versions =
                if self.append { store.append_many(frames, &options) } else { store.write_many(frames, &options) };
            versions.map(|versions| versions.into_iter().map(Done::Version).collect()).map_err(Failure::from)
        };
        bar.clear();
        let done = done?;
        store.close()?;
        for (path, done) in paths.iter().zip(done) {
            match done {
                Done::Version(version) => {
                    writeln!(out, "{path}: version {}, {}", version.version, figures::counted(version.rows, "row"))?;
                }
                Done::Rows(rows) => writeln!(out, "{path}: {} put", figures::counted(rows, "row"))?,
            }
        }
        Ok(())
    }

    /// Writes to tables with a key, in one commit.
    fn write_by_key(
        &self,
        store: &Store,
        frames: Vec<(String, Frame<'_>)>,
        options: &WriteOptions,
    ) -> Result<Vec<Done>, Failure> {
        let tx = store.transaction()?;
        let (mut paths, mut put) = (Vec::with_capacity(frames.len()), Vec::with_capacity(frames.len()));
        for (path, frame) in frames {
            let new = match (&self.key, store.table(&path).stat()) {
                (Some(key), Ok(stat)) if !stat.keyed || stat.sort != *key => {
                    let (own, key) = (stat.sort.join(", "), key.join(", "));
                    let own = if stat.keyed { format!("its key is {own}") } else { "it has no key".to_owned() };
                    return Err(
                        Error::invalid(format!("'{path}' already exists, and its key is not {key}: {own}")).into()
                    );
                }
                (Some(key), Err(error)) if error.kind() == ErrorKind::NotFound => {
                    let key = TableOptions { key: key.clone(), ..TableOptions::default() };
                    tx.table(&path).create(frame.schema().clone(), key)?;
                    true
                }
                (_, Err(error)) => return Err(error.into()),
                _ => false,
            };
            put.push(if self.upsert {
                Some(tx.table(&path).upsert(frame, options)?.rows)
            } else if self.append || new {
                tx.append(&path, frame, options)?;
                None
            } else {
                tx.write(&path, frame, options)?;
                None
            });
            paths.push(path);
        }
        tx.commit()?;
        let done = |(path, put): (String, Option<u64>)| match put {
            Some(rows) => Ok(Done::Rows(rows)),
            None => Ok(Done::Version(store.table(&path).versions()?.pop().expect("every table has a version"))),
        };
        paths.into_iter().zip(put).map(done).collect()
    }

    /// Whether tables that are there keep rows.
    fn adds(&self) -> bool {
        self.append || self.upsert || self.filter.is_some()
    }

    fn path_of(&self, file: &Path) -> Result<String, Failure> {
        if let Some(table) = &self.table {
            return Ok(table.clone());
        }
        let unnamed =
            || Failure::Usage(format!("{} has no name to use for a table; set one with --table", files::name(file)));
        if files::is_stdin(file) || ["/dev", "/proc"].iter().any(|folder| file.starts_with(folder)) {
            return Err(unnamed());
        }
        let plain = source::uncompressed_name(file);
        let name = plain.file_stem().and_then(|stem| stem.to_str()).ok_or_else(unnamed)?;
        Ok(match &self.under {
            Some(under) => format!("{}/{name}", under.trim_end_matches('/')),
            None => name.to_owned(),
        })
    }

    /// Where the rows go: rows for an existing table get its columns.
    fn destination(&self, store: &Store, path: &str, sources: &[Source]) -> Result<Destination, Failure> {
        match store.table(path).schema(&AsOf::Newest) {
            Ok(schema) if self.evolve => {
                Ok(Destination { schema: source::schema_beside(sources, &schema), added: true })
            }
            Ok(schema) if self.adds() => Ok(Destination { schema, added: true }),
            Err(error) if self.adds() && !(self.upsert && self.key.is_some()) => Err(error.into()),
            _ => Ok(Destination { schema: source::schema_of(sources), added: false }),
        }
    }
}
