//! The contract of segments: one list of checks over every encoding and every Arrow type, which notices each rule that is broken.
//!
//! The rules: what was encoded is decoded to the same values, bit for bit, and the same type, wherever in memory it lay and by
//! any scheme. Picked rows are those of the whole. The same column gives the same bytes. Bytes that are
//! cut, longer or damaged give an error or an array that is sound, never a panic.

mod broken;
mod codec;
mod columns;
mod met;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow::array::{Array, ArrayRef, new_empty_array, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use broken::RULES;
use bytes::Bytes;
use codec::{Codec, REAL};
use columns::{SHAPES, Shape, column, dictionaries, extremes, flat_types, nested_types, others};
use drumlin::segment::{Compression, Form, Scheme, Segment, encode, encode_like};
use drumlin::{ErrorKind, Result};
use fastrand::Rng;

const CHECKS: [(&str, fn(&Codec)); 9] = [
    ("columns of every type come back", every_type),
    ("nothing and nulls come back", nothing),
    ("slices come back", slices),
    ("extremes come back bit for bit", extreme_values),
    ("dictionaries of every size come back", every_dictionary),
    ("other schemes give the same values", schemes),
    ("picked rows are those of the whole", picked),
    ("the same column gives the same bytes", same_bytes),
    ("damage is an error or an array", damage),
];

/// Types that are tested with many rows, too.
const LONG: [DataType; 5] =
    [DataType::Int64, DataType::UInt16, DataType::Float64, DataType::Utf8, DataType::BinaryView];

fn all_types() -> Vec<DataType> {
    flat_types().into_iter().chain(nested_types()).collect()
}

fn bytes_of(segment: &Segment) -> Bytes {
    Bytes::copy_from_slice(&segment.bytes)
}

fn sound(array: &ArrayRef, rows: usize, data_type: &DataType, what: &str) {
    assert_eq!((array.len(), array.data_type()), (rows, data_type), "{what}");
    array.to_data().validate_full().unwrap_or_else(|e| panic!("{what}: {e}"));
}

fn comes_back(codec: &Codec, array: &ArrayRef, what: &str) -> Segment {
    let (rows, data_type) = (array.len(), array.data_type());
    let segment = (codec.encode)(array).unwrap_or_else(|e| panic!("{what}: {e}"));
    is_of(codec, &segment, array, what);
    // A null value of a dictionary counts, and so does each row of the null type.
    if !matches!(data_type, DataType::Union(..) | DataType::RunEndEncoded(..)) {
        assert_eq!(segment.stats.nulls, array.logical_null_count() as u64, "{what}");
    }
    // At any address.
    let shifted = Bytes::from([&[0], &segment.bytes[..]].concat()).slice(1..);
    let shifted = (codec.decode)(shifted, rows, data_type, Form::Exact).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(&shifted == array, "{what}, shifted");
    segment
}

fn is_of(codec: &Codec, segment: &Segment, array: &ArrayRef, what: &str) {
    let exact = (codec.decode)(bytes_of(segment), array.len(), array.data_type(), Form::Exact);
    let exact = exact.unwrap_or_else(|e| panic!("{what}: {e}"));
    sound(&exact, array.len(), array.data_type(), what);
    // Arrow compares floats bit by bit.
    assert!(&exact == array, "{what}");
    for form in [Form::Native, Form::Stored] {
        let cheap = (codec.decode)(bytes_of(segment), array.len(), array.data_type(), form);
        let cheap = cheap.unwrap_or_else(|e| panic!("{what}: {e}"));
        sound(&cheap, array.len(), cheap.data_type(), what);
        let same = cheap.data_type() == array.data_type();
        let widened = if same { cheap } else { cast(&cheap, array.data_type()).unwrap() };
        assert!(&widened == array, "{what}, {form:?}");
    }
}

fn every_type(codec: &Codec) {
    let mut rng = Rng::with_seed(1);
    for data_type in all_types() {
        for shape in SHAPES {
            for (rows, nulls) in [(1, false), (2, true), (9, true), (100, false), (1030, false), (1030, true)] {
                let array = column(&mut rng, &data_type, shape, rows, nulls);
                comes_back(codec, &array, &format!("{data_type}, {shape:?}, {rows} rows, nulls {nulls}"));
            }
        }
    }
    // What has no form of its own.
    for array in others() {
        comes_back(codec, &array, &array.data_type().to_string());
    }
    // Rows enough for long texts and for dictionaries of many values.
    for data_type in LONG {
        for shape in SHAPES {
            for nulls in [false, true] {
                let array = column(&mut rng, &data_type, shape, 20_000, nulls);
                comes_back(codec, &array, &format!("{data_type}, {shape:?}, 20,000 rows, nulls {nulls}"));
            }
        }
    }
}

fn nothing(codec: &Codec) {
    let mut rng = Rng::with_seed(2);
    for data_type in all_types() {
        comes_back(codec, &new_empty_array(&data_type), &format!("{data_type}, no rows"));
        for rows in [1, 2, 8, 100, 1030] {
            let nulls = new_null_array(&data_type, rows);
            comes_back(codec, &nulls, &format!("{data_type}, {rows} nulls"));
            comes_back(codec, &nulls.slice(rows / 2, rows / 3), &format!("{data_type}, slice of {rows} nulls"));
        }
        // One value among nulls, and one null among values.
        let one = column(&mut rng, &data_type, Shape::Few, 1, false);
        for (many, few) in [(new_null_array(&data_type, 70), one.clone()), (one, new_null_array(&data_type, 1))] {
            let parts: Vec<&dyn Array> = vec![&*many; 70 / many.len()];
            // Dictionaries that are put together may outgrow their keys.
            let Ok(parts) = arrow::compute::concat(&parts) else { continue };
            let Ok(array) = arrow::compute::concat(&[&*parts, &*few, &*parts]) else { continue };
            comes_back(codec, &array, &format!("{data_type}, one among others"));
        }
    }
}

fn slices(codec: &Codec) {
    let mut rng = Rng::with_seed(3);
    for data_type in all_types() {
        for shape in [Shape::Equal, Shape::Ascending, Shape::Few, Shape::Random] {
            let array = column(&mut rng, &data_type, shape, 400, true);
            for (from, rows) in [(1, 1), (3, 0), (7, 100), (8, 64), (13, 387), (399, 1), (400, 0)] {
                let slice = array.slice(from, rows);
                let what = format!("{data_type}, {shape:?}, {rows} rows from {from}");
                comes_back(codec, &slice, &what);
                // A slice of a slice.
                comes_back(codec, &slice.slice(rows / 3, rows / 2), &what);
            }
        }
    }
}

fn extreme_values(codec: &Codec) {
    for data_type in flat_types() {
        let array = extremes(&data_type);
        let (rows, what) = (array.len(), format!("{data_type}, extremes"));
        // All together, and each by itself, alone and repeated.
        let segment = (codec.encode)(&array).unwrap();
        let exact = (codec.decode)(bytes_of(&segment), rows, &data_type, Form::Exact).unwrap();
        sound(&exact, rows, &data_type, &what);
        assert!(exact.as_ref() == array.as_ref(), "{what}");
        for row in 0..rows {
            let one = array.slice(row, 1);
            let long = (codec.encode)(&one).unwrap().bytes.len() > 1000;
            for times in [1, if long { 2 } else { 700 }] {
                let parts: Vec<&dyn Array> = vec![&*one; times];
                let repeated = arrow::compute::concat(&parts).unwrap();
                let segment = (codec.encode)(&repeated).unwrap();
                let exact = (codec.decode)(bytes_of(&segment), times, &data_type, Form::Exact).unwrap();
                assert!(exact.as_ref() == repeated.as_ref(), "{what}, row {row} {times} times");
            }
        }
    }
}

fn every_dictionary(codec: &Codec) {
    for (what, array) in dictionaries() {
        comes_back(codec, &array, &what);
        comes_back(codec, &array.slice(1, array.len() / 2), &format!("slice of {what}"));
    }
}

fn schemes(codec: &Codec) {
    let mut rng = Rng::with_seed(4);
    for data_type in all_types() {
        let columns: Vec<(Shape, ArrayRef)> =
            SHAPES.map(|shape| (shape, column(&mut rng, &data_type, shape, 1200, shape == Shape::Few))).into();
        let others = [Compression::Small, Compression::Fast].map(|other| Scheme::default().with_compression(other));
        let mut found = vec![Scheme::default()];
        found.extend(others);
        for (shape, array) in &columns {
            let (segment, scheme) = (codec.encode_like)(array, &data_type, &Scheme::default()).unwrap();
            is_of(codec, &segment, array, &format!("{data_type}, {shape:?}"));
            found.push(scheme);
        }
        // What was found on one column is tried on all others.
        for (at, scheme) in found.iter().enumerate() {
            for (shape, array) in &columns {
                let what = format!("{data_type}, {shape:?}, by scheme {at}");
                let (segment, again) = (codec.encode_like)(array, &data_type, scheme).unwrap();
                is_of(codec, &segment, array, &what);
                let (segment, _) = (codec.encode_like)(array, &data_type, &again).unwrap();
                is_of(codec, &segment, array, &what);
            }
        }
    }
}

fn picked(codec: &Codec) {
    let mut rng = Rng::with_seed(5);
    for data_type in all_types() {
        for (shape, rows) in SHAPES.into_iter().map(|shape| (shape, 1500)).chain([(Shape::Random, 1), (Shape::Few, 40)])
        {
            let array = column(&mut rng, &data_type, shape, rows, shape != Shape::Equal);
            let bytes = bytes_of(&(codec.encode)(&array).unwrap());
            let (n, last) = (rows as u32, rows as u32 - 1);
            let mut picks = vec![vec![], vec![0], vec![last], (0..n).collect(), (0..n).step_by(7).collect()];
            picks.push((n / 3..(n / 3 + 30).min(n)).collect());
            picks.extend((1..6).map(|count| (0..count * 3).map(|_| rng.u32(..n)).collect()));
            for mut picks in picks {
                picks.sort_unstable();
                picks.dedup();
                let what = format!("{data_type}, {shape:?}, rows {picks:?} of {rows}");
                let found = (codec.decode_rows)(bytes.clone(), rows, &data_type, &picks);
                let found = found.unwrap_or_else(|e| panic!("{what}: {e}"));
                sound(&found, picks.len(), &data_type, &what);
                for (at, row) in picks.iter().enumerate() {
                    assert!(found.slice(at, 1) == array.slice(*row as usize, 1), "{what}: row {row}");
                }
            }
            for beyond in [vec![n], vec![0, n], vec![u32::MAX]] {
                let e = (codec.decode_rows)(bytes.clone(), rows, &data_type, &beyond).unwrap_err();
                assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
            }
        }
    }
}

fn same_bytes(codec: &Codec) {
    let mut rng = Rng::with_seed(6);
    for data_type in all_types() {
        for shape in [Shape::Ascending, Shape::Few, Shape::Random] {
            let array = column(&mut rng, &data_type, shape, 900, true);
            for array in [array.clone(), array.slice(5, 703), array.slice(8, 801), array.slice(64, 9)] {
                let what = format!("{data_type}, {shape:?}, {} rows", array.len());
                let segment = (codec.encode)(&array).unwrap();
                assert!((codec.encode)(&array).unwrap() == segment, "{what}");
                // Neither where it lay nor what lay under its nulls shows.
                let copy = (codec.decode)(bytes_of(&segment), array.len(), &data_type, Form::Exact).unwrap();
                let again = (codec.encode)(&copy).unwrap();
                let differ = again.bytes.iter().zip(&segment.bytes).position(|(a, b)| a != b);
                assert!(again == segment, "{what}, of {} bytes the first other is {differ:?}", segment.bytes.len());
            }
        }
    }
}

fn damage(codec: &Codec) {
    let mut rng = Rng::with_seed(7);
    let corrupt = |answer: Result<ArrayRef>, what: &str| {
        let e = answer.map(|_| ()).expect_err(what);
        assert_eq!(e.kind(), ErrorKind::Corrupt, "{what}: {e}");
    };
    let columns = all_types().into_iter().flat_map(|data_type| {
        [(Shape::Ascending, 40), (Shape::Few, 700), (Shape::Runs, 700), (Shape::Random, 700)].map(|(shape, rows)| {
            (
                format!("{data_type}, {shape:?}, {rows} rows"),
                column(&mut Rng::with_seed(8), &data_type, shape, rows, true),
            )
        })
    });
    let columns: Vec<(String, ArrayRef)> =
        columns.chain(others().into_iter().map(|array| (array.data_type().to_string(), array))).collect();
    quietly(|| {
        for (what, array) in &columns {
            let (rows, data_type) = (array.len(), array.data_type());
            let whole = (codec.encode)(array).unwrap().bytes;
            let decode = |bytes: &[u8], form| (codec.decode)(Bytes::copy_from_slice(bytes), rows, data_type, form);
            // Each part says where it ends, so what is cut or longer never fits.
            let cuts =
                (0..whole.len().min(20)).chain((0..20).map(|_| rng.usize(..whole.len()))).chain([whole.len() - 1]);
            for cut in cuts {
                for form in [Form::Exact, Form::Native, Form::Stored] {
                    corrupt(decode(&whole[..cut], form), &format!("{what}, cut at {cut} of {}", whole.len()));
                }
            }
            corrupt(decode(&[&whole[..], &[0]].concat(), Form::Exact), &format!("{what}, longer"));
            let flips = (0..whole.len().min(30)).chain((0..30).map(|_| rng.usize(..whole.len()))).collect::<Vec<_>>();
            for at in flips {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << rng.u8(..8);
                let what = format!("{what}, byte {at} of {} is {}", whole.len(), damaged[at]);
                for form in [Form::Exact, Form::Native, Form::Stored] {
                    match decode(&damaged, form) {
                        Ok(array) if form == Form::Exact => sound(&array, rows, data_type, &what),
                        Ok(array) => sound(&array, rows, array.data_type(), &what),
                        Err(e) => assert_eq!(e.kind(), ErrorKind::Corrupt, "{what}: {e}"),
                    }
                }
                let picks = [0, rows as u32 - 1];
                match (codec.decode_rows)(Bytes::from(damaged), rows, data_type, &picks) {
                    Ok(array) => sound(&array, 2, data_type, &what),
                    Err(e) => assert_eq!(e.kind(), ErrorKind::Corrupt, "{what}: {e}"),
                }
            }
        }
    });
}

/// Keeps the panics that decoding catches on this thread out of the test's output.
fn quietly(work: impl FnOnce()) {
    use std::cell::Cell;
    use std::panic::{set_hook, take_hook};
    thread_local! {
        static QUIET: Cell<bool> = const { Cell::new(false) };
    }
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| {
        let loud = take_hook();
        set_hook(Box::new(move |info| {
            if !QUIET.get() {
                loud(info);
            }
        }));
    });
    QUIET.set(true);
    let worked = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(false);
    if let Err(panic) = worked {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        panic!("{}", text.unwrap_or("a panic without a text"));
    }
}

fn check(name: &str) {
    CHECKS.into_iter().find(|(what, _)| *what == name).unwrap().1(&REAL);
}

#[test]
fn columns_of_every_type_come_back() {
    check("columns of every type come back");
    check("nothing and nulls come back");
}

#[test]
fn slices_and_extremes_come_back() {
    check("slices come back");
    check("extremes come back bit for bit");
    check("dictionaries of every size come back");
}

#[test]
fn other_schemes_give_the_same_values() {
    check("other schemes give the same values");
    check("the same column gives the same bytes");
}

#[test]
fn picked_rows_are_those_of_the_whole() {
    check("picked rows are those of the whole");
}

#[test]
fn damage_is_an_error_or_an_array() {
    check("damage is an error or an array");
}

#[test]
fn the_columns_meet_every_type_and_every_encoding() {
    let variants: BTreeSet<&str> = all_types().iter().map(met::variant).collect();
    let others: BTreeSet<&str> = others().iter().map(|array| met::variant(array.data_type())).collect();
    assert_eq!(variants.union(&others).count(), met::VARIANTS, "{variants:?}, {others:?}");
    let mut rng = Rng::with_seed(1);
    let mut met = met::Met::default();
    for data_type in all_types() {
        for shape in SHAPES {
            for (rows, nulls) in [(9, true), (1030, false), (1030, true)] {
                met.add(&encode(&column(&mut rng, &data_type, shape, rows, nulls)).unwrap().bytes);
            }
        }
        met.add(&encode(&new_null_array(&data_type, 5)).unwrap().bytes);
    }
    // Long texts, and floats that are packed by the thousand.
    for data_type in LONG {
        for shape in SHAPES {
            let array = column(&mut rng, &data_type, shape, 20_000, false);
            for compression in [Compression::Balanced, Compression::Small] {
                let scheme = Scheme::default().with_compression(compression);
                met.add(&encode_like(&array, &data_type, &scheme).unwrap().0.bytes);
            }
        }
    }
    self::others().iter().for_each(|array| met.add(&encode(array).unwrap().bytes));
    assert_eq!(met.tags(), met::TAGS.into());
    assert_eq!(met.encodings(), met::ENCODINGS.into());
}

#[test]
fn a_codec_that_breaks_a_rule_is_noticed() {
    for (rule, codec, noticed_by) in RULES {
        let (_, check) = CHECKS.into_iter().find(|(what, _)| *what == noticed_by).unwrap();
        let checked = catch_unwind(AssertUnwindSafe(|| check(&codec)));
        assert!(checked.is_err(), "'{noticed_by}' does not notice that it {rule}");
    }
    for (what, _) in CHECKS {
        assert!(RULES.iter().any(|(.., noticed_by)| *noticed_by == what), "'{what}' notices nothing");
    }
}
