//! A catalog snapshot behind its header.
#![no_main]

use drumlin::catalog::State;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(state) = postcard::from_bytes::<State>(bytes) {
        let _ = state.check();
    }
});
