//! Keys as the memtable takes them: byte strings compared as bytes, none a prefix of another, packed in words.

use std::cmp::Ordering;

/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 32 << 10;

/// A list of keys. The first byte of a key is the most significant one of its first word, and the rest of the last word is
/// zero; so keys compare word by word.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    words: Vec<u64>,
    /// Where each lies; empty while all have `bytes` bytes.
    spans: Vec<KeySpan>,
    /// How many bytes each has, while all have the same.
    bytes: u32,
    len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KeySpan {
    start: u32,
    bytes: u32,
}

/// One key.
#[derive(Clone, Copy, Debug, Eq)]
pub struct Key<'a> {
    pub(super) words: &'a [u64],
    pub(super) bytes: usize,
}

impl Keys {
    /// No keys yet, with room for `keys` keys of `bytes` bytes each.
    pub fn with_capacity(keys: usize, bytes: usize) -> Self {
        Self { words: Vec::with_capacity(keys * bytes.div_ceil(8)), ..Self::default() }
    }

    /// Keys of eight bytes each.
    pub fn from_words(words: Vec<u64>) -> Self {
        Self { len: words.len(), words, spans: Vec::new(), bytes: 8 }
    }

    /// Prepares for a key of `bytes` bytes.
    #[inline]
    fn grow(&mut self, bytes: usize) {
        let bytes = bytes as u32;
        if self.len == 0 {
            self.bytes = bytes;
        } else if self.spans.is_empty() && bytes != self.bytes {
            let (each, step) = (self.bytes, self.bytes.div_ceil(8));
            self.spans.extend((0..self.len as u32).map(|at| KeySpan { start: at * step, bytes: each }));
        }
        if !self.spans.is_empty() {
            self.spans.push(KeySpan { start: self.words.len() as u32, bytes });
        }
        self.len += 1;
    }

    /// Adds a key.
    pub fn push(&mut self, key: &[u8]) {
        self.grow(key.len());
        let (whole, rest) = key.as_chunks::<8>();
        self.words.extend(whole.iter().map(|word| u64::from_be_bytes(*word)));
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.words.push(u64::from_be_bytes(word));
        }
    }

    /// Adds a key of eight bytes.
    #[inline]
    pub fn push_word(&mut self, key: u64) {
        self.grow(8);
        self.words.push(key);
    }

    /// Adds a key of `bytes` bytes, given as words.
    pub(super) fn push_words(&mut self, words: impl Iterator<Item = u64>, bytes: usize) {
        self.grow(bytes);
        self.words.extend(words);
    }

    /// Adds a key of another list.
    pub fn push_key(&mut self, key: Key<'_>) {
        self.grow(key.bytes);
        self.words.extend_from_slice(key.words);
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The key at a place.
    #[inline]
    pub fn get(&self, at: usize) -> Key<'_> {
        let (start, bytes) = match self.spans.get(at) {
            Some(span) => (span.start as usize, span.bytes as usize),
            None => (at * self.bytes.div_ceil(8) as usize, self.bytes as usize),
        };
        Key { words: &self.words[start..start + bytes.div_ceil(8)], bytes }
    }

    /// The keys as words, if each is a word of eight bytes.
    pub fn as_words(&self) -> Option<&[u64]> {
        (self.spans.is_empty() && self.bytes == 8).then_some(&self.words)
    }

    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Key<'_>> + Clone {
        (0..self.len()).map(|at| self.get(at))
    }

    /// The keys at `places`, in that order.
    #[must_use]
    pub fn take(&self, places: impl Iterator<Item = usize>) -> Keys {
        let mut taken = Keys::with_capacity(places.size_hint().0, self.bytes as usize);
        match self.as_words() {
            Some(words) => places.for_each(|at| taken.push_word(words[at])),
            None => places.for_each(|at| taken.push_key(self.get(at))),
        }
        taken
    }

    /// Each of them once, in ascending order.
    #[must_use]
    pub fn each_once(&self) -> Keys {
        let places = self.sorted_places();
        let first = |at: &usize| *at == 0 || self.get(places[at - 1] as usize) != self.get(places[*at] as usize);
        self.take((0..places.len()).filter(first).map(|at| places[at] as usize))
    }

    /// Their places in ascending order; equal ones keep theirs. O(n log n), O(n) if they are in order.
    pub fn sorted_places(&self) -> Vec<u32> {
        if self.is_sorted() {
            return (0..self.len as u32).collect();
        }
        if self.spans.is_empty() && (1..=8).contains(&self.bytes) {
            let least = self.words.iter().min().copied().unwrap_or(0);
            if self.words.iter().all(|word| word - least <= u64::from(u32::MAX)) {
                // Their differences from the smallest key and their places, packed in one word.
                let mut words: Vec<u64> =
                    self.words.iter().zip(0..).map(|(word, place): (_, u64)| (word - least) << 32 | place).collect();
                words.sort_unstable();
                return words.into_iter().map(|word| word as u32).collect();
            }
            // One word each: the keys are copied next to their places to be compared there.
            let mut words: Vec<(u64, u32)> = self.words.iter().copied().zip(0..).collect();
            words.sort_unstable();
            return words.into_iter().map(|(_, place)| place).collect();
        }
        let mut places: Vec<u32> = (0..self.len as u32).collect();
        places.sort_by(|&a, &b| self.get(a as usize).cmp(&self.get(b as usize)));
        places
    }

    /// Whether no key is less than the one before it.
    pub fn is_sorted(&self) -> bool {
        match self.as_words() {
            Some(words) => words.is_sorted(),
            None => (1..self.len).all(|at| self.get(at - 1) <= self.get(at)),
        }
    }

    /// The first place, of keys in order, for which `before` is false.
    pub fn partition_point(&self, before: impl Fn(Key<'_>) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if before(self.get(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Bytes used in memory.
    pub fn memory_bytes(&self) -> u64 {
        (self.words.len() * 8 + self.spans.len() * size_of::<KeySpan>()) as u64
    }
}

impl Key<'_> {
    /// Its bytes as words, the first byte the most significant, padded with zeros.
    pub fn words(&self) -> &[u64] {
        self.words
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Its first eight bytes as a number.
    #[inline]
    pub fn word(&self) -> u64 {
        self.words.first().copied().unwrap_or(0)
    }

    /// The byte at a place; zero past the end.
    #[inline]
    pub(super) fn byte(&self, at: usize) -> u8 {
        self.words.get(at / 8).map_or(0, |word| (word >> (56 - 8 * (at % 8))) as u8)
    }

    /// Appends its bytes.
    pub fn copy_to(&self, out: &mut Vec<u8>) {
        let end = out.len() + self.bytes;
        self.words.iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
        out.truncate(end);
    }

    /// Its bytes.
    pub fn to_vec(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.words.len() * 8);
        self.copy_to(&mut bytes);
        bytes
    }
}

impl PartialEq for Key<'_> {
    /// Written by hand, since most keys have a word or two: comparing slices costs more.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes && self.words.iter().zip(other.words).all(|(a, b)| a == b)
    }
}

impl PartialEq for Keys {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl Eq for Keys {}

impl Ord for Key<'_> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.words.cmp(other.words).then(self.bytes.cmp(&other.bytes))
    }
}

impl PartialOrd for Key<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_compare_as_their_bytes() {
        let mut rng = fastrand::Rng::with_seed(3);
        let bytes: Vec<Vec<u8>> = (0..300).map(|_| (0..rng.usize(..20)).map(|_| rng.u8(..3)).collect()).collect();
        let mut keys = Keys::default();
        bytes.iter().for_each(|key| keys.push(key));
        for (i, a) in bytes.iter().enumerate() {
            assert_eq!(&keys.get(i).to_vec(), a);
            for (j, b) in bytes.iter().enumerate() {
                assert_eq!(keys.get(i).cmp(&keys.get(j)), a.cmp(b), "{a:?} {b:?}");
            }
        }
        let mut words = Keys::default();
        bytes.iter().for_each(|_| words.push_word(rng.u64(..40)));
        let order = words.sorted_places();
        let word = |at: &u32| (words.get(*at as usize).word(), *at);
        assert!(order.windows(2).all(|pair| word(&pair[0]) < word(&pair[1])) && order.len() == words.len());
        let places = keys.sorted_places();
        assert!(places.windows(2).all(|pair| bytes[pair[0] as usize] <= bytes[pair[1] as usize]));
        assert!(keys.take(places.iter().map(|at| *at as usize)).is_sorted() && !keys.is_sorted());
    }
}
