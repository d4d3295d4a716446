//! Texts of the codec to Arrow's, with as little copying as the stored form allows.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BinaryArray, BinaryViewArray, DictionaryArray, PrimitiveArray, StringArray, StringViewArray,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{ArrowDictionaryKeyType, DataType, UInt8Type, UInt16Type, UInt32Type};
use drumlin_codec::{Memory, PlainTexts, TextColumn};

use crate::base::{Error, Result};
use crate::segment::forms::tree::{decoded, nulls_of};

/// Texts, or binary, with offsets of 32 bits.
pub(in crate::segment) fn with_offsets(column: &TextColumn, utf8: bool) -> Result<ArrayRef> {
    of_plain(decoded(column.decode())?, column.nulls.clone().map(nulls_of), utf8)
}

/// Decoded texts, or binary, with offsets.
pub(in crate::segment) fn of_plain(texts: PlainTexts, nulls: Option<NullBuffer>, utf8: bool) -> Result<ArrayRef> {
    of_offsets(OffsetBuffer::new(ScalarBuffer::from(texts.offsets)), Buffer::from(texts.bytes), nulls, utf8)
}

/// Texts, or binary, with offsets as views of the same memory.
pub(in crate::segment) fn as_views(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8 => Arc::new(StringViewArray::from(array.as_string::<i32>())),
        _ => Arc::new(BinaryViewArray::from(array.as_binary::<i32>())),
    }
}

/// Strings, or binary; the bytes of strings are checked.
pub(in crate::segment) fn of_offsets(
    offsets: OffsetBuffer<i32>,
    bytes: Buffer,
    nulls: Option<NullBuffer>,
    utf8: bool,
) -> Result<ArrayRef> {
    let array = if utf8 {
        StringArray::try_new(offsets, bytes, nulls).map(|array| Arc::new(array) as ArrayRef)
    } else {
        BinaryArray::try_new(offsets, bytes, nulls).map(|array| Arc::new(array) as ArrayRef)
    };
    array.map_err(|e| Error::corrupt("the strings are damaged").with_source(e))
}

/// The dictionary that the strings are stored as, if they are stored as one. Its nulls are all in its keys, where every engine expects
/// them.
pub(in crate::segment) fn as_dictionary(column: &TextColumn, utf8: bool) -> Result<Option<ArrayRef>> {
    let Some((keys, values)) = decoded(column.dictionary())? else { return Ok(None) };
    let values = of_plain(decoded(values.decode())?, None, utf8)?;
    let nulls = column.nulls.clone().map(nulls_of);
    match keys {
        Memory::U8(keys) => keyed::<UInt8Type>(keys.into(), nulls, values).map(Some),
        Memory::U16(keys) => keyed::<UInt16Type>(keys.into(), nulls, values).map(Some),
        Memory::U32(keys) => keyed::<UInt32Type>(keys.into(), nulls, values).map(Some),
        Memory::U64(_) | Memory::Shared(_) => Ok(None),
    }
}

fn keyed<K: ArrowDictionaryKeyType>(
    keys: ScalarBuffer<K::Native>,
    nulls: Option<NullBuffer>,
    values: ArrayRef,
) -> Result<ArrayRef> {
    let array = DictionaryArray::try_new(PrimitiveArray::<K>::new(keys, nulls), values);
    Ok(Arc::new(array.map_err(|e| Error::corrupt("the codes of a dictionary are damaged").with_source(e))?))
}
