//! A tree of encodings (the codec's) as bytes: its nodes, then the buffers.
//!
//! Element type and length come from the reader, names of encodings from [`drumlin_codec::ENCODINGS`].
//!
//! ```text
//! tree   = node, buffers of all nodes in the order of the nodes (16-aligned if long, see wire.rs)
//! node   = encoding  u8       position in ENCODINGS, or STEPS
//!          metadata  varint length, bytes
//!          buffers   varint count, then a varint per buffer: its length * 8 + log2 of its alignment (0 to 4)
//!          children  varint count, then a node per child
//! ```
//! STEPS is for ascending values (keys, offsets, ends of runs): metadata is the first value in 8 bytes; the only child holds
//! the distances from each value to the next, as unsigned integers of the same width.

use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use bytes::Bytes;
use drumlin_codec::{Bits, Built, Column, Exponents, Limit, Memory, Ptype, RawNode, TextColumn, bit_of, numbers};

use super::bits::{aligned, packed};
use super::wire::{ALIGNMENT, Reader, Writer, decoded_max};
use crate::base::{Error, Result};
use crate::segment::encode::scheme::Search;

/// No tree that is written is nested this deeply; bounds recursion on damaged bytes.
const DEPTH_MAX: usize = 12;

/// Writes a tree.
pub(in crate::segment) fn write(built: &Built, out: &mut Writer) {
    out.found.encodings |= built.encodings();
    out.found.exponents = out.found.exponents.or(built.exponents);
    write_node(built, out);
    write_buffers(built, out);
}

fn write_node(built: &Built, out: &mut Writer) {
    out.u8(built.encoding);
    out.varint(built.metadata.len() as u64);
    out.raw(&built.metadata);
    out.varint(built.buffers.len() as u64);
    for (buffer, alignment) in &built.buffers {
        out.varint((buffer.len() as u64) << 3 | u64::from(*alignment));
    }
    out.varint(built.children.len() as u64);
    built.children.iter().for_each(|child| write_node(child, out));
}

fn write_buffers(built: &Built, out: &mut Writer) {
    built.buffers.iter().for_each(|(buffer, _)| out.buffer(buffer));
    built.children.iter().for_each(|child| write_buffers(child, out));
}

/// Whether a reader takes a tree of `rows` values, rather than take it for damage.
pub(in crate::segment) fn is_readable(built: &Built, rows: usize) -> bool {
    built.depth() < DEPTH_MAX && built.elements() <= elements_max(rows, built.size())
}

/// The maximum length of a child of an array of `rows` in `bytes`. Damaged lengths must not make a decoder allocate
/// without bound; [`is_readable`] refuses the rare array that breaks the rule.
fn elements_max(rows: usize, bytes: usize) -> usize {
    rows.saturating_add(bytes).saturating_mul(64).saturating_add(4096)
}

/// A tree as it was read, and what decoding it may take.
pub(in crate::segment) struct StoredTree {
    root: RawNode,
    limit: Limit,
    rows: usize,
}

/// The error for a tree that cannot be decoded.
fn damaged(error: drumlin_codec::Error) -> Error {
    Error::corrupt("the encodings of a segment do not fit together").with_source(error)
}

/// Reads what [`write`] wrote: a tree of `rows` values.
pub(in crate::segment) fn read(input: &mut Reader, rows: usize) -> Result<StoredTree> {
    let size = input.left();
    let mut shapes = Vec::new();
    let mut root = read_node(input, DEPTH_MAX, &mut shapes)?;
    let mut shapes = shapes.into_iter();
    read_buffers(&mut root, input, &mut shapes)?;
    Ok(StoredTree { root, limit: Limit::new(elements_max(rows, size), decoded_max(size)), rows })
}

/// Reads a node and those below it; the shapes of their buffers, which come after all nodes, are added to `shapes`.
fn read_node(input: &mut Reader, depth: usize, shapes: &mut Vec<Vec<usize>>) -> Result<RawNode> {
    let depth =
        depth.checked_sub(1).ok_or_else(|| Error::corrupt("the encodings of a segment are nested too deeply"))?;
    let encoding = input.u8()?;
    input.found.encodings |= bit_of(encoding);
    let metadata = input.count()?;
    let metadata = input.raw(metadata)?;
    shapes.push((0..input.count()?).map(|_| input.count()).collect::<Result<_>>()?);
    let children = (0..input.count()?).map(|_| read_node(input, depth, shapes)).collect::<Result<_>>()?;
    Ok(RawNode { encoding, metadata, buffers: Vec::new(), children })
}

fn read_buffers(node: &mut RawNode, input: &mut Reader, shapes: &mut impl Iterator<Item = Vec<usize>>) -> Result<()> {
    for shape in shapes.next().unwrap_or_default() {
        let alignment = 1 << (shape & 7);
        if alignment > ALIGNMENT {
            return Err(Error::corrupt(format!(
                "a buffer is aligned to {alignment} bytes, more than a segment allows"
            )));
        }
        node.buffers.push(input.buffer(shape >> 3)?);
    }
    node.children.iter_mut().try_for_each(|child| read_buffers(child, input, shapes))
}

/// Runs code for the words of a type.
macro_rules! with_words {
    ($ptype:expr, $W:ident => $body:expr) => {
        match $ptype.byte_width() {
            1 => {
                type $W = u8;
                $body
            }
            2 => {
                type $W = u16;
                $body
            }
            4 => {
                type $W = u32;
                $body
            }
            _ => {
                type $W = u64;
                $body
            }
        }
    };
}

/// The tree of numbers of a type, whose nulls are in it; `None` if a reader would refuse it.
pub(in crate::segment) fn of_numbers(
    ptype: Ptype,
    values: &Buffer,
    nulls: Option<&NullBuffer>,
    search: Search,
) -> Option<Built> {
    let bits = nulls.map(bits_of);
    let (built, rows) = with_words!(ptype, W => {
        let values = values.typed_data::<W>();
        (numbers::<W>(values, ptype, bits.as_ref(), &search.for_codec()), values.len())
    });
    is_readable(&built, rows).then_some(built)
}

/// Decoded numbers, and which rows have one.
pub(in crate::segment) struct StoredNumbers {
    pub values: Buffer,
    pub nulls: Option<NullBuffer>,
    /// The powers of ten by which they are integers, if they are.
    pub exponents: Option<Exponents>,
}

impl StoredTree {
    fn nulls(&self, bits: Option<Bits>, nullable: bool) -> Result<Option<NullBuffer>> {
        if bits.is_some() && !nullable {
            return Err(Error::corrupt("a column without nulls has some"));
        }
        Ok(bits.map(nulls_of))
    }

    /// All numbers of a type.
    pub(in crate::segment) fn numbers(&self, ptype: Ptype, nullable: bool) -> Result<StoredNumbers> {
        with_words!(ptype, W => {
            let column = Column::<W>::read(&self.root, ptype, self.rows, &self.limit).map_err(damaged)?;
            let exponents = column.exponents();
            let (values, bits) = column.decode().map_err(damaged)?;
            Ok(StoredNumbers { values: buffer_of(values), nulls: self.nulls(bits, nullable)?, exponents })
        })
    }

    /// The numbers of the rows `picked`, which ascend.
    pub(in crate::segment) fn pick_numbers(
        &self,
        ptype: Ptype,
        nullable: bool,
        picked: &[u32],
    ) -> Result<StoredNumbers> {
        with_words!(ptype, W => {
            let column = Column::<W>::read(&self.root, ptype, self.rows, &self.limit).map_err(damaged)?;
            let (first, span) = span(picked);
            let found = if span == picked.len() { column.decode_range(first, span) } else { column.pick(picked) };
            let (values, bits) = found.map_err(damaged)?;
            Ok(StoredNumbers { values: buffer_of(values), nulls: self.nulls(bits, nullable)?, exponents: None })
        })
    }

    /// One bit for each row: whether its number, of integers of a type, is in a range.
    pub(in crate::segment) fn within(
        &self,
        ptype: Ptype,
        nullable: bool,
        low: i128,
        high: i128,
    ) -> Result<BooleanBuffer> {
        let bits = 8 * ptype.byte_width();
        let (least, greatest) = if ptype.is_signed() {
            (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1)
        } else {
            (0, (1_i128 << bits) - 1)
        };
        let (low, high) = (low.max(least), high.min(greatest));
        if low > high {
            return Ok(BooleanBuffer::new_unset(self.rows));
        }
        with_words!(ptype, W => {
            let column = Column::<W>::read(&self.root, ptype, self.rows, &self.limit).map_err(damaged)?;
            let found = column.test(low as W, (high - low) as W).map_err(damaged)?;
            let found = BooleanBuffer::new(Buffer::from_vec(found), 0, self.rows);
            Ok(match self.nulls(column.nulls, nullable)? {
                Some(nulls) => &found & nulls.inner(),
                None => found,
            })
        })
    }

    /// The texts, still encoded.
    pub(in crate::segment) fn texts(&self, nullable: bool) -> Result<TextColumn> {
        let column = TextColumn::read(&self.root, self.rows, &self.limit).map_err(damaged)?;
        self.nulls(column.nulls.clone(), nullable)?;
        Ok(column)
    }
}

/// The first of ascending rows, and how many there are from it to the last.
fn span(picked: &[u32]) -> (usize, usize) {
    match picked {
        [first, .., last] => (*first as usize, (last - first) as usize + 1),
        [only] => (*only as usize, 1),
        [] => (0, 0),
    }
}

/// Decoded values as Arrow's memory.
pub(in crate::segment) fn buffer_of(values: Memory) -> Buffer {
    match values {
        Memory::Shared(bytes) => aligned(bytes),
        Memory::U8(values) => Buffer::from_vec(values),
        Memory::U16(values) => Buffer::from_vec(values),
        Memory::U32(values) => Buffer::from_vec(values),
        Memory::U64(values) => Buffer::from_vec(values),
    }
}

/// Which rows have a value, as Arrow has it.
pub(in crate::segment) fn nulls_of(bits: Bits) -> NullBuffer {
    let (bytes, offset, len) = bits.into_parts();
    NullBuffer::new(BooleanBuffer::new(Buffer::from(bytes), offset, len))
}

/// The same for the codec.
pub(in crate::segment) fn bits_of(nulls: &NullBuffer) -> Bits {
    let nulls = packed(nulls);
    let bytes = Bytes::copy_from_slice(&nulls.inner().values()[..nulls.len().div_ceil(8)]);
    Bits::new(bytes, 0, nulls.len()).expect("one bit for each row")
}

/// The result of decoding, with errors of the codec as damage.
pub(in crate::segment) fn decoded<T>(result: drumlin_codec::Result<T>) -> Result<T> {
    result.map_err(damaged)
}
