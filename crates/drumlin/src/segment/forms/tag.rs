//! The first byte of each part of a segment.

use super::wire::Writer;
use crate::base::{Error, Result};

/// How a part of a segment is stored: its first byte, without [`NULLS`]. Append only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::segment) enum FormTag {
    Null = 0,
    Plain = 1,
    Tree = 2,
    Ipc = 3,
    Narrow = 4,
    Wide = 5,
    Scaled = 6,
    Dictionary = 7,
    Struct = 8,
    List = 9,
    FixedList = 10,
    ListView = 11,
}

/// Set in a tag if some rows are null.
pub(in crate::segment) const NULLS: u8 = 0x80;

impl FormTag {
    const ALL: [Self; 12] = [
        Self::Null,
        Self::Plain,
        Self::Tree,
        Self::Ipc,
        Self::Narrow,
        Self::Wide,
        Self::Scaled,
        Self::Dictionary,
        Self::Struct,
        Self::List,
        Self::FixedList,
        Self::ListView,
    ];

    pub(in crate::segment) fn of(byte: u8) -> Result<Self> {
        let tag = Self::ALL.get(usize::from(byte & !NULLS)).copied();
        tag.ok_or_else(|| Error::corrupt(format!("a segment has the unknown tag {}", byte & !NULLS)))
    }

    pub(in crate::segment) fn write(self, out: &mut Writer, nulls: bool) {
        out.u8(self as u8 | if nulls { NULLS } else { 0 });
    }
}
