//! Makes incoming batches fit a table's schema, or says which column does not, what was expected and what came.
//!
//! Columns are matched by name. Only conversions that keep every value are made: between the layouts of strings, of
//! binary and of dictionaries, to wider integers, floats and decimals, and from columns of type null.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::base::{Error, Result};

/// Brings `batch` into `schema`.
pub fn conform(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let came = batch.schema();
    if Arc::ptr_eq(&came, schema) {
        return Ok(batch.clone());
    }
    check_names(&came, schema)?;
    let columns = schema.fields().iter().map(|field| {
        let column = batch.column_by_name(field.name()).expect("names were checked");
        conform_column(column, field)
    });
    let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
    RecordBatch::try_new(schema.clone(), columns).map_err(|e| Error::schema_mismatch(e.to_string()))
}

fn check_names(came: &Schema, schema: &Schema) -> Result<()> {
    let list = |names: Vec<&str>| names.join("', '");
    let missing: Vec<&str> =
        schema.fields().iter().map(|f| f.name().as_str()).filter(|n| came.index_of(n).is_err()).collect();
    let extra: Vec<&str> =
        came.fields().iter().map(|f| f.name().as_str()).filter(|n| schema.index_of(n).is_err()).collect();
    if !missing.is_empty() || !extra.is_empty() {
        let mut what = Vec::new();
        if !missing.is_empty() {
            what.push(format!("the table has '{}', which the data lacks", list(missing)));
        }
        if !extra.is_empty() {
            what.push(format!("the data has '{}', which the table lacks", list(extra)));
        }
        return Err(Error::schema_mismatch(what.join("; ")));
    }
    if came.fields().len() != schema.fields().len() {
        return Err(Error::schema_mismatch("the data has two columns of the same name"));
    }
    Ok(())
}

fn conform_column(column: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    let (came, wanted) = (column.data_type(), field.data_type());
    let mismatch = || {
        Error::schema_mismatch(format!("column '{}': the table has type {wanted}, the data has {came}", field.name()))
    };
    let column = if came == wanted {
        column.clone()
    } else if came == &DataType::Null {
        new_null_array(wanted, column.len())
    } else if keeps_values(came, wanted) {
        let exact = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(column, wanted, &exact).map_err(|e| mismatch().with_source(e.to_string()))?
    } else {
        return Err(mismatch());
    };
    if !field.is_nullable() && column.logical_null_count() > 0 {
        return Err(Error::schema_mismatch(format!(
            "column '{}' takes no nulls; the data has {}",
            field.name(),
            column.logical_null_count()
        )));
    }
    Ok(column)
}

/// Whether every value of type `from` is a value of type `to`.
fn keeps_values(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    let integer = |t: &DataType| match t {
        Int8 => Some((true, 8)),
        Int16 => Some((true, 16)),
        Int32 => Some((true, 32)),
        Int64 => Some((true, 64)),
        UInt8 => Some((false, 8)),
        UInt16 => Some((false, 16)),
        UInt32 => Some((false, 32)),
        UInt64 => Some((false, 64)),
        _ => None,
    };
    let text = |t: &DataType| matches!(t, Utf8 | LargeUtf8 | Utf8View);
    let binary = |t: &DataType| matches!(t, Binary | LargeBinary | BinaryView);
    let decimal = |t: &DataType| match t {
        Decimal32(p, s) | Decimal64(p, s) | Decimal128(p, s) | Decimal256(p, s) => Some((*p, *s)),
        _ => None,
    };
    if let (Some((from_signed, from_bits)), Some((to_signed, to_bits))) = (integer(from), integer(to)) {
        return match (from_signed, to_signed) {
            (false, true) => from_bits < to_bits,
            (true, false) => false,
            _ => from_bits <= to_bits,
        };
    }
    if let (Some((from_precision, from_scale)), Some((to_precision, to_scale))) = (decimal(from), decimal(to)) {
        return from_scale == to_scale && from_precision <= to_precision;
    }
    match (from, to) {
        (Float16, Float32 | Float64) | (Float32, Float64) => true,
        (Dictionary(_, values), Dictionary(_, to_values)) => values == to_values || keeps_values(values, to_values),
        (Dictionary(_, values), to) => **values == *to || keeps_values(values, to),
        (from, Dictionary(_, values)) => *from == **values || keeps_values(from, values),
        _ => (text(from) && text(to)) || (binary(from) && binary(to)),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int32Array, StringArray, StringViewArray};

    use super::*;
    use crate::base::ErrorKind;

    fn schema(fields: Vec<Field>) -> SchemaRef {
        Arc::new(Schema::new(fields))
    }

    #[test]
    fn columns_are_matched_by_name_and_layouts_converted() {
        let table = schema(vec![Field::new("n", DataType::Int64, true), Field::new("s", DataType::Utf8, true)]);
        let batch = RecordBatch::try_from_iter([
            ("s", Arc::new(StringViewArray::from(vec!["a", "b"])) as ArrayRef),
            ("n", Arc::new(Int32Array::from(vec![1, 2]))),
        ])
        .unwrap();
        let fitted = conform(&batch, &table).unwrap();
        assert_eq!(fitted.schema(), table);
        assert_eq!(fitted.column(1).as_ref(), &StringArray::from(vec!["a", "b"]) as &dyn Array);
    }

    #[test]
    fn a_mismatch_names_the_column_and_both_types() {
        let table = schema(vec![Field::new("n", DataType::Int32, false)]);
        let batch = |name: &str, column: ArrayRef| RecordBatch::try_from_iter([(name, column)]).unwrap();
        for (bad, words) in [
            (batch("n", Arc::new(StringArray::from(vec!["1"]))), ["column 'n'", "Int32", "Utf8"]),
            (batch("m", Arc::new(Int32Array::from(vec![1]))), ["the table has 'n'", "lacks", "the data has 'm'"]),
            (batch("n", Arc::new(Int32Array::from(vec![None, Some(1)]))), ["column 'n'", "no nulls", "has 1"]),
        ] {
            let error = conform(&bad, &table).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
            for word in words {
                assert!(error.message().contains(word), "{error} lacks {word}");
            }
        }
    }
}
