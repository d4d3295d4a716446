//! Which types and encodings the columns of the contract meet: what no column meets is not tested.
//!
//! A segment begins with a tag; that of a tree is followed by a tree of encodings (docs/format.md). What is below
//! other tags is not looked at.

use std::collections::BTreeSet;

use arrow::datatypes::DataType;

/// Kinds of Arrow type.
pub const VARIANTS: usize = 42;

/// Does not compile if Arrow has one more.
pub fn variant(data_type: &DataType) -> &'static str {
    use DataType::*;
    match data_type {
        Null => "null",
        Boolean => "boolean",
        Int8 => "int8",
        Int16 => "int16",
        Int32 => "int32",
        Int64 => "int64",
        UInt8 => "uint8",
        UInt16 => "uint16",
        UInt32 => "uint32",
        UInt64 => "uint64",
        Float16 => "float16",
        Float32 => "float32",
        Float64 => "float64",
        Timestamp(_, None) => "timestamp",
        Timestamp(_, Some(_)) => "timestamp with a zone",
        Date32 => "date32",
        Date64 => "date64",
        Time32(_) => "time32",
        Time64(_) => "time64",
        Duration(_) => "duration",
        Interval(_) => "interval",
        Binary => "binary",
        FixedSizeBinary(_) => "fixed-size binary",
        LargeBinary => "large binary",
        BinaryView => "binary view",
        Utf8 => "utf8",
        LargeUtf8 => "large utf8",
        Utf8View => "utf8 view",
        List(_) => "list",
        ListView(_) => "list view",
        FixedSizeList(..) => "fixed-size list",
        LargeList(_) => "large list",
        LargeListView(_) => "large list view",
        Struct(_) => "struct",
        Union(..) => "union",
        Dictionary(..) => "dictionary",
        Decimal32(..) => "decimal32",
        Decimal64(..) => "decimal64",
        Decimal128(..) => "decimal128",
        Decimal256(..) => "decimal256",
        Map(..) => "map",
        RunEndEncoded(..) => "run-end encoded",
    }
}

/// How parts of a segment are stored, by number.
const ALL_TAGS: [&str; 12] = [
    "null",
    "plain",
    "tree",
    "ipc",
    "narrow",
    "wide",
    "scaled",
    "dictionary",
    "struct",
    "list",
    "fixed list",
    "list view",
];

pub const TAGS: [&str; 12] = ALL_TAGS;

/// Encodings in the tree of a segment, by number.
const ALL_ENCODINGS: [&str; 20] = [
    "primitive",
    "bool",
    "varbin",
    "varbinview",
    "constant",
    "dict",
    "masked",
    "sparse",
    "sequence",
    "runend",
    "zigzag",
    "alp",
    "alprd",
    "fsst",
    "onpair",
    "bitpacked",
    "for",
    "rle",
    "null",
    "chunked",
];

/// Those that are written.
pub const ENCODINGS: [&str; 15] = [
    "primitive",
    "bool",
    "varbin",
    "constant",
    "dict",
    "masked",
    "sequence",
    "runend",
    "alp",
    "alprd",
    "fsst",
    "onpair",
    "bitpacked",
    "for",
    "steps",
];

const STEPS: u8 = 128;

#[derive(Default)]
pub struct Met {
    tags: BTreeSet<u8>,
    encodings: BTreeSet<u8>,
}

impl Met {
    pub fn add(&mut self, segment: &[u8]) {
        self.column(&mut segment.iter().copied());
    }

    fn column(&mut self, bytes: &mut dyn Iterator<Item = u8>) {
        let tag = bytes.next().unwrap() & 0x7f;
        self.tags.insert(tag);
        match ALL_TAGS[usize::from(tag)] {
            "tree" => self.tree(bytes),
            // Factor and rest come before the words.
            "scaled" => {
                varint(bytes);
                varint(bytes);
                self.column(bytes);
            }
            _ => {}
        }
    }

    fn tree(&mut self, bytes: &mut dyn Iterator<Item = u8>) {
        self.encodings.insert(bytes.next().unwrap());
        let metadata = varint(bytes);
        (0..metadata).for_each(|_| assert!(bytes.next().is_some()));
        for _ in 0..varint(bytes) {
            varint(bytes);
        }
        (0..varint(bytes)).for_each(|_| self.tree(bytes));
    }

    pub fn tags(&self) -> BTreeSet<&'static str> {
        self.tags.iter().map(|tag| ALL_TAGS[usize::from(*tag)]).collect()
    }

    pub fn encodings(&self) -> BTreeSet<&'static str> {
        let name = |number: &u8| if *number == STEPS { "steps" } else { ALL_ENCODINGS[usize::from(*number)] };
        self.encodings.iter().map(name).collect()
    }
}

fn varint(bytes: &mut dyn Iterator<Item = u8>) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = bytes.next().unwrap();
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}
