//! Between which bounds the keys of a row group lie.

use std::ops::Range;

use crate::memtable::{Key, Keys};

/// The bounds of a row group's keys, as far as known.
#[derive(Clone, Debug)]
pub enum KeyBounds {
    /// Of keys of one word each: the smallest, and a word above all of them.
    Words(u64, Option<u64>),
    /// Lists of one.
    Bytes(Option<Keys>, Option<Keys>),
}

impl KeyBounds {
    /// Bounds of keys from `low` on and below `high`.
    pub fn new(low: Option<&[u8]>, high: Option<&[u8]>, words: bool) -> Self {
        let one = |bound: &[u8]| {
            let mut one = Keys::default();
            one.push(bound);
            one
        };
        let (low, high) = (low.map(one), high.map(one));
        match words {
            true => Self::Words(low.map_or(0, |low| low.get(0).word()), high.map(|high| high.get(0).word())),
            false => Self::Bytes(low, high),
        }
    }

    /// The places of those of the ascending `keys` that are between the bounds.
    pub fn among(&self, keys: &Keys) -> Range<usize> {
        let before = |bound: &Keys| keys.partition_point(|key: Key<'_>| key < bound.get(0));
        let (start, end) = match (self, keys.as_words()) {
            (Self::Words(low, high), Some(words)) => {
                let before = |bound: u64| words.partition_point(|word| *word < bound);
                (before(*low), high.map(before))
            }
            (Self::Words(low, high), None) => {
                let before = |bound: u64| keys.partition_point(|key| key.word() < bound);
                (before(*low), high.map(before))
            }
            (Self::Bytes(low, high), _) => (low.as_ref().map_or(0, before), high.as_ref().map(before)),
        };
        start..end.unwrap_or(keys.len()).max(start)
    }
}
