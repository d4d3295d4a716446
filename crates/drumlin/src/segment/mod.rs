//! Encodes one column of one row group to bytes and back, with statistics. Encodings of numbers and texts are those of the codec
//! (`drumlin-codec`); what is Arrow's is here.
//!
//! Invariants: [`decode`] with [`Form::Exact`] returns the array passed to [`encode`], value for value and of the same
//! Arrow type, whatever is under its nulls or outside its slice; the same column gives the same bytes on any thread at
//! any time; no bytes make [`decode`] panic or read outside them.
//!
//! A segment stores neither its type nor its number of rows: the reader knows them. It begins with a tag, and each part
//! is self-delimiting (wire.rs):
//!
//! ```text
//! segment = NULL                     every row is null, or there are no rows
//!         | number | time | decimal | boolean | fixed       fixed.rs, by the column's type
//!         | text                                            text.rs
//!         | struct | list | fixed list | list view          nested.rs
//!         | dictionary                                      dictionary.rs
//!         | ipc                                             ipc.rs, for types without a form of their own
//! ```
//! The high bit of a tag (`NULLS`) says that some rows are null. Whether an Arrow type is declared non-null does not
//! matter: a column is stored with the nulls it has, so making a column nullable changes nothing.

mod decode;
mod encode;
mod forms;
#[cfg(test)]
mod tests;

use decode::types;
use forms::{dictionary, fixed, ipc, nested, text, words};

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array, make_array, new_empty_array, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use bytes::Bytes;

use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, TypeName};
pub use decode::form::{Form, PhysicalForm, engine_type, narrow_decimal, native_type, without_views};
pub use decode::join::{interleave, join, join_batches};
pub use decode::pick::decode_rows;
pub use decode::select::{filter_batch, take_batch, take_rows};
pub use decode::types::plain_type;
pub use decode::types::{changed, children, holds, places_of, text_bytes};
pub use decode::within::within;
pub use encode::bounds::measure;
pub use encode::proof::{Proof, RowDigest};
pub use encode::rewrite::{SegmentSource, decode_with_scheme, rewrite};
pub use encode::scheme::{Compression, Scheme};
pub use encode::stats::{ColumnStats, STAT_BYTES_MAX, Stat, compare_floats};
pub use forms::compact::{DictionaryUse, compact, dictionary_values};
pub use forms::ipc::read_stream;
use forms::tag::FormTag;
use forms::wire::{Reader, Writer, decoded_max};

/// An encoded column.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// The input of [`decode`]. Should be aligned to 16 bytes; otherwise decoding copies.
    pub bytes: Vec<u8>,
    /// What is known of the column without decoding it.
    pub stats: ColumnStats,
    /// How strings are stored, so that a reader can choose one Arrow type for many segments.
    pub kept: PhysicalForm,
}

/// Encodes a column. Linear in its values; on one thread about 10 ns per number, 100 ns per long string.
///
/// Fails with `SchemaMismatch` if a nested field that is declared non-null holds nulls, and `InvalidArgument`
/// if a single value takes 4 GiB or Arrow cannot write a type that has no form of its own.
pub fn encode(array: &ArrayRef) -> Result<Segment> {
    Ok(encode_like(array, array.data_type(), &Scheme::default())?.0)
}

/// Encodes a column of type `data_type`, given in that type or in its [`Form::Native`] form, as `like` says if that
/// still compresses well. Also returns how it was encoded.
pub fn encode_like(array: &ArrayRef, data_type: &DataType, like: &Scheme) -> Result<(Segment, Scheme)> {
    // What was found on few rows says little about many.
    let unknown = Scheme::default().with_compression(like.compression);
    let like = if like.says_of(array.len()) { like } else { &unknown };
    let known = encode_once(array, data_type, like)?;
    if like.found.is_none() || like.holds_up(known.0.bytes.len(), array.len()) {
        return Ok(known);
    }
    let searched = encode_once(array, data_type, &unknown)?;
    Ok(if searched.0.bytes.len() < known.0.bytes.len() { searched } else { known })
}

fn encode_once(array: &ArrayRef, data_type: &DataType, like: &Scheme) -> Result<(Segment, Scheme)> {
    let array = &spoiled(array);
    let mut out = Writer::like(like);
    let mut kept = PhysicalForm::Values;
    let text = types::plain_type(data_type).is_some();
    let stats = if text && array.null_count() == array.len() {
        // In whatever form it is given: a dictionary may have values that no row has, or none at all.
        out.u8(FormTag::Null as u8);
        measure(array)
    } else if text {
        let keyed = array.as_any_dictionary_opt().is_some();
        // If the encoder found the distinct values, there are fewer to measure.
        let mut distinct = if keyed { text::write_keyed(&mut out, array, write_column)? } else { None };
        let mut measured = None;
        if distinct.is_none() {
            let expanded = if keyed { cast(array, data_type)? } else { array.clone() };
            distinct = text::write(&mut out, &expanded, write_column)?;
            measured = distinct.is_none().then(|| measure(&expanded));
        }
        kept = match distinct.as_ref().map(|distinct| distinct.len()) {
            None => PhysicalForm::Values,
            Some(..=0x100) => PhysicalForm::Dictionary8,
            Some(_) => PhysicalForm::Dictionary16,
        };
        let measured = measured.or_else(|| distinct.as_ref().map(measure)).unwrap_or_default();
        ColumnStats { nulls: array.null_count() as u64, ..measured }
    } else {
        let narrow = words::machine_type(array.data_type()).filter(|_| array.data_type() != data_type);
        match narrow {
            Some(ptype) if array.null_count() < array.len() && data_type.is_decimal() => {
                fixed::write_narrow_decimal(&mut out, array, ptype);
            }
            _ => write_column(&mut out, array)?,
        }
        match data_type {
            // Has no statistics, in any form.
            DataType::Decimal256(..) => ColumnStats { nulls: array.null_count() as u64, ..ColumnStats::default() },
            _ => measure(array),
        }
    };
    let (found, text) = (out.found, out.text.take());
    let bytes = out.finish();
    let decoded = types::decoded_bytes(array);
    if decoded > decoded_max(bytes.len()) {
        // A reader would treat it as damage.
        return Err(Error::schema_mismatch(format!(
            "a row group of {} rows has {decoded} bytes of repeated values, which is too much; write fewer rows at a \
             time",
            array.len()
        )));
    }
    let scheme = Scheme::new(found, bytes.len(), array.len(), text).with_compression(like.compression);
    Ok((Segment { bytes, stats, kept }, scheme))
}

/// The column as a broken encoder would take it, if one is planted.
fn spoiled(array: &ArrayRef) -> ArrayRef {
    if planted(Bug::EncodeNoNulls) && array.null_count() < array.len() {
        let bare = array.to_data().into_builder().nulls(None).build();
        return make_array(bare.expect("values may lie under nulls"));
    }
    if planted(Bug::EncodeReversed) {
        let places = UInt32Array::from_iter_values((0..array.len() as u32).rev());
        return take_rows(array, &places).expect("places of its rows");
    }
    array.clone()
}

/// Decodes a column of `rows` rows of type `data_type`, as it was when encoded.
///
/// The bytes must have been checked by their checksum: damage that gets here gives `Corrupt` if it makes the bytes
/// inconsistent, and wrong values if it does not. The array may share memory with `bytes`.
pub fn decode(bytes: Bytes, rows: usize, data_type: &DataType, form: Form) -> Result<ArrayRef> {
    guarded(bytes, rows, data_type, |input| read_whole(input, rows, data_type, form))
}

/// Reads a segment to its end.
fn read_whole(input: &mut Reader, rows: usize, data_type: &DataType, form: Form) -> Result<ArrayRef> {
    let array = read_column(input, rows, data_type, form)?;
    input.finish()?;
    if array.len() != rows {
        return Err(Error::corrupt(format!("it has {} rows; expected {rows}", array.len())));
    }
    Ok(array)
}

/// Runs a decoder over a segment of `rows` rows.
fn guarded<T>(
    bytes: Bytes,
    rows: usize,
    data_type: &DataType,
    decode: impl FnOnce(&mut Reader) -> Result<T>,
) -> Result<T> {
    decode(&mut Reader::new(bytes))
        .map_err(|error| error.context(format!("a segment of {rows} rows of type {}", TypeName(data_type))))
}

fn write_column(out: &mut Writer, array: &ArrayRef) -> Result<()> {
    let data_type = array.data_type();
    if let DataType::Dictionary(..) = data_type {
        return dictionary::write(out, array, write_column);
    }
    if array.is_empty() || data_type.is_null() || array.null_count() == array.len() {
        out.u8(FormTag::Null as u8);
    } else if let DataType::Decimal128(..) | DataType::Decimal256(..) = data_type {
        fixed::write_decimal(out, array);
    } else if let Some(ptype) = words::machine_type(data_type) {
        fixed::write_number(out, array, ptype);
    } else if let Some(array) = array.as_boolean_opt() {
        fixed::write_bools(out, array);
    } else if let Some(size) = fixed::fixed_size(data_type) {
        fixed::write_fixed(out, array, size);
    } else if types::plain_type(data_type).is_some() {
        text::write(out, array, write_column)?;
    } else if !nested::write(out, array, write_column)? {
        ipc::write(out, array)?;
    }
    Ok(())
}

fn read_column(input: &mut Reader, rows: usize, data_type: &DataType, form: Form) -> Result<ArrayRef> {
    let byte = input.peek()?;
    input.claim(
        rows,
        if FormTag::of(byte)? == FormTag::Null { types::width(data_type) } else { types::own_width(data_type) },
    )?;
    match (FormTag::of(byte)?, data_type) {
        (FormTag::Null, _) => {
            input.u8()?;
            return Ok(if rows == 0 { new_empty_array(data_type) } else { new_null_array(data_type, rows) });
        }
        (FormTag::Ipc, _) => {
            input.u8()?;
            return ipc::read(input, rows, data_type);
        }
        (FormTag::Dictionary, DataType::Dictionary(key, value)) => {
            input.u8()?;
            let count = dictionary::read_count(input)?;
            return dictionary::read_parts(input, rows, count, key, value, read_column);
        }
        _ => {}
    }
    if let DataType::Decimal128(..) | DataType::Decimal256(..) = data_type {
        fixed::read_decimal(input, rows, data_type, form)
    } else if let Some(ptype) = words::machine_type(data_type) {
        fixed::read_number(input, rows, data_type, ptype)
    } else if data_type == &DataType::Boolean {
        fixed::read_bools(input, rows)
    } else if let Some(size) = fixed::fixed_size(data_type) {
        fixed::read_fixed(input, rows, data_type, size)
    } else if types::plain_type(data_type).is_some() {
        text::read(input, rows, data_type, form, read_column)
    } else {
        let byte = input.u8()?;
        nested::read(input, byte, rows, data_type, read_column)
    }
}
