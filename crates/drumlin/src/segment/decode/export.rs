//! Vortex strings to Arrow strings, with as little copying as the stored form allows.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, ByteView, DictionaryArray, PrimitiveArray, StringArray,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{ArrowDictionaryKeyType, DataType, Field, UInt8Type, UInt16Type, UInt32Type};
use vortex_array::arrays::dict::DictArraySlotsExt;
use vortex_array::arrays::varbin::builder::VarBinBuilder;
use vortex_array::arrays::varbin::{VarBinArrayExt, VarBinArraySlotsExt};
use vortex_array::arrays::{Chunked, Constant, Dict, PrimitiveArray as VortexPrimitive};
use vortex_array::dtype::{NativePType, PType};
use vortex_array::{ArrayRef as VortexRef, ExecutionCtx};
use vortex_arrow::{ArrowSessionExt, to_null_buffer};
use vortex_fsst::FSST;
use vortex_onpair::OnPair;

use super::utf8;
use crate::base::{Error, Result};
use crate::segment::encode::codec::{Codec, refused};

/// Arrow keeps values of up to this many bytes inside their view.
const INLINE_MAX: usize = 12;

/// Executes a Vortex array into an Arrow one.
pub(in crate::segment) fn export(
    codec: &Codec,
    array: VortexRef,
    data_type: &DataType,
    context: &mut ExecutionCtx,
) -> Result<ArrayRef> {
    let array = export_unchecked(codec, array, data_type, context)?;
    utf8::check(&array)?;
    Ok(array)
}

/// The same, but texts in the result may not be UTF-8.
pub(in crate::segment) fn export_unchecked(
    codec: &Codec,
    array: VortexRef,
    data_type: &DataType,
    context: &mut ExecutionCtx,
) -> Result<ArrayRef> {
    let field = Field::new("", data_type.clone(), true);
    codec.session.arrow().execute_arrow(array, Some(&field), context).map_err(refused)
}

/// Views as an array with offsets, without copying the bytes, if the views' buffer is exactly the concatenated values,
/// as the decoders of texts leave it.
pub(in crate::segment) fn contiguous(array: &ArrayRef, utf8: bool) -> Result<Option<ArrayRef>> {
    let (views, buffers) = if utf8 {
        (array.as_string_view().views(), array.as_string_view().data_buffers())
    } else {
        (array.as_binary_view().views(), array.as_binary_view().data_buffers())
    };
    let [bytes] = buffers else {
        return Ok(None);
    };
    let mut end = 0;
    let mut offsets = Vec::with_capacity(views.len() + 1);
    offsets.push(0);
    for view in views {
        let value = ByteView::from(*view);
        let length = value.length as usize;
        let in_place = if length <= INLINE_MAX {
            bytes.get(end..end + length) == Some(&view.to_le_bytes()[4..4 + length])
        } else {
            value.buffer_index == 0 && value.offset as usize == end
        };
        end += length;
        if !in_place || end > bytes.len() || i32::try_from(end).is_err() {
            return Ok(None);
        }
        offsets.push(end as i32);
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    let (bytes, nulls) = (bytes.slice_with_length(0, end), array.nulls().cloned());
    of_offsets(offsets, bytes, nulls, utf8).map(Some)
}

/// Texts with offsets from codes of OnPair or FSST, decoded in one go; `None` if they are stored otherwise.
pub(in crate::segment) fn from_codes(array: &VortexRef, context: &mut ExecutionCtx) -> Result<Option<ArrayRef>> {
    if !(array.is::<OnPair>() || array.is::<FSST>() || array.is::<Chunked>()) {
        return Ok(None);
    }
    let (dtype, utf8) = (array.dtype().clone(), array.dtype().is_utf8());
    let mut builder = VarBinBuilder::<i32>::with_capacity_in(dtype, array.len(), context.allocator());
    array.append_to_builder(&mut builder, context).map_err(refused)?;
    let decoded = builder.finish_into_varbin();
    let validity = decoded.varbin_validity().execute_mask(decoded.len(), context).map_err(refused)?;
    let offsets = decoded.offsets().clone().execute::<VortexPrimitive>(context).map_err(refused)?;
    let offsets = OffsetBuffer::new(offsets.into_buffer::<i32>().into_arrow_scalar_buffer());
    of_offsets(offsets, decoded.bytes().clone().into_arrow_buffer(), to_null_buffer(validity), utf8).map(Some)
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

/// The dictionary that the strings are stored as, if they are stored as one.
pub(in crate::segment) fn as_dictionary(
    codec: &Codec,
    array: &VortexRef,
    context: &mut ExecutionCtx,
) -> Result<Option<ArrayRef>> {
    let plain = if array.dtype().is_utf8() { DataType::Utf8 } else { DataType::Binary };
    if array.is::<Constant>() {
        let values = export(codec, array.slice(0..1).map_err(refused)?, &plain, context)?;
        let keys = PrimitiveArray::<UInt8Type>::new(ScalarBuffer::from(vec![0_u8; array.len()]), None);
        return Ok(Some(keyed(keys, values)?));
    }
    let Some(stored) = array.as_opt::<Dict>() else {
        return Ok(None);
    };
    let values = match from_codes(stored.values(), context)? {
        Some(values) => values,
        None => export(codec, stored.values().clone(), &plain, context)?,
    };
    let codes = stored.codes().clone().execute::<VortexPrimitive>(context).map_err(refused)?;
    match codes.ptype() {
        PType::U8 => keyed(keys::<UInt8Type>(codes, context)?, values).map(Some),
        PType::U16 => keyed(keys::<UInt16Type>(codes, context)?, values).map(Some),
        PType::U32 => keyed(keys::<UInt32Type>(codes, context)?, values).map(Some),
        _ => Ok(None),
    }
}

fn keys<K: ArrowPrimitiveType<Native: NativePType>>(
    codes: VortexPrimitive,
    context: &mut ExecutionCtx,
) -> Result<PrimitiveArray<K>> {
    let validity = codes.as_ref().validity().map_err(refused)?;
    let nulls = validity.execute_mask(codes.len(), context).map_err(refused)?;
    Ok(PrimitiveArray::new(codes.into_buffer::<K::Native>().into_arrow_scalar_buffer(), to_null_buffer(nulls)))
}

/// A dictionary whose nulls are all in its keys, where every engine expects them.
fn keyed<K: ArrowDictionaryKeyType>(keys: PrimitiveArray<K>, values: ArrayRef) -> Result<ArrayRef> {
    let damaged = |error| Error::corrupt("the codes of a dictionary are damaged").with_source(error);
    let array = DictionaryArray::try_new(keys, values).map_err(damaged)?;
    if array.values().null_count() == 0 {
        return Ok(Arc::new(array));
    }
    let keys = PrimitiveArray::<K>::new(array.keys().values().clone(), array.logical_nulls());
    Ok(Arc::new(DictionaryArray::try_new(keys, Arc::clone(array.values())).map_err(damaged)?))
}
