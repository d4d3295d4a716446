//! A row group's directory.
#![no_main]

use drumlin::block::Directory;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = postcard::from_bytes::<Directory>(bytes);
});
