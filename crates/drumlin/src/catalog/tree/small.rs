//! Short byte strings without an allocation, compared a word at a time: names of nodes and keys of projections.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The maximum number of bytes kept in place.
const INLINE: usize = 22;

/// A byte string: up to 22 bytes in place, more behind a shared pointer. Ordered as byte strings.
#[derive(Clone)]
pub enum Small {
    /// Kept in place, the rest of the array being zero.
    Short {
        /// The number of bytes.
        len: u8,
        /// The bytes.
        bytes: [u8; INLINE],
    },
    /// Kept elsewhere.
    Long(Arc<[u8]>),
}

impl Small {
    /// Copies `bytes`.
    pub fn new(bytes: &[u8]) -> Self {
        match Probe::new(bytes) {
            Probe::Short { len, bytes } => Small::Short { len, bytes },
            Probe::Long(bytes) => Small::Long(bytes.into()),
        }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Small::Short { len, bytes } => &bytes[..usize::from(*len).min(INLINE)],
            Small::Long(bytes) => bytes,
        }
    }

    /// The bytes as text; empty if they are not text, which never happens with names.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// Compares with a probe, without copying it.
    pub fn compare(&self, probe: &Probe<'_>) -> Ordering {
        match (self, probe) {
            (Small::Short { len, bytes }, Probe::Short { len: other_len, bytes: other }) => {
                compare_short((bytes, *len), (other, *other_len))
            }
            _ => self.as_bytes().cmp(probe.as_bytes()),
        }
    }
}

/// A byte string to search for, ready to be compared with many [`Small`]s.
pub enum Probe<'a> {
    /// Short enough to be copied.
    Short {
        /// The number of bytes.
        len: u8,
        /// The bytes.
        bytes: [u8; INLINE],
    },
    /// Borrowed.
    Long(&'a [u8]),
}

impl<'a> Probe<'a> {
    /// A probe for `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        if bytes.len() > INLINE {
            return Probe::Long(bytes);
        }
        let mut copy = [0; INLINE];
        copy[..bytes.len()].copy_from_slice(bytes);
        Probe::Short { len: bytes.len() as u8, bytes: copy }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Probe::Short { len, bytes } => &bytes[..usize::from(*len).min(INLINE)],
            Probe::Long(bytes) => bytes,
        }
    }
}

fn word(bytes: &[u8; INLINE], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

/// Padded with zeros, equal arrays differ at most in zeros at the end, so the length decides.
fn compare_short((a, a_len): (&[u8; INLINE], u8), (b, b_len): (&[u8; INLINE], u8)) -> Ordering {
    let order = word(a, 0).cmp(&word(b, 0));
    if order.is_ne() {
        return order;
    }
    word(a, 8).cmp(&word(b, 8)).then_with(|| word(a, INLINE - 8).cmp(&word(b, INLINE - 8))).then(a_len.cmp(&b_len))
}

impl Ord for Small {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Small::Short { len, bytes }, Small::Short { len: other_len, bytes: other }) => {
                compare_short((bytes, *len), (other, *other_len))
            }
            _ => self.as_bytes().cmp(other.as_bytes()),
        }
    }
}

impl PartialOrd for Small {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Small {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Small {}

impl fmt::Debug for Small {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_bytes().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_that_of_byte_strings_whatever_the_length() {
        assert_eq!(size_of::<Small>(), 24);
        let mut rng = fastrand::Rng::with_seed(1);
        let mut draw = || -> Vec<u8> { (0..rng.usize(..30)).map(|_| rng.u8(..3) * 100).collect() };
        for _ in 0..20_000 {
            let (a, b) = (draw(), draw());
            assert_eq!(Small::new(&a).cmp(&Small::new(&b)), a.cmp(&b), "{a:?} {b:?}");
            assert_eq!(Small::new(&a).compare(&Probe::new(&b)), a.cmp(&b), "{a:?} {b:?}");
            assert_eq!(Small::new(&a).as_bytes(), a);
        }
    }
}
