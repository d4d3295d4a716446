//! Nodes to columns of numbers, each encoding checked as far as it must be for nothing to go wrong later.

use crate::bits::Bits;
use crate::node::*;
use crate::pack::{BLOCK, packed_bytes};
use crate::proto::{Message, Scalar};
use crate::read::numbers::{Column, Numbers, Packed};
use crate::read::parts::{Parse, Patches, int_type};
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
    let parse = NumberParse { parse: Parse::new(node, len, limit, depth)?, kind };
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

/// A node that is read as numbers of a kind.
struct NumberParse<'a> {
    parse: Parse<'a>,
    kind: Kind,
}

impl NumberParse<'_> {
    fn done<W>(&self, numbers: Numbers<W>, nulls: Option<Bits>) -> Result<Column<W>> {
        Ok(Column { numbers, nulls, len: self.parse.len })
    }

    fn ints(&self) -> Result<()> {
        if !self.kind.is_int() {
            return Err(Error::new(format!("{} holds integers only", self.parse.node.name())));
        }
        Ok(())
    }

    fn primitive<W: Word>(&self) -> Result<Column<W>> {
        self.parse.expect(1, 0..=1)?;
        let bytes = self.parse.buffer(0)?;
        if self.kind == Kind::Bool || Some(bytes.len()) != self.parse.len.checked_mul(W::BYTES) {
            return Err(Error::new(format!("{} bytes for {} numbers of {}", bytes.len(), self.parse.len, W::BYTES)));
        }
        self.done(Numbers::Plain(bytes.clone()), self.parse.validity(0)?)
    }

    fn bitmap<W: Word>(&self) -> Result<Column<W>> {
        self.parse.expect(1, 0..=1)?;
        let offset = self.parse.message()?.count(1)?;
        let bits = Bits::new(self.parse.buffer(0)?.clone(), offset, self.parse.len).filter(|_| self.kind == Kind::Bool);
        let bits = bits.ok_or_else(|| Error::new(format!("a bitmap is too short for {} rows", self.parse.len)))?;
        self.done(Numbers::Bits(bits), self.parse.validity(0)?)
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
        let value = self.scalar(&Message::read(self.parse.buffer(0)?)?)?;
        let nulls = value.is_none().then(|| self.parse.none()).transpose()?;
        self.done(Numbers::Constant(value.unwrap_or_default()), nulls)
    }

    fn dictionary<W: Word>(&self) -> Result<Column<W>> {
        let (count, places, nulls) = self.parse.places()?;
        let values = self.parse.numbers::<W>(1, self.kind, count)?;
        let all = self.parse.keyed_nulls(&places, nulls.as_ref(), values.nulls.as_ref())?;
        let values = values.held(self.parse.limit)?;
        self.done(Numbers::Dictionary { places: Box::new(places), values, nulls }, all)
    }

    fn masked<W: Word>(&self) -> Result<Column<W>> {
        self.parse.expect(0, 1..=2)?;
        let column = self.parse.numbers::<W>(0, self.kind, self.parse.len)?;
        if column.nulls.is_some() {
            return Err(Error::new("what is below a mask has nulls itself"));
        }
        self.done(column.numbers, self.parse.validity(1)?)
    }

    fn sparse<W: Word>(&self) -> Result<Column<W>> {
        self.parse.expect(1, 2..=2)?;
        let fill = self.scalar::<W>(&Message::read(self.parse.buffer(0)?)?)?;
        let head = self.parse.patches_head(1)?.ok_or_else(|| Error::new("the rows of a sparse column are missing"))?;
        let patches: Patches<W> = head.patches(&self.parse, 0, self.kind)?;
        let nulls = if fill.is_none() || patches.nulls.is_some() {
            self.parse.limit.take(self.parse.len, 1)?;
            let mut valid = vec![fill.is_some(); self.parse.len];
            for (at, row) in patches.rows.iter().enumerate() {
                valid[*row as usize] = patches.nulls.as_ref().is_none_or(|nulls| nulls.get(at));
            }
            Some(Bits::collect(self.parse.len, |row| valid[row]))
        } else {
            None
        };
        self.done(Numbers::Sparse(fill.unwrap_or_default(), patches), nulls)
    }

    fn sequence<W: Word>(&self) -> Result<Column<W>> {
        self.parse.expect(0, 0..=0)?;
        self.ints()?;
        let message = self.parse.message()?;
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
        let (ends, skip) = self.parse.run_ends()?;
        let values = self.parse.numbers::<W>(1, self.kind, ends.len())?;
        let run_nulls = values.nulls.clone();
        let values = values.held(self.parse.limit)?;
        let expanded = |of_runs: Bits| {
            self.parse.limit.take(ends.len(), 1)?;
            let values = (0..ends.len()).map(|run| u8::from(of_runs.get(run))).collect();
            let numbers = Numbers::Runs { ends: ends.clone(), values, skip };
            Column::<u8> { numbers, nulls: None, len: self.parse.len }.into_bits(self.parse.limit)
        };
        let nulls = run_nulls.map(expanded).transpose()?;
        self.done(Numbers::Runs { ends, values, skip }, nulls)
    }

    fn zigzag<W: Word>(&self) -> Result<Column<W>> {
        self.parse.expect(0, 1..=1)?;
        self.ints()?;
        let column = self.parse.numbers::<W>(0, Kind::Number(W::PTYPE), self.parse.len)?;
        self.done(Numbers::ZigZag(Box::new(column.numbers)), column.nulls)
    }

    fn scaled<W: Word>(&self) -> Result<Column<W>> {
        self.parse.expect(0, 1..=4)?;
        let message = self.parse.message()?;
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
        let column = self.parse.numbers::<W>(0, Kind::Number(ints), self.parse.len)?;
        let patches =
            self.parse.patches_head(3)?.map(|head| head.patches::<W>(&self.parse, 1, self.kind)).transpose()?;
        self.done(Numbers::Scaled(Box::new(column.numbers), exponents, patches), column.nulls)
    }

    fn split<W: Word>(&self) -> Result<Column<W>> {
        self.parse.expect(0, 2..=5)?;
        let message = self.parse.message()?;
        let width = message.count(1)?;
        let ptype = int_type(&message, 4)?;
        let floats = matches!(self.kind, Kind::Number(Ptype::F32 | Ptype::F64));
        if !floats || width >= W::BITS || ptype.byte_width() != 2 {
            return Err(Error::new(format!("floats are split at bit {width}")));
        }
        let moved = |left: u64| W::low(left << width);
        let lefts = message.numbers(3)?.into_iter().take(message.count(2)?);
        let dictionary = lefts.map(|left| moved(left & 0xffff)).collect();
        let left = self.parse.numbers::<u16>(0, Kind::Number(ptype), self.parse.len)?;
        let right = self.parse.numbers::<W>(1, Kind::Number(W::PTYPE), self.parse.len)?;
        let patches = self.parse.patches_head(5)?;
        let patches = patches.map(|head| head.patches::<u16>(&self.parse, 2, Kind::Number(ptype))).transpose()?;
        let patches = patches.map(|patches| Patches {
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
        self.parse.expect(1, 0..=4)?;
        self.ints()?;
        let message = self.parse.message()?;
        let (width, skip, bytes) = (message.count(1)?, message.count(2)?, self.parse.buffer(0)?.clone());
        let blocks = self.parse.len.saturating_add(skip).div_ceil(BLOCK);
        let fits = width <= W::BITS && skip < BLOCK;
        if !fits || packed_bytes(width).checked_mul(blocks).is_none_or(|needed| bytes.len() < needed) {
            return Err(Error::new(format!("{} bytes for {} numbers of {width} bits", bytes.len(), self.parse.len)));
        }
        let head = self.parse.patches_head(3)?;
        let patches = head.as_ref().map(|head| head.patches(&self.parse, 0, self.kind)).transpose()?;
        let nulls = self.parse.validity(head.map_or(0, |head| head.children()))?;
        self.done(Numbers::Packed(Packed { width, skip, bytes, base: W::default(), patches }), nulls)
    }

    fn offset<W: Word>(&self) -> Result<Column<W>> {
        self.parse.expect(0, 1..=1)?;
        self.ints()?;
        let base = self.scalar::<W>(&self.parse.message()?)?;
        let base = base.ok_or_else(|| Error::new("the reference of integers is missing"))?;
        let column = self.parse.numbers::<W>(0, self.kind, self.parse.len)?;
        let numbers = match column.numbers {
            Numbers::Packed(packed) => Numbers::Packed(Packed { base: packed.base.plus(base), ..packed }),
            other => Numbers::Offset(Box::new(other), base),
        };
        self.done(numbers, column.nulls)
    }

    /// Runs within blocks, as an older writer stored them: decoded at once.
    fn block_runs<W: Word>(&self) -> Result<Column<W>> {
        self.parse.expect(0, 3..=3)?;
        let message = self.parse.message()?;
        let (value_count, place_count) = (message.count(1)?, message.count(2)?);
        let (place_type, start_type) = (int_type(&message, 3)?, int_type(&message, 5)?);
        let (start_count, skip) = (message.count(4)?, message.count(6)?);
        let whole = self.parse.len.saturating_add(skip).div_ceil(BLOCK);
        let sound = place_type.byte_width() <= 2
            && place_count.is_multiple_of(BLOCK)
            && skip < BLOCK
            && place_count / BLOCK >= whole
            && start_count >= whole;
        if !sound {
            return Err(Error::new(format!(
                "{place_count} places in {start_count} blocks for {} rows",
                self.parse.len
            )));
        }
        let values = self.parse.numbers::<W>(0, self.kind, value_count)?.held(self.parse.limit)?;
        let kind = Kind::Number(place_type);
        let (places, nulls): (Vec<u16>, _) = if place_type.byte_width() == 1 {
            let column = self.parse.numbers::<u8>(1, kind, place_count)?;
            let nulls = column.nulls.clone();
            (column.held(self.parse.limit)?.into_iter().map(u16::from).collect(), nulls)
        } else {
            let column = self.parse.numbers::<u16>(1, kind, place_count)?;
            let nulls = column.nulls.clone();
            (column.held(self.parse.limit)?, nulls)
        };
        let starts = self.parse.counts(2, start_type, start_count)?;
        let first = starts.first().copied().unwrap_or(0);
        if !starts.is_sorted() {
            return Err(Error::new("the values of blocks overlap"));
        }
        self.parse.limit.take(self.parse.len, W::BYTES)?;
        let mut all = Vec::with_capacity(self.parse.len);
        for (at, place) in places.iter().enumerate().skip(skip).take(self.parse.len) {
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
        let nulls = nulls.map(|nulls| Bits::collect(self.parse.len, |row| nulls.get(row + skip)));
        self.done(Numbers::Held(all), nulls)
    }

    fn steps<W: Word>(&self) -> Result<Column<W>> {
        self.parse.expect(0, 1..=1)?;
        self.ints()?;
        let first: [u8; 8] = self.parse.node.metadata[..].try_into().map_err(|_| {
            Error::new(format!("steps have {} bytes of metadata; expected 8", self.parse.node.metadata.len()))
        })?;
        let count = self.parse.len.checked_sub(1).ok_or_else(|| Error::new("steps of no rows"))?;
        let steps = self.parse.numbers::<W>(0, Kind::Number(W::PTYPE), count)?;
        if steps.nulls.is_some() {
            return Err(Error::new("steps have nulls"));
        }
        self.parse.limit.take(self.parse.len, W::BYTES)?;
        let mut last = W::low(u64::from_le_bytes(first));
        let mut all = Vec::with_capacity(self.parse.len);
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
