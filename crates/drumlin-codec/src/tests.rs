//! What is written is read again: whole, in part, row by row, and tested; and damage is refused.

use bytes::Bytes;
use fastrand::Rng;

use crate::node::*;
use crate::*;

const LIMIT: usize = 1 << 24;

fn limit() -> Limit {
    Limit::new(LIMIT, 1 << 28)
}

fn words<W: Word>(memory: Memory, len: usize) -> Vec<W> {
    let bytes = match memory {
        Memory::Shared(bytes) => bytes.to_vec(),
        Memory::U8(values) => values,
        Memory::U16(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Memory::U32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Memory::U64(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
    };
    assert_eq!(bytes.len(), len * W::BYTES);
    let mut all = vec![W::default(); len];
    W::load_all(&bytes, &mut all);
    all
}

const SEARCHES: [Search; 6] = [
    Search { encodings: None, exponents: None, effort: Effort::Balanced },
    Search { encodings: None, exponents: None, effort: Effort::Small },
    Search { encodings: None, exponents: None, effort: Effort::Fast },
    Search { encodings: Some(STEPS_BIT), exponents: None, effort: Effort::Balanced },
    Search { encodings: Some(1 << DICT), exponents: None, effort: Effort::Balanced },
    Search { encodings: Some(1 << ALP), exponents: Some(Exponents { e: 14, f: 12 }), effort: Effort::Balanced },
];

/// Numbers of a shape.
fn shaped<W: Word>(rng: &mut Rng, shape: u8, len: usize) -> Vec<W> {
    let some = rng.u64(..);
    let mut last = some >> 20;
    (0..len)
        .map(|row| {
            W::low(match shape {
                0 => some,
                1 => some.wrapping_add(row as u64 * 3),
                2 => (row / 50) as u64 * 7,
                3 => (rng.i64(-20..100)) as u64,
                4 => 1_700_000_000_000 + rng.u64(0..1000) * 1000,
                5 if rng.u8(..20) == 0 => rng.u64(..),
                5 => 0,
                6 => {
                    last += rng.u64(..9);
                    last
                }
                7 => [3, 99, some, 1 << 40][rng.usize(..4)],
                8 if rng.u8(..100) == 0 => 0,
                8 => 1_000_000_000 + rng.u64(..500),
                9 => ((rng.i64(-5_000_000..5_000_000)) as f64 / 100.0).to_bits(),
                10 => ((rng.i32(-50_000..50_000)) as f32 / 10.0).to_bits().into(),
                // Exceptions in bursts, with exceptions among the distances of their rows, and so on.
                13 if (row / (1 << rng.u32(1..13))).is_multiple_of(7) => rng.u64(..) >> rng.u32(..64),
                13 => row as u64 % 3,
                11 => (rng.f64() * 1e3).to_bits(),
                12 if rng.u8(..9) == 0 => rng.u64(..),
                12 => ((rng.i64(0..50)) as f64 / 4.0).to_bits(),
                // Runs, most of which are short.
                15 => {
                    if rng.u8(..5) == 0 {
                        last = rng.u64(..);
                    }
                    last
                }
                _ => rng.u64(..),
            })
        })
        .collect()
}

fn round_trip<W: Word>(
    rng: &mut Rng,
    ptype: Ptype,
    values: &[W],
    nulls: Option<&Bits>,
    search: &Search,
    seen: &mut u64,
) {
    let built = numbers(values, ptype, nulls, search);
    let told = || format!("{ptype:?}, {} rows, {search:?}: {}", values.len(), shown(&built));
    *seen |= built.encodings();
    assert!(built.depth() < 12, "{}", told());
    let raw = built.raw();
    let limit = limit();
    let read =
        || Column::<W>::read(&raw, ptype, values.len(), &limit).unwrap_or_else(|error| panic!("{}: {error}", told()));
    let column = read();
    let (memory, found) = column.clone().decode().unwrap();
    let decoded = words::<W>(memory, values.len());
    let valid = |row: usize| nulls.is_none_or(|nulls| nulls.get(row));
    for row in 0..values.len() {
        assert_eq!(found.as_ref().is_none_or(|found| found.get(row)), valid(row), "{}, row {row}", told());
        assert!(!valid(row) || decoded[row] == values[row], "{}, row {row}", told());
    }
    if values.is_empty() {
        return;
    }
    let mut picked: Vec<u32> = (0..rng.usize(1..40)).map(|_| rng.u32(..values.len() as u32)).collect();
    let (memory, _) = column.pick(&picked).unwrap();
    let some = words::<W>(memory, picked.len());
    picked.iter().zip(some).for_each(|(row, value)| assert_eq!(value, decoded[*row as usize], "{}, row {row}", told()));
    picked.sort_unstable();
    let (from, len) = (picked[0] as usize, (picked[picked.len() - 1] - picked[0]) as usize);
    let (memory, _) = column.decode_range(from, len).unwrap();
    assert_eq!(words::<W>(memory, len), decoded[from..from + len], "{}", told());
    let (low, span) = (decoded[rng.usize(..decoded.len())], W::low(rng.u64(..) >> rng.u32(..64)));
    let bits = column.test(low, span).unwrap();
    for (row, value) in decoded.iter().enumerate() {
        let found = bits[row / 8] >> (row % 8) & 1 == 1;
        assert_eq!(found, value.minus(low) <= span, "{}, row {row}", told());
    }
}

fn shown(built: &Built) -> String {
    let name = built.raw().name();
    let children: Vec<String> = built.children.iter().map(shown).collect();
    if children.is_empty() { name.to_owned() } else { format!("{name}({})", children.join(", ")) }
}

#[test]
fn numbers_of_every_shape_round_trip() {
    let mut rng = Rng::with_seed(5);
    let mut seen = 0;
    for shape in 0..16 {
        for len in [1, 2, 3, 9, 100, 600, 1024, 1025, 5000, 20_000] {
            let nulls = rng.bool().then(|| Bits::collect(len, |row| row % 3 != 0));
            for search in &SEARCHES {
                let nulls = nulls.as_ref();
                for ptype in [Ptype::U8, Ptype::I8] {
                    round_trip(
                        &mut rng,
                        ptype,
                        &shaped::<u8>(&mut Rng::with_seed(1), shape, len),
                        nulls,
                        search,
                        &mut seen,
                    );
                }
                for ptype in [Ptype::U16, Ptype::I16, Ptype::F16] {
                    round_trip(
                        &mut rng,
                        ptype,
                        &shaped::<u16>(&mut Rng::with_seed(1), shape, len),
                        nulls,
                        search,
                        &mut seen,
                    );
                }
                for ptype in [Ptype::U32, Ptype::I32, Ptype::F32] {
                    round_trip(
                        &mut rng,
                        ptype,
                        &shaped::<u32>(&mut Rng::with_seed(1), shape, len),
                        nulls,
                        search,
                        &mut seen,
                    );
                }
                for ptype in [Ptype::U64, Ptype::I64, Ptype::F64] {
                    round_trip(
                        &mut rng,
                        ptype,
                        &shaped::<u64>(&mut Rng::with_seed(1), shape, len),
                        nulls,
                        search,
                        &mut seen,
                    );
                }
            }
        }
    }
    for encoding in [PRIMITIVE, BOOL, CONSTANT, DICT, MASKED, SEQUENCE, RUNEND, ALP, ALPRD, BITPACKED, FOR] {
        assert!(seen >> encoding & 1 == 1, "nothing was encoded as {}", ENCODINGS[usize::from(encoding)]);
    }
    assert!(seen & STEPS_BIT != 0);
}

#[test]
fn numbers_less_a_base_may_be_less_another() {
    // Nobody writes it.
    let values: Vec<u32> = (0..2000).map(|row| 70_000 + row % 900 * (1 + row % 2)).collect();
    let below = numbers(&values, Ptype::U32, None, &Search::default()).raw();
    assert_eq!(below.encoding, FOR);
    let metadata = Bytes::from(write::built::scalar(5_u32, Ptype::U32));
    let raw = RawNode { encoding: FOR, metadata, buffers: Vec::new(), children: vec![below] };
    let limit = limit();
    let column = Column::<u32>::read(&raw, Ptype::U32, values.len(), &limit).unwrap();
    let picked = words::<u32>(column.pick(&[0, 1999]).unwrap().0, 2);
    assert_eq!(picked, [values[0] + 5, values[1999] + 5]);
    let (memory, _) = column.decode().unwrap();
    assert_eq!(words::<u32>(memory, values.len()), values.iter().map(|value| value + 5).collect::<Vec<_>>());
}

#[test]
fn forms_are_as_small_as_they_should_be() {
    let mut rng = Rng::with_seed(3);
    let n = 122_880;
    let size = |values: &[u64], ptype| {
        let built = numbers(values, ptype, None, &Search::default());
        (built.size() * 8 / n, shown(&built))
    };
    let of = |rng: &mut Rng, shape| shaped::<u64>(rng, shape, n);
    assert!(size(&of(&mut rng, 0), Ptype::I64).0 == 0);
    assert!(size(&of(&mut rng, 1), Ptype::I64).0 == 0);
    assert!(size(&of(&mut rng, 2), Ptype::I64).0 <= 1);
    assert!(size(&of(&mut rng, 3), Ptype::I64).0 <= 7);
    // A few values in the middle of far ones.
    let (bits, told) = size(&of(&mut rng, 8), Ptype::I64);
    assert!(bits <= 10, "{bits}: {told}");
    let (bits, told) = size(&of(&mut rng, 5), Ptype::I64);
    assert!(bits <= 5, "{bits}: {told}");
    let (bits, told) = size(&of(&mut rng, 6), Ptype::I64);
    assert!(bits <= 4, "{bits}: {told}");
    let (bits, told) = size(&of(&mut rng, 9), Ptype::F64);
    assert!(bits <= 24, "{bits}: {told}");
}

fn text_column(built: &Built, len: usize) -> TextColumn {
    let limit = limit();
    TextColumn::read(&built.raw(), len, &limit).unwrap_or_else(|error| panic!("{}: {error}", shown(built)))
}

fn check_texts(rng: &mut Rng, built: &Built, values: &[&[u8]], nulls: Option<&Bits>) {
    let told = || shown(built);
    let column = text_column(built, values.len());
    let valid = |row: usize| nulls.is_none_or(|nulls| nulls.get(row));
    let plain = column.decode().unwrap();
    let text = |plain: &PlainTexts, row: usize| {
        plain.bytes[plain.offsets[row] as usize..plain.offsets[row + 1] as usize].to_vec()
    };
    for (row, value) in values.iter().enumerate() {
        assert_eq!(column.nulls.as_ref().is_none_or(|nulls| nulls.get(row)), valid(row), "{}, row {row}", told());
        assert!(!valid(row) || text(&plain, row) == *value, "{}, row {row}", told());
    }
    let picked: Vec<u32> = (0..rng.usize(1..40)).map(|_| rng.u32(..values.len() as u32)).collect();
    let (some, _) = column.pick(&picked).unwrap();
    for (at, row) in picked.iter().enumerate() {
        let row = *row as usize;
        assert!(!valid(row) || text(&some, at) == values[row], "{}, row {row}", told());
    }
    if let Some((places, own)) = column.dictionary().unwrap() {
        let own = own.decode().unwrap();
        let places: Vec<u32> = match places {
            Memory::U8(places) => places.into_iter().map(u32::from).collect(),
            Memory::U16(places) => places.into_iter().map(u32::from).collect(),
            Memory::U32(places) => places,
            other => panic!("{other:?}"),
        };
        for (row, place) in places.iter().enumerate() {
            assert!(!valid(row) || text(&own, *place as usize) == values[row], "{}, row {row}", told());
        }
    }
}

#[test]
fn texts_of_every_shape_round_trip() {
    const WORDS: [&str; 6] = ["furiously ", "ironic ", "deposits ", "é", "日本", ""];
    let mut rng = Rng::with_seed(11);
    let mut seen = 0;
    for shape in 0..5 {
        for len in [1, 2, 70, 1000, 6000] {
            let made: Vec<String> = (0..len)
                .map(|row| match shape {
                    0 => "same".to_owned(),
                    1 => format!("https://example.org/item/{row}"),
                    2 => WORDS[rng.usize(..6)].to_owned(),
                    3 => (0..rng.usize(..12)).map(|_| WORDS[rng.usize(..6)]).collect(),
                    _ => format!("value number {}", rng.usize(..len / 4 + 1)),
                })
                .collect();
            let nulls = (shape > 0 && rng.bool()).then(|| Bits::collect(len, |row| row % 5 != 1));
            let valid = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.get(row));
            let values: Vec<&[u8]> =
                made.iter().enumerate().map(|(row, text)| if valid(row) { text.as_bytes() } else { &[] }).collect();
            for search in &SEARCHES {
                for symbols in [true, false] {
                    if let Some(built) = texts(&values, true, nulls.as_ref(), search, symbols) {
                        seen |= built.encodings();
                        check_texts(&mut rng, &built, &values, nulls.as_ref());
                    }
                }
            }
            let parser = onpair::Parser::train_rows(&values[..], onpair::DEFAULT_CONFIG);
            let (mut codes, mut offsets) = (Vec::new(), Vec::new());
            parser.parse_rows_into(&values[..], &mut codes, &mut offsets);
            let lengths: Vec<u32> = values.iter().map(|value| value.len() as u32).collect();
            let symbols = Bytes::copy_from_slice(parser.dict.bytes());
            let coded = CodedTexts {
                symbols: &symbols,
                symbol_offsets: parser.dict.offsets(),
                codes: &codes,
                offsets: &offsets,
                lengths: &lengths,
            };
            let built = coded.build(nulls.as_ref());
            seen |= built.encodings();
            check_texts(&mut rng, &built, &values, nulls.as_ref());
            if nulls.is_none() {
                let twice: Vec<&[u8]> = values.iter().chain(&values).copied().collect();
                let both = chunked(vec![built.clone(), built]);
                seen |= both.encodings();
                check_texts(&mut rng, &both, &twice, None);
            }
        }
    }
    for encoding in [VARBIN, CONSTANT, DICT, FSST, ONPAIR, CHUNKED] {
        assert!(seen >> encoding & 1 == 1, "nothing was encoded as {}", ENCODINGS[usize::from(encoding)]);
    }
}

/// Changes something somewhere in a tree.
fn damage(rng: &mut Rng, node: &mut RawNode) {
    if !node.children.is_empty() && rng.u8(..3) > 0 {
        let at = rng.usize(..node.children.len());
        return damage(rng, &mut node.children[at]);
    }
    let change = |rng: &mut Rng, bytes: &Bytes| {
        let mut bytes = bytes.to_vec();
        match rng.u8(..3) {
            0 => bytes.truncate(rng.usize(..bytes.len() + 1)),
            1 if !bytes.is_empty() => {
                let at = rng.usize(..bytes.len());
                bytes[at] ^= 1 << rng.u8(..8);
            }
            _ => bytes.insert(rng.usize(..bytes.len() + 1), rng.u8(..)),
        }
        Bytes::from(bytes)
    };
    match rng.u8(..5) {
        0 => node.encoding = rng.u8(..21),
        1 => node.metadata = change(rng, &node.metadata),
        2 if !node.buffers.is_empty() => {
            let at = rng.usize(..node.buffers.len());
            node.buffers[at] = change(rng, &node.buffers[at]);
        }
        3 if !node.children.is_empty() => {
            node.children.swap_remove(rng.usize(..node.children.len()));
        }
        _ => {
            let same = node.children.first().cloned();
            node.children.extend(same);
        }
    }
}

#[test]
fn damage_is_refused_or_gives_other_values_but_never_panics() {
    let mut rng = Rng::with_seed(17);
    let mut refused = 0;
    for round in 0..6000 {
        let len = rng.usize(1..3000);
        let values = shaped::<u64>(&mut rng, (round % 15) as u8, len);
        let nulls = rng.bool().then(|| Bits::collect(len, |row| row % 7 != 0));
        let ptype = [Ptype::U64, Ptype::I64, Ptype::F64][rng.usize(..3)];
        let mut raw = numbers(&values, ptype, nulls.as_ref(), &SEARCHES[rng.usize(..6)]).raw();
        (0..rng.usize(1..4)).for_each(|_| damage(&mut rng, &mut raw));
        let limit = limit();
        match Column::<u64>::read(&raw, ptype, len, &limit) {
            Err(_) => refused += 1,
            Ok(column) => {
                let rows: Vec<u32> = (0..10).map(|_| rng.u32(..len as u32)).collect();
                let _ = (column.pick(&rows), column.test(1, 5), column.decode_range(0, len), column.decode());
            }
        }
        let texts_of: Vec<String> = (0..len.min(300)).map(|row| format!("text {} of some", row % 60)).collect();
        let values: Vec<&[u8]> = texts_of.iter().map(|text| text.as_bytes()).collect();
        let Some(built) = texts(&values, true, None, &SEARCHES[rng.usize(..2)], rng.bool()) else { continue };
        let mut raw = built.raw();
        (0..rng.usize(1..4)).for_each(|_| damage(&mut rng, &mut raw));
        let limit = Limit::new(1 << 20, 1 << 24);
        if let Ok(column) = TextColumn::read(&raw, values.len(), &limit) {
            let _ = (column.decode(), column.dictionary(), column.pick(&[0, values.len() as u32 - 1]));
        }
    }
    assert!(refused > 1000);
}

/// What Vortex wrote, in encodings that this crate does not write: files that `oracle/` made, of a type, the rows, the nodes, and the
/// values.
#[test]
fn what_an_older_writer_wrote_is_read() {
    fn part<'a>(bytes: &mut &'a [u8], len: usize) -> &'a [u8] {
        let (part, rest) = bytes.split_at(len);
        *bytes = rest;
        part
    }
    fn sized<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
        let len = u32::load(part(bytes, 4)) as usize;
        part(bytes, len)
    }
    fn node(bytes: &mut &[u8]) -> RawNode {
        let encoding = part(bytes, 1)[0];
        let metadata = Bytes::copy_from_slice(sized(bytes));
        let buffers = (0..part(bytes, 1)[0]).map(|_| Bytes::copy_from_slice(sized(bytes))).collect();
        let children = (0..part(bytes, 1)[0]).map(|_| node(bytes)).collect();
        RawNode { encoding, metadata, buffers, children }
    }
    fn check<W: Word>(raw: &RawNode, ptype: Ptype, values: &[Option<Vec<u8>>], name: &str) {
        let limit = limit();
        let column =
            Column::<W>::read(raw, ptype, values.len(), &limit).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (memory, nulls) = column.decode().unwrap();
        let decoded = words::<W>(memory, values.len());
        for (row, value) in values.iter().enumerate() {
            assert_eq!(nulls.as_ref().is_none_or(|nulls| nulls.get(row)), value.is_some(), "{name}, row {row}");
            assert!(value.as_ref().is_none_or(|value| W::load(value) == decoded[row]), "{name}, row {row}");
        }
    }
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut seen = 0_u64;
    fn encodings(node: &RawNode) -> u64 {
        node.children.iter().fold(bit_of(node.encoding), |all, child| all | encodings(child))
    }
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.display().to_string();
        #[allow(clippy::disallowed_methods, reason = "a test reads its own files")]
        let all = std::fs::read(&path).unwrap();
        let mut bytes = &all[..];
        let kind = part(&mut bytes, 1)[0];
        let len = u32::load(part(&mut bytes, 4)) as usize;
        let raw = node(&mut bytes);
        seen |= encodings(&raw);
        let values: Vec<Option<Vec<u8>>> =
            (0..len).map(|_| (part(&mut bytes, 1)[0] == 1).then(|| sized(&mut bytes).to_vec())).collect();
        match Ptype::of(kind.into()) {
            Some(ptype) => match ptype.byte_width() {
                1 => check::<u8>(&raw, ptype, &values, &name),
                2 => check::<u16>(&raw, ptype, &values, &name),
                4 => check::<u32>(&raw, ptype, &values, &name),
                _ => check::<u64>(&raw, ptype, &values, &name),
            },
            None => {
                let column = text_column_of(&raw, len);
                let plain = column.decode().unwrap();
                for (row, value) in values.iter().enumerate() {
                    let own = &plain.bytes[plain.offsets[row] as usize..plain.offsets[row + 1] as usize];
                    assert_eq!(
                        column.nulls.as_ref().is_none_or(|nulls| nulls.get(row)),
                        value.is_some(),
                        "{name}, row {row}"
                    );
                    assert!(value.as_ref().is_none_or(|value| value == own), "{name}, row {row}");
                }
            }
        }
    }
    for encoding in [VARBINVIEW, SPARSE, ZIGZAG, RLE, MASKED] {
        assert!(seen >> encoding & 1 == 1, "no file has {}", ENCODINGS[usize::from(encoding)]);
    }
}

fn text_column_of(raw: &RawNode, len: usize) -> TextColumn {
    let limit = limit();
    TextColumn::read(raw, len, &limit).unwrap_or_else(|error| panic!("{error}"))
}
