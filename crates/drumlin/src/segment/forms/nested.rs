//! Lists, maps and structs: their shape, then their children as segments of their own.
//!
//! ```text
//! struct     = STRUCT     [+NULLS]  bitmap if NULLS, a segment per field
//! list, map  = LIST       [+NULLS]  bitmap if NULLS, varint children, words: length of each row's list,
//!                                   segment of the children (of a map: structs of key and value)
//! fixed list = FIXED_LIST [+NULLS]  bitmap if NULLS, segment of rows x size children
//! list view  = LIST_VIEW  [+NULLS]  bitmap if NULLS, varint children, words: offsets, words: lengths,
//!                                   segment of the children
//! ```
//! Words (words.rs) have 4 bytes, for large lists 8. Children that no row refers to are left out at both ends.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, GenericListArray, GenericListViewArray, MapArray, OffsetSizeTrait,
    StructArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{ArrowNativeType, DataType, Field, FieldRef, Fields};
use arrow::error::ArrowError;
use drumlin_codec::Ptype;

use super::bits::{read_nulls, write_nulls};
use super::tag::{FormTag, NULLS};
use super::wire::{ReadColumn, Reader, WriteColumn, Writer};
use super::words::Words;
use crate::base::{Error, Result, TypeName};
use crate::segment::decode::form::Form;

/// More children than this are treated as damage.
const CHILDREN_MAX: usize = 1 << 31;

fn damaged(error: ArrowError) -> Error {
    Error::corrupt("a nested column is damaged").with_source(error)
}

fn begin(out: &mut Writer, tag: FormTag, array: &dyn Array) {
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
    tag.write(out, nulls.is_some());
    write_nulls(out, nulls);
}

/// Children that Arrow would refuse when read are refused when written: nulls in a field declared non-null, unless they are
/// covered by `outer`, the nulls of the parent.
fn check_declared(what: &str, field: &Field, children: &ArrayRef, outer: Option<&NullBuffer>) -> Result<()> {
    let uncovered = match (children.nulls(), outer) {
        _ if field.is_nullable() => false,
        (None, _) => false,
        (Some(inner), None) => inner.null_count() > 0,
        (Some(inner), Some(outer)) => !outer.contains(inner),
    };
    if uncovered {
        let name = field.name();
        return Err(Error::schema_mismatch(format!(
            "the {what} '{name}' must not have nulls, as its type is declared not null, but the data has some"
        )));
    }
    Ok(())
}

fn write_children(out: &mut Writer, field: &Field, children: &ArrayRef, write_column: WriteColumn) -> Result<()> {
    check_declared("elements", field, children, None)?;
    write_column(out, children)
}

/// Writes a nested column; `false`, and nothing is written, if `array` is not one.
pub(in crate::segment) fn write(out: &mut Writer, array: &ArrayRef, write_column: WriteColumn) -> Result<bool> {
    match array.data_type() {
        DataType::Struct(fields) => write_struct(out, array.as_struct(), fields, write_column)?,
        DataType::List(field) => write_list(out, array.as_list::<i32>(), field, write_column)?,
        DataType::LargeList(field) => write_list(out, array.as_list::<i64>(), field, write_column)?,
        DataType::Map(field, _) => {
            let map = array.as_map();
            begin(out, FormTag::List, map);
            let entries: ArrayRef = Arc::new(map.entries().clone());
            write_lists(out, map.offsets(), field, &entries, write_column)?;
        }
        DataType::FixedSizeList(field, size) => {
            let list = array.as_fixed_size_list();
            begin(out, FormTag::FixedList, list);
            let values = list.values().slice(0, list.len() * size.as_usize());
            // A null list has elements too, of any value.
            let covered = list.nulls().map(|nulls| nulls.expand(size.as_usize()));
            check_declared("elements", field, &values, covered.as_ref())?;
            write_column(out, &values)?;
        }
        DataType::ListView(field) => write_list_view(out, array.as_list_view::<i32>(), field, write_column)?,
        DataType::LargeListView(field) => write_list_view(out, array.as_list_view::<i64>(), field, write_column)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn write_struct(out: &mut Writer, array: &StructArray, fields: &Fields, write_column: WriteColumn) -> Result<()> {
    begin(out, FormTag::Struct, array);
    for (field, column) in fields.iter().zip(array.columns()) {
        check_declared("field", field, column, array.nulls())?;
        write_column(out, column)?;
    }
    Ok(())
}

fn write_list<O: Offset>(
    out: &mut Writer,
    array: &GenericListArray<O>,
    field: &FieldRef,
    write_column: WriteColumn,
) -> Result<()> {
    begin(out, FormTag::List, array);
    write_lists(out, array.offsets(), field, array.values(), write_column)
}

fn write_lists<O: Offset>(
    out: &mut Writer,
    offsets: &OffsetBuffer<O>,
    field: &Field,
    values: &ArrayRef,
    write_column: WriteColumn,
) -> Result<()> {
    let (first, last) = (offsets[0].as_usize(), offsets[offsets.len() - 1].as_usize());
    out.varint((last - first) as u64);
    Words::new::<O>(O::PTYPE, offsets.windows(2).map(|pair| pair[1] - pair[0]).collect(), None).write(out);
    write_children(out, field, &values.slice(first, last - first), write_column)
}

fn write_list_view<O: Offset>(
    out: &mut Writer,
    array: &GenericListViewArray<O>,
    field: &FieldRef,
    write_column: WriteColumn,
) -> Result<()> {
    begin(out, FormTag::ListView, array);
    let (offsets, sizes) = (array.offsets(), array.sizes());
    let used = |row: &usize| array.is_valid(*row) && sizes[*row].as_usize() > 0;
    let rows = || (0..array.len()).filter(used);
    let first = rows().map(|row| offsets[row].as_usize()).min().unwrap_or_default();
    let last = rows().map(|row| offsets[row].as_usize() + sizes[row].as_usize()).max().unwrap_or_default();
    out.varint((last - first) as u64);
    let shifted = |row| if used(&row) { O::usize_as(offsets[row].as_usize() - first) } else { O::usize_as(0) };
    Words::new::<O>(O::PTYPE, (0..array.len()).map(shifted).collect(), None).write(out);
    let size = |row| if used(&row) { sizes[row] } else { O::usize_as(0) };
    Words::new::<O>(O::PTYPE, (0..array.len()).map(size).collect(), None).write(out);
    write_children(out, field, &array.values().slice(first, last - first), write_column)
}

/// A list's offset type and the words it is stored in.
trait Offset: OffsetSizeTrait {
    const PTYPE: Ptype;
}

impl Offset for i32 {
    const PTYPE: Ptype = Ptype::I32;
}

impl Offset for i64 {
    const PTYPE: Ptype = Ptype::I64;
}

/// Reads what [`write`] wrote; the tag was read.
pub(in crate::segment) fn read(
    input: &mut Reader,
    byte: u8,
    rows: usize,
    data_type: &DataType,
    read_column: ReadColumn,
) -> Result<ArrayRef> {
    let nulls = read_nulls(input, rows, byte & NULLS != 0)?;
    match (FormTag::of(byte)?, data_type) {
        (FormTag::Struct, DataType::Struct(fields)) => {
            let column = |field: &FieldRef| read_column(input, rows, field.data_type(), Form::Exact);
            let columns = fields.iter().map(column).collect::<Result<_>>()?;
            let array = StructArray::try_new_with_length(fields.clone(), columns, nulls, rows);
            Ok(Arc::new(array.map_err(damaged)?))
        }
        (FormTag::List, DataType::List(field)) => read_list::<i32>(input, rows, field, nulls, read_column),
        (FormTag::List, DataType::LargeList(field)) => read_list::<i64>(input, rows, field, nulls, read_column),
        (FormTag::List, DataType::Map(field, sorted)) => {
            let (offsets, entries) = read_lists::<i32>(input, rows, field, read_column)?;
            let entries = entries.as_struct().clone();
            let array = MapArray::try_new(Arc::clone(field), offsets, entries, nulls, *sorted);
            Ok(Arc::new(array.map_err(damaged)?))
        }
        (FormTag::FixedList, DataType::FixedSizeList(field, size)) => {
            let children = rows.saturating_mul(size.as_usize());
            let values = read_children(input, children, field, read_column)?;
            let array = FixedSizeListArray::try_new_with_length(Arc::clone(field), *size, values, nulls, rows);
            Ok(Arc::new(array.map_err(damaged)?))
        }
        (FormTag::ListView, DataType::ListView(field)) => read_list_view::<i32>(input, rows, field, nulls, read_column),
        (FormTag::ListView, DataType::LargeListView(field)) => {
            read_list_view::<i64>(input, rows, field, nulls, read_column)
        }
        (tag, _) => {
            Err(Error::corrupt(format!("values of type {} cannot have the encoding {tag:?}", TypeName(data_type))))
        }
    }
}

fn read_children(input: &mut Reader, rows: usize, field: &Field, read_column: ReadColumn) -> Result<ArrayRef> {
    if rows > CHILDREN_MAX {
        return Err(Error::corrupt(format!("a nested column claims to have {rows} elements")));
    }
    read_column(input, rows, field.data_type(), Form::Exact)
}

fn read_list<O: Offset>(
    input: &mut Reader,
    rows: usize,
    field: &FieldRef,
    nulls: Option<NullBuffer>,
    read_column: ReadColumn,
) -> Result<ArrayRef> {
    let (offsets, values) = read_lists::<O>(input, rows, field, read_column)?;
    Ok(Arc::new(GenericListArray::<O>::try_new(Arc::clone(field), offsets, values, nulls).map_err(damaged)?))
}

fn read_lists<O: Offset>(
    input: &mut Reader,
    rows: usize,
    field: &Field,
    read_column: ReadColumn,
) -> Result<(OffsetBuffer<O>, ArrayRef)> {
    let children = input.count()?;
    let lengths = Words::read(input, rows, O::PTYPE)?;
    let mut end = 0_usize;
    let mut offsets = Vec::with_capacity(rows + 1);
    offsets.push(O::usize_as(0));
    for length in lengths.typed::<O>() {
        end = length.to_usize().and_then(|length| end.checked_add(length)).filter(|end| *end <= children).ok_or_else(
            || {
                Error::corrupt(format!(
                    "a list claims to have {length:?} elements after the first {end} of {children} in total"
                ))
            },
        )?;
        offsets.push(O::usize_as(end));
    }
    if end != children || O::from_usize(end).is_none() {
        return Err(Error::corrupt(format!("the lists have {end} elements in total; expected {children}")));
    }
    Ok((OffsetBuffer::new(ScalarBuffer::from(offsets)), read_children(input, children, field, read_column)?))
}

fn read_list_view<O: Offset>(
    input: &mut Reader,
    rows: usize,
    field: &FieldRef,
    nulls: Option<NullBuffer>,
    read_column: ReadColumn,
) -> Result<ArrayRef> {
    let children = input.count()?;
    let offsets = ScalarBuffer::<O>::from(Words::read(input, rows, O::PTYPE)?.values);
    let sizes = ScalarBuffer::<O>::from(Words::read(input, rows, O::PTYPE)?.values);
    let values = read_children(input, children, field, read_column)?;
    let array = GenericListViewArray::<O>::try_new(Arc::clone(field), offsets, sizes, values, nulls);
    Ok(Arc::new(array.map_err(damaged)?))
}
