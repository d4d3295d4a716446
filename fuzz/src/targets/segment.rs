//! A segment: four bytes choose its type, the form to decode to, and its rows; the rest is the segment.

use arrow::array::Array;
use bytes::Bytes;
use drumlin::segment::{Form, decode, decode_rows, encode, measure};

use crate::cursor::{Cursor, TYPES, data_type};

/// The target described above. The decoded array follows Arrow's rules, and can be measured and encoded.
pub fn segment(bytes: &[u8]) {
    let mut cursor = Cursor(bytes);
    let (data_type, how, rows) = (data_type(cursor.byte().into()), cursor.byte(), usize::from(cursor.short()) % 5000);
    let bytes = Bytes::copy_from_slice(cursor.0);
    let form = match (how & 1, how & 8) {
        (0, _) => Form::Exact,
        (_, 0) => Form::Native,
        _ => Form::Stored,
    };
    if let Ok(array) = decode(bytes.clone(), rows, &data_type, form) {
        assert_eq!(array.len(), rows);
        array.to_data().validate_full().expect("a sound array");
        if form == Form::Exact {
            assert_eq!(array.data_type(), &data_type);
        }
        // A few bytes may stand for half a gigabyte (a long text in all rows), of which copies would take more than a run may.
        if how & 2 != 0 && form == Form::Exact && array.get_array_memory_size() < 1 << 26 {
            let _ = measure(&array);
            if let Ok(again) = encode(&array) {
                let again = decode(again.bytes.into(), rows, &data_type, Form::Exact).expect("what was encoded");
                assert_eq!(again.len(), rows);
            }
        }
    }
    if how & 4 != 0 && rows > 0 {
        let picked = [0, rows as u32 / 2, rows as u32 - 1];
        let picked = if rows < 3 { &picked[..1] } else { &picked[..] };
        if let Ok(array) = decode_rows(bytes, rows, &data_type, picked) {
            assert_eq!(array.len(), picked.len());
            array.to_data().validate_full().expect("a sound array");
        }
    }
}

/// Columns of every type, few rows and many.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for number in 0..TYPES {
        for (rows, how) in [(9_usize, 2_u8), (30, 7), (300, 4)] {
            let mut rng = fastrand::Rng::with_seed(number as u64);
            let array = super::arrays::array(&mut rng, &data_type(number), rows, true);
            if let Ok(segment) = encode(&array) {
                let [low, high] = (rows as u16).to_le_bytes();
                if segment.bytes.len() < 4096 {
                    seeds.push([&[number as u8, how, low, high][..], &segment.bytes].concat());
                }
            }
        }
    }
    seeds
}
