//! Writes rows of an export in a file format.

use std::io::{BufWriter, Write};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::csv::{Writer as CsvWriter, WriterBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::ipc::writer::FileWriter;
use clap::ValueEnum;
use drumlin::arrays::{changed, holds};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression as Codec, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::failure::{Failure, Outcome};
use crate::files::{Content, NewFile};
use crate::json_rows;
use crate::source::Format;
use crate::text_form::{check_csv, printable};

/// How Parquet files are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compression {
    /// Zstandard: small files
    Zstd,
    /// Snappy: read everywhere
    Snappy,
    /// Not compressed
    None,
}

/// Encoded rows that a Parquet writer keeps before it begins the next row group.
const PARQUET_BUFFER_BYTES: usize = 256 << 20;

/// Rows converted to JSON at a time.
const JSON_ROWS: usize = 4096;

/// Writes rows to a file.
pub enum Sink {
    /// As Parquet.
    Parquet(Box<ArrowWriter<NewFile>>),
    /// As CSV.
    Csv(Box<CsvWriter<BufWriter<NewFile>>>),
    /// As lines of JSON.
    Json(Box<BufWriter<NewFile>>),
    /// As an Arrow IPC file.
    Arrow(Box<FileWriter<BufWriter<NewFile>>>),
}

/// Whether a format is text or binary.
pub fn content(format: Format) -> Content {
    match format {
        Format::Csv | Format::Json => Content::Text,
        Format::Parquet | Format::Arrow => Content::Binary,
    }
}

impl Sink {
    /// Begins a file.
    pub fn new(
        file: NewFile,
        format: Format,
        schema: &SchemaRef,
        compression: Compression,
        delimiter: u8,
    ) -> Result<Self, Failure> {
        Ok(match format {
            Format::Parquet => {
                let codec = match compression {
                    Compression::Zstd => Codec::ZSTD(ZstdLevel::try_new(3)?),
                    Compression::Snappy => Codec::SNAPPY,
                    Compression::None => Codec::UNCOMPRESSED,
                };
                // Dates in milliseconds are dates to other readers if they are coerced; which also renames the elements of lists.
                let dates =
                    schema.fields().iter().any(|field| holds(field.data_type(), &|part| *part == DataType::Date64));
                let properties = WriterProperties::builder().set_compression(codec).set_coerce_types(dates).build();
                let schema = in_parquet(&RecordBatch::new_empty(schema.clone()))?.schema();
                Sink::Parquet(Box::new(ArrowWriter::try_new(file, schema, Some(properties))?))
            }
            Format::Csv => {
                check_csv(schema, "set --format json, parquet or arrow, or name other --columns")?;
                let mut writer = WriterBuilder::new().with_delimiter(delimiter).build(BufWriter::new(file));
                // The header, even if no rows follow.
                writer.write(&printable(&RecordBatch::new_empty(schema.clone()))?)?;
                Sink::Csv(Box::new(writer))
            }
            Format::Json => Sink::Json(Box::new(BufWriter::new(file))),
            Format::Arrow => Sink::Arrow(Box::new(FileWriter::try_new(BufWriter::new(file), schema)?)),
        })
    }

    /// Writes rows.
    pub fn write(&mut self, batch: &RecordBatch) -> Outcome {
        match self {
            Sink::Parquet(writer) => {
                writer.write(&in_parquet(batch)?)?;
                if writer.in_progress_size() > PARQUET_BUFFER_BYTES {
                    writer.flush()?;
                }
            }
            Sink::Csv(writer) => writer.write(&printable(batch)?)?,
            Sink::Json(writer) => {
                let mut text = Vec::new();
                for at in (0..batch.num_rows()).step_by(JSON_ROWS) {
                    text.clear();
                    json_rows::write(&printable(&batch.slice(at, JSON_ROWS.min(batch.num_rows() - at)))?, &mut text)?;
                    writer.write_all(&text).map_err(|e| Failure::Error(e.to_string()))?;
                }
            }
            Sink::Arrow(writer) => writer.write(batch)?,
        }
        Ok(())
    }

    /// Ends the file and renames it to its place; returns its size.
    pub fn finish(self) -> Result<u64, Failure> {
        let file = match self {
            Sink::Parquet(writer) => writer.into_inner()?,
            Sink::Csv(writer) => unbuffered(writer.into_inner())?,
            Sink::Json(writer) => unbuffered(*writer)?,
            Sink::Arrow(mut writer) => {
                writer.finish()?;
                unbuffered(writer.into_inner()?)?
            }
        };
        Ok(file.keep()?)
    }
}

/// Times in units that Parquet has: those in seconds are in milliseconds.
fn in_parquet(batch: &RecordBatch) -> drumlin::Result<RecordBatch> {
    let finer = |data_type: DataType| match data_type {
        DataType::Timestamp(TimeUnit::Second, zone) => DataType::Timestamp(TimeUnit::Millisecond, zone),
        DataType::Time32(TimeUnit::Second) => DataType::Time32(TimeUnit::Millisecond),
        other => other,
    };
    let schema = batch.schema();
    let fields = schema.fields().iter();
    let fields = fields.map(|field| Field::clone(field).with_data_type(changed(field.data_type(), &finer)));
    let finer = Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone());
    if finer == *schema {
        return Ok(batch.clone());
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let columns = batch.columns().iter().zip(finer.fields());
    let columns = columns.map(|(column, field)| cast_with_options(column, field.data_type(), &strict));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    Ok(RecordBatch::try_new(Arc::new(finer), columns)?)
}

fn unbuffered(mut writer: BufWriter<NewFile>) -> Result<NewFile, Failure> {
    let failed = |e: &dyn std::fmt::Display| Failure::Error(e.to_string());
    writer.flush().map_err(|e| failed(&e))?;
    writer.into_inner().map_err(|e| failed(&e))
}
