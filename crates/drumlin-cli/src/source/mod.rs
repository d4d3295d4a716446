//! What is imported: files of rows, looked at for their schema first, then opened again one by one and streamed.

mod csv;
mod ipc;
mod parquet;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use clap::ValueEnum;
use drumlin::base::Cancel;
use drumlin::table::conform;
use drumlin::{Error, Result};

pub use csv::{ColumnType, CsvForm, parse_column_type, parse_delimiter};

use crate::bar::Bar;
use crate::files;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Apache Parquet
    Parquet,
    /// Comma-separated values
    Csv,
    /// Arrow IPC file (Feather V2)
    Arrow,
}

impl Format {
    /// The format that the name of a file tells.
    pub fn of(file: &Path) -> Result<Self> {
        let extension = file.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("parquet" | "pq" | "parq") => Ok(Format::Parquet),
            Some("csv" | "tsv" | "txt") => Ok(Format::Csv),
            Some("arrow" | "feather" | "ipc") => Ok(Format::Arrow),
            _ => Err(Error::invalid(format!(
                "{}: its name does not tell the format; give --format parquet, csv or arrow",
                file.display()
            ))),
        }
    }
}

/// A file to import.
pub struct Source {
    file: PathBuf,
    format: Format,
    bytes: u64,
    schema: SchemaRef,
    csv: CsvForm,
}

/// Rows of a file, with the share of the file, in bytes, read so far.
type Batches = Box<dyn Iterator<Item = Result<(RecordBatch, u64)>>>;

impl Source {
    /// Looks at `file` and closes it again.
    pub fn new(file: &Path, format: Option<Format>, csv: &CsvForm) -> Result<Self> {
        let format = format.map_or_else(|| Format::of(file), Ok)?;
        let (handle, bytes) = files::open(file)?;
        let csv = csv.of_file(file);
        let schema = match format {
            Format::Parquet => parquet::schema(handle),
            Format::Csv => csv.infer(handle),
            Format::Arrow => ipc::schema(handle),
        };
        let schema = schema.map_err(|e| e.context(file.display()))?;
        Ok(Self { file: file.to_owned(), format, bytes, schema, csv })
    }

    /// Where it is.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The rows, in the types of `target` as far as a file of text leaves a choice.
    fn read(&self, target: &Schema) -> Result<Batches> {
        let (handle, bytes) = files::open(&self.file)?;
        match self.format {
            Format::Parquet => parquet::read(handle, bytes),
            Format::Csv => self.csv.read(handle, &self.schema, target),
            Format::Arrow => ipc::read(handle, bytes),
        }
    }
}

/// The schema of a new table made of `sources`: the first one's, unless all of them are text, whose types are agreed on.
pub fn schema_of(sources: &[Source]) -> SchemaRef {
    let first = sources[0].schema.clone();
    if sources.iter().any(|source| source.format != Format::Csv) {
        return first;
    }
    sources[1..].iter().fold(first, |schema, source| csv::agree(&schema, &source.schema))
}

/// The rows of `sources`, one after the other, brought to `schema`. Files are opened as their turn comes. The bar is
/// moved by the bytes of all imports so far, which `read` counts.
pub fn stream(
    sources: Vec<Source>,
    schema: SchemaRef,
    bar: Bar,
    read: Arc<AtomicU64>,
    cancel: Cancel,
) -> impl Iterator<Item = Result<RecordBatch>> {
    sources.into_iter().flat_map(move |source| {
        let (schema, bar, read, cancel) = (schema.clone(), bar.clone(), read.clone(), cancel.clone());
        let place = source.file.display().to_string();
        let batches = source.read(&schema).unwrap_or_else(|e| Box::new(std::iter::once(Err(e))));
        let mut before = 0;
        batches.map(move |item| {
            cancel.check()?;
            let fitted = item.and_then(|(batch, at)| {
                let read = read.fetch_add(at - before, Ordering::Relaxed) + at - before;
                before = at;
                bar.set(read);
                conform(&batch, &schema)
            });
            fitted.map_err(|e| e.context(&place))
        })
    })
}
