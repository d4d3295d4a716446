//! Types, names and metadata through the C interface.

use std::ffi::{CStr, c_char};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use arrow::ffi::FFI_ArrowSchema;
use drumlin::arrays::changed;
use drumlin::embedding::caught;
use drumlin::{Error, Result};

use crate::malformed;

/// Deeper types are refused before recursion over them could overflow the stack. The limit for stored types is lower
/// still.
const DEPTH_MAX: usize = 64;

/// The field that `schema` describes. `InvalidArgument`, naming the field, if a name or metadata are not UTF-8, or if it is
/// malformed or has a type that Arrow for Rust does not know.
///
/// # Safety
///
/// The pointers of `schema` that are not null point to what the C data interface says.
pub unsafe fn field(schema: &FFI_ArrowSchema) -> Result<Field> {
    // SAFETY: the caller's promise.
    unsafe { check(schema, 0) }?;
    let field = caught(|| Ok(Field::try_from(schema)?))?;
    let data_type = changed(field.data_type(), &with_sound_keys);
    Ok(field.with_data_type(data_type))
}

/// A map with its keys marked as never null. Some libraries mark every field as nullable; that keys are not null is checked
/// with the rows.
fn with_sound_keys(data_type: DataType) -> DataType {
    let DataType::Map(entries, sorted) = &data_type else { return data_type };
    let DataType::Struct(parts) = entries.data_type() else { return data_type };
    let part = |(at, part): (usize, &FieldRef)| match at {
        0 => Arc::new(Field::clone(part).with_nullable(false)),
        _ => part.clone(),
    };
    let parts = DataType::Struct(parts.iter().enumerate().map(part).collect());
    DataType::Map(Arc::new(Field::clone(entries).with_data_type(parts).with_nullable(false)), *sorted)
}

/// # Safety
///
/// As for [`field`].
unsafe fn check(schema: &FFI_ArrowSchema, depth: usize) -> Result<()> {
    if depth > DEPTH_MAX {
        return Err(Error::invalid(format!("the type is nested more than {DEPTH_MAX} levels deep")));
    }
    if schema.release.is_none() {
        return Err(malformed("the schema was already released"));
    }
    // SAFETY: strings of the C interface end with a NUL.
    let text = |text: *const c_char| unsafe { CStr::from_ptr(text) };
    let name = match schema.name.is_null() {
        true => "",
        false => text(schema.name).to_str().map_err(|_| {
            let shown = text(schema.name).to_string_lossy();
            Error::invalid(format!("the name of the field '{shown}' is not UTF-8"))
        })?,
    };
    let named = |e: Error| e.context(format!("field '{name}'"));
    if schema.format.is_null() {
        return Err(named(malformed("the field has no type")));
    }
    let format = text(schema.format).to_str().map_err(|_| named(malformed("the name of its type is not UTF-8")))?;
    if !schema.metadata.is_null() {
        // SAFETY: the caller's promise.
        unsafe { check_metadata(schema.metadata) }.map_err(named)?;
    }
    let size = format.strip_prefix('+').unwrap_or(format).strip_prefix("w:").map(str::parse::<i64>);
    if matches!(size, Some(Ok(size)) if size < 0) {
        return Err(named(malformed(format!("its type '{format}' has a size below zero"))));
    }
    if !schema.dictionary.is_null() && !["c", "C", "s", "S", "i", "I", "l", "L"].contains(&format) {
        return Err(named(malformed(format!("the keys of its dictionary are of type '{format}', not integers"))));
    }
    let least = match format {
        "+r" => 2,
        "+l" | "+L" | "+vl" | "+vL" | "+m" => 1,
        format if format.starts_with("+w:") => 1,
        _ => 0,
    };
    let count =
        usize::try_from(schema.n_children).map_err(|_| named(malformed("the number of its children is below zero")))?;
    if count < least || (count > 0 && schema.children.is_null()) {
        return Err(named(malformed(format!(
            "it has {count} children, or their list is missing; expected at least {least} for its type '{format}'"
        ))));
    }
    for at in 0..count {
        // SAFETY: there are that many children.
        let child = unsafe { (*schema.children.add(at)).as_ref() };
        let child = child.ok_or_else(|| named(malformed("it lacks one of its children")))?;
        // SAFETY: the caller's promise.
        unsafe { check(child, depth + 1) }.map_err(named)?;
    }
    // SAFETY: the caller's promise.
    match unsafe { schema.dictionary.as_ref() } {
        // SAFETY: the caller's promise.
        Some(dictionary) => unsafe { check(dictionary, depth + 1) }.map_err(named),
        None => Ok(()),
    }
}

/// Metadata are a count, and that many pairs of key and value, each a length and bytes; all counts have 32 bits.
///
/// # Safety
///
/// `metadata` points to as many bytes as its counts say.
unsafe fn check_metadata(metadata: *const c_char) -> Result<()> {
    let mut at = metadata.cast::<u8>();
    let number = |at: &mut *const u8| -> Result<usize> {
        // SAFETY: the caller's promise; read unaligned, because nothing guarantees alignment.
        let number = i32::from_ne_bytes(unsafe { at.cast::<[u8; 4]>().read_unaligned() });
        // SAFETY: just past what was read.
        *at = unsafe { at.add(4) };
        usize::try_from(number).map_err(|_| malformed("the length of its metadata is below zero"))
    };
    let text = |at: &mut *const u8| -> Result<String, Vec<u8>> {
        let bytes = match number(at) {
            // SAFETY: the caller's promise.
            Ok(length) => unsafe {
                let bytes = std::slice::from_raw_parts(*at, length);
                *at = at.add(length);
                bytes
            },
            Err(_) => return Err(Vec::new()),
        };
        String::from_utf8(bytes.to_vec()).map_err(|e| e.into_bytes())
    };
    // SAFETY: the caller's promise.
    let count = i32::from_ne_bytes(unsafe { at.cast::<[u8; 4]>().read_unaligned() });
    // SAFETY: just past what was read.
    at = unsafe { at.add(4) };
    for _ in 0..count.max(0) {
        let not_text = |what: &str, bytes: Vec<u8>| {
            let shown = String::from_utf8_lossy(&bytes).chars().take(40).collect::<String>();
            Error::invalid(format!(
                "metadata that is not UTF-8 cannot be stored, such as {what} '{}'; encode or remove it",
                shown.escape_debug()
            ))
        };
        let key = text(&mut at).map_err(|bytes| not_text("the key", bytes))?;
        text(&mut at).map_err(|_| not_text("the value of", key.into_bytes()))?;
    }
    match count {
        ..0 => Err(malformed("the number of its metadata entries is below zero")),
        _ => Ok(()),
    }
}
