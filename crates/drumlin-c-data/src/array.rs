//! Arrays through the C interface.

use std::ffi::c_void;

use arrow::array::{ArrayData, BufferSpec, layout};
use arrow::datatypes::DataType;
use arrow::ffi::{FFI_ArrowArray, from_ffi_and_data_type};
use drumlin::arrays::children;
use drumlin::embedding::caught;
use drumlin::{Error, Result, TypeName};

use crate::malformed;

/// The array that `array` describes, of type `data_type`; its values are not checked. `InvalidArgument` if it is malformed.
///
/// # Safety
///
/// The pointers of `array` that are not null point to what the C data interface says, including its length: buffers are as
/// long as required by length, offset and the array's own offsets.
pub unsafe fn array(array: FFI_ArrowArray, data_type: &DataType) -> Result<ArrayData> {
    // SAFETY: the caller's promise.
    unsafe { check(&array, data_type) }?;
    // SAFETY: the caller's promise, and what was checked.
    caught(|| Ok(unsafe { from_ffi_and_data_type(array, data_type.clone()) }?))
}

/// # Safety
///
/// As for [`array`].
unsafe fn check(array: &FFI_ArrowArray, data_type: &DataType) -> Result<()> {
    let wrong = |what: &str| malformed(format!("an array of type {} {what}", TypeName(data_type)));
    if array.release.is_none() {
        return Err(wrong("was already released"));
    }
    let physical = match data_type {
        DataType::Dictionary(key, _) if key.is_integer() => key,
        DataType::Dictionary(..) | DataType::Union(..) | DataType::RunEndEncoded(..) => {
            return Err(Error::invalid(format!("values of type {} cannot be stored", TypeName(data_type))));
        }
        DataType::FixedSizeBinary(size) | DataType::FixedSizeList(_, size) if *size < 0 => {
            return Err(wrong("has a size below zero"));
        }
        other => other,
    };
    let (Ok(rows), Ok(offset)) = (usize::try_from(array.length), usize::try_from(array.offset)) else {
        return Err(wrong("has a length or an offset below zero"));
    };
    if array.null_count < -1 || array.null_count > array.length {
        return Err(wrong(&format!("has {} nulls, but {rows} values", array.null_count)));
    }
    let total = rows.checked_add(offset).filter(|total| *total < 1 << 56);
    let total = total.ok_or_else(|| wrong(&format!("has {rows} values from offset {offset} on, which is too many")))?;
    // SAFETY: the caller's promise.
    unsafe { check_buffers(array, physical, rows, total) }.map_err(|what| wrong(&what))?;
    let fields = children(data_type);
    if usize::try_from(array.n_children) != Ok(fields.len()) || (!fields.is_empty() && array.children.is_null()) {
        return Err(wrong(&format!("has {} children; expected {}", array.n_children, fields.len())));
    }
    for (at, field) in fields.iter().enumerate() {
        // SAFETY: there are that many children.
        let child = unsafe { (*array.children.add(at)).as_ref() }.ok_or_else(|| wrong("lacks one of its children"))?;
        // SAFETY: the caller's promise.
        unsafe { check(child, field.data_type()) }?;
    }
    // SAFETY: the caller's promise.
    match (unsafe { array.dictionary.as_ref() }, data_type) {
        // SAFETY: the caller's promise.
        (Some(values), DataType::Dictionary(_, value)) => unsafe { check(values, value) },
        (None, DataType::Dictionary(..)) => Err(wrong("has no dictionary")),
        (Some(_), _) => Err(wrong("has a dictionary; expected none")),
        (None, _) => Ok(()),
    }
}

/// # Safety
///
/// As for [`array`]; `total` values begin where the buffers do.
unsafe fn check_buffers(array: &FFI_ArrowArray, data_type: &DataType, rows: usize, total: usize) -> Result<(), String> {
    let layout = layout(data_type);
    let mask = usize::from(layout.can_contain_null_mask);
    let fixed = mask + layout.buffers.len() + usize::from(layout.variadic);
    let count =
        usize::try_from(array.n_buffers).map_err(|_| "has a number of buffers that is below zero".to_owned())?;
    // If the only buffer is a mask, some libraries leave it out.
    let fits = count == fixed || (layout.variadic && count > fixed) || (count == 0 && fixed == mask);
    if !fits || (count > 0 && array.buffers.is_null()) {
        return Err(format!("has {count} buffers; expected {fixed}"));
    }
    // SAFETY: there are that many buffers.
    let buffer = |at: usize| -> *const c_void { unsafe { *array.buffers.add(at) } };
    if mask == 1 && array.null_count > 0 && (count == 0 || buffer(0).is_null()) {
        return Err(format!("has {} nulls, but no buffer that says where they are", array.null_count));
    }
    for (at, spec) in layout.buffers.iter().enumerate() {
        let pointer = buffer(mask + at);
        let bytes = match spec {
            BufferSpec::FixedWidth { byte_width, .. } => (total + 1).checked_mul(*byte_width),
            BufferSpec::BitMap => Some(total.div_ceil(8)),
            // The bytes of strings end at their last offset.
            BufferSpec::VariableWidth if rows > 0 => {
                let offsets = buffer(mask + at - 1);
                // SAFETY: it is not null, as checked with the previous buffer, and has one more offset than values.
                let end = unsafe {
                    match data_type {
                        DataType::LargeUtf8 | DataType::LargeBinary => {
                            offsets.cast::<i64>().add(total).read_unaligned()
                        }
                        _ => offsets.cast::<i32>().add(total).read_unaligned().into(),
                    }
                };
                usize::try_from(end).ok()
            }
            BufferSpec::VariableWidth | BufferSpec::AlwaysNull => Some(0),
        };
        let bytes = bytes.filter(|bytes| isize::try_from(*bytes).is_ok());
        let bytes = bytes.ok_or_else(|| "has a buffer that is longer than memory can be".to_owned())?;
        if pointer.is_null() && bytes > 0 && total > 0 {
            return Err(format!("lacks buffer {at}"));
        }
    }
    if layout.variadic && count > fixed {
        let lengths = buffer(count - 1).cast::<i64>();
        if lengths.is_null() {
            return Err("lacks the lengths of its buffers".to_owned());
        }
        for at in 0..count - fixed {
            // SAFETY: it has a length for each of these buffers.
            let length = unsafe { lengths.add(at).read_unaligned() };
            if length < 0 || (length > 0 && buffer(fixed - 1 + at).is_null()) {
                return Err(format!("has no valid buffer for {length} bytes"));
            }
        }
    }
    Ok(())
}
