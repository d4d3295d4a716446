//! What safe Rust cannot express: allocating a zeroed array of atomics without touching its pages, in huge pages where
//! the system has them, and prefetching a cache line. The only `unsafe` code of this crate.
//!
//! [`Word`] is also the seam by which a concurrency checker substitutes its own atomics for the machine's.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};

/// An atomic word of 64 bits.
pub trait Word: Sized + Send + Sync + 'static {
    /// Words of an arena's first chunk, a power of two.
    const FIRST: u64;
    /// `words` words, all zero.
    fn zeroed(words: usize) -> Box<[Self]>;
    /// Reads it.
    fn load(&self, order: Ordering) -> u64;
    /// Writes it.
    fn store(&self, value: u64, order: Ordering);
    /// Brings it into the cache; a hint.
    fn prefetch(&self);
}

/// Asks the system to back a large array by huge pages: a few hundred replace a hundred thousand small ones, and a
/// look-up seldom waits for an address to be translated. A hint.
fn in_huge_pages(words: &[AtomicU64]) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        const HUGE: usize = 2 << 20;
        let start = words.as_ptr() as usize;
        let (first, end) = (start.next_multiple_of(HUGE), (start + size_of_val(words)) / HUGE * HUGE);
        if first < end {
            // SAFETY: the range lies within `words`, at the bounds of pages; this advice changes no content and frees
            // nothing. Whether the system follows it affects only speed.
            unsafe { libc::madvise(first as *mut libc::c_void, end - first, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = words;
}

impl Word for AtomicU64 {
    const FIRST: u64 = 512;

    fn zeroed(words: usize) -> Box<[Self]> {
        // SAFETY: `AtomicU64` has the same in-memory representation as `u64`, for which all zeroes are a valid value. The
        // system hands out large arrays untouched, so a chunk takes memory only as it is filled.
        let words = unsafe { Box::<[Self]>::new_zeroed_slice(words).assume_init() };
        in_huge_pages(&words);
        words
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
            // A load whose value is not used does much the same.
            let _ = self.load(Ordering::Relaxed);
        }
    }
}
