//! The columns of a row group, decoded.

use arrow::array::{ArrayRef, BooleanArray, new_null_array};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Schema};
use bytes::Bytes;
use roaring::RoaringBitmap;

use super::{RowGroup, Table};
use crate::base::{Error, Result};
use crate::block::{BlockReader, Directory};
use crate::filter::column_meant;
use crate::segment::{Form, decode, decode_rows};

/// The rows of a row group as an Arrow mask.
pub(super) fn mask(rows: &RoaringBitmap, total: u32) -> BooleanArray {
    let mut words = vec![0_u64; (total as usize).div_ceil(64)];
    for position in rows {
        words[position as usize / 64] |= 1 << (position % 64);
    }
    BooleanArray::new(BooleanBuffer::new(words.into(), 0, total as usize), None)
}

/// The position of the column that `name` means, or an error that lists the existing columns.
pub(super) fn find(schema: &Schema, name: &str) -> Result<usize> {
    schema.index_of(column_meant(name, schema)).map_err(|_| {
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        Error::invalid(format!("column '{name}' does not exist; the columns are '{}'", names.join("', '")))
    })
}

pub(super) fn column_of<'a>(
    directory: &'a Directory,
    group: &RowGroup,
    index: usize,
) -> Result<&'a crate::block::Column> {
    directory.columns.get(index).filter(|_| directory.rows == group.rows).ok_or_else(|| {
        Error::corrupt(format!("block {}: the directory does not fit its row group", group.address.block))
    })
}

/// Casts, if need be.
pub(super) fn into_type(array: ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if array.data_type() == data_type {
        return Ok(array);
    }
    Ok(arrow::compute::cast(&array, data_type)?)
}

/// Decodes `columns` (positions in `schema`) of a row group; columns that its own schema lacks are null.
pub(super) fn decode_columns(
    reader: &BlockReader,
    table: &Table,
    schema: &Schema,
    group: &RowGroup,
    directory: &Directory,
    columns: &[usize],
    form: Form,
) -> Result<Vec<ArrayRef>> {
    let rows = group.rows as usize;
    each_column(reader, table, schema, group, directory, columns, |segment| match segment {
        Source::Missing(wanted) => Ok(new_null_array(wanted, rows)),
        Source::Stored(bytes, own, wanted) => {
            let array = decode(bytes, rows, own, form)?;
            if form == Form::Exact { into_type(array, wanted) } else { Ok(array) }
        }
    })
}

/// The rows `picked`, ascending, of `columns`.
pub(super) fn pick_columns(
    reader: &BlockReader,
    table: &Table,
    schema: &Schema,
    group: &RowGroup,
    directory: &Directory,
    columns: &[usize],
    picked: &[u32],
) -> Result<Vec<ArrayRef>> {
    each_column(reader, table, schema, group, directory, columns, |segment| match segment {
        Source::Missing(wanted) => Ok(new_null_array(wanted, picked.len())),
        Source::Stored(bytes, own, wanted) => into_type(decode_rows(bytes, group.rows as usize, own, picked)?, wanted),
    })
}

/// Where a column comes from.
enum Source<'a> {
    /// From nowhere: all null, of this type.
    Missing(&'a DataType),
    /// From a segment of the first type, to be cast to the second.
    Stored(Bytes, &'a DataType, &'a DataType),
}

/// Reads the segments of columns in one request, and makes an array of each.
fn each_column(
    reader: &BlockReader,
    table: &Table,
    schema: &Schema,
    group: &RowGroup,
    directory: &Directory,
    columns: &[usize],
    make: impl Fn(Source<'_>) -> Result<ArrayRef>,
) -> Result<Vec<ArrayRef>> {
    let own = &table.schemas[group.schema as usize].0;
    let located: Vec<Option<usize>> =
        columns.iter().map(|&index| own.index_of(schema.field(index).name()).ok()).collect();
    let present: Vec<usize> = located.iter().flatten().copied().collect();
    for &index in &present {
        column_of(directory, group, index)?;
    }
    let mut segments = reader.segments(&group.address, directory, &present)?.into_iter();
    let array = |(located, &index): (&Option<usize>, &usize)| -> Result<ArrayRef> {
        let wanted = schema.field(index).data_type();
        let Some(at) = located else { return make(Source::Missing(wanted)) };
        let bytes = segments.next().expect("one for each present column");
        make(Source::Stored(bytes, own.field(*at).data_type(), wanted)).map_err(|e| {
            let (name, block) = (schema.field(index).name(), group.address.block);
            e.context(format!("block {block}, column '{name}' at offset {}", directory.columns[*at].offset))
        })
    };
    located.iter().zip(columns).map(array).collect()
}
