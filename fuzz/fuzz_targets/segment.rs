//! A segment: two bytes choose type and rows, the rest is the segment.
#![no_main]

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, TimeUnit};
use bytes::Bytes;
use drumlin::segment::{Form, decode};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let [kind, rows, rest @ ..] = bytes else { return };
    let types = [
        DataType::Int64,
        DataType::UInt8,
        DataType::Float64,
        DataType::Boolean,
        DataType::Utf8,
        DataType::BinaryView,
        DataType::Decimal128(20, 3),
        DataType::FixedSizeBinary(5),
        DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)),
        DataType::List(Arc::new(Field::new("item", DataType::Int32, true))),
        DataType::Struct(vec![Field::new("a", DataType::Int32, true)].into()),
    ];
    let data_type = &types[usize::from(kind >> 1) % types.len()];
    let form = if kind & 1 == 0 { Form::Exact } else { Form::Native };
    let _ = decode(Bytes::copy_from_slice(rest), usize::from(*rows), data_type, form);
});
