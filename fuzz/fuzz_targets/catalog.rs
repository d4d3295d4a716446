//! An index of a catalog snapshot, and the chunks it names: a length and so many bytes for each.
#![no_main]

use bytes::Bytes;
use drumlin::catalog::Index;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok((index, mut rest)) = postcard::take_from_bytes::<Index>(bytes) else { return };
    let chunks: Vec<Bytes> = index
        .places()
        .map(|_| {
            let length = usize::from(rest.first().copied().unwrap_or(0)).min(rest.len());
            let (chunk, behind) = rest.split_at(length);
            rest = behind;
            Bytes::copy_from_slice(chunk)
        })
        .collect();
    if let Ok(mut state) = index.read(&chunks) {
        state.restore();
        if state.check().is_ok() {
            state.catch_up(None);
        }
    }
});
