//! Rows of JSON lines: an object a line. Types are inferred from the first rows, unless told, or known from the table
//! that rows are added to. A member that is not there is null; one that no column takes is an error.

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
use super::text::{NO_VALUE, Parser, convert};

const BATCH_LINES: usize = 8192;
/// A batch ends with the line that reaches it.
const BATCH_BYTES: usize = 16 << 20;
const BUFFER_BYTES: usize = 1 << 18;

/// The schema, from the first rows and the types told. A member that is null in all of them is text.
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
            "line {line} has a value of another kind (an object, an array or neither) than the lines before: {}",
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

/// The next object; its members are noted.
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
                        "line {line}, column '{key}': it holds an integer beyond Int64, which would be rounded; give --type '{key}=TYPE' with the type of the whole column, such as List(UInt64)"
                    )));
                }
                _ => {}
            }
            columns.note(key);
        }
        return Ok(Some(value));
    }
}

/// Whether it is an integer that would be taken for a number with a fraction, and rounded.
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

/// The names of columns, in the order in which they were seen.
#[derive(Default)]
struct Columns {
    names: Vec<String>,
    known: HashSet<String>,
    /// Those with integers beyond Int64.
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

/// The keys of an object, in order, which a parsed value does not keep.
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

/// Whether there is anything on a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    Row,
    Blank,
}

/// Lines, counted.
struct Lines<R> {
    bytes: BufReader<R>,
    number: u64,
}

impl<R: Read> Lines<R> {
    fn new(bytes: R) -> Result<Self> {
        let mut bytes = BufReader::with_capacity(BUFFER_BYTES, bytes);
        let head = bytes.fill_buf().map_err(|e| Error::unavailable(e.to_string()))?;
        check_encoding(head)?;
        // The mark that some programs begin their files with.
        if head.starts_with(b"\xef\xbb\xbf") {
            bytes.consume(3);
        }
        Ok(Self { bytes, number: 0 })
    }

    /// Appends the next line, if there is one.
    fn next_into(&mut self, text: &mut Vec<u8>) -> Result<Option<Line>> {
        let start = text.len();
        let n = self.bytes.read_until(b'\n', text).map_err(|e| Error::unavailable(e.to_string()))?;
        self.number += u64::from(n > 0);
        let kind = if text[start..].trim_ascii_start().is_empty() { Line::Blank } else { Line::Row };
        Ok((n > 0).then_some(kind))
    }
}

/// The rows of `bytes` in the types of `target`. `added` says whether they are for a table that is there.
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
    // Numbers and truth values become text where text is wanted: as they stand there.
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
                    let found = format!("{rows} lines hold {} objects", batch.num_rows());
                    return Err(self.explained(first, Error::invalid(found)));
                }
                Err(error) => return Err(self.explained(first, error)),
            }
        }
    }

    /// An error of the batch that begins with line `first`, with line, column and value.
    fn explained(&self, first: u64, error: Error) -> Error {
        let lines = self.text.split(|byte| *byte == b'\n').zip(first..);
        for (text, line) in lines.filter(|(text, _)| !text.trim_ascii().is_empty()) {
            if let Err(error) = self.check(text, line) {
                return error;
            }
        }
        error
    }

    /// Fails as the line does.
    fn check(&self, text: &[u8], line: u64) -> Result<()> {
        let value = object(text, line)?;
        let members = value.as_object().into_iter().flatten();
        for (name, _) in members {
            if self.wanted.index_of(name).is_err() {
                let columns = names(&self.wanted);
                let advice = match (self.added, self.form.sampled()) {
                    (true, _) => "the table has no such column".to_owned(),
                    (false, Some(rows)) => {
                        format!("the first {rows} rows have no such member: give --sample 0 to look at every row")
                    }
                    (false, None) => "remove it".to_owned(),
                };
                return Err(Error::invalid(format!(
                    "line {line}: '{name}' is none of the columns {columns}; {advice}"
                )));
            }
        }
        for (at, field) in self.wanted.fields().iter().enumerate() {
            let own = Value::from_iter(value.get(field.name()).map(|value| (field.name().clone(), value.clone())));
            let (decoded, wanted) = (Arc::new(self.decoded.project(&[at])?), Arc::new(self.wanted.project(&[at])?));
            let batches = decode(&mut decoder(decoded, 1)?, own.to_string().as_bytes());
            let fitted = batches.map_err(|_| Error::invalid(NO_VALUE));
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
        // What is left is more than an object, or less.
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
    let invalid = |what: String| {
        Error::invalid(format!("line {line}: {what}; expected JSON lines: one object a line, such as {{\"n\": 1}}"))
    };
    match serde_json::from_slice(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(Value::Array(_)) => Err(invalid("this is an array; 'jq -c .[]' makes lines of its elements".to_owned())),
        Ok(_) => Err(invalid("this is no object".to_owned())),
        Err(e) if e.is_eof() && text.trim_ascii_start().starts_with(b"{") => {
            Err(invalid("an object begins here and does not end on this line".to_owned()))
        }
        Err(e) if e.is_eof() && text.trim_ascii_start().starts_with(b"[") => {
            Err(invalid("an array begins here; 'jq -c .[]' makes lines of its elements".to_owned()))
        }
        Err(e) => {
            let text = e.to_string();
            let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
            Err(invalid(format!("this is not JSON: {what} at character {}", e.column())))
        }
    }
}

fn plain(error: ArrowError) -> Error {
    let text = error.to_string();
    Error::invalid(text.strip_prefix("Json error: ").unwrap_or(&text).to_owned())
}
