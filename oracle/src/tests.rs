//! Numbers and texts of many shapes, by both.

use std::path::Path;

use drumlin_codec::{
    Bits, Built, Column, Effort, ENCODINGS, Limit, Memory, Ptype, RawNode, STEPS_BIT, Search, TextColumn, Word, numbers, texts,
};
use fastrand::Rng;
use vortex_array::arrays::{PrimitiveArray, VarBinViewArray};
use vortex_array::dtype::{DType, Nullability, PType};
use vortex_array::validity::Validity;
use vortex_array::{ArrayRef, IntoArray};
use vortex_btrblocks::{BtrBlocksCompressorBuilder, SchemeExt};
use vortex_buffer::{Alignment, ByteBuffer};

use crate::Oracle;

const PTYPES: [Ptype; 11] = [
    Ptype::U8, Ptype::U16, Ptype::U32, Ptype::U64, Ptype::I8, Ptype::I16, Ptype::I32, Ptype::I64, Ptype::F16, Ptype::F32,
    Ptype::F64,
];

fn vortex_type(ptype: Ptype) -> PType {
    PType::try_from(ptype as i32).unwrap()
}

fn limit() -> Limit {
    Limit::new(1 << 24, 1 << 28)
}

fn bytes_of(memory: Memory) -> Vec<u8> {
    match memory {
        Memory::Shared(bytes) => bytes.to_vec(),
        Memory::U8(values) => values,
        Memory::U16(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Memory::U32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Memory::U64(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
    }
}

/// Numbers of a shape.
fn shaped(rng: &mut Rng, shape: u8, ptype: Ptype, len: usize) -> Vec<u64> {
    let some = rng.u64(..);
    let mut last = 0;
    let float = |value: f64| match ptype {
        Ptype::F32 => (value as f32).to_bits().into(),
        _ => value.to_bits(),
    };
    (0..len)
        .map(|row| match shape {
            0 => some,
            1 => row as u64 * 3,
            2 => (row / 50) as u64 * 7,
            3 => rng.i64(-20..100) as u64,
            4 => 1_700_000_000_000 + rng.u64(0..1000) * 1000,
            5 if rng.u8(..20) == 0 => rng.u64(..),
            5 => 0,
            6 => {
                last += rng.u64(..9);
                last
            }
            7 => [3, 99, some, 1 << 40][rng.usize(..4)],
            8 => float(rng.i64(-5_000_000..5_000_000) as f64 / 100.0),
            9 => float(rng.f64() * 1e3),
            10 if rng.u8(..9) == 0 => rng.u64(..),
            10 => float(rng.i64(0..50) as f64 / 4.0),
            11 => float([1.5, 2.5, 1e10][rng.usize(..3)]),
            _ => rng.u64(..),
        })
        .collect()
}

/// What the codec reads of nodes, and Vortex of an array, of numbers: equal, null by null.
fn compare<W: Word>(oracle: &Oracle, node: &RawNode, array: ArrayRef, ptype: Ptype, told: &str) {
    let len = array.len();
    let limit = limit();
    let column = Column::<W>::read(node, ptype, len, &limit).unwrap_or_else(|error| panic!("{told}: {error}"));
    let rows: Vec<u32> = (0..len as u32).step_by(37).collect();
    let some = bytes_of(column.pick(&rows).unwrap().0);
    let (memory, nulls) = column.decode().unwrap();
    let own = bytes_of(memory);
    let mut context = oracle.context();
    let theirs = array.execute::<PrimitiveArray>(&mut context).unwrap_or_else(|error| panic!("{told}: {error}"));
    let valid = theirs.as_ref().validity().unwrap().execute_mask(len, &mut context).unwrap();
    let handle = theirs.buffer_handle().to_host_sync();
    let bytes: &[u8] = handle.as_ref();
    assert_eq!(own.len(), bytes.len(), "{told}");
    for row in 0..len {
        let is_valid = valid.value(row);
        assert_eq!(nulls.as_ref().is_none_or(|nulls| nulls.get(row)), is_valid, "{told}, row {row}");
        let range = row * W::BYTES..(row + 1) * W::BYTES;
        assert!(!is_valid || own[range.clone()] == bytes[range], "{told}, row {row}");
    }
    for (at, row) in rows.iter().enumerate() {
        let row = *row as usize * W::BYTES;
        assert_eq!(some[at * W::BYTES..(at + 1) * W::BYTES], own[row..row + W::BYTES], "{told}");
    }
}

fn shown(node: &RawNode) -> String {
    let children: Vec<String> = node.children.iter().map(shown).collect();
    if children.is_empty() { node.name().to_owned() } else { format!("{}({})", node.name(), children.join(", ")) }
}

fn encodings(node: &RawNode) -> u64 {
    node.children.iter().fold(1_u64.checked_shl(node.encoding.into()).unwrap_or(0), |all, child| all | encodings(child))
}

macro_rules! with_words {
    ($ptype:expr, $W:ident => $body:expr) => {
        match $ptype.byte_width() {
            1 => { type $W = u8; $body }
            2 => { type $W = u16; $body }
            4 => { type $W = u32; $body }
            _ => { type $W = u64; $body }
        }
    };
}

#[test]
fn numbers_that_the_codec_writes_are_read_by_vortex() {
    let oracle = Oracle::default();
    let mut rng = Rng::with_seed(1);
    let searches = [Effort::Balanced, Effort::Small, Effort::Fast].map(|effort| Search { effort, ..Search::default() });
    let steps = Search { encodings: Some(STEPS_BIT), ..Search::default() };
    for ptype in PTYPES {
        for shape in 0..13 {
            for len in [1, 3, 100, 1025, 6000] {
                let nulls = rng.bool().then(|| Bits::collect(len, |row| row % 3 != 0));
                let wide = shaped(&mut rng, shape, ptype, len);
                for search in searches.iter().chain([&steps]) {
                    with_words!(ptype, W => {
                        let values: Vec<W> = wide.iter().map(|value| W::low(*value)).collect();
                        let raw = numbers(&values, ptype, nulls.as_ref(), search).raw();
                        let told = format!("{ptype:?}, shape {shape}, {len} rows: {}", shown(&raw));
                        let dtype = DType::Primitive(vortex_type(ptype), nulls.is_some().into());
                        let array = oracle.array(&raw, &dtype, len).unwrap_or_else(|error| panic!("{told}: {error}"));
                        compare::<W>(&oracle, &raw, array, ptype, &told);
                    });
                }
            }
        }
    }
}

/// All that Vortex's compressor may choose, and each of its schemes forced where it can be.
fn compressed(oracle: &Oracle, array: &ArrayRef) -> Vec<ArrayRef> {
    let builder = BtrBlocksCompressorBuilder::from_session(&oracle.session);
    let all = builder.clone().build();
    let mut made: Vec<ArrayRef> = all.compress(array, &mut oracle.context()).into_iter().collect();
    use vortex_btrblocks::CompressionSessionExt;
    let schemes: Vec<_> = oracle.session.compression().schemes().iter().map(|scheme| scheme.id()).collect();
    // Without each one in turn, the next best is chosen.
    for scheme in schemes {
        let other = builder.clone().exclude_schemes([scheme]).build();
        made.extend(other.compress(array, &mut oracle.context()));
    }
    made
}

fn primitive(wide: &[u64], ptype: Ptype, nulls: bool) -> ArrayRef {
    let bytes: Vec<u8> = wide.iter().flat_map(|value| value.to_le_bytes()[..ptype.byte_width()].to_vec()).collect();
    let bytes = ByteBuffer::copy_from_aligned(&bytes[..], Alignment::new(64));
    let validity = if nulls {
        Validity::from_iter((0..wide.len()).map(|row| row % 5 != 2))
    } else {
        Validity::NonNullable
    };
    PrimitiveArray::from_byte_buffer(bytes, vortex_type(ptype), validity).into_array()
}

#[test]
fn numbers_that_vortex_writes_are_read_by_the_codec() {
    let oracle = Oracle::default();
    let mut rng = Rng::with_seed(2);
    let mut seen = 0;
    for ptype in PTYPES {
        for shape in 0..13 {
            for len in [3, 100, 1025, 6000] {
                let wide = shaped(&mut rng, shape, ptype, len);
                for nulls in [false, true] {
                    let array = primitive(&wide, ptype, nulls);
                    for made in compressed(&oracle, &array) {
                        let Some(raw) = oracle.nodes(&made) else { continue };
                        seen |= encodings(&raw);
                        let told = format!("{ptype:?}, shape {shape}, {len} rows: {}", shown(&raw));
                        with_words!(ptype, W => compare::<W>(&oracle, &raw, made, ptype, &told));
                        if len > 100 {
                            fixture(&raw, Some(ptype), len, &array, &oracle);
                        }
                    }
                }
            }
        }
    }
    let missing: Vec<&str> =
        (0..20).filter(|at| seen >> at & 1 == 0).map(|at| ENCODINGS[at]).collect();
    println!("numbers are never written as {missing:?}");
}

fn text_of(made: &[String], nulls: bool) -> ArrayRef {
    let values = made.iter().enumerate().map(|(row, text)| (!nulls || row % 5 != 2).then_some(text.as_str()));
    VarBinViewArray::from_iter(values, DType::Utf8(Nullability::from(nulls))).into_array()
}

fn values_of(oracle: &Oracle, array: &VarBinViewArray) -> Vec<Option<Vec<u8>>> {
    let valid = array.as_ref().validity().unwrap().execute_mask(array.len(), &mut oracle.context()).unwrap();
    (0..array.len()).map(|row| valid.value(row).then(|| array.bytes_at(row).as_ref().to_vec())).collect()
}

fn compare_texts(oracle: &Oracle, node: &RawNode, array: ArrayRef, told: &str) {
    let len = array.len();
    let limit = limit();
    let column = TextColumn::read(node, len, &limit).unwrap_or_else(|error| panic!("{told}: {error}"));
    let plain = column.decode().unwrap_or_else(|error| panic!("{told}: {error}"));
    let theirs = array.execute::<VarBinViewArray>(&mut oracle.context()).unwrap_or_else(|error| panic!("{told}: {error}"));
    for (row, value) in values_of(oracle, &theirs).into_iter().enumerate() {
        let own = &plain.bytes[plain.offsets[row] as usize..plain.offsets[row + 1] as usize];
        assert_eq!(column.nulls.as_ref().is_none_or(|nulls| nulls.get(row)), value.is_some(), "{told}, row {row}");
        assert!(value.is_none_or(|value| value == own), "{told}, row {row}");
    }
}

fn strings(rng: &mut Rng, shape: u8, len: usize) -> Vec<String> {
    const WORDS: [&str; 6] = ["furiously ", "ironic ", "deposits ", "é", "日本", ""];
    (0..len)
        .map(|row| match shape {
            0 => "same".to_owned(),
            1 => format!("https://example.org/item/{row}"),
            2 => WORDS[rng.usize(..6)].to_owned(),
            3 => (0..rng.usize(..12)).map(|_| WORDS[rng.usize(..6)]).collect(),
            4 if row % 50 == 0 => format!("rare {row}"),
            4 => "often".to_owned(),
            _ => format!("value number {}", rng.usize(..len / 4 + 1)),
        })
        .collect()
}

#[test]
fn texts_that_vortex_writes_are_read_by_the_codec() {
    let oracle = Oracle::default();
    let mut rng = Rng::with_seed(3);
    for shape in 0..6 {
        for len in [2, 100, 1000, 6000] {
            let made = strings(&mut rng, shape, len);
            for nulls in [false, true] {
                let array = text_of(&made, nulls);
                for compressed in compressed(&oracle, &array).into_iter().chain([array.clone()]) {
                    let Some(raw) = oracle.nodes(&compressed) else { continue };
                    let told = format!("shape {shape}, {len} rows: {}", shown(&raw));
                    compare_texts(&oracle, &raw, compressed, &told);
                    if len >= 100 {
                        fixture(&raw, None, len, &array, &oracle);
                    }
                }
            }
        }
    }
}

#[test]
fn texts_that_the_codec_writes_are_read_by_vortex() {
    let oracle = Oracle::default();
    let mut rng = Rng::with_seed(4);
    for shape in 0..6 {
        for len in [2, 100, 1000, 6000] {
            let made = strings(&mut rng, shape, len);
            let nulls = (shape > 0 && rng.bool()).then(|| Bits::collect(len, |row| row % 5 != 1));
            let valid = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.get(row));
            let values: Vec<&[u8]> =
                made.iter().enumerate().map(|(row, text)| if valid(row) { text.as_bytes() } else { &[] }).collect();
            for symbols in [true, false] {
                let built: Option<Built> = texts(&values, true, nulls.as_ref(), &Search::default(), symbols);
                let Some(built) = built else { continue };
                let raw = built.raw();
                let told = format!("shape {shape}, {len} rows: {}", shown(&raw));
                let dtype = DType::Utf8(nulls.is_some().into());
                let array = oracle.array(&raw, &dtype, len).unwrap_or_else(|error| panic!("{told}: {error}"));
                compare_texts(&oracle, &raw, array, &told);
            }
        }
    }
}

/// Writes nodes that have an encoding the codec never writes, and what they say, once for each combination: tests of the codec read them
/// without Vortex. With `DRUMLIN_WRITE_FIXTURES=1`.
fn fixture(raw: &RawNode, ptype: Option<Ptype>, len: usize, array: &ArrayRef, oracle: &Oracle) {
    if std::env::var_os("DRUMLIN_WRITE_FIXTURES").is_none() {
        return;
    }
    const RARE: [u8; 4] = [3, 7, 10, 17];
    let rare: Vec<u8> = RARE.into_iter().filter(|encoding| encodings(raw) >> encoding & 1 == 1).collect();
    let legacy_nulls = !array.dtype().is_nullable();
    let [.., one] = rare[..] else {
        // Nulls in leaves, which the codec puts into masks.
        if legacy_nulls || encodings(raw) >> 6 & 1 == 1 { return }
        return write_fixture("leaf-nulls", raw, ptype, len, array, oracle);
    };
    write_fixture(ENCODINGS[usize::from(one)], raw, ptype, len, array, oracle);
}

fn write_fixture(name: &str, raw: &RawNode, ptype: Option<Ptype>, len: usize, array: &ArrayRef, oracle: &Oracle) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/drumlin-codec/fixtures");
    std::fs::create_dir_all(&folder).unwrap();
    let kind = ptype.map_or("text".to_owned(), |ptype| format!("{ptype:?}").to_lowercase());
    let nulls = if array.dtype().is_nullable() { "-nulls" } else { "" };
    let path = folder.join(format!("{name}-{kind}{nulls}.bin"));
    if path.exists() {
        return;
    }
    let mut out = Vec::new();
    out.push(ptype.map_or(255, |ptype| ptype as u8));
    out.extend((len as u32).to_le_bytes());
    write_node(raw, &mut out);
    let mut context = oracle.context();
    let part = |out: &mut Vec<u8>, value: Option<&[u8]>| match value {
        None => out.push(0),
        Some(value) => {
            out.push(1);
            out.extend((value.len() as u32).to_le_bytes());
            out.extend(value);
        }
    };
    match ptype {
        Some(ptype) => {
            let values = array.clone().execute::<PrimitiveArray>(&mut context).unwrap();
            let valid = values.as_ref().validity().unwrap().execute_mask(len, &mut context).unwrap();
            let handle = values.buffer_handle().to_host_sync();
            let bytes: &[u8] = handle.as_ref();
            let width = ptype.byte_width();
            (0..len).for_each(|row| part(&mut out, valid.value(row).then(|| &bytes[row * width..(row + 1) * width])));
        }
        None => {
            let values = array.clone().execute::<VarBinViewArray>(&mut context).unwrap();
            values_of(oracle, &values).iter().for_each(|value| part(&mut out, value.as_deref()));
        }
    }
    std::fs::write(path, out).unwrap();
}

fn write_node(node: &RawNode, out: &mut Vec<u8>) {
    let bytes = |out: &mut Vec<u8>, bytes: &[u8]| {
        out.extend((bytes.len() as u32).to_le_bytes());
        out.extend(bytes);
    };
    out.push(node.encoding);
    bytes(out, &node.metadata);
    out.push(node.buffers.len() as u8);
    node.buffers.iter().for_each(|buffer| bytes(out, buffer));
    out.push(node.children.len() as u8);
    node.children.iter().for_each(|child| write_node(child, out));
}
