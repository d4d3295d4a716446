//! Nodes of a tree of encodings, as they are stored.

use bytes::Bytes;

/// The names of encodings, stored as their positions. Append only.
///
/// They are names of Vortex, by whose arrays segments were written first; metadata and buffers are those of its editions up to
/// core 2026.08.1, so that what either wrote, both read.
pub const ENCODINGS: [&str; 20] = [
    "vortex.primitive",
    "vortex.bool",
    "vortex.varbin",
    "vortex.varbinview",
    "vortex.constant",
    "vortex.dict",
    "vortex.masked",
    "vortex.sparse",
    "vortex.sequence",
    "vortex.runend",
    "vortex.zigzag",
    "vortex.alp",
    "vortex.alprd",
    "vortex.fsst",
    "vortex.onpair",
    "fastlanes.bitpacked",
    "fastlanes.for",
    "fastlanes.rle",
    "vortex.null",
    "vortex.chunked",
];

macro_rules! encodings {
    ($($(#[$meta:meta])* $name:ident = $number:literal,)*) => {
        $($(#[$meta])* pub const $name: u8 = $number;)*
    };
}

encodings! {
    /// Numbers as they are.
    PRIMITIVE = 0,
    /// A bitmap.
    BOOL = 1,
    /// Texts one after the other, and where each begins.
    VARBIN = 2,
    /// Texts as views.
    VARBINVIEW = 3,
    /// One value in all rows.
    CONSTANT = 4,
    /// Distinct values, and the place of each row's among them.
    DICT = 5,
    /// Values without nulls, and which rows have one.
    MASKED = 6,
    /// One value in most rows, and the others.
    SPARSE = 7,
    /// Numbers at equal distances.
    SEQUENCE = 8,
    /// Runs of equal values, and where each ends.
    RUNEND = 9,
    /// Signed integers, small ones first.
    ZIGZAG = 10,
    /// Floats as integers times a power of ten (scale.rs).
    ALP = 11,
    /// Floats in two parts, the first of which is one of few.
    ALPRD = 12,
    /// Texts in symbols of up to 8 bytes.
    FSST = 13,
    /// Texts in symbols of up to 16 bytes.
    ONPAIR = 14,
    /// Integers in few bits (pack.rs).
    BITPACKED = 15,
    /// Integers less the smallest of them.
    FOR = 16,
    /// Runs of equal values within each 1,024 rows.
    RLE = 17,
    /// Parts one after the other.
    CHUNKED = 19,
    /// Ascending integers by their distances. Not one of Vortex.
    STEPS = 128,
}

/// The bit of [`STEPS`] in a set of encodings.
pub const STEPS_BIT: u64 = 1 << 63;

/// The bit of an encoding in a set of them; none of one that is not known.
pub const fn bit_of(encoding: u8) -> u64 {
    match encoding {
        STEPS => STEPS_BIT,
        0..63 => 1 << encoding,
        _ => 0,
    }
}

/// A node as the bytes of a segment say it; nothing in it was checked.
#[derive(Clone, Debug, Default)]
pub struct RawNode {
    /// The position in [`ENCODINGS`], or [`STEPS`].
    pub encoding: u8,
    /// What the encoding says of itself.
    pub metadata: Bytes,
    /// Its memory.
    pub buffers: Vec<Bytes>,
    /// The nodes below.
    pub children: Vec<RawNode>,
}

impl RawNode {
    /// How to call it in messages.
    pub fn name(&self) -> &'static str {
        match self.encoding {
            STEPS => "steps",
            at => ENCODINGS.get(usize::from(at)).copied().unwrap_or("an unknown encoding"),
        }
    }
}
