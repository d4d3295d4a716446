//! How text files (CSV, JSON lines) are read: the user's options, and the types of their columns.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use drumlin::{Error, Result, TypeName, parse_type};

use crate::grid::one_line;
use crate::text_form::cut_short;

/// Characters of a value that a message shows.
const VALUE_CHARS_MAX: usize = 80;

/// A column's name and the type set for it with --type.
#[derive(Clone, Debug)]
pub struct ColumnType(String, DataType);

impl ColumnType {
    /// The column.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Its type.
    pub fn data_type(&self) -> &DataType {
        &self.1
    }
}

/// Parses `NAME=TYPE`.
pub fn parse_column_type(text: &str) -> Result<ColumnType, String> {
    let (name, data_type) = text.rsplit_once('=').ok_or("expected NAME=TYPE, such as price=decimal128(12,2)")?;
    let data_type = parse_type(data_type).map_err(|e| e.message().to_owned())?;
    Ok(ColumnType(name.to_owned(), data_type))
}

/// Parses a delimiter: one ASCII character, `\t` or `tab`.
pub fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" | b"tab" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err(format!("'{text}' is not a delimiter; expected one ASCII character, or tab")),
    }
}

/// How text files are read.
#[derive(Clone, Debug)]
pub struct TextForm {
    /// CSV: whether the first line names the columns.
    pub header: bool,
    /// CSV: the delimiter; `None`: a tab in `.tsv` files, a comma in others.
    pub delimiter: Option<u8>,
    /// Rows from which types are inferred; 0 is all.
    pub sample: usize,
    /// Types set with --type.
    pub types: Vec<ColumnType>,
}

/// Where the type of a column comes from, so that an error can say what to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The existing table.
    Table,
    /// --type.
    Told,
    /// Inferred from this many first rows.
    Sample(usize),
    /// Inferred from all rows.
    All,
}

impl TextForm {
    /// The number of rows from which types are inferred; `None` is all.
    pub fn sampled(&self) -> Option<usize> {
        (self.sample > 0).then_some(self.sample)
    }

    /// The inferred schema with the types set by --type; a column in which all values are null is text.
    pub fn settle(&self, inferred: &Schema) -> Result<SchemaRef> {
        if inferred.fields().is_empty() {
            return Err(Error::invalid("it is empty, so there are no columns to import"));
        }
        for ColumnType(name, _) in &self.types {
            if inferred.index_of(name).is_err() {
                return Err(Error::invalid(format!(
                    "--type '{name}': this column does not exist; the columns are {}",
                    names(inferred)
                )));
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

    /// Where the type of a column of a new table comes from.
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

/// The schema that fits rows of both: types that differ become the wider one, or text.
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
        (Timestamp(a, zone), Timestamp(b, same)) if zone == same => Timestamp(*a.max(b), zone.clone()),
        _ => Utf8,
    }
}

/// Refuses text whose first bytes show that it is not UTF-8.
pub fn check_encoding(head: &[u8]) -> Result<()> {
    match head {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Err(Error::invalid(
            "the text is in UTF-16; convert it to UTF-8 first: iconv -f UTF-16 -t UTF-8 FILE | drumlin import STORE - ...",
        )),
        // Without the mark that says so: one of two bytes is zero in what is written in Latin letters.
        [0, other, ..] | [other, 0, ..] if *other != 0 => Err(Error::invalid(
            "the text has zero bytes; if it is in UTF-16, convert it to UTF-8 first: iconv -f UTF-16LE (or UTF-16BE) -t UTF-8 FILE | \
             drumlin import STORE - ...",
        )),
        _ => Ok(()),
    }
}

/// A line that is not UTF-8.
pub fn not_utf8(line: &str) -> Error {
    Error::invalid(format!(
        "line {line} is not valid UTF-8; convert the file first, for example: iconv -f LATIN1 -t UTF-8 FILE | drumlin import STORE - ..."
    ))
}

/// A value that does not fit the type of its column, and what to do about it.
pub fn misfit(line: u64, field: &Field, value: &str, reason: &str, origin: Origin) -> Error {
    let (name, data_type) = (field.name(), TypeName(field.data_type()));
    let value = cut_short(one_line(value), VALUE_CHARS_MAX);
    let advice = match origin {
        Origin::Table => "the type is the table's: fix the value, or import into another table".to_owned(),
        Origin::Told => "the type was set with --type: fix the value, or set another type".to_owned(),
        Origin::Sample(rows) => format!(
            "the type was inferred from the first {rows} rows: set it with --type '{name}=TYPE' (string accepts any text), or infer it from all rows with --sample 0"
        ),
        Origin::All => {
            format!("the type was inferred from all rows: set another with --type '{name}=TYPE', or fix the value")
        }
    };
    Error::invalid(format!("line {line}, column '{name}': '{value}' {reason} {data_type}; {advice}"))
}
