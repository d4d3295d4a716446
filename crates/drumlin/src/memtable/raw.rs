//! The two operations for which the safe language has no word: a zeroed array of atomics without touching its pages, and
//! asking the CPU for a cache line ahead of its use. The only `unsafe` of this crate.
//!
//! [`Word`] is also the seam by which a concurrency checker puts its own atomics in the place of the machine's.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};

/// An atomic word of 64 bits.
pub trait Word: Sized + Send + Sync + 'static {
    /// Words of an arena's first chunk, a power of two.
    const FIRST: u64;
    /// So many words, all zero.
    fn zeroed(words: usize) -> Box<[Self]>;
    /// Reads it.
    fn load(&self, order: Ordering) -> u64;
    /// Writes it.
    fn store(&self, value: u64, order: Ordering);
    /// Brings it into the cache; a hint.
    fn prefetch(&self);
}

impl Word for AtomicU64 {
    const FIRST: u64 = 512;

    fn zeroed(words: usize) -> Box<[Self]> {
        // SAFETY: `AtomicU64` has the same in-memory representation as `u64`, for which all zeroes are a value. The system
        // hands out large arrays untouched, so that a chunk takes memory as it is filled.
        unsafe { Box::<[Self]>::new_zeroed_slice(words).assume_init() }
    }

    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        AtomicU64::load(self, order)
    }

    #[inline]
    fn store(&self, value: u64, order: Ordering) {
        AtomicU64::store(self, value, order);
    }

    #[inline]
    fn prefetch(&self) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: prefetching reads nothing and never faults, whatever the address; this one is of a live reference.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(self).cast());
        }
        #[cfg(any(not(target_arch = "x86_64"), miri))]
        {
            // A load whose value nobody waits for does much the same.
            let _ = self.load(Ordering::Relaxed);
        }
    }
}
