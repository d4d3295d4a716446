//! Nodes that were built.

use bytes::Bytes;

use crate::bits::Bits;
use crate::node::*;
use crate::proto::{Builder, zigzag};
use crate::scale::Exponents;
use crate::word::{Ptype, Word};
use crate::write::worth;

/// A node, and all below it.
#[derive(Clone, Debug)]
pub struct Built {
    /// The encoding's number.
    pub encoding: u8,
    /// What it says of itself.
    pub metadata: Vec<u8>,
    /// Its memory, each with the base-2 logarithm of the alignment that readers need.
    pub buffers: Vec<(Bytes, u8)>,
    /// The nodes below.
    pub children: Vec<Built>,
    /// Values.
    pub len: usize,
    /// Powers of ten by which they are integers, if they are.
    pub exponents: Option<Exponents>,
}

fn varint_bytes(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

impl Built {
    pub(crate) fn new(encoding: u8, len: usize) -> Self {
        Self { encoding, metadata: Vec::new(), buffers: Vec::new(), children: Vec::new(), len, exponents: None }
    }

    pub(crate) fn metadata(self, message: Builder) -> Self {
        Self { metadata: message.finish(), ..self }
    }

    pub(crate) fn buffer(mut self, bytes: impl Into<Bytes>, alignment: u8) -> Self {
        self.buffers.push((bytes.into(), alignment));
        self
    }

    pub(crate) fn child(mut self, child: Self) -> Self {
        self.children.push(child);
        self
    }

    /// Its size in bytes as it is stored, without padding.
    pub fn size(&self) -> usize {
        let lists = [self.metadata.len(), self.buffers.len(), self.children.len()];
        let buffers = self.buffers.iter().map(|(bytes, _)| varint_bytes((bytes.len() as u64) << 3) + bytes.len());
        let own: usize = lists.iter().map(|count| varint_bytes(*count as u64)).sum();
        1 + own + self.metadata.len() + buffers.sum::<usize>() + self.children.iter().map(Self::size).sum::<usize>()
    }

    /// Another form, where it takes less than `percent` of this one.
    pub(crate) fn or_smaller(self, other: Self, percent: usize) -> Self {
        if worth(other.size(), self.size(), percent) { other } else { self }
    }

    /// One bit for each encoding in it.
    pub fn encodings(&self) -> u64 {
        self.children.iter().fold(bit_of(self.encoding), |all, child| all | child.encodings())
    }

    /// The same nodes as they are read.
    pub fn raw(&self) -> RawNode {
        RawNode {
            encoding: self.encoding,
            metadata: self.metadata.clone().into(),
            buffers: self.buffers.iter().map(|(bytes, _)| bytes.clone()).collect(),
            children: self.children.iter().map(Self::raw).collect(),
        }
    }

    /// How many nodes lie below each other.
    pub fn depth(&self) -> usize {
        1 + self.children.iter().map(Self::depth).max().unwrap_or(0)
    }

    /// The longest array in it.
    pub fn elements(&self) -> usize {
        self.children.iter().map(Self::elements).fold(self.len, usize::max)
    }

    /// Numbers as they are.
    pub(crate) fn primitive<W: Word>(values: &[W]) -> Self {
        let mut bytes = Vec::with_capacity(values.len() * W::BYTES);
        values.iter().for_each(|value| value.store(&mut bytes));
        Self::new(PRIMITIVE, values.len()).buffer(bytes, W::BYTES.ilog2() as u8)
    }

    /// Which rows have a value.
    pub(crate) fn validity(nulls: &Bits) -> Self {
        let (bytes, offset, len) = nulls.clone().into_parts();
        let bits = if offset == 0 && bytes.len() == len.div_ceil(8) {
            bytes
        } else {
            Bits::collect(len, |row| nulls.get(row)).into_parts().0
        };
        Self::new(BOOL, len).buffer(bits, 0)
    }

    /// The same with nulls, as a last child.
    pub(crate) fn valid(self, nulls: Option<&Bits>) -> Self {
        match nulls {
            Some(nulls) => self.child(Self::validity(nulls)),
            None => self,
        }
    }

    /// The same with nulls, in a mask above.
    pub(crate) fn masked(self, nulls: Option<&Bits>) -> Self {
        match nulls {
            None => self,
            Some(nulls) => {
                let exponents = self.exponents;
                let masked = Self::new(MASKED, self.len).child(self).child(Self::validity(nulls));
                Self { exponents, ..masked }
            }
        }
    }
}

/// One value of a type, as metadata says it.
pub(crate) fn scalar<W: Word>(value: W, ptype: Ptype) -> Vec<u8> {
    let message = Builder::default();
    match ptype {
        Ptype::F16 => message.some(10, value.wide()),
        Ptype::F32 => message.fixed(5, value.wide(), 4),
        Ptype::F64 => message.fixed(6, value.wide(), 8),
        ptype if ptype.is_signed() => message.some(3, zigzag(value.signed())),
        _ => message.some(4, value.wide()),
    }
    .finish()
}
