//! Decisions read from the fuzzer's bytes, from front to back; zeros after their end.

use arrow::datatypes::{DataType, Field, TimeUnit};
use std::sync::Arc;

/// Reads decisions.
pub struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u8) -> bool {
        self.byte() % n == n - 1
    }

    /// The next two bytes as a number.
    pub fn short(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// `n` bytes.
    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.byte()).collect()
    }

    /// Up to `n` bytes, depending on how many are left.
    pub fn take(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// Types of columns, by number.
pub fn data_type(number: usize) -> DataType {
    use DataType::*;
    let field = |name: &str, data_type| Arc::new(Field::new(name, data_type, true));
    let types = [
        Int64,
        UInt8,
        Float64,
        Boolean,
        Utf8,
        BinaryView,
        Decimal128(20, 3),
        FixedSizeBinary(5),
        Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        Dictionary(Box::new(Int8), Box::new(Utf8)),
        List(field("item", Int32)),
        Struct(vec![field("a", Int32)].into()),
        Int32,
        Float32,
        LargeUtf8,
        Binary,
        Decimal256(60, 10),
        Date32,
        Time64(TimeUnit::Microsecond),
        FixedSizeList(field("item", Utf8), 3),
        LargeList(field("item", Struct(vec![field("x", Utf8), field("y", Float64)].into()))),
        ListView(field("item", Int16)),
        Map(
            Arc::new(Field::new(
                "entries",
                Struct(vec![Field::new("key", Utf8, false), Field::new("value", Int64, true)].into()),
                false,
            )),
            false,
        ),
        Interval(arrow::datatypes::IntervalUnit::MonthDayNano),
        Null,
        UInt64,
        Float16,
        Dictionary(Box::new(UInt32), Box::new(Int64)),
    ];
    types[number % types.len()].clone()
}

/// The number of types of [`data_type`].
pub const TYPES: usize = 28;
