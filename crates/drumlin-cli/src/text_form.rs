//! Values in a form that can be printed. Times in named zones become the same instants in UTC, because printing in a
//! zone needs its rules, which the command does not include.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};
use arrow::util::display::FormatOptions;
use drumlin::{Error, Result, TypeName};

/// The name of UTC where only offsets are known.
pub const UTC: &str = "+00:00";

/// How values are printed; errors are raised, not printed.
pub const OPTIONS: FormatOptions<'static> = FormatOptions::new().with_display_error(false);

/// At most the first `most` characters of `text`.
pub fn cut_short(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

/// `batch` with every column in a type that prints.
pub fn printable(batch: &RecordBatch) -> Result<RecordBatch> {
    let schema = batch.schema();
    let fields = schema.fields();
    if fields.iter().all(|field| printable_type(field.data_type()).is_none()) {
        return Ok(batch.clone());
    }
    let mut columns = Vec::with_capacity(fields.len());
    for (field, column) in fields.iter().zip(batch.columns()) {
        columns.push(match printable_type(field.data_type()) {
            Some(data_type) => cast(column, &data_type)?,
            None => column.clone(),
        });
    }
    let fields: Fields = fields.iter().map(|field| printable_field(field).unwrap_or_else(|| field.clone())).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// Fails if CSV cannot hold a column of `schema`; `way` says how to go on.
pub fn check_csv(schema: &Schema, way: &str) -> Result<()> {
    match schema.fields().iter().find(|field| field.data_type().is_nested()) {
        None => Ok(()),
        Some(field) => Err(Error::invalid(format!(
            "column '{}' is of type {}, which CSV cannot hold; {way}",
            field.name(),
            TypeName(field.data_type())
        ))),
    }
}

fn printable_field(field: &FieldRef) -> Option<FieldRef> {
    let data_type = printable_type(field.data_type())?;
    Some(Arc::new(Field::clone(field).with_data_type(data_type)))
}

/// The type to print instead, if this one does not print.
pub fn printable_type(data_type: &DataType) -> Option<DataType> {
    use DataType::*;
    match data_type {
        Timestamp(unit, Some(zone)) if !is_offset(zone) => Some(Timestamp(*unit, Some(UTC.into()))),
        List(field) => printable_field(field).map(List),
        LargeList(field) => printable_field(field).map(LargeList),
        FixedSizeList(field, n) => printable_field(field).map(|field| FixedSizeList(field, *n)),
        Dictionary(key, values) => printable_type(values).map(|values| Dictionary(key.clone(), Box::new(values))),
        Struct(fields) => {
            let changed: Vec<Option<FieldRef>> = fields.iter().map(printable_field).collect();
            let any = changed.iter().any(Option::is_some);
            let all = changed.into_iter().zip(fields).map(|(new, old)| new.unwrap_or_else(|| old.clone()));
            any.then(|| Struct(all.collect()))
        }
        _ => None,
    }
}

fn is_offset(zone: &str) -> bool {
    zone.starts_with(['+', '-'])
}
