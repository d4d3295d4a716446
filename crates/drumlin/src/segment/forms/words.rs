//! Values of one machine type, without their meaning in Arrow: every fixed-width column consists of them.
//!
//! Invariant: the value under a null is never stored. It is replaced by the value before it, which keeps value ranges
//! narrow and runs long, and makes the bytes depend only on the column's logical content.
//!
//! ```text
//! words   = NULL                         all null
//!         | TREE [+NULLS]    tree        see tree.rs; nulls are inside
//!         | PLAIN  [+NULLS]  bitmap      if NULLS: one bit per row, 1 = valid, low bits first
//!                            plain       see plain.rs
//! ```
//! All numbers are little-endian.

use arrow::array::ArrayData;
use arrow::buffer::{Buffer, NullBuffer};
use arrow::datatypes::{ArrowNativeType, DataType, IntervalUnit};
use drumlin_codec::{Built, Ptype};

use super::bits::{read_nulls, write_nulls};
use super::plain::Plain;
use super::tag::{FormTag, NULLS};
use super::tree;
use super::wire::{Reader, Writer};
use crate::base::{Error, Result};
use crate::segment::encode::scheme::{Compression, Search};

/// Up to this many bytes, the plain form is used without trying a tree, whose nodes alone take about 10.
pub(in crate::segment) const PLAIN_MAX: usize = 48;

/// The same where not every byte counts: looking for a form takes longer than writing, and reading, as many bytes.
const PLAIN_ENOUGH: usize = 256;

/// From this many rows on, a tree is assumed to beat the narrowed plain form.
const NARROW_ROWS_MAX: usize = 4096;

/// Values of a machine type, some of them null.
#[derive(Clone)]
pub(in crate::segment) struct Words {
    pub(in crate::segment) ptype: Ptype,
    /// Exactly the bytes of the values, aligned for the type.
    pub(in crate::segment) values: Buffer,
    /// `None` if no value is null.
    pub(in crate::segment) nulls: Option<NullBuffer>,
}

/// The machine type behind an Arrow type; `None` if its values are not single numbers.
pub(in crate::segment) fn machine_type(data_type: &DataType) -> Option<Ptype> {
    Some(match data_type {
        DataType::Int8 => Ptype::I8,
        DataType::Int16 => Ptype::I16,
        DataType::Int32 | DataType::Date32 | DataType::Time32(_) | DataType::Decimal32(..) => Ptype::I32,
        DataType::Interval(IntervalUnit::YearMonth) => Ptype::I32,
        DataType::Int64 | DataType::Date64 | DataType::Time64(_) | DataType::Decimal64(..) => Ptype::I64,
        DataType::Timestamp(..) | DataType::Duration(_) => Ptype::I64,
        DataType::UInt8 => Ptype::U8,
        DataType::UInt16 => Ptype::U16,
        DataType::UInt32 => Ptype::U32,
        DataType::UInt64 => Ptype::U64,
        DataType::Float16 => Ptype::F16,
        DataType::Float32 => Ptype::F32,
        DataType::Float64 => Ptype::F64,
        _ => return None,
    })
}

impl Words {
    /// The words of a fixed-width array.
    pub(in crate::segment) fn of(array: &ArrayData, ptype: Ptype) -> Self {
        let width = ptype.byte_width();
        let values = array.buffers()[0].slice_with_length(array.offset() * width, array.len() * width);
        // Arrow promises alignment, but buffers that came through the C interface may violate it.
        let aligned = values.as_ptr().align_offset(width) == 0;
        let values = if aligned { values } else { Buffer::from_slice_ref(values.as_slice()) };
        Self { ptype, values, nulls: array.nulls().cloned() }
    }

    /// Words of native values.
    pub(in crate::segment) fn new<T: ArrowNativeType>(ptype: Ptype, values: Vec<T>, nulls: Option<NullBuffer>) -> Self {
        Self { ptype, values: Buffer::from_vec(values), nulls }
    }

    pub(in crate::segment) fn rows(&self) -> usize {
        self.values.len() / self.ptype.byte_width()
    }

    /// The values as numbers of type `T`, which must be as wide as the words.
    pub(in crate::segment) fn typed<T: ArrowNativeType>(&self) -> &[T] {
        self.values.typed_data()
    }

    /// Reinterprets the values as `data_type`, which must be as wide as the words.
    pub(in crate::segment) fn into_array(self, rows: usize, data_type: &DataType) -> Result<ArrayData> {
        let array = ArrayData::builder(data_type.clone()).len(rows).add_buffer(self.values).nulls(self.nulls);
        array
            .align_buffers(true)
            .build()
            .map_err(|e| Error::corrupt("the values do not match their type").with_source(e))
    }

    /// Replaces the value under a null by the value before it, or by the first value.
    fn without_garbage(mut self) -> Self {
        self.nulls = self.nulls.filter(|nulls| nulls.null_count() > 0);
        if let Some(nulls) = &self.nulls {
            let values = match self.ptype.byte_width() {
                1 => filled::<1>(&self.values, nulls),
                2 => filled::<2>(&self.values, nulls),
                4 => filled::<4>(&self.values, nulls),
                _ => filled::<8>(&self.values, nulls),
            };
            self.values = Buffer::from_slice_ref(values);
        }
        self
    }

    /// Chooses the smaller form; of floats, one that is much smaller, unless they are to be small.
    pub(in crate::segment) fn prepare(self, search: Search) -> WordsForm {
        let words = self.without_garbage();
        let rows = words.rows();
        if words.nulls.as_ref().is_some_and(|nulls| nulls.null_count() == rows) || rows == 0 {
            return WordsForm::Null;
        }
        let plain = (rows <= NARROW_ROWS_MAX).then(|| Plain::new(words.ptype, &words.values));
        let plain_size = plain.as_ref().map_or(words.values.len(), Plain::size);
        let plain_max = if search.compression == Compression::Small { PLAIN_MAX } else { PLAIN_ENOUGH };
        if plain_size > plain_max
            && let Some(tree) = tree::of_numbers(words.ptype, &words.values, words.nulls.as_ref(), search)
            && tree.size() < words.worth(plain_size, search.compression)
        {
            return WordsForm::Tree(tree, words.nulls.is_some());
        }
        WordsForm::Plain(plain.unwrap_or_else(|| Plain::new(words.ptype, &words.values)), words.nulls)
    }

    /// The size from which on an encoded form is not worth it, where the plain one takes `plain`.
    fn worth(&self, plain: usize, compression: Compression) -> usize {
        let plain = plain + self.nulls.as_ref().map_or(0, |_| self.rows().div_ceil(8));
        match compression {
            Compression::Balanced | Compression::Fast if self.ptype.is_float() => plain / 5 * 4,
            _ => plain,
        }
    }

    /// Writes the smaller form.
    pub(in crate::segment) fn write(self, out: &mut Writer) {
        self.prepare(out.search()).write(out);
    }

    /// Reads `rows` words of `ptype`.
    pub(in crate::segment) fn read(input: &mut Reader, rows: usize, ptype: Ptype) -> Result<Self> {
        let byte = input.u8()?;
        let nullable = byte & NULLS != 0;
        match FormTag::of(byte)? {
            FormTag::Null => Ok(Self {
                ptype,
                values: zeroed(rows, ptype.byte_width())?,
                nulls: (rows > 0).then(|| NullBuffer::new_null(rows)),
            }),
            FormTag::Plain => {
                let nulls = read_nulls(input, rows, nullable)?;
                Ok(Self { ptype, values: Plain::read(input, rows, ptype)?, nulls })
            }
            FormTag::Tree => {
                let found = tree::read(input, rows)?.numbers(ptype, nullable)?;
                input.found.exponents = found.exponents.or(input.found.exponents);
                Ok(Self { ptype, values: found.values, nulls: found.nulls })
            }
            tag => {
                Err(Error::corrupt(format!("values of {} bytes cannot have the encoding {tag:?}", ptype.byte_width())))
            }
        }
    }
}

/// Zeroes for `rows` values of `width` bytes.
pub(in crate::segment) fn zeroed(rows: usize, width: usize) -> Result<Buffer> {
    let bytes = rows.checked_mul(width).filter(|bytes| *bytes < isize::MAX as usize);
    let bytes =
        bytes.ok_or_else(|| Error::corrupt(format!("{rows} rows of {width} bytes are too many for this machine")))?;
    Ok(Buffer::from_vec(vec![0_u128; bytes.div_ceil(16)]).slice_with_length(0, bytes))
}

fn filled<const WIDTH: usize>(values: &[u8], nulls: &NullBuffer) -> Vec<u8> {
    let mut bytes = values.to_vec();
    let (slots, _) = bytes.as_chunks_mut::<WIDTH>();
    let mut last = nulls.valid_indices().next().map_or([0; WIDTH], |first| slots[first]);
    for (slot, valid) in slots.iter_mut().zip(nulls.iter()) {
        if valid {
            last = *slot;
        } else {
            *slot = last;
        }
    }
    bytes
}

/// The form chosen for some words.
pub(in crate::segment) enum WordsForm {
    Null,
    Plain(Plain, Option<NullBuffer>),
    Tree(Built, bool),
}

impl WordsForm {
    /// Its size in bytes, without padding.
    pub(in crate::segment) fn size(&self) -> usize {
        match self {
            Self::Null => 1,
            Self::Plain(plain, nulls) => 1 + plain.size() + nulls.as_ref().map_or(0, |nulls| nulls.len().div_ceil(8)),
            Self::Tree(tree, _) => 1 + tree.size(),
        }
    }

    pub(in crate::segment) fn write(&self, out: &mut Writer) {
        match self {
            Self::Null => out.u8(FormTag::Null as u8),
            Self::Plain(plain, nulls) => {
                FormTag::Plain.write(out, nulls.is_some());
                write_nulls(out, nulls.as_ref());
                plain.write(out);
            }
            Self::Tree(tree, nullable) => {
                FormTag::Tree.write(out, *nullable);
                tree::write(tree, out);
            }
        }
    }
}
