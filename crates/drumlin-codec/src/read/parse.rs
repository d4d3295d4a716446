//! Nodes to columns of numbers, each encoding checked as far as it must be for nothing to go wrong later.

use crate::bits::Bits;
use crate::node::*;
use crate::pack::{BLOCK, packed_bytes};
use crate::proto::{Message, Scalar};
use crate::read::numbers::{Column, Numbers, Packed, Places};
use crate::read::parts::{Patches, PatchesHead, buffer, child, counts, expect, int_type, validity};
use crate::read::{DEPTH_MAX, Limit};
use crate::scale::Exponents;
use crate::word::{Ptype, Word};
use crate::{Error, Result};

/// What the values of a node are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Numbers of a type.
    Number(Ptype),
    /// Truth values, as bytes 0 and 1.
    Bool,
}

impl Kind {
    fn is_int(self) -> bool {
        matches!(self, Self::Number(ptype) if ptype.is_int())
    }
}

/// Reads a node as `len` values of a kind, whose words are `W`.
pub fn column<W: Word>(node: &RawNode, kind: Kind, len: usize, limit: &Limit, depth: usize) -> Result<Column<W>> {
    limit.check(len)?;
    let depth = depth.checked_sub(1).ok_or_else(|| Error::new("encodings are nested too deeply"))?;
    let parse = Parse { node, kind, len, limit, depth };
    match node.encoding {
        PRIMITIVE => parse.primitive(),
        BOOL => parse.bitmap(),
        CONSTANT => parse.constant(),
        DICT => parse.dictionary(),
        MASKED => parse.masked(),
        SPARSE => parse.sparse(),
        SEQUENCE => parse.sequence(),
        RUNEND => parse.runs(),
        ZIGZAG => parse.zigzag(),
        ALP => parse.scaled(),
        ALPRD => parse.split(),
        BITPACKED => parse.packed(),
        FOR => parse.offset(),
        RLE => parse.block_runs(),
        STEPS => parse.steps(),
        _ => Err(Error::new(format!("numbers cannot be encoded as {}", node.name()))),
    }
}

impl<W: Word> Column<W> {
    /// Reads `len` numbers of a type, whose words are `W`, from the root of a tree.
    ///
    /// # Errors
    /// If the nodes do not fit together.
    pub fn read(node: &RawNode, ptype: Ptype, len: usize, limit: &Limit) -> Result<Self> {
        if ptype.byte_width() != W::BYTES {
            return Err(Error::new(format!("numbers of {} bytes are read as {}", ptype.byte_width(), W::BYTES)));
        }
        column(node, Kind::Number(ptype), len, limit, DEPTH_MAX)
    }
}

/// A node that is read.
struct Parse<'a> {
    node: &'a RawNode,
    kind: Kind,
    len: usize,
    limit: &'a Limit,
    depth: usize,
}

impl Parse<'_> {
    fn message(&self) -> Result<Message<'_>> {
        Message::read(&self.node.metadata)
    }

    fn done<W>(&self, numbers: Numbers<W>, nulls: Option<Bits>) -> Result<Column<W>> {
        Ok(Column { numbers, nulls, len: self.len })
    }

    fn ints(&self) -> Result<()> {
        if !self.kind.is_int() {
            return Err(Error::new(format!("{} holds integers only", self.node.name())));
        }
        Ok(())
    }

    fn below<V: Word>(&self, at: usize, kind: Kind, len: usize) -> Result<Column<V>> {
        column(child(self.node, at)?, kind, len, self.limit, self.depth)
    }

    fn validity(&self, at: usize) -> Result<Option<Bits>> {
        validity(self.node, at, self.len, self.limit, self.depth)
    }

    fn primitive<W: Word>(&self) -> Result<Column<W>> {
        expect(self.node, 1, 0..=1)?;
        let bytes = buffer(self.node, 0)?;
        if self.kind == Kind::Bool || Some(bytes.len()) != self.len.checked_mul(W::BYTES) {
            return Err(Error::new(format!("{} bytes for {} numbers of {}", bytes.len(), self.len, W::BYTES)));
        }
        self.done(Numbers::Plain(bytes.clone()), self.validity(0)?)
    }

    fn bitmap<W: Word>(&self) -> Result<Column<W>> {
        expect(self.node, 1, 0..=1)?;
        let offset = self.message()?.count(1)?;
        let bits = Bits::new(buffer(self.node, 0)?.clone(), offset, self.len).filter(|_| self.kind == Kind::Bool);
        let bits = bits.ok_or_else(|| Error::new(format!("a bitmap is too short for {} rows", self.len)))?;
        self.done(Numbers::Bits(bits), self.validity(0)?)
    }

    /// A value of this kind; `None` if it is null.
    fn scalar<W: Word>(&self, message: &Message) -> Result<Option<W>> {
        match message.scalar()? {
            Scalar::Null => Ok(None),
            Scalar::Number(value) => {
                let word = W::low(value);
                let signed = matches!(self.kind, Kind::Number(ptype) if ptype.is_signed());
                // Floats of 32 bits, and integers, must fit.
                if if signed { word.signed() as u64 == value } else { word.wide() == value } {
                    return Ok(Some(word));
                }
                Err(Error::new(format!("a value of {} does not fit {} bytes", value as i64, W::BYTES)))
            }
            Scalar::Bytes(_) => Err(Error::new("a text stands in the place of a number")),
        }
    }

    fn constant<W: Word>(&self) -> Result<Column<W>> {
        let value = self.scalar(&Message::read(buffer(self.node, 0)?)?)?;
        let nulls = value.is_none().then(|| self.none()).transpose()?;
        self.done(Numbers::Constant(value.unwrap_or_default()), nulls)
    }

    /// That no row has a value.
    fn none(&self) -> Result<Bits> {
        self.limit.take(self.len.div_ceil(8), 1)?;
        Ok(Bits::collect(self.len, |_| false))
    }

    fn dictionary<W: Word>(&self) -> Result<Column<W>> {
        expect(self.node, 0, 2..=2)?;
        let message = self.message()?;
        let (count, places) = (message.count(1)?, int_type(&message, 2)?);
        let (places, place_nulls) = self.places(places)?;
        let values = self.below::<W>(1, self.kind, count)?;
        let value_nulls = values.nulls.clone();
        let values = values.held(self.limit)?;
        let nulls = match value_nulls {
            None => place_nulls.clone(),
            Some(of_values) => {
                self.limit.take(self.len, 4)?;
                let mut all = vec![0; self.len];
                places.fill(0, &mut all)?;
                Some(Bits::collect(self.len, |row| {
                    place_nulls.as_ref().is_none_or(|nulls| nulls.get(row))
                        && of_values.len() > all[row] as usize
                        && of_values.get(all[row] as usize)
                }))
            }
        };
        self.done(Numbers::Dictionary { places: Box::new(places), values, nulls: place_nulls }, nulls)
    }

    fn places(&self, ptype: Ptype) -> Result<(Places, Option<Bits>)> {
        let kind = Kind::Number(ptype);
        match ptype.byte_width() {
            1 => self.below(0, kind, self.len).map(|column| (Places::U8(column.numbers), column.nulls)),
            2 => self.below(0, kind, self.len).map(|column| (Places::U16(column.numbers), column.nulls)),
            4 => self.below(0, kind, self.len).map(|column| (Places::U32(column.numbers), column.nulls)),
            _ => self.below(0, kind, self.len).map(|column| (Places::U64(column.numbers), column.nulls)),
        }
    }

    fn masked<W: Word>(&self) -> Result<Column<W>> {
        expect(self.node, 0, 1..=2)?;
        let column = self.below::<W>(0, self.kind, self.len)?;
        if column.nulls.is_some() {
            return Err(Error::new("what is below a mask has nulls itself"));
        }
        self.done(column.numbers, self.validity(1)?)
    }

    fn sparse<W: Word>(&self) -> Result<Column<W>> {
        expect(self.node, 1, 2..=2)?;
        let fill = self.scalar::<W>(&Message::read(buffer(self.node, 0)?)?)?;
        let head = self.message()?.message(1)?.ok_or_else(|| Error::new("the rows of a sparse column are missing"))?;
        let head = PatchesHead::read(&head)?;
        let patches: Patches<W> = head.patches(self.node, 0, self.kind, self.len, self.limit, self.depth)?;
        let nulls = if fill.is_none() || patches.nulls.is_some() {
            self.limit.take(self.len, 1)?;
            let mut valid = vec![fill.is_some(); self.len];
            for (at, row) in patches.rows.iter().enumerate() {
                valid[*row as usize] = patches.nulls.as_ref().is_none_or(|nulls| nulls.get(at));
            }
            Some(Bits::collect(self.len, |row| valid[row]))
        } else {
            None
        };
        self.done(Numbers::Sparse(fill.unwrap_or_default(), patches), nulls)
    }

    fn sequence<W: Word>(&self) -> Result<Column<W>> {
        expect(self.node, 0, 0..=0)?;
        self.ints()?;
        let message = self.message()?;
        let part = |number: u64| {
            let part = message.message(number)?.ok_or_else(|| Error::new("a part of a sequence is missing"))?;
            match part.scalar()? {
                Scalar::Number(value) => Ok(W::low(value)),
                _ => Err(Error::new("a part of a sequence is no number")),
            }
        };
        self.done(Numbers::Sequence { base: part(1)?, step: part(2)? }, None)
    }

    fn runs<W: Word>(&self) -> Result<Column<W>> {
        expect(self.node, 0, 2..=2)?;
        let message = self.message()?;
        let (ptype, count, skip) = (int_type(&message, 1)?, message.count(2)?, message.count(3)?);
        let ends = counts(child(self.node, 0)?, ptype, count, self.limit, self.depth)?;
        let values = self.below::<W>(1, self.kind, count)?;
        let run_nulls = values.nulls.clone();
        let values = values.held(self.limit)?;
        let end = ends.last().map_or(0, |end| *end as usize);
        if !ends.is_sorted() || self.len.checked_add(skip).is_none_or(|needed| end < needed) {
            return Err(Error::new(format!("runs end at {end}; expected {} rows", self.len)));
        }
        let nulls = match run_nulls {
            None => None,
            Some(of_runs) => {
                let runs = ends.iter().enumerate().map(|(run, end)| (u64::from(of_runs.get(run)), *end));
                self.limit.take(count, 1)?;
                let values = runs.map(|(valid, _)| valid as u8).collect();
                let valid = Numbers::<u8>::Runs { ends: ends.clone(), values, skip };
                Some(Column { numbers: valid, nulls: None, len: self.len }.into_bits(self.limit)?)
            }
        };
        self.done(Numbers::Runs { ends, values, skip }, nulls)
    }

    fn zigzag<W: Word>(&self) -> Result<Column<W>> {
        expect(self.node, 0, 1..=1)?;
        self.ints()?;
        let column = self.below::<W>(0, Kind::Number(W::PTYPE), self.len)?;
        self.done(Numbers::ZigZag(Box::new(column.numbers)), column.nulls)
    }

    fn scaled<W: Word>(&self) -> Result<Column<W>> {
        expect(self.node, 0, 1..=4)?;
        let message = self.message()?;
        let power = |number: u64| -> Result<u8> {
            let power = message.number(number)?.unwrap_or(0);
            let max = Exponents::max(W::BITS).filter(|max| power <= u64::from(*max));
            max.map(|_| power as u8).ok_or_else(|| Error::new(format!("10 to the {power} is too large for a float")))
        };
        let exponents = Exponents { e: power(1)?, f: power(2)? };
        let ints = match self.kind {
            Kind::Number(Ptype::F32) => Ptype::I32,
            Kind::Number(Ptype::F64) => Ptype::I64,
            _ => return Err(Error::new("only floats of 32 and 64 bits are scaled")),
        };
        let column = self.below::<W>(0, Kind::Number(ints), self.len)?;
        let patches = message.message(3)?.map(|head| {
            PatchesHead::read(&head)?.patches::<W>(self.node, 1, self.kind, self.len, self.limit, self.depth)
        });
        self.done(Numbers::Scaled(Box::new(column.numbers), exponents, patches.transpose()?), column.nulls)
    }

    fn split<W: Word>(&self) -> Result<Column<W>> {
        expect(self.node, 0, 2..=5)?;
        let message = self.message()?;
        let width = message.count(1)?;
        let ptype = int_type(&message, 4)?;
        let floats = matches!(self.kind, Kind::Number(Ptype::F32 | Ptype::F64));
        if !floats || width >= W::BITS || ptype.byte_width() != 2 {
            return Err(Error::new(format!("floats are split at bit {width}")));
        }
        let moved = |left: u64| W::low(left << width);
        let mut dictionary: Vec<W> =
            message.numbers(3)?.into_iter().take(message.count(2)?).map(|left| moved(left & 0xffff)).collect();
        dictionary.shrink_to_fit();
        let left = self.below::<u16>(0, Kind::Number(ptype), self.len)?;
        let right = self.below::<W>(1, Kind::Number(W::PTYPE), self.len)?;
        let patches = message.message(5)?.map(|head| {
            let head = PatchesHead::read(&head)?;
            head.patches::<u16>(self.node, 2, Kind::Number(ptype), self.len, self.limit, self.depth)
        });
        let patches = patches.transpose()?.map(|patches| Patches {
            rows: patches.rows,
            values: patches.values.into_iter().map(|left| moved(left.into())).collect(),
            nulls: None,
        });
        let mask = if width == 0 { W::default() } else { W::low(u64::MAX >> (64 - width)) };
        let numbers =
            Numbers::Split { left: Box::new(left.numbers), dictionary, right: Box::new(right.numbers), patches, mask };
        self.done(numbers, left.nulls)
    }

    fn packed<W: Word>(&self) -> Result<Column<W>> {
        expect(self.node, 1, 0..=4)?;
        self.ints()?;
        let message = self.message()?;
        let (width, skip, bytes) = (message.count(1)?, message.count(2)?, buffer(self.node, 0)?.clone());
        let blocks = self.len.saturating_add(skip).div_ceil(BLOCK);
        let fits = width <= W::BITS && skip < BLOCK;
        if !fits || packed_bytes(width).checked_mul(blocks).is_none_or(|needed| bytes.len() < needed) {
            return Err(Error::new(format!("{} bytes for {} numbers of {width} bits", bytes.len(), self.len)));
        }
        let head = message.message(3)?.map(|head| PatchesHead::read(&head)).transpose()?;
        let patches = head
            .as_ref()
            .map(|head| head.patches(self.node, 0, self.kind, self.len, self.limit, self.depth))
            .transpose()?;
        let nulls = self.validity(head.map_or(0, |head| head.children()))?;
        self.done(Numbers::Packed(Packed { width, skip, bytes, base: W::default(), patches }), nulls)
    }

    fn offset<W: Word>(&self) -> Result<Column<W>> {
        expect(self.node, 0, 1..=1)?;
        self.ints()?;
        let base = self.scalar::<W>(&self.message()?)?;
        let base = base.ok_or_else(|| Error::new("the reference of integers is missing"))?;
        let column = self.below::<W>(0, self.kind, self.len)?;
        let numbers = match column.numbers {
            Numbers::Packed(packed) => Numbers::Packed(Packed { base, ..packed }),
            other => Numbers::Offset(Box::new(other), base),
        };
        self.done(numbers, column.nulls)
    }

    /// Runs within blocks, as an older writer stored them: decoded at once.
    fn block_runs<W: Word>(&self) -> Result<Column<W>> {
        expect(self.node, 0, 3..=3)?;
        let message = self.message()?;
        let (value_count, place_count) = (message.count(1)?, message.count(2)?);
        let (place_type, start_type) = (int_type(&message, 3)?, int_type(&message, 5)?);
        let (start_count, skip) = (message.count(4)?, message.count(6)?);
        let whole = self.len.saturating_add(skip).div_ceil(BLOCK);
        let sound = place_type.byte_width() <= 2
            && place_count.is_multiple_of(BLOCK)
            && skip < BLOCK
            && place_count / BLOCK >= whole
            && start_count >= whole;
        if !sound {
            return Err(Error::new(format!("{place_count} places in {start_count} blocks for {} rows", self.len)));
        }
        let values = self.below::<W>(0, self.kind, value_count)?.held(self.limit)?;
        let kind = Kind::Number(place_type);
        let (places, nulls): (Vec<u16>, _) = if place_type.byte_width() == 1 {
            let column = self.below::<u8>(1, kind, place_count)?;
            let nulls = column.nulls.clone();
            (column.held(self.limit)?.into_iter().map(u16::from).collect(), nulls)
        } else {
            let column = self.below::<u16>(1, kind, place_count)?;
            let nulls = column.nulls.clone();
            (column.held(self.limit)?, nulls)
        };
        let starts = counts(child(self.node, 2)?, start_type, start_count, self.limit, self.depth)?;
        let first = starts.first().copied().unwrap_or(0);
        if !starts.is_sorted() {
            return Err(Error::new("the values of blocks overlap"));
        }
        self.limit.take(self.len, W::BYTES)?;
        let mut all = Vec::with_capacity(self.len);
        for (at, place) in places.iter().enumerate().skip(skip).take(self.len) {
            let block = at / BLOCK;
            let start = (starts[block] - first) as usize;
            let end = starts.get(block + 1).map_or(values.len(), |next| (next - first) as usize).min(values.len());
            let own = values.get(start..end).unwrap_or_default();
            let value = match own {
                [] => return Err(Error::new(format!("block {block} has no values"))),
                [only] => *only,
                own => match own.get(usize::from(*place)) {
                    Some(value) => *value,
                    None if nulls.as_ref().is_some_and(|nulls| !nulls.get(at)) => own[0],
                    None => return Err(Error::new(format!("place {place} of {} in a block", own.len()))),
                },
            };
            all.push(value);
        }
        let nulls = nulls.map(|nulls| Bits::collect(self.len, |row| nulls.get(row + skip)));
        self.done(Numbers::Held(all), nulls)
    }

    fn steps<W: Word>(&self) -> Result<Column<W>> {
        expect(self.node, 0, 1..=1)?;
        self.ints()?;
        let first: [u8; 8] = self.node.metadata[..].try_into().map_err(|_| {
            Error::new(format!("steps have {} bytes of metadata; expected 8", self.node.metadata.len()))
        })?;
        let count = self.len.checked_sub(1).ok_or_else(|| Error::new("steps of no rows"))?;
        let steps = self.below::<W>(0, Kind::Number(W::PTYPE), count)?;
        if steps.nulls.is_some() {
            return Err(Error::new("steps have nulls"));
        }
        self.limit.take(self.len, W::BYTES)?;
        let mut last = W::low(u64::from_le_bytes(first));
        let mut all = Vec::with_capacity(self.len);
        all.push(last);
        steps.each_block(|_, block| {
            all.extend(block.iter().map(|step| {
                last = last.plus(*step);
                last
            }));
            Ok(())
        })?;
        self.done(Numbers::Held(all), None)
    }
}
