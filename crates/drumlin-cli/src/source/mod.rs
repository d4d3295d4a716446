//! What is imported: files and streams of rows, first inspected for their schema, then read one after the other.

mod csv;
mod csv_types;
mod form;
mod guarded;
mod input;
mod ipc;
mod ipc_legacy;
mod json;
mod json_columns;
mod json_types;
mod number;
mod parquet;
mod parquet_intervals;
mod text;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use clap::ValueEnum;
use drumlin::arrays::conform;
use drumlin::{Cancel, Error, Result};

pub use form::{ColumnType, TextForm, parse_column_type, parse_delimiter};

use crate::bar::Bar;
use crate::files;
use input::{Batches, Input};

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Apache Parquet
    Parquet,
    /// Comma-separated values
    Csv,
    /// JSON lines: one object per line
    #[value(aliases = ["jsonl", "ndjson"])]
    Json,
    /// Arrow IPC: a file (Feather V2) or a stream
    #[value(aliases = ["feather", "ipc"])]
    Arrow,
}

impl Format {
    /// The format that the name of a file indicates.
    pub fn of(file: &Path) -> Result<Self> {
        let extension = file.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("parquet" | "pq" | "parq") => Ok(Format::Parquet),
            Some("csv" | "tsv" | "txt") => Ok(Format::Csv),
            Some("json" | "jsonl" | "ndjson") => Ok(Format::Json),
            Some("arrow" | "arrows" | "feather" | "ipc") => Ok(Format::Arrow),
            _ => Err(Error::invalid(format!(
                "{}: the format is not clear from the name; set it with --format parquet, csv, json or arrow",
                files::name(file)
            ))),
        }
    }

    /// Whether types are inferred from values.
    fn is_text(self) -> bool {
        matches!(self, Format::Csv | Format::Json)
    }
}

/// The name of a file without the extension of its compression.
pub fn uncompressed_name(file: &Path) -> PathBuf {
    let compressed =
        |extension: &&std::ffi::OsStr| ["gz", "zst", "zstd"].iter().any(|e| extension.eq_ignore_ascii_case(e));
    match file.extension().filter(compressed) {
        Some(_) => file.with_extension(""),
        None => file.to_owned(),
    }
}

/// Something to import.
pub struct Source {
    input: Input,
    format: Format,
    schema: SchemaRef,
    form: TextForm,
}

impl Source {
    /// Inspects `file`; a regular one is closed again.
    pub fn new(file: &Path, format: Option<Format>, form: &TextForm) -> Result<Self> {
        let plain = uncompressed_name(file);
        // What is not there, or no file, has no name that would tell.
        let unclear = |unclear| files::no_file(file).unwrap_or(unclear);
        let format = format.map_or_else(|| Format::of(&plain).map_err(unclear), Ok)?;
        let mut input = Input::open(file)?;
        check_magic(&mut input, format).map_err(|e| of(&input.name(), e))?;
        let form = csv::form_of_file(form, &plain);
        let schema = schema(&mut input, format, &form).and_then(with_unique_names);
        let schema = schema.map_err(|e| of(&input.name(), e))?;
        Ok(Self { input, format, schema, form })
    }

    /// Where it is.
    pub fn file(&self) -> &Path {
        self.input.place()
    }

    /// Its size, if that is known.
    pub fn bytes(&self) -> Option<u64> {
        self.input.bytes()
    }

    /// The rows; for text formats, in the types of `target`. `added` says whether they are for an existing table.
    fn read(self, target: &Schema, added: bool) -> Result<Batches> {
        match self.format {
            Format::Parquet => parquet::read(self.input),
            Format::Arrow => ipc::read(self.input),
            Format::Csv => {
                let (bytes, taken) = self.input.into_bytes()?;
                Ok(counted(csv::read(&self.form, bytes, &self.schema, target, added)?, taken))
            }
            Format::Json => {
                let (bytes, taken) = self.input.into_bytes()?;
                Ok(counted(json::read(&self.form, bytes, target, added)?, taken))
            }
        }
    }
}

/// Fails if the first bytes are those of another format.
fn check_magic(input: &mut Input, format: Format) -> Result<()> {
    let (is, name) = match input.first(6)?.as_slice() {
        [b'P', b'A', b'R', b'1', ..] => (Format::Parquet, "parquet"),
        b"ARROW1" => (Format::Arrow, "arrow"),
        _ => return Ok(()),
    };
    match is == format {
        true => Ok(()),
        false => Err(Error::invalid(format!("it is a file of another format; set --format {name}"))),
    }
}

fn schema(input: &mut Input, format: Format, form: &TextForm) -> Result<SchemaRef> {
    if format.is_text() && form.sampled().is_none() && input.is_stream() {
        // Inference reads the whole input, which may not fit in memory.
        input.spool()?;
    }
    match format {
        Format::Parquet => parquet::schema(input),
        Format::Arrow => ipc::schema(input),
        Format::Csv => input.look(|bytes| csv::infer(form, bytes)),
        Format::Json => input.look(|bytes| json::infer(form, bytes)),
    }
}

/// Refuses a schema in which two columns have the same name.
fn with_unique_names(schema: SchemaRef) -> Result<SchemaRef> {
    let mut seen = HashSet::new();
    match schema.fields().iter().find(|field| !seen.insert(field.name())) {
        Some(twice) => Err(Error::invalid(format!("two columns are named '{}'; rename one", twice.name()))),
        None => Ok(schema),
    }
}

fn counted(rows: impl Iterator<Item = Result<RecordBatch>> + 'static, taken: Arc<AtomicU64>) -> Batches {
    Box::new(rows.map(move |batch| Ok((batch?, taken.load(Ordering::Relaxed)))))
}

/// Adds the name of the input to an error, unless it already has it.
fn of(name: &str, error: Error) -> Error {
    if error.message().starts_with(name) { error } else { error.context(name) }
}

/// The schema of a new table made from `sources`: that of the first one or, if all of them are text, one that fits all.
pub fn schema_of(sources: &[Source]) -> SchemaRef {
    let first = sources[0].schema.clone();
    if sources.iter().any(|source| !source.format.is_text()) {
        return first;
    }
    sources[1..].iter().fold(first, |schema, source| match source.format {
        // An absent member is null, so files may have different members.
        Format::Json => with_more(&form::agree(&schema, &source.schema), &source.schema),
        _ => form::agree(&schema, &source.schema),
    })
}

/// The schema of rows from `sources` that are added to a table of schema `own`, which gets the columns that it lacks, and wider
/// types: text is read as what the table has, since its types are inferred.
pub fn schema_beside(sources: &[Source], own: &Schema) -> SchemaRef {
    let (schema, is_text) = (schema_of(sources), sources.iter().all(|source| source.format.is_text()));
    let known = |field: &Field| own.field_with_name(field.name()).ok().filter(|_| is_text).cloned();
    let fields = schema.fields().iter().map(|field| known(field).unwrap_or_else(|| Field::clone(field)));
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

/// `schema` with the columns of `other` that it lacks.
fn with_more(schema: &SchemaRef, other: &SchemaRef) -> SchemaRef {
    let more = other.fields().iter().filter(|field| schema.index_of(field.name()).is_err());
    let fields = schema.fields().iter().chain(more).map(|field| Field::clone(field));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The rows of a text, CSV or JSON lines, in inferred types, or in those of the table `target`.
pub fn rows_of_text(
    format: Format,
    form: &TextForm,
    mut text: &[u8],
    target: Option<&Schema>,
) -> Result<Vec<RecordBatch>> {
    let (all, added) = (text, target.is_some());
    let csv = match format {
        Format::Csv => true,
        Format::Json => false,
        Format::Parquet | Format::Arrow => return Err(Error::invalid("expected a text format")),
    };
    let own = if csv { csv::infer(form, &mut text) } else { json::infer(form, &mut text) };
    let own = own.and_then(with_unique_names)?;
    let target = target.unwrap_or(&own);
    match csv {
        true => csv::read(form, all, &own, target, added)?.collect(),
        false => json::read(form, all, target, added)?.collect(),
    }
}

/// Where the rows of `sources` go.
pub struct Destination {
    /// The columns.
    pub schema: SchemaRef,
    /// Whether it is an existing table.
    pub added: bool,
}

/// The rows of `sources`, one after the other, converted to their destination's schema. Files are opened when their
/// turn comes. The bar is moved by the bytes of all imports so far, which `read` counts.
pub fn stream(
    sources: Vec<Source>,
    Destination { schema, added }: Destination,
    bar: Bar,
    read: Arc<AtomicU64>,
    cancel: Cancel,
) -> impl Iterator<Item = Result<RecordBatch>> {
    // Ctrl-C also ends the process at the other end of a pipe, which then looks like the end of the rows.
    let at_end = std::iter::once(cancel.clone()).filter_map(|cancel| cancel.check().err().map(Err));
    let rows = sources.into_iter().flat_map(move |source| {
        let (schema, bar, read, cancel) = (schema.clone(), bar.clone(), read.clone(), cancel.clone());
        let name = source.input.name();
        let batches = source.read(&schema, added).unwrap_or_else(|e| Box::new(std::iter::once(Err(e))));
        let mut before = 0;
        batches.map(move |item| {
            cancel.check()?;
            let fitted = item.and_then(|(batch, at)| {
                let new = at.saturating_sub(before);
                before = at.max(before);
                bar.set(read.fetch_add(new, Ordering::Relaxed) + new);
                conform(&batch, &schema)
            });
            fitted.map_err(|e| of(&name, e))
        })
    });
    rows.chain(at_end)
}
