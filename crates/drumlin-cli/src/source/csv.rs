//! Rows of a CSV file. Types are inferred from a sample, unless told, or known from the table appended to.
//!
//! An empty value is null, in columns of text too: CSV does not tell them apart.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::cast;
use arrow::csv::ReaderBuilder;
use arrow::csv::reader::Format;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use drumlin::{Error, Result};

use super::Batches;
use crate::text_form::UTC;

const BATCH_ROWS: usize = 16_384;
const BUFFER_BYTES: usize = 1 << 18;

/// A column's name and the type that the user says it has.
#[derive(Clone, Debug)]
pub struct ColumnType(String, DataType);

/// Parses `NAME=TYPE`.
pub fn parse_column_type(text: &str) -> Result<ColumnType, String> {
    let (name, data_type) = text.rsplit_once('=').ok_or("expected NAME=TYPE, such as price=Decimal128(12,2)")?;
    let data_type = data_type.parse().map_err(|_| {
        format!("'{data_type}' is no Arrow type; expected one such as Utf8, Int32, Float64, Date32, Decimal128(12,2)")
    })?;
    Ok(ColumnType(name.to_owned(), data_type))
}

/// Parses a delimiter: one ASCII character, `\t` or `tab`.
pub fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" | b"tab" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err(format!("'{text}' is no delimiter; expected one ASCII character, or tab")),
    }
}

/// How CSV files are read.
#[derive(Clone, Debug)]
pub struct CsvForm {
    /// Whether the first line names the columns.
    pub header: bool,
    /// What stands between values; `None`: a tab in `.tsv` files, a comma in others.
    pub delimiter: Option<u8>,
    /// Rows looked at to infer types; 0 is all.
    pub sample: usize,
    /// Types told.
    pub types: Vec<ColumnType>,
}

impl CsvForm {
    /// The same with the delimiter that the name of the file tells, if none was given.
    pub fn of_file(&self, file: &Path) -> Self {
        let tabs = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("tsv"));
        Self { delimiter: self.delimiter.or(Some(if tabs { b'\t' } else { b',' })), ..self.clone() }
    }

    fn format(&self) -> Format {
        Format::default().with_header(self.header).with_delimiter(self.delimiter.unwrap_or(b','))
    }

    /// The schema, from a sample of the rows and the types told. A column that is empty all over is text.
    pub fn infer(&self, file: File) -> Result<SchemaRef> {
        let sample = (self.sample > 0).then_some(self.sample);
        let buffered = BufReader::with_capacity(BUFFER_BYTES, file);
        let (schema, _) = self.format().infer_schema(buffered, sample).map_err(plain)?;
        if schema.fields().is_empty() {
            return Err(Error::invalid("it is empty: there is no column to import"));
        }
        for ColumnType(name, _) in &self.types {
            if schema.index_of(name).is_err() {
                let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
                return Err(Error::invalid(format!("--type '{name}': the columns are '{}'", names.join("', '"))));
            }
        }
        let field = |field: &Arc<Field>| {
            let told = self.types.iter().find(|ColumnType(name, _)| name == field.name());
            let data_type = match (told, field.data_type()) {
                (Some(ColumnType(_, data_type)), _) => data_type.clone(),
                (None, DataType::Null) => DataType::Utf8,
                (None, inferred) => inferred.clone(),
            };
            Field::new(field.name(), data_type, true)
        };
        Ok(Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>())))
    }

    /// The rows of a file whose own schema is `own`, in the types that `target` has for its columns. Without a header the
    /// columns are `target`'s, one by one.
    pub fn read(&self, file: File, own: &Schema, target: &Schema) -> Result<Batches> {
        let by_place = !self.header && own.fields().len() == target.fields().len();
        let wanted: Vec<Field> = own
            .fields()
            .iter()
            .enumerate()
            .map(|(at, field)| {
                let known = if by_place { Some(target.field(at)) } else { target.field_with_name(field.name()).ok() };
                let known = known.unwrap_or(field);
                Field::new(known.name(), known.data_type().clone(), true)
            })
            .collect();
        let parsed: Vec<Field> = wanted
            .iter()
            .map(|field| Ok(Field::new(field.name(), parsed_type(field)?, true)))
            .collect::<Result<_>>()?;
        let read = Arc::new(AtomicU64::new(0));
        let counted = Counted { file, read: read.clone() };
        let reader = ReaderBuilder::new(Arc::new(Schema::new(parsed)))
            .with_format(self.format())
            .with_batch_size(BATCH_ROWS)
            .build_buffered(BufReader::with_capacity(BUFFER_BYTES, counted))
            .map_err(plain)?;
        let wanted = Arc::new(Schema::new(wanted));
        let sampled = self.sample > 0;
        Ok(Box::new(reader.map(move |batch| {
            let batch = batch.map_err(|e| explained(e, sampled))?;
            let columns = batch.columns().iter().zip(wanted.fields()).map(|(column, field)| relabelled(column, field));
            let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
            Ok((RecordBatch::try_new(wanted.clone(), columns)?, read.load(Ordering::Relaxed)))
        })))
    }
}

/// What a column is parsed as, so that it can become `field`'s type without loss.
fn parsed_type(field: &Field) -> Result<DataType> {
    use DataType::*;
    match field.data_type() {
        Timestamp(unit, Some(_)) => Ok(Timestamp(*unit, Some(UTC.into()))),
        LargeUtf8 => Ok(Utf8),
        Dictionary(_, values) if matches!(**values, Utf8 | LargeUtf8 | Utf8View) => Ok(Utf8),
        other @ (Boolean | Utf8 | Utf8View | Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..) | Null) => {
            Ok(other.clone())
        }
        other if other.is_numeric() => Ok(other.clone()),
        other => Err(Error::invalid(format!("column '{}' has type {other}, which CSV cannot hold", field.name()))),
    }
}

/// Brings a column from [`parsed_type`] to `field`'s type: the same text or instant in another dress.
fn relabelled(column: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    if column.data_type() == field.data_type() { Ok(column.clone()) } else { Ok(cast(column, field.data_type())?) }
}

/// The schema in which rows of both can be: types that differ become the wider of both, or text.
pub fn agree(a: &SchemaRef, b: &SchemaRef) -> SchemaRef {
    let field = |field: &Arc<Field>| {
        let other = b.field_with_name(field.name()).map_or(field.data_type(), Field::data_type);
        Field::new(field.name(), agreed(field.data_type(), other), true)
    };
    Arc::new(Schema::new(a.fields().iter().map(field).collect::<Vec<_>>()))
}

fn agreed(a: &DataType, b: &DataType) -> DataType {
    use DataType::*;
    match (a, b) {
        _ if a == b => a.clone(),
        (Int64, Float64) | (Float64, Int64) => Float64,
        (Date32, Timestamp(unit, None)) | (Timestamp(unit, None), Date32) => Timestamp(*unit, None),
        (Timestamp(a, None), Timestamp(b, None)) => Timestamp(*a.max(b), None),
        _ => Utf8,
    }
}

fn plain(error: arrow::error::ArrowError) -> Error {
    let text = error.to_string();
    Error::invalid(text.strip_prefix("Parser error: ").unwrap_or(&text).to_owned())
}

/// A value that does not parse may be one that the sample did not show.
fn explained(error: arrow::error::ArrowError, sampled: bool) -> Error {
    let hint = if sampled { ", or --sample 0 to look at every row" } else { "" };
    let text = plain(error);
    Error::invalid(format!("{}; give --type COLUMN=TYPE{hint}", text.message()))
}

/// Counts what is read of a file.
struct Counted {
    file: File,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}
