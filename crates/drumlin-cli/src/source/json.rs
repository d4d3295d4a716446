//! Rows of JSON lines: one object per line. Types are those of the table that rows are added to, or set with --type, or
//! inferred from the first rows. An absent member is null; a member without a column is an error.

use std::collections::HashSet;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow_json::ReaderBuilder;
use arrow_json::reader::{Decoder, infer_json_schema_from_iterator};
use drumlin::{Error, Result};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Number, Value};

use super::form::{Origin, TextForm, check_encoding, misfit, names};
use super::text::{INVALID, Parser, convert};

const BATCH_LINES: usize = 8192;
/// A batch ends with the line that reaches this size.
const BATCH_BYTES: usize = 16 << 20;
const BUFFER_BYTES: usize = 1 << 18;

/// Infers the schema from the first rows and the types set. A member that is null in all of them is text.
pub fn infer(form: &TextForm, bytes: &mut dyn Read) -> Result<SchemaRef> {
    let mut lines = Lines::new(bytes)?;
    let mut columns = Columns::default();
    let mut failed = None;
    let values = std::iter::from_fn(|| match sampled(form, &mut lines, &mut columns) {
        Ok(value) => value.map(Ok),
        Err(error) => {
            let text = error.message().to_owned();
            failed = Some(error);
            Some(Err(ArrowError::JsonError(text)))
        }
    });
    let inferred = infer_json_schema_from_iterator(values.take(form.sampled().unwrap_or(usize::MAX)));
    if let Some(error) = failed {
        return Err(error);
    }
    let inferred = inferred.map_err(|e| {
        let (line, what) = (lines.number, plain(e));
        Error::invalid(format!(
            "line {line} has an object, an array or a plain value where earlier lines have another of these; make them agree: {}",
            what.message()
        ))
    })?;
    let in_order = columns.names.iter().filter_map(|name| {
        let field = inferred.field_with_name(name).ok()?.clone();
        let large = columns.large.contains(name) && field.data_type() == &DataType::Float64;
        Some(if large { field.with_data_type(DataType::UInt64) } else { field })
    });
    form.settle(&Schema::new(in_order.collect::<Vec<_>>()))
}

/// Reads the next object and notes its members.
fn sampled(form: &TextForm, lines: &mut Lines<&mut dyn Read>, columns: &mut Columns) -> Result<Option<Value>> {
    loop {
        let mut text = Vec::new();
        match lines.next_into(&mut text)? {
            None => return Ok(None),
            Some(Line::Blank) => continue,
            Some(Line::Row) => {}
        }
        let value = object(&text, lines.number)?;
        let Keys(keys) = serde_json::from_slice(&text).unwrap_or_default();
        for key in keys {
            match value.get(&key) {
                Some(Value::Number(number)) if is_large(number) => drop(columns.large.insert(key.clone())),
                Some(within) if has_large(within) && form.origin(&key) != Origin::Told => {
                    let line = lines.number;
                    return Err(Error::invalid(format!(
                        "line {line}, column '{key}': an integer does not fit Int64 and would be rounded; set the type of the column, such as --type '{key}=List(UInt64)'"
                    )));
                }
                _ => {}
            }
            columns.note(key);
        }
        return Ok(Some(value));
    }
}

/// Whether it is an integer that does not fit Int64; inference would make it a float, and round it.
fn is_large(number: &Number) -> bool {
    number.is_u64() && !number.is_i64()
}

fn has_large(value: &Value) -> bool {
    match value {
        Value::Number(number) => is_large(number),
        Value::Array(values) => values.iter().any(has_large),
        Value::Object(members) => members.values().any(has_large),
        _ => false,
    }
}

/// The names of columns, in the order of their first appearance.
#[derive(Default)]
struct Columns {
    names: Vec<String>,
    known: HashSet<String>,
    /// Columns with integers that do not fit Int64.
    large: HashSet<String>,
}

impl Columns {
    fn note(&mut self, name: String) {
        if !self.known.contains(&name) {
            self.known.insert(name.clone());
            self.names.push(name);
        }
    }
}

/// The keys of an object in order, which `serde_json::Value` does not keep.
#[derive(Default)]
struct Keys(Vec<String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Keys;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut keys = Vec::new();
                while let Some((key, IgnoredAny)) = map.next_entry()? {
                    keys.push(key);
                }
                Ok(Keys(keys))
            }
        }
        from.deserialize_map(Collect)
    }
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
    let fields = target.fields().iter();
    let wanted: SchemaRef =
        Arc::new(Schema::new(fields.map(|f| f.as_ref().clone().with_nullable(true)).collect::<Vec<_>>()));
    let decoded = wanted.fields().iter().map(|field| {
        let (name, data_type) = (field.name(), field.data_type());
        let decoded = Parser::Json.decoded(data_type).ok_or_else(|| {
            Error::invalid(format!("column '{name}' has type {data_type}, which JSON lines cannot hold"))
        })?;
        Ok(Field::new(name, decoded, true))
    });
    let decoded: SchemaRef = Arc::new(Schema::new(decoded.collect::<Result<Vec<_>>>()?));
    let decoder = decoder(decoded.clone(), BATCH_LINES)?;
    let lines = Lines::new(bytes)?;
    Ok(Rows { lines, decoder, form: form.clone(), decoded, wanted, added, text: Vec::new() })
}

fn decoder(schema: SchemaRef, rows: usize) -> Result<Decoder> {
    // In a text column numbers and booleans keep their literal text.
    let builder = ReaderBuilder::new(schema).with_batch_size(rows).with_coerce_primitive(true).with_strict_mode(true);
    builder.build_decoder().map_err(plain)
}

/// Rows, batch by batch.
pub struct Rows<R> {
    lines: Lines<R>,
    decoder: Decoder,
    form: TextForm,
    decoded: SchemaRef,
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
                match self.lines.next_into(&mut self.text)? {
                    None => break,
                    Some(line) => rows += usize::from(line == Line::Row),
                }
            }
            if self.text.is_empty() {
                return Ok(None);
            }
            if rows == 0 {
                continue;
            }
            let batches = decode(&mut self.decoder, &self.text).and_then(|batches| {
                let batches = batches.iter().map(|batch| converted(batch, &self.wanted));
                Ok(concat_batches(&self.wanted, &batches.collect::<Result<Vec<_>>>()?)?)
            });
            match batches {
                Ok(batch) if batch.num_rows() == rows => return Ok(Some(batch)),
                Ok(batch) => {
                    let found = format!("{rows} lines have {} objects; expected one per line", batch.num_rows());
                    return Err(self.explained(first, Error::invalid(found)));
                }
                Err(error) => return Err(self.explained(first, error)),
            }
        }
    }

    /// Finds the line, column and value that caused an error of the batch, whose first line is `first`.
    fn explained(&self, first: u64, error: Error) -> Error {
        let lines = self.text.split(|byte| *byte == b'\n').zip(first..);
        for (text, line) in lines.filter(|(text, _)| !text.trim_ascii().is_empty()) {
            if let Err(error) = self.check(text, line) {
                return error;
            }
        }
        error
    }

    /// Fails if the line by itself fails.
    fn check(&self, text: &[u8], line: u64) -> Result<()> {
        let value = object(text, line)?;
        let members = value.as_object().into_iter().flatten();
        for (name, _) in members {
            if self.wanted.index_of(name).is_err() {
                let columns = names(&self.wanted);
                let advice = match (self.added, self.form.sampled()) {
                    (true, _) => "the table has no such column".to_owned(),
                    (false, Some(rows)) => {
                        format!("the first {rows} rows do not have it: infer the columns from all rows with --sample 0")
                    }
                    (false, None) => "rename or remove it".to_owned(),
                };
                return Err(Error::invalid(format!(
                    "line {line}: unknown column '{name}' (the columns are {columns}); {advice}"
                )));
            }
        }
        for (at, field) in self.wanted.fields().iter().enumerate() {
            let own = Value::from_iter(value.get(field.name()).map(|value| (field.name().clone(), value.clone())));
            let (decoded, wanted) = (Arc::new(self.decoded.project(&[at])?), Arc::new(self.wanted.project(&[at])?));
            let batches = decode(&mut decoder(decoded, 1)?, own.to_string().as_bytes());
            let fitted = batches.map_err(|_| Error::invalid(INVALID));
            let fitted =
                fitted.and_then(|batches| batches.iter().try_for_each(|batch| converted(batch, &wanted).map(drop)));
            if let Err(reason) = fitted {
                let value = match &own[field.name()] {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let origin = if self.added { Origin::Table } else { self.form.origin(field.name()) };
                return Err(misfit(line, field, &value, reason.message(), origin));
            }
        }
        // Each column is valid by itself; decode the whole line.
        let batches = decode(&mut decoder(self.decoded.clone(), 2)?, text);
        batches.map(drop).map_err(|e| Error::invalid(format!("line {line}: {}", e.message())))
    }
}

/// All rows in `text`.
fn decode(decoder: &mut Decoder, text: &[u8]) -> Result<Vec<RecordBatch>> {
    let (mut at, mut batches) = (0, Vec::new());
    while at < text.len() {
        at += decoder.decode(&text[at..]).map_err(plain)?;
        batches.extend(decoder.flush().map_err(plain)?);
    }
    Ok(batches)
}

fn converted(batch: &RecordBatch, wanted: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(wanted.fields());
    let columns: Vec<ArrayRef> =
        columns.map(|(column, field)| convert(column, field.data_type())).collect::<Result<_>>()?;
    Ok(RecordBatch::try_new(wanted.clone(), columns)?)
}

/// The object on a line.
fn object(text: &[u8], line: u64) -> Result<Value> {
    let invalid = |what: &str| Error::invalid(format!("line {line}: {what}; expected one JSON object per line"));
    const ARRAY: &str = "this is an array, which 'jq -c .[]' splits into lines";
    let begins = |bracket: &[u8]| text.trim_ascii_start().starts_with(bracket);
    match serde_json::from_slice(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
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

fn plain(error: ArrowError) -> Error {
    let text = error.to_string();
    Error::invalid(text.strip_prefix("Json error: ").unwrap_or(&text).to_owned())
}
