//! Rows moved from segments into new ones stay the same, whatever form they pass through; so do values encoded with
//! another column's scheme.

use arrow::compute::{concat, filter};

use super::*;
use crate::segment::forms::{text, wire};

/// The rows that `mask` says. Arrow's own filter counts values of no bytes by their bytes.
fn kept_of(piece: &ArrayRef, mask: &BooleanArray) -> ArrayRef {
    match piece.data_type() {
        DataType::FixedSizeBinary(0) => {
            let nulls =
                piece.nulls().map(|nulls| filter(&BooleanArray::new(nulls.inner().clone(), None), mask).unwrap());
            let nulls = nulls.map(|nulls| NullBuffer::new(nulls.as_boolean().values().clone()));
            let rows = mask.true_count();
            Arc::new(FixedSizeBinaryArray::try_new_with_len(0, Buffer::default(), nulls, rows).unwrap())
        }
        _ => filter(piece, mask).unwrap(),
    }
}

/// Rewrites random shares of random pieces, does the same to the arrays, and compares.
fn check_rewrite(rng: &mut Rng, pieces: &[ArrayRef], data_type: &DataType, what: &str) -> Vec<Segment> {
    let mut kept = Vec::new();
    let mut stored = Vec::new();
    for piece in pieces {
        let share = [0.0, 0.02, 0.5, 0.98][rng.usize(..4)];
        let mask = BooleanArray::from_iter((0..piece.len()).map(|_| Some(rng.f64() >= share)));
        kept.push(kept_of(piece, &mask));
        stored.push((encode(piece).unwrap(), (share > 0.0).then(|| mask.values().clone())));
    }
    let expected = join(&kept).unwrap();
    let rows = expected.len() as u32;
    if rows == 0 {
        return Vec::new();
    }
    let sizes = if rows > 1 && rng.bool() { vec![rows / 2, rows - rows / 2] } else { vec![rows] };
    let mut sources = Vec::new();
    for ((segment, keep), piece) in stored.iter().zip(pieces) {
        let bytes = aligned(&segment.bytes);
        sources.push(SegmentSource { bytes, rows: piece.len(), stats: &segment.stats, keep: keep.as_ref() });
    }
    let found = rewrite(&sources, data_type, &sizes, rng.bool(), Proof::Decoded)
        .unwrap_or_else(|e| panic!("{what}: {e}"))
        .unwrap();
    let mut start = 0;
    for (segment, size) in found.iter().zip(sizes) {
        let slice = expected.slice(start, size as usize);
        start += size as usize;
        let read = decode(aligned(&segment.bytes), size as usize, data_type, Form::Exact).unwrap();
        assert_eq!(&widened(&read, data_type), &slice, "{what}");
        let native = decode(aligned(&segment.bytes), size as usize, data_type, Form::Native).unwrap();
        assert_eq!(&widened(&native, data_type), &slice, "{what}");
        let stats = measure(&slice);
        assert_eq!(segment.stats.nulls, stats.nulls, "{what}");
        if segment.stats.exact {
            let same = |a: &Option<Stat>, b: &Option<Stat>| match (a, b) {
                (Some(a), Some(b)) => a.compare(b) == Some(std::cmp::Ordering::Equal),
                (a, b) => a == b,
            };
            assert!(same(&segment.stats.min, &stats.min) && same(&segment.stats.max, &stats.max), "{what}");
        } else if let (Some(min), Some(least)) = (&segment.stats.min, &stats.min) {
            assert!(min.compare(least).unwrap().is_le(), "{what}");
        }
    }
    found
}

#[test]
fn rows_that_are_all_null_can_be_moved_alone() {
    let mut rng = Rng::with_seed(22);
    for data_type in flat_types().into_iter().chain(nested_types()) {
        for shape in 0..7 {
            // Many rows of few values, so that texts are stored as dictionaries.
            let piece = random(&mut rng, &data_type, 3000, shape, 0.1);
            let mask = BooleanArray::from_iter((0..piece.len()).map(|row| Some(piece.is_null(row))));
            let rows = mask.true_count() as u32;
            let segment = encode(&piece).unwrap();
            let source = || SegmentSource {
                bytes: aligned(&segment.bytes),
                rows: piece.len(),
                stats: &segment.stats,
                keep: Some(mask.values()),
            };
            for as_codes in [false, true] {
                let what = format!("{data_type}, shape {shape}, as codes {as_codes}");
                if rows == 0 {
                    continue;
                }
                let found =
                    rewrite(&[source()], &data_type, &[rows], as_codes, Proof::Decoded).unwrap().unwrap().remove(0);
                for form in [Form::Exact, Form::Native, Form::Stored] {
                    let read = decode(aligned(&found.bytes), rows as usize, &data_type, form);
                    let read = read.unwrap_or_else(|e| panic!("{what}: {e}"));
                    assert_eq!(read.logical_null_count(), rows as usize, "{what}, {form:?}");
                }
                assert_eq!(found.stats.nulls, u64::from(rows), "{what}");
            }
        }
    }
}

/// What an earlier build wrote of a text column of nulls that was given as a dictionary.
#[test]
fn dictionaries_without_values_are_nulls() {
    let bytes = [FormTag::Dictionary as u8, 0, FormTag::Null as u8, FormTag::Null as u8];
    for data_type in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View, DataType::Binary, DataType::BinaryView] {
        for form in [Form::Exact, Form::Native, Form::Stored] {
            let read = decode(aligned(&bytes), 100, &data_type, form).unwrap();
            assert_eq!((read.len(), read.logical_null_count()), (100, 100), "{data_type} {form:?}");
        }
        let picked = decode_rows(aligned(&bytes), 100, &data_type, &[3, 50]).unwrap();
        assert_eq!((picked.len(), picked.null_count(), picked.data_type()), (2, 2, &data_type));
    }
    // Keys that are not null have no value to name.
    let damaged = [FormTag::Dictionary as u8, 0, FormTag::Plain as u8, 0, 0, 0, 0, 0];
    assert!(decode(aligned(&damaged), 3, &DataType::Utf8, Form::Exact).is_err());
}

#[test]
fn digests_tell_rows_apart_by_value_and_place_but_not_by_form() {
    let mut rng = Rng::with_seed(23);
    for data_type in flat_types().into_iter().chain(nested_types()) {
        for shape in 0..7 {
            let array = random(&mut rng, &data_type, 500, shape, 0.2);
            let what = format!("{data_type}, shape {shape}");
            let whole = RowDigest::of(&array);
            let bytes = aligned(&encode(&array).unwrap().bytes);
            for form in [Form::Exact, Form::Native, Form::Stored] {
                let read = decode(bytes.clone(), array.len(), &data_type, form).unwrap();
                assert_eq!(RowDigest::of(&read), whole, "{what}, {form:?}");
            }
            // Found piece by piece, and of some rows, it is that of these rows.
            let mask = BooleanArray::from_iter((0..array.len()).map(|_| Some(rng.bool())));
            let mut pieces = RowDigest::default();
            pieces.add(&array.slice(0, 200), Some(&mask.values().slice(0, 200)));
            pieces.add(&array.slice(200, 300), Some(&mask.values().slice(200, 300)));
            let kept = kept_of(&array, &mask);
            assert_eq!(pieces, RowDigest::of(&kept), "{what}");
            // Two rows that change places, and one that becomes another.
            let (a, b) = (rng.usize(..500), rng.usize(..500));
            let [first, second] = [a, b].map(|row| array.slice(row, 1));
            // Null is null, be it a key or the value that a key names.
            let null = first.logical_null_count() + second.logical_null_count();
            let differ = null == 1 || null == 0 && first != second;
            let mut places: Vec<u32> = (0..500).collect();
            places.swap(a, b);
            let swapped = take_rows(&array, &UInt32Array::from(places.clone())).unwrap();
            assert_eq!(RowDigest::of(&swapped) != whole, differ, "{what}: rows {a} and {b}");
            places[a] = a as u32;
            let replaced = take_rows(&array, &UInt32Array::from(places)).unwrap();
            assert_eq!(RowDigest::of(&replaced) != whole, differ, "{what}: row {b} as {a}");
        }
    }
}

#[test]
fn rows_of_every_type_can_be_moved() {
    let mut rng = Rng::with_seed(21);
    for data_type in flat_types().into_iter().chain(nested_types()) {
        for shape in 0..7 {
            for round in 0..3 {
                let count = rng.usize(1..4);
                let pieces: Vec<ArrayRef> = (0..count)
                    .map(|_| {
                        let (rows, share) = ([3, 200, 3000][rng.usize(..3)], [0.0, 0.2][rng.usize(..2)]);
                        let other = if round == 2 { rng.u8(..7) } else { shape };
                        random(&mut rng, &data_type, rows, other, share)
                    })
                    .collect();
                check_rewrite(&mut rng, &pieces, &data_type, &format!("{data_type}, shape {shape}, round {round}"));
            }
        }
    }
}

/// Long texts with a vocabulary of their own.
fn text(rng: &mut Rng, rows: usize, words: &str, nulls: bool) -> ArrayRef {
    let words: Vec<String> = (0..300).map(|n| format!("{words}{n}")).collect();
    let row = |rng: &mut Rng| (0..rng.usize(2..7)).map(|_| &*words[rng.usize(..300)]).collect::<Vec<_>>().join(" ");
    Arc::new((0..rows).map(|_| (!nulls || rng.u8(..9) > 0).then(|| row(rng))).collect::<StringArray>())
}

#[test]
fn long_texts_move_as_codes_also_those_of_different_dictionaries() {
    let mut rng = Rng::with_seed(22);
    let two_dictionaries = |segment: &Segment| {
        let mut input = wire::Reader::new(aligned(&segment.bytes));
        let rows = 30_000;
        text::read_codes(&mut input, rows).ok().flatten().map(|parts| parts.len())
    };
    for round in 0..12 {
        let nulls = round % 3 == 1;
        let mut pieces = vec![text(&mut rng, 15_000, "alpha", nulls), text(&mut rng, 15_000, "beta", round % 3 == 2)];
        if round % 4 == 0 {
            // More dictionaries than one segment may have.
            pieces.extend((0..4).map(|n| text(&mut rng, 5_000, &format!("w{n}"), nulls)));
        }
        check_rewrite(&mut rng, &pieces, &DataType::Utf8, &format!("round {round}"));
    }
    let pieces = [text(&mut rng, 15_000, "alpha", false), text(&mut rng, 15_000, "beta", false)];
    let stored: Vec<Segment> = pieces.iter().map(|piece| encode(piece).unwrap()).collect();
    let source = |segment: &Segment| aligned(&segment.bytes);
    let sources: Vec<SegmentSource> = stored
        .iter()
        .map(|segment| SegmentSource { bytes: source(segment), rows: 15_000, stats: &segment.stats, keep: None })
        .collect();
    let joined = rewrite(&sources, &DataType::Utf8, &[30_000], true, Proof::Decoded).unwrap().unwrap().remove(0);
    assert_eq!(two_dictionaries(&joined), Some(2));
    // A segment with two dictionaries can be moved again.
    let keep = (0..30_000).map(|row| row % 3 > 0).collect::<arrow::buffer::BooleanBuffer>();
    let again = SegmentSource { bytes: source(&joined), rows: 30_000, stats: &joined.stats, keep: Some(&keep) };
    let moved = rewrite(&[again], &DataType::Utf8, &[20_000], true, Proof::Decoded).unwrap().unwrap().remove(0);
    let refs: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
    let expected = filter(&concat(&refs).unwrap(), &BooleanArray::new(keep.clone(), None)).unwrap();
    assert_eq!(&decode(aligned(&moved.bytes), 20_000, &DataType::Utf8, Form::Exact).unwrap(), &expected);
    assert!(moved.bytes.len() < joined.bytes.len() * 3 / 4);
}

#[test]
fn a_scheme_is_used_while_it_holds_up() {
    let mut rng = Rng::with_seed(23);
    for data_type in flat_types() {
        for shape in 0..7 {
            let first = random(&mut rng, &data_type, 6000, shape, 0.1);
            let (_, scheme) = encode_like(&first, &data_type, &Scheme::default()).unwrap();
            for other in 0..7 {
                let second = random(&mut rng, &data_type, 5000, other, 0.1);
                let what = format!("{data_type}, {shape} then {other}");
                let (segment, _) = encode_like(&second, &data_type, &scheme).unwrap();
                let read = decode(aligned(&segment.bytes), 5000, &data_type, Form::Exact).unwrap();
                assert_eq!(&read, &second, "{what}");
                if other == shape {
                    let searched = encode(&second).unwrap().bytes.len();
                    let bytes = segment.bytes.len();
                    assert!(bytes <= searched * 5 / 4 + 512, "{what}: {bytes} bytes, searched {searched}");
                }
            }
        }
    }
    // What was found on few rows says nothing about many.
    let few: ArrayRef = Arc::new(Int64Array::from_iter_values((0..10).map(|_| rng.i64(..))));
    let many: ArrayRef = Arc::new(Int64Array::from_iter_values((0..50_000).map(|i| i / 1000)));
    let (_, scheme) = encode_like(&few, &DataType::Int64, &Scheme::default()).unwrap();
    assert_eq!(encode_like(&many, &DataType::Int64, &scheme).unwrap().0, encode(&many).unwrap());
}

#[test]
fn strings_that_arrow_could_not_give_back_are_refused() {
    // 3 GB expanded, with only one of the values stored.
    let long = StringArray::from(vec!["x".repeat(1 << 20)]);
    let keys = UInt8Array::from(vec![0; 3000]);
    let keyed: ArrayRef = Arc::new(DictionaryArray::new(keys, Arc::new(long.clone())));
    let refused = encode_like(&keyed, &DataType::Utf8, &Scheme::default()).unwrap_err();
    assert!(refused.message().contains("3145728000 bytes"), "{refused}");
    let views: ArrayRef = cast(&keyed, &DataType::Utf8View).unwrap();
    assert!(encode(&views).unwrap_err().message().contains("expected less than 2 GiB"));
    assert!(encode(&views.slice(0, 1000)).is_ok());
}
