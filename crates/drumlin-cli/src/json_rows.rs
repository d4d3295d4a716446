//! Rows as lines of JSON.
//!
//! Integers and decimals are JSON numbers with all their digits; times are RFC 3339 text; bytes are hexadecimal; NaN and
//! infinities, for which JSON has no number, are null.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, AsArray, FixedSizeListArray, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::util::display::ArrayFormatter;
use drumlin::Result;

use crate::text_form::OPTIONS;

/// A column, ready to be written.
struct Column<'a> {
    nulls: Option<NullBuffer>,
    kind: Kind<'a>,
}

enum Kind<'a> {
    Null,
    /// Its text is JSON.
    Plain(ArrayFormatter<'a>),
    /// Its text is JSON if it is finite.
    Float(ArrayFormatter<'a>),
    /// Its text is JSON, except that 0 of a negative scale is printed with as many zeros.
    Decimal(ArrayFormatter<'a>),
    /// Its text becomes a JSON string.
    Text(ArrayFormatter<'a>),
    List(Box<dyn Fn(usize) -> Range<usize> + 'a>, Box<Column<'a>>),
    Struct(Vec<(String, Column<'a>)>),
    Map(Box<dyn Fn(usize) -> Range<usize> + 'a>, ArrayFormatter<'a>, Box<Column<'a>>),
}

/// Writes each row of `batch` as an object on a separate line.
pub fn write(batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
    let batch = plain_dictionaries(batch)?;
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns());
    let columns: Vec<(String, Column<'_>)> = columns
        .map(|(field, column)| Ok((quoted(field.name()), Column::new(column.as_ref())?)))
        .collect::<Result<_>>()?;
    for row in 0..batch.num_rows() {
        write_object(&columns, row, out)?;
        out.push(b'\n');
    }
    Ok(())
}

/// Expands dictionaries of nested values; those of plain values print as they are.
fn plain_dictionaries(batch: &RecordBatch) -> Result<RecordBatch> {
    let mut columns = Vec::with_capacity(batch.num_columns());
    for column in batch.columns() {
        columns.push(match column.data_type() {
            DataType::Dictionary(_, values) => cast(column, values)?,
            _ => column.clone(),
        });
    }
    let schema = batch.schema();
    let named = schema.fields().iter().zip(&columns);
    let fields = named.map(|(field, column)| Field::new(field.name(), column.data_type().clone(), true));
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns)?)
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl<'a> Column<'a> {
    fn new(array: &'a dyn Array) -> Result<Self> {
        use DataType::*;
        let formatter = || ArrayFormatter::try_new(array, &OPTIONS);
        let kind = match array.data_type() {
            Null => Kind::Null,
            Boolean => Kind::Plain(formatter()?),
            Float16 | Float32 | Float64 => Kind::Float(formatter()?),
            other if other.is_decimal() => Kind::Decimal(formatter()?),
            other if other.is_numeric() => Kind::Plain(formatter()?),
            List(_) => {
                let list = array.as_list::<i32>();
                let offsets = list.value_offsets();
                Kind::List(
                    Box::new(|row| offsets[row] as usize..offsets[row + 1] as usize),
                    Box::new(Column::new(list.values().as_ref())?),
                )
            }
            LargeList(_) => {
                let list = array.as_list::<i64>();
                let offsets = list.value_offsets();
                Kind::List(
                    Box::new(|row| offsets[row] as usize..offsets[row + 1] as usize),
                    Box::new(Column::new(list.values().as_ref())?),
                )
            }
            FixedSizeList(..) => {
                let list: &FixedSizeListArray = array.as_fixed_size_list();
                Kind::List(
                    Box::new(|row| {
                        let start = list.value_offset(row) as usize;
                        start..start + list.value_length() as usize
                    }),
                    Box::new(Column::new(list.values().as_ref())?),
                )
            }
            ListView(_) => {
                let list = array.as_list_view::<i32>();
                Kind::List(
                    Box::new(|row| {
                        let start = list.value_offset(row) as usize;
                        start..start + list.value_size(row) as usize
                    }),
                    Box::new(Column::new(list.values().as_ref())?),
                )
            }
            LargeListView(_) => {
                let list = array.as_list_view::<i64>();
                Kind::List(
                    Box::new(|row| {
                        let start = list.value_offset(row) as usize;
                        start..start + list.value_size(row) as usize
                    }),
                    Box::new(Column::new(list.values().as_ref())?),
                )
            }
            Struct(fields) => {
                let columns = fields.iter().zip(array.as_struct().columns());
                let columns = columns.map(|(field, column)| Ok((quoted(field.name()), Column::new(column.as_ref())?)));
                Kind::Struct(columns.collect::<Result<_>>()?)
            }
            Map(..) => {
                let map = array.as_map();
                let offsets = map.value_offsets();
                Kind::Map(
                    Box::new(|row| offsets[row] as usize..offsets[row + 1] as usize),
                    ArrayFormatter::try_new(map.keys().as_ref(), &OPTIONS)?,
                    Box::new(Column::new(map.values().as_ref())?),
                )
            }
            _ => Kind::Text(formatter()?),
        };
        Ok(Self { nulls: array.logical_nulls(), kind })
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        match &self.kind {
            Kind::Null => out.extend_from_slice(b"null"),
            Kind::Plain(formatter) => push(out, format_args!("{}", formatter.value(row))),
            Kind::Float(formatter) => {
                let text = formatter.value(row).try_to_string()?;
                let finite = text.bytes().any(|b| b.is_ascii_digit());
                out.extend_from_slice(if finite { text.as_bytes() } else { b"null" });
            }
            Kind::Decimal(formatter) => {
                let text = formatter.value(row).try_to_string()?;
                let zero = text.bytes().all(|digit| digit == b'0');
                out.extend_from_slice(if zero { b"0" } else { text.as_bytes() });
            }
            Kind::Text(formatter) => push(out, format_args!("{}", quoted(&formatter.value(row).try_to_string()?))),
            Kind::List(range, values) => {
                out.push(b'[');
                for (nth, at) in range(row).enumerate() {
                    if nth > 0 {
                        out.push(b',');
                    }
                    values.write(at, out)?;
                }
                out.push(b']');
            }
            Kind::Struct(columns) => write_object(columns, row, out)?,
            Kind::Map(range, keys, values) => {
                out.push(b'{');
                for (nth, at) in range(row).enumerate() {
                    let comma = if nth > 0 { "," } else { "" };
                    push(out, format_args!("{comma}{}:", quoted(&keys.value(at).try_to_string()?)));
                    values.write(at, out)?;
                }
                out.push(b'}');
            }
        }
        Ok(())
    }
}

fn write_object(columns: &[(String, Column<'_>)], row: usize, out: &mut Vec<u8>) -> Result<()> {
    out.push(b'{');
    for (nth, (name, column)) in columns.iter().enumerate() {
        let comma = if nth > 0 { "," } else { "" };
        push(out, format_args!("{comma}{name}:"));
        column.write(row, out)?;
    }
    out.push(b'}');
    Ok(())
}

fn push(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a vector takes all bytes");
}
