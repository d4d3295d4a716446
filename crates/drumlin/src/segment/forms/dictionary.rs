//! Dictionary columns: keys and values as segments of their own.
//!
//! ```text
//! dictionary = DICTIONARY  varint number of values, words (words.rs) of the key type, segment of the values
//! ```
//! Invariant: decoding returns all values in their order, whether a row uses them or not.

use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, PrimitiveArray};
use arrow::datatypes::{
    ArrowDictionaryKeyType, DataType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use std::sync::Arc;

use super::tag::FormTag;
use super::wire::{ReadColumn, Reader, WriteColumn, Writer};
use super::words::{Words, machine_type};
use crate::base::{Error, Result, TypeName};
use crate::segment::decode::form::Form;

/// More values than this are treated as damage.
const VALUES_MAX: usize = 1 << 31;

/// Writes a dictionary column.
pub(in crate::segment) fn write(out: &mut Writer, array: &ArrayRef, write_column: WriteColumn) -> Result<()> {
    let array = array.as_any_dictionary();
    let ptype = machine_type(array.keys().data_type());
    let ptype = ptype.ok_or_else(|| {
        Error::invalid(format!(
            "the keys of a dictionary have type {}; expected integers",
            TypeName(array.keys().data_type())
        ))
    })?;
    write_parts(out, Words::of(&array.keys().to_data(), ptype), array.values(), write_column)
}

/// Writes a dictionary from its keys and values.
pub(in crate::segment) fn write_parts(
    out: &mut Writer,
    keys: Words,
    values: &ArrayRef,
    write_column: WriteColumn,
) -> Result<()> {
    out.u8(FormTag::Dictionary as u8);
    out.varint(values.len() as u64);
    keys.write(out);
    write_column(out, values)
}

/// Reads the number of values; the tag was read.
pub(in crate::segment) fn read_count(input: &mut Reader) -> Result<usize> {
    match input.count()? {
        count if count > VALUES_MAX => Err(Error::corrupt(format!("a dictionary claims to have {count} values"))),
        count => Ok(count),
    }
}

/// Reads the keys and values of a dictionary of `count` values.
pub(in crate::segment) fn read_parts(
    input: &mut Reader,
    rows: usize,
    count: usize,
    key: &DataType,
    value: &DataType,
    read_column: ReadColumn,
) -> Result<ArrayRef> {
    match key {
        DataType::Int8 => read_keyed::<Int8Type>(input, rows, count, value, read_column),
        DataType::Int16 => read_keyed::<Int16Type>(input, rows, count, value, read_column),
        DataType::Int32 => read_keyed::<Int32Type>(input, rows, count, value, read_column),
        DataType::Int64 => read_keyed::<Int64Type>(input, rows, count, value, read_column),
        DataType::UInt8 => read_keyed::<UInt8Type>(input, rows, count, value, read_column),
        DataType::UInt16 => read_keyed::<UInt16Type>(input, rows, count, value, read_column),
        DataType::UInt32 => read_keyed::<UInt32Type>(input, rows, count, value, read_column),
        DataType::UInt64 => read_keyed::<UInt64Type>(input, rows, count, value, read_column),
        _ => Err(Error::corrupt(format!("the keys of a dictionary have type {}; expected integers", TypeName(key)))),
    }
}

fn read_keyed<K: ArrowDictionaryKeyType>(
    input: &mut Reader,
    rows: usize,
    count: usize,
    value: &DataType,
    read_column: ReadColumn,
) -> Result<ArrayRef> {
    let ptype =
        machine_type(&K::DATA_TYPE).ok_or_else(|| Error::corrupt("the keys of a dictionary are not integers"))?;
    let keys = Words::read(input, rows, ptype)?.into_array(rows, &K::DATA_TYPE)?;
    let values = read_column(input, count, value, Form::Exact)?;
    let array = DictionaryArray::<K>::try_new(PrimitiveArray::from(keys), values);
    Ok(Arc::new(array.map_err(|e| Error::corrupt("the keys of a dictionary are damaged").with_source(e))?))
}
