//! Memory that only grows: words by number, in chunks of doubling size that never move, so that readers keep what they
//! found without a lock.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use super::raw::Word;

/// The number of chunks that 29 bits of address need.
const CHUNKS: usize = 21;
/// Addresses are below this: 4 GiB of words.
pub(super) const WORDS_MAX: u64 = 1 << 29;
/// Words of a cache line.
const LINE: usize = 8;

/// The number of a word.
pub(super) type Addr = u32;

/// Chunks of words; each has twice as many as the one before.
pub(super) struct Arena<W> {
    chunks: [OnceLock<Box<[W]>>; CHUNKS],
}

/// The chunk of an address, and the offset in it.
#[inline]
fn place<W: Word>(addr: u64) -> (usize, usize) {
    let from_first = addr + W::FIRST;
    let chunk = (from_first.ilog2() - W::FIRST.ilog2()) as usize;
    (chunk, (from_first - (W::FIRST << chunk)) as usize)
}

impl<W: Word> Arena<W> {
    pub fn new() -> Self {
        Self { chunks: std::array::from_fn(|_| OnceLock::new()) }
    }

    /// The first address at or after `from` at which `words` words lie in one chunk, which is allocated if need be;
    /// `None` if there is no room. For the writer.
    pub fn reserve(&self, from: u64, words: u64) -> Option<u64> {
        let (mut chunk, offset) = place::<W>(from);
        let mut addr = from;
        let mut size = W::FIRST << chunk;
        if offset as u64 + words > size {
            loop {
                addr = (W::FIRST << (chunk + 1)) - W::FIRST;
                chunk += 1;
                size = W::FIRST << chunk;
                if words <= size {
                    break;
                }
            }
        }
        if addr + words > WORDS_MAX || chunk >= CHUNKS {
            return None;
        }
        self.chunks[chunk].get_or_init(|| W::zeroed(size as usize));
        Some(addr)
    }

    /// The words from `addr` to the end of its chunk; none if nothing was ever reserved there.
    #[inline]
    pub fn from(&self, addr: Addr) -> &[W] {
        let (chunk, offset) = place::<W>(u64::from(addr));
        let words = self.chunks.get(chunk).and_then(OnceLock::get);
        words.and_then(|words| words.get(offset..)).unwrap_or_default()
    }

    /// Reads a word.
    #[inline]
    pub fn load(&self, addr: Addr, order: Ordering) -> u64 {
        self.from(addr)[0].load(order)
    }

    /// Writes a word.
    #[inline]
    pub fn store(&self, addr: Addr, value: u64, order: Ordering) {
        self.from(addr)[0].store(value, order);
    }

    /// Prefetches `lines` cache lines from `addr` on.
    #[inline]
    pub fn prefetch(&self, addr: Addr, lines: usize) {
        let words = self.from(addr);
        for line in 0..lines {
            match words.get(line * LINE) {
                Some(word) => word.prefetch(),
                None => break,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn addresses_lie_end_to_end_and_what_is_reserved_lies_in_one_chunk() {
        assert_eq!([0, 511, 512, 1535, 1536].map(place::<AtomicU64>), [(0, 0), (0, 511), (1, 0), (1, 1023), (2, 0)]);
        let arena: Arena<AtomicU64> = Arena::new();
        assert_eq!(arena.reserve(0, 500), Some(0));
        assert_eq!(arena.reserve(500, 12), Some(500));
        // Thirteen words do not fit in the rest of the first chunk, nor five thousand in the second and third.
        assert_eq!(arena.reserve(500, 13), Some(512));
        assert_eq!(arena.reserve(600, 4096), Some(3584));
        assert_eq!(arena.reserve(WORDS_MAX - 5, 6), None);
        arena.store(3584, 7, Ordering::Relaxed);
        assert_eq!(arena.load(3584, Ordering::Relaxed), 7);
        assert!(arena.from(1 << 28).is_empty());
    }
}
