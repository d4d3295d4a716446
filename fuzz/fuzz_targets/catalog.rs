//! A catalog snapshot behind its header.
#![no_main]

use drumlin::catalog::State;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(mut state) = postcard::from_bytes::<State>(bytes) {
        state.restore();
        if state.check().is_ok() {
            state.catch_up(None);
        }
    }
});
