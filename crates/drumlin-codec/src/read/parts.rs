//! Parts of nodes: what several encodings have.

use crate::bits::Bits;
use crate::node::RawNode;
use crate::proto::Message;
use crate::read::Limit;
use crate::read::numbers::Column;
use crate::read::parse::{Kind, column};
use crate::word::{Ptype, Word};
use crate::{Error, Result};

/// A child that must be there.
pub fn child(node: &RawNode, at: usize) -> Result<&RawNode> {
    node.children.get(at).ok_or_else(|| Error::new(format!("child {at} of {} is missing", node.name())))
}

/// A buffer that must be there.
pub fn buffer(node: &RawNode, at: usize) -> Result<&bytes::Bytes> {
    node.buffers.get(at).ok_or_else(|| Error::new(format!("buffer {at} of {} is missing", node.name())))
}

/// Fails unless there are `children` children and `buffers` buffers.
pub fn expect(node: &RawNode, buffers: usize, children: std::ops::RangeInclusive<usize>) -> Result<()> {
    if node.buffers.len() != buffers || !children.contains(&node.children.len()) {
        return Err(Error::new(format!(
            "{} has {} buffers and {} children; expected {buffers}, and {} to {}",
            node.name(),
            node.buffers.len(),
            node.children.len(),
            children.start(),
            children.end()
        )));
    }
    Ok(())
}

/// A type of integers in metadata.
pub fn int_type(message: &Message, field: u64) -> Result<Ptype> {
    let number = message.number(field)?.unwrap_or(0);
    Ptype::of(number)
        .filter(|ptype| ptype.is_int())
        .ok_or_else(|| Error::new(format!("{number} is not a type of integers")))
}

/// Which rows have a value, from the child at `at`; `None`, and all have, if it is missing.
pub fn validity(node: &RawNode, at: usize, len: usize, limit: &Limit, depth: usize) -> Result<Option<Bits>> {
    let Some(child) = node.children.get(at) else { return Ok(None) };
    let bits = column::<u8>(child, Kind::Bool, len, limit, depth)?;
    if bits.nulls.is_some() {
        return Err(Error::new("a bitmap of nulls has nulls itself"));
    }
    let bits = bits.into_bits(limit)?;
    Ok(if bits.all() { None } else { Some(bits) })
}

/// Integers of a type that metadata says, without nulls, as `u32`.
pub fn counts(node: &RawNode, ptype: Ptype, len: usize, limit: &Limit, depth: usize) -> Result<Vec<u32>> {
    limit.take(len, 4)?;
    fn of<W: Word>(node: &RawNode, ptype: Ptype, len: usize, limit: &Limit, depth: usize) -> Result<Vec<u32>> {
        let column = column::<W>(node, Kind::Number(ptype), len, limit, depth)?;
        let mut all = Vec::with_capacity(len);
        let mut greatest = 0;
        column.each_block(|_, block| {
            all.extend(block.iter().map(|value| value.wide() as u32));
            greatest = block.iter().fold(greatest, |greatest, value| value.wide().max(greatest));
            Ok(())
        })?;
        if greatest > u64::from(u32::MAX) {
            return Err(Error::new(format!("{} counts to {greatest}, which is too much", node.name())));
        }
        Ok(all)
    }
    match ptype.byte_width() {
        1 => of::<u8>(node, ptype, len, limit, depth),
        2 => of::<u16>(node, ptype, len, limit, depth),
        4 => of::<u32>(node, ptype, len, limit, depth),
        _ => of::<u64>(node, ptype, len, limit, depth),
    }
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

    /// The rows that have one, of `len`, from the child at `at`.
    pub fn rows(&self, node: &RawNode, at: usize, len: usize, limit: &Limit, depth: usize) -> Result<Vec<u32>> {
        if self.len == 0 || self.len > len {
            return Err(Error::new(format!("{} patches for {len} rows", self.len)));
        }
        let mut rows = counts(child(node, at)?, self.ptype, self.len, limit, depth)?;
        let first = rows.first().map_or(0, |row| *row as usize);
        let last = rows.last().map_or(0, |row| *row as usize);
        if !rows.is_sorted() || first < self.offset || last - self.offset >= len {
            return Err(Error::new(format!("patches of rows {first} to {last} less {}, of {len} rows", self.offset)));
        }
        rows.iter_mut().for_each(|row| *row -= self.offset as u32);
        Ok(rows)
    }

    /// The patches of an array of `len` rows, from the children from `at` on.
    pub fn patches<W: Word>(
        &self,
        node: &RawNode,
        at: usize,
        kind: Kind,
        len: usize,
        limit: &Limit,
        depth: usize,
    ) -> Result<Patches<W>> {
        let rows = self.rows(node, at, len, limit, depth)?;
        let values = column::<W>(child(node, at + 1)?, kind, self.len, limit, depth)?;
        let nulls = values.nulls.clone();
        let values = values.held(limit)?;
        Ok(Patches { rows, values, nulls })
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
        if let crate::read::numbers::Numbers::Bits(bits) = self.numbers {
            return Ok(bits);
        }
        let values = self.held(limit)?;
        Ok(Bits::collect(values.len(), |row| values[row] != 0))
    }
}
