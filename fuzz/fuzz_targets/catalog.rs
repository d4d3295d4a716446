//! An index of a catalog snapshot, behind its length, and the chunks it names: a length and so many bytes for each.
#![no_main]

use bytes::Bytes;
use drumlin::catalog::Index;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((length, bytes)) = bytes.split_first_chunk::<2>() else { return };
    let length = usize::from(u16::from_le_bytes(*length)).min(bytes.len());
    let (index, mut rest) = bytes.split_at(length);
    let Ok(index) = Index::decode(index) else { return };
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
