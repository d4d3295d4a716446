//! Records: one version of one key each, completely written before any reader can find it.
//!
//! ```text
//! word 0  bits 0..32 address of the key's record before it, 0 if none; 32..64 bytes of the row
//!      1  bits 0..1 what it is (0 a row, 1 a delete), 1..64 seq
//!      2  bits 0..32 bytes of the key; 32..64 CRC32C of key and row, padded to words
//!      3  the key, the row, each padded with zeros to words; most significant byte first
//! ```

use std::cmp::Ordering;
use std::sync::atomic::Ordering::Relaxed;

use super::arena::{Addr, Arena};
use super::keys::Key;
use super::raw::Word;
use crate::base::{Seq, checksum_append};

const HEAD: usize = 3;

/// A record in an arena.
pub struct Record<'a, W> {
    arena: &'a Arena<W>,
    words: &'a [W],
    addr: Addr,
}

impl<W> Clone for Record<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Record<'_, W> {}

fn words_of(bytes: usize) -> usize {
    bytes.div_ceil(8)
}

/// The bytes of up to eight words.
#[inline]
fn block<W: Word>(words: &[W]) -> [u8; 64] {
    let mut block = [0; 64];
    for (to, word) in block.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *to = word.load(Relaxed).to_be_bytes();
    }
    block
}

/// Words that a record takes.
pub(super) fn record_words(key: Key<'_>, row: &[u8]) -> u64 {
    (HEAD + key.words.len() + words_of(row.len())) as u64
}

/// Writes a record to reserved words.
pub(super) fn write_record<W: Word>(
    arena: &Arena<W>,
    addr: Addr,
    key: Key<'_>,
    row: Option<&[u8]>,
    seq: Seq,
    before: Option<Addr>,
) {
    let words = arena.from(addr);
    let bytes = row.unwrap_or_default();
    let mut at = HEAD;
    let mut put = |word: u64| {
        words[at].store(word, Relaxed);
        at += 1;
    };
    key.words.iter().for_each(|word| put(*word));
    let (whole, rest) = bytes.as_chunks::<8>();
    whole.iter().for_each(|word| put(u64::from_be_bytes(*word)));
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        put(u64::from_be_bytes(word));
    }
    words[0].store(u64::from(before.unwrap_or(0)) | (bytes.len() as u64) << 32, Relaxed);
    words[1].store(seq.0 << 1 | u64::from(row.is_none()), Relaxed);
    words[2].store(key.bytes as u64, Relaxed);
    let sum = u64::from(Record { arena, words, addr }.sum());
    words[2].store(key.bytes as u64 | sum << 32, Relaxed);
}

impl<'a, W: Word> Record<'a, W> {
    #[inline]
    pub(super) fn new(arena: &'a Arena<W>, addr: Addr) -> Self {
        Self { arena, words: arena.from(addr), addr }
    }

    pub(super) fn addr(&self) -> Addr {
        self.addr
    }

    #[inline]
    fn word(&self, at: usize) -> u64 {
        self.words[at].load(Relaxed)
    }

    /// The commit that made it.
    #[inline]
    pub fn seq(&self) -> Seq {
        Seq(self.word(1) >> 1)
    }

    /// Whether it deletes its key.
    #[inline]
    pub fn is_delete(&self) -> bool {
        self.word(1) & 1 == 1
    }

    /// The newest record of the key that `seq` sees.
    #[inline]
    pub(super) fn as_of(self, seq: Seq) -> Option<Self> {
        let mut record = self;
        while record.seq() > seq {
            record = record.before()?;
        }
        Some(record)
    }

    /// The previous record of the key.
    pub fn before(self) -> Option<Self> {
        match self.word(0) as u32 {
            0 => None,
            before => Some(Self::new(self.arena, before)),
        }
    }

    pub(super) fn key_bytes(&self) -> usize {
        self.word(2) as u32 as usize
    }

    pub(super) fn key_byte(&self, at: usize) -> u8 {
        if at >= self.key_bytes() {
            return 0;
        }
        (self.word(HEAD + at / 8) >> (56 - 8 * (at % 8))) as u8
    }

    #[inline]
    pub(super) fn has_key(&self, key: Key<'_>) -> bool {
        self.key_bytes() == key.bytes
            && self.words[HEAD..].iter().zip(key.words).all(|(word, wanted)| word.load(Relaxed) == *wanted)
    }

    /// The first byte at which its key differs from `key`.
    pub(super) fn parts_at(&self, key: Key<'_>) -> Option<usize> {
        let own = words_of(self.key_bytes());
        let shared = own.min(key.words.len());
        for at in 0..shared {
            let differ = self.word(HEAD + at) ^ key.words[at];
            if differ != 0 {
                return Some(at * 8 + differ.leading_zeros() as usize / 8);
            }
        }
        (self.key_bytes() != key.bytes).then(|| self.key_bytes().min(key.bytes))
    }

    /// Compares its key with `key`.
    pub fn compare_key(&self, key: Key<'_>) -> Ordering {
        match self.parts_at(key) {
            None => Ordering::Equal,
            Some(at) if at >= self.key_bytes().min(key.bytes) => self.key_bytes().cmp(&key.bytes),
            Some(at) => self.key_byte(at).cmp(&key.byte(at)),
        }
    }

    /// Adds its key to a list.
    pub fn copy_key(&self, keys: &mut super::Keys) {
        let words = words_of(self.key_bytes());
        keys.push_words(self.words[HEAD..HEAD + words].iter().map(|word| word.load(Relaxed)), self.key_bytes());
    }

    /// The length of its row in bytes.
    pub fn row_bytes(&self) -> usize {
        (self.word(0) >> 32) as usize
    }

    /// Appends the bytes of its row.
    #[inline]
    pub fn copy_row(&self, out: &mut Vec<u8>) {
        let bytes = self.row_bytes();
        let first = HEAD + words_of(self.key_bytes());
        let words = &self.words[first..first + words_of(bytes)];
        let end = out.len() + bytes;
        out.reserve(words.len() * 8);
        words.chunks(8).for_each(|eight| out.extend_from_slice(&block(eight)[..eight.len() * 8]));
        out.truncate(end);
    }

    /// The checksum of key and row.
    fn sum(&self) -> u32 {
        let words = HEAD + words_of(self.key_bytes()) + words_of(self.row_bytes());
        let sum = |sum, eight: &[W]| checksum_append(sum, &block(eight)[..eight.len() * 8]);
        self.words[HEAD..words].chunks(8).fold(0, sum)
    }

    /// Whether key and row are what was written.
    pub(super) fn is_sound(&self) -> bool {
        let words = HEAD + words_of(self.key_bytes()) + words_of(self.row_bytes());
        words <= self.words.len() && self.word(2) >> 32 == u64::from(self.sum())
    }
}
