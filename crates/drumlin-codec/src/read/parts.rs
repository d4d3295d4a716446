//! Parts of nodes: what several encodings have.

use std::ops::RangeInclusive;

use bytes::Bytes;

use crate::bits::Bits;
use crate::node::RawNode;
use crate::proto::Message;
use crate::read::Limit;
use crate::read::numbers::{Column, Numbers, Places};
use crate::read::parse::{Kind, column};
use crate::word::{Ptype, Word};
use crate::{Error, Result};

/// A node that is read, and the number of its values.
#[derive(Clone, Copy)]
pub struct Parse<'a> {
    pub node: &'a RawNode,
    pub len: usize,
    pub limit: &'a Limit,
    /// How deep the nodes below it may be nested.
    pub depth: usize,
}

impl<'a> Parse<'a> {
    /// Fails if it has more values, or is nested more deeply, than there may be.
    pub fn new(node: &'a RawNode, len: usize, limit: &'a Limit, depth: usize) -> Result<Self> {
        limit.check(len)?;
        let depth = depth.checked_sub(1).ok_or_else(|| Error::new("encodings are nested too deeply"))?;
        Ok(Self { node, len, limit, depth })
    }

    /// What the encoding says of itself.
    pub fn message(&self) -> Result<Message<'a>> {
        Message::read(&self.node.metadata)
    }

    /// A child that must be there.
    pub fn child(&self, at: usize) -> Result<&'a RawNode> {
        let child = self.node.children.get(at);
        child.ok_or_else(|| Error::new(format!("child {at} of {} is missing", self.node.name())))
    }

    /// A buffer that must be there.
    pub fn buffer(&self, at: usize) -> Result<&'a Bytes> {
        let buffer = self.node.buffers.get(at);
        buffer.ok_or_else(|| Error::new(format!("buffer {at} of {} is missing", self.node.name())))
    }

    /// Fails unless there are `children` children and `buffers` buffers.
    pub fn expect(&self, buffers: usize, children: RangeInclusive<usize>) -> Result<()> {
        if self.node.buffers.len() != buffers || !children.contains(&self.node.children.len()) {
            return Err(Error::new(format!(
                "{} has {} buffers and {} children; expected {buffers}, and {} to {}",
                self.node.name(),
                self.node.buffers.len(),
                self.node.children.len(),
                children.start(),
                children.end()
            )));
        }
        Ok(())
    }

    /// The numbers of the child at `at`.
    pub fn numbers<W: Word>(&self, at: usize, kind: Kind, len: usize) -> Result<Column<W>> {
        column(self.child(at)?, kind, len, self.limit, self.depth)
    }

    /// Which rows have a value, from the child at `at`; `None`, and all have, if it is missing.
    pub fn validity(&self, at: usize) -> Result<Option<Bits>> {
        if self.node.children.len() <= at {
            return Ok(None);
        }
        let bits = self.numbers::<u8>(at, Kind::Bool, self.len)?;
        if bits.nulls.is_some() {
            return Err(Error::new("a bitmap of nulls has nulls itself"));
        }
        let bits = bits.into_bits(self.limit)?;
        Ok(if bits.all() { None } else { Some(bits) })
    }

    /// Integers of a type that metadata says, of the child at `at`, without nulls, as `u32`.
    pub fn counts(&self, at: usize, ptype: Ptype, len: usize) -> Result<Vec<u32>> {
        self.limit.take(len, 4)?;
        match ptype.byte_width() {
            1 => self.narrowed::<u8>(at, ptype, len),
            2 => self.narrowed::<u16>(at, ptype, len),
            4 => self.narrowed::<u32>(at, ptype, len),
            _ => self.narrowed::<u64>(at, ptype, len),
        }
    }

    fn narrowed<W: Word>(&self, at: usize, ptype: Ptype, len: usize) -> Result<Vec<u32>> {
        let mut all = Vec::with_capacity(len);
        let mut greatest = 0;
        self.numbers::<W>(at, Kind::Number(ptype), len)?.each_block(|_, block| {
            all.extend(block.iter().map(|value| value.wide() as u32));
            greatest = block.iter().fold(greatest, |greatest, value| value.wide().max(greatest));
            Ok(())
        })?;
        if greatest > u64::from(u32::MAX) {
            return Err(Error::new(format!("{} counts to {greatest}, which is too much", self.node.name())));
        }
        Ok(all)
    }

    /// Of a dictionary: the number of its values, the place of each row's value, and which rows have one.
    pub fn places(&self) -> Result<(usize, Places, Option<Bits>)> {
        self.expect(0, 2..=2)?;
        let message = self.message()?;
        let (count, ptype) = (message.count(1)?, int_type(&message, 2)?);
        let (kind, len) = (Kind::Number(ptype), self.len);
        let (places, nulls) = match ptype.byte_width() {
            1 => self.numbers(0, kind, len).map(|column| (Places::U8(column.numbers), column.nulls)),
            2 => self.numbers(0, kind, len).map(|column| (Places::U16(column.numbers), column.nulls)),
            4 => self.numbers(0, kind, len).map(|column| (Places::U32(column.numbers), column.nulls)),
            _ => self.numbers(0, kind, len).map(|column| (Places::U64(column.numbers), column.nulls)),
        }?;
        Ok((count, places, nulls))
    }

    /// Which rows have a value: those that have a place, whose value is none of the nulls among `values`.
    pub fn keyed_nulls(&self, places: &Places, nulls: Option<&Bits>, values: Option<&Bits>) -> Result<Option<Bits>> {
        let Some(values) = values else { return Ok(nulls.cloned()) };
        self.limit.take(self.len, 4)?;
        let mut all = vec![0; self.len];
        places.fill(0, &mut all)?;
        let valid = |place: u32| values.len() > place as usize && values.get(place as usize);
        let keyed = |row: usize| nulls.is_none_or(|nulls| nulls.get(row));
        Ok(Some(Bits::collect(self.len, |row| keyed(row) && valid(all[row]))))
    }

    /// Of runs: where each ends, and what rows are less than these count.
    pub fn run_ends(&self) -> Result<(Vec<u32>, usize)> {
        self.expect(0, 2..=2)?;
        let message = self.message()?;
        let (ptype, count, skip) = (int_type(&message, 1)?, message.count(2)?, message.count(3)?);
        let ends = self.counts(0, ptype, count)?;
        let end = ends.last().map_or(0, |end| *end as usize);
        if !ends.is_sorted() || self.len.checked_add(skip).is_none_or(|needed| end < needed) {
            return Err(Error::new(format!("runs end at {end}; expected {} rows", self.len)));
        }
        Ok((ends, skip))
    }

    /// What metadata says of patches in a field; `None` if there are none.
    pub fn patches_head(&self, field: u64) -> Result<Option<PatchesHead>> {
        self.message()?.message(field)?.map(|head| PatchesHead::read(&head)).transpose()
    }

    /// That no row has a value.
    pub fn none(&self) -> Result<Bits> {
        self.limit.take(self.len.div_ceil(8), 1)?;
        Ok(Bits::collect(self.len, |_| false))
    }
}

/// A type of integers in metadata.
pub fn int_type(message: &Message, field: u64) -> Result<Ptype> {
    let number = message.number(field)?.unwrap_or(0);
    Ptype::of(number)
        .filter(|ptype| ptype.is_int())
        .ok_or_else(|| Error::new(format!("{number} is not a type of integers")))
}

/// Values that replace those of some rows.
#[derive(Clone, Debug)]
pub struct Patches<W> {
    /// The rows, ascending.
    pub rows: Vec<u32>,
    /// As many values.
    pub values: Vec<W>,
    /// Which of these are none.
    pub nulls: Option<Bits>,
}

/// What metadata says of patches: how many children they take, too.
pub struct PatchesHead {
    len: usize,
    offset: usize,
    ptype: Ptype,
    chunks: bool,
}

impl PatchesHead {
    pub fn read(message: &Message) -> Result<Self> {
        let ptype = int_type(message, 3)?;
        if !ptype.is_unsigned() {
            return Err(Error::new("the rows of patches are signed"));
        }
        let chunks = message.number(5)?.is_some();
        Ok(Self { len: message.count(1)?, offset: message.count(2)?, ptype, chunks })
    }

    /// Children: rows, values, and where each block's begin.
    pub fn children(&self) -> usize {
        if self.chunks { 3 } else { 2 }
    }

    /// The rows that have one, from the child at `at`.
    pub fn rows(&self, parse: &Parse, at: usize) -> Result<Vec<u32>> {
        if self.len == 0 || self.len > parse.len {
            return Err(Error::new(format!("{} patches for {} rows", self.len, parse.len)));
        }
        let mut rows = parse.counts(at, self.ptype, self.len)?;
        let first = rows.first().map_or(0, |row| *row as usize);
        let last = rows.last().map_or(0, |row| *row as usize);
        if !rows.is_sorted() || first < self.offset || last - self.offset >= parse.len {
            let (offset, len) = (self.offset, parse.len);
            return Err(Error::new(format!("patches of rows {first} to {last} less {offset}, of {len} rows")));
        }
        rows.iter_mut().for_each(|row| *row -= self.offset as u32);
        Ok(rows)
    }

    /// The patches, from the children from `at` on.
    pub fn patches<W: Word>(&self, parse: &Parse, at: usize, kind: Kind) -> Result<Patches<W>> {
        let rows = self.rows(parse, at)?;
        let values = parse.numbers::<W>(at + 1, kind, self.len)?;
        let nulls = values.nulls.clone();
        Ok(Patches { rows, values: values.held(parse.limit)?, nulls })
    }
}

impl<W: Word> Patches<W> {
    /// The patches of the rows from `from` on, `len` of them: their places, less `from`, and values.
    pub fn of(&self, from: usize, len: usize) -> impl Iterator<Item = (usize, W)> {
        let first = self.rows.partition_point(|row| (*row as usize) < from);
        let rows = self.rows[first..].iter().map(move |row| *row as usize - from).take_while(move |row| *row < len);
        rows.zip(&self.values[first..]).map(|(row, value)| (row, *value))
    }

    /// The last patch of a row.
    pub fn at(&self, row: u32) -> Option<usize> {
        let end = self.rows.partition_point(|patched| *patched <= row);
        end.checked_sub(1).filter(|at| self.rows[*at] == row)
    }
}

/// The bits that a column of truth values has.
impl Column<u8> {
    pub fn into_bits(self, limit: &Limit) -> Result<Bits> {
        if let Numbers::Bits(bits) = self.numbers {
            return Ok(bits);
        }
        let values = self.held(limit)?;
        Ok(Bits::collect(values.len(), |row| values[row] != 0))
    }
}
