//! The rows of a long text as codes of an OnPair dictionary (onpair.rs), and moved between segments as such. A segment
//! may have a few dictionaries side by side, of the segments that its rows came from.

use std::ops::Range;

use arrow::array::BooleanBufferBuilder;
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::util::bit_iterator::BitSliceIterator;
use vortex_array::arrays::chunked::ChunkedArrayExt;
use vortex_array::arrays::{Chunked, ChunkedArray, PrimitiveArray};
use vortex_array::buffer::BufferHandle;
use vortex_array::dtype::{DType, Nullability};
use vortex_array::validity::Validity;
use vortex_array::{ArrayRef as VortexRef, IntoArray, match_each_integer_ptype};
use vortex_arrow::{nulls as validity_of, to_null_buffer};
use vortex_buffer::Buffer;
use vortex_fastlanes::bitpack_compress::bitpack_encode;
use vortex_onpair::{OnPair, OnPairArrayExt, OnPairArraySlotsExt};

use super::bits::packed;
use super::onpair::{Dictionary, Text};
use super::tree::ArrayTree;
use crate::base::{Error, Result};
use crate::segment::encode::codec::{Codec, LONG_ROWS_MIN, refused};
use crate::segment::encode::hint::Hint;
use crate::segment::encode::scheme::{Compression, Search};

/// The maximum number of dictionaries in one segment.
const DICTIONARIES_MAX: usize = 4;

/// Rows as codes of one dictionary.
pub(in crate::segment) struct Codes {
    dictionary: Dictionary,
    codes: Vec<u16>,
    /// Where each row's codes begin, and the end of the last.
    offsets: Vec<u32>,
    /// Bytes of each row.
    lengths: Vec<u32>,
    nulls: Option<NullBuffer>,
}

impl Codes {
    /// Encodes values in the codes of `text`; those of nulls must be empty. `None` if there are too many codes.
    pub fn encode(text: &Text, values: &[&[u8]], nulls: Option<&NullBuffer>) -> Option<Self> {
        let (mut codes, mut offsets) = (Vec::new(), Vec::new());
        text.parser.parse_rows_into(values, &mut codes, &mut offsets);
        u32::try_from(codes.len()).ok()?;
        let lengths = values.iter().map(|value| u32::try_from(value.len())).collect::<std::result::Result<_, _>>();
        let dictionary = text.dictionary.clone();
        Some(Self { dictionary, codes, offsets, lengths: lengths.ok()?, nulls: nulls.cloned() })
    }

    /// The codes that a text is stored as, one part per dictionary; `None` if it is stored otherwise.
    pub fn of(codec: &Codec, array: &VortexRef) -> Result<Option<Vec<Self>>> {
        if let Some(chunked) = array.as_opt::<Chunked>() {
            let mut parts = Vec::new();
            for chunk in chunked.iter_chunks() {
                let Some(mut part) = Self::of(codec, chunk)? else { return Ok(None) };
                parts.append(&mut part);
            }
            return Ok(Some(parts));
        }
        let Some(stored) = array.as_opt::<OnPair>() else { return Ok(None) };
        let rows = array.len();
        let codes = integers::<u16>(codec, stored.codes())?;
        let offsets = integers::<u32>(codec, stored.codes_offsets())?;
        let lengths = integers::<u32>(codec, stored.uncompressed_lengths())?;
        let dictionary = Dictionary {
            bytes: stored.data().dict_bytes().clone(),
            offsets: integers::<u32>(codec, stored.dict_offsets())?.into(),
        };
        let nulls = stored.array_validity().execute_mask(rows, &mut codec.context()).map_err(refused)?;
        let known = dictionary.offsets.len().saturating_sub(1);
        let sound = offsets.len() == rows + 1
            && lengths.len() == rows
            && offsets.is_sorted()
            && offsets.last().is_none_or(|end| *end as usize <= codes.len())
            && codes.iter().max().is_none_or(|code| usize::from(*code) < known);
        if !sound {
            return Err(Error::corrupt("the codes of a text do not match its rows or its dictionary"));
        }
        Ok(Some(vec![Self { dictionary, codes, offsets, lengths, nulls: to_null_buffer(nulls) }]))
    }

    pub fn rows(&self) -> usize {
        self.lengths.len()
    }

    /// Bytes of the text.
    pub fn decoded_bytes(&self) -> u64 {
        self.lengths.iter().map(|length| u64::from(*length)).sum()
    }

    pub fn null_count(&self) -> usize {
        self.nulls.as_ref().map_or(0, NullBuffer::null_count)
    }

    /// The encoded array, nullable or not.
    fn array(self, codec: &Codec, nullable: bool) -> Option<VortexRef> {
        let mut context = codec.context();
        let width = self.dictionary.offsets.len().saturating_sub(1).next_power_of_two().ilog2().max(1) as u8;
        let nulls = self.nulls.filter(|nulls| nulls.null_count() > 0).map(|nulls| packed(&nulls));
        let validity: Validity = validity_of(nulls.as_ref(), nullable).ok()?;
        let codes = PrimitiveArray::new(Buffer::from(self.codes), Validity::NonNullable);
        let codes = match width {
            ..16 => bitpack_encode(&codes, width, None, &mut context).ok()?.into_array(),
            _ => codes.into_array(),
        };
        let lengths = PrimitiveArray::new(Buffer::from(self.lengths), Validity::NonNullable).into_array();
        let plain = |values: Buffer<u32>| PrimitiveArray::new(values, Validity::NonNullable).into_array();
        let array = OnPair::try_new(
            DType::Utf8(Nullability::from(nullable)),
            BufferHandle::new_host(self.dictionary.bytes),
            // These two ascend: the tree stores them as steps.
            plain(self.dictionary.offsets),
            codes,
            plain(self.offsets.into()),
            codec.compress(&lengths, Search { only: Some(Hint::CHEAP), compression: Compression::default() })?,
            validity,
        );
        Some(array.ok()?.into_array())
    }

    /// The encoded text, ready to be written.
    pub fn tree(self, codec: &Codec) -> Option<ArrayTree> {
        let nullable = self.null_count() > 0;
        ArrayTree::of_encoded(codec, &self.array(codec, nullable)?)
    }

    /// An encoded text of several dictionaries. `None` if there are too many for its rows.
    pub fn join(codec: &Codec, mut parts: Vec<Self>) -> Option<ArrayTree> {
        if parts.len() == 1 {
            return parts.pop()?.tree(codec);
        }
        if parts.len() > DICTIONARIES_MAX || parts.iter().any(|part| part.rows() < LONG_ROWS_MIN) {
            return None;
        }
        let nullable = parts.iter().any(|part| part.null_count() > 0);
        let chunks: Vec<VortexRef> =
            parts.into_iter().map(|part| part.array(codec, nullable)).collect::<Option<_>>()?;
        let array = ChunkedArray::try_new(chunks, DType::Utf8(Nullability::from(nullable))).ok()?;
        ArrayTree::of_encoded(codec, &array.into_array())
    }
}

/// Copies rows out of parts into new outputs of given sizes.
pub(in crate::segment) struct CodesCutter {
    sizes: std::vec::IntoIter<usize>,
    room: usize,
    current: Vec<Building>,
    done: Vec<Vec<Codes>>,
}

/// Codes that are being collected.
struct Building {
    codes: Codes,
    valid: BooleanBufferBuilder,
}

impl Building {
    fn new(dictionary: Dictionary) -> Self {
        let codes = Codes { dictionary, codes: Vec::new(), offsets: vec![0], lengths: Vec::new(), nulls: None };
        Self { codes, valid: BooleanBufferBuilder::new(0) }
    }

    /// Adds a range of rows; `false` if there are too many codes.
    fn add(&mut self, from: &Codes, rows: Range<usize>) -> bool {
        let (start, end) = (from.offsets[rows.start], from.offsets[rows.end]);
        let Ok(behind) = u32::try_from(self.codes.codes.len()) else { return false };
        if behind.checked_add(end - start).is_none() {
            return false;
        }
        self.codes.codes.extend_from_slice(&from.codes[start as usize..end as usize]);
        let offsets = &from.offsets[rows.start + 1..=rows.end];
        self.codes.offsets.extend(offsets.iter().map(|offset| offset - start + behind));
        self.codes.lengths.extend_from_slice(&from.lengths[rows.clone()]);
        match &from.nulls {
            Some(nulls) => self.valid.append_buffer(&nulls.inner().slice(rows.start, rows.len())),
            None => self.valid.append_n(rows.len(), true),
        }
        true
    }

    fn finish(mut self) -> Codes {
        self.codes.nulls = Some(NullBuffer::new(self.valid.finish())).filter(|nulls| nulls.null_count() > 0);
        self.codes
    }
}

impl CodesCutter {
    /// A cutter that makes outputs of `sizes` rows.
    pub fn new(sizes: Vec<usize>) -> Self {
        let mut sizes = sizes.into_iter();
        let room = sizes.next().unwrap_or(0);
        Self { sizes, room, current: Vec::new(), done: Vec::new() }
    }

    /// Adds the rows of `codes` that are set in `keep`; `false` if that is not possible.
    pub fn add(&mut self, codes: &Codes, keep: Option<&BooleanBuffer>) -> bool {
        // Compared once for all ranges.
        let mut goes_on = self.current.last().is_some_and(|last| last.codes.dictionary == codes.dictionary);
        match keep {
            None => self.add_range(codes, 0..codes.rows(), &mut goes_on),
            Some(keep) => {
                let mut runs = BitSliceIterator::new(keep.values(), keep.offset(), keep.len());
                runs.all(|(start, end)| self.add_range(codes, start..end, &mut goes_on))
            }
        }
    }

    /// `goes_on` says that the codes being collected use the same dictionary.
    fn add_range(&mut self, codes: &Codes, mut rows: Range<usize>, goes_on: &mut bool) -> bool {
        while !rows.is_empty() {
            let n = rows.len().min(self.room);
            let taken = rows.start..rows.start + n;
            rows.start += n;
            self.room -= n;
            if !std::mem::replace(goes_on, true) {
                self.current.push(Building::new(codes.dictionary.clone()));
            }
            if n == 0 || !self.current.last_mut().is_some_and(|last| last.add(codes, taken)) {
                return false;
            }
            if self.room == 0 {
                self.done.push(self.current.drain(..).map(Building::finish).collect());
                self.room = self.sizes.next().unwrap_or(0);
                *goes_on = false;
            }
        }
        true
    }

    /// The outputs, each as parts of one dictionary.
    pub fn finish(self) -> Vec<Vec<Codes>> {
        self.done
    }
}

/// Non-negative integers of any width, as `T`.
fn integers<T: TryFrom<i128>>(codec: &Codec, array: &VortexRef) -> Result<Vec<T>> {
    let array = array.clone().execute::<PrimitiveArray>(&mut codec.context()).map_err(refused)?;
    let too_large = |_| Error::corrupt("the codes or offsets of a text are too large");
    match_each_integer_ptype!(array.ptype(), |P| {
        array.as_slice::<P>().iter().map(|value| T::try_from(i128::from(*value)).map_err(too_large)).collect()
    })
}
