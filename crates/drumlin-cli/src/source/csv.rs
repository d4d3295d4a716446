//! Rows of CSV. Types are those of the table that rows are added to, or set with --type, or inferred from the first rows.
//!
//! An empty value is null, in text columns too: CSV cannot distinguish them.

use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::csv::ReaderBuilder;
use arrow::csv::reader::{Decoder, Format};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use drumlin::{Error, Result, TypeName};

use super::csv_types::Seen;
use super::form::{Origin, TextForm, check_encoding, misfit, names, not_utf8};
use super::text::{can_hold, convert, convert_inferred};

const BATCH_ROWS: usize = 16_384;
const BUFFER_BYTES: usize = 1 << 18;

/// `form` with the delimiter that the file name implies, if none was set.
pub fn form_of_file(form: &TextForm, file: &Path) -> TextForm {
    let tabs = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("tsv"));
    TextForm { delimiter: form.delimiter.or(Some(if tabs { b'\t' } else { b',' })), ..form.clone() }
}

fn format(form: &TextForm) -> Format {
    Format::default().with_header(form.header).with_delimiter(form.delimiter.unwrap_or(b','))
}

/// Infers the schema from the first rows and the types set. A column that is empty in all of them is text.
pub fn infer(form: &TextForm, bytes: &mut dyn Read) -> Result<SchemaRef> {
    let mut buffered = BufReader::with_capacity(BUFFER_BYTES, bytes);
    check_encoding(buffered.fill_buf().map_err(|e| Error::unavailable(e.to_string()))?)?;
    // The reader refuses rows with too few or too many values; it knows their lines.
    let mut head = Vec::new();
    let named =
        format(form).with_truncated_rows(true).infer_schema(Kept { inner: &mut buffered, kept: &mut head }, Some(1));
    let (named, _) = named.map_err(|e| {
        let plain = plain(e);
        match plain.message().rsplit_once("at line ") {
            Some((what, line)) if what.contains("UTF-8") => not_utf8(line),
            _ => plain,
        }
    })?;
    if named.fields().is_empty() {
        return form.settle(&named);
    }
    let texts = named.fields().iter().map(|field| Field::new(field.name(), DataType::Utf8, true));
    let texts = Schema::new(texts.collect::<Vec<_>>());
    let rows = read(form, Cursor::new(head).chain(buffered), &texts, &texts, false)?;
    let mut columns: Vec<Seen> = named.fields().iter().map(|_| Seen::default()).collect();
    let mut left = form.sampled().unwrap_or(usize::MAX);
    // What is wrong with a row is said when it is read.
    for batch in rows.map_while(Result::ok) {
        for (seen, column) in columns.iter_mut().zip(batch.columns()) {
            seen.note(&column.as_string::<i32>().slice(0, left.min(batch.num_rows())));
        }
        left = left.saturating_sub(batch.num_rows());
        if left == 0 {
            break;
        }
    }
    let fields = named.fields().iter().zip(&columns);
    let fields = fields.map(|(field, seen)| Field::new(field.name(), seen.data_type(), true));
    form.settle(&Schema::new(fields.collect::<Vec<_>>()))
}

/// Keeps what is read.
struct Kept<'a, R> {
    inner: R,
    kept: &'a mut Vec<u8>,
}

impl<R: Read> Read for Kept<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.kept.extend_from_slice(&buffer[..n]);
        Ok(n)
    }
}

/// A column to read.
struct Column {
    wanted: Field,
    origin: Origin,
}

impl Column {
    fn convert(&self, texts: &StringArray) -> Result<ArrayRef> {
        match self.origin {
            Origin::Sample(_) | Origin::All => convert_inferred(texts, self.wanted.data_type()),
            Origin::Table | Origin::Told => convert(texts, self.wanted.data_type()),
        }
    }
}

/// The rows of `bytes`, whose own schema is `own`, in the types that `target` has for its columns. Without a header the
/// columns are `target`'s, by position. `added` says whether the rows are added to an existing table.
pub fn read<R: Read>(form: &TextForm, bytes: R, own: &Schema, target: &Schema, added: bool) -> Result<Rows<R>> {
    let by_place = !form.header && own.fields().len() == target.fields().len();
    let column = |(at, field): (usize, &Arc<Field>)| {
        let known = if by_place { Some(target.field(at)) } else { target.field_with_name(field.name()).ok() };
        let origin = if added && known.is_some() { Origin::Table } else { form.origin(field.name()) };
        let known = known.unwrap_or(field);
        Column { wanted: Field::new(known.name(), known.data_type().clone(), true), origin }
    };
    let columns: Vec<Column> = own.fields().iter().enumerate().map(column).collect();
    for Column { wanted, .. } in &columns {
        let (name, data_type) = (wanted.name(), wanted.data_type());
        if !can_hold(data_type) {
            return Err(Error::invalid(format!(
                "column '{name}' has type {}, which CSV cannot hold; use JSON lines, Parquet or Arrow",
                TypeName(data_type)
            )));
        }
    }
    let texts = columns.iter().map(|Column { wanted, .. }| Field::new(wanted.name(), DataType::Utf8, true));
    let texts: SchemaRef = Arc::new(Schema::new(texts.collect::<Vec<_>>()));
    let wanted = Arc::new(Schema::new(columns.iter().map(|column| column.wanted.clone()).collect::<Vec<_>>()));
    let decoder = ReaderBuilder::new(texts.clone()).with_format(format(form)).with_batch_size(BATCH_ROWS);
    Ok(Rows {
        bytes: BufReader::with_capacity(BUFFER_BYTES, bytes),
        decoder: decoder.build_decoder(),
        form: form.clone(),
        columns,
        texts,
        wanted,
        raw: Vec::new(),
        line: 1,
        ended: false,
    })
}

/// Rows, batch by batch.
pub struct Rows<R> {
    bytes: BufReader<R>,
    decoder: Decoder,
    form: TextForm,
    columns: Vec<Column>,
    /// All columns as text.
    texts: SchemaRef,
    wanted: SchemaRef,
    /// The text of the batch, to find the line of an error.
    raw: Vec<u8>,
    /// The number of its first line.
    line: u64,
    ended: bool,
}

impl<R: Read> Iterator for Rows<R> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batch().transpose()
    }
}

impl<R: Read> Rows<R> {
    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        self.line += lines(&self.raw);
        self.raw.clear();
        loop {
            let text = self.bytes.fill_buf().map_err(|e| Error::unavailable(e.to_string()))?;
            if text.is_empty() && !self.ended && self.decoder.capacity() > 0 {
                self.end()?;
                break;
            }
            let decoded = self.decoder.decode(text);
            let taken = *decoded.as_ref().unwrap_or(&text.len());
            self.raw.extend_from_slice(&text[..taken]);
            self.bytes.consume(taken);
            match decoded {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => return Err(self.explained(error)),
            }
        }
        // Arrow checks only that all values one after another are UTF-8. A batch ends with a row, so it is UTF-8 by itself.
        let batch = match check_utf8(&self.raw).and_then(|()| self.decoder.flush()) {
            Ok(batch) => batch,
            Err(error) => return Err(self.explained(error)),
        };
        let Some(batch) = batch else { return Ok(None) };
        let columns = batch.columns().iter().zip(&self.columns);
        let columns: Result<Vec<ArrayRef>> =
            columns.map(|(texts, column)| column.convert(texts.as_string::<i32>())).collect();
        match columns {
            Ok(columns) => Ok(Some(RecordBatch::try_new(self.wanted.clone(), columns)?)),
            Err(error) => Err(self.explained(ArrowError::ParseError(error.message().to_owned()))),
        }
    }

    /// Decodes the last row, which may lack a line end. If a quote is still open, it has swallowed all lines after it.
    fn end(&mut self) -> Result<()> {
        self.ended = true;
        let mut ended = || -> Result<bool, ArrowError> {
            self.decoder.decode(b"\n")?;
            let room = self.decoder.capacity();
            self.decoder.decode(&[])?;
            Ok(self.decoder.capacity() == room)
        };
        match ended() {
            Ok(true) => Ok(()),
            Ok(false) => {
                let line = self.line + lines(&self.raw[..self.last_row()]);
                Err(Error::invalid(format!(
                    "line {line}: a quote is never closed; close it, or double it if it is part of the value"
                )))
            }
            Err(error) => Err(self.explained(error)),
        }
    }

    /// Where the last row begins in the text of the batch.
    fn last_row(&self) -> usize {
        let mut last = self.raw.len();
        self.rows(|start, _, _| {
            last = start;
            Ok(())
        })
        .unwrap_or_default();
        last
    }

    /// Calls `each` for each row in the text of the batch: its start, its text, and its values as text or the error.
    fn rows(&self, mut each: impl FnMut(usize, &[u8], Result<RecordBatch, ArrowError>) -> Result<()>) -> Result<()> {
        let mut start = 0;
        let mut header = self.form.header && self.line == 1;
        while start < self.raw.len() {
            start += self.raw[start..].iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
            let text = &self.raw[start..];
            let mut decoder = one_row(&self.form, self.texts.clone());
            let taken = match decoder.decode(text) {
                Ok(taken) => taken,
                Err(error) => {
                    each(start, text, Err(error))?;
                    break;
                }
            };
            let text = &text[..taken];
            if !std::mem::take(&mut header) {
                let ended = check_utf8(text).and_then(|()| decoder.decode(b"\n")).and_then(|_| decoder.decode(&[]));
                match ended.and_then(|_| decoder.flush()) {
                    Ok(Some(row)) => each(start, text, Ok(row))?,
                    Ok(None) => {}
                    Err(error) => each(start, text, Err(error))?,
                }
            }
            start += taken.max(1);
        }
        Ok(())
    }

    /// Finds the line, column and value that caused an error of the batch.
    fn explained(&self, error: ArrowError) -> Error {
        let found = self.rows(|start, _, row| {
            let line = self.line + lines(&self.raw[..start]);
            let row = row.map_err(|e| self.uneven(line, e))?;
            for (at, column) in self.columns.iter().enumerate() {
                let value = row.column(at).as_string::<i32>();
                if let Err(reason) = column.convert(value) {
                    let value = if value.is_null(0) { "" } else { value.value(0) };
                    return Err(misfit(line, &column.wanted, value, reason.message(), column.origin));
                }
            }
            Ok(())
        });
        found.err().unwrap_or_else(|| plain(error))
    }

    /// The error of a row with a wrong number of values, or that is not UTF-8.
    fn uneven(&self, line: u64, error: ArrowError) -> Error {
        let text = error.to_string();
        let Some((_, counts)) = text.rsplit_once("expected ") else {
            return not_utf8(&line.to_string());
        };
        let (expected, got) = counts.split_once(" got ").unwrap_or((counts, "a different number"));
        let columns = names(&self.wanted);
        Error::invalid(format!(
            "line {line}: expected {expected} values ({columns}), got {got}; fix the line, or quote values that contain the delimiter"
        ))
    }
}

/// A decoder for one row, without a header.
fn one_row(form: &TextForm, schema: SchemaRef) -> Decoder {
    ReaderBuilder::new(schema).with_format(format(form).with_header(false)).with_batch_size(1).build_decoder()
}

fn check_utf8(text: &[u8]) -> Result<(), ArrowError> {
    std::str::from_utf8(text).map(drop).map_err(|error| ArrowError::ParseError(error.to_string()))
}

fn lines(text: &[u8]) -> u64 {
    text.iter().filter(|byte| **byte == b'\n').count() as u64
}

fn plain(error: ArrowError) -> Error {
    let text = error.to_string();
    let text = ["Parser error: ", "Csv error: "].iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(&text);
    Error::invalid(text.to_owned())
}
