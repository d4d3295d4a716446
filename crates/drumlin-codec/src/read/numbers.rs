//! Numbers, still encoded: read by rows from anywhere, whole, or tested for a range.

use bytes::Bytes;

use crate::bits::Bits;
use crate::pack::{BLOCK, packed_bytes};
use crate::read::Limit;
use crate::read::parts::Patches;
use crate::scale::Exponents;
use crate::word::{Memory, Word};
use crate::{Error, Result};

/// A column of numbers.
#[derive(Clone, Debug)]
pub struct Column<W> {
    /// Its values; any value under a null.
    pub numbers: Numbers<W>,
    /// Which rows have a value; `None` if all have.
    pub nulls: Option<Bits>,
    /// Rows.
    pub len: usize,
}

/// Integers in few bits.
#[derive(Clone, Debug)]
pub struct Packed<W> {
    pub(crate) width: usize,
    /// Rows of the first block that come before the first row.
    pub(crate) skip: usize,
    pub(crate) bytes: Bytes,
    /// What is added to each.
    pub(crate) base: W,
    pub(crate) patches: Option<Patches<W>>,
}

/// Places of values among others, in as many bits as they were stored in.
#[derive(Clone, Debug)]
pub enum Places {
    /// 8 bits.
    U8(Numbers<u8>),
    /// 16 bits.
    U16(Numbers<u16>),
    /// 32 bits.
    U32(Numbers<u32>),
    /// 64 bits.
    U64(Numbers<u64>),
}

/// Numbers as they are encoded. Everything was checked but the places of a dictionary.
#[derive(Clone, Debug)]
pub enum Numbers<W> {
    /// As they are.
    Plain(Bytes),
    /// One bit each.
    Bits(Bits),
    /// In few bits.
    Packed(Packed<W>),
    /// All the same.
    Constant(W),
    /// At equal distances.
    Sequence {
        /// The first.
        base: W,
        /// The distance.
        step: W,
    },
    /// Runs of equal values.
    Runs {
        /// Where each run ends.
        ends: Vec<u32>,
        /// Its value.
        values: Vec<W>,
        /// What rows are less than ends count.
        skip: usize,
    },
    /// Distinct values.
    Dictionary {
        /// The place of each row's value.
        places: Box<Places>,
        /// The values.
        values: Vec<W>,
        /// Rows whose places may be anything.
        nulls: Option<Bits>,
    },
    /// Less a number.
    Offset(Box<Numbers<W>>, W),
    /// Small ones first.
    ZigZag(Box<Numbers<W>>),
    /// Floats as integers.
    Scaled(Box<Numbers<W>>, Exponents, Option<Patches<W>>),
    /// Floats in two parts.
    Split {
        /// The places of the first parts.
        left: Box<Numbers<u16>>,
        /// The first parts, moved to where they belong; as many as places can say.
        dictionary: Vec<W>,
        /// The second parts.
        right: Box<Numbers<W>>,
        /// First parts that are not among these.
        patches: Option<Patches<W>>,
        /// The bits of second parts.
        mask: W,
    },
    /// One value in most rows.
    Sparse(W, Patches<W>),
    /// Decoded.
    Held(Vec<W>),
}

impl Places {
    /// The places of the rows from `from` on.
    pub(crate) fn fill(&self, from: usize, out: &mut [u32]) -> Result<()> {
        fn narrow<P: Word>(numbers: &Numbers<P>, from: usize, out: &mut [u32]) -> Result<()> {
            for (at, part) in out.chunks_mut(BLOCK).enumerate() {
                let mut block = [P::default(); BLOCK];
                let block = &mut block[..part.len()];
                numbers.fill(from + at * BLOCK, block)?;
                part.iter_mut().zip(block).for_each(|(out, place)| *out = place.wide().min(u64::from(u32::MAX)) as u32);
            }
            Ok(())
        }
        match self {
            Self::U8(numbers) => narrow(numbers, from, out),
            Self::U16(numbers) => narrow(numbers, from, out),
            Self::U32(numbers) => numbers.fill(from, out),
            Self::U64(numbers) => narrow(numbers, from, out),
        }
    }

    /// The places of some rows.
    pub(crate) fn pick(&self, rows: &[u32]) -> Result<Vec<u32>> {
        fn narrow<P: Word>(numbers: &Numbers<P>, rows: &[u32]) -> Result<Vec<u32>> {
            Ok(numbers.pick(rows)?.into_iter().map(|place| place.wide().min(u64::from(u32::MAX)) as u32).collect())
        }
        match self {
            Self::U8(numbers) => narrow(numbers, rows),
            Self::U16(numbers) => narrow(numbers, rows),
            Self::U32(numbers) => numbers.pick(rows),
            Self::U64(numbers) => narrow(numbers, rows),
        }
    }
}

fn outside(place: u32, count: usize) -> Error {
    Error::new(format!("place {place} is past the end of a dictionary of {count} values"))
}

/// The value at a place, and whether there is one; a row that is null may have any place.
fn looked_up<W: Word>(values: &[W], place: u32, valid: impl FnOnce() -> bool) -> Result<W> {
    match values.get(place as usize) {
        Some(value) => Ok(*value),
        None if valid() => Err(outside(place, values.len())),
        None => Ok(W::default()),
    }
}

/// The values at the places of the rows from `from` on.
fn look_up<W: Word>(
    places: &Places,
    values: &[W],
    valid: impl Fn(usize) -> bool,
    from: usize,
    out: &mut [W],
) -> Result<()> {
    let check = |greatest: usize, at: usize, block: &mut dyn Iterator<Item = u32>| {
        if greatest < values.len() {
            return Ok(());
        }
        // A row that is null may have any place.
        let outside_of = |(row, place): &(usize, u32)| *place as usize >= values.len() && valid(from + at + row);
        block.enumerate().find(outside_of).map_or(Ok(()), |(_, place)| Err(outside(place, values.len())))
    };
    match places {
        Places::U8(numbers) => {
            // As many values as there may be places, so that none is outside.
            let mut all = [W::default(); 256];
            all.iter_mut().zip(values).for_each(|(slot, value)| *slot = *value);
            let mut block = [0_u8; BLOCK];
            for (at, part) in out.chunks_mut(BLOCK).enumerate() {
                let block = &mut block[..part.len()];
                numbers.fill(from + at * BLOCK, block)?;
                let greatest = block.iter().fold(0, |greatest, place| greatest.max(*place));
                check(greatest.into(), at * BLOCK, &mut block.iter().map(|place| u32::from(*place)))?;
                part.iter_mut().zip(block).for_each(|(out, place)| *out = all[usize::from(*place)]);
            }
        }
        _ => {
            let mut block = [0_u32; BLOCK];
            for (at, part) in out.chunks_mut(BLOCK).enumerate() {
                let block = &mut block[..part.len()];
                places.fill(from + at * BLOCK, block)?;
                let greatest = block.iter().fold(0, |greatest, place| greatest.max(*place));
                check(greatest as usize, at * BLOCK, &mut block.iter().copied())?;
                for (out, place) in part.iter_mut().zip(block) {
                    *out = values.get(*place as usize).copied().unwrap_or_default();
                }
            }
        }
    }
    Ok(())
}

impl<W: Word> Packed<W> {
    fn block(&self, at: usize) -> &[u8] {
        let bytes = packed_bytes(self.width);
        &self.bytes[at * bytes..(at + 1) * bytes]
    }

    fn fill(&self, from: usize, out: &mut [W]) {
        let (first, mut done) = (from + self.skip, 0);
        while done < out.len() {
            let at = first + done;
            let (block, within) = (self.block(at / BLOCK), at % BLOCK);
            let rest = &mut out[done..];
            match rest.first_chunk_mut::<BLOCK>() {
                Some(whole) if within == 0 => {
                    W::unpack(block, self.width, self.base, whole);
                    done += BLOCK;
                }
                _ => {
                    let part = (BLOCK - within).min(rest.len());
                    if part * 16 < BLOCK {
                        for (place, out) in rest[..part].iter_mut().enumerate() {
                            *out = W::unpack_one(block, self.width, within + place).plus(self.base);
                        }
                    } else {
                        let mut whole = [W::default(); BLOCK];
                        W::unpack(block, self.width, self.base, &mut whole);
                        rest[..part].copy_from_slice(&whole[within..within + part]);
                    }
                    done += part;
                }
            }
        }
        if let Some(patches) = &self.patches {
            patches.of(from, out.len()).for_each(|(row, value)| out[row] = value.plus(self.base));
        }
    }

    fn one(&self, row: u32) -> W {
        if let Some(patches) = &self.patches
            && let Some(at) = patches.at(row)
        {
            return patches.values[at].plus(self.base);
        }
        let at = row as usize + self.skip;
        W::unpack_one(self.block(at / BLOCK), self.width, at % BLOCK).plus(self.base)
    }
}

impl<W: Word> Numbers<W> {
    /// The values of the rows from `from` on, as many as `out` has. All must be there. Fails if a dictionary has no such place.
    pub(crate) fn fill(&self, from: usize, out: &mut [W]) -> Result<()> {
        match self {
            Self::Plain(bytes) => W::load_all(&bytes[from * W::BYTES..], out),
            Self::Bits(bits) => {
                out.iter_mut().enumerate().for_each(|(row, out)| *out = W::low(u64::from(bits.get(from + row))));
            }
            Self::Packed(packed) => packed.fill(from, out),
            Self::Constant(value) => out.fill(*value),
            Self::Sequence { base, step } => {
                let mut value = base.plus(step.times(W::low(from as u64)));
                for out in out {
                    *out = value;
                    value = value.plus(*step);
                }
            }
            Self::Runs { ends, values, skip } => fill_runs(ends, values, from + skip, out)?,
            Self::Dictionary { places, values, nulls } => {
                let valid = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.get(row));
                look_up(places, values, valid, from, out)?;
            }
            Self::Offset(numbers, by) => {
                numbers.fill(from, out)?;
                out.iter_mut().for_each(|value| *value = value.plus(*by));
            }
            Self::ZigZag(numbers) => {
                numbers.fill(from, out)?;
                out.iter_mut().for_each(|value| *value = value.unzigzag());
            }
            Self::Scaled(numbers, exponents, patches) => {
                // Block by block, so that the integers are still near when they become floats.
                for (at, part) in out.chunks_mut(BLOCK).enumerate() {
                    numbers.fill(from + at * BLOCK, part)?;
                    W::unscale_all(part, *exponents);
                }
                if let Some(patches) = patches {
                    patches.of(from, out.len()).for_each(|(row, value)| out[row] = value);
                }
            }
            Self::Split { left, dictionary, right, patches, mask } => {
                let mut parts = [0; BLOCK];
                for (at, part) in out.chunks_mut(BLOCK).enumerate() {
                    let (first, parts) = (from + at * BLOCK, &mut parts[..part.len()]);
                    left.fill(first, parts)?;
                    right.fill(first, part)?;
                    for (out, place) in part.iter_mut().zip(parts) {
                        let left = dictionary.get(usize::from(*place)).copied().unwrap_or_default();
                        *out = joined(left, *out, *mask);
                    }
                    if let Some(patches) = patches {
                        patches.of(first, part.len()).for_each(|(row, left)| {
                            part[row] = joined(left, part[row], *mask);
                        });
                    }
                }
            }
            Self::Sparse(value, patches) => {
                out.fill(*value);
                patches.of(from, out.len()).for_each(|(row, value)| out[row] = value);
            }
            Self::Held(values) => out.copy_from_slice(&values[from..from + out.len()]),
        }
        Ok(())
    }

    /// The values of some rows, in any order; all must be there.
    pub(crate) fn pick(&self, rows: &[u32]) -> Result<Vec<W>> {
        let each = |value: &dyn Fn(u32) -> W| rows.iter().map(|row| value(*row)).collect();
        Ok(match self {
            Self::Plain(bytes) => each(&|row| W::load(&bytes[row as usize * W::BYTES..])),
            Self::Bits(bits) => each(&|row| W::low(u64::from(bits.get(row as usize)))),
            Self::Packed(packed) => each(&|row| packed.one(row)),
            Self::Constant(value) => vec![*value; rows.len()],
            Self::Sequence { base, step } => each(&|row| base.plus(step.times(W::low(row.into())))),
            Self::Runs { ends, values, skip } => {
                let run = |row: u32| ends.partition_point(|end| *end as usize <= row as usize + skip);
                let value = |row: &u32| values.get(run(*row)).copied();
                let all: Option<Vec<W>> = rows.iter().map(value).collect();
                all.ok_or_else(|| Error::new("runs end too early"))?
            }
            Self::Dictionary { places, values, nulls } => {
                let places = places.pick(rows)?;
                let value = |(place, row): (u32, &u32)| {
                    looked_up(values, place, || nulls.as_ref().is_none_or(|nulls| nulls.get(*row as usize)))
                };
                places.into_iter().zip(rows).map(value).collect::<Result<_>>()?
            }
            Self::Offset(numbers, by) => numbers.pick(rows)?.into_iter().map(|value| value.plus(*by)).collect(),
            Self::ZigZag(numbers) => numbers.pick(rows)?.into_iter().map(W::unzigzag).collect(),
            Self::Scaled(numbers, exponents, patches) => {
                let mut values = numbers.pick(rows)?;
                values.iter_mut().for_each(|value| *value = value.unscaled(*exponents));
                if let Some(patches) = patches {
                    for (value, row) in values.iter_mut().zip(rows) {
                        *value = patches.at(*row).map_or(*value, |at| patches.values[at]);
                    }
                }
                values
            }
            Self::Split { left, dictionary, right, patches, mask } => {
                let mut values = right.pick(rows)?;
                for ((value, place), row) in values.iter_mut().zip(left.pick(rows)?).zip(rows) {
                    let patched = patches.as_ref().and_then(|patches| patches.at(*row).map(|at| patches.values[at]));
                    let left = dictionary.get(usize::from(place)).copied().unwrap_or_default();
                    *value = joined(patched.unwrap_or(left), *value, *mask);
                }
                values
            }
            Self::Sparse(value, patches) => each(&|row| patches.at(row).map_or(*value, |at| patches.values[at])),
            Self::Held(values) => each(&|row| values[row as usize]),
        })
    }
}

/// The values of the runs from place `at` on.
fn fill_runs<W: Word>(ends: &[u32], values: &[W], at: usize, out: &mut [W]) -> Result<()> {
    /// A run of any length begins with so many, which the next runs write over: most runs are short, and then nothing depends on how short.
    const SHORT: usize = 8;
    let first = ends.partition_point(|end| *end as usize <= at);
    let runs = ends[first..].iter().zip(values.get(first..).unwrap_or_default());
    let mut done = 0;
    for (end, value) in runs {
        let end = (*end as usize - at).min(out.len());
        let begun = match out[done..].first_chunk_mut::<SHORT>() {
            Some(short) => {
                *short = [*value; SHORT];
                done + SHORT
            }
            None => done,
        };
        if begun < end {
            out[begun..end].fill(*value);
        }
        done = end;
        if done == out.len() {
            return Ok(());
        }
    }
    if out.is_empty() { Ok(()) } else { Err(Error::new("runs end too early")) }
}

/// A float of its two parts.
fn joined<W: Word>(left: W, right: W, mask: W) -> W {
    W::low(left.wide() | right.wide() & mask.wide())
}

impl<W: Word> Column<W> {
    /// Calls `each` with the first row and the values of each block.
    pub(crate) fn each_block(&self, mut each: impl FnMut(usize, &[W]) -> Result<()>) -> Result<()> {
        let mut block = [W::default(); BLOCK];
        for from in (0..self.len).step_by(BLOCK) {
            let block = &mut block[..BLOCK.min(self.len - from)];
            self.numbers.fill(from, block)?;
            each(from, block)?;
        }
        Ok(())
    }

    /// All values.
    pub(crate) fn held(self, limit: &Limit) -> Result<Vec<W>> {
        if let Numbers::Held(values) = self.numbers {
            return Ok(values);
        }
        limit.take(self.len, W::BYTES)?;
        self.values_of()
    }

    /// The same, whatever they take.
    pub(crate) fn values_of(self) -> Result<Vec<W>> {
        if let Numbers::Held(values) = self.numbers {
            return Ok(values);
        }
        // Block by block, so that memory is written once, not cleared first.
        let mut all = Vec::with_capacity(self.len);
        self.each_block(|_, block| {
            all.extend_from_slice(block);
            Ok(())
        })?;
        Ok(all)
    }

    /// All values, and which rows have one. One pass.
    ///
    /// # Errors
    /// If a place in a dictionary is past its end.
    pub fn decode(self) -> Result<(Memory, Option<Bits>)> {
        let nulls = self.nulls.clone();
        Ok(match self.numbers {
            Numbers::Plain(bytes) => (Memory::Shared(bytes.slice(..self.len * W::BYTES)), nulls),
            _ => (W::memory(self.values_of()?), nulls),
        })
    }

    /// The values of the rows `from..from + len`, and which of them have one.
    ///
    /// # Errors
    /// If a place in a dictionary is past its end.
    pub fn decode_range(&self, from: usize, len: usize) -> Result<(Memory, Option<Bits>)> {
        let mut values = vec![W::default(); len];
        self.numbers.fill(from, &mut values)?;
        Ok((W::memory(values), self.nulls.as_ref().map(|nulls| Bits::collect(len, |row| nulls.get(from + row)))))
    }

    /// The values of some rows, and which of them have one. Each must be less than [`Self::len`].
    ///
    /// # Errors
    /// If a place in a dictionary is past its end.
    pub fn pick(&self, rows: &[u32]) -> Result<(Memory, Option<Bits>)> {
        Ok((W::memory(self.numbers.pick(rows)?), self.nulls.as_ref().map(|nulls| nulls.pick(rows))))
    }

    /// The powers of ten by which floats are integers, if they are.
    pub fn exponents(&self) -> Option<Exponents> {
        match &self.numbers {
            Numbers::Scaled(_, exponents, _) => Some(*exponents),
            _ => None,
        }
    }

    /// One bit for each row, low bits first: whether its value less `low`, modulo the number of bits, is at most `span`; any bit for a
    /// null. Block by block, without memory for the values; runs are tested once each.
    ///
    /// # Errors
    /// If a place in a dictionary is past its end.
    pub fn test(&self, low: W, span: W) -> Result<Vec<u8>> {
        let mut all = vec![0_u8; self.len.next_multiple_of(BLOCK) / 8];
        match &self.numbers {
            Numbers::Constant(value) => {
                if value.minus(low) <= span {
                    all.fill(0xff);
                }
            }
            Numbers::Runs { ends, values, skip } => {
                let mut start = 0;
                for (end, value) in ends.iter().zip(values) {
                    let end = (*end as usize).saturating_sub(*skip).min(self.len);
                    if value.minus(low) <= span && start < end {
                        set(&mut all, start, end);
                    }
                    start = start.max(end);
                }
            }
            numbers => {
                let mut block = [W::default(); BLOCK];
                for (at, out) in all.as_chunks_mut::<{ BLOCK / 8 }>().0.iter_mut().enumerate() {
                    let from = at * BLOCK;
                    let here = BLOCK.min(self.len - from);
                    numbers.fill(from, &mut block[..here])?;
                    W::test(&block, low, span, out);
                }
            }
        }
        all.truncate(self.len.div_ceil(8));
        Ok(all)
    }
}

/// Sets the bits `start..end`.
fn set(bits: &mut [u8], start: usize, end: usize) {
    let (first, last) = (start / 8, (end - 1) / 8);
    let (from, to) = (0xff_u8 << (start % 8), 0xff_u8 >> (7 - (end - 1) % 8));
    if first == last {
        bits[first] |= from & to;
    } else {
        bits[first] |= from;
        bits[first + 1..last].fill(0xff);
        bits[last] |= to;
    }
}
