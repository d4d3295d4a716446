//! Texts, or binary, still encoded: read whole, as a dictionary, as codes, or by rows.

use bytes::Bytes;

use crate::bits::Bits;
use crate::node::*;
use crate::pack::BLOCK;
use crate::proto::{Message, Scalar};
use crate::read::numbers::{Column, Numbers, Places};
use crate::read::parse::Kind;
use crate::read::parts::{Parse, int_type};
use crate::read::{DEPTH_MAX, Limit};
use crate::word::{Memory, Ptype, Word};
use crate::{Error, Result};

/// The most bytes that a symbol of OnPair stands for.
const SYMBOL_MAX: usize = 16;
/// Of FSST: the code before a byte that stands for itself.
const ESCAPE: u8 = 255;

/// A column of texts, whose bytes were not checked to be UTF-8.
#[derive(Clone, Debug)]
pub struct TextColumn {
    /// Its values; any value under a null.
    pub texts: Texts,
    /// Which rows have a value; `None` if all have.
    pub nulls: Option<Bits>,
    /// Rows.
    pub len: usize,
}

/// Texts one after the other.
#[derive(Clone, Debug, Default)]
pub struct Plain {
    /// Where each begins, and the end of the last.
    pub offsets: Vec<i32>,
    /// Their bytes, and nothing else.
    pub bytes: Bytes,
}

/// Texts as codes of a dictionary.
#[derive(Clone, Debug)]
pub struct Codes {
    /// The bytes of the dictionary's symbols.
    pub symbols: Bytes,
    /// Where each symbol begins, and the end of the last.
    pub symbol_offsets: Vec<u32>,
    codes: Column<u16>,
    /// Where each row's codes begin, and the end of the last.
    pub offsets: Vec<u32>,
    /// Bytes of each row.
    pub lengths: Vec<u32>,
}

/// Texts in symbols of up to 8 bytes.
#[derive(Clone, Debug)]
pub struct Symbols {
    symbols: Vec<[u8; 8]>,
    symbol_lengths: Vec<u8>,
    codes: Bytes,
    offsets: Vec<u32>,
    lengths: Vec<u32>,
}

/// Texts as they are encoded.
#[derive(Clone, Debug)]
pub enum Texts {
    /// One after the other: where each begins, the end of the last, and all bytes.
    Plain(Vec<u32>, Bytes),
    /// All the same.
    Constant(Bytes),
    /// Distinct values, which rows' places are among them, and which rows may have any place.
    Dictionary(Places, Box<TextColumn>, Option<Bits>),
    /// FSST.
    Symbols(Symbols),
    /// OnPair.
    Codes(Box<Codes>),
    /// One after the other.
    Chunks(Vec<TextColumn>),
}

/// Reads a node as `len` texts.
fn texts(node: &RawNode, len: usize, limit: &Limit, depth: usize) -> Result<TextColumn> {
    let parse = Parse::new(node, len, limit, depth)?;
    match node.encoding {
        VARBIN => parse.varbin(),
        VARBINVIEW => parse.views(),
        CONSTANT => parse.constant(),
        DICT => parse.dictionary(),
        MASKED => parse.masked(),
        SPARSE => parse.sparse(),
        RUNEND => parse.runs(),
        FSST => parse.symbols(),
        ONPAIR => parse.codes(),
        CHUNKED => parse.chunks(),
        _ => Err(Error::new(format!("texts cannot be encoded as {}", node.name()))),
    }
}

impl Parse<'_> {
    fn done(&self, texts: Texts, nulls: Option<Bits>) -> Result<TextColumn> {
        Ok(TextColumn { texts, nulls, len: self.len })
    }

    /// The texts of the child at `at`.
    fn texts(&self, at: usize, len: usize) -> Result<TextColumn> {
        texts(self.child(at)?, len, self.limit, self.depth)
    }

    /// Offsets of `self.len` parts of `end` things.
    fn offsets(&self, at: usize, ptype: Ptype, end: usize) -> Result<Vec<u32>> {
        let offsets = self.counts(at, ptype, self.len.saturating_add(1))?;
        if !offsets.is_sorted() || offsets.last().is_none_or(|last| *last as usize > end) {
            return Err(Error::new(format!("the offsets of texts descend, or go beyond {end}")));
        }
        Ok(offsets)
    }

    fn varbin(&self) -> Result<TextColumn> {
        self.expect(1, 1..=2)?;
        let bytes = self.buffer(0)?.clone();
        let offsets = self.offsets(0, int_type(&self.message()?, 1)?, bytes.len())?;
        self.done(Texts::Plain(offsets, bytes), self.validity(1)?)
    }

    /// Views as an older writer stored them: of 16 bytes each, short texts in them, others in one of the buffers before.
    fn views(&self) -> Result<TextColumn> {
        let (views, buffers) = self.node.buffers.split_last().ok_or_else(|| Error::new("views are missing"))?;
        let (views, rest) = views.as_chunks::<16>();
        if views.len() != self.len || !rest.is_empty() {
            return Err(Error::new(format!("{} views for {} rows", views.len(), self.len)));
        }
        let nulls = self.validity(0)?;
        let part = |view: &[u8; 16], at: usize| u32::load(&view[at..]) as usize;
        let (mut offsets, mut bytes) = (vec![0_u32], Vec::new());
        for (row, view) in views.iter().enumerate() {
            let length = part(view, 0);
            let text = if nulls.as_ref().is_some_and(|nulls| !nulls.get(row)) {
                &[]
            } else if length <= 12 {
                &view[4..4 + length]
            } else {
                let start = part(view, 12);
                let text = buffers.get(part(view, 8)).and_then(|buffer| buffer.get(start..start.checked_add(length)?));
                text.ok_or_else(|| Error::new(format!("the view of row {row} goes beyond its buffer")))?
            };
            self.limit.take(text.len(), 1)?;
            bytes.extend_from_slice(text);
            offsets.push(u32::try_from(bytes.len()).map_err(|_| too_long(bytes.len()))?);
        }
        self.done(Texts::Plain(offsets, bytes.into()), nulls)
    }

    /// What a message says: a text, or that there is none.
    fn scalar(&self, at: usize) -> Result<Option<Bytes>> {
        let bytes = self.buffer(at)?;
        match Message::read(bytes)?.scalar()? {
            Scalar::Null => Ok(None),
            Scalar::Bytes(text) => Ok(Some(bytes.slice_ref(text))),
            Scalar::Number(_) => Err(Error::new("a number stands in the place of a text")),
        }
    }

    fn constant(&self) -> Result<TextColumn> {
        let value = self.scalar(0)?;
        let nulls = value.is_none().then(|| self.none()).transpose()?;
        self.done(Texts::Constant(value.unwrap_or_default()), nulls)
    }

    fn dictionary(&self) -> Result<TextColumn> {
        let (count, places, nulls) = self.places()?;
        self.keyed(places, self.texts(1, count)?, nulls)
    }

    fn keyed(&self, places: Places, values: TextColumn, nulls: Option<Bits>) -> Result<TextColumn> {
        let all = self.keyed_nulls(&places, nulls.as_ref(), values.nulls.as_ref())?;
        self.done(Texts::Dictionary(places, Box::new(values), nulls), all)
    }

    fn masked(&self) -> Result<TextColumn> {
        self.expect(0, 1..=2)?;
        let column = self.texts(0, self.len)?;
        if column.nulls.is_some() {
            return Err(Error::new("what is below a mask has nulls itself"));
        }
        self.done(column.texts, self.validity(1)?)
    }

    /// One value in most rows: as a dictionary of that value and those of the others.
    fn sparse(&self) -> Result<TextColumn> {
        self.expect(1, 2..=2)?;
        let fill = self.scalar(0)?;
        let head = self.patches_head(1)?.ok_or_else(|| Error::new("the rows of a sparse column are missing"))?;
        let rows = head.rows(self, 0)?;
        let own = self.texts(1, rows.len())?;
        let own_nulls = own.nulls.clone();
        let own = own.decode()?;
        let filled = fill.clone().unwrap_or_default();
        let bytes = [&filled[..], &own.bytes].concat();
        let end = |offset: &i32| *offset as u32 + filled.len() as u32;
        let offsets: Vec<u32> = std::iter::once(0).chain(own.offsets.iter().map(end)).collect();
        self.limit.take(self.len, 4)?;
        let mut places = vec![0_u32; self.len];
        rows.iter().zip(1..).for_each(|(row, place)| places[*row as usize] = place);
        let count = rows.len() + 1;
        let nulls = (fill.is_none() || own_nulls.is_some()).then(|| {
            Bits::collect(count, |at| match at {
                0 => fill.is_some(),
                at => own_nulls.as_ref().is_none_or(|nulls| nulls.get(at - 1)),
            })
        });
        let values = TextColumn { texts: Texts::Plain(offsets, bytes.into()), nulls, len: count };
        self.keyed(Places::U32(Numbers::Held(places)), values, None)
    }

    fn runs(&self) -> Result<TextColumn> {
        let (ends, skip) = self.run_ends()?;
        let values = self.texts(1, ends.len())?;
        self.limit.take(ends.len(), 4)?;
        let places = Numbers::Runs { values: (0..ends.len() as u32).collect(), ends, skip };
        self.keyed(Places::U32(places), values, None)
    }

    fn symbols(&self) -> Result<TextColumn> {
        let message = self.message()?;
        let (lengths_type, offsets_type) = (int_type(&message, 1)?, int_type(&message, 2)?);
        let (table, symbol_lengths) = (self.buffer(0)?, self.buffer(1)?);
        let (mut table, rest) = (table.as_chunks::<8>().0.to_vec(), table.len() % 8);
        let mut symbol_lengths = symbol_lengths.to_vec();
        let short = table.len() < symbol_lengths.len() || rest != 0 || symbol_lengths.len() > 256;
        if short || symbol_lengths.iter().any(|length| *length > 8) {
            return Err(Error::new("a table of symbols is damaged"));
        }
        table.resize(256, [0; 8]);
        symbol_lengths.resize(256, 0);
        // Codes lie in a buffer of their own, or, as an older writer stored them, in a child.
        let (codes, offsets, lengths, nulls) = if self.node.buffers.len() == 3 {
            let codes = self.buffer(2)?.clone();
            let offsets = self.offsets(1, offsets_type, codes.len())?;
            (codes, offsets, self.counts(0, lengths_type, self.len)?, self.validity(2)?)
        } else {
            let column = self.texts(0, self.len)?;
            let Texts::Plain(offsets, codes) = column.texts else {
                return Err(Error::new("the codes of symbols are encoded themselves"));
            };
            (codes, offsets, self.counts(1, lengths_type, self.len)?, column.nulls)
        };
        let symbols = Symbols { symbols: table, symbol_lengths, codes, offsets, lengths };
        self.done(Texts::Symbols(symbols), nulls)
    }

    fn codes(&self) -> Result<TextColumn> {
        self.expect(1, 4..=5)?;
        let message = self.message()?;
        let symbols = self.buffer(0)?.clone();
        let (count, code_count) = (message.count(3)?, message.count(4)?);
        let symbol_offsets = self.counts(0, int_type(&message, 5)?, count.saturating_add(1))?;
        let longest = symbol_offsets.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).max().unwrap_or(0);
        let end = symbol_offsets.last().map_or(0, |end| *end as usize);
        let sound = symbol_offsets.is_sorted() && end <= symbols.len() && longest as usize <= SYMBOL_MAX;
        if !sound || symbol_offsets.len() > (1 << 16) + 1 {
            return Err(Error::new(format!("a dictionary of {count} symbols is damaged")));
        }
        let ptype = int_type(&message, 6)?;
        let codes = match ptype.byte_width() {
            2 => self.numbers::<u16>(1, Kind::Number(ptype), code_count)?,
            // As wide as nobody writes them.
            _ => {
                let wide = self.counts(1, ptype, code_count)?;
                let narrow = wide.iter().map(|code| u16::try_from(*code)).collect::<std::result::Result<_, _>>();
                let narrow: Vec<u16> = narrow.map_err(|_| Error::new("the codes of a text are too large"))?;
                Column { numbers: Numbers::Held(narrow), nulls: None, len: code_count }
            }
        };
        let offsets = self.offsets(2, int_type(&message, 7)?, code_count)?;
        let lengths = self.counts(3, int_type(&message, 1)?, self.len)?;
        let codes = Codes { symbols, symbol_offsets, codes, offsets, lengths };
        self.done(Texts::Codes(Box::new(codes)), self.validity(4)?)
    }

    fn chunks(&self) -> Result<TextColumn> {
        let count = self.node.children.len();
        if count == 0 {
            return Err(Error::new("parts of texts are missing"));
        }
        let ends = self.counts(0, Ptype::U64, count)?;
        if !ends.is_sorted() || ends.first() != Some(&0) || ends.last().map(|end| *end as usize) != Some(self.len) {
            return Err(Error::new(format!("parts of texts do not make up {} rows", self.len)));
        }
        let part = |(at, pair): (usize, &[u32])| self.texts(at + 1, (pair[1] - pair[0]) as usize);
        let parts: Vec<TextColumn> = ends.windows(2).enumerate().map(part).collect::<Result<_>>()?;
        let nulls = parts.iter().any(|part| part.nulls.is_some()).then(|| {
            let valid = |part: &TextColumn, row: usize| part.nulls.as_ref().is_none_or(|nulls| nulls.get(row));
            let mut all = parts.iter().flat_map(|part| (0..part.len).map(move |row| valid(part, row)));
            Bits::collect(self.len, |_| all.next().unwrap_or(false))
        });
        self.done(Texts::Chunks(parts), nulls)
    }
}

fn too_long(bytes: usize) -> Error {
    Error::new(format!("the strings take {bytes} bytes in total; expected less than 2 GiB"))
}

/// Offsets of texts of these lengths.
fn offsets_of(lengths: impl ExactSizeIterator<Item = usize>) -> Result<Vec<i32>> {
    let mut end = 0_usize;
    let mut offsets = Vec::with_capacity(lengths.len() + 1);
    offsets.push(0);
    for length in lengths {
        end += length;
        offsets.push(end as i32);
    }
    if i32::try_from(end).is_err() { Err(too_long(end)) } else { Ok(offsets) }
}

impl Plain {
    /// The value of a row.
    fn get(&self, row: usize) -> &[u8] {
        &self.bytes[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }

    /// The values at places; of rows that are null, any.
    fn at(&self, places: &[u32], valid: impl Fn(usize) -> bool) -> Result<Self> {
        let count = self.offsets.len() - 1;
        let outside = places.iter().enumerate().find(|(row, place)| **place as usize >= count && valid(*row));
        if let Some((_, place)) = outside {
            return Err(Error::new(format!("place {place} is past the end of a dictionary of {count} values")));
        }
        let value = |place: &u32| if (*place as usize) < count { self.get(*place as usize) } else { &[][..] };
        let offsets = offsets_of(places.iter().map(|place| value(place).len()))?;
        let mut bytes = Vec::with_capacity(offsets.last().map_or(0, |end| *end as usize));
        places.iter().for_each(|place| bytes.extend_from_slice(value(place)));
        Ok(Self { offsets, bytes: bytes.into() })
    }
}

impl TextColumn {
    /// Reads `len` texts from the root of a tree.
    ///
    /// # Errors
    /// If the nodes do not fit together.
    pub fn read(node: &RawNode, len: usize, limit: &Limit) -> Result<Self> {
        texts(node, len, limit, DEPTH_MAX)
    }

    /// All values; under nulls any. One pass.
    ///
    /// # Errors
    /// If they take 2 GiB or more, or if codes do not say as many bytes as they should.
    pub fn decode(&self) -> Result<Plain> {
        match &self.texts {
            Texts::Plain(offsets, bytes) => {
                let (first, last) = (offsets.first().map_or(0, |at| *at), offsets.last().map_or(0, |at| *at));
                i32::try_from(last).map_err(|_| too_long(last as usize))?;
                let offsets = offsets.iter().map(|at| (at - first) as i32).collect();
                Ok(Plain { offsets, bytes: bytes.slice(first as usize..last as usize) })
            }
            Texts::Constant(value) => {
                let offsets = offsets_of((0..self.len).map(|_| value.len()))?;
                Ok(Plain { offsets, bytes: value.repeat(self.len).into() })
            }
            Texts::Dictionary(places, values, nulls) => {
                let mut all = vec![0; self.len];
                places.fill(0, &mut all)?;
                values.decode()?.at(&all, |row| nulls.as_ref().is_none_or(|nulls| nulls.get(row)))
            }
            Texts::Symbols(symbols) => symbols.decode(0, self.len),
            Texts::Codes(codes) => codes.decode(0, self.len),
            Texts::Chunks(parts) => {
                let parts = parts.iter().map(Self::decode).collect::<Result<Vec<_>>>()?;
                let lengths: Vec<usize> = parts
                    .iter()
                    .flat_map(|part| part.offsets.windows(2).map(|pair| (pair[1] - pair[0]) as usize))
                    .collect();
                let offsets = offsets_of(lengths.into_iter())?;
                let bytes: Vec<u8> = parts.iter().flat_map(|part| part.bytes.iter().copied()).collect();
                Ok(Plain { offsets, bytes: bytes.into() })
            }
        }
    }

    /// The places of rows among distinct values, in as many bits as they are stored in, and these values; `None` if they are not stored
    /// as such. Places under nulls are any.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn dictionary(&self) -> Result<Option<(Memory, TextColumn)>> {
        Ok(match &self.texts {
            Texts::Constant(value) => {
                let values = Texts::Plain(vec![0, value.len() as u32], value.clone());
                Some((Memory::U8(vec![0; self.len]), Self { texts: values, nulls: None, len: 1 }))
            }
            Texts::Dictionary(places, values, _) => {
                fn all<W: Word>(numbers: &Numbers<W>, len: usize) -> Result<Memory> {
                    let mut all = vec![W::default(); len];
                    numbers.fill(0, &mut all)?;
                    Ok(W::memory(all))
                }
                let places = match places {
                    Places::U8(numbers) => all(numbers, self.len)?,
                    Places::U16(numbers) => all(numbers, self.len)?,
                    Places::U32(numbers) => all(numbers, self.len)?,
                    Places::U64(_) => return Ok(None),
                };
                Some((places, values.as_ref().clone()))
            }
            _ => None,
        })
    }

    /// The values of some rows, and which of them have one. Each must be less than [`Self::len`]. O(rows picked), once everything but
    /// codes and texts was read.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn pick(&self, rows: &[u32]) -> Result<(Plain, Option<Bits>)> {
        let nulls = self.nulls.as_ref().map(|nulls| nulls.pick(rows));
        let plain = match &self.texts {
            Texts::Plain(offsets, bytes) => {
                let range = |row: &u32| offsets[*row as usize] as usize..offsets[*row as usize + 1] as usize;
                let picked = offsets_of(rows.iter().map(|row| range(row).len()))?;
                let mut all = Vec::with_capacity(picked.last().map_or(0, |end| *end as usize));
                rows.iter().for_each(|row| all.extend_from_slice(&bytes[range(row)]));
                Plain { offsets: picked, bytes: all.into() }
            }
            Texts::Constant(value) => {
                Plain { offsets: offsets_of(rows.iter().map(|_| value.len()))?, bytes: value.repeat(rows.len()).into() }
            }
            Texts::Dictionary(places, values, own) => {
                let places = places.pick(rows)?;
                let valid = |at: usize| own.as_ref().is_none_or(|nulls| nulls.get(rows[at] as usize));
                if let Some(place) = (0..rows.len()).find(|at| places[*at] as usize >= values.len && valid(*at)) {
                    return Err(Error::new(format!("place {} of {} values", places[place], values.len)));
                }
                let mut wanted: Vec<u32> =
                    places.iter().copied().filter(|place| (*place as usize) < values.len).collect();
                wanted.sort_unstable();
                wanted.dedup();
                let (picked, _) = values.pick(&wanted)?;
                let place = |place: &u32| wanted.binary_search(place).map_or(u32::MAX, |at| at as u32);
                picked.at(&places.iter().map(place).collect::<Vec<_>>(), |_| false)?
            }
            Texts::Symbols(symbols) => picked(rows, |row| symbols.decode(row, 1))?,
            Texts::Codes(codes) => codes.pick(rows)?,
            Texts::Chunks(parts) => {
                let mut ends = Vec::with_capacity(parts.len());
                parts.iter().fold(0, |end, part| {
                    ends.push(end + part.len);
                    end + part.len
                });
                picked(rows, |row| {
                    let at = ends.partition_point(|end| *end <= row);
                    let before = at.checked_sub(1).map_or(0, |at| ends[at]);
                    Ok(parts[at].pick(&[(row - before) as u32])?.0)
                })?
            }
        };
        Ok((plain, nulls))
    }
}

/// Values row by row.
fn picked(rows: &[u32], row: impl Fn(usize) -> Result<Plain>) -> Result<Plain> {
    let (mut offsets, mut bytes) = (vec![0], Vec::new());
    for at in rows {
        bytes.extend_from_slice(&row(*at as usize)?.bytes);
        offsets.push(i32::try_from(bytes.len()).map_err(|_| too_long(bytes.len()))?);
    }
    Ok(Plain { offsets, bytes: bytes.into() })
}

fn unequal(found: usize, expected: usize) -> Error {
    Error::new(format!("codes say {found} bytes of texts; expected {expected}"))
}

impl Symbols {
    fn decode(&self, from: usize, len: usize) -> Result<Plain> {
        let offsets = offsets_of(self.lengths[from..from + len].iter().map(|length| *length as usize))?;
        let total = offsets.last().map_or(0, |end| *end as usize);
        let codes = &self.codes[self.offsets[from] as usize..self.offsets[from + len] as usize];
        // No symbol is longer than 8 bytes: what claims more is not even tried.
        if total > codes.len() * 8 {
            return Err(unequal(codes.len() * 8, total));
        }
        let mut out = vec![0_u8; total + 8];
        let (mut end, mut codes) = (0, codes.iter());
        while let Some(code) = codes.next() {
            let Some(slot) = out.get_mut(end..).and_then(|rest| rest.first_chunk_mut::<8>()) else {
                return Err(unequal(end + 8, total));
            };
            if *code == ESCAPE {
                slot[0] = *codes.next().ok_or_else(|| Error::new("the codes of a text end in an escape"))?;
                end += 1;
            } else {
                *slot = self.symbols[usize::from(*code)];
                end += usize::from(self.symbol_lengths[usize::from(*code)]);
            }
        }
        if end != total {
            return Err(unequal(end, total));
        }
        out.truncate(total);
        Ok(Plain { offsets, bytes: out.into() })
    }
}

/// A symbol, padded to where the next one overwrites it.
type Padded = ([u8; SYMBOL_MAX], u32);

impl Codes {
    /// The codes of all rows.
    ///
    /// # Errors
    /// If one is beyond the dictionary.
    pub fn codes(&self) -> Result<Vec<u16>> {
        let known = self.symbol_offsets.len() - 1;
        let codes = self.codes.clone().values_of()?;
        if codes.iter().max().is_some_and(|code| usize::from(*code) >= known) {
            return Err(Error::new(format!("the codes of a text go beyond its {known} symbols")));
        }
        Ok(codes)
    }

    fn symbol(&self, code: usize) -> Option<&[u8]> {
        let (start, end) = (*self.symbol_offsets.get(code)?, *self.symbol_offsets.get(code + 1)?);
        self.symbols.get(start as usize..end as usize)
    }

    /// All symbols, padded.
    fn padded(&self) -> Vec<Padded> {
        let pad = |code: usize| {
            let mut bytes = [0; SYMBOL_MAX];
            let symbol = self.symbol(code).unwrap_or_default();
            bytes[..symbol.len()].copy_from_slice(symbol);
            (bytes, symbol.len() as u32)
        };
        (0..self.symbol_offsets.len() - 1).map(pad).collect()
    }

    fn decode(&self, from: usize, len: usize) -> Result<Plain> {
        let offsets = offsets_of(self.lengths[from..from + len].iter().map(|length| *length as usize))?;
        let total = offsets.last().map_or(0, |end| *end as usize);
        let (first, last) = (self.offsets[from] as usize, self.offsets[from + len] as usize);
        if total > (last - first) * SYMBOL_MAX {
            return Err(unequal((last - first) * SYMBOL_MAX, total));
        }
        let padded = self.padded();
        let mut out = vec![0_u8; total + SYMBOL_MAX];
        let mut end = 0;
        let mut block = [0_u16; BLOCK];
        for start in (first..last).step_by(BLOCK) {
            let block = &mut block[..BLOCK.min(last - start)];
            self.codes.numbers.fill(start, block)?;
            for code in block {
                let Some((bytes, length)) = padded.get(usize::from(*code)) else {
                    return Err(Error::new(format!("code {code} is beyond the {} symbols of a text", padded.len())));
                };
                let Some(slot) = out.get_mut(end..).and_then(|rest| rest.first_chunk_mut::<SYMBOL_MAX>()) else {
                    return Err(unequal(end + SYMBOL_MAX, total));
                };
                *slot = *bytes;
                end += *length as usize;
            }
        }
        if end != total {
            return Err(unequal(end, total));
        }
        out.truncate(total);
        Ok(Plain { offsets, bytes: out.into() })
    }

    fn pick(&self, rows: &[u32]) -> Result<Plain> {
        let offsets = offsets_of(rows.iter().map(|row| self.lengths[*row as usize] as usize))?;
        let (mut bytes, mut codes) = (Vec::new(), Vec::new());
        for (at, row) in rows.iter().enumerate() {
            let (first, last) = (self.offsets[*row as usize] as usize, self.offsets[*row as usize + 1] as usize);
            codes.resize(last - first, 0);
            self.codes.numbers.fill(first, &mut codes)?;
            for code in &codes {
                let symbol = self.symbol(usize::from(*code));
                bytes.extend_from_slice(
                    symbol.ok_or_else(|| Error::new(format!("code {code} is beyond a dictionary")))?,
                );
            }
            let expected = offsets[at + 1] as usize;
            if bytes.len() != expected {
                return Err(unequal(bytes.len(), expected));
            }
        }
        Ok(Plain { offsets, bytes: bytes.into() })
    }
}
