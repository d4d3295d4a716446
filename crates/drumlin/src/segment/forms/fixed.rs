//! Columns of fixed width: numbers, times, decimals, booleans, fixed-size binary.
//!
//! Each is stored as [`Words`], after a reversible step that makes the words small:
//!
//! ```text
//! number  = words
//! time    = words | SCALED  factor varint, rest varint, words     value = word * factor + rest
//! decimal = words                           32 and 64 bits
//!         | NARROW  width u8, words         width 4 or 8: every value fits that width
//!         | WIDE    words, words            high 64 bits (signed, with nulls), low 64 bits (unsigned)
//!         | PLAIN   as fixed
//! boolean = NARROW [+NULLS]  words          of one byte, 0 or 1, where that is smaller (long runs)
//!         | PLAIN  [+NULLS]  bitmap of nulls if NULLS, bitmap of values
//! fixed   = PLAIN  [+NULLS]  bitmap if NULLS, rows x size bytes
//!         | TREE [+NULLS]    tree (tree.rs) of binary, where that is smaller (repetition)
//! ```
//!
//! Scaling is for times that are multiples of a coarser unit, such as whole seconds counted in nanoseconds.
//! Decimals whose values fit 4 or 8 bytes are stored in that width, whatever their precision, so that [`native_type`]
//! is cheap to produce; values beyond their precision are kept too.

use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, AsArray, BooleanArray, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::{DECIMAL32_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type, IntervalUnit, i256};
use drumlin_codec::Ptype;

use super::bits::{aligned, read_bits, read_nulls, write_bits, write_nulls};
use super::tag::{FormTag, NULLS};
use super::wire::{Reader, Writer};
use super::words::{PLAIN_MAX, Words, machine_type, zeroed};
use super::{text, tree};
use crate::base::{Error, Result};
use crate::segment::decode::form::{Form, native_type};

/// The size in bytes of a value that is not a machine number.
pub(in crate::segment) fn fixed_size(data_type: &DataType) -> Option<usize> {
    Some(match data_type {
        DataType::FixedSizeBinary(size) => usize::try_from(*size).ok()?,
        DataType::Interval(IntervalUnit::DayTime) => 8,
        DataType::Interval(IntervalUnit::MonthDayNano) | DataType::Decimal128(..) => 16,
        DataType::Decimal256(..) => 32,
        _ => return None,
    })
}

/// Whether to look for a common factor: times of 64 bits are worth it.
pub(in crate::segment) fn scales(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date64 | DataType::Time64(_) | DataType::Timestamp(..) | DataType::Duration(_))
}

/// Writes a column that [`machine_type`] knows.
pub(in crate::segment) fn write_number(out: &mut Writer, array: &ArrayRef, ptype: Ptype) {
    let words = Words::of(&array.to_data(), ptype);
    match scales(array.data_type()).then(|| common_factor(&words)).flatten() {
        Some((factor, rest)) => {
            out.u8(FormTag::Scaled as u8);
            out.varint(factor as u64);
            out.varint(rest as u64);
            let values = words.typed::<i64>().iter().map(|value| value.div_euclid(factor)).collect();
            Words::new(ptype, values, words.nulls).write(out);
        }
        None => words.write(out),
    }
}

/// The greatest factor above 1 by which all valid values have the same remainder, and that remainder.
fn common_factor(words: &Words) -> Option<(i64, i64)> {
    let valid = |row: usize| words.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    let mut values = words.typed::<i64>().iter().enumerate().filter(|(row, _)| valid(*row)).map(|(_, value)| *value);
    let first = values.next()?;
    let mut factor = 0_u64;
    for value in values {
        let (mut a, mut b) = (factor, value.abs_diff(first));
        if a != 0 && b % a == 0 {
            continue;
        }
        while b != 0 {
            (a, b) = (b, a % b);
        }
        factor = a;
        if factor == 1 {
            return None;
        }
    }
    let factor = i64::try_from(factor).ok().filter(|factor| *factor > 1)?;
    Some((factor, first.rem_euclid(factor)))
}

/// How times are made smaller: each is a word times a factor, and a rest that all have.
pub(in crate::segment) struct TimeScale {
    factor: i64,
    rest: i64,
}

impl TimeScale {
    /// Reads one. The tag was read.
    pub fn read(input: &mut Reader) -> Result<Self> {
        Ok(Self { factor: input.varint()? as i64, rest: input.varint()? as i64 })
    }

    /// The time of a word.
    pub fn time(&self, word: i64) -> i64 {
        word.wrapping_mul(self.factor).wrapping_add(self.rest)
    }
}

/// Reads what [`write_number`] wrote.
pub(in crate::segment) fn read_number(
    input: &mut Reader,
    rows: usize,
    data_type: &DataType,
    ptype: Ptype,
) -> Result<ArrayRef> {
    let scaled = scales(data_type) && input.peek()? == FormTag::Scaled as u8;
    let words = if scaled {
        input.u8()?;
        let scale = TimeScale::read(input)?;
        let words = Words::read(input, rows, ptype)?;
        let values = words.typed::<i64>().iter().map(|word| scale.time(*word)).collect();
        Words::new(ptype, values, words.nulls)
    } else {
        Words::read(input, rows, ptype)?
    };
    Ok(make_array(words.into_array(rows, data_type)?))
}

/// Writes a decimal of 128 or 256 bits that is given in fewer bits.
pub(in crate::segment) fn write_narrow_decimal(out: &mut Writer, array: &ArrayRef, ptype: Ptype) {
    write_narrow(out, Words::of(&array.to_data(), ptype));
}

/// Writes a decimal of 128 or 256 bits.
pub(in crate::segment) fn write_decimal(out: &mut Writer, array: &ArrayRef) {
    let nulls = array.nulls();
    let wide: Vec<i128> = if let Some(array) = array.as_primitive_opt::<Decimal128Type>() {
        if let Some(words) = narrow(array.values(), nulls) {
            return write_narrow(out, words);
        }
        array.values().to_vec()
    } else {
        let values = array.as_primitive::<Decimal256Type>().values();
        let valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
        let fits = |value: &i256| value.to_i128();
        let wide: Option<Vec<i128>> =
            values.iter().enumerate().map(|(row, value)| if valid(row) { fits(value) } else { Some(0) }).collect();
        let Some(wide) = wide else {
            return write_fixed(out, array, 32);
        };
        if let Some(words) = narrow(&wide, nulls) {
            return write_narrow(out, words);
        }
        wide
    };
    out.u8(FormTag::Wide as u8);
    let high = wide.iter().map(|value| (value >> 64) as i64).collect();
    Words::new::<i64>(Ptype::I64, high, nulls.cloned()).write(out);
    let valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
    let low = wide.iter().enumerate().map(|(row, value)| if valid(row) { *value as u64 } else { 0 }).collect();
    Words::new::<u64>(Ptype::U64, low, None).write(out);
}

/// Words of 4 bytes are read faster than those of 8, so they are used where every value fits.
fn write_narrow(out: &mut Writer, mut words: Words) {
    let four = i128::from(i32::MIN)..=i128::from(i32::MAX);
    if words.ptype == Ptype::I64 && all_in(words.typed::<i64>(), words.nulls.as_ref(), four) {
        let values = words.typed::<i64>().iter().map(|value| *value as i32).collect();
        words = Words::new::<i32>(Ptype::I32, values, words.nulls);
    }
    out.u8(FormTag::Narrow as u8);
    out.u8(words.ptype.byte_width() as u8);
    words.write(out);
}

/// Whether every value lies in `range`. The value under a null may be anything.
fn all_in<T: Copy + Into<i128>>(values: &[T], nulls: Option<&NullBuffer>, range: RangeInclusive<i128>) -> bool {
    match nulls {
        None => values.iter().fold(true, |fits, value| fits & range.contains(&(*value).into())),
        Some(nulls) => nulls.valid_indices().all(|row| range.contains(&values[row].into())),
    }
}

/// The values in 8 bytes; `None` if one does not fit.
fn narrow(values: &[i128], nulls: Option<&NullBuffer>) -> Option<Words> {
    let fits = all_in(values, nulls, i64::MIN.into()..=i64::MAX.into());
    fits.then(|| Words::new::<i64>(Ptype::I64, values.iter().map(|value| *value as i64).collect(), nulls.cloned()))
}

/// The width of decimals that are stored in fewer bits, and the type of such numbers. The tag was read.
pub(in crate::segment) fn narrow_width(input: &mut Reader) -> Result<(Ptype, DataType)> {
    match input.u8()? {
        4 => Ok((Ptype::I32, DataType::Int32)),
        8 => Ok((Ptype::I64, DataType::Int64)),
        width => Err(Error::corrupt(format!("decimals take {width} bytes each; expected 4 or 8"))),
    }
}

/// Reads what [`write_decimal`] wrote.
pub(in crate::segment) fn read_decimal(
    input: &mut Reader,
    rows: usize,
    data_type: &DataType,
    form: Form,
) -> Result<ArrayRef> {
    let byte = input.peek()?;
    let (values, nulls): (Vec<i128>, _) = match FormTag::of(byte)? {
        FormTag::Narrow => {
            input.u8()?;
            let (ptype, _) = narrow_width(input)?;
            let words = Words::read(input, rows, ptype)?;
            let native = native_type(data_type, std::iter::empty());
            if form == Form::Stored
                && ptype == Ptype::I32
                && let DataType::Decimal64(_, scale) = native
            {
                // No more digits than the narrower type may have. Bits cost less to put together than numbers to compare.
                let values = words.typed::<i32>();
                let few_bits = values.iter().fold(0, |bits, value| bits | (value ^ (value >> 31))) < 1 << 29;
                let digits = 10_u32.pow(DECIMAL32_MAX_PRECISION.into());
                if few_bits || values.iter().all(|value| value.unsigned_abs() < digits) {
                    let stored = DataType::Decimal32(DECIMAL32_MAX_PRECISION, scale);
                    return Ok(make_array(words.into_array(rows, &stored)?));
                }
            }
            match machine_type(&native).filter(|_| form != Form::Exact) {
                Some(Ptype::I64) if ptype == Ptype::I32 => {
                    let values = words.typed::<i32>().iter().map(|value| i64::from(*value)).collect();
                    let words = Words::new::<i64>(Ptype::I64, values, words.nulls);
                    return Ok(make_array(words.into_array(rows, &native)?));
                }
                Some(own) if own == ptype => return Ok(make_array(words.into_array(rows, &native)?)),
                _ => {}
            }
            let values = if ptype == Ptype::I32 {
                words.typed::<i32>().iter().map(|value| i128::from(*value)).collect()
            } else {
                words.typed::<i64>().iter().map(|value| i128::from(*value)).collect()
            };
            (values, words.nulls)
        }
        FormTag::Wide => {
            input.u8()?;
            let high = Words::read(input, rows, Ptype::I64)?;
            let low = Words::read(input, rows, Ptype::U64)?;
            let join = |(high, low): (&i64, &u64)| i128::from(*high) << 64 | i128::from(*low);
            (high.typed::<i64>().iter().zip(low.typed::<u64>()).map(join).collect(), high.nulls)
        }
        _ => return read_fixed(input, rows, data_type, 32),
    };
    let values = match data_type {
        DataType::Decimal128(..) => Buffer::from_vec(values),
        _ => Buffer::from_vec(values.into_iter().map(i256::from_i128).collect()),
    };
    build_fixed(rows, data_type, values, nulls)
}

/// Writes booleans.
pub(in crate::segment) fn write_bools(out: &mut Writer, array: &BooleanArray) {
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
    let values = match nulls {
        Some(nulls) => array.values() & nulls.inner(),
        None => array.values().clone(),
    };
    let bitmap = array.len().div_ceil(8);
    if bitmap > PLAIN_MAX {
        let bytes: Vec<u8> = values.iter().map(u8::from).collect();
        let words = Words::new(Ptype::U8, bytes, None).prepare(out.search());
        if words.size() < bitmap {
            FormTag::Narrow.write(out, nulls.is_some());
            write_nulls(out, nulls);
            return words.write(out);
        }
    }
    FormTag::Plain.write(out, nulls.is_some());
    write_nulls(out, nulls);
    write_bits(out, &values);
}

/// Reads what [`write_bools`] wrote.
pub(in crate::segment) fn read_bools(input: &mut Reader, rows: usize) -> Result<ArrayRef> {
    let byte = input.u8()?;
    let nulls = read_nulls(input, rows, byte & NULLS != 0)?;
    let values = match FormTag::of(byte)? {
        FormTag::Plain => read_bits(input, rows)?,
        FormTag::Narrow => {
            let words = Words::read(input, rows, Ptype::U8)?;
            let bytes = words.typed::<u8>();
            BooleanBuffer::collect_bool(rows, |row| bytes[row] != 0)
        }
        tag => return Err(Error::corrupt(format!("booleans cannot have the encoding {tag:?}"))),
    };
    Ok(Arc::new(BooleanArray::new(values, nulls)))
}

/// Writes values of `size` bytes each.
pub(in crate::segment) fn write_fixed(out: &mut Writer, array: &ArrayRef, size: usize) {
    let data = array.to_data();
    let values = data.buffers()[0].slice_with_length(data.offset() * size, data.len() * size);
    let nulls = data.nulls().filter(|nulls| nulls.null_count() > 0);
    if values.len() > PLAIN_MAX && i32::try_from(values.len()).is_ok() {
        let value = |row: usize| if data.is_valid(row) { &values[row * size..(row + 1) * size] } else { &[] };
        let each: Vec<&[u8]> = (0..data.len()).map(value).collect();
        if let Some(built) = text::compress(&each, false, nulls, out.search())
            && built.size() < values.len()
        {
            FormTag::Tree.write(out, nulls.is_some());
            return tree::write(&built, out);
        }
    }
    FormTag::Plain.write(out, nulls.is_some());
    write_nulls(out, nulls);
    match nulls {
        None => out.buffer(&values),
        Some(nulls) => {
            let mut bytes = values.to_vec();
            (0..nulls.len()).filter(|row| nulls.is_null(*row)).for_each(|row| {
                bytes[row * size..(row + 1) * size].fill(0);
            });
            out.buffer(&bytes);
        }
    }
}

/// Reads what [`write_fixed`] wrote.
pub(in crate::segment) fn read_fixed(
    input: &mut Reader,
    rows: usize,
    data_type: &DataType,
    size: usize,
) -> Result<ArrayRef> {
    let byte = input.peek()?;
    match FormTag::of(byte)? {
        FormTag::Plain => {
            input.u8()?;
            let nulls = read_nulls(input, rows, byte & NULLS != 0)?;
            let len = rows.checked_mul(size);
            let len = len.ok_or_else(|| {
                Error::corrupt(format!("{rows} values of {size} bytes are too many for this machine"))
            })?;
            build_fixed(rows, data_type, aligned(input.buffer(len)?), nulls)
        }
        FormTag::Tree => {
            input.u8()?;
            let array = text::read_compressed(input, byte & NULLS != 0, rows, &DataType::Binary, Form::Exact)?;
            let array = array.as_binary::<i32>();
            let values = zeroed(rows, size)?;
            let mut bytes = values.to_vec();
            for row in (0..rows).filter(|row| array.is_valid(*row)) {
                let value = array.value(row);
                if value.len() != size {
                    return Err(Error::corrupt(format!("a value has {} bytes; expected {size}", value.len())));
                }
                bytes[row * size..(row + 1) * size].copy_from_slice(value);
            }
            build_fixed(rows, data_type, Buffer::from_slice_ref(bytes), array.nulls().cloned())
        }
        tag => Err(Error::corrupt(format!("values of {size} bytes cannot have the encoding {tag:?}"))),
    }
}

fn build_fixed(rows: usize, data_type: &DataType, values: Buffer, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let array = ArrayData::builder(data_type.clone()).len(rows).add_buffer(values).nulls(nulls).align_buffers(true);
    Ok(make_array(array.build().map_err(|e| Error::corrupt("the values do not match their type").with_source(e))?))
}
