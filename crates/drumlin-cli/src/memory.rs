//! The allocator of the command and of the Python package.
//!
//! Reading fills fresh megabytes again and again. The system's allocator gives such memory back at once and has the
//! kernel clear it page by page the next time, which takes longer than decoding does. This allocator keeps it for a
//! while.

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// How long freed memory is kept for the next use, in milliseconds: as long as jemalloc's default.
const KEEP_MS: std::ffi::c_long = 10_000;

/// `mi_option_purge_delay`, for which the bindings have no name.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Sets how long freed memory is kept. Call it once, early.
#[allow(unsafe_code)]
pub fn configure() {
    // SAFETY: sets an integer option of the allocator; it may be called at any time, from any thread.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, KEEP_MS) };
}
