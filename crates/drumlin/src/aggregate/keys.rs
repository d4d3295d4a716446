//! The keys of groups: bytes, each with a number, in the order in which they came.

use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// Distinct keys, found by a hash of their bytes. The bytes lie one after the other, without an allocation each.
#[derive(Default)]
pub struct KeyInterner {
    /// The hash and the number of each.
    known: HashTable<(u64, u32)>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// The hash of a key. Only the time that looking it up takes depends on it.
pub fn hash(key: &[u8]) -> u64 {
    FixedState::default().hash_one(key)
}

/// Where one of several lies, of which these are the ends.
fn range(ends: &[usize], at: usize) -> Range<usize> {
    at.checked_sub(1).map_or(0, |before| ends[before])..ends[at]
}

impl KeyInterner {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// A key, by its number.
    pub fn get(&self, at: usize) -> &[u8] {
        &self.bytes[range(&self.ends, at)]
    }

    /// The number of a key, whose hash is `hash`, and which is new if it was not known.
    pub fn number(&mut self, key: &[u8], hash: u64) -> u32 {
        let Self { known, bytes, ends } = self;
        let same = |(other, at): &(u64, u32)| *other == hash && bytes[range(ends, *at as usize)] == *key;
        if let Some((_, at)) = known.find(hash, same) {
            return *at;
        }
        let next = ends.len() as u32;
        known.insert_unique(hash, (hash, next), |(hash, _)| *hash);
        bytes.extend_from_slice(key);
        ends.push(bytes.len());
        next
    }

    /// The numbers of all, ordered by their bytes.
    pub fn in_order(&self) -> Vec<u32> {
        let prefix = |at: u32| {
            let mut prefix = [0; 8];
            prefix.iter_mut().zip(self.get(at as usize)).for_each(|(to, byte)| *to = *byte);
            (u64::from_be_bytes(prefix), at)
        };
        let mut order: Vec<(u64, u32)> = (0..self.ends.len() as u32).map(prefix).collect();
        let bytes = |at: u32| self.get(at as usize);
        order.sort_unstable_by(|(a, left), (b, right)| a.cmp(b).then_with(|| bytes(*left).cmp(bytes(*right))));
        order.into_iter().map(|(_, at)| at).collect()
    }

    /// About how much memory they take.
    pub fn memory(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * 8 + self.known.capacity() * 18
    }
}
