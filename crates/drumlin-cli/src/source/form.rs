//! How files of text are read: what the user says of them, and the types that their columns get.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use drumlin::{Error, Result};

use crate::grid::one_line;
use crate::text_form::cut_short;

/// Characters of a value that a message shows.
const VALUE_CHARS_MAX: usize = 80;

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

/// How files of text are read.
#[derive(Clone, Debug)]
pub struct TextForm {
    /// CSV: whether the first line names the columns.
    pub header: bool,
    /// CSV: what stands between values; `None`: a tab in `.tsv` files, a comma in others.
    pub delimiter: Option<u8>,
    /// Rows looked at to infer types; 0 is all.
    pub sample: usize,
    /// Types told.
    pub types: Vec<ColumnType>,
}

/// Where the type of a column comes from, so that whoever brings a value that does not fit knows what to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The table that rows are added to.
    Table,
    /// The command line.
    Told,
    /// The first rows, so many.
    Sample(usize),
    /// All rows.
    All,
}

impl TextForm {
    /// Rows looked at to infer types.
    pub fn sampled(&self) -> Option<usize> {
        (self.sample > 0).then_some(self.sample)
    }

    /// What was inferred, with the types told instead; a column without a value is text.
    pub fn settle(&self, inferred: &Schema) -> Result<SchemaRef> {
        if inferred.fields().is_empty() {
            return Err(Error::invalid("it is empty: there is no column to import"));
        }
        for ColumnType(name, _) in &self.types {
            if inferred.index_of(name).is_err() {
                return Err(Error::invalid(format!("--type '{name}': the columns are {}", names(inferred))));
            }
        }
        let field = |field: &FieldRef| {
            let data_type = self.told(field.name()).cloned().unwrap_or_else(|| text_for_nulls(field.data_type()));
            Field::new(field.name(), data_type, true)
        };
        Ok(Arc::new(Schema::new(inferred.fields().iter().map(field).collect::<Vec<_>>())))
    }

    fn told(&self, name: &str) -> Option<&DataType> {
        self.types.iter().find(|ColumnType(told, _)| told == name).map(|ColumnType(_, data_type)| data_type)
    }

    /// Where the type of a column comes from that is not that of a table.
    pub fn origin(&self, column: &str) -> Origin {
        match self.told(column) {
            Some(_) => Origin::Told,
            None => self.sampled().map_or(Origin::All, Origin::Sample),
        }
    }
}

/// The columns of a schema, for messages.
pub fn names(schema: &Schema) -> String {
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    format!("'{}'", names.join("', '"))
}

fn text_for_nulls(data_type: &DataType) -> DataType {
    use DataType::*;
    let within = |field: &FieldRef| {
        let data_type = text_for_nulls(field.data_type());
        Arc::new(Field::clone(field).with_data_type(data_type))
    };
    match data_type {
        Null => Utf8,
        List(field) => List(within(field)),
        Struct(fields) => Struct(fields.iter().map(within).collect()),
        other => other.clone(),
    }
}

/// The schema in which rows of both can be: types that differ become the wider of both, or text.
pub fn agree(a: &SchemaRef, b: &SchemaRef) -> SchemaRef {
    let field = |field: &FieldRef| {
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

/// Refuses text in an encoding that can be told from its first bytes.
pub fn check_encoding(head: &[u8]) -> Result<()> {
    match head {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Err(Error::invalid(
            "it is text in UTF-16; expected UTF-8: give what 'iconv -f UTF-16 -t UTF-8' makes of it to -",
        )),
        _ => Ok(()),
    }
}

/// What is wrong with a line whose bytes are no text.
pub fn no_text(line: &str) -> Error {
    Error::invalid(format!(
        "line {line} has bytes that are not UTF-8; give what 'iconv -f LATIN1 -t UTF-8', or from whatever it is in, makes of it to -"
    ))
}

/// What is wrong with a value, and what to do about it.
pub fn misfit(line: u64, field: &Field, value: &str, reason: &str, origin: Origin) -> Error {
    let (name, data_type) = (field.name(), field.data_type());
    let value = cut_short(one_line(value), VALUE_CHARS_MAX);
    let advice = match origin {
        Origin::Table => "that is the type in the table: change the value, or import into another table".to_owned(),
        Origin::Told => "that is the type given by --type: give another, or change the value".to_owned(),
        Origin::Sample(rows) => format!(
            "that is what the first {rows} rows look like: give --type '{name}=TYPE' (Utf8 takes any text), or --sample 0 to look at every row"
        ),
        Origin::All => format!("give --type '{name}=TYPE' (Utf8 takes any text), or change the value"),
    };
    Error::invalid(format!("line {line}, column '{name}': '{value}' {reason} {data_type}; {advice}"))
}
