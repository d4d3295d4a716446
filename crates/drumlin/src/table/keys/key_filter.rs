//! The filter of a row group's keys: recognises most keys that do not exist without reading any keys.
//!
//! A binary fuse filter (Graf and Lemire, "Binary Fuse Filters", 2022) of 8 bits: about 9 bits per key, with one false
//! positive in 256.
//!
//! ```text
//! 0   8  seed
//! 8   4  segment length, then 4 the same less one, then 4 the length of all segments except two
//! 20  -  fingerprints
//! ```
//! A key of 8 bytes is its own hash. The hash of others is computed over the key, padded with zeros to words of 8
//! bytes, the most significant first, and then its length: `h = (rotate_left(h, 5) ^ word) * 0x517cc1b727220a95`, from
//! 0.

use xorf::{BinaryFuse8, BinaryFuse8Ref, DmaSerializable, Filter, FilterRef};

use crate::memtable::{Key, Keys};

/// For fewer rows, checking a filter is as much work as searching the keys.
const ROWS_MIN: usize = 1024;
const HEADER: usize = BinaryFuse8::DESCRIPTOR_LEN;

fn hash(key: Key<'_>) -> u64 {
    let fold = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    match key.words() {
        [word] if key.len() == 8 => *word,
        words => fold(words.iter().fold(0, |hash, word| fold(hash, *word)), key.len() as u64),
    }
}

/// Makes the filter of keys; `None` if it is not worth it.
pub fn key_filter(keys: &Keys) -> Option<Vec<u8>> {
    if keys.len() < ROWS_MIN {
        return None;
    }
    let mut hashes: Vec<u64> = keys.iter().map(hash).collect();
    if !hashes.is_sorted() {
        hashes.sort_unstable();
    }
    hashes.dedup();
    let filter = BinaryFuse8::try_from(&hashes).ok()?;
    let mut bytes = vec![0; HEADER];
    filter.dma_copy_descriptor_to(&mut bytes);
    bytes.extend_from_slice(filter.dma_fingerprints());
    Some(bytes)
}

/// Whether a key may be among those from which the filter `bytes` was made. `None` if it is not a filter.
pub fn may_have<'a>(bytes: &[u8], mut keys: impl Iterator<Item = Key<'a>>) -> Option<bool> {
    let (head, fingerprints) = bytes.split_at_checked(HEADER)?;
    let number = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("4 bytes"));
    let (segment, mask, count) = (u64::from(number(8)), number(12), u64::from(number(16)));
    if count == 0 || !segment.is_power_of_two() || u64::from(mask) != segment - 1 {
        return None;
    }
    // A key's places may be anywhere in their segments, so the last segment counts as a whole.
    let reach = (count + 2 * segment).next_multiple_of(segment);
    if reach > fingerprints.len() as u64 {
        return None;
    }
    let filter = BinaryFuse8Ref::from_dma(head, fingerprints);
    Some(keys.any(|key| filter.contains(&hash(key))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_there_pass_and_few_others() {
        let mut rng = fastrand::Rng::with_seed(2);
        for words in [true, false] {
            let key = |keys: &mut Keys, n: u64| match words {
                true => keys.push_word(n),
                false => keys.push(format!("key {n:07}\0").as_bytes()),
            };
            let (mut keys, mut others) = (Keys::default(), Keys::default());
            (0..20_000).for_each(|n| key(&mut keys, n * 3));
            (0..20_000).for_each(|n| key(&mut others, n * 3 + 1));
            let filter = key_filter(&keys).unwrap();
            assert!(filter.len() < keys.len() * 10 / 8, "{} bytes", filter.len());
            assert!(keys.iter().all(|key| may_have(&filter, std::iter::once(key)) == Some(true)));
            let wrong = others.iter().filter(|key| may_have(&filter, std::iter::once(*key)) == Some(true)).count();
            assert!(wrong < 160, "wrong of {wrong} of 20000");
            for _ in 0..2000 {
                let mut damaged = filter.clone();
                let at = if rng.bool() { rng.usize(..HEADER) } else { rng.usize(..damaged.len()) };
                damaged[at] = rng.u8(..);
                damaged.truncate(rng.usize(..=damaged.len()));
                let _ = may_have(&damaged, keys.iter().take(20));
            }
        }
        // The last segment is incomplete.
        let mut keys = Keys::default();
        (0..1100).for_each(|key| keys.push_word(key * 3));
        let filter = key_filter(&keys).unwrap();
        for cut in [1, 2, 30] {
            let mut damaged = filter[..filter.len() - cut as usize].to_vec();
            let count = u32::from_le_bytes(damaged[16..20].try_into().unwrap()) - cut;
            damaged[16..20].copy_from_slice(&count.to_le_bytes());
            assert!(keys.iter().all(|key| may_have(&damaged, std::iter::once(key)).is_none()), "cut by {cut}");
        }
        // No segment at all, which is never the case for a filter of keys.
        let mut empty = filter;
        empty[16..20].copy_from_slice(&[0; 4]);
        assert_eq!(may_have(&empty, keys.iter()), None);
        for n in [1024, 5000, 62_500, 121_000, 122_880] {
            let mut keys = Keys::default();
            (0..n).for_each(|key| keys.push_word(1 << 63 | key));
            let filter = key_filter(&keys).unwrap();
            let missed = keys.iter().filter(|key| may_have(&filter, std::iter::once(*key)) != Some(true)).count();
            assert_eq!(missed, 0, "of {n}");
        }
        assert_eq!(key_filter(&Keys::default()), None);
    }
}
