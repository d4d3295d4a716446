//! The rows of a long text as codes of an OnPair dictionary (onpair.rs), and moved between segments as such. A segment
//! may have a few dictionaries side by side, of the segments that its rows came from.

use std::ops::Range;

use arrow::array::BooleanBufferBuilder;
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::util::bit_iterator::BitSliceIterator;
use drumlin_codec::{Built, CodedTexts, TextColumn, Texts, chunked};

use super::onpair::{Dictionary, LONG_ROWS_MIN, Text};
use super::tree::{bits_of, decoded, is_readable, nulls_of};
use crate::base::Result;

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
    pub fn of(column: &TextColumn) -> Result<Option<Vec<Self>>> {
        let stored = match &column.texts {
            Texts::Chunks(chunks) => {
                let mut parts = Vec::new();
                for chunk in chunks {
                    let Some(mut part) = Self::of(chunk)? else { return Ok(None) };
                    parts.append(&mut part);
                }
                return Ok(Some(parts));
            }
            Texts::Codes(stored) => stored,
            _ => return Ok(None),
        };
        let dictionary = Dictionary { bytes: stored.symbols.clone(), offsets: stored.symbol_offsets.as_slice().into() };
        Ok(Some(vec![Self {
            dictionary,
            codes: decoded(stored.codes())?,
            offsets: stored.offsets.clone(),
            lengths: stored.lengths.clone(),
            nulls: column.nulls.clone().map(nulls_of),
        }]))
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

    /// The encoded text, ready to be written.
    pub fn tree(&self) -> Option<Built> {
        let built = self.built();
        is_readable(&built, self.rows()).then_some(built)
    }

    fn built(&self) -> Built {
        let nulls = self.nulls.as_ref().filter(|nulls| nulls.null_count() > 0).map(bits_of);
        let coded = CodedTexts {
            symbols: &self.dictionary.bytes,
            symbol_offsets: &self.dictionary.offsets,
            codes: &self.codes,
            offsets: &self.offsets,
            lengths: &self.lengths,
        };
        coded.build(nulls.as_ref())
    }

    /// An encoded text of several dictionaries. `None` if there are too many for its rows.
    pub fn join(parts: &[Self]) -> Option<Built> {
        if let [only] = parts {
            return only.tree();
        }
        if parts.len() > DICTIONARIES_MAX || parts.iter().any(|part| part.rows() < LONG_ROWS_MIN) {
            return None;
        }
        let built = chunked(parts.iter().map(Self::built).collect());
        is_readable(&built, parts.iter().map(Self::rows).sum()).then_some(built)
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
