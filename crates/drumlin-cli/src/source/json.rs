//! Rows of JSON lines: one object per line. Types are those of the table that rows are added to, or set with --type, or
//! inferred from the first rows. An absent member is null; a member without a column, or one that is there twice, is an error.

use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use drumlin::{Error, Result, TypeName};
use serde_json::Value;
use serde_json::value::RawValue;

use super::form::{Origin, TextForm, check_encoding, misfit, names, not_utf8};
use super::json_columns::{Column, Members, nullable, unquoted};
use super::json_types::SeenMembers;

const BATCH_LINES: usize = 8192;
/// A batch ends with the line that reaches this size.
const BATCH_BYTES: usize = 16 << 20;
const BUFFER_BYTES: usize = 1 << 18;

/// Infers the schema from the first rows and the types set. A member that is null in all of them is text.
pub fn infer(form: &TextForm, bytes: &mut dyn Read) -> Result<SchemaRef> {
    let mut lines = Lines::new(bytes)?;
    let mut seen = SeenMembers::default();
    let mut text = Vec::new();
    let mut left = form.sampled().unwrap_or(usize::MAX);
    while left > 0 {
        text.clear();
        match lines.next_into(&mut text)? {
            None => break,
            Some(Line::Blank) => continue,
            Some(Line::Row) => left -= 1,
        }
        let line = lines.number;
        seen.note(&members(&text, line)?, 0).map_err(|why| Error::invalid(format!("line {line}, {why}")))?;
    }
    form.settle(&Schema::new(seen.fields()))
}

/// Whether a line is blank.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    Row,
    Blank,
}

/// Reads lines and counts them.
struct Lines<R> {
    bytes: BufReader<R>,
    number: u64,
}

impl<R: Read> Lines<R> {
    fn new(bytes: R) -> Result<Self> {
        let mut bytes = BufReader::with_capacity(BUFFER_BYTES, bytes);
        let head = bytes.fill_buf().map_err(|e| Error::unavailable(e.to_string()))?;
        check_encoding(head)?;
        // A byte order mark.
        if head.starts_with(b"\xef\xbb\xbf") {
            bytes.consume(3);
        }
        Ok(Self { bytes, number: 0 })
    }

    /// Appends the next line to `text`; `None` at the end.
    fn next_into(&mut self, text: &mut Vec<u8>) -> Result<Option<Line>> {
        let start = text.len();
        let n = self.bytes.read_until(b'\n', text).map_err(|e| Error::unavailable(e.to_string()))?;
        self.number += u64::from(n > 0);
        let kind = if text[start..].trim_ascii_start().is_empty() { Line::Blank } else { Line::Row };
        Ok((n > 0).then_some(kind))
    }
}

/// The rows of `bytes` in the types of `target`. `added` says whether the rows are added to an existing table.
pub fn read<R: Read>(form: &TextForm, bytes: R, target: &Schema, added: bool) -> Result<Rows<R>> {
    let wanted = Arc::new(Schema::new(target.fields().iter().map(|field| nullable(field)).collect::<Vec<_>>()));
    let columns = columns(&wanted)?;
    Ok(Rows { lines: Lines::new(bytes)?, form: form.clone(), columns, wanted, added, text: Vec::new() })
}

fn columns(wanted: &Schema) -> Result<Vec<Column>> {
    let column = |field| {
        Column::new(field).ok_or_else(|| {
            let (name, data_type) = (field.name(), TypeName(field.data_type()));
            Error::invalid(format!(
                "column '{name}' has type {data_type}, which JSON lines cannot hold; use Parquet or Arrow"
            ))
        })
    };
    wanted.fields().iter().map(column).collect()
}

/// Rows, batch by batch.
pub struct Rows<R> {
    lines: Lines<R>,
    form: TextForm,
    columns: Vec<Column>,
    wanted: SchemaRef,
    added: bool,
    /// The text of the batch.
    text: Vec<u8>,
}

impl<R: Read> Iterator for Rows<R> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batch().transpose()
    }
}

impl<R: Read> Rows<R> {
    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let first = self.lines.number + 1;
            self.text.clear();
            let mut rows = 0;
            while self.lines.number + 1 - first < BATCH_LINES as u64 && self.text.len() < BATCH_BYTES {
                let start = self.text.len();
                match self.lines.next_into(&mut self.text)? {
                    None => break,
                    Some(Line::Blank) => {}
                    Some(Line::Row) => {
                        push(&self.text[start..], self.lines.number, &self.wanted, &mut self.columns)
                            .map_err(|wrong| self.told(self.lines.number, wrong))?;
                        rows += 1;
                    }
                }
            }
            if self.text.is_empty() {
                return Ok(None);
            }
            if rows == 0 {
                continue;
            }
            let columns = self.columns.iter_mut().map(Column::finish).collect::<Result<Vec<ArrayRef>>>();
            let columns = columns.map_err(|error| self.explained(first, error))?;
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            return Ok(Some(RecordBatch::try_new_with_options(self.wanted.clone(), columns, &options)?));
        }
    }

    /// Finds the line, column and value that caused an error of the batch, whose first line is `first`.
    fn explained(&self, first: u64, error: Error) -> Error {
        let lines = self.text.split(|byte| *byte == b'\n').zip(first..);
        for (text, line) in lines.filter(|(text, _)| !text.trim_ascii().is_empty()) {
            if let Err(wrong) = self.check(text, line) {
                return self.told(line, wrong);
            }
        }
        error
    }

    /// Fails if the line by itself fails.
    fn check(&self, text: &[u8], line: u64) -> Result<(), Wrong> {
        let mut columns = columns(&self.wanted)?;
        push(text, line, &self.wanted, &mut columns)?;
        for (at, column) in columns.iter_mut().enumerate() {
            if let Err(reason) = column.finish() {
                let Members(members) = members(text, line)?;
                let name = self.wanted.field(at).name();
                let value = members.iter().find(|(known, _)| known == name).map_or("null", |(_, value)| value.get());
                return Err(Wrong::Value(at, value.to_owned(), reason.message().to_owned()));
            }
        }
        Ok(())
    }

    /// What is wrong with a line, as messages say it.
    fn told(&self, line: u64, wrong: Wrong) -> Error {
        match wrong {
            Wrong::Line(error) => error,
            Wrong::Twice(name) => {
                Error::invalid(format!("line {line}: the object has the member '{name}' twice; remove or rename one"))
            }
            Wrong::Unknown(name) => {
                let columns = names(&self.wanted);
                let advice = match (self.added, self.form.sampled()) {
                    (true, _) => "the table has no such column".to_owned(),
                    (false, Some(rows)) => {
                        format!(
                            "the first {rows} rows do not have it, so infer the columns from all rows with --sample 0"
                        )
                    }
                    (false, None) => "rename or remove it".to_owned(),
                };
                Error::invalid(format!("line {line}: unknown column '{name}' (the columns are {columns}); {advice}"))
            }
            Wrong::Value(at, value, reason) => {
                let field = self.wanted.field(at);
                let value = unquoted(&value).unwrap_or(value);
                let origin = if self.added { Origin::Table } else { self.form.origin(field.name()) };
                misfit(line, field, &value, &reason, origin)
            }
        }
    }
}

/// What is wrong with a line.
enum Wrong {
    /// It is no object.
    Line(Error),
    /// A member that is no column.
    Unknown(String),
    /// A member that is there twice.
    Twice(String),
    /// A value that does not fit: its column, its text and the reason.
    Value(usize, String, String),
}

impl From<Error> for Wrong {
    fn from(error: Error) -> Self {
        Wrong::Line(error)
    }
}

/// Adds the object on a line to the columns.
fn push(text: &[u8], line: u64, wanted: &Schema, columns: &mut [Column]) -> Result<(), Wrong> {
    let Members(members) = members(text, line)?;
    let mut given: Vec<Option<&RawValue>> = vec![None; columns.len()];
    for (at, (name, value)) in members.iter().enumerate() {
        // Most objects have their members in the order of the columns.
        let at = match wanted.fields().get(at) {
            Some(field) if field.name() == name => at,
            _ => wanted.index_of(name).map_err(|_| Wrong::Unknown(name.clone()))?,
        };
        if given[at].replace(value).is_some() {
            return Err(Wrong::Twice(name.clone()));
        }
    }
    for (at, (column, value)) in columns.iter_mut().zip(given).enumerate() {
        let value = value.map_or("null", RawValue::get);
        column.push(value).map_err(|reason| Wrong::Value(at, value.to_owned(), reason.to_owned()))?;
    }
    Ok(())
}

/// The members of the object on a line.
fn members(text: &[u8], line: u64) -> Result<Members<'_>> {
    let invalid = |what: &str| Error::invalid(format!("line {line}: {what}; expected one JSON object per line"));
    const ARRAY: &str = "this is an array, which 'jq -c .[]' splits into lines";
    let begins = |bracket: &[u8]| text.trim_ascii_start().starts_with(bracket);
    let valid = std::str::from_utf8(text).map_err(|_| not_utf8(&line.to_string()))?;
    if begins(b"{")
        && let Ok(members) = serde_json::from_str(valid)
    {
        return Ok(members);
    }
    match serde_json::from_str::<Value>(valid) {
        Ok(Value::Array(_)) => Err(invalid(ARRAY)),
        Ok(_) => Err(invalid("this is not an object")),
        Err(e) if e.is_eof() && begins(b"{") => Err(invalid("the object does not end on this line")),
        Err(e) if e.is_eof() && begins(b"[") => Err(invalid(ARRAY)),
        Err(e) => {
            let text = e.to_string();
            let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
            Err(invalid(&format!("this is not valid JSON: {what} at column {}", e.column())))
        }
    }
}
